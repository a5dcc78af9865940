/*
   A directory: hierarchical memory with a header before each pointer, BER both ways,
   filters as trees, a stack of modules, packed records in a hash table, indexes as
   sorted lists, syntaxes that compare, requests with callbacks.

   In the manner of Samba's ldb.
*/
#include "../heap.h"
#include <stdbool.h>

#define LDB_SUCCESS 0
#define LDB_ERR_OPERATIONS_ERROR 1
#define LDB_ERR_NO_SUCH_OBJECT 32
#define LDB_ERR_ENTRY_ALREADY_EXISTS 68
#define ARRAY_SIZE(a) (sizeof(a) / sizeof(a[0]))
#define discard_const(ptr) ((void *)((uintptr_t)(ptr)))

/* ---- talloc ---- */

#define TALLOC_MAGIC 0xe8150c70u
#define TALLOC_FLAG_FREE 1u

struct talloc_chunk {
	unsigned int magic;
	struct talloc_chunk *next, *prev;
	struct talloc_chunk *parent, *child;
	int (*destructor)(void *ptr);
	const char *name;
	size_t size;
	struct talloc_kind *kind;
	unsigned int flags;
};
#define TC_HDR_SIZE ((sizeof(struct talloc_chunk) + 15) & ~(size_t)15)
#define TC_PTR_FROM_CHUNK(tc) ((void *)(TC_HDR_SIZE + (char *)(tc)))

/* What was freed is only used for the same type and size again. */
struct talloc_kind {
	const char *name;
	size_t size;
	struct talloc_chunk *freed;
	struct talloc_kind *next;
	unsigned int chunks;
};
static struct talloc_kind *kinds[64];
static struct talloc_statistics { unsigned long chunks, blocks, reused; } talloc_stats;

static inline struct talloc_chunk *talloc_chunk_from_ptr(const void *ptr)
{
	struct talloc_chunk *tc = (struct talloc_chunk *)(((uintptr_t)ptr) - TC_HDR_SIZE);
	if (tc->magic != TALLOC_MAGIC || (tc->flags & TALLOC_FLAG_FREE)) {
		abort();
	}
	return tc;
}

static struct talloc_kind *talloc_kind_of(const char *name, size_t size)
{
	unsigned int slot = (unsigned int)(size / 8 + (unsigned char)name[0] * 7 + strlen(name)) % 64;
	struct talloc_kind *k;
	for (k = kinds[slot]; k != NULL; k = k->next) {
		if (k->size == size && strcmp(k->name, name) == 0) {
			return k;
		}
	}
	k = calloc(1, sizeof(*k));
	k->name = name;
	k->size = size;
	k->next = kinds[slot];
	kinds[slot] = k;
	return k;
}

static NOINLINE void *_talloc(const void *context, const char *name, size_t el_size, size_t count)
{
	size_t size = el_size * count;
	if (el_size == 1) {
		size = (size + 15) & ~(size_t)15;
	} else if (count > 1) {
		size_t rounded = 1;
		while (rounded < count) {
			rounded *= 2;
		}
		size = el_size * rounded;
	}
	struct talloc_kind *k = talloc_kind_of(name, size);
	struct talloc_chunk *tc = k->freed;
	if (tc != NULL) {
		k->freed = tc->next;
		talloc_stats.reused++;
	} else {
		tc = malloc(TC_HDR_SIZE + size);
		tr_region("struct talloc_chunk", tc, sizeof(*tc), sizeof(*tc));
		if (size) {
			tr_region(name, TC_PTR_FROM_CHUNK(tc), size, el_size);
		}
		k->chunks++;
	}
	tc->flags = 0;
	tc->magic = TALLOC_MAGIC;
	tc->kind = k;
	tc->name = name;
	tc->size = el_size * count;
	tc->destructor = NULL;
	tc->child = tc->prev = tc->next = tc->parent = NULL;
	if (context != NULL) {
		struct talloc_chunk *parent = talloc_chunk_from_ptr(context);
		if (parent->child != NULL) {
			parent->child->parent = NULL;
			tc->next = parent->child;
			tc->next->prev = tc;
		}
		tc->parent = parent;
		parent->child = tc;
	}
	talloc_stats.chunks++;
	return TC_PTR_FROM_CHUNK(tc);
}

/* Only the first child knows its parent; the others are reached through it. */
static struct talloc_chunk *talloc_parent_chunk(struct talloc_chunk *tc)
{
	while (tc->prev != NULL) {
		tc = tc->prev;
	}
	return tc->parent;
}

static void tc_unlink(struct talloc_chunk *tc)
{
	if (tc->parent != NULL) {
		tc->parent->child = tc->next;
		if (tc->next != NULL) {
			tc->next->parent = tc->parent;
		}
	}
	if (tc->prev != NULL) {
		tc->prev->next = tc->next;
	}
	if (tc->next != NULL) {
		tc->next->prev = tc->prev;
	}
	tc->prev = tc->next = tc->parent = NULL;
}

static NOINLINE void _tc_free(struct talloc_chunk *tc)
{
	if (tc->destructor != NULL) {
		tc->destructor(TC_PTR_FROM_CHUNK(tc));
	}
	for (struct talloc_chunk *c = tc->child, *next; c != NULL; c = next) {
		next = c->next;
		_tc_free(c);
	}
	tc->child = NULL;
	tc->flags |= TALLOC_FLAG_FREE;
	tc->next = tc->kind->freed;
	tc->kind->freed = tc;
	talloc_stats.chunks--;
}

static void talloc_free(void *ptr)
{
	if (ptr != NULL) {
		struct talloc_chunk *tc = talloc_chunk_from_ptr(ptr);
		tc_unlink(tc);
		_tc_free(tc);
	}
}

static NOINLINE void *_talloc_realloc_array(const void *context, void *ptr, size_t el_size, size_t count, const char *name)
{
	if (ptr == NULL) {
		return _talloc(context, name, el_size, count);
	}
	struct talloc_chunk *tc = talloc_chunk_from_ptr(ptr);
	if (tc->kind->size >= el_size * count) {
		tc->size = el_size * count;
		return ptr;
	}
	void *p = _talloc(context, name, el_size, count);
	memcpy(p, ptr, tc->size);
	struct talloc_chunk *to = talloc_chunk_from_ptr(p);
	to->child = tc->child;
	if (to->child != NULL) {
		to->child->parent = to;
	}
	tc->child = NULL;
	talloc_free(ptr);
	return p;
}

static void *talloc_steal(const void *context, const void *ptr)
{
	struct talloc_chunk *tc = talloc_chunk_from_ptr(ptr), *parent = talloc_chunk_from_ptr(context);
	if (talloc_parent_chunk(tc) == parent) {
		return discard_const(ptr);
	}
	tc_unlink(tc);
	if (parent->child != NULL) {
		parent->child->parent = NULL;
		tc->next = parent->child;
		tc->next->prev = tc;
	}
	tc->parent = parent;
	parent->child = tc;
	return discard_const(ptr);
}

#define talloc(ctx, type) ((type *)_talloc(ctx, #type, sizeof(type), 1))
#define talloc_zero(ctx, type) ((type *)memset(talloc(ctx, type), 0, sizeof(type)))
#define talloc_array(ctx, type, n) ((type *)_talloc(ctx, #type, sizeof(type), n))
#define talloc_realloc(ctx, p, type, n) ((type *)_talloc_realloc_array(ctx, p, sizeof(type), n, #type))
#define talloc_get_size(p) (talloc_chunk_from_ptr(p)->size)
#define talloc_new(ctx) _talloc(ctx, "struct talloc_ctx", 1, 0)
#define talloc_set_destructor(p, fn) (talloc_chunk_from_ptr(p)->destructor = (fn))

static char *talloc_strndup(const void *ctx, const char *s, size_t n)
{
	char *r = talloc_array(ctx, char, n + 1);
	memcpy(r, s, n);
	r[n] = 0;
	return r;
}

/* ---- messages ---- */

struct ldb_val { uint8_t *data; size_t length; };

struct ldb_message_element {
	unsigned int flags;
	const char *name;
	unsigned int num_values;
	struct ldb_val *values;
};

struct ldb_dn {
	char *linearized, *casefold;
	unsigned int comp_num;
	unsigned invalid : 1, special : 1, valid_case : 1;
	struct ldb_dn_component { const char *name; struct ldb_val value; } *components;
};

struct ldb_message {
	struct ldb_dn *dn;
	unsigned int num_elements;
	struct ldb_message_element *elements;
};

