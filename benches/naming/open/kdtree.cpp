// Clouds of points: small matrices as templates, a k-d tree with sets of results as policies, thinning by voxels,
// normals from neighbours, clusters, planes by random samples, registration of one scan to another.
#include "../heap.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>
#include <vector>

namespace scan {

template <typename T> using AlignedVector = std::vector<T, heap::Alloc<T>>;
using Indices = AlignedVector<int>;

// ---- matrices of a fixed size, by columns ----

template <typename Scalar, int Rows, int Cols>
class Matrix {
 public:
  static Matrix Zero() { Matrix m; for (int i = 0; i < Rows * Cols; ++i) m.m_data[i] = Scalar(0); return m; }
  static Matrix Identity() { Matrix m = Zero(); for (int i = 0; i < Rows; ++i) m(i, i) = Scalar(1); return m; }
  Matrix() = default;
  Matrix(Scalar x, Scalar y, Scalar z) { m_data[0] = x; m_data[1] = y; m_data[2] = z; }

  Scalar &operator()(int row, int col) { return m_data[col * Rows + row]; }
  Scalar operator()(int row, int col) const { return m_data[col * Rows + row]; }
  Scalar &operator[](int i) { return m_data[i]; }
  Scalar operator[](int i) const { return m_data[i]; }

  Matrix &operator+=(const Matrix &o) { for (int i = 0; i < Rows * Cols; ++i) m_data[i] += o.m_data[i]; return *this; }
  Matrix &operator-=(const Matrix &o) { for (int i = 0; i < Rows * Cols; ++i) m_data[i] -= o.m_data[i]; return *this; }
  Matrix &operator*=(Scalar s) { for (int i = 0; i < Rows * Cols; ++i) m_data[i] *= s; return *this; }
  friend Matrix operator+(Matrix a, const Matrix &b) { return a += b; }
  friend Matrix operator-(Matrix a, const Matrix &b) { return a -= b; }
  friend Matrix operator*(Matrix a, Scalar s) { return a *= s; }

  template <int K>
  Matrix<Scalar, Rows, K> operator*(const Matrix<Scalar, Cols, K> &o) const {
    Matrix<Scalar, Rows, K> r = Matrix<Scalar, Rows, K>::Zero();
    for (int c = 0; c < K; ++c)
      for (int k = 0; k < Cols; ++k)
        for (int i = 0; i < Rows; ++i) r(i, c) += (*this)(i, k) * o(k, c);
    return r;
  }
  Scalar dot(const Matrix &o) const { Scalar s = 0; for (int i = 0; i < Rows * Cols; ++i) s += m_data[i] * o.m_data[i]; return s; }
  Scalar squaredNorm() const { return dot(*this); }
  Scalar norm() const { return std::sqrt(squaredNorm()); }
  Matrix normalized() const { Scalar n = norm(); return n > 0 ? *this * (Scalar(1) / n) : *this; }
  Matrix cross(const Matrix &o) const {
    return Matrix(m_data[1] * o[2] - m_data[2] * o[1], m_data[2] * o[0] - m_data[0] * o[2], m_data[0] * o[1] - m_data[1] * o[0]);
  }

 private:
  Scalar m_data[Rows * Cols];
};

using Vector3f = Matrix<float, 3, 1>;
using Matrix3f = Matrix<float, 3, 3>;
using Matrix6d = Matrix<double, 6, 6>;
using Vector6d = Matrix<double, 6, 1>;

struct Isometry {
  Matrix3f linear = Matrix3f::Identity();
  Vector3f translation = Vector3f::Zero();
  Vector3f operator*(const Vector3f &p) const { return linear * p + translation; }
  Isometry operator*(const Isometry &o) const { Isometry r; r.linear = linear * o.linear; r.translation = linear * o.translation + translation; return r; }
};

// Cyclic Jacobi: the vectors are the columns, the values are left on the diagonal.
template <int N>
NOINLINE void selfAdjointEigen(Matrix<float, N, N> &a, Matrix<float, N, N> &v) {
  v = Matrix<float, N, N>::Identity();
  for (int sweep = 0; sweep < 6; ++sweep)
    for (int p = 0; p < N; ++p)
      for (int q = p + 1; q < N; ++q) {
        if (std::fabs(a(p, q)) < 1e-9f) continue;
        float theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        float t = (theta < 0 ? -1.f : 1.f) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        float c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < N; ++k) {
          float x = a(k, p), y = a(k, q);
          a(k, p) = c * x - s * y;
          a(k, q) = s * x + c * y;
        }
        for (int k = 0; k < N; ++k) {
          float x = a(p, k), y = a(q, k);
          a(p, k) = c * x - s * y;
          a(q, k) = s * x + c * y;
          float e = v(k, p), f = v(k, q);
          v(k, p) = c * e - s * f;
          v(k, q) = s * e + c * f;
        }
      }
}

