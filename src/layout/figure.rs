//! Figures that were measured of a layout: by member, by cache line, and of its instances.

use super::row::{LayoutRow, line_of};
use dataspace_proto::object_detail::CACHE_LINE_BYTES;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Threads that a member tells.
const MAX_THREADS: usize = 8;

/// Elements that an array tells.
const MAX_ELEMENTS: usize = 8;

/// Sums over the samples of a member, with what it consists of, or of a cache line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberFigures {
    /// Samples.
    pub(crate) samples: u64,
    /// Time that they stand for, where a clock was sampled.
    pub(crate) time_ns: Option<u64>,
    /// Samples whose trigger reads it.
    pub(crate) reads: u64,
    /// Samples whose trigger writes it; one may do both.
    pub(crate) writes: u64,
    /// The threads that were sampled there, those with the most samples first; at most [`MAX_THREADS`].
    pub(crate) threads: Vec<i64>,
    /// Number of all of them.
    pub(crate) n_threads: u64,
    /// Elements of an array by samples, most first; at most [`MAX_ELEMENTS`]. Only of samples that tell the element.
    pub(crate) hottest: Vec<(u64, u64)>,
    /// Waits for its lines, by samples; `None` where no sample tells that it waited, as those of a breakpoint.
    pub(crate) first_touch: Option<FirstTouch>,
}

/// Waits for the cache lines that a member is in, and those in which it was the member that was touched first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FirstTouch {
    /// Samples that waited for one of these lines.
    pub(crate) waits: u64,
    /// Those that waited at this member.
    pub(crate) first: u64,
}

/// All that was measured of a layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutFigures {
    /// By dotted path; a member that no sample touched has none.
    members: BTreeMap<Arc<str>, MemberTally>,
    /// By cache line, as borders are drawn.
    lines: BTreeMap<u64, MemberTally>,
    /// The whole.
    total: MemberTally,
    /// Waits by the alignment of the instance and the line in it.
    waits: BTreeMap<(u64, u64), u64>,
    /// Instances by their offsets in their lines, and the samples of these.
    alignments: BTreeMap<u64, (u64, u64)>,
    /// A clock was sampled: samples stand for time.
    pub(super) is_timed: bool,
}

/// Sums while they are made.
#[derive(Clone, Debug, Default)]
struct MemberTally {
    samples: u64,
    time_ns: u64,
    reads: u64,
    writes: u64,
    waits_first: u64,
    threads: HashMap<i64, u64>,
    elements: HashMap<u64, u64>,
}

/// Samples that are alike.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AlikeSamples<'a> {
    /// Dotted path of the member; `None` where they touch no one member.
    pub(crate) member: Option<&'a str>,
    /// Offset in the aggregate.
    pub(crate) offset: Option<u64>,
    /// The instance's offset in its line.
    pub(crate) alignment: Option<u64>,
    pub(crate) thread: Option<i64>,
    /// The element of the member that is an array.
    pub(crate) element: Option<u64>,
    pub(crate) samples: u64,
    pub(crate) time_ns: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Those that waited for their line.
    pub(crate) waits: u64,
    /// Those of them that were the first to touch it.
    pub(crate) first: u64,
}

impl MemberTally {
    fn add(&mut self, alike: &AlikeSamples<'_>) {
        self.samples = self.samples.saturating_add(alike.samples);
        self.time_ns = self.time_ns.saturating_add(alike.time_ns);
        self.reads = self.reads.saturating_add(alike.reads);
        self.writes = self.writes.saturating_add(alike.writes);
        self.waits_first = self.waits_first.saturating_add(alike.first);
        if let Some(thread) = alike.thread {
            let sum = self.threads.entry(thread).or_default();
            *sum = sum.saturating_add(alike.samples);
        }
    }

    fn figures(&self, is_timed: bool) -> MemberFigures {
        let threads = most(&self.threads, MAX_THREADS);
        MemberFigures {
            samples: self.samples,
            time_ns: is_timed.then_some(self.time_ns),
            reads: self.reads,
            writes: self.writes,
            threads: threads.into_iter().map(|(thread, _)| thread).collect(),
            n_threads: self.threads.len() as u64,
            hottest: most(&self.elements, MAX_ELEMENTS),
            first_touch: None,
        }
    }
}

