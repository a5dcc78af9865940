/*
 * A terminal emulator without its window: a table driven parser of escape sequences, two grids with
 * scrollback as a ring of rows, hyperlinks, damage, glyphs in a cache, composition into a buffer.
 */
#include "../heap.h"

#include <stdbool.h>

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define ALEN(v) (sizeof(v) / sizeof((v)[0]))

#define COLS 72
#define ROWS 20
#define SCROLLBACK 128 /* rows of the normal grid, a power of two */
#define CELL_W 6
#define CELL_H 8
#define GLYPH_BUCKETS 128

enum color_source { COLOR_DEFAULT, COLOR_BASE16, COLOR_BASE256, COLOR_RGB };

struct attributes {
    bool bold : 1;
    bool dim : 1;
    bool italic : 1;
    bool underline : 1;
    bool reverse : 1;
    uint32_t fg : 24;

    bool clean : 1;
    enum color_source fg_src : 2;
    enum color_source bg_src : 2;
    bool selected : 1;
    uint32_t bg : 24;
};

struct cell {
    uint32_t wc;
    struct attributes attrs;
};

struct uri_range {
    struct uri_range *next;
    int start, end;
    uint64_t id;
    char *uri;
};

struct row {
    struct cell *cells;
    struct row_extra *extra;
    int used; /* cells from here on are blank, whatever they hold */
    bool dirty;
    bool linebreak;
};

struct row_extra {
    struct uri_range *ranges;
    unsigned count;
};

struct coord { int col, row; };

struct cursor {
    struct coord point;
    bool lcf; /* last column flag: the next character wraps */
};

struct grid {
    int num_rows, num_cols;
    int offset, view;
    struct cursor cursor, saved_cursor;
    struct attributes saved_attrs;
    struct row **rows;
    struct row *cur_row;
    unsigned long scrolled;
};

struct vt_param {
    unsigned value;
    struct {
        unsigned value[4];
        uint8_t idx;
    } sub;
};

enum state { GROUND, ESCAPE, CSI_ENTRY, CSI_PARAM, CSI_IGNORE, OSC_STRING, UTF8_21, UTF8_31, UTF8_32, STATES };
enum action { NOTHING, PRINT, EXECUTE, CLEAR, COLLECT, PARAM, CSI, ESC, OSC_PUT, OSC_END, UTF8_START, UTF8_MORE, UTF8_PRINT };

struct transition {
    uint8_t next;
    uint8_t action;
};

struct vt {
    enum state state;
    uint32_t utf8;
    char private;
    struct {
        struct vt_param v[16];
        uint8_t idx;
    } params;
    struct {
        uint8_t *data;
        size_t size, idx;
    } osc;
    struct attributes attrs;
};

enum damage_type { DAMAGE_SCROLL, DAMAGE_SCROLL_REVERSE };

struct damage {
    struct damage *next, **prev;
    enum damage_type type;
    struct { int start, end; } region;
    int lines;
};

struct glyph {
    struct glyph *next;
    uint32_t wc;
    uint8_t style, width, height;
    int8_t x, y;
    unsigned used;
    uint8_t *pix;
};

struct font {
    const char *name;
    struct glyph *buckets[GLYPH_BUCKETS];
    struct { unsigned hits, misses; } stats;
};

struct buffer {
    int width, height, stride;
    uint32_t *data;
    uint64_t age;
};

struct colors {
    uint32_t fg, bg, selection;
    uint32_t table[256];
};

struct terminal {
    struct vt vt;
    struct grid *grid;
    struct grid normal, alt;
    struct colors colors;
    struct font *fonts[4];
    struct {
        struct damage *first;
        unsigned pending;
    } damage;
    struct { int start, end; } scroll_region;
    struct { struct coord start, end; bool active; } selection;
    bool tab_stops[COLS];
    uint64_t uri_id;
    char *uri;
    struct {
        bool origin, autowrap, insert;
        bool hide_cursor;
    } modes;
};

typedef void (*csi_handler)(struct terminal *term, unsigned first, unsigned second);

static struct transition transitions[STATES][256];
static csi_handler csi_handlers[128];
static struct counters {
    uint64_t bytes, printed, sequences, frames, cells_drawn, links;
} counters;

