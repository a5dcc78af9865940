//! Calibration on this machine: where the samples of loops with a known slow access fall.

use crate::support::{PATIENCE, run};
use serde_json::Value;

/// What calibration prints as JSON; `None`, with the reason printed, where it cannot be had.
fn calibrate(event: &str, seconds: u64) -> Option<Value> {
    let duration = seconds.to_string();
    let output = run(&["doctor", "--calibrate", "-e", event, "--duration", &duration, "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {errors}");
        return None;
    }
    assert!(output.status.success(), "{event}: {:?}\n{errors}", output.status);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn sum<'a>(values: impl IntoIterator<Item = &'a Value>) -> u64 {
    values.into_iter().map(number).sum()
}

fn is_balanced(document: &Value) -> bool {
    let accounting = &document["accounting"];
    let places = ["in_loops", "elsewhere", "in_kernel"].map(|name| &accounting[name]);
    let lost = sum(accounting["lost"].as_object().unwrap().values());
    number(&accounting["kernel"]) == sum(places) + lost
}

#[test]
fn clocks_report_the_instruction_behind_a_slow_load() {
    for event in ["cpu-clock", "task-clock"] {
        // On a busy machine a loop may get no CPU for seconds.
        let mut seconds = 2;
        let document = loop {
            let Some(document) = calibrate(event, seconds) else { return };
            assert!(is_balanced(&document), "{}", document["accounting"]);
            let loops = document["loops"].as_array().unwrap();
            let is_sampled = |one: &Value| number(&one["samples"]) > number(&one["restarted"]) + 5;
            if loops.iter().all(is_sampled) || seconds > PATIENCE.as_secs() {
                break document;
            }
            seconds *= 4;
        };
        assert_eq!((&document["schema"], &document["event"]["name"]), (&1.into(), &event.into()));
        assert_eq!(document["model"]["skid"], "after-one");
        assert!(document["elapsed_ns"].is_u64() && document["warnings"].is_array());
        let loops = document["loops"].as_array().unwrap();
        assert_eq!(loops.len(), 9);
        assert_eq!(
            sum(loops.iter().map(|one| &one["samples"])),
            document["accounting"]["in_loops"]
        );
        for access in ["dependent_load", "independent_load", "store"] {
            let of_access: Vec<_> = loops.iter().filter(|one| one["access"] == access).collect();
            assert_eq!(of_access.len(), 3);
            let at = |distance: usize| sum(of_access.iter().map(|one| &one["distances"][distance]));
            let behind = at(1);
            // What is waited for is found behind it, more than at any other place. Stores wait later.
            let elsewhere = [0, 2, 3].map(at);
            let is_load = access != "store";
            assert!(
                !is_load || elsewhere.iter().all(|&other| other < behind),
                "{event}: {behind} behind a {access}, elsewhere {elsewhere:?}"
            );
        }
        for one in loops {
            let counted = sum(one["distances"].as_array().unwrap()) + number(&one["restarted"]);
            assert_eq!(one["samples"], counted, "{one}");
        }
    }
}

#[test]
fn an_event_without_such_a_skid_is_refused_with_one_that_has() {
    for event in ["page-faults", "mem:0x1000/8:rw"] {
        let output = run(&["doctor", "--calibrate", "-e", event]);
        let errors = String::from_utf8(output.stderr).unwrap();
        if matches!(output.status.code(), Some(3 | 4)) {
            eprintln!("not run: {errors}");
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("has no skid that the loops could measure"), "{errors}");
        assert!(errors.contains("dataspace doctor --calibrate -e task-clock"), "{errors}");
        assert!(output.stdout.is_empty());
    }
}
