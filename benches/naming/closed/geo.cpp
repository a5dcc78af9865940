// Features of a map: geometries in a variant, an R-tree that is packed and one that grows, simplification,
// overlay by clipping, spatial joins, tiles encoded to bytes and cached by use.

#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace geo {

template <typename T>
using vector_t = std::vector<T, heap::Alloc<T>>;

template <typename T>
struct point {
    T x{}, y{};
    friend constexpr point operator+(point a, point b) { return {a.x + b.x, a.y + b.y}; }
    friend constexpr point operator-(point a, point b) { return {a.x - b.x, a.y - b.y}; }
    friend constexpr point operator*(point a, T s) { return {a.x * s, a.y * s}; }
    friend constexpr bool operator==(point a, point b) { return a.x == b.x && a.y == b.y; }
};
using point_d = point<double>;

constexpr double cross(point_d a, point_d b) { return a.x * b.y - a.y * b.x; }

template <typename T>
struct box {
    point<T> min{T(1e30), T(1e30)}, max{T(-1e30), T(-1e30)};

    constexpr void expand(point<T> p) {
        min = {std::min(min.x, p.x), std::min(min.y, p.y)};
        max = {std::max(max.x, p.x), std::max(max.y, p.y)};
    }
    constexpr void expand(const box &b) {
        expand(b.min);
        expand(b.max);
    }
    constexpr bool intersects(const box &b) const { return min.x <= b.max.x && b.min.x <= max.x && min.y <= b.max.y && b.min.y <= max.y; }
    constexpr T area() const { return (max.x - min.x) * (max.y - min.y); }
    constexpr T margin() const { return max.x - min.x + max.y - min.y; }
    constexpr point<T> center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
};
using box_d = box<double>;

struct line_string : vector_t<point_d> {
    using vector_t<point_d>::vector;
};
struct linear_ring : vector_t<point_d> {
    using vector_t<point_d>::vector;
};
struct polygon {
    linear_ring outer;
    vector_t<linear_ring> holes;
};

using geometry = std::variant<point_d, line_string, polygon>;

using text = std::basic_string<char, std::char_traits<char>, heap::Alloc<char>>;
using property_value = std::variant<bool, long, double, text>;
using property_map = std::map<text, property_value, std::less<text>, heap::Alloc<std::pair<const text, property_value>>>;

struct feature {
    geometry shape;
    property_map properties;
    unsigned id = 0;
    box_d envelope;
    unsigned short layer = 0;
};

// ---- algorithms over whatever has points ----

template <typename Range, typename F>
void for_each_segment(const Range &points, F &&f) {
    for (std::size_t i = 1; i < points.size(); ++i) f(points[i - 1], points[i]);
}

struct envelope_visitor {
    box_d operator()(const point_d &p) const { return {p, p}; }
    box_d operator()(const line_string &l) const { return of(l); }
    box_d operator()(const polygon &p) const { return of(p.outer); }

private:
    template <typename Range>
    static box_d of(const Range &points) {
        box_d b;
        for (const point_d &p : points) b.expand(p);
        return b;
    }
};

double signed_area(const linear_ring &ring) {
    double sum = 0;
    for_each_segment(ring, [&sum](point_d a, point_d b) { sum += cross(a, b); });
    return sum / 2;
}

bool within(point_d p, const linear_ring &ring) {
    bool inside = false;
    for_each_segment(ring, [&](const point_d &a, const point_d &b) {
        if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
    });
    return inside;
}

NOINLINE bool within(point_d p, const polygon &shape) {
    if (!within(p, shape.outer)) return false;
    for (const linear_ring &hole : shape.holes)
        if (within(p, hole)) return false;
    return true;
}

double segment_distance(point_d p, point_d a, point_d b) {
    const point_d d = b - a, e = p - a;
    const double length = d.x * d.x + d.y * d.y;
    const double t = length > 0 ? std::clamp((e.x * d.x + e.y * d.y) / length, 0.0, 1.0) : 0.0;
    const point_d r = e - d * t;
    return r.x * r.x + r.y * r.y;
}

