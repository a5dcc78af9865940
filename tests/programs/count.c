/* Adds to one global a given number of times, by one instruction: every access can be counted. */
#include <stdlib.h>

long counter;

__attribute__((noinline)) static void bump(long n)
{
    for (long i = 0; i < n; i++) {
        counter++;
        __asm__ volatile("" : : : "memory");
    }
}

int main(int argc, char **argv)
{
    bump(argc > 1 ? atol(argv[1]) : 1000);
    return 0;
}
