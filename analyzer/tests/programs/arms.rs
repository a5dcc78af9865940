//! Enumerations with data, niches, pointers to values, collections, as statics.

use std::collections::{BTreeMap, HashMap, VecDeque};

pub enum Shape {
    Circle { radius: f64 },
    Line(u32, f64),
    Mark { flag: u8, at: u32 },
    Empty,
}

pub enum Expr {
    Number(i64),
    Add(Box<Expr>, Box<Expr>),
    Times(Box<Expr>, Box<Expr>),
}

pub struct Item {
    pub key: u64,
    pub weight: f32,
}

pub struct Shop {
    pub shapes: [Shape; 4],
    pub boxed: Option<Box<Item>>,
    pub count: Option<u32>,
    pub items: Vec<Item>,
    pub name: String,
    pub slice: &'static [Item],
    pub text: &'static str,
    pub table: Option<HashMap<u64, Item>>,
    pub queue: VecDeque<Item>,
    pub shared: Option<std::sync::Arc<Item>>,
    pub cell: std::cell::RefCell<u64>,
    pub expr: Expr,
}

pub static mut SHOP: Shop = Shop {
    shapes: [
        Shape::Circle { radius: 1.0 },
        Shape::Line(2, 3.0),
        Shape::Mark { flag: 4, at: 5 },
        Shape::Empty,
    ],
    boxed: None,
    count: Some(3),
    items: Vec::new(),
    name: String::new(),
    slice: &[],
    text: "text",
    table: None,
    queue: VecDeque::new(),
    shared: None,
    cell: std::cell::RefCell::new(1),
    expr: Expr::Number(1),
};

pub struct Copied(u64);

/// Copies a value in every way that `std::ptr` has.
unsafe fn copied(mut value: Copied) -> Copied {
    unsafe {
        std::ptr::write(&mut value, std::ptr::read(&value));
        std::ptr::write_unaligned(&mut value, std::ptr::read_unaligned(&value));
        std::ptr::write_volatile(&mut value, std::ptr::read_volatile(&value));
    }
    value
}

fn tell<T>(name: &str, at: &T) {
    println!("&{name} {}", at as *const T as usize);
}

async fn step(x: u64) -> u64 {
    x + 1
}

/// Its own state is where its pinned future is: `x` and `sum` are told from inside.
async fn walk(x: u64, name: String) -> u64 {
    tell("walk.x", &x);
    let sum = [x, x + 1, x + 2];
    let next = step(x).await;
    tell("walk.sum", &sum);
    tell("walk.name", &name);
    next + sum[1] + name.len() as u64
}

#[inline(never)]
fn poll<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    println!("&walk {}", &raw const *future as usize);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[allow(static_mut_refs)]
fn main() {
    let shop = unsafe { &mut SHOP };
    tell("SHOP", shop);
    if let Shape::Circle { radius } = &shop.shapes[0] {
        tell("circle.radius", radius);
    }
    if let Shape::Line(first, second) = &shop.shapes[1] {
        tell("line.0", first);
        tell("line.1", second);
    }
    if let Shape::Mark { flag, at } = &shop.shapes[2] {
        tell("mark.flag", flag);
        tell("mark.at", at);
    }
    tell("shapes[3]", &shop.shapes[3]);
    tell("boxed", &shop.boxed);
    tell("count", &shop.count);
    if let Some(count) = &shop.count {
        tell("count.0", count);
    }
    tell("items", &shop.items);
    tell("slice", &shop.slice);
    tell("shared", &shop.shared);
    tell("expr", &shop.expr);
    tell("cell", unsafe { &*shop.cell.as_ptr() });
    shop.table = Some(HashMap::from([(1, Item { key: 1, weight: 2.0 })]));
    shop.queue.push_back(Item { key: 1, weight: 2.0 });
    shop.items.push(Item { key: 1, weight: 2.0 });
    let mut sum = shop.table.as_ref().map_or(0, |table| table[&1].key);
    sum += shop.items.iter().chain(&shop.queue).map(|item| item.key).sum::<u64>();
    let order = BTreeMap::from([(1, Item { key: 1, weight: 2.0 })]);
    sum += order[&1].key + unsafe { copied(Copied(1)) }.0;
    let extra = sum;
    let add = move |more: u64| more + extra;
    sum += poll(walk(3, "name".to_owned())) + std::hint::black_box(&add)(1);
    eprintln!("{sum}");
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        println!("map {line}");
    }
    unsafe extern "C" {
        static __ehdr_start: u8;
    }
    println!("&__ehdr_start {}", &raw const __ehdr_start as usize);
}
