/* A function of 240,000 blocks: more values than anybody follows. */
#include <stdio.h>
struct cell { struct cell *next; long key, value; };
static struct cell cells[16];
__attribute__((noinline)) static long walk(struct cell *cell, long n) {
    long sum = 0, other = 1, third = 2;
    __asm__ volatile(".rept 120000\n\t"
                     "test $1, %3\n\t je 1f\n\t mov (%4), %0\n\t add 8(%4), %1\n\t"
                     "1: test $2, %1\n\t jne 2f\n\t add 16(%4), %2\n\t xor %0, %1\n 2:\n\t"
                     ".endr" : "+r"(sum), "+r"(other), "+r"(third) : "r"(n), "r"(cell) : "cc", "memory");
    return sum + other + third;
}
int main(void) {
    puts("ready");
    fflush(stdout);
    for (volatile long n = 0, sum;; n++) sum = walk(&cells[n % 16], n);
}
