//! One sample's way from its site to a data object: which candidate was the trigger, what the two
//! paths say, and how their answers join.

use crate::attribution::name_table::{NameKey, NamedIdx};
use crate::attribution::search::{Candidate, Survivor};
use crate::attribution::site_table::SiteIdx;
use crate::attribution::world::{Paths, World};
use crate::bytes::file::LoadObjectIdx;
use crate::index::question::Needs;
use crate::index::site::{Answer, Past, TypeAnswer, TypedAccess};
use crate::types::data_object::Root;
use crate::x86_64::access::{RegisterLoss, Role};
use dataspace_proto::address::Avma;
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Registers;
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

/// The sample and where its code is.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) sample: &'a Sample,
    /// What its event counts.
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

impl World {
    fn whole_object(&mut self, site: SiteIdx, survivor: &Survivor, answer: &Answer) -> NamedIdx {
        let (trigger, access) = (survivor.trigger, survivor.access.unwrap_or(0));
        if let Some(known) = self.sites.named(site, (trigger, access)) {
            return known;
        }
        let key = NameKey::Object { site, trigger, access };
        let named = self.names.whole(key, answer);
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
        let by_type = self.instruction_path(located, candidate, typed, addr);
        let by_operand = self.thread_operand(located, candidate, typed)?;
        let by_address = match (self.paths, addr) {
            (Paths::Type, _) => None,
            _ if by_operand.is_some() => by_operand,
            (_, None) => None,
            (_, Some((avma, _))) => self.address_path(located, candidate, typed, avma)?,
        };
        let is_lost = matches!(state.thread_distance(&memory.address), Some(Err(RegisterLoss)));
        let by_type = match by_type {
            // The pointer is to that variable, or else to what it is typed as.
            _ if by_address.is_some() && typed.is_perhaps_variable => Err(Reason::Undetermined),
            // Neither the thread's base nor the distance from it is known.
            Err(Reason::Unidentified) if is_lost && addr.is_none() => Err(Reason::RegisterLoss),
            by_type => by_type,
        };
        if by_type.is_err()
            && by_address.is_none()
            && self.is_told_around(located, candidate, typed, &mut attribution)?
        {
            return Ok(attribution);
        }
        attribution.is_placed =
            by_address.is_none() && self.is_placed(located, typed, computed.ok());
        attribution.verdict = self.join(by_type, by_address, addr);
        self.surround(located.sample, memory, &mut attribution);
        Ok(attribution)
    }

    /// What instruction and debug information say, else what live objects of a known type do.
    fn instruction_path(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
        addr: Option<(Avma, AddressSource)>,
    ) -> Result<NamedIdx, Reason> {
        if self.paths == Paths::Address {
            return Err(Reason::Unidentified);
        }
        self.type_path(located, candidate, typed).or_else(|reason| {
            let (avma, _) = addr.ok_or(reason)?;
            self.live_object(located, candidate, typed, avma).ok_or(reason)
        })
    }

    /// Names what neither path does: after what callers pass or, rather than after bytes that they
    /// pass, after votes. Says whether one of them does.
    fn is_told_around(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
        attribution: &mut Attribution,
    ) -> Result<bool, Needs> {
        let memory = &typed.memory;
        let passed = self.passed(located, candidate, typed)?;
        if let Some(passed) = passed.filter(|passed| !passed.is_erased) {
            // The address of a fault may be the second page's start.
            let computed = candidate.state.effective_address(&memory.address);
            let is_placed = computed.is_ok_and(|computed| {
                located.sample.addr.is_none_or(|sampled| sampled == computed)
            });
            self.take_passed(passed, is_placed, attribution);
            return Ok(true);
        }
        if let Some((avma, _)) = attribution.addr
            && self.attribute_by_votes(located.sample, avma, Some(memory), attribution)
        {
            return Ok(true);
        }
        if let Some(passed) = passed {
            self.take_passed(passed, false, attribution);
        }
        Ok(passed.is_some())
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
                self.names.part_as(key, &answer.layout, root, part).ok_or(Reason::Unidentified)
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
        self.names.part(key, layout, Root::Pointer(""), (offset, size))
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
            return Ok(self.names.part(key, &slot.layout, root, (offset, size)));
        }
        let is_stack_slot = typed.memory.role == Role::StackSlot;
        Ok(is_stack_slot.then(|| self.names.stack()))
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
        if self.paths == Paths::Type {
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

    /// Whether the sample's address is that of the operand which the type path named a part of.
    fn is_placed(&self, located: Located<'_>, typed: &TypedAccess, computed: Option<Avma>) -> bool {
        typed.memory.role == Role::Operand
            && match (computed, located.sample.addr) {
                // The address of a fault may be the second page's start, of a breakpoint its own.
                (Some(computed), Some(sampled)) => computed == sampled,
                (Some(_), None) => true,
                // Without its index only the outermost object is known, and not where it begins.
                (None, Some(_)) => {
                    located.kind == EventKind::Memory
                        && matches!(typed.answer, TypeAnswer::Object(_))
                }
                (None, None) => false,
            }
    }
}
