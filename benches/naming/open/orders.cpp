// An order book in standard containers: vector of structs, map, unordered_map, deque, string,
// unique_ptr.
#include "../heap.hpp"
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace market {

template <class T> using Vector = std::vector<T, heap::Alloc<T>>;
template <class T> using Deque = std::deque<T, heap::Alloc<T>>;

enum class Side : uint8_t { Buy, Sell };

struct Order {
    uint64_t id;
    Side side;
    uint32_t amount;
    double price;
    uint32_t owner;
    bool open;
};

struct Trade {
    uint64_t buyer, seller;
    double price;
    uint32_t amount;
};

struct Level {
    uint64_t amount = 0;
    uint32_t orders = 0, matches = 0;
    Deque<uint32_t> waiting; // indices of orders
};

class Account {
public:
    explicit Account(std::string name) : name_(std::move(name)) {}
    void settle(double money, long shares) {
        money_ += money;
        shares_ += shares;
        history_[trades_++ % 12] = money;
    }
    double worth(double price) const { return money_ + shares_ * price; }
    const std::string &name() const { return name_; }

private:
    std::string name_;
    double money_ = 1e6, history_[12] = {};
    long shares_ = 100;
    unsigned trades_ = 0;
};

template <class K, class V>
using Map = std::map<K, V, std::less<K>, heap::Alloc<std::pair<const K, V>>>;
template <class K, class V>
using Table =
    std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, heap::Alloc<std::pair<const K, V>>>;

struct Book {
    Vector<Order> orders;
    Map<int, Level> buys, sells;
    Table<uint64_t, uint32_t> by_id;
    Deque<Trade> tape;
    Vector<std::unique_ptr<Account>> accounts;
    uint64_t next_id = 1;
    double last_price = 100;
};

NOINLINE void place(Book &b, uint32_t slot) {
    Order &o = b.orders[slot];
    if (o.open) b.by_id.erase(o.id);
    uint64_t r = tr_rand();
    int ticks = int(b.last_price) + int(r % 21) - 10;
    o = Order{b.next_id++,
              r & 32 ? Side::Buy : Side::Sell,
              uint32_t(1 + r % 100),
              double(ticks),
              uint32_t(r >> 40) % uint32_t(b.accounts.size()),
              true};
    Level &level = (o.side == Side::Buy ? b.buys : b.sells)[ticks];
    level.amount += o.amount;
    level.orders++;
    level.waiting.push_back(slot);
    b.by_id.emplace(o.id, slot);
}

NOINLINE unsigned match(Book &b) {
    unsigned matched = 0;
    while (!b.buys.empty() && !b.sells.empty()) {
        auto best_buy = std::prev(b.buys.end());
        auto best_sell = b.sells.begin();
        if (best_buy->first < best_sell->first) break;
        Level &buys = best_buy->second, &sells = best_sell->second;
        if (buys.waiting.empty()) {
            b.buys.erase(best_buy);
            continue;
        }
        if (sells.waiting.empty()) {
            b.sells.erase(best_sell);
            continue;
        }
        Order &buy = b.orders[buys.waiting.front()], &sell = b.orders[sells.waiting.front()];
        uint32_t amount = std::min(buy.amount, sell.amount);
        b.accounts[buy.owner]->settle(-sell.price * amount, amount);
        b.accounts[sell.owner]->settle(sell.price * amount, -long(amount));
        b.tape.push_back({buy.id, sell.id, sell.price, amount});
        if (b.tape.size() > 400) b.tape.pop_front();
        buys.amount -= amount;
        sells.amount -= amount;
        buys.matches++;
        if ((buy.amount -= amount) == 0) {
            buys.waiting.pop_front();
            buy.open = false;
            b.by_id.erase(buy.id);
        }
        if ((sell.amount -= amount) == 0) {
            sells.waiting.pop_front();
            sell.open = false;
            b.by_id.erase(sell.id);
        }
        b.last_price = 0.999 * b.last_price + 0.001 * sell.price;
        matched++;
    }
    return matched;
}

NOINLINE double depth(const Book &b) {
    double sum = 0;
    for (const auto &[price, level] : b.buys) sum += price * double(level.amount) + level.orders;
    for (const auto &[price, level] : b.sells) sum -= price * double(level.amount) + level.matches;
    return sum;
}

NOINLINE uint64_t look_up(const Book &b, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        auto found = b.by_id.find(tr_rand() % b.next_id);
        if (found != b.by_id.end()) sum += b.orders[found->second].amount;
    }
    return sum;
}

NOINLINE double tape_average(const Deque<Trade> &tape) {
    double money = 0, amount = 1;
    for (const Trade &t : tape) {
        money += t.price * t.amount;
        amount += t.amount;
    }
    return money / amount;
}

NOINLINE size_t report(const Book &b) {
    size_t sum = 0;
    for (const auto &account : b.accounts)
        sum += account->name().size() + size_t(account->worth(b.last_price));
    auto cheapest =
        std::min_element(b.orders.begin(), b.orders.end(),
                         [](const Order &x, const Order &y) { return x.price < y.price; });
    return sum + cheapest->owner +
           std::count_if(b.orders.begin(), b.orders.end(), [](const Order &o) { return o.open; });
}

} // namespace market

int main(int argc, char **argv) {
    using namespace market;
    tr_init(argc, argv);
    static Book book;
    TR_GLOBALX(book);
    book.orders.resize(1500);
    for (int i = 0; i < 300; i++)
        book.accounts.push_back(heap::make<Account>("account " + std::to_string(i * 7919)));
    double sum = 0;
    uint32_t slot = 0;
    while (tr_more()) {
        for (int i = 0; i < 300; i++, slot++) {
            Order &o = book.orders[slot % book.orders.size()];
            if (!o.open) place(book, slot % book.orders.size());
            if (i % 16 == 0) sum += match(book);
        }
        sum += depth(book) + look_up(book, 150) + tape_average(book.tape);
        sum += report(book);
    }
    tr_sink = uint64_t(sum);
}
