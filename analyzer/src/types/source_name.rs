//! Names of data objects as a programmer writes them: `order.next`, `std::map<long, Order> node.qty`.

use crate::known::written::{is_of_rust_std, is_pair, is_reserved, written};
use crate::types::data_object::{Artificial, ObjectStep};
use crate::types::layout::Layout;
use crate::types::type_expression::{Keyword, Prefix, TypeExpression};
use std::borrow::Cow;

/// The part of a name that a step adds to what is around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamePart {
    /// Its text: `.next` of a member, the whole name of an outermost object.
    pub text: String,
    /// True where names of what is inside leave it out, because it is a library's own or has no name.
    pub is_elided: bool,
}

/// The name of an object by the steps to it, outermost first.
#[must_use]
pub fn name(steps: &[&ObjectStep]) -> String {
    let mut name = String::new();
    for at in 0..steps.len() {
        let part = part(&steps[..=at]);
        if at + 1 == steps.len() || !part.is_elided {
            name.push_str(&part.text);
        }
    }
    name
}

/// The part that the last of these steps adds.
#[must_use]
pub fn part(steps: &[&ObjectStep]) -> NamePart {
    let [around @ .., step] = steps else {
        return NamePart { text: String::new(), is_elided: false };
    };
    let whole = |text: String| NamePart { text, is_elided: false };
    match step {
        ObjectStep::Artificial(Artificial::Reason(reason)) => {
            whole(format!(".({})", reason.name()))
        }
        ObjectStep::Artificial(artificial) => whole(artificial.to_string()),
        ObjectStep::Made(sort, Some(name)) => whole(format!("{sort} {name}")),
        ObjectStep::Made(sort, None) => whole(sort.to_string()),
        ObjectStep::Untyped(name) => whole(name.to_string()),
        ObjectStep::Aggregate(layout) => whole(type_name(&layout.expression)),
        ObjectStep::Variable(layout, name) => {
            whole(format!("{name}: {}", type_name(&layout.expression)))
        }
        ObjectStep::Pointed(layout, name) if name.is_empty() => {
            whole(format!("(unnamed): {}", type_name(&layout.expression)))
        }
        ObjectStep::Pointed(layout, name) => {
            whole(format!("{name}[]: {}", type_name(&layout.expression)))
        }
        ObjectStep::PointedBy(layout, member) => {
            let around: Vec<&ObjectStep> = member.around.iter().collect();
            let of = type_name(&layout.expression);
            whole(format!("{}.{}[]: {of}", name_around(&around), member.name))
        }
        ObjectStep::Member { layout, name, .. } => member(layout, name, around),
    }
}

/// The name of what is around, as names of what is inside begin.
fn name_around(steps: &[&ObjectStep]) -> String {
    let parts = (0..steps.len()).map(|at| part(&steps[..=at]));
    parts.filter(|part| !part.is_elided).map(|part| part.text).collect()
}

fn member(layout: &Layout, name: &str, around: &[&ObjectStep]) -> NamePart {
    let holder = around.last().and_then(|step| step.layout()).map(|it| it.innermost());
    let is_of_rust = holder.is_some_and(|holder| is_of_rust_std(full_name(holder)));
    match name {
        "-" => NamePart { text: format!(".{}", type_name(&layout.expression)), is_elided: true },
        "<base>" => {
            NamePart { text: format!(".{}", type_name(&layout.expression)), is_elided: true }
        }
        // A tuple's or a variant's, in Rust: `__0`.
        _ if is_number(name) => {
            NamePart { text: format!(".{}", &name[2..]), is_elided: is_of_rust }
        }
        _ => {
            let is_value = name == "second" && is_in_node(around);
            let is_elided = is_of_rust || is_value || is_reserved(name);
            NamePart { text: format!(".{name}"), is_elided }
        }
    }
}

/// Tells whether the last step is a pair that a node of a map holds.
fn is_in_node(around: &[&ObjectStep]) -> bool {
    let [.., ObjectStep::Member { layout, name, .. }] = around else { return false };
    is_reserved(name) && is_pair(full_name(layout))
}

fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix("__").unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// The name of a type with its name spaces.
fn full_name(layout: &Layout) -> &str {
    match &*layout.expression {
        TypeExpression::Named { name: Some(name), .. } => name,
        _ => &layout.name,
    }
}

/// A type as C spells it in a cast, and other languages nearly so.
#[must_use]
pub fn type_name(of: &TypeExpression) -> String {
    match of {
        TypeExpression::Base { name, .. } | TypeExpression::Named { name: Some(name), .. } => {
            written(name)
        }
        TypeExpression::Named { keyword, name: None } => format!("({})", unnamed(*keyword)),
        TypeExpression::Prefixed { prefix, of } => prefixed(*prefix, of),
        TypeExpression::Array { .. } => {
            let (element, counts) = dimensions(of);
            type_name(element) + &counts
        }
        TypeExpression::Function => "function".to_owned(),
        TypeExpression::Void => "void".to_owned(),
        TypeExpression::Unknown => "?".to_owned(),
    }
}

/// The innermost element of an array, and its lengths.
fn dimensions(mut of: &TypeExpression) -> (&TypeExpression, String) {
    let mut counts = String::new();
    while let TypeExpression::Array { count, of: element } = of {
        let count = count.map_or(Cow::Borrowed(""), |count| count.to_string().into());
        counts.push_str(&format!("[{count}]"));
        of = element;
    }
    (of, counts)
}

