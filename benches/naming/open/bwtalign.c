/* Read aligner: FM index with interleaved occurrence counts, SMEMs both ways, minimizers in a hash, anchors
   sorted by radix and chained by DP, banded extension, CIGARs, sorted records, pileup.

   In the manner of bwa, minimap2, samtools and klib. */
#include "../heap.h"

/* ---- kvec.h ---- */
#define kv_roundup32(x) (--(x), (x)|=(x)>>1, (x)|=(x)>>2, (x)|=(x)>>4, (x)|=(x)>>8, (x)|=(x)>>16, ++(x))
#define kvec_t(type) struct { size_t n, m; type *a; }
#define kv_A(v, i) ((v).a[(i)])
#define kv_size(v) ((v).n)
#define kv_resize(type, v, s) do { (v).m = (s); kv_roundup32((v).m); (v).a = HEAP_REALLOC((v).a, type, (v).m); } while (0)
#define kv_push(type, v, x) do { \
		if ((v).n == (v).m) { (v).m = (v).m? (v).m<<1 : 16; (v).a = HEAP_REALLOC((v).a, type, (v).m); } \
		(v).a[(v).n++] = (x); \
	} while (0)
#define kv_pushp(type, v, p) do { \
		if ((v).n == (v).m) { (v).m = (v).m? (v).m<<1 : 16; (v).a = HEAP_REALLOC((v).a, type, (v).m); } \
		*(p) = &(v).a[(v).n++]; \
	} while (0)

/* ---- khash.h ---- */
typedef uint32_t khint32_t, khint_t, khiter_t;
typedef uint64_t khint64_t;
#define __ac_isempty(flag, i) ((flag[i>>4]>>((i&0xfU)<<1))&2)
#define __ac_isdel(flag, i) ((flag[i>>4]>>((i&0xfU)<<1))&1)
#define __ac_iseither(flag, i) ((flag[i>>4]>>((i&0xfU)<<1))&3)
#define __ac_set_isboth_false(flag, i) (flag[i>>4]&=~(3ul<<((i&0xfU)<<1)))
#define __ac_set_isempty_false(flag, i) (flag[i>>4]&=~(2ul<<((i&0xfU)<<1)))
#define __ac_set_isdel_true(flag, i) (flag[i>>4]|=1ul<<((i&0xfU)<<1))
#define __ac_fsize(m) ((m) < 16? 1 : (m)>>4)
#define KHASH_INIT(name, khkey_t, khval_t, kh_is_map, __hash_func, __hash_equal) \
	typedef struct kh_##name##_s { khint_t n_buckets, size, n_occupied, upper_bound; khint32_t *flags; khkey_t *keys; khval_t *vals; } kh_##name##_t; \
	static inline kh_##name##_t *kh_init_##name(void) { return HEAP_CALLOC(kh_##name##_t, 1); } \
	static inline void kh_clear_##name(kh_##name##_t *h) { \
		if (h->flags) { memset(h->flags, 0xaa, __ac_fsize(h->n_buckets) * sizeof(khint32_t)); h->size = h->n_occupied = 0; } \
	} \
	static inline khint_t kh_get_##name(const kh_##name##_t *h, khkey_t key) { \
		if (h->n_buckets) { \
			khint_t k, i, last, mask = h->n_buckets - 1, step = 0; \
			k = __hash_func(key); i = k & mask; last = i; \
			while (!__ac_isempty(h->flags, i) && (__ac_isdel(h->flags, i) || !__hash_equal(h->keys[i], key))) { \
				i = (i + (++step)) & mask; \
				if (i == last) return h->n_buckets; \
			} \
			return __ac_iseither(h->flags, i)? h->n_buckets : i; \
		} else return 0; \
	} \
	static khint_t kh_put_##name(kh_##name##_t *h, khkey_t key, int *ret); \
	static NOINLINE void kh_resize_##name(kh_##name##_t *h, khint_t new_n_buckets) { \
		kh_##name##_t old = *h; khint_t j; int absent; \
		kv_roundup32(new_n_buckets); if (new_n_buckets < 16) new_n_buckets = 16; \
		h->n_buckets = new_n_buckets; h->size = h->n_occupied = 0; h->upper_bound = (khint_t)(new_n_buckets * 0.77 + 0.5); \
		h->flags = HEAP_REALLOC(NULL, khint32_t, __ac_fsize(new_n_buckets)); \
		memset(h->flags, 0xaa, __ac_fsize(new_n_buckets) * sizeof(khint32_t)); \
		h->keys = HEAP_REALLOC(NULL, khkey_t, new_n_buckets); \
		if (kh_is_map) h->vals = HEAP_REALLOC(NULL, khval_t, new_n_buckets); \
		for (j = 0; j != old.n_buckets; ++j) \
			if (__ac_iseither(old.flags, j) == 0) { \
				khint_t k = kh_put_##name(h, old.keys[j], &absent); \
				if (kh_is_map) h->vals[k] = old.vals[j]; \
			} \
		HEAP_FREE(old.flags); HEAP_FREE(old.keys); if (kh_is_map) HEAP_FREE(old.vals); \
	} \
	static NOINLINE khint_t kh_put_##name(kh_##name##_t *h, khkey_t key, int *ret) { \
		khint_t x; \
		if (h->n_occupied >= h->upper_bound) kh_resize_##name(h, h->n_buckets? h->n_buckets<<1 : 16); \
		{ \
			khint_t k, i, site, last, mask = h->n_buckets - 1, step = 0; \
			x = site = h->n_buckets; k = __hash_func(key); i = k & mask; \
			if (__ac_isempty(h->flags, i)) x = i; \
			else { \
				last = i; \
				while (!__ac_isempty(h->flags, i) && (__ac_isdel(h->flags, i) || !__hash_equal(h->keys[i], key))) { \
					if (__ac_isdel(h->flags, i)) site = i; \
					i = (i + (++step)) & mask; \
					if (i == last) { x = site; break; } \
				} \
				if (x == h->n_buckets) { if (__ac_isempty(h->flags, i) && site != h->n_buckets) x = site; else x = i; } \
			} \
		} \
		if (__ac_isempty(h->flags, x)) { h->keys[x] = key; __ac_set_isboth_false(h->flags, x); ++h->size; ++h->n_occupied; *ret = 1; } \
		else if (__ac_isdel(h->flags, x)) { h->keys[x] = key; __ac_set_isboth_false(h->flags, x); ++h->size; *ret = 2; } \
		else *ret = 0; \
		return x; \
	} \
	static inline void kh_del_##name(kh_##name##_t *h, khint_t x) { \
		if (x != h->n_buckets && !__ac_iseither(h->flags, x)) { __ac_set_isdel_true(h->flags, x); --h->size; } \
	}
#define khash_t(name) kh_##name##_t
#define kh_exist(h, x) (!__ac_iseither((h)->flags, (x)))
#define kh_key(h, x) ((h)->keys[x])
#define kh_val(h, x) ((h)->vals[x])
#define kh_end(h) ((h)->n_buckets)
#define kh_int64_hash_func(key) (khint32_t)((key)>>33^(key)^(key)<<11)
#define kh_int64_hash_equal(a, b) ((a) == (b))

