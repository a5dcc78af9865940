//! Questions to a session's history about a type, and the figures that their answers give.

use super::figure::{AlikeSamples, LayoutFigures};
use crate::column::is_clock;
use crate::exit::Failure;
use crate::session::findings::Findings;
use crate::session::question::{Question, quoted};
use dataspace_analyzer::types::type_layout::TypeLayout;
use dataspace_proto::query::{KeyValue, Query, QueryMetrics, QueryRow};
use dataspace_proto::snapshot::Snapshot;
use std::collections::{BTreeMap, HashSet};

/// Rows of one answer: ways in which samples of one type differ. Those above it are in none of its sums.
const MAX_ROWS: usize = 1 << 18;

/// Instances whose alignment is counted, those with the most samples.
const MAX_INSTANCES: usize = 1 << 17;

/// Events that count cycles.
const CYCLES: [&str; 3] = ["cycles", "cpu-cycles", "cpu/cpu-cycles"];

/// Tells whether an event, perhaps with modifiers, counts time or cycles: its samples lie where the program waits.
fn is_of_waits(event: &str) -> bool {
    let own = event.split(':').next().unwrap_or(event).trim_end_matches('/');
    is_clock(event) || CYCLES.contains(&own)
}

/// Figures that a session has of a type, and what is to be said about them.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The figures; `None` where they cannot be told.
    pub(crate) figures: Option<LayoutFigures>,
    /// Sentences for a person.
    pub(crate) notes: Vec<String>,
}

/// Asks `findings`, which have a history, about the type of `layout`, so far as the samples are in the span of `within` and
/// its filter keeps them.
///
/// # Errors
/// Where no history is kept, or `within` means nothing.
pub(crate) fn measure(
    findings: &Findings,
    layout: &TypeLayout,
    within: &Query,
) -> Result<Measured, Failure> {
    let known = findings.layouts.values().filter(|known| known.type_name == layout.type_name);
    let known: Vec<&TypeLayout> = known.map(|known| &**known).collect();
    if known.first().is_some_and(|first| !known.iter().all(|one| is_same(one, first))) {
        let note = "types of this name with different members were sampled, and the history does not tell them apart";
        return Ok(Measured { figures: None, notes: vec![note.to_owned()] });
    }
    let events = findings.snapshot.events.iter();
    let is_timed = events.clone().any(|event| is_clock(&event.name));
    if known.first().is_some_and(|known| !is_same(known, layout)) {
        let figures = Some(LayoutFigures::new(BTreeMap::new(), is_timed));
        let note = "the samples are of another type of this name".to_owned();
        return Ok(Measured { figures, notes: vec![note] });
    }
    let mut notes = Vec::new();
    let keys = ["member", "offset", "alignment", "thread", "level", "index"];
    let questions = [
        question(layout, within, &["alignment", "instance"], MAX_INSTANCES)?,
        question(layout, within, &keys, MAX_ROWS)?,
    ];
    let answers = Question::answer_together(&questions, findings)?;
    let [instances, answer] = &answers[..] else { return Ok(Measured { figures: None, notes }) };
    let mut figures = LayoutFigures::new(alignments(&instances.rows), is_timed);
    if answer.truncated || instances.truncated {
        notes.push(
            "samples differ in more ways than are summed: the figures are of most of them"
                .to_owned(),
        );
    }
    if answer.rows_held < answer.rows_of_span {
        let (held, all) = (answer.rows_held, answer.rows_of_span);
        notes.push(format!(
            "of {all} samples the history holds the last {held}: the figures are of these"
        ));
    }
    if answer.total.samples == 0 {
        let is_part = within.filter.is_some() || within.span.is_some();
        notes.push(no_samples(&findings.snapshot, is_part));
        return Ok(Measured { figures: Some(figures), notes });
    }
    let arrays = arrays(layout);
    for row in &answer.rows {
        add(&mut figures, row, &arrays);
    }
    notes.extend(figures.alignment_notes(layout.size));
    Ok(Measured { figures: Some(figures), notes })
}

/// Tells whether two layouts are of one type: either list may have been cut.
fn is_same(one: &TypeLayout, other: &TypeLayout) -> bool {
    let is_cut = one.truncated || other.truncated;
    let is_as_long = is_cut || one.members.len() == other.members.len();
    one.size == other.size
        && is_as_long
        && one.members.iter().zip(&other.members).all(|(a, b)| a == b)
}

fn no_samples(snapshot: &Snapshot, is_part: bool) -> String {
    if is_part {
        return "no sample that the filter and the span leave touched it, or what touched it has no name".to_owned();
    }
    let n_samples = snapshot.accounting.kernel;
    format!("none of the {n_samples} samples touched it, or what touched it has no name")
}

