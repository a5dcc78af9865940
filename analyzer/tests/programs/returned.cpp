// What functions give back in memory, and what takes two registers or an address to pass.
#include "truth.h"

struct Wide { long a, b; double c; };
struct Pair { long first; char *second; };
struct Mixed { double real; long whole; };
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
    long sum = pass_pair(&wide, words[0]) + pass_mixed(&wide, 2);
    return (int)(sum + take_owner(own(2), &wide) + owner.held->b) & 0;
}
