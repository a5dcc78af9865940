/*
 * A store of objects by their hash: blobs, trees and commits, delta chains in a pack with an index, a cache of
 * bases, walks of history with a queue by date, comparison of trees, and what is no longer reachable.
 */
#include "../heap.h"
#include <arpa/inet.h>
#include <stdbool.h>

#define HASH_RAWSZ 20
#define ALLOC_GROW(x, type, nr, alloc) \
	do { \
		if ((nr) > (alloc)) { \
			(alloc) = ((alloc) + 16) * 3 / 2 < (nr) ? (nr) : ((alloc) + 16) * 3 / 2; \
			(x) = HEAP_REALLOC((x), type, (alloc)); \
		} \
	} while (0)

struct object_id {
	unsigned char hash[HASH_RAWSZ];
};

enum object_type { OBJ_NONE, OBJ_COMMIT, OBJ_TREE, OBJ_BLOB, OBJ_REF_DELTA };

#define SEEN		(1u << 0)
#define UNINTERESTING	(1u << 1)
#define REACHABLE	(1u << 2)

struct object {
	unsigned parsed : 1;
	unsigned type : 3;
	unsigned flags : 28;
	struct object_id oid;
};

struct blob {
	struct object object;
};

struct tree {
	struct object object;
	void *buffer;
	unsigned long size;
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
	struct tree *tree;
};

