//! Names that are spelled like another one.

use crate::limit;

/// The names of `known` that are spelled most like `name`, nearest first; none that differ in more than a third of it.
#[must_use]
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = compared(name);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for other in known {
        let distance = distance(&wanted, &compared(other));
        if distance > (wanted.len() / 3).max(1) || near.iter().any(|(_, it)| *it == other) {
            continue;
        }
        let place = near.partition_point(|(known, _)| *known <= distance);
        near.insert(place, (distance, other));
        near.truncate(limit::MAX_SIMILAR_NAMES);
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// The last part of a qualified name, in small letters.
fn compared(name: &str) -> Vec<char> {
    let plain = name.rsplit("::").next().unwrap_or(name);
    plain.chars().take(limit::MAX_COMPARED_CHARS).flat_map(char::to_lowercase).collect()
}

/// Characters to put in, take out or change to make one of the other (Levenshtein).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, sign) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, opposite) in other.iter().enumerate() {
            let changed = diagonal + usize::from(sign != opposite);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
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
        check("wakl", &[]);
        check("wak", &["walk"]);
        check("Walk", &["walk", "ns::wolk"]);
        check("wlk", &["walk", "ns::wolk"]);
        check("walks_fr", &["walks_far"]);
        check("mian_", &[]);
        check("", &[]);
    }
}
