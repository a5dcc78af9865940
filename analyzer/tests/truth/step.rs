//! What a single-stepped program was like before one instruction, and the steps kept of a run.

use dataspace_proto::register::{N_REGISTERS, Register, RegisterAbi, Registers};
use nix::libc::user_regs_struct;
use std::collections::VecDeque;

/// The trap flag of single-stepping, which no sample shows.
const TRAP_FLAG: u64 = 1 << 8;

/// The registers before an instruction, after those that a sample carries `FS`, and the word that the stack pointer
/// leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) [u64; N_REGISTERS + 2]);

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

    pub(crate) const fn with_top_of_stack(mut self, word: u64) -> Self {
        self.0[N_REGISTERS + 1] = word;
        self
    }

    pub(crate) const fn fs_base(&self) -> u64 {
        self.0[N_REGISTERS]
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
