//! Names of types as a programmer writes them: without what a library or a compiler put in.

use std::borrow::Cow;

/// Deepest nested template arguments that are looked at; what is further in stays as it is.
const MAX_DEPTH: usize = 16;

/// Name spaces that libraries put versions into: libstdc++ and libc++.
const INLINE_NAME_SPACES: [&str; 4] = ["__cxx11::", "__1::", "__ndk1::", "_V2::"];

/// Arguments that stand there by default: classes of the C++ standard library, then of Rust's.
const DEFAULT_ARGUMENTS: [&str; 11] = [
    "std::allocator",
    "std::less",
    "std::hash",
    "std::equal_to",
    "std::default_delete",
    "std::char_traits",
    "Global",
    "RandomState",
    "alloc::alloc::Global",
    "std::hash::random::RandomState",
    "std::collections::hash::map::RandomState",
];

/// Crates of Rust's standard library, whose paths nobody writes in full.
const RUST_CRATES: [&str; 4] = ["core::", "alloc::", "std::", "hashbrown::"];

/// Blocks in which containers keep their values: the class, how many of its arguments count, and the container. A pair of
/// a constant key and a value makes it the second one.
const NODES: [(&str, &str, Option<&str>); 15] = [
    ("std::_Rb_tree_node", "std::set<> node", Some("std::map<> node")),
    ("std::__tree_node", "std::set<> node", Some("std::map<> node")),
    ("std::__detail::_Hash_node", "std::unordered_set<> node", Some("std::unordered_map<> node")),
    ("std::__hash_node", "std::unordered_set<> node", Some("std::unordered_map<> node")),
    ("std::_List_node", "std::list<> node", None),
    ("std::__list_node", "std::list<> node", None),
    ("std::_Fwd_list_node", "std::forward_list<> node", None),
    ("std::__forward_list_node", "std::forward_list<> node", None),
    ("std::_Sp_counted_ptr_inplace", "std::shared_ptr<> block", None),
    ("std::__shared_ptr_emplace", "std::shared_ptr<> block", None),
    ("alloc::sync::ArcInner", "Arc<> block", None),
    ("alloc::rc::RcInner", "Rc<> block", None),
    ("alloc::rc::RcBox", "Rc<> block", None),
    ("alloc::collections::btree::node::LeafNode", "BTreeMap<> leaf", Some("")),
    ("alloc::collections::btree::node::InternalNode", "BTreeMap<> inner node", Some("")),
];

/// Pairs of a key and a value in nodes of maps, and how a key is that makes it one.
const PAIRS: [(&str, &str); 3] =
    [("std::pair", "const "), ("std::__value_type", ""), ("std::__hash_value_type", "")];

/// Classes with names of their own for the usual characters.
const STRINGS: [(&str, &str, &str); 4] = [
    ("std::basic_string", "char", "std::string"),
    ("std::basic_string", "wchar_t", "std::wstring"),
    ("std::basic_string_view", "char", "std::string_view"),
    ("std::basic_string_view", "wchar_t", "std::wstring_view"),
];

/// Numbers as gcc calls them, and as programs do. The longer ones come first.
const NUMBERS: [(&str, &str); 8] = [
    ("long long unsigned int", "unsigned long long"),
    ("long unsigned int", "unsigned long"),
    ("short unsigned int", "unsigned short"),
    ("long long int", "long long"),
    ("long int", "long"),
    ("short int", "short"),
    ("18446744073709551615UL", "-1"),
    ("18446744073709551615", "-1"),
];

/// A type's name as debug information has it, as a programmer would write it: default arguments, inline name spaces and
/// paths of Rust's own crates left out, nodes called by their container.
pub(crate) fn written(name: &str) -> String {
    spell(name.trim(), MAX_DEPTH)
}

/// Tells whether a class is one of Rust's standard library, by its name in full: of what is inside of it only the ends are
/// something that programs speak of.
pub(crate) fn is_of_rust_std(name: &str) -> bool {
    let head = name.split('<').next().unwrap_or(name);
    let last = head.rsplit("::").next().unwrap_or(head);
    RUST_CRATES.iter().any(|of| head.starts_with(of)) && last.starts_with(char::is_uppercase)
}