/* ---- ksort.h ---- */
typedef struct { void *left, *right; int depth; } ks_isort_stack_t;
#define KSORT_SWAP(type_t, a, b) { type_t swap_tmp=(a); (a)=(b); (b)=swap_tmp; }
#define KSORT_INIT(name, type_t, __sort_lt) \
	static inline void __ks_insertsort_##name(type_t *s, type_t *t) { \
		type_t *i, *j; \
		for (i = s + 1; i < t; ++i) for (j = i; j > s && __sort_lt(*j, *(j-1)); --j) KSORT_SWAP(type_t, *j, *(j-1)) \
	} \
	static NOINLINE void ks_introsort_##name(size_t n, type_t a[]) { \
		ks_isort_stack_t stack[64], *top = stack; type_t rp, *s, *t, *i, *j, *k; \
		if (n < 2) return; \
		s = a; t = a + (n-1); \
		while (1) { \
			if (s < t) { \
				i = s; j = t; k = i + ((j-i)>>1) + 1; \
				if (__sort_lt(*k, *i)) { if (__sort_lt(*k, *j)) k = j; } \
				else k = __sort_lt(*j, *i)? i : j; \
				rp = *k; if (k != t) KSORT_SWAP(type_t, *k, *t) \
				for (;;) { \
					do ++i; while (__sort_lt(*i, rp)); \
					do --j; while (i <= j && __sort_lt(rp, *j)); \
					if (j <= i) break; \
					KSORT_SWAP(type_t, *i, *j) \
				} \
				KSORT_SWAP(type_t, *i, *t) \
				if (i-s > t-i) { if (i-s > 16) { top->left = s; top->right = i-1; ++top; } s = t-i > 16? i+1 : t; } \
				else { if (t-i > 16) { top->left = i+1; top->right = t; ++top; } t = i-s > 16? i-1 : s; } \
			} else { \
				if (top == stack) { __ks_insertsort_##name(a, a+n); return; } \
				--top; s = (type_t*)top->left; t = (type_t*)top->right; \
			} \
		} \
	}
#define RS_MIN_SIZE 64
#define RS_MAX_BITS 8
#define KRADIX_SORT_INIT(name, rstype_t, rskey, sizeof_key) \
	typedef struct { rstype_t *b, *e; } rsbucket_##name##_t; \
	static rsbucket_##name##_t rsb_##name[sizeof_key][1<<RS_MAX_BITS]; \
	static void rs_insertsort_##name(rstype_t *beg, rstype_t *end) { \
		rstype_t *i; \
		for (i = beg + 1; i < end; ++i) \
			if (rskey(*i) < rskey(*(i - 1))) { \
				rstype_t *j, tmp = *i; \
				for (j = i; j > beg && rskey(tmp) < rskey(*(j-1)); --j) *j = *(j - 1); \
				*j = tmp; \
			} \
	} \
	static void rs_sort_##name(rstype_t *beg, rstype_t *end, int n_bits, int s) { \
		rstype_t *i; int size = 1<<n_bits, m = size - 1; \
		rsbucket_##name##_t *k, *b = rsb_##name[s / 8], *be = b + size; \
		for (k = b; k != be; ++k) k->b = k->e = beg; \
		for (i = beg; i != end; ++i) ++b[rskey(*i)>>s&m].e; \
		for (k = b + 1; k != be; ++k) k->e += (k-1)->e - beg, k->b = (k-1)->e; \
		for (k = b; k != be;) { \
			if (k->b != k->e) { \
				rsbucket_##name##_t *l; \
				if ((l = b + (rskey(*k->b)>>s&m)) != k) { \
					rstype_t tmp = *k->b, swap; \
					do { swap = tmp; tmp = *l->b; *l->b++ = swap; l = b + (rskey(tmp)>>s&m); } while (l != k); \
					*k->b++ = tmp; \
				} else ++k->b; \
			} else ++k; \
		} \
		for (b->b = beg, k = b + 1; k != be; ++k) k->b = (k-1)->e; \
		if (s) { \
			s = s > n_bits? s - n_bits : 0; \
			for (k = b; k != be; ++k) \
				if (k->e - k->b > RS_MIN_SIZE) rs_sort_##name(k->b, k->e, n_bits, s); \
				else if (k->e - k->b > 1) rs_insertsort_##name(k->b, k->e); \
		} \
	} \
	static NOINLINE void radix_sort_##name(rstype_t *beg, rstype_t *end) { \
		if (end - beg <= RS_MIN_SIZE) rs_insertsort_##name(beg, end); \
		else rs_sort_##name(beg, end, RS_MAX_BITS, (sizeof_key - 1) * RS_MAX_BITS); \
	}

typedef struct { uint64_t x, y; } mm128_t;
typedef struct { size_t n, m; mm128_t *a; } mm128_v;
#define sort_key_128x(a) ((a).x)
KRADIX_SORT_INIT(128x, mm128_t, sort_key_128x, 8)
#define sort_key_64(x) (x)
KRADIX_SORT_INIT(64, uint64_t, sort_key_64, 8)

/* ---- reference ---- */
#define L_REF 12000
#define N_SEQS 3
typedef struct { int64_t offset; int32_t len, n_ambs; uint32_t gi; char *name; } bntann1_t;
typedef struct { int64_t l_pac; int32_t n_seqs; uint32_t seed; bntann1_t *anns; uint8_t *pac; } bntseq_t;
#define _set_pac(pac, l, c) ((pac)[(l)>>2] |= (c)<<((~(l)&3)<<1))
#define _get_pac(pac, l) ((pac)[(l)>>2]>>((~(l)&3)<<1)&3)
static bntseq_t *bns;

static int bns_pos2rid(const bntseq_t *bns, int64_t pos_f)
{
	int left = 0, mid = 0, right = bns->n_seqs;
	while (left < right) {
		mid = (left + right) >> 1;
		if (pos_f >= bns->anns[mid].offset) {
			if (mid == bns->n_seqs - 1) break;
			if (pos_f < bns->anns[mid+1].offset) break;
			left = mid + 1;
		} else right = mid;
	}
	return mid;
}

/* ---- bwt.h ---- */
#define OCC_INTV_SHIFT 7
#define OCC_INTERVAL (1LL<<OCC_INTV_SHIFT)
#define OCC_INTV_MASK (OCC_INTERVAL - 1)
typedef uint64_t bwtint_t;
typedef struct { bwtint_t primary, L2[5], seq_len, bwt_size; uint32_t *bwt; uint32_t cnt_table[256]; int sa_intv; bwtint_t n_sa; bwtint_t *sa; } bwt_t;
typedef struct { bwtint_t x[3], info; } bwtintv_t;
typedef struct { size_t n, m; bwtintv_t *a; } bwtintv_v;
#define bwt_occ_intv(b, k) ((b)->bwt + ((k)>>7<<4))
#define bwt_bwt(b, k) ((b)->bwt[((k)>>7<<4) + sizeof(bwtint_t) + (((k)&0x7f)>>4)])
#define bwt_B0(b, k) (bwt_bwt(b, k)>>((~(k)&0xf)<<1)&3)
#define bwt_set_intv(bwt, c, ik) ((ik).x[0] = (bwt)->L2[(int)(c)]+1, (ik).x[2] = (bwt)->L2[(int)(c)+1]-(bwt)->L2[(int)(c)], (ik).x[1] = (bwt)->L2[3-(c)]+1, (ik).info = 0)
static bwt_t *the_bwt;

static inline int __occ_aux(uint64_t y, int c)
{
	y = ((c&2)? y : ~y) >> 1 & ((c&1)? y : ~y) & 0x5555555555555555ull;
	y = (y & 0x3333333333333333ull) + (y >> 2 & 0x3333333333333333ull);
	return ((y + (y >> 4)) & 0xf0f0f0f0f0f0f0full) * 0x101010101010101ull >> 56;
}

static inline bwtint_t bwt_occ(const bwt_t *bwt, bwtint_t k, uint8_t c)
{
	bwtint_t n;
	uint32_t *p, *end;
	if (k == bwt->seq_len) return bwt->L2[c+1] - bwt->L2[c];
	if (k == (bwtint_t)(-1)) return 0;
	k -= (k >= bwt->primary);
	n = ((bwtint_t*)(p = bwt_occ_intv(bwt, k)))[c];
	p += sizeof(bwtint_t);
	end = p + (((k>>5) - ((k&~OCC_INTV_MASK)>>5))<<1);
	for (; p < end; p += 2) n += __occ_aux((uint64_t)p[0]<<32 | p[1], c);
	n += __occ_aux(((uint64_t)p[0]<<32 | p[1]) & ~((1ull<<((~k&31)<<1)) - 1), c);
	if (c == 0) n -= ~k&31;
	return n;
}

