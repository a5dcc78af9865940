//! The skid of one sample: by the event's model, and by the flag that says whether
//! the processor was about to run the instruction again.

use crate::x86_64::backtrack::Skid;
use dataspace_proto::event::{EventKind, SkidModel};
use dataspace_proto::record::Sample;
use dataspace_proto::register::{Register, Registers};

/// RF: the processor sets it where an interrupt finds an instruction that faulted and is to be run
/// again, or a repeated string instruction between two rounds, and clears it once the instruction
/// is done (SDM volume 3, section 17.3.1.1).
///
/// AMD's sets it for the fault alone (seen on Zen 3): there a repeated instruction is told from the
/// one before it by its registers, where they contradict that it has just begun.
const RESUMED: u64 = 1 << 16;

/// State of the flag RF; `None` where the flags were not sampled.
pub(crate) fn is_resumed(registers: &Registers) -> Option<bool> {
    registers.get(Register::Rflags).map(|flags| flags & RESUMED != 0)
}

/// The skid of a user-mode sample, by the event's model and what this sample says.
pub(crate) fn skid(
    model: SkidModel,
    sample: &Sample,
    registers: &Registers,
    is_forced: bool,
    kind: EventKind,
) -> Skid {
    let is_resumed = is_resumed(registers) == Some(true);
    match model {
        // A breakpoint is hit by the round before, a fault by the one to come; an interrupt comes
        // between the two.
        SkidModel::AfterOne if is_resumed && matches!(kind, EventKind::Breakpoint { .. }) => {
            Skid::Round
        }
        SkidModel::AfterOne if is_resumed => Skid::Exact,
        SkidModel::AfterOne => Skid::AfterOne,
        SkidModel::Unknown(range) => Skid::Within(range),
        // Hardware that could not vouch for this one sample gives the next instruction.
        SkidModel::Exact if kind == EventKind::Memory && !is_forced => {
            if sample.is_exact_ip {
                Skid::ExactOrFused
            } else {
                Skid::AfterOne
            }
        }
        SkidModel::Exact => Skid::Exact,
    }
}
