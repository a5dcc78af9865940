/* Matrices, stencils and reductions: nested loops that a compiler vectorises. */
#define N 7

static double a[N][N], b[N][N], c[N][N];
static float grid[2][12][12];
static int histogram[16];
static short samples[90];
static unsigned char image[96], blurred[96];

__attribute__((noinline)) static void fill(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i + j * 0.5;
            b[i][j] = i == j ? 2.0 : 0.25 * (i - j);
        }
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++)
            grid[0][i][j] = (float)((i * 7 + j * 3) % 11);
    for (int i = 0; i < 90; i++)
        samples[i] = (short)(i * i % 311 - 150);
    for (int i = 0; i < 96; i++)
        image[i] = (unsigned char)(i * 37);
}

__attribute__((noinline)) static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

__attribute__((noinline)) static void stencil(int from)
{
    int to = 1 - from;
    for (int i = 1; i < 11; i++)
        for (int j = 1; j < 11; j++)
            grid[to][i][j] = 0.25f * (grid[from][i - 1][j] + grid[from][i + 1][j]
                                      + grid[from][i][j - 1] + grid[from][i][j + 1]);
}

__attribute__((noinline)) static long dot(const short *x, const short *y, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

__attribute__((noinline)) static void count(void)
{
    for (int i = 0; i < 96; i++)
        histogram[image[i] >> 4]++;
}

__attribute__((noinline)) static void blur(const unsigned char *restrict from,
                                           unsigned char *restrict to, int n)
{
    for (int i = 1; i + 1 < n; i++)
        to[i] = (unsigned char)((from[i - 1] + 2 * from[i] + from[i + 1]) / 4);
}

__attribute__((noinline)) static int largest(const short *x, int n)
{
    int best = x[0], at = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > best) {
            best = x[i];
            at = i;
        }
    return at;
}

__attribute__((noinline)) static void transpose(double (*m)[N])
{
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++) {
            double t = m[i][j];
            m[i][j] = m[j][i];
            m[j][i] = t;
        }
}

__attribute__((noinline)) static void prefix_sums(int *x, int n)
{
    for (int i = 1; i < n; i++)
        x[i] += x[i - 1];
}

int main(void)
{
    fill();
    multiply();
    transpose(c);
    multiply();
    for (int i = 0; i < 4; i++)
        stencil(i & 1);
    long total = dot(samples, samples + 20, 70) + largest(samples, 90);
    count();
    blur(image, blurred, 96);
    prefix_sums(histogram, 16);
    for (int i = 0; i < 96; i++)
        total += blurred[i] * (long)i;
    return (int)(total + (long)c[3][4] + (long)grid[0][5][5] + histogram[15]) & 1;
}
