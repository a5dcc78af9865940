/* Functions that are entered by pointers: handlers on the heap, filters that hand on, wrappers, operations that change. */
#include <stdlib.h>

struct request { int (*handler)(struct request *); int (*inner)(struct request *); struct event *event; int left, sum; };
struct event { int (*handler)(struct event *); struct request *request; int n; };
struct operations { int (*get)(void *); int (*put)(void *, int); };

typedef int (*filter)(struct request *);
static filter first, next_of_count, next_of_mark;
filter shared;
static struct operations operations;
static long seen[8];

__attribute__((noinline)) static int last(struct request *r) { seen[0] += r->sum; return r->sum & 1; }
__attribute__((noinline)) static int count(struct request *r) { r->sum++; seen[1]++; return next_of_count(r); }
__attribute__((noinline)) static int mark(struct request *r) { r->sum ^= 4; seen[2]++; return next_of_mark(r); }

/* Handlers that work, that hand on to one inside, or to the filters. */
__attribute__((noinline)) static int work(struct request *r) { r->sum += r->left; return r->sum & 3; }
__attribute__((noinline)) static int wrap(struct request *r) { seen[3]++; return r->inner(r); }
__attribute__((noinline)) static int send(struct request *r) { seen[4]++; return first(r); }
__attribute__((noinline)) static int give(struct request *r) { seen[5] += r->sum; return shared(r); }

/* By an event, back to a request, and to the same function again by pointers. */
__attribute__((noinline)) static int on_event(struct event *e) { e->n++; return e->request->inner(e->request); }
__attribute__((noinline)) static int by_event(struct request *r)
{
    if (--r->left <= 0)
        return r->sum;
    return r->event->handler(r->event);
}

__attribute__((noinline)) static int get(void *p) { return ((struct request *)p)->left; }
__attribute__((noinline)) static int get_sum(void *p) { return ((struct request *)p)->sum; }
__attribute__((noinline)) static int put(void *p, int n) { ((struct request *)p)->sum = n; return n; }
__attribute__((noinline)) static int operate(void *p) { return operations.get(p); }
__attribute__((noinline)) static int store(struct request *r) { return operations.put(r, r->left); }

__attribute__((noinline)) static void run(struct request **requests, int n)
{
    for (int i = 0; i < n; i++)
        seen[6] += requests[i]->handler(requests[i]);
}

static int compare(const void *a, const void *b)
{
    return (*(struct request *const *)a)->sum - (*(struct request *const *)b)->sum;
}

int main(void)
{
    static int (*const handlers[])(struct request *) = { work, wrap, send, by_event, give, store, last };
    struct request *requests[14];
    for (int i = 0; i < 14; i++) {
        requests[i] = malloc(sizeof **requests);
        struct event *event = malloc(sizeof *event);
        *event = (struct event) { on_event, requests[i], 0 };
        *requests[i] = (struct request) { handlers[i % 7], i & 1 ? by_event : i & 2 ? wrap : last, event, 3 + i, i };
        if (requests[i]->inner == wrap)
            requests[i]->inner = i & 4 ? work : count;
    }
    next_of_mark = last;
    next_of_count = mark;
    first = count;
    for (int round = 0; round < 12; round++) {
        shared = round & 1 ? count : work;
        operations.get = round & 2 ? get : get_sum;
        operations.put = put;
        for (int i = 0; i < 14; i++)
            requests[i]->left = 2 + (i ^ round) % 5;
        run(requests, 14);
        for (int i = 0; i < 14; i++)
            seen[7] += operate(requests[i]);
        if (round % 4 == 0)
            qsort(requests, 14, sizeof *requests, compare);
    }
    return (int)(seen[6] + seen[7]) & 1;
}
