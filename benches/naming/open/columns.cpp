// A query engine over columns: typed vectors with validity masks, expressions that are interpreted a chunk
// at a time, a volcano of operators (scan, filter, project, hash join, group, sort, limit), a catalogue.

#include "../heap.hpp"

#include <algorithm>
#include <bitset>
#include <cassert>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace columnar {

using idx_t = uint64_t;
using hash_t = uint64_t;
using sel_t = uint32_t;

constexpr idx_t kChunk = 128;

template <class T>
using vector = std::vector<T, heap::Alloc<T>>;
template <class T>
using unique_ptr = std::unique_ptr<T>;
using label_t = std::basic_string<char, std::char_traits<char>, heap::Alloc<char>>;

enum class TypeId : uint8_t { kBool, kInt32, kInt64, kDouble, kText };
enum class Compare : uint8_t { kEqual, kLess, kGreater, kNotEqual };
enum class Arithmetic : uint8_t { kAdd, kSubtract, kMultiply, kDivide };
enum class Aggregate : uint8_t { kCount, kSum, kMin, kMax, kAverage };

// Sixteen bytes: short text lies inside, longer text is somewhere else.
struct text_t {
  uint32_t length;
  union {
    char inlined[12];
    struct {
      char prefix[4];
      const char *rest;
    } __attribute__((packed)) pointer;
  };
  const char *data() const { return length <= 12 ? inlined : pointer.rest; }
  std::string_view view() const { return {data(), length}; }
};

struct Mask {
  std::bitset<kChunk> invalid;
  bool any = false;
  bool valid(idx_t i) const { return !any || !invalid[i]; }
  void set_invalid(idx_t i) {
    invalid[i] = true;
    any = true;
  }
};

struct SelectionVector {
  sel_t rows[kChunk];
  idx_t count = 0;
};

// ---- vectors ----

struct Vector {
  TypeId type;
  bool constant = false;
  Mask mask;
  union {
    bool *bools;
    int32_t *ints;
    int64_t *longs;
    double *doubles;
    text_t *texts;
  };

  explicit Vector(TypeId t) : type(t) {
    switch (t) {
      case TypeId::kBool: bools = heap::Alloc<bool>().allocate(kChunk); break;
      case TypeId::kInt32: ints = heap::Alloc<int32_t>().allocate(kChunk); break;
      case TypeId::kInt64: longs = heap::Alloc<int64_t>().allocate(kChunk); break;
      case TypeId::kDouble: doubles = heap::Alloc<double>().allocate(kChunk); break;
      case TypeId::kText: texts = heap::Alloc<text_t>().allocate(kChunk); break;
    }
  }
  Vector(Vector &&other) noexcept : type(other.type), constant(other.constant), mask(other.mask), longs(other.longs) { other.longs = nullptr; }
  Vector &operator=(Vector &&) = delete;
  ~Vector() { heap_give_back(longs); }

  template <class T>
  T *data() {
    return reinterpret_cast<T *>(longs);
  }
  template <class T>
  const T *data() const {
    return reinterpret_cast<const T *>(longs);
  }
  void reset() {
    mask.any = false;
    mask.invalid.reset();
  }
};

struct DataChunk {
  vector<Vector> columns;
  idx_t count = 0;

  void initialize(const vector<TypeId> &types) {
    columns.reserve(types.size());
    for (TypeId t : types) columns.emplace_back(t);
  }
  void reset() {
    count = 0;
    for (Vector &v : columns) v.reset();
  }
};

template <class F>
decltype(auto) dispatch(TypeId type, F &&f) {
  switch (type) {
    case TypeId::kInt32: return f(int32_t{});
    case TypeId::kInt64: return f(int64_t{});
    case TypeId::kDouble: return f(double{});
    default: return f(bool{});
  }
}

static NOINLINE void copy_selected(const Vector &from, Vector &to, const SelectionVector &sel, idx_t offset) {
  if (from.type == TypeId::kText) {
    for (idx_t i = 0; i < sel.count; i++) to.texts[offset + i] = from.texts[sel.rows[i]];
  } else {
    dispatch(from.type, [&](auto zero) {
      using T = decltype(zero);
      const T *source = from.data<T>();
      T *target = to.data<T>();
      for (idx_t i = 0; i < sel.count; i++) target[offset + i] = source[sel.rows[i]];
    });
  }
  if (from.mask.any)
    for (idx_t i = 0; i < sel.count; i++)
      if (!from.mask.valid(sel.rows[i])) to.mask.set_invalid(offset + i);
}

