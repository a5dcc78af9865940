//! Listing of one function: its instructions as text, each with its lines and with what its operands are to.

use crate::code::outline::Evidence;
use crate::dwarf::code::line::SourceLine;
use crate::dwarf::code::listed_line::ListedLine;
use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::LinkageSlot;
use crate::elf::symbol_name::variable_name;
use crate::index::load_object::LoadObjectIndex;
use crate::index::site::{TypeAnswer, TypedAccess};
use crate::limit;
use crate::types::data_object::{self, DataObject};
use crate::types::descriptor::Spelling;
use crate::types::similar_name::similar;
use crate::x86_64::access::{MemoryAccess, Role};
pub use crate::x86_64::disassembly::AssemblySyntax;
use crate::x86_64::disassembly::{InstructionText, disassemble};
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use std::ops::Range;
use std::sync::Arc;

/// The code of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeListing {
    /// Its name: in the debug information, else its symbol without mangling.
    pub name: Option<Arc<str>>,
    /// Its symbol, as in the table.
    pub symbol: Option<Arc<str>>,
    /// Addresses of its parts in the file: the first holds the address that was asked for.
    pub parts: Vec<Range<u64>>,
    /// Instructions of all parts, in the order of their addresses.
    pub instructions: Vec<ListedInstruction>,
    /// True where there is more than a listing holds.
    pub is_cut: bool,
}

/// An instruction of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInstruction {
    /// Its address in the file.
    pub at: Svma,
    /// Its bytes.
    pub bytes: Box<[u8]>,
    /// Its text.
    pub text: Box<str>,
    /// The address that it jumps to, calls or refers to, where that is written out, and what is there.
    pub refers_to: Option<(Svma, Option<Arc<str>>)>,
    /// Its line, then those of the calls in line around it, outwards; empty where none is named.
    pub lines: Arc<[SourceLine]>,
    /// True where the compiler says that a statement begins here.
    pub is_statement: bool,
    /// True where the line table says that it is of no line.
    pub is_of_no_line: bool,
    /// The column in its line, from 1 on; 0 where the compiler tells none.
    pub column: u16,
    /// The memory that it touches.
    pub operands: Vec<ListedOperand>,
}

/// An operand in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOperand {
    /// Reads, writes or both.
    pub access: Access,
    /// Bytes; 0 where it is not fixed.
    pub size: u32,
    /// True for one that is written out: the others are slots of the stack, and strings.
    pub is_written_out: bool,
    /// The data object that instruction and debug information say it is to, or the reason that they do not.
    pub object: Result<ListedObject, Reason>,
}

/// A data object as it is spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its descriptor.
    pub descriptor: Arc<str>,
    /// The same as a programmer writes it.
    pub name: Arc<str>,
}

impl ListedObject {
    fn of(object: &DataObject) -> Self {
        let Spelling { descriptor, name, .. } = Spelling::of(object);
        Self { descriptor, name }
    }
}

/// Functions of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namesakes {
    /// Names and first addresses of those that have it.
    pub found: Vec<(Arc<str>, Svma)>,
    /// Names that are spelled like it.
    pub similar: Vec<Arc<str>>,
}

