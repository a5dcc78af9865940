//! The share of each worker in the memory of all.

/// Shares of `max_bytes` for workers that have `wanted` so much: what they have, and room to grow. Each gets that as long
/// as it is there, else those that want most get the same, and no others less than they want.
pub(super) fn shares(max_bytes: u64, wanted: Vec<u64>) -> Vec<u64> {
    let all: u64 = wanted.iter().sum();
    let n = wanted.len().max(1) as u64;
    if all <= max_bytes {
        return wanted.iter().map(|wanted| wanted + (max_bytes - all) / n).collect();
    }
    // The level up to which all can be filled.
    let mut sorted = wanted.clone();
    sorted.sort_unstable();
    let (mut left, mut level) = (max_bytes, 0);
    for (idx, wanted) in sorted.iter().enumerate() {
        let n_left = (sorted.len() - idx) as u64;
        level = left / n_left;
        if *wanted > level {
            break;
        }
        left -= wanted;
    }
    wanted.into_iter().map(|wanted| wanted.min(level)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staff::GROWTH_BYTES;
    use super::*;

    #[test]
    fn who_has_most_is_bounded_first() {
        const MIB: u64 = 1 << 20;
        let shares = |max: u64, taken: &[u64]| -> Vec<u64> {
            let wanted = taken.iter().map(|mib| mib * MIB + GROWTH_BYTES).collect();
            shares(max * MIB, wanted).iter().map(|bytes| bytes / MIB).collect()
        };
        assert_eq!(shares(300, &[10]), [300]);
        // There is room for all to grow: what is left is for whoever comes first.
        assert_eq!(shares(300, &[10, 40]), [135, 165]);
        assert_eq!(shares(100, &[10, 200]), [26, 74]);
        assert_eq!(shares(100, &[300, 10, 200]), [37, 26, 37]);
        assert_eq!(shares(30, &[300, 300, 300]), [10, 10, 10]);
        assert_eq!(shares(30, &[]), [0; 0]);
    }
}
