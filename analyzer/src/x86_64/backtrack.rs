//! From the reported IP back to the instructions that may have caused the sample.

use super::access::{self, MemoryAccess};
use super::arrival::Arrival;
use super::effect::{self, Effect, RegisterPart};
use super::flags::Condition;
use super::function::FunctionCode;
use super::memory_effect;
use super::pointer::{CodePointer, Leap};
use super::trail::{BranchCondition, Node, Trail, Way};
use crate::limit;
use crate::x86_64::edge::{Entrances, Predecessor};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Register;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Place of a sample's trigger, relative to its IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skid {
    /// At IP.
    Exact,
    /// At IP, or, of a pair that the CPU fuses and reports at its branch, the first of the pair.
    ExactOrFused,
    /// At IP, in a round of a repeated string instruction that is over.
    Round,
    /// Retired just before IP.
    AfterOne,
    /// At most so many instructions back.
    Within(u32),
    /// IP is where user code entered the kernel: behind `syscall`, or at the instruction that
    /// faulted or was interrupted.
    KernelEntry,
}

/// The code of one load object.
pub trait CodeSource {
    /// The function around `svma`.
    ///
    /// # Errors
    /// The reason why there is none.
    fn function(&mut self, svma: Svma) -> Result<Arc<FunctionCode>, Reason>;

    /// Instructions that call or jump to `entry`, as far as they are known: pointers to it are not
    /// followed.
    fn callers(&mut self, entry: Svma) -> Vec<Svma>;
}

/// An instruction that may be the trigger, and the memory that it accesses: written-out operands first.
pub type TriggerCode = (Svma, Vec<MemoryAccess>);

/// The trail of a sample at `ip`, and those of its nodes that may be the trigger, in the order of
/// [`Node::trigger`].
///
/// # Errors
/// The reason why nothing can be told.
pub fn trail(
    source: &mut dyn CodeSource,
    ip: Svma,
    skid: Skid,
) -> Result<(Trail, Vec<TriggerCode>), Reason> {
    let function = source.function(ip)?;
    let index = function.index_of(ip).ok_or(Reason::Unverifiable)?;
    let here = function.instruction(index).ok_or(Reason::Unverifiable)?;
    let reach = match skid {
        Skid::Exact => 0,
        Skid::ExactOrFused => u32::from(is_fused_branch(&function, index)),
        Skid::KernelEntry if is_behind_system_call(&function, index) => return Err(Reason::Kernel),
        Skid::KernelEntry => 0,
        Skid::Round => u32::from(is_repeated(here)),
        Skid::AfterOne => 1,
        Skid::Within(reach) => reach.min(limit::MAX_SKID),
    };
    let is_straight = reach <= 1 && is_straight(&function, index, here);
    let mut walk = Walk::new(source, reach);
    let depth = match is_straight {
        false => reach + limit::LOOKBACK,
        true if reach == 1 && walk.is_base_lost(&function, index) => reach + limit::RECOVERY,
        true => reach,
    };
    walk.go(&function, index, depth);
    if skid == Skid::Round {
        walk.keep_round();
    }
    Ok(walk.finish(is_straight))
}

/// Tells whether exactly one instruction can have run before, so that there is nothing to weigh.
fn is_straight(function: &FunctionCode, index: usize, here: &Instruction) -> bool {
    let is_entered = function.entrances(index).is_any();
    function.predecessors(index).len() <= 1 && !is_entered && !is_repeated(here)
}

/// Tells whether the instruction at `index` is the branch of a pair that the CPU fuses, of which the
/// first half touches memory.
fn is_fused_branch(function: &FunctionCode, index: usize) -> bool {
    let is_branch = function
        .instruction(index)
        .is_some_and(|here| here.flow_control() == FlowControl::ConditionalBranch);
    let [Predecessor { from, is_taken: false }] = function.predecessors(index) else {
        return false;
    };
    let before = function.instruction(*from as usize);
    is_branch && before.is_some_and(|before| is_fusible(before) && has_memory_operand(before))
}

fn has_memory_operand(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

/// Instructions that fuse with a conditional branch behind them (Intel's optimization manual,
/// section 2.6.2.1).
fn is_fusible(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::And
            | Mnemonic::Inc
            | Mnemonic::Dec
    )
}

