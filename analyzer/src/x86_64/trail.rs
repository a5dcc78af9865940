//! The code that may have run before a reported IP, in a form that a sample's registers can be
//! walked back along.

use super::effect::Effect;
use super::flags::Condition;
use crate::x86_64::edge::Entrances;
use dataspace_proto::address::Svma;

/// The instructions that may have run before the one at a reported IP, by the ways between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trail {
    /// The instructions; the first is the one at IP.
    pub nodes: Box<[Node]>,
    /// How many instructions back the trigger may be; 0 where it is the first node itself.
    pub reach: u32,
}

/// One instruction of a trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it is.
    pub svma: Svma,
    /// What it does to the registers.
    pub effects: Box<[Effect]>,
    /// A repeated string instruction: what one of its rounds does.
    pub round: Option<Box<[Effect]>>,
    /// What may have run just before it.
    pub ways: Box<[Way]>,
    /// How else it may have been reached.
    pub entrances: Entrances,
    /// What ran before it is too far back to be looked at.
    pub is_end: bool,
    /// Which of the site's triggers it is, if it may be one.
    pub trigger: Option<u8>,
}

/// A way from one instruction to the next in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The node that ran before.
    pub from: u16,
    /// What the flags must have said.
    pub condition: Option<BranchCondition>,
    /// The instruction is a repeated one that was interrupted between two rounds.
    pub is_round: bool,
}

/// A conditional branch that was or was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCondition {
    /// Its condition.
    pub condition: Condition,
    /// Whether it was taken.
    pub is_taken: bool,
}
