/* flate.c -- a compressor of blocks: matches by hash chains with lazy evaluation, sequences beside
 * literals, three canonical Huffman codes for each block, a table driven decoder, CRC-32.
 *
 * Block: 4 bytes raw size, 4 bytes packed size, then one bit stream: code lengths, sequences, literals.
 */
#include "../heap.h"

#define local static

typedef unsigned char  Byte;
typedef unsigned short ush;
typedef unsigned int   uInt;
typedef uint64_t       bitbuf_t;

#define WINDOW_LOG   13
#define WINDOW_SIZE  (1u << WINDOW_LOG)
#define WINDOW_MASK  (WINDOW_SIZE - 1)
#define HASH_LOG     12
#define BLOCK_SIZE   4096u
#define MIN_MATCH    4u
#define MAX_MATCH    259u
#define MAX_BITS     11
#define TABLE_SIZE   (1u << MAX_BITS)
#define NLIT         256
#define NCODE        40          /* codes for lengths and distances: logarithm and one bit more */
#define OUT_SIZE     (BLOCK_SIZE * 2 + 512)

/* One symbol of an alphabet: counted first, coded later. */
typedef struct {
    union { uInt freq; uInt code; } fc;
    union { ush parent; ush len; } pl;
    ush order;
} ct_data;
#define Freq   fc.freq
#define Code   fc.code
#define Parent pl.parent
#define Len    pl.len

typedef struct {
    const char *name;
    ct_data *tree;
    int elems;
    int max_code;
    uInt total;
} tree_desc;

typedef struct { ush lit_run; ush length; uInt distance; } sequence;

/* Entry of a decoder's table. */
typedef struct { ush sym; Byte bits; Byte kind; } code_entry;

typedef struct { bitbuf_t hold; uInt count; Byte *next, *end; } bit_writer;
typedef struct { bitbuf_t hold; uInt count; const Byte *next, *end; } bit_reader;

struct deflate_state;
typedef uInt (*match_func)(struct deflate_state *, uInt cur, uInt limit, uInt *distance);

typedef struct {
    const char *name;
    ush good_length, max_chain;
    Byte lazy;
    match_func find;
} config;

typedef struct deflate_state {
    Byte *window;               /* of twice the window's size */
    uInt *head;                 /* position + 1 */
    ush *prev;
    uInt start, block_start;
    const config *how;
    sequence *seqs;
    uInt nseq;
    Byte *lits;
    uInt nlit;
    ct_data lit_tree[NLIT * 2];
    ct_data len_tree[NCODE * 2];
    ct_data dist_tree[NCODE * 2];
    tree_desc desc[3];
    ush bl_count[MAX_BITS + 2];
    ush heap[NLIT + 1];
    int heap_len;
    bit_writer out;
    struct { uInt searched, hits, lazy_kept, rebuilt; } stats;
} deflate_state;

typedef struct {
    Byte *window;
    uInt at;
    code_entry lit[TABLE_SIZE], len[TABLE_SIZE], dist[TABLE_SIZE];
    Byte lens[NLIT + 2 * NCODE];
    bit_reader in;
    sequence *seqs;
    uInt blocks;
} inflate_state;

typedef struct stream {
    struct stream *next;
    const char *label;
    Byte *text;                 /* what is to be packed */
    uInt size, pos;
    void *packer;
    void *unpacker;
    Byte *packed;
    uInt packed_size;
    uInt crc_in, crc_out;
    unsigned long total_in, total_out;
} stream;

local uInt crc_table[8][256];
local Byte log_table[1024];
local stream *streams;

/* ===== checks ===== */

local void make_crc_table(void) {
    for (uInt n = 0; n < 256; n++) {
        uInt c = n;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        crc_table[0][n] = c;
    }
    for (uInt n = 0; n < 256; n++)
        for (int k = 1; k < 8; k++) {
            uInt c = crc_table[k - 1][n];
            crc_table[k][n] = crc_table[0][c & 255] ^ c >> 8;
        }
}

