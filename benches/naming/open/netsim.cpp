// Discrete events in a network: shared and weak pointers, lists, strings, multimaps, sets, callables,
// a calendar of events, queues with disciplines as policies.
#include "../heap.hpp"
#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <vector>

template <class T> using List = std::list<T, heap::Alloc<T>>;
template <class T> using Vector = std::vector<T, heap::Alloc<T>>;
using Text = std::basic_string<char, std::char_traits<char>, heap::Alloc<char>>;
template <class K, class V> using MultiMap = std::multimap<K, V, std::less<K>, heap::Alloc<std::pair<const K, V>>>;
template <class K, class V> using Map = std::map<K, V, std::less<K>, heap::Alloc<std::pair<const K, V>>>;
template <class K> using Set = std::set<K, std::less<K>, heap::Alloc<K>>;

template <class T, class... A> std::shared_ptr<T> MakeShared(A&&... a) {
  return std::allocate_shared<T>(heap::Alloc<T>(), std::forward<A>(a)...);
}

typedef long long Nanoseconds;

enum Protocol { kTcp = 6, kUdp = 17, kRouting = 89 };

struct Packet {
  unsigned source, destination;
  unsigned short size;
  unsigned char ttl, protocol;
  unsigned sequence;
  Nanoseconds born;
  Vector<unsigned short> route; // hops so far
};
typedef std::shared_ptr<Packet> PacketPtr;

class Simulator;
class Node;

// What runs later; an event that is cancelled stays where it is.
struct Event {
  Nanoseconds when;
  unsigned long serial;
  void (*run)(Simulator&, Event&);
  void* target;
  PacketPtr packet;
  bool cancelled = false;
};
typedef std::shared_ptr<Event> EventPtr;

struct Later {
  bool operator()(const EventPtr& a, const EventPtr& b) const {
    return a->when != b->when ? a->when > b->when : a->serial > b->serial;
  }
};

class Simulator {
 public:
  EventPtr Schedule(Nanoseconds delay, void (*run)(Simulator&, Event&), void* target, PacketPtr packet = nullptr) {
    EventPtr e = MakeShared<Event>();
    e->when = now_ + delay;
    e->serial = ++serial_;
    e->run = run;
    e->target = target;
    e->packet = std::move(packet);
    calendar_.push(e);
    return e;
  }
  NOINLINE void Run(unsigned events) {
    while (events-- && !calendar_.empty()) {
      EventPtr e = calendar_.top();
      calendar_.pop();
      now_ = e->when;
      if (e->cancelled) {
        ++cancelled_;
        continue;
      }
      e->run(*this, *e);
      ++executed_;
    }
  }
  Nanoseconds Now() const { return now_; }
  size_t Pending() const { return calendar_.size(); }

 private:
  std::priority_queue<EventPtr, Vector<EventPtr>, Later> calendar_;
  Nanoseconds now_ = 0;
  unsigned long serial_ = 0, executed_ = 0, cancelled_ = 0;
};

// Disciplines: what to do with a packet that comes to a queue.
struct DropTail {
  size_t limit = 30;
  unsigned long drops = 0;
  bool Admit(const List<PacketPtr>& queue, const Packet&) {
    if (queue.size() < limit) return true;
    ++drops;
    return false;
  }
};

struct RandomEarly {
  double average = 0, low = 5, high = 20, weight = 0.05;
  unsigned seed = 1;
  unsigned long drops[2] = {0, 0};
  bool Admit(const List<PacketPtr>& queue, const Packet& p) {
    average += weight * (double(queue.size()) - average);
    seed = seed * 1103515245 + 12345;
    bool forced = average > high, early = average > low && (seed >> 16) % 100 < (average - low) * 5;
    if (p.protocol == kRouting || (!forced && !early)) return true;
    ++drops[forced];
    return false;
  }
};

class Device {
 public:
  virtual ~Device() {}
  virtual void Send(Simulator& sim, PacketPtr p) = 0;
  virtual unsigned long Drops() const = 0;
  std::weak_ptr<Node> peer;
  double load = 0;
  unsigned long sent = 0, bytes = 0;
};

template <class Discipline> class QueuedDevice : public Device {
 public:
  QueuedDevice(double rate, Nanoseconds delay) : nanoseconds_per_byte_(8 / rate), delay_(delay) {}
  void Send(Simulator& sim, PacketPtr p) override {
    if (!discipline_.Admit(queue_, *p)) return;
    queue_.push_back(std::move(p));
    load = 0.9 * load + 0.1 * double(queue_.size());
    if (!busy_) Start(sim);
  }
  unsigned long Drops() const override { return Count(discipline_); }

 private:
  static unsigned long Count(const DropTail& d) { return d.drops; }
  static unsigned long Count(const RandomEarly& d) { return d.drops[0] + d.drops[1]; }
  void Start(Simulator& sim) {
    busy_ = true;
    sim.Schedule(Nanoseconds(queue_.front()->size * nanoseconds_per_byte_), &QueuedDevice::Finish, this);
  }
  static void Finish(Simulator& sim, Event& e);

  List<PacketPtr> queue_;
  Discipline discipline_;
  double nanoseconds_per_byte_;
  Nanoseconds delay_;
  bool busy_ = false;
};

