//! A loop with one slow access, and the distance in time of each of its instructions from it.

use dataspace_proto::address::Avma;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

/// Kind of the slow access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    /// A load whose address the load before it brought: a pointer chase.
    DependentLoad,
    /// A load whose address is computed, so that several are under way at once.
    IndependentLoad,
    /// A store.
    Store,
}

impl Access {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::DependentLoad, Self::IndependentLoad, Self::Store];

    /// For a person.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DependentLoad => "dependent load",
            Self::IndependentLoad => "independent load",
            Self::Store => "store",
        }
    }
}

/// Place in the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SlowPlace {
    /// Address that the loop's branch jumps to.
    First,
    /// Among the others.
    Middle,
    /// Right before the loop's branch.
    Last,
}

impl SlowPlace {
    /// For a person.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Middle => "middle",
            Self::Last => "last",
        }
    }
}

/// A loop of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowLoop {
    /// Kind of its slow access.
    pub(crate) access: Access,
    /// Place of that access.
    pub(crate) place: SlowPlace,
    /// All its instructions, in the order in which they run.
    pub(crate) instructions: Vec<Avma>,
    /// Index of the slow one.
    slow_idx: usize,
}

impl SlowLoop {
    /// Reads what the workload says of a loop: `store last 40153b 401520 401524 …`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (access, place) = (named(words.next()?)?, named(words.next()?)?);
        let address = |word| u64::from_str_radix(word, 16).ok().map(Avma);
        let slow = address(words.next()?)?;
        let instructions = words.map(address).collect::<Option<Vec<_>>>()?;
        let slow_idx = instructions.iter().position(|&instruction| instruction == slow)?;
        Some(Self { access, place, instructions, slow_idx })
    }

    /// Number of instructions of an iteration.
    pub(crate) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Number of instructions that retire from the slow access on until the one at `ip` is next, the
    /// first after the last; 0 at the slow access itself, `None` outside the loop. Whole rounds do
    /// not show: loops of different lengths tell them.
    pub(crate) fn distance(&self, ip: Avma) -> Option<usize> {
        let idx = self.instructions.iter().position(|&instruction| instruction == ip)?;
        Some((idx + self.len() - self.slow_idx) % self.len())
    }
}

/// The value that `word` is the name of.
fn named<'a, T: Deserialize<'a>>(word: &'a str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_in_time_round_the_loop() {
        let check = |line: &str, expect: &[usize]| {
            let slow_loop = SlowLoop::parse(line).unwrap();
            let distances: Vec<usize> = [0x10, 0x13, 0x17, 0x18]
                .map(|ip| slow_loop.distance(Avma(ip)).unwrap())
                .into_iter()
                .collect();
            assert_eq!(distances, expect, "{line}");
            assert_eq!(slow_loop.distance(Avma(0x14)), None, "inside an instruction");
            assert_eq!(slow_loop.distance(Avma(0x1a)), None, "after the loop");
        };
        check("store first 10 10 13 17 18", &[0, 1, 2, 3]);
        check("dependent_load middle 13 10 13 17 18", &[3, 0, 1, 2]);
        check("independent_load last 17 10 13 17 18", &[2, 3, 0, 1]);
        check("store last 18 10 13 17 18", &[1, 2, 3, 0]);
    }

    #[test]
    fn what_is_no_loop_is_refused() {
        for line in
            ["", "ready", "store first", "store first 10", "store first 10 13", "store x 1 1"]
        {
            assert_eq!(SlowLoop::parse(line), None, "{line}");
        }
    }
}
