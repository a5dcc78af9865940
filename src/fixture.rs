//! A hand-made snapshot for the tests of the views, in which everything adds up.

pub(crate) mod sampled;

use crate::session::Source;
use crate::session::findings::{Findings, Queues};
use crate::session::question::Question;
use dataspace_analyzer::session::report::{FunctionLine, LayoutMember, TypeLayout};
use dataspace_analyzer::types::type_expression::TypeExpression;
use dataspace_proto::accounting::{Accounting, Lost};
use dataspace_proto::event::{EventClass, SkidModel};
use dataspace_proto::query::{KeyValue, Query, QueryAnswer, QueryMetrics, QueryRow};
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::Scope;
use dataspace_proto::snapshot::{
    Cost, EventLine, Metrics, ObjectKind, ObjectLine, SCHEMA, Snapshot, Target,
};
use dataspace_proto::window::{Window, WindowLengths, Windows};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Id, parent, kind, samples, loads, stores, latency, offset, size, evidence, descriptor.
type Spec = (
    u32,
    u32,
    ObjectKind,
    [u64; 4],
    Option<(u64, u64)>,
    &'static [(&'static str, u64)],
    &'static str,
);

const OBJECTS: &[Spec] = &[
    (1, 0, ObjectKind::Total, [12_000, 9_300, 1_700, 0], None, BOTH_MOSTLY, "<Total>"),
    (
        2,
        1,
        ObjectKind::Aggregate,
        [7_100, 5_600, 1_500, 0],
        Some((0, 64)),
        BOTH_MOSTLY,
        "{structure:order}",
    ),
    (
        3,
        2,
        ObjectKind::Member,
        [4_000, 4_000, 0, 880_000],
        Some((0, 8)),
        BOTH_MOSTLY,
        "{structure:order}.{pointer+structure:order next}",
    ),
    (
        4,
        2,
        ObjectKind::Aggregate,
        [2_000, 1_000, 1_000, 0],
        Some((16, 8)),
        TYPE_ONLY,
        "{structure:order}.{structure:pos_t pos}",
    ),
    (
        5,
        4,
        ObjectKind::Member,
        [2_000, 1_000, 1_000, 0],
        Some((20, 4)),
        TYPE_ONLY,
        "{structure:order}.{structure:pos_t pos}.{int y}",
    ),
    (
        6,
        2,
        ObjectKind::Member,
        [1_100, 600, 500, 0],
        Some((8, 8)),
        CONFLICTING,
        "{structure:order}.{long_int price}",
    ),
    (
        7,
        1,
        ObjectKind::Aggregate,
        [2_400, 2_300, 100, 0],
        Some((0, 48)),
        BOTH_MOSTLY,
        "{structure:particle}",
    ),
    (
        8,
        7,
        ObjectKind::Member,
        [2_400, 2_300, 100, 0],
        Some((8, 8)),
        BOTH_MOSTLY,
        "{structure:particle}.{double x}",
    ),
    (9, 1, ObjectKind::Artificial, [1_500, 1_400, 100, 0], None, ADDRESS_ONLY, "<Scalars>"),
    (
        10,
        9,
        ObjectKind::Scalar,
        [1_400, 1_300, 100, 0],
        Some((0, 32_768)),
        ADDRESS_ONLY,
        "{long_int counters[]}",
    ),
    (
        11,
        9,
        ObjectKind::Scalar,
        [100, 100, 0, 0],
        Some((0, 1)),
        ADDRESS_ONLY,
        "{char hostile\x1b[2Jname}",
    ),
    (12, 1, ObjectKind::Artificial, [1_000, 0, 0, 0], None, &[], "<Unknown>"),
    (13, 12, ObjectKind::Artificial, [700, 0, 0, 0], None, &[], "<Unknown>.(unresolvable)"),
    (14, 12, ObjectKind::Artificial, [300, 0, 0, 0], None, &[], "<Unknown>.(unascertainable)"),
];

