/* Functions that are called in every way, each of which the next instruction shows. */
#include "truth.h"

struct operations { long version; long (*start)(long); long (*stop)(long); };
FUNCTION long start(long n) { return n + 1; }
FUNCTION long stop(long n) { return n - 1; }
struct operations operations = {1, start, stop};
FUNCTION long by_member(const struct operations *with) { return with->stop(3) + 1; }
FUNCTION long by_register(long (*to)(long)) { return to(4) + 1; }
FUNCTION long by_name(long n) { return stop(n) + 1; }

/* What static pointers hold: this one nothing but `start`, that one anything, for its address is given away. */
long (*kept)(long);
long (*open)(long, long);
FUNCTION long pass_on(long n) { return kept(n); }
FUNCTION long pass_both(long n, long m) { return open(n, m); }
struct brakes { long version; long (*slow)(long, long); };
FUNCTION long slow(long n, long m) { return n - m; }
struct brakes brakes = {1, slow};
FUNCTION long by_brakes(const struct brakes *with) { return with->slow(3, 4) + 1; }

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
    ADDRESS("slow", slow);
    ADDRESS("brakes", &brakes);
    ADDRESS("open", &open);
    print_image();
    kept = start;
    open = slow;
    return pass_on(1) + pass_both(2, 3) + by_brakes(&brakes) + by_member(&operations) + by_register(start) + by_name(n) + ask(n) == 100 && words;
}
