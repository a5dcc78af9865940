/*
 * A message broker: clients in hashes with handles inside, a tree of subscriptions and one of retained
 * messages, packets read a byte at a time, in-flight and waiting lists per client, output as chains of
 * buffers, timers in a red-black tree, plugins that are called back, a store that is saved and read again.
 *
 * In the manner of mosquitto, with the output and the timers of nginx.
 */
#include "../heap.h"
#include <stdbool.h>

#define UNUSED(A) (void)(A)
#define MOSQ_ERR_SUCCESS 0
#define MOSQ_ERR_PROTOCOL 2
#define MOSQ_ERR_NOT_FOUND 3
#define MOSQ_ERR_CONN_LOST 7
#define MOSQ_ERR_ACL_DENIED 12
#define MOSQ_ERR_AGAIN 99

#define CMD_CONNECT 0x10U
#define CMD_CONNACK 0x20U
#define CMD_PUBLISH 0x30U
#define CMD_PUBACK 0x40U
#define CMD_PUBREC 0x50U
#define CMD_PUBREL 0x60U
#define CMD_PUBCOMP 0x70U
#define CMD_SUBSCRIBE 0x80U
#define CMD_SUBACK 0x90U
#define CMD_UNSUBSCRIBE 0xA0U
#define CMD_UNSUBACK 0xB0U
#define CMD_PINGREQ 0xC0U
#define CMD_PINGRESP 0xD0U
#define CMD_DISCONNECT 0xE0U

#define MOSQ_MSB(A) (uint8_t)(((A) & 0xFF00) >> 8)
#define MOSQ_LSB(A) (uint8_t)((A) & 0x00FF)

/* ------------------------------------------------------------------ uthash */

typedef struct UT_hash_bucket {
	struct UT_hash_handle *hh_head;
	unsigned count;
	unsigned expand_mult;
} UT_hash_bucket;

typedef struct UT_hash_table {
	UT_hash_bucket *buckets;
	unsigned num_buckets, log2_num_buckets;
	unsigned num_items;
	struct UT_hash_handle *tail;
	ptrdiff_t hho;
	unsigned ideal_chain_maxlen;
	unsigned nonideal_items;
	unsigned ineff_expands, noexpand;
	uint32_t signature;
} UT_hash_table;

typedef struct UT_hash_handle {
	struct UT_hash_table *tbl;
	void *prev;
	void *next;
	struct UT_hash_handle *hh_prev;
	struct UT_hash_handle *hh_next;
	const void *key;
	unsigned keylen;
	unsigned hashv;
} UT_hash_handle;

#define DECLTYPE(x) (__typeof(x))
#define ELMT_FROM_HH(tbl, hhp) ((void *)(((char *)(hhp)) - ((tbl)->hho)))
#define HH_FROM_ELMT(tbl, elp) ((UT_hash_handle *)(void *)(((char *)(elp)) + ((tbl)->hho)))
#define HASH_SIGNATURE 0xa0111fe1u
#define HASH_INITIAL_NUM_BUCKETS 8U
#define HASH_BKT_CAPACITY_THRESH 6U
#define HASH_TO_BKT(hashv, num_bkts) ((hashv) & ((num_bkts)-1U))

#define HASH_JEN_MIX(a, b, c) \
	do { \
		a -= b; a -= c; a ^= (c >> 13); \
		b -= c; b -= a; b ^= (a << 8); \
		c -= a; c -= b; c ^= (b >> 13); \
		a -= b; a -= c; a ^= (c >> 12); \
		b -= c; b -= a; b ^= (a << 16); \
		c -= a; c -= b; c ^= (b >> 5); \
		a -= b; a -= c; a ^= (c >> 3); \
		b -= c; b -= a; b ^= (a << 10); \
		c -= a; c -= b; c ^= (b >> 15); \
	} while (0)

static inline unsigned hash_jen(const void *key, size_t keylen)
{
	const unsigned char *k = key;
	unsigned i = 0x9e3779b9u, j = 0x9e3779b9u, h = 0xfeedbeefu;
	size_t n = keylen;
	while (n >= 12U) {
		i += k[0] + ((unsigned)k[1] << 8) + ((unsigned)k[2] << 16) + ((unsigned)k[3] << 24);
		j += k[4] + ((unsigned)k[5] << 8) + ((unsigned)k[6] << 16) + ((unsigned)k[7] << 24);
		h += k[8] + ((unsigned)k[9] << 8) + ((unsigned)k[10] << 16) + ((unsigned)k[11] << 24);
		HASH_JEN_MIX(i, j, h);
		k += 12; n -= 12U;
	}
	h += (unsigned)keylen;
	switch (n) {
	case 11: h += (unsigned)k[10] << 24; /* FALLTHRU */
	case 10: h += (unsigned)k[9] << 16; /* FALLTHRU */
	case 9: h += (unsigned)k[8] << 8; /* FALLTHRU */
	case 8: j += (unsigned)k[7] << 24; /* FALLTHRU */
	case 7: j += (unsigned)k[6] << 16; /* FALLTHRU */
	case 6: j += (unsigned)k[5] << 8; /* FALLTHRU */
	case 5: j += k[4]; /* FALLTHRU */
	case 4: i += (unsigned)k[3] << 24; /* FALLTHRU */
	case 3: i += (unsigned)k[2] << 16; /* FALLTHRU */
	case 2: i += (unsigned)k[1] << 8; /* FALLTHRU */
	case 1: i += k[0];
	}
	HASH_JEN_MIX(i, j, h);
	return h;
}

#define HASH_FIND_BYHASHVALUE(hh, head, keyptr, klen, hashval, out) \
	do { \
		(out) = NULL; \
		if (head) { \
			UT_hash_handle *_hf = (head)->hh.tbl->buckets[HASH_TO_BKT(hashval, (head)->hh.tbl->num_buckets)].hh_head; \
			while (_hf != NULL) { \
				if (_hf->hashv == (hashval) && _hf->keylen == (klen) && memcmp(_hf->key, keyptr, klen) == 0) { \
					(out) = DECLTYPE(out) ELMT_FROM_HH((head)->hh.tbl, _hf); \
					break; \
				} \
				_hf = _hf->hh_next; \
			} \
		} \
	} while (0)

#define HASH_FIND(hh, head, keyptr, klen, out) \
	do { \
		unsigned _hf_hashv = hash_jen(keyptr, klen); \
		HASH_FIND_BYHASHVALUE(hh, head, keyptr, klen, _hf_hashv, out); \
	} while (0)

#define HASH_EXPAND_BUCKETS(tbl) \
	do { \
		unsigned _he_bkt, _he_bkt_i; \
		UT_hash_handle *_he_thh, *_he_hh_nxt; \
		UT_hash_bucket *_he_newbkt, *_he_new = HEAP_CALLOC(UT_hash_bucket, 2U * (tbl)->num_buckets); \
		(tbl)->ideal_chain_maxlen = ((tbl)->num_items >> ((tbl)->log2_num_buckets + 1U)) + (((tbl)->num_items & (((tbl)->num_buckets * 2U) - 1U)) != 0U ? 1U : 0U); \
		(tbl)->nonideal_items = 0; \
		for (_he_bkt_i = 0; _he_bkt_i < (tbl)->num_buckets; _he_bkt_i++) { \
			_he_thh = (tbl)->buckets[_he_bkt_i].hh_head; \
			while (_he_thh != NULL) { \
				_he_hh_nxt = _he_thh->hh_next; \
				_he_bkt = HASH_TO_BKT(_he_thh->hashv, (tbl)->num_buckets * 2U); \
				_he_newbkt = &_he_new[_he_bkt]; \
				if (++(_he_newbkt->count) > (tbl)->ideal_chain_maxlen) (tbl)->nonideal_items++; \
				_he_thh->hh_prev = NULL; \
				_he_thh->hh_next = _he_newbkt->hh_head; \
				if (_he_newbkt->hh_head != NULL) _he_newbkt->hh_head->hh_prev = _he_thh; \
				_he_newbkt->hh_head = _he_thh; \
				_he_thh = _he_hh_nxt; \
			} \
		} \
		HEAP_FREE((tbl)->buckets); \
		(tbl)->num_buckets *= 2U; \
		(tbl)->log2_num_buckets++; \
		(tbl)->buckets = _he_new; \
	} while (0)

#define HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, keyptr, klen, hashval, add) \
	do { \
		UT_hash_table *_ha_tbl; \
		UT_hash_bucket *_ha_bkt; \
		(add)->hh.hashv = (hashval); \
		(add)->hh.key = (keyptr); \
		(add)->hh.keylen = (unsigned)(klen); \
		(add)->hh.next = NULL; \
		if (!(head)) { \
			_ha_tbl = HEAP_CALLOC(UT_hash_table, 1); \
			_ha_tbl->buckets = HEAP_CALLOC(UT_hash_bucket, HASH_INITIAL_NUM_BUCKETS); \
			_ha_tbl->num_buckets = HASH_INITIAL_NUM_BUCKETS; \
			_ha_tbl->log2_num_buckets = 3; \
			_ha_tbl->hho = (char *)(&(add)->hh) - (char *)(add); \
			_ha_tbl->signature = HASH_SIGNATURE; \
			(add)->hh.prev = NULL; \
			(head) = (add); \
		} else { \
			_ha_tbl = (head)->hh.tbl; \
			_ha_tbl->tail->next = (add); \
			(add)->hh.prev = ELMT_FROM_HH(_ha_tbl, _ha_tbl->tail); \
		} \
		_ha_tbl->tail = &((add)->hh); \
		(add)->hh.tbl = _ha_tbl; \
		_ha_tbl->num_items++; \
		_ha_bkt = &_ha_tbl->buckets[HASH_TO_BKT(hashval, _ha_tbl->num_buckets)]; \
		_ha_bkt->count++; \
		(add)->hh.hh_next = _ha_bkt->hh_head; \
		(add)->hh.hh_prev = NULL; \
		if (_ha_bkt->hh_head) _ha_bkt->hh_head->hh_prev = &(add)->hh; \
		_ha_bkt->hh_head = &(add)->hh; \
		if (_ha_bkt->count >= (_ha_bkt->expand_mult + 1U) * HASH_BKT_CAPACITY_THRESH && !_ha_tbl->noexpand) HASH_EXPAND_BUCKETS(_ha_tbl); \
	} while (0)

#define HASH_ADD_KEYPTR(hh, head, keyptr, klen, add) \
	do { \
		unsigned _ha_hashv = hash_jen(keyptr, klen); \
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, keyptr, klen, _ha_hashv, add); \
	} while (0)

#define HASH_DELETE(hh, head, delptr) \
	do { \
		UT_hash_handle *_hd_hh = &(delptr)->hh; \
		if (_hd_hh->prev == NULL && _hd_hh->next == NULL) { \
			HEAP_FREE((head)->hh.tbl->buckets); \
			HEAP_FREE((head)->hh.tbl); \
			(head) = NULL; \
		} else { \
			UT_hash_table *_hd_tbl = (head)->hh.tbl; \
			UT_hash_bucket *_hd_bkt = &_hd_tbl->buckets[HASH_TO_BKT(_hd_hh->hashv, _hd_tbl->num_buckets)]; \
			if (_hd_hh == _hd_tbl->tail) _hd_tbl->tail = HH_FROM_ELMT(_hd_tbl, _hd_hh->prev); \
			if (_hd_hh->prev != NULL) HH_FROM_ELMT(_hd_tbl, _hd_hh->prev)->next = _hd_hh->next; \
			else (head) = DECLTYPE(head)(_hd_hh->next); \
			if (_hd_hh->next != NULL) HH_FROM_ELMT(_hd_tbl, _hd_hh->next)->prev = _hd_hh->prev; \
			_hd_bkt->count--; \
			if (_hd_bkt->hh_head == _hd_hh) _hd_bkt->hh_head = _hd_hh->hh_next; \
			if (_hd_hh->hh_prev) _hd_hh->hh_prev->hh_next = _hd_hh->hh_next; \
			if (_hd_hh->hh_next) _hd_hh->hh_next->hh_prev = _hd_hh->hh_prev; \
			_hd_tbl->num_items--; \
		} \
	} while (0)

