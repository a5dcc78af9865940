/* A virtual machine with a collector of two generations: tagged values, arenas of one kind of cell each, a nursery
 * that is evacuated, a store buffer, marking with a stack, lazy sweeping; objects with shapes and inline caches,
 * ropes, closures, and a bytecode interpreter that runs what a small assembler has made of text.
 */
#include "../heap.hpp"
#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace vm {

template <typename T>
using Vector = std::vector<T, heap::Alloc<T>>;

class Cell;
class Runtime;
class Shape;
class StringCell;
class PlainObject;
class ArrayObject;
class Environment;
class Closure;
class NumberCell;

// ---- values ----

class Value {
  uint64_t asBits_;
  explicit constexpr Value(uint64_t bits) : asBits_(bits) {}

 public:
  constexpr Value() : asBits_(2) {}
  static Value fromInt32(int32_t i) { return Value((uint64_t(uint32_t(i)) << 1) | 1); }
  static Value fromBoolean(bool b) { return Value(b ? 6 : 4); }
  static Value fromCell(const Cell* cell) { return Value(reinterpret_cast<uint64_t>(cell)); }
  bool isInt32() const { return asBits_ & 1; }
  bool isCell() const { return !(asBits_ & 7) && asBits_; }
  bool isUndefined() const { return asBits_ == 2; }
  bool isTrue() const { return asBits_ == 6; }
  int32_t toInt32() const { return int32_t(asBits_ >> 1); }
  Cell* toCell() const { return reinterpret_cast<Cell*>(asBits_); }
  template <class T> T* as() const;
  template <class T> bool is() const;
};

// ---- cells ----

enum class AllocKind : uint8_t { Shape, String, Object, Array, Environment, Closure, Number, Limit };
constexpr size_t KindCount = size_t(AllocKind::Limit);

// The header: a kind and flags, or where the cell has moved to, or the next free one.
class alignas(16) Cell {
  uint64_t header_;

 public:
  enum : uint64_t { Forwarded = 1, Tenured = 2, Remembered = 4, Free = 8, KindShift = 8, AgeShift = 16 };
  explicit Cell(AllocKind kind) : header_(uint64_t(kind) << KindShift) {}
  AllocKind kind() const { return AllocKind(header_ >> KindShift & 0xff); }
  bool isTenured() const { return header_ & Tenured; }
  bool isForwarded() const { return header_ & Forwarded; }
  bool isFree() const { return header_ & Free; }
  bool isRemembered() const { return header_ & Remembered; }
  Cell* forwardingAddress() const { return reinterpret_cast<Cell*>(header_ & ~uint64_t(15)); }
  void forwardTo(Cell* to) { header_ = reinterpret_cast<uint64_t>(to) | Forwarded; }
  void setTenured() { header_ |= Tenured; }
  void setRemembered(bool on) { header_ = on ? header_ | Remembered : header_ & ~uint64_t(Remembered); }
  void linkFree(Cell* next) { header_ = reinterpret_cast<uint64_t>(next) | Free; }
  Cell* nextFree() const { return reinterpret_cast<Cell*>(header_ & ~uint64_t(15)); }
};

class StringCell : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::String;
  static constexpr uint32_t InlineLength = 24, RopeFlag = 1u << 31;
  uint32_t lengthAndFlags_;
  uint32_t hash_ = 0;
  union {
    char inline_[InlineLength];
    struct { StringCell *left, *right; } rope_;
    char* chars_;
  };
  explicit StringCell(uint32_t length) : Cell(Kind), lengthAndFlags_(length) { rope_.left = rope_.right = nullptr; }
  uint32_t length() const { return lengthAndFlags_ & ~RopeFlag; }
  bool isRope() const { return lengthAndFlags_ & RopeFlag; }
  bool hasBuffer() const { return !isRope() && length() > InlineLength; }
  const char* chars() const { return length() <= InlineLength ? inline_ : chars_; }
  std::string_view view() const { return {chars(), length()}; }
  void flatten(Vector<StringCell*>& stack);
  uint32_t ensureHash();
  void finalize() { if (hasBuffer()) heap::Alloc<char>().deallocate(chars_, length()); }
};

// Names and their slots: each shape adds one to its parent's.
class Shape : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Shape;
  Shape* parent_;
  StringCell* name_;
  uint32_t slot_, count_;
  struct Kids { Shape* first; Shape* sibling; } kids_{nullptr, nullptr};
  Shape(Shape* parent, StringCell* name) : Cell(Kind), parent_(parent), name_(name), slot_(parent ? parent->count_ : 0), count_(parent ? parent->count_ + 1 : 0) {}
  const Shape* lookup(const StringCell* name) const {
    for (const Shape* s = this; s->parent_; s = s->parent_)
      if (s->name_ == name) return s;
    return nullptr;
  }
  void finalize() {}
};

