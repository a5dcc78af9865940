//! Profiles read back by another implementation of protocol buffers, and held to the rules of pprof's
//! `CheckValid` and of `profile.proto`.

use super::*;
use crate::fixture;
use prost::Message as _;
use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::sync::Arc;

#[derive(Clone, PartialEq, prost::Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    name: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

const MAX_BYTES: usize = 1 << 20;

fn read(findings: &Findings, ended: Option<SystemTime>) -> ProfileMessage {
    let mut out = Vec::new();
    write_at(findings, ended, MAX_BYTES, &mut out).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*out).read_to_end(&mut bytes).unwrap();
    ProfileMessage::decode(&*bytes).unwrap()
}

impl ProfileMessage {
    fn text(&self, idx: i64) -> &str {
        &self.string_table[usize::try_from(idx).unwrap()]
    }

    fn sample_types(&self) -> Vec<(&str, &str)> {
        self.sample_type.iter().map(|of| (self.text(of.name), self.text(of.unit))).collect()
    }

    /// Samples by stack, outermost frame first.
    fn stacks(&self) -> BTreeMap<String, Vec<i64>> {
        let name = |id: &u64| {
            let location = self.location.iter().find(|location| location.id == *id).unwrap();
            let id = location.line[0].function_id;
            let function = self.function.iter().find(|function| function.id == id).unwrap();
            self.text(function.name)
        };
        let stack = |sample: &Sample| -> String {
            sample.location_id.iter().rev().map(name).collect::<Vec<_>>().join(";")
        };
        self.sample.iter().map(|sample| (stack(sample), sample.value.clone())).collect()
    }
}

fn ids(ids: impl Iterator<Item = u64>) -> HashSet<u64> {
    let mut seen = HashSet::new();
    for id in ids {
        assert!(id != 0 && seen.insert(id), "ids are not 0, and each is there once: {id}");
    }
    seen
}

#[test]
fn a_profile_keeps_the_rules_of_its_format() {
    let profile = read(&fixture::findings(), None);
    assert_eq!(profile.string_table[0], "");
    let mappings = ids(profile.mapping.iter().map(|mapping| mapping.id));
    let functions = ids(profile.function.iter().map(|function| function.id));
    let locations = ids(profile.location.iter().map(|location| location.id));
    for mapping in &profile.mapping {
        assert!(mapping.has_functions && !profile.text(mapping.filename).is_empty());
    }
    for function in &profile.function {
        assert!(!profile.text(function.name).is_empty());
        assert_eq!(profile.text(function.system_name), "");
        profile.text(function.filename);
    }
    for location in &profile.location {
        assert!(location.mapping_id == 0 || mappings.contains(&location.mapping_id));
        assert_eq!((location.line.len(), location.address), (1, 0), "no address is told");
        assert!(functions.contains(&location.line[0].function_id));
    }
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(!sample.location_id.is_empty());
        assert!(sample.location_id.iter().all(|id| locations.contains(id)));
        assert!(sample.value.iter().all(|value| *value >= 0));
    }
    assert_eq!(
        profile.sample_types(),
        [
            ("samples", "count"),
            ("loads", "count"),
            ("stores", "count"),
            ("latency", "cycles"),
            ("cpu-clock", "nanoseconds"),
            ("page-faults", "count"),
        ]
    );
    assert_eq!(profile.text(profile.mapping[0].filename), "/usr/bin/order-book");
    let period_type = profile.period_type.as_ref().unwrap();
    assert_eq!(profile.text(period_type.name), "cpu-clock");
    assert_eq!(profile.text(profile.default_sample_type), "samples");
    assert!(profile.text(profile.comment[0]).contains("order-book"));
}

#[test]
fn leaves_add_up_to_the_total_of_the_snapshot() {
    let findings = fixture::findings();
    let all = &findings.snapshot.objects[0].metrics.all;
    let stacks = read(&findings, None).stacks();
    let sum = |idx: usize| stacks.values().map(|values| values[idx]).sum::<i64>().unsigned_abs();
    assert_eq!((sum(0), sum(1)), (all.samples, all.loads));
    assert_eq!((sum(4), sum(5)), (all.events["cpu-clock"], 0));
    assert!(stacks.keys().all(|stack| stack.starts_with("<Total>")));
    let price = "<Total>;match_orders;{structure:order};{structure:order}.{long_int price}";
    assert_eq!(stacks[price][..3], [1_100, 600, 500]);
}

#[test]
fn long_names_are_left_out_and_their_samples_are_not() {
    let findings = fixture::findings_with(fixture::with_long_names());
    let profile = read(&findings, None);
    let n_bytes = profile.encoded_len();
    assert!((MAX_BYTES / 2..MAX_BYTES + 4096).contains(&n_bytes), "{n_bytes}");
    let stacks = profile.stacks();
    let sum: i64 = stacks.values().map(|values| values[0]).sum();
    assert_eq!(sum.unsigned_abs(), findings.snapshot.objects[0].metrics.all.samples);
    assert!(stacks["<Total>;<Left out>"][0] > 0);
}

#[test]
fn time_is_that_of_the_beginning() {
    let mut findings = fixture::findings();
    let ended = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let profile = read(&findings, Some(ended));
    assert_eq!(profile.duration_nanos.unsigned_abs(), findings.snapshot.elapsed_ns);
    assert_eq!(profile.time_nanos + profile.duration_nanos, 1_000_000_000_000_000);
    assert_eq!(read(&findings, None).time_nanos, 0, "what is not known is not there");
    Arc::make_mut(&mut findings.snapshot).events.remove(0);
    assert_eq!(read(&findings, None).period, 1);
    let empty = read(&Arc::new(fixture::empty()).into(), None);
    assert!(empty.sample.is_empty() && empty.sample_type.len() == 4);
}
