// A table of variant cells that is queried: rows in a map, indexes as multimaps and hash maps, a journal in a deque
// that is undone, filters and comparators, groups, the best few, and columns that are made from rows to be summed.

#include "../heap.hpp"

#include <algorithm>
#include <cctype>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

using string = std::basic_string<char, std::char_traits<char>, heap::Alloc<char>>;
template <typename T> using vector = std::vector<T, heap::Alloc<T>>;
template <typename T> using deque = std::deque<T, heap::Alloc<T>>;
template <typename K, typename V, typename C = std::less<K>> using map = std::map<K, V, C, heap::Alloc<std::pair<const K, V>>>;
template <typename K, typename V, typename C = std::less<K>> using multimap = std::multimap<K, V, C, heap::Alloc<std::pair<const K, V>>>;
template <typename K, typename C = std::less<K>> using set = std::set<K, C, heap::Alloc<K>>;

struct string_hash
{
    size_t operator()(const string & s) const noexcept { return std::hash<std::string_view>()({s.data(), s.size()}); }
};
template <typename V> using dictionary = std::unordered_map<string, V, string_hash, std::equal_to<string>, heap::Alloc<std::pair<const string, V>>>;

// ---- cells ----

struct date
{
    short year = 0;
    signed char month = 0, day = 0;
    friend bool operator<(const date & a, const date & b) { return std::tie(a.year, a.month, a.day) < std::tie(b.year, b.month, b.day); }
    friend bool operator==(const date & a, const date & b) { return a.year == b.year && a.month == b.month && a.day == b.day; }
};

using cell = std::variant<std::monostate, long, double, string, date>;
enum class kind : unsigned char { null, integer, real, text, day };

template <typename... F> struct overloaded : F... { using F::operator()...; };
template <typename... F> overloaded(F...) -> overloaded<F...>;

struct cell_less
{
    bool operator()(const cell & a, const cell & b) const
    {
        if (a.index() != b.index()) return a.index() < b.index();
        return a < b;
    }
};

static double number(const cell & c)
{
    return std::visit(overloaded{[](long n) { return double(n); }, [](double d) { return d; }, [](const date & d) { return d.year + d.month / 12.0; },
                                 [](const auto &) { return 0.0; }}, c);
}

static void append_to(string & out, const cell & c)
{
    char digits[40];
    std::visit(overloaded{[&](std::monostate) { out += "NULL"; }, [&](const string & s) { out += s; },
                          [&](long n) { out.append(digits, size_t(snprintf(digits, sizeof digits, "%ld", n))); },
                          [&](double d) { out.append(digits, size_t(snprintf(digits, sizeof digits, "%.2f", d))); },
                          [&](const date & d) { out.append(digits, size_t(snprintf(digits, sizeof digits, "%d-%02d-%02d", d.year, d.month, d.day))); }}, c);
}

static std::optional<cell> parse(std::string_view text, kind k)
{
    if (text.empty()) return cell{};
    switch (k)
    {
        case kind::integer: {
            long n = 0;
            for (char c : text)
            {
                if (!std::isdigit(static_cast<unsigned char>(c))) return std::nullopt;
                n = n * 10 + (c - '0');
            }
            return cell{n};
        }
        case kind::real: {
            double whole = 0, scale = 0;
            for (char c : text)
                if (c == '.') scale = 1;
                else whole = whole * 10 + (c - '0'), scale *= 10;
            return cell{scale > 0 ? whole / scale : whole};
        }
        case kind::day: {
            date d;
            d.year = short((text[0] - '0') * 1000 + (text[1] - '0') * 100 + (text[2] - '0') * 10 + (text[3] - '0'));
            d.month = static_cast<signed char>((text[5] - '0') * 10 + (text[6] - '0'));
            d.day = static_cast<signed char>((text[8] - '0') * 10 + (text[9] - '0'));
            return cell{d};
        }
        default: return cell{string(text.data(), text.size())};
    }
}

// ---- rows and indexes ----

struct row
{
    vector<cell> cells;
    unsigned long id = 0;
    unsigned version = 0;
    bool pinned = false;
    const cell & operator[](size_t i) const { return cells[i]; }
};

