/*
 * A switch: bursts of packets in chains of buffers, headers parsed in place, a table of stations with buckets of
 * signatures, an access list as a trie, routes by longest prefix, flows with counters, queues with shaping.
 */
#include "../heap.h"
#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/queue.h>

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define __packed	__attribute__((__packed__))
#define __cache_aligned	__attribute__((__aligned__(64)))

#define MBUF_HEADROOM	64
#define MBUF_ROOM	256
#define MBUF_COUNT	512
#define BURST		32
#define PORTS		8
#define VLANS		16

/* Blocks of the heap begin at sixteen bytes, these at lines; they are never given back. */
static void *zmalloc_aligned(const char *type, size_t element, size_t n)
{
	void *p = aligned_alloc(64, (n * element + 63) & ~63ul);

	tr_region(type, memset(p, 0, n * element), n * element, element);
	return p;
}
#define ZMALLOC_ALIGNED(T, n)	((T *)zmalloc_aligned(#T, sizeof(T), (n)))

/* ---- buffers ---- */

struct mempool;

struct mbuf {
	unsigned char *buf_addr;
	uint16_t data_off, refcnt, nb_segs, port;
	union {
		uint64_t ol_flags;
		struct { uint32_t vlan_present : 1, checksum_bad : 1, multicast : 1, mirrored : 1, reserved : 28; uint32_t mark; };
	};
	uint32_t pkt_len;
	uint16_t data_len, vlan_tci;
	union {
		uint32_t rss;
		struct { uint16_t hash, id; } fdir;
	} hash;
	struct mempool *pool;
	struct mbuf *next;
	union {
		uint64_t tx_offload;
		struct { uint64_t l2_len : 7, l3_len : 9, l4_len : 8, tso_segsz : 16; };
	};
} __cache_aligned;

struct mempool {
	char name[16];
	unsigned int size, len;
	uint16_t headroom;
	unsigned long gets, puts, fails;
	struct mbuf *cache[];
};

#define mtod(m, t)	((t)((m)->buf_addr + (m)->data_off))
#define mtod_offset(m, t, o)	((t)((m)->buf_addr + (m)->data_off + (o)))

static struct mbuf *mbuf_alloc(struct mempool *mp)
{
	struct mbuf *m;

	if (unlikely(mp->len == 0)) {
		mp->fails++;
		return NULL;
	}
	m = mp->cache[--mp->len];
	mp->gets++;
	m->data_off = mp->headroom;
	m->refcnt = m->nb_segs = 1;
	m->ol_flags = 0;
	m->tx_offload = 0;
	m->pkt_len = 0;
	m->data_len = 0;
	m->next = NULL;
	return m;
}

static void mbuf_free(struct mbuf *m)
{
	struct mbuf *next;

	for (; m; m = next) {
		next = m->next;
		if (--m->refcnt == 0) {
			m->pool->cache[m->pool->len++] = m;
			m->pool->puts++;
		}
	}
}

static struct mempool *mempool_create(const char *name, unsigned int n, void *rooms, size_t room, uint16_t headroom)
{
	struct mempool *mp = HEAP_FLEXIBLE(struct mempool, sizeof(*mp) + n * sizeof(mp->cache[0]));
	struct mbuf *mbufs = ZMALLOC_ALIGNED(struct mbuf, n);

	memset(mp, 0, sizeof(*mp));
	snprintf(mp->name, sizeof(mp->name), "%s", name);
	mp->size = n;
	mp->headroom = headroom;
	for (unsigned int i = 0; i < n; i++) {
		mbufs[i].buf_addr = (unsigned char *)rooms + i * room;
		mbufs[i].pool = mp;
		mp->cache[mp->len++] = &mbufs[i];
	}
	return mp;
}

/* ---- headers: what comes in untagged gets its tag at once; what follows the headers is in the next buffer ---- */

struct ether_addr { uint8_t bytes[6]; };

struct ether_hdr {
	struct ether_addr dst, src;
	uint16_t type;
} __packed;

struct vlan_hdr {
	uint16_t tci, proto;
} __packed;

struct ipv4_hdr {
#if __BYTE_ORDER == __LITTLE_ENDIAN
	uint8_t ihl : 4, version : 4;
#else
	uint8_t version : 4, ihl : 4;
#endif
	uint8_t tos;
	uint16_t total_length, id, fragment;
	uint8_t ttl, proto;
	uint16_t checksum;
	uint32_t src, dst;
} __packed;

struct l4_hdr {
	uint16_t src, dst;
} __packed;

