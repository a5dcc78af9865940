//! How samples are made of a step: the skid, and whether the data address is told.

use crate::truth::operand::{self, Touch};
use crate::truth::step::{Pick, State};
use crate::truth::trace::Trace;
use dataspace_analyzer::session::analyzer::Config;
use dataspace_proto::address::Avma;
use dataspace_proto::event::{Event, EventKind, Sampling, SkidModel};
use dataspace_proto::record::{CpuMode, Sample};
use dataspace_proto::register::{Register, RegisterAbi};
use iced_x86::{Instruction, InstructionInfoFactory};

/// The process of every sample.
pub(crate) const PID: i32 = 4711;

/// A way to make a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Model {
    /// At the trigger, with the registers before it.
    Exact,
    /// One instruction later, as a clock reports it.
    AfterOne,
    /// The same of what a program waits for.
    AfterWait,
    /// One instruction later, with the data address.
    AfterOneAddressed,
    /// One to eight instructions later, with the data address.
    RandomAddressed,
    /// One to eight instructions later.
    Random,
}

/// The skid that a counter is said to have where it is one to eight.
const RANGE: u32 = crate::truth::step::MAX_SKID as u32;

impl Model {
    pub(crate) const ALL: [Model; 6] = [
        Model::Exact,
        Model::AfterOne,
        Model::AfterWait,
        Model::AfterOneAddressed,
        Model::RandomAddressed,
        Model::Random,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AfterOne => "after-one",
            Self::AfterWait => "after-wait",
            Self::AfterOneAddressed => "after-one+addr",
            Self::RandomAddressed => "random+addr",
            Self::Random => "random",
        }
    }

    /// Whether its samples are those of a clock, which says nothing of memory.
    pub(crate) const fn is_clock(self) -> bool {
        matches!(self, Self::Exact | Self::AfterOne | Self::AfterWait)
    }

    const fn is_addressed(self) -> bool {
        matches!(self, Self::AfterOneAddressed | Self::RandomAddressed)
    }

    /// The steps that it makes samples of.
    pub(crate) fn picks(self, trace: &Trace) -> &[Pick] {
        match self {
            Self::Exact | Self::AfterOne => &trace.any,
            Self::AfterWait => &trace.waits,
            Self::AfterOneAddressed | Self::RandomAddressed | Self::Random => &trace.memory,
        }
    }

    pub(crate) fn config(self) -> Config {
        let skid = (self == Self::Exact).then_some(SkidModel::Exact);
        Config { skid, ..Config::default() }
    }

    pub(crate) fn event(self) -> Event {
        let (kind, skid) = match self {
            Self::Exact => (EventKind::Clock, SkidModel::Exact),
            Self::AfterOne | Self::AfterWait => (EventKind::Clock, SkidModel::AfterOne),
            Self::AfterOneAddressed => (EventKind::Memory, SkidModel::AfterOne),
            Self::RandomAddressed => (EventKind::Memory, SkidModel::Unknown(RANGE)),
            Self::Random => (EventKind::Other, SkidModel::Unknown(RANGE)),
        };
        event(self.name(), kind, skid)
    }

    /// The sample of a pick whose data address is `addr`.
    pub(crate) fn sample(self, pick: &Pick, addr: Option<u64>) -> Sample {
        let state = match self {
            Self::Exact => &pick.at,
            Self::AfterOne | Self::AfterWait | Self::AfterOneAddressed => &pick.next,
            Self::RandomAddressed | Self::Random => &pick.later,
        };
        let mut sample = sample(state, addr.filter(|_| self.is_addressed()));
        if matches!(self, Self::AfterOne | Self::AfterWait | Self::AfterOneAddressed) {
            sample.stack.set(&state.stack());
        }
        sample
    }
}

pub(crate) fn event(name: &str, kind: EventKind, skid: SkidModel) -> Event {
    let sampling = Sampling::Period(1);
    Event { name: name.to_owned(), kind, skid, sampling, includes_kernel: false }
}

pub(crate) fn sample(state: &State, addr: Option<u64>) -> Sample {
    let mut sample = Sample {
        time_ns: 1,
        pid: PID,
        tid: PID,
        period: 1,
        mode: CpuMode::User,
        ip: Avma(state.ip()),
        addr: addr.map(Avma),
        ..Sample::default()
    };
    sample.registers.abi = RegisterAbi::Bits64;
    for register in Register::ALL {
        sample.registers.set(register, state.get(register));
    }
    sample
}

/// What is true of one pick.
pub(crate) struct Truth {
    pub(crate) trigger: Instruction,
    pub(crate) touch: Touch,
    /// The address that hardware would report.
    pub(crate) addr: Option<u64>,
    /// Each address that the trigger touches.
    pub(crate) addresses: Vec<u64>,
    /// The instruction before it, if the two are one to the hardware.
    pub(crate) fused_with: Option<u64>,
}

impl Truth {
    pub(crate) fn of(pick: &Pick, trace: &Trace, factory: &mut InstructionInfoFactory) -> Self {
        let instruction =
            |ip: u64| trace.code.get(&ip).map(|bytes| crate::truth::trace::decode(ip, bytes));
        let trigger = instruction(pick.at.ip()).unwrap_or_default();
        let previous = instruction(pick.previous_ip);
        let is_fused = |previous: &Instruction| {
            previous.next_ip() == trigger.ip()
                && trigger.is_jcc_short_or_near()
                && operand::is_fusible(previous)
        };
        Self {
            trigger,
            touch: operand::touch(&trigger, factory),
            addr: operand::effective_address(&trigger, &pick.at, factory),
            addresses: operand::addresses(&trigger, &pick.at, factory),
            fused_with: previous.filter(is_fused).map(|previous| previous.ip()),
        }
    }
}