local NOINLINE uInt crc32_update(uInt crc, const Byte *buf, uInt len) {
    crc = ~crc;
    while (len >= 8) {
        uInt lo, hi;
        memcpy(&lo, buf, 4);
        memcpy(&hi, buf + 4, 4);
        lo ^= crc;
        crc = crc_table[7][lo & 255] ^ crc_table[6][lo >> 8 & 255] ^ crc_table[5][lo >> 16 & 255] ^
              crc_table[4][lo >> 24] ^ crc_table[3][hi & 255] ^ crc_table[2][hi >> 8 & 255] ^
              crc_table[1][hi >> 16 & 255] ^ crc_table[0][hi >> 24];
        buf += 8;
        len -= 8;
    }
    while (len--) crc = crc_table[0][(crc ^ *buf++) & 255] ^ crc >> 8;
    return ~crc;
}

/* ===== bits ===== */

local inline void put_bits(bit_writer *w, uInt value, uInt n) {
    w->hold |= (bitbuf_t)value << w->count;
    w->count += n;
    while (w->count >= 8) {
        *w->next++ = (Byte)w->hold;
        w->hold >>= 8;
        w->count -= 8;
    }
}

#define NEED(r, n)                                                  \
    while ((r)->count < (n)) {                                      \
        if ((r)->next < (r)->end)                                   \
            (r)->hold |= (bitbuf_t)*(r)->next++ << (r)->count;      \
        (r)->count += 8;                                            \
    }
#define DROP(r, n) ((r)->hold >>= (n), (r)->count -= (n))

local inline uInt get_bits(bit_reader *r, uInt n) {
    NEED(r, n);
    uInt v = (uInt)(r->hold & ((1ull << n) - 1));
    DROP(r, n);
    return v;
}

/* ===== numbers: a code of two bits' precision, then the rest as it is ===== */

local inline uInt log_of(uInt v) {
    return v < 1024 ? log_table[v] : 10u + log_table[v >> 10];
}
local inline uInt num_code(uInt v) {
    uInt l;
    if (v < 4) return v;
    l = log_of(v);
    return 2 * l + (v >> (l - 1) & 1);
}
local inline uInt num_extra(uInt code) { return code < 4 ? 0 : code / 2 - 1; }
local inline uInt num_base(uInt code) { return code < 4 ? code : (2 + (code & 1)) << (code / 2 - 1); }

/* ===== matches ===== */

local inline uInt hash4(const Byte *p) {
    uInt v;
    memcpy(&v, p, 4);
    return v * 2654435761u >> (32 - HASH_LOG);
}

local inline void insert(deflate_state *s, uInt pos) {
    uInt h = hash4(s->window + pos), before = s->head[h];
    uInt gap = before ? pos + 1 - before : 0;
    s->prev[pos & WINDOW_MASK] = gap < WINDOW_SIZE ? (ush)gap : 0;
    s->head[h] = pos + 1;
}

local uInt common(const Byte *a, const Byte *b, uInt limit) {
    uInt n = 0;
    while (n < limit && a[n] == b[n]) n++;
    return n;
}

local uInt find_chain(deflate_state *s, uInt cur, uInt limit, uInt *distance) {
    uInt best = MIN_MATCH - 1, chain = s->how->max_chain, at = s->head[hash4(s->window + cur)];
    s->stats.searched++;
    while (at && chain--) {
        uInt gap, pos = at - 1;
        if (cur - pos >= WINDOW_SIZE) break;
        if (s->window[pos + best] == s->window[cur + best] && s->window[pos] == s->window[cur]) {
            uInt n = common(s->window + pos, s->window + cur, limit);
            if (n > best) {
                best = n;
                *distance = cur - pos;
                if (n >= s->how->good_length || n == limit) break;
            }
        }
        gap = s->prev[pos & WINDOW_MASK];
        at = gap && gap <= pos ? at - gap : 0;
    }
    return best >= MIN_MATCH ? best : 0;
}

