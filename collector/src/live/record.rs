//! Records that are handed on, to the channel and to a recording; begin and end of a recording.

use crate::attach::OpenEvent;
use crate::channel::batch::BatchSender;
use crate::error::Error;
use crate::event::EventPlan;
use crate::event::attr::{self, Binding, Source};
use crate::live::drain::{Drain, SIDE_BAND};
use crate::live::parts::{Heard, Parts};
use crate::live::reader::Reader;
use crate::live::tally::Tally;
use crate::lookup::before::Before;
use crate::lookup::gate::{Moment, Verdict};
use crate::perf_data::write::{EventEntry, Recorder, Start, Writer, tracing};
use crate::record::decode;
use crate::record::ring::RawRecord;
use crate::record::side_band::SideBand;
use crate::sys::clock::now_ns;
use crate::sys::open;
use crate::system::tracefs::Tracefs;
use dataspace_proto::record::Record;
use rustix::fd::AsFd;
use std::ops::ControlFlow;
use std::path::Path;

/// Begins the recording of an open session; what of the records from before is `heard` is left to be told.
/// There are no more of them when it `is_over`.
pub(crate) fn begin(
    recorder: Recorder,
    parts: &mut Parts,
    heard: Heard,
    is_over: &dyn Fn() -> bool,
) -> Result<Writer, Error> {
    let mut rest = Vec::new();
    let mut before = parts.before.take();
    let before = std::iter::from_fn(|| before.as_mut()?.next_unless(is_over));
    let before = before.inspect(|record| {
        rest.extend(heard.includes(record).then(|| record.clone()));
    });
    let writer = writer(recorder, parts, Box::new(before))?;
    parts.before = Some(Before::taken(rest));
    Ok(writer)
}

fn writer(
    recorder: Recorder,
    parts: &Parts,
    before: Box<dyn Iterator<Item = Record> + '_>,
) -> Result<Writer, Error> {
    let Parts { attached, plans, features, .. } = parts;
    let first_id = |event_idx: usize| {
        let is_its = |open: &OpenEvent| usize::from(open.event.0) == event_idx;
        let mut ids = attached.ids.iter();
        ids.find(|(_, idx)| attached.events.get(*idx as usize).is_some_and(is_its))
    };
    // As the layouts of samples, which it does not change.
    let binding = Binding { inherit: parts.binding.inherit, ..Binding::default() };
    let mut events = Vec::new();
    for (event_idx, plan) in plans.iter().enumerate() {
        let attr = attr::sampled(&plan.source, binding, *features);
        let name = plan.event.name.clone();
        // Without a thread that it is open on there are no records of it.
        let id = first_id(event_idx).map_or(0, |&(id, _)| id);
        events.push(EventEntry { name, attr, id });
    }
    let id = match attached.side_band.first() {
        Some(open) => {
            open::id(open.fd.as_fd()).map_err(|errno| Error::System { call: "ID", errno })?
        }
        None => 0,
    };
    let attr = attr::side_band(*features, binding.inherit);
    events.push(EventEntry { name: "dummy:u".to_owned(), attr, id });
    Ok(Writer::new(recorder, Start { events, before, tracing_data: tracing_data(plans) })?)
}

/// The formats of the tracepoints among the events; nothing without one.
fn tracing_data(plans: &[EventPlan]) -> Vec<u8> {
    let tracepoints =
        plans.iter().filter(|plan| matches!(plan.source.source, Source::Tracepoint(_)));
    let names: Vec<(String, String)> = tracepoints
        .filter_map(|plan| {
            let mut parts = plan.event.name.split(':');
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        })
        .collect();
    match Tracefs::new(Path::new("/")).place() {
        Ok(place) if !names.is_empty() => tracing::data(place, &names),
        _ => Vec::new(),
    }
}

/// Writes what had to be looked up of a process when its first record came.
pub(crate) fn write_before(recorder: Option<&mut Writer>, record: &Record) {
    if let Some(recorder) = recorder {
        recorder.write_synthetic(record);
    }
}