/// The question about samples of the type of `layout` that are `within`.
fn question(
    layout: &TypeLayout,
    within: &Query,
    keys: &[&str],
    n_rows: usize,
) -> Result<Question, Failure> {
    let descriptor = format!("{{{}}}", layout.type_name);
    let is_of_type = format!("aggregate == {}", quoted(&descriptor));
    Question::new(Query {
        by: keys.iter().map(|key| (*key).to_owned()).collect(),
        filter: Some(match &within.filter {
            Some(filter) => format!("{is_of_type} && ({filter})"),
            None => is_of_type,
        }),
        limit: Some(n_rows),
        ..within.clone()
    })
}

/// Instances and samples by alignment, of rows of alignment and instance.
fn alignments(rows: &[QueryRow]) -> BTreeMap<u64, (u64, u64)> {
    let mut alignments: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows {
        if let [alignment, _] = &row.key[..]
            && let Some(place) = number(alignment)
        {
            let (instances, samples) = alignments.entry(place).or_default();
            *instances = instances.saturating_add(1);
            *samples = samples.saturating_add(row.metrics.samples);
        }
    }
    alignments
}

/// Dotted paths of members that are arrays.
fn arrays(layout: &TypeLayout) -> HashSet<String> {
    let mut path: Vec<&str> = Vec::new();
    let mut arrays = HashSet::new();
    for member in &layout.members {
        path.truncate(member.depth as usize);
        path.push(&member.name);
        if member.elements.is_some() {
            arrays.insert(path.join("."));
        }
    }
    arrays
}

fn add(figures: &mut LayoutFigures, row: &QueryRow, arrays: &HashSet<String>) {
    let [member, offset, alignment, thread, level, index] = &row.key[..] else { return };
    let QueryRow { metrics, .. } = row;
    let member = text(member);
    let (waits, first) = waits(text(level), metrics);
    let time_ns = metrics.period.iter().filter(|(event, _)| is_clock(event));
    figures.add(&AlikeSamples {
        member,
        offset: number(offset),
        alignment: number(alignment),
        thread: match thread {
            KeyValue::Number(thread) => Some(*thread),
            _ => None,
        },
        // Of what is no array it is the number of the instance in an array of them.
        element: number(index).filter(|_| member.is_some_and(|member| arrays.contains(member))),
        samples: metrics.samples,
        time_ns: time_ns.fold(0, |sum, (_, period)| sum.saturating_add(*period)),
        reads: metrics.loads,
        writes: metrics.stores,
        waits,
        first,
    });
}

/// The samples that waited for their line, and those of them that were the first to touch it.
///
/// Where hardware tells the level: what L1 had waited for nothing, and what a line fill buffer had waited for a line
/// that another access had asked for. Where it tells none: a sample of a clock or of cycles lies where the program
/// waits; later accesses to the line find it in L1 and are not waited for. Samples of other events tell of no wait.
fn waits(level: Option<&str>, metrics: &QueryMetrics) -> (u64, u64) {
    match level {
        Some("L1") => (0, 0),
        Some("LFB") => (metrics.samples, 0),
        Some(_) => (metrics.samples, metrics.samples),
        None if metrics.period.keys().all(|event| is_of_waits(event)) => {
            (metrics.samples, metrics.samples)
        }
        None => (0, 0),
    }
}

fn text(value: &KeyValue) -> Option<&str> {
    match value {
        KeyValue::Text(text) => Some(text),
        _ => None,
    }
}

fn number(value: &KeyValue) -> Option<u64> {
    match value {
        KeyValue::Number(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_that_tell_of_waits_are_waits() {
        let metrics = |event: &str| QueryMetrics {
            samples: 5,
            period: [(event.to_owned(), 50)].into(),
            ..QueryMetrics::default()
        };
        for (level, event, expected) in [
            (None, "cpu-clock", (5, 5)),
            (None, "task-clock:u", (5, 5)),
            (None, "cycles:pp", (5, 5)),
            (None, "page-faults", (0, 0)),
            (None, "mem:0x404028/8:rw", (0, 0)),
            (Some("L1"), "cpu/mem-loads/P", (0, 0)),
            (Some("LFB"), "cpu/mem-loads/P", (5, 0)),
            (Some("RAM"), "cpu/mem-loads/P", (5, 5)),
        ] {
            assert_eq!(waits(level, &metrics(event)), expected, "{level:?} {event}");
        }
    }
}
