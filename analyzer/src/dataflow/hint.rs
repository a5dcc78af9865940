//! Backwards: what a value must be because of its uses.

use super::address::{Address, Better, Origin, either};
use super::arithmetic::is_tag;
use super::content::Content;
use super::doubt::{Doubt, Standing};
use super::liveness::Used;
use super::typing::Typing;
use super::value::{Definition, Sum, ValueIdx};
use crate::dwarf::code::passing::Passing;
use crate::x86_64::abi::ARGUMENTS;
use rustc_hash::FxHashMap;

/// Contents of values by what later uses say of them.
pub(super) type Hints = FxHashMap<ValueIdx, Content>;

impl Typing<'_, '_> {
    /// Collects what is done with values whose content is open: whether anything new came out.
    pub(super) fn look_back(&mut self) -> bool {
        let mut hints = Hints::default();
        self.hints_of_uses(&mut hints);
        self.hints_of_stores(&mut hints);
        self.hints_of_calls(&mut hints);
        self.hints_of_shapes(&mut hints);
        self.hints_of_parts(&mut hints);
        let mut has_news = false;
        for (value, hint) in hints {
            let is_welcome = match (self.of(value), &hint) {
                (_, Content::Top) => false,
                (known, _) if known.is_open() => true,
                (known, Content::Address(hint)) => known.is_told_by(hint),
                _ => false,
            };
            if is_welcome && self.contents.hints.get(&value) != Some(&hint) {
                has_news = true;
                self.contents.hints.insert(value, hint);
            }
        }
        has_news
    }

    /// Values that others are made of.
    fn hints_of_uses(&mut self, hints: &mut Hints) {
        let used = self.used.take().unwrap_or_else(|| self.used_values());
        self.hints_of_used(hints, &used);
        self.used = Some(used);
    }

    fn hints_of_used(&self, hints: &mut Hints, used: &Used) {
        // Later values first: what one hint says reaches what it was made of in the same pass.
        for value in (0..self.graph.definitions.len() as u32).rev().map(ValueIdx) {
            if self.graph.canonical(value) != value {
                continue;
            }
            let content = match (self.of(value), hints.get(&value)) {
                (known, Some(hint)) if known.is_open() => hint.clone(),
                (known, _) => known.clone(),
            };
            let Content::Address(address) = content else { continue };
            let is_weak = address.is_erased()
                || address.standing == Standing::Aside
                || address.has(Doubt::Owner);
            if is_weak || !matches!(address.origin, Origin::Object(_)) {
                continue;
            }
            match self.graph.definitions[value.0 as usize] {
                Definition::Entry { .. } if used[value.0 as usize] => {
                    for input in self.graph.inputs(value) {
                        self.suggest(hints, *input, &address);
                    }
                }
                Definition::Chosen { first, second } => {
                    self.suggest(hints, first, &address);
                    self.suggest(hints, second, &address);
                }
                Definition::Sum(sum) => self.suggest_sum(hints, &sum, &address),
                Definition::Reloaded { kept, .. } => self.suggest(hints, kept, &address),
                // A page's header is not where the pointer goes that it is found by.
                Definition::Masked { of, mask } if is_tag(mask) => {
                    self.suggest(hints, of, &address);
                }
                _ => {}
            }
        }
        for (first, second) in &self.graph.compared {
            for (known, other) in [(first, second), (second, first)] {
                // Both may be parts of other things: what is known of one only helps where nothing
                // is known of the other. `it != end` is all that tells what `end` points at.
                if let Content::Address(address) = self.of(*known)
                    && self.of(*other).is_open()
                    && !address.is_erased()
                    && matches!(address.origin, Origin::Object(_))
                {
                    self.suggest(hints, *other, address);
                }
            }
        }
    }

