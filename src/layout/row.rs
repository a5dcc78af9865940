//! The rows of a layout: members, holes, padding and borders of cache lines, in the order in which they are shown.

use super::figure::{LayoutFigures, MemberFigures};
use super::spelling::source_text;
use dataspace_analyzer::types::gap::{Gap, GapKind, gaps};
use dataspace_analyzer::types::type_layout::{LayoutMember, TypeLayout};
use dataspace_proto::object_detail::CACHE_LINE_BYTES;
use dataspace_proto::snapshot::BitPlace;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// Layout as rows.
#[derive(Clone, Debug)]
pub(crate) struct LayoutRows {
    /// From the first byte to the last.
    pub(crate) rows: Vec<LayoutRow>,
    /// Sums over all of it.
    pub(crate) summary: LayoutSummary,
    /// The place in its line at which most instances that were measured begin: borders are drawn for it, or else as if
    /// the aggregate began a line.
    pub(crate) measured_alignment: Option<u64>,
    /// Samples of the whole.
    pub(crate) samples: u64,
    /// Rows have figures.
    pub(crate) is_measured: bool,
    /// Samples stand for time.
    pub(crate) is_timed: bool,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) enum LayoutRow {
    /// A cache line begins.
    Line(LineRow),
    /// A member, a part of one, or a gap.
    Part(PartRow),
}

/// Beginning of a cache line.
#[derive(Clone, Debug)]
pub(crate) struct LineRow {
    /// Its number, from 0.
    pub(crate) line: u64,
    /// The byte of the aggregate with which it begins; of the first line 0.
    pub(crate) offset: u64,
    /// Sums over what begins in it; `None` where nothing was measured.
    pub(crate) figures: Option<MemberFigures>,
}

/// Kinds of rows that are parts of the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartKind {
    /// A member of the aggregate.
    Member,
    /// A member of a member.
    Part,
    /// A base class of the aggregate.
    Base,
    /// Bytes or bits before a member that none has.
    Hole,
    /// Bytes or bits after the last member.
    Padding,
}

/// Place of a part against the borders of cache lines: Oracle's marks, with lines of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockMark {
    /// It is a line.
    Whole,
    /// It begins one.
    Begins,
    /// It ends one.
    Ends,
    /// It is inside of one.
    Inside,
    /// It is larger than one.
    Larger,
    /// It crosses a border and would fit into one line.
    Crosses,
    /// It has no bytes.
    Unknown,
}

impl BlockMark {
    /// The character of `data_layout`.
    pub(crate) const fn sign(self) -> char {
        match self {
            Self::Whole => '<',
            Self::Begins => '/',
            Self::Ends => '\\',
            Self::Inside => '|',
            Self::Larger => '#',
            Self::Crosses => 'X',
            Self::Unknown => '?',
        }
    }

    fn of(start: u64, size: u64) -> Self {
        let first = start % CACHE_LINE_BYTES;
        match (size, first.saturating_add(size)) {
            (0, _) => Self::Unknown,
            (CACHE_LINE_BYTES, CACHE_LINE_BYTES) => Self::Whole,
            (size, _) if size > CACHE_LINE_BYTES => Self::Larger,
            (_, CACHE_LINE_BYTES) => Self::Ends,
            (_, end) if end > CACHE_LINE_BYTES => Self::Crosses,
            _ if first == 0 => Self::Begins,
            _ => Self::Inside,
        }
    }
}

/// A member, a part of one, or a gap.
#[derive(Clone, Debug)]
pub(crate) struct PartRow {
    /// Its kind.
    pub(crate) kind: PartKind,
    /// Dotted path: `pos.x`; `None` for gaps.
    pub(crate) path: Option<Arc<str>>,
    /// Last part of the path, a bit-field with its width; of a gap its size in words.
    pub(crate) label: String,
    /// Its type as the source has it, about; empty for gaps.
    pub(crate) type_text: String,
    /// Its type as descriptors spell it.
    pub(crate) type_name: Option<Arc<str>>,
    /// In the whole, in bytes; of a bit-field the byte that has its first bit.
    pub(crate) offset: u64,
    /// Bytes; of a bit-field those of its declared type.
    pub(crate) size: u64,
    /// For bits: their place after `offset`.
    pub(crate) bits: Option<BitPlace>,
    /// Number of elements of an array.
    pub(crate) elements: Option<u64>,
    /// Number of members that it is inside of.
    pub(crate) depth: u32,
    /// It is one of several that overlap.
    pub(crate) is_arm: bool,
    /// The cache line in which it begins, from 0.
    pub(crate) line: u64,
    /// Its place against the lines' borders.
    pub(crate) mark: BlockMark,
    /// Figures of it, with what it consists of; `None` where nothing was measured.
    pub(crate) figures: Option<MemberFigures>,
}

