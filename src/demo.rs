//! The program that `dataspace demo` profiles.

use crate::bundled::Bundled;
use std::process::Stdio;

/// The program.
pub(crate) const PROGRAM: Bundled = Bundled {
    name: "dataspace-demo",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/demo")),
    output: Stdio::null,
    typed: "demo",
};
