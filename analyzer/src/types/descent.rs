//! The way from a layout down to the part that an access means, and what it may mean where that
//! stays open.

mod ending;

use crate::limit;
use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape, Step};
use crate::types::value_kind::ValueKind;

use ending::{End, EndFit, Ends};

/// The member that tells which variant is there, where the debug information gives it no name.
pub const DISCRIMINANT: &str = "<discriminant>";

/// The way to the smallest part of a layout that holds an access whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The steps, outermost first.
    pub steps: Vec<Step>,
    /// The part.
    pub leaf: &'a Layout,
    /// Beginning of the part in the outermost layout, in its first element.
    pub offset: u64,
    /// Beginning of the access inside the part.
    pub into: u64,
}

impl<'a> Path<'a> {
    fn start(root: &'a Layout, offset: u64) -> Self {
        Self { steps: Vec::new(), leaf: root, offset: 0, into: offset }
    }

    fn enter(&mut self, step: Step, member: &'a Member) {
        let start = member.byte_range().0;
        self.steps.push(step);
        self.offset = self.offset.saturating_add(start);
        (self.leaf, self.into) = (&member.layout, self.into.saturating_sub(start));
    }
}

/// Meanings of an access that the layout leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// The parts that fit best, at most [`limit::MAX_CANDIDATES`], in the order of the members.
    pub paths: Vec<Path<'a>>,
    /// There are others, or some were not weighed.
    pub is_cut: bool,
}

impl Layout {
    /// Walks from this layout to the smallest part that holds the `size` bytes at `offset`.
    ///
    /// An access of unknown size (0) counts as one byte, and fits no arm of a union better than the
    /// others. The walk stops at an aggregate whose members do not single one out: padding, several
    /// members at once, several bit-fields in the same bytes, several arms of a union. `None` if the
    /// access begins outside.
    #[must_use]
    pub fn descend(&self, offset: u64, size: u64) -> Option<Path<'_>> {
        self.descend_as(offset, size, ValueKind::Unknown)
    }

    /// The same for a value of a known kind, which an arm of another kind is not.
    #[must_use]
    pub fn descend_as(&self, offset: u64, size: u64, kind: ValueKind) -> Option<Path<'_>> {
        Some(self.weigh(offset, TouchedExtent::Bytes(size), kind)?.decide(self, offset))
    }

    /// The part that `width` bits from `first_bit` on mean, if one member holds them all: what a
    /// mask and a shift leave of an access.
    #[must_use]
    pub fn descend_bits(&self, first_bit: u64, width: u64) -> Option<Path<'_>> {
        let extent = TouchedExtent::Bits { first: first_bit % 8, width };
        Some(self.weigh(first_bit / 8, extent, ValueKind::Unknown)?.decide(self, first_bit / 8))
    }

    /// Every smallest part that `size` bytes at `offset` may mean: one where [`Self::descend`] finds
    /// one, and where it stops at an aggregate whatever of it fits best; nothing for padding.
    #[must_use]
    pub fn candidates(&self, offset: u64, size: u64) -> Candidates<'_> {
        self.candidates_as(offset, size, ValueKind::Unknown)
    }

    /// The same for a value of a known kind.
    #[must_use]
    pub fn candidates_as(&self, offset: u64, size: u64, kind: ValueKind) -> Candidates<'_> {
        let Some(mut ends) = self.weigh(offset, TouchedExtent::Bytes(size), kind) else {
            return Candidates::default();
        };
        ends.prefer_data();
        if ends.fit == EndFit::Part {
            return Candidates::default();
        }
        let paths = ends.best.into_iter().map(|end| end.path).collect();
        Candidates { paths, is_cut: ends.is_cut }
    }

    fn weigh(&self, offset: u64, extent: TouchedExtent, kind: ValueKind) -> Option<Ends<'_>> {
        if offset != 0 && !self.holds(offset) {
            return None;
        }
        let mut walk =
            DescentWalk { extent, kind, arms_left: limit::MAX_UNION_ARMS, ends: Ends::default() };
        walk.explore(Path::start(self, offset), None);
        Some(walk.ends)
    }
}

