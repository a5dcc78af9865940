//! The end of a recording: what was lost, the tables, the header that speaks of all of it.

use super::Writer;
use crate::error::RecorderError;
use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::feature as table;
use crate::perf_data::write::feature::Feature;
use crate::perf_data::write::synthetic::{self, Trailer};
use crate::perf_data::write::{Recorded, front};
use std::path::PathBuf;

/// A record that tells a count of lost samples has its header, the count and at most seven words about
/// whom and when.
const MOST_LOST_BYTES: u64 = 8 * (1 + 1 + 7);

/// Most bytes of the counts of lost samples: one for each event, and one that is of none.
pub(super) const fn most_lost_bytes(n_events: usize) -> u64 {
    MOST_LOST_BYTES * (n_events as u64 + 1)
}

impl Writer {
    /// Ends the recording. `lost` are the samples that the kernel lost, by event; `n_undecodable`
    /// those that made no sense and were not written. Without a count of the kernel's `lost` is
    /// empty, and its LOST records stand for it.
    pub(crate) fn finish(mut self, lost: &[u64], n_undecodable: u64, now_ns: u64) {
        let is_full = self.bound.is_reached;
        let n_lost = self.count_lost(lost, n_undecodable, now_ns);
        let finished = match self.failure.take() {
            Some(failure) => Err(failure),
            None if self.sink.is_file() => self.finish_file(),
            None => self.finish_stream(),
        };
        let result = match finished {
            Ok((n_bytes, previous)) => {
                let Self { n_samples, n_too_long, n_behind_end, .. } = self;
                let is = Recorded {
                    n_samples,
                    n_lost,
                    n_too_long,
                    n_behind_end,
                    n_bytes,
                    is_full,
                    previous,
                };
                Ok(is)
            }
            // It is all there.
            Err(failure @ RecorderError::Unnamed { .. }) => Err(failure),
            Err(failure) => Err(self.broken_off(failure)),
        };
        self.progress.finish(result);
    }

    /// As `perf record` writes it, by event.
    fn count_lost(&mut self, lost: &[u64], n_undecodable: u64, time_ns: u64) -> u64 {
        let sample_type = self.sample_type;
        let ids: Vec<u64> = self.front.events().iter().map(|event| event.id).collect();
        let n_unwritten = n_undecodable + self.n_too_long;
        let by_event = lost.iter().zip(ids).map(|(&n_lost, id)| (n_lost, id));
        let all: Vec<(u64, u64)> = by_event.chain([(n_unwritten, 0)]).collect();
        let sum = all.iter().map(|(n_lost, _)| n_lost).sum();
        // Where nothing was lost but mappings, the LOST records are not about samples: a count of
        // none says so.
        let says_none = sum == 0 && self.has_lost_records && !lost.is_empty();
        let told = all
            .iter()
            .enumerate()
            .filter(|&(event, &(n_lost, _))| n_lost > 0 || (says_none && event == 0));
        for (_, &(n_lost, id)) in told {
            let trailer = Trailer { sample_type, time_ns, id, ..Trailer::default() };
            self.append(|bytes| synthetic::lost_samples(bytes, n_lost, trailer));
        }
        sum
    }

    /// The length, and the name that the file has now which was there before.
    fn finish_file(&mut self) -> Result<(u64, Option<PathBuf>), RecorderError> {
        let data_end = self.sink.n_bytes();
        self.data_end = Some(data_end);
        self.flush()?;
        let mut features = std::mem::take(&mut self.features);
        self.build_ids.finish();
        features.push(Feature::new(table::BUILD_ID, |bytes| self.build_ids.write(bytes)));
        if let Some((first, last)) = self.times_ns {
            features.push(Feature::new(table::SAMPLE_TIME, |bytes| {
                bytes.u64(first);
                bytes.u64(last);
            }));
        }
        features.sort_by_key(|feature| feature.id);
        let tables = front::tables(&features, data_end);
        self.sink.buffer().extend_from_slice(&tables);
        self.sink.flush()?;
        let n_bytes = self.sink.n_bytes();
        // Last: until here the header speaks of the records alone.
        let n_data_bytes = data_end - self.front.data_at();
        self.sink.patch(0, &self.front.file(n_data_bytes, &features))?;
        match (self.sink.publish(), self.sink.part()) {
            (Ok(previous), _) => Ok((n_bytes, previous)),
            (Err(source), Some(part)) => {
                let (source, part) = (Box::new(source), part.to_owned());
                Err(RecorderError::Unnamed { source, part })
            }
            (Err(error), None) => Err(error),
        }
    }

    fn finish_stream(&mut self) -> Result<(u64, Option<PathBuf>), RecorderError> {
        let mut bytes = Bytes::default();
        self.build_ids.finish();
        self.build_ids.write(&mut bytes);
        self.sink.buffer().append(&mut bytes.0);
        self.sink.flush()?;
        Ok((self.sink.n_bytes(), None))
    }

    /// The header of a file that stays unfinished, where it can still be written, and what to say.
    fn broken_off(&mut self, failure: RecorderError) -> RecorderError {
        let Some(part) = self.sink.part().map(ToOwned::to_owned) else { return failure };
        let n_bytes = self.sink.n_flushed().min(self.data_end.unwrap_or(u64::MAX));
        let n_data_bytes = n_bytes.saturating_sub(self.front.data_at());
        // The place of the header is there: no room is needed for it.
        match self.sink.patch(0, &self.front.file(n_data_bytes, &[])) {
            Ok(()) => RecorderError::BrokenOff { source: Box::new(failure), part, n_bytes },
            Err(_) => failure,
        }
    }
}
