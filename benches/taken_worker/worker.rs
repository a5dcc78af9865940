//! The worker that was taken over: all that it can still do is to speak.

use crate::sandbox;
use crate::wire::Connection;
use dataspace_proto::broker::{
    Answer, CommandOutput, FileKind, FilePlace, FileRoot, Request, VERSION,
};
use dataspace_proto::worker::{Ask, EVENT_TEXT, Figures, Order, Reply, Standing, Wish};
use fastrand::Rng;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{SealFlags, fcntl_add_seals};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{getegid, geteuid};
use std::io::{IoSlice, stdin, stdout};
use std::mem::MaybeUninit;
use std::time::Duration;

/// Names below a process of `/proc`, those that a session asks for among them.
const NAMES: [&str; 26] = [
    "maps",
    "status",
    "stat",
    "comm",
    "cgroup",
    "exe",
    "ns/mnt",
    "task",
    "schedstat",
    "mem",
    "environ",
    "auxv",
    "cmdline",
    "pagemap",
    "root",
    "root/etc/shadow",
    "cwd",
    "fd",
    "fd/0",
    "fdinfo/0",
    "map_files",
    "syscall",
    "stack",
    "smaps",
    "attr/current",
    "net/unix",
];

/// Other paths that are asked for.
const PATHS: [&str; 18] = [
    "/proc/kallsyms",
    "/proc/modules",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/../vm/overcommit_memory",
    "/sys/bus/event_source/devices",
    "/sys/devices/system/cpu/online",
    "/sys/kernel/tracing/trace_pipe",
    "/sys/kernel/debug/tracing/trace_pipe",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/../../kernel/tracing/trace",
    "/etc/shadow",
    "/dev/mem",
    "/proc/self/root/etc/shadow",
];

/// Files that are asked for as load objects.
const OBJECTS: [&str; 12] = [
    "/etc/shadow",
    "/etc/passwd",
    "/proc/kcore",
    "/proc/1/environ",
    "/dev/mem",
    "/dev/stdin",
    "/usr/bin/env",
    "/lib64/ld-linux-x86-64.so.2",
    "/tmp",
    "/proc/self/exe",
    "/root/.bashrc",
    "/sys/kernel/tracing/trace_pipe",
];

/// Most descriptors that lie beside one message.
const MAX_BESIDE: usize = 6;

/// Does as real workers do until it has given its privileges up; then as it likes.
pub(crate) fn run(seed: u64, pids: &[String]) {
    let control = Connection::from(stdin().as_fd().try_clone_to_owned().unwrap());
    control.send_hello().unwrap();
    let Ok(Some((Order::Access, beside))) = control.receive::<Order>() else { return };
    sandbox::enter(getegid(), geteuid(), false).unwrap();
    let pids = pids.iter().map(|pid| pid.parse().unwrap()).collect();
    let access = Connection::from(beside.into_iter().next().unwrap());
    let mut attacker = Attacker { rng: Rng::with_seed(seed), pids, keep: Vec::new() };
    let asking = attacker.another();
    std::thread::spawn(move || asking.ask(&access));
    while let Ok(Some((order, beside))) = control.receive::<Order>() {
        // What comes beside an order is the session's.
        if let Order::Begin { .. } = order {
            let mut ends = beside.into_iter().map(Connection::from);
            let (Some(followed), Some(wished)) = (ends.next(), ends.next()) else { continue };
            let (one, other) = (attacker.another(), attacker.another());
            std::thread::spawn(move || one.follow(&followed));
            std::thread::spawn(move || other.fulfil(&wished));
        }
        if attacker.rng.u8(..) == 0 {
            // The daemon expects nothing there.
            attacker.send(&control, &[1; 20]);
        }
    }
    std::process::exit(0);
}

/// One thread of it.
struct Attacker {
    rng: Rng,
    pids: Vec<i32>,
    /// Descriptors that it got, to lay them beside messages.
    keep: Vec<OwnedFd>,
}

