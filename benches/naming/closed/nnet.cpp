// Tensors that are counted by themselves, operators behind a table, a tape of what is to be
// differentiated, modules, an optimiser with a state for each parameter, batches of pictures.

#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace nt {

template <class T>
using Vec = std::vector<T, heap::Alloc<T>>;

class intrusive_target {
 public:
  virtual ~intrusive_target() = default;
  virtual void release_resources() {}

 protected:
  intrusive_target() = default;

 private:
  template <class T>
  friend class intrusive_ptr;
  mutable size_t refcount_ = 0;
};

template <class T>
class intrusive_ptr {
 public:
  intrusive_ptr() = default;
  explicit intrusive_ptr(T* p) : target_(p) { retain(); }
  intrusive_ptr(const intrusive_ptr& o) : target_(o.target_) { retain(); }
  intrusive_ptr(intrusive_ptr&& o) noexcept : target_(o.target_) { o.target_ = nullptr; }
  template <class U>
  intrusive_ptr(const intrusive_ptr<U>& o) : target_(o.get()) { retain(); }
  ~intrusive_ptr() { reset(); }
  intrusive_ptr& operator=(intrusive_ptr o) noexcept {
    std::swap(target_, o.target_);
    return *this;
  }
  void reset() {
    if (target_ && --target_->intrusive_target::refcount_ == 0) {
      target_->release_resources();
      delete target_;
    }
    target_ = nullptr;
  }
  T* get() const { return target_; }
  T* operator->() const { return target_; }
  T& operator*() const { return *target_; }
  explicit operator bool() const { return target_; }

 private:
  void retain() {
    if (target_) target_->intrusive_target::refcount_++;
  }
  T* target_ = nullptr;
};

template <class T, class... A>
intrusive_ptr<T> make_intrusive(A&&... args) {
  heap::Of<T> scope;
  return intrusive_ptr<T>(new T(std::forward<A>(args)...));
}

// The sizes of a tensor; no more than four.
struct IntArray {
  std::array<long, 4> data{};
  int count = 0;
  IntArray() = default;
  IntArray(std::initializer_list<long> l) {
    for (long x : l) data[count++] = x;
  }
  long operator[](int i) const { return data[i]; }
  long& operator[](int i) { return data[i]; }
  long numel() const {
    long n = 1;
    for (int i = 0; i < count; i++) n *= data[i];
    return n;
  }
};

struct StorageImpl final : intrusive_target {
  explicit StorageImpl(long n) : data_(heap::Alloc<float>().allocate(n)), numel_(n) { bytes_in_use += n * sizeof(float); }
  ~StorageImpl() override { heap::Alloc<float>().deallocate(data_, numel_); bytes_in_use -= numel_ * sizeof(float); }
  float* data_;
  long numel_;
  static inline size_t bytes_in_use = 0;
};

struct TensorImpl;
struct Node;

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(intrusive_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  static Tensor empty(IntArray sizes);
  static Tensor zeros(IntArray sizes);
  TensorImpl* operator->() const { return impl_.get(); }
  TensorImpl* get() const { return impl_.get(); }
  bool defined() const { return bool(impl_); }
  float* data() const;
  const IntArray& sizes() const;
  long numel() const;
  Tensor view(IntArray sizes) const;

 private:
  intrusive_ptr<TensorImpl> impl_;
};

struct AutogradMeta {
  Tensor grad;
  intrusive_ptr<Node> grad_fn;
  bool requires_grad = false;
  unsigned version = 0;
};

struct TensorImpl final : intrusive_target {
  TensorImpl(intrusive_ptr<StorageImpl> storage, IntArray sizes) : storage_(std::move(storage)), sizes_(sizes), numel_(sizes.numel()) {
    long stride = 1;
    strides_.count = sizes.count;
    for (int i = sizes.count - 1; i >= 0; i--) {
      strides_[i] = stride;
      stride *= sizes[i];
    }
  }
  intrusive_ptr<StorageImpl> storage_;
  long offset_ = 0;
  IntArray sizes_, strides_;
  long numel_;
  AutogradMeta autograd_;
};

