//! Samples that wait for a worker's answer, and the questions on their way to one.

use crate::bytes::file::LoadObjectIdx;
use crate::index::question::{Needs, Question, Request};
use crate::process::table::{ObjectState, ProcessTable};
use dataspace_proto::record::Sample;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

/// Samples are compared by so many bytes of code that they wait for: more than any program has.
const BYTES_OF_SCALE: u64 = 1 << 32;

/// Parked samples by the question that each waits for, and requests that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    samples: FxHashMap<(LoadObjectIdx, Question), Vec<Sample>>,
    n_samples: usize,
    requests: VecDeque<Request>,
    /// Load objects that no sample waited for when they were to be opened, each asked for once.
    opened: FxHashSet<LoadObjectIdx>,
    /// There is not time for all: questions about one load object stay together.
    is_late: bool,
}

impl Parking {
    pub(crate) const fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Parks a sample. The first one that waits for an answer has its question asked.
    pub(crate) fn park(&mut self, processes: &mut ProcessTable, sample: &Sample, needs: Needs) {
        let Needs { object, question } = needs;
        self.n_samples += 1;
        let waiting = self.samples.entry((object, question)).or_default();
        waiting.push(*sample);
        if waiting.len() == 1
            && let Some(known) = processes.object_mut(object)
        {
            if matches!(known.state, ObjectState::Unopened) {
                known.state = ObjectState::Opening;
            }
            let key = Arc::clone(&known.key);
            self.ask(Request { object, key, question });
        }
    }

    /// Has a load object opened that no sample waits for, once.
    pub(crate) fn open(&mut self, processes: &ProcessTable, object: LoadObjectIdx) {
        if let Some(known) = processes.object(object)
            && matches!(known.state, ObjectState::Unopened)
            && self.opened.insert(object)
        {
            let key = Arc::clone(&known.key);
            self.ask(Request { object, key, question: Question::Open });
        }
    }

    /// Drops questions that no sample waits for, and puts the others in the order in which they name most samples soonest:
    /// those about small load objects that many samples wait for come first, and what an answer leads to comes with the others
    /// about its load object.
    pub(crate) fn hurry(&mut self) {
        self.is_late = true;
        let samples = &self.samples;
        self.requests.retain(|request| samples.contains_key(&(request.object, request.question)));
        let waiting = self.waiting();
        self.requests.make_contiguous().sort_by_key(|request| {
            let (start, end) = request.key.range;
            let n_bytes = end.0.saturating_sub(start.0).max(1);
            let n_samples = waiting.get(&request.object).copied().unwrap_or(0) as u64;
            Reverse(n_samples.saturating_mul(BYTES_OF_SCALE) / n_bytes)
        });
    }

    pub(crate) fn n_requests(&self) -> usize {
        self.requests.len()
    }

    /// The samples that wait for an answer; from now on none does.
    pub(crate) fn take(&mut self, asked: (LoadObjectIdx, Question)) -> Vec<Sample> {
        let waiting = self.samples.remove(&asked).unwrap_or_default();
        self.n_samples -= waiting.len();
        waiting
    }

    /// All samples that wait; no question is asked any more.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Sample> + use<> {
        self.n_samples = 0;
        self.requests.clear();
        std::mem::take(&mut self.samples).into_values().flatten()
    }

    /// Puts a question after the others, in a hurry after those about its load object; the samples that wait for it go on
    /// waiting. They may have been given up.
    pub(crate) fn ask_again(
        &mut self,
        processes: &ProcessTable,
        (object, question): (LoadObjectIdx, Question),
    ) {
        let is_waited_for = self.samples.contains_key(&(object, question));
        if let Some(known) = processes.object(object).filter(|_| is_waited_for) {
            let key = Arc::clone(&known.key);
            self.ask(Request { object, key, question });
        }
    }

    fn ask(&mut self, request: Request) {
        // Questions about one load object keep their order: what is named first votes for what comes after it.
        let is_of_it = |other: &Request| other.object == request.object;
        let at = match self.is_late {
            true => self.requests.iter().rposition(is_of_it).map_or(0, |last| last + 1),
            false => self.requests.len(),
        };
        self.requests.insert(at, request);
    }

    /// Number of samples that wait for each load object's debug information.
    pub(crate) fn waiting(&self) -> FxHashMap<LoadObjectIdx, usize> {
        let mut waiting = FxHashMap::default();
        for ((object, _), samples) in &self.samples {
            *waiting.entry(*object).or_default() += samples.len();
        }
        waiting
    }

    /// The next question for a worker.
    pub(crate) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::data_symbol::DataPlace;
    use crate::process::table::Backing;
    use dataspace_proto::address::{Avma, Svma};
    use dataspace_proto::record::Mmap;

    #[test]
    fn in_a_hurry_small_files_of_many_samples_come_first_and_what_they_lead_to() {
        let mut processes = ProcessTable::default();
        let map = |start: u64, len_bytes, path: &str| Mmap {
            pid: 1,
            start: Avma(start),
            len_bytes,
            is_executable: true,
            path: path.as_bytes().into(),
            ..Mmap::default()
        };
        for (start, len_bytes, path) in [
            (0x10_0000, 0x8_0000, "/large"),
            (0x20_0000, 0x1000, "/cold"),
            (0x30_0000, 0x1000, "/hot"),
        ] {
            processes.mmap(&map(start, len_bytes, path));
        }
        let object_at =
            |processes: &ProcessTable, at| match processes.mapping(1, Avma(at)).unwrap().backing {
                Backing::File(object) => object,
                _ => panic!("a file is there"),
            };
        let [large, cold, hot] =
            [0x10_0000, 0x20_0000, 0x30_0000].map(|at| object_at(&processes, at));
        let mut parking = Parking::default();
        for (object, n_samples) in [(large, 40), (cold, 2), (hot, 30)] {
            let needs = Needs { object, question: Question::Open };
            (0..n_samples).for_each(|_| parking.park(&mut processes, &Sample::default(), needs));
        }
        parking.hurry();
        let mut next = || parking.next_request().map(|request| request.object);
        assert_eq!(next(), Some(hot));
        let question = Question::Data(DataPlace::fixed(Svma(8)));
        parking.park(&mut processes, &Sample::default(), Needs { object: hot, question });
        let mut next = || parking.next_request().map(|request| request.object);
        assert_eq!([next(), next(), next(), next()], [Some(hot), Some(cold), Some(large), None]);
    }

    #[test]
    fn each_sample_that_waits_is_given_back_once() {
        const N_SAMPLES: usize = 1000;
        let (mut parking, mut processes) = (Parking::default(), ProcessTable::default());
        let needs = |at| Needs {
            object: LoadObjectIdx(0),
            question: Question::Data(DataPlace::fixed(Svma(at))),
        };
        for at in 0..N_SAMPLES as u64 {
            parking.park(&mut processes, &Sample::default(), needs(at % 3));
        }
        assert_eq!(parking.n_samples(), N_SAMPLES);
        let question = needs(0).question;
        let n_given = parking.take((LoadObjectIdx(0), question)).len();
        assert_eq!(n_given, N_SAMPLES.div_ceil(3));
        assert_eq!(parking.take((LoadObjectIdx(0), question)).len(), 0);
        assert_eq!(parking.take_all().count(), N_SAMPLES - n_given);
        assert_eq!(parking.n_samples(), 0);
    }
}
