/*
 * A small language: tagged values, objects of one type to a heap page with mark bits and free lists,
 * shapes for instance variables, hash tables of entries and bins, symbols, a reader of lists, a compiler to
 * threaded code with inline caches, frames on a VM stack, blocks whose environments move to the heap.
 *
 * In the manner of Ruby (and of Guile and Emacs where it reads lists).
 */
#include "../heap.h"
#include <stdbool.h>

typedef unsigned long VALUE;
typedef unsigned long ID;
typedef unsigned long st_data_t, st_index_t, st_hash_t;
typedef uint32_t shape_id_t;

enum ruby_special_consts { Qfalse = 0x00, Qnil = 0x04, Qtrue = 0x14, Qundef = 0x24, FIXNUM_FLAG = 0x01, IMMEDIATE_MASK = 0x07, SYMBOL_FLAG = 0x0c, SPECIAL_SHIFT = 8 };
enum ruby_value_type { T_NONE, T_OBJECT, T_CLASS, T_FLOAT, T_STRING, T_ARRAY, T_HASH, T_CONS, T_PROC, T_ENV, T_MAX, T_MASK = 0x1f };
#define FL_EMBED (1UL << 13)
#define SHAPE_SHIFT 32
#define RTEST(v) (((VALUE)(v) & ~(VALUE)Qnil) != 0)
#define NIL_P(v) ((VALUE)(v) == Qnil)
#define FIXNUM_P(f) ((VALUE)(f) & FIXNUM_FLAG)
#define SPECIAL_CONST_P(x) (((VALUE)(x) & IMMEDIATE_MASK) || !RTEST(x))
#define STATIC_SYM_P(x) (((VALUE)(x) & 0xff) == SYMBOL_FLAG)
#define INT2FIX(i) (((VALUE)(i)) << 1 | FIXNUM_FLAG)
#define FIX2LONG(x) ((long)(x) >> 1)
#define ID2SYM(id) (((VALUE)(id) << SPECIAL_SHIFT) | SYMBOL_FLAG)
#define SYM2ID(x) ((ID)(x) >> SPECIAL_SHIFT)

struct RBasic { VALUE flags; const VALUE klass; };
struct RObject { struct RBasic basic; union { struct { VALUE *ivptr; long capa; } heap; VALUE ary[3]; } as; };
struct RFloat { struct RBasic basic; double float_value; };
struct RString { struct RBasic basic; long len; union { struct { char *ptr; union { long capa; VALUE shared; } aux; } heap; struct { char ary[24]; } embed; } as; };
struct RArray { struct RBasic basic; union { struct { long len; union { long capa; VALUE shared; } aux; VALUE *ptr; } heap; VALUE ary[3]; } as; };
struct RHash { struct RBasic basic; struct st_table *ntbl; VALUE ifnone; };
struct RCons { struct RBasic basic; VALUE car, cdr; };
struct RProc { struct RBasic basic; const struct rb_iseq *iseq; VALUE self, env; VALUE *ep; };
struct REnv { struct RBasic basic; VALUE *env; unsigned int env_size; VALUE parent; };
struct RClass { struct RBasic basic; VALUE super; struct st_table *m_tbl; ID name; enum ruby_value_type alloc; unsigned int serial; };

#define R_CAST(st) (struct st *)
#define RBASIC(obj) (R_CAST(RBasic)(obj))
#define ROBJECT(obj) (R_CAST(RObject)(obj))
#define RSTRING(obj) (R_CAST(RString)(obj))
#define RARRAY(obj) (R_CAST(RArray)(obj))
#define RHASH(obj) (R_CAST(RHash)(obj))
#define RCLASS(obj) (R_CAST(RClass)(obj))
#define RCONS(obj) (R_CAST(RCons)(obj))
#define RPROC(obj) (R_CAST(RProc)(obj))
#define BUILTIN_TYPE(x) (enum ruby_value_type)(RBASIC(x)->flags & T_MASK)
#define CAR(c) (RCONS(c)->car)
#define CDR(c) (RCONS(c)->cdr)
#define RFLOAT_VALUE(v) ((R_CAST(RFloat)(v))->float_value)
#define RCLASS_OF(obj) (RBASIC(obj)->klass)
static inline bool RB_TYPE_P(VALUE v, enum ruby_value_type t) { return !SPECIAL_CONST_P(v) && BUILTIN_TYPE(v) == t; }
static inline char *RSTRING_PTR(VALUE s) { return RBASIC(s)->flags & FL_EMBED ? RSTRING(s)->as.embed.ary : RSTRING(s)->as.heap.ptr; }
static inline long RSTRING_LEN(VALUE s) { return RSTRING(s)->len; }
static inline long RARRAY_LEN(VALUE a) { VALUE f = RBASIC(a)->flags; return f & FL_EMBED ? (long)(f >> 20 & 3) : RARRAY(a)->as.heap.len; }
static inline VALUE *RARRAY_PTR(VALUE a) { return RBASIC(a)->flags & FL_EMBED ? RARRAY(a)->as.ary : RARRAY(a)->as.heap.ptr; }

/* ---- st.c ---- */

struct st_hash_type { int (*compare)(st_data_t, st_data_t); st_index_t (*hash)(st_data_t); };
typedef struct st_table_entry { st_hash_t hash; st_data_t key, record; } st_table_entry;
typedef struct st_table {
    unsigned char entry_power, bin_power;
    unsigned int rebuilds_num;
    const struct st_hash_type *type;
    st_index_t num_entries;
    uint32_t *bins;
    st_index_t entries_start, entries_bound;
    st_table_entry *entries;
} st_table;

