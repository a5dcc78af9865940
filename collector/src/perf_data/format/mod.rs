//! Constants and structures of perf.data, for who reads it and who writes it.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`.

pub(super) mod attr;
