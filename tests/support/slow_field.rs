//! Loops in which exactly one field misses the cache, as `tests/programs/slow_field.c` has them.

/// How the slow field is accessed: the program's word, and its object as gcc names its type.
pub(crate) const KINDS: [(&str, &str); 3] = [
    ("dependent", "{structure:cell}.{pointer+structure:cell next}"),
    ("independent", "{structure:row}.{long_int key}"),
    ("store", "{structure:slot}.{long_int mark}"),
];

/// Where the slow access stands in the loop's body.
pub(crate) const POSITIONS: [&str; 3] = ["first", "middle", "last"];
