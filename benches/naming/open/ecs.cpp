// An entity component system: sparse sets per component, views over several of them, systems with
// a virtual update, a spatial hash, a queue of events, handles with generations.
#include "../heap.hpp"
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace ecs
{
    using Entity = std::uint32_t;
    constexpr Entity Null = 0xFFFFFFFFu;
    constexpr unsigned IndexBits = 20;

    inline unsigned indexOf(Entity e) { return e & ((1u << IndexBits) - 1); }
    inline unsigned generationOf(Entity e) { return e >> IndexBits; }

    template <typename T>
    using Vec = std::vector<T, heap::Alloc<T>>;

    class PoolBase
    {
    public:
        virtual ~PoolBase() = default;
        virtual void remove(Entity e) = 0;

        bool contains(Entity e) const
        {
            const unsigned i = indexOf(e);
            return i < m_sparse.size() && m_sparse[i] != Null && m_dense[m_sparse[i]] == e;
        }
        const Vec<Entity>& entities() const { return m_dense; }

    protected:
        Vec<std::uint32_t> m_sparse;
        Vec<Entity> m_dense;
    };

    template <typename C>
    class Pool final : public PoolBase
    {
    public:
        template <typename... Args>
        C& emplace(Entity e, Args&&... args)
        {
            const unsigned i = indexOf(e);
            if (i >= m_sparse.size())
                m_sparse.resize(std::max<std::size_t>(64, 2 * i), Null);
            m_sparse[i] = static_cast<std::uint32_t>(m_dense.size());
            m_dense.push_back(e);
            m_components.push_back(C{std::forward<Args>(args)...});
            return m_components.back();
        }

        void remove(Entity e) override
        {
            if (!contains(e))
                return;
            const std::uint32_t hole = m_sparse[indexOf(e)];
            m_components[hole] = std::move(m_components.back());
            m_dense[hole] = m_dense.back();
            m_sparse[indexOf(m_dense[hole])] = hole;
            m_sparse[indexOf(e)] = Null;
            m_components.pop_back();
            m_dense.pop_back();
        }

        C& get(Entity e) { return m_components[m_sparse[indexOf(e)]]; }
        C* tryGet(Entity e) { return contains(e) ? &get(e) : nullptr; }
        Vec<C>& all() { return m_components; }

    private:
        Vec<C> m_components;
    };

    template <typename... Cs>
    class Registry
    {
    public:
        Entity create()
        {
            if (m_free == Null)
            {
                m_generations.push_back(0);
                return static_cast<Entity>(m_generations.size() - 1);
            }
            const Entity e = m_free;
            m_free = m_next[indexOf(e)];
            return e;
        }

        void destroy(Entity e)
        {
            (std::get<Pool<Cs>>(m_pools).remove(e), ...);
            const unsigned i = indexOf(e);
            if (m_next.size() <= i)
                m_next.resize(m_generations.size(), Null);
            m_next[i] = m_free;
            m_free = (++m_generations[i] & 0xFFF) << IndexBits | i;
        }

        bool alive(Entity e) const { return (m_generations[indexOf(e)] & 0xFFF) == generationOf(e); }

        template <typename C>
        Pool<C>& pool() { return std::get<Pool<C>>(m_pools); }

        template <typename First, typename... Rest, typename F>
        void each(F&& f)
        {
            Pool<First>& first = pool<First>();
            const Vec<Entity>& entities = first.entities();
            for (std::size_t i = entities.size(); i-- > 0;)
            {
                const Entity e = entities[i];
                if ((pool<Rest>().contains(e) && ...))
                    f(e, first.all()[i], pool<Rest>().get(e)...);
            }
        }

    private:
        std::tuple<Pool<Cs>...> m_pools;
        Vec<std::uint16_t> m_generations;
        Vec<Entity> m_next;
        Entity m_free = Null;
    };
}

namespace game
{
    using ecs::Entity;
    using ecs::Vec;

    struct Vector2
    {
        float x = 0, y = 0;
        Vector2 operator+(Vector2 o) const { return {x + o.x, y + o.y}; }
        Vector2 operator-(Vector2 o) const { return {x - o.x, y - o.y}; }
        Vector2 operator*(float k) const { return {x * k, y * k}; }
        float dot(Vector2 o) const { return x * o.x + y * o.y; }
    };

    struct Transform
    {
        Vector2 position;
        float rotation;
        Entity parent;
    };

    struct Body
    {
        Vector2 velocity;
        Vector2 force;
        float inverseMass;
        std::uint16_t layer, mask;
        bool asleep;
    };

    struct Health
    {
        int current, maximum;
        std::optional<Entity> lastHitBy;
        double regeneration;
    };

    struct Brain
    {
        enum class Mood : std::uint8_t { Idle, Chase, Flee } mood;
        std::optional<Vector2> goal;
        Entity target;
        unsigned thoughts;
    };

