/* A switch in software: bursts of packets through L2 learning, rules by tuples, flows with meters, routes and
 * queues, run to completion on two lcores that hand packets over by rings.
 */
#include "../heap.h"
#include <stdatomic.h>
#include <sys/queue.h>

#define __cache_aligned __attribute__((aligned(64)))
#define __pkt __attribute__((packed, aligned(2)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define prefetch0(p) __builtin_prefetch(p)

#define MAX_LCORE 2
#define MAX_PORTS 8
#define MAX_BURST 32
#define POOL_SIZE 1024
#define CACHE_SIZE 128
#define RING_SIZE 256
#define MAC_BUCKETS 256
#define MAC_ASSOC 4
#define FLOW_BUCKETS 1024
#define FLOWS 1500
#define TBL24_BITS 12
#define TBL8_GROUPS 16
#define NEXT_HOPS 32
#define MAX_TUPLES 6
#define RX_RSS_HASH 1

struct ether_addr { uint8_t addr_bytes[6]; } __pkt;

struct ether_hdr {
	struct ether_addr d_addr;
	struct ether_addr s_addr;
	uint16_t ether_type;
} __pkt;

struct ipv4_hdr {
	uint8_t version_ihl, type_of_service;
	uint16_t total_length, packet_id, fragment_offset;
	uint8_t time_to_live, next_proto_id;
	uint16_t hdr_checksum;
	uint32_t src_addr, dst_addr;
} __pkt;

struct tcp_hdr {
	uint16_t src_port, dst_port;
	uint32_t sent_seq, recv_ack;
	uint8_t data_off, tcp_flags;
	uint16_t rx_win, cksum, tcp_urp;
} __pkt;

struct udp_hdr { uint16_t src_port, dst_port, dgram_len, dgram_cksum; } __pkt;

struct frame {
	struct ether_hdr eth;
	struct ipv4_hdr ip;
	union { struct tcp_hdr tcp; struct udp_hdr udp; } l4;
	uint8_t payload[74];
} __pkt;

struct mempool;

struct mbuf {
	struct frame *buf_addr;
	uint16_t data_off, refcnt, nb_segs, port;
	uint64_t ol_flags;
	uint32_t packet_type, pkt_len;
	uint16_t data_len, vlan_tci;
	union { uint32_t rss; struct { uint16_t hash, id; } fdir; } hash;
	/* second cache line */
	struct mempool *pool __cache_aligned;
	struct mbuf *next;
	union {
		uint64_t tx_offload;
		struct { uint64_t l2_len : 7, l3_len : 9, l4_len : 8, tso_segsz : 16; };
	};
	void *userdata;
	uint64_t timestamp;
} __cache_aligned;

struct mempool_cache { uint32_t size, len; void *objs[CACHE_SIZE + MAX_BURST]; } __cache_aligned;

struct mempool {
	char name[24];
	atomic_flag lock;
	uint32_t count;
	void **stack;
	struct mempool_cache local_cache[MAX_LCORE];
};

struct ring {
	struct { _Atomic uint32_t head, tail; } prod __cache_aligned;
	struct { _Atomic uint32_t head, tail; } cons __cache_aligned;
	void *slots[RING_SIZE] __cache_aligned;
};

struct mac_entry { struct ether_addr mac; uint16_t vlan; uint8_t port, is_static; uint32_t seen; };
struct mac_bucket { uint16_t sig[MAC_ASSOC]; struct mac_entry entry[MAC_ASSOC]; } __cache_aligned;

struct lpm_tbl_entry { uint32_t next_hop : 24, valid : 1, ext : 1, depth : 6; };

struct lpm {
	uint32_t max_rules, used_groups;
	struct lpm_tbl_entry tbl24[1 << TBL24_BITS];
	struct lpm_tbl_entry *tbl8;
};

struct next_hop { struct ether_addr mac; uint16_t port; uint64_t packets, bytes; };

struct flow_key { uint32_t src, dst; uint16_t sport, dport; uint8_t proto, pad[3]; };

struct acl_rule {
	SLIST_ENTRY(acl_rule) link;
	struct flow_key value;
	uint32_t priority;
	enum { PERMIT, DENY, POLICE } action;
	uint64_t hits;
};

