//! An arena in which creatures fight: tagged unions of minds and effects, packed flags, optional pointers, intrusive
//! lists, a quad tree, lists and maps of the standard library, a structure of arrays, error unions, a small machine for
//! scripts, generic rings and heaps, vectors.
//!
//! What is told is allocated before the first step and never given back, so an address has one type.
const std = @import("std");

extern fn tr_init(argc: c_int, argv: [*]const [*:0]const u8) void;
extern fn tr_more() c_int;
extern fn tr_region(kind: [*:0]const u8, start: usize, bytes: usize, element: usize) void;
extern fn tr_global(name: [*:0]const u8, start: usize, bytes: usize, kind: [*:0]const u8) void;
extern fn tr_tls(name: [*:0]const u8, start: usize, bytes: usize, kind: [*:0]const u8) void;
extern fn printf(format: [*:0]const u8, ...) c_int;

const gpa = std.heap.c_allocator;

/// An optional pointer is told as a pointer: its own name is a typedef in debug information.
fn nameOf(comptime T: type) [:0]const u8 {
    return switch (@typeInfo(T)) {
        .optional => |o| if (@typeInfo(o.child) == .pointer and @sizeOf(T) == 8) @typeName(o.child) else @typeName(T),
        else => @typeName(T),
    };
}

fn one(comptime T: type) *T {
    const made = gpa.create(T) catch unreachable;
    tr_region(nameOf(T), @intFromPtr(made), @sizeOf(T), @sizeOf(T));
    return made;
}

fn tellMany(comptime T: type, made: []T) []T {
    tr_region(nameOf(T), @intFromPtr(made.ptr), made.len * @sizeOf(T), @sizeOf(T));
    return made;
}

fn many(comptime T: type, n: usize) []T {
    return tellMany(T, gpa.alloc(T, n) catch unreachable);
}

/// A list that is given its room at once.
fn listOf(comptime T: type, n: usize) std.ArrayList(T) {
    var list: std.ArrayList(T) = .empty;
    list.ensureTotalCapacityPrecise(gpa, n) catch unreachable;
    _ = tellMany(T, list.allocatedSlice());
    return list;
}

/// Keys and values of a map; its bytes of state are not told.
fn tellMap(comptime K: type, comptime V: type, map: *std.AutoHashMapUnmanaged(K, V), n: u32) void {
    map.ensureTotalCapacity(gpa, n) catch unreachable;
    const keys = map.keyIterator();
    const values = map.valueIterator();
    _ = tellMany(K, keys.items[0..map.capacity()]);
    _ = tellMany(V, values.items[0..map.capacity()]);
}

// The creatures

const Vec = struct {
    x: f32 = 0,
    y: f32 = 0,

    fn add(a: Vec, b: Vec) Vec {
        return .{ .x = a.x + b.x, .y = a.y + b.y };
    }
    fn sub(a: Vec, b: Vec) Vec {
        return .{ .x = a.x - b.x, .y = a.y - b.y };
    }
    fn scale(a: Vec, s: f32) Vec {
        return .{ .x = a.x * s, .y = a.y * s };
    }
    fn norm(a: Vec) f32 {
        return a.x * a.x + a.y * a.y;
    }
};

const Flags = packed struct(u16) {
    alive: bool = true,
    armed: bool = false,
    team: u3 = 0,
    rank: u5 = 0,
    noise: u6 = 0,
};

const Class = enum(u8) { knight, archer, mage, beast };

const Mind = union(enum) {
    wander: struct { until: u64, heading: Vec },
    chase: *Creature,
    guard: Guard,
    script: Program,
    dead,
};

const Guard = struct {
    post: Vec,
    radius: f32,
    alarms: u32,
};

const Program = struct {
    code: []const Op,
    at: u32,
    stack: [8]i32,
    depth: u8,
};

const Op = union(enum) {
    push: i32,
    add,
    mul,
    jump_if: struct { target: u16, below: i32 },
    move: Vec,
    rest: u16,
};

const Weapon = struct {
    name: []const u8,
    damage: i32,
    reach: f32,
    cooldown: u16,
    uses: u32,
    enchantment: ?*Effect,
};

const Effect = struct {
    next: ?*Effect,
    kind: union(enum) {
        burn: i32,
        slow: f32,
        heal: struct { each: i32, left: u8 },
    },
    ends: u64,
    source: ?*const Creature,
};

