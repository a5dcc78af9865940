// Data that classes, templates and the compiler make: tables of virtual functions, statics, literals.
#include "truth.h"
#include <cstring>
#include <unistd.h>

struct Shape {
    virtual ~Shape() {}
    virtual int area() const = 0;
    static int n_made;
};
int Shape::n_made = 0;

namespace ns {
struct Base { virtual int id() const { return 1; } long kept = 2; };
template <class T> struct Square : Shape, virtual Base {
    T side;
    explicit Square(T side) : side(side) { n_made++; }
    int area() const override { return int(side * side); }
    int id() const override { return 7; }
};
template <class T> struct Registry { static long count; };
template <class T> long Registry<T>::count = 3;
inline int shared = 4;
static int hidden[8] = {1, 2};
struct Slow { int value; Slow() : value((int)getpid()) {} };
} // namespace ns

FUNCTION int call_area(const Shape *shape) { return shape->area(); }
FUNCTION long behind(const long *p) { return p[0]; }
FUNCTION char letter(const char *text) { return text[0]; }
FUNCTION ns::Slow *instance() { static ns::Slow slow; return &slow; }
FUNCTION char **environment() { return environ; }
FUNCTION long add_count(long by) { return ns::Registry<long>::count += by; }
FUNCTION double scaled(double x) { return x * 1.7; }

int main() {
    ns::Square<int> square(3);
    const Shape *shape = &square;
    const char *text = "words of a literal";
    ADDRESS("vtable", *(char **)&square);
    ADDRESS("text", text);
    ADDRESS("Shape::n_made", &Shape::n_made);
    ADDRESS("ns::Registry<long int>::count", &ns::Registry<long>::count);
    ADDRESS("ns::shared", &ns::shared);
    ADDRESS("ns::hidden", ns::hidden);
    ADDRESS("slow", instance());
    ADDRESS("environ", &environ);
    print_image();
    return (int)((call_area(shape) + behind(&square.kept) + letter(text) + ns::hidden[1] + ns::shared
                  + add_count(1) + (long)scaled(2) + square.id() + (environment() != 0)) & 0);
}
