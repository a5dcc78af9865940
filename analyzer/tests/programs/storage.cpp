// Classes with virtual functions and bases, room for values, containers' nodes.
#include "truth.h"
#include <list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop {
struct Item { long key; float weight; };
struct Base { virtual ~Base() {} long id = 1; char tag = 2; };
struct Shared { virtual ~Shared() {} long shared = 3; };
class Order : public Base, public virtual Shared {
  public:
    char packed = 4;
    int x = 5;
    long Item::*member = nullptr;
    void (Order::*method)() = nullptr;
    static void print();
};
template <typename T> class Slot {
    typename std::aligned_storage<sizeof(T), alignof(T)>::type room;
    bool used;
  public:
    T *get() { return reinterpret_cast<T *>(&room); }
};
struct Digest { unsigned char bytes[16]; };
template <typename T> struct Hash { unsigned char digest[16]; };
Order order;
Slot<Item> slot;
Hash<Item> hash;
std::string text;
std::optional<Item> maybe = Item{1, 2};
std::variant<int, Item> either = Item{1, 2};
std::list<Item> items;
std::map<long, Item> tree;
std::unordered_map<long, Item> table;
std::vector<Item> row;
// Nodes as the containers make them.
std::_List_node<Item> list_node;
std::_Rb_tree_node<std::pair<const long, Item>> tree_node;

void Order::print() {
    ADDRESS("order", &order); ADDRESS("order.id", &order.id); ADDRESS("order.tag", &order.tag);
    ADDRESS("order.shared", &order.shared); ADDRESS("order.packed", &order.packed);
    ADDRESS("order.x", &order.x); ADDRESS("order.member", &order.member);
    ADDRESS("order.method", &order.method);
    printf("sizeof method %zu\n", sizeof order.method);
}
} // namespace shop

int main() {
    using namespace shop;
    Order::print();
    items.push_back({1, 2});
    tree[1] = {1, 2};
    table[1] = {1, 2};
    row.push_back({1, 2});
    ADDRESS("slot.weight", &slot.get()->weight);
    ADDRESS("hash", &hash);
    ADDRESS("maybe.weight", &maybe->weight);
    ADDRESS("either.weight", &std::get<1>(either).weight);
    ADDRESS("list_node.weight", &list_node._M_valptr()->weight);
    ADDRESS("list_node.next", &list_node._M_next);
    ADDRESS("tree_node.weight", &tree_node._M_valptr()->second.weight);
    ADDRESS("text", &text);
    ADDRESS("text.buffer", text.data());
    print_image();
    return items.front().key + tree[1].key + table[1].key + row[0].key == 0;
}
