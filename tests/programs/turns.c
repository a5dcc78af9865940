// Says where its numbers are, and goes on to change them in ways that are known. To be built without optimisation.
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct turns {
    int below;         // -3 … 3: each is the one before and one more
    uint8_t high;      // 200 … 206, with it
    short *at;         // the element of `items` with that number
    int64_t exchanged; // a thousand times `below`
} g_turns;

short items[7];

int main(void) {
    printf("items %p\nturns %p\nready\n", (void *)items, (void *)&g_turns);
    fflush(stdout);
    for (;;) {
        g_turns.below = g_turns.below == 3 ? -3 : g_turns.below + 1;
        g_turns.high = (uint8_t)(203 + g_turns.below);
        g_turns.at = &items[g_turns.below + 3];
        __atomic_exchange_n(&g_turns.exchanged, g_turns.below * 1000, __ATOMIC_SEQ_CST);
        usleep(3000);
    }
}
