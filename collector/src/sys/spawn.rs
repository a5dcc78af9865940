//! Children of ours: a command that waits, forked but not executed, until its events are open, and
//! one that does nothing.

use dataspace_proto::broker::CommandOutput;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus, waitid, waitpid};
use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

/// A child that has not executed its command yet. Dropped, it exits without doing so.
#[derive(Debug)]
pub(crate) struct HeldChild {
    /// `None` once the child is the caller's, or where it is another's.
    child: Option<Child>,
    pid: i32,
    release: Option<OwnedFd>,
    exec_errno: OwnedFd,
}

/// A child process. Nobody else waits for it.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
}

/// Forks a child that will execute `argv`, with its output where `output` says.
pub(crate) fn hold(argv: &[OsString], output: CommandOutput) -> Result<HeldChild, Errno> {
    let argv: Vec<CString> = argv
        .iter()
        .map(|word| CString::new(word.as_bytes()).map_err(|_| Errno::INVAL))
        .collect::<Result<_, _>>()?;
    if argv.is_empty() {
        return Err(Errno::INVAL);
    }
    // Made before the fork: the child must not allocate.
    let mut pointers: Vec<*const c_char> = argv.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // A child that inherited another's end of a pipe would keep that one waiting for its own end, and
    // two each other for ever: no child is forked while another's pipe is there but not yet its own.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (wait, release) = pipe_with(PipeFlags::CLOEXEC)?;
    let (exec_errno, report) = pipe_with(PipeFlags::CLOEXEC)?;
    // The child's copy of `release` would keep its own `wait` from ever ending.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null_fd = null.as_raw_fd();
    let ends = ChildEnds {
        wait: wait.as_raw_fd(),
        report: report.as_raw_fd(),
        own: release.as_raw_fd(),
        stdio: match output {
            CommandOutput::Inherit => [0, 1, 2],
            CommandOutput::Stderr => [0, 2, 2],
            CommandOutput::Discard => [null_fd; 3],
        },
    };
    // SAFETY: the child calls only async-signal-safe functions (`execute`) before it executes or
    // exits, so the locks that other threads held at the fork do not matter.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this is the child; `pointers` is a null-terminated array of C strings that
        // `argv` keeps alive in this copy of the memory.
        unsafe { execute(&pointers, ends) }
    }
    let child = Child::forked(pid)?;
    drop(alone);
    Ok(HeldChild { child: Some(child), pid, release: Some(release), exec_errno })
}

/// A child that does nothing until it is told to end. Dropped, it is.
#[derive(Debug)]
pub(crate) struct IdleChild {
    child: Child,
    end: OwnedFd,
}

/// Forks a child that does nothing. It does not outlive this thread.
///
/// It ends by a byte and no signal, for a worker may send none. Other children may hold ends of its pipe: they neither
/// read nor write, so that the byte is for this one.
pub(crate) fn idle() -> Result<IdleChild, Errno> {
    let (wait, end) = pipe_with(PipeFlags::CLOEXEC)?;
    let wait_fd = wait.as_raw_fd();
    let parent = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: the child calls only async-signal-safe functions until it ends, so the locks that other
    // threads held at the fork do not matter.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: system calls with a pointer to a local of the right size, or without pointers.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let mut byte = 0u8;
            // Who died before that was not heard of.
            while libc::getppid() == parent && libc::read(wait_fd, (&raw mut byte).cast(), 1) < 0 {}
            libc::_exit(0)
        }
    }
    Child::forked(pid).map(|child| IdleChild { child, end })
}

impl IdleChild {
    /// The child's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.child.pid.as_raw_nonzero().get()
    }

    /// Ends it and waits until it has; it stays a zombie until it is dropped.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn end(&self) -> Result<(), Errno> {
        rustix::io::write(&self.end, &[1])?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.child.pid), options)).map(drop)
    }
}

impl Drop for IdleChild {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.end, &[1]);
        let _ = self.child.reap();
    }
}

struct ChildEnds {
    wait: libc::c_int,
    report: libc::c_int,
    own: libc::c_int,
    /// Its standard input, output and error.
    stdio: [libc::c_int; 3],
}