    struct Colour
    {
        std::uint8_t rgba[4];
    };

    struct Sprite
    {
        std::uint32_t texture;
        Colour colour;
        short frame, frames;
        float elapsed;
    };

    using World = ecs::Registry<Transform, Body, Health, Brain, Sprite>;

    struct Hit
    {
        Entity a, b;
        float depth;
        Vector2 normal;
    };

    struct Cell
    {
        Entity members[6];
        std::uint8_t used, overflow;
    };

    class System
    {
    public:
        System(const char* name, unsigned every) : m_name(name), m_every(every) {}
        virtual ~System() = default;
        void run(World& world, float dt)
        {
            if (++m_runs % m_every == 0)
                update(world, dt * m_every);
        }
        unsigned runs() const { return m_runs; }

    protected:
        virtual void update(World& world, float dt) = 0;

    private:
        const char* m_name;
        unsigned m_every, m_runs = 0;
    };

    class Movement : public System
    {
    public:
        Movement() : System("movement", 2) {}

    private:
        void update(World& world, float dt) override
        {
            world.each<Body, Transform>([this, dt](Entity, Body& body, Transform& t) {
                if (body.asleep)
                    return;
                body.velocity = (body.velocity + body.force * (body.inverseMass * dt)) * m_drag;
                body.force = {};
                t.position = t.position + body.velocity * dt;
                if (t.position.x < 0 || t.position.x > m_extent)
                {
                    body.velocity.x = -body.velocity.x;
                    t.position.x = std::clamp(t.position.x, 0.f, m_extent);
                }
                if (t.position.y < 0 || t.position.y > m_extent)
                {
                    body.velocity.y = -body.velocity.y;
                    t.position.y = std::clamp(t.position.y, 0.f, m_extent);
                }
                t.rotation += body.velocity.x * 0.01f;
            });
        }
        float m_drag = 0.995f, m_extent = 400;
    };

    class Collision : public System
    {
    public:
        explicit Collision(std::deque<Hit, heap::Alloc<Hit>>& hits) : System("collision", 4), m_hits(hits) {}

    private:
        using Grid = std::unordered_map<std::uint32_t, Cell, std::hash<std::uint32_t>, std::equal_to<std::uint32_t>,
                                        heap::Alloc<std::pair<const std::uint32_t, Cell>>>;

        static std::uint32_t keyOf(Vector2 p)
        {
            return static_cast<std::uint32_t>(static_cast<int>(p.x) / 16) << 16 |
                   (static_cast<std::uint32_t>(static_cast<int>(p.y) / 16) & 0xFFFF);
        }

        void update(World& world, float) override
        {
            for (auto& [key, cell] : m_grid)
                cell.used = 0;
            world.each<Body, Transform>([&](Entity e, Body&, Transform& t) {
                Cell& cell = m_grid[keyOf(t.position)];
                if (cell.used < 6)
                    cell.members[cell.used++] = e;
                else
                    ++cell.overflow;
            });
            for (const auto& [key, cell] : m_grid)
                for (unsigned i = 0; i < cell.used; ++i)
                    for (unsigned j = i + 1; j < cell.used; ++j)
                        test(world, cell.members[i], cell.members[j]);
        }

        void test(World& world, Entity a, Entity b)
        {
            ++m_tested;
            Body &ba = world.pool<Body>().get(a), &bb = world.pool<Body>().get(b);
            if (!(ba.mask & bb.layer) || !(bb.mask & ba.layer))
                return;
            const Vector2 d = world.pool<Transform>().get(b).position - world.pool<Transform>().get(a).position;
            const float squared = d.dot(d);
            if (squared > 64 || squared == 0)
                return;
            const float distance = std::sqrt(squared);
            m_hits.push_back({a, b, 8 - distance, d * (1 / distance)});
        }

        Grid m_grid;
        std::deque<Hit, heap::Alloc<Hit>>& m_hits;
        std::uint64_t m_tested = 0;
    };

    class Combat : public System
    {
    public:
        explicit Combat(std::deque<Hit, heap::Alloc<Hit>>& hits) : System("combat", 1), m_hits(hits) {}

    private:
        void update(World& world, float dt) override
        {
            while (!m_hits.empty())
            {
                const Hit hit = m_hits.front();
                m_hits.pop_front();
                if (!world.alive(hit.a) || !world.alive(hit.b))
                    continue;
                Body &a = world.pool<Body>().get(hit.a), &b = world.pool<Body>().get(hit.b);
                a.force = a.force - hit.normal * (hit.depth * 40);
                b.force = b.force + hit.normal * (hit.depth * 40);
                if (Health* health = world.pool<Health>().tryGet(hit.b))
                {
                    health->current -= 1 + static_cast<int>(hit.depth);
                    health->lastHitBy = hit.a;
                    if (health->current <= 0)
                        m_dead.push_back(hit.b);
                }
            }
            world.each<Health>([dt](Entity, Health& h) {
                h.regeneration += dt;
                if (h.regeneration > 1 && h.current < h.maximum)
                {
                    ++h.current;
                    h.regeneration = 0;
                    h.lastHitBy.reset();
                }
            });
            for (Entity e : m_dead)
                if (world.alive(e))
                {
                    world.destroy(e);
                    ++m_killed;
                }
            m_dead.clear();
        }