impl Attacker {
    fn another(&mut self) -> Self {
        Self { rng: self.rng.fork(), pids: self.pids.clone(), keep: Vec::new() }
    }

    /// Asks the broker, on ever new connections.
    fn ask(mut self, access: &Connection) {
        let judge = Connection::from(stdout().as_fd().try_clone_to_owned().unwrap());
        let mut open: Vec<Connection> = Vec::new();
        loop {
            if open.is_empty() || self.rng.u8(..) < 4 {
                let request = Request::Connection { version: VERSION };
                let Ok((_, fds)) = access.ask::<Answer>(&request) else { return };
                open.extend(fds.into_iter().map(Connection::from));
                // As many as there may be stay open for a moment.
                if open.len() > 140 || self.rng.u8(..) < 16 {
                    open.truncate(1);
                }
                continue;
            }
            let connection = self.rng.usize(..open.len());
            let request = self.request();
            let bytes = postcard::to_stdvec(&request).unwrap();
            let is_damaged = self.rng.u8(..) < 64;
            let bytes = if is_damaged { self.damaged(bytes) } else { bytes };
            self.send(&open[connection], &bytes);
            // One that waits for nothing has the other side wait.
            if self.rng.u8(..) < 4 {
                continue;
            }
            match open[connection].receive::<Answer>() {
                Ok(Some((_, fds))) => {
                    let of_request =
                        format!("{request:?}{}", if is_damaged { ", damaged" } else { "" });
                    let of_request: String = of_request.chars().take(2_000).collect();
                    let beside: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
                    if judge.send(&of_request, &beside).is_err() {
                        return;
                    }
                    self.keep.extend(fds);
                    self.keep.truncate(8);
                }
                _ => drop(open.swap_remove(connection)),
            }
        }
    }

    /// Replies to who follows a session.
    fn follow(mut self, connection: &Connection) {
        let mut beat = 0;
        while let Ok(Some((ask, files))) = connection.receive::<Ask>() {
            beat += 1;
            self.fill(files);
            let standing = self.standing(beat);
            let reply = match ask {
                Ask::Attach => Reply::Attached(standing),
                Ask::Glance => Reply::Standing(standing),
                Ask::Snapshot => Reply::Snapshot(self.figures()),
                Ask::Stop => Reply::Stopped,
            };
            if !self.reply(connection, reply) {
                return;
            }
        }
    }

    /// Replies to wishes of clients.
    fn fulfil(mut self, connection: &Connection) {
        while let Ok(Some((_, files))) = connection.receive::<Wish>() {
            self.fill(files);
            if !self.reply(connection, Reply::Made) {
                return;
            }
        }
    }

    /// Replies, or does something else; false if the connection is to end.
    fn reply(&mut self, connection: &Connection, mut reply: Reply) -> bool {
        let mut file = None;
        match self.rng.u8(..) {
            0 => std::process::exit(1),
            1 => return false,
            // It never answers.
            2 => std::thread::sleep(Duration::from_secs(3600)),
            3..16 => reply = self.other_reply(),
            // Beside replies there is nothing.
            16..20 => file = Some(rustix::pipe::pipe().unwrap().0),
            _ => {}
        }
        let bytes = postcard::to_stdvec(&reply).unwrap();
        let bytes = if self.rng.u8(..) < 4 { self.damaged(bytes) } else { bytes };
        let beside: Vec<_> = file.iter().map(|fd| fd.as_fd()).collect();
        send_with(connection, &bytes, &beside);
        true
    }

    fn other_reply(&mut self) -> Reply {
        match self.rng.u8(..7) {
            0 => Reply::Attached(self.standing(0)),
            1 => Reply::NotAttached { code: self.rng.u8(..), message: self.text() },
            2 => Reply::Snapshot(self.bytes(90_000)),
            3 => Reply::Stopped,
            4 => Reply::Made,
            5 => Reply::Absent,
            _ => Reply::Failed(self.text()),
        }
    }