struct acl_tuple {
	struct flow_key mask;
	uint32_t best_priority, nb_rules;
	SLIST_HEAD(, acl_rule) buckets[32];
};

struct acl { struct acl_tuple *tuples[MAX_TUPLES]; uint32_t nb_tuples; };

struct meter { uint64_t tokens, last, cir, cbs; };

struct flow {
	struct flow_key key;
	TAILQ_ENTRY(flow) lru;
	struct next_hop *nh;
	struct acl_rule *rule;
	struct meter meter;
	uint64_t packets, bytes;
	uint16_t bucket;
	uint8_t tcp_state, colour;
};

struct flow_bucket { uint32_t sig[4]; uint16_t index[4]; };

struct flow_table {
	struct flow_bucket *buckets;
	struct flow *flows;
	TAILQ_HEAD(flow_list, flow) lru;
	uint32_t nb_flows, evicted, lost;
};

struct port;
struct eth_dev_ops {
	uint16_t (*rx_pkt_burst)(struct port *, struct mbuf **, uint16_t);
	uint16_t (*tx_pkt_burst)(struct port *, struct mbuf **, uint16_t);
};

struct tx_buffer { uint16_t length; struct mbuf *pkts[MAX_BURST]; };

struct port {
	const struct eth_dev_ops *ops;
	struct mempool *pool;
	struct frame *templates;
	uint64_t seed;
	uint16_t id, lcore, pvid;
	struct { uint64_t ipackets, opackets, ibytes, obytes, rx_nombuf; } stats;
};

struct lcore_conf {
	unsigned int lcore_id;
	uint16_t nb_rx_port, rx_ports[MAX_PORTS];
	struct tx_buffer tx[MAX_PORTS];
	struct flow_table *flows;
	struct ring *to_other, *from_other;
	uint64_t tsc;
};

static struct port ports[MAX_PORTS];
static struct lcore_conf lcore_conf[MAX_LCORE];
static struct mac_bucket *mac_table;
static struct lpm *fib;
static struct next_hop *next_hops;
static struct acl acl;
static uint32_t toeplitz_key[96];
static __thread unsigned int my_lcore;
static __thread struct { uint64_t l2_hit, l2_miss, routed, denied, policed, handed, dropped, bursts; } stats;

/* ---- pools and rings ---- */

static unsigned pool_get_bulk(struct mempool *mp, struct mbuf **out, unsigned n)
{
	struct mempool_cache *c = &mp->local_cache[my_lcore];

	if (c->len < n) {
		while (atomic_flag_test_and_set_explicit(&mp->lock, memory_order_acquire))
			__builtin_ia32_pause();
		while (c->len < c->size && mp->count) c->objs[c->len++] = mp->stack[--mp->count];
		atomic_flag_clear_explicit(&mp->lock, memory_order_release);
	}
	if (unlikely(c->len < n)) return 0;
	for (unsigned i = 0; i < n; i++) out[i] = c->objs[--c->len];
	return n;
}

static void pool_put(struct mempool *mp, void *obj)
{
	struct mempool_cache *c = &mp->local_cache[my_lcore];

	c->objs[c->len++] = obj;
	if (c->len < CACHE_SIZE + MAX_BURST) return;
	while (atomic_flag_test_and_set_explicit(&mp->lock, memory_order_acquire))
		__builtin_ia32_pause();
	while (c->len > c->size) mp->stack[mp->count++] = c->objs[--c->len];
	atomic_flag_clear_explicit(&mp->lock, memory_order_release);
}

static inline void pktmbuf_free(struct mbuf *m)
{
	while (m) {
		struct mbuf *next = m->next;
		if (--m->refcnt == 0) {
			m->next = NULL;
			m->nb_segs = 1;
			pool_put(m->pool, m);
		}
		m = next;
	}
}

static unsigned ring_enqueue_burst(struct ring *r, struct mbuf *const *objs, unsigned n)
{
	uint32_t head = atomic_load_explicit(&r->prod.head, memory_order_relaxed);
	uint32_t room = RING_SIZE - (head - atomic_load_explicit(&r->cons.tail, memory_order_acquire));

	if (n > room) n = room;
	for (unsigned i = 0; i < n; i++) r->slots[(head + i) & (RING_SIZE - 1)] = objs[i];
	atomic_store_explicit(&r->prod.head, head + n, memory_order_relaxed);
	atomic_store_explicit(&r->prod.tail, head + n, memory_order_release);
	return n;
}

