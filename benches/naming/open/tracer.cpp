// A path tracer: vectors as templates, shapes and materials as classes, a bounding volume hierarchy in one
// array, triangle meshes by index, textures, a tiled film.
#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace rt {

template <typename T> using vec = std::vector<T, heap::Alloc<T>>;

template <typename T> struct v3 {
  T x{}, y{}, z{};
  constexpr T operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
  friend constexpr v3 operator+(const v3 &a, const v3 &b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend constexpr v3 operator-(const v3 &a, const v3 &b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend constexpr v3 operator*(const v3 &a, const v3 &b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
  friend constexpr v3 operator*(const v3 &a, T k) { return {a.x * k, a.y * k, a.z * k}; }
  v3 &operator+=(const v3 &o) { return *this = *this + o; }
};
template <typename T> constexpr T dot(const v3<T> &a, const v3<T> &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
template <typename T> constexpr v3<T> cross(const v3<T> &a, const v3<T> &b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <typename T> v3<T> unit(const v3<T> &a) { return a * (T(1) / std::sqrt(dot(a, a))); }

using point = v3<double>;
using colour = v3<float>;

struct ray {
  point origin, direction;
  double t_max = std::numeric_limits<double>::infinity();
  int depth = 0;
};

struct box {
  point lo{1e30, 1e30, 1e30}, hi{-1e30, -1e30, -1e30};
  void grow(const point &p) {
    lo = {std::min(lo.x, p.x), std::min(lo.y, p.y), std::min(lo.z, p.z)};
    hi = {std::max(hi.x, p.x), std::max(hi.y, p.y), std::max(hi.z, p.z)};
  }
  void grow(const box &b) { grow(b.lo), grow(b.hi); }
  auto centre() const -> point { return (lo + hi) * 0.5; }
};

class material;

struct hit {
  double t;
  point where, normal;
  float u, v;
  const material *surface;
};

struct texel {
  uint8_t r, g, b, a;
};

class texture {
public:
  texture(int width, int height) : width_(width), height_(height), texels_(size_t(width) * height) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        texels_[size_t(y) * width + x] = {uint8_t(x * 16), uint8_t(y * 16), uint8_t((x ^ y) * 8), 255};
  }
  auto at(float u, float v) const -> colour {
    const auto x = int(u * width_) & (width_ - 1), y = int(v * height_) & (height_ - 1);
    const auto &t = texels_[size_t(y) * width_ + x];
    ++fetched_;
    return {t.r / 255.f, t.g / 255.f, t.b / 255.f};
  }

private:
  int width_, height_;
  vec<texel> texels_;
  mutable uint64_t fetched_ = 0;
};

struct sampler {
  uint32_t state[4];
  auto next() -> double {
    uint32_t t = state[3] ^ state[3] << 11;
    state[3] = state[2], state[2] = state[1], state[1] = state[0];
    state[0] ^= t ^ t >> 8 ^ state[0] >> 19;
    return state[0] * 0x1p-32;
  }
  auto direction() -> point { return unit(point{next() - .5, next() - .5, next() - .5 + 1e-9}); }
};

struct scattered {
  ray out;
  colour weight;
};

class material {
public:
  virtual ~material() = default;
  virtual auto scatter(const ray &in, const hit &h, sampler &s) const -> std::optional<scattered> = 0;
  virtual auto emitted(const hit &) const -> colour { return {}; }
};

class matte final : public material {
public:
  matte(colour albedo, const texture *map) : albedo_(albedo), map_(map) {}
  auto scatter(const ray &in, const hit &h, sampler &s) const -> std::optional<scattered> override {
    const colour base = map_ ? albedo_ * map_->at(h.u, h.v) : albedo_;
    return scattered{{h.where, unit(h.normal + s.direction()), 1e30, in.depth + 1}, base};
  }

private:
  colour albedo_;
  const texture *map_;
};

class metal final : public material {
public:
  metal(colour tint, double rough) : tint_(tint), rough_(rough) {}
  auto scatter(const ray &in, const hit &h, sampler &s) const -> std::optional<scattered> override {
    const auto mirrored = in.direction - h.normal * (2 * dot(in.direction, h.normal));
    const auto d = mirrored + s.direction() * rough_;
    if (dot(d, h.normal) <= 0) return std::nullopt;
    return scattered{{h.where, unit(d), 1e30, in.depth + 1}, tint_};
  }

private:
  colour tint_;
  double rough_;
};

class lamp final : public material {
public:
  explicit lamp(float power) : power_(power) {}
  auto scatter(const ray &, const hit &, sampler &) const -> std::optional<scattered> override { return {}; }
  auto emitted(const hit &h) const -> colour override {
    ++lit_;
    return colour{1, .9f, .7f} * (power_ * float(h.normal.y * h.normal.y));
  }

private:
  float power_;
  mutable unsigned lit_ = 0;
};

class shape {
public:
  explicit shape(const material *m) : surface_(m) {}
  virtual ~shape() = default;
  virtual auto intersect(const ray &r, double nearest) const -> std::optional<hit> = 0;
  virtual auto bounds() const -> box = 0;

protected:
  const material *surface_;
  mutable uint32_t tests_ = 0;
};

class sphere : public shape {
public:
  sphere(point c, double r, const material *m) : shape(m), centre_(c), radius_(r) {}
  auto intersect(const ray &r, double nearest) const -> std::optional<hit> override {
    ++tests_;
    const auto oc = r.origin - centre_;
    const auto b = dot(oc, r.direction), c = dot(oc, oc) - radius_ * radius_;
    const auto disc = b * b - c;
    if (disc < 0) return std::nullopt;
    auto t = -b - std::sqrt(disc);
    if (t < 1e-4) t = -b + std::sqrt(disc);
    if (t < 1e-4 || t > nearest) return std::nullopt;
    const auto p = r.origin + r.direction * t, n = (p - centre_) * (1 / radius_);
    return hit{t, p, n, float(n.x * .5 + .5), float(n.y * .5 + .5), surface_};
  }
  auto bounds() const -> box override {
    const point r{radius_, radius_, radius_};
    return {centre_ - r, centre_ + r};
  }
  void move(const point &by) { centre_ += by; }

private:
  point centre_;
  double radius_;
};

class slab final : public shape {
public:
  slab(point lo, point hi, const material *m) : shape(m), extent_{lo, hi} {}
  auto intersect(const ray &r, double nearest) const -> std::optional<hit> override {
    ++tests_;
    double near = 1e-4, far = nearest;
    int axis = -1;
    for (int a = 0; a < 3; ++a) {
      const auto inv = 1 / r.direction[a];
      auto t0 = (extent_.lo[a] - r.origin[a]) * inv, t1 = (extent_.hi[a] - r.origin[a]) * inv;
      if (inv < 0) std::swap(t0, t1);
      if (t0 > near) near = t0, axis = a;
      far = std::min(far, t1);
      if (far <= near) return std::nullopt;
    }
    if (axis < 0) return std::nullopt;
    const auto p = r.origin + r.direction * near;
    const auto sign = r.direction[axis] > 0 ? -1.0 : 1.0;
    const point n{axis == 0 ? sign : 0, axis == 1 ? sign : 0, axis == 2 ? sign : 0};
    return hit{near, p, n, float(p.x), float(p.z), surface_};
  }
  auto bounds() const -> box override { return extent_; }

private:
  box extent_;
};

struct vertex {
  point at;
  std::array<float, 2> uv;
};

struct face {
  uint32_t a, b, c;
};

class mesh final : public shape {
public:
  mesh(const material *m, point at, int rings) : shape(m) {
    for (int i = 0; i <= rings; ++i)
      for (int k = 0; k < 6; ++k) {
        const auto a = k * 1.0472 + i, r = .2 + .15 * ((i * 3) % 4);
        vertices_.push_back({at + point{std::cos(a) * r, i * .2, std::sin(a) * r}, {i / float(rings), k / 6.f}});
        extent_.grow(vertices_.back().at);
      }
    for (uint32_t i = 0; i < uint32_t(rings); ++i)
      for (uint32_t k = 0; k < 6; ++k) {
        faces_.push_back({i * 6 + k, i * 6 + (k + 1) % 6, i * 6 + 6 + k});
        faces_.push_back({i * 6 + (k + 1) % 6, i * 6 + 6 + (k + 1) % 6, i * 6 + 6 + k});
      }
  }
  auto intersect(const ray &r, double nearest) const -> std::optional<hit> override {
    ++tests_;
    std::optional<hit> best;
    for (const auto &f : faces_) {
      const auto &a = vertices_[f.a], &b = vertices_[f.b], &c = vertices_[f.c];
      const auto e1 = b.at - a.at, e2 = c.at - a.at, p = cross(r.direction, e2);
      const auto det = dot(e1, p);
      if (std::abs(det) < 1e-12) continue;
      const auto s = r.origin - a.at;
      const auto u = dot(s, p) / det;
      if (u < 0 || u > 1) continue;
      const auto q = cross(s, e1);
      const auto v = dot(r.direction, q) / det;
      if (v < 0 || u + v > 1) continue;
      const auto t = dot(e2, q) / det;
      if (t < 1e-4 || t > nearest) continue;
      nearest = t;
      auto n = unit(cross(e1, e2));
      if (dot(n, r.direction) > 0) n = n * -1.0;
      best = hit{t, r.origin + r.direction * t, n, a.uv[0] + float(u) * (b.uv[0] - a.uv[0]),
                 a.uv[1] + float(v) * (c.uv[1] - a.uv[1]), surface_};
    }
    return best;
  }
  auto bounds() const -> box override { return extent_; }

private:
  vec<vertex> vertices_;
  vec<face> faces_;
  box extent_;
};

// A node is followed by its first child; a leaf has shapes.
struct node {
  box extent;
  int32_t second;
  uint16_t shapes, axis;
};

class scene {
public:
  template <typename S, typename... A> auto add(A &&...a) -> S & {
    auto made = heap::make<S>(std::forward<A>(a)...);
    S &kept = *made;
    shapes_.push_back(std::move(made));
    return kept;
  }
  template <typename M, typename... A> auto paint(A &&...a) -> const M * {
    auto made = heap::make<M>(std::forward<A>(a)...);
    const M *kept = made.get();
    materials_.push_back(std::move(made));
    return kept;
  }

  NOINLINE void build() {
    nodes_.clear();
    order_.clear();
    for (const auto &s : shapes_) order_.push_back(s.get());
    split(0, int(order_.size()));
    ++builds_;
  }

  NOINLINE auto trace(const ray &r) const -> std::optional<hit> {
    std::optional<hit> best;
    double nearest = r.t_max;
    const point inv{1 / r.direction.x, 1 / r.direction.y, 1 / r.direction.z};
    int32_t stack[32], top = 0, at = 0;
    for (;;) {
      const node &n = nodes_[at];
      if (crosses(n.extent, r, inv, nearest)) {
        if (n.shapes == 0) {
          const bool back = r.direction[n.axis] < 0;
          stack[top++] = back ? at + 1 : n.second;
          at = back ? n.second : at + 1;
          continue;
        }
        for (int i = 0; i < n.shapes; ++i)
          if (auto h = order_[n.second + i]->intersect(r, nearest)) {
            nearest = h->t;
            best = h;
          }
      }
      if (top == 0) return best;
      at = stack[--top];
    }
  }

private:
  static bool crosses(const box &b, const ray &r, const point &inv, double far) {
    double near = 0;
    for (int a = 0; a < 3; ++a) {
      const auto t0 = (b.lo[a] - r.origin[a]) * inv[a], t1 = (b.hi[a] - r.origin[a]) * inv[a];
      near = std::max(near, std::min(t0, t1));
      far = std::min(far, std::max(t0, t1));
    }
    return near <= far;
  }

  void split(int first, int last) {
    const auto self = nodes_.size();
    nodes_.push_back({});
    box extent, centres;
    for (int i = first; i < last; ++i) {
      const auto b = order_[i]->bounds();
      extent.grow(b);
      centres.grow(b.centre());
    }
    const auto size = centres.hi - centres.lo;
    const uint16_t axis = size.x > size.y && size.x > size.z ? 0 : size.y > size.z ? 1 : 2;
    if (last - first <= 2) {
      nodes_[self] = {extent, first, uint16_t(last - first), axis};
      return;
    }
    const int middle = (first + last) / 2;
    std::nth_element(order_.begin() + first, order_.begin() + middle, order_.begin() + last,
                     [axis](const shape *a, const shape *b) { return a->bounds().lo[axis] < b->bounds().lo[axis]; });
    split(first, middle);
    const auto second = int32_t(nodes_.size());
    split(middle, last);
    nodes_[self] = {extent, second, 0, axis};
  }

  vec<std::unique_ptr<shape>> shapes_;
  vec<std::unique_ptr<material>> materials_;
  vec<node> nodes_;
  vec<const shape *> order_;
  unsigned builds_ = 0;
};

struct pixel {
  colour sum;
  float variance;
  uint32_t samples;
};

template <int Side> struct tile {
  std::array<pixel, Side * Side> pixels;
  float error = 1;
  unsigned passes = 0;
};

template <int Side> class film {
public:
  film(int across, int down) : across_(across), tiles_(size_t(across) * down) {}
  void add(int x, int y, const colour &c) {
    auto &p = tiles_[size_t(y / Side) * across_ + x / Side].pixels[(y % Side) * Side + x % Side];
    const auto grey = (c.x + c.y + c.z) / 3, mean = p.samples ? p.sum.x / p.samples : grey;
    p.variance += (grey - mean) * (grey - mean);
    p.sum += c;
    ++p.samples;
  }
  // The tile that is least sure of its pixels.
  NOINLINE auto worst() -> size_t {
    size_t found = 0;
    for (size_t i = 0; i < tiles_.size(); ++i) {
      tiles_[i].error *= 1.02f;
      if (tiles_[i].error > tiles_[found].error) found = i;
    }
    auto &t = tiles_[found];
    float error = 0;
    for (const auto &p : t.pixels) error += p.variance / float(p.samples * p.samples + 1);
    t.error = error + 1e-3f;
    ++t.passes;
    return found;
  }
  NOINLINE void develop(vec<uint32_t> &out) const {
    out.resize(tiles_.size() * Side * Side);
    auto *to = out.data();
    for (const auto &t : tiles_)
      for (const auto &p : t.pixels) {
        const auto scale = 255.f / float(p.samples + 1);
        *to++ = uint32_t(p.sum.x * scale) << 16 | uint32_t(p.sum.y * scale) << 8 | uint32_t(p.sum.z * scale);
      }
  }
  auto across() const { return across_; }

private:
  int across_;
  vec<tile<Side>> tiles_;
};

struct camera {
  point eye, forward, right, up;
  double zoom;
  auto through(double x, double y) const -> ray {
    return {eye, unit(forward * zoom + right * x + up * y), 1e30, 0};
  }
};

NOINLINE auto radiance(const scene &world, ray r, sampler &s) -> colour {
  colour light{}, weight{1, 1, 1};
  while (r.depth < 5) {
    const auto h = world.trace(r);
    if (!h) return light + weight * colour{.2f, .3f, .5f};
    light += weight * h->surface->emitted(*h);
    const auto next = h->surface->scatter(r, *h, s);
    if (!next) break;
    weight = weight * next->weight;
    r = next->out;
  }
  return light;
}

} // namespace rt

int main(int argc, char **argv) {
  using namespace rt;
  tr_init(argc, argv);
  static sampler random{{1, 22, 333, 4444}};
  static camera view{{0, 2, -8}, {0, -.1, 1}, {1, 0, 0}, {0, 1, .1}, 1.4};
  TR_GLOBALX(random);
  TR_GLOBALX(view);
  auto map = heap::make<texture>(64, 64);
  auto world = heap::make<scene>();
  const material *paints[] = {world->paint<matte>(colour{.8f, .7f, .6f}, nullptr), world->paint<matte>(colour{1, 1, 1}, map.get()),
                              world->paint<metal>(colour{.9f, .9f, .8f}, .1), world->paint<lamp>(4.f)};
  vec<sphere *> moving;
  for (int i = 0; i < 60; ++i) {
    const point at{double(tr_rand() % 800) / 100 - 4, double(tr_rand() % 400) / 100, double(tr_rand() % 800) / 100 - 4};
    if (i % 3 == 0) moving.push_back(&world->add<sphere>(at, .2 + i * .005, paints[i % 4]));
    else if (i % 3 == 1) world->add<slab>(at, at + point{.4, .3, .4}, paints[(i / 3) % 4]);
    else if (i % 12 == 2) world->add<mesh>(paints[1], at, 3);
  }
  world->add<slab>(point{-20, -1, -20}, point{20, -.5, 20}, paints[1]);
  world->build();
  auto picture = heap::make<film<8>>(10, 8);
  vec<uint32_t> shown;
  double sum = 0;
  for (unsigned frame = 0; tr_more(); ++frame) {
    const auto worst = int(picture->worst());
    const auto x0 = worst % picture->across() * 8, y0 = worst / picture->across() * 8;
    for (int y = y0; y < y0 + 8; ++y)
      for (int x = x0; x < x0 + 8; ++x) {
        const auto r = view.through((x + random.next()) / 40 - 1, 1 - (y + random.next()) / 32);
        picture->add(x, y, radiance(*world, r, random));
      }
    if (frame % 4 == 0) {
      for (auto *s : moving) s->move({random.next() * .02 - .01, 0, 0});
      world->build();
      picture->develop(shown);
      sum += shown[frame % shown.size()];
    }
  }
  tr_sink = uint64_t(sum);
}
