// A store of keys and values: a log, a skip list in an arena, tables of blocks with restart points and filters, levels of
// files in versions, iterators that merge iterators, compactions, a cache by hand-made hash chains, flat hash maps.
#include "../heap.hpp"
#include <emmintrin.h>
#include <algorithm>
#include <atomic>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); abort(); } } while (0)

// What is made by plain `new` in here are the bytes of strings; all else comes from these.
template <class T, class... Args> T* New(Args&&... args) {
  static heap_kind* const kind = heap_kind_of(heap::name_of<T>(), sizeof(T));
  void* place;
  if (heap_header* header = kind->given_back) {
    kind->given_back = header->next;
    place = header + 1;
  } else {
    place = heap::Alloc<T>().allocate(1);
  }
  return new (place) T(std::forward<Args>(args)...);
}
template <class T> using Vector = std::vector<T, heap::Alloc<T>>;

static inline size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

namespace absl {
namespace container_internal {

enum ctrl_t : int8_t { kEmpty = -128, kDeleted = -2, kSentinel = -1 };
using h2_t = uint8_t;

class BitMask {
 public:
  explicit BitMask(uint32_t mask) : mask_(mask) {}
  BitMask& operator++() { mask_ &= mask_ - 1; return *this; }
  explicit operator bool() const { return mask_ != 0; }
  int operator*() const { return __builtin_ctz(mask_); }
  BitMask begin() const { return *this; }
  BitMask end() const { return BitMask(0); }
  bool operator!=(const BitMask& o) const { return mask_ != o.mask_; }

 private:
  uint32_t mask_;
};

struct GroupSse2Impl {
  static constexpr size_t kWidth = 16;
  explicit GroupSse2Impl(const ctrl_t* pos) : ctrl(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pos))) {}
  BitMask Match(h2_t hash) const { return BitMask(uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_set1_epi8(char(hash)), ctrl)))); }
  BitMask MaskEmpty() const { return BitMask(uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_set1_epi8(char(kEmpty)), ctrl)))); }
  BitMask MaskEmptyOrDeleted() const { return BitMask(uint32_t(_mm_movemask_epi8(_mm_cmpgt_epi8(_mm_set1_epi8(char(kSentinel)), ctrl)))); }
  __m128i ctrl;
};
using Group = GroupSse2Impl;

template <class K, class V> union map_slot_type {
  std::pair<const K, V> value;
  std::pair<K, V> mutable_value;
  K key;
};

struct HashtablezInfo { size_t probes, inserts, rehashes; };
static HashtablezInfo hashtablez;

}  // namespace container_internal

template <class K, class V> class flat_hash_map {
  using slot_type = container_internal::map_slot_type<K, V>;
  using ctrl_t = container_internal::ctrl_t;
  using Group = container_internal::Group;

 public:
  flat_hash_map() { Resize(15); }
  size_t size() const { return size_; }
  V* find(const K& key) {
    const size_t i = FindIndex(key, Hash(key));
    return i == kNone ? nullptr : &slots_[i].value.second;
  }
  NOINLINE V& operator[](const K& key) {
    const size_t hash = Hash(key);
    size_t i = FindIndex(key, hash);
    if (i != kNone) return slots_[i].value.second;
    ++container_internal::hashtablez.inserts;
    i = FirstNonFull(hash);
    if (growth_left_ == 0 && ctrl_[i] != container_internal::kDeleted) {
      Resize(size_ <= capacity_ / 2 ? capacity_ : capacity_ * 2 + 1);
      i = FirstNonFull(hash);
    }
    ++size_;
    growth_left_ -= ctrl_[i] == container_internal::kEmpty;
    SetCtrl(i, ctrl_t(hash & 0x7f));
    new (&slots_[i].mutable_value) std::pair<K, V>(key, V());
    return slots_[i].value.second;
  }
  NOINLINE bool erase(const K& key) {
    const size_t i = FindIndex(key, Hash(key));
    if (i == kNone) return false;
    slots_[i].mutable_value.~pair();
    --size_;
    SetCtrl(i, container_internal::kDeleted);
    return true;
  }
  template <class F> void ForEach(F&& f) {
    for (size_t i = 0; i < capacity_; ++i)
      if (ctrl_[i] >= 0) f(slots_[i].value);
  }

 private:
  static constexpr size_t kNone = ~size_t(0);
  static size_t Hash(const K& key) {
    const unsigned __int128 m = (unsigned __int128)(uint64_t(key) ^ 0x9ddfea08eb382d69ull) * 0xdcb22ca68cb134edull;
    return size_t(m >> 64) ^ size_t(m);
  }
  NOINLINE size_t FindIndex(const K& key, size_t hash) const {
    for (size_t offset = (hash >> 7) & capacity_, step = 0;; offset = (offset + (step += Group::kWidth)) & capacity_) {
      const Group g(ctrl_ + offset);
      for (auto it = g.Match(container_internal::h2_t(hash & 0x7f)); it; ++it) {
        const size_t at = (offset + size_t(*it)) & capacity_;
        if (slots_[at].key == key) return at;
      }
      if (g.MaskEmpty()) return kNone;
      ++container_internal::hashtablez.probes;
    }
  }
  size_t FirstNonFull(size_t hash) const {
    for (size_t offset = (hash >> 7) & capacity_, step = 0;; offset = (offset + (step += Group::kWidth)) & capacity_) {
      const auto mask = Group(ctrl_ + offset).MaskEmptyOrDeleted();
      if (mask) return (offset + size_t(*mask)) & capacity_;
    }
  }
  void SetCtrl(size_t i, ctrl_t h) {
    ctrl_[i] = h;
    if (i < Group::kWidth - 1) ctrl_[capacity_ + 1 + i] = h;
  }
  // One block: the control bytes, their clones, the slots.
  struct Backing { Backing* next; size_t capacity; };
  static inline Backing* freed_[32];
  static size_t CtrlBytes(size_t capacity) { return RoundUp(capacity + 1 + Group::kWidth, 16); }
  NOINLINE void Resize(size_t capacity) {
    ctrl_t* old_ctrl = ctrl_;
    slot_type* old_slots = slots_;
    const size_t old_capacity = capacity_;
    Backing*& list = freed_[__builtin_ctzll(capacity + 1)];
    Backing* b = list;
    if (b) {
      list = b->next;
    } else {
      b = static_cast<Backing*>(calloc(1, sizeof(Backing) + CtrlBytes(capacity) + capacity * sizeof(slot_type)));
      char* at = reinterpret_cast<char*>(b + 1);
      tr_region("absl::container_internal::ctrl_t", at, CtrlBytes(capacity), 1);
      tr_region(heap::name_of<slot_type>(), at + CtrlBytes(capacity), capacity * sizeof(slot_type), sizeof(slot_type));
    }
    b->capacity = capacity;
    ctrl_ = reinterpret_cast<ctrl_t*>(b + 1);
    slots_ = reinterpret_cast<slot_type*>(reinterpret_cast<char*>(ctrl_) + CtrlBytes(capacity));
    capacity_ = capacity;
    memset(ctrl_, container_internal::kEmpty, CtrlBytes(capacity));
    ctrl_[capacity] = container_internal::kSentinel;
    growth_left_ = capacity - capacity / 8 - size_;
    if (!old_ctrl) return;
    ++container_internal::hashtablez.rehashes;
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old_ctrl[i] < 0) continue;
      const size_t hash = Hash(old_slots[i].key), to = FirstNonFull(hash);
      SetCtrl(to, ctrl_t(hash & 0x7f));
      new (&slots_[to].mutable_value) std::pair<K, V>(std::move(old_slots[i].mutable_value));
      old_slots[i].mutable_value.~pair();
    }
    b = reinterpret_cast<Backing*>(old_ctrl) - 1;
    b->next = freed_[__builtin_ctzll(old_capacity + 1)];
    freed_[__builtin_ctzll(old_capacity + 1)] = b;
  }

  ctrl_t* ctrl_ = nullptr;
  slot_type* slots_ = nullptr;
  size_t size_ = 0, capacity_ = 0, growth_left_ = 0;
};

}  // namespace absl

