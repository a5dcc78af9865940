//! What this machine and these privileges allow, and what would allow more.

/// `CAP_SYS_ADMIN`.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`.
pub(crate) const CAP_PERFMON: u32 = 38;
