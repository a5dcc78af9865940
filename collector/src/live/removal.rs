//! Tells when the kernel took a session's events from a process that lives on.
//!
//! Exec of a set-uid or unreadable program does so even to root (`begin_new_exec()` in Linux
//! `fs/exec.c`): the rings fall silent, and look as if the process did nothing.

use crate::attach::OpenEvent;
use crate::sys::pidfd;
use crate::target::Watched;

/// Watches for removed events.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    /// Processes that looked so at the last check. One that is just ending does too, for a moment.
    suspected: Vec<i32>,
    told: Vec<i32>,
}

impl Removal {
    /// Processes that are alive without any event left, and have been at the last check.
    pub(crate) fn check(&mut self, watched: &[Watched], events: &[OpenEvent]) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut suspected = Vec::new();
        for watched in watched {
            let pid = watched.pid;
            if self.told.contains(&pid)
                || pidfd::has_ended(&watched.pidfd)
                || !has_no_event_left(pid, events)
            {
                continue;
            }
            if self.suspected.contains(&pid) {
                self.told.push(pid);
                warnings.push(format!(
                    "the kernel removed the events from process {pid}, which lives: it executed a \
                     set-uid or unreadable program, and nothing more can be seen of it"
                ));
            } else {
                suspected.push(pid);
            }
        }
        self.suspected = suspected;
        warnings
    }

    /// Tells whether a check found something that the next one has to confirm.
    pub(crate) fn is_open(&self) -> bool {
        !self.suspected.is_empty()
    }
}

fn has_no_event_left(pid: i32, events: &[OpenEvent]) -> bool {
    let mut fds = events.iter().filter(|open| open.pid == pid).filter_map(|open| open.fd.as_ref());
    fds.all(pidfd::is_hung_up)
}
