/* keyspace.c - A server of data structures without the network: strings with a header
 * before the pointer, dictionaries that are rehashed little by little, skip lists, sets of
 * integers, packed lists, objects that are counted, commands from a table, expiry.
 */
#include "../heap.h"
#include <limits.h>

#define C_OK 0
#define C_ERR -1
#define serverAssert(e) do { if (!(e)) abort(); } while (0)

/* ------------------------------- sds ------------------------------------- */

/* The header lies right before the characters; the byte before them says which one it is. */
typedef char *sds;

struct __attribute__((__packed__)) sdshdr8 { uint8_t len, alloc; unsigned char flags; };
struct __attribute__((__packed__)) sdshdr16 { uint16_t len, alloc; unsigned char flags; };
struct __attribute__((__packed__)) sdshdr32 { uint32_t len, alloc; unsigned char flags; };

#define SDS_TYPE_8 1
#define SDS_TYPE_16 2
#define SDS_TYPE_32 3
#define SDS_HDR(T, s) ((struct sdshdr##T *)((s) - (sizeof(struct sdshdr##T))))

typedef struct sdsfree { struct sdsfree *next; sds s; } sdsfree;
typedef struct sdsclass { const char *name; uint32_t hdrlen, alloc; sdsfree *free; } sdsclass;

/* Memory of strings by header and size; what is given back is used for the same again. */
static struct sdspool { sdsclass classes[64]; sdsfree *spare; int count; long used; } sdspool;

static inline size_t sdslen(const sds s) {
    switch (s[-1]) {
    case SDS_TYPE_8: return SDS_HDR(8, s)->len;
    case SDS_TYPE_16: return SDS_HDR(16, s)->len;
    default: return SDS_HDR(32, s)->len;
    }
}

static inline size_t sdsalloc(const sds s) {
    switch (s[-1]) {
    case SDS_TYPE_8: return SDS_HDR(8, s)->alloc;
    case SDS_TYPE_16: return SDS_HDR(16, s)->alloc;
    default: return SDS_HDR(32, s)->alloc;
    }
}

static inline void sdssetlen(sds s, size_t newlen) {
    switch (s[-1]) {
    case SDS_TYPE_8: SDS_HDR(8, s)->len = (uint8_t)newlen; break;
    case SDS_TYPE_16: SDS_HDR(16, s)->len = (uint16_t)newlen; break;
    default: SDS_HDR(32, s)->len = (uint32_t)newlen; break;
    }
}

static NOINLINE sdsclass *sdsclassof(size_t hdrlen, size_t alloc) {
    for (int i = 0; i < sdspool.count; i++)
        if (sdspool.classes[i].alloc == alloc && sdspool.classes[i].hdrlen == hdrlen) return &sdspool.classes[i];
    serverAssert(sdspool.count < 64);
    sdsclass *c = &sdspool.classes[sdspool.count++];
    c->hdrlen = (uint32_t)hdrlen;
    c->alloc = (uint32_t)alloc;
    c->name = hdrlen == sizeof(struct sdshdr8) ? "struct sdshdr8" : hdrlen == sizeof(struct sdshdr16) ? "struct sdshdr16" : "struct sdshdr32";
    return c;
}

static NOINLINE sds sdsnewlen(const void *init, size_t initlen) {
    size_t alloc = 23;
    while (alloc < initlen) alloc = alloc * 2 + 1;
    char type = alloc < 255 ? SDS_TYPE_8 : alloc < 65535 ? SDS_TYPE_16 : SDS_TYPE_32;
    size_t hdrlen = type == SDS_TYPE_8 ? sizeof(struct sdshdr8) : type == SDS_TYPE_16 ? sizeof(struct sdshdr16) : sizeof(struct sdshdr32);
    sdsclass *c = sdsclassof(hdrlen, alloc);
    sds s;
    if (c->free) {
        sdsfree *f = c->free;
        c->free = f->next;
        s = f->s;
        f->next = sdspool.spare;
        sdspool.spare = f;
    } else {
        char *sh = malloc(hdrlen + alloc + 1);
        s = sh + hdrlen;
        tr_region(c->name, sh, hdrlen, hdrlen);
        tr_region("char", s, alloc + 1, 1);
    }
    s[-1] = type;
    sdssetlen(s, initlen);
    if (type == SDS_TYPE_8) SDS_HDR(8, s)->alloc = (uint8_t)alloc;
    else if (type == SDS_TYPE_16) SDS_HDR(16, s)->alloc = (uint16_t)alloc;
    else SDS_HDR(32, s)->alloc = (uint32_t)alloc;
    sdspool.used += (long)alloc;
    if (init) memcpy(s, init, initlen);
    s[initlen] = '\0';
    return s;
}

static void sdsfreestr(sds s) {
    if (s == NULL) return;
    size_t alloc = sdsalloc(s);
    sdsclass *c = sdsclassof(s[-1] == SDS_TYPE_8 ? sizeof(struct sdshdr8) : s[-1] == SDS_TYPE_16 ? sizeof(struct sdshdr16) : sizeof(struct sdshdr32), alloc);
    sdsfree *f = sdspool.spare;
    if (f) sdspool.spare = f->next;
    else f = HEAP_MALLOC(sdsfree);
    f->s = s;
    f->next = c->free;
    c->free = f;
    sdspool.used -= (long)alloc;
}

static sds sdscatlen(sds s, const void *t, size_t len) {
    size_t curlen = sdslen(s);
    if (sdsalloc(s) - curlen < len) {
        sds n = sdsnewlen(NULL, (curlen + len) * 2);
        memcpy(n, s, curlen);
        sdsfreestr(s);
        s = n;
    }
    memcpy(s + curlen, t, len);
    sdssetlen(s, curlen + len);
    s[curlen + len] = '\0';
    return s;
}

static NOINLINE int sdscmp(const sds s1, const sds s2) {
    size_t l1 = sdslen(s1), l2 = sdslen(s2), minlen = l1 < l2 ? l1 : l2;
    for (size_t i = 0; i < minlen; i++)
        if (s1[i] != s2[i]) return (unsigned char)s1[i] - (unsigned char)s2[i];
    return l1 > l2 ? 1 : l1 < l2 ? -1 : 0;
}

static int ll2string(char *dst, long long value) {
    char buf[24];
    int n = 0, len = 0;
    unsigned long long v = value < 0 ? -(unsigned long long)value : (unsigned long long)value;
    do buf[n++] = (char)('0' + v % 10); while (v /= 10);
    if (value < 0) buf[n++] = '-';
    while (n) dst[len++] = buf[--n];
    dst[len] = '\0';
    return len;
}

