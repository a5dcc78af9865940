//! One sample's way from its site to a data object: which candidate was the trigger, what the two
//! paths say, and how their answers join.

use crate::analyzer::{Analyzer, Paths};
use crate::descriptor::Root;
use crate::limit;
use crate::name_table::{NameKey, NamedIdx};
use crate::process::LoadObjectIdx;
use crate::search::{Candidate, Survivor};
use crate::site::{Answer, Past, TypeAnswer, TypedAccess};
use crate::site_table::SiteIdx;
use crate::vote::{Found, Touch};
use crate::worker::Question;
use crate::x86_64::access::{MemoryAccess, RegisterLoss, Role, SegmentBase};
use dataspace_proto::address::Avma;
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{CpuMode, Sample};
use dataspace_proto::register::{Register, Registers};
use dataspace_proto::sample_line::{AddressSource, Evidence};

/// The size of an access whose instruction is not known.
const UNKNOWN_SIZE: u64 = 0;

/// Where a sample went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To a data object. `is_address_lost` says that only the type is known of it.
    Attributed { named: NamedIdx, evidence: Evidence, is_address_lost: bool },
    /// To none, and why.
    Unknown(Reason),
    /// Its trigger touches no memory.
    NotMemory,
}

/// A sample's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribution {
    pub(crate) trigger: Option<Avma>,
    pub(crate) access: Option<Access>,
    pub(crate) size: Option<u32>,
    pub(crate) addr: Option<(Avma, AddressSource)>,
    pub(crate) site: Option<SiteIdx>,
    pub(crate) verdict: Verdict,
    /// How many samples voted for the answer; 0 if it has another ground.
    pub(crate) votes: u32,
    /// The address is where the named part of the object lies.
    pub(crate) is_placed: bool,
    /// How many calls further out it is that knows the type; 0 for the trigger's own function.
    pub(crate) calls_out: u8,
    /// It is not known where in the named object the access is.
    pub(crate) is_somewhere: bool,
}

impl Attribution {
    pub(crate) const fn unknown(reason: Reason) -> Self {
        Self {
            trigger: None,
            access: None,
            size: None,
            addr: None,
            site: None,
            verdict: Verdict::Unknown(reason),
            votes: 0,
            is_placed: false,
            calls_out: 0,
            is_somewhere: false,
        }
    }
}

/// What stops an attribution: a worker must answer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) object: LoadObjectIdx,
    pub(crate) question: Question,
}

/// The sample and where its code is.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) kind: EventKind,
    /// The registers of the code that the site is about.
    pub(crate) registers: &'a Registers,
    /// The load object of that code.
    pub(crate) object: LoadObjectIdx,
    /// What the loader added to the load object's addresses.
    pub(crate) bias: u64,
    pub(crate) site: SiteIdx,
}

impl Located<'_> {
    /// Where in the process a trigger is.
    pub(crate) fn trigger_avma(self, past: &Past, trigger: u8) -> Option<Avma> {
        let trigger = past.triggers.get(usize::from(trigger))?;
        Some(Avma(trigger.svma.0.wrapping_add(self.bias)))
    }
}

impl Analyzer {
    fn whole_object(&mut self, site: SiteIdx, survivor: &Survivor, answer: &Answer) -> NamedIdx {
        let (trigger, access) = (survivor.trigger, survivor.access.unwrap_or(0));
        if let Some(known) = self.sites.named(site, (trigger, access)) {
            return known;
        }
        let key = NameKey::Object { site, trigger, access };
        let named = self.names.whole(&mut self.totals, key, answer);
        self.sites.set_named(site, (trigger, access), named);
        named
    }

