//! One sample's way from its site to a data object: which candidate was the trigger, what the two
//! paths say, and how their answers join.

use crate::analyzer::{Analyzer, NameKey, NamedIdx, Paths, SiteIdx};
use crate::process::LoadObjectIdx;
use crate::site::{TypeAnswer, TypedAccess};
use crate::worker::Question;
use crate::x86_64::access::{RegisterLoss, Role};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Registers;
use dataspace_proto::sample_line::{AddressSource, Evidence};

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
    pub(crate) object: LoadObjectIdx,
    /// What the loader added to the load object's addresses.
    pub(crate) bias: u64,
    pub(crate) site: SiteIdx,
}

/// Which trigger and which of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    trigger: u8,
    access: u8,
}

impl Analyzer {
    /// Attributes a sample whose site is known.
    pub(crate) fn attribute_at(&mut self, located: Located<'_>) -> Result<Attribution, Needs> {
        let outcome = match &self.site(located.site).outcome {
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

    /// Which candidate was the trigger, by flags, sampled address and event.
    fn choose(&mut self, located: Located<'_>) -> Result<Choice, Chosen> {
        let site = self.site(located.site);
        let triggers = site.outcome.as_ref().map_or(&[][..], Vec::as_slice);
        let is_memory_only = located.kind.is_memory_only();
        let mut surviving: Vec<Choice> = Vec::new();
        let mut silent = None;
        let mut n_silent = 0;
        for (trigger_idx, trigger) in triggers.iter().enumerate().take(usize::from(u8::MAX)) {
            let is_possible =
                trigger.condition.is_none_or(|condition| condition.is_possible(located.registers));
            if !is_possible {
                continue;
            }
            if trigger.accesses.is_empty() {
                n_silent += 1;
                silent = Some(trigger.svma);
                continue;
            }
            match pick_access(&trigger.accesses, trigger.state, located) {
                Picked::One(access) => {
                    surviving.push(Choice { trigger: trigger_idx as u8, access });
                }
                Picked::Several => return Err(Chosen::Unknown(Reason::Unresolvable)),
                Picked::None => {}
            }
        }
        if is_memory_only {
            n_silent = 0;
        }
        match (surviving.as_slice(), n_silent) {
            ([only], 0) => Ok(*only),
            ([], 0) if is_memory_only => Err(Chosen::Unknown(Reason::Unspecified)),
            ([], 0) => Err(Chosen::Unknown(Reason::Unresolvable)),
            ([], 1) => Err(Chosen::NotMemory(silent)),
            ([], _) => Err(Chosen::NotMemory(None)),
            ([first, rest @ ..], 0) => {
                let object = self.static_object(located.site, *first);
                let all_same = object.is_some()
                    && rest.iter().all(|c| self.static_object(located.site, *c) == object);
                if all_same { Ok(*first) } else { Err(Chosen::Unknown(Reason::Unresolvable)) }
            }
            _ => Err(Chosen::Unknown(Reason::Unresolvable)),
        }
    }

    /// The object that a choice has whatever the sample's values are.
    fn static_object(&mut self, site: SiteIdx, choice: Choice) -> Option<NamedIdx> {
        let access = self.typed_access(site, choice)?;
        match &access.answer {
            TypeAnswer::Object(answer) => {
                let answer = std::sync::Arc::clone(answer);
                self.named_static(site, choice.trigger, choice.access, &answer)
            }
            _ => None,
        }
    }

    fn typed_access(&self, site: SiteIdx, choice: Choice) -> Option<&TypedAccess> {
        let triggers = self.site(site).outcome.as_ref().ok()?;
        triggers.get(usize::from(choice.trigger))?.accesses.get(usize::from(choice.access))
    }

    /// Both paths for one access, joined.
    fn attribute_access(
        &mut self,
        located: Located<'_>,
        choice: Choice,
    ) -> Result<Attribution, Needs> {
        let unknown = Attribution::unknown(Reason::Unresolvable);
        let Some(trigger) = self.site(located.site).outcome.as_ref().ok().and_then(|triggers| {
            triggers.get(usize::from(choice.trigger)).map(|trigger| (trigger.svma, trigger.state))
        }) else {
            return Ok(unknown);
        };
        let (svma, state) = trigger;
        let Some(typed) = self.typed_access(located.site, choice).cloned() else {
            return Ok(unknown);
        };
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
            (_, Some((avma, _))) => {
                self.address_path(located, choice, &typed, state, avma, by_type.ok())?
            }
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
        state: crate::x86_64::access::RegisterState,
    ) -> Result<NamedIdx, Reason> {
        let (trigger, access) = (choice.trigger, choice.access);
        match &typed.answer {
            TypeAnswer::Unknown(reason) => Err(*reason),
            TypeAnswer::Object(answer) => {
                self.named_static(located.site, trigger, access, answer).ok_or(Reason::Unidentified)
            }
            TypeAnswer::Indexed(answer) => {
                let value = answer
                    .index
                    .value(located.registers, state)
                    .map_err(|RegisterLoss| Reason::RegisterLoss)?;
                let offset = answer.offset(value).ok_or(Reason::Unidentified)?;
                let key = NameKey::Indexed { site: located.site, trigger, access, offset };
                let size = u64::from(typed.memory.size);
                self.named(key, &answer.layout, answer.root.borrow(), offset, size)
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
        state: crate::x86_64::access::RegisterState,
        avma: Avma,
        _by_type: Option<NamedIdx>,
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
            let root = crate::descriptor::Root::Variable(&slot.name);
            return Ok(self.named(key, &slot.layout, root, offset, size));
        }
        let is_stack_slot = typed.memory.role == Role::StackSlot;
        Ok(is_stack_slot.then(|| self.stack()))
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
        let Some(range) = self.data_range(object, svma) else {
            return Err(Needs { object, question: Question::Data(svma) });
        };
        let Some(variable) = range else { return Ok(None) };
        let Some(offset) = svma.offset_from(variable.start) else { return Ok(None) };
        let element_size = variable.layout.innermost_element().size.max(1);
        let key =
            NameKey::Static { object, start: variable.start, offset: offset % element_size, size };
        let root = crate::descriptor::Root::Variable(&variable.name);
        Ok(self.named(key, &variable.layout, root, offset, size))
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
        &self,
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
            (Ok(typed), Some(located)) => match self.finer(typed, located) {
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

/// Why there is no choice.
enum Chosen {
    NotMemory(Option<Svma>),
    Unknown(Reason),
}

enum Picked {
    One(u8),
    Several,
    None,
}

/// Which access of a trigger the sample is about. A sampled address rules out those that
/// demonstrably went elsewhere; without one a written-out operand goes before the stack slot.
fn pick_access(
    accesses: &[TypedAccess],
    state: crate::x86_64::access::RegisterState,
    located: Located<'_>,
) -> Picked {
    let fits: Vec<u8> = accesses
        .iter()
        .enumerate()
        .filter(|(_, typed)| {
            let Some(sampled) = located.sample.addr else { return true };
            let computed = typed.memory.effective_address(located.registers, state, located.bias);
            computed.is_ok_and(|computed| is_overlapping(computed, typed, sampled, located.kind))
                || computed.is_err()
        })
        .map(|(idx, _)| idx as u8)
        .collect();
    match fits.as_slice() {
        [] => Picked::None,
        [only] => Picked::One(*only),
        several => {
            let role = |idx: &u8| accesses[usize::from(*idx)].memory.role;
            let mut operands = several.iter().filter(|idx| role(idx) == Role::Operand);
            match (operands.next(), operands.next()) {
                (Some(only), None) => Picked::One(*only),
                _ => Picked::Several,
            }
        }
    }
}

/// Whether an access at `computed` can have been sampled at `sampled`.
fn is_overlapping(computed: Avma, typed: &TypedAccess, sampled: Avma, kind: EventKind) -> bool {
    let size = u64::from(typed.memory.size.max(1));
    let watched = match kind {
        EventKind::Breakpoint { len_bytes, .. } => u64::from(len_bytes),
        _ => 1,
    };
    // A page fault on an access that crosses a page reports the second page's start, which is
    // inside the access. A repeated string instruction may have moved on.
    let is_inside =
        sampled.0.wrapping_sub(computed.0) < size || computed.0.wrapping_sub(sampled.0) < watched;
    is_inside || typed.memory.role == Role::String
}