enum ldb_parse_op { LDB_OP_AND = 1, LDB_OP_OR, LDB_OP_NOT, LDB_OP_EQUALITY, LDB_OP_GREATER, LDB_OP_LESS, LDB_OP_PRESENT, LDB_OP_SUBSTRING };

struct ldb_parse_tree {
	enum ldb_parse_op operation;
	union {
		struct { struct ldb_parse_tree *child; } isnot;
		struct { const char *attr; struct ldb_val value; } equality;
		struct { const char *attr; struct ldb_val value; } comparison;
		struct { const char *attr; int start_with_wildcard, end_with_wildcard; unsigned int num_chunks; struct ldb_val *chunks; } substring;
		struct { const char *attr; } present;
		struct { unsigned int num_elements; struct ldb_parse_tree **elements; } list;
	} u;
};

typedef int (*ldb_attr_comparison_t)(const struct ldb_val *v1, const struct ldb_val *v2);
struct ldb_schema_syntax { const char *name; ldb_attr_comparison_t comparison_fn; uint64_t compared; };
struct ldb_schema_attribute { const char *name; unsigned int flags; struct ldb_schema_syntax *syntax; };
#define LDB_ATTR_FLAG_INDEXED 1

struct dn_list { unsigned int count, alloc; uint32_t *ids; };
struct ldb_index_entry { struct ldb_index_entry *next; const struct ldb_schema_attribute *attr; uint32_t hash; struct ldb_val key; struct dn_list list; };

struct tdb_record { struct tdb_record *next; uint32_t id, full_hash; uint32_t key_len, data_len; uint8_t *data; };

struct ldb_request;
struct ldb_module;
struct ldb_reply { int error, type; struct ldb_message *message; };
typedef int (*ldb_request_callback_t)(struct ldb_request *req, struct ldb_reply *ares);
enum ldb_request_type { LDB_SEARCH, LDB_ADD, LDB_MODIFY, LDB_DELETE };

struct ldb_request {
	enum ldb_request_type operation;
	union {
		struct { struct ldb_dn *base; int scope; struct ldb_parse_tree *tree; const char *sort_attr; } search;
		struct { struct ldb_message *message; } add;
		struct { uint32_t id; struct ldb_message_element *el; } mod;
		struct { uint32_t id; } del;
	} op;
	void *context;
	ldb_request_callback_t callback;
	struct { unsigned int entries, visited; } handle;
};

struct ldb_module_ops {
	const char *name;
	int (*search)(struct ldb_module *module, struct ldb_request *req);
	int (*add)(struct ldb_module *module, struct ldb_request *req);
	int (*modify)(struct ldb_module *module, struct ldb_request *req);
	int (*del)(struct ldb_module *module, struct ldb_request *req);
};

struct ldb_module {
	struct ldb_module *prev, *next;
	struct ldb_context *ldb;
	void *private_data;
	const struct ldb_module_ops *ops;
	uint64_t requests;
};

struct ldb_context { struct ldb_module *modules; unsigned int sequence; };

#define TDB_HASH_SIZE 1024
#define INDEX_HASH_SIZE 4096
struct ltdb_private {
	struct tdb_record **hash_table;
	struct tdb_record **by_id;
	struct ldb_index_entry **index;
	uint32_t next_id, max_id, live;
	uint64_t unpacked, indexed, full;
};
struct rdn_private { uint64_t names; };
struct sort_private { uint64_t sorted; };
struct operational_private { uint64_t usn; uint32_t stamps[16]; };

/* ---- schema ---- */

static inline int lower(int c) { return c >= 'A' && c <= 'Z' ? c | 32 : c; }

static int ldb_comparison_fold(const struct ldb_val *v1, const struct ldb_val *v2)
{
	size_t n1 = v1->length, n2 = v2->length;
	const uint8_t *s1 = v1->data, *s2 = v2->data;
	while (n1 && n2 && lower(*s1) == lower(*s2)) {
		s1++; s2++; n1--; n2--;
	}
	if (n1 && n2) {
		return lower(*s1) - lower(*s2);
	}
	return n1 ? 1 : n2 ? -1 : 0;
}

static int ldb_comparison_binary(const struct ldb_val *v1, const struct ldb_val *v2)
{
	if (v1->length != v2->length) {
		return v1->length < v2->length ? -1 : 1;
	}
	for (size_t i = 0; i < v1->length; i++) {
		if (v1->data[i] != v2->data[i]) {
			return v1->data[i] - v2->data[i];
		}
	}
	return 0;
}

static int64_t val_to_int64(const struct ldb_val *v)
{
	int64_t n = 0;
	for (size_t i = 0; i < v->length; i++) {
		if (v->data[i] >= '0' && v->data[i] <= '9') {
			n = n * 10 + (v->data[i] - '0');
		}
	}
	return n;
}

static int ldb_comparison_int64(const struct ldb_val *v1, const struct ldb_val *v2)
{
	int64_t i1 = val_to_int64(v1), i2 = val_to_int64(v2);
	return i1 == i2 ? 0 : i1 > i2 ? 1 : -1;
}

static struct ldb_schema_syntax syntaxes[] = {
	{ "1.3.6.1.4.1.1466.115.121.1.15", ldb_comparison_fold, 0 },
	{ "1.3.6.1.4.1.1466.115.121.1.27", ldb_comparison_int64, 0 },
	{ "1.3.6.1.4.1.1466.115.121.1.40", ldb_comparison_binary, 0 },
};

/* sorted by name */
static const struct ldb_schema_attribute attributes[] = {
	{ "cn", LDB_ATTR_FLAG_INDEXED, &syntaxes[0] }, { "dc", 0, &syntaxes[0] }, { "description", 0, &syntaxes[0] },
	{ "gidNumber", LDB_ATTR_FLAG_INDEXED, &syntaxes[1] }, { "givenName", 0, &syntaxes[0] }, { "jpegPhoto", 0, &syntaxes[2] },
	{ "mail", 0, &syntaxes[0] }, { "member", 0, &syntaxes[0] }, { "objectClass", LDB_ATTR_FLAG_INDEXED, &syntaxes[0] },
	{ "ou", 0, &syntaxes[0] }, { "sn", LDB_ATTR_FLAG_INDEXED, &syntaxes[0] }, { "uidNumber", LDB_ATTR_FLAG_INDEXED, &syntaxes[1] }, { "whenChanged", 0, &syntaxes[1] },
};

static int attr_name_cmp(const void *key, const void *member)
{
	const char *name = key, *other = ((const struct ldb_schema_attribute *)member)->name;
	while (*name && lower(*name) == lower(*other)) {
		name++; other++;
	}
	return lower(*name) - lower(*other);
}

static const struct ldb_schema_attribute *ldb_schema_attribute_by_name(const char *name)
{
	const struct ldb_schema_attribute *a = bsearch(name, attributes, ARRAY_SIZE(attributes), sizeof(attributes[0]), attr_name_cmp);
	return a ? a : &attributes[2];
}

static NOINLINE struct ldb_message_element *ldb_msg_find_element(const struct ldb_message *msg, const char *name)
{
	for (unsigned int i = 0; i < msg->num_elements; i++) {
		const char *a = msg->elements[i].name, *b = name;
		while (*a && lower(*a) == lower(*b)) {
			a++; b++;
		}
		if (*a == *b) {
			return &msg->elements[i];
		}
	}
	return NULL;
}

static struct ldb_message_element *ldb_msg_add(struct ldb_message *msg, const char *name, const uint8_t *data, size_t len)
{
	struct ldb_message_element *el = ldb_msg_find_element(msg, name);
	if (el == NULL) {
		msg->elements = talloc_realloc(msg, msg->elements, struct ldb_message_element, msg->num_elements + 1);
		el = &msg->elements[msg->num_elements++];
		el->flags = 0;
		el->name = talloc_strndup(msg->elements, name, strlen(name));
		el->num_values = 0;
		el->values = NULL;
	}
	el->values = talloc_realloc(msg->elements, el->values, struct ldb_val, el->num_values + 1);
	struct ldb_val *v = &el->values[el->num_values++];
	v->data = talloc_array(el->values, uint8_t, len + 1);
	memcpy(v->data, data, len);
	v->data[len] = 0;
	v->length = len;
	return el;
}

