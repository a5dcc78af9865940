//! How steps back over instructions agree with a processor that executed them, by mnemonic.
//!
//! `cargo bench -p dataspace-analyzer --bench undo -- [--steps N] [--only TEXT]... [--random N]
//! [--seed N]`. `--steps` counts for each build of the programs that `truth` takes too, from the
//! first instruction of the dynamic loader on; `--random` counts instructions made of random bytes.
//! Wrong ones are listed, and so are the forms that lose a register most often.

#[path = "../tests/truth/mod.rs"]
#[allow(dead_code, reason = "the tests use the other half")]
mod truth;

use std::io::{Error, ErrorKind, Result};
use truth::sandbox::Sandbox;
use truth::undo::{Form, Judge};
use truth::{catalog, tracee, undo};

/// Forms that are listed because they lose registers.
const N_LISTED: usize = 60;

struct Arguments {
    n_steps: u64,
    n_random: u64,
    seed: u64,
    only: Vec<String>,
}

fn arguments() -> Result<Arguments> {
    let mut asked = Arguments { n_steps: 200_000, n_random: 2_000_000, seed: 1, only: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        // Cargo's own word for every bench.
        if word == "--bench" {
            continue;
        }
        let value = words.next().ok_or_else(|| Error::other(format!("{word} needs a value")))?;
        let number = || value.parse().map_err(|_| Error::other(format!("{word} needs a number")));
        match &*word {
            "--steps" => asked.n_steps = number()?,
            "--random" => asked.n_random = number()?,
            "--seed" => asked.seed = number()?,
            "--only" => asked.only.push(value),
            _ => return Err(Error::other(format!("{word} is not known"))),
        }
    }
    Ok(asked)
}

fn main() -> Result<()> {
    let asked = arguments()?;
    let dir = tempfile::tempdir()?;
    tracee::stay_on(0);
    let mut judge = Judge::new(asked.seed);
    judge.has_thread_base = false;
    if asked.n_random != 0 {
        Sandbox::with(dir.path(), asked.seed, |sandbox| {
            for _ in 0..asked.n_random {
                if let Some(executed) = sandbox.execute()? {
                    judge.alone(&executed.bytes, &executed.before, &executed.after);
                }
            }
            Ok(())
        })?;
        print("random instructions", &judge);
    }
    let mut judge = Judge::new(asked.seed);
    for build in catalog::builds().into_iter().filter(|build| build.can_run()) {
        let name = build.name();
        if !asked.only.is_empty() && !asked.only.iter().any(|it| name.contains(it)) {
            continue;
        }
        match build.compile(dir.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("left out: {name}: {error}");
            }
            program => {
                judge.leave();
                undo::walk(&program?.path, None, asked.n_steps, &mut judge)?;
            }
        }
    }
    print("steps of programs", &judge);
    Ok(())
}

fn print(what: &str, judge: &Judge) {
    let sum = |of: fn(&Form) -> u64| judge.forms.values().map(of).sum::<u64>();
    println!(
        "\n{what}: {}, {} lost a register, {} wrong\n",
        sum(|form| form.n_steps),
        sum(|form| form.n_lost),
        sum(|form| form.n_wrong)
    );
    for (mnemonic, form) in judge.by_mnemonic() {
        println!("{mnemonic:16} {:>9} {:>9} {:>6}", form.n_steps, form.n_lost, form.n_wrong);
    }
    println!("\nlost most often:\n");
    let mut forms: Vec<_> = judge.forms.iter().collect();
    forms.sort_by_key(|(_, form)| std::cmp::Reverse(form.n_lost));
    for (code, form) in forms.into_iter().take(N_LISTED) {
        println!("{:32} {:>9} of {:>9}", format!("{code:?}"), form.n_lost, form.n_steps);
    }
    judge.wrong.iter().for_each(|wrong| println!("wrong: {wrong}"));
}
