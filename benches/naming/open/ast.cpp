// A compiler's middle: a tree of classes, visitors, a symbol table of scopes, variants, several
// bases, casts.
#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace lang {

struct Position {
    uint32_t line;
    uint16_t column, length;
};

class Number;
class Name;
class Binary;
class Call;
class Let;

class Visitor {
public:
    virtual ~Visitor() = default;
    virtual double visit(Number &) = 0;
    virtual double visit(Name &) = 0;
    virtual double visit(Binary &) = 0;
    virtual double visit(Call &) = 0;
    virtual double visit(Let &) = 0;
    uint64_t visited = 0;
};

class Expression {
public:
    virtual ~Expression() = default;
    virtual double accept(Visitor &v) = 0;
    Position position{};
    uint32_t type = 0;
    float cost = 0;
};
using Owned = std::unique_ptr<Expression>;

struct Annotated {
    virtual ~Annotated() = default;
    virtual unsigned notes() const { return used; }
    std::array<uint32_t, 5> marks{};
    unsigned used = 0;
    void mark(uint32_t m) { marks[used++ % 5] = m; }
};

template <class Self> class Visitable : public Expression {
public:
    double accept(Visitor &v) override { return v.visit(static_cast<Self &>(*this)); }
};

class Number final : public Visitable<Number> {
public:
    double value = 1;
};

class Name final : public Visitable<Name> {
public:
    uint32_t symbol = 0, depth = 0;
};

class Binary final : public Visitable<Binary>, public Annotated {
public:
    char operation = '+';
    Owned left, right;
};

class Call final : public Visitable<Call> {
public:
    uint32_t function = 0;
    std::vector<Owned, heap::Alloc<Owned>> arguments;
};

class Let final : public Visitable<Let>, public Annotated {
public:
    uint32_t symbol = 0;
    Owned value, body;
    unsigned notes() const override { return used + 100; }
};

struct Constant {
    double value;
};
struct Slot {
    uint32_t index;
    int32_t offset;
};
struct Unknown {
    uint64_t asked;
};
using Binding = std::variant<Unknown, Constant, Slot>;

struct Symbol {
    std::string name;
    Binding binding;
    uint32_t uses = 0;
};

struct Function {
    double (*apply)(const double *, size_t);
    uint64_t calls = 0;
    const char *name;
};

class Scopes {
public:
    explicit Scopes(size_t count) : values_(count) {}
    void enter(uint32_t symbol, double value) {
        trail_.push_back({symbol, values_[symbol]});
        values_[symbol] = value;
        deepest_ = std::max(deepest_, trail_.size());
    }
    void leave() {
        values_[trail_.back().symbol] = trail_.back().value;
        trail_.pop_back();
    }
    double operator[](uint32_t symbol) const { return values_[symbol]; }

private:
    struct Saved {
        uint32_t symbol;
        double value;
    };
    std::vector<double, heap::Alloc<double>> values_;
    std::vector<Saved, heap::Alloc<Saved>> trail_;
    size_t deepest_ = 0;
};

class Evaluator final : public Visitor {
public:
    Evaluator(std::vector<Function, heap::Alloc<Function>> &functions, size_t symbols)
        : functions_(functions), scopes_(symbols) {}
    double visit(Number &n) override {
        visited++;
        return n.value;
    }
    double visit(Name &n) override {
        visited++;
        return scopes_[n.symbol];
    }
    double visit(Binary &b) override {
        visited++;
        double x = b.left->accept(*this), y = b.right->accept(*this);
        operations_[b.operation & 15]++;
        switch (b.operation) {
        case '+': return x + y;
        case '-': return x - y;
        case '*': return 0.01 * x * y;
        default: return x > y ? x : y;
        }
    }
    double visit(Call &c) override {
        double values[4];
        size_t count = 0;
        for (const Owned &a : c.arguments) values[count++ & 3] = a->accept(*this);
        Function &f = functions_[c.function];
        f.calls++;
        return f.apply(values, count);
    }
    double visit(Let &l) override {
        scopes_.enter(l.symbol, l.value->accept(*this));
        double result = l.body->accept(*this);
        scopes_.leave();
        return result;
    }

private:
    std::vector<Function, heap::Alloc<Function>> &functions_;
    Scopes scopes_;
    uint64_t operations_[16] = {};
};