static unsigned ring_dequeue_burst(struct ring *r, struct mbuf **objs, unsigned n)
{
	uint32_t head = atomic_load_explicit(&r->cons.head, memory_order_relaxed);
	uint32_t have = atomic_load_explicit(&r->prod.tail, memory_order_acquire) - head;

	if (n > have) n = have;
	for (unsigned i = 0; i < n; i++) objs[i] = r->slots[(head + i) & (RING_SIZE - 1)];
	atomic_store_explicit(&r->cons.head, head + n, memory_order_relaxed);
	atomic_store_explicit(&r->cons.tail, head + n, memory_order_release);
	return n;
}

/* ---- a port that makes what it receives ---- */

static inline uint64_t port_random(struct port *p)
{
	p->seed ^= p->seed << 13;
	p->seed ^= p->seed >> 7;
	p->seed ^= p->seed << 17;
	return p->seed;
}

static NOINLINE uint16_t gen_rx_burst(struct port *p, struct mbuf **pkts, uint16_t n)
{
	if (!pool_get_bulk(p->pool, pkts, n)) {
		p->stats.rx_nombuf += n;
		return 0;
	}
	for (uint16_t i = 0; i < n; i++) {
		struct mbuf *m = pkts[i];
		struct frame *f = m->buf_addr;
		const struct frame *t = &p->templates[port_random(p) % 64];
		uint64_t r = port_random(p);
		f->eth = t->eth;
		f->ip.version_ihl = 0x45;
		f->ip.time_to_live = 64;
		f->ip.next_proto_id = t->ip.next_proto_id;
		f->ip.src_addr = t->ip.src_addr ^ (uint32_t)(r & 0x03000000);
		f->ip.dst_addr = t->ip.dst_addr;
		f->l4.udp.src_port = t->l4.udp.src_port ^ (uint16_t)(r >> 40 & 1);
		f->l4.udp.dst_port = t->l4.udp.dst_port;
		if (t->ip.next_proto_id == 6) f->l4.tcp.tcp_flags = r >> 50 & 15 ? 0x10 : r >> 54 & 3;
		m->port = p->id;
		m->refcnt = 1;
		m->data_off = 0;
		m->pkt_len = m->data_len = (uint16_t)(60 + (r >> 32 & 511));
		m->vlan_tci = p->pvid;
		m->ol_flags = p->id & 3 ? RX_RSS_HASH : 0;
		m->hash.rss = (f->ip.dst_addr ^ f->ip.src_addr >> 3 ^ f->l4.udp.src_port * 77u) * 0x9e3779b1u;
		m->packet_type = 0;
		p->stats.ibytes += m->pkt_len;
	}
	p->stats.ipackets += n;
	return n;
}

static NOINLINE uint16_t null_tx_burst(struct port *p, struct mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		p->stats.obytes += pkts[i]->pkt_len;
		pktmbuf_free(pkts[i]);
	}
	p->stats.opackets += n;
	return n;
}

static const struct eth_dev_ops gen_ops = { gen_rx_burst, null_tx_burst };

/* ---- addresses ---- */

static inline int is_same_ether_addr(const struct ether_addr *a, const struct ether_addr *b)
{
	for (int i = 5; i >= 0; i--)
		if (a->addr_bytes[i] != b->addr_bytes[i]) return 0;
	return 1;
}

static inline uint32_t mac_hash(const struct ether_addr *a, uint16_t vlan)
{
	uint32_t h = vlan * 0x9e3779b1u;
	for (int i = 0; i < 6; i++) h = (h ^ a->addr_bytes[i]) * 0x01000193u;
	return h ^ h >> 15;
}

static struct mac_entry *mac_lookup(const struct ether_addr *a, uint16_t vlan)
{
	uint32_t h = mac_hash(a, vlan);
	struct mac_bucket *b = &mac_table[h % MAC_BUCKETS];

