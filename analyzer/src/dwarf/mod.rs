//! Debug information: what it says about code addresses, variables and types.
//!
//! Everything here is asked by a worker, lazily: a unit is walked when a sample first touches its
//! code, a type is laid out when an answer first needs it.

pub(crate) mod aggregate;
pub(crate) mod array;
pub(crate) mod container;
pub(crate) mod derivation;
pub(crate) mod element;
pub mod frame;
pub(crate) mod function;
pub(crate) mod landing_pad;
pub mod location;
pub mod scope;
pub(crate) mod spelling;
pub mod types;
pub mod unit;
pub mod variable;

use crate::elf::ElfImage;
use crate::file::FileBytes;
use crate::limit;
use dataspace_proto::address::Svma;
use gimli::{LittleEndian, UnitOffset};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use unit::ParsedUnit;

/// How sections are read: shared, so that parsed units can be kept.
pub(crate) type Reader = gimli::EndianArcSlice<LittleEndian>;
pub(crate) type Entry = gimli::DebuggingInformationEntry<Reader>;

/// Which unit of a load object: an index into its units.
pub(crate) type UnitIdx = u32;

/// One entry of the debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DieRef {
    pub(crate) unit: UnitIdx,
    pub(crate) offset: UnitOffset,
}

/// The debug information of one load object.
#[derive(Debug)]
pub struct DebugInfo {
    dwarf: gimli::Dwarf<Reader>,
    headers: Vec<gimli::UnitHeader<Reader>>,
    /// First address, end and unit, by first address.
    code_ranges: Vec<(u64, u64, UnitIdx)>,
    units: Vec<Option<Arc<ParsedUnit>>>,
    /// Parsed units, oldest first.
    parsed: std::collections::VecDeque<UnitIdx>,
    pub(crate) layouts: types::LayoutTable,
    pub(crate) derivations: derivation::DerivationTable,
    variables: Option<variable::StaticVariables>,
    /// Functions read so far, by unit and entry.
    functions: FunctionTable,
    containers: FxHashMap<UnitIdx, Arc<container::Containers>>,
}

type FunctionTable = FxHashMap<(UnitIdx, Option<UnitOffset>), Arc<function::FunctionScope>>;

