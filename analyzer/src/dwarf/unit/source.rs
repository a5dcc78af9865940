//! Sources of units: the file itself, type units, split units, and a supplementary file.
//!
//! Every unit has one number, whatever file it is in. Numbers stay; what was read may be dropped
//! and is read again.

use crate::dwarf::unit::abbreviation::{Table, Whole, is_table_sound};
use crate::dwarf::unit::entry_walk::EntryKinds;
use crate::dwarf::unit::parsed::{Half, ParsedUnit};
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::dwarf::unit::split;
use crate::dwarf::unit::supplementary::Supplementary;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use gimli::{DebugInfoOffset, DebugTypeSignature, Section as _, UnitOffset, UnitType};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Index of a container among those of a load object.
pub(super) type ContainerIdx = u32;

/// The file's own debug information.
pub(super) const MAIN: ContainerIdx = 0;

/// Sections that stand together: of one file, or what one unit has of a package.
#[derive(Debug)]
pub(super) struct UnitContainer {
    pub(super) origin: SectionOrigin,
    /// `None` while it is dropped.
    pub(super) dwarf: Option<Arc<Dwarf>>,
    /// Its units: those of `.debug_info`, then those of `.debug_types`, each by offset.
    pub(super) units: Range<UnitIdx>,
    n_info_units: u32,
    /// Type units by signature.
    signatures: Vec<(u64, UnitIdx)>,
    /// Offsets of the abbreviations that several units have, and whether they are as they may be once that
    /// was asked.
    shared_abbreviations: FxHashMap<usize, Option<bool>>,
    /// Number of bytes that may still be read of abbreviations for walks.
    n_abbreviation_bytes_left: usize,
}

/// The way to a container's sections.
#[derive(Clone, Debug)]
pub(crate) enum SectionOrigin {
    /// They were given, and stay.
    Kept,
    /// They are read when they are needed.
    Split(split::SplitOrigin),
}

/// The place of a unit, and what has been read of it.
#[derive(Debug)]
pub(super) struct UnitSlot {
    container: ContainerIdx,
    section: UnitSection,
    offset: usize,
    pub(super) link: SplitLink,
    parsed: Option<Arc<ParsedUnit>>,
    /// It was asked for again since it was parsed, or since it last escaped being dropped.
    is_in_use: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitSection {
    Info,
    Types,
}

/// The key that joins a skeleton and its split unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitLink {
    /// A unit that is whole.
    None,
    /// A skeleton whose split unit was not looked for yet.
    Unopened,
    /// A skeleton whose split unit was not found.
    Missing,
    /// A skeleton, and its split unit.
    Split(UnitIdx),
    /// A split unit, and its skeleton.
    Skeleton(UnitIdx),
}

/// All units of one load object.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(super) containers: Vec<UnitContainer>,
    pub(super) slots: Vec<UnitSlot>,
    /// Parsed units, oldest first, and the bytes of memory that they take.
    parsed: VecDeque<(UnitIdx, usize)>,
    n_parsed_bytes: usize,
    supplementary: Supplementary,
    pub(super) split: split::SplitFiles,
}

impl Sources {
    /// No units yet.
    pub(crate) fn new(supplementary: Option<Arc<Dwarf>>, split: split::SplitFiles) -> Self {
        Self {
            containers: Vec::new(),
            slots: Vec::new(),
            parsed: VecDeque::new(),
            n_parsed_bytes: 0,
            supplementary: Supplementary { unread: supplementary, container: None },
            split,
        }
    }

    /// Takes in the file's own units, before all others; `None` where it has none.
    pub(crate) fn add_own(&mut self, mut dwarf: Dwarf) -> Option<ContainerIdx> {
        dwarf.sup = self.supplementary.unread.clone();
        self.add(SectionOrigin::Kept, Arc::new(dwarf), usize::MAX)
    }