static sds sdsfromlonglong(long long value) {
    char buf[24];
    return sdsnewlen(buf, (size_t)ll2string(buf, value));
}

static NOINLINE int string2ll(const char *s, size_t slen, long long *value) {
    int negative = slen > 1 && s[0] == '-';
    unsigned long long v = 0;
    if (slen == 0 || slen > 18) return 0;
    for (size_t i = (size_t)negative; i < slen; i++) {
        if (s[i] < '0' || s[i] > '9') return 0;
        v = v * 10 + (unsigned long long)(s[i] - '0');
    }
    *value = negative ? -(long long)v : (long long)v;
    return 1;
}

/* ------------------------------- dict ------------------------------------- */

typedef struct dictEntry {
    void *key;
    union {
        void *val;
        uint64_t u64;
        int64_t s64;
        double d;
    } v;
    struct dictEntry *next;
} dictEntry;

typedef struct dictType {
    uint64_t (*hashFunction)(const void *key);
    int (*keyCompare)(void *privdata, const void *key1, const void *key2);
    void (*keyDestructor)(void *privdata, void *obj);
    void (*valDestructor)(void *privdata, void *obj);
} dictType;

typedef struct dictht {
    dictEntry **table;
    unsigned long size;
    unsigned long sizemask;
    unsigned long used;
} dictht;

typedef struct dict {
    dictType *type;
    void *privdata;
    dictht ht[2];
    long rehashidx; /* rehashing is not in progress if it is -1 */
    unsigned long iterators;
} dict;

#define dictIsRehashing(d) ((d)->rehashidx != -1)
#define dictSize(d) ((d)->ht[0].used + (d)->ht[1].used)
#define DICT_HT_INITIAL_SIZE 4

static dict *dictCreate(dictType *type, void *privdata) {
    dict *d = HEAP_CALLOC(dict, 1);
    d->type = type;
    d->privdata = privdata;
    d->rehashidx = -1;
    return d;
}

static NOINLINE int dictRehash(dict *d, int n) {
    int empty_visits = n * 10;
    while (n-- && d->ht[0].used != 0) {
        while (d->ht[0].table[d->rehashidx] == NULL) {
            d->rehashidx++;
            if (--empty_visits == 0) return 1;
        }
        dictEntry *de = d->ht[0].table[d->rehashidx];
        while (de) {
            dictEntry *nextde = de->next;
            uint64_t h = d->type->hashFunction(de->key) & d->ht[1].sizemask;
            de->next = d->ht[1].table[h];
            d->ht[1].table[h] = de;
            d->ht[0].used--;
            d->ht[1].used++;
            de = nextde;
        }
        d->ht[0].table[d->rehashidx] = NULL;
        d->rehashidx++;
    }
    if (d->ht[0].used == 0) {
        HEAP_FREE(d->ht[0].table);
        d->ht[0] = d->ht[1];
        memset(&d->ht[1], 0, sizeof(dictht));
        d->rehashidx = -1;
        return 0;
    }
    return 1;
}

static void dictExpandIfNeeded(dict *d) {
    if (dictIsRehashing(d)) return;
    dictht n = { NULL, DICT_HT_INITIAL_SIZE, 0, 0 };
    if (d->ht[0].size == 0) {
        n.sizemask = n.size - 1;
        n.table = HEAP_CALLOC(dictEntry *, n.size);
        d->ht[0] = n;
    } else if (d->ht[0].used >= d->ht[0].size) {
        n.size = d->ht[0].size * 2;
        n.sizemask = n.size - 1;
        n.table = HEAP_CALLOC(dictEntry *, n.size);
        d->ht[1] = n;
        d->rehashidx = 0;
    }
}

static NOINLINE dictEntry *dictFind(dict *d, const void *key) {
    if (dictSize(d) == 0) return NULL;
    if (dictIsRehashing(d)) dictRehash(d, 1);
    uint64_t h = d->type->hashFunction(key);
    for (int table = 0; table <= 1; table++) {
        dictEntry *he = d->ht[table].table[h & d->ht[table].sizemask];
        while (he) {
            if (key == he->key || d->type->keyCompare(d->privdata, key, he->key)) return he;
            he = he->next;
        }
        if (!dictIsRehashing(d)) return NULL;
    }
    return NULL;
}

static NOINLINE dictEntry *dictAddRaw(dict *d, void *key) {
    if (dictFind(d, key)) return NULL;
    dictExpandIfNeeded(d);
    dictht *ht = dictIsRehashing(d) ? &d->ht[1] : &d->ht[0];
    uint64_t idx = d->type->hashFunction(key) & ht->sizemask;
    dictEntry *entry = HEAP_MALLOC(dictEntry);
    entry->next = ht->table[idx];
    ht->table[idx] = entry;
    ht->used++;
    entry->key = key;
    entry->v.val = NULL;
    return entry;
}

static NOINLINE int dictDelete(dict *d, const void *key) {
    if (dictSize(d) == 0) return C_ERR;
    if (dictIsRehashing(d)) dictRehash(d, 1);
    uint64_t h = d->type->hashFunction(key);
    for (int table = 0; table <= 1; table++) {
        dictEntry **link = &d->ht[table].table[h & d->ht[table].sizemask], *he;
        for (; (he = *link) != NULL; link = &he->next) {
            if (key != he->key && !d->type->keyCompare(d->privdata, key, he->key)) continue;
            *link = he->next;
            if (d->type->valDestructor) d->type->valDestructor(d->privdata, he->v.val);
            if (d->type->keyDestructor) d->type->keyDestructor(d->privdata, he->key);
            HEAP_FREE(he);
            d->ht[table].used--;
            return C_OK;
        }
        if (!dictIsRehashing(d)) break;
    }
    return C_ERR;
}

typedef void (dictScanFunction)(void *privdata, const dictEntry *de);

static void dictForEach(dict *d, dictScanFunction *fn, void *privdata) {
    for (int table = 0; table <= 1; table++)
        for (unsigned long i = 0; i < d->ht[table].size; i++)
            for (dictEntry *de = d->ht[table].table[i], *next; de; de = next) {
                next = de->next;
                fn(privdata, de);
            }
}

static NOINLINE dictEntry *dictGetRandomKey(dict *d) {
    if (dictSize(d) == 0) return NULL;
    dictEntry *he = NULL, *orighe;
    while (he == NULL) {
        unsigned long h = tr_rand() % (d->ht[0].size + d->ht[1].size);
        he = h >= d->ht[0].size ? d->ht[1].table[h - d->ht[0].size] : d->ht[0].table[h];
    }
    int listlen = 0;
    for (orighe = he; he; he = he->next) listlen++;
    for (listlen = (int)(tr_rand() >> 40) % listlen, he = orighe; listlen--;) he = he->next;
    return he;
}

