//! The machine-readable formats as text: a change of a byte here is a change for whoever reads them.

use dataspace_proto::accounting::{Accounting, Lost};
use dataspace_proto::event::{EventClass, SkidModel};
use dataspace_proto::event_count::EventCount;
use dataspace_proto::memory::{Access, Level, Region};
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::{AddressSource, Evidence, SampleLine, Scope};
use dataspace_proto::snapshot::{
    Cost, EventLine, Metrics, ObjectKind, ObjectLine, SCHEMA, Snapshot, Target, Undescribed,
};
use dataspace_proto::window::{Window, WindowLengths, Windows};
use std::sync::Arc;

fn scope() -> Scope {
    Scope { object: "/bin/t".into(), unit: Some("t.c".into()), function: Some("walk".into()) }
}

#[test]
fn a_sample_line_is_as_the_design_fixes_it() {
    let line = SampleLine {
        time_ns: 5,
        pid: 1,
        tid: 2,
        cpu: None,
        event: "cpu-clock".into(),
        period: 3,
        ip: 0x401003,
        trigger: Some(0x401000),
        module: Some("/bin/t".into()),
        file_address: Some(0x1000),
        symbol: Some("walk".into()),
        symbol_offset: Some(16),
        file: Some("/src/t.c".into()),
        line: Some(7),
        addr: Some(0x7f00),
        addr_source: Some(AddressSource::Computed),
        access: Some(Access::LoadStore),
        size: Some(8),
        old: Some("4".into()),
        new: Some("5".into()),
        object: Some("{structure:node}.{long_int key}".into()),
        name: Some("node.key".into()),
        scope: Some(scope()),
        type_name: Some("node".into()),
        offset: Some(8),
        member: Some("key".into()),
        candidates: Some([Arc::from("as.value"), Arc::from("as.link")].into()),
        variable: None,
        evidence: Some(Evidence::Type),
        reason: Some(Reason::RegisterLoss),
        not_memory: false,
        latency: None,
        level: Some(Level::Lfb),
        missed_level: None,
        snoop: Some("hitm".into()),
        tlb: Some("L2 miss".into()),
        locked: Some(false),
        remote: Some(true),
        hops: Some(1),
        blocked: None,
        region: Some(Region::Memory3),
        instruction_latency: Some(7),
        retire_latency: None,
        page_size: Some(4096),
        code_page_size: None,
        phys_addr: Some(0x1000),
        cgroup_id: Some(77),
        cgroup: Some("/a".into()),
        votes: None,
        calls_out: None,
        frequency: false,
        comm: Some("t".into()),
    };
    let json = serde_json::to_string(&line).unwrap();
    let expected = concat!(
        r#"{"time_ns":5,"pid":1,"tid":2,"cpu":null,"event":"cpu-clock","period":3,"#,
        r#""ip":"0x401003","trigger":"0x401000","module":"/bin/t","file_address":"0x1000","#,
        r#""symbol":"walk","symbol_offset":16,"file":"/src/t.c","line":7,"#,
        r#""addr":"0x7f00","addr_source":"computed","#,
        r#""access":"load_store","size":8,"old":"4","new":"5","#,
        r#""object":"{structure:node}.{long_int key}","#,
        r#""name":"node.key","#,
        r#""scope":{"object":"/bin/t","unit":"t.c","function":"walk"},"type":"node","#,
        r#""offset":8,"member":"key","candidates":["as.value","as.link"],"variable":null,"#,
        r#""evidence":"type","#,
        r#""reason":"register_loss","not_memory":false,"latency":null,"level":"LFB","#,
        r#""missed_level":null,"snoop":"hitm","tlb":"L2 miss","locked":false,"remote":true,"#,
        r#""hops":1,"blocked":null,"region":"memory3","instruction_latency":7,"#,
        r#""retire_latency":null,"page_size":4096,"code_page_size":null,"phys_addr":"0x1000","#,
        r#""cgroup_id":77,"cgroup":"/a","votes":null,"#,
        r#""calls_out":null,"frequency":false,"comm":"t"}"#
    );
    assert_eq!(json, expected);
    let back: SampleLine = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), json);
}