struct frame {
	struct ether_hdr eth;
	struct vlan_hdr tag;
	struct ipv4_hdr ip;
	struct l4_hdr l4;
} __packed __attribute__((__aligned__(2)));

/* What the parser found; one for each packet of a burst, so that the packet is not touched again. */
struct pkt_meta {
	struct ether_addr dst, src;
	uint16_t ether_type;
	uint16_t vlan : 12, pcp : 3, tagged : 1;
	uint32_t sip, dip;
	uint16_t sport, dport;
	uint8_t proto, ttl, tos;
	uint8_t l3_valid : 1, drop : 1, routed : 1, policed : 1;
	uint16_t out_port;
	uint32_t rule;
};

/* ---- stations: buckets of signatures, two places for each key ---- */

#define BUCKET_ENTRIES	8
#define EMPTY_SLOT	0

struct hash_bucket {
	uint16_t sig_current[BUCKET_ENTRIES];
	uint32_t key_idx[BUCKET_ENTRIES];
	uint8_t flag[BUCKET_ENTRIES];
	struct hash_bucket *next;
} __cache_aligned;

struct fdb_key {
	struct ether_addr addr;
	uint16_t vlan;
};

struct fdb_entry {
	struct fdb_key key;
	uint16_t port;
	uint16_t is_static : 1, moved : 15;
	uint32_t last_seen;
	TAILQ_ENTRY(fdb_entry) age_link;
};

TAILQ_HEAD(fdb_age_list, fdb_entry);

struct fdb {
	struct hash_bucket *buckets;
	uint32_t bucket_bitmask;
	struct fdb_entry *entries;
	uint32_t *free_slots;
	uint32_t nfree, nentries;
	struct fdb_age_list age;
	struct { unsigned long lookups, hits, learned, moved, aged, displaced, full; } stats;
};

static uint32_t hash_crc_table[256];

static uint32_t fdb_hash(const struct fdb_key *key)
{
	uint32_t h = ~(uint32_t)key->vlan;

	for (int i = 0; i < 6; i++)
		h = hash_crc_table[(h ^ key->addr.bytes[i]) & 0xff] ^ h >> 8;
	return h;
}

static inline bool fdb_key_equal(const struct fdb_key *a, const struct fdb_key *b)
{
	if (a->vlan != b->vlan)
		return false;
	for (int i = 5; i >= 0; i--)
		if (a->addr.bytes[i] != b->addr.bytes[i])
			return false;
	return true;
}

static struct fdb_entry *search_bucket(struct fdb *fdb, struct hash_bucket *b, uint16_t sig, const struct fdb_key *key)
{
	for (int i = 0; i < BUCKET_ENTRIES; i++)
		if (b->sig_current[i] == sig && b->key_idx[i] != EMPTY_SLOT) {
			struct fdb_entry *e = &fdb->entries[b->key_idx[i]];

			if (likely(fdb_key_equal(&e->key, key)))
				return e;
		}
	return NULL;
}

static NOINLINE struct fdb_entry *fdb_lookup(struct fdb *fdb, const struct fdb_key *key)
{
	uint32_t hash = fdb_hash(key);
	uint16_t sig = (uint16_t)(hash >> 16);
	uint32_t prim = hash & fdb->bucket_bitmask, sec = (prim ^ sig) & fdb->bucket_bitmask;
	struct fdb_entry *e;

	fdb->stats.lookups++;
	e = search_bucket(fdb, &fdb->buckets[prim], sig, key);
	if (!e)
		e = search_bucket(fdb, &fdb->buckets[sec], sig, key);
	fdb->stats.hits += e != NULL;
	return e;
}

static bool place_in_bucket(struct hash_bucket *b, uint16_t sig, uint32_t idx)
{
	for (int i = 0; i < BUCKET_ENTRIES; i++)
		if (b->key_idx[i] == EMPTY_SLOT) {
			b->sig_current[i] = sig;
			b->key_idx[i] = idx;
			b->flag[i] = 0;
			return true;
		}
	return false;
}

static NOINLINE void fdb_remove(struct fdb *fdb, struct fdb_entry *e)
{
	uint32_t hash = fdb_hash(&e->key), idx = (uint32_t)(e - fdb->entries);
	uint32_t prim = hash & fdb->bucket_bitmask, sec = (prim ^ hash >> 16) & fdb->bucket_bitmask;

	for (int side = 0; side < 2; side++) {
		struct hash_bucket *b = &fdb->buckets[side ? sec : prim];

		for (int i = 0; i < BUCKET_ENTRIES; i++)
			if (b->key_idx[i] == idx)
				b->key_idx[i] = EMPTY_SLOT;
	}
	TAILQ_REMOVE(&fdb->age, e, age_link);
	fdb->free_slots[fdb->nfree++] = idx;
	fdb->nentries--;
}