/// Tells whether a class is a pair as the nodes of C++'s maps have it.
pub(crate) fn is_pair(name: &str) -> bool {
    let name = written(name);
    key_and_value(&name).is_some()
}

/// Tells whether a name is reserved for libraries and compilers (C++20 section 5.10 paragraph 3), as it stands in a
/// member's name: nobody else writes it.
pub(crate) fn is_reserved(member: &str) -> bool {
    let mut letters = member.bytes();
    letters.next() == Some(b'_')
        && letters.next().is_some_and(|it| it == b'_' || it.is_ascii_uppercase())
}

fn spell(name: &str, depth: usize) -> String {
    let name = without_inline_name_spaces(name);
    // Of a pointer it is the pointer that is constant.
    if let Some(constant) = name.strip_suffix(" const").filter(|it| !it.ends_with(['*', '&']))
        && let Some(depth) = depth.checked_sub(1)
    {
        return format!("const {}", spell(constant, depth));
    }
    let Some((head, arguments, tail)) = depth.checked_sub(1).and_then(|_| template(&name)) else {
        return shortened(&number(&name));
    };
    let mut arguments: Vec<String> =
        arguments.into_iter().map(|it| spell(it.trim(), depth - 1)).collect();
    while arguments.len() > 1 && arguments.last().is_some_and(|it| is_default(it)) {
        arguments.pop();
    }
    let whole = contracted(head, &arguments);
    let whole = whole.unwrap_or_else(|| format!("{}<{}>", shortened(head), arguments.join(", ")));
    if tail.is_empty() { whole } else { whole + &spell_tail(tail, depth - 1) }
}

/// The spelling of what comes after a template's arguments: `::iterator`, ` *`.
fn spell_tail(tail: &str, depth: usize) -> String {
    match template(tail) {
        Some(_) if depth > 0 => spell(tail, depth),
        _ => tail.to_owned(),
    }
}

fn without_inline_name_spaces(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    for inline in INLINE_NAME_SPACES {
        if name.contains(inline) {
            name = Cow::Owned(name.replace(&format!("::{inline}"), "::"));
        }
    }
    name
}

