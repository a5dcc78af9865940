//! Single instructions that a real processor executes with registers of our choice.

use crate::truth::build::{self, Symbols};
use crate::truth::step::{Moment, Random, State};
use crate::truth::trace::{CodeBytes, MAX_INSTRUCTION_BYTES, decode};
use crate::truth::tracee::{self, Outcome, Tracee};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use nix::libc::user_regs_struct;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

/// Bytes of the program's memory that operands point into; twice as many are on each side.
const TARGET_BYTES: u64 = 1 << 16;

/// Status and direction flags.
const FLAGS: u64 = 0xcd5;

/// Opcodes that the tables have one of, and programs many: `not` to `idiv`, shifts, immediates, `lea`,
/// `inc` to `push`, `xchg`.
const ARITHMETIC: [u8; 8] = [0xf6, 0xf7, 0xd1, 0xc1, 0x83, 0x8d, 0xff, 0x87];

/// A program whose code and registers are replaced for each instruction.
pub(crate) struct Sandbox {
    tracee: Tracee,
    registers: user_regs_struct,
    data: u64,
    random: Random,
}

/// An instruction that was executed.
pub(crate) struct Executed {
    pub(crate) bytes: CodeBytes,
    pub(crate) before: Moment,
    pub(crate) after: Moment,
}

impl Sandbox {
    /// Compiles the program in `dir`, and gives what `work` makes of the sandbox in it.
    pub(crate) fn with<T>(
        dir: &Path,
        seed: u64,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let program = dir.join("sandbox");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sandbox.c");
        // Where addresses of 32 bits reach it.
        let flags = ["-O1", "-fno-pie", "-no-pie", "-o"];
        build::succeed(Command::new("gcc").args(flags).arg(&program).arg(source))?;
        let symbols = Symbols::read(&program)?;
        let address = |name| {
            let found = symbols.address(|it| it == name);
            found.ok_or_else(|| Error::other(format!("no symbol {name}")))
        };
        let (main, memory) = (address("main")?, address("memory")?);
        tracee::with(&program, Some(main), |tracee| {
            let mut sandbox = Self::new(tracee, memory, seed)?;
            let result = work(&mut sandbox)?;
            sandbox.tracee.kill()?;
            sandbox.tracee.step(None)?;
            Ok(result)
        })
    }

    fn new(tracee: Tracee, memory: u64, seed: u64) -> Result<Self> {
        let mut random = Random::seeded(seed);
        let bytes: Vec<u8> = (0..5 * TARGET_BYTES).map(|_| random.below(256) as u8).collect();
        tracee.memory.write_all_at(&bytes, memory)?;
        let registers = tracee.registers()?;
        Ok(Self { tracee, registers, data: memory + 2 * TARGET_BYTES, random })
    }

    /// Executes one more instruction; `None` where the processor refused it.
    pub(crate) fn execute(&mut self) -> Result<Option<Executed>> {
        let bytes = loop {
            let bytes = self.code();
            if is_harmless(&decode(self.registers.rip, &bytes)) {
                break bytes;
            }
        };
        let registers = self.chosen_registers(&decode(self.registers.rip, &bytes));
        self.tracee.memory.write_all_at(&bytes, self.registers.rip)?;
        self.tracee.set_registers(registers)?;
        let before = Moment::of(State::of(&registers), &self.tracee.memory);
        match self.tracee.step(None)? {
            Outcome::Stepped => {}
            Outcome::Signalled(_) => return Ok(None),
            Outcome::Ended => return Err(Error::other("the sandbox ended")),
        }
        let after = Moment::of(self.tracee.state()?, &self.tracee.memory);
        Ok(Some(Executed { bytes, before, after }))
    }

    /// Bytes that are often an instruction of general registers.
    fn code(&mut self) -> CodeBytes {
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        for byte in &mut bytes {
            *byte = self.random.below(256) as u8;
        }
        let mut at = 0;
        let mut put = |byte: u8| {
            bytes[at] = byte;
            at += 1;
        };
        match self.random.below(24) {
            0..3 => put(0x66),
            3 => put(0x67),
            4..6 => put(0xf2),
            6..8 => put(0xf3),
            8 => put(0x64),
            _ => {}
        }
        match self.random.below(8) {
            0..3 => put(0x48),
            3..6 => put(0x40 + self.random.below(16) as u8),
            _ => {}
        }
        match self.random.below(16) {
            0..5 => put(0x0f),
            // VEX of BMI.
            5 => {
                put(0xc4);
                put(0xe2);
                put(0x78 + self.random.below(4) as u8 + 0x80 * self.random.below(2) as u8);
            }
            6 => put(ARITHMETIC[self.random.below(8) as usize]),
            7 => put(0xa4 + self.random.below(12) as u8),
            _ => {}
        }
        bytes
    }