struct strbuf {
	size_t alloc, len;
	char *buf;
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

/* What the index of the pack says of one object. */
struct pack_entry {
	struct object_id oid;
	uint32_t crc32;
	uint32_t offset;
};

struct packed_git {
	struct packed_git *next;
	unsigned char *data;
	size_t size, alloc;
	struct pack_entry *entries;
	uint32_t nr, entries_alloc;
	uint32_t fanout[256];
	struct object_id checksum;
	unsigned int lookups, misses;
};

struct delta_index_entry {
	const unsigned char *ptr;
	unsigned int val;
	struct delta_index_entry *next;
};

struct delta_index {
	const unsigned char *src_buf;
	unsigned long src_size;
	unsigned int hash_mask;
	struct delta_index_entry *entries;
	struct delta_index_entry *hash[];
};

struct delta_base_entry {
	struct packed_git *p;
	uint32_t offset;
	enum object_type type;
	unsigned long size;
	unsigned char *data;
	struct list_head { struct list_head *next, *prev; } lru;
	struct delta_base_entry *hash_next;
};

#define list_entry(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

typedef struct {
	uint64_t size;
	uint32_t H[5];
	uint32_t W[16];
} SHA1_CTX;

struct prio_queue {
	int (*compare)(const void *one, const void *two, void *cb_data);
	void *cb_data;
	int alloc, nr;
	struct prio_queue_entry { unsigned ctr; void *data; } *array;
	unsigned insertion_ctr;
};

#define DELTA_CACHE_BUCKETS 64
#define DELTA_CACHE_LIMIT 64

static struct object **obj_hash;
static unsigned int nr_objs, obj_hash_size;
static struct packed_git *packs;
static struct {
	struct delta_base_entry *buckets[DELTA_CACHE_BUCKETS];
	struct list_head lru;
	int nr;
	unsigned long hits, misses;
} delta_base_cache;
static uint32_t crc_table[256];

/* ---- hashes ---- */

#define SHA_ROT(X, n) (((X) << (n)) | ((X) >> (32 - (n))))
#define SHA_SRC(t) ntohl(ctx->W[t])
#define SHA_MIX(t) SHA_ROT(W[((t) + 13) & 15] ^ W[((t) + 8) & 15] ^ W[((t) + 2) & 15] ^ W[(t) & 15], 1)

static NOINLINE void sha1_block(SHA1_CTX *ctx)
{
	uint32_t W[16], A = ctx->H[0], B = ctx->H[1], C = ctx->H[2], D = ctx->H[3], E = ctx->H[4];

	for (int t = 0; t < 80; t++) {
		uint32_t temp = t < 16 ? SHA_SRC(t) : SHA_MIX(t), fn;

		W[t & 15] = temp;
		if (t < 20)
			fn = (((C ^ D) & B) ^ D) + 0x5a827999;
		else if (t < 40)
			fn = (B ^ C ^ D) + 0x6ed9eba1;
		else if (t < 60)
			fn = ((B & C) + (D & (B ^ C))) + 0x8f1bbcdc;
		else
			fn = (B ^ C ^ D) + 0xca62c1d6;
		temp += SHA_ROT(A, 5) + fn + E;
		E = D;
		D = C;
		C = SHA_ROT(B, 30);
		B = A;
		A = temp;
	}
	ctx->H[0] += A;
	ctx->H[1] += B;
	ctx->H[2] += C;
	ctx->H[3] += D;
	ctx->H[4] += E;
}

static void sha1_init(SHA1_CTX *ctx)
{
	static const uint32_t start[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };

	ctx->size = 0;
	memcpy(ctx->H, start, sizeof(start));
}

static void sha1_update(SHA1_CTX *ctx, const void *data, size_t len)
{
	unsigned int lenW = ctx->size & 63;

	ctx->size += len;
	while (len) {
		unsigned int left = 64 - lenW < len ? 64 - lenW : len;

		memcpy((char *)ctx->W + lenW, data, left);
		lenW = (lenW + left) & 63;
		data = (const char *)data + left;
		len -= left;
		if (!lenW)
			sha1_block(ctx);
	}
}

static void sha1_final(struct object_id *oid, SHA1_CTX *ctx)
{
	static const unsigned char pad[64] = { 0x80 };
	uint32_t padlen[2] = { htonl((uint32_t)(ctx->size >> 29)), htonl((uint32_t)(ctx->size << 3)) };
	int i = ctx->size & 63;

	sha1_update(ctx, pad, 1 + (63 & (55 - i)));
	sha1_update(ctx, padlen, 8);
	for (i = 0; i < 5; i++) {
		oid->hash[4 * i] = ctx->H[i] >> 24;
		oid->hash[4 * i + 1] = ctx->H[i] >> 16;
		oid->hash[4 * i + 2] = ctx->H[i] >> 8;
		oid->hash[4 * i + 3] = ctx->H[i];
	}
}

static SHA1_CTX sha_ctx;

static void hash_object(const void *buf, unsigned long len, enum object_type type, struct object_id *oid)
{
	static const char *const names[] = { "", "commit", "tree", "blob" };
	char hdr[32];
	int hdrlen = snprintf(hdr, sizeof(hdr), "%s %lu", names[type], len) + 1;

	sha1_init(&sha_ctx);
	sha1_update(&sha_ctx, hdr, hdrlen);
	sha1_update(&sha_ctx, buf, len);
	sha1_final(oid, &sha_ctx);
}

static NOINLINE uint32_t crc32(uint32_t crc, const unsigned char *buf, size_t len)
{
	crc = ~crc;
	while (len--)
		crc = crc_table[(crc ^ *buf++) & 0xff] ^ crc >> 8;
	return ~crc;
}

static int oidcmp(const struct object_id *a, const struct object_id *b)
{
	for (int i = 0; i < HASH_RAWSZ; i++)
		if (a->hash[i] != b->hash[i])
			return a->hash[i] < b->hash[i] ? -1 : 1;
	return 0;
}

static inline bool oideq(const struct object_id *a, const struct object_id *b)
{
	return !oidcmp(a, b);
}

/* ---- objects that were looked at ---- */

static unsigned int oidhash(const struct object_id *oid)
{
	return oid->hash[0] | oid->hash[1] << 8 | oid->hash[2] << 16;
}

static void insert_obj_hash(struct object *obj, struct object **hash, unsigned int size)
{
	unsigned int j = oidhash(&obj->oid) & (size - 1);

	while (hash[j])
		j = (j + 1) & (size - 1);
	hash[j] = obj;
}

static NOINLINE struct object *lookup_object(const struct object_id *oid)
{
	unsigned int i, first;
	struct object *obj;

	if (!obj_hash)
		return NULL;
	first = i = oidhash(oid) & (obj_hash_size - 1);
	while ((obj = obj_hash[i]) != NULL) {
		if (oideq(oid, &obj->oid))
			break;
		i = (i + 1) & (obj_hash_size - 1);
	}
	if (obj && i != first) {
		/* Move it to where it is looked for first. */
		struct object *t = obj_hash[first];
		obj_hash[first] = obj_hash[i];
		obj_hash[i] = t;
	}
	return obj;
}

static NOINLINE void *create_object(const struct object_id *oid, void *o, enum object_type type)
{
	struct object *obj = o;

	obj->parsed = 0;
	obj->flags = 0;
	obj->type = type;
	obj->oid = *oid;
	if (obj_hash_size <= nr_objs * 2) {
		unsigned int size = obj_hash_size < 32 ? 32 : 2 * obj_hash_size;
		struct object **bigger = HEAP_CALLOC(struct object *, size);

		for (unsigned int i = 0; i < obj_hash_size; i++)
			if (obj_hash[i])
				insert_obj_hash(obj_hash[i], bigger, size);
		HEAP_FREE(obj_hash);
		obj_hash = bigger;
		obj_hash_size = size;
	}
	insert_obj_hash(obj, obj_hash, obj_hash_size);
	nr_objs++;
	return obj;
}

#define DEFINE_LOOKUP(kind, TYPE) \
	static struct kind *lookup_##kind(const struct object_id *oid) \
	{ \
		struct object *obj = lookup_object(oid); \
		if (!obj) \
			return create_object(oid, HEAP_CALLOC(struct kind, 1), TYPE); \
		return (struct kind *)obj; \
	}
DEFINE_LOOKUP(commit, OBJ_COMMIT)
DEFINE_LOOKUP(tree, OBJ_TREE)
DEFINE_LOOKUP(blob, OBJ_BLOB)

/* ---- deltas ---- */

#define RABIN_WINDOW 8
#define DELTA_STEP 8

static unsigned int window_hash(const unsigned char *p)
{
	unsigned int val = 0;

	for (int i = 0; i < RABIN_WINDOW; i++)
		val = val * 0x01000193 + p[i];
	return val ^ val >> 15;
}

static NOINLINE struct delta_index *create_delta_index(const unsigned char *buf, unsigned long size)
{
	unsigned int entries = size / DELTA_STEP, hsize = 16;
	struct delta_index *index;
	struct delta_index_entry *entry;

	while (hsize < entries / 2)
		hsize *= 2;
	index = HEAP_FLEXIBLE(struct delta_index, sizeof(*index) + hsize * sizeof(index->hash[0]));
	index->src_buf = buf;
	index->src_size = size;
	index->hash_mask = hsize - 1;
	for (unsigned int i = 0; i < hsize; i++)
		index->hash[i] = NULL;
	entry = index->entries = HEAP_CALLOC(struct delta_index_entry, (entries + 64) & ~63u);
	for (long at = (long)(entries * DELTA_STEP) - DELTA_STEP; at >= 0; at -= DELTA_STEP) {
		if (at + RABIN_WINDOW > (long)size)
			continue;
		entry->ptr = buf + at;
		entry->val = window_hash(buf + at);
		entry->next = index->hash[entry->val & index->hash_mask];
		index->hash[entry->val & index->hash_mask] = entry;
		entry++;
	}
	return index;
}

static void free_delta_index(struct delta_index *index)
{
	HEAP_FREE(index->entries);
	HEAP_FREE(index);
}

static unsigned char *put_varint(unsigned char *out, unsigned long n)
{
	while (n >= 0x80) {
		*out++ = n | 0x80;
		n >>= 7;
	}
	*out++ = n;
	return out;
}

static unsigned long get_varint(const unsigned char **datap)
{
	const unsigned char *data = *datap;
	unsigned long cmd, size = 0;
	int i = 0;

	do {
		cmd = *data++;
		size |= (cmd & 0x7f) << i;
		i += 7;
	} while (cmd & 0x80);
	*datap = data;
	return size;
}

static NOINLINE unsigned long create_delta(const struct delta_index *index, const unsigned char *trg, unsigned long trg_size,
					   unsigned char *delta, unsigned long max)
{
	const unsigned char *data = trg, *top = trg + trg_size;
	unsigned char *out = delta, *insert = NULL;

	out = put_varint(out, index->src_size);
	out = put_varint(out, trg_size);
	while (data < top) {
		const unsigned char *best = NULL;
		unsigned int msize = RABIN_WINDOW - 1;

		if ((unsigned long)(out - delta) + 140 > max)
			return 0;
		if (top - data >= RABIN_WINDOW) {
			unsigned int val = window_hash(data), chain = 0;

			for (struct delta_index_entry *e = index->hash[val & index->hash_mask]; e && chain++ < 8; e = e->next) {
				const unsigned char *ref = e->ptr, *src = data;
				unsigned int left = index->src_buf + index->src_size - ref;

				if (e->val != val)
					continue;
				if (left > top - src)
					left = top - src;
				while (left-- && *src == *ref) {
					src++;
					ref++;
				}
				if (ref - e->ptr > msize) {
					msize = ref - e->ptr;
					best = e->ptr;
				}
			}
		}
		if (!best) {
			if (!insert || *insert == 127) {
				insert = out++;
				*insert = 0;
			}
			++*insert;
			*out++ = *data++;
		} else {
			unsigned int moff = best - index->src_buf;

			if (msize > 0xffff)
				msize = 0xffff;
			*out++ = 0x80;
			*out++ = moff;
			*out++ = moff >> 8;
			*out++ = msize;
			*out++ = msize >> 8;
			data += msize;
			insert = NULL;
		}
	}
	return out - delta;
}

static NOINLINE unsigned char *patch_delta(const unsigned char *src, unsigned long src_size, const unsigned char *delta,
					   unsigned long delta_size, unsigned long *dst_size)
{
	const unsigned char *data = delta, *top = delta + delta_size;
	unsigned char *dst, *out;

	if (get_varint(&data) != src_size)
		abort();
	*dst_size = get_varint(&data);
	out = dst = HEAP_CALLOC(unsigned char, (*dst_size + 512) & ~511ul);
	while (data < top) {
		unsigned char cmd = *data++;

		if (cmd & 0x80) {
			const unsigned char *from = src + (data[0] | data[1] << 8);
			unsigned int n = data[2] | data[3] << 8;

			data += 4;
			while (n--)
				*out++ = *from++;
		} else {
			while (cmd--)
				*out++ = *data++;
		}
	}
	return dst;
}

/* ---- packs ---- */

static NOINLINE uint32_t find_pack_entry(struct packed_git *p, const struct object_id *oid)
{
	uint32_t lo = oid->hash[0] ? p->fanout[oid->hash[0] - 1] : 0, hi = p->fanout[oid->hash[0]];

	p->lookups++;
	while (lo < hi) {
		uint32_t mi = lo + (hi - lo) / 2;
		int cmp = oidcmp(&p->entries[mi].oid, oid);

		if (!cmp)
			return mi;
		if (cmp > 0)
			hi = mi;
		else
			lo = mi + 1;
	}
	p->misses++;
	return UINT32_MAX;
}

static struct delta_base_entry *cached_base(struct packed_git *p, uint32_t offset)
{
	struct delta_base_entry *e = delta_base_cache.buckets[(offset ^ offset >> 6) % DELTA_CACHE_BUCKETS];

