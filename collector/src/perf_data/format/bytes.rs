//! Numbers, texts and records in the form in which a recording has them.

use crate::record::decode::Cursor;
use crate::record::ring::HEADER_BYTES;

/// `perf` pads texts of its tables to this (`NAME_ALIGN` in Linux `tools/perf/util/header.c`).
const TEXT_ALIGN: usize = 64;

/// The longest path in a record, with its end: `PATH_MAX`, for which readers have room.
const MAX_TEXT_BYTES: usize = 4096;

/// Bytes that grow at their end, in this machine's byte order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// `struct perf_header_string`: its length with padding, then the text with a zero byte.
    pub(crate) fn string(&mut self, text: &[u8]) {
        let text = until_nul(text);
        let n_bytes = (text.len() + 1).next_multiple_of(TEXT_ALIGN);
        // Texts of tables are names and arguments: their lengths are the kernel's to limit.
        self.u32(n_bytes as u32);
        let end = self.0.len() + n_bytes;
        self.bytes(text);
        self.0.resize(end, 0);
    }

    /// A path or name in a record: zero bytes to the next multiple of 8, one at least.
    pub(crate) fn text(&mut self, text: &[u8]) {
        let text = until_nul(text);
        let text = &text[..text.len().min(MAX_TEXT_BYTES - 1)];
        let end = self.0.len() + (text.len() + 1).next_multiple_of(8);
        self.bytes(text);
        self.0.resize(end, 0);
    }

    /// One record, whose payload `fill` writes. Without room in a record's 16 bits of size it is
    /// left out, and `false` is given.
    pub(crate) fn record(&mut self, kind: u32, misc: u16, fill: impl FnOnce(&mut Self)) -> bool {
        let start = self.0.len();
        self.u32(kind);
        self.u16(misc);
        self.u16(0);
        fill(self);
        let Ok(size) = u16::try_from(self.0.len() - start) else {
            self.0.truncate(start);
            return false;
        };
        self.0[start + HEADER_BYTES - 2..start + HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
        true
    }
}

/// `struct perf_header_string`, read: a length that includes padding, then a C string.
pub(crate) fn string<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u32()?;
    cursor.take(u64::from(len)).map(until_nul)
}

/// A C string, or all of `text` if its end is missing.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_how_long_it_is_and_one_too_long_is_left_out() {
        let mut bytes = Bytes::default();
        assert!(bytes.record(3, 2, |payload| payload.text(b"1234567\0rest")));
        assert_eq!(bytes.0[..8], [3, 0, 0, 0, 2, 0, 16, 0]);
        assert_eq!(&bytes.0[8..], b"1234567\0");
        assert!(!bytes.record(3, 2, |payload| payload.bytes(&[0; 1 << 16])));
        assert_eq!(bytes.0.len(), 16);
    }

    #[test]
    fn texts_of_tables_are_padded_as_perf_pads_them() {
        let mut bytes = Bytes::default();
        bytes.string(&[b'a'; 64]);
        assert_eq!((bytes.0[0], bytes.0.len()), (128, 132));
    }
}