const Creature = struct {
    id: u32,
    flags: Flags,
    class: Class,
    place: Vec,
    speed: Vec,
    health: i32,
    armour: ?i16,
    mind: Mind,
    weapon: *Weapon,
    effects: ?*Effect,
    cell: std.DoublyLinkedList.Node,
    where: ?*std.DoublyLinkedList,
    kills: u32,
    history: [6]Hit,
};

const Hit = struct {
    at: u64,
    by: u32,
    amount: i16,
};

const ArenaError = error{ Dead, OutOfReach, Cooling };

fn strike(a: *Creature, b: *Creature) ArenaError!i32 {
    if (!a.flags.alive or !b.flags.alive) return error.Dead;
    if (a.place.sub(b.place).norm() > a.weapon.reach * a.weapon.reach) return error.OutOfReach;
    if (a.weapon.cooldown > 0) {
        a.weapon.cooldown -= 1;
        return error.Cooling;
    }
    a.weapon.cooldown = 3;
    a.weapon.uses += 1;
    const dealt = a.weapon.damage - (b.armour orelse 0);
    b.health -= dealt;
    b.history[a.id % b.history.len] = .{ .at = clock, .by = a.id, .amount = @intCast(dealt) };
    if (a.weapon.enchantment) |e| afflict(b, e.*, a);
    if (b.health <= 0) {
        b.flags.alive = false;
        b.mind = .dead;
        a.kills += 1;
        a.flags.rank +|= 1;
        totals.kills += 1;
    }
    return dealt;
}

fn afflict(c: *Creature, model: Effect, source: *const Creature) void {
    const e = spare_effects orelse {
        totals.lost += 1;
        return;
    };
    spare_effects = e.next;
    e.* = model;
    e.ends = clock + 40;
    e.source = source;
    e.next = c.effects;
    c.effects = e;
}

fn suffer(c: *Creature) void {
    var link: *?*Effect = &c.effects;
    while (link.*) |e| {
        switch (e.kind) {
            .burn => |n| c.health -= n,
            .slow => |s| c.speed = c.speed.scale(s),
            .heal => |*h| if (h.left > 0) {
                h.left -= 1;
                c.health += h.each;
            },
        }
        if (e.ends < clock) {
            link.* = e.next;
            e.next = spare_effects;
            spare_effects = e;
        } else link = &e.next;
    }
}

fn run(p: *Program, c: *Creature) i32 {
    var fuel: u32 = 12;
    while (fuel > 0) : (fuel -= 1) {
        const op = &p.code[p.at];
        p.at = (p.at + 1) % @as(u32, @intCast(p.code.len));
        switch (op.*) {
            .push => |n| {
                p.stack[p.depth & 7] = n;
                p.depth = (p.depth + 1) & 7;
            },
            .add => p.stack[0] +%= p.stack[p.depth & 7],
            .mul => p.stack[1] = p.stack[p.depth & 7] *% 3,
            .jump_if => |j| if (p.stack[0] < j.below) {
                p.at = j.target;
            },
            .move => |v| c.speed = c.speed.add(v),
            .rest => |n| {
                c.health += n;
                return p.stack[0];
            },
        }
    }
    return p.stack[1];
}

// A quad tree of places
const Quad = struct {
    low: Vec,
    high: Vec,
    count: u32,
    body: union(enum) {
        leaf: struct { bodies: [6]*Creature, n: u8 },
        inner: *[4]Quad,
    },
};

