//! The walk back along a site's trail with one sample's registers: which instructions can have been
//! the trigger, and what the registers were before it.

mod points;
mod recovery;

use self::points::{PointIdx, Points};
use crate::index::site::{Past, Trigger, TypedAccess};
use crate::limit;
use crate::x86_64::access::Role;
use crate::x86_64::edge::Entrances;
use crate::x86_64::sampled_stack::{KeptCells, SampledStack};
use crate::x86_64::state::{Contradiction, State};
use crate::x86_64::trail::{Node, Way};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::register::Register;

/// The part of a sample that tells of its trigger's access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledAccess {
    /// The data address.
    pub(crate) addr: Option<Avma>,
    /// Load or store, where the hardware says.
    pub(crate) access: Option<Access>,
    /// Kind of the event.
    pub(crate) kind: EventKind,
}

/// An instruction that can have been the trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survivor {
    /// Its number, and which of its accesses; `None` for one that touches nothing.
    pub(crate) trigger: u8,
    pub(crate) access: Option<u8>,
    /// The point before it.
    before: PointIdx,
    /// Its operand was at the sampled address.
    pub(crate) is_confirmed: bool,
}

impl Survivor {
    /// The trigger and the access that it stands for.
    pub(crate) fn chosen<'a>(&self, past: &'a Past) -> Option<(&'a Trigger, &'a TypedAccess)> {
        let trigger = past.triggers.get(usize::from(self.trigger))?;
        Some((trigger, trigger.accesses.get(usize::from(self.access?))?))
    }
}

/// The state of one walk; kept from sample to sample so that none allocates.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) survivors: Vec<Survivor>,
    points: Points,
    /// Ways out of the function that the trigger may have been on.
    pub(crate) outside: Entrances,
    /// The stack pointer after a call that the trigger may have been the callee's return of.
    pub(crate) returned: Option<u64>,
    /// There were more survivors than are kept.
    pub(crate) is_cut: bool,
    n_steps_left: u32,
}