struct LDLT {
  Matrix6d factor;
  Vector6d solution;
  bool compute(const Matrix6d &a, const Vector6d &b);
};

NOINLINE bool LDLT::compute(const Matrix6d &a, const Vector6d &b) {
  factor = a;
  for (int j = 0; j < 6; ++j) {
    for (int k = 0; k < j; ++k) factor(j, j) -= factor(j, k) * factor(j, k) * factor(k, k);
    if (std::fabs(factor(j, j)) < 1e-12) return false;
    for (int i = j + 1; i < 6; ++i) {
      for (int k = 0; k < j; ++k) factor(i, j) -= factor(i, k) * factor(j, k) * factor(k, k);
      factor(i, j) /= factor(j, j);
    }
  }
  solution = b;
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < i; ++k) solution[i] -= factor(i, k) * solution[k];
  for (int i = 5; i >= 0; --i) {
    solution[i] /= factor(i, i);
    for (int k = i + 1; k < 6; ++k) solution[i] -= factor(k, i) * solution[k];
  }
  return true;
}

// ---- points ----

struct PointXYZ {
  float x, y, z, intensity;
  float operator[](int d) const { return (&x)[d]; }
  Vector3f getVector3f() const { return Vector3f(x, y, z); }
};

struct PointNormal : PointXYZ {
  float normal[3];
  float curvature;
};

template <typename PointT>
class PointCloud {
 public:
  using Ptr = std::shared_ptr<PointCloud<PointT>>;
  AlignedVector<PointT> points;
  std::uint32_t width = 0, height = 1;
  struct Header { std::uint64_t stamp; std::uint32_t seq; bool is_dense; } header{};

  const PointT &operator[](std::size_t i) const { return points[i]; }
  PointT &operator[](std::size_t i) { return points[i]; }
  std::size_t size() const { return points.size(); }
  void push_back(const PointT &p) { points.push_back(p); width = std::uint32_t(points.size()); }
  static Ptr make() { return std::allocate_shared<PointCloud>(heap::Alloc<PointCloud>()); }
};

// ---- the tree ----

struct L2 {
  template <typename P>
  static float distance(const float *query, const P &p) {
    float dx = query[0] - p.x, dy = query[1] - p.y, dz = query[2] - p.z;
    return dx * dx + dy * dy + dz * dz;
  }
  static float accumulate(float a) { return a * a; }
};

// Nodes are cut out of blocks that are kept for the next tree.
template <typename T, int PerBlock = 128>
class PooledAllocator {
  struct Block { Block *next; alignas(16) unsigned char room[PerBlock * sizeof(T)]; };
  Block *first_ = nullptr, *current_ = nullptr;
  int used_ = PerBlock;

 public:
  std::size_t usedMemory = 0;
  void freeAll() { current_ = first_; used_ = first_ ? 0 : PerBlock; usedMemory = 0; }
  T *allocate() {
    if (used_ == PerBlock) {
      Block *next = current_ ? current_->next : nullptr;
      if (!next) {
        next = static_cast<Block *>(std::malloc(sizeof(Block)));
        next->next = nullptr;
        tr_region(heap::name_of<T>(), next->room, sizeof next->room, sizeof(T));
        (current_ ? current_->next : first_) = next;
      }
      current_ = next;
      used_ = 0;
    }
    usedMemory += sizeof(T);
    return reinterpret_cast<T *>(current_->room) + used_++;
  }
};

class KnnResultSet {
  int *indices_;
  float *dists_;
  int capacity_, count_ = 0;

