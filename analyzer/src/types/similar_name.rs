//! Names that are spelled like another one.

use crate::limit;

/// The names of `known` that are spelled most like `name`, nearest first; none that differ in more than a third of it.
#[must_use]
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = compared(name);
    let most = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for other in known {
        let Some(distance) = distance(&wanted, &compared(other), most) else { continue };
        if near.iter().any(|(_, it)| *it == other) {
            continue;
        }
        let place = near.partition_point(|(known, _)| *known <= distance);
        near.insert(place, (distance, other));
        near.truncate(limit::MAX_SIMILAR_NAMES);
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// The last part of a qualified name.
fn compared(name: &str) -> String {
    let plain = name.rsplit("::").next().unwrap_or(name);
    plain.chars().take(limit::MAX_COMPARED_CHARS).collect()
}

/// Slips between two names, whatever the size of their letters: characters that are put in, left out, exchanged or
/// swapped with the next; `None` above `most`.
#[must_use]
pub fn distance(one: &str, other: &str, most: usize) -> Option<usize> {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    if one.chars().count().abs_diff(other.chars().count()) > most {
        return None;
    }
    Some(strsim::osa_distance(&one, &other)).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_what_is_quite_another_name_is_not() {
        let known = ["walk", "ns::wolk", "walks_far", "main"];
        let check = |name: &str, expect: &[&str]| {
            assert_eq!(similar(name, known.into_iter()), expect, "{name}");
        };
        check("wakl", &["walk"]);
        check("wak", &["walk"]);
        check("Walk", &["walk", "ns::wolk"]);
        check("wlk", &["walk", "ns::wolk"]);
        check("walks_fr", &["walks_far"]);
        check("mian_", &[]);
        check("", &[]);
    }

    #[test]
    fn near_names_are_told_from_far_ones() {
        assert_eq!(distance("ordre", "order", 2), Some(1));
        assert_eq!(distance("Order", "order", 2), Some(0));
        assert_eq!(distance("odr", "order", 2), Some(2));
        assert_eq!(distance("cell", "order", 2), None);
    }
}
