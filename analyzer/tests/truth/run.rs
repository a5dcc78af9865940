//! Builds, traces, asks and judges: everything for a choice of builds, on several threads.

use crate::truth::build::{Build, Program, Symbols};
use crate::truth::judge::{self, Verdict};
use crate::truth::keep;
use crate::truth::miss::{Miss, Misses, Places};
use crate::truth::model::{Model, Truth};
use crate::truth::operand::{self, Touch};
use crate::truth::session::{self, Sessions};
use crate::truth::step::Pick;
use crate::truth::tally::{Judged, Tally};
use crate::truth::trace::{self, Trace};
use crate::truth::tracee;
use iced_x86::InstructionInfoFactory;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    /// Where programs and traces are kept.
    pub(crate) dir: &'a Path,
    pub(crate) builds: Vec<Build>,
    pub(crate) models: Vec<Model>,
    /// Samples of each build and model.
    pub(crate) n_picks: usize,
    /// Whether places are noted where answers are wrong or missing.
    pub(crate) has_misses: bool,
}

/// What came out for one build.
pub(crate) struct Outcome {
    pub(crate) build: Build,
    pub(crate) n_steps: u64,
    pub(crate) tallies: Vec<(Model, Tally)>,
    pub(crate) misses: Vec<Miss>,
}

/// Does the plan. Builds whose compiler is not there are left out, and said.
pub(crate) fn run(plan: &Plan<'_>) -> Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = |cpu: usize| -> Result<()> {
        tracee::stay_on(cpu);
        while let Some((idx, build)) = {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            plan.builds.get(idx).map(|build| (idx, build))
        } {
            let outcome = one(plan, build);
            let outcome = match outcome {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    eprintln!("left out: {}: {error}", build.name());
                    continue;
                }
                outcome => {
                    outcome.map_err(|error| Error::other(format!("{}: {error}", build.name())))?
                }
            };
            outcomes.lock().map_err(|_| Error::other("a thread failed"))?.push((idx, outcome));
        }
        Ok(())
    };
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..n_threads).map(|cpu| scope.spawn(move || work(cpu))).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(Error::other("a thread failed")))
        })
    })?;
    let mut outcomes = outcomes.into_inner().map_err(|_| Error::other("a thread failed"))?;
    outcomes.sort_by_key(|(idx, _)| *idx);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn one(plan: &Plan<'_>, build: &Build) -> Result<Outcome> {
    let program = build.compile(plan.dir)?;
    let trace = traced(plan, build, &program)?;
    let mappings = session::mappings(&trace.maps);
    let mut sessions = Sessions::new(&mappings);
    let mut factory = InstructionInfoFactory::new();
    let mut misses = Misses::default();
    let mut tallies = Vec::new();
    for model in &plan.models {
        let mut tally = Tally::default();
        for pick in model.picks(&trace) {
            let truth = Truth::of(pick, &trace, &mut factory);
            // Nobody knows which of its addresses a gather would be sampled with.
            if !model.is_clock() && truth.addr.is_none() {
                continue;
            }
            let noted = plan.has_misses.then_some(&mut misses);
            tally.count(ask(&mut sessions, *model, (pick, &truth), noted)?);
        }
        tallies.push((*model, tally));
    }
    let mut places = Places::new(&mappings, (&program.path, &program.symbols));
    let misses = misses.describe(&trace, &mut places);
    Ok(Outcome { build: *build, n_steps: trace.n_steps, tallies, misses })
}

fn ask(
    sessions: &mut Sessions,
    model: Model,
    (pick, truth): (&Pick, &Truth),
    misses: Option<&mut Misses>,
) -> Result<Judged> {
    let line = sessions.ask(model, model.sample(pick, truth.addr))?;
    let mut known = Vec::new();
    let reference = || {
        known = sessions.reference(&pick.at, truth.addr).unwrap_or_default();
        known.clone()
    };
    let verdict = judge::judge(&line, truth, model == Model::Exact, reference);
    let is_wrong_address = judge::is_wrong_address(&line, truth);
    if let Some(misses) = misses
        && (verdict != Verdict::Right || is_wrong_address)
    {
        misses.note(
            model,
            (verdict, is_wrong_address),
            (pick, truth),
            (&line, known.first().map(|known| &**known)),
        );
    }
    Ok(Judged {
        verdict,
        is_wrong_address,
        is_explicit: truth.touch == Touch::Explicit,
        is_call_or_return: operand::is_call_or_return(&truth.trigger),
    })
}

/// The program's trace: the one that is kept, or a new one.
fn traced(plan: &Plan<'_>, build: &Build, program: &Program) -> Result<Trace> {
    let mut path = program.path.clone().into_os_string();
    path.push(format!(".{}.trace", plan.n_picks));
    let path = PathBuf::from(path);
    let modified = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified());
    let is_fresh =
        modified(&path).is_ok_and(|made| modified(&program.path).is_ok_and(|built| built <= made));
    if is_fresh && let Ok(trace) = keep::read(&path) {
        return Ok(trace);
    }
    let main = build.main(&Symbols::read(&program.symbols)?);
    let main = main.ok_or_else(|| Error::other("no symbol main"))?;
    let trace = trace::trace(&program.path, main, plan.n_picks)?;
    keep::write(&trace, &path)?;
    Ok(trace)
}
