/*
 * A video codec both ways: pictures in pooled, counted buffers, codecs found by name with private
 * contexts, options set through offsets, function tables for the pixel work, motion search over
 * int16_t [2] vectors, arithmetic coding with contexts for inter pictures and a VLC for intra ones,
 * a lookahead with small pictures, rate control, a loop filter. What is decoded must be what was coded.
 *
 * In the manner of FFmpeg and x264.
 */
#include "../heap.h"
#include <limits.h>

#define FFMIN(a, b) ((a) > (b) ? (b) : (a))
#define FFMAX(a, b) ((a) > (b) ? (a) : (b))
#define FFABS(a) ((a) >= 0 ? (a) : (-(a)))
#define FF_ARRAY_ELEMS(a) (sizeof(a) / sizeof((a)[0]))
#define av_assert0(c) do { if (!(c)) abort(); } while (0)
#define AVERROR_INVALIDDATA (-1)
#define WIDTH 176
#define HEIGHT 144
#define EDGE 32
static inline int av_clip(int a, int lo, int hi) { return a < lo ? lo : a > hi ? hi : a; }
static inline uint8_t av_clip_uint8(int a) { return a & ~0xFF ? (~a) >> 31 : a; }
static inline int mid_pred(int a, int b, int c) { return FFMAX(FFMIN(a, b), FFMIN(FFMAX(a, b), c)); }

/* ---------------------------------------------------------------- buffers */

typedef struct AVBuffer {
    uint8_t *data;
    size_t size;
    unsigned refcount;
    void (*free)(void *opaque, uint8_t *data);
    void *opaque;
    int flags;
} AVBuffer;
typedef struct AVBufferRef { AVBuffer *buffer; uint8_t *data; size_t size; } AVBufferRef;
typedef struct BufferPoolEntry { uint8_t *data; void *opaque; struct AVBufferPool *pool; struct BufferPoolEntry *next; AVBuffer buffer; } BufferPoolEntry;
typedef struct AVBufferPool { BufferPoolEntry *pool; unsigned refcount; size_t size; unsigned long allocated, reused; } AVBufferPool;

static void pool_release_buffer(void *opaque, uint8_t *data)
{
    BufferPoolEntry *buf = opaque;
    av_assert0(buf->data == data);
    buf->next = buf->pool->pool;
    buf->pool->pool = buf;
    buf->pool->refcount--;
}

static AVBufferRef *av_buffer_pool_get(AVBufferPool *pool)
{
    BufferPoolEntry *buf = pool->pool;
    AVBufferRef *ref = HEAP_MALLOC(AVBufferRef);
    if (buf) {
        pool->pool = buf->next;
        buf->next = NULL;
        pool->reused++;
    } else {
        buf = HEAP_CALLOC(BufferPoolEntry, 1);
        buf->data = heap_take_zeroed("uint8_t", 1, pool->size);
        buf->pool = pool;
        pool->allocated++;
    }
    buf->buffer = (AVBuffer){ .data = buf->data, .size = pool->size, .refcount = 1, .free = pool_release_buffer, .opaque = buf };
    pool->refcount++;
    *ref = (AVBufferRef){ &buf->buffer, buf->data, pool->size };
    return ref;
}

static AVBufferRef *av_buffer_ref(const AVBufferRef *buf)
{
    AVBufferRef *ret = HEAP_MALLOC(AVBufferRef);
    *ret = *buf;
    buf->buffer->refcount++;
    return ret;
}

static void av_buffer_unref(AVBufferRef **buf)
{
    if (!*buf) return;
    AVBuffer *b = (*buf)->buffer;
    HEAP_FREE(*buf);
    *buf = NULL;
    if (--b->refcount == 0) b->free(b->opaque, b->data);
}

/* ---------------------------------------------------------------- frames, packets, codecs */

enum AVPictureType { AV_PICTURE_TYPE_NONE, AV_PICTURE_TYPE_I, AV_PICTURE_TYPE_P };
enum AVFrameSideDataType { AV_FRAME_DATA_MOTION_VECTORS, AV_FRAME_DATA_STATS };
typedef struct AVMotionVector { int32_t source; uint8_t w, h; int16_t src_x, src_y, dst_x, dst_y; uint64_t flags; int32_t motion_x, motion_y; uint16_t motion_scale; } AVMotionVector;
typedef struct AVFrameSideData { enum AVFrameSideDataType type; void *data; size_t size; } AVFrameSideData;

typedef struct AVFrame {
    uint8_t *data[4];
    int linesize[4];
    int width, height, format, key_frame;
    enum AVPictureType pict_type;
    int64_t pts;
    int quality;
    AVBufferRef *buf[4];
    AVFrameSideData **side_data;
    int nb_side_data;
    void *opaque;
} AVFrame;

typedef struct AVPacket { AVBufferRef *buf; int64_t pts, dts; uint8_t *data; int size, flags; } AVPacket;

struct AVCodecContext;
typedef struct AVOption { const char *name; int offset; int type; int64_t default_val; double min, max; } AVOption;
typedef struct AVClass { const char *class_name; const AVOption *option; } AVClass;
typedef struct AVCodec {
    const char *name;
    const char *priv_type;
    int priv_data_size;
    const AVClass *priv_class;
    int (*init)(struct AVCodecContext *);
    int (*encode2)(struct AVCodecContext *, AVPacket *, const AVFrame *);
    int (*decode)(struct AVCodecContext *, AVFrame *, const AVPacket *);
} AVCodec;

typedef struct AVCodecContext {
    const AVClass *av_class;
    const AVCodec *codec;
    void *priv_data;
    int width, height, gop_size;
    int64_t bit_rate;
    struct { int num, den; } time_base;
    AVBufferPool *frame_pool, *packet_pool;
    int64_t frame_number;
    void (*draw_horiz_band)(struct AVCodecContext *s, const AVFrame *src, int y, int height);
    void *opaque;
} AVCodecContext;

/* ---------------------------------------------------------------- bits */

typedef struct PutBitContext { uint32_t bit_buf; int bit_left; uint8_t *buf, *buf_ptr, *buf_end; } PutBitContext;
typedef struct GetBitContext { const uint8_t *buffer, *buffer_end; int index, size_in_bits; } GetBitContext;
typedef int16_t VLC_TYPE;
typedef struct VLC { int bits; VLC_TYPE (*table)[2]; int table_size, table_allocated; } VLC;

static void init_put_bits(PutBitContext *s, uint8_t *buffer, int size)
{
    *s = (PutBitContext){ 0, 32, buffer, buffer, buffer + size };
}

static inline void put_bits(PutBitContext *s, int n, uint32_t value)
{
    if (n < s->bit_left) {
        s->bit_buf = (s->bit_buf << n) | value;
        s->bit_left -= n;
    } else {
        uint32_t w = s->bit_left == 32 ? 0 : s->bit_buf << s->bit_left;
        w |= value >> (n - s->bit_left);
        av_assert0(s->buf_end - s->buf_ptr >= 4);
        s->buf_ptr[0] = w >> 24; s->buf_ptr[1] = w >> 16; s->buf_ptr[2] = w >> 8; s->buf_ptr[3] = w;
        s->buf_ptr += 4;
        s->bit_left += 32 - n;
        s->bit_buf = value;
    }
}

static void flush_put_bits(PutBitContext *s)
{
    if (s->bit_left < 32) s->bit_buf <<= s->bit_left;
    while (s->bit_left < 32) {
        *s->buf_ptr++ = s->bit_buf >> 24;
        s->bit_buf <<= 8;
        s->bit_left += 8;
    }
    s->bit_left = 32;
    s->bit_buf = 0;
}