#define HASH_ITER(hh, head, el, tmp) for (((el) = (head)), ((tmp) = DECLTYPE(el)((head) != NULL ? (head)->hh.next : NULL)); (el) != NULL; ((el) = (tmp)), ((tmp) = DECLTYPE(el)((tmp) != NULL ? (tmp)->hh.next : NULL)))
#define HASH_CNT(hh, head) ((head) ? ((head)->hh.tbl->num_items) : 0U)

/* ------------------------------------------------------------------ utlist */

#define DL_APPEND(head, add) \
	do { \
		if (head) { \
			(add)->prev = (head)->prev; \
			(head)->prev->next = (add); \
			(head)->prev = (add); \
			(add)->next = NULL; \
		} else { \
			(head) = (add); \
			(head)->prev = (head); \
			(head)->next = NULL; \
		} \
	} while (0)

#define DL_DELETE(head, del) \
	do { \
		if ((del)->prev == (del)) { \
			(head) = NULL; \
		} else if ((del) == (head)) { \
			(del)->next->prev = (del)->prev; \
			(head) = (del)->next; \
		} else { \
			(del)->prev->next = (del)->next; \
			if ((del)->next) (del)->next->prev = (del)->prev; \
			else (head)->prev = (del)->prev; \
		} \
	} while (0)

#define DL_FOREACH(head, el) for ((el) = (head); (el); (el) = (el)->next)
#define DL_FOREACH_SAFE(head, el, tmp) for ((el) = (head); (el) && ((tmp) = (el)->next, 1); (el) = (tmp))

/* ------------------------------------------------------------------ nginx: queue, rbtree, buf */

typedef unsigned char u_char;
typedef uintptr_t ngx_uint_t;
typedef uintptr_t ngx_msec_t;
typedef struct { size_t len; u_char *data; } ngx_str_t;

typedef struct ngx_queue_s ngx_queue_t;
struct ngx_queue_s { ngx_queue_t *prev; ngx_queue_t *next; };
#define ngx_queue_init(q) (q)->prev = q; (q)->next = q
#define ngx_queue_empty(h) (h == (h)->prev)
#define ngx_queue_head(h) (h)->next
#define ngx_queue_last(h) (h)->prev
#define ngx_queue_insert_head(h, x) (x)->next = (h)->next; (x)->next->prev = x; (x)->prev = h; (h)->next = x
#define ngx_queue_insert_tail(h, x) (x)->prev = (h)->prev; (x)->prev->next = x; (x)->next = h; (h)->prev = x
#define ngx_queue_remove(x) (x)->next->prev = (x)->prev; (x)->prev->next = (x)->next
#define ngx_queue_data(q, type, link) (type *)((u_char *)(q) - offsetof(type, link))

