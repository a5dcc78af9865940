//! Data objects: the way from what a program reaches by a name or a pointer down to the part that an
//! access touches. Two objects are the same if their ways are; how they are spelled does not count.

use crate::types::bit_range::BitRange;
use crate::types::descent::Path;
use crate::types::layout::{Layout, ScalarKind, Shape, Step};
use crate::types::value_kind::ValueKind;
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::ObjectKind;
use std::sync::Arc;

/// A data object, with the objects around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataObject {
    /// The object and everything around it, outermost first: never empty.
    pub levels: Vec<ObjectLevel>,
    /// The variable, if the object was reached by its name.
    pub variable: Option<Arc<str>>,
    /// Members that the access may mean, where a union leaves it open; at most
    /// [`crate::limit::MAX_CANDIDATES`]. The object is then the union.
    pub candidates: Arc<[Candidate]>,
}

/// One object of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLevel {
    /// Its step from what is around it.
    pub step: ObjectStep,
    /// Offset in the outermost aggregate.
    pub offset: u64,
    /// Size in bytes, 0 if not known.
    pub size: u64,
}

/// The step to an object from what is around it: the identity of the object in there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectStep {
    /// An object of the profiler's own.
    Artificial(Artificial),
    /// An object that the compiler or the linker made, under the names that are usual for its sort and for itself.
    Made(Arc<str>, Option<Arc<str>>),
    /// A variable of which only the name is known.
    Untyped(Arc<str>),
    /// The outermost aggregate, however it was reached: each of its type is the same data object.
    Aggregate(Arc<Layout>),
    /// A variable that has no members.
    Variable(Arc<Layout>, Arc<str>),
    /// A number or pointer that the pointer of this name leads to; empty where it has none.
    Pointed(Arc<Layout>, Arc<str>),
    /// A number or pointer that a member leads to.
    PointedBy(Arc<Layout>, Arc<PointerMember>),
    /// A member.
    Member {
        /// Its type.
        layout: Arc<Layout>,
        /// Its name.
        name: Arc<str>,
        /// Of a bit-field, the number of its bits.
        width: Option<u64>,
    },
}

/// Objects that no program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artificial {
    /// Everything.
    Total,
    /// All that has no members.
    Scalars,
    /// The part of the frame that no variable covers: spills, saved registers, return addresses.
    Stack,
    /// All that has no name.
    Unknown,
    /// All objects that came after there were too many.
    Other,
    /// An object without a name, for this reason.
    Reason(Reason),
}

/// A pointer that is a member of an object.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PointerMember {
    /// The way to what it is a member of.
    pub around: Vec<ObjectStep>,
    /// Its name.
    pub name: Arc<str>,
}

/// One meaning of an access that a union leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// The names of members, outermost first.
    Member(Box<[Arc<str>]>),
    /// There are others.
    More,
}

impl ObjectStep {
    /// The type, if one is known.
    #[must_use]
    pub const fn layout(&self) -> Option<&Arc<Layout>> {
        match self {
            Self::Artificial(_) | Self::Made(..) | Self::Untyped(_) => None,
            Self::Aggregate(layout)
            | Self::Variable(layout, _)
            | Self::Pointed(layout, _)
            | Self::PointedBy(layout, _)
            | Self::Member { layout, .. } => Some(layout),
        }
    }

    /// The kind that it is shown as.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Self::Artificial(Artificial::Total) => ObjectKind::Total,
            Self::Artificial(_) | Self::Made(..) => ObjectKind::Artificial,
            Self::Untyped(_) | Self::Variable(..) | Self::Pointed(..) | Self::PointedBy(..) => {
                ObjectKind::Scalar
            }
            Self::Aggregate(_) => ObjectKind::Aggregate,
            Self::Member { .. } => ObjectKind::Member,
        }
    }

    /// Tells whether it is a bit-field.
    #[must_use]
    pub const fn is_bit_field(&self) -> bool {
        matches!(self, Self::Member { width: Some(_), .. })
    }

    /// The sort of the scalars that it consists of.
    #[must_use]
    pub fn scalar_kind(&self) -> Option<ScalarKind> {
        match self.layout()?.innermost().shape {
            Shape::Scalar(kind) => Some(kind),
            _ => None,
        }
    }
}

impl From<ObjectStep> for DataObject {
    fn from(step: ObjectStep) -> Self {
        let size = step.layout().map_or(0, |layout| layout.size);
        Self::of(ObjectLevel { step, offset: 0, size })
    }
}

impl DataObject {
    fn of(level: ObjectLevel) -> Self {
        Self { levels: vec![level], variable: None, candidates: Arc::default() }
    }

    /// The artificial object `<Stack>`.
    #[must_use]
    pub fn stack() -> Self {
        ObjectStep::Artificial(Artificial::Stack).into()
    }

