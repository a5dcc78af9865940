/* A unit that only declares the class whose objects it reads. */
#include "truth.h"
#include "declared.hpp"

struct Square : plane::Shape {
    Square() { id = 4, next = nullptr; }
    long area(long n) const override { return n * n; }
};
extern "C" {
FUNCTION long read_id(plane::Shape *shape) { return shape->id; }
FUNCTION long read_next(plane::Shape *shape) { return shape->next != nullptr; }
FUNCTION long call_area(plane::Shape *shape) { return shape->area(3) + 1; }
}

int main(int n, char **) {
    Square square;
    auto at = [&](const void *member) { return (size_t)member - (size_t)static_cast<plane::Shape *>(&square); };
    printf("Shape.id %zu\nShape.next %zu\n", at(&square.id), at(&square.next));
    print_image();
    return n == 9 && read_id(&square) + read_next(&square) + call_area(&square) == 1;
}
