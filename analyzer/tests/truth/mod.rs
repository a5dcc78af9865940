//! The truth about triggers: programs are single-stepped, their steps made into samples whose
//! trigger is known, and the analyzer's answers judged by it.

pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod catalog;
pub(crate) mod judge;
pub(crate) mod keep;
pub(crate) mod listing;
pub(crate) mod miss;
pub(crate) mod model;
pub(crate) mod operand;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod session;
pub(crate) mod step;
pub(crate) mod tally;
pub(crate) mod trace;
pub(crate) mod tracee;
pub(crate) mod undo;
