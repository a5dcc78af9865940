/* Licensed to nobody in particular.
 *
 * A store of mail: messages are parsed into trees of parts, headers lie in tables, bodies
 * are decoded, words are counted for a filter, messages are threaded, sorted and searched.
 * All memory is of pools, which are cleared at once.
 */
#include "../heap.h"

typedef int apr_status_t;
typedef size_t apr_size_t;
typedef int64_t apr_time_t;
typedef ssize_t apr_ssize_t;

#define APR_SUCCESS 0
#define APR_DECLARE(type) static type
#define APR_HASH_KEY_STRING (-1)
#define apr_isspace(c) ((c) == ' ' || (c) == '\t' || (c) == '\r' || (c) == '\n')
#define apr_isalpha(c) (((c) | 32) >= 'a' && ((c) | 32) <= 'z')
#define apr_tolower(c) ((c) >= 'A' && (c) <= 'Z' ? (c) | 32 : (c))

/* ---- pools: nodes of memory for each kind of thing, cut from the front ---- */

typedef struct apr_pool_t apr_pool_t;
typedef struct apr_memnode_t apr_memnode_t;
typedef struct apr_kind_t apr_kind_t;
typedef struct cleanup_t cleanup_t;

struct apr_memnode_t {
    apr_memnode_t *next;
    apr_kind_t *kind;
    char *first_avail;
    char *endp;
};

struct apr_kind_t {
    const char *type;
    apr_size_t size, node_count;
    apr_memnode_t *free;
    unsigned int nodes, reused;
};

struct cleanup_t {
    cleanup_t *next;
    void *data;
    apr_status_t (*plain_cleanup_fn)(void *data);
};

typedef struct apr_array_header_t {
    apr_pool_t *pool;
    int elt_size, nelts, nalloc;
    unsigned int kind;
    char *elts;
} apr_array_header_t;

typedef struct apr_table_entry_t {
    char *key;
    char *val;
    uint32_t key_checksum;
} apr_table_entry_t;

#define TABLE_HASH_SIZE 32

typedef struct apr_table_t {
    apr_array_header_t a;
    uint32_t index_initialized;
    int index_first[TABLE_HASH_SIZE];
    int index_last[TABLE_HASH_SIZE];
} apr_table_t;

typedef struct apr_hash_entry_t apr_hash_entry_t;
struct apr_hash_entry_t {
    apr_hash_entry_t *next;
    unsigned int hash;
    const void *key;
    apr_ssize_t klen;
    const void *val;
};

typedef struct apr_hash_t apr_hash_t;
typedef struct apr_hash_index_t {
    apr_hash_t *ht;
    apr_hash_entry_t *this, *next;
    unsigned int index;
} apr_hash_index_t;

struct apr_hash_t {
    apr_pool_t *pool;
    apr_hash_entry_t **array;
    apr_hash_index_t iterator;
    unsigned int count, max, seed;
    apr_hash_entry_t *free;
};

typedef struct apr_bucket apr_bucket;
typedef struct apr_bucket_type_t {
    const char *name;
    int num_func;
    apr_status_t (*read)(apr_bucket *e, const char **str, apr_size_t *len);
} apr_bucket_type_t;

struct apr_bucket {
    apr_bucket *next, *prev;
    const apr_bucket_type_t *type;
    apr_size_t length;
    apr_size_t start;
    void *data;
};

typedef struct apr_bucket_brigade { apr_pool_t *p; apr_bucket *first, *last; apr_size_t total; } apr_bucket_brigade;

typedef struct mime_part_t mime_part_t;
typedef struct mime_decoder_t {
    const char *name;
    apr_size_t (*decode)(char *out, const char *in, apr_size_t len);
    unsigned long uses, bytes;
} mime_decoder_t;

struct mime_part_t {
    mime_part_t *parent, *next, *children, *last_child;
    apr_table_t *headers, *params;
    const char *type, *subtype;
    mime_decoder_t *decoder;
    const char *body;
    apr_size_t body_len;
    unsigned int depth : 4, multipart : 1, attachment : 1, decoded : 1, lines : 16;
    union {
        struct { const char *boundary; int parts; } multi;
        struct { apr_bucket_brigade *text; unsigned int words; } leaf;
    } u;
};

typedef struct address_t { const char *name, *local, *domain; } address_t;
typedef struct container_t container_t;

typedef struct mail_t mail_t;
struct mail_t {
    unsigned int uid;
    const char *message_id, *subject;
    const address_t *from;
    apr_array_header_t *references;
    apr_time_t date;
    apr_size_t size;
    unsigned int seen : 1, spam : 1, answered : 1, parts : 5, attachments : 4, score : 16;
    container_t *thread;
    mail_t *next_of_sender;
};

struct container_t {
    mail_t *mail;
    container_t *parent, *child, *next;
    const char *id;
    int visits;
};

typedef struct sender_t { const address_t *address; mail_t *mails; unsigned int count, spam; } sender_t;
typedef struct token_t { uint32_t good, bad; float weight; uint32_t last_seen; } token_t;
typedef struct posting_t { unsigned int uid; uint16_t times, first; } posting_t;
typedef struct term_t { apr_array_header_t *postings; unsigned int total; } term_t;

#define KINDS(K) K(char, 8000) K(apr_table_entry_t, 120) K(apr_table_t, 12) K(apr_array_header_t, 60) K(apr_hash_entry_t, 200) K(apr_hash_t, 4) \
    K(apr_bucket, 120) K(apr_bucket_brigade, 30) K(mime_part_t, 40) K(address_t, 60) K(mail_t, 50) K(container_t, 80) K(sender_t, 60) \
    K(token_t, 200) K(posting_t, 800) K(term_t, 200) K(cleanup_t, 20)