struct column_info
{
    string name;
    kind type;
    bool indexed = false;
    size_t nulls = 0;
    double lowest = 0, highest = 0;
};

using ordered_index = multimap<cell, unsigned long, cell_less>;
using hash_index = dictionary<vector<unsigned long>>;

struct change
{
    enum what { inserted, updated, erased } op;
    unsigned long id;
    size_t column = 0;
    cell before;
    std::optional<row> whole;
};

class table
{
public:
    explicit table(const char * name) : name_(name) {}
    size_t add_column(const char * name, kind k, bool indexed)
    {
        columns_.push_back({string(name), k, indexed});
        by_name_[columns_.back().name] = columns_.size() - 1;
        return columns_.size() - 1;
    }
    size_t column(const char * name) const { return by_name_.at(string(name)); }
    size_t size() const { return rows_.size(); }
    const map<unsigned long, row> & rows() const { return rows_; }
    const row * find(unsigned long id) const
    {
        auto it = rows_.find(id);
        return it == rows_.end() ? nullptr : &it->second;
    }

    NOINLINE bool insert_line(std::string_view line)
    {
        row r;
        r.cells.reserve(columns_.size());
        for (column_info & c : columns_)
        {
            const size_t end = std::min(line.find(';'), line.size());
            std::optional<cell> parsed = parse(line.substr(0, end), c.type);
            if (!parsed) return ++rejected_, false;
            if (parsed->index() == 0) ++c.nulls;
            else c.lowest = std::min(c.lowest, number(*parsed)), c.highest = std::max(c.highest, number(*parsed));
            r.cells.push_back(std::move(*parsed));
            line.remove_prefix(std::min(end + 1, line.size()));
        }
        r.id = next_id_++;
        journal_.push_back({change::inserted, r.id, 0, {}, {}});
        put(std::move(r));
        return true;
    }
    NOINLINE bool update(unsigned long id, size_t col, cell value)
    {
        auto it = rows_.find(id);
        if (it == rows_.end() || it->second.pinned) return false;
        unindex(it->second, col);
        journal_.push_back({change::updated, id, col, std::move(it->second.cells[col]), {}});
        it->second.cells[col] = std::move(value);
        ++it->second.version;
        index(it->second, col);
        return true;
    }
    NOINLINE bool erase(unsigned long id)
    {
        auto it = rows_.find(id);
        if (it == rows_.end()) return false;
        for (size_t c = 0; c < columns_.size(); ++c) unindex(it->second, c);
        journal_.push_back({change::erased, id, 0, {}, std::move(it->second)});
        rows_.erase(it);
        return true;
    }
    NOINLINE void undo()
    {
        if (journal_.empty()) return;
        change c = std::move(journal_.back());
        journal_.pop_back();
        auto it = rows_.find(c.id);
        switch (c.op)
        {
            case change::inserted:
                for (size_t i = 0; i < columns_.size(); ++i) unindex(it->second, i);
                rows_.erase(it);
                break;
            case change::updated:
                unindex(it->second, c.column);
                it->second.cells[c.column] = std::move(c.before);
                index(it->second, c.column);
                break;
            case change::erased: put(std::move(*c.whole)); break;
        }
    }
    void trim_journal(size_t keep)
    {
        while (journal_.size() > keep) journal_.pop_front();
    }
    const ordered_index & ordered(size_t col) const { return ordered_.at(col); }
    const vector<unsigned long> * equal(size_t col, const string & key) const
    {
        auto index = hashed_.find(col);
        if (index == hashed_.end()) return nullptr;
        auto it = index->second.find(key);
        return it == index->second.end() ? nullptr : &it->second;
    }

private:
    void put(row && r)
    {
        const unsigned long id = r.id;
        auto it = rows_.insert_or_assign(id, std::move(r)).first;
        for (size_t c = 0; c < columns_.size(); ++c) index(it->second, c);
    }
    void index(const row & r, size_t c)
    {
        if (!columns_[c].indexed) return;
        if (columns_[c].type != kind::text) ordered_[c].emplace(r[c], r.id);
        else if (auto * s = std::get_if<string>(&r[c])) hashed_[c][*s].push_back(r.id);
    }
    NOINLINE void unindex(const row & r, size_t c)
    {
        if (!columns_[c].indexed) return;
        if (columns_[c].type != kind::text)
        {
            auto [from, to] = ordered_[c].equal_range(r[c]);
            for (auto it = from; it != to; ++it)
                if (it->second == r.id)
                {
                    ordered_[c].erase(it);
                    return;
                }
        }
        else if (auto * s = std::get_if<string>(&r[c]))
        {
            vector<unsigned long> & ids = hashed_[c][*s];
            auto it = std::find(ids.begin(), ids.end(), r.id);
            if (it != ids.end())
            {
                *it = ids.back();
                ids.pop_back();
            }
        }
    }

