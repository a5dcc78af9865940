//! Containers: what a pointer to a part of something points into, by what is accessed around the part.

use super::address::{Address, Origin, PointerName};
use super::content::Content;
use super::doubt::{Doubt, Standing};
use super::extent::has_part;
use super::hint::Hints;
use super::typing::{Surroundings, Typing};
use super::value::{Definition, Touched, ValueIdx};
use crate::dwarf::layout::kept::Container;
use crate::limit;
use crate::types::descent::Path;
use crate::types::layout::{Layout, Shape, Step};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Typing<'_, '_> {
    /// Pointers through which memory outside the object is accessed that they are known to be to.
    pub(super) fn hints_of_shapes(&mut self, hints: &mut Hints) {
        let mut accesses: FxHashMap<ValueIdx, Vec<Touched>> = FxHashMap::default();
        for (base, touched) in self.graph.accesses.iter().chain(&self.graph.counted) {
            let found = accesses.entry(self.graph.canonical(*base)).or_default();
            if found.len() < limit::MAX_SHAPE_ACCESSES {
                found.push(*touched);
            }
        }
        for (value, accesses) in accesses {
            let Content::Address(address) = self.of(value).clone() else { continue };
            let is_outside = accesses
                .iter()
                .any(|touched| address.clone().displaced(touched.displacement).is_outside());
            if !is_outside || address.has(Doubt::Which) || address.offset.step != 0 {
                continue;
            }
            let is_before = |touched: &Touched| {
                let place = address.clone().displaced(touched.displacement);
                !place.is_outside() || place.is_last_of_range()
            };
            if accesses.iter().all(is_before) {
                continue;
            }
            // What a function is given is not the end of a range as often: `end[-1]` is an element where
            // `end` was loaded, while a parameter with accesses below it is a member for `container_of`.
            let definition = self.graph.definitions.get(value.0 as usize);
            let is_given = matches!(definition, Some(Definition::Parameter { .. }));
            if let Some(around) = self.around_part(&address, &accesses, is_given) {
                self.suggest(hints, value, &around);
            }
        }
    }

    /// The only type that holds the object in itself and has a member at each access.
    fn around_part(
        &mut self,
        address: &Address,
        accesses: &[Touched],
        is_given: bool,
    ) -> Option<Address> {
        let Origin::Object(layout) = &address.origin else { return None };
        let part = layout.innermost_element();
        let known = containers_of(self.around, &part);
        let is_link = self.is_link(&part);
        let places: Vec<Touched> = accesses
            .iter()
            .flat_map(|touched| {
                let starts = address.offset.starts().iter();
                starts.map(move |start| {
                    let displacement = start.wrapping_add(touched.displacement);
                    Touched { displacement, ..*touched }
                })
            })
            .collect();
        if !is_link && !is_given && places.iter().all(|touched| is_element(&part, *touched)) {
            return None;
        }
        let fits = |container: &&Container, is_strict: bool| {
            let is_telling =
                |touched: &Touched| is_telling(container, touched.displacement, &part, is_link);
            places.iter().any(is_telling)
                && reaches_over(container, &places)
                && places.iter().all(|touched| {
                    into_container(container, touched.displacement).is_some_and(|offset| {
                        has_leaf(&container.layout, offset, *touched, is_strict)
                    })
                })
        };
        let mut fitting: Vec<&Container> = known.iter().filter(|it| fits(it, true)).collect();
        if fitting.is_empty() {
            // A part of a member, or several at once: two ints that are compared as eight bytes.
            fitting = known.iter().filter(|it| fits(it, false)).collect();
        }
        if let Some(PointerName::Member(holder, _)) = &address.name {
            // A table's nodes are made for the same types.
            let holder = holder.innermost_element();
            let mut made_alike = fitting.clone();
            made_alike.retain(|it| self.around.debug.shares_parameter(&it.layout, &holder));
            if !made_alike.is_empty() {
                fitting = made_alike;
            }
        }
        let container = innermost(&at_one_place(&fitting))?;
        let offset = address.offset.clone().shifted(container.offset.cast_signed());
        let origin = Origin::Object(container.layout.clone());
        let doubts = address.doubts.without(Doubt::Whole);
        let doubts = doubts.with_if(Doubt::Whole, container.offset == 0);
        Some(Address { origin, offset, name: None, doubts, standing: Standing::Own })
    }

    /// Tells whether a type points at others of its own: what links objects is a part of them.
    fn is_link(&mut self, part: &Layout) -> bool {
        let Shape::Aggregate { members, .. } = &part.shape else { return false };
        members
            .iter()
            .filter_map(|member| member.layout.pointee)
            .any(|pointee| self.around.debug.layout(pointee).fingerprint == part.fingerprint)
    }

    /// Values around which several variables are said to be: parts of one object.
    pub(super) fn hints_of_parts(&mut self, hints: &mut Hints) {
        let values: Vec<ValueIdx> = self.contents.parts.keys().copied().collect();
        for value in values {
            if let Some(around) = self.around_parts(value) {
                self.suggest(hints, value, &around);
            }
        }
    }

    /// The only type that has each part at its place.
    fn around_parts(&mut self, value: ValueIdx) -> Option<Address> {
        let parts = self.contents.parts.get(&value)?.iter().filter(|part| !part.is_copy);
        let mut places: Vec<(i64, &Layout)> =
            parts.map(|part| (part.offset, &*part.layout)).collect();
        places.sort_by_key(|(offset, layout)| (*offset, layout.fingerprint));
        places.dedup_by_key(|(offset, layout)| (*offset, layout.fingerprint));
        if places.len() < 2 || are_elements(&places) {
            return None;
        }
        let around = &mut *self.around;
        // The part that the fewest types have: a list's link is in all of them, a lock in a few.
        let known = places.iter().filter(|(_, layout)| layout.is_aggregate());
        let (at, known) = known
            .map(|(at, layout)| (*at, containers_of(around, layout)))
            .min_by_key(|(_, known)| known.len())?;
        let has_all = |container: &&Container| {
            places.iter().all(|(offset, layout)| {
                let offset = offset.checked_sub(at);
                let offset = offset.and_then(|offset| into_container(container, offset));
                offset.is_some_and(|offset| has_part(&container.layout, offset, layout))
            })
        };
        let fitting: Vec<&Container> = known.iter().filter(has_all).collect();
        let container = innermost(&fitting)?;
        let offset = container.offset.cast_signed().checked_sub(at)?;
        Some(Address::object(container.layout.clone(), offset, None))
    }
}