Tensor Tensor::empty(IntArray sizes) { return Tensor(make_intrusive<TensorImpl>(make_intrusive<StorageImpl>(sizes.numel()), sizes)); }
Tensor Tensor::zeros(IntArray sizes) {
  Tensor t = empty(sizes);
  std::fill_n(t.data(), t.numel(), 0.f);
  return t;
}
float* Tensor::data() const { return impl_->storage_->data_ + impl_->offset_; }
const IntArray& Tensor::sizes() const { return impl_->sizes_; }
long Tensor::numel() const { return impl_->numel_; }
Tensor Tensor::view(IntArray sizes) const {
  auto made = make_intrusive<TensorImpl>(impl_->storage_, sizes);
  made->offset_ = impl_->offset_;
  return Tensor(made);
}

// ---- kernels ----

// c[m][n] += a[m][k] * b[k][n], either of them transposed.
NOINLINE void gemm(bool ta, bool tb, long m, long n, long k, const float* a, const float* b, float* c) {
  constexpr long kTile = 16;
  for (long i0 = 0; i0 < m; i0 += kTile)
    for (long p0 = 0; p0 < k; p0 += kTile)
      for (long i = i0; i < std::min(m, i0 + kTile); i++)
        for (long p = p0; p < std::min(k, p0 + kTile); p++) {
          const float x = ta ? a[p * m + i] : a[i * k + p];
          float* row = c + i * n;
          if (tb)
            for (long j = 0; j < n; j++) row[j] += x * b[j * k + p];
          else
            for (long j = 0; j < n; j++) row[j] += x * b[p * n + j];
        }
}

enum class UnaryOp : int { kRelu, kTanh, kSquare, kCount };
struct UnaryKernel {
  const char* name;
  float (*forward)(float);
  float (*derivative)(float in, float out);
  unsigned long calls;
};
UnaryKernel unary_kernels[int(UnaryOp::kCount)] = {
    {"relu", [](float x) { return x > 0 ? x : 0.01f * x; }, [](float x, float) { return x > 0 ? 1.f : 0.01f; }, 0},
    {"tanh", [](float x) { return x / (1 + std::fabs(x)); }, [](float x, float) { const float d = 1 + std::fabs(x); return 1 / (d * d); }, 0},
    {"square", [](float x) { return x * x; }, [](float x, float) { return 2 * x; }, 0},
};

NOINLINE void im2col(const float* image, long channels, long height, long width, long kernel, float* columns) {
  const long oh = height - kernel + 1, ow = width - kernel + 1;
  for (long c = 0; c < channels; c++)
    for (long ky = 0; ky < kernel; ky++)
      for (long kx = 0; kx < kernel; kx++)
        for (long y = 0; y < oh; y++) {
          const float* from = image + (c * height + y + ky) * width + kx;
          for (long x = 0; x < ow; x++) *columns++ = from[x];
        }
}

NOINLINE void col2im(const float* columns, long channels, long height, long width, long kernel, float* image) {
  const long oh = height - kernel + 1, ow = width - kernel + 1;
  for (long c = 0; c < channels; c++)
    for (long ky = 0; ky < kernel; ky++)
      for (long kx = 0; kx < kernel; kx++)
        for (long y = 0; y < oh; y++) {
          float* to = image + (c * height + y + ky) * width + kx;
          for (long x = 0; x < ow; x++) to[x] += *columns++;
        }
}

NOINLINE void accumulate(Tensor& into, const Tensor& grad) {
  if (!into.defined()) into = Tensor::zeros(grad.sizes());
  float* to = into.data();
  const float* from = grad.data();
  for (long i = 0, n = grad.numel(); i < n; i++) to[i] += from[i];
}

// ---- the tape ----

struct Edge {
  intrusive_ptr<Node> function;
  Tensor variable;  // of a leaf
};

struct Node : intrusive_target {
  virtual const char* name() const = 0;
  virtual Vec<Tensor> apply(const Tensor& grad) = 0;
  void add_input(const Tensor& t) {
    next_edges_.push_back({t->autograd_.grad_fn, t->autograd_.requires_grad && !t->autograd_.grad_fn ? t : Tensor()});
  }
  void release_resources() override { next_edges_.clear(); }
  Vec<Edge> next_edges_;
  unsigned long sequence_nr_ = counter++;
  int dependencies_ = 0;
  Tensor pending_;