static NOINLINE struct ldb_dn *ldb_dn_new(const void *ctx, const char *str, size_t len)
{
	struct ldb_dn *dn = talloc_zero(ctx, struct ldb_dn);
	dn->linearized = talloc_strndup(dn, str, len);
	dn->casefold = talloc_array(dn, char, len + 1);
	for (size_t i = 0; i <= len; i++) {
		dn->casefold[i] = (char)lower(dn->linearized[i]);
	}
	dn->valid_case = 1;
	for (const char *p = dn->linearized; *p;) {
		const char *eq = strchr(p, '='), *end;
		if (eq == NULL) {
			dn->invalid = 1;
			break;
		}
		for (end = eq; *end && *end != ','; end++);
		dn->components = talloc_realloc(dn, dn->components, struct ldb_dn_component, dn->comp_num + 1);
		struct ldb_dn_component *c = &dn->components[dn->comp_num++];
		c->name = talloc_strndup(dn->components, p, (size_t)(eq - p));
		c->value.length = (size_t)(end - eq - 1);
		c->value.data = talloc_array(dn->components, uint8_t, c->value.length + 1);
		memcpy(c->value.data, eq + 1, c->value.length);
		p = *end ? end + 1 : end;
	}
	return dn;
}

/* Whether dn is under base: components from the back. */
static NOINLINE bool ldb_dn_compare_base(const struct ldb_dn *base, const struct ldb_dn *dn)
{
	if (base->comp_num > dn->comp_num) {
		return false;
	}
	for (unsigned int i = 1; i <= base->comp_num; i++) {
		const struct ldb_dn_component *b = &base->components[base->comp_num - i], *d = &dn->components[dn->comp_num - i];
		if (attr_name_cmp(b->name, &(struct ldb_schema_attribute){ d->name, 0, NULL }) != 0 || ldb_comparison_fold(&b->value, &d->value) != 0) {
			return false;
		}
	}
	return true;
}

/* ---- ASN.1 ---- */

struct nesting { struct nesting *next; size_t start, taglen; };
struct asn1_data { uint8_t *data; size_t length, alloc, ofs; struct nesting *nesting; bool has_error; };

#define ASN1_APPLICATION(x) (0x60 + (x))
#define ASN1_CONTEXT(x) (0xA0 + (x))
#define ASN1_CONTEXT_SIMPLE(x) (0x80 + (x))
#define ASN1_SEQUENCE 0x30
#define ASN1_SET 0x31
#define ASN1_INTEGER 0x2
#define ASN1_OCTET_STRING 0x4

static void asn1_write_uint8(struct asn1_data *data, uint8_t v)
{
	if (data->ofs == data->alloc) {
		data->alloc = data->alloc ? data->alloc * 2 : 256;
		data->data = talloc_realloc(data, data->data, uint8_t, data->alloc);
	}
	data->data[data->ofs++] = v;
	if (data->ofs > data->length) {
		data->length = data->ofs;
	}
}

static NOINLINE void asn1_push_tag(struct asn1_data *data, uint8_t tag)
{
	struct nesting *nesting = talloc(data, struct nesting);
	asn1_write_uint8(data, tag);
	nesting->start = data->ofs;
	nesting->taglen = 0;
	nesting->next = data->nesting;
	data->nesting = nesting;
	asn1_write_uint8(data, 0xFF); /* becomes the length */
}

static NOINLINE void asn1_pop_tag(struct asn1_data *data)
{
	struct nesting *nesting = data->nesting;
	size_t len = data->ofs - (nesting->start + 1);
	unsigned int more = len > 0xFFFF ? 3 : len > 0xFF ? 2 : len > 127 ? 1 : 0;
	for (unsigned int i = 0; i < more; i++) {
		asn1_write_uint8(data, 0);
	}
	if (more) {
		for (size_t i = len; i-- > 0;) {
			data->data[nesting->start + 1 + more + i] = data->data[nesting->start + 1 + i];
		}
		data->data[nesting->start] = (uint8_t)(0x80 | more);
		for (unsigned int i = 0; i < more; i++) {
			data->data[nesting->start + 1 + i] = (uint8_t)(len >> (8 * (more - 1 - i)));
		}
	} else {
		data->data[nesting->start] = (uint8_t)len;
	}
	data->nesting = nesting->next;
	talloc_free(nesting);
}

static void asn1_write_integer(struct asn1_data *data, uint8_t tag, int v)
{
	asn1_push_tag(data, tag);
	int i = 3;
	while (i > 0 && (v >> (8 * i - 1)) == (v < 0 ? -1 : 0)) {
		i--;
	}
	for (; i >= 0; i--) {
		asn1_write_uint8(data, (uint8_t)(v >> (8 * i)));
	}
	asn1_pop_tag(data);
}

static void asn1_write_octets(struct asn1_data *data, uint8_t tag, const void *p, size_t len)
{
	const uint8_t *b = p;
	asn1_push_tag(data, tag);
	for (size_t i = 0; i < len; i++) {
		asn1_write_uint8(data, b[i]);
	}
	asn1_pop_tag(data);
}

static uint8_t asn1_read_uint8(struct asn1_data *data)
{
	if (data->ofs >= data->length) {
		data->has_error = true;
		return 0;
	}
	return data->data[data->ofs++];
}

static NOINLINE bool asn1_start_tag(struct asn1_data *data, uint8_t tag)
{
	if (asn1_read_uint8(data) != tag) {
		data->has_error = true;
		return false;
	}
	struct nesting *nesting = talloc(data, struct nesting);
	uint8_t b = asn1_read_uint8(data);
	nesting->taglen = b;
	if (b & 0x80) {
		nesting->taglen = 0;
		for (int n = b & 0x7f; n > 0; n--) {
			nesting->taglen = nesting->taglen << 8 | asn1_read_uint8(data);
		}
	}
	nesting->start = data->ofs;
	nesting->next = data->nesting;
	data->nesting = nesting;
	return !data->has_error;
}

static inline size_t asn1_tag_remaining(const struct asn1_data *data)
{
	return data->has_error ? 0 : data->nesting->taglen - (data->ofs - data->nesting->start);
}

static void asn1_end_tag(struct asn1_data *data)
{
	struct nesting *nesting = data->nesting;
	data->ofs = nesting->start + nesting->taglen;
	data->nesting = nesting->next;
	talloc_free(nesting);
}

static NOINLINE struct ldb_val asn1_read_octets(struct asn1_data *data, const void *ctx, uint8_t tag)
{
	struct ldb_val v = { NULL, 0 };
	if (asn1_start_tag(data, tag)) {
		v.length = asn1_tag_remaining(data);
		v.data = talloc_array(ctx, uint8_t, v.length + 1);
		for (size_t i = 0; i < v.length; i++) {
			v.data[i] = asn1_read_uint8(data);
		}
		v.data[v.length] = 0;
		asn1_end_tag(data);
	}
	return v;
}

static char *asn1_read_string(struct asn1_data *data, const void *ctx, uint8_t tag)
{
	char *s = NULL;
	if (asn1_start_tag(data, tag)) {
		size_t n = asn1_tag_remaining(data);
		s = talloc_array(ctx, char, n + 1);
		for (size_t i = 0; i < n; i++) {
			s[i] = (char)asn1_read_uint8(data);
		}
		s[n] = 0;
		asn1_end_tag(data);
	}
	return s;
}

static int asn1_read_integer(struct asn1_data *data, uint8_t tag)
{
	int v = 0;
	if (asn1_start_tag(data, tag)) {
		bool first = true;
		while (asn1_tag_remaining(data) > 0) {
			uint8_t b = asn1_read_uint8(data);
			v = first ? (int8_t)b : (int)((unsigned)v << 8 | b);
			first = false;
		}
		asn1_end_tag(data);
	}
	return v;
}

/* ---- filters ---- */

static const char *filter_value(const void *ctx, const char *s, struct ldb_val *v)
{
	const char *end = s;
	while (*end && *end != ')' && *end != '*') {
		end++;
	}
	v->length = (size_t)(end - s);
	v->data = talloc_array(ctx, uint8_t, v->length + 1);
	memcpy(v->data, s, v->length);
	v->data[v->length] = 0;
	return end;
}

