//! A shop: Vec, HashMap, BTreeMap, trait objects, enums, slices, iterators, closures.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeMap, HashMap, VecDeque};

#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Cart { items: u16 },
    Paid { cents: u64, method: u8 },
    Sent { parcel: u32, weight: f32 },
    Returned,
}

pub struct Order {
    id: u64,
    customer: u32,
    state: State,
    lines: Vec<Line>,
    discount: Option<f64>,
}

#[derive(Clone)]
pub struct Line {
    product: u32,
    count: u16,
    cents: u32,
}

pub struct Product {
    name: String,
    cents: u32,
    stock: i64,
    ratings: [u8; 12],
    sold: u64,
}

#[derive(Default, Clone)]
pub struct Sales {
    cents: u64,
    orders: u32,
    largest: u32,
}

pub trait Rule {
    fn discount(&mut self, order: &Order) -> f64;
}

pub struct Loyalty {
    visits: [u32; 64],
    share: f64,
}

pub struct Volume {
    limit: u64,
    hits: u64,
    shares: Vec<f64>,
}

pub struct Seasonal {
    day: u32,
    table: Box<[f32; 28]>,
}

impl Rule for Loyalty {
    fn discount(&mut self, order: &Order) -> f64 {
        let visits = &mut self.visits[order.customer as usize % 64];
        *visits += 1;
        if *visits > 10 {
            self.share
        } else {
            0.0
        }
    }
}

impl Rule for Volume {
    fn discount(&mut self, order: &Order) -> f64 {
        let cents: u64 = order.lines.iter().map(|l| l.cents as u64 * l.count as u64).sum();
        self.hits += (cents > self.limit) as u64;
        self.shares[(cents / 500) as usize % self.shares.len()]
    }
}

impl Rule for Seasonal {
    fn discount(&mut self, order: &Order) -> f64 {
        self.day = (self.day + order.id as u32) % 28;
        self.table[self.day as usize] as f64
    }
}

pub struct Shop {
    products: Vec<Product>,
    orders: Vec<Order>,
    by_customer: HashMap<u32, Sales>,
    by_day: BTreeMap<u32, Sales>,
    rules: Vec<Box<dyn Rule>>,
    recent: VecDeque<(u64, u32)>,
    day: u32,
}

#[inline(never)]
fn price(orders: &mut [Order], rules: &mut [Box<dyn Rule>]) -> f64 {
    let mut sum = 0.0;
    for order in orders {
        let share: f64 = rules.iter_mut().map(|rule| rule.discount(order)).sum();
        order.discount = (share > 0.05).then_some(share);
        sum += share;
    }
    sum
}

#[inline(never)]
fn advance(orders: &mut [Order], products: &mut [Product]) -> u64 {
    let mut moved = 0;
    for order in orders.iter_mut() {
        order.state = match order.state {
            State::Cart { items } if items as usize >= order.lines.len() => {
                let cents = order.lines.iter().map(|l| (l.cents * l.count as u32) as u64).sum();
                State::Paid { cents, method: (cents % 3) as u8 }
            }
            State::Cart { items } => State::Cart { items: items + 1 },
            State::Paid { cents, .. } => {
                for line in &order.lines {
                    let product = &mut products[line.product as usize];
                    product.stock -= line.count as i64;
                    product.sold += 1;
                }
                State::Sent { parcel: cents as u32, weight: cents as f32 * 0.1 }
            }
            State::Sent { parcel, weight } if weight > 60.0 || parcel % 4 == 0 => State::Returned,
            State::Sent { .. } | State::Returned => State::Cart { items: 0 },
        };
        moved += 1;
    }
    moved
}

#[inline(never)]
fn book(shop: &mut Shop) {
    for order in &shop.orders {
        let State::Paid { cents, .. } = order.state else { continue };
        let sales = shop.by_customer.entry(order.customer).or_default();
        sales.cents += cents;
        sales.orders += 1;
        let day = shop.by_day.entry((shop.day + order.customer) % 365).or_default();
        day.cents += cents;
        day.largest = day.largest.max(cents as u32);
        shop.recent.push_back((order.id, cents as u32));
        if shop.recent.len() > 300 {
            shop.recent.pop_front();
        }
    }
    shop.day += 1;
}

