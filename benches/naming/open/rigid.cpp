// Rigid bodies in the plane: a tree of fat boxes for pairs, manifolds by a matrix of functions, islands,
// a solver of contacts and joints by impulses, rays, sensors with callbacks. No standard containers.

#include "../heap.hpp"
#include <cmath>
#include <new>

typedef float float32;
typedef unsigned char uint8;
typedef unsigned int uint32;

#define rbMaxManifoldPoints 2
#define rbMaxPolygonVertices 6
#define rbNullNode (-1)
#define rbFatten 0.15f
#define rbSlop 0.005f

struct rbVec2
{
	float32 x, y;
	rbVec2() {}
	rbVec2(float32 xIn, float32 yIn) : x(xIn), y(yIn) {}
	void operator+=(const rbVec2& v) { x += v.x; y += v.y; }
	void operator-=(const rbVec2& v) { x -= v.x; y -= v.y; }
	float32 Length() const { return sqrtf(x * x + y * y); }
};
inline rbVec2 operator+(const rbVec2& a, const rbVec2& b) { return rbVec2(a.x + b.x, a.y + b.y); }
inline rbVec2 operator-(const rbVec2& a, const rbVec2& b) { return rbVec2(a.x - b.x, a.y - b.y); }
inline rbVec2 operator*(float32 s, const rbVec2& a) { return rbVec2(s * a.x, s * a.y); }
inline float32 rbDot(const rbVec2& a, const rbVec2& b) { return a.x * b.x + a.y * b.y; }
inline float32 rbCross(const rbVec2& a, const rbVec2& b) { return a.x * b.y - a.y * b.x; }
inline rbVec2 rbCross(float32 s, const rbVec2& a) { return rbVec2(-s * a.y, s * a.x); }
template <typename T> inline T rbMin(T a, T b) { return a < b ? a : b; }
template <typename T> inline T rbMax(T a, T b) { return a > b ? a : b; }
template <typename T> inline T rbClamp(T a, T low, T high) { return rbMax(low, rbMin(a, high)); }

struct rbRot
{
	float32 s, c;
	void Set(float32 angle) { s = sinf(angle); c = cosf(angle); }
};
inline rbVec2 rbMul(const rbRot& q, const rbVec2& v) { return rbVec2(q.c * v.x - q.s * v.y, q.s * v.x + q.c * v.y); }
inline rbVec2 rbMulT(const rbRot& q, const rbVec2& v) { return rbVec2(q.c * v.x + q.s * v.y, -q.s * v.x + q.c * v.y); }

struct rbTransform
{
	rbVec2 p;
	rbRot q;
};
inline rbVec2 rbMul(const rbTransform& t, const rbVec2& v) { return rbMul(t.q, v) + t.p; }

struct rbAABB
{
	rbVec2 lower, upper;
	float32 Perimeter() const { return 2 * (upper.x - lower.x + upper.y - lower.y); }
	bool Contains(const rbAABB& o) const { return lower.x <= o.lower.x && lower.y <= o.lower.y && o.upper.x <= upper.x && o.upper.y <= upper.y; }
	void Combine(const rbAABB& a, const rbAABB& b)
	{
		lower = rbVec2(rbMin(a.lower.x, b.lower.x), rbMin(a.lower.y, b.lower.y));
		upper = rbVec2(rbMax(a.upper.x, b.upper.x), rbMax(a.upper.y, b.upper.y));
	}
};
inline bool rbOverlap(const rbAABB& a, const rbAABB& b)
{
	return a.lower.x <= b.upper.x && b.lower.x <= a.upper.x && a.lower.y <= b.upper.y && b.lower.y <= a.upper.y;
}

// An array that grows.
template <typename T>
class rbArray
{
public:
	rbArray() : m_data(nullptr), m_count(0), m_capacity(0) {}
	~rbArray() { heap::Alloc<T>().deallocate(m_data, m_capacity); }
	void Push(const T& value)
	{
		if (m_count == m_capacity)
		{
			T* old = m_data;
			m_capacity = m_capacity ? 2 * m_capacity : 64;
			m_data = heap::Alloc<T>().allocate(m_capacity);
			for (int i = 0; i < m_count; ++i) new (&m_data[i]) T(old[i]);
			heap::Alloc<T>().deallocate(old, m_count);
		}
		new (&m_data[m_count++]) T(value);
	}
	T Pop() { return m_data[--m_count]; }
	T& operator[](int i) { return m_data[i]; }
	int Count() const { return m_count; }
	void Clear() { m_count = 0; }

private:
	T* m_data;
	int m_count, m_capacity;
};

template <typename T>
T* rbNew()
{
	heap::Of<T> scope;
	return new T();
}

class rbBody;
class rbJoint;
struct rbFixture;
struct rbContact;

// ---- shapes ----

struct rbShape
{
	enum Type { e_circle, e_polygon, e_typeCount };
	Type m_type;
	float32 m_radius;
	explicit rbShape(Type type) : m_type(type), m_radius(0.01f) {}
	virtual ~rbShape() {}
	virtual void ComputeAABB(rbAABB* aabb, const rbTransform& xf) const = 0;
	virtual float32 Inertia(float32 mass) const = 0;
	virtual bool RayCast(float32* fraction, const rbTransform& xf, rbVec2 from, rbVec2 d) const = 0;
};

