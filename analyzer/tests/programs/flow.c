// Ways through functions that no direct jump shows: a switch, labels as values, tail calls, parts
// that were moved away. Tells the addresses of its labels.
#include "truth.h"

volatile int sink;

__attribute__((noinline)) int chosen(int which, int y) {
    switch (which) {
    case 0: return y + 1;
    case 1: y *= 3; // falls through
    case 2: y += sink; break;
    case 3: sink = y; break;
    case 4: return y ^ 5;
    case 5: y = sink * y; break;
    case 7: y |= 64; break;
    case 8: y -= 9; break;
    case 9: return sink;
    default: y = -1;
    }
    sink += y;
    return y * 2;
}

#define STEPS                                                                                      \
    a: s += 1; NEXT;                                                                               \
    b: s *= 3; NEXT;                                                                               \
    c: s ^= sink; NEXT;                                                                            \
    d: sink = s; NEXT;                                                                             \
    e: return s;

#define TELL_LABELS(name)                                                                          \
    if (!p) {                                                                                      \
        const void *labels[] = {&&a, &&b, &&c, &&d, &&e};                                          \
        for (int i = 0; i < 5; i++)                                                                \
            printf("&" name ".%d %lu\n", i, (unsigned long)labels[i]);                             \
        return 0;                                                                                  \
    }

__attribute__((noinline)) int by_address(const unsigned char *p) {
    static const void *const table[] = {&&a, &&b, &&c, &&d, &&e};
    int s = 0;
    TELL_LABELS("by_address")
#define NEXT goto *table[*p++]
    NEXT;
    STEPS
#undef NEXT
}

__attribute__((noinline)) int by_distance(const unsigned char *p) {
    static const int table[] = {&&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a};
    int s = 0;
    TELL_LABELS("by_distance")
#define NEXT goto next
next:
    goto *(&&a + table[*p++]);
    STEPS
#undef NEXT
}

struct method { int (*run)(int); };

static int twice(int x) { return 2 * x + sink; }
static int less(int x) { return x - sink; }
struct method methods[] = {{twice}, {less}};

__attribute__((noinline)) int tail(struct method *method, int x) {
    if (x < 0)
        return 0;
    sink++;
    return method->run(x);
}

__attribute__((noinline, cold)) void complain(int x) { sink ^= x; }

__attribute__((noinline)) int split(const int *p, int n) {
    int s = p[0];
    if (__builtin_expect(s < 0, 0)) {
        complain(s);
        s = sink + p[1];
        complain(s);
    }
    for (int i = 1; i < n; i++)
        s = (s * 3) ^ (p[i] + sink);
    return s;
}

int main(void) {
    print_image();
    const unsigned char path[] = {0, 1, 2, 3, 4};
    const int numbers[] = {1, -2, 3};
    by_address(0);
    by_distance(0);
    int s = by_address(path) + by_distance(path) + split(numbers, 3);
    for (int i = 0; i < 10; i++)
        s += chosen(i, s) + tail(&methods[i & 1], i);
    return s == 7;
}
