/* Threads that are born, work on a structure and end, in two processes. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct job { long done; long pad[7]; };
static struct job jobs[64];

static void *work(void *arg)
{
    struct job *job = arg;
    for (long i = 0; i < 60000000; i++) {
        job->done++;
        __asm__ volatile("" : : : "memory");
    }
    return NULL;
}

int main(void)
{
    pid_t child = fork();
    for (int round = 0; round < 4; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, work, &jobs[round * 4 + i]);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
