//! x86-64: instruction boundaries, memory operands, and the way back from a reported IP.

pub mod access;
pub mod backtrack;
pub mod condition;
pub mod function;
