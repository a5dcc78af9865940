//! The files of the page, and the headers that confine it.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct PageFile {
    /// Path of its URL.
    pub(crate) path: &'static str,
    /// Media type.
    pub(crate) kind: &'static str,
    /// Content.
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
pub(super) const MODULE: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal: $kind:ident,)*) => {
        /// All files, modules in an order in which none comes before one that it imports.
        pub(crate) static FILES: &[PageFile] = &[$(PageFile {
            path: concat!("/", $path),
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

/// The file at the path of a request.
pub(crate) fn file(path: &str) -> Option<&'static PageFile> {
    let path = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|file| file.path == path)
}
