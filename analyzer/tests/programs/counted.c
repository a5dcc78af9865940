/* Addresses that are counted in bytes: by a union that is a number there, and from one piece of a heap to the next. */
#include "truth.h"

union value { void *pointer; struct pair *pair; long number; };
struct pair { long first, second; };
struct table { unsigned n_values; union value *array; };
/* As glibc's malloc has it: the next one lies after as many bytes as it says. */
struct malloc_chunk { size_t mchunk_prev_size, mchunk_size; struct malloc_chunk *fd, *bk; };

FUNCTION unsigned read_tag(struct table *table, union value *key) {
    return ((unsigned char *)table->array)[key->number + 3];
}
FUNCTION size_t read_next(struct malloc_chunk *chunk) {
    struct malloc_chunk *next = (struct malloc_chunk *)((char *)chunk + (chunk->mchunk_size & ~(size_t)7));
    return next->mchunk_size & 1;
}

/* Bytes of which only a cast tells the type, and bytes that are counted as such. */
struct bytes { long n_bytes; char *bytes; };
struct posting { int number; short times, first; };
FUNCTION int read_posting(struct bytes *bytes, long at) {
    return ((struct posting *)bytes->bytes)[at].first;
}
FUNCTION int read_word(struct bytes *bytes, long at) {
    int word;
    __builtin_memcpy(&word, bytes->bytes + at, sizeof word);
    return word;
}

/* A header before what is passed: only an inlined function has a variable for it, and that later. */
struct head { long next, before; };
struct item { long count; };
#define HEAD(item) ((struct head *)(item) - 1)
FUNCTION long forget(long number) { return number + 1; }
static inline __attribute__((always_inline)) void unlink_item(struct item *item) {
    struct head *head = HEAD(item);
    head->before = forget(head->before);
}
FUNCTION long read_head(struct item *item) {
    if (HEAD(item)->next == 0)
        return 0;
    item->count = forget(item->count);
    unlink_item(item);
    return 1;
}

/* Blocks of a pool, found by its first bytes; free ones begin with a pointer to the next. */
struct pool { long version, n_used; unsigned char *free; unsigned next; };
FUNCTION void extend(struct pool *pool) {
    pool->free = (unsigned char *)pool + pool->next;
    pool->next += 16;
    *(unsigned char **)pool->free = 0;
}
FUNCTION void give_back(void *block) {
    struct pool *pool = (struct pool *)((size_t)block & ~(size_t)4095);
    *(unsigned char **)block = pool->free;
    pool->free = block;
    pool->n_used--;
}

int main(void) {
    static _Alignas(4096) struct pool pools[128] = {{1, 1, 0, 64}};
    extend(pools);
    give_back(pools[0].free);
    struct { struct head head; struct item item; } both = {{1, 2}, {3}};
    union value values[4] = {{0}}, key = { .number = 5 };
    struct table table = {4, values};
    struct malloc_chunk chunks[2] = {{0, sizeof chunks[0], 0, 0}, {0, 1, 0, 0}};
    printf("malloc_chunk.mchunk_size %zu\n", offsetof(struct malloc_chunk, mchunk_size));
    print_image();
    struct bytes bytes = {sizeof both, (char *)&both};
    if (read_head(&both.item) != 1 || read_posting(&bytes, 1) + read_word(&bytes, 1) != 0)
        return 1;
    return read_tag(&table, &key) + (int)read_next(chunks) == 100;
}
