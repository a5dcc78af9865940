//! The front of a recording: its header, the ids of each event, the events' attributes.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`, "Header" and "Attributes".

use super::feature::Feature;
use crate::perf_data::format::attr::{truncated, used_bytes};
use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::feature::EVENT_DESC;
use crate::perf_data::format::header::{
    FILE_HEADER_BYTES, FileHeader, MAGIC_2, PIPE_HEADER_BYTES, SECTION_BYTES, Section, feature_bits,
};
use crate::perf_data::format::user_record::{
    EVENT_UPDATE, HEADER_ATTR, HEADER_FEATURE, UPDATE_NAME,
};
use perf_event_open_sys::bindings::perf_event_attr;

const ID_BYTES: u64 = 8;
/// The first and the last.
const SAMPLE_TIME_BYTES: u64 = 16;
/// One event of a recording.
#[derive(Clone, Debug)]
pub(crate) struct EventEntry {
    /// As it was asked for.
    pub(crate) name: String,
    /// As its records are laid out in the recording.
    pub(crate) attr: perf_event_attr,
    /// Id in its records: of the kernel's ids, which are one for each thread and CPU, the
    /// first.
    pub(crate) id: u64,
}

/// All events.
pub(super) struct Front {
    events: Vec<EventEntry>,
    /// Of the longest attributes: readers expect one length for all.
    attr_bytes: usize,
}

impl Front {
    pub(super) fn new(events: Vec<EventEntry>) -> Self {
        let attr_bytes = events.iter().map(|event| used_bytes(&event.attr)).max();
        Self { attr_bytes: attr_bytes.unwrap_or(0), events }
    }

    pub(super) fn events(&self) -> &[EventEntry] {
        &self.events
    }

    /// The id of the last event, which carries all that is no sample.
    pub(super) fn side_band_id(&self) -> u64 {
        self.events.last().map_or(0, |event| event.id)
    }

    fn attrs_at(&self) -> u64 {
        FILE_HEADER_BYTES + ID_BYTES * self.events.len() as u64
    }

    fn attr_entry_bytes(&self) -> u64 {
        self.attr_bytes as u64 + SECTION_BYTES
    }

    /// Begin of the records.
    pub(super) fn data_at(&self) -> u64 {
        self.attrs_at() + self.attr_entry_bytes() * self.events.len() as u64
    }

    /// All up to the records, which are `n_data_bytes`; after those are the tables `features`.
    pub(super) fn file(&self, n_data_bytes: u64, features: &[Feature]) -> Vec<u8> {
        let mut bytes = Bytes::default();
        let attr_entry_len = self.attr_entry_bytes();
        let header = FileHeader {
            attr_entry_len,
            attrs: Section {
                offset: self.attrs_at(),
                len_bytes: attr_entry_len * self.events.len() as u64,
            },
            data: Section { offset: self.data_at(), len_bytes: n_data_bytes },
            event_types: Section::default(),
            features: feature_bits(features.iter().map(|feature| feature.id)),
        };
        header.write(&mut bytes);
        self.events.iter().for_each(|event| bytes.u64(event.id));
        for (event, event_idx) in self.events.iter().zip(0..) {
            bytes.bytes(&truncated(&event.attr, self.attr_bytes));
            bytes.u64(FILE_HEADER_BYTES + ID_BYTES * event_idx);
            bytes.u64(ID_BYTES);
        }
        bytes.0
    }

    /// Begin of a pipe.
    pub(super) fn pipe(&self, features: &[Feature]) -> Vec<u8> {
        let mut bytes = Bytes::default();
        bytes.bytes(&MAGIC_2);
        bytes.u64(PIPE_HEADER_BYTES);
        for event in &self.events {
            bytes.record(HEADER_ATTR, 0, |bytes| {
                bytes.bytes(&truncated(&event.attr, self.attr_bytes));
                bytes.u64(event.id);
            });
        }
        bytes.bytes(&self.names());
        for feature in features {
            let is_written = bytes.record(HEADER_FEATURE, 0, |bytes| {
                bytes.u64(u64::from(feature.id));
                // Without padding: the reader of a table takes all that is there for part of it.
                bytes.bytes(&feature.section);
            });
            if !is_written {
                tracing::warn!("{}", feature.is_left_out());
            }
        }
        bytes.0
    }

