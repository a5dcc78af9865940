//! Names of tracepoints in the formats that a recording carries: in a pipe of older recorders nothing else has them.
//!
//! Source: Linux `tools/perf/util/trace-event-info.c`.

use crate::perf_data::format::bytes::until_nul;
use crate::record::decode::{Cursor, Endian};

/// Its first bytes, before the version.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Hands the number and the name of each tracepoint to `take`, as `SYSTEM:NAME`; up to where the bytes make no sense.
pub(super) fn names(bytes: &[u8], take: &mut dyn FnMut(u64, &[u8])) -> Option<()> {
    let version = bytes.strip_prefix(MAGIC)?;
    let rest = version.get(until_nul(version).len() + 1..)?;
    let (&[is_big, _long_bytes], rest) = rest.split_first_chunk()?;
    let endian = if is_big == 0 { Endian::Little } else { Endian::Big };
    let mut cursor = Cursor::new(rest, endian);
    let _page_bytes = cursor.u32()?;
    for name in [b"header_page\0", &b"header_event\0"[..]] {
        let _name = cursor.take(name.len() as u64)?;
        let _text = file(&mut cursor)?;
    }
    for _ in 0..cursor.u32()? {
        format(file(&mut cursor)?, b"ftrace", take);
    }
    for _ in 0..cursor.u32()? {
        let system = until_nul(cursor.rest());
        let _system = cursor.take(system.len() as u64 + 1)?;
        for _ in 0..cursor.u32()? {
            format(file(&mut cursor)?, system, take);
        }
    }
    Some(())
}

fn file<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let n_bytes = cursor.u64()?;
    cursor.take(n_bytes)
}

/// The `format` file of a tracepoint in tracefs: it begins with its name and its number.
fn format(text: &[u8], system: &[u8], take: &mut dyn FnMut(u64, &[u8])) {
    let value = |key: &[u8]| {
        let mut lines = text.split(|byte| *byte == b'\n').take(2);
        lines.find_map(|line| line.strip_prefix(key)).map(<[u8]>::trim_ascii)
    };
    let number = value(b"ID:").and_then(|id| str::from_utf8(id).ok()?.parse().ok());
    if let (Some(name), Some(number)) = (value(b"name:"), number) {
        take(number, &[system, b":", name].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::write::tracing;

    fn all(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let _ = names(bytes, &mut |id, name| {
            found.push((id, String::from_utf8_lossy(name).into_owned()));
        });
        found
    }

    #[test]
    fn each_tracepoint_has_its_number_and_damage_ends_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut pairs = Vec::new();
        for (system, name, id) in [("sched", "sched_switch", 316), ("kmem", "kmalloc", 42)] {
            let place = dir.path().join("events").join(system).join(name);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("format"), format!("name: {name}\nID: {id}\nformat:\n"))
                .unwrap();
            pairs.push((system.to_owned(), name.to_owned()));
        }
        let bytes = tracing::data(dir.path(), &pairs);
        assert_eq!(all(&bytes), [(42, "kmem:kmalloc".into()), (316, "sched:sched_switch".into())]);
        for end in 0..bytes.len() {
            assert!(all(&bytes[..end]).len() <= 2, "{end}");
        }
    }
}