impl LoadObjectIndex {
    /// The listing of the function around `at`.
    ///
    /// # Errors
    /// `unverifiable` where nothing tells the function's bounds, `object_missing` where its bytes are not there.
    pub(crate) fn listing(
        &mut self,
        at: Svma,
        syntax: AssemblySyntax,
    ) -> Result<CodeListing, Reason> {
        let parts = self.parts(at)?;
        let mut listing = CodeListing { parts, ..CodeListing::default() };
        self.name(at, &mut listing);
        let mut texts = Vec::new();
        let mut n_bytes_left = limit::MAX_LISTED_BYTES;
        let mut in_order = listing.parts.clone();
        in_order.sort_by_key(|part| part.start);
        for part in in_order {
            let n_bytes = part.end.saturating_sub(part.start).min(n_bytes_left);
            n_bytes_left -= n_bytes;
            listing.is_cut |= n_bytes < part.end.saturating_sub(part.start);
            let wanted = usize::try_from(n_bytes).map_err(|_| Reason::OverBudget)?;
            let start = Svma(part.start);
            let bytes = self.code.bytes_at(start, wanted).ok_or(Reason::ObjectMissing)?;
            let max = limit::MAX_LISTED_INSTRUCTIONS - texts.len();
            let found = disassemble(start, &bytes, syntax, max);
            let n_decoded: usize = found.iter().map(|it| it.n_bytes).sum();
            listing.is_cut |= n_decoded < bytes.len();
            texts.extend(found.into_iter().map(|text| {
                let from = text.at.0.saturating_sub(part.start) as usize;
                let until = bytes.len().min(from + text.n_bytes);
                (bytes.get(from..until).unwrap_or_default().into(), text)
            }));
        }
        let addresses: Vec<Svma> = texts.iter().map(|(_, text)| text.at).collect();
        let lines = self.debug.as_mut().map(|debug| debug.listed_lines(&addresses));
        let mut lines = lines.unwrap_or_default().into_iter();
        let mut n_operands_left = limit::MAX_LISTED_OPERANDS;
        for (bytes, text) in texts {
            let line = lines.next().unwrap_or_default();
            let listed = self.listed(bytes, text, line, &mut n_operands_left);
            listing.instructions.push(listed);
        }
        Ok(listing)
    }

    /// The parts of the function around `at`, that part first.
    fn parts(&mut self, at: Svma) -> Result<Vec<Range<u64>>, Reason> {
        let debug = self.debug.as_mut();
        let mut evidence = Evidence { code: &self.code, frames: &self.frames, debug };
        let extent = evidence.extent(at).ok_or(Reason::Unverifiable)?;
        let whole = |start: Svma, n_bytes: u64| start.0..start.0.saturating_add(n_bytes);
        // Of one that is too large only the part that was asked for is told.
        let Ok(outline) = evidence.outline(extent) else {
            let n_bytes = extent.end.0.saturating_sub(extent.start.0);
            return Ok(vec![whole(extent.start, n_bytes)]);
        };
        Ok(outline.parts.iter().map(|part| whole(part.start, part.code.len() as u64)).collect())
    }

    fn name(&mut self, at: Svma, listing: &mut CodeListing) {
        let symbol = self.code.image.function_at(at).map(|symbol| Arc::clone(&symbol.name));
        let stub = symbol.is_none().then(|| self.stub_name(at)).flatten();
        let described = self.debug.as_mut().and_then(|debug| debug.function_scope_at(at));
        let described = described.and_then(|scope| scope.function_name);
        let plain = symbol.as_ref().map(|symbol| Arc::from(variable_name(symbol)));
        listing.name = described.or(plain).or(stub);
        listing.symbol = symbol;
    }

    fn listed(
        &mut self,
        bytes: Box<[u8]>,
        text: InstructionText,
        line: ListedLine,
        n_operands_left: &mut usize,
    ) -> ListedInstruction {
        let referred = text.target.or(text.refers_to);
        let refers_to = referred.map(|to| (to, self.place_name(to, text.target.is_some())));
        let plain: Vec<(Access, u32, Role)> =
            text.memory.iter().map(|it| (it.access, it.size, it.role)).collect();
        let typed = match plain.len() {
            0 => Vec::new(),
            n if n <= *n_operands_left => {
                *n_operands_left -= n;
                self.typed(text.at, &text.memory)
            }
            _ => Vec::new(),
        };
        let mut typed = typed.iter();
        let operand = |(access, size, role): (Access, u32, Role)| ListedOperand {
            access,
            size,
            is_written_out: role == Role::Operand,
            object: typed.next().map_or(Err(Reason::OverBudget), object),
        };
        ListedInstruction {
            at: text.at,
            bytes,
            text: text.text.into(),
            refers_to,
            lines: line.lines.into(),
            is_statement: line.is_statement,
            is_of_no_line: line.is_of_no_line,
            column: line.column,
            operands: plain.into_iter().map(operand).collect(),
        }
    }

    /// All that instruction and debug information say of the operands of the instruction at `at`, as far as they say it
    /// within some turns.
    fn typed(&mut self, at: Svma, memory: &[MemoryAccess]) -> Vec<TypedAccess> {
        for _ in 0..limit::MAX_OPERAND_TURNS {
            if !self.is_ready() {
                continue;
            }
            let typed = self.trigger((at, memory.to_vec())).accesses;
            if !self.is_unfinished() {
                return typed;
            }
        }
        Vec::new()
    }

