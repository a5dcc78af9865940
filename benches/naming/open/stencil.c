/* Numeric code: static and allocated grids, a structure of arrays, complex numbers, 3-D blocks. */
#include "../heap.h"
#include <complex.h>
#include <math.h>

#define ROWS 130
#define COLUMNS 258
#define BODIES 2048
#define POINTS 1024
#define BINS 64

struct bodies {
    size_t count;
    float *x, *y, *z;
    float *mass;
    double energy;
};

struct grid {
    int rows, columns;
    double spacing, residual;
    double *cells;
};

struct block {
    float pressure[8][8][8];
    float wall[6];
    unsigned updates;
};

struct turn {
    double cosine, sine;
};

struct bin {
    double complex amplitude;
    double power;
    unsigned peaks;
};

struct statistics {
    double minimum, maximum, sum, sum_of_squares;
    unsigned bins[BINS];
};

static double heat[2][ROWS][COLUMNS];
static float kernel[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
static struct turn turns[POINTS / 2];
static struct statistics statistics;

static NOINLINE double diffuse(double (*restrict to)[COLUMNS], double (*restrict from)[COLUMNS]) {
    double change = 0;
    for (int r = 1; r < ROWS - 1; r++)
        for (int c = 1; c < COLUMNS - 1; c++) {
            double next =
                0.25 * (from[r - 1][c] + from[r + 1][c] + from[r][c - 1] + from[r][c + 1]);
            change += next - from[r][c];
            to[r][c] = next;
        }
    return change;
}

static NOINLINE void relax(struct grid *grid) {
    double residual = 0;
    for (int r = 1; r < grid->rows - 1; r++)
        for (int c = 1 + (r & 1); c < grid->columns - 1; c += 2) {
            double *cell = &grid->cells[r * grid->columns + c];
            double d = cell[-1] + cell[1] + cell[-grid->columns] + cell[grid->columns] - 4 * *cell;
            *cell += 0.4 * d * grid->spacing;
            residual += d * d;
        }
    grid->residual = residual;
}

static NOINLINE void smooth(float *restrict out, const float *restrict in, size_t n) {
    for (size_t i = 2; i + 2 < n; i++) {
        float sum = 0;
        for (int k = 0; k < 5; k++) sum += kernel[k] * in[i + k - 2];
        out[i] = sum;
    }
}

static NOINLINE void attract(struct bodies *b, size_t target) {
    float x = b->x[target], y = b->y[target], z = b->z[target], energy = 0;
    for (size_t i = 0; i < b->count; i++) {
        float dx = b->x[i] - x, dy = b->y[i] - y, dz = b->z[i] - z;
        energy += b->mass[i] / (dx * dx + dy * dy + dz * dz + 0.01f);
    }
    b->energy += energy;
    b->x[target] += 1e-4f * energy;
}

static NOINLINE void transform(struct bin *bins) {
    for (size_t half = 1; half < POINTS; half *= 2)
        for (size_t start = 0; start < POINTS; start += 2 * half)
            for (size_t k = 0; k < half; k++) {
                const struct turn *t = &turns[k * (POINTS / 2 / half)];
                double complex *even = &bins[start + k].amplitude;
                double complex *odd = &bins[start + k + half].amplitude;
                double re = creal(*odd), im = cimag(*odd);
                double complex turned =
                    re * t->cosine - im * t->sine + (re * t->sine + im * t->cosine) * I;
                *odd = 0.5 * (*even - turned);
                *even = 0.5 * (*even + turned);
            }
}

static NOINLINE double powers(struct bin *bins) {
    double most = 0;
    for (size_t k = 0; k < POINTS; k++) {
        double re = creal(bins[k].amplitude), im = cimag(bins[k].amplitude);
        bins[k].power = 0.9 * bins[k].power + re * re + im * im;
        if (bins[k].power > most) {
            most = bins[k].power;
            bins[k].peaks++;
        }
    }
    return most;
}

static NOINLINE void settle(struct block *blocks, size_t count) {
    for (size_t b = 0; b < count; b++) {
        struct block *block = &blocks[b];
        for (int i = 1; i < 7; i++)
            for (int j = 1; j < 7; j++)
                for (int k = 1; k < 7; k++)
                    block->pressure[i][j][k] =
                        0.5f * block->pressure[i][j][k] +
                        0.25f * (block->pressure[i - 1][j][k] + block->pressure[i][j][k + 1]) +
                        1e-3f * block->wall[(i + j) % 6];
        block->updates++;
    }
}

static NOINLINE void measure(struct statistics *s, const float *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float v = values[i];
        if (v < s->minimum) s->minimum = v;
        if (v > s->maximum) s->maximum = v;
        s->sum += v;
        s->sum_of_squares += v * v;
        s->bins[(int)fabsf(v * BINS) % BINS]++;
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    TR_GLOBAL(heat, "double []");
    TR_GLOBAL(kernel, "float []");
    TR_GLOBAL(turns, "struct turn []");
    TR_GLOBAL(statistics, "struct statistics");
    TR_CHECK(struct grid, cells);
    TR_CHECK(struct block, wall);
    TR_CHECK(struct statistics, bins);
    struct bodies *bodies = HEAP_CALLOC(struct bodies, 1);
    struct grid *grid = HEAP_CALLOC(struct grid, 1);
    struct block *blocks = HEAP_CALLOC(struct block, 12);
    struct bin *signal = HEAP_CALLOC(struct bin, POINTS);
    float *smoothed = HEAP_CALLOC(float, BODIES);
    bodies->count = BODIES;
    bodies->x = HEAP_CALLOC(float, BODIES);
    bodies->y = HEAP_CALLOC(float, BODIES);
    bodies->z = HEAP_CALLOC(float, BODIES);
    bodies->mass = HEAP_CALLOC(float, BODIES);
    for (size_t i = 0; i < BODIES; i++) {
        bodies->x[i] = tr_rand() % 1000 * 1e-3f;
        bodies->y[i] = tr_rand() % 1000 * 1e-3f;
        bodies->mass[i] = 1.0f + tr_rand() % 5;
    }
    *grid = (struct grid){80, 120, 0.5, 0, HEAP_CALLOC(double, 80 * 120)};
    for (int c = 0; c < 120; c++) grid->cells[c] = heat[0][0][c] = heat[1][0][c] = 100;
    const struct turn step = {0.99998117528, -0.00613588465}; /* a POINTS-th of a turn */
    turns[0].cosine = 1;
    for (int k = 1; k < POINTS / 2; k++) {
        const struct turn *t = &turns[k - 1];
        turns[k].cosine = t->cosine * step.cosine - t->sine * step.sine;
        turns[k].sine = t->cosine * step.sine + t->sine * step.cosine;
    }
    for (int k = 0; k < POINTS; k++) signal[k].amplitude = k % 17;
    for (int b = 0; b < 12; b++) blocks[b].wall[b % 6] = 1;
    double sum = 0;
    for (int t = 0; tr_more(); t++) {
        sum += diffuse(heat[~t & 1], heat[t & 1]);
        for (int k = 0; k < 4; k++) relax(grid);
        for (int k = 0; k < 6; k++) attract(bodies, tr_rand() % BODIES);
        for (int k = 0; k < 4; k++) smooth(smoothed, bodies->x, BODIES);
        transform(signal);
        settle(blocks, 12);
        measure(&statistics, smoothed, BODIES);
        sum += powers(signal);
    }
    tr_sink = (uint64_t)sum;
    return 0;
}
