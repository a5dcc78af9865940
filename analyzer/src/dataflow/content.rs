//! Abstract values: what a value is, as far as it is known: a number, or an address in some object.

use super::address::{Address, Origin, is_element_apart};
use super::congruence::Congruence;
use super::doubt::{Doubt, Standing};
use super::offset::Offset;
use crate::types::layout::{ScalarKind, Shape};
use dataspace_proto::address::Svma;
use std::cmp::Ordering;

/// An abstract value, an element of the lattice. What several ways bring together is joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Nothing has been worked out yet.
    Bottom,
    /// Nothing is known, but what another way or a use tells is taken.
    Unknown,
    /// A number that counts.
    Number(Congruence),
    /// This number.
    Constant(i64),
    /// Distance between two addresses: added to one it gives another, of another object.
    Distance,
    /// An address.
    Address(Address),
    /// Several things that contradict each other: nothing can be added.
    Top,
}

impl Content {
    pub(crate) const NUMBER: Self = Self::Number(Congruence::ANY);

    /// Tells whether better evidence is welcome.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Bottom | Self::Unknown => true,
            Self::Address(address) => address.is_erased() || address.standing == Standing::Aside,
            _ => false,
        }
    }

    /// Tells whether its type does not tell what it leads to, if it is a pointer.
    pub(super) fn is_untold(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Address(address) => address.is_void(),
            _ => false,
        }
    }

    /// Tells whether it is a pointer to numbers of which nothing tells what they are a part of.
    pub(crate) fn is_bare_number(&self) -> bool {
        let Self::Address(Address { origin: Origin::Object(layout), .. }) = self else {
            return false;
        };
        matches!(layout.innermost().shape, Shape::Scalar(ScalarKind::Float | ScalarKind::Number))
    }

    /// Tells whether it is an address at one place of an object.
    pub(crate) fn is_at_one_place(&self) -> bool {
        matches!(self, Self::Address(address) if address.offset.only().is_some())
    }

    /// Tells whether another content is an address of something that this one, one of several pointers, is
    /// not.
    pub(crate) fn is_converted_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(Address { origin: Origin::Arms(arms), .. }), Self::Address(other)) => {
                matches!(&other.origin, Origin::Object(layout) if layout.innermost().is_aggregate() && !arms.has(layout))
            }
            _ => false,
        }
    }

    /// Tells whether it is known to be one of several things.
    pub(crate) const fn is_one_of_several(&self) -> bool {
        matches!(self, Self::Top | Self::Address(Address { origin: Origin::Arms(_), .. }))
    }

    /// The join of two contents: what a value is that is one of two. A value that is used is live on every
    /// way there, so that a way that tells nothing does not take away what another one tells: in
    /// `p = first ? opaque() : &node` it is a node's address that is used as one after.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bottom, other) | (other, Self::Bottom) => other,
            (Self::Unknown, other) | (other, Self::Unknown) => match other {
                Self::Number(_) => Self::NUMBER,
                Self::Constant(_) => Self::Unknown,
                other => other,
            },
            (Self::Top, _) | (_, Self::Top) => Self::Top,
            (Self::Address(first), Self::Address(second)) => join_addresses(first, second),
            // A null pointer, which nothing is accessed through: `p = found ? node : NULL`.
            (Self::Constant(0), address @ Self::Address(_))
            | (address @ Self::Address(_), Self::Constant(0)) => address,
            (Self::Address(_), _) | (_, Self::Address(_)) => Self::Top,
            (Self::Distance, _) | (_, Self::Distance) => Self::Distance,
            (first, second) => Self::counted(first.number().join(second.number())),
        }
    }

    /// Tells whether it is so many bytes from where an object is, as nothing but a pointer to bytes is made.
    pub(crate) fn is_counted_in_bytes(&self) -> bool {
        matches!(self, Self::Address(Address { origin: Origin::Object(layout), offset, .. })
            if offset.step == 1 && layout.innermost().is_aggregate())
    }

    /// Tells whether what is done with an address says more of it: what is around it, or which bytes it leads to.
    pub(super) fn is_told_by(&self, hint: &Address) -> bool {
        let Self::Address(known) = self else { return false };
        let is_around = hint.contains(known) && known.origin != hint.origin;
        is_around || hint.is_erased() && self.is_counted_in_bytes()
    }

    /// Returns what is known of it as a number.
    pub(crate) const fn number(&self) -> Congruence {
        match self {
            Self::Number(number) => *number,
            Self::Constant(number) => Congruence::exact(*number),
            _ => Congruence::ANY,
        }
    }

    /// Makes the content of a number of which so much is known.
    pub(crate) fn counted(number: Congruence) -> Self {
        number.only().map_or(Self::Number(number), Self::Constant)
    }
}

fn join_addresses(first: Address, second: Address) -> Content {
    match first.standing.cmp(&second.standing) {
        Ordering::Less if !second.is_erased() => return Content::Address(second),
        Ordering::Greater if !first.is_erased() => return Content::Address(first),
        _ => {}
    }
    if first.origin == second.origin {
        let doubts = first.doubts.join(second.doubts);
        let doubts = doubts.with_if(Doubt::Which, is_element_apart(&first, &second));
        let name = first.name.filter(|name| second.name.as_ref() == Some(name));
        let standing = first.standing.max(second.standing);
        let place = Address::of(first.origin, first.offset.join(second.offset));
        let joined = Address { name, doubts, standing, ..place };
        return Content::Address(joined.normal());
    }
    // A pointer that may also be to a variable: `buffer = n > 64 ? malloc(n) : local`. The sample's address
    // tells which.
    match (&first.origin, &second.origin) {
        (Origin::Object(_), Origin::Static | Origin::Thread | Origin::Frame(_)) => {
            return Content::Address(first.doubted(Doubt::Variable));
        }
        (Origin::Static | Origin::Thread | Origin::Frame(_), Origin::Object(_)) => {
            return Content::Address(second.doubted(Doubt::Variable));
        }
        _ => {}
    }
    // Of an object and one that is a part of such, only the part is known to be there: a `struct list_head`
    // where one way has the head of the list and another one a node that begins with such.
    if first.contains(&second) {
        return Content::Address(second);
    }
    if second.contains(&first) {
        return Content::Address(first);
    }
    match (first.is_erased(), second.is_erased()) {
        (true, true) if second.is_void() => Content::Address(first),
        (true, _) => Content::Address(second),
        (_, true) => Content::Address(first),
        _ => Content::Top,
    }
}

/// An address that is known without the sample.
pub(super) fn static_address(svma: Svma) -> Content {
    let offset = Offset::exact(svma.0.cast_signed());
    Content::Address(Address::of(Origin::Static, offset))
}
