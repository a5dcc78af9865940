/****************************************************************************
**
** Calendars and projects: values that are shared until they are written,
** private parts behind pointers, signals and slots by tables, variants,
** recurring events, a model of tasks with a proxy that sorts and filters,
** critical paths, times that are free or busy, events that are posted.
**
****************************************************************************/
#include "../heap.hpp"
#include <algorithm>
#include <utility>

typedef long long qint64;

#define K_DECLARE_PRIVATE(Class) \
    inline Class##Private *d_func() { return static_cast<Class##Private *>(d_ptr); } \
    inline const Class##Private *d_func() const { return static_cast<const Class##Private *>(d_ptr); } \
    friend class Class##Private;
#define K_D(Class) Class##Private *const d = d_func()
#define K_DC(Class) const Class##Private *const d = d_func()
#define K_EMIT

// ---- arrays that are shared: a header, and behind it the elements ----

struct KRefCount
{
    int atomic;
    void ref() { ++atomic; }
    bool deref() { return --atomic != 0; }
    bool isShared() const { return atomic > 1; }
};

struct KArrayData
{
    KRefCount ref;
    int size;
    unsigned alloc : 31;
    unsigned capacityReserved : 1;
    long offset; // of the elements, from the header on

    void *data() { return reinterpret_cast<char *>(this) + offset; }
    static KArrayData shared_null;
};
KArrayData KArrayData::shared_null = { { 1 << 30 }, 0, 0, 0, sizeof(KArrayData) };

// Blocks that were given back, by their capacity: never used for another type.
struct KArrayBlock { KArrayBlock *next; long capacityLog2; };

template <typename T>
struct KTypedArrayData
{
    static inline KArrayBlock *freed[24];

    static NOINLINE KArrayData *allocate(int capacity)
    {
        long log2 = 2;
        while ((1 << log2) < capacity) ++log2;
        KArrayBlock *block = freed[log2];
        KArrayData *d;
        if (block) {
            freed[log2] = block->next;
            d = reinterpret_cast<KArrayData *>(block + 1);
        } else {
            const size_t bytes = sizeof(T) << log2;
            block = static_cast<KArrayBlock *>(malloc(sizeof(KArrayBlock) + sizeof(KArrayData) + bytes));
            block->capacityLog2 = log2;
            d = reinterpret_cast<KArrayData *>(block + 1);
            tr_region("KArrayData", d, sizeof(KArrayData), sizeof(KArrayData));
            tr_region(heap::name_of<T>(), d + 1, bytes, sizeof(T));
        }
        d->ref.atomic = 1;
        d->size = 0;
        d->alloc = 1u << log2;
        d->capacityReserved = 0;
        d->offset = sizeof(KArrayData);
        return d;
    }
    static void deallocate(KArrayData *d)
    {
        KArrayBlock *block = reinterpret_cast<KArrayBlock *>(d) - 1;
        block->next = freed[block->capacityLog2];
        freed[block->capacityLog2] = block;
    }
};

template <typename T>
class KVector
{
    KArrayData *d;
    T *elements() const { return static_cast<T *>(d->data()); }
    void release()
    {
        if (d->ref.deref()) return;
        for (int i = 0; i < d->size; ++i) elements()[i].~T();
        KTypedArrayData<T>::deallocate(d);
    }
    NOINLINE void reallocData(int capacity)
    {
        KArrayData *x = KTypedArrayData<T>::allocate(capacity);
        T *to = static_cast<T *>(x->data());
        for (int i = 0; i < d->size; ++i) new (to + i) T(elements()[i]);
        x->size = d->size;
        release();
        d = x;
    }

public:
    KVector() : d(&KArrayData::shared_null) { d->ref.ref(); }
    KVector(const KVector &other) : d(other.d) { d->ref.ref(); }
    KVector(KVector &&other) noexcept : d(other.d) { other.d = &KArrayData::shared_null, other.d->ref.ref(); }
    ~KVector() { release(); }
    KVector &operator=(KVector other) { std::swap(d, other.d); return *this; }
    int size() const { return d->size; }
    bool isEmpty() const { return d->size == 0; }
    void detach() { if (d->ref.isShared()) reallocData(std::max(d->size, 1)); }
    const T &at(int i) const { return elements()[i]; }
    T &operator[](int i) { detach(); return elements()[i]; }
    const T &operator[](int i) const { return elements()[i]; }
    void append(const T &t)
    {
        const T copy(t);
        if (d->ref.isShared() || unsigned(d->size) == d->alloc) reallocData(d->size + 1);
        new (elements() + d->size++) T(copy);
    }
    KVector &operator<<(const T &t) { append(t); return *this; }
    void clear() { *this = KVector(); }
    void truncate(int n) { detach(); while (d->size > n) elements()[--d->size].~T(); }
    void removeAt(int i)
    {
        detach();
        T *e = elements();
        for (; i + 1 < d->size; ++i) e[i] = e[i + 1];
        truncate(d->size - 1);
    }
    int indexOf(const T &t) const
    {
        for (int i = 0; i < d->size; ++i) if (elements()[i] == t) return i;
        return -1;
    }
    T *begin() { detach(); return elements(); }
    T *end() { detach(); return elements() + d->size; }
    const T *begin() const { return elements(); }
    const T *end() const { return elements() + d->size; }
};