struct rbCircle : public rbShape
{
	rbVec2 m_p;
	rbCircle() : rbShape(e_circle), m_p(0, 0) {}
	void ComputeAABB(rbAABB* aabb, const rbTransform& xf) const override
	{
		rbVec2 p = rbMul(xf, m_p), r(m_radius, m_radius);
		aabb->lower = p - r;
		aabb->upper = p + r;
	}
	float32 Inertia(float32 mass) const override { return mass * (0.5f * m_radius * m_radius + rbDot(m_p, m_p)); }
	bool RayCast(float32* fraction, const rbTransform& xf, rbVec2 from, rbVec2 d) const override
	{
		rbVec2 s = from - rbMul(xf, m_p);
		float32 b = rbDot(s, d), a = rbDot(d, d), c = rbDot(s, s) - m_radius * m_radius, disc = b * b - a * c;
		if (disc < 0) return false;
		*fraction = -(b + sqrtf(disc)) / a;
		return *fraction > 0 && *fraction < 1;
	}
};

struct rbPolygon : public rbShape
{
	rbVec2 m_vertices[rbMaxPolygonVertices], m_normals[rbMaxPolygonVertices];
	int m_count;
	rbPolygon() : rbShape(e_polygon), m_count(0) {}
	void SetRegular(int count, float32 rx, float32 ry)
	{
		m_count = count;
		for (int i = 0; i < count; ++i)
		{
			float32 a = 6.2831853f * (i + 0.5f) / count;
			m_vertices[i] = rbVec2(rx * cosf(a), ry * sinf(a));
		}
		for (int i = 0; i < count; ++i)
		{
			rbVec2 e = m_vertices[(i + 1) % count] - m_vertices[i];
			m_normals[i] = (1 / e.Length()) * rbVec2(e.y, -e.x);
		}
	}
	void ComputeAABB(rbAABB* aabb, const rbTransform& xf) const override
	{
		aabb->lower = aabb->upper = rbMul(xf, m_vertices[0]);
		for (int i = 1; i < m_count; ++i)
		{
			rbVec2 v = rbMul(xf, m_vertices[i]);
			aabb->lower = rbVec2(rbMin(aabb->lower.x, v.x), rbMin(aabb->lower.y, v.y));
			aabb->upper = rbVec2(rbMax(aabb->upper.x, v.x), rbMax(aabb->upper.y, v.y));
		}
	}
	float32 Inertia(float32 mass) const override { return mass * rbDot(m_vertices[0], m_vertices[0]) * 0.5f; }
	bool RayCast(float32* fraction, const rbTransform& xf, rbVec2 from, rbVec2 d) const override
	{
		rbVec2 p = rbMulT(xf.q, from - xf.p), r = rbMulT(xf.q, d);
		float32 lower = 0, upper = 1;
		for (int i = 0; i < m_count; ++i)
		{
			float32 numerator = rbDot(m_normals[i], m_vertices[i] - p), denominator = rbDot(m_normals[i], r);
			if (denominator < 0 && numerator < lower * denominator) lower = numerator / denominator;
			else if (denominator > 0 && numerator < upper * denominator) upper = numerator / denominator;
			if (upper < lower) return false;
		}
		*fraction = lower;
		return lower > 0;
	}
};

// ---- the tree ----

struct rbTreeNode
{
	rbAABB aabb;
	void* userData;
	union
	{
		int parent, next;
	};
	int child1, child2;
	int height;
	bool moved;
	bool IsLeaf() const { return child1 == rbNullNode; }
};

