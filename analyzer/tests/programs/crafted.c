/* Goes with crafted.s, whose debug information the test writes. */
#include "truth.h"

long touch(void *p);

int main(void) {
    long value[4] = {0};
    ADDRESS("touch", touch);
    print_image();
    return (int)(touch(value) & 0);
}