/// Sums over a layout. Gaps are those between its own members; those inside of members are the members' types'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LayoutSummary {
    /// Bytes.
    pub(crate) size: u64,
    /// Members, bases among them.
    pub(crate) n_members: usize,
    /// Whole bytes before members that none has.
    pub(crate) hole_bytes: u64,
    /// Bits that are left over in bytes of bit-fields.
    pub(crate) hole_bits: u64,
    /// Whole bytes after the last member.
    pub(crate) padding_bytes: u64,
    /// Bits that are left over in its last byte.
    pub(crate) padding_bits: u64,
    /// Cache lines that an instance touches.
    pub(crate) cache_lines: u64,
}

/// The rows of `layout`; with `figures` if it was measured.
pub(crate) fn rows(layout: &TypeLayout, figures: Option<&LayoutFigures>) -> LayoutRows {
    let measured_alignment = figures.and_then(LayoutFigures::alignment);
    let alignment = measured_alignment.unwrap_or(0);
    let gaps = gaps(layout);
    let mut maker =
        RowMaker { rows: Vec::new(), path: Vec::new(), alignment, figures, shown: None };
    let mut next_gap = gaps.iter().peekable();
    for (idx, member) in layout.members.iter().enumerate() {
        while let Some(gap) = next_gap.next_if(|gap| gap.before <= idx) {
            maker.gap(gap);
        }
        maker.member(member);
    }
    next_gap.for_each(|gap| maker.gap(gap));
    let RowMaker { mut rows, .. } = maker;
    if let Some(figures) = figures {
        figures.add_line_sums(&mut rows);
        without_shared(&mut rows);
    }
    LayoutRows {
        rows,
        summary: summary(layout, &gaps, alignment),
        measured_alignment,
        samples: figures.map_or(0, LayoutFigures::samples),
        is_measured: figures.is_some(),
        is_timed: figures.is_some_and(|figures| figures.is_timed),
    }
}

/// Takes the figures of members that have one path, as two bases or two members without a name have: whose they are is
/// open. Those of their parts stay.
fn without_shared(rows: &mut [LayoutRow]) {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    let path = |row: &LayoutRow| match row {
        LayoutRow::Part(part) => part.path.clone(),
        LayoutRow::Line(_) => None,
    };
    for path in rows.iter().filter_map(path) {
        *counts.entry(path).or_default() += 1;
    }
    for row in rows {
        if let LayoutRow::Part(part) = row
            && part.path.as_ref().is_some_and(|path| counts.get(path).is_some_and(|n| *n > 1))
        {
            part.figures = None;
        }
    }
}

fn summary(layout: &TypeLayout, gaps: &[Gap], alignment: u64) -> LayoutSummary {
    let mut summary = LayoutSummary {
        size: layout.size,
        n_members: layout.members.iter().filter(|member| member.depth == 0).count(),
        cache_lines: line_of(alignment, layout.size.saturating_sub(1)).saturating_add(1),
        ..LayoutSummary::default()
    };
    for gap in gaps.iter().filter(|gap| gap.depth == 0) {
        let bytes = gap.whole_bytes();
        let bits = gap.n_bits().saturating_sub(bytes.saturating_mul(8));
        let (of_bytes, of_bits) = match gap.kind {
            GapKind::Hole => (&mut summary.hole_bytes, &mut summary.hole_bits),
            GapKind::Padding => (&mut summary.padding_bytes, &mut summary.padding_bits),
        };
        *of_bytes = of_bytes.saturating_add(bytes);
        *of_bits = of_bits.saturating_add(bits);
    }
    summary
}

/// The line that a byte is in.
pub(super) const fn line_of(alignment: u64, offset: u64) -> u64 {
    offset.saturating_add(alignment) / CACHE_LINE_BYTES
}

struct RowMaker<'a> {
    rows: Vec<LayoutRow>,
    /// Names of the members around.
    path: Vec<Arc<str>>,
    alignment: u64,
    figures: Option<&'a LayoutFigures>,
    /// The last line whose beginning was shown.
    shown: Option<u64>,
}