    string name_;
    vector<column_info> columns_;
    map<string, size_t> by_name_;
    map<unsigned long, row> rows_;
    map<size_t, ordered_index> ordered_;
    map<size_t, hash_index> hashed_;
    deque<change> journal_;
    unsigned long next_id_ = 1, rejected_ = 0;
};

// ---- queries ----

using rows_view = vector<const row *>;

struct order_by
{
    size_t column;
    bool descending;
};

class row_order
{
public:
    explicit row_order(const vector<order_by> & keys) : keys_(&keys) {}
    bool operator()(const row * a, const row * b) const
    {
        for (const order_by & k : *keys_)
        {
            const cell & x = (*a)[k.column];
            const cell & y = (*b)[k.column];
            if (cell_less()(x, y)) return !k.descending;
            if (cell_less()(y, x)) return k.descending;
        }
        return a->id < b->id;
    }

private:
    const vector<order_by> * keys_;
};

class query
{
public:
    explicit query(const table & t) : table_(&t) { found_.reserve(512); }
    template <typename P> NOINLINE query & where(P && keep)
    {
        if (!started_)
        {
            started_ = true;
            for (const auto & [id, r] : table_->rows())
                if (keep(r)) found_.push_back(&r);
        }
        else
            found_.erase(std::remove_if(found_.begin(), found_.end(), [&](const row * r) { return !keep(*r); }), found_.end());
        return *this;
    }
    NOINLINE query & between(size_t col, const cell & low, const cell & high)
    {
        started_ = true;
        const ordered_index & index = table_->ordered(col);
        for (auto it = index.lower_bound(low), end = index.upper_bound(high); it != end; ++it)
            if (const row * r = table_->find(it->second)) found_.push_back(r);
        return *this;
    }
    NOINLINE query & equal(size_t col, const string & key)
    {
        started_ = true;
        if (auto * ids = table_->equal(col, key))
            for (unsigned long id : *ids) found_.push_back(table_->find(id));
        return *this;
    }
    query & order(const vector<order_by> & keys)
    {
        std::sort(found_.begin(), found_.end(), row_order(keys));
        return *this;
    }
    NOINLINE query & top(const vector<order_by> & keys, size_t k)
    {
        rows_view room;
        room.reserve(64);
        std::priority_queue<const row *, rows_view, row_order> heap{row_order(keys), std::move(room)};
        for (const row * r : found_)
        {
            heap.push(r);
            if (heap.size() > k) heap.pop();
        }
        found_.clear();
        for (; !heap.empty(); heap.pop()) found_.push_back(heap.top());
        return *this;
    }
    const rows_view & rows() const { return found_; }

private:
    const table * table_;
    rows_view found_;
    bool started_ = false;
};

struct accumulator
{
    size_t count = 0;
    double sum = 0, least = 1e300, most = -1e300;
    set<string> distinct;
};

using group_key = std::pair<string, short>;

NOINLINE static void group(const rows_view & rows, size_t text, size_t day, size_t value, size_t other, map<group_key, accumulator> & out)
{
    for (const row * r : rows)
    {
        auto * name = std::get_if<string>(&(*r)[text]);
        auto * when = std::get_if<date>(&(*r)[day]);
        if (!name || !when) continue;
        accumulator & a = out[{*name, when->year}];
        const double v = number((*r)[value]);
        ++a.count;
        a.sum += v;
        a.least = std::min(a.least, v);
        a.most = std::max(a.most, v);
        if (auto * s = std::get_if<string>(&(*r)[other])) a.distinct.insert(*s);
    }
}

