/* A class whose first virtual method stands in `declared_shape.cpp`: only there gcc and clang describe it in full. */
namespace plane {
class Shape {
  public:
    virtual ~Shape();
    virtual long area(long) const;
    long id;
    Shape *next;
};
}