static void dictRelease(dict *d) {
    for (int table = 0; table <= 1; table++) {
        for (unsigned long i = 0; i < d->ht[table].size; i++)
            for (dictEntry *de = d->ht[table].table[i], *next; de; de = next) {
                next = de->next;
                if (d->type->valDestructor) d->type->valDestructor(d->privdata, de->v.val);
                if (d->type->keyDestructor) d->type->keyDestructor(d->privdata, de->key);
                HEAP_FREE(de);
            }
        HEAP_FREE(d->ht[table].table);
    }
    HEAP_FREE(d);
}

/* ------------------------------- objects ------------------------------------- */

enum { OBJ_STRING, OBJ_LIST, OBJ_SET, OBJ_ZSET, OBJ_HASH };
enum { OBJ_ENCODING_RAW, OBJ_ENCODING_INT, OBJ_ENCODING_HT, OBJ_ENCODING_INTSET, OBJ_ENCODING_SKIPLIST, OBJ_ENCODING_QUICKLIST };

typedef struct redisObject {
    unsigned type : 4;
    unsigned encoding : 4;
    unsigned lru : 24;
    int refcount;
    void *ptr;
} robj;

typedef struct zskiplistNode {
    sds ele;
    double score;
    struct zskiplistNode *backward;
    struct zskiplistLevel {
        struct zskiplistNode *forward;
        unsigned long span;
    } level[];
} zskiplistNode;

typedef struct zskiplist { zskiplistNode *header, *tail; unsigned long length; int level; } zskiplist;
typedef struct zset { dict *dict; zskiplist *zsl; } zset;
typedef struct zrangespec { double min, max; int minex, maxex; } zrangespec;

typedef struct intset { uint32_t encoding, length; uint32_t alloc; union { int16_t *i16; int32_t *i32; int64_t *i64; } contents; } intset;

typedef struct quicklistNode {
    struct quicklistNode *prev, *next;
    unsigned char *zl;
    unsigned int sz;
    unsigned int count : 16;
    unsigned int encoding : 2;
    unsigned int container : 2;
    unsigned int extra : 12;
} quicklistNode;

typedef struct quicklist { quicklistNode *head, *tail; unsigned long count, len; } quicklist;

typedef struct redisDb { dict *dict, *expires; int id; long long avg_ttl; } redisDb;

struct client;
typedef void redisCommandProc(struct client *c);
struct redisCommand { const char *name; redisCommandProc *proc; int arity; const char *sflags; uint64_t flags; long long microseconds, calls; };

typedef struct client {
    uint64_t id;
    redisDb *db;
    sds querybuf;
    size_t qb_pos;
    int argc, argcap;
    robj **argv;
    struct redisCommand *cmd;
    unsigned long long reply_bytes;
    int bufpos;
    char buf[1024];
} client;

struct redisServer {
    redisDb db[4];
    dict *commands;
    unsigned lruclock;
    long long mstime, dirty;
    long long stat_numcommands, stat_expiredkeys, stat_evictedkeys, stat_keyspace_hits, stat_keyspace_misses;
    unsigned long maxkeys;
    struct { unsigned long long idle; sds key; redisDb *db; } pool[16];
};
static struct redisServer server;

static robj *createObject(int type, void *ptr) {
    robj *o = HEAP_MALLOC(robj);
    o->type = (unsigned)type & 15;
    o->encoding = OBJ_ENCODING_RAW;
    o->ptr = ptr;
    o->refcount = 1;
    o->lru = server.lruclock & 0xffffff;
    return o;
}

static NOINLINE robj *tryObjectEncoding(robj *o) {
    long long value;
    sds s = o->ptr;
    if (o->encoding == OBJ_ENCODING_RAW && string2ll(s, sdslen(s), &value)) {
        o->encoding = OBJ_ENCODING_INT;
        sdsfreestr(s);
        o->ptr = (void *)(long)value;
    }
    return o;
}

/* ------------------------------- skip list ------------------------------------- */

#define ZSKIPLIST_MAXLEVEL 16

static zskiplistNode *zslCreateNode(int level, double score, sds ele) {
    zskiplistNode *zn = HEAP_FLEXIBLE(zskiplistNode, sizeof(*zn) + (size_t)level * sizeof(struct zskiplistLevel));
    zn->score = score;
    zn->ele = ele;
    return zn;
}

static zskiplist *zslCreate(void) {
    zskiplist *zsl = HEAP_MALLOC(zskiplist);
    zsl->level = 1;
    zsl->length = 0;
    zsl->header = zslCreateNode(ZSKIPLIST_MAXLEVEL, 0, NULL);
    for (int j = 0; j < ZSKIPLIST_MAXLEVEL; j++) {
        zsl->header->level[j].forward = NULL;
        zsl->header->level[j].span = 0;
    }
    zsl->header->backward = zsl->tail = NULL;
    return zsl;
}

static int zslRandomLevel(void) {
    int level = 1;
    for (uint64_t r = tr_rand() >> 13; (r & 3) == 0 && level < 9; r >>= 2) level++;
    return level;
}

static NOINLINE zskiplistNode *zslInsert(zskiplist *zsl, double score, sds ele) {
    zskiplistNode *update[ZSKIPLIST_MAXLEVEL], *x = zsl->header;
    unsigned long rank[ZSKIPLIST_MAXLEVEL];
    int i, level;
    for (i = zsl->level - 1; i >= 0; i--) {
        rank[i] = i == (zsl->level - 1) ? 0 : rank[i + 1];
        while (x->level[i].forward && (x->level[i].forward->score < score ||
               (x->level[i].forward->score == score && sdscmp(x->level[i].forward->ele, ele) < 0))) {
            rank[i] += x->level[i].span;
            x = x->level[i].forward;
        }
        update[i] = x;
    }
    level = zslRandomLevel();
    if (level > zsl->level) {
        for (i = zsl->level; i < level; i++) {
            rank[i] = 0;
            update[i] = zsl->header;
            update[i]->level[i].span = zsl->length;
        }
        zsl->level = level;
    }
    x = zslCreateNode(level, score, ele);
    for (i = 0; i < level; i++) {
        x->level[i].forward = update[i]->level[i].forward;
        update[i]->level[i].forward = x;
        x->level[i].span = update[i]->level[i].span - (rank[0] - rank[i]);
        update[i]->level[i].span = (rank[0] - rank[i]) + 1;
    }
    for (i = level; i < zsl->level; i++) update[i]->level[i].span++;
    x->backward = update[0] == zsl->header ? NULL : update[0];
    if (x->level[0].forward) x->level[0].forward->backward = x;
    else zsl->tail = x;
    zsl->length++;
    return x;
}