	for (int i = 0; i < MAC_ASSOC; i++)
		if (b->sig[i] == (uint16_t)(h >> 16) && b->entry[i].vlan == vlan && is_same_ether_addr(&b->entry[i].mac, a))
			return &b->entry[i];
	return NULL;
}

static void mac_learn(const struct mbuf *m, uint32_t now)
{
	const struct ether_addr *a = &m->buf_addr->eth.s_addr;
	struct mac_entry *e = mac_lookup(a, m->vlan_tci);

	if (unlikely(!e)) {
		uint32_t h = mac_hash(a, m->vlan_tci);
		struct mac_bucket *b = &mac_table[h % MAC_BUCKETS];
		int oldest = 0;
		for (int i = 1; i < MAC_ASSOC; i++)
			if (!b->entry[i].is_static && b->entry[i].seen < b->entry[oldest].seen) oldest = i;
		b->sig[oldest] = (uint16_t)(h >> 16);
		e = &b->entry[oldest];
		e->mac = *a;
		e->vlan = m->vlan_tci;
		stats.l2_miss++;
	} else
		stats.l2_hit++;
	e->port = (uint8_t)m->port;
	e->seen = now;
}

/* ---- routes ---- */

static void lpm_add(struct lpm *lpm, uint32_t ip, uint8_t depth, uint32_t hop)
{
	uint32_t index = ip >> (32 - TBL24_BITS), n;

	if (depth <= TBL24_BITS) {
		for (n = 1u << (TBL24_BITS - depth); n--; index++) {
			struct lpm_tbl_entry *e = &lpm->tbl24[index];
			if (e->ext || (e->valid && e->depth > depth)) continue;
			*e = (struct lpm_tbl_entry) { hop, 1, 0, depth };
		}
		return;
	}
	struct lpm_tbl_entry *e = &lpm->tbl24[index];
	if (!e->ext) {
		if (lpm->used_groups == TBL8_GROUPS) return;
		for (n = 0; n < 256; n++) lpm->tbl8[lpm->used_groups * 256 + n] = *e;
		*e = (struct lpm_tbl_entry) { lpm->used_groups++, 1, 1, 0 };
	}
	uint32_t from = e->next_hop * 256 + (ip >> (24 - TBL24_BITS) & 255);
	for (n = depth >= 20 ? 1 : 1u << (20 - depth); n--; from++)
		if (!lpm->tbl8[from].valid || lpm->tbl8[from].depth <= depth) lpm->tbl8[from] = (struct lpm_tbl_entry) { hop, 1, 0, depth };
	lpm->max_rules++;
}

static NOINLINE struct next_hop *lpm_lookup(const struct lpm *lpm, uint32_t ip)
{
	const struct lpm_tbl_entry *e = &lpm->tbl24[ip >> (32 - TBL24_BITS)];

	if (e->ext) e = &lpm->tbl8[e->next_hop * 256 + (ip >> (24 - TBL24_BITS) & 255)];
	return e->valid ? &next_hops[e->next_hop] : NULL;
}

/* ---- rules ---- */

static inline uint32_t key_hash(const struct flow_key *k)
{
	uint32_t h = k->src * 0x85ebca6bu;
	h = (h ^ h >> 13 ^ k->dst) * 0xc2b2ae35u;
	h = (h ^ h >> 16 ^ k->sport ^ (uint32_t)k->dport << 16) * 0x27d4eb2fu;
	return h ^ h >> 15 ^ k->proto;
}

static inline int key_equal(const struct flow_key *a, const struct flow_key *b)
{
	return a->src == b->src && a->dst == b->dst && a->sport == b->sport && a->dport == b->dport && a->proto == b->proto;
}

static inline struct flow_key key_mask(const struct flow_key *k, const struct flow_key *m)
{
	return (struct flow_key) { k->src & m->src, k->dst & m->dst, k->sport & m->sport, k->dport & m->dport, k->proto & m->proto, { 0 } };
}