local uInt find_first(deflate_state *s, uInt cur, uInt limit, uInt *distance) {
    uInt at = s->head[hash4(s->window + cur)], n;
    s->stats.searched++;
    if (!at || cur - (at - 1) >= WINDOW_SIZE) return 0;
    n = common(s->window + at - 1, s->window + cur, limit);
    *distance = cur - (at - 1);
    return n >= MIN_MATCH ? n : 0;
}

local const config configuration_table[3] = {
    { "fast",   8,  1,  0, find_first },
    { "normal", 32, 6,  0, find_chain },
    { "best",   64, 10, 1, find_chain },
};

local void tally(deflate_state *s, uInt run, uInt length, uInt distance) {
    sequence *q = &s->seqs[s->nseq++];
    q->lit_run = (ush)run;
    q->length = (ush)length;
    q->distance = distance;
    s->len_tree[num_code(run)].Freq++;
    s->len_tree[num_code(length)].Freq++;
    s->dist_tree[num_code(distance)].Freq++;
}

local NOINLINE void find_sequences(deflate_state *s, uInt size) {
    uInt cur = s->start, end = cur + size, run = 0;
    s->nseq = s->nlit = 0;
    while (cur < end) {
        uInt length = 0, distance = 0, limit = end - cur < MAX_MATCH ? end - cur : MAX_MATCH;
        if (limit >= MIN_MATCH + 1) {
            length = s->how->find(s, cur, limit, &distance);
            insert(s, cur);
            if (length && s->how->lazy && length < s->how->good_length && limit > MIN_MATCH + 1) {
                uInt other = 0, next = s->how->find(s, cur + 1, limit - 1, &other);
                if (next > length) {
                    s->stats.lazy_kept++;
                    length = 0;
                }
            }
        }
        if (!length) {
            Byte c = s->window[cur++];
            s->lits[s->nlit++] = c;
            s->lit_tree[c].Freq++;
            run++;
            continue;
        }
        s->stats.hits++;
        tally(s, run, length, distance);
        run = 0;
        for (uInt k = 1; k < length; k += 2)
            if (cur + k + MIN_MATCH < end) insert(s, cur + k);
        cur += length;
    }
    tally(s, run, 0, 0);
}

/* ===== codes ===== */

#define SMALLER(t, a, b) ((t)[a].Freq < (t)[b].Freq || ((t)[a].Freq == (t)[b].Freq && (a) < (b)))

local void sift_down(deflate_state *s, const ct_data *tree, int k) {
    ush v = s->heap[k];
    int j = 2 * k;
    while (j <= s->heap_len) {
        if (j < s->heap_len && SMALLER(tree, s->heap[j + 1], s->heap[j])) j++;
        if (SMALLER(tree, v, s->heap[j])) break;
        s->heap[k] = s->heap[j];
        k = j;
        j *= 2;
    }
    s->heap[k] = v;
}

local ush pop_least(deflate_state *s, const ct_data *tree) {
    ush least = s->heap[1];
    s->heap[1] = s->heap[s->heap_len--];
    sift_down(s, tree, 1);
    return least;
}

