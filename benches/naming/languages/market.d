/* A market: books of orders as lists of levels in a tree, participants as classes behind an interface, candles in rings,
 * a heap of timers, positions in associative arrays, a journal of tagged events, statistics by ranges and delegates.
 *
 * The collector is off and nothing that is told is given back, so an address has one type. Module variables are
 * thread-local unless they are __gshared: both are here. What the runtime keeps for itself is not told. */
module market;

import core.atomic : atomicOp;
import core.memory : GC;
import std.algorithm : filter, map, maxElement, sort, sum;
import std.bitmanip : bitfields;
import std.traits : InterfacesTuple;

extern (C) nothrow {
    void tr_init(int argc, char** argv);
    int tr_more();
    void tr_region(const(char)* type, const(void)* start, size_t bytes, size_t element);
    void tr_global(const(char)* name, const(void)* start, size_t bytes, const(char)* type);
    void tr_tls(const(char)* name, const(void)* start, size_t bytes, const(char)* type);
    int printf(const(char)* format, ...);
}

/* New objects whose types are told. The name is that of debug information. */
T* one(T)(T value = T.init) {
    T* made = new T;
    *made = value;
    tr_region(T.stringof.ptr, made, T.sizeof, T.sizeof);
    return made;
}

/* Variables of a class are references. */
enum nameOf(T) = T.stringof ~ (is(T == class) || is(T == interface) ? "*" : "");

T[] many(T)(size_t n) {
    T[] made = new T[n];
    tr_region(nameOf!T.ptr, made.ptr, n * T.sizeof, T.sizeof);
    return made;
}

/* Debug information does not say where a class keeps the tables of its interfaces: they are told as the interfaces, and
 * classes are made so that they come last. */
T made(T, A...)(A arguments) {
    T it = new T(arguments);
    enum bytes = __traits(classInstanceSize, T);
    size_t told = bytes;
    static foreach (I; InterfacesTuple!T) {
        {
            immutable at = cast(void*) cast(I) it - cast(void*) it;
            tr_region(I.stringof.ptr, cast(void*) it + at, 8, 8);
            told = at < told ? at : told;
        }
    }
    tr_region(T.stringof.ptr, cast(void*) it, told, bytes);
    return it;
}

void tellGlobal(alias variable)() {
    tr_global(__traits(identifier, variable).ptr, cast(void*)&variable, variable.sizeof, nameOf!(typeof(variable)).ptr);
}

void tellLocal(alias variable)() {
    tr_tls(__traits(identifier, variable).ptr, cast(void*)&variable, variable.sizeof, nameOf!(typeof(variable)).ptr);
}

enum Side : ubyte {
    buy,
    sell
}

struct Stamp {
    long nanos;
    uint sequence;
}

struct Order {
    uint id;
    Side side;
    bool hidden;
    long price;
    int left, filled;
    Stamp stamp;
    Participant owner;
    Level* level;
    Order* next, prev;
    mixin(bitfields!(uint, "urgency", 3, bool, "postOnly", 1, uint, "venue", 12, uint, "retries", 16));
}

struct Level {
    long price;
    Order* first, last;
    int volume, count;
    uint weight;
    Level* left, right;
    Level* spare;
}

struct Candle {
    double open, high, low, close;
    float volume;
    uint trades;
}

struct Trade {
    Order* maker;
    uint taker;
    long price;
    int amount;
    float fee;
}

struct Position {
    long amount, cash;
    double mean = 0;
    ushort[4] recent;
}

/* Templates with a type and a number */
struct Ring(T, uint capacity) {
    T[capacity] slots;
    uint at, filled;
    ulong overwritten;

    ref T push() {
        if (filled == capacity)
            overwritten++;
        else
            filled++;
        at = (at + 1) % capacity;
        return slots[at];
    }

    ref T back(uint n) {
        return slots[(at + capacity - n % capacity) % capacity];
    }
}

struct Heap(T) {
    T[] items;
    size_t length;
    ulong moves;

