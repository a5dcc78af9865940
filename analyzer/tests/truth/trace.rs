//! Single-steps a program from `main` to its end and keeps an even choice of its steps.

use crate::truth::cache::Cache;
use crate::truth::operand::{self, Touch};
use crate::truth::step::{MAX_SKID, Pick, Random, Reservoir, State};
use crate::truth::tracee::{self, Outcome, Tracee};
use dataspace_proto::register::Register;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use std::collections::{HashMap, VecDeque};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Steps after which a run is cut: no program here should need as many.
const MAX_STEPS: u64 = 600_000;

/// Longest x86 instruction.
pub(crate) const MAX_INSTRUCTION_BYTES: usize = 15;

/// Steps between two checks of an address.
const CHECK_INTERVAL: u64 = 16;

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
    /// A choice of those that a program would wait for until `main` returns: all that runs but once, at the end, would
    /// weigh as much as the program.
    pub(crate) waits: Vec<Pick>,
}

/// The instruction in `bytes` at `ip`.
pub(crate) fn decode(ip: u64, bytes: &CodeBytes) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// Steps through `program` from the address `main` in its file's terms.
pub(crate) fn trace(program: &Path, main: u64, n_picks: usize) -> Result<Trace> {
    tracee::with(program, Some(main), |tracee| Stepper::new(tracee, n_picks).run())
}

struct Stepper {
    tracee: Tracee,
    n_picks: usize,
    trace: Trace,
    touches: HashMap<u64, Touch>,
    factory: InstructionInfoFactory,
    window: VecDeque<State>,
    cache: Cache,
    /// Of each state of the window, whether its instruction waits.
    waits: VecDeque<bool>,
}

impl Stepper {
    fn new(tracee: Tracee, n_picks: usize) -> Self {
        Self {
            tracee,
            n_picks,
            trace: Trace::default(),
            touches: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            window: VecDeque::new(),
            cache: Cache::default(),
            waits: VecDeque::new(),
        }
    }

    /// Steps to the end of the program.
    fn run(mut self) -> Result<Trace> {
        let mut random = Random::seeded(self.n_picks as u64);
        let mut any = Reservoir::new(self.n_picks);
        let mut memory = Reservoir::new(self.n_picks);
        let mut waits = Reservoir::new(self.n_picks);
        let mut signal = None;
        let mut promised = None;
        let mut returned = None;
        let mut is_in_main = true;
        loop {
            let state = self.tracee.state()?;
            let top = (state.top_of_stack(), state.get(Register::Rsp) + 8);
            is_in_main &= (state.ip(), state.get(Register::Rsp)) != *returned.get_or_insert(top);
            self.see(state.ip())?;
            check(promised, &state)?;
            promised = self.promise(&state);
            let is_waited_for = is_in_main && self.is_waited_for(&state);
            self.waits.push_back(is_waited_for);
            self.window.push_back(state);
            if self.window.len() == MAX_SKID + 2 {
                let pick = Pick::of(&self.window, &mut random);
                any.offer(&mut random, &pick);
                if self.touches.get(&pick.at.ip()).is_some_and(|touch| *touch != Touch::None) {
                    memory.offer(&mut random, &pick);
                }
                if self.waits.get(1) == Some(&true) {
                    waits.offer(&mut random, &pick);
                }
                self.window.pop_front();
                self.waits.pop_front();
            }
            self.trace.n_steps += 1;
            if self.trace.n_steps == MAX_STEPS {
                self.tracee.kill()?;
            }
            match self.tracee.step(signal.take())? {
                Outcome::Stepped => {}
                // The handler's first instruction does not follow the interrupted one.
                Outcome::Signalled(other) => {
                    signal = Some(other);
                    promised = None;
                    self.window.clear();
                    self.waits.clear();
                }
                Outcome::Ended => break,
            }
        }
        (self.trace.any, self.trace.memory) = (any.picks, memory.picks);
        self.trace.waits = waits.picks;
        Ok(self.trace)
    }

    /// Whether a line that the instruction touches is not in the cache.
    fn is_waited_for(&mut self, state: &State) -> bool {
        let is_none = self.touches.get(&state.ip()).is_none_or(|touch| *touch == Touch::None);
        let bytes = self.trace.code.get(&state.ip()).filter(|_| !is_none);
        let Some(instruction) = bytes.map(|bytes| decode(state.ip(), bytes)) else { return false };
        let addresses = operand::addresses(&instruction, state, &mut self.factory);
        // Each is touched, whether or not one before it is missed.
        addresses.into_iter().filter(|at| self.cache.misses(*at)).count() != 0
    }

    /// What the next load must bring, asked of the program's memory every so many steps.
    fn promise(&self, state: &State) -> Option<Promise> {
        if !self.trace.n_steps.is_multiple_of(CHECK_INTERVAL) {
            return None;
        }
        let instruction = decode(state.ip(), self.trace.code.get(&state.ip())?);
        let (register, address) = operand::plain_load(&instruction, state)?;
        let mut bytes = [0; 8];
        self.tracee.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(Promise { ip: state.ip(), register, value: u64::from_le_bytes(bytes) })
    }

    /// Notes the code at an IP that is executed for the first time.
    fn see(&mut self, ip: u64) -> Result<()> {
        if self.touches.contains_key(&ip) {
            return Ok(());
        }
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        // The last instruction of a mapping may be shorter than the longest one there is.
        let _n_read = self.tracee.memory.read_at(&mut bytes, ip)?;
        let instruction = decode(ip, &bytes);
        if instruction.code() == Code::INVALID {
            return Err(Error::other(format!("no instruction at {ip:#x}: {bytes:x?}")));
        }
        self.touches.insert(ip, operand::touch(&instruction, &mut self.factory));
        self.trace.code.insert(ip, bytes);
        if !is_mapped(&self.trace.maps, ip) {
            self.trace.maps = std::fs::read_to_string(format!("/proc/{}/maps", self.tracee.pid))?;
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
