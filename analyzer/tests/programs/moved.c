// Accesses of all forms that move a value between memory and a register, to numbers of every size.
#include <stdatomic.h>
#include <stdint.h>

static struct {
    _Atomic int8_t small;
    _Atomic uint16_t middle;
    _Atomic int32_t number;
    _Atomic int64_t large;
    char text[16];
    int last;
} g;

static int64_t sum;

__attribute__((noinline)) static int64_t turn(int64_t by) {
    int64_t old = atomic_exchange(&g.small, (int8_t)by) + atomic_exchange(&g.middle, (uint16_t)(by * 3));
    old += atomic_exchange(&g.number, (int32_t)-by) + atomic_fetch_add(&g.large, by << 33);
    int32_t expected = by & 1 ? (int32_t)-by : 7;
    old += atomic_compare_exchange_strong(&g.number, &expected, (int32_t)by * 5);
    int64_t wide = by & 2 ? 1 : atomic_load(&g.large);
    old += atomic_compare_exchange_strong(&g.large, &wide, -by);
    int8_t tiny = (int8_t)by;
    old += atomic_compare_exchange_strong(&g.small, &tiny, 3);
    g.text[by & 15] = (char)(by >> 2);
    g.text[by + 1 & 15] = -1;
    *(volatile int *)&g.last = -1;
    return old + atomic_load(&g.middle) + g.text[by + 2 & 15];
}

int main(void) {
    for (int64_t round = 0; round < 200; round++)
        sum += turn(round);
    return sum == 42;
}
