//! Allocations of Rust whose type is told to the truth runtime.
//!
//! The type of an allocation is that of the scope it is made in. Truth knows no time, so a block that is given back
//! is kept for the next request of the same kind and size, or of no kind and that size.
#![allow(dead_code)]
use std::alloc::{GlobalAlloc, Layout, System};
use std::any::type_name;
use std::cell::Cell;
use std::ffi::{c_char, CString};
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::Mutex;

extern "C" {
    fn tr_init(count: i32, arguments: *const *const c_char);
    fn tr_more() -> i32;
    fn tr_rand() -> u64;
    fn tr_thread();
    fn tr_region(name: *const c_char, start: *const u8, bytes: usize, element_bytes: usize);
    fn tr_global(name: *const c_char, start: *const u8, bytes: usize, type_name: *const c_char);
}

pub fn init() {
    let arguments: Vec<CString> = std::env::args().map(|a| CString::new(a).unwrap()).collect();
    let pointers: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    unsafe { tr_init(pointers.len() as i32, pointers.as_ptr()) }
}

pub fn more() -> bool {
    unsafe { tr_more() != 0 }
}

pub fn random() -> u64 {
    unsafe { tr_rand() }
}

/// Tells of the calling thread.
pub fn thread() {
    unsafe { tr_thread() }
}

/// Tells of a static.
pub fn global<T>(name: &str, value: *const T, type_name: &str) {
    let (name, type_name) = (CString::new(name).unwrap(), CString::new(type_name).unwrap());
    unsafe { tr_global(name.as_ptr(), value.cast(), size_of::<T>(), type_name.as_ptr()) }
}

enum Shape {
    /// Values one after another.
    Elements,
    /// hashbrown: the values, padded to 16, then a control byte for each and 16 more.
    Table,
    /// Nodes of a B-tree; the leaves are the smaller ones, and the first.
    Tree { inner_name: CString, leaf_bytes: Cell<usize> },
}

struct Kind {
    name: CString,
    element_bytes: usize,
    shape: Shape,
    given_back: Cell<*mut Header>,
}

/// Stands right before each block.
#[repr(C)]
struct Header {
    kind: *const Kind,
    next: *mut Header,
    bytes: usize,
    start: *mut u8,
}

