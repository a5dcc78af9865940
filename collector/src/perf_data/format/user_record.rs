//! Records that `perf` itself writes between the kernel's.
//!
//! Source: `enum perf_user_event_type` in Linux `tools/lib/perf/include/perf/event.h`.

/// The first of them: the kernel's own types are below.
pub(crate) const FIRST: u32 = 64;
pub(crate) const HEADER_ATTR: u32 = 64;
pub(crate) const HEADER_EVENT_TYPE: u32 = 65;
pub(crate) const HEADER_TRACING_DATA: u32 = 66;
/// Record of a pipe, and of the table of build-ids in a file.
pub(crate) const HEADER_BUILD_ID: u32 = 67;
pub(crate) const FINISHED_ROUND: u32 = 68;
pub(crate) const AUXTRACE_INFO: u32 = 70;
pub(crate) const AUXTRACE: u32 = 71;
pub(crate) const EVENT_UPDATE: u32 = 78;
pub(crate) const HEADER_FEATURE: u32 = 80;
pub(crate) const COMPRESSED: u32 = 81;
pub(crate) const COMPRESSED2: u32 = 83;
/// A count of `perf stat record`.
pub(crate) const STAT: u32 = 76;
/// Known, and of no use: `ID_INDEX`, `AUXTRACE_ERROR`, `THREAD_MAP`,
/// `CPU_MAP`, `STAT_CONFIG`, `STAT_ROUND`, `TIME_CONV`, `FINISHED_INIT`,
/// `BPF_METADATA`, `SCHEDSTAT_CPU`, `SCHEDSTAT_DOMAIN`.
pub(crate) const NOT_NEEDED: [u32; 11] = [69, 72, 73, 74, 75, 77, 79, 82, 84, 85, 86];

/// `PERF_EVENT_UPDATE__NAME`, in front of an [`EVENT_UPDATE`].
pub(crate) const UPDATE_NAME: u64 = 2;
/// The kernel's process in records (`HOST_KERNEL_ID` in Linux `tools/perf/util/machine.h`).
pub(crate) const KERNEL_PID: i32 = -1;