class rbTree
{
public:
	rbTree() : m_root(rbNullNode), m_free(rbNullNode), m_nodeCount(0), m_insertions(0)
	{
		m_nodes = heap::Alloc<rbTreeNode>().allocate(1024);
		for (int i = 1023; i >= 0; --i) Free(i);
	}
	int CreateProxy(const rbAABB& aabb, void* userData)
	{
		int id = Allocate();
		rbVec2 r(rbFatten, rbFatten);
		m_nodes[id].aabb.lower = aabb.lower - r;
		m_nodes[id].aabb.upper = aabb.upper + r;
		m_nodes[id].userData = userData;
		m_nodes[id].moved = true;
		InsertLeaf(id);
		return id;
	}
	bool MoveProxy(int id, const rbAABB& aabb, const rbVec2& displacement)
	{
		if (m_nodes[id].aabb.Contains(aabb)) return false;
		RemoveLeaf(id);
		rbVec2 r(rbFatten, rbFatten), d = 2.0f * displacement;
		rbAABB fat = {aabb.lower - r, aabb.upper + r};
		(d.x < 0 ? fat.lower.x : fat.upper.x) += d.x;
		(d.y < 0 ? fat.lower.y : fat.upper.y) += d.y;
		m_nodes[id].aabb = fat;
		m_nodes[id].moved = true;
		InsertLeaf(id);
		return true;
	}
	template <typename F>
	void Query(const rbAABB& aabb, F&& found)
	{
		int stack[64], count = 0;
		for (stack[count++] = m_root; count > 0;)
		{
			const rbTreeNode* node = &m_nodes[stack[--count]];
			if (!rbOverlap(node->aabb, aabb)) continue;
			if (node->IsLeaf()) found(int(node - m_nodes));
			else if (count < 62)
			{
				stack[count++] = node->child1;
				stack[count++] = node->child2;
			}
		}
	}
	rbTreeNode& Node(int id) { return m_nodes[id]; }

private:
	int Allocate()
	{
		int id = m_free;
		m_free = m_nodes[id].next;
		m_nodes[id].child1 = m_nodes[id].child2 = m_nodes[id].parent = rbNullNode;
		m_nodes[id].height = 0;
		++m_nodeCount;
		return id;
	}
	void Free(int id)
	{
		m_nodes[id].next = m_free;
		m_free = id;
		--m_nodeCount;
	}
	NOINLINE void InsertLeaf(int leaf)
	{
		++m_insertions;
		if (m_root == rbNullNode)
		{
			m_root = leaf;
			m_nodes[leaf].parent = rbNullNode;
			return;
		}
		const rbAABB box = m_nodes[leaf].aabb;
		int sibling = m_root;
		while (!m_nodes[sibling].IsLeaf())
		{
			const rbTreeNode& node = m_nodes[sibling];
			rbAABB combined, one, two;
			combined.Combine(node.aabb, box);
			float32 cost = 2 * combined.Perimeter(), push = cost - 2 * node.aabb.Perimeter();
			one.Combine(box, m_nodes[node.child1].aabb);
			two.Combine(box, m_nodes[node.child2].aabb);
			float32 cost1 = one.Perimeter() + push - (m_nodes[node.child1].IsLeaf() ? 0 : m_nodes[node.child1].aabb.Perimeter());
			float32 cost2 = two.Perimeter() + push - (m_nodes[node.child2].IsLeaf() ? 0 : m_nodes[node.child2].aabb.Perimeter());
			if (cost < cost1 && cost < cost2) break;
			sibling = cost1 < cost2 ? node.child1 : node.child2;
		}
		int above = m_nodes[sibling].parent, made = Allocate();
		m_nodes[made].parent = above;
		m_nodes[made].userData = nullptr;
		m_nodes[made].child1 = sibling;
		m_nodes[made].child2 = leaf;
		m_nodes[sibling].parent = m_nodes[leaf].parent = made;
		if (above == rbNullNode) m_root = made;
		else if (m_nodes[above].child1 == sibling) m_nodes[above].child1 = made;
		else m_nodes[above].child2 = made;
		Refit(made);
	}
	void RemoveLeaf(int leaf)
	{
		if (leaf == m_root) return void(m_root = rbNullNode);
		int parent = m_nodes[leaf].parent, above = m_nodes[parent].parent;
		int sibling = m_nodes[parent].child1 == leaf ? m_nodes[parent].child2 : m_nodes[parent].child1;
		m_nodes[sibling].parent = above;
		if (above == rbNullNode) m_root = sibling;
		else
		{
			(m_nodes[above].child1 == parent ? m_nodes[above].child1 : m_nodes[above].child2) = sibling;
			Refit(above);
		}
		Free(parent);
	}
	void Refit(int id)
	{
		for (; id != rbNullNode; id = m_nodes[id].parent)
		{
			rbTreeNode &node = m_nodes[id], &a = m_nodes[node.child1], &b = m_nodes[node.child2];
			node.height = 1 + rbMax(a.height, b.height);
			node.aabb.Combine(a.aabb, b.aabb);
		}
	}
	rbTreeNode* m_nodes;
	int m_root, m_free, m_nodeCount;
	uint32 m_insertions;
};

// ---- bodies ----

struct rbFixture
{
	rbFixture* next;
	rbBody* body;
	rbShape* shape;
	float32 friction, restitution;
	int proxy;
	struct
	{
		unsigned short category, mask;
		short group;
	} filter;
	bool sensor;
};

struct rbContactEdge
{
	rbBody* other;
	rbContact* contact;
	rbContactEdge *prev, *next;
};

struct rbJointEdge
{
	rbBody* other;
	rbJoint* joint;
	rbJointEdge* next;
};

class rbBody
{
public:
	enum { e_static = 1, e_awake = 2, e_island = 4 };
	unsigned short m_flags;
	int m_islandIndex;
	rbTransform m_xf;
	rbVec2 m_center, m_linearVelocity;
	float32 m_angle, m_angularVelocity;
	rbVec2 m_force;
	float32 m_torque;
	rbBody *m_prev, *m_next;
	rbFixture* m_fixtures;
	rbContactEdge* m_contacts;
	rbJointEdge* m_joints;
	float32 m_invMass, m_invI;
	float32 m_sleepTime;
	void* m_userData;
};

// ---- contacts ----

union rbContactID
{
	struct
	{
		uint8 indexA, indexB, typeA, typeB;
	} cf;
	uint32 key;
};

struct rbManifoldPoint
{
	rbVec2 localPoint;
	float32 separation, normalImpulse, tangentImpulse;
	rbContactID id;
};

struct rbManifold
{
	rbManifoldPoint points[rbMaxManifoldPoints];
	rbVec2 normal;
	int pointCount;
};

struct rbContact
{
	enum { e_touching = 1, e_island = 2, e_filtered = 4 };
	rbContact *prev, *next;
	rbContactEdge nodeA, nodeB;
	rbFixture *fixtureA, *fixtureB;
	uint32 flags;
	float32 friction;
	rbManifold manifold;
};

typedef void (*rbCollide)(rbManifold*, const rbShape*, const rbTransform&, const rbShape*, const rbTransform&);

static void AddPoint(rbManifold* m, rbVec2 at, float32 separation, int indexA, int indexB)
{
	rbManifoldPoint* p = &m->points[m->pointCount++];
	p->localPoint = at;
	p->separation = separation;
	p->normalImpulse = p->tangentImpulse = 0;
	p->id.key = 0;
	p->id.cf.indexA = uint8(indexA);
	p->id.cf.indexB = uint8(indexB);
}

