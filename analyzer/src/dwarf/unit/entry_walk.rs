//! A walk over all entries of a unit that reads only what they are: how to skip each kind of entry
//! is worked out once.

use crate::dwarf::unit::reader::Reader;
use crate::dwarf::unit::tag::{is_aggregate, is_closed};
use gimli::{DwAt, DwForm, DwTag, Encoding, Reader as _, UnitOffset};
use rustc_hash::FxHashMap;

/// The attributes of an entry that walks ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Has {
    /// `DW_AT_location` that is an expression: what has a list is not in one place all the time.
    pub(crate) location: bool,
    pub(crate) declaration: bool,
    /// `DW_AT_low_pc` or `DW_AT_ranges`.
    pub(super) code: bool,
    pub(super) byte_size: bool,
}

/// An entry that was met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    pub(crate) offset: UnitOffset,
    pub(crate) depth: isize,
    pub(crate) tag: DwTag,
    pub(crate) has_children: bool,
    pub(crate) has: Has,
}

impl Met {
    /// Tells whether it is an aggregate, and more than a declaration of one.
    pub(crate) fn is_definition(&self) -> bool {
        is_aggregate(self.tag) && !self.has.declaration
    }
}

/// Entries that a walk leaves out: what is inside of others, where these tell where it ends (`DW_AT_sibling`, which gcc
/// writes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// Inside of entries of a kind that has nothing but its own parts, unless the walk began there.
    Closed,
    /// Inside of all entries at this depth, counted from the one that the walk began at.
    Below(isize),
}

/// A kind of entry: one abbreviation.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryKind {
    pub(crate) tag: DwTag,
    pub(crate) has_children: bool,
    pub(crate) has: Has,
    /// It has children, and its last bytes tell where the entry after them begins: a `DW_FORM_ref4`.
    ends_in_sibling: bool,
    /// Nothing is inside of it but its own parts.
    is_closed: bool,
    /// So many bytes always follow the code.
    n_bytes: u32,
    /// Then these steps, by their places in the list of all.
    steps: (u32, u32),
}

/// The way to skip an attribute.
#[derive(Clone, Copy, Debug)]
enum SkipStep {
    Bytes(u32),
    Number,
    Block,
    Block1,
    Block2,
    Block4,
    Text,
    Indirect,
    Unknown(DwForm),
}

/// The kinds of entries of a unit.
#[derive(Debug, Default)]
pub(crate) struct EntryKinds {
    /// By code: compilers count them from 1.
    near: Vec<Option<EntryKind>>,
    /// Number of them that were put in: codes with gaps take no more than twice their memory.
    n_near: usize,
    far: FxHashMap<u64, EntryKind>,
    steps: Vec<SkipStep>,
}

/// A code may exceed twice the number of those before it by so many, and is still found without hashing.
const NEAR: usize = 64;

impl EntryKinds {
    /// About how much memory they take.
    pub(super) fn n_bytes(&self) -> usize {
        size_of_val(&*self.near)
            + size_of_val(&*self.steps)
            + self.far.capacity() * size_of::<(u64, EntryKind)>()
    }

    /// Tells whether entries of a kind that is wanted can be there: of kinds that were not read nothing is known.
    pub(crate) fn may_have(&self, is_wanted: impl Fn(DwTag, Has) -> bool) -> bool {
        let (near, far) = (self.near.iter().flatten(), self.far.values());
        let is_empty = self.near.is_empty() && self.far.is_empty();
        is_empty || near.chain(far).any(|kind| is_wanted(kind.tag, kind.has))
    }

    fn get(&self, code: u64) -> Option<EntryKind> {
        let near = usize::try_from(code).ok().and_then(|code| *self.near.get(code)?);
        near.or_else(|| self.far.get(&code).copied())
    }

