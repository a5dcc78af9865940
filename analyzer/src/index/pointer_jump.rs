//! Jumps from one function to another by a pointer in memory, and what such pointers may hold.

use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::LinkageSlot;
use crate::index::entered::{JumpEntry, JumpSite, PointerJump, Puts};
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::abi::POINTER_BYTES;
use crate::x86_64::exit::Destination;
use crate::x86_64::image_bytes::ImageBytes as _;
use crate::x86_64::pointer::CodePointer;
use crate::x86_64::scan::{self, DataUse, Reference};
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

impl LoadObjectIndex {
    /// All jumps by pointers; `None` where they are too many.
    pub(crate) fn pointer_jumps(&mut self) -> Option<Arc<[PointerJump]>> {
        if let Some(known) = &self.call_cache.jumps.all {
            return known.clone();
        }
        let found = self.find_jumps().map(Arc::from);
        if !self.is_unfinished() {
            self.call_cache.jumps.all = Some(found.clone());
        }
        found
    }

    fn find_jumps(&mut self) -> Option<Vec<PointerJump>> {
        let sites = self.code.crossings(self.frames.starts())?.by_pointer()?.to_vec();
        let is_typed = sites.len() <= limit::MAX_TYPED_JUMPS;
        let mut found: Vec<PointerJump> = Vec::new();
        let mut entries = FxHashMap::default();
        for site in sites.into_iter().map(Svma) {
            let operand = scan::pointer_jump(site, &self.code.bytes_at(site, 16)?)?;
            // The entry of a table.
            if operand.index.is_some() && is_typed && self.is_inside(site) {
                continue;
            }
            let at = found.iter().position(|it| it.operand == operand).unwrap_or(found.len());
            if at >= limit::MAX_POINTER_JUMPS {
                return None;
            }
            let mut new = JumpSite { at: site, entries: Arc::default() };
            let mut pointed = None;
            if is_typed {
                pointed = self.pointed_prototype(site, CodePointer::Memory(operand));
                new.entries = self.jump_entries(site, &mut entries).unwrap_or_default();
            }
            match found.get_mut(at) {
                None => found.push(PointerJump { operand, pointed, sites: vec![new] }),
                Some(known) => {
                    known.pointed = known.pointed.take().filter(|it| pointed.as_ref() == Some(it));
                    if known.are_few() {
                        known.sites.push(new);
                    }
                }
            }
        }
        Some(found)
    }

    /// Finds the functions from which written jumps lead to the one around `at`; `None` where they are too many. `known` are
    /// those of other jumps.
    fn jump_entries(
        &mut self,
        at: Svma,
        known: &mut FxHashMap<Svma, JumpEntry>,
    ) -> Option<Arc<[JumpEntry]>> {
        let function = self.function(at).ok()?;
        let mut found: Vec<JumpEntry> = Vec::new();
        for part in function.entries() {
            found.push(self.jump_entry(part, known)?);
        }
        let mut seen: FxHashSet<Svma> = found.iter().map(|it| it.start).collect();
        let mut next = 0;
        while let Some(JumpEntry { start, .. }) = found.get(next) {
            let start = *start;
            if self.is_linked(start) {
                return None;
            }
            let crossings = self.code.crossings(self.frames.starts())?;
            let jumping = crossings.jumping_to(start)?.to_vec();
            if jumping.len() > limit::MAX_JUMP_ENTRIES {
                return None;
            }
            for (_, part) in jumping {
                let from = self.jump_entry(Svma(part), known)?;
                if seen.insert(from.start) {
                    found.push(from);
                }
            }
            next += 1;
            if found.len() > limit::MAX_JUMP_ENTRIES {
                return None;
            }
        }
        Some(found.into())
    }

    /// Tells whether a stub of the load object's own linkage table may lead to one of its functions.
    fn is_linked(&mut self, start: Svma) -> bool {
        let names = self.names();
        let own = names.at(start).to_vec();
        !names.stubs(start).is_empty() || self.code.linkage().has_any(&own)
    }

