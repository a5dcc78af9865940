//! What a pointer to a part of something points into, by what is accessed around the part.

use super::content::{Address, Content, Origin, PointerName};
use super::hint::Hints;
use super::typing::Typing;
use super::value::ValueIdx;
use crate::dwarf::container::Container;
use crate::layout::Layout;
use crate::limit;
use rustc_hash::FxHashMap;

impl Typing<'_, '_> {
    /// Pointers through which memory outside the object is accessed that they are known to be to.
    pub(super) fn hints_of_shapes(&mut self, hints: &mut Hints) {
        let mut accesses: FxHashMap<ValueIdx, Vec<(i64, u8)>> = FxHashMap::default();
        for (base, displacement, n_bytes) in &self.graph.accesses {
            let found = accesses.entry(self.graph.canonical(*base)).or_default();
            if found.len() < limit::MAX_SHAPE_ACCESSES {
                found.push((*displacement, *n_bytes));
            }
        }
        for (value, accesses) in accesses {
            let Content::Address(address) = self.of(value).clone() else { continue };
            let is_outside = accesses
                .iter()
                .any(|(displacement, _)| address.clone().displaced(*displacement).is_outside());
            if !is_outside || address.is_many || address.offset.step != 0 {
                continue;
            }
            if let Some(around) = self.around_part(&address, &accesses) {
                self.suggest(hints, value, &around);
            }
        }
    }

    /// The only type that holds the object in itself and has a member at each access.
    fn around_part(&mut self, address: &Address, accesses: &[(i64, u8)]) -> Option<Address> {
        let Origin::Object(layout) = &address.origin else { return None };
        let unit = self.around.scope.unit;
        let part = layout.innermost_element();
        let containers = self.around.debug.containers(unit);
        let fits = |container: &&Container, is_strict: bool| {
            accesses.iter().all(|(displacement, n_bytes)| {
                address.offset.starts().iter().all(|start| {
                    let offset = start.checked_add(*displacement);
                    let offset = offset.and_then(|offset| {
                        offset
                            .checked_add_unsigned(container.offset)
                            .and_then(|at| u64::try_from(at).ok())
                    });
                    offset.is_some_and(|offset| {
                        has_leaf(&container.layout, offset, *n_bytes, is_strict)
                    })
                })
            })
        };
        let known = containers.of(part.fingerprint);
        let mut fitting: Vec<&Container> = known.iter().filter(|it| fits(it, true)).collect();
        if fitting.is_empty() {
            // A part of a member, or several at once.
            fitting = known.iter().filter(|it| fits(it, false)).collect();
        }
        if let Some(PointerName::Member(holder, _)) = &address.name {
            // A table's nodes are made for the same types.
            let holder = holder.innermost_element();
            if fitting.iter().any(|it| shares_arguments(&it.layout, &holder)) {
                fitting.retain(|it| shares_arguments(&it.layout, &holder));
            }
        }
        // Of containers inside of each other the innermost, in which the access is as well.
        let smallest = fitting.iter().min_by_key(|container| container.layout.size)?;
        let is_around = |other: &&Container| {
            let other = Address::object(other.layout.clone(), other.offset.cast_signed(), None);
            let inner = smallest.offset.cast_signed();
            let inner = Address::object(smallest.layout.clone(), inner, None);
            other.origin == inner.origin && other.offset == inner.offset || other.contains(&inner)
        };
        if !fitting.iter().all(is_around) {
            return None;
        }
        let offset = address.offset.shifted(smallest.offset.cast_signed());
        let origin = Origin::Object(smallest.layout.clone());
        Some(Address { origin, offset, name: None, ..address.clone() })
    }
}

/// Whether a template's first argument is one of another's: a table and its nodes.
fn shares_arguments(part: &Layout, holder: &Layout) -> bool {
    let Some((_, arguments)) = part.name.split_once('<') else { return false };
    let mut depth = 0;
    let end = arguments.find(|character| {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '>' | ',' if depth == 0 => return true,
            _ => {}
        }
        false
    });
    let first = &arguments[..end.unwrap_or(arguments.len())];
    holder.name.split_once('<').is_some_and(|(_, others)| others.contains(first))
}

/// Whether a member begins at `offset` that an access of so many bytes is to.
fn has_leaf(layout: &Layout, offset: u64, n_bytes: u8, is_strict: bool) -> bool {
    let n_bytes = u64::from(n_bytes);
    let is_inside = offset.checked_add(n_bytes).is_some_and(|end| end <= layout.size);
    let Some(path) = layout.descend(offset, 1).filter(|_| is_inside || layout.holds(offset)) else {
        return false;
    };
    let is_begun = path.into == 0 && !path.leaf.is_aggregate();
    // Vectors take several members at once.
    is_begun && (!is_strict || path.leaf.size == n_bytes || n_bytes > 8)
}
