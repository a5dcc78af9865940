//! Order of the analyzer's rooms, and the size of circles inside them.

#[path = "../../tests/support/rooms.rs"]
#[allow(dead_code, reason = "the rules of names and doc lines are held for other crates")]
mod rules;

use rules::Sources;
use std::path::Path;

/// The rooms, from the lowest. A room imports only from those before it.
const ROOMS: [&str; 14] = [
    "limit",
    "bytes",
    "known",
    "types",
    "elf",
    "x86_64",
    "dwarf",
    "code",
    "dataflow",
    "index",
    "process",
    "attribution",
    "totals",
    "session",
];

fn analyzer() -> Sources {
    Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn rooms_import_from_those_below_only() {
    assert_eq!(analyzer().upward_imports(&ROOMS), [""; 0]);
}

#[test]
fn files_of_a_room_import_each_other_in_small_circles_only() {
    assert_eq!(analyzer().large_circles(&[]), [""; 0]);
}
