//! What a single-stepped program was like before one instruction, and the steps kept of a run.

use dataspace_analyzer::x86_64::sampled_stack::SampledStack;
use dataspace_proto::address::Avma;
use dataspace_proto::register::{N_REGISTERS, Register, RegisterAbi, Registers};
use dataspace_proto::stack::N_STACK_BYTES;
use nix::libc::user_regs_struct;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The trap flag of single-stepping, which no sample shows.
const TRAP_FLAG: u64 = 1 << 8;

/// Words of the stack that a sample has.
pub(crate) const N_STACK_WORDS: usize = N_STACK_BYTES / size_of::<u64>();

/// The registers before an instruction, after those that a sample carries `FS`, and the words from the stack pointer
/// upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(pub(crate) [u64; N_REGISTERS + 1 + N_STACK_WORDS]);

impl Default for State {
    fn default() -> Self {
        Self([0; N_REGISTERS + 1 + N_STACK_WORDS])
    }
}

impl State {
    pub(crate) fn of(regs: &user_regs_struct) -> Self {
        let mut state = Self::default();
        for register in Register::ALL {
            state.0[register as usize] = match register {
                Register::Rax => regs.rax,
                Register::Rbx => regs.rbx,
                Register::Rcx => regs.rcx,
                Register::Rdx => regs.rdx,
                Register::Rsi => regs.rsi,
                Register::Rdi => regs.rdi,
                Register::Rbp => regs.rbp,
                Register::Rsp => regs.rsp,
                Register::Rip => regs.rip,
                Register::Rflags => regs.eflags & !TRAP_FLAG,
                Register::R8 => regs.r8,
                Register::R9 => regs.r9,
                Register::R10 => regs.r10,
                Register::R11 => regs.r11,
                Register::R12 => regs.r12,
                Register::R13 => regs.r13,
                Register::R14 => regs.r14,
                Register::R15 => regs.r15,
            };
        }
        state.0[N_REGISTERS] = regs.fs_base;
        state
    }

    pub(crate) const fn get(&self, register: Register) -> u64 {
        self.0[register as usize]
    }

    /// The registers as a sample has them.
    pub(crate) fn registers(&self) -> Registers {
        let mut registers = Registers::default();
        registers.abi = RegisterAbi::Bits64;
        Register::ALL.into_iter().for_each(|register| registers.set(register, self.get(register)));
        registers
    }

    pub(crate) const fn ip(&self) -> u64 {
        self.get(Register::Rip)
    }

    pub(crate) const fn top_of_stack(&self) -> u64 {
        self.0[N_REGISTERS + 1]
    }

    /// The bytes of the stack as a sample has them.
    pub(crate) fn stack(&self) -> Vec<u8> {
        self.0[N_REGISTERS + 1..].iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn with_stack(mut self, bytes: &[u8; N_STACK_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        for (to, word) in self.0[N_REGISTERS + 1..].iter_mut().zip(words) {
            *to = u64::from_le_bytes(*word);
        }
        self
    }

    pub(crate) const fn fs_base(&self) -> u64 {
        self.0[N_REGISTERS]
    }
}

/// A program between two instructions: its registers, and the memory around the stack pointer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) registers: State,
    pub(crate) begin: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Moment {
    /// Reads the memory from below the stack pointer to above what a sample has of the stack.
    pub(crate) fn of(registers: State, memory: &File) -> Self {
        const BELOW: u64 = 256;
        let stack_pointer = registers.get(Register::Rsp);
        // It may be the first address of a mapping.
        for begin in [stack_pointer.wrapping_sub(BELOW), stack_pointer] {
            let mut bytes = vec![0; BELOW as usize + 2 * N_STACK_BYTES];
            if let Ok(n) = memory.read_at(&mut bytes, begin) {
                bytes.truncate(n);
                return Self { registers, begin, bytes };
            }
        }
        Self { registers, ..Self::default() }
    }

    /// The stack as a sample has it.
    pub(crate) fn stack(&self) -> SampledStack<'_> {
        let begin = self.registers.get(Register::Rsp);
        let into = begin.wrapping_sub(self.begin) as usize;
        let bytes = self.bytes.get(into..).unwrap_or_default();
        SampledStack::new(Avma(begin), bytes)
    }

    /// The four bytes at an address, where they were read.
    pub(crate) fn word_at(&self, at: u64) -> Option<u32> {
        let into = usize::try_from(at.wrapping_sub(self.begin)).ok()?;
        self.bytes.get(into..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// One executed instruction that samples are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Where the instruction before it in time was.
    pub(crate) previous_ip: u64,
    /// Before the instruction.
    pub(crate) at: State,
    /// Before the next one.
    pub(crate) next: State,
    /// Some instructions later; the number is drawn evenly from 1 to [`MAX_SKID`].
    pub(crate) later: State,
    /// Where the instructions from the next one to that before `later` were.
    pub(crate) between: [u64; MAX_SKID - 1],
}

/// The largest skid of a sample.
pub(crate) const MAX_SKID: usize = 8;

impl Pick {
    /// The pick in the middle of what was executed: its first state is that before the pick.
    pub(crate) fn of(window: &VecDeque<State>, random: &mut Random) -> Self {
        let skid = 1 + random.below(MAX_SKID as u64) as usize;
        let mut between = [0; MAX_SKID - 1];
        for (ip, state) in between.iter_mut().zip(window.range(2..1 + skid)) {
            *ip = state.ip();
        }
        let (previous_ip, at, next) = (window[0].ip(), window[1], window[2]);
        Self { previous_ip, at, next, later: window[1 + skid], between }
    }
}

/// An even choice of `n_wanted` of as many items as come (Vitter's algorithm R).
#[derive(Debug)]
pub(crate) struct Reservoir {
    n_wanted: usize,
    n_seen: u64,
    pub(crate) picks: Vec<Pick>,
}

impl Reservoir {
    pub(crate) fn new(n_wanted: usize) -> Self {
        Self { n_wanted, n_seen: 0, picks: Vec::new() }
    }

    pub(crate) fn offer(&mut self, random: &mut Random, pick: &Pick) {
        self.n_seen += 1;
        if self.picks.len() < self.n_wanted {
            self.picks.push(*pick);
            return;
        }
        let slot = random.below(self.n_seen) as usize;
        if let Some(kept) = self.picks.get_mut(slot) {
            *kept = *pick;
        }
    }
}

/// Random numbers that are the same in each run (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(end)) >> 64) as u64
    }
}