#[inline(never)]
fn report(shop: &Shop) -> u64 {
    let best = shop.by_customer.values().max_by_key(|sales| sales.cents).map_or(0, |s| s.orders);
    let quarter: u64 = shop.by_day.range(90..180).map(|(day, s)| s.cents / (*day as u64)).sum();
    let recent: u64 = shop.recent.iter().map(|&(id, cents)| id ^ cents as u64).sum();
    best as u64 + quarter + recent
}

#[inline(never)]
fn restock(products: &mut [Product]) -> usize {
    let mut low = 0;
    for (i, product) in products.iter_mut().enumerate() {
        if product.stock < 0 {
            product.stock += 1000;
            product.ratings[i % 12] = product.ratings[i % 12].wrapping_add(1);
            low += 1;
        }
        product.cents += product.name.len() as u32 & 1;
    }
    low
}

#[inline(never)]
fn rated(products: &[Product]) -> u64 {
    products
        .chunks(16)
        .filter(|shelf| shelf[0].cents > 100)
        .map(|shelf| shelf.iter().flat_map(|p| &p.ratings).map(|&r| r as u64).sum::<u64>())
        .max()
        .unwrap_or(0)
}

fn rules() -> Vec<Box<dyn Rule>> {
    let shares = heap::of::<f64, _>(|| vec![0.01; 7]);
    let table = heap::of::<f32, _>(|| Box::new([0.02; 28]));
    let mut rules: Vec<Box<dyn Rule>> = heap::of::<Box<dyn Rule>, _>(|| Vec::with_capacity(3));
    rules.push(heap::of::<Loyalty, _>(|| Box::new(Loyalty { visits: [0; 64], share: 0.1 })));
    rules.push(heap::of::<Volume, _>(|| Box::new(Volume { limit: 900, hits: 0, shares })));
    rules.push(heap::of::<Seasonal, _>(|| Box::new(Seasonal { day: 0, table })));
    rules
}

fn order(id: u64) -> Order {
    let lines = heap::of::<Line, _>(|| {
        (0..1 + id % 6)
            .map(|_| Line {
                product: (heap::random() % 500) as u32,
                count: 1 + (id % 3) as u16,
                cents: 50 + (heap::random() % 900) as u32,
            })
            .collect()
    });
    let customer = (heap::random() % 400) as u32;
    Order { id, customer, state: State::Cart { items: (id % 4) as u16 }, lines, discount: None }
}

fn product(i: u32) -> Product {
    Product {
        name: format!("product {i}"),
        cents: 100 + i % 50,
        stock: 100,
        ratings: [3; 12],
        sold: 0,
    }
}

fn main() {
    heap::init();
    let mut orders = heap::of::<Order, _>(|| Vec::with_capacity(800));
    orders.extend((0..800).map(order));
    let products: Vec<Product> = {
        let mut products = heap::of::<Product, _>(|| Vec::with_capacity(500));
        products.extend((0..500).map(product));
        products
    };
    let mut by_customer = heap::table::<u32, Sales, _>(|| HashMap::with_capacity(600));
    by_customer.insert(0, Sales::default());
    let mut by_day = BTreeMap::new();
    heap::tree::<u32, Sales, _>(|| {
        (0..365).for_each(|day| drop(by_day.insert(day, Sales::default())))
    });
    let recent = heap::of::<(u64, u32), _>(|| VecDeque::with_capacity(512));
    let shop = Shop { products, orders, by_customer, by_day, rules: rules(), recent, day: 0 };
    let mut shop = heap::of::<Shop, _>(|| Box::new(shop));
    let mut sum = 0.0;
    while heap::more() {
        let Shop { products, orders, rules, .. } = &mut *shop;
        sum += price(orders, rules);
        sum += advance(orders, products) as f64;
        sum += restock(products) as f64 + rated(products) as f64;
        book(&mut shop);
        sum += report(&shop) as f64;
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