class PlainObject : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Object;
  static constexpr uint32_t FixedSlots = 3;
  Shape* shape_;
  Value* slots_ = nullptr;
  uint32_t capacity_ = 0, writes_ = 0;
  Value fixed_[FixedSlots];
  explicit PlainObject(Shape* shape) : Cell(Kind), shape_(shape) {}
  Value& slot(uint32_t i) { return i < FixedSlots ? fixed_[i] : slots_[i - FixedSlots]; }
  void finalize() { if (slots_) heap::Alloc<Value>().deallocate(slots_, capacity_); }
};

class ArrayObject : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Array;
  uint32_t length_ = 0, capacity_ = 0;
  Value* elements_ = nullptr;
  ArrayObject() : Cell(Kind) {}
  void push(Value v) {
    if (length_ == capacity_) {
      uint32_t larger = capacity_ ? 2 * capacity_ : 8;
      Value* moved = heap::Alloc<Value>().allocate(larger);
      std::uninitialized_copy(elements_, elements_ + length_, moved);
      finalize();
      elements_ = moved;
      capacity_ = larger;
    }
    elements_[length_++] = v;
  }
  void finalize() { if (elements_) heap::Alloc<Value>().deallocate(elements_, capacity_); }
};

class Environment : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Environment;
  Environment* outer_;
  Value slots_[3];
  explicit Environment(Environment* outer) : Cell(Kind), outer_(outer) {}
  void finalize() {}
};

struct Script;

class Closure : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Closure;
  Script* script_;
  Environment* environment_;
  uint32_t calls_ = 0;
  Closure(Script* script, Environment* environment) : Cell(Kind), script_(script), environment_(environment) {}
  void finalize() {}
};

class NumberCell : public Cell {
 public:
  static constexpr AllocKind Kind = AllocKind::Number;
  double number_;
  explicit NumberCell(double d) : Cell(Kind), number_(d) {}
  void finalize() {}
};

template <class T> T* Value::as() const { return static_cast<T*>(toCell()); }
template <class T> bool Value::is() const { return isCell() && toCell()->kind() == T::Kind; }

NOINLINE void StringCell::flatten(Vector<StringCell*>& stack) {
  char buffer[512];
  uint32_t n = length(), at = 0;
  stack.push_back(this);
  while (!stack.empty()) {
    StringCell* s = stack.back();
    stack.pop_back();
    if (s->isRope()) {
      stack.push_back(s->rope_.right);
      stack.push_back(s->rope_.left);
      continue;
    }
    const char* from = s->chars();
    for (uint32_t i = 0; i < s->length(); ++i) buffer[at++] = from[i];
  }
  lengthAndFlags_ = n;
  char* to = n <= InlineLength ? inline_ : (chars_ = heap::Alloc<char>().allocate((n + 63) & ~63u));
  for (uint32_t i = 0; i < n; ++i) to[i] = buffer[i];
}

NOINLINE uint32_t StringCell::ensureHash() {
  if (hash_) return hash_;
  uint32_t h = 0;
  const char* p = chars();
  for (uint32_t i = 0; i < length(); ++i) h = (h << 5 | h >> 27) * 0x9E3779B9u ^ static_cast<unsigned char>(p[i]);
  return hash_ = h | 1;
}

// ---- arenas ----

struct alignas(16) Arena {
  static constexpr size_t Size = 4096;
  Arena* next;
  Cell* firstFree;
  uint32_t thingSize, count;
  uint32_t used; // in the nursery: how many were handed out
  AllocKind kind;
  bool nursery, swept;
  uint64_t markBits[4];

  char* things() { return reinterpret_cast<char*>(this) + sizeof(Arena); }
  Cell* thing(uint32_t i) { return reinterpret_cast<Cell*>(things() + size_t(i) * thingSize); }
  static Arena* of(const Cell* cell) { return reinterpret_cast<Arena*>(reinterpret_cast<uintptr_t>(cell) & ~(Size - 1)); }
  bool markIfUnmarked(const Cell* cell) {
    uint32_t bit = uint32_t(reinterpret_cast<const char*>(cell) - things()) / thingSize;
    uint64_t mask = uint64_t(1) << (bit & 63);
    if (markBits[bit >> 6] & mask) return false;
    markBits[bit >> 6] |= mask;
    return true;
  }
  bool isMarked(uint32_t bit) const { return markBits[bit >> 6] >> (bit & 63) & 1; }
};

struct KindInfo {
  const char* name;
  uint32_t size;
};

// The arenas of one kind.
struct ArenaList {
  Arena* tenured = nullptr;
  Arena* sweepNext = nullptr;
  Cell* freeList = nullptr;
  Arena* nursery = nullptr; // what is filled now; full ones follow
  Arena* spare = nullptr;
  uint32_t tenuredCount = 0, nurseryCount = 0;
};

