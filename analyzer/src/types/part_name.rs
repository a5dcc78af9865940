//! Names of parts of a variable as they are typed: `stats.hits`, `counts[3].value`.

use crate::limit;
use crate::types::layout::{Layout, Shape};
use std::sync::Arc;
use thiserror::Error;

/// A step from a variable to a part of it, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedStep {
    /// `.name`
    Member(Box<str>),
    /// `[index]`
    Element(u64),
}

/// A part that a name does not lead to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartError {
    /// There is no such member.
    #[error("{of} has no member {name}: it has {members}")]
    Member {
        /// The type.
        of: String,
        /// The name that was typed.
        name: String,
        /// The names that there are.
        members: String,
    },
    /// An index of something that is no array, or beyond its end.
    #[error("{of} has no element {index}")]
    Element {
        /// The type.
        of: String,
        /// The index that was typed.
        index: u64,
    },
    /// A bit-field has no address.
    #[error("{0} is a bit-field, which has no address of its own")]
    Bits(String),
}

/// A name and the steps after it; `None` where brackets do not fit.
#[must_use]
pub fn steps(text: &str) -> Option<(&str, Vec<NamedStep>)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= limit::MAX_NAMED_STEPS {
            return None;
        }
        if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            steps.push(NamedStep::Element(index.trim().parse().ok()?));
            rest = after;
        } else {
            let member = rest.strip_prefix('.')?;
            let end = member.find(['.', '[']).unwrap_or(member.len());
            let (member, after) = member.split_at(end);
            steps.push(NamedStep::Member(member.into()));
            rest = after;
            if member.is_empty() {
                return None;
            }
        }
    }
    (!name.is_empty()).then_some((name, steps))
}

impl Layout {
    /// The offset and the type of the part that steps lead to.
    ///
    /// # Errors
    /// The step that leads nowhere.
    pub fn part_named(
        self: &Arc<Self>,
        steps: &[NamedStep],
    ) -> Result<(u64, Arc<Self>), PartError> {
        let (mut offset, mut layout) = (0u64, Arc::clone(self));
        for step in steps {
            let (into, part) = match step {
                NamedStep::Member(name) => layout.member_named(name)?,
                NamedStep::Element(index) => layout.element_at(*index)?,
            };
            offset = offset.saturating_add(into);
            layout = part;
        }
        Ok((offset, layout))
    }

    /// Names of its parts as they are typed after its own, as many as an error lists: `.hits`, `[0]`.
    #[must_use]
    pub fn names_of_parts(&self) -> Vec<String> {
        match &self.shape {
            Shape::Scalar(_) => Vec::new(),
            Shape::Array { .. } => vec!["[0]".to_owned()],
            Shape::Aggregate { members, .. } => {
                let members = members.iter().filter(|member| member.bits.is_none());
                let members = members.take(limit::MAX_NAMES_TOLD);
                members.map(|member| format!(".{}", member.name)).collect()
            }
        }
    }

    fn element_at(&self, index: u64) -> Result<(u64, Arc<Self>), PartError> {
        let none = || PartError::Element { of: self.name.to_string(), index };
        let Shape::Array { element, count } = &self.shape else { return Err(none()) };
        if count.is_some_and(|count| index >= count) {
            return Err(none());
        }
        let into = index.checked_mul(element.size).ok_or_else(none)?;
        Ok((into, Arc::clone(element)))
    }

    fn member_named(&self, name: &str) -> Result<(u64, Arc<Self>), PartError> {
        self.member_within(name, limit::MAX_NAMED_STEPS)?.ok_or_else(|| {
            let members = match &self.shape {
                Shape::Aggregate { members, .. } => &members[..],
                _ => &[],
            };
            let shown = members.iter().take(limit::MAX_NAMES_TOLD).map(|member| &*member.name);
            let mut shown = shown.collect::<Vec<_>>().join(", ");
            if members.len() > limit::MAX_NAMES_TOLD {
                shown.push_str(", …");
            } else if members.is_empty() {
                shown.push_str("none");
            }
            PartError::Member { of: self.name.to_string(), name: name.to_owned(), members: shown }
        })
    }

    /// The member of this name, also one of a base or of a member without a name, as the language lets a program say it.
    fn member_within(
        &self,
        name: &str,
        n_levels: usize,
    ) -> Result<Option<(u64, Arc<Self>)>, PartError> {
        let Shape::Aggregate { members, .. } = &self.shape else { return Ok(None) };
        // A tuple's in Rust.
        let is_it = |member: &str| member == name || member.strip_prefix("__") == Some(name);
        if let Some(member) = members.iter().find(|member| is_it(&member.name)) {
            if member.bits.is_some() {
                return Err(PartError::Bits(name.to_owned()));
            }
            return Ok(Some((member.offset, Arc::clone(&member.layout))));
        }
        if n_levels == 0 {
            return Ok(None);
        }
        let is_open = |member: &str| member == "-" || member.ends_with("<base>");
        for member in members.iter().filter(|member| is_open(&member.name)) {
            if let Some((into, part)) = member.layout.member_within(name, n_levels - 1)? {
                return Ok(Some((member.offset.saturating_add(into), part)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::{number, structure};

    #[test]
    fn names_are_read_step_by_step() {
        let member = |name: &str| NamedStep::Member(name.into());
        let check = |text: &str, expected: Option<(&str, Vec<NamedStep>)>| {
            assert_eq!(steps(text), expected, "{text}");
        };
        check("a", Some(("a", vec![])));
        check("ns::a.b.c", Some(("ns::a", vec![member("b"), member("c")])));
        check(
            "a[3].b[4]",
            Some(("a", vec![NamedStep::Element(3), member("b"), NamedStep::Element(4)])),
        );
        for wrong in ["", ".a", "a.", "a..b", "a[", "a[]", "a[1", "a[-1]", "a[0x4]", "[1]", "a[1]b"]
        {
            check(wrong, None);
        }
        assert!(steps(&format!("a{}", ".a".repeat(limit::MAX_NAMED_STEPS))).is_some());
        assert_eq!(steps(&format!("a{}", ".a".repeat(limit::MAX_NAMED_STEPS + 1))), None);
    }

    #[test]
    fn parts_are_found_or_their_neighbours_named() {
        let long = number("long int", 8);
        let base = structure("base", 8, &[("id", 0, &long)]);
        let inner = structure("inner", 16, &[("x", 0, &long), ("__0", 8, &long)]);
        let array = Arc::new(Layout::array_of(Arc::clone(&inner), Some(3)));
        let members = [("base <base>", 0, &base), ("all", 8, &array), ("-", 56, &inner)];
        let outer = structure("outer", 72, &members);
        let found = |text: &str| {
            let (_, steps) = steps(text).unwrap();
            outer.part_named(&steps).map(|(offset, layout)| (offset, layout.size))
        };
        assert_eq!(found("v"), Ok((0, 72)));
        assert_eq!(found("v.all"), Ok((8, 48)));
        assert_eq!(found("v.all[2].x"), Ok((40, 8)));
        assert_eq!(found("v.all[1].0"), Ok((32, 8)), "of a tuple");
        assert_eq!(found("v.id"), Ok((0, 8)), "of a base");
        assert_eq!(found("v.x"), Ok((56, 8)), "of a member without a name");
        let text = |text: &str| found(text).unwrap_err().to_string();
        assert_eq!(text("v.y"), "outer has no member y: it has base <base>, all, -");
        assert_eq!(text("v.all[3]"), "inner has no element 3");
        assert_eq!(text("v[0]"), "outer has no element 0");
        assert_eq!(text("v.id.x"), "long int has no member x: it has none");
    }
}