struct distance_visitor {
    point_d from;
    double operator()(const point_d &p) const { return segment_distance(from, p, p); }
    double operator()(const line_string &l) const { return nearest(l); }
    double operator()(const polygon &p) const { return within(from, p) ? 0 : nearest(p.outer); }

private:
    template <typename Range>
    double nearest(const Range &points) const {
        double best = 1e300;
        for_each_segment(points, [&](const point_d &a, const point_d &b) { best = std::min(best, segment_distance(from, a, b)); });
        return best;
    }
};

// Douglas and Peucker, without recursion.
class simplifier {
public:
    template <typename Range>
    NOINLINE void operator()(const Range &in, double tolerance, Range &out) {
        keep_.assign(in.size(), 0);
        keep_.front() = keep_.back() = 1;
        stack_.push_back({0, in.size() - 1});
        while (!stack_.empty()) {
            const piece s = stack_.back();
            stack_.pop_back();
            double worst = tolerance * tolerance;
            std::size_t at = 0;
            for (std::size_t i = s.first + 1; i < s.last; ++i) {
                const double d = segment_distance(in[i], in[s.first], in[s.last]);
                if (d > worst) {
                    worst = d;
                    at = i;
                }
            }
            if (!at) continue;
            keep_[at] = 1;
            stack_.push_back({s.first, at});
            stack_.push_back({at, s.last});
        }
        out.clear();
        for (std::size_t i = 0; i < in.size(); ++i)
            if (keep_[i]) out.push_back(in[i]);
    }

private:
    struct piece {
        std::size_t first, last;
    };
    vector_t<unsigned char> keep_;
    vector_t<piece> stack_;
};

// Sutherland and Hodgman against the four sides of a box.
class clipper {
public:
    NOINLINE void clip(const linear_ring &ring, const box_d &b, linear_ring &out) {
        buffer_.assign(ring.begin(), ring.end());
        for (int side = 0; side < 4 && !buffer_.empty(); ++side) {
            const bool vertical = side & 1, upper = side & 2;
            const double limit = vertical ? (upper ? b.max.y : b.min.y) : (upper ? b.max.x : b.min.x);
            const auto inside = [=](const point_d &p) { return upper ? (vertical ? p.y : p.x) <= limit : (vertical ? p.y : p.x) >= limit; };
            out.clear();
            for (std::size_t i = 0; i < buffer_.size(); ++i) {
                const point_d &p = buffer_[i], &q = buffer_[(i + 1) % buffer_.size()];
                if (inside(p)) out.push_back(p);
                if (inside(p) != inside(q)) {
                    const double t = vertical ? (limit - p.y) / (q.y - p.y) : (limit - p.x) / (q.x - p.x);
                    out.push_back(p + (q - p) * t);
                }
            }
            buffer_.swap(out);
        }
        out.swap(buffer_);
    }

private:
    linear_ring buffer_;
};

// ---- an R-tree that grows: quadratic split, nodes of a fixed size ----

template <typename Value, int Max>
struct rtree_node;

template <typename Value, int Max>
struct rtree_entry {
    box_d bounds;
    std::variant<std::unique_ptr<rtree_node<Value, Max>>, Value> what;
};

template <typename Value, int Max>
struct rtree_node {
    std::array<rtree_entry<Value, Max>, Max + 1> entries;
    std::size_t count = 0;
    unsigned level = 0;
    box_d bounds() const {
        box_d b;
        for (std::size_t i = 0; i < count; ++i) b.expand(entries[i].bounds);
        return b;
    }
};

template <typename Value, int Max>
struct rtree_candidate {
    double distance;
    const rtree_node<Value, Max> *inner;
    const rtree_entry<Value, Max> *leaf;
    bool operator<(const rtree_candidate &o) const { return distance > o.distance; }
};

template <typename Value, int Max = 8>
class rtree {
    using entry = rtree_entry<Value, Max>;
    using node = rtree_node<Value, Max>;
    using candidate = rtree_candidate<Value, Max>;

public:
    rtree() : root_(make_node(0)) {}

    void insert(const box_d &bounds, Value value) {
        if (auto split = insert(*root_, entry{bounds, std::move(value)}, 0)) {
            auto grown = make_node(root_->level + 1);
            const box_d left = root_->bounds(), right = split->bounds();
            grown->entries[0] = {left, std::move(root_)};
            grown->entries[1] = {right, std::move(split)};
            grown->count = 2;
            root_ = std::move(grown);
        }
        ++size_;
    }