static NOINLINE struct acl_rule *acl_classify(const struct acl *a, const struct flow_key *key)
{
	struct acl_rule *best = NULL, *r;

	for (uint32_t i = 0; i < a->nb_tuples; i++) {
		const struct acl_tuple *t = a->tuples[i];
		if (best && t->best_priority <= best->priority) continue;
		struct flow_key masked = key_mask(key, &t->mask);
		SLIST_FOREACH(r, &t->buckets[key_hash(&masked) % 32], link)
			if (key_equal(&r->value, &masked) && (!best || r->priority > best->priority)) best = r;
	}
	if (best) best->hits++;
	return best;
}

static void acl_add(struct acl_tuple *t, const struct flow_key *key, uint32_t priority, int action)
{
	struct acl_rule *r = HEAP_CALLOC(struct acl_rule, 1);

	r->value = key_mask(key, &t->mask);
	r->priority = priority;
	r->action = action;
	SLIST_INSERT_HEAD(&t->buckets[key_hash(&r->value) % 32], r, link);
	if (priority > t->best_priority) t->best_priority = priority;
	t->nb_rules++;
}

/* ---- flows ---- */

static void flow_unlink(struct flow_table *ft, struct flow *f)
{
	struct flow_bucket *b = &ft->buckets[f->bucket];

	for (int i = 0; i < 4; i++)
		if (b->sig[i] && b->index[i] == f - ft->flows) b->sig[i] = 0;
	TAILQ_REMOVE(&ft->lru, f, lru);
	ft->evicted++;
}

static NOINLINE struct flow *flow_lookup(struct flow_table *ft, const struct flow_key *key, uint32_t hash, uint64_t now)
{
	uint32_t sig = hash | 1, first = hash >> 9 & (FLOW_BUCKETS - 1), second = (sig * 0x5bd1e995u) >> 22;
	struct flow *f;

	for (int alt = 0; alt < 2; alt++) {
		struct flow_bucket *b = &ft->buckets[alt ? second : first];
		for (int i = 0; i < 4; i++) {
			if (b->sig[i] != sig) continue;
			f = &ft->flows[b->index[i]];
			if (likely(key_equal(&f->key, key))) {
				TAILQ_REMOVE(&ft->lru, f, lru);
				TAILQ_INSERT_TAIL(&ft->lru, f, lru);
				return f;
			}
		}
	}
	if (ft->nb_flows < FLOWS)
		f = &ft->flows[ft->nb_flows++];
	else
		flow_unlink(ft, f = TAILQ_FIRST(&ft->lru));
	memset(f, 0, sizeof(*f));
	f->key = *key;
	f->nh = lpm_lookup(fib, key->dst);
	f->rule = acl_classify(&acl, key);
	f->meter.cir = 2 + hash % 8;
	f->meter.cbs = f->meter.tokens = 3000;
	f->meter.last = now;
	TAILQ_INSERT_TAIL(&ft->lru, f, lru);
	for (int alt = 0; alt < 2; alt++) {
		struct flow_bucket *b = &ft->buckets[alt ? second : first];
		for (int i = 0; i < 4; i++) {
			if (b->sig[i]) continue;
			b->sig[i] = sig;
			b->index[i] = (uint16_t)(f - ft->flows);
			f->bucket = (uint16_t)(alt ? second : first);
			return f;
		}
	}
	ft->lost++;
	return f;
}

static int meter_run(struct meter *m, uint32_t bytes, uint64_t now)
{
	m->tokens += (now - m->last) * m->cir;
	m->last = now;
	if (m->tokens > m->cbs) m->tokens = m->cbs;
	if (m->tokens < bytes) return 0;
	m->tokens -= bytes;
	return 1;
}

static void tcp_track(struct flow *f, const struct tcp_hdr *tcp)
{
	static const uint8_t next[4][4] = { { 0, 3, 1, 1 }, { 2, 3, 1, 2 }, { 2, 3, 2, 2 }, { 3, 3, 1, 0 } };
	f->tcp_state = next[f->tcp_state][tcp->tcp_flags & 3];
}

/* ---- the pipeline ---- */

static NOINLINE uint32_t softrss(const struct flow_key *k)
{
	uint32_t tuple[3] = { k->src, k->dst, (uint32_t)k->sport << 16 | k->dport }, h = 0;

	for (int j = 0; j < 3; j++)
		for (uint32_t v = tuple[j]; v; v &= v - 1) h ^= toeplitz_key[j * 32 + __builtin_ctz(v)];
	return h;
}

