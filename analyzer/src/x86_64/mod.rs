//! x86-64: instruction boundaries, memory operands, and the way back from a reported IP.

pub mod abi;
pub mod access;
pub(crate) mod action;
pub mod arithmetic;
pub mod backtrack;
pub mod bit_use;
pub mod call_table;
pub(crate) mod dead_end;
mod definition;
pub mod edge;
pub mod effect;
pub mod exit;
pub mod flags;
mod flow;
pub mod function;
mod guard;
pub mod image_bytes;
mod jump_table;
pub mod outline;
pub(crate) mod scan;
pub mod state;
mod sweep;
mod table;
pub mod trail;
pub(crate) mod translation;
mod vector;
mod view;
