/* Functions that are called in every way, each of which the next instruction shows. */
#include "truth.h"

struct operations { long version; long (*start)(long); long (*stop)(long); };
FUNCTION long start(long n) { return n + 1; }
FUNCTION long stop(long n) { return n - 1; }
struct operations operations = {1, start, stop};
FUNCTION long by_member(const struct operations *with) { return with->stop(3) + 1; }
FUNCTION long by_register(long (*to)(long)) { return to(4) + 1; }
FUNCTION long by_name(long n) { return stop(n) + 1; }

/* One that comes back to where it began, by way of another. */
FUNCTION long is_odd(long n);
FUNCTION long is_even(long n) { return n == 0 ? 1 : is_odd(n - 1); }
FUNCTION long is_odd(long n) { return n == 0 ? 0 : is_even(n - 1); }
FUNCTION long ask(long n) { return is_even(n) + 1; }

int main(int n, char **words) {
    printf("operations.stop %zu\n", offsetof(struct operations, stop));
    ADDRESS("operations", &operations);
    ADDRESS("stop", stop);
    ADDRESS("is_even", is_even);
    print_image();
    return by_member(&operations) + by_register(start) + by_name(n) + ask(n) == 100 && words;
}