/* --- rows --- */

static struct row *
grid_row_alloc(int cols)
{
    struct row *row = HEAP_CALLOC(struct row, 1);
    row->cells = HEAP_CALLOC(struct cell, cols);
    return row;
}

static struct row *
grid_row(const struct grid *grid, int row_no)
{
    return grid->rows[(grid->offset + row_no) & (grid->num_rows - 1)];
}

static struct row *
grid_row_in_view(const struct grid *grid, int row_no)
{
    return grid->rows[(grid->view + row_no) & (grid->num_rows - 1)];
}

static void
row_extra_destroy(struct row *row)
{
    if (row->extra == NULL)
        return;
    for (struct uri_range *r = row->extra->ranges, *next; r != NULL; r = next) {
        next = r->next;
        HEAP_FREE(r->uri);
        HEAP_FREE(r);
    }
    HEAP_FREE(row->extra);
    row->extra = NULL;
}

static void
row_put_uri(struct row *row, int col, uint64_t id, const char *uri)
{
    struct row_extra *extra = row->extra;
    if (extra == NULL)
        extra = row->extra = HEAP_CALLOC(struct row_extra, 1);

    for (struct uri_range *r = extra->ranges; r != NULL; r = r->next)
        if (r->id == id && r->end + 1 == col) {
            r->end = col;
            return;
        }

    struct uri_range *r = HEAP_CALLOC(struct uri_range, 1);
    r->start = r->end = col;
    r->id = id;
    r->uri = HEAP_CALLOC(char, 48);
    strncpy(r->uri, uri, 47);
    r->next = extra->ranges;
    extra->ranges = r;
    extra->count++;
    counters.links++;
}

static void
cell_erase(struct cell *cell, const struct attributes *attrs)
{
    cell->wc = 0;
    cell->attrs = (struct attributes){ .bg = attrs->bg, .bg_src = attrs->bg_src };
}

static void
row_fill(struct row *row, int upto)
{
    static const struct attributes blank;
    while (row->used < upto)
        cell_erase(&row->cells[row->used++], &blank);
}

static NOINLINE void
term_erase(struct terminal *term, int row_no, int start, int end)
{
    struct row *row = grid_row(term->grid, row_no);
    if (end == COLS && term->vt.attrs.bg_src == COLOR_DEFAULT)
        row->used = min(row->used, start);
    else {
        row_fill(row, start);
        for (int c = start; c < end; c++)
            cell_erase(&row->cells[c], &term->vt.attrs);
        row->used = max(row->used, end);
    }
    row->dirty = true;
    row->linebreak = false;
    if (start == 0 && end == COLS)
        row_extra_destroy(row);
}

/* --- damage --- */

static void
term_damage_scroll(struct terminal *term, enum damage_type type, int start, int end, int lines)
{
    struct damage *last = term->damage.first;
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last != NULL && last->type == type && last->region.start == start && last->region.end == end) {
        last->lines += lines;
        return;
    }
    struct damage *dmg = HEAP_CALLOC(struct damage, 1);
    dmg->type = type;
    dmg->region.start = start;
    dmg->region.end = end;
    dmg->lines = lines;
    dmg->prev = last != NULL ? &last->next : &term->damage.first;
    *dmg->prev = dmg;
    term->damage.pending++;
}

static NOINLINE void
term_scroll(struct terminal *term, int lines)
{
    struct grid *grid = term->grid;
    const int start = term->scroll_region.start, end = term->scroll_region.end;

    /* Rows outside of the region stay where they are on the screen. */
    for (int i = 0; i < lines; i++) {
        struct row *top = grid_row(grid, start);
        if (start == 0 && end == ROWS) {
            grid->offset = (grid->offset + 1) & (grid->num_rows - 1);
            grid->scrolled++;
        } else {
            for (int r = start; r < end - 1; r++)
                grid->rows[(grid->offset + r) & (grid->num_rows - 1)] = grid_row(grid, r + 1);
            grid->rows[(grid->offset + end - 1) & (grid->num_rows - 1)] = top;
        }
        term_erase(term, end - 1, 0, COLS);
    }
    grid->view = grid->offset;
    grid->cur_row = grid_row(grid, grid->cursor.point.row);
    term_damage_scroll(term, DAMAGE_SCROLL, start, end, lines);
}

