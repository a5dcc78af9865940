/* A small database: B-trees of pages from malloc, rows of several kinds in a union, a page cache by
 * least use. */
#include "../heap.h"

#define ORDER 14
#define CACHED 64
#define BUCKETS 97

enum column { NUMBER, DECIMAL, TEXT };

struct cell {
    uint16_t column;
    uint16_t length;
    union {
        int64_t number;
        double decimal;
        char text[12];
    };
};

struct row {
    uint64_t key;
    uint32_t version, reads;
    struct cell cells[3];
};

struct page {
    uint16_t leaf : 1, dirty : 1, level : 6;
    uint16_t count;
    uint32_t number;
    struct page *parent;
    uint64_t keys[ORDER];
    union {
        struct page *children[ORDER + 1];
        struct {
            struct row *rows[ORDER];
            struct page *next;
        };
    };
};

struct cached {
    struct cached *newer, *older, *chain;
    struct page *page;
    uint64_t uses;
};

struct cache {
    struct cached *newest, *oldest;
    struct cached *buckets[BUCKETS];
    uint64_t hits, misses;
    unsigned length;
};

struct tree {
    struct page *root;
    struct cache cache;
    uint64_t rows, splits;
    uint32_t pages;
    unsigned fill[ORDER + 1];
};

struct cursor {
    struct page *page;
    unsigned place;
    uint64_t visited;
};

static struct tree trees[2];

static NOINLINE struct page *new_page(struct tree *tree, int leaf) {
    struct page *page = HEAP_CALLOC(struct page, 1);
    page->leaf = leaf;
    page->number = tree->pages++;
    return page;
}

static void cache_unlink(struct cache *cache, struct cached *entry) {
    if (entry->newer) entry->newer->older = entry->older;
    else cache->newest = entry->older;
    if (entry->older) entry->older->newer = entry->newer;
    else cache->oldest = entry->newer;
}

static void cache_push(struct cache *cache, struct cached *entry) {
    entry->newer = NULL;
    entry->older = cache->newest;
    if (cache->newest) cache->newest->newer = entry;
    else cache->oldest = entry;
    cache->newest = entry;
}

static NOINLINE void touch(struct cache *cache, struct page *page) {
    struct cached **link = &cache->buckets[page->number % BUCKETS], *entry;
    for (entry = *link; entry; entry = entry->chain)
        if (entry->page == page) {
            cache->hits++;
            entry->uses++;
            cache_unlink(cache, entry);
            cache_push(cache, entry);
            return;
        }
    cache->misses++;
    if (cache->length == CACHED) {
        entry = cache->oldest;
        cache_unlink(cache, entry);
        struct cached **old = &cache->buckets[entry->page->number % BUCKETS];
        while (*old != entry) old = &(*old)->chain;
        *old = entry->chain;
    } else {
        entry = HEAP_MALLOC(struct cached);
        cache->length++;
    }
    entry->page = page;
    entry->uses = 1;
    link = &cache->buckets[page->number % BUCKETS];
    entry->chain = *link;
    *link = entry;
    cache_push(cache, entry);
}

