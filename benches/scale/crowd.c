// So many threads that sleep, or so many mappings that one thread walks over; ends with its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct cell { long key; long count; };
static struct cell cells[4096];
static volatile long sum;

static void walk(void) {
    for (int i = 0; i < 4096; i++) sum += cells[i].key;
}

static void *sleeper(void *unused) {
    pause();
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long n = atol(argv[2]);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 * 1024);
    if (strcmp(argv[1], "threads") == 0) {
        for (long i = 0; i < n; i++) {
            pthread_t thread;
            if (pthread_create(&thread, &small, sleeper, 0) != 0) return 1;
        }
    }
    if (strcmp(argv[1], "mappings") == 0) {
        size_t n_bytes = (size_t)n * 8192;
        char *place = mmap(0, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        // Every other one readable: neighbours of one kind would be one mapping.
        for (long i = 0; i < n / 2; i++)
            if (mprotect(place + i * 16384, 4096, PROT_READ) != 0) return 1;
    }
    printf("ready\n");
    fflush(stdout);
    fd_set input;
    for (;;) {
        struct timeval pause_time = {0, strcmp(argv[1], "sleep") == 0 ? 200000 : 1000};
        FD_ZERO(&input);
        FD_SET(0, &input);
        if (select(1, &input, 0, 0, &pause_time) > 0) _exit(0);
        walk();
    }
}
