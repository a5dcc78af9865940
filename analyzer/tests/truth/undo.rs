//! Whether stepping back over instructions gives what the processor had before them.

use crate::truth::step::{Random, State};
use crate::truth::trace::{CodeBytes, decode};
use crate::truth::tracee::{self, Outcome};
use dataspace_analyzer::x86_64::backtrack::{self, CodeSource, Skid};
use dataspace_analyzer::x86_64::effect::{Effect, RegisterPart};
use dataspace_analyzer::x86_64::flags::{Condition, FlagSet};
use dataspace_analyzer::x86_64::function::FunctionCode;
use dataspace_analyzer::x86_64::image_bytes::ImageBytes;
use dataspace_analyzer::x86_64::state::{self, Contradiction};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Register;
use iced_x86::{Code, Instruction, Mnemonic};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// Steps that are undone one after the other.
const CHAIN_LEN: usize = 24;

/// Steps between two chains.
const CHAIN_INTERVAL: u64 = 8;

/// Wrong answers that are described, of one form.
const MAX_DESCRIBED: u64 = 3;

/// The registers that instructions read and write.
const GENERAL: [Register; 16] = [
    Register::Rax,
    Register::Rbx,
    Register::Rcx,
    Register::Rdx,
    Register::Rsi,
    Register::Rdi,
    Register::Rbp,
    Register::Rsp,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// What was found of one form of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) n_steps: u64,
    /// Steps after which a register was known, and before which it is not.
    pub(crate) n_lost: u64,
    /// Steps before which a register or flag is said to have been what it was not.
    pub(crate) n_wrong: u64,
}

/// What an instruction does to the registers, by the code under test.
struct Undoing {
    bytes: CodeBytes,
    instruction: Instruction,
    effects: Box<[Effect]>,
    /// One round of a repeated string instruction.
    round: Option<Box<[Effect]>>,
}

/// One executed instruction.
struct Step {
    undoing: Arc<Undoing>,
    before: State,
    /// Where it led.
    next_ip: u64,
}

/// The judge of a run.
pub(crate) struct Judge {
    pub(crate) forms: HashMap<Code, Form>,
    pub(crate) wrong: Vec<String>,
    /// `%fs:0` holds its own address, as the psABI has it.
    pub(crate) has_thread_base: bool,
    /// By place: code is not written to while it runs.
    known: HashMap<u64, Arc<Undoing>>,
    chain: VecDeque<Step>,
    random: Random,
    n_steps: u64,
}