namespace leveldb {

class Slice {
 public:
  Slice() : data_(""), size_(0) {}
  Slice(const char* d, size_t n) : data_(d), size_(n) {}
  Slice(const std::string& s) : data_(s.data()), size_(s.size()) {}
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  char operator[](size_t n) const { return data_[n]; }
  void remove_prefix(size_t n) { data_ += n; size_ -= n; }
  std::string ToString() const { return std::string(data_, size_); }
  int compare(const Slice& b) const {
    const size_t min_len = std::min(size_, b.size_);
    for (size_t i = 0; i < min_len; ++i)
      if (data_[i] != b.data_[i]) return uint8_t(data_[i]) < uint8_t(b.data_[i]) ? -1 : 1;
    return size_ < b.size_ ? -1 : size_ > b.size_;
  }
  bool operator==(const Slice& b) const { return size_ == b.size_ && compare(b) == 0; }

 private:
  const char* data_;
  size_t size_;
};

// ---- Coding ----

inline void EncodeFixed32(char* dst, uint32_t v) { memcpy(dst, &v, sizeof v); }
inline void EncodeFixed64(char* dst, uint64_t v) { memcpy(dst, &v, sizeof v); }
inline uint32_t DecodeFixed32(const char* p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }
inline uint64_t DecodeFixed64(const char* p) { uint64_t v; memcpy(&v, p, sizeof v); return v; }
inline void PutFixed32(std::string* dst, uint32_t v) { char b[4]; EncodeFixed32(b, v); dst->append(b, 4); }
inline void PutFixed64(std::string* dst, uint64_t v) { char b[8]; EncodeFixed64(b, v); dst->append(b, 8); }
inline char* EncodeVarint32(char* dst, uint32_t v) {
  uint8_t* ptr = reinterpret_cast<uint8_t*>(dst);
  for (; v >= 128; v >>= 7) *ptr++ = uint8_t(v | 128);
  *ptr++ = uint8_t(v);
  return reinterpret_cast<char*>(ptr);
}
inline void PutVarint32(std::string* dst, uint32_t v) { char b[5]; dst->append(b, size_t(EncodeVarint32(b, v) - b)); }
inline const char* GetVarint32Ptr(const char* p, const char* limit, uint32_t* value) {
  uint32_t result = 0;
  for (uint32_t shift = 0; shift <= 28 && p < limit; shift += 7) {
    const uint32_t byte = uint8_t(*p++);
    result |= (byte & 127) << shift;
    if (!(byte & 128)) { *value = result; return p; }
  }
  return nullptr;
}
inline void PutLengthPrefixedSlice(std::string* dst, const Slice& v) { PutVarint32(dst, uint32_t(v.size())); dst->append(v.data(), v.size()); }
inline bool GetLengthPrefixedSlice(Slice* input, Slice* result) {
  uint32_t len = 0;
  const char* p = GetVarint32Ptr(input->data(), input->data() + input->size(), &len);
  if (!p) return false;
  *result = Slice(p, len);
  input->remove_prefix(size_t(p + len - input->data()));
  return true;
}
inline uint32_t HashOf(const char* data, size_t n, uint32_t seed) {
  const uint32_t m = 0xc6a4a793;
  uint32_t h = seed ^ uint32_t(n * m);
  for (; n >= 4; n -= 4, data += 4) { h += DecodeFixed32(data); h *= m; h ^= h >> 16; }
  for (; n > 0; --n) { h += uint8_t(data[n - 1]); h *= m; }
  return h ^ (h >> 24);
}
static uint32_t crc_table[256];
inline uint32_t Crc32c(const char* data, size_t n) {
  uint32_t l = ~0u;
  for (size_t i = 0; i < n; ++i) l = crc_table[(l ^ uint8_t(data[i])) & 0xff] ^ (l >> 8);
  return ~l;
}

// ---- Keys ----

using SequenceNumber = uint64_t;
enum ValueType { kTypeDeletion = 0, kTypeValue = 1 };
static const SequenceNumber kMaxSequenceNumber = (1ull << 56) - 1;
inline uint64_t PackSequenceAndType(uint64_t seq, ValueType t) { return (seq << 8) | t; }
inline Slice ExtractUserKey(const Slice& k) { return Slice(k.data(), k.size() - 8); }

class Comparator {
 public:
  virtual ~Comparator() {}
  virtual int Compare(const Slice& a, const Slice& b) const = 0;
  virtual const char* Name() const = 0;
};
using UserCompare = std::function<int(const Slice&, const Slice&)>;
class InternalKeyComparator : public Comparator {
 public:
  explicit InternalKeyComparator(UserCompare c) : user_comparator_(std::move(c)) {}
  int Compare(const Slice& a, const Slice& b) const override {
    ++calls_;
    int r = user_comparator_(ExtractUserKey(a), ExtractUserKey(b));
    if (r == 0) {
      const uint64_t anum = DecodeFixed64(a.data() + a.size() - 8), bnum = DecodeFixed64(b.data() + b.size() - 8);
      r = anum > bnum ? -1 : anum < bnum;
    }
    return r;
  }
  const char* Name() const override { return "leveldb.InternalKeyComparator"; }
  const UserCompare& user_comparator() const { return user_comparator_; }

 private:
  UserCompare user_comparator_;
  mutable uint64_t calls_ = 0;
};
class LookupKey {
 public:
  LookupKey(const Slice& user_key, SequenceNumber s) {
    char* dst = EncodeVarint32(space_, uint32_t(user_key.size() + 8));
    kstart_ = dst;
    memcpy(dst, user_key.data(), user_key.size());
    EncodeFixed64(dst + user_key.size(), PackSequenceAndType(s, kTypeValue));
    end_ = dst + user_key.size() + 8;
  }
  Slice memtable_key() const { return Slice(space_, size_t(end_ - space_)); }
  Slice internal_key() const { return Slice(kstart_, size_t(end_ - kstart_)); }
  Slice user_key() const { return Slice(kstart_, size_t(end_ - kstart_) - 8); }

 private:
  const char *kstart_, *end_;
  char space_[200];
};

class Iterator {
 public:
  Iterator() { cleanup_head_.function = nullptr; cleanup_head_.next = nullptr; }
  Iterator(const Iterator&) = delete;
  virtual ~Iterator() {
    if (cleanup_head_.function) (*cleanup_head_.function)(cleanup_head_.arg1, cleanup_head_.arg2);
  }
  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void Seek(const Slice& target) = 0;
  virtual void Next() = 0;
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;
  using CleanupFunction = void (*)(void* arg1, void* arg2);
  void RegisterCleanup(CleanupFunction f, void* a1, void* a2) { cleanup_head_.function = f; cleanup_head_.arg1 = a1; cleanup_head_.arg2 = a2; }

 private:
  struct CleanupNode { CleanupFunction function; void *arg1, *arg2; CleanupNode* next; };
  CleanupNode cleanup_head_;
};

// ---- The arena, the skip list ----

class Arena {
 public:
  ~Arena() {
    for (void* b : blocks_) heap_give_back(b);
  }
  char* Allocate(size_t bytes) {
    if (bytes > alloc_bytes_remaining_) {
      alloc_ptr_ = static_cast<char*>(NewBlock("char", 1, kBlockSize));
      alloc_bytes_remaining_ = kBlockSize;
    }
    char* result = alloc_ptr_;
    alloc_ptr_ += bytes;
    alloc_bytes_remaining_ -= bytes;
    return result;
  }
  // Nodes of one height stand together.
  char* AllocateNode(const char* type, size_t bytes, int height) {
    NodeSlab& slab = slabs_[height];
    if (slab.left == 0) {
      slab.left = 32;
      slab.ptr = static_cast<char*>(NewBlock(type, bytes, bytes * 32));
    }
    --slab.left;
    char* result = slab.ptr;
    slab.ptr += bytes;
    return result;
  }
  size_t MemoryUsage() const { return memory_usage_; }

