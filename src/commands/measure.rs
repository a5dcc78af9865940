//! `dataspace measure`: exact counts of a whole run beside samples with their places, as HP Caliper has them.

use super::{json, reading, top};
use crate::broker::{self, Terms};
use crate::cli::{Global, MeasureArgs, MeasureOptions, MeasureSource, ViewArgs, When};
use crate::config::{AnswerForm, LiveOptions, TopOptions};
use crate::daemon::config_file;
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::file_source::FilePolicy;
use crate::header;
use crate::interrupt::Interrupt;
use crate::measure::question::MeasuredSamples;
use crate::measure::report::MeasureReport;
use crate::measure::sheet::data_sampled;
use crate::measure::{document, sheet};
use crate::pager::Pager;
use crate::session::inspection::Inspector;
use crate::session::{self, OpenRecording, Source};
use crate::text::span;
use crate::tui::{self, Leave};
use dataspace_collector::system::machine::Machine;
use dataspace_proto::governance::EventGovernance;
use dataspace_proto::snapshot::{EventLine, Snapshot};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr, stdout};
use std::iter::repeat;
use std::path::Path;
use std::time::Duration;

/// Runs the command.
pub(super) fn run(args: MeasureArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let options = args.resolve()?;
    let is_terminal = stdout().is_terminal();
    let has_color = global.color.resolve(is_terminal);
    let is_paged = is_terminal && options.form == AnswerForm::Text && !options.is_unpaged;
    if options.is_live && !is_terminal {
        let failure =
            Failure::new(Kind::Usage, "--live shows a screen, and standard output is no terminal");
        return Err(failure.with_remedy("without it the report is printed at the end").into());
    }
    // Read here: no file can be opened in the sandbox.
    let keys = config_file::own_keys()?;
    let keys = &keys;
    match &options.source {
        MeasureSource::Live(live, duration) => {
            let mut terms = Terms::of_session(live);
            with_sources(&mut terms.policy, &options);
            let policy = terms.policy.clone();
            let screen = options.is_live.then(|| screen(&options, *duration, keys, global.color));
            broker::split(global.sandbox, terms, || {
                let processor = processor();
                let told = Told { options: &options, policy, keys, has_color, processor };
                watch(live, *duration, screen, told)
            })
        }
        MeasureSource::Recording(recording) => {
            let mut recording = OpenRecording::open(recording)?;
            with_sources(&mut recording.policy, &options);
            let policy = recording.policy.clone();
            let _pager = is_paged.then(Pager::start).flatten();
            broker::split(global.sandbox, Terms::of_files(policy.clone()), || {
                let told = Told { options: &options, policy, keys, has_color, processor: None };
                let interrupt = Interrupt::listen()?;
                let source = recording.totals()?;
                reading::wait(&*source, &interrupt)?;
                told.tell(&*source)
            })
        }
    }
}

fn with_sources(policy: &mut FilePolicy, options: &MeasureOptions) {
    policy.shows_sources = true;
    policy.sources = options.sources.clone().map(Into::into);
}

/// The processor of this machine, and its kernel.
fn processor() -> Option<(String, String)> {
    let machine = Machine::read(Path::new("/"));
    let name = match machine.processor.name.as_str() {
        "" => machine.architecture.clone(),
        name => name.to_owned(),
    };
    let place = if machine.processor.is_virtual { ", in a virtual machine" } else { "" };
    Some((format!("{name}{place}"), machine.kernel.to_string()))
}

/// The screen that shows it while it runs.
fn screen(
    options: &MeasureOptions,
    duration: Option<Duration>,
    keys: &BTreeMap<String, String>,
    color: When,
) -> TopOptions {
    let view = ViewArgs::default().resolve(color, true);
    let measure = Some(options.request.measure);
    let (names, own_keys) = (options.view.names, keys.clone());
    TopOptions { duration, measure, names, own_keys, ..view }
}

/// Samples until the target ends, the time is over or somebody ends it.
fn watch(
    live: &LiveOptions,
    duration: Option<Duration>,
    screen: Option<TopOptions>,
    told: Told<'_>,
) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let source = top::begun(session::start_live(live, &|| interrupt.is_set()), &interrupt)?;
    match screen {
        Some(screen) => {
            let left = tui::run(&*source, &screen, Some(told.policy.clone()), None, &interrupt);
            source.stop();
            if left? == Leave::HungUp {
                return Ok(());
            }
        }
        None => {
            // An event that is of something else is told at once.
            let events = &source.snapshot().events;
            if !events.is_empty()
                && let Err(failure) = told.samples(events)
            {
                top::stop(&*source, &interrupt)?;
                return Err(failure.into());
            }
            top::announce(&*source, duration, &mut stderr().lock());
            top::wait_for_end(&*source, duration, &interrupt);
            top::stop(&*source, &interrupt)?;
        }
    }
    told.tell(&*source)
}