static NOINLINE struct ldb_parse_tree *ldb_parse_filter(const void *ctx, const char **s)
{
	struct ldb_parse_tree *ret = talloc_zero(ctx, struct ldb_parse_tree);
	const char *p = *s + 1;
	if (*p == '&' || *p == '|') {
		ret->operation = *p == '&' ? LDB_OP_AND : LDB_OP_OR;
		p++;
		while (*p == '(') {
			ret->u.list.elements = talloc_realloc(ret, ret->u.list.elements, struct ldb_parse_tree *, ret->u.list.num_elements + 1);
			ret->u.list.elements[ret->u.list.num_elements++] = ldb_parse_filter(ret, &p);
		}
	} else if (*p == '!') {
		ret->operation = LDB_OP_NOT;
		p++;
		ret->u.isnot.child = ldb_parse_filter(ret, &p);
	} else {
		const char *name = p;
		while (*p != '=' && *p != '>' && *p != '<') {
			p++;
		}
		const char *attr = talloc_strndup(ret, name, (size_t)(p - name));
		if (*p != '=') {
			ret->operation = *p == '>' ? LDB_OP_GREATER : LDB_OP_LESS;
			ret->u.comparison.attr = attr;
			p = filter_value(ret, p + 2, &ret->u.comparison.value);
		} else if (p[1] == '*' && p[2] == ')') {
			ret->operation = LDB_OP_PRESENT;
			ret->u.present.attr = attr;
			p += 2;
		} else {
			struct ldb_val v;
			const char *end = p + 1;
			while (*end != ')' && *end != '*') {
				end++;
			}
			if (*end == '*') {
				ret->operation = LDB_OP_SUBSTRING;
				ret->u.substring.attr = attr;
				ret->u.substring.start_with_wildcard = p[1] == '*';
				for (p++; *p != ')';) {
					if (*p == '*') {
						p++;
						continue;
					}
					p = filter_value(ret, p, &v);
					ret->u.substring.chunks = talloc_realloc(ret, ret->u.substring.chunks, struct ldb_val, ret->u.substring.num_chunks + 1);
					ret->u.substring.chunks[ret->u.substring.num_chunks++] = v;
				}
				ret->u.substring.end_with_wildcard = p[-1] == '*';
			} else {
				ret->operation = LDB_OP_EQUALITY;
				ret->u.equality.attr = attr;
				p = filter_value(ret, p + 1, &ret->u.equality.value);
			}
		}
	}
	*s = p + 1;
	return ret;
}

static NOINLINE void ldap_push_filter(struct asn1_data *data, const struct ldb_parse_tree *tree)
{
	switch (tree->operation) {
	case LDB_OP_AND:
	case LDB_OP_OR:
		asn1_push_tag(data, ASN1_CONTEXT(tree->operation - 1));
		for (unsigned int i = 0; i < tree->u.list.num_elements; i++) {
			ldap_push_filter(data, tree->u.list.elements[i]);
		}
		asn1_pop_tag(data);
		break;
	case LDB_OP_NOT:
		asn1_push_tag(data, ASN1_CONTEXT(2));
		ldap_push_filter(data, tree->u.isnot.child);
		asn1_pop_tag(data);
		break;
	case LDB_OP_EQUALITY:
		asn1_push_tag(data, ASN1_CONTEXT(3));
		asn1_write_octets(data, ASN1_OCTET_STRING, tree->u.equality.attr, strlen(tree->u.equality.attr));
		asn1_write_octets(data, ASN1_OCTET_STRING, tree->u.equality.value.data, tree->u.equality.value.length);
		asn1_pop_tag(data);
		break;
	case LDB_OP_GREATER:
	case LDB_OP_LESS:
		asn1_push_tag(data, ASN1_CONTEXT(tree->operation == LDB_OP_GREATER ? 5 : 6));
		asn1_write_octets(data, ASN1_OCTET_STRING, tree->u.comparison.attr, strlen(tree->u.comparison.attr));
		asn1_write_octets(data, ASN1_OCTET_STRING, tree->u.comparison.value.data, tree->u.comparison.value.length);
		asn1_pop_tag(data);
		break;
	case LDB_OP_PRESENT:
		asn1_write_octets(data, ASN1_CONTEXT_SIMPLE(7), tree->u.present.attr, strlen(tree->u.present.attr));
		break;
	case LDB_OP_SUBSTRING:
		asn1_push_tag(data, ASN1_CONTEXT(4));
		asn1_write_octets(data, ASN1_OCTET_STRING, tree->u.substring.attr, strlen(tree->u.substring.attr));
		asn1_push_tag(data, ASN1_SEQUENCE);
		for (unsigned int i = 0; i < tree->u.substring.num_chunks; i++) {
			bool first = i == 0 && !tree->u.substring.start_with_wildcard, last = i + 1 == tree->u.substring.num_chunks && !tree->u.substring.end_with_wildcard;
			asn1_write_octets(data, ASN1_CONTEXT_SIMPLE(first ? 0 : last ? 2 : 1), tree->u.substring.chunks[i].data, tree->u.substring.chunks[i].length);
		}
		asn1_pop_tag(data);
		asn1_pop_tag(data);
		break;
	}
}

static NOINLINE struct ldb_parse_tree *ldap_decode_filter(const void *ctx, struct asn1_data *data)
{
	uint8_t tag = data->ofs < data->length ? data->data[data->ofs] : 0;
	struct ldb_parse_tree *ret = talloc_zero(ctx, struct ldb_parse_tree);
	switch (tag) {
	case ASN1_CONTEXT(0):
	case ASN1_CONTEXT(1):
		ret->operation = tag == ASN1_CONTEXT(0) ? LDB_OP_AND : LDB_OP_OR;
		asn1_start_tag(data, tag);
		while (asn1_tag_remaining(data) > 0) {
			ret->u.list.elements = talloc_realloc(ret, ret->u.list.elements, struct ldb_parse_tree *, ret->u.list.num_elements + 1);
			ret->u.list.elements[ret->u.list.num_elements++] = ldap_decode_filter(ret, data);
		}
		asn1_end_tag(data);
		break;
	case ASN1_CONTEXT(2):
		ret->operation = LDB_OP_NOT;
		asn1_start_tag(data, tag);
		ret->u.isnot.child = ldap_decode_filter(ret, data);
		asn1_end_tag(data);
		break;
	case ASN1_CONTEXT(3):
		ret->operation = LDB_OP_EQUALITY;
		asn1_start_tag(data, tag);
		ret->u.equality.attr = asn1_read_string(data, ret, ASN1_OCTET_STRING);
		ret->u.equality.value = asn1_read_octets(data, ret, ASN1_OCTET_STRING);
		asn1_end_tag(data);
		break;
	case ASN1_CONTEXT(5):
	case ASN1_CONTEXT(6):
		ret->operation = tag == ASN1_CONTEXT(5) ? LDB_OP_GREATER : LDB_OP_LESS;
		asn1_start_tag(data, tag);
		ret->u.comparison.attr = asn1_read_string(data, ret, ASN1_OCTET_STRING);
		ret->u.comparison.value = asn1_read_octets(data, ret, ASN1_OCTET_STRING);
		asn1_end_tag(data);
		break;
	case ASN1_CONTEXT(4):
		ret->operation = LDB_OP_SUBSTRING;
		asn1_start_tag(data, tag);
		ret->u.substring.attr = asn1_read_string(data, ret, ASN1_OCTET_STRING);
		ret->u.substring.start_with_wildcard = ret->u.substring.end_with_wildcard = 1;
		asn1_start_tag(data, ASN1_SEQUENCE);
		while (asn1_tag_remaining(data) > 0) {
			uint8_t kind = data->data[data->ofs];
			ret->u.substring.chunks = talloc_realloc(ret, ret->u.substring.chunks, struct ldb_val, ret->u.substring.num_chunks + 1);
			ret->u.substring.chunks[ret->u.substring.num_chunks++] = asn1_read_octets(data, ret, kind);
			if (kind == ASN1_CONTEXT_SIMPLE(0)) {
				ret->u.substring.start_with_wildcard = 0;
			} else if (kind == ASN1_CONTEXT_SIMPLE(2)) {
				ret->u.substring.end_with_wildcard = 0;
			}
		}
		asn1_end_tag(data);
		asn1_end_tag(data);
		break;
	default:
		ret->operation = LDB_OP_PRESENT;
		ret->u.present.attr = asn1_read_string(data, ret, ASN1_CONTEXT_SIMPLE(7));
	}
	return ret;
}

static bool ldb_wildcard_compare(const struct ldb_parse_tree *tree, const struct ldb_val *value)
{
	const uint8_t *at = value->data;
	size_t left = value->length;
	for (unsigned int c = 0; c < tree->u.substring.num_chunks; c++) {
		const struct ldb_val *chunk = &tree->u.substring.chunks[c];
		bool found = false;
		while (left >= chunk->length && !found) {
			size_t i = 0;
			while (i < chunk->length && lower(at[i]) == lower(chunk->data[i])) {
				i++;
			}
			found = i == chunk->length;
			if (!found && c == 0 && !tree->u.substring.start_with_wildcard) {
				return false;
			}
			at += found ? chunk->length : 1;
			left -= found ? chunk->length : 1;
		}
		if (!found) {
			return false;
		}
	}
	return tree->u.substring.end_with_wildcard || left == 0;
}

