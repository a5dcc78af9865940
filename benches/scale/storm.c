// Forks and executes /bin/true as fast as the machine can, for so many seconds; says how often.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    time_t end = time(0) + (argc > 1 ? atol(argv[1]) : 1);
    long n = 0;
    while (time(0) < end) {
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        if (child > 0 && waitpid(child, 0, 0) == child) n++;
    }
    fprintf(stderr, "%ld children\n", n);
    return 0;
}
