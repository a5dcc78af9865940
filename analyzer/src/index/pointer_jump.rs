//! Jumps from one function to another by a pointer in memory: besides calls and written jumps the only ways to a
//! function's first instruction.

use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::LinkageSlot;
use crate::index::entry_name::JumpsTo;
use crate::index::load_object::LoadObjectIndex;
use crate::index::prototype::Prototype;
use crate::limit;
use crate::x86_64::abi::POINTER_BYTES;
use crate::x86_64::access::AddressOperand;
use crate::x86_64::exit::Destination;
use crate::x86_64::image_bytes::ImageBytes as _;
use crate::x86_64::pointer::CodePointer;
use crate::x86_64::scan::{self, Reference, Use};
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Jumps out of functions of one load object by one pointer in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerJump {
    /// Where the pointer is.
    pub operand: AddressOperand,
    /// What the functions take that the pointer may lead to.
    pub(crate) pointed: Option<Arc<Prototype>>,
    /// The jumps, as far as they are kept.
    pub sites: Vec<JumpSite>,
}

/// One jump by a pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct JumpSite {
    /// Where it is.
    pub at: Svma,
    /// Where its function begins, if that is only called.
    pub function: Option<Svma>,
    /// What that takes.
    pub(crate) prototype: Option<Arc<Prototype>>,
}

impl PointerJump {
    /// Tells whether all of the jumps are kept.
    pub(crate) const fn are_few(&self) -> bool {
        self.sites.len() <= limit::MAX_ALIKE_JUMPS
    }
}

/// What is known of a load object's jumps by pointers.
#[derive(Debug, Default)]
pub(crate) struct JumpCache {
    /// All of them; `None` within where there are too many.
    #[allow(clippy::option_option, reason = "not asked for yet, and too many, are two facts")]
    all: Option<Option<Arc<[PointerJump]>>>,
    /// Functions that static pointers may lead to; `None` for any.
    held: FxHashMap<Svma, Option<Arc<[Svma]>>>,
}

impl LoadObjectIndex {
    /// The jumps of other functions to the one at `start`.
    pub(crate) fn jumps_onto(&mut self, start: Svma) -> Option<JumpsTo> {
        let are_written = self.code.crossings(self.frames.starts())?.jumps_to(start)?;
        let by_pointer = self.pointer_jumps()?;
        let elsewhere =
            (0..).zip(by_pointer.iter()).filter(|(_, jump)| !self.may_lead(jump, start));
        let elsewhere = elsewhere.map(|(at, _)| at).collect();
        Some(JumpsTo { are_written, by_pointer, elsewhere })
    }

    fn pointer_jumps(&mut self) -> Option<Arc<[PointerJump]>> {
        if let Some(known) = &self.call_cache.jumps.all {
            return known.clone();
        }
        let found = self.find_jumps().map(Arc::from);
        self.call_cache.jumps.all = Some(found.clone());
        found
    }

    fn find_jumps(&mut self) -> Option<Vec<PointerJump>> {
        let sites = self.code.crossings(self.frames.starts())?.by_pointer()?.to_vec();
        let mut found: Vec<PointerJump> = Vec::new();
        for site in sites.into_iter().map(Svma) {
            let operand = scan::pointer_jump(site, &self.code.bytes_at(site, 16)?)?;
            // The entry of a table.
            if operand.index.is_some() && self.is_inside(site) {
                continue;
            }
            let at = found.iter().position(|it| it.operand == operand).unwrap_or(found.len());
            if at >= limit::MAX_POINTER_JUMPS {
                return None;
            }
            if at == found.len() {
                let pointed = self.pointed_prototype(site, CodePointer::Memory(operand));
                found.push(PointerJump { operand, pointed, sites: Vec::new() });
            }
            let Some(known) = found.get_mut(at).filter(|it| it.are_few()) else { continue };
            if !known.sites.is_empty()
                && known.pointed != self.pointed_prototype(site, CodePointer::Memory(operand))
            {
                known.pointed = None;
            }
            known.sites.push(self.jump_site(site));
        }
        Some(found)
    }