	while (e && (e->offset != offset || e->p != p))
		e = e->hash_next;
	return e;
}

static void list_add(struct list_head *head, struct list_head *at)
{
	head->next = at->next;
	head->prev = at;
	at->next->prev = head;
	at->next = head;
}

static void list_del(struct list_head *at)
{
	at->prev->next = at->next;
	at->next->prev = at->prev;
}

static void drop_base(struct delta_base_entry *e)
{
	struct delta_base_entry **link = &delta_base_cache.buckets[(e->offset ^ e->offset >> 6) % DELTA_CACHE_BUCKETS];

	while (*link != e)
		link = &(*link)->hash_next;
	*link = e->hash_next;
	list_del(&e->lru);
	delta_base_cache.nr--;
	HEAP_FREE(e->data);
	HEAP_FREE(e);
}

/* What it gives stays in the cache's hands. */
static NOINLINE struct delta_base_entry *unpack_entry(struct packed_git *p, uint32_t offset)
{
	struct delta_base_entry *e = cached_base(p, offset), **bucket;
	const unsigned char *data = p->data + offset;
	enum object_type type;
	unsigned long size;

	if (e) {
		delta_base_cache.hits++;
		list_del(&e->lru);
		list_add(&e->lru, &delta_base_cache.lru);
		return e;
	}
	delta_base_cache.misses++;
	type = *data++ >> 4 & 7;
	size = get_varint(&data);
	e = HEAP_CALLOC(struct delta_base_entry, 1);
	e->p = p;
	e->offset = offset;
	if (type == OBJ_REF_DELTA) {
		struct delta_base_entry *base = unpack_entry(p, offset - get_varint(&data));

		e->type = base->type;
		e->data = patch_delta(base->data, base->size, data, size, &e->size);
	} else {
		e->type = type;
		e->size = size;
		e->data = HEAP_CALLOC(unsigned char, (size + 512) & ~511ul);
		memcpy(e->data, data, size);
	}
	if (delta_base_cache.nr >= DELTA_CACHE_LIMIT)
		drop_base(list_entry(delta_base_cache.lru.prev, struct delta_base_entry, lru));
	bucket = &delta_base_cache.buckets[(offset ^ offset >> 6) % DELTA_CACHE_BUCKETS];
	e->hash_next = *bucket;
	*bucket = e;
	list_add(&e->lru, &delta_base_cache.lru);
	delta_base_cache.nr++;
	return e;
}

static struct delta_base_entry *read_object(const struct object_id *oid)
{
	for (struct packed_git *p = packs; p; p = p->next) {
		uint32_t nr = find_pack_entry(p, oid);

		if (nr != UINT32_MAX)
			return unpack_entry(p, p->entries[nr].offset);
	}
	return NULL;
}

static void pack_bytes(struct packed_git *p, const void *data, size_t len)
{
	ALLOC_GROW(p->data, unsigned char, p->size + len, p->alloc);
	memcpy(p->data + p->size, data, len);
	p->size += len;
}

/* Objects that follow another of their kind are stored as what differs from it, if that is less. */
static NOINLINE uint32_t pack_object(struct packed_git *p, enum object_type type, const unsigned char *buf, unsigned long len,
				     const unsigned char *base, unsigned long base_len, uint32_t base_offset, struct object_id *oid)
{
	static unsigned char delta[8192];
	unsigned char header[24], *h = header;
	unsigned long delta_len = 0;
	uint32_t offset = p->size;
	struct pack_entry *e;

	hash_object(buf, len, type, oid);
	if (base) {
		struct delta_index *index = create_delta_index(base, base_len);
		delta_len = create_delta(index, buf, len, delta, len < sizeof(delta) ? len : sizeof(delta));
		free_delta_index(index);
	}
	*h++ = (delta_len ? OBJ_REF_DELTA : type) << 4;
	h = put_varint(h, delta_len ? delta_len : len);
	if (delta_len)
		h = put_varint(h, offset - base_offset);
	pack_bytes(p, header, h - header);
	pack_bytes(p, delta_len ? delta : buf, delta_len ? delta_len : len);
	ALLOC_GROW(p->entries, struct pack_entry, p->nr + 1, p->entries_alloc);
	e = &p->entries[p->nr++];
	e->oid = *oid;
	e->offset = offset;
	e->crc32 = crc32(0, p->data + offset, p->size - offset);
	return offset;
}

static int entry_cmp(const void *a, const void *b)
{
	return oidcmp(&((const struct pack_entry *)a)->oid, &((const struct pack_entry *)b)->oid);
}

static NOINLINE void finish_pack(struct packed_git *p)
{
	uint32_t i = 0;

	qsort(p->entries, p->nr, sizeof(*p->entries), entry_cmp);
	for (int byte = 0; byte < 256; byte++) {
		while (i < p->nr && p->entries[i].oid.hash[0] <= byte)
			i++;
		p->fanout[byte] = i;
	}
	hash_object(p->data, p->size, OBJ_BLOB, &p->checksum);
}

static NOINLINE int verify_some(struct packed_git *p, uint32_t from, int count)
{
	struct object_id oid;
	int bad = 0;

	while (count--) {
		struct pack_entry *e = &p->entries[from++ % p->nr];
		struct delta_base_entry *d = unpack_entry(p, e->offset);

		hash_object(d->data, d->size, d->type, &oid);
		bad += !oideq(&oid, &e->oid);
	}
	return bad;
}

/* ---- trees and commits ---- */

static void decode_tree_entry(struct tree_desc *desc)
{
	const unsigned char *p = desc->buffer;
	unsigned int mode = 0;

	while (*p != ' ')
		mode = (mode << 3) + (*p++ - '0');
	desc->entry.mode = mode;
	desc->entry.path = (const char *)++p;
	while (*p)
		p++;
	desc->entry.pathlen = (const char *)p - desc->entry.path;
	memcpy(desc->entry.oid.hash, p + 1, HASH_RAWSZ);
}

static void init_tree_desc(struct tree_desc *desc, const void *buffer, unsigned long size)
{
	desc->buffer = buffer;
	desc->size = size;
	if (size)
		decode_tree_entry(desc);
}

static void update_tree_entry(struct tree_desc *desc)
{
	const unsigned char *end = (const unsigned char *)desc->entry.path + desc->entry.pathlen + 1 + HASH_RAWSZ;

	desc->size -= end - desc->buffer;
	desc->buffer = end;
	if (desc->size)
		decode_tree_entry(desc);
}

static int parse_tree(struct tree *tree)
{
	struct delta_base_entry *e;

	if (tree->object.parsed)
		return 0;
	e = read_object(&tree->object.oid);
	if (!e || e->type != OBJ_TREE)
		return -1;
	tree->size = e->size;
	tree->buffer = HEAP_CALLOC(unsigned char, (e->size + 512) & ~511ul);
	memcpy(tree->buffer, e->data, e->size);
	tree->object.parsed = 1;
	return 0;
}

static void free_tree_buffer(struct tree *tree)
{
	HEAP_FREE(tree->buffer);
	tree->buffer = NULL;
	tree->size = 0;
	tree->object.parsed = 0;
}

static int hexval(unsigned char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static const unsigned char *get_oid_hex(const unsigned char *hex, struct object_id *oid)
{
	for (int i = 0; i < HASH_RAWSZ; i++, hex += 2)
		oid->hash[i] = hexval(hex[0]) << 4 | hexval(hex[1]);
	return hex + 1;
}

static NOINLINE int parse_commit(struct commit *c)
{
	struct delta_base_entry *e;
	const unsigned char *p;
	struct commit_list **pptr = &c->parents;
	struct object_id oid;

	if (c->object.parsed)
		return 0;
	e = read_object(&c->object.oid);
	if (!e || e->type != OBJ_COMMIT)
		return -1;
	p = get_oid_hex(e->data + 5, &oid);
	c->tree = lookup_tree(&oid);
	while (p[0] == 'p') {
		struct commit_list *l = HEAP_MALLOC(struct commit_list);

		p = get_oid_hex(p + 7, &oid);
		l->item = lookup_commit(&oid);
		l->next = NULL;
		*pptr = l;
		pptr = &l->next;
	}
	for (c->date = 0, p += 5; *p != '\n'; p++)
		c->date = c->date * 10 + (*p - '0');
	c->object.parsed = 1;
	return 0;
}

static int by_date(const void *a, const void *b, void *cb_data)
{
	const struct commit *x = a, *y = b;

	(void)cb_data;
	return x->date < y->date ? 1 : x->date > y->date ? -1 : 0;
}

static inline int pq_compare(struct prio_queue *q, int i, int j)
{
	int cmp = q->compare(q->array[i].data, q->array[j].data, q->cb_data);

	return cmp ? cmp : (int)(q->array[i].ctr - q->array[j].ctr);
}

static inline void pq_swap(struct prio_queue *q, int i, int j)
{
	struct prio_queue_entry t = q->array[i];

	q->array[i] = q->array[j];
	q->array[j] = t;
}

static NOINLINE void prio_queue_put(struct prio_queue *q, void *thing)
{
	ALLOC_GROW(q->array, struct prio_queue_entry, q->nr + 1, q->alloc);
	q->array[q->nr].ctr = q->insertion_ctr++;
	q->array[q->nr].data = thing;
	for (int ix = q->nr++, parent; ix; ix = parent) {
		parent = (ix - 1) / 2;
		if (pq_compare(q, parent, ix) <= 0)
			break;
		pq_swap(q, parent, ix);
	}
}

static NOINLINE void *prio_queue_get(struct prio_queue *q)
{
	void *result;

	if (!q->nr)
		return NULL;
	result = q->array[0].data;
	if (!--q->nr)
		return result;
	q->array[0] = q->array[q->nr];
	for (int ix = 0, child; ix * 2 + 1 < q->nr; ix = child) {
		child = ix * 2 + 1;
		if (child + 1 < q->nr && pq_compare(q, child, child + 1) >= 0)
			child++;
		if (pq_compare(q, ix, child) <= 0)
			break;
		pq_swap(q, child, ix);
	}
	return result;
}

static struct diff_stats { unsigned long added, removed, changed, entered; } diff_stats;

static int path_cmp(const struct name_entry *a, const struct name_entry *b)
{
	int i;

	for (i = 0; i < a->pathlen && i < b->pathlen; i++)
		if (a->path[i] != b->path[i])
			return (unsigned char)a->path[i] < (unsigned char)b->path[i] ? -1 : 1;
	return a->pathlen - b->pathlen;
}

static NOINLINE void diff_tree(struct tree *one, struct tree *two, struct strbuf *report)
{
	struct tree_desc *d = HEAP_CALLOC(struct tree_desc, 2);

	if (parse_tree(one) || parse_tree(two))
		abort();
	init_tree_desc(&d[0], one->buffer, one->size);
	init_tree_desc(&d[1], two->buffer, two->size);
	while (d[0].size || d[1].size) {
		int cmp = !d[0].size ? 1 : !d[1].size ? -1 : path_cmp(&d[0].entry, &d[1].entry);
		const struct name_entry *e = &d[cmp > 0].entry;

		if (cmp < 0) {
			diff_stats.removed++;
		} else if (cmp > 0) {
			diff_stats.added++;
		} else if (!oideq(&d[0].entry.oid, &d[1].entry.oid)) {
			if (e->mode >> 12 == 4) {
				diff_stats.entered++;
				diff_tree(lookup_tree(&d[0].entry.oid), lookup_tree(&d[1].entry.oid), report);
			} else {
				diff_stats.changed++;
				ALLOC_GROW(report->buf, char, report->len + e->pathlen + 1, report->alloc);
				for (int i = 0; i < e->pathlen; i++)
					report->buf[report->len++] = e->path[i];
				report->buf[report->len++] = '\n';
			}
		}
		if (cmp <= 0)
			update_tree_entry(&d[0]);
		if (cmp >= 0)
			update_tree_entry(&d[1]);
	}
	HEAP_FREE(d);
	free_tree_buffer(one);
	free_tree_buffer(two);
}

static NOINLINE void mark_tree(struct tree *tree, unsigned int flag)
{
	struct tree_desc desc;

	if (tree->object.flags & flag || parse_tree(tree))
		return;
	tree->object.flags |= flag;
	for (init_tree_desc(&desc, tree->buffer, tree->size); desc.size; update_tree_entry(&desc)) {
		if (desc.entry.mode >> 12 == 4)
			mark_tree(lookup_tree(&desc.entry.oid), flag);
		else
			lookup_blob(&desc.entry.oid)->object.flags |= flag;
	}
	free_tree_buffer(tree);
}

static NOINLINE unsigned int walk(struct prio_queue *queue, struct commit *tip, struct commit *hidden, struct strbuf *report)
{
	struct commit *c, *last = NULL;
	unsigned int shown = 0;

	if (parse_commit(tip) || parse_commit(hidden))
		abort();
	hidden->object.flags |= UNINTERESTING | SEEN;
	tip->object.flags |= SEEN;
	prio_queue_put(queue, tip);
	prio_queue_put(queue, hidden);
	report->len = 0;
	while ((c = prio_queue_get(queue)) != NULL) {
		for (struct commit_list *l = c->parents; l; l = l->next) {
			struct commit *parent = l->item;

			parent->object.flags |= c->object.flags & UNINTERESTING;
			if (parent->object.flags & SEEN || parse_commit(parent))
				continue;
			parent->object.flags |= SEEN;
			prio_queue_put(queue, parent);
		}
		if (c->object.flags & UNINTERESTING)
			continue;
		if (last && shown++ < 4)
			diff_tree(c->tree, last->tree, report);
		last = c;
	}
	return shown;
}

static void clear_flags(unsigned int flags)
{
	for (unsigned int i = 0; i < obj_hash_size; i++)
		if (obj_hash[i])
			obj_hash[i]->flags &= ~flags;
}

static unsigned int count_flags(unsigned int flag)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < obj_hash_size; i++)
		if (obj_hash[i] && obj_hash[i]->flags & flag)
			n++;
	return n;
}

