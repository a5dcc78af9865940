/* Loops in which exactly one field misses the cache: argument 1 says how it is accessed (a dependent
 * load, an independent load, a store), argument 2 where in the loop's body. The line of the slow
 * field is touched by that access only; all else the loop touches are a few hot lines. Prints where each
 * of them begins and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell { struct cell *next; long rest[7]; }; /* slow by a dependent load */
struct row { long key; long rest[7]; };           /* slow by an independent load */
struct slot { long mark; long rest[7]; };         /* slow by a store */
struct gauge { long level, limit; };              /* hot, loaded */
struct meter { long ticks, total; };              /* hot, stored */

/* The compiler keeps the order of what stands on the two sides. */
#define THEN __asm__ volatile("" : : : "memory")
#define NEXT_RANDOM (seed = seed * 6364136223846793005ul + 1442695040888963407ul)
#define PLACE ((NEXT_RANDOM >> 33) & mask)
#define HOT_LOAD sum += gauges[n & 31].level ^ gauges[n & 31].limit
#define HOT_STORE meters[n & 31].ticks = sum

struct work {
    struct cell *cells;
    struct row *rows;
    struct slot *slots;
    struct gauge *gauges;
    struct meter *meters;
    unsigned long mask, seed;
};

#define LOOP(NAME, FIRST, MIDDLE, LAST)                                                            \
    __attribute__((noinline)) static long NAME(struct work *work, long n)                          \
    {                                                                                              \
        struct cell *p = work->cells;                                                              \
        struct row *rows = work->rows;                                                             \
        struct slot *slots = work->slots;                                                          \
        struct gauge *gauges = work->gauges;                                                       \
        struct meter *meters = work->meters;                                                       \
        unsigned long mask = work->mask, seed = work->seed;                                        \
        long sum = 0;                                                                              \
        (void)p, (void)rows, (void)slots, (void)mask;                                              \
        while (n--) {                                                                              \
            FIRST;                                                                                 \
            THEN;                                                                                  \
            MIDDLE;                                                                                \
            THEN;                                                                                  \
            LAST;                                                                                  \
            THEN;                                                                                  \
        }                                                                                          \
        work->cells = p;                                                                           \
        work->seed = seed;                                                                         \
        return sum;                                                                                \
    }

#define CHASE p = p->next
#define LOOKUP sum += rows[PLACE].key
#define MARK slots[PLACE].mark = sum

LOOP(chase_first, CHASE, HOT_LOAD, HOT_STORE)
LOOP(chase_middle, HOT_LOAD, CHASE, HOT_STORE)
LOOP(chase_last, HOT_LOAD, HOT_STORE, CHASE)
LOOP(lookup_first, LOOKUP, HOT_LOAD, HOT_STORE)
LOOP(lookup_middle, HOT_LOAD, LOOKUP, HOT_STORE)
LOOP(lookup_last, HOT_LOAD, HOT_STORE, LOOKUP)
LOOP(mark_first, MARK, HOT_LOAD, HOT_STORE)
LOOP(mark_middle, HOT_LOAD, MARK, HOT_STORE)
LOOP(mark_last, HOT_LOAD, HOT_STORE, MARK)

static const struct { const char *kind, *position; long (*run)(struct work *, long); } loops[] = {
    {"dependent", "first", chase_first},    {"dependent", "middle", chase_middle},
    {"dependent", "last", chase_last},      {"independent", "first", lookup_first},
    {"independent", "middle", lookup_middle}, {"independent", "last", lookup_last},
    {"store", "first", mark_first},         {"store", "middle", mark_middle},
    {"store", "last", mark_last},
};

/* One cycle through all cells, in random order (Sattolo). */
static void link_cells(struct cell *cells, unsigned long n, unsigned long seed)
{
    for (unsigned long i = 0; i < n; i++)
        cells[i].next = &cells[i];
    for (unsigned long i = n - 1; i > 0; i--) {
        unsigned long j = (NEXT_RANDOM >> 33) % i;
        struct cell *swap = cells[i].next;
        cells[i].next = cells[j].next, cells[j].next = swap;
    }
}

int main(int argc, char **argv)
{
    int is_chain = argc > 1 && !strcmp(argv[1], "dependent");
    /* 64-byte lines: 128 MiB, or 512 MiB where several misses are under way at once. */
    unsigned long n = is_chain ? 1ul << 21 : 1ul << 23;
    void *lines = aligned_alloc(64, n * 64);
    struct work work = {
        lines, lines, lines, calloc(32, sizeof(struct gauge)), calloc(32, sizeof(struct meter)),
        n - 1, 88172645463325252ul,
    };
    if (argc < 3 || !lines || !work.gauges || !work.meters)
        return 1;
    memset(lines, 0, n * 64);
    if (is_chain)
        link_cells(work.cells, n, work.seed);
    printf("lines %p %p\n", lines, (void *)((char *)lines + n * 64));
    printf("gauges %p %p\n", (void *)work.gauges, (void *)(work.gauges + 32));
    printf("meters %p %p\n", (void *)work.meters, (void *)(work.meters + 32));
    puts("ready");
    fflush(stdout);
    for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++)
        while (!strcmp(argv[1], loops[i].kind) && !strcmp(argv[2], loops[i].position))
            loops[i].run(&work, 1 << 20);
    return 1;
}
