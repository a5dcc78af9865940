//! Which of a site's candidates was the trigger of one sample, and which of its accesses.

use crate::analyzer::Analyzer;
use crate::attribution::Located;
use crate::site::TypedAccess;
use crate::site_table::SiteIdx;
use crate::x86_64::access::{RegisterLoss, RegisterState, Role};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::EventKind;
use dataspace_proto::reason::Reason;

/// Which trigger and which of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) trigger: u8,
    pub(crate) access: u8,
}

/// Why there is no choice.
pub(crate) enum Chosen {
    NotMemory(Option<Svma>),
    Unknown(Reason),
}

impl Analyzer {
    /// Which candidate was the trigger, by flags, sampled address and event. Allocates nothing:
    /// it runs for every sample.
    pub(crate) fn choose(&mut self, located: Located<'_>) -> Result<Choice, Chosen> {
        let unresolvable = Err(Chosen::Unknown(Reason::Unresolvable));
        let is_memory_only = located.kind.is_memory_only();
        let mut first: Option<Choice> = None;
        let mut n_silent = 0;
        let mut silent = None;
        for trigger in 0..=u8::MAX {
            let triggers = self.sites.get(located.site).outcome.as_deref().unwrap_or(&[]);
            let Some(candidate) = triggers.get(usize::from(trigger)) else { break };
            let condition = candidate.condition;
            if condition.is_some_and(|condition| !condition.is_possible(located.registers)) {
                continue;
            }
            if candidate.accesses.is_empty() {
                n_silent += 1;
                silent = Some(candidate.svma);
                continue;
            }
            let access = match pick_access(&candidate.accesses, candidate.state, located) {
                Picked::One(access) => access,
                Picked::Several => return unresolvable,
                Picked::None => continue,
            };
            let choice = Choice { trigger, access };
            match first {
                None => first = Some(choice),
                // Several triggers, but one object: it is known even so.
                Some(first) if self.is_same_object(located.site, first, choice) => {}
                Some(_) => return unresolvable,
            }
        }
        match (first, n_silent) {
            (Some(first), 0) => Ok(first),
            (Some(first), _) if is_memory_only => Ok(first),
            (Some(_), _) => unresolvable,
            (None, _) if is_memory_only => Err(Chosen::Unknown(Reason::Unspecified)),
            (None, 0) => unresolvable,
            (None, 1) => Err(Chosen::NotMemory(silent)),
            (None, _) => Err(Chosen::NotMemory(None)),
        }
    }

    fn is_same_object(&mut self, site: SiteIdx, first: Choice, second: Choice) -> bool {
        let object = self.static_object(site, first);
        object.is_some_and(|object| {
            let charged_to = self.names.get(object).charged_to;
            self.static_object(site, second)
                .is_some_and(|second| self.names.get(second).charged_to == charged_to)
        })
    }
}

enum Picked {
    One(u8),
    Several,
    None,
}

/// Which access of a trigger the sample is about. A sampled address rules out those that
/// demonstrably went elsewhere; without one a written-out operand goes before the stack slot.
fn pick_access(accesses: &[TypedAccess], state: RegisterState, located: Located<'_>) -> Picked {
    let is_fitting = |typed: &TypedAccess| {
        let Some(sampled) = located.sample.addr else { return true };
        match typed.memory.effective_address(located.registers, state, located.bias) {
            Ok(computed) => is_overlapping(computed, typed, sampled, located.kind),
            Err(RegisterLoss) => true,
        }
    };
    let fitting = || {
        accesses.iter().enumerate().filter(|(_, typed)| is_fitting(typed)).map(|(idx, _)| idx as u8)
    };
    match fitting().count() {
        0 => Picked::None,
        1 => fitting().next().map_or(Picked::None, Picked::One),
        _ => {
            let is_operand = |idx: &u8| accesses[usize::from(*idx)].memory.role == Role::Operand;
            let mut operands = fitting().filter(is_operand);
            match (operands.next(), operands.next()) {
                (Some(only), None) => Picked::One(only),
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
