//! Types beside the names of members, about as the program's source has them.

use dataspace_analyzer::types::type_expression::{Keyword, Prefix, TypeExpression};

/// Steps of a type that are spelled; those below are an ellipsis. Sources stay below ten.
const MAX_STEPS: usize = 64;

/// `expression` as C writes it: `struct cell *[4]`, `const char *`.
pub(super) fn source_text(expression: &TypeExpression) -> String {
    let mut text = String::new();
    spell(expression, MAX_STEPS, &mut text);
    text
}

fn spell(expression: &TypeExpression, steps: usize, text: &mut String) {
    let Some(steps) = steps.checked_sub(1) else {
        text.push('…');
        return;
    };
    match expression {
        TypeExpression::Base { name, .. } => text.push_str(name),
        TypeExpression::Named { keyword, name } => {
            text.push_str(word(*keyword));
            text.push_str(name.as_deref().unwrap_or(match keyword {
                Keyword::None => "-",
                _ => "{…}",
            }));
        }
        TypeExpression::Prefixed { prefix, of } => prefixed(*prefix, of, steps, text),
        TypeExpression::Array { .. } => {
            let (mut lengths, mut element) = (String::new(), expression);
            while let TypeExpression::Array { count, of } = element {
                // C writes the outermost dimension first, which is the last one made.
                let length = count.map(|count| count.to_string()).unwrap_or_default();
                lengths.push_str(&format!("[{length}]"));
                element = of;
            }
            spell(element, steps, text);
            if !text.ends_with('*') {
                text.push(' ');
            }
            text.push_str(&lengths);
        }
        TypeExpression::Function => text.push_str("(function)"),
        TypeExpression::Void => text.push_str("void"),
        TypeExpression::Unknown => text.push('?'),
    }
}

fn prefixed(prefix: Prefix, of: &TypeExpression, steps: usize, text: &mut String) {
    let qualifier = match prefix {
        Prefix::Const => "const",
        Prefix::Volatile => "volatile",
        Prefix::Restrict => "restrict",
        Prefix::Atomic => "_Atomic",
        Prefix::Pointer | Prefix::PointerToMember | Prefix::Reference | Prefix::RvalueReference => {
            spell(of, steps, text);
            if !text.ends_with(['*', '&']) {
                text.push(' ');
            }
            text.push_str(match prefix {
                Prefix::Pointer => "*",
                Prefix::Reference => "&",
                Prefix::RvalueReference => "&&",
                _ => "::*",
            });
            return;
        }
    };
    // A qualifier of a pointer comes after it.
    if matches!(of, TypeExpression::Prefixed { prefix: Prefix::Pointer, .. }) {
        spell(of, steps, text);
        text.push_str(&format!(" {qualifier}"));
    } else {
        text.push_str(&format!("{qualifier} "));
        spell(of, steps, text);
    }
}

/// The word before a name.
pub(super) const fn word(keyword: Keyword) -> &'static str {
    match keyword {
        Keyword::Structure => "struct ",
        Keyword::Class => "class ",
        Keyword::Union => "union ",
        Keyword::Enumeration => "enum ",
        Keyword::None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_analyzer::types::type_expression::Encoding;
    use std::sync::Arc;

    #[test]
    fn types_read_as_in_c() {
        let base = |name: &str| {
            let (name, encoding) = (name.into(), Encoding::Integer);
            Arc::new(TypeExpression::Base { name, encoding, n_bytes: 8 })
        };
        let made = |prefix, of: &Arc<TypeExpression>| {
            Arc::new(TypeExpression::Prefixed { prefix, of: Arc::clone(of) })
        };
        let cell = Some("cell".into());
        let cell = Arc::new(TypeExpression::Named { keyword: Keyword::Structure, name: cell });
        let pointer = made(Prefix::Pointer, &cell);
        let text = made(Prefix::Pointer, &made(Prefix::Const, &base("char")));
        let grid =
            TypeExpression::array_of(&TypeExpression::array_of(&base("int"), Some(3)), Some(2));
        for (expected, expression) in [
            ("struct cell *", &pointer),
            ("struct cell **", &made(Prefix::Pointer, &pointer)),
            ("struct cell *[4]", &TypeExpression::array_of(&pointer, Some(4))),
            ("const char *", &text),
            ("struct cell * const", &made(Prefix::Const, &pointer)),
            ("int [2][3]", &grid),
            ("char []", &TypeExpression::array_of(&base("char"), None)),
            ("long int &", &made(Prefix::Reference, &base("long int"))),
            ("void *", &made(Prefix::Pointer, &TypeExpression::Void.into())),
        ] {
            assert_eq!(source_text(expression), expected);
        }
        let mut deep = base("int");
        for _ in 0..10_000 {
            deep = made(Prefix::Pointer, &deep);
        }
        assert!(source_text(&deep).starts_with('…'));
    }
}
