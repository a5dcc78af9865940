/* What a pointer has from the start, and another function of its kind that goes on by a pointer that is set later. */
#include "truth.h"

struct thing { struct kind *kind; long n; };
struct kind { long size; void (*drop)(struct thing *); void (*free)(struct thing *); };
FUNCTION void drop_plain(struct thing *it) {
    if (--it->n < 0)
        it->kind->free(it);
}
FUNCTION void drop_freed(struct thing *it) { it->kind->free(it); }
struct kind plain = {8, drop_plain, 0}, freed = {16, drop_freed, 0}, twice = {24, drop_plain, drop_plain};
FUNCTION long by_kind(struct thing *it, long n, struct kind *kind) {
    kind->drop(it);
    return it->n + n;
}

int main(void) {
    ADDRESS("drop_plain", drop_plain);
    ADDRESS("plain", &plain);
    ADDRESS("twice", &twice);
    print_image();
    freed.free = drop_plain;
    struct thing things[] = {{&plain, 1}, {&freed, 2}};
    return by_kind(&things[0], 1, &plain) + by_kind(&things[1], 2, &freed) == 9;
}