// ---- expressions ----

struct Statistics {
  uint64_t evaluated = 0, rows = 0;
};

class Expression {
 public:
  explicit Expression(TypeId type) : type_(type), result_(type) {}
  virtual ~Expression() = default;
  const Vector &evaluate(const DataChunk &input) {
    statistics_.evaluated++;
    statistics_.rows += input.count;
    return execute(input);
  }
  TypeId type() const { return type_; }

 protected:
  virtual const Vector &execute(const DataChunk &input) = 0;
  TypeId type_;
  Vector result_;
  Statistics statistics_;
};
using ExpressionPtr = unique_ptr<Expression>;

class ColumnRef final : public Expression {
 public:
  ColumnRef(TypeId type, idx_t column) : Expression(type), column_(column) {}

 private:
  const Vector &execute(const DataChunk &input) override { return input.columns[column_]; }
  idx_t column_;
};

template <class T>
class Constant final : public Expression {
 public:
  Constant(TypeId type, T value) : Expression(type), value_(value) {
    result_.constant = true;
    for (idx_t i = 0; i < kChunk; i++) result_.data<T>()[i] = value;
  }

 private:
  const Vector &execute(const DataChunk &) override { return result_; }
  T value_;
};

class BinaryArithmetic final : public Expression {
 public:
  BinaryArithmetic(Arithmetic op, ExpressionPtr l, ExpressionPtr r) : Expression(l->type()), op_(op), left_(std::move(l)), right_(std::move(r)) {}

 private:
  const Vector &execute(const DataChunk &input) override {
    const Vector &l = left_->evaluate(input), &r = right_->evaluate(input);
    result_.reset();
    dispatch(type_, [&](auto zero) { loop<decltype(zero)>(l, r, input.count); });
    return result_;
  }
  template <class T>
  NOINLINE void loop(const Vector &l, const Vector &r, idx_t count) {
    const T *a = l.data<T>(), *b = r.data<T>();
    T *out = result_.data<T>();
    for (idx_t i = 0; i < count; i++) switch (op_) {
        case Arithmetic::kAdd: out[i] = a[i] + b[i]; break;
        case Arithmetic::kSubtract: out[i] = a[i] - b[i]; break;
        case Arithmetic::kMultiply: out[i] = a[i] * b[i]; break;
        case Arithmetic::kDivide:
          if (b[i] == T{}) result_.mask.set_invalid(i);
          else out[i] = a[i] / b[i];
      }
    if (l.mask.any) {
      result_.mask.invalid |= l.mask.invalid;
      result_.mask.any = true;
    }
  }
  Arithmetic op_;
  ExpressionPtr left_, right_;
};

class Comparison final : public Expression {
 public:
  Comparison(Compare op, ExpressionPtr l, ExpressionPtr r) : Expression(TypeId::kBool), op_(op), left_(std::move(l)), right_(std::move(r)) {}

 private:
  const Vector &execute(const DataChunk &input) override {
    const Vector &l = left_->evaluate(input), &r = right_->evaluate(input);
    if (l.type == TypeId::kText) {
      for (idx_t i = 0; i < input.count; i++) result_.bools[i] = decide(l.texts[i].view(), r.texts[i].view());
    } else {
      dispatch(l.type, [&](auto zero) {
        using T = decltype(zero);
        const T *a = l.data<T>(), *b = r.data<T>();
        for (idx_t i = 0; i < input.count; i++) result_.bools[i] = decide(a[i], b[i]) && l.mask.valid(i);
      });
    }
    return result_;
  }
  template <class T>
  bool decide(const T &a, const T &b) const {
    switch (op_) {
      case Compare::kEqual: return a == b;
      case Compare::kLess: return a < b;
      case Compare::kGreater: return b < a;
      default: return !(a == b);
    }
  }
  Compare op_;
  ExpressionPtr left_, right_;
};

