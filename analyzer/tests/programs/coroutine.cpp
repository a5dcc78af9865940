// Numbers that a coroutine makes, one after the other.
#include <coroutine>

struct Promise;
struct Numbers {
    using promise_type = Promise;
    std::coroutine_handle<Promise> handle;
};
struct Promise {
    long value;
    Numbers get_return_object() { return {std::coroutine_handle<Promise>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(long it) { value = it; return {}; }
    void return_void() {}
    void unhandled_exception() {}
};

Numbers upwards(long first)
{
    for (long it = first;; it++)
        co_yield it;
}

__attribute__((noinline)) long sum_of(Numbers &numbers, int n)
{
    long sum = 0;
    for (int at = 0; at < n; at++) {
        numbers.handle.resume();
        sum += numbers.handle.promise().value;
    }
    return sum;
}

int main(int n, char **)
{
    Numbers numbers = upwards(n);
    long sum = sum_of(numbers, 10);
    numbers.handle.destroy();
    return sum == 0;
}
