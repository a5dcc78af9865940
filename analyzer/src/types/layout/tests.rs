//! Layouts that are one to a reader.

use super::*;
use crate::types::sample::{aggregate, member, number};

#[test]
fn layouts_are_alike_where_nothing_that_is_shown_differs() {
    let node = |key: &str, size, at| {
        let members =
            vec![member(key, 0, &number("int", size)), member("next", at, &number("long int", 8))];
        aggregate(AggregateKind::Structure, "node", 16, members)
    };
    assert_eq!(node("key", 4, 8), node("key", 4, 8));
    assert_ne!(node("key", 4, 8), node("id", 4, 8), "another name");
    assert_ne!(node("key", 4, 8), node("key", 2, 8), "another size");
    assert_ne!(node("key", 4, 8), node("key", 4, 4), "another place");
    let of = |kind| aggregate(kind, "node", 16, Vec::new());
    assert_ne!(of(AggregateKind::Structure), of(AggregateKind::Union));
    let array = |count| Layout::array_of(number("int", 4), count);
    assert_eq!(array(Some(4)), array(Some(4)));
    assert_ne!(array(Some(4)), array(None));
}

#[test]
fn an_array_without_a_length_reaches_on_only_where_nothing_lies_behind_it() {
    let (long, rest) = (number("long int", 8), Arc::new(Layout::array_of(number("int", 4), None)));
    let of = |kind, places: &[(&str, u64, &Arc<Layout>)]| {
        let members = places.iter().map(|(name, at, layout)| member(name, *at, layout));
        aggregate(kind, "open", 8, members.collect())
    };
    assert!(of(AggregateKind::Structure, &[("id", 0, &long), ("rest", 8, &rest)]).holds(100));
    let first = of(AggregateKind::Structure, &[("rest", 0, &rest), ("id", 0, &long)]);
    assert!(first.holds(7) && !first.holds(8));
    // All arms of a union begin at its start.
    for arms in [[("rest", 0, &rest), ("id", 0, &long)], [("id", 0, &long), ("rest", 0, &rest)]] {
        assert!(of(AggregateKind::Union, &arms).holds(100));
    }
}