typedef ngx_uint_t ngx_rbtree_key_t;
typedef struct ngx_rbtree_node_s ngx_rbtree_node_t;
struct ngx_rbtree_node_s {
	ngx_rbtree_key_t key;
	ngx_rbtree_node_t *left, *right, *parent;
	u_char color;
	u_char data;
};
typedef struct ngx_rbtree_s ngx_rbtree_t;
typedef void (*ngx_rbtree_insert_pt)(ngx_rbtree_node_t *root, ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
struct ngx_rbtree_s { ngx_rbtree_node_t *root, *sentinel; ngx_rbtree_insert_pt insert; };
#define ngx_rbt_red(node) ((node)->color = 1)
#define ngx_rbt_black(node) ((node)->color = 0)
#define ngx_rbt_is_red(node) ((node)->color)
#define ngx_rbt_is_black(node) (!ngx_rbt_is_red(node))
#define ngx_rbt_copy_color(n1, n2) (n1->color = n2->color)

typedef struct ngx_event_s ngx_event_t;
struct ngx_event_s {
	void *data;
	unsigned write:1, accept:1, active:1, ready:1, timedout:1, timer_set:1, posted:1, closed:1;
	unsigned available;
	void (*handler)(ngx_event_t *ev);
	ngx_rbtree_node_t timer;
	ngx_queue_t queue;
};

typedef struct ngx_buf_s ngx_buf_t;
typedef struct ngx_chain_s ngx_chain_t;
struct ngx_buf_s {
	u_char *pos, *last, *start, *end;
	void *tag;
	unsigned temporary:1, memory:1, flush:1, last_buf:1, last_in_chain:1;
	int num;
};
struct ngx_chain_s { ngx_buf_t *buf; ngx_chain_t *next; };
#define ngx_buf_size(b) (size_t)((b)->last - (b)->pos)

static ngx_rbtree_t ngx_event_timer_rbtree;
static ngx_rbtree_node_t ngx_event_timer_sentinel;
static ngx_queue_t ngx_posted_events;
static ngx_msec_t ngx_current_msec;
static struct ngx_output_s { ngx_chain_t *free_chains; ngx_buf_t *free_bufs; ngx_uint_t chains, reused; } ngx_output;

static void ngx_rbtree_left_rotate(ngx_rbtree_node_t **root, ngx_rbtree_node_t *sentinel, ngx_rbtree_node_t *node)
{
	ngx_rbtree_node_t *temp = node->right;
	node->right = temp->left;
	if (temp->left != sentinel) temp->left->parent = node;
	temp->parent = node->parent;
	if (node == *root) *root = temp;
	else if (node == node->parent->left) node->parent->left = temp;
	else node->parent->right = temp;
	temp->left = node;
	node->parent = temp;
}

static void ngx_rbtree_right_rotate(ngx_rbtree_node_t **root, ngx_rbtree_node_t *sentinel, ngx_rbtree_node_t *node)
{
	ngx_rbtree_node_t *temp = node->left;
	node->left = temp->right;
	if (temp->right != sentinel) temp->right->parent = node;
	temp->parent = node->parent;
	if (node == *root) *root = temp;
	else if (node == node->parent->right) node->parent->right = temp;
	else node->parent->left = temp;
	temp->right = node;
	node->parent = temp;
}

static void ngx_rbtree_insert_timer_value(ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
	ngx_rbtree_node_t **p;
	for (;;) {
		p = ((intptr_t)(node->key - temp->key) < 0) ? &temp->left : &temp->right;
		if (*p == sentinel) break;
		temp = *p;
	}
	*p = node;
	node->parent = temp;
	node->left = node->right = sentinel;
	ngx_rbt_red(node);
}

static NOINLINE void ngx_rbtree_insert(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
	ngx_rbtree_node_t **root = &tree->root, *temp, *sentinel = tree->sentinel;
	if (*root == sentinel) {
		node->parent = NULL;
		node->left = node->right = sentinel;
		ngx_rbt_black(node);
		*root = node;
		return;
	}
	tree->insert(*root, node, sentinel);
	while (node != *root && ngx_rbt_is_red(node->parent)) {
		if (node->parent == node->parent->parent->left) {
			temp = node->parent->parent->right;
			if (ngx_rbt_is_red(temp)) {
				ngx_rbt_black(node->parent);
				ngx_rbt_black(temp);
				ngx_rbt_red(node->parent->parent);
				node = node->parent->parent;
			} else {
				if (node == node->parent->right) {
					node = node->parent;
					ngx_rbtree_left_rotate(root, sentinel, node);
				}
				ngx_rbt_black(node->parent);
				ngx_rbt_red(node->parent->parent);
				ngx_rbtree_right_rotate(root, sentinel, node->parent->parent);
			}
		} else {
			temp = node->parent->parent->left;
			if (ngx_rbt_is_red(temp)) {
				ngx_rbt_black(node->parent);
				ngx_rbt_black(temp);
				ngx_rbt_red(node->parent->parent);
				node = node->parent->parent;
			} else {
				if (node == node->parent->left) {
					node = node->parent;
					ngx_rbtree_right_rotate(root, sentinel, node);
				}
				ngx_rbt_black(node->parent);
				ngx_rbt_red(node->parent->parent);
				ngx_rbtree_left_rotate(root, sentinel, node->parent->parent);
			}
		}
	}
	ngx_rbt_black(*root);
}

static inline ngx_rbtree_node_t *ngx_rbtree_min(ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
	while (node->left != sentinel) node = node->left;
	return node;
}

static NOINLINE void ngx_rbtree_delete(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
	ngx_rbtree_node_t **root = &tree->root, *sentinel = tree->sentinel, *subst, *temp, *w;
	ngx_uint_t red;
	if (node->left == sentinel) {
		temp = node->right;
		subst = node;
	} else if (node->right == sentinel) {
		temp = node->left;
		subst = node;
	} else {
		subst = ngx_rbtree_min(node->right, sentinel);
		temp = subst->right;
	}
	if (subst == *root) {
		*root = temp;
		ngx_rbt_black(temp);
		node->left = node->right = node->parent = NULL;
		return;
	}
	red = ngx_rbt_is_red(subst);
	if (subst == subst->parent->left) subst->parent->left = temp;
	else subst->parent->right = temp;
	if (subst == node) {
		temp->parent = subst->parent;
	} else {
		temp->parent = subst->parent == node ? subst : subst->parent;
		subst->left = node->left;
		subst->right = node->right;
		subst->parent = node->parent;
		ngx_rbt_copy_color(subst, node);
		if (node == *root) *root = subst;
		else if (node == node->parent->left) node->parent->left = subst;
		else node->parent->right = subst;
		if (subst->left != sentinel) subst->left->parent = subst;
		if (subst->right != sentinel) subst->right->parent = subst;
	}
	node->left = node->right = node->parent = NULL;
	if (red) return;
	while (temp != *root && ngx_rbt_is_black(temp)) {
		if (temp == temp->parent->left) {
			w = temp->parent->right;
			if (ngx_rbt_is_red(w)) {
				ngx_rbt_black(w);
				ngx_rbt_red(temp->parent);
				ngx_rbtree_left_rotate(root, sentinel, temp->parent);
				w = temp->parent->right;
			}
			if (ngx_rbt_is_black(w->left) && ngx_rbt_is_black(w->right)) {
				ngx_rbt_red(w);
				temp = temp->parent;
			} else {
				if (ngx_rbt_is_black(w->right)) {
					ngx_rbt_black(w->left);
					ngx_rbt_red(w);
					ngx_rbtree_right_rotate(root, sentinel, w);
					w = temp->parent->right;
				}
				ngx_rbt_copy_color(w, temp->parent);
				ngx_rbt_black(temp->parent);
				ngx_rbt_black(w->right);
				ngx_rbtree_left_rotate(root, sentinel, temp->parent);
				temp = *root;
			}
		} else {
			w = temp->parent->left;
			if (ngx_rbt_is_red(w)) {
				ngx_rbt_black(w);
				ngx_rbt_red(temp->parent);
				ngx_rbtree_right_rotate(root, sentinel, temp->parent);
				w = temp->parent->left;
			}
			if (ngx_rbt_is_black(w->left) && ngx_rbt_is_black(w->right)) {
				ngx_rbt_red(w);
				temp = temp->parent;
			} else {
				if (ngx_rbt_is_black(w->left)) {
					ngx_rbt_black(w->right);
					ngx_rbt_red(w);
					ngx_rbtree_left_rotate(root, sentinel, w);
					w = temp->parent->left;
				}
				ngx_rbt_copy_color(w, temp->parent);
				ngx_rbt_black(temp->parent);
				ngx_rbt_black(w->left);
				ngx_rbtree_right_rotate(root, sentinel, temp->parent);
				temp = *root;
			}
		}
	}
	ngx_rbt_black(temp);
}

static void ngx_event_del_timer(ngx_event_t *ev)
{
	ngx_rbtree_delete(&ngx_event_timer_rbtree, &ev->timer);
	ev->timer_set = 0;
}

static void ngx_event_add_timer(ngx_event_t *ev, ngx_msec_t timer)
{
	if (ev->timer_set) {
		intptr_t diff = (intptr_t)(ngx_current_msec + timer - ev->timer.key);
		if (diff >= 0 && diff < 30) return; /* near enough: leave it in the tree */
		ngx_event_del_timer(ev);
	}
	ev->timer.key = ngx_current_msec + timer;
	ngx_rbtree_insert(&ngx_event_timer_rbtree, &ev->timer);
	ev->timer_set = 1;
}

static NOINLINE void ngx_event_expire_timers(void)
{
	for (;;) {
		ngx_rbtree_node_t *root = ngx_event_timer_rbtree.root, *node;
		if (root == ngx_event_timer_rbtree.sentinel) return;
		node = ngx_rbtree_min(root, ngx_event_timer_rbtree.sentinel);
		if ((intptr_t)(node->key - ngx_current_msec) > 0) return;
		ngx_event_t *ev = (ngx_event_t *)((char *)node - offsetof(ngx_event_t, timer));
		ngx_event_del_timer(ev);
		ev->timedout = 1;
		ev->handler(ev);
	}
}

#define ngx_post_event(ev, q) \
	if (!(ev)->posted) { \
		(ev)->posted = 1; \
		ngx_queue_insert_tail(q, &(ev)->queue); \
	}

static NOINLINE void ngx_event_process_posted(ngx_queue_t *posted)
{
	while (!ngx_queue_empty(posted)) {
		ngx_queue_t *q = ngx_queue_head(posted);
		ngx_event_t *ev = ngx_queue_data(q, ngx_event_t, queue);
		ev->posted = 0;
		ngx_queue_remove(q);
		ev->handler(ev);
	}
}

static ngx_chain_t *ngx_alloc_chain_link(void)
{
	ngx_chain_t *cl = ngx_output.free_chains;
	if (cl) {
		ngx_output.free_chains = cl->next;
		ngx_output.reused++;
	} else {
		cl = HEAP_MALLOC(ngx_chain_t);
		ngx_output.chains++;
	}
	cl->next = NULL;
	if (ngx_output.free_bufs) {
		cl->buf = ngx_output.free_bufs;
		ngx_output.free_bufs = cl->buf->tag;
	} else {
		cl->buf = HEAP_MALLOC(ngx_buf_t);
	}
	memset(cl->buf, 0, sizeof(ngx_buf_t));
	return cl;
}

static void ngx_free_chain(ngx_chain_t *cl)
{
	cl->buf->tag = ngx_output.free_bufs;
	ngx_output.free_bufs = cl->buf;
	cl->next = ngx_output.free_chains;
	ngx_output.free_chains = cl;
}

/* ------------------------------------------------------------------ broker types */

struct mosquitto;

enum mosquitto_msg_state { mosq_ms_invalid, mosq_ms_publish_qos0, mosq_ms_wait_for_puback, mosq_ms_wait_for_pubrec, mosq_ms_wait_for_pubrel, mosq_ms_wait_for_pubcomp, mosq_ms_queued };
enum mosquitto_msg_direction { mosq_md_in, mosq_md_out };
enum mosquitto_client_state { mosq_cs_new, mosq_cs_active, mosq_cs_disconnected };

typedef struct mqtt5__property {
	struct mqtt5__property *next;
	union {
		uint8_t i8;
		uint16_t i16;
		uint32_t i32;
		uint32_t varint;
		struct { uint16_t len; char *v; } s;
	} value;
	struct { uint16_t len; char *v; } name;
	int32_t identifier;
	bool client_generated;
} mosquitto_property;

#define MQTT_PROP_PAYLOAD_FORMAT 1
#define MQTT_PROP_MESSAGE_EXPIRY 2
#define MQTT_PROP_CONTENT_TYPE 3
#define MQTT_PROP_USER_PROPERTY 38

struct mosquitto__packet {
	struct mosquitto__packet *next;
	uint32_t packet_length, pos, size;
	uint16_t mid;
	uint8_t command;
	uint8_t payload[];
};

struct mosquitto__packet_in {
	uint8_t *payload;
	uint32_t remaining_mult, remaining_length, packet_length, packet_buffer_size, to_process, pos;
	int8_t remaining_count;
	uint8_t command;
};

struct mosquitto__base_msg {
	UT_hash_handle hh;
	uint64_t db_id;
	struct { char *topic; uint8_t *payload; mosquitto_property *properties; uint32_t payloadlen; uint16_t source_mid; uint8_t qos; bool retain; } data;
	struct mosquitto *source;
	struct mosquitto **dest_ids;
	int dest_id_count, dest_id_alloc;
	int ref_count;
	ngx_msec_t expiry;
	unsigned stored:1, sys:1;
};

struct mosquitto__client_msg {
	struct mosquitto__client_msg *prev, *next;
	struct mosquitto__base_msg *base_msg;
	ngx_msec_t timestamp;
	struct { uint16_t mid; uint8_t qos:2, retain:1, dup:1, direction:1; uint8_t state; } data;
};

struct mosquitto_msg_data {
	struct mosquitto__client_msg *inflight, *queued;
	long inflight_bytes, queued_bytes;
	int inflight_count, queued_count, queued_count12;
	uint16_t inflight_quota, inflight_maximum;
};

struct mosquitto__subleaf {
	struct mosquitto__subleaf *prev, *next;
	struct mosquitto *context;
	struct mosquitto__subshared *shared;
	char *topic_filter;
	uint32_t identifier;
	uint8_t qos:2, no_local:1, retain_as_published:1;
};

struct mosquitto__subshared { UT_hash_handle hh; struct mosquitto__subleaf *subs; uint64_t delivered; uint16_t name_len; char name[]; };

struct mosquitto__subhier {
	UT_hash_handle hh;
	struct mosquitto__subhier *parent, *children;
	struct mosquitto__subleaf *subs;
	struct mosquitto__subshared *shared;
	uint16_t topic_len;
	char topic[];
};

struct mosquitto__retainhier {
	UT_hash_handle hh;
	struct mosquitto__retainhier *parent, *children;
	struct mosquitto__base_msg *retained;
	uint16_t topic_len;
	char topic[];
};

struct mosquitto__client_sub { struct mosquitto__subhier *hier; struct mosquitto__subshared *shared; char topic_filter[]; };

struct mosquitto__acl { struct mosquitto__acl *next; int access; unsigned ccount; char topic[48]; };
struct mosquitto__acl_user { UT_hash_handle hh; struct mosquitto__acl *acl; uint64_t checked, denied; char username[16]; };

struct mosquitto {
	int sock;
	enum mosquitto_client_state state;
	uint16_t last_mid, keepalive;
	uint8_t protocol;
	unsigned clean_start:1, is_dropping:1, in_by_id:1, want_write:1, assigned_id:1;
	char *id;
	struct mosquitto__acl_user *user;
	struct mosquitto__packet_in in_packet;
	ngx_chain_t *out_chain, **out_last;
	int out_packet_count;
	ngx_event_t read_ev, write_ev;
	UT_hash_handle hh_id, hh_sock;
	struct mosquitto_msg_data msgs_in, msgs_out;
	struct mosquitto__client_sub **subs;
	int subs_capacity, subs_count;
	struct peer *peer;
	struct { uint64_t bytes_received, bytes_sent, messages_received, messages_sent, messages_dropped; } stats;
	struct mosquitto *for_free_next;
};

typedef int (*MOSQ_FUNC_generic_callback)(int event, void *event_data, void *userdata);
struct mosquitto__callback { struct mosquitto__callback *prev, *next; MOSQ_FUNC_generic_callback cb; void *userdata; uint64_t calls; };
struct mosquitto_evt_acl_check { struct mosquitto *client; const char *topic; const void *payload; uint32_t payloadlen; int access; int qos; };
struct mosquitto_evt_message { struct mosquitto *client; struct mosquitto__base_msg *msg; };
struct plugin_histogram { uint64_t by_size[12], by_qos[3]; struct { uint32_t seen; uint32_t hash; } recent[64]; };
enum mosquitto_plugin_event { MOSQ_EVT_ACL_CHECK, MOSQ_EVT_MESSAGE, MOSQ_EVT_MAX };

static struct mosquitto_db {
	struct mosquitto *contexts_by_id, *contexts_by_sock;
	struct mosquitto__subhier *subs;
	struct mosquitto__retainhier *retains;
	struct mosquitto__base_msg *msg_store;
	struct mosquitto__acl_user *acl_users;
	struct mosquitto *free_contexts;
	struct mosquitto__callback *callbacks[MOSQ_EVT_MAX];
	struct mosquitto__packet *free_packets[8];
	struct mosquitto__client_msg *free_client_msgs;
	uint64_t last_db_id;
	int next_sock;
	int retained_count, subscription_count;
} db;

static struct sys_counters { uint64_t publishes, delivered, dropped, denied, acks, connects, expired, takeovers, retained_sent, checked, saved_bytes; } g_stats;
static const struct sys_topic { const char *topic; uint64_t *counter; } sys_topics[] = {
	{ "$SYS/broker/publish/messages/received", &g_stats.publishes }, { "$SYS/broker/publish/messages/sent", &g_stats.delivered },
	{ "$SYS/broker/publish/messages/dropped", &g_stats.dropped }, { "$SYS/broker/clients/connected", &g_stats.connects },
	{ "$SYS/broker/clients/expired", &g_stats.expired }, { "$SYS/broker/acl/denied", &g_stats.denied },
};
static uint64_t sys_last[6];

struct sub__token { const char *topic; uint16_t topic_len; unsigned hashv; };
static struct sub__token *pub_tokens, *sub_tokens;

/* ------------------------------------------------------------------ the peers: the other end of each socket */

#define PEERS 64
#define TX_SIZE 8192
#define RX_SIZE 32768
struct peer {
	struct mosquitto *context;
	uint8_t *tx, *rx;
	uint32_t tx_len, tx_pos, rx_len;
	uint16_t mid, index;
	bool connected, clean, quiet;
	uint64_t got, acked;
	char filters[8][40];
	int filter_count;
};
static struct peer peers[PEERS];

static char *mosquitto__strndup(const char *s, size_t len)
{
	char *r = heap_take("char", 1, (len + 16) & ~(size_t)15);
	for (size_t i = 0; i < len; i++) r[i] = s[i];
	r[len] = '\0';
	return r;
}

/* ------------------------------------------------------------------ packets out */

static void write_handler_post(struct mosquitto *context)
{
	ngx_post_event(&context->write_ev, &ngx_posted_events);
}

static struct mosquitto__packet *packet__alloc(uint8_t command, uint32_t remaining_length)
{
	uint8_t bytes[4], count = 0;
	uint32_t stored = remaining_length;
	unsigned cls = 0;
	do {
		uint8_t byte = (uint8_t)(remaining_length % 128);
		remaining_length /= 128;
		if (remaining_length > 0) byte |= 0x80;
		bytes[count++] = byte;
	} while (remaining_length > 0 && count < 4);
	uint32_t length = stored + 1 + count;
	while ((32u << cls) < length) cls++;
	struct mosquitto__packet *packet = db.free_packets[cls];
	if (packet) {
		db.free_packets[cls] = packet->next;
	} else {
		packet = HEAP_FLEXIBLE(struct mosquitto__packet, sizeof(struct mosquitto__packet) + (32u << cls));
		packet->size = cls;
	}
	packet->next = NULL;
	packet->command = command;
	packet->packet_length = length;
	packet->mid = 0;
	packet->payload[0] = command;
	for (int i = 0; i < count; i++) packet->payload[i + 1] = bytes[i];
	packet->pos = 1U + count;
	return packet;
}

static inline void packet__write_byte(struct mosquitto__packet *packet, uint8_t byte) { packet->payload[packet->pos++] = byte; }
static inline void packet__write_uint16(struct mosquitto__packet *packet, uint16_t word)
{
	packet__write_byte(packet, MOSQ_MSB(word));
	packet__write_byte(packet, MOSQ_LSB(word));
}
static NOINLINE void packet__write_bytes(struct mosquitto__packet *packet, const void *bytes, uint32_t count)
{
	const uint8_t *b = bytes;
	for (uint32_t i = 0; i < count; i++) packet->payload[packet->pos + i] = b[i];
	packet->pos += count;
}
static void packet__write_string(struct mosquitto__packet *packet, const char *str, uint16_t length)
{
	packet__write_uint16(packet, length);
	packet__write_bytes(packet, str, length);
}

static void packet__queue(struct mosquitto *context, struct mosquitto__packet *packet)
{
	ngx_chain_t *cl = ngx_alloc_chain_link();
	ngx_buf_t *b = cl->buf;
	b->start = b->pos = packet->payload;
	b->last = b->end = packet->payload + packet->packet_length;
	b->memory = 1;
	b->tag = packet;
	b->num = context->out_packet_count++;
	*context->out_last = cl;
	context->out_last = &cl->next;
	write_handler_post(context);
}

static unsigned property__get_length(const mosquitto_property *property)
{
	switch (property->identifier) {
	case MQTT_PROP_PAYLOAD_FORMAT: return 2;
	case MQTT_PROP_MESSAGE_EXPIRY: return 5;
	case MQTT_PROP_CONTENT_TYPE: return 3U + property->value.s.len;
	case MQTT_PROP_USER_PROPERTY: return 5U + property->value.s.len + property->name.len;
	}
	return 0;
}

static NOINLINE unsigned property__get_length_all(const mosquitto_property *property)
{
	unsigned len = 0;
	for (const mosquitto_property *p = property; p; p = p->next) len += property__get_length(p);
	return len;
}

static NOINLINE void property__write_all(struct mosquitto__packet *packet, const mosquitto_property *properties)
{
	for (const mosquitto_property *p = properties; p; p = p->next) {
		packet__write_byte(packet, (uint8_t)p->identifier);
		switch (p->identifier) {
		case MQTT_PROP_PAYLOAD_FORMAT:
			packet__write_byte(packet, p->value.i8);
			break;
		case MQTT_PROP_MESSAGE_EXPIRY:
			packet__write_uint16(packet, (uint16_t)(p->value.i32 >> 16));
			packet__write_uint16(packet, (uint16_t)p->value.i32);
			break;
		case MQTT_PROP_USER_PROPERTY:
			packet__write_string(packet, p->name.v, p->name.len);
			/* FALLTHRU */
		case MQTT_PROP_CONTENT_TYPE:
			packet__write_string(packet, p->value.s.v, p->value.s.len);
			break;
		}
	}
}

static void send__command_with_mid(struct mosquitto *context, uint8_t command, uint16_t mid)
{
	struct mosquitto__packet *packet = packet__alloc(command, 2);
	packet->mid = mid;
	packet__write_uint16(packet, mid);
	packet__queue(context, packet);
}

static NOINLINE void send__publish(struct mosquitto *context, const struct mosquitto__client_msg *cm)
{
	const struct mosquitto__base_msg *base = cm->base_msg;
	uint16_t topic_len = (uint16_t)strlen(base->data.topic);
	unsigned proplen = property__get_length_all(base->data.properties);
	struct mosquitto__packet *packet = packet__alloc((uint8_t)(CMD_PUBLISH | (cm->data.dup << 3) | (cm->data.qos << 1) | cm->data.retain),
		2U + topic_len + (cm->data.qos ? 2U : 0U) + 1U + proplen + base->data.payloadlen);
	packet__write_string(packet, base->data.topic, topic_len);
	if (cm->data.qos) packet__write_uint16(packet, cm->data.mid);
	packet->mid = cm->data.mid;
	packet__write_byte(packet, (uint8_t)proplen);
	property__write_all(packet, base->data.properties);
	packet__write_bytes(packet, base->data.payload, base->data.payloadlen);
	if (packet->pos != packet->packet_length) abort();
	context->stats.messages_sent++;
	packet__queue(context, packet);
}

static NOINLINE ngx_chain_t *ngx_send_chain(struct mosquitto *context, ngx_chain_t *in, size_t limit)
{
	struct peer *peer = context->peer;
	for (; in; ) {
		ngx_buf_t *b = in->buf;
		size_t size = ngx_buf_size(b);
		if (size > limit) size = limit;
		if (size == 0) break;
		uint8_t *dst = peer->rx + peer->rx_len;
		for (const u_char *p = b->pos, *end = p + size; p < end; ) *dst++ = *p++;
		b->pos += size;
		peer->rx_len += (uint32_t)size;
		context->stats.bytes_sent += size;
		limit -= size;
		if (b->pos < b->last) break;
		struct mosquitto__packet *packet = b->tag;
		packet->next = db.free_packets[packet->size];
		db.free_packets[packet->size] = packet;
		context->out_packet_count--;
		ngx_chain_t *next = in->next;
		ngx_free_chain(in);
		in = next;
	}
	return in;
}

static void context__write_handler(ngx_event_t *ev)
{
	struct mosquitto *context = ev->data;
	if (!context->peer) return;
	context->out_chain = ngx_send_chain(context, context->out_chain, RX_SIZE - context->peer->rx_len);
	if (!context->out_chain) context->out_last = &context->out_chain;
	context->want_write = context->out_chain != NULL;
}

/* ------------------------------------------------------------------ message store */

static void property__free_all(mosquitto_property **properties)
{
	mosquitto_property *p = *properties, *next;
	for (; p; p = next) {
		next = p->next;
		if (p->identifier == MQTT_PROP_USER_PROPERTY) HEAP_FREE(p->name.v);
		if (p->identifier >= MQTT_PROP_CONTENT_TYPE) HEAP_FREE(p->value.s.v);
		HEAP_FREE(p);
	}
	*properties = NULL;
}

static struct mosquitto__base_msg *db__message_store(struct mosquitto *source, const char *topic, uint16_t topic_len, const uint8_t *payload, uint32_t len, int qos, bool retain)
{
	struct mosquitto__base_msg *base = HEAP_CALLOC(struct mosquitto__base_msg, 1);
	base->db_id = ++db.last_db_id;
	base->data.topic = mosquitto__strndup(topic, topic_len);
	uint32_t size = 32;
	while (size < len) size *= 2;
	base->data.payload = heap_take("uint8_t", 1, size);
	for (uint32_t i = 0; i < len; i++) base->data.payload[i] = payload[i];
	base->data.payloadlen = len;
	base->data.qos = (uint8_t)qos;
	base->data.retain = retain;
	base->source = source;
	base->stored = 1;
	base->ref_count = 1;
	base->expiry = ngx_current_msec + 100000;
	HASH_ADD_KEYPTR(hh, db.msg_store, &base->db_id, sizeof(base->db_id), base);
	return base;
}

static void db__msg_store_ref_dec(struct mosquitto__base_msg **store)
{
	struct mosquitto__base_msg *base = *store;
	*store = NULL;
	if (--base->ref_count > 0) return;
	HASH_DELETE(hh, db.msg_store, base);
	property__free_all(&base->data.properties);
	HEAP_FREE(base->data.topic);
	HEAP_FREE(base->data.payload);
	HEAP_FREE(base->dest_ids);
	HEAP_FREE(base);
}

static void db__msg_add_to_inflight_stats(struct mosquitto_msg_data *msg_data, const struct mosquitto__client_msg *cm)
{
	msg_data->inflight_count++;
	msg_data->inflight_bytes += cm->base_msg->data.payloadlen;
	if (cm->data.qos) msg_data->inflight_quota--;
}

static void db__message_remove_inflight(struct mosquitto_msg_data *msg_data, struct mosquitto__client_msg *item)
{
	DL_DELETE(msg_data->inflight, item);
	msg_data->inflight_count--;
	msg_data->inflight_bytes -= item->base_msg->data.payloadlen;
	if (item->data.qos) msg_data->inflight_quota++;
	db__msg_store_ref_dec(&item->base_msg);
	item->next = db.free_client_msgs;
	db.free_client_msgs = item;
}

static struct mosquitto__client_msg *db__client_msg_new(struct mosquitto__base_msg *base, uint16_t mid, int dir, int qos, bool retain)
{
	struct mosquitto__client_msg *cm = db.free_client_msgs;
	if (cm) db.free_client_msgs = cm->next;
	else cm = HEAP_MALLOC(struct mosquitto__client_msg);
	cm->base_msg = base;
	base->ref_count++;
	cm->timestamp = ngx_current_msec;
	cm->data.mid = mid;
	cm->data.qos = qos & 3;
	cm->data.retain = retain;
	cm->data.dup = 0;
	cm->data.direction = dir;
	return cm;
}

static NOINLINE int db__message_insert_outgoing(struct mosquitto *context, struct mosquitto__base_msg *base, int qos, bool retain)
{
	struct mosquitto_msg_data *msg_data = &context->msgs_out;
	for (int i = 0; i < base->dest_id_count; i++) {
		if (base->dest_ids[i] == context) return MOSQ_ERR_SUCCESS;
	}
	if (base->dest_id_count == base->dest_id_alloc) {
		base->dest_id_alloc = base->dest_id_alloc ? base->dest_id_alloc * 2 : 8;
		base->dest_ids = heap_resize(base->dest_ids, "struct mosquitto *", sizeof(struct mosquitto *), (size_t)base->dest_id_alloc * sizeof(struct mosquitto *));
	}
	base->dest_ids[base->dest_id_count++] = context;
	g_stats.delivered++;
	if (qos == 0 && (context->state != mosq_cs_active || context->out_packet_count > 60)) {
		context->stats.messages_dropped++;
		g_stats.dropped++;
		return MOSQ_ERR_SUCCESS;
	}
	struct mosquitto__client_msg *cm = db__client_msg_new(base, qos ? ++context->last_mid : 0, mosq_md_out, qos, retain);
	if (qos && !context->last_mid) cm->data.mid = context->last_mid = 1;
	if (qos == 0) {
		send__publish(context, cm);
		db__msg_store_ref_dec(&cm->base_msg);
		cm->next = db.free_client_msgs;
		db.free_client_msgs = cm;
	} else if (context->state == mosq_cs_active && msg_data->inflight_quota > 0) {
		cm->data.state = qos == 1 ? mosq_ms_wait_for_puback : mosq_ms_wait_for_pubrec;
		DL_APPEND(msg_data->inflight, cm);
		db__msg_add_to_inflight_stats(msg_data, cm);
		send__publish(context, cm);
	} else if (msg_data->queued_count < 40) {
		cm->data.state = mosq_ms_queued;
		DL_APPEND(msg_data->queued, cm);
		msg_data->queued_count++;
		msg_data->queued_bytes += base->data.payloadlen;
	} else {
		context->stats.messages_dropped++;
		g_stats.dropped++;
		db__msg_store_ref_dec(&cm->base_msg);
		cm->next = db.free_client_msgs;
		db.free_client_msgs = cm;
	}
	return MOSQ_ERR_SUCCESS;
}

static NOINLINE void db__message_write_queued_out(struct mosquitto *context)
{
	struct mosquitto__client_msg *tail, *tmp;
	DL_FOREACH_SAFE(context->msgs_out.queued, tail, tmp) {
		if (context->msgs_out.inflight_quota == 0) break;
		DL_DELETE(context->msgs_out.queued, tail);
		context->msgs_out.queued_count--;
		context->msgs_out.queued_bytes -= tail->base_msg->data.payloadlen;
		tail->data.state = tail->data.qos == 1 ? mosq_ms_wait_for_puback : mosq_ms_wait_for_pubrec;
		DL_APPEND(context->msgs_out.inflight, tail);
		db__msg_add_to_inflight_stats(&context->msgs_out, tail);
		send__publish(context, tail);
	}
}

static NOINLINE int db__message_update_outgoing(struct mosquitto *context, uint16_t mid, enum mosquitto_msg_state expect, enum mosquitto_msg_state state)
{
	struct mosquitto__client_msg *tail, *tmp;
	DL_FOREACH_SAFE(context->msgs_out.inflight, tail, tmp) {
		if (tail->data.mid != mid) continue;
		if (tail->data.state != expect) return MOSQ_ERR_PROTOCOL;
		tail->timestamp = ngx_current_msec;
		tail->data.state = (uint8_t)state;
		if (state == mosq_ms_invalid) {
			db__message_remove_inflight(&context->msgs_out, tail);
			db__message_write_queued_out(context);
		}
		return MOSQ_ERR_SUCCESS;
	}
	return MOSQ_ERR_NOT_FOUND;
}

static void db__messages_clear(struct mosquitto_msg_data *msg_data)
{
	struct mosquitto__client_msg *cm, *tmp;
	DL_FOREACH_SAFE(msg_data->queued, cm, tmp) {
		db__msg_store_ref_dec(&cm->base_msg);
		cm->next = db.free_client_msgs;
		db.free_client_msgs = cm;
	}
	msg_data->queued = NULL;
	msg_data->queued_count = 0;
	msg_data->queued_bytes = 0;
	DL_FOREACH_SAFE(msg_data->inflight, cm, tmp) db__message_remove_inflight(msg_data, cm);
}

/* ------------------------------------------------------------------ subscriptions */

static NOINLINE int sub__topic_tokenise(const char *topic, struct sub__token *tokens)
{
	int count = 0;
	if (topic[0] != '$') {
		tokens[count].topic = "";
		tokens[count].topic_len = 0;
		tokens[count++].hashv = hash_jen("", 0);
	}
	while (count < 15) {
		const char *end = topic;
		while (*end && *end != '/') end++;
		tokens[count].topic = topic;
		tokens[count].topic_len = (uint16_t)(end - topic);
		tokens[count].hashv = hash_jen(topic, (size_t)(end - topic));
		count++;
		if (!*end) break;
		topic = end + 1;
	}
	tokens[count].topic = NULL;
	return count;
}

static struct mosquitto__subhier *sub__add_hier_entry(struct mosquitto__subhier *parent, struct mosquitto__subhier **sibling, const struct sub__token *t)
{
	size_t len = (sizeof(struct mosquitto__subhier) + t->topic_len + 1U + 7U) & ~(size_t)7;
	struct mosquitto__subhier *child = HEAP_FLEXIBLE(struct mosquitto__subhier, len);
	memset(child, 0, len);
	child->parent = parent;
	child->topic_len = t->topic_len;
	for (int i = 0; i < t->topic_len; i++) child->topic[i] = t->topic[i];
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, *sibling, child->topic, child->topic_len, t->hashv, child);
	return child;
}

