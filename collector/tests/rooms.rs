//! Order of the collector's rooms, and the rules of its sources.

#[path = "../../tests/support/rooms.rs"]
mod rules;

use rules::Sources;
use std::path::Path;

/// The rooms, from the lowest.
const ROOMS: [&str; 16] = [
    "error",
    "sys",
    "access",
    "quota",
    "record",
    "channel",
    "system",
    "event",
    "measurement",
    "perf_data",
    "target",
    "attach",
    "cost",
    "lookup",
    "live",
    "capability",
];

fn collector() -> Sources {
    Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn rooms_import_from_those_below_only() {
    assert_eq!(collector().upward_imports(&ROOMS), [""; 0]);
}

#[test]
fn files_of_a_room_import_each_other_in_small_circles_only() {
    assert_eq!(collector().large_circles(), [""; 0]);
}

#[test]
fn each_name_is_of_one_type() {
    assert_eq!(collector().shared_type_names(), [""; 0]);
}

#[test]
fn doc_comments_of_the_collector_open_with_a_phrase() {
    assert_eq!(collector().clauses_for_titles(), [""; 0]);
}

/// Formats of `/proc`, `/sys` and tracefs are known in one room, which the binary asks too.
#[test]
fn only_system_reads_what_the_kernel_tells_in_files() {
    const ROOTS: [&str; 2] = ["/proc", "/sys"];
    assert_eq!(collector().paths_outside("system", &ROOTS), [""; 0]);
    let binary = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"));
    // It writes there, which is its job, and reads back what it writes over.
    let written = ["daemon/systemd/oom.rs:7: /proc/self/oom_score_adj"];
    assert_eq!(binary.paths_outside("none", &ROOTS), written);
}

/// A room may import from those before it in the order, also by way of re-exports.
#[test]
fn imports_upwards_are_found_in_all_spellings() {
    let sources = Sources::of(&[
        ("lib.rs", "pub mod low; pub mod high; pub use high::Top;"),
        ("low/mod.rs", "mod a; mod b; mod c; mod d; pub mod door; #[cfg(test)] mod fixture;"),
        ("low/a.rs", "use std::{fmt, crate_like::x};\nuse crate::{low::b, high::{self, deep::D}};"),
        ("low/b.rs", "fn f() { crate::high::g(); }"),
        ("low/c.rs", "use super::super::high as other; fn f() { other::deep::g(); }"),
        ("low/d.rs", "use crate::Top; mod inner { use super::super::door::Opened; }"),
        // None of these imports anything.
        (
            "low/door.rs",
            r#"
            // crate::high::no()
            /* use crate::high::No; /* crate::high */ */
            //! [`crate::high`]
            const A: &str = "crate::high::no"; const B: char = '"'; const C: &[u8] = br"crate::high\";
            fn f<'a>(x: &'a str) -> pub(in crate::high) u8 {}
            #[cfg(test)]
            mod tests { use crate::high::No; }
            #[cfg(test)]
            use crate::high::No;
            pub use super::opened::Opened;
            "#,
        ),
        ("low/fixture.rs", "use crate::high::No;"),
        ("low/opened.rs", "pub struct Opened;"),
        ("high/mod.rs", "pub mod deep; pub use deep::Top; use crate::low::a;"),
        ("high/deep.rs", "pub struct Top;"),
    ]);
    assert_eq!(
        sources.upward_imports(&["low", "high"]),
        [
            "low/a.rs:2 imports from high, which stands above",
            "low/a.rs:2 imports from high::deep, which stands above",
            "low/b.rs:1 imports from high, which stands above",
            "low/c.rs:1 imports from high, which stands above",
            "low/c.rs:1 imports from high::deep, which stands above",
            "low/d.rs:1 imports from high::deep, which stands above",
        ]
    );
    assert_eq!(
        sources.upward_imports(&["high", "none"])[..3],
        ["there is no room none", "low/mod.rs is in no room", "low/a.rs is in no room"]
    );
    // A room inside another has its own place in the order.
    assert_eq!(sources.upward_imports(&["high::deep", "low", "high"]).len(), 3);
}

/// A parent that only hands on what a child has is in no circle with it; one that uses it is.
#[test]
fn circles_of_files_are_found_and_counted() {
    let ring = |n: usize| {
        let file = |at: usize| (format!("r/f{at}.rs"), format!("use super::f{};", (at + 1) % n));
        let files: Vec<_> = (0..n).map(file).collect();
        let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        Sources::of(&files)
    };
    assert_eq!(ring(4).circles().len(), 1);
    assert!(ring(4).large_circles().is_empty());
    assert_eq!(ring(5).large_circles().len(), 1);

    let child = ("a/b.rs", "use super::{B, C}; pub struct A;");
    let hands_on = Sources::of(&[("a/mod.rs", "mod b; pub use b::A; pub struct B;"), child]);
    assert!(hands_on.circles().is_empty());
    let uses = Sources::of(&[("a/mod.rs", "mod b; pub use b::A; pub struct B(A);"), child]);
    assert_eq!(uses.circles().len(), 1);
}

/// Types of functions, tests and traits are nobody else's business.
#[test]
fn names_of_types_are_compared_across_files() {
    let sources = Sources::of(&[
        (
            "a.rs",
            "struct A; enum B {} pub(crate) trait C { type A; fn f() -> [u8; 4] { struct B; } }
            impl C for A { type A = B; } mod inner { pub union D { x: u8 } }
            #[cfg(test)] mod tests { struct E; } fn g(x: impl C) -> [u8; 2] { type E = u8; }",
        ),
        ("b.rs", "type D = u8; struct E; struct C<T>(T);"),
    ]);
    assert_eq!(sources.shared_type_names(), ["C: a.rs:1, b.rs:1", "D: a.rs:2, b.rs:1"]);
}

/// Words that only begin like a directory are none of it; nor are comments, tests and the room itself.
#[test]
fn paths_are_found_in_all_literals() {
    let sources = Sources::of(&[
        (
            "a.rs",
            r##"//! "/proc/1"
            const A: &str = "/proc"; fn f() { g(b"/proc/self/maps"); h(r#"proc/self"#, "process", '⇟'); }
            mod inner { const B: &str = "/sys/x"; }
            #[cfg(test)]
            mod tests { const C: &str = "/proc/1"; }"##,
        ),
        ("system/mod.rs", "const A: &str = \"/proc\"; mod deep;"),
        ("system/deep.rs", "const A: &str = \"/proc\";"),
    ]);
    assert_eq!(
        sources.paths_outside("system", &["/proc", "/sys"]),
        ["a.rs:2: /proc", "a.rs:2: /proc/self/maps", "a.rs:2: proc/self", "a.rs:3: /sys/x"]
    );
}

#[test]
fn doc_comments_open_with_a_phrase() {
    let sources = Sources::of(&[(
        "a.rs",
        "//! What is here.\n//! Which goes on.\n/// Whatever.\nstruct A {\n    /// `How` far.\n    x: u8,\n}",
    )]);
    assert_eq!(sources.clauses_for_titles(), ["a.rs:1: What is here.", "a.rs:5: `How` far."]);
}
