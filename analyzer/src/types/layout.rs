//! The look of a type in memory: sizes, members, arrays.

use crate::types::die::DieRef;
use crate::types::type_expression::{Keyword, TypeExpression};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One type's memory layout. Pointers are leaves here, so that containment is a tree; what a
/// pointer points at is asked of the debug information.
#[derive(Debug, Eq)]
pub struct Layout {
    /// The type by its parts: what a descriptor spells.
    pub expression: Arc<TypeExpression>,
    /// As the debug information names it, without qualifiers and keyword: `cell`, `long int`.
    pub name: Arc<str>,
    /// Its size in bytes; 0 where it is not known.
    pub size: u64,
    /// The parts that it consists of.
    pub shape: Shape,
    /// Equal for layouts that a reader could not tell apart.
    pub fingerprint: u64,
    /// Equal for layouts with the same members at the same places, whatever their scalars are
    /// called: gcc and clang, C and C++ spell one type in two ways.
    pub geometry: u64,
    /// The entry of the type that a pointer or reference points at.
    pub(crate) pointee: Option<DieRef>,
    /// The entry that describes an aggregate or a function's type, typedefs and qualifiers taken off.
    pub(crate) die: Option<DieRef>,
    /// Number of layouts nested in it, itself included.
    pub(crate) depth: usize,
    /// Beginning of the array without a length that it ends with.
    pub(crate) open_from: Option<u64>,
}

/// Alike to a reader; where the debug information describes them does not count.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// The parts of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing smaller: numbers, pointers, enumerations, functions.
    Scalar(ScalarKind),
    /// Members, by offset.
    Aggregate {
        /// Structure, class or union.
        kind: AggregateKind,
        /// The members, in the order of their offsets.
        members: Box<[Member]>,
    },
    /// Elements side by side.
    Array {
        /// One of them.
        element: Arc<Layout>,
        /// Number of elements, where the type says.
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
    /// A floating-point number, also a complex one.
    Float,
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
    /// `union`
    Union,
    /// A structure with variants, of which one is there at a time: a Rust `enum`, a generator.
    Variants,
}

impl AggregateKind {
    /// The word that the program says.
    #[must_use]
    pub const fn keyword(self) -> Keyword {
        match self {
            Self::Structure | Self::Variants => Keyword::Structure,
            Self::Class => Keyword::Class,
            Self::Union => Keyword::Union,
        }
    }

    /// Tells whether its members are meant to overlap.
    #[must_use]
    pub const fn has_arms(self) -> bool {
        matches!(self, Self::Union | Self::Variants)
    }
}

/// One member of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name: `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// Its beginning, in bytes.
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
}

/// One step from an aggregate or array towards a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the member of this index.
    Member(u16),
    /// Into the arm of this index, of several that have the same member there: which arm is meant
    /// is open, and it is not part of a name.
    Arm(u16),
    /// To an array's element: which one is told by the offset, and is not part of a name.
    Element,
}

