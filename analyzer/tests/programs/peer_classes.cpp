// Classes with private pointers, bases, virtual methods, name spaces; containers and what is in them.
#include "truth.h"
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

struct Item { long key; int weight, price; };

namespace ns { struct S { long a; int b; }; }
namespace ns2 { struct S { double c; int d; }; }

class Holder {
    Item *head;
    long n;
  public:
    Holder(Item *head) : head(head), n(1) {}
    FUNCTION int first() const { return head->price; }
    FUNCTION long size() const { return n; }
    static void tell();
};
void Holder::tell() {
    printf("Holder.n %zu\n", offsetof(Holder, n));
}

class Shape {
  public:
    long id = 1;
    virtual ~Shape() {}
    virtual int area() const = 0;
};
class Square : public Shape {
  public:
    int side = 2;
    int area() const override;
};
FUNCTION int Square::area() const { return side * side; }
FUNCTION int call_area(const Shape *shape) { return shape->area() + 1; }
FUNCTION long shape_id(Square &square) { return square.id; }

namespace ns {
class Registry {
    Item items[4];
  public:
    FUNCTION Item *find(long key) { return &items[key & 3]; }
    struct Entry { long hits; Item *item; };
    FUNCTION static Entry *entry(long key);
};
static Registry::Entry entries[4];
Registry::Entry *Registry::entry(long key) { return &entries[key & 3]; }
FUNCTION int lookup(Registry &registry, long key) { return registry.find(key)->price; }
FUNCTION long hits(long key) { return Registry::entry(key)->hits; }
} // namespace ns

FUNCTION int of_ns(ns::S &s) { return s.b; }
FUNCTION int of_ns2(ns2::S &s) { return s.d; }
FUNCTION long sum_items(const std::vector<Item> &items) {
    long sum = 0;
    for (const Item &item : items) sum += item.price;
    return sum;
}
FUNCTION long sum_longs(const std::vector<long> &numbers) {
    long sum = 0;
    for (long number : numbers) sum += number;
    return sum;
}
FUNCTION int nth_item(std::vector<Item> &items, long i) { return items[i].price; }
// What begins as an item, and has a member where the next item's price would be.
struct Parcel { Item item; long sent; int n_stamps, grams; } parcel;
FUNCTION int second_price(std::vector<Item>::iterator item) { return item[1].price; }
FUNCTION long sum_hashed(const std::unordered_map<long, Item> &items) {
    long sum = 0;
    for (const auto &entry : items) sum += entry.second.price;
    return sum;
}
FUNCTION int first_sorted(const std::map<long, Item> &items) { return items.begin()->second.price; }
FUNCTION int owned(const std::unique_ptr<Item> &item) { return item->price; }
FUNCTION int shared(const std::shared_ptr<Item> &item) { return item->price; }
FUNCTION void set_by_reference(long &first, Item &&second) { first = 3; second.price = 4; }

int main() {
    Item item{1, 2, 3};
    Holder holder(&item);
    Square square;
    ns::Registry registry{};
    ns::S s{};
    ns2::S s2{};
    std::vector<Item> items{item, item};
    std::vector<long> numbers{1, 2};
    std::unordered_map<long, Item> hashed{{1, item}};
    std::map<long, Item> sorted{{1, item}};
    auto unique = std::make_unique<Item>(item);
    auto counted = std::make_shared<Item>(item);
    long n = 0;
    set_by_reference(n, Item(item));
    long sum = holder.first() + holder.size() + call_area(&square) + shape_id(square)
        + ns::lookup(registry, 2) + ns::hits(1) + of_ns(s) + of_ns2(s2) + sum_items(items)
        + sum_longs(numbers) + nth_item(items, 1) + second_price(items.begin()) + sum_hashed(hashed) + first_sorted(sorted)
        + owned(unique) + shared(counted) + n;
    MEMBER(Item, price);
    Holder::tell();
    printf("Shape.id %zu\n", (size_t)((char *)&square.id - (char *)&square));
    printf("Entry.second.price %zu\n", (size_t)((char *)&sorted.begin()->second.price - (char *)&*sorted.begin()));
    print_image();
    return (int)(sum & 0);
}