static st_index_t st_numhash(st_data_t n) { n ^= n >> 33; n *= 0xff51afd7ed558ccdUL; return n ^ n >> 29; }
static int st_numcmp(st_data_t x, st_data_t y) { return x != y; }
static st_index_t str_hash(const char *p, long n) { st_index_t h = 0xcbf29ce484222325UL; for (; n-- > 0; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3UL; return h ^ h >> 32; }
static st_index_t st_strhash(st_data_t s) { return str_hash((const char *)s, (long)strlen((const char *)s)); }
static int st_strcmp(st_data_t x, st_data_t y) { return strcmp((const char *)x, (const char *)y); }
static st_index_t any_hash(st_data_t v) { return RB_TYPE_P(v, T_STRING) ? str_hash(RSTRING_PTR(v), RSTRING_LEN(v)) : st_numhash(v); }
static int any_cmp(st_data_t a, st_data_t b)
{
    if (a == b) return 0;
    if (!RB_TYPE_P(a, T_STRING) || !RB_TYPE_P(b, T_STRING) || RSTRING_LEN(a) != RSTRING_LEN(b)) return 1;
    const char *p = RSTRING_PTR(a), *q = RSTRING_PTR(b);
    for (long i = 0; i < RSTRING_LEN(a); i++) if (p[i] != q[i]) return 1;
    return 0;
}
static const struct st_hash_type type_numhash = { st_numcmp, st_numhash }, type_strhash = { st_strcmp, st_strhash }, objhash = { any_cmp, any_hash };

static st_table *st_init_table(const struct st_hash_type *type)
{
    st_table *tab = HEAP_MALLOC(st_table);
    *tab = (st_table){ .entry_power = 3, .bin_power = 4, .type = type };
    tab->bins = HEAP_CALLOC(uint32_t, 16);
    tab->entries = HEAP_CALLOC(st_table_entry, 8);
    return tab;
}

static void st_free_table(st_table *tab)
{
    HEAP_FREE(tab->bins);
    HEAP_FREE(tab->entries);
    HEAP_FREE(tab);
}

/* Open addressing with a second hash; a bin holds the entry's number and one. */
static NOINLINE st_index_t find_table_bin(const st_table *tab, st_hash_t hash, st_data_t key, st_index_t *bin)
{
    st_index_t mask = (1UL << tab->bin_power) - 1, ind = hash & mask, perturb = hash;
    for (;;) {
        uint32_t b = tab->bins[ind];
        if (!b) break;
        const st_table_entry *e = &tab->entries[b - 1];
        if (e->hash == hash && (e->key == key || tab->type->compare(key, e->key) == 0)) return b - 1;
        perturb >>= 11;
        ind = (ind * 5 + perturb + 1) & mask;
    }
    *bin = ind;
    return ~0UL;
}

static NOINLINE void rebuild_table(st_table *tab)
{
    st_table_entry *old = tab->entries;
    HEAP_FREE(tab->bins);
    tab->entry_power++;
    tab->bin_power++;
    tab->rebuilds_num++;
    tab->bins = HEAP_CALLOC(uint32_t, 1UL << tab->bin_power);
    tab->entries = HEAP_CALLOC(st_table_entry, 1UL << tab->entry_power);
    st_index_t mask = (1UL << tab->bin_power) - 1;
    for (st_index_t i = 0; i < tab->entries_bound; i++) {
        st_table_entry *e = &tab->entries[i];
        *e = old[i];
        st_index_t ind = e->hash & mask, perturb = e->hash;
        while (tab->bins[ind]) {
            perturb >>= 11;
            ind = (ind * 5 + perturb + 1) & mask;
        }
        tab->bins[ind] = (uint32_t)i + 1;
    }
    HEAP_FREE(old);
}

static int st_lookup(const st_table *tab, st_data_t key, st_data_t *value)
{
    st_index_t bin, i = find_table_bin(tab, tab->type->hash(key), key, &bin);
    if (i == ~0UL) return 0;
    *value = tab->entries[i].record;
    return 1;
}

static int st_insert(st_table *tab, st_data_t key, st_data_t value)
{
    st_hash_t hash = tab->type->hash(key);
    st_index_t bin, i = find_table_bin(tab, hash, key, &bin);
    if (i != ~0UL) {
        tab->entries[i].record = value;
        return 1;
    }
    if (tab->entries_bound == 1UL << tab->entry_power) {
        rebuild_table(tab);
        find_table_bin(tab, hash, key, &bin);
    }
    tab->entries[tab->entries_bound] = (st_table_entry){ hash, key, value };
    tab->bins[bin] = (uint32_t)++tab->entries_bound;
    tab->num_entries++;
    return 0;
}

typedef int st_foreach_callback_func(st_data_t key, st_data_t value, st_data_t arg);
static void st_foreach(st_table *tab, st_foreach_callback_func *func, st_data_t arg)
{
    for (st_index_t i = tab->entries_start; i < tab->entries_bound; i++) {
        st_table_entry *e = &tab->entries[i];
        if (func(e->key, e->record, arg)) break;
    }
}

/* ---- symbols ---- */

static struct symbols { st_table *str; const char **names; ID last_id, capa; } global_symbols;

static ID rb_intern2(const char *s, long n)
{
    static char name[64];
    st_data_t id;
    memcpy(name, s, (size_t)n);
    name[n] = 0;
    if (st_lookup(global_symbols.str, (st_data_t)name, &id)) return id;
    if (global_symbols.last_id + 1 >= global_symbols.capa) abort();
    char *copy = heap_take("char", 1, 32);
    if (n > 31) abort();
    memcpy(copy, name, (size_t)n + 1);
    id = ++global_symbols.last_id;
    global_symbols.names[id] = copy;
    st_insert(global_symbols.str, (st_data_t)copy, id);
    return id;
}
static ID rb_intern(const char *s) { return rb_intern2(s, (long)strlen(s)); }

/* ---- gc.c: pages of slots ---- */

#define HEAP_PAGE_ALIGN 16384UL
#define HEAP_PAGE_OFS 64
#define BITS_LIMBS 16
struct heap_page {
    short total_slots, free_slots;
    unsigned short slot_size;
    struct { unsigned int before_sweep : 1, has_remembered : 1, in_tomb : 1; } flags;
    struct rb_size_pool *size_pool;
    struct heap_page *next;
    uintptr_t start;
    struct RBasic *freelist;
    uint64_t mark_bits[BITS_LIMBS];
};
struct heap_page_header { struct heap_page *page; };
typedef struct rb_size_pool { const char *type; short slot_size; struct RBasic *freelist; struct heap_page *pages; size_t total_pages, total_allocated, total_freed; } rb_size_pool_t;
typedef struct mark_stack_chunk { VALUE data[255]; struct mark_stack_chunk *next; } mark_stack_chunk_t;

static struct rb_objspace { mark_stack_chunk_t *chunk, *cache; int mark_index; size_t allocated, limit, count, live, marked; } objspace = { .limit = 9000 };
#define SLOT(T) { "struct " #T, sizeof(struct T), NULL, NULL, 0, 0, 0 }
static rb_size_pool_t size_pools[T_MAX] = { [T_OBJECT] = SLOT(RObject), [T_CLASS] = SLOT(RClass), [T_FLOAT] = SLOT(RFloat), [T_STRING] = SLOT(RString), [T_ARRAY] = SLOT(RArray), [T_HASH] = SLOT(RHash), [T_CONS] = SLOT(RCons), [T_PROC] = SLOT(RProc), [T_ENV] = SLOT(REnv) };
static VALUE gc_guards[64];
static int gc_guard_n;

static inline void slot_set_next(struct RBasic *b, struct RBasic *next) { *(VALUE *)&b->klass = (VALUE)next; }
#define GET_HEAP_PAGE(x) (((struct heap_page_header *)((VALUE)(x) & ~(HEAP_PAGE_ALIGN - 1)))->page)

static NOINLINE void heap_page_allocate(rb_size_pool_t *pool)
{
    char *body = aligned_alloc(HEAP_PAGE_ALIGN, HEAP_PAGE_ALIGN);
    struct heap_page *page = HEAP_CALLOC(struct heap_page, 1);
    size_t n = (HEAP_PAGE_ALIGN - HEAP_PAGE_OFS) / (size_t)pool->slot_size;
    if (n > BITS_LIMBS * 64) n = BITS_LIMBS * 64;
    tr_region("struct heap_page_header", body, sizeof(struct heap_page_header), sizeof(struct heap_page_header));
    tr_region(pool->type, body + HEAP_PAGE_OFS, n * (size_t)pool->slot_size, (size_t)pool->slot_size);
    ((struct heap_page_header *)body)->page = page;
    page->start = (uintptr_t)body + HEAP_PAGE_OFS;
    page->slot_size = (unsigned short)pool->slot_size;
    page->total_slots = page->free_slots = (short)n;
    page->size_pool = pool;
    page->next = pool->pages;
    pool->pages = page;
    pool->total_pages++;
    for (size_t i = n; i-- > 0; ) {
        struct RBasic *b = (struct RBasic *)(page->start + i * page->slot_size);
        b->flags = T_NONE;
        slot_set_next(b, pool->freelist);
        pool->freelist = b;
    }
}

static NOINLINE VALUE newobj_of(VALUE klass, VALUE flags)
{
    rb_size_pool_t *pool = &size_pools[flags & T_MASK];
    struct RBasic *b = pool->freelist;
    if (!b) {
        heap_page_allocate(pool);
        b = pool->freelist;
    }
    pool->freelist = (struct RBasic *)b->klass;
    pool->total_allocated++;
    objspace.allocated++;
    b->flags = flags;
    *(VALUE *)&b->klass = klass;
    return (VALUE)b;
}

static void obj_free(VALUE obj)
{
    switch (BUILTIN_TYPE(obj)) {
    case T_OBJECT: if (!(RBASIC(obj)->flags & FL_EMBED)) HEAP_FREE(ROBJECT(obj)->as.heap.ivptr); break;
    case T_STRING: if (!(RBASIC(obj)->flags & FL_EMBED)) HEAP_FREE(RSTRING(obj)->as.heap.ptr); break;
    case T_ARRAY: if (!(RBASIC(obj)->flags & FL_EMBED)) HEAP_FREE(RARRAY(obj)->as.heap.ptr); break;
    case T_HASH: st_free_table(RHASH(obj)->ntbl); break;
    case T_ENV: HEAP_FREE((R_CAST(REnv)(obj))->env); break;
    default: break;
    }
}

static NOINLINE void gc_sweep_page(struct heap_page *page)
{
    rb_size_pool_t *pool = page->size_pool;
    uintptr_t p = page->start;
    page->free_slots = 0;
    for (int i = 0; i < page->total_slots; i++, p += page->slot_size) {
        struct RBasic *b = (struct RBasic *)p;
        if (page->mark_bits[i >> 6] >> (i & 63) & 1) {
            objspace.live++;
            continue;
        }
        if ((b->flags & T_MASK) != T_NONE) {
            obj_free((VALUE)p);
            b->flags = T_NONE;
            pool->total_freed++;
        }
        slot_set_next(b, pool->freelist);
        pool->freelist = b;
        page->free_slots++;
    }
    memset(page->mark_bits, 0, sizeof(page->mark_bits));
    page->flags.before_sweep = 0;
}

static NOINLINE void gc_mark(VALUE obj)
{
    if (SPECIAL_CONST_P(obj)) return;
    struct heap_page *page = GET_HEAP_PAGE(obj);
    unsigned n = (unsigned)((obj - page->start) / page->slot_size);
    uint64_t bit = 1UL << (n & 63);
    if (page->mark_bits[n >> 6] & bit) return;
    page->mark_bits[n >> 6] |= bit;
    page->flags.before_sweep = 1;
    objspace.marked++;
    mark_stack_chunk_t *c = objspace.chunk;
    if (!c || objspace.mark_index == 255) {
        c = objspace.cache;
        if (c) objspace.cache = c->next;
        else c = HEAP_MALLOC(mark_stack_chunk_t);
        c->next = objspace.chunk;
        objspace.chunk = c;
        objspace.mark_index = 0;
    }
    c->data[objspace.mark_index++] = obj;
}

static int mark_keyvalue(st_data_t key, st_data_t value, st_data_t arg) { (void)arg; gc_mark(key); gc_mark(value); return 0; }
static int mark_const(st_data_t key, st_data_t value, st_data_t arg) { (void)key; (void)arg; gc_mark(value); return 0; }
static void gc_mark_locations(const VALUE *p, const VALUE *end) { while (p < end) gc_mark(*p++); }

/* ---- shape.c ---- */

typedef struct rb_shape { st_table *edges; ID edge_name; uint32_t next_iv_index; uint16_t capacity; uint8_t type; shape_id_t parent_id; } rb_shape_t;
static struct rb_shape_tree { rb_shape_t *shape_list; shape_id_t next_shape_id; unsigned long transitions, ic_hits, ic_misses; } shape_tree;
#define SHAPE_ID(obj) ((shape_id_t)(RBASIC(obj)->flags >> SHAPE_SHIFT))
#define RSHAPE(id) (&shape_tree.shape_list[id])
struct iseq_inline_iv_cache_entry { shape_id_t source, dest; uint32_t index; ID iv_set_name; };

static bool rb_shape_get_iv_index(shape_id_t id, ID name, uint32_t *index)
{
    for (rb_shape_t *s = RSHAPE(id); s->edge_name; s = RSHAPE(s->parent_id)) {
        if (s->edge_name == name) {
            *index = s->next_iv_index - 1;
            return true;
        }
    }
    return false;
}

static shape_id_t rb_shape_get_next(shape_id_t id, ID name)
{
    rb_shape_t *s = RSHAPE(id);
    st_data_t next;
    if (!s->edges) s->edges = st_init_table(&type_numhash);
    if (st_lookup(s->edges, name, &next)) return (shape_id_t)next;
    if (shape_tree.next_shape_id == 256) abort();
    next = shape_tree.next_shape_id++;
    *RSHAPE(next) = (rb_shape_t){ NULL, name, s->next_iv_index + 1, 3, 1, id };
    st_insert(s->edges, name, next);
    return (shape_id_t)next;
}

static inline VALUE *ROBJECT_IVPTR(VALUE obj) { return RBASIC(obj)->flags & FL_EMBED ? ROBJECT(obj)->as.ary : ROBJECT(obj)->as.heap.ivptr; }

static NOINLINE void obj_ivar_set_at(VALUE obj, shape_id_t dest, uint32_t index, VALUE val)
{
    if ((RBASIC(obj)->flags & FL_EMBED) && index >= 3) {
        VALUE *ptr = HEAP_CALLOC(unsigned long, 8);
        for (int i = 0; i < 3; i++) ptr[i] = ROBJECT(obj)->as.ary[i];
        ROBJECT(obj)->as.heap.ivptr = ptr;
        ROBJECT(obj)->as.heap.capa = 8;
        RBASIC(obj)->flags &= ~FL_EMBED;
    }
    if (index >= 8) abort();
    ROBJECT_IVPTR(obj)[index] = val;
    RBASIC(obj)->flags = (RBASIC(obj)->flags & 0xffffffffUL) | (VALUE)dest << SHAPE_SHIFT;
}

static NOINLINE VALUE vm_getivar(VALUE obj, ID id, struct iseq_inline_iv_cache_entry *ic)
{
    shape_id_t shape = SHAPE_ID(obj);
    if (ic->source == shape) {
        shape_tree.ic_hits++;
        return ROBJECT_IVPTR(obj)[ic->index];
    }
    uint32_t index;
    shape_tree.ic_misses++;
    if (!rb_shape_get_iv_index(shape, id, &index)) return Qnil;
    ic->source = ic->dest = shape;
    ic->index = index;
    ic->iv_set_name = id;
    return ROBJECT_IVPTR(obj)[index];
}

static NOINLINE void vm_setivar(VALUE obj, ID id, VALUE val, struct iseq_inline_iv_cache_entry *ic)
{
    shape_id_t shape = SHAPE_ID(obj);
    if (ic->source == shape && ic->iv_set_name == id) {
        shape_tree.ic_hits++;
        if (ic->dest == shape) ROBJECT_IVPTR(obj)[ic->index] = val;
        else obj_ivar_set_at(obj, ic->dest, ic->index, val);
        return;
    }
    uint32_t index;
    shape_tree.ic_misses++;
    ic->source = ic->dest = shape;
    if (!rb_shape_get_iv_index(shape, id, &index)) {
        index = RSHAPE(shape)->next_iv_index;
        ic->dest = rb_shape_get_next(shape, id);
        shape_tree.transitions++;
    }
    ic->index = index;
    ic->iv_set_name = id;
    obj_ivar_set_at(obj, ic->dest, index, val);
}

/* ---- classes and methods ---- */

typedef VALUE (*rb_cfunc_t)(VALUE self, int argc, const VALUE *argv);
enum method_type { VM_METHOD_TYPE_ISEQ, VM_METHOD_TYPE_CFUNC, VM_METHOD_TYPE_IVAR };
typedef struct rb_method_entry {
    unsigned int type : 4, visi : 2, complemented : 1;
    ID called_id;
    VALUE owner;
    union { struct { const struct rb_iseq *iseqptr; } iseq; struct { rb_cfunc_t func; int argc; } cfunc; struct { ID id; struct iseq_inline_iv_cache_entry ic; } attr; } body;
    unsigned long calls;
} rb_method_entry_t;
struct rb_callinfo { ID mid; unsigned short argc, flag; };
struct rb_call_data { struct rb_callinfo ci; struct { VALUE klass; rb_method_entry_t *cme; unsigned int serial; } cc; };
static struct cache_entry { VALUE klass; ID mid; rb_method_entry_t *me; } global_method_cache[256];
static struct rb_vm_stat { unsigned long inline_hits, global_hits, searched, calls, blocks, envs; unsigned int class_serial; } ruby_vm;
static VALUE rb_cObject, rb_cInteger, rb_cFloat, rb_cString, rb_cArray, rb_cHash, rb_cSymbol, rb_cProc, rb_cNil, rb_cClass;
static st_table *rb_constants;

static inline VALUE CLASS_OF(VALUE obj)
{
    if (FIXNUM_P(obj)) return rb_cInteger;
    if (STATIC_SYM_P(obj)) return rb_cSymbol;
    if (SPECIAL_CONST_P(obj)) return rb_cNil;
    return RBASIC(obj)->klass;
}

static VALUE rb_define_class(const char *name, VALUE super, enum ruby_value_type alloc)
{
    VALUE c = newobj_of(rb_cClass, T_CLASS);
    RCLASS(c)->super = super;
    RCLASS(c)->m_tbl = st_init_table(&type_numhash);
    RCLASS(c)->name = rb_intern(name);
    RCLASS(c)->alloc = alloc;
    RCLASS(c)->serial = ++ruby_vm.class_serial;
    st_insert(rb_constants, RCLASS(c)->name, c);
    return c;
}

static rb_method_entry_t *rb_add_method(VALUE klass, ID mid, enum method_type type)
{
    rb_method_entry_t *me = HEAP_CALLOC(rb_method_entry_t, 1);
    me->type = type;
    me->called_id = mid;
    me->owner = klass;
    st_insert(RCLASS(klass)->m_tbl, mid, (st_data_t)me);
    memset(global_method_cache, 0, sizeof(global_method_cache));
    return me;
}
static void rb_define_method(VALUE klass, const char *name, rb_cfunc_t f, int argc)
{
    rb_method_entry_t *me = rb_add_method(klass, rb_intern(name), VM_METHOD_TYPE_CFUNC);
    me->body.cfunc.func = f;
    me->body.cfunc.argc = argc;
}

static NOINLINE rb_method_entry_t *rb_method_entry(VALUE klass, ID mid)
{
    struct cache_entry *ent = &global_method_cache[((klass >> 4) ^ mid) & 255];
    if (ent->klass == klass && ent->mid == mid) {
        ruby_vm.global_hits++;
        return ent->me;
    }
    for (VALUE k = klass; !NIL_P(k); k = RCLASS(k)->super) {
        st_data_t me;
        ruby_vm.searched++;
        if (st_lookup(RCLASS(k)->m_tbl, mid, &me)) {
            *ent = (struct cache_entry){ klass, mid, (rb_method_entry_t *)me };
            return ent->me;
        }
    }
    fprintf(stderr, "undefined method %s\n", global_symbols.names[mid]);
    abort();
}

static inline rb_method_entry_t *vm_search_method(struct rb_call_data *cd, VALUE recv)
{
    VALUE klass = CLASS_OF(recv);
    if (cd->cc.klass == klass) {
        ruby_vm.inline_hits++;
        return cd->cc.cme;
    }
    cd->cc.cme = rb_method_entry(klass, cd->ci.mid);
    cd->cc.klass = klass;
    cd->cc.serial++;
    return cd->cc.cme;
}

/* ---- strings, arrays, floats, conses ---- */

static VALUE rb_float_new(double d) { VALUE v = newobj_of(rb_cFloat, T_FLOAT); (R_CAST(RFloat)(v))->float_value = d; return v; }
static VALUE rb_cons(VALUE car, VALUE cdr) { VALUE c = newobj_of(rb_cNil, T_CONS); CAR(c) = car; CDR(c) = cdr; return c; }

static void rb_str_cat(VALUE str, const char *p, long n)
{
    struct RString *s = RSTRING(str);
    long need = s->len + n;
    if (RBASIC(str)->flags & FL_EMBED) {
        if (need > 24) {
            long capa = 64;
            while (capa < need) capa *= 2;
            char *ptr = heap_take("char", 1, (size_t)capa);
            for (long i = 0; i < s->len; i++) ptr[i] = s->as.embed.ary[i];
            s->as.heap.ptr = ptr;
            s->as.heap.aux.capa = capa;
            s->basic.flags &= ~FL_EMBED;
        }
    } else if (need > s->as.heap.aux.capa) {
        while (s->as.heap.aux.capa < need) s->as.heap.aux.capa *= 2;
        s->as.heap.ptr = heap_resize(s->as.heap.ptr, "char", 1, (size_t)s->as.heap.aux.capa);
    }
    char *d = RSTRING_PTR(str) + s->len;
    for (long i = 0; i < n; i++) d[i] = p[i];
    s->len = need;
}

static VALUE rb_str_new(const char *p, long n)
{
    VALUE v = newobj_of(rb_cString, T_STRING | FL_EMBED);
    RSTRING(v)->len = 0;
    rb_str_cat(v, p, n);
    return v;
}

static VALUE rb_ary_new(void) { VALUE a = newobj_of(rb_cArray, T_ARRAY | FL_EMBED); RARRAY(a)->as.ary[0] = Qnil; return a; }
static NOINLINE void rb_ary_push(VALUE ary, VALUE v)
{
    struct RArray *a = RARRAY(ary);
    long len = RARRAY_LEN(ary);
    if (a->basic.flags & FL_EMBED) {
        if (len < 3) {
            a->as.ary[len] = v;
            a->basic.flags += 1UL << 20;
            return;
        }
        VALUE *ptr = HEAP_CALLOC(unsigned long, 8);
        for (long i = 0; i < 3; i++) ptr[i] = a->as.ary[i];
        a->basic.flags &= ~(FL_EMBED | 3UL << 20);
        a->as.heap.len = 3;
        a->as.heap.aux.capa = 8;
        a->as.heap.ptr = ptr;
    } else if (len == a->as.heap.aux.capa) {
        a->as.heap.aux.capa *= 2;
        a->as.heap.ptr = HEAP_REALLOC(a->as.heap.ptr, VALUE, (size_t)a->as.heap.aux.capa);
    }
    a->as.heap.ptr[a->as.heap.len++] = v;
}
static VALUE rb_ary_entry(VALUE ary, long i)
{
    long n = RARRAY_LEN(ary);
    if (i < 0) i += n;
    return i < 0 || i >= n ? Qnil : RARRAY_PTR(ary)[i];
}

/* ---- the reader ---- */

struct lexer { const char *p, *end; int line, depth; };
static struct lexer lex;

static NOINLINE VALUE read_form(struct lexer *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' || *l->p == ';')) {
        if (*l->p == ';') while (l->p < l->end && *l->p != '\n') l->p++;
        else if (*l->p++ == '\n') l->line++;
    }
    if (l->p >= l->end) return Qundef;
    if (*l->p == ')') {
        l->p++;
        l->depth--;
        return Qundef;
    }
    if (*l->p == '(') {
        VALUE head = Qnil, tail = Qnil, v;
        l->p++;
        l->depth++;
        while ((v = read_form(l)) != Qundef) {
            VALUE c = rb_cons(v, Qnil);
            if (NIL_P(head)) head = c;
            else CDR(tail) = c;
            tail = c;
        }
        return head;
    }
    if (*l->p == '"') {
        const char *s = ++l->p;
        while (*l->p != '"') l->p++;
        return rb_str_new(s, l->p++ - s);
    }
    const char *s = l->p;
    while (l->p < l->end && *l->p != ' ' && *l->p != '\n' && *l->p != ')' && *l->p != '(') l->p++;
    long n = l->p - s, i = s[0] == '-' && n > 1, v = 0;
    if (s[i] >= '0' && s[i] <= '9') {
        for (; i < n && s[i] != '.'; i++) v = v * 10 + (s[i] - '0');
        if (s[0] == '-') v = -v;
        if (i == n) return INT2FIX(v);
        double d = (double)v, scale = 0.1;
        for (i++; i < n; i++, scale /= 10) d += (s[i] - '0') * scale;
        return rb_float_new(d);
    }
    return ID2SYM(rb_intern2(s, n));
}

