//! The writer in a session's reader thread: takes each record of the rings as it passes by.

mod ending;

use super::bound::Bound;
use super::build_id::{self, BuildIdTable};
use super::feature::{self, Clock, Feature};
use super::front::{self, EventEntry, Front};
use super::sink::Sink;
use super::synthetic;
use super::waiting::{Owner, Waiting};
use super::{Progress, Recorder};
use crate::error::RecorderError;
use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::feature as table;
use crate::perf_data::format::user_record::{FINISHED_ROUND, HEADER_TRACING_DATA};
use crate::record::ring::{HEADER_BYTES, RawRecord};
use dataspace_proto::record::{Record, Sample};
use perf_event_open_sys::bindings as abi;
use rustix::time::{ClockId, clock_getres, clock_gettime};
use std::fmt;
use std::sync::Arc;

/// Interval at which the header tells of what was written: a killed recorder's file lacks no more.
const HEADER_NS: u64 = 1_000_000_000;
/// `PERF_SAMPLE_IDENTIFIER` comes first in samples and last in all other records.
const ID_BYTES: usize = 8;
/// The fixed fields in front of `PERF_SAMPLE_PERIOD`, 8 bytes each.
const BEFORE_PERIOD: [abi::perf_event_sample_format; 8] = [
    abi::PERF_SAMPLE_IDENTIFIER,
    abi::PERF_SAMPLE_IP,
    abi::PERF_SAMPLE_TID,
    abi::PERF_SAMPLE_TIME,
    abi::PERF_SAMPLE_ADDR,
    abi::PERF_SAMPLE_ID,
    abi::PERF_SAMPLE_STREAM_ID,
    abi::PERF_SAMPLE_CPU,
];

/// A session as it is when its recording begins.
pub(crate) struct Start<'a> {
    /// Events that are sampled, with the attributes that the kernel got; the one that carries
    /// mappings, names, births and deaths is the last.
    pub(crate) events: Vec<EventEntry>,
    /// Records from before, each read when it is taken.
    pub(crate) before: Box<dyn Iterator<Item = Record> + 'a>,
    /// The formats of tracepoints, if there are such events.
    pub(crate) tracing_data: Vec<u8>,
}

/// Place of the period in an event's samples.
#[derive(Clone, Copy, Debug)]
struct PeriodPlace {
    at: usize,
    is_sampled: bool,
}

/// Writes a recording.
pub(crate) struct Writer {
    sink: Sink,
    front: Front,
    periods: Vec<PeriodPlace>,
    /// Of every record's end.
    sample_type: u64,
    features: Vec<Feature>,
    build_ids: BuildIdTable,
    /// Of the samples: the first and the last.
    times_ns: Option<(u64, u64)>,
    n_samples: u64,
    /// Samples that are longer with their period than a record can be.
    n_too_long: u64,
    /// Samples that came when the recording was as long as it may be.
    n_behind_end: u64,
    bound: Bound,
    waiting: Waiting,
    /// After what was written there are tables, and the header says so.
    has_tables: bool,
    has_lost_records: bool,
    next_header_ns: u64,
    /// End of the records, once they have ended.
    data_end: Option<u64>,
    failure: Option<RecorderError>,
    progress: Arc<Progress>,
}

impl Writer {
    /// Writes all that comes before the first record of a ring.
    pub(crate) fn new(mut recorder: Recorder, mut start: Start<'_>) -> Result<Self, RecorderError> {
        let sink = recorder.sink.take().ok_or(RecorderError::Unfinished)?;
        let mut events = std::mem::take(&mut start.events);
        let sample_type = events.last().map_or(0, |event| event.attr.sample_type);
        let periods = events.iter_mut().map(ask_for_period).collect();
        let clock = clock();
        let mut features =
            feature::of_session(&recorder.host, &recorder.program, &recorder.command_line, clock);
        let front = Front::new(events);
        features.push(front.description());
        if !start.tracing_data.is_empty() && sink.is_file() {
            let tracing = Feature { id: table::TRACING_DATA, section: start.tracing_data.clone() };
            features.push(tracing);
        }
        features.sort_by_key(|feature| feature.id);
        let mut writer = Self {
            sink,
            front,
            periods,
            sample_type,
            features,
            build_ids: BuildIdTable::new(),
            times_ns: None,
            n_samples: 0,
            n_too_long: 0,
            n_behind_end: 0,
            bound: Bound::new(recorder.max_bytes),
            waiting: Waiting::default(),
            has_tables: false,
            has_lost_records: false,
            next_header_ns: clock.own_ns.saturating_add(HEADER_NS),
            data_end: None,
            failure: None,
            progress: recorder.progress(),
        };
        let begun = writer.begin(&recorder, start);
        if begun.is_err() {
            writer.sink.discard();
        }
        begun.map(|()| writer)
    }