    fn standing(&mut self, beat: u64) -> Standing {
        let is_wild = self.rng.u8(..) < 8;
        let wild = |rng: &mut Rng| if is_wild { rng.u64(..) } else { 0 };
        Standing {
            beat: beat.wrapping_add(wild(&mut self.rng)),
            is_finished: is_wild && self.rng.u8(..) < 32,
            n_short: wild(&mut self.rng),
            is_short: is_wild,
            is_above: is_wild && self.rng.bool(),
            n_shed: (0..self.rng.usize(..200)).map(|_| wild(&mut self.rng)).collect(),
        }
    }

    fn figures(&mut self) -> Vec<u8> {
        let n_objects = self.rng.usize(..60);
        let figures = Figures {
            target: self.text(),
            events: (0..self.rng.usize(..9)).map(|_| self.text()).collect(),
            elapsed_ns: self.rng.u64(..),
            target_cost_ns: self.rng.u64(..),
            own_cpu_ns: self.rng.u64(..),
            n_batches: self.rng.u64(..),
            n_questions: self.rng.u64(..),
            window: self.text(),
            objects: (0..n_objects).map(|_| (self.text(), self.rng.u64(..))).collect(),
            ..Figures::default()
        };
        let json = serde_json::to_vec(&figures).unwrap();
        if self.rng.u8(..) < 16 { self.damaged(json) } else { json }
    }

    /// Fills the files for clients, well or not, and may keep them.
    fn fill(&mut self, files: Vec<OwnedFd>) {
        for file in files {
            let body = match self.rng.u8(..8) {
                0 => self.bytes(100_000),
                1 => Vec::new(),
                2 => self.text().into_bytes(),
                _ => [EVENT_TEXT.0, b"{\"x\":1}", EVENT_TEXT.1].concat(),
            };
            let _ = rustix::io::write(&file, &body);
            match self.rng.u8(..16) {
                0 => drop(rustix::fs::ftruncate(&file, self.rng.u64(..40 << 20))),
                1 => drop(fcntl_add_seals(&file, SealFlags::SEAL)),
                2 => self.keep.push(file),
                _ => {}
            }
            self.keep.truncate(8);
        }
    }

    /// One request, which may be one of a real worker.
    fn request(&mut self) -> Request {
        match self.rng.u8(..14) {
            0..3 => Request::File { path: self.path() },
            3 => Request::Directory { path: self.path() },
            4 => Request::Link { path: self.path() },
            5 => Request::Identity { path: self.path() },
            6 => Request::Event {
                attrs: (0..self.rng.usize(0..3)).map(|_| self.attr()).collect(),
                tid: self.pid(),
                cpu: self.rng.i32(-2..3),
                cgroup: (self.rng.u8(..) < 32).then(|| self.path()),
            },
            7 => Request::Task { tid: self.pid(), thread_of: self.rng.bool().then(|| self.pid()) },
            8..12 => Request::Object(self.place()),
            12 => Request::Command { output: CommandOutput::Discard },
            _ => match self.rng.u8(..4) {
                0 => Request::CommandEnd { is_asked: true },
                1 => Request::RecordingEnd { is_whole: false },
                2 => Request::Ending { code: 7 },
                _ => Request::Connection { version: self.rng.u32(..) },
            },
        }
    }

