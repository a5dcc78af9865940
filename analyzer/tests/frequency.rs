//! Of several possible triggers the one that by far runs most often, by the samples of the code around them.

use crate::support::program::Program;
use crate::support::session::{CLOCK, Session, object, sample, with};
use dataspace_analyzer::limit;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Record;
use dataspace_proto::sample_line::SampleLine;
use iced_x86::{FlowControl, Instruction};

/// Longer than a sample waits for others.
const LATER_NS: u64 = 2_000_000_000;

/// A loop of gcc's at -O0: `jmp check; body: lock add …; check: …; je body`.
struct Loop {
    program: Program,
    session: Session,
    code: Vec<Instruction>,
    /// Index of the instruction that the jump and the body lead to.
    check: usize,
    time_ns: u64,
}

impl Loop {
    fn new() -> Self {
        let it = Self::of("spin");
        let jump = &it.code[it.check - 2];
        assert_eq!(jump.flow_control(), FlowControl::UnconditionalBranch);
        assert_eq!(jump.near_branch_target(), it.code[it.check].ip());
        it
    }

    /// The loop of a function, whose condition is after the instruction with the lock.
    fn of(function: &str) -> Self {
        let program = Program::c("spin.c", "-O0 -g");
        let session = Session::new(&program);
        let code = program.function(function);
        let body = code.iter().position(Instruction::has_lock_prefix).unwrap();
        Self { program, session, code, check: body + 1, time_ns: 1 }
    }

    /// Samples at the instruction with this index.
    fn sampled(&mut self, index: usize, n_samples: usize) {
        for _ in 0..n_samples {
            self.time_ns += 1000;
            let mut sample = sample(CLOCK, self.code[index].ip(), &with(&[]));
            sample.time_ns = self.time_ns;
            self.session.apply(&Record::Sample(sample));
        }
    }

    /// All that were at the check, when some time has passed.
    fn decided(&mut self) -> Vec<SampleLine> {
        self.time_ns += LATER_NS;
        self.session.apply(&Record::Tick { time_ns: self.time_ns });
        assert_eq!(self.session.analyzer.n_pending(), 0);
        let check = self.code[self.check].ip();
        self.session.lines.0.drain(..).filter(|line| line.ip == check).collect()
    }
}

#[test]
fn the_body_of_a_loop_is_named_that_is_entered_where_no_sample_is() {
    let mut it = Loop::new();
    it.sampled(it.check + 1, 20);
    it.sampled(it.check, 500);
    let pending = it.session.analyzer.accounting();
    assert_eq!(pending.imbalance(), 0);
    assert!(pending.unknown[&Reason::Pending] != 0, "there are no samples yet to tell");
    let lines = it.decided();
    assert_eq!(lines.len(), 500);
    for line in &lines {
        assert_eq!(object(line), "{structure:counts}.{long_int hits}");
        assert_eq!(line.trigger, Some(it.code[it.check - 1].ip()));
        assert!(line.frequency);
    }
    let accounting = it.session.analyzer.accounting();
    assert_eq!((accounting.by_frequency, accounting.imbalance()), (500, 0));
    // Once that is known nobody waits.
    it.sampled(it.check, 1);
    assert_eq!(it.session.analyzer.n_pending(), 0);
    drop(it.program);
}

#[test]
fn a_loop_that_is_entered_as_often_as_it_goes_round_has_no_likely_trigger() {
    let mut it = Loop::new();
    for index in 0..it.check - 1 {
        it.sampled(index, 100);
    }
    it.sampled(it.check + 1, 100);
    it.sampled(it.check, 500);
    let lines = it.decided();
    assert_eq!(lines.len(), 500);
    assert!(lines.iter().all(|line| object(line) == "unresolvable"));
    assert_eq!(it.session.analyzer.accounting().by_frequency, 0);
}

#[test]
fn of_two_ways_round_a_loop_the_one_without_samples_is_not_taken() {
    let mut it = Loop::of("choose");
    let (plain, check) = (3, 4);
    assert_eq!(it.code[it.check].near_branch_target(), it.code[check].ip());
    it.check = check;
    // Both ways come through the condition, and the plain one alone through its access.
    for index in [5, 6, 7, 8, plain] {
        it.sampled(index, 25);
    }
    it.sampled(check, 700);
    let lines = it.decided();
    assert_eq!(lines.len(), 700);
    assert!(lines.iter().all(|line| line.trigger == Some(it.code[plain].ip())));
    // Nor where the other has none either: who locks and waits for it would be seen before he jumps.
    let mut it = Loop::of("choose");
    it.check = check;
    it.sampled(5, 25);
    it.sampled(check, 700);
    let lines = it.decided();
    assert_eq!(lines.len(), 700);
    assert!(lines.iter().all(|line| line.trigger == Some(it.code[plain].ip())));
    // As often.
    let mut it = Loop::of("choose");
    let (locked, jump) = (it.check - 1, it.check);
    it.check = check;
    for index in [5, 6, 7, 8, plain, locked, jump] {
        it.sampled(index, 25);
    }
    it.sampled(check, 700);
    assert!(it.decided().iter().all(|line| line.trigger.is_none()));
}

#[test]
fn few_samples_are_decided_by_the_structure_of_the_loop() {
    let mut it = Loop::new();
    it.sampled(it.check, 3);
    assert!(it.decided().iter().all(|line| object(line) == "unresolvable"), "too few");
    it.sampled(it.check, 20);
    let lines = it.decided();
    assert!(lines.iter().all(|line| object(line) == "{structure:counts}.{long_int hits}"));
    // One sample of what is outside, and it decides no more.
    it.sampled(it.check - 2, 1);
    it.sampled(it.check, 20);
    assert!(it.decided().iter().all(|line| object(line) == "unresolvable"));
}

#[test]
fn as_many_samples_wait_as_are_allowed() {
    let mut it = Loop::new();
    let Loop { session, code, check, .. } = &mut it;
    let record = Record::Sample(sample(CLOCK, code[*check].ip(), &with(&[])));
    // No worker answers.
    for n_waiting in 0..limit::MAX_PENDING_SAMPLES {
        assert_eq!(session.analyzer.n_pending(), n_waiting);
        session.analyzer.apply(&record, &mut session.lines);
    }
    assert!(session.lines.0.is_empty());
    session.analyzer.apply(&record, &mut session.lines);
    assert_eq!(session.analyzer.n_pending(), limit::MAX_PENDING_SAMPLES);
    assert_eq!(object(&session.lines.0[0]), "over_budget");
}

#[test]
fn at_the_end_nobody_waits() {
    let mut it = Loop::new();
    it.sampled(it.check, 20);
    assert_eq!(it.session.analyzer.n_pending(), 20);
    let Loop { session, .. } = &mut it;
    session.analyzer.settle(&mut session.lines);
    // Nobody waits for others; the worker may be asked what lies at an address.
    session.apply(&Record::Tick { time_ns: 1 });
    assert_eq!(session.analyzer.n_pending(), 0);
    assert_eq!(session.lines.0.len(), 20);
}