#define POINTER_KINDS(K) K(string, char *, 600) K(entry, apr_hash_entry_t *, 2048) K(mail, mail_t *, 512) K(container, container_t *, 512)

enum {
#define K(T, n) KIND_##T,
    KINDS(K)
#undef K
#define K(name, T, n) KIND_p_##name,
    POINTER_KINDS(K)
#undef K
    NKINDS
};

static apr_kind_t apr_kinds[NKINDS] = {
#define K(T, n) { #T, sizeof(T), n, NULL, 0, 0 },
    KINDS(K)
#undef K
#define K(name, T, n) { #T, sizeof(T), n, NULL, 0, 0 },
    POINTER_KINDS(K)
#undef K
};

struct apr_pool_t {
    apr_pool_t *parent, *child, *sibling;
    cleanup_t *cleanups;
    apr_memnode_t *active[NKINDS];
    const char *tag;
    unsigned long allocated, clears;
};

static apr_memnode_t *allocator_alloc(apr_kind_t *kind, apr_size_t n)
{
    apr_memnode_t *node, **ref;
    apr_size_t bytes = (n > kind->node_count ? n : kind->node_count) * kind->size;

    for (ref = &kind->free; (node = *ref) != NULL; ref = &node->next) {
        if ((apr_size_t)(node->endp - node->first_avail) >= bytes) {
            *ref = node->next;
            kind->reused++;
            return node;
        }
    }
    node = malloc(sizeof(apr_memnode_t) + bytes);
    node->kind = kind;
    node->first_avail = (char *)(node + 1);
    node->endp = node->first_avail + bytes;
    tr_region("apr_memnode_t", node, sizeof(*node), sizeof(*node));
    tr_region(kind->type, node->first_avail, bytes, kind->size);
    kind->nodes++;
    return node;
}

static NOINLINE void *apr_palloc(apr_pool_t *pool, unsigned int k, apr_size_t n)
{
    apr_memnode_t *active = pool->active[k];
    apr_kind_t *kind = &apr_kinds[k];
    apr_size_t bytes = n * kind->size;
    char *mem;

    if (active == NULL || (apr_size_t)(active->endp - active->first_avail) < bytes) {
        active = allocator_alloc(kind, n);
        active->next = pool->active[k];
        pool->active[k] = active;
    }
    mem = active->first_avail;
    active->first_avail += bytes;
    pool->allocated += bytes;
    return mem;
}

#define apr_pnew(p, T) ((T *)apr_palloc((p), KIND_##T, 1))
#define apr_pcnew(p, T) ((T *)memset(apr_palloc((p), KIND_##T, 1), 0, sizeof(T)))

static void apr_pool_cleanup_register(apr_pool_t *p, void *data, apr_status_t (*fn)(void *))
{
    cleanup_t *c = apr_pnew(p, cleanup_t);
    c->data = data;
    c->plain_cleanup_fn = fn;
    c->next = p->cleanups;
    p->cleanups = c;
}

static NOINLINE void apr_pool_clear(apr_pool_t *pool)
{
    cleanup_t *c;
    int k;

    for (c = pool->cleanups; c; c = c->next) c->plain_cleanup_fn(c->data);
    pool->cleanups = NULL;
    for (apr_pool_t *child = pool->child; child; child = child->sibling) apr_pool_clear(child);
    for (k = 0; k < NKINDS; k++) {
        apr_memnode_t *node, *next;
        for (node = pool->active[k]; node; node = next) {
            next = node->next;
            node->first_avail = (char *)(node + 1);
            node->next = node->kind->free;
            node->kind->free = node;
        }
        pool->active[k] = NULL;
    }
    pool->clears++;
}

static apr_pool_t *apr_pool_create(apr_pool_t *parent, const char *tag)
{
    apr_pool_t *pool = HEAP_CALLOC(apr_pool_t, 1);
    pool->tag = tag;
    pool->parent = parent;
    if (parent) {
        pool->sibling = parent->child;
        parent->child = pool;
    }
    return pool;
}

static char *apr_pstrmemdup(apr_pool_t *p, const char *s, apr_size_t n)
{
    char *res = apr_palloc(p, KIND_char, n + 1);
    memcpy(res, s, n);
    res[n] = '\0';
    return res;
}

/* ---- arrays, tables, hashes ---- */

static apr_array_header_t *apr_array_make(apr_pool_t *p, int nelts, unsigned int kind)
{
    apr_array_header_t *res = apr_pnew(p, apr_array_header_t);
    res->pool = p;
    res->kind = kind;
    res->elt_size = (int)apr_kinds[kind].size;
    res->nelts = 0;
    res->nalloc = nelts;
    res->elts = apr_palloc(p, kind, (apr_size_t)nelts);
    return res;
}

static NOINLINE void *apr_array_push(apr_array_header_t *arr)
{
    if (arr->nelts == arr->nalloc) {
        int new_size = arr->nalloc <= 0 ? 1 : arr->nalloc * 2;
        char *new_data = apr_palloc(arr->pool, arr->kind, (apr_size_t)new_size);
        memcpy(new_data, arr->elts, (apr_size_t)(arr->nalloc * arr->elt_size));
        arr->elts = new_data;
        arr->nalloc = new_size;
    }
    ++arr->nelts;
    return arr->elts + arr->elt_size * (arr->nelts - 1);
}

