//! One compilation unit, walked once: its functions, its name spaces.

use crate::dwarf::unit::abbreviation::{Table, Whole};
use crate::dwarf::unit::code_range;
use crate::dwarf::unit::entry_walk::{EntryKinds, EntryWalk, Met};
use crate::dwarf::unit::reader::{Dwarf, Entry, Reader};
use crate::dwarf::unit::tag::is_aggregate;
use crate::limit;
use dataspace_proto::address::Svma;
use gimli::UnitOffset;
use std::sync::Arc;

/// A unit and what one walk over it found.
#[derive(Debug)]
pub(crate) struct ParsedUnit {
    /// The sections that it is in.
    pub(crate) dwarf: Arc<Dwarf>,
    pub(crate) unit: gimli::Unit<Reader>,
    /// `DW_AT_name`: the main source file.
    pub(crate) name: Option<Arc<str>>,
    /// Code ranges of concrete functions: first address, end, entry; by first address.
    functions: Vec<(u64, u64, UnitOffset)>,
    /// Structures, classes and unions that it defines.
    aggregates: Vec<u32>,
    /// `DW_AT_language`.
    language: Option<gimli::DwLang>,
    /// From which offset on entries are inside of which name space or type, by the index into
    /// `scopes`. In C++ half of all entries are inside of one; where each begins and ends takes a
    /// tenth of what the entries would.
    bounds: Vec<(u32, u32)>,
    /// Name spaces and types that hold others: the entry and the index of the one around it.
    scopes: Vec<(u32, u32)>,
    /// The kinds of its entries.
    kinds: EntryKinds,
}

/// In place of the index of a scope: no scope.
const NO_SCOPE: u32 = u32::MAX;

/// The role of a unit for another.
pub(crate) enum Half {
    Whole,
    /// It only names the file that holds the rest.
    Skeleton,
    /// It is the rest: addresses and lines are with the skeleton.
    Split(Box<gimli::Unit<Reader>>),
}

impl ParsedUnit {
    pub(crate) fn parse(
        dwarf: Arc<Dwarf>,
        header: gimli::UnitHeader<Reader>,
        half: Half,
    ) -> gimli::Result<Self> {
        let mut unit = without_lines(&dwarf, header)?;
        let mut name = unit.name.as_ref().and_then(bounded_string);
        match half {
            Half::Whole => {}
            // Who asks must not take it for a unit that knows of no variables.
            Half::Skeleton => name = None,
            Half::Split(skeleton) => {
                unit.copy_relocated_attributes(&skeleton);
                unit.line_program = skeleton.line_program;
            }
        }
        let mut parsed = Self {
            dwarf,
            unit,
            name,
            functions: Vec::new(),
            language: None,
            aggregates: Vec::new(),
            bounds: Vec::new(),
            scopes: Vec::new(),
            kinds: EntryKinds::default(),
        };
        parsed.language = parsed.read_language();
        // Damage inside the unit ends the walk: what it found before stays.
        let _ = parsed.walk();
        parsed.functions.sort_unstable_by_key(|(start, end, _)| (*start, *end));
        parsed.functions.shrink_to_fit();
        parsed.aggregates.shrink_to_fit();
        parsed.bounds.shrink_to_fit();
        parsed.scopes.shrink_to_fit();
        Ok(parsed)
    }

    /// The structures, classes and unions that it defines.
    pub(crate) fn aggregates(&self) -> impl Iterator<Item = UnitOffset> {
        self.aggregates.iter().map(|offset| UnitOffset(*offset as usize))
    }