impl Reader {
    /// Pushes what happened up to `until_ns`, and `flush`es full batches; up to the first sample of a
    /// process that has to be looked up before.
    pub(super) fn hand_on(&mut self, until_ns: u64, flush: impl Fn(&mut BatchSender)) {
        self.tell_answers(&flush);
        let Self {
            drain: Drain { merge, tally, recorder, drops, .. }, sender, events, gate, ..
        } = self;
        let (heard, spare) = (self.heard, &mut self.spare);
        if let Some(recorder) = recorder {
            recorder.put_in_order();
        }
        let moment = Moment { time_ns: now_ns(), n_waiting: merge.len() };
        let held_ns = merge.hand_on_while(until_ns, |source, slot| {
            let open = events.get(source as usize);
            if Tally::is_double(open) {
                spare.push(slot);
                return ControlFlow::Continue(());
            }
            // What of a sample has left this CPU's cache since it was decoded stays where it is.
            let is_clear = source != SIDE_BAND && gate.is_open();
            let is_admitted = is_clear
                || match gate.admits(&slot, moment) {
                    Verdict::Waits => return ControlFlow::Break(slot),
                    verdict => verdict == Verdict::Admitted,
                };
            let is_no_access = is_admitted
                && open.is_some_and(|open| drops[usize::from(open.event.0)].is_no_access(&slot));
            if is_no_access {
                tally.n_not_memory += 1;
            } else {
                tally.passed(open, is_admitted);
            }
            if let Some(recorder) = recorder {
                recorder.hand_on(source, &slot, is_admitted);
            }
            if is_admitted && !is_no_access && heard.includes(&slot) {
                sender.push_slot(slot);
            } else {
                spare.push(slot);
            }
            if sender.is_full() {
                flush(sender);
            }
            ControlFlow::Continue(())
        });
        merge.slots().append(spare);
        if let Some(recorder) = recorder {
            // Of the time of a record that waits there may be others.
            recorder.settle(held_ns.map_or(until_ns, |held_ns| held_ns.saturating_sub(1)));
        }
    }

    /// Pushes what was found out of processes that samples wait for.
    fn tell_answers(&mut self, flush: impl Fn(&mut BatchSender)) {
        let Self { drain: Drain { merge, recorder, .. }, sender, gate, heard, .. } = self;
        gate.take_answers(merge.handed_on_to_ns(), |before| {
            write_before(recorder.as_mut(), &before);
            if heard.includes(&before) {
                sender.push(before);
            }
            if sender.is_full() {
                flush(sender);
            }
        });
    }

    /// [Hands on](Self::hand_on) all up to `until_ns`: waits for what has to be looked up, and reads the
    /// rings meanwhile.
    pub(super) fn hand_on_all(&mut self, until_ns: u64, flush: impl Fn(&mut BatchSender)) {
        self.hand_on(until_ns, &flush);
        while self.gate.is_waiting() {
            self.gate.wait();
            self.round();
            self.hand_on(until_ns, &flush);
        }
    }
}

impl Drain {
    /// Hands a record that is no sample to the recording.
    pub(crate) fn record_other(&mut self, raw: &RawRecord<'_>, decoded: Option<&SideBand>) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(SideBand::Record(record)) = decoded {
            return recorder.add(raw, record);
        }
        let time_ns = decode::sample_id_time_ns(&self.side_band_layout, raw.payload);
        recorder.add_other(raw, time_ns.unwrap_or(0));
    }

    /// Takes a record that was read while events were being opened.
    pub(crate) fn early(&mut self, record: Record) {
        if let Some(recorder) = &mut self.recorder {
            recorder.add_synthetic(&record);
        }
        self.side_band(record);
    }

    /// Every ring was read since this was last called, up to where the round may have left it.
    pub(crate) fn finish_round(&mut self, now_ns: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.finish_round(now_ns);
        }
    }

    /// Tells whether the recording has reached its length, or cannot go on.
    pub(crate) fn is_recording_over(&self) -> bool {
        self.recorder.as_ref().is_some_and(Writer::is_over)
    }

    /// The last record was read, and the last counts.
    pub(crate) fn finish_recording(&mut self, now_ns: u64) {
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(self.tally.lost_by_event(), self.tally.n_undecodable, now_ns);
        }
    }
}