struct KChar
{
    unsigned short ucs;
    KChar(char c = 0) : ucs(static_cast<unsigned char>(c)) {}
    bool operator==(KChar o) const { return ucs == o.ucs; }
    unsigned short folded() const { return ucs >= 'A' && ucs <= 'Z' ? ucs | 32 : ucs; }
};

class KString
{
    KVector<KChar> chars;

public:
    KString() = default;
    KString(const char *latin1) { for (; *latin1; ++latin1) chars.append(KChar(*latin1)); }
    static KString number(qint64 n)
    {
        char buffer[24];
        snprintf(buffer, sizeof buffer, "%lld", n);
        return KString(buffer);
    }
    int size() const { return chars.size(); }
    KChar at(int i) const { return chars.at(i); }
    KString &operator+=(const KString &s) { for (KChar c : s.chars) chars.append(c); return *this; }
    KString operator+(const KString &s) const { KString r(*this); r += s; return r; }
    NOINLINE int compare(const KString &o) const
    {
        const int n = std::min(size(), o.size());
        const KChar *a = chars.begin(), *b = o.chars.begin();
        for (int i = 0; i < n; ++i)
            if (a[i].folded() != b[i].folded()) return int(a[i].folded()) - int(b[i].folded());
        return size() - o.size();
    }
    bool operator==(const KString &o) const { return size() == o.size() && compare(o) == 0; }
    NOINLINE bool contains(const KString &needle) const
    {
        const KChar *h = chars.begin();
        for (int i = 0; i + needle.size() <= size(); ++i) {
            int k = 0;
            while (k < needle.size() && h[i + k].folded() == needle.at(k).folded()) ++k;
            if (k == needle.size()) return true;
        }
        return false;
    }
    unsigned hash() const { unsigned h = 0; for (KChar c : chars) h = 31 * h + c.ucs; return h; }
};

inline unsigned kHash(const KString &s) { return s.hash(); }
inline unsigned kHash(int i) { return unsigned(i) * 2654435761u; }

// ---- hashes ----

template <typename Key, typename T>
struct KHashNode
{
    KHashNode *next;
    const unsigned h;
    const Key key;
    T value;
};

struct KHashData { KRefCount ref; int size, numBuckets; short numBits, userNumBits; };

template <typename Key, typename T>
class KHash
{
    typedef KHashNode<Key, T> Node;
    KHashData *d = nullptr;
    Node **buckets = nullptr;

    void rehash(int bits)
    {
        Node **old = buckets;
        const int oldCount = d->numBuckets;
        d->numBits = short(bits);
        d->numBuckets = 1 << bits;
        buckets = heap::Alloc<Node *>().allocate(d->numBuckets);
        std::fill_n(buckets, d->numBuckets, nullptr);
        for (int i = 0; i < oldCount; ++i)
            for (Node *n = old[i], *next; n; n = next) {
                next = n->next;
                n->next = buckets[n->h & unsigned(d->numBuckets - 1)];
                buckets[n->h & unsigned(d->numBuckets - 1)] = n;
            }
        heap::Alloc<Node *>().deallocate(old, size_t(oldCount));
    }

public:
    KHash() { d = heap::Alloc<KHashData>().allocate(1); *d = KHashData{ { 1 }, 0, 0, 0, 0 }; }
    KHash(const KHash &) = delete;
    ~KHash() { clear(); heap::Alloc<KHashData>().deallocate(d, 1); heap::Alloc<Node *>().deallocate(buckets, size_t(1)); }
    int size() const { return d->size; }
    NOINLINE T *find(const Key &key) const
    {
        if (!d->numBuckets) return nullptr;
        const unsigned h = kHash(key);
        for (Node *n = buckets[h & unsigned(d->numBuckets - 1)]; n; n = n->next)
            if (n->h == h && n->key == key) return &n->value;
        return nullptr;
    }
    T value(const Key &key, const T &fallback = T()) const { T *found = find(key); return found ? *found : fallback; }
    T &operator[](const Key &key)
    {
        if (T *found = find(key)) return *found;
        if (d->size >= d->numBuckets) rehash(d->numBits + (d->numBits ? 1 : 4));
        const unsigned h = kHash(key);
        Node *n = new (heap::Alloc<Node>().allocate(1)) Node{ buckets[h & unsigned(d->numBuckets - 1)], h, key, T() };
        buckets[h & unsigned(d->numBuckets - 1)] = n;
        ++d->size;
        return n->value;
    }
    void clear()
    {
        for (int i = 0; i < d->numBuckets; ++i) {
            for (Node *n = buckets[i], *next; n; n = next) {
                next = n->next;
                n->~Node();
                heap::Alloc<Node>().deallocate(n, 1);
            }
            buckets[i] = nullptr;
        }
        d->size = 0;
    }
};