 public:
  KnnResultSet(int *indices, float *dists, int capacity) : indices_(indices), dists_(dists), capacity_(capacity) {
    dists_[capacity - 1] = std::numeric_limits<float>::max();
  }
  int size() const { return count_; }
  float worstDist() const { return dists_[capacity_ - 1]; }
  bool addPoint(float dist, int index) {
    int i = count_;
    for (; i > 0 && dists_[i - 1] > dist; --i)
      if (i < capacity_) {
        dists_[i] = dists_[i - 1];
        indices_[i] = indices_[i - 1];
      }
    if (i < capacity_) {
      dists_[i] = dist;
      indices_[i] = index;
    }
    if (count_ < capacity_) ++count_;
    return true;
  }
};

class RadiusResultSet {
  AlignedVector<std::pair<int, float>> &found_;
  float radius_;

 public:
  RadiusResultSet(float radius, AlignedVector<std::pair<int, float>> &found) : found_(found), radius_(radius) { found_.clear(); }
  float worstDist() const { return radius_; }
  bool addPoint(float dist, int index) {
    found_.emplace_back(index, dist);
    return found_.size() < 400;
  }
};

struct Interval { float low, high; };
struct KdNode {
  union {
    struct { int left, right; } lr;
    struct { int divfeat; float divlow, divhigh; } sub;
  } node_type;
  KdNode *child1, *child2;
};

template <typename PointT, class Distance = L2>
class KdTree {
 public:
  using Node = KdNode;
  using BoundingBox = std::array<Interval, 3>;

  explicit KdTree(int leaf_max_size = 10) : leaf_max_size_(leaf_max_size) {}
  NOINLINE void setInputCloud(typename PointCloud<PointT>::Ptr cloud) {
    cloud_ = std::move(cloud);
    indices_.resize(cloud_->size());
    for (std::size_t i = 0; i < indices_.size(); ++i) indices_[i] = int(i);
    pool_.freeAll();
    for (int d = 0; d < 3; ++d) {
      root_bbox_[d] = {(*cloud_)[0][d], (*cloud_)[0][d]};
      for (const PointT &p : cloud_->points) {
        root_bbox_[d].low = std::min(root_bbox_[d].low, p[d]);
        root_bbox_[d].high = std::max(root_bbox_[d].high, p[d]);
      }
    }
    BoundingBox box = root_bbox_;
    root_ = divideTree(0, int(indices_.size()), box);
  }

  template <class Result>
  NOINLINE bool findNeighbors(Result &result, const float *query) const {
    float dists[3] = {0, 0, 0}, dist = 0;
    for (int d = 0; d < 3; ++d) {
      if (query[d] < root_bbox_[d].low) dists[d] = Distance::accumulate(query[d] - root_bbox_[d].low);
      if (query[d] > root_bbox_[d].high) dists[d] = Distance::accumulate(query[d] - root_bbox_[d].high);
      dist += dists[d];
    }
    ++searches_;
    return searchLevel(result, query, root_, dist, dists);
  }

 private:
  NOINLINE Node *divideTree(int left, int right, BoundingBox &bbox) {
    Node *node = pool_.allocate();
    if (right - left <= leaf_max_size_) {
      node->child1 = node->child2 = nullptr;
      node->node_type.lr.left = left;
      node->node_type.lr.right = right;
      for (int d = 0; d < 3; ++d) {
        bbox[d].low = bbox[d].high = (*cloud_)[indices_[left]][d];
        for (int k = left + 1; k < right; ++k) {
          float v = (*cloud_)[indices_[k]][d];
          if (bbox[d].low > v) bbox[d].low = v;
          if (bbox[d].high < v) bbox[d].high = v;
        }
      }
      return node;
    }
    int cutfeat = 0;
    for (int d = 1; d < 3; ++d)
      if (bbox[d].high - bbox[d].low > bbox[cutfeat].high - bbox[cutfeat].low) cutfeat = d;
    float cutval = (bbox[cutfeat].low + bbox[cutfeat].high) / 2;
    int cut = planeSplit(left, right, cutfeat, cutval);
    node->node_type.sub.divfeat = cutfeat;
    BoundingBox left_bbox = bbox, right_bbox = bbox;
    left_bbox[cutfeat].high = right_bbox[cutfeat].low = cutval;
    node->child1 = divideTree(left, cut, left_bbox);
    node->child2 = divideTree(cut, right, right_bbox);
    node->node_type.sub.divlow = left_bbox[cutfeat].high;
    node->node_type.sub.divhigh = right_bbox[cutfeat].low;
    for (int d = 0; d < 3; ++d) bbox[d] = {std::min(left_bbox[d].low, right_bbox[d].low), std::max(left_bbox[d].high, right_bbox[d].high)};
    return node;
  }

