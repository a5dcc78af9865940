//! A packet router: tries of enums in boxes, flows in a HashMap, a slab with a list by use, priority queues, Arc.
#[path = "../heap.rs"]
mod heap;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::rc::{Rc, Weak};
use std::sync::Arc;

pub enum Route {
    Empty,
    Hop { port: u16, metric: u32 },
    Branch(Box<[Route; 4]>),
    Filter { mask: u32, allowed: u64, then: Box<Route> },
}

#[derive(Clone, Copy)]
pub struct Packet {
    source: u32,
    target: u32,
    length: u16,
    body: Body,
}

#[derive(Clone, Copy)]
pub enum Body {
    Stream { sequence: u32, window: u16 },
    Datagram([u8; 10]),
    Control(u64),
}

#[derive(Hash, PartialEq, Eq, Clone, Copy)]
pub struct Key {
    source: u32,
    target: u32,
}

pub struct Flow {
    packets: u64,
    bytes: u64,
    last: u32,
    slot: u32,
    average: f32,
}

pub struct Slot {
    newer: u32,
    older: u32,
    key: Key,
    live: bool,
}

pub struct Recent {
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
    moves: u64,
}

const NONE: u32 = u32::MAX;

impl Recent {
    fn unlink(&mut self, i: u32) {
        let (newer, older) = (self.slots[i as usize].newer, self.slots[i as usize].older);
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn push(&mut self, i: u32) {
        let newest = std::mem::replace(&mut self.newest, i);
        let slot = &mut self.slots[i as usize];
        (slot.newer, slot.older, slot.live) = (NONE, newest, true);
        match self.slots.get_mut(newest as usize) {
            Some(slot) => slot.newer = i,
            None => self.oldest = i,
        }
        self.moves += 1;
    }
}

pub trait Meter {
    fn pass(&mut self, packet: &Packet) -> bool;
    fn level(&self) -> f64;
}

pub struct Bucket {
    tokens: f64,
    rate: f64,
    dropped: u64,
}

pub struct Windowed {
    counts: [u32; 16],
    place: usize,
    limit: u32,
}

pub struct Sampled<M> {
    inner: M,
    one_in: u32,
    seen: u32,
}

impl Meter for Bucket {
    fn pass(&mut self, packet: &Packet) -> bool {
        self.tokens = (self.tokens + self.rate).min(9000.0);
        let pass = self.tokens > packet.length as f64;
        if pass {
            self.tokens -= packet.length as f64
        } else {
            self.dropped += 1
        }
        pass
    }
    fn level(&self) -> f64 {
        self.tokens + self.dropped as f64
    }
}

impl Meter for Windowed {
    fn pass(&mut self, packet: &Packet) -> bool {
        self.place = (self.place + 1) % 16;
        self.counts[self.place] = packet.length as u32;
        self.counts.iter().sum::<u32>() < self.limit
    }
    fn level(&self) -> f64 {
        self.counts[self.place] as f64
    }
}

impl<M: Meter> Meter for Sampled<M> {
    fn pass(&mut self, packet: &Packet) -> bool {
        self.seen += 1;
        self.seen % self.one_in != 0 || self.inner.pass(packet)
    }
    fn level(&self) -> f64 {
        self.inner.level() * self.one_in as f64
    }
}

pub struct Port {
    sent: Cell<u64>,
    queue: RefCell<BinaryHeap<Reverse<(u32, u16)>>>,
    peer: RefCell<Weak<Port>>,
    names: Arc<Config>,
}

pub struct Config {
    costs: [u32; 24],
    floor: u32,
}

pub struct Router {
    routes: Route,
    flows: HashMap<Key, Flow>,
    recent: Recent,
    meters: Vec<Box<dyn Meter>>,
    ports: Vec<Rc<Port>>,
    by_length: BTreeMap<u16, [u64; 3]>,
    dropped: u64,
}

#[inline(never)]
fn look_up(mut route: &Route, target: u32) -> Option<(u16, u32)> {
    let mut bits = target;
    loop {
        match route {
            Route::Empty => return None,
            Route::Hop { port, metric } => return Some((*port, *metric)),
            Route::Branch(next) => {
                route = &next[bits as usize & 3];
                bits >>= 2;
            }
            Route::Filter { mask, allowed, then } => {
                if (target & mask) as u64 > *allowed {
                    return None;
                }
                route = then;
            }
        }
    }
}

#[inline(never)]
fn account(router: &mut Router, packet: &Packet) {
    let key = Key { source: packet.source, target: packet.target };
    let Some(flow) = router.flows.get_mut(&key) else { return };
    flow.packets += 1;
    flow.bytes += packet.length as u64;
    flow.average = 0.9 * flow.average + 0.1 * packet.length as f32;
    flow.last = match packet.body {
        Body::Stream { sequence, window } => sequence + window as u32,
        Body::Datagram(bytes) => bytes[flow.packets as usize % 10] as u32,
        Body::Control(word) => word as u32,
    };
    let slot = flow.slot;
    router.recent.unlink(slot);
    router.recent.push(slot);
}

#[inline(never)]
fn forward(router: &mut Router, packets: &[Packet]) -> u64 {
    let mut forwarded = 0;
    for (i, packet) in packets.iter().enumerate() {
        account(router, packet);
        let meters = router.meters.len();
        if !router.meters[i % meters].pass(packet) {
            router.dropped += 1;
            continue;
        }
        let Some((port, metric)) = look_up(&router.routes, packet.target) else { continue };
        let port = &router.ports[port as usize % router.ports.len()];
        let cost = metric + port.names.costs[i % 24];
        port.queue.borrow_mut().push(Reverse((cost.max(port.names.floor), packet.length)));
        forwarded += 1;
    }
    forwarded
}

#[inline(never)]
fn transmit(ports: &[Rc<Port>], by_length: &mut BTreeMap<u16, [u64; 3]>) -> u64 {
    let mut sum = 0;
    for port in ports {
        let mut queue = port.queue.borrow_mut();
        while let Some(Reverse((cost, length))) = queue.pop() {
            port.sent.set(port.sent.get() + length as u64);
            if let Some(peer) = port.peer.borrow().upgrade() {
                sum += peer.sent.get() & 1;
            }
            if let Some(counts) = by_length.get_mut(&(length / 8)) {
                counts[cost as usize % 3] += 1;
            }
        }
    }
    sum
}

#[inline(never)]
fn summary(router: &Router) -> f64 {
    let levels: f64 = router.meters.iter().map(|m| m.level()).sum();
    let busiest =
        router.flows.iter().filter(|(k, _)| k.source % 2 == 0).map(|(_, f)| f.bytes).max();
    let lengths: u64 = router.by_length.iter().map(|(l, c)| *l as u64 * c[1]).sum();
    let mut live = 0;
    let mut at = router.recent.oldest;
    while let Some(slot) = router.recent.slots.get(at as usize) {
        live += (slot.live && slot.key.target > 9) as u64;
        at = slot.newer;
    }
    levels + busiest.unwrap_or(0) as f64 + (lengths + live) as f64
}

#[inline(never)]
fn next_packets(packets: &mut [Packet], round: u32) {
    packets.sort_unstable_by_key(|p| p.target.wrapping_mul(round | 1));
    for packet in packets.chunks_exact_mut(2).flat_map(|pair| pair.first_mut()) {
        packet.length = 40 + (packet.length + 13) % 1400;
        if let Body::Stream { sequence, .. } = &mut packet.body {
            *sequence += packet.length as u32;
        }
    }
}

fn routes(depth: u32) -> Route {
    match heap::random() % 8 {
        _ if depth == 0 => Route::Hop { port: heap::random() as u16, metric: 5 },
        0 => Route::Hop { port: heap::random() as u16 % 16, metric: depth },
        1 => {
            let then = routes(depth - 1);
            let then = heap::of::<Route, _>(|| Box::new(then));
            Route::Filter { mask: 0xff, allowed: 200, then }
        }
        2 if depth < 3 => Route::Empty,
        _ => {
            let next = [0; 4].map(|_| routes(depth - 1));
            Route::Branch(heap::of::<Route, _>(|| Box::new(next)))
        }
    }
}

fn packet(i: u32) -> Packet {
    let body = match i % 3 {
        0 => Body::Stream { sequence: i, window: 64 },
        1 => Body::Datagram([i as u8; 10]),
        _ => Body::Control(i as u64),
    };
    let length = 40 + (heap::random() % 1400) as u16;
    Packet { source: i % 97, target: (heap::random() % 4096) as u32, length, body }
}

fn ports(names: &Arc<Config>) -> Vec<Rc<Port>> {
    let mut ports: Vec<Rc<Port>> = heap::of::<Rc<Port>, _>(|| Vec::with_capacity(16));
    for i in 0..16 {
        let queue = heap::of::<Reverse<(u32, u16)>, _>(|| BinaryHeap::with_capacity(256));
        let peer = ports.get(i / 2).map_or(Weak::new(), Rc::downgrade);
        let port = Port {
            sent: Cell::new(0),
            queue: RefCell::new(queue),
            peer: RefCell::new(peer),
            names: names.clone(),
        };
        ports.push(heap::rc::<Port, _>(|| Rc::new(port)));
    }
    ports
}

fn meters() -> Vec<Box<dyn Meter>> {
    let bucket = || Bucket { tokens: 100.0, rate: 700.0, dropped: 0 };
    let windowed = || Windowed { counts: [0; 16], place: 0, limit: 14000 };
    let mut meters: Vec<Box<dyn Meter>> = heap::of::<Box<dyn Meter>, _>(|| Vec::with_capacity(3));
    meters.push(heap::of::<Bucket, _>(|| Box::new(bucket())));
    meters.push(heap::of::<Windowed, _>(|| Box::new(windowed())));
    meters.push(heap::of::<Sampled<Bucket>, _>(|| {
        Box::new(Sampled { inner: bucket(), one_in: 3, seen: 0 })
    }));
    meters
}

fn main() {
    heap::init();
    let mut packets = heap::of::<Packet, _>(|| Vec::with_capacity(600));
    packets.extend((0..600).map(packet));
    let mut flows = heap::table::<Key, Flow, _>(|| HashMap::with_capacity(700));
    let mut recent = Recent { slots: Vec::new(), newest: NONE, oldest: NONE, moves: 0 };
    recent.slots = heap::of::<Slot, _>(|| Vec::with_capacity(600));
    for (slot, packet) in (0..).zip(&packets) {
        let key = Key { source: packet.source, target: packet.target };
        if flows.contains_key(&key) {
            continue;
        }
        let slot = slot.min(recent.slots.len() as u32);
        flows.insert(key, Flow { packets: 0, bytes: 0, last: 0, slot, average: 0.0 });
        recent.slots.push(Slot { newer: NONE, older: NONE, key, live: false });
        recent.push(slot);
    }
    let names = heap::arc::<Config, _>(|| Arc::new(Config { costs: [7; 24], floor: 4 }));
    let mut by_length = BTreeMap::new();
    heap::tree::<u16, [u64; 3], _>(|| (0..190).for_each(|l| drop(by_length.insert(l, [0u64; 3]))));
    let routes = routes(7);
    let (meters, ports) = (meters(), ports(&names));
    let router = Router { routes, flows, recent, meters, ports, by_length, dropped: 0 };
    let mut router = heap::of::<Router, _>(|| Box::new(router));
    let mut sum = 0.0;
    for round in 0.. {
        if !heap::more() {
            break;
        }
        sum += forward(&mut router, &packets) as f64;
        let Router { ports, by_length, .. } = &mut *router;
        sum += transmit(ports, by_length) as f64 + summary(&router);
        if round % 4 == 0 {
            next_packets(&mut packets, round);
        }
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
