//! The first bytes of a recording: file or pipe, byte order, where the parts stand.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt`, "Header".

use super::error::RecordingError;
use crate::record::decode::{Cursor, Endian};
use std::path::Path;

/// `magic` and `size`: all that a pipe has.
pub(super) const PIPE_HEADER_LEN: usize = 16;
/// The whole header in file mode.
pub(super) const FILE_HEADER_LEN: usize = 104;
/// The header of `perf` before 2.6.33, which had no feature bits.
const FEATURELESS_HEADER_LEN: u64 = 72;
/// The smallest `perf_event_attr` (`PERF_ATTR_SIZE_VER0`) and its section of ids.
const MIN_ATTR_ENTRY_LEN: u64 = 64 + 16;
/// An attribute entry of a version 1 file longer than this is one read in the wrong byte order.
const MAX_PLAUSIBLE_ATTR_ENTRY_LEN: u64 = 0xffff;

const MAGIC_2: [u8; 8] = *b"PERFILE2";
const MAGIC_2_SWAPPED: [u8; 8] = *b"2ELIFREP";
/// Version 1 wrote its magic as text, in whatever byte order the rest has.
const MAGIC_1: [u8; 8] = *b"PERFFILE";

/// A part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len_bytes: u64,
}

impl Section {
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { offset: cursor.u64()?, len_bytes: cursor.u64()? })
    }

    /// The first byte behind it.
    pub(super) const fn end(self) -> u64 {
        self.offset.saturating_add(self.len_bytes)
    }
}

/// How the recording was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// `perf record -o -`: what a file has in its header comes as records.
    Pipe,
    /// With a header; so long is it.
    File {
        /// `size`.
        header_len: u64,
    },
}

/// The header of file mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) attr_entry_len: u64,
    pub(super) attrs: Section,
    pub(super) data: Section,
    pub(super) event_types: Section,
    features: [u64; 4],
}

impl FileHeader {
    /// The features whose sections follow the data, in the order of the sections.
    pub(super) fn features(&self) -> impl Iterator<Item = u32> {
        let words = self.features;
        (0..256u32).filter(move |bit| {
            words.get(*bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
        })
    }
}

/// Reads `magic` and `size`.
pub(super) fn mode(start: &[u8], path: &Path) -> Result<(Endian, Mode), RecordingError> {
    let Some((magic, rest)) = start.split_first_chunk::<8>() else {
        return Err(too_short(start, path));
    };
    let endian = match *magic {
        MAGIC_2 => Endian::Little,
        MAGIC_2_SWAPPED => Endian::Big,
        MAGIC_1 => endian_of_version_1(rest),
        _ => {
            let magic = u64::from_be_bytes(*magic);
            return Err(RecordingError::NotPerfData { path: path.into(), magic });
        }
    };
    match Cursor::new(rest, endian).u64() {
        None => Err(too_short(start, path)),
        Some(size) if size == PIPE_HEADER_LEN as u64 => Ok((endian, Mode::Pipe)),
        Some(size) if size >= FEATURELESS_HEADER_LEN => {
            Ok((endian, Mode::File { header_len: size }))
        }
        Some(value) => {
            Err(RecordingError::Header { path: path.into(), field: "size", offset: 8, value })
        }
    }
}

/// Reads the header of file mode from `bytes`, which begin at the start of the file.
pub(super) fn file_header(
    bytes: &[u8],
    endian: Endian,
    header_len: u64,
    path: &Path,
) -> Result<FileHeader, RecordingError> {
    let mut cursor = Cursor::new(bytes, endian);
    let header =
        parse_file_header(&mut cursor, header_len).ok_or_else(|| too_short(bytes, path))?;
    if header.attr_entry_len < MIN_ATTR_ENTRY_LEN {
        let value = header.attr_entry_len;
        let path = path.into();
        return Err(RecordingError::Header { path, field: "attr_size", offset: 16, value });
    }
    Ok(header)
}

fn parse_file_header(cursor: &mut Cursor<'_>, header_len: u64) -> Option<FileHeader> {
    cursor.take(PIPE_HEADER_LEN as u64)?;
    let mut header = FileHeader {
        attr_entry_len: cursor.u64()?,
        attrs: Section::parse(cursor)?,
        data: Section::parse(cursor)?,
        event_types: Section::parse(cursor)?,
        features: [0; 4],
    };
    if header_len >= FILE_HEADER_LEN as u64 {
        for word in &mut header.features {
            *word = cursor.u64()?;
        }
    }
    Some(header)
}

/// In version 1 only the plausibility of `attr_size`, behind `size`, tells the byte order.
fn endian_of_version_1(behind_magic: &[u8]) -> Endian {
    let mut cursor = Cursor::new(behind_magic, Endian::Little);
    let attr_entry_len = cursor.u64().and_then(|_| cursor.u64());
    match attr_entry_len {
        Some(len) if len > MAX_PLAUSIBLE_ATTR_ENTRY_LEN => Endian::Big,
        _ => Endian::Little,
    }
}

fn too_short(bytes: &[u8], path: &Path) -> RecordingError {
    RecordingError::TooShort { path: path.into(), len_bytes: bytes.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> &'static Path {
        Path::new("perf.data")
    }

    #[test]
    fn the_magic_tells_the_byte_order() {
        let mut little = b"PERFILE2".to_vec();
        little.extend(16u64.to_le_bytes());
        assert_eq!(mode(&little, name()).unwrap(), (Endian::Little, Mode::Pipe));
        let mut big = b"2ELIFREP".to_vec();
        big.extend(104u64.to_be_bytes());
        assert_eq!(mode(&big, name()).unwrap(), (Endian::Big, Mode::File { header_len: 104 }));
    }

    #[test]
    fn in_version_1_the_attribute_size_tells_the_byte_order() {
        let mut big = b"PERFFILE".to_vec();
        big.extend(104u64.to_be_bytes());
        big.extend(88u64.to_be_bytes());
        assert_eq!(mode(&big, name()).unwrap(), (Endian::Big, Mode::File { header_len: 104 }));
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_first_bytes() {
        let error = mode(b"\x7fELF\x02\x01\x01\0 more", name()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "perf.data is not a perf.data file: it begins with 0x7f454c4602010100 at byte 0"
        );
        assert!(matches!(mode(b"PERF", name()), Err(RecordingError::TooShort { .. })));
    }
}
