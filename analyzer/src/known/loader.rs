//! The dynamic loader.

/// The function that tells where a thread-local variable is (psABI, 6.2; glibc and musl).
pub(crate) const TLS_GET_ADDR: &str = "__tls_get_addr";
