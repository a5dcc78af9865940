//! Which processes a session may have events on, where that is not decided by our own privileges.

use crate::live::attach::OpenEvent;
use std::collections::HashMap;
use std::fmt::Debug;

/// For whom a session is, if that is somebody with fewer privileges than ours.
///
/// Events are on the target's own threads then, however many it has. There the kernel takes them
/// away when a task gets other privileges by exec; on whole CPUs such a task would stay part of the
/// target.
pub trait Permission: Debug + Send + Sync {
    /// Whether events on process `pid`, as it is now, are for them to have.
    fn may_see(&self, pid: i32) -> bool;
}

/// Closes the events on processes that are not to be seen: asked after they were opened, for before
/// that a process could still execute a set-uid program. What they sampled is as if it had never been.
pub(super) fn close_unseen(permission: &dyn Permission, events: &mut [OpenEvent]) {
    let mut answers = HashMap::new();
    for open in events {
        if !*answers.entry(open.pid).or_insert_with(|| permission.may_see(open.pid)) {
            (open.fd, open.leader) = (None, None);
        }
    }
}
