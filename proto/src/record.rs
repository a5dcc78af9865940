//! Records that the collector hands to the analyzer: samples, side-band events, counters, the time.

use crate::accounting::Collected;
use crate::address::{Avma, FileOffset, PhysicalAddress};
use crate::event::{Event, EventIdx, Machine};
use crate::memory::{DataSource, PageSize};
use crate::register::Registers;
use crate::stack::StackPiece;
use std::num::NonZeroU64;

/// One thing that happened, in time order.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "samples are nearly all of the stream, live in recycled batches and must not allocate"
)]
pub enum Record {
    /// The instruction set of what follows; x86-64 until it is told.
    Machine(Machine),
    /// The NUMA node of each CPU, by the CPU's number; [`NO_NODE`] where it has none. Before the first sample.
    Nodes(Box<[u16]>),
    /// The next event of the session, before its first sample; the first one has [`EventIdx`] 0.
    Event(Box<Event>),
    /// One counter overflow.
    Sample(Sample),
    /// A file or anonymous memory was mapped.
    Mmap(Box<Mmap>),
    /// A task got a name; on exec, its address space is a new one.
    Comm(Box<Comm>),
    /// A process or thread was born.
    Fork(Fork),
    /// A task ended.
    Exit(Exit),
    /// A process is in a mount namespace.
    Namespace(Namespace),
    /// A control group has a path.
    Cgroup(Box<Cgroup>),
    /// Code came into the kernel while it runs, or left it.
    KernelSymbol(Box<KernelSymbol>),
    /// Counts of the kernel and of the collector so far. Each one replaces the one before.
    Collected(Box<Collected>),
    /// Something a person should know, said once.
    Warning(Box<str>),
    /// The target as a person reads it, anew: a task of it has ended.
    Target(Box<str>),
    /// Time passed, perhaps without samples.
    Tick {
        /// The time in the samples' clock.
        time_ns: u64,
    },
}

/// The node of a CPU that has none.
pub const NO_NODE: u16 = u16::MAX;

impl Record {
    /// Time of the record, for those that have one.
    #[must_use]
    pub fn time_ns(&self) -> Option<u64> {
        match self {
            Record::Sample(sample) => Some(sample.time_ns),
            Record::Mmap(mmap) => Some(mmap.time_ns),
            Record::Comm(comm) => Some(comm.time_ns),
            Record::Fork(fork) => Some(fork.time_ns),
            Record::Exit(exit) => Some(exit.time_ns),
            Record::Namespace(namespace) => Some(namespace.time_ns),
            Record::Cgroup(cgroup) => Some(cgroup.time_ns),
            Record::KernelSymbol(symbol) => Some(symbol.time_ns),
            Record::Tick { time_ns } => Some(*time_ns),
            Record::Machine(_)
            | Record::Nodes(_)
            | Record::Event(_)
            | Record::Collected(_)
            | Record::Warning(_)
            | Record::Target(_) => None,
        }
    }
}

/// The privilege level that was interrupted (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Not told.
    #[default]
    Unknown,
    /// User code.
    User,
    /// The kernel.
    Kernel,
    /// A virtual machine that runs on this one.
    Guest,
    /// A hypervisor.
    Other,
}

/// One counter overflow.
///
/// The fields stand in this order, so that what is looked at of each sample is in its first two lines of
/// the cache and what most have not is at its end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Sample {
    /// Time, in the session's clock.
    pub time_ns: u64,
    /// Process; −1 where the recording does not tell.
    pub pid: i32,
    /// Thread; −1 where the recording does not tell.
    pub tid: i32,
    /// CPU, where it is told.
    pub cpu: Option<u32>,
    /// The event.
    pub event: EventIdx,
    /// Events that this sample stands for: its weight.
    pub period: u64,
    /// Code that was interrupted.
    pub mode: CpuMode,
    /// The hardware vouches for IP (`PERF_RECORD_MISC_EXACT_IP`).
    pub is_exact_ip: bool,
    /// The reported IP.
    pub ip: Avma,
    /// The sampled data address; `None` where the event has none (a clock, or a hardware event
    /// that reported 0).
    pub addr: Option<Avma>,
    /// Source of the data.
    pub data_source: Option<DataSource>,
    /// Latency in core cycles, 0 where there is none: until the data was there (Intel's cache
    /// latency, AMD's of the miss), else of the whole access.
    pub latency: u32,
    /// Core cycles from the instruction's start to its end, 0 where there is none.
    pub instruction_latency: u16,
    /// Core cycles between the retirement of the instruction before and its own, 0 where there is none.
    pub retire_latency: u16,
    /// The page that the data address is on.
    pub data_page: PageSize,
    /// The page that IP is on.
    pub code_page: PageSize,
    /// The data address in physical memory; the kernel tells it to the privileged only.
    pub physical_addr: Option<PhysicalAddress>,
    /// The control group of the thread, by its number ([`Cgroup`]).
    pub cgroup: Option<NonZeroU64>,
    /// Registers at the interrupt, or as the hardware recorded them. Empty in the kernel where the
    /// event samples the user's alone.
    pub registers: Registers,
    /// The user's registers where the sample is in the kernel: nobody needs them twice.
    pub user_registers: Registers,
    /// The stack from the user's stack pointer upwards, if it was sampled.
    pub stack: StackPiece,
}

