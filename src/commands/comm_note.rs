//! A word where processes were chosen by name and none has it: a mistyped name is no error, for one may begin at any
//! time.

use crate::text::visible;
use dataspace_collector::system::procfs::Procfs;

/// Said at the end where none was sampled.
const NOBODY_CALLED_SO: &str = "note: no process of this name was sampled: none was there, or none had the \
                                event; `ps -e -o pid,comm` shows the names";

/// The note, if processes called `comms` were asked for.
pub(super) fn of(comms: &[Box<[u8]>], procfs: &Procfs) -> Option<String> {
    if comms.is_empty() {
        return None;
    }
    Some(thread_called_so(comms, procfs).unwrap_or_else(|| NOBODY_CALLED_SO.to_owned()))
}

/// A thread that has one of the names, where no process has.
fn thread_called_so(comms: &[Box<[u8]>], procfs: &Procfs) -> Option<String> {
    let has_name =
        |pid: i32, tid: i32| procfs.comm(pid, tid).ok().filter(|name| comms.contains(name));
    let pids = procfs.processes().ok()?;
    if pids.iter().any(|&pid| has_name(pid, pid).is_some()) {
        return None;
    }
    let threads = pids.into_iter().flat_map(|pid| {
        procfs.tasks(pid).unwrap_or_default().into_iter().map(move |tid| (pid, tid))
    });
    let (pid, tid, name) =
        threads.filter_map(|(pid, tid)| Some((pid, tid, has_name(pid, tid)?))).next()?;
    let process = String::from_utf8_lossy(&procfs.comm(pid, pid).unwrap_or_default()).into_owned();
    let (name, process) = (String::from_utf8_lossy(&name).into_owned(), visible(&process));
    let shown = visible(&name);
    Some(format!(
        "note: no process is called {shown}, but thread {tid} of process {pid} ({process}) is:\n  \
         dataspace top -t {tid}\n  dataspace top -p {pid} --by object --where 'comm == \"{shown}\"'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_of_the_name_is_told() {
        let procfs = Procfs::default();
        let named = |name: &str| of(&[name.as_bytes().into()], &procfs);
        assert_eq!(of(&[], &procfs), None);
        assert_eq!(named("nobody-is-so").as_deref(), Some(NOBODY_CALLED_SO));
        let (ready, is_ready) = mpsc::channel();
        let (end, is_over) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("hits-of-a-test".to_owned());
        let thread = thread.spawn(move || {
            ready.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            let _ = is_over.recv();
        });
        let tid = is_ready.recv().unwrap();
        let note = named("hits-of-a-test").unwrap();
        drop(end);
        thread.unwrap().join().unwrap();
        assert!(note.contains(&format!("dataspace top -t {tid}\n")), "{note}");
        let pid = std::process::id();
        let asked =
            format!("dataspace top -p {pid} --by object --where 'comm == \"hits-of-a-test\"'");
        assert!(note.ends_with(&asked), "{note}");
    }
}