const QuadTree = struct {
    root: Quad,
    blocks: [][4]Quad,
    used: usize,

    fn clear(t: *QuadTree) void {
        t.used = 0;
        t.root = .{ .low = .{}, .high = .{ .x = 256, .y = 256 }, .count = 0, .body = .{ .leaf = .{ .bodies = undefined, .n = 0 } } };
    }

    fn insert(t: *QuadTree, start: *Quad, c: *Creature) void {
        var q = start;
        while (true) {
            q.count += 1;
            switch (q.body) {
                .leaf => |*l| {
                    if (l.n < l.bodies.len) {
                        l.bodies[l.n] = c;
                        l.n += 1;
                        return;
                    }
                    if (t.used == t.blocks.len) return;
                    const block = &t.blocks[t.used];
                    t.used += 1;
                    const mid = q.low.add(q.high).scale(0.5);
                    for (block, 0..) |*b, i| {
                        b.low = .{ .x = if (i & 1 == 0) q.low.x else mid.x, .y = if (i & 2 == 0) q.low.y else mid.y };
                        b.high = .{ .x = if (i & 1 == 0) mid.x else q.high.x, .y = if (i & 2 == 0) mid.y else q.high.y };
                        b.count = 0;
                        b.body = .{ .leaf = .{ .bodies = undefined, .n = 0 } };
                    }
                    const old = l.*;
                    q.body = .{ .inner = block };
                    for (old.bodies) |other| t.insert(child(q, block, other.place), other);
                    q = child(q, block, c.place);
                },
                .inner => |block| q = child(q, block, c.place),
            }
        }
    }

    fn child(q: *const Quad, block: *[4]Quad, p: Vec) *Quad {
        const mid = q.low.add(q.high).scale(0.5);
        const i = @as(usize, @intFromBool(p.x >= mid.x)) + 2 * @as(usize, @intFromBool(p.y >= mid.y));
        return &block[i];
    }
};

fn nearest(q: *const Quad, p: Vec, not: *const Creature, best: *f32) ?*Creature {
    if (p.x + 20 < q.low.x or p.x - 20 > q.high.x or p.y + 20 < q.low.y or p.y - 20 > q.high.y) return null;
    var found: ?*Creature = null;
    switch (q.body) {
        .leaf => |*l| for (l.bodies[0..l.n]) |c| {
            const d = c.place.sub(p).norm();
            if (c != not and d < best.*) {
                best.* = d;
                found = c;
            }
        },
        .inner => |block| for (block) |*b| {
            if (b.count == 0) continue;
            if (nearest(b, p, not, best)) |c| found = c;
        },
    }
    return found;
}

// Generic
fn Ring(comptime T: type, comptime n: usize) type {
    return struct {
        const Self = @This();
        slots: [n]T,
        at: usize,
        total: u64,

        fn put(self: *Self, x: T) void {
            self.slots[self.at] = x;
            self.at = (self.at + 1) % n;
            self.total += 1;
        }

        fn last(self: *const Self, back: usize) *const T {
            return &self.slots[(self.at + n - 1 - back % n) % n];
        }
    };
}

fn Heap(comptime T: type, comptime before: fn (T, T) bool) type {
    return struct {
        const Self = @This();
        items: []T,
        len: usize,
        moves: u64,

        fn push(self: *Self, x: T) void {
            var i = self.len;
            self.len += 1;
            while (i > 0 and before(x, self.items[(i - 1) / 2])) {
                self.items[i] = self.items[(i - 1) / 2];
                i = (i - 1) / 2;
                self.moves += 1;
            }
            self.items[i] = x;
        }

        fn pop(self: *Self) ?T {
            if (self.len == 0) return null;
            const top = self.items[0];
            self.len -= 1;
            const x = self.items[self.len];
            var i: usize = 0;
            while (2 * i + 1 < self.len) {
                var c = 2 * i + 1;
                if (c + 1 < self.len and before(self.items[c + 1], self.items[c])) c += 1;
                if (!before(self.items[c], x)) break;
                self.items[i] = self.items[c];
                i = c;
            }
            self.items[i] = x;
            return top;
        }
    };
}

const Event = struct {
    at: u64,
    order: u16,
    what: union(enum) {
        revive: *Creature,
        spawn: struct { place: Vec, speed: Vec },
        shout: []const u8,
    },
};

fn sooner(a: Event, b: Event) bool {
    return a.at < b.at;
}

const Bolt = struct {
    place: Vec,
    speed: Vec,
    owner: u32,
    damage: i16,
    live: bool,
};

const Score = struct {
    points: i64,
    hits: u32,
    best: f32,
};

const Pair = struct { a: u32, b: u32 };

const Terrain = enum(u8) { grass, water, wall, mud };
const Tile = struct {
    kind: Terrain,
    cost: u16,
    heat: f32,
    last: ?*Creature,
};

// A trie of names, with spans of text
const Letter = struct {
    next: [26]?*Letter,
    count: u32,
    word: ?[]const u8,
};

/// Something behind a table of functions
const Referee = struct {
    context: *anyopaque,
    table: *const Table,
    const Table = struct {
        judge: *const fn (*anyopaque, *const Creature) i32,
        name: [:0]const u8,
    };
};