struct GCStats {
  uint64_t minor, major, promoted, allocated, swept, barriers, marked;
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void onEdge(Cell** edge) = 0;
  uint64_t edges_ = 0;
  void trace(Value& v) {
    if (!v.isCell()) return;
    Cell* cell = v.toCell();
    onEdge(&cell);
    v = Value::fromCell(cell);
  }
  template <class T> void trace(T*& pointer) {
    if (!pointer) return;
    Cell* cell = pointer;
    onEdge(&cell);
    pointer = static_cast<T*>(cell);
  }
};

static NOINLINE void traceChildren(Tracer& trc, Cell* cell) {
  ++trc.edges_;
  switch (cell->kind()) {
    case AllocKind::Shape: {
      auto* s = static_cast<Shape*>(cell);
      trc.trace(s->parent_);
      trc.trace(s->name_);
      trc.trace(s->kids_.first);
      trc.trace(s->kids_.sibling);
      break;
    }
    case AllocKind::String: {
      auto* s = static_cast<StringCell*>(cell);
      if (!s->isRope()) break;
      trc.trace(s->rope_.left);
      trc.trace(s->rope_.right);
      break;
    }
    case AllocKind::Object: {
      auto* o = static_cast<PlainObject*>(cell);
      trc.trace(o->shape_);
      for (Value& v : o->fixed_) trc.trace(v);
      for (uint32_t i = 0; i < o->capacity_; ++i) trc.trace(o->slots_[i]);
      break;
    }
    case AllocKind::Array: {
      auto* a = static_cast<ArrayObject*>(cell);
      for (uint32_t i = 0; i < a->length_; ++i) trc.trace(a->elements_[i]);
      break;
    }
    case AllocKind::Environment: {
      auto* e = static_cast<Environment*>(cell);
      trc.trace(e->outer_);
      for (Value& v : e->slots_) trc.trace(v);
      break;
    }
    case AllocKind::Closure: trc.trace(static_cast<Closure*>(cell)->environment_); break;
    default: break;
  }
}

class Heap {
 public:
  Heap() {
    info_[size_t(AllocKind::Shape)] = {heap::name_of<Shape>(), sizeof(Shape)};
    info_[size_t(AllocKind::String)] = {heap::name_of<StringCell>(), sizeof(StringCell)};
    info_[size_t(AllocKind::Object)] = {heap::name_of<PlainObject>(), sizeof(PlainObject)};
    info_[size_t(AllocKind::Array)] = {heap::name_of<ArrayObject>(), sizeof(ArrayObject)};
    info_[size_t(AllocKind::Environment)] = {heap::name_of<Environment>(), sizeof(Environment)};
    info_[size_t(AllocKind::Closure)] = {heap::name_of<Closure>(), sizeof(Closure)};
    info_[size_t(AllocKind::Number)] = {heap::name_of<NumberCell>(), sizeof(NumberCell)};
  }

  template <class T, class... Args> T* make(Args&&... args) {
    ArenaList& list = lists_[size_t(T::Kind)];
    Arena* arena = list.nursery;
    if (!arena || arena->used == arena->count) arena = refillNursery(T::Kind);
    ++stats.allocated;
    return new (arena->thing(arena->used++)) T(std::forward<Args>(args)...);
  }
  template <class T, class... Args> T* makeTenured(Args&&... args) {
    T* cell = new (allocateTenured(T::Kind)) T(std::forward<Args>(args)...);
    cell->setTenured();
    return cell;
  }
  void writeBarrier(Cell* owner, Value v) {
    if (v.isCell() && owner->isTenured() && !owner->isRemembered() && !v.toCell()->isTenured()) {
      owner->setRemembered(true);
      storeBuffer_.push_back(owner);
      ++stats.barriers;
    }
  }
  bool needsMinor() const { return nurseryArenas_ >= 24; }
  bool needsMajor() const { return tenuredSinceMajor_ > 3000; }
  void minorGC(Runtime& rt);
  void majorGC(Runtime& rt);
  Cell* promote(Cell* cell);
  void mark(Cell* cell) {
    if (!cell->isTenured() || !Arena::of(cell)->markIfUnmarked(cell)) return;
    ++stats.marked;
    markStack_.push_back(cell);
  }
  GCStats stats{};

