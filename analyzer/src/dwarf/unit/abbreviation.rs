//! Tables of abbreviations, read for a walk over a unit's entries.

use crate::dwarf::unit::entry_walk::EntryKinds;
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::limit;
use gimli::{DwAt, DwForm, DwTag, Encoding, Reader as _, Section as _};
use std::sync::Arc;

/// A unit's table of abbreviations, read for a walk.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) kinds: EntryKinds,
    /// Those that were wanted whole.
    pub(super) whole: Arc<gimli::Abbreviations>,
    /// Number of bytes read.
    pub(super) n_bytes: usize,
}

/// The abbreviations that are wanted whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// The root's only; nothing is read after it, and no kinds are made.
    Root,
    /// The root's, and those of variables.
    Variables,
}

impl Table {
    /// Reads the table of the unit with this header. gimli makes lists of all attributes, which
    /// takes ten times as long.
    pub(super) fn read(
        dwarf: &Dwarf,
        header: &gimli::UnitHeader<Reader>,
        whole: Whole,
    ) -> gimli::Result<Self> {
        let root = header.range_from(header.root_offset()..)?.read_uleb128()?;
        let wanted = Wanted { root, whole, encoding: header.encoding() };
        let mut input = dwarf.debug_abbrev.reader().clone();
        input.skip(header.debug_abbrev_offset().0)?;
        // Most tables are on one page, and short.
        let on_page = input.with_ahead(SHORT_TABLE_BYTES, |bytes| {
            wanted.find(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
        });
        let (kinds, mut bytes, n_bytes) = match on_page? {
            Err(gimli::Error::UnexpectedEof(_)) => wanted.find(input)?,
            found => found?,
        };
        bytes.push(0);
        let whole = gimli::DebugAbbrev::from(Reader::of_bytes(bytes.into()));
        let whole = whole.abbreviations(gimli::DebugAbbrevOffset(0))?;
        Ok(Self { kinds, whole: Arc::new(whole), n_bytes })
    }
}

/// Tells whether a table of abbreviations can be read, and gives no entry more attributes than the limit: gimli
/// reads all of them for each entry.
pub(super) fn is_table_sound(dwarf: &Dwarf, start: gimli::DebugAbbrevOffset) -> bool {
    let mut input = dwarf.debug_abbrev.reader().clone();
    let on_page = |input: &Reader| {
        input.with_ahead(SHORT_TABLE_BYTES, |bytes| {
            read_table(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
        })
    };
    let read = input.skip(start.0).and_then(|()| on_page(&input));
    match read {
        Ok(Err(gimli::Error::UnexpectedEof(_))) => read_table(input).is_ok(),
        read => read.is_ok_and(|read| read.is_ok()),
    }
}

fn read_table<R: gimli::Reader<Offset = usize>>(mut input: R) -> gimli::Result<()> {
    let (start, mut attributes) = (input.clone(), Vec::new());
    while input.read_uleb128()? != 0 {
        input.read_uleb128_u16()?;
        input.read_u8()?;
        read_attributes(&mut input, &start, &mut attributes)?;
    }
    Ok(())
}

/// A table of abbreviations that is longer is read page by page.
const SHORT_TABLE_BYTES: usize = 1 << 14;

/// The purpose that a table is read for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The root's code.
    root: u64,
    whole: Whole,
    encoding: Encoding,
}

impl Wanted {
    /// All kinds, the bytes of the abbreviations that are wanted whole, and how many were read.
    fn find<R: gimli::Reader<Offset = usize>>(
        self,
        mut input: R,
    ) -> gimli::Result<(EntryKinds, Vec<u8>, usize)> {
        let first = input.clone();
        let mut kinds = EntryKinds::default();
        let (mut bytes, mut attributes) = (Vec::new(), Vec::new());
        loop {
            let start = input.clone();
            let code = input.read_uleb128()?;
            if code == 0 {
                break;
            }
            let tag = DwTag(input.read_uleb128_u16()?);
            let has_children = input.read_u8()? == gimli::DW_CHILDREN_yes.0;
            let line_table = read_attributes(&mut input, &start, &mut attributes)?;
            if self.whole != Whole::Root {
                let head = (tag, has_children);
                let kind = kinds.kind(head, attributes.iter().copied(), self.encoding);
                kinds.insert(code, kind);
            }
            let is_variable = tag == gimli::DW_TAG_variable && self.whole == Whole::Variables;
            if code == self.root || is_variable {
                let mut own = start;
                let n_bytes = input.offset_from(&own);
                let at = bytes.len();
                bytes.resize(at + n_bytes, 0);
                own.read_slice(&mut bytes[at..])?;
                if let Some(name) = line_table.and_then(|name| bytes.get_mut(at + name)) {
                    *name = NO_ATTRIBUTE;
                }
            }
            if code == self.root && self.whole == Whole::Root {
                break;
            }
        }
        Ok((kinds, bytes, input.offset_from(&first)))
    }
}

/// An attribute's number that DWARF does not use. With `DW_AT_stmt_list` gimli would read the header
/// of the unit's line table, for which walks have no use.
const NO_ATTRIBUTE: u8 = 0x06;

/// Reads the attributes of the abbreviation at `start`; where the number of `DW_AT_stmt_list` is.
fn read_attributes<R: gimli::Reader<Offset = usize>>(
    input: &mut R,
    start: &R,
    attributes: &mut Vec<(DwAt, DwForm)>,
) -> gimli::Result<Option<usize>> {
    attributes.clear();
    let mut line_table = None;
    loop {
        let at = input.offset_from(start);
        let name = input.read_uleb128_u16()?;
        let is_one_byte = input.offset_from(start) == at + 1;
        let form = input.read_uleb128_u16()?;
        if (name, form) == (0, 0) {
            return Ok(line_table);
        }
        if attributes.len() >= limit::MAX_ATTRIBUTES {
            return Err(gimli::Error::TooManyIterations);
        }
        if DwAt(name) == gimli::DW_AT_stmt_list && is_one_byte {
            line_table = Some(at);
        }
        if DwForm(form) == gimli::DW_FORM_implicit_const {
            input.skip_leb128()?;
        }
        attributes.push((DwAt(name), DwForm(form)));
    }
}