    fn jump_site(&mut self, at: Svma) -> JumpSite {
        let function = self.function(at).ok().and_then(|function| function.start());
        let crossings = self.code.crossings(self.frames.starts());
        let is_called = |start: &Svma| crossings.and_then(|it| it.jumps_to(*start)) == Some(false);
        let function = function.filter(is_called);
        let prototype = function.and_then(|start| self.prototype_at(start));
        JumpSite { at, function, prototype }
    }

    /// Tells whether the jump at `site` stays in its function.
    fn is_inside(&mut self, site: Svma) -> bool {
        let Ok(function) = self.function(site) else { return false };
        function.index_of(site).is_some_and(|at| function.leaps().contains(&(at as u32)))
    }

    fn may_lead(&mut self, jump: &PointerJump, start: Svma) -> bool {
        if let (Some(pointed), true) = (&jump.pointed, jump.are_few())
            && self.prototype_at(start).is_some_and(|taken| !taken.may_be_called_as(pointed))
        {
            return false;
        }
        match jump.operand.static_address() {
            Some(place) => match self.code.linkage().at(place) {
                Some(LinkageSlot::Address(name)) => {
                    let name = Arc::clone(name);
                    self.names().at(start).contains(&name)
                }
                Some(_) => true,
                None if let Some(target) = self.code.loaded_pointer(place) => target == start,
                None => self.held_by(place).is_none_or(|held| held.contains(&start)),
            },
            None => true,
        }
    }

    /// The functions that the static pointer at `place` may lead to; `None` for any.
    fn held_by(&mut self, place: Svma) -> Option<Arc<[Svma]>> {
        if let Some(known) = self.call_cache.jumps.held.get(&place) {
            return known.clone();
        }
        let found = self.find_held_by(place).map(Arc::from);
        self.call_cache.jumps.held.insert(place, found.clone());
        found
    }

    fn find_held_by(&mut self, place: Svma) -> Option<Vec<Svma>> {
        let mut held = Vec::new();
        let mut places = vec![place];
        let mut next = 0;
        while let Some(place) = places.get(next).copied() {
            next += 1;
            if next > limit::MAX_STATIC_POINTERS || self.code.is_pointed_at(place) {
                return None;
            }
            let symbol = self.code.image.data.at(DataPlace::fixed(place))?;
            let is_whole = symbol.start.at == place && symbol.len_bytes == u64::from(POINTER_BYTES);
            if !is_whole {
                return None;
            }
            held.extend(self.code.pointer_at(place));
            if self.names().is_exported(place) {
                // Other load objects may put there what they find by its name.
                held.extend(self.names().starts());
            }
            for (at, reference) in self.references(place)? {
                let put = match reference.use_ {
                    Use::Read if reference.to == place => continue,
                    Use::PutNumber(number) if reference.to == place => Destination::Code(number),
                    Use::Put(register) if reference.to == place => {
                        let function = self.function(at).ok()?;
                        self.with_sums(&function, |sums| sums.function_in(at, register))??
                    }
                    _ => return None,
                };
                match put {
                    Destination::Code(start) => held.push(start),
                    Destination::Slot(from) if places.contains(&from) => {}
                    Destination::Slot(from) => places.push(from),
                }
            }
        }
        Some(held)
    }

    /// The instructions that refer to the pointer at `place`, or to what is so near before it that they may reach it.
    fn references(&self, place: Svma) -> Option<Vec<(Svma, Reference)>> {
        /// The longest that an instruction writes at one place, or more (`zmm`).
        const MAX_BYTES: u64 = 64;
        let near = place.0.saturating_sub(MAX_BYTES)..place.0.saturating_add(POINTER_BYTES.into());
        let mut found = Vec::new();
        for section in self.code.image.sections.iter().filter(|it| it.is_executable) {
            let bytes = self.code.image.read_section(self.code.file.as_ref(), section).ok()?;
            found.extend(scan::references(section.start, &bytes, near.clone()));
        }
        found.retain(|(_, reference)| reference.reaches(place));
        Some(found)
    }
}
