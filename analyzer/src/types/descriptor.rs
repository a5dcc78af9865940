//! The names of data objects: the descriptor grammar of design section 6.

use crate::types::bit_range::BitRange;
use crate::types::descent::Path;
use crate::types::layout::{Layout, ScalarKind, Shape, Step};
use crate::types::value_kind::ValueKind;
use dataspace_proto::snapshot::ObjectKind;
use std::fmt::Write as _;
use std::sync::Arc;

/// A data object by name, with the objects around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataObject {
    /// The object and everything around it, outermost first: never empty.
    pub levels: Vec<ObjectLevel>,
    /// The outermost named type, or the variable's type.
    pub type_name: Arc<str>,
    /// The variable, if the object was reached by its name.
    pub variable: Option<Arc<str>>,
    /// Dotted member path.
    pub member: Option<Arc<str>>,
    /// Dotted member paths that the access may mean, where a union leaves it open; at most
    /// [`crate::limit::MAX_CANDIDATES`]. The object is then the union.
    pub candidates: Arc<[Arc<str>]>,
    /// Whether it is a scalar, whose metrics go to `<Scalars>` too.
    pub is_scalar: bool,
    /// Tells two types of one name apart.
    pub fingerprint: u64,
    /// The outermost element, of which the object is a part; `None` for what is artificial.
    pub element: Option<Arc<Layout>>,
}

/// One object of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLevel {
    /// The whole descriptor.
    pub descriptor: Arc<str>,
    /// Aggregate, member or scalar.
    pub kind: ObjectKind,
    /// Offset in the outermost aggregate.
    pub offset: u64,
    /// Size in bytes, 0 if not known.
    pub size: u64,
    /// What it consists of.
    pub content: Content,
}

/// What a data object consists of, as far as two answers are compared by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// [`Layout::geometry`] of the element.
    pub geometry: u64,
    /// The size of one element.
    pub element_bytes: u64,
    /// The sort of the elements, if they are scalars.
    pub scalar: Option<ScalarKind>,
}

impl Content {
    fn of(layout: &Layout) -> Self {
        let element = layout.innermost();
        let scalar = match element.shape {
            Shape::Scalar(kind) => Some(kind),
            _ => None,
        };
        Self { geometry: element.geometry, element_bytes: element.size, scalar }
    }
}

/// What of the frame no variable covers.
const STACK: &str = "<Stack>";

impl DataObject {
    /// The artificial object `<Stack>`: spills, saved registers, return addresses.
    #[must_use]
    pub fn stack() -> Self {
        Self::made(STACK, STACK, 0)
    }

    /// What no type describes: a variable of which only the name is known.
    #[must_use]
    pub fn untyped_variable(name: &str, size: u64) -> Self {
        let descriptor = format!("{{- {name}}}");
        let made = Self::made(&descriptor, "-", size);
        let levels =
            made.levels.into_iter().map(|level| ObjectLevel { kind: ObjectKind::Scalar, ..level });
        Self { levels: levels.collect(), variable: Some(name.into()), is_scalar: true, ..made }
    }

    /// What the compiler or the linker made, under the name that is usual for it.
    #[must_use]
    pub fn made(descriptor: &str, type_name: &str, size: u64) -> Self {
        let level = ObjectLevel {
            descriptor: descriptor.into(),
            kind: ObjectKind::Artificial,
            offset: 0,
            size,
            content: Content::default(),
        };
        Self {
            levels: vec![level],
            type_name: type_name.into(),
            variable: None,
            member: None,
            candidates: Arc::default(),
            is_scalar: false,
            fingerprint: 0,
            element: None,
        }
    }

    /// Whether it is the frame's artificial object.
    #[must_use]
    pub fn is_stack(&self) -> bool {
        self.leaf().is_some_and(|leaf| &*leaf.descriptor == STACK)
    }