class Conjunction final : public Expression {
 public:
  Conjunction() : Expression(TypeId::kBool) {}
  Conjunction &add(ExpressionPtr child) {
    children_.push_back(std::move(child));
    return *this;
  }

 private:
  const Vector &execute(const DataChunk &input) override {
    for (idx_t i = 0; i < input.count; i++) result_.bools[i] = true;
    for (auto &child : children_) {
      const Vector &v = child->evaluate(input);
      for (idx_t i = 0; i < input.count; i++) result_.bools[i] &= v.bools[i];
    }
    return result_;
  }
  vector<ExpressionPtr> children_;
};

// ---- tables ----

struct ColumnSegment {
  idx_t first, count;
  int64_t minimum, maximum;
  Vector values;
  explicit ColumnSegment(TypeId type) : first(0), count(0), minimum(INT64_MAX), maximum(INT64_MIN), values(type) {}
  ColumnSegment(ColumnSegment &&) = default;
};

struct ColumnData {
  label_t name;
  TypeId type;
  vector<ColumnSegment> segments;
};

struct Table {
  label_t name;
  vector<ColumnData> columns;
  idx_t rows = 0;

  idx_t segments() const { return columns[0].segments.size(); }
  void append(const vector<Vector> &from, idx_t count) {
    for (size_t c = 0; c < columns.size(); c++) {
      ColumnData &column = columns[c];
      column.segments.emplace_back(column.type);
      ColumnSegment &s = column.segments.back();
      s.first = rows;
      s.count = count;
      SelectionVector all;
      for (; all.count < count; all.count++) all.rows[all.count] = sel_t(all.count);
      copy_selected(from[c], s.values, all, 0);
      if (column.type == TypeId::kInt32)
        for (idx_t i = 0; i < count; i++) {
          s.minimum = std::min<int64_t>(s.minimum, s.values.ints[i]);
          s.maximum = std::max<int64_t>(s.maximum, s.values.ints[i]);
        }
    }
    rows += count;
  }
};

// ---- operators ----

class Operator {
 public:
  virtual ~Operator() = default;
  virtual bool next(DataChunk &out) = 0; // false: no more
  virtual void rewind() = 0;
  const vector<TypeId> &types() const { return types_; }

 protected:
  vector<TypeId> types_;
  uint64_t produced_ = 0;
};
using OperatorPtr = unique_ptr<Operator>;

class Scan final : public Operator {
 public:
  Scan(const Table &table, vector<idx_t> projected, int64_t at_least) : table_(table), projected_(std::move(projected)), at_least_(at_least) {
    for (idx_t c : projected_) types_.push_back(table.columns[c].type);
  }
  bool next(DataChunk &out) override {
    for (; segment_ < table_.segments(); segment_++) {
      const ColumnSegment &first = table_.columns[projected_[0]].segments[segment_];
      if (first.maximum >= at_least_) break;
      skipped_++;
    }
    if (segment_ == table_.segments()) return false;
    SelectionVector all;
    const idx_t count = table_.columns[0].segments[segment_].count;
    for (; all.count < count; all.count++) all.rows[all.count] = sel_t(all.count);
    for (size_t i = 0; i < projected_.size(); i++) copy_selected(table_.columns[projected_[i]].segments[segment_].values, out.columns[i], all, 0);
    out.count = count;
    produced_ += count;
    segment_++;
    return true;
  }
  void rewind() override { segment_ = 0; }

 private:
  const Table &table_;
  vector<idx_t> projected_;
  int64_t at_least_;
  idx_t segment_ = 0, skipped_ = 0;
};

class Filter final : public Operator {
 public:
  Filter(OperatorPtr child, ExpressionPtr predicate) : child_(std::move(child)), predicate_(std::move(predicate)) {
    types_ = child_->types();
    input_.initialize(types_);
  }
  bool next(DataChunk &out) override {
    do {
      input_.reset();
      if (!child_->next(input_)) return false;
      const Vector &keep = predicate_->evaluate(input_);
      selection_.count = 0;
      for (idx_t i = 0; i < input_.count; i++)
        if (keep.bools[i]) selection_.rows[selection_.count++] = sel_t(i);
    } while (!selection_.count);
    for (size_t c = 0; c < input_.columns.size(); c++) copy_selected(input_.columns[c], out.columns[c], selection_, 0);
    out.count = selection_.count;
    produced_ += out.count;
    return true;
  }
  void rewind() override { child_->rewind(); }