    /// Registers with edge values, and such that the operand lies in the program's data.
    fn chosen_registers(&mut self, instruction: &Instruction) -> user_regs_struct {
        let mut registers = self.registers;
        for number in 0..16 {
            *general(&mut registers, number) = self.value();
        }
        registers.eflags = 0x202 | self.random.below(1 << 12) & FLAGS;
        // A step is to come back from the kernel as it went.
        registers.orig_rax = u64::MAX;
        if self.random.below(8) != 0 {
            registers.rsp = self.address() & !7;
        }
        self.aim(instruction, &mut registers);
        registers
    }

    fn value(&mut self) -> u64 {
        const EDGES: [u64; 16] = [
            0,
            1,
            2,
            7,
            u64::MAX,
            i64::MAX as u64,
            i64::MIN as u64,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            0x80,
            0x7f,
            0xff,
            0x8000,
            0xffff_ffff_8000_0000,
        ];
        match self.random.below(6) {
            0 | 1 => EDGES[self.random.below(16) as usize],
            2 => self.random.below(64),
            3 => self.address(),
            4 => self.random.below(1 << 32),
            _ => self.random.below(u64::MAX),
        }
    }

    fn address(&mut self) -> u64 {
        self.data + self.random.below(TARGET_BYTES)
    }

    /// Makes base or index such that the operand lies in the program's data.
    fn aim(&mut self, instruction: &Instruction, registers: &mut user_regs_struct) {
        let on_stack = registers.rsp.wrapping_add(self.random.below(256));
        let target = if self.random.below(2) == 0 { on_stack } else { self.address() };
        registers.rsi = if self.random.below(4) == 0 { registers.rsi } else { self.address() };
        registers.rdi = if self.random.below(4) == 0 { registers.rdi } else { self.address() };
        if self.random.below(2) == 0 {
            registers.rcx = self.random.below(4);
        }
        let has_memory =
            (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
        let base = instruction.memory_base();
        if !has_memory || !base.is_gpr() {
            return;
        }
        let index = instruction.memory_index();
        let rest = target.wrapping_sub(instruction.memory_displacement64());
        if index.is_gpr() && index.full_register() != base.full_register() {
            let small = self.random.below(64);
            *general(registers, index.full_register() as usize - Register::RAX as usize) = small;
            let scaled = small * u64::from(instruction.memory_index_scale());
            let value = rest.wrapping_sub(scaled);
            *general(registers, base.full_register() as usize - Register::RAX as usize) = value;
        } else {
            *general(registers, base.full_register() as usize - Register::RAX as usize) = rest;
        }
    }
}

/// A register by its number in instructions.
fn general(registers: &mut user_regs_struct, number: usize) -> &mut u64 {
    match number {
        0 => &mut registers.rax,
        1 => &mut registers.rcx,
        2 => &mut registers.rdx,
        3 => &mut registers.rbx,
        4 => &mut registers.rsp,
        5 => &mut registers.rbp,
        6 => &mut registers.rsi,
        7 => &mut registers.rdi,
        8 => &mut registers.r8,
        9 => &mut registers.r9,
        10 => &mut registers.r10,
        11 => &mut registers.r11,
        12 => &mut registers.r12,
        13 => &mut registers.r13,
        14 => &mut registers.r14,
        _ => &mut registers.r15,
    }
}

/// Whether it may be executed: it neither enters the kernel nor changes what the next registers do
/// not set again.
fn is_harmless(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let is_banned = matches!(
        instruction.mnemonic(),
        M::INVALID
            | M::Syscall
            | M::Sysenter
            | M::Sysexit
            | M::Sysret
            | M::Wrpkru
            | M::Xrstor
            | M::Xrstor64
            | M::Xrstors
            | M::Fxrstor
            | M::Fxrstor64
            | M::Fldcw
            | M::Fldenv
            | M::Frstor
            | M::Vmcall
            | M::Vmmcall
            | M::Vmfunc
            | M::Lss
            | M::Lfs
            | M::Lgs
            | M::Mwait
            | M::Monitor
            | M::Umwait
            | M::Tpause
            // The kernel stands in for these, and then the next instruction is executed too
            // (arch/x86/kernel/umip.c).
            | M::Sldt
            | M::Str
            | M::Smsw
            | M::Sgdt
            | M::Sidt
    );
    let is_interrupt =
        matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::Exception);
    let writes_segment = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_segment_register();
    // It reads its own address from where the psABI puts it; here is nothing.
    let is_thread_base =
        instruction.memory_segment() == Register::FS && instruction.memory_base() == Register::None;
    !is_banned
        && !is_interrupt
        && !writes_segment
        && !is_thread_base
        && !instruction.is_privileged()
}
