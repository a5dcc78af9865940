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