  NOINLINE int planeSplit(int left, int right, int cutfeat, float cutval) {
    int i = left, j = right - 1;
    for (;;) {
      while (i <= j && (*cloud_)[indices_[i]][cutfeat] < cutval) ++i;
      while (i <= j && (*cloud_)[indices_[j]][cutfeat] >= cutval) --j;
      if (i > j) break;
      std::swap(indices_[i++], indices_[j--]);
    }
    return i == left || i == right ? (left + right) / 2 : i;
  }

  template <class Result>
  bool searchLevel(Result &result, const float *query, const Node *node, float mindist, float *dists) const {
    if (!node->child1) {
      for (int i = node->node_type.lr.left; i < node->node_type.lr.right; ++i) {
        float dist = Distance::distance(query, (*cloud_)[indices_[i]]);
        if (dist < result.worstDist() && !result.addPoint(dist, indices_[i])) return false;
      }
      return true;
    }
    int idx = node->node_type.sub.divfeat;
    float diff1 = query[idx] - node->node_type.sub.divlow, diff2 = query[idx] - node->node_type.sub.divhigh;
    bool below = diff1 + diff2 < 0;
    const Node *best = below ? node->child1 : node->child2, *other = below ? node->child2 : node->child1;
    float cut = Distance::accumulate(below ? diff2 : diff1);
    if (!searchLevel(result, query, best, mindist, dists)) return false;
    float before = dists[idx];
    mindist += cut - before;
    dists[idx] = cut;
    bool go_on = mindist > result.worstDist() || searchLevel(result, query, other, mindist, dists);
    dists[idx] = before;
    return go_on;
  }

  typename PointCloud<PointT>::Ptr cloud_;
  Indices indices_;
  int leaf_max_size_;
  mutable unsigned long searches_ = 0;
  BoundingBox root_bbox_;
  Node *root_ = nullptr;
  PooledAllocator<Node> pool_;
};

// ---- filters and features ----

struct VoxelKey {
  int x, y, z;
  bool operator==(const VoxelKey &o) const { return x == o.x && y == o.y && z == o.z; }
};
struct VoxelKeyHash {
  std::size_t operator()(const VoxelKey &k) const { return std::size_t(k.x) * 73856093u ^ std::size_t(k.y) * 19349669u ^ std::size_t(k.z) * 83492791u; }
};
struct VoxelLeaf {
  Vector3f sum = Vector3f::Zero();
  float intensity = 0;
  unsigned count = 0;
};

class VoxelGrid {
 public:
  explicit VoxelGrid(float leaf) : inverse_(1 / leaf) {}
  NOINLINE void filter(const PointCloud<PointXYZ> &in, PointCloud<PointNormal> &out) {
    leaves_.clear();
    for (const PointXYZ &p : in.points) {
      VoxelLeaf &leaf = leaves_[{int(std::floor(p.x * inverse_)), int(std::floor(p.y * inverse_)), int(std::floor(p.z * inverse_))}];
      leaf.sum += p.getVector3f();
      leaf.intensity += p.intensity;
      ++leaf.count;
    }
    out.points.clear();
    for (const auto &entry : leaves_) {
      Vector3f mean = entry.second.sum * (1.f / float(entry.second.count));
      PointNormal p;
      p.x = mean[0], p.y = mean[1], p.z = mean[2], p.intensity = entry.second.intensity / float(entry.second.count);
      p.normal[0] = p.normal[1] = p.normal[2] = p.curvature = 0;
      out.push_back(p);
    }
  }

 private:
  float inverse_;
  std::unordered_map<VoxelKey, VoxelLeaf, VoxelKeyHash, std::equal_to<VoxelKey>, heap::Alloc<std::pair<const VoxelKey, VoxelLeaf>>> leaves_;
};

