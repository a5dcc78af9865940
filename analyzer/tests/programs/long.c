/* A load, and then a long way without any memory access. */
#include "truth.h"

FUNCTION long compute(long *p) {
    long value = *p;
    __asm__ volatile("add $1, %0\n sub $2, %0\n xor $3, %0\n add $4, %0\n sub $5, %0\n xor $6, %0\n"
                     "add $7, %0\n sub $8, %0\n xor $9, %0\n add $1, %0\n sub $2, %0\n xor $3, %0\n"
                     : "+r"(value));
    return value;
}

int main(void) {
    print_image();
    return 0;
}
