//! Patterns for names of types: exact names, and globs.

/// Words that may stand before a name, as C and as descriptors say them.
const KEYWORDS: [&str; 7] =
    ["struct ", "class ", "union ", "enum ", "structure:", "class:", "union:"];

/// A name of types, or a glob of names: `*` stands for any text, `?` for one character. Blanks count only between
/// words, and `_` stands for one, as in descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern {
    /// As it was typed, without the keyword.
    text: String,
    /// The same as names are compared.
    normal: Vec<char>,
    is_glob: bool,
}

impl TypePattern {
    /// Reads what was typed: `order`, `struct order`, `{structure:order}`, `std::map<*>`.
    #[must_use]
    pub fn new(typed: &str) -> Self {
        let mut text = typed.trim();
        if let Some(inside) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            text = inside;
        }
        for keyword in KEYWORDS {
            text = text.strip_prefix(keyword).unwrap_or(text).trim_start();
        }
        let text = text.strip_prefix("::").unwrap_or(text).to_owned();
        let is_glob = text.contains(['*', '?']);
        Self { normal: normal(&text).collect(), text, is_glob }
    }

    /// The name or glob, without a keyword.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Tells whether it is no more than one name.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        !self.is_glob
    }

    /// Tells whether a qualified name that ends with `own` can match.
    #[must_use]
    pub fn may_end_with(&self, own: &str) -> bool {
        self.is_glob || {
            let mut rest = self.normal.iter().rev();
            let own: Vec<char> = normal(own).collect();
            own.iter().rev().all(|sign| rest.next() == Some(sign))
        }
    }

    /// Tells whether a qualified name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.is_glob {
            return is_like(&self.normal, &normal(name).collect::<Vec<_>>());
        }
        normal(name).eq(self.normal.iter().copied())
    }
}

/// A name as it is compared: of blanks only those are left that part words, as `_`.
fn normal(name: &str) -> impl Iterator<Item = char> {
    let is_blank = |sign: char| sign == ' ' || sign == '_';
    let is_of_word = move |sign: Option<char>| {
        sign.is_some_and(|sign| sign.is_alphanumeric() || is_blank(sign) || "*?".contains(sign))
    };
    let mut before = None;
    let mut signs = name.chars().peekable();
    std::iter::from_fn(move || {
        loop {
            let sign = signs.next()?;
            let last = before.replace(sign);
            let is_part = is_of_word(last) && is_of_word(signs.peek().copied());
            match sign {
                ' ' if is_part => return Some('_'),
                // In a descriptor it may be a blank between signs: `map<int,_cell>`.
                '_' if last.is_some_and(|last| ",<>".contains(last)) => {}
                ' ' => {}
                sign => return Some(sign),
            }
        }
    })
}

/// Matches a glob, in a time that grows as the product of both lengths at most: each star is tried once more only from
/// where the last one began.
fn is_like(glob: &[char], name: &[char]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(sign) = name.get(of_name) {
        match glob.get(at) {
            Some('*') => {
                star = Some((at + 1, of_name));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == sign => {
                (at, of_name) = (at + 1, of_name + 1);
            }
            _ => {
                let Some((after, taken)) = &mut star else { return false };
                *taken += 1;
                (at, of_name) = (*after, *taken);
            }
        }
    }
    glob[at..].iter().all(|sign| *sign == '*')
}

/// The part of a qualified name after its name spaces: `b<c::d>` of `a::b<c::d>`.
#[must_use]
pub fn own_part(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut last = ' ';
    for (at, sign) in name.char_indices() {
        match sign {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            ':' if last == ':' && depth == 0 => start = at + 1,
            _ => {}
        }
        last = sign;
    }
    &name[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_the_program_and_as_descriptors_write_them() {
        for (typed, name) in [
            ("order", "order"),
            ("struct order", "order"),
            ("{structure:order}", "order"),
            ("::ns::order", "ns::order"),
            ("std::map<int, cell>", "std::map<int,cell>"),
            ("std::map<int,_cell>", "std::map<int, cell>"),
            ("std::_Vector_base<unsigned_char>", "std::_Vector_base<unsigned char>"),
            ("std::map<*>", "std::map<int, cell, std::less<int> >"),
            ("*", "anything"),
            ("o?der*", "orders"),
            ("a*b*c", "axxbxxc"),
            ("class_t", "class_t"),
        ] {
            assert!(TypePattern::new(typed).matches(name), "{typed} {name}");
        }
        for (typed, name) in [
            ("order", "orders"),
            ("order", "ns::order"),
            ("std::map<*>", "std::multimap<int>"),
            ("a*b*c", "axxcxxb"),
            ("unsignedchar", "unsigned char"),
            ("?", ""),
        ] {
            assert!(!TypePattern::new(typed).matches(name), "{typed} {name}");
        }
    }

    #[test]
    fn a_hostile_glob_ends() {
        let glob = format!("{}b", "*a".repeat(1000));
        assert!(!TypePattern::new(&glob).matches(&"a".repeat(4000)));
    }

    #[test]
    fn the_own_part_of_a_name_is_after_its_name_spaces() {
        assert_eq!(own_part("a::b<c::d>"), "b<c::d>");
        assert_eq!(own_part("cell"), "cell");
    }

    #[test]
    fn only_names_with_that_end_are_looked_at_further() {
        let pattern = TypePattern::new("ns::order");
        assert!(pattern.may_end_with("order") && !pattern.may_end_with("orders"));
        assert!(TypePattern::new("n*").may_end_with("orders"));
    }
}
