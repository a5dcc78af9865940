// A constraint solver: variables with trailed domains, demons in queues, constraints that propagate, views on
// variables, decisions and restarts, intervals on machines, tours, resources. Everything is undone by a trail.
#include "../heap.hpp"
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cp {

using int64 = long;
using uint64 = unsigned long;
template <class T> using vec = std::vector<T, heap::Alloc<T>>;

constexpr int64 kint64max = std::numeric_limits<int64>::max();

class Solver;
class IntVar;

// ---------- The trail ----------

template <class T> struct addrval {
  T* address_;
  T old_value_;
  void restore() const { *address_ = old_value_; }
};

struct StateMarker {
  int rev_int64_index, rev_int_index, rev_uint64_index, rev_ptr_index;
  int64 stamp, info;
};

struct Trail {
  vec<addrval<int64>> rev_int64s_;
  vec<addrval<int>> rev_ints_;
  vec<addrval<uint64>> rev_uint64s_;
  vec<addrval<void*>> rev_ptrs_;
  vec<StateMarker> markers_;
  int64 saves_ = 0;

  void Push(int64 stamp, int64 info) {
    markers_.push_back({static_cast<int>(rev_int64s_.size()), static_cast<int>(rev_ints_.size()), static_cast<int>(rev_uint64s_.size()), static_cast<int>(rev_ptrs_.size()), stamp, info});
  }
  template <class T> static void Unwind(vec<addrval<T>>* saved, int to) {
    for (int cur = static_cast<int>(saved->size()) - 1; cur >= to; --cur) (*saved)[cur].restore();
    saved->resize(to);
  }
  NOINLINE StateMarker BacktrackTo() {
    const StateMarker m = markers_.back();
    markers_.pop_back();
    Unwind(&rev_int64s_, m.rev_int64_index);
    Unwind(&rev_ints_, m.rev_int_index);
    Unwind(&rev_uint64s_, m.rev_uint64_index);
    Unwind(&rev_ptrs_, m.rev_ptr_index);
    return m;
  }
};

/// A value that is saved before it is first changed at a node of the search.
template <class T> class Rev {
 public:
  explicit Rev(T val = T()) : stamp_(0), value_(val) {}
  const T& Value() const { return value_; }
  inline void SetValue(Solver* s, T val);

 private:
  uint64 stamp_;
  T value_;
};

/// First in, first out; chunks in front are given back by themselves, as all is trailed.
template <class T> struct RevFIFOChunk {
  T data_[6];
  RevFIFOChunk* next_;
};

template <class T> class SimpleRevFIFO {
 public:
  class Iterator {
   public:
    explicit Iterator(const SimpleRevFIFO& l) : chunk_(l.chunks_), pos_(l.pos_.Value()) {}
    bool ok() const { return chunk_ != nullptr; }
    T operator*() const { return chunk_->data_[pos_]; }
    void operator++() {
      if (++pos_ == 6) {
        chunk_ = chunk_->next_;
        pos_ = 0;
      }
    }

   private:
    const RevFIFOChunk<T>* chunk_;
    int pos_;
  };
  inline void Push(Solver* s, T val);

 private:
  RevFIFOChunk<T>* chunks_ = nullptr;
  Rev<int> pos_{0};
};

// ---------- Demons ----------

class Demon {
 public:
  enum Priority { NORMAL, DELAYED };
  virtual ~Demon() {}
  virtual bool Run(Solver* s) = 0;
  virtual Priority priority() const { return NORMAL; }
  uint64 stamp() const { return stamp_; }
  void set_stamp(uint64 stamp) { stamp_ = stamp; }
  int64 runs() const { return runs_; }

 protected:
  friend class Queue;
  uint64 stamp_ = 0;
  int64 runs_ = 0;
};

template <class T> class CallMethod0 : public Demon {
 public:
  CallMethod0(T* ct, bool (T::*method)(), Priority p) : constraint_(ct), method_(method), priority_(p) {}
  bool Run(Solver*) override { return (constraint_->*method_)(); }
  Priority priority() const override { return priority_; }

 private:
  T* const constraint_;
  bool (T::*const method_)();
  const Priority priority_;
};

template <class T, class P> class CallMethod1 : public Demon {
 public:
  CallMethod1(T* ct, bool (T::*method)(P), P param) : constraint_(ct), method_(method), param1_(param) {}
  bool Run(Solver*) override { return (constraint_->*method_)(param1_); }

 private:
  T* const constraint_;
  bool (T::*const method_)(P);
  P param1_;
};

class Queue {
 public:
  void Enqueue(Demon* d) {
    if (d->stamp() >= stamp_) return;
    d->set_stamp(stamp_);
    (d->priority() == Demon::NORMAL ? normal_ : delayed_).push_back(d);
  }
  NOINLINE bool Process(Solver* s) {
    while (normal_head_ < normal_.size() || delayed_head_ < delayed_.size()) {
      Demon* d = normal_head_ < normal_.size() ? normal_[normal_head_++] : delayed_[delayed_head_++];
      d->set_stamp(stamp_ - 1);
      ++d->runs_;
      if (!d->Run(s)) {
        Clear();
        return false;
      }
    }
    Clear();
    return true;
  }
  void Clear() {
    normal_.clear();
    delayed_.clear();
    normal_head_ = delayed_head_ = 0;
    ++stamp_;
  }

 private:
  uint64 stamp_ = 2;
  size_t normal_head_ = 0, delayed_head_ = 0;
  vec<Demon*> normal_, delayed_;
};

// ---------- Expressions and variables ----------

class IntExpr {
 public:
  explicit IntExpr(Solver* s) : solver_(s) {}
  virtual ~IntExpr() {}
  virtual int64 Min() const = 0;
  virtual int64 Max() const = 0;
  virtual bool SetMin(int64 m) = 0;
  virtual bool SetMax(int64 m) = 0;
  virtual bool SetRange(int64 l, int64 u) { return SetMin(l) && SetMax(u); }
  virtual bool RemoveValue(int64 v) = 0;
  virtual bool Contains(int64 v) const = 0;
  virtual void WhenRange(Demon* d) = 0;
  virtual void WhenBound(Demon* d) = 0;
  bool Bound() const { return Min() == Max(); }
  bool SetValue(int64 v) { return SetRange(v, v); }
  Solver* solver() const { return solver_; }

 protected:
  Solver* const solver_;
};

class IntVar : public IntExpr {
 public:
  using IntExpr::IntExpr;
  virtual uint64 Size() const = 0;
  int index() const { return index_; }

 protected:
  friend class Solver;
  int index_ = -1;
};

class DomainIntVar : public IntVar {
 public:
  DomainIntVar(Solver* s, int64 vmin, int64 vmax) : IntVar(s), min_(vmin), max_(vmax), size_(vmax - vmin + 1), omin_(vmin), bits_(vmax - vmin < 4096 ? (vmax - vmin + 64) / 64 : 0, ~0ul), stamps_(bits_.size(), 0) {}
  int64 Min() const override { return min_.Value(); }
  int64 Max() const override { return max_.Value(); }
  uint64 Size() const override { return bits_.empty() ? max_.Value() - min_.Value() + 1 : size_.Value(); }
  bool Contains(int64 v) const override { return v >= min_.Value() && v <= max_.Value() && (bits_.empty() || bits_[(v - omin_) >> 6] >> ((v - omin_) & 63) & 1); }
  bool SetMin(int64 m) override;
  bool SetMax(int64 m) override;
  bool RemoveValue(int64 v) override;
  void WhenRange(Demon* d) override { range_demons_.Push(solver_, d); }
  void WhenBound(Demon* d) override { bound_demons_.Push(solver_, d); }

 private:
  void Changed();
  Rev<int64> min_, max_, size_;
  SimpleRevFIFO<Demon*> range_demons_, bound_demons_;
  const int64 omin_;
  vec<uint64> bits_, stamps_;
};

class BooleanVar : public IntVar {
 public:
  static constexpr int kUnbound = 2;
  explicit BooleanVar(Solver* s) : IntVar(s), value_(kUnbound) {}
  int64 Min() const override { return value_.Value() == 1; }
  int64 Max() const override { return value_.Value() != 0; }
  uint64 Size() const override { return 1 + (value_.Value() == kUnbound); }
  bool Contains(int64 v) const override { return v == 0 ? value_.Value() != 1 : v == 1 && value_.Value() != 0; }
  bool SetMin(int64 m) override { return m <= 0 || (m == 1 && Assign(1)); }
  bool SetMax(int64 m) override { return m >= 1 || (m == 0 && Assign(0)); }
  bool RemoveValue(int64 v) override { return (v != 0 && v != 1) || Assign(1 - static_cast<int>(v)); }
  void WhenRange(Demon* d) override { demons_.Push(solver_, d); }
  void WhenBound(Demon* d) override { demons_.Push(solver_, d); }

 private:
  bool Assign(int v);
  Rev<int> value_;
  SimpleRevFIFO<Demon*> demons_;
};

class PlusCstExpr : public IntExpr {
 public:
  PlusCstExpr(Solver* s, IntExpr* e, int64 v) : IntExpr(s), expr_(e), value_(v) {}
  int64 Min() const override { return expr_->Min() + value_; }
  int64 Max() const override { return expr_->Max() + value_; }
  bool SetMin(int64 m) override { return expr_->SetMin(m - value_); }
  bool SetMax(int64 m) override { return expr_->SetMax(m - value_); }
  bool RemoveValue(int64 v) override { return expr_->RemoveValue(v - value_); }
  bool Contains(int64 v) const override { return expr_->Contains(v - value_); }
  void WhenRange(Demon* d) override { expr_->WhenRange(d); }
  void WhenBound(Demon* d) override { expr_->WhenBound(d); }

 private:
  IntExpr* const expr_;
  const int64 value_;
};

class OppExpr : public IntExpr {
 public:
  OppExpr(Solver* s, IntExpr* e) : IntExpr(s), expr_(e) {}
  int64 Min() const override { return -expr_->Max(); }
  int64 Max() const override { return -expr_->Min(); }
  bool SetMin(int64 m) override { return expr_->SetMax(-m); }
  bool SetMax(int64 m) override { return expr_->SetMin(-m); }
  bool RemoveValue(int64 v) override { return expr_->RemoveValue(-v); }
  bool Contains(int64 v) const override { return expr_->Contains(-v); }
  void WhenRange(Demon* d) override { expr_->WhenRange(d); }
  void WhenBound(Demon* d) override { expr_->WhenBound(d); }

 private:
  IntExpr* const expr_;
};

// ---------- Constraints ----------

class Constraint {
 public:
  explicit Constraint(Solver* s) : solver_(s) {}
  virtual ~Constraint() {}
  virtual void Post() = 0;
  virtual bool InitialPropagate() = 0;

 protected:
  Solver* const solver_;
};

// ---------- The solver ----------

class Decision {
 public:
  Decision(IntVar* v, int64 val, bool split) : var_(v), value_(val), split_(split) {}
  virtual ~Decision() {}
  virtual bool Apply(Solver*) { return split_ ? var_->SetMax(value_) : var_->SetValue(value_); }
  virtual bool Refute(Solver*) { return split_ ? var_->SetMin(value_ + 1) : var_->RemoveValue(value_); }

 protected:
  IntVar* var_;
  int64 value_;
  bool split_;
};

struct VarStats { double weight; int64 failures; int last_choice; };

class Solver {
 public:
  explicit Solver(const char* name) : name_(name) {}
  template <class T, class... A> T* Make(A&&... args) {
    heap::Of<T> scope;
    T* made = new T(this, std::forward<A>(args)...);
    return made;
  }
  template <class T, class... A> T* MakeDemon(A&&... args) {
    heap::Of<T> scope;
    return new T(std::forward<A>(args)...);
  }
  IntVar* MakeIntVar(int64 min, int64 max) { return Register(Make<DomainIntVar>(min, max)); }
  IntVar* MakeBoolVar() { return Register(Make<BooleanVar>()); }
  IntVar* Register(IntVar* v) {
    v->index_ = static_cast<int>(vars_.size());
    vars_.push_back(v);
    stats_.push_back({1.0, 0, -1});
    return v;
  }
  template <class T, class... A> T* Add(A&&... args) {
    T* ct = Make<T>(std::forward<A>(args)...);
    constraints_.push_back(ct);
    return ct;
  }

  uint64 stamp() const { return stamp_; }
  void Save(int64* p) { trail_.rev_int64s_.push_back({p, *p}), ++trail_.saves_; }
  void Save(int* p) { trail_.rev_ints_.push_back({p, *p}), ++trail_.saves_; }
  void Save(uint64* p) { trail_.rev_uint64s_.push_back({p, *p}), ++trail_.saves_; }
  void Save(void** p) { trail_.rev_ptrs_.push_back({p, *p}), ++trail_.saves_; }
  void Enqueue(Demon* d) { queue_.Enqueue(d); }
  void EnqueueAll(const SimpleRevFIFO<Demon*>& demons) {
    for (SimpleRevFIFO<Demon*>::Iterator it(demons); it.ok(); ++it) queue_.Enqueue(*it);
  }
  void PushState() { trail_.Push(stamp_, branches_), ++stamp_; }
  void PopState() { trail_.BacktrackTo(), ++stamp_; }
  bool Propagate() { return queue_.Process(this); }
  bool Start() {
    for (Constraint* ct : constraints_) ct->Post();
    for (Constraint* ct : constraints_)
      if (!ct->InitialPropagate() || !Propagate()) return false;
    return true;
  }

  using VariableSelector = IntVar* (*)(const Solver* s, const vec<IntVar*>& vars);

  /// Depth first with restarts; `objective` gets smaller with each solution. Returns the number of solutions.
  NOINLINE int64 Solve(const vec<IntVar*>& decisions, VariableSelector select, bool split, IntVar* objective, int64 fail_limit) {
    int64 solutions = 0, fails = 0, best = kint64max;
    vec<Decision*> path;
    const size_t root = trail_.markers_.size();
    for (int restart = 1; fails < fail_limit; ++restart) {
      const int64 limit = fails + fail_limit / 4 * (restart & -restart);
      bool ok = objective == nullptr || best == kint64max || (objective->SetMax(best - 1) && Propagate());
      if (!ok) queue_.Clear();
      PushState();
      while (true) {
        IntVar* var = ok ? select(this, decisions) : nullptr;
        if (ok && var != nullptr) {
          const int64 value = split ? (var->Min() + var->Max()) / 2 : PickValue(var);
          heap::Of<Decision> scope;
          Decision* d = new Decision(var, value, split);
          path.push_back(d);
          PushState();
          ++branches_;
          ok = d->Apply(this) && Propagate();
          if (!ok) {
            queue_.Clear();
            Bump(var);
          }
          continue;
        }
        if (ok) {
          ++solutions;
          if (objective != nullptr) best = objective->Min();
          for (const IntVar* v : decisions) solution_hash_ = solution_hash_ * 31 + static_cast<uint64>(v->Min());
        }
        ++fails;
        ++failures_;
        if (fails >= fail_limit || fails >= limit) break;
        ok = false;
        while (!ok && !path.empty()) {
          Decision* d = path.back();
          path.pop_back();
          PopState();
          ok = (objective == nullptr || best == kint64max || objective->SetMax(best - 1)) && d->Refute(this) && Propagate();
          if (!ok) queue_.Clear();
          delete d;
        }
        if (!ok) {
          fails = fail_limit;
          break;
        }
      }
      while (!path.empty()) {
        delete path.back();
        path.pop_back();
      }
      while (trail_.markers_.size() > root) PopState();
    }
    return solutions;
  }
  NOINLINE int64 PickValue(const IntVar* v) const {
    int64 value = v->Min();
    for (uint64 skip = tr_rand() % 3; skip > 0 && value < v->Max();) {
      ++value;
      skip -= v->Contains(value);
    }
    return v->Contains(value) ? value : v->Min();
  }
  void Bump(const IntVar* v) {
    VarStats& st = stats_[v->index()];
    st.weight += bump_;
    ++st.failures;
    st.last_choice = static_cast<int>(branches_ & 0xffff);
    if ((bump_ *= 1.02) > 1e30) {
      for (VarStats& each : stats_) each.weight *= 1e-30;
      bump_ = 1;
    }
  }
  double WeightOf(const IntVar* v) const { return stats_[v->index()].weight; }
  int64 branches() const { return branches_; }
  int64 failures() const { return failures_; }
  uint64 solution_hash() const { return solution_hash_; }

 private:
  const std::string name_;
  uint64 stamp_ = 1, solution_hash_ = 0;
  Trail trail_;
  Queue queue_;
  vec<IntVar*> vars_;
  vec<VarStats> stats_;
  vec<Constraint*> constraints_;
  int64 branches_ = 0, failures_ = 0;
  double bump_ = 1;
};

template <class T> inline void Rev<T>::SetValue(Solver* s, T val) {
  if (val == value_) return;
  if (stamp_ < s->stamp()) {
    s->Save(&value_);
    stamp_ = s->stamp();
  }
  value_ = val;
}

template <class T> inline void SimpleRevFIFO<T>::Push(Solver* s, T val) {
  if (pos_.Value() == 0) {
    s->Save(reinterpret_cast<void**>(&chunks_));
    RevFIFOChunk<T>* chunk = heap::Alloc<RevFIFOChunk<T>>().allocate(1);
    chunk->next_ = chunks_;
    chunks_ = chunk;
    pos_.SetValue(s, 5);
  } else {
    pos_.SetValue(s, pos_.Value() - 1);
  }
  chunks_->data_[pos_.Value()] = val;
}

void DomainIntVar::Changed() {
  solver_->EnqueueAll(range_demons_);
  if (min_.Value() == max_.Value()) solver_->EnqueueAll(bound_demons_);
}

NOINLINE bool DomainIntVar::SetMin(int64 m) {
  if (m <= min_.Value()) return true;
  if (m > max_.Value()) return false;
  if (!bits_.empty())
    while (!(bits_[(m - omin_) >> 6] >> ((m - omin_) & 63) & 1)) ++m;
  if (m > max_.Value()) return false;
  min_.SetValue(solver_, m);
  Changed();
  return true;
}

NOINLINE bool DomainIntVar::SetMax(int64 m) {
  if (m >= max_.Value()) return true;
  if (m < min_.Value()) return false;
  if (!bits_.empty())
    while (!(bits_[(m - omin_) >> 6] >> ((m - omin_) & 63) & 1)) --m;
  if (m < min_.Value()) return false;
  max_.SetValue(solver_, m);
  Changed();
  return true;
}

NOINLINE bool DomainIntVar::RemoveValue(int64 v) {
  if (!Contains(v)) return true;
  if (min_.Value() == max_.Value()) return false;
  if (v == min_.Value()) return SetMin(v + 1);
  if (v == max_.Value()) return SetMax(v - 1);
  if (bits_.empty()) return true;
  const int64 word = (v - omin_) >> 6;
  if (stamps_[word] < solver_->stamp()) {
    solver_->Save(&bits_[word]);
    stamps_[word] = solver_->stamp();
  }
  bits_[word] &= ~(1ul << ((v - omin_) & 63));
  size_.SetValue(solver_, size_.Value() - 1);
  return true;
}

NOINLINE bool BooleanVar::Assign(int v) {
  if (value_.Value() == v) return true;
  if (value_.Value() != kUnbound) return false;
  value_.SetValue(solver_, v);
  solver_->EnqueueAll(demons_);
  return true;
}

// ---------- All different: values when bound, and bounds by sorting ----------

class AllDifferent : public Constraint {
 public:
  AllDifferent(Solver* s, vec<IntExpr*> vars) : Constraint(s), vars_(std::move(vars)), by_min_(vars_.size()), by_max_(vars_.size()) {
    for (size_t i = 0; i < vars_.size(); ++i) by_min_[i].expr = by_max_[i].expr = vars_[i];
  }
  void Post() override {
    Demon* bounds = solver_->MakeDemon<CallMethod0<AllDifferent>>(this, &AllDifferent::PropagateBounds, Demon::DELAYED);
    for (size_t i = 0; i < vars_.size(); ++i) {
      vars_[i]->WhenBound(solver_->MakeDemon<CallMethod1<AllDifferent, int>>(this, &AllDifferent::PropagateValue, static_cast<int>(i)));
      vars_[i]->WhenRange(bounds);
    }
  }
  bool InitialPropagate() override { return PropagateBounds(); }
  NOINLINE bool PropagateValue(int index) {
    const int64 value = vars_[index]->Min();
    for (size_t j = 0; j < vars_.size(); ++j)
      if (static_cast<int>(j) != index && !vars_[j]->RemoveValue(value)) return false;
    return true;
  }
  NOINLINE bool PropagateBounds() { // Hall intervals, the quadratic way
    const size_t n = vars_.size();
    for (size_t i = 0; i < n; ++i) {
      by_min_[i].expr = by_max_[i].expr = vars_[i];
      by_min_[i].min = by_max_[i].min = vars_[i]->Min();
      by_min_[i].max = by_max_[i].max = vars_[i]->Max();
    }
    std::sort(by_max_.begin(), by_max_.end(), [](const Interval& a, const Interval& b) { return a.max < b.max; });
    for (size_t i = 0; i < n; ++i) {
      const int64 low = by_min_[i].min;
      int64 count = 0;
      for (size_t j = 0; j < n; ++j) {
        if (by_max_[j].min < low) continue;
        const int64 room = by_max_[j].max - low + 1;
        if (++count > room) return false;
        if (count == room)
          for (size_t k = 0; k < n; ++k) {
            const Interval& other = by_min_[k];
            if (other.min < low && other.max >= low && other.max <= by_max_[j].max && !other.expr->SetMax(low - 1)) return false;
          }
      }
    }
    return true;
  }

 private:
  struct Interval { IntExpr* expr; int64 min, max; };
  const vec<IntExpr*> vars_;
  vec<Interval> by_min_, by_max_;
};

// ---------- Sums ----------

class LinearLessOrEqual : public Constraint {
 public:
  struct Term { IntExpr* expr; int64 coeff; Rev<int64> min; };
  LinearLessOrEqual(Solver* s, int64 bound) : Constraint(s), bound_(bound) {}
  void AddTerm(IntExpr* e, int64 coeff) { terms_.push_back({e, coeff, Rev<int64>(0)}); }
  void Post() override {
    Demon* all = solver_->MakeDemon<CallMethod0<LinearLessOrEqual>>(this, &LinearLessOrEqual::Propagate, Demon::DELAYED);
    for (size_t i = 0; i < terms_.size(); ++i) {
      terms_[i].expr->WhenRange(solver_->MakeDemon<CallMethod1<LinearLessOrEqual, int>>(this, &LinearLessOrEqual::Update, static_cast<int>(i)));
      terms_[i].expr->WhenRange(all);
    }
  }
  bool InitialPropagate() override {
    for (size_t i = 0; i < terms_.size(); ++i)
      if (!Update(static_cast<int>(i))) return false;
    return Propagate();
  }
  bool Update(int i) {
    Term& t = terms_[i];
    const int64 now = t.coeff * (t.coeff > 0 ? t.expr->Min() : t.expr->Max());
    sum_min_.SetValue(solver_, sum_min_.Value() + now - t.min.Value());
    t.min.SetValue(solver_, now);
    return sum_min_.Value() <= bound_;
  }
  NOINLINE bool Propagate() {
    const int64 slack = bound_ - sum_min_.Value();
    if (slack < 0) return false;
    for (const Term& t : terms_) {
      if (t.coeff * (t.coeff > 0 ? t.expr->Max() : t.expr->Min()) - t.min.Value() <= slack) continue;
      if (t.coeff > 0 ? !t.expr->SetMax(t.expr->Min() + slack / t.coeff) : !t.expr->SetMin(t.expr->Max() - slack / -t.coeff)) return false;
    }
    return true;
  }

 private:
  vec<Term> terms_;
  Rev<int64> sum_min_{0};
  const int64 bound_;
};

// ---------- Tables that are indexed by a variable ----------

class Element : public Constraint {
 public:
  Element(Solver* s, const vec<int64>* values, IntVar* index, IntVar* target) : Constraint(s), values_(values), index_(index), target_(target) {}
  void Post() override {
    Demon* d = solver_->MakeDemon<CallMethod0<Element>>(this, &Element::Propagate, Demon::NORMAL);
    index_->WhenRange(d);
    target_->WhenRange(d);
  }
  bool InitialPropagate() override { return Propagate(); }
  NOINLINE bool Propagate() {
    int64 low = kint64max, high = -kint64max;
    for (int64 i = index_->Min(); i <= index_->Max(); ++i) {
      if (!index_->Contains(i)) continue;
      const int64 v = (*values_)[i];
      if (v < target_->Min() || v > target_->Max()) {
        if (!index_->RemoveValue(i)) return false;
        continue;
      }
      low = std::min(low, v);
      high = std::max(high, v);
    }
    return low <= high && target_->SetRange(low, high);
  }

 private:
  const vec<int64>* values_;
  IntVar *const index_, *const target_;
};

// ---------- One tour through all ----------

class Circuit : public Constraint {
 public:
  Circuit(Solver* s, vec<IntVar*> nexts) : Constraint(s), nexts_(std::move(nexts)) {
    for (size_t i = 0; i < nexts_.size(); ++i) paths_.push_back({Rev<int>(static_cast<int>(i)), Rev<int>(static_cast<int>(i)), Rev<int>(1)});
  }
  void Post() override {
    for (size_t i = 0; i < nexts_.size(); ++i) nexts_[i]->WhenBound(solver_->MakeDemon<CallMethod1<Circuit, int>>(this, &Circuit::NextBound, static_cast<int>(i)));
  }
  bool InitialPropagate() override {
    for (size_t i = 0; i < nexts_.size(); ++i)
      if (!nexts_[i]->RemoveValue(static_cast<int64>(i))) return false;
    return true;
  }
  NOINLINE bool NextBound(int from) {
    const int to = static_cast<int>(nexts_[from]->Min());
    const int start = paths_[from].start.Value(), end = paths_[to].end.Value();
    const int length = paths_[start].length.Value() + paths_[to].length.Value();
    if (start == to) return paths_[start].length.Value() == static_cast<int>(nexts_.size());
    paths_[end].start.SetValue(solver_, start);
    paths_[start].end.SetValue(solver_, end);
    paths_[start].length.SetValue(solver_, length);
    return length == static_cast<int>(nexts_.size()) || nexts_[end]->RemoveValue(start);
  }

 private:
  struct PathEnd { Rev<int> start, end, length; };
  const vec<IntVar*> nexts_;
  vec<PathEnd> paths_;
};

// ---------- Intervals: one at a time on a machine, or together under a capacity ----------

struct Task { IntVar* start; int64 duration, demand; int job, machine; };

class Disjunctive : public Constraint {
 public:
  Disjunctive(Solver* s, vec<const Task*> tasks) : Constraint(s), tasks_(std::move(tasks)) {}
  void Post() override {
    for (size_t i = 0; i < tasks_.size(); ++i) tasks_[i]->start->WhenRange(solver_->MakeDemon<CallMethod1<Disjunctive, int>>(this, &Disjunctive::TaskChanged, static_cast<int>(i)));
  }
  bool InitialPropagate() override {
    for (size_t i = 0; i < tasks_.size(); ++i)
      if (!TaskChanged(static_cast<int>(i))) return false;
    return true;
  }
  NOINLINE bool TaskChanged(int index) {
    const Task* a = tasks_[index];
    for (const Task* b : tasks_) {
      if (a == b) continue;
      const bool a_first = a->start->Min() + a->duration <= b->start->Max(), b_first = b->start->Min() + b->duration <= a->start->Max();
      if (!a_first && !b_first) return false;
      if (!a_first && (!a->start->SetMin(b->start->Min() + b->duration) || !b->start->SetMax(a->start->Max() - b->duration))) return false;
      if (!b_first && (!b->start->SetMin(a->start->Min() + a->duration) || !a->start->SetMax(b->start->Max() - a->duration))) return false;
    }
    return true;
  }

 private:
  const vec<const Task*> tasks_;
};

class Cumulative : public Constraint {
 public:
  Cumulative(Solver* s, vec<const Task*> tasks, int64 capacity) : Constraint(s), tasks_(std::move(tasks)), capacity_(capacity) {}
  void Post() override {
    Demon* d = solver_->MakeDemon<CallMethod0<Cumulative>>(this, &Cumulative::TimeTable, Demon::DELAYED);
    for (const Task* t : tasks_) t->start->WhenRange(d);
  }
  bool InitialPropagate() override { return TimeTable(); }
  NOINLINE bool TimeTable() {
    profile_.clear();
    for (const Task* t : tasks_) { // what must be used
      const int64 from = t->start->Max(), to = t->start->Min() + t->duration;
      if (from >= to) continue;
      profile_.push_back({from, t->demand});
      profile_.push_back({to, -t->demand});
    }
    std::sort(profile_.begin(), profile_.end(), [](const ProfileDelta& a, const ProfileDelta& b) { return a.time < b.time || (a.time == b.time && a.delta < b.delta); });
    int64 usage = 0;
    for (ProfileDelta& d : profile_) {
      usage += d.delta;
      if (usage > capacity_) return false;
      d.usage = usage;
    }
    for (const Task* t : tasks_) {
      const int64 from = t->start->Max(), to = t->start->Min() + t->duration;
      for (size_t i = 0; i + 1 < profile_.size(); ++i) {
        const int64 begin = profile_[i].time, end = profile_[i + 1].time;
        const int64 own = from < to && from <= begin && to >= end ? t->demand : 0;
        if (begin == end || profile_[i].usage - own + t->demand <= capacity_) continue;
        if (t->start->Min() < end && t->start->Min() + t->duration > begin && !t->start->SetMin(end)) return false;
      }
    }
    return true;
  }

 private:
  struct ProfileDelta { int64 time, delta, usage; };
  const vec<const Task*> tasks_;
  const int64 capacity_;
  vec<ProfileDelta> profile_;
};

class Precedence : public Constraint {
 public:
  Precedence(Solver* s, IntVar* left, int64 offset, IntVar* right) : Constraint(s), left_(left), right_(right), offset_(offset) {}
  void Post() override {
    Demon* d = solver_->MakeDemon<CallMethod0<Precedence>>(this, &Precedence::Propagate, Demon::NORMAL);
    left_->WhenRange(d);
    right_->WhenRange(d);
  }
  bool InitialPropagate() override { return Propagate(); }
  bool Propagate() { return right_->SetMin(left_->Min() + offset_) && left_->SetMax(right_->Max() - offset_); }

 private:
  IntVar *const left_, *const right_;
  const int64 offset_;
};

// ---------- Which variable is next ----------

NOINLINE IntVar* ChooseMinSize(const Solver*, const vec<IntVar*>& vars) {
  IntVar* best = nullptr;
  uint64 best_size = ~0ul;
  for (IntVar* v : vars)
    if (!v->Bound() && v->Size() < best_size) best_size = v->Size(), best = v;
  return best;
}

NOINLINE IntVar* ChooseMinStart(const Solver*, const vec<IntVar*>& vars) {
  IntVar* best = nullptr;
  for (IntVar* v : vars)
    if (!v->Bound() && (best == nullptr || v->Min() < best->Min() || (v->Min() == best->Min() && v->Max() < best->Max()))) best = v;
  return best;
}

NOINLINE IntVar* ChooseWeighted(const Solver* s, const vec<IntVar*>& vars) {
  IntVar* best = nullptr;
  double best_score = -1;
  for (IntVar* v : vars) {
    if (v->Bound()) continue;
    const double score = s->WeightOf(v) / static_cast<double>(v->Size());
    if (score > best_score) best_score = score, best = v;
  }
  return best;
}

// ---------- Models ----------

struct Model {
  const char* name;
  Solver* solver;
  vec<IntVar*> decisions;
  IntVar* objective = nullptr;
  Solver::VariableSelector select = ChooseMinSize;
  bool split = false;
  int64 solved = 0, best = 0;
  vec<Task> tasks;
  vec<vec<int64>> tables;
  explicit Model(const char* n) : name(n), solver(heap::make<Solver>(n).release()) {}
};

static void Queens(Model* m, int n) {
  vec<IntExpr*> rows, up, down;
  for (int i = 0; i < n; ++i) {
    IntVar* v = m->solver->MakeIntVar(0, n - 1);
    m->decisions.push_back(v);
    rows.push_back(v);
    up.push_back(m->solver->Make<PlusCstExpr>(v, i));
    down.push_back(m->solver->Make<PlusCstExpr>(m->solver->Make<OppExpr>(v), i));
  }
  m->solver->Add<AllDifferent>(rows);
  m->solver->Add<AllDifferent>(up);
  m->solver->Add<AllDifferent>(down);
  m->select = ChooseWeighted;
}

static void JobShop(Model* m, int jobs, int machines) {
  const int64 horizon = 60 * jobs;
  m->tasks.reserve(static_cast<size_t>(jobs * machines));
  m->objective = m->solver->MakeIntVar(0, horizon);
  vec<vec<const Task*>> on(static_cast<size_t>(machines));
  for (int j = 0; j < jobs; ++j) {
    const int shift = static_cast<int>(tr_rand() % static_cast<unsigned>(machines));
    for (int k = 0; k < machines; ++k) {
      m->tasks.push_back({m->solver->MakeIntVar(0, horizon), 5 + static_cast<int64>(tr_rand() >> 20) % 30, 1, j, (k * 3 + shift) % machines});
      Task* t = &m->tasks.back();
      m->decisions.push_back(t->start);
      on[static_cast<size_t>(t->machine)].push_back(t);
      if (k > 0) m->solver->Add<Precedence>(t[-1].start, t[-1].duration, t->start);
    }
    m->solver->Add<Precedence>(m->tasks.back().start, m->tasks.back().duration, m->objective);
  }
  for (vec<const Task*>& tasks : on) m->solver->Add<Disjunctive>(std::move(tasks));
  m->decisions.push_back(m->objective);
  m->select = ChooseMinStart;
}

static void Projects(Model* m, int count) {
  m->tasks.reserve(static_cast<size_t>(count));
  m->objective = m->solver->MakeIntVar(0, 30 * count);
  vec<const Task*> all;
  for (int i = 0; i < count; ++i) {
    m->tasks.push_back({m->solver->MakeIntVar(0, 2000), 3 + static_cast<int64>(tr_rand() >> 20) % 20, 1 + static_cast<int64>(tr_rand() >> 30) % 5, i, 0});
    all.push_back(&m->tasks.back());
    m->decisions.push_back(m->tasks.back().start);
    for (int k = 0; i > 0 && k < 2; ++k) {
      const Task& before = m->tasks[tr_rand() % static_cast<unsigned>(i)];
      m->solver->Add<Precedence>(before.start, before.duration, m->tasks.back().start);
    }
    m->solver->Add<Precedence>(m->tasks.back().start, m->tasks.back().duration, m->objective);
  }
  m->solver->Add<Cumulative>(all, 9);
  m->decisions.push_back(m->objective);
  m->select = ChooseMinStart;
}

static void Tour(Model* m, int n) {
  vec<IntVar*> nexts;
  vec<IntExpr*> exprs;
  vec<int64> x, y;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<int64>(tr_rand() % 100)), y.push_back(static_cast<int64>(tr_rand() % 100));
  m->tables.resize(static_cast<size_t>(n));
  m->objective = m->solver->MakeIntVar(0, 200 * n);
  for (int i = 0; i < n; ++i) nexts.push_back(m->solver->MakeIntVar(0, n - 1));
  exprs.assign(nexts.begin(), nexts.end());
  LinearLessOrEqual* total = m->solver->Add<LinearLessOrEqual>(0);
  total->AddTerm(m->objective, -1);
  for (int i = 0; i < n; ++i) {
    vec<int64>& table = m->tables[static_cast<size_t>(i)];
    for (int j = 0; j < n; ++j) table.push_back(std::labs(x[i] - x[j]) + std::labs(y[i] - y[j]));
    IntVar* cost = m->solver->MakeIntVar(0, 200);
    m->solver->Add<Element>(&table, nexts[static_cast<size_t>(i)], cost);
    total->AddTerm(cost, 1);
  }
  m->solver->Add<Circuit>(nexts);
  m->solver->Add<AllDifferent>(exprs);
  m->decisions = nexts;
  m->decisions.push_back(m->objective);
  m->select = ChooseMinSize;
}