local NOINLINE void build_tree(deflate_state *s, tree_desc *desc) {
    ct_data *tree = desc->tree;
    uInt saved[NLIT], next_code[MAX_BITS + 2], code = 0;
    int n, node, deepest;
    for (n = 0; n < desc->elems; n++) saved[n] = tree[n].Freq;
again:
    s->heap_len = 0;
    desc->max_code = -1;
    for (n = 0; n < desc->elems; n++) {
        if (!tree[n].Freq) continue;
        s->heap[++s->heap_len] = (ush)n;
        desc->max_code = n;
    }
    while (s->heap_len < 2) {
        n = desc->max_code < 1 ? ++desc->max_code : 0;
        tree[n].Freq = saved[n] = 1;
        s->heap[++s->heap_len] = (ush)n;
    }
    for (n = s->heap_len / 2; n >= 1; n--) sift_down(s, tree, n);
    node = desc->elems;
    while (s->heap_len >= 2) {
        ush a = pop_least(s, tree), b = pop_least(s, tree);
        tree[node].Freq = tree[a].Freq + tree[b].Freq;
        tree[a].Parent = tree[b].Parent = (ush)node;
        s->heap[++s->heap_len] = (ush)node;
        for (n = s->heap_len; n > 1 && SMALLER(tree, s->heap[n], s->heap[n / 2]); n /= 2) {
            ush t = s->heap[n];
            s->heap[n] = s->heap[n / 2];
            s->heap[n / 2] = t;
        }
        node++;
    }
    tree[--node].Len = 0;
    memset(s->bl_count, 0, sizeof s->bl_count);
    for (deepest = 0, n = node - 1; n >= 0; n--) {
        if (n < desc->elems && !tree[n].Freq) continue;
        tree[n].Len = tree[tree[n].Parent].Len + 1;
        if (n < desc->elems && tree[n].Len > deepest) deepest = tree[n].Len;
    }
    if (deepest > MAX_BITS) {
        s->stats.rebuilt++;
        for (n = 0; n < desc->elems; n++)
            if (saved[n]) tree[n].Freq = saved[n] = saved[n] / 2 + 1;
            else tree[n].Freq = 0;
        goto again;
    }
    for (n = 0; n <= desc->max_code; n++)
        if (saved[n]) s->bl_count[tree[n].Len]++;
    for (n = 1; n <= MAX_BITS; n++) {
        code = (code + (n > 1 ? s->bl_count[n - 1] : 0u)) << 1;
        next_code[n] = code;
    }
    for (n = 0; n < desc->elems; n++) {
        uInt c, r = 0;
        if (n > desc->max_code || !saved[n]) {
            tree[n].Len = 0;
            continue;
        }
        c = next_code[tree[n].Len]++;
        for (int k = 0; k < tree[n].Len; k++) r |= (c >> k & 1) << (tree[n].Len - 1 - k);
        tree[n].Code = r;
    }
    desc->total++;
}

local void send_number(deflate_state *s, const ct_data *tree, uInt v) {
    uInt code = num_code(v);
    put_bits(&s->out, tree[code].Code, tree[code].Len);
    if (num_extra(code)) put_bits(&s->out, v - num_base(code), num_extra(code));
}

local NOINLINE void send_block(deflate_state *s) {
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < s->desc[d].elems; n++) {
            uInt len = s->desc[d].tree[n].Len;
            put_bits(&s->out, len != 0, 1);
            if (len) put_bits(&s->out, len, 4);
        }
    for (uInt i = 0; i < s->nseq; i++) {
        const sequence *q = &s->seqs[i];
        send_number(s, s->len_tree, q->lit_run);
        send_number(s, s->len_tree, q->length);
        send_number(s, s->dist_tree, q->distance);
    }
    for (uInt i = 0; i < s->nlit; i++) {
        const ct_data *t = &s->lit_tree[s->lits[i]];
        put_bits(&s->out, t->Code, t->Len);
    }
    put_bits(&s->out, 0, 7);
}

local void slide(deflate_state *s) {
    memmove(s->window, s->window + WINDOW_SIZE, WINDOW_SIZE);
    s->start -= WINDOW_SIZE;
    for (uInt h = 0; h < 1u << HASH_LOG; h++)
        s->head[h] = s->head[h] > WINDOW_SIZE ? s->head[h] - WINDOW_SIZE : 0;
}

local void put_le32(Byte *p, uInt v) {
    for (int k = 0; k < 4; k++) p[k] = (Byte)(v >> 8 * k);
}
local uInt get_le32(const Byte *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uInt)p[3] << 24; }

local uInt pack_block(void *opaque, const Byte *from, uInt size, Byte *to) {
    deflate_state *s = (deflate_state *)opaque;
    if (s->start + size > 2 * WINDOW_SIZE) slide(s);
    memcpy(s->window + s->start, from, size);
    s->out.next = to + 8;
    s->out.end = to + OUT_SIZE;
    s->out.hold = s->out.count = 0;
    for (int d = 0; d < 3; d++)
        for (int n = 0; n < s->desc[d].elems; n++) s->desc[d].tree[n].Freq = 0;
    find_sequences(s, size);
    for (int d = 0; d < 3; d++) build_tree(s, &s->desc[d]);
    send_block(s);
    s->start += size;
    put_le32(to, size);
    put_le32(to + 4, (uInt)(s->out.next - to));
    return (uInt)(s->out.next - to);
}