static inline uint32_t show_bits(const GetBitContext *s, int n)
{
    const uint8_t *p = s->buffer + (s->index >> 3);
    uint32_t v = (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    return v << (s->index & 7) >> (32 - n);
}
static inline uint32_t get_bits(GetBitContext *s, int n) { uint32_t v = show_bits(s, n); s->index += n; return v; }

static void set_ue_golomb(PutBitContext *pb, unsigned i)
{
    int e = 31 - __builtin_clz(i + 1);
    put_bits(pb, 2 * e + 1, i + 1);
}
static void set_se_golomb(PutBitContext *pb, int i) { set_ue_golomb(pb, i > 0 ? 2 * i - 1 : -2 * i); }
static unsigned get_ue_golomb(GetBitContext *gb)
{
    int e = 0;
    while (!get_bits(gb, 1)) e++;
    return ((1u << e) | (e ? get_bits(gb, e) : 0)) - 1;
}
static int get_se_golomb(GetBitContext *gb) { unsigned u = get_ue_golomb(gb); return u & 1 ? (int)(u + 1) / 2 : -(int)(u / 2); }

/* run/level pairs: symbol = min(run, 7) * 4 + min(level, 4) - 1, or end of block (32) or escape (33); lengths as a tree would have them */
static const uint8_t rl_len[34] = { 2, 4, 6, 7, 3, 6, 7, 9, 5, 7, 9, 10, 5, 8, 10, 10, 6, 9, 11, 11, 7, 10, 11, 11, 8, 11, 12, 12, 8, 11, 12, 12, 2, 6 };
static uint16_t rl_code[34];
static VLC rl_vlc;
#define RL_VLC_BITS 12

static void init_vlc(VLC *vlc, int bits, int nb, const uint8_t *lens, uint16_t *codes)
{
    uint32_t code = 0;
    vlc->bits = bits;
    vlc->table_size = vlc->table_allocated = 1 << bits;
    vlc->table = heap_take_zeroed("int16_t", sizeof(VLC_TYPE), sizeof(*vlc->table) << bits);
    for (int i = 0; i < vlc->table_size; i++) vlc->table[i][0] = -1;
    for (int len = 1; len <= bits; len++) {
        for (int s = 0; s < nb; s++) {
            if (lens[s] != len) continue;
            av_assert0(code + (1u << (bits - len)) <= 1u << bits);
            codes[s] = code >> (bits - len);
            for (uint32_t k = 0; k < 1u << (bits - len); k++) {
                vlc->table[code + k][0] = s;
                vlc->table[code + k][1] = len;
            }
            code += 1u << (bits - len);
        }
    }
}

static inline int get_vlc2(GetBitContext *s, VLC_TYPE (*table)[2], int bits)
{
    int index = show_bits(s, bits);
    s->index += table[index][1];
    return table[index][0];
}

/* ---------------------------------------------------------------- CABAC */

#define CABAC_CONTEXTS 460
typedef struct x264_cabac_t {
    int i_low, i_range, i_queue, i_bytes_outstanding;
    uint8_t *p_start, *p, *p_end;
    int f8_bits_encoded;
    uint8_t state[CABAC_CONTEXTS];
} x264_cabac_t;

typedef struct CABACContext { int low, range, bits_left; const uint8_t *bytestream, *bytestream_end; uint8_t state[CABAC_CONTEXTS]; } CABACContext;

static uint8_t cabac_range_lps[64][4];
static uint8_t cabac_transition[128][2];
static uint16_t cabac_entropy[128];
static const int8_t cabac_context_init[8][2] = { { 20, -15 }, { 2, 54 }, { 3, 74 }, { -28, 127 }, { -23, 104 }, { -6, 53 }, { -1, 54 }, { 7, 51 } };

static void cabac_init_tables(void)
{
    double p = 0.5;
    for (int s = 0; s < 64; s++, p *= 0.9492) {
        double bits = 0, q = 1 - p;
        for (int r = 0; r < 4; r++) cabac_range_lps[s][r] = FFMAX(6, (int)((256 + 64 * r + 32) * p));
        for (; q < 0.9999; q *= 1.0069556) bits += 0.01; /* log2 of 1/(1-p), by steps */
        cabac_entropy[2 * s] = bits * 256;
        double l = 0;
        for (q = p; q < 0.9999; q *= 1.0069556) l += 0.01;
        cabac_entropy[2 * s + 1] = l * 256;
        for (int mps = 0; mps < 2; mps++) {
            int lps_next = s * 27 / 32;
            cabac_transition[s * 2 + mps][mps] = FFMIN(s + 1, 62) * 2 + mps;
            cabac_transition[s * 2 + mps][!mps] = s == 0 ? 0 + !mps : lps_next * 2 + mps;
        }
    }
}

static NOINLINE void cabac_context_init_states(uint8_t *state, int qp)
{
    for (int i = 0; i < CABAC_CONTEXTS; i++) {
        const int8_t *mn = cabac_context_init[(i * 5 + i / 8) & 7];
        int pre = av_clip(((mn[0] * qp) >> 4) + mn[1], 1, 126);
        state[i] = pre <= 63 ? 2 * (63 - pre) : 2 * (pre - 64) + 1;
    }
}

static void cabac_encode_init(x264_cabac_t *cb, uint8_t *data, uint8_t *end)
{
    cb->i_low = 0;
    cb->i_range = 0x1FE;
    cb->i_queue = -9;
    cb->i_bytes_outstanding = 0;
    cb->p_start = cb->p = data;
    cb->p_end = end;
}

static inline void cabac_putbyte(x264_cabac_t *cb)
{
    if (cb->i_queue < 0) return;
    int out = cb->i_low >> (cb->i_queue + 10);
    cb->i_low &= (0x400 << cb->i_queue) - 1;
    cb->i_queue -= 8;
    if ((out & 0xff) == 0xff) {
        cb->i_bytes_outstanding++;
        return;
    }
    int carry = out >> 8, n = cb->i_bytes_outstanding;
    if (cb->p > cb->p_start) cb->p[-1] += carry;
    while (n-- > 0) *(cb->p++) = carry - 1;
    *(cb->p++) = out;
    cb->i_bytes_outstanding = 0;
    av_assert0(cb->p < cb->p_end);
}

static inline void cabac_encode_renorm(x264_cabac_t *cb)
{
    int shift = __builtin_clz(cb->i_range) - 23;
    if (shift <= 0) return;
    cb->i_range <<= shift;
    cb->i_low <<= shift;
    cb->i_queue += shift;
    cabac_putbyte(cb);
}

static NOINLINE void cabac_encode_decision(x264_cabac_t *cb, int ctx, int b)
{
    int state = cb->state[ctx];
    int lps = cabac_range_lps[state >> 1][(cb->i_range >> 6) & 3];
    cb->i_range -= lps;
    if (b != (state & 1)) {
        cb->i_low += cb->i_range;
        cb->i_range = lps;
    }
    cb->f8_bits_encoded += cabac_entropy[(state & ~1) + (b != (state & 1))];
    cb->state[ctx] = cabac_transition[state][b];
    cabac_encode_renorm(cb);
}

static void cabac_encode_bypass(x264_cabac_t *cb, int b)
{
    cb->i_low <<= 1;
    if (b) cb->i_low += cb->i_range;
    cb->i_queue += 1;
    cabac_putbyte(cb);
}

static void cabac_encode_flush(x264_cabac_t *cb)
{
    cb->i_low += cb->i_range - 2;
    cb->i_low |= 1;
    for (int i = 0; i < 32; i++) { /* all of low goes out, and what follows is not read */
        cb->i_low <<= 1;
        cb->i_queue++;
        cabac_putbyte(cb);
    }
    while (cb->i_bytes_outstanding-- > 0) *(cb->p++) = 0xff;
}

static inline int cabac_read_bit(CABACContext *c)
{
    if (c->bits_left == 0) {
        c->bits_left = 8;
        if (++c->bytestream > c->bytestream_end) abort();
    }
    return (*c->bytestream >> --c->bits_left) & 1;
}

static void ff_init_cabac_decoder(CABACContext *c, const uint8_t *buf, int size)
{
    c->bytestream = buf;
    c->bytestream_end = buf + size;
    c->bits_left = 8;
    c->range = 0x1FE;
    c->low = 0;
    for (int i = 0; i < 9; i++) c->low = c->low << 1 | cabac_read_bit(c);
}

static NOINLINE int get_cabac(CABACContext *c, uint8_t *state)
{
    int s = *state, bit = s & 1;
    int lps = cabac_range_lps[s >> 1][(c->range >> 6) & 3];
    c->range -= lps;
    if (c->low >= c->range) {
        c->low -= c->range;
        c->range = lps;
        bit ^= 1;
    }
    *state = cabac_transition[s][bit];
    while (c->range < 256) {
        c->range <<= 1;
        c->low = c->low << 1 | cabac_read_bit(c);
    }
    return bit;
}

static int get_cabac_bypass(CABACContext *c)
{
    c->low = c->low << 1 | cabac_read_bit(c);
    if (c->low < c->range) return 0;
    c->low -= c->range;
    return 1;
}

/* ---------------------------------------------------------------- pixel functions */

typedef int (*me_cmp_func)(const uint8_t *a, ptrdiff_t as, const uint8_t *b, ptrdiff_t bs, int h);
typedef void (*op_pixels_func)(uint8_t *block, const uint8_t *pixels, ptrdiff_t dst_stride, ptrdiff_t src_stride, int h);
typedef struct VDSPContext {
    me_cmp_func sad[2], satd[2], sse[2];
    op_pixels_func put_pixels_tab[2][4];
    void (*fdct4)(int16_t *block, const uint8_t *src, ptrdiff_t sstride, const uint8_t *pred, ptrdiff_t pstride);
    void (*idct4_add)(uint8_t *dst, ptrdiff_t stride, int16_t *block);
    void (*h_loop_filter)(uint8_t *pix, ptrdiff_t stride, int alpha, int beta);
    void (*v_loop_filter)(uint8_t *pix, ptrdiff_t stride, int alpha, int beta);
    void (*draw_edges)(uint8_t *buf, int wrap, int width, int height, int w);
} VDSPContext;

#define DEF_CMP(w) \
static NOINLINE int sad##w##_c(const uint8_t *a, ptrdiff_t as, const uint8_t *b, ptrdiff_t bs, int h) \
{ int s = 0; for (; h > 0; h--, a += as, b += bs) for (int x = 0; x < w; x++) s += FFABS(a[x] - b[x]); return s; } \
static NOINLINE int sse##w##_c(const uint8_t *a, ptrdiff_t as, const uint8_t *b, ptrdiff_t bs, int h) \
{ int s = 0; for (; h > 0; h--, a += as, b += bs) for (int x = 0; x < w; x++) s += (a[x] - b[x]) * (a[x] - b[x]); return s; } \
static NOINLINE int satd##w##_c(const uint8_t *a, ptrdiff_t as, const uint8_t *b, ptrdiff_t bs, int h) \
{ int s = 0; for (int y = 0; y < h; y += 4) for (int x = 0; x < w; x += 4) s += satd_4x4(a + y * as + x, as, b + y * bs + x, bs); return s; }

static inline int satd_4x4(const uint8_t *a, ptrdiff_t as, const uint8_t *b, ptrdiff_t bs)
{
    int t[4][4], sum = 0;
    for (int i = 0; i < 4; i++, a += as, b += bs) {
        int d0 = a[0] - b[0], d1 = a[1] - b[1], d2 = a[2] - b[2], d3 = a[3] - b[3];
        int s01 = d0 + d1, m01 = d0 - d1, s23 = d2 + d3, m23 = d2 - d3;
        t[i][0] = s01 + s23; t[i][1] = s01 - s23; t[i][2] = m01 - m23; t[i][3] = m01 + m23;
    }
    for (int i = 0; i < 4; i++) {
        int s01 = t[0][i] + t[1][i], m01 = t[0][i] - t[1][i], s23 = t[2][i] + t[3][i], m23 = t[2][i] - t[3][i];
        sum += FFABS(s01 + s23) + FFABS(s01 - s23) + FFABS(m01 - m23) + FFABS(m01 + m23);
    }
    return sum >> 1;
}
DEF_CMP(16)
DEF_CMP(8)

#define DEF_PUT(w) \
static NOINLINE void put_pixels##w##_c(uint8_t *d, const uint8_t *p, ptrdiff_t ds, ptrdiff_t ss, int h) \
{ for (; h > 0; h--, d += ds, p += ss) for (int x = 0; x < w; x++) d[x] = p[x]; } \
static NOINLINE void put_pixels##w##_x2_c(uint8_t *d, const uint8_t *p, ptrdiff_t ds, ptrdiff_t ss, int h) \
{ for (; h > 0; h--, d += ds, p += ss) for (int x = 0; x < w; x++) d[x] = (p[x] + p[x + 1] + 1) >> 1; } \
static NOINLINE void put_pixels##w##_y2_c(uint8_t *d, const uint8_t *p, ptrdiff_t ds, ptrdiff_t ss, int h) \
{ for (; h > 0; h--, d += ds, p += ss) for (int x = 0; x < w; x++) d[x] = (p[x] + p[x + ss] + 1) >> 1; } \
static NOINLINE void put_pixels##w##_xy2_c(uint8_t *d, const uint8_t *p, ptrdiff_t ds, ptrdiff_t ss, int h) \
{ for (; h > 0; h--, d += ds, p += ss) for (int x = 0; x < w; x++) d[x] = (p[x] + p[x + 1] + p[x + ss] + p[x + ss + 1] + 2) >> 2; }
DEF_PUT(16)
DEF_PUT(8)

static NOINLINE void fdct4_c(int16_t *block, const uint8_t *src, ptrdiff_t sstride, const uint8_t *pred, ptrdiff_t pstride)
{
    int16_t t[16];
    for (int i = 0; i < 4; i++, src += sstride, pred += pstride) {
        int a = src[0] - pred[0], b = src[1] - pred[1], c = src[2] - pred[2], d = src[3] - pred[3];
        int s03 = a + d, s12 = b + c, d03 = a - d, d12 = b - c;
        t[i] = s03 + s12; t[4 + i] = 2 * d03 + d12; t[8 + i] = s03 - s12; t[12 + i] = d03 - 2 * d12;
    }
    for (int i = 0; i < 4; i++) {
        int s03 = t[i * 4] + t[i * 4 + 3], s12 = t[i * 4 + 1] + t[i * 4 + 2], d03 = t[i * 4] - t[i * 4 + 3], d12 = t[i * 4 + 1] - t[i * 4 + 2];
        block[i * 4] = s03 + s12; block[i * 4 + 1] = 2 * d03 + d12; block[i * 4 + 2] = s03 - s12; block[i * 4 + 3] = d03 - 2 * d12;
    }
}

static NOINLINE void idct4_add_c(uint8_t *dst, ptrdiff_t stride, int16_t *block)
{
    block[0] += 1 << 5;
    for (int i = 0; i < 4; i++) {
        int z0 = block[i] + block[i + 8], z1 = block[i] - block[i + 8], z2 = (block[i + 4] >> 1) - block[i + 12], z3 = block[i + 4] + (block[i + 12] >> 1);
        block[i] = z0 + z3; block[i + 4] = z1 + z2; block[i + 8] = z1 - z2; block[i + 12] = z0 - z3;
    }
    for (int i = 0; i < 4; i++) {
        const int16_t *b = block + 4 * i;
        int z0 = b[0] + b[2], z1 = b[0] - b[2], z2 = (b[1] >> 1) - b[3], z3 = b[1] + (b[3] >> 1);
        dst[i + 0 * stride] = av_clip_uint8(dst[i + 0 * stride] + ((z0 + z3) >> 6));
        dst[i + 1 * stride] = av_clip_uint8(dst[i + 1 * stride] + ((z1 + z2) >> 6));
        dst[i + 2 * stride] = av_clip_uint8(dst[i + 2 * stride] + ((z1 - z2) >> 6));
        dst[i + 3 * stride] = av_clip_uint8(dst[i + 3 * stride] + ((z0 - z3) >> 6));
    }
    memset(block, 0, 16 * sizeof(*block));
}

static inline void loop_filter(uint8_t *pix, ptrdiff_t xstride, ptrdiff_t ystride, int alpha, int beta)
{
    for (int d = 0; d < 16; d++, pix += ystride) {
        int p0 = pix[-1 * xstride], p1 = pix[-2 * xstride], q0 = pix[0], q1 = pix[1 * xstride];
        if (FFABS(p0 - q0) < alpha && FFABS(p1 - p0) < beta && FFABS(q1 - q0) < beta) {
            pix[-xstride] = (2 * p1 + p0 + q1 + 2) >> 2;
            pix[0] = (2 * q1 + q0 + p1 + 2) >> 2;
        }
    }
}
static NOINLINE void h_loop_filter_c(uint8_t *pix, ptrdiff_t stride, int alpha, int beta) { loop_filter(pix, 1, stride, alpha, beta); }
static NOINLINE void v_loop_filter_c(uint8_t *pix, ptrdiff_t stride, int alpha, int beta) { loop_filter(pix, stride, 1, alpha, beta); }

static NOINLINE void draw_edges_c(uint8_t *buf, int wrap, int width, int height, int w)
{
    uint8_t *ptr = buf;
    for (int i = 0; i < height; i++, ptr += wrap)
        for (int x = 0; x < w; x++) {
            ptr[-1 - x] = ptr[0];
            ptr[width + x] = ptr[width - 1];
        }
    uint8_t *last = buf + (height - 1) * wrap - w;
    buf -= w;
    for (int i = 1; i <= w; i++)
        for (int x = 0; x < width + 2 * w; x++) {
            buf[x - i * wrap] = buf[x];
            last[x + i * wrap] = last[x];
        }
}

static void ff_vdsp_init(VDSPContext *c)
{
    c->sad[0] = sad16_c; c->sad[1] = sad8_c;
    c->satd[0] = satd16_c; c->satd[1] = satd8_c;
    c->sse[0] = sse16_c; c->sse[1] = sse8_c;
#define PUT(i, w) c->put_pixels_tab[i][0] = put_pixels##w##_c; c->put_pixels_tab[i][1] = put_pixels##w##_x2_c; c->put_pixels_tab[i][2] = put_pixels##w##_y2_c; c->put_pixels_tab[i][3] = put_pixels##w##_xy2_c
    PUT(0, 16);
    PUT(1, 8);
    c->fdct4 = fdct4_c;
    c->idct4_add = idct4_add_c;
    c->h_loop_filter = h_loop_filter_c;
    c->v_loop_filter = v_loop_filter_c;
    c->draw_edges = draw_edges_c;
}

/* ---------------------------------------------------------------- what coder and decoder share */

static const uint8_t zigzag_scan[16] = { 0 + 0 * 4, 1 + 0 * 4, 0 + 1 * 4, 0 + 2 * 4, 1 + 1 * 4, 2 + 0 * 4, 3 + 0 * 4, 2 + 1 * 4, 1 + 2 * 4, 0 + 3 * 4, 1 + 3 * 4, 2 + 2 * 4, 3 + 1 * 4, 3 + 2 * 4, 2 + 3 * 4, 3 + 3 * 4 };
static const uint8_t field_scan[16] = { 0, 4, 1, 8, 12, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 };
static const uint8_t block_xy[24][3] = { /* plane, x, y: in the order of coding */
    { 0, 0, 0 }, { 0, 4, 0 }, { 0, 0, 4 }, { 0, 4, 4 }, { 0, 8, 0 }, { 0, 12, 0 }, { 0, 8, 4 }, { 0, 12, 4 }, { 0, 0, 8 }, { 0, 4, 8 }, { 0, 0, 12 }, { 0, 4, 12 },
    { 0, 8, 8 }, { 0, 12, 8 }, { 0, 8, 12 }, { 0, 12, 12 }, { 1, 0, 0 }, { 1, 4, 0 }, { 1, 0, 4 }, { 1, 4, 4 }, { 2, 0, 0 }, { 2, 4, 0 }, { 2, 0, 4 }, { 2, 4, 4 } };
static const int quant_scale[6][3] = { { 13107, 5243, 8066 }, { 11916, 4660, 7490 }, { 10082, 4194, 6554 }, { 9362, 3647, 5825 }, { 8192, 3355, 5243 }, { 7282, 2893, 4559 } };
static const uint8_t dequant_scale[6][3] = { { 10, 16, 13 }, { 11, 18, 14 }, { 13, 20, 16 }, { 14, 23, 18 }, { 16, 25, 20 }, { 18, 29, 23 } };
static const uint8_t alpha_table[52] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90, 101, 113, 127, 144, 162, 182, 203, 226, 255, 255 };
static const int8_t diamond[4][2] = { { 0, -1 }, { -1, 0 }, { 1, 0 }, { 0, 1 } };
static const int8_t hexagon[6][2] = { { -2, 0 }, { -1, 2 }, { 1, 2 }, { 2, 0 }, { 1, -2 }, { -1, -2 } };
static const uint8_t lambda_tab[52] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 13, 14, 16, 18, 20, 23, 25, 29, 32, 36, 40, 45, 51, 57, 64, 72, 81, 91 };

