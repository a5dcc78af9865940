//! Totals as a [`Snapshot`], and decided samples as [`SampleLine`]s.

use crate::attribution::claim::Placing;
use crate::attribution::name_table::Named;
use crate::attribution::verdict::Verdict;
use crate::history::store::{HistoryView, KeptRows};
use crate::index::question::{Question, Request};
use crate::session::analyzer::{Analyzer, Decided};
pub use crate::totals::function_table::FunctionLine;
use crate::totals::rolling::{ObjectIdx, ObjectTotals, SpanSums, TOTAL};
use crate::types::scalar_notation::ScalarNotation;
pub use crate::types::type_layout::{LayoutMember, TypeLayout};
use crate::x86_64::moved_value::ValueChange;
use dataspace_proto::accounting::{Accounting, Collected, Lost};
use dataspace_proto::event::{Event, EventKind, Sampling};
use dataspace_proto::memory::Level;
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::{Evidence, SampleLine, Scope};
use dataspace_proto::snapshot::{
    Cost, EventLine, Metrics, ObjectKind, ObjectLine, SCHEMA, Snapshot, Target,
};
use dataspace_proto::window::{Window, Windows};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

impl Analyzer {
    /// The totals now. `limit` cuts the list of objects.
    #[must_use]
    pub fn snapshot(&mut self, target: Target, cost: Cost, limit: Option<usize>) -> Snapshot {
        self.totals.share_out();
        let mut rows: Vec<(u32, &ObjectTotals)> = self
            .totals
            .objects()
            .iter()
            .enumerate()
            .filter(|(idx, totals)| *idx == TOTAL.0 as usize || totals.all.sums.samples != 0)
            .map(|(idx, totals)| (idx as u32, totals))
            .collect();
        rows.sort_by_key(|(idx, totals)| {
            (*idx != TOTAL.0, std::cmp::Reverse(totals.all.sums.samples), *idx)
        });
        let limit = limit.unwrap_or(usize::MAX);
        let truncated = rows.len() > limit;
        rows.truncate(limit);
        Snapshot {
            schema: SCHEMA,
            target,
            events: self.events().iter().map(event_line).collect(),
            elapsed_ns: self
                .first_time_ns
                .map_or(0, |first| self.last_time_ns.saturating_sub(first)),
            truncated,
            accounting: self.accounting(),
            cost,
            governance: None,
            counts: self.collected.counts.clone(),
            undescribed: self.undescribed.lines(&self.world.processes),
            warnings: self.warnings.clone(),
            objects: rows.into_iter().map(|(idx, totals)| self.object_line(idx, totals)).collect(),
        }
    }

    /// Functions that access the objects, as of the last [`Self::snapshot`].
    #[must_use]
    pub fn functions(&self) -> Arc<[FunctionLine]> {
        self.totals.function_lines()
    }

    /// Layouts of outermost aggregates, by the object's number.
    #[must_use]
    pub fn layouts(&self) -> BTreeMap<u32, Arc<TypeLayout>> {
        let objects = (0..).zip(self.totals.objects());
        objects.filter_map(|(id, object)| Some((id, object.layout.clone()?))).collect()
    }

    /// The history as it is now; `None` where none is kept.
    #[must_use]
    pub fn history(&self) -> Option<HistoryView> {
        self.history.is_kept().then(|| self.view(self.history.freeze()))
    }

    /// Number of samples in the history.
    #[must_use]
    pub fn n_held(&self) -> usize {
        self.history.n_held()
    }

    /// The samples of the history, which has none afterwards.
    pub fn take_history(&mut self) -> HistoryView {
        let kept = self.history.take();
        self.view(kept)
    }

    fn view(&self, kept: KeptRows) -> HistoryView {
        HistoryView {
            kept,
            events: self.events().iter().map(|event| event.name.clone()).collect(),
            clocks: self.events().iter().map(|event| event.kind == EventKind::Clock).collect(),
            nodes: Arc::clone(&self.nodes),
            first_ns: self.first_time_ns.unwrap_or(0),
            last_ns: self.last_time_ns,
            n_pending: self.n_pending() as u64,
            has_lines: self.has_lines(),
            n_lines_given_up: self.history.places.n_given_up() as u64,
            n_lines_open: self.n_lines_open() as u64,
        }
    }

    /// The collector's counts, when it last gave them.
    #[must_use]
    pub const fn collected(&self) -> &Collected {
        &self.collected
    }