 private:
  Arena* newArena(AllocKind kind, bool nursery) {
    void* memory = std::aligned_alloc(Arena::Size, Arena::Size);
    auto* arena = new (memory) Arena();
    arena->kind = kind;
    arena->nursery = nursery;
    arena->thingSize = info_[size_t(kind)].size;
    arena->count = uint32_t((Arena::Size - sizeof(Arena)) / arena->thingSize);
    tr_region("vm::Arena", arena, sizeof(Arena), sizeof(Arena));
    tr_region(info_[size_t(kind)].name, arena->things(), size_t(arena->count) * arena->thingSize, arena->thingSize);
    return arena;
  }
  NOINLINE Arena* refillNursery(AllocKind kind) {
    ArenaList& list = lists_[size_t(kind)];
    Arena* arena = list.spare;
    if (arena) list.spare = arena->next;
    else arena = newArena(kind, true);
    arena->used = 0;
    arena->next = list.nursery;
    list.nursery = arena;
    ++list.nurseryCount;
    ++nurseryArenas_;
    return arena;
  }
  NOINLINE Cell* allocateTenured(AllocKind kind) {
    ArenaList& list = lists_[size_t(kind)];
    while (!list.freeList && list.sweepNext) {
      Arena* arena = list.sweepNext;
      list.sweepNext = arena->next;
      if (!arena->swept) sweep(list, arena);
    }
    if (!list.freeList) {
      Arena* arena = newArena(kind, false);
      for (uint32_t i = arena->count; i-- > 0;) {
        arena->thing(i)->linkFree(list.freeList);
        list.freeList = arena->thing(i);
      }
      arena->swept = true;
      arena->next = list.tenured;
      list.tenured = arena;
      ++list.tenuredCount;
    }
    Cell* cell = list.freeList;
    list.freeList = cell->nextFree();
    ++tenuredSinceMajor_;
    return cell;
  }
  static void finalize(Cell* cell) {
    switch (cell->kind()) {
      case AllocKind::String: static_cast<StringCell*>(cell)->finalize(); break;
      case AllocKind::Object: static_cast<PlainObject*>(cell)->finalize(); break;
      case AllocKind::Array: static_cast<ArrayObject*>(cell)->finalize(); break;
      default: break;
    }
  }
  NOINLINE void sweep(ArenaList& list, Arena* arena) {
    arena->swept = true;
    for (uint32_t i = 0; i < arena->count; ++i) {
      if (arena->isMarked(i)) continue;
      Cell* cell = arena->thing(i);
      if (!cell->isFree()) {
        finalize(cell);
        ++stats.swept;
      }
      cell->linkFree(list.freeList);
      list.freeList = cell;
    }
  }

  ArenaList lists_[KindCount];
  KindInfo info_[KindCount];
  Vector<Cell*> storeBuffer_, markStack_, promoted_;
  uint32_t nurseryArenas_ = 0, tenuredSinceMajor_ = 0;
};

// ---- scripts ----

enum class Op : uint8_t { Const, Undef, GetLocal, SetLocal, GetEnv, SetEnv, NewEnv, Add, Sub, Mul, Less, JumpIfFalse, Jump, NewObject, GetProp, SetProp, NewArray, Push, GetElem, SetElem, Length, MakeClosure, Call, Return, Pop, Hash, GetCache, Random };
static const char* const opNames[] = {"const", "undef", "getlocal", "setlocal", "getenv", "setenv", "newenv", "add", "sub", "mul", "less", "iffalse", "jump", "object", "getprop", "setprop", "array", "push", "getelem", "setelem", "length", "closure", "call", "return", "pop", "hash", "cache", "random"};

struct PropertyIC {
  Shape* shape;
  Shape* added; // of a write that makes the object larger
  uint32_t slot, hits, misses;
};

struct Script {
  const char* name;
  Vector<uint8_t> code;
  Vector<Value> constants;
  Vector<PropertyIC> caches;
  uint8_t arguments, locals;
  uint64_t runs;
};

struct Frame {
  Script* script;
  const uint8_t* pc;
  Value* base;
  Environment* environment;
};

struct AtomHash {
  size_t operator()(StringCell* s) const { return s->ensureHash(); }
};
struct AtomEqual {
  bool operator()(const StringCell* a, const StringCell* b) const { return a->view() == b->view(); }
};

class Runtime {
 public:
  Runtime() {
    emptyShape_ = heap_.makeTenured<Shape>(nullptr, nullptr);
    cache_ = heap_.makeTenured<ArrayObject>();
    for (int i = 0; i < 48; ++i) cache_->push(Value());
  }
  Script* assemble(const char* name, int arguments, int locals, std::string_view text);
  NOINLINE Value run(Script* main, Value argument);
  void traceRoots(Tracer& trc) {
    trc.trace(emptyShape_);
    trc.trace(cache_);
    for (Value* v = stack_; v < top_; ++v) trc.trace(*v);
    for (Frame& f : frames_) trc.trace(f.environment);
    for (auto& s : scripts_)
      for (Value& v : s->constants) trc.trace(v);
  }
  void sweepCaches() {
    for (auto& s : scripts_)
      for (PropertyIC& ic : s->caches) ic.shape = ic.added = nullptr;
  }
  Heap& heap() { return heap_; }
  Script* find(std::string_view name) {
    for (auto& s : scripts_)
      if (name == s->name) return s.get();
    return nullptr;
  }
  uint64_t dispatched_ = 0;

