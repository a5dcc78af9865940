//! Reads every ring once: samples are decoded and weighted, everything is put in order.

use crate::decode::{self, SampleLayout};
use crate::live::attach::OpenEvent;
use crate::live::rings::Ring;
use crate::live::tally::Tally;
use crate::merge::Merge;
use crate::period::PeriodLog;
use crate::recorder::Writer;
use crate::ring::{Joint, RawRecord, RingReader};
use crate::side_band::{self, SideBand};
use crate::undecoded::Undecoded;
use dataspace_proto::event::EventKind;
use dataspace_proto::record::Record;
use perf_event_open_sys::bindings as abi;
use std::collections::HashSet;

/// The source, in the merge, of records that are no samples.
pub(crate) const SIDE_BAND: u32 = u32::MAX;

/// Takes the records of all rings.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) merge: Merge,
    pub(crate) tally: Tally,
    pub(crate) periods: PeriodLog,
    /// By event.
    pub(crate) layouts: Vec<SampleLayout>,
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) side_band_layout: SampleLayout,
    /// Ids as in samples, with the index of the open event; sorted.
    pub(crate) ids: Vec<(u64, u32)>,
    /// Threads whose events may double inherited ones.
    pub(crate) suspects: HashSet<i32>,
    /// Of those, the ones that do.
    pub(crate) doubled: Vec<i32>,
    /// The first thread of a process has left its events: perhaps by exec of a set-uid program.
    pub(crate) saw_leader_exit: bool,
    pub(crate) saw_loss: bool,
    /// A task was born since events were opened, and has inherited them.
    pub(crate) saw_birth: bool,
    pub(crate) n_side_band_lost: u64,
    pub(crate) n_corrupt_rings: u64,
    pub(crate) undecoded: Undecoded,
    /// The inode number of the mount namespace that this program is in.
    pub(crate) own_mount: Option<u64>,
    pub(crate) joint: Joint,
    /// Gets every record as it stands in its ring.
    pub(crate) recorder: Option<Writer>,
}

impl Drain {
    /// Reads all that `ring` holds now.
    pub(crate) fn ring(&mut self, ring: &mut Ring, events: &[OpenEvent]) {
        let mut joint = std::mem::take(&mut self.joint);
        match ring.mapped.unread() {
            Some((front, back, head)) => {
                let mut reader = RingReader::new(front, back, &mut joint);
                loop {
                    match reader.next() {
                        Ok(Some(raw)) if raw.kind == abi::PERF_RECORD_SAMPLE => {
                            self.sample(&raw, events);
                        }
                        Ok(Some(raw)) => self.other(&raw, ring.carries_samples),
                        Ok(None) => break,
                        Err(corrupt) => {
                            tracing::error!(%corrupt, "a ring is skipped");
                            self.corrupt(ring.carries_samples);
                            break;
                        }
                    }
                }
                ring.mapped.release(head);
            }
            None => {
                ring.mapped.skip();
                self.corrupt(ring.carries_samples);
            }
        }
        self.joint = joint;
    }

    /// How many samples stood behind the damage nobody knows: at least one.
    fn corrupt(&mut self, carries_samples: bool) {
        self.n_corrupt_rings += 1;
        self.tally.n_undecodable += u64::from(carries_samples);
    }

    fn sample(&mut self, raw: &RawRecord<'_>, events: &[OpenEvent]) {
        let Some((source, open)) = self.open_event(raw, events) else {
            self.tally.n_undecodable += 1;
            return;
        };
        let event = open.event;
        let event_idx = usize::from(event.0);
        let Ok(decoded) = decode::sample(&self.layouts[event_idx], raw.misc, raw.payload) else {
            self.tally.n_undecodable += 1;
            return;
        };
        self.tally.n_taken[event_idx] += 1;
        let mut sample = decoded.sample;
        sample.event = event;
        // The kernel fills ADDR of every event; only some of them have one.
        if matches!(self.kinds[event_idx], EventKind::Clock | EventKind::Tracepoint) {
            sample.addr = None;
        }
        let period = decoded.period.filter(|&period| period != 0);
        sample.period = period.unwrap_or_else(|| self.periods.at(event, sample.time_ns));
        self.tally.taken_weights[event_idx] += sample.period;
        if sample.tid != open.tid
            && self.suspects.contains(&sample.tid)
            && !self.doubled.contains(&sample.tid)
        {
            self.doubled.push(sample.tid);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.add_sample(raw, &sample, source);
        }
        self.merge.add(sample.time_ns, source, Record::Sample(sample));
    }

    /// Whose sample it is. Inherited events have the id of the one that was opened.
    fn open_event<'a>(
        &self,
        raw: &RawRecord<'_>,
        events: &'a [OpenEvent],
    ) -> Option<(u32, &'a OpenEvent)> {
        // IDENTIFIER comes first.
        let id = raw.payload.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))?;
        let found = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        let source = self.ids[found].1;
        Some((source, events.get(source as usize)?))
    }

    fn other(&mut self, raw: &RawRecord<'_>, carries_samples: bool) {
        let decoded = side_band::decode(&self.side_band_layout, raw);
        self.record_other(raw, decoded.as_ref());
        match decoded {
            Some(SideBand::Record(record)) => self.side_band(record),
            Some(SideBand::Lost(n)) if carries_samples => {
                self.tally.n_lost_told += n;
                self.saw_loss = true;
            }
            Some(SideBand::Lost(n)) => self.n_side_band_lost += n,
            Some(SideBand::Throttled { time_ns, stream_id, begins }) => {
                self.tally.throttled(time_ns, stream_id, begins);
            }
            Some(SideBand::Unknown(kind)) => self.undecoded.unknown(kind),
            None => {}
        }
    }

    /// Takes a record that is no sample.
    pub(crate) fn side_band(&mut self, mut record: Record) {
        match &mut record {
            Record::Exit(exit) if exit.pid == exit.tid => self.saw_leader_exit = true,
            Record::Fork(_) => self.saw_birth = true,
            Record::Namespace(namespace) if Some(namespace.mount) == self.own_mount => {
                namespace.mount = 0;
            }
            _ => {}
        }
        self.merge.add(record.time_ns().unwrap_or(0), SIDE_BAND, record);
    }
}
