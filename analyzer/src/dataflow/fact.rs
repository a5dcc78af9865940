//! Facts: what the debug information says of values, and how that goes together with how they come about.

use super::address::{Address, Better, Origin, PointerName, either};
use super::content::Content;
use super::doubt::{Doubt, Standing};
use crate::types::layout::Layout;
use std::ops::Range;
use std::sync::Arc;

/// One statement of the debug information on a value.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// Content of the variable, one for all the places that it is in.
    pub(crate) content: Arc<Content>,
    /// Range of code for which it says so.
    pub(crate) code: Range<u64>,
    /// Number of scopes around the variable.
    pub(crate) depth: u32,
    /// Own if the variable is the value, aside if it lies some distance from it.
    pub(crate) standing: Standing,
}

/// A variable that is said to be in memory at an address that a value tells.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Distance from the value.
    pub(crate) offset: i64,
    pub(crate) layout: Arc<Layout>,
    /// Range of code for which it is said.
    pub(crate) code: Range<u64>,
    /// The variable is a scalar of which this is where its value was got from: all that tells of a
    /// place that nothing else tells of.
    pub(crate) is_copy: bool,
}

impl Part {
    /// Computes the offset in the variable of the bytes that are `at` bytes from the value.
    pub(crate) fn into(&self, at: i64) -> Option<u64> {
        let into = u64::try_from(at.checked_sub(self.offset)?).ok()?;
        (into < self.layout.size).then_some(into)
    }
}

/// An object at the sum of two registers, which an operand may compute by itself.
#[derive(Clone, Debug)]
pub(crate) struct SumFact {
    /// Range of code for which it is said.
    pub(crate) code: Range<u64>,
    /// The registers, by their DWARF numbers, and the factor of the second.
    pub(crate) sum: (u16, u16, i64),
    /// The address with no number added.
    pub(crate) address: Address,
}

/// Joins what facts say of one value: what variables hold it, or what lies so far away from it.
pub(crate) fn all<'f>(facts: impl Iterator<Item = &'f Fact>) -> Option<Content> {
    let mut found: Option<(Content, u32)> = None;
    for fact in facts {
        let Some((known, depth)) = found else {
            found = Some((Content::clone(&fact.content), fact.depth));
            continue;
        };
        let takes_new = match (&known, &*fact.content) {
            (Content::Address(first), Content::Address(second)) => match either(first, second) {
                Some(better) => Some(better == Better::Second),
                // Several things around a value say nothing of what all of them are in.
                None if fact.standing == Standing::Aside => None,
                // An inlined function may take an object for another one: how the outer one declares
                // it goes before that.
                None => match depth.cmp(&fact.depth) {
                    std::cmp::Ordering::Less => Some(false),
                    std::cmp::Ordering::Greater => Some(true),
                    std::cmp::Ordering::Equal => None,
                },
            },
            (Content::Address(_) | Content::Top, _) => Some(false),
            (_, other) => Some(matches!(other, Content::Address(_))),
        };
        found = Some(match takes_new {
            Some(true) => (Content::clone(&fact.content), fact.depth),
            Some(false) => (known, depth),
            None => (Content::Top, depth),
        });
    }
    found.map(|(content, _)| content)
}

/// A value with what the debug information says of it: first of the value itself, then, if it is still
/// open, of what lies around it.
pub(crate) fn informed<'f>(
    made: Content,
    facts: impl Iterator<Item = &'f Fact> + Clone,
) -> Content {
    let known = match all(facts.clone().filter(|fact| fact.standing == Standing::Own)) {
        Some(said) => refined(made, said),
        None => made,
    };
    if !known.is_open() {
        return known;
    }
    match all(facts.filter(|fact| fact.standing == Standing::Aside)) {
        Some(Content::Address(said)) => {
            Content::Address(Address { standing: Standing::Aside, ..said })
        }
        _ => known,
    }
}

/// Refines the content by which a value comes about with what the debug information says of it.
pub(crate) fn refined(made: Content, said: Content) -> Content {
    match (&made, &said) {
        (_, Content::Unknown | Content::Bottom) => made,
        (Content::Address(first), Content::Address(second)) => {
            let is_located =
                matches!(first.origin, Origin::Static | Origin::Thread | Origin::Frame(_));
            let says_less =
                second.is_erased() && !first.is_erased() || second.is_void() && !first.is_void();
            if is_located || says_less {
                return made;
            }
            // A member's address keeps the object around it.
            if first.origin != second.origin {
                return if first.contains(second) { made } else { said };
            }
            // Where a table's entries end is declared like where one begins.
            if first.has(Doubt::Beyond) && first.offset == second.offset {
                return made;
            }
            let doubts = second.doubts.with_if(Doubt::Which, first.has(Doubt::Which));
            let doubts = doubts.with_if(Doubt::Variable, first.has(Doubt::Variable));
            // Where a loop's variable is said to be, its compiler may have changed the loop since:
            // the code tells how far into an element an address is.
            let kept = if is_elsewhere(first, second) { first } else { second };
            // Whose member leads to a header, tells what lies after it.
            let is_held = matches!(first.name, Some(PointerName::Member(..))) && first.is_header();
            let name = if is_held { &first.name } else { &second.name };
            let (offset, name) = (kept.offset.clone(), name.clone());
            Content::Address(Address { offset, doubts, name, ..second.clone() })
        }
        (Content::Top, Content::Address(address)) => {
            // A pointer to a member of this or that keeps neither.
            let is_scalar =
                matches!(&address.origin, Origin::Object(it) if !it.innermost().is_aggregate());
            let doubts = address.doubts.without(Doubt::Owner).with_if(Doubt::Owner, is_scalar);
            Content::Address(Address { doubts, ..address.clone() })
        }
        // Who declares a number for how far two addresses are apart counts with it.
        (Content::Distance, Content::Number(_)) => said,
        (Content::Unknown | Content::Bottom | Content::Top, _) => said,
        (_, Content::Address(address)) if !address.is_erased() => said,
        _ => made,
    }
}

/// Tells whether two addresses in objects of one type are at different places in them.
fn is_elsewhere(first: &Address, second: &Address) -> bool {
    let Origin::Object(layout) = &first.origin else { return false };
    let size = i64::try_from(layout.innermost().size).ok().filter(|size| *size > 0);
    match (first.offset.only(), second.offset.only(), size) {
        (Some(first), Some(second), Some(size)) => {
            first.wrapping_sub(second).checked_rem(size) != Some(0)
        }
        _ => false,
    }
}

/// A value with what is done with it later.
pub(super) fn hinted(known: Content, hint: &Content) -> Content {
    match (&known, hint) {
        (Content::Bottom, _) => known,
        _ if known.is_open() => hint.clone(),
        (known, Content::Address(address)) if known.is_told_by(address) => hint.clone(),
        _ => known,
    }
}