static NOINLINE void CollideCircles(rbManifold* m, const rbShape* a, const rbTransform& xfA, const rbShape* b, const rbTransform& xfB)
{
	const rbCircle *ca = static_cast<const rbCircle*>(a), *cb = static_cast<const rbCircle*>(b);
	rbVec2 pA = rbMul(xfA, ca->m_p), pB = rbMul(xfB, cb->m_p), d = pB - pA;
	float32 distance = d.Length(), radii = ca->m_radius + cb->m_radius;
	m->pointCount = 0;
	if (distance > radii || distance == 0) return;
	m->normal = (1 / distance) * d;
	AddPoint(m, pA + ca->m_radius * m->normal, distance - radii, 0, 0);
}

static NOINLINE void CollidePolygonCircle(rbManifold* m, const rbShape* a, const rbTransform& xfA, const rbShape* b, const rbTransform& xfB)
{
	const rbPolygon* poly = static_cast<const rbPolygon*>(a);
	const rbCircle* circle = static_cast<const rbCircle*>(b);
	rbVec2 c = rbMulT(xfA.q, rbMul(xfB, circle->m_p) - xfA.p);
	int best = 0;
	float32 separation = -1e9f;
	m->pointCount = 0;
	for (int i = 0; i < poly->m_count; ++i)
	{
		float32 s = rbDot(poly->m_normals[i], c - poly->m_vertices[i]);
		if (s > circle->m_radius) return;
		if (s > separation) separation = s, best = i;
	}
	rbVec2 v1 = poly->m_vertices[best], v2 = poly->m_vertices[(best + 1) % poly->m_count];
	float32 u = rbClamp(rbDot(c - v1, v2 - v1) / rbDot(v2 - v1, v2 - v1), 0.0f, 1.0f);
	rbVec2 nearest = v1 + u * (v2 - v1), d = c - nearest;
	float32 distance = d.Length();
	if (separation > 0 && (distance > circle->m_radius || distance == 0)) return;
	rbVec2 n = separation > 0 ? (1 / distance) * d : poly->m_normals[best];
	m->normal = rbMul(xfA.q, n);
	AddPoint(m, rbMul(xfA, nearest), (separation > 0 ? distance : separation) - circle->m_radius, best, 0);
}

static void CollideCirclePolygon(rbManifold* m, const rbShape* a, const rbTransform& xfA, const rbShape* b, const rbTransform& xfB)
{
	CollidePolygonCircle(m, b, xfB, a, xfA);
	m->normal = -1.0f * m->normal;
}

static NOINLINE float32 MaxSeparation(int* edge, const rbPolygon* a, const rbTransform& xfA, const rbPolygon* b, const rbTransform& xfB)
{
	float32 best = -1e9f;
	for (int i = 0; i < a->m_count; ++i)
	{
		rbVec2 n = rbMulT(xfB.q, rbMul(xfA.q, a->m_normals[i])), v = rbMulT(xfB.q, rbMul(xfA, a->m_vertices[i]) - xfB.p);
		float32 deepest = 1e9f;
		for (int j = 0; j < b->m_count; ++j) deepest = rbMin(deepest, rbDot(n, b->m_vertices[j] - v));
		if (deepest > best) best = deepest, *edge = i;
	}
	return best;
}

static NOINLINE void CollidePolygons(rbManifold* m, const rbShape* a, const rbTransform& xfA, const rbShape* b, const rbTransform& xfB)
{
	const rbPolygon *pa = static_cast<const rbPolygon*>(a), *pb = static_cast<const rbPolygon*>(b);
	int edgeA, edgeB;
	m->pointCount = 0;
	float32 sA = MaxSeparation(&edgeA, pa, xfA, pb, xfB);
	if (sA > 2 * pa->m_radius) return;
	float32 sB = MaxSeparation(&edgeB, pb, xfB, pa, xfA);
	if (sB > 2 * pa->m_radius) return;
	bool flip = sB > sA + 0.001f;
	const rbPolygon *ref = flip ? pb : pa, *inc = flip ? pa : pb;
	const rbTransform &xfR = flip ? xfB : xfA, &xfI = flip ? xfA : xfB;
	int edge = flip ? edgeB : edgeA;
	rbVec2 n = rbMul(xfR.q, ref->m_normals[edge]), v = rbMul(xfR, ref->m_vertices[edge]), t(-n.y, n.x);
	float32 low = 0, high = rbDot(t, rbMul(xfR, ref->m_vertices[(edge + 1) % ref->m_count]) - v);
	for (int j = 0; j < inc->m_count && m->pointCount < rbMaxManifoldPoints; ++j)
	{
		rbVec2 p = rbMul(xfI, inc->m_vertices[j]);
		float32 s = rbDot(n, p - v), along = rbDot(t, p - v);
		if (s < 2 * ref->m_radius && along > low - 0.05f && along < high + 0.05f) AddPoint(m, p, s, edge, j);
	}
	m->normal = flip ? -1.0f * n : n;
}

static rbCollide s_collide[rbShape::e_typeCount][rbShape::e_typeCount] = {{CollideCircles, CollideCirclePolygon}, {CollidePolygonCircle, CollidePolygons}};

// ---- joints ----

class rbJoint
{
public:
	rbJoint() : m_next(nullptr), m_island(false) {}
	virtual ~rbJoint() {}
	virtual void Initialize(float32 dt) = 0;
	virtual void Solve() = 0;
	rbJoint* m_next;
	rbJointEdge m_edgeA, m_edgeB;
	rbBody *m_bodyA, *m_bodyB;
	bool m_island;
};

