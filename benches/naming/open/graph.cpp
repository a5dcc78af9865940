// A road map: adjacency vectors, a priority queue, union-find, a cache of routes as list and table.
#include "../heap.hpp"
#include <algorithm>
#include <deque>
#include <limits>
#include <list>
#include <queue>
#include <set>
#include <unordered_map>
#include <vector>

namespace roads {

template <class T> using Vector = std::vector<T, heap::Alloc<T>>;
template <class T> using List = std::list<T, heap::Alloc<T>>;

struct Edge {
    uint32_t to;
    float length;
    uint16_t lanes, limit;
};

struct Place {
    double east, north;
    Vector<Edge> edges;
    uint32_t visits = 0;
    int8_t region = 0;
    bool closed = false;
};

struct Label {
    double distance;
    uint32_t from, round;
};

struct Candidate {
    double distance;
    uint32_t place;
    bool operator<(const Candidate &o) const { return distance > o.distance; }
};

struct Route {
    uint32_t from, to;
    double length;
    unsigned uses;
};

class Cache {
public:
    explicit Cache(size_t limit) : limit_(limit) { table_.reserve(2 * limit); }
    const Route *find(uint32_t from, uint32_t to) {
        auto it = table_.find(key(from, to));
        if (it == table_.end()) {
            misses_++;
            return nullptr;
        }
        order_.splice(order_.begin(), order_, it->second);
        it->second->uses++;
        hits_++;
        return &*it->second;
    }
    void add(const Route &route) {
        if (table_.count(key(route.from, route.to))) return;
        if (table_.size() == limit_) {
            const Route &oldest = order_.back();
            table_.erase(key(oldest.from, oldest.to));
            order_.pop_back();
        }
        order_.push_front(route);
        table_[key(route.from, route.to)] = order_.begin();
    }
    double total() const {
        double sum = double(hits_) / double(1 + misses_);
        for (const Route &r : order_) sum += r.length * r.uses;
        return sum;
    }

private:
    static uint64_t key(uint32_t from, uint32_t to) { return uint64_t(from) << 32 | to; }
    using Entry = std::pair<const uint64_t, List<Route>::iterator>;
    List<Route> order_;
    std::unordered_map<uint64_t, List<Route>::iterator, std::hash<uint64_t>,
                       std::equal_to<uint64_t>, heap::Alloc<Entry>>
        table_;
    size_t limit_;
    uint64_t hits_ = 0, misses_ = 0;
};

struct Groups {
    struct Member {
        uint32_t parent, size;
    };
    Vector<Member> members;
    unsigned joins = 0;
    uint32_t root(uint32_t i) {
        while (members[i].parent != i) {
            members[i].parent = members[members[i].parent].parent;
            i = members[i].parent;
        }
        return i;
    }
    bool join(uint32_t a, uint32_t b) {
        a = root(a);
        b = root(b);
        if (a == b) return false;
        if (members[a].size < members[b].size) std::swap(a, b);
        members[b].parent = a;
        members[a].size += members[b].size;
        joins++;
        return true;
    }
};

class Map {
public:
    explicit Map(uint32_t count);
    double route(uint32_t from, uint32_t to);
    double spanning();
    uint64_t reach(uint32_t from, unsigned limit);
    double change(uint32_t rounds);
    Cache cache{150};

private:
    Vector<Place> places_;
    Vector<Label> labels_;
    std::priority_queue<Candidate, Vector<Candidate>> open_;
    std::set<std::pair<float, uint32_t>, std::less<>, heap::Alloc<std::pair<float, uint32_t>>>
        longest_;
    Groups groups_;
    uint32_t round_ = 0;
    unsigned by_region_[8] = {};
};

Map::Map(uint32_t count) {
    places_.resize(count);
    labels_.resize(count);
    groups_.members.resize(count);
    for (uint32_t i = 0; i < count; i++) {
        Place &p = places_[i];
        p.east = i % 30;
        p.north = i / 30;
        p.region = int8_t(i % 8);
        for (uint32_t to : {i + 1, i + 30, i + 31, uint32_t(tr_rand() % count)})
            if (to < count && to != i) {
                p.edges.push_back({to, 1 + float(tr_rand() % 100) / 50, uint16_t(to % 4), 50});
                if (to > i) places_[to].edges.push_back({i, 1.5f, 1, 30});
            }
    }
}

NOINLINE double Map::route(uint32_t from, uint32_t to) {
    round_++;
    while (!open_.empty()) open_.pop();
    open_.push({0, from});
    labels_[from] = {0, from, round_};
    while (!open_.empty()) {
        Candidate c = open_.top();
        open_.pop();
        const Label &label = labels_[c.place];
        if (c.distance > label.distance) continue;
        Place &place = places_[c.place];
        place.visits++;
        if (c.place == to) return c.distance;
        for (const Edge &e : place.edges) {
            if (places_[e.to].closed) continue;
            double distance = c.distance + e.length * (e.limit > 40 ? 1.0 : 1.4);
            Label &next = labels_[e.to];
            if (next.round == round_ && next.distance <= distance) continue;
            next = {distance, c.place, round_};
            open_.push({distance, e.to});
        }
    }
    return std::numeric_limits<double>::infinity();
}

NOINLINE double Map::spanning() {
    for (uint32_t i = 0; i < groups_.members.size(); i++) groups_.members[i] = {i, 1};
    double sum = 0;
    for (uint32_t i = 0; i < places_.size(); i++)
        for (const Edge &e : places_[i].edges)
            if (e.lanes > 1 && groups_.join(i, e.to)) sum += e.length;
    return sum;
}

NOINLINE uint64_t Map::reach(uint32_t from, unsigned limit) {
    round_++;
    std::deque<uint32_t, heap::Alloc<uint32_t>> waiting{from};
    uint64_t reached = 0;
    while (!waiting.empty() && reached < limit) {
        uint32_t at = waiting.front();
        waiting.pop_front();
        by_region_[places_[at].region & 7]++;
        reached++;
        for (const Edge &e : places_[at].edges)
            if (labels_[e.to].round != round_) {
                labels_[e.to].round = round_;
                waiting.push_back(e.to);
            }
    }
    return reached;
}

NOINLINE double Map::change(uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t at = tr_rand() % places_.size();
        Place &p = places_[at];
        p.closed = p.visits % 16 == 0;
        for (Edge &e : p.edges) e.length = 0.5f + e.length * 0.9f;
        longest_.emplace(p.edges.empty() ? 0 : p.edges.front().length, at);
        if (longest_.size() > 120) longest_.erase(longest_.begin());
    }
    double sum = 0;
    for (const auto &[length, at] : longest_) sum += length * at;
    return sum;
}

} // namespace roads

int main(int argc, char **argv) {
    tr_init(argc, argv);
    auto map = heap::make<roads::Map>(900);
    double sum = 0;
    while (tr_more()) {
        for (int i = 0; i < 3; i++) {
            uint32_t from = tr_rand() % 900, to = (from + 40 + tr_rand() % 90) % 900;
            double length = map->route(from, to);
            if (length < 1e9) map->cache.add({from, to, length, 0});
            sum += length < 1e9 ? length : 1;
        }
        for (int i = 0; i < 300; i++) {
            const roads::Route *r = map->cache.find(tr_rand() % 30, tr_rand() % 30 + 40);
            sum += r ? r->length : 0;
        }
        sum += map->spanning() + double(map->reach(tr_rand() % 900, 200)) + map->change(40) +
               map->cache.total();
    }
    tr_sink = uint64_t(sum);
}