static NOINLINE int sub__add(struct mosquitto *context, const char *sub, int qos, bool no_local)
{
	const char *filter = sub, *sharename = NULL;
	size_t share_len = 0;
	struct mosquitto__subshared *shared = NULL;
	struct mosquitto__subleaf *leaf, *head;
	if (strncmp(sub, "$share/", 7) == 0) {
		sharename = sub + 7;
		filter = strchr(sharename, '/');
		share_len = (size_t)(filter - sharename);
		filter++;
	}
	sub__topic_tokenise(filter, sub_tokens);
	struct mosquitto__subhier *hier = NULL, **siblings = &db.subs, *branch;
	for (struct sub__token *t = sub_tokens; t->topic; t++) {
		HASH_FIND_BYHASHVALUE(hh, *siblings, t->topic, t->topic_len, t->hashv, branch);
		if (!branch) branch = sub__add_hier_entry(hier, siblings, t);
		hier = branch;
		siblings = &branch->children;
	}
	if (sharename) {
		HASH_FIND(hh, hier->shared, sharename, share_len, shared);
		if (!shared) {
			shared = HEAP_FLEXIBLE(struct mosquitto__subshared, sizeof(*shared) + 16);
			memset(shared, 0, sizeof(*shared) + 16);
			memcpy(shared->name, sharename, share_len);
			shared->name_len = (uint16_t)share_len;
			HASH_ADD_KEYPTR(hh, hier->shared, shared->name, shared->name_len, shared);
		}
	}
	head = shared ? shared->subs : hier->subs;
	DL_FOREACH(head, leaf) {
		if (leaf->context == context) {
			leaf->qos = qos & 3;
			return MOSQ_ERR_SUCCESS;
		}
	}
	leaf = HEAP_CALLOC(struct mosquitto__subleaf, 1);
	leaf->context = context;
	leaf->shared = shared;
	leaf->qos = qos & 3;
	leaf->no_local = no_local;
	leaf->topic_filter = mosquitto__strndup(filter, strlen(filter));
	if (shared) DL_APPEND(shared->subs, leaf);
	else DL_APPEND(hier->subs, leaf);
	db.subscription_count++;
	size_t size = (sizeof(struct mosquitto__client_sub) + strlen(sub) + 1 + 31) & ~(size_t)31;
	struct mosquitto__client_sub *csub = HEAP_FLEXIBLE(struct mosquitto__client_sub, size);
	csub->hier = hier;
	csub->shared = shared;
	strcpy(csub->topic_filter, sub);
	int i;
	for (i = 0; i < context->subs_capacity && context->subs[i]; i++);
	if (i == context->subs_capacity) {
		int capacity = i ? 2 * i : 4;
		struct mosquitto__client_sub **subs = heap_take_zeroed("struct mosquitto__client_sub *", sizeof(void *), (size_t)capacity * sizeof(void *));
		for (int j = 0; j < i; j++) subs[j] = context->subs[j];
		HEAP_FREE(context->subs);
		context->subs = subs;
		context->subs_capacity = capacity;
	}
	context->subs[i] = csub;
	context->subs_count++;
	return MOSQ_ERR_SUCCESS;
}

