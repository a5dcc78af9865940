//! What functions without types touch, by what their callers pass; and stacks that no program has.

use crate::support::program::{Program, builds};
use crate::support::session::{EXACT, Session, object, sample, with};
use dataspace_proto::record::Sample;
use dataspace_proto::register::Register::{Rbp, Rdi, Rsi, Rsp};
use dataspace_proto::sample_line::{Evidence, SampleLine};
use dataspace_proto::stack::N_STACK_BYTES;
use proptest::prelude::*;

/// Somewhere on a stack, and on a heap, that no mapping names.
const STACK: u64 = 0x7ffd_1234_5000;
const HEAP: u64 = 0x5555_1000;

const FLAGS: &str = "-O2 -g -fPIE -pie -fcf-protection=none";

/// What a sample at `ip` with these words on its stack is.
fn with_stack(ip: u64, words: &[u64]) -> Sample {
    let hand = with(&[(Rsp, STACK), (Rdi, HEAP), (Rsi, HEAP)]);
    let mut sample = sample(EXACT, ip, &hand);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    sample.stack.set(&bytes);
    sample
}

/// Where the only call of a function returns to.
fn behind_call(program: &Program, name: &str) -> u64 {
    program.call_in(name).next_ip()
}

fn walk(program: &Program) -> u64 {
    program.access("walk", 0).ip()
}

fn answer(session: &mut Session, ip: u64, words: &[u64]) -> SampleLine {
    session.one(with_stack(ip, words))
}

#[test]
fn a_callers_argument_names_what_is_touched() {
    let program = Program::c("passing.c", FLAGS);
    let mut session = Session::new(&program);
    let place = "{structure:employee}.{structure:place at}";
    let name = "{structure:employee}.{array[24]:char name}";
    // `walk` has pushed a register.
    for (caller, expected) in [
        ("pass_name", name),
        ("pass_place", place),
        // Bytes from a pointer on may be anything.
        ("pass_end", "undetermined"),
        ("pass_text", "{const+char text[]}"),
        ("pass_rest", "{union:byte}.{unsigned_char value}"),
        // One argument taken for the other, and a function that was not called by its name.
        ("pass_swapped", name),
        ("pass_before", name),
        ("pass_pointer", "undetermined"),
    ] {
        let line = answer(&mut session, walk(&program), &[0, behind_call(&program, caller)]);
        if expected == "undetermined" {
            assert_eq!(line.object, None, "{caller}");
            continue;
        }
        assert_eq!(object(&line), expected, "{caller}");
        assert_eq!((line.evidence, line.calls_out), (Some(Evidence::Address), Some(1)), "{caller}");
    }
    let touch = program.access("touch", 32).ip();
    let line = answer(&mut session, touch, &[behind_call(&program, "pass_whole")]);
    assert_eq!(object(&line), "{structure:employee}.{structure:place at}.{int x}");
    // Of another function's argument nothing is known, where no votes say what is there.
    let mut session = Session::new(&program);
    let line = answer(&mut session, touch, &[behind_call(&program, "pass_name")]);
    assert_eq!(line.object, None);
}

#[test]
fn what_is_passed_on_is_asked_of_the_next_caller() {
    let program = Program::c("passing.c", FLAGS);
    let mut session = Session::new(&program);
    let (inner, outer) = (behind_call(&program, "pass_void"), behind_call(&program, "pass_on"));
    // Each has moved the stack by one word to keep it aligned.
    let line = answer(&mut session, walk(&program), &[0, inner, 0, outer]);
    assert_eq!(object(&line), "{structure:employee}.{array[24]:char name}");
    assert_eq!(line.calls_out, Some(2));
    let line = answer(&mut session, walk(&program), &[0, inner, 0]);
    assert_eq!(line.object, None, "the stack is cut");
}

#[test]
fn no_return_address_but_that_of_a_call_names_anything() {
    let program = Program::c("passing.c", FLAGS);
    let mut session = Session::new(&program);
    let calls = ["name", "place", "end", "text", "void", "swapped", "before", "rest"];
    let calls = calls.map(|name| behind_call(&program, &format!("pass_{name}")));
    let (first, len_bytes) = program.function_range("pass_whole");
    let start = first + program.bias();
    for behind in start.saturating_sub(64)..start + len_bytes + 512 {
        // The same address all over: a stack that goes round in circles.
        let line = answer(&mut session, walk(&program), &[behind; N_STACK_BYTES / 8]);
        assert!(line.object.is_none() || calls.contains(&behind), "{behind:#x}: {line:?}");
    }
}

