//! Pointers to nothing known that go through memory, arguments and pointers to functions, by the type path alone.

use crate::support::program::{Program, builds, has_memory_operand};
use crate::support::session::{Session, with};

const FLAGS: [&str; 4] = [
    "-O2 -g -fPIE -pie",
    "-O1 -g -gdwarf-4 -fno-pie -no-pie",
    "-O2 -g -fPIE -pie -Wl,-z,pack-relative-relocs",
    "-O0 -g -fPIE -pie",
];

/// The type and the member of what an access is to, as far as they are named.
type Named = (String, String);

/// What is said of each access of some functions that is not to the frame, in all builds of a program.
fn of_builds<const N: usize>(
    source: &str,
    flags: [&'static str; N],
    functions: &[&str],
    mut check: impl FnMut(&[Named], &str),
) {
    for (compiler, flags) in builds(flags) {
        let program = Program::compile(compiler, source, flags);
        let mut session = Session::of_type_path(&program);
        for function in functions {
            let names = names_in(&program, &mut session, function);
            assert!(!names.is_empty(), "{function} {compiler} {flags}");
            check(&names, &format!("{names:?} {function} {compiler} {flags}"));
        }
    }
}

fn names_in(program: &Program, session: &mut Session, function: &str) -> Vec<Named> {
    let code = program.function(function);
    let frame = [iced_x86::Register::RSP, iced_x86::Register::RBP];
    let meant =
        code.iter().filter(|it| has_memory_operand(it) && !frame.contains(&it.memory_base()));
    let names = meant.map(|access| {
        let line = session.exact(access.ip(), &with(&[]));
        let said =
            |part: Option<std::sync::Arc<str>>| part.map(|it| it.to_string()).unwrap_or_default();
        (said(line.type_name.clone()), said(line.member.clone()))
    });
    names.collect()
}

/// What is said of each access of a function in all builds of the program where everything is known.
fn of_each(function: &str, check: impl FnMut(&[Named], &str)) {
    of_builds("carried.c", FLAGS, &[function], check);
}

/// Tells of all accesses in a function that they are to this member.
fn all_are(function: &str, type_name: &str, member: &str) {
    of_each(function, |names, context| {
        let is_it = |name: &Named| name.0 == type_name && name.1 == member;
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

#[test]
fn what_gets_one_type_among_others_has_its_name() {
    let flags = ["-O2 -g -fPIE -pie", "-O1 -g -fno-pie -no-pie"];
    of_builds("carried_open.c", flags, &["of_sure"], |names, context| {
        assert!(names.iter().any(|(name, member)| name == "one" && member == "b"), "{context}");
    });
}

/// Tells of all accesses in some functions to what may get two types that none is to one of them.
fn are_open<const N: usize>(flags: [&'static str; N], functions: &[&str]) {
    of_builds("carried_open.c", flags, functions, |names, context| {
        let is_one = |(name, _): &Named| matches!(name.as_str(), "one" | "two");
        assert!(!names.iter().any(is_one), "{context}");
    });
}

#[test]
fn what_may_get_another_type_has_no_name() {
    // By its address.
    let mut all = vec!["of_slot", "of_aligned", "of_pair", "of_known"];
    // As one of two values or functions.
    all.extend(["of_either", "of_checked", "chosen_handle", "visited", "of_got"]);
    // As a copy of what has another type.
    all.extend(["of_record", "of_twin", "of_wide", "of_keyed"]);
    // In objects that have no name.
    all.extend(["literal_run", "of_unnamed", "of_current"]);
    // As an array, as what begins or surrounds it, as an arm of a union, as bytes.
    all.extend([
        "of_stack",
        "of_batch",
        "of_lent",
        "of_begun",
        "of_hooked",
        "of_placed",
        "of_right",
    ]);
    all.extend(["of_range", "of_filled", "of_moved", "of_shifted", "of_popped"]);
    // In one of two objects; from the beginning.
    all.extend(["of_far", "of_seemed", "of_tabled", "of_fixed"]);
    // By a pointer of another type, by a vector that is turned round.
    all.extend(["log_any", "turned_use"]);
    are_open(FLAGS, &all);
}

#[test]
fn data_that_lies_with_the_code_may_hold_anything() {
    let fixed = "-O2 -g -fno-pie -no-pie -Wl,-z,noseparate-code";
    let relative = "-O2 -g -fPIE -pie -Wl,-z,noseparate-code,-z,pack-relative-relocs";
    are_open([fixed, relative], &["of_tabled", "of_fixed"]);
}

#[test]
fn what_lies_in_one_place_of_the_frame_one_after_the_other_has_no_name() {
    of_builds("carried_open.c", FLAGS, &["large_step", "small_step"], |names, context| {
        let is_other = |(name, _): &Named| match context.contains("small_step") {
            true => name == "large",
            false => name == "small",
        };
        assert!(!names.iter().any(is_other), "{context}");
    });
}

#[test]
fn what_other_load_objects_find_by_name_may_get_anything() {
    let flags = [
        "-O2 -g -fPIE -pie -rdynamic",
        "-O1 -g -fno-pie -no-pie -rdynamic",
        "-O2 -g -gdwarf-4 -fPIE -pie -rdynamic",
        "-O0 -g -fPIE -pie -rdynamic",
    ];
    are_open(flags, &["of_shared", "of_hook", "seen_read"]);
}