    template <typename F>
    void query(const box_d &window, F &&f) const {
        query(*root_, window, f);
    }

    // The values in the order of their boxes' distance, until f has enough.
    template <typename F>
    NOINLINE void nearest(point_d p, F &&f) const {
        static vector_t<candidate> queue;
        queue.clear();
        queue.push_back({0, root_.get(), nullptr});
        while (!queue.empty()) {
            std::pop_heap(queue.begin(), queue.end());
            const candidate c = queue.back();
            queue.pop_back();
            if (c.leaf) {
                if (!f(std::get<Value>(c.leaf->what), c.distance)) return;
                continue;
            }
            for (std::size_t i = 0; i < c.inner->count; ++i) {
                const entry &e = c.inner->entries[i];
                const double dx = std::max({e.bounds.min.x - p.x, 0.0, p.x - e.bounds.max.x});
                const double dy = std::max({e.bounds.min.y - p.y, 0.0, p.y - e.bounds.max.y});
                const auto *child = std::get_if<std::unique_ptr<node>>(&e.what);
                queue.push_back({dx * dx + dy * dy, child ? child->get() : nullptr, child ? nullptr : &e});
                std::push_heap(queue.begin(), queue.end());
            }
        }
    }

    NOINLINE bool erase(const box_d &bounds, const Value &value) { return erase(*root_, bounds, value); }
    std::size_t size() const { return size_; }

private:
    static std::unique_ptr<node> make_node(unsigned level) {
        auto n = heap::make<node>();
        n->level = level;
        return n;
    }

    NOINLINE std::unique_ptr<node> insert(node &n, entry &&e, unsigned level) {
        if (n.level > level) {
            std::size_t best = 0;
            double least = 1e300;
            for (std::size_t i = 0; i < n.count; ++i) {
                box_d grown = n.entries[i].bounds;
                grown.expand(e.bounds);
                const double more = grown.area() - n.entries[i].bounds.area() + grown.margin() * 1e-3;
                if (more < least) {
                    least = more;
                    best = i;
                }
            }
            entry &into = n.entries[best];
            into.bounds.expand(e.bounds);
            node &child = *std::get<std::unique_ptr<node>>(into.what);
            auto split = insert(child, std::move(e), level);
            if (!split) return nullptr;
            into.bounds = child.bounds();
            const box_d b = split->bounds();
            n.entries[n.count++] = {b, std::move(split)};
        } else
            n.entries[n.count++] = std::move(e);
        return n.count > std::size_t(Max) ? split(n) : nullptr;
    }

    NOINLINE std::unique_ptr<node> split(node &n) {
        std::size_t a = 0, b = 1;
        double worst = -1e300;
        for (std::size_t i = 0; i < n.count; ++i)
            for (std::size_t j = i + 1; j < n.count; ++j) {
                box_d both = n.entries[i].bounds;
                both.expand(n.entries[j].bounds);
                const double waste = both.area() - n.entries[i].bounds.area() - n.entries[j].bounds.area();
                if (waste > worst) {
                    worst = waste;
                    a = i;
                    b = j;
                }
            }
        auto other = make_node(n.level);
        box_d left = n.entries[a].bounds, right = n.entries[b].bounds;
        other->entries[other->count++] = std::move(n.entries[b]);
        n.entries[b] = std::move(n.entries[--n.count]);
        for (std::size_t i = 0; i < n.count && other->count < std::size_t(Max) / 2;) {
            const point_d c = n.entries[i].bounds.center(), l = left.center() - c, r = right.center() - c;
            if (i == a || l.x * l.x + l.y * l.y <= r.x * r.x + r.y * r.y) {
                left.expand(n.entries[i++].bounds);
                continue;
            }
            right.expand(n.entries[i].bounds);
            other->entries[other->count++] = std::move(n.entries[i]);
            if (a == --n.count) a = i;
            n.entries[i] = std::move(n.entries[n.count]);
        }
        return other;
    }

    template <typename F>
    static void query(const node &n, const box_d &window, F &f) {
        for (std::size_t i = 0; i < n.count; ++i) {
            const entry &e = n.entries[i];
            if (!e.bounds.intersects(window)) continue;
            if (n.level)
                query(*std::get<std::unique_ptr<node>>(e.what), window, f);
            else
                f(std::get<Value>(e.what));
        }
    }

