//! The object at a place in a load object's data: a variable of its debug information, a symbol, a
//! slot of its linkage tables, or what the compiler made.

use crate::code::image::CodeImage;
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::variable::index::StaticVariable;
use crate::elf::data_symbol::{DataPlace, DataSymbol, Storage};
use crate::elf::image::Section;
use crate::elf::linkage::LinkageSlot;
use crate::elf::symbol_name::{self, SymbolName};
use crate::limit;
use crate::types::data_object::DataObject;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// The object at a place in data, and the range around that this answer holds for.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRange {
    /// In which data.
    pub storage: Storage,
    /// First place.
    pub start: Svma,
    /// End.
    pub end: Svma,
    /// The object that is there; `None` if nothing tells.
    pub resident: Option<Resident>,
}

/// Object that lives at a place in data.
#[derive(Clone, Debug, PartialEq)]
pub enum Resident {
    /// A variable whose type is known.
    Variable(Arc<StaticVariable>),
    /// An object that has a name, but no type.
    Untyped(Arc<UntypedObject>),
}

/// An object that no type describes.
#[derive(Clone, Debug, PartialEq)]
pub struct UntypedObject {
    /// Its first address.
    pub start: Svma,
    /// Its name.
    pub object: DataObject,
    /// The compiler or the linker made it for itself: no type of the program describes it.
    pub is_made: bool,
}

/// Sources that tell of a load object's data.
pub(crate) struct StaticData<'a> {
    pub(crate) code: &'a CodeImage,
    pub(crate) debug: Option<&'a mut DebugInfo>,
}

