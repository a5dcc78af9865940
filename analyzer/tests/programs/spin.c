/* Loops whose condition is reached by a jump, and from their own end. */
#include "truth.h"

struct counts { long hits, misses; } counts;
volatile int stopped = 1;

FUNCTION void spin(void) {
    while (!stopped)
        __atomic_fetch_add(&counts.hits, 1, __ATOMIC_SEQ_CST);
}

/* while (!stopped) if (is_atomic) fetch_add(counter); else ++*counter; as rustc writes it out. */
void choose(long *counter, int is_atomic);
__asm__(".text\n.globl choose\n.type choose,@function\nchoose:\n"
        "mov %rdi,%r14\n"
        "mov %esi,%ebx\n"
        "jmp 2f\n"
        "1: incq (%r14)\n"
        "2: movzbl stopped(%rip),%eax\n"
        "test %al,%al\n"
        "jne 3f\n"
        "test %bl,%bl\n"
        "je 1b\n"
        "lock incq (%r14)\n"
        "jmp 2b\n"
        "3: ret\n"
        ".size choose,.-choose\n");

int main(void) {
    spin();
    print_image();
    return 0;
}
