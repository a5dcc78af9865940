// Classes of all sorts: bases that are empty, virtual or reuse padding, tables, statics, nested types, templates.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Empty {};
struct AlsoEmpty {};
struct Base {
    int x;
    char c;
    Base() : x(1), c(2) {}
};
struct Derived : Base {
    char d;
};
struct Virtual {
    virtual ~Virtual() {}
    long q;
};
struct Overriding : Virtual {
    char z;
    ~Overriding() override {}
};
struct Diamond : virtual Base {
    int k;
};
struct OnEmpty : Empty {
    int y;
    static int s;
};
struct OnTwo : Empty, AlsoEmpty {
    char y;
};
struct Both : Derived, Overriding {
    short tail;
};
struct Tagged {
    [[no_unique_address]] Empty empty;
    int value;
};
namespace space {
enum class Color : std::uint8_t { Red, Green };
class Outer {
    int a;

public:
    class Inner {
        char x;
        long y;
    };
    Inner inner;
    int &reference;
    Color color : 3;
    unsigned flag : 1;
    int Outer::*member;
    int (Outer::*function)(int);
    explicit Outer(int &r) : reference(r) {}
};
template <typename T, int N> struct Array {
    T values[N];
    unsigned length;
};
} // namespace space
struct alignas(64) Aligned {
    char c;
    int n[3];
};

static int number;
int OnEmpty::s;
Derived derived;
Overriding overriding;
Diamond diamond;
OnEmpty on_empty;
OnTwo on_two;
Both both;
Tagged tagged;
space::Outer outer(number);
space::Array<long, 3> array;
space::Array<char, 5> letters;
Aligned aligned;
std::map<int, std::string> map;
std::vector<space::Array<char, 5>> vector;
std::shared_ptr<Base> shared = std::make_shared<Base>();

int main() {
    map[3] = "three";
    vector.push_back(letters);
    return static_cast<int>(map.size() + vector.size()) == 2 ? 0 : 1;
}