// ---- dates ----

struct KDate
{
    int jd;
    static KDate of(int y, int m, int day)
    {
        const int a = (14 - m) / 12, yy = y + 4800 - a, mm = m + 12 * a - 3;
        return { day + (153 * mm + 2) / 5 + 365 * yy + yy / 4 - yy / 100 + yy / 400 - 32045 };
    }
    void get(int *y, int *m, int *day) const
    {
        const int a = jd + 32044, b = (4 * a + 3) / 146097, c = a - 146097 * b / 4, dd = (4 * c + 3) / 1461, e = c - 1461 * dd / 4, mm = (5 * e + 2) / 153;
        *day = e - (153 * mm + 2) / 5 + 1;
        *m = mm + 3 - 12 * (mm / 10);
        *y = 100 * b + dd - 4800 + mm / 10;
    }
    int dayOfWeek() const { return jd % 7; }
};

struct KDateTime
{
    qint64 secs;
    KDate date() const { return { int(secs / 86400) }; }
    bool operator<(const KDateTime &o) const { return secs < o.secs; }
    bool operator==(const KDateTime &o) const { return secs == o.secs; }
};

struct KTransition { qint64 at; int offset; bool dst; };

class KTimeZone
{
    KVector<KTransition> m_transitions;
    KString m_id;

public:
    KTimeZone(const char *id, int base) : m_id(id)
    {
        for (int y = 1990; y < 2040; ++y)
            m_transitions << KTransition{ qint64(KDate::of(y, 3, 28).jd) * 86400 + 3600, base + 3600, true } << KTransition{ qint64(KDate::of(y, 10, 28).jd) * 86400 + 3600, base, false };
    }
    NOINLINE int offsetAt(KDateTime t) const
    {
        const KTransition *it = std::upper_bound(m_transitions.begin(), m_transitions.end(), t.secs, [](qint64 s, const KTransition &tr) { return s < tr.at; });
        return it == m_transitions.begin() ? 0 : it[-1].offset + m_id.size() % 2;
    }
};

// ---- variants ----

class KVariant
{
public:
    enum Type { Invalid, Int, Double, DateTime, String, TypeCount };
    union Data {
        int i;
        double f;
        qint64 ll;
        KString s;
        Data() : ll(0) {}
        ~Data() {}
    };
    struct Handler
    {
        int (*compare)(const KVariant &, const KVariant &);
        double (*toDouble)(const KVariant &);
        unsigned long calls;
    };
    static Handler handlers[TypeCount];

    KVariant() : type(Invalid), is_null(1) {}
    KVariant(int i) : type(Int), is_null(0) { data.i = i; }
    KVariant(double f) : type(Double), is_null(0) { data.f = f; }
    KVariant(KDateTime t) : type(DateTime), is_null(0) { data.ll = t.secs; }
    KVariant(const KString &s) : type(String), is_null(0) { new (&data.s) KString(s); }
    KVariant(const KVariant &o) : type(o.type), is_null(o.is_null)
    {
        if (type == String) new (&data.s) KString(o.data.s);
        else data.ll = o.data.ll;
    }
    ~KVariant() { if (type == String) data.s.~KString(); }
    KVariant &operator=(const KVariant &o)
    {
        if (this == &o) return *this;
        this->~KVariant();
        return *new (this) KVariant(o);
    }
    Type userType() const { return Type(type); }
    const KString &toString() const { return data.s; }
    int compare(const KVariant &o) const
    {
        if (type != o.type) return int(type) - int(o.type);
        Handler &h = handlers[type];
        ++h.calls;
        return h.compare(*this, o);
    }
    Data data;
    unsigned type : 30;
    unsigned is_null : 1;
};

KVariant::Handler KVariant::handlers[TypeCount] = {
    { [](const KVariant &, const KVariant &) { return 0; }, [](const KVariant &) { return 0.0; }, 0 },
    { [](const KVariant &a, const KVariant &b) { return (a.data.i > b.data.i) - (a.data.i < b.data.i); }, [](const KVariant &v) { return double(v.data.i); }, 0 },
    { [](const KVariant &a, const KVariant &b) { return (a.data.f > b.data.f) - (a.data.f < b.data.f); }, [](const KVariant &v) { return v.data.f; }, 0 },
    { [](const KVariant &a, const KVariant &b) { return (a.data.ll > b.data.ll) - (a.data.ll < b.data.ll); }, [](const KVariant &v) { return double(v.data.ll % 86400); }, 0 },
    { [](const KVariant &a, const KVariant &b) { return a.toString().compare(b.toString()); }, [](const KVariant &v) { return double(v.toString().size()); }, 0 },
};