#define __occ_aux4(bwt, b) ((bwt)->cnt_table[(b)&0xff] + (bwt)->cnt_table[(b)>>8&0xff] + (bwt)->cnt_table[(b)>>16&0xff] + (bwt)->cnt_table[(b)>>24])

static void bwt_occ4(const bwt_t *bwt, bwtint_t k, bwtint_t cnt[4])
{
	bwtint_t x;
	uint32_t *p, tmp, *end;
	if (k == (bwtint_t)(-1)) { memset(cnt, 0, 4 * sizeof(bwtint_t)); return; }
	k -= (k >= bwt->primary);
	p = bwt_occ_intv(bwt, k);
	memcpy(cnt, p, 4 * sizeof(bwtint_t));
	p += sizeof(bwtint_t);
	end = p + ((k>>4) - ((k&~OCC_INTV_MASK)>>4));
	for (x = 0; p < end; ++p) x += __occ_aux4(bwt, *p);
	tmp = *p & ~((1U<<((~k&15)<<1)) - 1);
	x += __occ_aux4(bwt, tmp) - (~k&15);
	cnt[0] += x&0xff; cnt[1] += x>>8&0xff; cnt[2] += x>>16&0xff; cnt[3] += x>>24;
}

static NOINLINE bwtint_t bwt_sa(const bwt_t *bwt, bwtint_t k)
{
	bwtint_t sa = 0, mask = bwt->sa_intv - 1;
	while (k & mask) {
		bwtint_t x = k - (k > bwt->primary);
		++sa;
		x = bwt_B0(bwt, x);
		x = bwt->L2[x] + bwt_occ(bwt, k, x);
		k = k == bwt->primary? 0 : x;
	}
	return sa + bwt->sa[k/bwt->sa_intv];
}

static NOINLINE void bwt_extend(const bwt_t *bwt, const bwtintv_t *ik, bwtintv_t ok[4], int is_back)
{
	bwtint_t tk[4], tl[4];
	int i;
	bwt_occ4(bwt, ik->x[!is_back] - 1, tk);
	bwt_occ4(bwt, ik->x[!is_back] - 1 + ik->x[2], tl);
	for (i = 0; i != 4; ++i) {
		ok[i].x[!is_back] = bwt->L2[i] + 1 + tk[i];
		ok[i].x[2] = tl[i] - tk[i];
	}
	ok[3].x[is_back] = ik->x[is_back] + (ik->x[!is_back] <= bwt->primary && ik->x[!is_back] + ik->x[2] - 1 >= bwt->primary);
	ok[2].x[is_back] = ok[3].x[is_back] + ok[3].x[2];
	ok[1].x[is_back] = ok[2].x[is_back] + ok[2].x[2];
	ok[0].x[is_back] = ok[1].x[is_back] + ok[1].x[2];
}

static void bwt_reverse_intvs(bwtintv_v *p)
{
	if (p->n > 1) {
		size_t j;
		for (j = 0; j < p->n>>1; ++j) {
			bwtintv_t tmp = p->a[p->n - 1 - j];
			p->a[p->n - 1 - j] = p->a[j];
			p->a[j] = tmp;
		}
	}
}

static bwtintv_t ok[4];
static bwtintv_v smem_tmp[2];

static NOINLINE int bwt_smem1(const bwt_t *bwt, int len, const uint8_t *q, int x, int min_intv, bwtintv_v *mem)
{
	int i, c, ret;
	size_t j;
	bwtintv_t ik;
	bwtintv_v *prev = &smem_tmp[0], *curr = &smem_tmp[1], *swap;
	mem->n = 0;
	bwt_set_intv(bwt, q[x], ik);
	ik.info = x + 1;
	for (i = x + 1, curr->n = 0; i < len; ++i) { /* forward */
		c = 3 - q[i];
		bwt_extend(bwt, &ik, ok, 0);
		if (ok[c].x[2] != ik.x[2]) {
			kv_push(bwtintv_t, *curr, ik);
			if ((int)ok[c].x[2] < min_intv) break;
		}
		ik = ok[c]; ik.info = i + 1;
	}
	if (i == len) kv_push(bwtintv_t, *curr, ik);
	bwt_reverse_intvs(curr);
	ret = curr->a[0].info;
	swap = curr; curr = prev; prev = swap;
	for (i = x - 1; i >= -1; --i) { /* backward */
		c = i < 0? -1 : q[i];
		for (j = 0, curr->n = 0; j < prev->n; ++j) {
			bwtintv_t *p = &prev->a[j];
			if (c >= 0) bwt_extend(bwt, p, ok, 1);
			if (c < 0 || (int)ok[c].x[2] < min_intv) {
				if (curr->n == 0 && (mem->n == 0 || (uint64_t)(i + 1) < mem->a[mem->n-1].info>>32)) {
					ik = *p;
					ik.info |= (uint64_t)(i + 1)<<32;
					kv_push(bwtintv_t, *mem, ik);
				}
			} else if (curr->n == 0 || ok[c].x[2] != curr->a[curr->n-1].x[2]) {
				ok[c].info = p->info;
				kv_push(bwtintv_t, *curr, ok[c]);
			}
		}
		if (curr->n == 0) break;
		swap = curr; curr = prev; prev = swap;
	}
	bwt_reverse_intvs(mem);
	return ret;
}

/* prefix doubling; only at the start */
static int *cmp_rank, cmp_h, cmp_n;
static int sa_cmp(const void *x, const void *y)
{
	int a = *(const int*)x, b = *(const int*)y;
	if (cmp_rank[a] != cmp_rank[b]) return cmp_rank[a] - cmp_rank[b];
	a = a + cmp_h <= cmp_n? cmp_rank[a + cmp_h] : -1; b = b + cmp_h <= cmp_n? cmp_rank[b + cmp_h] : -1;
	return a - b;
}

static bwt_t *bwt_build(const uint8_t *T, int n)
{
	int *sa = malloc((n + 1) * sizeof(int)), *tmp = malloc((n + 1) * sizeof(int)), i, k;
	uint8_t *B = malloc(n);
	bwt_t *bwt = HEAP_CALLOC(bwt_t, 1);
	bwtint_t c[4] = { 0, 0, 0, 0 };
	cmp_rank = malloc((n + 1) * sizeof(int)); cmp_n = n;
	for (i = 0; i <= n; ++i) sa[i] = i, cmp_rank[i] = i == n? 0 : T[i] + 1;
	for (cmp_h = 1;; cmp_h <<= 1) {
		qsort(sa, n + 1, sizeof(int), sa_cmp);
		tmp[sa[0]] = 0;
		for (i = 1; i <= n; ++i) tmp[sa[i]] = tmp[sa[i-1]] + (sa_cmp(&sa[i-1], &sa[i]) < 0);
		memcpy(cmp_rank, tmp, (n + 1) * sizeof(int));
		if (tmp[sa[n]] == n) break;
	}
	for (i = 0; i < n; ++i) ++bwt->L2[T[i]+1];
	for (i = 1; i < 5; ++i) bwt->L2[i] += bwt->L2[i-1];
	bwt->seq_len = n; bwt->sa_intv = 16;
	bwt->n_sa = n / bwt->sa_intv + 1;
	bwt->sa = HEAP_CALLOC(bwtint_t, bwt->n_sa);
	for (i = k = 0; i <= n; ++i) {
		if (sa[i] == 0) bwt->primary = i; else B[k++] = T[sa[i]-1];
		if (i % bwt->sa_intv == 0) bwt->sa[i / bwt->sa_intv] = sa[i];
	}
	bwt->bwt_size = (n / OCC_INTERVAL + 2) * 16;
	bwt->bwt = HEAP_CALLOC(uint32_t, bwt->bwt_size);
	for (i = 0; i < n; ++i) {
		if (i % OCC_INTERVAL == 0) memcpy(bwt->bwt + i / OCC_INTERVAL * 16, c, sizeof c);
		bwt->bwt[i / OCC_INTERVAL * 16 + 8 + (i % OCC_INTERVAL) / 16] |= (uint32_t)B[i] << ((15 - i % 16) << 1);
		++c[B[i]];
	}
	for (i = 0; i != 256; ++i) {
		uint32_t x = 0;
		for (k = 0; k != 4; ++k) x |= (((i&3) == k) + ((i>>2&3) == k) + ((i>>4&3) == k) + (i>>6 == k)) << (k<<3);
		bwt->cnt_table[i] = x;
	}
	free(sa); free(tmp); free(cmp_rank); free(B);
	return bwt;
}

