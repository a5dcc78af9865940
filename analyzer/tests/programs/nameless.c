/* Goes with nameless.s, which describes the data that is used here. */
#include "truth.h"

extern long named;
extern char text[];
long read_long(long *p);

int main(void) {
    ADDRESS("named", &named);
    ADDRESS("text", text);
    print_image();
    return (int)(read_long(&named) & 0);
}
