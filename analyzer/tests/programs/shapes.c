/* Accesses through pointers to every shape of type that C has. */
#include "truth.h"

struct pos { int x, y; };
struct node {
    struct node *next;
    long key;
    struct pos at;
    char tag[8];
    const double *weights;
    long (*visit)(long);
    struct pos corners[4];
};
typedef struct { long lo, hi; } span_t;
union word { long whole; float real; short half; };
struct boxed { int id; union { long whole; float real; }; };
struct flags { unsigned a : 3, b : 5, c : 8; unsigned : 16; long after; };
struct packet { long len, kind; long data[]; };
struct name { long len; short kind; char text[1]; };
struct table { long n; struct pos cells[]; };
struct halves { long key; long low[8]; long high[8]; };
enum color { RED, GREEN };
struct pixel { long pad; enum color color; volatile int ticks; _Bool on; };

FUNCTION long load_key(struct node *p) { return p->key; }
FUNCTION void store_key(struct node *p, long key) { p->key = key; }
FUNCTION void add_key(struct node *p, long key) { p->key += key; }
FUNCTION struct node *load_next(const struct node *p) { return p->next; }
FUNCTION int load_y(struct node *restrict p) { return p->at.y; }
FUNCTION void store_tag(struct node *p, char c) { p->tag[3] = c; }
FUNCTION char load_tag(struct node *p, long i) { return p->tag[i]; }
FUNCTION int load_corner(struct node *p, long i) { return p->corners[i].y; }
FUNCTION const double *load_weights(struct node *p) { return p->weights; }
FUNCTION long call_visit(struct node *p, long x) { return p->visit(x) + 1; }
FUNCTION long span_hi(const span_t *s) { return s->hi; }
FUNCTION long word_whole(union word *w) { return w->whole; }
FUNCTION float word_real(union word *w) { return w->real; }
FUNCTION short word_half(union word *w) { return w->half; }
FUNCTION float boxed_real(struct boxed *b) { return b->real; }
FUNCTION unsigned flag_a(struct flags *f) { return f->a; }
FUNCTION unsigned flag_c(struct flags *f) { return f->c; }
FUNCTION long flag_after(struct flags *f) { return f->after; }
FUNCTION long packet_at(struct packet *p, long i) { return p->data[i]; }
FUNCTION long packet_third(struct packet *p) { return p->data[2]; }
FUNCTION char text_at(struct name *n, long i) { return n->text[i]; }
FUNCTION char text_tenth(struct name *n) { return n->text[9]; }
FUNCTION int table_y(struct table *t, long i) { return t->cells[i].y; }
/* Its displacement is that of the last of `low`. */
FUNCTION long high_before(struct halves *h, long i) { return h->high[i - 1]; }
FUNCTION int pixel_color(struct pixel *p) { return p->color; }
FUNCTION int pixel_ticks(struct pixel *p) { return p->ticks; }
FUNCTION double element(double *a, long i) { return a[i]; }
FUNCTION double element_seven(double *a) { return a[7]; }
FUNCTION int list_y(struct pos *list, long i) { return list[i].y; }
FUNCTION int list_fifth(struct pos *list) { return list[5].y; }
FUNCTION int grid_at(int (*rows)[4], long i) { return rows[2][i]; }
FUNCTION struct pos *indirect(struct pos **slots, long i) { return slots[i]; }
FUNCTION char text_byte(char *text, long i) { return text[i]; }

int main(void) {
    MEMBER(struct node, next); MEMBER(struct node, key); MEMBER(struct node, at.y);
    MEMBER(struct node, tag); MEMBER(struct node, weights); MEMBER(struct node, visit);
    MEMBER(struct node, corners); SIZE(struct node); SIZE(struct pos);
    MEMBER(span_t, hi); MEMBER(struct boxed, real); MEMBER(struct flags, after);
    MEMBER(struct packet, data); MEMBER(struct name, text); MEMBER(struct table, cells);
    MEMBER(struct halves, high);
    MEMBER(struct pixel, color); MEMBER(struct pixel, ticks);
    print_image();
    return 0;
}
