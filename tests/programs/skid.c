/* Instructions at which a clock sample is not one instruction late: repeated string instructions,
 * accesses that fault, system calls. `before` is touched by the instruction just before, `after` by
 * the one behind; prints where the instruction in question is. Argument 1 picks it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct page { long first, rest[511]; };
struct note { long before, after; };

#define N_PAGES 8192

static struct note note;
static struct page *pages;

/* One instruction between two others, and in a variable how far it is into its function: a pointer
 * to it would say that it may be jumped to. */
#define BETWEEN(NAME, INSTRUCTION)                                                                 \
    "incq %[before]\n"                                                                             \
    "1: " INSTRUCTION "\n"                                                                         \
    "incq %[after]\n"                                                                              \
    ".pushsection .rodata\n"                                                                       \
    ".balign 8\n" #NAME "_distance: .quad 1b - " #NAME "\n"                                         \
    ".popsection"
#define NOTED [before] "+m"(note.before), [after] "+m"(note.after)

extern const long copy_distance, fill_distance, store_distance, update_distance, load_distance,
    call_distance;

__attribute__((noinline)) static void copy(void)
{
    for (long i = 0; i < 64; i++) {
        struct page *to = pages, *from = pages + 64;
        long count = 32 * sizeof *to / 8;
        __asm__ volatile(BETWEEN(copy, "rep movsq")
                         : "+D"(to), "+S"(from), "+c"(count), NOTED : : "memory", "cc");
    }
}

__attribute__((noinline)) static void fill(void)
{
    for (long i = 0; i < 64; i++) {
        struct page *to = pages;
        long count = 32 * sizeof *to / 8;
        __asm__ volatile(BETWEEN(fill, "rep stosq")
                         : "+D"(to), "+c"(count), NOTED : "a"(i) : "memory", "cc");
    }
}

__attribute__((noinline)) static void store(void)
{
    madvise(pages, N_PAGES * sizeof *pages, MADV_DONTNEED);
    for (struct page *page = pages; page < pages + N_PAGES; page++)
        __asm__ volatile(BETWEEN(store, "movq %[value], %[first]")
                         : NOTED, [first] "=m"(page->first) : [value] "r"(page) : "cc");
}

__attribute__((noinline)) static void update(void)
{
    madvise(pages, N_PAGES * sizeof *pages, MADV_DONTNEED);
    for (struct page *page = pages; page < pages + N_PAGES; page++)
        __asm__ volatile(BETWEEN(update, "addq $5, %[first]")
                         : NOTED, [first] "+m"(page->first) : : "cc");
}

__attribute__((noinline)) static void load(void)
{
    madvise(pages, N_PAGES * sizeof *pages, MADV_DONTNEED);
    for (struct page *page = pages; page < pages + N_PAGES; page++) {
        long value;
        __asm__ volatile(BETWEEN(load, "movq %[first], %[value]")
                         : NOTED, [value] "=r"(value) : [first] "m"(page->first) : "cc");
    }
}

__attribute__((noinline)) static void call(void)
{
    for (long i = 0; i < 4096; i++) {
        long result = SYS_getppid;
        __asm__ volatile(BETWEEN(call, "syscall")
                         : "+a"(result), NOTED : : "rcx", "r11", "memory", "cc");
    }
}

static const struct { const char *name; const long *distance; void (*run)(void); } modes[] = {
    {"copy", &copy_distance, copy},       {"fill", &fill_distance, fill},
    {"store", &store_distance, store},    {"update", &update_distance, update},
    {"load", &load_distance, load},       {"call", &call_distance, call},
};

int main(int argc, char **argv)
{
    pages = mmap(NULL, N_PAGES * sizeof *pages, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc < 3 || pages == MAP_FAILED)
        return 1;
    /* Each first touch is a fault of its own. */
    madvise(pages, N_PAGES * sizeof *pages, MADV_NOHUGEPAGE);
    memset(pages, 1, 128 * sizeof *pages);
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i].name)) {
            printf("%p\n", (void *)((char *)modes[i].run + *modes[i].distance));
            puts("ready");
            fflush(stdout);
            for (long n = strtol(argv[2], NULL, 0); n; n--)
                modes[i].run();
        }
    return 0;
}