  static inline unsigned long counter = 0;
};

Tensor with_grad(Tensor out, const intrusive_ptr<Node>& fn) {
  out->autograd_.grad_fn = fn;
  out->autograd_.requires_grad = true;
  return out;
}

class Engine {
 public:
  NOINLINE void backward(const Tensor& root) {
    queue_.clear();
    count_dependencies(root->autograd_.grad_fn.get());
    Tensor one = Tensor::empty(root.sizes());
    std::fill_n(one.data(), one.numel(), 1.f);
    root->autograd_.grad_fn->pending_ = one;
    push(root->autograd_.grad_fn);
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), later);
      intrusive_ptr<Node> node = queue_.back();
      queue_.pop_back();
      Vec<Tensor> grads = node->apply(node->pending_);
      node->pending_ = Tensor();
      evaluated++;
      for (size_t i = 0; i < grads.size(); i++) {
        Edge& edge = node->next_edges_[i];
        if (edge.variable.defined()) accumulate(edge.variable->autograd_.grad, grads[i]);
        if (!edge.function) continue;
        accumulate(edge.function->pending_, grads[i]);
        if (--edge.function->dependencies_ == 0) push(edge.function);
      }
    }
  }
  unsigned long evaluated = 0;

 private:
  static bool later(const intrusive_ptr<Node>& a, const intrusive_ptr<Node>& b) { return a->sequence_nr_ < b->sequence_nr_; }
  void push(const intrusive_ptr<Node>& n) {
    queue_.push_back(n);
    std::push_heap(queue_.begin(), queue_.end(), later);
  }
  void count_dependencies(Node* root) {
    seen_.clear();
    Vec<Node*> stack{root};
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (Edge& e : n->next_edges_)
        if (e.function) {
          e.function->dependencies_++;
          if (seen_.insert(e.function.get()).second) stack.push_back(e.function.get());
        }
    }
  }
  Vec<intrusive_ptr<Node>> queue_;
  std::unordered_set<Node*, std::hash<Node*>, std::equal_to<Node*>, heap::Alloc<Node*>> seen_;
};

struct LinearBackward final : Node {
  const char* name() const override { return "LinearBackward"; }
  Vec<Tensor> apply(const Tensor& grad) override {
    const long batch = input.sizes()[0], in = weight.sizes()[1], out = weight.sizes()[0];
    Tensor gi = Tensor::zeros({batch, in}), gw = Tensor::zeros({out, in}), gb = Tensor::zeros({out});
    gemm(false, false, batch, in, out, grad.data(), weight.data(), gi.data());
    gemm(true, false, out, in, batch, grad.data(), input.data(), gw.data());
    float* b = gb.data();
    for (long i = 0; i < batch; i++)
      for (long j = 0; j < out; j++) b[j] += grad.data()[i * out + j];
    return {gi, gw, gb};
  }
  Tensor input, weight;
};

struct ConvBackward final : Node {
  const char* name() const override { return "ConvBackward"; }
  Vec<Tensor> apply(const Tensor& grad) override {
    const IntArray& is = input.sizes();
    const long out = weight.sizes()[0], depth = weight.sizes()[1], area = grad.numel() / (is[0] * out);
    Tensor gi = Tensor::zeros(is), gw = Tensor::zeros(weight.sizes()), gc = Tensor::empty({depth, area});
    for (long n = 0; n < is[0]; n++) {
      const float* g = grad.data() + n * out * area;
      gemm(false, true, out, depth, area, g, columns.data() + n * depth * area, gw.data());
      std::fill_n(gc.data(), depth * area, 0.f);
      gemm(true, false, depth, area, out, weight.data(), g, gc.data());
      col2im(gc.data(), is[1], is[2], is[3], kernel, gi.data() + n * is[1] * is[2] * is[3]);
    }
    return {gi, gw};
  }
  Tensor input, weight, columns;
  long kernel = 0;
};

struct UnaryBackward final : Node {
  const char* name() const override { return unary_kernels[int(op)].name; }
  Vec<Tensor> apply(const Tensor& grad) override {
    Tensor gi = Tensor::empty(grad.sizes());
    const UnaryKernel& kernel = unary_kernels[int(op)];
    for (long i = 0; i < grad.numel(); i++) gi.data()[i] = grad.data()[i] * kernel.derivative(input.data()[i], output.data()[i]);
    return {gi};
  }
  UnaryOp op = UnaryOp::kRelu;
  Tensor input, output;
};