        std::deque<Hit, heap::Alloc<Hit>>& m_hits;
        Vec<Entity> m_dead;
        unsigned m_killed = 0;
    };

    class Thinking : public System
    {
    public:
        Thinking() : System("thinking", 1) {}

    private:
        void update(World& world, float) override
        {
            world.each<Brain, Transform, Body>([&](Entity e, Brain& brain, Transform& t, Body& body) {
                if ((++brain.thoughts + e) % 4)
                    return;
                if (brain.target == ecs::Null || !world.alive(brain.target))
                {
                    const auto& others = world.pool<Health>().entities();
                    brain.target = others.empty() ? ecs::Null : others[(brain.thoughts * 7919u + e) % others.size()];
                    brain.mood = Brain::Mood::Idle;
                    brain.goal.reset();
                    return;
                }
                const Health& theirs = world.pool<Health>().get(brain.target);
                brain.mood = theirs.current * 2 < theirs.maximum ? Brain::Mood::Chase : Brain::Mood::Flee;
                brain.goal = world.pool<Transform>().get(brain.target).position;
                const Vector2 d = *brain.goal - t.position;
                const float k = brain.mood == Brain::Mood::Chase ? 0.5f : -0.2f;
                body.force = body.force + d * k;
            });
        }
    };

    class Animation : public System
    {
    public:
        Animation() : System("animation", 1) {}

    private:
        void update(World& world, float dt) override
        {
            for (Sprite& s : world.pool<Sprite>().all())
            {
                s.elapsed += dt;
                if (s.elapsed > 0.1f)
                {
                    s.elapsed -= 0.1f;
                    s.frame = static_cast<short>((s.frame + 1) % s.frames);
                    ++m_batches[s.texture % 8];
                }
            }
            world.each<Health, Sprite>([](Entity, Health& h, Sprite& s) {
                s.colour.rgba[0] = static_cast<std::uint8_t>(255 * h.current / h.maximum);
                s.colour.rgba[1] = h.lastHitBy ? 0 : 255;
            });
        }

        std::uint32_t m_batches[8] = {};
    };

    void spawn(World& world)
    {
        const std::uint64_t r = tr_rand();
        const Entity e = world.create();
        world.pool<Transform>().emplace(
            e, Vector2{static_cast<float>(r % 400), static_cast<float>(r / 400 % 400)}, 0.f, ecs::Null);
        world.pool<Sprite>().emplace(e, static_cast<std::uint32_t>(r >> 30 & 15), Colour{{9, 9, 9, 255}},
                                     static_cast<short>(0), static_cast<short>(2 + (r >> 50 & 7)), 0.f);
        if (r >> 40 & 7)
            world.pool<Body>().emplace(e, Vector2{static_cast<float>(r >> 20 & 31) - 16, static_cast<float>(r >> 25 & 31) - 16},
                                       Vector2{}, 1.f / (1 + (r >> 45 & 3)), static_cast<std::uint16_t>(1 << (r >> 36 & 3)),
                                       static_cast<std::uint16_t>(r >> 52), (r >> 60) == 0);
        if ((r >> 43 & 3) != 0)
            world.pool<Health>().emplace(e, 40, 50, std::nullopt, 0.0);
        if ((r >> 47 & 1) != 0)
            world.pool<Brain>().emplace(e, Brain::Mood::Idle, std::nullopt, ecs::Null, 0u);
    }
}

static game::World world;

int main(int argc, char** argv)
{
    using namespace game;
    tr_init(argc, argv);
    TR_GLOBALX(world);
    static std::deque<Hit, heap::Alloc<Hit>> hits;
    TR_GLOBALX(hits);
    std::vector<std::unique_ptr<System>, heap::Alloc<std::unique_ptr<System>>> systems;
    systems.push_back(heap::make<Thinking>());
    systems.push_back(heap::make<Movement>());
    systems.push_back(heap::make<Collision>(hits));
    systems.push_back(heap::make<Combat>(hits));
    systems.push_back(heap::make<Animation>());
    double sum = 0;
    while (tr_more())
    {
        const auto& everything = world.pool<Transform>().entities();
        for (int i = 0; i < 4 && !everything.empty(); ++i)
            world.destroy(everything[tr_rand() % everything.size()]);
        while (everything.size() < 700)
            spawn(world);
        for (auto& system : systems)
        {
            system->run(world, 0.02f);
            sum += system->runs();
        }
    }
    tr_sink = static_cast<std::uint64_t>(sum);
}
