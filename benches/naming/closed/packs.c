/*
 * A store of objects: names by SHA-1, a pack with an index and chains of deltas, a cache of
 * their bases, commits walked by date, trees compared, deltas searched in a window.
 */
#include "../heap.h"

#define HASH_RAWSZ 20
#define BLOCKING 128
#define NR_COMMITS 90
#define NR_DIRS 6
#define NR_FILES 14
#define DELTA_CACHE_SIZE 64
#define WINDOW 4
#define RABIN_WINDOW 16
#define PACK_SIZE (1 << 21)

#define ALLOC_GROW(x, T, nr, alloc) \
	do { \
		if ((nr) > alloc) { \
			alloc = (nr) > alloc_nr(alloc) ? (nr) : alloc_nr(alloc); \
			x = HEAP_REALLOC(x, T, alloc); \
		} \
	} while (0)
#define alloc_nr(x) (((x) + 16) * 3 / 2)
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define list_entry container_of

enum object_type { OBJ_NONE, OBJ_COMMIT, OBJ_TREE, OBJ_BLOB, OBJ_REF_DELTA = 7 };

enum { SEEN = 1u << 0, UNINTERESTING = 1u << 1, ADDED = 1u << 2 };

struct object_id {
	unsigned char hash[HASH_RAWSZ];
};

struct list_head {
	struct list_head *next, *prev;
};

struct object {
	unsigned parsed : 1;
	unsigned type : 3;
	unsigned flags : 28;
	struct object_id oid;
};

struct tree {
	struct object object;
	void *buffer;
	unsigned long size;
};

struct blob {
	struct object object;
};

struct commit_list {
	struct commit *item;
	struct commit_list *next;
};

struct commit {
	struct object object;
	unsigned int index;
	unsigned long date;
	struct commit_list *parents;
	struct tree *maybe_tree;
	unsigned int generation;
};

struct name_entry {
	struct object_id oid;
	const char *path;
	int pathlen;
	unsigned int mode;
};

struct tree_desc {
	const unsigned char *buffer;
	struct name_entry entry;
	unsigned int size;
};

struct strbuf {
	size_t alloc;
	size_t len;
	char *buf;
};

struct sha_ctx {
	unsigned long size;
	unsigned int H[5];
	unsigned char W[64];
};

struct pack_idx_entry {
	struct object_id oid;
	unsigned int crc32;
	unsigned long offset;
};

struct packed_git {
	unsigned char *data;
	unsigned long size;
	unsigned int fanout[256];
	struct pack_idx_entry *index;
	unsigned int nr, alloc;
	const char *pack_name;
};

struct delta_base_cache_entry {
	struct delta_base_cache_entry *next;	/* in its bucket */
	unsigned long base_offset;
	struct list_head lru;
	void *data;
	unsigned long size;
	enum object_type type;
};

struct index_entry {
	const unsigned char *ptr;
	unsigned int val;
	struct index_entry *next;
};

struct delta_index {
	unsigned long memsize;
	const void *src_buf;
	unsigned long src_size;
	unsigned int hash_mask;
	unsigned int nr_entries;
	struct index_entry *entries;
	struct index_entry *hash[];
};

struct object_entry {
	struct pack_idx_entry idx;
	unsigned long size;
	struct object_entry *delta;
	unsigned long delta_size;
	unsigned int hash;		/* of the name */
	unsigned type : 3, depth : 12, tried : 1;
};

struct unpacked {
	struct object_entry *entry;
	void *data;
	struct delta_index *index;
	unsigned int depth;
};

typedef int (*prio_queue_compare_fn)(const void *one, const void *two, void *cb_data);

struct prio_queue_entry {
	unsigned ctr;
	void *data;
};

struct prio_queue {
	prio_queue_compare_fn compare;
	unsigned insertion_ctr;
	void *cb_data;
	int alloc, nr;
	struct prio_queue_entry *array;
};

struct diff_filepair {
	struct object_id one, two;
	unsigned int mode;
	char status;
	char path[35];
};

struct diff_queue_struct {
	struct diff_filepair *queue;
	int alloc, nr;
};

struct alloc_state {
	int nr;
	void *p;
};

static struct packed_git *pack;
static struct object **obj_hash;
static int nr_objs, obj_hash_size;
static struct alloc_state blob_state, tree_state, commit_state;
static struct delta_base_cache_entry *delta_base_cache[DELTA_CACHE_SIZE];
static struct list_head delta_base_cache_lru = { &delta_base_cache_lru, &delta_base_cache_lru };
static unsigned long delta_base_cached;
static struct diff_queue_struct diff_queued;
static struct { unsigned long hashed, reads, hits, deltas, saved, pairs; } trace;
static struct object_id *tips;

