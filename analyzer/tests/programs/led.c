/* Functions that go on to others by pointers, and what tells that they do not come back. */
#include "truth.h"

struct car { long n; long (*turn)(long, long, long); };
struct bus { long n; long (*turn)(long, long, long); };
FUNCTION long left(long a, long b, long c) { return a + b - c; }
FUNCTION long right(long a, long b, long c) { return a - b + c; }

/* Nobody changes `table`. */
struct car table = {1, left};
FUNCTION long by_table(long a, long b, long c) { return table.turn(a, b, c); }
FUNCTION long by_car(struct car *car) { return car->turn(1, 2, 3) + 1; }

/* Others may change what is in it, but only data has the address of `straight`. */
struct tram { long n; long (*turn)(long, long, long, long, long); };
FUNCTION long around(long a, long b, long c, long d, long e) { return a - b + c - d + e; }
FUNCTION long straight(long a, long b, long c, long d, long e) { return a * b - c * d + e; }
struct tram loose = {1, around}, kept = {1, straight};
FUNCTION long by_loose(long a, long b, long c, long d, long e) { return loose.turn(a, b, c, d, e); }
FUNCTION long by_tram(struct tram *tram) { return tram->turn(1, 2, 3, 4, 5) + 1; }

/* It begins with what finds out which to use, and then has that. */
FUNCTION long choose(long a, long b, long c, long d);
struct chosen { long n; long (*turn)(long, long, long, long); } chosen = {1, choose};
FUNCTION long fast(long a, long b, long c, long d) { return a * b - c * d; }
FUNCTION long choose(long a, long b, long c, long d) {
    chosen.turn = fast;
    return fast(a, b, c, d) + 1;
}
FUNCTION long dispatch(long a, long b, long c, long d) { return chosen.turn(a, b, c, d); }
struct truck { long n; long (*turn)(long, long, long, long); };
FUNCTION long by_truck(struct truck *truck) { return truck->turn(1, 2, 3, 4) + 1; }

/* Only what takes a bus jumps here. */
FUNCTION long drive(struct bus *bus) { return bus->turn(4, 5, 6); }
FUNCTION long depart(struct bus *bus) { return drive(bus); }

/* Anything may be in it, but nobody has the address of `quiet`. */
long (*open)(long);
FUNCTION static long quiet(long n) { return open(n); }
FUNCTION long loud(long n) { return open(n); }
FUNCTION long by_quiet(long n) { return quiet(n) + 1; }
FUNCTION long by_loud(long n) { return loud(n) + 1; }

/* It goes on to `loud`, as far as the file tells. */
long (*hook)(long) = by_loud;
FUNCTION long hooked(long n) { return hook(n); }
FUNCTION long by_hooked(long n) { return hooked(n) + 1; }

int main(int n, char **words) {
    ADDRESS("left", left);
    ADDRESS("right", right);
    ADDRESS("loud", loud);
    ADDRESS("loose", &loose);
    ADDRESS("fast", fast);
    ADDRESS("chosen", &chosen);
    ADDRESS("hooked", hooked);
    ADDRESS("open", &open);
    print_image();
    open = by_hooked;
    struct car car = {1, right};
    struct bus bus = {1, left};
    struct truck truck = {1, dispatch};
    return by_table(1, 2, 3) + by_car(&car) + depart(&bus) + drive(&bus) + by_truck(&truck) + by_loose(1, 2, 3, 4, 5) + by_tram(&kept) + (n > 9 ? by_quiet(n) + by_loud(n) : 0) == 100 && words;
}