static void
term_cursor_to(struct terminal *term, int row, int col)
{
    struct grid *grid = term->grid;
    if (term->modes.origin)
        row += term->scroll_region.start;
    grid->cursor.point.row = max(0, min(row, ROWS - 1));
    grid->cursor.point.col = max(0, min(col, COLS - 1));
    grid->cursor.lcf = false;
    grid->cur_row = grid_row(grid, grid->cursor.point.row);
}

static void
term_linefeed(struct terminal *term)
{
    struct grid *grid = term->grid;
    grid->cur_row->linebreak = true;
    if (grid->cursor.point.row == term->scroll_region.end - 1)
        term_scroll(term, 1);
    else
        term_cursor_to(term, grid->cursor.point.row + 1, grid->cursor.point.col);
}

static NOINLINE void
term_print(struct terminal *term, uint32_t wc)
{
    struct grid *grid = term->grid;
    if (grid->cursor.lcf && term->modes.autowrap) {
        grid->cursor.point.col = 0;
        term_linefeed(term);
        grid->cursor.lcf = false;
    }

    struct row *row = grid->cur_row;
    const int col = grid->cursor.point.col;
    row_fill(row, term->modes.insert ? COLS : col);
    if (term->modes.insert)
        memmove(&row->cells[col + 1], &row->cells[col], (size_t)(COLS - col - 1) * sizeof(row->cells[0]));

    struct cell *cell = &row->cells[col];
    cell->wc = wc;
    cell->attrs = term->vt.attrs;
    row->used = max(row->used, col + 1);
    row->dirty = true;
    if (term->uri != NULL)
        row_put_uri(row, col, term->uri_id, term->uri);
    if (col + 1 < COLS)
        grid->cursor.point.col++;
    else
        grid->cursor.lcf = true;
    counters.printed++;
}

/* --- sequences --- */

static void
csi_sgr(struct terminal *term, unsigned first, unsigned second)
{
    struct attributes *a = &term->vt.attrs;
    (void)first;
    (void)second;
    for (size_t i = 0; i < max(term->vt.params.idx, 1); i++) {
        const struct vt_param *p = &term->vt.params.v[i];
        switch (p->value) {
        case 0: memset(a, 0, sizeof(*a)); break;
        case 1: a->bold = true; break;
        case 2: a->dim = true; break;
        case 3: a->italic = true; break;
        case 4: a->underline = p->sub.idx == 0 || p->sub.value[0] != 0; break;
        case 7: a->reverse = true; break;
        case 22: a->bold = a->dim = false; break;
        case 27: a->reverse = false; break;
        case 39: a->fg_src = COLOR_DEFAULT; break;
        case 49: a->bg_src = COLOR_DEFAULT; break;
        case 38:
        case 48: {
            const unsigned kind = p[1].value;
            uint32_t color = kind == 5 ? p[2].value & 255 : p[2].value << 16 | p[3].value << 8 | p[4].value;
            enum color_source src = kind == 5 ? COLOR_BASE256 : COLOR_RGB;
            if (p->value == 38)
                a->fg = color, a->fg_src = src;
            else
                a->bg = color, a->bg_src = src;
            i += kind == 5 ? 2 : 4;
            break;
        }
        default:
            if (p->value >= 30 && p->value < 38)
                a->fg = p->value - 30, a->fg_src = COLOR_BASE16;
            else if (p->value >= 40 && p->value < 48)
                a->bg = p->value - 40, a->bg_src = COLOR_BASE16;
            else if (p->value >= 90 && p->value < 98)
                a->fg = p->value - 82, a->fg_src = COLOR_BASE16;
        }
    }
}

static void csi_cuu(struct terminal *t, unsigned n, unsigned m) { (void)m; term_cursor_to(t, t->grid->cursor.point.row - (int)max(n, 1), t->grid->cursor.point.col); }
static void csi_cud(struct terminal *t, unsigned n, unsigned m) { (void)m; term_cursor_to(t, t->grid->cursor.point.row + (int)max(n, 1), t->grid->cursor.point.col); }
static void csi_cuf(struct terminal *t, unsigned n, unsigned m) { (void)m; term_cursor_to(t, t->grid->cursor.point.row, t->grid->cursor.point.col + (int)max(n, 1)); }
static void csi_cub(struct terminal *t, unsigned n, unsigned m) { (void)m; term_cursor_to(t, t->grid->cursor.point.row, t->grid->cursor.point.col - (int)max(n, 1)); }
static void csi_cup(struct terminal *t, unsigned row, unsigned col) { term_cursor_to(t, (int)max(row, 1) - 1, (int)max(col, 1) - 1); }

