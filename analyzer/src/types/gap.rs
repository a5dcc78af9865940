//! Gaps of a layout: bytes and bits that no member has. All views count them here.

use crate::types::descent::DISCRIMINANT;
use crate::types::type_layout::{DATA, LayoutMember, TypeLayout};
use dataspace_proto::snapshot::BitPlace;

/// Bits of an aggregate, side by side, that none of its members has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the member after it, of the members of the whole; their number at the end.
    pub before: usize,
    /// Number of members that it is inside of.
    pub depth: u32,
    /// Its place among the members of its aggregate.
    pub kind: GapKind,
    /// First bit, from the beginning of the whole.
    start: u128,
    /// The bit after the last one.
    end: u128,
}

/// Place of a gap among members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Before a member.
    Hole,
    /// After the last one.
    Padding,
}

impl Gap {
    /// The byte in which it begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        clamped(self.start / 8)
    }

    /// Bytes in which it is, wholly or in part.
    #[must_use]
    pub fn size(&self) -> u64 {
        clamped(self.end.div_ceil(8) - self.start / 8)
    }

    /// Bytes that are in it wholly.
    #[must_use]
    pub fn whole_bytes(&self) -> u64 {
        clamped((self.end / 8).saturating_sub(self.start.div_ceil(8)))
    }

    /// Number of its bits.
    #[must_use]
    pub fn n_bits(&self) -> u64 {
        clamped(self.end - self.start)
    }

    /// Its place from [`Self::offset`] on, where it is not of whole bytes.
    #[must_use]
    pub fn bits(&self) -> Option<BitPlace> {
        let is_of_bytes = self.start.is_multiple_of(8) && self.end.is_multiple_of(8);
        let first = clamped(self.start % 8);
        (!is_of_bytes).then(|| BitPlace { first, width: self.n_bits() })
    }
}