struct Route {
  unsigned next; // which device
  unsigned metric;
  Nanoseconds updated;
};

class Application {
 public:
  virtual ~Application() {}
  virtual void Receive(Simulator& sim, Node& node, const Packet& p) = 0;
  unsigned long received = 0;
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  Node(unsigned id, const char* kind) : id_(id), name_(kind) { name_ += std::to_string(id).c_str(); }
  void Deliver(Simulator& sim, PacketPtr p);
  NOINLINE void Advertise(Simulator& sim);
  NOINLINE void Learn(unsigned device, const Node& neighbour, Nanoseconds now);
  const Text& Name() const { return name_; }
  unsigned Id() const { return id_; }

  Vector<std::unique_ptr<Device>> devices;
  MultiMap<int, std::shared_ptr<Application>> applications; // by protocol
  Map<unsigned, Route> routes;
  Set<unsigned> neighbours;
  unsigned long forwarded = 0, lost = 0, no_route = 0;

 private:
  unsigned id_;
  Text name_;
};

template <class D> void QueuedDevice<D>::Finish(Simulator& sim, Event& e) {
  auto* self = static_cast<QueuedDevice*>(e.target);
  PacketPtr p = std::move(self->queue_.front());
  self->queue_.pop_front();
  self->sent++;
  self->bytes += p->size;
  self->busy_ = false;
  if (std::shared_ptr<Node> node = self->peer.lock())
    sim.Schedule(self->delay_, [](Simulator& s, Event& arrived) {
      static_cast<Node*>(arrived.target)->Deliver(s, std::move(arrived.packet));
    }, node.get(), std::move(p));
  if (!self->queue_.empty()) self->Start(sim);
}

void Node::Deliver(Simulator& sim, PacketPtr p) {
  if (p->route.size() < 12) p->route.push_back((unsigned short)id_);
  if (p->destination == id_) {
    auto range = applications.equal_range(p->protocol);
    for (auto it = range.first; it != range.second; ++it) it->second->Receive(sim, *this, *p);
    return;
  }
  if (p->ttl-- == 0) {
    ++lost;
    return;
  }
  auto found = routes.find(p->destination);
  if (found == routes.end()) {
    ++no_route;
    return;
  }
  ++forwarded;
  devices[found->second.next]->Send(sim, std::move(p));
}

void Node::Learn(unsigned device, const Node& neighbour, Nanoseconds now) {
  unsigned cost = 1 + unsigned(devices[device]->load / 4);
  neighbours.insert(neighbour.Id());
  for (const auto& [destination, theirs] : neighbour.routes) {
    if (destination == id_) continue;
    auto [mine, fresh] = routes.emplace(destination, Route{device, theirs.metric + cost, now});
    Route& r = mine->second;
    if (!fresh && (r.metric > theirs.metric + cost || (r.next == device && now > r.updated)))
      r = Route{device, std::min(theirs.metric + cost, 64u), now};
  }
}

void Node::Advertise(Simulator& sim) {
  for (size_t i = 0; i < devices.size(); ++i)
    if (auto peer = devices[i]->peer.lock()) {
      auto back = std::find_if(peer->devices.begin(), peer->devices.end(),
                               [this](const std::unique_ptr<Device>& d) { return d->peer.lock().get() == this; });
      if (back != peer->devices.end()) peer->Learn(unsigned(back - peer->devices.begin()), *this, sim.Now());
    }
}

struct Flow {
  unsigned window = 4, outstanding = 0, next = 0, acknowledged = 0;
  double rtt = 0, deviation = 0;
  EventPtr timeout;
  unsigned timeouts = 0;
};

class Sink : public Application {
 public:
  void Receive(Simulator&, Node&, const Packet& p) override {
    ++received;
    Record& r = records_[p.source];
    r.bytes += p.size;
    r.highest = std::max(r.highest, p.sequence);
    r.hops += p.route.size();
    if (on_packet) on_packet(p);
  }
  NOINLINE double Summary() const {
    double sum = 0;
    for (const auto& entry : records_) sum += double(entry.second.bytes) / (1 + entry.second.hops) + entry.second.highest;
    return sum;
  }
  std::function<void(const Packet&)> on_packet;

 private:
  struct Record {
    unsigned long bytes = 0, hops = 0;
    unsigned highest = 0;
  };
  Map<unsigned, Record> records_;
};

