//! Variables in a function's frame, and what of a frame is no variable.

use crate::support::program::{Program, builds, has_memory_operand};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{Rbp, Rdi, Rsi, Rsp};

/// Somewhere on a stack that no mapping names.
const STACK: u64 = 0x7ffd_1234_5000;

/// What the CFA is at the instruction, when rsp (or the frame pointer) is `STACK`.
fn cfa_at(program: &Program, function: &str, register: iced_x86::Register, ip: u64) -> u64 {
    let mut depth = 8;
    for here in program.function(function) {
        if here.ip() == ip {
            break;
        }
        if register == iced_x86::Register::RBP
            && here.mnemonic() == iced_x86::Mnemonic::Mov
            && here.op0_register() == iced_x86::Register::RBP
        {
            break;
        }
        match here.mnemonic() {
            iced_x86::Mnemonic::Push => depth += 8,
            iced_x86::Mnemonic::Sub if here.op0_register() == iced_x86::Register::RSP => {
                depth += here.immediate(1);
            }
            _ => {}
        }
    }
    STACK + depth
}

#[test]
fn locals_are_named_by_their_place_in_the_frame() {
    for flags in [
        "-O0 -gdwarf-5 -fPIE -pie",
        "-O0 -gdwarf-4 -fno-pie -no-pie -fomit-frame-pointer",
        "-O2 -gdwarf-5 -fno-pie -no-pie",
        "-O2 -gdwarf-4 -fPIE -pie -fno-omit-frame-pointer",
        "-O2 -gdwarf-5 -fPIE -pie -fno-asynchronous-unwind-tables",
    ] {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let mut n_named = [0; 3];
        for access in program.function("locals") {
            let base = access.memory_base();
            let is_frame = matches!(base, iced_x86::Register::RSP | iced_x86::Register::RBP);
            if !is_frame || !has_memory_operand(&access) {
                continue;
            }
            let cfa = cfa_at(&program, "locals", base, access.ip());
            let index = if access.memory_index() == iced_x86::Register::None { 0 } else { 3 };
            let at = STACK
                .wrapping_add(access.memory_displacement64())
                .wrapping_add(index * u64::from(access.memory_index_scale()));
            let is_in = |key: &str, size: u64| {
                let start = cfa - program.truth(key);
                (start..start + size).contains(&at).then(|| at - start)
            };
            let all: Vec<_> = dataspace_proto::register::Register::ALL
                .into_iter()
                .map(|register| {
                    (register, if matches!(register, Rsp | Rbp) { STACK } else { index })
                })
                .collect();
            let line = session.exact(access.ip(), &with(&all));
            let context = format!("{:#x} {flags}", access.ip());
            assert_eq!(line.addr, Some(at), "{context}");
            if let Some(into) = is_in("cfa-here", 8) {
                let member = if into == 0 { "x" } else { "y" };
                let expected = format!("{{structure:pos}}.{{int {member}}}");
                assert_eq!(object(&line), expected, "{context}");
                assert_eq!(line.variable.as_deref(), Some("here"), "{context}");
                n_named[0] += 1;
            } else if is_in("cfa-sums", 32).is_some() {
                // gcc has the qualifier on the array and on its elements.
                let expected = "{volatile+array[4]:volatile+long_int sums}";
                assert_eq!(object(&line), expected, "{context}");
                n_named[1] += 1;
            } else {
                let others =
                    ["<Stack>", "{volatile+long_int i}", "{long_int n}", "{pointer+char cfa}"];
                assert!(others.contains(&object(&line)), "{} {context}", object(&line));
                n_named[2] += 1;
            }
        }
        assert!(n_named[0] >= 3 && n_named[1] >= 2, "{n_named:?} {flags}");
    }
}

#[test]
fn locals_of_an_aligned_frame_are_named_without_an_address() {
    for (compiler, flags) in builds(["-O2 -g", "-O1 -g -gdwarf-4", "-O3 -g"]) {
        let program = Program::compile(compiler, "places.c", flags);
        let mut session = Session::of_type_path(&program);
        let (mut n_here, mut n_sums, mut n_lines) = (0, 0, 0);
        let code = program.function("aligned");
        let is_aligning = |it: &&iced_x86::Instruction| it.mnemonic() == iced_x86::Mnemonic::And;
        let aligned = code.iter().find(is_aligning).expect("the frame is aligned").ip();
        for access in code.iter().filter(|it| it.ip() > aligned && has_memory_operand(it)) {
            let line = session.exact(access.ip(), &with(&[]));
            let context = format!("{:#x} {compiler} {flags}", access.ip());
            if access.memory_base() != iced_x86::Register::RSP {
                let said = (line.type_name.as_deref(), line.member.as_deref());
                n_lines += usize::from(said == (Some("line"), Some("id")));
                continue;
            }
            let at = access.memory_displacement64();
            let is_in = |key: &str, size: u64| {
                at.checked_sub(program.truth(key)).filter(|into| *into < size)
            };
            if let Some(into) = is_in("rsp-here", 8) {
                let member = if into == 0 { "x" } else { "y" };
                let expected = format!("{{structure:pos}}.{{int {member}}}");
                assert_eq!(object(&line), expected, "{context}");
                n_here += 1;
            } else if is_in("rsp-sums", 64).is_some() {
                assert_eq!(line.variable.as_deref(), Some("sums"), "{context}");
                n_sums += 1;
            }
        }
        let found = (n_here, n_sums, n_lines);
        assert!(n_here >= 3 && n_sums >= 3 && n_lines >= 2, "{found:?} {compiler} {flags}");
    }
}

#[test]
fn spills_belong_to_the_stack_or_to_the_variable_that_lives_there() {
    let program = Program::c("places.c", "-O2 -g");
    let mut session = Session::new(&program);
    let mut n_accesses = 0;
    for access in program.function("spill") {
        if !has_memory_operand(&access) {
            continue;
        }
        let line = session.exact(access.ip(), &with(&[(Rsp, STACK), (Rdi, 1), (Rsi, 2)]));
        assert!(["<Stack>", "{long_int a}", "{long_int b}"].contains(&object(&line)), "{line:?}");
        n_accesses += 1;
    }
    assert!(n_accesses >= 2);
}

#[test]
fn push_pop_call_and_return_belong_to_the_stack() {
    for flags in ["-O2 -g", "-O2"] {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let mut n = 0;
        for (function, access) in ["spill", "small", "locals"]
            .into_iter()
            .flat_map(|function| program.function(function).into_iter().map(move |i| (function, i)))
        {
            use iced_x86::Mnemonic as M;
            if !matches!(access.mnemonic(), M::Push | M::Pop | M::Call | M::Ret) {
                continue;
            }
            let line = session.exact(access.ip(), &with(&[(Rsp, STACK)]));
            assert_eq!(object(&line), "<Stack>", "{function} {flags}");
            let above = matches!(access.mnemonic(), M::Pop | M::Ret);
            assert_eq!(line.addr, Some(if above { STACK } else { STACK - 8 }), "{function}");
            n += 1;
        }
        assert!(n >= 10, "{n}");
    }
}

#[test]
fn an_argument_on_the_stack_is_named() {
    let program = Program::c("places.c", "-O2 -g");
    let mut session = Session::new(&program);
    let line = session.exact(program.frame_access("by_stack", 8).ip(), &with(&[(Rsp, STACK)]));
    assert_eq!(object(&line), "{long_int seventh}");
}