    /// The accounts of all samples so far.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        let collected = &self.collected;
        let mut unknown: BTreeMap<Reason, u64> = Reason::ALL
            .iter()
            .map(|reason| (*reason, self.counts.unknown[*reason as usize]))
            .filter(|(_, samples)| *samples != 0)
            .collect();
        if self.n_pending() != 0 {
            unknown.insert(Reason::Pending, self.n_pending() as u64);
        }
        // Samples that came after the collector's last word are in no figure of its yet.
        let newer = self.counts.received - self.received_at_collected;
        Accounting {
            kernel: collected.kernel_samples + newer,
            attributed: self.counts.attributed,
            unknown,
            not_memory: self.counts.not_memory + collected.not_memory,
            lost: Lost {
                ring_full: collected.ring_full,
                channel_full: collected.channel_full,
                undecodable: collected.undecodable,
            },
            conflicts: self.counts.conflicts,
            voted: self.counts.voted,
            by_frequency: self.counts.by_frequency,
            outside: collected.outside,
            throttled_ns: collected.throttled_ns,
            invisible_ns: collected.invisible_ns,
        }
    }

    /// One decided sample as `dataspace script` prints it.
    #[must_use]
    pub fn sample_line(&self, decided: Decided<'_>) -> SampleLine {
        let Decided { sample, attribution } = decided;
        let event = self.events().get(usize::from(sample.event.0));
        let claim = attribution.claim();
        let named = claim.map(|claim| self.world.names.get(claim.named));
        let spelling = named.map(Named::spelling);
        let reason = match attribution.verdict {
            // Only the type is known of it.
            Verdict::Attributed(_) => attribution.addr.is_none().then_some(Reason::RegisterLoss),
            Verdict::Unknown(reason) => Some(reason),
            Verdict::NotMemory => None,
        };
        let is_part = claim.is_some_and(|claim| claim.placing >= Placing::Part);
        let source = sample.data_source.unwrap_or_default();
        let place = self.world.trigger_place(sample, attribution);
        let told = |latency: u16| (latency != 0).then_some(latency);
        let change = self.watched_bytes(sample).map_or(ValueChange::UNKNOWN, |n_watched| {
            self.world.value_change(sample, attribution, n_watched)
        });
        let notation =
            named.map_or(ScalarNotation::DIGITS, |named| ScalarNotation::of(&named.answer.object));
        let touched = |value: Option<u64>| {
            let n_bytes = attribution.size_bytes().into();
            value.map(|value| notation.text(value, n_bytes).into())
        };
        SampleLine {
            time_ns: sample.time_ns,
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            event: event.map_or_else(|| "".into(), |event| event.name.as_str().into()),
            period: sample.period,
            ip: sample.ip.0,
            trigger: attribution.trigger.map(|trigger| trigger.0),
            module: place.and_then(|(object, _)| {
                let known = self.world.processes.object(object)?;
                Some(known.key.path_text().into())
            }),
            file_address: place.map(|(_, at)| at.0),
            symbol: None,
            symbol_offset: None,
            file: None,
            line: None,
            addr: attribution.addr.map(|(addr, _)| addr.0),
            addr_source: attribution.addr.map(|(_, source)| source),
            access: attribution.access,
            size: attribution.size.map(NonZeroU32::get),
            old: touched(change.before),
            new: touched(change.after),
            object: spelling.map(|spelling| Arc::clone(&spelling.descriptor)),
            name: spelling.map(|spelling| Arc::clone(&spelling.name)),
            scope: self.world.scope(sample, attribution).map(|scope| Scope::clone(scope)),
            type_name: spelling.map(|spelling| Arc::clone(&spelling.type_name)),
            offset: named.filter(|_| is_part).map(|named| named.answer.offset),
            member: spelling.and_then(|spelling| spelling.member.clone()),
            candidates: spelling
                .map(|spelling| Arc::clone(&spelling.candidates))
                .filter(|candidates| !candidates.is_empty()),
            variable: named.and_then(|named| named.answer.object.variable.clone()),
            evidence: claim.map(|claim| claim.grounds.evidence()),
            reason,
            not_memory: attribution.verdict == Verdict::NotMemory,
            latency: (sample.latency != 0).then_some(u64::from(sample.latency)),
            level: source.level,
            missed_level: source.missed,
            snoop: source.snoop.text().map(Into::into),
            tlb: source.tlb.text().map(Into::into),
            locked: source.locked,
            remote: source.level.map(|_| source.is_remote),
            hops: source.hops,
            blocked: source.blocked.text().map(Into::into),
            region: source.region,
            instruction_latency: told(sample.instruction_latency),
            retire_latency: told(sample.retire_latency),
            page_size: sample.data_page.bytes(),
            code_page_size: sample.code_page.bytes(),
            phys_addr: sample.physical_addr.map(|address| address.0.get()),
            cgroup_id: sample.cgroup.map(NonZeroU64::get),
            cgroup: sample.cgroup.and_then(|id| self.cgroups.path(id.get())),
            votes: claim.map(|claim| claim.grounds.votes).filter(|votes| *votes != 0),
            frequency: claim.is_some_and(|claim| claim.grounds.is_by_frequency),
            comm: self.history.tasks.name(sample.pid, sample.tid).cloned(),
            calls_out: claim.map(|claim| claim.grounds.calls_out).filter(|calls| *calls != 0),
        }
    }

    /// The question for the source of a decided sample's trigger, if it has one: its symbol and its line.
    #[must_use]
    pub fn source_request(&self, decided: Decided<'_>) -> Option<Request> {
        let (object, at) = self.world.trigger_place(decided.sample, decided.attribution)?;
        let key = Arc::clone(&self.world.processes.object(object)?.key);
        Some(Request { object, key, question: Question::Source(at) })
    }

    fn object_line(&self, idx: u32, totals: &ObjectTotals) -> ObjectLine {
        let kind = totals.level.step.kind();
        let has_place = matches!(kind, ObjectKind::Member | ObjectKind::Aggregate);
        let mut metrics = Windows::new(self.totals.lengths(), |window| match window {
            Window::All => self.metrics(&totals.all),
            Window::Last(_) => self.metrics(&self.totals.window(ObjectIdx(idx), window)),
        });
        metrics.all.threads = totals.threads.len() as u64;
        let (name, part) = self.totals.source_name(ObjectIdx(idx)).cloned().unwrap_or_default();
        ObjectLine {
            id: idx,
            parent_id: totals.parent.map(|parent| parent.0),
            object: self.totals.descriptor(ObjectIdx(idx)),
            part: (part.text != *name).then(|| part.text.into()),
            is_elided: part.is_elided,
            name,
            kind,
            offset: has_place.then_some(totals.level.offset),
            size: (totals.level.size != 0).then_some(totals.level.size),
            candidates: totals.candidates.iter().map(|it| it.to_string().into()).collect(),
            scope: totals.scopes.iter().map(|scope| Scope::clone(scope)).collect(),
            metrics,
        }
    }

    fn metrics(&self, span: &SpanSums) -> Metrics {
        let (sums, measured) = (&span.sums, self.measured);
        let named = |names: &mut dyn Iterator<Item = &'static str>, counts: &[u32]| {
            names
                .zip(counts)
                .filter(|(_, count)| **count != 0)
                .map(|(name, count)| (name.to_owned(), u64::from(*count)))
                .collect::<BTreeMap<_, _>>()
        };
        Metrics {
            samples: sums.samples,
            loads: sums.loads,
            stores: sums.stores,
            latency: measured.latency.then_some(sums.latency),
            tlb_misses: measured.tlb.then_some(sums.tlb_misses),
            locked: measured.locked.then_some(sums.locked),
            hitm: measured.snoop.then_some(sums.hitm),
            remote: measured.level.then_some(sums.remote),
            threads: 0,
            levels: named(&mut Level::ALL.iter().map(|level| level.name()), &sums.levels),
            evidence: named(&mut Evidence::ALL.iter().map(|kind| kind.name()), &sums.evidence),
            events: self
                .events()
                .iter()
                .zip(&span.events)
                .filter(|(_, sum)| **sum != 0)
                .map(|(event, sum)| (event.name.clone(), *sum))
                .collect(),
        }
    }
}

/// An event as snapshots show it.
#[must_use]
pub fn event_line(event: &Event) -> EventLine {
    let (period, frequency_hz) = match event.sampling {
        Sampling::Period(period) => (Some(period), None),
        Sampling::FrequencyHz(hz) => (None, Some(hz)),
    };
    EventLine {
        name: event.name.clone(),
        kind: event.kind.into(),
        skid: event.skid,
        period,
        frequency_hz,
    }
}