    /// Takes in a container with at most `max_units` units; `None` where it has none.
    pub(crate) fn add(
        &mut self,
        origin: SectionOrigin,
        dwarf: Arc<Dwarf>,
        max_units: usize,
    ) -> Option<ContainerIdx> {
        let container = self.containers.len() as ContainerIdx;
        let first = self.slots.len() as UnitIdx;
        let room = limit::MAX_UNITS.saturating_sub(self.slots.len()).min(max_units);
        let mut signatures = Vec::new();
        let (mut seen, mut shared_abbreviations) = (FxHashSet::default(), FxHashMap::default());
        let mut take = |sources: &mut Self, header: &gimli::UnitHeader<Reader>, section, offset| {
            let abbreviations = header.debug_abbrev_offset().0;
            if !seen.insert(abbreviations) {
                shared_abbreviations.insert(abbreviations, None);
            }
            signatures.extend(signature(header).map(|found| (found.0, sources.n_units())));
            sources.slots.push(UnitSlot::new(container, section, offset));
        };
        // A damaged header ends the walk: what came before it stays usable.
        let mut headers = dwarf.units();
        while self.has_room(first, room)
            && let Some(header) = headers.next().ok().flatten()
        {
            let Some(offset) = header.debug_info_offset() else { continue };
            take(self, &header, UnitSection::Info, offset.0);
        }
        let n_info_units = self.n_units() - first;
        let mut headers = dwarf.type_units();
        while self.has_room(first, room)
            && let Some(header) = headers.next().ok().flatten()
        {
            let Some(offset) = header.debug_types_offset() else { continue };
            take(self, &header, UnitSection::Types, offset.0);
        }
        signatures.sort_unstable();
        let units = first..self.n_units();
        if units.is_empty() {
            return None;
        }
        let n_bytes = gimli::Reader::len(dwarf.debug_abbrev.reader());
        let n_abbreviation_bytes_left = n_bytes.saturating_mul(limit::MAX_ABBREVIATION_READS);
        let dwarf = Some(dwarf);
        self.containers.push(UnitContainer {
            origin,
            dwarf,
            units,
            n_info_units,
            signatures,
            shared_abbreviations,
            n_abbreviation_bytes_left,
        });
        Some(container)
    }

    fn has_room(&self, first: UnitIdx, room: usize) -> bool {
        self.slots.len() - (first as usize) < room
    }

    /// Tells whether the rest of a unit is in another file.
    pub(crate) fn is_skeleton(&self, idx: UnitIdx) -> bool {
        self.slots.get(idx as usize).is_some_and(|slot| slot.link != SplitLink::None)
    }

    fn n_units(&self) -> UnitIdx {
        self.slots.len() as UnitIdx
    }

    /// The units of a container.
    pub(crate) fn units_of(&self, container: ContainerIdx) -> Option<Range<UnitIdx>> {
        self.containers.get(container as usize).map(|found| found.units.clone())
    }

    /// The file's own units.
    pub(crate) fn main_units(&self) -> Range<UnitIdx> {
        self.units_of(MAIN).unwrap_or_default()
    }

    /// The sections of a container, read again if they were dropped.
    pub(super) fn dwarf(&mut self, container: ContainerIdx) -> Option<Arc<Dwarf>> {
        let found = self.containers.get(container as usize)?;
        match (&found.dwarf, found.origin.clone()) {
            (Some(dwarf), _) => Some(Arc::clone(dwarf)),
            (None, SectionOrigin::Split(origin)) => self.reload(container, &origin),
            (None, SectionOrigin::Kept) => None,
        }
    }

    /// Drops what was read of a container.
    pub(super) fn forget(&mut self, container: ContainerIdx) {
        let Some(found) = self.containers.get_mut(container as usize) else { return };
        found.dwarf = None;
        for slot in self.slots.iter_mut().skip(found.units.start as usize).take(found.units.len()) {
            slot.parsed = None;
        }
    }

    /// Drops all parsed units.
    pub(crate) fn forget_parsed(&mut self) {
        for (unit, _) in std::mem::take(&mut self.parsed) {
            if let Some(slot) = self.slots.get_mut(unit as usize) {
                slot.parsed = None;
            }
        }
        self.n_parsed_bytes = 0;
    }

    /// The unit's sections and its header.
    pub(crate) fn header(
        &mut self,
        idx: UnitIdx,
    ) -> Option<(Arc<Dwarf>, gimli::UnitHeader<Reader>)> {
        let slot = self.slots.get(idx as usize)?;
        let (section, offset) = (slot.section, slot.offset);
        let dwarf = self.dwarf(slot.container)?;
        let header = match section {
            UnitSection::Info => dwarf.unit_header(DebugInfoOffset(offset)).ok()?,
            UnitSection::Types => {
                let mut from_here = dwarf.debug_types.reader().clone();
                gimli::Reader::skip(&mut from_here, offset).ok()?;
                gimli::DebugTypes::from(from_here).units().next().ok()??
            }
        };
        Some((dwarf, header))
    }

