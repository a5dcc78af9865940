//! The debug information of one load object: its units, and what was worked out of them.
//!
//! Everything is asked by a worker, lazily: a unit is walked when a sample first touches its code, a
//! type is laid out when an answer first needs it.

use crate::bytes::file::{CompanionFiles, NoCompanions};
use crate::bytes::page::PageCache;
use crate::dwarf::code::kept::{CopyingCodes, FunctionScope};
use crate::dwarf::code::line::LineTables;
use crate::dwarf::declared::DeclaredFunctions;
use crate::dwarf::layout::kept::{
    ClassDefinitions, ContainerTable, DerivationTable, InnerTypes, LayoutTable,
};
use crate::dwarf::unit::abbreviation::Whole;
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::dwarf::unit::reader::{Entry, Reader};
use crate::dwarf::unit::section::{self, SectionFile};
use crate::dwarf::unit::source::Sources;
use crate::dwarf::unit::split::SplitFiles;
use crate::dwarf::unit::{code_range, supplementary};
use crate::dwarf::variable::index::VariableIndex;
use crate::elf::image::ElfImage;
use crate::limit::{self, BoundedMap};
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use gimli::UnitOffset;
use std::ops::Range;
use std::sync::Arc;

/// The debug information of one load object.
#[derive(Debug)]
pub struct DebugInfo {
    pub(crate) sources: Sources,
    /// First address, end and unit, by first address.
    code_ranges: Vec<(u64, u64, UnitIdx)>,
    pub(crate) layouts: LayoutTable,
    pub(crate) derivations: DerivationTable,
    pub(crate) copying_codes: CopyingCodes,
    pub(crate) line_tables: LineTables,
    pub(crate) variables: VariableIndex,
    /// Functions read so far, by unit and entry.
    pub(crate) functions: FunctionScopes,
    pub(crate) inner_types: BoundedMap<DieRef, Arc<InnerTypes>, { limit::MAX_INNER_TYPES }>,
    /// The functions that are entered at these addresses.
    pub(crate) entered: BoundedMap<Svma, Option<DieRef>, { limit::MAX_ENTERED_FUNCTIONS }>,
    /// The functions in slots of classes' tables.
    pub(crate) virtual_functions:
        BoundedMap<(DieRef, u64), Option<DieRef>, { limit::MAX_ENTERED_FUNCTIONS }>,
    pub(crate) containers: ContainerTable,
    /// Functions that no unit describes.
    pub(crate) declared: DeclaredFunctions,
    pub(crate) class_definitions: ClassDefinitions,
}

type FunctionScopes =
    BoundedMap<(UnitIdx, Option<UnitOffset>), Arc<FunctionScope>, { limit::MAX_CACHED_FUNCTIONS }>;

impl DebugInfo {
    /// Loads the debug sections of `file`; `None` where there are none, or none that parse. Other
    /// files that they name come from `companions`.
    #[must_use]
    pub(crate) fn load(
        image: &ElfImage,
        file: &SectionFile,
        pages: &Arc<PageCache>,
        companions: Box<dyn CompanionFiles>,
    ) -> Option<Self> {
        let loaded = section::load(image, file, section::Naming::Linked)?;
        let supplementary = supplementary::open(image, file.bytes(), pages, companions.as_ref());
        let split = SplitFiles::new(companions, Arc::clone(pages));
        let mut sources = Sources::new(supplementary, split);
        sources.add_own(loaded.dwarf)?;
        let mut info = Self::of(sources);
        info.read_roots(info.sources.main_units());
        Some(info)
    }

    /// The debug information of a file that has none.
    pub(crate) fn empty(pages: &Arc<PageCache>) -> Self {
        let split = SplitFiles::new(Box::new(NoCompanions), Arc::clone(pages));
        Self::of(Sources::new(None, split))
    }

    fn of(sources: Sources) -> Self {
        Self {
            sources,
            code_ranges: Vec::new(),
            layouts: LayoutTable::default(),
            derivations: DerivationTable::default(),
            copying_codes: CopyingCodes::default(),
            line_tables: LineTables::default(),
            variables: VariableIndex::default(),
            functions: FunctionScopes::default(),
            inner_types: BoundedMap::default(),
            entered: BoundedMap::default(),
            virtual_functions: BoundedMap::default(),
            containers: ContainerTable::default(),
            declared: DeclaredFunctions::default(),
            class_definitions: ClassDefinitions::default(),
        }
    }