/* ---- the compiler ---- */

#define INSNS(X) X(putnil, 0) X(putself, 0) X(putobject, 1) X(putstring, 1) X(getlocal, 2) X(setlocal, 2) X(getinstancevariable, 2) X(setinstancevariable, 2) X(getconstant, 2) X(pop, 0) X(dup, 0) X(newarray, 1) \
    X(branchunless, 1) X(jump, 1) X(opt_plus, 1) X(opt_minus, 1) X(opt_mult, 1) X(opt_div, 1) X(opt_mod, 1) X(opt_lt, 1) X(opt_le, 1) X(opt_eq, 1) X(opt_aref, 1) X(opt_aset, 1) X(send, 1) X(putproc, 1) X(leave, 0)
enum insn {
#define X(n, l) BIN_##n,
    INSNS(X)
#undef X
};
struct iseq_inline_constant_cache { VALUE value; unsigned int serial; unsigned long hits; };
typedef struct rb_iseq { VALUE *iseq_encoded; unsigned int iseq_size, local_size, param_size; ID local_table[12]; struct rb_iseq *parent; ID name; bool is_block; unsigned long executed; } rb_iseq_t;
struct compile_buf { VALUE code[600]; unsigned int size; };
static const void *const *insn_address_table;
static VALUE literals; /* what the code refers to */
static ID id_if, id_while, id_do, id_set, id_fn, id_list, id_dot, id_nil, id_true, id_false, id_self, id_call, id_initialize, id_class, id_def;
static struct { const char *name; enum insn insn; ID id; } opt_ops[] = { { "+", BIN_opt_plus, 0 }, { "-", BIN_opt_minus, 0 }, { "*", BIN_opt_mult, 0 }, { "/", BIN_opt_div, 0 }, { "%", BIN_opt_mod, 0 }, { "<", BIN_opt_lt, 0 }, { "<=", BIN_opt_le, 0 }, { "==", BIN_opt_eq, 0 }, { "[]", BIN_opt_aref, 0 }, { "[]=", BIN_opt_aset, 0 } };