fn prefixed(prefix: Prefix, of: &TypeExpression) -> String {
    let inner = type_name(of);
    let is_pointer = |text: &str| text.ends_with(['*', '&']);
    let after = |mark: &str| {
        let blank = if is_pointer(&inner) { "" } else { " " };
        format!("{inner}{blank}{mark}")
    };
    match prefix {
        Prefix::Pointer => after("*"),
        Prefix::Reference => after("&"),
        Prefix::RvalueReference => after("&&"),
        Prefix::PointerToMember => after("::*"),
        Prefix::Const | Prefix::Volatile | Prefix::Restrict | Prefix::Atomic => {
            let word = match prefix {
                Prefix::Const => "const",
                Prefix::Volatile => "volatile",
                Prefix::Restrict => "restrict",
                _ => "_Atomic",
            };
            if is_pointer(&inner) { format!("{inner} {word}") } else { format!("{word} {inner}") }
        }
    }
}

const fn unnamed(keyword: Keyword) -> &'static str {
    match keyword {
        Keyword::Structure => "unnamed struct",
        Keyword::Class => "unnamed class",
        Keyword::Union => "unnamed union",
        Keyword::Enumeration => "unnamed enum",
        Keyword::None => "unnamed type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::data_object::PointerMember;
    use crate::types::layout::AggregateKind;
    use crate::types::sample::{aggregate, number};
    use std::sync::Arc;

    fn structure(name: &str) -> Arc<Layout> {
        aggregate(AggregateKind::Structure, name, 8, vec![])
    }

    fn step(layout: &Arc<Layout>, name: &str) -> ObjectStep {
        ObjectStep::Member { layout: Arc::clone(layout), name: name.into(), width: None }
    }

    fn spelled(steps: &[ObjectStep]) -> (String, String) {
        let steps: Vec<&ObjectStep> = steps.iter().collect();
        (name(&steps), part(&steps).text)
    }

    #[test]
    fn members_are_named_as_the_source_reaches_them() {
        let long = number("long int", 8);
        let order = structure("order");
        let next = [ObjectStep::Aggregate(Arc::clone(&order)), step(&long, "next")];
        assert_eq!(spelled(&next), ("order.next".into(), ".next".into()));
        let node = structure("std::_Rb_tree_node<std::pair<long int const, Order> >");
        let pair = structure("std::pair<long int const, Order>");
        let to_value = [
            ObjectStep::Aggregate(node),
            step(&pair, "_M_storage"),
            step(&order, "second"),
            step(&long, "qty"),
        ];
        assert_eq!(spelled(&to_value).0, "std::map<long, Order> node.qty");
        assert_eq!(spelled(&to_value[..3]).0, "std::map<long, Order> node.second");
        let union = aggregate(AggregateKind::Union, "-", 8, vec![]);
        let inside = [ObjectStep::Aggregate(order), step(&union, "-"), step(&long, "key")];
        assert_eq!(spelled(&inside).0, "order.key");
    }

    #[test]
    fn a_pair_of_ones_own_is_no_value_of_a_map() {
        let long = number("long int", 8);
        let pair = structure("std::pair<long int const, Order>");
        let steps = [
            ObjectStep::Aggregate(structure("own")),
            step(&pair, "best"),
            step(&structure("Order"), "second"),
            step(&long, "qty"),
        ];
        assert_eq!(spelled(&steps).0, "own.best.second.qty");
    }

    #[test]
    fn of_rusts_own_types_only_the_ends_are_told() {
        let (long, shape) = (number("u64", 8), structure("r::Shape"));
        let steps = [
            ObjectStep::Aggregate(structure("alloc::vec::Vec<r::Shape, alloc::alloc::Global>")),
            step(&structure("alloc::raw_vec::RawVec<r::Shape, alloc::alloc::Global>"), "buf"),
            step(&long, "ptr"),
        ];
        assert_eq!(spelled(&steps).0, "Vec<r::Shape>.ptr");
        let steps = [ObjectStep::Aggregate(shape), step(&structure("r::Shape::Circle"), "Circle")];
        let inner = [steps.to_vec(), vec![step(&long, "__0")]].concat();
        assert_eq!(spelled(&inner).0, "r::Shape.Circle.0");
    }

    #[test]
    fn scalars_have_their_type_after_them() {
        let long = number("long unsigned int", 8);
        let array = Arc::new(Layout::array_of(Arc::clone(&long), Some(16)));
        let variable = ObjectStep::Variable(array, "counters".into());
        assert_eq!(spelled(&[variable]).0, "counters: unsigned long[16]");
        let around = vec![ObjectStep::Aggregate(structure("PCache1"))];
        let member = Arc::new(PointerMember { around, name: "apHash".into() });
        let pointed = ObjectStep::PointedBy(long, member);
        assert_eq!(spelled(&[pointed]).0, "PCache1.apHash[]: unsigned long");
    }

    #[test]
    fn types_are_spelled_as_in_c() {
        let named = |name: &str| {
            Arc::new(TypeExpression::Named { keyword: Keyword::Structure, name: Some(name.into()) })
        };
        let to = |prefix, of: &Arc<TypeExpression>| {
            Arc::new(TypeExpression::Prefixed { prefix, of: Arc::clone(of) })
        };
        let pointer = to(Prefix::Pointer, &to(Prefix::Const, &named("order")));
        assert_eq!(type_name(&pointer), "const order *");
        assert_eq!(type_name(&to(Prefix::Pointer, &pointer)), "const order **");
        assert_eq!(type_name(&to(Prefix::Const, &pointer)), "const order * const");
        let rows = TypeExpression::array_of(&TypeExpression::array_of(&pointer, Some(3)), Some(2));
        assert_eq!(type_name(&rows), "const order *[2][3]");
    }
}
