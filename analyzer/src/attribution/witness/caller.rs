//! The callers as witnesses: what a function without types touches through its arguments is what its
//! caller passes, which the sampled stack leads to.

use crate::attribution::claim::{Claim, Placing, Witness};
use crate::attribution::code_place::NotLocated;
use crate::attribution::name_table::{NameKey, NamedIdx};
use crate::attribution::site_table::{CallIdx, SiteIdx};
use crate::attribution::verdict::Located;
use crate::attribution::witness::Asked;
use crate::attribution::world::{Paths, World};
use crate::bytes::file::LoadObjectIdx;
use crate::dataflow::ArgumentSum;
use crate::dwarf::code::frame::{FrameStep, SavedRegister};
use crate::index::call_site::{CallSite, Link, PassedPointer, Spot};
use crate::index::question::{Needs, Question};
use crate::index::site::{FrameSlot, OwnedRoot, TypedAccess};
use crate::limit;
use crate::types::data_object::Root;
use crate::x86_64::abi::{FRAME_POINTER, RETURN_ADDRESS_BYTES, STACK_POINTER};
use crate::x86_64::state::State;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::record::Sample;
use dataspace_proto::register::{Register, Registers};
use dataspace_proto::stack::StackPiece;
use std::sync::Arc;

/// The answer of one call.
struct Hop {
    found: Option<Claim>,
    /// It is but bytes that a pointer leads to.
    is_bytes: bool,
    /// The pointer is a member, which says more than a variable.
    is_of_member: bool,
    /// The sum that the call's own caller may say more of.
    further: Option<ArgumentSum>,
}

/// A walk up the sampled stack.
struct StackWalk<'a> {
    piece: &'a StackPiece,
    /// First address of the piece.
    start: Avma,
    stack_pointer: u64,
    frame_pointer: Option<u64>,
}

impl<'a> StackWalk<'a> {
    fn new(located: &Located<'a>, state: &State) -> Option<Self> {
        let frame_pointer = state.get(Register::Rbp);
        let stack_pointer = state.get(Register::Rsp)?;
        Self { stack_pointer, frame_pointer, ..Self::sampled(located.sample, located.registers)? }
            .into()
    }

    /// The walk that begins where the sample was taken.
    fn sampled(sample: &'a Sample, registers: &Registers) -> Option<Self> {
        let piece = &sample.stack;
        if piece.is_empty() {
            return None;
        }
        let stack_pointer = registers.get(Register::Rsp)?;
        let frame_pointer = registers.get(Register::Rbp);
        Some(Self { piece, start: Avma(stack_pointer), stack_pointer, frame_pointer })
    }

    /// The end of the frame.
    fn end(&self, step: &FrameStep) -> Option<u64> {
        let base = match step.cfa.register {
            STACK_POINTER => self.stack_pointer,
            FRAME_POINTER => self.frame_pointer?,
            _ => return None,
        };
        Some(base.wrapping_add_signed(step.cfa.offset))
    }

    /// Finds the variable of the frame that an access is in, by its number, and the distance from where it begins; `None`
    /// where one may be there, or one of several.
    #[allow(clippy::option_option, reason = "no variable, and not known, are two facts")]
    fn variable_at(
        &self,
        variables: &[FrameSlot],
        (avma, n_bytes): (Avma, u64),
    ) -> Option<Option<(usize, u64)>> {
        let mut found: Option<(usize, u64)> = None;
        for (number, slot) in variables.iter().enumerate() {
            let base = match slot.base.dwarf {
                Some(STACK_POINTER) => self.stack_pointer,
                Some(FRAME_POINTER) => self.frame_pointer?,
                _ => return None,
            };
            let into = avma.0.wrapping_sub(base.wrapping_add_signed(slot.offset));
            if into >= slot.layout.size {
                continue;
            }
            if into.saturating_add(n_bytes) > slot.layout.size {
                return None;
            }
            match found.and_then(|(first, _)| variables.get(first)) {
                Some(first) if first.layout.fingerprint != slot.layout.fingerprint => return None,
                Some(_) => {}
                None => found = Some((number, into)),
            }
        }
        Some(found)
    }

