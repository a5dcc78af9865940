/* Executes itself as a second stage, which has another hot structure than the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct first { long a; long spin[63]; };
struct second { long b; long spin[63]; };
static struct first one[4096];
static struct second two[4096];

__attribute__((noinline)) static void spin_first(struct first *p, long n)
{
    for (long i = 0; i < n; i++) {
        p[i & 4095].a++;
        __asm__ volatile("" : : : "memory");
    }
}

__attribute__((noinline)) static void spin_second(struct second *p, long n)
{
    for (long i = 0; i < n; i++) {
        p[i & 4095].b++;
        __asm__ volatile("" : : : "memory");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "second")) {
        spin_second(two, 300000000);
        return 0;
    }
    spin_first(one, 300000000);
    execl("/proc/self/exe", argv[0], "second", (char *)NULL);
    return 1;
}