// ---- objects, signals and slots ----

class KObject;
typedef void (*KStaticMetacall)(KObject *object, int id, void **arguments);

struct KMetaObject
{
    const KMetaObject *superdata;
    const char *className;
    int methodCount;
    KStaticMetacall static_metacall;
};

struct KConnection
{
    KObject *sender, *receiver;
    KConnection *nextInSignal;          // of the sender
    KConnection *next, **prev;          // of the receiver's senders
    unsigned signal : 27;
    unsigned connectionType : 3;
    unsigned isSlotObject : 1;
    int method;
    unsigned emitted;
};

struct KConnectionList { KConnection *first, *last; };

class KObjectPrivate
{
public:
    virtual ~KObjectPrivate() {}
    KObject *q_ptr = nullptr, *parent = nullptr;
    KVector<KObject *> children;
    KVector<KConnectionList> connectionLists;
    KConnection *senders = nullptr;
    unsigned blockSig : 1, wasDeleted : 1, sendChildEvents : 1, postedEvents : 29;
    KObjectPrivate() : blockSig(0), wasDeleted(0), sendChildEvents(1), postedEvents(0) {}
};

struct KEvent { int type; KVariant payload; };

class KObject
{
    K_DECLARE_PRIVATE(KObject)
protected:
    KObjectPrivate *d_ptr;

public:
    explicit KObject(KObjectPrivate *dd, KObject *parent = nullptr) : d_ptr(dd)
    {
        dd->q_ptr = this;
        dd->parent = parent;
        if (parent) parent->d_ptr->children.append(this);
    }
    virtual ~KObject() { delete d_ptr; }
    virtual const KMetaObject *metaObject() const = 0;
    virtual bool event(KEvent *e) = 0;

    static void connect(KObject *sender, int signal, KObject *receiver, int method)
    {
        KConnection *c = heap::Alloc<KConnection>().allocate(1);
        KObjectPrivate *s = sender->d_ptr, *r = receiver->d_ptr;
        *c = KConnection{ sender, receiver, nullptr, r->senders, &r->senders, unsigned(signal), 0, 0, method, 0 };
        if (r->senders) r->senders->prev = &c->next;
        r->senders = c;
        while (s->connectionLists.size() <= signal) s->connectionLists.append(KConnectionList{ nullptr, nullptr });
        KConnectionList &list = s->connectionLists[signal];
        (list.last ? list.last->nextInSignal : list.first) = c;
        list.last = c;
    }
    static NOINLINE void activate(KObject *sender, int signal, void **arguments)
    {
        KObjectPrivate *d = sender->d_ptr;
        if (d->blockSig || signal >= d->connectionLists.size()) return;
        for (KConnection *c = d->connectionLists.at(signal).first; c; c = c->nextInSignal) {
            ++c->emitted;
            c->receiver->metaObject()->static_metacall(c->receiver, c->method, arguments);
        }
    }
};

struct KPostEvent { KObject *receiver; KEvent *event; int priority; };

class KEventLoop
{
    KVector<KPostEvent> m_posted;
    int m_start = 0;

public:
    unsigned long delivered = 0;
    NOINLINE void postEvent(KObject *receiver, int type, const KVariant &payload, int priority)
    {
        KEvent *e = new (heap::Alloc<KEvent>().allocate(1)) KEvent{ type, payload };
        m_posted.append(KPostEvent{ receiver, e, priority });
        KPostEvent *p = m_posted.begin();
        for (int i = m_posted.size() - 1; i > m_start && p[i - 1].priority < p[i].priority; --i) std::swap(p[i - 1], p[i]);
    }
    NOINLINE void sendPostedEvents()
    {
        while (m_start < m_posted.size()) {
            KPostEvent pe = m_posted.at(m_start++);
            if (pe.receiver->event(pe.event)) ++delivered;
            pe.event->~KEvent();
            heap::Alloc<KEvent>().deallocate(pe.event, 1);
        }
        m_posted.truncate(0);
        m_start = 0;
    }
};
static KEventLoop *loop;

// ---- events that recur ----

struct KRecurrenceRule
{
    enum Frequency : unsigned char { Never, Daily, Weekly, Monthly, Yearly };
    Frequency frequency;
    unsigned char interval;
    unsigned short byDay : 7, bySetPos : 3, hasCount : 1;
    union { int count; int untilJd; } end;
    KVector<KDate> exceptions;

    bool matches(KDate start, KDate at) const
    {
        int y0, m0, d0, y, m, d;
        if (at.jd < start.jd || (!hasCount && at.jd > end.untilJd)) return false;
        switch (frequency) {
        case Daily: if ((at.jd - start.jd) % interval) return false; break;
        case Weekly: if ((at.jd / 7 - start.jd / 7) % interval || !(byDay >> at.dayOfWeek() & 1)) return false; break;
        case Monthly:
            start.get(&y0, &m0, &d0);
            at.get(&y, &m, &d);
            if (((y - y0) * 12 + m - m0) % interval || d != d0) return false;
            break;
        case Yearly:
            start.get(&y0, &m0, &d0);
            at.get(&y, &m, &d);
            if (m != m0 || d != d0) return false;
            break;
        default: return at.jd == start.jd;
        }
        for (const KDate &x : exceptions) if (x.jd == at.jd) return false;
        return true;
    }
};

