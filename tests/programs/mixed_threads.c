/* Threads of two users: the first is USER's, the other stays root's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile long secret;
static void *stay(void *unused) { for (;;) secret++; return unused; }
int main(int argc, char **argv)
{
    pthread_t thread;
    long user = atol(argv[1]);
    pthread_create(&thread, NULL, stay, NULL);
    syscall(SYS_setgroups, 0, NULL);
    syscall(SYS_setresgid, user, user, user);
    syscall(SYS_setresuid, user, user, user);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    puts("ready");
    fflush(stdout);
    for (;;) secret++;
}
