//! Counts of the events of a group that a sample of its leader carries (`{cycles,instructions}:S`): the sample stands for
//! each of them, by as much as its count has grown.
//!
//! Source: `perf_output_read()` in Linux `kernel/events/core.c`; which samples they make, `evlist__deliver_sample()` in
//! `tools/perf/util/session.c`.

use crate::record::decode::{Cursor, SampleLayout};
use perf_event_open_sys::bindings as abi;
use std::collections::HashMap;

/// Counts whose last value is remembered: one for each event, CPU and thread.
const MAX_COUNTS: usize = 1 << 20;

/// Fields of 8 bytes each that stand before the counts in a sample.
const BEFORE: [u32; 9] = [
    abi::PERF_SAMPLE_IDENTIFIER,
    abi::PERF_SAMPLE_IP,
    abi::PERF_SAMPLE_TID,
    abi::PERF_SAMPLE_TIME,
    abi::PERF_SAMPLE_ADDR,
    abi::PERF_SAMPLE_ID,
    abi::PERF_SAMPLE_STREAM_ID,
    abi::PERF_SAMPLE_CPU,
    abi::PERF_SAMPLE_PERIOD,
];

/// The ids of counts in a sample, and their values; `None` where it has none, or none with an id.
pub(super) fn values(layout: &SampleLayout, payload: &[u8]) -> Option<Vec<(u64, u64)>> {
    let samples = |flag: u32| layout.sample_type & u64::from(flag) != 0;
    let has = |flag: u32| layout.read_format & u64::from(flag) != 0;
    if !samples(abi::PERF_SAMPLE_READ) || !has(abi::PERF_FORMAT_ID) {
        return None;
    }
    let n_before = BEFORE.into_iter().filter(|flag| samples(*flag)).count();
    let mut cursor = Cursor::new(payload.get(n_before * 8..)?, layout.endian);
    let is_group = has(abi::PERF_FORMAT_GROUP);
    let n_values = if is_group { cursor.u64()? } else { 1 };
    let times = [abi::PERF_FORMAT_TOTAL_TIME_ENABLED, abi::PERF_FORMAT_TOTAL_TIME_RUNNING];
    let n_times = times.into_iter().filter(|flag| has(*flag)).count() as u64;
    let mut values = Vec::new();
    if is_group {
        cursor.take(n_times * 8)?;
    }
    for _ in 0..n_values {
        let value = cursor.u64()?;
        if !is_group {
            cursor.take(n_times * 8)?;
        }
        values.push((cursor.u64()?, value));
        if has(abi::PERF_FORMAT_LOST) {
            cursor.u64()?;
        }
    }
    Some(values)
}

/// The last value of each count.
#[derive(Debug, Default)]
pub(super) struct GroupCounts(HashMap<(u64, Option<i32>), u64>);

impl GroupCounts {
    /// Takes the value of the count with this id, of this thread where each has its own; gives by how much it has grown.
    pub(super) fn growth(&mut self, id: u64, tid: Option<i32>, value: u64) -> u64 {
        if self.0.len() >= MAX_COUNTS && !self.0.contains_key(&(id, tid)) {
            return 0;
        }
        value.wrapping_sub(self.0.insert((id, tid), value).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode::NATIVE;

    #[test]
    fn each_count_has_its_id() {
        let layout = |read_format: u32| {
            let sample_type =
                abi::PERF_SAMPLE_IDENTIFIER | abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_READ;
            SampleLayout {
                read_format: u64::from(read_format),
                endian: NATIVE,
                ..SampleLayout::of_fields(sample_type)
            }
        };
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let (id, group, lost) =
            (abi::PERF_FORMAT_ID, abi::PERF_FORMAT_GROUP, abi::PERF_FORMAT_LOST);
        let times = abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING;
        // Id, IP; number, times, and of each value, id, lost.
        let bytes = words(&[7, 1, 2, 90, 80, 1000, 7, 0, 50, 8, 0]);
        let found = values(&layout(id | group | lost | times), &bytes);
        assert_eq!(found, Some(vec![(7, 1000), (8, 50)]));
        assert_eq!(values(&layout(id | group | lost | times), &bytes[..80]), None, "cut off");
        let bytes = words(&[7, 1, 1000, 90, 80, 7]);
        assert_eq!(values(&layout(id | times), &bytes), Some(vec![(7, 1000)]));
        assert_eq!(values(&layout(times), &bytes), None);
        let mut counts = GroupCounts::default();
        let grown = [(7, 1000), (8, 50), (7, 1700), (8, 50)];
        assert_eq!(grown.map(|(id, value)| counts.growth(id, None, value)), [1000, 50, 700, 0]);
    }
}