/// Those with the most samples first, at most `n`.
fn most<K: Copy + Ord>(sums: &HashMap<K, u64>, n: usize) -> Vec<(K, u64)> {
    let mut sums: Vec<(K, u64)> = sums.iter().map(|(key, samples)| (*key, *samples)).collect();
    sums.sort_unstable_by_key(|(key, samples)| (Reverse(*samples), *key));
    sums.truncate(n);
    sums
}

impl LayoutFigures {
    /// Nothing measured yet, by instances of these offsets in their lines: each with its instances and their samples.
    pub(crate) fn new(alignments: BTreeMap<u64, (u64, u64)>, is_timed: bool) -> Self {
        Self { alignments, is_timed, ..Self::default() }
    }

    /// Adds samples.
    pub(crate) fn add(&mut self, alike: &AlikeSamples<'_>) {
        self.total.add(alike);
        if let Some(path) = alike.member {
            // A member's sums are in those of what it is in.
            let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
            for end in ends {
                self.tally(&path[..end]).add(alike);
            }
            if let Some(element) = alike.element {
                let sum = self.tally(path).elements.entry(element).or_default();
                *sum = sum.saturating_add(alike.samples);
            }
        }
        let Some(offset) = alike.offset else { return };
        let drawn = self.alignment().unwrap_or(0);
        self.lines.entry(line_of(drawn, offset)).or_default().add(alike);
        let own = alike.alignment.unwrap_or(drawn);
        let waits = self.waits.entry((own, line_of(own, offset))).or_default();
        *waits = waits.saturating_add(alike.waits);
    }

    fn tally(&mut self, path: &str) -> &mut MemberTally {
        if !self.members.contains_key(path) {
            self.members.insert(path.into(), MemberTally::default());
        }
        self.members.entry(path.into()).or_default()
    }

    /// Samples of the whole.
    pub(crate) const fn samples(&self) -> u64 {
        self.total.samples
    }

    /// The place in its line at which most instances begin; `None` where no address was told.
    pub(crate) fn alignment(&self) -> Option<u64> {
        let most =
            self.alignments.iter().max_by_key(|(place, counts)| (**counts, Reverse(**place)));
        most.map(|(place, _)| *place)
    }

    /// The sums of the member at a path, of `size` bytes from `offset` on: of one that no sample touched they are 0.
    pub(crate) fn of(&self, path: &str, offset: u64, size: u64) -> MemberFigures {
        let none = MemberTally::default();
        let tally = self.members.get(path).unwrap_or(&none);
        let last = offset.saturating_add(size.max(1) - 1);
        let mut waits: u64 = 0;
        let mut at = self.waits.keys().next().map(|(alignment, _)| *alignment);
        // The member is in other lines of instances that begin elsewhere in theirs.
        while let Some(alignment) = at {
            let lines =
                (alignment, line_of(alignment, offset))..=(alignment, line_of(alignment, last));
            waits = self.waits.range(lines).fold(waits, |sum, (_, n)| sum.saturating_add(*n));
            let next = alignment.checked_add(1).map(|next| (next, 0));
            at =
                next.and_then(|next| self.waits.range(next..).next()).map(|((place, _), _)| *place);
        }
        let first_touch = FirstTouch { waits, first: tally.waits_first };
        MemberFigures {
            first_touch: (waits > 0).then_some(first_touch),
            ..tally.figures(self.is_timed)
        }
    }

    /// Gives each line the sums of the samples in it: the wait is for the line, not for the member.
    pub(super) fn add_line_sums(&self, rows: &mut [LayoutRow]) {
        for row in rows {
            if let LayoutRow::Line(line) = row {
                let none = MemberTally::default();
                let tally = self.lines.get(&line.line).unwrap_or(&none);
                line.figures = Some(tally.figures(self.is_timed));
            }
        }
    }