static void Knapsack(Model* m, int items, int rows) {
  m->objective = m->solver->MakeIntVar(-100000, 0);
  LinearLessOrEqual* value = m->solver->Add<LinearLessOrEqual>(0);
  vec<LinearLessOrEqual*> weights;
  for (int r = 0; r < rows; ++r) weights.push_back(m->solver->Add<LinearLessOrEqual>(items * 12));
  for (int i = 0; i < items; ++i) {
    IntVar* v = i % 4 ? m->solver->MakeBoolVar() : m->solver->MakeIntVar(0, 3);
    m->decisions.push_back(v);
    value->AddTerm(v, -(10 + static_cast<int64>(tr_rand() >> 20) % 90));
    for (LinearLessOrEqual* w : weights) w->AddTerm(v, 5 + static_cast<int64>(tr_rand() >> 22) % 60);
  }
  value->AddTerm(m->objective, -1);
  m->decisions.push_back(m->objective);
  m->select = ChooseWeighted;
}

}  // namespace cp

int main(int argc, char** argv) {
  using namespace cp;
  tr_init(argc, argv);
  vec<Model*> models;
  static const char* const names[] = {"queens", "job shop", "projects", "tour", "knapsack"};
  for (int i = 0; i < 20; ++i) {
    models.push_back(heap::make<Model>(names[i % 5]).release());
    Model* m = models.back();
    switch (i % 5) {
      case 0: Queens(m, 16 + i); break;
      case 1: JobShop(m, 5 + i / 5, 5); break;
      case 2: Projects(m, 30 + i); break;
      case 3: Tour(m, 10 + i / 5); break;
      default: Knapsack(m, 30 + i, 4);
    }
    if (!m->solver->Start() && getenv("SHOW")) fprintf(stderr, "%s %d: no solution\n", m->name, i);
  }
  int64 sum = 0;
  for (size_t turn = 0; tr_more(); ++turn) {
    Model* m = models[turn % models.size()];
    m->solver->PushState();
    const int64 found = m->solver->Solve(m->decisions, turn / 40 % 2 && m->select == ChooseMinSize ? ChooseWeighted : m->select, m->split, m->objective, 120);
    m->solver->PopState();
    m->solved += found;
    sum += found + static_cast<int64>(m->solver->solution_hash() & 7);
  }
  if (getenv("SHOW"))
    for (const Model* m : models) fprintf(stderr, "%s: %ld solutions, %ld branches, %ld failures\n", m->name, m->solved, m->solver->branches(), m->solver->failures());
  tr_sink = static_cast<uint64>(sum);
  return 0;
}