class rbDistanceJoint : public rbJoint
{
public:
	void Initialize(float32 dt) override
	{
		m_rA = rbMul(m_bodyA->m_xf.q, m_localA);
		m_rB = rbMul(m_bodyB->m_xf.q, m_localB);
		m_u = m_bodyB->m_center + m_rB - m_bodyA->m_center - m_rA;
		float32 length = m_u.Length();
		m_u = (1 / rbMax(length, 0.001f)) * m_u;
		float32 crA = rbCross(m_rA, m_u), crB = rbCross(m_rB, m_u);
		m_mass = 1 / (m_bodyA->m_invMass + m_bodyB->m_invMass + m_bodyA->m_invI * crA * crA + m_bodyB->m_invI * crB * crB);
		m_bias = 0.2f * (length - m_length) / dt;
		m_impulse = 0;
	}
	void Solve() override
	{
		rbVec2 vA = m_bodyA->m_linearVelocity + rbCross(m_bodyA->m_angularVelocity, m_rA);
		rbVec2 vB = m_bodyB->m_linearVelocity + rbCross(m_bodyB->m_angularVelocity, m_rB);
		float32 impulse = -m_mass * (rbDot(m_u, vB - vA) + m_bias);
		m_impulse += impulse;
		rbVec2 p = impulse * m_u;
		m_bodyA->m_linearVelocity -= m_bodyA->m_invMass * p;
		m_bodyA->m_angularVelocity -= m_bodyA->m_invI * rbCross(m_rA, p);
		m_bodyB->m_linearVelocity += m_bodyB->m_invMass * p;
		m_bodyB->m_angularVelocity += m_bodyB->m_invI * rbCross(m_rB, p);
	}
	rbVec2 m_localA, m_localB;
	float32 m_length;

private:
	rbVec2 m_rA, m_rB, m_u;
	float32 m_mass, m_bias, m_impulse;
};

class rbMotor : public rbJoint
{
public:
	rbMotor() : m_speed(2), m_maxTorque(30), m_applied(0) {}
	void Initialize(float32 dt) override
	{
		m_limit = m_maxTorque * dt;
		m_applied = 0;
	}
	void Solve() override
	{
		float32 invI = m_bodyA->m_invI + m_bodyB->m_invI;
		if (invI == 0) return;
		float32 impulse = (m_speed - (m_bodyB->m_angularVelocity - m_bodyA->m_angularVelocity)) / invI;
		float32 before = m_applied;
		m_applied = rbClamp(before + impulse, -m_limit, m_limit);
		m_bodyA->m_angularVelocity -= m_bodyA->m_invI * (m_applied - before);
		m_bodyB->m_angularVelocity += m_bodyB->m_invI * (m_applied - before);
	}
	float32 m_speed, m_maxTorque;

private:
	float32 m_limit, m_applied;
};

// ---- islands ----

struct rbVelocityPoint
{
	rbVec2 rA, rB;
	float32 normalImpulse, tangentImpulse, normalMass, tangentMass, bias;
};

struct rbConstraint
{
	rbVelocityPoint points[rbMaxManifoldPoints];
	rbVec2 normal;
	float32 friction;
	int indexA, indexB, pointCount;
	rbManifold* manifold;
};

struct rbVelocity { rbVec2 v; float32 w; };
struct rbMass { float32 invMass, invI; };

class rbIsland
{
public:
	void Clear()
	{
		m_bodies.Clear();
		m_contacts.Clear();
		m_joints.Clear();
		m_constraints.Clear();
		m_velocities.Clear();
		m_masses.Clear();
	}
	void Add(rbBody* body)
	{
		body->m_islandIndex = m_bodies.Count();
		m_bodies.Push(body);
	}
	void Add(rbContact* contact) { m_contacts.Push(contact); }
	void Add(rbJoint* joint) { m_joints.Push(joint); }

