//! The way back from a reported IP in compiled code, held against a second reading of its flow.

use crate::support::program::{Program, has_memory_operand};
use crate::support::session::{CLOCK, Session, object, with};
use dataspace_proto::register::Register::{Rdi, Rflags};
use iced_x86::{FlowControl, Instruction};

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
