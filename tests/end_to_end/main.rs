//! End-to-end tests: the binary on real processes and recordings, held to what those programs and
//! the kernel say.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "../support/mod.rs"]
mod support;

mod command_line;
mod dependency;
mod live;
mod recording;
mod tidy;