    fn begin(&mut self, recorder: &Recorder, start: Start<'_>) -> Result<(), RecorderError> {
        let mut bytes = Bytes::default();
        if self.sink.is_file() {
            bytes.bytes(&self.front.file(0, &[]));
            bytes.bytes(&self.front.names());
        } else {
            bytes.bytes(&self.front.pipe(&self.features));
            tracing_record(&mut bytes, &start.tracing_data);
        }
        if let Some(kernel) = &recorder.host.kernel
            && self.front.events().iter().any(|event| event.attr.exclude_kernel() == 0)
        {
            synthetic::kernel(&mut bytes, kernel, self.sample_type);
            self.build_ids.set_kernel(kernel.build_id.as_deref().unwrap_or_default());
        }
        self.sink.buffer().append(&mut bytes.0);
        // All of it, however long it is: nothing else can be placed without it.
        for record in start.before {
            self.write_synthetic(&record);
        }
        self.bound.begin(self.ending_bytes());
        self.write_header()
    }

    /// Takes in a sample as it stood in a ring, and what was read of it. `source` is the open event
    /// that it is of.
    pub(crate) fn add_sample(&mut self, raw: &RawRecord<'_>, sample: &Sample, source: u32) {
        let event_idx = usize::from(sample.event.0);
        let (Some(&period), Some(event)) =
            (self.periods.get(event_idx), self.front.events().get(event_idx))
        else {
            return;
        };
        let Some((front, mut after)) = raw.payload.split_at_checked(period.at) else { return };
        if period.is_sampled {
            after = after.get(8..).unwrap_or_default();
        }
        // It is counted when it is handed on and not found here.
        let Ok(size) = u16::try_from(HEADER_BYTES + front.len() + 8 + after.len()) else { return };
        self.waiting.add(sample.time_ns, Owner::Sample(source), |bytes| {
            bytes.extend_from_slice(&header(raw, size));
            bytes.extend_from_slice(&event.id.to_ne_bytes());
            bytes.extend_from_slice(front.get(ID_BYTES..).unwrap_or_default());
            bytes.extend_from_slice(&sample.period.to_ne_bytes());
            bytes.extend_from_slice(after);
        });
    }

    /// Takes in a mapping, a name, a birth or a death as it stood in a ring.
    pub(crate) fn add(&mut self, raw: &RawRecord<'_>, record: &Record) {
        self.add_raw(raw, record.time_ns().unwrap_or(0), Owner::of(0, record));
    }

    /// Takes in a record that the session has no use for, or that is not about a task.
    pub(crate) fn add_other(&mut self, raw: &RawRecord<'_>, time_ns: u64) {
        self.has_lost_records |= raw.kind == abi::PERF_RECORD_LOST;
        self.add_raw(raw, time_ns, Owner::Nobody);
    }

    fn add_raw(&mut self, raw: &RawRecord<'_>, time_ns: u64, owner: Owner) {
        let Ok(size) = u16::try_from(HEADER_BYTES + raw.payload.len()) else { return };
        let Some((payload, _)) = raw.payload.split_last_chunk::<ID_BYTES>() else { return };
        let id = self.front.side_band_id();
        self.waiting.add(time_ns, owner, |bytes| {
            bytes.extend_from_slice(&header(raw, size));
            bytes.extend_from_slice(payload);
            bytes.extend_from_slice(&id.to_ne_bytes());
        });
    }

