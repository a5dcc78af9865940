//! End-to-end tests: the binary on real processes and recordings, held to what those programs and
//! the kernel say.

#[path = "../support/mod.rs"]
mod support;

mod command_line;
mod dependency;
mod live;
mod recording;
mod tidy;