    pub(super) fn insert(&mut self, code: u64, kind: EntryKind) {
        match usize::try_from(code) {
            Ok(code) if code < 2 * self.n_near + NEAR => {
                if code >= self.near.len() {
                    self.near.resize(code + 1, None);
                }
                if let Some(slot) = self.near.get_mut(code) {
                    *slot = Some(kind);
                    self.n_near += 1;
                }
            }
            _ => {
                self.far.insert(code, kind);
            }
        }
    }

    /// Works out a kind from its attributes.
    pub(super) fn kind(
        &mut self,
        (tag, has_children): (DwTag, bool),
        attributes: impl Iterator<Item = (DwAt, DwForm)>,
        encoding: Encoding,
    ) -> EntryKind {
        let first = self.steps.len() as u32;
        let (mut has, mut n_bytes, mut pending) = (Has::default(), 0_u32, 0_u32);
        let mut ends_in_sibling = false;
        for (name, form) in attributes {
            ends_in_sibling =
                has_children && (name, form) == (gimli::DW_AT_sibling, gimli::DW_FORM_ref4);
            match name {
                gimli::DW_AT_location => has.location = is_expression(form),
                gimli::DW_AT_declaration => has.declaration = true,
                gimli::DW_AT_low_pc | gimli::DW_AT_ranges => has.code = true,
                gimli::DW_AT_byte_size => has.byte_size = true,
                _ => {}
            }
            let step = step(form, encoding);
            match step {
                SkipStep::Bytes(n) if self.steps.len() as u32 == first => {
                    n_bytes = n_bytes.saturating_add(n);
                }
                SkipStep::Bytes(n) => pending = pending.saturating_add(n),
                step => {
                    if pending != 0 {
                        self.steps.push(SkipStep::Bytes(std::mem::take(&mut pending)));
                    }
                    self.steps.push(step);
                }
            }
        }
        if pending != 0 {
            self.steps.push(SkipStep::Bytes(pending));
        }
        let is_closed = is_closed(tag, has.declaration);
        let steps = (first, self.steps.len() as u32);
        EntryKind { tag, has_children, has, ends_in_sibling, is_closed, n_bytes, steps }
    }
}

/// Tells whether a location in this form is an expression, or may be one.
const fn is_expression(form: DwForm) -> bool {
    matches!(
        form,
        gimli::DW_FORM_exprloc
            | gimli::DW_FORM_block
            | gimli::DW_FORM_block1
            | gimli::DW_FORM_block2
            | gimli::DW_FORM_block4
            | gimli::DW_FORM_indirect
    )
}

fn step(form: DwForm, encoding: Encoding) -> SkipStep {
    if let Some(n_bytes) = fixed_bytes(form, encoding) {
        return SkipStep::Bytes(n_bytes);
    }
    match form {
        gimli::DW_FORM_udata
        | gimli::DW_FORM_sdata
        | gimli::DW_FORM_ref_udata
        | gimli::DW_FORM_strx
        | gimli::DW_FORM_GNU_str_index
        | gimli::DW_FORM_addrx
        | gimli::DW_FORM_GNU_addr_index
        | gimli::DW_FORM_loclistx
        | gimli::DW_FORM_rnglistx => SkipStep::Number,
        gimli::DW_FORM_block | gimli::DW_FORM_exprloc => SkipStep::Block,
        gimli::DW_FORM_block1 => SkipStep::Block1,
        gimli::DW_FORM_block2 => SkipStep::Block2,
        gimli::DW_FORM_block4 => SkipStep::Block4,
        gimli::DW_FORM_string => SkipStep::Text,
        gimli::DW_FORM_indirect => SkipStep::Indirect,
        unknown => SkipStep::Unknown(unknown),
    }
}

