//! Words of the hardware about one access: level, snoop, TLB, lock, page.

use serde::{Deserialize, Serialize};

named! {
    /// Source of the data, as `PERF_SAMPLE_DATA_SRC` tells it.
    #[allow(missing_docs, reason = "the names are the levels' own")]
    Level {
        L0 = "L0";
        L1 = "L1";
        /// The line fill buffer: the line was already on its way.
        Lfb = "LFB";
        L2 = "L2";
        /// The buffer of L2's misses: the line was already on its way to L2.
        L2Mhb = "L2_MHB";
        L3 = "L3";
        L4 = "L4";
        /// A cache beside the memory controller.
        MemorySide = "MSC";
        Ram = "RAM";
        Pmem = "PMEM";
        Cxl = "CXL";
        Io = "IO";
        /// Uncached memory.
        Uncached = "UNC";
        /// A cache, which one is not told.
        AnyCache = "cache";
    }
}

/// Number of levels.
pub const N_LEVELS: usize = Level::ALL.len();

named! {
    /// Kind of access of an instruction to its memory operand.
    Access {
        /// Reads.
        Load = "load";
        /// Writes.
        Store = "store";
        /// Reads and writes, as `add %rax,(%rdi)` does.
        LoadStore = "load_store";
        /// Only asks for the line.
        Prefetch = "prefetch";
    }
}

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($(#[$flag_doc:meta])* $flag:ident = $bit:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(u8);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: Self = Self($bit);)*
            const NAMES: &[(u8, &str)] = &[$(($bit, $text)),*];

            /// All of them are in so many bits.
            pub const N_BITS: u32 = u8::BITS - (0 $(| $bit as u8)*).leading_zeros();

            /// These in bits.
            #[must_use]
            pub const fn bits(self) -> u8 {
                self.0
            }

            /// Those of these bits.
            #[must_use]
            pub const fn of_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// These and `other`.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Tells whether any of `other` is among these.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Tells whether nothing was told.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }
    };
}

/// The names of the bits of `bits`, in their order.
fn names(bits: u8, names: &'static [(u8, &str)]) -> impl Iterator<Item = &'static str> {
    names.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| *name)
}

fn joined(bits: u8, known: &'static [(u8, &str)]) -> Option<String> {
    (bits != 0).then(|| names(bits, known).collect::<Vec<_>>().join("|"))
}

flags! {
    /// Answer of other caches. Hardware may leave it between two: `none|miss`.
    Snoop {
        /// Nobody was asked.
        NONE = 0x01, "none";
        /// Another cache had the line.
        HIT = 0x02, "hit";
        /// None had it.
        MISS = 0x04, "miss";
        /// Another cache had it modified.
        HITM = 0x08, "hitm";
        /// Another cache handed it on.
        FORWARD = 0x10, "fwd";
        /// It came from a cache beside this one, clean or not.
        PEER = 0x20, "peer";
    }
}

impl Snoop {
    /// Its names, with `|` between them; `None` where nothing is told.
    #[must_use]
    pub fn text(self) -> Option<String> {
        joined(self.0, Self::NAMES)
    }
}

flags! {
    /// Translation of the data address.
    Tlb {
        /// In the first-level data TLB, or with [`Self::L2`] in one of the two.
        L1 = 0x01, "L1";
        /// In the second-level TLB.
        L2 = 0x02, "L2";
        /// By the hardware's walk through the page tables.
        WALKER = 0x04, "walker";
        /// By the kernel's fault handler.
        FAULT = 0x08, "fault";
        /// It was there.
        HIT = 0x10, "hit";
        /// It was not.
        MISS = 0x20, "miss";
    }
}

