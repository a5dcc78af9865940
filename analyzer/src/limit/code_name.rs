//! Limits of the names of code that is in no file.

/// The longest name of code that was made at run time; Java's with their signatures are as long.
pub const MAX_CODE_NAME_BYTES: usize = 512;

/// Names of the code that one process makes: 150,000 functions. A large Java server has half of that.
pub const MAX_CODE_NAMES_BYTES: usize = 32 << 20;

/// The same for all processes; those that were read first are forgotten first.
pub const MAX_ALL_CODE_NAMES_BYTES: usize = 64 << 20;

/// Entries of a file of code names that are read in all: what names the same code again and again,
/// as a runtime does that moves it about, takes time and no room.
pub const MAX_CODE_NAME_ENTRIES: u64 = 4 << 20;

/// Bytes that are read of a file of lines that name code: 150,000 functions take 15 MB. A file may be as long as
/// its owner says, without taking any room.
pub const MAX_CODE_NAME_FILE_BYTES: u64 = 128 << 20;

/// Between two looks at the files in which a process names its code, in the samples' time.
pub const CODE_NAMES_INTERVAL_NS: u64 = 1_000_000_000;

/// Files of code names of one process: its map, and what its runtimes dump.
pub const MAX_CODE_NAME_FILES: usize = 4;

/// Processes whose code names are kept.
pub const MAX_CODE_NAME_PROCESSES: usize = 1 << 10;

/// Names of code that came into the kernel: some 20,000 BPF programs. Then the table starts anew.
pub const MAX_KERNEL_CODE_BYTES: usize = 4 << 20;
