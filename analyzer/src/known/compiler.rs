//! Symbols that gcc, clang and rustc make up.

/// The mark of a part of a function that was moved away (gcc since 8, clang 14); a number may follow.
pub(crate) const COLD: &str = ".cold";

/// Beginnings of symbols of constants that have a number for a name: rustc's, and labels of assembly that were
/// kept.
const NAMELESS: [&str; 2] = ["anon.", ".L"];

/// Tells whether a symbol is that of a constant without a name.
pub(crate) fn is_nameless(symbol: &str) -> bool {
    NAMELESS.iter().any(|prefix| symbol.starts_with(prefix))
}

/// The name in a symbol of the static of a function, or of what was split: both have numbers (`n_calls.1`,
/// `pool.lto_priv.0`).
pub(crate) fn unnumbered(symbol: &str) -> &str {
    match symbol.find('.') {
        Some(end) if end != 0 => &symbol[..end],
        _ => symbol,
    }
}