static void parse_burst(struct mbuf **pkts, struct flow_key *keys, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct mbuf *m = pkts[i];
		struct ether_hdr *eth = (struct ether_hdr *)m->buf_addr;
		struct ipv4_hdr *ip = (struct ipv4_hdr *)(eth + 1);
		struct udp_hdr *l4 = (struct udp_hdr *)(ip + 1);
		if (i + 2 < n) prefetch0(pkts[i + 2]->buf_addr);
		keys[i] = (struct flow_key) { ip->src_addr, ip->dst_addr, l4->src_port, l4->dst_port, ip->next_proto_id, { 0 } };
		m->l2_len = sizeof(*eth);
		m->l3_len = (ip->version_ihl & 15) * 4;
		m->packet_type = ip->next_proto_id == 6 ? 0x111 : 0x211;
		if (!(m->ol_flags & RX_RSS_HASH)) m->hash.rss = softrss(&keys[i]);
	}
}

static inline void tx_one(struct lcore_conf *lc, struct mbuf *m, uint16_t port)
{
	struct tx_buffer *b = &lc->tx[port];

	b->pkts[b->length++] = m;
	if (b->length == MAX_BURST) {
		ports[port].ops->tx_pkt_burst(&ports[port], b->pkts, b->length);
		b->length = 0;
	}
}

static inline void rewrite(struct frame *f, const struct next_hop *nh)
{
	f->eth.s_addr = f->eth.d_addr;
	f->eth.d_addr = nh->mac;
	f->ip.time_to_live--;
	f->ip.hdr_checksum = (uint16_t)(f->ip.hdr_checksum + 1 + (f->ip.hdr_checksum == 0xffff));
}

static NOINLINE void forward_burst(struct lcore_conf *lc, struct mbuf **pkts, struct flow_key *keys, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct mbuf *m = pkts[i];
		struct flow *f;
		mac_learn(m, (uint32_t)lc->tsc);
		if (m->buf_addr->eth.d_addr.addr_bytes[0] == 2) {
			struct mac_entry *e = mac_lookup(&m->buf_addr->eth.d_addr, m->vlan_tci);
			tx_one(lc, m, e ? e->port : (m->port + 1) % MAX_PORTS);
			continue;
		}
		f = flow_lookup(lc->flows, &keys[i], m->hash.rss, lc->tsc);
		f->packets++;
		f->bytes += m->pkt_len;
		if (m->packet_type == 0x111) tcp_track(f, &m->buf_addr->l4.tcp);
		if (!f->nh || (f->rule && f->rule->action == DENY)) {
			stats.denied++;
			pktmbuf_free(m);
			continue;
		}
		if (f->rule && f->rule->action == POLICE && !meter_run(&f->meter, m->pkt_len, lc->tsc)) {
			stats.policed++;
			pktmbuf_free(m);
			continue;
		}
		rewrite(m->buf_addr, f->nh);
		f->nh->packets++;
		f->nh->bytes += m->pkt_len;
		stats.routed++;
		tx_one(lc, m, f->nh->port);
	}
}

static void lcore_poll(struct lcore_conf *lc)
{
	struct mbuf *pkts[MAX_BURST], *mine[MAX_BURST], *others[MAX_BURST];
	struct flow_key keys[MAX_BURST];

	for (unsigned p = 0; p < lc->nb_rx_port; p++) {
		struct port *port = &ports[lc->rx_ports[p]];
		unsigned n = port->ops->rx_pkt_burst(port, pkts, MAX_BURST), m = 0, o = 0, sent;
		parse_burst(pkts, keys, n);
		for (unsigned i = 0; i < n; i++) {
			if (pkts[i]->hash.rss >> 29 == 0)
				others[o++] = pkts[i];
			else {
				keys[m] = keys[i];
				mine[m++] = pkts[i];
			}
		}
		forward_burst(lc, mine, keys, m);
		sent = ring_enqueue_burst(lc->to_other, others, o);
		stats.handed += sent;
		for (; sent < o; sent++) {
			stats.dropped++;
			pktmbuf_free(others[sent]);
		}
	}
	unsigned n = ring_dequeue_burst(lc->from_other, pkts, MAX_BURST);
	parse_burst(pkts, keys, n);
	forward_burst(lc, pkts, keys, n);
	lc->tsc++;
	stats.bursts++;
}