    fn suggest_sum(&self, hints: &mut Hints, sum: &Sum, address: &Address) {
        let Some(base) = sum.base.filter(|_| !sum.is_static) else { return };
        match sum.index {
            None => {
                let before = address.clone().shifted(sum.displacement.wrapping_neg());
                // What is 16 bytes further is the member at 24: then this is the one at 8. Before the
                // object's start is what it is a part of, of which the use tells nothing.
                let is_inside = before.offset.starts().iter().all(|offset| *offset >= 0);
                if is_inside && !is_out_of_step(address, sum.displacement) {
                    self.suggest(hints, base, &before);
                }
            }
            Some(index) if matches!(self.of(index), Content::Number(_)) => {
                let counted = self.of(index).number().times(i64::from(sum.scale));
                let by = sum.displacement.wrapping_add(counted.rest());
                let before = address.clone().shifted(by.wrapping_neg()).stepped(counted.step());
                // Whole elements apart: where in one it goes is the same for all.
                if before.offset.only().is_some() {
                    self.suggest(hints, base, &before);
                }
            }
            Some(_) => {}
        }
    }

    /// Values that are put where the type of what is kept is known.
    fn hints_of_stores(&mut self, hints: &mut Hints) {
        for store in self.graph.stores.clone() {
            let Content::Address(target) = self.operand_address(&store.address) else { continue };
            let Content::Address(kept) = self.kept_at(&target) else { continue };
            let value = self.graph.canonical(store.value);
            if kept.is_erased() && self.of(value).is_counted_in_bytes() {
                // Where bytes are counted to from an object, is what the pointer that is made of it says.
                hints.insert(value, Content::Address(kept));
            } else {
                self.suggest(hints, value, &kept);
            }
        }
    }

    fn hints_of_calls(&mut self, hints: &mut Hints) {
        for call in self.graph.calls.clone() {
            let Some(callee) = self.callee(&call) else { continue };
            let parameters = self.parameters(&call, callee);
            for (argument, parameter) in call.arguments.iter().zip(parameters.iter()) {
                if let Content::Address(address) = parameter {
                    self.suggest(hints, *argument, address);
                }
            }
        }
        self.hints_of_result(hints);
    }

    /// Suggests what the values are that the function itself returns.
    fn hints_of_result(&mut self, hints: &mut Hints) {
        let own = self.around.scope.die;
        let Some((layout, passing)) = own.and_then(|own| self.result_of(own)) else { return };
        if passing == Passing::Address {
            let place = Address::object(layout, 0, None);
            // What the caller passed first. Where it is not given back, the function was changed to
            // return something else, or nothing.
            for value in self.graph.returned.clone() {
                if self.is_first_parameter(value) {
                    self.suggest(hints, value, &place);
                }
            }
        } else if let Content::Address(address) = self.content_of(&layout, None) {
            for value in self.graph.returned.clone() {
                self.suggest(hints, value, &address);
            }
        }
    }

    fn is_first_parameter(&self, value: ValueIdx) -> bool {
        let definition = self.graph.definition(value);
        matches!(definition, Some(Definition::Parameter { register }) if *register == ARGUMENTS[0])
    }

    /// Adds what one use says. Uses that contradict each other say nothing.
    pub(super) fn suggest(&self, hints: &mut Hints, value: ValueIdx, address: &Address) {
        let value = self.graph.canonical(value);
        if address.is_erased() || value == self.graph.opaque() {
            return;
        }
        let mut address = address.clone();
        // What it is called later does not name it now.
        address.name = None;
        let content = match hints.remove(&value) {
            None => Content::Address(address),
            Some(Content::Address(known)) => match either(&known, &address) {
                Some(Better::First) => Content::Address(known),
                Some(Better::Second) => Content::Address(address),
                None => Content::Top,
            },
            Some(other) => other,
        };
        hints.insert(value, content);
    }
}

