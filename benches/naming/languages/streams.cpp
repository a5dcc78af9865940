// Streams of events through coroutines: generators that are chained, lazy tasks that await one another, a loop
// with timers, channels whose waiters lie in the frames of those who wait, semaphores, a tree walked by itself.
// Frames are kept by the function they belong to, as one frame's memory must never become another's.
#include "../heap.hpp"
#include <algorithm>
#include <coroutine>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

// As debug information spells it.
template <> struct heap::Name<std::coroutine_handle<>> {
    static std::string get() { return "std::coroutine_handle<void>"; }
};
template <> struct heap::Name<std::coroutine_handle<> *> {
    static std::string get() { return "std::coroutine_handle<void>*"; }
};

namespace frames {

struct Pool {
    const void *site; // the place that asks: one function's only
    size_t bytes;
    struct Header *given_back;
};
struct Header {
    const char *tag; // linkage name of the function, once its body has told it
    size_t bytes;
    Pool *pool;
    Header *next;
};
static Pool pools[256];

NOINLINE void *take(size_t bytes, const void *site) {
    size_t at = (reinterpret_cast<size_t>(site) ^ bytes) % 256;
    while (pools[at].site && !(pools[at].site == site && pools[at].bytes == bytes)) at = (at + 1) % 256;
    Pool *pool = &pools[at];
    pool->site = site;
    pool->bytes = bytes;
    Header *header = pool->given_back;
    if (header) {
        pool->given_back = header->next;
    } else {
        header = static_cast<Header *>(malloc(sizeof(Header) + bytes));
        *header = {nullptr, bytes, pool, nullptr};
    }
    return header + 1;
}
NOINLINE void give_back(void *frame) {
    Header *header = static_cast<Header *>(frame) - 1;
    header->next = header->pool->given_back;
    header->pool->given_back = header;
}

// Awaited first of all: this frame is that function's, of which there is one frame type.
struct Frame {
    const char *tag;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> self) const noexcept {
        Header *header = static_cast<Header *>(self.address()) - 1;
        if (header->tag != tag) {
            if (header->tag) abort();
            header->tag = tag;
            tr_region(tag, header + 1, header->bytes, header->bytes);
        }
        return false;
    }
    void await_resume() const noexcept {}
};
#define FRAME(function)                               \
    static const char frame_tag[] = #function ".Frame"; \
    co_await frames::Frame { frame_tag }

// clang lays the frame of a coroutine that it inlines into its caller's: each is to have a block of its own.
#ifdef __clang__
#define COROUTINE NOINLINE
#else
#define COROUTINE
#endif

struct Allocated {
    static NOINLINE void *operator new(size_t bytes) { return take(bytes, __builtin_return_address(0)); }
    static NOINLINE void operator delete(void *frame, size_t) { give_back(frame); }
};

} // namespace frames

// ---- generators ----

