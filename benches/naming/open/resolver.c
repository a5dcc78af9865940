/*
 * A name server and its resolver's cache: wire messages with compressed names, a zone in an arena,
 * labels in a red-black tree of domains, sets of records in unions, a cache by hash with a clock
 * hand, limits of rate for clients.
 */
#include "../heap.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define NAME_MAX_BYTES	96
#define CACHE_SLOTS	512
#define CLIENT_BUCKETS	64
#define PACKET_BYTES	512

enum rrtype { T_A = 1, T_NS = 2, T_CNAME = 5, T_SOA = 6, T_MX = 15, T_TXT = 16, T_AAAA = 28 };
enum rcode { R_OK, R_FORMERR, R_SERVFAIL, R_NXDOMAIN, R_REFUSED = 5 };

/* As on the wire, big endian. */
struct wire_header {
	u16 id;
	u16 flags;
	u16 counts[4];
} __attribute__((packed));

struct packet {
	u32 client;
	u16 length;
	u16 answered;
	union {
		struct wire_header header;
		u8 bytes[PACKET_BYTES];
	};
};

struct arena_chunk {
	struct arena_chunk *next;
	u32 used, size;
	/* memory follows */
};

struct arena {
	struct arena_chunk *chunks;
	u32 objects;
};

struct soa {
	u32 serial, refresh, retry, expire, minimum;
	const u8 *primary, *mailbox;
};

struct rdata {
	struct rdata *next;
	union {
		u32 a;
		u8 aaaa[16];
		const u8 *name;
		struct {
			u16 preference;
			const u8 *exchange;
		} mx;
		struct {
			u16 length;
			const char *bytes;
		} txt;
		struct soa *soa;
	} u;
};

struct rrset {
	struct rrset *next;
	u16 type, count;
	u32 ttl;
	struct rdata *first;
	u64 served;
};

struct domain {
	struct domain *parent, *left, *right;
	u32 hash;
	u8 red, wildcard, labels, length;
	struct rrset *sets;
	struct domain *alias;
	u8 *name;	/* of `length` bytes, labels with their length in front */
};

struct zone {
	struct domain *root;
	struct arena arena;
	u32 domains;
	u32 rotations;
};

struct cache_entry {
	u32 hash;
	u32 expires;
	u16 type;
	u8 rcode;
	u8 used : 1, negative : 1, prefetch : 1;
	u8 name_length;
	u8 name[NAME_MAX_BYTES];
	u16 answer_length;
	u8 answer[120];
};

struct cache {
	struct cache_entry *entries;
	u32 *chains;		/* entry's number + 1 */
	u32 *next;
	u32 hand;
	struct { u64 hits, misses, evictions, expired; } stats;
};

struct client {
	struct client *next;
	u32 address;
	int tokens;
	u32 refilled;
	u64 queries;
	u64 by_rcode[8];
};

struct query {
	u8 name[NAME_MAX_BYTES];
	u8 length, labels;
	u16 type;
	u32 hash;
	u16 end;		/* where the question ends in the packet */
};

static struct zone zone;
static struct cache cache;
static struct client *clients[CLIENT_BUCKETS];
static u32 now = 1000;

static inline u16 get16(const u8 *p) { return (u16)(p[0] << 8 | p[1]); }
static inline void put16(u8 *p, u16 v) { p[0] = v >> 8; p[1] = (u8)v; }
static inline void put32(u8 *p, u32 v) { put16(p, v >> 16); put16(p + 2, (u16)v); }

/* The zone is loaded once and never given back, so what lies where never changes. */
static void *arena_take(struct arena *arena, const char *type, u32 bytes)
{
	struct arena_chunk *chunk = arena->chunks;
	void *taken;

	bytes = (bytes + 7) & ~7u;
	if (!chunk || chunk->used + bytes > chunk->size) {
		chunk = malloc(sizeof(*chunk) + 65536);
		if (!chunk)
			abort();
		chunk->next = arena->chunks;
		chunk->used = 0;
		chunk->size = 65536;
		arena->chunks = chunk;
	}
	taken = (u8 *)(chunk + 1) + chunk->used;
	chunk->used += bytes;
	arena->objects++;
	memset(taken, 0, bytes);
	tr_region(type, taken, bytes, *type == 'u' ? 1 : bytes);
	return taken;
}