impl Sample {
    /// Tells whether user code was interrupted, as the mode tells or, where that does not, the IP.
    #[must_use]
    pub const fn is_user(&self) -> bool {
        matches!(self.mode, CpuMode::User)
            || (matches!(self.mode, CpuMode::Unknown) && self.is_user_by_ip())
    }

    /// Few recordings do not tell the mode.
    #[cold]
    #[inline(never)]
    const fn is_user_by_ip(&self) -> bool {
        self.ip.is_user()
    }

    /// The registers of user code: those of the interrupt where that was interrupted.
    #[must_use]
    pub const fn registers_of_user(&self) -> &Registers {
        if self.is_user() { &self.registers } else { &self.user_registers }
    }

    /// Makes it the default one again, without writing over what nobody reads.
    pub fn clear(&mut self) {
        // All fields by name: none is forgotten when one is added.
        let Self {
            time_ns,
            pid,
            tid,
            cpu,
            event,
            period,
            mode,
            is_exact_ip,
            ip,
            addr,
            data_source,
            latency,
            instruction_latency,
            retire_latency,
            data_page,
            code_page,
            physical_addr,
            cgroup,
            registers,
            stack,
            user_registers,
        } = self;
        (*time_ns, *pid, *tid, *cpu, *event, *period) = (0, 0, 0, None, EventIdx::default(), 0);
        (*mode, *is_exact_ip, *ip, *addr) = (CpuMode::default(), false, Avma(0), None);
        (*data_source, *latency, *instruction_latency, *retire_latency) = (None, 0, 0, 0);
        (*data_page, *code_page) = (PageSize::default(), PageSize::default());
        (*physical_addr, *cgroup) = (None, None);
        registers.clear();
        stack.clear();
        user_registers.clear();
    }
}

/// A build-id as people and servers spell it: in hexadecimal.
#[must_use]
pub fn build_id_text(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The kernel's name for the file of a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileIdentity {
    /// Not told.
    #[default]
    None,
    /// Device, inode and inode generation, as MMAP2 or `/proc/PID/maps` gives them (the latter
    /// without a generation, which is then 0).
    Inode {
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// The build-id that the kernel, or the recorder, read from the mapped file.
    BuildId(Box<[u8]>),
}

/// Memory was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mmap {
    /// Time, in the session's clock; 0 for what was mapped before the session.
    pub time_ns: u64,
    /// Process; −1 is the kernel.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// First address.
    pub start: Avma,
    /// Length.
    pub len_bytes: u64,
    /// Its beginning in the file.
    pub file_offset: FileOffset,
    /// True where code can run there.
    pub is_executable: bool,
    /// The path as the kernel tells it, with " (deleted)", `[vdso]`, `[heap]`, `//anon`.
    pub path: Box<[u8]>,
    /// The file.
    pub identity: FileIdentity,
}

/// A task got a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comm {
    /// Time.
    pub time_ns: u64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Because of exec: the address space is new.
    pub is_exec: bool,
    /// The name, at most 15 bytes of any kind.
    pub name: Box<[u8]>,
}

/// A process or a thread was born.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fork {
    /// Time.
    pub time_ns: u64,
    /// The process it is in; differs from `parent_pid` for a process.
    pub pid: i32,
    /// The new thread.
    pub tid: i32,
    /// Process of the parent.
    pub parent_pid: i32,
    /// Thread of the parent.
    pub parent_tid: i32,
}

/// A task ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Time.
    pub time_ns: u64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
}

/// A process is in a mount namespace, by which its paths mean other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Time; 0 for what was so before the session.
    pub time_ns: u64,
    /// Process.
    pub pid: i32,
    /// The namespace's inode number; 0 for the one that this program, or the recorder, is in.
    pub mount: u64,
}

/// A control group has a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Time.
    pub time_ns: u64,
    /// Its number, as samples hold it.
    pub id: u64,
    /// Its path below the hierarchy's root.
    pub path: Box<[u8]>,
}

/// Code that the kernel made or loaded while it runs: a BPF program, a trampoline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSymbol {
    /// Time.
    pub time_ns: u64,
    /// First address.
    pub start: Avma,
    /// Length.
    pub len_bytes: u32,
    /// It is gone, not come.
    pub is_removed: bool,
    /// Its name.
    pub name: Box<[u8]>,
}