 private:
  OperatorPtr child_;
  ExpressionPtr predicate_;
  DataChunk input_;
  SelectionVector selection_;
};

class Projection final : public Operator {
 public:
  Projection(OperatorPtr child, vector<ExpressionPtr> expressions) : child_(std::move(child)), expressions_(std::move(expressions)) {
    for (auto &e : expressions_) types_.push_back(e->type());
    input_.initialize(child_->types());
  }
  bool next(DataChunk &out) override {
    input_.reset();
    if (!child_->next(input_)) return false;
    SelectionVector all;
    for (; all.count < input_.count; all.count++) all.rows[all.count] = sel_t(all.count);
    for (size_t i = 0; i < expressions_.size(); i++) copy_selected(expressions_[i]->evaluate(input_), out.columns[i], all, 0);
    out.count = input_.count;
    return true;
  }
  void rewind() override { child_->rewind(); }

 private:
  OperatorPtr child_;
  vector<ExpressionPtr> expressions_;
  DataChunk input_;
};

// Rows of the build side by the hash of their key; the first column of both sides is the key.
class HashJoin final : public Operator {
  struct Entry {
    hash_t hash;
    int32_t key;
    uint32_t next; // number + 1
    uint32_t chunk, row;
  };

 public:
  HashJoin(OperatorPtr probe, OperatorPtr build) : probe_(std::move(probe)), build_(std::move(build)) {
    types_ = probe_->types();
    types_.insert(types_.end(), build_->types().begin() + 1, build_->types().end());
    input_.initialize(probe_->types());
    heads_.resize(1024);
  }
  bool next(DataChunk &out) override {
    if (!built_) build();
    while (true) {
      if (row_ == input_.count) {
        input_.reset();
        row_ = 0;
        if (!probe_->next(input_)) return false;
      }
      match(out);
      if (out.count) return true;
    }
  }
  void rewind() override {
    probe_->rewind();
    input_.count = row_ = 0;
  }

 private:
  static hash_t hash_of(int32_t key) { return (hash_t(uint32_t(key)) * 0x9E3779B97F4A7C15ull) ^ (hash_t(uint32_t(key)) >> 7); }

  NOINLINE void build() {
    for (;;) {
      chunks_.emplace_back();
      DataChunk &chunk = chunks_.back();
      chunk.initialize(build_->types());
      if (!build_->next(chunk)) break;
      for (idx_t i = 0; i < chunk.count; i++) {
        const hash_t h = hash_of(chunk.columns[0].ints[i]);
        uint32_t &head = heads_[h >> 54];
        entries_.push_back({h, chunk.columns[0].ints[i], head, uint32_t(chunks_.size() - 1), uint32_t(i)});
        head = uint32_t(entries_.size());
      }
    }
    built_ = true;
  }

  NOINLINE void match(DataChunk &out) {
    SelectionVector left;
    const Entry *matches[kChunk];
    for (; row_ < input_.count && left.count < kChunk; row_++) {
      const int32_t key = input_.columns[0].ints[row_];
      const hash_t h = hash_of(key);
      for (uint32_t at = heads_[h >> 54]; at; at = entries_[at - 1].next) {
        const Entry &e = entries_[at - 1];
        if (e.hash != h || e.key != key) continue;
        matches[left.count] = &e;
        left.rows[left.count++] = sel_t(row_);
        break;
      }
    }
    const size_t probed = input_.columns.size();
    for (size_t c = 0; c < probed; c++) copy_selected(input_.columns[c], out.columns[c], left, 0);
    for (size_t c = 1; c < build_->types().size(); c++)
      for (idx_t i = 0; i < left.count; i++) {
        const Vector &from = chunks_[matches[i]->chunk].columns[c];
        Vector &to = out.columns[probed + c - 1];
        if (from.type == TypeId::kText) to.texts[i] = from.texts[matches[i]->row];
        else if (from.type == TypeId::kDouble) to.doubles[i] = from.doubles[matches[i]->row];
        else to.ints[i] = from.ints[matches[i]->row];
      }
    out.count = left.count;
    produced_ += out.count;
  }

