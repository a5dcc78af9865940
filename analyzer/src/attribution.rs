//! One sample's way from its site to a data object: which candidate was the trigger, what the two
//! paths say, and how their answers join.

use crate::analyzer::{Analyzer, Paths};
use crate::choice::{Choice, Chosen};
use crate::descriptor::Root;
use crate::name_table::{NameKey, NamedIdx};
use crate::process::LoadObjectIdx;
use crate::site::{Answer, Trigger, TypeAnswer, TypedAccess};
use crate::site_table::SiteIdx;
use crate::worker::Question;
use crate::x86_64::access::{RegisterLoss, RegisterState, Role};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Registers;
use dataspace_proto::sample_line::{AddressSource, Evidence};
use std::sync::Arc;

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
    /// What the loader added to the load object's addresses.
    pub(crate) bias: u64,
    pub(crate) site: SiteIdx,
}

impl Analyzer {
    /// Attributes a sample whose site is known.
    pub(crate) fn attribute_at(&mut self, located: Located<'_>) -> Result<Attribution, Needs> {
        let outcome = match &self.sites.get(located.site).outcome {
            Ok(_) => self.choose(located),
            Err(reason) => Err(Chosen::Unknown(*reason)),
        };
        match outcome {
            Ok(choice) => self.attribute_access(located, choice),
            Err(Chosen::NotMemory(trigger)) => Ok(Attribution {
                trigger: trigger.map(|svma| Avma(svma.0.wrapping_add(located.bias))),
                site: Some(located.site),
                verdict: Verdict::NotMemory,
                ..Attribution::unknown(Reason::Unspecified)
            }),
            Err(Chosen::Unknown(reason)) => {
                let attribution =
                    Attribution { site: Some(located.site), ..Attribution::unknown(reason) };
                self.by_sampled_address(located.sample, attribution)
            }
        }
    }

    /// The trigger and the access that a choice stands for.
    fn chosen(&self, site: SiteIdx, choice: Choice) -> Option<(&Trigger, &TypedAccess)> {
        let triggers = self.sites.get(site).outcome.as_ref().ok()?;
        let trigger = triggers.get(usize::from(choice.trigger))?;
        Some((trigger, trigger.accesses.get(usize::from(choice.access))?))
    }

    /// The object that a choice has whatever the sample's values are.
    pub(crate) fn static_object(&mut self, site: SiteIdx, choice: Choice) -> Option<NamedIdx> {
        let (_, typed) = self.chosen(site, choice)?;
        let TypeAnswer::Object(answer) = &typed.answer else { return None };
        let answer = Arc::clone(answer);
        Some(self.whole_object(site, choice, &answer))
    }

    fn whole_object(&mut self, site: SiteIdx, choice: Choice, answer: &Answer) -> NamedIdx {
        let key = NameKey::Object { site, trigger: choice.trigger, access: choice.access };
        self.names.whole(&mut self.totals, key, answer)
    }

    /// Both paths for one access, joined.
    fn attribute_access(
        &mut self,
        located: Located<'_>,
        choice: Choice,
    ) -> Result<Attribution, Needs> {
        let unknown = Attribution::unknown(Reason::Unresolvable);
        let Some((trigger, typed)) = self.chosen(located.site, choice) else {
            return Ok(unknown);
        };
        let (svma, state, typed) = (trigger.svma, trigger.state, typed.clone());
        let memory = &typed.memory;
        let computed = memory.effective_address(located.registers, state, located.bias);
        let addr = match (located.sample.addr, computed) {
            (Some(sampled), _) => Some((sampled, AddressSource::Sampled)),
            (None, Ok(computed)) => Some((computed, AddressSource::Computed)),
            (None, Err(RegisterLoss)) => None,
        };
        let mut attribution = Attribution {
            trigger: Some(Avma(svma.0.wrapping_add(located.bias))),
            access: Some(memory.access),
            size: (memory.size != 0).then_some(memory.size),
            addr,
            site: Some(located.site),
            verdict: Verdict::Unknown(Reason::Unidentified),
        };
        if addr.is_some_and(|(avma, _)| !avma.is_user()) {
            attribution.verdict = Verdict::Unknown(Reason::InvalidAddress);
            return Ok(attribution);
        }
        let by_type = match self.config().paths {
            Paths::Address => Err(Reason::Unidentified),
            Paths::Both | Paths::Type => self.type_path(located, choice, &typed, state),
        };
        let by_address = match (self.config().paths, addr) {
            (Paths::Type, _) | (_, None) => None,
            (_, Some((avma, _))) => self.address_path(located, choice, &typed, state, avma)?,
        };
        attribution.verdict = self.join(by_type, by_address, addr);
        Ok(attribution)
    }

