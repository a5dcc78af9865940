//! Rust: statics in modules, enumerations with data, slices, collections, smart pointers.

use super::{HEAP, Misses, by_type, names};
use crate::support::program::{Program, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{Rdi, Rsi};
use iced_x86::{Instruction, Register as Named};

fn builds() -> Vec<(Program, String)> {
    if !has_tool("rustc") {
        return Vec::new();
    }
    let build = |flags: &str| {
        let all = format!("--edition 2024 --crate-name program {flags}");
        (Program::compile("rustc", "peer_types.rs", &all), flags.to_owned())
    };
    vec![
        build("-O -g"),
        build("-O -g -Cdwarf-version=5"),
        build("-Copt-level=1 -g -Crelocation-model=static"),
    ]
}

/// The peer looks for variables only outside name spaces, and every Rust static is in one.
#[test]
fn statics_in_modules_are_found() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let at = program.truth("&STATS") + program.truth("misses");
        let access = program.static_access("misses", at);
        for mut session in [by_type(&program), Session::new(&program)] {
            let line = session.exact(access.ip(), &with(&[]));
            misses.check(object(&line), &["{structure:program::Stats}.{u32 misses}"], &build);
            misses.check(
                line.variable.as_deref().unwrap_or("none"),
                &["program::inner::STATS"],
                &build,
            );
        }
    }
    misses.none();
}

/// Enumerations with data have no type for the peer; behind a slice of which only the pointer is in
/// a register it reports the slice itself.
#[test]
fn the_data_of_an_enumeration_is_named_through_references_and_slices() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for function in ["radius", "total_radius"] {
            let named = names(&mut session, &program, function);
            let context = format!("{function} {build}");
            for (access, name) in &named {
                if !name.starts_with("{structure:program::Shape}") {
                    misses.0.push(format!("{context} {access}: {name}"));
                }
            }
            let radius =
                "{structure:program::Shape}.{structure:program::Shape::Circle Circle}.{f64 radius}";
            if !named.iter().any(|(_, name)| name == radius) {
                misses.0.push(format!("{context}: no radius"));
            }
        }
    }
    misses.none();
}

/// The elements of a `Vec<u64>` are bytes to the peer, which takes the type of the pointer in its
/// innermost part.
#[test]
fn elements_of_vectors_and_slices_have_their_type() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for (function, element) in [("total", "{u64 "), ("nth", "{u64 "), ("first_of", "{u32 ")] {
            let named = names(&mut session, &program, function);
            let is_vector = |name: &str| name.starts_with("{structure:alloc::vec::Vec<u64");
            let elements: Vec<_> = named
                .iter()
                .filter(|(_, name)| !is_vector(name) || name.ends_with("[]}"))
                .collect();
            let is_right = |name: &str| name.contains(element) && name.ends_with("[]}");
            for (access, name) in &elements {
                if !is_right(name) {
                    misses.0.push(format!("{function} {access}: {name} {build}"));
                }
            }
            if elements.is_empty() {
                misses.0.push(format!("{function}: no element, {build}"));
            }
        }
        let named = names(&mut session, &program, "depths");
        let depth = "{structure:program::Node}.{u32 depth}";
        let is_vector = |name: &str| name.starts_with("{structure:alloc::vec::Vec<");
        let rest: Vec<_> = named.into_iter().filter(|(_, name)| !is_vector(name)).collect();
        misses.check_all(&rest, &[depth], &format!("depths {build}"));
    }
    misses.none();
}

/// What a `Box` or an `Arc` owns is beyond the peer where it is a member of something else.
#[test]
fn what_smart_pointers_own_has_its_type() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        let depth = "{structure:program::Node}.{u32 depth}";
        let at = program.truth("depth");
        let walked = names(&mut session, &program, "walk");
        for (access, name) in &walked {
            let is_depth = access.memory_displacement64() == at;
            let is_right = if is_depth {
                name == depth
            } else {
                name.starts_with("{structure:program::Node}.{")
            };
            if !is_right {
                misses.0.push(format!("walk {access}: {name} {build}"));
            }
        }
        let access = program.access("boxed", at);
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, 0)]));
        misses.check(object(&line), &[depth], &format!("boxed {build}"));
        // Behind the two counts of an `ArcInner`.
        let shared = names(&mut session, &program, "shared");
        let Some((_, last)) = shared.last() else { panic!("{build}") };
        if !last.ends_with("{structure:program::Node data}.{u32 depth}") && last != depth {
            misses.0.push(format!("shared: {last} {build}"));
        }
    }
    misses.none();
}

/// What `ptr::write` and `ptr::read` copy through a pointer that was one to bytes is of their own
/// type, if one instruction copies all of it.
#[test]
fn what_is_copied_whole_is_what_the_inlined_function_copies() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for (function, size, whole) in [
            ("write_entries", program.truth("sizeof Entry"), "{structure:program::Entry}"),
            ("read_words", program.truth("sizeof Word"), "{structure:program::Word}.{u64 word}"),
            ("write_wide", program.truth("sizeof Wide"), ""),
        ] {
            let mut named = names(&mut session, &program, function);
            // Into the block: its pointer is the function's first argument.
            named.retain(|(access, _)| {
                access.memory_base() == Named::RDI && access.memory_index() != Named::None
            });
            let is_whole = |access: &Instruction| access.memory_size().size() as u64 == size;
            for (access, name) in &named {
                // Where a variable is said to point 16 bytes from the very sum of the registers, it tells the part.
                let part = match (function, access.memory_displacement64()) {
                    ("write_entries", 0x10) => "{structure:program::Entry}.{u64 key}",
                    ("write_entries", 0x18) => "{structure:program::Entry}.{u64 value}",
                    ("write_wide", 0x10) => "{structure:program::Wide}",
                    ("write_wide", 0x20) => "{structure:program::Wide}.{array[3]:u64 rest}",
                    _ => "unidentified",
                };
                let rights = if is_whole(access) { [whole; 2] } else { ["unidentified", part] };
                misses.check(name, &rights, &format!("{function} {access} {build}"));
            }
            // Without vectors, 16 bytes are copied in two halves.
            let n_whole = named.iter().filter(|(access, _)| is_whole(access)).count();
            let has_vectors = build.starts_with("-O ");
            let is_some = n_whole > 0 || !has_vectors || whole.is_empty();
            assert!(is_some && !named.is_empty(), "{function} {build}: {named:?}");
        }
    }
    misses.none();
}