#define APR_ARRAY_IDX(ary, i, type) (((type *)(ary)->elts)[i])
#define APR_ARRAY_PUSH(ary, type) (*((type *)apr_array_push(ary)))
#define CASE_MASK 0xdfdfdfdf
#define TABLE_HASH(key) (0x1f & *(const unsigned char *)(key))
#define COMPUTE_KEY_CHECKSUM(key, checksum) { \
    const char *k = (key); \
    uint32_t c = (uint32_t)*k; \
    (checksum) = c; (checksum) <<= 8; \
    if (c) { c = (uint32_t)*++k; checksum |= c; } \
    (checksum) <<= 8; \
    if (c) { c = (uint32_t)*++k; checksum |= c; } \
    (checksum) <<= 8; \
    if (c) { c = (uint32_t)*++k; checksum |= c; } \
    checksum &= CASE_MASK; }

static apr_table_t *apr_table_make(apr_pool_t *p, int nelts)
{
    apr_table_t *t = apr_pnew(p, apr_table_t);
    t->a.pool = p;
    t->a.kind = KIND_apr_table_entry_t;
    t->a.elt_size = sizeof(apr_table_entry_t);
    t->a.nelts = 0;
    t->a.nalloc = nelts;
    t->a.elts = apr_palloc(p, KIND_apr_table_entry_t, (apr_size_t)nelts);
    t->index_initialized = 0;
    return t;
}

static int casecmp(const char *a, const char *b)
{
    while (*a && apr_tolower(*a) == apr_tolower(*b)) a++, b++;
    return apr_tolower(*a) - apr_tolower(*b);
}

static NOINLINE void apr_table_addn(apr_table_t *t, char *key, char *val)
{
    int hash = TABLE_HASH(key);
    uint32_t checksum;
    apr_table_entry_t *elts;

    t->index_last[hash] = t->a.nelts;
    if (!(t->index_initialized & (1u << hash))) {
        t->index_first[hash] = t->a.nelts;
        t->index_initialized |= 1u << hash;
    }
    COMPUTE_KEY_CHECKSUM(key, checksum);
    elts = (apr_table_entry_t *)apr_array_push(&t->a);
    elts->key = key;
    elts->val = val;
    elts->key_checksum = checksum;
}

static NOINLINE const char *apr_table_get(const apr_table_t *t, const char *key)
{
    int hash = TABLE_HASH(key);
    uint32_t checksum;
    apr_table_entry_t *next_elt, *end_elt;

    if (!(t->index_initialized & (1u << hash))) return NULL;
    COMPUTE_KEY_CHECKSUM(key, checksum);
    next_elt = (apr_table_entry_t *)t->a.elts + t->index_first[hash];
    end_elt = (apr_table_entry_t *)t->a.elts + t->index_last[hash];
    for (; next_elt <= end_elt; next_elt++)
        if (checksum == next_elt->key_checksum && !casecmp(next_elt->key, key)) return next_elt->val;
    return NULL;
}

static int apr_table_do(int (*comp)(void *rec, const char *key, const char *val), void *rec, const apr_table_t *t)
{
    apr_table_entry_t *elts = (apr_table_entry_t *)t->a.elts;
    for (int i = 0; i < t->a.nelts; i++)
        if (elts[i].key && !comp(rec, elts[i].key, elts[i].val)) return 0;
    return 1;
}

static apr_hash_t *apr_hash_make(apr_pool_t *pool)
{
    apr_hash_t *ht = apr_pcnew(pool, apr_hash_t);
    ht->pool = pool;
    ht->max = 255;
    ht->seed = 0x9e3779b9;
    ht->array = memset(apr_palloc(pool, KIND_p_entry, ht->max + 1), 0, (ht->max + 1) * sizeof(apr_hash_entry_t *));
    return ht;
}

static NOINLINE unsigned int hashfunc_default(const char *char_key, apr_ssize_t *klen, unsigned int hash)
{
    const unsigned char *key = (const unsigned char *)char_key, *p;
    apr_ssize_t i;

    if (*klen == APR_HASH_KEY_STRING) {
        for (p = key; *p; p++) hash = hash * 33 + *p;
        *klen = p - key;
    } else
        for (p = key, i = *klen; i; i--, p++) hash = hash * 33 + *p;
    return hash;
}

static NOINLINE void expand_array(apr_hash_t *ht)
{
    unsigned int new_max = ht->max * 2 + 1, i;
    apr_hash_entry_t **new_array = memset(apr_palloc(ht->pool, KIND_p_entry, new_max + 1), 0, (new_max + 1) * sizeof(apr_hash_entry_t *)), *he, *next;

    for (i = 0; i <= ht->max; i++)
        for (he = ht->array[i]; he; he = next) {
            next = he->next;
            he->next = new_array[he->hash & new_max];
            new_array[he->hash & new_max] = he;
        }
    ht->array = new_array;
    ht->max = new_max;
}

static NOINLINE apr_hash_entry_t **find_entry(apr_hash_t *ht, const void *key, apr_ssize_t klen, const void *val)
{
    apr_hash_entry_t **hep, *he;
    unsigned int hash = hashfunc_default(key, &klen, ht->seed);

    for (hep = &ht->array[hash & ht->max], he = *hep; he; hep = &he->next, he = *hep)
        if (he->hash == hash && he->klen == klen && memcmp(he->key, key, (apr_size_t)klen) == 0) break;
    if (he || !val) return hep;
    he = apr_pnew(ht->pool, apr_hash_entry_t);
    he->next = NULL;
    he->hash = hash;
    he->key = apr_pstrmemdup(ht->pool, key, (apr_size_t)klen);
    he->klen = klen;
    he->val = val;
    *hep = he;
    ht->count++;
    return hep;
}