static void emit(struct compile_buf *b, VALUE v) { if (b->size == 600) abort(); b->code[b->size++] = v; }
static void emit_insn(struct compile_buf *b, enum insn i) { emit(b, (VALUE)insn_address_table[i]); }
static struct rb_call_data *call_data(ID mid, int argc) { struct rb_call_data *cd = HEAP_CALLOC(struct rb_call_data, 1); cd->ci.mid = mid; cd->ci.argc = (unsigned short)argc; return cd; }

static int find_local(rb_iseq_t *iseq, ID id, int *level)
{
    *level = 0;
    for (rb_iseq_t *i = iseq; i; i = i->is_block ? i->parent : NULL, ++*level)
        for (unsigned int k = 0; k < i->local_size; k++) if (i->local_table[k] == id) return (int)k;
    return -1;
}

static rb_iseq_t *compile_iseq(rb_iseq_t *parent, ID name, VALUE params, VALUE body, bool is_block);
static void compile_body(struct compile_buf *b, rb_iseq_t *iseq, VALUE body);

static void compile(struct compile_buf *b, rb_iseq_t *iseq, VALUE node)
{
    int level, idx, argc = 0;
    if (STATIC_SYM_P(node)) {
        ID id = SYM2ID(node);
        const char *n = global_symbols.names[id];
        if (id == id_nil) emit_insn(b, BIN_putnil);
        else if (id == id_self) emit_insn(b, BIN_putself);
        else if (id == id_true || id == id_false) { emit_insn(b, BIN_putobject); emit(b, id == id_true ? Qtrue : Qfalse); }
        else if (n[0] == ':') { emit_insn(b, BIN_putobject); emit(b, ID2SYM(rb_intern(n + 1))); }
        else if (n[0] == '@') { emit_insn(b, BIN_getinstancevariable); emit(b, id); emit(b, (VALUE)HEAP_CALLOC(struct iseq_inline_iv_cache_entry, 1)); }
        else if (n[0] >= 'A' && n[0] <= 'Z') { emit_insn(b, BIN_getconstant); emit(b, id); emit(b, (VALUE)HEAP_CALLOC(struct iseq_inline_constant_cache, 1)); }
        else {
            if ((idx = find_local(iseq, id, &level)) < 0) { fprintf(stderr, "no local %s\n", n); abort(); }
            emit_insn(b, BIN_getlocal);
            emit(b, (VALUE)idx);
            emit(b, (VALUE)level);
        }
        return;
    }
    if (!RB_TYPE_P(node, T_CONS)) {
        if (!SPECIAL_CONST_P(node)) rb_ary_push(literals, node);
        emit_insn(b, RB_TYPE_P(node, T_STRING) ? BIN_putstring : BIN_putobject);
        emit(b, node);
        return;
    }
    ID head = SYM2ID(CAR(node));
    VALUE args = CDR(node);
    if (head == id_do) {
        compile_body(b, iseq, args);
    } else if (head == id_set) {
        ID id = SYM2ID(CAR(args));
        compile(b, iseq, CAR(CDR(args)));
        emit_insn(b, BIN_dup);
        if (global_symbols.names[id][0] == '@') {
            emit_insn(b, BIN_setinstancevariable);
            emit(b, id);
            emit(b, (VALUE)HEAP_CALLOC(struct iseq_inline_iv_cache_entry, 1));
        } else {
            if ((idx = find_local(iseq, id, &level)) < 0) {
                if (iseq->local_size == 12) abort();
                iseq->local_table[idx = (int)iseq->local_size++] = id;
                level = 0;
            }
            emit_insn(b, BIN_setlocal);
            emit(b, (VALUE)idx);
            emit(b, (VALUE)level);
        }
    } else if (head == id_if) {
        compile(b, iseq, CAR(args));
        emit_insn(b, BIN_branchunless);
        unsigned int to_else = b->size;
        emit(b, 0);
        compile(b, iseq, CAR(CDR(args)));
        emit_insn(b, BIN_jump);
        unsigned int to_end = b->size;
        emit(b, 0);
        b->code[to_else] = b->size - to_else - 1;
        if (NIL_P(CDR(CDR(args)))) emit_insn(b, BIN_putnil);
        else compile(b, iseq, CAR(CDR(CDR(args))));
        b->code[to_end] = b->size - to_end - 1;
    } else if (head == id_while) {
        unsigned int top = b->size;
        compile(b, iseq, CAR(args));
        emit_insn(b, BIN_branchunless);
        unsigned int out = b->size;
        emit(b, 0);
        compile_body(b, iseq, CDR(args));
        emit_insn(b, BIN_pop);
        emit_insn(b, BIN_jump);
        emit(b, (VALUE)((long)top - (long)b->size - 1));
        b->code[out] = b->size - out - 1;
        emit_insn(b, BIN_putnil);
    } else if (head == id_fn) {
        emit_insn(b, BIN_putproc);
        emit(b, (VALUE)compile_iseq(iseq, id_fn, CAR(args), CDR(args), true));
    } else if (head == id_list) {
        for (; !NIL_P(args); args = CDR(args), argc++) compile(b, iseq, CAR(args));
        emit_insn(b, BIN_newarray);
        emit(b, (VALUE)argc);
    } else {
        if (head != id_dot) {
            for (size_t i = 0; i < sizeof(opt_ops) / sizeof(opt_ops[0]); i++) {
                if (opt_ops[i].id != head) continue;
                for (argc = -1; !NIL_P(args); args = CDR(args), argc++) compile(b, iseq, CAR(args));
                emit_insn(b, opt_ops[i].insn);
                emit(b, (VALUE)call_data(head, argc));
                return;
            }
            emit_insn(b, BIN_putself);
        } else {
            compile(b, iseq, CAR(args));
            head = SYM2ID(CAR(CDR(args)));
            args = CDR(CDR(args));
        }
        for (; !NIL_P(args); args = CDR(args), argc++) compile(b, iseq, CAR(args));
        emit_insn(b, BIN_send);
        emit(b, (VALUE)call_data(head, argc));
    }
}

