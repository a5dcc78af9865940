/* Blocks of the C library's malloc whose type is told to the truth runtime.
 *
 * Truth knows no time: an address has one type for the whole run. So a block that is given back is
 * kept for the next request of the same type and size, and never returned to the C library. */
#ifndef NAMING_HEAP_H
#define NAMING_HEAP_H
#include "truth.h"
#include <pthread.h>

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    void
    tr_region(const char *type, const void *start, size_t bytes, size_t element_bytes);

#define HEAP_FUNCTION static __attribute__((noinline, unused))

struct heap_kind {
    const char *type; /* NULL: nothing is told of these blocks */
    size_t bytes;
    struct heap_header *given_back;
    struct heap_kind *next;
};

/* Stands before each block, and keeps its alignment. */
struct heap_header {
    struct heap_kind *kind;
    struct heap_header *next;
};

static struct heap_kind *heap_kinds;
static pthread_mutex_t heap_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline struct heap_kind *heap_kind_of(const char *type, size_t bytes) {
    struct heap_kind *kind = heap_kinds;
    while (kind && !(kind->bytes == bytes &&
                     (kind->type == type || (kind->type && type && !strcmp(kind->type, type)))))
        kind = kind->next;
    if (!kind) {
        kind = (struct heap_kind *)calloc(1, sizeof *kind);
        kind->type = type;
        kind->bytes = bytes;
        kind->next = heap_kinds;
        heap_kinds = kind;
    }
    return kind;
}

HEAP_FUNCTION void *heap_take(const char *type, size_t element_bytes, size_t bytes) {
    pthread_mutex_lock(&heap_mutex);
    struct heap_kind *kind = heap_kind_of(type, bytes);
    struct heap_header *header = kind->given_back;
    if (header) {
        kind->given_back = header->next;
    } else {
        header = (struct heap_header *)malloc(sizeof *header + bytes);
        if (!header) abort();
        header->kind = kind;
        if (type) tr_region(type, header + 1, bytes, element_bytes);
    }
    pthread_mutex_unlock(&heap_mutex);
    return header + 1;
}

HEAP_FUNCTION void *heap_take_zeroed(const char *type, size_t element_bytes, size_t bytes) {
    return memset(heap_take(type, element_bytes, bytes), 0, bytes);
}

HEAP_FUNCTION void heap_give_back(void *block) {
    if (!block) return;
    struct heap_header *header = (struct heap_header *)block - 1;
    pthread_mutex_lock(&heap_mutex);
    header->next = header->kind->given_back;
    header->kind->given_back = header;
    pthread_mutex_unlock(&heap_mutex);
}

HEAP_FUNCTION void *heap_resize(void *block, const char *type, size_t element_bytes, size_t bytes) {
    void *larger = heap_take(type, element_bytes, bytes);
    if (block) {
        size_t old_bytes = ((struct heap_header *)block - 1)->kind->bytes;
        memcpy(larger, block, old_bytes < bytes ? old_bytes : bytes);
        heap_give_back(block);
    }
    return larger;
}

#define HEAP_MALLOC(T) ((T *)heap_take(#T, sizeof(T), sizeof(T)))
#define HEAP_CALLOC(T, n) ((T *)heap_take_zeroed(#T, sizeof(T), (n) * sizeof(T)))
#define HEAP_REALLOC(p, T, n) ((T *)heap_resize((p), #T, sizeof(T), (n) * sizeof(T)))
/* A T that ends in a flexible array: the block is one T, however long. */
#define HEAP_FLEXIBLE(T, bytes) ((T *)heap_take(#T, (bytes), (bytes)))
#define HEAP_FREE(p) heap_give_back(p)
#endif
