//! Whether a conditional branch is taken, by the sampled flags.

use iced_x86::ConditionCode;

const CARRY: u64 = 1 << 0;
const PARITY: u64 = 1 << 2;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;

/// Whether a branch with `condition` is taken when RFLAGS is `flags` (SDM volume 1, appendix B).
/// `None` for a branch that no flag decides, such as `loop` or `jrcxz`.
///
/// A branch changes no flags, so those sampled after it are those it saw.
#[must_use]
pub fn is_taken(condition: ConditionCode, flags: u64) -> Option<bool> {
    let set = |bits: u64| flags & bits != 0;
    let less = set(SIGN) != set(OVERFLOW);
    Some(match condition {
        ConditionCode::None => return None,
        ConditionCode::o => set(OVERFLOW),
        ConditionCode::no => !set(OVERFLOW),
        ConditionCode::b => set(CARRY),
        ConditionCode::ae => !set(CARRY),
        ConditionCode::e => set(ZERO),
        ConditionCode::ne => !set(ZERO),
        ConditionCode::be => set(CARRY | ZERO),
        ConditionCode::a => !set(CARRY | ZERO),
        ConditionCode::s => set(SIGN),
        ConditionCode::ns => !set(SIGN),
        ConditionCode::p => set(PARITY),
        ConditionCode::np => !set(PARITY),
        ConditionCode::l => less,
        ConditionCode::ge => !less,
        ConditionCode::le => set(ZERO) || less,
        ConditionCode::g => !set(ZERO) && !less,
    })
}