static void compile_body(struct compile_buf *b, rb_iseq_t *iseq, VALUE body)
{
    for (; !NIL_P(body); body = CDR(body)) {
        compile(b, iseq, CAR(body));
        if (!NIL_P(CDR(body))) emit_insn(b, BIN_pop);
    }
}

static rb_iseq_t *compile_iseq(rb_iseq_t *parent, ID name, VALUE params, VALUE body, bool is_block)
{
    rb_iseq_t *iseq = HEAP_CALLOC(rb_iseq_t, 1);
    struct compile_buf *b = HEAP_CALLOC(struct compile_buf, 1);
    iseq->parent = parent;
    iseq->name = name;
    iseq->is_block = is_block;
    for (; !NIL_P(params); params = CDR(params)) iseq->local_table[iseq->local_size++] = SYM2ID(CAR(params));
    iseq->param_size = iseq->local_size;
    compile_body(b, iseq, body);
    emit_insn(b, BIN_leave);
    iseq->iseq_size = b->size;
    iseq->iseq_encoded = HEAP_CALLOC(unsigned long, b->size);
    memcpy(iseq->iseq_encoded, b->code, b->size * sizeof(VALUE));
    HEAP_FREE(b);
    return iseq;
}

/* ---- the machine ---- */

typedef struct rb_control_frame { const VALUE *pc; VALUE *sp; const rb_iseq_t *iseq; VALUE self; VALUE *ep; VALUE proc; bool finish; } rb_control_frame_t;
static struct rb_execution_context { VALUE *vm_stack; size_t vm_stack_size; rb_control_frame_t *frames, *cfp; } ec;
#define VM_ENV_DATA_SIZE 2 /* ep[-2]: the environment's object, ep[-1]: the frame outside, with a bit set */
#define GC_GUARDED_PTR(p) ((VALUE)(p) | 1)
#define GC_GUARDED_PTR_REF(v) ((VALUE *)((v) & ~1UL))
static VALUE vm_exec(bool init);

static NOINLINE void gc_mark_children(VALUE obj)
{
    gc_mark(RBASIC(obj)->klass);
    switch (BUILTIN_TYPE(obj)) {
    case T_OBJECT: { const VALUE *p = ROBJECT_IVPTR(obj); gc_mark_locations(p, p + RSHAPE(SHAPE_ID(obj))->next_iv_index); break; }
    case T_ARRAY: gc_mark_locations(RARRAY_PTR(obj), RARRAY_PTR(obj) + RARRAY_LEN(obj)); break;
    case T_HASH: st_foreach(RHASH(obj)->ntbl, mark_keyvalue, 0); gc_mark(RHASH(obj)->ifnone); break;
    case T_CONS: gc_mark(CAR(obj)); gc_mark(CDR(obj)); break;
    case T_CLASS: gc_mark(RCLASS(obj)->super); break;
    case T_PROC: gc_mark(RPROC(obj)->self); gc_mark(RPROC(obj)->env); break;
    case T_ENV: { struct REnv *e = R_CAST(REnv)(obj); gc_mark_locations(e->env + VM_ENV_DATA_SIZE, e->env + e->env_size); gc_mark(e->parent); break; }
    default: break;
    }
}

static NOINLINE void gc_start(void)
{
    objspace.count++;
    objspace.live = objspace.marked = 0;
    st_foreach(rb_constants, mark_const, 0);
    gc_mark(literals);
    gc_mark_locations(gc_guards, gc_guards + gc_guard_n);
    gc_mark_locations(ec.vm_stack, ec.cfp->sp);
    for (rb_control_frame_t *cfp = ec.frames + 1; cfp <= ec.cfp; cfp++) {
        gc_mark(cfp->self);
        gc_mark(cfp->proc);
        gc_mark(cfp->ep[-2]);
    }
    while (objspace.chunk) {
        if (objspace.mark_index == 0) {
            mark_stack_chunk_t *c = objspace.chunk;
            objspace.chunk = c->next;
            objspace.mark_index = 255;
            c->next = objspace.cache;
            objspace.cache = c;
            continue;
        }
        gc_mark_children(objspace.chunk->data[--objspace.mark_index]);
    }
    for (int t = 1; t < T_MAX; t++) {
        size_pools[t].freelist = NULL;
        for (struct heap_page *p = size_pools[t].pages; p; p = p->next) gc_sweep_page(p);
    }
    if (objspace.live != objspace.marked) abort();
    objspace.allocated = 0;
}

static rb_control_frame_t *vm_push_frame(const rb_iseq_t *iseq, VALUE self, VALUE *args, VALUE *outer, VALUE proc)
{
    /* the arguments lie at args; room is made for what belongs before them */
    rb_control_frame_t *cfp = ++ec.cfp;
    for (unsigned int i = iseq->param_size; i-- > 0; ) args[i + VM_ENV_DATA_SIZE] = args[i];
    args[0] = Qnil;
    args[1] = GC_GUARDED_PTR(outer);
    VALUE *ep = args + VM_ENV_DATA_SIZE;
    for (unsigned int i = iseq->param_size; i < iseq->local_size; i++) ep[i] = Qnil;
    *cfp = (rb_control_frame_t){ iseq->iseq_encoded, ep + iseq->local_size, iseq, self, ep, proc, false };
    if (cfp - ec.frames > 900 || cfp->sp - ec.vm_stack > (long)ec.vm_stack_size - 300) abort();
    ((rb_iseq_t *)iseq)->executed++;
    return cfp;
}

static NOINLINE VALUE vm_make_env(rb_control_frame_t *cfp)
{
    if (!NIL_P(cfp->ep[-2])) return cfp->ep[-2];
    VALUE v = newobj_of(rb_cNil, T_ENV);
    struct REnv *env = R_CAST(REnv)(v);
    env->env_size = cfp->iseq->local_size + VM_ENV_DATA_SIZE;
    env->env = HEAP_CALLOC(unsigned long, env->env_size);
    for (unsigned int i = 0; i < env->env_size; i++) env->env[i] = cfp->ep[(long)i - VM_ENV_DATA_SIZE];
    env->env[0] = v;
    env->parent = NIL_P(cfp->proc) ? Qnil : RPROC(cfp->proc)->env;
    cfp->ep = env->env + VM_ENV_DATA_SIZE;
    ruby_vm.envs++;
    return v;
}

static NOINLINE VALUE rb_yield(VALUE proc, int argc, const VALUE *argv)
{
    struct RProc *p = RPROC(proc);
    VALUE *sp = ec.cfp->sp;
    for (unsigned int i = 0; i < p->iseq->param_size; i++) sp[i] = (int)i < argc ? argv[i] : Qnil;
    ruby_vm.blocks++;
    vm_push_frame(p->iseq, p->self, sp, p->ep, proc)->finish = true;
    return vm_exec(false);
}

static NOINLINE VALUE rb_funcall(VALUE recv, ID mid, int argc, const VALUE *argv)
{
    rb_method_entry_t *me = rb_method_entry(CLASS_OF(recv), mid);
    me->calls++;
    if (me->type == VM_METHOD_TYPE_CFUNC) return me->body.cfunc.func(recv, argc, argv);
    if (me->type == VM_METHOD_TYPE_IVAR) return vm_getivar(recv, me->body.attr.id, &me->body.attr.ic);
    VALUE *sp = ec.cfp->sp;
    for (int i = 0; i < argc; i++) sp[i] = argv[i];
    vm_push_frame(me->body.iseq.iseqptr, recv, sp, NULL, Qnil)->finish = true;
    return vm_exec(false);
}

static NOINLINE VALUE vm_opt_float(enum insn op, VALUE a, VALUE b)
{
    if (op == BIN_opt_eq) return a == b || (!SPECIAL_CONST_P(a) && any_cmp(a, b) == 0) ? Qtrue : Qfalse;
    double x = FIXNUM_P(a) ? (double)FIX2LONG(a) : RFLOAT_VALUE(a), y = FIXNUM_P(b) ? (double)FIX2LONG(b) : RFLOAT_VALUE(b);
    switch (op) {
    case BIN_opt_plus: return rb_float_new(x + y);
    case BIN_opt_minus: return rb_float_new(x - y);
    case BIN_opt_mult: return rb_float_new(x * y);
    case BIN_opt_div: return rb_float_new(x / y);
    case BIN_opt_lt: return x < y ? Qtrue : Qfalse;
    case BIN_opt_le: return x <= y ? Qtrue : Qfalse;
    default: abort();
    }
}