class KIncidencePrivate
{
public:
    KRefCount ref{ 1 };
    KString summary, location;
    KDateTime start{ 0 };
    int duration = 0, priority = 0;
    const KTimeZone *zone = nullptr;
    KRecurrenceRule rule{};
    KVector<KString> attendees;
    KHash<KString, KVariant> properties;
};

class KIncidence
{
    KIncidencePrivate *d;

public:
    KIncidence() { heap::Of<KIncidencePrivate> scope; d = new KIncidencePrivate; }
    KIncidence(const KIncidence &o) : d(o.d) { d->ref.ref(); }
    ~KIncidence() { if (!d->ref.deref()) delete d; }
    KIncidence &operator=(KIncidence o) { std::swap(d, o.d); return *this; }
    bool operator==(const KIncidence &o) const { return d == o.d; }
    KIncidencePrivate *operator->() { return d; }
    const KIncidencePrivate *operator->() const { return d; }
};

struct KInterval { qint64 from, to, priority; };

class KCalendarPrivate : public KObjectPrivate
{
public:
    KVector<KIncidence> incidences;
    KHash<int, KVector<KInterval>> byDay;
    qint64 emitted = 0;
    int changes = 0;
};

class KCalendar : public KObject
{
    K_DECLARE_PRIVATE(KCalendar)
public:
    enum Signals { Changed, BusyFound };
    static const KMetaObject staticMetaObject;
    explicit KCalendar(KObject *parent = nullptr) : KObject(makePrivate(), parent) {}
    static KCalendarPrivate *makePrivate() { heap::Of<KCalendarPrivate> scope; return new KCalendarPrivate; }
    const KMetaObject *metaObject() const override { return &staticMetaObject; }
    bool event(KEvent *e) override
    {
        K_D(KCalendar);
        if (d->incidences.isEmpty()) return false;
        KIncidence &incidence = d->incidences[e->payload.data.i % d->incidences.size()];
        incidence->start.secs += e->type * 1800;
        ++d->changes;
        changed(e->payload.data.i);
        return true;
    }
    void add(const KIncidence &incidence) { d_func()->incidences << incidence; }
    const KIncidence &at(int i) const { return d_func()->incidences.at(i); }
    int count() const { return d_func()->incidences.size(); }
    void changed(int index) { void *a[] = { nullptr, &index }; K_EMIT activate(this, Changed, a); }
    void busyFound(qint64 secs) { void *a[] = { nullptr, &secs }; d_func()->emitted += secs; K_EMIT activate(this, BusyFound, a); }
    static void metacall(KObject *o, int id, void **a)
    {
        if (id == 1) static_cast<KCalendar *>(o)->d_func()->changes += *static_cast<int *>(a[1]) & 1;
    }

    // Where the days from `first` on are busy.
    NOINLINE void expand(KDate first, int days)
    {
        K_D(KCalendar);
        d->byDay.clear();
        for (const KIncidence &incidence : std::as_const(d->incidences)) {
            const KDate start = incidence->start.date();
            for (int k = 0; k < days; ++k) {
                const KDate at{ first.jd + k };
                if (!incidence->rule.matches(start, at)) continue;
                const qint64 from = qint64(at.jd) * 86400 + incidence->start.secs % 86400;
                const int offset = incidence->zone->offsetAt(KDateTime{ from });
                d->byDay[at.jd] << KInterval{ from - offset, from - offset + incidence->duration, incidence->priority };
            }
        }
    }
    NOINLINE qint64 freeBusy(KDate day)
    {
        K_D(KCalendar);
        KVector<KInterval> *found = d->byDay.find(day.jd);
        if (!found) return 0;
        std::sort(found->begin(), found->end(), [](const KInterval &a, const KInterval &b) { return a.from < b.from; });
        qint64 busy = 0, until = 0;
        for (const KInterval &i : std::as_const(*found)) {
            if (i.to <= until) continue;
            busy += i.to - std::max(i.from, until);
            until = i.to;
        }
        busyFound(busy);
        return busy;
    }
};
const KMetaObject KCalendar::staticMetaObject = { nullptr, "KCalendar", 2, KCalendar::metacall };

// ---- tasks: a tree, what waits for what, and models of it ----

class TaskItem
{
public:
    TaskItem *parentItem = nullptr;
    KVector<TaskItem *> childItems, successors;
    KString name;
    KVariant columns[5];
    KDateTime due{ 0 };
    double effort = 1, earliest = 0, latest = 0;
    int row = 0, predecessors = 0, waiting = 0;
    unsigned state : 2, critical : 1, visited : 1;
    TaskItem() : state(0), critical(0), visited(0) {}
};