#[test]
fn a_snapshot_is_as_the_design_fixes_it() {
    let metrics = Metrics {
        samples: 1,
        loads: 1,
        events: [("cpu-clock".to_owned(), 3)].into(),
        ..Metrics::default()
    };
    let windows = Windows::new(WindowLengths::default(), |window| match window {
        Window::All => metrics.clone(),
        Window::Last(_) => Metrics::default(),
    });
    let snapshot = Snapshot {
        schema: SCHEMA,
        target: Target { description: "pid 1".into(), pids: vec![1], running: true },
        events: vec![EventLine {
            name: "cpu-clock".into(),
            kind: EventClass::Clock,
            skid: SkidModel::AfterOne,
            period: Some(3),
            frequency_hz: None,
        }],
        elapsed_ns: 9,
        truncated: false,
        accounting: Accounting {
            kernel: 4,
            attributed: 1,
            unknown: [(Reason::Unresolvable, 1)].into(),
            not_memory: 1,
            lost: Lost { ring_full: 1, ..Lost::default() },
            ..Accounting::default()
        },
        cost: Cost::default(),
        governance: None,
        counts: vec![EventCount {
            event: "minor-faults".into(),
            selector: "minor-faults:u".into(),
            count: Some(8),
            counted: 4,
            enabled_ns: 2,
            running_ns: 1,
            includes_kernel: false,
            lacks: None,
        }],
        undescribed: vec![Undescribed {
            module: "/bin/t".into(),
            build_id: Some("ab01".into()),
            is_missing: false,
            is_elsewhere: true,
            samples: 1,
        }],
        warnings: Vec::new(),
        objects: vec![ObjectLine {
            id: 7,
            parent_id: Some(3),
            object: "{structure:cell}.{long_int key}".into(),
            name: "cell.key".into(),
            part: Some(".key".into()),
            is_elided: false,
            kind: ObjectKind::Member,
            offset: Some(0),
            size: Some(8),
            candidates: vec!["as.value".into()],
            scope: vec![scope()],
            metrics: windows,
        }],
    };
    assert_eq!(snapshot.accounting.imbalance(), 0);
    let json = serde_json::to_string(&snapshot).unwrap();
    let empty = concat!(
        r#"{"samples":0,"loads":0,"stores":0,"latency":null,"tlb_misses":null,"locked":null,"#,
        r#""hitm":null,"remote":null,"events":{}}"#
    );
    let expected = [
        r#"{"schema":2,"target":{"description":"pid 1","pids":[1],"running":true},"#,
        r#""events":[{"name":"cpu-clock","kind":"clock","skid":"after-one","period":3}],"elapsed_ns":9,"#,
        r#""truncated":false,"accounting":{"kernel":4,"attributed":1,"#,
        r#""unknown":{"unresolvable":1},"not_memory":1,"#,
        r#""lost":{"ring_full":1,"channel_full":0,"undecodable":0},"conflicts":0,"voted":0,"by_frequency":0,"#,
        r#""throttled_ns":0,"invisible_ns":0},"#,
        r#""cost":{"own_cpu_ns":0,"own_rss_bytes":0,"target_ns":0},"#,
        r#""counts":[{"event":"minor-faults","selector":"minor-faults:u","count":8,"counted":4,"#,
        r#""enabled_ns":2,"running_ns":1,"includes_kernel":false}],"#,
        r#""undescribed":[{"module":"/bin/t","build_id":"ab01","is_missing":false,"is_elsewhere":true,"samples":1}],"#,
        r#""warnings":[],"#,
        r#""objects":[{"id":7,"parent_id":3,"object":"{structure:cell}.{long_int key}","#,
        r#""name":"cell.key","part":".key","#,
        r#""kind":"member","offset":0,"size":8,"candidates":["as.value"],"#,
        r#""scope":[{"object":"/bin/t","unit":"t.c","function":"walk"}],"#,
        r#""metrics":{"all":{"samples":1,"loads":1,"stores":0,"latency":null,"tlb_misses":null,"#,
        r#""locked":null,"hitm":null,"remote":null,"events":{"cpu-clock":3}},"#,
    ]
    .concat()
        + &format!(r#""60s":{empty},"10s":{empty},"1s":{empty}}}}}]}}"#);
    assert_eq!(json, expected);
}

#[test]
fn skid_models_are_words() {
    for (model, word) in [
        (SkidModel::Exact, "exact"),
        (SkidModel::AfterOne, "after-one"),
        (SkidModel::Unknown(8), "unknown(8)"),
    ] {
        assert_eq!(serde_json::to_string(&model).unwrap(), format!("\"{word}\""));
        let back: SkidModel = serde_json::from_str(&format!("\"{word}\"")).unwrap();
        assert_eq!(back, model);
    }
}
