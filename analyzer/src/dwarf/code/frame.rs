//! Call frame information: where a function's frame is, and where functions begin and end.

use crate::dwarf::unit::reader::Reader;
use crate::dwarf::unit::section::SectionFile;
use crate::dwarf::variable::location::Base;
use crate::elf::image::ElfImage;
use crate::limit;
use crate::x86_64::abi::{FRAME_POINTER, RETURN_ADDRESS, RETURN_ADDRESS_BYTES, STACK_POINTER};
use dataspace_proto::address::Svma;
use gimli::{Reader as _, UnwindSection};
use std::collections::BTreeMap;

/// The canonical frame address as a register plus an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CfaRule {
    /// The register, by its DWARF number.
    pub register: u16,
    /// Distance from the register's value up to the CFA.
    pub offset: i64,
}

/// The frame at one instruction, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameRule {
    /// The CFA is a register plus an offset.
    Known(CfaRule),
    /// It takes an expression to compute: the frame was aligned.
    Expression,
    /// No description covers the instruction.
    #[default]
    Unknown,
}

impl FrameRule {
    /// The register and offset, where they are known.
    #[must_use]
    pub const fn cfa(self) -> Option<CfaRule> {
        match self {
            Self::Known(rule) => Some(rule),
            Self::Expression | Self::Unknown => None,
        }
    }

    fn of(rule: &gimli::CfaRule<usize>) -> Self {
        match rule {
            gimli::CfaRule::RegisterAndOffset { register, offset } => {
                Self::Known(CfaRule { register: register.0, offset: *offset })
            }
            gimli::CfaRule::Expression(_) => Self::Expression,
        }
    }
}

/// The way from a frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameStep {
    /// Rule for the frame's address. The return address is in the 8 bytes below (psABI, figure 3.3).
    pub cfa: CfaRule,
    /// The place of the caller's frame pointer.
    pub frame_pointer: SavedRegister,
}

/// The place of the caller's value of a register that calls keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedRegister {
    /// Still in it.
    Kept,
    /// So far from the CFA.
    At(i64),
    /// Not known.
    Lost,
}

impl FrameStep {
    fn of(row: &gimli::UnwindTableRow<usize>) -> Option<Self> {
        let cfa = FrameRule::of(row.cfa()).cfa()?;
        let is_returned_to = matches!(
            row.register(gimli::Register(RETURN_ADDRESS)),
            Some(gimli::RegisterRule::Offset(offset)) if offset == -i64::from(RETURN_ADDRESS_BYTES)
        );
        let frame_pointer = match row.register(gimli::Register(FRAME_POINTER)) {
            None | Some(gimli::RegisterRule::SameValue) => SavedRegister::Kept,
            Some(gimli::RegisterRule::Offset(offset)) => SavedRegister::At(offset),
            Some(_) => SavedRegister::Lost,
        };
        is_returned_to.then_some(Self { cfa, frame_pointer })
    }
}

/// The frame in a stretch of code.
pub(crate) type FrameRow = (std::ops::Range<u64>, FrameRule);

impl CfaRule {
    /// A displacement from `base` as one from a register.
    #[must_use]
    pub fn rebase(rule: Option<Self>, base: Base, offset: i64) -> Option<(u16, i64)> {
        match base {
            Base::Register(register) => Some((register, offset)),
            Base::Cfa => rule.map(|rule| (rule.register, rule.offset.wrapping_add(offset))),
        }
    }
}

/// `.eh_frame` and `.debug_frame` of one load object, indexed by address.
#[derive(Debug, Default)]
pub struct FrameTable {
    eh: Option<Indexed<gimli::EhFrame<Reader>>>,
    debug: Option<Indexed<gimli::DebugFrame<Reader>>>,
}

#[derive(Debug)]
struct Indexed<S> {
    section: S,
    bases: gimli::BaseAddresses,
    /// First address, end and offset of the description, by first address.
    descriptions: Vec<(u64, u64, usize)>,
}

impl FrameTable {
    /// Indexes the frame descriptions of `file`. `debug` holds `.debug_frame` where it is apart.
    #[must_use]
    pub(crate) fn load(
        image: &ElfImage,
        file: &SectionFile,
        debug: Option<(&ElfImage, &SectionFile)>,
    ) -> Self {
        let address = |name: &str| image.section(name).map_or(0, |section| section.start.0);
        let bases = gimli::BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let read = |image: &ElfImage, file: &SectionFile, name: &str| {
            let bytes = file.section(image, image.debug_section(name)?).ok()?;
            (!bytes.is_empty()).then_some(bytes)
        };
        let eh = read(image, file, ".eh_frame").map(|bytes| {
            let mut section = gimli::EhFrame::from(bytes);
            section.set_address_size(8);
            Indexed::new(section, bases.clone())
        });
        let debug_frame = read(image, file, ".debug_frame")
            .or_else(|| debug.and_then(|(image, file)| read(image, file, ".debug_frame")));
        let debug = debug_frame.map(|bytes| {
            let mut section = gimli::DebugFrame::from(bytes);
            section.set_address_size(8);
            Indexed::new(section, bases)
        });
        Self { eh, debug }
    }

    /// The code range of the description that holds `svma`.
    #[must_use]
    pub fn function_range(&self, svma: Svma) -> Option<(Svma, Svma)> {
        let eh = self.eh.as_ref().and_then(|table| table.find(svma));
        let found = eh.or_else(|| self.debug.as_ref().and_then(|table| table.find(svma)));
        found.map(|(start, end, _)| (Svma(start), Svma(end)))
    }