 private:
  static constexpr size_t kBlockSize = 4096;
  struct NodeSlab { char* ptr = nullptr; int left = 0; };
  void* NewBlock(const char* type, size_t element, size_t bytes) {
    void* b = heap_take(type, element, bytes);
    blocks_.push_back(b);
    memory_usage_ += bytes + sizeof(char*);
    return b;
  }
  char* alloc_ptr_ = nullptr;
  size_t alloc_bytes_remaining_ = 0, memory_usage_ = 0;
  NodeSlab slabs_[13];
  Vector<void*> blocks_;
};

class Random {
 public:
  explicit Random(uint32_t s) : seed_(s & 0x7fffffffu) {}
  uint32_t Next() {
    const uint64_t product = uint64_t(seed_) * 16807;
    seed_ = uint32_t((product >> 31) + (product & 2147483647));
    if (seed_ > 2147483647) seed_ -= 2147483647;
    return seed_;
  }
  bool OneIn(int n) { return Next() % uint32_t(n) == 0; }

 private:
  uint32_t seed_;
};

template <typename Key, class Cmp> class SkipList {
 private:
  struct Node;

 public:
  SkipList(Cmp cmp, Arena* arena) : compare_(cmp), arena_(arena), head_(NewNode(0, kMaxHeight)), max_height_(1), rnd_(0xdeadbeef) {
    for (int i = 0; i < kMaxHeight; i++) head_->SetNext(i, nullptr);
  }
  NOINLINE void Insert(const Key& key) {
    Node* prev[kMaxHeight];
    FindGreaterOrEqual(key, prev);
    int height = 1;
    while (height < kMaxHeight && rnd_.OneIn(4)) height++;
    const int max = max_height_.load(std::memory_order_relaxed);
    if (height > max) {
      for (int i = max; i < height; i++) prev[i] = head_;
      max_height_.store(height, std::memory_order_relaxed);
    }
    Node* x = NewNode(key, height);
    for (int i = 0; i < height; i++) {
      x->NoBarrier_SetNext(i, prev[i]->NoBarrier_Next(i));
      prev[i]->SetNext(i, x);
    }
  }
  class Iterator {
   public:
    explicit Iterator(const SkipList* list) : list_(list), node_(nullptr) {}
    bool Valid() const { return node_ != nullptr; }
    const Key& key() const { return node_->key; }
    void Next() { node_ = node_->Next(0); }
    void Seek(const Key& target) { node_ = list_->FindGreaterOrEqual(target, nullptr); }
    void SeekToFirst() { node_ = list_->head_->Next(0); }

   private:
    const SkipList* list_;
    Node* node_;
  };

 private:
  enum { kMaxHeight = 12 };
  struct Node {
    explicit Node(const Key& k) : key(k) {}
    Key const key;
    Node* Next(int n) { return next_[n].load(std::memory_order_acquire); }
    void SetNext(int n, Node* x) { next_[n].store(x, std::memory_order_release); }
    Node* NoBarrier_Next(int n) { return next_[n].load(std::memory_order_relaxed); }
    void NoBarrier_SetNext(int n, Node* x) { next_[n].store(x, std::memory_order_relaxed); }

   private:
    std::atomic<Node*> next_[0];  // as many as the node is high
  };
  Node* NewNode(const Key& key, int height) {
    char* const memory = arena_->AllocateNode(heap::name_of<Node>(), sizeof(Node) + sizeof(std::atomic<Node*>) * size_t(height), height);
    return new (memory) Node(key);
  }
  NOINLINE Node* FindGreaterOrEqual(const Key& key, Node** prev) const {
    Node* x = head_;
    int level = max_height_.load(std::memory_order_relaxed) - 1;
    while (true) {
      Node* next = x->Next(level);
      if (next != nullptr && compare_(next->key, key) < 0) {
        x = next;
      } else {
        if (prev != nullptr) prev[level] = x;
        if (level == 0) return next;
        level--;
      }
    }
  }
  Cmp const compare_;
  Arena* const arena_;
  Node* const head_;
  std::atomic<int> max_height_;
  Random rnd_;
};

static Slice GetLengthPrefixed(const char* data) {
  uint32_t len = 0;
  const char* p = GetVarint32Ptr(data, data + 5, &len);
  return Slice(p, len);
}

class MemTable {
  struct KeyComparator {
    const InternalKeyComparator* comparator;
    int operator()(const char* a, const char* b) const { return comparator->Compare(GetLengthPrefixed(a), GetLengthPrefixed(b)); }
  };
  using Table = SkipList<const char*, KeyComparator>;

 public:
  explicit MemTable(const InternalKeyComparator* c) : comparator_{c}, refs_(0), table_(comparator_, &arena_) {}
  void Ref() { ++refs_; }
  void Unref() { if (--refs_ <= 0) { this->~MemTable(); heap_give_back(this); } }
  size_t ApproximateMemoryUsage() { return arena_.MemoryUsage(); }
  NOINLINE void Add(SequenceNumber s, ValueType type, const Slice& key, const Slice& value) {
    char head[5], tail[5];
    const size_t n1 = size_t(EncodeVarint32(head, uint32_t(key.size() + 8)) - head), n2 = size_t(EncodeVarint32(tail, uint32_t(value.size())) - tail);
    char* buf = arena_.Allocate(n1 + key.size() + 8 + n2 + value.size());
    char* p = EncodeVarint32(buf, uint32_t(key.size() + 8));
    memcpy(p, key.data(), key.size());
    EncodeFixed64(p + key.size(), PackSequenceAndType(s, type));
    p = EncodeVarint32(p + key.size() + 8, uint32_t(value.size()));
    memcpy(p, value.data(), value.size());
    table_.Insert(buf);
  }
  NOINLINE bool Get(const LookupKey& key, const UserCompare& compare, std::string* value, bool* found) {
    Table::Iterator iter(&table_);
    iter.Seek(key.memtable_key().data());
    if (!iter.Valid()) return false;
    const Slice k = GetLengthPrefixed(iter.key());
    if (compare(ExtractUserKey(k), key.user_key()) != 0) return false;
    *found = (DecodeFixed64(k.data() + k.size() - 8) & 0xff) == kTypeValue;
    if (*found) {
      const Slice v = GetLengthPrefixed(k.data() + k.size());
      value->assign(v.data(), v.size());
    }
    return true;
  }
  Iterator* NewIterator();

 private:
  friend class MemTableIterator;
  KeyComparator comparator_;
  int refs_;
  Arena arena_;
  Table table_;
};

class MemTableIterator : public Iterator {
 public:
  explicit MemTableIterator(MemTable::Table* table) : iter_(table) {}
  bool Valid() const override { return iter_.Valid(); }
  void Seek(const Slice& k) override {
    tmp_.clear();
    PutVarint32(&tmp_, uint32_t(k.size()));
    tmp_.append(k.data(), k.size());
    iter_.Seek(tmp_.data());
  }
  void SeekToFirst() override { iter_.SeekToFirst(); }
  void Next() override { iter_.Next(); }
  Slice key() const override { return GetLengthPrefixed(iter_.key()); }
  Slice value() const override { const Slice k = GetLengthPrefixed(iter_.key()); return GetLengthPrefixed(k.data() + k.size()); }

 private:
  MemTable::Table::Iterator iter_;
  std::string tmp_;
};
Iterator* MemTable::NewIterator() { return New<MemTableIterator>(&table_); }

// ---- The cache: a hash table by hand, two lists ----

struct LRUHandle {
  void* value;
  void (*deleter)(const Slice&, void* value);
  LRUHandle *next_hash, *next, *prev;
  size_t charge, key_length;
  bool in_cache;
  uint32_t refs, hash;
  char key_data[0];
  Slice key() const { return Slice(key_data, key_length); }
};

class HandleTable {
 public:
  HandleTable() : length_(0), elems_(0), list_(nullptr) { Resize(); }
  LRUHandle* Lookup(const Slice& key, uint32_t hash) { return *FindPointer(key, hash); }
  LRUHandle* Insert(LRUHandle* h) {
    LRUHandle** ptr = FindPointer(h->key(), h->hash);
    LRUHandle* old = *ptr;
    h->next_hash = old == nullptr ? nullptr : old->next_hash;
    *ptr = h;
    if (old == nullptr && ++elems_ > length_) Resize();
    return old;
  }
  LRUHandle* Remove(const Slice& key, uint32_t hash) {
    LRUHandle** ptr = FindPointer(key, hash);
    LRUHandle* result = *ptr;
    if (result != nullptr) { *ptr = result->next_hash; --elems_; }
    return result;
  }