static NOINLINE VALUE vm_exec(bool init)
{
    static const void *const table[] = {
#define X(n, l) &&LABEL_##n,
        INSNS(X)
#undef X
    };
    if (init) {
        insn_address_table = table;
        TR_GLOBAL(table, "void *[]");
        return Qnil;
    }
    rb_control_frame_t *cfp = ec.cfp;
    const VALUE *pc = cfp->pc;
    VALUE *sp = cfp->sp;
#define NEXT goto *(const void *)*pc++
#define OPERAND() (*pc++)
#define PUSH(v) (*sp++ = (v))
#define RESTORE() (cfp = ec.cfp, pc = cfp->pc, sp = cfp->sp)
#define CHECK_INTS() do { if (objspace.allocated > objspace.limit) { cfp->sp = sp; gc_start(); } } while (0)
#define OPT_ARITH(op, fast) { VALUE a = sp[-2], b = sp[-1]; pc++; if (FIXNUM_P(a) && FIXNUM_P(b)) { sp--; sp[-1] = (fast); } else { sp[-2] = vm_opt_float(op, a, b); sp--; } NEXT; }
    NEXT;
LABEL_putnil: PUSH(Qnil); NEXT;
LABEL_putself: PUSH(cfp->self); NEXT;
LABEL_putobject: PUSH(OPERAND()); NEXT;
LABEL_putstring: { VALUE s = OPERAND(); PUSH(rb_str_new(RSTRING_PTR(s), RSTRING_LEN(s))); NEXT; }
LABEL_getlocal: {
    VALUE idx = OPERAND(), level = OPERAND(), *ep = cfp->ep;
    while (level--) ep = GC_GUARDED_PTR_REF(ep[-1]);
    PUSH(ep[idx]);
    NEXT;
}
LABEL_setlocal: {
    VALUE idx = OPERAND(), level = OPERAND(), *ep = cfp->ep;
    while (level--) ep = GC_GUARDED_PTR_REF(ep[-1]);
    ep[idx] = *--sp;
    NEXT;
}
LABEL_getinstancevariable: {
    ID id = OPERAND();
    PUSH(vm_getivar(cfp->self, id, (struct iseq_inline_iv_cache_entry *)OPERAND()));
    NEXT;
}
LABEL_setinstancevariable: {
    ID id = OPERAND();
    vm_setivar(cfp->self, id, *--sp, (struct iseq_inline_iv_cache_entry *)OPERAND());
    NEXT;
}
LABEL_getconstant: {
    ID id = OPERAND();
    struct iseq_inline_constant_cache *ic = (struct iseq_inline_constant_cache *)OPERAND();
    if (ic->serial != ruby_vm.class_serial) {
        if (!st_lookup(rb_constants, id, &ic->value)) abort();
        ic->serial = ruby_vm.class_serial;
    }
    ic->hits++;
    PUSH(ic->value);
    NEXT;
}
LABEL_pop: sp--; NEXT;
LABEL_dup: sp[0] = sp[-1]; sp++; NEXT;
LABEL_newarray: {
    long n = (long)OPERAND();
    VALUE a = rb_ary_new();
    for (long i = 0; i < n; i++) rb_ary_push(a, sp[i - n]);
    sp -= n;
    PUSH(a);
    NEXT;
}
LABEL_branchunless: {
    long to = (long)OPERAND();
    if (!RTEST(*--sp)) pc += to;
    NEXT;
}
LABEL_jump: {
    long to = (long)OPERAND();
    pc += to;
    if (to < 0) CHECK_INTS();
    NEXT;
}
LABEL_opt_plus: OPT_ARITH(BIN_opt_plus, a + b - 1)
LABEL_opt_minus: OPT_ARITH(BIN_opt_minus, a - b + 1)
LABEL_opt_mult: OPT_ARITH(BIN_opt_mult, INT2FIX(FIX2LONG(a) * FIX2LONG(b)))
LABEL_opt_div: OPT_ARITH(BIN_opt_div, INT2FIX(FIX2LONG(a) / FIX2LONG(b)))
LABEL_opt_mod: OPT_ARITH(BIN_opt_mod, INT2FIX(FIX2LONG(a) % FIX2LONG(b)))
LABEL_opt_lt: OPT_ARITH(BIN_opt_lt, (long)a < (long)b ? Qtrue : Qfalse)
LABEL_opt_le: OPT_ARITH(BIN_opt_le, (long)a <= (long)b ? Qtrue : Qfalse)
LABEL_opt_eq: OPT_ARITH(BIN_opt_eq, a == b ? Qtrue : Qfalse)
LABEL_opt_aref: {
    VALUE recv = sp[-2];
    if (RB_TYPE_P(recv, T_ARRAY)) {
        pc++;
        sp--;
        sp[-1] = rb_ary_entry(recv, FIX2LONG(sp[0]));
        NEXT;
    }
    goto LABEL_send;
}
LABEL_opt_aset: {
    VALUE recv = sp[-3];
    if (RB_TYPE_P(recv, T_ARRAY) && FIX2LONG(sp[-2]) < RARRAY_LEN(recv)) {
        pc++;
        RARRAY_PTR(recv)[FIX2LONG(sp[-2])] = sp[-1];
        sp[-3] = sp[-1];
        sp -= 2;
        NEXT;
    }
}   /* fall through */
LABEL_send: {
    struct rb_call_data *cd = (struct rb_call_data *)OPERAND();
    int argc = cd->ci.argc;
    CHECK_INTS();
    VALUE recv = sp[-argc - 1];
    rb_method_entry_t *me = vm_search_method(cd, recv);
    ruby_vm.calls++;
    me->calls++;
    cfp->pc = pc;
    switch (me->type) {
    case VM_METHOD_TYPE_ISEQ:
        if (me->body.iseq.iseqptr->param_size != (unsigned)argc) abort();
        cfp->sp = sp - argc - 1;
        sp[-argc - 1] = Qnil;
        vm_push_frame(me->body.iseq.iseqptr, recv, sp - argc, NULL, Qnil);
        RESTORE();
        NEXT;
    case VM_METHOD_TYPE_CFUNC: {
        cfp->sp = sp;
        VALUE v = me->body.cfunc.func(recv, argc, sp - argc);
        sp -= argc + 1;
        PUSH(v);
        NEXT;
    }
    default:
        sp[-1] = vm_getivar(recv, me->body.attr.id, &me->body.attr.ic);
        NEXT;
    }
}
LABEL_putproc: {
    VALUE p = newobj_of(rb_cProc, T_PROC);
    RPROC(p)->iseq = (const rb_iseq_t *)OPERAND();
    RPROC(p)->self = cfp->self;
    RPROC(p)->env = vm_make_env(cfp);
    RPROC(p)->ep = cfp->ep;
    PUSH(p);
    NEXT;
}
LABEL_leave: {
    VALUE v = sp[-1];
    bool finish = cfp->finish;
    ec.cfp--;
    if (finish) return v;
    RESTORE();
    PUSH(v);
    NEXT;
}
}

/* ---- the library ---- */

