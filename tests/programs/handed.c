// Members that only library functions touch, one way for each number that is the first argument; the
// second is how often. Prints where the objects are, and offset and size of the members: what `script`
// says of an address has to be what is there.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct employee { long id; char name[1500]; char city[1500]; int room; };
struct order { int number; unsigned char body[4000]; };
struct key { uint64_t words[40]; };

static struct employee *employees;
static struct order *orders;
static struct key *keys;

enum { N = 512 };

__attribute__((noinline)) static long compare(struct employee *a, const char *with, size_t n) {
    return memcmp(a->name, with, n);
}
__attribute__((noinline)) static size_t length(struct employee *a) { return strlen(a->city); }
__attribute__((noinline)) static void clear(struct order *o, size_t n) { memset(o->body, 1, n); }
__attribute__((noinline)) static void copy(struct key *to, const struct key *from, size_t n) {
    memcpy(to, from, n);
}
// Two calls out, through a function that knows nothing of the type.
__attribute__((noinline)) static size_t any_length(const void *text) { return strlen(text) + 1; }

int main(int argc, char **argv) {
    employees = calloc(N, sizeof *employees);
    orders = calloc(N, sizeof *orders);
    keys = calloc(N, sizeof *keys);
    for (int i = 0; i < N; i++) {
        memset(employees[i].name, 'n', sizeof employees[i].name - 1);
        memset(employees[i].city, 'c', sizeof employees[i].city - 1);
    }
    int which = argc > 1 ? atoi(argv[1]) : 0;
    long n_rounds = argc > 2 ? atol(argv[2]) : 0;
    volatile size_t body_bytes = sizeof orders->body, key_bytes = sizeof *keys;
    char *other = strdup(employees[0].name);
    size_t n = strlen(other), sum = 0;
    printf("employees %p %zu\n", (void *)employees, sizeof *employees);
    printf("name %zu %zu\n", offsetof(struct employee, name), sizeof employees->name);
    printf("city %zu %zu\n", offsetof(struct employee, city), sizeof employees->city);
    printf("orders %p %zu\n", (void *)orders, sizeof *orders);
    printf("body %zu %zu\n", offsetof(struct order, body), sizeof orders->body);
    printf("keys %p %zu\n", (void *)keys, sizeof *keys);
    fflush(stdout);
    for (long round = 0; round < n_rounds; round++) {
        int i = round % N;
        if (which == 0) sum += compare(&employees[i], other, n);
        if (which == 1) sum += length(&employees[i]);
        if (which == 2) clear(&orders[i], body_bytes);
        if (which == 3) copy(&keys[i], &keys[(i * 7 + 1) % N], key_bytes);
        if (which == 4) sum += any_length(employees[i].city);
    }
    return (int)sum;
}