enum { MB_SKIP, MB_INTER, MB_INTRA };
typedef struct MacroblockInfo { uint8_t type, cbp, intra_mode; int8_t qp; int cost; } MacroblockInfo;

typedef struct Picture {
    AVFrame *f;
    MacroblockInfo *mb;
    int16_t (*motion_val)[2];
    uint8_t (*non_zero_count)[24];
    int reference;
    int64_t bits;
} Picture;

typedef struct RateControlEntry { int pict_type; float qscale; int mv_bits, i_tex_bits, p_tex_bits, misc_bits; uint64_t expected_bits; int64_t mc_mb_var_sum; } RateControlEntry;
typedef struct Predictor { double coeff, count, decay; } Predictor;
typedef struct RateControlContext { int num_entries; RateControlEntry *entry; double buffer_index; Predictor pred[3]; double short_term_qsum, short_term_qcount, pass1_rc_eq_output_sum, pass1_wanted_bits; int last_qscale; } RateControlContext;

typedef struct LowresFrame {
    struct LowresFrame *next;
    int64_t pts;
    uint8_t *plane;
    int stride;
    int (*cost)[2];
    int16_t (*mvs)[2];
    float *qp_offset;
    uint16_t *propagate_cost;
    int intra_cost, inter_cost;
} LowresFrame;

