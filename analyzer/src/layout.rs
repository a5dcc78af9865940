//! What a type looks like in memory: sizes, members, arrays; spelled as descriptors spell it.

use crate::dwarf::DieRef;
use crate::limit;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

/// One type's memory layout. Pointers are leaves here, so that containment is a tree; what a
/// pointer points at is asked of the debug information.
#[derive(Debug, Eq)]
pub struct Layout {
    /// As a descriptor spells the type: `structure:cell`, `pointer+structure:cell`, `long_int`.
    pub spelled: Arc<str>,
    /// As the debug information names it, without qualifiers and keyword: `cell`, `long int`.
    pub name: Arc<str>,
    /// Its size in bytes; 0 where it is not known.
    pub size: u64,
    /// What it consists of.
    pub shape: Shape,
    /// Equal for layouts that a reader could not tell apart.
    pub fingerprint: u64,
    /// The entry of the type that a pointer or reference points at.
    pub(crate) pointee: Option<DieRef>,
}

/// Alike to a reader; where the debug information describes them does not count.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
            && (&self.spelled, &self.name, self.size) == (&other.spelled, &other.name, other.size)
            && self.shape == other.shape
    }
}

/// What a type consists of.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing smaller: numbers, pointers, enumerations, functions.
    Scalar(ScalarKind),
    /// Members, by offset.
    Aggregate {
        /// Which sort.
        kind: AggregateKind,
        /// The members, in the order of their offsets.
        members: Box<[Member]>,
    },
    /// Elements side by side.
    Array {
        /// One of them.
        element: Arc<Layout>,
        /// How many, where the type says.
        count: Option<u64>,
    },
}

/// Sorts of scalars that attribution treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// A character or byte, which C uses for untyped storage.
    Byte,
    /// A pointer or reference.
    Pointer,
    /// Any other number.
    Number,
    /// `void`, a function, or a type with no size.
    Opaque,
}

/// Sorts of aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// `struct`
    Structure,
    /// `class`
    Class,
    /// `union`, and the variants of a Rust `enum`.
    Union,
}

impl AggregateKind {
    /// The word of the descriptor grammar.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Class => "class",
            Self::Union => "union",
        }
    }
}

