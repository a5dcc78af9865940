//! The code that may have run before a reported IP, in a form that a sample's registers can be
//! walked back along.

use super::arrival::Arrival;
use super::effect::Effect;
use super::flags::Condition;
use super::memory_effect::MemoryEffect;
use crate::x86_64::edge::Entrances;
use crate::x86_64::pointer::Leap;
use dataspace_proto::address::Svma;

/// The instructions that may have run before the one at a reported IP, by the ways between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trail {
    /// The instructions; the first is the one at IP.
    pub nodes: Box<[Node]>,
    /// Greatest distance back to the trigger, in instructions; 0 where it is the first node itself.
    pub reach: u32,
    /// Only one instruction can have run before the first one: those further back are there for the registers that it has
    /// overwritten.
    pub is_straight: bool,
    /// The ways into the first one, where it can have been reached from several that may be the trigger.
    pub arrivals: Box<[Arrival]>,
}

/// One instruction of a trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its address.
    pub svma: Svma,
    /// Its effects on the registers.
    pub effects: Box<[Effect]>,
    /// The registers that these write to, a bit each by their numbers.
    pub written: u32,
    /// Its reads and writes of memory.
    pub memory: Box<[MemoryEffect]>,
    /// A repeated string instruction: what one of its rounds does.
    pub round: Option<Box<[Effect]>>,
    /// Ways from the instructions that may have run just before it.
    pub ways: Box<[Way]>,
    /// Other ways in which it may have been reached.
    pub entrances: Entrances,
    /// True if what ran before it is too far back to be looked at.
    pub is_end: bool,
    /// Its number among the site's triggers, if it may be one.
    pub trigger: Option<u8>,
}

/// A way from one instruction to the next in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The node that ran before.
    pub from: u16,
    /// Condition that the flags must have met.
    pub condition: Option<BranchCondition>,
    /// The pointer that an indirect jump went by. Few ways have one, and each sample walks along many.
    pub leap: Option<Box<Leap>>,
    /// The instruction is a repeated one that was interrupted between two rounds.
    pub is_round: bool,
}

/// A conditional branch that was or was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCondition {
    /// Its condition.
    pub condition: Condition,
    /// True if it was taken.
    pub is_taken: bool,
}
