//! Lines of JSON: snapshots, and answers of the daemon.

use crate::config::Selection;
use crate::selection::reduced;
use dataspace_proto::snapshot::Snapshot;
use serde::Serialize;
use std::io::Write;

/// Writes `snapshot` as one line, with the objects that `selection` leaves, and hands it on: a
/// reader at the other end of the pipe is to have it now.
pub(super) fn write_line(
    snapshot: &Snapshot,
    selection: &Selection,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    write(&*reduced(snapshot, selection), out)
}

/// Writes `value` as one line, and hands it on.
pub(super) fn write(value: &impl Serialize, out: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn line(selection: &Selection) -> serde_json::Value {
        let mut out = Vec::new();
        write_line(&fixture::running(), selection, &mut out).unwrap();
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_limit_cuts_the_list_and_says_so() {
        let whole = line(&Selection::default());
        assert_eq!(whole["truncated"], false);
        let cut = line(&Selection { limit: Some(3), filter: String::new() });
        assert_eq!(cut["truncated"], true);
        assert_eq!(cut["objects"].as_array().unwrap().len(), 3);
        assert_eq!(cut["objects"][0]["object"], "<Total>");
        assert_eq!(cut["accounting"], whole["accounting"]);
    }

    #[test]
    fn a_filter_is_no_truncation() {
        let filtered = line(&Selection { limit: None, filter: "PARTICLE".into() });
        assert_eq!(filtered["truncated"], false);
        assert_eq!(filtered["objects"].as_array().unwrap().len(), 3);
    }
}