    /// The same, `None` if its abbreviations are not as they may be.
    fn sound_header(&mut self, idx: UnitIdx) -> Option<(Arc<Dwarf>, gimli::UnitHeader<Reader>)> {
        let (dwarf, header) = self.header(idx)?;
        let container = self.slots.get(idx as usize)?.container;
        let start = header.debug_abbrev_offset();
        let container = self.containers.get_mut(container as usize)?;
        let is_sound = || is_table_sound(&dwarf, start);
        let is_sound = match container.shared_abbreviations.get_mut(&start.0) {
            Some(known) => *known.get_or_insert_with(is_sound),
            None => is_sound(),
        };
        is_sound.then_some((dwarf, header))
    }

    /// The unit's sections and its root, not walked.
    pub(super) fn root(&mut self, idx: UnitIdx) -> Option<(Arc<Dwarf>, gimli::Unit<Reader>)> {
        let (dwarf, header) = self.sound_header(idx)?;
        let unit = dwarf.unit(header).ok()?;
        Some((dwarf, unit))
    }

    /// The same for a walk: of its abbreviations only those that are wanted are whole, unless other
    /// units share them; and there is no line table.
    pub(crate) fn for_walk(
        &mut self,
        idx: UnitIdx,
        whole: Whole,
    ) -> Option<(Arc<Dwarf>, gimli::Unit<Reader>, EntryKinds)> {
        let (dwarf, header) = self.header(idx)?;
        let container = self.slots.get(idx as usize)?.container;
        let shared = &self.containers.get(container as usize)?.shared_abbreviations;
        if shared.contains_key(&header.debug_abbrev_offset().0) {
            // They are read once for all, and kept.
            let (dwarf, header) = self.sound_header(idx)?;
            let unit = dwarf.unit(header).ok()?;
            return Some((dwarf, unit, EntryKinds::default()));
        }
        let container = self.containers.get_mut(container as usize)?;
        if container.n_abbreviation_bytes_left == 0 {
            return None;
        }
        let table = Table::read(&dwarf, &header, whole);
        // A table that is damaged somewhere may have been read to the section's end.
        let n_behind = || {
            let n_bytes = gimli::Reader::len(dwarf.debug_abbrev.reader());
            n_bytes.saturating_sub(header.debug_abbrev_offset().0)
        };
        let n_bytes = table.as_ref().map_or_else(|_| n_behind(), |table| table.n_bytes);
        let left = &mut container.n_abbreviation_bytes_left;
        *left = left.saturating_sub(n_bytes);
        let Table { kinds, whole, .. } = table.ok()?;
        let unit = gimli::Unit::new_with_abbreviations(&dwarf, header, whole).ok()?;
        Some((dwarf, unit, kinds))
    }

    /// The unit, parsed now if it is not at hand.
    pub(crate) fn unit(&mut self, idx: UnitIdx) -> Option<Arc<ParsedUnit>> {
        let slot = self.slots.get_mut(idx as usize)?;
        if let Some(unit) = &slot.parsed {
            slot.is_in_use = true;
            return Some(Arc::clone(unit));
        }
        let half = match slot.link {
            SplitLink::None => Half::Whole,
            SplitLink::Unopened | SplitLink::Missing | SplitLink::Split(_) => Half::Skeleton,
            SplitLink::Skeleton(skeleton) => Half::Split(Box::new(self.root(skeleton)?.1)),
        };
        let (dwarf, header) = self.sound_header(idx)?;
        let parsed = ParsedUnit::parse(dwarf, header, half).ok()?;
        let n_bytes = parsed.n_bytes();
        let unit = Arc::new(parsed);
        self.make_room(n_bytes);
        self.parsed.push_back((idx, n_bytes));
        self.n_parsed_bytes += n_bytes;
        self.slots.get_mut(idx as usize)?.parsed = Some(Arc::clone(&unit));
        Some(unit)
    }

    /// The file's own units that are parsed, or whose split unit is.
    pub(crate) fn units_at_hand(&self) -> impl Iterator<Item = UnitIdx> {
        self.parsed.iter().filter_map(|(idx, _)| match self.slots.get(*idx as usize)?.link {
            SplitLink::Skeleton(skeleton) => Some(skeleton),
            _ => Some(*idx),
        })
    }

