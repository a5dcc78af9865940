/* A function of more than four megabytes. */
#include "truth.h"

FUNCTION void huge(void) { __asm__ volatile(".fill 4500000, 1, 0x90"); }

int main(void) {
    print_image();
    return 0;
}
