//! Records of the kernel: from the bytes of a ring or of a recording to what they say.

pub(crate) mod cursor;
pub mod data_source;
pub mod decode;
mod fetch;
pub mod ring;
pub mod side_band;
pub(crate) mod undecoded;