 private:
  StringCell* atomize(std::string_view text) {
    StringCell* s = heap_.makeTenured<StringCell>(uint32_t(text.size()));
    text.copy(s->inline_, StringCell::InlineLength);
    auto [it, added] = atoms_.insert(s);
    (void)added;
    return *it;
  }
  Shape* childShape(Shape* parent, StringCell* name);
  NOINLINE Value getProperty(PlainObject* object, StringCell* name, PropertyIC& ic);
  NOINLINE void setProperty(PlainObject* object, StringCell* name, Value v, PropertyIC& ic);
  NOINLINE Value add(Value a, Value b);
  double number(Value v) { return v.isInt32() ? v.toInt32() : v.is<NumberCell>() ? v.as<NumberCell>()->number_ : 0; }

  Heap heap_;
  Shape* emptyShape_;
  ArrayObject* cache_;
  Vector<std::unique_ptr<Script>> scripts_;
  std::unordered_set<StringCell*, AtomHash, AtomEqual, heap::Alloc<StringCell*>> atoms_;
  Vector<Frame> frames_;
  Vector<StringCell*> flattening_;
  Value stack_[1024];
  Value* top_ = stack_;
};

// ---- collections ----

class TenuringTracer final : public Tracer {
 public:
  explicit TenuringTracer(Heap& heap) : heap_(heap) {}
  void onEdge(Cell** edge) override {
    Cell* cell = *edge;
    if (cell->isForwarded()) *edge = cell->forwardingAddress();
    else if (!cell->isTenured()) *edge = heap_.promote(cell);
  }

 private:
  Heap& heap_;
};

class MarkingTracer final : public Tracer {
 public:
  explicit MarkingTracer(Heap& heap) : heap_(heap) {}
  void onEdge(Cell** edge) override { heap_.mark(*edge); }

 private:
  Heap& heap_;
};

NOINLINE Cell* Heap::promote(Cell* cell) {
  Cell* to = allocateTenured(cell->kind());
  switch (cell->kind()) {
    case AllocKind::Shape: new (to) Shape(*static_cast<Shape*>(cell)); break;
    case AllocKind::String: new (to) StringCell(*static_cast<StringCell*>(cell)); break;
    case AllocKind::Object: new (to) PlainObject(*static_cast<PlainObject*>(cell)); break;
    case AllocKind::Array: new (to) ArrayObject(*static_cast<ArrayObject*>(cell)); break;
    case AllocKind::Environment: new (to) Environment(*static_cast<Environment*>(cell)); break;
    case AllocKind::Closure: new (to) Closure(*static_cast<Closure*>(cell)); break;
    default: new (to) NumberCell(*static_cast<NumberCell*>(cell));
  }
  to->setTenured();
  cell->forwardTo(to);
  promoted_.push_back(to);
  ++stats.promoted;
  return to;
}

NOINLINE void Heap::minorGC(Runtime& rt) {
  ++stats.minor;
  TenuringTracer trc(*this);
  rt.traceRoots(trc);
  for (Cell* owner : storeBuffer_) {
    owner->setRemembered(false);
    traceChildren(trc, owner);
  }
  storeBuffer_.clear();
  while (!promoted_.empty()) {
    Cell* cell = promoted_.back();
    promoted_.pop_back();
    traceChildren(trc, cell);
  }
  for (ArenaList& list : lists_)
    while (Arena* arena = list.nursery) {
      for (uint32_t i = 0; i < arena->used; ++i)
        if (!arena->thing(i)->isForwarded()) finalize(arena->thing(i));
      list.nursery = arena->next;
      arena->next = list.spare;
      list.spare = arena;
      --list.nurseryCount;
    }
  nurseryArenas_ = 0;
}

NOINLINE void Heap::majorGC(Runtime& rt) {
  ++stats.major;
  for (ArenaList& list : lists_) {
    for (Arena* arena = list.tenured; arena; arena = arena->next) {
      if (!arena->swept) sweep(list, arena);
      for (uint64_t& word : arena->markBits) word = 0;
    }
    list.freeList = nullptr;
  }
  rt.sweepCaches();
  MarkingTracer trc(*this);
  rt.traceRoots(trc);
  while (!markStack_.empty()) {
    Cell* cell = markStack_.back();
    markStack_.pop_back();
    traceChildren(trc, cell);
  }
  for (ArenaList& list : lists_) {
    for (Arena* arena = list.tenured; arena; arena = arena->next) arena->swept = false;
    list.sweepNext = list.tenured;
  }
  tenuredSinceMajor_ = 0;
}

// ---- the interpreter ----