impl Judge {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            forms: HashMap::new(),
            wrong: Vec::new(),
            has_thread_base: true,
            known: HashMap::new(),
            chain: VecDeque::new(),
            random: Random::seeded(seed),
            n_steps: 0,
        }
    }

    /// A step of a program that runs on and on.
    pub(crate) fn follow(&mut self, bytes: &CodeBytes, before: &State, after: &State) {
        let known = self.known.entry(before.ip());
        let undoing = known.or_insert_with(|| Arc::new(Undoing::of(before.ip(), bytes)));
        let step = Step { undoing: Arc::clone(undoing), before: *before, next_ip: after.ip() };
        self.one(&step, after);
        if self.chain.back().is_some_and(|last| last.next_ip != before.ip()) {
            self.chain.clear();
        }
        self.chain.push_back(step);
        if self.chain.len() > CHAIN_LEN {
            self.chain.pop_front();
        }
        self.n_steps += 1;
        if self.n_steps.is_multiple_of(CHAIN_INTERVAL) {
            self.all(after);
        }
    }

    /// Another program follows.
    pub(crate) fn leave(&mut self) {
        self.known.clear();
        self.chain.clear();
    }

    /// A step on its own.
    pub(crate) fn alone(&mut self, bytes: &CodeBytes, before: &State, after: &State) {
        let undoing = Arc::new(Undoing::of(before.ip(), bytes));
        self.one(&Step { undoing, before: *before, next_ip: after.ip() }, after);
    }

    /// Undoes one step with all registers known, and with some.
    fn one(&mut self, step: &Step, after: &State) {
        let mut fault = None;
        let mut is_lost = false;
        for effects in step.effects() {
            for thread_base in [None, Some(after.fs_base())] {
                let mut state = sampled(after, thread_base);
                let undone = step.undo(effects, &mut state);
                is_lost |= GENERAL.iter().any(|register| state.get(*register).is_none());
                fault = fault.or_else(|| self.fault(undone, &state, step));
            }
            for _ in 0..2 {
                let mut state = sampled(after, None);
                self.forget(&mut state);
                let undone = step.undo(effects, &mut state);
                fault = fault.or_else(|| self.fault(undone, &state, step));
            }
        }
        let form = self.forms.entry(step.undoing.instruction.code()).or_default();
        form.n_steps += 1;
        form.n_lost += u64::from(is_lost);
        if let Some(fault) = fault {
            self.describe(&fault, step, after);
        }
    }

    /// Undoes all steps that are kept, one after the other.
    fn all(&mut self, after: &State) {
        let mut state = sampled(after, None);
        let mut found = None;
        for (idx, step) in self.chain.iter().enumerate().rev() {
            let effects = step.effects().next().unwrap_or_default();
            let undone = step.undo(effects, &mut state);
            if let Some(fault) = self.fault(undone, &state, step) {
                found = Some((idx, fault));
                break;
            }
        }
        if let Some((idx, fault)) = found {
            let chain = std::mem::take(&mut self.chain);
            let next = chain.get(idx + 1).map_or(after, |next| &next.before);
            let n_back = chain.len() - idx;
            self.describe(&format!("{fault}, {n_back} back"), &chain[idx], next);
        }
    }

    /// Makes some registers and parts of them unknown.
    fn forget(&mut self, state: &mut state::State) {
        for register in GENERAL {
            let whole = RegisterPart::whole(register);
            let part = match self.random.below(8) {
                0 => whole,
                1 => RegisterPart { width_bits: 8, ..whole },
                2 => RegisterPart { width_bits: 16, ..whole },
                3 => RegisterPart { width_bits: 8, is_high: true, ..whole },
                _ => continue,
            };
            let _ = state.undo(&[Effect::Unfollowed(part)]);
        }
    }

    /// What is wrong with `state`, which is said to be that before `step`.
    fn fault(
        &self,
        undone: std::result::Result<(), Contradiction>,
        state: &state::State,
        step: &Step,
    ) -> Option<String> {
        let before = &step.before;
        if undone.is_err() {
            return Some("said to be impossible".to_owned());
        }
        for register in GENERAL {
            let truth = before.get(register);
            if { *state }.assume_value(register, truth).is_err() {
                return Some(format!("{register:?} was {truth:#x}"));
            }
        }
        let flags = FlagSet::of_rflags(before.get(Register::Rflags));
        if state.flags().and(flags).is_impossible() {
            return Some("other flags".to_owned());
        }
        if !agrees_on_direction(state, before) {
            return Some("another direction".to_owned());
        }
        // The loader sets the base once, by a system call.
        let has_base =
            self.has_thread_base && step.undoing.instruction.mnemonic() != Mnemonic::Syscall;
        let is_base = state.thread_base().is_none_or(|base| base == before.fs_base());
        (has_base && !is_base).then(|| "another thread base".to_owned())
    }

    fn describe(&mut self, fault: &str, step: &Step, after: &State) {
        let Undoing { bytes, instruction, effects, .. } = &*step.undoing;
        let form = self.forms.entry(instruction.code()).or_default();
        form.n_wrong += 1;
        if form.n_wrong <= MAX_DESCRIBED {
            let before = &step.before;
            let changed = Register::ALL.into_iter().filter(|it| before.get(*it) != after.get(*it));
            let changed: Vec<_> = changed
                .map(|it| format!("{it:?} {:#x} to {:#x}", before.get(it), after.get(it)))
                .collect();
            let code = instruction.code();
            self.wrong.push(format!(
                "{code:?} {:02x?}: {fault}: {} by {effects:?}",
                &bytes[..instruction.len()],
                changed.join(", ")
            ));
        }
    }

    /// The steps by mnemonic.
    pub(crate) fn by_mnemonic(&self) -> BTreeMap<String, Form> {
        let mut sums = BTreeMap::<String, Form>::new();
        for (code, form) in &self.forms {
            let sum = sums.entry(format!("{:?}", code.mnemonic()).to_lowercase()).or_default();
            sum.n_steps += form.n_steps;
            sum.n_lost += form.n_lost;
            sum.n_wrong += form.n_wrong;
        }
        sums
    }
}

