//! Recordings of real machines, and of this one, read to the end.

use dataspace_collector::recording::Recording;
use dataspace_proto::event::{Event, EventKind, SkidModel};
use dataspace_proto::record::{CpuMode, FileIdentity, Record, Sample};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// The recordings that are kept beside the project, if they are there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

fn read(recording: &mut Recording) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(record) = recording.next_record().expect("the recording can be read") {
        records.push(record);
    }
    let collected = recording.collected();
    assert_eq!(
        collected.kernel_samples,
        collected.delivered + collected.ring_full + collected.undecodable
    );
    assert_eq!(collected.delivered, samples(&records).len() as u64);
    assert!(matches!(records.last(), Some(Record::Collected(last)) if **last == collected));
    records
}

fn read_path(path: &Path) -> Vec<Record> {
    read(&mut Recording::open(path).expect("the recording opens"))
}

fn samples(records: &[Record]) -> Vec<&Sample> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
        .collect()
}

fn events(records: &[Record]) -> Vec<&Event> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Event(event) => Some(&**event),
            _ => None,
        })
        .collect()
}

fn warnings(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Warning(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

#[test]
fn dump() {
    let dir = shared("").unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .chain(std::fs::read_dir(dir.join("fuzz")).unwrap())
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            continue;
        }
        match Recording::open(&path) {
            Err(e) => println!("{}: ERR {e}", path.display()),
            Ok(mut r) => {
                let records = read(&mut r);
                println!("{}: {:?} samples={} records={} {:?} {:?} mmaps with build id {}", path.display(), r.collected(), samples(&records).len(), records.len(), events(&records), warnings(&records), records.iter().filter(|r| matches!(r, Record::Mmap(m) if matches!(m.identity, FileIdentity::BuildId(_)))).count());
            }
        }
    }
}
