/* Makes a given number of getppid system calls, as fast as it can: a flood of tracepoint samples. With "-" in place
   of the number and a CPU behind it it stays there, says "ready", makes as many as each line of its input says,
   says how many nanoseconds they took, and ends with its input. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void flood(long n)
{
    for (; n > 0; n--)
        syscall(SYS_getppid);
}

int main(int argc, char **argv)
{
    if (argc <= 2) {
        flood(argc > 1 ? atol(argv[1]) : 1000);
        return 0;
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argv[2]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (long n; scanf("%ld", &n) == 1;) {
        long long began_ns = now_ns();
        flood(n);
        printf("%lld\n", now_ns() - began_ns);
    }
    return 0;
}