    /// A variable of which only name and size are known.
    #[must_use]
    pub fn untyped_variable(name: &str, size: u64) -> Self {
        let name: Arc<str> = name.into();
        let step = ObjectStep::Untyped(Arc::clone(&name));
        Self { variable: Some(name), ..Self::of(ObjectLevel { step, offset: 0, size }) }
    }

    /// An object that the compiler or the linker made: its sort, and its own name if such things have one.
    #[must_use]
    pub fn made(sort: &str, name: Option<&str>, size: u64) -> Self {
        let step = ObjectStep::Made(sort.into(), name.map(Into::into));
        Self::of(ObjectLevel { step, offset: 0, size })
    }

    /// Tells whether the two are one data object.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.levels.iter().map(|level| &level.step).eq(other.levels.iter().map(|it| &it.step))
    }

    /// The object itself: the innermost level.
    #[must_use]
    pub fn leaf(&self) -> Option<&ObjectLevel> {
        self.levels.last()
    }

    /// The outermost object.
    #[must_use]
    pub fn outermost(&self) -> Option<&ObjectStep> {
        self.levels.first().map(|level| &level.step)
    }

    /// The outermost element, of which the object is a part; `None` where no type is known.
    #[must_use]
    pub fn element(&self) -> Option<Arc<Layout>> {
        Some(self.outermost()?.layout()?.innermost_element())
    }

    /// Tells whether it has a name and no type.
    #[must_use]
    pub fn is_untyped(&self) -> bool {
        matches!(self.outermost(), Some(ObjectStep::Made(..) | ObjectStep::Untyped(_)))
    }

    /// Tells whether it is a number or pointer of its own, whose metrics go to `<Scalars>` too.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        self.outermost().is_some_and(|step| step.kind() == ObjectKind::Scalar)
    }
}

/// The way in which an access came to its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root<'a> {
    /// Through a pointer held in this variable; empty where it has no name.
    Pointer(&'a str),
    /// Through a pointer that is a member.
    Member(&'a Arc<PointerMember>),
    /// The access is inside this variable.
    Variable(&'a str),
}

impl Root<'_> {
    fn variable(self) -> Option<Arc<str>> {
        match self {
            Self::Variable(name) => Some(name.into()),
            Self::Pointer(_) | Self::Member(_) => None,
        }
    }
}

/// Names the part of `layout` that holds `size` bytes at `offset`, and gives the offset of the
/// access inside the outermost element.
///
/// `None` where the access lies outside `layout`.
#[must_use]
pub fn name(
    layout: &Arc<Layout>,
    root: Root<'_>,
    offset: u64,
    size: u64,
) -> Option<(DataObject, u64)> {
    name_as(layout, root, offset, size, ValueKind::Unknown)
}

/// The same for a value of a known kind, which tells some arms of unions apart.
#[must_use]
pub fn name_as(
    layout: &Arc<Layout>,
    root: Root<'_>,
    offset: u64,
    size: u64,
    kind: ValueKind,
) -> Option<(DataObject, u64)> {
    let element = layout.innermost_element();
    if !element.is_aggregate() {
        return Some((scalar(layout, &element, root), offset.checked_rem(element.size)?));
    }
    let into = into_element(layout, &element, offset)?;
    let path = element.descend_as(into, size, kind)?;
    let candidates = match path.leaf.is_aggregate() {
        true => candidates(&element, &path, into, size, kind),
        false => Arc::default(),
    };
    Some((part(&element, root, &path, candidates), into))
}

/// The name of what a pointer leads to where it is not known what of that is touched, and as what.
pub(crate) fn pointed(layout: &Arc<Layout>, root: Root<'_>) -> DataObject {
    scalar(layout, &layout.innermost_element(), root)
}

/// Distance into the element of `layout`. An array of aggregates is named after its element: every
/// element is the same data object.
fn into_element(layout: &Layout, element: &Layout, offset: u64) -> Option<u64> {
    if offset < layout.size { offset.checked_rem(element.size) } else { Some(offset) }
}

/// Number of the innermost element of an array at `offset`; `None` where `layout` is none, or ends before that.
pub(crate) fn element_of_array(layout: &Arc<Layout>, offset: u64) -> Option<u64> {
    let element = layout.innermost_element();
    (element.size < layout.size && offset < layout.size).then(|| offset / element.size.max(1))
}

/// The bit-field that `bits`, counted from the first of the byte at `offset`, are of; `None` where
/// they are of none, or of several members.
#[must_use]
pub fn name_bits(
    layout: &Arc<Layout>,
    root: Root<'_>,
    offset: u64,
    bits: BitRange,
) -> Option<(DataObject, u64)> {
    let element = layout.innermost_element();
    let into = into_element(layout, &element, offset)?;
    let first = into.checked_mul(8)?.checked_add(u64::from(bits.first))?;
    let path = element.descend_bits(first, u64::from(bits.width))?;
    let object = part(&element, root, &path, Arc::default());
    let is_bit_field = object.leaf()?.step.is_bit_field();
    is_bit_field.then_some((object, into))
}

/// The data object at the end of a path.
fn part(
    element: &Arc<Layout>,
    root: Root<'_>,
    path: &Path<'_>,
    candidates: Arc<[Candidate]>,
) -> DataObject {
    DataObject { levels: levels(element, &path.steps), variable: root.variable(), candidates }
}

/// The meanings of an access where `path` stays at an aggregate.
fn candidates(
    element: &Layout,
    path: &Path<'_>,
    offset: u64,
    size: u64,
    kind: ValueKind,
) -> Arc<[Candidate]> {
    let found = element.candidates_as(offset, size, kind);
    let more = found.is_cut.then_some(Candidate::More);
    let is_below = |other: &&Path<'_>| other.steps.len() > path.steps.len();
    let members = |other: &Path<'_>| -> Option<Candidate> {
        // The arm that was gone through is not part of a name.
        let named = element.walk(&other.steps).filter(|(step, ..)| matches!(step, Step::Member(_)));
        let members = named.filter_map(|(.., member)| member);
        let names: Box<[_]> = members.map(|member| Arc::clone(&member.name)).collect();
        (!names.is_empty()).then_some(Candidate::Member(names))
    };
    found.paths.iter().filter(is_below).filter_map(members).chain(more).collect()
}