/* ===== the way back ===== */

local NOINLINE void inflate_table(const Byte *lens, uInt n, code_entry *table) {
    uInt count[MAX_BITS + 1] = { 0 }, next[MAX_BITS + 1], code = 0;
    for (uInt i = 0; i < n; i++) count[lens[i]]++;
    count[0] = 0;
    for (uInt b = 1; b <= MAX_BITS; b++) next[b] = code = (code + count[b - 1]) << 1;
    for (uInt i = 0; i < n; i++) {
        code_entry here = { (ush)i, lens[i], 0 };
        uInt c, r = 0;
        if (!lens[i]) continue;
        c = next[lens[i]]++;
        for (uInt k = 0; k < lens[i]; k++) r |= (c >> k & 1) << (lens[i] - 1 - k);
        for (uInt at = r; at < TABLE_SIZE; at += 1u << lens[i]) table[at] = here;
    }
}

local inline uInt decode(bit_reader *r, const code_entry *table) {
    code_entry here;
    NEED(r, MAX_BITS);
    here = table[r->hold & (TABLE_SIZE - 1)];
    DROP(r, here.bits);
    return here.sym;
}

local uInt decode_number(inflate_state *s, const code_entry *table) {
    uInt code = decode(&s->in, table), extra = num_extra(code);
    return num_base(code) + (extra ? get_bits(&s->in, extra) : 0);
}

local NOINLINE uInt read_sequences(inflate_state *s, uInt size) {
    uInt done = 0, n = 0;
    do {
        sequence *q = &s->seqs[n++];
        q->lit_run = (ush)decode_number(s, s->len);
        q->length = (ush)decode_number(s, s->len);
        q->distance = decode_number(s, s->dist);
        done += q->lit_run + q->length;
    } while (s->seqs[n - 1].length && done <= size);
    return n;
}

local NOINLINE void copy_out(inflate_state *s, uInt nseq) {
    uInt at = s->at;
    for (uInt i = 0; i < nseq; i++) {
        const sequence *q = &s->seqs[i];
        for (uInt k = 0; k < q->lit_run; k++) s->window[at++] = (Byte)decode(&s->in, s->lit);
        for (uInt k = 0; k < q->length; k++, at++) s->window[at] = s->window[at - q->distance];
    }
    s->at = at;
}

local const Byte *unpack_block(void *opaque, const Byte *from, uInt *size) {
    inflate_state *s = (inflate_state *)opaque;
    uInt start, alphabets[3] = { NLIT, NCODE, NCODE }, sum = 0;
    code_entry *const tables[3] = { s->lit, s->len, s->dist };
    *size = get_le32(from);
    s->in.next = from + 8;
    s->in.end = from + get_le32(from + 4);
    s->in.hold = s->in.count = 0;
    for (uInt i = 0; i < NLIT + 2 * NCODE; i++)
        s->lens[i] = get_bits(&s->in, 1) ? (Byte)get_bits(&s->in, 4) : 0;
    for (int d = 0; d < 3; sum += alphabets[d++]) inflate_table(s->lens + sum, alphabets[d], tables[d]);
    if (s->at + *size > 2 * WINDOW_SIZE) {
        memmove(s->window, s->window + WINDOW_SIZE, WINDOW_SIZE);
        s->at -= WINDOW_SIZE;
    }
    start = s->at;
    copy_out(s, read_sequences(s, *size));
    s->blocks++;
    return s->window + start;
}

/* ===== streams ===== */