#define ARENA_NEW(arena, T) ((T *)arena_take((arena), #T, sizeof(T)))

static u32 hash_name(const u8 *name, u32 length)
{
	u32 h = 5381, i;

	for (i = 0; i < length; i++)
		h = h * 33 ^ name[i];
	return h;
}

/* ---- the tree of domains ---- */

static int compare(u32 hash, const u8 *name, u32 length, const struct domain *d)
{
	u32 i;

	if (hash != d->hash)
		return hash < d->hash ? -1 : 1;
	if (length != d->length)
		return length < d->length ? -1 : 1;
	for (i = 0; i < length; i++)
		if (name[i] != d->name[i])
			return name[i] < d->name[i] ? -1 : 1;
	return 0;
}

static NOINLINE struct domain *find_domain(const struct zone *z, const u8 *name, u32 length)
{
	u32 hash = hash_name(name, length);
	struct domain *d = z->root;

	while (d) {
		int order = compare(hash, name, length, d);
		if (order == 0)
			return d;
		d = order < 0 ? d->left : d->right;
	}
	return NULL;
}

static void rotate(struct zone *z, struct domain *d, int to_left)
{
	struct domain *up = to_left ? d->right : d->left, *between;

	between = to_left ? up->left : up->right;
	if (to_left) {
		d->right = between;
		up->left = d;
	} else {
		d->left = between;
		up->right = d;
	}
	if (between)
		between->parent = d;
	up->parent = d->parent;
	if (!d->parent)
		z->root = up;
	else if (d->parent->left == d)
		d->parent->left = up;
	else
		d->parent->right = up;
	d->parent = up;
	z->rotations++;
}

static struct domain *add_domain(struct zone *z, const u8 *name, u32 length, u32 labels)
{
	struct domain **link = &z->root, *parent = NULL, *d, *added;
	u32 hash = hash_name(name, length);

	while (*link) {
		int order = compare(hash, name, length, *link);
		parent = *link;
		if (order == 0)
			return parent;
		link = order < 0 ? &parent->left : &parent->right;
	}
	*link = d = added = ARENA_NEW(&z->arena, struct domain);
	d->name = arena_take(&z->arena, "uint8_t", length + 1);
	memcpy(d->name, name, length);
	d->hash = hash;
	d->length = length;
	d->labels = labels;
	d->parent = parent;
	d->red = 1;
	z->domains++;
	for (; d->parent && d->parent->red;) {
		struct domain *grand = d->parent->parent;
		int left = grand->left == d->parent;
		struct domain *uncle = left ? grand->right : grand->left;
		if (uncle && uncle->red) {
			d->parent->red = uncle->red = 0;
			grand->red = 1;
			d = grand;
			continue;
		}
		if (d == (left ? d->parent->right : d->parent->left)) {
			d = d->parent;
			rotate(z, d, left);
		}
		d->parent->red = 0;
		grand->red = 1;
		rotate(z, grand, !left);
	}
	z->root->red = 0;
	return added;
}

static struct rdata *add_record(struct zone *z, struct domain *d, u16 type, u32 ttl)
{
	struct rrset *set = d->sets;
	struct rdata *rdata = ARENA_NEW(&z->arena, struct rdata);

	while (set && set->type != type)
		set = set->next;
	if (!set) {
		set = ARENA_NEW(&z->arena, struct rrset);
		set->type = type;
		set->ttl = ttl;
		set->next = d->sets;
		d->sets = set;
	}
	set->count++;
	rdata->next = set->first;
	set->first = rdata;
	return rdata;
}