 private:
  NOINLINE LRUHandle** FindPointer(const Slice& key, uint32_t hash) {
    LRUHandle** ptr = &list_[hash & (length_ - 1)];
    while (*ptr != nullptr && ((*ptr)->hash != hash || !(key == (*ptr)->key()))) ptr = &(*ptr)->next_hash;
    return ptr;
  }
  void Resize() {
    uint32_t new_length = 4;
    while (new_length < elems_) new_length *= 2;
    LRUHandle** new_list = heap::Alloc<LRUHandle*>().allocate(new_length);
    memset(new_list, 0, sizeof(new_list[0]) * new_length);
    for (uint32_t i = 0; i < length_; i++)
      for (LRUHandle *h = list_[i], *next; h != nullptr; h = next) {
        next = h->next_hash;
        LRUHandle** ptr = &new_list[h->hash & (new_length - 1)];
        h->next_hash = *ptr;
        *ptr = h;
      }
    heap::Alloc<LRUHandle*>().deallocate(list_, length_);
    list_ = new_list;
    length_ = new_length;
  }
  uint32_t length_, elems_;
  LRUHandle** list_;
};

class LRUCache {
 public:
  LRUCache() { lru_.next = lru_.prev = &lru_; in_use_.next = in_use_.prev = &in_use_; }
  void SetCapacity(size_t capacity) { capacity_ = capacity; }
  NOINLINE LRUHandle* Insert(const Slice& key, uint32_t hash, void* value, size_t charge, void (*deleter)(const Slice&, void*)) {
    const size_t bytes = sizeof(LRUHandle) + key.size();
    LRUHandle* e = static_cast<LRUHandle*>(heap_take("leveldb::LRUHandle", bytes, bytes));
    e->value = value; e->deleter = deleter; e->charge = charge; e->key_length = key.size(); e->hash = hash;
    e->in_cache = true;
    e->refs = 2;
    memcpy(e->key_data, key.data(), key.size());
    Append(&in_use_, e);
    usage_ += charge;
    FinishErase(table_.Insert(e));
    while (usage_ > capacity_ && lru_.next != &lru_) {
      LRUHandle* old = lru_.next;
      FinishErase(table_.Remove(old->key(), old->hash));
    }
    return e;
  }
  NOINLINE LRUHandle* Lookup(const Slice& key, uint32_t hash) {
    LRUHandle* e = table_.Lookup(key, hash);
    ++(e ? hits_ : misses_);
    if (e != nullptr) {
      if (e->refs == 1 && e->in_cache) { Remove(e); Append(&in_use_, e); }
      e->refs++;
    }
    return e;
  }
  void Release(LRUHandle* e) {
    CHECK(e->refs > 0);
    if (--e->refs == 0) {
      (*e->deleter)(e->key(), e->value);
      heap_give_back(e);
    } else if (e->in_cache && e->refs == 1) {
      Remove(e);
      Append(&lru_, e);
    }
  }
  uint64_t hits_ = 0, misses_ = 0;

 private:
  static void Remove(LRUHandle* e) { e->next->prev = e->prev; e->prev->next = e->next; }
  static void Append(LRUHandle* list, LRUHandle* e) { e->next = list; e->prev = list->prev; e->prev->next = e; e->next->prev = e; }
  void FinishErase(LRUHandle* e) {
    if (e == nullptr) return;
    Remove(e);
    e->in_cache = false;
    usage_ -= e->charge;
    Release(e);
  }
  size_t capacity_ = 0, usage_ = 0;
  LRUHandle lru_, in_use_;
  HandleTable table_;
};
static const int kNumShardBits = 2, kNumShards = 1 << kNumShardBits;
struct ShardedLRUCache {
  LRUCache shard_[kNumShards];
  LRUCache& ShardOf(uint32_t hash) { return shard_[hash >> (32 - kNumShardBits)]; }
};
static ShardedLRUCache* block_cache;

// ---- Blocks and tables ----

class Block {
 public:
  Block(char* data, size_t size) : data_(data), size_(size), restart_offset_(uint32_t(size - (1 + NumRestarts()) * sizeof(uint32_t))) {}
  ~Block() { heap_give_back(data_); }
  class Iter;
  Iterator* NewIterator(const Comparator* c);
  uint32_t NumRestarts() const { return DecodeFixed32(data_ + size_ - sizeof(uint32_t)); }

 private:
  char* data_;
  size_t size_;
  uint32_t restart_offset_;
};

static inline const char* DecodeEntry(const char* p, const char* limit, uint32_t* shared, uint32_t* non_shared, uint32_t* value_length) {
  if (limit - p < 3) return nullptr;
  *shared = uint8_t(p[0]);
  *non_shared = uint8_t(p[1]);
  *value_length = uint8_t(p[2]);
  if ((*shared | *non_shared | *value_length) < 128) return p + 3;
  if ((p = GetVarint32Ptr(p, limit, shared)) == nullptr) return nullptr;
  if ((p = GetVarint32Ptr(p, limit, non_shared)) == nullptr) return nullptr;
  return GetVarint32Ptr(p, limit, value_length);
}

class Block::Iter : public Iterator {
 public:
  Iter(const Comparator* c, const char* data, uint32_t restarts, uint32_t n) : comparator_(c), data_(data), restarts_(restarts), num_restarts_(n), current_(restarts), restart_index_(n) {}
  bool Valid() const override { return current_ < restarts_; }
  Slice key() const override { return key_; }
  Slice value() const override { return value_; }
  void Next() override { ParseNextKey(); }
  NOINLINE void Seek(const Slice& target) override {
    uint32_t left = 0, right = num_restarts_ - 1;
    while (left < right) {
      const uint32_t mid = (left + right + 1) / 2;
      uint32_t shared, non_shared = 0, value_length;
      const char* key_ptr = DecodeEntry(data_ + GetRestartPoint(mid), data_ + restarts_, &shared, &non_shared, &value_length);
      if (comparator_->Compare(Slice(key_ptr, non_shared), target) < 0) left = mid;
      else right = mid - 1;
    }
    SeekToRestartPoint(left);
    while (ParseNextKey() && comparator_->Compare(key_, target) < 0) {}
  }
  void SeekToFirst() override { SeekToRestartPoint(0); ParseNextKey(); }

 private:
  uint32_t GetRestartPoint(uint32_t i) const { return DecodeFixed32(data_ + restarts_ + i * sizeof(uint32_t)); }
  void SeekToRestartPoint(uint32_t i) { key_.clear(); restart_index_ = i; value_ = Slice(data_ + GetRestartPoint(i), 0); }
  NOINLINE bool ParseNextKey() {
    current_ = uint32_t(value_.data() + value_.size() - data_);
    const char *p = data_ + current_, *limit = data_ + restarts_;
    if (p >= limit) { current_ = restarts_; restart_index_ = num_restarts_; return false; }
    uint32_t shared, non_shared, value_length;
    p = DecodeEntry(p, limit, &shared, &non_shared, &value_length);
    CHECK(p != nullptr && key_.size() >= shared);
    key_.resize(shared);
    key_.append(p, non_shared);
    value_ = Slice(p + non_shared, value_length);
    while (restart_index_ + 1 < num_restarts_ && GetRestartPoint(restart_index_ + 1) < current_) ++restart_index_;
    return true;
  }
  const Comparator* const comparator_;
  const char* const data_;
  uint32_t const restarts_, num_restarts_;
  uint32_t current_, restart_index_;
  std::string key_;
  Slice value_;
};
Iterator* Block::NewIterator(const Comparator* c) { return New<Iter>(c, data_, restart_offset_, NumRestarts()); }

class BlockBuilder {
 public:
  explicit BlockBuilder(int interval) : interval_(interval) { Reset(); }
  void Reset() { buffer_.clear(); restarts_.clear(); restarts_.push_back(0); counter_ = 0; last_key_.clear(); }
  NOINLINE void Add(const Slice& key, const Slice& value) {
    size_t shared = 0;
    if (counter_ < interval_) {
      const size_t min_length = std::min(last_key_.size(), key.size());
      while (shared < min_length && last_key_[shared] == key[shared]) shared++;
    } else {
      restarts_.push_back(uint32_t(buffer_.size()));
      counter_ = 0;
    }
    const size_t non_shared = key.size() - shared;
    PutVarint32(&buffer_, uint32_t(shared));
    PutVarint32(&buffer_, uint32_t(non_shared));
    PutVarint32(&buffer_, uint32_t(value.size()));
    buffer_.append(key.data() + shared, non_shared);
    buffer_.append(value.data(), value.size());
    last_key_.resize(shared);
    last_key_.append(key.data() + shared, non_shared);
    counter_++;
  }
  Slice Finish() {
    for (uint32_t r : restarts_) PutFixed32(&buffer_, r);
    PutFixed32(&buffer_, uint32_t(restarts_.size()));
    return Slice(buffer_);
  }
  size_t CurrentSizeEstimate() const { return buffer_.size() + 4 * restarts_.size() + 4; }
  bool empty() const { return buffer_.empty(); }

