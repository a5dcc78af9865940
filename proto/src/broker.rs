//! Messages between a worker, which has no privileges, and its broker, which opens for it what it may have.
//!
//! A worker asks, the broker answers, one after the other on each connection. Descriptors travel beside the answers, and
//! beside requests there are none: closing one can take as long as a file's server likes (`flush` of FUSE).

use serde::{Deserialize, Serialize};

/// The version of these messages: both ends are one program, but a package may be replaced between their starts.
pub const VERSION: u32 = 6;

/// Length of the longest message in bytes: the request for a session, or a path as long as the kernel takes one.
pub const MAX_MESSAGE_BYTES: usize = 96 << 10;

/// Most descriptors beside one message: a group of events that are counted together.
pub const MAX_FDS: usize = 8;

/// One thing that a worker asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Another connection, for another thread.
    Connection {
        /// The worker's [`VERSION`].
        version: u32,
    },
    /// A file of `/proc`, `/sys` or tracefs, for reading; for a directory, its list.
    File {
        /// Its absolute path.
        path: Vec<u8>,
    },
    /// A directory of `/proc` or of a control group.
    Directory {
        /// Its absolute path.
        path: Vec<u8>,
    },
    /// Where a link of `/proc` leads.
    Link {
        /// The link's absolute path.
        path: Vec<u8>,
    },
    /// Device and inode of a file of these file systems: tells that it is there, too.
    Identity {
        /// Its absolute path.
        path: Vec<u8>,
    },
    /// An event, or a group of events of which the first leads. Beside the answer: they, in this order.
    Event {
        /// Of each the `perf_event_attr`, as this kernel's header lays it out; at most [`MAX_FDS`].
        attrs: Vec<Vec<u8>>,
        /// The thread; −1: all those of a CPU.
        tid: i32,
        /// The CPU; −1: any.
        cpu: i32,
        /// The absolute path of the control group whose tasks it is on, where it is on one's.
        cgroup: Option<Vec<u8>>,
    },
    /// A descriptor of a task (`pidfd_open(2)`).
    Task {
        /// Its number.
        tid: i32,
        /// Its process where only the thread is meant.
        thread_of: Option<i32>,
    },
    /// A load object, or a file that belongs to one.
    Object(FilePlace),
    /// The command that the session was begun with, forked and not yet executed. Beside the answer: the pipe that
    /// releases it, and the one that tells why it could not be executed.
    Command {
        /// Where its output goes.
        output: CommandOutput,
    },
    /// How that command ended, if it has.
    CommandEnd {
        /// True if it is to be asked to end first.
        is_asked: bool,
    },
    /// The name that the recording gets now, which the worker wrote to a file that it was given.
    RecordingEnd {
        /// False if nothing of worth is in it: it is removed.
        is_whole: bool,
    },
    /// The worker has done all and ends.
    Ending {
        /// Its exit code.
        code: u8,
    },
}

/// Destination of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandOutput {
    /// Our own output.
    #[default]
    Inherit,
    /// Our standard error: our standard output is for data.
    Stderr,
    /// None; the command has no input either: the terminal is ours.
    Discard,
}

/// One way to a file that a target has mapped, or that such a file names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilePlace {
    /// The very file that is mapped from `start` to `end` in a process, even if it is deleted.
    Mapped {
        /// The process, or a thread of it.
        task: i32,
        /// The first address.
        start: u64,
        /// The first address after it.
        end: u64,
    },
    /// The program of a process, if the kernel calls it so.
    Program {
        /// The process, or a thread of it.
        task: i32,
        /// Its path.
        name: Vec<u8>,
    },
    /// A path.
    Below {
        /// The directory where it begins.
        root: FileRoot,
        /// The path.
        path: Vec<u8>,
        /// A task of the process that has the load object, where that still runs: what it names is opened only
        /// if it could read that itself.
        named_by: Option<i32>,
        /// The kind that it has to be of.
        kind: FileKind,
    },
}

/// Kind of a file that may be asked for by its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// An ELF file.
    #[default]
    Elf,
    /// A file in which a runtime names the code it makes: no link is followed to it.
    CodeNames,
    /// The source of a program: its name ends as those of sources do.
    Source,
}

/// A directory that is the root to all links on the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileRoot {
    /// The root directory of a process, by one of its tasks.
    Task(i32),
    /// The directory that the user named for a recording's files (`--symfs`).
    Symfs,
    /// This machine's.
    Machine,
    /// The directory that the user named for sources (`--source`).
    Sources,
}

/// The answer to one [`Request`]. What was opened is beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is beside the message.
    Opened,
    /// Where the link leads.
    Link(Vec<u8>),
    /// Device and inode.
    Identity {
        /// The device.
        device: u64,
        /// The inode.
        inode: u64,
    },
    /// The command's process; its pipes are beside the message.
    Held(i32),
    /// The command's status as `wait(2)` gives it, if it has ended.
    Ended(Option<i32>),
    /// The recording has its name; the name that the file before has now, if there was one.
    Recorded(Option<Vec<u8>>),
    /// The recording could not get its name: why, for a person.
    NotRecorded(String),
    /// It was not done: the kernel's number of the error.
    Failed(i32),
}