#define SELF_ARGS VALUE self, int argc, const VALUE *argv
static VALUE ary_push(SELF_ARGS) { (void)argc; rb_ary_push(self, argv[0]); return self; }
static VALUE ary_size(SELF_ARGS) { (void)argc; (void)argv; return INT2FIX(RARRAY_LEN(self)); }
static VALUE ary_each(SELF_ARGS) { (void)argc; for (long i = 0; i < RARRAY_LEN(self); i++) { VALUE v = RARRAY_PTR(self)[i]; rb_yield(argv[0], 1, &v); } return self; }
static VALUE ary_map(SELF_ARGS)
{
    (void)argc;
    VALUE r = gc_guards[gc_guard_n++] = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(self); i++) { VALUE v = RARRAY_PTR(self)[i]; rb_ary_push(r, rb_yield(argv[0], 1, &v)); }
    gc_guard_n--;
    return r;
}
static VALUE ary_inject(SELF_ARGS)
{
    VALUE acc[2] = { argv[0], Qnil };
    (void)argc;
    for (long i = 0; i < RARRAY_LEN(self); i++) { acc[1] = RARRAY_PTR(self)[i]; acc[0] = rb_yield(argv[1], 2, acc); }
    return acc[0];
}
static VALUE ary_sort_by(SELF_ARGS) /* in place, with a block of two */
{
    (void)argc;
    for (long gap = RARRAY_LEN(self) / 2; gap > 0; gap /= 2)
        for (long i = gap; i < RARRAY_LEN(self); i++)
            for (long j = i - gap; j >= 0; j -= gap) {
                VALUE *p = RARRAY_PTR(self), two[2] = { p[j + gap], p[j] };
                if (!RTEST(rb_yield(argv[0], 2, two))) break;
                p[j] = two[0];
                p[j + gap] = two[1];
            }
    return self;
}
static VALUE str_cat(SELF_ARGS) { (void)argc; rb_str_cat(self, RSTRING_PTR(argv[0]), RSTRING_LEN(argv[0])); return self; }
static VALUE str_size(SELF_ARGS) { (void)argc; (void)argv; return INT2FIX(RSTRING_LEN(self)); }
static VALUE str_sum(SELF_ARGS) { long s = 0; (void)argc; (void)argv; for (const char *p = RSTRING_PTR(self), *e = p + RSTRING_LEN(self); p < e; p++) s += *p; return INT2FIX(s); }
static VALUE str_split(SELF_ARGS)
{
    VALUE r = rb_ary_new();
    const char *p = RSTRING_PTR(self), *e = p + RSTRING_LEN(self), *s = p;
    (void)argc; (void)argv;
    for (; p <= e; p++) if (p == e || *p == ' ') { rb_ary_push(r, rb_str_new(s, p - s)); s = p + 1; }
    return r;
}
static VALUE str_reverse(SELF_ARGS)
{
    VALUE r = rb_str_new(RSTRING_PTR(self), RSTRING_LEN(self));
    (void)argc; (void)argv;
    for (char *p = RSTRING_PTR(r), *q = p + RSTRING_LEN(r) - 1; p < q; p++, q--) { char c = *p; *p = *q; *q = c; }
    return r;
}
static VALUE int_times(SELF_ARGS) { (void)argc; for (long i = 0; i < FIX2LONG(self); i++) { VALUE v = INT2FIX(i); rb_yield(argv[0], 1, &v); } return self; }
static VALUE int_to_s(SELF_ARGS) { char b[24]; long n = FIX2LONG(self), i = 24; (void)argc; (void)argv; do b[--i] = (char)('0' + n % 10); while (n /= 10); return rb_str_new(b + i, 24 - i); }
static VALUE flo_to_i(SELF_ARGS) { (void)argc; (void)argv; return INT2FIX((long)RFLOAT_VALUE(self)); }
static VALUE hash_aref(SELF_ARGS) { st_data_t v; (void)argc; return st_lookup(RHASH(self)->ntbl, argv[0], &v) ? v : RHASH(self)->ifnone; }
static VALUE hash_aset(SELF_ARGS) { (void)argc; st_insert(RHASH(self)->ntbl, argv[0], argv[1]); return argv[1]; }
static VALUE hash_size(SELF_ARGS) { (void)argc; (void)argv; return INT2FIX(RHASH(self)->ntbl->num_entries); }
static int hash_yield(st_data_t key, st_data_t value, st_data_t arg) { VALUE kv[2] = { key, value }; rb_yield(arg, 2, kv); return 0; }
static VALUE hash_each(SELF_ARGS) { (void)argc; st_foreach(RHASH(self)->ntbl, hash_yield, argv[0]); return self; }
static VALUE proc_call(SELF_ARGS) { return rb_yield(self, argc, argv); }
static VALUE sym_size(SELF_ARGS) { (void)argc; (void)argv; return INT2FIX(strlen(global_symbols.names[SYM2ID(self)])); }
static VALUE obj_is_nil(SELF_ARGS) { (void)argc; (void)argv; return NIL_P(self) ? Qtrue : Qfalse; }
static VALUE class_new(SELF_ARGS)
{
    VALUE obj;
    switch (RCLASS(self)->alloc) {
    case T_STRING: return rb_str_new("", 0);
    case T_ARRAY: return rb_ary_new();
    case T_HASH:
        obj = newobj_of(self, T_HASH);
        RHASH(obj)->ntbl = st_init_table(&objhash);
        RHASH(obj)->ifnone = argc ? argv[0] : Qnil;
        return obj;
    default:
        obj = newobj_of(self, T_OBJECT | FL_EMBED | 1UL << SHAPE_SHIFT);
        gc_guards[gc_guard_n++] = obj;
        rb_funcall(obj, id_initialize, argc, argv);
        gc_guard_n--;
        return obj;
    }
}

static const char source[] =
    "(def fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n"
    "(def safe (rows col row) (= i 0) (= ok true)\n"
    "  (while (< i col) (= r ([] rows i)) (= d (- col i))\n"
    "    (if (== r row) (= ok false) (if (== (- r row) d) (= ok false) (if (== (- row r) d) (= ok false))))\n"
    "    (= i (if ok (+ i 1) col))) ok)\n"
    "(def queens (rows col n) (if (== col n) 1 (do (= found 0) (= row 0)\n"
    "  (while (< row n) (if (safe rows col row) (do ([]= rows col row) (= found (+ found (queens rows (+ col 1) n))))) (= row (+ row 1))) found)))\n"
    "(def test-queens () (queens (list 0 0 0 0 0 0) 0 6))\n"
    "; words are counted\n"
    "(def test-words (n) (= h (. Hash new 0)) (= text (. String new)) (= i 0)\n"
    "  (while (< i n) (. text << \"word\") (. text << (. (% (* i 7) 61) to_s)) (. text << \" of \") (= i (+ i 1)))\n"
    "  (. (. text split) each (fn (w) ([]= h w (+ ([] h w) 1)) ([]= h (. w reverse) 1)))\n"
    "  (= total 0) (. h each (fn (k v) (= total (+ total (* v (. k size)))))) (+ total (. h size)))\n"
    "; shapes of several kinds\n"
    "(class Shape Object (def initialize (n) (= @name n)) (def area () 0) (def weight () (+ (. self area) (. @name size))))\n"
    "(class Square Shape (def initialize (s) (= @side s) (= @name :square)) (def area () (* @side @side)))\n"
    "(class Box Shape (def initialize (w h) (= @name :box) (= @w w) (= @h h) (= @depth 2) (= @tag nil)) (def area () (+ (* @w @h) @depth)) (def tag! (t) (= @tag t)))\n"
    "(class Ring Shape (def initialize (r) (= @outer r) (= @inner (/ r 2)) (= @name :ring)) (def area () (- (* 3 (* @outer @outer)) (* 3 (* @inner @inner)))))\n"
    "(def test-shapes (n) (= all (list)) (= i 1)\n"
    "  (while (<= i n) (. all push (if (== (% i 3) 0) (. Square new i) (if (== (% i 3) 1) (. Box new i 2) (. Ring new i)))) (= i (+ i 1)))\n"
    "  (= sum 0) (= k 0) (while (< k 6) (. all each (fn (s) (= sum (+ sum (. s weight))))) (= k (+ k 1))) sum)\n"
    "; a tree of nodes\n"
    "(class Node Object (attr key) (attr left) (attr right) (def initialize (k v) (= @key k) (= @value v) (= @left nil) (= @right nil))\n"
    "  (def insert (k v) (if (< k @key) (if (. @left nil?) (= @left (. Node new k v)) (. @left insert k v))\n"
    "    (if (== k @key) (= @value v) (if (. @right nil?) (= @right (. Node new k v)) (. @right insert k v)))))\n"
    "  (def walk (f) (if (. @left nil?) nil (. @left walk f)) (. f call @key @value) (if (. @right nil?) nil (. @right walk f)))\n"
    "  (def depth () (= l (if (. @left nil?) 0 (. @left depth))) (= r (if (. @right nil?) 0 (. @right depth))) (+ 1 (if (< l r) r l))))\n"
    "(def test-tree (n) (= root (. Node new 500 \"root\")) (= x 17) (= i 0)\n"
    "  (while (< i n) (= x (% (+ (* x 421) 1663) 1009)) (. root insert x (. x to_s)) (= i (+ i 1)))\n"
    "  (= last -1) (= count 0) (. root walk (fn (k v) (if (<= k last) (= count -100000)) (= last k) (= count (+ count (. v size)))))\n"
    "  (= node root) (while (== (. (. node left) nil?) false) (= node (. node left))) (+ (* 100 count) (+ (. root depth) (. node key))))\n"
    "; floats, blocks\n"
    "(class Body Object (attr x) (def initialize (x v m) (= @x x) (= @v v) (= @m m)) (def pull (o dt) (= d (- (. o x) @x)) (= @v (+ @v (* dt (/ d (+ 1.0 (* d d))))))) (def move (dt) (= @x (+ @x (* @v dt)))))\n"
    "(def test-bodies (n) (= bodies (. (list 1 2 3 5 8 13) map (fn (k) (. Body new (* k 1.5) 0.25 k)))) (= step 0)\n"
    "  (while (< step n) (. bodies each (fn (a) (. bodies each (fn (b) (. a pull b 0.01))))) (. bodies each (fn (a) (. a move 0.01))) (= step (+ step 1)))\n"
    "  (. (. bodies inject 0.0 (fn (s b) (+ s (* 1000 (. b x))))) to_i))\n"
    "(def counter (start) (fn (by) (= start (+ start by))))\n"
    "(def test-sort (n) (= a (list)) (= x 7) (. n times (fn (i) (= x (% (+ (* x 137) 29) 4093)) (. a push x))) (. a sort_by (fn (p q) (< p q)))\n"
    "  (= c (counter 0)) (= prev -1) (. a each (fn (v) (if (< v prev) (. c call -1000000)) (= prev v) (. c call (% v 10)))) (. c call (. \"closing the counter\" sum)))\n";

static void load_def(VALUE klass, VALUE form)
{
    ID name = SYM2ID(CAR(CDR(form)));
    if (SYM2ID(CAR(form)) != id_def) {
        char ivar[40];
        snprintf(ivar, sizeof(ivar), "@%s", global_symbols.names[name]);
        rb_add_method(klass, name, VM_METHOD_TYPE_IVAR)->body.attr.id = rb_intern(ivar);
        return;
    }
    rb_iseq_t *iseq = compile_iseq(NULL, name, CAR(CDR(CDR(form))), CDR(CDR(CDR(form))), false);
    rb_add_method(klass, name, VM_METHOD_TYPE_ISEQ)->body.iseq.iseqptr = iseq;
}

