//! Types that are room for a value of another type, in whatever library.

/// Words in their names. libstdc++ 12 has `std::aligned_storage`, `__gnu_cxx::__aligned_membuf` and
/// `__gnu_cxx::__aligned_buffer`, and in `std::variant` an `_Uninitialized`. Programs call classes of their
/// own storage or a buffer.
const WORDS: [&str; 4] = ["aligned", "storage", "buffer", "uninit"];

/// Tells whether a type calls itself room for something.
pub(crate) fn is_storage(name: &str) -> bool {
    let outer = name.split('<').next().unwrap_or(name).to_ascii_lowercase();
    WORDS.iter().any(|word| outer.contains(word))
}

#[cfg(test)]
mod tests {
    use super::is_storage;

    /// The first three as gcc 12 writes them.
    #[test]
    fn room_is_known_by_its_name() {
        for name in [
            "__gnu_cxx::__aligned_membuf<shop::Item>",
            "std::aligned_storage<16, 8>::type",
            "std::__detail::__variant::_Uninitialized<shop::Item, true>",
            "shop::NodeStorage<shop::Item>",
            "shop::Buffer<shop::Item>",
        ] {
            assert!(is_storage(name), "{name}");
        }
        assert!(!is_storage("shop::Hash<shop::Item>"));
        assert!(!is_storage("std::vector<std::aligned_storage<8, 8> >"));
    }
}