template <typename PointT>
class NormalEstimation {
 public:
  explicit NormalEstimation(int k) : indices_(k), dists_(k), k_(k) {}
  void compute(PointCloud<PointT> &cloud, const KdTree<PointT> &tree, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < cloud.size(); ++i) {
      KnnResultSet result(indices_.data(), dists_.data(), k_);
      tree.findNeighbors(result, &cloud[i].x);
      computePoint(cloud, cloud[i], result.size());
    }
  }

 private:
  NOINLINE void computePoint(const PointCloud<PointT> &cloud, PointT &p, int n) {
    centroid_ = Vector3f::Zero();
    covariance_ = Matrix3f::Zero();
    for (int i = 0; i < n; ++i) centroid_ += cloud[indices_[i]].getVector3f();
    centroid_ *= 1.f / float(n);
    for (int i = 0; i < n; ++i) {
      Vector3f d = cloud[indices_[i]].getVector3f() - centroid_;
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) covariance_(r, c) += d[r] * d[c];
    }
    selfAdjointEigen(covariance_, vectors_);
    int least = 0;
    for (int d = 1; d < 3; ++d)
      if (covariance_(d, d) < covariance_(least, least)) least = d;
    float flip = vectors_(0, least) * p.x + vectors_(1, least) * p.y + vectors_(2, least) * p.z > 0 ? -1.f : 1.f;
    for (int d = 0; d < 3; ++d) p.normal[d] = flip * vectors_(d, least);
    p.curvature = covariance_(least, least) / (covariance_(0, 0) + covariance_(1, 1) + covariance_(2, 2) + 1e-9f);
  }
  Indices indices_;
  AlignedVector<float> dists_;
  Vector3f centroid_;
  Matrix3f covariance_, vectors_;
  int k_;
};

// ---- segmentation ----

struct PlaneModel { float a, b, c, d; };

class PlaneSac {
 public:
  NOINLINE std::size_t segment(const PointCloud<PointNormal> &cloud, float threshold, int iterations) {
    best_.clear();
    while (iterations--) {
      Vector3f p[3];
      for (Vector3f &v : p) v = cloud[tr_rand() % cloud.size()].getVector3f();
      Vector3f n = (p[1] - p[0]).cross(p[2] - p[0]).normalized();
      PlaneModel m{n[0], n[1], n[2], -n.dot(p[0])};
      inliers_.clear();
      for (std::size_t i = 0; i < cloud.size(); ++i) {
        const PointNormal &q = cloud[i];
        if (std::fabs(m.a * q.x + m.b * q.y + m.c * q.z + m.d) < threshold) inliers_.push_back(int(i));
      }
      if (inliers_.size() > best_.size()) {
        best_.swap(inliers_);
        model_ = m;
      }
    }
    return best_.size();
  }
  const Indices &inliers() const { return best_; }

 private:
  Indices inliers_, best_;
  PlaneModel model_{};
};

struct Cluster {
  Indices members;
  Vector3f low, high;
};

class EuclideanClusters {
 public:
  NOINLINE std::size_t extract(const PointCloud<PointNormal> &cloud, const KdTree<PointNormal> &tree, const Indices &removed, float radius) {
    clusters_.clear();
    done_.assign(cloud.size(), false);
    for (int i : removed) done_[i] = true;
    for (std::size_t seed = 0; seed < cloud.size(); ++seed) {
      if (done_[seed]) continue;
      Cluster cluster;
      cluster.low = cluster.high = cloud[seed].getVector3f();
      queue_.push(int(seed));
      done_[seed] = true;
      while (!queue_.empty()) {
        int at = queue_.front();
        queue_.pop();
        cluster.members.push_back(at);
        for (int d = 0; d < 3; ++d) {
          cluster.low[d] = std::min(cluster.low[d], cloud[at][d]);
          cluster.high[d] = std::max(cluster.high[d], cloud[at][d]);
        }
        RadiusResultSet result(radius * radius, found_);
        tree.findNeighbors(result, &cloud[at].x);
        for (const auto &f : found_)
          if (!done_[f.first]) {
            done_[f.first] = true;
            queue_.push(f.first);
          }
      }
      if (cluster.members.size() > 4) clusters_.push_back(std::move(cluster));
    }
    std::sort(clusters_.begin(), clusters_.end(), [](const Cluster &a, const Cluster &b) { return a.members.size() > b.members.size(); });
    return clusters_.size();
  }

