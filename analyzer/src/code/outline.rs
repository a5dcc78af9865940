//! Outline of the function around an address: its parts, and the places where it is entered, by symbols, frame
//! descriptions, debug information and the jumps between functions.

use crate::code::crossing::Crossings;
use crate::code::image::CodeImage;
use crate::dwarf::code::frame::FrameTable;
use crate::dwarf::code::landing_pad;
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::reader::Reader;
use crate::known::compiler::COLD;
use crate::limit;
use crate::x86_64::image_bytes::ImageBytes;
use crate::x86_64::outline::{CodePart, Outline};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;

/// A piece of code that is decoded as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: Svma,
    pub(crate) end: Svma,
    /// True if it is entered at its start.
    is_entered: bool,
    /// True if it may be several functions: nothing but the line table tells its bounds.
    is_coarse: bool,
}

impl Extent {
    fn new((start, end): (Svma, Svma)) -> Self {
        Self { start, end, is_entered: true, is_coarse: false }
    }

    fn holds(&self, svma: Svma) -> bool {
        (self.start..self.end).contains(&svma)
    }
}

/// Sources that tell where functions are.
pub(crate) struct Evidence<'a> {
    pub(crate) code: &'a CodeImage,
    pub(crate) frames: &'a FrameTable,
    pub(crate) debug: Option<&'a mut DebugInfo>,
}

