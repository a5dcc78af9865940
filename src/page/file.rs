//! The files of the page, and the headers that confine it.

use std::fmt::Write as _;

/// A file of the page, as it is written.
#[derive(Debug)]
struct PageFile {
    name: &'static str,
    /// Media type.
    kind: &'static str,
    text: &'static str,
}

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
pub(super) const MODULE: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal: $kind:ident,)*) => {
        /// All files, modules in an order in which none comes before one that it imports.
        static FILES: &[PageFile] = &[$(PageFile {
            name: $path,
            kind: $kind,
            text: include_str!(concat!("files/", $path)),
        },)*];
    };
}

files! {
    "index.html": HTML,
    "style.css": STYLE,
    "text.js": MODULE,
    "source.js": MODULE,
    "asking.js": MODULE,
    "column.js": MODULE,
    "dom.js": MODULE,
    "download.js": MODULE,
    "heat.js": MODULE,
    "route.js": MODULE,
    "trend.js": MODULE,
    "tree.js": MODULE,
    "treegrid.js": MODULE,
    "view_objects.js": MODULE,
    "shell.js": MODULE,
    "table.js": MODULE,
    "view_accounts.js": MODULE,
    "view_code.js": MODULE,
    "view_help.js": MODULE,
    "view_layout.js": MODULE,
    "view_measurement.js": MODULE,
    "view_object.js": MODULE,
    "view_sessions.js": MODULE,
    "view_threads.js": MODULE,
    "view_time.js": MODULE,
    "view_treemap.js": MODULE,
    "app.js": MODULE,
}

/// Headers of every answer over TCP, besides those of a file's own: browsers are to use it on this page alone
/// (CSP level 3; Fetch, sections 3.6 and 3.7).
pub(crate) const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
];

fn of_kind(kind: &'static str) -> impl Iterator<Item = &'static PageFile> {
    FILES.iter().filter(move |file| file.kind == kind)
}

/// The document.
pub(super) fn html() -> &'static str {
    of_kind(HTML).next().map_or("", |file| file.text)
}

/// The style.
pub(super) fn style() -> String {
    of_kind(STYLE).map(|file| file.text).collect()
}

/// All modules as one: what they import is in it, and nothing is exported.
pub(super) fn module() -> String {
    let mut joined = String::new();
    for PageFile { name, text, .. } in of_kind(MODULE) {
        let _ = writeln!(joined, "// {name}");
        for line in text.lines().filter(|line| !line.starts_with("import ")) {
            let _ = writeln!(joined, "{}", line.strip_prefix("export ").unwrap_or(line));
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn modules_can_be_joined() {
        let mut names = HashSet::new();
        let mut joined: HashSet<&str> = HashSet::new();
        for file in of_kind(MODULE) {
            for line in file.text.lines() {
                if let Some(import) = line.strip_prefix("import ") {
                    let from =
                        import.split("from \"./").nth(1).and_then(|it| it.strip_suffix("\";"));
                    let from = from.unwrap_or_else(|| panic!("{}: {line}", file.name));
                    assert!(!import.contains(" as "), "{}: a name is a name: {line}", file.name);
                    assert!(joined.contains(from), "{} comes before {from}", file.name);
                }
                let line = line.strip_prefix("export ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                if let (Some("const" | "let" | "function" | "class"), Some(name)) =
                    (words.next(), words.next())
                {
                    assert!(names.insert(name), "{}: {name} is there twice", file.name);
                }
                assert!(!line.starts_with("default "), "{}: {line}", file.name);
            }
            joined.insert(file.name);
        }
        let module = module();
        assert!(!module.contains("\nimport ") && !module.contains("\nexport "));
        // Neither may end the element that it is in.
        for text in [&module, &style()] {
            let text = text.to_lowercase();
            assert!(
                !text.contains("</script") && !text.contains("</style") && !text.contains("<!--")
            );
        }
    }
}
