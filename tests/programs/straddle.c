/* Objects that begin at different places of their cache lines, one a page: of 40 pages 20 begin a line, 12 begin at
 * byte 16, and 8 at byte 48, where 48 bytes are in two lines. Each is written to once, at `count`; a table's elements
 * are written to as often as their number says. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

struct item {
    long key;
    long count;
    long cold[4];
};

struct table {
    long head;
    struct item items[2];
    long slots[4096];
};

enum { PAGE = 4096, N_PAGES = 40 };

static char *pages(unsigned n) {
    char *start = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(start, (size_t)n * PAGE, MADV_NOHUGEPAGE);
    return start;
}

__attribute__((noinline)) static void count(struct item *item) { item->count = 1; }

__attribute__((noinline)) static void fill(struct table *table, unsigned slot) { table->slots[slot] = 1; }

int main(void) {
    char *start = pages(N_PAGES);
    for (unsigned i = 0; i < N_PAGES; i++)
        count((struct item *)(start + (size_t)i * PAGE + (i < 20 ? 0 : i < 32 ? 16 : 48)));
    struct table *table = (struct table *)pages(9);
    for (unsigned slot = 512; slot < 4096; slot += 512)
        fill(table, slot);
    printf("%ld\n", ((struct item *)start)->count + table->slots[512]);
    return 0;
}
