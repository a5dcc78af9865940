/* Two threads that count, each in a counter of its own or both in one, until the program is ended.
   sharing KIND HOW
   KIND: members, globals, blocks, elements: two counters in one cache line; the same with "padded-" before: in lines of
         their own; one: one counter for both.
   HOW:  atomic, plain.
   It says "counter ADDRESS THREAD FUNCTION" for each, then "ready". C and C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define ALIGNED __attribute__((aligned(LINE)))

struct stats { long hits; long misses; };
struct padded_stats { long hits; ALIGNED long misses; };
struct padded_count { ALIGNED long count; };

ALIGNED struct stats g_stats;
ALIGNED struct padded_stats g_padded_stats;
/* In one line where the compiler keeps their order: gcc does with -fno-toplevel-reorder. */
ALIGNED long g_left;
long g_right;
ALIGNED long g_padded_left;
ALIGNED long g_padded_right;
ALIGNED long counts[8];
ALIGNED struct padded_count padded_counts[8];
ALIGNED long g_one;
ALIGNED volatile int g_stopped;

struct work { long *counter; int is_atomic; };
static pthread_barrier_t told;

static void tell(const long *counter, const char *function)
{
    printf("counter %p %ld %s\n", (const void *)counter, (long)syscall(SYS_gettid), function);
    fflush(stdout);
    pthread_barrier_wait(&told);
}

#define COUNTING(function)                                                     \
    static void *function(void *argument)                                      \
    {                                                                          \
        struct work *work = (struct work *)argument;                           \
        long *counter = work->counter;                                         \
        tell(counter, #function);                                              \
        if (work->is_atomic)                                                   \
            while (!g_stopped)                                                 \
                __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);              \
        else                                                                   \
            while (!g_stopped) {                                               \
                *counter += 1;                                                 \
                __asm__ volatile("" : : : "memory");                           \
            }                                                                  \
        return NULL;                                                           \
    }

COUNTING(count_left)
COUNTING(count_right)

/* The counters by their names, as programs mostly reach them. */
#define GLOBAL(function, variable)                                             \
    static void *function(void *argument)                                      \
    {                                                                          \
        struct work *work = (struct work *)argument;                           \
        tell(&variable, #function);                                            \
        if (work->is_atomic)                                                   \
            while (!g_stopped)                                                 \
                __atomic_fetch_add(&variable, 1, __ATOMIC_RELAXED);            \
        else                                                                   \
            while (!g_stopped) {                                               \
                variable += 1;                                                 \
                __asm__ volatile("" : : : "memory");                           \
            }                                                                  \
        return NULL;                                                           \
    }

GLOBAL(global_left, g_left)
GLOBAL(global_right, g_right)
GLOBAL(padded_left, g_padded_left)
GLOBAL(padded_right, g_padded_right)
GLOBAL(one_left, g_one)
GLOBAL(one_right, g_one)

/* Two blocks of the allocator that are in one line, or that are not. */
static void blocks(int is_padded, long **left, long **right)
{
    *left = (long *)malloc(sizeof(long));
    for (int i = 0; i < 1000; i++) {
        *right = (long *)malloc(sizeof(long));
        int is_one = (uintptr_t)*left / LINE == (uintptr_t)*right / LINE;
        if (is_one != is_padded)
            return;
        if (!is_padded)
            *left = *right;
    }
    abort();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *kind = argv[1];
    int is_padded = strncmp(kind, "padded-", 7) == 0;
    if (is_padded)
        kind += 7;
    struct work work[2];
    work[0].is_atomic = work[1].is_atomic = strcmp(argv[2], "atomic") == 0;
    void *(*functions[2])(void *) = { count_left, count_right };
    if (strcmp(kind, "members") == 0) {
        work[0].counter = is_padded ? &g_padded_stats.hits : &g_stats.hits;
        work[1].counter = is_padded ? &g_padded_stats.misses : &g_stats.misses;
    } else if (strcmp(kind, "globals") == 0) {
        functions[0] = is_padded ? padded_left : global_left;
        functions[1] = is_padded ? padded_right : global_right;
    } else if (strcmp(kind, "blocks") == 0) {
        blocks(is_padded, &work[0].counter, &work[1].counter);
    } else if (strcmp(kind, "elements") == 0) {
        work[0].counter = is_padded ? &padded_counts[2].count : &counts[2];
        work[1].counter = is_padded ? &padded_counts[3].count : &counts[3];
    } else if (strcmp(kind, "one") == 0) {
        functions[0] = one_left;
        functions[1] = one_right;
    } else {
        return 2;
    }
    pthread_barrier_init(&told, NULL, 3);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, functions[i], &work[i]);
    pthread_barrier_wait(&told);
    puts("ready");
    fflush(stdout);
    /* Until nobody is there any more. */
    while (getchar() != EOF)
        continue;
    g_stopped = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