fn clamped(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Finds all gaps of `layout`, in the order in which they are shown among its members.
///
/// Arms overlap: before one is no hole, and what tells variants apart lies in none of theirs. In the padding of a base
/// may be members of the derived class (Itanium C++ ABI 2.4). Of a list that ends early it is not known what comes
/// after it: it has no padding.
#[must_use]
pub fn gaps(layout: &TypeLayout) -> Vec<Gap> {
    let outermost = Scope::new(0, bits(layout.size), 0);
    let is_whole = !layout.ends_early;
    let mut search = GapSearch { found: Vec::new(), open: vec![outermost], is_whole };
    for (idx, member) in layout.members.iter().enumerate() {
        search.close(idx, member.depth as usize, range(member).0);
        search.pass(idx, member);
    }
    if is_whole {
        let n_members = layout.members.len();
        search.close(n_members, 0, u128::MAX);
        // An aggregate without members is all padding.
        search.pad(n_members);
    }
    search.found
}

/// An aggregate whose members are being passed.
struct Scope {
    /// End of the members so far.
    last: u128,
    /// The same without the padding of the members, where what is derived may have members.
    data_last: u128,
    /// End of the aggregate itself.
    end: u128,
    /// `data_last` of the aggregate around, as it was before this one.
    around: u128,
    has_members: bool,
    /// Bits that tell which of its arms is there.
    discriminant: Option<(u128, u128)>,
}

impl Scope {
    const fn new(start: u128, end: u128, around: u128) -> Self {
        let (last, data_last) = (start, start);
        Self { last, data_last, end, around, has_members: false, discriminant: None }
    }
}

struct GapSearch {
    found: Vec<Gap>,
    /// The aggregates around the member, outermost first.
    open: Vec<Scope>,
    /// No member is left out.
    is_whole: bool,
}

impl GapSearch {
    /// Ends what is deeper than `depth`, before the member `idx` that begins at `start`.
    fn close(&mut self, idx: usize, depth: usize, start: u128) {
        while self.open.len() > depth + 1 {
            let Some(scope) = self.open.last_mut() else { return };
            // In the padding of a base may be what comes next.
            scope.end = scope.end.min(start.max(scope.last));
            let (data, has_members) = (scope.around.max(scope.last), scope.has_members);
            if has_members && self.is_whole {
                self.pad(idx);
            }
            self.open.pop();
            if has_members
                && self.is_whole
                && let Some(around) = self.open.last_mut()
            {
                around.data_last = data;
            }
        }
    }

    /// Notes the padding of the innermost aggregate.
    fn pad(&mut self, idx: usize) {
        let depth = self.open.len().saturating_sub(1) as u32;
        if let Some(Scope { last, end, .. }) = self.open.last() {
            self.note(GapKind::Padding, (idx, depth), (*last, *end));
        }
    }

    fn pass(&mut self, idx: usize, member: &LayoutMember) {
        let (start, end) = range(member);
        let Some(scope) = self.open.last_mut() else { return };
        let (last, around) = (scope.last, scope.data_last);
        let is_in_padding = !member.is_arm && (around..last).contains(&start);
        // What else is in an array's descriptor is of no member, and no padding.
        scope.has_members = &*member.name != DATA;
        scope.last = if is_in_padding { end } else { last.max(end) };
        scope.data_last = around.max(end);
        if member.is_arm && &*member.name == DISCRIMINANT {
            scope.discriminant = Some((start, end));
        }
        if !member.is_arm {
            self.note(GapKind::Hole, (idx, member.depth), (last, start));
        }
        // What an array consists of is told of its first element.
        let (element, around) = match member.elements {
            Some(count) => (member.size.checked_div(count).unwrap_or(0), around.max(end)),
            None => (member.size, around),
        };
        self.open.push(Scope::new(start, start.saturating_add(bits(element)), around));
    }

    /// Notes the bits from one on to another, without those that tell which arm is there.
    fn note(&mut self, kind: GapKind, (before, depth): (usize, u32), (start, end): (u128, u128)) {
        let mut parts = vec![(start, end)];
        for (from, to) in self.open.iter().filter_map(|scope| scope.discriminant) {
            let without =
                |(start, end): (u128, u128)| [(start, end.min(from)), (start.max(to), end)];
            parts =
                parts.into_iter().flat_map(without).filter(|(start, end)| start < end).collect();
        }
        let parts = parts.into_iter().filter(|(start, end)| start < end);
        self.found.extend(parts.map(|(start, end)| Gap { before, depth, kind, start, end }));
    }
}

fn bits(n_bytes: u64) -> u128 {
    u128::from(n_bytes) * 8
}

/// First bit of a member, and the bit after its last one.
fn range(member: &LayoutMember) -> (u128, u128) {
    let start = bits(member.offset);
    match member.bits {
        Some(place) => {
            let first = start + u128::from(place.first);
            (first, first + u128::from(place.width))
        }
        None => (start, start + bits(member.size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::{AggregateKind, Layout, Member};
    use crate::types::sample::{aggregate, member, number, structure};
    use crate::types::type_layout::describe;
    use std::sync::Arc;

    /// Offset, whole bytes, bits and depth of each gap; negative depths are paddings.
    fn found(layout: &Layout, room: usize) -> Vec<(u64, u64, u64, i64)> {
        let of = |gap: &Gap| {
            let depth = i64::from(gap.depth);
            let depth = if gap.kind == GapKind::Padding { -1 - depth } else { depth };
            (gap.offset(), gap.whole_bytes(), gap.n_bits(), depth)
        };
        gaps(&describe(layout, room).unwrap()).iter().map(of).collect()
    }

    #[test]
    fn holes_are_before_members_and_padding_after_the_last() {
        let (byte, long) = (number("char", 1), number("long", 8));
        let inner = structure("inner", 16, &[("b", 8, &byte)]);
        let outer = structure("outer", 40, &[("a", 0, &byte), ("in", 8, &inner), ("l", 24, &long)]);
        let expected = [(1, 7, 56, 0), (8, 8, 64, 1), (17, 7, 56, -2), (32, 8, 64, -1)];
        assert_eq!(found(&outer, 100), expected);
        assert_eq!(found(&outer, 2), [(1, 7, 56, 0)], "of a cut list the end is not known");
        assert_eq!(found(&structure("empty", 1, &[]), 9), [(0, 1, 8, -1)]);
    }

    #[test]
    fn bits_are_counted_where_bytes_are_shared() {
        let int = number("int", 4);
        let bits = |name: &str, first, width| Member {
            bits: Some((first, width)),
            ..member(name, 0, &int)
        };
        let members = vec![bits("a", 0, 3), bits("b", 5, 5), member("c", 4, &int)];
        let layout = aggregate(AggregateKind::Structure, "s", 8, members);
        assert_eq!(found(&layout, 9), [(0, 0, 2, 0), (1, 2, 22, 0)]);
        let gap = gaps(&describe(&layout, 9).unwrap())[1];
        assert_eq!((gap.bits(), gap.size()), (Some(BitPlace { first: 2, width: 22 }), 3));
    }

    #[test]
    fn arms_have_no_holes_and_a_discriminant_is_none() {
        let (int, long) = (number("int", 4), number("long", 8));
        let circle = structure("Circle", 16, &[("radius", 8, &long)]);
        let dot = structure("Dot", 16, &[]);
        let members = vec![
            member(DISCRIMINANT, 0, &int),
            member("Circle", 0, &circle),
            member("Dot", 0, &dot),
        ];
        let shape = aggregate(AggregateKind::Variants, "Shape", 16, members);
        assert_eq!(found(&shape, 9), [(4, 4, 32, 1)]);
    }

    #[test]
    fn the_padding_of_a_base_is_room_for_what_is_derived() {
        let (int, byte) = (number("int", 4), number("char", 1));
        let base = structure("A", 8, &[("x", 0, &int), ("c", 4, &byte)]);
        let derived = structure("B", 8, &[("<base>", 0, &base), ("d", 5, &byte)]);
        assert_eq!(found(&derived, 9), [(6, 2, 16, -1)]);
        let apart = structure("B", 12, &[("<base>", 0, &base), ("d", 8, &byte)]);
        assert_eq!(found(&apart, 9), [(5, 3, 24, -2), (9, 3, 24, -1)]);
    }

    #[test]
    fn what_is_nested_too_deeply_is_no_end() {
        let mut inner = number("long", 8);
        for _ in 0..40 {
            inner = structure("shell", 8, &[("in", 0, &inner)]);
        }
        let outer = structure("outer", 16, &[("in", 0, &inner)]);
        assert!(describe(&outer, 100).unwrap().truncated);
        assert_eq!(found(&outer, 100), [(8, 8, 64, -1)]);
    }

    #[test]
    fn foreign_numbers_overflow_nothing() {
        let long = number("long", 8);
        let far = structure("far", u64::MAX, &[("a", 0, &long), ("b", u64::MAX, &long)]);
        let hole = gaps(&describe(&far, 9).unwrap())[0];
        assert_eq!((hole.whole_bytes(), hole.n_bits()), (u64::MAX - 8, u64::MAX));
        let many = Arc::new(Layout::array_of(Arc::clone(&long), Some(0)));
        assert!(found(&structure("none", 0, &[("m", 0, &many)]), 9).is_empty());
    }
}
