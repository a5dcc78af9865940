//! The instruction as a witness: what the debug information says of its operand, else of objects that
//! other registers point at.

use crate::attribution::claim::{Claim, Placing, Witness};
use crate::attribution::name_table::{NameKey, NamedIdx};
use crate::attribution::search::{Survivor, TriggerCandidate};
use crate::attribution::site_table::SiteIdx;
use crate::attribution::verdict::Located;
use crate::attribution::witness::Asked;
use crate::attribution::world::{Paths, World};
use crate::index::site::{PlacedObject, TypeAnswer};
use crate::types::data_object::Root;
use crate::x86_64::access::{RegisterLoss, Role};
use dataspace_proto::address::Avma;
use dataspace_proto::event::EventKind;
use dataspace_proto::reason::Reason;

impl World {
    /// The claim of instruction and debug information, else of what live objects of a known type do.
    pub(crate) fn instruction(&mut self, asked: &Asked<'_>) -> Result<Claim, Reason> {
        if self.paths == Paths::Address {
            return Err(Reason::Unidentified);
        }
        let named = self
            .type_path(asked)
            .or_else(|reason| self.live_object(asked, asked.avma().ok_or(reason)?).ok_or(reason))?;
        let placing = if is_addressed(asked) { Placing::Addressed } else { Placing::Part };
        Ok(Claim::of(Witness::Instruction, named, placing))
    }

    /// The object that instruction and debug information say.
    fn type_path(&mut self, asked: &Asked<'_>) -> Result<NamedIdx, Reason> {
        let Asked { located, candidate, typed, .. } = *asked;
        let TriggerCandidate { survivor, state } = candidate;
        let (trigger, access) = (survivor.trigger, survivor.access.unwrap_or(0));
        match &typed.answer {
            TypeAnswer::Unknown(reason) => Err(*reason),
            TypeAnswer::Object(answer) => Ok(self.whole_object(located.site, survivor, answer)),
            TypeAnswer::Indexed(answer) => {
                let size = u64::from(typed.memory.size);
                let (offset, size) = match answer.index.value(state) {
                    Ok(index) => (answer.offset(index).ok_or(Reason::Unidentified)?, size),
                    // `a[i].key` with a lost i: the elements are one data object, so that it may stay open
                    // which one it is.
                    Err(RegisterLoss) => answer.any_part.ok_or(Reason::RegisterLoss)?,
                };
                let key = NameKey::Indexed { site: located.site, trigger, access, offset, size };
                let root = answer.root.borrow();
                let part = (offset, size, typed.memory.kind);
                self.names.part_as(key, &answer.layout, root, part).ok_or(Reason::Unidentified)
            }
        }
    }

    fn whole_object(
        &mut self,
        site: SiteIdx,
        survivor: &Survivor,
        answer: &PlacedObject,
    ) -> NamedIdx {
        let (trigger, access) = (survivor.trigger, survivor.access.unwrap_or(0));
        if let Some(known) = self.sites.named(site, (trigger, access)) {
            return known;
        }
        let key = NameKey::Object { site, trigger, access };
        let named = self.names.whole(key, answer);
        self.sites.set_named(site, (trigger, access), named);
        named
    }

    /// The claim of instruction and debug information where they know but whose bytes an access is to.
    pub(crate) fn pointed_bytes(&mut self, asked: &Asked<'_>) -> Option<Claim> {
        let Asked { located: &Located { site, .. }, candidate, typed, .. } = *asked;
        let answer = typed.bytes.as_ref().filter(|_| self.paths != Paths::Address)?;
        let Survivor { trigger, access, .. } = *candidate.survivor;
        let key = NameKey::Bytes { site, trigger, access: access.unwrap_or(0) };
        let named = self.names.whole(key, answer);
        Some(Claim::of(Witness::PointedBytes, named, Placing::Somewhere))
    }

    /// The object around the data address that another register points at.
    fn live_object(&mut self, asked: &Asked<'_>, avma: Avma) -> Option<NamedIdx> {
        let Asked { located, candidate, typed, .. } = *asked;
        let size = u64::from(typed.memory.size);
        let mut found: Option<(usize, u64)> = None;
        for (live_idx, live) in typed.live.iter().enumerate() {
            let Ok(pointer) = live.register.value(candidate.state) else { continue };
            let start = pointer.wrapping_add_signed(live.offset.wrapping_neg());
            let offset = avma.0.wrapping_sub(start);
            if offset >= live.layout.size || offset.saturating_add(size) > live.layout.size {
                continue;
            }
            // `struct list *l` and `struct node *n = &l->first` both cover the address: the list says more.
            // The widest is around the others.
            if found.is_none_or(|(best, _)| typed.live[best].layout.size < live.layout.size) {
                found = Some((live_idx, offset));
            }
        }
        let (live_idx, offset) = found?;
        let key = NameKey::Live {
            site: located.site,
            trigger: candidate.survivor.trigger,
            live: live_idx as u32,
            offset,
            size,
        };
        let layout = &typed.live[live_idx].layout;
        self.names.part(key, layout, Root::Pointer(""), (offset, size))
    }
}

/// Tells whether the sample's address is that of the operand which the type path named a part of.
fn is_addressed(asked: &Asked<'_>) -> bool {
    let Asked { located, typed, computed, .. } = *asked;
    // Without its index only the outermost object is known, and not where it begins.
    let is_told = || {
        computed.is_none()
            && located.sample.addr.is_some()
            && located.kind == EventKind::Memory
            && matches!(typed.answer, TypeAnswer::Object(_))
    };
    typed.memory.role == Role::Operand && (asked.is_at_operand() || is_told())
}
