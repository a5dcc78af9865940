// Types of Rust: reordered members, enums with and without a niche, tuples, unions.
#![allow(dead_code)]
use std::collections::HashMap;

#[derive(Debug)]
struct Mixed {
    tag: u8,
    count: u64,
    half: u16,
    name: String,
}

#[derive(Debug)]
enum Shape {
    Dot,
    Circle { radius: f64 },
    Square(u32, u8),
    Named(Box<Mixed>),
}

#[repr(C)]
union Either {
    whole: u64,
    halves: [u32; 2],
}

#[repr(C, packed)]
struct Tight {
    small: u8,
    large: u64,
}

struct Unit;
struct Generic<T>(T, u8);

fn main() {
    let mixed = Mixed { tag: 1, count: 2, half: 3, name: "four".into() };
    let shapes = [
        Shape::Dot,
        Shape::Circle { radius: 1.0 },
        Shape::Square(2, 3),
        Shape::Named(Box::new(mixed)),
    ];
    let either = Either { whole: 7 };
    let tight = Tight { small: 1, large: 2 };
    let generic = Generic(5_u32, 6);
    let _unit = Unit;
    let mut map: HashMap<u32, Option<Box<u8>>> = HashMap::new();
    map.insert(1, None);
    let halves = unsafe { either.halves };
    let large = tight.large;
    println!("{shapes:?} {halves:?} {large} {} {} {} {map:?}", tight.small, generic.0, generic.1);
}
