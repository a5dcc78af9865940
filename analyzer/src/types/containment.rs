//! The comparison of the answers of two paths: they contradict each other, or one is a part of the other.

use crate::known::language;
use crate::types::data_object::{DataObject, ObjectLevel, ObjectStep};
use crate::types::layout::{Layout, ScalarKind, Shape};

/// The answer that says more, of two that agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finer {
    /// The type path's.
    Typed,
    /// The address path's.
    Located,
}

/// The answer that says more, if one contains the other; `None` if they contradict each other.
pub(crate) fn finer(typed: &DataObject, located: &DataObject) -> Option<Finer> {
    let (root, typed_way) = way(&typed.levels)?;
    if is_byte(root) {
        // A pointer to characters is how C reads the bytes of anything.
        return Some(Finer::Located);
    }
    for level in 0..located.levels.len() {
        let (part, located_way) = way(located.levels.get(level..)?)?;
        if !is_alike(root, part) {
            continue;
        }
        // The same type on the way to the located part: one way must be the other's beginning.
        // `p->b` and `v.in.b` are one if v.in is of p's type; `p->a` at `v.in.b` is a conflict.
        let is_same_way = typed_way.iter().zip(located_way).all(|(one, other)| {
            matches!(
                (&one.step, &other.step),
                (
                    ObjectStep::Member { name, width, .. },
                    ObjectStep::Member { name: other, width: others, .. }
                ) if (name, width) == (other, others)
            )
        });
        if is_same_way {
            // The longer way says more: `p->in` beside `v.in.b` is refined, not contradicted.
            let is_located = typed_way.len() <= located_way.len();
            return Some(if is_located { Finer::Located } else { Finer::Typed });
        }
    }
    let last = &located.leaf()?.step;
    if is_byte(last) {
        // Characters are storage for whatever the program puts there.
        return Some(Finer::Typed);
    }
    // `*(long *)dst = *(long *)src` copies a structure: the variable there says more than the `long`.
    (typed.is_scalar() && typed.variable.is_none() && copies(root, last)).then_some(Finer::Located)
}

/// The outermost of these levels, and the way on from there.
fn way(levels: &[ObjectLevel]) -> Option<(&ObjectStep, &[ObjectLevel])> {
    let (first, below) = levels.split_first()?;
    Some((&first.step, below))
}

/// The layout of one element of an object.
fn element(step: &ObjectStep) -> Option<&Layout> {
    Some(step.layout()?.innermost())
}

/// Tells whether two objects consist of one type: of one name and the same inside, or numbers that are kept
/// in the same way. Two units may give one name to two types.
fn is_alike(one: &ObjectStep, other: &ObjectStep) -> bool {
    let (Some(one), Some(other)) = (element(one), element(other)) else { return false };
    match (&one.shape, &other.shape) {
        (Shape::Scalar(_), Shape::Scalar(_)) => one.is_alike_scalar(other),
        (Shape::Aggregate { .. }, Shape::Aggregate { .. }) => one.geometry == other.geometry,
        _ => false,
    }
}

/// Tells whether the integers behind a pointer are only how much is copied at a time of what lies there: they
/// are wider than the scalars there, or the access takes several members. A pointer to floating-point
/// numbers says what it leads to.
fn copies(integers: &ObjectStep, there: &ObjectStep) -> bool {
    let Some(element) = element(integers) else { return false };
    let is_wider = there.scalar_kind().is_none()
        || there.layout().is_some_and(|layout| element.size > layout.innermost().size);
    integers.scalar_kind() == Some(ScalarKind::Number) && is_wider
}

fn is_byte(step: &ObjectStep) -> bool {
    let Some(element) = element(step) else { return false };
    match element.shape {
        Shape::Scalar(ScalarKind::Byte) => true,
        // To the language an enumeration.
        Shape::Scalar(_) => &*element.name == language::STD_BYTE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::data_object::{Root, name};
    use crate::types::sample::{number, scalar, structure};
    use std::sync::Arc;

    fn object(layout: &Arc<Layout>, root: Root<'_>, size: u64) -> DataObject {
        name(layout, root, 0, size).unwrap().0
    }

    #[test]
    fn two_types_of_one_name_agree_only_if_they_are_the_same_inside() {
        let int = number("int", 4);
        let (gcc, clang) = (number("long int", 8), number("long", 8));
        let one = structure("s", 16, &[("id", 0, &int), ("key", 8, &gcc)]);
        let same = structure("s", 16, &[("id", 0, &int), ("key", 8, &clang)]);
        let other = structure("s", 16, &[("id", 0, &int), ("count", 8, &gcc)]);
        let typed = object(&one, Root::Pointer("p"), 4);
        let located = |layout| object(layout, Root::Variable("v"), 4);
        assert_eq!(finer(&typed, &located(&one)), Some(Finer::Located));
        assert_eq!(finer(&typed, &located(&same)), Some(Finer::Located));
        assert_eq!(finer(&typed, &located(&other)), None);
    }

    #[test]
    fn integers_that_are_wider_than_what_lies_there_copy_it() {
        let int = number("int", 4);
        let long = number("long int", 8);
        let double = scalar("double", 8, ScalarKind::Float);
        let pair = structure("s", 16, &[("x", 0, &int), ("y", 4, &int), ("w", 8, &double)]);
        let through = |layout, size| object(layout, Root::Pointer("p"), size);
        let there = |size| object(&pair, Root::Variable("v"), size);
        for (typed, size, expected) in [
            (&long, 8, Some(Finer::Located)),
            (&long, 16, Some(Finer::Located)),
            // As wide as the member, and of another type: one of the two is wrong.
            (&double, 8, None),
            (&double, 4, None),
        ] {
            assert_eq!(finer(&through(typed, size), &there(size)), expected, "{typed:?} {size}");
        }
        // A variable of its own is no pointer to anything.
        let variable = object(&long, Root::Variable("n"), 8);
        assert_eq!(finer(&variable, &there(8)), None);
    }
}