typedef struct MPVContext { /* the shared part comes first in both private contexts */
    const AVClass *class;
    AVCodecContext *avctx;
    VDSPContext dsp;
    int mb_width, mb_height, mb_stride, mb_num, mb_x, mb_y, mb_xy;
    Picture *picture[2], *current_picture, *last_picture;
    int16_t (*dct_block)[16];
    uint8_t *pred[3];
    int pred_stride[3];
    const uint8_t *scan;
    int qscale, pict_type;
    int16_t mv[2], mv_pred[2];
    uint16_t dequant[6][16];
    struct { unsigned long skipped, inter, intra, coefficients; } stats;
} MPVContext;

typedef struct VEncContext {
    MPVContext m;
    int qmin, qmax, me_range, subpel, aq_strength_x10;
    PutBitContext pb;
    x264_cabac_t cabac;
    uint16_t quant[6][16];
    uint8_t *hpel[4];
    int hpel_stride;
    RateControlContext rc_context;
    LowresFrame *lookahead, *free_lowres;
    int lookahead_count;
    struct { int me_calls, sads; } me_stats;
} VEncContext;

typedef struct VDecContext {
    MPVContext m;
    GetBitContext gb;
    CABACContext cabac;
    int show_mvs;
} VDecContext;

static struct codec_totals { long frames, bytes, sse[3], key, skipped; double psnr; unsigned long sum; } totals;

static AVFrame *frame_alloc(AVCodecContext *avctx)
{
    AVFrame *f = HEAP_CALLOC(AVFrame, 1);
    f->width = avctx->width;
    f->height = avctx->height;
    for (int i = 0; i < 3; i++) {
        f->linesize[i] = (avctx->width >> !!i) + 2 * EDGE;
        f->buf[i] = av_buffer_pool_get(avctx->frame_pool);
        f->data[i] = f->buf[i]->data + EDGE * f->linesize[i] + EDGE;
    }
    return f;
}

static AVFrameSideData *frame_new_side_data(AVFrame *f, enum AVFrameSideDataType type, void *data, size_t size)
{
    AVFrameSideData *sd = HEAP_MALLOC(AVFrameSideData), **tab = heap_take("AVFrameSideData *", sizeof(void *), (f->nb_side_data + 1) * sizeof(void *));
    for (int i = 0; i < f->nb_side_data; i++) tab[i] = f->side_data[i];
    HEAP_FREE(f->side_data);
    f->side_data = tab;
    *sd = (AVFrameSideData){ type, data, size };
    return f->side_data[f->nb_side_data++] = sd;
}

static void frame_free(AVFrame **pf)
{
    AVFrame *f = *pf;
    if (!f) return;
    for (int i = 0; i < 4; i++) av_buffer_unref(&f->buf[i]);
    for (int i = 0; i < f->nb_side_data; i++) {
        HEAP_FREE(f->side_data[i]->data);
        HEAP_FREE(f->side_data[i]);
    }
    HEAP_FREE(f->side_data);
    HEAP_FREE(f);
    *pf = NULL;
}

static AVFrame *frame_clone(const AVFrame *src)
{
    AVFrame *f = HEAP_MALLOC(AVFrame);
    *f = *src;
    f->side_data = NULL;
    f->nb_side_data = 0;
    for (int i = 0; i < 4; i++) f->buf[i] = src->buf[i] ? av_buffer_ref(src->buf[i]) : NULL;
    return f;
}

static void mpv_common_init(MPVContext *s, AVCodecContext *avctx)
{
    s->avctx = avctx;
    s->mb_width = avctx->width / 16;
    s->mb_height = avctx->height / 16;
    s->mb_stride = s->mb_width + 1;
    s->mb_num = s->mb_stride * (s->mb_height + 1);
    s->scan = avctx->height % 32 ? zigzag_scan : field_scan;
    ff_vdsp_init(&s->dsp);
    for (int i = 0; i < 2; i++) {
        Picture *p = s->picture[i] = HEAP_CALLOC(Picture, 1);
        p->mb = HEAP_CALLOC(MacroblockInfo, s->mb_num);
        p->motion_val = heap_take_zeroed("int16_t", 2, s->mb_num * sizeof(*p->motion_val));
        p->non_zero_count = heap_take_zeroed("uint8_t", 1, s->mb_num * sizeof(*p->non_zero_count));
    }
    s->dct_block = heap_take_zeroed("int16_t", 2, 24 * sizeof(*s->dct_block));
    for (int i = 0; i < 3; i++) {
        s->pred_stride[i] = i ? 8 : 16;
        s->pred[i] = heap_take_zeroed("uint8_t", 1, 256);
    }
    for (int q = 0; q < 6; q++)
        for (int i = 0; i < 16; i++) s->dequant[q][i] = dequant_scale[q][(i & 1) + (i >> 2 & 1) == 2 ? 1 : (i & 1) + (i >> 2 & 1) ? 2 : 0];
}

static void mpv_frame_start(MPVContext *s, int pict_type, int qscale)
{
    Picture *t = s->last_picture ? s->current_picture : s->picture[0];
    s->current_picture = s->last_picture ? s->last_picture : s->picture[1];
    s->last_picture = t;
    Picture *p = s->current_picture;
    frame_free(&p->f);
    p->f = frame_alloc(s->avctx);
    p->f->pict_type = s->pict_type = pict_type;
    p->f->key_frame = pict_type == AV_PICTURE_TYPE_I;
    p->bits = 0;
    s->qscale = qscale;
    memset(p->non_zero_count, 0, s->mb_num * sizeof(*p->non_zero_count));
}

/* The median of the neighbours' vectors. */
static void mpv_pred_motion(MPVContext *s)
{
    int16_t (*mv)[2] = s->current_picture->motion_val;
    static const int16_t zero[2];
    const int16_t *a = s->mb_x ? mv[s->mb_xy - 1] : zero, *b = s->mb_y ? mv[s->mb_xy - s->mb_stride] : zero;
    const int16_t *c = s->mb_y && s->mb_x + 1 < s->mb_width ? mv[s->mb_xy - s->mb_stride + 1] : zero;
    for (int i = 0; i < 2; i++) s->mv_pred[i] = mid_pred(a[i], b[i], c[i]);
}

static NOINLINE void mpv_motion(MPVContext *s, int mx, int my)
{
    const AVFrame *ref = s->last_picture->f;
    for (int p = 0; p < 3; p++) {
        int shift = !!p, x = p ? mx / 2 : mx, y = p ? my / 2 : my, n = 16 >> shift;
        const uint8_t *src = ref->data[p] + ((s->mb_y << 4 >> shift) + (y >> 1)) * ref->linesize[p] + (s->mb_x << 4 >> shift) + (x >> 1);
        s->dsp.put_pixels_tab[shift][(x & 1) + 2 * (y & 1)](s->pred[p], src, s->pred_stride[p], ref->linesize[p], n);
    }
}

static NOINLINE void mpv_intra_pred(MPVContext *s, int mode)
{
    const AVFrame *f = s->current_picture->f;
    for (int p = 0; p < 3; p++) {
        int n = p ? 8 : 16, sum = 0, stride = f->linesize[p], ps = s->pred_stride[p];
        const uint8_t *src = f->data[p] + s->mb_y * n * stride + s->mb_x * n;
        uint8_t *dst = s->pred[p];
        switch (mode) {
        case 1:
            for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) dst[y * ps + x] = src[x - stride];
            break;
        case 2:
            for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) dst[y * ps + x] = src[y * stride - 1];
            break;
        default:
            for (int i = 0; i < n; i++) sum += (s->mb_y ? src[i - stride] : 128) + (s->mb_x ? src[i * stride - 1] : 128);
            sum = (sum + n) / (2 * n);
            for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) dst[y * ps + x] = sum;
        }
    }
}

static NOINLINE void mpv_reconstruct(MPVContext *s)
{
    const AVFrame *f = s->current_picture->f;
    uint8_t *nnz = s->current_picture->non_zero_count[s->mb_xy];
    const uint16_t *dq = s->dequant[s->qscale % 6];
    int q = s->qscale / 6;
    for (int p = 0; p < 3; p++) {
        int n = p ? 8 : 16;
        s->dsp.put_pixels_tab[!!p][0](f->data[p] + s->mb_y * n * f->linesize[p] + s->mb_x * n, s->pred[p], f->linesize[p], s->pred_stride[p], n);
    }
    for (int b = 0; b < 24; b++) {
        if (!nnz[b]) continue;
        int p = block_xy[b][0], n = p ? 8 : 16;
        int16_t *block = s->dct_block[b];
        for (int i = 0; i < 16; i++) block[i] = block[i] * (int)dq[i] << q;
        s->dsp.idct4_add(f->data[p] + (s->mb_y * n + block_xy[b][2]) * f->linesize[p] + s->mb_x * n + block_xy[b][1], f->linesize[p], block);
        s->stats.coefficients += nnz[b];
    }
}