const BOTH_MOSTLY: &[(&str, u64)] = &[("both", 93), ("type", 7)];
const TYPE_ONLY: &[(&str, u64)] = &[("type", 10)];
const ADDRESS_ONLY: &[(&str, u64)] = &[("address", 10)];
const CONFLICTING: &[(&str, u64)] = &[("both", 90), ("type", 6), ("conflict", 4)];

/// A running target of which nothing was lost.
pub(crate) fn running() -> Snapshot {
    let unknown = [(Reason::Unresolvable, 700), (Reason::Unascertainable, 300)];
    Snapshot {
        schema: SCHEMA,
        target: Target {
            description: "pid 4711 order-book".into(),
            pids: vec![4711],
            running: true,
        },
        events: vec![
            event("cpu-clock", SkidModel::AfterOne, None, Some(499)),
            event("page-faults", SkidModel::Exact, Some(1), None),
        ],
        elapsed_ns: 24_300_000_000,
        truncated: false,
        accounting: Accounting {
            kernel: 12_900,
            attributed: 11_000,
            unknown: unknown.into_iter().collect(),
            not_memory: 900,
            conflicts: 44,
            ..Accounting::default()
        },
        cost: Cost { own_cpu_ns: 97_200_000, own_rss_bytes: 35 << 20, target_ns: 170_000_000 },
        governance: None,
        counts: Vec::new(),
        undescribed: Vec::new(),
        warnings: Vec::new(),
        objects: OBJECTS.iter().map(object).collect(),
    }
}

/// All that a session of our own tells beside [`running`].
pub(crate) fn findings() -> Findings {
    findings_with(running())
}

/// The same beside `snapshot`, which was made of [`running`].
pub(crate) fn findings_with(snapshot: Snapshot) -> Findings {
    Findings {
        snapshot: Arc::new(snapshot),
        functions: functions(),
        layouts: Arc::new([(2, Arc::new(order()))].into()),
        history: None,
        queues: Queues { batches: 3, questions: 2 },
    }
}

/// The same, of a session that chose its windows.
pub(crate) fn with_windows(seconds: Vec<u64>) -> Snapshot {
    let lengths = WindowLengths::try_from(seconds).unwrap();
    let mut snapshot = running();
    for line in &mut snapshot.objects {
        let old = line.metrics.clone();
        line.metrics = Windows::new(lengths, |window| match window {
            Window::All => old.all.clone(),
            Window::Last(_) => old.get(Window::Last(10)).clone(),
        });
    }
    snapshot
}

/// The same, with losses, throttling and a warning.
pub(crate) fn lossy() -> Snapshot {
    let mut snapshot = running();
    snapshot.accounting.kernel += 300;
    snapshot.accounting.lost = Lost { ring_full: 250, channel_full: 0, undecodable: 50 };
    snapshot.accounting.throttled_ns = 1_250_000_000;
    snapshot.warnings.push("the ring buffer is small: memory for it was limited".into());
    snapshot
}

/// The same, after the target's end.
pub(crate) fn ended() -> Snapshot {
    let mut snapshot = running();
    snapshot.target.running = false;
    snapshot
}

/// A session that has not begun to sample.
pub(crate) fn empty() -> Snapshot {
    Snapshot {
        target: Target { description: "pid 4711".into(), pids: vec![4711], running: true },
        events: Vec::new(),
        elapsed_ns: 0,
        accounting: Accounting::default(),
        cost: Cost::default(),
        objects: Vec::new(),
        ..running()
    }
}

/// A session that gives `snapshot`, and ends after it was asked for it so many times.
pub(crate) struct FakeSource {
    snapshot: Snapshot,
    n_left: AtomicU64,
}

impl FakeSource {
    /// Ends after `n_snapshots`.
    pub(crate) fn new(snapshot: Snapshot, n_snapshots: u64) -> Self {
        Self { snapshot, n_left: AtomicU64::new(n_snapshots) }
    }
}