    /// The object that instruction and debug information say.
    fn type_path(
        &mut self,
        located: Located<'_>,
        choice: Choice,
        typed: &TypedAccess,
        state: RegisterState,
    ) -> Result<NamedIdx, Reason> {
        let (trigger, access) = (choice.trigger, choice.access);
        match &typed.answer {
            TypeAnswer::Unknown(reason) => Err(*reason),
            TypeAnswer::Object(answer) => Ok(self.whole_object(located.site, choice, answer)),
            TypeAnswer::Indexed(answer) => {
                let value = answer
                    .index
                    .value(located.registers, state)
                    .map_err(|RegisterLoss| Reason::RegisterLoss)?;
                let offset = answer.offset(value).ok_or(Reason::Unidentified)?;
                let key = NameKey::Indexed { site: located.site, trigger, access, offset };
                let size = u64::from(typed.memory.size);
                self.names
                    .part(
                        &mut self.totals,
                        key,
                        &answer.layout,
                        answer.root.borrow(),
                        (offset, size),
                    )
                    .ok_or(Reason::Unidentified)
            }
        }
    }

    /// The object at the data address: a static variable, or a variable in the frame.
    fn address_path(
        &mut self,
        located: Located<'_>,
        choice: Choice,
        typed: &TypedAccess,
        state: RegisterState,
        avma: Avma,
    ) -> Result<Option<NamedIdx>, Needs> {
        let size = u64::from(typed.memory.size);
        if let Some(named) = self.static_variable(located.sample.pid, avma, size)? {
            return Ok(Some(named));
        }
        for (slot_idx, slot) in typed.frame.iter().enumerate() {
            let Ok(base) = slot.base.value(located.registers, state) else { continue };
            let start = base.wrapping_add_signed(slot.offset);
            let Some(offset) = avma.0.checked_sub(start) else { continue };
            if offset >= slot.layout.size {
                continue;
            }
            let key = NameKey::Slot {
                site: located.site,
                trigger: choice.trigger,
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

    /// The static variable at `avma` in process `pid`.
    fn static_variable(
        &mut self,
        pid: i32,
        avma: Avma,
        size: u64,
    ) -> Result<Option<NamedIdx>, Needs> {
        let Some((object, bias)) = self.processes().data_object(pid, avma) else {
            return Ok(None);
        };
        let svma = Svma(avma.0.wrapping_sub(bias));
        let Some(range) = self.data.find(object, svma) else {
            return Err(Needs { object, question: Question::Data(svma) });
        };
        let Some(variable) = range else { return Ok(None) };
        let Some(offset) = svma.offset_from(variable.start) else { return Ok(None) };
        let element_size = variable.layout.innermost_element().size.max(1);
        let key =
            NameKey::Static { object, start: variable.start, offset: offset % element_size, size };
        let root = Root::Variable(&variable.name);
        Ok(self.names.part(&mut self.totals, key, &variable.layout, root, (offset, size)))
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
        if let Some(named) = self.static_variable(sample.pid, avma, 1)? {
            let evidence = Evidence::Address;
            attribution.verdict = Verdict::Attributed { named, evidence, is_address_lost: false };
        }
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
