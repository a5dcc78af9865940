/* One of two units that share types: the one with main. */
#include "parts.h"

#ifdef __cplusplus
namespace shop {
#endif
struct part near_part;
#ifdef __cplusplus
}
using shop::near_part;
#endif
static int near_count;

FUNCTION int near_nothing(int n) { return n; }
FUNCTION int near_height(struct part *p) { return p->box.height; }
FUNCTION struct part *near_next(struct part *p) { return p->next; }
FUNCTION int near_counted(void) { return near_count++; }

int main(void) {
    MEMBER(struct part, next); MEMBER(struct part, weight); MEMBER(struct part, spots);
    MEMBER(struct part, box.height); SIZE(struct part);
    ADDRESS("near_part.weight", &near_part.weight);
    ADDRESS("near_count", &near_count);
    far_tell();
    near_counted();
    print_image();
    return 0;
}