    /// Both paths for one access, joined.
    pub(crate) fn attribute_access(
        &mut self,
        located: Located<'_>,
        past: &Past,
        candidate: Candidate<'_>,
    ) -> Result<Attribution, Needs> {
        let Candidate { survivor, state } = candidate;
        let Some((_, typed)) = survivor.chosen(past) else {
            return Ok(Attribution::unknown(Reason::Unresolvable));
        };
        let memory = &typed.memory;
        let computed = state.effective_address(&memory.address);
        let addr = match (located.sample.addr, computed) {
            (Some(sampled), _) => Some((sampled, AddressSource::Sampled)),
            (None, Ok(computed)) => Some((computed, AddressSource::Computed)),
            (None, Err(RegisterLoss)) => None,
        };
        let mut attribution = Attribution {
            trigger: located.trigger_avma(past, survivor.trigger),
            access: Some(memory.access),
            size: (memory.size != 0).then_some(memory.size),
            addr,
            site: Some(located.site),
            ..Attribution::unknown(Reason::Unidentified)
        };
        if addr.is_some_and(|(avma, _)| !avma.is_user()) {
            attribution.verdict = Verdict::Unknown(Reason::InvalidAddress);
            return Ok(attribution);
        }
        let by_type = match self.config().paths {
            Paths::Address => Err(Reason::Unidentified),
            Paths::Both | Paths::Type => {
                let by_type = self.type_path(located, candidate, typed);
                by_type.or_else(|reason| {
                    let avma = addr.map(|(avma, _)| avma);
                    let live =
                        avma.and_then(|avma| self.live_object(located, candidate, typed, avma));
                    live.ok_or(reason)
                })
            }
        };
        let by_operand = self.thread_operand(located, candidate, typed)?;
        let by_address = match (self.config().paths, addr) {
            (Paths::Type, _) => None,
            _ if by_operand.is_some() => by_operand,
            (_, None) => None,
            (_, Some((avma, _))) => self.address_path(located, candidate, typed, avma)?,
        };
        let is_lost = matches!(state.thread_distance(&memory.address), Some(Err(RegisterLoss)));
        let by_type = match by_type {
            // Neither the thread's base nor the distance from it is known.
            Err(Reason::Unidentified) if is_lost && addr.is_none() => Err(Reason::RegisterLoss),
            by_type => by_type,
        };
        let by_type = match by_address {
            // The pointer is to that variable, or else to what it is typed as.
            Some(_) if typed.is_perhaps_variable => Err(Reason::Undetermined),
            _ => by_type,
        };
        if by_type.is_err() && by_address.is_none() {
            let passed = self.passed(located, candidate, typed)?;
            if let Some(passed) = passed.filter(|passed| !passed.is_erased) {
                // The address of a fault may be the second page's start.
                let is_placed = computed.is_ok_and(|computed| {
                    located.sample.addr.is_none_or(|sampled| sampled == computed)
                });
                self.take_passed(passed, is_placed, &mut attribution);
                return Ok(attribution);
            }
            if let Some((avma, _)) = addr
                && self.attribute_by_votes(located.sample, avma, Some(memory), &mut attribution)
            {
                return Ok(attribution);
            }
            if let Some(passed) = passed {
                self.take_passed(passed, false, &mut attribution);
                return Ok(attribution);
            }
        }
        attribution.is_placed = by_address.is_none() && is_placed(located, typed, computed.ok());
        attribution.verdict = self.join(by_type, by_address, addr);
        self.surround(located.sample, memory, &mut attribution);
        Ok(attribution)
    }

    /// The object that instruction and debug information say.
    fn type_path(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
    ) -> Result<NamedIdx, Reason> {
        let Candidate { survivor, state } = candidate;
        let (trigger, access) = (survivor.trigger, survivor.access.unwrap_or(0));
        match &typed.answer {
            TypeAnswer::Unknown(reason) => Err(*reason),
            TypeAnswer::Object(answer) => Ok(self.whole_object(located.site, survivor, answer)),
            TypeAnswer::Indexed(answer) => {
                let size = u64::from(typed.memory.size);
                let (offset, size) = match answer.index.value(state) {
                    Ok(index) => (answer.offset(index).ok_or(Reason::Unidentified)?, size),
                    Err(RegisterLoss) => answer.any_part(size).ok_or(Reason::RegisterLoss)?,
                };
                let key = NameKey::Indexed { site: located.site, trigger, access, offset, size };
                let root = answer.root.borrow();
                let part = (offset, size, typed.memory.kind);
                self.names
                    .part_as(&mut self.totals, key, &answer.layout, root, part)
                    .ok_or(Reason::Unidentified)
            }
        }
    }

    /// The object around the data address that another register points at.
    fn live_object(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
        avma: Avma,
    ) -> Option<NamedIdx> {
        let size = u64::from(typed.memory.size);
        let mut found: Option<(usize, u64)> = None;
        for (live_idx, live) in typed.live.iter().enumerate() {
            let Ok(pointer) = live.register.value(candidate.state) else { continue };
            let start = pointer.wrapping_add_signed(live.offset.wrapping_neg());
            let offset = avma.0.wrapping_sub(start);
            if offset >= live.layout.size || offset.saturating_add(size) > live.layout.size {
                continue;
            }
            // The widest is around the others.
            if found.is_none_or(|(best, _)| typed.live[best].layout.size < live.layout.size) {
                found = Some((live_idx, offset));
            }
        }
        let (live_idx, offset) = found?;
        let key = NameKey::Live {
            site: located.site,
            trigger: candidate.survivor.trigger,
            live: live_idx as u32,
            offset,
            size,
        };
        let layout = &typed.live[live_idx].layout;
        self.names.part(&mut self.totals, key, layout, Root::Pointer(""), (offset, size))
    }