struct MaxPoolBackward final : Node {
  const char* name() const override { return "MaxPoolBackward"; }
  Vec<Tensor> apply(const Tensor& grad) override {
    Tensor gi = Tensor::zeros(in_sizes);
    for (long i = 0; i < grad.numel(); i++) gi.data()[indices[i]] += grad.data()[i];
    return {gi};
  }
  IntArray in_sizes;
  Vec<int> indices;
};

struct NllBackward final : Node {
  const char* name() const override { return "NllBackward"; }
  Vec<Tensor> apply(const Tensor& grad) override {
    const long batch = probabilities.sizes()[0], classes = probabilities.sizes()[1];
    Tensor gi = Tensor::empty({batch, classes});
    for (long i = 0; i < batch; i++)
      for (long j = 0; j < classes; j++) gi.data()[i * classes + j] = (probabilities.data()[i * classes + j] - (labels[i] == j)) * grad.data()[0] / batch;
    return {gi};
  }
  Tensor probabilities;
  Vec<int> labels;
};

// ---- functions ----

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  const long batch = x.sizes()[0], in = w.sizes()[1], out = w.sizes()[0];
  Tensor y = Tensor::empty({batch, out});
  for (long i = 0; i < batch; i++) std::copy_n(b.data(), out, y.data() + i * out);
  gemm(false, true, batch, out, in, x.data(), w.data(), y.data());
  auto fn = make_intrusive<LinearBackward>();
  fn->input = x;
  fn->weight = w;
  for (const Tensor* t : {&x, &w, &b}) fn->add_input(*t);
  return with_grad(y, fn);
}

Tensor conv2d(const Tensor& x, const Tensor& w, long kernel) {
  const IntArray& s = x.sizes();
  const long oh = s[2] - kernel + 1, ow = s[3] - kernel + 1, out = w.sizes()[0], depth = w.sizes()[1];
  Tensor y = Tensor::zeros({s[0], out, oh, ow}), columns = Tensor::empty({s[0], depth, oh * ow});
  for (long n = 0; n < s[0]; n++) {
    float* c = columns.data() + n * depth * oh * ow;
    im2col(x.data() + n * s[1] * s[2] * s[3], s[1], s[2], s[3], kernel, c);
    gemm(false, false, out, oh * ow, depth, w.data(), c, y.data() + n * out * oh * ow);
  }
  auto fn = make_intrusive<ConvBackward>();
  fn->input = x;
  fn->weight = w;
  fn->columns = columns;
  fn->kernel = kernel;
  fn->add_input(x);
  fn->add_input(w);
  return with_grad(y, fn);
}

NOINLINE Tensor unary(UnaryOp op, const Tensor& x) {
  Tensor y = Tensor::empty(x.sizes());
  UnaryKernel& kernel = unary_kernels[int(op)];
  kernel.calls++;
  for (long i = 0; i < x.numel(); i++) y.data()[i] = kernel.forward(x.data()[i]);
  auto fn = make_intrusive<UnaryBackward>();
  fn->op = op;
  fn->input = x;
  fn->output = y;
  fn->output->autograd_.version++;
  fn->add_input(x);
  return with_grad(y.view(y.sizes()), fn);
}

NOINLINE Tensor max_pool(const Tensor& x) {
  const IntArray& s = x.sizes();
  Tensor y = Tensor::empty({s[0], s[1], s[2] / 2, s[3] / 2});
  auto fn = make_intrusive<MaxPoolBackward>();
  fn->in_sizes = s;
  fn->indices.reserve(y.numel());
  for (long plane = 0; plane < s[0] * s[1]; plane++)
    for (long i = 0; i < s[2] / 2; i++)
      for (long j = 0; j < s[3] / 2; j++) {
        int best = int((plane * s[2] + 2 * i) * s[3] + 2 * j);
        for (int k : {best + 1, best + int(s[3]), best + int(s[3]) + 1})
          if (x.data()[k] > x.data()[best]) best = k;
        y.data()[fn->indices.size()] = x.data()[best];
        fn->indices.push_back(best);
      }
  fn->add_input(x);
  return with_grad(y, fn);
}

