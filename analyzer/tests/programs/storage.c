/* Thread-local variables, each thread's at another address. */
#include "truth.h"
#include <pthread.h>

struct pos { int x, y; };
struct context { long n; struct pos at[3]; };

__thread struct context context;
static __thread int slots[64] = {1};
__thread int before_late = 3;
static __thread struct { long n_calls; struct pos late[4]; } late = {7};

FUNCTION long context_n(void) { return context.n; }
FUNCTION void set_context_y(int y) { context.at[2].y = y; }
FUNCTION int slot_at(long i) { return slots[i]; }
FUNCTION int slot_before(long i) { return slots[i - 1]; }
FUNCTION int late_y(long i) { return late.late[i].y; }
FUNCTION int last(void) { return before_late; }
FUNCTION int behind(int *p) { return p[0]; }
FUNCTION char *thread_base(void) {
    char *base;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
    return base;
}
FUNCTION long canary(void) {
    long value;
    __asm__ volatile("mov %%fs:0x28, %0" : "=r"(value));
    return value;
}
FUNCTION int by_distance(long distance) {
    int value;
    __asm__ volatile("mov %%fs:(%1), %0" : "=r"(value) : "r"(distance));
    return value;
}

static void *tell(void *name) {
    const char *thread = name;
    printf("&base-%s %zu\n", thread, (size_t)thread_base());
    printf("&context-%s %zu\n", thread, (size_t)&context);
    printf("&slots-%s %zu\n", thread, (size_t)slots);
    printf("&before_late-%s %zu\n", thread, (size_t)&before_late);
    printf("&late-%s %zu\n", thread, (size_t)&late);
    return name;
}

int main(void) {
    pthread_t other;
    MEMBER(struct context, at); MEMBER(struct pos, y);
    tell("main");
    pthread_create(&other, 0, tell, "other");
    pthread_join(other, 0);
    set_context_y(last());
    print_image();
    return (int)((context_n() + slot_at(1) + slot_before(2) + late_y(0) + behind(slots) + canary()
                  + by_distance((char *)slots - thread_base())) & 0);
}