static void *lcore_main(void *arg)
{
	struct lcore_conf *lc = arg;

	if (lc->lcore_id) tr_thread();
	my_lcore = lc->lcore_id;
	TR_TLS(my_lcore, "unsigned int");
	while (tr_more()) lcore_poll(lc);
	return NULL;
}

/* ---- configuration ---- */

static struct mempool *pool_create(const char *name)
{
	struct mempool *mp = aligned_alloc(64, sizeof(*mp));
	struct mbuf *mbufs = aligned_alloc(64, POOL_SIZE * sizeof(*mbufs));
	struct frame *frames = HEAP_CALLOC(struct frame, POOL_SIZE);

	tr_region("struct mempool", memset(mp, 0, sizeof(*mp)), sizeof(*mp), sizeof(*mp));
	tr_region("struct mbuf", memset(mbufs, 0, POOL_SIZE * sizeof(*mbufs)), POOL_SIZE * sizeof(*mbufs), sizeof(*mbufs));
	snprintf(mp->name, sizeof(mp->name), "%s", name);
	mp->stack = HEAP_CALLOC(void *, POOL_SIZE);
	for (int i = 0; i < MAX_LCORE; i++) mp->local_cache[i].size = CACHE_SIZE;
	for (int i = 0; i < POOL_SIZE; i++) {
		mbufs[i].buf_addr = &frames[i];
		mbufs[i].pool = mp;
		mbufs[i].nb_segs = 1;
		mp->stack[mp->count++] = &mbufs[i];
	}
	return mp;
}

static uint32_t random_dst(void) { return (uint32_t)(10 << 24 | (tr_rand() & 0x00fff0ff)); }