static void sub__trim(struct mosquitto__subhier *hier)
{
	while (hier && !hier->children && !hier->subs && !hier->shared) {
		struct mosquitto__subhier *parent = hier->parent;
		if (parent) HASH_DELETE(hh, parent->children, hier);
		else HASH_DELETE(hh, db.subs, hier);
		HEAP_FREE(hier);
		hier = parent;
	}
}

static NOINLINE void sub__remove_at(struct mosquitto *context, int i)
{
	struct mosquitto__client_sub *csub = context->subs[i];
	struct mosquitto__subhier *hier = csub->hier;
	struct mosquitto__subleaf **head = csub->shared ? &csub->shared->subs : &hier->subs, *leaf, *tmp;
	DL_FOREACH_SAFE(*head, leaf, tmp) {
		if (leaf->context == context) {
			DL_DELETE(*head, leaf);
			HEAP_FREE(leaf->topic_filter);
			HEAP_FREE(leaf);
			db.subscription_count--;
			break;
		}
	}
	if (csub->shared && !csub->shared->subs) {
		HASH_DELETE(hh, hier->shared, csub->shared);
		HEAP_FREE(csub->shared);
	}
	HEAP_FREE(csub);
	context->subs[i] = NULL;
	context->subs_count--;
	sub__trim(hier);
}

static int sub__remove(struct mosquitto *context, const char *sub)
{
	for (int i = 0; i < context->subs_capacity; i++) {
		if (context->subs[i] && strcmp(context->subs[i]->topic_filter, sub) == 0) {
			sub__remove_at(context, i);
			return MOSQ_ERR_SUCCESS;
		}
	}
	return MOSQ_ERR_NOT_FOUND;
}

static void sub__clean_session(struct mosquitto *context)
{
	for (int i = 0; i < context->subs_capacity; i++) if (context->subs[i]) sub__remove_at(context, i);
	HEAP_FREE(context->subs);
	context->subs = NULL;
	context->subs_capacity = context->subs_count = 0;
}

static int subs__send(struct mosquitto__subleaf *leaf, int qos, bool retain, struct mosquitto__base_msg *stored)
{
	if (leaf->no_local && leaf->context == stored->source) return 0;
	int msg_qos = qos > leaf->qos ? leaf->qos : qos;
	return db__message_insert_outgoing(leaf->context, stored, msg_qos, retain && leaf->retain_as_published);
}

static NOINLINE void subs__process(struct mosquitto__subhier *hier, int qos, bool retain, struct mosquitto__base_msg *stored)
{
	struct mosquitto__subshared *shared, *tmp;
	struct mosquitto__subleaf *leaf;
	HASH_ITER(hh, hier->shared, shared, tmp) {
		leaf = shared->subs;
		subs__send(leaf, qos, retain, stored);
		shared->delivered++;
		DL_DELETE(shared->subs, leaf); /* round robin */
		DL_APPEND(shared->subs, leaf);
	}
	DL_FOREACH(hier->subs, leaf) subs__send(leaf, qos, retain, stored);
}

static NOINLINE void sub__search(struct mosquitto__subhier *subhier, const struct sub__token *split, int qos, bool retain, struct mosquitto__base_msg *stored)
{
	struct mosquitto__subhier *branch;
	if (split->topic) {
		HASH_FIND_BYHASHVALUE(hh, subhier->children, split->topic, split->topic_len, split->hashv, branch);
		if (branch) {
			sub__search(branch, split + 1, qos, retain, stored);
			if (!split[1].topic) subs__process(branch, qos, retain, stored);
		}
		HASH_FIND(hh, subhier->children, "+", 1, branch);
		if (branch) {
			sub__search(branch, split + 1, qos, retain, stored);
			if (!split[1].topic) subs__process(branch, qos, retain, stored);
		}
	}
	HASH_FIND(hh, subhier->children, "#", 1, branch);
	if (branch && !branch->children) subs__process(branch, qos, retain, stored);
}

/* What the tree ought to find, the slow way. */
static NOINLINE bool topic_matches_sub(const char *sub, const char *topic)
{
	while (*sub) {
		if (*sub == '#') return true;
		if (*sub == '+') {
			while (*topic && *topic != '/') topic++;
			sub++;
		} else {
			if (*sub != *topic) return sub[0] == '/' && sub[1] == '#' && !*topic;
			sub++;
			topic++;
		}
	}
	return !*topic;
}

static NOINLINE void check__recipients(const struct mosquitto__base_msg *stored)
{
	struct mosquitto *context, *tmp;
	int expected = 0;
	HASH_ITER(hh_sock, db.contexts_by_sock, context, tmp) {
		for (int i = 0; i < context->subs_capacity; i++) {
			const struct mosquitto__client_sub *csub = context->subs[i];
			if (!csub) continue;
			if (csub->shared) {
				bool found = false; /* whom it went to is another's choice */
				for (int k = 0; k < stored->dest_id_count; k++) found |= stored->dest_ids[k] == context;
				if (found && topic_matches_sub(strchr(csub->topic_filter + 7, '/') + 1, stored->data.topic)) { expected++; break; }
			} else if (topic_matches_sub(csub->topic_filter, stored->data.topic)) {
				expected++;
				break;
			}
		}
	}
	g_stats.checked++;
	if (expected != stored->dest_id_count) abort();
}

/* ------------------------------------------------------------------ retained messages */

static NOINLINE void retain__store(struct mosquitto__base_msg *stored, const struct sub__token *split)
{
	struct mosquitto__retainhier **siblings = &db.retains, *parent = NULL, *branch = NULL;
	for (; split->topic; split++) {
		HASH_FIND_BYHASHVALUE(hh, *siblings, split->topic, split->topic_len, split->hashv, branch);
		if (!branch) {
			size_t len = (sizeof(*branch) + split->topic_len + 1U + 7U) & ~(size_t)7;
			branch = HEAP_FLEXIBLE(struct mosquitto__retainhier, len);
			memset(branch, 0, len);
			branch->parent = parent;
			branch->topic_len = split->topic_len;
			memcpy(branch->topic, split->topic, split->topic_len);
			HASH_ADD_KEYPTR_BYHASHVALUE(hh, *siblings, branch->topic, branch->topic_len, split->hashv, branch);
		}
		parent = branch;
		siblings = &branch->children;
	}
	if (branch->retained) {
		db__msg_store_ref_dec(&branch->retained);
		db.retained_count--;
	}
	branch->retained = stored;
	stored->ref_count++;
	db.retained_count++;
}

static NOINLINE int retain__search(struct mosquitto__retainhier *retainhier, const struct sub__token *split, struct mosquitto *context, int qos, int budget)
{
	struct mosquitto__retainhier *branch, *tmp;
	bool hash = split->topic_len == 1 && split->topic[0] == '#', plus = split->topic_len == 1 && split->topic[0] == '+';
	int sent = 0;
	HASH_ITER(hh, retainhier, branch, tmp) {
		if (sent >= budget) break;
		if (!hash && !plus && (branch->topic_len != split->topic_len || memcmp(branch->topic, split->topic, split->topic_len) != 0)) continue;
		if (branch->retained && (hash || !split[1].topic)) {
			branch->retained->dest_id_count = 0;
			db__message_insert_outgoing(context, branch->retained, qos > branch->retained->data.qos ? branch->retained->data.qos : qos, true);
			g_stats.retained_sent++;
			sent++;
		}
		if (branch->children && (hash || split[1].topic)) sent += retain__search(branch->children, hash ? split : split + 1, context, qos, budget - sent);
	}
	return sent;
}

/* ------------------------------------------------------------------ plugins */

static void callback__add(int event, MOSQ_FUNC_generic_callback cb, void *userdata)
{
	struct mosquitto__callback *c = HEAP_CALLOC(struct mosquitto__callback, 1);
	c->cb = cb;
	c->userdata = userdata;
	DL_APPEND(db.callbacks[event], c);
}

static int plugin__call(int event, void *event_data)
{
	struct mosquitto__callback *c, *tmp;
	int rc = MOSQ_ERR_SUCCESS;
	DL_FOREACH_SAFE(db.callbacks[event], c, tmp) {
		c->calls++;
		rc = c->cb(event, event_data, c->userdata);
		if (rc) break;
	}
	return rc;
}