    /// Takes in a mapping, a name, a birth or a death of which the bytes are gone.
    pub(crate) fn add_synthetic(&mut self, record: &Record) {
        let sample_type = self.sample_type;
        self.waiting.add(record.time_ns().unwrap_or(0), Owner::of(0, record), |bytes| {
            let mut synthetic = Bytes(std::mem::take(bytes));
            synthetic::write(&mut synthetic, record, sample_type);
            *bytes = synthetic.0;
        });
    }

    /// Removes the file that was begun: nothing was sampled.
    pub(crate) fn discard(self) {
        self.sink.discard();
    }

    /// Takes note that what was taken in is about to be handed on, in the order of time.
    pub(crate) fn put_in_order(&mut self) {
        self.waiting.put_in_order();
    }

    /// `record`, of the open event `source` if it is a sample, is handed on; it is part of the
    /// recording if `is_admitted`.
    pub(crate) fn hand_on(&mut self, source: u32, record: &Record, is_admitted: bool) {
        let Self { waiting, sink, bound, .. } = self;
        let pass = |bytes: &[u8]| {
            bound.append(sink, bytes, 0);
        };
        let time_ns = record.time_ns().unwrap_or(0);
        let taken = waiting.take(time_ns, Owner::of(source, record), pass);
        if !is_admitted {
            return;
        }
        let is_sample = matches!(record, Record::Sample(_));
        let Some(bytes) = taken else {
            self.n_too_long += u64::from(is_sample);
            return;
        };
        let entry_bytes = if is_sample { 0 } else { build_id::most_bytes(bytes.len()) };
        if !bound.append(sink, bytes, entry_bytes) {
            self.n_behind_end += u64::from(is_sample);
            return;
        }
        match record {
            Record::Sample(_) => {
                self.n_samples += 1;
                let (first, last) = self.times_ns.unwrap_or((time_ns, time_ns));
                self.times_ns = Some((first.min(time_ns), last.max(time_ns)));
            }
            _ => {
                if let Some(raw) = raw_record(bytes) {
                    self.build_ids.see(&raw);
                }
                self.bound.ending_bytes = self.ending_bytes();
            }
        }
        self.flush_if_full();
    }

    /// All up to `until_ns` was handed on.
    pub(crate) fn settle(&mut self, until_ns: u64) {
        let Self { waiting, sink, bound, .. } = self;
        waiting.forget(until_ns, |bytes| {
            bound.append(sink, bytes, 0);
        });
        self.flush_if_full();
    }

    /// Writes a record that no ring held: what was there before.
    pub(crate) fn write_synthetic(&mut self, record: &Record) {
        let mut bytes = Bytes::default();
        synthetic::write(&mut bytes, record, self.sample_type);
        if !self.bound.append(&mut self.sink, &bytes.0, build_id::most_bytes(bytes.0.len())) {
            return;
        }
        if let Some(raw) = raw_record(&bytes.0) {
            self.build_ids.see(&raw);
        }
        self.bound.ending_bytes = self.ending_bytes();
        self.flush_if_full();
    }

    /// All rings were read since the last time: readers need not wait for anything older than what
    /// was there then.
    pub(crate) fn finish_round(&mut self, now_ns: u64) {
        if self.failure.is_some() {
            return;
        }
        let mut round = Bytes::default();
        round.record(FINISHED_ROUND, 0, |_| {});
        self.bound.append(&mut self.sink, &round.0, 0);
        if !self.sink.is_file() {
            let flushed = self.flush();
            self.note(flushed);
        } else if now_ns >= self.next_header_ns {
            self.next_header_ns = now_ns.saturating_add(HEADER_NS);
            let written = self.write_header();
            self.note(written);
        }
        self.progress.tell(self.n_samples, self.sink.n_bytes());
    }

