// Functions that exceptions pass through: what is destroyed and caught runs from landing pads.
#include "truth.h"
#include <stdexcept>

volatile int sink;

struct guard {
    int k;
    explicit guard(int k) : k(k) { sink += k; }
    ~guard() { sink -= k; }
};

__attribute__((noinline)) int thrower(int x) {
    guard g(x);
    if (x % 3 == 0)
        throw std::runtime_error("three");
    if (x % 5 == 0)
        throw x;
    return x * 2;
}

extern "C" __attribute__((noinline)) int catcher(int x) {
    guard a(1);
    try {
        guard b(2);
        return thrower(x) + thrower(x + 1);
    } catch (const std::runtime_error &error) {
        sink += error.what()[0];
    } catch (int thrown) {
        guard c(thrown);
        sink += thrown;
    }
    return -1;
}

int main() {
    print_image();
    int s = 0;
    for (int i = 1; i < 30; i++)
        s += catcher(i);
    return s == 7;
}