/// Tells whether going back so far from one of many objects leads into another one, not by whole objects, or
/// to another number: as often they are a part of something there.
fn is_out_of_step(address: &Address, displacement: i64) -> bool {
    let Origin::Object(layout) = &address.origin else { return false };
    let size = i64::try_from(layout.innermost().size).unwrap_or(0);
    let is_whole = size != 0 && displacement % size == 0 && layout.innermost().is_aggregate();
    !is_whole && address.offset.starts().iter().any(|start| start.wrapping_sub(displacement) < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::graph::ValueGraph;
    use crate::dataflow::tests::typed;
    use crate::dataflow::value::Place;
    use crate::types::sample::{number, structure};
    use std::sync::Arc;

    #[test]
    fn the_first_parameter_is_in_the_first_register_of_arguments() {
        // mov %rdi,%rax; ret
        let look = |graph: &mut ValueGraph| {
            [5, 4, 0].map(|register| graph.before(1, Place::Register(register)))
        };
        typed(&[0x48, 0x89, 0xf8, 0xc3], look, |typing, values| {
            let is_first = values.map(|value| typing.is_first_parameter(value));
            assert_eq!(is_first, [true, false, true], "rdi, rsi, and rax, which is rdi");
        });
    }

    #[test]
    fn what_is_counted_in_elements_tells_where_in_one_the_pointer_goes() {
        // movzbl (%rdx),%eax; ret
        let look = |graph: &mut ValueGraph| {
            let counted = graph.before(1, Place::Register(0));
            (graph.parameter(5), counted)
        };
        typed(&[0x0f, 0xb6, 0x02, 0xc3], look, |typing, (rdi, counted)| {
            let long = number("long int", 8);
            let node = structure("node", 16, &[("key", 0, &long), ("next", 8, &long)]);
            let suggested = |scale, into: i64| {
                // rdi, so many times the number, and 8, is the address of a node's byte.
                let sum = Sum { index: Some(counted), scale, ..Sum::of(rdi, 8) };
                let mut hints = Hints::default();
                let address = Address::object(Arc::clone(&node), into, None);
                typing.suggest_sum(&mut hints, &sum, &address);
                match hints.get(&typing.graph.canonical(rdi)) {
                    Some(Content::Address(address)) => address.offset.only(),
                    _ => None,
                }
            };
            assert_eq!(suggested(16, 8), Some(0));
            assert_eq!(suggested(16, 0), Some(8), "of the one before it");
            assert_eq!(suggested(8, 8), None, "halves of nodes");
        });
    }

    #[test]
    fn what_an_address_leads_to_tells_of_the_pointer_that_it_is_made_of() {
        // lea 8(%rdi),%rax; ret
        let look =
            |graph: &mut ValueGraph| (graph.parameter(5), graph.before(1, Place::Register(0)));
        typed(&[0x48, 0x8d, 0x47, 0x08, 0xc3], look, |typing, (rdi, rax)| {
            assert!(!typing.look_back(), "nothing is known");
            let long = number("long int", 8);
            let node = structure("node", 16, &[("key", 0, &long), ("next", 8, &long)]);
            typing.type_all(&[(rax, Content::Address(Address::object(node, 8, None)))]);
            let start = match typing.of(rdi) {
                Content::Address(address) => address.offset.only(),
                _ => None,
            };
            assert_eq!(start, Some(0), "rdi is the node's address");
            assert!(!typing.look_back(), "all is known");
        });
    }

    #[test]
    fn what_a_pointer_is_rounded_down_to_tells_of_it_only_where_that_takes_a_tag_off() {
        // mov %rdi,%rax; and $mask,%rax; ret
        for (mask, known) in [(-8_i32, Some(0)), (-16384, None)] {
            let code = [&[0x48, 0x89, 0xf8, 0x48, 0x25][..], &mask.to_le_bytes(), &[0xc3]].concat();
            let look =
                |graph: &mut ValueGraph| (graph.parameter(5), graph.before(2, Place::Register(0)));
            typed(&code, look, |typing, (rdi, rax)| {
                let long = number("long int", 8);
                let pool = structure("pool", 16, &[("count", 0, &long), ("free", 8, &long)]);
                typing.type_all(&[(rax, Content::Address(Address::object(pool, 0, None)))]);
                let start = match typing.of(rdi) {
                    Content::Address(address) => address.offset.only(),
                    _ => None,
                };
                assert_eq!(start, known, "{mask}");
            });
        }
    }
}