/* ---- some history ---- */

#define FILES 12
#define DIRS 4
#define COMMITS 80
#define FILE_MAX 1400

struct work_file {
	char name[24];
	unsigned char *data;
	unsigned int len;
	struct object_id oid;
	uint32_t offset;
};

static struct work_file work[DIRS][FILES];
static struct object_id tips[COMMITS];

static void edit(struct work_file *f)
{
	unsigned int at = tr_rand() % (f->len - 40);

	for (int i = 0; i < 30; i++)
		f->data[at + i] = " etaoinshrdlu\n"[tr_rand() >> 40 & 7];
}

static unsigned int write_entry(unsigned char *out, const char *mode, const char *name, const struct object_id *oid)
{
	unsigned int n = sprintf((char *)out, "%s %s", mode, name) + 1;

	memcpy(out + n, oid->hash, HASH_RAWSZ);
	return n + HASH_RAWSZ;
}

static void to_hex(char *out, const struct object_id *oid)
{
	for (int i = 0; i < HASH_RAWSZ; i++)
		sprintf(out + 2 * i, "%02x", oid->hash[i]);
}

static void make_history(struct packed_git *p)
{
	unsigned char *tree = HEAP_CALLOC(unsigned char, 4096), *before = HEAP_CALLOC(unsigned char, 4096);
	struct object_id subtree, root;
	char name[48], hex[3][41], message[400];

	for (int c = 0; c < COMMITS; c++) {
		unsigned int root_len = 0, len;

		for (int d = 0; d < DIRS; d++) {
			unsigned char *sub = before + 1024;

			len = 0;
			for (int i = 0; i < FILES; i++) {
				struct work_file *f = &work[d][i];
				bool first = !f->data;

				if (first) {
					sprintf(f->name, "file%02d.c", i);
					f->len = 400 + tr_rand() % (FILE_MAX - 400);
					f->data = HEAP_CALLOC(unsigned char, FILE_MAX);
					for (unsigned int k = 0; k < f->len; k++)
						f->data[k] = "static int unsigned;\n\t"[tr_rand() >> 30 & 15];
				}
				if (first || tr_rand() % 10 == 0) {
					unsigned char *old = HEAP_CALLOC(unsigned char, FILE_MAX);

					memcpy(old, f->data, f->len);
					if (!first)
						edit(f);
					f->offset = pack_object(p, OBJ_BLOB, f->data, f->len, first ? NULL : old, f->len, f->offset, &f->oid);
					HEAP_FREE(old);
				}
				len += write_entry(sub + len, "100644", f->name, &f->oid);
			}
			pack_object(p, OBJ_TREE, sub, len, NULL, 0, 0, &subtree);
			snprintf(name, sizeof(name), "dir%d", d);
			root_len += write_entry(tree + root_len, "40000", name, &subtree);
		}
		pack_object(p, OBJ_TREE, tree, root_len, NULL, 0, 0, &root);
		to_hex(hex[0], &root);
		if (c)
			to_hex(hex[1], &tips[c - 1]);
		if (c > 6)
			to_hex(hex[2], &tips[c - 2 - tr_rand() % 5]);
		len = sprintf(message, "tree %s\n", hex[0]);
		if (c)
			len += sprintf(message + len, "parent %s\n", hex[1]);
		if (c > 6 && c % 3 == 0)
			len += sprintf(message + len, "parent %s\n", hex[2]);
		len += sprintf(message + len, "date %d\n\nchange %d\n", 1000 + c * 17, c);
		pack_object(p, OBJ_COMMIT, (unsigned char *)message, len, NULL, 0, 0, &tips[c]);
	}
	finish_pack(p);
}