impl Source for FakeSource {
    fn findings(&self) -> Findings {
        let left = self.n_left.load(Ordering::Relaxed);
        self.n_left.store(left.saturating_sub(1), Ordering::Relaxed);
        let mut snapshot = self.snapshot.clone();
        snapshot.target.running = left > 0;
        Arc::new(snapshot).into()
    }

    fn ask(&self, question: &Question) -> anyhow::Result<QueryAnswer> {
        Ok(answer(&question.query))
    }

    fn ask_all(&self, questions: &[Question]) -> anyhow::Result<Vec<QueryAnswer>> {
        questions.iter().map(|question| self.ask(question)).collect()
    }

    fn is_finished(&self) -> bool {
        self.n_left.load(Ordering::Relaxed) == 0
    }

    fn stop(&self) {
        self.n_left.store(0, Ordering::Relaxed);
    }
}

/// An answer to `query` with some rows for each of the keys that views ask for.
fn answer(query: &Query) -> QueryAnswer {
    let text = |text: &str| KeyValue::Text(text.to_owned());
    let of_key = |key: &str| -> Vec<KeyValue> {
        match key {
            "object" => ["{structure:order}.{long_int price}", "{structure:particle}.{double x}"]
                .map(text)
                .to_vec(),
            "line" => ["/src/book.c:107", "/src/book.c:106"].map(text).to_vec(),
            "function" => ["match_orders", "main"].map(text).to_vec(),
            "comm" => ["matcher", "feeder"].map(text).to_vec(),
            "thread" => vec![KeyValue::Number(4711), KeyValue::Number(4712)],
            "second" => vec![KeyValue::Number(0), KeyValue::Number(2)],
            "instance" => ["0x7f3000001000", "0x7f3000001040"].map(text).to_vec(),
            _ => vec![KeyValue::None],
        }
    };
    let columns: Vec<Vec<KeyValue>> = query.by.iter().map(|key| of_key(key)).collect();
    let n_rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let sums = |samples: u64| QueryMetrics {
        samples,
        loads: samples,
        period: [("cpu-clock".to_owned(), samples * 2_004_008)].into(),
        ..QueryMetrics::default()
    };
    let rows: Vec<QueryRow> = (0..n_rows)
        .map(|row| QueryRow {
            key: columns.iter().map(|column| column[row.min(column.len() - 1)].clone()).collect(),
            metrics: sums(300 / (row as u64 + 1)),
        })
        .collect();
    let total = sums(rows.iter().map(|row| row.metrics.samples).sum());
    QueryAnswer { by: query.by.clone(), total, rows, ..QueryAnswer::default() }
}

fn event(name: &str, skid: SkidModel, period: Option<u64>, frequency_hz: Option<u64>) -> EventLine {
    EventLine { name: name.into(), kind: EventClass::Clock, skid, period, frequency_hz }
}

fn object(&(id, parent_id, kind, sums, place, evidence, name): &Spec) -> ObjectLine {
    let scope = Scope {
        object: "/usr/bin/order-book".into(),
        unit: Some("book.c".into()),
        function: Some("match_orders".into()),
    };
    let (source_name, part) = source_name(name);
    ObjectLine {
        id,
        parent_id: (parent_id > 0).then_some(parent_id),
        object: name.into(),
        name: source_name.into(),
        part: part.map(Into::into),
        is_elided: false,
        kind,
        offset: place.map(|(offset, _)| offset),
        size: place.map(|(_, size)| size),
        candidates: Vec::new(),
        scope: if kind == ObjectKind::Artificial { Vec::new() } else { vec![scope] },
        metrics: Windows::new(WindowLengths::default(), |window| match window {
            Window::All => metrics(sums, 1, evidence, 4),
            Window::Last(10) => metrics(sums, 2, evidence, 0),
            Window::Last(1) => metrics(sums, 25, evidence, 0),
            Window::Last(_) => metrics(sums, 1, evidence, 0),
        }),
    }
}