fn is_behind_system_call(function: &FunctionCode, index: usize) -> bool {
    function.predecessors(index).iter().any(|before| {
        let before = function.instruction(before.from as usize);
        before.is_some_and(|before| {
            matches!(before.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
        })
    })
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// The walk back over instructions, breadth first, so that the nearest come first.
struct Walk<'a> {
    source: &'a mut dyn CodeSource,
    factory: InstructionInfoFactory,
    reach: u32,
    n_functions_left: usize,
    steps: Vec<BackStep>,
    of_svma: FxHashMap<u64, u16>,
    /// The calls whose callee was walked into from behind, by its entry.
    returned: FxHashMap<u64, Vec<(Arc<FunctionCode>, usize)>>,
}

/// One instruction on the walk.
struct BackStep {
    function: Arc<FunctionCode>,
    index: usize,
    instruction: Instruction,
    node: Node,
    depth: u32,
}

impl<'a> Walk<'a> {
    fn new(source: &'a mut dyn CodeSource, reach: u32) -> Self {
        Self {
            source,
            factory: InstructionInfoFactory::new(),
            reach,
            n_functions_left: limit::MAX_TRAIL_FUNCTIONS,
            steps: Vec::new(),
            of_svma: FxHashMap::default(),
            returned: FxHashMap::default(),
        }
    }

    /// Tells whether the only instruction that can have run before overwrites a register of its own operand.
    fn is_base_lost(&mut self, function: &FunctionCode, index: usize) -> bool {
        let [before] = function.predecessors(index) else { return false };
        let Some(before) = function.instruction(before.from as usize) else { return false };
        if !has_memory_operand(before) {
            return false;
        }
        let address = access::operand(before);
        let parts = [address.base, address.index].into_iter().flatten();
        let mut registers = parts.filter_map(|part| part.register);
        let effects = effect::effects(before, &mut self.factory);
        registers.any(|register| effects.iter().any(|effect| effect.writes(register)))
    }

    fn go(&mut self, function: &Arc<FunctionCode>, index: usize, max_depth: u32) {
        self.node(function, index, 0);
        let mut next = 0;
        while let Some(step) = self.steps.get_mut(next) {
            step.node.is_end = step.depth >= max_depth;
            if !step.node.is_end {
                let mut ways = Vec::new();
                if next == 0 && is_repeated(&step.instruction) {
                    ways.push(Way { from: 0, condition: None, leap: None, is_round: true });
                }
                if !self.find_ways(next, &mut ways) {
                    // One that cannot be shown may have been the one.
                    self.steps[next].node.entrances.is_unknown = true;
                }
                self.steps[next].node.ways = ways.into_boxed_slice();
            }
            next += 1;
        }
    }

    /// Leaves of the ways to IP only that from its own round.
    fn keep_round(&mut self) {
        if let Some(here) = self.steps.first_mut() {
            let rounds = here.node.ways.iter().filter(|way| way.is_round);
            here.node.ways = rounds.cloned().collect();
            here.node.entrances = Entrances::default();
        }
    }

    /// Finds what may have run before a step; `false` if not all of it.
    fn find_ways(&mut self, at: usize, ways: &mut Vec<Way>) -> bool {
        let BackStep { function, index, depth, .. } = &self.steps[at];
        let (function, index, depth) = (Arc::clone(function), *index, *depth);
        let mut is_complete = true;
        for before in function.predecessors(index) {
            let from = (&function, before.from as usize);
            is_complete &= self.add_way(from, before.is_taken, depth + 1, ways);
        }
        // Further back than any trigger, what other functions did is not looked at.
        if depth < self.reach {
            is_complete &= self.find_return(at, &function, index, ways);
            is_complete &= self.find_callers(at, &function, index, ways);
        }
        is_complete
    }

    /// Adds the way from an instruction, by its jump or past it; `false` if there are too many already.
    fn add_way(
        &mut self,
        (function, index): (&Arc<FunctionCode>, usize),
        is_taken: bool,
        depth: u32,
        ways: &mut Vec<Way>,
    ) -> bool {
        let Some(from) = self.node(function, index, depth) else { return false };
        let condition = condition(&self.steps[usize::from(from)].instruction, is_taken);
        let leap = if is_taken { leap(function, index).map(Box::new) } else { None };
        ways.push(Way { from, condition, leap, is_round: false });
        true
    }

    /// Behind a call: the callee's returns.
    fn find_return(
        &mut self,
        at: usize,
        function: &Arc<FunctionCode>,
        index: usize,
        ways: &mut Vec<Way>,
    ) -> bool {
        if !self.steps[at].node.entrances.is_return {
            return true;
        }
        let depth = self.steps[at].depth + 1;
        let Some(call) = call_before(function, index) else { return true };
        let instruction = function.instruction(call).copied().unwrap_or_default();
        if instruction.op0_kind() != OpKind::NearBranch64 {
            return true;
        }
        let entry = Svma(instruction.near_branch_target());
        let Some(callee) = self.other_function(entry) else { return true };
        let Some(exits) = exits(&callee, entry) else { return true };
        self.returned.entry(entry.0).or_default().push((Arc::clone(function), call));
        let mut is_complete = true;
        for exit in exits.returns {
            is_complete &= self.add_way((&callee, exit), true, depth, ways);
        }
        self.steps[at].node.entrances.is_return = !exits.is_closed;
        is_complete
    }

    /// At the entry: the calls that lead there.
    fn find_callers(
        &mut self,
        at: usize,
        function: &Arc<FunctionCode>,
        index: usize,
        ways: &mut Vec<Way>,
    ) -> bool {
        let entry = self.steps[at].node.svma;
        if !self.steps[at].node.entrances.is_entry {
            return true;
        }
        let depth = self.steps[at].depth + 1;
        let mut is_complete = true;
        let calls = match self.returned.get(&entry.0) {
            // Who came out of it by its return went in by the call before, unless the walk began
            // inside: that it may have is_entry still says.
            Some(calls) => calls.clone(),
            None if self.reach > 1 => {
                let mut sites = self.source.callers(entry);
                if sites.len() > limit::MAX_CALLERS {
                    sites.clear();
                }
                let found = sites.into_iter().filter(|site| *site != entry);
                let calls = found.filter_map(|site| {
                    let caller = self.other_function(site)?;
                    let call = caller.index_of(site)?;
                    let is_inside = Arc::ptr_eq(&caller, function)
                        && function.predecessors(index).iter().any(|it| it.from as usize == call);
                    let target = caller.instruction(call)?.near_branch_target();
                    (target == entry.0 && !is_inside).then_some((caller, call))
                });
                calls.collect()
            }
            None => return true,
        };
        for (caller, call) in calls {
            is_complete &= self.add_way((&caller, call), true, depth, ways);
        }
        is_complete
    }

    /// A function that the walk leads into, while there are not too many.
    fn other_function(&mut self, svma: Svma) -> Option<Arc<FunctionCode>> {
        self.n_functions_left = self.n_functions_left.checked_sub(1)?;
        self.source.function(svma).ok()
    }

    fn node(&mut self, function: &Arc<FunctionCode>, index: usize, depth: u32) -> Option<u16> {
        let instruction = function.instruction(index)?;
        if let Some(known) = self.of_svma.get(&instruction.ip()) {
            return Some(*known);
        }
        if self.steps.len() >= limit::MAX_TRAIL_NODES {
            return None;
        }
        let effects = effect::effects(instruction, &mut self.factory);
        let node = Node {
            svma: Svma(instruction.ip()),
            written: effect::written(&effects),
            effects,
            memory: memory_effect::memory_effects(instruction, &mut self.factory),
            round: is_repeated(instruction).then(|| round(instruction)),
            ways: Box::default(),
            entrances: function.entrances(index),
            is_end: true,
            trigger: None,
        };
        let id = self.steps.len() as u16;
        let (instruction, function) = (*instruction, Arc::clone(function));
        self.of_svma.insert(instruction.ip(), id);
        self.steps.push(BackStep { function, index, instruction, node, depth });
        Some(id)
    }

    /// Numbers the nodes that may be the trigger.
    fn finish(mut self, is_straight: bool) -> (Trail, Vec<TriggerCode>) {
        let reach = self.reach;
        let is_own_predecessor = self
            .steps
            .iter()
            .any(|step| step.depth < reach && step.node.ways.iter().any(|way| way.from == 0));
        let mut triggers = Vec::new();
        for step in &mut self.steps {
            let is_in_reach = match step.depth {
                0 => reach == 0 || is_own_predecessor,
                depth => depth <= reach,
            };
            if is_in_reach && let Ok(trigger) = u8::try_from(triggers.len()) {
                step.node.trigger = Some(trigger);
                let accesses = access::accesses(&step.instruction, &mut self.factory);
                triggers.push((step.node.svma, accesses));
            }
        }
        let arrivals = if reach == 1 { self.arrivals() } else { Box::default() };
        let nodes = self.steps.into_iter().map(|step| step.node).collect();
        (Trail { nodes, reach, is_straight, arrivals }, triggers)
    }

    /// The ways into the first instruction, where there are several.
    fn arrivals(&self) -> Box<[Arrival]> {
        let Some(here) = self.steps.first() else { return Box::default() };
        let mut from: Vec<u16> = here.node.ways.iter().map(|way| way.from).collect();
        from.sort_unstable();
        from.dedup();
        if from.len() < 2 {
            return Box::default();
        }
        let arrivals = from.into_iter().filter_map(|from| {
            let from = &self.steps[usize::from(from)];
            let here = Arc::ptr_eq(&from.function, &here.function).then_some(here.index);
            Some(Arrival::new(from.node.trigger?, &from.function, from.index, here))
        });
        arrivals.collect()
    }
}

/// The call that the instruction at `index` stands behind.
fn call_before(function: &FunctionCode, index: usize) -> Option<usize> {
    let here = function.instruction(index)?.ip();
    let before = index.checked_sub(1)?;
    let call = function.instruction(before)?;
    let is_call = matches!(call.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    (is_call && call.next_ip() == here).then_some(before)
}

/// Ways in which control leaves a function.
struct Exits {
    returns: Vec<usize>,
    /// By these returns only.
    is_closed: bool,
}

/// The exits of the function that begins at `entry`; `None` where they are too many to show, or
/// there are none.
fn exits(function: &FunctionCode, entry: Svma) -> Option<Exits> {
    let n = function.n_instructions();
    if n > limit::MAX_CALLEE_INSTRUCTIONS || !function.entrances(function.index_of(entry)?).is_entry
    {
        return None;
    }
    let last = (0..n).rev().find_map(|index| function.instruction(index));
    // Hand-written code may run on into the next function.
    let is_open = last.is_none_or(|last| {
        matches!(last.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    });
    let mut exits = Exits { returns: Vec::new(), is_closed: !is_open };
    for index in 0..n {
        let Some(instruction) = function.instruction(index) else { continue };
        match instruction.flow_control() {
            FlowControl::Return => exits.returns.push(index),
            // A jump through a register or memory may leave it.
            FlowControl::IndirectBranch => exits.is_closed = false,
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = Svma(instruction.near_branch_target());
                exits.is_closed &= function.index_of(target).is_some();
            }
            _ => {}
        }
    }
    (!exits.returns.is_empty() && exits.returns.len() <= limit::MAX_PREDECESSORS).then_some(exits)
}

/// Returns the condition that the flags must meet for control to have come from `before` by its jump or past it.
fn condition(before: &Instruction, is_taken: bool) -> Option<BranchCondition> {
    let condition = Condition::of(before).filter(|_| before.is_jcc_short_or_near())?;
    Some(BranchCondition { condition, is_taken })
}

/// Returns the pointer by which the jump at `index` found where it leads.
fn leap(function: &FunctionCode, index: usize) -> Option<Leap> {
    match function.pointer(index)? {
        CodePointer::Register(register) => Some(Leap::Register(register)),
        CodePointer::Memory(entry) => {
            Some(Leap::Table { entry, table: function.jump_table(index)? })
        }
    }
}

/// Returns the effects of one round of a repeated string instruction.
fn round(instruction: &Instruction) -> Box<[Effect]> {
    let size = instruction.memory_size().size() as u32;
    let is_narrow = effect::is_narrow_string(instruction);
    let lost = |register| Effect::Unfollowed(RegisterPart::whole(register));
    let stepped =
        |register| if is_narrow { lost(register) } else { Effect::Stepped { register, size } };
    let moved = (0..instruction.op_count()).filter_map(|operand| {
        Some(stepped(match instruction.op_kind(operand) {
            OpKind::MemorySegRSI | OpKind::MemorySegESI => Register::Rsi,
            OpKind::MemorySegRDI | OpKind::MemoryESRDI => Register::Rdi,
            OpKind::MemorySegEDI | OpKind::MemoryESEDI => Register::Rdi,
            _ => return None,
        }))
    });
    let count = if is_narrow {
        lost(Register::Rcx)
    } else {
        Effect::Moved { register: Register::Rcx, by: -1 }
    };
    let modified = instruction.rflags_modified();
    // `lods` is never repeated by a compiler; what it read is not followed.
    let is_load = matches!(
        instruction.mnemonic(),
        Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq
    );
    let loaded = is_load.then(|| lost(Register::Rax));
    moved.chain([count, Effect::Flags { modified }]).chain(loaded).collect()
}

#[cfg(test)]
mod tests;