    /// Says where instances of `size` bytes begin in their lines, and how many of them touch more lines than they must.
    pub(crate) fn alignment_notes(&self, size: u64) -> Vec<String> {
        let sum = |counts: &dyn Fn(u64) -> bool| {
            let of = self.alignments.iter().filter(|(place, _)| counts(**place));
            of.fold((0_u64, 0_u64), |sum, (_, (instances, samples))| {
                (sum.0.saturating_add(*instances), sum.1.saturating_add(*samples))
            })
        };
        let (instances, samples) = sum(&|_| true);
        if instances == 0 {
            let note =
                "no address of an instance is known: borders are drawn as if it began a line";
            return vec![note.to_owned()];
        }
        let drawn = self.alignment().unwrap_or(0);
        let (here, of_here) = sum(&|place| place == drawn);
        let least = size.max(1).div_ceil(CACHE_LINE_BYTES);
        let n_lines = |place| line_of(place, size.max(1) - 1).saturating_add(1);
        let (across, of_across) = sum(&|place| n_lines(place) > least);
        let share = |part: u64, whole: u64| crate::text::percent(part, whole);
        let mut notes = vec![format!(
            "borders are drawn for instances that begin at byte {drawn} of their line: {here} of the {instances} sampled, {} of their samples",
            share(of_here, samples)
        )];
        if across > 0 {
            let most = if least == 1 {
                "straddle two lines".to_owned()
            } else {
                format!("touch {} lines, not {least}", least + 1)
            };
            notes.push(format!(
                "{across} of the {instances} sampled instances ({}) {most}: {} of the samples",
                share(across, instances),
                share(of_across, samples)
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(member: &str, offset: u64, alignment: Option<u64>, samples: u64) -> AlikeSamples<'_> {
        AlikeSamples {
            member: Some(member),
            offset: Some(offset),
            alignment,
            thread: Some(7),
            samples,
            time_ns: samples * 10,
            reads: samples,
            waits: samples,
            first: samples,
            ..AlikeSamples::default()
        }
    }

    fn waited(figures: &LayoutFigures, path: &str, offset: u64) -> Option<(u64, u64)> {
        figures.of(path, offset, 8).first_touch.map(|it| (it.first, it.waits))
    }

    #[test]
    fn a_member_is_first_in_its_share_of_the_waits_for_its_line() {
        let mut figures = LayoutFigures::new([(0, (3, 90))].into(), true);
        figures.add(&alike("key", 0, Some(0), 60));
        figures.add(&alike("pos.x", 16, Some(0), 20));
        figures.add(&alike("last", 64, Some(0), 5));
        assert_eq!(waited(&figures, "key", 0), Some((60, 80)));
        assert_eq!(waited(&figures, "pos", 16), Some((20, 80)));
        assert_eq!(waited(&figures, "cold", 8), Some((0, 80)));
        assert_eq!(waited(&figures, "last", 64), Some((5, 5)));
        assert_eq!(waited(&figures, "far", 128), None);
        let pos = figures.of("pos", 16, 8);
        assert_eq!((pos.samples, pos.time_ns, pos.reads, pos.n_threads), (20, Some(200), 20, 1));
        assert_eq!(figures.of("cold", 8, 8).time_ns, Some(0));
    }

    #[test]
    fn instances_that_begin_elsewhere_have_other_neighbours() {
        let mut figures = LayoutFigures::new([(0, (2, 20)), (32, (1, 10))].into(), false);
        figures.add(&alike("a", 0, Some(0), 10));
        figures.add(&alike("b", 40, Some(0), 10));
        // Of this instance the second member is in the next line.
        figures.add(&alike("a", 0, Some(32), 4));
        figures.add(&alike("b", 40, Some(32), 6));
        assert_eq!(waited(&figures, "a", 0), Some((14, 24)));
        assert_eq!(waited(&figures, "b", 40), Some((16, 26)));
        let notes = figures.alignment_notes(48);
        assert!(notes[0].contains("byte 0 of their line: 2 of the 3"), "{notes:?}");
        assert!(notes[1].contains("1 of the 3 sampled instances (33.3%) straddle"), "{notes:?}");
    }

    #[test]
    fn what_did_not_wait_is_no_first_touch() {
        let mut figures = LayoutFigures::new(BTreeMap::new(), false);
        figures.add(&AlikeSamples { waits: 0, first: 0, ..alike("a", 0, None, 10) });
        let a = figures.of("a", 0, 8);
        assert_eq!((a.samples, a.first_touch, a.time_ns), (10, None, None));
        assert!(figures.alignment_notes(8)[0].contains("no address"));
    }

    #[test]
    fn the_hottest_elements_come_first() {
        let mut figures = LayoutFigures::default();
        for (element, samples) in [(3, 5), (1, 9), (2, 5)] {
            figures.add(&AlikeSamples { element: Some(element), ..alike("a", 0, None, samples) });
        }
        assert_eq!(figures.of("a", 0, 8).hottest, [(1, 9), (2, 5), (3, 5)]);
    }
}