static void
csi_ed(struct terminal *term, unsigned how, unsigned unused)
{
    const struct coord at = term->grid->cursor.point;
    (void)unused;
    if (how == 0)
        term_erase(term, at.row, at.col, COLS);
    for (int r = how == 0 ? at.row + 1 : 0; r < (how == 1 ? at.row : ROWS); r++)
        term_erase(term, r, 0, COLS);
}

static void
csi_el(struct terminal *term, unsigned how, unsigned unused)
{
    const struct coord at = term->grid->cursor.point;
    (void)unused;
    term_erase(term, at.row, how == 0 ? at.col : 0, how == 1 ? at.col + 1 : COLS);
}

static void
csi_stbm(struct terminal *term, unsigned top, unsigned bottom)
{
    term->scroll_region.start = (int)min(max(top, 1), ROWS - 1) - 1;
    term->scroll_region.end = bottom == 0 ? ROWS : (int)min(bottom, ROWS);
    if (term->scroll_region.end <= term->scroll_region.start + 1)
        term->scroll_region.start = 0, term->scroll_region.end = ROWS;
    term_cursor_to(term, 0, 0);
}

static void
set_mode(struct terminal *term, unsigned mode, bool on)
{
    switch (mode) {
    case 4: term->modes.insert = on; break;
    case 6: term->modes.origin = on; break;
    case 7: term->modes.autowrap = on; break;
    case 25: term->modes.hide_cursor = !on; break;
    case 1049:
        if (on && term->grid == &term->normal) {
            term->normal.saved_cursor = term->normal.cursor;
            term->normal.saved_attrs = term->vt.attrs;
            term->grid = &term->alt;
            csi_ed(term, 2, 0);
        } else if (!on && term->grid == &term->alt) {
            term->grid = &term->normal;
            term->normal.cursor = term->normal.saved_cursor;
            term->vt.attrs = term->normal.saved_attrs;
        }
        term_cursor_to(term, term->grid->cursor.point.row, term->grid->cursor.point.col);
        for (int r = 0; r < ROWS; r++)
            grid_row(term->grid, r)->dirty = true;
    }
}

static void csi_set(struct terminal *t, unsigned mode, unsigned m) { (void)m; set_mode(t, mode, true); }
static void csi_reset(struct terminal *t, unsigned mode, unsigned m) { (void)m; set_mode(t, mode, false); }

static NOINLINE void
osc_dispatch(struct terminal *term)
{
    struct vt *vt = &term->vt;
    unsigned number = 0;
    size_t i = 0;
    vt->osc.data[vt->osc.idx] = '\0';
    while (vt->osc.data[i] >= '0' && vt->osc.data[i] <= '9')
        number = number * 10 + (vt->osc.data[i++] - '0');
    if (number == 8) {
        i += 2;
        term->uri = vt->osc.data[i] != '\0' ? (char *)&vt->osc.data[i] : NULL;
        for (term->uri_id = 5381; vt->osc.data[i] != '\0'; i++)
            term->uri_id = term->uri_id * 33 + vt->osc.data[i];
    } else if (number == 4) {
        unsigned idx = (unsigned)atoi((char *)&vt->osc.data[i + 1]) & 255;
        term->colors.table[idx] = term->colors.table[idx] * 5 + 0x010203;
    }
}

static NOINLINE void
term_execute(struct terminal *term, uint8_t c)
{
    struct coord *at = &term->grid->cursor.point;
    switch (c) {
    case '\n': term_linefeed(term); break;
    case '\r': term_cursor_to(term, at->row, 0); break;
    case '\b': term_cursor_to(term, at->row, at->col - 1); break;
    case '\t':
        while (at->col < COLS - 1 && !term->tab_stops[++at->col])
            ;
    }
}