static NOINLINE int zslDelete(zskiplist *zsl, double score, sds ele) {
    zskiplistNode *update[ZSKIPLIST_MAXLEVEL], *x = zsl->header;
    for (int i = zsl->level - 1; i >= 0; i--) {
        while (x->level[i].forward && (x->level[i].forward->score < score ||
               (x->level[i].forward->score == score && sdscmp(x->level[i].forward->ele, ele) < 0)))
            x = x->level[i].forward;
        update[i] = x;
    }
    x = x->level[0].forward;
    if (!x || score != x->score || sdscmp(x->ele, ele) != 0) return 0;
    for (int i = 0; i < zsl->level; i++) {
        if (update[i]->level[i].forward == x) {
            update[i]->level[i].span += x->level[i].span - 1;
            update[i]->level[i].forward = x->level[i].forward;
        } else update[i]->level[i].span -= 1;
    }
    if (x->level[0].forward) x->level[0].forward->backward = x->backward;
    else zsl->tail = x->backward;
    while (zsl->level > 1 && zsl->header->level[zsl->level - 1].forward == NULL) zsl->level--;
    zsl->length--;
    HEAP_FREE(x);
    return 1;
}

static NOINLINE zskiplistNode *zslFirstInRange(zskiplist *zsl, const zrangespec *range) {
    zskiplistNode *x = zsl->header;
    for (int i = zsl->level - 1; i >= 0; i--)
        while (x->level[i].forward && !(range->minex ? x->level[i].forward->score > range->min : x->level[i].forward->score >= range->min))
            x = x->level[i].forward;
    return x->level[0].forward;
}

static NOINLINE unsigned long zslGetRank(zskiplist *zsl, double score, sds ele) {
    zskiplistNode *x = zsl->header;
    unsigned long rank = 0;
    for (int i = zsl->level - 1; i >= 0; i--) {
        while (x->level[i].forward && (x->level[i].forward->score < score ||
               (x->level[i].forward->score == score && sdscmp(x->level[i].forward->ele, ele) <= 0))) {
            rank += x->level[i].span;
            x = x->level[i].forward;
        }
        if (x->ele && sdscmp(x->ele, ele) == 0) return rank;
    }
    return 0;
}

/* ------------------------------- sets of integers ------------------------------------- */

static int64_t intsetGet(const intset *is, uint32_t pos) {
    return is->encoding == 8 ? is->contents.i64[pos] : is->encoding == 4 ? is->contents.i32[pos] : is->contents.i16[pos];
}

static void intsetSet(intset *is, uint32_t pos, int64_t value) {
    if (is->encoding == 8) is->contents.i64[pos] = value;
    else if (is->encoding == 4) is->contents.i32[pos] = (int32_t)value;
    else is->contents.i16[pos] = (int16_t)value;
}

static void intsetResize(intset *is, uint32_t alloc, uint32_t encoding) {
    intset old = *is;
    is->encoding = encoding;
    is->alloc = alloc;
    if (encoding == 8) is->contents.i64 = HEAP_CALLOC(int64_t, alloc);
    else if (encoding == 4) is->contents.i32 = HEAP_CALLOC(int32_t, alloc);
    else is->contents.i16 = HEAP_CALLOC(int16_t, alloc);
    for (uint32_t i = 0; i < old.length; i++) intsetSet(is, i, intsetGet(&old, i));
    HEAP_FREE(old.contents.i16);
}

static NOINLINE int intsetSearch(const intset *is, int64_t value, uint32_t *pos) {
    int min = 0, max = (int)is->length - 1;
    while (max >= min) {
        int mid = (int)(((unsigned)min + (unsigned)max) >> 1);
        int64_t cur = intsetGet(is, (uint32_t)mid);
        if (value > cur) min = mid + 1;
        else if (value < cur) max = mid - 1;
        else { *pos = (uint32_t)mid; return 1; }
    }
    *pos = (uint32_t)min;
    return 0;
}

static NOINLINE int intsetAdd(intset *is, int64_t value) {
    uint32_t enc = value < INT_MIN || value > INT_MAX ? 8 : value < SHRT_MIN || value > SHRT_MAX ? 4 : 2, pos;
    if (enc > is->encoding) intsetResize(is, is->alloc, enc);
    if (intsetSearch(is, value, &pos)) return 0;
    if (is->length == is->alloc) intsetResize(is, is->alloc * 2, is->encoding);
    for (uint32_t i = is->length; i > pos; i--) intsetSet(is, i, intsetGet(is, i - 1));
    intsetSet(is, pos, value);
    is->length++;
    return 1;
}

/* ------------------------------- packed lists ------------------------------------- */

#define QUICKLIST_BYTES 512

static quicklistNode *quicklistCreateNode(void) {
    quicklistNode *node = HEAP_CALLOC(quicklistNode, 1);
    node->zl = HEAP_CALLOC(unsigned char, QUICKLIST_BYTES);
    node->encoding = 1;
    node->container = 2;
    return node;
}

static NOINLINE void quicklistPushTail(quicklist *ql, const char *value, size_t len) {
    quicklistNode *node = ql->tail;
    if (len > 200) len = 200;
    if (!node || node->sz + len + 2 > QUICKLIST_BYTES) {
        quicklistNode *n = quicklistCreateNode();
        n->prev = node;
        if (node) node->next = n;
        else ql->head = n;
        ql->tail = node = n;
        ql->len++;
    }
    unsigned char *p = node->zl + node->sz;
    *p++ = (unsigned char)len;
    for (size_t i = 0; i < len; i++) *p++ = (unsigned char)value[i];
    *p++ = (unsigned char)len;
    node->sz += (unsigned)len + 2;
    node->count++;
    ql->count++;
}

static void quicklistDelNode(quicklist *ql, quicklistNode *node) {
    if (node->next) node->next->prev = node->prev;
    else ql->tail = node->prev;
    if (node->prev) node->prev->next = node->next;
    else ql->head = node->next;
    ql->len--;
    HEAP_FREE(node->zl);
    HEAP_FREE(node);
}