static NOINLINE void mpv_frame_end(MPVContext *s)
{
    Picture *p = s->current_picture;
    AVFrame *f = p->f;
    for (int y = 0; y < s->mb_height; y++)
        for (int x = 0; x < s->mb_width; x++) {
            const MacroblockInfo *mb = &p->mb[y * s->mb_stride + x];
            if (mb->type == MB_SKIP) continue;
            int a = alpha_table[mb->qp], b = mb->qp / 3;
            uint8_t *pix = f->data[0] + y * 16 * f->linesize[0] + x * 16;
            if (x) s->dsp.h_loop_filter(pix, f->linesize[0], a, b);
            if (y) s->dsp.v_loop_filter(pix, f->linesize[0], a, b);
            if (mb->cbp) s->dsp.h_loop_filter(pix + 8, f->linesize[0], a / 2, b / 2);
        }
    for (int i = 0; i < 3; i++) s->dsp.draw_edges(f->data[i], f->linesize[i], f->width >> !!i, f->height >> !!i, i ? EDGE / 2 : EDGE);
}

/* ---------------------------------------------------------------- the coder */

#define OFFSET(x) offsetof(VEncContext, x)
static const AVOption venc_options[] = { { "qmin", OFFSET(qmin), 0, 12, 0, 51 }, { "qmax", OFFSET(qmax), 0, 44, 0, 51 }, { "me_range", OFFSET(me_range), 0, 12, 4, 15 }, { "subpel", OFFSET(subpel), 0, 1, 0, 1 }, { "aq-strength", OFFSET(aq_strength_x10), 0, 10, 0, 30 }, { NULL, 0, 0, 0, 0, 0 } };
static const AVOption vdec_options[] = { { "show_mvs", offsetof(VDecContext, show_mvs), 0, 1, 0, 1 }, { NULL, 0, 0, 0, 0, 0 } };
static const AVClass venc_class = { "venc", venc_options }, vdec_class = { "vdec", vdec_options };

static void av_opt_set_defaults(void *obj)
{
    for (const AVOption *o = (*(const AVClass **)obj)->option; o->name; o++) {
        av_assert0(o->default_val >= o->min && o->default_val <= o->max);
        *(int *)((uint8_t *)obj + o->offset) = o->default_val;
    }
}

static int venc_init(AVCodecContext *avctx)
{
    VEncContext *s = avctx->priv_data;
    mpv_common_init(&s->m, avctx);
    for (int q = 0; q < 6; q++)
        for (int i = 0; i < 16; i++) s->quant[q][i] = quant_scale[q][(i & 1) + (i >> 2 & 1) == 2 ? 1 : (i & 1) + (i >> 2 & 1) ? 2 : 0];
    s->rc_context.entry = HEAP_CALLOC(RateControlEntry, 64);
    for (int i = 0; i < 3; i++) s->rc_context.pred[i] = (Predictor){ 0.01, 1, 0.5 };
    s->rc_context.last_qscale = 26;
    for (int i = 0; i < 4; i++) s->hpel[i] = heap_take_zeroed("uint8_t", 1, 256);
    s->hpel_stride = 16;
    return 0;
}

static inline int mv_bits(int d) { return 2 * (32 - __builtin_clz(2 * FFABS(d) + 1)) - 1; }

static NOINLINE int motion_search(VEncContext *s, const AVFrame *cur)
{
    MPVContext *m = &s->m;
    const AVFrame *ref = m->last_picture->f;
    int stride = ref->linesize[0], lambda = lambda_tab[m->qscale];
    const uint8_t *src = cur->data[0] + m->mb_y * 16 * cur->linesize[0] + m->mb_x * 16;
    const uint8_t *base = ref->data[0] + m->mb_y * 16 * stride + m->mb_x * 16;
    int16_t (*last)[2] = m->last_picture->motion_val, cand[4][2] = { { 0, 0 }, { m->mv_pred[0], m->mv_pred[1] }, { last[m->mb_xy][0], last[m->mb_xy][1] }, { last[m->mb_xy + 1][0], last[m->mb_xy + 1][1] } };
    int best = INT_MAX, bx = 0, by = 0, range = s->me_range;
    s->me_stats.me_calls++;
#define CHECK(X, Y) do { int x_ = (X), y_ = (Y); \
        if (FFABS(x_) > range || FFABS(y_) > range) break; \
        int c_ = m->dsp.sad[0](src, cur->linesize[0], base + y_ * stride + x_, stride, 16) + lambda * (mv_bits(2 * x_ - m->mv_pred[0]) + mv_bits(2 * y_ - m->mv_pred[1])); \
        s->me_stats.sads++; \
        if (c_ < best) { best = c_; bx = x_; by = y_; } } while (0)
    for (int i = 0; i < 4; i++) CHECK(cand[i][0] >> 1, cand[i][1] >> 1);
    for (int iter = 0; iter < 6; iter++) {
        int ox = bx, oy = by;
        for (int i = 0; i < 6; i++) CHECK(ox + hexagon[i][0], oy + hexagon[i][1]);
        if (ox == bx && oy == by) break;
    }
    int ox = bx, oy = by;
    for (int i = 0; i < 4; i++) CHECK(ox + diamond[i][0], oy + diamond[i][1]);
    m->mv[0] = bx * 2;
    m->mv[1] = by * 2;
    if (!s->subpel) return best;
    int bcost = INT_MAX, hx = bx * 2, hy = by * 2;
    for (int i = -1; i < 4; i++) {
        int x = hx + (i < 0 ? 0 : diamond[i][0]), y = hy + (i < 0 ? 0 : diamond[i][1]);
        uint8_t *tmp = s->hpel[i & 3];
        m->dsp.put_pixels_tab[0][(x & 1) + 2 * (y & 1)](tmp, base + (y >> 1) * stride + (x >> 1), s->hpel_stride, stride, 16);
        int c = m->dsp.satd[0](src, cur->linesize[0], tmp, s->hpel_stride, 16) + lambda * (mv_bits(x - m->mv_pred[0]) + mv_bits(y - m->mv_pred[1]));
        if (c < bcost) {
            bcost = c;
            m->mv[0] = x;
            m->mv[1] = y;
        }
    }
    return bcost;
}

static NOINLINE int quant_macroblock(VEncContext *s, const AVFrame *cur, int intra)
{
    MPVContext *m = &s->m;
    uint8_t *nnz = m->current_picture->non_zero_count[m->mb_xy];
    const uint16_t *mf = s->quant[m->qscale % 6];
    int qbits = 15 + m->qscale / 6, bias = (1 << qbits) / (intra ? 3 : 6), cbp = 0;
    for (int b = 0; b < 24; b++) {
        int p = block_xy[b][0], n = p ? 8 : 16, count = 0;
        int16_t *block = m->dct_block[b];
        m->dsp.fdct4(block, cur->data[p] + (m->mb_y * n + block_xy[b][2]) * cur->linesize[p] + m->mb_x * n + block_xy[b][1], cur->linesize[p],
                     m->pred[p] + block_xy[b][2] * m->pred_stride[p] + block_xy[b][1], m->pred_stride[p]);
        for (int i = 0; i < 16; i++) {
            int c = block[i], q = (FFABS(c) * mf[i] + bias) >> qbits;
            block[i] = c < 0 ? -q : q;
            count += q != 0;
        }
        nnz[b] = count;
        if (count) cbp |= 1 << (b / 4);
    }
    return cbp;
}

static NOINLINE void cavlc_residual(VEncContext *s, const int16_t *block)
{
    int run = 0;
    for (int i = 0; i < 16; i++) {
        int level = block[s->m.scan[i]], a = FFABS(level);
        if (!level) {
            run++;
            continue;
        }
        if (run < 8 && a <= 4) {
            int sym = run * 4 + a - 1;
            put_bits(&s->pb, rl_len[sym], rl_code[sym]);
            put_bits(&s->pb, 1, level < 0);
        } else {
            put_bits(&s->pb, rl_len[33], rl_code[33]);
            put_bits(&s->pb, 4, run);
            set_se_golomb(&s->pb, level);
        }
        run = 0;
    }
    put_bits(&s->pb, rl_len[32], rl_code[32]);
}

#define CTX_SKIP 11
#define CTX_TYPE 14
#define CTX_CBP 20
#define CTX_MV 40
#define CTX_NNZ 60
#define CTX_SIG 105
#define CTX_LEVEL 227

static void cabac_ue(x264_cabac_t *cb, int ctx, unsigned v, int max)
{
    unsigned i = 0;
    for (; i < v && (int)i < max; i++) cabac_encode_decision(cb, ctx + FFMIN(i, 6), 1);
    if ((int)i < max) {
        cabac_encode_decision(cb, ctx + FFMIN(i, 6), 0);
        return;
    }
    v -= max;
    int k = 0;
    for (; v >= 1u << k; v -= 1u << k++) cabac_encode_bypass(cb, 1);
    cabac_encode_bypass(cb, 0);
    while (k--) cabac_encode_bypass(cb, v >> k & 1);
}

static unsigned decode_cabac_ue(CABACContext *c, int ctx, int max)
{
    unsigned v = 0;
    while ((int)v < max && get_cabac(c, &c->state[ctx + FFMIN(v, 6)])) v++;
    if ((int)v < max) return v;
    int k = 0;
    while (get_cabac_bypass(c)) v += 1u << k++;
    while (k--) v += (unsigned)get_cabac_bypass(c) << k;
    return v;
}