    /// Steps to the caller's frame and gives the address to return to. Frames only ever lie further up.
    fn step(&mut self, step: &FrameStep) -> Option<Avma> {
        let cfa = self.end(step)?;
        let saved = cfa.checked_sub(RETURN_ADDRESS_BYTES.into())?;
        if saved < self.stack_pointer {
            return None;
        }
        let return_address = self.piece.word(self.start, Avma(saved))?;
        self.frame_pointer = match step.frame_pointer {
            SavedRegister::Kept => self.frame_pointer,
            SavedRegister::At(offset) => {
                self.piece.word(self.start, Avma(cfa.wrapping_add_signed(offset)))
            }
            SavedRegister::Lost => None,
        };
        self.stack_pointer = cfa;
        Some(Avma(return_address))
    }
}

impl World {
    /// The address to which the function returns that a sample of this site was in, where the sampled stack tells it.
    pub(crate) fn returns_to(&self, sample: &Sample, site: SiteIdx) -> Option<Avma> {
        // Registers of an exact IP are those of a moment after that instruction: in another frame, perhaps.
        if sample.is_exact_ip {
            return None;
        }
        let frame = self.sites.past(site)?.frame?;
        let registers = sample.registers_of_user();
        StackWalk::sampled(sample, registers)?.step(&frame)
    }

    /// The claim of the callers of the trigger's function on what it touches: an object, by the witness
    /// [`Witness::Caller`], or but bytes, by [`Witness::PassedBytes`].
    pub(crate) fn passed(&mut self, asked: &Asked<'_>) -> Result<Option<Claim>, Needs> {
        let Asked { located, candidate, typed, .. } = *asked;
        let Some(handed) = &typed.handed else { return Ok(None) };
        if self.paths == Paths::Type {
            return Ok(None);
        }
        let Some(mut walk) = StackWalk::new(located, candidate.state) else { return Ok(None) };
        let (mut sum, mut frame) = (handed.sum, handed.frame);
        let (mut entries, mut object) = (Arc::clone(&handed.entries), located.object);
        // Bytes that are passed. Behind a pointer that is a member, they are told more of.
        let mut bytes: Option<(Claim, bool)> = None;
        for calls_out in 1..=limit::MAX_CALLS_OUT {
            let Some(return_address) = walk.step(&frame) else { break };
            let Some((idx, call, caller)) = self.call_site(located.sample.pid, return_address)?
            else {
                break;
            };
            let is_same = caller == object;
            let mut sites = [None, Some((0, &*call))];
            if let Some(passed) = call.entering(&entries, &sum, is_same) {
                sum = passed;
            } else if let Some((number, passed)) = call.onward(&entries, &sum, is_same) {
                // The function called is not that of the trigger: `f` ended in `jmp g`, and g's frame took
                // its place.
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
                let found = hop.found.map(|mut claim| {
                    claim.grounds.calls_out = calls_out;
                    claim
                });
                if let Some(claim) = found.filter(|_| !hop.is_bytes) {
                    let is_addressed = asked.is_at_operand();
                    return Ok(Some(if is_addressed { claim } else { claim.without_vote() }));
                }
                bytes = match (bytes, found) {
                    // `fill(s->text)` further out names a member, where the call nearest the trigger has
                    // but a variable `char *buf`.
                    (Some((_, false)), Some(outer)) if hop.is_of_member => Some((outer, true)),
                    (None, Some(first)) => Some((first, hop.is_of_member)),
                    (known, _) => known,
                };
                let Some(further) = hop.further else { return Ok(bytes.map(|it| it.0)) };
                sum = further;
            }
            let Some(step) = call.frame else { break };
            (frame, object) = (step, caller);
            entries = Arc::clone(&call.entries);
        }
        Ok(bytes.map(|it| it.0))
    }

    /// The claim of the frames further up: an address in one of them is of the variable that is described there, or else
    /// of the stack, as it is in the function's own frame.
    pub(crate) fn outer_frame(&mut self, asked: &Asked<'_>) -> Result<Option<Claim>, Needs> {
        let Asked { located, candidate, typed, .. } = *asked;
        let (Some(handed), Some(avma)) = (&typed.handed, asked.avma()) else { return Ok(None) };
        // The stack of an exact IP is that of a later moment: other calls may have their frames there.
        let is_left_out = self.paths == Paths::Type || located.sample.is_exact_ip;
        let walk = StackWalk::new(located, candidate.state).filter(|_| !is_left_out);
        let Some(mut walk) = walk else { return Ok(None) };
        let mut frame = handed.frame;
        for calls_out in 1..=limit::MAX_CALLS_OUT {
            let is_further = walk.end(&frame).is_some_and(|end| avma.0 >= end);
            let Some(return_address) = is_further.then(|| walk.step(&frame)).flatten() else {
                break;
            };
            let found = self.call_site(located.sample.pid, return_address)?;
            let Some((idx, call, _)) = found else { break };
            let Some(step) = call.frame else { break };
            let at = walk.variable_at(&call.variables, (avma, typed.memory.size.into()));
            // What is passed by value in memory is described by the function called, and lies beyond its frame.
            let is_described = matches!(at, Some(Some(_)));
            if is_described || walk.end(&step).is_some_and(|end| avma.0 < end) {
                let named = at.and_then(|at| match at {
                    Some(at) => self.outer_variable((idx, &call.variables), at, typed),
                    None => Some(self.names.stack()),
                });
                return Ok(named.map(|named| {
                    let mut claim = Claim::of(Witness::Caller, named, Placing::Part);
                    claim.grounds.calls_out = calls_out;
                    claim
                }));
            }
            frame = step;
        }
        Ok(None)
    }

