//! Lists of CPUs as the kernel writes them: `0-3,5`.

/// `CONFIG_NR_CPUS` is at most 8192 (`arch/x86/Kconfig`).
pub(crate) const MAX_CPUS: i32 = 8_192;

/// The CPUs of a list such as `0-3,5`, in order; an empty list has none. `None` where it makes no
/// sense.
pub(crate) fn cpu_list(list: &str) -> Option<Vec<i32>> {
    let mut cpus = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        if first < 0 || last < first || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
        if cpus.len() > MAX_CPUS as usize {
            return None;
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_ranges_and_single_ones() {
        assert_eq!(cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list("0"), Some(vec![0]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for nonsense in ["x", "3-", "-3", "5-2", "0-99999999", "0--1"] {
            assert_eq!(cpu_list(nonsense), None, "{nonsense}");
        }
        let endless = "0-8191,".repeat(3);
        assert_eq!(cpu_list(&endless), None, "more CPUs than a kernel can have");
    }
}
