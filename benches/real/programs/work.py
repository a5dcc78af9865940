import collections, json, random, re, sys
class Order:
    __slots__ = ("key", "price", "next")
    def __init__(self, key, price):
        self.key, self.price, self.next = key, price, None
class Node:
    def __init__(self, name):
        self.name, self.children, self.weight = name, [], 0
def orders(r):
    book = collections.defaultdict(list); head = None
    for i in range(4000):
        o = Order(r.randrange(1000), r.random()); o.next = head; head = o
        book[o.key].append(o)
    total = 0.0
    while head is not None:
        total += head.price; head = head.next
    return total, sum(len(v) for v in book.values())
def tree(r):
    root = Node("root"); nodes = [root]
    for i in range(2000):
        n = Node("n%d" % i); r.choice(nodes).children.append(n); nodes.append(n)
    def walk(n, d):
        n.weight = d + sum(walk(c, d + 1) for c in n.children if len(c.name) < 6)
        return n.weight
    return len(nodes)
def words(r):
    text = " ".join(r.choice(["alpha", "beta", "gamma", "delta", "eps"]) + str(r.randrange(50)) for _ in range(4000))
    c = collections.Counter(re.findall(r"[a-z]+\d", text))
    return sorted(c.items(), key=lambda x: (-x[1], x[0]))[:3], text.upper().split("A", 20)
def data(r):
    d = {"k%d" % i: {"v": i, "l": list(range(i % 20)), "s": "x" * (i % 30)} for i in range(1500)}
    s = json.dumps(d); e = json.loads(s)
    return len(s), sum(x["v"] for x in e.values())
def numbers(r):
    a = [r.random() for _ in range(6000)]; a.sort(); b = {int(x * 1000) for x in a}
    g = (x * y for x, y in zip(a, reversed(a)))
    p = 1
    for i in range(1, 200): p = p * i % (1 << 200)
    return sum(g), len(b), p, bytes(bytearray(range(256)) * 10).find(b"\xff\x00")
r = random.Random(1)
for _ in range(int(sys.argv[1])):
    orders(r); tree(r); words(r); data(r); numbers(r)