class KModelIndex
{
public:
    int r = -1, c = -1;
    const void *i = nullptr;
    bool isValid() const { return r >= 0; }
    TaskItem *item() const { return static_cast<TaskItem *>(const_cast<void *>(i)); }
};

class KAbstractItemModel : public KObject
{
public:
    enum Signals { DataChanged, LayoutChanged };
    using KObject::KObject;
    virtual int rowCount(const KModelIndex &parent) const = 0;
    virtual KModelIndex index(int row, int column, const KModelIndex &parent) const = 0;
    virtual KVariant data(const KModelIndex &index, int role) const = 0;
};

class TaskModelPrivate : public KObjectPrivate
{
public:
    TaskItem *root = nullptr;
    KVector<TaskItem *> all, order;
    KHash<KString, TaskItem *> byName;
    double length = 0;
    unsigned long dataCalls = 0;
};

class TaskModel : public KAbstractItemModel
{
    K_DECLARE_PRIVATE(TaskModel)
public:
    static const KMetaObject staticMetaObject;
    TaskModel() : KAbstractItemModel(makePrivate()) { d_func()->root = newItem(nullptr, "root"); }
    static TaskModelPrivate *makePrivate() { heap::Of<TaskModelPrivate> scope; return new TaskModelPrivate; }
    const KMetaObject *metaObject() const override { return &staticMetaObject; }
    TaskItem *newItem(TaskItem *parent, const KString &name)
    {
        K_D(TaskModel);
        heap::Of<TaskItem> scope;
        TaskItem *item = new TaskItem;
        item->parentItem = parent;
        item->name = name;
        if (parent) {
            item->row = parent->childItems.size();
            parent->childItems << item;
        }
        d->all << item;
        d->byName[name] = item;
        return item;
    }
    bool event(KEvent *e) override
    {
        K_D(TaskModel);
        TaskItem *item = d->byName.value(e->payload.toString());
        if (!item) return false;
        item->effort = item->effort * 0.9 + e->type * 0.3;
        item->state = unsigned(e->type) & 3;
        item->columns[1] = KVariant(item->effort);
        item->columns[4] = KVariant(int(item->state));
        dataChanged(item);
        return true;
    }
    void dataChanged(TaskItem *item) { void *a[] = { nullptr, &item }; K_EMIT activate(this, DataChanged, a); }
    static void metacall(KObject *o, int id, void **a)
    {
        TaskModelPrivate *d = static_cast<TaskModel *>(o)->d_func();
        if (id == 0) d->all.at(*static_cast<int *>(a[1]) % d->all.size())->waiting ^= 1;
    }
    int rowCount(const KModelIndex &parent) const override { return (parent.isValid() ? parent.item() : d_func()->root)->childItems.size(); }
    KModelIndex index(int row, int column, const KModelIndex &parent) const override
    {
        const TaskItem *item = parent.isValid() ? parent.item() : d_func()->root;
        KModelIndex result;
        if (row >= item->childItems.size()) return result;
        result.r = row;
        result.c = column;
        result.i = item->childItems.at(row);
        return result;
    }
    KVariant data(const KModelIndex &index, int role) const override
    {
        ++const_cast<TaskModelPrivate *>(d_func())->dataCalls;
        const TaskItem *item = index.item();
        if (index.c == 0) return role ? KVariant(item->name.size()) : KVariant(item->name);
        return item->columns[index.c % 5];
    }

    // Forwards in an order in which nothing comes before what it waits for, and backwards.
    NOINLINE int criticalPath()
    {
        K_D(TaskModel);
        d->order.truncate(0);
        for (TaskItem *t : std::as_const(d->all)) {
            t->waiting = t->predecessors;
            t->earliest = 0;
            if (!t->waiting) d->order << t;
        }
        for (int i = 0; i < d->order.size(); ++i) {
            TaskItem *t = d->order.at(i);
            for (TaskItem *s : std::as_const(t->successors)) {
                s->earliest = std::max(s->earliest, t->earliest + t->effort);
                if (--s->waiting == 0) d->order << s;
            }
            d->length = std::max(i ? d->length : 0, t->earliest + t->effort);
        }
        int critical = 0;
        for (int i = d->order.size(); i-- > 0;) {
            TaskItem *t = d->order.at(i);
            t->latest = d->length - t->effort;
            for (const TaskItem *s : std::as_const(t->successors)) t->latest = std::min(t->latest, s->latest - t->effort);
            t->critical = t->latest - t->earliest < 1e-6;
            critical += t->critical;
        }
        return critical;
    }
    KVector<TaskItem *> items() const { return d_func()->all; }
};
const KMetaObject TaskModel::staticMetaObject = { nullptr, "TaskModel", 2, TaskModel::metacall };

