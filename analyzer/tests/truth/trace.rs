//! Single-steps a program from `main` to its end and keeps an even choice of its steps.

use crate::truth::operand::{self, Touch};
use crate::truth::step::{MAX_SKID, Pick, Random, Reservoir, State};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Error, Result, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Steps after which a run is cut: no program here should need as many.
const MAX_STEPS: u64 = 600_000;

/// Longest x86 instruction.
pub(crate) const MAX_INSTRUCTION_BYTES: usize = 15;

/// Steps between two checks of an address.
const CHECK_INTERVAL: u64 = 16;

/// `int3`.
const BREAKPOINT: u8 = 0xcc;

/// The code bytes at one IP.
pub(crate) type CodeBytes = [u8; MAX_INSTRUCTION_BYTES];

/// What is kept of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Trace {
    /// How many instructions were executed.
    pub(crate) n_steps: u64,
    /// `/proc/PID/maps`, as it was when new code was reached last.
    pub(crate) maps: String,
    /// The code at each IP that was executed.
    pub(crate) code: HashMap<u64, CodeBytes>,
    /// A choice of all steps.
    pub(crate) any: Vec<Pick>,
    /// A choice of the steps that touch memory at an address that is known.
    pub(crate) memory: Vec<Pick>,
}

/// The instruction in `bytes` at `ip`.
pub(crate) fn decode(ip: u64, bytes: &CodeBytes) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// Keeps this thread, and what it starts, on one CPU: a step is two switches between tracer and
/// program, and waking another CPU costs several times as much. Where it may not, it is slow.
pub(crate) fn stay_on(cpu: usize) {
    let mut only = CpuSet::new();
    let _ = only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
}

/// Steps through `program` from the address `main` in its file's terms.
pub(crate) fn trace(program: &Path, main: u64, n_picks: usize) -> Result<Trace> {
    let mut child = start(program)?;
    let outcome = Stepper::attach(&child, program, main, n_picks).and_then(Stepper::run);
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

struct Stepper {
    pid: Pid,
    memory: File,
    n_picks: usize,
    trace: Trace,
    touches: HashMap<u64, Touch>,
    factory: InstructionInfoFactory,
    window: VecDeque<State>,
}

fn failed(what: &str, status: &WaitStatus) -> Error {
    Error::other(format!("{what}: {status:?}"))
}

/// Waits for this child alone; other threads trace others.
fn wait(pid: Pid) -> Result<WaitStatus> {
    Ok(waitpid(pid, Some(WaitPidFlag::__WALL))?)
}

impl Stepper {
    /// A stepper whose program stands at `main`.
    fn attach(child: &Child, program: &Path, main: u64, n_picks: usize) -> Result<Self> {
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
        let mut stepper = Self {
            pid,
            memory,
            n_picks,
            trace: Trace::default(),
            touches: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            window: VecDeque::new(),
        };
        stepper.run_to(stepper.bias(&program)?.wrapping_add(main))?;
        Ok(stepper)
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

    fn run_to(&mut self, address: u64) -> Result<()> {
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

    /// Steps to the end of the program.
    fn run(mut self) -> Result<Trace> {
        let mut random = Random::seeded(self.n_picks as u64);
        let mut any = Reservoir::new(self.n_picks);
        let mut memory = Reservoir::new(self.n_picks);
        let mut signal = None;
        let mut promised = None;
        loop {
            let state = State::of(&ptrace::getregs(self.pid)?);
            self.see(state.ip())?;
            check(promised, &state)?;
            promised = self.promise(&state);
            self.window.push_back(state);
            if self.window.len() == MAX_SKID + 2 {
                let pick = Pick::of(&self.window, &mut random);
                any.offer(&mut random, &pick);
                if self.touches.get(&pick.at.ip()).is_some_and(|touch| *touch != Touch::None) {
                    memory.offer(&mut random, &pick);
                }
                self.window.pop_front();
            }
            self.trace.n_steps += 1;
            if self.trace.n_steps == MAX_STEPS {
                ptrace::kill(self.pid)?;
            } else {
                ptrace::step(self.pid, signal.take())?;
            }
            match wait(self.pid)? {
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
                // The handler's first instruction does not follow the interrupted one.
                WaitStatus::Stopped(_, other) => {
                    signal = Some(other);
                    promised = None;
                    self.window.clear();
                }
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => break,
                status => return Err(failed("a step went wrong", &status)),
            }
        }
        (self.trace.any, self.trace.memory) = (any.picks, memory.picks);
        Ok(self.trace)
    }

    /// What the next load must bring, asked of the program's memory every so many steps.
    fn promise(&self, state: &State) -> Option<Promise> {
        if !self.trace.n_steps.is_multiple_of(CHECK_INTERVAL) {
            return None;
        }
        let instruction = decode(state.ip(), self.trace.code.get(&state.ip())?);
        let (register, address) = operand::plain_load(&instruction, state)?;
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(Promise { ip: state.ip(), register, value: u64::from_le_bytes(bytes) })
    }

    /// Notes the code at an IP that is executed for the first time.
    fn see(&mut self, ip: u64) -> Result<()> {
        if self.touches.contains_key(&ip) {
            return Ok(());
        }
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        // The last instruction of a mapping may be shorter than the longest one there is.
        let _n_read = self.memory.read_at(&mut bytes, ip)?;
        let instruction = decode(ip, &bytes);
        if instruction.code() == Code::INVALID {
            return Err(Error::other(format!("no instruction at {ip:#x}: {bytes:x?}")));
        }
        self.touches.insert(ip, operand::touch(&instruction, &mut self.factory));
        self.trace.code.insert(ip, bytes);
        if !is_mapped(&self.trace.maps, ip) {
            self.trace.maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        }
        Ok(())
    }
}

/// What a register must hold after a load.
#[derive(Clone, Copy)]
struct Promise {
    ip: u64,
    register: iced_x86::Register,
    value: u64,
}

/// The truth about addresses is held to the processor's own: the load brought what is there.
fn check(promised: Option<Promise>, state: &State) -> Result<()> {
    let Some(Promise { ip, register, value }) = promised else { return Ok(()) };
    if operand::value(state, register) == Some(value) {
        return Ok(());
    }
    Err(Error::other(format!("the load at {ip:#x} did not bring {value:#x}: {state:x?}")))
}

/// Whether executable memory of `maps` holds `ip`.
fn is_mapped(maps: &str, ip: u64) -> bool {
    maps.lines().any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        range.is_some_and(|(start, end)| (hex(start)..hex(end)).contains(&ip))
            && line.split(' ').nth(1).is_some_and(|flags| flags.contains('x'))
    })
}
