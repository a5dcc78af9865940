//! The address path by way of the callers: what a function without types touches through its arguments
//! is what its caller passes, which the sampled stack leads to.

use crate::attribution::access::{Attribution, Located, Verdict};
use crate::attribution::code_place::NotLocated;
use crate::attribution::name_table::{NameKey, NamedIdx};
use crate::attribution::search::Candidate;
use crate::attribution::site_table::CallIdx;
use crate::attribution::world::{Paths, World};
use crate::dataflow::ArgumentSum;
use crate::dwarf::code::frame::{FrameStep, SavedRegister};
use crate::index::call_site::{CallSite, Link, PassedPointer, Spot};
use crate::index::question::{Needs, Question};
use crate::index::site::{OwnedRoot, TypedAccess};
use crate::limit;
use crate::x86_64::state::State;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::register::Register;
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::stack::StackPiece;
use std::sync::Arc;

/// What a caller says an access is to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedObject {
    named: NamedIdx,
    /// The very part is known.
    is_exact: bool,
    /// It is but bytes behind a pointer: anything better goes before that.
    pub(crate) is_erased: bool,
    /// The pointer is a member, which says more than a variable.
    is_of_member: bool,
    /// How many calls further out.
    calls_out: u8,
}

/// DWARF numbers of the registers that frames are found by.
const DWARF_FRAME_POINTER: u16 = 6;
const DWARF_STACK_POINTER: u16 = 7;

/// Bytes of a return address.
const RETURN_ADDRESS_BYTES: u64 = 8;

/// What one call says.
struct Hop {
    found: Option<PassedObject>,
    /// What its own caller may say more of.
    further: Option<ArgumentSum>,
}

/// A walk up the sampled stack.
struct Walk<'a> {
    piece: &'a StackPiece,
    /// Where the piece begins.
    start: Avma,
    stack_pointer: u64,
    frame_pointer: Option<u64>,
}

impl<'a> Walk<'a> {
    fn new(located: Located<'a>, state: &State) -> Option<Self> {
        let piece = &located.sample.stack;
        if piece.is_empty() {
            return None;
        }
        Some(Self {
            piece,
            start: Avma(located.registers.get(Register::Rsp)?),
            stack_pointer: state.get(Register::Rsp)?,
            frame_pointer: state.get(Register::Rbp),
        })
    }

    /// Steps to the caller's frame and gives the address to return to. Frames only ever lie further up.
    fn step(&mut self, step: &FrameStep) -> Option<Avma> {
        let base = match step.cfa.register {
            DWARF_STACK_POINTER => self.stack_pointer,
            DWARF_FRAME_POINTER => self.frame_pointer?,
            _ => return None,
        };
        let cfa = base.wrapping_add_signed(step.cfa.offset);
        let saved = cfa.checked_sub(RETURN_ADDRESS_BYTES)?;
        if saved < self.stack_pointer {
            return None;
        }
        let behind = self.piece.word(self.start, Avma(saved))?;
        self.frame_pointer = match step.frame_pointer {
            SavedRegister::Kept => self.frame_pointer,
            SavedRegister::At(offset) => {
                self.piece.word(self.start, Avma(cfa.wrapping_add_signed(offset)))
            }
            SavedRegister::Lost => None,
        };
        self.stack_pointer = cfa;
        Some(Avma(behind))
    }
}