static NOINLINE sds quicklistPopHead(quicklist *ql) {
    quicklistNode *node = ql->head;
    if (!node) return NULL;
    unsigned len = node->zl[0];
    sds s = sdsnewlen(node->zl + 1, len);
    for (unsigned i = len + 2; i < node->sz; i++) node->zl[i - len - 2] = node->zl[i];
    node->sz -= len + 2;
    node->count--;
    ql->count--;
    if (node->count == 0) quicklistDelNode(ql, node);
    return s;
}

/* ------------------------------- types of dictionaries ------------------------------------- */

static NOINLINE uint64_t dictSdsHash(const void *key) {
    const unsigned char *p = key;
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t len = sdslen((char *)key); len--;) h = (h ^ *p++) * 0x100000001b3ull;
    return h ^ h >> 29;
}

static int dictSdsKeyCompare(void *privdata, const void *key1, const void *key2) {
    size_t l1 = sdslen((sds)key1), l2 = sdslen((sds)key2);
    return l1 == l2 && memcmp(key1, key2, l1) == 0;
}

static uint64_t dictSdsCaseHash(const void *key) {
    const char *s = key;
    uint64_t h = 5381;
    for (; *s; s++) h = h * 33 + ((unsigned char)*s | 32u);
    return h;
}

static int dictSdsKeyCaseCompare(void *privdata, const void *key1, const void *key2) {
    const char *a = key1, *b = key2;
    while (*a && (*a | 32) == (*b | 32)) a++, b++;
    return *a == *b;
}

static void dictSdsDestructor(void *privdata, void *val) { sdsfreestr(val); }
static void decrRefCountVoid(void *privdata, void *val);

static dictType dbDictType = { dictSdsHash, dictSdsKeyCompare, dictSdsDestructor, decrRefCountVoid };
static dictType keyptrDictType = { dictSdsHash, dictSdsKeyCompare, NULL, NULL };
static dictType setDictType = { dictSdsHash, dictSdsKeyCompare, dictSdsDestructor, NULL };
static dictType hashDictType = { dictSdsHash, dictSdsKeyCompare, dictSdsDestructor, dictSdsDestructor };
static dictType commandTableDictType = { dictSdsCaseHash, dictSdsKeyCaseCompare, dictSdsDestructor, NULL };

static NOINLINE void decrRefCount(robj *o) {
    if (--o->refcount > 0) return;
    if (o->type == OBJ_STRING) {
        if (o->encoding == OBJ_ENCODING_RAW) sdsfreestr(o->ptr);
    } else if (o->type == OBJ_LIST) {
        quicklist *ql = o->ptr;
        while (ql->head) quicklistDelNode(ql, ql->head);
        HEAP_FREE(ql);
    } else if (o->type == OBJ_SET && o->encoding == OBJ_ENCODING_INTSET) {
        intset *is = o->ptr;
        HEAP_FREE(is->contents.i16);
        HEAP_FREE(is);
    } else if (o->type == OBJ_ZSET) {
        zset *zs = o->ptr;
        for (zskiplistNode *x = zs->zsl->header, *next; x; x = next) {
            next = x->level[0].forward;
            HEAP_FREE(x);
        }
        HEAP_FREE(zs->zsl);
        dictRelease(zs->dict);
        HEAP_FREE(zs);
    } else dictRelease(o->ptr);
    HEAP_FREE(o);
}

static void decrRefCountVoid(void *privdata, void *val) { decrRefCount(val); }

/* ------------------------------- the keyspace ------------------------------------- */

static int dbDelete(redisDb *db, sds key) {
    if (dictSize(db->expires) > 0) dictDelete(db->expires, key);
    return dictDelete(db->dict, key) == C_OK;
}

static NOINLINE robj *lookupKey(redisDb *db, sds key) {
    if (dictSize(db->expires) > 0) {
        dictEntry *e = dictFind(db->expires, key);
        if (e && e->v.s64 <= server.mstime) {
            server.stat_expiredkeys++;
            dbDelete(db, key);
        }
    }
    dictEntry *de = dictFind(db->dict, key);
    if (!de) { server.stat_keyspace_misses++; return NULL; }
    robj *val = de->v.val;
    val->lru = server.lruclock & 0xffffff;
    server.stat_keyspace_hits++;
    return val;
}

static void setKey(redisDb *db, sds key, robj *val) {
    dictEntry *de = dictFind(db->dict, key);
    if (de) {
        decrRefCount(de->v.val);
        de->v.val = val;
    } else dictAddRaw(db->dict, sdsnewlen(key, sdslen(key)))->v.val = val;
    server.dirty++;
}

static NOINLINE void evictionPoolPopulate(redisDb *db) {
    for (int j = 0; j < 5; j++) {
        dictEntry *de = dictGetRandomKey(db->dict);
        if (!de) return;
        robj *o = de->v.val;
        unsigned long long idle = (server.lruclock - o->lru) & 0xffffff;
        int k = 0;
        while (k < 16 && server.pool[k].key && server.pool[k].idle < idle) k++;
        if (k == 0 && server.pool[15].key) continue;
        if (k < 16 && !server.pool[k].key) {
        } else if (!server.pool[15].key) {
            for (int m = 15; m > k; m--) server.pool[m] = server.pool[m - 1];
        } else {
            k--;
            sdsfreestr(server.pool[0].key);
            for (int m = 0; m < k; m++) server.pool[m] = server.pool[m + 1];
        }
        server.pool[k].key = sdsnewlen(de->key, sdslen(de->key));
        server.pool[k].idle = idle;
        server.pool[k].db = db;
    }
}

static NOINLINE void freeMemoryIfNeeded(void) {
    unsigned long keys = 0;
    for (int i = 0; i < 4; i++) keys += dictSize(server.db[i].dict);
    while (keys > server.maxkeys) {
        for (int i = 0; i < 4; i++) evictionPoolPopulate(&server.db[i]);
        for (int k = 15; k >= 0; k--) {
            if (!server.pool[k].key) continue;
            if (dbDelete(server.pool[k].db, server.pool[k].key)) { server.stat_evictedkeys++; keys--; }
            sdsfreestr(server.pool[k].key);
            server.pool[k].key = NULL;
            if (k < 12) break;
        }
    }
}

static NOINLINE void activeExpireCycle(redisDb *db) {
    long long ttl_sum = 0;
    int sampled = 0;
    for (int num = 0; num < 20 && dictSize(db->expires); num++) {
        dictEntry *de = dictGetRandomKey(db->expires);
        if (de->v.s64 <= server.mstime) {
            sds key = sdsnewlen(de->key, sdslen(de->key));
            dbDelete(db, key);
            sdsfreestr(key);
            server.stat_expiredkeys++;
        } else { ttl_sum += de->v.s64 - server.mstime; sampled++; }
    }
    if (sampled) db->avg_ttl = db->avg_ttl / 50 * 49 + ttl_sum / sampled / 50;
}