 private:
  const int interval_;
  std::string buffer_, last_key_;
  Vector<uint32_t> restarts_;
  int counter_ = 0;
};

class BloomFilterPolicy {
 public:
  static constexpr size_t kBitsPerKey = 10, kProbes = 6;
  NOINLINE static void CreateFilter(const Vector<uint32_t>& hashes, std::string* dst) {
    const size_t bytes = RoundUp((hashes.size() * kBitsPerKey + 7) / 8, 128), bits = bytes * 8;
    dst->assign(bytes, '\0');
    char* array = &(*dst)[0];
    for (uint32_t h : hashes) {
      const uint32_t delta = (h >> 17) | (h << 15);
      for (size_t j = 0; j < kProbes; j++, h += delta) array[h % bits / 8] |= char(1 << (h % bits % 8));
    }
  }
  NOINLINE static bool KeyMayMatch(uint32_t h, const std::string& filter) {
    const size_t bits = filter.size() * 8;
    const char* array = filter.data();
    const uint32_t delta = (h >> 17) | (h << 15);
    for (size_t j = 0; j < kProbes; j++, h += delta)
      if ((array[h % bits / 8] & (1 << (h % bits % 8))) == 0) return false;
    return true;
  }
};

struct BlockHandle { uint32_t offset, size; };
static uint64_t next_cache_id;

class Table {
 public:
  Table(const Comparator* c, char* contents, size_t size, Block* index, std::string filter) : comparator_(c), cache_id_(++next_cache_id), contents_(contents), size_(size), index_block_(index), filter_(std::move(filter)) {}
  ~Table() {
    index_block_->~Block();
    heap_give_back(index_block_);
    heap_give_back(contents_);
  }
  static void DeleteCachedBlock(const Slice&, void* value) {
    static_cast<Block*>(value)->~Block();
    heap_give_back(value);
  }
  static void ReleaseBlock(void* arg, void* h) { static_cast<LRUCache*>(arg)->Release(static_cast<LRUHandle*>(h)); }
  NOINLINE static Iterator* BlockReader(void* arg, const Slice& index_value) {
    Table* table = static_cast<Table*>(arg);
    const BlockHandle handle{DecodeFixed32(index_value.data()), DecodeFixed32(index_value.data() + 4)};
    char buffer[16];
    EncodeFixed64(buffer, table->cache_id_);
    EncodeFixed64(buffer + 8, handle.offset);
    const Slice key(buffer, sizeof buffer);
    const uint32_t hash = HashOf(key.data(), key.size(), 0);
    LRUCache* cache = &block_cache->ShardOf(hash);
    LRUHandle* h = cache->Lookup(key, hash);
    if (h == nullptr) {
      const char* data = table->contents_ + handle.offset;
      CHECK(handle.offset + handle.size < table->size_);
      const bool verify_checksums = table->cache_id_ % 4 == 0;
      CHECK(!verify_checksums || Crc32c(data, handle.size) == DecodeFixed32(data + handle.size));
      char* copy = static_cast<char*>(heap_take("char", 1, RoundUp(handle.size, 512)));
      memcpy(copy, data, handle.size);
      h = cache->Insert(key, hash, New<Block>(copy, handle.size), handle.size, &DeleteCachedBlock);
    }
    Iterator* iter = static_cast<Block*>(h->value)->NewIterator(table->comparator_);
    iter->RegisterCleanup(&ReleaseBlock, cache, h);
    return iter;
  }
  Iterator* NewIterator();
  NOINLINE bool InternalGet(const Slice& k, const UserCompare& compare, std::string* value, bool* found) {
    const Slice user_key = ExtractUserKey(k);
    if (!BloomFilterPolicy::KeyMayMatch(HashOf(user_key.data(), user_key.size(), 0xbc9f1d34), filter_)) { ++filtered_; return false; }
    std::unique_ptr<Iterator> index(index_block_->NewIterator(comparator_));
    index->Seek(k);
    if (!index->Valid()) return false;
    std::unique_ptr<Iterator> block(BlockReader(this, index->value()));
    block->Seek(k);
    if (!block->Valid() || compare(ExtractUserKey(block->key()), user_key) != 0) return false;
    const Slice key = block->key();
    *found = (DecodeFixed64(key.data() + key.size() - 8) & 0xff) == kTypeValue;
    if (*found) value->assign(block->value().data(), block->value().size());
    return true;
  }
  uint64_t filtered_ = 0;

 private:
  const Comparator* comparator_;
  uint64_t cache_id_;
  char* contents_;
  size_t size_;
  Block* index_block_;
  std::string filter_;
};

// Knows whether an iterator is valid, and its key, without a virtual call.
class IteratorWrapper {
 public:
  void Set(Iterator* iter) { delete iter_; iter_ = iter; if (iter_) Update(); else valid_ = false; }
  ~IteratorWrapper() { delete iter_; }
  Iterator* iter() const { return iter_; }
  bool Valid() const { return valid_; }
  Slice key() const { return key_; }
  Slice value() const { return iter_->value(); }
  void Next() { iter_->Next(); Update(); }
  void Seek(const Slice& k) { iter_->Seek(k); Update(); }
  void SeekToFirst() { iter_->SeekToFirst(); Update(); }

 private:
  void Update() { valid_ = iter_->Valid(); if (valid_) key_ = iter_->key(); }
  Iterator* iter_ = nullptr;
  bool valid_ = false;
  Slice key_;
};

class TwoLevelIterator : public Iterator {
 public:
  using BlockFunction = Iterator* (*)(void*, const Slice&);
  TwoLevelIterator(Iterator* index, BlockFunction f, void* arg) : block_function_(f), arg_(arg) { index_iter_.Set(index); }
  bool Valid() const override { return data_iter_.Valid(); }
  Slice key() const override { return data_iter_.key(); }
  Slice value() const override { return data_iter_.value(); }
  void Seek(const Slice& target) override {
    index_iter_.Seek(target);
    InitDataBlock();
    if (data_iter_.iter()) data_iter_.Seek(target);
    SkipEmptyDataBlocksForward();
  }
  void SeekToFirst() override {
    index_iter_.SeekToFirst();
    InitDataBlock();
    if (data_iter_.iter()) data_iter_.SeekToFirst();
    SkipEmptyDataBlocksForward();
  }
  void Next() override { data_iter_.Next(); SkipEmptyDataBlocksForward(); }