    /// The part of a variable in a caller's frame that an access is to.
    fn outer_variable(
        &mut self,
        (call, variables): (CallIdx, &[FrameSlot]),
        (number, offset): (usize, u64),
        typed: &TypedAccess,
    ) -> Option<NamedIdx> {
        let slot = variables.get(number)?;
        let size = u64::from(typed.memory.size);
        let key = NameKey::OuterSlot { call, slot: number as u32, offset, size };
        self.names.part(key, &slot.layout, Root::Variable(&slot.name), (offset, size))
    }

    /// The answer of one call on a sum of its callee's arguments.
    fn hop(
        &mut self,
        site: &CallSite,
        sum: &ArgumentSum,
        typed: &TypedAccess,
        key: impl Fn(u8, Spot) -> NameKey,
    ) -> Hop {
        let mut hop = Hop { found: None, is_bytes: false, is_of_member: false, further: None };
        let link = match site.link(sum) {
            Link::Pointer { place, pointer, moved } => {
                let spot = pointer.spot(moved, u64::from(typed.memory.size));
                let is_doubtful = spot.is_some_and(|spot| spot.is_doubtful);
                hop.is_bytes = pointer.is_erased();
                hop.is_of_member = matches!(pointer.root, OwnedRoot::Member(_));
                hop.found = spot.filter(|_| !is_doubtful).and_then(|spot| {
                    self.name_passed(key(place as u8, spot), pointer, spot, typed)
                });
                if !hop.is_bytes && !is_doubtful {
                    return hop;
                }
                site.further(sum)
            }
            link => link,
        };
        if let Link::Further(further) = link {
            hop.further = Some(further);
        }
        hop
    }

    /// The call that returns to `return_address`, and the load object it is in.
    #[allow(clippy::type_complexity, reason = "three things that are found together")]
    pub(crate) fn call_site(
        &self,
        pid: i32,
        return_address: Avma,
    ) -> Result<Option<(CallIdx, Arc<CallSite>, LoadObjectIdx)>, Needs> {
        let Some((object, return_address)) = self.return_place(pid, return_address)? else {
            return Ok(None);
        };
        match self.calls.find(object, return_address) {
            Some((idx, call)) => Ok(Some((idx, Arc::clone(call), object))),
            None => Err(Needs { object, question: Question::Call(return_address) }),
        }
    }

    /// The load object that a return address is in, and where.
    pub(crate) fn return_place(
        &self,
        pid: i32,
        return_address: Avma,
    ) -> Result<Option<(LoadObjectIdx, Svma)>, Needs> {
        let inside = Avma(return_address.0.wrapping_sub(1));
        match self.locate(pid, inside) {
            Ok((object, bias)) => Ok(Some((object, Svma(return_address.0.wrapping_sub(bias))))),
            Err(NotLocated::Needs(needs)) => Err(needs),
            Err(NotLocated::Unknown(_)) => Ok(None),
        }
    }

    fn name_passed(
        &mut self,
        key: NameKey,
        pointer: &PassedPointer,
        spot: Spot,
        typed: &TypedAccess,
    ) -> Option<Claim> {
        let part = (spot.offset, spot.size, typed.memory.kind);
        let named = self.names.part_as(key, &pointer.layout, pointer.root(), part)?;
        Some(match (spot.is_exact, pointer.is_erased()) {
            (false, false) => Claim::of(Witness::Caller, named, Placing::Somewhere),
            (true, false) => Claim::of(Witness::Caller, named, Placing::Addressed),
            (false, true) => Claim::of(Witness::PassedBytes, named, Placing::Somewhere),
            (true, true) => Claim::of(Witness::PassedBytes, named, Placing::Part),
        })
    }
}
