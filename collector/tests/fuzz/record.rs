//! Single records, and rings of them, through the decoders; and a recording that is made by hand.

use super::Cost;
use super::random::{Random, damage, write};
use dataspace_collector::record::decode::{self, Endian, NATIVE, SampleLayout};
use dataspace_collector::record::ring::{HEADER_BYTES, Joint, RawRecord, RingReader, unread};
use dataspace_collector::record::side_band;
use dataspace_proto::event::Machine;

/// Records for each case.
const N_RECORDS: usize = 200;
/// One record, with its header.
const MAX_RECORD_BYTES: usize = 2048;
/// The kinds of the kernel, and some that it has not got.
const N_KINDS: usize = 30;

/// Damaged records of the corpus, alone and out of a ring that wraps around.
pub(super) fn decode_some(corpus: &[Vec<u8>], random: &mut Random, cost: &mut Cost) {
    let mut ring = Vec::new();
    for _ in 0..N_RECORDS {
        let record = one(corpus, random);
        let raw = RawRecord {
            kind: random.below(N_KINDS) as u32,
            misc: random.next() as u16,
            payload: &record[HEADER_BYTES..],
        };
        decode_one(&layout(random), &raw, cost);
        ring.extend(record);
    }
    if random.one_in(2) {
        damage(&mut ring, random);
    }
    ring.resize(ring.len().next_multiple_of(8).max(8), 0);
    let (tail, n_unread) = (random.next() & 0xffff_ffff, ring.len() as u64);
    let rotated: Vec<u8> = {
        let start = (tail % n_unread) as usize;
        let (front, back) = ring.split_at(ring.len() - start);
        [back, front].concat()
    };
    let Some((front, back)) = unread(&rotated, tail, tail + n_unread) else {
        panic!("as much is unread as there is");
    };
    let (mut joint, layout) = (Joint::default(), layout(random));
    let mut reader = RingReader::new(front, back, &mut joint);
    let mut n_records = 0;
    while let Ok(Some(raw)) = reader.next() {
        n_records += 1;
        decode_one(&layout, &raw, cost);
    }
    assert!(n_records <= ring.len() / HEADER_BYTES);
    assert_eq!(reader.n_left(), 0, "to its end, or to its damage");
}

/// A piece of the corpus with a header that fits it.
fn one(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let from = &corpus[random.below(corpus.len())];
    let n_bytes = (HEADER_BYTES + 8 * random.below(64)).min(MAX_RECORD_BYTES);
    let at = random.below(from.len()) & !7;
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend(from.iter().skip(at).take(n_bytes - HEADER_BYTES));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len()) & !7;
        write(&mut bytes, at, &random.number().to_ne_bytes());
    }
    let n_bytes = bytes.len() as u16;
    write(&mut bytes, 0, &(random.below(N_KINDS) as u32).to_ne_bytes());
    write(&mut bytes, 6, &n_bytes.to_ne_bytes());
    bytes
}

fn layout(random: &mut Random) -> SampleLayout {
    // Few fields most of the time: with all of them hardly a record is long enough.
    let fields = random.next() & random.next() & random.next() & 0x1ff_ffff;
    SampleLayout {
        sample_type: if random.one_in(8) { random.next() & 0x3ff_ffff } else { fields },
        read_format: random.next() & 0x1f,
        branch_sample_type: random.next() & 0xf_ffff,
        user_registers: random.next() & random.next() & random.next(),
        interrupt_registers: random.next() & random.next() & random.next(),
        is_precise: random.one_in(2),
        has_fetch: random.one_in(2),
        sample_id_all: !random.one_in(8),
        endian: if random.one_in(4) { Endian::Big } else { NATIVE },
        machine: if random.one_in(8) { Machine::Other } else { Machine::X86_64 },
    }
}

fn decode_one(layout: &SampleLayout, raw: &RawRecord<'_>, cost: &mut Cost) {
    cost.n_records += 1;
    cost.n_decoded += u64::from(decode::sample(layout, raw.misc, raw.payload).is_ok());
    let _ = side_band::decode(layout, raw);
    let _ = decode::sample_id_time_ns(layout, raw.payload);
}

/// A recording in pipe mode: an event, mappings, names, samples, every kind of record.
pub(super) fn recording_by_hand() -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(16u64.to_le_bytes());
    // perf_event_attr: software, 136 bytes, cpu-clock, period, IP|TID|TIME|ADDR|CPU|PERIOD|WEIGHT_STRUCT
    // |DATA_SRC|PHYS_ADDR, sample_id_all.
    let mut attr = [0u64; 17];
    attr[0] = 1 | 136 << 32;
    (attr[2], attr[3], attr[5]) = (1000, 0x0108_818f, 1 << 18);
    record(&mut bytes, 64, &attr);
    for time in 1..40u64 {
        let sample = [
            0x40_1000 + time,
            7 | 8 << 32,
            time,
            0x7f00,
            1,
            1000,
            42 | 7 << 32,
            0x68_100142,
            0x5000,
        ];
        record(&mut bytes, 9, &sample);
        for kind in 1..24 {
            // Words that are ids, addresses, lengths and texts to one kind or another; at the end
            // the ids: task, time, CPU.
            let words = [7 | 8 << 32, 0x40_0000, 0x1000, time, 0x6269_6c2f, 0, 7, 1, time, 0];
            record(&mut bytes, kind, &words[..if kind == 9 { 0 } else { 10 }]);
        }
        record(&mut bytes, 68, &[]);
    }
    bytes
}

fn record(to: &mut Vec<u8>, kind: u32, words: &[u64]) {
    to.extend(kind.to_le_bytes());
    to.extend(2u16.to_le_bytes());
    to.extend(((HEADER_BYTES + words.len() * 8) as u16).to_le_bytes());
    to.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}
