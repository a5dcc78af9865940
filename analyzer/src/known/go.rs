//! The runtime of Go.

/// DWARF number of the register that holds the goroutine, which functions keep (the Go internal ABI specification).
pub(crate) const GOROUTINE: u8 = 14;

/// Functions that note stores of pointers, as their names begin: they keep all registers (`runtime/asm_amd64.s`).
pub(crate) const WRITE_BARRIER: &str = "runtime.gcWriteBarrier";

/// DWARF number of the register in which those of Go 1.21 and later return where to note it.
pub(crate) const BARRIER_RESULT: u8 = 11;

/// A bucket of a map, declared as its first member alone. Keys and elements follow, of which only the map's type tells
/// (`runtime/map.go`).
pub(crate) const BUCKET: &str = "runtime.bmap";