static NOINLINE void fdb_learn(struct fdb *fdb, const struct fdb_key *key, uint16_t port, uint32_t now)
{
	struct fdb_entry *e = fdb_lookup(fdb, key);
	uint32_t hash, prim, sec, idx;
	struct hash_bucket *b;

	if (e) {
		if (e->port != port && !e->is_static) {
			e->port = port;
			e->moved++;
			fdb->stats.moved++;
		}
		e->last_seen = now;
		TAILQ_REMOVE(&fdb->age, e, age_link);
		TAILQ_INSERT_TAIL(&fdb->age, e, age_link);
		return;
	}
	if (!fdb->nfree) {
		fdb->stats.full++;
		fdb_remove(fdb, TAILQ_FIRST(&fdb->age));
	}
	hash = fdb_hash(key);
	prim = hash & fdb->bucket_bitmask;
	sec = (prim ^ hash >> 16) & fdb->bucket_bitmask;
	idx = fdb->free_slots[--fdb->nfree];
	e = &fdb->entries[idx];
	e->key = *key;
	e->port = port;
	e->is_static = e->moved = 0;
	e->last_seen = now;
	TAILQ_INSERT_TAIL(&fdb->age, e, age_link);
	fdb->nentries++;
	fdb->stats.learned++;
	b = &fdb->buckets[prim];
	if (place_in_bucket(b, (uint16_t)(hash >> 16), idx) || place_in_bucket(&fdb->buckets[sec], (uint16_t)(hash >> 16), idx))
		return;
	/* One of the bucket goes to its other place. */
	for (int i = 0; i < BUCKET_ENTRIES; i++) {
		uint32_t other = ((prim ^ b->sig_current[i]) & fdb->bucket_bitmask);

		if (place_in_bucket(&fdb->buckets[other], b->sig_current[i], b->key_idx[i])) {
			b->sig_current[i] = (uint16_t)(hash >> 16);
			b->key_idx[i] = idx;
			fdb->stats.displaced++;
			return;
		}
	}
	b->key_idx[0] = EMPTY_SLOT;
	fdb_remove(fdb, e);
}

static NOINLINE void fdb_age(struct fdb *fdb, uint32_t now, uint32_t limit)
{
	struct fdb_entry *e;

	while ((e = TAILQ_FIRST(&fdb->age)) != NULL && now - e->last_seen > limit) {
		fdb_remove(fdb, e);
		fdb->stats.aged++;
	}
}

static struct fdb *fdb_create(uint32_t nbuckets, uint32_t nentries)
{
	struct fdb *fdb = HEAP_CALLOC(struct fdb, 1);

	fdb->buckets = ZMALLOC_ALIGNED(struct hash_bucket, nbuckets);
	fdb->bucket_bitmask = nbuckets - 1;
	fdb->entries = HEAP_CALLOC(struct fdb_entry, nentries + 1);
	fdb->free_slots = HEAP_CALLOC(unsigned int, nentries);
	while (fdb->nfree < nentries) {
		fdb->free_slots[fdb->nfree] = fdb->nfree + 1;
		fdb->nfree++;
	}
	TAILQ_INIT(&fdb->age);
	return fdb;
}

/* ---- access lists: rules, and a trie of bytes that is made of them ---- */

struct acl_rule {
	struct { uint32_t value, mask; } sip, dip;
	struct { uint16_t low, high; } sport, dport;
	uint8_t proto;
	uint8_t action : 2, log : 1, mirror : 1;
	int32_t priority;
	unsigned long matches;
};

enum { ACL_PERMIT, ACL_DENY, ACL_POLICE };

#define ACL_FANOUT	16

struct acl_node {
	union {
		struct acl_node *child[ACL_FANOUT];
		struct { uint32_t nrules; uint32_t *rules; } leaf;
	};
	uint8_t is_leaf, depth;
};

struct acl_ctx {
	struct acl_rule *rules;
	uint32_t nrules;
	struct acl_node *root;
	uint32_t nnodes, nleaves;
	unsigned long visited, compared;
};

static bool overlaps(const struct acl_rule *r, uint32_t prefix, int bits)
{
	uint32_t mask = bits ? ~0u << (32 - bits) : 0;

	return ((r->dip.value ^ prefix) & r->dip.mask & mask) == 0;
}

static struct acl_node *acl_build(struct acl_ctx *ctx, const uint32_t *which, uint32_t n, uint32_t prefix, int depth)
{
	struct acl_node *node = HEAP_CALLOC(struct acl_node, 1);