static NOINLINE int acl_check_cb(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_acl_check *ed = event_data;
	struct mosquitto_db *d = userdata;
	struct mosquitto__acl_user *user = ed->client->user;
	UNUSED(event);
	if (!user) HASH_FIND(hh, d->acl_users, "anonymous", 9, user);
	user->checked++;
	for (struct mosquitto__acl *acl = user->acl; acl; acl = acl->next) {
		if ((acl->access & ed->access) && topic_matches_sub(acl->topic, ed->topic)) {
			acl->ccount++;
			return MOSQ_ERR_SUCCESS;
		}
	}
	user->denied++;
	return MOSQ_ERR_ACL_DENIED;
}

static NOINLINE int histogram_cb(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_message *ed = event_data;
	struct plugin_histogram *h = userdata;
	const struct mosquitto__base_msg *msg = ed->msg;
	int slot = 0;
	UNUSED(event);
	while ((1u << slot) < msg->data.payloadlen && slot < 11) slot++;
	h->by_size[slot]++;
	h->by_qos[msg->data.qos]++;
	unsigned at = hash_jen(msg->data.topic, strlen(msg->data.topic)) & 63;
	h->recent[at].seen++;
	h->recent[at].hash = h->recent[at].hash * 31 + msg->data.payloadlen;
	return MOSQ_ERR_SUCCESS;
}

static int property_count_cb(int event, void *event_data, void *userdata)
{
	UNUSED(event);
	for (mosquitto_property *p = ((struct mosquitto_evt_message *)event_data)->msg->data.properties; p; p = p->next) ++*(uint64_t *)userdata;
	return MOSQ_ERR_SUCCESS;
}

/* ------------------------------------------------------------------ packets in */

static int packet__read_byte(struct mosquitto__packet_in *packet, uint8_t *byte)
{
	if (packet->pos + 1 > packet->remaining_length) return MOSQ_ERR_PROTOCOL;
	*byte = packet->payload[packet->pos++];
	return MOSQ_ERR_SUCCESS;
}

static int packet__read_uint16(struct mosquitto__packet_in *packet, uint16_t *word)
{
	if (packet->pos + 2 > packet->remaining_length) return MOSQ_ERR_PROTOCOL;
	uint16_t msb = packet->payload[packet->pos++];
	uint16_t lsb = packet->payload[packet->pos++];
	*word = (uint16_t)((msb << 8) + lsb);
	return MOSQ_ERR_SUCCESS;
}

static int packet__read_string(struct mosquitto__packet_in *packet, char **str, uint16_t *length)
{
	if (packet__read_uint16(packet, length)) return MOSQ_ERR_PROTOCOL;
	if (packet->pos + *length > packet->remaining_length) return MOSQ_ERR_PROTOCOL;
	*str = mosquitto__strndup((const char *)packet->payload + packet->pos, *length);
	packet->pos += *length;
	return MOSQ_ERR_SUCCESS;
}

static NOINLINE int property__read_all(struct mosquitto__packet_in *packet, mosquitto_property **properties)
{
	uint8_t proplen, byte = 0;
	uint16_t hi = 0, lo = 0;
	if (packet__read_byte(packet, &proplen)) return MOSQ_ERR_PROTOCOL;
	mosquitto_property **tail = properties;
	uint32_t end = packet->pos + proplen;
	while (packet->pos < end) {
		mosquitto_property *p = HEAP_CALLOC(mosquitto_property, 1);
		packet__read_byte(packet, &byte);
		p->identifier = byte;
		p->client_generated = true;
		switch (p->identifier) {
		case MQTT_PROP_PAYLOAD_FORMAT:
			packet__read_byte(packet, &p->value.i8);
			break;
		case MQTT_PROP_MESSAGE_EXPIRY:
			packet__read_uint16(packet, &hi);
			packet__read_uint16(packet, &lo);
			p->value.i32 = ((uint32_t)hi << 16) | lo;
			break;
		case MQTT_PROP_USER_PROPERTY:
			packet__read_string(packet, &p->name.v, &p->name.len);
			/* FALLTHRU */
		case MQTT_PROP_CONTENT_TYPE:
			packet__read_string(packet, &p->value.s.v, &p->value.s.len);
			break;
		default:
			abort();
		}
		*tail = p;
		tail = &p->next;
	}
	return MOSQ_ERR_SUCCESS;
}

static void sub__messages_queue(struct mosquitto__base_msg *stored)
{
	struct mosquitto__subhier *root;
	sub__topic_tokenise(stored->data.topic, pub_tokens);
	HASH_FIND_BYHASHVALUE(hh, db.subs, pub_tokens[0].topic, pub_tokens[0].topic_len, pub_tokens[0].hashv, root);
	if (root) sub__search(root, pub_tokens + 1, stored->data.qos, stored->data.retain, stored);
	if (root && (stored->db_id & 31) == 0 && stored->data.topic[0] != '$') check__recipients(stored);
	if (stored->data.retain) retain__store(stored, pub_tokens);
}

static NOINLINE int handle__publish(struct mosquitto *context)
{
	struct mosquitto__packet_in *in = &context->in_packet;
	uint8_t header = in->command;
	char *topic;
	uint16_t slen, mid = 0;
	mosquitto_property *properties = NULL;
	int qos = (header & 0x06) >> 1;
	if (packet__read_string(in, &topic, &slen)) return MOSQ_ERR_PROTOCOL;
	if (qos) packet__read_uint16(in, &mid);
	if (property__read_all(in, &properties)) return MOSQ_ERR_PROTOCOL;
	g_stats.publishes++;
	struct mosquitto_evt_acl_check acl = { context, topic, in->payload + in->pos, in->remaining_length - in->pos, 2, qos };
	if (plugin__call(MOSQ_EVT_ACL_CHECK, &acl) == MOSQ_ERR_SUCCESS) {
		struct mosquitto__base_msg *base = db__message_store(context, topic, slen, in->payload + in->pos, in->remaining_length - in->pos, qos, header & 1);
		base->data.properties = properties;
		base->data.source_mid = mid;
		struct mosquitto_evt_message ed = { context, base };
		plugin__call(MOSQ_EVT_MESSAGE, &ed);
		if (qos == 2) {
			struct mosquitto__client_msg *cm = db__client_msg_new(base, mid, mosq_md_in, 2, header & 1);
			cm->data.state = mosq_ms_wait_for_pubrel;
			DL_APPEND(context->msgs_in.inflight, cm);
			db__msg_add_to_inflight_stats(&context->msgs_in, cm);
		} else {
			sub__messages_queue(base);
		}
		db__msg_store_ref_dec(&base);
	} else {
		g_stats.denied++;
		property__free_all(&properties);
	}
	if (qos == 1) send__command_with_mid(context, CMD_PUBACK, mid);
	if (qos == 2) send__command_with_mid(context, CMD_PUBREC, mid);
	HEAP_FREE(topic);
	return MOSQ_ERR_SUCCESS;
}

static int handle__pubrel(struct mosquitto *context, uint16_t mid)
{
	struct mosquitto__client_msg *tail, *tmp;
	DL_FOREACH_SAFE(context->msgs_in.inflight, tail, tmp) {
		if (tail->data.mid == mid && tail->data.state == mosq_ms_wait_for_pubrel) {
			sub__messages_queue(tail->base_msg);
			db__message_remove_inflight(&context->msgs_in, tail);
			break;
		}
	}
	send__command_with_mid(context, CMD_PUBCOMP, mid);
	return MOSQ_ERR_SUCCESS;
}

static NOINLINE int handle__subscribe(struct mosquitto *context)
{
	struct mosquitto__packet_in *in = &context->in_packet;
	uint16_t mid = 0, slen;
	uint8_t options;
	char *sub;
	packet__read_uint16(in, &mid);
	while (in->pos < in->remaining_length) {
		if (packet__read_string(in, &sub, &slen) || packet__read_byte(in, &options)) return MOSQ_ERR_PROTOCOL;
		sub__add(context, sub, options & 3, false);
		if (sub[0] != '$' && db.retains) {
			sub__topic_tokenise(sub, sub_tokens);
			retain__search(db.retains, sub_tokens, context, options & 3, 12);
		}
		HEAP_FREE(sub);
	}
	send__command_with_mid(context, CMD_SUBACK, mid);
	return MOSQ_ERR_SUCCESS;
}

static int handle__unsubscribe(struct mosquitto *context)
{
	struct mosquitto__packet_in *in = &context->in_packet;
	uint16_t mid = 0, slen;
	char *sub;
	packet__read_uint16(in, &mid);
	while (in->pos < in->remaining_length) {
		if (packet__read_string(in, &sub, &slen)) return MOSQ_ERR_PROTOCOL;
		if (sub__remove(context, sub)) abort();
		HEAP_FREE(sub);
	}
	send__command_with_mid(context, CMD_UNSUBACK, mid);
	return MOSQ_ERR_SUCCESS;
}

static void context__drop_output(struct mosquitto *context)
{
	ngx_chain_t *cl = context->out_chain, *next;
	for (; cl; cl = next) {
		struct mosquitto__packet *packet = cl->buf->tag;
		next = cl->next;
		packet->next = db.free_packets[packet->size];
		db.free_packets[packet->size] = packet;
		ngx_free_chain(cl);
	}
	context->out_chain = NULL;
	context->out_last = &context->out_chain;
	context->out_packet_count = 0;
}

static void context__cleanup(struct mosquitto *context)
{
	sub__clean_session(context);
	db__messages_clear(&context->msgs_in);
	db__messages_clear(&context->msgs_out);
	context__drop_output(context);
	if (context->in_by_id) HASH_DELETE(hh_id, db.contexts_by_id, context);
	HASH_DELETE(hh_sock, db.contexts_by_sock, context);
	if (context->read_ev.timer_set) ngx_event_del_timer(&context->read_ev);
	if (context->write_ev.posted) {
		ngx_queue_remove(&context->write_ev.queue);
	}
	if (context->peer && context->peer->context == context) context->peer->context = NULL;
	struct mosquitto__base_msg *base, *tmp;
	HASH_ITER(hh, db.msg_store, base, tmp) if (base->source == context) base->source = NULL;
	HEAP_FREE(context->id);
	HEAP_FREE(context->in_packet.payload);
	context->for_free_next = db.free_contexts;
	db.free_contexts = context;
}

static void context__keepalive_handler(ngx_event_t *ev)
{
	struct mosquitto *context = ev->data;
	g_stats.expired++;
	if (context->peer) context->peer->connected = false;
	context->state = mosq_cs_disconnected;
	context__drop_output(context);
	if (context->clean_start) context__cleanup(context);
}

static struct mosquitto *context__init(struct peer *peer)
{
	struct mosquitto *context = db.free_contexts;
	if (context) db.free_contexts = context->for_free_next;
	else context = HEAP_MALLOC(struct mosquitto);
	memset(context, 0, sizeof(*context));
	context->sock = ++db.next_sock;
	context->peer = peer;
	context->out_last = &context->out_chain;
	context->read_ev.data = context->write_ev.data = context;
	context->write_ev.write = 1;
	context->write_ev.handler = context__write_handler;
	context->read_ev.handler = context__keepalive_handler;
	context->msgs_in.inflight_quota = context->msgs_in.inflight_maximum = 100;
	context->msgs_out.inflight_quota = context->msgs_out.inflight_maximum = 12;
	HASH_ADD_KEYPTR(hh_sock, db.contexts_by_sock, &context->sock, sizeof(context->sock), context);
	return context;
}