const Strict = struct {
    warnings: u32,
    limit: i32,

    fn judge(context: *anyopaque, c: *const Creature) i32 {
        const self: *Strict = @ptrCast(@alignCast(context));
        if (c.kills > 3) self.warnings += 1;
        return @min(c.health, self.limit);
    }
};

const Fair = struct {
    seen: [4]u64,
    mean: f64,

    fn judge(context: *anyopaque, c: *const Creature) i32 {
        const self: *Fair = @ptrCast(@alignCast(context));
        self.seen[@intFromEnum(c.class)] += 1;
        self.mean = self.mean * 0.99 + @as(f64, @floatFromInt(c.health)) * 0.01;
        return @intFromFloat(self.mean);
    }
};

const Totals = struct {
    steps: u64 = 0,
    kills: u64 = 0,
    lost: u64 = 0,
    errors: [4]u32 = @splat(0),
    by_class: [4]struct { hits: u32, damage: i64 } = undefined,
    heat: f64 = 0,
};

const width = 32;
const Grid = [width]std.DoublyLinkedList;

// Global variables
var creatures: []Creature = undefined;
var tree: *QuadTree = undefined;
var spare_effects: ?*Effect = null;
var grid: [width]Grid = undefined;
var events: Heap(Event, sooner) = undefined;
var hits: *Ring(Hit, 32) = undefined;
var bolts: std.ArrayList(Bolt) = .empty;
var waiting: std.ArrayList(*Creature) = .empty;
var scores: std.AutoHashMapUnmanaged(u32, Score) = .empty;
var pairs: std.AutoHashMapUnmanaged(Pair, u32) = .empty;
var sparks: std.MultiArrayList(Spark) = .empty;
var tiles: [][]Tile = undefined;
var letters: *Letter = undefined;
var referees: [2]Referee = undefined;
var totals: Totals = .{};
var histogram: [64]u32 = @splat(0);
var frame: []@Vector(4, f32) = undefined;
var text: []u8 = undefined;
var alive: std.StaticBitSet(256) = .empty;
var seed: u64 = 88172645463325252;
threadlocal var clock: u64 = 0;
threadlocal var pulse: [4]f64 = @splat(1);

const Spark = struct { place: Vec, age: u16, heat: f32, owner: ?*Creature };

const names = [_][]const u8{ "anna", "bert", "carl", "dora", "emil", "fritz", "gus", "hana" };

