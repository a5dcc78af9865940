/* Filters over video frames: planes with strides, a graph of filters with private contexts,
 * motion vectors by blocks, histograms, integral images, connected regions, overlays. */
#include "../heap.h"

#define W 160
#define H 96
#define FFALIGN(x, a) (((x) + (a) - 1) & ~((a) - 1))
#define NB_SPRITES 60
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CLIP8(v) ((v) < 0 ? 0 : (v) > 255 ? 255 : (v))

typedef struct Frame {
    uint8_t *data[3];
    int      linesize[3];
    int      width, height;
    int64_t  pts;
    float    quality;
    int      refs;
    struct Frame *next; ///< in the pool
} Frame;

typedef struct FramePool {
    Frame *free;
    int    made, taken;
} FramePool;

typedef struct Stats {
    int64_t frames;
    double  time, cost;
    int     last[4];
} Stats;

struct FilterContext;

typedef struct Filter {
    const char *name;
    size_t      priv_size;
    int       (*init)(struct FilterContext *);
    Frame    *(*filter)(struct FilterContext *, Frame *);
} Filter;

typedef struct FilterContext {
    const Filter *filter;
    void         *priv;
    FramePool    *pool;
    struct FilterContext *next;
    Stats         stats;
    unsigned      enabled : 1, timeline : 3, order : 12;
} FilterContext;

typedef struct BlurContext {
    int      radius;
    int      weights[9];
    int      total;
    uint16_t line[W + 16];
} BlurContext;

typedef struct MotionVector {
    int8_t   dx, dy;
    uint16_t sad;
    uint32_t age;
} MotionVector;

typedef struct MotionContext {
    Frame        *previous;
    MotionVector *vectors;
    int           across, down;
    int64_t       still, moved;
} MotionContext;

typedef struct LevelsContext {
    uint32_t histogram[256];
    uint8_t  table[3][256];
    int      low, high;
    float    smooth[2];
} LevelsContext;

typedef struct ThresholdContext {
    uint32_t *integral;
    int       stride; ///< of integral, in elements
    int       window;
    float     bias;
} ThresholdContext;

typedef struct Region {
    uint16_t x0, y0, x1, y1;
    uint32_t area;
    uint32_t parent;
    double   sum;
} Region;

typedef struct RegionContext {
    uint16_t *labels;
    Region   *regions;
    int       used, largest;
} RegionContext;

typedef struct Sprite {
    float   x, y, vx, vy;
    uint8_t luma, alpha;
    int16_t size;
    struct { int bounces; float energy; } history;
} Sprite;

static FramePool pool;
static Sprite sprites[NB_SPRITES];
static const int blur_weights[9] = { 1, 4, 9, 14, 16, 14, 9, 4, 1 };

static Frame *frame_get(FramePool *p)
{
    Frame *f = p->free;
    if (f) {
        p->free = f->next;
    } else {
        f = HEAP_CALLOC(Frame, 1);
        f->width  = W;
        f->height = H;
        for (int i = 0; i < 3; i++) {
            int w = i ? W / 2 : W, h = i ? H / 2 : H;
            f->linesize[i] = FFALIGN(w + 16, 32);
            f->data[i] = HEAP_CALLOC(uint8_t, f->linesize[i] * h);
        }
        p->made++;
    }
    p->taken++;
    f->refs = 1;
    f->next = NULL;
    return f;
}

static void frame_unref(FramePool *p, Frame *f)
{
    if (f && --f->refs == 0) {
        f->next = p->free;
        p->free = f;
        p->taken--;
    }
}

/* ---- blur: across into a line of 16 bits, then down ---- */

static int blur_init(FilterContext *ctx)
{
    BlurContext *s = ctx->priv;
    s->radius = 4;
    for (int i = 0; i < 9; i++)
        s->total += s->weights[i] = blur_weights[i];
    return 0;
}

