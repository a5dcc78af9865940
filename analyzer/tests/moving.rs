//! Values that instructions move, held to the memory of programs that are executed step by step.

use crate::support::program::{Program, builds};
use crate::truth::trace::CodeBytes;
use crate::truth::tracee::{self, Outcome, Tracee};
use crate::truth::undo::OneInstruction;
use dataspace_analyzer::x86_64::access::MemoryAccess;
use dataspace_analyzer::x86_64::backtrack::{self, Skid};
use dataspace_analyzer::x86_64::moved_value::{MovedValue, ValueChange};
use dataspace_analyzer::x86_64::state;
use dataspace_proto::address::Svma;
use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt as _;

/// Steps of each program at most.
const N_STEPS: u64 = 150_000;

/// The written-out operand of the instruction at `ip`, where it moves a value.
fn operand(ip: u64, bytes: &CodeBytes) -> Option<(MemoryAccess, MovedValue)> {
    let mut code = OneInstruction(ip, bytes);
    let (_, triggers) = backtrack::trail(&mut code, Svma(ip), Skid::Exact).ok()?;
    let (_, accesses) = triggers.into_iter().next()?;
    let memory = *accesses.first()?;
    Some((memory, memory.moved?))
}

/// So many bytes of the program's memory as a number.
fn value(tracee: &Tracee, at: u64, n_bytes: u32) -> Result<u64> {
    let mut bytes = [0; 8];
    tracee.memory.read_exact_at(&mut bytes[..n_bytes as usize], at)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Walks a program; counts by form of move, and what was wrong.
fn walk(tracee: &Tracee, counts: &mut BTreeMap<&'static str, u64>) -> Result<Vec<String>> {
    let mut known = HashMap::new();
    let mut wrong = Vec::new();
    let mut signal = None;
    let mut before = tracee.state()?;
    for _ in 0..N_STEPS {
        let moved = *known.entry(before.ip()).or_insert_with(|| {
            let mut bytes = CodeBytes::default();
            tracee.memory.read_at(&mut bytes, before.ip()).ok()?;
            operand(before.ip(), &bytes)
        });
        let place = moved.and_then(|(memory, _)| {
            let state = state::State::sampled(&before.registers(), 0, Some(before.fs_base()));
            state.effective_address(&memory.address).ok()
        });
        let was = match (moved, place) {
            (Some((memory, _)), Some(place)) => value(tracee, place.0, memory.size).ok(),
            _ => None,
        };
        let outcome = tracee.step(signal.take())?;
        match outcome {
            Outcome::Ended => return Ok(wrong),
            Outcome::Signalled(other) => signal = Some(other),
            Outcome::Stepped => {}
        }
        let after = tracee.state()?;
        if let (Some((memory, moved)), Some(place), Some(was), Outcome::Stepped) =
            (moved, place, was, outcome)
        {
            let is = value(tracee, place.0, memory.size)?;
            let told = moved.change(&after.registers(), memory.size);
            let ValueChange { before: old, after: new } = told;
            let is_false = old.is_some_and(|old| old != was) || new.is_some_and(|new| new != is);
            if is_false || told == ValueChange::UNKNOWN {
                let at = before.ip();
                wrong.push(format!("{at:#x} {memory:?}: {was:#x} to {is:#x}, told {told:#x?}"));
            }
            let form = match moved {
                MovedValue::Loaded(_) => "loaded",
                MovedValue::Stored(_) => "stored",
                MovedValue::StoredConstant(_) => "constant",
                MovedValue::Exchanged(_) => "exchanged",
                MovedValue::Compared(_) if new == old => "refused",
                MovedValue::Compared(_) => "compared",
            };
            *counts.entry(form).or_default() += 1;
        }
        before = after;
    }
    tracee.kill()?;
    tracee.step(None)?;
    Ok(wrong)
}

#[test]
fn moved_values_are_those_that_memory_had_and_has() {
    tracee::stay_on(0);
    for (compiler, flags) in builds(["-O2", "-O0"]) {
        let program = Program::compile(compiler, "moved.c", flags);
        let mut counts = BTreeMap::new();
        let (main, _) = program.function_range("main");
        let outcome = tracee::with(&program.path, Some(main), |tracee| walk(&tracee, &mut counts));
        let wrong = match outcome {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                eprintln!("skipped: programs may not be traced here: {error}");
                return;
            }
            outcome => outcome.unwrap(),
        };
        assert!(
            wrong.is_empty(),
            "{} of {counts:?}: {:#?}",
            wrong.len(),
            &wrong[..5.min(wrong.len())]
        );
        for form in ["loaded", "stored", "constant", "exchanged", "refused", "compared"] {
            assert!(counts.get(form).is_some_and(|count| *count >= 100), "{form}: {counts:?}");
        }
    }
}