impl DebugInfo {
    /// Loads the debug sections of `file`; `None` where there are none, or none that parse.
    #[must_use]
    pub fn load(image: &ElfImage, file: &dyn FileBytes) -> Option<Self> {
        image.section(".debug_info")?;
        let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let section = image.section(id.name());
            let bytes = section.and_then(|section| match image.read_section(file, section) {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    tracing::warn!(%error, "debug section left out");
                    None
                }
            });
            Ok(Reader::new(bytes.unwrap_or_else(|| Arc::from([])), LittleEndian))
        };
        let mut dwarf = gimli::Dwarf::load(load).ok()?;
        // Units can share one table of abbreviations, which is read once then, not once for each.
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut info = Self {
            dwarf,
            headers: Vec::new(),
            code_ranges: Vec::new(),
            units: Vec::new(),
            parsed: std::collections::VecDeque::new(),
            layouts: types::LayoutTable::default(),
            derivations: derivation::DerivationTable::default(),
            variables: None,
            functions: FunctionTable::default(),
            containers: FxHashMap::default(),
        };
        info.read_headers();
        (!info.headers.is_empty()).then_some(info)
    }

    /// Reads every unit's header and the address ranges of its root entry.
    fn read_headers(&mut self) {
        let mut headers = self.dwarf.units();
        // A damaged header ends the walk: what came before it stays usable.
        while let Ok(Some(header)) = headers.next() {
            if self.headers.len() >= limit::MAX_UNITS {
                break;
            }
            self.headers.push(header);
        }
        self.units.resize(self.headers.len(), None);
        for idx in 0..self.headers.len() {
            let room = limit::MAX_CODE_RANGES - self.code_ranges.len();
            let ranges = unit::code_ranges(&self.dwarf, &self.headers[idx], room);
            let ranges = ranges.unwrap_or_default();
            let unit_idx = idx as UnitIdx;
            self.code_ranges.extend(ranges.iter().map(|(start, end)| (*start, *end, unit_idx)));
        }
        self.code_ranges.sort_unstable();
    }

    /// The unit whose code holds `svma`.
    pub(crate) fn unit_of_code(&self, svma: Svma) -> Option<UnitIdx> {
        let end = self.code_ranges.partition_point(|(start, ..)| *start <= svma.0);
        // Ranges of units do not nest in sound input; a few are looked at in case they do.
        let holds = |range: &&(u64, u64, UnitIdx)| svma.0 < range.1;
        self.code_ranges[..end].iter().rev().take(32).find(holds).map(|(.., unit)| *unit)
    }

    pub(crate) fn n_units(&self) -> UnitIdx {
        self.headers.len() as UnitIdx
    }

    pub(crate) fn dwarf(&self) -> &gimli::Dwarf<Reader> {
        &self.dwarf
    }

    /// The unit, parsed now if it is not at hand.
    pub(crate) fn unit(&mut self, idx: UnitIdx) -> Option<Arc<ParsedUnit>> {
        let slot = usize::try_from(idx).ok()?;
        if let Some(unit) = self.units.get(slot)? {
            return Some(Arc::clone(unit));
        }
        let parsed = ParsedUnit::parse(&self.dwarf, self.headers[slot].clone());
        let unit = Arc::new(parsed.ok()?);
        if self.parsed.len() >= limit::MAX_CACHED_UNITS
            && let Some(oldest) = self.parsed.pop_front()
        {
            self.units[oldest as usize] = None;
        }
        self.parsed.push_back(idx);
        self.units[slot] = Some(Arc::clone(&unit));
        Some(unit)
    }

    /// The entry that an attribute of an entry in `unit` refers to.
    pub(crate) fn reference(
        &self,
        unit: UnitIdx,
        value: &gimli::AttributeValue<Reader>,
    ) -> Option<DieRef> {
        match value {
            gimli::AttributeValue::UnitRef(offset) => Some(DieRef { unit, offset: *offset }),
            gimli::AttributeValue::DebugInfoRef(offset) => {
                let next = self.headers.partition_point(|header| {
                    header.debug_info_offset().is_some_and(|start| start.0 <= offset.0)
                });
                let idx = next.checked_sub(1)?;
                let unit_offset = offset.to_unit_offset(self.headers.get(idx)?)?;
                Some(DieRef { unit: idx as UnitIdx, offset: unit_offset })
            }
            _ => None,
        }
    }

    /// The entry at `die`.
    pub(crate) fn entry(&mut self, die: DieRef) -> Option<(Arc<ParsedUnit>, Entry)> {
        let unit = self.unit(die.unit)?;
        let entry = unit.unit.entry(die.offset).ok()?;
        Some((unit, entry))
    }

    /// The string an attribute holds, cut at the limit.
    pub(crate) fn string(
        &self,
        unit: &ParsedUnit,
        value: gimli::AttributeValue<Reader>,
    ) -> Option<Arc<str>> {
        let bytes = self.dwarf.attr_string(&unit.unit, value).ok()?;
        unit::bounded_string(&bytes)
    }

    /// Name and type of a variable, member or parameter, which may be said by the entry it was
    /// made from (`DW_AT_abstract_origin`, `DW_AT_specification`).
    pub(crate) fn name_and_type(&mut self, die: DieRef) -> (Option<Arc<str>>, Option<DieRef>) {
        let (mut name, mut type_die) = (None, None);
        let mut next = Some(die);
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(die) = next.take() else { break };
            let Some((unit, entry)) = self.entry(die) else { break };
            if name.is_none() {
                name =
                    entry.attr_value(gimli::DW_AT_name).and_then(|value| self.string(&unit, value));
            }
            if type_die.is_none() {
                type_die = entry
                    .attr_value(gimli::DW_AT_type)
                    .and_then(|value| self.reference(die.unit, &value));
            }
            next = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
                .into_iter()
                .find_map(|attribute| entry.attr_value(attribute))
                .and_then(|value| self.reference(die.unit, &value));
        }
        (name, type_die)
    }
}