  OperatorPtr probe_, build_;
  DataChunk input_;
  idx_t row_ = 0;
  bool built_ = false;
  vector<uint32_t> heads_;
  vector<Entry> entries_;
  vector<DataChunk> chunks_;
};

struct AggregateState {
  double sum = 0, minimum = 1e300, maximum = -1e300;
  uint64_t count = 0;
};

struct GroupKey {
  label_t text;
  int32_t number;
  bool operator==(const GroupKey &o) const { return number == o.number && text == o.text; }
};

struct GroupHash {
  size_t operator()(const GroupKey &k) const {
    size_t h = size_t(k.number) * 31;
    for (char c : k.text) h = (h ^ size_t(c)) * 0x100000001b3ull;
    return h;
  }
};

class HashAggregate final : public Operator {
 public:
  struct Spec {
    Aggregate function;
    idx_t column;
  };
  using Groups = std::unordered_map<GroupKey, vector<AggregateState>, GroupHash, std::equal_to<GroupKey>,
                                    heap::Alloc<std::pair<const GroupKey, vector<AggregateState>>>>;

  HashAggregate(OperatorPtr child, idx_t text, idx_t number, vector<Spec> specs)
      : child_(std::move(child)), text_(text), number_(number), specs_(std::move(specs)) {
    types_ = {TypeId::kText, TypeId::kInt32};
    types_.resize(2 + specs_.size(), TypeId::kDouble);
    input_.initialize(child_->types());
  }
  bool next(DataChunk &out) override {
    if (!done_) {
      for (auto &group : groups_)
        for (AggregateState &s : group.second) s = {};
      for (input_.reset(); child_->next(input_); input_.reset()) consume();
      position_ = groups_.begin();
      done_ = true;
    }
    for (; position_ != groups_.end() && out.count < kChunk; ++position_) emit(out);
    return out.count != 0;
  }
  void rewind() override {
    child_->rewind();
    done_ = false;
  }

 private:
  NOINLINE void consume() {
    for (idx_t i = 0; i < input_.count; i++) {
      const text_t &t = input_.columns[text_].texts[i];
      scratch_.text.assign(t.data(), t.length);
      scratch_.number = input_.columns[number_].ints[i] % 4;
      auto found = groups_.find(scratch_);
      if (found == groups_.end()) found = groups_.emplace(scratch_, vector<AggregateState>(specs_.size())).first;
      for (size_t s = 0; s < specs_.size(); s++) {
        const Vector &v = input_.columns[specs_[s].column];
        if (!v.mask.valid(i)) continue;
        AggregateState &state = found->second[s];
        const double value = v.type == TypeId::kDouble ? v.doubles[i] : v.type == TypeId::kInt64 ? double(v.longs[i]) : v.ints[i];
        state.count++;
        state.sum += value;
        state.minimum = std::min(state.minimum, value);
        state.maximum = std::max(state.maximum, value);
      }
    }
  }
  void emit(DataChunk &out) {
    const idx_t at = out.count++;
    text_t &t = out.columns[0].texts[at];
    t.length = uint32_t(position_->first.text.size());
    if (t.length <= 12) memcpy(t.inlined, position_->first.text.data(), t.length);
    else t.pointer.rest = position_->first.text.data();
    out.columns[1].ints[at] = position_->first.number;
    for (size_t s = 0; s < specs_.size(); s++) {
      const AggregateState &state = position_->second[s];
      double &to = out.columns[2 + s].doubles[at];
      switch (specs_[s].function) {
        case Aggregate::kCount: to = double(state.count); break;
        case Aggregate::kSum: to = state.sum; break;
        case Aggregate::kMin: to = state.minimum; break;
        case Aggregate::kMax: to = state.maximum; break;
        case Aggregate::kAverage: to = state.count ? state.sum / double(state.count) : 0; break;
      }
    }
  }

  OperatorPtr child_;
  idx_t text_, number_;
  vector<Spec> specs_;
  DataChunk input_;
  Groups groups_;
  Groups::iterator position_;
  GroupKey scratch_;
  bool done_ = false;
};

struct SortRow {
  double key;
  int32_t number;
  text_t text;
  bool operator<(const SortRow &o) const { return key != o.key ? key > o.key : text.view() < o.text.view(); }
};

