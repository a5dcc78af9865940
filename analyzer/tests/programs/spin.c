/* Loops whose condition is reached by a jump, and from their own end. */
#include "truth.h"

struct counts { long hits, misses; } counts;
volatile int stopped = 1;

FUNCTION void spin(void) {
    while (!stopped)
        __atomic_fetch_add(&counts.hits, 1, __ATOMIC_SEQ_CST);
}

int main(void) {
    spin();
    print_image();
    return 0;
}
