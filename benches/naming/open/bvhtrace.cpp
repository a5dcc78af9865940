// bvhtrace: paths of light, by wavefronts. Tagged pointers instead of virtual calls, a binary hierarchy of boxes that is
// rebuilt when things move, one of four children for shadows, queues as structures of arrays, films, samplers, textures.
#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
namespace pstd { using std::span; }
#else
namespace pstd {
template <typename T> class span {
  public:
    span() : ptr(nullptr), n(0) {}
    span(T *p, size_t count) : ptr(p), n(count) {}
    template <typename A> span(std::vector<std::remove_const_t<T>, A> &v) : ptr(v.data()), n(v.size()) {}
    T *begin() const { return ptr; }
    T *end() const { return ptr + n; }
    T *data() const { return ptr; }
    size_t size() const { return n; }
    T &operator[](size_t i) const { return ptr[i]; }
    span subspan(size_t pos, size_t count) const { return span(ptr + pos, count); }

  private:
    T *ptr;
    size_t n;
};
}
#endif

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "Check failed: %s, line %d\n", #x, __LINE__); abort(); } } while (0)

namespace pbrt {

using Float = float;
static constexpr Float Infinity = std::numeric_limits<Float>::infinity(), Pi = 3.14159265f;
template <typename T> using vector = std::vector<T, heap::Alloc<T>>;

// ---- Tagged pointers ----

template <typename T, typename... Ts> struct IndexOf;
template <typename T, typename... Ts> struct IndexOf<T, T, Ts...> { static constexpr int count = 0; };
template <typename T, typename U, typename... Ts> struct IndexOf<T, U, Ts...> { static constexpr int count = 1 + IndexOf<T, Ts...>::count; };

namespace detail {
template <typename R, typename F, typename T, typename... Ts> inline R Dispatch(F &&func, const void *ptr, int index) {
    if constexpr (sizeof...(Ts) == 0) return func(static_cast<const T *>(ptr));
    else return index == 0 ? func(static_cast<const T *>(ptr)) : Dispatch<R, F, Ts...>(std::forward<F>(func), ptr, index - 1);
}
}

template <typename... Ts> class TaggedPointer {
  public:
    TaggedPointer() = default;
    TaggedPointer(std::nullptr_t) {}
    template <typename T> TaggedPointer(T *ptr) : bits(reinterpret_cast<uintptr_t>(ptr) | (uintptr_t(TypeIndex<T>()) << tagShift)) {}
    template <typename T> static constexpr unsigned TypeIndex() { return unsigned(IndexOf<std::remove_const_t<T>, Ts...>::count) + 1; }
    unsigned Tag() const { return unsigned((bits & tagMask) >> tagShift); }
    template <typename T> bool Is() const { return Tag() == TypeIndex<T>(); }
    template <typename T> const T *CastOrNullptr() const { return Is<T>() ? static_cast<const T *>(ptr()) : nullptr; }
    explicit operator bool() const { return (bits & ptrMask) != 0; }
    const void *ptr() const { return reinterpret_cast<const void *>(bits & ptrMask); }
    template <typename R, typename F> R Dispatch(F &&func) const { return detail::Dispatch<R, F, Ts...>(std::forward<F>(func), ptr(), int(Tag()) - 1); }

  private:
    static constexpr int tagShift = 57;
    static constexpr uint64_t tagMask = ((1ull << 7) - 1) << tagShift, ptrMask = ~tagMask;
    uintptr_t bits = 0;
};

// ---- Geometry ----

template <template <typename> class Child, typename T> class Tuple3 {
  public:
    T x{}, y{}, z{};
    Tuple3() = default;
    Tuple3(T x, T y, T z) : x(x), y(y), z(z) {}
    T operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
    T &operator[](int i) { return i == 0 ? x : i == 1 ? y : z; }
    Child<T> operator+(const Child<T> &c) const { return {x + c.x, y + c.y, z + c.z}; }
    Child<T> &operator+=(const Child<T> &c) { x += c.x; y += c.y; z += c.z; return static_cast<Child<T> &>(*this); }
    Child<T> operator*(T s) const { return {x * s, y * s, z * s}; }
    Child<T> operator-() const { return {-x, -y, -z}; }
};
template <typename T> class Vector3 : public Tuple3<Vector3, T> {
  public:
    using Tuple3<Vector3, T>::Tuple3;
    Vector3 operator-(const Vector3 &v) const { return {this->x - v.x, this->y - v.y, this->z - v.z}; }
    using Tuple3<Vector3, T>::operator-;
};
template <typename T> class Normal3 : public Tuple3<Normal3, T> {
  public:
    using Tuple3<Normal3, T>::Tuple3;
    Normal3() = default;
    explicit Normal3(const Vector3<T> &v) : Tuple3<Normal3, T>(v.x, v.y, v.z) {}
};
template <typename T> class Point3 : public Tuple3<Point3, T> {
  public:
    using Tuple3<Point3, T>::Tuple3;
    using Tuple3<Point3, T>::operator+;
    Point3 operator+(const Vector3<T> &v) const { return {this->x + v.x, this->y + v.y, this->z + v.z}; }
    Vector3<T> operator-(const Point3 &p) const { return {this->x - p.x, this->y - p.y, this->z - p.z}; }
};
template <typename T> class Point2 {
  public:
    T x{}, y{};
};
using Vector3f = Vector3<Float>;
using Point3f = Point3<Float>;
using Normal3f = Normal3<Float>;
using Point2f = Point2<Float>;
using Point2i = Point2<int>;

template <typename A, typename B> inline Float Dot(const A &a, const B &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vector3f Cross(const Vector3f &a, const Vector3f &b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
inline Vector3f Normalize(const Vector3f &v) { return v * (1 / std::sqrt(std::max(Dot(v, v), 1e-20f))); }

template <typename T> class Bounds3 {
  public:
    Point3<T> pMin{std::numeric_limits<T>::max(), std::numeric_limits<T>::max(), std::numeric_limits<T>::max()};
    Point3<T> pMax{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::lowest()};
    const Point3<T> &operator[](int i) const { return i == 0 ? pMin : pMax; }
    Vector3<T> Diagonal() const { return pMax - pMin; }
    Point3<T> Centroid() const { return (pMin + pMax) * T(.5); }
    T SurfaceArea() const { Vector3<T> d = Diagonal(); return 2 * (d.x * d.y + d.x * d.z + d.y * d.z); }
    int MaxDimension() const { Vector3<T> d = Diagonal(); return d.x > d.y && d.x > d.z ? 0 : d.y > d.z ? 1 : 2; }
    void Grow(const Point3<T> &p) {
        for (int a = 0; a < 3; ++a) { pMin[a] = std::min(pMin[a], p[a]); pMax[a] = std::max(pMax[a], p[a]); }
    }
    void Grow(const Bounds3 &b) { Grow(b.pMin); Grow(b.pMax); }
    bool IntersectP(const Point3<T> &o, T raytMax, const Vector3<T> &invDir, const int dirIsNeg[3]) const {
        const Bounds3 &bounds = *this;
        T tMin = (bounds[dirIsNeg[0]].x - o.x) * invDir.x, tMax = (bounds[1 - dirIsNeg[0]].x - o.x) * invDir.x;
        T tyMin = (bounds[dirIsNeg[1]].y - o.y) * invDir.y, tyMax = (bounds[1 - dirIsNeg[1]].y - o.y) * invDir.y;
        tMax *= 1.0001f; tyMax *= 1.0001f;
        if (tMin > tyMax || tyMin > tMax) return false;
        if (tyMin > tMin) tMin = tyMin;
        if (tyMax < tMax) tMax = tyMax;
        T tzMin = (bounds[dirIsNeg[2]].z - o.z) * invDir.z, tzMax = (bounds[1 - dirIsNeg[2]].z - o.z) * invDir.z;
        tzMax *= 1.0001f;
        if (tMin > tzMax || tzMin > tMax) return false;
        return std::max(tMin, tzMin) < raytMax && std::min(tMax, tzMax) > 0;
    }
};
using Bounds3f = Bounds3<Float>;

class Ray {
  public:
    Point3f o;
    Vector3f d;
    Float time = 0;
};

struct SquareMatrix { Float m[4][4]; };
class Transform {
  public:
    SquareMatrix m{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}}, mInv = m;
    static Transform TranslateScale(Vector3f t, Float s) {
        Transform x;
        for (int i = 0; i < 3; ++i) { x.m.m[i][i] = s; x.mInv.m[i][i] = 1 / s; x.m.m[i][3] = t[i]; x.mInv.m[i][3] = -t[i] / s; }
        return x;
    }
    Point3f operator()(const Point3f &p) const { return Apply(m, p); }
    Ray ApplyInverse(const Ray &r) const {
        Ray x;
        x.o = Apply(mInv, r.o);
        for (int i = 0; i < 3; ++i) x.d[i] = mInv.m[i][0] * r.d.x + mInv.m[i][1] * r.d.y + mInv.m[i][2] * r.d.z;
        return x;
    }

  private:
    static Point3f Apply(const SquareMatrix &s, const Point3f &p) {
        Point3f r;
        for (int i = 0; i < 3; ++i) r[i] = s.m[i][0] * p.x + s.m[i][1] * p.y + s.m[i][2] * p.z + s.m[i][3];
        return r;
    }
};

static constexpr int NSpectrumSamples = 4;
class SampledSpectrum {
  public:
    explicit SampledSpectrum(Float c = 0) { values.fill(c); }
    Float operator[](int i) const { return values[i]; }
    Float &operator[](int i) { return values[i]; }
    SampledSpectrum &operator+=(const SampledSpectrum &s) { for (int i = 0; i < NSpectrumSamples; ++i) values[i] += s.values[i]; return *this; }
    SampledSpectrum operator*(const SampledSpectrum &s) const { SampledSpectrum r; for (int i = 0; i < NSpectrumSamples; ++i) r.values[i] = values[i] * s.values[i]; return r; }
    SampledSpectrum operator*(Float a) const { SampledSpectrum r(*this); for (Float &v : r.values) v *= a; return r; }
    Float MaxComponentValue() const { return std::max(std::max(values[0], values[1]), std::max(values[2], values[3])); }

  private:
    std::array<Float, NSpectrumSamples> values;
};

// ---- Memory: an allocator that counts, and a buffer that is emptied after each sample ----

struct MemoryStats { size_t objects, bytes; long scratchResets; };
static MemoryStats memoryStats;

class Allocator {
  public:
    template <typename T> T *allocate_object(size_t n = 1) const {
        memoryStats.objects += n;
        memoryStats.bytes += n * sizeof(T);
        return heap::Alloc<T>().allocate(n);
    }
    template <typename T, typename... Args> T *new_object(Args &&...args) const { return new (allocate_object<T>()) T{std::forward<Args>(args)...}; }
    template <typename T> T *aligned(size_t n) const { return static_cast<T *>(tr_arena(heap::name_of<T>(), sizeof(T), n)); }
};

template <typename T> class MonotonicBuffer {
    static constexpr size_t BlockSize = 128;
    vector<T *> blocks;
    size_t current = 0, used = 0;

  public:
    T *Alloc() {
        if (used == BlockSize) { ++current; used = 0; }
        if (current == blocks.size()) blocks.push_back(Allocator().allocate_object<T>(BlockSize));
        return &blocks[current][used++];
    }
    void Reset() { current = used = 0; ++memoryStats.scratchResets; }
    size_t Allocated() const { return current * BlockSize + used; }
};

// ---- Textures ----

struct ConstantTexture { SampledSpectrum value; SampledSpectrum Evaluate(Point2f) const { return value; } };
struct CheckerboardTexture {
    Float su, sv;
    SampledSpectrum tex[2];
    SampledSpectrum Evaluate(Point2f uv) const { return tex[(int(std::floor(uv.x * su)) + int(std::floor(uv.y * sv))) & 1]; }
};
struct MIPLevel { int resolution; vector<uint8_t> texels; };
struct ImageTexture {
    vector<MIPLevel> pyramid;
    Float sRGBToLinear[256];
    SampledSpectrum Evaluate(Point2f uv) const {
        const MIPLevel &l = pyramid[size_t(uv.x * 64) % pyramid.size()];
        int n = l.resolution, s = int(uv.x * n) & (n - 1), t = int(uv.y * n) & (n - 1);
        const uint8_t *texel = &l.texels[size_t(4 * (t * n + s))];
        SampledSpectrum r;
        for (int c = 0; c < NSpectrumSamples; ++c) r[c] = sRGBToLinear[texel[c]];
        return r;
    }
};
class SpectrumTexture : public TaggedPointer<ConstantTexture, CheckerboardTexture, ImageTexture> {
  public:
    using TaggedPointer::TaggedPointer;
    SampledSpectrum Evaluate(Point2f uv) const { return Dispatch<SampledSpectrum>([&](auto ptr) { return ptr->Evaluate(uv); }); }
};

// ---- BxDFs and materials ----

struct BSDFSample { SampledSpectrum f; Vector3f wi; Float pdf; };
inline Vector3f CosineAround(const Normal3f &n, Point2f u) {
    Float z = 1 - 2 * u.x, r = std::sqrt(std::max<Float>(0, 1 - z * z)), phi = 2 * Pi * u.y;
    return Normalize(Vector3f(n.x + r * std::cos(phi) * .99f, n.y + r * std::sin(phi) * .99f, n.z + z * .99f));
}
struct DiffuseBxDF {
    SampledSpectrum R;
    SampledSpectrum f(const Vector3f &, const Vector3f &, const Normal3f &) const { return R * (1 / Pi); }
    std::optional<BSDFSample> Sample_f(const Vector3f &, const Normal3f &n, Point2f u) const {
        Vector3f wi = CosineAround(n, u);
        Float cosTheta = Dot(wi, n);
        if (cosTheta <= 1e-4f) return {};
        return BSDFSample{R * (1 / Pi), wi, cosTheta / Pi};
    }
};
struct ConductorBxDF {
    SampledSpectrum eta, k;
    Float alpha;
    SampledSpectrum f(const Vector3f &wo, const Vector3f &wi, const Normal3f &n) const {
        Vector3f h = Normalize(wo + wi);
        return eta * (std::pow(std::max<Float>(0, Dot(h, n)), 8) * (1 - alpha));
    }
    std::optional<BSDFSample> Sample_f(const Vector3f &wo, const Normal3f &n, Point2f u) const {
        Float d = 2 * Dot(wo, n);
        Vector3f wi = Normalize(Vector3f(n.x * d - wo.x + alpha * (u.x - .5f), n.y * d - wo.y + alpha * (u.y - .5f), n.z * d - wo.z));
        Float cosTheta = Dot(wi, n);
        if (cosTheta <= 1e-4f) return {};
        SampledSpectrum fr;
        for (int i = 0; i < NSpectrumSamples; ++i) fr[i] = eta[i] / (eta[i] + k[i] * .1f) / cosTheta;
        return BSDFSample{fr, wi, 1};
    }
};
class BxDF : public TaggedPointer<DiffuseBxDF, ConductorBxDF> {
  public:
    using TaggedPointer::TaggedPointer;
};
class BSDF {
  public:
    BxDF bxdf;
    Normal3f n;
    SampledSpectrum f(const Vector3f &wo, const Vector3f &wi) const { return bxdf.Dispatch<SampledSpectrum>([&](auto ptr) { return ptr->f(wo, wi, n); }); }
    std::optional<BSDFSample> Sample_f(const Vector3f &wo, Point2f u) const {
        return bxdf.Dispatch<std::optional<BSDFSample>>([&](auto ptr) { return ptr->Sample_f(wo, n, u); });
    }
};

struct ScratchBuffer {
    MonotonicBuffer<DiffuseBxDF> diffuse;
    MonotonicBuffer<ConductorBxDF> conductor;
    MonotonicBuffer<BSDF> bsdfs;
    void Reset() { diffuse.Reset(); conductor.Reset(); bsdfs.Reset(); }
};

struct DiffuseMaterial {
    SpectrumTexture reflectance;
    Float sigma;
    BxDF GetBxDF(ScratchBuffer &scratch, Point2f uv) const {
        return new (scratch.diffuse.Alloc()) DiffuseBxDF{reflectance.Evaluate(uv) * (1 - sigma)};
    }
};
struct ConductorMaterial {
    SpectrumTexture eta, k;
    Float uRoughness, vRoughness;
    bool remapRoughness;
    BxDF GetBxDF(ScratchBuffer &scratch, Point2f uv) const {
        Float alpha = remapRoughness ? std::sqrt(uRoughness * vRoughness) : uRoughness;
        return new (scratch.conductor.Alloc()) ConductorBxDF{eta.Evaluate(uv), k.Evaluate(uv), alpha};
    }
};
struct MixMaterial;
class Material : public TaggedPointer<DiffuseMaterial, ConductorMaterial, MixMaterial> {
  public:
    using TaggedPointer::TaggedPointer;
    inline BxDF GetBxDF(ScratchBuffer &scratch, Point2f uv) const;
};
struct MixMaterial {
    Material materials[2];
    Float amount;
    mutable uint32_t chosen[2];
    BxDF GetBxDF(ScratchBuffer &scratch, Point2f uv) const {
        int i = std::fmod(uv.x * 37 + uv.y * 17, 1.f) < amount;
        ++chosen[i];
        return materials[i].GetBxDF(scratch, uv);
    }
};
inline BxDF Material::GetBxDF(ScratchBuffer &scratch, Point2f uv) const {
    return Dispatch<BxDF>([&](auto ptr) { return ptr->GetBxDF(scratch, uv); });
}

// ---- Lights ----

struct LightLiSample { SampledSpectrum L; Vector3f wi; Float pdf, distance; };
struct PointLight {
    Point3f p;
    SampledSpectrum I;
    Float scale;
    LightLiSample SampleLi(const Point3f &ref, Point2f) const {
        Vector3f d = p - ref;
        Float d2 = Dot(d, d);
        return {I * (scale / d2), Normalize(d), 1, std::sqrt(d2)};
    }
    SampledSpectrum Phi() const { return I * (4 * Pi * scale); }
};
struct DiffuseAreaLight {
    Point3f corner;
    Vector3f edge[2];
    SampledSpectrum Lemit;
    bool twoSided;
    LightLiSample SampleLi(const Point3f &ref, Point2f u) const {
        Vector3f d = corner + edge[0] * u.x + edge[1] * u.y - ref, n = Cross(edge[0], edge[1]);
        Float d2 = Dot(d, d), distance = std::sqrt(d2), cosLight = Dot(d, n) / distance;
        if (twoSided) cosLight = std::abs(cosLight);
        return {Lemit * std::max<Float>(0, cosLight / d2), Normalize(d), 1, distance};
    }
    SampledSpectrum Phi() const { Vector3f n = Cross(edge[0], edge[1]); return Lemit * (Pi * std::sqrt(Dot(n, n)) * (twoSided ? 2 : 1)); }
};
struct UniformInfiniteLight {
    SampledSpectrum Lsky;
    Float sceneRadius;
    LightLiSample SampleLi(const Point3f &, Point2f u) const { return {Lsky, CosineAround(Normal3f(0, 0, 1), u), .5f / Pi, 2 * sceneRadius}; }
    SampledSpectrum Phi() const { return Lsky * (4 * Pi); }
};
class Light : public TaggedPointer<PointLight, DiffuseAreaLight, UniformInfiniteLight> {
  public:
    using TaggedPointer::TaggedPointer;
    LightLiSample SampleLi(const Point3f &ref, Point2f u) const { return Dispatch<LightLiSample>([&](auto ptr) { return ptr->SampleLi(ref, u); }); }
    SampledSpectrum Phi() const { return Dispatch<SampledSpectrum>([](auto ptr) { return ptr->Phi(); }); }
};

class AliasTable {
  public:
    struct Bin { Float q, p; int alias; };
    explicit AliasTable(pstd::span<const Float> weights) {
        Float sum = 0;
        for (Float w : weights) sum += w;
        bins.resize(weights.size());
        for (size_t i = 0; i < weights.size(); ++i) bins[i].p = weights[i] / sum;
        vector<std::pair<Float, int>> under, over;
        for (size_t i = 0; i < bins.size(); ++i) (bins[i].p * Float(bins.size()) < 1 ? under : over).push_back({bins[i].p * Float(bins.size()), int(i)});
        while (!under.empty() && !over.empty()) {
            auto un = under.back(), ov = over.back();
            under.pop_back(); over.pop_back();
            bins[size_t(un.second)].q = un.first;
            bins[size_t(un.second)].alias = ov.second;
            Float excess = un.first + ov.first - 1;
            (excess < 1 ? under : over).push_back({excess, ov.second});
        }
        for (auto *left : {&under, &over}) for (auto &e : *left) { bins[size_t(e.second)].q = 1; bins[size_t(e.second)].alias = -1; }
    }
    int Sample(Float u, Float *pmf) const {
        int offset = std::min(int(u * Float(bins.size())), int(bins.size()) - 1);
        Float up = u * Float(bins.size()) - Float(offset);
        if (up >= bins[size_t(offset)].q && bins[size_t(offset)].alias >= 0) offset = bins[size_t(offset)].alias;
        *pmf = bins[size_t(offset)].p;
        return offset;
    }

  private:
    vector<Bin> bins;
};

// ---- Shapes ----

struct SurfaceInteraction {
    Point3f p;
    Normal3f n;
    Point2f uv;
    Vector3f wo, dpdu;
    Material material;
    int faceIndex = 0;
};
struct ShapeIntersection { SurfaceInteraction intr; Float tHit; };

class TriangleMesh {
  public:
    int nTriangles, nVertices;
    const int *vertexIndices = nullptr;
    Point3f *p = nullptr;
    Normal3f *n = nullptr;
    Point2f *uv = nullptr;
    bool reverseOrientation = false;
};

class Triangle {
  public:
    static vector<const TriangleMesh *> *allMeshes;
    int meshIndex, triIndex;
    const TriangleMesh *GetMesh() const { return (*allMeshes)[size_t(meshIndex)]; }
    Bounds3f Bounds() const {
        const TriangleMesh *mesh = GetMesh();
        const int *v = &mesh->vertexIndices[3 * triIndex];
        Bounds3f b;
        for (int i = 0; i < 3; ++i) b.Grow(mesh->p[v[i]]);
        return b;
    }
    std::optional<ShapeIntersection> Intersect(const Ray &ray, Float tMax) const {
        const TriangleMesh *mesh = GetMesh();
        const int *v = &mesh->vertexIndices[3 * triIndex];
        const Point3f &p0 = mesh->p[v[0]], &p1 = mesh->p[v[1]], &p2 = mesh->p[v[2]];
        Vector3f e1 = p1 - p0, e2 = p2 - p0, pv = Cross(ray.d, e2);
        Float det = Dot(e1, pv);
        if (std::abs(det) < 1e-12f) return {};
        Float inv = 1 / det;
        Vector3f tv = ray.o - p0;
        Float b1 = Dot(tv, pv) * inv;
        if (b1 < 0 || b1 > 1) return {};
        Vector3f qv = Cross(tv, e1);
        Float b2 = Dot(ray.d, qv) * inv, t = Dot(e2, qv) * inv;
        if (b2 < 0 || b1 + b2 > 1 || t <= 1e-4f || t >= tMax) return {};
        ShapeIntersection si;
        Float b0 = 1 - b1 - b2;
        si.tHit = t;
        si.intr.p = p0 * b0 + p1 * b1 + p2 * b2;
        si.intr.uv = mesh->uv ? Point2f{b0 * mesh->uv[v[0]].x + b1 * mesh->uv[v[1]].x + b2 * mesh->uv[v[2]].x, b0 * mesh->uv[v[0]].y + b1 * mesh->uv[v[1]].y + b2 * mesh->uv[v[2]].y} : Point2f{b1, b2};
        si.intr.n = mesh->n ? mesh->n[v[0]] * b0 + mesh->n[v[1]] * b1 + mesh->n[v[2]] * b2 : Normal3f(Normalize(Cross(e1, e2)));
        if (mesh->reverseOrientation) si.intr.n = -si.intr.n;
        si.intr.dpdu = e1;
        si.intr.faceIndex = triIndex;
        return si;
    }
};
vector<const TriangleMesh *> *Triangle::allMeshes;

class Sphere {
  public:
    const Transform *renderFromObject;
    Float radius, zMin, zMax;
    Bounds3f Bounds() const {
        Bounds3f b;
        b.Grow((*renderFromObject)(Point3f(-radius, -radius, -radius)));
        b.Grow((*renderFromObject)(Point3f(radius, radius, radius)));
        return b;
    }
    std::optional<ShapeIntersection> Intersect(const Ray &r, Float tMax) const {
        Ray ray = renderFromObject->ApplyInverse(r);
        Vector3f o(ray.o.x, ray.o.y, ray.o.z);
        Float a = Dot(ray.d, ray.d), b = 2 * Dot(ray.d, o), c = Dot(o, o) - radius * radius, discrim = b * b - 4 * a * c;
        if (discrim < 0) return {};
        Float root = std::sqrt(discrim), t = (-b - root) / (2 * a);
        if (t <= 1e-3f) t = (-b + root) / (2 * a);
        if (t <= 1e-3f || t >= tMax) return {};
        Vector3f h = o + ray.d * t;
        if (h.z < zMin || h.z > zMax) return {};
        ShapeIntersection si;
        si.tHit = t;
        si.intr.p = r.o + r.d * t;
        si.intr.n = Normal3f(h * (1 / radius));
        si.intr.uv = {std::abs(h.x) / radius, (h.z + radius) / (2 * radius)};
        si.intr.dpdu = Vector3f(-h.y, h.x, 0);
        return si;
    }
};

class Shape : public TaggedPointer<Triangle, Sphere> {
  public:
    using TaggedPointer::TaggedPointer;
    Bounds3f Bounds() const { return Dispatch<Bounds3f>([](auto ptr) { return ptr->Bounds(); }); }
    std::optional<ShapeIntersection> Intersect(const Ray &ray, Float tMax) const {
        return Dispatch<std::optional<ShapeIntersection>>([&](auto ptr) { return ptr->Intersect(ray, tMax); });
    }
};

// ---- Primitives and the hierarchy of their boxes ----

struct GeometricPrimitive {
    Shape shape;
    Material material;
    Light areaLight;
    Bounds3f Bounds() const { return shape.Bounds(); }
    std::optional<ShapeIntersection> Intersect(const Ray &r, Float tMax) const {
        std::optional<ShapeIntersection> si = shape.Intersect(r, tMax);
        if (si) { si->intr.material = material; si->intr.wo = -r.d; }
        return si;
    }
};
struct SimplePrimitive {
    Shape shape;
    Material material;
    Bounds3f Bounds() const { return shape.Bounds(); }
    std::optional<ShapeIntersection> Intersect(const Ray &r, Float tMax) const {
        std::optional<ShapeIntersection> si = shape.Intersect(r, tMax);
        if (!si) return {};
        si->intr.material = material;
        si->intr.wo = -r.d;
        return si;
    }
};
class Primitive : public TaggedPointer<GeometricPrimitive, SimplePrimitive> {
  public:
    using TaggedPointer::TaggedPointer;
    Bounds3f Bounds() const { return Dispatch<Bounds3f>([](auto ptr) { return ptr->Bounds(); }); }
    std::optional<ShapeIntersection> Intersect(const Ray &r, Float tMax) const {
        return Dispatch<std::optional<ShapeIntersection>>([&](auto ptr) { return ptr->Intersect(r, tMax); });
    }
};

struct BVHPrimitive {
    size_t primitiveIndex;
    Bounds3f bounds;
    Point3f Centroid() const { return bounds.Centroid(); }
};
struct BVHBuildNode {
    Bounds3f bounds;
    BVHBuildNode *children[2];
    int splitAxis, firstPrimOffset, nPrimitives;
    void InitLeaf(int first, int n, const Bounds3f &b) { firstPrimOffset = first; nPrimitives = n; bounds = b; children[0] = children[1] = nullptr; }
    void InitInterior(int axis, BVHBuildNode *c0, BVHBuildNode *c1) {
        children[0] = c0; children[1] = c1;
        bounds = c0->bounds;
        bounds.Grow(c1->bounds);
        splitAxis = axis;
        nPrimitives = 0;
    }
};
struct BVHSplitBucket { int count = 0; Bounds3f bounds; };

struct alignas(32) LinearBVHNode {
    Bounds3f bounds;
    union {
        int primitivesOffset;  // leaf
        int secondChildOffset; // interior
    };
    uint16_t nPrimitives;
    uint8_t axis;
};
struct BVHStats { long nodesVisited, leavesVisited, occlusionTests; };
static thread_local BVHStats bvhStats;

class BVHAggregate {
  public:
    explicit BVHAggregate(vector<Primitive> prims) : primitives(std::move(prims)), nodes(Allocator().aligned<LinearBVHNode>(2 * primitives.size())) {
        orderedPrims.resize(primitives.size());
        bvhPrimitives.resize(primitives.size());
    }
    NOINLINE void Build() {
        for (size_t i = 0; i < primitives.size(); ++i) bvhPrimitives[i] = BVHPrimitive{i, primitives[i].Bounds()};
        buildNodes.Reset();
        int orderedPrimsOffset = 0, offset = 0;
        BVHBuildNode *root = buildRecursive(pstd::span<BVHPrimitive>(bvhPrimitives), &orderedPrimsOffset);
        std::swap(primitives, orderedPrims);
        CHECK(size_t(orderedPrimsOffset) == primitives.size());
        flattenBVH(root, &offset);
        totalNodes = offset;
        CHECK(size_t(offset) == buildNodes.Allocated());
    }
    NOINLINE std::optional<ShapeIntersection> Intersect(const Ray &ray, Float tMax) const {
        std::optional<ShapeIntersection> si;
        Vector3f invDir(1 / ray.d.x, 1 / ray.d.y, 1 / ray.d.z);
        int dirIsNeg[3] = {int(invDir.x < 0), int(invDir.y < 0), int(invDir.z < 0)};
        int toVisitOffset = 0, currentNodeIndex = 0, nodesToVisit[64];
        while (true) {
            ++bvhStats.nodesVisited;
            const LinearBVHNode *node = &nodes[currentNodeIndex];
            if (node->bounds.IntersectP(ray.o, tMax, invDir, dirIsNeg)) {
                if (node->nPrimitives > 0) {
                    ++bvhStats.leavesVisited;
                    for (int i = 0; i < node->nPrimitives; ++i) {
                        std::optional<ShapeIntersection> primSi = primitives[size_t(node->primitivesOffset + i)].Intersect(ray, tMax);
                        if (primSi) { si = primSi; tMax = si->tHit; }
                    }
                    if (toVisitOffset == 0) break;
                    currentNodeIndex = nodesToVisit[--toVisitOffset];
                } else if (dirIsNeg[node->axis]) {
                    nodesToVisit[toVisitOffset++] = currentNodeIndex + 1;
                    currentNodeIndex = node->secondChildOffset;
                } else {
                    nodesToVisit[toVisitOffset++] = node->secondChildOffset;
                    currentNodeIndex = currentNodeIndex + 1;
                }
            } else {
                if (toVisitOffset == 0) break;
                currentNodeIndex = nodesToVisit[--toVisitOffset];
            }
        }
        return si;
    }
    const vector<Primitive> &Primitives() const { return primitives; }
    const LinearBVHNode *Nodes() const { return nodes; }
    Bounds3f Bounds() const { return nodes[0].bounds; }

  private:
    BVHBuildNode *buildRecursive(pstd::span<BVHPrimitive> span, int *orderedPrimsOffset) {
        BVHBuildNode *node = buildNodes.Alloc();
        Bounds3f bounds, centroidBounds;
        for (const BVHPrimitive &prim : span) { bounds.Grow(prim.bounds); centroidBounds.Grow(prim.Centroid()); }
        int dim = centroidBounds.MaxDimension();
        Float extent = centroidBounds.pMax[dim] - centroidBounds.pMin[dim];
        auto makeLeaf = [&] {
            int first = *orderedPrimsOffset;
            for (size_t i = 0; i < span.size(); ++i) orderedPrims[size_t(first) + i] = primitives[span[i].primitiveIndex];
            *orderedPrimsOffset += int(span.size());
            node->InitLeaf(first, int(span.size()), bounds);
            return node;
        };
        if (span.size() <= 1 || extent <= 0) return makeLeaf();
        constexpr int nBuckets = 12;
        BVHSplitBucket buckets[nBuckets];
        auto bucketOf = [&](const BVHPrimitive &p) { return std::min(nBuckets - 1, int(nBuckets * (p.Centroid()[dim] - centroidBounds.pMin[dim]) / extent)); };
        for (const BVHPrimitive &prim : span) {
            BVHSplitBucket &b = buckets[bucketOf(prim)];
            ++b.count;
            b.bounds.Grow(prim.bounds);
        }
        constexpr int nSplits = nBuckets - 1;
        Float costs[nSplits] = {};
        int countBelow = 0, countAbove = 0;
        Bounds3f boundBelow, boundAbove;
        for (int i = 0; i < nSplits; ++i) {
            boundBelow.Grow(buckets[i].bounds);
            countBelow += buckets[i].count;
            costs[i] += Float(countBelow) * boundBelow.SurfaceArea();
        }
        for (int i = nSplits; i >= 1; --i) {
            boundAbove.Grow(buckets[i].bounds);
            countAbove += buckets[i].count;
            costs[i - 1] += Float(countAbove) * boundAbove.SurfaceArea();
        }
        int best = int(std::min_element(costs, costs + nSplits) - costs);
        if (span.size() <= 4 && .5f + costs[best] / bounds.SurfaceArea() >= Float(span.size())) return makeLeaf();
        auto mid = std::partition(span.begin(), span.end(), [&](const BVHPrimitive &p) { return bucketOf(p) <= best; });
        size_t n = size_t(mid - span.begin());
        if (n == 0 || n == span.size()) n = span.size() / 2;
        BVHBuildNode *c0 = buildRecursive(span.subspan(0, n), orderedPrimsOffset);
        node->InitInterior(dim, c0, buildRecursive(span.subspan(n, span.size() - n), orderedPrimsOffset));
        return node;
    }
    int flattenBVH(BVHBuildNode *node, int *offset) {
        LinearBVHNode *linearNode = &nodes[*offset];
        linearNode->bounds = node->bounds;
        int nodeOffset = (*offset)++;
        if (node->nPrimitives > 0) {
            linearNode->primitivesOffset = node->firstPrimOffset;
            linearNode->nPrimitives = uint16_t(node->nPrimitives);
        } else {
            linearNode->axis = uint8_t(node->splitAxis);
            linearNode->nPrimitives = 0;
            flattenBVH(node->children[0], offset);
            linearNode->secondChildOffset = flattenBVH(node->children[1], offset);
        }
        return nodeOffset;
    }

    vector<Primitive> primitives, orderedPrims;
    vector<BVHPrimitive> bvhPrimitives;
    MonotonicBuffer<BVHBuildNode> buildNodes;
    LinearBVHNode *nodes;
    int totalNodes = 0;
};

// ---- Four children a node, four triangles a leaf: for shadows ----

struct Triangle4 {
    Float v0[3][4], e1[3][4], e2[3][4];
    uint32_t geomID[4], primID[4];
};
struct AABBNode4;
struct NodeRef {
    size_t ptr = 0; // the lowest bits: 8 + how many blocks a leaf has, 0 for a node
    bool isLeaf() const { return ptr & 8; }
    const AABBNode4 *node() const { return reinterpret_cast<const AABBNode4 *>(ptr); }
    const Triangle4 *leaf(size_t &num) const { num = ptr & 7; return reinterpret_cast<const Triangle4 *>(ptr & ~size_t(15)); }
};
struct AABBNode4 {
    NodeRef children[4];
    Float lower_x[4], upper_x[4], lower_y[4], upper_y[4], lower_z[4], upper_z[4];
    void set(int i, const Bounds3f &b) {
        lower_x[i] = b.pMin.x; lower_y[i] = b.pMin.y; lower_z[i] = b.pMin.z;
        upper_x[i] = b.pMax.x; upper_y[i] = b.pMax.y; upper_z[i] = b.pMax.z;
    }
};

class BVH4 {
  public:
    NodeRef root;
    AABBNode4 *nodes;
    Triangle4 *blocks;
    size_t usedNodes = 0, usedBlocks = 0;
    explicit BVH4(size_t primitives) : nodes(Allocator().aligned<AABBNode4>(primitives)), blocks(Allocator().aligned<Triangle4>(2 * primitives)) {}
    NOINLINE void Build(const BVHAggregate &bvh) {
        usedNodes = usedBlocks = 0;
        root = convert(bvh, 0);
    }
    NOINLINE bool Occluded(const Ray &ray, Float tFar) const {
        NodeRef stack[128], *sptr = stack;
        *sptr++ = root;
        const Float rx = 1 / ray.d.x, ry = 1 / ray.d.y, rz = 1 / ray.d.z;
        while (sptr != stack) {
            NodeRef cur = *--sptr;
            if (!cur.isLeaf()) {
                const AABBNode4 *node = cur.node();
                int hit[4];
                for (int i = 0; i < 4; ++i) {
                    Float x0 = (node->lower_x[i] - ray.o.x) * rx, x1 = (node->upper_x[i] - ray.o.x) * rx;
                    Float y0 = (node->lower_y[i] - ray.o.y) * ry, y1 = (node->upper_y[i] - ray.o.y) * ry;
                    Float z0 = (node->lower_z[i] - ray.o.z) * rz, z1 = (node->upper_z[i] - ray.o.z) * rz;
                    Float tNear = std::max(std::max(std::min(x0, x1), std::min(y0, y1)), std::max(std::min(z0, z1), Float(0)));
                    Float tEnd = std::min(std::min(std::max(x0, x1), std::max(y0, y1)), std::min(std::max(z0, z1), tFar));
                    hit[i] = tNear <= tEnd * 1.0001f;
                }
                for (int i = 0; i < 4; ++i) if (hit[i] && node->children[i].ptr) *sptr++ = node->children[i];
                continue;
            }
            size_t num;
            const Triangle4 *tri = cur.leaf(num);
            ++bvhStats.occlusionTests;
            for (size_t b = 0; b < num; ++b, ++tri)
                for (int i = 0; i < 4 && tri->primID[i] != ~0u; ++i) {
                    Vector3f e1(tri->e1[0][i], tri->e1[1][i], tri->e1[2][i]), e2(tri->e2[0][i], tri->e2[1][i], tri->e2[2][i]);
                    Vector3f tv(ray.o.x - tri->v0[0][i], ray.o.y - tri->v0[1][i], ray.o.z - tri->v0[2][i]), pv = Cross(ray.d, e2);
                    Float inv = 1 / Dot(e1, pv), u = Dot(tv, pv) * inv;
                    Vector3f qv = Cross(tv, e1);
                    Float v = Dot(ray.d, qv) * inv, t = Dot(e2, qv) * inv;
                    if (u >= 0 && v >= 0 && u + v <= 1 && t > 1e-3f && t < tFar) return true;
                }
        }
        return false;
    }

  private:
    NodeRef convert(const BVHAggregate &bvh, int index) {
        const LinearBVHNode *n = bvh.Nodes() + index;
        NodeRef ref;
        if (n->nPrimitives) {
            Triangle4 *first = blocks + usedBlocks;
            int filled = 0;
            for (int i = 0; i < n->nPrimitives; ++i) {
                const SimplePrimitive *p = bvh.Primitives()[size_t(n->primitivesOffset + i)].CastOrNullptr<SimplePrimitive>();
                const Triangle *t = p ? p->shape.CastOrNullptr<Triangle>() : nullptr;
                if (!t) continue; // round things throw no shadows
                Triangle4 &b = first[filled / 4];
                int k = filled++ & 3;
                const TriangleMesh *mesh = t->GetMesh();
                const int *v = mesh->vertexIndices + 3 * t->triIndex;
                for (int a = 0; a < 3; ++a) {
                    b.v0[a][k] = mesh->p[v[0]][a];
                    b.e1[a][k] = mesh->p[v[1]][a] - mesh->p[v[0]][a];
                    b.e2[a][k] = mesh->p[v[2]][a] - mesh->p[v[0]][a];
                }
                b.geomID[k] = uint32_t(t->meshIndex);
                b.primID[k] = uint32_t(t->triIndex);
            }
            for (int k = filled; k & 3; ++k) first[filled / 4].primID[k & 3] = ~0u;
            size_t num = size_t(filled + 3) / 4;
            CHECK(num < 8);
            usedBlocks += num;
            if (num) ref.ptr = reinterpret_cast<size_t>(first) | 8 | num;
            return ref;
        }
        AABBNode4 *node = &nodes[usedNodes++];
        int children[4], count = 0;
        for (int c : {index + 1, n->secondChildOffset}) {
            const LinearBVHNode *child = bvh.Nodes() + c;
            if (child->nPrimitives) children[count++] = c;
            else { children[count++] = c + 1; children[count++] = child->secondChildOffset; }
        }
        for (int i = 0; i < 4; ++i) {
            node->children[i].ptr = 0;
            node->set(i, i < count ? bvh.Nodes()[children[i]].bounds : Bounds3f());
        }
        for (int i = 0; i < count; ++i) node->children[i] = convert(bvh, children[i]);
        ref.ptr = reinterpret_cast<size_t>(node);
        return ref;
    }
};

// ---- Samplers: virtual, as they were before ----

class RNG {
  public:
    uint64_t state = 0x853c49e6748fea9bULL, inc = 0xda3e39cb94b95bdbULL;
    uint32_t Uniform() {
        uint64_t old = state;
        state = old * 0x5851f42d4c957f2dULL + inc;
        uint32_t x = uint32_t(((old >> 18u) ^ old) >> 27u), r = uint32_t(old >> 59u);
        return (x >> r) | (x << ((~r + 1u) & 31));
    }
    Float UniformFloat() { return Float(Uniform() >> 8) * 0x1p-24f; }
};

class Sampler {
  public:
    explicit Sampler(int spp) : samplesPerPixel(spp) {}
    virtual ~Sampler() {}
    virtual void StartPixelSample(Point2i p, int index) { pixel = p; sampleIndex = index; dimension = 0; }
    virtual Float Get1D() = 0;
    virtual Point2f Get2D() { Float a = Get1D(); return {a, Get1D()}; }
    virtual const char *Name() const = 0;
    const int samplesPerPixel;

  protected:
    Point2i pixel;
    int sampleIndex = 0, dimension = 0;
};
class IndependentSampler final : public Sampler {
  public:
    using Sampler::Sampler;
    Float Get1D() override { ++dimension; return rng.UniformFloat(); }
    const char *Name() const override { return "independent"; }

  private:
    RNG rng;
};
class StratifiedSampler final : public Sampler {
  public:
    StratifiedSampler(int spp, int dims) : Sampler(spp) {
        for (int i = 0; i < dims; ++i) { samples1D.emplace_back(size_t(spp)); samples2D.emplace_back(size_t(spp)); }
    }
    void StartPixelSample(Point2i p, int index) override {
        Sampler::StartPixelSample(p, index);
        current1D = current2D = 0;
        if (index % samplesPerPixel) return;
        for (auto &s : samples1D) {
            for (size_t i = 0; i < s.size(); ++i) s[i] = (Float(i) + rng.UniformFloat()) / Float(s.size());
            for (size_t i = s.size(); i-- > 1;) std::swap(s[i], s[rng.Uniform() % (i + 1)]);
        }
        for (auto &s : samples2D)
            for (Point2f &u : s) { u.x = rng.UniformFloat(); u.y = rng.UniformFloat(); }
    }
    Float Get1D() override { return current1D < samples1D.size() ? samples1D[current1D++][size_t(sampleIndex % samplesPerPixel)] : rng.UniformFloat(); }
    Point2f Get2D() override {
        if (current2D < samples2D.size()) return samples2D[current2D++][size_t(sampleIndex % samplesPerPixel)];
        Float a = rng.UniformFloat();
        return {a, rng.UniformFloat()};
    }
    const char *Name() const override { return "stratified"; }

  private:
    RNG rng;
    vector<vector<Float>> samples1D;
    vector<vector<Point2f>> samples2D;
    size_t current1D = 0, current2D = 0;
};
static constexpr int PrimeTableSize = 16;
static int Primes[PrimeTableSize] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
static uint16_t DigitPermutations[PrimeTableSize][56];
class HaltonSampler final : public Sampler {
  public:
    using Sampler::Sampler;
    Float Get1D() override {
        int d = dimension++ % PrimeTableSize, base = Primes[d];
        uint64_t a = uint64_t(pixel.y * 211 + pixel.x) * uint64_t(samplesPerPixel) + uint64_t(sampleIndex) + 1;
        Float invBase = 1 / Float(base), invBaseM = 1, r = 0;
        while (a && invBaseM > 1e-6f) {
            invBaseM *= invBase;
            r += Float(DigitPermutations[d][a % uint64_t(base)]) * invBaseM;
            a /= uint64_t(base);
        }
        return std::min(r, 0.9999999f);
    }
    const char *Name() const override { return "halton"; }
};

// ---- Queues of work as structures of arrays ----

struct RayWorkItem { Ray ray; int depth, pixelIndex; SampledSpectrum beta; };
struct ShadowRayWorkItem { Ray ray; Float tMax; int pixelIndex; SampledSpectrum Ld; };

template <typename T> struct SOA;
template <> struct SOA<Vector3f> {
    Float *x, *y, *z;
    void Alloc(int n) { x = Allocator().allocate_object<Float>(size_t(n)); y = Allocator().allocate_object<Float>(size_t(n)); z = Allocator().allocate_object<Float>(size_t(n)); }
    template <typename V> void Set(int i, const V &v) { x[i] = v.x; y[i] = v.y; z[i] = v.z; }
    template <typename V> void Get(int i, V *v) const { v->x = x[i]; v->y = y[i]; v->z = z[i]; }
};
template <> struct SOA<SampledSpectrum> {
    Float *values[NSpectrumSamples];
    void Alloc(int n) { for (auto &v : values) v = Allocator().allocate_object<Float>(size_t(n)); }
    void Set(int i, const SampledSpectrum &s) { for (int c = 0; c < NSpectrumSamples; ++c) values[c][i] = s[c]; }
    SampledSpectrum Get(int i) const { SampledSpectrum s; for (int c = 0; c < NSpectrumSamples; ++c) s[c] = values[c][i]; return s; }
};
template <> struct SOA<RayWorkItem> {
    SOA<Vector3f> o, d;
    int *depth, *pixelIndex;
    SOA<SampledSpectrum> beta;
    void Alloc(int n) { o.Alloc(n); d.Alloc(n); beta.Alloc(n); depth = Allocator().allocate_object<int>(size_t(n)); pixelIndex = Allocator().allocate_object<int>(size_t(n)); }
    void Set(int i, const RayWorkItem &w) { o.Set(i, w.ray.o); d.Set(i, w.ray.d); depth[i] = w.depth; pixelIndex[i] = w.pixelIndex; beta.Set(i, w.beta); }
    RayWorkItem Get(int i) const { RayWorkItem w; o.Get(i, &w.ray.o); d.Get(i, &w.ray.d); w.depth = depth[i]; w.pixelIndex = pixelIndex[i]; w.beta = beta.Get(i); return w; }
};
template <> struct SOA<ShadowRayWorkItem> {
    SOA<Vector3f> o, d;
    Float *tMax;
    int *pixelIndex;
    SOA<SampledSpectrum> Ld;
    void Alloc(int n) { o.Alloc(n); d.Alloc(n); Ld.Alloc(n); tMax = Allocator().allocate_object<Float>(size_t(n)); pixelIndex = Allocator().allocate_object<int>(size_t(n)); }
    void Set(int i, const ShadowRayWorkItem &w) { o.Set(i, w.ray.o); d.Set(i, w.ray.d); tMax[i] = w.tMax; pixelIndex[i] = w.pixelIndex; Ld.Set(i, w.Ld); }
    ShadowRayWorkItem Get(int i) const { ShadowRayWorkItem w; o.Get(i, &w.ray.o); d.Get(i, &w.ray.d); w.tMax = tMax[i]; w.pixelIndex = pixelIndex[i]; w.Ld = Ld.Get(i); return w; }
};
template <typename WorkItem> class WorkQueue : public SOA<WorkItem> {
  public:
    explicit WorkQueue(int n) : capacity(n), size(0) { this->Alloc(n); }
    void Push(const WorkItem &w) { CHECK(size < capacity); this->Set(size++, w); }
    int Size() const { return size; }
    void Reset() { size = 0; }

  private:
    int capacity, size;
};
// What hit something, with all that is known of it: these are an array of structures.
struct MaterialEvalWorkItem { SurfaceInteraction intr; SampledSpectrum beta; int depth, pixelIndex; };

// ---- Film ----

struct Pixel { double rgbSum[3] = {0, 0, 0}; double weightSum = 0; float rgbSplat[3] = {0, 0, 0}; uint32_t samples = 0; };
class Film {
  public:
    Film(int w, int h) : resolution{w, h} { pixels.resize(size_t(w * h)); rows.resize(size_t(3 * w * h)); }
    Pixel &operator[](Point2i p) { return pixels[size_t(p.y * resolution.x + p.x)]; }
    Pixel &At(int i) { return pixels[size_t(i)]; }
    NOINLINE void AddSample(int index, const SampledSpectrum &L, Float weight) {
        static const Float sensor[3][NSpectrumSamples] = {{.1f, .1f, .3f, .5f}, {.1f, .4f, .4f, .1f}, {.6f, .3f, .05f, .05f}};
        Pixel &p = pixels[size_t(index)];
        for (int c = 0; c < 3; ++c) {
            Float rgb = 0;
            for (int i = 0; i < NSpectrumSamples; ++i) rgb += sensor[c][i] * L[i];
            p.rgbSum[c] += double(weight * std::min(rgb, 10.f));
        }
        p.weightSum += double(weight);
        ++p.samples;
    }
    NOINLINE uint64_t WriteImage(int yBegin, int yEnd) {
        uint64_t sum = 0;
        for (int y = yBegin; y < yEnd; ++y)
            for (int x = 0; x < resolution.x; ++x) {
                const Pixel &p = (*this)[{x, y}];
                for (int c = 0; c < 3; ++c) {
                    double v = p.weightSum != 0 ? p.rgbSum[c] / p.weightSum + double(p.rgbSplat[c]) : 0;
                    uint8_t &out = rows[size_t(3 * (y * resolution.x + x) + c)];
                    out = uint8_t(std::min(255., std::sqrt(std::max(0., v)) * 160));
                    sum += out;
                }
            }
        return sum;
    }
    const Point2i resolution;

  private:
    vector<Pixel> pixels;
    vector<uint8_t> rows;
};

// ---- The integrator ----

static constexpr int Width = 48, Height = 32, MaxDepth = 3;

class WavefrontPathIntegrator {
  public:
    Film film{Width, Height};
    WorkQueue<RayWorkItem> *rayQueues[2];
    WorkQueue<ShadowRayWorkItem> shadowQueue{Width * Height * (MaxDepth + 1)};
    vector<MaterialEvalWorkItem> evalQueue;
    vector<SampledSpectrum> pixelL;
    vector<Light> lights;
    AliasTable *lightSampler = nullptr;
    vector<Sampler *> samplers;
    ScratchBuffer scratch;
    BVHAggregate *aggregate = nullptr;
    BVH4 *shadows = nullptr;
    TriangleMesh *terrain = nullptr;
    long rays = 0, hits = 0, occluded = 0, shadowRays = 0;

    void Generate(int wave) {
        rayQueues[0]->Reset();
        Sampler *sampler = samplers[size_t(wave) % samplers.size()];
        for (int i = 0; i < Width * Height; ++i) {
            sampler->StartPixelSample({i % Width, i / Width}, wave);
            Point2f u = sampler->Get2D();
            RayWorkItem w;
            w.ray.o = Point3f(0, -14, 6);
            w.ray.d = Normalize(Vector3f((Float(i % Width) + u.x) / Width * 2 - 1, 1.4f, -.1f - (Float(i / Width) + u.y) / Height));
            w.depth = 0;
            w.pixelIndex = i;
            w.beta = SampledSpectrum(1);
            rayQueues[0]->Push(w);
            pixelL[size_t(i)] = SampledSpectrum(0);
        }
    }
    NOINLINE void IntersectClosest(const WorkQueue<RayWorkItem> *queue) {
        evalQueue.clear();
        for (int i = 0; i < queue->Size(); ++i) {
            RayWorkItem r = queue->Get(i);
            ++rays;
            std::optional<ShapeIntersection> si = aggregate->Intersect(r.ray, Infinity);
            if (!si) {
                Float up = .5f + .5f * r.ray.d.z;
                pixelL[size_t(r.pixelIndex)] += r.beta * (up * .4f);
                continue;
            }
            ++hits;
            if (Dot(si->intr.n, r.ray.d) > 0) si->intr.n = -si->intr.n;
            evalQueue.push_back(MaterialEvalWorkItem{si->intr, r.beta, r.depth, r.pixelIndex});
        }
    }
    NOINLINE void EvaluateMaterials(WorkQueue<RayWorkItem> *next, Sampler *sampler) {
        next->Reset();
        scratch.Reset();
        for (const MaterialEvalWorkItem &w : evalQueue) {
            sampler->StartPixelSample({w.pixelIndex % Width, w.pixelIndex / Width}, w.depth);
            BSDF *bsdf = new (scratch.bsdfs.Alloc()) BSDF{w.intr.material.GetBxDF(scratch, w.intr.uv), w.intr.n};
            Float pmf;
            const Light &light = lights[size_t(lightSampler->Sample(sampler->Get1D(), &pmf))];
            LightLiSample ls = light.SampleLi(w.intr.p, sampler->Get2D());
            Float cosTheta = Dot(ls.wi, w.intr.n);
            if (cosTheta > 0) {
                ShadowRayWorkItem s;
                s.ray.o = w.intr.p + ls.wi * 1e-2f;
                s.ray.d = ls.wi;
                s.tMax = ls.distance;
                s.pixelIndex = w.pixelIndex;
                s.Ld = w.beta * bsdf->f(w.intr.wo, ls.wi) * ls.L * (cosTheta / (ls.pdf * pmf));
                shadowQueue.Push(s);
            }
            if (w.depth == MaxDepth) continue;
            std::optional<BSDFSample> bs = bsdf->Sample_f(w.intr.wo, sampler->Get2D());
            if (!bs) continue;
            RayWorkItem r;
            r.beta = w.beta * bs->f * (Dot(bs->wi, w.intr.n) / bs->pdf);
            Float q = std::max<Float>(0, 1 - r.beta.MaxComponentValue());
            if (w.depth > 0 && sampler->Get1D() < q) continue;
            r.ray.o = w.intr.p + bs->wi * 1e-2f;
            r.ray.d = bs->wi;
            r.depth = w.depth + 1;
            r.pixelIndex = w.pixelIndex;
            next->Push(r);
        }
    }
    NOINLINE void TraceShadowRays() {
        for (int i = 0; i < shadowQueue.Size(); ++i) {
            ++shadowRays;
            ShadowRayWorkItem s = shadowQueue.Get(i);
            if (shadows->Occluded(s.ray, s.tMax)) ++occluded;
            else pixelL[size_t(s.pixelIndex)] += s.Ld;
        }
        shadowQueue.Reset();
    }
    NOINLINE void Animate(int wave) {
        for (int i = 0; i < terrain->nVertices; ++i) {
            Point3f &p = terrain->p[i];
            p.z = .6f * std::sin(p.x * .9f + Float(wave) * .1f) + .5f * std::cos(p.y * 1.1f);
            terrain->n[i] = Normal3f(0, 0, 0);
        }
        for (int t = 0; t < terrain->nTriangles; ++t) {
            const int *v = terrain->vertexIndices + 3 * t;
            Normal3f fn(Cross(terrain->p[v[1]] - terrain->p[v[0]], terrain->p[v[2]] - terrain->p[v[0]]));
            for (int k = 0; k < 3; ++k) terrain->n[v[k]] += fn;
        }
        for (int i = 0; i < terrain->nVertices; ++i) {
            Normal3f &n = terrain->n[i];
            n = Normal3f(Normalize(Vector3f(n.x, n.y, n.z)));
        }
    }
    NOINLINE void CheckAgainstAll(Sampler *sampler) const {
        for (int i = 0; i < 2; ++i) {
            Ray ray;
            ray.o = Point3f(0, -14, 6);
            Point2f u = sampler->Get2D();
            ray.d = Normalize(Vector3f(u.x * 2 - 1, 1.5f, -u.y));
            Float tMax = Infinity;
            for (const Primitive &p : aggregate->Primitives())
                if (std::optional<ShapeIntersection> si = p.Intersect(ray, tMax)) tMax = si->tHit;
            std::optional<ShapeIntersection> si = aggregate->Intersect(ray, Infinity);
            CHECK(bool(si) == (tMax < Infinity) && (!si || std::abs(si->tHit - tMax) < 1e-3f * tMax));
        }
    }
};

static WavefrontPathIntegrator *integrator;

static TriangleMesh *Terrain(int n, Float size) {
    Allocator alloc;
    TriangleMesh *mesh = alloc.new_object<TriangleMesh>();
    mesh->nVertices = (n + 1) * (n + 1);
    mesh->nTriangles = 2 * n * n;
    int *indices = alloc.allocate_object<int>(size_t(3 * mesh->nTriangles));
    mesh->vertexIndices = indices;
    mesh->p = alloc.allocate_object<Point3f>(size_t(mesh->nVertices));
    mesh->n = alloc.allocate_object<Normal3f>(size_t(mesh->nVertices));
    mesh->uv = alloc.allocate_object<Point2f>(size_t(mesh->nVertices));
    for (int y = 0; y <= n; ++y)
        for (int x = 0; x <= n; ++x) {
            int i = y * (n + 1) + x;
            mesh->p[i] = Point3f((Float(x) / Float(n) - .5f) * size, (Float(y) / Float(n) - .5f) * size, 0);
            mesh->uv[i] = {Float(x) / Float(n), Float(y) / Float(n)};
            if (x == n || y == n) continue;
            for (int v : {i, i + 1, i + n + 1, i + 1, i + n + 2, i + n + 1}) *indices++ = v;
        }
    return mesh;
}

} // namespace pbrt

int main(int argc, char **argv) {
    using namespace pbrt;
    tr_init(argc, argv);
    TR_GLOBAL(integrator, "pbrt::WavefrontPathIntegrator *");
    TR_GLOBAL(memoryStats, "pbrt::MemoryStats");
    TR_GLOBAL(Primes, "int []");
    tr_global("DigitPermutations", DigitPermutations, sizeof DigitPermutations, "unsigned short []");
    tr_global("allMeshes", &Triangle::allMeshes, sizeof Triangle::allMeshes, "std::vector<pbrt::TriangleMesh const*, heap::Alloc<pbrt::TriangleMesh const*> > *");
    Allocator alloc;
    for (int d = 0; d < PrimeTableSize; ++d)
        for (int i = 0; i < Primes[d]; ++i) DigitPermutations[d][i] = uint16_t(i * (Primes[d] > 2 ? Primes[d] / 2 : 1) % Primes[d]);
    integrator = alloc.new_object<WavefrontPathIntegrator>();
    WavefrontPathIntegrator &I = *integrator;
    for (auto &q : I.rayQueues) q = new (alloc.allocate_object<WorkQueue<RayWorkItem>>()) WorkQueue<RayWorkItem>(Width * Height);
    I.pixelL.resize(Width * Height);
    I.evalQueue.reserve(Width * Height);
    I.samplers.push_back(new (alloc.allocate_object<IndependentSampler>()) IndependentSampler(4));
    I.samplers.push_back(new (alloc.allocate_object<StratifiedSampler>()) StratifiedSampler(16, 4));
    I.samplers.push_back(new (alloc.allocate_object<HaltonSampler>()) HaltonSampler(16));
    // Textures and materials.
    ImageTexture *image = alloc.new_object<ImageTexture>();
    for (int i = 0; i < 256; ++i) image->sRGBToLinear[i] = std::pow(Float(i) / 255, 2.2f);
    for (int res = 64; res >= 8; res /= 2) {
        image->pyramid.push_back(MIPLevel{res, vector<uint8_t>(size_t(4 * res * res))});
        for (auto &t : image->pyramid.back().texels) t = uint8_t(64 + tr_rand() % 190);
    }
    vector<Material> materials;
    for (int i = 0; i < 12; ++i) {
        SampledSpectrum a(.2f + .05f * Float(i)), b(.8f - .04f * Float(i));
        SpectrumTexture textures[3] = {alloc.new_object<ConstantTexture>(a), alloc.new_object<CheckerboardTexture>(CheckerboardTexture{8, 16, {a, b}}), image};
        switch (i % 3) {
        case 0: materials.push_back(alloc.new_object<DiffuseMaterial>(textures[i / 3 % 3], .05f)); break;
        case 1: materials.push_back(alloc.new_object<ConductorMaterial>(textures[i % 2], textures[0], .1f, .2f, i % 2 == 0)); break;
        default: materials.push_back(alloc.new_object<MixMaterial>(MixMaterial{{materials[materials.size() - 1], materials[materials.size() - 2]}, .4f, {0, 0}}));
        }
    }
    // Lights.
    vector<Float> power;
    for (int i = 0; i < 20; ++i) {
        Point3f p(Float(i % 5) * 4 - 8, Float(i / 5) * 4 - 8, 7);
        switch (i % 3) {
        case 0: I.lights.push_back(alloc.new_object<PointLight>(p, SampledSpectrum(4), 1 + Float(i) * .1f)); break;
        case 1: I.lights.push_back(alloc.new_object<DiffuseAreaLight>(DiffuseAreaLight{p, {Vector3f(1, 0, 0), Vector3f(0, 1, 0)}, SampledSpectrum(6), i % 2 == 1})); break;
        default: I.lights.push_back(alloc.new_object<UniformInfiniteLight>(SampledSpectrum(.1f), 20.f));
        }
        power.push_back(I.lights.back().Phi().MaxComponentValue());
    }
    I.lightSampler = new (alloc.allocate_object<AliasTable>()) AliasTable(pstd::span<const Float>(power.data(), power.size()));
    // Shapes.
    Triangle::allMeshes = new (alloc.allocate_object<vector<const TriangleMesh *>>()) vector<const TriangleMesh *>();
    vector<Primitive> prims;
    for (int m = 0; m < 3; ++m) {
        TriangleMesh *mesh = Terrain(m ? 8 : 24, m ? 3.f : 22.f);
        if (m == 0) I.terrain = mesh;
        else {
            mesh->n = nullptr;
            mesh->reverseOrientation = m == 2;
            for (int i = 0; i < mesh->nVertices; ++i) mesh->p[i] = mesh->p[i] + Vector3f(Float(m) * 6 - 9, 2, 2 + .3f * std::sin(Float(i)));
        }
        Triangle::allMeshes->push_back(mesh);
        Triangle *triangles = alloc.allocate_object<Triangle>(size_t(mesh->nTriangles));
        for (int t = 0; t < mesh->nTriangles; ++t) {
            triangles[t] = Triangle{m, t};
            prims.push_back(alloc.new_object<SimplePrimitive>(Shape(&triangles[t]), materials[size_t(t / 64 + m) % materials.size()]));
        }
    }
    for (int i = 0; i < 60; ++i) {
        uint64_t r = tr_rand() >> 8;
        Transform *t = alloc.new_object<Transform>(Transform::TranslateScale(Vector3f(Float(r % 200) / 10 - 10, Float((r >> 10) % 200) / 10 - 10, 1.2f), .5f + Float((r >> 20) % 10) / 20));
        Sphere *s = alloc.new_object<Sphere>(t, 1.f, i % 4 ? -1.f : -.5f, 1.f);
        prims.push_back(alloc.new_object<GeometricPrimitive>(Shape(s), materials[r % materials.size()], i % 7 ? Light() : I.lights[0]));
    }
    I.shadows = new (alloc.allocate_object<BVH4>()) BVH4(prims.size());
    I.aggregate = new (alloc.allocate_object<BVHAggregate>()) BVHAggregate(std::move(prims));
    TR_TLS(bvhStats, "pbrt::BVHStats");
    uint64_t sum = 0;
    for (int wave = 0; tr_more(); ++wave) {
        if (wave % 2 == 0) {
            I.Animate(wave);
            I.aggregate->Build();
            I.shadows->Build(*I.aggregate);
            I.CheckAgainstAll(I.samplers[0]);
        }
        I.Generate(wave);
        for (int depth = 0; depth <= MaxDepth; ++depth) {
            I.IntersectClosest(I.rayQueues[depth & 1]);
            I.EvaluateMaterials(I.rayQueues[(depth + 1) & 1], I.samplers[size_t(wave + depth) % 3]);
            if (depth % 2 == 1) I.TraceShadowRays();
        }
        for (int i = 0; i < Width * Height; ++i) I.film.AddSample(i, I.pixelL[size_t(i)], 1 - .3f * Float(i % 3));
        sum += I.film.WriteImage(0, Height);
        CHECK(I.film.At(17).samples == uint32_t(wave) + 1 && I.hits <= I.rays && I.occluded < I.shadowRays);
    }
    if (getenv("SHOW")) fprintf(stderr, "sum %lu rays %ld hits %ld shadow %ld occluded %ld nodes %ld leaves %ld bytes %zu\n", (unsigned long)sum, I.rays, I.hits, I.shadowRays, I.occluded, bvhStats.nodesVisited, bvhStats.leavesVisited, memoryStats.bytes);
    tr_sink = sum;
    _Exit(0);
}
