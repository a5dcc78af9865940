//! Data that is watched by its name, held to what a program says of its counters.

use crate::support::{PATIENCE, Running, compile, run, sheet};
use serde_json::Value;
use std::process::Output;

/// The program, and its first counter's address and thread.
fn started() -> (Running, u64, u64) {
    let program = compile("sharing", &["-O2", "-g", "-pthread", "-fno-toplevel-reorder"]);
    let (running, said) = Running::start(&program, &["members", "atomic"]);
    let line = said.iter().find(|line| line.ends_with("count_left")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let address = u64::from_str_radix(words[1].trim_start_matches("0x"), 16).unwrap();
    (running, address, words[2].parse().unwrap())
}

/// Whether live events are not to be had here.
fn is_not_had(output: &Output) -> bool {
    let is_not_had = matches!(output.status.code(), Some(3 | 4));
    if is_not_had {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
    }
    is_not_had
}

/// The last document of `args`, which is asked for longer and longer until it has rows.
fn told(args: &[&str]) -> Option<Value> {
    let mut seconds = 1;
    loop {
        let duration = seconds.to_string();
        let output = run(&[args, &["--json", "--once", "--duration", &duration]].concat());
        if is_not_had(&output) {
            return None;
        }
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        if answer["total"]["samples"].as_u64().is_some_and(|samples| samples > 20) {
            return Some(answer);
        }
        seconds *= 2;
        assert!(seconds < PATIENCE.as_secs(), "{answer}");
    }
}

#[test]
fn a_member_is_watched_by_its_name_and_the_thread_that_counts_in_it_is_told() {
    let (running, address, tid) = started();
    let pid = running.pid();
    let at_address = format!("{address:#x}/8");
    for object in ["g_stats.hits", &at_address, "g_stats.hits:w"] {
        let Some(answer) = told(&["watch", "-p", &pid, object]) else { return };
        let rows = answer["rows"].as_array().unwrap();
        for row in rows {
            let key = row["key"].as_array().unwrap();
            assert_eq!(key[0], tid, "{object}: {answer}");
            assert_eq!(key[2], "{structure:stats}.{long_int hits}", "{object}: {answer}");
            assert_eq!(key[3], "count_left");
            assert!(key[4].as_str().unwrap().contains("sharing.c:"), "{answer}");
            // `lock add`.
            assert_eq!(row["metrics"]["loads"], row["metrics"]["samples"]);
            assert_eq!(row["metrics"]["stores"], row["metrics"]["samples"]);
        }
    }
    // They share one line, so that the other thread is not told where it does not touch the member.
    let sampled = ["watch", "-p", &pid, "g_stats.hits", "--csv", "--duration", "2"];
    for row in sheet(&sampled).into_iter().flatten() {
        assert_eq!((&*row["thread"], &*row["function"]), (&*tid.to_string(), "count_left"));
        assert_eq!(row["loads"], row["samples"]);
    }
    // The same names for all that takes events.
    let args = [
        "top",
        "-p",
        &pid,
        "-e",
        "mem:counts[2]",
        "-e",
        "mem:g_stats.misses:w",
        "--by",
        "function",
    ];
    let Some(answer) = told(&args) else { return };
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["key"][0] == "count_right"), "{answer}");
}

