//! LLVM's C++ library.

/// Classes whose pointers lead to objects side by side, as their names begin. All seen in libc++ 14.
pub(crate) const SEQUENCES: [&str; 4] =
    ["std::__1::vector<", "std::__1::span<", "std::__1::__wrap_iter<", "std::__1::__split_buffer<"];

#[cfg(test)]
mod tests {
    use super::SEQUENCES;

    /// Names from what clang 14 writes of a program that has a vector, its iterator, a span and a deque.
    #[test]
    fn classes_of_sequences_are_known() {
        for name in [
            "std::__1::vector<Item, std::__1::allocator<Item> >",
            "std::__1::__wrap_iter<Item *>",
            "std::__1::span<Item, 18446744073709551615UL>",
            "std::__1::__split_buffer<Item, std::__1::allocator<Item> &>",
        ] {
            let n_known = SEQUENCES.iter().filter(|known| name.starts_with(**known)).count();
            assert_eq!(n_known, 1, "{name}");
        }
    }
}
