// Containers that know nothing of what they hold: a heap, a table with operations, a list, a ring of handlers and a cache, in which a
// small server keeps its timers, sessions, orders and counters; whoever takes something out casts it in place.
#include "../heap.h"

typedef int  less_fn(const void *a, const void *b);
typedef void handler_fn(void *context, int argument);

struct timer { long due; int session, period; long fired; };
struct session { int id, state; long seen, bytes; struct session *peer; };
struct order { long price; int amount, side; long placed; };
struct counter { long n, sum; double mean; };
struct probe { int hits, misses; long last; };

/* A heap of anything. */
struct heap { void **items; int n, room; less_fn *less; };

NOINLINE static void heap_push(struct heap *h, void *item) {
    if (h->n == h->room) {
        h->room = h->room ? h->room * 2 : 64;
        h->items = HEAP_REALLOC(h->items, void *, h->room);
    }
    int at = h->n++;
    while (at && h->less(item, h->items[(at - 1) / 2])) {
        h->items[at] = h->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->items[at] = item;
}

NOINLINE static void *heap_pop(struct heap *h) {
    if (!h->n) return NULL;
    void *top = h->items[0], *last = h->items[--h->n];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && h->less(h->items[child + 1], h->items[child])) child++;
        if (!h->less(h->items[child], last)) break;
        h->items[at] = h->items[child];
        at = child;
    }
    if (h->n) h->items[at] = last;
    return top;
}

/* A table by what its operations say. */
struct ops { unsigned (*hash)(const void *key); int (*same)(const void *a, const void *b); };
struct node { const void *key; void *value; struct node *next; };
struct map { const struct ops *ops; struct node **buckets; unsigned n_buckets, n; };

NOINLINE static void *map_get(const struct map *m, const void *key) {
    for (struct node *it = m->buckets[m->ops->hash(key) % m->n_buckets]; it; it = it->next)
        if (m->ops->same(it->key, key)) return it->value;
    return NULL;
}

NOINLINE static void map_put(struct map *m, const void *key, void *value) {
    struct node *it = HEAP_MALLOC(struct node);
    unsigned at = m->ops->hash(key) % m->n_buckets;
    it->key = key;
    it->value = value;
    it->next = m->buckets[at];
    m->buckets[at] = it;
    m->n++;
}

/* A list. */
struct link { void *data; struct link *next; };
struct list { struct link *first, *last; long n; };

NOINLINE static void list_append(struct list *l, void *data) {
    struct link *link = HEAP_MALLOC(struct link);
    link->data = data;
    link->next = NULL;
    if (l->last) l->last->next = link;
    else l->first = link;
    l->last = link;
    l->n++;
}

NOINLINE static long list_fold(struct list *l, long (*step)(const void *, long), long seed) {
    for (struct link *it = l->first; it; it = it->next) seed = step(it->data, seed);
    return seed;
}

/* Who wants to be told. */
struct listener { handler_fn *handler; void *context; };
static struct listener listeners[8];
static int n_listeners;

NOINLINE static void listen_to(handler_fn *handler, void *context) {
    listeners[n_listeners].handler = handler;
    listeners[n_listeners++].context = context;
}

NOINLINE static void tell(int argument) {
    for (int i = 0; i < n_listeners; i++) listeners[i].handler(listeners[i].context, argument);
}

/* What the server keeps there. */
static int timer_less(const void *a, const void *b) {
    return ((const struct timer *)a)->due < ((const struct timer *)b)->due;
}

static int order_less(const void *a, const void *b) {
    const struct order *x = a;
    return x->price < ((const struct order *)b)->price || x->placed < ((const struct order *)b)->placed;
}

static unsigned session_hash(const void *key) { return (unsigned)((const struct session *)key)->id * 2654435761u >> 7; }

static int session_same(const void *a, const void *b) {
    return ((const struct session *)a)->id == ((const struct session *)b)->id;
}

static const struct ops session_ops = {session_hash, session_same};
static struct heap timers = {NULL, 0, 0, timer_less}, orders = {NULL, 0, 0, order_less};
static struct map sessions = {&session_ops, NULL, 512, 0};
static struct list all_sessions, all_orders;
static struct counter counters[4];
static struct probe one_probe;

static void count(void *context, int argument) {
    ((struct counter *)context)->n++;
    ((struct counter *)context)->sum += argument;
    ((struct counter *)context)->mean += (argument - ((struct counter *)context)->mean) / 16;
}

static void look(void *context, int argument) {
    if (argument & 1) ((struct probe *)context)->hits++;
    else ((struct probe *)context)->misses++;
    ((struct probe *)context)->last = argument;
}

static long session_bytes(const void *data, long sum) {
    return sum + ((const struct session *)data)->bytes + ((const struct session *)data)->peer->state;
}

static long order_value(const void *data, long sum) {
    return sum + ((const struct order *)data)->price * ((const struct order *)data)->amount;
}

NOINLINE static void fire(long now) {
    void *due;
    while (timers.n && ((struct timer *)timers.items[0])->due <= now && (due = heap_pop(&timers))) {
        struct session wanted = {((struct timer *)due)->session, 0, 0, 0, NULL};
        void *found = map_get(&sessions, &wanted);
        if (found) {
            ((struct session *)found)->seen = now;
            ((struct session *)found)->bytes += ((struct timer *)due)->period;
        }
        ((struct timer *)due)->due = now + ((struct timer *)due)->period;
        ((struct timer *)due)->fired++;
        heap_push(&timers, due);
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(timers, "struct heap");
    TR_GLOBAL(orders, "struct heap");
    TR_GLOBAL(sessions, "struct map");
    TR_GLOBAL(all_sessions, "struct list");
    TR_GLOBAL(all_orders, "struct list");
    TR_GLOBAL(counters, "struct counter []");
    TR_GLOBAL(one_probe, "struct probe");
    TR_GLOBAL(listeners, "struct listener []");
    TR_GLOBAL(session_ops, "struct ops");
    TR_CHECK(struct timer, fired);
    TR_CHECK(struct session, peer);
    TR_CHECK(struct order, placed);
    TR_CHECK(struct node, next);
    sessions.buckets = HEAP_CALLOC(struct node *, sessions.n_buckets);
    struct session *before = NULL;
    for (int i = 0; i < 900; i++) {
        struct session *session = HEAP_CALLOC(struct session, 1);
        session->id = i * 7;
        session->peer = before ? before : session;
        before = session;
        map_put(&sessions, session, session);
        list_append(&all_sessions, session);
        struct timer *timer = HEAP_CALLOC(struct timer, 1);
        timer->due = i;
        timer->session = i * 7;
        timer->period = 20 + (int)(tr_rand() % 100);
        heap_push(&timers, timer);
    }
    for (int i = 0; i < 4; i++) listen_to(count, &counters[i]);
    listen_to(look, &one_probe);
    long now = 0, sum = 0;
    while (tr_more()) {
        fire(now += 3);
        for (int i = 0; i < 8; i++) {
            struct order *order = HEAP_MALLOC(struct order);
            order->price = (long)(tr_rand() % 1000);
            order->amount = 1 + (int)(tr_rand() % 9);
            order->placed = now;
            heap_push(&orders, order);
            if (all_orders.n < 2000) list_append(&all_orders, order);
        }
        for (int i = 0; i < 7; i++) {
            void *best = heap_pop(&orders);
            sum += ((struct order *)best)->price;
            tell(((struct order *)best)->amount);
            if (all_orders.n >= 2000) HEAP_FREE(best);
        }
        if (now % 64 == 0) sum += list_fold(&all_sessions, session_bytes, 0) + list_fold(&all_orders, order_value, 0);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