local NOINLINE int turn(stream *z) {
    const Byte *back;
    uInt size = z->size - z->pos < BLOCK_SIZE ? z->size - z->pos : BLOCK_SIZE, got;
    z->packed_size = pack_block(z->packer, z->text + z->pos, size, z->packed);
    z->crc_in = crc32_update(z->crc_in, z->text + z->pos, size);
    back = unpack_block(z->unpacker, z->packed, &got);
    z->crc_out = crc32_update(z->crc_out, back, got);
    z->total_in += size;
    z->total_out += z->packed_size;
    z->pos = z->pos + size == z->size ? 0 : z->pos + size;
    return z->crc_in == z->crc_out;
}

local stream *open_stream(const char *label, int level, uInt size) {
    stream *z = HEAP_CALLOC(stream, 1);
    deflate_state *s = HEAP_CALLOC(deflate_state, 1);
    inflate_state *i = HEAP_CALLOC(inflate_state, 1);
    tree_desc lit = { "literals", s->lit_tree, NLIT, 0, 0 }, len = { "lengths", s->len_tree, NCODE, 0, 0 },
              dist = { "distances", s->dist_tree, NCODE, 0, 0 };
    s->window = HEAP_CALLOC(unsigned char, 2 * WINDOW_SIZE + 8);
    s->head = HEAP_CALLOC(unsigned int, 1u << HASH_LOG);
    s->prev = HEAP_CALLOC(unsigned short, WINDOW_SIZE);
    s->seqs = HEAP_CALLOC(sequence, BLOCK_SIZE);
    s->lits = HEAP_CALLOC(unsigned char, BLOCK_SIZE);
    s->how = &configuration_table[level];
    s->desc[0] = lit;
    s->desc[1] = len;
    s->desc[2] = dist;
    i->window = HEAP_CALLOC(unsigned char, 2 * WINDOW_SIZE + 8);
    i->seqs = HEAP_CALLOC(sequence, BLOCK_SIZE + 1);
    z->label = label;
    z->text = HEAP_CALLOC(unsigned char, size);
    z->size = size;
    z->packed = HEAP_CALLOC(unsigned char, OUT_SIZE);
    z->packer = s;
    z->unpacker = i;
    z->next = streams;
    return streams = z;
}

local void write_prose(stream *z) {
    static const char *const words[] = { "the ", "block ", "window ", "of ", "match", "es ", "length, ", "code ",
                                         "tree", "s. ", "and ", "a ", "literal", "distance ", "in ", "stream\n" };
    for (uInt n = 0; n < z->size;) {
        uint64_t r = tr_rand();
        const char *w = words[(r & 15) * (r >> 8 & 15) >> 4];
        if ((r >> 40 & 7) == 0) z->text[n++] = (Byte)('a' + (r >> 50) % 26);
        while (*w && n < z->size) z->text[n++] = (Byte)*w++;
    }
}

local void write_records(stream *z) {
    for (uInt n = 0; n < z->size; n++) {
        uInt field = n % 12;
        z->text[n] = field < 4 ? (Byte)(n / 12 >> 8 * field) : field < 8 ? (Byte)(field * 17) : (Byte)(tr_rand() >> 20 & 63);
    }
}

local void write_pixels(stream *z) {
    for (uInt n = 0; n < z->size; n++)
        z->text[n] = (Byte)((n % 200) / 4 + (n / 200 & 31) + ((tr_rand() >> 33 & 15) == 0 ? tr_rand() & 3 : 0));
}

int main(int argc, char **argv) {
    unsigned long failed = 0;
    tr_init(argc, argv);
    make_crc_table();
    for (uInt n = 2; n < 1024; n++) log_table[n] = log_table[n / 2] + 1;
    TR_GLOBAL(crc_table, "uInt []");
    TR_GLOBAL(log_table, "Byte []");
    TR_GLOBAL(configuration_table, "config []");
    TR_GLOBAL(streams, "stream *");
    TR_CHECK(deflate_state, stats);
    TR_CHECK(inflate_state, seqs);
    write_prose(open_stream("prose", 2, 60000));
    write_records(open_stream("records", 1, 48000));
    write_pixels(open_stream("pixels", 0, 40000));
    while (tr_more())
        for (stream *z = streams; z; z = z->next) failed += !turn(z);
    if (failed) abort();
    tr_sink = streams->total_out;
    return 0;
}