    /// About how much memory it takes besides its header, abbreviations and table of files.
    pub(crate) fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.functions)
            + size_of_val(&*self.aggregates)
            + size_of_val(&*self.bounds)
            + size_of_val(&*self.scopes)
            + self.kinds.n_bytes()
    }

    /// A walk from an entry on.
    pub(crate) fn walk_from(&self, start: UnitOffset) -> gimli::Result<EntryWalk<'_>> {
        EntryWalk::new(&self.unit.header, start, &self.kinds, &self.unit.abbreviations)
    }

    fn read_language(&self) -> Option<gimli::DwLang> {
        let root = self.unit.entry(self.unit.header.root_offset()).ok()?;
        match root.attr_value(gimli::DW_AT_language)? {
            gimli::AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// The index of an array's first element where its type does not say (DWARF 5 table 7.17).
    pub(crate) fn first_index(&self) -> i64 {
        let first = self.language.and_then(gimli::DwLang::default_lower_bound);
        first.and_then(|first| i64::try_from(first).ok()).unwrap_or(0)
    }

    /// The entry of the function whose code holds `svma`; the innermost if they nest.
    pub(crate) fn function_at(&self, svma: Svma) -> Option<UnitOffset> {
        self.function_range(svma).map(|(.., die)| *die)
    }

    /// The code range that holds `svma`.
    pub(crate) fn function_range_at(&self, svma: Svma) -> Option<(Svma, Svma)> {
        self.function_range(svma).map(|(start, end, _)| (Svma(*start), Svma(*end)))
    }

    /// The sequence of the line table that holds `svma`: code that was assembled as one.
    pub(crate) fn line_sequence_at(&self, svma: Svma) -> Option<(Svma, Svma)> {
        let (_, sequences) = self.line_program()?.sequences().ok()?;
        let found = sequences.iter().find(|found| (found.start..found.end).contains(&svma.0))?;
        (found.start != 0).then_some((Svma(found.start), Svma(found.end)))
    }

    /// The line table, not read yet.
    pub(crate) fn line_program(&self) -> Option<gimli::IncompleteLineProgram<Reader>> {
        if let Some(of_skeleton) = &self.unit.line_program {
            return Some(of_skeleton.clone());
        }
        let root = self.unit.entry(self.unit.header.root_offset()).ok()?;
        let value = root.attr_value(gimli::DW_AT_stmt_list)?;
        let gimli::AttributeValue::DebugLineRef(offset) = value else { return None };
        let size = self.unit.header.address_size();
        self.dwarf.debug_line.program(offset, size, None, None).ok()
    }

    fn function_range(&self, svma: Svma) -> Option<&(u64, u64, UnitOffset)> {
        let end = self.functions.partition_point(|(start, ..)| *start <= svma.0);
        self.functions[..end].iter().rev().take(32).find(|function| svma.0 < function.1)
    }

    /// The qualified name of the name space or type around an entry, cut at the limit of names. It
    /// is made when it is asked for: entries can share one long string.
    pub(crate) fn scope_of(&self, entry: &Entry) -> Option<String> {
        // DWARF 4 declares a static variable of a class as an external member.
        let is_static_member = entry.tag() == gimli::DW_TAG_member
            && entry.attr_value(gimli::DW_AT_external).is_some();
        if !is_named_in_scope(entry.tag()) && !is_static_member {
            return None;
        }
        let offset = u32::try_from(entry.offset().0).ok()?;
        let n_before = self.bounds.partition_point(|(start, _)| *start <= offset);
        let (_, mut next) = *self.bounds.get(n_before.checked_sub(1)?)?;
        if next == NO_SCOPE {
            return None;
        }
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut n_bytes = 0;
        while let Some((entry, outer)) = self.scopes.get(next as usize) {
            let name = self.name_at(UnitOffset(*entry as usize));
            let name = name.unwrap_or_else(|| "(anonymous)".into());
            n_bytes += name.len();
            names.push(name);
            next = if n_bytes < limit::MAX_NAME_BYTES { *outer } else { NO_SCOPE };
        }
        names.reverse();
        Some(names.join("::"))
    }

    fn name_at(&self, offset: UnitOffset) -> Option<Arc<str>> {
        let entry = self.unit.entry(offset).ok()?;
        self.string(entry.attr_value(gimli::DW_AT_name)?)
    }

    /// The name of an entry itself, with nothing else of it read.
    pub(crate) fn own_name(&self, offset: UnitOffset) -> Option<Arc<str>> {
        self.string(self.name_value(offset)?)
    }

    /// The place of that name, or the name.
    pub(crate) fn name_value(&self, offset: UnitOffset) -> Option<gimli::AttributeValue<Reader>> {
        let of_unit = &self.unit;
        let mut entries = of_unit.header.entries_raw(&of_unit.abbreviations, Some(offset)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            if attribute.name() == gimli::DW_AT_name {
                return Some(attribute.value());
            }
        }
        None
    }

    /// The string an attribute holds, cut at the limit.
    pub(crate) fn string(&self, value: gimli::AttributeValue<Reader>) -> Option<Arc<str>> {
        bounded_string(&self.dwarf.attr_string(&self.unit, value).ok()?)
    }

    fn walk(&mut self) -> gimli::Result<()> {
        let abbreviations = Arc::clone(&self.unit.abbreviations);
        let (header, known) = (&self.unit.header, EntryKinds::default());
        let mut walk = EntryWalk::new(header, header.root_offset(), &known, &abbreviations)?;
        let walked = self.collect(&mut walk);
        self.kinds = walk.into_met();
        walked
    }

    fn collect(&mut self, walk: &mut EntryWalk<'_>) -> gimli::Result<()> {
        // Enclosing name spaces and types: the depth of their children, and the qualified name.
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut n_ranges_left = limit::MAX_FUNCTION_RANGES;
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            let inside = open.last().map_or(isize::MIN, |(inside, _)| *inside);
            let is_wanted = |met: &Met| {
                inside > met.depth || is_noted(met) || met.has_children && opens_scope(met.tag)
            };
            let Some(met) = walk.next_where(is_wanted)? else { break };
            let (offset, depth) = (met.offset, met.depth);
            // Units whose entries reach further have no names by scope after that.
            let Ok(at) = u32::try_from(offset.0) else { break };
            let n_open = open.len();
            while open.last().is_some_and(|(inside, _)| *inside > depth) {
                open.pop();
            }
            let scope = open.last().map_or(NO_SCOPE, |(_, scope)| *scope);
            if open.len() != n_open {
                self.bounds.push((at, scope));
            }
            let (tag, has_children) = (met.tag, met.has_children);
            // Few entries are of interest: only those are read whole.
            match tag {
                gimli::DW_TAG_subprogram if met.has.code => {
                    self.add_function(&self.unit.entry(offset)?, &mut n_ranges_left);
                }
                tag if is_aggregate(tag)
                    && met.has.byte_size
                    && self.aggregates.len() < limit::MAX_UNIT_AGGREGATES =>
                {
                    self.aggregates.push(at);
                }
                _ => {}
            }
            // C has no name spaces, and its types hold no types by name.
            if has_children && opens_scope(tag) && self.has_name_spaces() {
                self.bounds.push((at + 1, self.scopes.len() as u32));
                open.push((depth + 1, self.scopes.len() as u32));
                self.scopes.push((at, scope));
            }
        }
        Ok(())
    }

    /// Tells whether the unit is written in Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.language == Some(gimli::DW_LANG_Rust)
    }

    /// Tells whether the unit is written in Go.
    pub(crate) fn is_go(&self) -> bool {
        self.language == Some(gimli::DW_LANG_Go)
    }

    /// Tells whether the unit is written in C++, as far as that is known.
    pub(crate) fn is_cpp(&self) -> bool {
        self.has_name_spaces() && !self.is_rust() && !self.is_go()
    }

    /// Tells whether the unit is written in assembly.
    pub(crate) fn is_assembled(&self) -> bool {
        self.language == Some(gimli::DW_LANG_Mips_Assembler)
    }

    /// Tells whether the unit's language qualifies names.
    pub(crate) fn has_name_spaces(&self) -> bool {
        !matches!(
            self.language,
            Some(
                gimli::DW_LANG_C89
                    | gimli::DW_LANG_C
                    | gimli::DW_LANG_C99
                    | gimli::DW_LANG_C11
                    | gimli::DW_LANG_C17
            )
        )
    }

    fn add_function(&mut self, entry: &Entry, n_left: &mut usize) {
        let ranges = code_range::ranges(&self.dwarf, &self.unit, entry, n_left);
        let code = ranges.iter().filter(|range| code_range::is_code(range));
        self.functions.extend(code.map(|range| (range.begin, range.end, entry.offset())));
    }
}