// The first rows by the first double; keeps no more than it is asked for.
class TopN final : public Operator {
 public:
  TopN(OperatorPtr child, idx_t text, idx_t number, idx_t key, size_t limit) : child_(std::move(child)), text_(text), number_(number), key_(key), limit_(limit) {
    types_ = {TypeId::kText, TypeId::kInt32, TypeId::kDouble};
    input_.initialize(child_->types());
    heap_.reserve(limit + 1);
  }
  bool next(DataChunk &out) override {
    if (done_) return false;
    heap_.clear();
    for (input_.reset(); child_->next(input_); input_.reset())
      for (idx_t i = 0; i < input_.count; i++) {
        if (heap_.size() == limit_ && input_.columns[key_].doubles[i] < heap_.front().key) continue;
        heap_.push_back({input_.columns[key_].doubles[i], input_.columns[number_].ints[i], input_.columns[text_].texts[i]});
        std::push_heap(heap_.begin(), heap_.end());
        if (heap_.size() > limit_) {
          std::pop_heap(heap_.begin(), heap_.end());
          heap_.pop_back();
        }
      }
    std::sort_heap(heap_.begin(), heap_.end());
    for (const SortRow &row : heap_) {
      out.columns[0].texts[out.count] = row.text;
      out.columns[1].ints[out.count] = row.number;
      out.columns[2].doubles[out.count++] = row.key;
    }
    done_ = true;
    return out.count != 0;
  }
  void rewind() override {
    child_->rewind();
    done_ = false;
  }

 private:
  OperatorPtr child_;
  idx_t text_, number_, key_;
  size_t limit_;
  DataChunk input_;
  vector<SortRow> heap_;
  bool done_ = false;
};

struct Catalog {
  std::map<label_t, unique_ptr<Table>, std::less<label_t>, heap::Alloc<std::pair<const label_t, unique_ptr<Table>>>> tables;
  uint64_t lookups = 0;
  Table &get(const char *name) {
    lookups++;
    return *tables.at(label_t(name));
  }
  Table &create(const char *name, std::initializer_list<std::pair<const char *, TypeId>> columns) {
    auto &made = tables[label_t(name)] = heap::make<Table>();
    made->name = name;
    for (auto &c : columns) made->columns.push_back({label_t(c.first), c.second, {}});
    return *made;
  }
};

}  // namespace columnar