/// Extent of what an access touches.
#[derive(Clone, Copy, Debug)]
enum TouchedExtent {
    /// Bytes, 0 if that is not known.
    Bytes(u64),
    /// Bits, from one of the first byte's on.
    Bits { first: u64, width: u64 },
}

impl TouchedExtent {
    /// Tells whether a member holds what is touched at `offset`.
    fn is_in(self, member: &Member, offset: u64) -> bool {
        let (start, end) = member.byte_range();
        let Some(into) = offset.checked_sub(start) else { return false };
        match self {
            Self::Bytes(size) => {
                offset.saturating_add(size.max(1)) <= end || member.layout.is_open_at(into)
            }
            Self::Bits { first, width } => {
                let bit = offset.saturating_mul(8).saturating_add(first);
                let (from, n_bits) = member
                    .bits
                    .unwrap_or((start.saturating_mul(8), (end - start).saturating_mul(8)));
                from <= bit && bit.saturating_add(width.max(1)) <= from.saturating_add(n_bits)
            }
        }
    }

    /// Tells whether what is touched at `into` a part is just its `size` bytes.
    const fn is_whole(self, into: u64, size: u64) -> bool {
        match self {
            Self::Bytes(touched) => touched == size && touched != 0 && into == 0,
            Self::Bits { first, width } => {
                first == 0 && into == 0 && width == size.saturating_mul(8)
            }
        }
    }

    /// Tells whether what is touched at `offset` is just this bit-field.
    fn is_bit_field(self, offset: u64, (from, n_bits): (u64, u64)) -> bool {
        let (first, width) = match self {
            Self::Bytes(size) => (0, size.saturating_mul(8)),
            Self::Bits { first, width } => (first, width),
        };
        offset.saturating_mul(8).saturating_add(first) == from && width == n_bits
    }
}

/// One walk over all ways that an access may go.
struct DescentWalk<'a> {
    extent: TouchedExtent,
    kind: ValueKind,
    arms_left: u32,
    ends: Ends<'a>,
}

impl<'a> DescentWalk<'a> {
    /// Follows `path` to its ends. `array_bytes` is the size of the array of scalars it is in.
    fn explore(&mut self, mut path: Path<'a>, mut array_bytes: Option<u64>) {
        loop {
            let part: &'a Layout = path.leaf;
            match &part.shape {
                Shape::Scalar(kind) => {
                    let fit = self.scalar_fit(&path, *kind, array_bytes);
                    return self.end(path, fit, false);
                }
                Shape::Array { element, .. } => {
                    let Some(into) = path.into.checked_rem(element.size) else {
                        return self.end(path, EndFit::Part, false);
                    };
                    // 16 bytes at `cells[0].key` go over two cells: they mean the array.
                    if element.is_aggregate() && !self.is_within(into, element.size) {
                        return self.end(path, EndFit::Part, false);
                    }
                    let is_first = path.into == 0;
                    // `movups (%rdi)` on `float v[4]` means the array and no element of it.
                    array_bytes = array_bytes.or(Some(part.size)).filter(|_| is_first);
                    path.steps.push(Step::Element);
                    (path.leaf, path.into) = (element, into);
                }
                Shape::Aggregate { kind, members } => {
                    array_bytes = None;
                    let fitting = self.fitting(members, path.into);
                    // None is padding; several are arms of a union, variants of an enum, or bit-fields in
                    // one byte.
                    let [only] = fitting[..] else {
                        return self.fork(&path, *kind, members, &fitting);
                    };
                    let is_text = members.get(usize::from(only)).is_some_and(|member| {
                        let innermost = &member.layout.innermost().shape;
                        matches!(innermost, Shape::Scalar(kind) if self.is_no_text(*kind))
                    });
                    if is_text {
                        return self.end(path, EndFit::Part, false);
                    }
                    let Some(inner) = self.member(&path, members, only) else { return };
                    path = inner;
                }
            }
        }
    }