class Coster final : public Visitor {
public:
    double visit(Number &n) override { return n.cost = 1; }
    double visit(Name &n) override { return n.cost = 2.0f + n.depth; }
    double visit(Binary &b) override {
        b.mark(b.position.line);
        return b.cost = float(b.left->accept(*this) + b.right->accept(*this)) + b.notes() % 3;
    }
    double visit(Call &c) override {
        c.cost = 10;
        for (auto &a : c.arguments) c.cost += float(a->accept(*this));
        return c.cost;
    }
    double visit(Let &l) override {
        l.mark(l.symbol);
        return l.cost = float(l.value->accept(*this) + l.body->accept(*this));
    }
};

struct Builder {
    uint32_t symbols, functions, line = 1;
    Owned build(int depth) {
        Owned made = depth ? inner(depth) : leaf();
        made->position = {line++, uint16_t(depth * 4), 8};
        return made;
    }
    Owned leaf() {
        if (tr_rand() & 1) return heap::make<Number>();
        auto name = heap::make<Name>();
        name->symbol = tr_rand() % symbols;
        return name;
    }
    Owned inner(int depth) {
        switch (tr_rand() % 6) {
        case 0: {
            auto call = heap::make<Call>();
            call->function = tr_rand() % functions;
            for (int i = 0; i < 3; i++) call->arguments.push_back(build(depth - 1));
            return call;
        }
        case 1: {
            auto let = heap::make<Let>();
            let->symbol = tr_rand() % symbols;
            let->value = build(depth - 1);
            let->body = build(depth - 1);
            return let;
        }
        default: {
            auto binary = heap::make<Binary>();
            binary->operation = "+-*>"[tr_rand() % 4];
            binary->left = build(depth - 1);
            binary->right = build(depth - 1);
            return binary;
        }
        }
    }
};

template <class T>
using Ordered =
    std::map<uint32_t, T, std::less<uint32_t>, heap::Alloc<std::pair<const uint32_t, T>>>;
using Symbols = std::vector<Symbol, heap::Alloc<Symbol>>;

NOINLINE double resolve(Symbols &symbols, uint32_t round) {
    double sum = 0;
    for (Symbol &s : symbols) {
        s.uses++;
        if (auto *constant = std::get_if<Constant>(&s.binding)) sum += constant->value;
        else if (auto *slot = std::get_if<Slot>(&s.binding)) sum += slot->index + slot->offset;
        else std::get<Unknown>(s.binding).asked++;
        if ((s.uses + round) % 5 == 0) s.binding = Slot{round, -8};
        if ((s.uses + round) % 7 == 0) s.binding = Constant{double(s.name.size())};
    }
    return sum;
}

NOINLINE unsigned fold(const std::vector<Owned, heap::Alloc<Owned>> &programs) {
    unsigned found = 0;
    for (const Owned &p : programs) {
        if (auto *noted = dynamic_cast<Annotated *>(p.get())) found += noted->notes();
        found += p->type + p->position.column;
    }
    return found;
}

NOINLINE double count_types(Ordered<double> &costs,
                            const std::vector<Owned, heap::Alloc<Owned>> &programs) {
    for (const Owned &p : programs) costs[p->position.line % 200] += p->cost;
    double sum = 0;
    for (auto it = costs.lower_bound(50); it != costs.end(); ++it) sum += it->second;
    return sum;
}

double largest(const double *v, size_t n) { return *std::max_element(v, v + n); }
double mean(const double *v, size_t n) { return (v[0] + v[n - 1]) / 2; }
double first(const double *v, size_t) { return v[0]; }

} // namespace lang

int main(int argc, char **argv) {
    using namespace lang;
    tr_init(argc, argv);
    std::vector<Function, heap::Alloc<Function>> functions{
        {largest, 0, "largest"}, {mean, 0, "mean"}, {first, 0, "first"}};
    std::vector<Owned, heap::Alloc<Owned>> programs;
    Symbols symbols(200);
    for (size_t i = 0; i < symbols.size(); i++) symbols[i].name = "symbol" + std::to_string(i * i);
    Builder builder{200, 3};
    for (int i = 0; i < 60; i++) programs.push_back(builder.build(5));
    auto evaluator = heap::make<Evaluator>(functions, 200);
    auto coster = heap::make<Coster>();
    Ordered<double> costs;
    double sum = 0;
    for (uint32_t round = 0; tr_more(); round++) {
        for (Owned &p : programs) sum += p->accept(*evaluator);
        if (round % 2 == 0)
            for (Owned &p : programs) sum += p->accept(*coster);
        for (int i = 0; i < 3; i++) sum += resolve(symbols, round) + fold(programs);
        sum += count_types(costs, programs);
    }
    tr_sink = uint64_t(sum);
}