NOINLINE Tensor cross_entropy(const Tensor& x, const int* labels) {
  const long batch = x.sizes()[0], classes = x.sizes()[1];
  auto fn = make_intrusive<NllBackward>();
  fn->probabilities = Tensor::empty({batch, classes});
  fn->labels.assign(labels, labels + batch);
  Tensor loss = Tensor::zeros({1});
  for (long i = 0; i < batch; i++) {
    const float* row = x.data() + i * classes;
    float* p = fn->probabilities.data() + i * classes;
    const float top = *std::max_element(row, row + classes);
    float sum = 0;
    for (long j = 0; j < classes; j++) sum += p[j] = std::exp(row[j] - top);
    for (long j = 0; j < classes; j++) p[j] /= sum;
    loss.data()[0] -= std::log(p[labels[i]] + 1e-9f) / batch;
  }
  fn->add_input(x);
  return with_grad(loss, fn);
}

// ---- modules ----

class Module {
 public:
  explicit Module(const char* name) : name_(name) {}
  virtual ~Module() = default;
  virtual Tensor forward(const Tensor& x) = 0;
  virtual void collect(Vec<Tensor>& into) {
    for (Tensor& p : parameters_) into.push_back(p);
  }

 protected:
  Tensor parameter(IntArray sizes, float scale) {
    Tensor t = Tensor::empty(sizes);
    for (long i = 0; i < t.numel(); i++) t.data()[i] = scale * (float(tr_rand() % 2001) / 1000 - 1);
    t->autograd_.requires_grad = true;
    parameters_.push_back(t);
    return t;
  }
  const char* name_;
  Vec<Tensor> parameters_;
};

class Linear final : public Module {
 public:
  Linear(long in, long out) : Module("linear") {
    weight_ = parameter({out, in}, 1 / std::sqrt(float(in)));
    bias_ = parameter({out}, 0.01f);
  }
  Tensor forward(const Tensor& x) override { return linear(x.sizes().count == 2 ? x : flatten(x), weight_, bias_); }

 private:
  static Tensor flatten(const Tensor& x) {
    Tensor v = x.view({x.sizes()[0], x.numel() / x.sizes()[0]});
    v->autograd_.grad_fn = x->autograd_.grad_fn;
    return v;
  }
  Tensor weight_, bias_;
};

class Conv final : public Module {
 public:
  Conv(long in, long out, long kernel) : Module("conv"), kernel_(kernel) { weight_ = parameter({out, in * kernel * kernel}, 0.3f); }
  Tensor forward(const Tensor& x) override { return conv2d(x, weight_, kernel_); }

 private:
  long kernel_;
  Tensor weight_;
};

class Activation final : public Module {
 public:
  explicit Activation(UnaryOp op) : Module("activation"), op_(op) {}
  Tensor forward(const Tensor& x) override { return unary(op_, x); }

 private:
  UnaryOp op_;
};

class MaxPool final : public Module {
 public:
  MaxPool() : Module("pool") {}
  Tensor forward(const Tensor& x) override { return max_pool(x); }
};

class Sequential final : public Module {
 public:
  Sequential() : Module("sequential") {}
  template <class M, class... A>
  Sequential& add(A&&... args) {
    modules_.push_back(heap::make<M>(std::forward<A>(args)...));
    return *this;
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (auto& m : modules_) y = m->forward(y);
    return y;
  }
  void collect(Vec<Tensor>& into) override {
    for (auto& m : modules_) m->collect(into);
  }

 private:
  Vec<std::unique_ptr<Module>> modules_;
};

struct AdamState {
  Tensor exp_avg, exp_avg_sq;
  long step = 0;
};