static void *apr_hash_get(apr_hash_t *ht, const void *key, apr_ssize_t klen)
{
    apr_hash_entry_t *he = *find_entry(ht, key, klen, NULL);
    return he ? (void *)he->val : NULL;
}

static void apr_hash_set(apr_hash_t *ht, const void *key, apr_ssize_t klen, const void *val)
{
    (*find_entry(ht, key, klen, val))->val = val;
    if (ht->count > ht->max) expand_array(ht);
}

static NOINLINE apr_hash_index_t *apr_hash_next(apr_hash_index_t *hi)
{
    hi->this = hi->next;
    while (!hi->this) {
        if (hi->index > hi->ht->max) return NULL;
        hi->this = hi->ht->array[hi->index++];
    }
    hi->next = hi->this->next;
    return hi;
}

static apr_hash_index_t *apr_hash_first(apr_hash_t *ht)
{
    apr_hash_index_t *hi = &ht->iterator;
    hi->ht = ht;
    hi->index = 0;
    hi->this = hi->next = NULL;
    return apr_hash_next(hi);
}

/* ---- buckets ---- */

static apr_status_t simple_read(apr_bucket *b, const char **str, apr_size_t *len)
{
    *str = (const char *)b->data + b->start;
    *len = b->length;
    return APR_SUCCESS;
}

static apr_status_t blank_read(apr_bucket *b, const char **str, apr_size_t *len)
{
    *str = "\n";
    *len = b->length;
    return APR_SUCCESS;
}

static const apr_bucket_type_t apr_bucket_type_pool = { "POOL", 5, simple_read }, apr_bucket_type_blank = { "BLANK", 5, blank_read };

static void brigade_insert_tail(apr_bucket_brigade *bb, const apr_bucket_type_t *type, char *data, apr_size_t start, apr_size_t length)
{
    apr_bucket *e = apr_pnew(bb->p, apr_bucket);
    e->type = type;
    e->data = data;
    e->start = start;
    e->length = length;
    e->next = NULL;
    e->prev = bb->last;
    if (bb->last) bb->last->next = e;
    else bb->first = e;
    bb->last = e;
    bb->total += length;
}

/* ---- decoders ---- */

static unsigned char pr2six[256];
static const char basis_64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static NOINLINE apr_size_t decode_base64(char *out, const char *in, apr_size_t len)
{
    char *to = out;
    unsigned int acc = 0, bits = 0;

    for (apr_size_t i = 0; i < len; i++) {
        unsigned char v = pr2six[(unsigned char)in[i]];
        if (v > 63) continue;
        acc = acc << 6 | v;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *to++ = (char)(acc >> bits);
        }
    }
    return (apr_size_t)(to - out);
}

static NOINLINE apr_size_t decode_qp(char *out, const char *in, apr_size_t len)
{
    char *to = out;

    for (apr_size_t i = 0; i < len; i++) {
        if (in[i] != '=' || i + 2 >= len) *to++ = in[i];
        else if (in[i + 1] == '\n') i++;
        else {
            int hi = in[i + 1], lo = in[i + 2];
            *to++ = (char)((hi > '9' ? hi - 'A' + 10 : hi - '0') << 4 | (lo > '9' ? lo - 'A' + 10 : lo - '0'));
            i += 2;
        }
    }
    return (apr_size_t)(to - out);
}

static apr_size_t decode_identity(char *out, const char *in, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) out[i] = in[i];
    return len;
}

static mime_decoder_t decoders[] = { { "7bit", decode_identity, 0, 0 }, { "base64", decode_base64, 0, 0 }, { "quoted-printable", decode_qp, 0, 0 } };

/* ---- parsing ---- */

/* Headers up to an empty line, with what is folded joined; returns where the body is. */
static NOINLINE const char *parse_headers(apr_pool_t *p, apr_table_t *t, const char *s, const char *end)
{
    while (s < end && *s != '\n') {
        const char *colon = s, *eol;
        while (colon < end && *colon != ':' && *colon != '\n') colon++;
        for (eol = colon; eol < end && !(*eol == '\n' && eol[1] != ' ' && eol[1] != '\t'); eol++) {}
        if (*colon == ':') {
            const char *v = colon + 1;
            char *val, *to;
            while (v < eol && apr_isspace(*v)) v++;
            to = val = apr_palloc(p, KIND_char, (apr_size_t)(eol - v) + 1);
            for (; v < eol; v++)
                if (*v != '\n') *to++ = *v == '\t' ? ' ' : *v;
            *to = '\0';
            apr_table_addn(t, apr_pstrmemdup(p, s, (apr_size_t)(colon - s)), val);
        }
        s = eol < end ? eol + 1 : end;
    }
    return s < end ? s + 1 : end;
}