impl StaticData<'_> {
    /// Finds what is at `place`.
    pub(crate) fn at(&mut self, place: DataPlace) -> DataRange {
        let mut range = DataRange {
            storage: place.storage,
            start: Svma(0),
            end: Svma(u64::MAX),
            resident: None,
        };
        if let Some(debug) = &mut self.debug {
            let known = debug.variable_in(place);
            (range.start, range.end) = (known.start, known.end);
            range.resident = known.variable.map(Resident::Variable);
            if range.resident.is_some() {
                return range;
            }
        }
        let symbols = &self.code.image.data;
        let gap = symbols.gap_around(place);
        range.narrow(gap);
        if let Some(symbol) = symbols.at(place).cloned() {
            range.resident = self.symbol(&symbol);
        }
        if range.resident.is_none() && place.storage == Storage::Static {
            self.made(place.at, &mut range);
        }
        // Symbols and sections of damaged files contradict each other.
        if !(range.start..range.end).contains(&place.at) {
            (range.start, range.end) = (place.at, Svma(place.at.0.saturating_add(1)));
        }
        range
    }

    fn symbol(&mut self, symbol: &DataSymbol) -> Option<Resident> {
        let start = symbol.start.at;
        if let Some(debug) = &mut self.debug
            && let Some(copied) = self.code.linkage().copied.get(&start)
            && let Some(variable) = debug
                .declared_variable(start, &symbol.name)
                .or_else(|| debug.declared_variable(start, copied))
            && variable.layout.size != 0
        {
            return Some(Resident::Variable(variable));
        }
        let (object, is_made) = match SymbolName::of(&symbol.name) {
            SymbolName::Variable(name) => {
                (DataObject::untyped_variable(&name, symbol.len_bytes), false)
            }
            SymbolName::Made(made) => (DataObject::made(&made, None, symbol.len_bytes), true),
            SymbolName::Nameless => return None,
        };
        Some(Resident::Untyped(Arc::new(UntypedObject { start, object, is_made })))
    }

    /// Enters what the compiler or the linker put there, which has no name in the program: a slot, a string
    /// literal, a constant or table of a section that cannot be written to.
    fn made(&self, at: Svma, range: &mut DataRange) {
        let Some(section) = self.code.image.loaded_section(at) else { return };
        range.narrow((section.start, section.start.plus(section.file_bytes)));
        let is_slot = section.name.starts_with(".got");
        let (start, object) = if is_slot {
            let Some(into) = at.offset_from(section.start) else { return };
            let start = section.start.plus(into - into % SLOT_BYTES);
            range.narrow((start, start.plus(SLOT_BYTES)));
            (start, self.slot(at))
        } else if section.is_writable && section.name != RELOCATED_CONSTANTS {
            // A variable of the program, whose name is not known.
            return;
        } else {
            let text = self.text(at, section, range).filter(|_| !section.is_writable);
            if let Some(text) = &text {
                range.narrow((text.start, text.end));
            }
            match text {
                Some(Text { is_literal: true, start, .. }) => {
                    (start, DataObject::made("string_literal", Some("-"), 0))
                }
                _ => (section.start, of_section(section)),
            }
        };
        let untyped = UntypedObject { start, object, is_made: is_slot };
        range.resident = Some(Resident::Untyped(Arc::new(untyped)));
    }

    /// A slot of the global offset table (psABI 5.2).
    fn slot(&self, at: Svma) -> DataObject {
        use crate::elf::linkage::ThreadTarget;
        let symbol = match self.code.linkage().at(at) {
            Some(
                LinkageSlot::Address(symbol)
                | LinkageSlot::ThreadDistance(ThreadTarget::Other(symbol))
                | LinkageSlot::ThreadIndex(ThreadTarget::Other(symbol)),
            ) => symbol_name::variable_name(symbol),
            _ => "-".to_owned(),
        };
        DataObject::made("GOT", Some(&symbol), SLOT_BYTES)
    }

    /// Finds what the bytes around `at` read as. Linkers put literals, constants and jump tables into one
    /// section: what does not read as text is not taken for a literal. `None` where the section is not the
    /// program's, or its bytes are not there.
    fn text(&self, at: Svma, section: &Section, range: &DataRange) -> Option<Text> {
        if !section.is_of_program {
            return None;
        }
        let from = range.start.0.max(at.0.saturating_sub(limit::MAX_LITERAL_BYTES));
        let to = range.end.0.min(at.0.saturating_add(limit::MAX_LITERAL_BYTES));
        let n_bytes = usize::try_from(to.checked_sub(from)?).ok()?;
        let bytes = self.code.bytes_at(Svma(from), n_bytes)?;
        let into = usize::try_from(at.0.checked_sub(from)?).ok()?;
        let address = |into: usize| Svma(from.saturating_add(into as u64));
        let is_end = |byte: &u8| *byte == 0;
        // The same end holds from behind the one before.
        let first = bytes.get(..into)?.iter().rposition(is_end).map_or(0, |end| end + 1);
        let not = |first, behind| {
            Some(Text { start: address(first), end: address(behind), is_literal: false })
        };
        let Some(end) = bytes.get(into..)?.iter().position(is_end) else {
            // What is further on may end behind what was read.
            return not(first, if to == range.end.0 { bytes.len() } else { into + 1 });
        };
        let end = into + end;
        let is_text = |byte: &u8| {
            byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x1b | 0x80..)
        };
        let start = bytes[..end].iter().rposition(|byte| !is_text(byte)).map_or(0, |it| it + 1);
        if start > into {
            return not(first, start);
        }
        let text = std::str::from_utf8(&bytes[start..end]);
        let is_literal = text.is_ok_and(|text| section.is_strings || reads_as_text(text));
        Some(Text { start: address(start), end: address(end + 1), is_literal })
    }
}

/// Bytes that end together, and whether they read as a literal.
#[derive(Clone, Copy, Debug)]
struct Text {
    start: Svma,
    end: Svma,
    is_literal: bool,
}

/// The object that stands for all of a section that the program does not write to, where nothing in it has a name.
pub(crate) fn of_section(section: &Section) -> DataObject {
    DataObject::made(&section.name, Some("-"), section.file_bytes)
}

fn reads_as_text(text: &str) -> bool {
    let n_letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
    text.len() >= MIN_LITERAL_BYTES && n_letters * 2 >= text.len()
}

/// Constants with pointers in them, which nobody writes to but the loader (`-z relro`).
const RELOCATED_CONSTANTS: &str = ".data.rel.ro";

/// Slots hold one pointer each.
const SLOT_BYTES: u64 = 8;

/// Shorter text may be part of a number.
const MIN_LITERAL_BYTES: usize = 4;

impl DataRange {
    fn narrow(&mut self, (start, end): (Svma, Svma)) {
        self.start = self.start.max(start);
        self.end = self.end.min(end);
    }
}
