/* A program of known footprint: data at page stride, code of one page each. It says what the kernel accounts for each part,
   by getrusage(2), and its CPU time. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096L
#define N_DATA_PAGES 16384L
#define N_CODE_PAGES 1024L

struct page {
    long number;
    char rest[PAGE - sizeof(long)];
};

static struct page g_pages[N_DATA_PAGES] __attribute__((aligned(4096)));

asm(".pushsection .text.pages, \"ax\"\n"
    ".balign 4096\n"
    "pages_of_code:\n"
    ".rept 1024\n"
    "ret\n"
    ".balign 4096\n"
    ".endr\n"
    ".popsection\n");
extern char pages_of_code[];

static __attribute__((noinline)) long stride(struct page *pages, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        pages[i].number = i;
        sum += i;
    }
    return sum;
}

static __attribute__((noinline)) void jump(long n) {
    for (long i = 0; i < n; i++)
        ((void (*)(void))(pages_of_code + i * PAGE))();
}

static __attribute__((noinline)) long spin(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i;
    return sum;
}

static struct rusage g_before, g_after;
static char g_line[256];

static void say(const char *what, long a, long b) {
    int n = snprintf(g_line, sizeof g_line, "%s %ld %ld\n", what, a, b);
    if (write(1, g_line, n) != n)
        exit(1);
}

static void bracket(const char *what, long n_data, long n_code) {
    getrusage(RUSAGE_SELF, &g_before);
    stride(g_pages, n_data);
    jump(n_code);
    getrusage(RUSAGE_SELF, &g_after);
    say(what, g_after.ru_minflt - g_before.ru_minflt, g_after.ru_majflt - g_before.ru_majflt);
}

int main(int argc, char **argv) {
    char go;
    madvise(g_pages, sizeof g_pages, MADV_NOHUGEPAGE);
    if (argc > 1 && strcmp(argv[1], "spin") == 0) {
        struct timespec cpu;
        long n = atol(argv[2]);
        do {
            spin(n);
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        } while (cpu.tv_sec < 1);
        say("cpu", cpu.tv_sec, cpu.tv_nsec);
        return 0;
    }
    /* Once in vain: what comes has no faults of its own. */
    bracket("warm", 0, 0);
    say("ready", 0, 0);
    if (write(1, "ready\n", 6) != 6 || read(0, &go, 1) != 1)
        return 1;
    bracket("bracketed", N_DATA_PAGES, N_CODE_PAGES);
    if (read(0, &go, 1) != 1)
        return 1;
    return 0;
}
