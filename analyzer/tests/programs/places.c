/* Variables in every place: global, file static, function static, and on the stack. */
#include "truth.h"
#include <string.h>

struct pos { int x, y; };
struct line { long id; struct pos ends[2]; };
struct pool { long n; struct line first; struct line rest[3]; char bytes[32]; };

long before_table[4];
long table[16];
struct pos places[8];
static struct line file_line;
int grid[3][4];
volatile int ticks;
const struct line fixed = {7, {{1, 2}, {3, 4}}};
struct pool pool;
double ratio = 1.5;
int number = 3;
unsigned char storage[256] __attribute__((aligned(8)));
long zeroed[4096];

FUNCTION long table_at(long i) { return table[i]; }
FUNCTION long table_before(long i) { return table[i - 1]; }
FUNCTION long table_third(void) { return table[3]; }
FUNCTION int place_y(long i) { return places[i].y; }
FUNCTION int place_five(void) { return places[5].y; }
FUNCTION int file_end(void) { return file_line.ends[1].y; }
FUNCTION void set_file_end(int y) { file_line.ends[1].y = y; file_line.id++; }
FUNCTION int grid_cell(void) { return grid[2][1]; }
FUNCTION int load_ticks(void) { return ticks; }
FUNCTION long load_fixed(const struct line *l) { return l->id; }
FUNCTION int pool_y(void) { return pool.rest[1].ends[1].y; }
FUNCTION long line_id(struct line *l) { return l->id; }
FUNCTION double behind(double *a) { return a[0]; }
FUNCTION long zero_at(long i) { return zeroed[i]; }
FUNCTION const void *count_up(void) {
    static long n_calls = 5;
    n_calls += ticks;
    return &n_calls;
}

/* Locals, whose places the program tells relative to the frame of its caller (the CFA). */
FUNCTION long locals(long n) {
    volatile struct pos here;
    volatile long sums[4];
    volatile long i = n & 3;
    char *cfa = __builtin_dwarf_cfa();
    here.x = 1;
    here.y = 2;
    sums[i] = n;
    sums[2] = n + 7;
    printf("cfa-here %zu\n", (size_t)(cfa - (char *)&here));
    printf("cfa-sums %zu\n", (size_t)(cfa - (char *)sums));
    return sums[2] + here.y;
}
/* The same in a frame that is aligned, whose places are told from the stack pointer. */
FUNCTION __attribute__((noinline)) long aligned(long n, struct line *line) {
    _Alignas(64) volatile struct pos here;
    volatile long sums[8];
    volatile long i = n & 3;
    void *stack;
    __asm__ volatile("mov %%rsp, %0" : "=r"(stack));
    here.x = 1;
    here.y = 2;
    sums[i] = n;
    sums[2] = n + 7;
    /* The pointer is spilled and read again. */
    __asm__ volatile("" ::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
                     "r13", "r14", "r15", "memory");
    line->id += sums[2];
    __asm__ volatile("" ::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
                     "r13", "r14", "r15", "memory");
    line->id += here.y;
    printf("rsp-here %zu\n", (size_t)((char *)&here - (char *)stack));
    printf("rsp-sums %zu\n", (size_t)((char *)sums - (char *)stack));
    return sums[2] + here.y;
}
FUNCTION long touch(volatile long *a) { return a[0]; }
FUNCTION long small(long n) {
    volatile long kept[4];
    kept[0] = n;
    kept[3] = touch(kept);
    return kept[3];
}
FUNCTION long spill(long a, long b) {
    __asm__ volatile("" ::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
                     "r13", "r14", "r15", "memory");
    return a * b;
}
FUNCTION long by_stack(long a, long b, long c, long d, long e, long f, long seventh) {
    return a + b + c + d + e + f + seventh;
}

int main(void) {
    ADDRESS("before_table", before_table); ADDRESS("table", table); ADDRESS("places", places);
    ADDRESS("file_line", &file_line); ADDRESS("grid", grid); ADDRESS("ticks", &ticks);
    ADDRESS("fixed", &fixed); ADDRESS("pool", &pool); ADDRESS("ratio", &ratio);
    ADDRESS("number", &number); ADDRESS("storage", storage); ADDRESS("n_calls", count_up());
    ADDRESS("zeroed", zeroed); ADDRESS("main", main);
    MEMBER(struct pool, rest); MEMBER(struct pool, first); MEMBER(struct line, ends);
    MEMBER(struct pool, bytes); MEMBER(struct pos, y); SIZE(struct line); SIZE(struct pos);
    set_file_end(3);
    locals(6);
    aligned(6, &file_line);
    small(7);
    print_image();
    return (int)(table_before(1) & 0);
}
