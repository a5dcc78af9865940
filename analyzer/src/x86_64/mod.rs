//! x86-64: instruction boundaries, memory operands, and the way back from a reported IP.

pub mod access;
pub mod backtrack;
pub mod condition;
mod definition;
mod exit;
mod flow;
pub mod function;
mod guard;
mod jump_table;
mod sweep;
mod table;
