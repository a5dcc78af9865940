// One list that is walked on behalf of two functions, one of them three times as often, and a comparison that the C library
// calls.
#include <stdio.h>
#include <stdlib.h>

struct cell {
    long key;
    struct cell *next;
} *g_head;

static long g_sums[2];
static long g_keys[512];

__attribute__((noinline)) long walk(struct cell *cell) {
    long sum = 0;
    for (; cell; cell = cell->next)
        sum += cell->key;
    return sum;
}

__attribute__((noinline)) void rarely(void) {
    g_sums[0] += walk(g_head); // rare call
}

__attribute__((noinline)) void often(void) {
    for (int i = 0; i < 3; i++)
        g_sums[1] += walk(g_head); // frequent call
}

__attribute__((noinline)) static int compare(const void *one, const void *other) {
    long left = *(const long *)one, right = *(const long *)other;
    return (left > right) - (left < right);
}

int main(void) {
    for (int i = 0; i < 4000; i++) {
        struct cell *cell = malloc(sizeof *cell);
        *cell = (struct cell){i, g_head};
        g_head = cell;
    }
    puts("ready");
    fflush(stdout);
    for (long round = 0;; round++) {
        rarely();
        often();
        for (int i = 0; i < 512; i++)
            g_keys[i] = (i * 7919 + round) % 512;
        qsort(g_keys, 512, sizeof *g_keys, compare);
    }
}