 private:
  AlignedVector<Cluster> clusters_;
  std::vector<bool, heap::Alloc<bool>> done_;
  std::queue<int, std::deque<int, heap::Alloc<int>>> queue_;
  AlignedVector<std::pair<int, float>> found_;
};

// ---- registration ----

struct Correspondence {
  int query, match;
  float distance, weight;
};

class Rejector {
 public:
  virtual ~Rejector() = default;
  virtual void apply(AlignedVector<Correspondence> &pairs) = 0;
};

class MedianRejector final : public Rejector {
 public:
  void apply(AlignedVector<Correspondence> &pairs) override {
    if (pairs.empty()) return;
    order_.clear();
    for (const Correspondence &c : pairs) order_.push_back(c.distance);
    auto middle = order_.begin() + std::ptrdiff_t(order_.size() / 2);
    std::nth_element(order_.begin(), middle, order_.end());
    limit_ = *middle * 9;
    pairs.erase(std::remove_if(pairs.begin(), pairs.end(), [this](const Correspondence &c) { return c.distance > limit_; }), pairs.end());
  }

 private:
  AlignedVector<float> order_;
  float limit_ = 0;
};

class OneToOneRejector final : public Rejector {
 public:
  void apply(AlignedVector<Correspondence> &pairs) override {
    std::sort(pairs.begin(), pairs.end(), [](const Correspondence &a, const Correspondence &b) { return a.match != b.match ? a.match < b.match : a.distance < b.distance; });
    pairs.erase(std::unique(pairs.begin(), pairs.end(), [](const Correspondence &a, const Correspondence &b) { return a.match == b.match; }), pairs.end());
  }
};

class PointToPlaneICP {
 public:
  PointToPlaneICP() {
    rejectors_.push_back(heap::make<MedianRejector>());
    rejectors_.push_back(heap::make<OneToOneRejector>());
  }
  NOINLINE double align(const PointCloud<PointNormal> &source, const PointCloud<PointNormal> &target, const KdTree<PointNormal> &tree, int iterations) {
    estimate_ = Isometry();
    moved_.resize(source.size());
    for (int it = 0; it < iterations; ++it) {
      for (std::size_t i = 0; i < source.size(); ++i) moved_[i] = estimate_ * source[i].getVector3f();
      pairs_.clear();
      for (std::size_t i = 0; i < moved_.size(); i += 3) {
        int index;
        float dist;
        KnnResultSet nearest(&index, &dist, 1);
        tree.findNeighbors(nearest, &moved_[i][0]);
        pairs_.push_back({int(i), index, dist, 1 - target[index].curvature});
      }
      for (auto &rejector : rejectors_) rejector->apply(pairs_);
      fitness_ = accumulate(target);
      if (!solver_.compute(hessian_, gradient_)) break;
      update();
    }
    return fitness_;
  }