static void parse_content_type(apr_pool_t *p, mime_part_t *part, const char *v)
{
    const char *s = v;
    while (*s && *s != '/') s++;
    part->type = apr_pstrmemdup(p, v, (apr_size_t)(s - v));
    if (*s) s++;
    for (v = s; *s && *s != ';'; s++) {}
    part->subtype = apr_pstrmemdup(p, v, (apr_size_t)(s - v));
    while (*s == ';') {
        const char *name = ++s, *val;
        while (*name == ' ') name++;
        for (s = name; *s && *s != '='; s++) {}
        val = *s ? s + 1 : s;
        int quoted = *val == '"';
        val += quoted;
        const char *to = val;
        while (*to && *to != (quoted ? '"' : ';')) to++;
        apr_table_addn(part->params, apr_pstrmemdup(p, name, (apr_size_t)(s - name)), apr_pstrmemdup(p, val, (apr_size_t)(to - val)));
        s = to + (quoted && *to);
    }
}

static NOINLINE const char *find_boundary(const char *s, const char *end, const char *boundary, apr_size_t n)
{
    for (; s + n + 3 < end; s++) {
        while (s < end && *s != '\n') s++;
        if (s + n + 3 < end && s[1] == '-' && s[2] == '-' && memcmp(s + 3, boundary, n) == 0) return s + 1;
    }
    return NULL;
}

static NOINLINE mime_part_t *parse_part(apr_pool_t *p, mime_part_t *parent, const char *s, const char *end)
{
    mime_part_t *part = apr_pcnew(p, mime_part_t);
    const char *v;

    part->parent = parent;
    part->depth = parent ? parent->depth + 1 : 0;
    part->headers = apr_table_make(p, 8);
    part->params = apr_table_make(p, 3);
    part->body = parse_headers(p, part->headers, s, end);
    part->body_len = (apr_size_t)(end - part->body);
    v = apr_table_get(part->headers, "Content-Type");
    parse_content_type(p, part, v ? v : "text/plain");
    part->decoder = &decoders[0];
    if ((v = apr_table_get(part->headers, "Content-Transfer-Encoding")) != NULL)
        for (int i = 0; i < 3; i++)
            if (!casecmp(v, decoders[i].name)) part->decoder = &decoders[i];
    v = apr_table_get(part->headers, "Content-Disposition");
    part->attachment = v && !strncmp(v, "attachment", 10);
    if (!casecmp(part->type, "multipart") && (v = apr_table_get(part->params, "boundary")) != NULL && part->depth < 6) {
        apr_size_t n = strlen(v);
        const char *at = find_boundary(part->body - 1, end, v, n), *next;
        part->multipart = 1;
        part->u.multi.boundary = v;
        while (at && at[n + 2] != '-' && (next = find_boundary(at + n, end, v, n)) != NULL) {
            mime_part_t *child = parse_part(p, part, at + n + 3, next);
            if (part->last_child) part->last_child->next = child;
            else part->children = child;
            part->last_child = child;
            part->u.multi.parts++;
            at = next;
        }
    }
    return part;
}

static NOINLINE void decode_part(apr_pool_t *p, mime_part_t *part)
{
    if (part->multipart) {
        for (mime_part_t *c = part->children; c; c = c->next) decode_part(p, c);
        return;
    }
    char *out = apr_palloc(p, KIND_char, part->body_len + 1);
    apr_size_t n = part->decoder->decode(out, part->body, part->body_len), line = 0;
    unsigned int lines = 0;
    part->decoder->uses++;
    part->decoder->bytes += n;
    part->u.leaf.text = apr_pcnew(p, apr_bucket_brigade);
    part->u.leaf.text->p = p;
    for (apr_size_t i = 0; i <= n; i++)
        if (i == n || out[i] == '\n') {
            if (i > line) brigade_insert_tail(part->u.leaf.text, &apr_bucket_type_pool, out, line, i - line);
            else brigade_insert_tail(part->u.leaf.text, &apr_bucket_type_blank, NULL, 0, 1);
            line = i + 1;
            lines++;
        }
    part->lines = lines & 0xffff;
    part->decoded = 1;
}

/* ---- the store ---- */

typedef struct store_t {
    apr_pool_t *pool, *scratch;
    apr_hash_t *senders, *containers, *terms;
    apr_array_header_t *mails;
    unsigned int next_uid, threads, spam, shown;
} store_t;

static apr_pool_t *global_pool, *filter_pool;
static apr_hash_t *tokens;
static store_t store;
static float log_table[1024];
static uint32_t training;

static const address_t *parse_address(apr_pool_t *p, const char *s)
{
    address_t *a = apr_pcnew(p, address_t);
    const char *lt = strchr(s, '<'), *at, *gt;
    a->name = lt ? apr_pstrmemdup(p, s, (apr_size_t)(lt - s)) : "";
    if (lt) s = lt + 1;
    at = strchr(s, '@');
    if (!at) at = s + strlen(s);
    for (gt = at; *gt && *gt != '>'; gt++) {}
    a->local = apr_pstrmemdup(p, s, (apr_size_t)(at - s));
    a->domain = apr_pstrmemdup(p, *at ? at + 1 : at, (apr_size_t)(gt - at));
    return a;
}

static container_t *container_of_id(const char *id, apr_ssize_t len)
{
    container_t *c = apr_hash_get(store.containers, id, len);
    if (!c) {
        c = apr_pcnew(store.pool, container_t);
        c->id = apr_pstrmemdup(store.pool, id, len < 0 ? strlen(id) : (apr_size_t)len);
        apr_hash_set(store.containers, id, len, c);
    }
    return c;
}

static int reachable(const container_t *from, const container_t *to)
{
    for (; from; from = from->parent)
        if (from == to) return 1;
    return 0;
}

static void link_child(container_t *parent, container_t *child)
{
    if (child->parent || reachable(parent, child)) return;
    child->parent = parent;
    child->next = parent->child;
    parent->child = child;
}