/// This process, of the two that there are after [`fork_worker`].
#[derive(Debug)]
pub(crate) enum Fork {
    /// The one that was there before, and its child.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Makes a second process of this one, which goes on as it does.
///
/// # Errors
/// What the kernel said; `EBUSY` where this process has more than one thread: the others' locks would stay as they
/// are in the child, for ever.
pub(crate) fn fork_worker(n_threads: u64) -> Result<Fork, Errno> {
    if n_threads != 1 {
        return Err(Errno::BUSY);
    }
    // SAFETY: this is the only thread, so that the child's copy of memory is whole: no lock is held in it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        return Ok(Fork::Child);
    }
    Ok(Fork::Parent(Child::forked(pid)?.pid))
}

/// The child's life up to exec.
///
/// # Safety
/// To be called in a child just forked; `argv` is a null-terminated array of valid C strings.
unsafe fn execute(argv: &[*const c_char], ends: ChildEnds) -> ! {
    // SAFETY: every call below is async-signal-safe (signal-safety(7); glibc's execvp from 2.24 on
    // allocates nothing), and the pointers are to locals of the right size or upheld by the caller.
    unsafe {
        libc::close(ends.own);
        // Rust ignores SIGPIPE, and this thread may block signals: the command must not inherit
        // either.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let mut byte = 0u8;
        loop {
            match libc::read(ends.wait, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                // End of file: the profiler gave up, or is gone.
                _ => libc::_exit(0),
            }
        }
        for (stream, source) in (0..).zip(ends.stdio) {
            if stream != source {
                libc::dup2(source, stream);
            }
        }
        libc::execvp(argv[0], argv.as_ptr());
        let errno = *libc::__errno_location();
        libc::write(ends.report, (&raw const errno).cast(), size_of_val(&errno));
        libc::_exit(127)
    }
}

impl HeldChild {
    /// Another process's child, which is held by these pipes.
    pub(crate) const fn of_another(pid: i32, release: OwnedFd, exec_errno: OwnedFd) -> Self {
        Self { child: None, pid, release: Some(release), exec_errno }
    }

    /// The pipe that releases the child, and the one that tells why it could not execute.
    pub(crate) fn pipes(&self) -> Option<[&OwnedFd; 2]> {
        Some([self.release.as_ref()?, &self.exec_errno])
    }

    /// The child, where it is ours.
    pub(crate) const fn child(&self) -> Option<&Child> {
        self.child.as_ref()
    }

    /// The child's process id.
    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the child execute its command, and waits until it has; gives it where it is ours.
    ///
    /// # Errors
    /// What `execvp` said; the child is gone then.
    pub(crate) fn release(mut self) -> Result<Option<Child>, Errno> {
        if let Some(release) = self.release.take() {
            // A child that was killed while it waited reads nothing: its status tells, later.
            let _ = rustix::io::retry_on_intr(|| rustix::io::write(&release, &[1]));
        }
        let mut errno = [0u8; 4];
        let n_bytes = rustix::io::retry_on_intr(|| rustix::io::read(&self.exec_errno, &mut errno))?;
        if n_bytes == errno.len() {
            return Err(Errno::from_raw_os_error(i32::from_ne_bytes(errno)));
        }
        Ok(self.child.take())
    }
}

impl Drop for HeldChild {
    fn drop(&mut self) {
        // The child reads the end of its pipe and exits.
        drop(self.release.take());
        if let Some(child) = &self.child {
            let _ = child.reap();
        }
    }
}

impl Child {
    /// Answer of `fork()`, which has just given `pid`, to the parent.
    fn forked(pid: libc::pid_t) -> Result<Self, Errno> {
        let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(|| {
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::AGAIN)
        })?;
        Ok(Self { pid })
    }

    /// Waits for the child's end.
    pub(crate) fn reap(&self) -> Option<WaitStatus> {
        let status =
            rustix::io::retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty())).ok()?;
        status.map(|(_, status)| status)
    }

    /// Asks the child to end.
    pub(crate) fn terminate(&self) {
        // Nobody else reaps it, so the number is still its own.
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::TERM);
    }

    /// Tells whether the child has ended, and how, without waiting.
    pub(crate) fn try_reap(&self) -> Option<WaitStatus> {
        waitpid(Some(self.pid), WaitOptions::NOHANG).ok().flatten().map(|(_, status)| status)
    }
}