/* ------------------------------- replies and commands ------------------------------------- */

static void addReplyProto(client *c, const char *s, size_t len) {
    if (c->bufpos + len > sizeof(c->buf)) {
        c->reply_bytes += (unsigned long long)c->bufpos;
        c->bufpos = 0;
        if (len > sizeof(c->buf)) len = sizeof(c->buf);
    }
    for (size_t i = 0; i < len; i++) c->buf[c->bufpos + (int)i] = s[i];
    c->bufpos += (int)len;
}

static void addReplyLongLong(client *c, long long ll) {
    char buf[24];
    addReplyProto(c, buf, (size_t)ll2string(buf, ll));
    addReplyProto(c, "\r\n", 2);
}

static void addReplyBulk(client *c, robj *o) {
    if (!o) addReplyProto(c, "$-1\r\n", 5);
    else if (o->encoding == OBJ_ENCODING_INT) addReplyLongLong(c, (long)o->ptr);
    else addReplyProto(c, o->ptr, sdslen(o->ptr));
}

static long long argInt(client *c, int i) {
    long long v = 0;
    sds s = c->argv[i]->ptr;
    string2ll(s, sdslen(s), &v);
    return v;
}

static robj *typed(client *c, int type) {
    robj *o = lookupKey(c->db, c->argv[1]->ptr);
    return o && o->type == (unsigned)type ? o : NULL;
}

static void setCommand(client *c) {
    c->argv[2] = tryObjectEncoding(c->argv[2]);
    c->argv[2]->refcount++;
    setKey(c->db, c->argv[1]->ptr, c->argv[2]);
}

static void getCommand(client *c) { addReplyBulk(c, typed(c, OBJ_STRING)); }

static void incrCommand(client *c) {
    robj *o = typed(c, OBJ_STRING);
    if (o && o->encoding == OBJ_ENCODING_INT) {
        o->ptr = (void *)((long)o->ptr + 1);
        addReplyLongLong(c, (long)o->ptr);
    } else if (!lookupKey(c->db, c->argv[1]->ptr)) {
        o = createObject(OBJ_STRING, (void *)1L);
        o->encoding = OBJ_ENCODING_INT;
        setKey(c->db, c->argv[1]->ptr, o);
    }
}

static void expireCommand(client *c) {
    dictEntry *kde = dictFind(c->db->dict, c->argv[1]->ptr);
    if (!kde) return;
    dictEntry *de = dictFind(c->db->expires, kde->key);
    if (!de) de = dictAddRaw(c->db->expires, kde->key);
    de->v.s64 = server.mstime + argInt(c, 2);
}

static void delCommand(client *c) { addReplyLongLong(c, dbDelete(c->db, c->argv[1]->ptr)); }

static void rpushCommand(client *c) {
    robj *o = typed(c, OBJ_LIST);
    if (!o) {
        o = createObject(OBJ_LIST, HEAP_CALLOC(quicklist, 1));
        o->encoding = OBJ_ENCODING_QUICKLIST;
        setKey(c->db, c->argv[1]->ptr, o);
    }
    for (int i = 2; i < c->argc; i++) quicklistPushTail(o->ptr, c->argv[i]->ptr, sdslen(c->argv[i]->ptr));
}

static void lpopCommand(client *c) {
    robj *o = typed(c, OBJ_LIST);
    sds s = o ? quicklistPopHead(o->ptr) : NULL;
    if (s) addReplyProto(c, s, sdslen(s));
    sdsfreestr(s);
    if (o && ((quicklist *)o->ptr)->count == 0) dbDelete(c->db, c->argv[1]->ptr);
}

static void lrangeCommand(client *c) {
    robj *o = typed(c, OBJ_LIST);
    if (!o) return;
    long long start = argInt(c, 2), n = argInt(c, 3);
    for (quicklistNode *node = ((quicklist *)o->ptr)->head; node && n > 0; node = node->next) {
        if (start >= node->count) { start -= node->count; continue; }
        for (const unsigned char *p = node->zl, *end = p + node->sz; p < end && n > 0; p += *p + 2)
            if (start-- <= 0) { addReplyProto(c, (const char *)p + 1, *p); n--; }
        start = 0;
    }
}

static void setTypeConvert(robj *o) {
    intset *is = o->ptr;
    dict *d = dictCreate(&setDictType, NULL);
    for (uint32_t i = 0; i < is->length; i++) dictAddRaw(d, sdsfromlonglong(intsetGet(is, i)));
    HEAP_FREE(is->contents.i16);
    HEAP_FREE(is);
    o->encoding = OBJ_ENCODING_HT;
    o->ptr = d;
}

static void saddCommand(client *c) {
    robj *o = typed(c, OBJ_SET);
    long long v;
    if (!o) {
        intset *is = HEAP_CALLOC(intset, 1);
        intsetResize(is, 8, 2);
        o = createObject(OBJ_SET, is);
        o->encoding = OBJ_ENCODING_INTSET;
        setKey(c->db, c->argv[1]->ptr, o);
    }
    for (int i = 2; i < c->argc; i++) {
        sds s = c->argv[i]->ptr;
        if (o->encoding == OBJ_ENCODING_INTSET) {
            if (string2ll(s, sdslen(s), &v) && ((intset *)o->ptr)->length < 300) { intsetAdd(o->ptr, v); continue; }
            setTypeConvert(o);
        }
        sds copy = sdsnewlen(s, sdslen(s));
        if (!dictAddRaw(o->ptr, copy)) sdsfreestr(copy);
    }
}

static int setTypeIsMember(robj *o, sds s) {
    long long v;
    uint32_t pos;
    if (o->encoding == OBJ_ENCODING_HT) return dictFind(o->ptr, s) != NULL;
    return string2ll(s, sdslen(s), &v) && intsetSearch(o->ptr, v, &pos);
}

static void sismemberCommand(client *c) {
    robj *o = typed(c, OBJ_SET);
    addReplyLongLong(c, o && setTypeIsMember(o, c->argv[2]->ptr));
}

