/* A pointer chase over a randomly linked array much larger than the cache: all waits are on
 * `next`, and the instruction behind each load is another one's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct cell {
    struct cell *next;
    long payload[7];
};

__attribute__((noinline)) static struct cell *chase(struct cell *p, long n)
{
    while (n--)
        p = p->next;
    return p;
}

int main(int argc, char **argv)
{
    /* Each first touch of a page is a fault of its own, whatever the machine is set to. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    size_t n = (argc > 1 ? strtoul(argv[1], NULL, 0) : 128) << 14; /* MiB of 64-byte cells */
    struct cell *cells = malloc(n * sizeof *cells);
    size_t *order = malloc(n * sizeof *order);
    unsigned long seed = 88172645463325252ul;
    if (!cells || !order)
        return 1;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        size_t j = seed % i, swap = order[i];
        order[i] = order[j], order[j] = swap; /* Sattolo: one cycle through all */
    }
    for (size_t i = 0; i < n; i++)
        cells[order[i]].next = &cells[order[(i + 1) % n]];
    free(order);
    puts("ready");
    fflush(stdout);
    for (struct cell *p = cells;;) {
        p = chase(p, 1 << 20);
        __asm__ volatile("" : "+r"(p) : : "memory");
    }
}
