/* Floating point: scalar, SSE by intrinsics, the mathematics library, the x87 unit. */
#include <immintrin.h>
#include <math.h>

struct body { double at[3], speed[3], mass; };
static struct body bodies[4];
static float signal[64], filtered[64];
static __m128i pixels[12];
static double table[24];
static long double exact[8];
static volatile double sink;

__attribute__((noinline)) static void advance(double dt)
{
    for (int i = 0; i < 4; i++)
        for (int k = i + 1; k < 4; k++) {
            double d[3], square = 0.01;
            for (int x = 0; x < 3; x++) {
                d[x] = bodies[i].at[x] - bodies[k].at[x];
                square += d[x] * d[x];
            }
            double pull = dt / (square * sqrt(square));
            for (int x = 0; x < 3; x++) {
                bodies[i].speed[x] -= d[x] * bodies[k].mass * pull;
                bodies[k].speed[x] += d[x] * bodies[i].mass * pull;
            }
        }
    for (int i = 0; i < 4; i++)
        for (int x = 0; x < 3; x++)
            bodies[i].at[x] += dt * bodies[i].speed[x];
}

__attribute__((noinline)) static void filter(void)
{
    static const float weight[5] = { 0.1f, 0.2f, 0.4f, 0.2f, 0.1f };
    for (int i = 2; i < 62; i++) {
        float sum = 0;
        for (int k = 0; k < 5; k++)
            sum += signal[i + k - 2] * weight[k];
        filtered[i] = fabsf(sum) < 0.5f ? 0 : sum;
    }
}

__attribute__((noinline)) static int blend(void)
{
    __m128i sum = _mm_setzero_si128();
    for (int i = 0; i < 12; i++) {
        __m128i p = _mm_load_si128(&pixels[i]);
        p = _mm_adds_epu8(p, _mm_set1_epi8(17));
        __m128i mask = _mm_cmpgt_epi8(p, _mm_loadu_si128((const __m128i *)((const char *)pixels + i)));
        _mm_store_si128(&pixels[i], _mm_and_si128(p, mask));
        sum = _mm_add_epi64(sum, _mm_sad_epu8(p, mask));
    }
    return _mm_cvtsi128_si32(sum);
}

__attribute__((noinline)) static double root(double x)
{
    double guess = x;
    while (fabs(guess * guess - x) > 1e-9)
        guess = 0.5 * (guess + x / guess);
    return guess;
}

__attribute__((noinline)) static int mandelbrot(double re, double im)
{
    double x = 0, y = 0;
    int n = 0;
    for (; n < 40 && x * x + y * y < 4.0; n++) {
        double t = x * x - y * y + re;
        y = 2 * x * y + im;
        x = t;
    }
    return n;
}

static int sparse[40], picked[8];

__attribute__((noinline)) static void pick(int n)
{
#ifdef __AVX2__
    __m256i at = _mm256_setr_epi32(1, 30, 7, n, 22, 9, 4, 17);
    __m256i some = _mm256_cmpgt_epi32(at, _mm256_set1_epi32(8));
    __m256i found = _mm256_i32gather_epi32(sparse, at, 4);
    _mm256_maskstore_epi32(picked, some, found);
    found = _mm256_add_epi32(found, _mm256_maskload_epi32(picked, some));
    _mm256_storeu_si256((__m256i *)picked, found);
#else
    for (int i = 0; i < 8; i++)
        picked[i] = sparse[(i * 7 + n) % 40];
#endif
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        bodies[i].mass = 1.0 / (i + 1);
        bodies[i].at[i % 3] = i + 1;
        bodies[i].speed[(i + 1) % 3] = 0.1 * i;
    }
    for (int i = 0; i < 10; i++)
        advance(0.01);
    for (int i = 0; i < 64; i++)
        signal[i] = (float)(i % 9) - 4.0f;
    filter();
    for (int i = 0; i < 12; i++)
        pixels[i] = _mm_set1_epi16((short)(i * 1001));
    long total = blend();
    for (int i = 0; i < 24; i++)
        table[i] = sin(i * 0.3) + exp(-i * 0.1) * pow(i + 1, 0.7) + atan2(i, 3) + root(i + 2);
    for (int i = 0; i < 8; i++)
        exact[i] = i ? exact[i - 1] * 1.25L + 1 : 1;
    for (int i = 0; i < 12; i++) {
        sparse[i * 3] = i;
        pick(i);
    }
    for (int i = 0; i < 6; i++)
        total += picked[i] + mandelbrot(-0.7 + 0.1 * i, 0.3);
    sink = table[5] + (double)exact[7] + filtered[30] + bodies[0].at[0];
    return (int)(total + (long)sink) & 1;
}