    /// The members that hold the access.
    fn fitting(&self, members: &[Member], offset: u64) -> Vec<u16> {
        // Members are sorted by offset: none from the first that begins after the access on.
        let end = members.partition_point(|member| member.byte_range().0 <= offset);
        let indices = (0..=u16::MAX).zip(&members[..end]);
        let fitting = indices.filter(|(_, member)| self.extent.is_in(member, offset));
        fitting.map(|(idx, _)| idx).collect()
    }

    fn fork(
        &mut self,
        path: &Path<'a>,
        kind: AggregateKind,
        members: &'a [Member],
        fitting: &[u16],
    ) {
        if fitting.is_empty() {
            return self.end(path.clone(), EndFit::Part, false);
        }
        self.ends.fork.get_or_insert((path.steps.len(), kind));
        for idx in fitting {
            // Each look at an arm costs as much as the members that are looked through in it.
            let cost = 1 + members.len() as u32 / 64;
            self.arms_left = self.arms_left.saturating_sub(cost);
            if self.arms_left == 0 {
                // Arms that were not weighed may fit as well or better.
                self.ends.is_cut = true;
                return;
            }
            if let Some(inner) = self.member(path, members, *idx) {
                self.explore(inner, None);
            }
        }
    }

    /// The way on into a member; `None` where it ends there.
    fn member(&mut self, path: &Path<'a>, members: &'a [Member], idx: u16) -> Option<Path<'a>> {
        let member = members.get(usize::from(idx))?;
        let offset = path.into;
        let mut inner = path.clone();
        inner.enter(Step::Member(idx), member);
        let is_discriminant = &*member.name == DISCRIMINANT;
        if let Some(bits) = member.bits {
            let is_whole = self.extent.is_bit_field(offset, bits);
            let fit = if is_whole { EndFit::Exact } else { EndFit::Inside };
            self.end(inner, fit, is_discriminant);
            return None;
        }
        // rustc puts a discriminant at a niche, as the null of `Option<Box<T>>` at the pointer: both fit
        // these bytes.
        if is_discriminant && let Shape::Scalar(kind) = member.layout.shape {
            let fit = self.scalar_fit(&inner, kind, None);
            self.end(inner, fit, true);
            return None;
        }
        Some(inner)
    }

    fn scalar_fit(&self, path: &Path<'_>, kind: ScalarKind, array_bytes: Option<u64>) -> EndFit {
        if self.is_no_text(kind) {
            return EndFit::Part;
        }
        let is_whole = |size| self.extent.is_whole(path.into, size);
        if is_whole(path.leaf.size) {
            // A number is as often a pointer to anything as `void *` is: `epoll_data.u64`.
            let is_untyped = self.kind == ValueKind::Base && path.leaf.pointee.is_none();
            let is_kind = self.kind.fits(kind) && !is_untyped;
            return if is_kind { EndFit::Exact } else { EndFit::Contrary };
        }
        if array_bytes.is_some_and(is_whole) { EndFit::WholeArray } else { EndFit::Inside }
    }

    /// Tells whether it is to a pointer, and so none of bytes of this kind: what is declared as such may be followed by
    /// anything else.
    fn is_no_text(&self, kind: ScalarKind) -> bool {
        self.kind == ValueKind::Base && kind == ScalarKind::Byte
    }

    /// Tells whether the access stays inside a part of `size` bytes.
    const fn is_within(&self, into: u64, size: u64) -> bool {
        match self.extent {
            TouchedExtent::Bytes(0) => true,
            TouchedExtent::Bytes(touched) => into.saturating_add(touched) <= size,
            TouchedExtent::Bits { first, width } => {
                let end = into.saturating_mul(8).saturating_add(first).saturating_add(width);
                end <= size.saturating_mul(8)
            }
        }
    }

    fn end(&mut self, path: Path<'a>, fit: EndFit, is_discriminant: bool) {
        self.ends.add(fit, End { path, is_discriminant });
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::{self, member, number as scalar};
    use std::sync::Arc;

    fn aggregate(kind: AggregateKind, size: u64, members: Vec<Member>) -> Arc<Layout> {
        sample::aggregate(kind, "s", size, members)
    }

    fn array(element: &Arc<Layout>, count: u64) -> Arc<Layout> {
        Arc::new(Layout::array_of(Arc::clone(element), Some(count)))
    }

    #[test]
    fn an_access_finds_the_member_of_the_element() {
        let point = aggregate(
            AggregateKind::Structure,
            8,
            vec![member("x", 0, &scalar("int", 4)), member("y", 4, &scalar("int", 4))],
        );
        let line = aggregate(
            AggregateKind::Structure,
            40,
            vec![member("id", 0, &scalar("long", 8)), member("points", 8, &array(&point, 4))],
        );
        let path = line.descend(8 + 2 * 8 + 4, 4).unwrap();
        assert_eq!(path.steps, [Step::Member(1), Step::Element, Step::Member(1)]);
        assert_eq!((path.offset, path.into), (12, 0));
        assert_eq!(&*path.leaf.name, "int");
    }

    #[test]
    fn padding_and_wide_accesses_stop_at_the_aggregate() {
        let s = aggregate(
            AggregateKind::Structure,
            16,
            vec![member("c", 0, &scalar("char", 1)), member("n", 8, &scalar("long", 8))],
        );
        assert!(s.descend(4, 4).unwrap().steps.is_empty(), "padding");
        assert!(s.descend(0, 16).unwrap().steps.is_empty(), "two members at once");
        assert!(s.descend(16, 8).is_none(), "outside");
    }

    #[test]
    fn a_pointer_after_a_header_is_not_of_the_bytes_that_are_declared_there() {
        let bytes = Arc::new(Layout::array_of(sample::scalar("char", 1, ScalarKind::Byte), None));
        let members = vec![member("n", 0, &scalar("long", 8)), member("text", 8, &bytes)];
        let keys = aggregate(AggregateKind::Structure, 8, members);
        let steps = |kind| keys.descend_as(24, 8, kind).unwrap().steps;
        assert_eq!(steps(ValueKind::Unknown), [Step::Member(1), Step::Element]);
        assert!(steps(ValueKind::Base).is_empty(), "what follows the text");
    }

    #[test]
    fn a_union_arm_is_chosen_only_by_its_size() {
        let int = member("i", 0, &scalar("int", 4));
        let long = member("l", 0, &scalar("long", 8));
        let float = member("f", 0, &scalar("float", 4));
        let two = aggregate(AggregateKind::Union, 8, vec![int, long]);
        assert_eq!(two.descend(0, 4).unwrap().steps, [Step::Member(0)]);
        let int = member("i", 0, &scalar("int", 4));
        let ambiguous = aggregate(AggregateKind::Union, 8, vec![int, float]);
        assert!(ambiguous.descend(0, 4).unwrap().steps.is_empty());
    }

    #[test]
    fn bit_fields_in_the_same_byte_are_not_told_apart() {
        let int = scalar("unsigned_int", 4);
        let bits = |name: &str, first, width| Member {
            bits: Some((first, width)),
            ..member(name, 0, &int)
        };
        let s = aggregate(
            AggregateKind::Structure,
            4,
            vec![bits("a", 0, 3), bits("b", 3, 5), bits("c", 8, 8)],
        );
        assert!(s.descend(0, 1).unwrap().steps.is_empty());
        assert_eq!(s.descend(1, 1).unwrap().steps, [Step::Member(2)]);
    }
}
