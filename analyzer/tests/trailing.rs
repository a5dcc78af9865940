//! Elements after a header, tables in an array that a loop goes over, and members of a class behind its base.

use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// What the type path says of the accesses in each of these functions that are meant, for each build.
fn of_each(
    functions: &[impl AsRef<str>],
    is_meant: impl Fn(&Instruction) -> bool,
    mut check: impl FnMut(&[Option<String>], &str),
) {
    for compiler in ["g++", "clang++"].into_iter().filter(|it| has_tool(it)) {
        for flags in ["-O1 -g", "-O2 -g", "-O2 -g -gdwarf-4 -fno-tree-vectorize"] {
            let program = Program::compile(compiler, "trailing.cpp", flags);
            let mut session = Session::of_type_path(&program);
            for function in functions.iter().map(AsRef::as_ref) {
                let code = program.function(function);
                let meant = code.iter().filter(|it| has_memory_operand(it) && is_meant(it));
                let names = meant.map(|access| {
                    let line = session.exact(access.ip(), &with(&[]));
                    line.object.as_deref().map(|_| object(&line).to_owned())
                });
                let names: Vec<Option<String>> = names.collect();
                assert!(!names.is_empty(), "{function} {compiler} {flags}");
                check(&names, &format!("{names:?} {function} {compiler} {flags}"));
            }
        }
    }
}

/// Tells of each access of two bytes in these functions that its name is right: all others are to numbers and pointers.
fn of_two_bytes(functions: &[impl AsRef<str>], is_right: impl Fn(Option<&str>) -> bool) {
    of_each(
        functions,
        |access| access.memory_size().size() == 2,
        |names, context| {
            assert!(names.iter().all(|name| is_right(name.as_deref())), "{context}");
        },
    );
}

#[test]
fn elements_after_a_header_are_of_the_type_that_it_is_made_for() {
    let functions = ["of_vector", "of_element", "of_text", "of_texts"];
    of_two_bytes(&functions, |name| name.is_some_and(|name| name.contains("unsigned")));
}

#[test]
fn a_loop_over_the_array_that_ends_an_object_stays_in_it() {
    let sizes = ["8In8", "8In16", "8In24", "16In16", "16In48", "12In48", "16In24", "4In4"];
    let loops = ["up", "down", "both", "to", "at"];
    let functions = ["Open", "One"].map(|length| {
        sizes.map(|sizes| loops.map(|each| format!("{length}{sizes}_{each}"))).concat()
    });
    let is_short = |name: &str| name.ends_with("{short_int v}") || name.ends_with("{short v}");
    of_two_bytes(&functions.concat(), |name| name.is_some_and(is_short));
}

#[test]
fn a_loop_over_objects_that_end_with_an_array_of_one_stays_in_none() {
    let is_in = |name: Option<&str>, part: &str| name.is_some_and(|name| name.contains(part));
    of_two_bytes(&["of_keys"], |name| is_in(name, "{structure:Whole}") && is_in(name, " key}"));
    of_two_bytes(&["of_tails"], |name| is_in(name, "{structure:Whole}") && is_in(name, " tail}"));
}

#[test]
fn of_two_types_neither_is_after_the_header() {
    of_two_bytes(&["of_table"], |name| name.is_none_or(|name| !name.contains("char16")));
}

#[test]
fn a_loop_over_tables_ends_behind_the_last_one() {
    of_two_bytes(&["of_both"], |name| name.is_some_and(|name| name.contains("short")));
}

#[test]
fn behind_a_base_is_no_further_object_of_its_type() {
    of_two_bytes(&["behind_base"], |name| name.is_none_or(|name| name.contains("short")));
}

#[test]
fn a_vector_that_is_counted_in_is_no_header() {
    of_two_bytes(&["of_vec"], |name| name.is_none_or(|name| name.contains("Vec3")));
}

#[test]
fn what_a_pointer_is_made_for_is_not_behind_itself() {
    // Neither owners behind a buffer nor pointers to it among counters that lie a line apart.
    let is_indexed = |access: &Instruction| access.memory_index() != Register::None;
    of_each(&["of_buffer"], is_indexed, |names, context| {
        assert!(!names.iter().flatten().any(|name| name.contains("owners")), "{context}");
    });
    of_each(
        &["of_cache"],
        |_| true,
        |names, context| {
            let is_own = |name: &String| name.contains("Counters") || name.contains("Cache");
            assert!(names.iter().flatten().all(is_own), "{context}");
        },
    );
}

#[test]
fn one_of_three_places_is_no_end_of_a_loop() {
    let is_store = |access: &Instruction| {
        access.op0_kind() == OpKind::Memory && access.mnemonic() == Mnemonic::Mov
    };
    of_each(&["of_node"], is_store, |names, context| {
        // One of the stores may be to the parent.
        let is_child = |name: &Option<String>| name.as_ref().is_some_and(|it| it.contains("child"));
        assert!(!names.iter().all(is_child), "{context}");
    });
}

#[test]
fn what_is_stored_behind_a_base_is_no_table_of_functions() {
    of_each(
        &["of_words"],
        |_| true,
        |names, context| {
            assert!(!names.iter().flatten().any(|name| name.contains("vtbl")), "{context}");
        },
    );
}
