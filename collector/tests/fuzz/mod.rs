//! Recordings and ring records, damaged at random: they are read to their end, and every sample is
//! accounted for.

mod random;
mod record;

use crate::allocation;
use dataspace_collector::live::thread_cpu_ns;
use dataspace_collector::perf_data::read::{Recording, RecordingError};
use dataspace_proto::record::Record;
use random::{Random, damage, write};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Recordings are cut to so many bytes: tables in front and records enough, and cases by the thousand.
const MAX_CORPUS_BYTES: usize = 128 << 10;

/// What cases took so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) n_recordings: u64,
    /// Recordings that were refused with an error.
    pub(crate) n_refused: u64,
    pub(crate) n_samples: u64,
    pub(crate) n_other: u64,
    /// Single records given to the decoders.
    pub(crate) n_records: u64,
    /// Of these, samples that were decoded.
    pub(crate) n_decoded: u64,
    /// The longest time for a megabyte in seconds, and the seed; smaller ones count as one.
    pub(crate) slowest: (f64, u64),
    pub(crate) most_bytes: usize,
}

impl Cost {
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_recordings += other.n_recordings;
        self.n_refused += other.n_refused;
        self.n_samples += other.n_samples;
        self.n_other += other.n_other;
        self.n_records += other.n_records;
        self.n_decoded += other.n_decoded;
        if other.slowest.0 > self.slowest.0 {
            self.slowest = other.slowest;
        }
        self.most_bytes = self.most_bytes.max(other.most_bytes);
    }
}

/// Where recordings of real machines are kept beside the project; `DATASPACE_RECORDINGS` says
/// otherwise.
pub(crate) fn corpus_beside() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings");
    std::env::var_os("DATASPACE_RECORDINGS").map_or(beside, PathBuf::from)
}

/// What is damaged.
pub(crate) struct Cases {
    corpus: Vec<Vec<u8>>,
}

impl Cases {
    /// The recordings in `dir` and in the directories in it, and one made by hand.
    pub(crate) fn new(dir: &Path) -> Self {
        let mut corpus = vec![record::recording_by_hand()];
        let mut dirs = vec![dir.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            let Ok(entries) = std::fs::read_dir(&dir) else {
                println!("skipped: {} is not there: fewer recordings are damaged", dir.display());
                continue;
            };
            let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                if path.is_dir() {
                    dirs.push(path);
                } else if let Ok(mut bytes) = std::fs::read(&path) {
                    bytes.truncate(MAX_CORPUS_BYTES);
                    corpus.push(bytes);
                }
            }
        }
        Self { corpus }
    }

    pub(crate) fn len(&self) -> usize {
        self.corpus.len()
    }

    /// One recording and some hundred records, damaged as `seed` says.
    pub(crate) fn run(&self, seed: u64) -> Cost {
        let mut random = Random::new(seed);
        let bytes = self.recording(&mut random);
        let n_megabytes = (bytes.len() as f64 / 1e6).max(1.);
        let is_stream = random.one_in(4);
        // Whatever else the machine does is no part of it.
        let began_ns = thread_cpu_ns();
        let (mut cost, n_bytes) = allocation::measured(|| read(bytes, is_stream));
        let seconds = (thread_cpu_ns() - began_ns) as f64 / 1e9;
        cost.slowest = (seconds / n_megabytes, seed);
        cost.most_bytes = n_bytes;
        record::decode_some(&self.corpus, &mut random, &mut cost);
        cost
    }

    fn recording(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.corpus[random.below(self.corpus.len())].clone();
        match random.below(4) {
            0 => damage(&mut bytes, random),
            1 => damage_headers(&mut bytes, random),
            2 => {
                damage_headers(&mut bytes, random);
                damage(&mut bytes, random);
            }
            // The front of one and the records of another.
            _ => {
                let other = &self.corpus[random.below(self.corpus.len())];
                let at = random.below(bytes.len()) & !7;
                bytes.truncate(at);
                bytes.extend(other.get(at..).unwrap_or_default());
                damage(&mut bytes, random);
            }
        }
        bytes
    }
}

/// Changes the headers of records, which a walk over them finds.
fn damage_headers(bytes: &mut [u8], random: &mut Random) {
    let is_pipe = bytes.get(8).is_some_and(|size| *size == 16);
    let data = bytes.get(40..48).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
    let mut at = if is_pipe { 16 } else { data.unwrap_or(0) as usize };
    let one_in = 1 << random.below(8);
    while let Some(header) = bytes.get(at..at.saturating_add(8)) {
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        if size < 8 {
            return;
        }
        if random.one_in(one_in) {
            match random.below(4) {
                0 => write(bytes, at, &(random.below(90) as u32).to_ne_bytes()),
                1 => write(bytes, at + 4, &(random.next() as u16).to_ne_bytes()),
                2 => write(bytes, at + 6, &((random.number() & 0xffff) as u16).to_ne_bytes()),
                _ => write(bytes, at + 8 * (1 + random.below(8)), &random.number().to_ne_bytes()),
            }
        }
        at += size;
    }
}

/// Reads a recording to its end, and holds it to what it says.
fn read(bytes: Vec<u8>, is_stream: bool) -> Cost {
    let mut cost = Cost { n_recordings: 1, ..Cost::default() };
    let bytes = Box::new(Cursor::new(bytes));
    let opened: Result<Recording, RecordingError> = if is_stream {
        Recording::from_reader(bytes, "damaged".into())
    } else {
        Recording::from_seekable(bytes, "damaged".into())
    };
    let Ok(mut recording) = opened else {
        cost.n_refused = 1;
        return cost;
    };
    let mut last = None;
    while let Some(record) = recording.next_record().expect("bytes in memory can be read") {
        match &record {
            Record::Sample(_) => cost.n_samples += 1,
            _ => cost.n_other += 1,
        }
        if let Record::Collected(collected) = record {
            last = Some(*collected);
        }
    }
    let counts = recording.collected();
    assert_eq!(counts.kernel_samples, counts.delivered + counts.ring_full + counts.undecodable);
    assert_eq!(counts.delivered, cost.n_samples);
    assert_eq!(last, Some(counts));
    cost
}
