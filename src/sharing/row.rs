//! Rows of the view of threads: the same for the table, the screen and JSON.

use super::advice;
use super::name;
use dataspace_analyzer::sharing::survey::{LinePart, Sharing, SurveyedLine, SurveyedLines};
use std::collections::BTreeSet;

/// All that the view shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharingRows {
    /// The lines, those with most at stake first.
    pub(crate) lines: Vec<LineRow>,
    /// Lines that were left out.
    pub(crate) n_left_out: u64,
    /// Sums over all samples; the lines are above.
    pub(crate) survey: SurveyedLines,
}

/// One cache line of a process.
#[derive(Clone, Debug)]
pub(crate) struct LineRow {
    /// The first byte.
    pub(crate) address: u64,
    /// The process.
    pub(crate) pid: i32,
    /// The verdict.
    pub(crate) sharing: Sharing,
    /// The verdict in words.
    pub(crate) verdict: String,
    /// Words on what would separate the threads.
    pub(crate) advice: Option<String>,
    /// Samples on it.
    pub(crate) samples: u64,
    /// Samples between which another thread touched the line.
    pub(crate) met: u64,
    /// Time of the samples, where an event is a clock.
    pub(crate) time_ns: Option<u64>,
    /// Time that the sharing costs at most.
    pub(crate) at_stake_ns: Option<u64>,
    /// Accesses by those who touch it, in the order of threads.
    pub(crate) parts: Vec<PartRow>,
    /// Parts that were too many.
    pub(crate) n_parts_left_out: u64,
}

/// One thread's accesses to the same bytes in one function.
#[derive(Clone, Debug)]
pub(crate) struct PartRow {
    /// Its sums and its names.
    pub(crate) part: LinePart,
    /// The object as it stands in the source, where that is known.
    pub(crate) name: Option<String>,
    /// `PATH:LINE` of the trigger.
    pub(crate) source: Option<String>,
    /// The first byte in the line; negative where the access begins before it.
    pub(crate) line_offset: i64,
    /// Time of its samples, where an event is a clock.
    pub(crate) time_ns: Option<u64>,
}

impl SharingRows {
    /// Rows of a survey, of at most `limit` lines.
    pub(crate) fn new(mut survey: SurveyedLines, limit: usize) -> Self {
        let lines = std::mem::take(&mut survey.lines);
        let n_cut = lines.len().saturating_sub(limit) as u64;
        let has_clock = survey.time_ns != 0;
        let lines = lines.into_iter().take(limit).map(|line| LineRow::new(line, has_clock));
        let lines = lines.collect();
        Self { lines, n_left_out: n_cut + survey.n_lines_left_out, survey }
    }
}

impl LineRow {
    fn new(line: SurveyedLine, has_clock: bool) -> Self {
        let advice = advice::of(&line);
        let verdict = verdict(&line);
        let time = |ns: u64| has_clock.then_some(ns);
        let mut parts: Vec<LinePart> = line.parts;
        parts.sort_by_key(|part| (part.tid, part.address.0, u64::MAX - part.samples));
        let row = |part: LinePart| PartRow {
            name: name::of(&part),
            source: part
                .source
                .as_ref()
                .and_then(|source| Some(format!("{}:{}", source.path.as_deref()?, source.line))),
            line_offset: part.address.0.wrapping_sub(line.address.0) as i64,
            time_ns: time(part.time_ns),
            part,
        };
        Self {
            address: line.address.0,
            pid: line.pid,
            sharing: line.sharing,
            verdict,
            advice,
            samples: line.samples,
            met: line.met_apart + line.met_same,
            time_ns: time(line.time_ns),
            at_stake_ns: time(line.at_stake_ns),
            parts: parts.into_iter().map(row).collect(),
            n_parts_left_out: line.n_parts_left_out,
        }
    }
}

/// The threads and what they do, in a sentence.
fn verdict(line: &SurveyedLine) -> String {
    let threads = |counts: fn(&LinePart) -> bool| {
        let tids = line.parts.iter().filter(|part| counts(part)).map(|part| part.tid);
        tids.collect::<BTreeSet<i32>>().len()
    };
    let n_met = threads(|part| part.met != 0);
    let n_writing = threads(|part| part.met != 0 && part.writes != 0);
    match line.sharing {
        Sharing::False => {
            format!(
                "false sharing: {n_met} threads touch different bytes, {n_writing} of them write"
            )
        }
        Sharing::True => {
            format!("true sharing: {n_met} threads touch the same bytes, {n_writing} of them write")
        }
        Sharing::None => match threads(|_| true) {
            1 => "not shared: one thread alone touches it".to_owned(),
            n => format!("not shared: {n} threads touch it, but not in turns, or only to read"),
        },
    }
}
