/*
 * Nine loops in which one access is slow and known, as food for `dataspace doctor --calibrate`: three
 * kinds of access, each first, in the middle and last in its loop.
 *
 * Says on standard output, one line a loop, what the access is, where it stands, its address, and
 * the addresses of all instructions of the loop in the order in which they run; then "ready", or "no
 * memory". After a line on standard input it runs the loops in turn, until that input closes, or at
 * most MAX_SECONDS.
 *
 * The loops are assembly because a compiler would move what must stand still. Each instruction of a
 * loop is a `step`, which notes its address; labels name the slow ones: calibrate_store_first.
 */
#ifndef __x86_64__
#error "the loops are x86-64 assembly"
#endif

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 64,
    /* 22 bits of line numbers, 256 MiB: far more than a second-level cache or a TLB reaches, and
     * more than one core's part of a shared third level. Small pages are wanted: the page walk
     * makes the access slower still. The shifts by 42 and 6 in the loops follow from it. */
    N_LINES = 1 << 22,
    /* Between two looks at the clock: 0.1 to 1 ms. */
    N_ITERATIONS = 4096,
    SLICE_NS = 10000000,
    MAX_SECONDS = 3600,
};

/* Knuth's MMIX generator. Its sequence modulo N_LINES visits each line once. */
#define MULTIPLIER 6364136223846793005u
#define INCREMENT 1442695040888963407u

/*
 * Arguments of a loop: rdi where it stands (the line that it will read, or the generator's state),
 * rsi how many times, rdx the memory, rcx a few words that stay in the cache. Returns rdi. Lines
 * hold the address of the next line at 0, what is loaded at 16 and what is stored at 32.
 *
 * The cheap instructions are of different kinds, and so is the one behind the slow access: register
 * arithmetic, a cached load, a cached store, a branch. A loop with a slow store has no other store:
 * it would wait for room in the same buffer.
 */
__asm__(
    ".macro step instruction:vararg\n"
    "    .pushsection calibration_steps, \"aw\"\n"
    "    .quad 8881f\n"
    "    .popsection\n"
    "8881: \\instruction\n"
    ".endm\n"
    ".macro begin name\n"
    "    .pushsection calibration_steps, \"aw\"\n"
    "    .globl \\name\\()_steps\n"
    "\\name\\()_steps:\n"
    "    .popsection\n"
    "    .globl \\name\\()_loop\n"
    "    .type \\name\\()_loop, @function\n"
    "\\name\\()_loop:\n"
    "    movabs $6364136223846793005, %r8\n"
    "    movabs $1442695040888963407, %r9\n"
    "    xor %eax, %eax\n"
    "    .p2align 5\n"
    "8880:\n"
    ".endm\n"
    ".macro slow name instruction:vararg\n"
    "    .globl \\name\n"
    "\\name:\n"
    "    step \\instruction\n"
    ".endm\n"
    ".macro finish name\n"
    "    mov %rdi, %rax\n"
    "    ret\n"
    "    .size \\name\\()_loop, . - \\name\\()_loop\n"
    "    .pushsection calibration_steps, \"aw\"\n"
    "    .globl \\name\\()_steps_end\n"
    "\\name\\()_steps_end:\n"
    "    .popsection\n"
    ".endm\n"
    /* The next line's place in rax. */
    ".macro draw\n"
    "    step imul %r8, %rdi\n"
    "    step add %r9, %rdi\n"
    "    step mov %rdi, %rax\n"
    "    step shr $42, %rax\n"
    "    step shl $6, %rax\n"
    ".endm\n"
    ".text\n"

    "begin calibrate_dependent_first\n"
    "slow calibrate_dependent_first mov (%rdi), %rdi\n"
    "    step add $3, %rax\n"
    "    step mov 8(%rcx), %r10\n"
    "    step imul %r10, %r11\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step lea 5(%rax,%r10), %rdx\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_dependent_first\n"

    "begin calibrate_dependent_middle\n"
    "    step add $3, %rax\n"
    "    step mov 8(%rcx), %r10\n"
    "    step imul %r10, %r11\n"
    "slow calibrate_dependent_middle mov (%rdi), %rdi\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step lea 5(%rax,%r10), %rdx\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_dependent_middle\n"

    "begin calibrate_dependent_last\n"
    "    step add $3, %rax\n"
    "    step mov 8(%rcx), %r10\n"
    "    step imul %r10, %r11\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step lea 5(%rax,%r10), %rdx\n"
    "    step dec %rsi\n"
    "slow calibrate_dependent_last mov (%rdi), %rdi\n"
    "    step jnz 8880b\n"
    "finish calibrate_dependent_last\n"

    "begin calibrate_independent_first\n"
    "slow calibrate_independent_first mov 16(%rdx,%rax), %r10\n"
    "    draw\n"
    "    step mov 8(%rcx), %r11\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_independent_first\n"

    "begin calibrate_independent_middle\n"
    "    draw\n"
    "slow calibrate_independent_middle mov 16(%rdx,%rax), %r10\n"
    "    step mov 8(%rcx), %r11\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_independent_middle\n"

    "begin calibrate_independent_last\n"
    "    draw\n"
    "    step mov 8(%rcx), %r11\n"
    "    step mov %r11, 16(%rcx)\n"
    "    step dec %rsi\n"
    "slow calibrate_independent_last mov 16(%rdx,%rax), %r10\n"
    "    step jnz 8880b\n"
    "finish calibrate_independent_last\n"

    "begin calibrate_store_first\n"
    "slow calibrate_store_first mov %rdi, 32(%rdx,%rax)\n"
    "    draw\n"
    "    step mov 8(%rcx), %r10\n"
    "    step lea 5(%rax,%r10), %r11\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_store_first\n"

    "begin calibrate_store_middle\n"
    "    draw\n"
    "slow calibrate_store_middle mov %rdi, 32(%rdx,%rax)\n"
    "    step mov 8(%rcx), %r10\n"
    "    step lea 5(%rax,%r10), %r11\n"
    "    step dec %rsi\n"
    "    step jnz 8880b\n"
    "finish calibrate_store_middle\n"

    "begin calibrate_store_last\n"
    "    draw\n"
    "    step mov 8(%rcx), %r10\n"
    "    step lea 5(%rax,%r10), %r11\n"
    "    step dec %rsi\n"
    "slow calibrate_store_last mov %rdi, 32(%rdx,%rax)\n"
    "    step jnz 8880b\n"
    "finish calibrate_store_last\n");

