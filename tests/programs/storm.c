/* Starts and executes /bin/true, one after the other, as fast as that goes, for so many milliseconds;
 * prints how often. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    double end_ms = now_ms() + (argc > 1 ? atof(argv[1]) : 1000);
    long n_children = 0;
    while (now_ms() < end_ms) {
        pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(pid, NULL, 0);
        n_children++;
    }
    printf("%ld\n", n_children);
    return 0;
}
