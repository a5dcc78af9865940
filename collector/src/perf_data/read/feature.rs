//! The feature sections that tell of the machine and of its events.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt`, "HEADER_*".

use crate::perf_data::format::bytes::string;
use crate::perf_data::format::feature::{ARCH, BUILD_ID, EVENT_DESC, NUMA_TOPOLOGY, PMU_MAPPINGS};
use crate::record::decode::{Cursor, Endian};
use crate::system::host::node_by_cpu;
use dataspace_proto::event::Machine;
use std::collections::HashMap;

/// More event names than a session can have events are not read.
const MAX_DESCRIPTIONS: usize = 1 << 16;
/// The longest name of an event that is kept; `perf` itself cuts at 128 in most places.
const MAX_NAME_LEN: usize = 1 << 10;
/// More PMUs than any machine has: the largest have some hundreds of uncore units.
const MAX_PMUS: usize = 1 << 14;
/// A kernel has at most 1,024 (`CONFIG_NODES_SHIFT` of x86 is at most 10).
const MAX_NODES: usize = 1 << 10;

/// Tells whether the section of this feature is read at all.
pub(super) const fn is_used(feature: u32) -> bool {
    matches!(feature, BUILD_ID | ARCH | EVENT_DESC | NUMA_TOPOLOGY | PMU_MAPPINGS)
}

/// Description of one event by `HEADER_EVENT_DESC`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventDescription {
    pub(super) name: Box<str>,
    pub(super) ids: Vec<u64>,
}

/// The instruction set in `HEADER_ARCH`, which holds what `uname -m` prints.
pub(super) fn machine(section: &[u8], endian: Endian) -> Option<Machine> {
    let name = string(&mut Cursor::new(section, endian))?;
    Some(if name == b"x86_64" { Machine::X86_64 } else { Machine::Other })
}

/// The names in `HEADER_EVENT_DESC`, in the order of the attributes.
pub(super) fn event_descriptions(section: &[u8], endian: Endian) -> Vec<EventDescription> {
    let mut cursor = Cursor::new(section, endian);
    let (Some(n), Some(attr_len)) = (cursor.u32(), cursor.u32()) else {
        return Vec::new();
    };
    (0..n)
        .take(MAX_DESCRIPTIONS)
        .map_while(|_| event_description(&mut cursor, u64::from(attr_len)))
        .collect()
}

fn event_description(cursor: &mut Cursor<'_>, attr_len: u64) -> Option<EventDescription> {
    cursor.take(attr_len)?;
    let n_ids = cursor.u32()?;
    let name = name(string(cursor)?);
    let ids = (0..n_ids).map_while(|_| cursor.u64()).collect();
    Some(EventDescription { name, ids })
}

/// The names of the machine's PMUs by the number that `perf_event_attr.type` holds.
pub(super) fn pmu_names(section: &[u8], endian: Endian) -> HashMap<u32, Box<str>> {
    let mut cursor = Cursor::new(section, endian);
    let n = cursor.u32().unwrap_or(0);
    (0..n)
        .take(MAX_PMUS)
        .map_while(|_| {
            let kind = cursor.u32()?;
            Some((kind, name(string(&mut cursor)?)))
        })
        .collect()
}

/// The node of each CPU by `HEADER_NUMA_TOPOLOGY`.
pub(super) fn nodes(section: &[u8], endian: Endian) -> Box<[u16]> {
    let mut cursor = Cursor::new(section, endian);
    let n = cursor.u32().unwrap_or(0);
    let nodes = (0..n).take(MAX_NODES).map_while(|_| {
        let number = cursor.u32()?;
        let _ = (cursor.u64()?, cursor.u64()?); // memory in all, and what is free
        Some((u16::try_from(number).ok()?, str::from_utf8(string(&mut cursor)?).ok()?))
    });
    node_by_cpu(nodes)
}

/// The name of an event or a PMU as text, if need be cut.
pub(super) fn name(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes.get(..MAX_NAME_LEN).unwrap_or(bytes)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string_bytes(text: &str) -> Vec<u8> {
        let len = (text.len() + 1).next_multiple_of(64);
        let mut bytes = (len as u32).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(4 + len, 0);
        bytes
    }

    #[test]
    fn an_event_description_has_a_name_and_ids() {
        let mut section = [2u32.to_le_bytes(), 96u32.to_le_bytes()].concat();
        for (name, ids) in [("cpu/mem-loads/pp", vec![7u64, 8]), ("dummy:HG", vec![9])] {
            section.extend([0; 96]);
            section.extend((ids.len() as u32).to_le_bytes());
            section.extend(string_bytes(name));
            section.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        let descriptions = event_descriptions(&section, Endian::Little);
        assert_eq!(&*descriptions[0].name, "cpu/mem-loads/pp");
        assert_eq!(descriptions[0].ids, [7, 8]);
        assert_eq!(descriptions[1].ids, [9]);
    }

    #[test]
    fn counts_beyond_the_section_allocate_nothing() {
        let section = [u32::MAX.to_le_bytes(), 0u32.to_le_bytes()].concat();
        assert!(event_descriptions(&section, Endian::Little).is_empty());
        assert!(pmu_names(&section, Endian::Little).len() <= 1);
    }

    #[test]
    fn nodes_have_their_cpus() {
        let mut section = 2u32.to_le_bytes().to_vec();
        for (number, cpus) in [(1u32, "0,2"), (0, "1")] {
            section.extend(number.to_le_bytes());
            section.extend([0; 16]);
            section.extend(string_bytes(cpus));
        }
        assert_eq!(*nodes(&section, Endian::Little), [1, 0, 1]);
        assert!(nodes(&section[..30], Endian::Little).is_empty());
    }

    #[test]
    fn only_x86_64_can_be_attributed() {
        assert_eq!(machine(&string_bytes("x86_64"), Endian::Little), Some(Machine::X86_64));
        assert_eq!(machine(&string_bytes("aarch64"), Endian::Little), Some(Machine::Other));
        assert_eq!(machine(&[], Endian::Little), None);
    }
}