	// A static body may stand in several islands.
	void ReleaseStatic()
	{
		for (int i = 0; i < m_bodies.Count(); ++i)
			if (m_bodies[i]->m_flags & rbBody::e_static) m_bodies[i]->m_flags &= ~rbBody::e_island;
	}
	void Solve(float32 dt, const rbVec2& gravity)
	{
		Integrate(dt, gravity);
		Prepare(dt);
		for (int i = 0; i < m_joints.Count(); ++i) m_joints[i]->Initialize(dt);
		for (int pass = 0; pass < 5; ++pass)
		{
			for (int i = 0; i < m_joints.Count(); ++i) m_joints[i]->Solve();
			Load();
			SolveContacts();
			Unload();
		}
		Finish(dt);
	}

private:
	NOINLINE void Integrate(float32 dt, const rbVec2& gravity)
	{
		for (int i = 0; i < m_bodies.Count(); ++i)
		{
			rbBody* b = m_bodies[i];
			if (!(b->m_flags & rbBody::e_static))
			{
				b->m_linearVelocity += dt * (gravity + b->m_invMass * b->m_force);
				b->m_angularVelocity += dt * b->m_invI * b->m_torque;
				b->m_linearVelocity = 0.999f * b->m_linearVelocity;
			}
			m_velocities.Push(rbVelocity());
			rbMass mass = {b->m_invMass, b->m_invI};
			m_masses.Push(mass);
		}
	}
	NOINLINE void Prepare(float32 dt)
	{
		for (int i = 0; i < m_contacts.Count(); ++i)
		{
			rbContact* c = m_contacts[i];
			rbConstraint vc;
			vc.indexA = c->fixtureA->body->m_islandIndex;
			vc.indexB = c->fixtureB->body->m_islandIndex;
			vc.normal = c->manifold.normal;
			vc.friction = c->friction;
			vc.pointCount = c->manifold.pointCount;
			vc.manifold = &c->manifold;
			const rbMass mA = m_masses[vc.indexA], mB = m_masses[vc.indexB];
			rbVec2 tangent(-vc.normal.y, vc.normal.x);
			for (int j = 0; j < vc.pointCount; ++j)
			{
				const rbManifoldPoint& mp = c->manifold.points[j];
				rbVelocityPoint& p = vc.points[j];
				p.rA = mp.localPoint - c->fixtureA->body->m_center;
				p.rB = mp.localPoint - c->fixtureB->body->m_center;
				float32 nA = rbCross(p.rA, vc.normal), nB = rbCross(p.rB, vc.normal), tA = rbCross(p.rA, tangent), tB = rbCross(p.rB, tangent);
				p.normalMass = 1 / (mA.invMass + mB.invMass + mA.invI * nA * nA + mB.invI * nB * nB);
				p.tangentMass = 1 / (mA.invMass + mB.invMass + mA.invI * tA * tA + mB.invI * tB * tB);
				p.bias = -0.2f / dt * rbMin(0.0f, mp.separation + rbSlop);
				p.normalImpulse = p.tangentImpulse = 0;
			}
			m_constraints.Push(vc);
		}
	}
	NOINLINE void Load()
	{
		for (int i = 0; i < m_bodies.Count(); ++i)
		{
			m_velocities[i].v = m_bodies[i]->m_linearVelocity;
			m_velocities[i].w = m_bodies[i]->m_angularVelocity;
		}
	}
	NOINLINE void Unload()
	{
		for (int i = 0; i < m_bodies.Count(); ++i)
		{
			m_bodies[i]->m_linearVelocity = m_velocities[i].v;
			m_bodies[i]->m_angularVelocity = m_velocities[i].w;
		}
	}
	NOINLINE void SolveContacts()
	{
		for (int i = 0; i < m_constraints.Count(); ++i)
		{
			rbConstraint* c = &m_constraints[i];
			rbVelocity *a = &m_velocities[c->indexA], *b = &m_velocities[c->indexB];
			const rbMass mA = m_masses[c->indexA], mB = m_masses[c->indexB];
			rbVec2 tangent(-c->normal.y, c->normal.x);
			for (int j = 0; j < c->pointCount; ++j)
			{
				rbVelocityPoint* p = &c->points[j];
				rbVec2 dv = b->v + rbCross(b->w, p->rB) - a->v - rbCross(a->w, p->rA);
				float32 limit = c->friction * p->normalImpulse;
				float32 total = rbClamp(p->tangentImpulse - p->tangentMass * rbDot(dv, tangent), -limit, limit);
				rbVec2 P = (total - p->tangentImpulse) * tangent;
				p->tangentImpulse = total;
				total = rbMax(p->normalImpulse - p->normalMass * (rbDot(dv, c->normal) - p->bias), 0.0f);
				P += (total - p->normalImpulse) * c->normal;
				p->normalImpulse = total;
				a->v -= mA.invMass * P;
				a->w -= mA.invI * rbCross(p->rA, P);
				b->v += mB.invMass * P;
				b->w += mB.invI * rbCross(p->rB, P);
			}
		}
	}
	NOINLINE void Finish(float32 dt)
	{
		for (int i = 0; i < m_constraints.Count(); ++i)
			for (int j = 0; j < m_constraints[i].pointCount; ++j)
			{
				m_constraints[i].manifold->points[j].normalImpulse = m_constraints[i].points[j].normalImpulse;
				m_constraints[i].manifold->points[j].tangentImpulse = m_constraints[i].points[j].tangentImpulse;
			}
		for (int i = 0; i < m_bodies.Count(); ++i)
		{
			rbBody* b = m_bodies[i];
			if (b->m_flags & rbBody::e_static) continue;
			b->m_center += dt * b->m_linearVelocity;
			b->m_angle += dt * b->m_angularVelocity;
			b->m_xf.q.Set(b->m_angle);
			b->m_xf.p = b->m_center;
			b->m_sleepTime = rbDot(b->m_linearVelocity, b->m_linearVelocity) < 0.0004f ? b->m_sleepTime + dt : 0;
			b->m_force = rbVec2(0, 0);
			b->m_torque = 0;
		}
	}

	rbArray<rbBody*> m_bodies;
	rbArray<rbContact*> m_contacts;
	rbArray<rbJoint*> m_joints;
	rbArray<rbConstraint> m_constraints;
	rbArray<rbVelocity> m_velocities;
	rbArray<rbMass> m_masses;
};

// ---- the world ----

class rbListener
{
public:
	virtual ~rbListener() {}
	virtual void BeginContact(rbContact* contact) = 0;
	virtual void EndContact(rbContact* contact) = 0;
};

class rbWorld
{
public:
	explicit rbWorld(rbListener* listener) : m_gravity(0, -10), m_bodyList(nullptr), m_contactList(nullptr), m_jointList(nullptr), m_listener(listener) {}