    /// The events' names as records, for a pipe and for a file whose tables are never written.
    pub(super) fn names(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
        for event in &self.events {
            bytes.record(EVENT_UPDATE, 0, |bytes| {
                bytes.u64(UPDATE_NAME);
                bytes.u64(event.id);
                bytes.text(event.name.as_bytes());
            });
        }
        bytes.0
    }

    /// The events with their names and ids, as a table.
    pub(super) fn description(&self) -> Feature {
        Feature::new(EVENT_DESC, |bytes| {
            bytes.u32(self.events.len() as u32);
            bytes.u32(self.attr_bytes as u32);
            for event in &self.events {
                bytes.bytes(&truncated(&event.attr, self.attr_bytes));
                bytes.u32(1);
                bytes.string(event.name.as_bytes());
                bytes.u64(event.id);
            }
        })
    }
}

/// Most bytes of [`tables`] with `features`, and with those two that are made at the end: build-ids,
/// of which the content is not counted here, and the times of the samples.
pub(super) fn most_table_bytes(features: &[Feature]) -> u64 {
    let n_bytes: usize = features.iter().map(|feature| feature.section.len()).sum();
    SECTION_BYTES * (features.len() as u64 + 2) + n_bytes as u64 + SAMPLE_TIME_BYTES
}

/// The tables of a file whose records end at `at`: first where each is, then they themselves.
pub(super) fn tables(features: &[Feature], at: u64) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let mut section_at = at + SECTION_BYTES * features.len() as u64;
    for feature in features {
        bytes.u64(section_at);
        bytes.u64(feature.section.len() as u64);
        section_at += feature.section.len() as u64;
    }
    for feature in features {
        bytes.bytes(&feature.section);
    }
    bytes.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::read::Recording;
    use dataspace_proto::record::Record;
    use perf_event_open_sys::bindings as abi;
    use std::io::Cursor;

    fn entry(name: &str, config: u64, id: u64) -> EventEntry {
        let mut attr = perf_event_attr {
            type_: abi::PERF_TYPE_SOFTWARE,
            config,
            sample_type: u64::from(abi::PERF_SAMPLE_IDENTIFIER | abi::PERF_SAMPLE_IP),
            ..perf_event_attr::default()
        };
        attr.__bindgen_anon_1.sample_period = 7;
        EventEntry { name: name.to_owned(), attr, id }
    }

    fn ips_by_event(bytes: Vec<u8>) -> Vec<(u16, u64)> {
        let mut recording =
            Recording::from_seekable(Box::new(Cursor::new(bytes)), "perf.data".into()).unwrap();
        let mut ips = Vec::new();
        while let Some(record) = recording.next_record().unwrap() {
            if let Record::Sample(sample) = record {
                ips.push((sample.event.0, sample.ip.0));
            }
        }
        ips
    }

    fn samples(ids: &[u64]) -> Vec<u8> {
        let mut bytes = Bytes::default();
        for &id in ids {
            bytes.record(abi::PERF_RECORD_SAMPLE, 2, |bytes| {
                bytes.u64(id);
                bytes.u64(1000 + id);
            });
        }
        bytes.0
    }

    #[test]
    fn a_file_and_a_pipe_have_the_same_events() {
        let front = Front::new(vec![entry("a", 0, 7), entry("b", 2, 9)]);
        let data = samples(&[9, 7, 9]);
        let features = [front.description()];
        let tables = tables(&features, front.data_at() + data.len() as u64);
        let file = [front.file(data.len() as u64, &features), data.clone(), tables].concat();
        let expected = [(1, 1009), (0, 1007), (1, 1009)];
        assert_eq!(ips_by_event(file), expected);
        assert_eq!(ips_by_event([front.pipe(&features), data].concat()), expected);
    }

    #[test]
    fn a_table_too_long_for_a_stream_is_left_out_and_the_rest_is_there() {
        let events: Vec<_> = (0..1000).map(|id| entry("a name", 0, 7 + id)).collect();
        let front = Front::new(events);
        let table = front.description();
        assert!(table.section.len() > 1 << 16);
        assert!(table.is_left_out().contains("table of events"), "{}", table.is_left_out());
        let stream = [front.pipe(&[table]), samples(&[9, 1006])].concat();
        assert_eq!(ips_by_event(stream), [(2, 1009), (999, 2006)]);
    }
}