    /// The function that has a part that begins at `part`.
    fn jump_entry(
        &mut self,
        part: Svma,
        known: &mut FxHashMap<Svma, JumpEntry>,
    ) -> Option<JumpEntry> {
        if let Some(known) = known.get(&part) {
            return Some(known.clone());
        }
        let mut start = part;
        let mut function_type = self.prototype_at(part);
        if function_type.is_none() {
            // It may be the part of another that was moved away.
            start = self.function(part).ok()?.start()?;
            function_type = self.prototype_at(start);
        }
        let entry = JumpEntry { start, function_type };
        known.insert(part, entry.clone());
        Some(entry)
    }

    /// Tells whether the jump at `site` stays in its function.
    fn is_inside(&mut self, site: Svma) -> bool {
        let Ok(function) = self.function(site) else { return false };
        function.index_of(site).is_some_and(|at| function.leaps_inside().contains(&(at as u32)))
    }

    /// Tells whether the pointer of the jump may lead to the function at `start`.
    pub(crate) fn may_lead(&mut self, jump: &PointerJump, start: Svma) -> bool {
        match jump.operand.static_address() {
            Some(place) => match self.code.linkage().at(place) {
                Some(LinkageSlot::Address(name)) => {
                    let name = Arc::clone(name);
                    self.names().at(start).contains(&name)
                }
                Some(_) => true,
                None if let Some(target) = self.code.loaded_pointer(place) => target == start,
                None => self.may_hold(place, start),
            },
            None => true,
        }
    }

    /// Tells whether the static pointer at `place` may lead to the function at `start`.
    fn may_hold(&mut self, place: Svma, start: Svma) -> bool {
        self.is_put(place, start, true)
    }

    /// Tells whether code may put the function at `start` into the pointer of this jump: it is seen to, or it has its
    /// address, and not all that is put there is known.
    pub(crate) fn is_put_into(&mut self, jump: &PointerJump, start: Svma) -> bool {
        match jump.operand.static_address() {
            Some(place) => self.is_put_at(place, start),
            None => self.is_taken(start),
        }
    }

    /// The same for the static pointer at `place`.
    pub(crate) fn is_put_at(&mut self, place: Svma, start: Svma) -> bool {
        let is_taken = self.is_taken(start);
        self.is_put(place, start, is_taken)
    }

    /// Tells whether the function at `start` may come into the pointer at `place`, or one that this is filled from:
    /// `is_anything` if it may be among what is not known.
    fn is_put(&mut self, place: Svma, start: Svma, is_anything: bool) -> bool {
        if self.call_cache.jumps.puts.is_none() {
            let puts = self.find_puts().unwrap_or_default();
            self.call_cache.jumps.puts = Some(puts);
        }
        let is_exported = !self.names().at(start).is_empty();
        let Some(all) = &self.call_cache.jumps.puts else { return true };
        let mut places = vec![place];
        let mut next = 0;
        while let Some(place) = places.get(next) {
            next += 1;
            let is_unknown = all.get(place).is_none_or(|it| it.is_open || it.has_others);
            if is_unknown && is_anything {
                return true;
            }
            let Some(puts) = all.get(place) else { continue };
            if puts.starts.contains(&start) || puts.is_exported && is_exported {
                return true;
            }
            for from in &puts.from {
                if !places.contains(from) {
                    places.push(*from);
                }
            }
        }
        false
    }

