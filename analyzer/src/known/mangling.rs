//! Mangling of C++ and Rust symbols, as far as it tells what they are.

/// The beginning of all names of C++, and of Rust's of its first, `legacy` mangling (Itanium C++ ABI, section
/// 5.1.2).
const CPP: &str = "_Z";

/// The beginning of names in Rust's mangling of version 0 (RFC 2603).
const RUST: &str = "_R";

/// Objects that a compiler makes for a type (Itanium C++ ABI, section 5.1.4): how their names begin, and what
/// stands before the type when they are spelled.
pub(crate) const MADE: [(&str, &str); 6] = [
    ("_ZTV", "vtable for "),
    ("_ZTI", "typeinfo for "),
    ("_ZTS", "typeinfo name for "),
    ("_ZTT", "VTT for "),
    ("_ZTC", "construction vtable for "),
    ("_ZGV", "guard variable for "),
];

/// Tells whether a name may be one of C++.
pub(crate) fn is_cpp(name: &str) -> bool {
    name.starts_with(CPP)
}

/// Tells whether a name is mangled in any of these ways.
pub(crate) fn is_mangled(name: &str) -> bool {
    is_cpp(name) || name.starts_with(RUST)
}

/// Tells whether a name may be one of Rust. The `legacy` mangling ends with a hash of 17 bytes.
pub(crate) fn is_rust(name: &str) -> bool {
    name.starts_with(RUST) || name.contains("17h") && name.ends_with('E')
}

/// Reads a thunk's name: the offset in the object at which it is entered, in bytes, and its method's name but for
/// the beginning that all have (Itanium C++ ABI, section 5.1.4.2: `_ZTh`, how far back to go, `n` before a number
/// below 0, `_`, the rest of the method's name).
pub(crate) fn thunk(name: &str) -> Option<(i64, &str)> {
    let (back, method) = name.strip_prefix("_ZTh")?.split_once('_')?;
    let offset = match back.strip_prefix('n') {
        Some(forth) => forth.parse::<i64>().ok()?,
        None => back.parse::<i64>().ok()?.checked_neg()?,
    };
    Some((offset, method))
}

/// Tells whether `name` is that of the method that a thunk is for.
pub(crate) fn is_method(name: &str, of_thunk: &str) -> bool {
    name.strip_prefix(CPP) == Some(of_thunk)
}

/// The class of a method, or the name space of a function, with `::` between its parts: of names without templates
/// (Itanium C++ ABI, section 5.1.3: `_ZN`, how it is qualified, then lengths and names up to the method's own).
pub(crate) fn class_of_method(name: &str) -> Option<String> {
    let nested = name.strip_prefix("_ZN")?.trim_start_matches(['r', 'V', 'K', 'R', 'O']);
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = match nested.strip_prefix("St") {
        Some(rest) => {
            parts.push("std");
            rest
        }
        None => nested,
    };
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some((length, named)) = rest.split_at_checked(digits).filter(|_| digits != 0) else {
            break;
        };
        let (part, after) = named.split_at_checked(length.parse().ok()?)?;
        if part.starts_with("_GLOBAL__N") {
            return None;
        }
        parts.push(part);
        rest = after;
    }
    match rest.bytes().next()? {
        // The last name is the method's.
        b'E' => {
            parts.pop();
        }
        // A constructor, destructor or operator.
        b'C' | b'D' | b'a'..=b'z' => {}
        _ => return None,
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// Tells whether a method's name is that of a constructor or destructor.
pub(crate) fn makes_or_ends(name: &str) -> bool {
    let ends = ["C1E", "C2E", "D0E", "D1E", "D2E"];
    ends.iter().any(|end| name.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_tell_their_class() {
        for (name, class) in [
            ("_ZN7leveldb8IteratorD2Ev", Some("leveldb::Iterator")),
            ("_ZNK7leveldb8Iterator3keyEv", Some("leveldb::Iterator")),
            ("_ZN5ShapeplERKS_", Some("Shape")),
            ("_ZNSt6thread4joinEv", Some("std::thread")),
            ("_ZN12_GLOBAL__N_15ShapeD2Ev", None),
            ("_ZN3BoxIiE3getEv", None),
            ("_ZN99ShortE", None),
            ("_ZN18446744073709551616xE", None),
            ("_ZN", None),
            ("main", None),
        ] {
            assert_eq!(class_of_method(name).as_deref(), class, "{name}");
        }
    }

    #[test]
    fn names_tell_their_language() {
        for (name, cpp, rust) in [
            ("_ZN4shop5Order5printEv", true, false),
            ("_ZN1m5TABLE17h0123456789abcdefE", true, true),
            ("_RNvCs8rhTZKbY3lC_1m5TABLE", false, true),
            ("main", false, false),
        ] {
            assert_eq!((is_cpp(name), is_rust(name)), (cpp, rust), "{name}");
            assert_eq!(is_mangled(name), cpp || rust, "{name}");
        }
    }

    #[test]
    fn a_thunk_tells_its_method_and_how_far_into_the_object_it_is_entered() {
        let (offset, method) = thunk("_ZThn16_N4shop5OrderD1Ev").unwrap();
        assert_eq!((offset, method), (16, "N4shop5OrderD1Ev"));
        assert!(is_method("_ZN4shop5OrderD1Ev", method) && !is_method("N4shop5OrderD1Ev", method));
        assert_eq!(thunk("_ZTh8_N1A1fEv"), Some((-8, "N1A1fEv")));
        assert_eq!(thunk("_ZTv0_n24_N4shop5OrderD1Ev"), None);
    }
}
