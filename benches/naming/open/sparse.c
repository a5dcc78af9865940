/* Numeric code: sparse matrices by rows, conjugate gradients, dense factorisation, blocks of lanes,
 * complex iteration, a table of polynomials. */
#include "../heap.h"
#include <complex.h>

#define UNKNOWNS 900
#define SIDE 30
#define DENSE 48
#define LANES 8
#define TERMS 6

struct matrix {
    unsigned rows;
    size_t entries;
    unsigned *starts, *columns;
    double *values;
};

struct vector {
    unsigned length;
    float scale;
    double *at;
};

struct solver {
    const struct matrix *matrix;
    struct vector x, residual, direction, product;
    double norm, history[16];
    unsigned iterations;
};

struct lanes {
    float position[3][LANES];
    float velocity[3][LANES];
    int alive[LANES];
};

struct polynomial {
    double coefficients[TERMS];
    short degree;
    float low, high;
};

struct dense {
    int size, swaps;
    int pivots[DENSE];
    double cells[DENSE][DENSE];
};

struct orbit {
    double complex at, seed;
    int steps;
};

static struct polynomial polynomials[32];
static unsigned escape_counts[64];
static int16_t samples[4][1024];
static long mixed[1024];
static struct dense dense;

static NOINLINE void multiply(const struct matrix *m, const struct vector *in, struct vector *out) {
    for (unsigned r = 0; r < m->rows; r++) {
        double sum = 0;
        for (unsigned k = m->starts[r]; k < m->starts[r + 1]; k++)
            sum += m->values[k] * in->at[m->columns[k]];
        out->at[r] = sum;
    }
}

static NOINLINE double dot(const struct vector *a, const struct vector *b) {
    double sum = 0;
    for (unsigned i = 0; i < a->length; i++) sum += a->at[i] * b->at[i];
    return sum;
}

static NOINLINE void add_scaled(struct vector *to, double factor, const struct vector *from) {
    for (unsigned i = 0; i < to->length; i++) to->at[i] += factor * from->at[i];
}

static NOINLINE double iterate(struct solver *s) {
    multiply(s->matrix, &s->direction, &s->product);
    double step = s->norm / (dot(&s->direction, &s->product) + 1e-30);
    add_scaled(&s->x, step, &s->direction);
    add_scaled(&s->residual, -step, &s->product);
    double norm = dot(&s->residual, &s->residual), ratio = norm / (s->norm + 1e-30);
    for (unsigned i = 0; i < s->direction.length; i++)
        s->direction.at[i] = s->residual.at[i] + ratio * s->direction.at[i];
    s->norm = norm;
    s->history[s->iterations++ % 16] = norm;
    return norm;
}

static NOINLINE void restart(struct solver *s) {
    for (unsigned i = 0; i < s->x.length; i++) {
        s->x.at[i] = 0;
        s->residual.at[i] = s->direction.at[i] = 1 + i % 7;
    }
    s->norm = dot(&s->residual, &s->residual);
}

static NOINLINE void factorise(struct dense *d) {
    for (int k = 0; k < d->size; k++) {
        int best = k;
        for (int r = k + 1; r < d->size; r++)
            if (d->cells[r][k] * d->cells[r][k] > d->cells[best][k] * d->cells[best][k]) best = r;
        d->pivots[k] = best;
        if (best != k) {
            d->swaps++;
            for (int c = 0; c < d->size; c++) {
                double kept = d->cells[k][c];
                d->cells[k][c] = d->cells[best][c];
                d->cells[best][c] = kept;
            }
        }
        for (int r = k + 1; r < d->size; r++) {
            double factor = d->cells[r][k] /= d->cells[k][k];
            for (int c = k + 1; c < d->size; c++) d->cells[r][c] -= factor * d->cells[k][c];
        }
    }
}

static void fill(struct dense *d, unsigned seed) {
    d->size = DENSE;
    for (int r = 0; r < DENSE; r++)
        for (int c = 0; c < DENSE; c++)
            d->cells[r][c] = (r == c ? DENSE : 0) + (r * 31 + c * 17 + seed) % 23;
}

static NOINLINE int advance(struct lanes *lanes, size_t count, float time) {
    int alive = 0;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < LANES; k++) {
            for (int axis = 0; axis < 3; axis++) {
                lanes[i].velocity[axis][k] -= lanes[i].position[axis][k] * time;
                lanes[i].position[axis][k] += lanes[i].velocity[axis][k] * time;
            }
            lanes[i].alive[k] = lanes[i].position[0][k] < 2;
            alive += lanes[i].alive[k];
        }
    return alive;
}