/* A pack of nothing but new versions of one file; written again and again. */
static NOINLINE void repack(struct packed_git *scratch, unsigned int turn)
{
	struct work_file *f = &work[turn % DIRS][turn / DIRS % FILES];
	struct object_id oid;
	unsigned char *old = HEAP_CALLOC(unsigned char, FILE_MAX);
	uint32_t offset = 0;

	scratch->nr = scratch->size = 0;
	for (int version = 0; version < 4; version++) {
		offset = pack_object(scratch, OBJ_BLOB, f->data, f->len, version ? old : NULL, f->len, offset, &oid);
		memcpy(old, f->data, f->len);
		edit(f);
	}
	HEAP_FREE(old);
	finish_pack(scratch);
}

int main(int argc, char **argv)
{
	struct prio_queue queue = { by_date, NULL, 0, 0, NULL, 0 };
	struct strbuf report = { 0, 0, NULL };
	struct packed_git *scratch;
	unsigned long shown = 0, reachable = 0, bad = 0;

	tr_init(argc, argv);
	TR_GLOBAL(obj_hash, "struct object **");
	TR_GLOBAL(nr_objs, "unsigned int");
	TR_GLOBAL(obj_hash_size, "unsigned int");
	TR_GLOBAL(packs, "struct packed_git *");
	TR_GLOBAL(crc_table, "uint32_t []");
	TR_GLOBAL(sha_ctx, "SHA1_CTX");
	TR_GLOBAL(diff_stats, "struct diff_stats");
	TR_GLOBAL(work, "struct work_file [][]");
	TR_LOCAL(queue, "struct prio_queue");
	TR_LOCAL(report, "struct strbuf");
	TR_CHECK(struct pack_entry, offset);
	TR_CHECK(struct delta_base_entry, hash_next);
	TR_CHECK(struct tree_desc, size);
	TR_CHECK(struct commit, tree);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		crc_table[i] = c;
	}
	delta_base_cache.lru.next = delta_base_cache.lru.prev = &delta_base_cache.lru;
	packs = HEAP_CALLOC(struct packed_git, 1);
	scratch = HEAP_CALLOC(struct packed_git, 1);
	make_history(packs);
	for (unsigned int turn = 0; tr_more(); turn++) {
		unsigned int tip = 20 + tr_rand() % (COMMITS - 20);

		shown += walk(&queue, lookup_commit(&tips[tip]), lookup_commit(&tips[tip - 1 - tr_rand() % 19]), &report);
		bad += verify_some(packs, turn * 3, 2);
		if (turn % 16 == 0) {
			mark_tree(lookup_commit(&tips[tip])->tree, REACHABLE);
			reachable += count_flags(REACHABLE);
		}
		if (turn % 8 == 0)
			repack(scratch, turn / 8);
		clear_flags(SEEN | UNINTERESTING | (turn % 64 == 0 ? REACHABLE : 0));
	}
	if (bad)
		abort();
	if (getenv("VERBOSE"))
		printf("%u objects, %zu bytes for %u, %lu shown, %lu reachable, cache %lu/%lu, diff +%lu -%lu ~%lu /%lu\n", nr_objs, packs->size,
		       packs->nr, shown, reachable, delta_base_cache.hits, delta_base_cache.misses, diff_stats.added, diff_stats.removed,
		       diff_stats.changed, diff_stats.entered);
	tr_sink = report.len + shown;
	return 0;
}
