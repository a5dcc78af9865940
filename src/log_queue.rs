//! A log whose reader may stop reading: lines wait in a bounded queue for a thread that writes them,
//! and what does not fit is counted, so that nobody who logs ever waits.

use crate::lock::lock;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum of the bytes that wait: some hundred lines.
const MAX_BYTES: usize = 64 << 10;

/// Time that the end of the program waits for what is not written yet.
const FAREWELL: Duration = Duration::from_millis(200);

/// The way into the queue.
#[derive(Clone, Debug)]
pub(crate) struct LogQueue(Arc<QueuedLines>);

#[derive(Debug, Default)]
struct QueuedLines {
    state: Mutex<LineQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LineQueue {
    /// Whole lines.
    waiting: Vec<u8>,
    /// Entries that did not fit after those.
    n_lost: u64,
    is_writing: bool,
}

impl LineQueue {
    const fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.n_lost == 0 && !self.is_writing
    }

    /// Takes the lines to be written next, with a note of lost ones in their place.
    fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.waiting);
        let n_lost = std::mem::take(&mut self.n_lost);
        if n_lost > 0 {
            let line = format!(" WARN {n_lost} entries were lost here: nobody read this log\n");
            bytes.extend_from_slice(line.as_bytes());
        }
        bytes
    }
}

impl QueuedLines {
    /// Writes what comes, for ever.
    fn write_to(&self, mut file: impl Write) {
        let mut state = lock(&self.state);
        loop {
            let is_idle = |state: &mut LineQueue| state.is_idle();
            state = self.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
            let bytes = state.take();
            state.is_writing = true;
            drop(state);
            // What cannot be written, for the pipe is closed or the disk full, is lost: it could not
            // be said either.
            let _ = file.write_all(&bytes);
            state = lock(&self.state);
            state.is_writing = false;
            self.changed.notify_all();
        }
    }
}

impl LogQueue {
    /// A queue that leads to standard error, whose open file is left as it is: others share it, and
    /// would not expect it to be non-blocking.
    ///
    /// # Errors
    /// Where it is closed, or no thread is left.
    pub(crate) fn to_stderr() -> io::Result<Self> {
        // Not through `Stderr`, whose lock would be held while nobody reads.
        Self::to(File::from(io::stderr().as_fd().try_clone_to_owned()?))
    }

    fn to(file: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Self(Arc::default());
        let shared = queue.0.clone();
        thread::Builder::new().name("log".into()).spawn(move || shared.write_to(file))?;
        Ok(queue)
    }

    /// Waits a little until all is written.
    pub(crate) fn finish(&self) {
        let is_busy = |state: &mut LineQueue| !state.is_idle();
        let _ = self.0.changed.wait_timeout_while(lock(&self.0.state), FAREWELL, is_busy);
    }
}

impl Write for LogQueue {
    /// Takes one entry, or counts it. Never waits.
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.0.state);
        // Behind one that was lost none fits, so that the count stands in its place.
        if state.n_lost > 0 || state.waiting.len() + entry.len() > MAX_BYTES {
            state.n_lost += 1;
        } else {
            state.waiting.extend_from_slice(entry);
        }
        self.0.changed.notify_all();
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};

    #[test]
    fn what_nobody_reads_is_counted_in_its_place() {
        let (reader, pipe) = io::pipe().unwrap();
        let mut queue = LogQueue::to(pipe).unwrap();
        // Far more than a pipe and the queue hold.
        let n_entries = 40_000;
        for number in 0..n_entries {
            queue.write_all(format!("{number}\n").repeat(2).as_bytes()).unwrap();
        }
        queue.finish();
        assert!(!lock(&queue.0.state).is_idle(), "nobody has read it");
        let (mut next, mut n_lost) = (0, 0);
        for line in BufReader::new(reader).lines().map(Result::unwrap) {
            let told = line.strip_prefix(" WARN ").and_then(|rest| rest.split_once(' '));
            if let Some((n, _)) = told {
                n_lost += n.parse::<u64>().unwrap();
                next += 2 * n.parse::<u64>().unwrap();
            } else {
                assert_eq!(line.parse::<u64>().unwrap(), next / 2);
                next += 1;
            }
            if next == 2 * n_entries {
                break;
            }
        }
        assert!(n_lost > 0);
        queue.finish();
        assert!(lock(&queue.0.state).is_idle());
    }
}
