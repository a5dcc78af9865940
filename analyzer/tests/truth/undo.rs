//! Whether stepping back over instructions gives what the processor had before them.

use crate::truth::step::{Moment, Random, State};
use crate::truth::trace::{CodeBytes, decode};
use crate::truth::tracee::{self, Outcome};
use dataspace_analyzer::x86_64::backtrack::{self, CodeSource, Skid};
use dataspace_analyzer::x86_64::effect::{Effect, RegisterPart};
use dataspace_analyzer::x86_64::flags::{Condition, FlagSet};
use dataspace_analyzer::x86_64::function::FunctionCode;
use dataspace_analyzer::x86_64::image_bytes::ImageBytes;
use dataspace_analyzer::x86_64::memory_effect::MemoryEffect;
use dataspace_analyzer::x86_64::sampled_stack::SampledStack;
use dataspace_analyzer::x86_64::state::{self, Contradiction};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Register;
use dataspace_proto::stack::N_STACK_BYTES;
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
    memory: Box<[MemoryEffect]>,
    /// One round of a repeated string instruction.
    round: Option<Box<[Effect]>>,
}

/// One executed instruction.
struct Step {
    undoing: Arc<Undoing>,
    before: Moment,
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
    pub(crate) fn follow(&mut self, bytes: &CodeBytes, before: &Moment, after: &Moment) {
        let (ip, next_ip) = (before.registers.ip(), after.registers.ip());
        let known = self.known.entry(ip);
        let undoing = known.or_insert_with(|| Arc::new(Undoing::of(ip, bytes)));
        let step = Step { undoing: Arc::clone(undoing), before: before.clone(), next_ip };
        self.one(&step, after);
        if self.chain.back().is_some_and(|last| last.next_ip != ip) {
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
    pub(crate) fn alone(&mut self, bytes: &CodeBytes, before: &Moment, after: &Moment) {
        let undoing = Arc::new(Undoing::of(before.registers.ip(), bytes));
        let next_ip = after.registers.ip();
        self.one(&Step { undoing, before: before.clone(), next_ip }, after);
    }

    /// Undoes one step with all registers known, and with some.
    fn one(&mut self, step: &Step, after: &Moment) {
        let stack = after.stack();
        let mut fault = None;
        let mut is_lost = false;
        for effects in step.effects() {
            for thread_base in [None, Some(after.registers.fs_base())] {
                let mut state = sampled(after, thread_base);
                let undone = step.undo(effects, &mut state, &stack);
                is_lost |= GENERAL.iter().any(|register| state.get(*register).is_none());
                fault = fault.or_else(|| self.fault(undone, &state, step, after));
            }
            for _ in 0..2 {
                let mut state = sampled(after, None);
                self.forget(&mut state);
                let undone = step.undo(effects, &mut state, &stack);
                fault = fault.or_else(|| self.fault(undone, &state, step, after));
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
    fn all(&mut self, after: &Moment) {
        let mut state = sampled(after, None);
        let mut found = None;
        for (idx, step) in self.chain.iter().enumerate().rev() {
            let effects = step.effects().next().unwrap_or_default();
            let undone = step.undo(effects, &mut state, &after.stack());
            if let Some(fault) = self.fault(undone, &state, step, after) {
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
        sampled: &Moment,
    ) -> Option<String> {
        let before = &step.before.registers;
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
        let begin = sampled.registers.get(Register::Rsp);
        let stack = sampled.stack();
        for at in (begin..begin.saturating_add(N_STACK_BYTES as u64)).step_by(4) {
            let kept = stack.value(state.kept(), Avma(at), 4);
            let truth = step.before.word_at(at).map(u64::from);
            if kept.zip(truth).is_some_and(|(kept, truth)| kept != truth) {
                return Some(format!("memory at {at:#x} was {truth:x?}, not {kept:x?}"));
            }
        }
        // The loader sets the base once, by a system call.
        let has_base =
            self.has_thread_base && step.undoing.instruction.mnemonic() != Mnemonic::Syscall;
        let is_base = state.thread_base().is_none_or(|base| base == before.fs_base());
        (has_base && !is_base).then(|| "another thread base".to_owned())
    }

    fn describe(&mut self, fault: &str, step: &Step, after: &Moment) {
        let Undoing { bytes, instruction, effects, memory, .. } = &*step.undoing;
        let form = self.forms.entry(instruction.code()).or_default();
        form.n_wrong += 1;
        if form.n_wrong <= MAX_DESCRIBED {
            let (before, after) = (&step.before.registers, &after.registers);
            let changed = Register::ALL.into_iter().filter(|it| before.get(*it) != after.get(*it));
            let changed: Vec<_> = changed
                .map(|it| format!("{it:?} {:#x} to {:#x}", before.get(it), after.get(it)))
                .collect();
            let code = instruction.code();
            self.wrong.push(format!(
                "{code:?} {:02x?}: {fault}: {} by {effects:?}, {memory:?}",
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
        let mut before = Moment::of(tracee.state()?, &tracee.memory);
        for n_done in 0..n_steps {
            let ip = before.registers.ip();
            let bytes = code.entry(ip).or_insert_with(|| {
                let mut bytes = CodeBytes::default();
                // The last instruction of a mapping may be shorter than the longest one there is.
                tracee.memory.read_at(&mut bytes, ip).map(|_| bytes)
            });
            let bytes = *bytes.as_ref().map_err(|error| Error::from(error.kind()))?;
            let outcome = tracee.step(signal.take())?;
            if outcome == Outcome::Ended {
                return Ok(n_done);
            }
            let after = Moment::of(tracee.state()?, &tracee.memory);
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
        let found = node.map(|node| (node.effects, node.memory, node.round));
        let (effects, memory, round) = found.unwrap_or_default();
        Self { bytes: *bytes, instruction, effects, memory, round }
    }
}

impl Step {
    /// The effects that the step can be undone by.
    fn effects(&self) -> impl Iterator<Item = &[Effect]> {
        let Undoing { instruction, effects, round, .. } = &*self.undoing;
        let is_round = round.is_some() && self.next_ip == self.before.registers.ip();
        let width = if is_32_bit_string(instruction) { 32 } else { 64 };
        let count = self.before.registers.get(Register::Rcx) & u64::MAX >> (64 - width);
        let whole = (!is_round).then_some(&**effects);
        whole.into_iter().chain(round.as_deref().filter(|_| count != 0))
    }

    fn undo(
        &self,
        effects: &[Effect],
        state: &mut state::State,
        stack: &SampledStack<'_>,
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
        state.undo_loads(&self.undoing.memory, stack)?;
        state.undo(effects)?;
        state.undo_stores(&self.undoing.memory, stack)
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
fn sampled(moment: &Moment, thread_base: Option<u64>) -> state::State {
    let mut state = state::State::sampled(&moment.registers.registers(), 0, thread_base);
    state.keep(moment.stack().cells());
    state
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
