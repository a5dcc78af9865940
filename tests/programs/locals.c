/*
 * Fact: at -O0 every local is on the stack, and DWARF tells where (fbreg): the members of a local
 * struct, a local array and a parameter are told apart.
 *
 * Prints "local.MEMBER+OFFSET SIZE" lines, then "ready"; works until it is killed. Compile
 * it -O0.
 */
#include <stddef.h>
#include <stdio.h>

struct local {
    long count;
    int weights[16];
    double mean;
};

enum { ROUNDS = 100000 };

__attribute__((noinline)) double average(int n)
{
    struct local local = {0};
    for (int i = 0; i < n; i++) {
        local.count++;
        local.weights[i % 16] += i;
        local.mean += (double)local.weights[i % 16] / (double)local.count;
    }
    return local.mean;
}

#define MEMBER(member)                                                                            \
    printf("local." #member "+%zu %zu\n", offsetof(struct local, member),                          \
           sizeof(((struct local *)0)->member))

int main(void)
{
    MEMBER(count);
    MEMBER(weights);
    MEMBER(mean);
    puts("ready");
    fflush(stdout);
    for (;;)
        average(ROUNDS);
}