/// What the analyzer calls the objects above, `{structure:order}.{long_int price}` among them, and their last part.
fn source_name(descriptor: &str) -> (String, Option<String>) {
    if !descriptor.starts_with('{') {
        let part = descriptor.split_once('.').map(|(_, reason)| format!(".{reason}"));
        return (descriptor.to_owned(), part);
    }
    let steps: Vec<&str> =
        descriptor.split('.').map(|step| step.trim_matches(['{', '}'])).collect();
    let mut parts = steps.iter().map(|step| match step.rsplit_once(' ') {
        Some((_, name)) => name,
        None => step.trim_start_matches("structure:"),
    });
    let name = parts.by_ref().collect::<Vec<_>>().join(".");
    let part = (steps.len() > 1).then(|| name.rsplit_once('.').map(|(_, it)| format!(".{it}")));
    (name, part.flatten())
}

/// Of what `{structure:order}` consists, some is accessed and some is not.
fn order() -> TypeLayout {
    let member = |name: &str, kind: &str, offset, size, depth| LayoutMember {
        name: name.into(),
        type_name: kind.into(),
        expression: TypeExpression::Unknown.into(),
        offset,
        size,
        bits: None,
        elements: None,
        depth,
        is_arm: false,
        is_union: false,
    };
    TypeLayout {
        type_name: "structure:order".into(),
        size: 136,
        is_union: false,
        members: [
            member("next", "pointer+structure:order", 0, 8, 0),
            member("price", "long_int", 8, 8, 0),
            member("pos", "structure:pos_t", 16, 8, 0),
            member("x", "int", 16, 4, 1),
            member("y", "int", 20, 4, 1),
            member("name", "array[40]:char", 32, 40, 0),
            member("last", "long_int", 120, 8, 0),
        ]
        .into(),
        truncated: false,
        ends_early: false,
    }
}

/// Functions of some of the objects.
/// The same with a thousand objects more, whose names are as long as names may be.
pub(crate) fn with_long_names() -> Snapshot {
    let mut snapshot = running();
    let model = snapshot.objects[1].clone();
    for id in 1_000..2_000 {
        let mut line = model.clone();
        (line.id, line.parent_id) = (id, Some(1));
        line.object = format!("{id}{}", "x".repeat(4092)).into();
        line.metrics.all = Metrics { samples: 1, ..Metrics::default() };
        snapshot.objects.push(line);
        snapshot.objects[0].metrics.all.samples += 1;
    }
    snapshot
}

fn functions() -> Arc<[FunctionLine]> {
    let line = |object_id, samples, loads, stores, function: Option<&str>, object: &str| {
        let scope = Scope {
            object: object.into(),
            unit: function.map(|_| "book.c".into()),
            function: function.map(Into::into),
        };
        FunctionLine {
            object_id,
            scope: Some(Arc::new(scope)),
            samples,
            loads,
            stores,
            latency: 0,
            events: [samples * 2_004_008].into(),
        }
    };
    [
        line(5, 1_500, 800, 700, Some("match_orders"), "/usr/bin/order-book"),
        line(5, 400, 100, 300, None, "/usr/lib/libbook.so"),
        line(6, 1_100, 600, 500, Some("match_orders"), "/usr/bin/order-book"),
    ]
    .into()
}

fn metrics(
    [samples, loads, stores, latency]: [u64; 4],
    divisor: u64,
    evidence: &[(&str, u64)],
    threads: u64,
) -> Metrics {
    let levels = [("L1", samples / 2), ("RAM", samples / 4)];
    Metrics {
        samples: samples / divisor,
        loads: loads / divisor,
        stores: stores / divisor,
        latency: Some(latency / divisor),
        tlb_misses: Some(samples / divisor / 10),
        threads,
        levels: if latency == 0 { BTreeMap::new() } else { named(&levels, divisor) },
        evidence: named(evidence, 1),
        events: named(&[("cpu-clock", samples * 2_004_008)], divisor),
        ..Metrics::default()
    }
}

fn named(counts: &[(&str, u64)], divisor: u64) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), count / divisor)).collect()
}