/* ---- minimizers ---- */
KHASH_INIT(idx, uint64_t, uint64_t, 1, kh_int64_hash_func, kh_int64_hash_equal)
typedef struct { int k, w; mm128_v a; khash_t(idx) *h; uint64_t n_lookup, n_hit; } mm_idx_t;
static mm_idx_t *mi;

static inline uint64_t hash64(uint64_t key, uint64_t mask)
{
	key = (~key + (key << 21)) & mask;
	key = key ^ key >> 24;
	key = ((key + (key << 3)) + (key << 8)) & mask;
	key = key ^ key >> 14;
	key = ((key + (key << 2)) + (key << 4)) & mask;
	key = key ^ key >> 28;
	return (key + (key << 31)) & mask;
}

static mm128_t sketch_buf[32];

static NOINLINE void mm_sketch(const uint8_t *seq, int len, int w, int k, uint32_t rid, mm128_v *p)
{
	uint64_t shift1 = 2 * (k - 1), mask = (1ULL<<2*k) - 1, kmer[2] = { 0, 0 };
	int i, j, l, buf_pos, min_pos;
	mm128_t *buf = sketch_buf, min = { UINT64_MAX, UINT64_MAX };
	memset(buf, 0xff, w * 16);
	for (i = l = buf_pos = min_pos = 0; i < len; ++i) {
		int c = seq[i], z;
		mm128_t info = { UINT64_MAX, UINT64_MAX };
		kmer[0] = (kmer[0] << 2 | c) & mask;
		kmer[1] = (kmer[1] >> 2) | (3ULL^c) << shift1;
		if (kmer[0] == kmer[1]) continue;
		z = kmer[0] < kmer[1]? 0 : 1;
		if (++l >= k) {
			info.x = hash64(kmer[z], mask) << 8 | k;
			info.y = (uint64_t)rid<<32 | (uint32_t)i<<1 | z;
		}
		buf[buf_pos] = info;
		if (info.x <= min.x) {
			if (l >= w + k && min.x != UINT64_MAX) kv_push(mm128_t, *p, min);
			min = info, min_pos = buf_pos;
		} else if (buf_pos == min_pos) {
			if (l >= w + k - 1 && min.x != UINT64_MAX) kv_push(mm128_t, *p, min);
			for (j = buf_pos + 1, min.x = UINT64_MAX; j < w; ++j) if (min.x >= buf[j].x) min = buf[j], min_pos = j;
			for (j = 0; j <= buf_pos; ++j) if (min.x >= buf[j].x) min = buf[j], min_pos = j;
		}
		if (++buf_pos == w) buf_pos = 0;
	}
	if (min.x != UINT64_MAX) kv_push(mm128_t, *p, min);
}

static mm_idx_t *mm_idx_build(const uint8_t *T, int n)
{
	mm_idx_t *mi = HEAP_CALLOC(mm_idx_t, 1);
	size_t i, j;
	int absent;
	mi->k = 13; mi->w = 5; mi->h = kh_init_idx();
	mm_sketch(T, n, mi->w, mi->k, 0, &mi->a);
	radix_sort_128x(mi->a.a, mi->a.a + mi->a.n);
	for (i = 0; i < mi->a.n; i = j) {
		khint_t itr;
		for (j = i + 1; j < mi->a.n && mi->a.a[j].x == mi->a.a[i].x; ++j);
		itr = kh_put_idx(mi->h, mi->a.a[i].x>>8, &absent);
		kh_val(mi->h, itr) = (uint64_t)i<<32 | (j - i);
	}
	return mi;
}

/* ---- reads ---- */
#define N_READS 96
typedef struct { int l_seq, id; char *name; uint8_t *seq, *qual; int true_pos, true_rev; } bseq1_t;
static bseq1_t *reads;

typedef struct { uint32_t capacity; int32_t dp_score, dp_max; uint32_t n_ambi:30, trans_strand:2; uint32_t n_cigar; uint32_t cigar[]; } mm_extra_t;
#define CIGAR_CAP 59
typedef struct {
	int32_t id, cnt, rid, score, qs, qe, rs, re, parent, subsc, as, mlen, blen;
	uint32_t mapq:8, split:2, rev:1, inv:1, sam_pri:1, proper_frag:1, dummy:18;
	uint32_t hash; float div;
	mm_extra_t *p;
} mm_reg1_t;
typedef struct { size_t n, m; mm_reg1_t *a; } mm_reg1_v;

typedef struct { /* buffers of one thread */
	mm128_v mini, anchors; bwtintv_v mem;
	int32_t *f, *p, *v, *t; uint64_t *u; size_t m_chain, n_u;
	uint8_t *query[2], *target; int m_target;
	mm_reg1_v regs;
} mm_tbuf_t;
static mm_tbuf_t *tb;
static struct { uint64_t smems, anchors, chains, cells, records, columns, dups; } stat;

static NOINLINE void collect_seed_fm(const bwt_t *bwt, const bseq1_t *s, mm_tbuf_t *b)
{
	int x = 0;
	size_t i, k;
	b->anchors.n = 0;
	while (x < s->l_seq) {
		x = bwt_smem1(bwt, s->l_seq, s->seq, x, 1, &b->mem);
		for (i = 0; i < b->mem.n; ++i) {
			bwtintv_t *p = &b->mem.a[i];
			int qs = p->info>>32, slen = (uint32_t)p->info - qs;
			if (slen < 17) continue;
			++stat.smems;
			for (k = 0; k < p->x[2] && k < 20; ++k) {
				int64_t pos = bwt_sa(bwt, p->x[0] + k);
				mm128_t a;
				if (pos < L_REF && pos + slen > L_REF) continue;
				if (pos < L_REF) {
					a.x = pos + slen - 1;
					a.y = (uint64_t)slen<<32 | (qs + slen - 1);
				} else {
					a.x = 1ULL<<63 | (2 * L_REF - pos - 1);
					a.y = (uint64_t)slen<<32 | (s->l_seq - qs - 1);
				}
				kv_push(mm128_t, b->anchors, a);
			}
		}
	}
}

static NOINLINE void collect_seed_hits(mm_idx_t *mi, const bseq1_t *s, mm_tbuf_t *b)
{
	size_t i;
	b->mini.n = 0;
	mm_sketch(s->seq, s->l_seq, mi->w, mi->k, 0, &b->mini);
	for (i = 0; i < b->mini.n; ++i) {
		mm128_t *p = &b->mini.a[i];
		khint_t itr = kh_get_idx(mi->h, p->x>>8);
		uint32_t n, k;
		const mm128_t *r;
		++mi->n_lookup;
		if (itr == kh_end(mi->h)) continue;
		++mi->n_hit;
		r = &mi->a.a[kh_val(mi->h, itr)>>32]; n = (uint32_t)kh_val(mi->h, itr);
		for (k = 0; k < n && k < 20; ++k) {
			mm128_t *q;
			int32_t rpos = (uint32_t)r[k].y>>1, qpos = (uint32_t)p->y>>1;
			kv_pushp(mm128_t, b->anchors, &q);
			if ((r[k].y&1) == (p->y&1)) {
				q->x = rpos;
				q->y = (uint64_t)mi->k<<32 | qpos;
			} else {
				q->x = 1ULL<<63 | rpos;
				q->y = (uint64_t)mi->k<<32 | (s->l_seq - (qpos + 1 - mi->k) - 1);
			}
		}
	}
}

