/* Connects to a socket again and again, from as many threads as is asked for, and says nothing. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void *crowd(void *unused)
{
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 3 || strlen(argv[1]) >= sizeof address.sun_path)
        return 1;
    strcpy(address.sun_path, argv[1]);
    for (int n = atoi(argv[2]); n > 0; n--) {
        pthread_t thread;
        pthread_create(&thread, NULL, crowd, NULL);
    }
    puts("ready");
    fflush(stdout);
    pause();
}
