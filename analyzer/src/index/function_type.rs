//! Types of functions: what they take, as far as casts between them keep it.

use crate::types::layout::{Layout, Shape};
use crate::x86_64::abi::POINTER_BYTES;
use std::sync::Arc;

/// The types of a function's parameters, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionType {
    pub(crate) parameters: Vec<Parameter>,
    /// Anything may follow: it is declared with `...`, or nothing is declared of what it takes, as in older C.
    pub(crate) takes_more: bool,
}

/// A parameter, as far as casts between functions keep it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parameter {
    /// A pointer to a structure of this type.
    Pointer(Arc<Layout>),
    /// A pointer to a function.
    Code,
    /// A pointer to bytes or anything.
    AnyPointer,
    /// A number of so many bytes.
    Number(u64),
    /// Anything else.
    Other,
}

/// Functions that a pointer is taken to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Casts {
    /// Those that take as many arguments as it passes.
    Keeping,
    /// Those that take fewer, too: a callback need not ask for all that it is given.
    Dropping,
}

impl FunctionType {
    /// Tells whether a pointer to functions with the prototype `pointer` may hold one with this prototype: one that takes
    /// no more, and each pointer as one to the same, to what begins with that, or is begun by it.
    pub(crate) fn may_be_called_as(&self, pointer: &Self, casts: Casts) -> bool {
        self.may_be_within(pointer, casts, &mut { usize::MAX })
    }

    /// The same after at most so many steps, which are taken off; then it may be.
    pub(crate) fn may_be_within(&self, pointer: &Self, casts: Casts, n_left: &mut usize) -> bool {
        let [taken, passed] = [self, pointer].map(|it| it.parameters.len());
        let is_all_taken = taken >= passed || self.takes_more;
        let are_enough =
            (passed >= taken || pointer.takes_more) && (is_all_taken || casts == Casts::Dropping);
        let mut pairs = self.parameters.iter().zip(&pointer.parameters);
        are_enough && pairs.all(|(taken, passed)| taken.may_be(passed, n_left))
    }
}

impl Parameter {
    fn may_be(&self, other: &Self, n_left: &mut usize) -> bool {
        match (self, other) {
            (Self::Pointer(one), Self::Pointer(other)) => {
                let mut steps = MOST_PARTS.min(*n_left);
                let n = steps;
                let is_one =
                    begins_with(one, other, &mut steps) || begins_with(other, one, &mut steps);
                *n_left -= n - steps;
                is_one
            }
            (Self::Pointer(_) | Self::Number(_), Self::Code)
            | (Self::Code, Self::Pointer(_) | Self::Number(_)) => false,
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::Pointer(_) | Self::AnyPointer, Self::Number(n_bytes))
            | (Self::Number(n_bytes), Self::Pointer(_) | Self::AnyPointer) => {
                *n_bytes == u64::from(POINTER_BYTES)
            }
            _ => true,
        }
    }
}

/// First parts of two structures that are looked at, those of unions among them.
pub(crate) const MOST_PARTS: usize = 128;

/// Tells whether a structure begins with another one, or is it; or has too many first parts.
pub(crate) fn begins_with(whole: &Layout, part: &Layout, n_left: &mut usize) -> bool {
    let Some(left) = n_left.checked_sub(1) else { return true };
    *n_left = left;
    if whole.name == part.name {
        return true;
    }
    match &whole.shape {
        Shape::Aggregate { members, .. } => {
            let mut first = members.iter().take(MOST_PARTS).filter(|it| it.byte_range().0 == 0);
            first.any(|member| begins_with(&member.layout, part, n_left))
        }
        Shape::Array { element, .. } => begins_with(element, part, n_left),
        Shape::Scalar(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::{AggregateKind, Member};
    use crate::types::type_expression::{Keyword, TypeExpression};

    fn structure(name: &str, first: Option<Arc<Layout>>) -> Arc<Layout> {
        let keyword = Keyword::Structure;
        let expression = Arc::new(TypeExpression::Named { keyword, name: Some(name.into()) });
        let size = first.as_ref().map_or(8, |first| first.size + 8);
        let member = |layout| Member { name: "base".into(), offset: 0, bits: None, layout };
        let members = first.into_iter().map(member).collect();
        let shape = Shape::Aggregate { kind: AggregateKind::Structure, members };
        Arc::new(Layout::new(expression, name.into(), size, shape))
    }

    #[test]
    fn unions_within_unions_are_not_looked_through_forever() {
        let mut nested = structure("innermost", None);
        for depth in 0..40 {
            let member = |name: &str| Member {
                name: name.into(),
                offset: 0,
                bits: None,
                layout: nested.clone(),
            };
            let members = [member("one"), member("other")].into();
            let shape = Shape::Aggregate { kind: AggregateKind::Union, members };
            let name: Arc<str> = format!("union{depth}").into();
            nested = Arc::new(Layout::new(Arc::clone(&nested.expression), name, 8, shape));
        }
        let other = structure("page", None);
        let takes = |layout| FunctionType {
            parameters: vec![Parameter::Pointer(layout)],
            takes_more: false,
        };
        assert!(takes(nested).may_be_called_as(&takes(other), Casts::Dropping), "nobody knows");
    }

    #[test]
    fn a_pointer_holds_what_takes_no_more_and_alike() {
        let object = structure("object", None);
        let (derived, other) = (structure("text", Some(object.clone())), structure("page", None));
        let takes = |parameters: &[Parameter]| FunctionType {
            parameters: parameters.to_vec(),
            takes_more: false,
        };
        let with_more =
            |parameters: &[Parameter]| FunctionType { takes_more: true, ..takes(parameters) };
        let to = |layout: &Arc<Layout>| Parameter::Pointer(layout.clone());
        let pointer = takes(&[to(&object), Parameter::Number(4)]);
        let may_be = |parameters: &[Parameter]| {
            takes(parameters).may_be_called_as(&pointer, Casts::Dropping)
        };
        assert!(may_be(&[to(&object), Parameter::Number(4)]));
        assert!(may_be(&[to(&derived), Parameter::Number(4)]), "its first member is one");
        assert!(may_be(&[Parameter::AnyPointer, Parameter::Number(4)]));
        assert!(with_more(&[]).may_be_called_as(&pointer, Casts::Dropping), "nothing is declared");
        assert!(may_be(&[]), "what it takes nothing of");
        assert!(!may_be(&[Parameter::Code, Parameter::Number(4)]), "an object is no function");
        assert!(
            with_more(&[to(&object)]).may_be_called_as(&pointer, Casts::Dropping),
            "the number is one of those that follow"
        );
        assert!(!with_more(&[to(&other)]).may_be_called_as(&pointer, Casts::Dropping));
        let printing = with_more(&[to(&object)]);
        let [one, two] = [&[to(&object)][..], &[to(&object), Parameter::Other]].map(takes);
        assert!(
            one.may_be_called_as(&printing, Casts::Dropping)
                && two.may_be_called_as(&printing, Casts::Dropping)
        );
        assert!(
            !takes(&[to(&object), Parameter::Other]).may_be_called_as(&one, Casts::Dropping),
            "it takes more"
        );
        assert!(!may_be(&[to(&other), Parameter::Number(4)]));
        assert!(may_be(&[to(&object)]), "as a cast has it");
        assert!(!takes(&[to(&object)]).may_be_called_as(&pointer, Casts::Keeping));
        assert!(!may_be(&[to(&object), Parameter::Number(8)]));
        assert!(!may_be(&[to(&object), Parameter::AnyPointer]), "half of it would be missing");
    }
}