Shape* Runtime::childShape(Shape* parent, StringCell* name) {
  for (Shape* kid = parent->kids_.first; kid; kid = kid->kids_.sibling)
    if (kid->name_ == name) return kid;
  Shape* kid = heap_.makeTenured<Shape>(parent, name);
  kid->kids_.sibling = parent->kids_.first;
  parent->kids_.first = kid;
  return kid;
}

Value Runtime::getProperty(PlainObject* object, StringCell* name, PropertyIC& ic) {
  if (object->shape_ == ic.shape) {
    ++ic.hits;
    return object->slot(ic.slot);
  }
  ++ic.misses;
  const Shape* found = object->shape_->lookup(name);
  if (!found) return Value();
  ic.shape = object->shape_;
  ic.slot = found->slot_;
  return object->slot(ic.slot);
}

void Runtime::setProperty(PlainObject* object, StringCell* name, Value v, PropertyIC& ic) {
  ++object->writes_;
  heap_.writeBarrier(object, v);
  if (object->shape_ != ic.shape) {
    ++ic.misses;
    ic.shape = object->shape_;
    const Shape* found = object->shape_->lookup(name);
    ic.added = found ? nullptr : childShape(object->shape_, name);
    ic.slot = found ? found->slot_ : ic.added->slot_;
  } else
    ++ic.hits;
  if (ic.added) {
    object->shape_ = ic.added;
    if (ic.slot >= PlainObject::FixedSlots && ic.slot - PlainObject::FixedSlots >= object->capacity_) {
      uint32_t larger = object->capacity_ ? 2 * object->capacity_ : 4;
      Value* slots = heap::Alloc<Value>().allocate(larger);
      for (uint32_t i = 0; i < larger; ++i) slots[i] = i < object->capacity_ ? object->slots_[i] : Value();
      object->finalize();
      object->slots_ = slots;
      object->capacity_ = larger;
    }
  }
  object->slot(ic.slot) = v;
}

Value Runtime::add(Value a, Value b) {
  if (a.is<StringCell>() && b.is<StringCell>()) {
    StringCell *l = a.as<StringCell>(), *r = b.as<StringCell>();
    StringCell* s = heap_.make<StringCell>(l->length() + r->length());
    s->lengthAndFlags_ |= StringCell::RopeFlag;
    s->rope_.left = l;
    s->rope_.right = r;
    return Value::fromCell(s);
  }
  return Value::fromCell(heap_.make<NumberCell>(number(a) + number(b)));
}

