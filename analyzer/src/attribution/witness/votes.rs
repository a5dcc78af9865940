//! Votes of typed instructions as a witness: which objects on the heap are named after them, and which
//! samples vote.

use crate::attribution::claim::{Claim, Placing, Witness};
use crate::attribution::name_table::{NameKey, NamedIdx};
use crate::attribution::verdict::Attribution;
use crate::attribution::vote::{Touch, VotedObject};
use crate::attribution::world::{Paths, World};
use crate::limit;
use crate::types::data_object::Root;
use crate::x86_64::abi::RED_ZONE_BYTES;
use crate::x86_64::access::{MemoryAccess, Role, SegmentBase};
use dataspace_proto::address::Avma;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Register;

impl World {
    /// The claim of votes on the access at `avma`; `memory` is `None` where its instruction is not known.
    pub(crate) fn voted(
        &mut self,
        sample: &Sample,
        avma: Avma,
        memory: Option<&MemoryAccess>,
    ) -> Option<Claim> {
        let touch = self.heap_access(sample, avma, memory)?;
        let found = self.votes.find(touch)?;
        self.claim_of_votes(found, touch.size)
    }

    fn claim_of_votes(&mut self, found: VotedObject, size: u32) -> Option<Claim> {
        let named = self.name_of_votes(found, size)?;
        // What was learnt from votes is no vote.
        let mut claim = Claim::of(Witness::Votes, named, Placing::Part);
        claim.grounds.votes = found.votes;
        Some(claim)
    }

    /// The touched memory, if votes may tell what is there.
    fn heap_access(
        &self,
        sample: &Sample,
        avma: Avma,
        memory: Option<&MemoryAccess>,
    ) -> Option<Touch> {
        // What lies at `-8(%rsp)` is another thing in each call: no vote speaks of it.
        let is_in_frame = |memory: &MemoryAccess| {
            let base = memory.address.base.and_then(|base| base.register);
            base == Some(Register::Rsp)
                || memory.address.segment != SegmentBase::Flat
                || memory.role == Role::StackSlot
        };
        if self.paths != Paths::Both || memory.is_some_and(is_in_frame) {
            return None;
        }
        let size = memory.map_or(0, |memory| memory.size);
        heap_touch(sample, avma, size)
    }

    /// The name of what votes found for an access of `size` bytes.
    fn name_of_votes(&mut self, found: VotedObject, size: u32) -> Option<NamedIdx> {
        let kind = self.votes.kind(found.kind);
        match &kind.scalar {
            Some(answer) => {
                let key = NameKey::Voted { kind: found.kind, offset: 0, size: 0 };
                Some(self.names.whole(key, answer))
            }
            None => {
                let key = NameKey::Voted { kind: found.kind, offset: found.offset, size };
                let part = (u64::from(found.offset), u64::from(size));
                self.names.part(key, &kind.layout, Root::Pointer(""), part)
            }
        }
    }

    /// The claim of votes on the object around what an instruction knows only as a number or a pointer.
    pub(crate) fn voted_around(
        &mut self,
        sample: &Sample,
        avma: Avma,
        memory: &MemoryAccess,
    ) -> Option<Claim> {
        let touch = self.heap_access(sample, avma, Some(memory))?;
        let found = self.votes.find_around(touch)?;
        self.claim_of_votes(found, memory.size)
    }

    /// Votes with a sample that its instruction named.
    pub(crate) fn vote(&mut self, sample: &Sample, attribution: &Attribution) {
        let (Some(claim), Some((avma, _))) = (attribution.claim(), attribution.addr) else {
            return;
        };
        // A vote tells where an object begins: `a[i]` with an unknown index would put it anywhere.
        if claim.placing != Placing::Addressed || self.paths != Paths::Both {
            return;
        }
        let Some(touch) = heap_touch(sample, avma, attribution.size_bytes()) else { return };
        let named = self.names.get_mut(claim.named);
        let offset = named.answer.offset;
        let lesson = *named.lesson.get_or_insert_with(|| self.votes.lesson(&named.answer));
        self.votes.teach(touch, lesson, offset);
    }
}

/// The touched memory, if it is none of the stack's: what is there is another thing in each frame.
fn heap_touch(sample: &Sample, avma: Avma, size: u32) -> Option<Touch> {
    let registers = sample.registers_of_user();
    let stack = registers.get(Register::Rsp)?.saturating_sub(RED_ZONE_BYTES);
    let is_stack = avma.0.checked_sub(stack).is_some_and(|above| above < limit::STACK_REACH_BYTES);
    let Sample { pid, time_ns, .. } = *sample;
    (!is_stack).then_some(Touch { pid, time_ns, addr: avma.0, size })
}