    void push(T x) {
        size_t i = length++;
        while (i > 0 && x.before(items[(i - 1) / 2])) {
            items[i] = items[(i - 1) / 2];
            i = (i - 1) / 2;
            moves++;
        }
        items[i] = x;
    }

    T pop() {
        T top = items[0];
        T last = items[--length];
        size_t i = 0;
        for (;;) {
            size_t child = 2 * i + 1;
            if (child >= length)
                break;
            if (child + 1 < length && items[child + 1].before(items[child]))
                child++;
            if (!items[child].before(last))
                break;
            items[i] = items[child];
            i = child;
        }
        items[i] = last;
        return top;
    }
}

struct Timer {
    long at;
    uint kind;
    Participant who;

    bool before(ref const Timer other) const {
        return at < other.at;
    }
}

struct Link(K, V) {
    K key;
    V value;
    Link!(K, V)* next;
    uint uses;
}

struct Chain(K, V) {
    Link!(K, V)*[] heads;
    size_t length;

    V* find(K key) {
        for (Link!(K, V)* l = heads[key % heads.length]; l; l = l.next)
            if (l.key == key) {
                l.uses++;
                return &l.value;
            }
        return null;
    }
}

alias Owners = Chain!(uint, Order*);
alias OwnerLink = Link!(uint, Order*);

struct OwnerPool {
    OwnerLink[] links;
    OwnerLink* spare;
}

/* Classes */
interface Listener {
    void filled(ref Trade trade, Side side);
    long worth() const;
}

abstract class Participant {
    uint id;
    string name;
    Position position;
    long credit = 1_000_000;
    uint orders;
    Participant partner;

    this(uint id, string name) {
        this.id = id;
        this.name = name;
    }

    void filled(ref Trade trade, Side side) {
        immutable signed = side == Side.buy ? trade.amount : -trade.amount;
        position.amount += signed;
        position.cash -= signed * trade.price;
        position.mean += (trade.price - position.mean) * 0.05;
        position.recent[trade.amount & 3]++;
    }

    long worth() const {
        return position.cash + cast(long)(position.amount * position.mean);
    }

    abstract long quote(Side side, long middle);
}

class Maker : Participant {
    double spread = 6;
    int[8] inventory;
    uint skews;

    this(uint id, string name) {
        super(id, name);
    }

    override long quote(Side side, long middle) {
        inventory[id & 7] = cast(int) position.amount;
        immutable skew = position.amount > 50 ? -2 : position.amount < -50 ? 2 : 0;
        skews += skew != 0;
        spread = spread * 0.99 + 0.01 * (3 + (id & 7));
        return middle + skew + (side == Side.buy ? -cast(long) spread : cast(long) spread);
    }

    override void filled(ref Trade trade, Side side) {
        super.filled(trade, side);
        spread += 0.2;
    }
}

class Trend : Participant {
    Ring!(Candle, 8)* candles;
    float[] weights;
    double signal = 0;

    this(uint id, string name, Ring!(Candle, 8)* candles) {
        super(id, name);
        this.candles = candles;
    }

    override long quote(Side side, long middle) {
        double s = 0;
        foreach (i, ref w; weights) {
            s += w * (candles.back(cast(uint) i).close - candles.back(cast(uint) i + 1).open);
            w = w * 0.999f + 0.001f;
        }
        signal = signal * 0.9 + s * 0.1;
        return middle + (signal > 0 ? 3 : -3) + (side == Side.buy ? 1 : -1);
    }
}

final class Noise : Participant {
    ulong state;
    ubyte[16] history;

    this(uint id, string name) {
        super(id, name);
        state = id * 2654435761UL + 1;
    }

    override long quote(Side side, long middle) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        history[state & 15]++;
        return middle + cast(long)(state % 21) - 10;
    }
}

/* Events: a tag and a union */
struct Event {
    enum Kind : ubyte {
        placed,
        traded,
        cancelled
    }

