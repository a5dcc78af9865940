//! The heap of glibc, of dlmalloc and of what else was made from that.

/// The header of each piece of the heap. The next one lies after as many bytes as its own size says, which no type
/// tells: whatever is counted in bytes from one of them leads to another one (`malloc/malloc.c`, "Chunk
/// representation").
pub(crate) const CHUNK: &str = "malloc_chunk";
