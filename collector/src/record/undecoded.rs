//! Contents of records that are not decoded, so that it can be told: traces, and kinds of records that
//! came after this program was written.

use crate::record::decode::{Cursor, Endian};
use crate::record::ring::RawRecord;
use std::collections::BTreeMap;

/// Kinds that are told apart; damage makes more.
const MAX_KINDS: usize = 8;

/// `enum auxtrace_type` of `tools/perf/util/auxtrace.h`, from 1 on.
const TRACES: [&str; 7] = [
    "Intel PT",
    "Intel BTS",
    "Arm CoreSight",
    "Arm SPE",
    "s390 CPU-MF",
    "HiSilicon PTT",
    "VPA DTL",
];

/// Counts of it.
#[derive(Debug, Default)]
pub(crate) struct Undecoded {
    /// The maker of the trace, as the recorder says.
    trace: Option<&'static str>,
    /// Bytes of trace that stand in the recording.
    n_stored_bytes: u64,
    /// Bytes of trace that the kernel says it wrote.
    n_written_bytes: u64,
    /// Pieces in which it wrote them.
    n_pieces: u64,
    /// Records by kind.
    unknown: BTreeMap<u32, u64>,
    n_unknown: u64,
}

impl Undecoded {
    /// `PERF_RECORD_AUX`: where the piece begins, and its length.
    pub(crate) fn aux(&mut self, record: &RawRecord<'_>, endian: Endian) {
        let mut cursor = Cursor::new(record.payload, endian);
        let n_bytes = cursor.u64().and_then(|_offset| cursor.u64()).unwrap_or(0);
        self.n_written_bytes = self.n_written_bytes.saturating_add(n_bytes);
        self.n_pieces += 1;
    }

    /// `PERF_RECORD_AUXTRACE_INFO`: which trace it is.
    pub(crate) fn auxtrace_info(&mut self, record: &RawRecord<'_>, endian: Endian) {
        let kind = Cursor::new(record.payload, endian).u32().unwrap_or(0);
        let index = usize::try_from(kind).ok().and_then(|kind| kind.checked_sub(1));
        self.trace = index.and_then(|index| TRACES.get(index)).copied();
    }

    /// `PERF_RECORD_AUXTRACE`: so many bytes of trace stand after it.
    pub(crate) fn auxtrace(&mut self, record: &RawRecord<'_>, endian: Endian) {
        let n_bytes = Cursor::new(record.payload, endian).u64().unwrap_or(0);
        self.n_stored_bytes = self.n_stored_bytes.saturating_add(n_bytes);
    }

    /// A record of a kind that is not known.
    pub(crate) fn unknown(&mut self, kind: u32) {
        self.n_unknown += 1;
        if self.unknown.len() < MAX_KINDS || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        }
    }

    /// Words for a person, at the end.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let trace = self.trace.unwrap_or("a hardware trace");
        let n_pieces = self.n_pieces;
        if self.n_stored_bytes != 0 {
            warnings.push(format!(
                "the recording holds {} bytes of {trace} (AUX data, in {n_pieces} pieces), which is not decoded: \
                 the samples in it are missing",
                self.n_stored_bytes
            ));
        } else if n_pieces != 0 || self.trace.is_some() {
            warnings.push(format!(
                "{trace} was on (AUX data, in {n_pieces} pieces, {} bytes as the kernel says), and is not in the \
                 recording: the samples in it are missing",
                self.n_written_bytes
            ));
        }
        if self.n_unknown != 0 {
            let kinds: Vec<String> =
                self.unknown.iter().map(|(kind, n)| format!("{n} of type {kind}")).collect();
            warnings.push(format!(
                "{} records are of types that this program does not know, and were not read ({})",
                self.n_unknown,
                kinds.join(", ")
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, payload: &[u8]) -> RawRecord<'_> {
        RawRecord { kind, misc: 0, payload }
    }

    #[test]
    fn a_trace_is_told_with_its_name_and_size() {
        let mut undecoded = Undecoded::default();
        assert_eq!(undecoded.warnings(), [""; 0]);
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        // aux_offset, aux_size, flags.
        undecoded.aux(&record(11, &words(&[4096, 100, 0])), Endian::Little);
        undecoded.aux(&record(11, &words(&[8192, 50, 0])), Endian::Little);
        let warning = &undecoded.warnings()[0];
        assert!(
            warning.starts_with("a hardware trace was on (AUX data, in 2 pieces, 150 bytes"),
            "{warning}"
        );
        undecoded.auxtrace_info(&record(70, &words(&[4])), Endian::Little);
        // size, offset, reference, idx.
        undecoded.auxtrace(&record(71, &words(&[120, 0, 0, 0])), Endian::Little);
        assert_eq!(
            undecoded.warnings(),
            ["the recording holds 120 bytes of Arm SPE (AUX data, in 2 pieces), which is not \
              decoded: the samples in it are missing"]
        );
    }

    #[test]
    fn unknown_types_are_named_and_bounded() {
        let mut undecoded = Undecoded::default();
        for kind in 100..200 {
            undecoded.unknown(kind);
            undecoded.unknown(100);
        }
        let warning = &undecoded.warnings()[0];
        assert!(warning.starts_with("200 records are of types"), "{warning}");
        assert!(warning.contains("(101 of type 100, 1 of type 101, "), "{warning}");
        assert_eq!(undecoded.unknown.len(), MAX_KINDS);
    }
}
