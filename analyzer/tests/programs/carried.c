/* Containers and tables that know nothing of what they hold: what is put there, and which function is called with it. */
#include "truth.h"
#include <stdlib.h>

struct event { long when, kind; };
struct ticket { int number, weight; long of; };
struct account { char name[24]; long balance; };
struct state { long handled; int errors; };
struct other { double score; long rank; };
struct work { long pad[2]; long n_done; };
#undef FUNCTION
#define FUNCTION __attribute__((noipa, noinline, used))
#define BACK __attribute__((noipa, noinline)) static

/* An array of anything with what compares it. */
struct heap { void **items; size_t n; int (*before)(const void *, const void *); };
BACK void heap_push(struct heap *heap, void *item) {
    size_t at = heap->n++;
    for (; at && heap->before(item, heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}
BACK int event_before(const void *a, const void *b) {
    return ((const struct event *)a)->when < ((const struct event *)b)->when;
}
BACK int ticket_before(const void *a, const void *b) {
    return ((const struct ticket *)a)->weight < ((const struct ticket *)b)->weight;
}

/* A table by operations, one of which is called in the last place. */
struct ops { long (*hash)(const void *); int (*same)(const void *, const void *); };
struct entry { void *key, *value; struct entry *next; };
struct table { const struct ops *ops; struct entry *first; };
BACK long account_hash(const void *key) { return ((const struct account *)key)->balance; }
BACK int account_same(const void *a, const void *b) {
    return ((const struct account *)a)->balance == ((const struct account *)b)->balance;
}
static const struct ops account_ops = {account_hash, account_same};
BACK int table_same(struct table *table, const void *key) {
    return table->ops->same(table->first->key, key);
}
BACK void table_add(struct table *table, void *key, void *value) {
    struct entry *entry = malloc(sizeof *entry);
    entry->key = key;
    entry->value = value;
    entry->next = table->ops->hash(key) ? table->first : 0;
    table->first = entry;
}
FUNCTION long table_value(struct table *table) {
    return ((struct ticket *)table->first->value)->of + ((struct account *)table->first->key)->balance;
}

/* Who is called, and with what: put there by code, by data, and in a local variable. */
struct source { int (*handle)(void *, int); void *context; };
BACK int state_handle(void *context, int n) { return (int)(((struct state *)context)->handled += n); }
BACK int other_handle(void *context, int n) { return (int)(((struct other *)context)->rank += n); }
static struct other one_other;
static struct source tabled = {other_handle, &one_other};
BACK void source_set(struct source *source, int (*handle)(void *, int), void *context) {
    source->handle = handle;
    source->context = context;
}
FUNCTION int source_fire(struct source *source, int n) { return source->handle(source->context, n); }
struct job { void *(*run)(void *); void *with; };
BACK void *work_run(void *with) {
    ((struct work *)with)->n_done++;
    return with;
}
FUNCTION void *job_do(struct job *job) { return job->run(job->with); }
FUNCTION void *job_make(struct work *work) {
    struct job job = {work_run, work};
    return job_do(&job);
}

/* Of two types that look alike; an address that goes anywhere; bytes; what an allocator hands out. */
struct one { long a, b; };
struct two { long c, d; };
struct alike { int (*handle)(void *); void *context; };
BACK int of_either(void *context) { return (int)((struct one *)context)->b; }
FUNCTION int alike_fire(struct alike *alike) { return alike->handle(alike->context); }
FUNCTION void alike_set(struct alike *alike, struct one *one, struct two *two) {
    alike[0].handle = alike[1].handle = of_either;
    alike[0].context = one;
    alike[1].context = two;
}
struct loose { int (*handle)(void *); void *context; };
BACK int of_anybody(void *context) { return (int)((struct one *)context)->b; }
FUNCTION int loose_fire(struct loose *loose) { return loose->handle(loose->context); }
FUNCTION void loose_set(struct loose *loose, struct one *one, char *anywhere, long n) {
    loose->handle = of_anybody;
    loose->context = one;
    *(int (**)(void *))(anywhere + n) = of_anybody;
}
struct buffer { void *bytes; };
FUNCTION void buffer_set(struct buffer *buffer, size_t n, struct one *one) {
    buffer[0].bytes = one;
    buffer[1].bytes = malloc(n);
}
FUNCTION long of_bytes(struct buffer *buffer) { return *(long *)((char *)buffer->bytes + 8); }
struct block { struct block *next; long size; };
struct room { void *block; };
BACK void *block_take(struct block *block) { return block + 1; }
FUNCTION void room_set(struct room *room, struct block *block) { room->block = block_take(block); }
FUNCTION long in_block(struct room *room) { return *(long *)((char *)room->block + 8); }

static struct heap events, tickets;
static struct table accounts;

int main(void) {
    static struct source sources[2];
    static struct state states[2];
    events.before = event_before;
    tickets.before = ticket_before;
    events.items = calloc(8, 8);
    tickets.items = calloc(8, 8);
    accounts.ops = &account_ops;
    struct account *account = calloc(1, sizeof *account);
    struct ticket *ticket = calloc(1, sizeof *ticket);
    for (int i = 0; i < 4; i++) {
        struct event *event = calloc(1, sizeof *event);
        event->when = -i;
        heap_push(&events, event);
        heap_push(&tickets, ticket);
    }
    table_add(&accounts, account, ticket);
    source_set(&sources[0], state_handle, &states[0]);
    struct work *work = calloc(1, sizeof *work);
    struct alike alike[2];
    struct loose loose;
    struct buffer buffers[2];
    struct room room;
    struct block blocks[2] = {{0}};
    long room_for[64] = {0};
    alike_set(alike, calloc(1, 16), calloc(1, 16));
    loose_set(&loose, calloc(1, 16), (char *)room_for, 8);
    buffer_set(buffers, 16, calloc(1, 16));
    room_set(&room, blocks);
    long sum = table_same(&accounts, account) + table_value(&accounts) + source_fire(&sources[0], 1);
    sum += source_fire(&tabled, 1) + (job_make(work) == work) + alike_fire(alike) + loose_fire(&loose);
    sum += of_bytes(buffers) + in_block(&room);
    print_image();
    ADDRESS("sum", &sum);
    return 0;
}