namespace {

using namespace columnar;

Catalog catalog;

text_t make_text(const char *s) {
  text_t t{};
  t.length = uint32_t(strlen(s));
  if (t.length <= 12) memcpy(t.inlined, s, t.length);
  else {
    memcpy(t.pointer.prefix, s, 4);
    t.pointer.rest = s;
  }
  return t;
}

void load() {
  static const char *const cities[] = {"Lisbon", "Reykjavik", "Ouagadougou", "San Salvador de Jujuy", "Bern", "Antananarivo-Renivohitra", "Oslo", "Quito"};
  Table &customers = catalog.create("customers", {{"id", TypeId::kInt32}, {"city", TypeId::kText}, {"discount", TypeId::kDouble}});
  Table &sales = catalog.create("sales", {{"customer", TypeId::kInt32}, {"day", TypeId::kInt32}, {"price", TypeId::kDouble}, {"pieces", TypeId::kInt64}});
  for (int block = 0; block < 3; block++) {
    DataChunk chunk;
    chunk.initialize({TypeId::kInt32, TypeId::kText, TypeId::kDouble});
    for (idx_t i = 0; i < kChunk; i++) {
      chunk.columns[0].ints[i] = int32_t(block * kChunk + i);
      chunk.columns[1].texts[i] = make_text(cities[tr_rand() % 8]);
      chunk.columns[2].doubles[i] = double(tr_rand() % 20) / 100;
    }
    customers.append(chunk.columns, kChunk);
  }
  for (int block = 0; block < 20; block++) {
    DataChunk chunk;
    chunk.initialize({TypeId::kInt32, TypeId::kInt32, TypeId::kDouble, TypeId::kInt64});
    for (idx_t i = 0; i < kChunk; i++) {
      chunk.columns[0].ints[i] = int32_t(tr_rand() % 420);
      chunk.columns[1].ints[i] = int32_t(block * 10 + tr_rand() % 30);
      chunk.columns[2].doubles[i] = double(tr_rand() % 10000) / 100;
      chunk.columns[3].longs[i] = int64_t(tr_rand() % 9);
      if (tr_rand() % 31 == 0) chunk.columns[2].mask.set_invalid(i);
    }
    sales.append(chunk.columns, kChunk);
  }
}

template <class T>
ExpressionPtr constant(TypeId type, T value) {
  return heap::make<Constant<T>>(type, value);
}
ExpressionPtr column(TypeId type, idx_t i) { return heap::make<ColumnRef>(type, i); }

// select city, customer % 4, aggregates from sales join customers where ... group by 1, 2
OperatorPtr grouped(int from_day, double least) {
  auto where = heap::make<Conjunction>();
  where->add(heap::make<Comparison>(Compare::kGreater, column(TypeId::kInt32, 1), constant(TypeId::kInt32, from_day)));
  where->add(heap::make<Comparison>(Compare::kGreater, column(TypeId::kDouble, 2), constant(TypeId::kDouble, least)));
  OperatorPtr sales = heap::make<Scan>(catalog.get("sales"), vector<idx_t>{0, 1, 2, 3}, 0);
  OperatorPtr kept = heap::make<Filter>(std::move(sales), std::move(where));
  OperatorPtr customers = heap::make<Scan>(catalog.get("customers"), vector<idx_t>{0, 1, 2}, 0);
  OperatorPtr joined = heap::make<HashJoin>(std::move(kept), std::move(customers));
  return heap::make<HashAggregate>(std::move(joined), 4, 0, vector<HashAggregate::Spec>{{Aggregate::kSum, 2}, {Aggregate::kAverage, 3}, {Aggregate::kMax, 2}});
}

// select city, day, price * (1 - discount) + pieces ... order by 3 desc limit n
OperatorPtr dearest(const char *without, size_t limit) {
  OperatorPtr joined = heap::make<HashJoin>(heap::make<Scan>(catalog.get("sales"), vector<idx_t>{0, 1, 2, 3}, 100), heap::make<Scan>(catalog.get("customers"), vector<idx_t>{0, 1, 2}, 0));
  OperatorPtr kept = heap::make<Filter>(std::move(joined), heap::make<Comparison>(Compare::kNotEqual, column(TypeId::kText, 4), constant(TypeId::kText, make_text(without))));
  vector<ExpressionPtr> select;
  select.push_back(column(TypeId::kText, 4));
  select.push_back(heap::make<BinaryArithmetic>(Arithmetic::kAdd, column(TypeId::kInt32, 1), constant(TypeId::kInt32, 1)));
  ExpressionPtr rest = heap::make<BinaryArithmetic>(Arithmetic::kSubtract, constant(TypeId::kDouble, 1.0), column(TypeId::kDouble, 5));
  select.push_back(heap::make<BinaryArithmetic>(Arithmetic::kMultiply, column(TypeId::kDouble, 2), std::move(rest)));
  return heap::make<TopN>(heap::make<Projection>(std::move(kept), std::move(select)), 0, 1, 2, limit);
}

}  // namespace

int main(int argc, char **argv) {
  tr_init(argc, argv);
  TR_GLOBALX(catalog);
  load();
  vector<OperatorPtr> plans;
  plans.push_back(grouped(60, 20));
  plans.push_back(dearest("Bern", 20));
  plans.push_back(grouped(120, 5));
  plans.push_back(dearest("San Salvador de Jujuy", 40));
  auto results = heap::make<vector<DataChunk>>(plans.size());
  for (size_t p = 0; p < plans.size(); p++) (*results)[p].initialize(plans[p]->types());
  double sum = 0;
  uint64_t rows = 0;
  while (tr_more())
    for (size_t p = 0; p < plans.size(); p++) {
      DataChunk &chunk = (*results)[p];
      for (chunk.reset(); plans[p]->next(chunk); chunk.reset()) {
        for (idx_t i = 0; i < chunk.count; i++) sum += chunk.columns[2].doubles[i];
        rows += chunk.count;
      }
      plans[p]->rewind();
    }
  if (getenv("VERBOSE")) printf("%lu rows, %f\n", rows, sum);
  tr_sink = rows + uint64_t(sum);
}