static NOINLINE void thread_mail(mail_t *mail)
{
    container_t *c = container_of_id(mail->message_id, APR_HASH_KEY_STRING), *prev = NULL;
    c->mail = mail;
    mail->thread = c;
    for (int i = 0; i < mail->references->nelts; i++) {
        container_t *ref = container_of_id(APR_ARRAY_IDX(mail->references, i, char *), APR_HASH_KEY_STRING);
        if (prev) link_child(prev, ref);
        prev = ref;
    }
    if (prev) {
        link_child(prev, c);
        if (prev->mail) prev->mail->answered = 1;
    }
}

static NOINLINE unsigned int walk_thread(container_t *c, unsigned int depth)
{
    unsigned int n = 0;
    for (; c; c = c->next) {
        c->visits++;
        if (c->mail) n += 1 + (depth > 3) + c->mail->answered;
        if (c->child && depth < 200) n += walk_thread(c->child, depth + 1);
    }
    return n;
}

struct word_count { mail_t *mail; mime_part_t *part; double spamicity; unsigned int n; apr_hash_t *seen; };

static void count_word(struct word_count *wc, const char *word, apr_ssize_t len)
{
    token_t *t = apr_hash_get(tokens, word, len);
    term_t *term = apr_hash_get(store.terms, word, len);

    if (!t) {
        t = apr_pcnew(filter_pool, token_t);
        apr_hash_set(tokens, word, len, t);
    }
    t->last_seen = wc->mail->uid;
    wc->spamicity += t->weight;
    wc->n++;
    wc->part->u.leaf.words++;
    if (training & 1) t->bad++;
    else t->good++;
    if ((t->good + t->bad) % 16 == 0) t->weight = log_table[t->bad & 1023] - log_table[t->good & 1023];
    if (!term) {
        term = apr_pnew(store.pool, term_t);
        term->postings = apr_array_make(store.pool, 4, KIND_posting_t);
        term->total = 0;
        apr_hash_set(store.terms, word, len, term);
    }
    term->total++;
    posting_t *last = term->postings->nelts ? &APR_ARRAY_IDX(term->postings, term->postings->nelts - 1, posting_t) : NULL;
    if (last && last->uid == wc->mail->uid) last->times++;
    else {
        posting_t *posting = (posting_t *)apr_array_push(term->postings);
        posting->uid = wc->mail->uid;
        posting->times = 1;
        posting->first = (uint16_t)wc->n;
    }
}

static NOINLINE void count_part(mime_part_t *part, struct word_count *wc)
{
    if (part->multipart) {
        for (mime_part_t *c = part->children; c; c = c->next) count_part(c, wc);
        return;
    }
    wc->part = part;
    wc->mail->parts++;
    wc->mail->attachments += part->attachment;
    for (apr_bucket *e = part->u.leaf.text->first; e; e = e->next) {
        const char *s, *end, *word;
        apr_size_t len;
        e->type->read(e, &s, &len);
        for (end = s + len; s < end;) {
            char lower[24];
            while (s < end && !apr_isalpha(*s)) s++;
            for (word = s; s < end && apr_isalpha(*s) && s - word < 24; s++) lower[s - word] = apr_tolower(*s);
            if (s - word > 2) count_word(wc, lower, s - word);
        }
    }
}

static int copy_reference(void *rec, const char *key, const char *val)
{
    mail_t *mail = rec;
    if (casecmp(key, "References") && casecmp(key, "In-Reply-To")) return 1;
    for (const char *s = val; *s;) {
        const char *to = s;
        while (*to && *to != ' ') to++;
        if (to > s) APR_ARRAY_PUSH(mail->references, char *) = apr_pstrmemdup(store.pool, s, (apr_size_t)(to - s));
        s = *to ? to + 1 : to;
    }
    return 1;
}

static apr_status_t scratch_cleanup(void *data)
{
    ((store_t *)data)->shown++;
    return APR_SUCCESS;
}

static NOINLINE mail_t *deliver(const char *raw, apr_size_t len)
{
    mime_part_t *root = parse_part(store.scratch, NULL, raw, raw + len);
    mail_t *mail = apr_pcnew(store.pool, mail_t);
    struct word_count wc = { mail, root, 0, 0, NULL };
    const char *v;

    apr_pool_cleanup_register(store.scratch, &store, scratch_cleanup);
    decode_part(store.scratch, root);
    mail->uid = store.next_uid++;
    mail->size = len;
    v = apr_table_get(root->headers, "Message-ID");
    mail->message_id = apr_pstrmemdup(store.pool, v, strlen(v));
    v = apr_table_get(root->headers, "Subject");
    mail->subject = apr_pstrmemdup(store.pool, v, strlen(v));
    v = apr_table_get(root->headers, "Date");
    mail->date = v ? atoll(v) : 0;
    mail->references = apr_array_make(store.pool, 2, KIND_p_string);
    apr_table_do(copy_reference, mail, root->headers);
    v = apr_table_get(root->headers, "From");
    sender_t *sender = apr_hash_get(store.senders, v, APR_HASH_KEY_STRING);
    if (!sender) {
        sender = apr_pcnew(store.pool, sender_t);
        sender->address = parse_address(store.pool, v);
        apr_hash_set(store.senders, v, APR_HASH_KEY_STRING, sender);
    }
    mail->from = sender->address;
    mail->next_of_sender = sender->mails;
    sender->mails = mail;
    sender->count++;
    count_part(root, &wc);
    mail->score = (unsigned int)(wc.n ? (wc.spamicity / wc.n + 8) * 1000 : 0) & 0xffff;
    mail->spam = mail->score > 8000;
    sender->spam += mail->spam;
    store.spam += mail->spam;
    APR_ARRAY_PUSH(store.mails, mail_t *) = mail;
    thread_mail(mail);
    apr_pool_clear(store.scratch);
    return mail;
}

