//! Entry of the table of build-ids, which is a record too: process, build-id, path.

/// The longest build-id that a record has room for: SHA-1.
pub(crate) const MAX_BUILD_ID_BYTES: usize = 20;
/// The field's room in a record: the build-id with its length.
pub(crate) const FIELD_BYTES: usize = 24;
/// `PERF_RECORD_MISC_BUILD_ID_SIZE` of `tools/lib/perf/include/perf/event.h`: the field tells its length.
pub(crate) const MISC_HAS_LEN: u16 = 1 << 15;
/// `NAME_ALIGN` in `tools/perf/util/build-id.c`.
pub(crate) const NAME_ALIGN: usize = 64;
/// The path that has the kernel's own build-id.
pub(crate) const KERNEL: &[u8] = b"[kernel.kallsyms]";
/// The same path as it is read from an entry with a process id, where the entry has none.
pub(crate) const SHIFTED_KERNEL: &[u8] = b"nel.kallsyms]";
