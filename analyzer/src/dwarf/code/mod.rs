//! Code: functions and scopes, frames, landing pads, what is inlined and passed.

pub mod frame;
pub(crate) mod function;
pub(crate) mod inlined;
pub mod kept;
pub(crate) mod landing_pad;
pub mod line;
pub(crate) mod listed_line;
pub(crate) mod passing;
pub mod scope;
mod virtual_function;
