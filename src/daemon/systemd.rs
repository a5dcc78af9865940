//! The sides to systemd and to the kernel: sockets that are handed over, readiness, the order of the out-of-memory killer.

pub(crate) mod notice;
pub(crate) mod oom;
pub(crate) mod socket;
