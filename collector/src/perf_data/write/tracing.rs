//! The formats of tracepoints, in the form in which a recording has them: without it readers
//! refuse a recording of tracepoints.
//!
//! Source: Linux `tools/perf/util/trace-event-info.c`, and `trace-event-read.c` for what is read.

use crate::perf_data::format::bytes::Bytes;
use crate::system::tracefs;
use std::path::Path;

/// Its first bytes, up to the version.
const MAGIC: &[u8] = b"\x17\x08\x44tracing0.6\0";

/// The formats of `tracepoints`, which are pairs of a system and a name, from the tracefs at
/// `place`. What cannot be read is left empty: samples are then shown without their fields.
pub(crate) fn data(place: &Path, tracepoints: &[(String, String)]) -> Vec<u8> {
    let read = |path: &str| {
        tracefs::bytes(&place.join(path)).unwrap_or_else(|error| {
            tracing::debug!(%error, path, "not recorded");
            Vec::new()
        })
    };
    let mut bytes = Bytes::default();
    bytes.bytes(MAGIC);
    bytes.bytes(&[u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
    bytes.u32(rustix::param::page_size() as u32);
    for name in ["header_page", "header_event"] {
        bytes.bytes(name.as_bytes());
        bytes.bytes(&[0]);
        file(&mut bytes, &read(&format!("events/{name}")));
    }
    bytes.u32(0); // of ftrace's own events none
    let mut systems: Vec<&str> = tracepoints.iter().map(|(system, _)| &**system).collect();
    systems.sort_unstable();
    systems.dedup();
    bytes.u32(systems.len() as u32);
    for system in systems {
        bytes.bytes(system.as_bytes());
        bytes.bytes(&[0]);
        let mut names: Vec<&str> =
            tracepoints.iter().filter(|(of, _)| of == system).map(|(_, name)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        bytes.u32(names.len() as u32);
        for name in names {
            file(&mut bytes, &read(&format!("events/{system}/{name}/format")));
        }
    }
    bytes.u32(0); // of the kernel's symbols none: readers have other sources
    let formats = read("printk_formats");
    bytes.u32(formats.len() as u32);
    bytes.bytes(&formats);
    bytes.u64(0); // of the names of tasks none: they are records
    bytes.0
}

fn file(bytes: &mut Bytes, content: &[u8]) {
    bytes.u64(content.len() as u64);
    bytes.bytes(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_there_once_below_its_system() {
        let dir = tempfile::tempdir().unwrap();
        let format = dir.path().join("events/sched/switch");
        std::fs::create_dir_all(&format).unwrap();
        std::fs::write(format.join("format"), "name: switch").unwrap();
        let pair = |system: &str, name: &str| (system.to_owned(), name.to_owned());
        let tracepoints =
            [pair("sched", "switch"), pair("sched", "switch"), pair("sched", "missing")];
        let bytes = data(dir.path(), &tracepoints);
        let rest = &bytes[MAGIC.len() + 2 + 4 + 12 + 8 + 13 + 8 + 4..];
        let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), &rest[4..10], word(10)), (1, &b"sched\0"[..], 2));
        assert_eq!((word(14), word(22)), (0, 12), "the missing one is empty");
        assert_eq!(&rest[30..42], b"name: switch");
        assert_eq!(rest.len(), 42 + 4 + 4 + 8);
    }
}
