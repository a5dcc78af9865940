//! Places of an event's terms in `perf_event_attr`, as `format/*` in sysfs says.

/// `config`, `config1` … `config4` of `perf_event_attr` (Linux `include/uapi/linux/perf_event.h`).
pub const N_CONFIG_WORDS: usize = 5;

/// Ranges of one field: the most that a kernel has is four (`umask` of Intel's newest, Arm's
/// filters).
const MAX_RANGES: usize = 64;

/// The bits that one term sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    word: usize,
    /// First and last bit, lowest bits of the value first.
    ranges: Vec<(u32, u32)>,
}

impl Field {
    /// Reads `config1:0-15`, `config:0-7,32-35` or `config:59`. `None` where it makes no sense.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = config_word(word)?;
        let mut taken = 0u64;
        let mut bits = Vec::new();
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let overlaps = last > 63 || first > last || taken & mask(first, last) != 0;
            if overlaps || bits.len() == MAX_RANGES {
                return None;
            }
            taken |= mask(first, last);
            bits.push((first, last));
        }
        Some(Self { word, ranges: bits })
    }

    /// The largest value that fits.
    #[must_use]
    pub fn max(&self) -> u64 {
        let n_bits: u32 = self.ranges.iter().map(|(first, last)| last - first + 1).sum();
        if n_bits >= 64 { u64::MAX } else { (1 << n_bits) - 1 }
    }

    /// Makes `value` what the field holds, whatever it held before. Whether it fits.
    ///
    /// perf combines the values of an event's name and of a term after it with a bitwise or
    /// (`perf_pmu__format_pack()` without `zero`), so that `ldlat=30` on top of the default 3 is 31.
    /// What was asked for last is what we set.
    #[must_use]
    pub fn set(&self, value: u64, words: &mut [u64; N_CONFIG_WORDS]) -> bool {
        let word = &mut words[self.word];
        let mut rest = value;
        for &(first, last) in &self.ranges {
            let mask = mask(first, last);
            *word = *word & !mask | rest << first & mask;
            rest = rest.checked_shr(last - first + 1).unwrap_or(0);
        }
        rest == 0
    }
}

/// The index of the word of that name.
#[must_use]
pub fn config_word(name: &str) -> Option<usize> {
    const NAMES: [&str; N_CONFIG_WORDS] = ["config", "config1", "config2", "config3", "config4"];
    NAMES.iter().position(|known| *known == name)
}

/// Bits `first` to `last`, which is at most 63.
const fn mask(first: u32, last: u32) -> u64 {
    u64::MAX >> (63 - (last - first)) << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(field: &str, value: u64, before: [u64; 5]) -> Option<[u64; 5]> {
        let mut words = before;
        Field::parse(field).unwrap().set(value, &mut words).then_some(words)
    }

    #[test]
    fn a_value_is_laid_over_its_ranges_from_its_lowest_bit() {
        assert_eq!(words("config1:0-15", 30, [0, 3, 0, 0, 0]), Some([0, 30, 0, 0, 0]));
        // AMD's event select: the low byte, and four bits far above (amd/core.c).
        assert_eq!(words("config:0-7,32-35", 0x1d1, [0; 5]), Some([0x1_0000_00d1, 0, 0, 0, 0]));
        assert_eq!(words("config:0-7,32-35", 0x1000, [0; 5]), None);
        assert_eq!(words("config2:0", 1, [0; 5]), Some([0, 0, 1, 0, 0]));
        assert_eq!(words("config4:0-63", u64::MAX, [0; 5]), Some([0, 0, 0, 0, u64::MAX]));
        assert_eq!(words("config:63", 1, [7, 0, 0, 0, 0]), Some([1 << 63 | 7, 0, 0, 0, 0]));
    }

    #[test]
    fn nonsense_is_no_field() {
        for text in ["", "config", "config:", "config9:0-1", "config:8-2", "config:0-64", "x:0"] {
            assert_eq!(Field::parse(text), None, "{text}");
        }
        assert_eq!(Field::parse("config:0-7,4"), None, "no bit is set twice");
        assert_eq!(Field::parse("config:-1"), None);
    }

    proptest! {
        #[test]
        fn what_fits_is_all_set_and_nothing_else(
            first in 0u32..64, len in 1u32..=64, value: u64, before: u64
        ) {
            let last = (first + len - 1).min(63);
            let field = Field::parse(&format!("config:{first}-{last}")).unwrap();
            let mut words = [before, 1, 2, 3, 4];
            let fits = field.set(value, &mut words);
            prop_assert_eq!(fits, value <= field.max());
            let bits = field.max() << first;
            prop_assert_eq!(words[0] & !bits, before & !bits);
            prop_assert_eq!(words[0] & bits, value << first & bits);
            prop_assert_eq!(&words[1..], &[1, 2, 3, 4]);
        }

        #[test]
        fn garbage_never_panics(text in "(config[0-9]?:)?\\PC{0,20}") {
            let _ = Field::parse(&text);
        }
    }
}