static inline float mg_log2(float x)
{
	union { float f; uint32_t i; } z = { x };
	float log_2 = ((z.i >> 23) & 255) - 128;
	z.i &= ~(255 << 23);
	z.i += 127 << 23;
	log_2 += (-0.34484843f * z.f + 2.02466578f) * z.f - 0.67487759f;
	return log_2;
}

static NOINLINE void mm_chain_dp(mm_tbuf_t *b)
{
	int64_t n = b->anchors.n, i, j, st = 0;
	mm128_t *a = b->anchors.a;
	if ((size_t)n > b->m_chain) {
		b->m_chain = n; kv_roundup32(b->m_chain);
		b->f = HEAP_REALLOC(b->f, int32_t, b->m_chain); b->p = HEAP_REALLOC(b->p, int32_t, b->m_chain);
		b->v = HEAP_REALLOC(b->v, int32_t, b->m_chain); b->t = HEAP_REALLOC(b->t, int32_t, b->m_chain);
		b->u = HEAP_REALLOC(b->u, uint64_t, b->m_chain);
	}
	int32_t *f = b->f, *p = b->p, *v = b->v, *t = b->t;
	memset(t, 0, n * 4);
	for (i = 0; i < n; ++i) {
		uint64_t ri = a[i].x;
		int64_t max_j = -1;
		int32_t qi = (int32_t)a[i].y, q_span = a[i].y>>32&0xff, max_f = q_span, n_skip = 0;
		while (st < i && ri > a[st].x + 400) ++st;
		for (j = i - 1; j >= st; --j) {
			int64_t dr = ri - a[j].x;
			int32_t dq = qi - (int32_t)a[j].y, dd, sc;
			if (dr == 0 || dq <= 0 || dq > 400) continue;
			dd = dr > dq? dr - dq : dq - dr;
			if (dd > 40) continue;
			sc = dq < dr? dq : dr;
			sc = sc > q_span? q_span : sc;
			sc -= dd? (int)(dd * .13f) + (int)(mg_log2(dd + 1) * .5f) : 0;
			sc += f[j];
			if (sc > max_f) {
				max_f = sc, max_j = j;
				if (n_skip > 0) --n_skip;
			} else if (t[j] == (int32_t)i) {
				if (++n_skip > 25) break;
			}
			if (p[j] >= 0) t[p[j]] = i;
		}
		f[i] = max_f, p[i] = max_j;
		v[i] = max_j >= 0 && v[max_j] > max_f? v[max_j] : max_f;
	}
	memset(t, 0, n * 4);
	for (i = 0; i < n; ++i) if (p[i] >= 0) t[p[i]] = 1;
	for (i = 0, b->n_u = 0; i < n; ++i)
		if (t[i] == 0 && v[i] >= 25) {
			for (j = i; j >= 0 && f[j] < v[j]; j = p[j]);
			if (j < 0) j = i;
			b->u[b->n_u++] = (uint64_t)f[j]<<32 | j;
		}
	radix_sort_64(b->u, b->u + b->n_u);
	memset(t, 0, n * 4);
	for (i = (int64_t)b->n_u - 1, b->regs.n = 0; i >= 0 && b->regs.n < 3; --i) {
		mm_reg1_t *r;
		int32_t first = (int32_t)b->u[i], last = first, cnt = 0;
		for (j = first; j >= 0 && t[j] == 0; j = p[j]) t[j] = 1, last = j, ++cnt;
		if (cnt == 0) continue;
		kv_pushp(mm_reg1_t, b->regs, &r);
		mm_extra_t *keep = r->id == 0x5eed? r->p : NULL;
		memset(r, 0, sizeof(mm_reg1_t));
		r->id = 0x5eed; r->p = keep;
		r->parent = 0; r->cnt = cnt; r->score = b->u[i]>>32; r->as = last;
		r->rev = a[last].x>>63;
		r->rs = (int32_t)a[last].x + 1 - (int32_t)(a[last].y>>32&0xff); r->qs = (int32_t)a[last].y + 1 - (int32_t)(a[last].y>>32&0xff);
		r->re = (int32_t)a[first].x + 1; r->qe = (int32_t)a[first].y + 1;
		++stat.chains;
	}
	if (b->regs.n > 1) b->regs.a[0].subsc = b->regs.a[1].score;
	stat.anchors += n;
}

/* ---- ksw.h ---- */
typedef struct { int32_t h, e; } eh_t;
#define MAX_Q 192
static int8_t mat[25], *qprof;
static eh_t *eh;
static uint8_t *zmat; static size_t m_z;

static void ksw_gen_qp(int qlen, const uint8_t *query, int m)
{
	int i, j, k;
	for (k = i = 0; k < m; ++k) {
		const int8_t *p = &mat[k * m];
		for (j = 0; j < qlen; ++j) qprof[i++] = p[query[j]];
	}
}

static NOINLINE int ksw_extend(int qlen, const uint8_t *query, int tlen, const uint8_t *target, int gapo, int gape, int w, int h0, int *_qle, int *_tle)
{
	int i, j, beg, end, max = h0, max_i = -1, max_j = -1, oe = gapo + gape;
	ksw_gen_qp(qlen, query, 5);
	eh[0].h = h0; eh[0].e = 0; eh[1].h = h0 > oe? h0 - oe : 0; eh[1].e = 0;
	for (j = 2; j <= qlen; ++j) { eh[j].h = eh[j-1].h > gape? eh[j-1].h - gape : 0; eh[j].e = 0; }
	beg = 0, end = qlen;
	for (i = 0; i < tlen; ++i) {
		int f = 0, h1, m = 0, mj = -1, t;
		int8_t *q = &qprof[target[i] * qlen];
		if (beg < i - w) beg = i - w;
		if (end > i + w + 1) end = i + w + 1;
		if (end > qlen) end = qlen;
		h1 = beg == 0? h0 - (gapo + gape * (i + 1)) : 0;
		if (h1 < 0) h1 = 0;
		for (j = beg; j < end; ++j) {
			eh_t *p = &eh[j];
			int h, M = p->h, e = p->e;
			p->h = h1;
			M = M? M + q[j] : 0;
			h = M > e? M : e;
			h = h > f? h : f;
			h1 = h;
			mj = m > h? mj : j;
			m = m > h? m : h;
			t = M - oe; t = t > 0? t : 0;
			e -= gape; e = e > t? e : t; p->e = e;
			f -= gape; f = f > t? f : t;
		}
		eh[end].h = h1; eh[end].e = 0;
		stat.cells += end - beg;
		if (m == 0) break;
		if (m > max) max = m, max_i = i, max_j = mj;
		else if (max - m > 100) break;
		for (j = beg; j < end && eh[j].h == 0 && eh[j].e == 0; ++j);
		beg = j;
		for (j = end; j >= beg && eh[j].h == 0 && eh[j].e == 0; --j);
		end = j + 2 < qlen? j + 2 : qlen;
	}
	*_qle = max_j + 1; *_tle = max_i + 1;
	return max;
}

#define MINUS_INF -0x40000000
static void push_cigar(mm_extra_t *p, int op, int len)
{
	if (p->n_cigar == 0 || op != (int)(p->cigar[p->n_cigar-1]&0xf)) {
		if (p->n_cigar == p->capacity) abort();
		p->cigar[p->n_cigar++] = len<<4 | op;
	} else p->cigar[p->n_cigar-1] += len<<4;
}