#[test]
fn names_that_lead_nowhere_say_what_there_is() {
    let (running, ..) = started();
    let pid = running.pid();
    let check = |args: &[&str], text: &str| {
        let output = run(&[args, &["--once", "--duration", "0.1"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        if !is_not_had(&output) {
            assert_eq!(output.status.code(), Some(2), "{errors}");
            assert!(errors.contains(text), "{text}: {errors}");
        }
    };
    let watch = |object| ["watch", "-p", &pid, object];
    check(&watch("g_stats"), "g_stats.hits, g_stats.misses");
    check(&watch("g_stats.hit"), "stats has no member hit: it has hits, misses");
    check(&watch("counts[8]"), "no element 8");
    check(&watch("nothing"), "no variable nothing");
    check(&watch("a..b"), "no name of data");
    check(&["watch", "-p", &pid, "a", "b", "c", "d", "e"], "4 debug registers");
    check(&["top", "-a", "-e", "mem:g_stats.hits"], "one running process");
    let output = run(&["top", "-p", &pid, "-e", "mem:0x7230", "--once", "--duration", "0.1"]);
    if !is_not_had(&output) {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("nothing is mapped at 0x7230"), "{errors}");
    }
}

/// Time that the program sleeps between two rounds, at least.
const ROUND_NS: u64 = 3_000_000;

/// The newest accesses, oldest first, each as its old and its new value.
fn changes(answer: &Value) -> Vec<(Option<&str>, Option<&str>)> {
    let rows = answer["rows"].as_array().unwrap();
    let at = |key: &str| answer["by"].as_array().unwrap().iter().position(|by| by == key).unwrap();
    let (old, new) = (at("old"), at("new"));
    let changes = rows.iter().map(|row| (row["key"][old].as_str(), row["key"][new].as_str()));
    changes.rev().collect()
}

#[test]
fn values_before_and_after_are_told_as_the_program_counts() {
    let program = compile("turns", &["-O0", "-g"]);
    let (running, said) = Running::start(&program, &[]);
    let pid = running.pid();
    let items = said[0].trim_start_matches("items 0x");
    let items = u64::from_str_radix(items, 16).unwrap();
    let at = |object: &str| {
        let all = ["--newest", "1000", "--max-overhead", "off"];
        told(&[&["watch", "-p", &pid, object][..], &all].concat())
    };
    let told = |member: &str| at(&format!("g_turns.{member}"));
    let number = |text: &str| text.parse::<i64>().unwrap();
    let Some(answer) = told("below") else { return };
    let rows = answer["rows"].as_array().unwrap().iter().rev();
    let times_ns = rows.map(|row| row["key"][0].as_u64().unwrap());
    let (mut last, mut n_followed) = (None, 0);
    for (time_ns, change) in times_ns.zip(changes(&answer)) {
        let (old, new) = (change.0.map(number), change.1.map(number).unwrap());
        match (old, last) {
            (Some(old), _) => assert_eq!(old, new, "a load: {answer}"),
            // Samples may be lost; those of one round are closer to each other than two rounds are.
            (None, Some((known_ns, known))) if time_ns - known_ns < ROUND_NS => {
                assert_eq!(new, if known == 3 { -3 } else { known + 1 }, "the next: {answer}");
                n_followed += 1;
            }
            (None, _) => assert!((-3..=3).contains(&new), "{answer}"),
        }
        last = Some((time_ns, new));
    }
    assert!(n_followed > 0, "{answer}");
    // What has no sign, what points somewhere, and what is exchanged.
    let Some(answer) = told("high") else { return };
    let high = |new: Option<&str>| (200..=206).contains(&number(new.unwrap()));
    assert!(changes(&answer).iter().all(|(old, new)| old.is_none() && high(*new)), "{answer}");
    let Some(answer) = told("at") else { return };
    let places: Vec<String> = (0..7).map(|idx| format!("{:#x}", items + 2 * idx)).collect();
    let is_place = |new: &str| places.iter().any(|place| place == new);
    assert!(changes(&answer).iter().all(|(_, new)| new.is_some_and(is_place)), "{answer}");
    let Some(answer) = told("exchanged") else { return };
    for (old, new) in changes(&answer) {
        assert!((-3..=3).any(|below| old.map(number) == Some(below * 1000)), "{answer}");
        assert_eq!(new, None, "no register has it: {answer}");
    }
    // Two members are watched by one breakpoint: each value is of the one that is named.
    let both = said[1].replace("turns ", "") + "/8";
    let Some(answer) = at(&both) else { return };
    let object = answer["by"].as_array().unwrap().iter().position(|by| by == "object").unwrap();
    let mut n_of = [0, 0];
    for (row, (_, new)) in answer["rows"].as_array().unwrap().iter().rev().zip(changes(&answer)) {
        let range = match row["key"][object].as_str().unwrap() {
            "{structure:turns}.{int below}" => -3..=3,
            "{structure:turns}.{unsigned_char high}" => 200..=206,
            other => panic!("{other}: {answer}"),
        };
        n_of[usize::from(*range.start() > 0)] += 1;
        assert!(new.is_some_and(|new| range.contains(&number(new))), "{answer}");
    }
    assert!(n_of.iter().all(|n| *n > 0), "{n_of:?}: {answer}");
}