impl RowMaker<'_> {
    fn member(&mut self, member: &LayoutMember) {
        self.path.truncate(member.depth as usize);
        self.path.push(Arc::clone(&member.name));
        let path: Arc<str> = self.path.join(".").into();
        let label = match member.bits {
            Some(bits) => format!("{}:{}", member.name, bits.width),
            None => member.name.to_string(),
        };
        let kind = match (member.depth, &*member.name) {
            (0, "<base>") => PartKind::Base,
            (0, _) => PartKind::Member,
            _ => PartKind::Part,
        };
        let figures = self.figures.map(|known| known.of(&path, member.offset, member.size));
        self.push(PartRow {
            kind,
            path: Some(path),
            label,
            type_text: source_text(&member.expression),
            type_name: Some(Arc::clone(&member.type_name)),
            offset: member.offset,
            size: member.size,
            bits: member.bits,
            elements: member.elements,
            depth: member.depth,
            is_arm: member.is_arm,
            line: line_of(self.alignment, member.offset),
            mark: self.mark(member.offset, member.size, member.bits),
            figures,
        });
    }

    fn gap(&mut self, gap: &Gap) {
        let (kind, word) = match gap.kind {
            GapKind::Hole => (PartKind::Hole, "hole"),
            GapKind::Padding => (PartKind::Padding, "padding"),
        };
        let label = match gap.bits() {
            Some(bits) if bits.width == 1 => format!("1 bit {word}"),
            Some(bits) => format!("{} bits {word}", bits.width),
            None => format!("{} B {word}", gap.size()),
        };
        self.push(PartRow {
            kind,
            path: None,
            label,
            type_text: String::new(),
            type_name: None,
            offset: gap.offset(),
            size: gap.size(),
            bits: gap.bits(),
            elements: None,
            depth: gap.depth,
            is_arm: false,
            line: line_of(self.alignment, gap.offset()),
            mark: self.mark(gap.offset(), gap.size(), gap.bits()),
            figures: None,
        });
    }

    fn mark(&self, offset: u64, size: u64, bits: Option<BitPlace>) -> BlockMark {
        let start = offset.saturating_add(self.alignment);
        let size = bits.map_or(size, |bits| bits.first.saturating_add(bits.width).div_ceil(8));
        BlockMark::of(start, size)
    }

    /// Adds a row, after the border of its line where that is a new one. Arms go back: they begin no line anew.
    fn push(&mut self, row: PartRow) {
        if self.shown.is_none_or(|shown| shown < row.line) {
            self.shown = Some(row.line);
            let start = row.line.saturating_mul(CACHE_LINE_BYTES);
            let offset = start.saturating_sub(self.alignment);
            self.rows.push(LayoutRow::Line(LineRow { line: row.line, offset, figures: None }));
        }
        self.rows.push(LayoutRow::Part(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn order() -> TypeLayout {
        let findings = fixture::findings();
        TypeLayout::clone(&findings.layouts[&2])
    }

    #[test]
    fn rows_are_in_order_with_gaps_and_borders() {
        let LayoutRows { rows, summary, .. } = rows(&order(), None);
        let text = |row: &LayoutRow| match row {
            LayoutRow::Line(line) => format!("line {} from {}", line.line, line.offset),
            LayoutRow::Part(part) => {
                let path = part.path.as_deref().unwrap_or(&part.label);
                format!("{} {} {} {}", part.offset, part.size, part.mark.sign(), path)
            }
        };
        let expected = [
            "line 0 from 0",
            "0 8 / next",
            "8 8 | price",
            "16 8 | pos",
            "16 4 | pos.x",
            "20 4 | pos.y",
            "24 8 | 8 B hole",
            "32 40 X name",
            "line 1 from 64",
            "72 48 | 48 B hole",
            "120 8 \\ last",
            "line 2 from 128",
            "128 8 / 8 B padding",
        ];
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), expected);
        assert_eq!((summary.hole_bytes, summary.padding_bytes, summary.cache_lines), (56, 8, 3));
        assert_eq!(summary.n_members, 5);
    }

    #[test]
    fn marks_are_oracles() {
        for (start, size, sign) in [
            (64, 64, '<'),
            (64, 8, '/'),
            (56, 8, '\\'),
            (8, 8, '|'),
            (0, 65, '#'),
            (60, 8, 'X'),
            (8, 0, '?'),
            (u64::MAX, u64::MAX, '#'),
        ] {
            assert_eq!(BlockMark::of(start, size).sign(), sign, "{start} {size}");
        }
    }
}
