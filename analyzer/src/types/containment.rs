//! Whether the answers of the two paths contradict each other, or one is a part of the other.

use crate::types::descriptor::{Content, DataObject};
use crate::types::layout::ScalarKind;

/// Which of two answers that agree says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finer {
    /// The type path's.
    Typed,
    /// The address path's.
    Located,
}

/// The answer that says more, if one contains the other; `None` if they contradict each other.
pub(crate) fn finer(typed: &DataObject, located: &DataObject) -> Option<Finer> {
    let root = Part::of(typed, 0)?;
    if root.is_byte() {
        // A pointer to characters is how C reads the bytes of anything.
        return Some(Finer::Located);
    }
    let below = |object: &DataObject, level: usize| -> Option<String> {
        let (leaf, outer) = (object.leaf()?, object.levels.get(level)?);
        Some(leaf.descriptor[outer.descriptor.len()..].to_owned())
    };
    let typed_path = below(typed, 0)?;
    for level in 0..located.levels.len() {
        if !Part::of(located, level)?.is_alike(&root) {
            continue;
        }
        // The same type on the way to the located part: one path must be the other's beginning.
        let located_path = below(located, level)?;
        if located_path.starts_with(&typed_path) {
            return Some(Finer::Located);
        }
        if typed_path.starts_with(&located_path) {
            return Some(Finer::Typed);
        }
    }
    let last = Part::of(located, located.levels.len().checked_sub(1)?)?;
    if last.is_byte() {
        // Characters are storage for whatever the program puts there.
        return Some(Finer::Typed);
    }
    (typed.is_scalar && typed.variable.is_none() && root.copies(&last)).then_some(Finer::Located)
}

/// One level of an object, as it is compared.
struct Part<'a> {
    element_type: &'a str,
    content: Content,
}

impl<'a> Part<'a> {
    fn of(object: &'a DataObject, level: usize) -> Option<Self> {
        let content = object.levels.get(level)?.content;
        Some(Self { element_type: element_type(component(object, level)), content })
    }

    /// Whether two parts are of one type: of one name, and the same inside. Two units may give one
    /// name to two types.
    fn is_alike(&self, other: &Self) -> bool {
        let is_same_inside = match (self.content.scalar, other.content.scalar) {
            (None, None) => self.content.geometry == other.content.geometry,
            (Some(_), Some(_)) => self.content.element_bytes == other.content.element_bytes,
            _ => false,
        };
        self.element_type == other.element_type && is_same_inside
    }

    /// Whether the integers behind a pointer are only how much is copied at a time of what lies
    /// there: they are wider than the scalars there, or the access takes several members. A pointer
    /// to floating-point numbers says what it leads to.
    fn copies(&self, other: &Self) -> bool {
        let is_wider = match other.content.scalar {
            None => true,
            Some(_) => self.content.element_bytes > other.content.element_bytes,
        };
        self.content.scalar == Some(ScalarKind::Number) && is_wider
    }

    fn is_byte(&self) -> bool {
        self.content.scalar == Some(ScalarKind::Byte)
            || self.element_type == "enumeration:std::byte"
    }
}

/// What the level at `level` adds to the descriptor around it.
fn component(object: &DataObject, level: usize) -> &str {
    let outer = level.checked_sub(1).and_then(|outer| object.levels.get(outer));
    let from = outer.map_or(0, |outer| outer.descriptor.len());
    object.levels.get(level).map_or("", |level| &level.descriptor[from..])
}

/// The type of a descriptor's component, without array, qualifiers and sign: C lets a program
/// reach an object through a pointer that differs in these.
pub(crate) fn element_type(component: &str) -> &str {
    let component = component.trim_start_matches('.').trim_start_matches('{');
    let mut spelled = component.split([' ', '}']).next().unwrap_or(component);
    loop {
        let qualifiers = ["const+", "volatile+", "atomic+", "restrict+", "unsigned_", "signed_"];
        let below =
            qualifiers.iter().find_map(|prefix| spelled.strip_prefix(prefix)).or_else(|| {
                let dimension = spelled.strip_prefix("array[")?;
                Some(dimension.split_once("]:")?.1)
            });
        match below {
            Some(below) => spelled = below,
            // gcc says `long unsigned int` and `long int`.
            None => {
                let sign = spelled.strip_suffix("_unsigned_int");
                return sign.or_else(|| spelled.strip_suffix("_int")).unwrap_or(spelled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::descriptor::{Root, name};
    use crate::types::layout::{AggregateKind, Layout, Member, Shape};
    use std::sync::Arc;

    fn scalar(spelled: &str, size: u64, kind: ScalarKind) -> Arc<Layout> {
        Arc::new(Layout::new(spelled.into(), spelled.into(), size, Shape::Scalar(kind)))
    }

    fn structure(members: &[(&str, u64, &Arc<Layout>)]) -> Arc<Layout> {
        let member = |(name, offset, layout): &(&str, u64, &Arc<Layout>)| Member {
            name: (*name).into(),
            offset: *offset,
            bits: None,
            layout: Arc::clone(layout),
        };
        let members = members.iter().map(member).collect();
        let shape = Shape::Aggregate { kind: AggregateKind::Structure, members };
        Arc::new(Layout::new("structure:s".into(), "s".into(), 16, shape))
    }

    fn object(layout: &Arc<Layout>, root: Root<'_>, size: u64) -> DataObject {
        name(layout, root, 0, size).unwrap().0
    }

    #[test]
    fn two_types_of_one_name_agree_only_if_they_are_the_same_inside() {
        let int = scalar("int", 4, ScalarKind::Number);
        let (gcc, clang) =
            (scalar("long_int", 8, ScalarKind::Number), scalar("long", 8, ScalarKind::Number));
        let one = structure(&[("id", 0, &int), ("key", 8, &gcc)]);
        let same = structure(&[("id", 0, &int), ("key", 8, &clang)]);
        let other = structure(&[("id", 0, &int), ("count", 8, &gcc)]);
        let typed = object(&one, Root::Pointer("p"), 4);
        let located = |layout| object(layout, Root::Variable("v"), 4);
        assert_eq!(finer(&typed, &located(&one)), Some(Finer::Located));
        assert_eq!(finer(&typed, &located(&same)), Some(Finer::Located));
        assert_eq!(finer(&typed, &located(&other)), None);
    }

    #[test]
    fn integers_that_are_wider_than_what_lies_there_copy_it() {
        let int = scalar("int", 4, ScalarKind::Number);
        let long = scalar("long_int", 8, ScalarKind::Number);
        let double = scalar("double", 8, ScalarKind::Float);
        let pair = structure(&[("x", 0, &int), ("y", 4, &int), ("w", 8, &double)]);
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