static unsigned place_of(const struct page *page, uint64_t key) {
    unsigned low = 0, high = page->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (page->keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

static NOINLINE struct page *leaf_of(struct tree *tree, uint64_t key) {
    struct page *page = tree->root;
    while (!page->leaf) {
        unsigned i = place_of(page, key);
        if (i < page->count && page->keys[i] == key) i++;
        page = page->children[i];
    }
    touch(&tree->cache, page);
    return page;
}

static NOINLINE void split(struct tree *tree, struct page *page) {
    struct page *right = new_page(tree, page->leaf), *parent = page->parent;
    unsigned half = page->count / 2;
    uint64_t middle = page->keys[half];
    unsigned from = page->leaf ? half : half + 1;
    right->count = page->count - from;
    right->level = page->level;
    for (unsigned i = 0; i < right->count; i++) right->keys[i] = page->keys[from + i];
    if (page->leaf) {
        for (unsigned i = 0; i < right->count; i++) right->rows[i] = page->rows[from + i];
        right->next = page->next;
        page->next = right;
    } else {
        for (unsigned i = 0; i <= right->count; i++) {
            right->children[i] = page->children[from + i];
            right->children[i]->parent = right;
        }
    }
    page->count = half;
    tree->splits++;
    if (!parent) {
        parent = new_page(tree, 0);
        parent->level = page->level + 1;
        parent->children[0] = page;
        page->parent = tree->root = parent;
    }
    right->parent = parent;
    unsigned i = parent->count++;
    for (; i && parent->keys[i - 1] > middle; i--) {
        parent->keys[i] = parent->keys[i - 1];
        parent->children[i + 1] = parent->children[i];
    }
    parent->keys[i] = middle;
    parent->children[i + 1] = right;
    if (parent->count == ORDER) split(tree, parent);
}

static struct row *new_row(uint64_t key) {
    struct row *row = HEAP_CALLOC(struct row, 1);
    row->key = key;
    for (unsigned i = 0; i < 3; i++) {
        struct cell *cell = &row->cells[i];
        cell->column = (key + i) % 3;
        if (cell->column == NUMBER) cell->number = key * 3;
        else if (cell->column == DECIMAL) cell->decimal = key * 0.25;
        else
            cell->length =
                1 + snprintf(cell->text, sizeof cell->text, "%lu", (unsigned long)key % 99999);
    }
    return row;
}

static NOINLINE void insert(struct tree *tree, uint64_t key) {
    struct page *page = leaf_of(tree, key);
    unsigned place = place_of(page, key);
    if (place < page->count && page->keys[place] == key) {
        page->rows[place]->version++;
        return;
    }
    for (unsigned i = page->count; i > place; i--) {
        page->keys[i] = page->keys[i - 1];
        page->rows[i] = page->rows[i - 1];
    }
    page->keys[place] = key;
    page->rows[place] = new_row(key);
    page->dirty = 1;
    tree->rows++;
    if (++page->count == ORDER) split(tree, page);
}

static NOINLINE int erase(struct tree *tree, uint64_t key) {
    struct page *page = leaf_of(tree, key);
    unsigned place = place_of(page, key);
    if (place == page->count || page->keys[place] != key) return 0;
    HEAP_FREE(page->rows[place]);
    page->count--;
    for (unsigned i = place; i < page->count; i++) {
        page->keys[i] = page->keys[i + 1];
        page->rows[i] = page->rows[i + 1];
    }
    page->dirty = 1;
    tree->rows--;
    return 1;
}

static NOINLINE double scan(struct tree *tree, struct cursor *cursor, uint64_t from,
                            unsigned count) {
    double sum = 0;
    cursor->page = leaf_of(tree, from);
    cursor->place = place_of(cursor->page, from);
    while (count && cursor->page) {
        if (cursor->place == cursor->page->count) {
            cursor->page = cursor->page->next;
            cursor->place = 0;
            continue;
        }
        struct row *row = cursor->page->rows[cursor->place++];
        row->reads++;
        for (unsigned i = 0; i < 3; i++) {
            const struct cell *cell = &row->cells[i];
            switch (cell->column) {
            case NUMBER: sum += cell->number; break;
            case DECIMAL: sum += cell->decimal; break;
            default: sum += cell->text[0] + cell->length;
            }
        }
        cursor->visited++;
        count--;
    }
    return sum;
}

static NOINLINE void measure(struct tree *tree, const struct page *page) {
    tree->fill[page->count]++;
    if (!page->leaf)
        for (unsigned i = 0; i <= page->count; i++) measure(tree, page->children[i]);
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    struct cursor cursor = {0};
    TR_GLOBAL(trees, "struct tree []");
    TR_LOCAL(cursor, "struct cursor");
    TR_CHECK(struct row, cells);
    TR_CHECK(struct page, keys);
    TR_CHECK(struct tree, fill);
    for (int t = 0; t < 2; t++) {
        trees[t].root = new_page(&trees[t], 1);
        for (int i = 0; i < 1500; i++) insert(&trees[t], tr_rand() % 6000);
    }
    double sum = 0;
    while (tr_more()) {
        struct tree *tree = &trees[tr_rand() & 1];
        for (int i = 0; i < 60; i++) insert(tree, tr_rand() % 6000);
        for (int i = 0; i < 240; i++) sum += erase(tree, tr_rand() % 6000);
        for (int i = 0; i < 12; i++) sum += scan(tree, &cursor, tr_rand() % 6000, 40);
        measure(tree, tree->root);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