/// The types that have one like `part` inside of them: of the function's unit or, where link-time optimisation put the
/// function into one without types, of the unit that the part is of.
fn containers_of(around: &mut Surroundings<'_>, part: &Layout) -> Arc<[Container]> {
    let unit = around.scope.unit;
    let known = around.debug.containers_of(unit, part);
    match part.die {
        Some(die) if known.is_empty() && die.unit != unit => {
            around.debug.containers_of(die.unit, part)
        }
        _ => known,
    }
}

/// Tells whether parts are of one type and whole elements apart: any array has such.
fn are_elements(parts: &[(i64, &Layout)]) -> bool {
    let Some((start, first)) = parts.first() else { return true };
    parts.iter().all(|(offset, layout)| {
        let distance = offset.wrapping_sub(*start).unsigned_abs();
        layout.fingerprint == first.fingerprint && distance.is_multiple_of(first.size.max(1))
    })
}

/// Computes the offset in a container of what lies `offset` bytes from its part.
fn into_container(container: &Container, offset: i64) -> Option<u64> {
    u64::try_from(offset.checked_add_unsigned(container.offset)?).ok()
}

/// Of containers those that have the part at one place only, if there are any: in a collection of them what lies beyond
/// one is the next.
fn at_one_place<'c>(containers: &[&'c Container]) -> Vec<&'c Container> {
    let n_places = |it: &Container| {
        let is_it = |other: &&&Container| other.layout.fingerprint == it.layout.fingerprint;
        containers.iter().filter(is_it).count()
    };
    let single: Vec<&Container> =
        containers.iter().copied().filter(|it| n_places(it) == 1).collect();
    if single.is_empty() { containers.to_vec() } else { single }
}

/// Of containers inside of each other the innermost, in which the part is as well; of several that lie
/// side by side, such as an enum's variants, the innermost that is around all of them.
fn innermost<'c>(containers: &[&'c Container]) -> Option<&'c Container> {
    let mut by_size = containers.to_vec();
    by_size.sort_by_key(|container| container.layout.size);
    let address = |container: &Container| {
        Address::object(container.layout.clone(), container.offset.cast_signed(), None)
    };
    by_size.iter().copied().find(|inner| {
        let place = address(inner);
        by_size.iter().all(|other| {
            let other = address(other);
            let is_same = other.origin == place.origin && other.offset == place.offset;
            is_same || other.contains(&place) || place.contains(&other)
        })
    })
}

/// Tells whether accesses go beyond the member of a container that the part is in, or that is the part: else what they
/// tell of is that member's type.
fn reaches_over(container: &Container, places: &[Touched]) -> bool {
    let Shape::Aggregate { kind, members } = &container.layout.shape else { return true };
    let around = members.iter().find(|member| {
        let (start, end) = member.byte_range();
        (start..end).contains(&container.offset)
    });
    let Some(around) = around.filter(|_| !kind.has_arms()) else { return true };
    let (start, end) = around.byte_range();
    let is_beyond = |touched: &Touched| {
        into_container(container, touched.displacement)
            .is_none_or(|into| !(start..end).contains(&into))
    };
    places.iter().any(is_beyond)
}