impl Layout {
    /// A layout with what follows from its parts.
    #[must_use]
    pub fn new(expression: Arc<TypeExpression>, name: Arc<str>, size: u64, shape: Shape) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        let mut places = rustc_hash::FxHasher::default();
        (&expression, size).hash(&mut hasher);
        size.hash(&mut places);
        let mut below = 0;
        match &shape {
            Shape::Scalar(kind) => {
                kind.hash(&mut hasher);
                kind.hash(&mut places);
            }
            Shape::Aggregate { kind, members } => {
                kind.hash(&mut hasher);
                // C++ lets a program say `struct` here and `class` there.
                (kind.has_arms(), &name).hash(&mut places);
                for member in members {
                    let place = (&member.name, member.offset, member.bits);
                    (place, member.layout.fingerprint).hash(&mut hasher);
                    (place, member.layout.geometry).hash(&mut places);
                    below = below.max(member.layout.depth);
                }
            }
            Shape::Array { element, count } => {
                (element.fingerprint, count).hash(&mut hasher);
                (element.geometry, count).hash(&mut places);
                below = element.depth;
            }
        }
        Self {
            open_from: open_from(size, &shape),
            expression,
            name,
            size,
            shape,
            fingerprint: hasher.finish(),
            geometry: places.finish(),
            pointee: None,
            die: None,
            depth: below.saturating_add(1),
        }
    }

    /// The array of `count` elements.
    #[must_use]
    pub fn array_of(element: Arc<Self>, count: Option<u64>) -> Self {
        let size = element.size.checked_mul(count.unwrap_or(0)).unwrap_or(0);
        let expression = TypeExpression::array_of(&element.expression, count);
        let name = Arc::clone(&element.name);
        Self::new(expression, name, size, Shape::Array { element, count })
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

    /// The same, borrowed.
    #[must_use]
    pub fn innermost(&self) -> &Self {
        let mut layout = self;
        while let Shape::Array { element, .. } = &layout.shape {
            layout = element;
        }
        layout
    }

    /// Tells whether a program may reach a scalar of one type through a pointer to the other.
    #[must_use]
    pub fn is_alike_scalar(&self, other: &Self) -> bool {
        self.size == other.size && self.expression.is_alike(&other.expression)
    }

    /// Tells whether it has members.
    #[must_use]
    pub const fn is_aggregate(&self) -> bool {
        matches!(self.shape, Shape::Aggregate { .. })
    }

    /// Tells whether a byte at `offset` belongs to it: inside its size, or in the open array that ends it.
    #[must_use]
    pub fn holds(&self, offset: u64) -> bool {
        offset < self.size || self.is_open_at(offset)
    }

    /// Tells whether `offset` is in the array without a length that it ends with.
    #[must_use]
    pub fn is_open_at(&self, offset: u64) -> bool {
        self.open_from.is_some_and(|start| start <= offset)
    }

    /// Tells whether the array that ends it is said to have no length, not to have none.
    #[must_use]
    pub fn has_no_length(&self) -> bool {
        match &self.shape {
            Shape::Array { count, .. } => count.is_none(),
            Shape::Aggregate { members, .. } => {
                members.last().is_some_and(|member| member.layout.has_no_length())
            }
            Shape::Scalar(_) => false,
        }
    }

    /// Finds the array of one element that ends a structure, and such an element: how C programs said, before C99 had arrays
    /// without a length, that more elements follow.
    #[must_use]
    pub fn array_of_one_at_end(&self) -> Option<(u64, &Self)> {
        match &self.shape {
            Shape::Array { element, count: Some(1) } => Some((0, element)),
            Shape::Aggregate { kind, members } if !kind.has_arms() => {
                let last = members.last().filter(|last| last.bits.is_none())?;
                let (start, end) = last.byte_range();
                // A member may be said to reach beyond its structure.
                let padding = self.size.checked_sub(end).filter(|padding| *padding < end - start);
                let (into, element) =
                    last.layout.array_of_one_at_end().filter(|_| padding.is_some())?;
                Some((start.checked_add(into)?, element))
            }
            _ => None,
        }
    }

    /// Walk along steps that a descent took: each with the part it leads to, and the member by which.
    pub fn walk(
        &self,
        steps: &[Step],
    ) -> impl Iterator<Item = (Step, &Arc<Self>, Option<&Member>)> {
        let mut part = self;
        steps.iter().map_while(move |step| {
            let (next, member) = match (step, &part.shape) {
                (Step::Member(idx) | Step::Arm(idx), Shape::Aggregate { members, .. }) => {
                    let member = members.get(usize::from(*idx))?;
                    (&member.layout, Some(member))
                }
                (Step::Element, Shape::Array { element, .. }) => (element, None),
                _ => return None,
            };
            part = next;
            Some((*step, next, member))
        })
    }
}

/// Beginning of the array without a length that ends a type. In a structure it may begin before the
/// structure's size, in its padding, and reaches as far as the memory does.
fn open_from(size: u64, shape: &Shape) -> Option<u64> {
    let of_member = |member: &Member| {
        let start = member.layout.open_from?;
        member.offset.checked_add(start).filter(|_| member.bits.is_none())
    };
    match shape {
        Shape::Scalar(_) => None,
        Shape::Array { element, count } => {
            let is_open = size == 0 && element.size != 0 && count.is_none_or(|count| count == 0);
            is_open.then_some(0)
        }
        Shape::Aggregate { kind, members } if kind.has_arms() => {
            members.iter().filter_map(of_member).min()
        }
        Shape::Aggregate { members, .. } => members.last().and_then(of_member),
    }
}

#[cfg(test)]
mod tests;
