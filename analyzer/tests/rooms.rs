//! Order of the analyzer's rooms, and the size of circles inside them.

#[path = "../../tests/support/rooms.rs"]
#[allow(dead_code, reason = "other crates hold other rules")]
mod rules;

use rules::Sources;
use std::path::Path;

/// The rooms, from the lowest. A room imports only from those before it.
const ROOMS: [&str; 17] = [
    "limit",
    "bytes",
    "known",
    "types",
    "elf",
    "x86_64",
    "dwarf",
    "code",
    "dataflow",
    "index",
    "process",
    "attribution",
    "totals",
    "history",
    "query",
    "sharing",
    "session",
];

fn analyzer() -> Sources {
    Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn rooms_import_from_those_below_only() {
    assert_eq!(analyzer().upward_imports(&ROOMS), [""; 0]);
}

#[test]
fn files_of_a_room_import_each_other_in_small_circles_only() {
    assert_eq!(analyzer().large_circles(), [""; 0]);
}

#[test]
fn each_name_is_of_one_type() {
    assert_eq!(analyzer().shared_type_names(), [""; 0]);
}

#[test]
fn doc_comments_of_the_analyzer_open_with_a_phrase() {
    assert_eq!(analyzer().clauses_for_titles(), [""; 0]);
}

#[test]
fn only_the_room_of_the_architecture_names_the_decoder() {
    let sources = analyzer();
    let others = sources.texts().filter(|(file, _)| !file.starts_with("x86_64/"));
    let others = others.filter(|(_, text)| text.contains("iced_x86")).map(|(file, _)| file);
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn nothing_public_has_a_type_of_the_decoder() {
    let sources = analyzer();
    let mut wrong = Vec::new();
    let mut n_looked_at = 0;
    for (file, text) in sources.texts() {
        let imports =
            text.split("use iced_x86::").skip(1).filter_map(|rest| rest.split(';').next());
        // Of `Register as Iced` the second word is the type's name here.
        let imports = imports.flat_map(|list| list.split(','));
        let decoder: Vec<&str> = imports.filter_map(|import| words(import).last()).collect();
        for item in public_items(text) {
            n_looked_at += 1;
            let is_leak = |word: &str| word == "iced_x86" || decoder.contains(&word);
            wrong.extend(words(item).find(|word| is_leak(word)).map(|_| format!("{file}: {item}")));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(n_looked_at > 100, "the items are found: {n_looked_at}");
}

/// What other crates see: heads of functions, fields, types with another name, and whole enums.
fn public_items(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("pub ").map(|(at, _)| at);
    let starts = starts.filter(|at| {
        let before = text[..*at].trim_end_matches(' ');
        before.is_empty() || before.ends_with('\n')
    });
    starts.map(|at| {
        let item = &text[at..];
        let head = item.lines().next().unwrap_or_default();
        let end = match words(head).nth(1) {
            Some("enum") => item.find("\n}"),
            Some("fn" | "const" | "type") => item.find(['{', ';']),
            _ => None,
        };
        &item[..end.unwrap_or(head.len())]
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| sign != '_' && !sign.is_alphanumeric()).filter(|word| !word.is_empty())
}
