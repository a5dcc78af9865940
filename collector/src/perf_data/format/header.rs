//! Front of a recording: magic, places of its parts, numbers of its tables.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`, "Header".

use super::bytes::Bytes;
use crate::record::decode::Cursor;

/// Magic of today's recordings, in the byte order of the rest.
pub(crate) const MAGIC_2: [u8; 8] = *b"PERFILE2";
/// The same in a recording of the other byte order.
pub(crate) const MAGIC_2_SWAPPED: [u8; 8] = *b"2ELIFREP";
/// Version 1 wrote its magic as text, in whatever byte order the rest has.
pub(crate) const MAGIC_1: [u8; 8] = *b"PERFFILE";
/// `magic` and `size`: all that a pipe has.
pub(crate) const PIPE_HEADER_BYTES: u64 = 16;
/// The whole header in file mode.
pub(crate) const FILE_HEADER_BYTES: u64 = 104;
/// The header of `perf` before 2.6.33, which had no feature bits.
pub(crate) const FEATURELESS_HEADER_BYTES: u64 = 72;
/// Offset and length of a part of the file.
pub(crate) const SECTION_BYTES: u64 = 16;

/// The bits of these tables in a header.
pub(crate) fn feature_bits(features: impl Iterator<Item = u32>) -> [u64; 4] {
    let mut words = [0; 4];
    for feature in features {
        words[feature as usize / 64] |= 1 << (feature % 64);
    }
    words
}

/// A part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
}

impl Section {
    /// Reads one.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { offset: cursor.u64()?, len_bytes: cursor.u64()? })
    }

    /// Writes it.
    pub(crate) fn write(self, bytes: &mut Bytes) {
        bytes.u64(self.offset);
        bytes.u64(self.len_bytes);
    }

    /// The first byte after it.
    pub(crate) const fn end(self) -> u64 {
        self.offset.saturating_add(self.len_bytes)
    }
}

/// The header of file mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) attr_entry_len: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// Names of tracepoints, before Linux 3.3.
    pub(crate) event_types: Section,
    /// A bit for each table after the data.
    pub(crate) features: [u64; 4],
}

impl FileHeader {
    /// The features whose sections follow the data, in the order of the sections.
    pub(crate) fn features(&self) -> impl Iterator<Item = u32> {
        let words = self.features;
        (0..256u32).filter(move |bit| {
            words.get(*bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
        })
    }

    /// Reads a header of `header_len` bytes from its beginning.
    pub(crate) fn parse(cursor: &mut Cursor<'_>, header_len: u64) -> Option<Self> {
        cursor.take(PIPE_HEADER_BYTES)?;
        let mut header = Self {
            attr_entry_len: cursor.u64()?,
            attrs: Section::parse(cursor)?,
            data: Section::parse(cursor)?,
            event_types: Section::parse(cursor)?,
            features: [0; 4],
        };
        if header_len >= FILE_HEADER_BYTES {
            for word in &mut header.features {
                *word = cursor.u64()?;
            }
        }
        Some(header)
    }

    /// Writes it, magic and size first.
    pub(crate) fn write(&self, bytes: &mut Bytes) {
        bytes.bytes(&MAGIC_2);
        bytes.u64(FILE_HEADER_BYTES);
        bytes.u64(self.attr_entry_len);
        for section in [self.attrs, self.data, self.event_types] {
            section.write(bytes);
        }
        self.features.into_iter().for_each(|word| bytes.u64(word));
    }
}