    /// Gives up what can be read again in little time.
    pub(crate) fn evict_caches(&mut self) {
        self.sources.forget_parsed();
        self.layouts = LayoutTable::default();
        self.class_definitions.forget();
        self.line_tables = LineTables::default();
        self.functions = FunctionScopes::default();
        self.inner_types = BoundedMap::default();
        self.entered = BoundedMap::default();
        self.virtual_functions = BoundedMap::default();
        self.containers = ContainerTable::default();
    }

    /// Adds what is known of code that the file does not describe.
    pub(crate) fn declare(&mut self, declared: DeclaredFunctions) {
        self.code_ranges.extend(declared.code_ranges());
        self.code_ranges.sort_unstable();
        self.declared = declared;
    }

    /// Reads the address ranges in the root entry of every unit of some.
    fn read_roots(&mut self, units: Range<UnitIdx>) {
        let mut n_left = limit::MAX_CODE_RANGES;
        for unit_idx in units {
            let root = self.sources.for_walk(unit_idx, Whole::Root);
            let Some((dwarf, unit, _)) = root else { continue };
            self.sources.note_skeleton(unit_idx, &unit);
            self.variables.note_unit(&unit, self.sources.is_skeleton(unit_idx));
            let Ok(root) = unit.entry(unit.header.root_offset()) else { continue };
            let ranges = code_range::ranges(&dwarf, &unit, &root, &mut n_left);
            let code = ranges.iter().filter(|range| code_range::is_code(range));
            self.code_ranges.extend(code.map(|range| (range.begin, range.end, unit_idx)));
        }
        self.code_ranges.sort_unstable();
    }

    /// The unit whose code holds `svma`: the split unit where there is one.
    pub(crate) fn unit_of_code(&mut self, svma: Svma) -> Option<UnitIdx> {
        let found = self.own_unit_at(svma)?;
        Some(self.whole_unit(found))
    }

    /// Tells whether a unit says that it has code at `svma`.
    pub(crate) fn has_unit_at(&self, svma: Svma) -> bool {
        self.own_unit_at(svma).is_some()
    }

    /// The file's own unit whose code holds `svma`.
    pub(crate) fn own_unit_at(&self, svma: Svma) -> Option<UnitIdx> {
        let end = self.code_ranges.partition_point(|(start, ..)| *start <= svma.0);
        // Ranges of units do not nest in sound input; a few are looked at in case they do.
        let holds = |range: &&(u64, u64, UnitIdx)| svma.0 < range.1;
        self.code_ranges[..end].iter().rev().take(32).find(holds).map(|(.., unit)| *unit)
    }

    /// The split unit of a skeleton; else the unit itself.
    pub(crate) fn whole_unit(&mut self, unit: UnitIdx) -> UnitIdx {
        self.sources.split_of(unit).unwrap_or(unit)
    }

    /// The unit, parsed now if it is not at hand.
    pub(crate) fn unit(&mut self, idx: UnitIdx) -> Option<Arc<ParsedUnit>> {
        self.sources.unit(idx)
    }

    /// The entry that an attribute of an entry in `unit` refers to, in whatever unit it is.
    pub(crate) fn reference(
        &mut self,
        unit: UnitIdx,
        value: &gimli::AttributeValue<Reader>,
    ) -> Option<DieRef> {
        self.sources.reference(unit, value)
    }

    /// The entry at `die`.
    pub(crate) fn entry(&mut self, die: DieRef) -> Option<(Arc<ParsedUnit>, Entry)> {
        let unit = self.unit(die.unit)?;
        let entry = unit.unit.entry(die.offset).ok()?;
        Some((unit, entry))
    }

    /// The entry that another one was made from.
    pub(crate) fn origin(&mut self, die: DieRef, entry: &Entry) -> Option<DieRef> {
        let made_from = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        let value = made_from.into_iter().find_map(|attribute| entry.attr_value(attribute))?;
        self.reference(die.unit, &value)
    }

    /// Name and type of a variable, member or parameter, which may be said by the entry it was
    /// made from (`DW_AT_abstract_origin`, `DW_AT_specification`).
    pub(crate) fn name_and_type(&mut self, die: DieRef) -> (Option<Arc<str>>, Option<DieRef>) {
        let (mut name, mut type_die) = (None, self.declared.result(die));
        let mut next = Some(die);
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(die) = next.take() else { break };
            let Some((unit, entry)) = self.entry(die) else { break };
            if name.is_none() {
                name = entry.attr_value(gimli::DW_AT_name).and_then(|value| unit.string(value));
            }
            if type_die.is_none() {
                type_die = self.target(die, &entry);
            }
            next = self.origin(die, &entry);
        }
        (name, type_die)
    }
}