 private:
  NOINLINE double accumulate(const PointCloud<PointNormal> &target) {
    double error = 0;
    hessian_ = Matrix6d::Zero();
    gradient_ = Vector6d::Zero();
    for (const Correspondence &c : pairs_) {
      const Vector3f &p = moved_[c.query];
      const PointNormal &q = target[c.match];
      Vector3f n(q.normal[0], q.normal[1], q.normal[2]), t = p.cross(n);
      double r = n.dot(q.getVector3f() - p), j[6] = {t[0], t[1], t[2], n[0], n[1], n[2]};
      for (int row = 0; row < 6; ++row) {
        for (int col = 0; col <= row; ++col) hessian_(row, col) += c.weight * j[row] * j[col];
        gradient_[row] += c.weight * j[row] * r;
      }
      error += c.weight * r * r;
    }
    for (int i = 0; i < 6; ++i) hessian_(i, i) += 1e-6;
    return error / double(pairs_.size() + 1);
  }
  void update() {
    Isometry step;
    float a = float(solver_.solution[0]), b = float(solver_.solution[1]), c = float(solver_.solution[2]);
    float ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b), cc = std::cos(c), sc = std::sin(c);
    Matrix3f &m = step.linear;
    m(0, 0) = cb * cc, m(0, 1) = sa * sb * cc - ca * sc, m(0, 2) = ca * sb * cc + sa * sc;
    m(1, 0) = cb * sc, m(1, 1) = sa * sb * sc + ca * cc, m(1, 2) = ca * sb * sc - sa * cc;
    m(2, 0) = -sb, m(2, 1) = sa * cb, m(2, 2) = ca * cb;
    for (int d = 0; d < 3; ++d) step.translation[d] = float(solver_.solution[3 + d]);
    estimate_ = step * estimate_;
  }
  AlignedVector<std::unique_ptr<Rejector>> rejectors_;
  AlignedVector<Correspondence> pairs_;
  AlignedVector<Vector3f> moved_;
  Isometry estimate_;
  Matrix6d hessian_;
  Vector6d gradient_;
  LDLT solver_;
  double fitness_ = 0;
};

// A room with a floor, two walls, some boxes and balls, seen from a place that moves.
static void sweep(PointCloud<PointXYZ> &cloud, std::size_t n, float offset) {
  auto uniform = [] { return float(tr_rand() >> 40) / 16777216.f; };
  cloud.points.clear();
  for (std::size_t i = 0; i < n; ++i) {
    float u = uniform(), v = uniform(), noise = uniform() * 0.01f;
    PointXYZ p{};
    switch (tr_rand() >> 20 & 7) {
      case 0: case 1: case 2: p = {u * 8 - 4, v * 8 - 4, noise, 0.2f}; break;
      case 3: p = {-4 + noise, u * 8 - 4, v * 3, 0.5f}; break;
      case 4: p = {u * 8 - 4, 4 + noise, v * 3, 0.6f}; break;
      default: {
        int ball = int(tr_rand() >> 33) % 5;
        float a = u * 6.2831853f, h = v * 2 - 1, r = std::sqrt(1 - h * h) * 0.5f;
        p = {float(ball) - 2 + r * std::cos(a), float(ball * 3 % 5) - 2 + r * std::sin(a), 0.9f + 0.5f * h, 0.1f * float(ball)};
      }
    }
    p.x += offset;
    p.y -= offset * 0.5f;
    cloud.push_back(p);
  }
  cloud.header.seq++;
}

struct Pipeline {
  PointCloud<PointXYZ>::Ptr raw = PointCloud<PointXYZ>::make();
  PointCloud<PointNormal>::Ptr target = PointCloud<PointNormal>::make(), source = PointCloud<PointNormal>::make();
  KdTree<PointNormal> tree{8};
  VoxelGrid grid{0.3f};
  NormalEstimation<PointNormal> normals{10};
  PlaneSac plane;
  EuclideanClusters clusters;
  PointToPlaneICP icp;
  double fitness = 0;
  std::size_t frames = 0, inliers = 0, found = 0;

  void frame() {
    float offset = 0.02f * float(frames % 5);
    sweep(*raw, 1500, offset);
    std::swap(target, source);
    grid.filter(*raw, *source);
    if (!frames++) return;
    tree.setInputCloud(target);
    normals.compute(*target, tree, 0, target->size());
    inliers = plane.segment(*target, 0.04f, 8);
    found = clusters.extract(*target, tree, plane.inliers(), 0.45f);
    fitness = icp.align(*source, *target, tree, 4);
  }
};

}  // namespace scan

int main(int argc, char **argv) {
  tr_init(argc, argv);
  std::unique_ptr<scan::Pipeline> pipeline = heap::make<scan::Pipeline>();
  tr_check("scan::Correspondence", sizeof(scan::Correspondence), "weight", offsetof(scan::Correspondence, weight));
  while (tr_more()) pipeline->frame();
  if (getenv("VERBOSE"))
    printf("%zu frames, %zu of %zu points in the plane, %zu clusters, error %g\n", pipeline->frames, pipeline->inliers,
           pipeline->target->size(), pipeline->found, pipeline->fitness);
  tr_sink = pipeline->frames;
  return 0;
}
