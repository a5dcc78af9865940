//! Rust types: structures in modules, enumerations, slices, a static.

pub mod shop {
    #[repr(C)]
    pub struct Order {
        pub id: u64,
        pub at: Position,
        pub kind: u32,
    }

    #[repr(C)]
    pub struct Position {
        pub x: f64,
        pub y: f64,
    }
}

pub static mut COUNT: u64 = 3;

#[unsafe(no_mangle)]
#[inline(never)]
pub fn load_kind(order: &shop::Order) -> u32 {
    order.kind
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn load_y(order: &mut shop::Order) -> f64 {
    order.at.y
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn load_count() -> u64 {
    unsafe { COUNT }
}

fn main() {
    let mut order =
        shop::Order { id: 1, at: shop::Position { x: 1.0, y: 2.0 }, kind: 7 };
    println!("kind {}", std::mem::offset_of!(shop::Order, kind));
    println!("y {}", std::mem::offset_of!(shop::Order, at) + 8);
    println!("&COUNT {}", &raw const COUNT as usize);
    let sum = load_kind(&order) as f64 + load_y(&mut order) + load_count() as f64;
    eprintln!("{sum}");
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        println!("map {line}");
    }
    unsafe extern "C" {
        static __ehdr_start: u8;
    }
    println!("&__ehdr_start {}", &raw const __ehdr_start as usize);
}
