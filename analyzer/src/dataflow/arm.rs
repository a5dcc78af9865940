//! A pointer that lies in a union of several: which of them it is, by the access through it.

use super::address::{Address, Origin, PointerName, is_same_type};
use super::doubt::Doubt;
use super::extent::place_in;
use super::offset::gcd;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::POINTER_BYTES;
use std::sync::Arc;

/// The pointers that lie in the same bytes of a union.
#[derive(Debug)]
pub(crate) struct Arms(Vec<Arm>);

#[derive(Clone, Debug)]
struct Arm {
    name: Arc<str>,
    pointee: Arc<Layout>,
}

/// An access through such a pointer, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) n_bytes: u64,
    pub(crate) kind: ValueKind,
    /// The bytes that a register in the address counts by; 0 where none counts.
    pub(crate) step: u64,
}

/// Degree to which an access fits what a pointer points at: what counts most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// It is to just one scalar.
    is_whole: bool,
    /// True if what counts goes over just one object at a time.
    is_next: bool,
    /// The register is one for such scalars: a compiler copies floats through others, too, but
    /// rarely.
    is_kind: bool,
}

impl PartialEq for Arms {
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && pairs().all(|(one, two)| is_same_type(&one.pointee, &two.pointee))
    }
}

impl Arms {
    pub(super) fn new(arms: impl Iterator<Item = (Arc<str>, Arc<Layout>)>) -> Self {
        Self(arms.map(|(name, pointee)| Arm { name, pointee }).collect())
    }

    /// Tells whether one of them points at objects of this type.
    pub(super) fn has(&self, layout: &Arc<Layout>) -> bool {
        self.0.iter().any(|arm| is_same_type(&arm.pointee, layout))
    }

    /// Those whose pointees are kept.
    pub(crate) fn retained(&self, mut is_kept: impl FnMut(&Layout) -> bool) -> Self {
        let kept = self.0.iter().filter(|arm| is_kept(&arm.pointee));
        Self(kept.cloned().collect())
    }

    /// Chooses what the only one of them points at that fits the access best, and the address in that.
    pub(crate) fn chosen(&self, address: &Address, access: Use) -> Option<(&Arc<Layout>, Address)> {
        let mut best: Option<(Fit, &Arm)> = None;
        let (mut is_alone, mut is_named) = (false, false);
        for arm in &self.0 {
            let Some(fit) = fit(&arm.pointee, address, access) else { continue };
            match best {
                Some((known, _)) if fit < known => {}
                Some((known, other)) if fit == known => {
                    is_alone &= is_same_type(&other.pointee, &arm.pointee);
                    is_named &= other.name == arm.name;
                }
                _ => {
                    best = Some((fit, arm));
                    (is_alone, is_named) = (true, true);
                }
            }
        }
        let (_, arm) = best.filter(|_| is_alone)?;
        let origin = Origin::Object(Arc::clone(&arm.pointee));
        let name = is_named.then(|| PointerName::Variable(Arc::clone(&arm.name)));
        Some((&arm.pointee, Address { origin, name, ..address.clone() }))
    }
}

/// Judges how well an access fits a pointer to this; `None` where it does not.
fn fit(pointee: &Arc<Layout>, address: &Address, access: Use) -> Option<Fit> {
    let element = pointee.innermost_element();
    let step = gcd(address.offset.step, access.step);
    let mut starts = address.offset.starts().iter();
    let is_next = step == element.size || step == 0;
    if let Shape::Scalar(kind) = element.shape {
        let is_there = |start: &i64| start.unsigned_abs().is_multiple_of(element.size);
        let is_possible = kind != ScalarKind::Opaque && step.checked_rem(element.size)? == 0;
        if !is_possible || !starts.all(is_there) {
            return None;
        }
        if access.n_bytes == element.size {
            return scalar_fit(kind, access.kind, is_next);
        }
        let is_several = kind != ScalarKind::Byte && access.n_bytes.checked_rem(element.size)? == 0;
        return is_several.then_some(Fit { is_next, ..Fit::default() });
    }
    let each = starts.map(|start| {
        // Behind one object lies another one only in an array, or where something counts.
        let is_in_array = u64::try_from(*start).is_ok_and(|start| start < pointee.size);
        let is_many = address.has(Doubt::Which) || step != 0 || is_in_array;
        let place = place_in(pointee, *start, step, access.n_bytes, is_many)?;
        let path = element.descend_as(place, access.n_bytes, access.kind)?;
        match path.leaf.shape {
            Shape::Scalar(kind) if path.into == 0 && path.leaf.size == access.n_bytes => {
                scalar_fit(kind, access.kind, is_next)
            }
            _ => Some(Fit { is_next, ..Fit::default() }),
        }
    });
    each.min()?
}

/// Judges how well one scalar fits an access of its size.
fn scalar_fit(kind: ScalarKind, used: ValueKind, is_next: bool) -> Option<Fit> {
    let is_kind = kind != ScalarKind::Float || used == ValueKind::Float;
    used.fits(kind).then_some(Fit { is_whole: true, is_next, is_kind })
}

/// The pointers to different things that an access to a pointer at `into` of a union may mean.
pub(super) fn pointers(union: &Layout, into: u64) -> Vec<(Arc<str>, DieRef)> {
    let candidates = union.candidates_as(into, POINTER_BYTES.into(), ValueKind::Pointer);
    if candidates.is_cut {
        return Vec::new();
    }
    let pointers = candidates.paths.iter().filter_map(|path| {
        let member = union.walk(&path.steps).filter_map(|(.., member)| member).last()?;
        Some((Arc::clone(&member.name), path.leaf.pointee?, &path.leaf.expression))
    });
    let found: Vec<_> = pointers.collect();
    if found.iter().all(|(.., expression)| *expression == found[0].2) {
        return Vec::new();
    }
    found.into_iter().map(|(name, pointee, _)| (name, pointee)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::offset::Offset;
    use crate::types::sample::{number, structure};

    #[test]
    fn an_array_of_four_is_met_at_its_second_element() {
        let (int, long) = (number("unsigned int", 4), number("long int", 8));
        let quad = structure("quad", 88, &[("low", 0, &long), ("count", 80, &int)]);
        let creature = structure("creature", 256, &[("place", 0, &int), ("at", 168, &long)]);
        let four = Arc::new(Layout::array_of(Arc::clone(&quad), Some(4)));
        let used = Use { n_bytes: 4, kind: ValueKind::Unknown, step: 0 };
        let chosen = |start: i64| {
            let pointees = [("bodies", &creature), ("inner", &four)];
            let arms = pointees.map(|(name, pointee)| (name.into(), Arc::clone(pointee)));
            let arms = Arms::new(arms.into_iter());
            let address = Address::of(Origin::Static, Offset::exact(start));
            arms.chosen(&address, used).map(|(layout, _)| layout.innermost().name.to_string())
        };
        assert_eq!(chosen(88 + 80).as_deref(), Some("quad"), "the count of the second");
        assert_eq!(chosen(4 * 88 + 80), None, "neither has anything there");
    }
}