Value Runtime::run(Script* main, Value argument) {
  frames_.push_back({main, main->code.data(), stack_, nullptr});
  stack_[0] = argument;
  for (int i = 1; i < main->locals; ++i) stack_[i] = Value();
  top_ = stack_ + main->locals;
  for (;;) {
    Frame& f = frames_.back();
    ++dispatched_;
    switch (Op(*f.pc++)) {
      case Op::Const: *top_++ = f.script->constants[*f.pc++]; break;
      case Op::Undef: *top_++ = Value(); break;
      case Op::GetLocal: *top_++ = f.base[*f.pc++]; break;
      case Op::SetLocal: f.base[*f.pc++] = *--top_; break;
      case Op::NewEnv: f.environment = heap_.make<Environment>(f.environment); break;
      case Op::GetEnv: *top_++ = f.environment->slots_[*f.pc++]; break;
      case Op::SetEnv: {
        Value v = *--top_;
        heap_.writeBarrier(f.environment, v);
        f.environment->slots_[*f.pc++] = v;
        break;
      }
      case Op::Add: {
        Value b = *--top_, a = top_[-1];
        top_[-1] = a.isInt32() && b.isInt32() ? Value::fromInt32((a.toInt32() + b.toInt32()) & 0xffffff) : add(a, b);
        break;
      }
      case Op::Sub: --top_, top_[-1] = Value::fromInt32(top_[-1].toInt32() - top_[0].toInt32()); break;
      case Op::Mul: {
        Value b = *--top_, a = top_[-1];
        top_[-1] = Value::fromCell(heap_.make<NumberCell>(number(a) * number(b)));
        break;
      }
      case Op::Less: --top_, top_[-1] = Value::fromBoolean(number(top_[-1]) < number(top_[0])); break;
      case Op::JumpIfFalse: f.pc = (--top_)->isTrue() ? f.pc + 1 : f.script->code.data() + *f.pc; break;
      case Op::Jump:
        f.pc = f.script->code.data() + *f.pc;
        if (heap_.needsMinor()) {
          heap_.minorGC(*this);
          if (heap_.needsMajor()) heap_.majorGC(*this);
        }
        break;
      case Op::NewObject: *top_++ = Value::fromCell(heap_.make<PlainObject>(emptyShape_)); break;
      case Op::GetProp: {
        StringCell* name = f.script->constants[f.pc[0]].as<StringCell>();
        PropertyIC& ic = f.script->caches[f.pc[1]];
        f.pc += 2;
        top_[-1] = top_[-1].is<PlainObject>() ? getProperty(top_[-1].as<PlainObject>(), name, ic) : Value();
        break;
      }
      case Op::SetProp: {
        StringCell* name = f.script->constants[f.pc[0]].as<StringCell>();
        PropertyIC& ic = f.script->caches[f.pc[1]];
        f.pc += 2;
        --top_;
        setProperty(top_[-1].as<PlainObject>(), name, top_[0], ic);
        break;
      }
      case Op::NewArray: *top_++ = Value::fromCell(heap_.make<ArrayObject>()); break;
      case Op::Push: {
        Value v = *--top_;
        heap_.writeBarrier(top_[-1].toCell(), v);
        top_[-1].as<ArrayObject>()->push(v);
        break;
      }
      case Op::GetElem: {
        uint32_t i = uint32_t((--top_)->toInt32());
        ArrayObject* a = top_[-1].as<ArrayObject>();
        top_[-1] = i < a->length_ ? a->elements_[i] : Value();
        break;
      }
      case Op::SetElem: {
        ArrayObject* a = top_[-3].as<ArrayObject>();
        uint32_t i = uint32_t(top_[-2].toInt32()) % a->length_;
        heap_.writeBarrier(a, top_[-1]);
        a->elements_[i] = top_[-1];
        top_ -= 3;
        break;
      }
      case Op::Length: top_[-1] = Value::fromInt32(int32_t(top_[-1].as<ArrayObject>()->length_)); break;
      case Op::MakeClosure: *top_++ = Value::fromCell(heap_.make<Closure>(scripts_[*f.pc++].get(), f.environment)); break;
      case Op::Call: {
        Script* callee = scripts_[*f.pc++].get();
        Environment* environment = nullptr;
        if (callee->arguments == 0xff) { // what is called lies on the stack
          Closure* closure = (--top_)->as<Closure>();
          callee = closure->script_;
          environment = closure->environment_;
          ++closure->calls_;
        }
        ++callee->runs;
        Value* base = top_ - callee->arguments;
        for (int i = callee->arguments; i < callee->locals; ++i) *top_++ = Value();
        frames_.push_back({callee, callee->code.data(), base, environment});
        break;
      }
      case Op::Return: {
        Value result = top_[-1];
        top_ = f.base;
        frames_.pop_back();
        if (frames_.empty()) return result;
        *top_++ = result;
        break;
      }
      case Op::Pop: --top_; break;
      case Op::Hash: {
        StringCell* s = top_[-1].as<StringCell>();
        if (s->isRope()) s->flatten(flattening_);
        top_[-1] = Value::fromInt32(int32_t(s->ensureHash() & 0xffff));
        break;
      }
      case Op::GetCache: *top_++ = Value::fromCell(cache_); break;
      case Op::Random: *top_++ = Value::fromInt32(int32_t(tr_rand() >> 50)); break;
    }
  }
}

// ---- the assembler: words, numbers, "text", and :labels ----

Script* Runtime::assemble(const char* name, int arguments, int locals, std::string_view text) {
  scripts_.push_back(heap::make<Script>());
  Script* s = scripts_.back().get();
  s->name = name;
  s->arguments = uint8_t(arguments);
  s->locals = uint8_t(locals);
  struct { std::string_view name; size_t at; } labels[16], jumps[16];
  int nlabels = 0, njumps = 0;
  auto constant = [&](Value v) { s->constants.push_back(v); return uint8_t(s->constants.size() - 1); };
  auto word = [&]() {
    size_t from = text.find_first_not_of(" \n"), to = text.find_first_of(" \n", from);
    if (from == text.npos) return std::string_view();
    std::string_view w = text.substr(from, to - from);
    text.remove_prefix(std::min(to, text.size()));
    return w;
  };
  auto integer = [](std::string_view w) { int n = 0; for (char c : w) n = n * 10 + (c - '0'); return n; };
  for (std::string_view w = word(); !w.empty(); w = word()) {
    if (w[0] == ':') {
      labels[nlabels++] = {w.substr(1), s->code.size()};
      continue;
    }
    size_t op = 0;
    while (op < std::size(opNames) && w != opNames[op]) ++op;
    assert(op < std::size(opNames));
    s->code.push_back(uint8_t(op));
    switch (Op(op)) {
      case Op::Const: {
        std::string_view v = word();
        s->code.push_back(constant(v[0] == '"' ? Value::fromCell(atomize(v.substr(1, v.size() - 2))) : Value::fromInt32(integer(v))));
        break;
      }
      case Op::GetProp: case Op::SetProp:
        s->code.push_back(constant(Value::fromCell(atomize(word()))));
        s->code.push_back(uint8_t(s->caches.size()));
        s->caches.push_back(PropertyIC{});
        break;
      case Op::Jump: case Op::JumpIfFalse: jumps[njumps++] = {word(), s->code.size()}, s->code.push_back(0); break;
      case Op::GetLocal: case Op::SetLocal: case Op::GetEnv: case Op::SetEnv: s->code.push_back(uint8_t(integer(word()))); break;
      case Op::Call: case Op::MakeClosure: {
        Script* callee = find(word());
        s->code.push_back(uint8_t(std::find_if(scripts_.begin(), scripts_.end(), [&](auto& p) { return p.get() == callee; }) - scripts_.begin()));
        break;
      }
      default: break;
    }
  }
  for (int j = 0; j < njumps; ++j)
    for (int l = 0; l < nlabels; ++l)
      if (labels[l].name == jumps[j].name) s->code[jumps[j].at] = uint8_t(labels[l].at);
  return s;
}

} // namespace vm

