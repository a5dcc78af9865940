//! Live sessions on this machine's kernel: what it does not permit is skipped with the reason.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod live;
mod support;
