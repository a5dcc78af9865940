//! Limits of lists of layouts.

/// Size of a structure that may be the header of what lies after it: lengths, counts of references, a flag.
pub const MAX_LEADING_HEADER_BYTES: u64 = 64;

/// Such structures of one unit.
pub const MAX_HEADERS: usize = 128;

/// Members of one type in a list of layouts, with nested ones: 130 bytes each. The kernel's `task_struct` has some
/// 700, generated register maps some thousand.
pub const MAX_LAYOUT_ROWS: usize = 1 << 14;

/// Layouts that one search gives: 16 bytes are kept of each. Chromium has about 400,000 different ones.
pub const MAX_FOUND_LAYOUTS: usize = 1 << 20;

/// Layouts of types that are kept while units are searched: some 300 bytes each. What the next unit needs is made anew.
pub const MAX_KEPT_LAYOUTS: usize = 1 << 17;

/// Names in which the one that was meant is looked for, and their bytes altogether. Programs of C have some thousand.
pub const MAX_NEAR_NAMES: usize = 1 << 17;
/// See [`MAX_NEAR_NAMES`].
pub const MAX_NEAR_BYTES: usize = 8 << 20;

/// Names that are proposed.
pub const MAX_PROPOSED: usize = 5;

/// Virtual bases of one class that are told.
pub const MAX_VIRTUAL_BASES: usize = 64;

/// Classes of one load object whose methods are noted: about 200 bytes each. Chromium has some 100,000.
pub const MAX_CLASSES: usize = 1 << 16;

/// Bytes of the name of such a class, with its name spaces.
pub const MAX_CLASS_NAME_BYTES: usize = 256;

/// Bytes of units of one load object that are searched for classes: a quarter of a second. The classes that are asked for
/// first are those of the hottest code: RocksDB, with 214 MB in its units, has all that it asks for found within it.
pub const MAX_CLASS_SEARCH_BYTES: u64 = 128 << 20;

/// Classes of one name in different name spaces of a unit.
pub const MAX_ALIKE_CLASSES: usize = 64;

/// Methods of one class that are noted.
pub const MAX_METHODS: usize = 8;

/// Classes of one load object that a unit only declares and whose definitions were looked for.
pub const MAX_DEFINITIONS: usize = 1 << 12;
