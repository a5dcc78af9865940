/* Code that invites wrong names: casts, containers, payloads, two pointers in one register. */
#include "truth.h"
#include <string.h>

struct pos { int x, y; };
struct head { long len, kind; };
struct small { char tag, kind; int n; };
struct item { long id; struct pos at; struct head link; long last; };
struct wide { long a, b, c, d; };
struct other { double d; long e; };

FUNCTION char cast_bytes(char *buffer) {
    struct small *s = (struct small *)buffer;
    return s->kind;
}
FUNCTION int cast_void(void *raw) {
    struct small *s = raw;
    return s->n;
}
FUNCTION double cast_other(struct head *h) {
    struct other *o = (struct other *)h;
    return o->d;
}
FUNCTION long payload(struct head *h, long i) { return ((long *)(h + 1))[i]; }
FUNCTION long payload_first(struct head *h) { return *(long *)(h + 1); }
FUNCTION long container(struct head *link) {
    return ((struct item *)((char *)link - offsetof(struct item, link)))->id;
}
FUNCTION long swapped(struct wide *p, long bytes) {
    long read;
    __asm__ volatile("mov 8(%1,%2,1), %0" : "=r"(read) : "r"(bytes), "r"(p));
    return read;
}
FUNCTION long by_value(struct wide w) { return w.c; }
FUNCTION long sized(volatile long *list, long n) {
    volatile long values[n];
    values[0] = list[0];
    values[n - 1] = 3;
    return values[0];
}
FUNCTION long followed(struct item **p) {
    struct item *i = *p;
    return i->last;
}
FUNCTION void copied(struct wide *to, const struct wide *from) { *to = *from; }
FUNCTION long lost(struct wide *p, long i) {
    long read;
    __asm__ volatile("mov 8(%1), %0" : "=r"(read) : "0"(p));
    return read + i;
}
FUNCTION long counted(struct wide *p, long bytes) {
    __asm__ volatile("mov 8(%1,%0,1), %0" : "+r"(bytes) : "r"(p));
    return bytes;
}
FUNCTION unsigned switched(unsigned *slots, unsigned i) {
    switch (i) {
    case 0: return slots[1];
    case 1: return slots[2] * 3;
    case 2: return slots[3] + 7;
    case 3: return slots[4] ^ 9;
    case 4: return slots[5] - 2;
    case 5: return slots[6] << 3;
    default: return slots[7];
    }
}
FUNCTION void string_copy(char *to, const char *from, long n) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
FUNCTION long chain(struct head *h, struct wide *w) {
    long first = h->kind;
    long second = w->c;
    return first * second;
}
FUNCTION long looped(struct wide *w, long n) {
    long sum = 0;
    do {
        sum += w->b;
        w = (struct wide *)w->d;
    } while (--n);
    return sum;
}
FUNCTION long chosen(struct wide *w, long n) {
    long sum = w->a;
    if (n > 3) {
        __asm__ volatile("add 8(%1), %0" : "+r"(sum) : "r"(w));
    } else {
        __asm__ volatile("add 16(%1), %0" : "+r"(sum) : "r"(w));
    }
    __asm__ volatile("" : "+r"(sum));
    return sum * n;
}

int main(void) {
    MEMBER(struct item, link); MEMBER(struct item, last); MEMBER(struct small, n);
    MEMBER(struct wide, c); MEMBER(struct head, kind);
    print_image();
    return 0;
}