static NOINLINE Frame *blur_filter(FilterContext *ctx, Frame *in)
{
    BlurContext *s = ctx->priv;
    Frame *out = frame_get(ctx->pool);
    for (int plane = 0; plane < 3; plane++) {
        int w = plane ? in->width / 2 : in->width, h = plane ? in->height / 2 : in->height;
        for (int y = 0; y < h; y++) {
            const uint8_t *src = in->data[plane] + y * in->linesize[plane];
            uint8_t *dst = out->data[plane] + y * out->linesize[plane];
            int up = y > 0 ? -in->linesize[plane] : 0, down = y + 1 < h ? in->linesize[plane] : 0;
            for (int x = 0; x < w; x++)
                s->line[x + 8] = (src[x + up] + 2 * src[x] + src[x + down]) >> 2;
            for (int x = 0; x < 8; x++) {
                s->line[x] = s->line[8];
                s->line[w + 8 + x] = s->line[w + 7];
            }
            for (int x = 0; x < w; x++) {
                int sum = 0;
                for (int k = -s->radius; k <= s->radius; k++)
                    sum += s->line[x + 8 + k] * s->weights[k + s->radius];
                dst[x] = sum / s->total;
            }
        }
    }
    out->pts = in->pts;
    frame_unref(ctx->pool, in);
    return out;
}

/* ---- motion: full search around the last vector ---- */

static int motion_init(FilterContext *ctx)
{
    MotionContext *s = ctx->priv;
    s->across  = W / 16;
    s->down    = H / 16;
    s->vectors = HEAP_CALLOC(MotionVector, s->across * s->down);
    return 0;
}

static NOINLINE unsigned sad16(const uint8_t *a, int as, const uint8_t *b, int bs)
{
    unsigned sum = 0;
    for (int y = 0; y < 16; y++, a += as, b += bs)
        for (int x = 0; x < 16; x++)
            sum += abs(a[x] - b[x]);
    return sum;
}

static NOINLINE Frame *motion_filter(FilterContext *ctx, Frame *in)
{
    MotionContext *s = ctx->priv;
    Frame *old = s->previous;
    for (int by = 0; old && by < s->down; by++)
        for (int bx = 0; bx < s->across; bx++) {
            MotionVector *mv = &s->vectors[by * s->across + bx];
            const uint8_t *block = in->data[0] + by * 16 * in->linesize[0] + bx * 16;
            unsigned best = ~0u;
            int px = mv->dx, py = mv->dy;
            for (int k = 0; k < 9; k++) {
                int dx = px + k % 3 - 1, dy = py + k / 3 - 1;
                int x = bx * 16 + dx, y = by * 16 + dy;
                if (x < 0 || y < 0 || x + 16 > in->width || y + 16 > in->height)
                    continue;
                unsigned sad = sad16(block, in->linesize[0],
                                     old->data[0] + y * old->linesize[0] + x, old->linesize[0]);
                if (sad < best) {
                    best   = sad;
                    mv->dx = dx;
                    mv->dy = dy;
                }
            }
            mv->sad = MIN(best, 65535);
            mv->age = mv->dx == px && mv->dy == py ? mv->age + 1 : 0;
            if (mv->age > 3) s->still++;
            else             s->moved++;
        }
    frame_unref(ctx->pool, old);
    s->previous = in;
    in->refs++;
    return in;
}

/* ---- levels ---- */

static int levels_init(FilterContext *ctx)
{
    LevelsContext *s = ctx->priv;
    s->smooth[1] = 255;
    return 0;
}

static NOINLINE Frame *levels_filter(FilterContext *ctx, Frame *in)
{
    LevelsContext *s = ctx->priv;
    Frame *out = frame_get(ctx->pool);
    unsigned limit = W * H / 50, sum = 0;
    for (int i = 0; i < 256; i++)
        s->histogram[i] = 0;
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++)
            s->histogram[in->data[0][y * in->linesize[0] + x]]++;
    for (s->low = 0; s->low < 255 && (sum += s->histogram[s->low]) < limit; s->low++);
    for (sum = 0, s->high = 255; s->high > 0 && (sum += s->histogram[s->high]) < limit; s->high--);
    s->smooth[0] += 0.1f * (s->low - s->smooth[0]);
    s->smooth[1] += 0.1f * (s->high - s->smooth[1]);
    for (int i = 0; i < 256; i++) {
        float v = (i - s->smooth[0]) * 255 / MAX(1.f, s->smooth[1] - s->smooth[0]);
        s->table[0][i] = CLIP8((int)v);
        s->table[1][i] = s->table[2][i] = CLIP8(128 + (i - 128) * 9 / 8);
    }
    for (int p = 0; p < 3; p++) {
        const uint8_t *table = s->table[p], *src = in->data[p];
        uint8_t *dst = out->data[p];
        int w = p ? in->width / 2 : in->width, h = p ? in->height / 2 : in->height;
        for (int y = 0; y < h; y++, src += in->linesize[p], dst += out->linesize[p])
            for (int x = 0; x < w; x++)
                dst[x] = table[src[x]];
    }
    out->pts = in->pts;
    frame_unref(ctx->pool, in);
    return out;
}

