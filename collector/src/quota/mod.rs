//! Bounds on things of one kind, shared fairly between users.

pub mod counts;
pub mod places;
