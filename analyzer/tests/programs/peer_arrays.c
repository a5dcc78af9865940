/* Arrays of every nest, walked by loops that compilers unroll, turn into vectors, and count anew. */
#include "truth.h"

struct pos { int x, y; };
struct cell { long key; double weight; struct pos at[2]; long tail; };
struct zero { long n; struct pos cells[0]; };
struct hollow { long n; struct {} mark; struct pos at; };
struct columns { long n; double xs[100]; double ys[100]; };

long rows[64][3];
struct pos dots[128];
struct cell cells[32];

FUNCTION int ahead(struct pos *p, long i) { return p[i + 2].y; }
FUNCTION int behind(struct pos *p, long i) { return p[i - 1].x; }
FUNCTION int at_byte(struct pos *p, long bytes) { return *(int *)((char *)p + bytes); }
FUNCTION int zero_y(struct zero *z, long i) { return z->cells[i].y; }
FUNCTION int hollow_y(struct hollow *h) { return h->at.y; }
FUNCTION int inner_y(struct cell *c, long i) { return c->at[i].y; }
FUNCTION double weigh(const struct cell *c, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += c[i].weight;
    return sum;
}
FUNCTION void mark(struct cell *c, long n) {
    for (long i = 0; i < n; i++) c[i].tail = 7;
}
FUNCTION int inner(struct cell *c, long n) {
    int product = 1;
    for (long i = 0; i < n; i++) product *= c[i].at[1].y;
    return product;
}
FUNCTION void scale(double *restrict a, const double *restrict b, long n) {
    for (long i = 0; i < n; i++) a[i] += b[i] * 2.5;
}
FUNCTION double column(struct columns *s, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += s->ys[i];
    return sum;
}
FUNCTION long global_rows(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += rows[i][1];
    return sum;
}
FUNCTION int global_dot(long i) { return dots[i].y; }
FUNCTION int global_inner(long i, long k) { return cells[i].at[k].y; }

int main(void) {
    MEMBER(struct cell, weight); MEMBER(struct cell, tail); MEMBER(struct cell, at);
    MEMBER(struct zero, cells); MEMBER(struct hollow, at); MEMBER(struct pos, y);
    MEMBER(struct columns, ys); SIZE(struct cell); SIZE(struct pos);
    ADDRESS("rows", rows); ADDRESS("dots", dots); ADDRESS("cells", cells);
    print_image();
    return 0;
}
