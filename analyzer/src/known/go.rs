//! The runtime of Go.

/// A bucket of a map, declared as its first member alone. Keys and elements follow, of which only the map's type tells
/// (`runtime/map.go`).
pub(crate) const BUCKET: &str = "runtime.bmap";