	rbBody* CreateBody(rbVec2 at, rbShape* shape, float32 mass)
	{
		rbBody* b = rbNew<rbBody>();
		memset(static_cast<void*>(b), 0, sizeof(*b));
		b->m_flags = mass > 0 ? rbBody::e_awake : rbBody::e_static;
		b->m_center = b->m_xf.p = at;
		b->m_xf.q.Set(0);
		b->m_invMass = mass > 0 ? 1 / mass : 0;
		b->m_invI = mass > 0 ? 1 / shape->Inertia(mass) : 0;
		b->m_next = m_bodyList;
		if (m_bodyList) m_bodyList->m_prev = b;
		m_bodyList = b;
		rbFixture* f = rbNew<rbFixture>();
		f->next = nullptr;
		f->body = b;
		f->shape = shape;
		f->friction = 0.4f;
		f->restitution = 0;
		f->filter.category = f->filter.mask = 1;
		f->sensor = false;
		b->m_fixtures = f;
		rbAABB aabb;
		shape->ComputeAABB(&aabb, b->m_xf);
		f->proxy = m_tree.CreateProxy(aabb, f);
		return b;
	}
	template <typename J>
	J* CreateJoint(rbBody* a, rbBody* b)
	{
		J* joint = rbNew<J>();
		joint->m_bodyA = a;
		joint->m_bodyB = b;
		joint->m_edgeA = {b, joint, a->m_joints};
		joint->m_edgeB = {a, joint, b->m_joints};
		a->m_joints = &joint->m_edgeA;
		b->m_joints = &joint->m_edgeB;
		joint->m_next = m_jointList;
		m_jointList = joint;
		return joint;
	}
	void Step(float32 dt)
	{
		FindPairs();
		Narrow();
		SolveIslands(dt);
		Synchronize(dt);
	}
	NOINLINE float32 RayCast(rbVec2 from, rbVec2 to)
	{
		rbAABB box = {rbVec2(rbMin(from.x, to.x), rbMin(from.y, to.y)), rbVec2(rbMax(from.x, to.x), rbMax(from.y, to.y))};
		float32 nearest = 1;
		m_tree.Query(box, [&](int id) {
			const rbFixture* f = static_cast<rbFixture*>(m_tree.Node(id).userData);
			float32 fraction;
			if (f->shape->RayCast(&fraction, f->body->m_xf, from, to - from)) nearest = rbMin(nearest, fraction);
		});
		return nearest;
	}
	rbBody* Bodies() { return m_bodyList; }

private:
	NOINLINE void FindPairs()
	{
		for (rbBody* b = m_bodyList; b; b = b->m_next)
			for (rbFixture* f = b->m_fixtures; f; f = f->next)
			{
				rbTreeNode& node = m_tree.Node(f->proxy);
				if (!node.moved) continue;
				node.moved = false;
				m_tree.Query(node.aabb, [&](int id) {
					rbFixture* other = static_cast<rbFixture*>(m_tree.Node(id).userData);
					if (other != f) AddPair(f, other);
				});
			}
	}
	void AddPair(rbFixture* a, rbFixture* b)
	{
		rbBody *bodyA = a->body, *bodyB = b->body;
		if ((bodyA->m_flags & bodyB->m_flags & rbBody::e_static) || !(a->filter.mask & b->filter.category)) return;
		for (rbContactEdge* e = bodyB->m_contacts; e; e = e->next)
			if (e->other == bodyA) return;
		for (rbJointEdge* e = bodyB->m_joints; e; e = e->next)
			if (e->other == bodyA) return;
		rbContact* c = rbNew<rbContact>();
		c->fixtureA = a;
		c->fixtureB = b;
		c->flags = 0;
		c->friction = sqrtf(a->friction * b->friction);
		c->manifold.pointCount = 0;
		c->prev = nullptr;
		c->next = m_contactList;
		if (m_contactList) m_contactList->prev = c;
		m_contactList = c;
		Link(&c->nodeA, c, bodyA, bodyB);
		Link(&c->nodeB, c, bodyB, bodyA);
	}
	static void Link(rbContactEdge* e, rbContact* c, rbBody* of, rbBody* other)
	{
		e->contact = c;
		e->other = other;
		e->prev = nullptr;
		e->next = of->m_contacts;
		if (of->m_contacts) of->m_contacts->prev = e;
		of->m_contacts = e;
	}
	static void Unlink(rbContactEdge* e, rbBody* of)
	{
		(e->prev ? e->prev->next : of->m_contacts) = e->next;
		if (e->next) e->next->prev = e->prev;
	}
	NOINLINE void Narrow()
	{
		for (rbContact *c = m_contactList, *next; c; c = next)
		{
			next = c->next;
			rbFixture *a = c->fixtureA, *b = c->fixtureB;
			if (!rbOverlap(m_tree.Node(a->proxy).aabb, m_tree.Node(b->proxy).aabb))
			{
				(c->prev ? c->prev->next : m_contactList) = next;
				if (next) next->prev = c->prev;
				Unlink(&c->nodeA, a->body);
				Unlink(&c->nodeB, b->body);
				if (c->flags & rbContact::e_touching) m_listener->EndContact(c);
				delete c;
				continue;
			}
			s_collide[a->shape->m_type][b->shape->m_type](&c->manifold, a->shape, a->body->m_xf, b->shape, b->body->m_xf);
			bool was = c->flags & rbContact::e_touching;
			if (c->manifold.pointCount && !was) m_listener->BeginContact(c);
			if (!c->manifold.pointCount && was) m_listener->EndContact(c);
			c->flags = c->manifold.pointCount ? rbContact::e_touching : 0;
		}
	}
	NOINLINE void SolveIslands(float32 dt)
	{
		for (rbBody* b = m_bodyList; b; b = b->m_next) b->m_flags &= ~rbBody::e_island;
		for (rbJoint* j = m_jointList; j; j = j->m_next) j->m_island = false;
		for (rbBody* seed = m_bodyList; seed; seed = seed->m_next)
		{
			if (seed->m_flags & (rbBody::e_island | rbBody::e_static)) continue;
			m_island.Clear();
			m_stack.Clear();
			m_stack.Push(seed);
			seed->m_flags |= rbBody::e_island;
			while (m_stack.Count())
			{
				rbBody* b = m_stack.Pop();
				m_island.Add(b);
				if (b->m_flags & rbBody::e_static) continue;
				for (rbContactEdge* e = b->m_contacts; e; e = e->next)
				{
					if ((e->contact->flags & (rbContact::e_island | rbContact::e_touching)) != rbContact::e_touching) continue;
					e->contact->flags |= rbContact::e_island;
					m_island.Add(e->contact);
					Visit(e->other);
				}
				for (rbJointEdge* e = b->m_joints; e; e = e->next)
				{
					if (e->joint->m_island) continue;
					e->joint->m_island = true;
					m_island.Add(e->joint);
					Visit(e->other);
				}
			}
			m_island.Solve(dt, m_gravity);
			m_island.ReleaseStatic();
		}
	}
	void Visit(rbBody* b)
	{
		if (b->m_flags & rbBody::e_island) return;
		b->m_flags |= rbBody::e_island;
		m_stack.Push(b);
	}
	NOINLINE void Synchronize(float32 dt)
	{
		for (rbBody* b = m_bodyList; b; b = b->m_next)
			for (rbFixture* f = b->m_fixtures; f; f = f->next)
			{
				rbAABB aabb;
				f->shape->ComputeAABB(&aabb, b->m_xf);
				m_tree.MoveProxy(f->proxy, aabb, dt * b->m_linearVelocity);
			}
	}

