//! Names of sources: a program can name any file as its source, and only what is called like one is opened.

use std::path::Path;

/// Endings of the sources of compiled languages, and of what compilers make code of.
const ENDINGS: [&str; 62] = [
    "c", "h", "i", "cc", "cp", "cpp", "cxx", "c++", "hh", "hp", "hpp", "hxx", "h++", "ii", "inc",
    "inl", "ipp", "ixx", "tcc", "tpp", "txx", "def", "cu", "cuh", "cl", "m", "mm", "s", "sx",
    "asm", "nasm", "rs", "go", "zig", "d", "nim", "cr", "v", "odin", "swift", "kt", "f", "for",
    "ftn", "f77", "f90", "f95", "f03", "f08", "fpp", "adb", "ads", "ada", "pas", "pp", "hs", "ml",
    "mli", "y", "yy", "l", "ll",
];

/// Tells whether a file is called as sources are: by its ending, or, as the headers of C++ are, by a word below a
/// directory of headers.
pub(super) fn is_source_name(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    match name.rsplit_once('.') {
        Some((stem, ending)) => {
            !stem.is_empty() && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
        }
        None => {
            let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            is_word && path.parent().is_some_and(is_of_headers)
        }
    }
}

/// Tells whether a directory, or one around it, is called `include`.
fn is_of_headers(directory: &Path) -> bool {
    directory.iter().any(|part| part == "include")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_like_a_source_is_one() {
        for name in [
            "/src/a.c",
            "/src/A.CPP",
            "/usr/include/c++/12/bits/stl_vector.h",
            "/usr/include/c++/12/vector",
            "/usr/include/c++/12/experimental/string_view",
            "/rustc/1/library/core/src/slice/mod.rs",
            "start.S",
        ] {
            assert!(is_source_name(Path::new(name)), "{name}");
        }
        for name in [
            "/etc/shadow",
            "/etc/ssl/private/key.pem",
            "/root/.ssh/id_ed25519",
            "/root/.netrc",
            "/src/.c",
            "/src/Makefile",
            "/usr/include/README",
            "/var/lib/secret.txt",
            "/",
            "",
        ] {
            assert!(!is_source_name(Path::new(name)), "{name}");
        }
    }
}