/// A report, and how it is told.
struct Told<'a> {
    options: &'a MeasureOptions,
    policy: FilePolicy,
    /// Names for expressions.
    keys: &'a BTreeMap<String, String>,
    has_color: bool,
    /// The machine, where it is this one.
    processor: Option<(String, String)>,
}

impl Told<'_> {
    /// Prints what a session that has ended tells.
    fn tell(self, source: &dyn Source) -> anyhow::Result<()> {
        let options = self.options;
        let snapshot = source.snapshot();
        let samples = self.samples(&snapshot.events)?;
        let run = self.run_information(&snapshot);
        let mut inspector = Inspector::new(self.policy);
        let report = MeasureReport::of(
            source,
            samples,
            options.view.clone(),
            run,
            options.form == AnswerForm::Json,
            &mut inspector,
        )?;
        let mut out = stdout().lock();
        match options.form {
            AnswerForm::Json => json::write(&document::of(&report), &mut out),
            AnswerForm::Csv => Ok(document::write_csv(&report, &mut out)?),
            AnswerForm::Text => Ok(sheet::write(&report, self.has_color, &mut out)?),
        }
    }

    /// The samples that it is made of, of these events.
    fn samples(&self, events: &[EventLine]) -> Result<MeasuredSamples, Failure> {
        let options = self.options;
        let (condition, span) = (options.condition.clone(), options.span.clone());
        let measure = options.request.measure;
        MeasuredSamples::new(measure, events, condition, span, self.keys.clone())
    }

    /// Facts about the run, in HP Caliper's order.
    fn run_information(&self, snapshot: &Snapshot) -> Vec<(&'static str, String)> {
        let request = &self.options.request;
        let is_live = self.processor.is_some();
        let mut run = vec![("Target", snapshot.target.description.clone())];
        if let Some((processor, kernel)) = &self.processor {
            run.push(("Processor", processor.clone()));
            run.push(("Kernel", kernel.clone()));
        }
        run.push((
            "Measured",
            format!("{}, {}", request.measure.name(), span(snapshot.elapsed_ns)),
        ));
        let governed = snapshot.governance.iter().flat_map(|it| &it.events).map(Some);
        for (event, governed) in snapshot.events.iter().zip(governed.chain(repeat(None))) {
            run.push(("Sampled event", self.event(event, governed, is_live)));
        }
        run.push(("Data sampled", data_sampled(request.measure).to_owned()));
        let accounts = header::accounting(snapshot, header::Shares::Shown);
        let accounts: Vec<String> = accounts.into_iter().map(|segment| segment.text).collect();
        run.push(("Accounts", accounts.join(" ")));
        let quality: Vec<String> =
            header::cost(snapshot).into_iter().map(|segment| segment.text).collect();
        run.push(("Quality", quality.join(", ")));
        run
    }

    /// An event, its period and how that varied, and the levels that it is of.
    fn event(
        &self,
        event: &EventLine,
        governed: Option<&EventGovernance>,
        is_live: bool,
    ) -> String {
        let request = &self.options.request;
        let mut text = event.name.clone();
        match (event.period, event.frequency_hz) {
            (Some(period), _) => text.push_str(&format!(", period {period}")),
            (None, Some(hz)) => text.push_str(&format!(", {hz} samples a second")),
            (None, None) => {}
        }
        if is_live {
            let last = governed.and_then(|it| it.period).filter(|_| event.period.is_some());
            if let Some(last) = last.filter(|last| event.period != Some(*last)) {
                text.push_str(&format!(", at the end {last}: sampling took too much"));
            }
            let variation = governed.and_then(|it| it.variation);
            let usual = event.period.map_or(0, |period| request.variation.of(period));
            text.push_str(&match (variation, usual) {
                (Some(most), _) => format!(", variation ±{most}"),
                (None, 0) => ", variation none".to_owned(),
                (None, _) => {
                    ", variation none: threads inherit the period, or there were few samples"
                        .to_owned()
                }
            });
            text.push_str(match request.levels {
                dataspace_proto::measure::PrivilegeLevels::All => {
                    ", privilege levels all that are permitted"
                }
                dataspace_proto::measure::PrivilegeLevels::User => ", privilege level user",
                dataspace_proto::measure::PrivilegeLevels::Kernel => ", privilege level kernel",
            });
        }
        let skid = match event.skid {
            dataspace_proto::event::SkidModel::Exact => ", exact IP".to_owned(),
            dataspace_proto::event::SkidModel::AfterOne => {
                ", IP one instruction after the trigger".to_owned()
            }
            dataspace_proto::event::SkidModel::Unknown(n) => {
                format!(", IP up to {n} instructions after")
            }
        };
        text + &skid
    }
}
