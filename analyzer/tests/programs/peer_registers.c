/* Goes with peer_registers.s: tells where its image is; none of its functions is run. */
#include "truth.h"

extern char placed[];

int main(void) {
    ADDRESS("placed", placed);
    print_image();
    return 0;
}