static void load_source(void)
{
    VALUE form;
    lex = (struct lexer){ source, source + sizeof(source) - 1, 1, 0 };
    while ((form = read_form(&lex)) != Qundef) {
        rb_ary_push(literals, form); /* kept, as a debugger would want it */
        if (SYM2ID(CAR(form)) != id_class) {
            load_def(rb_cObject, form);
            continue;
        }
        st_data_t super;
        if (!st_lookup(rb_constants, SYM2ID(CAR(CDR(CDR(form)))), &super)) abort();
        VALUE klass = rb_define_class(global_symbols.names[SYM2ID(CAR(CDR(form)))], super, T_OBJECT);
        for (VALUE d = CDR(CDR(CDR(form))); !NIL_P(d); d = CDR(d)) load_def(klass, CAR(d));
    }
}

/* What was read is walked: leaves, pairs, and a sum. */
struct census { long pairs, fixnums, symbols, strings, floats; unsigned long sum; };
static NOINLINE void count_form(VALUE v, struct census *c)
{
    for (; RB_TYPE_P(v, T_CONS); v = CDR(v)) {
        c->pairs++;
        count_form(CAR(v), c);
    }
    if (FIXNUM_P(v)) { c->fixnums++; c->sum += (unsigned long)FIX2LONG(v); }
    else if (STATIC_SYM_P(v)) { c->symbols++; c->sum += (unsigned char)global_symbols.names[SYM2ID(v)][0]; }
    else if (RB_TYPE_P(v, T_STRING)) { c->strings++; c->sum += str_hash(RSTRING_PTR(v), RSTRING_LEN(v)) & 255; }
    else if (RB_TYPE_P(v, T_FLOAT)) { c->floats++; c->sum += (unsigned long)(RFLOAT_VALUE(v) * 100); }
}

static struct census *test_reader(struct census *c)
{
    VALUE form;
    memset(c, 0, sizeof(*c));
    lex = (struct lexer){ source, source + sizeof(source) - 1, 1, 0 };
    while ((form = read_form(&lex)) != Qundef) count_form(form, c);
    if (lex.depth) abort();
    return c;
}

static struct test { const char *name; int argc; long arg, expected; ID id; unsigned long runs; } tests[] = {
    { "test-queens", 0, 0, 4, 0, 0 }, { "fib", 1, 15, 610, 0, 0 }, { "test-words", 1, 400, -1, 0, 0 }, { "test-shapes", 1, 300, -1, 0, 0 }, { "test-tree", 1, 300, -1, 0, 0 }, { "test-bodies", 1, 40, -1, 0, 0 }, { "test-sort", 1, 250, -1, 0, 0 },
};

int main(int argc, char **argv)
{
    tr_init(argc, argv);
    TR_GLOBAL(size_pools, "rb_size_pool_t []"); TR_GLOBAL(objspace, "struct rb_objspace"); TR_GLOBAL(global_symbols, "struct symbols"); TR_GLOBAL(shape_tree, "struct rb_shape_tree");
    TR_GLOBAL(global_method_cache, "struct cache_entry []"); TR_GLOBAL(ruby_vm, "struct rb_vm_stat"); TR_GLOBAL(ec, "struct rb_execution_context"); TR_GLOBAL(lex, "struct lexer"); TR_GLOBAL(source, "char []");
    TR_GLOBAL(tests, "struct test []"); TR_GLOBAL(gc_guards, "unsigned long []"); TR_GLOBAL(gc_guard_n, "int"); TR_GLOBAL(rb_constants, "st_table *"); TR_GLOBAL(objhash, "struct st_hash_type"); TR_GLOBAL(type_strhash, "struct st_hash_type");
    TR_GLOBAL(rb_cInteger, "unsigned long"); TR_GLOBAL(rb_cFloat, "unsigned long"); TR_GLOBAL(rb_cString, "unsigned long"); TR_GLOBAL(rb_cArray, "unsigned long"); TR_GLOBAL(rb_cNil, "unsigned long"); TR_GLOBAL(rb_cSymbol, "unsigned long"); TR_GLOBAL(rb_cProc, "unsigned long");
    TR_CHECK(struct RString, as); TR_CHECK(struct RProc, ep); TR_CHECK(st_table, entries); TR_CHECK(rb_control_frame_t, proc); TR_CHECK(rb_method_entry_t, calls); TR_CHECK(struct heap_page, mark_bits);
    global_symbols.str = st_init_table(&type_strhash);
    global_symbols.capa = 1024;
    global_symbols.names = heap_take_zeroed("char *", sizeof(char *), 1024 * sizeof(char *));
    shape_tree.shape_list = HEAP_CALLOC(rb_shape_t, 256);
    shape_tree.next_shape_id = 2; /* 1 is the root; no cache begins with it */
    rb_constants = st_init_table(&type_numhash);
    ec.vm_stack_size = 1 << 15;
    ec.vm_stack = HEAP_CALLOC(unsigned long, ec.vm_stack_size);
    ec.cfp = ec.frames = HEAP_CALLOC(rb_control_frame_t, 1024);
    ec.cfp->sp = ec.vm_stack;
    rb_cClass = rb_cNil = Qnil;
    rb_cObject = rb_define_class("Object", Qnil, T_OBJECT);
    rb_cClass = rb_define_class("Class", rb_cObject, T_CLASS);
    rb_cNil = rb_define_class("NilClass", rb_cObject, T_NONE);
    rb_cInteger = rb_define_class("Integer", rb_cObject, T_NONE);
    rb_cFloat = rb_define_class("Float", rb_cObject, T_FLOAT);
    rb_cString = rb_define_class("String", rb_cObject, T_STRING);
    rb_cArray = rb_define_class("Array", rb_cObject, T_ARRAY);
    rb_cHash = rb_define_class("Hash", rb_cObject, T_HASH);
    rb_cSymbol = rb_define_class("Symbol", rb_cObject, T_NONE);
    rb_cProc = rb_define_class("Proc", rb_cObject, T_PROC);
    *(VALUE *)&RBASIC(rb_cObject)->klass = *(VALUE *)&RBASIC(rb_cClass)->klass = rb_cClass;
    id_if = rb_intern("if"); id_while = rb_intern("while"); id_do = rb_intern("do"); id_set = rb_intern("="); id_fn = rb_intern("fn"); id_list = rb_intern("list"); id_dot = rb_intern("."); id_nil = rb_intern("nil");
    id_true = rb_intern("true"); id_false = rb_intern("false"); id_self = rb_intern("self"); id_call = rb_intern("call"); id_initialize = rb_intern("initialize"); id_class = rb_intern("class"); id_def = rb_intern("def");
    for (size_t i = 0; i < sizeof(opt_ops) / sizeof(opt_ops[0]); i++) opt_ops[i].id = rb_intern(opt_ops[i].name);
    rb_define_method(rb_cArray, "push", ary_push, 1); rb_define_method(rb_cArray, "size", ary_size, 0); rb_define_method(rb_cArray, "each", ary_each, 1); rb_define_method(rb_cArray, "map", ary_map, 1);
    rb_define_method(rb_cArray, "inject", ary_inject, 2); rb_define_method(rb_cArray, "sort_by", ary_sort_by, 1);
    rb_define_method(rb_cString, "<<", str_cat, 1); rb_define_method(rb_cString, "size", str_size, 0); rb_define_method(rb_cString, "sum", str_sum, 0); rb_define_method(rb_cString, "split", str_split, 0); rb_define_method(rb_cString, "reverse", str_reverse, 0);
    rb_define_method(rb_cInteger, "times", int_times, 1); rb_define_method(rb_cInteger, "to_s", int_to_s, 0); rb_define_method(rb_cFloat, "to_i", flo_to_i, 0);
    rb_define_method(rb_cHash, "[]", hash_aref, 1); rb_define_method(rb_cHash, "[]=", hash_aset, 2); rb_define_method(rb_cHash, "size", hash_size, 0); rb_define_method(rb_cHash, "each", hash_each, 1);
    rb_define_method(rb_cProc, "call", proc_call, -1); rb_define_method(rb_cSymbol, "size", sym_size, 0); rb_define_method(rb_cObject, "nil?", obj_is_nil, 0); rb_define_method(rb_cClass, "new", class_new, -1);
    literals = rb_ary_new();
    vm_exec(true);
    load_source();
    VALUE top = newobj_of(rb_cObject, T_OBJECT | FL_EMBED | 1UL << SHAPE_SHIFT);
    gc_guards[gc_guard_n++] = top;
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) tests[i].id = rb_intern(tests[i].name);
    struct census *census = HEAP_CALLOC(struct census, 2);
    test_reader(&census[0]);
    unsigned long sum = 0;
    while (tr_more()) {
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
            struct test *t = &tests[i];
            VALUE arg = INT2FIX(t->arg);
            long r = FIX2LONG(rb_funcall(top, t->id, t->argc, &arg));
            if (t->expected == -1) t->expected = r;
            if (r != t->expected || r < 0 || gc_guard_n != 1) abort();
            t->runs++;
            sum += (unsigned long)r;
        }
        for (int k = 0; k < 6; k++) if (memcmp(test_reader(&census[1]), &census[0], sizeof(*census))) abort();
    }
    if (getenv("SHOW")) {
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) fprintf(stderr, "%s %ld  ", tests[i].name, tests[i].expected);
        fprintf(stderr, "\nrounds %lu gcs %lu live %lu calls %lu inline %lu global %lu searched %lu blocks %lu envs %lu shapes %u ic %lu/%lu pairs %ld\n", tests[0].runs, objspace.count, objspace.live, ruby_vm.calls, ruby_vm.inline_hits,
                ruby_vm.global_hits, ruby_vm.searched, ruby_vm.blocks, ruby_vm.envs, shape_tree.next_shape_id, shape_tree.ic_hits, shape_tree.ic_misses, census->pairs);
    }
    tr_sink = sum;
    return 0;
}