static NOINLINE void cabac_residual(VEncContext *s, const int16_t *block, int cat, int nnz)
{
    x264_cabac_t *cb = &s->cabac;
    cabac_encode_decision(cb, CTX_NNZ + cat, nnz != 0);
    if (!nnz) return;
    for (int i = 0; i < 16; i++) {
        int level = block[s->m.scan[i]];
        cabac_encode_decision(cb, CTX_SIG + cat * 16 + i, level != 0);
        if (!level) continue;
        cabac_ue(cb, CTX_LEVEL + cat * 8, FFABS(level) - 1, 9);
        cabac_encode_bypass(cb, level < 0);
    }
}

static NOINLINE void encode_mb(VEncContext *s, const AVFrame *cur)
{
    MPVContext *m = &s->m;
    MacroblockInfo *mb = &m->current_picture->mb[m->mb_xy];
    int16_t *mv = m->current_picture->motion_val[m->mb_xy];
    int intra = m->pict_type == AV_PICTURE_TYPE_I, cost = 0;
    const uint8_t *nnz = m->current_picture->non_zero_count[m->mb_xy];
    mb->qp = m->qscale;
    mb->intra_mode = 0;
    mpv_pred_motion(m);
    if (!intra) cost = motion_search(s, cur);
    if (intra || cost > 2600) {
        int best = INT_MAX, mode = 0;
        for (int i = 0; i < 3; i++) {
            if ((i == 1 && !m->mb_y) || (i == 2 && !m->mb_x)) continue;
            mpv_intra_pred(m, i);
            int c = m->dsp.satd[0](cur->data[0] + m->mb_y * 16 * cur->linesize[0] + m->mb_x * 16, cur->linesize[0], m->pred[0], 16, 16);
            if (c < best) {
                best = c;
                mode = i;
            }
        }
        if (intra || best < cost) {
            intra = 1;
            cost = best;
            mb->intra_mode = mode;
            mpv_intra_pred(m, mode);
        }
    }
    if (intra) {
        mv[0] = mv[1] = 0;
    } else {
        mv[0] = m->mv[0];
        mv[1] = m->mv[1];
        mpv_motion(m, mv[0], mv[1]);
    }
    mb->cost = cost;
    mb->type = intra ? MB_INTRA : MB_INTER;
    mb->cbp = quant_macroblock(s, cur, intra);
    if (m->pict_type == AV_PICTURE_TYPE_I) {
        m->stats.intra++;
        set_ue_golomb(&s->pb, mb->intra_mode);
        set_ue_golomb(&s->pb, mb->cbp);
        for (int b = 0; b < 24; b++) if (mb->cbp >> (b / 4) & 1) cavlc_residual(s, m->dct_block[b]);
    } else {
        x264_cabac_t *cb = &s->cabac;
        int skip = !intra && !mb->cbp && mv[0] == m->mv_pred[0] && mv[1] == m->mv_pred[1];
        int ctx = (m->mb_x && mb[-1].type == MB_SKIP) + (m->mb_y && mb[-m->mb_stride].type == MB_SKIP);
        cabac_encode_decision(cb, CTX_SKIP + ctx, skip);
        if (skip) {
            mb->type = MB_SKIP;
            m->stats.skipped++;
        } else {
            cabac_encode_decision(cb, CTX_TYPE, intra);
            if (intra) {
                m->stats.intra++;
                cabac_ue(cb, CTX_TYPE + 1, mb->intra_mode, 3);
            } else {
                m->stats.inter++;
                for (int i = 0; i < 2; i++) {
                    int d = mv[i] - m->mv_pred[i];
                    cabac_ue(cb, CTX_MV + 8 * i, FFABS(d), 8);
                    if (d) cabac_encode_bypass(cb, d < 0);
                }
            }
            for (int i = 0; i < 6; i++) cabac_encode_decision(cb, CTX_CBP + i + (m->mb_x ? 6 * (mb[-1].cbp >> i & 1) : 0), mb->cbp >> i & 1);
            for (int b = 0; b < 24; b++) if (mb->cbp >> (b / 4) & 1) cabac_residual(s, m->dct_block[b], block_xy[b][0], nnz[b]);
        }
    }
    mpv_reconstruct(m);
}

/* Half-size picture, costs of its blocks inside and from the picture before, offsets by activity. */
static NOINLINE LowresFrame *lookahead_push(VEncContext *s, const AVFrame *src)
{
    MPVContext *m = &s->m;
    LowresFrame *l = s->free_lowres, *prev = s->lookahead;
    if (l) {
        s->free_lowres = l->next;
    } else {
        l = HEAP_CALLOC(LowresFrame, 1);
        l->stride = src->width / 2 + 32;
        l->plane = (uint8_t *)heap_take_zeroed("uint8_t", 1, l->stride * (src->height / 2 + 32)) + 16 * l->stride + 16;
        l->cost = heap_take_zeroed("int", sizeof(int), m->mb_num * sizeof(*l->cost));
        l->mvs = heap_take_zeroed("int16_t", 2, m->mb_num * sizeof(*l->mvs));
        l->qp_offset = HEAP_CALLOC(float, m->mb_num);
        l->propagate_cost = HEAP_CALLOC(uint16_t, m->mb_num);
    }
    l->pts = src->pts;
    l->intra_cost = l->inter_cost = 0;
    const uint8_t *p = src->data[0];
    uint8_t *d = l->plane;
    for (int y = 0; y < src->height / 2; y++, p += 2 * src->linesize[0], d += l->stride)
        for (int x = 0; x < src->width / 2; x++) d[x] = (p[2 * x] + p[2 * x + 1] + p[2 * x + src->linesize[0]] + p[2 * x + 1 + src->linesize[0]] + 2) >> 2;
    m->dsp.draw_edges(l->plane, l->stride, src->width / 2, src->height / 2, 16);
    for (int y = 0; y < m->mb_height; y++)
        for (int x = 0; x < m->mb_width; x++) {
            int xy = y * m->mb_stride + x, sum = 0, sqr = 0;
            const uint8_t *b = l->plane + y * 8 * l->stride + x * 8;
            for (int j = 0; j < 8; j++) for (int i = 0; i < 8; i++) {
                sum += b[j * l->stride + i];
                sqr += b[j * l->stride + i] * b[j * l->stride + i];
            }
            int var = sqr - (sum * sum >> 6);
            l->qp_offset[xy] = (float)(s->aq_strength_x10 * (32 - __builtin_clz(var + 1) - 9)) * 0.05f;
            l->cost[xy][0] = m->dsp.satd[1](b, l->stride, b - 1, l->stride, 8) + 20;
            int best = l->cost[xy][0];
            l->mvs[xy][0] = l->mvs[xy][1] = 0;
            for (int i = -1; i < 6 && prev; i++) {
                int dx = i < 0 ? 0 : hexagon[i][0], dy = i < 0 ? 0 : hexagon[i][1];
                int c = m->dsp.satd[1](b, l->stride, prev->plane + (y * 8 + dy) * l->stride + x * 8 + dx, l->stride, 8);
                if (c < best) {
                    best = c;
                    l->mvs[xy][0] = dx;
                    l->mvs[xy][1] = dy;
                }
            }
            l->cost[xy][1] = best;
            l->intra_cost += l->cost[xy][0];
            l->inter_cost += best;
        }
    l->next = prev;
    s->lookahead = l;
    if (++s->lookahead_count > 6) {
        LowresFrame **tail = &s->lookahead;
        while ((*tail)->next) tail = &(*tail)->next;
        (*tail)->next = s->free_lowres;
        s->free_lowres = *tail;
        *tail = NULL;
        s->lookahead_count--;
    }
    return l;
}

/* What later pictures take from earlier ones is worth more bits. */
static NOINLINE void macroblock_tree(VEncContext *s)
{
    MPVContext *m = &s->m;
    for (LowresFrame *l = s->lookahead; l && l->next; l = l->next) {
        LowresFrame *ref = l->next;
        memset(ref->propagate_cost, 0, m->mb_num * sizeof(*ref->propagate_cost));
        for (int y = 0; y < m->mb_height; y++)
            for (int x = 0; x < m->mb_width; x++) {
                int xy = y * m->mb_stride + x, intra = l->cost[xy][0], inter = FFMIN(l->cost[xy][1], intra);
                int amount = (l->propagate_cost[xy] + intra) * (intra - inter) / FFMAX(intra, 1);
                int rx = av_clip(x + l->mvs[xy][0] / 8, 0, m->mb_width - 1), ry = av_clip(y + l->mvs[xy][1] / 8, 0, m->mb_height - 1);
                uint16_t *to = &ref->propagate_cost[ry * m->mb_stride + rx];
                *to = FFMIN(*to + amount, 65535);
            }
    }
}

static NOINLINE int rate_estimate_qscale(VEncContext *s, const LowresFrame *l, int pict_type)
{
    RateControlContext *rcc = &s->rc_context;
    RateControlEntry *rce = &rcc->entry[rcc->num_entries % 64];
    AVCodecContext *a = s->m.avctx;
    double wanted = (double)a->bit_rate * a->time_base.num / a->time_base.den;
    Predictor *pred = &rcc->pred[pict_type];
    int cost = pict_type == AV_PICTURE_TYPE_I ? l->intra_cost : l->inter_cost, q = rcc->last_qscale, total = 0;
    for (int i = 0; i < FFMIN(rcc->num_entries, 64); i++) total += rcc->entry[i].i_tex_bits + rcc->entry[i].p_tex_bits;
    double expected = pred->coeff * cost / pred->count;
    q += expected > wanted * 1.3 ? 1 : expected < wanted * 0.8 ? -1 : 0;
    if (rcc->buffer_index > wanted * 12) q++;
    if (rcc->buffer_index < -wanted * 12) q--;
    rce->pict_type = pict_type;
    rce->expected_bits = expected;
    rce->mc_mb_var_sum = cost;
    rce->misc_bits = total / 64;
    rcc->short_term_qsum = rcc->short_term_qsum * pred->decay + q;
    rcc->short_term_qcount = rcc->short_term_qcount * pred->decay + 1;
    q = rcc->short_term_qsum / rcc->short_term_qcount + 0.5;
    return rcc->last_qscale = av_clip(q, s->qmin, s->qmax);
}

