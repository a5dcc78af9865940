//! Pointers that no variable types where they are used.

use super::{HEAP, Misses, by_type, names};
use crate::support::program::{Program, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{self, Rax, Rbp, Rbx, Rdi, Rsi, Rsp};
use iced_x86::Instruction;

const X: &str = "{structure:node}.{int x}";

const BUILDS: [(&str, &str); 4] = [
    ("gcc", "-O2 -gdwarf-5"),
    ("gcc", "-O1 -gdwarf-4 -fno-pie -no-pie"),
    ("clang", "-O2 -gdwarf-5 -Dnoipa=noinline"),
    ("clang", "-O2 -gdwarf-4 -Dnoipa=noinline"),
];

fn builds(of: &[(&str, &str)]) -> impl Iterator<Item = (Program, String)> {
    let here = of.iter().filter(|(compiler, _)| has_tool(compiler));
    here.map(|(compiler, flags)| {
        (Program::compile(compiler, "peer_pointers.c", flags), format!("{compiler} {flags}"))
    })
}

/// The name of the only access at the place of `x`.
fn x_of(session: &mut Session, program: &Program, function: &str) -> String {
    let access = program.access(function, program.truth("struct node.x"));
    let registers: Vec<_> = Register::ALL.into_iter().map(|register| (register, HEAP)).collect();
    object(&session.exact(access.ip(), &with(&registers))).to_owned()
}

/// The peer leaves a `void *` that no variable renames without a type, though the function passes,
/// stores, compares or returns it as a typed one.
#[test]
fn an_erased_pointer_is_what_it_is_used_as() {
    let mut misses = Misses::default();
    for (program, build) in builds(&BUILDS) {
        let mut session = by_type(&program);
        for function in ["passed_later", "stored_later", "compared_before", "returned_later"] {
            let name = x_of(&mut session, &program, function);
            misses.check(&name, &[X], &format!("{function} {build}"));
        }
    }
    misses.none();
}

/// The peer knows nothing of callers: an erased argument is without a type, whatever is passed.
#[test]
fn an_erased_argument_is_what_direct_callers_pass() {
    let mut misses = Misses::default();
    for (program, build) in builds(&BUILDS) {
        let mut session = by_type(&program);
        misses.check(&x_of(&mut session, &program, "by_caller"), &[X], &build);
        // Callers that disagree say nothing, nor do some beside one that is too large to be looked at, nor none.
        let right = ["undetermined", "unidentified"];
        for function in ["by_callers", "by_large"] {
            let unlike = program.access(function, 4);
            let line = session.exact(unlike.ip(), &with(&[(Rdi, HEAP)]));
            misses.check(object(&line), &right, &format!("{function} {build}"));
        }
        let name = x_of(&mut session, &program, "by_nobody");
        misses.check(&name, &right, &format!("by_nobody {build}"));
    }
    misses.none();
}

/// The peer takes a union's first arm. A compiler reads the pointer once, whatever it is.
#[test]
fn a_pointer_in_a_union_is_the_one_that_fits_what_is_read() {
    let mut misses = Misses::default();
    for (program, build) in builds(&BUILDS) {
        let mut session = by_type(&program);
        let named = names(&mut session, &program, "one_of_three");
        // What reads members of the column itself is at a fixed distance from its first argument.
        let is_own = |access: &Instruction| access.memory_base() == iced_x86::Register::RDI;
        let (own, behind): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(access, _)| is_own(access));
        let right = ["{int ints[]}", "{double reals[]}", "{structure:pair}.{int right}"];
        misses.check_all(&behind, &right, &build);
        misses.check(&own[0].1, &["{structure:column}.{int sort}"], &build);
    }
    misses.none();
}

/// What calls return the peer takes from a function of that name; what no variable holds between two loads it follows on one way only.
#[test]
fn what_is_returned_loaded_or_passed_in_registers_has_its_type() {
    let mut misses = Misses::default();
    for (program, build) in builds(&BUILDS) {
        let mut session = by_type(&program);
        for function in ["returned", "chased", "by_value", "by_value_later", "copied"] {
            let name = x_of(&mut session, &program, function);
            misses.check(&name, &[X], &format!("{function} {build}"));
        }
        let next = "{structure:node}.{pointer+structure:node next}";
        let head = "{structure:list}.{pointer+structure:node head}";
        let named = names(&mut session, &program, "chased");
        misses.check_all(&named, &[head, next, X], &build);
    }
    misses.none();
}

/// Where the frame is described in `.eh_frame` alone, as on all x86-64, the peer knows no place in
/// it: without optimisation nothing is typed, not even what a pointer in the frame leads to.
#[test]
fn without_optimisation_pointers_are_loaded_from_the_frame() {
    check_frames(&[
        ("gcc", "-O0 -gdwarf-5"),
        ("gcc", "-O0 -gdwarf-4 -fomit-frame-pointer"),
        ("gcc", "-O0 -gdwarf-5 -fno-asynchronous-unwind-tables"),
    ]);
}

/// The same where places are counted from the frame pointer, which is no frame's before the first
/// instructions of a function.
#[test]
fn places_may_be_counted_from_the_frame_pointer() {
    check_frames(&[("clang", "-O0 -gdwarf-5"), ("clang", "-O0 -gdwarf-4")]);
}

fn check_frames(of: &[(&str, &str)]) {
    let mut misses = Misses::default();
    for (program, build) in builds(of) {
        let mut session = by_type(&program);
        for function in ["returned", "chased", "by_value", "by_value_later", "copied"] {
            let name = x_of(&mut session, &program, function);
            misses.check(&name, &[X], &format!("{function} {build}"));
        }
        // The pointer's own place in the frame is a variable too.
        for (function, variable) in [("chased", "l"), ("copied", "other")] {
            let stack = 0x7ffd_1234_5000;
            let code = program.function(function);
            let of_frame = code.iter().filter(|here| {
                let base = here.memory_base();
                crate::support::program::has_memory_operand(here)
                    && matches!(base, iced_x86::Register::RBP | iced_x86::Register::RSP)
            });
            let registers = with(&[(Rbp, stack), (Rsp, stack), (Rax, 0), (Rbx, 0), (Rsi, 0)]);
            let found: Vec<_> =
                of_frame.map(|access| session.exact(access.ip(), &registers).variable).collect();
            let is_there = found.iter().flatten().any(|name| &**name == variable);
            if !is_there {
                misses.0.push(format!("{function} has no {variable}: {found:?} {build}"));
            }
        }
    }
    misses.none();
}

/// What a pointer to a function returns has the type that the pointer's declares: the peer knows no
/// calls but direct ones.
#[test]
fn what_an_indirect_call_returns_has_its_type() {
    let mut misses = Misses::default();
    for (program, build) in builds(&BUILDS) {
        let mut session = by_type(&program);
        misses.check(&x_of(&mut session, &program, "made"), &[X], &build);
    }
    misses.none();
}
