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

/* Two of one type: which of them, nothing tells. */
struct call { long kind; union { struct node **nodes, **arguments; union bucket **buckets; } of; };
FUNCTION long pick_alike(struct call *call, unsigned long at) {
    struct node *found = call->of.nodes[at];
    return found->flags;
}
/* A number that is a pointer, as in `epoll_data`; and one of which a type is told. */
struct event { long kind; union { void *any; unsigned long number; } data; };
FUNCTION long follow(struct event *event) { return ((struct node *)event->data.number)->flags; }
struct task { long kind; union { struct node *node; unsigned long number; } data; };
FUNCTION long follow_node(struct task *task) { return task->data.node->flags; }

int main(int n, char **words) {
    struct node *nodes[2] = {0};
    struct node node = { .of.nodes = nodes };
    print_image();
    struct call call = { .of.nodes = nodes };
    struct event event = {0};
    struct task task = {0};
    return words && n == 9 && (pick_alike(&call, 0) || follow(&event) || follow_node(&task) || find(&node, 0, 1) || pick(&node, 1) || take(&node, 0));
}