    /// Tells whether nothing more can or need be written.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.bound.is_reached
    }

    /// Bytes that the end takes after the records that are written now.
    fn ending_bytes(&self) -> u64 {
        let tables = if self.sink.is_file() { front::most_table_bytes(&self.features) } else { 0 };
        tables + ending::most_lost_bytes(self.front.events().len()) + self.build_ids.n_bytes()
    }

    /// Writes out what there is, the tables after it, and last how much that is: whenever we are
    /// killed, the header speaks of what is there.
    fn write_header(&mut self) -> Result<(), RecorderError> {
        self.flush()?;
        if !self.sink.is_file() {
            return Ok(());
        }
        let data_end = self.sink.n_flushed();
        let n_data_bytes = data_end - self.front.data_at();
        self.has_tables = true;
        self.sink.patch(data_end, &front::tables(&self.features, data_end))?;
        self.sink.patch(0, &self.front.file(n_data_bytes, &self.features))
    }

    /// Writes out what there is.
    fn flush(&mut self) -> Result<(), RecorderError> {
        if std::mem::take(&mut self.has_tables) {
            // What comes is written over the tables.
            let n_data_bytes = self.sink.n_flushed() - self.front.data_at();
            self.sink.patch(0, &self.front.file(n_data_bytes, &[]))?;
        }
        self.sink.flush()
    }

    fn append(&mut self, fill: impl FnOnce(&mut Bytes)) {
        let mut bytes = Bytes(std::mem::take(self.sink.buffer()));
        fill(&mut bytes);
        *self.sink.buffer() = bytes.0;
    }

    fn flush_if_full(&mut self) {
        if self.failure.is_some() {
            // Nothing is written any more; nor is anything kept.
            self.sink.buffer().clear();
        } else if self.sink.is_full() {
            let flushed = self.flush();
            self.note(flushed);
        }
    }

    fn note(&mut self, result: Result<(), RecorderError>) {
        if let Err(failure) = result {
            self.failure.get_or_insert(failure);
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("n_samples", &self.n_samples).finish_non_exhaustive()
    }
}

/// Makes the event one whose samples have their period, and tells where.
fn ask_for_period(event: &mut EventEntry) -> PeriodPlace {
    let sample_type = event.attr.sample_type;
    let has = |field: &abi::perf_event_sample_format| sample_type & u64::from(*field) != 0;
    let is_sampled = has(&abi::PERF_SAMPLE_PERIOD);
    // Of the dummy there are no samples.
    if sample_type & u64::from(abi::PERF_SAMPLE_IP) != 0 {
        event.attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD);
    }
    let n_before = BEFORE_PERIOD.iter().filter(|field| has(field)).count();
    PeriodPlace { at: 8 * n_before, is_sampled }
}

fn header(raw: &RawRecord<'_>, size: u16) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&raw.kind.to_ne_bytes());
    header[4..6].copy_from_slice(&raw.misc.to_ne_bytes());
    header[6..].copy_from_slice(&size.to_ne_bytes());
    header
}

/// The record that `bytes` are.
fn raw_record(bytes: &[u8]) -> Option<RawRecord<'_>> {
    let (header, payload) = bytes.split_at_checked(HEADER_BYTES)?;
    let kind = u32::from_ne_bytes(*header.first_chunk()?);
    let misc = u16::from_ne_bytes(*header[4..].first_chunk()?);
    Some(RawRecord { kind, misc, payload })
}

/// The formats of tracepoints in a pipe: their length in a record, they themselves after it.
fn tracing_record(bytes: &mut Bytes, tracing_data: &[u8]) {
    if tracing_data.is_empty() {
        return;
    }
    let end = tracing_data.len().next_multiple_of(8);
    bytes.record(HEADER_TRACING_DATA, 0, |bytes| bytes.u64(end as u64));
    bytes.bytes(tracing_data);
    bytes.bytes(&[0; 8][..end - tracing_data.len()]);
}

/// The clock that the events are told to use (`crate::event::attr`), beside that of the wall.
fn clock() -> Clock {
    let ns = |time: rustix::time::Timespec| {
        // Neither is negative.
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    Clock {
        id: libc::CLOCK_MONOTONIC,
        resolution_ns: ns(clock_getres(ClockId::Monotonic)),
        wall_ns: ns(clock_gettime(ClockId::Realtime)),
        own_ns: ns(clock_gettime(ClockId::Monotonic)),
    }
}
