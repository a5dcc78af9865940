// Elements after a header, tables in an array that a loop goes over, and members of a class behind its base.
#include "truth.h"
#include <cstdlib>
#include <cstring>

// How far from here the elements begin, is a number in it.
struct Header {
    int owners, size;
    long offset;
    void *data() { return reinterpret_cast<char *>(this) + offset; }
};
template <class T> struct Vector {
    Header *d;
    T *begin() const { return reinterpret_cast<T *>(reinterpret_cast<char *>(d) + d->offset); }
    const T &at(long i) const { return static_cast<T *>(d->data())[i]; }
};
template <class T> struct TypedHeader : Header {
    T *begin() { return reinterpret_cast<T *>(reinterpret_cast<char *>(this) + offset); }
};
struct Text { TypedHeader<unsigned short> *d; };
// Which of the two types lies after the header is not told.
template <class K, class V> struct Table { Header *d; };

// What only looks like elements after a header: a vector's parts, what a pointer is made for, counters a line apart.
template <class T> struct Vec3 {
    T x, y, z;
    T &operator[](long i) { return (&x)[i]; }
};
struct Buffer { long owners; };
template <class T> struct Pointer { T *p; };
struct Counters { long hits, misses, evictions; };
template <class T> struct Cache { Counters *c; };
// A place that is one of three, the last of which lies behind the array of the others.
struct Node { Node *child[2]; Node *parent; long key; };

struct Rows { short **rows; long mask; };
struct Both { long kind; Rows tables[2]; long turn; };

// An array without a length, or of one that goes on: a whole number of headers goes into each element, or does not. Only
// elements have a short. Several steps in one may be a whole number of objects.
#define LOOP _Pragma("GCC unroll 1") for
#define ENDED_BY(LENGTH, NAME, HEADER, BEFORE, AFTER)                                           \
    struct NAME {                                                                               \
        HEADER;                                                                                 \
        struct Item { BEFORE short v; AFTER } items[LENGTH];                                    \
    };                                                                                          \
    extern "C" {                                                                                \
    FUNCTION long NAME##_up(NAME *it, int n) {                                                  \
        long sum = 0;                                                                           \
        LOOP (int i = 0; i < n; i++) sum = sum * 31 + it->items[i].v;                           \
        return sum;                                                                             \
    }                                                                                           \
    FUNCTION long NAME##_down(NAME *it, int n) {                                                \
        long sum = 0;                                                                           \
        LOOP (int i = n; i-- > 0;) sum = sum * 31 + it->items[i].v;                             \
        return sum;                                                                             \
    }                                                                                           \
    FUNCTION void NAME##_both(NAME *it, int n) {                                                \
        LOOP (int i = 1; i < n; i++) it->items[i].v = (short)(it->items[i - 1].v * 3 + i);      \
    }                                                                                           \
    FUNCTION long NAME##_to(NAME *it, int n) {                                                  \
        long sum = 0;                                                                           \
        LOOP (NAME::Item *each = it->items; each < it->items + n; each++) sum = sum * 31 + each->v; \
        return sum;                                                                             \
    }                                                                                           \
    FUNCTION long NAME##_at(NAME *it, long i) { return it->items[i].v; }                        \
    }
