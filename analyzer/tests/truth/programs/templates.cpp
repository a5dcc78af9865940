// Templates, lambdas and algorithms: std::sort, std::function, variant, optional, tuples, ranges.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

template <typename T, std::size_t N> class Ring {
    std::array<T, N> slots{};
    std::size_t head = 0, count = 0;

public:
    bool push(T value)
    {
        if (count == N)
            return false;
        slots[(head + count++) % N] = std::move(value);
        return true;
    }
    std::optional<T> pop()
    {
        if (!count)
            return std::nullopt;
        T value = std::move(slots[head]);
        head = (head + 1) % N;
        count--;
        return value;
    }
};

template <typename It, typename F> __attribute__((noinline)) static long sum_if(It from, It to, F keep)
{
    long sum = 0;
    for (; from != to; ++from)
        if (keep(*from))
            sum += static_cast<long>(*from);
    return sum;
}

using Value = std::variant<int, double, std::string>;

__attribute__((noinline)) static long measure(const std::vector<Value> &values)
{
    long sum = 0;
    for (const auto &value : values)
        sum += std::visit(
            [](const auto &it) -> long {
                using T = std::decay_t<decltype(it)>;
                if constexpr (std::is_same_v<T, std::string>)
                    return static_cast<long>(it.size());
                else
                    return static_cast<long>(it * 2);
            },
            value);
    return sum;
}

template <int N> struct Power {
    static long of(long x) { return x * Power<N - 1>::of(x); }
};
template <> struct Power<0> {
    static long of(long) { return 1; }
};

int main()
{
    std::vector<int> numbers(30);
    std::iota(numbers.begin(), numbers.end(), -5);
    for (auto &n : numbers)
        n = n * 37 % 61;
    long total = sum_if(numbers.begin(), numbers.end(), [](int n) { return n > 10; });
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 10 < b % 10; });
    std::vector<double> halves;
    std::transform(numbers.begin(), numbers.end(), std::back_inserter(halves), [](int n) { return n / 2.0; });
    std::partial_sort(halves.begin(), halves.begin() + 5, halves.end());
    total += static_cast<long>(halves[3]);
    int offset = 3;
    std::vector<std::function<long(long)>> chain;
    chain.emplace_back([&offset](long x) { return x + offset++; });
    chain.emplace_back([](long x) { return x * 3 & 0xffff; });
    chain.emplace_back(Power<3>::of);
    for (int i = 0; i < 5; i++)
        for (const auto &step : chain)
            total = step(total & 0xfff);
    Ring<std::tuple<int, float>, 8> ring;
    for (int i = 0; i < 20; i++) {
        if (!ring.push({i, i * 0.5f}) || i % 3 == 0)
            while (auto item = ring.pop())
                total += std::get<0>(*item) + static_cast<long>(std::get<1>(*item));
    }
    std::vector<Value> values{1, 2.5, std::string("three"), 4, std::string("a longer string, on the heap")};
    for (int i = 0; i < 6; i++)
        total += measure(values);
    total += std::count_if(numbers.begin(), numbers.end(), std::bind(std::less<int>(), std::placeholders::_1, 9));
    auto found = std::lower_bound(halves.begin(), halves.begin() + 5, 2.0);
    return static_cast<int>(total + (found - halves.begin())) & 1;
}
