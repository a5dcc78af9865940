/* A library of functions with names that are known, and some that only they call. */
#include "truth.h"

struct item {
    int kind;
    struct item *up, *first, *second;
};

#define INCREMENT _ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base
#define DECREMENT _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base

/* Called by INCREMENT only. */
static FUNCTION struct item *own(struct item *item) { return item->second; }

/* Called by DECREMENT and by main. */
static FUNCTION long *shared(long *numbers) { return (long *)numbers[2]; }

FUNCTION struct item *INCREMENT(struct item *item) { return own(item); }
FUNCTION struct item *DECREMENT(struct item *item) {
    return (struct item *)((long *)shared((long *)item->first))[0];
}
FUNCTION struct item *unknown(struct item *item) { return item->second; }

int main(void) {
    struct item item = {1, &item, &item, &item};
    long numbers[4] = {1, 2, 3, 4};
    INCREMENT(&item);
    DECREMENT(&item);
    unknown(&item);
    MEMBER(struct item, first);
    MEMBER(struct item, second);
    print_image();
    return shared(numbers) == 0;
}
