/* Spends its time on known parts of globals and statics; prints where they are. */
#include <stddef.h>
#include <stdio.h>

struct point { int x, y; };
struct order { long id; struct point at[3]; double weight; };

struct order book[512];
struct point origin;
static long table[4096];

__attribute__((noinline)) static void walk(void)
{
    static long calls;
    calls++;
    for (int i = 0; i < 512; i++) {
        book[i].at[1].y += origin.x;
        table[i * 8] += book[i].id;
        __asm__ volatile("" : : : "memory");
    }
}

int main(void)
{
    printf("offset %zu\n", offsetof(struct order, at[1].y));
    printf("size %zu\n", sizeof(struct order));
    puts("ready");
    fflush(stdout);
    for (;;)
        walk();
}
