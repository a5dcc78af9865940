//! The analyzer against real programs: compiled by the test, run for the truth about themselves,
//! and asked about with samples made by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod absurd_entry;
mod absurd_flow;
mod absurd_type;
mod backtracking;
mod callback;
mod carried;
mod circles;
mod container;
mod cut_short;
mod derived;
mod entered;
mod flow;
mod frame;
mod frequency;
mod fuzz;
mod header;
mod hostile;
mod hunting;
mod joining;
mod layouts;
mod listing;
mod moving;
mod naming;
mod passing;
mod peer;
mod random_code;
mod reasons;
mod renaming;
mod returned;
mod single_step;
mod sources;
mod static_data;
mod storage;
mod support;
mod trailing;
#[allow(dead_code, reason = "the bench uses the other half")]
mod truth;
mod undescribed;
mod undoing;
mod voting;

#[global_allocator]
static ALLOCATOR: support::allocation::Counting = support::allocation::Counting;