static inline int oidcmp(const struct object_id *a, const struct object_id *b)
{
	int i;

	for (i = 0; i < HASH_RAWSZ; i++)
		if (a->hash[i] != b->hash[i])
			return a->hash[i] - b->hash[i];
	return 0;
}

static inline int oideq(const struct object_id *a, const struct object_id *b)
{
	return !oidcmp(a, b);
}

static inline void oidcpy(struct object_id *dst, const struct object_id *src)
{
	*dst = *src;
}

static inline unsigned int oidhash(const struct object_id *oid)
{
	return oid->hash[0] | oid->hash[1] << 8 | oid->hash[2] << 16 | (unsigned)oid->hash[3] << 24;
}

static void list_add(struct list_head *new, struct list_head *head)
{
	head->next->prev = new;
	new->next = head->next;
	new->prev = head;
	head->next = new;
}

static void list_del(struct list_head *elem)
{
	elem->next->prev = elem->prev;
	elem->prev->next = elem->next;
}

/* --- SHA-1 --- */

#define SHA_ROL(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define get_be32(p) ((unsigned)(p)[0] << 24 | (p)[1] << 16 | (p)[2] << 8 | (p)[3])

static NOINLINE void sha_block(struct sha_ctx *ctx, const unsigned char *data)
{
	unsigned int A = ctx->H[0], B = ctx->H[1], C = ctx->H[2], D = ctx->H[3], E = ctx->H[4];
	unsigned int array[80], t, f, k, TEMP;

	for (t = 0; t < 16; t++)
		array[t] = get_be32(data + 4 * t);
	for (; t < 80; t++) {
		TEMP = array[t - 3] ^ array[t - 8] ^ array[t - 14] ^ array[t - 16];
		array[t] = SHA_ROL(TEMP, 1);
	}
	for (t = 0; t < 80; t++) {
		if (t < 20)
			f = ((C ^ D) & B) ^ D, k = 0x5a827999;
		else if (t < 40)
			f = B ^ C ^ D, k = 0x6ed9eba1;
		else if (t < 60)
			f = (B & C) + (D & (B ^ C)), k = 0x8f1bbcdc;
		else
			f = B ^ C ^ D, k = 0xca62c1d6;
		TEMP = SHA_ROL(A, 5) + f + E + k + array[t];
		E = D; D = C; C = SHA_ROL(B, 30); B = A; A = TEMP;
	}
	ctx->H[0] += A; ctx->H[1] += B; ctx->H[2] += C; ctx->H[3] += D; ctx->H[4] += E;
}

