/* Pointers that no variable types where they are used: erased, passed on, returned, chased. */
#include "truth.h"

struct node { long key; struct node *next; double real; int x, y; };
struct list { struct node *head; long n; };
struct small { int first, second; };
struct span { struct node *first; long n; };
struct source { long id; struct node *(*make)(struct source *); };

struct pair { long id; int left, right; };
struct column { int sort; long n; union { int *ints; double *reals; struct pair *pairs; }; };

volatile long sink;

FUNCTION void use(struct node *n) { sink = (long)n; }
FUNCTION struct node *found(long key) { return (struct node *)(key + sink); }

FUNCTION int passed_later(void *p) {
    int x = ((struct node *)p)->x;
    use(p);
    return x;
}
FUNCTION void stored_later(struct list *l, void *p) {
    ((struct node *)p)->x = 3;
    l->head = p;
}
FUNCTION int compared_before(struct list *l, void *p) {
    if (l->head == p) return 0;
    return ((struct node *)p)->x;
}
FUNCTION struct node *returned_later(void *p) {
    ((struct node *)p)->x = 1;
    return p;
}
FUNCTION int by_caller(void *p) { return ((struct node *)p)->x; }
FUNCTION int calls(struct node *n) { return by_caller(n) + 1; }
FUNCTION int by_callers(void *p) { return ((int *)p)[1]; }
FUNCTION int calls_with_node(struct node *n) { return by_callers(n) + 1; }
FUNCTION int calls_with_small(struct small *s) { return by_callers(s) + 1; }
FUNCTION int by_large(void *p) { return ((int *)p)[1]; }
FUNCTION int large_calls_with_small(struct small *s) {
    __asm__ volatile(".fill 9000, 1, 0x90");
    return by_large(s) + 1;
}
FUNCTION int also_calls_with_node(struct node *n) { return by_large(n) + 1; }
FUNCTION int by_nobody(void *p) { return ((struct node *)p)->x; }
FUNCTION int returned(long key) { return found(key)->x; }
FUNCTION int made(struct source *s) { return s->make(s)->x; }
FUNCTION int chased(struct list *l) { return l->head->next->next->x; }
FUNCTION int by_value(struct span s) { return s.first->x; }
FUNCTION int by_value_later(struct span s) {
    use(s.first);
    return s.first->x;
}
FUNCTION int copied(struct list *l, struct node *other) {
    struct node *n = l->n > 3 ? l->head : other;
    return n->x;
}

FUNCTION double one_of_three(struct column *c, long at) {
    switch (c->sort) {
    case 0: return c->ints[at];
    case 1: return c->reals[at];
    default: return c->pairs[at].right;
    }
}

int main(void) {
    struct node n = {0};
    struct small s = {1, 2};
    MEMBER(struct node, x); MEMBER(struct node, next); SIZE(struct node);
    sink = calls(&n) + calls_with_node(&n) + calls_with_small(&s);
    sink += large_calls_with_small(&s) + also_calls_with_node(&n);
    print_image();
    return 0;
}