fn random() u64 {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

fn below(n: u64) usize {
    return @intCast(random() % n);
}

fn place(c: *Creature) void {
    c.place.x = @mod(c.place.x + c.speed.x, 255.0);
    c.place.y = @mod(c.place.y + c.speed.y, 255.0);
    const row: usize = @intFromFloat(c.place.y / 8);
    const column: usize = @intFromFloat(c.place.x / 8);
    const list = &grid[row][column];
    if (c.where) |old| {
        if (old == list) return;
        old.remove(&c.cell);
    }
    list.append(&c.cell);
    c.where = list;
    const tile = &tiles[row][column];
    tile.last = c;
    tile.heat += 0.5;
    tile.cost = switch (tile.kind) {
        .grass => 1,
        .mud => tile.cost +| 1,
        .water, .wall => 9,
    };
}

fn think(c: *Creature) void {
    switch (c.mind) {
        .wander => |*w| {
            c.speed = c.speed.scale(0.9).add(w.heading);
            if (w.until < clock) {
                var best: f32 = 400;
                if (nearest(&tree.root, c.place, c, &best)) |other| {
                    c.mind = .{ .chase = other };
                } else w.until = clock + 20;
            }
        },
        .chase => |other| {
            c.speed = other.place.sub(c.place).scale(0.1);
            if (strike(c, other)) |n| {
                hits.put(.{ .at = clock, .by = c.id, .amount = @intCast(n & 0x7fff) });
                const class = &totals.by_class[@intFromEnum(c.class)];
                class.hits += 1;
                class.damage += n;
                note(c, other, n);
            } else |err| {
                totals.errors[@intFromError(err) & 3] += 1;
                if (err == error.Dead or random() % 16 == 0) c.mind = .{ .wander = .{ .until = clock + 30, .heading = .{ .x = 0.2, .y = -0.1 } } };
            }
        },
        .guard => |*g| {
            const away = g.post.sub(c.place);
            if (away.norm() > g.radius * g.radius) {
                g.alarms += 1;
                c.speed = away.scale(0.2);
            }
            shoot(c);
        },
        .script => |*p| totals.heat += @floatFromInt(run(p, c) & 3),
        .dead => if (random() % 8 == 0 and events.len < events.items.len) {
            events.push(.{ .at = clock + below(50), .order = @truncate(random()), .what = .{ .revive = c } });
        },
    }
}

fn note(a: *const Creature, b: *const Creature, n: i32) void {
    if (scores.getPtr(a.id)) |s| {
        s.points += n;
        s.hits += 1;
        s.best = @max(s.best, @as(f32, @floatFromInt(n)));
    }
    const entry = pairs.getOrPutAssumeCapacity(.{ .a = a.id % 16, .b = b.id % 16 });
    if (!entry.found_existing) entry.value_ptr.* = 0;
    entry.value_ptr.* += 1;
    if (sparks.len < 200) {
        sparks.appendAssumeCapacity(.{ .place = b.place, .age = 0, .heat = 9, .owner = null });
    }
}

fn shoot(c: *Creature) void {
    if (bolts.items.len == bolts.capacity) return;
    const b = bolts.addOneAssumeCapacity();
    b.* = .{ .place = c.place, .speed = .{ .x = 1, .y = 2 }, .owner = c.id, .damage = 3, .live = true };
}

fn fly() void {
    for (bolts.items) |*b| {
        b.place = b.place.add(b.speed);
        if (b.place.x > 250 or b.place.y > 250) {
            b.live = false;
            continue;
        }
        const list = &grid[@intFromFloat(b.place.y / 8)][@intFromFloat(b.place.x / 8)];
        var it = list.first;
        while (it) |node| : (it = node.next) {
            const c: *Creature = @fieldParentPtr("cell", node);
            if (c.id != b.owner and c.flags.alive) {
                c.health -= b.damage;
                b.live = false;
                if (c.health < 5) c.flags.noise +%= 1;
            }
        }
    }
    var i: usize = 0;
    while (i < bolts.items.len) {
        if (bolts.items[i].live) i += 1 else _ = bolts.swapRemove(i);
    }
}

fn glow() void {
    const ages = sparks.items(.age);
    const heats = sparks.items(.heat);
    const places = sparks.items(.place);
    for (ages, heats, places) |*age, *heat, *p| {
        age.* += 1;
        heat.* *= 0.9;
        p.x += heat.* * 0.1;
    }
    var n: usize = sparks.len;
    while (n > 0) {
        n -= 1;
        if (sparks.items(.age)[n] > 20) sparks.swapRemove(n);
    }
    for (tiles, 0..) |row, r| {
        for (row, 0..) |*t, k| {
            t.heat *= 0.98;
            const f = &frame[(r * width + k) % frame.len];
            f.* = f.* * @as(@Vector(4, f32), @splat(0.5)) + @as(@Vector(4, f32), .{ t.heat, 0, 1, @floatFromInt(t.cost) });
        }
    }
    for (&pulse, 0..) |*p, k| p.* = p.* * 0.9 + @as(f64, frame[k][0]);
}

fn spell(word: []const u8) u32 {
    var l: ?*Letter = letters;
    for (word) |c| {
        const here = l orelse return 0;
        here.count += 1;
        l = here.next[c - 'a'];
    }
    const end = l orelse return 0;
    return if (end.word) |w| @intCast(w.len) else end.count;
}

fn happen(e: Event) void {
    switch (e.what) {
        .revive => |c| {
            if (c.flags.alive) return;
            c.flags.alive = true;
            c.health = 100;
            c.mind = .{ .wander = .{ .until = clock, .heading = .{ .x = 0.1 } } };
            waiting.appendAssumeCapacity(c);
        },
        .spawn => |s| {
            if (bolts.items.len < bolts.capacity)
                bolts.appendAssumeCapacity(.{ .place = s.place, .speed = s.speed, .owner = 0, .damage = 2, .live = true });
            events.push(.{ .at = clock + 31, .order = 1, .what = .{ .spawn = .{ .place = s.place, .speed = s.speed } } });
        },
        .shout => |word| {
            const n = @min(word.len, text.len);
            @memcpy(text[0..n], word[0..n]);
            histogram[spell(word) & 63] += 1;
            events.push(.{ .at = clock + 17, .order = 2, .what = .{ .shout = names[below(names.len)] } });
        },
    }
}

fn ranks() void {
    waiting.clearRetainingCapacity();
    for (creatures) |*c| {
        if (waiting.items.len < 60 and c.flags.rank > 0) waiting.appendAssumeCapacity(c);
        alive.setValue(c.id, c.flags.alive);
    }
    // The library's sorts swap byte by byte, which the scorer cannot judge.
    for (waiting.items, 0..) |c, i| {
        var k = i;
        while (k > 0 and waiting.items[k - 1].kills < c.kills) : (k -= 1) waiting.items[k] = waiting.items[k - 1];
        waiting.items[k] = c;
    }
    var it = scores.iterator();
    while (it.next()) |entry| {
        entry.value_ptr.points -= @divTrunc(entry.value_ptr.points, 8);
        histogram[entry.key_ptr.* & 63] += 1;
    }
    for (referees) |r| {
        for (waiting.items) |c| histogram[@as(u32, @bitCast(r.table.judge(r.context, c))) & 63] += 1;
    }
    histogram[alive.count() & 63] += 1;
    var sum: u32 = 0;
    for (text) |*c| {
        sum = sum *% 31 +% c.*;
        c.* = c.* +% 1;
    }
    for (&hits.slots) |*h| sum +%= h.by;
    histogram[(sum +% hits.last(3).by) & 63] += 1;
}

fn step() void {
    clock += 1;
    totals.steps += 1;
    if (clock % 8 == 0) {
        tree.clear();
        for (creatures) |*c| if (c.flags.alive) tree.insert(&tree.root, c);
    }
    for (0..12) |_| {
        const c = &creatures[below(creatures.len)];
        think(c);
        suffer(c);
        place(c);
    }
    fly();
    if (clock % 4 == 1) glow();
    while (events.len > 0 and events.items[0].at <= clock) happen(events.pop().?);
    if (clock % 32 == 2) ranks();
}

fn setUp() void {
    tree = one(QuadTree);
    tree.blocks = gpa.alloc([4]Quad, 64) catch unreachable;
    tr_region("arena.Quad", @intFromPtr(tree.blocks.ptr), 64 * @sizeOf([4]Quad), @sizeOf(Quad));
    tree.clear();
    for (&grid) |*row| {
        for (row) |*list| list.* = .{};
    }
    tiles = many([]Tile, width);
    for (tiles, 0..) |*row, r| {
        row.* = many(Tile, width);
        for (row.*, 0..) |*t, k| t.* = .{ .kind = @enumFromInt((r * k) & 3), .cost = 1, .heat = 0, .last = null };
    }
    for (0..160) |_| {
        const e = one(Effect);
        e.next = spare_effects;
        spare_effects = e;
    }
    const code = many(Op, 8);
    for (code, [_]Op{ .{ .push = 3 }, .{ .push = 4 }, .add, .{ .move = .{ .x = 0.1, .y = 0.2 } }, .mul, .{ .jump_if = .{ .target = 1, .below = 20 } }, .{ .rest = 1 }, .add }) |*to, op| to.* = op;
    creatures = many(Creature, 180);
    for (creatures, 0..) |*c, i| {
        const w = one(Weapon);
        w.* = .{ .name = names[i % 8], .damage = @intCast(5 + i % 9), .reach = 12, .cooldown = 0, .uses = 0, .enchantment = null };
        if (i % 3 == 0) {
            const e = one(Effect);
            e.* = .{ .next = null, .ends = 0, .source = null, .kind = switch (i % 9) {
                0 => .{ .burn = 2 },
                3 => .{ .slow = 0.8 },
                else => .{ .heal = .{ .each = 1, .left = 9 } },
            } };
            w.enchantment = e;
        }
        c.* = .{
            .id = @intCast(i),
            .flags = .{ .team = @truncate(i), .armed = true },
            .class = @enumFromInt(i & 3),
            .place = .{ .x = @floatFromInt(below(250)), .y = @floatFromInt(below(250)) },
            .speed = .{},
            .health = 100,
            .armour = if (i % 2 == 0) @intCast(i % 5) else null,
            .mind = switch (i % 5) {
                0 => .{ .guard = .{ .post = .{ .x = 100, .y = 90 }, .radius = 30, .alarms = 0 } },
                1 => .{ .script = .{ .code = code, .at = 0, .stack = @splat(0), .depth = 0 } },
                else => .{ .wander = .{ .until = i, .heading = .{ .x = 0.3, .y = 0.1 } } },
            },
            .weapon = w,
            .effects = null,
            .cell = .{},
            .where = null,
            .kills = 0,
            .history = undefined,
        };
    }
    events = .{ .items = many(Event, 128), .len = 0, .moves = 0 };
    events.push(.{ .at = 1, .order = 0, .what = .{ .spawn = .{ .place = .{ .x = 9, .y = 9 }, .speed = .{ .x = 3, .y = 2 } } } });
    events.push(.{ .at = 2, .order = 0, .what = .{ .shout = "carl" } });
    hits = one(Ring(Hit, 32));
    hits.* = .{ .slots = undefined, .at = 0, .total = 0 };
    for (&hits.slots) |*h| h.* = .{ .at = 0, .by = 0, .amount = 0 };
    bolts = listOf(Bolt, 64);
    waiting = listOf(*Creature, 200);
    tellMap(u32, Score, &scores, 100);
    for (0..60) |i| scores.putAssumeCapacity(@intCast(i * 3), .{ .points = 0, .hits = 0, .best = 0 });
    tellMap(Pair, u32, &pairs, 300);
    sparks.ensureTotalCapacity(gpa, 200) catch unreachable;
    sparks.len = 200;
    _ = tellMany(Vec, sparks.items(.place));
    _ = tellMany(u16, sparks.items(.age));
    _ = tellMany(f32, sparks.items(.heat));
    _ = tellMany(?*Creature, sparks.items(.owner));
    sparks.len = 0;
    letters = newLetter();
    for (names) |name| {
        var l = letters;
        for (name) |c| {
            const slot = &l.next[c - 'a'];
            if (slot.* == null) slot.* = newLetter();
            l = slot.*.?;
        }
        l.word = name;
    }
    const strict = one(Strict);
    strict.* = .{ .warnings = 0, .limit = 50 };
    const fair = one(Fair);
    fair.* = .{ .seen = @splat(0), .mean = 0 };
    referees = .{ .{ .context = strict, .table = &.{ .judge = Strict.judge, .name = "strict" } }, .{ .context = fair, .table = &.{ .judge = Fair.judge, .name = "fair" } } };
    frame = gpa.alloc(@Vector(4, f32), 256) catch unreachable;
    tr_region("f32", @intFromPtr(frame.ptr), 256 * 16, 4);
    @memset(frame, @splat(0));
    text = many(u8, 48);
    @memset(text, 'x');
    for (&totals.by_class) |*c| c.* = .{ .hits = 0, .damage = 0 };
}

fn newLetter() *Letter {
    const l = one(Letter);
    l.* = .{ .next = @splat(null), .count = 0, .word = null };
    return l;
}

fn tellGlobal(comptime name: [:0]const u8, comptime kind: [:0]const u8) void {
    const variable = &@field(@This(), name);
    tr_global(name, @intFromPtr(variable), @sizeOf(@TypeOf(variable.*)), kind);
}

fn tellVariables() void {
    inline for (.{ "creatures", "tree", "spare_effects", "events", "hits", "bolts", "waiting", "scores", "pairs", "sparks", "tiles", "letters", "totals", "frame", "text", "alive", "seed" }) |name|
        tellGlobal(name, nameOf(@TypeOf(@field(@This(), name))));
    tellGlobal("grid", "DoublyLinkedList[32][32]");
    tellGlobal("referees", "arena.Referee[2]");
    tellGlobal("histogram", "u32[64]");
    tr_tls("clock", @intFromPtr(&clock), 8, "u64");
    tr_tls("pulse", @intFromPtr(&pulse), 32, "f64[4]");
}

pub export fn main(argc: c_int, argv: [*]const [*:0]const u8) c_int {
    tr_init(argc, argv);
    setUp();
    tellVariables();
    while (tr_more() != 0) {
        for (0..50) |_| step();
    }
    _ = printf("%lu %lu %lu %u\n", totals.steps, totals.kills, totals.lost, totals.errors[1]);
    return 0;
}
