//! Ways into an instruction, each with code that runs as often as it is taken: samples there tell how often that can be.

use super::access;
use crate::limit;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;

/// A way into an instruction that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the trigger that it comes from.
    pub trigger: u8,
    /// Instructions through which everybody came who took it, nearest first: each ran as often as it was taken, at least.
    pub through: Box<[Svma]>,
    /// Ends of the parts of `through` between which somebody may have gone elsewhere: all of a part ran equally often.
    pub parts: Box<[usize]>,
    /// Those of them before which one ran that waits neither for memory nor for a condition.
    pub quiet: Box<[Svma]>,
    /// Those of them before which a locked access ran: that takes longer than any jump.
    pub locked: Box<[Svma]>,
    /// It comes by a direct jump, which waits for nothing but its own code.
    pub is_jump: bool,
    /// It comes from a loop that the instruction is in.
    pub is_round: bool,
    /// It comes from a loop, be it this one or another.
    pub is_in_loop: bool,
}

impl Arrival {
    /// The way from the instruction at `from` to that at `here`, which may be of another function (`None`).
    pub(super) fn new(
        trigger: u8,
        function: &FunctionCode,
        from: usize,
        here: Option<usize>,
    ) -> Self {
        let (is_round, is_in_loop) = before(function, from, here);
        let is_jump = matches!(function.exit(from), Exit::Jump(_) | Exit::Branch(_));
        let through = through(function, from, here);
        let is_quiet = |at: usize| {
            let instruction = function.instruction(at);
            let is_branch = matches!(function.exit(at), Exit::Branch(_));
            instruction.is_some_and(|it| !access::is_of_memory(it)) && !is_branch
        };
        let is_locked = |at: usize| function.instruction(at).is_some_and(access::is_locked);
        let after = |ran: &dyn Fn(usize) -> bool| {
            let pairs = through.windows(2).filter(|pair| ran(pair[1]));
            pairs.filter_map(|pair| function.svma(pair[0])).collect()
        };
        let (quiet, locked) = (after(&is_quiet), after(&is_locked));
        let parts = parts(function, &through);
        let through = through.iter().filter_map(|at| function.svma(*at)).collect();
        Self { trigger, through, parts, quiet, locked, is_jump, is_round, is_in_loop }
    }
}

/// The instructions that led to the one at `from` alone, nearest first.
fn through(function: &FunctionCode, from: usize, here: Option<usize>) -> Vec<usize> {
    let mut through = Vec::new();
    let mut at = from;
    // The samples at `here` are those that are to be told apart.
    while Some(at) != here && through.len() < limit::MAX_ARRIVAL_INSTRUCTIONS {
        through.push(at);
        let [only] = function.predecessors(at) else { break };
        if function.entrances(at).is_any() || only.from as usize == from {
            break;
        }
        at = only.from as usize;
    }
    through
}

/// The ends of the parts of a way that run equally often: one begins after each branch, nearest first. Of one instruction
/// alone too few samples tell: it is a part with what is before it.
fn parts(function: &FunctionCode, through: &[usize]) -> Box<[usize]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (idx, at) in through.iter().enumerate() {
        if idx >= begin + LEAST_PART && matches!(function.exit(*at), Exit::Branch(_)) {
            parts.push(idx);
            begin = idx;
        }
    }
    parts.push(through.len());
    parts.into()
}

/// Instructions of a part of a way, at least.
const LEAST_PART: usize = 2;

/// Tells whether the instructions at `here` and at `from` can run before that at `from`. Where there are too many to
/// look at, it may be in any loop.
fn before(function: &FunctionCode, from: usize, here: Option<usize>) -> (bool, bool) {
    let mut is_seen = vec![false; function.n_instructions()];
    let mut next = vec![from];
    let mut n_left = limit::MAX_LOOP_INSTRUCTIONS;
    while let Some(at) = next.pop() {
        for before in function.predecessors(at) {
            let before = before.from as usize;
            if is_seen.get(before) != Some(&false) {
                continue;
            }
            if n_left == 0 {
                return (false, true);
            }
            n_left -= 1;
            is_seen[before] = true;
            next.push(before);
        }
    }
    let is_before = |index: usize| is_seen.get(index) == Some(&true);
    (here.is_some_and(is_before), is_before(from))
}