/// The bytes of a value whose form alone tells how many they are.
fn fixed_bytes(form: DwForm, encoding: Encoding) -> Option<u32> {
    Some(match form {
        gimli::DW_FORM_flag_present | gimli::DW_FORM_implicit_const => 0,
        gimli::DW_FORM_data1
        | gimli::DW_FORM_flag
        | gimli::DW_FORM_ref1
        | gimli::DW_FORM_strx1
        | gimli::DW_FORM_addrx1 => 1,
        gimli::DW_FORM_data2
        | gimli::DW_FORM_ref2
        | gimli::DW_FORM_strx2
        | gimli::DW_FORM_addrx2 => 2,
        gimli::DW_FORM_strx3 | gimli::DW_FORM_addrx3 => 3,
        gimli::DW_FORM_data4
        | gimli::DW_FORM_ref4
        | gimli::DW_FORM_ref_sup4
        | gimli::DW_FORM_strx4
        | gimli::DW_FORM_addrx4 => 4,
        gimli::DW_FORM_data8
        | gimli::DW_FORM_ref8
        | gimli::DW_FORM_ref_sig8
        | gimli::DW_FORM_ref_sup8 => 8,
        gimli::DW_FORM_data16 => 16,
        gimli::DW_FORM_addr => u32::from(encoding.address_size),
        // DWARF 2 gives it the size of an address.
        gimli::DW_FORM_ref_addr if encoding.version == 2 => u32::from(encoding.address_size),
        gimli::DW_FORM_ref_addr
        | gimli::DW_FORM_sec_offset
        | gimli::DW_FORM_strp
        | gimli::DW_FORM_strp_sup
        | gimli::DW_FORM_line_strp
        | gimli::DW_FORM_GNU_ref_alt
        | gimli::DW_FORM_GNU_strp_alt => u32::from(encoding.format.word_size()),
        _ => return None,
    })
}

/// The walk.
#[derive(Debug)]
pub(crate) struct EntryWalk<'a> {
    known: &'a EntryKinds,
    /// Kinds that were not known before.
    met: EntryKinds,
    /// The table that those are looked up in.
    abbreviations: &'a gimli::Abbreviations,
    input: Reader,
    encoding: Encoding,
    /// End of the unit.
    end: usize,
    depth: isize,
}

impl<'a> EntryWalk<'a> {
    /// Begins at an entry, and goes on to the unit's end.
    pub(crate) fn new(
        header: &gimli::UnitHeader<Reader>,
        start: UnitOffset,
        known: &'a EntryKinds,
        abbreviations: &'a gimli::Abbreviations,
    ) -> gimli::Result<Self> {
        let input = header.range_from(start..)?;
        let (met, encoding) = (EntryKinds::default(), header.encoding());
        let end = header.length_including_self();
        Ok(Self { known, met, abbreviations, input, encoding, end, depth: 0 })
    }

    /// The kinds that were met and not known before.
    pub(super) fn into_met(self) -> EntryKinds {
        self.met
    }

    /// The next entry, its attributes left behind.
    pub(crate) fn next(&mut self) -> gimli::Result<Option<Met>> {
        self.next_but(LeftOut::Nothing, |_| true)
    }

    /// The next entry that is wanted. None is found in the declaration of a function, nor in a type of another kind than
    /// classes.
    pub(crate) fn next_where(
        &mut self,
        is_wanted: impl Fn(&Met) -> bool,
    ) -> gimli::Result<Option<Met>> {
        self.next_but(LeftOut::Closed, is_wanted)
    }

    /// The next entry that is wanted, at this depth below the one that the walk began at, or above. What is inside of
    /// those is met or not.
    pub(crate) fn next_within(
        &mut self,
        depth: isize,
        is_wanted: impl Fn(&Met) -> bool,
    ) -> gimli::Result<Option<Met>> {
        self.next_but(LeftOut::Below(depth), is_wanted)
    }