static NOINLINE void sinterCommand(client *c) {
    robj *a = lookupKey(c->db, c->argv[1]->ptr), *b = lookupKey(c->db, c->argv[2]->ptr);
    long long both = 0;
    if (!a || !b || a->type != OBJ_SET || b->type != OBJ_SET) return;
    if (a->encoding == OBJ_ENCODING_INTSET && b->encoding == OBJ_ENCODING_INTSET) {
        intset *x = a->ptr, *y = b->ptr;
        uint32_t i = 0, k = 0;
        while (i < x->length && k < y->length) {
            int64_t u = intsetGet(x, i), v = intsetGet(y, k);
            both += u == v;
            i += u <= v;
            k += v <= u;
        }
    } else if (a->encoding == OBJ_ENCODING_HT) {
        dict *d = a->ptr;
        for (int t = 0; t < 2; t++)
            for (unsigned long i = 0; i < d->ht[t].size; i++)
                for (dictEntry *de = d->ht[t].table[i]; de; de = de->next) both += setTypeIsMember(b, de->key);
    }
    addReplyLongLong(c, both);
}

static void zaddCommand(client *c) {
    robj *o = typed(c, OBJ_ZSET);
    if (!o) {
        zset *zs = HEAP_MALLOC(zset);
        zs->dict = dictCreate(&setDictType, NULL);
        zs->zsl = zslCreate();
        o = createObject(OBJ_ZSET, zs);
        o->encoding = OBJ_ENCODING_SKIPLIST;
        setKey(c->db, c->argv[1]->ptr, o);
    }
    zset *zs = o->ptr;
    double score = (double)argInt(c, 2);
    sds ele = c->argv[3]->ptr;
    dictEntry *de = dictFind(zs->dict, ele);
    if (de) {
        if (de->v.d == score) return;
        zslDelete(zs->zsl, de->v.d, de->key);
        zslInsert(zs->zsl, score, de->key);
    } else {
        de = dictAddRaw(zs->dict, sdsnewlen(ele, sdslen(ele)));
        zslInsert(zs->zsl, score, de->key);
    }
    de->v.d = score;
}

static void zrangebyscoreCommand(client *c) {
    robj *o = typed(c, OBJ_ZSET);
    if (!o) return;
    zrangespec range = { (double)argInt(c, 2), (double)argInt(c, 3), 0, 1 };
    double sum = 0;
    for (zskiplistNode *ln = zslFirstInRange(((zset *)o->ptr)->zsl, &range); ln; ln = ln->level[0].forward) {
        if (range.maxex ? ln->score >= range.max : ln->score > range.max) break;
        addReplyProto(c, ln->ele, sdslen(ln->ele));
        sum += ln->score;
    }
    addReplyLongLong(c, (long long)sum);
}

static void zrankCommand(client *c) {
    robj *o = typed(c, OBJ_ZSET);
    dictEntry *de = o ? dictFind(((zset *)o->ptr)->dict, c->argv[2]->ptr) : NULL;
    if (de) addReplyLongLong(c, (long long)zslGetRank(((zset *)o->ptr)->zsl, de->v.d, de->key));
}

static void hsetCommand(client *c) {
    robj *o = typed(c, OBJ_HASH);
    if (!o) {
        o = createObject(OBJ_HASH, dictCreate(&hashDictType, NULL));
        o->encoding = OBJ_ENCODING_HT;
        setKey(c->db, c->argv[1]->ptr, o);
    }
    sds field = c->argv[2]->ptr, value = c->argv[3]->ptr;
    dictEntry *de = dictFind(o->ptr, field);
    if (de) sdsfreestr(de->v.val);
    else de = dictAddRaw(o->ptr, sdsnewlen(field, sdslen(field)));
    de->v.val = sdsnewlen(value, sdslen(value));
}

static void hgetallScan(void *privdata, const dictEntry *de) {
    addReplyProto(privdata, de->key, sdslen(de->key));
    addReplyProto(privdata, de->v.val, sdslen(de->v.val));
}

static void hgetallCommand(client *c) {
    robj *o = typed(c, OBJ_HASH);
    if (o) dictForEach(o->ptr, hgetallScan, c);
}

static struct redisCommand redisCommandTable[] = {
    { "set", setCommand, 3, "wm", 0, 0, 0 }, { "get", getCommand, 2, "rF", 0, 0, 0 }, { "incr", incrCommand, 2, "wmF", 0, 0, 0 },
    { "expire", expireCommand, 3, "wF", 0, 0, 0 }, { "del", delCommand, 2, "w", 0, 0, 0 }, { "rpush", rpushCommand, -3, "wmF", 0, 0, 0 },
    { "lpop", lpopCommand, 2, "wF", 0, 0, 0 }, { "lrange", lrangeCommand, 4, "r", 0, 0, 0 }, { "sadd", saddCommand, -3, "wmF", 0, 0, 0 },
    { "sismember", sismemberCommand, 3, "rF", 0, 0, 0 }, { "sinter", sinterCommand, 3, "r", 0, 0, 0 }, { "zadd", zaddCommand, 4, "wmF", 0, 0, 0 },
    { "zrangebyscore", zrangebyscoreCommand, 4, "r", 0, 0, 0 }, { "zrank", zrankCommand, 3, "rF", 0, 0, 0 },
    { "hset", hsetCommand, 4, "wmF", 0, 0, 0 }, { "hgetall", hgetallCommand, 2, "r", 0, 0, 0 },
};
enum { NCOMMANDS = sizeof redisCommandTable / sizeof *redisCommandTable };

static NOINLINE int processCommand(client *c) {
    dictEntry *de = dictFind(server.commands, c->argv[0]->ptr);
    if (!de) { addReplyProto(c, "-ERR\r\n", 6); return C_ERR; }
    struct redisCommand *cmd = c->cmd = de->v.val;
    if ((cmd->arity > 0 && cmd->arity != c->argc) || c->argc < -cmd->arity) return C_ERR;
    if (cmd->flags & 1) freeMemoryIfNeeded();
    cmd->proc(c);
    cmd->calls++;
    server.stat_numcommands++;
    return C_OK;
}

static NOINLINE void processMultibulkBuffer(client *c) {
    size_t end = sdslen(c->querybuf);
    while (c->qb_pos < end) {
        const char *p = c->querybuf + c->qb_pos;
        long n = 0;
        serverAssert(*p == '*');
        for (p++; *p != '\r'; p++) n = n * 10 + (*p - '0');
        p += 2;
        c->argc = 0;
        while (n--) {
            size_t len = 0;
            serverAssert(*p == '$');
            for (p++; *p != '\r'; p++) len = len * 10 + (size_t)(*p - '0');
            p += 2;
            c->argv[c->argc++] = createObject(OBJ_STRING, sdsnewlen(p, len));
            p += len + 2;
        }
        c->qb_pos = (size_t)(p - c->querybuf);
        processCommand(c);
        for (int j = 0; j < c->argc; j++) decrRefCount(c->argv[j]);
        c->argc = 0;
    }
    sdssetlen(c->querybuf, 0);
    c->qb_pos = 0;
}