static NOINLINE int handle__connect(struct mosquitto *context)
{
	struct mosquitto__packet_in *in = &context->in_packet;
	struct mosquitto *found;
	uint8_t flags = 0;
	uint16_t slen;
	char *username;
	packet__read_byte(in, &context->protocol);
	packet__read_byte(in, &flags);
	packet__read_uint16(in, &context->keepalive);
	if (packet__read_string(in, &context->id, &slen)) return MOSQ_ERR_PROTOCOL;
	HASH_FIND(hh_id, db.contexts_by_id, context->id, slen, found);
	context->clean_start = (flags & 2) != 0;
	if (found) {
		g_stats.takeovers++;
		if (!context->clean_start) { /* the session goes over, with its subscriptions and messages */
			struct mosquitto__client_msg *cm, *tmp;
			context->subs = found->subs;
			context->subs_capacity = found->subs_capacity;
			context->subs_count = found->subs_count;
			for (int i = 0; i < found->subs_capacity; i++) {
				struct mosquitto__subleaf *leaf;
				if (!found->subs[i]) continue;
				DL_FOREACH(found->subs[i]->shared ? found->subs[i]->shared->subs : found->subs[i]->hier->subs, leaf) {
					if (leaf->context == found) {
						leaf->context = context;
						break;
					}
				}
			}
			found->subs = NULL;
			found->subs_capacity = found->subs_count = 0;
			context->msgs_out = found->msgs_out;
			context->last_mid = found->last_mid;
			memset(&found->msgs_out, 0, sizeof(found->msgs_out));
			DL_FOREACH_SAFE(context->msgs_out.inflight, cm, tmp) {
				cm->data.dup = 1;
				cm->data.state = cm->data.qos == 1 ? mosq_ms_wait_for_puback : mosq_ms_wait_for_pubrec;
			}
		}
		context__cleanup(found);
	}
	HASH_ADD_KEYPTR(hh_id, db.contexts_by_id, context->id, slen, context);
	context->in_by_id = 1;
	if (flags & 0x80) {
		packet__read_string(in, &username, &slen);
		HASH_FIND(hh, db.acl_users, username, slen, context->user);
		HEAP_FREE(username);
	}
	context->state = mosq_cs_active;
	g_stats.connects++;
	struct mosquitto__packet *packet = packet__alloc(CMD_CONNACK, 2);
	packet__write_byte(packet, found && !context->clean_start);
	packet__write_byte(packet, 0);
	packet__queue(context, packet);
	struct mosquitto__client_msg *cm;
	DL_FOREACH(context->msgs_out.inflight, cm) send__publish(context, cm);
	return MOSQ_ERR_SUCCESS;
}

static int handle__packet(struct mosquitto *context)
{
	uint16_t mid = 0;
	switch (context->in_packet.command & 0xF0) {
	case CMD_CONNECT: return handle__connect(context);
	case CMD_PUBLISH: return handle__publish(context);
	case CMD_SUBSCRIBE: return handle__subscribe(context);
	case CMD_UNSUBSCRIBE: return handle__unsubscribe(context);
	case CMD_PUBACK:
		packet__read_uint16(&context->in_packet, &mid);
		g_stats.acks++;
		return db__message_update_outgoing(context, mid, mosq_ms_wait_for_puback, mosq_ms_invalid);
	case CMD_PUBREC:
		packet__read_uint16(&context->in_packet, &mid);
		if (db__message_update_outgoing(context, mid, mosq_ms_wait_for_pubrec, mosq_ms_wait_for_pubcomp) == MOSQ_ERR_SUCCESS) send__command_with_mid(context, CMD_PUBREL | 2, mid);
		return MOSQ_ERR_SUCCESS;
	case CMD_PUBREL:
		packet__read_uint16(&context->in_packet, &mid);
		return handle__pubrel(context, mid);
	case CMD_PUBCOMP:
		packet__read_uint16(&context->in_packet, &mid);
		g_stats.acks++;
		return db__message_update_outgoing(context, mid, mosq_ms_wait_for_pubcomp, mosq_ms_invalid);
	case CMD_PINGREQ:
		packet__queue(context, packet__alloc(CMD_PINGRESP, 0));
		return MOSQ_ERR_SUCCESS;
	case CMD_DISCONNECT:
		context->state = mosq_cs_disconnected;
		return MOSQ_ERR_CONN_LOST;
	}
	return MOSQ_ERR_PROTOCOL;
}

static int net__read(struct mosquitto *context, uint8_t *buf, uint32_t count)
{
	struct peer *peer = context->peer;
	uint32_t have = peer->tx_len - peer->tx_pos;
	if (have == 0) return 0;
	if (count > have) count = have;
	for (uint32_t i = 0; i < count; i++) buf[i] = peer->tx[peer->tx_pos + i];
	peer->tx_pos += count;
	context->stats.bytes_received += count;
	return (int)count;
}

static NOINLINE int packet__read(struct mosquitto *context)
{
	struct mosquitto__packet_in *in = &context->in_packet;
	uint8_t byte;
	int got;
	if (!in->command) {
		if (net__read(context, &byte, 1) != 1) return MOSQ_ERR_AGAIN;
		in->command = byte;
		in->remaining_mult = 1;
	}
	if (in->remaining_count <= 0) {
		do {
			if (net__read(context, &byte, 1) != 1) return MOSQ_ERR_AGAIN;
			in->remaining_count--;
			if (in->remaining_count < -4) return MOSQ_ERR_PROTOCOL;
			in->remaining_length += (byte & 127) * in->remaining_mult;
			in->remaining_mult *= 128;
		} while ((byte & 128) != 0);
		in->remaining_count = (int8_t)(in->remaining_count * -1);
		if (in->remaining_length > in->packet_buffer_size) {
			uint32_t size = 64;
			while (size < in->remaining_length) size *= 2;
			HEAP_FREE(in->payload);
			in->payload = heap_take("uint8_t", 1, size);
			in->packet_buffer_size = size;
		}
		in->to_process = in->remaining_length;
	}
	while (in->to_process > 0) {
		got = net__read(context, &in->payload[in->pos], in->to_process);
		if (got <= 0) return MOSQ_ERR_AGAIN;
		in->to_process -= (uint32_t)got;
		in->pos += (uint32_t)got;
	}
	in->pos = 0;
	context->stats.messages_received++;
	got = handle__packet(context);
	in->command = 0;
	in->remaining_count = 0;
	in->remaining_mult = 1;
	in->remaining_length = in->to_process = in->pos = 0;
	if (context->keepalive) ngx_event_add_timer(&context->read_ev, context->keepalive * 3U / 2);
	return got;
}

/* ------------------------------------------------------------------ persistence */

struct P_header { uint32_t chunk, length; };
struct P_base_msg { uint64_t store_id, expiry; uint32_t payloadlen; uint16_t topic_len, source_mid; uint8_t qos, retain, pad[2]; uint32_t crc; };
struct P_client { uint16_t id_len, last_mid; int32_t inflight, queued; uint32_t subs; };
static struct persist_file { uint8_t *data; uint32_t pos, size; uint32_t crc_table[256]; } pf;
static struct P_base_msg p_msg;
static struct P_client p_client;
static struct P_header p_header;

static NOINLINE uint32_t persist__crc(const uint8_t *p, size_t n)
{
	uint32_t c = ~0u;
	while (n--) c = pf.crc_table[(c ^ *p++) & 0xff] ^ (c >> 8);
	return ~c;
}

static bool persist__write(const void *bytes, uint32_t n)
{
	if (pf.pos + n > pf.size) return false;
	const uint8_t *b = bytes;
	for (uint32_t i = 0; i < n; i++) pf.data[pf.pos + i] = b[i];
	pf.pos += n;
	return true;
}

static void persist__take(void *bytes, uint32_t n)
{
	uint8_t *b = bytes;
	for (uint32_t i = 0; i < n; i++) b[i] = pf.data[pf.pos + i];
	pf.pos += n;
}

static NOINLINE void persist__backup(void)
{
	struct mosquitto__base_msg *base, *bt;
	struct mosquitto *context, *ct;
	uint32_t chunks = 0, seen = 0;
	pf.pos = 0;
	HASH_ITER(hh, db.msg_store, base, bt) {
		p_msg.store_id = base->db_id;
		p_msg.expiry = base->expiry;
		p_msg.payloadlen = base->data.payloadlen;
		p_msg.topic_len = (uint16_t)strlen(base->data.topic);
		p_msg.source_mid = base->data.source_mid;
		p_msg.qos = base->data.qos;
		p_msg.retain = base->data.retain;
		p_msg.crc = persist__crc(base->data.payload, base->data.payloadlen);
		p_header.chunk = 2;
		p_header.length = sizeof(p_msg) + p_msg.topic_len + p_msg.payloadlen;
		if (pf.pos + sizeof(p_header) + p_header.length > pf.size) break;
		persist__write(&p_header, sizeof(p_header));
		persist__write(&p_msg, sizeof(p_msg));
		persist__write(base->data.topic, p_msg.topic_len);
		persist__write(base->data.payload, p_msg.payloadlen);
		chunks++;
	}
	HASH_ITER(hh_id, db.contexts_by_id, context, ct) {
		struct mosquitto__client_msg *cm;
		p_client.id_len = (uint16_t)strlen(context->id);
		p_client.last_mid = context->last_mid;
		p_client.inflight = p_client.queued = 0;
		DL_FOREACH(context->msgs_out.inflight, cm) p_client.inflight++;
		DL_FOREACH(context->msgs_out.queued, cm) p_client.queued++;
		if (p_client.inflight != context->msgs_out.inflight_count || p_client.queued != context->msgs_out.queued_count) abort();
		p_client.subs = (uint32_t)context->subs_count;
		p_header.chunk = 4;
		p_header.length = sizeof(p_client) + p_client.id_len;
		if (pf.pos + sizeof(p_header) + p_header.length > pf.size) break;
		persist__write(&p_header, sizeof(p_header));
		persist__write(&p_client, sizeof(p_client));
		persist__write(context->id, p_client.id_len);
		chunks++;
	}
	uint32_t end = pf.pos;
	g_stats.saved_bytes += end;
	for (pf.pos = 0; pf.pos < end; seen++) {
		persist__take(&p_header, sizeof(p_header));
		uint32_t next = pf.pos + p_header.length;
		if (p_header.chunk == 2) {
			persist__take(&p_msg, sizeof(p_msg));
			HASH_FIND(hh, db.msg_store, &p_msg.store_id, sizeof(p_msg.store_id), base);
			if (!base || base->data.payloadlen != p_msg.payloadlen || persist__crc(pf.data + pf.pos + p_msg.topic_len, p_msg.payloadlen) != p_msg.crc) abort();
		} else {
			persist__take(&p_client, sizeof(p_client));
			HASH_FIND(hh_id, db.contexts_by_id, pf.data + pf.pos, p_client.id_len, context);
			if (!context || context->subs_count != (int)p_client.subs) abort();
		}
		pf.pos = next;
	}
	if (seen != chunks) abort();
}

static NOINLINE void sys_tree__update(void)
{
	char text[24];
	for (size_t i = 0; i < sizeof(sys_topics) / sizeof(sys_topics[0]); i++) {
		const struct sys_topic *t = &sys_topics[i];
		if (sys_last[i] == *t->counter) continue;
		sys_last[i] = *t->counter;
		int n = snprintf(text, sizeof(text), "%lu", *t->counter);
		struct mosquitto__base_msg *base = db__message_store(NULL, t->topic, (uint16_t)strlen(t->topic), (uint8_t *)text, (uint32_t)n, 1, true);
		base->sys = 1;
		sub__messages_queue(base);
		db__msg_store_ref_dec(&base);
	}
}

/* ------------------------------------------------------------------ what the peers say */

static const char *const metrics[] = { "temp", "power", "door", "air" };
static const char *const users[] = { "sensor", "panel", "gateway" };
static void tx_byte(struct peer *p, unsigned b) { p->tx[p->tx_len++] = (uint8_t)b; }
static void tx_u16(struct peer *p, unsigned w) { tx_byte(p, w >> 8); tx_byte(p, w & 255); }
static void tx_string(struct peer *p, const char *s)
{
	size_t n = strlen(s);
	tx_u16(p, (unsigned)n);
	for (size_t i = 0; i < n; i++) tx_byte(p, (unsigned char)s[i]);
}
static uint32_t tx_begin(struct peer *p, unsigned command)
{
	tx_byte(p, command);
	tx_u16(p, 0);
	return p->tx_len;
}
static void tx_end(struct peer *p, uint32_t start)
{
	uint32_t n = p->tx_len - start;
	p->tx[start - 2] = (uint8_t)(n % 128 | 128);
	p->tx[start - 1] = (uint8_t)(n / 128);
}

static void peer_connect(struct peer *p)
{
	char id[24];
	p->context = context__init(p);
	p->tx_len = p->tx_pos = p->rx_len = 0;
	p->connected = true;
	p->quiet = false;
	p->clean = p->index % 3 == 0;
	if (p->clean) p->filter_count = 0;
	uint32_t at = tx_begin(p, CMD_CONNECT);
	tx_byte(p, 5);
	tx_byte(p, 0x80 | (p->clean ? 2 : 0));
	tx_u16(p, 900 + p->index * 7U);
	snprintf(id, sizeof(id), "client-%04x-%c", p->index * 2654435u & 0xffff, 'a' + p->index % 26);
	tx_string(p, id);
	tx_string(p, users[p->index % 3]);
	tx_end(p, at);
}

