//! The choice of one sample's trigger among the instructions that can have been it, as far as the
//! sample tells.

use crate::attribution::search::{SampledAccess, Search, Survivor};
use crate::x86_64::abi::RETURN_ADDRESS_BYTES;
use dataspace_proto::reason::Reason;

/// The result of the walk back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The survivors that are left, and perhaps the return of a callee: one, or several of which
    /// none is ruled out.
    Left {
        /// The callee's return is one of them.
        has_return: bool,
        /// Another instruction, which is not among them, may have touched the same address: the
        /// object is known and the trigger is not.
        has_rival: bool,
    },
    /// The trigger touches no memory; which it is, if that is known.
    NotMemory(Option<u8>),
    /// Nothing can be told.
    Unknown(Reason),
}

/// Weighs what is left, and drops what the sample rules out.
#[inline(always)]
pub(crate) fn choose(search: &mut Search, evidence: &SampledAccess, reach: u32) -> Choice {
    // What is only known to be within a range can be nothing but an access, or the event would
    // tell nothing at all.
    // A cache miss is never of `add %rax,%rbx`; a clock's sample may be.
    let is_memory_only = evidence.kind.is_memory_only() || evidence.addr.is_some() || reach > 1;
    let has_return = reach == 1 && search.outside.is_return && is_return_possible(search, evidence);
    if search.has_confirmed() {
        let outside = search.outside;
        // Code that is not seen may have touched the same address: the object is certain even so, the
        // instruction is not.
        let has_rival = outside.is_unknown
            || outside.is_entry
            || outside.is_landing_pad
            || outside.is_return && !has_return
            || search.is_cut;
        search.drop_beside_confirmed();
        return Choice::Left { has_return, has_rival };
    }
    let n_silent = search.survivors.iter().filter(|survivor| survivor.access.is_none()).count();
    // Jumps that were not looked at are as silent as those that were.
    let is_by_jumps = reach == 1 && search.outside.is_by_jumps && n_silent != 0;
    if is_memory_only && n_silent != 0 {
        search.survivors.retain(|survivor| survivor.access.is_some());
    }
    let outside = search.outside;
    // At a function's first instruction the trigger may be in a caller, and those that call through
    // pointers are not seen.
    let is_called = outside.is_entry || outside.is_landing_pad || outside.is_return && reach > 1;
    let is_unknown = outside.is_unknown && !is_by_jumps;
    if is_unknown || search.is_cut || is_called {
        let is_blocked = is_called && !is_unknown && !search.is_cut;
        let is_alone = search.survivors.is_empty() && !has_return || reach > 1;
        let is_blocked = is_blocked && is_alone;
        return Choice::Unknown(if is_blocked { Reason::Blocked } else { Reason::Unresolvable });
    }
    if search.survivors.is_empty() && !has_return {
        return Choice::Unknown(match (n_silent, reach) {
            (0, 0 | 1) => Reason::Unresolvable,
            // An event of memory, and what can have been its trigger touches none.
            (_, 0 | 1) => Reason::Unspecified,
            _ => Reason::Incomplete,
        });
    }
    match (is_memory_only, n_silent) {
        (true, _) | (_, 0) => Choice::Left { has_return, has_rival: false },
        // `mov (%rdi),%eax` on one way and `xor %eax,%eax` on the other: either may have cost the time.
        _ if n_silent < search.survivors.len() || has_return => {
            Choice::Unknown(Reason::Unresolvable)
        }
        _ => Choice::NotMemory(only_trigger(&search.survivors).filter(|_| !is_by_jumps)),
    }
}

/// Tells whether the callee's return, which read its address just below the stack, fits the sample.
fn is_return_possible(search: &Search, evidence: &SampledAccess) -> bool {
    use dataspace_proto::memory::Access;
    let Some(addr) = evidence.addr else { return evidence.access != Some(Access::Store) };
    search.returned.is_none_or(|stack| {
        stack.wrapping_sub(addr.0).wrapping_sub(1) < u64::from(RETURN_ADDRESS_BYTES)
    })
}

/// The trigger that all survivors are, if they are one.
pub(crate) fn only_trigger(survivors: &[Survivor]) -> Option<u8> {
    let first = survivors.first()?.trigger;
    survivors.iter().all(|survivor| survivor.trigger == first).then_some(first)
}