/* ---- messages ---- */

static NOINLINE int parse_query(const struct packet *p, struct query *q)
{
	u32 at = sizeof(struct wire_header), out = 0;

	if (p->length < at + 5 || get16((const u8 *)&p->header.counts[0]) != 1)
		return R_FORMERR;
	q->labels = 0;
	while (p->bytes[at]) {
		u32 label = p->bytes[at], i;
		if (label > 63 || out + label + 1 >= NAME_MAX_BYTES || at + label + 5 > p->length)
			return R_FORMERR;
		q->name[out++] = (u8)label;
		for (i = 1; i <= label; i++) {
			u8 c = p->bytes[at + i];
			q->name[out++] = c >= 'A' && c <= 'Z' ? c + 32 : c;
		}
		at += label + 1;
		q->labels++;
	}
	q->length = (u8)out;
	q->type = get16(&p->bytes[at + 1]);
	q->end = (u16)(at + 5);
	q->hash = hash_name(q->name, out) + q->type;
	return R_OK;
}

static u32 put_name(u8 *out, const u8 *name)
{
	u32 n = 0;

	while (name[n]) {
		u32 i, label = name[n];
		for (i = 0; i <= label; i++)
			out[n + i] = name[n + i];
		n += label + 1;
	}
	out[n] = 0;
	return n + 1;
}

static u32 put_rdata(u8 *out, u16 type, const struct rdata *r)
{
	u32 i, n;

	switch (type) {
	case T_A:
		put32(out, r->u.a);
		return 4;
	case T_AAAA:
		for (i = 0; i < 16; i++)
			out[i] = r->u.aaaa[i];
		return 16;
	case T_MX:
		put16(out, r->u.mx.preference);
		return 2 + put_name(out + 2, r->u.mx.exchange);
	case T_TXT:
		out[0] = (u8)r->u.txt.length;
		for (i = 0; i < r->u.txt.length; i++)
			out[1 + i] = (u8)r->u.txt.bytes[i];
		return 1 + i;
	case T_SOA:
		n = put_name(out, r->u.soa->primary);
		n += put_name(out + n, r->u.soa->mailbox);
		put32(out + n, r->u.soa->serial);
		put32(out + n + 4, r->u.soa->refresh);
		put32(out + n + 8, r->u.soa->minimum);
		return n + 12;
	default:
		return put_name(out, r->u.name);
	}
}

static NOINLINE int answer(struct zone *z, const struct query *q, u8 *out, u32 *length, u32 *ttl)
{
	const struct domain *d = find_domain(z, q->name, q->length);
	struct rrset *set;
	struct rdata *r;
	u32 n = 0, hops = 0;

	*length = 0;
	*ttl = 60;
	if (!d && q->labels > 1) {
		const struct domain *up = find_domain(z, q->name + q->name[0] + 1,
						      q->length - q->name[0] - 1u);
		d = up && up->wildcard ? up : NULL;
	}
	if (!d)
		return R_NXDOMAIN;
	while (d->alias && q->type != T_CNAME && hops++ < 4)
		d = d->alias;
	for (set = d->sets; set; set = set->next) {
		if (set->type != q->type)
			continue;
		set->served++;
		*ttl = set->ttl;
		for (r = set->first; r && n < 60; r = r->next) {
			u32 rdlength;
			put16(out + n, 0xc00c);
			put16(out + n + 2, set->type);
			put32(out + n + 4, set->ttl);
			rdlength = put_rdata(out + n + 10, set->type, r);
			put16(out + n + 8, (u16)rdlength);
			n += 10 + rdlength;
		}
	}
	*length = n;
	return R_OK;
}

/* ---- the cache ---- */

