//! A pager between standard output and the terminal.

use rustix::stdio::dup2_stdout;
use std::env::{split_paths, var_os};
use std::ffi::{OsStr, OsString};
use std::io::{Write as _, stdout};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Options of `less` where the user has set none: it ends at once where all fits, shows colours, leaves the screen.
const LESS: &str = "FRX";

/// A pager that standard output goes to until this is dropped, which waits for the reader.
#[derive(Debug)]
pub(crate) struct Pager {
    child: Child,
    /// The terminal.
    terminal: OwnedFd,
    /// The process that started it: a worker has a copy of this, and no child.
    owner: u32,
}

impl Pager {
    /// Starts the pager that the user wants: `DATASPACE_PAGER`, `PAGER`, or `less` if it is installed. None where these
    /// are empty, or `cat`.
    pub(crate) fn start() -> Option<Self> {
        let mut command = match var_os("DATASPACE_PAGER").or_else(|| var_os("PAGER")) {
            Some(pager) => shell(pager)?,
            None => Command::new("less"),
        };
        if var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        let terminal = stdout().as_fd().try_clone_to_owned().ok()?;
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        dup2_stdout(child.stdin.take()?).ok()?;
        Some(Self { child, terminal, owner: std::process::id() })
    }
}

/// A command as people write one into a variable.
fn shell(pager: OsString) -> Option<Command> {
    if pager.is_empty() || pager == "cat" || !is_there(&pager) {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager);
    Some(command)
}

/// Tells whether the first word of a command is a program: what goes to one that is not there is lost.
fn is_there(command: &OsStr) -> bool {
    let words = command.to_string_lossy();
    let Some(program) = words.split_ascii_whitespace().next() else { return false };
    // An assignment, or something that only a shell understands.
    if program.contains(['=', '$', '"', '\'', '(']) || program.contains('/') {
        return !program.starts_with('/') || Path::new(program).exists();
    }
    let path = var_os("PATH").unwrap_or_default();
    split_paths(&path).any(|directory| directory.join(program).exists())
}

impl Drop for Pager {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return;
        }
        let _ = stdout().flush();
        // That was the last end of its input.
        let _ = dup2_stdout(&self.terminal);
        let _ = self.child.wait();
    }
}
