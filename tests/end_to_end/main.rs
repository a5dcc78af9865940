//! End-to-end tests: the binary on real processes and recordings, held to what those programs and
//! the kernel say.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

#[path = "../support/mod.rs"]
mod support;

mod annotation;
mod calibration;
mod callers;
mod command_line;
mod daemon;
mod daemon_api;
mod daemon_life;
mod daemon_memory;
mod daemon_network;
mod daemon_right;
mod daemon_trouble;
mod debuginfod;
mod dependency;
mod export;
mod handed;
mod history;
mod hostile_file;
mod layout;
mod live;
mod made_code;
mod measure;
mod namespace;
mod reason;
mod record;
mod recording;
mod sandbox;
mod screen;
mod skid;
mod slow_field;
mod threads;
mod tidy;
mod units;
mod watch;
mod watched;
mod web;
