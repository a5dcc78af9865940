//! The first bytes of a recording: file or pipe, byte order, where the parts stand.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt`, "Header".

use super::error::RecordingError;
use crate::perf_data::format::attr::MIN_BYTES;
use crate::perf_data::format::header::{
    FEATURELESS_HEADER_BYTES, FileHeader, MAGIC_1, MAGIC_2, MAGIC_2_SWAPPED, PIPE_HEADER_BYTES,
    SECTION_BYTES,
};
use crate::record::decode::{Cursor, Endian};
use std::path::Path;

/// The smallest `perf_event_attr` (`PERF_ATTR_SIZE_VER0`) and its section of ids.
const MIN_ATTR_ENTRY_LEN: u64 = MIN_BYTES as u64 + SECTION_BYTES;
/// An attribute entry of a version 1 file longer than this is one read in the wrong byte order.
const MAX_PLAUSIBLE_ATTR_ENTRY_LEN: u64 = 0xffff;

/// Way in which the recording was written.
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
        Some(size) if size == PIPE_HEADER_BYTES => Ok((endian, Mode::Pipe)),
        Some(size) if size >= FEATURELESS_HEADER_BYTES => {
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
        FileHeader::parse(&mut cursor, header_len).ok_or_else(|| too_short(bytes, path))?;
    if header.attr_entry_len < MIN_ATTR_ENTRY_LEN {
        let value = header.attr_entry_len;
        let path = path.into();
        return Err(RecordingError::Header { path, field: "attr_size", offset: 16, value });
    }
    Ok(header)
}

/// In version 1 only the plausibility of `attr_size`, after `size`, tells the byte order.
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