	ctx->nnodes++;
	node->depth = (uint8_t)depth;
	if (n <= 8 || depth == 3) {
		node->is_leaf = 1;
		node->leaf.nrules = n;
		node->leaf.rules = HEAP_CALLOC(unsigned int, n + 1);
		for (uint32_t i = 0; i < n; i++)
			node->leaf.rules[i] = which[i];
		ctx->nleaves++;
		return node;
	}
	for (uint32_t c = 0; c < ACL_FANOUT; c++) {
		uint32_t some[128], m = 0, sub = prefix | c << (28 - 4 * depth);

		for (uint32_t i = 0; i < n; i++)
			if (overlaps(&ctx->rules[which[i]], sub, 4 * depth + 4))
				some[m++] = which[i];
		node->child[c] = acl_build(ctx, some, m, sub, depth + 1);
	}
	return node;
}

static NOINLINE struct acl_rule *acl_classify(struct acl_ctx *ctx, const struct pkt_meta *m)
{
	const struct acl_node *node = ctx->root;
	struct acl_rule *best = NULL;

	for (int shift = 28; !node->is_leaf; shift -= 4) {
		ctx->visited++;
		node = node->child[m->dip >> shift & (ACL_FANOUT - 1)];
	}
	for (uint32_t i = 0; i < node->leaf.nrules; i++) {
		struct acl_rule *r = &ctx->rules[node->leaf.rules[i]];

		ctx->compared++;
		if ((m->sip & r->sip.mask) != r->sip.value || (m->dip & r->dip.mask) != r->dip.value)
			continue;
		if (r->proto && r->proto != m->proto)
			continue;
		if (m->sport < r->sport.low || m->sport > r->sport.high || m->dport < r->dport.low || m->dport > r->dport.high)
			continue;
		if (!best || r->priority > best->priority)
			best = r;
	}
	return best;
}

/* ---- routes: a table for the first sixteen bits, groups for the rest ---- */

struct lpm_tbl_entry {
	uint32_t next_hop : 24;
	uint32_t valid : 1;
	uint32_t ext_entry : 1;
	uint32_t depth : 6;
};

struct lpm {
	struct lpm_tbl_entry *tbl16;
	struct lpm_tbl_entry *tbl8;
	uint32_t ngroups, used_rules;
	struct lpm_nexthop { struct ether_addr mac; uint16_t port, vlan; unsigned long packets; } next_hops[64];
};

static void lpm_set(struct lpm_tbl_entry *e, uint32_t next_hop, uint32_t depth)
{
	if (e->valid && e->depth > depth)
		return;
	e->next_hop = next_hop;
	e->depth = depth & 63;
	e->ext_entry = 0;
	e->valid = 1;
}

static void lpm_add(struct lpm *lpm, uint32_t ip, uint32_t depth, uint32_t next_hop)
{
	struct lpm_tbl_entry *e = &lpm->tbl16[ip >> 20];

	lpm->used_rules++;
	if (depth <= 12) {
		for (uint32_t i = 0; i < 1u << (12 - depth); i++)
			lpm_set(&e[i], next_hop, depth);
		return;
	}
	if (!e->ext_entry) {
		struct lpm_tbl_entry before = *e;

		for (uint32_t i = 0; i < 256; i++)
			lpm->tbl8[lpm->ngroups * 256 + i] = before;
		e->next_hop = lpm->ngroups++;
		e->ext_entry = e->valid = 1;
	}
	for (uint32_t i = 0; i < 1u << (20 - depth); i++)
		lpm_set(&lpm->tbl8[e->next_hop * 256 + (ip >> 12 & 255) + i], next_hop, depth);
}

static inline struct lpm_nexthop *lpm_lookup(struct lpm *lpm, uint32_t ip)
{
	const struct lpm_tbl_entry *e = &lpm->tbl16[ip >> 20];

	if (unlikely(e->ext_entry))
		e = &lpm->tbl8[e->next_hop * 256 + (ip >> 12 & 255)];
	return e->valid ? &lpm->next_hops[e->next_hop] : NULL;
}

/* ---- flows ---- */

struct flow {
	LIST_ENTRY(flow) link;
	uint32_t sip, dip;
	uint16_t sport, dport;
	uint8_t proto, state;
	struct { uint64_t packets, octets; } dir[2];
	struct { uint32_t tokens, last, rate; } bucket;
};
LIST_HEAD(flow_list, flow);

#define FLOW_BUCKETS	256
#define FLOW_MAX	600

static struct flow_table {
	struct flow_list buckets[FLOW_BUCKETS];
	struct flow *hand;
	unsigned int count, evictions;
} flows;