impl World {
    /// What the callers of the trigger's function say it touches.
    pub(crate) fn passed(
        &mut self,
        located: Located<'_>,
        candidate: Candidate<'_>,
        typed: &TypedAccess,
    ) -> Result<Option<PassedObject>, Needs> {
        let Some(handed) = &typed.handed else { return Ok(None) };
        if self.paths == Paths::Type {
            return Ok(None);
        }
        let Some(mut walk) = Walk::new(located, candidate.state) else { return Ok(None) };
        let (mut sum, mut frame) = (handed.sum, handed.frame);
        let (mut entries, mut object) = (Arc::clone(&handed.entries), located.object);
        let mut erased: Option<PassedObject> = None;
        for calls_out in 1..=limit::MAX_CALLS_OUT {
            let Some(behind) = walk.step(&frame) else { break };
            let Some((idx, call, caller)) = self.call_site(located.sample.pid, behind)? else {
                break;
            };
            let is_same = caller == object;
            let mut sites = [None, Some((0, &*call))];
            if let Some(passed) = call.entering(&entries, &sum, is_same) {
                sum = passed;
            } else if let Some((number, passed)) = call.onward(&entries, &sum, is_same) {
                sites[0] = call.onward.get(number).map(|site| (number as u8 + 1, site));
                sum = passed;
            } else if let Some(passed) = call.by_detour(&entries, &sum, is_same) {
                sum = passed;
            } else {
                break;
            }
            for (onward, site) in sites.into_iter().flatten() {
                let hop = self.hop(site, &sum, typed, |argument, spot| {
                    let kind = typed.memory.kind;
                    NameKey::Passed { call: idx, onward, argument, spot, kind }
                });
                let found = hop.found.map(|object| PassedObject { calls_out, ..object });
                if let Some(object) = found.filter(|object| !object.is_erased) {
                    return Ok(Some(object));
                }
                erased = match (erased, found) {
                    (Some(known), Some(outer)) if outer.is_of_member && !known.is_of_member => {
                        Some(outer)
                    }
                    (known, outer) => known.or(outer),
                };
                let Some(further) = hop.further else { return Ok(erased) };
                sum = further;
            }
            let Some(step) = call.frame else { break };
            (frame, object) = (step, caller);
            entries = Arc::clone(&call.entries);
        }
        Ok(erased)
    }

    /// What one call says of a sum of its callee's arguments.
    fn hop(
        &mut self,
        site: &CallSite,
        sum: &ArgumentSum,
        typed: &TypedAccess,
        key: impl Fn(u8, Spot) -> NameKey,
    ) -> Hop {
        let (found, link) = match site.link(sum) {
            Link::Pointer { place, pointer, moved } => {
                let spot = pointer.spot(moved, u64::from(typed.memory.size));
                let is_doubtful = spot.is_some_and(|spot| spot.is_doubtful);
                let spot = spot.filter(|_| !is_doubtful);
                let named = spot.and_then(|spot| {
                    self.name_passed(key(place as u8, spot), pointer, spot, typed)
                });
                if !pointer.is_erased() && !is_doubtful {
                    return Hop { found: named, further: None };
                }
                (named, site.further(sum))
            }
            link => (None, link),
        };
        let further = match link {
            Link::Further(further) => Some(further),
            _ => None,
        };
        Hop { found, further }
    }

    /// The call that returns to `behind`, and the load object it is in.
    #[allow(clippy::type_complexity, reason = "three things that are found together")]
    fn call_site(
        &self,
        pid: i32,
        behind: Avma,
    ) -> Result<Option<(CallIdx, Arc<CallSite>, crate::bytes::file::LoadObjectIdx)>, Needs> {
        let inside = Avma(behind.0.wrapping_sub(1));
        let (object, bias) = match self.locate(pid, inside) {
            Ok(located) => located,
            Err(NotLocated::Needs(needs)) => return Err(needs),
            Err(NotLocated::Unknown(_)) => return Ok(None),
        };
        let behind = Svma(behind.0.wrapping_sub(bias));
        match self.calls.find(object, behind) {
            Some((idx, call)) => Ok(Some((idx, Arc::clone(call), object))),
            None => Err(Needs { object, question: Question::Call(behind) }),
        }
    }

    fn name_passed(
        &mut self,
        key: NameKey,
        pointer: &PassedPointer,
        spot: Spot,
        typed: &TypedAccess,
    ) -> Option<PassedObject> {
        let part = (spot.offset, spot.size, typed.memory.kind);
        let root = pointer.root();
        let named = self.names.part_as(key, &pointer.layout, root, part)?;
        Some(PassedObject {
            named,
            is_exact: spot.is_exact,
            is_erased: pointer.is_erased(),
            is_of_member: matches!(pointer.root, OwnedRoot::Member(_)),
            calls_out: 0,
        })
    }

    /// Takes what a caller says for the answer.
    pub(crate) fn take_passed(
        &self,
        passed: PassedObject,
        is_computed: bool,
        attribution: &mut Attribution,
    ) {
        attribution.verdict = Verdict::Attributed {
            named: passed.named,
            evidence: Evidence::Address,
            is_address_lost: attribution.addr.is_none(),
        };
        attribution.calls_out = passed.calls_out;
        attribution.is_somewhere = !passed.is_exact;
        attribution.is_placed = passed.is_exact && is_computed;
    }
}