    fn next_but(
        &mut self,
        left_out: LeftOut,
        is_wanted: impl Fn(&Met) -> bool,
    ) -> gimli::Result<Option<Met>> {
        while !self.input.is_empty() {
            if let Some(met) = self.pass_page(left_out, &is_wanted) {
                return Ok(Some(met));
            }
            if self.input.is_empty() {
                break;
            }
            // This one goes on on another page, or is damaged.
            let offset = UnitOffset(self.end - self.input.len());
            let Self { known, met, abbreviations, input, encoding, .. } = self;
            let mut skipper = Skipper { known, met, abbreviations, encoding: *encoding };
            let kind = skipper.pass(input)?;
            let met = met_at(kind, offset, &mut self.depth);
            if let Some(met) = met.filter(&is_wanted) {
                return Ok(Some(met));
            }
        }
        Ok(None)
    }

    /// Goes over what is in one piece on the page that was read last, up to an entry that is wanted:
    /// that takes half the time.
    fn pass_page(&mut self, left_out: LeftOut, is_wanted: impl Fn(&Met) -> bool) -> Option<Met> {
        let Self { known, met, abbreviations, input, encoding, end, depth } = self;
        let mut skipper = Skipper { known, met, abbreviations, encoding: *encoding };
        let n_left = input.len();
        let bytes = input.on_page();
        let mut ahead = gimli::EndianSlice::new(bytes, gimli::LittleEndian);
        let (mut found, mut n_passed) = (None, 0);
        while let Ok(kind) = skipper.pass(&mut ahead) {
            let first = *end - n_left;
            let offset = UnitOffset(first + n_passed);
            n_passed = bytes.len() - ahead.len();
            let beyond = kind
                .filter(|kind| kind.ends_in_sibling && *depth > 0)
                .filter(|kind| match left_out {
                    LeftOut::Nothing => false,
                    LeftOut::Closed => kind.is_closed,
                    LeftOut::Below(least) => *depth >= least,
                })
                .and_then(|_| sibling(&bytes[..n_passed]))
                // One that leads back, or out of the unit, is damage.
                .filter(|beyond| (first + n_passed..*end).contains(beyond));
            found = met_at(kind, offset, depth).filter(&is_wanted);
            if let Some(beyond) = beyond {
                *depth -= 1;
                n_passed = beyond - first;
                ahead = gimli::EndianSlice::new(
                    bytes.get(n_passed..).unwrap_or_default(),
                    gimli::LittleEndian,
                );
            }
            if found.is_some() {
                break;
            }
        }
        // It is no more than there is.
        let _ = input.skip(n_passed);
        found
    }
}

/// The place in the unit that the last bytes of an entry tell.
#[inline]
fn sibling(entry: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*entry.last_chunk()?) as usize)
}

/// The entry that was met, and the depth of the next; nothing at the end of a list of children.
#[inline]
fn met_at(kind: Option<EntryKind>, offset: UnitOffset, depth: &mut isize) -> Option<Met> {
    let Some(EntryKind { tag, has_children, has, .. }) = kind else {
        *depth -= 1;
        return None;
    };
    let met = Met { offset, depth: *depth, tag, has_children, has };
    *depth += isize::from(has_children);
    Some(met)
}

/// The tables and bytes for going over an entry.
struct Skipper<'a, 'b> {
    known: &'a EntryKinds,
    met: &'b mut EntryKinds,
    abbreviations: &'a gimli::Abbreviations,
    encoding: Encoding,
}

impl Skipper<'_, '_> {
    #[inline]
    fn pass<R: gimli::Reader<Offset = usize>>(
        &mut self,
        input: &mut R,
    ) -> gimli::Result<Option<EntryKind>> {
        let code = input.read_uleb128()?;
        if code == 0 {
            return Ok(None);
        }
        let (kind, steps) = match self.known.get(code) {
            Some(kind) => (kind, &self.known.steps),
            None => (self.look_up(code)?, &self.met.steps),
        };
        input.skip(kind.n_bytes as usize)?;
        let steps = steps.get(kind.steps.0 as usize..kind.steps.1 as usize);
        for step in steps.unwrap_or_default() {
            skip(input, *step, self.encoding)?;
        }
        Ok(Some(kind))
    }