static NOINLINE struct cache_entry *cache_find(struct cache *c, const struct query *q)
{
	u32 i;

	for (i = c->chains[q->hash % CACHE_SLOTS]; i; i = c->next[i - 1]) {
		struct cache_entry *e = &c->entries[i - 1];
		u32 k;
		if (e->hash != q->hash || e->type != q->type || e->name_length != q->length)
			continue;
		for (k = 0; k < q->length && e->name[k] == q->name[k]; k++)
			;
		if (k < q->length)
			continue;
		if (e->expires <= now) {
			c->stats.expired++;
			break;
		}
		e->used = 1;
		c->stats.hits++;
		return e;
	}
	c->stats.misses++;
	return NULL;
}

static NOINLINE struct cache_entry *cache_make(struct cache *c, const struct query *q)
{
	struct cache_entry *e = &c->entries[c->hand];
	u32 *link, i;

	while (e->used && e->expires > now) {
		e->used = 0;
		c->hand = (c->hand + 1) % CACHE_SLOTS;
		e = &c->entries[c->hand];
	}
	if (e->name_length) {
		c->stats.evictions++;
		link = &c->chains[e->hash % CACHE_SLOTS];
		while (*link && *link != c->hand + 1)
			link = &c->next[*link - 1];
		if (*link)
			*link = c->next[c->hand];
	}
	e->hash = q->hash;
	e->type = q->type;
	e->name_length = q->length;
	for (i = 0; i < q->length; i++)
		e->name[i] = q->name[i];
	e->negative = e->prefetch = 0;
	c->next[c->hand] = c->chains[q->hash % CACHE_SLOTS];
	c->chains[q->hash % CACHE_SLOTS] = c->hand + 1;
	c->hand = (c->hand + 1) % CACHE_SLOTS;
	return e;
}

static NOINLINE struct client *client_of(u32 address)
{
	struct client **bucket = &clients[(address * 2654435761u) >> 26], *c;

	for (c = *bucket; c; c = c->next)
		if (c->address == address)
			return c;
	c = HEAP_CALLOC(struct client, 1);
	c->address = address;
	c->tokens = 50;
	c->refilled = now;
	c->next = *bucket;
	return *bucket = c;
}

static int allowed(struct client *c)
{
	c->queries++;
	if (now - c->refilled >= 2) {
		c->tokens += (int)(now - c->refilled) * 20;
		if (c->tokens > 100)
			c->tokens = 100;
		c->refilled = now;
	}
	return c->tokens-- > 0;
}

static NOINLINE int serve(struct packet *p)
{
	struct client *client = client_of(p->client);
	struct query q;
	struct cache_entry *e;
	u32 i, length, ttl;
	int rcode = allowed(client) ? parse_query(p, &q) : R_REFUSED;

	if (rcode == R_OK) {
		e = cache_find(&cache, &q);
		if (!e) {
			e = cache_make(&cache, &q);
			e->rcode = (u8)answer(&zone, &q, e->answer, &length, &ttl);
			e->answer_length = (u16)length;
			e->expires = now + ttl;
			e->negative = e->rcode == R_NXDOMAIN;
		} else if (e->expires - now < 5) {
			e->prefetch = 1;
		}
		rcode = e->rcode;
		for (i = 0; i < e->answer_length; i++)
			p->bytes[q.end + i] = e->answer[i];
		p->answered = e->answer_length;
	}
	put16((u8 *)&p->header.flags, (u16)(0x8400 | rcode));
	client->by_rcode[rcode & 7]++;
	return rcode;
}

/* ---- what is served ---- */

static u32 write_name(u8 *out, u32 a, u32 b)
{
	static const char *const hosts[] = { "www", "mail", "ns", "files", "api", "db" };
	u32 n = 0, k;
	char text[24];
	const char *labels[3] = { hosts[a % 6], text, "example" };

	sprintf(text, "site%u", b);
	for (k = 0; k < 3; k++) {
		out[n] = (u8)strlen(labels[k]);
		memcpy(out + n + 1, labels[k], out[n]);
		n += out[n] + 1u;
	}
	out[n] = 0;
	return n;
}