static void rate_control_update(VEncContext *s, int bits)
{
    RateControlContext *rcc = &s->rc_context;
    RateControlEntry *rce = &rcc->entry[rcc->num_entries++ % 64];
    Predictor *p = &rcc->pred[rce->pict_type];
    AVCodecContext *a = s->m.avctx;
    rce->qscale = s->m.qscale;
    rce->i_tex_bits = rce->pict_type == AV_PICTURE_TYPE_I ? bits : 0;
    rce->p_tex_bits = bits - rce->i_tex_bits;
    p->count = p->count * p->decay + 1;
    p->coeff = p->coeff * p->decay + (double)bits / FFMAX(rce->mc_mb_var_sum, 1);
    rcc->buffer_index += bits - (double)a->bit_rate * a->time_base.num / a->time_base.den;
    rcc->buffer_index = FFMIN(FFMAX(rcc->buffer_index, -1e6), 1e6);
}

static int venc_encode(AVCodecContext *avctx, AVPacket *pkt, const AVFrame *frame)
{
    VEncContext *s = avctx->priv_data;
    MPVContext *m = &s->m;
    LowresFrame *l = lookahead_push(s, frame);
    int type = avctx->frame_number % avctx->gop_size == 0 ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_P;
    macroblock_tree(s);
    mpv_frame_start(m, type, rate_estimate_qscale(s, l, type));
    pkt->buf = av_buffer_pool_get(avctx->packet_pool);
    pkt->data = pkt->buf->data;
    pkt->pts = pkt->dts = frame->pts;
    pkt->flags = type == AV_PICTURE_TYPE_I;
    init_put_bits(&s->pb, pkt->data, pkt->buf->size);
    put_bits(&s->pb, 2, type);
    put_bits(&s->pb, 6, m->qscale);
    set_ue_golomb(&s->pb, frame->pts & 255);
    if (type == AV_PICTURE_TYPE_P) {
        flush_put_bits(&s->pb);
        cabac_context_init_states(s->cabac.state, m->qscale);
        cabac_encode_init(&s->cabac, s->pb.buf_ptr, s->pb.buf_end);
    }
    for (m->mb_y = 0; m->mb_y < m->mb_height; m->mb_y++)
        for (m->mb_x = 0; m->mb_x < m->mb_width; m->mb_x++) {
            m->mb_xy = m->mb_y * m->mb_stride + m->mb_x;
            encode_mb(s, frame);
        }
    if (type == AV_PICTURE_TYPE_P) {
        cabac_encode_flush(&s->cabac);
        pkt->size = s->cabac.p - pkt->data;
    } else {
        flush_put_bits(&s->pb);
        pkt->size = s->pb.buf_ptr - pkt->data;
    }
    for (int i = 0; i < 16; i++) pkt->data[pkt->size + i] = 0;
    mpv_frame_end(m);
    rate_control_update(s, pkt->size * 8);
    avctx->frame_number++;
    return 0;
}

/* ---------------------------------------------------------------- the decoder */

static int vdec_init(AVCodecContext *avctx)
{
    VDecContext *s = avctx->priv_data;
    mpv_common_init(&s->m, avctx);
    return 0;
}

static NOINLINE int decode_cavlc_block(VDecContext *s, int16_t *block)
{
    int i = 0, n = 0;
    for (;;) {
        int level, sym = get_vlc2(&s->gb, rl_vlc.table, RL_VLC_BITS);
        if (sym < 0) return AVERROR_INVALIDDATA;
        if (sym == 32) return n;
        if (sym == 33) {
            i += get_bits(&s->gb, 4);
            level = get_se_golomb(&s->gb);
        } else {
            i += sym >> 2;
            level = (sym & 3) + 1;
            if (get_bits(&s->gb, 1)) level = -level;
        }
        if (i > 15) return AVERROR_INVALIDDATA;
        block[s->m.scan[i++]] = level;
        n++;
    }
}

static NOINLINE int decode_cabac_block(VDecContext *s, int16_t *block, int cat)
{
    CABACContext *c = &s->cabac;
    int n = 0;
    if (!get_cabac(c, &c->state[CTX_NNZ + cat])) return 0;
    for (int i = 0; i < 16; i++) {
        if (!get_cabac(c, &c->state[CTX_SIG + cat * 16 + i])) continue;
        int level = decode_cabac_ue(c, CTX_LEVEL + cat * 8, 9) + 1;
        if (get_cabac_bypass(c)) level = -level;
        block[s->m.scan[i]] = level;
        n++;
    }
    return n;
}

static NOINLINE int decode_mb(VDecContext *s)
{
    MPVContext *m = &s->m;
    MacroblockInfo *mb = &m->current_picture->mb[m->mb_xy];
    int16_t *mv = m->current_picture->motion_val[m->mb_xy];
    uint8_t *nnz = m->current_picture->non_zero_count[m->mb_xy];
    mb->qp = m->qscale;
    mb->cbp = 0;
    mpv_pred_motion(m);
    if (m->pict_type == AV_PICTURE_TYPE_I) {
        mb->type = MB_INTRA;
        mb->intra_mode = get_ue_golomb(&s->gb);
        mb->cbp = get_ue_golomb(&s->gb);
        mv[0] = mv[1] = 0;
        mpv_intra_pred(m, mb->intra_mode);
        for (int b = 0; b < 24; b++)
            if (mb->cbp >> (b / 4) & 1) {
                int n = decode_cavlc_block(s, m->dct_block[b]);
                if (n < 0) return n;
                nnz[b] = n;
            }
    } else {
        CABACContext *c = &s->cabac;
        int ctx = (m->mb_x && mb[-1].type == MB_SKIP) + (m->mb_y && mb[-m->mb_stride].type == MB_SKIP);
        if (get_cabac(c, &c->state[CTX_SKIP + ctx])) {
            mb->type = MB_SKIP;
            mv[0] = m->mv_pred[0];
            mv[1] = m->mv_pred[1];
            mpv_motion(m, mv[0], mv[1]);
        } else {
            if (get_cabac(c, &c->state[CTX_TYPE])) {
                mb->type = MB_INTRA;
                mb->intra_mode = decode_cabac_ue(c, CTX_TYPE + 1, 3);
                mv[0] = mv[1] = 0;
                mpv_intra_pred(m, mb->intra_mode);
            } else {
                mb->type = MB_INTER;
                for (int i = 0; i < 2; i++) {
                    int d = decode_cabac_ue(c, CTX_MV + 8 * i, 8);
                    if (d && get_cabac_bypass(c)) d = -d;
                    mv[i] = m->mv_pred[i] + d;
                }
                mpv_motion(m, mv[0], mv[1]);
            }
            for (int i = 0; i < 6; i++) mb->cbp |= get_cabac(c, &c->state[CTX_CBP + i + (m->mb_x ? 6 * (mb[-1].cbp >> i & 1) : 0)]) << i;
            for (int b = 0; b < 24; b++) if (mb->cbp >> (b / 4) & 1) nnz[b] = decode_cabac_block(s, m->dct_block[b], block_xy[b][0]);
        }
    }
    mpv_reconstruct(m);
    return 0;
}

static int vdec_decode(AVCodecContext *avctx, AVFrame *out, const AVPacket *pkt)
{
    VDecContext *s = avctx->priv_data;
    MPVContext *m = &s->m;
    s->gb = (GetBitContext){ pkt->data, pkt->data + pkt->size, 0, pkt->size * 8 };
    int type = get_bits(&s->gb, 2), q = get_bits(&s->gb, 6);
    if (get_ue_golomb(&s->gb) != (pkt->pts & 255)) return AVERROR_INVALIDDATA;
    mpv_frame_start(m, type, q);
    m->current_picture->f->pts = pkt->pts;
    if (type == AV_PICTURE_TYPE_P) {
        int at = (s->gb.index + 7) >> 3;
        cabac_context_init_states(s->cabac.state, q);
        ff_init_cabac_decoder(&s->cabac, pkt->data + at, pkt->size - at + 16);
    }
    for (m->mb_y = 0; m->mb_y < m->mb_height; m->mb_y++)
        for (m->mb_x = 0; m->mb_x < m->mb_width; m->mb_x++) {
            m->mb_xy = m->mb_y * m->mb_stride + m->mb_x;
            if (decode_mb(s) < 0) return AVERROR_INVALIDDATA;
        }
    mpv_frame_end(m);
    AVFrame *ref = frame_clone(m->current_picture->f);
    *out = *ref;
    HEAP_FREE(ref);
    if (s->show_mvs && type == AV_PICTURE_TYPE_P) {
        AVMotionVector *mvs = HEAP_CALLOC(AVMotionVector, m->mb_num), *mv = mvs;
        for (int y = 0; y < m->mb_height; y++)
            for (int x = 0; x < m->mb_width; x++, mv++) {
                const int16_t *v = m->current_picture->motion_val[y * m->mb_stride + x];
                mv->w = mv->h = 16;
                mv->dst_x = x * 16 + 8;
                mv->dst_y = y * 16 + 8;
                mv->motion_x = v[0];
                mv->motion_y = v[1];
                mv->motion_scale = 2;
                mv->src_x = mv->dst_x + v[0] / 2;
                mv->src_y = mv->dst_y + v[1] / 2;
                mv->source = -1;
            }
        frame_new_side_data(out, AV_FRAME_DATA_MOTION_VECTORS, mvs, (mv - mvs) * sizeof(*mvs));
    }
    frame_new_side_data(out, AV_FRAME_DATA_STATS, memset(HEAP_MALLOC(struct codec_totals), 0, sizeof(struct codec_totals)), sizeof(struct codec_totals));
    for (int y = 0; y < avctx->height && avctx->draw_horiz_band; y += 48) avctx->draw_horiz_band(avctx, out, y, 48);
    avctx->frame_number++;
    return pkt->size;
}