impl Tlb {
    /// `L1|L2 hit`, `L2 miss`, `walker`; `None` where nothing is told.
    #[must_use]
    pub fn text(self) -> Option<String> {
        let outcome = Self::HIT.with(Self::MISS).0;
        let parts = [self.0 & !outcome, self.0 & outcome];
        let parts: Vec<String> =
            parts.into_iter().filter_map(|bits| joined(bits, Self::NAMES)).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// Tells whether the first-level TLB did not have it. "L1 | L2 hit" means one of both; a miss of L1 is
    /// a walk, a hit of L2 alone or a plain miss.
    #[must_use]
    pub const fn is_first_level_miss(self) -> bool {
        let further = Self::L2.with(Self::WALKER).with(Self::FAULT);
        self.has(Self::MISS) || (self.has(further) && !self.has(Self::L1))
    }
}

flags! {
    /// Why the access had to wait for an earlier store.
    Blocked {
        /// The data of that store could not be forwarded.
        DATA = 0x01, "data";
        /// Its address was in conflict.
        ADDRESS = 0x02, "address";
    }
}

impl Blocked {
    /// Its names, with `|` between them; `None` where nothing is told.
    #[must_use]
    pub fn text(self) -> Option<String> {
        joined(self.0, Self::NAMES)
    }
}

named! {
    /// Owner of the memory or cache, on processors that tell it by caching agent.
    Region {
        /// A cache that this agent's cores share.
        LocalShared = "local_shared";
        /// A cache of this agent that is not shared.
        LocalUnshared = "local_unshared";
        /// Another agent, of devices.
        OtherIo = "other_io";
        /// A cache that another agent's cores share.
        OtherShared = "other_shared";
        /// A cache of another agent that is not shared.
        OtherUnshared = "other_unshared";
        /// Device memory.
        Mmio = "mmio";
        /// The first of eight regions that memory is divided into.
        Memory0 = "memory0";
        /// The second.
        Memory1 = "memory1";
        /// The third.
        Memory2 = "memory2";
        /// The fourth.
        Memory3 = "memory3";
        /// The fifth.
        Memory4 = "memory4";
        /// The sixth.
        Memory5 = "memory5";
        /// The seventh.
        Memory6 = "memory6";
        /// The eighth.
        Memory7 = "memory7";
    }
}

named! {
    /// Kind of memory that an address is in, by what is mapped there.
    MemorySegment {
        /// Code of a load object.
        Text = "text";
        /// Data of a load object: initialised, zeroed or read-only.
        Data = "data";
        /// The heap that grows by `brk`.
        Heap = "heap";
        /// A stack: the first thread's, or the mapping that a thread's stack pointer is in.
        Stack = "stack";
        /// Memory that processes share: System V, POSIX, memfd.
        Shared = "shared";
        /// A file that is no load object.
        File = "file";
        /// Memory that is mapped without a file, as allocators do for large blocks and for the heaps of threads.
        Anonymous = "anonymous";
        /// The kernel's.
        Kernel = "kernel";
    }
}

/// A page's size, as a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageSize(u8);

impl PageSize {
    /// A page of so many bytes; not known where that is no power of two.
    #[must_use]
    pub const fn from_bytes(n_bytes: u64) -> Self {
        // A page of one byte is none; 0 stands for what is not known.
        Self(if n_bytes.is_power_of_two() { n_bytes.trailing_zeros() as u8 } else { 0 })
    }

    /// Its size in bytes, where it is known.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        if self.0 == 0 { None } else { Some(1 << self.0) }
    }
}

/// `PERF_SAMPLE_DATA_SRC`, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSource {
    /// The hardware's word for the access, where there is one.
    pub access: Option<Access>,
    /// Source of the data, where it is known.
    pub level: Option<Level>,
    /// The level that did not have it, where no more is told ("L3 miss", and stores that miss L1).
    pub missed: Option<Level>,
    /// Answer of other caches.
    pub snoop: Snoop,
    /// Translation of the address.
    pub tlb: Tlb,
    /// Why it had to wait.
    pub blocked: Blocked,
    /// True for a locked access, where that is told.
    pub locked: Option<bool>,
    /// The data came from another core's, node's or socket's side.
    pub is_remote: bool,
    /// Distance: 0 another core of this node, 1 another node, 2 another socket, 3 another board.
    pub hops: Option<u8>,
    /// Owner of the memory.
    pub region: Option<Region>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_source_stays_small() {
        assert!(size_of::<Option<DataSource>>() <= 16, "it is in every sample");
    }

    #[test]
    fn texts_name_every_bit() {
        assert_eq!(Snoop::NONE.with(Snoop::MISS).text().as_deref(), Some("none|miss"));
        assert_eq!(Tlb::L1.with(Tlb::L2).with(Tlb::HIT).text().as_deref(), Some("L1|L2 hit"));
        assert_eq!(Tlb::WALKER.text().as_deref(), Some("walker"));
        assert_eq!(Tlb::MISS.text().as_deref(), Some("miss"));
        assert_eq!(Tlb::default().text(), None);
        assert_eq!(Blocked::DATA.with(Blocked::ADDRESS).text().as_deref(), Some("data|address"));
    }

    #[test]
    fn pages_are_powers_of_two() {
        for (n_bytes, known) in [(4096, true), (1 << 30, true), (1 << 63, true), (0, false)] {
            assert_eq!(PageSize::from_bytes(n_bytes).bytes(), known.then_some(n_bytes));
        }
        assert_eq!(PageSize::from_bytes(4097).bytes(), None);
    }
}