    bool erase(node &n, const box_d &bounds, const Value &value) {
        for (std::size_t i = 0; i < n.count; ++i) {
            entry &e = n.entries[i];
            if (!e.bounds.intersects(bounds)) continue;
            if (n.level) {
                node &child = *std::get<std::unique_ptr<node>>(e.what);
                if (!erase(child, bounds, value)) continue;
                if (child.count) e.bounds = child.bounds();
            } else {
                if (std::get<Value>(e.what) != value) continue;
                if (i != --n.count) e = std::move(n.entries[n.count]);
                --size_;
            }
            return true;
        }
        return false;
    }

    std::unique_ptr<node> root_;
    std::size_t size_ = 0;
};

// ---- boxes that are packed along a curve ----

class packed_index {
    struct slot {
        box<float> bounds;
        unsigned index;
        unsigned hilbert;
    };

public:
    NOINLINE void build(const vector_t<std::unique_ptr<feature>> &features) {
        slots_.clear();
        levels_.clear();
        for (const auto &f : features) {
            const box_d &e = f->envelope;
            slots_.push_back({{{float(e.min.x), float(e.min.y)}, {float(e.max.x), float(e.max.y)}}, f->id, hilbert(e.center())});
        }
        std::sort(slots_.begin(), slots_.end(), [](const slot &a, const slot &b) { return a.hilbert < b.hilbert; });
        levels_.push_back(0);
        for (std::size_t from = 0, to = slots_.size(); to - from > 1; from = levels_.back(), to = slots_.size()) {
            levels_.push_back(to);
            for (std::size_t i = from; i < to; i += 16) {
                slot parent{{}, unsigned(i), 0};
                for (std::size_t k = i; k < std::min(to, i + 16); ++k) parent.bounds.expand(slots_[k].bounds);
                slots_.push_back(parent);
            }
        }
    }
    template <typename F>
    NOINLINE void search(const box_d &window, F &&f) {
        const box<float> w{{float(window.min.x), float(window.min.y)}, {float(window.max.x), float(window.max.y)}};
        stack_.assign(1, unsigned(slots_.size() - 1));
        while (!stack_.empty()) {
            const unsigned at = stack_.back();
            stack_.pop_back();
            const slot &s = slots_[at];
            if (!s.bounds.intersects(w)) continue;
            if (at < levels_[1]) {
                f(s.index);
                continue;
            }
            const auto level = std::upper_bound(levels_.begin(), levels_.end(), s.index);
            const std::size_t end = level == levels_.end() ? slots_.size() : *level;
            for (unsigned k = s.index; k < std::min<std::size_t>(end, s.index + 16); ++k) stack_.push_back(k);
        }
    }

private:
    static unsigned hilbert(point_d p) {
        unsigned x = unsigned(p.x) & 1023, y = unsigned(p.y) & 1023, d = 0;
        for (unsigned s = 512; s; s /= 2) {
            const unsigned rx = (x & s) > 0, ry = (y & s) > 0;
            d += s * s * (3 * rx ^ ry);
            if (!ry) {
                if (rx) x = 1023 - x, y = 1023 - y;
                std::swap(x, y);
            }
        }
        return d;
    }
    vector_t<slot> slots_;
    vector_t<std::size_t> levels_;
    vector_t<unsigned> stack_;
};

// ---- tiles: varints of moves, kept while they are used ----

struct tile_key {
    unsigned char zoom;
    unsigned short x, y;
    bool operator==(const tile_key &o) const { return zoom == o.zoom && x == o.x && y == o.y; }
};

struct tile_hash {
    std::size_t operator()(const tile_key &k) const { return (std::size_t(k.zoom) << 12 ^ std::size_t(k.x) << 6 ^ k.y) * 0x9E3779B97F4A7C15ull >> 20; }
};