    Kind kind;
    ushort venue;
    union {
        Placed placed;
        Traded traded;
        Cancelled cancelled;
    }
}

struct Placed {
    uint id;
    long price;
    int amount;
}

struct Traded {
    uint maker, taker;
    double notional;
}

struct Cancelled {
    Order* order;
    short reason;
}

/* A clearing house: a struct that stands for its first member, parts without names, templates of classes, functions
 * within functions, arrays of arrays, a static variable of a function, atomic counts, a stack of ranges */
struct Header {
    uint kind, length;
    ulong serial;
}

struct Message {
    Header header;
    alias header this;
    union {
        struct {
            int from, to;
        }
        long both;
        ubyte[8] bytes;
    }

    struct {
        float price;
        short lots;
    }

    immutable(char)[] text;
    Message* reply;

    ulong signature() const {
        ulong h = serial;
        foreach (b; bytes)
            h = h * 31 + b;
        return h ^ kind ^ lots;
    }
}

abstract class Node {
    Node parent;
    int weight;
    abstract double value();
    void visit(scope void delegate(Node) seen) {
        seen(this);
    }
}

class Leaf(T) : Node {
    T amount;
    T[3] before;

    override double value() {
        before[weight & 1] = amount;
        amount = cast(T)(amount * 7 / 8 + weight);
        return amount;
    }
}

class Group : Node {
    Node[] below;
    double cached = 0;
    uint visits;

    override double value() {
        double total = 0;
        foreach (n; below)
            total += n.value();
        visits++;
        return cached = total / (below.length + 1);
    }

    override void visit(scope void delegate(Node) seen) {
        seen(this);
        foreach_reverse (n; below)
            n.visit(seen);
    }
}

interface Gauge {
    double read();
    @property uint reads() const;
}

class Base {
    uint[2] marks;
}

class Needle : Base {
    double level = 0;
    uint count;
    Trade last;
}

class Tape {
    Trade[6] trades;
    uint seen;
    double value = 0;
}

class Watch : Tape, Listener {
    override void filled(ref Trade trade, Side side) {
        trades[seen % $] = trade;
        seen++;
        value += side == Side.buy ? trade.fee : -trade.fee;
    }

    override long worth() const {
        return trades[seen % $].price + cast(long) value;
    }
}

class Meter : Needle, Gauge, Listener {

    override double read() {
        count++;
        return level *= 0.99;
    }

    override @property uint reads() const {
        return count;
    }

    override void filled(ref Trade trade, Side side) {
        last = trade;
        level += trade.amount;
        marks[side]++;
    }

    override long worth() const {
        return cast(long) level + last.amount;
    }
}

struct Grid(T, size_t rows, size_t columns) {
    T[columns][rows] cells;
    size_t changed;

    ref T opIndex(size_t r, size_t c) {
        changed++;
        return cells[r][c];
    }

    T[] row(size_t r) {
        return cells[r][];
    }
}

struct Cell {
    float heat = 1;
    ushort owner;
    bool closed;
}

struct Span {
    uint low, high;
}

class Clearing {
    Message[] inbox;
    Message* newest;
    Node root;
    Node[] leaves;
    Gauge[] gauges;
    Meter[] meters;
    Grid!(Cell, 10, 14)* floor;
    double[][] matrix;
    Span[] stack;
    shared ulong handled;
    int[] keys;

    Message* post(int from, int to, float price) {
        Message* m = &inbox[handled % $];
        atomicOp!"+="(handled, 1);
        m.kind = cast(uint)(from & 3);
        m.serial = handled;
        m.from = from;
        m.to = to;
        m.price = price;
        m.lots = cast(short)(to & 15);
        m.text = names[to % $];
        m.reply = newest;
        newest = m;
        return m;
    }

