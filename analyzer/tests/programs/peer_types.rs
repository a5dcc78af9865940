//! Rust types that are reached through references, slices, collections and smart pointers.

use std::sync::Arc;

#[repr(C)]
pub struct Node {
    pub key: u64,
    pub next: Option<Box<Node>>,
    pub depth: u32,
}

#[repr(C)]
pub struct Stats {
    pub hits: u64,
    pub misses: u32,
}

pub enum Shape {
    Circle { radius: f64 },
    Name(u32, [u8; 20]),
}

pub mod inner {
    pub static mut STATS: super::Stats = super::Stats { hits: 1, misses: 2 };
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn misses() -> u32 {
    unsafe { inner::STATS.misses }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn radius(shape: &Shape) -> f64 {
    match shape {
        Shape::Circle { radius } => *radius,
        Shape::Name(..) => 0.0,
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn total_radius(shapes: &[Shape]) -> f64 {
    let mut sum = 0.0;
    for shape in shapes {
        if let Shape::Circle { radius } = shape {
            sum += radius;
        }
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn total(numbers: &Vec<u64>) -> u64 {
    let mut sum = 0;
    for number in numbers {
        sum = (sum ^ number) * 3;
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn nth(numbers: &Vec<u64>, at: usize) -> u64 {
    numbers[at]
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn first_of(numbers: &[u32]) -> u32 {
    numbers[0]
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn walk(list: &Node) -> u32 {
    let mut depth = list.depth;
    let mut node = list;
    while let Some(next) = &node.next {
        depth = depth * 3 ^ next.depth;
        node = next;
    }
    depth
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn shared(node: &Arc<Node>) -> u32 {
    node.depth
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn boxed(node: Box<Node>) -> u32 {
    let depth = node.depth;
    std::mem::forget(node);
    depth
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn depths(nodes: &Vec<Node>) -> u32 {
    let mut depth = 0;
    for node in nodes {
        depth = depth * 3 ^ node.depth;
    }
    depth
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    pub key: u64,
    pub value: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Wide {
    pub key: u64,
    pub rest: [u64; 3],
}

/// Keeps values behind a header of a block that is bytes to whoever has it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe fn write_entries(block: *mut u8, places: &[usize], entry: &Entry) {
    for place in places {
        unsafe { std::ptr::write(block.add(16 + place * 3).cast::<Entry>(), *entry) }
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe fn write_wide(block: *mut u8, places: &[usize], wide: &Wide) {
    for place in places {
        unsafe { std::ptr::write(block.add(16 + place * 3).cast::<Wide>(), *wide) }
    }
}

#[repr(C)]
pub struct Word {
    pub word: u64,
}

#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe fn read_words(block: *const u8, places: &[usize], words: &mut [Word]) {
    for (place, word) in places.iter().zip(words) {
        *word = unsafe { std::ptr::read(block.add(16 + place * 3).cast::<Word>()) };
    }
}

fn main() {
    let mut block = [0u64; 16];
    let bytes = block.as_mut_ptr().cast::<u8>();
    let mut words = [Word { word: 0 }, Word { word: 0 }];
    unsafe {
        write_entries(bytes, &[8], &Entry { key: 1, value: 2 });
        write_wide(bytes, &[16], &Wide { key: 1, rest: [2; 3] });
        read_words(bytes, &[8, 16], &mut words);
    }
    println!("sizeof Entry {}", size_of::<Entry>());
    println!("sizeof Wide {}", size_of::<Wide>());
    println!("sizeof Word {}", size_of::<Word>());
    println!("depth {}", std::mem::offset_of!(Node, depth));
    println!("key {}", std::mem::offset_of!(Node, key));
    println!("misses {}", std::mem::offset_of!(Stats, misses));
    println!("&STATS {}", &raw const inner::STATS as usize);
    let node = |key, next| Node { key, next, depth: key as u32 };
    let list = node(1, Some(Box::new(node(2, None))));
    let shapes = [Shape::Circle { radius: 1.0 }, Shape::Name(3, [0; 20])];
    let numbers = vec![1, 2, 3];
    let sum = misses() as f64
        + radius(&shapes[0])
        + total_radius(&shapes)
        + (total(&numbers) + nth(&numbers, 1)) as f64
        + (first_of(&[3, 4]) + walk(&list) + shared(&Arc::new(node(3, None)))) as f64
        + (boxed(Box::new(node(4, None))) + depths(&vec![node(5, None)])) as f64;
    eprintln!("{sum} {}", words[1].word);
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        println!("map {line}");
    }
    unsafe extern "C" {
        static __ehdr_start: u8;
    }
    println!("&__ehdr_start {}", &raw const __ehdr_start as usize);
}