    /// Whether the two are one data object.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let descriptor = |object: &Self| object.leaf().map(|leaf| Arc::clone(&leaf.descriptor));
        (self.fingerprint, descriptor(self)) == (other.fingerprint, descriptor(other))
    }

    /// The object itself: the innermost level.
    #[must_use]
    pub fn leaf(&self) -> Option<&ObjectLevel> {
        self.levels.last()
    }
}

/// How an access came to its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root<'a> {
    /// Through a pointer held in this variable; empty where it has no name.
    Pointer(&'a str),
    /// Through a pointer that is a member: the descriptor of what it is a member of, and its name.
    Member(&'a str, &'a str),
    /// The access is inside this variable.
    Variable(&'a str),
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

/// How far into the element of `layout` it is. An array of aggregates is named after its element: every
/// element is the same data object.
fn into_element(layout: &Layout, element: &Layout, offset: u64) -> Option<u64> {
    if offset < layout.size { offset.checked_rem(element.size) } else { Some(offset) }
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
    is_bit_field(&element, &path.steps).then(|| (part(&element, root, &path, Arc::default()), into))
}

/// Whether the last of these steps is to a bit-field.
fn is_bit_field(outer: &Layout, steps: &[Step]) -> bool {
    let mut part = outer;
    let mut is_bits = false;
    for step in steps {
        is_bits = false;
        match (step, &part.shape) {
            (Step::Member(idx) | Step::Arm(idx), Shape::Aggregate { members, .. }) => {
                let Some(member) = members.get(usize::from(*idx)) else { return false };
                is_bits = member.bits.is_some();
                part = &member.layout;
            }
            (_, Shape::Array { element, .. }) => part = element,
            _ => return false,
        }
    }
    is_bits
}

/// The data object at the end of a path.
fn part(
    element: &Arc<Layout>,
    root: Root<'_>,
    path: &Path<'_>,
    candidates: Arc<[Arc<str>]>,
) -> DataObject {
    let (levels, member) = member_levels(element, &path.steps);
    let variable = match root {
        Root::Variable(variable) => Some(variable.into()),
        Root::Pointer(_) | Root::Member(..) => None,
    };
    DataObject {
        levels,
        type_name: Arc::clone(&element.name),
        variable,
        member,
        candidates,
        is_scalar: false,
        fingerprint: element.fingerprint,
        element: Some(Arc::clone(element)),
    }
}

/// The dotted paths of what the access may mean where `path` stays at an aggregate.
fn candidates(
    element: &Layout,
    path: &Path<'_>,
    offset: u64,
    size: u64,
    kind: ValueKind,
) -> Arc<[Arc<str>]> {
    let found = element.candidates_as(offset, size, kind);
    let more = found.is_cut.then(|| Arc::from("…"));
    let is_below = |other: &&Path<'_>| other.steps.len() > path.steps.len();
    let dotted = |other: &Path<'_>| member_levels(element, &other.steps).1;
    found.paths.iter().filter(is_below).filter_map(dotted).chain(more).collect()
}

fn scalar(layout: &Layout, element: &Arc<Layout>, root: Root<'_>) -> DataObject {
    let descriptor = match root {
        Root::Variable(variable) => format!("{{{} {variable}}}", layout.spelled),
        Root::Pointer("") => format!("{{{} -}}", element.spelled),
        Root::Member(around, name) => format!("{around}.{{{} {name}[]}}", element.spelled),
        Root::Pointer(pointer) => format!("{{{} {pointer}[]}}", element.spelled),
    };
    let variable = match root {
        Root::Variable(variable) => Some(variable.into()),
        Root::Pointer(_) | Root::Member(..) => None,
    };
    let level = ObjectLevel {
        descriptor: descriptor.into(),
        kind: ObjectKind::Scalar,
        offset: 0,
        size: layout.size,
        content: Content::of(element),
    };
    DataObject {
        levels: vec![level],
        type_name: Arc::clone(&element.name),
        variable,
        member: None,
        candidates: Arc::default(),
        is_scalar: true,
        fingerprint: element.fingerprint,
        element: Some(Arc::clone(element)),
    }
}

/// The nest from `outer` along `steps`, and the dotted member path.
fn member_levels(outer: &Layout, steps: &[Step]) -> (Vec<ObjectLevel>, Option<Arc<str>>) {
    let mut descriptor = format!("{{{}}}", outer.spelled);
    let mut levels = vec![ObjectLevel {
        descriptor: descriptor.as_str().into(),
        kind: ObjectKind::Aggregate,
        offset: 0,
        size: outer.size,
        content: Content::of(outer),
    }];
    let mut dotted = String::new();
    let mut part = outer;
    let mut offset = 0u64;
    for step in steps {
        let (Step::Member(idx) | Step::Arm(idx), Shape::Aggregate { members, .. }) =
            (step, &part.shape)
        else {
            if let Shape::Array { element, .. } = &part.shape {
                part = element;
            }
            continue;
        };
        let Some(member) = members.get(usize::from(*idx)) else { break };
        offset = offset.saturating_add(member.byte_range().0);
        part = &member.layout;
        if matches!(step, Step::Arm(_)) {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match member.bits {
            Some((_, width)) => {
                write!(descriptor, ".{{{}:{width} {}}}", member.layout.spelled, member.name)
            }
            None => write!(descriptor, ".{{{} {}}}", member.layout.spelled, member.name),
        };
        if !dotted.is_empty() {
            dotted.push('.');
        }
        dotted.push_str(&member.name);
        levels.push(ObjectLevel {
            descriptor: descriptor.as_str().into(),
            kind: ObjectKind::Member,
            offset,
            size: member.layout.size,
            content: Content::of(&member.layout),
        });
    }
    let member = (!dotted.is_empty()).then(|| dotted.into());
    (levels, member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::{AggregateKind, Member, ScalarKind};

    fn scalar_layout(spelled: &str, size: u64) -> Arc<Layout> {
        let shape = Shape::Scalar(ScalarKind::Number);
        Arc::new(Layout::new(spelled.into(), spelled.into(), size, shape))
    }

    fn structure(name: &str, size: u64, members: Vec<(&str, u64, Arc<Layout>)>) -> Arc<Layout> {
        let members = members.into_iter().map(|(name, offset, layout)| Member {
            name: name.into(),
            offset,
            bits: None,
            layout,
        });
        let shape = Shape::Aggregate {
            kind: AggregateKind::Structure,
            members: members.collect::<Vec<_>>().into(),
        };
        Arc::new(Layout::new(format!("structure:{name}").into(), name.into(), size, shape))
    }

    fn leaf(object: &DataObject) -> &str {
        &object.leaf().unwrap().descriptor
    }

    #[test]
    fn members_nest_by_concatenation() {
        let int = scalar_layout("int", 4);
        let pos = structure("pos_t", 8, vec![("x", 0, int.clone()), ("y", 4, int)]);
        let order =
            structure("order", 16, vec![("id", 0, scalar_layout("long", 8)), ("pos", 8, pos)]);
        let (object, offset) = name(&order, Root::Pointer("o"), 12, 4).unwrap();
        assert_eq!(leaf(&object), "{structure:order}.{structure:pos_t pos}.{int y}");
        assert_eq!(object.member.as_deref(), Some("pos.y"));
        assert_eq!(offset, 12);
        let around: Vec<_> = object.levels.iter().map(|level| &*level.descriptor).collect();
        assert_eq!(around[..2], ["{structure:order}", "{structure:order}.{structure:pos_t pos}"]);
    }

    #[test]
    fn scalars_behind_a_pointer_are_named_after_it() {
        let double = scalar_layout("double", 8);
        let (behind, _) = name(&double, Root::Pointer("a"), 0, 8).unwrap();
        assert_eq!(leaf(&behind), "{double a[]}");
        let (nameless, _) = name(&double, Root::Pointer(""), 0, 8).unwrap();
        assert_eq!(leaf(&nameless), "{double -}");
        let (variable, _) = name(&double, Root::Variable("sum"), 0, 8).unwrap();
        assert_eq!(leaf(&variable), "{double sum}");
        assert!(variable.is_scalar);
    }
}
