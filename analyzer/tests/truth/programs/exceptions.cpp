// Exceptions: thrown through frames with destructors, caught by type, thrown again.
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
    long &depth;
    explicit Guard(long &d) : depth(d) { ++depth; }
    ~Guard() { --depth; }
};

struct Failure : std::runtime_error {
    int code;
    explicit Failure(int c) : std::runtime_error("failure " + std::to_string(c)), code(c) {}
};

static long depth, caught[4];

__attribute__((noinline)) static int leaf(int n)
{
    Guard guard(depth);
    if (n % 4 == 1)
        throw Failure(n);
    if (n % 4 == 2)
        throw n;
    return n * 3;
}

__attribute__((noinline)) static int middle(int n)
{
    std::vector<int> held(static_cast<size_t>(n % 5 + 1), n);
    Guard guard(depth);
    int value = leaf(n);
    return value + held.back();
}

__attribute__((noinline)) static int outer(int n)
{
    try {
        return middle(n);
    } catch (const Failure &failure) {
        caught[0] += failure.code;
        if (failure.code > 4)
            throw;
        return -1;
    }
}

int main()
{
    long total = 0;
    for (int i : {0, 2, 5}) {
        try {
            total += outer(i);
        } catch (int n) {
            caught[1] += n;
        } catch (const std::exception &e) {
            caught[2] += e.what()[0];
        } catch (...) {
            caught[3]++;
        }
    }
    return static_cast<int>((total + depth + caught[0] + caught[1] + caught[2]) & 1);
}