// ---- columns, made from rows ----

class column_base
{
public:
    virtual ~column_base() = default;
    virtual void fill(const rows_view & rows) = 0;
    virtual double total(const vector<unsigned char> & mask) const = 0;
    virtual void mark_above(vector<unsigned char> & mask) const = 0;
};

template <typename T> class typed_column final : public column_base
{
public:
    explicit typed_column(size_t source) : source_(source) {}
    NOINLINE void fill(const rows_view & rows) override
    {
        values_.clear();
        for (const row * r : rows)
        {
            auto * v = std::get_if<T>(&(*r)[source_]);
            values_.push_back(v ? *v : T{});
        }
        mean_ = values_.empty() ? T{} : std::accumulate(values_.begin(), values_.end(), T{}) / T(values_.size());
    }
    NOINLINE double total(const vector<unsigned char> & mask) const override
    {
        T sum{};
        for (size_t i = 0; i < values_.size(); ++i)
            if (mask[i]) sum += values_[i];
        return double(sum);
    }
    void mark_above(vector<unsigned char> & mask) const override
    {
        for (size_t i = 0; i < values_.size(); ++i) mask[i] &= values_[i] >= mean_;
    }

private:
    size_t source_;
    vector<T> values_;
    T mean_{};
};

class text_column final : public column_base
{
public:
    explicit text_column(size_t source) : source_(source) {}
    NOINLINE void fill(const rows_view & rows) override
    {
        codes_.clear();
        for (const row * r : rows)
        {
            auto * s = std::get_if<string>(&(*r)[source_]);
            if (!s)
            {
                codes_.push_back(0);
                continue;
            }
            auto [it, added] = numbers_.try_emplace(*s, unsigned(words_.size()));
            if (added) words_.push_back(&it->first);
            codes_.push_back(it->second);
        }
        counts_.assign(words_.size() + 1, 0);
        for (unsigned code : codes_) ++counts_[code];
    }
    double total(const vector<unsigned char> & mask) const override
    {
        size_t letters = 0;
        for (size_t i = 0; i < codes_.size(); ++i)
            if (mask[i] && codes_[i] < words_.size()) letters += words_[codes_[i]]->size();
        return double(letters);
    }
    void mark_above(vector<unsigned char> & mask) const override
    {
        for (size_t i = 0; i < codes_.size(); ++i) mask[i] &= counts_[codes_[i]] > 1;
    }

private:
    size_t source_;
    dictionary<unsigned> numbers_;
    vector<const string *> words_;
    vector<unsigned> codes_, counts_;
};

class column_set
{
public:
    template <typename C> void add(size_t source)
    {
        heap::Of<C> scope;
        columns_.push_back(std::make_unique<C>(source));
    }
    NOINLINE double run(const rows_view & rows)
    {
        mask_.assign(rows.size(), 1);
        for (auto & c : columns_) c->fill(rows);
        for (auto & c : columns_) c->mark_above(mask_);
        double sum = 0;
        for (auto & c : columns_) sum += c->total(mask_);
        return sum;
    }

private:
    vector<std::unique_ptr<column_base>> columns_;
    vector<unsigned char> mask_;
};

// ---- a shop ----

struct session
{
    table orders{"orders"}, goods{"goods"};
    column_set columns;
    map<group_key, accumulator> groups;
    string report;
    vector<order_by> by_price, by_shop;
    unsigned long turns = 0, found = 0, joined = 0;
    double sum = 0;

