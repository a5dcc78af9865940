/* Calls of every kind: leaves in loops, pointers, tables, tail calls, variadic, callbacks, longjmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

struct shape { const struct methods *methods; int a, b; };
struct methods { int (*area)(const struct shape *); void (*grow)(struct shape *, int); };
static struct shape shapes[12];
static long counter;
static jmp_buf escape;

__attribute__((noinline)) static int square(int x) { return x * x; }
__attribute__((noinline)) static int clamp(int x, int low, int high)
{
    if (x < low)
        return low;
    if (x > high)
        return high;
    return x;
}
__attribute__((noinline)) static void bump(long *p) { ++*p; }
__attribute__((noinline)) static int nothing(void) { return 0; }

static int area_of_square(const struct shape *s) { return square(s->a); }
static int area_of_box(const struct shape *s) { return s->a * s->b; }
static int area_of_line(const struct shape *s) { (void)s; return nothing(); }
static void grow(struct shape *s, int by) { s->a += by; s->b = clamp(s->b + by, 0, 20); }
static const struct methods methods[3] = {
    { area_of_square, grow }, { area_of_box, grow }, { area_of_line, grow },
};

__attribute__((noinline)) static int is_odd(unsigned n);
__attribute__((noinline)) static int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__attribute__((noinline)) static int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

__attribute__((noinline)) static long sum_of(int n, ...)
{
    va_list list;
    va_start(list, n);
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += i % 2 ? (long)va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}

__attribute__((noinline)) static long fold(const int *p, int n, long (*step)(long, int), long value)
{
    for (int i = 0; i < n; i++)
        value = step(value, p[i]);
    return value;
}
static long plus(long value, int x) { return value + x; }
static long mix(long value, int x) { return (long)((unsigned long)value * 33) ^ x; }

__attribute__((noinline)) static int find(const int *p, int n, int wanted)
{
    if (!p || n <= 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (p[i] == wanted)
            return i;
        if (p[i] > 1000)
            return -2;
    }
    return -1;
}

__attribute__((noinline)) static void dive(int n)
{
    volatile char room[40];
    room[n % 40] = (char)n;
    if (n == 0)
        longjmp(escape, 7);
    dive(n - 1);
    room[0]++;
}

__attribute__((noinline)) static void escapes(volatile int n)
{
    for (; n > 0; n--)
        if (!setjmp(escape))
            dive(n);
}

__attribute__((noinline)) static long many(long a, long b, long c, long d, long e, long f, long g,
                                           long h, struct shape s)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + s.a * s.b;
}

int main(void)
{
    int numbers[30];
    long total = 0;
    for (int i = 0; i < 12; i++)
        shapes[i] = (struct shape){ &methods[i % 3], i, 2 * i };
    for (int i = 0; i < 30; i++)
        numbers[i] = i * 17 % 40;
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < 12; i++) {
            total += shapes[i].methods->area(&shapes[i]);
            shapes[i].methods->grow(&shapes[i], round);
        }
    for (int i = 0; i < 150; i++) {
        bump(&counter);
        total += clamp(i, 10, 90) + nothing();
    }
    total += is_even(60) + is_odd(33);
    for (int i = 0; i < 12; i++)
        total += sum_of(4, i, 2.5, 3, 4.5) + find(numbers, 30, i * 3);
    long (*const steps[])(long, int) = { plus, mix, plus };
    for (int i = 0; i < 3; i++)
        total += fold(numbers, 30, steps[i], i);
    escapes(7);
    for (int i = 0; i < 20; i++)
        total += many(i, 1, 2, 3, 4, 5, i, 7, shapes[i % 12]) + abs(-i);
    return (int)(total + counter) & 1;
}