    double settle() {
        static uint rounds;
        rounds++;
        double total = 0;
        uint groups;
        void count(Node n) {
            if (Group g = cast(Group) n) {
                groups++;
                total += g.cached;
            } else
                total += n.weight;
        }

        root.value();
        root.visit(&count);
        foreach (g; gauges)
            total += g.read() + (g.reads & 1);
        for (Message* m = newest; m && groups < 40; m = m.reply) {
            groups++;
            total += m.signature() & 7;
            foreach (c; m.text)
                total += c & 1;
        }
        return total + rounds;
    }

    void spread() {
        foreach (r; 1 .. 9)
            foreach (c; 1 .. 13) {
                Cell* cell = &floor.cells[r][c];
                immutable around = floor.cells[r - 1][c].heat + floor.cells[r + 1][c].heat + floor.cells[r][c - 1].heat;
                cell.heat = cell.heat * 0.7f + around * 0.1f;
                if (cell.heat > 5)
                    cell.closed = true;
                cell.owner = cast(ushort)(cell.owner + c);
            }
        (*floor)[clock % 10, clock % 14].heat = 9;
        foreach (ref cell; floor.row(clock % 10))
            cell.closed = !cell.closed;
    }

    void eliminate() {
        immutable n = matrix.length;
        foreach (i, row; matrix)
            foreach (j, ref x; row)
                x = i == j ? n + 1 : (i * 7 + j * 3 + clock) % 5;
        foreach (i; 0 .. n)
            foreach (j; i + 1 .. n) {
                immutable f = matrix[j][i] / matrix[i][i];
                foreach (k; i .. n)
                    matrix[j][k] -= f * matrix[i][k];
            }
    }

    void quick() {
        foreach (i, ref k; keys)
            k = cast(int)((i * 7919 + clock) % 1009);
        size_t top = 1;
        stack[0] = Span(0, cast(uint) keys.length - 1);
        while (top > 0) {
            Span s = stack[--top];
            if (s.low >= s.high)
                continue;
            immutable pivot = keys[s.high];
            uint at = s.low;
            foreach (i; s.low .. s.high)
                if (keys[i] < pivot) {
                    immutable t = keys[i];
                    keys[i] = keys[at];
                    keys[at++] = t;
                }
            keys[s.high] = keys[at];
            keys[at] = pivot;
            if (at > s.low)
                stack[top++] = Span(s.low, at - 1);
            stack[top++] = Span(at + 1, s.high);
        }
    }
}

Node tree(int depth, Node parent, ref Node[] leaves) {
    Node it;
    if (depth == 0) {
        if (random() & 1) {
            auto leaf = made!(Leaf!long)();
            leaf.before[] = 0;
            it = leaf;
        } else {
            auto leaf = made!(Leaf!double)();
            leaf.amount = 1;
            leaf.before[] = 0;
            it = leaf;
        }
        leaves ~= it;
    } else {
        Group group = made!Group();
        group.below = many!Node(3);
        foreach (ref n; group.below)
            n = tree(depth - 1, group, leaves);
        it = group;
    }
    it.parent = parent;
    it.weight = cast(int)(random() % 100);
    return it;
}

struct Book {
    Level* bids, asks;
    Level* spareLevels;
    Order* spareOrders;
    Owners byId;
    OwnerPool pool;
    Ring!(Trade, 32) tape;
    long last = 1000;
    uint nextId, matched, cancelled;
    double[6] moving;
}

struct Totals {
    ulong steps, placed, traded, cancelled, refused;
    uint[16] bySize;
    double notional = 0;
    struct Delay {
        long sum;
        uint n;
    }

    Delay[4] delays;
}

__gshared Book[4] books;
__gshared Participant[] participants;
__gshared Listener[] listeners;
__gshared Event[] journal;
__gshared size_t journalAt;
__gshared Ring!(Candle, 8)*[4] candles;
__gshared Totals totals;
__gshared int[64] histogram; // the scorer knows no arrays of uint
__gshared Position[uint] positions;
__gshared long[string] limits;
__gshared string[] names;
__gshared double delegate(double)[] curves;
__gshared Heap!Timer timers;
__gshared ubyte[] wire;
__gshared Clearing clearing;

