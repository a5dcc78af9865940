//! The letters after an event: which levels it counts, and how precise its samples are.

use crate::error::EventParseError;

/// Letters after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modifiers {
    pub(super) exclude_user: bool,
    pub(super) exclude_kernel: bool,
    pub(super) has_hypervisor: bool,
    pub(super) precision: Precision,
}

/// The wanted distance of samples from their triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Precision {
    /// Nothing was asked for.
    #[default]
    Unasked,
    /// So close or not at all: `p`, `pp`, `ppp`.
    Exactly(u8),
    /// As close as there is: `P`.
    Best,
}

/// The modifiers of events that need no PMU.
const LEVELS: &str = "u (user) and k (kernel)";
/// The modifiers of PMU's events.
const ALL: &str = "u (user), k (kernel), h (hypervisor), p, pp, ppp (precise) and P (as precise as \
                   there is)";

/// Every letter that perf takes for a modifier: what is made of these only is no tracepoint's name.
const PERF_LETTERS: &str = "ukhpPGHSDIWebR";

/// Tells whether `text` can only be modifiers.
pub(super) fn are_modifiers(text: &str) -> bool {
    text.chars().all(|letter| PERF_LETTERS.contains(letter))
}

impl Modifiers {
    /// Reads the modifiers of `text`, an event of a PMU if `is_counter`.
    ///
    /// perf's rule: once one level is named, the others are out.
    pub(super) fn parse(
        text: &str,
        letters: &str,
        is_counter: bool,
    ) -> Result<Self, EventParseError> {
        let (mut user, mut kernel, mut hypervisor) = (false, false, false);
        let mut precision = Precision::Unasked;
        for modifier in letters.chars() {
            match modifier {
                'u' => user = true,
                'k' => kernel = true,
                'h' if is_counter => hypervisor = true,
                'P' if is_counter => precision = Precision::Best,
                'p' if is_counter => {
                    precision = match precision {
                        Precision::Unasked => Precision::Exactly(1),
                        Precision::Exactly(level @ ..3) => Precision::Exactly(level + 1),
                        Precision::Exactly(_) => {
                            return Err(EventParseError::TooPrecise(text.to_owned()));
                        }
                        Precision::Best => Precision::Best,
                    }
                }
                _ => {
                    let known = if is_counter { ALL } else { LEVELS };
                    let text = text.to_owned();
                    return Err(EventParseError::UnknownModifier { text, modifier, known });
                }
            }
        }
        let names_level = user || kernel || hypervisor;
        Ok(Self {
            exclude_user: names_level && !user,
            exclude_kernel: names_level && !kernel,
            has_hypervisor: hypervisor,
            precision,
        })
    }

    /// The levels again, as letters.
    pub(super) fn levels(self) -> String {
        let letters =
            [(!self.exclude_user, 'u'), (!self.exclude_kernel, 'k'), (self.has_hypervisor, 'h')];
        if !self.exclude_user && !self.exclude_kernel && !self.has_hypervisor {
            return String::new();
        }
        letters.iter().filter(|(is_in, _)| *is_in).map(|(_, letter)| letter).collect()
    }
}