/// Text before the first template arguments, the arguments, and what is after them. `None` where there are none, or their
/// brackets do not match.
fn template(name: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = name.char_indices().scan(' ', |before, (at, letter)| {
        let is_name = before.is_alphanumeric() || *before == '_';
        *before = letter;
        Some((at, letter == '<' && is_name))
    });
    let open = open.into_iter().find(|(_, is_open)| *is_open)?.0;
    let head = &name[..open];
    // `operator<`, and lambdas, whose brackets hold parameters.
    if head.ends_with("operator") || head.contains(['(', '{', '[']) {
        return None;
    }
    let inside = &name[open + 1..];
    let (mut closing, mut arguments, mut start) = (Vec::new(), Vec::new(), 0);
    let mut before = ' ';
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' => closing.push('>'),
            '(' => closing.push(')'),
            '[' => closing.push(']'),
            '{' => closing.push('}'),
            // `->` of a function's type.
            '>' if before == '-' => {}
            '>' if closing.is_empty() => {
                arguments.push(&inside[start..at]);
                return Some((head, arguments, &inside[at + 1..]));
            }
            '>' | ')' | ']' | '}' if closing.pop() != Some(letter) => return None,
            ',' if closing.is_empty() => {
                arguments.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    None
}

fn is_default(argument: &str) -> bool {
    let head = argument.split('<').next().unwrap_or(argument);
    DEFAULT_ARGUMENTS.contains(&head)
}

/// The name of a string, or of a container's node.
fn contracted(head: &str, arguments: &[String]) -> Option<String> {
    let first = arguments.first()?;
    let string = STRINGS.iter().find(|(class, of, _)| *class == head && of == first);
    if let (Some((.., short)), 1) = (string, arguments.len()) {
        return Some((*short).to_owned());
    }
    let (_, of_values, of_pairs) = NODES.iter().find(|(class, ..)| *class == head)?;
    let (name, values) = match (of_pairs, key_and_value(first)) {
        (Some(""), _) => (*of_values, arguments.join(", ")),
        (Some(of_pairs), Some((key, value))) => (*of_pairs, format!("{key}, {value}")),
        _ => (*of_values, first.clone()),
    };
    Some(name.replacen("<>", &format!("<{values}>"), 1))
}

/// Key and value of a pair that a node of a map has.
fn key_and_value(pair: &str) -> Option<(&str, &str)> {
    let (_, constant) = PAIRS
        .iter()
        .find(|(class, _)| pair.strip_prefix(class).is_some_and(|rest| rest.starts_with('<')))?;
    let (_, arguments, _) = template(pair)?;
    let [key, value] = arguments[..] else { return None };
    Some((key.trim().strip_prefix(constant)?, value.trim()))
}

/// The last part of a path into Rust's own crates; anything else as it is.
fn shortened(head: &str) -> String {
    let prefix_len = head.len() - head.trim_start_matches(['&', '*', ' ']).len();
    let (prefix, path) = head.split_at(prefix_len);
    match path.rsplit_once("::") {
        Some((_, last)) if is_of_rust_std(path) => format!("{prefix}{last}"),
        _ => head.to_owned(),
    }
}

/// `long int` as `long`, and so on.
fn number(name: &str) -> String {
    for (of_gcc, usual) in NUMBERS {
        if let Some(rest) = name.strip_prefix(of_gcc)
            && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            return format!("{usual}{rest}");
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names from what gcc 12, clang 14 and rustc write, and what their programs have in the source.
    #[test]
    fn names_are_what_the_source_has() {
        for (name, source) in [
            ("order", "order"),
            ("long int", "long"),
            ("long unsigned int", "unsigned long"),
            ("unsigned char", "unsigned char"),
            ("std::_Rb_tree_node<std::pair<long int const, Order> >", "std::map<long, Order> node"),
            ("std::_Rb_tree_node<Order>", "std::set<Order> node"),
            ("std::_Rb_tree_node<std::pair<int, Order> >", "std::set<std::pair<int, Order>> node"),
            (
                "std::__detail::_Hash_node<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, \
                 std::allocator<char> > const, long int>, true>",
                "std::unordered_map<std::string, long> node",
            ),
            ("std::_List_node<long int>", "std::list<long> node"),
            (
                "std::__1::__tree_node<std::__1::__value_type<long, Order>, void *>",
                "std::map<long, Order> node",
            ),
            (
                "std::map<long int, Order, std::less<long int>, std::allocator<std::pair<long int const, Order> > >",
                "std::map<long, Order>",
            ),
            (
                "std::vector<std::unique_ptr<Node, std::default_delete<Node> >, \
                 std::allocator<std::unique_ptr<Node, std::default_delete<Node> > > >::value_type",
                "std::vector<std::unique_ptr<Node>>::value_type",
            ),
            ("alloc::vec::Vec<r::Shape, alloc::alloc::Global>", "Vec<r::Shape>"),
            ("core::option::Option<alloc::string::String>", "Option<String>"),
            (
                "std::collections::hash::map::HashMap<u64, &str, std::hash::random::RandomState>",
                "HashMap<u64, &str>",
            ),
            (
                "alloc::collections::btree::node::LeafNode<u64, alloc::string::String>",
                "BTreeMap<u64, String> leaf",
            ),
            ("map[string]int", "map[string]int"),
            ("std::function<int(long int)>", "std::function<int(long int)>"),
            ("Holder<lambda(int)>::{closure#0}", "Holder<lambda(int)>::{closure#0}"),
        ] {
            assert_eq!(written(name), source, "{name}");
        }
    }

    #[test]
    fn hostile_names_stay_as_they_are() {
        for name in
            ["", "<", "a<", "a<b", "a<(b>)", "operator<", "operator<<int>", "a<b,c", "::", "a>b<"]
        {
            assert_eq!(written(name), name);
        }
        let deep = "a<".repeat(10_000) + &">".repeat(10_000);
        assert_eq!(written(&deep), deep);
    }

    #[test]
    fn members_of_libraries_are_known_by_their_names() {
        assert!(is_reserved("_M_storage") && is_reserved("__data") && is_reserved("_Next"));
        assert!(!is_reserved("_next") && !is_reserved("next") && !is_reserved(""));
        assert!(is_of_rust_std("alloc::vec::Vec<u8>") && !is_of_rust_std("std::vector<int>"));
        assert!(!is_of_rust_std("own::Vec") && is_pair("std::pair<int const, int>"));
    }
}