/* ---- threshold against the mean of a window ---- */

static int threshold_init(FilterContext *ctx)
{
    ThresholdContext *s = ctx->priv;
    s->stride   = W + 1;
    s->integral = HEAP_CALLOC(uint32_t, (W + 1) * (H + 1));
    s->window   = 8;
    s->bias     = 0.96f;
    return 0;
}

static NOINLINE Frame *threshold_filter(FilterContext *ctx, Frame *in)
{
    ThresholdContext *s = ctx->priv;
    for (int y = 0; y < in->height; y++) {
        const uint8_t *src = &in->data[0][y * in->linesize[0]];
        uint32_t *row = s->integral + (y + 1) * s->stride, sum = 0;
        for (int x = 0; x < in->width; x++) {
            sum += src[x];
            row[x + 1] = row[x + 1 - s->stride] + sum;
        }
    }
    for (int y = 0; y < in->height; y++) {
        int y0 = MAX(y - s->window, 0), y1 = MIN(y + s->window, in->height);
        uint8_t *dst = &in->data[0][y * in->linesize[0]];
        for (int x = 0; x < in->width; x++) {
            int x0 = MAX(x - s->window, 0), x1 = MIN(x + s->window, in->width);
            uint32_t sum = s->integral[y1 * s->stride + x1] - s->integral[y1 * s->stride + x0] -
                           s->integral[y0 * s->stride + x1] + s->integral[y0 * s->stride + x0];
            if (dst[x] * (x1 - x0) * (y1 - y0) < sum * s->bias)
                dst[x] >>= 2;
        }
    }
    return in;
}

/* ---- regions: labels in one pass, joined by their parents ---- */

static int regions_init(FilterContext *ctx)
{
    RegionContext *s = ctx->priv;
    s->labels  = HEAP_CALLOC(uint16_t, W * H);
    s->regions = HEAP_CALLOC(Region, 4096);
    return 0;
}

static uint32_t region_root(Region *r, uint32_t i)
{
    while (r[i].parent != i) {
        r[i].parent = r[r[i].parent].parent;
        i = r[i].parent;
    }
    return i;
}

static NOINLINE Frame *regions_filter(FilterContext *ctx, Frame *in)
{
    RegionContext *s = ctx->priv;
    s->used = 1;
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++) {
            uint16_t *label = &s->labels[y * W + x];
            uint8_t v = in->data[0][y * in->linesize[0] + x];
            *label = 0;
            if (v < 96)
                continue;
            if (x && label[-1]) *label = region_root(s->regions, label[-1]);
            if (y && label[-W]) {
                uint32_t up = region_root(s->regions, label[-W]);
                if (*label && *label != up) s->regions[*label].parent = up;
                *label = up;
            }
            if (!*label && s->used < 4096) {
                *label = s->used++;
                s->regions[*label] = (Region){ x, y, x, y, 0, *label, 0 };
            }
            Region *r = &s->regions[*label];
            r->area++;
            r->sum += v;
            r->x0 = MIN(r->x0, x);
            r->x1 = MAX(r->x1, x);
            r->y1 = y;
        }
    s->largest = 0;
    for (int i = 1; i < s->used; i++)
        if (s->regions[i].area > s->regions[s->largest].area)
            s->largest = i;
    return in;
}

static const Filter filters[] = {
    { "blur",      sizeof(BlurContext),      blur_init,      blur_filter },
    { "motion",    sizeof(MotionContext),    motion_init,    motion_filter },
    { "levels",    sizeof(LevelsContext),    levels_init,    levels_filter },
    { "threshold", sizeof(ThresholdContext), threshold_init, threshold_filter },
    { "regions",   sizeof(RegionContext),    regions_init,   regions_filter },
};