    fn place(&mut self) -> FilePlace {
        let name = self.one_of(&OBJECTS).as_bytes().to_vec();
        let name = if self.rng.u8(..) < 32 { self.damaged(name) } else { name };
        match self.rng.u8(..3) {
            0 => {
                // Where programs and libraries are without chance of addresses, or anywhere.
                let start = if self.rng.bool() { 0x40_0000 } else { self.rng.u64(..) & !0xfff };
                let end = start.wrapping_add(self.rng.u64(..) & 0xf_f000);
                FilePlace::Mapped { task: self.pid(), start, end }
            }
            1 => FilePlace::Program { task: self.pid(), name },
            _ => {
                let root = match self.rng.u8(..4) {
                    0 => FileRoot::Machine,
                    1 => FileRoot::Symfs,
                    2 => FileRoot::Sources,
                    _ => FileRoot::Task(self.pid()),
                };
                let named_by = self.rng.bool().then(|| self.pid());
                let kind = match self.rng.u8(..3) {
                    0 => FileKind::Elf,
                    1 => FileKind::CodeNames,
                    _ => FileKind::Source,
                };
                FilePlace::Below { root, path: name, named_by, kind }
            }
        }
    }

    fn path(&mut self) -> Vec<u8> {
        let (pid, name) = (self.pid(), self.one_of(&NAMES));
        let path = match self.rng.u8(..8) {
            0..3 => format!("/proc/{pid}/{name}"),
            3 => format!("/proc/{pid}/task/{}/{name}", self.pid()),
            4 => format!("/proc/self/{name}"),
            _ => self.one_of(&PATHS).to_owned(),
        };
        let path = path.into_bytes();
        if self.rng.u8(..) < 32 { self.damaged(path) } else { path }
    }

    /// A `perf_event_attr` of a clock of user code, as it is or changed.
    fn attr(&mut self) -> Vec<u8> {
        let mut attr = vec![0; 144];
        // PERF_TYPE_SOFTWARE, its size, a period, and exclude_kernel (Linux `include/uapi/linux/perf_event.h`).
        (attr[0], attr[4], attr[17], attr[40]) = (1, 144, 0x10, 1 << 5);
        if self.rng.bool() { self.damaged(attr) } else { attr }
    }

    fn pid(&mut self) -> i32 {
        match self.rng.u8(..16) {
            0 => self.rng.i32(..),
            1 => self.rng.i32(..70_000),
            2 => std::process::id().cast_signed(),
            _ => self.pids[self.rng.usize(..self.pids.len())],
        }
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.rng.usize(..texts.len())]
    }

    fn text(&mut self) -> String {
        let n_parts = self.rng.usize(..12);
        let parts =
            ["x", "\u{1b}[2J", "\r\n\r\n", "\"", "\\", "\u{202e}", "{}", "\0", "ä", "# HELP x\n"];
        let mut text: String = (0..n_parts).map(|_| self.one_of(&parts)).collect();
        if self.rng.u8(..) < 4 {
            text = text.repeat(self.rng.usize(..1000));
        }
        text
    }

    fn bytes(&mut self, n_most: usize) -> Vec<u8> {
        let n_bytes = self.rng.usize(..n_most);
        std::iter::repeat_with(|| self.rng.u8(..)).take(n_bytes).collect()
    }

    /// `bytes` with some of them changed, taken away, or more.
    fn damaged(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.rng.usize(1..6) {
            let at = self.rng.usize(..bytes.len().max(1));
            match (self.rng.u8(..6), bytes.get_mut(at)) {
                (0..3, Some(byte)) => *byte ^= 1 << self.rng.u8(..8),
                (3, Some(byte)) => *byte = self.rng.u8(..),
                (4, _) => bytes.truncate(at),
                _ => bytes.extend(self.bytes(64)),
            }
        }
        bytes
    }

    /// Sends `bytes`, and sometimes what it has got beside them.
    fn send(&mut self, connection: &Connection, bytes: &[u8]) {
        let n_beside = if self.rng.u8(..) < 32 { self.rng.usize(..=MAX_BESIDE) } else { 0 };
        let beside: Vec<_> = self.keep.iter().map(|fd| fd.as_fd()).take(n_beside).collect();
        send_with(connection, bytes, &beside);
    }
}

/// Sends what may be no message.
fn send_with(connection: &Connection, bytes: &[u8], beside: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_BESIDE))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !beside.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(beside));
    }
    // Who has hung up is found out by the next one who listens.
    let _ = sendmsg(connection, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL);
}