impl Search {
    /// Walks back from a sample, whose registers `begin` sets, if they can have been these.
    // A second caller, for few samples, must cost the first one nothing: 140 -> 124 ns a sample with the two others.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        past: &Past,
        begin: impl Fn(&mut State) -> Result<(), Contradiction>,
        evidence: &SampledAccess,
        stack: SampledStack<'_>,
    ) {
        let walk = WalkBack { past, evidence, stack };
        self.walk_back(&walk, &begin, stack.cells());
        if self.survivors.is_empty() && !self.outside.is_any() && !stack.is_empty() {
            // Another thread has written to the stack between the trigger and the sample.
            self.walk_back(&walk, &begin, KeptCells::NONE);
        }
    }

    #[inline(always)]
    fn walk_back(
        &mut self,
        walk: &WalkBack<'_>,
        begin: impl Fn(&mut State) -> Result<(), Contradiction>,
        kept: KeptCells,
    ) {
        let past = walk.past;
        self.survivors.clear();
        self.points.drop_from(PointIdx::SAMPLE);
        self.outside = Entrances::default();
        self.returned = None;
        self.is_cut = false;
        self.n_steps_left = limit::MAX_STEPS_A_SAMPLE;
        let Some(here) = past.trail.nodes.first() else { return };
        let state = &mut self.points[PointIdx::SAMPLE];
        if begin(state).is_err() {
            return;
        }
        state.keep(kept);
        if past.trail.reach == 0 {
            let accesses = &walk.trigger(here).map_or(&[][..], |(_, accesses)| accesses);
            walk.settle(here, state, accesses);
            self.record(walk, here, PointIdx::SAMPLE);
        } else {
            self.explore(walk, here, (PointIdx::SAMPLE, true), 0);
        }
    }

    /// Tells whether an operand was at the sampled address.
    pub(crate) fn has_confirmed(&self) -> bool {
        self.survivors.iter().any(|survivor| survivor.is_confirmed)
    }

    /// Drops what touches nothing, and the other operands of instructions of which one was at the
    /// sampled address.
    pub(crate) fn drop_beside_confirmed(&mut self) {
        let Self { survivors, .. } = self;
        let mut confirmed = [false; 1 << u8::BITS];
        for survivor in survivors.iter().filter(|survivor| survivor.is_confirmed) {
            confirmed[usize::from(survivor.trigger)] = true;
        }
        survivors.retain(|survivor| {
            let is_beside = !survivor.is_confirmed && confirmed[usize::from(survivor.trigger)];
            survivor.access.is_some() && !is_beside
        });
    }

    /// Explores what may have run before `node`: whether anything can have. The last way back from its point may go on in
    /// its place where that is free.
    fn explore(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        (point, is_free): (PointIdx, bool),
        depth: u32,
    ) -> bool {
        let is_in_reach = depth < walk.past.trail.reach;
        // Registers may contradict a way only some steps further back: an `xor %ecx,%ecx` there cannot have
        // run where %ecx is 7 and nothing wrote it since.
        let lookback = if walk.past.trail.is_straight { 0 } else { limit::LOOKBACK };
        let is_far = depth >= walk.past.trail.reach + lookback;
        if node.is_end || is_far || self.n_steps_left == 0 {
            self.outside.is_unknown |= is_in_reach;
            return true;
        }
        let mut is_possible = self.enter(node, point, is_in_reach);
        for (way, n_further) in node.ways.iter().zip((0..node.ways.len()).rev()) {
            // Beyond the reach no trigger is looked for: one way that may have run is enough, the others
            // cost time.
            if is_possible && !is_in_reach {
                break;
            }
            self.n_steps_left = self.n_steps_left.saturating_sub(1);
            // Its last round starts from here once more.
            let is_free = is_free && n_further == 0 && !way.is_round;
            is_possible |= self.follow(walk, (way, node.svma), (point, is_free), depth);
        }
        is_possible
    }

    /// Notes the ways into `node` from outside its function.
    fn enter(&mut self, node: &Node, point: PointIdx, is_in_reach: bool) -> bool {
        if is_in_reach {
            self.outside.include(node.entrances);
            if node.entrances.is_return {
                // The callee's `ret` popped its address from just below this stack pointer, so it can be
                // the trigger too.
                self.returned = self.points[point].get(Register::Rsp);
            }
        }
        node.entrances.is_any()
    }

    /// Follows a way back from the instruction at an address.
    fn follow(
        &mut self,
        walk: &WalkBack<'_>,
        (way, to): (&Way, Svma),
        (after, is_free): (PointIdx, bool),
        depth: u32,
    ) -> bool {
        let Some(from) = walk.past.trail.nodes.get(usize::from(way.from)) else { return true };
        let n_survivors = self.survivors.len();
        let before = if is_free { after } else { self.points.copy(after) };
        let state = &mut self.points[before];
        let mut is_possible = walk.undo(from, (way, to), state).is_ok();
        if is_possible {
            let is_in_reach = depth < walk.past.trail.reach;
            // What cannot have been reached is no trigger: not if the flags contradict the only `je` that leads
            // to it.
            is_possible = self.explore(walk, from, (before, !is_in_reach), depth + 1);
            if is_possible && is_in_reach {
                match walk.last_round(from, way, &self.points[after]) {
                    Some(last) => {
                        let point = self.points.add(last);
                        self.record(walk, from, point);
                    }
                    None => self.record(walk, from, before),
                }
            }
        }
        if !is_free && self.survivors.len() == n_survivors {
            self.points.drop_from(before);
        }
        is_possible
    }

    /// Records what of `node` can have been the trigger.
    fn record(&mut self, walk: &WalkBack<'_>, node: &Node, before: PointIdx) {
        let Some((trigger, accesses)) = walk.trigger(node) else { return };
        if accesses.is_empty() {
            // It stays as one that touches nothing: a clock's sample may be of `add %rax,%rbx`.
            self.keep((trigger, None), before, false);
            return;
        }
        // Of an instruction that is the trigger for certain load or store tells which operand; an
        // event that says what the instruction does not do is wrong about that, not about it.
        let is_kind_told = walk.past.trail.reach != 0
            || accesses.iter().any(|typed| walk.evidence.is_of_kind(typed.memory.access));
        for (access, typed) in accesses.iter().enumerate() {
            // Without an address a written-out operand goes before the stack slot.
            let is_hidden = walk.evidence.addr.is_none()
                && typed.memory.role == Role::StackSlot
                && accesses[0].memory.role == Role::Operand;
            if is_hidden {
                continue;
            }
            let choice = (trigger, Some(access as u8));
            if is_kind_told && !walk.evidence.is_of_kind(typed.memory.access) {
                continue;
            }
            match self.fit(walk, node, typed, before) {
                AccessFit::No => {}
                AccessFit::Yes { is_confirmed } => {
                    let address = &typed.memory.address;
                    // In which of its rounds a repeated instruction was sampled is not known.
                    let is_single = !typed.memory.is_repeated;
                    let recovered =
                        is_single.then(|| self.recovered(walk, node, address, before)).flatten();
                    self.keep(choice, recovered.unwrap_or(before), is_confirmed);
                }
                AccessFit::If(addr) => {
                    // In `mov (%rdi),%rdi` the load has overwritten its base: the sampled address gives it
                    // back.
                    let assumed = self.points.copy(before);
                    let _ = self.points[assumed].assume_address(&typed.memory.address, addr);
                    self.keep(choice, assumed, false);
                }
            }
        }
    }

    /// Tells whether an access can have been the sampled one.
    fn fit(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        typed: &TypedAccess,
        before: PointIdx,
    ) -> AccessFit {
        let Some(sampled) = walk.evidence.addr else {
            return AccessFit::Yes { is_confirmed: false };
        };
        // Which of its rounds a repeated string instruction was sampled in is known where a fault
        // stopped it; a breakpoint stops it some rounds later.
        let is_precise = node.round.is_none() || walk.evidence.kind == EventKind::PageFault;
        if let Ok(computed) = self.points[before].effective_address(&typed.memory.address) {
            let fits = walk.evidence.is_overlapping(computed, typed, sampled);
            // `rep movsb` moves its pointers in each round, so that the registers of a later one say
            // nothing against it.
            if fits || is_precise {
                return if fits { AccessFit::Yes { is_confirmed: true } } else { AccessFit::No };
            }
            return AccessFit::Yes { is_confirmed: false };
        }
        // The register that is missing follows from the address, if the address is the operand's;
        // and then the code before must have left that value.
        // An access over two pages may fault at the second one's start, and a breakpoint reports its own
        // address.
        let is_inexact =
            matches!(walk.evidence.kind, EventKind::Breakpoint { .. } | EventKind::PageFault);
        if is_inexact || typed.memory.role != Role::Operand {
            return AccessFit::Yes { is_confirmed: false };
        }
        let assumed = self.points.copy(before);
        let fit = match self.points[assumed].assume_address(&typed.memory.address, sampled) {
            Err(Contradiction) => AccessFit::No,
            Ok(true) if self.explore(walk, node, (assumed, true), walk.past.trail.reach) => {
                AccessFit::If(sampled)
            }
            Ok(true) => AccessFit::No,
            Ok(false) => AccessFit::Yes { is_confirmed: false },
        };
        self.points.drop_from(assumed);
        fit
    }

    fn keep(&mut self, (trigger, access): (u8, Option<u8>), before: PointIdx, is_confirmed: bool) {
        if self.survivors.len() >= limit::MAX_SURVIVORS {
            self.is_cut = true;
            return;
        }
        self.survivors.push(Survivor { trigger, access, before, is_confirmed });
    }

    /// The survivor, if there is one only.
    pub(crate) fn only(&self) -> Option<TriggerCandidate<'_>> {
        let [survivor] = &self.survivors[..] else { return None };
        Some(self.candidate(survivor))
    }

    /// The survivors, each with the registers before it.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = TriggerCandidate<'_>> {
        self.survivors.iter().map(|survivor| self.candidate(survivor))
    }

    fn candidate<'a>(&'a self, survivor: &'a Survivor) -> TriggerCandidate<'a> {
        TriggerCandidate { survivor, state: &self.points[survivor.before] }
    }
}