class tile_writer {
public:
    explicit tile_writer(vector_t<unsigned char> &out) : out_(out) {}
    void add(unsigned id, const geometry &shape, const box_d &window, double tolerance) {
        varint(id);
        origin_ = window.min;
        x_ = y_ = 0;
        std::visit(
            [&](const auto &g) {
                using T = std::decay_t<decltype(g)>;
                if constexpr (std::is_same_v<T, point_d>)
                    move(g);
                else if constexpr (std::is_same_v<T, line_string>) {
                    simplify_(g, tolerance, line_);
                    for (const point_d &p : line_) move(p);
                } else {
                    clipper_.clip(g.outer, window, clipped_);
                    if (clipped_.size() < 3) return;
                    simplify_(clipped_, tolerance, ring_);
                    for (const point_d &p : ring_) move(p);
                }
            },
            shape);
    }

private:
    void varint(unsigned v) {
        for (; v >= 0x80; v >>= 7) out_.push_back(static_cast<unsigned char>(v | 0x80));
        out_.push_back(static_cast<unsigned char>(v));
    }
    void move(const point_d &p) {
        const int x = int((p.x - origin_.x) * 16), y = int((p.y - origin_.y) * 16);
        varint(unsigned(x - x_) << 1 ^ unsigned((x - x_) >> 31));
        varint(unsigned(y - y_) << 1 ^ unsigned((y - y_) >> 31));
        x_ = x;
        y_ = y;
    }
    vector_t<unsigned char> &out_;
    point_d origin_;
    int x_ = 0, y_ = 0;
    static inline simplifier simplify_;
    static inline clipper clipper_;
    static inline line_string line_;
    static inline linear_ring clipped_, ring_;
};

class tile_cache {
    struct cached {
        tile_key key;
        vector_t<unsigned char> bytes;
        unsigned used;
    };

public:
    explicit tile_cache(std::size_t limit) : limit_(limit) {}
    template <typename F>
    const vector_t<unsigned char> &get(const tile_key &key, F &&render) {
        auto found = map_.find(key);
        if (found != map_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            ++hits;
            ++found->second->used;
            return found->second->bytes;
        }
        if (map_.size() == limit_) {
            map_.erase(order_.back().key);
            order_.pop_back();
        }
        ++misses;
        order_.push_front({key, {}, 1});
        render(order_.front().bytes);
        map_.emplace(key, order_.begin());
        return order_.front().bytes;
    }
    unsigned long hits = 0, misses = 0;

private:
    using list = std::list<cached, heap::Alloc<cached>>;
    list order_;
    std::unordered_map<tile_key, typename list::iterator, tile_hash, std::equal_to<tile_key>, heap::Alloc<std::pair<const tile_key, typename list::iterator>>> map_;
    std::size_t limit_;
};

// ---- the store ----

class dataset {
public:
    feature &add(geometry shape, unsigned short layer) {
        auto f = heap::make<feature>();
        f->shape = std::move(shape);
        f->id = unsigned(features_.size());
        f->layer = layer;
        f->envelope = std::visit(envelope_visitor{}, f->shape);
        tree_.insert(f->envelope, f.get());
        features_.push_back(std::move(f));
        return *features_.back();
    }
    void pack() { packed_.build(features_); }

    NOINLINE void render(const tile_key &key, vector_t<unsigned char> &out) {
        const double size = 1024.0 / (1 << key.zoom);
        const box_d window{{key.x * size, key.y * size}, {(key.x + 1) * size, (key.y + 1) * size}};
        tile_writer writer(out);
        packed_.search(window, [&](unsigned id) { writer.add(id, features_[id]->shape, window, size / 200); });
    }

    // Which polygons hold which points; the number of each goes into its properties.
    NOINLINE unsigned long join(const box_d &window) {
        unsigned long pairs = 0;
        tree_.query(window, [&](feature *area) {
            const polygon *shape = std::get_if<polygon>(&area->shape);
            if (!shape) return;
            long count = 0;
            tree_.query(area->envelope, [&](feature *f) {
                if (const point_d *p = std::get_if<point_d>(&f->shape)) count += within(*p, *shape);
            });
            auto it = area->properties.find("population");
            if (it != area->properties.end()) it->second = count;
            pairs += (unsigned long)count;
        });
        return pairs;
    }

    NOINLINE double nearest(point_d from, unsigned wanted) {
        double sum = 0;
        tree_.nearest(from, [&](const feature *f, double) {
            sum += std::sqrt(std::visit(distance_visitor{from}, f->shape));
            return --wanted > 0;
        });
        return sum;
    }

