/* The other of two units that share types. */
#include "parts.h"

static struct part far_parts[4];
int far_number;

FUNCTION int far_weight(struct part *p) { return p->weight; }
FUNCTION int far_spot(struct part *p) { return p->spots[1].y; }
/* Where its parameter is after the call a list of locations tells. */
FUNCTION int far_later(struct part *p) {
    int n = near_nothing(1);
    return p->weight + n;
}

FUNCTION void far_tell(void) {
    static int far_inner;
    far_inner += far_number;
    ADDRESS("far_parts.height", &far_parts[2].box.height);
    ADDRESS("far_number", &far_number);
    ADDRESS("far_inner", &far_inner);
}