 private:
  void SkipEmptyDataBlocksForward() {
    while (data_iter_.iter() == nullptr || !data_iter_.Valid()) {
      if (!index_iter_.Valid()) { data_iter_.Set(nullptr); return; }
      index_iter_.Next();
      InitDataBlock();
      if (data_iter_.iter()) data_iter_.SeekToFirst();
    }
  }
  void InitDataBlock() {
    if (!index_iter_.Valid()) { data_iter_.Set(nullptr); return; }
    const Slice handle = index_iter_.value();
    if (data_iter_.iter() && handle == data_block_handle_) return;
    data_block_handle_.assign(handle.data(), handle.size());
    data_iter_.Set(block_function_(arg_, handle));
  }
  BlockFunction block_function_;
  void* arg_;
  IteratorWrapper index_iter_, data_iter_;
  std::string data_block_handle_;
};
Iterator* Table::NewIterator() { return New<TwoLevelIterator>(index_block_->NewIterator(comparator_), &Table::BlockReader, this); }

class MergingIterator : public Iterator {
 public:
  MergingIterator(const Comparator* c, const Vector<Iterator*>& children) : comparator_(c), n_(int(children.size())) {
    children_ = heap::Alloc<IteratorWrapper>().allocate(children.size());
    for (int i = 0; i < n_; i++) { new (&children_[i]) IteratorWrapper; children_[i].Set(children[size_t(i)]); }
  }
  ~MergingIterator() override {
    for (int i = 0; i < n_; i++) children_[i].~IteratorWrapper();
    heap_give_back(children_);
  }
  bool Valid() const override { return current_ != nullptr; }
  void SeekToFirst() override { for (int i = 0; i < n_; i++) children_[i].SeekToFirst(); FindSmallest(); }
  void Seek(const Slice& target) override { for (int i = 0; i < n_; i++) children_[i].Seek(target); FindSmallest(); }
  void Next() override { current_->Next(); FindSmallest(); }
  Slice key() const override { return current_->key(); }
  Slice value() const override { return current_->value(); }

 private:
  NOINLINE void FindSmallest() {
    IteratorWrapper* smallest = nullptr;
    for (int i = 0; i < n_; i++) {
      IteratorWrapper* child = &children_[i];
      if (child->Valid() && (smallest == nullptr || comparator_->Compare(child->key(), smallest->key()) < 0)) smallest = child;
    }
    current_ = smallest;
  }
  const Comparator* comparator_;
  IteratorWrapper* children_;
  int n_;
  IteratorWrapper* current_ = nullptr;
};

// ---- Versions ----

static const int kNumLevels = 4;
struct FileMetaData {
  int refs = 0, allowed_seeks = 100;
  uint64_t number = 0, file_size = 0;
  std::string smallest, largest;
  std::shared_ptr<Table> table;
};

class VersionSet;
class Version {
 public:
  explicit Version(VersionSet* v) : vset_(v), next_(this), prev_(this) {}
  ~Version() {
    prev_->next_ = next_;
    next_->prev_ = prev_;
    for (auto& level : files_)
      for (FileMetaData* f : level)
        if (--f->refs <= 0) { f->~FileMetaData(); heap_give_back(f); }
  }
  void Ref() { ++refs_; }
  void Unref() { CHECK(vset_ != nullptr); if (--refs_ == 0) { this->~Version(); heap_give_back(this); } }

 private:
  friend class VersionSet;
  friend class DBImpl;
  friend class LevelFileNumIterator;
  VersionSet* const vset_;
  Version *next_, *prev_;
  int refs_ = 0;
  Vector<FileMetaData*> files_[kNumLevels];
  double compaction_score_ = -1;
  int compaction_level_ = -1;
};

struct VersionEdit {
  Vector<std::pair<int, uint64_t>> deleted_files_;
  Vector<std::pair<int, FileMetaData*>> new_files_;
};

struct BySmallestKey {
  const InternalKeyComparator* internal_comparator;
  bool operator()(FileMetaData* f1, FileMetaData* f2) const {
    const int r = internal_comparator->Compare(f1->smallest, f2->smallest);
    return r != 0 ? r < 0 : f1->number < f2->number;
  }
};
using FileSet = std::set<FileMetaData*, BySmallestKey, heap::Alloc<FileMetaData*>>;

NOINLINE static int FindFile(const InternalKeyComparator& icmp, const Vector<FileMetaData*>& files, const Slice& key) {
  uint32_t left = 0, right = uint32_t(files.size());
  while (left < right) {
    const uint32_t mid = (left + right) / 2;
    if (icmp.Compare(files[mid]->largest, key) < 0) left = mid + 1;
    else right = mid;
  }
  return int(right);
}

class LevelFileNumIterator : public Iterator {
 public:
  LevelFileNumIterator(const InternalKeyComparator& icmp, const Vector<FileMetaData*>* flist) : icmp_(icmp), flist_(flist), index_(uint32_t(flist->size())) {}
  bool Valid() const override { return index_ < flist_->size(); }
  void Seek(const Slice& target) override { index_ = uint32_t(FindFile(icmp_, *flist_, target)); }
  void SeekToFirst() override { index_ = 0; }
  void Next() override { index_++; }
  Slice key() const override { return (*flist_)[index_]->largest; }
  Slice value() const override { EncodeFixed64(value_buf_, reinterpret_cast<uint64_t>((*flist_)[index_])); return Slice(value_buf_, 8); }
  static Iterator* OpenFile(void*, const Slice& v) { return reinterpret_cast<FileMetaData*>(DecodeFixed64(v.data()))->table->NewIterator(); }

 private:
  const InternalKeyComparator& icmp_;
  const Vector<FileMetaData*>* const flist_;
  uint32_t index_;
  mutable char value_buf_[8];
};

class VersionSet {
 public:
  explicit VersionSet(const InternalKeyComparator* icmp) : icmp_(icmp), dummy_versions_(this) { AppendVersion(New<Version>(this)); }
  NOINLINE void LogAndApply(VersionEdit* edit) {
    Version* v = New<Version>(this);
    for (int level = 0; level < kNumLevels; ++level) {
      FileSet added(BySmallestKey{icmp_});
      for (auto& f : edit->new_files_) if (f.first == level) added.insert(f.second);
      auto keep = [&](FileMetaData* f) {
        for (const auto& d : edit->deleted_files_) if (d.first == level && d.second == f->number) return;
        Vector<FileMetaData*>* files = &v->files_[level];
        if (level > 0 && !files->empty()) CHECK(icmp_->Compare(files->back()->largest, f->smallest) < 0);
        f->refs++;
        files->push_back(f);
      };
      BySmallestKey cmp{icmp_};
      auto base = current_->files_[level].begin(), end = current_->files_[level].end();
      for (FileMetaData* f : added) {
        for (; base != end && cmp(*base, f); ++base) keep(*base);
        keep(f);
      }
      for (; base != end; ++base) keep(*base);
    }
    Finalize(v);
    AppendVersion(v);
  }
  void Finalize(Version* v) {
    double best_score = -1, limit = 40000;
    for (int level = 0; level < kNumLevels - 1; level++, limit *= 5) {
      uint64_t bytes = 0;
      for (const FileMetaData* f : v->files_[level]) bytes += f->file_size;
      const double score = level == 0 ? double(v->files_[level].size()) / 4 : double(bytes) / limit;
      if (score > best_score) { best_score = score; v->compaction_level_ = level; }
    }
    v->compaction_score_ = best_score;
  }
  void AppendVersion(Version* v) {
    if (current_) current_->Unref();
    current_ = v;
    v->Ref();
    v->prev_ = dummy_versions_.prev_;
    v->next_ = &dummy_versions_;
    v->prev_->next_ = v;
    v->next_->prev_ = v;
  }
  Version* current_ = nullptr;
  const InternalKeyComparator* icmp_;
  uint64_t next_file_number_ = 1;
  SequenceNumber last_sequence_ = 0;
  std::string compact_pointer_[kNumLevels];
  Version dummy_versions_;
};

class TableBuilder {
 public:
  explicit TableBuilder(const InternalKeyComparator* c) : comparator_(c), data_block_(8), index_block_(1) {}
  NOINLINE void Add(const Slice& key, const Slice& value) {
    if (num_entries_++ == 0) smallest_.assign(key.data(), key.size());
    last_key_.assign(key.data(), key.size());
    const Slice user = ExtractUserKey(key);
    hashes_.push_back(HashOf(user.data(), user.size(), 0xbc9f1d34));
    data_block_.Add(key, value);
    if (data_block_.CurrentSizeEstimate() >= 2048) Flush();
  }
  void Flush() {
    if (data_block_.empty()) return;
    const Slice raw = data_block_.Finish();
    char handle[8];
    EncodeFixed32(handle, uint32_t(file_.size()));
    EncodeFixed32(handle + 4, uint32_t(raw.size()));
    index_block_.Add(last_key_, Slice(handle, 8));
    file_.append(raw.data(), raw.size());
    PutFixed32(&file_, Crc32c(raw.data(), raw.size()));
    data_block_.Reset();
  }
  NOINLINE FileMetaData* Finish(uint64_t number) {
    Flush();
    FileMetaData* f = New<FileMetaData>();
    f->number = number;
    f->file_size = file_.size();
    f->smallest = smallest_;
    f->largest = last_key_;
    char* contents = static_cast<char*>(heap_take("char", 1, RoundUp(file_.size(), 4096)));
    memcpy(contents, file_.data(), file_.size());
    const Slice raw = index_block_.Finish();
    char* index = static_cast<char*>(heap_take("char", 1, RoundUp(raw.size(), 512)));
    memcpy(index, raw.data(), raw.size());
    std::string filter;
    BloomFilterPolicy::CreateFilter(hashes_, &filter);
    f->table = std::allocate_shared<Table>(heap::Alloc<Table>(), comparator_, contents, file_.size(), New<Block>(index, raw.size()), std::move(filter));
    file_.clear(); hashes_.clear(); index_block_.Reset();
    num_entries_ = 0;
    return f;
  }
  size_t FileSize() const { return file_.size(); }
  size_t NumEntries() const { return num_entries_; }