static NOINLINE int ksw_global(int qlen, const uint8_t *query, int tlen, const uint8_t *target, int gapo, int gape, int w, mm_extra_t *ex)
{
	int i, j, k, score, n_col = qlen < 2*w+1? qlen : 2*w+1, oe = gapo + gape, which = 0;
	uint32_t lo, hi, tmp;
	if ((size_t)n_col * tlen > m_z) { m_z = (size_t)n_col * tlen; kv_roundup32(m_z); zmat = HEAP_REALLOC(zmat, uint8_t, m_z); }
	ksw_gen_qp(qlen, query, 5);
	eh[0].h = 0; eh[0].e = MINUS_INF;
	for (j = 1; j <= qlen && j <= w; ++j) eh[j].h = -(gapo + gape * j), eh[j].e = MINUS_INF;
	for (; j <= qlen; ++j) eh[j].h = eh[j].e = MINUS_INF;
	for (i = 0; i < tlen; ++i) {
		int32_t f = MINUS_INF, h1, beg = i > w? i - w : 0, end = i + w + 1 < qlen? i + w + 1 : qlen, t;
		int8_t *q = &qprof[target[i] * qlen];
		uint8_t *zi = &zmat[(long)i * n_col];
		h1 = beg == 0? -(gapo + gape * (i + 1)) : MINUS_INF;
		for (j = beg; j < end; ++j) {
			eh_t *p = &eh[j];
			int32_t h, m = p->h, e = p->e;
			uint8_t d;
			p->h = h1;
			m += q[j];
			d = m >= e? 0 : 1;
			h = m >= e? m : e;
			d = h >= f? d : 2;
			h = h >= f? h : f;
			h1 = h;
			t = m - oe; e -= gape;
			d |= e > t? 1<<2 : 0;
			e = e > t? e : t; p->e = e;
			f -= gape;
			d |= f > t? 2<<4 : 0;
			f = f > t? f : t;
			zi[j - beg] = d;
		}
		eh[end].h = h1; eh[end].e = MINUS_INF;
		stat.cells += end - beg;
	}
	score = eh[qlen].h;
	i = tlen - 1; k = (i + w + 1 < qlen? i + w + 1 : qlen) - 1;
	while (i >= 0 && k >= 0) {
		which = zmat[(long)i * n_col + (k - (i > w? i - w : 0))]>>(which<<1) & 3;
		if (which == 0) push_cigar(ex, 0, 1), --i, --k;
		else if (which == 1) push_cigar(ex, 2, 1), --i;
		else push_cigar(ex, 1, 1), --k;
	}
	if (i >= 0) push_cigar(ex, 2, i + 1);
	if (k >= 0) push_cigar(ex, 1, k + 1);
	for (lo = 0, hi = ex->n_cigar - 1; lo < hi; ++lo, --hi)
		tmp = ex->cigar[lo], ex->cigar[lo] = ex->cigar[hi], ex->cigar[hi] = tmp;
	return score;
}

static int fetch_ref(mm_tbuf_t *b, int64_t beg, int64_t end, int rev)
{
	int64_t k; int l = 0;
	if (beg < 0) beg = 0;
	if (end > bns->l_pac) end = bns->l_pac;
	if (rev) for (k = end - 1; k >= beg; --k) b->target[l++] = _get_pac(bns->pac, k);
	else for (k = beg; k < end; ++k) b->target[l++] = _get_pac(bns->pac, k);
	return l;
}

static NOINLINE void mm_align1(mm_tbuf_t *b, const bseq1_t *s, mm_reg1_t *r)
{
	uint8_t *q = b->query[r->rev], *qr;
	int i, tlen, qle, tle, sc;
	static uint8_t *rbuf;
	if (rbuf == NULL) rbuf = HEAP_CALLOC(uint8_t, MAX_Q);
	sc = r->qe - r->qs;
	if (r->qs > 0) {
		for (i = 0, qr = rbuf; i < r->qs; ++i) qr[i] = q[r->qs - 1 - i];
		tlen = fetch_ref(b, r->rs - r->qs - 20, r->rs, 1);
		sc = ksw_extend(r->qs, qr, tlen, b->target, 6, 1, 9, sc, &qle, &tle);
		r->qs -= qle; r->rs -= tle;
	}
	if (r->qe < s->l_seq) {
		tlen = fetch_ref(b, r->re, r->re + (s->l_seq - r->qe) + 20, 0);
		sc = ksw_extend(s->l_seq - r->qe, q + r->qe, tlen, b->target, 6, 1, 9, sc, &qle, &tle);
		r->qe += qle; r->re += tle;
	}
	if (r->p == NULL) {
		r->p = HEAP_FLEXIBLE(mm_extra_t, sizeof(mm_extra_t) + CIGAR_CAP * 4);
		r->p->capacity = CIGAR_CAP;
	}
	r->p->n_cigar = 0; r->p->n_ambi = 0;
	tlen = fetch_ref(b, r->rs, r->re, 0);
	r->p->dp_score = ksw_global(r->qe - r->qs, q + r->qs, tlen, b->target, 6, 1, 4 + abs((r->qe - r->qs) - tlen), r->p);
	if (r->p->dp_max < r->p->dp_score) r->p->dp_max = r->p->dp_score;
	for (i = 0, r->mlen = r->blen = 0; i < (int)r->p->n_cigar; ++i) {
		int len = r->p->cigar[i]>>4;
		if ((r->p->cigar[i]&0xf) == 0) r->mlen += len;
		r->blen += len;
	}
	r->div = r->blen? 1.0f - (float)r->mlen / r->blen : 1.0f;
	r->mapq = r->subsc >= r->score? 0 : r->subsc == 0? 60 : 60 - 60 * r->subsc / r->score;
	r->sam_pri = r->parent == 0;
	r->rid = bns_pos2rid(bns, r->rs);
}

/* ---- sam.h ---- */
typedef struct { int32_t tid, pos; uint32_t bin:16, qual:8, l_qname:8; uint32_t flag:16, n_cigar:16; int32_t l_qseq, mtid, mpos, isize; } bam1_core_t;
typedef struct { bam1_core_t core; int l_data, m_data; uint8_t *data; } bam1_t;
typedef bam1_t *bam1_p;
#define bam1_strand(b) (((b)->core.flag&16) != 0)
#define bam1_qname(b) ((char*)((b)->data))
#define bam1_cigar(b) ((uint32_t*)((b)->data + (b)->core.l_qname))
#define bam1_seq(b) ((b)->data + (b)->core.n_cigar*4 + (b)->core.l_qname)
#define bam1_qual(b) (bam1_seq(b) + (((b)->core.l_qseq + 1)>>1))
#define bam1_seqi(s, i) ((s)[(i)>>1] >> 4*(1-((i)&1)) & 0xf)
#define bam1_lt(a, b) ((a)->core.pos < (b)->core.pos || ((a)->core.pos == (b)->core.pos && bam1_strand(a) < bam1_strand(b)) || ((a)->core.pos == (b)->core.pos && bam1_strand(a) == bam1_strand(b) && (a)->core.mpos < (b)->core.mpos))
KSORT_INIT(bam, bam1_p, bam1_lt)
KHASH_INIT(dup, uint64_t, bam1_p, 1, kh_int64_hash_func, kh_int64_hash_equal)
static kvec_t(bam1_p) recs;
static bam1_p *rec_pool;
static khash_t(dup) *dups;

static inline int bam_reg2bin(uint32_t beg, uint32_t end)
{
	--end;
	if (beg>>14 == end>>14) return 4681 + (beg>>14);
	if (beg>>17 == end>>17) return 585 + (beg>>17);
	return 0;
}