#[test]
fn a_variable_in_a_callers_frame_is_named() {
    let program = Program::c("passing.c", FLAGS);
    let mut session = Session::new(&program);
    let (inner, outer) = (behind_call(&program, "pass_void"), behind_call(&program, "pass_local"));
    let mut at = |pointer| {
        // Two frames of a word each, as in `what_is_passed_on_is_asked_of_the_next_caller`, then that of `pass_local`.
        let mut sample = with_stack(walk(&program), &[0, inner, 0, outer, 0, 0]);
        sample.registers.set(Rdi, pointer);
        session.one(sample)
    };
    let start = STACK + 4 * 8 + program.truth("local_at");
    let name = start + program.truth("struct employee.name");
    let line = at(start);
    assert_eq!(object(&line), "{structure:employee}.{long_int id}");
    assert_eq!((line.evidence, line.calls_out), (Some(Evidence::Address), Some(2)));
    assert_eq!(object(&at(name)), "{structure:employee}.{array[24]:char name}");
    let place = start + program.truth("struct employee.at");
    assert_eq!(object(&at(place)), "{structure:employee}.{structure:place at}.{int x}");
    let end = start + program.truth("local_bytes");
    assert_eq!([object(&at(start - 1)), object(&at(end))], ["<Stack>"; 2]);
}

#[test]
fn arguments_in_a_callers_frame_are_told_from_its_variables() {
    for (compiler, flags) in builds([FLAGS]) {
        let program = Program::compile(compiler, "passing.c", flags);
        let mut session = Session::new(&program);
        for how in ["moved", "pushed"] {
            let (inner, outer) = (format!("pass_{how}"), format!("put_{how}"));
            let (inner, outer) = (behind_call(&program, &inner), behind_call(&program, &outer));
            let mut at = |pointer| {
                let mut sample = with_stack(walk(&program), &[0, inner, 0, outer, 0, 0, 0, 0]);
                sample.registers.set(Rdi, pointer);
                // clang's `pass_pushed` has a frame pointer.
                sample.registers.set(Rbp, STACK + 2 * 8);
                session.one(sample).object
            };
            let arguments = STACK + 4 * 8;
            let local = arguments + program.truth(&format!("{how}.at"));
            let employee = "{structure:employee}.{structure:place at}.{int x}";
            let place = local + program.truth("struct employee.at");
            assert_eq!(at(place).as_deref(), Some(employee), "{how} {compiler}");
            if how == "moved" {
                // After the pointer.
                let text = arguments + 8 + program.truth("struct badge.text");
                let badge = "{structure:badge}.{array[40]:char text}";
                assert_eq!(at(text).as_deref(), Some(badge), "by value: {compiler}");
            }
        }
    }
}

#[test]
fn what_lies_in_a_callers_frame_is_of_the_stack() {
    let program = Program::c("passing.c", FLAGS);
    let mut session = Session::new(&program);
    let behind = behind_call(&program, "pass_void");
    let mut at = |pointer| {
        // `walk` has pushed a register, and its caller left eight bytes free below its return address.
        let mut sample = with_stack(walk(&program), &[0, behind, 0, 0]);
        sample.registers.set(Rdi, pointer);
        session.one(sample).object
    };
    assert_eq!(at(STACK + 16).as_deref(), Some("<Stack>"));
    assert_eq!(at(STACK + 24).as_deref(), Some("<Stack>"), "the address to return to");
    assert_eq!(at(STACK + 32), None, "whose frame that is, nobody knows");
    assert_eq!(at(STACK - 64), None, "below the stack");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_on_the_stack_is_no_panic(
        words in prop::collection::vec(any::<u64>(), 0..40),
        pointer in any::<u64>(),
    ) {
        thread_local! {
            static PROGRAM: Program = Program::c("passing.c", FLAGS);
        }
        PROGRAM.with(|program| {
            let mut session = Session::new(program);
            let mut sample = with_stack(walk(program), &words);
            let line = session.one(sample);
            assert!(line.object.is_none());
            sample.registers.set(Rsp, pointer);
            assert!(session.one(sample).object.is_none());
        });
    }
}
