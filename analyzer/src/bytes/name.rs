//! Names as files have them: held to a bound, and spelled without blanks.

use crate::limit;

/// A type name as descriptors spell it: blanks become `_`.
#[must_use]
pub fn spell(name: &str) -> String {
    name.replace(' ', "_")
}

/// `name` cut at [`limit::MAX_NAME_BYTES`], at a character's boundary.
#[must_use]
pub fn bounded_name(name: &str) -> &str {
    if name.len() <= limit::MAX_NAME_BYTES {
        return name;
    }
    let end = (0..=limit::MAX_NAME_BYTES).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_a_character() {
        let long = "é".repeat(limit::MAX_NAME_BYTES);
        assert_eq!(bounded_name(&long).len(), limit::MAX_NAME_BYTES);
    }
}
