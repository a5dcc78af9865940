/* One loop for each reason why a sample has no data object; argument 1 names the reason. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define N_CELLS (1ul << 20)

struct cell { struct cell *next; long rest[7]; };
struct job { void (*run)(long); long rest[7]; };

static struct cell *cells;
static unsigned char *storage;
static volatile long sink;

/* No symbol type, no size, no call frame information: where it begins and ends nobody says. */
struct cell *bare(struct cell *cell, long n);
__asm__("bare:\n"
        "0: mov (%rdi), %rdi\n"
        "dec %rsi\n"
        "jnz 0b\n"
        "mov %rdi, %rax\n"
        "ret");

__attribute__((noinline)) static struct cell *chase(struct cell *cell, long n)
{
    while (n--)
        cell = cell->next;
    return cell;
}

/* After the slow load is a place that a jump by a pointer in memory leads to as well, after a load as slow of something
 * else, every other time; neither flags nor registers tell which way it was reached. */
struct twin { struct twin *next; };
static struct twin *twins;
static void *volatile onward;
__attribute__((noinline)) static struct cell *join(struct cell *cell, long n)
{
    struct twin *twin = twins ? twins : (struct twin *)&cells[N_CELLS / 2];
    __asm__ volatile("lea 2f(%%rip), %%rax\n"
                     "mov %%rax, %[onward]\n"
                     "jmp 1f\n"
                     "0: mov (%[twin]), %[twin]\n"
                     "mov $0, %%ecx\n"
                     "jmp *%[onward]\n"
                     "1: mov $0, %%ecx\n"
                     "mov (%[cell]), %[cell]\n"
                     "2: lea -1(%[n]), %[n]\n"
                     "test %[n], %[n]\n"
                     "jle 3f\n"
                     "lea 0b(%%rip), %%rcx\n"
                     "lea 1b(%%rip), %%rax\n"
                     "test $1, %[n]\n"
                     "cmovz %%rax, %%rcx\n"
                     "test %%rsp, %%rsp\n"
                     "jmp *%%rcx\n"
                     "3:"
                     : [cell] "+r"(cell), [twin] "+r"(twin), [n] "+r"(n), [onward] "=m"(onward) : : "rax", "rcx", "cc");
    twins = twin;
    return cell;
}

/* Words in storage that is declared as characters. */
__attribute__((noinline)) static long bytes(const char *storage, long n)
{
    long at = 0;
    while (n--)
        memcpy(&at, storage + at, sizeof at);
    return at;
}

/* A pointer that is never in a variable. */
__attribute__((noinline)) static uintptr_t coded(uintptr_t code, uintptr_t key, long n)
{
    while (n--)
        code = *(uintptr_t *)(code ^ key);
    return code;
}

__attribute__((noinline)) static void callee(long i) { sink = i; }

/* The sample of the call's operand is reported in the function that is called. */
__attribute__((noinline)) static void calls(struct job *job, long n)
{
    for (long i = 0; i < n; i++)
        job->run(i);
}

/* Nothing but registers. */
__attribute__((noinline)) static long compute(long n)
{
    long x = n;
    for (long i = 0; i < n; i++) {
        x = x * 3 + 1, x ^= x >> 7, x = x * 5 + 3, x ^= x >> 9, x = x * 7 + 5, x ^= x >> 11;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static sigjmp_buf back;
static void on_fault(int signal) { (void)signal, siglongjmp(back, 1); }

/* Not an address at all. */
__attribute__((noinline)) static long wild(struct cell *cell)
{
    if (sigsetjmp(back, 0) == 0)
        return cell->rest[0];
    return 0;
}

/* A load of the stack segment holds back what a breakpoint has to say by one instruction (SDM vol.
 * 3, section 6.8.3), so that it is reported behind one that touches no memory. */
__attribute__((noinline)) static void held_back(struct cell *cell)
{
    __asm__ volatile("mov %%ss, %%eax\n"
                     "mov %%eax, 8(%[cell])\n"
                     "mov 8(%[cell]), %%ss\n"
                     "inc %%rax\n"
                     "dec %%rax"
                     : : [cell] "r"(cell) : "rax", "memory", "cc");
}

/* The heap is where it is asked to be, so that a breakpoint can be set before it is there. */
static void *heap(size_t n_bytes)
{
    void *place = mmap((void *)0x20000000, n_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place == MAP_FAILED)
        exit(1);
    return place;
}

static void make_cells(uintptr_t key)
{
    cells = heap(N_CELLS * sizeof *cells);
    /* An odd factor, an odd sum, and one more than a multiple of four: one cycle through all. */
    unsigned long at = 0;
    for (unsigned long i = 0; i < N_CELLS; i++) {
        unsigned long next = (at * 1664525 + 1013904223) % N_CELLS;
        cells[at].next = (struct cell *)((uintptr_t)&cells[next] ^ key);
        at = next;
    }
}

/* The same cycle as distances from the start, in bytes that have no other type. */
static void make_distances(void)
{
    storage = heap(N_CELLS * sizeof(struct cell));
    unsigned long at = 0;
    for (unsigned long i = 0; i < N_CELLS; i++) {
        unsigned long next = (at * 1664525 + 1013904223) % N_CELLS;
        long distance = (long)(next * sizeof(struct cell));
        memcpy(storage + at * sizeof(struct cell), &distance, sizeof distance);
        at = next;
    }
}

static int is(const char *reason, const char *name) { return !strcmp(reason, name); }

int main(int argc, char **argv)
{
    const char *reason = argc > 1 ? argv[1] : "";
    long n_rounds = argc > 2 ? strtol(argv[2], NULL, 0) : -1;
    const uintptr_t key = 0x5a5a5a5a5a5a5a5a;
    struct job *job = NULL;
    if (is(reason, "unidentified"))
        make_distances();
    else if (is(reason, "undetermined"))
        make_cells(key);
    else if (is(reason, "blocked"))
        job = heap(4096), job->run = callee;
    else if (!is(reason, "incomplete") && !is(reason, "invalid_address"))
        make_cells(0);
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    puts("ready");
    fflush(stdout);
    struct cell *cell = cells;
    uintptr_t code = (uintptr_t)cells ^ key;
    for (; n_rounds; n_rounds--) {
        if (is(reason, "unverifiable"))
            cell = bare(cell, 1 << 16);
        else if (is(reason, "unresolvable"))
            cell = join(cell, 1 << 16);
        else if (is(reason, "unidentified"))
            sink = bytes((const char *)storage, 1 << 16);
        else if (is(reason, "undetermined"))
            code = coded(code, key, 1 << 16);
        else if (is(reason, "blocked"))
            calls(job, 10);
        else if (is(reason, "incomplete"))
            sink = compute(1 << 16);
        else if (is(reason, "invalid_address"))
            sink = wild((struct cell *)0x8000000000000000);
        else if (is(reason, "unspecified"))
            held_back(cells);
        else
            cell = chase(cell, 1 << 16);
    }
    return cell == NULL && code == 0;
}