static NOINLINE void
vt_action(struct terminal *term, enum action action, uint8_t c)
{
    struct vt *vt = &term->vt;
    switch (action) {
    case NOTHING: break;
    case PRINT: term_print(term, c); break;
    case EXECUTE: term_execute(term, c); break;
    case CLEAR:
        vt->params.idx = 0;
        vt->private = 0;
        vt->osc.idx = 0;
        break;
    case COLLECT: vt->private = (char)c; break;
    case PARAM:
        if (vt->params.idx == 0) {
            vt->params.idx = 1;
            memset(&vt->params.v[0], 0, sizeof(vt->params.v[0]));
        }
        struct vt_param *param = &vt->params.v[vt->params.idx - 1];
        if (c == ';') {
            if (vt->params.idx < ALEN(vt->params.v))
                memset(&vt->params.v[vt->params.idx++], 0, sizeof(*param));
        } else if (c == ':') {
            param->sub.idx = min(param->sub.idx + 1, 4);
            param->sub.value[param->sub.idx - 1] = 0;
        } else {
            unsigned *value = param->sub.idx != 0 ? &param->sub.value[param->sub.idx - 1] : &param->value;
            *value = *value * 10 + (c - '0');
        }
        break;
    case CSI:
        counters.sequences++;
        if (csi_handlers[c & 127] != NULL)
            csi_handlers[c & 127](term, vt->params.idx > 0 ? vt->params.v[0].value : 0,
                                  vt->params.idx > 1 ? vt->params.v[1].value : 0);
        break;
    case ESC:
        if (c == '7')
            term->grid->saved_cursor = term->grid->cursor;
        else if (c == '8')
            term_cursor_to(term, term->grid->saved_cursor.point.row, term->grid->saved_cursor.point.col);
        break;
    case OSC_PUT:
        if (vt->osc.idx + 1 < vt->osc.size)
            vt->osc.data[vt->osc.idx++] = c;
        break;
    case OSC_END: osc_dispatch(term); break;
    case UTF8_START: vt->utf8 = c & (c < 0xe0 ? 0x1f : 0x0f); break;
    case UTF8_MORE: vt->utf8 = vt->utf8 << 6 | (c & 0x3f); break;
    case UTF8_PRINT: term_print(term, vt->utf8 << 6 | (c & 0x3f)); break;
    }
}

static NOINLINE void
vt_from_slave(struct terminal *term, const uint8_t *data, size_t len)
{
    for (const uint8_t *p = data; p < data + len; p++) {
        const struct transition *t = &transitions[term->vt.state][*p];
        term->vt.state = t->next;
        vt_action(term, t->action, *p);
    }
    counters.bytes += len;
}

static void
on(enum state state, int from, int to, enum state next, enum action action)
{
    for (int c = from; c <= to; c++)
        transitions[state][c] = (struct transition){ next, action };
}

static void
vt_init(void)
{
    for (int s = 0; s < STATES; s++) {
        on(s, 0, 255, GROUND, NOTHING);
        on(s, 0, 0x1f, s, EXECUTE);
        on(s, 0x1b, 0x1b, ESCAPE, CLEAR);
    }
    on(GROUND, 0x20, 0x7e, GROUND, PRINT);
    on(GROUND, 0xc2, 0xdf, UTF8_21, UTF8_START);
    on(GROUND, 0xe0, 0xef, UTF8_31, UTF8_START);
    on(UTF8_21, 0x80, 0xbf, GROUND, UTF8_PRINT);
    on(UTF8_31, 0x80, 0xbf, UTF8_32, UTF8_MORE);
    on(UTF8_32, 0x80, 0xbf, GROUND, UTF8_PRINT);
    on(ESCAPE, 0x30, 0x7e, GROUND, ESC);
    on(ESCAPE, '[', '[', CSI_ENTRY, CLEAR);
    on(ESCAPE, ']', ']', OSC_STRING, CLEAR);
    on(CSI_ENTRY, 0x30, 0x3b, CSI_PARAM, PARAM);
    on(CSI_ENTRY, 0x3c, 0x3f, CSI_PARAM, COLLECT);
    on(CSI_ENTRY, 0x40, 0x7e, GROUND, CSI);
    on(CSI_PARAM, 0x30, 0x3b, CSI_PARAM, PARAM);
    on(CSI_PARAM, 0x3c, 0x3f, CSI_IGNORE, NOTHING);
    on(CSI_PARAM, 0x40, 0x7e, GROUND, CSI);
    on(OSC_STRING, 0x20, 0xff, OSC_STRING, OSC_PUT);
    on(OSC_STRING, 7, 7, GROUND, OSC_END);
    csi_handlers['m'] = csi_sgr;
    csi_handlers['A'] = csi_cuu;
    csi_handlers['B'] = csi_cud;
    csi_handlers['C'] = csi_cuf;
    csi_handlers['D'] = csi_cub;
    csi_handlers['H'] = csi_cup;
    csi_handlers['J'] = csi_ed;
    csi_handlers['K'] = csi_el;
    csi_handlers['r'] = csi_stbm;
    csi_handlers['h'] = csi_set;
    csi_handlers['l'] = csi_reset;
}

