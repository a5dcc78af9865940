//! Sizes of `struct perf_event_attr` through its versions.
//!
//! Source: `PERF_ATTR_SIZE_VER*` in Linux `include/uapi/linux/perf_event.h`.

use crate::sys::attr_bytes::as_bytes;
use perf_event_open_sys::bindings::perf_event_attr;

/// `PERF_ATTR_SIZE_VER0`, of Linux 2.6.31: the smallest there is.
pub(crate) const MIN_BYTES: usize = VERSION_BYTES[0];
/// Up to the last field that a reader needs, `sample_regs_intr` (`PERF_ATTR_SIZE_VER4`).
pub(crate) const USED_BYTES: usize = VERSION_BYTES[4];
/// The ends of the structure's versions.
const VERSION_BYTES: [usize; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];

/// The length of the oldest version that has all fields in use: a reader refuses attributes that
/// are longer than those it knows.
pub(crate) fn used_bytes(attr: &perf_event_attr) -> usize {
    let bytes = as_bytes(attr);
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    VERSION_BYTES.into_iter().find(|&n_bytes| n_bytes >= used).unwrap_or(bytes.len())
}

/// The first `n_bytes` of `attr`, which say themselves that they are so many.
pub(crate) fn truncated(attr: &perf_event_attr, n_bytes: usize) -> Vec<u8> {
    let attr = perf_event_attr { size: n_bytes as u32, ..*attr };
    let mut bytes = as_bytes(&attr).to_vec();
    bytes.resize(n_bytes, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_version_that_holds_all_is_chosen() {
        let mut attr = perf_event_attr { type_: 1, size: 136, ..perf_event_attr::default() };
        assert_eq!(used_bytes(&attr), 64);
        attr.sample_regs_intr = 1;
        assert_eq!(used_bytes(&attr), 104);
        attr.sig_data = 1;
        assert_eq!(used_bytes(&attr), 128);
        let bytes = truncated(&attr, 104);
        assert_eq!((bytes.len(), bytes[0], bytes[4]), (104, 1, 104));
    }
}