fn scalar(layout: &Arc<Layout>, element: &Arc<Layout>, root: Root<'_>) -> DataObject {
    let step = match root {
        Root::Variable(name) => ObjectStep::Variable(Arc::clone(layout), name.into()),
        Root::Pointer(name) => ObjectStep::Pointed(Arc::clone(element), name.into()),
        Root::Member(member) => ObjectStep::PointedBy(Arc::clone(element), Arc::clone(member)),
    };
    let level = ObjectLevel { step, offset: 0, size: layout.size };
    DataObject { variable: root.variable(), ..DataObject::of(level) }
}

/// The nest from `outer` along `steps`.
fn levels(outer: &Arc<Layout>, steps: &[Step]) -> Vec<ObjectLevel> {
    let aggregate = ObjectStep::Aggregate(Arc::clone(outer));
    let mut levels = vec![ObjectLevel { step: aggregate, offset: 0, size: outer.size }];
    let mut offset = 0u64;
    for (step, part, member) in outer.walk(steps) {
        let Some(member) = member else { continue };
        offset = offset.saturating_add(member.byte_range().0);
        if matches!(step, Step::Arm(_)) {
            continue;
        }
        let step = ObjectStep::Member {
            layout: Arc::clone(part),
            name: Arc::clone(&member.name),
            width: member.bits.map(|(_, width)| width),
        };
        levels.push(ObjectLevel { step, offset, size: part.size });
    }
    levels
}

/// The pointer at `offset` of an object of type `holder`, as a member of what is around it.
#[must_use]
pub fn pointer_member(holder: &Arc<Layout>, offset: u64) -> Option<PointerMember> {
    let (object, _) = name(holder, Root::Pointer(""), offset, 8)?;
    let mut around: Vec<ObjectStep> = object.levels.into_iter().map(|level| level.step).collect();
    match around.pop()? {
        ObjectStep::Member { name, .. } => Some(PointerMember { around, name }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::{AggregateKind, Member};
    use crate::types::sample::{aggregate, member, number};

    #[test]
    fn bits_are_named_only_where_they_are_of_one_bit_field() {
        let int = number("unsigned int", 4);
        let bits =
            |name, first, width| Member { bits: Some((first, width)), ..member(name, 0, &int) };
        let members = vec![bits("low", 0, 3), bits("high", 3, 5), member("whole", 4, &int)];
        let flags = aggregate(AggregateKind::Structure, "flags", 8, members);
        let named = |offset, first, width| {
            let found = name_bits(&flags, Root::Pointer("p"), offset, BitRange { first, width });
            found.and_then(|(object, into)| match &object.leaf()?.step {
                ObjectStep::Member { name, .. } => Some((name.to_string(), into)),
                _ => None,
            })
        };
        assert_eq!(named(0, 0, 3), Some(("low".to_owned(), 0)));
        assert_eq!(named(0, 3, 5), Some(("high".to_owned(), 0)));
        assert_eq!(named(0, 2, 3), None, "of both");
        assert_eq!(named(4, 0, 3), None, "of a whole number");
    }
}