/* --- rendering --- */

static NOINLINE const struct glyph *
font_glyph(struct font *font, uint32_t wc, uint8_t style)
{
    struct glyph **bucket = &font->buckets[(wc * 31 + style) % GLYPH_BUCKETS];
    for (struct glyph *g = *bucket; g != NULL; g = g->next)
        if (g->wc == wc && g->style == style) {
            g->used++;
            font->stats.hits++;
            return g;
        }

    struct glyph *g = HEAP_CALLOC(struct glyph, 1);
    font->stats.misses++;
    g->wc = wc;
    g->style = style;
    g->width = (uint8_t)(2 + wc % 3);
    g->height = (uint8_t)(3 + wc % 4);
    g->x = (int8_t)(wc & 1);
    g->y = (int8_t)(wc >> 1 & 1);
    g->pix = HEAP_CALLOC(uint8_t, (size_t)g->width * g->height);
    for (int i = 0; i < g->width * g->height; i++)
        g->pix[i] = (uint8_t)((wc * 73 + (unsigned)i * 151) >> 1);
    g->next = *bucket;
    return *bucket = g;
}

static uint32_t
color_of(const struct colors *colors, enum color_source src, uint32_t value, uint32_t otherwise)
{
    switch (src) {
    case COLOR_BASE16: return colors->table[value & 15];
    case COLOR_BASE256: return colors->table[value & 255];
    case COLOR_RGB: return value;
    default: return otherwise;
    }
}

static void
blend(uint32_t *to, const struct glyph *g, int stride, uint32_t fg)
{
    for (int y = 0; y < g->height; y++) {
        uint32_t *line = to + (g->y + y) * stride + g->x;
        for (int x = 0; x < g->width; x++) {
            const uint32_t a = g->pix[y * g->width + x], under = line[x];
            const uint32_t rb = ((fg & 0xff00ff) * a + (under & 0xff00ff) * (255 - a)) >> 8;
            const uint32_t gr = ((fg & 0x00ff00) * a + (under & 0x00ff00) * (255 - a)) >> 8;
            line[x] = (rb & 0xff00ff) | (gr & 0x00ff00);
        }
    }
}

static NOINLINE void
render_cell(struct terminal *term, struct buffer *buf, struct cell *cell, int row, int col)
{
    const struct attributes *a = &cell->attrs;
    uint32_t fg = color_of(&term->colors, a->fg_src, a->fg, term->colors.fg);
    uint32_t bg = a->selected ? term->colors.selection : color_of(&term->colors, a->bg_src, a->bg, term->colors.bg);
    uint32_t *at = buf->data + row * CELL_H * buf->stride + col * CELL_W;

    if (a->reverse) {
        uint32_t swap = fg;
        fg = bg;
        bg = swap;
    }
    if (a->dim)
        fg = fg >> 1 & 0x7f7f7f;
    for (int y = 0; y < CELL_H; y += 2)
        for (int x = 0; x < CELL_W; x += 3)
            at[y * buf->stride + x] = bg;
    if (cell->wc > ' ')
        blend(at, font_glyph(term->fonts[a->bold | a->italic << 1], cell->wc, a->bold), buf->stride, fg);
    if (a->underline)
        at[(CELL_H - 1) * buf->stride] = fg;
    cell->attrs.clean = 1;
    counters.cells_drawn++;
}