static NOINLINE void mm_write_bam(const bseq1_t *s, const mm_reg1_t *r, const uint8_t *q, bam1_t *b)
{
	uint32_t k, n = 0, *cigar;
	uint8_t *p;
	int i;
	b->core.tid = r->rid; b->core.pos = r->rs;
	b->core.bin = bam_reg2bin(r->rs, r->re); b->core.qual = r->mapq;
	b->core.l_qname = 12; b->core.flag = (r->rev? 16 : 0) | (r->sam_pri? 0 : 256);
	b->core.l_qseq = s->l_seq; b->core.mtid = -1; b->core.mpos = s->id; b->core.isize = r->re - r->rs;
	for (i = 0; i < 12; ++i) b->data[i] = s->name[i];
	cigar = bam1_cigar(b);
	if (r->qs) cigar[n++] = r->qs<<4 | 4;
	for (k = 0; k < r->p->n_cigar; ++k) cigar[n++] = r->p->cigar[k];
	if (r->qe < s->l_seq) cigar[n++] = (s->l_seq - r->qe)<<4 | 4;
	b->core.n_cigar = n;
	p = bam1_seq(b);
	for (i = 0; i < (s->l_seq + 1)>>1; ++i) p[i] = 0;
	for (i = 0; i < s->l_seq; ++i) p[i>>1] |= (1<<q[i]) << ((~i&1)<<2);
	p = bam1_qual(b);
	for (i = 0; i < s->l_seq; ++i) p[i] = r->rev? s->qual[s->l_seq - 1 - i] : s->qual[i];
	b->l_data = p + s->l_seq - b->data;
	if (b->l_data > b->m_data) abort();
	++stat.records;
}

static NOINLINE void bam_markdup(void)
{
	size_t i;
	int ret;
	kh_clear_dup(dups);
	for (i = 0; i < kv_size(recs); ++i) {
		bam1_t *b = kv_A(recs, i);
		uint64_t key = (uint64_t)b->core.pos<<1 | bam1_strand(b);
		khint_t k = kh_put_dup(dups, key, &ret);
		if (ret == 0) {
			bam1_t *old = kh_val(dups, k);
			++stat.dups;
			if (old->core.qual >= b->core.qual) { b->core.flag |= 1024; continue; }
			old->core.flag |= 1024;
		}
		kh_val(dups, k) = b;
		if ((key & 0x3f) == 5) kh_del_dup(dups, k);
	}
}

/* pileup */
typedef struct { int k, x, y, end; } cstate_t;
typedef struct __linkbuf_t { bam1_t *b; int32_t beg, end; cstate_t s; struct __linkbuf_t *next; } lbnode_t;
typedef struct { int cnt, n, max; lbnode_t **buf; } mempool_t;
typedef struct { bam1_t *b; int32_t qpos; int indel, level; uint32_t is_del:1, is_head:1, is_tail:1, is_refskip:1, aux:28; } bam_pileup1_t;
typedef struct __bam_plp_t { mempool_t *mp; lbnode_t *head, *tail; int32_t pos, max_plp; bam_pileup1_t *plp; int (*func)(void *data, bam1_t **b); void *data; uint64_t tot; } *bam_plp_t;
typedef struct { size_t next; } plp_src_t;

static lbnode_t *mp_alloc(mempool_t *mp)
{
	++mp->cnt;
	if (mp->n == 0) return HEAP_CALLOC(lbnode_t, 1);
	return mp->buf[--mp->n];
}

static void mp_free(mempool_t *mp, lbnode_t *p)
{
	--mp->cnt; p->next = NULL;
	if (mp->n == mp->max) { mp->max = mp->max? mp->max<<1 : 64; mp->buf = HEAP_REALLOC(mp->buf, lbnode_t *, mp->max); }
	mp->buf[mp->n++] = p;
}

static inline int resolve_cigar2(bam_pileup1_t *p, int32_t pos, cstate_t *s)
{
	bam1_t *b = p->b;
	uint32_t *cigar = bam1_cigar(b);
	for (; s->k < (int)b->core.n_cigar; ++s->k) { /* x: reference, y: query at the start of operation k */
		int op = cigar[s->k]&0xf, l = cigar[s->k]>>4;
		if (op == 4 || op == 1) s->y += l;
		else {
			if (pos < s->x + l) {
				p->is_del = op == 2; p->qpos = op == 2? s->y : s->y + (pos - s->x);
				p->indel = 0;
				if (s->x + l - 1 == pos && s->k + 1 < (int)b->core.n_cigar) {
					uint32_t next = cigar[s->k+1];
					if ((next&0xf) == 2) p->indel = -(int)(next>>4);
					else if ((next&0xf) == 1) p->indel = next>>4;
				}
				p->is_head = pos == b->core.pos; p->is_tail = pos == s->end - 1;
				return 1;
			}
			s->x += l;
			if (op == 0) s->y += l;
		}
	}
	return 0;
}

static int plp_read(void *data, bam1_t **b)
{
	plp_src_t *src = (plp_src_t*)data;
	while (src->next < kv_size(recs)) {
		*b = kv_A(recs, src->next++);
		if (!((*b)->core.flag & 256)) return 0;
	}
	return -1;
}

static NOINLINE const bam_pileup1_t *bam_plp_next(bam_plp_t iter, int *_n)
{
	lbnode_t *p, **q;
	int n = 0;
	++iter->pos;
	while (iter->tail == NULL || iter->tail->beg <= iter->pos) { /* one read ahead */
		bam1_t *b;
		if (iter->func(iter->data, &b) < 0) break;
		p = mp_alloc(iter->mp);
		p->b = b; p->beg = b->core.pos; p->end = p->beg + b->core.isize;
		p->s.k = p->s.y = 0; p->s.x = p->beg; p->s.end = p->end; p->next = NULL;
		if (iter->tail) iter->tail->next = p; else iter->head = p;
		iter->tail = p;
	}
	for (q = &iter->head, iter->tail = NULL; (p = *q) != NULL;) {
		if (p->end <= iter->pos) { *q = p->next; mp_free(iter->mp, p); continue; }
		if (p->beg <= iter->pos) {
			if (n == iter->max_plp) { iter->max_plp = iter->max_plp? iter->max_plp<<1 : 64; iter->plp = HEAP_REALLOC(iter->plp, bam_pileup1_t, iter->max_plp); }
			iter->plp[n].b = p->b;
			if (resolve_cigar2(iter->plp + n, iter->pos, &p->s)) ++n;
		}
		iter->tail = p; q = &p->next;
	}
	iter->tot += n;
	*_n = n;
	return iter->head? iter->plp : NULL;
}

static struct { uint32_t depth, base[4], del, ins; } col;
static NOINLINE int mpileup(bam_plp_t iter, int *n_called)
{
	const bam_pileup1_t *plp;
	int n, j, bad = 0;
	while ((plp = bam_plp_next(iter, &n)) != NULL) {
		int best = 0, ref = _get_pac(bns->pac, iter->pos);
		memset(&col, 0, sizeof col);
		for (j = 0; j < n; ++j) {
			const bam_pileup1_t *p = plp + j;
			int c;
			++col.depth;
			if (p->indel > 0) ++col.ins;
			if (p->is_del) { ++col.del; continue; }
			c = bam1_seqi(bam1_seq(p->b), p->qpos);
			if (bam1_qual(p->b)[p->qpos] < 5) continue;
			++col.base[c == 1? 0 : c == 2? 1 : c == 4? 2 : 3];
		}
		for (j = 1; j < 4; ++j) if (col.base[j] > col.base[best]) best = j;
		++stat.columns;
		if (col.depth < 4) continue;
		++*n_called;
		if (best != ref) ++bad;
	}
	return bad;
}