    NOINLINE void move_point(feature &f, point_d to) {
        tree_.erase(f.envelope, &f);
        f.shape = to;
        f.envelope = {to, to};
        tree_.insert(f.envelope, &f);
    }

    NOINLINE double total(const text &key, unsigned short layer) const {
        double sum = 0;
        for (const auto &f : features_) {
            if (f->layer != layer) continue;
            auto it = f->properties.find(key);
            if (it == f->properties.end()) continue;
            if (const long *n = std::get_if<long>(&it->second)) sum += double(*n);
            else if (const double *d = std::get_if<double>(&it->second)) sum += *d;
        }
        return sum;
    }
    vector_t<std::unique_ptr<feature>> &features() { return features_; }

private:
    vector_t<std::unique_ptr<feature>> features_;
    rtree<feature *> tree_;
    packed_index packed_;
};

} // namespace geo

namespace {

double uniform(double limit) { return double(tr_rand() % 100000) / 100000 * limit; }

geo::linear_ring blob(geo::point_d c, double radius, int corners) {
    geo::linear_ring r;
    for (int i = 0; i < corners; ++i) {
        const double a = 6.283185307 * i / corners, d = radius * (0.8 + uniform(0.4));
        r.push_back({c.x + d * std::cos(a), c.y + d * std::sin(a)});
    }
    r.push_back(r.front());
    return r;
}

geo::tile_cache cache(40);
unsigned long joined;

} // namespace

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBALX(cache);
    TR_GLOBALX(joined);
    static const char *const names[] = {"name", "kind", "population", "height", "surface of the road"};
    auto map = heap::make<geo::dataset>();
    for (int i = 0; i < 700; ++i) {
        const geo::point_d at{uniform(1000), uniform(1000)};
        geo::geometry shape = at;
        if (i % 5 == 1) {
            geo::polygon p;
            p.outer = blob(at, 20 + uniform(30), 12 + int(tr_rand() % 20));
            if (i % 3 == 0) p.holes.push_back(blob(at, 8, 8));
            shape = std::move(p);
        } else if (i % 5 == 3) {
            geo::line_string l;
            geo::point_d p = at;
            for (int k = 0; k < 30; ++k) {
                l.push_back(p);
                p = p + geo::point_d{uniform(6) - 2, uniform(6) - 3};
            }
            shape = std::move(l);
        }
        geo::feature &f = map->add(std::move(shape), static_cast<unsigned short>(i % 5));
        for (int k = 0; k < 4; ++k) {
            const geo::text key = names[tr_rand() % 5];
            if (tr_rand() & 1) f.properties[key] = long(tr_rand() % 1000);
            else f.properties[key] = uniform(10);
        }
        if (i % 5 == 1) f.properties["population"] = 0l;
    }
    map->pack();
    double sum = 0;
    std::size_t bytes = 0;
    for (unsigned round = 0; tr_more(); ++round) {
        const geo::point_d at{uniform(900), uniform(900)};
        for (int k = 0; k < 6; ++k) {
            const unsigned char zoom = static_cast<unsigned char>(2 + tr_rand() % 3);
            const geo::tile_key key{zoom, static_cast<unsigned short>(tr_rand() % (1 << zoom)), static_cast<unsigned short>(tr_rand() % (1 << zoom))};
            bytes += cache.get(key, [&](auto &out) { map->render(key, out); }).size();
        }
        joined += map->join({at, {at.x + 60, at.y + 60}});
        for (int k = 0; k < 4; ++k) sum += map->nearest({uniform(1000), uniform(1000)}, 8);
        for (int k = 0; k < 6; ++k) {
            geo::feature &f = *map->features()[tr_rand() % 140 * 5];
            map->move_point(f, {uniform(1000), uniform(1000)});
        }
        if (round % 4 == 0) sum += map->total(names[tr_rand() % 5], static_cast<unsigned short>(tr_rand() % 5));
        if (round % 64 == 0) map->pack();
    }
    if (getenv("VERBOSE")) printf("joined %lu, bytes %zu, distance %f, tiles %lu hit %lu missed\n", joined, bytes, sum, cache.hits, cache.misses);
    tr_sink = joined + bytes;
}
