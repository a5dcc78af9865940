//! The way back from a reported IP in compiled code, held against a second reading of its flow.

use crate::support::program::{Program, has_memory_operand};
use crate::support::session::{CLOCK, Session, object, sample, with};
use dataspace_proto::register::Register::{R9, Rcx, Rdi, Rdx, Rflags, Rsi, Rsp};
use dataspace_proto::stack::N_STACK_BYTES;
use iced_x86::{FlowControl, Instruction, Mnemonic};

const HEAP: u64 = 0x7000_1234_5000;
/// ZF, and PF, which a result of zero sets too.
const ZERO: u64 = 1 << 6 | 1 << 2;

const BUILDS: [&str; 4] = [
    "-O2 -gdwarf-5 -fPIE -pie",
    "-O3 -gdwarf-4 -fno-pie -no-pie",
    "-O1 -g",
    "-O2 -g -fcf-protection=none -fno-jump-tables",
];

/// The instructions that can have run just before the one at `index`, as far as the function's own
/// direct flow tells; `None` where an indirect jump may lead there.
fn predecessors(code: &[Instruction], index: usize) -> Option<Vec<Instruction>> {
    let here = &code[index];
    let mut found = Vec::new();
    for (idx, from) in code.iter().enumerate() {
        let falls_through =
            matches!(from.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        let jumps = matches!(
            from.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        if falls_through && idx + 1 == index || jumps && from.near_branch_target() == here.ip() {
            found.push(*from);
        }
    }
    let has_indirect = code.iter().any(|from| from.flow_control() == FlowControl::IndirectBranch);
    (!has_indirect).then_some(found)
}

/// Whether nothing runs into the instruction: it only fills up to an alignment, or follows one
/// that does.
fn is_filler(instruction: &Instruction) -> bool {
    instruction.mnemonic() == iced_x86::Mnemonic::Nop
}

#[test]
fn a_trigger_is_always_an_instruction_that_can_have_run_before() {
    for flags in BUILDS {
        for source in ["hunt.c", "shapes.c", "places.c"] {
            let program = Program::c(source, flags);
            let mut session = Session::new(&program);
            let functions = match source {
                "hunt.c" => &["looped", "chosen", "chain", "switched", "string_copy", "copied"][..],
                "shapes.c" => &["call_visit", "load_key", "list_y"],
                _ => &["locals", "small", "spill", "by_stack"],
            };
            for function in functions {
                check(&program, &mut session, function, &format!("{function} {flags}"));
            }
        }
    }
}

fn check(program: &Program, session: &mut Session, function: &str, context: &str) {
    let code = program.function(function);
    // No values: what the code alone tells. Made-up ones would contradict it.
    for (index, here) in code.iter().enumerate() {
        let line = session.sample(CLOCK, here.ip(), &with(&[]));
        let context = format!("{:#x} {context}: {line:?}", here.ip());
        let Some(before) = predecessors(&code, index) else { continue };
        let is_behind_call = index != 0 && code[index - 1].flow_control() == FlowControl::Call;
        if let Some(trigger) = line.trigger
            // Behind a call it is a `ret` of the callee.
            && !is_behind_call
        {
            let is_possible = before.iter().any(|from| from.ip() == trigger);
            let is_itself = trigger == here.ip() && here.has_rep_prefix();
            assert!(is_possible || is_itself, "{context}");
        }
        if index == 0 {
            assert_eq!(object(&line), "blocked", "{context}");
            continue;
        }
        if let [only] = before[..]
            && !here.has_rep_prefix()
            && !is_filler(&only)
            // The flags made up here may say that it went the other way.
            && only.flow_control() == FlowControl::Next
            // It has two operands, and without a data address either may be what was waited for.
            && !only.is_string_instruction()
        {
            assert_eq!(line.trigger, Some(only.ip()), "{context}");
            let touches = has_memory_operand(&only) || only.is_stack_instruction();
            assert_eq!(line.not_memory, !touches, "{context}");
        }
    }
}

#[test]
fn the_sampled_flags_tell_which_way_a_loop_was_entered() {
    let program = Program::c("hunt.c", "-O2 -g");
    let mut session = Session::new(&program);
    let code = program.function("looped");
    let branch = code
        .iter()
        .position(|here| here.flow_control() == FlowControl::ConditionalBranch)
        .expect("the loop ends in a branch");
    let head = code
        .iter()
        .position(|here| here.ip() == code[branch].near_branch_target())
        .expect("the branch goes back");
    assert_eq!(code[branch].mnemonic(), iced_x86::Mnemonic::Jne);
    // Nothing sampled: the branch was taken, or the loop was entered: none touches memory.
    let line = session.sample(CLOCK, code[head].ip(), &with(&[(Rdi, HEAP)]));
    assert_eq!(object(&line), "not_memory");
    assert_eq!(line.trigger, None, "which of the two is not told");
    // Zero left the loop, and not zero did not enter it: its counter and its sum say so.
    let line = session.sample(CLOCK, code[head].ip(), &with(&[(Rdi, HEAP), (Rflags, 0)]));
    assert_eq!(object(&line), "not_memory");
    let line = session.sample(CLOCK, code[head].ip(), &with(&[(Rdi, HEAP), (Rflags, ZERO)]));
    assert_eq!(line.trigger, Some(code[head - 1].ip()), "the branch was not taken");
    let behind = session.sample(CLOCK, code[branch].next_ip(), &with(&[(Rflags, ZERO)]));
    assert_eq!(behind.trigger, Some(code[branch].ip()));
    let impossible = session.sample(CLOCK, code[branch].next_ip(), &with(&[(Rflags, 0)]));
    assert_eq!(object(&impossible), "unresolvable", "a taken branch does not fall through");
}

#[test]
fn a_wait_shows_at_the_instruction_behind_the_load() {
    for flags in BUILDS {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        for (function, displacement, expected) in [
            ("looped", 8, "{structure:wide}.{long_int b}"),
            ("chain", 8, "{structure:head}.{long_int kind}"),
        ] {
            let load = program.access(function, displacement);
            let code = program.function(function);
            let next = code.iter().find(|here| here.ip() == load.next_ip()).unwrap();
            let line = session.sample(CLOCK, next.ip(), &with(&[(Rdi, HEAP)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
            assert_eq!(line.trigger, Some(load.ip()), "{function} {flags}");
        }
    }
}

#[test]
fn a_case_of_a_switch_is_reached_by_the_jump_only() {
    for flags in ["-O2 -g -fPIE -pie", "-O2 -g -fno-pie -no-pie"] {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        let code = program.function("switched");
        let jump = code.iter().find(|here| here.flow_control() == FlowControl::IndirectBranch);
        let jump = jump.expect("the switch has a jump table");
        let mut n_cases = 0;
        for (index, here) in code.iter().enumerate().skip(1) {
            let before = code[..index].iter().rev().find(|before| !is_filler(before)).unwrap();
            let cut_off =
                matches!(before.flow_control(), FlowControl::Return | FlowControl::IndirectBranch);
            if !cut_off || is_filler(here) {
                continue;
            }
            let line = session.sample(CLOCK, here.ip(), &with(&[(Rdi, HEAP)]));
            n_cases += 1;
            let is_default = object(&line) == "unresolvable"
                || line.trigger.is_some_and(|trigger| {
                    let from = code.iter().find(|from| from.ip() == trigger);
                    from.is_some_and(|from| from.flow_control() == FlowControl::ConditionalBranch)
                });
            assert!(line.trigger == Some(jump.ip()) || is_default, "{flags} {line:?}");
        }
        assert!(n_cases >= 2, "{n_cases} {flags}");
    }
}

/// The instruction of `spilled.c` at which samples are taken.
fn sets_seven(here: &Instruction) -> bool {
    here.mnemonic() == Mnemonic::Mov && here.try_immediate(1).is_ok_and(|it| it == 7)
}

/// The lowest bytes of a stack: zeros, but for these words at these distances from the stack pointer.
fn stack_with(words: &[(usize, u64)]) -> [u8; N_STACK_BYTES] {
    let mut bytes = [0; N_STACK_BYTES];
    for (at, word) in words {
        bytes[*at..*at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn the_sampled_stack_tells_which_way_saved_its_pointer_there() {
    const STACK: u64 = 0x7fff_0000_1000;
    const RIGHT: u64 = HEAP + 0x100;
    const LOADED: &str = "{structure:left}.{long_int second}";
    const FIVE: u64 = 5 << 32;
    let program = Program::c("spilled.c", "-O2 -g");
    let mut session = Session::new(&program);
    let mut answer = |function: &str, rcx: u64, rdx: u64, words: Option<&[(usize, u64)]>| {
        let registers =
            [(Rdi, HEAP), (Rsi, RIGHT), (Rsp, STACK), (Rcx, rcx), (R9, rcx), (Rdx, rdx)];
        let ip = program.only(function, sets_seven).ip();
        let mut sample = sample(CLOCK, ip, &with(&registers));
        words.inspect(|words| sample.stack.set(&stack_with(words)));
        object(&session.one(sample)).to_owned()
    };
    let to = HEAP + 0x200;
    for (words, expected) in [
        (None, "unresolvable"),
        (Some(&[(0x18, HEAP + 4)][..]), LOADED),
        (Some(&[(0x20, RIGHT)]), "not_memory"),
        (Some(&[(0x18, HEAP + 4), (0x20, RIGHT)]), "unresolvable"),
        // Nobody has left such a stack here: somebody else has written to it since.
        (Some(&[]), "unresolvable"),
    ] {
        assert_eq!(answer("joined", to, 9, words), expected, "{words:x?}");
    }
    for (to, words, expected) in [
        // A store that may have gone anywhere leaves nothing known of what was there before.
        (to, &[(0x18, HEAP), (0x20, FIVE)][..], "unresolvable"),
        (to, &[(0x18, HEAP)], "not_memory"),
        (to, &[(0x20, FIVE)], "not_memory"),
        // One that is seen to have gone to that very place.
        (STACK + 0x18, &[(0x18, 9), (0x20, FIVE)], "unresolvable"),
        (STACK + 0x18, &[(0x18, HEAP), (0x20, FIVE)], "not_memory"),
    ] {
        assert_eq!(answer("stored", to, 9, Some(words)), expected, "{to:#x} {words:x?}");
    }
}

#[test]
fn a_base_that_its_load_has_overwritten_is_what_the_code_before_made_it() {
    const STACK: u64 = 0x7fff_0000_1000;
    const WHICH: u64 = 2;
    let program = Program::c("spilled.c", "-O2 -g");
    let mut session = Session::new(&program);
    for (function, expected) in [
        ("of_sum", Some(HEAP + 8 + 8 * WHICH + 8)),
        ("of_copy", Some(HEAP + 16 - WHICH)),
        ("of_slot", Some(HEAP + 0x300 + 8)),
        ("of_one", Some(HEAP + 8)),
        // Two ways make it two things, it leads from one to the next, or is not followed.
        ("of_either", None),
        ("of_chain", None),
        ("of_part", None),
        ("of_double", None),
    ] {
        let registers = [(Rdi, HEAP), (Rsi, WHICH), (Rsp, STACK), (Rdx, 5)];
        let ip = program.only(function, sets_seven).ip();
        let mut sample = sample(CLOCK, ip, &with(&registers));
        sample.stack.set(&stack_with(&[(0x18, HEAP + 0x300)]));
        let line = session.one(sample);
        assert_eq!(line.addr, expected, "{function}: {line:?}");
    }
}