static void simulate(uint8_t *T, bseq1_t *s, int id)
{
	int len = 90 + tr_rand() % 80, pos = tr_rand() % (L_REF - 200), i, k, rev = tr_rand() & 1;
	uint8_t f[MAX_Q];
	s->id = id; s->true_pos = pos; s->true_rev = rev;
	s->name = HEAP_CALLOC(char, 16);
	s->seq = HEAP_CALLOC(uint8_t, MAX_Q); s->qual = HEAP_CALLOC(uint8_t, MAX_Q);
	snprintf(s->name, 12, "read%d", id);
	for (i = 0, k = pos; i < len; ++i) {
		int r = tr_rand() % 200;
		if (r == 0) { k += 1 + tr_rand() % 3; f[i] = T[k++]; }
		else if (r == 1) f[i] = tr_rand() & 3;
		else if (r < 6) f[i] = (T[k++] + 1) & 3;
		else f[i] = T[k++];
	}
	s->l_seq = len;
	for (i = 0; i < len; ++i) s->seq[i] = rev? 3 - f[len - 1 - i] : f[i], s->qual[i] = 2 + tr_rand() % 40;
}

int main(int argc, char **argv)
{
	int i, j, rounds = 0;
	uint64_t first[2] = { 0, 0 };
	uint8_t *T = malloc(2 * L_REF);
	struct __bam_plp_t plp;
	plp_src_t src;
	tr_init(argc, argv);
	TR_GLOBAL(bns, "bntseq_t *"); TR_GLOBAL(the_bwt, "bwt_t *"); TR_GLOBAL(mi, "mm_idx_t *"); TR_GLOBAL(reads, "bseq1_t *"); TR_GLOBAL(tb, "mm_tbuf_t *");
	TR_GLOBAL(ok, "bwtintv_t []"); TR_GLOBAL(smem_tmp, "bwtintv_v []"); TR_GLOBAL(sketch_buf, "mm128_t []");
	TR_GLOBAL(rsb_128x, "rsbucket_128x_t []"); TR_GLOBAL(rsb_64, "rsbucket_64_t []");
	TR_GLOBAL(mat, "int8_t []"); TR_GLOBAL(qprof, "int8_t *"); TR_GLOBAL(eh, "eh_t *"); TR_GLOBAL(zmat, "uint8_t *"); TR_GLOBAL(rec_pool, "bam1_p *");
	TR_GLOBAL(dups, "kh_dup_t *");
	TR_LOCAL(plp, "struct __bam_plp_t"); TR_LOCAL(src, "plp_src_t");
	TR_CHECK(bwt_t, cnt_table); TR_CHECK(mm_reg1_t, p); TR_CHECK(bam1_core_t, isize); TR_CHECK(struct __bam_plp_t, func);
	for (i = 0; i < L_REF; ++i) T[i] = tr_rand()>>20 & 3;
	for (i = 0; i < 12; ++i) { int a = tr_rand() % (L_REF - 300), b = tr_rand() % (L_REF - 300); memmove(T + a, T + b, 60 + i * 10); }
	for (i = 0; i < L_REF; ++i) T[L_REF + i] = 3 - T[L_REF - 1 - i];
	bns = HEAP_CALLOC(bntseq_t, 1);
	bns->l_pac = L_REF; bns->n_seqs = N_SEQS; bns->anns = HEAP_CALLOC(bntann1_t, N_SEQS); bns->pac = HEAP_CALLOC(uint8_t, L_REF / 4 + 1);
	for (i = 0; i < L_REF; ++i) _set_pac(bns->pac, i, T[i]);
	for (i = 0; i < N_SEQS; ++i) bns->anns[i].offset = i * (L_REF / N_SEQS), bns->anns[i].len = L_REF / N_SEQS;
	the_bwt = bwt_build(T, 2 * L_REF);
	mi = mm_idx_build(T, L_REF);
	reads = HEAP_CALLOC(bseq1_t, N_READS * 4);
	for (i = 0; i < N_READS * 4; ++i) simulate(T, &reads[i], i);
	tb = HEAP_CALLOC(mm_tbuf_t, 1);
	tb->query[0] = HEAP_CALLOC(uint8_t, MAX_Q); tb->query[1] = HEAP_CALLOC(uint8_t, MAX_Q); tb->target = HEAP_CALLOC(uint8_t, 1024);
	kv_resize(mm_reg1_t, tb->regs, 16);
	memset(tb->regs.a, 0, 16 * sizeof(mm_reg1_t));
	for (i = 0; i < 5; ++i) for (j = 0; j < 5; ++j) mat[i * 5 + j] = i == 4 || j == 4? -1 : i == j? 1 : -4;
	qprof = HEAP_CALLOC(int8_t, MAX_Q * 5); eh = HEAP_CALLOC(eh_t, MAX_Q + 2);
	dups = kh_init_dup();
	rec_pool = HEAP_CALLOC(bam1_p, N_READS * 4 * 3);
	for (i = 0; i < N_READS * 4 * 3; ++i) {
		rec_pool[i] = HEAP_CALLOC(bam1_t, 1);
		rec_pool[i]->m_data = 640; rec_pool[i]->data = HEAP_CALLOC(uint8_t, 640);
	}
	memset(&plp, 0, sizeof plp);
	plp.max_plp = 64; plp.plp = HEAP_CALLOC(bam_pileup1_t, 64);
	plp.mp = HEAP_CALLOC(mempool_t, 1); plp.func = plp_read; plp.data = &src;
	while (tr_more()) {
		uint64_t sum = 0;
		int right = 0, called = 0, bad;
		recs.n = 0;
		for (i = 0; i < N_READS * 4; ++i) {
			bseq1_t *s = &reads[i];
			size_t k;
			collect_seed_fm(the_bwt, s, tb);
			if ((rounds + i) & 1) collect_seed_hits(mi, s, tb);
			radix_sort_128x(tb->anchors.a, tb->anchors.a + tb->anchors.n);
			mm_chain_dp(tb);
			for (j = 0; j < s->l_seq; ++j) tb->query[0][j] = s->seq[j], tb->query[1][j] = 3 - s->seq[s->l_seq - 1 - j];
			for (k = 0; k < tb->regs.n; ++k) {
				mm_reg1_t *r = &tb->regs.a[k];
				bam1_t *b = rec_pool[kv_size(recs)];
				r->parent = k > 0;
				mm_align1(tb, s, r);
				mm_write_bam(s, r, tb->query[r->rev], b);
				kv_push(bam1_p, recs, b);
				if (k == 0 && (int)r->rev == s->true_rev && abs(r->rs - r->qs - s->true_pos) < 15) ++right;
				sum = sum * 31 + r->rs * 7 + r->p->dp_score;
			}
		}
		ks_introsort_bam(kv_size(recs), recs.a);
		bam_markdup();
		for (i = 1; i < (int)kv_size(recs); ++i) if (kv_A(recs, i)->core.pos < kv_A(recs, i - 1)->core.pos) abort();
		src.next = 0; plp.pos = -1; plp.head = plp.tail = NULL;
		bad = mpileup(&plp, &called);
		sum = sum * 31 + bad;
		if (right < N_READS * 4 * 8 / 10 || called < L_REF / 5 || bad > called / 30 || plp.mp->cnt) {
			fprintf(stderr, "right %d called %d bad %d left %d\n", right, called, bad, plp.mp->cnt);
			abort();
		}
		if (first[rounds & 1] == 0) first[rounds & 1] = sum;
		if (first[rounds & 1] != sum) abort();
		++rounds;
		if (getenv("SHOW") && rounds < 3) fprintf(stderr, "right %d of %d called %d bad %d records %zu\n", right, N_READS * 4, called, bad, kv_size(recs));
	}
	if (getenv("SHOW")) fprintf(stderr, "rounds %d smems %lu anchors %lu chains %lu cells %lu records %lu columns %lu dups %lu hits %lu of %lu\n", rounds, stat.smems, stat.anchors, stat.chains, stat.cells, stat.records, stat.columns, stat.dups, mi->n_hit, mi->n_lookup);
	tr_sink = stat.cells;
	return 0;
}