static NOINLINE struct flow *flow_find(const struct pkt_meta *m, uint32_t now)
{
	uint32_t h = (m->sip ^ m->dip * 31 ^ (uint32_t)(m->sport + m->dport) * 2654435761u) >> 7;
	struct flow_list *list = &flows.buckets[h % FLOW_BUCKETS];
	struct flow *f;

	LIST_FOREACH(f, list, link)
		if (f->sip == m->sip && f->dip == m->dip && f->sport == m->sport && f->dport == m->dport && f->proto == m->proto)
			return f;
	if (flows.count == FLOW_MAX) {
		f = LIST_FIRST(&flows.buckets[(h * 7 + now) % FLOW_BUCKETS]);
		if (!f)
			return NULL;
		LIST_REMOVE(f, link);
		flows.evictions++;
	} else {
		f = HEAP_MALLOC(struct flow);
		flows.count++;
	}
	memset(f, 0, sizeof(*f));
	f->sip = m->sip;
	f->dip = m->dip;
	f->sport = m->sport;
	f->dport = m->dport;
	f->proto = m->proto;
	f->bucket.rate = 50;
	f->bucket.last = now;
	LIST_INSERT_HEAD(list, f, link);
	return f;
}

static bool police(struct flow *f, uint32_t len, uint32_t now)
{
	uint32_t tokens = f->bucket.tokens + (now - f->bucket.last) * f->bucket.rate;

	f->bucket.last = now;
	f->bucket.tokens = tokens > 4000 ? 4000 : tokens;
	if (f->bucket.tokens < len)
		return false;
	f->bucket.tokens -= len;
	return true;
}

/* ---- ports ---- */

struct port {
	uint16_t id, pvid;
	uint32_t up : 1, trunk : 1, promiscuous : 1, speed : 20;
	struct ether_addr mac;
	STAILQ_HEAD(, tx_desc) queue[2];
	uint32_t depth[2];
	struct port_stats { uint64_t rx, tx, octets, drops, flooded; } stats;
	uint64_t vlan_stats[VLANS];
};

struct tx_desc {
	STAILQ_ENTRY(tx_desc) next;
	struct mbuf *mbuf;
	uint32_t enqueued;
	uint16_t len, pcp;
};

static struct tx_desc *free_descs;

struct bridge {
	struct port ports[PORTS];
	uint16_t vlan_members[VLANS];
	struct fdb *fdb;
	struct acl_ctx *acl;
	struct lpm *lpm;
	struct mempool *pool, *data_pool;
	struct pkt_meta meta[BURST];
	uint32_t now;
	struct { uint64_t parsed, bad, denied, routed, no_route, flooded, policed; } stats;
};

static NOINLINE void enqueue(struct bridge *br, struct port *p, struct mbuf *m, const struct pkt_meta *meta)
{
	struct tx_desc *d = free_descs;
	int q = meta->pcp >= 4;

	if (!d || p->depth[q] >= 24 || !p->up) {
		p->stats.drops++;
		mbuf_free(m);
		return;
	}
	free_descs = STAILQ_NEXT(d, next);
	d->mbuf = m;
	d->enqueued = br->now;
	d->len = (uint16_t)m->pkt_len;
	d->pcp = meta->pcp;
	STAILQ_INSERT_TAIL(&p->queue[q], d, next);
	p->depth[q]++;
}

static NOINLINE void transmit(struct bridge *br, struct port *p, uint32_t budget)
{
	for (int q = 1; q >= 0; q--) {
		struct tx_desc *d;

		while ((d = STAILQ_FIRST(&p->queue[q])) != NULL && budget >= d->len) {
			struct mbuf *m = d->mbuf;

			STAILQ_REMOVE_HEAD(&p->queue[q], next);
			p->depth[q]--;
			budget -= d->len;
			p->stats.tx++;
			for (; m; m = m->next)
				p->stats.octets += m->data_len;
			p->vlan_stats[d->mbuf->vlan_tci % VLANS]++;
			mbuf_free(d->mbuf);
			STAILQ_NEXT(d, next) = free_descs;
			free_descs = d;
		}
	}
	(void)br;
}

/* ---- the way of a burst ---- */

