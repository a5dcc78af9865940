//! Whether an answer is right.

use crate::truth::model::Truth;
use crate::truth::operand::{self, Touch};
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::{AddressSource, SampleLine};
use std::sync::Arc;

/// The judgement of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Right,
    /// Another instruction was named.
    WrongTrigger,
    /// The data object is another one than the true trigger's.
    WrongObject,
    /// It is said to touch no memory, and does.
    WrongSilence,
    /// No answer, and why.
    Unanswered(Option<Reason>),
}

impl Verdict {
    pub(crate) const fn is_wrong(self) -> bool {
        matches!(self, Self::WrongTrigger | Self::WrongObject | Self::WrongSilence)
    }

    pub(crate) const fn is_answered(self) -> bool {
        !matches!(self, Self::Unanswered(_))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::WrongTrigger => "wrong trigger",
            Self::WrongObject => "wrong object",
            Self::WrongSilence => "wrong not_memory",
            Self::Unanswered(Some(reason)) => reason.name(),
            Self::Unanswered(None) => "nothing",
        }
    }
}

/// Judges the answer `line`. `is_fused` says that a branch's sample may stand for the instruction
/// it is fused with; `reference` gives the object at the true trigger with its true address, by both paths and by
/// the type alone: an array is named after the pointer where its address is lost.
pub(crate) fn judge(
    line: &SampleLine,
    truth: &Truth,
    is_fused: bool,
    reference: impl FnOnce() -> Vec<Arc<str>>,
) -> Verdict {
    if line.trigger.is_none() && line.object.is_none() && !line.not_memory {
        return Verdict::Unanswered(line.reason);
    }
    if let Some(trigger) = line.trigger {
        if is_fused && truth.fused_with == Some(trigger) {
            return Verdict::Right;
        }
        if trigger != truth.trigger.ip() {
            return Verdict::WrongTrigger;
        }
    }
    if line.not_memory {
        return if truth.touch == Touch::None { Verdict::Right } else { Verdict::WrongSilence };
    }
    if truth.touch == Touch::None {
        // Nothing is known of what a prefetch touches, or whether it does.
        let is_prefetch = operand::is_prefetch(&truth.trigger);
        let is_claimed = line.object.is_some() && !is_prefetch;
        return if is_claimed { Verdict::WrongObject } else { Verdict::Right };
    }
    match (&line.object, line.trigger) {
        (Some(object), None) => {
            let is_stack = truth.touch == Touch::Stack && &**object == "<Stack>";
            let known = if is_stack { Vec::new() } else { reference() };
            if known.is_empty() || known.iter().any(|known| is_part(known, object)) {
                Verdict::Right
            } else {
                Verdict::WrongObject
            }
        }
        _ => Verdict::Right,
    }
}

/// Whether `known` is `object` or a part of it: what holds the object is no wrong name for it, one
/// of its parts is. A name that tells no type does not contradict one that does.
fn is_part(known: &str, object: &str) -> bool {
    if is_typeless(object) && !is_typeless(known) {
        return true;
    }
    known.strip_prefix(object).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a descriptor says only which section, literal or symbol it is.
fn is_typeless(descriptor: &str) -> bool {
    ["{.", "{- ", "{string_literal "].iter().any(|start| descriptor.starts_with(start))
}

/// Whether the right trigger was given an address that it did not touch.
pub(crate) fn is_wrong_address(line: &SampleLine, truth: &Truth) -> bool {
    truth.touch != Touch::None
        && line.trigger == Some(truth.trigger.ip())
        && line.addr_source == Some(AddressSource::Computed)
        && truth.addr.is_some()
        && !line.addr.is_some_and(|addr| truth.addresses.contains(&addr))
}