ulong seed = 88172645463325252; // of this thread, as are these
long clock;
Totals mine;
Book* current;
Trade[16] recent;

ulong random() {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* A treap of levels */
Level* insert(Level* root, Level* level) {
    if (!root)
        return level;
    if (level.price < root.price) {
        root.left = insert(root.left, level);
        if (root.left.weight > root.weight) {
            Level* l = root.left;
            root.left = l.right;
            l.right = root;
            return l;
        }
    } else {
        root.right = insert(root.right, level);
        if (root.right.weight > root.weight) {
            Level* r = root.right;
            root.right = r.left;
            r.left = root;
            return r;
        }
    }
    return root;
}

Level* join(Level* a, Level* b) {
    if (!a || !b)
        return a ? a : b;
    if (a.weight > b.weight) {
        a.right = join(a.right, b);
        return a;
    }
    b.left = join(a, b.left);
    return b;
}

void removeLevel(ref Level* root, long price) {
    Level** at = &root;
    while (*at && (*at).price != price)
        at = price < (*at).price ? &(*at).left : &(*at).right;
    if (Level* gone = *at) {
        *at = join(gone.left, gone.right);
        gone.left = gone.right = null;
        gone.spare = current.spareLevels;
        current.spareLevels = gone;
    }
}

Level* find(Level* root, long price) {
    while (root && root.price != price)
        root = price < root.price ? root.left : root.right;
    return root;
}

Level* best(Level* root, Side side) {
    if (root)
        while (side == Side.buy ? root.right : root.left)
            root = side == Side.buy ? root.right : root.left;
    return root;
}

int depth(const Level* root, int limit) {
    if (!root || limit == 0)
        return 0;
    return root.volume + depth(root.left, limit - 1) + depth(root.right, limit - 1);
}

void unlink(Order* order) {
    Level* level = order.level;
    if (order.prev)
        order.prev.next = order.next;
    else
        level.first = order.next;
    if (order.next)
        order.next.prev = order.prev;
    else
        level.last = order.prev;
    level.volume -= order.left;
    if (--level.count == 0) {
        if (order.side == Side.buy)
            removeLevel(current.bids, level.price);
        else
            removeLevel(current.asks, level.price);
    }
    forget(*current, order.id);
    order.next = current.spareOrders;
    current.spareOrders = order;
}

void remember(ref Book book, Order* order) {
    OwnerLink* link = book.pool.spare;
    if (!link)
        return;
    book.pool.spare = link.next;
    link.key = order.id;
    link.value = order;
    OwnerLink** head = &book.byId.heads[order.id % $];
    link.next = *head;
    *head = link;
    book.byId.length++;
}

void forget(ref Book book, uint id) {
    for (OwnerLink** at = &book.byId.heads[id % $]; *at; at = &(*at).next)
        if ((*at).key == id) {
            OwnerLink* link = *at;
            *at = link.next;
            link.next = book.pool.spare;
            book.pool.spare = link;
            book.byId.length--;
            return;
        }
}

Event* note(Event.Kind kind) {
    Event* e = &journal[journalAt];
    journalAt = (journalAt + 1) % journal.length;
    e.kind = kind;
    e.venue = cast(ushort)(current - books.ptr);
    return e;
}

void trade(ref Order taker, Order* maker, int amount) {
    Trade t;
    t.maker = maker;
    t.taker = taker.id;
    t.price = maker.price;
    t.amount = amount;
    t.fee = amount * 0.01f;
    current.tape.push() = t;
    recent[amount & 15] = t;
    current.last = t.price;
    current.matched++;
    maker.owner.filled(t, maker.side);
    taker.owner.filled(t, taker.side);
    if (Position* p = taker.owner.id in positions) {
        p.amount += amount;
        p.cash += amount * t.price;
        p.mean = p.mean * 0.9 + t.price * 0.1;
    }
    Candle* c = &candles[current - books.ptr].back(0);
    c.high = t.price > c.high ? t.price : c.high;
    c.low = t.price < c.low ? t.price : c.low;
    c.close = t.price;
    c.volume += amount;
    c.trades++;
    Event* e = note(Event.Kind.traded);
    e.traded = Traded(maker.id, taker.id, amount * cast(double) t.price);
    mine.traded++;
    mine.notional += e.traded.notional;
    totals.bySize[amount & 15]++;
    listeners[amount % 12 * 2 + (amount & 1)].filled(t, taker.side);
}

void place(Participant owner, Side side, long price, int amount) {
    Order* order = current.spareOrders;
    if (!order) {
        totals.refused++;
        return;
    }
    current.spareOrders = order.next;
    order.id = current.nextId++;
    order.side = side;
    order.price = price;
    order.left = amount;
    order.filled = 0;
    order.owner = owner;
    order.stamp = Stamp(clock, order.id);
    order.urgency = cast(uint)(price & 7);
    order.venue = cast(uint)(current - books.ptr);
    owner.orders++;
    Event* e = note(Event.Kind.placed);
    e.placed = Placed(order.id, price, amount);
    mine.placed++;
    for (;;) {
        Level* level = best(side == Side.buy ? current.asks : current.bids, side == Side.buy ? Side.sell : Side.buy);
        if (!level || order.left == 0 || (side == Side.buy ? level.price > price : level.price < price))
            break;
        Order* maker = level.first;
        immutable n = maker.left < order.left ? maker.left : order.left;
        maker.left -= n;
        maker.filled += n;
        level.volume -= n;
        order.left -= n;
        order.filled += n;
        trade(*order, maker, n);
        if (maker.left == 0)
            unlink(maker);
    }
    if (order.left == 0) {
        order.next = current.spareOrders;
        current.spareOrders = order;
        return;
    }
    Level* level = find(side == Side.buy ? current.bids : current.asks, price);
    if (!level) {
        level = current.spareLevels;
        current.spareLevels = level.spare;
        level.price = price;
        level.first = level.last = null;
        level.volume = level.count = 0;
        level.weight = cast(uint) random();
        if (side == Side.buy)
            current.bids = insert(current.bids, level);
        else
            current.asks = insert(current.asks, level);
    }
    order.level = level;
    order.next = null;
    order.prev = level.last;
    if (level.last)
        level.last.next = order;
    else
        level.first = order;
    level.last = order;
    level.volume += order.left;
    level.count++;
    remember(*current, order);
}

void cancelSome() {
    foreach (n; 0 .. 6) {
        immutable id = current.nextId - 60 - cast(uint)(random() % 40);
        if (Order** found = current.byId.find(id)) {
            Order* order = *found;
            Event* e = note(Event.Kind.cancelled);
            e.cancelled = Cancelled(order, cast(short)(order.retries & 15));
            order.retries = (order.retries + 1) & 0xffff;
            if (!order.postOnly)
                unlink(order);
            current.cancelled++;
            mine.cancelled++;
        }
    }
    Level* worst = best(current.bids, Side.sell);
    while (current.byId.length > 350 && worst && worst.first) {
        unlink(worst.first);
        worst = best(current.bids, Side.sell);
    }
    worst = best(current.asks, Side.buy);
    while (current.byId.length > 300 && worst && worst.first) {
        unlink(worst.first);
        worst = best(current.asks, Side.buy);
    }
}

double study() {
    double result = 0;
    foreach (ref e; journal)
        final switch (e.kind) {
        case Event.Kind.placed:
            result += e.placed.price * 0.001 + e.placed.amount;
            break;
        case Event.Kind.traded:
            result += e.traded.notional * 0.0001;
            histogram[e.traded.maker & 63]++;
            break;
        case Event.Kind.cancelled:
            result += e.cancelled.reason;
            break;
        }
    result += participants.map!(p => p.position.cash).sum * 1e-9;
    foreach (p; participants.filter!(p => p.position.amount > 0))
        result += p.credit * 1e-6;
    foreach (l; listeners[0 .. 24])
        result += l.worth() * 1e-9;
    foreach (p; participants)
        result += p.worth() * 1e-9;
    foreach (curve; curves)
        result = curve(result);
    return result;
}

void roll() {
    foreach (b, ring; candles) {
        Candle* old = &ring.back(0);
        immutable close = old.close;
        Candle* c = &ring.push();
        *c = Candle(close, close, close, close, 0, 0);
        foreach (i, ref m; books[b].moving)
            m += (close - m) / (i + 2);
    }
    recent[].sort!((a, b) => a.price < b.price);
    auto most = recent[].map!(t => t.amount).maxElement;
    totals.delays[most & 3].sum += clock;
    totals.delays[most & 3].n++;
    foreach (name; names)
        if (long* limit = name in limits)
            *limit = *limit * 3 / 4 + mine.placed % 1000;
    foreach (id, ref position; positions)
        totals.notional += position.mean * (id & 1);
}

/* Bytes on the wire */
void encode(ref const Event e, ubyte[] to) {
    to[0] = e.kind;
    to[1] = e.venue & 0xff;
    if (e.kind == Event.Kind.placed) {
        foreach (i; 0 .. 4)
            to[2 + i] = cast(ubyte)(e.placed.id >> 8 * i);
        *cast(long*)(to.ptr + 8) = e.placed.price;
    }
}

uint checksum(const(ubyte)[] bytes) {
    uint a = 1, b = 0;
    foreach (x; bytes) {
        a = (a + x) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

void step() {
    clock++;
    mine.steps++;
    current = &books[random() % books.length];
    Participant p = participants[random() % $];
    immutable side = random() & 1 ? Side.buy : Side.sell;
    place(p, side, p.quote(side, current.last), cast(int)(random() % 15) + 1);
    if (Maker m = cast(Maker) p)
        if (m.inventory[3] > 1000)
            m.spread = 4;
    if (p.partner && (clock & 3) == 0)
        p.partner.credit += p.orders & 15;
    while (timers.length && timers.items[0].at <= clock) {
        Timer t = timers.pop();
        totals.delays[t.kind & 3].sum += clock - t.at;
        t.who.orders++;
        t.at = clock + cast(long)(random() % 64) + 1;
        timers.push(t);
    }
    if ((clock & 15) == 0)
        cancelSome();
    if ((clock & 31) == 5)
        encode(journal[journalAt], wire[16 * (clock / 32 % 32) .. $]);
    clearing.post(p.id, cast(int)(clock & 31), current.last);
    if ((clock & 31) == 7) {
        totals.notional += clearing.settle();
        for (Node n = clearing.leaves[clock / 32 % $]; n; n = n.parent)
            n.weight = (n.weight + 1) & 127;
    }
    if ((clock & 63) == 11)
        clearing.spread();
    if ((clock & 127) == 77)
        clearing.eliminate();
    if ((clock & 127) == 99)
        clearing.quick();
    if ((clock & 127) == 1)
        roll();
    if ((clock & 255) == 9) {
        totals.notional = study();
        histogram[checksum(wire) & 63]++;
        histogram[depth(current.bids, 9) & 63]++;
    }
}

void setUp() {
    names = many!string(5);
    names[] = ["ann", "bob", "cid", "dee", "eve"];
    foreach (n; names)
        limits[n] = 10;
    foreach (ref r; candles) {
        r = one!(Ring!(Candle, 8));
        foreach (ref c; r.slots)
            c = Candle(1000, 1000, 1000, 1000, 0, 0);
    }
    participants = many!Participant(30);
    listeners = many!Listener(30);
    foreach (index, ref p; participants) {
        immutable i = cast(uint) index;
        switch (i % 3) {
        case 0:
            p = made!Maker(i, names[i % $]);
            break;
        case 1:
            Trend t = made!Trend(i, names[i % $], candles[i % $]);
            t.weights = many!float(7);
            t.weights[] = 0.1f;
            p = t;
            break;
        default:
            p = made!Noise(i, names[i % $]);
        }
        if (i % 2)
            listeners[i] = made!Watch();
        if (i > 0)
            p.partner = participants[i / 2];
        positions[i] = Position();
    }
    foreach (ref book; books) {
        foreach (n; 0 .. 400) {
            Order* o = one!Order;
            o.next = book.spareOrders;
            book.spareOrders = o;
        }
        foreach (n; 0 .. 420) {
            Level* l = one!Level;
            l.spare = book.spareLevels;
            book.spareLevels = l;
        }
        book.byId.heads = many!(OwnerLink*)(101);
        book.pool.links = many!OwnerLink(420);
        foreach (ref link; book.pool.links) {
            link.next = book.pool.spare;
            book.pool.spare = &link;
        }
        book.moving[] = 1000;
    }
    clearing = made!Clearing();
    clearing.inbox = many!Message(64);
    clearing.root = tree(3, null, clearing.leaves);
    tr_region("Node*", clearing.leaves.ptr, clearing.leaves.length * 8, 8);
    clearing.gauges = many!Gauge(6);
    clearing.meters = many!Meter(6);
    foreach (i, ref m; clearing.meters) {
        m = made!Meter();
        clearing.gauges[i] = m;
        listeners[i * 4] = m;
        listeners[i * 4 + 2] = m;
    }
    clearing.floor = one!(Grid!(Cell, 10, 14))();
    clearing.matrix = many!(double[])(9);
    foreach (ref row; clearing.matrix)
        row = many!double(9);
    clearing.stack = many!Span(64);
    clearing.keys = many!int(60);
    journal = many!Event(128);
    wire = many!ubyte(1024);
    timers.items = many!Timer(64);
    foreach (i; 0 .. 40)
        timers.push(Timer(i, i & 3, participants[i % $]));
    curves = many!(double delegate(double))(3);
    foreach (i; 0 .. 3) {
        curves[i] = curve(i);
        enum frame = 16; // what the delegate captured
        tr_region("CLOSURE.market.curve", curves[i].ptr, frame, frame);
    }
    // What the associative arrays hold: they grow no more.
    foreach (id; 0 .. 30)
        tr_region("Position", id in positions, Position.sizeof, Position.sizeof);
    foreach (n; names)
        tr_region("long", n in limits, 8, 8);
}

/* A delegate whose frame is on the heap */
double delegate(double) curve(int kind) {
    double memory = kind;
    uint calls = 0;
    return (double x) {
        calls++;
        memory = memory * 0.75 + x * 0.25;
        return memory + (calls & 1);
    };
}

void tellVariables() {
    tellGlobal!books;
    tellGlobal!participants;
    tellGlobal!listeners;
    tellGlobal!journal;
    tellGlobal!journalAt;
    tellGlobal!candles;
    tellGlobal!totals;
    tellGlobal!histogram;
    tellGlobal!positions;
    tellGlobal!limits;
    tellGlobal!names;
    tellGlobal!timers;
    tellGlobal!wire;
    tellGlobal!clearing;
    tellLocal!seed;
    tellLocal!clock;
    tellLocal!mine;
    tellLocal!current;
    tellLocal!recent;
}

extern (C) __gshared char** environ;

int main(string[] arguments) {
    GC.disable();
    char*[3] given;
    foreach (i, a; arguments)
        if (i < 2)
            given[i] = (a ~ "\0").dup.ptr;
    tr_init(cast(int)(arguments.length < 2 ? arguments.length : 2), given.ptr);
    setUp();
    tellVariables();
    while (tr_more())
        foreach (i; 0 .. 200)
            step();
    printf("%lu %lu %lu\n", mine.placed, mine.traded, totals.refused);
    return 0;
}
