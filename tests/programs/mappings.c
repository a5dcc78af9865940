/* Maps a page of its own file as many times as its argument says, each a mapping of its own, says "ready", and
   counts. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile long counter;

int main(int argc, char **argv)
{
    int file = open("/proc/self/exe", O_RDONLY);
    for (long n = argc > 1 ? atol(argv[1]) : 0; n > 0; n--)
        if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
            return 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        counter++;
}