/// Tells whether an access is to a whole member of an object or of the one before it, as behind a pointer
/// that ends a range.
fn is_element(part: &Layout, touched: Touched) -> bool {
    let Some(size) = i64::try_from(part.size).ok().filter(|size| *size > 0) else { return false };
    has_leaf(part, touched.displacement.rem_euclid(size).unsigned_abs(), touched, true)
}

/// Tells whether an access so far from a part speaks for the container. What begins where the part ends is as
/// likely a payload, unless the part is a link or begins the container; another part of its type is as likely an
/// element further on.
fn is_telling(container: &Container, offset: i64, part: &Layout, is_link: bool) -> bool {
    let is_inside = u64::try_from(offset).is_ok_and(|offset| offset < part.size);
    let is_behind = offset == part.size.cast_signed() && container.offset != 0 && !is_link;
    let Some(into) = into_container(container, offset).filter(|_| !is_inside && !is_behind) else {
        return false;
    };
    !is_in_part(&container.layout, into, container.offset, part)
}

/// Tells whether a part of the same type, other than the one at `own`, holds `offset`.
fn is_in_part(layout: &Layout, offset: u64, own: u64, part: &Layout) -> bool {
    if (own..own.saturating_add(part.size)).contains(&offset) {
        return false;
    }
    let Some(path) = layout.descend(offset, 1) else { return false };
    layout.walk(&path.steps).any(|(_, around, _)| around.fingerprint == part.fingerprint)
}

/// Tells whether a member begins at `offset` that such an access is to.
fn has_leaf(layout: &Layout, offset: u64, touched: Touched, is_strict: bool) -> bool {
    let n_bytes = u64::from(touched.n_bytes);
    let is_inside = offset.checked_add(n_bytes).is_some_and(|end| end <= layout.size);
    if !is_inside && !layout.holds(offset) {
        return false;
    }
    if touched.step != 0 {
        return is_in_array(layout, offset, touched.step.into());
    }
    // Compilers move floats through general registers, and no integers through those of floats.
    let is_of_kind = |path: &Path<'_>| match path.leaf.shape {
        Shape::Scalar(kind) => touched.kind.fits(kind),
        _ => true,
    };
    let is_begun =
        |path: &Path<'_>| path.into == 0 && !path.leaf.is_aggregate() && is_of_kind(path);
    // Vectors take several members at once.
    let is_bit_field = |path: &Path<'_>| {
        let member = layout.walk(&path.steps).last().and_then(|(_, _, member)| member);
        member.is_some_and(|member| member.bits.is_some())
    };
    let fits = |path: &Path<'_>| {
        !is_strict || path.leaf.size == n_bytes || n_bytes > 8 || is_bit_field(path)
    };
    let is_found = layout.descend(offset, 1).is_some_and(|path| is_begun(&path) && fits(&path));
    let arms = || layout.candidates(offset, n_bytes).paths;
    is_found || arms().iter().any(|path| is_begun(path) && fits(path))
}

/// Tells whether an array of scalars of this size begins at `offset`.
fn is_in_array(layout: &Layout, offset: u64, size: u64) -> bool {
    let Some(path) = layout.descend(offset, 1) else { return false };
    let is_scalar = path.into == 0 && !path.leaf.is_aggregate() && path.leaf.size == size;
    is_scalar && path.steps.last() == Some(&Step::Element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::{number, structure};
    use crate::types::value_kind::ValueKind;

    #[test]
    fn an_element_is_touched_where_a_member_of_it_or_of_one_beside_it_is_whole() {
        let (int, long) = (number("int", 4), number("long int", 8));
        let node = structure("node", 16, &[("id", 0, &long), ("a", 8, &int), ("b", 12, &int)]);
        for offset in (-32..32).step_by(2) {
            let into = i64::rem_euclid(offset, 16);
            let touched = |n_bytes| Touched {
                displacement: offset,
                n_bytes,
                kind: ValueKind::Unknown,
                step: 0,
            };
            assert_eq!(is_element(&node, touched(8)), into == 0, "{offset}");
            assert_eq!(is_element(&node, touched(4)), into == 8 || into == 12, "{offset}");
        }
        assert!(
            !is_element(
                &structure("empty", 0, &[]),
                Touched { displacement: 0, n_bytes: 8, kind: ValueKind::Unknown, step: 0 }
            ),
            "nothing has nothing beside it"
        );
    }
}