/// A unit without its table of files, which takes more memory than all else that is kept, and is seldom
/// asked for.
fn without_lines(
    dwarf: &Dwarf,
    header: gimli::UnitHeader<Reader>,
) -> gimli::Result<gimli::Unit<Reader>> {
    let root = Table::read(dwarf, &header, Whole::Root)?.whole;
    let abbreviations = dwarf.abbreviations(&header)?;
    let mut unit = gimli::Unit::new_with_abbreviations(dwarf, header, root)?;
    unit.abbreviations = abbreviations;
    Ok(unit)
}

/// Entries that a unit's walk notes whatever is around them.
const fn is_noted(met: &Met) -> bool {
    match met.tag {
        gimli::DW_TAG_subprogram => met.has.code,
        tag => is_aggregate(tag) && met.has.byte_size,
    }
}

/// Entries whose descriptor is qualified by the name space around them.
fn is_named_in_scope(tag: gimli::DwTag) -> bool {
    opens_scope(tag)
        || matches!(
            tag,
            gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_typedef
                | gimli::DW_TAG_variable
                | gimli::DW_TAG_subprogram
        )
}

const fn opens_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            // Fortran's name spaces, and its storage that several units share by name.
            | gimli::DW_TAG_module
            | gimli::DW_TAG_common_block
    )
}

/// Text of any bytes, cut at the limit.
pub(crate) fn bounded_string(bytes: &Reader) -> Option<Arc<str>> {
    use gimli::Reader as _;
    let n_bytes = bytes.len().min(limit::MAX_NAME_BYTES);
    // Nearly all are on one page.
    let on_page = bytes.with_ahead(n_bytes, |ahead| {
        (ahead.len() == n_bytes).then(|| Arc::from(String::from_utf8_lossy(ahead)))
    });
    if let Ok(Some(text)) = on_page {
        return Some(text);
    }
    let mut bytes = bytes.clone();
    bytes.truncate(n_bytes).ok()?;
    Some(bytes.to_string_lossy().ok()?.into())
}