/// Executes at most `n_steps` instructions of `program`, from `main` or the first one on.
pub(crate) fn walk(
    program: &Path,
    main: Option<u64>,
    n_steps: u64,
    judge: &mut Judge,
) -> Result<u64> {
    tracee::with(program, main, |tracee| {
        let mut code = HashMap::new();
        let mut signal = None;
        if main.is_none() {
            // What exec answers is put into its register on the way out of the kernel.
            tracee.step(None)?;
        }
        let mut before = tracee.state()?;
        for n_done in 0..n_steps {
            let bytes = code.entry(before.ip()).or_insert_with(|| {
                let mut bytes = CodeBytes::default();
                // The last instruction of a mapping may be shorter than the longest one there is.
                tracee.memory.read_at(&mut bytes, before.ip()).map(|_| bytes)
            });
            let bytes = *bytes.as_ref().map_err(|error| Error::from(error.kind()))?;
            let outcome = tracee.step(signal.take())?;
            if outcome == Outcome::Ended {
                return Ok(n_done);
            }
            let after = tracee.state()?;
            match outcome {
                Outcome::Signalled(other) => signal = Some(other),
                _ => judge.follow(&bytes, &before, &after),
            }
            before = after;
        }
        tracee.kill()?;
        tracee.step(None)?;
        Ok(n_steps)
    })
}

impl Undoing {
    fn of(ip: u64, bytes: &CodeBytes) -> Self {
        let instruction = decode(ip, bytes);
        let mut code = OneInstruction(ip, &bytes[..instruction.len()]);
        let node = backtrack::trail(&mut code, Svma(ip), Skid::Round);
        let node = node.ok().and_then(|(trail, _)| trail.nodes.into_iter().next());
        let (effects, round) = node.map(|node| (node.effects, node.round)).unwrap_or_default();
        Self { bytes: *bytes, instruction, effects, round }
    }
}

impl Step {
    /// The effects that the step can be undone by.
    fn effects(&self) -> impl Iterator<Item = &[Effect]> {
        let Undoing { instruction, effects, round, .. } = &*self.undoing;
        let is_round = round.is_some() && self.next_ip == self.before.ip();
        let width = if is_32_bit_string(instruction) { 32 } else { 64 };
        let count = self.before.get(Register::Rcx) & u64::MAX >> (64 - width);
        let whole = (!is_round).then_some(&**effects);
        whole.into_iter().chain(round.as_deref().filter(|_| count != 0))
    }

    fn undo(
        &self,
        effects: &[Effect],
        state: &mut state::State,
    ) -> std::result::Result<(), Contradiction> {
        let instruction = &self.undoing.instruction;
        // 0 is for none.
        let code = (instruction.condition_code() as usize).checked_sub(1);
        let target = instruction.near_branch_target();
        if let Some(code) = code.filter(|_| instruction.is_jcc_short_or_near())
            && target != instruction.next_ip()
        {
            state.assume(state.flags().given(Condition::ALL[code], self.next_ip == target))?;
        }
        state.undo(effects)
    }
}

fn is_32_bit_string(instruction: &Instruction) -> bool {
    use iced_x86::OpKind;
    (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::MemorySegESI | OpKind::MemorySegEDI | OpKind::MemoryESEDI
        )
    })
}

/// Which way string instructions move is asked of one.
fn agrees_on_direction(state: &state::State, before: &State) -> bool {
    const DIRECTION: u64 = 1 << 10;
    let (register, size) = (Register::Rsi, 1);
    let mut state = *state;
    let undone = state
        .assume_value(register, before.get(register))
        .and_then(|()| state.undo(&[Effect::Stepped { register, size }]));
    let is_downward = before.get(Register::Rflags) & DIRECTION != 0;
    let by = if is_downward { 1 } else { u64::MAX };
    let expected = before.get(register).wrapping_add(by);
    undone.is_ok() && state.get(register).is_none_or(|found| found == expected)
}

/// The registers as a sample has them.
fn sampled(state: &State, thread_base: Option<u64>) -> state::State {
    state::State::sampled(&state.registers(), 0, thread_base)
}

/// Code of one instruction, to ask what its round does.
pub(crate) struct OneInstruction<'a>(pub(crate) u64, pub(crate) &'a [u8]);

impl CodeSource for OneInstruction<'_> {
    fn function(&mut self, _: Svma) -> std::result::Result<Arc<FunctionCode>, Reason> {
        Ok(Arc::new(FunctionCode::decode(Svma(self.0), self.1, self)))
    }

    fn callers(&mut self, _: Svma) -> Vec<Svma> {
        Vec::new()
    }
}

impl ImageBytes for OneInstruction<'_> {
    fn bytes_at(&self, _: Svma, _: usize) -> Option<Vec<u8>> {
        None
    }
}
