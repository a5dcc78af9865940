/* Functions that touch members of one structure, each page for the first time: as many page faults of
 * each function on each member as it says, to the last one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

struct leaf { /* a page */
    long key;
    int flags; /* and a hole of four bytes behind it */
    long count;
    char rest[4072];
};

#define N_KEYS 300
#define N_MORE_KEYS 100
#define N_COUNTS 200

__attribute__((noinline)) static struct leaf *fill_keys(struct leaf *p, long n)
{
    for (; n--; p++)
        p->key = n;
    return p;
}

__attribute__((noinline)) static struct leaf *fill_more(struct leaf *p, long n)
{
    for (; n--; p++)
        p->key = -n;
    return p;
}

__attribute__((noinline)) static struct leaf *fill_counts(struct leaf *p, long n)
{
    for (; n--; p++)
        p->count = n;
    return p;
}

int main(int argc, char **argv)
{
    size_t bytes = sizeof(struct leaf) * (N_KEYS + N_MORE_KEYS + N_COUNTS);
    struct leaf *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || sizeof(struct leaf) != 4096)
        return 1;
    madvise(p, bytes, MADV_NOHUGEPAGE);
    if (argc > 1) { /* begin when told to, stay when done */
        puts("ready");
        fflush(stdout);
        getchar();
    }
    fill_counts(fill_more(fill_keys(p, N_KEYS), N_MORE_KEYS), N_COUNTS);
    while (argc > 1 && getchar() != EOF)
        ;
    (void)argv;
    return 0;
}
