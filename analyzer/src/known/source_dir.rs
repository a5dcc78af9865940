//! Directories of sources that are a compiler's or a library's: code that programs put in line without having written it.

/// Wherever compilers and distributions put them: rustc's remapped path, its component `rust-src`, headers of C and C++.
const LIBRARIES: [&str; 4] = ["/rustc/", "/usr/include/", "/usr/lib/", "/usr/local/include/"];

/// The same, anywhere in a path.
const INSIDE: [&str; 3] = ["/rustlib/src/", "/.cargo/registry/", "/include/c++/"];

/// Tells whether a source file of this path is one of them.
pub(crate) fn is_library(path: &str) -> bool {
    LIBRARIES.iter().any(|start| path.starts_with(start))
        || INSIDE.iter().any(|part| path.contains(part))
}