static int by_date(const void *a, const void *b)
{
    const mail_t *x = *(mail_t *const *)a, *y = *(mail_t *const *)b;
    return x->date < y->date ? -1 : x->date > y->date;
}

static int by_subject(const void *a, const void *b)
{
    const mail_t *x = *(mail_t *const *)a, *y = *(mail_t *const *)b;
    int c = strcmp(x->subject, y->subject);
    return c ? c : by_date(a, b);
}

static NOINLINE unsigned long sort_mails(int (*compare)(const void *, const void *))
{
    apr_array_header_t *sorted = apr_array_make(store.scratch, store.mails->nelts + 1, KIND_p_mail);
    unsigned long sum = 0;
    for (int i = 0; i < store.mails->nelts; i++) {
        mail_t *m = APR_ARRAY_IDX(store.mails, i, mail_t *);
        if (!m->spam) APR_ARRAY_PUSH(sorted, mail_t *) = m;
    }
    qsort(sorted->elts, (apr_size_t)sorted->nelts, sizeof(mail_t *), compare);
    for (int i = 0; i < sorted->nelts; i += 7) sum += APR_ARRAY_IDX(sorted, i, mail_t *)->uid * (unsigned)i;
    apr_pool_clear(store.scratch);
    return sum;
}

static NOINLINE unsigned int search_both(const char *one, const char *two)
{
    term_t *x = apr_hash_get(store.terms, one, APR_HASH_KEY_STRING), *y = apr_hash_get(store.terms, two, APR_HASH_KEY_STRING);
    unsigned int hits = 0;
    int i = 0, k = 0;
    if (!x || !y) return 0;
    while (i < x->postings->nelts && k < y->postings->nelts) {
        const posting_t *a = &APR_ARRAY_IDX(x->postings, i, posting_t), *b = &APR_ARRAY_IDX(y->postings, k, posting_t);
        if (a->uid == b->uid) {
            hits += a->times + b->times + (a->first < b->first);
            i++;
            k++;
        } else if (a->uid < b->uid) i++;
        else k++;
    }
    return hits;
}

static NOINLINE unsigned int busiest_sender(void)
{
    unsigned int best = 0;
    for (apr_hash_index_t *hi = apr_hash_first(store.senders); hi; hi = apr_hash_next(hi)) {
        const sender_t *s = hi->this->val;
        unsigned int n = 0;
        for (mail_t *m = s->mails; m; m = m->next_of_sender) n += !m->spam + m->attachments;
        if (n > best) best = n + (unsigned int)s->address->domain[0];
    }
    return best;
}

static NOINLINE void open_store(void)
{
    apr_pool_clear(store.pool);
    store.senders = apr_hash_make(store.pool);
    store.containers = apr_hash_make(store.pool);
    store.terms = apr_hash_make(store.pool);
    store.mails = apr_array_make(store.pool, 64, KIND_p_mail);
    store.next_uid = 1;
}

/* ---- what is sent ---- */

static const char *const words[] = { "meeting", "Tuesday", "invoice", "attached", "please", "review", "server", "patch", "kernel", "offer", "cheap", "winner", "garden",
    "school", "travel", "ticket", "regards", "deadline", "budget", "coffee", "release", "branch", "merge", "holiday", "doctor", "music" };
static char *raw_mail;

static char *put(char *to, const char *s) { while (*s) *to++ = *s++; return to; }

static char *put_text(char *to, unsigned int n, uint64_t r)
{
    while (n--) {
        to = put(to, words[(r >> 33) % 26]);
        if ((r >> 20 & 3) == 0) *to++ = (char)('a' + (r >> 50) % 26), *to++ = (char)('a' + (r >> 44) % 26), *to++ = (char)('a' + (r >> 40) % 3);
        *to++ = n % 9 ? ' ' : '\n';
        r = r * 6364136223846793005ull + 1442695040888963407ull;
    }
    return to;
}

static char *put_part(char *to, int depth, uint64_t r)
{
    char text[2048];
    if (depth > 0 && depth < 3 && r % 3 == 0) {
        to += sprintf(to, "Content-Type: multipart/mixed; boundary=\"b%d%x\"\n\n", depth, (unsigned)r & 0xfff);
        for (int i = 0; i < 2 + (int)(r >> 8 & 1); i++) {
            to += sprintf(to, "\n--b%d%x\n", depth, (unsigned)r & 0xfff);
            to = put_part(to, depth + 1, r * 2862933555777941757ull + 3037000493u);
        }
        return to + sprintf(to, "\n--b%d%x--\n", depth, (unsigned)r & 0xfff);
    }
    unsigned int n = (unsigned)(put_text(text, 20 + (unsigned)(r >> 12 & 63), r) - text), i;
    switch (r >> 20 & 3) {
    case 0:
        to = put(to, "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n\tfilename=x.txt\n\n");
        for (i = 0; i < n; i += 3) {
            unsigned int v = (unsigned char)text[i] << 16 | (i + 1 < n ? (unsigned char)text[i + 1] << 8 : 0) | (i + 2 < n ? (unsigned char)text[i + 2] : 0);
            for (int k = 18; k >= 0; k -= 6) *to++ = basis_64[v >> k & 63];
            if (i % 57 == 54) *to++ = '\n';
        }
        return to;
    case 1:
        to = put(to, "Content-Type: text/html; charset=latin1; format=flowed\nContent-Transfer-Encoding: quoted-printable\n\n");
        for (i = 0; i < n; i++) {
            if (text[i] == 'e') to = put(to, "=65");
            else *to++ = text[i];
            if (i % 70 == 69) to = put(to, "=\n");
        }
        return to;
    default:
        to = put(to, "Content-Type: text/plain\n\n");
        return put_text(to, 30 + (unsigned)(r >> 12 & 31), r);
    }
}

