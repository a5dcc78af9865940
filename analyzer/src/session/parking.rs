//! Samples that wait for a worker's answer, and the questions on their way to one.

use crate::bytes::file::LoadObjectIdx;
use crate::index::question::{Needs, Question, Request};
use crate::process::table::{ObjectState, ProcessTable};
use dataspace_proto::record::Sample;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Parked samples by the question that each waits for, and requests that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    samples: FxHashMap<(LoadObjectIdx, Question), Vec<Sample>>,
    n_samples: usize,
    requests: VecDeque<Request>,
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
            self.requests.push_back(Request { object, key, question });
        }
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

    /// Puts a question after the others; the samples that wait for it go on waiting. They may have
    /// been given up.
    pub(crate) fn ask_again(
        &mut self,
        processes: &ProcessTable,
        (object, question): (LoadObjectIdx, Question),
    ) {
        let is_waited_for = self.samples.contains_key(&(object, question));
        if let Some(known) = processes.object(object).filter(|_| is_waited_for) {
            let key = Arc::clone(&known.key);
            self.requests.push_back(Request { object, key, question });
        }
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
    use dataspace_proto::address::Svma;

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
