/* Objects of the heap that code with debug information touches, and code without (voted_plain.c). */
#include "truth.h"
#include "voted.h"
#include <stdlib.h>

struct other { double weight, height; };

FUNCTION long typed_key(struct node *n) { return n->key; }
FUNCTION void typed_count(struct node *n) { n->count++; }
FUNCTION double typed_height(struct other *o) { return o->height; }
FUNCTION double typed_double(double *a) { return a[0]; }

int main(void) {
    struct node *alone = calloc(1, sizeof *alone), *array = calloc(64, sizeof *array);
    double *numbers = calloc(64, sizeof *numbers);
    typed_count(alone);
    MEMBER(struct node, key);
    MEMBER(struct node, count);
    MEMBER(struct other, height);
    SIZE(struct node);
    ADDRESS("alone", alone);
    ADDRESS("array", array);
    ADDRESS("numbers", numbers);
    ADDRESS("local", &alone);
    print_image();
    return (int)(plain_key(alone) + plain_count(alone) - 1 + (int)plain_double(numbers)
                 + typed_key(array) + (int)typed_height((void *)alone) + (int)typed_double(numbers));
}
