//! Directories whose files do not answer, by FUSE (Linux `include/uapi/linux/fuse.h`).

use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The request after which nothing is answered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastAnswer {
    /// None is: nobody reads requests at all.
    None,
    /// The mount's own: whoever looks for a file waits.
    Mount,
    /// A file is opened and begins as an ELF file does: whoever reads on waits.
    Open,
    /// Nor can it be read on; whoever closes it waits.
    Read,
}

/// The directory, until it is dropped.
pub(crate) struct Silent {
    directory: PathBuf,
    n_held: Arc<AtomicUsize>,
    _held: Held,
}

/// What keeps the requests: they are answered with an error when it is gone.
enum Held {
    Device { _device: File },
    Server { _stop: UnixStream },
}

impl Silent {
    /// Mounts it on `directory`; `None` where that is not possible here.
    pub(crate) fn mount(directory: &Path, last: LastAnswer) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let script = "exec mount -i -n -t fuse -o \"fd=0,rootmode=40000,user_id=0,group_id=0,allow_other\" \
                      silent \"$0\"";
        let mounted = Command::new("sh")
            .args(["-c", script])
            .arg(directory)
            .stdin(device.try_clone().ok()?)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            return None;
        }
        let n_held = Arc::default();
        let held = match last {
            LastAnswer::None => Held::Device { _device: device },
            LastAnswer::Mount | LastAnswer::Open | LastAnswer::Read => {
                let (stop, stopped) = UnixStream::pair().unwrap();
                let n_held = Arc::clone(&n_held);
                std::thread::spawn(move || serve(device, &stopped, last, &n_held));
                Held::Server { _stop: stop }
            }
        };
        Some(Self { directory: directory.to_owned(), n_held, _held: held })
    }

    /// Requests that were taken and are not answered: those cannot be taken back.
    pub(crate) fn n_held(&self) -> usize {
        self.n_held.load(Ordering::Acquire)
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.directory).status();
    }
}

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const FLUSH: u32 = 25;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

const ROOT: u64 = 1;
const THE_FILE: u64 = 2;

/// Answers what it may, until `stopped`; holds the rest.
fn serve(mut device: File, stopped: &UnixStream, last: LastAnswer, n_held: &AtomicUsize) {
    let mut request = vec![0; 1 << 20];
    let is_closed_only = last == LastAnswer::Read;
    let last = if is_closed_only { LastAnswer::Open } else { last };
    loop {
        let mut fds = [PollFd::new(&device, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        // It is gone where the mount is.
        let Ok(n_bytes) = device.read(&mut request) else { return };
        let word = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
        let opcode = u32::from_le_bytes(request[4..8].try_into().unwrap());
        let (unique, node) = (word(8), word(16));
        let begins_only = n_bytes >= 64 && (word(48), word(56) as u32) == (0, 4);
        let body = match (opcode, last) {
            (READ, _) if is_closed_only && !begins_only => {
                Err(rustix::io::Errno::IO.raw_os_error())
            }
            (FLUSH, _) if is_closed_only => {
                n_held.fetch_add(1, Ordering::AcqRel);
                continue;
            }
            (FORGET | INTERRUPT | BATCH_FORGET, _) => continue,
            (INIT, _) => Ok([&7_u32.to_le_bytes()[..], &31_u32.to_le_bytes(), &[0; 56]].concat()),
            (LOOKUP, LastAnswer::Open) => {
                let valid = 3600_u64.to_le_bytes();
                let node = THE_FILE.to_le_bytes();
                Ok([&node[..], &[0; 8], &valid, &valid, &[0; 8], &attributes(THE_FILE)].concat())
            }
            (GETATTR, LastAnswer::Open) => {
                Ok([&3600_u64.to_le_bytes()[..], &[0; 8], &attributes(node)].concat())
            }
            // FOPEN_DIRECT_IO: what is read is what was asked for.
            (OPEN, LastAnswer::Open) => Ok([&[0; 8][..], &1_u32.to_le_bytes(), &[0; 4]].concat()),
            (STATFS, LastAnswer::Open) => Ok(vec![0; 80]),
            (READ, LastAnswer::Open) if begins_only => Ok(b"\x7fELF".to_vec()),
            (READ, _) | (_, LastAnswer::None | LastAnswer::Mount | LastAnswer::Read) => {
                n_held.fetch_add(1, Ordering::AcqRel);
                continue;
            }
            _ => Err(rustix::io::Errno::NOSYS.raw_os_error()),
        };
        let (error, body) = match body {
            Ok(body) => (0_i32, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let len = 16 + body.len() as u32;
        let head = [&len.to_le_bytes()[..], &error.to_le_bytes(), &unique.to_le_bytes()];
        let _ = device.write(&[&head.concat()[..], &body].concat());
    }
}

/// `struct fuse_attr` of the directory or of the file.
fn attributes(node: u64) -> Vec<u8> {
    let (size, mode) = if node == ROOT { (0, 0o40755_u32) } else { (1 << 20, 0o100_644) };
    let numbers = [node, size, size / 512, 0, 0, 0].map(u64::to_le_bytes).concat();
    // Parts of seconds, mode, links, owner and group, device, block size, flags.
    let halves = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(u32::to_le_bytes).concat();
    [numbers, halves].concat()
}