/* ---- the source ---- */

static NOINLINE void move_sprites(Sprite *s, int count, float dt)
{
    for (Sprite *end = s + count; s < end; s++) {
        s->x += s->vx * dt;
        s->y += s->vy * dt;
        if (s->x < 0 || s->x + s->size >= W) { s->vx = -s->vx; s->history.bounces++; }
        if (s->y < 0 || s->y + s->size >= H) { s->vy = -s->vy; s->history.bounces++; }
        s->x = MAX(0, MIN(s->x, W - s->size - 1));
        s->y = MAX(0, MIN(s->y, H - s->size - 1));
        s->history.energy = 0.5f * (s->vx * s->vx + s->vy * s->vy);
    }
}

static NOINLINE Frame *render(FramePool *p, int64_t pts)
{
    Frame *f = frame_get(p);
    f->pts = pts;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            f->data[0][y * f->linesize[0] + x] = x + y + pts;
    for (int y = 0; y < H / 2; y++)
        for (int x = 0; x < W / 2; x++) {
            f->data[1][y * f->linesize[1] + x] = 128 + y - x;
            f->data[2][y * f->linesize[2] + x] = 64 + x;
        }
    for (int i = 0; i < NB_SPRITES; i++) {
        const Sprite *s = &sprites[i];
        for (int y = 0; y < s->size; y++) {
            uint8_t *dst = f->data[0] + ((int)s->y + y) * f->linesize[0] + (int)s->x;
            for (int x = 0; x < s->size; x++)
                dst[x] += ((s->luma - dst[x]) * s->alpha) >> 8;
        }
    }
    return f;
}

int main(int argc, char **argv)
{
    FilterContext *graph = NULL, *ctx;
    int64_t pts = 0;
    double sum = 0;

    tr_init(argc, argv);
    TR_GLOBAL(pool, "FramePool");
    TR_GLOBAL(sprites, "Sprite []");
    TR_GLOBAL(filters, "Filter []");
    TR_GLOBAL(blur_weights, "int []");
    TR_CHECK(Frame, quality);
    TR_CHECK(BlurContext, line);
    TR_CHECK(FilterContext, stats);
    for (int i = 4; i >= 0; i--) {
        ctx = HEAP_CALLOC(FilterContext, 1);
        ctx->filter = &filters[i];
        ctx->pool = &pool;
        ctx->enabled = 1;
        ctx->order = i;
        ctx->timeline = i == 0 ? 4 : i == 3 ? 2 : 0;
        switch (i) {
        case 0:  ctx->priv = HEAP_CALLOC(BlurContext, 1); break;
        case 1:  ctx->priv = HEAP_CALLOC(MotionContext, 1); break;
        case 2:  ctx->priv = HEAP_CALLOC(LevelsContext, 1); break;
        case 3:  ctx->priv = HEAP_CALLOC(ThresholdContext, 1); break;
        default: ctx->priv = HEAP_CALLOC(RegionContext, 1); break;
        }
        ctx->filter->init(ctx);
        ctx->next = graph;
        graph = ctx;
    }
    for (int i = 0; i < NB_SPRITES; i++)
        sprites[i] = (Sprite){ i * 2, i, 1 + i % 3, 1 + i % 5, 40 + i * 3, 128 + i * 2, 2 + i % 6, { 0, 0 } };
    while (tr_more()) {
        for (int i = 0; i < 8; i++)
            move_sprites(sprites, NB_SPRITES, 0.0625f);
        Frame *f = render(&pool, pts++);
        for (ctx = graph; ctx; ctx = ctx->next) {
            if (!ctx->enabled || pts % (1 + ctx->timeline))
                continue;
            f = ctx->filter->filter(ctx, f);
            ctx->stats.frames++;
            ctx->stats.last[pts & 3] = f->data[0][0];
            ctx->stats.cost = 0.95 * ctx->stats.cost + ctx->filter->priv_size;
        }
        f->quality = 0.5f * (f->quality + f->data[1][5]);
        sum += f->quality;
        frame_unref(&pool, f);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