/// A survivor and the registers before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TriggerCandidate<'a> {
    pub(crate) survivor: &'a Survivor,
    pub(crate) state: &'a State,
}

/// True if an access can have been the sampled one.
enum AccessFit {
    No,
    /// It can; confirmed if its operand is known to have been at the sampled address.
    Yes {
        is_confirmed: bool,
    },
    /// It can, and the register of its address that was not known follows from this address.
    If(Avma),
}

/// The parts of the world that a walk looks at.
struct WalkBack<'a> {
    past: &'a Past,
    evidence: &'a SampledAccess,
    stack: SampledStack<'a>,
}

impl WalkBack<'_> {
    fn trigger(&self, node: &Node) -> Option<(u8, &[TypedAccess])> {
        let trigger = node.trigger?;
        let found = self.past.triggers.get(usize::from(trigger))?;
        Some((trigger, &found.accesses))
    }

    /// Steps back over the instruction of `from`, from which a way led to an address.
    fn undo(
        &self,
        from: &Node,
        (way, to): (&Way, Svma),
        state: &mut State,
    ) -> Result<(), Contradiction> {
        if let Some(leap) = &way.leap {
            leap.assume(state, to)?;
        }
        if let Some(condition) = way.condition {
            state.assume(state.flags().given(condition.condition, condition.is_taken))?;
        }
        state.undo_loads(&from.memory, &self.stack)?;
        match &from.round {
            Some(round) if way.is_round && self.past.trail.reach == 1 => state.undo(round)?,
            // Of how many rounds it was interrupted is not known.
            _ => state.undo(&from.effects)?,
        }
        state.undo_stores(&from.memory, &self.stack)
    }

    /// The registers before the last round of a repeated string instruction, in which it touched
    /// its last element. Which of its rounds was sampled some instructions ago is not known.
    fn last_round(&self, node: &Node, way: &Way, after: &State) -> Option<State> {
        // One that is over may have had no round at all.
        let round = node.round.as_ref().filter(|_| way.is_round && self.past.trail.reach == 1)?;
        let mut last = *after;
        last.undo(round).is_ok().then_some(last)
    }

    /// Makes the sampled registers those before an access that the event reports with its own address: PEBS samples
    /// those after it, others those before it, and IBS those of an interrupt some time later. The
    /// address tells which.
    fn settle(&self, node: &Node, state: &mut State, accesses: &[TypedAccess]) {
        let (EventKind::Memory, Some(addr)) = (self.evidence.kind, self.evidence.addr) else {
            return;
        };
        let fits = |state: &State| {
            accesses.iter().any(|typed| {
                let computed = state.effective_address(&typed.memory.address);
                computed.is_ok_and(|computed| self.evidence.is_overlapping(computed, typed, addr))
            })
        };
        if fits(state) {
            return;
        }
        let mut before = *state;
        if before.undo(&node.effects).is_ok() {
            let is_lost = accesses
                .iter()
                .any(|typed| before.effective_address(&typed.memory.address).is_err());
            if is_lost || fits(&before) {
                *state = before;
                return;
            }
        }
        *state = state.without_registers();
    }
}

/// As far as an access of no fixed size may reach: `xsave` writes some kilobytes.
const UNSIZED_BYTES: u64 = 4096;

impl SampledAccess {
    /// Tells whether the hardware's word on load or store allows this access.
    fn is_of_kind(&self, access: Access) -> bool {
        !matches!(
            (self.access, access),
            (Some(Access::Load), Access::Store)
                | (Some(Access::Store), Access::Load | Access::Prefetch)
        )
    }

    /// Tells whether an access at `computed` can have been sampled at `sampled`.
    fn is_overlapping(&self, computed: Avma, typed: &TypedAccess, sampled: Avma) -> bool {
        let size = match typed.memory.size {
            0 => UNSIZED_BYTES,
            size => u64::from(size),
        };
        let watched = match self.kind {
            EventKind::Breakpoint { len_bytes, .. } => u64::from(len_bytes),
            _ => 1,
        };
        // A page fault on an access that crosses a page reports the second page's start, which is
        // inside the access.
        sampled.0.wrapping_sub(computed.0) < size || computed.0.wrapping_sub(sampled.0) < watched
    }
}

#[cfg(test)]
mod tests;