static void sha_init(struct sha_ctx *ctx)
{
	static const unsigned int init[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	int i;

	ctx->size = 0;
	for (i = 0; i < 5; i++)
		ctx->H[i] = init[i];
}

static void sha_update(struct sha_ctx *ctx, const void *data, unsigned long len)
{
	const unsigned char *p = data;
	unsigned int have = ctx->size & 63;

	ctx->size += len;
	while (len) {
		if (!have && len >= 64) {
			sha_block(ctx, p);
			p += 64;
			len -= 64;
			continue;
		}
		ctx->W[have++] = *p++;
		len--;
		if (have == 64) {
			sha_block(ctx, ctx->W);
			have = 0;
		}
	}
}

static void sha_final(unsigned char *hash, struct sha_ctx *ctx)
{
	static const unsigned char pad[64] = { 0x80 };
	unsigned long bits = ctx->size << 3;
	unsigned char padlen[8];
	int i;

	for (i = 0; i < 8; i++)
		padlen[i] = bits >> (56 - 8 * i);
	sha_update(ctx, pad, 1 + (63 & (55 - ctx->size)));
	sha_update(ctx, padlen, 8);
	for (i = 0; i < HASH_RAWSZ; i++)
		hash[i] = ctx->H[i / 4] >> (24 - 8 * (i % 4));
}

static void hash_object(enum object_type type, const void *buf, unsigned long len, struct object_id *oid)
{
	static const char *const names[] = { "none", "commit", "tree", "blob" };
	struct sha_ctx ctx;

	sha_init(&ctx);
	sha_update(&ctx, names[type], strlen(names[type]) + 1);
	sha_update(&ctx, buf, len);
	sha_final(oid->hash, &ctx);
	trace.hashed++;
}

/* --- objects that are known --- */

static void *alloc_blob_node(void)
{
	if (!blob_state.nr) {
		blob_state.nr = BLOCKING;
		blob_state.p = HEAP_CALLOC(struct blob, BLOCKING);
	}
	blob_state.nr--;
	struct blob *b = blob_state.p;
	blob_state.p = b + 1;
	b->object.type = OBJ_BLOB;
	return b;
}

static void *alloc_tree_node(void)
{
	if (!tree_state.nr) {
		tree_state.nr = BLOCKING;
		tree_state.p = HEAP_CALLOC(struct tree, BLOCKING);
	}
	tree_state.nr--;
	struct tree *t = tree_state.p;
	tree_state.p = t + 1;
	t->object.type = OBJ_TREE;
	return t;
}

static void *alloc_commit_node(void)
{
	static unsigned int commit_count;

	if (!commit_state.nr) {
		commit_state.nr = BLOCKING;
		commit_state.p = HEAP_CALLOC(struct commit, BLOCKING);
	}
	commit_state.nr--;
	struct commit *c = commit_state.p;
	commit_state.p = c + 1;
	c->object.type = OBJ_COMMIT;
	c->index = commit_count++;
	return c;
}

static struct object *lookup_object(const struct object_id *oid)
{
	unsigned int i, first;
	struct object *obj;

	if (!obj_hash)
		return NULL;
	first = i = oidhash(oid) & (obj_hash_size - 1);
	while ((obj = obj_hash[i]) != NULL) {
		if (oideq(oid, &obj->oid))
			break;
		i++;
		if (i == (unsigned)obj_hash_size)
			i = 0;
	}
	if (obj && i != first) {
		/* Move what was found to where it is looked for first. */
		struct object *tmp = obj_hash[i];
		obj_hash[i] = obj_hash[first];
		obj_hash[first] = tmp;
	}
	return obj;
}

static void insert_obj_hash(struct object *obj, struct object **hash, unsigned int size)
{
	unsigned int j = oidhash(&obj->oid) & (size - 1);

	while (hash[j]) {
		j++;
		if (j >= size)
			j = 0;
	}
	hash[j] = obj;
}

static void grow_object_hash(void)
{
	int i, new_hash_size = obj_hash_size < 32 ? 32 : 2 * obj_hash_size;
	struct object **new_hash = HEAP_CALLOC(struct object *, new_hash_size);

	for (i = 0; i < obj_hash_size; i++)
		if (obj_hash[i])
			insert_obj_hash(obj_hash[i], new_hash, new_hash_size);
	HEAP_FREE(obj_hash);
	obj_hash = new_hash;
	obj_hash_size = new_hash_size;
}

static void *create_object(const struct object_id *oid, void *o)
{
	struct object *obj = o;

	oidcpy(&obj->oid, oid);
	if (obj_hash_size - 1 <= nr_objs * 2)
		grow_object_hash();
	insert_obj_hash(obj, obj_hash, obj_hash_size);
	nr_objs++;
	return obj;
}

static struct commit *lookup_commit(const struct object_id *oid)
{
	struct object *obj = lookup_object(oid);
	return (struct commit *)(obj ? obj : create_object(oid, alloc_commit_node()));
}

static struct tree *lookup_tree(const struct object_id *oid)
{
	struct object *obj = lookup_object(oid);
	return (struct tree *)(obj ? obj : create_object(oid, alloc_tree_node()));
}

static struct blob *lookup_blob(const struct object_id *oid)
{
	struct object *obj = lookup_object(oid);
	return (struct blob *)(obj ? obj : create_object(oid, alloc_blob_node()));
}

/* --- deltas --- */

static inline unsigned int rabin_like(const unsigned char *p)
{
	unsigned int i, val = 0;

	for (i = 0; i < RABIN_WINDOW; i++)
		val = val * 0x08104225 + p[i];
	return val;
}

static NOINLINE struct delta_index *create_delta_index(const void *buf, unsigned long bufsize)
{
	unsigned int i, entries = bufsize / RABIN_WINDOW, hsize = 64;
	const unsigned char *buffer = buf;
	struct delta_index *index;

	index = HEAP_FLEXIBLE(struct delta_index, sizeof(*index) + hsize * sizeof(struct index_entry *));
	index->memsize = sizeof(*index) + hsize * sizeof(struct index_entry *);
	index->src_buf = buf;
	index->src_size = bufsize;
	index->hash_mask = hsize - 1;
	index->nr_entries = entries;
	index->entries = HEAP_CALLOC(struct index_entry, 64);
	for (i = 0; i < hsize; i++)
		index->hash[i] = NULL;
	for (i = 0; i < entries && i < 64; i++) {
		struct index_entry *entry = &index->entries[i];
		entry->ptr = buffer + i * RABIN_WINDOW;
		entry->val = rabin_like(entry->ptr);
		entry->next = index->hash[entry->val & index->hash_mask];
		index->hash[entry->val & index->hash_mask] = entry;
	}
	return index;
}

static void free_delta_index(struct delta_index *index)
{
	if (!index)
		return;
	HEAP_FREE(index->entries);
	HEAP_FREE(index);
}

static unsigned char *put_size(unsigned char *out, unsigned long size)
{
	while (size >= 0x80) {
		*out++ = size | 0x80;
		size >>= 7;
	}
	*out++ = size;
	return out;
}

static unsigned long get_size(const unsigned char **p)
{
	unsigned long size = 0;
	int shift = 0;
	unsigned char c;

	do {
		c = *(*p)++;
		size |= (unsigned long)(c & 0x7f) << shift;
		shift += 7;
	} while (c & 0x80);
	return size;
}

/* Copies (0x80, offset, size) and inserts (size, bytes); 0 if it takes more than it is allowed. */
static NOINLINE unsigned long create_delta(const struct delta_index *index, const unsigned char *trg, unsigned long trg_size, unsigned char *out, unsigned long max_size)
{
	const unsigned char *ref = index->src_buf, *data = trg, *top = trg + trg_size;
	unsigned char *start = out, *inserted = NULL;

	out = put_size(put_size(out, index->src_size), trg_size);
	while (data < top) {
		const struct index_entry *entry = NULL;
		const unsigned char *found = NULL;
		unsigned long best = 0;

		if (out - start + 8ul > max_size)
			return 0;
		if (top - data >= RABIN_WINDOW) {
			unsigned int val = rabin_like(data);
			for (entry = index->hash[val & index->hash_mask]; entry; entry = entry->next) {
				unsigned long limit = ref + index->src_size - entry->ptr, n = 0;
				if (entry->val != val)
					continue;
				if (limit > (unsigned long)(top - data))
					limit = top - data;
				while (n < limit && entry->ptr[n] == data[n])
					n++;
				if (n > best) {
					best = n;
					found = entry->ptr;
				}
			}
		}
		if (best < RABIN_WINDOW) {
			if (!inserted || *inserted == 0x7f) {
				inserted = out++;
				*inserted = 0;
			}
			*out++ = *data++;
			++*inserted;
			continue;
		}
		*out++ = 0x80;
		out = put_size(out, found - ref);
		out = put_size(out, best);
		data += best;
		inserted = NULL;
	}
	return out - start;
}

static NOINLINE void *patch_delta(const unsigned char *src, const unsigned char *delta, unsigned long delta_size, unsigned long *dst_size)
{
	const unsigned char *top = delta + delta_size;
	unsigned char *dst, *out;
	unsigned long size;

	get_size(&delta);
	size = *dst_size = get_size(&delta);
	out = dst = HEAP_CALLOC(unsigned char, (size + 255) & ~255ul);
	while (delta < top) {
		unsigned char cmd = *delta++;
		if (cmd & 0x80) {
			const unsigned char *from = src + get_size(&delta);
			unsigned long n = get_size(&delta);
			while (n--)
				*out++ = *from++;
		} else
			while (cmd--)
				*out++ = *delta++;
	}
	return dst;
}

/* --- the pack --- */

static struct pack_idx_entry *find_pack_entry(const struct packed_git *p, const struct object_id *oid)
{
	unsigned int hi = p->fanout[oid->hash[0]], lo = oid->hash[0] ? p->fanout[oid->hash[0] - 1] : 0;

	while (lo < hi) {
		unsigned int mi = lo + (hi - lo) / 2;
		int cmp = oidcmp(&p->index[mi].oid, oid);
		if (!cmp)
			return &p->index[mi];
		if (cmp > 0)
			hi = mi;
		else
			lo = mi + 1;
	}
	return NULL;
}

static void pack_add(struct packed_git *p, const struct object_id *oid, enum object_type type, const struct object_id *base, const unsigned char *data, unsigned long len)
{
	unsigned char *out = p->data + p->size;
	unsigned int i;

	*out++ = base ? OBJ_REF_DELTA << 4 | type : type;
	out = put_size(out, len);
	for (i = 0; base && i < HASH_RAWSZ; i++)
		*out++ = base->hash[i];
	while (len--)
		*out++ = *data++;
	ALLOC_GROW(p->index, struct pack_idx_entry, p->nr + 1, p->alloc);
	for (i = p->nr++; i > 0 && oidcmp(&p->index[i - 1].oid, oid) > 0; i--)
		p->index[i] = p->index[i - 1];
	oidcpy(&p->index[i].oid, oid);
	p->index[i].offset = p->size;
	p->index[i].crc32 = oidhash(oid) * 31;
	for (i = oid->hash[0]; i < 256; i++)
		p->fanout[i]++;
	p->size = out - p->data;
}

static void release_delta_base_cache(struct delta_base_cache_entry *ent)
{
	struct delta_base_cache_entry **pp = &delta_base_cache[ent->base_offset % DELTA_CACHE_SIZE];

	while (*pp != ent)
		pp = &(*pp)->next;
	*pp = ent->next;
	list_del(&ent->lru);
	delta_base_cached -= ent->size;
	HEAP_FREE(ent->data);
	HEAP_FREE(ent);
}

static void add_delta_base_cache(unsigned long base_offset, void *base, unsigned long size, enum object_type type)
{
	struct delta_base_cache_entry *ent;

	delta_base_cached += size;
	while (delta_base_cached > 60000)
		release_delta_base_cache(list_entry(delta_base_cache_lru.prev, struct delta_base_cache_entry, lru));
	ent = HEAP_MALLOC(struct delta_base_cache_entry);
	ent->base_offset = base_offset;
	ent->data = base;
	ent->size = size;
	ent->type = type;
	ent->next = delta_base_cache[base_offset % DELTA_CACHE_SIZE];
	delta_base_cache[base_offset % DELTA_CACHE_SIZE] = ent;
	list_add(&ent->lru, &delta_base_cache_lru);
}

/* What is answered belongs to the cache until something else is read. */
static NOINLINE const void *unpack_entry(struct packed_git *p, const struct object_id *oid, enum object_type *type, unsigned long *size)
{
	struct pack_idx_entry *e = find_pack_entry(p, oid);
	struct delta_base_cache_entry *ent;
	const unsigned char *in;
	unsigned long len;
	void *data;

	trace.reads++;
	for (ent = delta_base_cache[e->offset % DELTA_CACHE_SIZE]; ent; ent = ent->next)
		if (ent->base_offset == e->offset) {
			trace.hits++;
			list_del(&ent->lru);
			list_add(&ent->lru, &delta_base_cache_lru);
			*type = ent->type;
			*size = ent->size;
			return ent->data;
		}
	in = p->data + e->offset;
	*type = *in & 7;
	if (*in++ >> 4 == OBJ_REF_DELTA) {
		struct object_id base;
		unsigned long base_size;
		len = get_size(&in);
		memcpy(base.hash, in, HASH_RAWSZ);
		data = (void *)unpack_entry(p, &base, type, &base_size);
		data = patch_delta(data, in + HASH_RAWSZ, len, size);
	} else {
		*size = len = get_size(&in);
		data = HEAP_CALLOC(unsigned char, (len + 255) & ~255ul);
		memcpy(data, in, len);
	}
	add_delta_base_cache(e->offset, data, *size, *type);
	return data;
}

/* --- commits and trees --- */

static int get_hex(const char *hex, struct object_id *oid)
{
	int i;

	for (i = 0; i < 2 * HASH_RAWSZ; i++) {
		int v = hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10;
		oid->hash[i / 2] = i & 1 ? oid->hash[i / 2] | v : v << 4;
	}
	return i + 1;
}

static void commit_list_insert(struct commit *item, struct commit_list **list)
{
	struct commit_list *new_list = HEAP_MALLOC(struct commit_list);

	new_list->item = item;
	new_list->next = *list;
	*list = new_list;
}

static NOINLINE void parse_commit(struct commit *item)
{
	struct commit_list **pptr = &item->parents;
	enum object_type type;
	unsigned long size;
	const char *bufptr;
	struct object_id oid;

	if (item->object.parsed)
		return;
	item->object.parsed = 1;
	bufptr = unpack_entry(pack, &item->object.oid, &type, &size);
	bufptr += 5 + get_hex(bufptr + 5, &oid);
	item->maybe_tree = lookup_tree(&oid);
	while (!memcmp(bufptr, "parent ", 7)) {
		bufptr += 7 + get_hex(bufptr + 7, &oid);
		commit_list_insert(lookup_commit(&oid), pptr);
		pptr = &(*pptr)->next;
	}
	for (item->date = 0, bufptr += 5; *bufptr >= '0' && *bufptr <= '9'; bufptr++)
		item->date = item->date * 10 + *bufptr - '0';
}

static void unparse_commit(struct object *obj)
{
	struct commit *c = container_of(obj, struct commit, object);

	while (c->parents) {
		struct commit_list *next = c->parents->next;
		HEAP_FREE(c->parents);
		c->parents = next;
	}
}

static void decode_tree_entry(struct tree_desc *desc)
{
	const unsigned char *p = desc->buffer;

	for (desc->entry.mode = 0; *p != ' '; p++)
		desc->entry.mode = desc->entry.mode * 8 + *p - '0';
	desc->entry.path = (const char *)++p;
	while (*p)
		p++;
	desc->entry.pathlen = (const char *)p++ - desc->entry.path;
	memcpy(desc->entry.oid.hash, p, HASH_RAWSZ);
	p += HASH_RAWSZ;
	desc->size -= p - desc->buffer;
	desc->buffer = p;
}

static void *load_tree(const struct object_id *oid, struct tree_desc *desc)
{
	struct tree *tree = lookup_tree(oid);
	enum object_type type;

	if (!tree->object.parsed) {
		const void *data = unpack_entry(pack, oid, &type, &tree->size);
		tree->buffer = HEAP_CALLOC(unsigned char, (tree->size + 255) & ~255ul);
		memcpy(tree->buffer, data, tree->size);
		tree->object.parsed = 1;
	}
	desc->buffer = tree->buffer;
	desc->size = tree->size;
	return tree->buffer;
}

static void queue_diff(char status, const struct object_id *one, const struct object_id *two, unsigned int mode, const char *base, const char *path)
{
	struct diff_filepair *p;

	ALLOC_GROW(diff_queued.queue, struct diff_filepair, diff_queued.nr + 1, diff_queued.alloc);
	p = &diff_queued.queue[diff_queued.nr++];
	p->status = status;
	p->mode = mode;
	oidcpy(&p->one, one);
	oidcpy(&p->two, two);
	int n = 0;
	while (*base && n < 16)
		p->path[n++] = *base++;
	while (*path && n < 34)
		p->path[n++] = *path++;
	p->path[n] = 0;
}

static NOINLINE void diff_tree(const struct object_id *one, const struct object_id *two, const char *base)
{
	struct tree_desc t1, t2;

	load_tree(one, &t1);
	load_tree(two, &t2);
	while (t1.size && t2.size) {
		decode_tree_entry(&t1);
		decode_tree_entry(&t2);
		if (oideq(&t1.entry.oid, &t2.entry.oid))
			continue;
		if (t1.entry.mode == 040000) {
			diff_tree(&t1.entry.oid, &t2.entry.oid, t1.entry.path);
			continue;
		}
		lookup_blob(&t2.entry.oid)->object.flags |= SEEN;
		queue_diff('M', &t1.entry.oid, &t2.entry.oid, t2.entry.mode, base, t2.entry.path);
	}
}

/* --- a queue by date --- */

static inline int compare(struct prio_queue *queue, int i, int j)
{
	int cmp = queue->compare(queue->array[i].data, queue->array[j].data, queue->cb_data);
	return cmp ? cmp : (int)(queue->array[i].ctr - queue->array[j].ctr);
}

static inline void swap(struct prio_queue *queue, int i, int j)
{
	struct prio_queue_entry tmp = queue->array[i];
	queue->array[i] = queue->array[j];
	queue->array[j] = tmp;
}

static void prio_queue_put(struct prio_queue *queue, void *thing)
{
	int ix, parent;

	ALLOC_GROW(queue->array, struct prio_queue_entry, queue->nr + 1, queue->alloc);
	queue->array[queue->nr].ctr = queue->insertion_ctr++;
	queue->array[queue->nr].data = thing;
	for (ix = queue->nr++; ix; ix = parent) {
		parent = (ix - 1) / 2;
		if (compare(queue, parent, ix) <= 0)
			break;
		swap(queue, parent, ix);
	}
}

static void *prio_queue_get(struct prio_queue *queue)
{
	void *result;
	int ix, child;

	if (!queue->nr)
		return NULL;
	result = queue->array[0].data;
	queue->array[0] = queue->array[--queue->nr];
	for (ix = 0; ix * 2 + 1 < queue->nr; ix = child) {
		child = ix * 2 + 1;
		if (child + 1 < queue->nr && compare(queue, child, child + 1) >= 0)
			child++;
		if (compare(queue, ix, child) <= 0)
			break;
		swap(queue, child, ix);
	}
	return result;
}

static int compare_commits_by_commit_date(const void *a_, const void *b_, void *unused)
{
	const struct commit *a = a_, *b = b_;

	(void)unused;
	return a->date < b->date ? 1 : a->date > b->date ? -1 : 0;
}

static NOINLINE unsigned long walk_revisions(struct prio_queue *queue, unsigned int limit)
{
	unsigned long sum = 0;
	struct commit *c;
	int i;

	for (i = 0; i < 3; i++) {
		c = lookup_commit(&tips[NR_COMMITS - 1 - i]);
		parse_commit(c);
		if (!(c->object.flags & SEEN))
			prio_queue_put(queue, c);
		c->object.flags |= SEEN;
	}
	while ((c = prio_queue_get(queue)) != NULL) {
		struct commit_list *p;
		for (p = c->parents; p; p = p->next) {
			parse_commit(p->item);
			if (p->item->object.flags & SEEN)
				continue;
			p->item->object.flags |= SEEN;
			p->item->generation = c->generation + 1;
			prio_queue_put(queue, p->item);
		}
		if (c->parents && limit) {
			limit--;
			diff_queued.nr = 0;
			diff_tree(&c->parents->item->maybe_tree->object.oid, &c->maybe_tree->object.oid, "");
			trace.pairs += diff_queued.nr;
			for (i = 0; i < diff_queued.nr; i++)
				sum += diff_queued.queue[i].path[0] + diff_queued.queue[i].mode;
		}
		sum += c->date;
	}
	return sum;
}

static void clear_object_flags(void)
{
	int i;

	for (i = 0; i < obj_hash_size; i++) {
		struct object *obj = obj_hash[i];
		if (!obj)
			continue;
		obj->flags = 0;
		if (obj->type == OBJ_COMMIT && obj->parsed && tr_rand() % 16 == 0) {
			unparse_commit(obj);
			obj->parsed = 0;
		}
		if (obj->type == OBJ_TREE && obj->parsed && tr_rand() % 16 == 0) {
			HEAP_FREE(((struct tree *)obj)->buffer);
			obj->parsed = 0;
		}
	}
}

/* --- deltas tried in a window --- */

static void try_delta(struct unpacked *trg, struct unpacked *src, unsigned char *out)
{
	struct object_entry *trg_entry = trg->entry, *src_entry = src->entry;
	unsigned long size, max_size = trg_entry->delta ? trg_entry->delta_size : trg_entry->size / 2;

	if (trg_entry->type != src_entry->type || src->depth >= 10 || max_size < 20)
		return;
	if (!src->index)
		src->index = create_delta_index(src->data, src_entry->size);
	size = create_delta(src->index, trg->data, trg_entry->size, out, max_size);
	trace.deltas++;
	if (!size)
		return;
	trace.saved += trg_entry->size - size;
	trg_entry->delta = src_entry;
	trg_entry->delta_size = size;
	trg_entry->depth = src_entry->depth + 1;
	trg->depth = src->depth + 1;
}

static NOINLINE void find_deltas(struct object_entry *list, unsigned list_size, struct unpacked *array, unsigned char *out)
{
	unsigned i, j, idx = 0;

	for (i = 0; i < list_size; i++) {
		struct unpacked *n = &array[idx];
		enum object_type type;
		const void *data = unpack_entry(pack, &list[i].idx.oid, &type, &list[i].size);

		free_delta_index(n->index);
		HEAP_FREE(n->data);
		memset(n, 0, sizeof(*n));
		n->entry = &list[i];
		n->entry->type = type;
		n->entry->delta = NULL;
		n->entry->depth = 0;
		n->data = HEAP_CALLOC(unsigned char, (list[i].size + 255) & ~255ul);
		memcpy(n->data, data, list[i].size);
		for (j = 1; j < WINDOW; j++) {
			struct unpacked *m = &array[(idx + WINDOW - j) % WINDOW];
			if (m->entry)
				try_delta(n, m, out);
		}
		n->entry->tried = 1;
		idx = (idx + 1) % WINDOW;
	}
}

/* --- making a history --- */

static void strbuf_add(struct strbuf *sb, const void *data, size_t len)
{
	const char *p = data;

	ALLOC_GROW(sb->buf, char, sb->len + len + 1, sb->alloc);
	while (len--)
		sb->buf[sb->len++] = *p++;
}

static void strbuf_addstr(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

static void strbuf_addhex(struct strbuf *sb, const struct object_id *oid)
{
	char hex[2 * HASH_RAWSZ + 1];
	int i;

	for (i = 0; i < HASH_RAWSZ; i++)
		sprintf(hex + 2 * i, "%02x", oid->hash[i]);
	strbuf_add(sb, hex, 2 * HASH_RAWSZ);
}

static int write_object(enum object_type type, struct strbuf *sb, struct object_id *oid, const struct object_id *old, unsigned char *out)
{
	unsigned long size, n;
	enum object_type old_type;

	hash_object(type, sb->buf, sb->len, oid);
	if (find_pack_entry(pack, oid))
		return 0;
	if (old && tr_rand() % 6) {
		const void *base = unpack_entry(pack, old, &old_type, &size);
		struct delta_index *index = create_delta_index(base, size);
		n = create_delta(index, (unsigned char *)sb->buf, sb->len, out, sb->len / 2);
		free_delta_index(index);
		if (n) {
			pack_add(pack, oid, type, old, out, n);
			return 1;
		}
	}
	pack_add(pack, oid, type, NULL, (unsigned char *)sb->buf, sb->len);
	return 1;
}

static void make_history(unsigned char *out)
{
	static struct object_id blobs[NR_DIRS][NR_FILES], dirs[NR_DIRS], root;
	static struct strbuf text[NR_DIRS][NR_FILES], sb;
	int c, d, f, i;

	for (c = 0; c < NR_COMMITS; c++) {
		struct object_id old_root = root;
		for (d = 0; d < NR_DIRS; d++) {
			struct object_id old_dir = dirs[d];
			sb.len = 0;
			for (f = 0; f < NR_FILES; f++) {
				struct strbuf *t = &text[d][f];
				char name[32];
				if (!c || tr_rand() % 40 == 0) {
					struct object_id old = blobs[d][f];
					while (t->len < 300)
						strbuf_add(t, &"static int const return\n\t(){};,"[tr_rand() % 31], 1);
					if (c && t->len < 800)
						strbuf_addstr(t, "\treturn error(\"changed\");\n");
					t->buf[tr_rand() % t->len] ^= 1;
					write_object(OBJ_BLOB, t, &blobs[d][f], c ? &old : NULL, out);
				}
				i = sprintf(name, "100644 file-%c%d.c", 'a' + f, d);
				strbuf_add(&sb, name, i + 1);
				strbuf_add(&sb, blobs[d][f].hash, HASH_RAWSZ);
			}
			write_object(OBJ_TREE, &sb, &dirs[d], c ? &old_dir : NULL, out);
		}
		sb.len = 0;
		for (d = 0; d < NR_DIRS; d++) {
			char name[32];
			i = sprintf(name, "40000 dir%d/", d);
			strbuf_add(&sb, name, i + 1);
			strbuf_add(&sb, dirs[d].hash, HASH_RAWSZ);
		}
		write_object(OBJ_TREE, &sb, &root, c ? &old_root : NULL, out);
		sb.len = 0;
		strbuf_addstr(&sb, "tree ");
		strbuf_addhex(&sb, &root);
		strbuf_addstr(&sb, "\n");
		for (i = 1; i < 3; i++)
			if (c >= i * i && (i == 1 || tr_rand() % 4 == 0)) {
				strbuf_addstr(&sb, "parent ");
				strbuf_addhex(&sb, &tips[c - i * i]);
				strbuf_addstr(&sb, "\n");
			}
		char date[48];
		sprintf(date, "date %d\n\nChange %d\n", 1700000000 + 600 * c, c);
		strbuf_addstr(&sb, date);
		write_object(OBJ_COMMIT, &sb, &tips[c], NULL, out);
	}
}

int main(int argc, char **argv)
{
	struct prio_queue queue = { .compare = compare_commits_by_commit_date };
	struct object_entry *to_pack;
	struct unpacked *array;
	unsigned char *out;
	unsigned long round, sum = 0;
	unsigned i;

	tr_init(argc, argv);
	TR_GLOBAL(pack, "struct packed_git *");
	TR_GLOBAL(obj_hash, "struct object **");
	TR_GLOBAL(obj_hash_size, "int");
	TR_GLOBAL(delta_base_cache, "struct delta_base_cache_entry * []");
	TR_GLOBAL(delta_base_cache_lru, "struct list_head");
	TR_GLOBAL(delta_base_cached, "unsigned long");
	TR_GLOBAL(diff_queued, "struct diff_queue_struct");
	TR_LOCAL(queue, "struct prio_queue");
	TR_CHECK(struct commit, generation);
	TR_CHECK(struct object_entry, hash);
	TR_CHECK(struct delta_index, entries);
	TR_CHECK(struct packed_git, nr);
	pack = HEAP_CALLOC(struct packed_git, 1);
	pack->data = HEAP_CALLOC(unsigned char, PACK_SIZE);
	tips = HEAP_CALLOC(struct object_id, NR_COMMITS);
	out = HEAP_CALLOC(unsigned char, 8192);
	make_history(out);
	to_pack = HEAP_CALLOC(struct object_entry, pack->nr);
	array = HEAP_CALLOC(struct unpacked, WINDOW);
	for (i = 0; i < pack->nr; i++)
		to_pack[i].idx = pack->index[i];
	for (round = 0; tr_more(); round++) {
		unsigned from = tr_rand() % (pack->nr - 5);
		struct object_id oid;
		sum += walk_revisions(&queue, 24);
		clear_object_flags();
		if (round % 2 == 0)
			find_deltas(to_pack + from, 5, array, out);
		for (i = 0; i < 1; i++) {
			struct pack_idx_entry *e = &pack->index[tr_rand() % pack->nr];
			enum object_type type;
			unsigned long size;
			const void *data = unpack_entry(pack, &e->oid, &type, &size);
			hash_object(type, data, size, &oid);
			if (!oideq(&oid, &e->oid))
				abort();
		}
	}
	if (getenv("VERBOSE"))
		printf("%u objects, %lu bytes, %lu hashed, %lu reads %lu hits, %lu deltas saved %lu, %lu pairs, %d known\n", pack->nr, pack->size, trace.hashed, trace.reads, trace.hits, trace.deltas, trace.saved, trace.pairs, nr_objs);
	tr_sink = sum;
	return 0;
}