static const AVCodec codecs[] = {
    { "venc", "VEncContext", sizeof(VEncContext), &venc_class, venc_init, venc_encode, NULL },
    { "vdec", "VDecContext", sizeof(VDecContext), &vdec_class, vdec_init, NULL, vdec_decode },
};

/* ---------------------------------------------------------------- pictures that move, and what came of them */

typedef struct Sprite { int x, y, w, h, vx, vy; uint8_t yuv[3], texture; } Sprite;
static Sprite sprites[12];
static uint8_t background[64][64];

static NOINLINE void generate_frame(AVFrame *f, int n)
{
    for (int y = 0; y < f->height; y++) {
        uint8_t *d = f->data[0] + y * f->linesize[0];
        for (int x = 0; x < f->width; x++) d[x] = background[(y + n / 3) & 63][(x + n / 2) & 63];
    }
    for (int p = 1; p < 3; p++)
        for (int y = 0; y < f->height / 2; y++)
            for (int x = 0; x < f->width / 2; x++) f->data[p][y * f->linesize[p] + x] = 128 + (p == 1 ? x : y) / 4;
    for (Sprite *s = sprites; s < sprites + FF_ARRAY_ELEMS(sprites); s++) {
        s->x += s->vx;
        s->y += s->vy;
        if (s->x < 0 || s->x + s->w >= f->width) { s->vx = -s->vx; s->x += 2 * s->vx; }
        if (s->y < 0 || s->y + s->h >= f->height) { s->vy = -s->vy; s->y += 2 * s->vy; }
        for (int y = s->y; y < s->y + s->h; y++)
            for (int x = s->x; x < s->x + s->w; x++) {
                f->data[0][y * f->linesize[0] + x] = s->yuv[0] + (((x - s->x) * s->texture ^ (y - s->y) * 3) & 31);
                if (!((x | y) & 1)) {
                    f->data[1][(y >> 1) * f->linesize[1] + (x >> 1)] = s->yuv[1];
                    f->data[2][(y >> 1) * f->linesize[2] + (x >> 1)] = s->yuv[2];
                }
            }
    }
}

typedef struct BandContext { unsigned long adler; const AVFrame *reference; long bands, sse[3]; } BandContext;

static NOINLINE void check_band(AVCodecContext *avctx, const AVFrame *src, int y, int height)
{
    BandContext *band = avctx->opaque;
    const AVFrame *ref = band->reference;
    uint32_t a = 1, b = 0;
    band->bands++;
    for (int p = 0; p < 3; p++) {
        int shift = !!p;
        for (int j = y >> shift; j < (y + height) >> shift; j++) {
            const uint8_t *s = src->data[p] + j * src->linesize[p], *r = ref->data[p] + j * ref->linesize[p];
            for (int x = 0; x < src->width >> shift; x++) {
                if (s[x] != r[x]) abort(); /* not what the coder saw */
                a += s[x];
                b += a;
            }
        }
    }
    band->adler = band->adler * 31 + (a % 65521 | b % 65521 << 16);
}

static NOINLINE void frame_psnr(const AVFrame *a, const AVFrame *b, const VDSPContext *dsp, long *sse)
{
    for (int p = 0; p < 3; p++) {
        sse[p] = 0;
        for (int y = 0; y < a->height >> !!p; y += 8)
            for (int x = 0; x < a->width >> !!p; x += 8)
                sse[p] += dsp->sse[1](a->data[p] + y * a->linesize[p] + x, a->linesize[p], b->data[p] + y * b->linesize[p] + x, b->linesize[p], 8);
    }
}

static AVCodecContext *codec_open(const char *name)
{
    for (size_t i = 0; i < FF_ARRAY_ELEMS(codecs); i++) {
        const AVCodec *c = &codecs[i];
        if (strcmp(c->name, name)) continue;
        AVCodecContext *a = HEAP_CALLOC(AVCodecContext, 1);
        a->codec = c;
        a->width = WIDTH;
        a->height = HEIGHT;
        a->gop_size = 12;
        a->bit_rate = 300000;
        a->time_base.num = 1;
        a->time_base.den = 25;
        a->frame_pool = HEAP_CALLOC(AVBufferPool, 1);
        a->frame_pool->size = (WIDTH + 2 * EDGE) * (HEIGHT + 2 * EDGE);
        a->packet_pool = HEAP_CALLOC(AVBufferPool, 1);
        a->packet_pool->size = 1 << 16;
        a->priv_data = heap_take_zeroed(c->priv_type, c->priv_data_size, c->priv_data_size);
        *(const AVClass **)a->priv_data = c->priv_class;
        av_opt_set_defaults(a->priv_data);
        av_assert0(c->init(a) == 0);
        return a;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    tr_init(argc, argv);
    TR_GLOBAL(rl_len, "uint8_t []"); TR_GLOBAL(rl_code, "uint16_t []"); TR_GLOBAL(rl_vlc, "VLC");
    TR_GLOBAL(cabac_range_lps, "uint8_t []"); TR_GLOBAL(cabac_transition, "uint8_t []"); TR_GLOBAL(cabac_entropy, "uint16_t []"); TR_GLOBAL(cabac_context_init, "int8_t []");
    TR_GLOBAL(zigzag_scan, "uint8_t []"); TR_GLOBAL(field_scan, "uint8_t []"); TR_GLOBAL(block_xy, "uint8_t []"); TR_GLOBAL(quant_scale, "int []"); TR_GLOBAL(dequant_scale, "uint8_t []");
    TR_GLOBAL(alpha_table, "uint8_t []"); TR_GLOBAL(lambda_tab, "uint8_t []"); TR_GLOBAL(diamond, "int8_t []"); TR_GLOBAL(hexagon, "int8_t []");
    TR_GLOBAL(venc_options, "AVOption []"); TR_GLOBAL(codecs, "AVCodec []"); TR_GLOBAL(totals, "struct codec_totals"); TR_GLOBAL(sprites, "Sprite []"); TR_GLOBAL(background, "uint8_t []");
    TR_CHECK(AVFrame, buf); TR_CHECK(MPVContext, stats); TR_CHECK(VEncContext, rc_context); TR_CHECK(VDecContext, cabac); TR_CHECK(AVMotionVector, motion_scale);
    init_vlc(&rl_vlc, RL_VLC_BITS, 34, rl_len, rl_code);
    cabac_init_tables();
    for (int y = 0; y < 64; y++) for (int x = 0; x < 64; x++) background[y][x] = 60 + (x * 2 ^ y) % 50 + (tr_rand() >> 20) % 6;
    for (size_t i = 0; i < FF_ARRAY_ELEMS(sprites); i++) {
        uint64_t r = tr_rand() >> 7;
        sprites[i] = (Sprite){ r % 90 + 5, (r >> 8) % 70 + 5, 16 + (r >> 16) % 40, 16 + (r >> 24) % 30, (int)(r >> 32) % 4 + 1, (int)(r >> 36) % 3 + 1, { 40 + (r >> 40) % 160, 80 + (r >> 48) % 90, 90 + (r >> 44) % 80 }, i };
    }
    AVCodecContext *enc = codec_open("venc"), *dec = codec_open("vdec");
    BandContext *band = HEAP_CALLOC(BandContext, 1);
    VEncContext *vs = enc->priv_data;
    dec->draw_horiz_band = check_band;
    dec->opaque = band;
    AVFrame *in = frame_alloc(enc), *out = HEAP_CALLOC(AVFrame, 1);
    AVPacket *pkt = HEAP_CALLOC(AVPacket, 1);
    for (int n = 0; tr_more(); n++) {
        generate_frame(in, n);
        in->pts = n;
        av_assert0(enc->codec->encode2(enc, pkt, in) == 0);
        band->reference = vs->m.current_picture->f;
        av_assert0(dec->codec->decode(dec, out, pkt) == pkt->size);
        frame_psnr(in, out, &vs->m.dsp, band->sse);
        struct codec_totals *st = out->side_data[out->nb_side_data - 1]->data;
        totals.frames++;
        totals.bytes += pkt->size;
        totals.key += pkt->flags;
        for (int p = 0; p < 3; p++) totals.sse[p] += st->sse[p] = band->sse[p];
        if (out->nb_side_data > 1) {
            const AVMotionVector *mv = out->side_data[0]->data;
            for (size_t i = 0; i < out->side_data[0]->size / sizeof(*mv); i++) totals.sum += FFABS(mv[i].motion_x) + FFABS(mv[i].motion_y) + (mv[i].src_x > mv[i].dst_x);
        }
        av_buffer_unref(&pkt->buf);
        AVFrame *done = HEAP_MALLOC(AVFrame);
        *done = *out;
        frame_free(&done);
    }
    if (getenv("SHOW"))
        fprintf(stderr, "frames %ld key %ld bytes %ld mse %.1f %.1f skipped %lu inter %lu intra %lu coefs %lu sads %d q %d mv %lu adler %lx pool %lu/%lu\n", totals.frames, totals.key, totals.bytes, (double)totals.sse[0] / totals.frames / (WIDTH * HEIGHT), (double)totals.sse[1] / totals.frames / (WIDTH * HEIGHT / 4),
                vs->m.stats.skipped, vs->m.stats.inter, vs->m.stats.intra, vs->m.stats.coefficients, vs->me_stats.sads, vs->rc_context.last_qscale, totals.sum, band->adler, enc->frame_pool->allocated, enc->frame_pool->reused);
    tr_sink = totals.bytes + band->adler;
    return 0;
}