    /// Drops the oldest parsed units that were not asked for lately until one of `n_bytes` fits.
    /// Those that were get a second chance and go to the end once: samples keep coming from a few
    /// units, and parsing one costs milliseconds.
    fn make_room(&mut self, n_bytes: usize) {
        while self.parsed.len() >= limit::MAX_CACHED_UNITS
            || self.n_parsed_bytes.saturating_add(n_bytes) > limit::MAX_CACHED_UNIT_BYTES
        {
            let Some((oldest, n_bytes)) = self.parsed.pop_front() else { break };
            if let Some(slot) = self.slots.get_mut(oldest as usize) {
                if std::mem::take(&mut slot.is_in_use) {
                    self.parsed.push_back((oldest, n_bytes));
                    continue;
                }
                slot.parsed = None;
            }
            self.n_parsed_bytes -= n_bytes;
        }
    }

    /// The entry that an attribute of an entry in `unit` refers to.
    pub(crate) fn reference(
        &mut self,
        unit: UnitIdx,
        value: &gimli::AttributeValue<Reader>,
    ) -> Option<DieRef> {
        match value {
            gimli::AttributeValue::UnitRef(offset) => Some(DieRef { unit, offset: *offset }),
            gimli::AttributeValue::DebugInfoRef(offset) => {
                let container = self.slots.get(unit as usize)?.container;
                self.entry_at(container, *offset)
            }
            gimli::AttributeValue::DebugInfoRefSup(offset) => {
                let container = self.supplementary_container()?;
                self.entry_at(container, *offset)
            }
            gimli::AttributeValue::DebugTypesRef(signature) => self.type_entry(unit, *signature),
            _ => None,
        }
    }

    /// The entry at an offset into `.debug_info`.
    pub(super) fn entry_at(
        &self,
        container: ContainerIdx,
        offset: DebugInfoOffset,
    ) -> Option<DieRef> {
        let container = self.containers.get(container as usize)?;
        let start = container.units.start as usize;
        let units = self.slots.get(start..start + container.n_info_units as usize)?;
        let next = units.partition_point(|slot| slot.offset <= offset.0);
        let slot = units.get(next.checked_sub(1)?)?;
        // Where it lies in no unit or in the header of one, gimli finds no entry there.
        let unit_offset = UnitOffset(offset.0 - slot.offset);
        Some(DieRef { unit: (start + next - 1) as UnitIdx, offset: unit_offset })
    }

    /// The type that has `signature` (DWARF 5 section 7.32).
    fn type_entry(&mut self, unit: UnitIdx, signature: DebugTypeSignature) -> Option<DieRef> {
        let container = self.slots.get(unit as usize)?.container;
        let found = self.type_unit(container, signature).or_else(|| match container {
            MAIN => None,
            _ => self.packaged_type_unit(signature).or_else(|| self.type_unit(MAIN, signature)),
        })?;
        match self.header(found)?.1.type_() {
            UnitType::Type { type_offset, .. } | UnitType::SplitType { type_offset, .. } => {
                Some(DieRef { unit: found, offset: type_offset })
            }
            _ => None,
        }
    }

    /// The first type unit of a container that has `signature`.
    pub(super) fn type_unit(
        &self,
        container: ContainerIdx,
        signature: DebugTypeSignature,
    ) -> Option<UnitIdx> {
        let signatures = &self.containers.get(container as usize)?.signatures;
        let first = signatures.partition_point(|(before, _)| *before < signature.0);
        signatures.get(first).filter(|found| found.0 == signature.0).map(|(_, unit)| *unit)
    }

    /// The supplementary file's units, their headers read when they are first asked for.
    fn supplementary_container(&mut self) -> Option<ContainerIdx> {
        if let Some(dwarf) = self.supplementary.unread.take() {
            self.supplementary.container = self.add(SectionOrigin::Kept, dwarf, usize::MAX);
        }
        self.supplementary.container
    }
}

impl UnitSlot {
    const fn new(container: ContainerIdx, section: UnitSection, offset: usize) -> Self {
        Self { container, section, offset, link: SplitLink::None, parsed: None, is_in_use: false }
    }
}

fn signature(header: &gimli::UnitHeader<Reader>) -> Option<DebugTypeSignature> {
    match header.type_() {
        UnitType::Type { type_signature, .. } | UnitType::SplitType { type_signature, .. } => {
            Some(type_signature)
        }
        _ => None,
    }
}
