// What functions give back in memory, and what takes two registers or an address to pass.
#include "truth.h"

struct Wide { long a, b; double c; };
struct Pair { long first; char *second; };
struct Mixed { double real; long whole; };
struct Other { long x, y; };
typedef double Vector __attribute__((vector_size(32)));
struct Shared { Wide *held; long *count; Shared(const Shared &); Shared() : held(0), count(0) {} ~Shared(); };
Shared::Shared(const Shared &other) : held(other.held), count(other.count) {}
Shared::~Shared() { count = 0; }
struct Owner {
    Wide *held;
    explicit Owner(Wide *held) : held(held) {}
    Owner(Owner &&other) : held(other.held) { other.held = nullptr; }
    ~Owner() { delete held; }
};

FUNCTION long counted(long by) { static long n; return n += by; }
FUNCTION Wide make(long a) {
    long b = counted(a);
    return {a, b, 1.5};
}
FUNCTION Owner own(long a) {
    long b = counted(a);
    return Owner(new Wide{a, b, 2.5});
}
FUNCTION long take_pair(Pair pair, Wide *wide) { return pair.first + *pair.second + wide->a; }
FUNCTION long take_mixed(Mixed mixed, Wide *wide) { return mixed.whole + (long)mixed.real + wide->b; }
FUNCTION long take_owner(Owner owner, Wide *wide) { return owner.held->a + wide->a; }
FUNCTION long take_shared(Shared, Wide *wide, Other *other) { return wide->a + other->x; }
FUNCTION __attribute__((target("avx"))) Vector take_vector(Wide *wide) {
    return Vector{wide->c, wide->c, 0, 0};
}
FUNCTION long pass_shared(void *bytes, Other *other) {
    long b = ((long *)bytes)[1];
    return b + take_shared(Shared(), (Wide *)bytes, other);
}
FUNCTION __attribute__((target("avx"))) double pass_vector(void *bytes) {
    long b = ((long *)bytes)[1];
    return (double)b + take_vector((Wide *)bytes)[0];
}
FUNCTION long pass_pair(void *bytes, char *text) {
    long b = ((long *)bytes)[1];
    return take_pair({b, text}, (Wide *)bytes);
}
FUNCTION long pass_mixed(void *bytes, double real) {
    long b = ((long *)bytes)[1];
    return take_mixed({real, b}, (Wide *)bytes);
}

int main(int count, char **words) {
    MEMBER(Wide, a);
    MEMBER(Wide, b);
    MEMBER(Wide, c);
    print_image();
    Wide wide = make(count);
    Owner owner = own(count);
    Other other = {1, 2};
    if (count > 1000) count += (int)pass_vector(&wide);
    long sum = pass_shared(&wide, &other) + pass_pair(&wide, words[0]) + pass_mixed(&wide, 2);
    return (int)(sum + take_owner(own(2), &wide) + owner.held->b) & 0;
}