static void load(struct zone *z)
{
	u32 i, k;

	for (i = 0; i < 240; i++) {
		u8 name[NAME_MAX_BYTES];
		u32 parent_at, whole = 0;
		struct domain *site, *first = NULL;

		for (k = 0; k < 5; k++) {
			struct domain *d;
			struct rdata *r;

			whole = write_name(name, k, i);
			d = add_domain(z, name, whole, 3);
			if (k == 4) {
				d->alias = first;
				continue;
			}
			add_record(z, d, T_A, 300 + i)->u.a = 0x0a000000 + i * 8 + k;
			add_record(z, d, T_A, 300 + i)->u.a = 0x0b000000 + i * 8 + k;
			r = add_record(z, d, T_AAAA, 40 + i % 20);
			r->u.aaaa[15] = (u8)i;
			if (k == 3) {
				r = add_record(z, d, T_TXT, 30);
				r->u.txt.length = 12;
				r->u.txt.bytes = "v=spf1 -all ";
			}
			if (!first)
				first = d;
		}
		parent_at = name[0] + 1u;
		site = add_domain(z, name + parent_at, whole - parent_at, 2);
		site->wildcard = i % 4 == 0;
		add_record(z, site, T_MX, 90)->u.mx.preference = 10;
		site->sets->first->u.mx.exchange = site->name;
		if (i % 3 == 0) {
			struct soa *soa = ARENA_NEW(&z->arena, struct soa);
			soa->primary = soa->mailbox = site->name;
			soa->serial = i;
			add_record(z, site, T_SOA, 500)->u.soa = soa;
		}
	}
}

static void ask(struct packet *p, u64 r)
{
	static const u16 types[] = { T_A, T_A, T_AAAA, T_MX, T_TXT, T_A, T_SOA, T_AAAA };
	u8 name[NAME_MAX_BYTES];
	u32 n = write_name(name, (u32)(r & 7), (u32)((r >> 8 & 0xff) * (r >> 16 & 0xff) >> 8)), skip;

	skip = types[r >> 40 & 7] == T_MX || types[r >> 40 & 7] == T_SOA ? name[0] + 1u : 0;
	memset(p->bytes, 0, sizeof(struct wire_header));
	put16((u8 *)&p->header.id, (u16)r);
	put16((u8 *)&p->header.counts[0], 1);
	memcpy(p->bytes + sizeof(struct wire_header), name + skip, n - skip + 1);
	n = sizeof(struct wire_header) + n - skip + 1;
	put16(p->bytes + n, types[r >> 40 & 7]);
	put16(p->bytes + n + 2, 1);
	p->length = (u16)(n + 4);
	p->client = (u32)(r >> 50) & 255;
}

int main(int argc, char **argv)
{
	struct packet *packets;
	u64 sum = 0;
	u32 i;

	tr_init(argc, argv);
	TR_GLOBAL(zone, "struct zone");
	TR_GLOBAL(cache, "struct cache");
	TR_GLOBAL(clients, "struct client * []");
	TR_GLOBAL(now, "u32");
	TR_CHECK(struct packet, answered);
	TR_CHECK(struct cache_entry, answer);
	TR_CHECK(struct rdata, u);
	load(&zone);
	cache.entries = HEAP_CALLOC(struct cache_entry, CACHE_SLOTS);
	cache.chains = HEAP_CALLOC(u32, CACHE_SLOTS);
	cache.next = HEAP_CALLOC(u32, CACHE_SLOTS);
	packets = HEAP_CALLOC(struct packet, 2048);
	for (i = 0; i < 2048; i++)
		ask(&packets[i], tr_rand());
	while (tr_more()) {
		for (i = 0; i < 128; i++)
			sum += serve(&packets[(tr_rand() >> 20) % 2048]);
		now++;
	}
	tr_sink = sum + cache.stats.hits;
	return 0;
}
