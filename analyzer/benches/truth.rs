//! How often backtracking is right, judged by single-stepped programs.
//!
//! `cargo bench -p dataspace-analyzer --bench truth -- [--samples N] [--only TEXT]...
//! [--model NAME]... [--misses N] [--keep DIR]`. `--samples` counts over all builds and models.
//! `--only` takes the builds whose name has the text in it, `--misses` lists the heaviest places
//! where answers were wrong or missing, `--keep` keeps programs and traces for the next run.
//! Nothing is asserted here; a smaller run in the tests holds the limits.

#[path = "../tests/truth/mod.rs"]
#[allow(dead_code, reason = "the tests use the other half")]
mod truth;

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;
use truth::build::Language;
use truth::model::Model;
use truth::run::Plan;
use truth::{catalog, listing, run};

/// As many builds have a table of their own; more would bury the sums.
const N_BUILDS_LISTED: usize = 12;

/// What was asked for.
struct Arguments {
    n_samples: usize,
    only: Vec<String>,
    models: Vec<Model>,
    n_misses: usize,
    keep: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut asked = Arguments {
        n_samples: 2_600_000,
        only: Vec::new(),
        models: Vec::new(),
        n_misses: 0,
        keep: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        // Cargo's own word for every bench.
        if word == "--bench" {
            continue;
        }
        let value = words.next().ok_or_else(|| Error::other(format!("{word} needs a value")))?;
        let number = || value.parse().map_err(|_| Error::other(format!("{word} needs a number")));
        match &*word {
            "--samples" => asked.n_samples = number()?,
            "--misses" => asked.n_misses = number()?,
            "--only" => asked.only.push(value),
            "--keep" => asked.keep = Some(PathBuf::from(value)),
            "--model" => {
                let model = Model::ALL.into_iter().find(|model| model.name() == value);
                asked.models.push(model.ok_or_else(|| Error::other(format!("no model {value}")))?);
            }
            _ => return Err(Error::other(format!("{word} is not known"))),
        }
    }
    if asked.models.is_empty() {
        asked.models.extend(Model::ALL);
    }
    Ok(asked)
}

fn main() -> Result<()> {
    let asked = arguments()?;
    let temporary = tempfile::tempdir()?;
    let dir = asked.keep.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(dir)?;
    // Where builds are filtered the others' share is not handed on: the same traces serve.
    let builds = catalog::builds();
    let n_picks = asked.n_samples.div_ceil(builds.len() * Model::ALL.len());
    let is_asked =
        |name: &str| asked.only.is_empty() || asked.only.iter().any(|it| name.contains(it));
    let builds = builds.into_iter().filter(|it| it.can_run() && is_asked(&it.name())).collect();
    judge(&asked, dir, builds, n_picks)
}

fn judge(
    asked: &Arguments,
    dir: &Path,
    builds: Vec<truth::build::Build>,
    n_picks: usize,
) -> Result<()> {
    let began = Instant::now();
    let (models, has_misses) = (asked.models.clone(), asked.n_misses != 0);
    let outcomes = run::run(&Plan { dir, builds, models, n_picks, has_misses })?;
    if outcomes.len() <= N_BUILDS_LISTED {
        listing::print_table("build", &outcomes, |it| it.build.name());
    }
    listing::print_table("program", &outcomes, |it| it.build.source.name.to_owned());
    listing::print_table("compiler", &outcomes, |it| it.build.level());
    listing::print_table("language", &outcomes, |it| {
        match it.build.source.language {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
        }
        .to_owned()
    });
    listing::print_table("all", &outcomes, |_| "all".to_owned());
    let n_samples: u64 =
        outcomes.iter().flat_map(|it| &it.tallies).map(|(_, tally)| tally.samples).sum();
    let n_steps: u64 = outcomes.iter().map(|it| it.n_steps).sum();
    println!(
        "\n{n_samples} samples of {n_steps} steps in {} builds, in {:.0} s",
        outcomes.len(),
        began.elapsed().as_secs_f64()
    );
    if has_misses {
        listing::print_misses(outcomes, asked.n_misses);
    }
    Ok(())
}
