/* Makes a given number of getppid system calls, as fast as it can: a flood of tracepoint samples. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (long n = argc > 1 ? atol(argv[1]) : 1000; n > 0; n--)
        syscall(SYS_getppid);
    return 0;
}