struct Kinds(Vec<&'static Kind>);
unsafe impl Send for Kinds {}
static KINDS: Mutex<Kinds> = Mutex::new(Kinds(Vec::new()));

/// Short blocks of no known type that were given back, by their size; long ones are left alone.
struct Untold([*mut Header; 32]);
unsafe impl Send for Untold {}
static UNTOLD: Mutex<Untold> = Mutex::new(Untold([null_mut(); 32]));
const UNTOLD_STEP_BYTES: usize = 16;

thread_local! {
    static CURRENT: Cell<*const Kind> = const { Cell::new(std::ptr::null()) };
}

impl Kind {
    unsafe fn tell(&self, block: *const u8, bytes: usize) {
        match &self.shape {
            Shape::Elements => tr_region(self.name.as_ptr(), block, bytes, self.element_bytes),
            Shape::Table => {
                let values = |buckets: usize| (buckets * self.element_bytes + 15) & !15;
                let mut buckets = 4;
                while values(buckets) + buckets + 16 < bytes {
                    buckets *= 2;
                }
                let control = block.add(values(buckets));
                let used = buckets * self.element_bytes;
                tr_region(self.name.as_ptr(), control.sub(used), used, self.element_bytes);
                tr_region(c"u8".as_ptr(), control, buckets + 16, 1);
            }
            Shape::Tree { inner_name, leaf_bytes } => {
                if leaf_bytes.get() == 0 {
                    leaf_bytes.set(bytes);
                }
                let leaf = bytes == leaf_bytes.get();
                tr_region(if leaf { &self.name } else { inner_name }.as_ptr(), block, bytes, bytes);
            }
        }
    }

    fn fits(&self, bytes: usize) -> bool {
        match self.shape {
            Shape::Elements => bytes % self.element_bytes == 0,
            Shape::Table | Shape::Tree { .. } => true,
        }
    }

    unsafe fn take_again(&self, bytes: usize) -> Option<*mut u8> {
        let mut link: *const Cell<*mut Header> = &self.given_back;
        while let Some(header) = (*link).get().as_mut() {
            if header.bytes == bytes {
                (*link).set(header.next);
                return Some((header as *mut Header).add(1).cast());
            }
            link = (&raw const header.next).cast();
        }
        None
    }
}

impl Untold {
    unsafe fn take_again(&mut self, layout: Layout) -> Option<*mut u8> {
        let place = layout.size().div_ceil(UNTOLD_STEP_BYTES);
        let first = self.0.get_mut(place).filter(|_| layout.align() <= UNTOLD_STEP_BYTES)?;
        let header = first.as_mut()?;
        *first = header.next;
        Some((header as *mut Header).add(1).cast())
    }

    unsafe fn give_back(&mut self, header: *mut Header) {
        if let Some(first) = self.0.get_mut((*header).bytes / UNTOLD_STEP_BYTES) {
            (*header).next = *first;
            *first = header;
        }
    }
}

pub struct Told;

unsafe impl GlobalAlloc for Told {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size();
        let kind = CURRENT.try_with(Cell::get).unwrap_or(std::ptr::null());
        let kind = kind.as_ref().filter(|kind| kind.fits(bytes));
        let mut untold = UNTOLD.lock().unwrap();
        let again = match kind {
            Some(kind) => kind.take_again(bytes),
            None => untold.take_again(layout),
        };
        if let Some(block) = again {
            return block;
        }
        let bytes = if kind.is_some() { bytes } else { bytes.next_multiple_of(UNTOLD_STEP_BYTES) };
        let before = size_of::<Header>().max(layout.align());
        let whole = Layout::from_size_align(before + bytes, layout.align().max(16)).unwrap();
        let start = System.alloc(whole);
        let block = start.add(before);
        let pointer = kind.map_or(std::ptr::null(), |kind| kind as *const Kind);
        let header = Header { kind: pointer, next: null_mut(), bytes, start };
        block.cast::<Header>().sub(1).write(header);
        if let Some(kind) = kind {
            kind.tell(block, bytes);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        let header = block.cast::<Header>().sub(1);
        let mut untold = UNTOLD.lock().unwrap();
        match (*header).kind.as_ref() {
            Some(kind) => (*header).next = kind.given_back.replace(header),
            None => untold.give_back(header),
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let kind = (*block.cast::<Header>().sub(1)).kind;
        let before = CURRENT.replace(kind);
        let larger = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
        CURRENT.set(before);
        block.copy_to_nonoverlapping(larger, layout.size().min(bytes));
        self.dealloc(block, layout);
        larger
    }
}

#[global_allocator]
static ALLOCATOR: Told = Told;

fn scope<R>(name: String, element_bytes: usize, shape: Shape, make: impl FnOnce() -> R) -> R {
    let outer = CURRENT.replace(std::ptr::null());
    let mut kinds = KINDS.lock().unwrap();
    let known = kinds.0.iter().find(|kind| kind.name.as_bytes() == name.as_bytes()).copied();
    let kind = known.unwrap_or_else(|| {
        let given_back = Cell::new(null_mut());
        let name = CString::new(name).unwrap();
        let kind: &'static Kind =
            Box::leak(Box::new(Kind { name, element_bytes, shape, given_back }));
        kinds.0.push(kind);
        kind
    });
    drop(kinds);
    CURRENT.set(kind);
    let made = make();
    CURRENT.set(outer);
    made
}

/// The name of T as debug information has it: without lifetimes.
fn name_of<T>() -> String {
    type_name::<T>().replace("<'_>", "").replace("'_, ", "")
}

/// What `make` allocates are values of T: boxes, vectors, deques, slices.
pub fn of<T, R>(make: impl FnOnce() -> R) -> R {
    named(name_of::<T>(), size_of::<T>(), make)
}

/// The same for a type that Rust cannot name.
pub fn named<R>(name: String, element_bytes: usize, make: impl FnOnce() -> R) -> R {
    scope(name, element_bytes, Shape::Elements, make)
}

/// What `make` allocates are cells of `Rc<T>`.
pub fn rc<T, R>(make: impl FnOnce() -> R) -> R {
    named(format!("RcInner<{}>", type_name::<T>()), size_of::<(usize, usize, T)>(), make)
}

/// What `make` allocates are cells of `Arc<T>`.
pub fn arc<T, R>(make: impl FnOnce() -> R) -> R {
    named(format!("ArcInner<{}>", type_name::<T>()), size_of::<(usize, usize, T)>(), make)
}

/// What `make` allocates are tables of a `HashMap<K, V>`.
pub fn table<K, V, R>(make: impl FnOnce() -> R) -> R {
    scope(type_name::<(K, V)>().to_owned(), size_of::<(K, V)>(), Shape::Table, make)
}

/// What `make` allocates are nodes of a `BTreeMap<K, V>`.
pub fn tree<K, V, R>(make: impl FnOnce() -> R) -> R {
    nodes(&format!("<{}, {}>", type_name::<K>(), type_name::<V>()), make)
}

/// What `make` allocates are nodes of a `BTreeSet<K>`.
pub fn tree_set<K, R>(make: impl FnOnce() -> R) -> R {
    let nothing = "alloc::collections::btree::set_val::SetValZST";
    nodes(&format!("<{}, {nothing}>", type_name::<K>()), make)
}

fn nodes<R>(parameters: &str, make: impl FnOnce() -> R) -> R {
    let inner_name = CString::new(format!("InternalNode{parameters}")).unwrap();
    let shape = Shape::Tree { inner_name, leaf_bytes: Cell::new(0) };
    scope(format!("LeafNode{parameters}"), 1, shape, make)
}