class Sender : public Application {
 public:
  Sender(Node& node, unsigned destination) : node_(node), destination_(destination) {}
  void Receive(Simulator& sim, Node&, const Packet& p) override {
    ++received;
    double sample = double(sim.Now() - p.born);
    flow_.deviation += 0.25 * (std::abs(sample - flow_.rtt) - flow_.deviation);
    flow_.rtt += 0.125 * (sample - flow_.rtt);
    flow_.acknowledged = p.sequence;
    if (flow_.outstanding) flow_.outstanding--;
    flow_.window += p.sequence % flow_.window == 0 && flow_.window < 24;
    Fill(sim);
  }
  NOINLINE void Fill(Simulator& sim) {
    while (flow_.outstanding < flow_.window) {
      PacketPtr p = MakeShared<Packet>(
          Packet{node_.Id(), destination_, (unsigned short)(200 + flow_.next % 5 * 250), 16, kUdp, ++flow_.next, sim.Now(), {}});
      ++flow_.outstanding;
      node_.Deliver(sim, std::move(p));
    }
    if (flow_.timeout) flow_.timeout->cancelled = true;
    flow_.timeout = sim.Schedule(Nanoseconds(400000 + 4 * flow_.rtt), &Sender::Expired, this);
  }

 private:
  static void Expired(Simulator& sim, Event& e) {
    auto* self = static_cast<Sender*>(e.target);
    self->flow_.timeouts++;
    self->flow_.window = std::max(2u, self->flow_.window / 2);
    self->flow_.outstanding = 0;
    self->flow_.timeout.reset();
    self->Fill(sim);
  }
  Node& node_;
  unsigned destination_;
  Flow flow_;
};

class Echo : public Application {
 public:
  void Receive(Simulator& sim, Node& node, const Packet& p) override {
    ++received;
    PacketPtr back = MakeShared<Packet>(Packet{node.Id(), p.source, 64, 16, kTcp, p.sequence, p.born, {}});
    node.Deliver(sim, std::move(back));
  }
};

NOINLINE size_t CountNames(const Vector<std::shared_ptr<Node>>& nodes, const Text& wanted) {
  size_t found = 0;
  for (const std::shared_ptr<Node>& n : nodes) {
    found += n->Name().compare(0, wanted.size(), wanted) == 0;
    found += n->neighbours.count(n->Id() + 1) + (n->forwarded & 1);
  }
  return found;
}

NOINLINE double Utilisation(const Vector<std::shared_ptr<Node>>& nodes) {
  double sum = 0;
  for (const auto& n : nodes)
    for (const auto& d : n->devices) sum += d->load * double(d->bytes) / double(d->sent + 1) + double(d->Drops());
  return sum;
}

int main(int argc, char** argv) {
  tr_init(argc, argv);
  static Simulator sim;
  TR_GLOBALX(sim);
  Vector<std::shared_ptr<Node>> nodes;
  for (unsigned i = 0; i < 48; ++i) nodes.push_back(MakeShared<Node>(i, i % 4 ? "host" : "router-with-a-long-name-"));
  auto connect = [&](unsigned a, unsigned b) {
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      std::unique_ptr<Device> device;
      if (a % 4 == 0) device = heap::make<QueuedDevice<RandomEarly>>(4.0, 2000);
      else device = heap::make<QueuedDevice<DropTail>>(1.0, 1000);
      device->peer = nodes[b];
      nodes[a]->devices.push_back(std::move(device));
    }
  };
  for (unsigned i = 0; i < 48; ++i) {
    if (i % 4) connect(i, i / 4 * 4);
    else connect(i, (i + 4) % 48);
    if (i % 16 == 0) connect(i, (i + 24) % 48);
  }
  for (const auto& n : nodes) n->routes[n->Id()] = Route{0, 0, 0};
  for (int round = 0; round < 10; ++round)
    for (const auto& n : nodes) n->Advertise(sim);
  unsigned long seen[3] = {0, 0, 0};
  TR_LOCAL(seen, "unsigned long []");
  Vector<Sink*> sinks;
  for (unsigned i = 0; i < 48; ++i) {
    Node& n = *nodes[i];
    auto sink = heap::make<Sink>();
    sinks.push_back(sink.get());
    if (i % 3 == 0) sink->on_packet = [&seen](const Packet& p) { seen[p.ttl % 3] += p.size; };
    n.applications.emplace(kUdp, std::move(sink));
    n.applications.emplace(kUdp, heap::make<Echo>());
  }
  for (unsigned i = 1; i < 48; i += 2) {
    auto sender = heap::make<Sender>(*nodes[i], (i * 13 + 5) % 48);
    Sender* s = sender.get();
    nodes[i]->applications.emplace(kTcp, std::move(sender));
    s->Fill(sim);
  }
  double sum = 0;
  const Text wanted("router-with-a-long");
  for (unsigned round = 0; tr_more(); ++round) {
    sim.Run(400);
    nodes[round % nodes.size()]->Advertise(sim);
    sum += double(CountNames(nodes, wanted)) + Utilisation(nodes) + sinks[round % 48]->Summary();
  }
  tr_sink = (unsigned long)sum + sim.Pending();
}