int main(int argc, char** argv) {
  tr_init(argc, argv);
  std::unique_ptr<vm::Runtime> rt = heap::make<vm::Runtime>();
  rt->assemble("closure", 0xff, 0, "undef return"); // stands for the closure on the stack
  rt->assemble("tree", 1, 2,
               "object setlocal 1 getlocal 1 getlocal 0 setprop depth pop "
               "const 0 getlocal 0 less iffalse leaf "
               "getlocal 1 getlocal 0 const 1 sub call tree setprop left pop "
               "getlocal 1 getlocal 0 const 1 sub call tree setprop right pop "
               "jump end :leaf getlocal 1 random setprop key pop getlocal 1 const 5 setprop more pop getlocal 1 const 6 setprop last pop :end getlocal 1 return");
  rt->assemble("sum", 1, 1,
               "const 0 getlocal 0 getprop depth less iffalse leaf "
               "getlocal 0 getprop left call sum getlocal 0 getprop right call sum add return "
               ":leaf getlocal 0 getprop key getlocal 0 getprop last add return");
  rt->assemble("list", 1, 3,
               "undef setlocal 1 :again const 0 getlocal 0 less iffalse end "
               "object getlocal 0 setprop head getlocal 1 setprop tail setlocal 1 getlocal 0 const 1 sub setlocal 0 jump again :end getlocal 1 return");
  rt->assemble("numbers", 1, 4,
               "array setlocal 1 const 0 setlocal 2 :fill getlocal 2 getlocal 0 less iffalse sum "
               "getlocal 1 getlocal 2 getlocal 2 mul push pop getlocal 2 const 1 add setlocal 2 jump fill "
               ":sum const 0 setlocal 2 const 0 setlocal 3 :next getlocal 2 getlocal 1 length less iffalse end "
               "getlocal 3 getlocal 1 getlocal 2 getelem add setlocal 3 getlocal 2 const 1 add setlocal 2 jump next :end getlocal 3 return");
  rt->assemble("text", 1, 3,
               "const \"\" setlocal 1 :again const 0 getlocal 0 less iffalse end "
               "getlocal 1 const \"piece-\" const \"of-rope;\" add add setlocal 1 getlocal 0 const 1 sub setlocal 0 jump again :end getlocal 1 hash pop getlocal 1 return");
  rt->assemble("step", 0, 0, "getenv 0 const 1 add setenv 0 getenv 1 getenv 0 push pop getenv 0 return");
  rt->assemble("counter", 1, 2,
               "newenv const 0 setenv 0 array setenv 1 closure step setlocal 1 :again const 0 getlocal 0 less iffalse end "
               "getlocal 1 call closure pop getlocal 0 const 1 sub setlocal 0 jump again :end getlocal 1 return");
  vm::Script* main = rt->assemble("main", 1, 2,
                                  "cache random const 5 call tree setelem cache random const 12 call list setelem "
                                  "cache random const 9 call text setelem cache random const 7 call counter setelem "
                                  "cache random const 20 call numbers setelem const 0 setlocal 1 "
                                  "const 4 call tree call sum return");
  uint64_t turns = 0, sum = 0;
  while (tr_more()) {
    vm::Value v = rt->run(main, vm::Value::fromInt32(int32_t(turns & 15)));
    sum += v.isInt32() ? uint64_t(v.toInt32()) : 1;
    ++turns;
  }
  if (getenv("VERBOSE")) {
    const vm::GCStats& s = rt->heap().stats;
    printf("%lu turns, %lu instructions, sum %lu; %lu cells, %lu minor, %lu promoted, %lu barriers, %lu major, %lu marked, %lu swept\n", turns, rt->dispatched_, sum,
           s.allocated, s.minor, s.promoted, s.barriers, s.major, s.marked, s.swept);
  }
  tr_sink = sum;
  return 0;
}