static void configure(void)
{
	static const struct flow_key masks[] = {
		{ 0, ~0u, 0, 0xffff, 0xff, { 0 } }, { ~0u << 24, 0, 0, 0, 0xff, { 0 } }, { 0, 0xfffff000u, 0, 0, 0, { 0 } }, { ~0u, 0, 0xffff, 0, 0, { 0 } },
	};
	struct ring *rings[MAX_LCORE];

	fib = HEAP_CALLOC(struct lpm, 1);
	fib->tbl8 = HEAP_CALLOC(struct lpm_tbl_entry, TBL8_GROUPS * 256);
	next_hops = HEAP_CALLOC(struct next_hop, NEXT_HOPS);
	mac_table = aligned_alloc(64, MAC_BUCKETS * sizeof(*mac_table));
	tr_region("struct mac_bucket", memset(mac_table, 0, MAC_BUCKETS * sizeof(*mac_table)), MAC_BUCKETS * sizeof(*mac_table), sizeof(*mac_table));
	for (int i = 0; i < NEXT_HOPS; i++) {
		next_hops[i].port = (uint16_t)(i % MAX_PORTS);
		for (int k = 0; k < 6; k++) next_hops[i].mac.addr_bytes[k] = (uint8_t)(i * k);
	}
	lpm_add(fib, 10 << 24, 8, 1);
	for (int i = 0; i < 120; i++) lpm_add(fib, random_dst(), (uint8_t)(9 + tr_rand() % 11), (uint32_t)(tr_rand() % NEXT_HOPS));
	for (int i = 0; i < 96; i++) toeplitz_key[i] = (uint32_t)(tr_rand() >> 20);
	for (int i = 0; i < MAX_PORTS; i++) {
		struct port *p = &ports[i];
		p->ops = &gen_ops;
		p->id = (uint16_t)i;
		p->pvid = (uint16_t)(1 + i % 2);
		p->lcore = (uint16_t)(i % MAX_LCORE);
		p->seed = tr_rand();
		p->pool = i < 2 ? pool_create(i ? "odd" : "even") : ports[i % 2].pool;
		p->templates = HEAP_CALLOC(struct frame, 64);
		for (int t = 0; t < 64; t++) {
			struct frame *f = &p->templates[t];
			for (int k = 0; k < 6; k++) f->eth.d_addr.addr_bytes[k] = f->eth.s_addr.addr_bytes[k] = (uint8_t)(tr_rand() % 9);
			f->eth.d_addr.addr_bytes[0] = t % 3 ? 4 : 2;
			f->eth.ether_type = 0x0008;
			f->ip.version_ihl = 0x45;
			f->ip.time_to_live = 64;
			f->ip.next_proto_id = t % 4 ? 6 : 17;
			f->ip.src_addr = (uint32_t)(192u << 24 | (tr_rand() & 0xff));
			f->ip.dst_addr = random_dst();
			f->l4.udp.src_port = (uint16_t)(1024 + tr_rand() % 400);
			f->l4.udp.dst_port = (uint16_t)(tr_rand() % 3 * 80);
		}
	}
	for (unsigned t = 0; t < sizeof(masks) / sizeof(masks[0]); t++) {
		struct acl_tuple *tuple = acl.tuples[acl.nb_tuples++] = HEAP_CALLOC(struct acl_tuple, 1);
		tuple->mask = masks[t];
		for (int i = 0; i < 30; i++) {
			const struct frame *f = &ports[tr_rand() % MAX_PORTS].templates[tr_rand() % 64];
			struct flow_key k = { f->ip.src_addr, f->ip.dst_addr, f->l4.udp.src_port, f->l4.udp.dst_port, f->ip.next_proto_id, { 0 } };
			acl_add(tuple, &k, (uint32_t)(tr_rand() % 1000), tr_rand() % 8 == 0 ? DENY : (int)(tr_rand() & 2));
		}
	}
	for (int l = 0; l < MAX_LCORE; l++) {
		rings[l] = aligned_alloc(64, sizeof(struct ring));
		tr_region("struct ring", memset(rings[l], 0, sizeof(struct ring)), sizeof(struct ring), sizeof(struct ring));
	}
	for (int l = 0; l < MAX_LCORE; l++) {
		struct lcore_conf *lc = &lcore_conf[l];
		lc->lcore_id = (unsigned)l;
		for (int p = l; p < MAX_PORTS; p += MAX_LCORE) lc->rx_ports[lc->nb_rx_port++] = (uint16_t)p;
		lc->flows = HEAP_CALLOC(struct flow_table, 1);
		lc->flows->buckets = HEAP_CALLOC(struct flow_bucket, FLOW_BUCKETS);
		lc->flows->flows = HEAP_CALLOC(struct flow, FLOWS);
		TAILQ_INIT(&lc->flows->lru);
		lc->to_other = rings[l];
		lc->from_other = rings[!l];
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	tr_init(argc, argv);
	TR_GLOBAL(ports, "struct port []");
	TR_GLOBAL(lcore_conf, "struct lcore_conf []");
	TR_GLOBAL(mac_table, "struct mac_bucket *");
	TR_GLOBAL(fib, "struct lpm *");
	TR_GLOBAL(next_hops, "struct next_hop *");
	TR_GLOBAL(acl, "struct acl");
	TR_GLOBAL(toeplitz_key, "unsigned int []");
	TR_GLOBAL(gen_ops, "struct eth_dev_ops");
	TR_CHECK(struct mbuf, next);
	TR_CHECK(struct flow, tcp_state);
	TR_CHECK(struct frame, l4);
	TR_CHECK(struct acl_tuple, buckets);
	configure();
	pthread_create(&thread, NULL, lcore_main, &lcore_conf[1]);
	lcore_main(&lcore_conf[0]);
	pthread_join(thread, NULL);
	if (getenv("VERBOSE"))
		printf("l2 %lu/%lu routed %lu denied %lu policed %lu handed %lu dropped %lu; flows %u evicted %u lost %u; no buffers %lu\n", stats.l2_hit, stats.l2_miss, stats.routed, stats.denied,
		       stats.policed, stats.handed, stats.dropped, lcore_conf[0].flows->nb_flows, lcore_conf[0].flows->evicted, lcore_conf[0].flows->lost, ports[0].stats.rx_nombuf);
	tr_sink = stats.routed;
	return 0;
}
