//! The verdict on one sample, and what is known of its access.

use crate::attribution::claim::Claim;
use crate::attribution::site_table::SiteIdx;
use crate::bytes::file::LoadObjectIdx;
use crate::index::question::Needs;
use crate::index::site::Past;
use crate::x86_64::sampled_stack::SampledStack;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::{Access, MemorySegment};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::{Register, Registers};
use dataspace_proto::sample_line::AddressSource;
use std::num::NonZeroU32;

/// Reason that an attribution has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A worker's answer.
    Answer(Needs),
    /// Other samples, which tell how often the ways to this one's IP are taken.
    Samples(SiteIdx),
}

impl From<Needs> for Wait {
    fn from(needs: Needs) -> Self {
        Self::Answer(needs)
    }
}

/// The account that a sample goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To a data object.
    Attributed(Claim),
    /// To none, and why.
    Unknown(Reason),
    /// Its trigger touches no memory.
    NotMemory,
}

/// A sample's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribution {
    pub(crate) trigger: Option<Avma>,
    pub(crate) access: Option<Access>,
    /// Bytes that the trigger touches.
    pub(crate) size: Option<NonZeroU32>,
    pub(crate) addr: Option<(Avma, AddressSource)>,
    /// Kind of memory that the data address is in, if that was looked up.
    pub(crate) segment: Option<MemorySegment>,
    pub(crate) site: Option<SiteIdx>,
    pub(crate) verdict: Verdict,
}

impl Attribution {
    /// Notes the data address, whose kind of memory is not looked up yet.
    pub(crate) fn set_addr(&mut self, addr: Option<(Avma, AddressSource)>) {
        (self.addr, self.segment) = (addr, None);
    }

    /// Notes that it is told by what is by far more likely.
    pub(crate) fn mark_by_frequency(&mut self) {
        if let Verdict::Attributed(claim) = &mut self.verdict {
            *claim = claim.by_frequency();
        }
    }

    pub(crate) const fn unknown(reason: Reason) -> Self {
        Self {
            trigger: None,
            access: None,
            size: None,
            addr: None,
            segment: None,
            site: None,
            verdict: Verdict::Unknown(reason),
        }
    }

    /// Tells whether nothing in the sample tells which instruction was its trigger.
    pub(crate) const fn is_unresolvable(&self) -> bool {
        matches!(self.verdict, Verdict::Unknown(Reason::Unresolvable))
    }

    /// Bytes that the trigger touches; 0 where that is not known.
    pub(crate) fn size_bytes(&self) -> u32 {
        self.size.map_or(0, NonZeroU32::get)
    }

    /// The claim that it rests on.
    pub(crate) const fn claim(&self) -> Option<&Claim> {
        match &self.verdict {
            Verdict::Attributed(claim) => Some(claim),
            Verdict::Unknown(_) | Verdict::NotMemory => None,
        }
    }
}

/// The sample and where its code is.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) sample: &'a Sample,
    /// Kind of its event.
    pub(crate) kind: EventKind,
    /// The registers of the code that the site is about.
    pub(crate) registers: &'a Registers,
    /// The load object of that code.
    pub(crate) object: LoadObjectIdx,
    /// Number that the loader added to the load object's addresses.
    pub(crate) bias: u64,
    pub(crate) site: SiteIdx,
    pub(crate) past: &'a Past,
}

impl<'a> Located<'a> {
    /// The reported IP in the file's terms.
    pub(crate) fn ip(&self) -> Option<Svma> {
        self.past.trail.nodes.first().map(|here| here.svma)
    }

    /// The stack at the moment that the registers are of: hardware that samples precisely takes these first.
    pub(crate) fn stack(&self) -> SampledStack<'a> {
        let is_of_one_moment = matches!(
            self.kind,
            EventKind::Clock | EventKind::PageFault | EventKind::Breakpoint { .. }
        );
        let stack_pointer = self.registers.get(Register::Rsp).filter(|_| is_of_one_moment);
        let stack = |begin| SampledStack::new(Avma(begin), self.sample.stack.bytes());
        stack_pointer.map_or(SampledStack::NONE, stack)
    }

    /// The address of a trigger in the process.
    pub(crate) fn trigger_avma(&self, trigger: u8) -> Option<Avma> {
        let trigger = self.past.triggers.get(usize::from(trigger))?;
        Some(Avma(trigger.svma.0.wrapping_add(self.bias)))
    }
}
