//! Limits of listings: code of a function as text, with its lines and operands.

/// Instructions of one listing: 300 bytes each. The largest function of SQLite has 20,000, of CPython 40,000.
pub const MAX_LISTED_INSTRUCTIONS: usize = 1 << 16;

/// Bytes of code that one listing reads.
pub const MAX_LISTED_BYTES: u64 = 1 << 20;

/// Memory operands of one listing of which the type is looked for: some microseconds each.
pub const MAX_LISTED_OPERANDS: usize = 1 << 13;

/// Turns of looking through debug information that one operand takes at most.
pub const MAX_OPERAND_TURNS: usize = 64;

/// Calls in line in one function that a listing tells apart.
pub const MAX_LISTED_CALLS: usize = 1 << 14;

/// Symbols that are looked at for one name.
pub const MAX_SEARCHED_SYMBOLS: usize = 1 << 18;

/// Functions of one name that are told.
pub const MAX_NAMESAKES: usize = 32;

/// Names that are told where there is none like the one that was asked for.
pub const MAX_SIMILAR_NAMES: usize = 3;

/// Characters of a name that is compared with others by how it is spelled.
pub const MAX_COMPARED_CHARS: usize = 128;

/// Data objects of one instruction that are told apart; samples of others are counted together.
pub const MAX_OBJECTS_OF_INSTRUCTION: usize = 64;

/// Places where the samples of one instruction were reported that are told apart.
pub const MAX_REPORTED_PLACES: usize = 16;

/// Addresses in one function of one name that are looked at to tell whether they are several functions.
pub const MAX_ADDRESSES_OF_FUNCTION: usize = 1 << 12;