class Adam {
 public:
  Adam(Vec<Tensor> params, float rate) : params_(std::move(params)), rate_(rate) {}
  NOINLINE void step() {
    for (Tensor& p : params_) {
      Tensor& grad = p->autograd_.grad;
      if (!grad.defined()) continue;
      AdamState& state = state_[p.get()];
      if (!state.step++) {
        state.exp_avg = Tensor::zeros(p.sizes());
        state.exp_avg_sq = Tensor::zeros(p.sizes());
      }
      float *m = state.exp_avg.data(), *v = state.exp_avg_sq.data(), *g = grad.data(), *w = p.data();
      for (long i = 0; i < p.numel(); i++) {
        m[i] += (1 - beta1_) * (g[i] - m[i]);
        v[i] += (1 - beta2_) * (g[i] * g[i] - v[i]);
        w[i] -= rate_ * m[i] / (std::sqrt(v[i]) + 1e-6f);
      }
      p->autograd_.version++;
      grad = Tensor();
    }
  }

 private:
  Vec<Tensor> params_;
  std::unordered_map<TensorImpl*, AdamState, std::hash<TensorImpl*>, std::equal_to<TensorImpl*>, heap::Alloc<std::pair<TensorImpl* const, AdamState>>> state_;
  float rate_, beta1_ = 0.9f, beta2_ = 0.99f;
};

struct Sample {
  std::array<float, 100> pixels;
  int label;
  unsigned drawn;
};

class DataLoader {
 public:
  DataLoader(size_t samples, long batch) : samples_(samples), order_(samples), labels_(batch), batch_(batch) {
    for (size_t s = 0; s < samples; s++) {
      samples_[s].label = int(s % 5);
      for (int i = 0; i < 100; i++) samples_[s].pixels[i] = float((i / 10 * (samples_[s].label + 1) + i % 10) % 7) / 7 + float(tr_rand() % 100) / 300;
      order_[s] = unsigned(s);
    }
  }
  NOINLINE Tensor next() {
    Tensor x = Tensor::empty({batch_, 1, 10, 10});
    for (long b = 0; b < batch_; b++) {
      std::swap(order_[at_], order_[at_ + tr_rand() % (order_.size() - at_)]);
      Sample& s = samples_[order_[at_]];
      if (++at_ == order_.size()) at_ = 0;
      const int shift = int(tr_rand() % 30);
      for (int i = 0; i < 100; i++) x.data()[b * 100 + i] = s.pixels[(i + shift) % 100];
      labels_[b] = s.label;
      s.drawn++;
    }
    return x;
  }
  const int* labels() const { return labels_.data(); }

 private:
  Vec<Sample> samples_;
  Vec<unsigned> order_;
  Vec<int> labels_;
  long batch_;
  size_t at_ = 0;
};

}  // namespace nt

static nt::Engine engine;

int main(int argc, char** argv) {
  using namespace nt;
  tr_init(argc, argv);
  tr_global("unary_kernels", unary_kernels, sizeof unary_kernels, "UnaryKernel []");
  TR_GLOBALX(engine);
  DataLoader loader(80, 4);
  auto convolved = heap::make<Sequential>(), plain = heap::make<Sequential>();
  convolved->add<Conv>(1L, 3L, 3L).add<Activation>(UnaryOp::kRelu).add<MaxPool>().add<Linear>(48L, 12L).add<Activation>(UnaryOp::kTanh).add<Linear>(12L, 5L);
  plain->add<Linear>(100L, 10L).add<Activation>(UnaryOp::kTanh).add<Linear>(10L, 8L).add<Activation>(UnaryOp::kSquare).add<Linear>(8L, 5L);
  Sequential* nets[] = {convolved.get(), plain.get()};
  Vec<Adam> optimizers;
  optimizers.reserve(2);
  for (Sequential* net : nets) {
    Vec<Tensor> params;
    net->collect(params);
    optimizers.emplace_back(params, 0.01f);
  }
  double losses[2] = {};
  unsigned long rounds = 0;
  for (; tr_more(); rounds++)
    for (int n = 0; n < 2; n++) {
      Tensor loss = cross_entropy(nets[n]->forward(loader.next()), loader.labels());
      engine.backward(loss);
      optimizers[n].step();
      losses[n] = 0.98 * losses[n] + 0.02 * loss.data()[0];
    }
  if (getenv("VERBOSE")) printf("%lu rounds, losses %f %f, %lu nodes, %zu bytes\n", rounds, losses[0], losses[1], engine.evaluated, StorageImpl::bytes_in_use);
  tr_sink = rounds + engine.evaluated;
}