static NOINLINE void
render_damage(struct terminal *term, struct buffer *buf)
{
    for (struct damage *dmg; (dmg = term->damage.first) != NULL;) {
        const int top = dmg->region.start, lines = min(dmg->lines, dmg->region.end - top);
        const int keep = dmg->region.end - top - lines;
        for (int r = keep > 0 ? top : dmg->region.end; r < dmg->region.end; r++)
            grid_row_in_view(term->grid, r)->dirty |= r >= top + keep;
        if ((term->damage.first = dmg->next) != NULL)
            dmg->next->prev = &term->damage.first;
        HEAP_FREE(dmg);
        term->damage.pending--;
    }
    buf->age++;
}

static NOINLINE void
render(struct terminal *term, struct buffer *buf)
{
    render_damage(term, buf);
    for (int r = 0; r < ROWS; r++) {
        struct row *row = grid_row_in_view(term->grid, r);
        if (!row->dirty)
            continue;
        row_fill(row, COLS);
        for (int c = 0; c < COLS; c++)
            if (!row->cells[c].attrs.clean)
                render_cell(term, buf, &row->cells[c], r, c);
        if (row->extra != NULL)
            for (const struct uri_range *u = row->extra->ranges; u != NULL; u = u->next)
                for (int c = u->start; c <= u->end; c++)
                    buf->data[((r + 1) * CELL_H - 1) * buf->stride + c * CELL_W] = term->colors.table[u->id & 15];
        row->dirty = false;
    }
    counters.frames++;
}

/* --- selection --- */

static NOINLINE size_t
selection_text(struct terminal *term, int start, int end, char *text, size_t size)
{
    size_t n = 0;
    for (int r = start; r < end; r++) {
        struct row *row = grid_row_in_view(term->grid, r);
        int empty = 0;
        for (int c = 0; c < row->used; c++) {
            struct cell *cell = &row->cells[c];
            if (cell->wc == 0) {
                empty++;
                continue;
            }
            for (; empty > 0 && n + 1 < size; empty--)
                text[n++] = ' ';
            if (n + 1 < size)
                text[n++] = (char)(cell->wc < 128 ? cell->wc : '?');
            cell->attrs.selected = !cell->attrs.selected;
            cell->attrs.clean = 0;
        }
        row->dirty = true;
        if (row->linebreak && n + 1 < size)
            text[n++] = '\n';
    }
    return n;
}

static NOINLINE unsigned
search(const struct grid *grid, const char *needle)
{
    unsigned found = 0;
    for (int r = 0; r < grid->num_rows; r += 2) {
        const struct row *row = grid->rows[r];
        for (int c = 0; c + 4 < row->used; c++) {
            int k = 0;
            while (needle[k] != '\0' && row->cells[c + k].wc == (uint32_t)needle[k])
                k++;
            found += needle[k] == '\0';
        }
    }
    return found;
}

/* --- what programs write --- */

static size_t
write_output(char *out, size_t size)
{
    static const char *const names[] = { "main.c", "Makefile", "render.o", "grid.h", "ünïcode.txt", "vt.c", "→link", "README" };
    char *p = out;
    while ((size_t)(p - out) + 400 < size) {
        const uint64_t r = tr_rand();
        const unsigned n = r >> 8 & 31;
        switch (r & 7) {
        case 0: /* a listing */
        case 1:
            for (unsigned i = 0; i < 4; i++)
                p += sprintf(p, "\033[%d;%um%s\033[0m\t%u  ", (int)(r >> 20 & 1), 31 + (n + i) % 7, names[(n * 3 + i) & 7], n * 1013 + i);
            p += sprintf(p, "\r\n");
            break;
        case 2: /* a progress bar */
            for (unsigned i = 0; i < 3; i++)
                p += sprintf(p, "\r\033[K\033[48;5;%um%3u%%\033[49m [%.*s>", 16 + n, n * 3 + i, (int)(n + i), "================================");
            p += sprintf(p, "\r\n");
            break;
        case 3: /* an editor */
            p += sprintf(p, "\033[?1049h\033[1049h\033[J\033[2;18r\033[%u;%uH\033[38;2;%u;200;90mstatic int %s\033[39m", n % 20 + 1, n + 1, n * 8, names[n & 7]);
            p += sprintf(p, "\033[18;1H\n\n\033[7m-- INSERT --\033[27m\033[4;3H\033[4hnew \033[4l\033[K");
            break;
        case 4: p += sprintf(p, "\033[r\033[1049l\r\n"); break;
        case 5: p += sprintf(p, "\033]8;;https://example.org/%s\007see %s\033]8;;\007 \033[4:3mcurly\033[m\r\n", names[n & 7], names[n & 3]); break;
        case 6: p += sprintf(p, "\0337\033[%u;40H\033[2mclock %02u\033[22m\0338\033]4;%u;rgb\007", n % 9 + 1, n, n); break;
        default: p += sprintf(p, "The quick brown fox %u jumps over the lazy dog, and \033[1mthe terminal wraps\033[m the line\r\n", n);
        }
    }
    return (size_t)(p - out);
}