 private:
  const InternalKeyComparator* comparator_;
  BlockBuilder data_block_, index_block_;
  std::string file_, smallest_, last_key_;
  Vector<uint32_t> hashes_;
  size_t num_entries_ = 0;
};

// ---- The database ----

class WriteBatch {
 public:
  void Clear() { rep_.clear(); rep_.resize(12); }
  void Put(const Slice& k, const Slice& v) { Count(); rep_.push_back(char(kTypeValue)); PutLengthPrefixedSlice(&rep_, k); PutLengthPrefixedSlice(&rep_, v); }
  void Delete(const Slice& k) { Count(); rep_.push_back(char(kTypeDeletion)); PutLengthPrefixedSlice(&rep_, k); }
  std::string rep_ = std::string(12, '\0');

 private:
  void Count() { EncodeFixed32(&rep_[8], DecodeFixed32(&rep_[8]) + 1); }
};

struct CompactionStats { int64_t micros, bytes_read, bytes_written, dropped; };
struct HotKey { uint32_t reads, writes; uint64_t last_sequence; };
using Listener = std::function<void(int level, const FileMetaData&)>;

class DBImpl {
 public:
  explicit DBImpl(UserCompare c) : internal_comparator_(std::move(c)), builder_(&internal_comparator_) {
    versions_ = New<VersionSet>(&internal_comparator_);
    mem_ = New<MemTable>(&internal_comparator_);
    mem_->Ref();
  }
  NOINLINE void Write(WriteBatch* batch) {
    EncodeFixed64(&batch->rep_[0], versions_->last_sequence_ + 1);
    // The log: a sum, a length, what was written.
    if (log_.size() + batch->rep_.size() > 30000) log_.clear();
    PutFixed32(&log_, Crc32c(batch->rep_.data(), batch->rep_.size()));
    PutLengthPrefixedSlice(&log_, batch->rep_);
    Slice input(batch->rep_), key, value;
    input.remove_prefix(12);
    while (!input.empty()) {
      const ValueType tag = ValueType(input[0]);
      input.remove_prefix(1);
      CHECK(GetLengthPrefixedSlice(&input, &key));
      if (tag == kTypeValue) CHECK(GetLengthPrefixedSlice(&input, &value));
      else value = Slice();
      mem_->Add(++versions_->last_sequence_, tag, key, value);
      HotKey& hot = hot_[HashOf(key.data(), key.size(), 1)];
      ++hot.writes;
      hot.last_sequence = versions_->last_sequence_;
    }
    if (mem_->ApproximateMemoryUsage() > 48 * 1024) {
      CompactMemTable();
      while (versions_->current_->compaction_score_ >= 1) DoCompactionWork();
    }
  }
  NOINLINE bool Get(const Slice& key, std::string* value) {
    LookupKey lkey(key, versions_->last_sequence_);
    const UserCompare& ucmp = internal_comparator_.user_comparator();
    bool found = false;
    ++hot_[HashOf(key.data(), key.size(), 1)].reads;
    if (mem_->Get(lkey, ucmp, value, &found)) return found;
    Version* v = versions_->current_;
    const auto& level0 = v->files_[0];
    for (size_t i = level0.size(); i-- > 0;) tmp_.push_back(level0[i]);
    std::sort(tmp_.begin(), tmp_.end(), [](FileMetaData* a, FileMetaData* b) { return a->number > b->number; });
    for (FileMetaData* f : tmp_) {
      if (ucmp(key, ExtractUserKey(f->smallest)) < 0 || ucmp(key, ExtractUserKey(f->largest)) > 0) continue;
      if (f->table->InternalGet(lkey.internal_key(), ucmp, value, &found)) { tmp_.clear(); return found; }
    }
    tmp_.clear();
    for (int level = 1; level < kNumLevels; level++) {
      const auto& files = v->files_[level];
      const size_t index = size_t(FindFile(internal_comparator_, files, lkey.internal_key()));
      if (index >= files.size() || ucmp(key, ExtractUserKey(files[index]->smallest)) < 0) continue;
      files[index]->allowed_seeks--;
      if (files[index]->table->InternalGet(lkey.internal_key(), ucmp, value, &found)) return found;
    }
    return false;
  }
  // Calls for up to `limit` keys from `start` on.
  NOINLINE int Scan(const Slice& start, int limit, const std::function<void(const Slice&, const Slice&)>& f) {
    Vector<Iterator*> list;
    list.push_back(mem_->NewIterator());
    AddIterators(versions_->current_, 0, &list);
    std::unique_ptr<Iterator> iter(New<MergingIterator>(&internal_comparator_, list));
    LookupKey lkey(start, kMaxSequenceNumber);
    int n = 0;
    saved_key_.clear();
    bool have_saved = false;
    for (iter->Seek(lkey.internal_key()); iter->Valid() && n < limit; iter->Next()) {
      const Slice ikey = iter->key(), user = ExtractUserKey(ikey);
      if (have_saved && user == Slice(saved_key_)) continue;
      saved_key_.assign(user.data(), user.size());
      have_saved = true;
      if ((DecodeFixed64(ikey.data() + ikey.size() - 8) & 0xff) == kTypeDeletion) continue;
      f(user, iter->value());
      ++n;
    }
    return n;
  }
  NOINLINE uint64_t CoolDown() {
    uint64_t sum = 0;
    cold_.clear();
    hot_.ForEach([&](std::pair<const uint32_t, HotKey>& kv) {
      sum += kv.second.reads + kv.second.writes;
      kv.second.reads /= 2;
      kv.second.writes /= 2;
      if (kv.second.reads + kv.second.writes == 0) cold_.push_back(kv.first);
    });
    for (uint32_t k : cold_) CHECK(hot_.erase(k));
    return sum;
  }
  void AddListener(Listener l) { listeners_.push_back(std::move(l)); }
  CompactionStats stats_[kNumLevels] = {};
  VersionSet* versions_;
  absl::flat_hash_map<uint32_t, HotKey> hot_;