    /// Addresses at which the described functions begin.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        let eh = self.eh.iter().flat_map(|table| &table.descriptions);
        let debug = self.debug.iter().flat_map(|table| &table.descriptions);
        eh.chain(debug).map(|(start, ..)| *start)
    }

    /// The first described address and the language-specific data area of the function at `svma`,
    /// if it has one.
    #[must_use]
    pub fn language_data_at(&self, svma: Svma) -> Option<(Svma, Svma)> {
        self.eh.as_ref().and_then(|table| table.language_data_at(svma))
    }

    /// The rule for the CFA at `svma`, where a register and an offset say it.
    #[must_use]
    pub fn cfa_at(&self, svma: Svma) -> Option<CfaRule> {
        let rows = self.rows_around(svma);
        rows.iter().find(|(range, _)| range.contains(&svma.0))?.1.cfa()
    }

    /// Distance of the stack pointer at `svma` from its place in most of the function: where arguments are pushed,
    /// LLVM goes on saying where variables were from it before. `None` where that is not known.
    pub(crate) fn pushed_at(&self, svma: Svma) -> Option<i64> {
        let rows = self.rows_around(svma);
        let by_stack_pointer = rows.iter().filter_map(|(code, rule)| {
            let cfa = rule.cfa().filter(|cfa| cfa.register == STACK_POINTER)?;
            Some((code, cfa.offset))
        });
        let mut lengths: BTreeMap<i64, u64> = BTreeMap::new();
        let mut here = None;
        for (code, offset) in by_stack_pointer {
            *lengths.entry(offset).or_default() += code.end.saturating_sub(code.start);
            if code.contains(&svma.0) {
                here = Some(offset);
            }
        }
        let (most, _) = lengths.into_iter().max_by_key(|(_, n_bytes)| *n_bytes)?;
        here?.checked_sub(most)
    }

    /// The step from the frame at `svma` to its caller's, where registers and offsets say it and a
    /// call made the frame.
    #[must_use]
    pub fn step_at(&self, svma: Svma) -> Option<FrameStep> {
        let eh = self.eh.as_ref().and_then(|table| table.step_at(svma));
        eh.or_else(|| self.debug.as_ref().and_then(|table| table.step_at(svma)))
    }

    /// All rows of the description that holds `svma`.
    pub(crate) fn rows_around(&self, svma: Svma) -> Vec<FrameRow> {
        let eh = self.eh.as_ref().and_then(|table| table.rows_around(svma));
        let debug = || self.debug.as_ref().and_then(|table| table.rows_around(svma));
        eh.or_else(debug).unwrap_or_default()
    }
}

impl<S> Indexed<S>
where
    S: UnwindSection<Reader>,
    S::Offset: gimli::UnwindOffset<usize> + From<usize>,
{
    fn new(section: S, bases: gimli::BaseAddresses) -> Self {
        let mut descriptions = Vec::new();
        let mut entries = section.entries(&bases);
        // Damage ends the walk; the descriptions before it stay.
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) =
                partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))
            else {
                continue;
            };
            if descriptions.len() >= limit::MAX_FRAME_DESCRIPTIONS {
                break;
            }
            if fde.initial_address() != 0 && fde.len() != 0 {
                descriptions.push((fde.initial_address(), fde.end_address(), fde.offset()));
            }
        }
        descriptions.sort_unstable();
        Self { section, bases, descriptions }
    }

    fn find(&self, svma: Svma) -> Option<(u64, u64, usize)> {
        let end = self.descriptions.partition_point(|(start, ..)| *start <= svma.0);
        let found = *self.descriptions[..end].last()?;
        (svma.0 < found.1).then_some(found)
    }

    fn description(&self, svma: Svma) -> Option<gimli::FrameDescriptionEntry<Reader>> {
        let (.., offset) = self.find(svma)?;
        let get_cie = S::cie_from_offset;
        self.section.fde_from_offset(&self.bases, offset.into(), get_cie).ok()
    }

    fn language_data_at(&self, svma: Svma) -> Option<(Svma, Svma)> {
        let fde = self.description(svma)?;
        let address = fde.lsda()?.direct().ok()?;
        Some((Svma(fde.initial_address()), Svma(address)))
    }

    fn rows_around(&self, svma: Svma) -> Option<Vec<FrameRow>> {
        let fde = self.description(svma)?;
        let mut context = gimli::UnwindContext::new();
        let mut table = fde.rows(&self.section, &self.bases, &mut context).ok()?;
        let mut rows = Vec::new();
        while let Ok(Some(row)) = table.next_row() {
            if rows.len() >= limit::MAX_FRAME_ROWS {
                break;
            }
            rows.push((row.start_address()..row.end_address(), FrameRule::of(row.cfa())));
        }
        Some(rows)
    }

    fn step_at(&self, svma: Svma) -> Option<FrameStep> {
        let fde = self.description(svma)?;
        if fde.is_signal_trampoline() {
            return None;
        }
        let mut context = gimli::UnwindContext::new();
        let mut table = fde.rows(&self.section, &self.bases, &mut context).ok()?;
        for _ in 0..limit::MAX_FRAME_ROWS {
            let row = table.next_row().ok()??;
            if row.contains(svma.0) {
                return FrameStep::of(row);
            }
        }
        None
    }
}
