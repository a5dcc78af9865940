//! Constants and structures of perf.data, for who reads it and who writes it.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`.

pub(super) mod attr;
pub(super) mod build_id;
pub(super) mod bytes;
pub(super) mod feature;
pub(super) mod header;
pub(super) mod user_record;
