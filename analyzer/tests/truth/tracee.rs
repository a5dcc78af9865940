//! A program under ptrace: started, brought to a place, and moved one instruction at a time.

use crate::truth::step::State;
use dataspace_proto::stack::N_STACK_BYTES;
use nix::libc::user_regs_struct;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io::{Error, Result, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `int3`.
const BREAKPOINT: u8 = 0xcc;

/// A stopped program.
pub(crate) struct Tracee {
    pub(crate) pid: Pid,
    pub(crate) memory: File,
}

/// What came of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// One instruction, or one round of a repeated one, is done.
    Stepped,
    /// A signal came instead.
    Signalled(Signal),
    /// The program is gone.
    Ended,
}

/// Keeps this thread, and what it starts, on one CPU: a step is two switches between tracer and
/// program, and waking another CPU costs several times as much. Where it may not, it is slow.
pub(crate) fn stay_on(cpu: usize) {
    let mut only = CpuSet::new();
    let _ = only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
}

/// What `work` makes of `program`, stopped at the address `main` in its file's terms, or else where
/// exec left it. It does not outlive a failure.
pub(crate) fn with<T>(
    program: &Path,
    main: Option<u64>,
    work: impl FnOnce(Tracee) -> Result<T>,
) -> Result<T> {
    let mut child = start(program)?;
    let outcome = Tracee::attach(&child, program, main).and_then(work);
    if outcome.is_err() {
        // It may be stopped, or gone and waited for.
        let _ = child.kill().and_then(|()| child.wait());
    }
    outcome
}

/// The program behind a shell that waits for a line, without address randomisation.
fn start(program: &Path) -> Result<Child> {
    let mut command = Command::new("setarch");
    command.args(["-R", "sh", "-c", "read line; exec \"$0\""]).arg(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn failed(what: &str, status: &WaitStatus) -> Error {
    Error::other(format!("{what}: {status:?}"))
}

/// Waits for this child alone; other threads trace others.
fn wait(pid: Pid) -> Result<WaitStatus> {
    Ok(waitpid(pid, Some(WaitPidFlag::__WALL))?)
}

impl Tracee {
    /// A program that stands at `main`, or else where exec left it: before the dynamic loader.
    fn attach(child: &Child, program: &Path, main: Option<u64>) -> Result<Self> {
        let pid = Pid::from_raw(child.id().cast_signed());
        ptrace::seize(pid, Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL)?;
        child.stdin.as_ref().map_or(Ok(()), |mut stdin| stdin.write_all(b"\n"))?;
        let exe = format!("/proc/{pid}/exe");
        let program = program.canonicalize()?;
        loop {
            match wait(pid)? {
                WaitStatus::PtraceEvent(..) if std::fs::read_link(&exe)? == program => break,
                WaitStatus::PtraceEvent(..) => ptrace::cont(pid, None)?,
                WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal)?,
                status => return Err(failed("the program did not start", &status)),
            }
        }
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let tracee = Self { pid, memory };
        if let Some(main) = main {
            tracee.run_to(tracee.bias(&program)?.wrapping_add(main))?;
        }
        Ok(tracee)
    }

    /// What the kernel added to the file's addresses.
    fn bias(&self, program: &Path) -> Result<u64> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let path = program.to_string_lossy();
        let line = maps.lines().find(|line| line.ends_with(&*path));
        let start = line.and_then(|line| line.split('-').next());
        let start = start.and_then(|start| u64::from_str_radix(start, 16).ok());
        let start = start.ok_or_else(|| Error::other("the program is not mapped"))?;
        // Without -pie the first segment is where the file says, far above the first page.
        Ok(if start < 0x1000_0000 { 0 } else { start })
    }

    fn run_to(&self, address: u64) -> Result<()> {
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, address)?;
        self.memory.write_all_at(&[BREAKPOINT], address)?;
        ptrace::cont(self.pid, None)?;
        match wait(self.pid)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            status => return Err(failed("main was not reached", &status)),
        }
        self.memory.write_all_at(&byte, address)?;
        let mut regs = ptrace::getregs(self.pid)?;
        regs.rip = address;
        ptrace::setregs(self.pid, regs)?;
        Ok(())
    }

    /// The registers as they are.
    pub(crate) fn state(&self) -> Result<State> {
        let registers = self.registers()?;
        let mut stack = [0; N_STACK_BYTES];
        // Nothing is there where a test has put the stack pointer elsewhere.
        let _ = self.memory.read_at(&mut stack, registers.rsp);
        Ok(State::of(&registers).with_stack(&stack))
    }

    pub(crate) fn registers(&self) -> Result<user_regs_struct> {
        Ok(ptrace::getregs(self.pid)?)
    }

    pub(crate) fn set_registers(&self, registers: user_regs_struct) -> Result<()> {
        Ok(ptrace::setregs(self.pid, registers)?)
    }

    /// Ends it; the next step says so.
    pub(crate) fn kill(&self) -> Result<()> {
        Ok(ptrace::kill(self.pid)?)
    }

    /// One instruction, with the signal that is to be delivered first.
    pub(crate) fn step(&self, signal: Option<Signal>) -> Result<Outcome> {
        match ptrace::step(self.pid, signal) {
            // It was killed.
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => return Err(error.into()),
        }
        match wait(self.pid)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(Outcome::Stepped),
            WaitStatus::Stopped(_, other) => Ok(Outcome::Signalled(other)),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => Ok(Outcome::Ended),
            status => Err(failed("a step went wrong", &status)),
        }
    }
}
