/* Words of a text: interned strings with flexible arrays, open addressing, counts in bit-fields, a
 * heap of the commonest, a trie, chunks of an arena. */
#include "../heap.h"
#include <ctype.h>

#define TEXT_BYTES 16384
#define FIRST_CAPACITY 64
#define BEST 32

struct name {
    uint32_t hash;
    uint16_t length;
    uint16_t flags;
    char bytes[];
};

struct entry {
    struct name *name;
    uint32_t count : 20, generation : 10, kept : 1, capital : 1;
    uint32_t last_place;
};

struct table {
    struct entry *entries;
    uint32_t capacity, used, removed;
    uint64_t probes, searches;
};

struct ranked {
    uint32_t count;
    const struct name *name;
};

struct ranking {
    struct ranked best[BEST];
    unsigned length;
    uint32_t moved;
};

struct branch {
    struct branch *children[26];
    uint32_t passed, ended;
    uint8_t depth;
};

struct reader {
    const char *text;
    size_t at, length;
    unsigned line, column;
    char word[24];
};

static struct table table;
static struct branch root;
static uint8_t class_of[256];

static NOINLINE uint32_t hash_of(const char *bytes, unsigned length) {
    uint32_t hash = 5381;
    for (unsigned i = 0; i < length; i++) hash = hash * 33 ^ (uint8_t)bytes[i];
    return hash;
}

static NOINLINE unsigned next_word(struct reader *reader) {
    unsigned length = 0;
    while (reader->at < reader->length) {
        uint8_t c = reader->text[reader->at++];
        if (class_of[c] & 1) {
            reader->word[length++] = c;
            reader->column++;
            if (length == sizeof reader->word) break;
        } else {
            if (c == '\n') {
                reader->line++;
                reader->column = 0;
            }
            if (length) break;
        }
    }
    return length;
}

static struct name *new_name(const char *bytes, unsigned length, uint32_t hash) {
    struct name *name = HEAP_FLEXIBLE(struct name, sizeof *name + 32);
    name->hash = hash;
    name->length = length;
    name->flags = bytes[0] < 'a';
    for (unsigned i = 0; i < length; i++) name->bytes[i] = bytes[i];
    return name;
}

static int same(const struct name *name, const char *bytes, unsigned length) {
    if (name->length != length) return 0;
    for (unsigned i = 0; i < length; i++)
        if (name->bytes[i] != bytes[i]) return 0;
    return 1;
}

static NOINLINE void grow(struct table *t) {
    struct entry *old = t->entries;
    uint32_t old_capacity = t->capacity;
    t->capacity = old_capacity ? 2 * old_capacity : FIRST_CAPACITY;
    t->entries = HEAP_CALLOC(struct entry, t->capacity);
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (!old[i].name) continue;
        uint32_t place = old[i].name->hash & (t->capacity - 1);
        while (t->entries[place].name) place = (place + 1) & (t->capacity - 1);
        t->entries[place] = old[i];
    }
    HEAP_FREE(old);
}

static NOINLINE struct entry *intern(struct table *t, const char *bytes, unsigned length) {
    if (4 * (t->used + 1) > 3 * t->capacity) grow(t);
    uint32_t hash = hash_of(bytes, length), mask = t->capacity - 1, place = hash & mask;
    t->searches++;
    for (;; place = (place + 1) & mask) {
        struct entry *entry = &t->entries[place];
        t->probes++;
        if (!entry->name) {
            entry->name = new_name(bytes, length, hash);
            entry->capital = bytes[0] < 'a';
            entry->count = 0;
            t->used++;
            return entry;
        }
        if (entry->name->hash == hash && same(entry->name, bytes, length)) return entry;
    }
}

static NOINLINE void descend(const char *bytes, unsigned length) {
    struct branch *branch = &root;
    for (unsigned i = 0; i < length; i++) {
        struct branch **child = &branch->children[(bytes[i] | 32) - 'a'];
        if (!*child) {
            *child = HEAP_CALLOC(struct branch, 1);
            (*child)->depth = branch->depth + 1;
        }
        branch->passed++;
        branch = *child;
    }
    branch->ended++;
}

static NOINLINE void rank(struct ranking *r, const struct entry *entry) {
    unsigned at;
    if (r->length < BEST) {
        at = r->length++;
        for (; at && r->best[(at - 1) / 2].count > entry->count; at = (at - 1) / 2) {
            r->best[at] = r->best[(at - 1) / 2];
            r->moved++;
        }
    } else {
        if (entry->count <= r->best[0].count) return;
        at = 0;
        for (unsigned child; (child = 2 * at + 1) < BEST; at = child) {
            if (child + 1 < BEST && r->best[child + 1].count < r->best[child].count) child++;
            if (r->best[child].count >= entry->count) break;
            r->best[at] = r->best[child];
            r->moved++;
        }
    }
    r->best[at].count = entry->count;
    r->best[at].name = entry->name;
}

static NOINLINE uint64_t summarise(const struct table *t, struct ranking *ranking) {
    uint64_t sum = 0;
    ranking->length = 0;
    for (uint32_t i = 0; i < t->capacity; i++) {
        const struct entry *entry = &t->entries[i];
        if (!entry->name) continue;
        sum += entry->capital ? entry->generation : entry->last_place & 7;
        rank(ranking, entry);
    }
    for (unsigned i = 0; i < ranking->length; i++) sum += ranking->best[i].name->length;
    return sum;
}

static NOINLINE uint64_t count_words(struct reader *reader, uint32_t generation) {
    uint64_t words = 0;
    for (unsigned length; (length = next_word(reader));) {
        struct entry *entry = intern(&table, reader->word, length);
        entry->count++;
        entry->generation = generation;
        entry->kept |= reader->line & 1;
        entry->last_place = reader->at;
        if (words % 4 == 0) descend(reader->word, length);
        words++;
    }
    return words;
}

static void clear(struct table *t) {
    for (uint32_t i = 0; i < t->capacity; i++) HEAP_FREE(t->entries[i].name);
    HEAP_FREE(t->entries);
    t->entries = NULL;
    t->capacity = t->used = 0;
    t->removed++;
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(table, "struct table");
    TR_GLOBAL(root, "struct branch");
    TR_GLOBAL(class_of, "uint8_t []");
    TR_CHECK(struct entry, last_place);
    TR_CHECK(struct branch, passed);
    TR_CHECK(struct reader, word);
    struct reader *reader = HEAP_CALLOC(struct reader, 1);
    struct ranking *ranking = HEAP_CALLOC(struct ranking, 1);
    char *text = HEAP_CALLOC(char, TEXT_BYTES);
    for (int i = 0; i < 256; i++) class_of[i] = (isalpha(i) != 0) | (isdigit(i) != 0) << 1;
    for (size_t i = 0; i < TEXT_BYTES;) {
        uint64_t r = tr_rand();
        unsigned length = 2 + r % 5, stem = r >> 8 & 63;
        for (unsigned k = 0; k < length && i < TEXT_BYTES; k++)
            text[i++] = "aeioubcdlmnrst"[(stem + k * k + (r >> 60) * (k > 2)) % 14];
        if (i < TEXT_BYTES) text[i++] = r >> 20 & 15 ? ' ' : '\n';
    }
    uint64_t sum = 0;
    for (uint32_t generation = 0; tr_more(); generation++) {
        reader->text = text;
        reader->at = reader->line = 0;
        reader->length = TEXT_BYTES;
        sum += count_words(reader, generation);
        for (int i = 0; i < 4; i++) sum += summarise(&table, ranking);
        if (generation % 8 == 7) clear(&table);
    }
    tr_sink = sum;
    return 0;
}