    fn look_up(&mut self, code: u64) -> gimli::Result<EntryKind> {
        if let Some(kind) = self.met.get(code) {
            return Ok(kind);
        }
        let found = self.abbreviations.get(code);
        let found = found.ok_or(gimli::Error::InvalidAbbreviationCode(code))?;
        let attributes = found.attributes().iter().map(|spec| (spec.name(), spec.form()));
        let head = (found.tag(), found.has_children());
        let kind = self.met.kind(head, attributes, self.encoding);
        self.met.insert(code, kind);
        Ok(kind)
    }
}

#[inline]
fn skip<R: gimli::Reader<Offset = usize>>(
    input: &mut R,
    mut step: SkipStep,
    encoding: Encoding,
) -> gimli::Result<()> {
    if matches!(step, SkipStep::Indirect) {
        step = self::step(DwForm(input.read_uleb128_u16()?), encoding);
    }
    let n_bytes = match step {
        SkipStep::Bytes(n) => n as usize,
        SkipStep::Number => return input.skip_leb128(),
        SkipStep::Block => {
            let n_bytes = input.read_uleb128()?;
            usize::try_from(n_bytes).map_err(|_| gimli::Error::UnsupportedOffset)?
        }
        SkipStep::Block1 => usize::from(input.read_u8()?),
        SkipStep::Block2 => usize::from(input.read_u16()?),
        SkipStep::Block4 => input.read_u32()? as usize,
        SkipStep::Text => input.find(0)? + 1,
        // One that says so again: never in sound input, and as often as one likes in other.
        SkipStep::Indirect => return Err(gimli::Error::UnknownForm(gimli::DW_FORM_indirect)),
        SkipStep::Unknown(form) => return Err(gimli::Error::UnknownForm(form)),
    };
    input.skip(n_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::abbreviation::{Table, Whole};
    use super::*;
    use crate::bytes::page::{Memory, PageCache, PagedSection};
    use crate::dwarf::unit::reader::Dwarf;
    use crate::program::{Program, has_tool};
    use object::{Object as _, ObjectSection as _};
    use std::sync::Arc;

    /// A program that brings much of the standard library along.
    const SOURCE: &str = "
        use std::collections::{BTreeMap, HashMap};
        fn main() {
            let (mut counts, mut sizes) = (BTreeMap::new(), HashMap::new());
            for word in std::env::args() {
                *counts.entry(word.clone()).or_insert(0) += 1;
                sizes.insert(word.len(), Box::new(word));
            }
            let (sender, receiver) = std::sync::mpsc::channel();
            let told = std::thread::spawn(move || sender.send(std::fs::read_dir(\"/\")));
            let ran = std::process::Command::new(\"true\").output();
            let connected = std::net::TcpStream::connect(\"localhost:1\");
            let mut numbers: Vec<_> = std::env::args().map(|word| word.parse::<f64>()).collect();
            numbers.sort_by_key(|number| number.is_ok());
            println!(\"{counts:?} {sizes:?} {ran:?} {connected:?} {told:?} {numbers:?}\");
            println!(\"{:?}\", receiver.recv());
        }";

    /// Debug information of a program in Rust.
    fn rust() -> Dwarf {
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join("main.rs"), dir.path().join("main"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut rustc = std::process::Command::new("rustc");
        assert!(rustc.arg("-g").arg(&source).arg("-o").arg(&program).status().unwrap().success());
        dwarf(&std::fs::read(program).unwrap(), |_| ())
    }

    /// Debug information of a program, on pages that many entries reach over; `damage` may change its entries.
    fn dwarf(program: &[u8], damage: impl Fn(&mut Vec<u8>)) -> Dwarf {
        let elf = object::File::parse(program).unwrap();
        let pages = Arc::new(PageCache::new(200, 1000));
        gimli::Dwarf::load(|id| {
            let section = elf.section_by_name(id.name());
            let bytes = section.map(|section| section.uncompressed_data().unwrap());
            let mut bytes = bytes.unwrap_or_default().into_owned();
            if id == gimli::SectionId::DebugInfo {
                damage(&mut bytes);
            }
            let (len, file) = (bytes.len(), Arc::new(Memory(bytes)));
            let section = PagedSection::of_file(file, 0, len, Arc::clone(&pages));
            Ok::<_, gimli::Error>(Reader::new(section))
        })
        .unwrap()
    }

    type Entry = (UnitOffset, isize, DwTag, bool, Has);

    fn all(walk: EntryWalk<'_>) -> Vec<Entry> {
        by(walk, |walk| walk.next())
    }

    /// The entries that a walk meets by `next`.
    fn by(
        mut walk: EntryWalk<'_>,
        next: impl Fn(&mut EntryWalk<'_>) -> gimli::Result<Option<Met>>,
    ) -> Vec<Entry> {
        std::iter::from_fn(|| next(&mut walk).unwrap())
            .map(|met| (met.offset, met.depth, met.tag, met.has_children, met.has))
            .collect()
    }

    /// The entries as gimli reads them.
    fn expected(unit: &gimli::Unit<Reader>) -> Vec<Entry> {
        let mut entries = unit.header.entries_raw(&unit.abbreviations, None).unwrap();
        let mut found = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(kind) = entries.read_abbreviation().unwrap() else { continue };
            let mut has = Has::default();
            for spec in kind.attributes() {
                let attribute = entries.read_attribute(*spec).unwrap();
                match attribute.name() {
                    gimli::DW_AT_location => {
                        has.location =
                            matches!(attribute.value(), gimli::AttributeValue::Exprloc(_));
                    }
                    gimli::DW_AT_declaration => has.declaration = true,
                    gimli::DW_AT_low_pc | gimli::DW_AT_ranges => has.code = true,
                    gimli::DW_AT_byte_size => has.byte_size = true,
                    _ => {}
                }
            }
            found.push((offset, depth, kind.tag(), kind.has_children(), has));
        }
        found
    }

    #[test]
    fn every_entry_is_met_as_gimli_meets_it() {
        let dwarf = rust();
        let (mut units, mut n_entries) = (dwarf.units(), 0);
        while let Some(header) = units.next().unwrap().filter(|_| n_entries < 200_000) {
            let unit = dwarf.unit(header.clone()).unwrap();
            let expected = expected(&unit);
            n_entries += expected.len();
            let root = header.root_offset();
            let walk = |kinds| EntryWalk::new(&header, root, kinds, &unit.abbreviations).unwrap();
            let none = EntryKinds::default();
            assert_eq!(all(walk(&none)), expected);
            let table = Table::read(&dwarf, &header, Whole::Variables).unwrap();
            let kinds = &table.kinds;
            assert_eq!(all(EntryWalk::new(&header, root, kinds, &table.whole).unwrap()), expected);
            for (offset, _, tag, ..) in expected {
                let is_whole = offset == root || tag == gimli::DW_TAG_variable;
                assert!(!is_whole || header.entry(&table.whole, offset).is_ok(), "{offset:?}");
            }
            let table = Table::read(&dwarf, &header, Whole::Root).unwrap();
            let light = gimli::Unit::new_with_abbreviations(&dwarf, header, table.whole).unwrap();
            assert_eq!(
                (light.low_pc, light.addr_base, light.rnglists_base, light.str_offsets_base),
                (unit.low_pc, unit.addr_base, unit.rnglists_base, unit.str_offsets_base)
            );
            assert!(light.line_program.is_none());
        }
        assert!(n_entries > 100_000, "{n_entries}");
    }

    /// A program in C++, of a compiler that says where the entries inside of others end.
    fn cpp() -> Option<Program> {
        if !has_tool("g++") {
            eprintln!("no g++: nothing says where the entries inside of others end");
            return None;
        }
        Some(Program::compile("g++", "sequences.cpp", "-std=c++20 -O2 -g"))
    }

    /// The entries that a walk from the root of a unit meets by `next`.
    fn met(
        unit: &gimli::Unit<Reader>,
        next: impl Fn(&mut EntryWalk<'_>) -> gimli::Result<Option<Met>>,
    ) -> Vec<Entry> {
        let (header, kinds) = (&unit.header, EntryKinds::default());
        let root = header.root_offset();
        by(EntryWalk::new(header, root, &kinds, &unit.abbreviations).unwrap(), next)
    }

    /// The entries that are not inside of one for which `is_left_out`.
    fn outside(entries: &[Entry], is_left_out: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut inside_of = isize::MAX;
        let mut is_outside = |entry: &&Entry| {
            if entry.1 > inside_of {
                return false;
            }
            inside_of = if is_left_out(entry) { entry.1 } else { isize::MAX };
            true
        };
        entries.iter().filter(|entry| is_outside(entry)).copied().collect()
    }

    #[test]
    fn only_what_is_inside_of_others_is_left_out() {
        let Some(program) = cpp() else { return };
        let dwarf = dwarf(&program.bytes, |_| ());
        let (mut units, mut n_left_out) = (dwarf.units(), [0, 0]);
        while let Some(header) = units.next().unwrap() {
            let unit = dwarf.unit(header).unwrap();
            let all = expected(&unit);
            let is_closed =
                |(_, depth, tag, _, has): &Entry| *depth > 0 && is_closed(*tag, has.declaration);
            // The last entry of a list has no next one, and is walked through.
            let n_closed = outside(&all, is_closed).len();
            let found = met(&unit, |walk| walk.next_where(|_| true));
            let is_kept = |entry: &Entry| found.contains(entry);
            assert!(outside(&all, is_closed).iter().all(is_kept));
            assert!(
                found.is_sorted_by_key(|entry| entry.0) && found.iter().all(|it| all.contains(it))
            );
            n_left_out[0] += all.len() - found.len();
            assert!((all.len() - found.len()) * 2 > all.len() - n_closed);
            for depth in 1..4 {
                let found = met(&unit, |walk| walk.next_within(depth, |met| met.depth <= depth));
                let near: Vec<Entry> = all.iter().filter(|it| it.1 <= depth).copied().collect();
                assert_eq!(found, near);
                let met = met(&unit, |walk| walk.next_within(depth, |_| true));
                n_left_out[1] += all.len() - met.len();
            }
        }
        assert!(n_left_out.iter().all(|n| *n > 100), "{n_left_out:?}");
    }

    #[test]
    fn a_next_entry_that_leads_back_or_far_away_is_none() {
        let Some(program) = cpp() else { return };
        let sound = dwarf(&program.bytes, |_| ());
        let header = sound.units().next().unwrap().unwrap();
        let unit = sound.unit(header).unwrap();
        let all = expected(&unit);
        // The first namespace, or class, in which there is more.
        let (at, ..) =
            all.iter().find(|(_, depth, _, has_children, _)| *depth == 1 && *has_children).unwrap();
        let entry = unit.entry(*at).unwrap();
        let beyond = entry.attr_value(gimli::DW_AT_sibling).unwrap();
        let gimli::AttributeValue::UnitRef(beyond) = beyond else { panic!("{beyond:?}") };
        let told = (beyond.0 as u32).to_le_bytes();
        for lie in [0, at.0 as u32, u32::MAX] {
            let damaged = dwarf(&program.bytes, |bytes| {
                let from = at.0;
                let place = bytes[from..].windows(4).position(|bytes| bytes == told).unwrap();
                bytes[from + place..][..4].copy_from_slice(&lie.to_le_bytes());
            });
            let header = damaged.units().next().unwrap().unwrap();
            let unit = damaged.unit(header).unwrap();
            let near: Vec<Entry> = all.iter().filter(|it| it.1 <= 1).copied().collect();
            assert_eq!(met(&unit, |walk| walk.next_within(1, |met| met.depth <= 1)), near, "{lie}");
        }
    }
}