/// One member of an aggregate.
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name: `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// For a bit-field: first bit, from the start of the aggregate, and width.
    pub bits: Option<(u64, u64)>,
    /// Its type.
    pub layout: Arc<Layout>,
}

impl Member {
    /// The bytes it occupies, of which a bit-field may use only a part.
    #[must_use]
    pub fn byte_range(&self) -> (u64, u64) {
        match self.bits {
            Some((first, width)) => (first / 8, first.saturating_add(width).div_ceil(8)),
            None => (self.offset, self.offset.saturating_add(self.layout.size)),
        }
    }

    /// Whether it is a flexible array, which has no size of its own.
    fn is_open(&self) -> bool {
        let is_array = matches!(self.layout.shape, Shape::Array { count: None | Some(0), .. });
        is_array && self.layout.size == 0
    }
}

/// One step from an aggregate or array towards a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the member of this index.
    Member(u16),
    /// To an array's element: which one is told by the offset, and is not part of a name.
    Element,
}

/// The way to the smallest part of a layout that holds an access whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The steps, outermost first.
    pub steps: Vec<Step>,
    /// The part.
    pub leaf: &'a Layout,
    /// Where the part begins in the outermost layout, in its first element.
    pub offset: u64,
    /// Where the access begins inside the part.
    pub into: u64,
}

impl Layout {
    /// A layout with its fingerprint.
    #[must_use]
    pub fn new(spelled: Arc<str>, name: Arc<str>, size: u64, shape: Shape) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        (&spelled, size).hash(&mut hasher);
        match &shape {
            Shape::Scalar(kind) => kind.hash(&mut hasher),
            Shape::Aggregate { kind, members } => {
                kind.hash(&mut hasher);
                for member in members {
                    (&member.name, member.offset, member.bits).hash(&mut hasher);
                    member.layout.fingerprint.hash(&mut hasher);
                }
            }
            Shape::Array { element, count } => (element.fingerprint, count).hash(&mut hasher),
        }
        Self { spelled, name, size, shape, fingerprint: hasher.finish(), pointee: None }
    }

    /// The element at the bottom of nested arrays; the layout itself if it is no array.
    #[must_use]
    pub fn innermost_element(self: &Arc<Self>) -> Arc<Self> {
        let mut layout = self;
        while let Shape::Array { element, .. } = &layout.shape {
            layout = element;
        }
        Arc::clone(layout)
    }

    /// Whether it has members.
    #[must_use]
    pub const fn is_aggregate(&self) -> bool {
        matches!(self.shape, Shape::Aggregate { .. })
    }

    /// Whether a byte at `offset` belongs to it: inside its size, or in the open array that ends it.
    #[must_use]
    pub fn holds(&self, offset: u64) -> bool {
        offset < self.size || self.open_start().is_some_and(|start| start <= offset)
    }

    /// Where the array without a length begins that ends this structure. It may begin before the
    /// structure's size, in its padding, and reaches as far as the memory does.
    fn open_start(&self) -> Option<u64> {
        let Shape::Aggregate { kind, members } = &self.shape else { return None };
        let last = members.last().filter(|_| *kind != AggregateKind::Union)?;
        last.is_open().then_some(last.offset)
    }

    /// Walks from this layout to the smallest part that holds the `size` bytes at `offset`.
    ///
    /// An access of unknown size (0) counts as one byte, and fits no arm of a union better than the
    /// others. The walk stops at an aggregate whose members do not single one out: padding, several
    /// members at once, several bit-fields in the same bytes, several arms of a union. `None` if the
    /// access begins outside.
    #[must_use]
    pub fn descend(&self, offset: u64, size: u64) -> Option<Path<'_>> {
        let mut arms_left = limit::MAX_UNION_ARMS;
        self.descend_within(offset, size, &mut arms_left)
    }

    /// The walk, which weighs at most `arms_left` arms of unions.
    fn descend_within(&self, offset: u64, size: u64, arms_left: &mut u32) -> Option<Path<'_>> {
        if offset != 0 && !self.holds(offset) {
            return None;
        }
        let mut path = Path { steps: Vec::new(), leaf: self, offset: 0, into: offset };
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let part: &Layout = path.leaf;
            match &part.shape {
                Shape::Scalar(_) => break,
                Shape::Array { element, .. } => {
                    let Some(into) = path.into.checked_rem(element.size) else { break };
                    if into + size.max(1) > element.size && element.is_aggregate() {
                        break;
                    }
                    path.steps.push(Step::Element);
                    (path.leaf, path.into) = (element, into);
                }
                Shape::Aggregate { kind, members } => {
                    let member = single_member(*kind, members, (path.into, size), arms_left);
                    let Some(idx) = member else { break };
                    let (Some(member), Ok(step)) = (members.get(idx), u16::try_from(idx)) else {
                        break;
                    };
                    path.steps.push(Step::Member(step));
                    let start = member.byte_range().0;
                    path.offset = path.offset.saturating_add(start);
                    (path.leaf, path.into) = (&member.layout, path.into - start);
                    if member.bits.is_some() {
                        break;
                    }
                }
            }
        }
        Some(path)
    }
}

/// The only member that holds `size` bytes at `offset`, if there is exactly one.
fn single_member(
    kind: AggregateKind,
    members: &[Member],
    (offset, size): (u64, u64),
    arms_left: &mut u32,
) -> Option<usize> {
    let holds = |member: &Member| {
        let (start, end) = member.byte_range();
        start <= offset && (offset.saturating_add(size.max(1)) <= end || member.is_open())
    };
    // Members are sorted by offset: none from the first that begins behind the access on.
    let end = match kind {
        AggregateKind::Union => members.len(),
        _ => members.partition_point(|member| member.byte_range().0 <= offset),
    };
    let mut fitting = members[..end].iter().enumerate().filter(|(_, member)| holds(member));
    let (first, _) = fitting.next()?;
    let Some((second, _)) = fitting.next() else { return Some(first) };
    if kind != AggregateKind::Union {
        return None;
    }
    // Of a union's arms the one with a leaf of just this size there, if only one has it.
    let mut fits_exactly = |idx: &usize| {
        let member = &members[*idx];
        *arms_left = arms_left.saturating_sub(1);
        let into = offset.checked_sub(member.byte_range().0).filter(|_| *arms_left != 0);
        let path = into.and_then(|into| member.layout.descend_within(into, size, arms_left));
        path.is_some_and(|path| path.leaf.size == size && path.into == 0)
    };
    let mut only = None;
    for idx in [first, second].into_iter().chain(fitting.map(|(idx, _)| idx)) {
        if fits_exactly(&idx) && only.replace(idx).is_some() {
            return None;
        }
    }
    // Arms that were not weighed any more may fit as well.
    only.filter(|_| *arms_left != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: &str, size: u64) -> Arc<Layout> {
        Arc::new(Layout::new(name.into(), name.into(), size, Shape::Scalar(ScalarKind::Number)))
    }

    fn member(name: &str, offset: u64, layout: &Arc<Layout>) -> Member {
        Member { name: name.into(), offset, bits: None, layout: Arc::clone(layout) }
    }

    fn aggregate(kind: AggregateKind, size: u64, members: Vec<Member>) -> Arc<Layout> {
        let shape = Shape::Aggregate { kind, members: members.into() };
        Arc::new(Layout::new("structure:s".into(), "s".into(), size, shape))
    }

    fn array(element: &Arc<Layout>, count: u64) -> Arc<Layout> {
        let shape = Shape::Array { element: Arc::clone(element), count: Some(count) };
        let spelled: Arc<str> = format!("array[{count}]:{}", element.spelled).into();
        Arc::new(Layout::new(spelled, element.name.clone(), element.size * count, shape))
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
        assert_eq!(&*path.leaf.spelled, "int");
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