static NOINLINE uint16_t checksum(const struct ipv4_hdr *ip)
{
	const uint16_t *p = (const uint16_t *)(const void *)ip;
	uint32_t sum = 0;

	for (int words = ip->ihl * 2; words--; p++)
		sum += *p;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static NOINLINE void parse(struct bridge *br, struct mbuf **pkts, int n)
{
	for (int i = 0; i < n; i++) {
		struct mbuf *m = pkts[i];
		struct pkt_meta *meta = &br->meta[i];
		const struct ether_hdr *eth = mtod(m, const struct ether_hdr *);
		const struct vlan_hdr *tag = mtod_offset(m, const struct vlan_hdr *, sizeof(*eth));
		const struct ipv4_hdr *ip = (const struct ipv4_hdr *)(tag + 1);
		const struct l4_hdr *l4;

		for (int k = 0; k < 6; k++) {
			meta->dst.bytes[k] = eth->dst.bytes[k];
			meta->src.bytes[k] = eth->src.bytes[k];
		}
		m->vlan_tci = ntohs(tag->tci);
		meta->tagged = eth->type == htons(0x8100);
		meta->vlan = m->vlan_tci & 0xfff;
		meta->pcp = m->vlan_tci >> 13;
		meta->ether_type = ntohs(tag->proto);
		m->l2_len = sizeof(*eth) + sizeof(*tag);
		m->multicast = meta->dst.bytes[0] & 1;
		meta->l3_valid = meta->drop = meta->routed = meta->policed = 0;
		br->stats.parsed++;
		if (meta->ether_type != 0x0800 || ip->version != 4)
			continue;
		m->l3_len = ip->ihl * 4;
		if (checksum(ip) != 0) {
			m->checksum_bad = 1;
			meta->drop = 1;
			br->stats.bad++;
			continue;
		}
		meta->tos = ip->tos;
		meta->ttl = ip->ttl;
		meta->proto = ip->proto;
		meta->sip = ntohl(ip->src);
		meta->dip = ntohl(ip->dst);
		meta->l3_valid = 1;
		l4 = mtod_offset(m, const struct l4_hdr *, m->l2_len + m->l3_len);
		meta->sport = ntohs(l4->src);
		meta->dport = ntohs(l4->dst);
		m->hash.rss = meta->sip ^ meta->dip;
	}
}

static NOINLINE void filter(struct bridge *br, struct mbuf **pkts, int n)
{
	for (int i = 0; i < n; i++) {
		struct pkt_meta *meta = &br->meta[i];
		struct acl_rule *r;
		struct flow *f;

		if (meta->drop || !meta->l3_valid)
			continue;
		r = acl_classify(br->acl, meta);
		if (r) {
			r->matches++;
			meta->rule = (uint32_t)(r - br->acl->rules);
			pkts[i]->mirrored = r->mirror;
			if (r->action == ACL_DENY) {
				meta->drop = 1;
				br->stats.denied++;
				continue;
			}
		}
		f = flow_find(meta, br->now);
		if (!f)
			continue;
		f->dir[meta->sport < meta->dport].packets++;
		f->dir[meta->sport < meta->dport].octets += pkts[i]->pkt_len;
		if (r && r->action == ACL_POLICE && !police(f, pkts[i]->pkt_len, br->now)) {
			meta->policed = meta->drop = 1;
			br->stats.policed++;
		}
	}
}

static NOINLINE void route(struct bridge *br, struct mbuf *m, struct pkt_meta *meta)
{
	struct lpm_nexthop *nh = lpm_lookup(br->lpm, meta->dip);
	struct ether_hdr *eth = mtod(m, struct ether_hdr *);
	struct ipv4_hdr *ip = mtod_offset(m, struct ipv4_hdr *, m->l2_len);

	if (!nh || meta->ttl <= 1) {
		meta->drop = 1;
		br->stats.no_route++;
		return;
	}
	nh->packets++;
	br->stats.routed++;
	meta->routed = 1;
	meta->out_port = nh->port;
	eth->dst = nh->mac;
	eth->src = br->ports[nh->port].mac;
	ip->ttl--;
	ip->checksum = 0;
	ip->checksum = checksum(ip);
}

static NOINLINE void forward(struct bridge *br, struct mbuf **pkts, int n)
{
	for (int i = 0; i < n; i++) {
		struct mbuf *m = pkts[i];
		struct pkt_meta *meta = &br->meta[i];
		struct fdb_key key = { meta->src, meta->vlan };
		struct fdb_entry *e;

		fdb_learn(br->fdb, &key, m->port, br->now);
		if (!meta->drop && meta->l3_valid && meta->dst.bytes[0] == 0x02)
			route(br, m, meta);
		if (meta->drop) {
			mbuf_free(m);
			continue;
		}
		if (meta->routed) {
			enqueue(br, &br->ports[meta->out_port], m, meta);
			continue;
		}
		key.addr = meta->dst;
		if (!m->multicast && (e = fdb_lookup(br->fdb, &key)) != NULL) {
			if (e->port == m->port)
				mbuf_free(m);
			else
				enqueue(br, &br->ports[e->port], m, meta);
			continue;
		}
		br->stats.flooded++;
		br->ports[m->port].stats.flooded++;
		for (struct port *p = br->ports; p < br->ports + PORTS; p++)
			if (p->id != m->port && br->vlan_members[meta->vlan % VLANS] >> p->id & 1) {
				for (struct mbuf *s = m; s; s = s->next)
					s->refcnt++;
				enqueue(br, p, m, meta);
			}
		mbuf_free(m);
	}
}

/* ---- what comes in ---- */

static NOINLINE int receive(struct bridge *br, struct port *p, struct mbuf **pkts, int max)
{
	int n;

	for (n = 0; n < max; n++) {
		struct mbuf *m = mbuf_alloc(br->pool), *tail;
		uint64_t r = tr_rand();
		uint16_t payload = 20 + (r >> 50 & 127);
		struct frame *f;

		if (!m)
			break;
		f = mtod(m, struct frame *);
		for (int k = 0; k < 6; k++) {
			f->eth.dst.bytes[k] = (uint8_t)(k == 0 ? (r >> 3 & 3) ? 0x00 : (r >> 5 & 3) ? 0x02 : 0x01 : k == 5 ? r >> 12 & 63 : 0x40 + k);
			f->eth.src.bytes[k] = (uint8_t)(k == 5 ? (r >> 20 & 15) + p->id * 8 : k ? 0x40 + k : 0);
		}
		f->eth.type = htons(0x8100);
		f->tag.tci = htons((uint16_t)(p->trunk ? (r >> 30 & 7) << 13 | (r >> 33 & 7) : p->pvid));
		f->tag.proto = htons((r >> 36 & 15) ? 0x0800 : 0x0806);
		f->ip.version = 4;
		f->ip.ihl = 5;
		f->ip.tos = 0;
		f->ip.total_length = htons(24 + payload);
		f->ip.id = (uint16_t)(r >> 40);
		f->ip.fragment = 0;
		f->ip.ttl = (r >> 58) ? 64 : 1;
		f->ip.proto = (r & 1) ? 6 : 17;
		f->ip.src = htonl(0x0a000000 | (uint32_t)(r >> 44 & 0x1f1f));
		f->ip.dst = htonl((uint32_t)(r >> 24 & 3) << 28 | (uint32_t)(r >> 8 & 0xf0f00));
		f->ip.checksum = 0;
		f->ip.checksum = checksum(&f->ip);
		f->l4.src = htons((uint16_t)(1024 + (r >> 16 & 7)));
		f->l4.dst = htons((uint16_t)((r >> 26 & 3) ? 80 : 443));
		m->data_len = sizeof(*f);
		m->pkt_len = m->data_len + payload;
		m->port = p->id;
		m->next = tail = mbuf_alloc(br->data_pool);
		if (tail) {
			unsigned char *d = mtod(tail, unsigned char *);

			tail->data_len = payload;
			m->nb_segs = 2;
			for (int k = 0; k < 8; k++)
				d[k] = (unsigned char)(r >> 8 * k);
		}
		p->stats.rx++;
		pkts[n] = m;
	}
	return n;
}

static void configure(struct bridge *br)
{
	struct acl_ctx *acl = br->acl = HEAP_CALLOC(struct acl_ctx, 1);
	struct lpm *lpm = br->lpm = HEAP_CALLOC(struct lpm, 1);
	uint32_t all[96];
	struct tx_desc *descs = HEAP_CALLOC(struct tx_desc, 256);

	acl->nrules = 96;
	acl->rules = HEAP_CALLOC(struct acl_rule, acl->nrules);
	for (uint32_t i = 0; i < acl->nrules; i++) {
		struct acl_rule *r = &acl->rules[all[i] = i];
		uint64_t k = tr_rand();

		r->dip.mask = i % 5 ? ~0u << (20 - (k & 7)) : 0xf0000000;
		r->dip.value = ((uint32_t)(k >> 24 & 3) << 28 | (uint32_t)(k >> 8 & 0xf0f00)) & r->dip.mask;
		r->sip.mask = i % 3 ? 0 : 0xffffff00;
		r->sip.value = (0x0a000000 | (uint32_t)(k >> 44 & 0x1f00)) & r->sip.mask;
		r->sport.high = r->dport.high = 65535;
		if (i % 4 == 0)
			r->dport.low = 81;
		r->proto = i % 6 ? 0 : 17;
		r->action = (uint8_t)(i % 7 == 0 ? ACL_DENY : i % 3 == 0 ? ACL_POLICE : ACL_PERMIT);
		r->mirror = i % 11 == 0;
		r->priority = (int32_t)(k >> 40 & 1023);
	}
	acl->root = acl_build(acl, all, acl->nrules, 0, 0);
	lpm->tbl16 = HEAP_CALLOC(struct lpm_tbl_entry, 4096);
	lpm->tbl8 = HEAP_CALLOC(struct lpm_tbl_entry, 64 * 256);
	for (uint32_t i = 0; i < 64; i++) {
		lpm->next_hops[i].port = (uint16_t)(i % PORTS);
		lpm->next_hops[i].mac.bytes[5] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < 3; i++)
		lpm_add(lpm, i << 28, 4, i);
	for (uint32_t i = 0; i < 40; i++)
		lpm_add(lpm, (uint32_t)(tr_rand() & 3) << 28 | (uint32_t)(tr_rand() >> 8 & 0xf0000), 14 + i % 7, 3 + i);
	for (uint16_t i = 0; i < PORTS; i++) {
		struct port *p = &br->ports[i];

		p->id = i;
		p->pvid = i % 3;
		p->up = i != 5;
		p->trunk = i & 1;
		p->mac.bytes[0] = 2;
		p->mac.bytes[5] = (uint8_t)i;
		STAILQ_INIT(&p->queue[0]);
		STAILQ_INIT(&p->queue[1]);
	}
	for (int v = 0; v < VLANS; v++)
		br->vlan_members[v] = (uint16_t)(0xaa | 1u << v % PORTS);
	for (int i = 0; i < 256; i++) {
		STAILQ_NEXT(&descs[i], next) = free_descs;
		free_descs = &descs[i];
	}
	br->fdb = fdb_create(64, 400);
	br->pool = mempool_create("headers", MBUF_COUNT, ZMALLOC_ALIGNED(struct frame, MBUF_COUNT), sizeof(struct frame), 0);
	br->data_pool = mempool_create("data", MBUF_COUNT, HEAP_CALLOC(unsigned char, MBUF_COUNT * MBUF_ROOM), MBUF_ROOM, MBUF_HEADROOM);
}

static struct bridge bridge;

int main(int argc, char **argv)
{
	struct mbuf *pkts[BURST];
	uint64_t tx = 0;

	tr_init(argc, argv);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0x82f63b78 ^ c >> 1 : c >> 1;
		hash_crc_table[i] = c;
	}
	TR_GLOBAL(bridge, "struct bridge");
	TR_GLOBAL(flows, "struct flow_table");
	TR_GLOBAL(hash_crc_table, "unsigned int []");
	TR_GLOBAL(free_descs, "struct tx_desc *");
	TR_LOCAL(pkts, "struct mbuf *[]");
	TR_CHECK(struct mbuf, next);
	TR_CHECK(struct fdb_entry, last_seen);
	TR_CHECK(struct frame, l4);
	TR_CHECK(struct acl_rule, matches);
	TR_CHECK(struct flow, bucket);
	configure(&bridge);
	while (tr_more()) {
		for (struct port *p = bridge.ports; p < bridge.ports + PORTS; p++) {
			int n = receive(&bridge, p, pkts, 4 + (int)(tr_rand() % (BURST - 8)));

			parse(&bridge, pkts, n);
			filter(&bridge, pkts, n);
			forward(&bridge, pkts, n);
			transmit(&bridge, p, 1500 + 300u * p->id);
			bridge.now++;
		}
		fdb_age(bridge.fdb, bridge.now, 60);
	}
	for (int i = 0; i < PORTS; i++)
		tx += bridge.ports[i].stats.tx;
	if (getenv("VERBOSE")) {
		struct fdb *f = bridge.fdb;

		printf("%lu parsed %lu bad %lu denied %lu routed %lu no route %lu flooded %lu policed %lu sent\n", bridge.stats.parsed, bridge.stats.bad,
		       bridge.stats.denied, bridge.stats.routed, bridge.stats.no_route, bridge.stats.flooded, bridge.stats.policed, tx);
		printf("stations: %u now, %lu of %lu found, %lu learned %lu moved %lu aged %lu displaced %lu full; flows %u, %u evicted; acl %u nodes\n",
		       f->nentries, f->stats.hits, f->stats.lookups, f->stats.learned, f->stats.moved, f->stats.aged, f->stats.displaced, f->stats.full,
		       flows.count, flows.evictions, bridge.acl->nnodes);
		printf("pool: %u left, %lu gets %lu fails\n", bridge.pool->len, bridge.pool->gets, bridge.pool->fails);
	}
	tr_sink = tx;
	return 0;
}