static NOINLINE apr_size_t compose(unsigned int serial)
{
    uint64_t r = tr_rand();
    char *to = raw_mail;
    to += sprintf(to, "Received: from mx%d.example.org\n\tby mail.example.net; %u\nFrom: User %d <user%d@host%d.example.com>\nTo: list@example.net\n", (int)(r & 7), serial, (int)(r >> 8) & 127, (int)(r >> 8) & 127, (int)(r >> 8) & 15);
    to += sprintf(to, "Message-ID: <%u.%x@example.com>\nDate: %ld\nX-Mailer: none\n", serial, serial * 2654435761u, 1600000000L + (long)serial * 60 + (long)(r >> 30 & 4095));
    to += sprintf(to, "Subject: %s%s %s\n", r >> 16 & 1 ? "Re: " : "", words[(r >> 17) % 26], words[(r >> 24) % 26]);
    if (serial > 2 && (r >> 16 & 1)) {
        to = put(to, "References:");
        for (unsigned int k = 1 + (unsigned)(r >> 40 & 3), id = serial; k; k--) {
            id -= 1 + (unsigned)(r >> (8 * k) & 31);
            if (id == 0 || id > serial) break;
            to += sprintf(to, " <%u.%x@example.com>\n", id, id * 2654435761u);
        }
        if (to[-1] == ':') *to++ = '\n';
    }
    to = put_part(to, 1, r >> 5);
    *to = '\0';
    return (apr_size_t)(to - raw_mail);
}

int main(int argc, char **argv)
{
    unsigned long sum = 0, delivered = 0;
    unsigned int serial = 0;

    tr_init(argc, argv);
    TR_GLOBAL(apr_kinds, "apr_kind_t []");
    TR_GLOBAL(decoders, "mime_decoder_t []");
    TR_GLOBAL(pr2six, "unsigned char []");
    TR_GLOBAL(log_table, "float []");
    TR_GLOBAL(store, "store_t");
    TR_GLOBAL(tokens, "apr_hash_t *");
    TR_GLOBAL(filter_pool, "apr_pool_t *");
    TR_GLOBAL(training, "unsigned int");
    TR_GLOBAL(raw_mail, "char *");
    TR_CHECK(mime_part_t, body_len);
    TR_CHECK(apr_table_t, index_last);
    TR_CHECK(mail_t, thread);
    memset(pr2six, 64, sizeof pr2six);
    for (int i = 0; i < 64; i++) pr2six[(unsigned char)basis_64[i]] = (unsigned char)i;
    for (int i = 1; i < 1024; i++) {
        float x = (float)i, y = 0; /* a logarithm of two, nearly */
        for (; x >= 2; x /= 2) y++;
        log_table[i] = y + (x - 1);
    }
    global_pool = apr_pool_create(NULL, "global");
    filter_pool = apr_pool_create(global_pool, "filter");
    store.pool = apr_pool_create(global_pool, "store");
    store.scratch = apr_pool_create(store.pool, "scratch");
    tokens = apr_hash_make(filter_pool);
    raw_mail = HEAP_CALLOC(char, 65536);
    open_store();
    for (unsigned long turn = 0; tr_more(); turn++) {
        for (int i = 0; i < 8; i++, delivered++) {
            training = (uint32_t)(tr_rand() >> 35) & 1;
            sum += deliver(raw_mail, compose(serial++))->score;
        }
        for (int i = 0; i < 5; i++) {
            uint64_t r = tr_rand();
            char one[24], two[24];
            for (int k = 0; k < 23; k++) {
                one[k] = apr_tolower(words[(r >> 20) % 26][k]);
                if (!one[k]) break;
            }
            for (int k = 0; k < 23; k++) {
                two[k] = apr_tolower(words[(r >> 40) % 26][k]);
                if (!two[k]) break;
            }
            sum += search_both(one, two);
        }
        if (turn % 4 == 0) sum += sort_mails(turn % 8 ? by_date : by_subject) + busiest_sender();
        if (turn % 4 == 2)
            for (int i = 0; i < store.mails->nelts; i++) {
                container_t *c = APR_ARRAY_IDX(store.mails, i, mail_t *)->thread;
                if (!c->parent) sum += walk_thread(c->child, 0);
            }
        if (store.mails->nelts > 1600) {
            open_store();
            serial = 0;
        }
    }
    if (getenv("SHOW"))
        fprintf(stderr, "delivered %lu spam %u tokens %u terms %u containers %u base64 %lu qp %lu clears %lu char nodes %u\n", delivered, store.spam, tokens->count, store.terms->count, store.containers->count, decoders[1].uses, decoders[2].uses, store.pool->clears, apr_kinds[0].nodes);
    tr_sink = sum;
    return 0;
}
