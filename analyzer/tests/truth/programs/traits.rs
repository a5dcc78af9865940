// Trait objects, reference counts, cells, closures in boxes, strings and formatting.
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::{Rc, Weak};

trait Animal {
    fn speak(&self) -> &str;
    fn age(&mut self, years: u32);
    fn weight(&self) -> u32 {
        1
    }
}

struct Dog {
    name: String,
    years: u32,
}

struct Cat {
    lives: u8,
}

impl Animal for Dog {
    fn speak(&self) -> &str {
        &self.name
    }
    fn age(&mut self, years: u32) {
        self.years += years;
    }
    fn weight(&self) -> u32 {
        self.years * 2
    }
}

impl Animal for Cat {
    fn speak(&self) -> &str {
        if self.lives > 5 { "meow" } else { "..." }
    }
    fn age(&mut self, years: u32) {
        self.lives = self.lives.saturating_sub(years as u8);
    }
}

struct Node {
    value: Cell<u32>,
    children: RefCell<Vec<Rc<Node>>>,
    parent: RefCell<Weak<Node>>,
}

#[inline(never)]
fn hear(animals: &[Box<dyn Animal>]) -> usize {
    animals.iter().map(|animal| animal.speak().len() + animal.weight() as usize).sum()
}

#[inline(never)]
fn total(node: &Node) -> u32 {
    let below: u32 = node.children.borrow().iter().map(|child| total(child)).sum();
    let above = node.parent.borrow().upgrade().map_or(0, |parent| parent.value.get());
    node.value.set(node.value.get() + 1);
    node.value.get() + below + above
}

#[inline(never)]
fn compose(steps: &[Box<dyn Fn(u32) -> u32>], value: u32) -> u32 {
    steps.iter().fold(value, |value, step| step(value))
}

#[inline(never)]
fn shout(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if word.starts_with('t') || word.contains("ow") {
            out.push_str(&word.to_uppercase());
        } else {
            out.push_str(word.trim_end_matches('.'));
        }
        out.push(' ');
    }
    out
}

fn main() {
    let mut animals: Vec<Box<dyn Animal>> = Vec::new();
    for i in 0..8 {
        if i % 3 == 0 {
            animals.push(Box::new(Dog { name: format!("dog {i}"), years: i }));
        } else {
            animals.push(Box::new(Cat { lives: 9 }));
        }
    }
    let mut sum = 0;
    for year in 0..3 {
        sum += hear(&animals);
        animals.iter_mut().for_each(|animal| animal.age(year));
    }
    let new = |value| {
        let (children, parent) = (RefCell::default(), RefCell::new(Weak::new()));
        Rc::new(Node { value: Cell::new(value), children, parent })
    };
    let root = new(1);
    for i in 0..5 {
        let child = new(i);
        *child.parent.borrow_mut() = Rc::downgrade(&root);
        root.children.borrow_mut().push(child);
    }
    sum += (0..3).map(|_| total(&root) as usize).sum::<usize>();
    let factor = sum as u32 & 3;
    let steps: Vec<Box<dyn Fn(u32) -> u32>> = vec![
        Box::new(move |x| x * factor + 1),
        Box::new(|x| x.rotate_left(3)),
        Box::new(|x| if x % 2 == 0 { x / 2 } else { x.wrapping_mul(3) }),
    ];
    for i in 0..6 {
        sum += compose(&steps, i) as usize & 0xff;
    }
    let mut text = String::new();
    for i in 0..4 {
        let _ = write!(text, "{i}: {:>5.2} {:#x}", i as f64 / 3.0, i * 4711);
    }
    sum += text.len() + shout("the quick brown fox jumps over two yellow owls.").len();
    std::process::exit(sum as i32 & 1);
}