static void make_filter(char *out, uint64_t r)
{
	unsigned site = r % 6, floor = (r >> 8) % 8, dev = (r >> 16) % 16;
	const char *m = metrics[(r >> 24) & 3];
	switch ((r >> 32) % 7) {
	case 0: snprintf(out, 40, "site/%u/floor/%u/dev/%u/%s", site, floor, dev, m); break;
	case 1: snprintf(out, 40, "site/%u/floor/%u/dev/+/%s", site, floor, m); break;
	case 2: snprintf(out, 40, "site/%u/floor/%u/#", site, floor); break;
	case 3: snprintf(out, 40, "site/+/floor/%u/dev/%u/%s", floor, dev, m); break;
	case 4: snprintf(out, 40, "$share/g%u/site/%u/floor/+/#", floor & 1, site); break;
	case 5: snprintf(out, 40, "site/%u/+/%u/dev/%u/+", site, floor, dev); break;
	default: snprintf(out, 40, "$SYS/broker/%s/#", site & 1 ? "clients" : "publish"); break;
	}
}

static void peer_subscribe(struct peer *p)
{
	uint32_t at;
	if (p->filter_count >= 6) {
		at = tx_begin(p, CMD_UNSUBSCRIBE | 2);
		tx_u16(p, ++p->mid);
		tx_string(p, p->filters[0]);
		tx_end(p, at);
		memmove(p->filters[0], p->filters[1], 5 * sizeof(p->filters[0]));
		p->filter_count--;
	}
	char *f = p->filters[p->filter_count];
	make_filter(f, tr_rand() >> 5);
	for (int i = 0; i < p->filter_count; i++) if (strcmp(p->filters[i], f) == 0) return;
	p->filter_count++;
	at = tx_begin(p, CMD_SUBSCRIBE | 2);
	tx_u16(p, ++p->mid);
	tx_string(p, f);
	tx_byte(p, (unsigned)(tr_rand() >> 7) % 3);
	tx_end(p, at);
}

static void peer_publish(struct peer *p)
{
	char topic[48];
	uint64_t r = tr_rand() >> 3;
	unsigned qos = (r >> 40) % 3, n = 8 + (r >> 44) % 180;
	snprintf(topic, sizeof(topic), "site/%u/floor/%u/dev/%u/%s", (unsigned)r % 6, (unsigned)(r >> 8) % 8, (unsigned)(r >> 16) % 16, metrics[(r >> 24) & 3]);
	uint32_t at = tx_begin(p, CMD_PUBLISH | qos << 1 | ((r >> 54) % 11 == 0));
	tx_string(p, topic);
	if (qos) tx_u16(p, ++p->mid ? p->mid : ++p->mid);
	uint32_t props = p->tx_len;
	tx_byte(p, 0);
	if (r & 0x800) { tx_byte(p, MQTT_PROP_PAYLOAD_FORMAT); tx_byte(p, 1); }
	if (r & 0x1000) { tx_byte(p, MQTT_PROP_MESSAGE_EXPIRY); tx_u16(p, 0); tx_u16(p, 600); }
	if (r & 0x80000) { tx_byte(p, MQTT_PROP_CONTENT_TYPE); tx_string(p, "application/json"); }
	if ((r & 0x300000) == 0) { tx_byte(p, MQTT_PROP_USER_PROPERTY); tx_string(p, "unit"); tx_string(p, "celsius"); }
	p->tx[props] = (uint8_t)(p->tx_len - props - 1);
	unsigned sum = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned b = (unsigned)(r >> (i % 40)) & 255;
		sum += b;
		tx_byte(p, b);
	}
	tx_byte(p, sum & 255);
	tx_end(p, at);
}

/* The peer reads what came, checks the payloads and answers. */
static NOINLINE void peer_receive(struct peer *p)
{
	uint32_t pos = 0;
	while (pos < p->rx_len && p->tx_len + 64 < TX_SIZE) {
		uint32_t start = pos, len = 0, shift = 0;
		uint8_t command = p->rx[pos++], b = 0x80;
		for (; (b & 0x80) && pos < p->rx_len; shift += 7) len |= (uint32_t)((b = p->rx[pos++]) & 127) << shift;
		if ((b & 0x80) || pos + len > p->rx_len) { pos = start; break; }
		const uint8_t *d = p->rx + pos, *end = d + len;
		pos += len;
		unsigned qos = (command >> 1) & 3, reply = 0, mid = 0;
		switch (command & 0xF0) {
		case CMD_PUBLISH: {
			bool sys = d[2] == '$';
			d += 2 + (d[0] << 8 | d[1]);
			if (qos) { mid = (unsigned)(d[0] << 8 | d[1]); d += 2; reply = qos == 1 ? CMD_PUBACK : CMD_PUBREC; }
			d += 1 + d[0];
			if (!sys) {
				unsigned sum = 0;
				for (; d < end - 1; d++) sum += *d;
				if ((sum & 255) != *d) abort();
			}
			p->got++;
			break;
		}
		case CMD_PUBREC: reply = CMD_PUBREL | 2; mid = (unsigned)(d[0] << 8 | d[1]); break;
		case CMD_PUBREL: reply = CMD_PUBCOMP; mid = (unsigned)(d[0] << 8 | d[1]); break;
		case CMD_PUBACK: case CMD_PUBCOMP: p->acked++; break;
		case CMD_CONNACK: case CMD_SUBACK: case CMD_UNSUBACK: case CMD_PINGRESP: break;
		default: abort();
		}
		if (reply) {
			tx_byte(p, reply);
			tx_byte(p, 2);
			tx_u16(p, mid);
		}
	}
	memmove(p->rx, p->rx + pos, p->rx_len - pos);
	p->rx_len -= pos;
	if (p->context && p->context->want_write) write_handler_post(p->context);
}

static NOINLINE void loop(void)
{
	for (int i = 0; i < PEERS; i++) {
		struct peer *p = &peers[i];
		if (!p->connected || !p->context) peer_connect(p);
		if (p->quiet) continue; /* until its time is over */
		if (p->tx_pos == p->tx_len) p->tx_pos = p->tx_len = 0;
		uint64_t r = tr_rand() >> 11;
		if (p->tx_len + 1200 < TX_SIZE) {
			peer_publish(p);
			if (r % 3 == 0) peer_publish(p);
			if (r % 17 == 0) peer_subscribe(p);
			if (r % 23 == 0) { tx_byte(p, CMD_PINGREQ); tx_byte(p, 0); }
		}
		struct mosquitto *context;
		HASH_FIND(hh_sock, db.contexts_by_sock, &p->context->sock, sizeof(p->context->sock), context);
		int rc;
		while ((rc = packet__read(context)) != MOSQ_ERR_AGAIN) if (rc == MOSQ_ERR_PROTOCOL) abort();
		ngx_event_process_posted(&ngx_posted_events);
		peer_receive(p);
		if (r % 1499 == 0) p->quiet = true;
		if (r % 701 == 0) p->connected = false; /* the line is lost: it comes again soon */
	}
	ngx_current_msec += 10;
	ngx_event_expire_timers();
}

static void acl_add(const char *user, int access, const char *topic)
{
	struct mosquitto__acl_user *u;
	HASH_FIND(hh, db.acl_users, user, strlen(user), u);
	if (!u) {
		u = HEAP_CALLOC(struct mosquitto__acl_user, 1);
		strcpy(u->username, user);
		HASH_ADD_KEYPTR(hh, db.acl_users, u->username, strlen(u->username), u);
	}
	struct mosquitto__acl *acl = HEAP_CALLOC(struct mosquitto__acl, 1), **tail = &u->acl;
	acl->access = access;
	strcpy(acl->topic, topic);
	while (*tail) tail = &(*tail)->next;
	*tail = acl;
}

int main(int argc, char **argv)
{
	tr_init(argc, argv);
	TR_GLOBAL(db, "struct mosquitto_db");
	TR_GLOBAL(g_stats, "struct sys_counters");
	TR_GLOBAL(sys_topics, "struct sys_topic []");
	TR_GLOBAL(sys_last, "unsigned long []");
	TR_GLOBAL(pub_tokens, "struct sub__token *");
	TR_GLOBAL(sub_tokens, "struct sub__token *");
	TR_GLOBAL(peers, "struct peer []");
	TR_GLOBAL(pf, "struct persist_file");
	TR_GLOBAL(p_msg, "struct P_base_msg");
	TR_GLOBAL(p_client, "struct P_client");
	TR_GLOBAL(p_header, "struct P_header");
	TR_GLOBAL(ngx_event_timer_rbtree, "ngx_rbtree_t");
	TR_GLOBAL(ngx_event_timer_sentinel, "ngx_rbtree_node_t");
	TR_GLOBAL(ngx_posted_events, "ngx_queue_t");
	TR_GLOBAL(ngx_current_msec, "unsigned long");
	TR_GLOBAL(ngx_output, "struct ngx_output_s");
	TR_GLOBAL(metrics, "char *[]");
	TR_GLOBAL(users, "char *[]");
	TR_CHECK(struct mosquitto, msgs_out);
	TR_CHECK(struct mosquitto__base_msg, dest_ids);
	TR_CHECK(struct mosquitto__subhier, topic);
	TR_CHECK(ngx_event_t, timer);
	ngx_event_timer_rbtree.root = ngx_event_timer_rbtree.sentinel = &ngx_event_timer_sentinel;
	ngx_event_timer_rbtree.insert = ngx_rbtree_insert_timer_value;
	ngx_queue_init(&ngx_posted_events);
	pub_tokens = HEAP_CALLOC(struct sub__token, 16);
	sub_tokens = HEAP_CALLOC(struct sub__token, 16);
	pf.size = 96 << 10;
	pf.data = heap_take("uint8_t", 1, pf.size);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
		pf.crc_table[i] = c;
	}
	acl_add("anonymous", 1, "#");
	acl_add("sensor", 2, "site/0/floor/+/dev/+/temp");
	acl_add("sensor", 2, "site/+/floor/+/dev/+/power");
	acl_add("sensor", 2, "site/1/#");
	acl_add("sensor", 2, "site/+/floor/3/#");
	acl_add("panel", 3, "site/+/floor/+/dev/#");
	acl_add("gateway", 2, "site/5/floor/7/#");
	acl_add("gateway", 3, "#");
	struct plugin_histogram *histogram = HEAP_CALLOC(struct plugin_histogram, 1);
	callback__add(MOSQ_EVT_ACL_CHECK, acl_check_cb, &db);
	callback__add(MOSQ_EVT_MESSAGE, histogram_cb, histogram);
	callback__add(MOSQ_EVT_MESSAGE, property_count_cb, HEAP_CALLOC(uint64_t, 1));
	for (int i = 0; i < PEERS; i++) {
		peers[i].index = (uint16_t)i;
		peers[i].tx = heap_take("uint8_t", 1, TX_SIZE);
		peers[i].rx = heap_take("uint8_t", 1, RX_SIZE);
		peer_connect(&peers[i]);
		for (int k = 0; k < 4; k++) peer_subscribe(&peers[i]);
	}
	for (int round = 1; tr_more(); round++) {
		loop();
		if (round % 16 == 0) persist__backup();
		if (round % 8 == 0) sys_tree__update();
	}
	if (getenv("SHOW")) {
		uint64_t got = 0;
		for (int i = 0; i < PEERS; i++) got += peers[i].got;
		fprintf(stderr, "publishes %lu delivered %lu dropped %lu denied %lu acks %lu connects %lu takeovers %lu expired %lu retained %d sent %lu checked %lu saved %lu; got %lu store %u subs %d\n", g_stats.publishes, g_stats.delivered, g_stats.dropped, g_stats.denied, g_stats.acks,
			g_stats.connects, g_stats.takeovers, g_stats.expired, db.retained_count, g_stats.retained_sent, g_stats.checked, g_stats.saved_bytes, got, HASH_CNT(hh, db.msg_store), db.subscription_count);
	}
	tr_sink = g_stats.delivered + histogram->by_qos[1];
	return 0;
}