typedef uint64_t loop_function(uint64_t state, long n_iterations, char *memory, long *cached);

struct loop {
    const char *access;
    const char *place;
    loop_function *run;
    const char *slow;
    const uint64_t *steps, *steps_end;
    int follows_lines;
};

#define DECLARE(name)                                                                              \
    extern loop_function name##_loop;                                                              \
    extern const char name[];                                                                      \
    extern const uint64_t name##_steps[], name##_steps_end[]

DECLARE(calibrate_dependent_first);
DECLARE(calibrate_dependent_middle);
DECLARE(calibrate_dependent_last);
DECLARE(calibrate_independent_first);
DECLARE(calibrate_independent_middle);
DECLARE(calibrate_independent_last);
DECLARE(calibrate_store_first);
DECLARE(calibrate_store_middle);
DECLARE(calibrate_store_last);

#define LOOP(access, place, name, follows_lines)                                                   \
    {access, place, name##_loop, name, name##_steps, name##_steps_end, follows_lines}

static const struct loop loops[] = {
    LOOP("dependent_load", "first", calibrate_dependent_first, 1),
    LOOP("dependent_load", "middle", calibrate_dependent_middle, 1),
    LOOP("dependent_load", "last", calibrate_dependent_last, 1),
    LOOP("independent_load", "first", calibrate_independent_first, 0),
    LOOP("independent_load", "middle", calibrate_independent_middle, 0),
    LOOP("independent_load", "last", calibrate_independent_last, 0),
    LOOP("store", "first", calibrate_store_first, 0),
    LOOP("store", "middle", calibrate_store_middle, 0),
    LOOP("store", "last", calibrate_store_last, 0),
};
enum { N_LOOPS = sizeof loops / sizeof loops[0] };

/* A cycle through all lines. Written in the order of addresses: a shuffle would take a second. */
static void link_lines(char *memory)
{
    for (uint64_t line = 0; line < N_LINES; line++) {
        uint64_t next = (line * MULTIPLIER + INCREMENT) % N_LINES;
        char *target = memory + next * LINE_BYTES;
        memcpy(memory + line * LINE_BYTES, &target, sizeof target);
    }
}

static void describe(void)
{
    for (const struct loop *loop = loops; loop < loops + N_LOOPS; loop++) {
        printf("%s %s %lx", loop->access, loop->place, (unsigned long)loop->slow);
        for (const uint64_t *step = loop->steps; step < loop->steps_end; step++)
            printf(" %lx", (unsigned long)*step);
        printf("\n");
    }
    printf("ready\n");
    fflush(stdout);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int is_input_closed(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(void)
{
    static long cached[8];
    uint64_t states[N_LOOPS];
    char go[8];

    prctl(PR_SET_NAME, "dataspace-calibration");
    char *memory = mmap(NULL, (size_t)N_LINES * LINE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        printf("no memory\n");
        fflush(stdout);
        return read(STDIN_FILENO, go, sizeof go) != 0;
    }
    link_lines(memory);
    for (int i = 0; i < N_LOOPS; i++)
        states[i] = loops[i].follows_lines ? (uint64_t)(uintptr_t)memory : 1u + (unsigned)i;
    describe();
    if (read(STDIN_FILENO, go, sizeof go) <= 0)
        return 0;
    int64_t now = now_ns(), end = now + MAX_SECONDS * INT64_C(1000000000);
    for (int i = 0; now < end && !is_input_closed(); i = (i + 1) % N_LOOPS) {
        int64_t slice_end = now + SLICE_NS;
        while (now < slice_end) {
            states[i] = loops[i].run(states[i], N_ITERATIONS, memory, cached);
            now = now_ns();
        }
    }
    return 0;
}
