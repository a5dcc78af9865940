//! Steps back over instructions, held to a processor that executed them.

use crate::support::program::has_tool;
use crate::truth::build::{Build, Language, Source};
use crate::truth::sandbox::Sandbox;
use crate::truth::step::{Moment, State};
use crate::truth::trace::MAX_INSTRUCTION_BYTES;
use crate::truth::tracee;
use crate::truth::undo::{self, Judge};
use dataspace_proto::register::Register;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use std::io::{ErrorKind, Result};

/// Instructions tried on the processor; it refuses a fifth of them.
const N_TRIED: usize = 100_000;

/// Steps of each program: the dynamic loader's and some of its own.
const N_STEPS: u64 = 150_000;

/// Whether programs may be traced here; the test that needs it says so where not.
fn traced<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: programs may not be traced here: {error}");
            None
        }
        outcome => Some(outcome.unwrap()),
    }
}

/// Whether Intel's and AMD's processors take the bytes for different instructions. No compiler makes such:
/// near branches with an operand-size prefix, which only AMD's heed (AMD64 manual volume 3, "Near Branches
/// in 64-Bit Mode"), `pause` with a register prefix (an exchange on AMD's), calls of a hypervisor.
fn is_by_vendor(bytes: &[u8]) -> bool {
    const LEGACY: [u8; 11] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
    let is_prefix = |byte: &&u8| LEGACY.contains(byte) || (0x40..=0x4f).contains(*byte);
    let prefixes: Vec<u8> = bytes.iter().take_while(is_prefix).copied().collect();
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    match instruction.mnemonic() {
        Mnemonic::Vmgexit | Mnemonic::Vmmcall | Mnemonic::Vmcall => true,
        Mnemonic::Pause => prefixes.len() > 1,
        _ => prefixes.contains(&0x66) && instruction.flow_control() != FlowControl::Next,
    }
}

#[test]
fn instructions_are_undone_as_a_processor_did_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = Judge::new(1);
    // What the thread's storage begins with is random here.
    judge.has_thread_base = false;
    tracee::stay_on(0);
    let outcome = Sandbox::with(dir.path(), 1, |sandbox| {
        for _ in 0..N_TRIED {
            let executed = sandbox.execute()?;
            if let Some(executed) = executed.filter(|it| !is_by_vendor(&it.bytes)) {
                judge.alone(&executed.bytes, &executed.before, &executed.after);
            }
        }
        Ok(())
    });
    if traced(outcome).is_some() {
        assert!(judge.wrong.is_empty(), "{}", judge.wrong.join("\n"));
    }
}

/// A program of each language, from the first instruction of the dynamic loader on.
#[test]
fn programs_are_undone_step_by_step() {
    let dir = tempfile::tempdir().unwrap();
    tracee::stay_on(0);
    let mut judge = Judge::new(1);
    for (name, language, compiler, flags) in [
        ("assembly", Language::C, "gcc", "-O2"),
        ("bits", Language::C, "gcc", "-O3"),
        ("containers", Language::Cpp, "g++", "-O1"),
        ("machine", Language::Rust, "rustc", "-Copt-level=2"),
    ] {
        if !has_tool(compiler) {
            continue;
        }
        let build = Build { source: Source { name, language }, compiler, flags };
        judge.leave();
        let program = build.compile(dir.path()).unwrap();
        if traced(undo::walk(&program.path, None, N_STEPS, &mut judge)).is_none() {
            return;
        }
    }
    assert!(judge.wrong.is_empty(), "{}", judge.wrong.join("\n"));
}

/// Forms that no compiler makes, and the registers before and after them, as a processor had them.
#[test]
fn rare_forms_are_undone() {
    const DOWN: u64 = 0x602;
    let check = |code: &[u8], registers: &[(Register, u64, u64)]| {
        let mut bytes = [0x90; MAX_INSTRUCTION_BYTES];
        bytes[..code.len()].copy_from_slice(code);
        let (mut before, mut after) = (State::default(), State::default());
        for (register, was, is) in registers {
            before.0[*register as usize] = *was;
            after.0[*register as usize] = *is;
        }
        let mut judge = Judge::new(1);
        judge.has_thread_base = false;
        let moment = |registers| Moment { registers, ..Moment::default() };
        judge.alone(&bytes, &moment(before), &moment(after));
        assert!(judge.wrong.is_empty(), "{}", judge.wrong.join("\n"));
    };
    let flags = Register::Rflags;
    // popf sets the direction, too.
    check(&[0x9d], &[(Register::Rsp, 0x7000, 0x7008), (Register::Rip, 1, 2), (flags, 2, DOWN)]);
    // lea %fs:8(%rax),%rax computes the offset.
    check(&[0x64, 0x48, 0x8d, 0x40, 0x08], &[(Register::Rbx, 1, 1), (Register::Rax, 8, 16)]);
    check(&[0x64, 0x48, 0x8d, 0x43, 0x08], &[(Register::Rbx, 8, 8), (Register::Rax, 1, 16)]);
    // shr $0,%r12d leaves the flags and clears the upper half.
    check(&[0x41, 0xc1, 0xec, 0x00], &[(Register::R12, 1 << 63, 0), (flags, 2, 2)]);
    // leavew and enterw move two bytes, pop %sp loses what rsp was.
    check(&[0x66, 0xc9], &[(Register::Rbp, 0x7010, 0x5555), (Register::Rsp, 0x7000, 0x7012)]);
    let rbp = (Register::Rbp, 0x17010, 0x16ffe);
    check(&[0x66, 0xc8, 0x10, 0, 0], &[rbp, (Register::Rsp, 0x17000, 0x16fee)]);
    check(&[0x66, 0x5c], &[(Register::Rsp, 0x1fffe, 0x25555)]);
    // iretq pops the stack pointer.
    check(&[0x48, 0xcf], &[(Register::Rsp, 0x7000, 0x9000), (Register::Rip, 0, 8), (flags, 2, 2)]);
    // rep lods of 32-bit addresses, between two rounds.
    let (rsi, rcx) = ((Register::Rsi, 0x7000, 0x7004), (Register::Rcx, 3, 2));
    check(&[0xf3, 0x67, 0xad], &[rsi, rcx, (Register::Rax, 0, 5)]);
    // bt %rax,(%rdi) touches what is rax bits away.
    check(&[0x48, 0x0f, 0xa3, 0x07], &[(Register::Rdi, 8, 8), (Register::Rax, 1 << 20, 1 << 20)]);
}