static NOINLINE bool ldb_match_message(const struct ldb_message *msg, const struct ldb_parse_tree *tree)
{
	const struct ldb_schema_attribute *a;
	struct ldb_message_element *el;
	switch (tree->operation) {
	case LDB_OP_AND:
		for (unsigned int i = 0; i < tree->u.list.num_elements; i++) {
			if (!ldb_match_message(msg, tree->u.list.elements[i])) {
				return false;
			}
		}
		return true;
	case LDB_OP_OR:
		for (unsigned int i = 0; i < tree->u.list.num_elements; i++) {
			if (ldb_match_message(msg, tree->u.list.elements[i])) {
				return true;
			}
		}
		return false;
	case LDB_OP_NOT:
		return !ldb_match_message(msg, tree->u.isnot.child);
	case LDB_OP_PRESENT:
		return ldb_msg_find_element(msg, tree->u.present.attr) != NULL;
	case LDB_OP_EQUALITY:
		el = ldb_msg_find_element(msg, tree->u.equality.attr);
		if (el == NULL) {
			return false;
		}
		a = ldb_schema_attribute_by_name(el->name);
		for (unsigned int i = 0; i < el->num_values; i++) {
			a->syntax->compared++;
			if (a->syntax->comparison_fn(&tree->u.equality.value, &el->values[i]) == 0) {
				return true;
			}
		}
		return false;
	case LDB_OP_GREATER:
	case LDB_OP_LESS:
		el = ldb_msg_find_element(msg, tree->u.comparison.attr);
		if (el == NULL) {
			return false;
		}
		a = ldb_schema_attribute_by_name(el->name);
		for (unsigned int i = 0; i < el->num_values; i++) {
			int r = a->syntax->comparison_fn(&el->values[i], &tree->u.comparison.value);
			if (tree->operation == LDB_OP_GREATER ? r >= 0 : r <= 0) {
				return true;
			}
		}
		return false;
	case LDB_OP_SUBSTRING:
		el = ldb_msg_find_element(msg, tree->u.substring.attr);
		for (unsigned int i = 0; el != NULL && i < el->num_values; i++) {
			if (ldb_wildcard_compare(tree, &el->values[i])) {
				return true;
			}
		}
		return false;
	}
	return false;
}

/* ---- records: packed and unpacked ---- */

static uint8_t *put_number(uint8_t *p, uint32_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint32_t pull_number(const uint8_t **p)
{
	const uint8_t *b = *p;
	uint32_t v = *b & 0x7f;
	for (unsigned int shift = 7; *b++ & 0x80; shift += 7) {
		v |= (uint32_t)(*b & 0x7f) << shift;
	}
	*p = b;
	return v;
}

static uint8_t *put_bytes(uint8_t *p, const void *data, size_t len)
{
	const uint8_t *b = data;
	for (size_t i = 0; i < len; i++) {
		*p++ = b[i];
	}
	*p++ = 0;
	return p;
}

static NOINLINE void ldb_pack_data(const struct ldb_message *msg, struct tdb_record *rec)
{
	size_t size = 10 + strlen(msg->dn->linearized) + 1;
	for (unsigned int i = 0; i < msg->num_elements; i++) {
		size += 4 + strlen(msg->elements[i].name) + 1;
		for (unsigned int j = 0; j < msg->elements[i].num_values; j++) {
			size += 5 + msg->elements[i].values[j].length;
		}
	}
	talloc_free(rec->data);
	uint8_t *p = rec->data = talloc_array(rec, uint8_t, (size + 127) & ~(size_t)127);
	rec->data_len = (uint32_t)size;
	p = put_number(p, 0x26011967);
	p = put_number(p, msg->num_elements);
	p = put_bytes(p, msg->dn->linearized, strlen(msg->dn->linearized));
	for (unsigned int i = 0; i < msg->num_elements; i++) {
		const struct ldb_message_element *el = &msg->elements[i];
		p = put_bytes(p, el->name, strlen(el->name));
		p = put_number(p, el->num_values);
		for (unsigned int j = 0; j < el->num_values; j++) {
			p = put_number(p, (uint32_t)el->values[j].length);
			p = put_bytes(p, el->values[j].data, el->values[j].length);
		}
	}
}

static NOINLINE struct ldb_message *ldb_unpack_data(const void *ctx, const struct tdb_record *rec)
{
	struct ldb_message *msg = talloc_zero(ctx, struct ldb_message);
	const uint8_t *p = rec->data;
	if (pull_number(&p) != 0x26011967) {
		abort();
	}
	unsigned int n = pull_number(&p);
	size_t len = strlen((const char *)p);
	msg->dn = ldb_dn_new(msg, (const char *)p, len);
	p += len + 1;
	msg->elements = talloc_array(msg, struct ldb_message_element, n);
	msg->num_elements = n;
	for (unsigned int i = 0; i < n; i++) {
		struct ldb_message_element *el = &msg->elements[i];
		el->flags = 0;
		len = strlen((const char *)p);
		el->name = talloc_strndup(msg->elements, (const char *)p, len);
		p += len + 1;
		el->num_values = pull_number(&p);
		el->values = talloc_array(msg->elements, struct ldb_val, el->num_values);
		for (unsigned int j = 0; j < el->num_values; j++) {
			struct ldb_val *v = &el->values[j];
			v->length = pull_number(&p);
			v->data = talloc_array(el->values, uint8_t, v->length + 1);
			memcpy(v->data, p, v->length);
			v->data[v->length] = 0;
			p += v->length + 1;
		}
	}
	return msg;
}

/* ---- the backend: a hash table of records, and indexes ---- */

static uint32_t fold_hash(const uint8_t *p, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++) {
		value = value * 1103515243u + (uint32_t)lower(p[i]) * 12345u;
		value ^= value >> 13;
	}
	return value;
}

static NOINLINE struct tdb_record *tdb_fetch(struct ltdb_private *ltdb, const char *casefold)
{
	uint32_t hash = fold_hash((const uint8_t *)casefold, strlen(casefold), 7);
	for (struct tdb_record *rec = ltdb->hash_table[hash % TDB_HASH_SIZE]; rec != NULL; rec = rec->next) {
		if (rec->full_hash == hash) {
			return rec;
		}
	}
	return NULL;
}

static NOINLINE struct ldb_index_entry *ldb_index_find(struct ltdb_private *ltdb, const struct ldb_schema_attribute *a, const struct ldb_val *v, bool create)
{
	uint32_t hash = fold_hash(v->data, v->length, (uint32_t)(a - attributes) + 99);
	struct ldb_index_entry **head = &ltdb->index[hash % INDEX_HASH_SIZE], *e;
	for (e = *head; e != NULL; e = e->next) {
		if (e->hash == hash && e->attr == a && a->syntax->comparison_fn(&e->key, v) == 0) {
			return e;
		}
	}
	if (!create) {
		return NULL;
	}
	e = talloc_zero(ltdb, struct ldb_index_entry);
	e->attr = a;
	e->hash = hash;
	e->key.length = v->length;
	e->key.data = talloc_array(e, uint8_t, v->length + 1);
	memcpy(e->key.data, v->data, v->length);
	e->next = *head;
	*head = e;
	return e;
}

