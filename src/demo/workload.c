/*
 * A small order book, as food for `dataspace demo`: its memory time concentrates in a few named
 * fields, so that one sees at a glance whether they are found.
 *
 * What to expect: `order.price` and `order.next` (a chain that no prefetcher can follow, over two
 * cache lines an order), `counters[]` and `particle.speed` (random places of arrays), `bucket.head`,
 * and a little of `settings` and of the stack-local `tally`. All of it together is larger than
 * usual caches.
 *
 * Runs until its standard input closes, or at most MAX_SECONDS.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    N_ORDERS = 1 << 20,
    N_BUCKETS = 1 << 18,
    N_PARTICLES = 1 << 20,
    N_COUNTERS = 1 << 20,
    N_MATCHES = 10000,
    N_MOVES = 20000,
    N_COUNTED = 20000,
    MAX_SECONDS = 3600,
};

struct position {
    int x;
    int y;
};

struct order {
    long id;
    long price;
    struct position shelf;
    char note[40];
    struct order *next;
};

struct bucket {
    struct order *head;
    unsigned length;
};

struct particle {
    double x, y, z;
    double speed[3];
    unsigned cell;
};

struct configuration {
    long tick_size;
    long limit;
    int is_open;
};

struct tally {
    long n_matched;
    long volume;
    long worst;
};

struct configuration settings = {.tick_size = 5, .limit = 100000, .is_open = 1};
long counters[N_COUNTERS];

static struct bucket table[N_BUCKETS];
static struct order *orders;
static struct particle *particles;
static uint64_t seed = 88172645463325252u;

/* Marsaglia's xorshift: the C library's rand() would show up in the profile. */
static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill_table(void)
{
    for (long i = 0; i < N_ORDERS; i++) {
        struct order *order = &orders[i];
        struct bucket *bucket = &table[next_random() % N_BUCKETS];
        order->id = i;
        order->price = (long)(next_random() % 200000);
        order->shelf.x = (int)(i % 640);
        order->shelf.y = (int)(i / 640);
        order->next = bucket->head;
        bucket->head = order;
        bucket->length++;
    }
    for (long i = 0; i < N_PARTICLES; i++)
        particles[i].cell = (unsigned)(next_random() % N_COUNTERS);
}

__attribute__((noinline)) static long match_orders(void)
{
    struct tally tally = {0, 0, 0};
    for (int step = 0; step < N_MATCHES; step++) {
        struct bucket *bucket = &table[next_random() % N_BUCKETS];
        for (struct order *order = bucket->head; order; order = order->next) {
            if (order->price > settings.limit)
                continue;
            tally.n_matched++;
            tally.volume += order->price;
            order->shelf.y++;
        }
    }
    return tally.n_matched + tally.volume;
}

__attribute__((noinline)) static void move_particles(void)
{
    for (int step = 0; step < N_MOVES; step++) {
        struct particle *particle = &particles[next_random() % N_PARTICLES];
        particle->x += particle->speed[0] * 0.01;
        particle->speed[0] -= particle->x;
        counters[particle->cell]++;
    }
}

__attribute__((noinline)) static long count_stock(void)
{
    volatile struct tally tally = {0, 0, 0};
    for (int i = 0; i < N_COUNTED; i++) {
        tally.volume += counters[i] * settings.tick_size;
        if (counters[i] > tally.worst)
            tally.worst = counters[i];
    }
    return tally.worst;
}

static int is_input_closed(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(void)
{
    /* Started from a memfd it would be called after the descriptor's number. */
    prctl(PR_SET_NAME, "dataspace-demo");
    orders = calloc(N_ORDERS, sizeof *orders);
    particles = calloc(N_PARTICLES, sizeof *particles);
    if (!orders || !particles)
        return 1;
    fill_table();
    time_t end = time(NULL) + MAX_SECONDS;
    long sum = 0;
    while (!is_input_closed() && time(NULL) < end) {
        sum += match_orders();
        move_particles();
        sum += count_stock();
    }
    printf("%ld\n", sum);
    return 0;
}
