//! Numbers of the tables after a recording's data.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`, "HEADER_*".

pub(crate) const TRACING_DATA: u32 = 1;
pub(crate) const BUILD_ID: u32 = 2;
pub(crate) const HOSTNAME: u32 = 3;
pub(crate) const OSRELEASE: u32 = 4;
pub(crate) const VERSION: u32 = 5;
pub(crate) const ARCH: u32 = 6;
pub(crate) const NRCPUS: u32 = 7;
pub(crate) const CPUDESC: u32 = 8;
pub(crate) const CPUID: u32 = 9;
pub(crate) const TOTAL_MEM: u32 = 10;
pub(crate) const CMDLINE: u32 = 11;
pub(crate) const EVENT_DESC: u32 = 12;
pub(crate) const CPU_TOPOLOGY: u32 = 13;
pub(crate) const NUMA_TOPOLOGY: u32 = 14;
pub(crate) const PMU_MAPPINGS: u32 = 16;
pub(crate) const SAMPLE_TIME: u32 = 21;
pub(crate) const CLOCKID: u32 = 23;
pub(crate) const CLOCK_DATA: u32 = 29;