static unsigned int dn_list_place(const struct dn_list *list, uint32_t id)
{
	unsigned int lo = 0, hi = list->count;
	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		if (list->ids[mid] < id) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static NOINLINE void ldb_index_update(struct ltdb_private *ltdb, const struct ldb_message *msg, uint32_t id, bool add)
{
	for (unsigned int i = 0; i < msg->num_elements; i++) {
		const struct ldb_schema_attribute *a = ldb_schema_attribute_by_name(msg->elements[i].name);
		if (!(a->flags & LDB_ATTR_FLAG_INDEXED)) {
			continue;
		}
		for (unsigned int j = 0; j < msg->elements[i].num_values; j++) {
			struct ldb_index_entry *e = ldb_index_find(ltdb, a, &msg->elements[i].values[j], true);
			struct dn_list *list = &e->list;
			unsigned int at = dn_list_place(list, id);
			if (add) {
				if (list->count == list->alloc) {
					list->alloc = list->alloc ? 2 * list->alloc : 2;
					list->ids = talloc_realloc(e, list->ids, uint32_t, list->alloc);
				}
				for (unsigned int k = list->count; k > at; k--) {
					list->ids[k] = list->ids[k - 1];
				}
				list->ids[at] = id;
				list->count++;
			} else if (at < list->count && list->ids[at] == id) {
				for (unsigned int k = at; k + 1 < list->count; k++) {
					list->ids[k] = list->ids[k + 1];
				}
				list->count--;
			}
		}
	}
}

/* The candidates that the indexes know of, or NULL if they do not help. */
static NOINLINE struct dn_list *ldb_index_dn(const void *ctx, struct ltdb_private *ltdb, const struct ldb_parse_tree *tree)
{
	struct dn_list *list = NULL;
	if (tree->operation == LDB_OP_EQUALITY) {
		const struct ldb_schema_attribute *a = ldb_schema_attribute_by_name(tree->u.equality.attr);
		if (!(a->flags & LDB_ATTR_FLAG_INDEXED)) {
			return NULL;
		}
		list = talloc_zero(ctx, struct dn_list);
		struct ldb_index_entry *e = ldb_index_find(ltdb, a, &tree->u.equality.value, false);
		if (e != NULL && e->list.count) {
			list->ids = talloc_array(list, uint32_t, e->list.count);
			memcpy(list->ids, e->list.ids, e->list.count * sizeof(uint32_t));
			list->count = e->list.count;
		}
	} else if (tree->operation == LDB_OP_AND || tree->operation == LDB_OP_OR) {
		for (unsigned int i = 0; i < tree->u.list.num_elements; i++) {
			struct dn_list *l2 = ldb_index_dn(ctx, ltdb, tree->u.list.elements[i]), *both;
			if (l2 == NULL) {
				if (tree->operation == LDB_OP_OR) {
					return NULL;
				}
				continue;
			}
			if (list == NULL) {
				list = l2;
				continue;
			}
			both = talloc_zero(ctx, struct dn_list);
			both->ids = talloc_array(both, uint32_t, list->count + l2->count + 1);
			unsigned int x = 0, y = 0;
			while (x < list->count || y < l2->count) {
				uint32_t u = x < list->count ? list->ids[x] : UINT32_MAX, v = y < l2->count ? l2->ids[y] : UINT32_MAX;
				if (u == v || tree->operation == LDB_OP_OR) {
					both->ids[both->count++] = u < v ? u : v;
				}
				x += u <= v;
				y += v <= u;
			}
			talloc_free(list);
			talloc_free(l2);
			list = both;
		}
	}
	return list;
}

static int ltdb_search(struct ldb_module *module, struct ldb_request *req)
{
	struct ltdb_private *ltdb = module->private_data;
	struct dn_list *list = ldb_index_dn(req, ltdb, req->op.search.tree);
	uint32_t count = list != NULL ? list->count : ltdb->next_id;
	module->requests++;
	if (list != NULL) {
		ltdb->indexed++;
	} else {
		ltdb->full++;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct tdb_record *rec = ltdb->by_id[list != NULL ? list->ids[i] : i];
		if (rec == NULL || rec->data_len == 0) {
			continue;
		}
		struct ldb_message *msg = ldb_unpack_data(req, rec);
		ltdb->unpacked++;
		req->handle.visited++;
		if (!ldb_match_message(msg, req->op.search.tree) || !ldb_dn_compare_base(req->op.search.base, msg->dn)) {
			talloc_free(msg);
			continue;
		}
		struct ldb_reply ares = { LDB_SUCCESS, 1, msg };
		req->handle.entries++;
		int ret = req->callback(req, &ares);
		if (ret != LDB_SUCCESS) {
			return ret;
		}
	}
	talloc_free(list);
	struct ldb_reply done = { LDB_SUCCESS, 0, NULL };
	return req->callback(req, &done);
}

static int ltdb_add(struct ldb_module *module, struct ldb_request *req)
{
	struct ltdb_private *ltdb = module->private_data;
	struct ldb_message *msg = req->op.add.message;
	if (ltdb->next_id == ltdb->max_id || tdb_fetch(ltdb, msg->dn->casefold) != NULL) {
		return LDB_ERR_ENTRY_ALREADY_EXISTS;
	}
	struct tdb_record *rec = talloc_zero(ltdb, struct tdb_record);
	rec->full_hash = fold_hash((const uint8_t *)msg->dn->casefold, strlen(msg->dn->casefold), 7);
	rec->id = ltdb->next_id++;
	rec->next = ltdb->hash_table[rec->full_hash % TDB_HASH_SIZE];
	ltdb->hash_table[rec->full_hash % TDB_HASH_SIZE] = rec;
	ltdb->by_id[rec->id] = rec;
	ltdb->live++;
	ldb_pack_data(msg, rec);
	ldb_index_update(ltdb, msg, rec->id, true);
	return LDB_SUCCESS;
}

static int ltdb_modify(struct ldb_module *module, struct ldb_request *req)
{
	struct ltdb_private *ltdb = module->private_data;
	struct tdb_record *rec = ltdb->by_id[req->op.mod.id];
	if (rec == NULL) {
		return LDB_ERR_NO_SUCH_OBJECT;
	}
	struct ldb_message *msg = ldb_unpack_data(req, rec);
	ldb_index_update(ltdb, msg, rec->id, false);
	struct ldb_message_element *el = ldb_msg_find_element(msg, req->op.mod.el->name);
	if (el != NULL) {
		el->values = talloc_steal(msg->elements, req->op.mod.el->values);
		el->num_values = req->op.mod.el->num_values;
	}
	ldb_pack_data(msg, rec);
	ldb_index_update(ltdb, msg, rec->id, true);
	talloc_free(msg);
	return LDB_SUCCESS;
}

static const struct ldb_module_ops ltdb_ops = { "tdb", ltdb_search, ltdb_add, ltdb_modify, NULL };

/* ---- modules that stand before it ---- */

#define FIND_OP(module, op) do { module = (module)->next; while ((module)->ops->op == NULL) module = (module)->next; } while (0)

static int next_search(struct ldb_module *module, struct ldb_request *req) { FIND_OP(module, search); return module->ops->search(module, req); }
static int next_add(struct ldb_module *module, struct ldb_request *req) { FIND_OP(module, add); return module->ops->add(module, req); }
static int next_modify(struct ldb_module *module, struct ldb_request *req) { FIND_OP(module, modify); return module->ops->modify(module, req); }

static int rdn_name_add(struct ldb_module *module, struct ldb_request *req)
{
	struct rdn_private *rdn = module->private_data;
	struct ldb_message *msg = req->op.add.message;
	const struct ldb_dn_component *c = &msg->dn->components[0];
	module->requests++;
	if (ldb_msg_find_element(msg, c->name) == NULL) {
		ldb_msg_add(msg, c->name, c->value.data, c->value.length);
		rdn->names++;
	}
	return next_add(module, req);
}
static const struct ldb_module_ops rdn_name_ops = { "rdn_name", NULL, rdn_name_add, NULL, NULL };

static int operational_add(struct ldb_module *module, struct ldb_request *req)
{
	struct operational_private *op = module->private_data;
	char stamp[24];
	int n = snprintf(stamp, sizeof(stamp), "%lu", (unsigned long)++op->usn);
	op->stamps[op->usn % 16]++;
	ldb_msg_add(req->op.add.message, "whenChanged", (const uint8_t *)stamp, (size_t)n);
	module->requests++;
	return next_add(module, req);
}

static int operational_modify(struct ldb_module *module, struct ldb_request *req)
{
	struct operational_private *op = module->private_data;
	op->stamps[++op->usn % 16]++;
	module->requests++;
	return next_modify(module, req);
}
static const struct ldb_module_ops operational_ops = { "operational", NULL, operational_add, operational_modify, NULL };

struct sort_context {
	struct ldb_module *module;
	struct ldb_request *up;
	const struct ldb_schema_attribute *attr;
	const char *attr_name;
	struct ldb_message **msgs;
	unsigned int num_msgs;
};

static struct sort_context *sorting; /* qsort() has no place for it */

static int sort_compare(const void *p1, const void *p2)
{
	const struct ldb_message *m1 = *(struct ldb_message *const *)p1, *m2 = *(struct ldb_message *const *)p2;
	const struct ldb_message_element *e1 = ldb_msg_find_element(m1, sorting->attr_name), *e2 = ldb_msg_find_element(m2, sorting->attr_name);
	if (e1 == NULL || e2 == NULL) {
		return (e1 == NULL) - (e2 == NULL);
	}
	return sorting->attr->syntax->comparison_fn(&e1->values[0], &e2->values[0]);
}

static int server_sort_callback(struct ldb_request *req, struct ldb_reply *ares)
{
	struct sort_context *ac = req->context;
	if (ares->type == 1) {
		ac->msgs = talloc_realloc(ac, ac->msgs, struct ldb_message *, ac->num_msgs + 1);
		ac->msgs[ac->num_msgs++] = talloc_steal(ac, ares->message);
		return LDB_SUCCESS;
	}
	sorting = ac;
	if (ac->num_msgs > 1) {
		qsort(ac->msgs, ac->num_msgs, sizeof(struct ldb_message *), sort_compare);
	}
	for (unsigned int i = 0; i < ac->num_msgs; i++) {
		struct ldb_reply r = { LDB_SUCCESS, 1, ac->msgs[i] };
		ac->up->handle.entries++;
		ac->up->callback(ac->up, &r);
	}
	return ac->up->callback(ac->up, ares);
}

static int server_sort_search(struct ldb_module *module, struct ldb_request *req)
{
	struct sort_private *sort = module->private_data;
	module->requests++;
	if (req->op.search.sort_attr == NULL) {
		return next_search(module, req);
	}
	struct ldb_request *down = talloc_zero(req, struct ldb_request);
	struct sort_context *ac = talloc_zero(down, struct sort_context);
	ac->module = module;
	ac->up = req;
	ac->attr_name = req->op.search.sort_attr;
	ac->attr = ldb_schema_attribute_by_name(ac->attr_name);
	down->operation = LDB_SEARCH;
	down->op.search = req->op.search;
	down->context = ac;
	down->callback = server_sort_callback;
	sort->sorted++;
	int ret = next_search(module, down);
	req->handle.visited += down->handle.visited;
	return ret;
}
static const struct ldb_module_ops server_sort_ops = { "server_sort", server_sort_search, NULL, NULL, NULL };

static void ldb_load_module(struct ldb_context *ldb, const struct ldb_module_ops *ops, void *private_data)
{
	struct ldb_module *m = talloc_zero(ldb, struct ldb_module), **last = &ldb->modules;
	m->ops = ops;
	m->ldb = ldb;
	m->private_data = talloc_steal(m, private_data);
	while (*last != NULL) {
		m->prev = *last;
		last = &(*last)->next;
	}
	*last = m;
}

/* ---- the server: messages in, messages out ---- */

struct ldapsrv_call { struct ldb_context *ldb; struct asn1_data *reply; int messageid; unsigned int sent; size_t bytes; };
static struct ldapsrv_stats { uint64_t searches, adds, modifies, entries, errors, bytes; } ldapsrv;

static int request_destructor(void *ptr)
{
	const struct ldb_request *req = ptr;
	ldapsrv.entries += req->handle.entries;
	return 0;
}

static int ldapsrv_search_callback(struct ldb_request *req, struct ldb_reply *ares)
{
	struct ldapsrv_call *call = req->context;
	struct asn1_data *data = call->reply;
	data->ofs = data->length = 0;
	asn1_push_tag(data, ASN1_SEQUENCE);
	asn1_write_integer(data, ASN1_INTEGER, call->messageid);
	asn1_push_tag(data, ASN1_APPLICATION(ares->type ? 4 : 5));
	if (ares->type) {
		asn1_write_octets(data, ASN1_OCTET_STRING, ares->message->dn->linearized, strlen(ares->message->dn->linearized));
		asn1_push_tag(data, ASN1_SEQUENCE);
		for (unsigned int i = 0; i < ares->message->num_elements; i++) {
			const struct ldb_message_element *el = &ares->message->elements[i];
			asn1_push_tag(data, ASN1_SEQUENCE);
			asn1_write_octets(data, ASN1_OCTET_STRING, el->name, strlen(el->name));
			asn1_push_tag(data, ASN1_SET);
			for (unsigned int j = 0; j < el->num_values; j++) {
				asn1_write_octets(data, ASN1_OCTET_STRING, el->values[j].data, el->values[j].length);
			}
			asn1_pop_tag(data);
			asn1_pop_tag(data);
		}
		asn1_pop_tag(data);
	} else {
		asn1_write_integer(data, 0x0a, ares->error);
	}
	asn1_pop_tag(data);
	asn1_pop_tag(data);
	call->bytes += data->length;
	return ++call->sent > 150 && ares->type ? LDB_ERR_OPERATIONS_ERROR : LDB_SUCCESS;
}

static NOINLINE void ldapsrv_process(struct ldb_context *ldb, struct asn1_data *in, struct asn1_data *out)
{
	struct ldb_request *req = talloc_zero(in, struct ldb_request);
	struct ldapsrv_call *call = talloc_zero(req, struct ldapsrv_call);
	struct ldb_module *first = ldb->modules;
	int ret = LDB_SUCCESS;
	talloc_set_destructor(req, request_destructor);
	in->ofs = 0;
	asn1_start_tag(in, ASN1_SEQUENCE);
	call->ldb = ldb;
	call->reply = out;
	call->messageid = asn1_read_integer(in, ASN1_INTEGER);
	req->context = call;
	req->callback = ldapsrv_search_callback;
	ldb->sequence++;
	if (in->data[in->ofs] == ASN1_APPLICATION(3)) {
		asn1_start_tag(in, ASN1_APPLICATION(3));
		struct ldb_val base = asn1_read_octets(in, req, ASN1_OCTET_STRING), sort;
		req->operation = LDB_SEARCH;
		req->op.search.base = ldb_dn_new(req, (const char *)base.data, base.length);
		req->op.search.scope = asn1_read_integer(in, 0x0a);
		req->op.search.tree = ldap_decode_filter(req, in);
		sort = asn1_read_octets(in, req, ASN1_OCTET_STRING);
		req->op.search.sort_attr = sort.length ? talloc_strndup(req, (const char *)sort.data, sort.length) : NULL;
		asn1_end_tag(in);
		ldapsrv.searches++;
		ret = first->ops->search ? first->ops->search(first, req) : next_search(first, req);
	} else if (in->data[in->ofs] == ASN1_APPLICATION(8)) {
		struct ldb_message *msg = talloc_zero(req, struct ldb_message);
		asn1_start_tag(in, ASN1_APPLICATION(8));
		struct ldb_val dn = asn1_read_octets(in, req, ASN1_OCTET_STRING);
		msg->dn = ldb_dn_new(msg, (const char *)dn.data, dn.length);
		asn1_start_tag(in, ASN1_SEQUENCE);
		while (asn1_tag_remaining(in) > 0) {
			asn1_start_tag(in, ASN1_SEQUENCE);
			const char *name = asn1_read_string(in, req, ASN1_OCTET_STRING);
			asn1_start_tag(in, ASN1_SET);
			while (asn1_tag_remaining(in) > 0) {
				struct ldb_val v = asn1_read_octets(in, req, ASN1_OCTET_STRING);
				ldb_msg_add(msg, name, v.data, v.length);
			}
			asn1_end_tag(in);
			asn1_end_tag(in);
		}
		asn1_end_tag(in);
		asn1_end_tag(in);
		req->operation = LDB_ADD;
		req->op.add.message = msg;
		ldapsrv.adds++;
		ret = next_add(first, req);
	} else {
		asn1_start_tag(in, ASN1_APPLICATION(6));
		struct ldb_message *msg = talloc_zero(req, struct ldb_message);
		req->op.mod.id = (uint32_t)asn1_read_integer(in, ASN1_INTEGER);
		const char *name = asn1_read_string(in, req, ASN1_OCTET_STRING);
		struct ldb_val v = asn1_read_octets(in, req, ASN1_OCTET_STRING);
		req->operation = LDB_MODIFY;
		req->op.mod.el = ldb_msg_add(msg, name, v.data, v.length);
		asn1_end_tag(in);
		ldapsrv.modifies++;
		ret = next_modify(first, req);
	}
	ldapsrv.errors += ret != LDB_SUCCESS || in->has_error;
	asn1_end_tag(in);
	ldapsrv.bytes += call->bytes;
	talloc_free(req);
}

static const char *const names[] = { "Anna", "Bernhard", "Clara", "Dieter", "Emil", "Frieda", "Gustav", "Hanna", "Ilse", "Johann", "Karl", "Lotte", "Max", "Nora", "Otto", "Paula" };
static const char *const families[] = { "Adler", "Bauer", "Conrad", "Dorn", "Engel", "Fuchs", "Graf", "Huber", "Ide", "Jung", "Keller", "Lang", "Maier", "Neumann", "Ott", "Pohl", "Quast", "Roth" };

static void write_attribute(struct asn1_data *data, const char *name, const char *value)
{
	asn1_push_tag(data, ASN1_SEQUENCE);
	asn1_write_octets(data, ASN1_OCTET_STRING, name, strlen(name));
	asn1_push_tag(data, ASN1_SET);
	for (const char *end; *value; value = *end ? end + 1 : end) {
		for (end = value; *end && *end != '|'; end++);
		asn1_write_octets(data, ASN1_OCTET_STRING, value, (size_t)(end - value));
	}
	asn1_pop_tag(data);
	asn1_pop_tag(data);
}

static NOINLINE void client_add(struct asn1_data *data, unsigned int n)
{
	uint64_t r = tr_rand() >> 9;
	const char *given = names[r % ARRAY_SIZE(names)], *sn = families[(r >> 8) % ARRAY_SIZE(families)];
	char text[160];
	asn1_push_tag(data, ASN1_SEQUENCE);
	asn1_write_integer(data, ASN1_INTEGER, (int)n);
	asn1_push_tag(data, ASN1_APPLICATION(8));
	int len = snprintf(text, sizeof(text), "CN=%s %s %u,OU=Unit%u,DC=example,DC=org", given, sn, n, n % 12);
	asn1_write_octets(data, ASN1_OCTET_STRING, text, (size_t)len);
	asn1_push_tag(data, ASN1_SEQUENCE);
	write_attribute(data, "objectClass", n % 9 ? "top|person|posixAccount" : "top|group");
	write_attribute(data, "givenName", given);
	write_attribute(data, "sn", sn);
	snprintf(text, sizeof(text), "%u", 1000 + n);
	write_attribute(data, "uidNumber", text);
	snprintf(text, sizeof(text), "%u", 100 + (unsigned)(r >> 20) % 60);
	write_attribute(data, "gidNumber", text);
	snprintf(text, sizeof(text), "%s.%s@example.org|%s%u@example.com", given, sn, sn, n);
	write_attribute(data, "mail", text);
	snprintf(text, sizeof(text), "The %uth of %s, room %u", n % 40, sn, (unsigned)(r >> 30) % 500);
	write_attribute(data, "description", text);
	asn1_pop_tag(data);
	asn1_pop_tag(data);
	asn1_pop_tag(data);
}

static NOINLINE void client_search(struct asn1_data *data, int id)
{
	uint64_t r = tr_rand() >> 9;
	const char *given = names[r % ARRAY_SIZE(names)], *sn = families[(r >> 8) % ARRAY_SIZE(families)];
	char text[256], base[64];
	static const char *const sorts[] = { "", "cn", "uidNumber", "mail" };
	switch (r >> 16 & 7) {
	case 0: snprintf(text, sizeof(text), "(&(objectClass=person)(sn=%s)(givenName=%s))", sn, given); break;
	case 1: snprintf(text, sizeof(text), "(|(uidNumber=%u)(uidNumber=%u)(uidNumber=%u))", 1000 + (unsigned)(r >> 20) % 1500, 1000 + (unsigned)(r >> 24) % 1500, 1000 + (unsigned)(r >> 28) % 1500); break;
	case 2: snprintf(text, sizeof(text), "(&(gidNumber=%u)(!(sn=%s))(mail=*%.3s*.org))", 100 + (unsigned)(r >> 20) % 60, sn, given); break;
	case 3: snprintf(text, sizeof(text), "(&(sn=%s)(uidNumber>=%u)(uidNumber<=%u))", sn, 1000 + (unsigned)(r >> 20) % 1000, 2000 + (unsigned)(r >> 30) % 500); break;
	case 4: snprintf(text, sizeof(text), "(&(objectClass=group)(|(description=*room 1*)(givenName=%s)))", given); break;
	case 5: snprintf(text, sizeof(text), "(&(|(sn=%s)(sn=%s))(mail=*)(!(jpegPhoto=*)))", sn, families[(r >> 40) % ARRAY_SIZE(families)]); break;
	case 6: snprintf(text, sizeof(text), "(&(gidNumber=%u)(objectClass=top))", 100 + (unsigned)(r >> 20) % 60); break;
	default:
		if ((r >> 50 & 7) == 0) {
			snprintf(text, sizeof(text), "(&(description=The*%.2s*room *)(mail=%s*))", sn, given);
		} else {
			snprintf(text, sizeof(text), "(gidNumber=%u)", 100 + (unsigned)(r >> 20) % 60);
		}
	}
	snprintf(base, sizeof(base), r >> 44 & 1 ? "DC=example,DC=org" : "ou=unit%u,dc=Example,dc=org", (unsigned)(r >> 33) % 12);
	const char *s = text;
	struct ldb_parse_tree *tree = ldb_parse_filter(data, &s);
	asn1_push_tag(data, ASN1_SEQUENCE);
	asn1_write_integer(data, ASN1_INTEGER, id);
	asn1_push_tag(data, ASN1_APPLICATION(3));
	asn1_write_octets(data, ASN1_OCTET_STRING, base, strlen(base));
	asn1_write_integer(data, 0x0a, 2);
	ldap_push_filter(data, tree);
	asn1_write_octets(data, ASN1_OCTET_STRING, sorts[r >> 48 & 3], strlen(sorts[r >> 48 & 3]));
	asn1_pop_tag(data);
	asn1_pop_tag(data);
	talloc_free(tree);
}

static void client_modify(struct asn1_data *data, int id, uint32_t live)
{
	char text[16];
	asn1_push_tag(data, ASN1_SEQUENCE);
	asn1_write_integer(data, ASN1_INTEGER, id);
	asn1_push_tag(data, ASN1_APPLICATION(6));
	asn1_write_integer(data, ASN1_INTEGER, (int)(tr_rand() % live));
	asn1_write_octets(data, ASN1_OCTET_STRING, "gidNumber", 9);
	snprintf(text, sizeof(text), "%u", 100 + (unsigned)(tr_rand() >> 20) % 60);
	asn1_write_octets(data, ASN1_OCTET_STRING, text, strlen(text));
	asn1_pop_tag(data);
	asn1_pop_tag(data);
}

int main(int argc, char **argv)
{
	tr_init(argc, argv);
	TR_GLOBAL(syntaxes, "struct ldb_schema_syntax []");
	TR_GLOBAL(attributes, "struct ldb_schema_attribute []");
	TR_GLOBAL(ldapsrv, "struct ldapsrv_stats");
	TR_GLOBAL(talloc_stats, "struct talloc_statistics");
	TR_GLOBAL(sorting, "struct sort_context *");
	TR_CHECK(struct talloc_chunk, name);
	TR_CHECK(struct ldb_message, elements);
	TR_CHECK(struct ldb_request, handle);
	struct ldb_context *ldb = talloc_zero(NULL, struct ldb_context);
	struct ltdb_private *ltdb = talloc_zero(ldb, struct ltdb_private);
	ltdb->max_id = 1500;
	ltdb->hash_table = memset(talloc_array(ltdb, struct tdb_record *, TDB_HASH_SIZE), 0, TDB_HASH_SIZE * sizeof(void *));
	ltdb->by_id = memset(talloc_array(ltdb, struct tdb_record *, ltdb->max_id), 0, ltdb->max_id * sizeof(void *));
	ltdb->index = memset(talloc_array(ltdb, struct ldb_index_entry *, INDEX_HASH_SIZE), 0, INDEX_HASH_SIZE * sizeof(void *));
	ldb_load_module(ldb, &server_sort_ops, talloc_zero(ldb, struct sort_private));
	ldb_load_module(ldb, &operational_ops, talloc_zero(ldb, struct operational_private));
	ldb_load_module(ldb, &rdn_name_ops, talloc_zero(ldb, struct rdn_private));
	ldb_load_module(ldb, &ltdb_ops, ltdb);
	struct asn1_data *out = talloc_zero(NULL, struct asn1_data);
	struct asn1_data *in = talloc_zero(NULL, struct asn1_data);
	for (unsigned int i = 0; i < 1500; i++) {
		in->ofs = in->length = 0;
		client_add(in, i);
		ldapsrv_process(ldb, in, out);
	}
	for (int id = 0; tr_more(); id++) {
		in->ofs = in->length = 0;
		in->has_error = false;
		if (id % 4 == 3) {
			client_modify(in, id, ltdb->live);
		} else {
			client_search(in, id);
		}
		ldapsrv_process(ldb, in, out);
	}
	if (getenv("SHOW")) {
		fprintf(stderr, "searches %lu adds %lu modifies %lu entries %lu errors %lu bytes %lu; unpacked %lu indexed %lu full %lu; chunks %lu reused %lu\n", ldapsrv.searches, ldapsrv.adds, ldapsrv.modifies, ldapsrv.entries, ldapsrv.errors, ldapsrv.bytes,
			ltdb->unpacked, ltdb->indexed, ltdb->full, talloc_stats.chunks, talloc_stats.reused);
	}
	tr_sink = ldapsrv.entries + ldapsrv.bytes;
	return 0;
}
