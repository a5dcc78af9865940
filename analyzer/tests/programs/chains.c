/* Tables behind a pointer of a union: which of its arms it is, the variable tells that has what is read. */
#include "truth.h"

union bucket {
    struct { long n_met; union bucket *next; struct node *name; unsigned long code; } text;
    struct { long n_met; union bucket *next; long numbers[2]; } number;
};
struct node {
    long kind, n;
    union { struct node *one; struct node **nodes; union bucket **buckets; void (*code)(void); } of;
    long name, flags;
};

FUNCTION union bucket *find(struct node *symbol, unsigned long hash, unsigned long code) {
    for (union bucket *b = symbol->of.buckets[hash]; b != NULL; b = b->text.next)
        if (b->text.code == code) return b;
    return NULL;
}
FUNCTION struct node *pick(struct node *symbol, unsigned long at) {
    struct node *found = symbol->of.nodes[at];
    return found && found->flags ? found : NULL;
}
/* Of what is not told it is none. */
FUNCTION void *take(struct node *symbol, unsigned long at) { return ((void **)symbol->of.one)[at]; }

int main(int n, char **words) {
    struct node *nodes[2] = {0};
    struct node node = { .of.nodes = nodes };
    print_image();
    return words && n == 9 && (find(&node, 0, 1) || pick(&node, 1) || take(&node, 0));
}