struct Mapping
{
    KVector<int> source_rows, proxy_rows;
    const TaskItem *parent;
    int generation;
};

class SortFilterProxyPrivate : public KObjectPrivate
{
public:
    const KAbstractItemModel *model = nullptr;
    KHash<int, Mapping *> mappings; // by the row of the parent
    KString filter;
    int sortColumn = 0, generation = 0, invalidated = 0;
    bool descending = false;
};

class SortFilterProxy : public KAbstractItemModel
{
    K_DECLARE_PRIVATE(SortFilterProxy)
public:
    static const KMetaObject staticMetaObject;
    explicit SortFilterProxy(const KAbstractItemModel *model) : KAbstractItemModel(makePrivate()) { d_func()->model = model; }
    static SortFilterProxyPrivate *makePrivate() { heap::Of<SortFilterProxyPrivate> scope; return new SortFilterProxyPrivate; }
    const KMetaObject *metaObject() const override { return &staticMetaObject; }
    bool event(KEvent *) override { return false; }
    static void metacall(KObject *o, int, void **) { static_cast<SortFilterProxy *>(o)->d_func()->invalidated++; }
    void setFilter(const KString &f, int column, bool descending)
    {
        K_D(SortFilterProxy);
        d->filter = f;
        d->sortColumn = column;
        d->descending = descending;
        ++d->generation;
    }
    NOINLINE const Mapping *mapping(const KModelIndex &parent) const
    {
        SortFilterProxyPrivate *d = const_cast<SortFilterProxyPrivate *>(d_func());
        Mapping *&m = d->mappings[parent.r];
        if (m && m->generation == d->generation) return m;
        if (!m) m = new (heap::Alloc<Mapping>().allocate(1)) Mapping{ {}, {}, parent.item(), 0 };
        m->generation = d->generation;
        m->source_rows.truncate(0);
        m->proxy_rows.truncate(0);
        const int rows = d->model->rowCount(parent);
        for (int i = 0; i < rows; ++i) {
            m->proxy_rows << -1;
            const KVariant name = d->model->data(d->model->index(i, 0, parent), 0);
            if (!parent.isValid() || name.toString().contains(d->filter)) m->source_rows << i;
        }
        std::sort(m->source_rows.begin(), m->source_rows.end(), [&](int a, int b) {
            const int c = d->model->data(d->model->index(a, d->sortColumn, parent), 0).compare(d->model->data(d->model->index(b, d->sortColumn, parent), 0));
            return c ? (d->descending ? c > 0 : c < 0) : a < b;
        });
        for (int i = 0; i < m->source_rows.size(); ++i) m->proxy_rows[m->source_rows.at(i)] = i;
        return m;
    }
    int rowCount(const KModelIndex &parent) const override { return mapping(parent)->source_rows.size(); }
    KModelIndex index(int row, int column, const KModelIndex &parent) const override { return d_func()->model->index(mapping(parent)->source_rows.at(row), column, parent); }
    KVariant data(const KModelIndex &index, int role) const override { return d_func()->model->data(index, role); }
};
const KMetaObject SortFilterProxy::staticMetaObject = { nullptr, "SortFilterProxy", 2, SortFilterProxy::metacall };

static NOINLINE double showView(const KAbstractItemModel *model)
{
    double sum = 0;
    const int groups = model->rowCount(KModelIndex());
    for (int g = 0; g < groups; ++g) {
        const KModelIndex group = model->index(g, 0, KModelIndex());
        const int rows = std::min(model->rowCount(group), 25);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < 5; ++c) {
                const KVariant v = model->data(model->index(r, c, group), 0);
                sum += KVariant::handlers[v.userType()].toDouble(v);
            }
    }
    return sum;
}

static NOINLINE double upcoming(const KCalendar *calendar, const KString &who)
{
    double sum = 0;
    for (int i = 0; i < calendar->count(); ++i) {
        const KIncidence incidence = calendar->at(i);
        if (incidence->attendees.indexOf(who) < 0) continue;
        const KVariant *color = incidence->properties.find(KString("color"));
        sum += incidence->duration + (color ? color->data.i : 0) + incidence->location.size();
    }
    return sum;
}

static int pick(uint64_t r, int n) { return int(r % unsigned(n)); }