/* ------------------------------- what clients send ------------------------------------- */

static void feedBulk(client *c, const char *s, size_t len) {
    char head[32];
    int n = 1 + ll2string(head + 1, (long long)len);
    head[0] = '$';
    head[n++] = '\r';
    head[n++] = '\n';
    c->querybuf = sdscatlen(c->querybuf, head, (size_t)n);
    c->querybuf = sdscatlen(c->querybuf, s, len);
    c->querybuf = sdscatlen(c->querybuf, "\r\n", 2);
}

static NOINLINE void feedCommand(client *c) {
    uint64_t r = tr_rand() >> 8;
    const struct redisCommand *cmd = &redisCommandTable[r % NCOMMANDS];
    static const char kinds[NCOMMANDS] = { 's', 's', 'n', 's', 's', 'l', 'l', 'l', 'e', 'e', 'e', 'z', 'z', 'z', 'h', 'h' };
    int kind = (int)(cmd - redisCommandTable), args = cmd->arity > 0 ? cmd->arity : 5;
    char word[220], head[8] = "*0\r\n";
    head[1] = (char)('0' + args);
    c->querybuf = sdscatlen(c->querybuf, head, 4);
    feedBulk(c, cmd->name, strlen(cmd->name));
    for (int i = 1; i < args; i++) {
        uint64_t v = tr_rand() >> 10;
        int n;
        if (i == 1 || cmd->proc == sinterCommand) {
            static const char names[][16] = { "user:session:", "page:hits:", "queue:mail:", "tags:" };
            int many = kinds[kind] == 's' || kinds[kind] == 'n' ? 6000 : 90;
            n = (int)strlen(strcpy(word, names[v & 3]));
            word[n++] = kinds[kind];
            n += ll2string(word + n, (long long)(v >> 8) % many);
        } else if (cmd->proc == expireCommand) n = ll2string(word, (long long)(v % 60000));
        else if (cmd->proc == zrangebyscoreCommand) n = ll2string(word, i == 2 ? (long long)(v % 900) : (long long)(v % 1000) + 20);
        else if (cmd->proc == lrangeCommand) n = ll2string(word, (long long)(v % 30));
        else if (kinds[kind] == 'e' && (r >> 40) % 16) n = ll2string(word, (long long)(v % ((r >> 30 & 3) ? 4000 : 900000)));
        else if (kinds[kind] == 'z' && i == 2 && cmd->proc == zaddCommand) n = ll2string(word, (long long)(v % 1000));
        else if (cmd->proc == setCommand && (v & 3) == 0) n = ll2string(word, (long long)(v % 100000));
        else {
            static const char text[] = "lorem-ipsum-dolor-sit-amet-";
            int many = kinds[kind] == 'h' ? 40 : 700, len = cmd->proc == setCommand ? (int)(v >> 20 & 127) : 9;
            for (n = 0; n < len; n++) word[n] = text[n % 27];
            n += ll2string(word + n, (long long)(v % (uint64_t)many));
        }
        feedBulk(c, word, (size_t)n);
    }
}

static NOINLINE unsigned long sampleIdle(redisDb *db) {
    unsigned long idle = 0;
    for (unsigned long i = 0; i < db->dict->ht[0].size; i += 7)
        for (dictEntry *de = db->dict->ht[0].table[i]; de; de = de->next) {
            const robj *o = de->v.val;
            idle += (server.lruclock - o->lru) & 0xffffff;
            if (o->type == OBJ_STRING && o->refcount == 1) idle++;
        }
    return idle;
}

int main(int argc, char **argv) {
    client *clients[6];
    unsigned long idle = 0;
    tr_init(argc, argv);
    TR_GLOBAL(server, "struct redisServer");
    TR_GLOBAL(sdspool, "struct sdspool");
    TR_GLOBAL(redisCommandTable, "struct redisCommand []");
    TR_GLOBAL(dbDictType, "dictType");
    TR_GLOBAL(keyptrDictType, "dictType");
    TR_GLOBAL(setDictType, "dictType");
    TR_GLOBAL(hashDictType, "dictType");
    TR_GLOBAL(commandTableDictType, "dictType");
    TR_CHECK(robj, ptr);
    TR_CHECK(dict, rehashidx);
    TR_CHECK(zskiplistNode, backward);
    TR_CHECK(client, buf);
    server.commands = dictCreate(&commandTableDictType, NULL);
    for (int i = 0; i < NCOMMANDS; i++) {
        struct redisCommand *cmd = &redisCommandTable[i];
        for (const char *f = cmd->sflags; *f; f++) cmd->flags |= *f == 'm' ? 1u : *f == 'w' ? 2u : 4u;
        dictAddRaw(server.commands, sdsnewlen(cmd->name, strlen(cmd->name)))->v.val = cmd;
    }
    server.maxkeys = 9000;
    for (int i = 0; i < 4; i++) {
        server.db[i].id = i;
        server.db[i].dict = dictCreate(&dbDictType, NULL);
        server.db[i].expires = dictCreate(&keyptrDictType, NULL);
    }
    for (int i = 0; i < 6; i++) {
        client *c = clients[i] = HEAP_CALLOC(client, 1);
        c->id = (uint64_t)i + 1;
        c->db = &server.db[i % 4];
        c->querybuf = sdsnewlen("", 0);
        c->argv = HEAP_CALLOC(robj *, c->argcap = 8);
    }
    for (unsigned long cron = 0; tr_more(); cron++) {
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k < 12; k++) feedCommand(clients[i]);
            processMultibulkBuffer(clients[i]);
        }
        server.mstime += 90;
        server.lruclock++;
        for (int i = 0; i < 4; i++) {
            if (dictIsRehashing(server.db[i].dict)) dictRehash(server.db[i].dict, 20);
            activeExpireCycle(&server.db[i]);
        }
        if (cron % 40 == 0) idle += sampleIdle(&server.db[cron / 40 % 4]);
    }
    if (getenv("SHOW"))
        fprintf(stderr, "commands %lld hits %lld misses %lld expired %lld evicted %lld keys %lu %lu sds %ld\n", server.stat_numcommands, server.stat_keyspace_hits, server.stat_keyspace_misses,
                server.stat_expiredkeys, server.stat_evictedkeys, dictSize(server.db[0].dict), dictSize(server.db[2].dict), sdspool.used);
    tr_sink = idle + (unsigned long)server.stat_keyspace_hits;
    return 0;
}
