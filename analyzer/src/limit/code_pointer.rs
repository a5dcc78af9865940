//! Limits of pointers to code that lie in a load object's data.

/// Relocations of one load object that point at code: 24 bytes each.
pub const MAX_CODE_POINTERS: usize = 1 << 21;

/// Places where a pointer to one function lies: in the method tables of classes that inherit it.
pub const MAX_PLACES_OF_POINTER: usize = 1 << 10;

/// Data of a load object at fixed addresses that is searched for pointers to code, once: some ten milliseconds, and 32 MB
/// where it is nothing but such pointers.
pub const MAX_POINTER_DATA_BYTES: u64 = 16 << 20;

/// Pointers to functions, and others, in a load object's data of which it is asked what holds them.
pub const MAX_DATA_POINTERS: usize = 1 << 15;

/// Instructions of a load object that are followed to find out what pointers to nothing known lead to: a second, once.
pub const MAX_PASS_WORK: usize = 3 << 16;

/// Code of a load object that has about as many: where there is more, nothing is followed.
pub const MAX_PASSED_CODE_BYTES: u64 = 3 << 18;

/// Of these the number that one turn takes.
pub const MAX_PASS_WORK_A_TURN: usize = 1 << 13;

/// Pointers that code puts somewhere, or passes by a pointer, of one load object: about 120 bytes each.
pub const MAX_INCLUSIONS: usize = 1 << 18;

/// Types of one load object of which it is noted what code that is not followed may put into objects of them.
pub const MAX_EXPOSED_TYPES: usize = 1 << 13;

/// Scalars that lie at one place of an object: arms of unions.
pub const MAX_SCALARS_AT_ONE_PLACE: usize = 32;

/// Times that a pass is begun, if what it had found was given up for memory.
pub const MAX_PASSES_BEGUN: usize = 2;

/// Times that something is put into a place for pointers until all is known.
pub const MAX_INCLUSION_STEPS: usize = 1 << 22;

/// Functions that one place for pointers may lead to.
pub const MAX_POINTED_FUNCTIONS: usize = 1 << 9;

/// Values that are looked at for what one of them may be.
pub const MAX_INCLUDED_VALUES: usize = 256;

/// Sums that such a value is made of, one of the other.
pub const MAX_SUMS_OF_ONE_VALUE: usize = 8;

/// Objects that one place for pointers leads to and that are told apart.
pub const MAX_POINTED_OBJECTS: usize = 8;

/// Functions that one goes on to by jumps, which are looked through for one that leads back to it.
pub const MAX_LEFT_TO: usize = 16;

/// Jumps by pointers of one load object that are told apart, by where the pointer is: each is compared with a sample that
/// is at a function's first instruction.
pub const MAX_POINTER_JUMPS: usize = 256;

/// Jumps by pointers of one load object, those by tables among them, of which it is asked what they may lead to. C++ has
/// thousands, by tables of methods, where their places tell it.
pub const MAX_TYPED_JUMPS: usize = 512;

/// Functions from which written jumps lead to one jump by a pointer: 121 go on to CPython's `_Py_Dealloc` in the last place.
pub const MAX_JUMP_ENTRIES: usize = 512;

/// Jumps by one pointer that are asked what they touch.
pub const MAX_ALIKE_JUMPS: usize = 8;

/// Static pointers of one load object of which it is looked for what is put into them.
pub const MAX_STATIC_POINTERS: usize = 128;

/// Passes over a load object's code for that: from a pointer to the one that it is filled from, and on.
pub const MAX_STATIC_PASSES: usize = 4;

/// Code that is passed over so: 40 ms each time.
pub const MAX_FOLLOWED_CODE_BYTES: u64 = 8 << 20;

/// Parts of types of functions that are compared for one sample at a function's entry: some 0.3 ms.
pub const MAX_TYPE_STEPS: usize = 1 << 16;
