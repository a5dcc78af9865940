// Virtual calls: single, multiple and virtual inheritance, casts, smart pointers, visitors.
#include <memory>
#include <vector>

struct Visitor;
struct Shape {
    int id = 0;
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual void accept(Visitor &) = 0;
    virtual int corners() const { return 0; }
};
struct Named { char name[8] = "shape"; virtual char initial() const { return name[0]; } };
struct Circle; struct Box; struct Cube;
struct Visitor {
    double sum = 0;
    int seen[3] = {};
    virtual void visit(Circle &) = 0;
    virtual void visit(Box &) = 0;
    virtual void visit(Cube &) = 0;
};
struct Circle final : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    double area() const override { return 3.14159 * radius * radius; }
    void accept(Visitor &v) override { v.visit(*this); }
};
struct Box : Shape, Named {
    double width, height;
    Box(double w, double h) : width(w), height(h) { name[0] = 'b'; }
    double area() const override { return width * height; }
    void accept(Visitor &v) override { v.visit(*this); }
    int corners() const override { return 4; }
};
struct Cube : Box {
    double depth;
    Cube(double w, double h, double d) : Box(w, h), depth(d) { name[0] = 'c'; }
    double area() const override { return 2 * (width * height + width * depth + height * depth); }
    void accept(Visitor &v) override { v.visit(*this); }
    int corners() const override { return Box::corners() * 2; }
    char initial() const override { return 'C'; }
};
struct Sum : Visitor {
    void visit(Circle &c) override { sum += c.radius; seen[0]++; }
    void visit(Box &b) override { sum += b.width - b.height; seen[1]++; }
    void visit(Cube &c) override { sum += c.depth; seen[2]++; }
};

struct Base { long base = 1; virtual long get() const { return base; } virtual ~Base() = default; };
struct Left : virtual Base { long left = 2; long get() const override { return left + base; } };
struct Right : virtual Base { long right = 3; };
struct Bottom : Left, Right { long get() const override { return left * right + base; } };

__attribute__((noinline)) static double areas(const std::vector<std::unique_ptr<Shape>> &shapes)
{
    double sum = 0;
    for (const auto &shape : shapes)
        sum += shape->area() * shape->corners();
    return sum;
}

__attribute__((noinline)) static int initials(const std::vector<std::unique_ptr<Shape>> &shapes)
{
    int sum = 0;
    for (const auto &shape : shapes)
        if (auto *named = dynamic_cast<Named *>(shape.get()))
            sum += named->initial();
    return sum;
}

__attribute__((noinline)) static long through(const Right &right) { return right.get() + right.base; }

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 18; i++) {
        if (i % 3 == 0)
            shapes.push_back(std::make_unique<Circle>(i));
        else if (i % 3 == 1)
            shapes.push_back(std::make_unique<Box>(i, 2));
        else
            shapes.push_back(std::make_unique<Cube>(i, 2, 3));
        shapes.back()->id = i;
    }
    Sum visitor;
    double total = 0;
    for (int i = 0; i < 4; i++) {
        total += areas(shapes);
        for (auto &shape : shapes)
            shape->accept(visitor);
    }
    Bottom bottom;
    long n = initials(shapes);
    for (int i = 0; i < 30; i++) {
        bottom.left += i;
        n += through(bottom);
    }
    auto shared = std::make_shared<Bottom>(bottom);
    std::shared_ptr<Base> base = shared;
    return static_cast<int>(static_cast<long>(total + visitor.sum) + n + base->get()) & 1;
}
