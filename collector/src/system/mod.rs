//! This machine and its processes as `/proc`, `/sys` and tracefs tell of them, below roots that tests can fake.

pub(crate) mod cgroup;
pub(crate) mod cpu_list;
pub(crate) mod host;
pub mod machine;
pub mod memory;
pub mod procfs;
pub mod right;
pub mod socket;
pub(crate) mod sysfs;
pub mod tracefs;