impl Evidence<'_> {
    /// The piece of code around `svma`.
    pub(crate) fn extent(&mut self, svma: Svma) -> Option<Extent> {
        if let Some(stub) = self.linkage_stub(svma) {
            return Some(stub);
        }
        let frame = self.frames.function_range(svma);
        let symbol = self.code.image.function_at(svma);
        // A symbol can span several descriptions (hand-written code) and a description several
        // symbols: the one that begins last is the nearest known start of an instruction stream;
        // both ends are ends.
        let named = symbol.map(|symbol| (symbol.start, symbol.start.plus(symbol.len_bytes)));
        let range = match (named, frame) {
            (Some(named), Some(frame)) => Some((named.0.max(frame.0), named.1.min(frame.1))),
            (named, frame) => named.or(frame),
        };
        if let Some(range) = range {
            let is_moved = symbol.is_some_and(|symbol| symbol.name.contains(COLD));
            return Some(Extent { is_entered: !is_moved, ..Extent::new(range) });
        }
        self.unsized_symbol(svma).or_else(|| self.debug_extent(svma))
    }

    /// A stub of the procedure linkage table (psABI 5.2): one description spans them all.
    fn linkage_stub(&self, svma: Svma) -> Option<Extent> {
        let section = self.code.image.code_section(svma)?;
        let entry_bytes = section.entry_bytes.max(8);
        if !section.name.starts_with(".plt") {
            return None;
        }
        let into = svma.offset_from(section.start)?;
        let start = section.start.plus(into - into % entry_bytes);
        let end = start.plus(entry_bytes).min(section.start.plus(section.file_bytes));
        Some(Extent::new((start, end)))
    }

    /// From a symbol that does not tell its length to the next one, or the end of the section.
    fn unsized_symbol(&self, svma: Svma) -> Option<Extent> {
        let section = self.code.image.code_section(svma)?;
        let (symbol, next) = self.code.image.starts_around(svma);
        let symbol = symbol.filter(|symbol| symbol.len_bytes == 0)?;
        let end = section.start.plus(section.file_bytes);
        let next = next.map_or(end, |next| next.min(end));
        (symbol.start >= section.start).then(|| Extent::new((symbol.start, next)))
    }

    /// By debug information: a function's entry, else a sequence of lines.
    fn debug_extent(&mut self, svma: Svma) -> Option<Extent> {
        let debug = self.debug.as_mut()?;
        if let Some(range) = debug.function_range_at(svma) {
            return Some(Extent::new(range));
        }
        let unit = debug.unit_of_code(svma)?;
        let unit = debug.unit(unit)?;
        Some(Extent { is_coarse: true, ..Extent::new(unit.line_sequence_at(svma)?) })
    }

    /// All that is known of the function around `first` before its code is looked at.
    pub(crate) fn outline(&mut self, first: Extent) -> Result<Outline, Reason> {
        let (code, frames) = (self.code, self.frames);
        let crossings = code.crossings(frames.starts());
        let (extents, is_cut) = self.pieces(first, crossings);
        let mut outline =
            Outline { has_more_ways_in: is_cut || crossings.is_none(), ..Outline::default() };
        let mut n_bytes_left = limit::MAX_FUNCTION_BYTES;
        for extent in &extents {
            let n_bytes = extent.end.offset_from(extent.start).ok_or(Reason::Unverifiable)?;
            n_bytes_left = n_bytes_left.checked_sub(n_bytes).ok_or(Reason::OverBudget)?;
            let n = usize::try_from(n_bytes).map_err(|_| Reason::OverBudget)?;
            let bytes = code.bytes_at(extent.start, n).ok_or(Reason::ObjectMissing)?;
            let Extent { start, is_entered, is_coarse, .. } = *extent;
            outline.has_more_ways_in |= is_coarse;
            outline.parts.push(CodePart { start, code: bytes, is_entered });
            self.add_ways_in(extent, &mut outline);
            let Some(crossings) = crossings else { continue };
            let called = crossings.called(extent.start, extent.end);
            outline.entries.extend(called.iter().map(|target| Svma(*target)));
            let into = crossings.leading_into(extent.start, extent.end).iter();
            let from_elsewhere =
                into.filter(|(_, from)| !extents.iter().any(|extent| extent.holds(Svma(*from))));
            outline.jumped_to.extend(from_elsewhere.map(|(target, _)| Svma(*target)));
        }
        Ok(outline)
    }

    /// Adds the ways into one piece that symbols, relocations and the tables of the unwinder tell.
    fn add_ways_in(&self, extent: &Extent, outline: &mut Outline) {
        let functions = &self.code.image.functions;
        let next = functions.partition_point(|function| function.start <= extent.start);
        let inside = functions[next..].iter().take_while(|function| function.start < extent.end);
        let entered = inside.filter(|function| !function.name.contains(COLD));
        outline.entries.extend(entered.map(|function| function.start));
        let labels = self.code.pointers().inside(extent.start, extent.end);
        outline.labels.extend(labels.iter().map(|label| Svma(*label)));
        match self.landing_pads(extent.start) {
            Some(landing_pads) => outline.landing_pads.extend(landing_pads.into_iter().map(Svma)),
            None => outline.has_more_ways_in = true,
        }
    }

    /// The landing pads of the function at `svma`; `None` where they cannot be read.
    fn landing_pads(&self, svma: Svma) -> Option<Vec<u64>> {
        const HEAD_BYTES: usize = 64;
        let Some((function, area)) = self.frames.language_data_at(svma) else {
            return Some(Vec::new());
        };
        let read = |n_bytes: usize| {
            let bytes = self.code.bytes_at(area, n_bytes)?;
            Some(Reader::of_bytes(bytes.into()))
        };
        let n_bytes = landing_pad::n_bytes(read(HEAD_BYTES)?)?;
        if n_bytes > limit::MAX_CALL_SITE_BYTES {
            return None;
        }
        landing_pad::landing_pads(read(usize::try_from(n_bytes).ok()?)?, area.0, function.0)
    }

    /// The pieces that jumps or names say are of one function, and whether there are more.
    fn pieces(&mut self, first: Extent, crossings: Option<&Crossings>) -> (Vec<Extent>, bool) {
        let mut extents = vec![first];
        let mut at = 0;
        while let Some(extent) = extents.get(at).copied() {
            at += 1;
            for linked in self.linked(extent, crossings) {
                if extents.iter().any(|extent| extent.holds(linked)) {
                    continue;
                }
                if extents.len() >= limit::MAX_FUNCTION_PARTS {
                    return (extents, true);
                }
                let found = self.extent(linked).and_then(|found| apart(found, linked, &extents));
                extents.extend(found);
            }
        }
        (extents, false)
    }

    /// Addresses in other pieces of the function that `extent` is of.
    fn linked(&self, extent: Extent, crossings: Option<&Crossings>) -> Vec<Svma> {
        let Some(crossings) = crossings else {
            return self.code.image.other_parts(extent.start).map(|part| part.start).collect();
        };
        let into = crossings.leading_into(extent.start, extent.end).iter();
        let from = crossings.leaving(extent.start, extent.end).iter();
        let mut linked: Vec<Svma> = into.chain(from).map(|(_, other)| Svma(*other)).collect();
        linked.sort_unstable();
        linked.dedup();
        linked
    }
}

/// Returns the part of `found` around `svma` that is in none of the others: symbols can overlap.
fn apart(mut found: Extent, svma: Svma, others: &[Extent]) -> Option<Extent> {
    for other in others {
        if other.start > svma {
            found.end = found.end.min(other.start);
        } else if other.end > found.start {
            found.start = other.end;
            found.is_entered = false;
        }
    }
    (found.start < found.end).then_some(found)
}