    /// Finds what is put into the static pointers that jumps go by, and into those that these are filled from; `None`
    /// where there is too much code.
    fn find_puts(&mut self) -> Option<FxHashMap<Svma, Puts>> {
        let jumps = self.pointer_jumps()?;
        let mut places: Vec<Svma> =
            jumps.iter().filter_map(|jump| jump.operand.static_address()).collect();
        let mut all = FxHashMap::default();
        // From one to another and on, each time with a pass over the code.
        for _ in 0..limit::MAX_STATIC_PASSES {
            places.sort_unstable();
            places.dedup();
            places.retain(|place| !all.contains_key(place));
            if places.is_empty() || all.len() + places.len() > limit::MAX_STATIC_POINTERS {
                break;
            }
            // Who has a variable's address may write to any part of it.
            let starts = places.iter().filter_map(|place| self.variable_start(*place));
            let mut told: Vec<Svma> = places.iter().copied().chain(starts).collect();
            told.sort_unstable();
            told.dedup();
            let references = self.references(&told)?;
            let open = self.code.open_places(&told);
            for place in std::mem::take(&mut places) {
                let start = self.variable_start(place);
                let mut puts = self.puts_into(place, start, &references);
                puts.is_open |= open.contains(&place);
                puts.is_open |= start.is_none_or(|start| open.contains(&start));
                places.extend(&puts.from);
                all.insert(place, puts);
            }
        }
        Some(all)
    }

    /// The beginning of the variable that a pointer at `place` is in.
    fn variable_start(&self, place: Svma) -> Option<Svma> {
        let symbol = self.code.image.data.at(DataPlace::fixed(place))?;
        let into = place.0.checked_sub(symbol.start.at.0)?;
        let end = into.checked_add(POINTER_BYTES.into())?;
        (end <= symbol.len_bytes).then_some(symbol.start.at)
    }

    /// Lists what is put into the static pointer at `place`, in the variable that begins at `start`.
    fn puts_into(
        &mut self,
        place: Svma,
        start: Option<Svma>,
        references: &[(Svma, Reference)],
    ) -> Puts {
        let mut puts = Puts::default();
        puts.starts.extend(self.code.first_content(place));
        puts.is_exported = start.is_some_and(|start| self.names().is_exported(start));
        for (at, reference) in references {
            if !reference.reaches(place) {
                puts.is_open |= reference.is_address() && Some(reference.to) == start;
                continue;
            }
            let put = match reference.use_ {
                DataUse::Read => continue,
                DataUse::PutNumber(number) if reference.to == place => {
                    Some(Destination::Code(number))
                }
                DataUse::Put(register) if reference.to == place => self.function_put(*at, register),
                // Its address is taken, it is a part of what is written, or a number is not known to be one.
                DataUse::Other | DataUse::Put(_) | DataUse::PutNumber(_) => {
                    puts.is_open = true;
                    continue;
                }
            };
            match put {
                Some(Destination::Code(start)) => puts.starts.push(start),
                Some(Destination::Slot(from)) => puts.from.push(from),
                None => puts.has_others = true,
            }
        }
        puts
    }

    /// The function whose address a register, by its DWARF number, holds at `at`, or the static pointer that it is from.
    fn function_put(&mut self, at: Svma, register: u16) -> Option<Destination> {
        let function = self.function(at).ok()?;
        self.with_sums(&function, |sums| sums.function_in(at, register))?
    }

    /// The instructions that refer to one of these pointers, which are sorted; `None` where there is too much code.
    fn references(&self, places: &[Svma]) -> Option<Vec<(Svma, Reference)>> {
        let text = self.code.image.sections.iter().filter(|it| it.is_executable);
        let n_bytes = text.clone().map(|section| section.file_bytes).fold(0, u64::saturating_add);
        if n_bytes > limit::MAX_FOLLOWED_CODE_BYTES {
            return None;
        }
        let is_asked = |reference: &Reference| {
            let near = reference.to.0.saturating_sub(POINTER_BYTES.into());
            let first = places.partition_point(|place| place.0 <= near);
            places.get(first).is_some_and(|place| reference.reaches(*place))
        };
        let mut found = Vec::new();
        for section in text {
            let bytes = self.code.image.read_section(self.code.file.as_ref(), section).ok()?;
            found.extend(scan::references(section.start, &bytes).filter(|(_, it)| is_asked(it)));
        }
        Some(found)
    }
}
