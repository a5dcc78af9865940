/* Functions that only the C library calls, with what it was given beside their address; and some that others may call. */
#undef __NO_INLINE__
#define __NO_INLINE__ 1 /* glibc's bsearch is to be called */
#include "truth.h"
#include <pthread.h>
#include <stdlib.h>

struct item { long key; int weight; struct item *next; };
struct other { double score, rank; };
struct work { long n_done; struct item *items; };
#define BACK __attribute__((noinline)) static

/* An element of an array of structures, of one of pointers, and a key. */
BACK int by_weight(const void *a, const void *b) {
    return ((const struct item *)a)->weight - ((const struct item *)b)->weight;
}
BACK int by_pointed(const void *a, const void *b) {
    return (*(struct item *const *)a)->weight - (*(struct item *const *)b)->weight;
}
BACK int by_key(const void *key, const void *element) {
    long difference = *(const long *)key - ((const struct item *)element)->key;
    return (difference > 0) - (difference < 0);
}
BACK void *start(void *argument) {
    ((struct work *)argument)->n_done++;
    return 0;
}
/* Of two types; in a table; with another size than the element's; passed on by somebody else. */
BACK int of_two(const void *a, const void *b) { return (*(const long *)a > *(const long *)b); }
BACK int in_table(const void *a, const void *b) { return (*(const long *)a < *(const long *)b); }
BACK int of_halves(const void *a, const void *b) { return *(const long *)a >= *(const long *)b; }
BACK int of_anybody(const void *a, const void *b) { return *(const long *)a <= *(const long *)b; }
/* Kept by somebody else, too. */
BACK int kept(const void *a, const void *b) { return *(const long *)a != *(const long *)b; }
int (*volatile saved)(const void *, const void *);
int (*volatile table[])(const void *, const void *) = {in_table};
struct other others[8];

FUNCTION __attribute__((noinline)) void sort(struct item *items, size_t n) {
    qsort(items, n, sizeof *items, by_weight);
}
FUNCTION __attribute__((noinline)) void sort_pointers(struct item **items, size_t n) {
    qsort(items, n, sizeof *items, by_pointed);
}
FUNCTION __attribute__((noinline)) struct item *find(struct item *items, size_t n, struct item *like) {
    return bsearch(&like->key, items, n, sizeof *items, by_key);
}
FUNCTION __attribute__((noinline)) void run(struct work *work) {
    pthread_t thread;
    if (!pthread_create(&thread, 0, start, work)) pthread_join(thread, 0);
}
FUNCTION __attribute__((noinline)) void sort_both(struct item *items, size_t n) {
    qsort(items, n, sizeof *items, of_two);
    qsort(others, 8, sizeof *others, of_two);
}
FUNCTION __attribute__((noinline)) void sort_by_table(struct item *items, size_t n) {
    qsort(items, n, sizeof *items, in_table);
}
FUNCTION __attribute__((noinline)) void sort_and_keep(struct item *items, size_t n) {
    saved = kept;
    qsort(items, n, sizeof *items, kept);
}
FUNCTION __attribute__((noinline)) void sort_halves(struct item *items, size_t n) {
    qsort(items, 2 * n, sizeof *items / 2, of_halves);
}
FUNCTION __attribute__((noinline)) void sort_any(void *items, size_t n, size_t size) {
    qsort(items, n, size, of_anybody);
}

int main(void) {
    struct item items[4] = {{3, 1}, {1, 4}, {4, 1}, {1, 5}}, *pointers[4];
    struct work work = {0, items};
    for (int i = 0; i < 4; i++) pointers[i] = &items[i];
    print_image();
    MEMBER(struct item, key); MEMBER(struct item, weight); MEMBER(struct work, n_done);
    sort(items, 4); sort_pointers(pointers, 4); run(&work); sort_both(items, 4); sort_by_table(items, 4); sort_and_keep(items, 4);
    sort_halves(items, 4); sort_any(items, 4, sizeof *items);
    return find(items, 4, &items[2]) == 0 || table[0](items, items);
}