#define ENDED(SIZES, HEADER, BEFORE, AFTER)             \
    ENDED_BY(, Open##SIZES, HEADER, BEFORE, AFTER)      \
    ENDED_BY(1, One##SIZES, HEADER, BEFORE, AFTER)
ENDED(8In8, long n, , int w;)
ENDED(8In16, long n, long w;, )
ENDED(8In24, long n, long w[2];, )
ENDED(16In16, long n; long m, long w;, )
ENDED(16In48, long n; long m, long w[5];, )
ENDED(12In48, int n; int m; int k, int w[8];, int x[3];)
ENDED(16In24, long n; long m, long w[2];, )
ENDED(4In4, int n, short w;, )
// Its array has one element: such objects lie one after the other.
struct Whole { long n; int w; short key, tail[1]; };
extern "C" {
FUNCTION long of_keys(const Whole *it, int n) {
    long sum = 0;
    LOOP (int i = 0; i < n; i++) sum = sum * 31 + it[i].key;
    return sum;
}
FUNCTION long of_tails(const Whole *it, int n) {
    long sum = 0;
    LOOP (const Whole *each = it + n; each-- > it;) sum = sum * 31 + each->tail[0];
    return sum;
}
}

struct Base { virtual ~Base() {} long own = 1; };
struct Derived : Base { short *values = nullptr; };
struct Words : Base { long *words = nullptr; };
struct Owner { Base *d; };

extern "C" {
FUNCTION long of_vector(const Vector<unsigned short> *v) {
    long sum = 0;
    for (int i = 0; i < v->d->size; ++i) sum = sum * 31 + v->begin()[i];
    return sum;
}
FUNCTION long of_element(const Vector<unsigned short> *v, long i) { return v->at(i); }
FUNCTION long of_text(const Text *t) {
    long sum = 0;
    for (int i = 0; i < t->d->size; ++i) sum = sum * 31 + t->d->begin()[i];
    return sum;
}
FUNCTION long of_texts(const Vector<unsigned short *> *v, long k) { return *v->begin()[k]; }
FUNCTION long of_table(const Table<char16_t, short> *t) {
    long sum = 0;
    for (int i = 0; i < t->d->size; ++i)
        sum = sum * 31 + *reinterpret_cast<short *>(reinterpret_cast<char *>(t->d) + t->d->offset + 2 * i);
    return sum;
}
FUNCTION long of_both(const Both *b, long hash) {
    for (int i = 0; i <= 1; i++) {
        for (short *s = b->tables[i].rows[hash & b->tables[i].mask]; *s; s++)
            if (*s == hash) return i;
        if (b->turn < 0) return -1;
    }
    return -2;
}
FUNCTION void of_vec(Vec3<short> *v, long i) { (*v)[i] *= 3; }
FUNCTION long of_buffer(const Pointer<Buffer> *p, long at) {
    long word;
    memcpy(&word, reinterpret_cast<char *>(p->p + 1) + at, sizeof word);
    return word;
}
FUNCTION long of_cache(const Cache<Buffer *> *c, long cpu) {
    return reinterpret_cast<Counters *>(reinterpret_cast<char *>(c->c) + cpu * 64)->hits;
}
FUNCTION void of_node(Node *n, const Node *of, Node *with) {
    Node **link = n->child[0] == of ? &n->child[0] : n->child[1] == of ? &n->child[1] : &n->parent;
    *link = with;
}
FUNCTION long of_words(const Owner *o, long n) {
    static_cast<Words *>(o->d)->words = static_cast<long *>(malloc(8 * n + 8));
    return static_cast<Words *>(o->d)->words[n];
}
FUNCTION long behind_base(const Owner *o, long k) { return static_cast<Derived *>(o->d)->values[k]; }
}

static short zeros[4];
static short *rows[1] = {zeros};

int main() {
    Header *header = static_cast<Header *>(malloc(sizeof(Header) + 64));
    header->owners = 1, header->size = 4, header->offset = sizeof(Header);
    Vector<unsigned short> vector = {header};
    Text text = {static_cast<TypedHeader<unsigned short> *>(header)};
    Table<char16_t, short> table = {header};
    for (int i = 0; i < 8; i++) vector.begin()[i] = 0;
    unsigned short letter = 0, *first = &letter;
    Header *pointers = static_cast<Header *>(malloc(sizeof(Header) + 64));
    pointers->owners = 1, pointers->size = 1, pointers->offset = sizeof(Header);
    Vector<unsigned short *> texts = {pointers};
    texts.begin()[0] = first;
    Both both = {1, {{rows, 0}, {rows, 0}}, 1};
    Derived derived;
    derived.values = zeros;
    Owner owner = {&derived};
    Words words;
    Owner owner_of_words = {&words};
    Vec3<short> vec = {1, 2, 3};
    Buffer buffers[2] = {{1}, {2}};
    Pointer<Buffer> buffer = {buffers};
    Counters counters = {1, 2, 3};
    Cache<Buffer *> cache = {&counters};
    Node node = {{nullptr, nullptr}, nullptr, 1};
    of_vec(&vec, 1);
    of_node(&node, &node, &node);
    print_image();
    return (int)((of_vector(&vector) + of_element(&vector, 1) + of_text(&text) + of_texts(&texts, 0) + of_table(&table)
                  + of_both(&both, 0) + behind_base(&owner, 1) + of_buffer(&buffer, 0) + of_cache(&cache, 0)
                  + of_words(&owner_of_words, 0)) & 0);
}