    /// The object at the data address: a static variable, or a variable in the frame.
    fn address_path(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
        avma: Avma,
    ) -> Result<Option<NamedIdx>, Needs> {
        let size = u64::from(typed.memory.size);
        if let Some(named) = self.static_object(located.sample.pid, avma, size)? {
            return Ok(Some(named));
        }
        for (slot_idx, slot) in typed.frame.iter().enumerate() {
            let Ok(base) = slot.base.value(candidate.state) else { continue };
            let start = base.wrapping_add_signed(slot.offset);
            let Some(offset) = avma.0.checked_sub(start) else { continue };
            if offset >= slot.layout.size {
                continue;
            }
            let key = NameKey::Slot {
                site: located.site,
                trigger: candidate.survivor.trigger,
                slot: slot_idx as u32,
                offset,
                size,
            };
            let root = Root::Variable(&slot.name);
            return Ok(self.names.part(&mut self.totals, key, &slot.layout, root, (offset, size)));
        }
        let is_stack_slot = typed.memory.role == Role::StackSlot;
        Ok(is_stack_slot.then(|| self.names.stack(&mut self.totals)))
    }

    /// What the address alone says, for a sample without a trigger.
    pub(crate) fn by_sampled_address(
        &mut self,
        sample: &Sample,
        mut attribution: Attribution,
    ) -> Result<Attribution, Needs> {
        let Some(avma) = sample.addr.filter(|avma| avma.is_user()) else {
            return Ok(attribution);
        };
        if self.config().paths == Paths::Type {
            return Ok(attribution);
        }
        attribution.addr = Some((avma, AddressSource::Sampled));
        if let Some(named) = self.static_object(sample.pid, avma, UNKNOWN_SIZE)? {
            let evidence = Evidence::Address;
            attribution.verdict = Verdict::Attributed { named, evidence, is_address_lost: false };
            return Ok(attribution);
        }
        self.attribute_by_votes(sample, avma, None, &mut attribution);
        Ok(attribution)
    }

    /// Names what no type names after the votes of typed instructions, and says whether there are
    /// enough.
    fn attribute_by_votes(
        &mut self,
        sample: &Sample,
        avma: Avma,
        memory: Option<&MemoryAccess>,
        attribution: &mut Attribution,
    ) -> bool {
        let Some(touch) = self.heap_access(sample, avma, memory) else { return false };
        let Some(found) = self.votes.find(touch) else { return false };
        let Some(named) = self.name_of_votes(found, touch.size) else { return false };
        let evidence = Evidence::Address;
        attribution.verdict = Verdict::Attributed { named, evidence, is_address_lost: false };
        attribution.votes = found.votes;
        true
    }

    /// The touched memory, if votes may tell what is there.
    fn heap_access(
        &self,
        sample: &Sample,
        avma: Avma,
        memory: Option<&MemoryAccess>,
    ) -> Option<Touch> {
        let is_in_frame = |memory: &MemoryAccess| {
            let base = memory.address.base.and_then(|base| base.register);
            base == Some(Register::Rsp)
                || memory.address.segment != SegmentBase::Flat
                || memory.role == Role::StackSlot
        };
        if self.config().paths != Paths::Both || memory.is_some_and(is_in_frame) {
            return None;
        }
        let size = memory.map_or(0, |memory| memory.size);
        heap_touch(sample, avma, size)
    }

    /// The name of what votes found for an access of `size` bytes.
    fn name_of_votes(&mut self, found: Found, size: u32) -> Option<NamedIdx> {
        let kind = self.votes.kind(found.kind);
        match &kind.scalar {
            Some(answer) => {
                let key = NameKey::Voted { kind: found.kind, offset: 0, size: 0 };
                Some(self.names.whole(&mut self.totals, key, answer))
            }
            None => {
                let key = NameKey::Voted { kind: found.kind, offset: found.offset, size };
                let part = (u64::from(found.offset), u64::from(size));
                self.names.part(&mut self.totals, key, &kind.layout, Root::Pointer(""), part)
            }
        }
    }