    session()
    {
        orders.add_column("shop", kind::text, false);
        orders.add_column("article", kind::text, true);
        orders.add_column("day", kind::day, true);
        orders.add_column("pieces", kind::integer, false);
        orders.add_column("price", kind::real, true);
        goods.add_column("article", kind::text, true);
        goods.add_column("weight", kind::integer, false);
        columns.add<typed_column<long>>(3);
        columns.add<typed_column<double>>(4);
        columns.add<text_column>(1);
        by_price = {{4, true}, {1, false}};
        by_shop = {{0, false}, {2, true}};
        for (int i = 0; i < 40; ++i)
        {
            char line[64];
            const int n = snprintf(line, sizeof line, "%s;%d", article(unsigned(i)).c_str(), 5 + i * 7 % 31);
            goods.insert_line({line, size_t(n)});
        }
    }
    static string article(unsigned i)
    {
        static const char * const kinds[] = {"kettle", "lamp with a long neck", "chair", "writing table, oak", "rug", "clock"};
        string s(kinds[i % 6]);
        s += ' ';
        s += char('A' + i % 40 / 6);
        return s;
    }
    NOINLINE void order_line(string & out)
    {
        static const char * const shops[] = {"north", "south", "harbour", "old town"};
        const unsigned long r = tr_rand();
        char rest[80];
        const int n = snprintf(rest, sizeof rest, ";%lu-%02lu-%02lu;%s;%lu.%02lu", 2018 + (r >> 8) % 6, 1 + (r >> 16) % 12, 1 + (r >> 24) % 28,
                               (r >> 58) ? std::to_string(1 + (r >> 32) % 9).c_str() : "", 3 + (r >> 40) % 90, (r >> 48) % 100);
        out.assign(shops[r & 3]);
        out += ';';
        out += article(unsigned(r >> 50) % 40);
        out.append(rest, size_t(n));
    }
    NOINLINE void write()
    {
        string line;
        for (int i = 0; i < 12; ++i)
        {
            order_line(line);
            orders.insert_line({line.data(), line.size()});
        }
        while (orders.size() > 400) orders.erase(orders.rows().begin()->first);
        auto some = std::next(orders.rows().begin(), long(tr_rand() % orders.size()))->first;
        orders.update(some, 4, cell{double(tr_rand() % 9000) / 100});
        orders.update(some, 3, cell{long(tr_rand() % 9)});
        for (unsigned n = tr_rand() % 6; n; --n) orders.undo();
        orders.trim_journal(100);
    }
    NOINLINE void join(const rows_view & rows)
    {
        for (const row * r : rows)
            if (auto * name = std::get_if<string>(&(*r)[1]))
                if (auto * ids = goods.equal(0, *name))
                    for (unsigned long id : *ids)
                    {
                        sum += number((*goods.find(id))[1]) * number((*r)[3]);
                        ++joined;
                    }
    }
    NOINLINE void print(const rows_view & rows)
    {
        report.clear();
        for (const row * r : rows)
        {
            for (const cell & c : r->cells)
            {
                append_to(report, c);
                report += '|';
            }
            report += '\n';
        }
        for (char & c : report) c = char(std::toupper(static_cast<unsigned char>(c)));
    }
    void turn()
    {
        write();
        const double limit = double(tr_rand() % 60);
        query a(orders), b(orders), c(orders);
        a.where([limit](const row & r) { return number(r[4]) > limit; }).where([](const row & r) { return r[3].index() != 0; }).order(by_shop);
        b.between(2, date{2019, 3, 1}, date{2021, 6, 30}).top(by_price, 12);
        c.equal(1, article(unsigned(tr_rand() % 40)));
        found += a.rows().size() + c.rows().size();
        sum += columns.run(a.rows());
        join(a.rows());
        print(b.rows());
        if (turns % 8 == 0) groups.clear();
        group(a.rows(), 0, 2, 4, 1, groups);
        for (const auto & [key, acc] : groups) sum += acc.sum / double(acc.count) + double(acc.distinct.size()) + key.second;
        ++turns;
    }
};

int main(int argc, char ** argv)
{
    tr_init(argc, argv);
    auto s = heap::make<session>();
    tr_check("column_info", sizeof(column_info), "nulls", offsetof(column_info, nulls));
    tr_check("row", sizeof(row), "version", offsetof(row, version));
    while (tr_more()) s->turn();
    if (getenv("VERBOSE"))
        printf("%lu turns, %zu rows, %lu found, %lu joined, %zu groups, sum %g\n%s", s->turns, s->orders.size(), s->found, s->joined, s->groups.size(), s->sum,
               s->report.c_str());
    tr_sink = s->turns;
    return 0;
}