 private:
  void AddIterators(Version* v, int first_level, Vector<Iterator*>* list) {
    if (first_level == 0) for (FileMetaData* f : v->files_[0]) list->push_back(f->table->NewIterator());
    for (int level = std::max(1, first_level); level < kNumLevels; level++)
      if (!v->files_[level].empty()) list->push_back(New<TwoLevelIterator>(New<LevelFileNumIterator>(internal_comparator_, &v->files_[level]), &LevelFileNumIterator::OpenFile, nullptr));
  }
  NOINLINE void CompactMemTable() {
    VersionEdit edit;
    {
      std::unique_ptr<Iterator> iter(mem_->NewIterator());
      for (iter->SeekToFirst(); iter->Valid(); iter->Next()) builder_.Add(iter->key(), iter->value());
    }
    FinishFile(0, &edit);
    versions_->LogAndApply(&edit);
    mem_->Unref();
    mem_ = New<MemTable>(&internal_comparator_);
    mem_->Ref();
  }
  void FinishFile(int level, VersionEdit* edit) {
    FileMetaData* f = builder_.Finish(versions_->next_file_number_++);
    stats_[level].bytes_written += int64_t(f->file_size);
    for (const Listener& l : listeners_) l(level, *f);
    edit->new_files_.push_back({level, f});
  }
  NOINLINE void DoCompactionWork() {
    Version* v = versions_->current_;
    const int level = v->compaction_level_;
    v->Ref();
    VersionEdit edit;
    Vector<FileMetaData*> inputs[2];
    std::string smallest, largest;
    auto take = [&](int which, FileMetaData* f) {
      inputs[which].push_back(f);
      edit.deleted_files_.push_back({level + which, f->number});
      stats_[level].bytes_read += int64_t(f->file_size);
      if (smallest.empty() || internal_comparator_.Compare(f->smallest, smallest) < 0) smallest = f->smallest;
      if (largest.empty() || internal_comparator_.Compare(f->largest, largest) > 0) largest = f->largest;
    };
    if (level == 0) {
      for (FileMetaData* f : v->files_[0]) take(0, f);
    } else {
      std::string& pointer = versions_->compact_pointer_[level];
      FileMetaData* chosen = v->files_[level][0];
      for (FileMetaData* f : v->files_[level])
        if (!pointer.empty() && internal_comparator_.Compare(f->largest, pointer) > 0) { chosen = f; break; }
      take(0, chosen);
      pointer = chosen->largest;
    }
    const UserCompare& ucmp = internal_comparator_.user_comparator();
    const std::string from = smallest, to = largest;
    for (FileMetaData* f : v->files_[level + 1])
      if (ucmp(ExtractUserKey(f->largest), ExtractUserKey(from)) >= 0 && ucmp(ExtractUserKey(f->smallest), ExtractUserKey(to)) <= 0) take(1, f);
    Vector<Iterator*> list;
    for (auto& which : inputs) for (FileMetaData* f : which) list.push_back(f->table->NewIterator());
    std::unique_ptr<Iterator> input(New<MergingIterator>(&internal_comparator_, list));
    bool have_key = false;
    for (input->SeekToFirst(); input->Valid(); input->Next()) {
      const Slice key = input->key(), user = ExtractUserKey(key);
      const bool drop = have_key && user == Slice(current_user_key_);
      current_user_key_.assign(user.data(), user.size());
      have_key = true;
      if (drop || (level + 2 == kNumLevels && (DecodeFixed64(key.data() + key.size() - 8) & 0xff) == kTypeDeletion)) { ++stats_[level].dropped; continue; }
      builder_.Add(key, input->value());
      if (builder_.FileSize() > 24 * 1024) FinishFile(level + 1, &edit);
    }
    if (builder_.NumEntries() > 0) FinishFile(level + 1, &edit);
    input.reset();
    versions_->LogAndApply(&edit);
    v->Unref();
  }

  InternalKeyComparator internal_comparator_;
  TableBuilder builder_;
  MemTable* mem_;
  std::string log_, current_user_key_, saved_key_;
  Vector<Listener> listeners_;
  Vector<FileMetaData*> tmp_;
  Vector<uint32_t> cold_;
};

}  // namespace leveldb

using namespace leveldb;
struct ModelEntry { uint32_t version; uint32_t size; };
static const uint32_t kKeys = 4000;
static ModelEntry model[kKeys];
static DBImpl* db;

static Slice KeyOf(uint32_t k, char* buf) { 
  buf[0] = 'u';
  for (int i = 5; i > 0; --i, k /= 10) buf[i] = char('0' + k % 10);
  if (buf[5] & 3) { buf[6] = "abc"[buf[5] % 3]; return Slice(buf, 7); }
  memcpy(buf + 6, ":profile", 8);
  return Slice(buf, 14);
 }

int main(int argc, char** argv) {
  tr_init(argc, argv);
  TR_GLOBAL(model, "ModelEntry []");
  TR_GLOBAL(db, "leveldb::DBImpl *");
  TR_GLOBAL(block_cache, "leveldb::ShardedLRUCache *");
  TR_GLOBAL(crc_table, "unsigned int []");
  tr_global("hashtablez", &absl::container_internal::hashtablez, sizeof(absl::container_internal::HashtablezInfo), "absl::container_internal::HashtablezInfo");
  heap::Of<char> strings;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    crc_table[i] = c;
  }
  block_cache = New<ShardedLRUCache>();
  for (LRUCache& s : block_cache->shard_) s.SetCapacity(64 * 1024);
  uint64_t compares = 0, files = 0;
  db = New<DBImpl>([&compares](const Slice& a, const Slice& b) { ++compares; return a.compare(b); });
  db->AddListener([&files](int level, const FileMetaData& f) { files += uint64_t(level) + (f.file_size > 0); });
  WriteBatch* batch = New<WriteBatch>();
  std::string value;
  char buf[32];
  uint64_t sum = 0;
  for (int turn = 0; tr_more(); ++turn) {
    // Writes; one in seven takes a key away.
    for (int b = 0; b < 12; ++b) {
      batch->Clear();
      for (int i = 0; i < 12; ++i) {
        const uint64_t r = tr_rand() >> 8;
        const uint32_t k = uint32_t(r % kKeys);
        ModelEntry& m = model[k];
        if ((r >> 20) % 7 == 0) {
          batch->Delete(KeyOf(k, buf));
          m.size = 0;
        } else {
          ++m.version;
          m.size = 16 + uint32_t(r >> 24) % 80;
          value.assign(m.size, char('a' + m.version % 26));
          EncodeFixed32(&value[0], m.version);
          batch->Put(KeyOf(k, buf), value);
        }
      }
      db->Write(batch);
    }
    // Reads, some more than others.
    for (int i = 0; i < 150; ++i) {
      const uint64_t r = tr_rand() >> 8;
      const uint32_t k = uint32_t(i % 2 ? r % kKeys : r % 300);
      const bool found = db->Get(KeyOf(k, buf), &value);
      CHECK(found == (model[k].size > 0) && (!found || (value.size() == model[k].size && DecodeFixed32(value.data()) == model[k].version)));
      sum += found;
    }
    for (int i = 0; i < 3; ++i) {
      const uint32_t k = uint32_t((tr_rand() >> 8) % kKeys);
      uint32_t next = k;
      db->Scan(KeyOf(k, buf), 60, [&next, &sum](const Slice& key, const Slice& v) {
        while (next < kKeys && model[next].size == 0) ++next;
        CHECK(key.size() >= 7 && next < kKeys && DecodeFixed32(v.data()) == model[next].version);
        sum += v.size() + uint8_t(key[6]);
        ++next;
      });
    }
    if (turn % 4 == 3) sum += db->CoolDown();
  }
  if (getenv("SHOW")) {
    fprintf(stderr, "sum %lu compares %lu files %lu hot %zu probes %zu rehashes %zu", (unsigned long)sum, (unsigned long)compares, (unsigned long)files, db->hot_.size(), absl::container_internal::hashtablez.probes, absl::container_internal::hashtablez.rehashes);
    for (auto& s : db->stats_) fprintf(stderr, " [%ld %ld %ld]", long(s.bytes_read), long(s.bytes_written), long(s.dropped));
    fprintf(stderr, " cache %lu/%lu\n", (unsigned long)block_cache->shard_[0].hits_, (unsigned long)block_cache->shard_[0].misses_);
  }
  tr_sink = sum;
  _Exit(0);
}