template <class T> struct GeneratorPromise : frames::Allocated {
    T value{};
    long yields = 0;
    auto get_return_object() { return std::coroutine_handle<GeneratorPromise>::from_promise(*this); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    std::suspend_always yield_value(T next) {
        value = next;
        ++yields;
        return {};
    }
    void return_void() {}
    void unhandled_exception() { abort(); }
};

template <class T> class Generator {
public:
    using promise_type = GeneratorPromise<T>;
    using Handle = std::coroutine_handle<promise_type>;
    Generator(Handle handle) : handle_(handle) {}
    Generator(Generator &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Generator(const Generator &) = delete;
    ~Generator() {
        if (handle_) handle_.destroy();
    }
    bool next() {
        handle_.resume();
        return !handle_.done();
    }
    T value() const { return handle_.promise().value; }
    long yields() const { return handle_.promise().yields; }

private:
    Handle handle_;
};

// ---- tasks ----

struct TaskPromiseBase : frames::Allocated {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    long resumed = 0;
    struct Final {
        bool await_ready() const noexcept { return false; }
        template <class P> std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) const noexcept {
            return self.promise().continuation;
        }
        void await_resume() const noexcept {}
    };
    std::suspend_always initial_suspend() const noexcept { return {}; }
    Final final_suspend() const noexcept { return {}; }
    void unhandled_exception() { abort(); }
};
template <class T> struct TaskPromise : TaskPromiseBase {
    T result{};
    auto get_return_object() { return std::coroutine_handle<TaskPromise>::from_promise(*this); }
    void return_value(T value) { result = value; }
};
template <> struct TaskPromise<void> : TaskPromiseBase {
    auto get_return_object() { return std::coroutine_handle<TaskPromise>::from_promise(*this); }
    void return_void() {}
};

template <class T> class Task {
public:
    using promise_type = TaskPromise<T>;
    using Handle = std::coroutine_handle<promise_type>;
    Task(Handle handle) : handle_(handle) {}
    Task(Task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task(const Task &) = delete;
    ~Task() {
        if (handle_) handle_.destroy();
    }
    struct Awaiter {
        Handle handle;
        bool await_ready() const noexcept { return handle.done(); }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
            handle.promise().continuation = caller;
            handle.promise().resumed++;
            return handle;
        }
        T await_resume() {
            if constexpr (!std::is_void_v<T>) return handle.promise().result;
        }
    };
    Awaiter operator co_await() const noexcept { return {handle_}; }
    Handle handle() const { return handle_; }

private:
    Handle handle_;
};

// ---- the loop: what is ready, and what is due ----

struct Timer {
    long due;
    long order;
    std::coroutine_handle<> who;
    bool operator<(const Timer &other) const { return due != other.due ? due > other.due : order > other.order; }
};

struct Loop {
    std::deque<std::coroutine_handle<>, heap::Alloc<std::coroutine_handle<>>> ready;
    std::vector<Timer, heap::Alloc<Timer>> timers;
    long now = 0, order = 0, resumed = 0;

    void post(std::coroutine_handle<> who) { ready.push_back(who); }
    bool turn() {
        if (ready.empty()) {
            if (timers.empty()) return false;
            now = timers.front().due;
            while (!timers.empty() && timers.front().due <= now) {
                std::pop_heap(timers.begin(), timers.end());
                post(timers.back().who);
                timers.pop_back();
            }
        }
        auto who = ready.front();
        ready.pop_front();
        ++resumed;
        who.resume();
        return true;
    }
    auto sleep(long ticks) {
        struct Awaiter {
            Loop *loop;
            long ticks;
            bool await_ready() const noexcept { return ticks <= 0; }
            void await_suspend(std::coroutine_handle<> who) {
                loop->timers.push_back({loop->now + ticks, loop->order++, who});
                std::push_heap(loop->timers.begin(), loop->timers.end());
            }
            void await_resume() const noexcept {}
        };
        return Awaiter{this, ticks};
    }
};

// ---- channels: who waits, waits in a list through the frames ----

template <class T> struct Waiter {
    std::coroutine_handle<> who;
    T value{};
    bool given = false;
    Waiter *next = nullptr;
};

template <class T> struct Channel {
    enum { slots = 32 };
    T ring[slots] = {};
    unsigned head = 0, tail = 0;
    Waiter<T> *first = nullptr, **last = &first;
    Loop *loop;
    bool closed = false;
    long passed = 0, blocked = 0;

    explicit Channel(Loop *its_loop) : loop(its_loop) {}
    bool full() const { return tail - head == slots; }
    NOINLINE void push(T value) {
        ++passed;
        if (Waiter<T> *waiter = first) {
            first = waiter->next;
            if (!first) last = &first;
            waiter->value = value;
            waiter->given = true;
            loop->post(waiter->who);
        } else {
            ring[tail++ % slots] = value;
        }
    }
    NOINLINE void close() {
        closed = true;
        for (; first; first = first->next) loop->post(first->who);
        last = &first;
    }
    struct Reader : Waiter<T> {
        Channel *channel;
        explicit Reader(Channel *its_channel) : channel(its_channel) {}
        bool await_ready() {
            this->given = false;
            this->next = nullptr;
            if (channel->head == channel->tail) return channel->closed;
            this->value = channel->ring[channel->head++ % slots];
            this->given = true;
            return true;
        }
        void await_suspend(std::coroutine_handle<> caller) {
            this->who = caller;
            channel->blocked++;
            *channel->last = this;
            channel->last = &this->next;
        }
        std::optional<T> await_resume() {
            if (!this->given) return {};
            return this->value;
        }
    };
};

struct Semaphore {
    int left;
    Loop *loop;
    std::deque<std::coroutine_handle<>, heap::Alloc<std::coroutine_handle<>>> waiting;
    long contended = 0;

    auto acquire() {
        struct Awaiter {
            Semaphore *semaphore;
            bool await_ready() {
                if (semaphore->left == 0) return false;
                --semaphore->left;
                return true;
            }
            void await_suspend(std::coroutine_handle<> who) {
                semaphore->contended++;
                semaphore->waiting.push_back(who);
            }
            void await_resume() const noexcept {}
        };
        return Awaiter{this};
    }
    void release() {
        if (waiting.empty()) {
            ++left;
        } else {
            loop->post(waiting.front());
            waiting.pop_front();
        }
    }
};

// ---- what flows, and where it goes ----

struct Event {
    long stamp;
    int user, kind;
    double amount;
    Event *next;
};
struct EventStore {
    Event *freed = nullptr;
    long made = 0, taken = 0;
    NOINLINE Event *take() {
        Event *event = freed;
        if (event) {
            freed = event->next;
        } else {
            event = heap::make<Event>().release();
            ++made;
        }
        ++taken;
        return event;
    }
    void give_back(Event *event) {
        event->next = freed;
        freed = event;
    }
};

struct Account {
    int id, tier;
    double balance;
    long events;
    double recent[4];
    std::vector<Event *, heap::Alloc<Event *>> open;
    Account *parent;
};
struct Bank {
    std::vector<Account, heap::Alloc<Account>> accounts;
    std::unordered_map<int, Account *, std::hash<int>, std::equal_to<int>,
                       heap::Alloc<std::pair<const int, Account *>>> by_id;
    std::map<int, double, std::less<int>, heap::Alloc<std::pair<const int, double>>> totals;
    double fees = 0;
    long settled = 0;
    int kinds[8] = {};
};

struct Branch {
    long key;
    Branch *left, *right;
    long visits;
    double weight;
};
struct Window {
    long start, count;
    double sum, low, high;
    int users[4];
};
struct Random {
    unsigned state[4];
    long drawn;
    unsigned draw() {
        unsigned t = state[3], s = state[0];
        state[3] = state[2];
        state[2] = state[1];
        state[1] = s;
        t ^= t << 11;
        t ^= t >> 8;
        ++drawn;
        return state[0] = t ^ s ^ (s >> 19);
    }
};
struct Tally {
    long seen, missed;
    double paid;
    double by_kind[8];
    Account *last;
};
struct Summary {
    long accounts;
    double balance, largest;
    int which;
};

static Loop *loop;
static Bank bank;
static EventStore store;
static Branch *roots[2];
static long history[64];

COROUTINE Generator<unsigned> randoms(unsigned seed) {
    FRAME(_Z7randomsj);
    Random random{{seed, seed * 2654435761u, 99, 7}, 0};
    for (;;) co_yield random.draw();
}

COROUTINE Generator<Event *> produce(EventStore *from, Generator<unsigned> noise, long stamp, long n) {
    FRAME(_Z7produceP10EventStore9GeneratorIjEll);
    for (long i = 0; i < n; ++i) {
        Event *event = from->take();
        noise.next();
        event->stamp = stamp + i * 3;
        event->user = int(noise.value() % 300);
        noise.next();
        event->kind = int(noise.value() % 8);
        event->amount = (noise.value() >> 8 & 1023) * 0.25;
        event->next = nullptr;
        co_yield event;
    }
}

COROUTINE Generator<Event *> only(Generator<Event *> from, EventStore *rest, unsigned kinds) {
    FRAME(_Z4only9GeneratorIP5EventEP10EventStorej);
    while (from.next()) {
        Event *event = from.value();
        if (kinds >> event->kind & 1)
            co_yield event;
        else
            rest->give_back(event);
    }
}

// Events by windows of time; each is given back when its window is full.
COROUTINE Generator<const Window *> windows(Generator<Event *> from, EventStore *used, long width) {
    FRAME(_Z7windows9GeneratorIP5EventEP10EventStorel);
    Window window{-1, 0, 0, 1e9, -1e9, {}};
    while (from.next()) {
        Event *event = from.value();
        if (event->stamp >= window.start + width) {
            if (window.count) co_yield &window;
            window = {event->stamp, 0, 0, 1e9, -1e9, {}};
        }
        window.sum += event->amount;
        window.low = std::min(window.low, event->amount);
        window.high = std::max(window.high, event->amount);
        window.users[window.count++ & 3] = event->user;
        used->give_back(event);
    }
    if (window.count) co_yield &window;
}

COROUTINE Generator<Branch *> in_order(Branch *branch) {
    FRAME(_Z8in_orderP6Branch);
    if (branch->left)
        for (auto left = in_order(branch->left); left.next();) co_yield left.value();
    branch->visits++;
    co_yield branch;
    if (branch->right)
        for (auto right = in_order(branch->right); right.next();) co_yield right.value();
}

COROUTINE Generator<Branch *> merged(Branch *one, Branch *other) {
    FRAME(_Z6mergedP6BranchS0_);
    auto a = in_order(one), b = in_order(other);
    bool more_a = a.next(), more_b = b.next();
    while (more_a || more_b) {
        if (!more_b || (more_a && a.value()->key < b.value()->key)) {
            co_yield a.value();
            more_a = a.next();
        } else {
            co_yield b.value();
            more_b = b.next();
        }
    }
}

COROUTINE Task<double> fee(Bank *of, Account *account, double amount) {
    FRAME(_Z3feeP4BankP7Accountd);
    double rate = account->tier ? 0.01 : 0.02;
    co_await loop->sleep(account->id & 1);
    for (Account *above = account->parent; above; above = above->parent) rate *= above->tier ? 0.9 : 0.95;
    of->fees += rate * amount;
    co_return rate * amount;
}

COROUTINE Task<bool> settle(Bank *of, Event *event) {
    FRAME(_Z6settleP4BankP5Event);
    auto found = of->by_id.find(event->user);
    if (found == of->by_id.end()) co_return false;
    Account *account = found->second;
    account->open.push_back(event);
    double paid = co_await fee(of, account, event->amount);
    account->balance += event->amount - paid;
    account->recent[account->events++ & 3] = event->amount;
    of->totals[event->kind * 16 + account->tier] += paid;
    of->kinds[event->kind]++;
    of->settled++;
    account->open.erase(std::find(account->open.begin(), account->open.end(), event));
    co_return true;
}

COROUTINE Task<void> worker(Bank *of, Channel<Event *> *in, Semaphore *limit, EventStore *used, Tally *total) {
    FRAME(_Z6workerP4BankP7ChannelIP5EventEP9SemaphoreP10EventStoreP5Tally);
    Tally tally{};
    Channel<Event *>::Reader reader(in);
    while (std::optional<Event *> event = co_await reader) {
        co_await limit->acquire();
        if (co_await settle(of, *event)) {
            tally.seen++;
            tally.paid += (*event)->amount;
            tally.by_kind[(*event)->kind] += 1;
            tally.last = &of->accounts[tally.seen % of->accounts.size()];
            tally.last->tier ^= tally.seen % 64 == 0;
        } else {
            tally.missed++;
        }
        used->give_back(*event);
        limit->release();
    }
    total->seen += tally.seen;
    total->missed += tally.missed;
    total->paid += tally.paid;
    for (int i = 0; i < 8; ++i) total->by_kind[i] += tally.by_kind[i];
}

COROUTINE Task<void> feeder(Channel<Event *> *out, EventStore *from, long n, unsigned seed) {
    FRAME(_Z6feederP7ChannelIP5EventEP10EventStorelj);
    auto events = produce(from, randoms(seed), loop->now, n);
    while (events.next()) {
        while (out->full()) co_await loop->sleep(1);
        out->push(events.value());
        if (events.yields() % 8 == 0) co_await loop->sleep(2);
    }
    out->close();
}

COROUTINE Task<Summary> summarize(Bank *of) {
    FRAME(_Z9summarizeP4Bank);
    Summary summary{0, 0, -1e9, -1};
    for (auto account = of->accounts.begin(); account != of->accounts.end(); ++account) {
        summary.accounts++;
        summary.balance += account->balance;
        if (account->balance > summary.largest) {
            summary.largest = account->balance;
            summary.which = account->id;
        }
        if (summary.accounts % 16 == 0) co_await loop->sleep(1);
    }
    co_return summary;
}

COROUTINE Task<void> auditor(Bank *of, const Channel<Event *> *watched, Branch *const *trees) {
    FRAME(_Z7auditorP4BankPK7ChannelIP5EventEPKP6Branch);
    for (long round = 0; !watched->closed; ++round) {
        Summary summary = co_await summarize(of);
        history[round & 63] = summary.accounts + summary.which;
        for (auto walk = merged(trees[0], trees[1]); walk.next();) {
            Branch *branch = walk.value();
            branch->weight = branch->weight * 0.5 + summary.balance;
            if (walk.yields() % 64 == 0) co_await loop->sleep(1);
        }
        for (auto &[kind, total] : of->totals) {
            total *= 0.999;
            if (kind % 32 == 0) co_await loop->sleep(1);
        }
        co_await loop->sleep(5);
    }
}

static void build() {
    heap::Of<Branch> scope;
    for (int tree = 0; tree < 2; ++tree)
        for (int i = 0; i < 60; ++i) {
            Branch **at = &roots[tree];
            long key = long(tr_rand() % 100000);
            while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
            *at = new Branch{key, nullptr, nullptr, 0, 0};
        }
    bank.accounts.reserve(256);
    for (int i = 0; i < 256; ++i) {
        bank.accounts.push_back({i, i % 3, 100, 0, {}, {}, i > 3 ? &bank.accounts[i / 4] : nullptr});
        bank.by_id[i] = &bank.accounts[i];
    }
}

int main(int argc, char **argv) {
    tr_init(argc, argv);
    loop = heap::make<Loop>().release();
    tr_global("loop", &loop, sizeof loop, "Loop*");
    tr_global("bank", &bank, sizeof bank, "Bank");
    tr_global("store", &store, sizeof store, "EventStore");
    tr_global("roots", &roots, sizeof roots, "Branch*[]");
    tr_global("history", &history, sizeof history, "long[]");
    build();
    Tally *total = heap::make<Tally>().release();
    Semaphore *limit = new (heap_take("Semaphore", sizeof(Semaphore), sizeof(Semaphore))) Semaphore{6, loop, {}};
    auto *channel = static_cast<Channel<Event *> *>(
        heap_take(heap::name_of<Channel<Event *>>(), sizeof(Channel<Event *>), sizeof(Channel<Event *>)));
    double sums = 0;
    for (unsigned turn = 0; tr_more(); ++turn) {
        new (channel) Channel<Event *>(loop);
        std::vector<Task<void>> tasks;
        for (int i = 0; i < 8; ++i) tasks.push_back(worker(&bank, channel, limit, &store, total));
        tasks.push_back(feeder(channel, &store, 120, turn + 1));
        tasks.push_back(auditor(&bank, channel, roots));
        for (auto &task : tasks) loop->post(task.handle());
        while (loop->turn()) {}
        auto seen = windows(only(produce(&store, randoms(turn * 3 + 1), turn, 150), &store, 0xb5), &store, 40);
        while (seen.next()) sums += seen.value()->high - seen.value()->low + seen.value()->users[1];
    }
    printf("%ld %ld %ld %ld %.1f %.1f %ld\n", total->seen, total->missed, store.made, loop->resumed, bank.fees, sums, history[3]);
}