static NOINLINE double evaluate(double at) {
    double sum = 0;
    for (int p = 0; p < 32; p++) {
        const struct polynomial *f = &polynomials[p];
        if (at < f->low || at > f->high) continue;
        double value = f->coefficients[f->degree];
        for (int k = f->degree - 1; k >= 0; k--) value = value * at + f->coefficients[k];
        sum += value;
    }
    return sum;
}

static NOINLINE void follow(struct orbit *orbits, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct orbit *o = &orbits[i];
        double re = creal(o->at), im = cimag(o->at);
        if (re * re + im * im > 4 || o->steps == 63) {
            escape_counts[o->steps]++;
            o->at = 0;
            o->steps = 0;
        } else {
            o->at = (re * re - im * im) + (2 * re * im) * I + o->seed;
            o->steps++;
        }
    }
}

static NOINLINE void mix(int volume) {
    for (int i = 0; i < 1024; i++) {
        long sum = 0;
        for (int c = 0; c < 4; c++) sum += samples[c][i] * volume;
        mixed[i] = (mixed[i] + sum) >> 1;
    }
}

static struct vector new_vector(unsigned length) {
    return (struct vector){length, 1, HEAP_CALLOC(double, length)};
}

static void laplace(struct matrix *m) {
    m->starts = HEAP_CALLOC(unsigned, UNKNOWNS + 1);
    for (int r = 0; r < UNKNOWNS; r++) {
        const int near[5] = {r - SIDE, r - 1, r, r + 1, r + SIDE};
        for (int k = 0; k < 5; k++) {
            if (near[k] < 0 || near[k] >= UNKNOWNS) continue;
            if (m->entries % 512 == 0) {
                m->columns = HEAP_REALLOC(m->columns, unsigned, m->entries + 512);
                m->values = HEAP_REALLOC(m->values, double, m->entries + 512);
            }
            m->columns[m->entries] = near[k];
            m->values[m->entries++] = k == 2 ? 4.1 : -1;
        }
        m->starts[++m->rows] = m->entries;
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(polynomials, "struct polynomial []");
    TR_GLOBAL(escape_counts, "unsigned []");
    TR_GLOBAL(samples, "int16_t []");
    TR_GLOBAL(mixed, "long []");
    TR_GLOBAL(dense, "struct dense");
    TR_CHECK(struct solver, history);
    TR_CHECK(struct lanes, alive);
    TR_CHECK(struct dense, cells);
    struct matrix *matrix = HEAP_CALLOC(struct matrix, 1);
    laplace(matrix);
    struct solver *solver = HEAP_CALLOC(struct solver, 1);
    solver->matrix = matrix;
    solver->x = new_vector(UNKNOWNS);
    solver->residual = new_vector(UNKNOWNS);
    solver->direction = new_vector(UNKNOWNS);
    solver->product = new_vector(UNKNOWNS);
    struct lanes *lanes = HEAP_CALLOC(struct lanes, 80);
    for (int i = 0; i < 80; i++) lanes[i].position[i % 3][i % LANES] = 1;
    struct orbit *orbits = HEAP_CALLOC(struct orbit, 600);
    for (int i = 0; i < 600; i++)
        orbits[i].seed = (i % 40 * 0.06 - 1.9) + (i / 40 * 0.15 - 1.1) * I;
    for (int p = 0; p < 32; p++) {
        polynomials[p] = (struct polynomial){
            {1, 0.5, 0.25, -0.1, 0.02, -0.003}, 2 + p % 4, p * 0.1f - 2, p * 0.1f + 1};
        for (int i = 0; i < 128; i++) samples[p % 4][(p / 4) * 128 + i] = tr_rand() % 4000;
    }
    double sum = 0;
    for (unsigned t = 0; tr_more(); t++) {
        if (t % 8 == 0) restart(solver);
        for (int k = 0; k < 3; k++) sum += iterate(solver);
        if (t % 2 == 0) fill(&dense, t);
        if (t % 2 == 0) factorise(&dense);
        for (int k = 0; k < 6; k++) sum += advance(lanes, 80, 0.01f);
        for (int k = 0; k < 200; k++) sum += evaluate(k * 0.02 - 2);
        for (int k = 0; k < 12; k++) follow(orbits, 600);
        for (int k = 0; k < 4; k++) mix(k);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