    /// Names the object around what an instruction knows only as a number or a pointer, if votes say
    /// that just such a one is there.
    fn surround(&mut self, sample: &Sample, memory: &MemoryAccess, attribution: &mut Attribution) {
        let (Verdict::Attributed { named, .. }, Some((avma, _))) =
            (attribution.verdict, attribution.addr)
        else {
            return;
        };
        if !attribution.is_placed || !self.names.is_bare_scalar(named) {
            return;
        }
        let Some(touch) = self.heap_access(sample, avma, Some(memory)) else { return };
        let Some(found) = self.votes.find_around(touch) else { return };
        if self.votes.kind(found.kind).is_scalar() || found.votes < limit::MIN_VOTES_AROUND {
            return;
        }
        let Some(around) = self.name_of_votes(found, memory.size) else { return };
        if self.names.is_inside(named, around) {
            let evidence = Evidence::Both;
            attribution.verdict =
                Verdict::Attributed { named: around, evidence, is_address_lost: false };
            attribution.votes = found.votes;
            // What was learnt from votes is no vote.
            attribution.is_placed = false;
        }
    }

    /// Votes with a sample that its instruction named.
    pub(crate) fn vote(&mut self, sample: &Sample, attribution: &Attribution) {
        let (Verdict::Attributed { named, .. }, Some((avma, _))) =
            (attribution.verdict, attribution.addr)
        else {
            return;
        };
        if !attribution.is_placed || self.config().paths != Paths::Both {
            return;
        }
        let Some(touch) = heap_touch(sample, avma, attribution.size.unwrap_or(0)) else { return };
        let named = self.names.get_mut(named);
        let offset = named.answer.offset;
        let lesson = *named.lesson.get_or_insert_with(|| self.votes.lesson(&named.answer));
        self.votes.teach(touch, lesson, offset);
    }

    /// Joins the two answers (design section 6).
    fn join(
        &mut self,
        by_type: Result<NamedIdx, Reason>,
        by_address: Option<NamedIdx>,
        addr: Option<(Avma, AddressSource)>,
    ) -> Verdict {
        let attributed = |named, evidence| Verdict::Attributed {
            named,
            evidence,
            is_address_lost: addr.is_none(),
        };
        match (by_type, by_address) {
            (Err(reason), None) => Verdict::Unknown(reason),
            (Ok(typed), None) => attributed(typed, Evidence::Type),
            (Err(_), Some(located)) => attributed(located, Evidence::Address),
            (Ok(typed), Some(located)) if self.names.is_made_for(typed, located) => {
                attributed(located, Evidence::Address)
            }
            // A name without a type neither confirms nor contradicts one.
            (Ok(typed), Some(located)) if self.names.is_untyped(located) => {
                attributed(typed, Evidence::Type)
            }
            (Ok(typed), Some(located)) => match self.names.finer(typed, located) {
                Some(finer) => attributed(finer, Evidence::Both),
                // A sampled address inside a declared variable beats the instruction; a computed
                // one comes from the same trigger and never does.
                None if addr.is_some_and(|(_, source)| source == AddressSource::Sampled) => {
                    attributed(located, Evidence::Conflict)
                }
                None => attributed(typed, Evidence::Conflict),
            },
        }
    }
}

/// Whether the sample's address is that of the operand which the type path named a part of.
fn is_placed(located: Located<'_>, typed: &TypedAccess, computed: Option<Avma>) -> bool {
    typed.memory.role == Role::Operand
        && match (computed, located.sample.addr) {
            // The address of a fault may be the second page's start, of a breakpoint its own.
            (Some(computed), Some(sampled)) => computed == sampled,
            (Some(_), None) => true,
            // Without its index only the outermost object is known, and not where it begins.
            (None, Some(_)) => {
                located.kind == EventKind::Memory && matches!(typed.answer, TypeAnswer::Object(_))
            }
            (None, None) => false,
        }
}

/// The touched memory, if it is none of the stack's: what is there is another thing in each frame.
fn heap_touch(sample: &Sample, avma: Avma, size: u32) -> Option<Touch> {
    let registers = match sample.mode {
        CpuMode::Kernel => &sample.user_registers,
        _ => &sample.registers,
    };
    let stack = registers.get(Register::Rsp)?.saturating_sub(RED_ZONE_BYTES);
    let is_stack = avma.0.checked_sub(stack).is_some_and(|above| above < limit::STACK_REACH_BYTES);
    let Sample { pid, time_ns, .. } = *sample;
    (!is_stack).then_some(Touch { pid, time_ns, addr: avma.0, size })
}

/// Bytes below the stack pointer that a function may use (psABI, section 3.2.2).
const RED_ZONE_BYTES: u64 = 128;
