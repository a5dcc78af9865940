//! Pointers to nothing known that go through memory, arguments and pointers to functions, by the type path alone.

use crate::support::program::{Program, builds, has_memory_operand};
use crate::support::session::{Session, with};

/// What is said of each access of a function that is not to the frame: the type and the member.
fn of_each(function: &str, mut check: impl FnMut(&[(String, String)], &str)) {
    let flags = [
        "-O2 -g -fPIE -pie",
        "-O1 -g -gdwarf-4 -fno-pie -no-pie",
        "-O2 -g -fPIE -pie -Wl,-z,pack-relative-relocs",
        "-O0 -g -fPIE -pie",
    ];
    for (compiler, flags) in builds(flags) {
        let program = Program::compile(compiler, "carried.c", flags);
        let mut session = Session::of_type_path(&program);
        let code = program.function(function);
        let frame = [iced_x86::Register::RSP, iced_x86::Register::RBP];
        let meant =
            code.iter().filter(|it| has_memory_operand(it) && !frame.contains(&it.memory_base()));
        let names = meant.map(|access| {
            let line = session.exact(access.ip(), &with(&[]));
            let said = |part: Option<_>| part.map(|it: std::sync::Arc<str>| it.to_string());
            (
                said(line.type_name.clone()).unwrap_or_default(),
                said(line.member.clone()).unwrap_or_default(),
            )
        });
        let names: Vec<(String, String)> = names.collect();
        assert!(!names.is_empty(), "{function} {compiler} {flags}");
        check(&names, &format!("{names:?} {function} {compiler} {flags}"));
    }
}

/// Tells of all accesses in a function that they are to this member.
fn all_are(function: &str, type_name: &str, member: &str) {
    of_each(function, |names, context| {
        let is_it = |name: &(String, String)| name.0 == type_name && name.1 == member;
        assert!(names.iter().all(is_it), "{context}");
    });
}

fn none_is(function: &str, type_names: &[&str]) {
    of_each(function, |names, context| {
        assert!(names.iter().all(|(name, _)| !type_names.contains(&name.as_str())), "{context}");
    });
}

#[test]
fn what_a_container_compares_is_what_is_put_into_it() {
    all_are("event_before", "event", "when");
    all_are("ticket_before", "ticket", "weight");
}

#[test]
fn an_operation_of_a_table_gets_its_keys() {
    all_are("account_hash", "account", "balance");
    all_are("account_same", "account", "balance");
}

#[test]
fn a_key_and_a_value_are_what_was_added() {
    of_each("table_value", |names, context| {
        let has = |type_name: &str, member: &str| {
            names.iter().any(|name| name.0 == type_name && name.1 == member)
        };
        assert!(has("ticket", "of") && has("account", "balance"), "{context}");
    });
}

#[test]
fn a_function_gets_what_lies_beside_its_address() {
    all_are("state_handle", "state", "handled");
    all_are("other_handle", "other", "rank");
    all_are("work_run", "work", "n_done");
}

#[test]
fn what_may_be_two_things_or_anything_has_no_name() {
    none_is("of_either", &["one", "two"]);
    none_is("of_anybody", &["one", "two"]);
}

#[test]
fn neither_bytes_nor_what_an_allocator_hands_out_is_what_lies_before_it() {
    of_each("of_bytes", |names, context| {
        assert!(names.iter().all(|(name, _)| name != "one"), "{context}");
    });
    of_each("in_block", |names, context| {
        assert!(names.iter().all(|(name, _)| name != "block"), "{context}");
    });
}
