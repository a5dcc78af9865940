//! The spelling of data objects. Each object around is in braces, outermost first: `{union:value}.{long_int n}`.
//! In the braces stand the type, its qualifiers, pointers and arrays before it, and the name; `-` is for none.

use crate::types::data_object::{Artificial, Candidate, DataObject, ObjectStep};
use crate::types::source_name;
use std::fmt;
use std::sync::Arc;

/// A data object as it is shown.
#[derive(Clone, Debug)]
pub struct Spelling {
    /// The whole descriptor.
    pub descriptor: Arc<str>,
    /// The object as a programmer writes it.
    pub name: Arc<str>,
    /// The outermost named type, or the variable's type.
    pub type_name: Arc<str>,
    /// Dotted member path.
    pub member: Option<Arc<str>>,
    /// Dotted member paths that the access may mean.
    pub candidates: Arc<[Arc<str>]>,
}

impl Spelling {
    /// Spells `object`.
    #[must_use]
    pub fn of(object: &DataObject) -> Self {
        let steps = || object.levels.iter().map(|level| &level.step);
        let members = steps().filter_map(|step| match step {
            ObjectStep::Member { name, .. } => Some(name),
            _ => None,
        });
        let members: Vec<&str> = members.map(|name| &**name).collect();
        let type_name = match object.outermost() {
            Some(ObjectStep::Made(sort, _)) => Arc::clone(sort),
            Some(step @ ObjectStep::Artificial(_)) => step.to_string().into(),
            _ => object.element().map_or_else(|| "-".into(), |element| Arc::clone(&element.name)),
        };
        Self {
            descriptor: steps().map(ObjectStep::to_string).collect::<String>().into(),
            name: source_name::name(&steps().collect::<Vec<_>>()).into(),
            type_name,
            member: (!members.is_empty()).then(|| members.join(".").into()),
            candidates: object.candidates.iter().map(|it| it.to_string().into()).collect(),
        }
    }
}

/// The words that a step adds to the descriptor of what is around it.
impl fmt::Display for ObjectStep {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artificial(artificial) => artificial.fmt(to),
            Self::Made(sort, Some(name)) => write!(to, "{{{sort} {name}}}"),
            Self::Made(sort, None) => write!(to, "{{{sort}}}"),
            Self::Untyped(name) => write!(to, "{{- {name}}}"),
            Self::Aggregate(layout) => write!(to, "{{{}}}", layout.expression),
            Self::Variable(layout, name) => write!(to, "{{{} {name}}}", layout.expression),
            Self::Pointed(layout, name) if name.is_empty() => {
                write!(to, "{{{} -}}", layout.expression)
            }
            Self::Pointed(layout, name) => write!(to, "{{{} {name}[]}}", layout.expression),
            Self::PointedBy(layout, member) => {
                member.around.iter().try_for_each(|step| step.fmt(to))?;
                write!(to, ".{{{} {}[]}}", layout.expression, member.name)
            }
            Self::Member { layout, name, width: None } => {
                write!(to, ".{{{} {name}}}", layout.expression)
            }
            Self::Member { layout, name, width: Some(width) } => {
                write!(to, ".{{{}:{width} {name}}}", layout.expression)
            }
        }
    }
}

impl fmt::Display for Artificial {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Total => "<Total>",
            Self::Scalars => "<Scalars>",
            Self::Stack => "<Stack>",
            Self::Unknown => "<Unknown>",
            Self::Other => "<Other>",
            Self::Reason(reason) => return write!(to, "<Unknown>.({})", reason.name()),
        })
    }
}

/// Dotted, as debuggers write members.
impl fmt::Display for Candidate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(names) => to.write_str(&names.join(".")),
            Self::More => to.write_str("…"),
        }
    }
}