int main(int argc, char **argv)
{
    static const char *const words[] = { "Review", "Plan", "Design", "Meeting", "Travel", "Test", "Release", "Write", "Call", "Budget", "Paint", "Install" };
    static const char *const people[] = { "anna@kde.example", "ben@kde.example", "cleo@kde.example", "dora@kde.example", "eli@kde.example" };
    tr_init(argc, argv);
    TR_GLOBAL(loop, "KEventLoop *");
    tr_global("shared_null", &KArrayData::shared_null, sizeof(KArrayData), "KArrayData");
    tr_global("handlers", KVariant::handlers, sizeof KVariant::handlers, "KVariant::Handler []");
    {
        heap::Of<KEventLoop> scope;
        loop = new KEventLoop;
    }
    auto berlin = heap::make<KTimeZone>("Europe/Berlin", 3600), lisbon = heap::make<KTimeZone>("Europe/Lisbon", 0);
    auto calendar = heap::make<KCalendar>();
    auto tasks = heap::make<TaskModel>();
    auto proxy = heap::make<SortFilterProxy>(tasks.get());
    KObject::connect(calendar.get(), KCalendar::Changed, tasks.get(), 0);
    KObject::connect(calendar.get(), KCalendar::Changed, calendar.get(), 1);
    KObject::connect(tasks.get(), KAbstractItemModel::DataChanged, proxy.get(), 0);
    const KDate today = KDate::of(2019, 5, 6);
    for (int i = 0; i < 1200; ++i) {
        const uint64_t r = tr_rand() >> 8;
        KIncidence e;
        e->summary = KString(words[r % 12]) + " " + KString::number(i);
        e->location = KString("Room ") + KString::number(int(r >> 8 & 31));
        e->start = KDateTime{ qint64(today.jd - 400 + pick(r >> 12, 500)) * 86400 + pick(r >> 24, 40) * 1800 };
        e->duration = 900 * (1 + pick(r >> 30, 12));
        e->priority = pick(r >> 34, 9);
        e->zone = i & 1 ? berlin.get() : lisbon.get();
        e->rule.frequency = KRecurrenceRule::Frequency(r % 5);
        e->rule.interval = static_cast<unsigned char>(1 + (r >> 4) % 3);
        e->rule.byDay = static_cast<unsigned short>(r >> 16 & 127);
        e->rule.hasCount = 0;
        e->rule.end.untilJd = today.jd + pick(r >> 20, 200);
        for (unsigned k = 0; k < (r >> 40) % 5; ++k) e->rule.exceptions << KDate{ today.jd + pick(r >> (3 * k), 60) };
        for (unsigned k = 0; k < 1 + (r >> 44) % 3; ++k) e->attendees << KString(people[(r >> (2 * k)) % 5]);
        e->properties[KString("color")] = KVariant(int(r >> 9 & 255));
        if (i % 3 == 0) e->properties[KString("url")] = KVariant(e->location);
        calendar->add(e);
    }
    for (int g = 0; g < 30; ++g) {
        TaskItem *group = tasks->newItem(tasks->items().at(0), KString("Group ") + KString::number(g));
        for (int i = 0; i < 60; ++i) {
            const uint64_t r = tr_rand() >> 8;
            TaskItem *t = tasks->newItem(group, KString(words[r % 12]) + " " + KString(words[(r >> 8) % 12]) + " " + KString::number(g * 100 + i));
            t->effort = double(1 + (r >> 20) % 50) / 4;
            t->due = KDateTime{ qint64(today.jd + pick(r >> 24, 300)) * 86400 };
            t->columns[1] = KVariant(t->effort);
            t->columns[2] = KVariant(t->due);
            t->columns[3] = KVariant(KString(people[(r >> 30) % 5]));
            t->columns[4] = KVariant(int(r >> 33 & 3));
            const KVector<TaskItem *> all = tasks->items();
            for (unsigned k = 0; k < (r >> 36) % 4; ++k) {
                TaskItem *before = all.at(int((r >> (5 * k)) % unsigned(all.size())));
                if (before == t) continue;
                before->successors << t;
                ++t->predecessors;
            }
        }
    }
    double sum = 0;
    for (int turn = 0; tr_more(); ++turn) {
        const uint64_t r = tr_rand() >> 8;
        for (unsigned k = 0; k < 60; ++k) {
            const uint64_t q = tr_rand() >> 10;
            if (k % 4) loop->postEvent(tasks.get(), int(q & 7), KVariant(tasks->items().at(pick(q >> 8, tasks->items().size()))->name), int(q >> 40 & 1));
            else loop->postEvent(calendar.get(), int(q & 3) - 1, KVariant(int(q >> 8 & 0xffff)), 2);
        }
        loop->sendPostedEvents();
        sum += tasks->criticalPath();
        if (turn % 4 == 0) {
            proxy->setFilter(KString(turn % 3 ? "e" : words[r % 12]), pick(r >> 20, 5), r >> 30 & 1);
            sum += showView(proxy.get());
        }
        if (turn % 4 == 1) calendar->expand(KDate{ today.jd + pick(r, 90) }, 21);
        for (int k = 0; k < 21; ++k) sum += double(calendar->freeBusy(KDate{ today.jd + pick(r, 90) + k }));
        sum += showView(tasks.get()) + upcoming(calendar.get(), KString(people[r % 5]));
    }
    if (getenv("SHOW")) fprintf(stderr, "sum %g delivered %lu string compares %lu critical %d\n", sum, loop->delivered, KVariant::handlers[KVariant::String].calls, tasks->criticalPath());
    tr_sink = uint64_t(sum);
    _Exit(0);
}