static void
grid_init(struct grid *grid, int rows)
{
    grid->num_rows = rows;
    grid->num_cols = COLS;
    grid->rows = HEAP_CALLOC(struct row *, rows);
    for (int r = 0; r < rows; r++)
        grid->rows[r] = grid_row_alloc(COLS);
    grid->cur_row = grid->rows[0];
}

int
main(int argc, char **argv)
{
    tr_init(argc, argv);
    TR_GLOBAL(transitions, "struct transition [][]");
    TR_GLOBAL(csi_handlers, "csi_handler []");
    TR_GLOBAL(counters, "struct counters");
    TR_CHECK(struct cell, wc);
    TR_CHECK(struct terminal, modes);
    TR_CHECK(struct vt_param, sub);
    vt_init();

    struct terminal *term = HEAP_CALLOC(struct terminal, 1);
    struct buffer *buf = HEAP_CALLOC(struct buffer, 1);
    static const char *const styles[4] = { "regular", "bold", "italic", "bold italic" };
    buf->width = buf->stride = COLS * CELL_W;
    buf->height = ROWS * CELL_H;
    buf->data = HEAP_CALLOC(uint32_t, (size_t)buf->width * (size_t)buf->height);
    grid_init(&term->normal, SCROLLBACK);
    grid_init(&term->alt, 32);
    term->grid = &term->normal;
    term->scroll_region.end = ROWS;
    term->modes.autowrap = true;
    term->vt.osc.size = 256;
    term->vt.osc.data = HEAP_CALLOC(uint8_t, term->vt.osc.size);
    for (int i = 0; i < 4; i++) {
        term->fonts[i] = HEAP_CALLOC(struct font, 1);
        term->fonts[i]->name = styles[i];
    }
    for (int c = 0; c < COLS; c += 8)
        term->tab_stops[c] = true;
    for (unsigned i = 0; i < 256; i++)
        term->colors.table[i] = i * 0x0a1b2c & 0xffffff;
    term->colors.fg = 0xdddddd;
    term->colors.selection = 0x335577;

    const size_t size = 1 << 16;
    char *pty = HEAP_CALLOC(char, size);
    char *clipboard = HEAP_CALLOC(char, 2048);
    const size_t total = write_output(pty, size);
    size_t at = 0;
    uint64_t sum = 0;
    for (unsigned round = 0; tr_more(); round++) {
        size_t len = min(total - at, 700);
        vt_from_slave(term, (uint8_t *)pty + at, len);
        at = at + len == total ? 0 : at + len;
        if (round % 4 == 0)
            render(term, buf);
        if (round % 8 == 2)
            sum += selection_text(term, (int)(round / 8 % 10), 16, clipboard, 2048);
        if (round % 8 == 0)
            sum += search(&term->normal, "lazy");
        if (round % 32 == 5)
            term->normal.view = (term->normal.offset - 10) & (SCROLLBACK - 1);
    }
    tr_sink = sum + counters.frames;
    if (getenv("VERBOSE"))
        printf("%lu bytes %lu printed %lu sequences %lu cells %lu links\n", (long)counters.bytes, (long)counters.printed,
               (long)counters.sequences, (long)counters.cells_drawn, (long)counters.links);
    return 0;
}