    /// The name of what is at an address: a function or variable, and the bytes from where it begins.
    fn place_name(&mut self, at: Svma, is_code: bool) -> Option<Arc<str>> {
        let image = &self.code.image;
        let (name, into) = if is_code {
            match image.function_at(at) {
                Some(symbol) => (&symbol.name, at.offset_from(symbol.start)?),
                None => return self.stub_name(at),
            }
        } else {
            let symbol = image.data.at(DataPlace::fixed(at))?;
            (&symbol.name, at.offset_from(symbol.start.at)?)
        };
        let name = variable_name(name);
        Some(if into == 0 { name.into() } else { format!("{name}+{into:#x}").into() })
    }

    /// The name of a stub of the linkage table.
    fn stub_name(&self, at: Svma) -> Option<Arc<str>> {
        let section = self.code.image.code_section(at)?;
        if !section.name.starts_with(".plt") {
            return None;
        }
        match self.code.linkage_stub(at)? {
            LinkageSlot::Address(name) => Some(format!("{}@plt", variable_name(name)).into()),
            _ => None,
        }
    }

    /// The functions whose symbol is `name`, mangled or not, or whose name ends with it.
    pub(crate) fn functions_named(&self, name: &str) -> Namesakes {
        let symbols = self.code.image.functions.iter().take(limit::MAX_SEARCHED_SYMBOLS);
        let mut found: Vec<(Arc<str>, Svma)> = Vec::new();
        let mut names = Vec::new();
        for symbol in symbols {
            let plain = variable_name(&symbol.name);
            if &*symbol.name == name || is_name_of(name, &plain) {
                if found.len() < limit::MAX_NAMESAKES {
                    found.push((plain.into(), symbol.start));
                }
            } else {
                names.push(plain);
            }
        }
        // Several symbols of one address are one function.
        found.dedup_by_key(|(_, start)| *start);
        let similar = match found.is_empty() {
            true => similar(name, names.iter().map(String::as_str)),
            false => Vec::new(),
        };
        Namesakes { found, similar: similar.into_iter().map(Arc::from).collect() }
    }
}

/// Tells whether `name` is that of a function, with or without what is around it: `walk` and `list::walk` are of
/// `shop::list::walk`.
#[must_use]
pub fn is_name_of(name: &str, function: &str) -> bool {
    let ends = |function: &str| {
        let before = function.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
    };
    !name.is_empty() && (ends(function) || ends(without_arguments(function)))
}

/// A name without the arguments of its template, where it ends with them: `sort` of `sort<int>`.
fn without_arguments(name: &str) -> &str {
    if !name.ends_with('>') {
        return name;
    }
    let mut depth = 0_usize;
    for (at, sign) in name.char_indices().rev() {
        match sign {
            '>' => depth += 1,
            '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return name.get(..at).unwrap_or(name);
        }
    }
    name
}

/// The object that the type path names for an access, whatever is in the registers.
fn object(typed: &TypedAccess) -> Result<ListedObject, Reason> {
    match &typed.answer {
        TypeAnswer::Unknown(reason) => Err(*reason),
        TypeAnswer::Object(placed) => Ok(ListedObject::of(&placed.object)),
        TypeAnswer::Indexed(indexed) => {
            let (offset, size) = indexed.any_part.ok_or(Reason::RegisterLoss)?;
            let (layout, root) = (&indexed.layout, indexed.root.borrow());
            let named = data_object::name_as(layout, root, offset, size, typed.memory.kind);
            let (object, _) = named.ok_or(Reason::Unidentified)?;
            Ok(ListedObject::of(&object))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_a_function_also_without_what_is_around_it() {
        let check = |name: &str, function: &str, expect: bool| {
            assert_eq!(is_name_of(name, function), expect, "{name} of {function}");
        };
        check("walk", "walk", true);
        check("walk", "shop::list::walk", true);
        check("list::walk", "shop::list::walk", true);
        check("alk", "shop::list::walk", false);
        check("walk", "shop::walkers", false);
        check("", "walk", false);
        check("sort", "std::sort<std::vector<int>::iterator>", true);
        check("operator->", "ptr<int>::operator->", true);
        check("sort", "sorted<int>", false);
    }
}
