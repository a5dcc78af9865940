// Classes with bases, name spaces, references, static members.
#include "truth.h"

namespace shop {
struct Base {
    long id;
    int kind;
};
struct Mixin {
    double weight;
};
class Order : public Base, public Mixin {
  public:
    int x;
    static long n_orders;
    FUNCTION long id_of() const { return id; }
    FUNCTION int x_of() { return x; }
    FUNCTION double weight_of() { return weight; }
    static void print();
};
long Order::n_orders = 3;
static Order kept;
template <typename T> struct Pair {
    T first, second;
};
namespace {
int hidden[4];
}
FUNCTION long count() { return Order::n_orders; }
FUNCTION int see_hidden() { return hidden[2]; }
FUNCTION int kept_x() { return kept.x; }
} // namespace shop

FUNCTION long through(shop::Order &order) { return order.x; }
FUNCTION long moved(shop::Order &&order) { return order.kind; }
FUNCTION long second(const shop::Pair<long> *pair) { return pair->second; }
FUNCTION double upcast(shop::Mixin *mixin) { return mixin->weight; }
FUNCTION int downcast(shop::Mixin *mixin) { return static_cast<shop::Order *>(mixin)->kind; }
FUNCTION void set(int &cell) { cell = 3; }

void shop::Order::print() {
    printf("Order.x %zu\n", (size_t)((char *)&kept.x - (char *)&kept));
    printf("Order.kind %zu\n", (size_t)((char *)&kept.kind - (char *)&kept));
    printf("Order.weight %zu\n", (size_t)((char *)&kept.weight - (char *)&kept));
    ADDRESS("n_orders", &n_orders);
    ADDRESS("kept", &kept);
    ADDRESS("hidden", hidden);
}

int main() {
    shop::Order order;
    shop::Pair<long> pair = {1, 2};
    int cell;
    set(cell);
    second(&pair);
    through(order);
    order.id_of();
    order.x_of();
    order.weight_of();
    shop::Order::print();
    print_image();
}