	rbVec2 m_gravity;
	rbTree m_tree;
	rbIsland m_island;
	rbArray<rbBody*> m_stack;
	rbBody* m_bodyList;
	rbContact* m_contactList;
	rbJoint* m_jointList;
	rbListener* m_listener;
};

// ---- a scene ----

struct Sounds : public rbListener
{
	uint32 begun, ended;
	float32 loudest;
	Sounds() : begun(0), ended(0), loudest(0) {}
	void BeginContact(rbContact* c) override
	{
		++begun;
		loudest = rbMax(loudest, (c->fixtureA->body->m_linearVelocity - c->fixtureB->body->m_linearVelocity).Length());
	}
	void EndContact(rbContact*) override { ++ended; }
};

static Sounds g_sounds;

static void Fill(rbWorld* world)
{
	rbPolygon* slab = rbNew<rbPolygon>();
	slab->SetRegular(4, 40, 1.4f);
	world->CreateBody(rbVec2(0, -1), slab, 0);
	for (int side = -1; side <= 1; side += 2)
	{
		rbPolygon* wall = rbNew<rbPolygon>();
		wall->SetRegular(4, 1.4f, 60);
		world->CreateBody(rbVec2(side * 16.0f, 20), wall, 0);
	}
	rbBody* before = nullptr;
	for (int i = 0; i < 110; ++i)
	{
		rbShape* shape;
		if (i % 3 == 0)
		{
			rbCircle* circle = rbNew<rbCircle>();
			circle->m_radius = 0.4f + 0.02f * (i % 11);
			shape = circle;
		}
		else
		{
			rbPolygon* polygon = rbNew<rbPolygon>();
			polygon->SetRegular(3 + i % 4, 0.5f + 0.02f * (i % 7), 0.6f);
			shape = polygon;
		}
		rbBody* b = world->CreateBody(rbVec2(-12 + (i % 12) * 2.1f, 2 + (i / 12) * 1.6f), shape, 1 + i % 3);
		if (i % 9 == 4 && i % 12)
		{
			rbDistanceJoint* joint = world->CreateJoint<rbDistanceJoint>(before, b);
			joint->m_localA = rbVec2(0.2f, 0);
			joint->m_localB = rbVec2(-0.2f, 0);
			joint->m_length = 1.8f;
		}
		else if (i % 9 == 8)
			world->CreateJoint<rbMotor>(before, b);
		before = b;
	}
}

int main(int argc, char** argv)
{
	tr_init(argc, argv);
	TR_GLOBALX(g_sounds);
	tr_global("s_collide", &s_collide, sizeof s_collide, "rbCollide [][]");
	rbWorld* world;
	{
		heap::Of<rbWorld> scope;
		world = new rbWorld(&g_sounds);
	}
	Fill(world);
	float32 sum = 0;
	for (uint32 step = 0; tr_more(); ++step)
	{
		world->Step(1 / 60.0f);
		for (int i = 0; i < 12; ++i) sum += world->RayCast(rbVec2(-14 + i * 2.0f, 18), rbVec2(14 - i * 2.5f, 0.5f));
		if (step % 64 == 0)
			for (rbBody* b = world->Bodies(); b; b = b->m_next)
				if (!(b->m_flags & rbBody::e_static))
				{
					unsigned long long r = tr_rand();
					b->m_force = rbVec2(float32(int(r & 127) - 64), float32(r >> 10 & 511));
					b->m_torque = float32(r >> 40 & 31);
					if (b->m_center.y < -5 || b->m_center.y > 60) b->m_center = b->m_xf.p = rbVec2(float32(r >> 50 & 15) - 8, 15);
				}
	}
	if (getenv("VERBOSE")) printf("begun %u ended %u loudest %f sum %f\n", g_sounds.begun, g_sounds.ended, g_sounds.loudest, sum);
	tr_sink = (unsigned long)sum + g_sounds.begun;
}
