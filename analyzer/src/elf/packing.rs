//! Compression of the bytes of sections, and what they say of it.

use crate::bytes::file::{FileBytes, FileError};
use crate::elf::image::Section;
use crate::limit;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::FrameDecoder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the compressed sections of one file may come to.
#[derive(Debug)]
pub(crate) struct UnpackBudget {
    n_bytes_left: AtomicU64,
}

impl UnpackBudget {
    pub(crate) fn of(file: &dyn FileBytes) -> Self {
        Self { n_bytes_left: limit::most_unpacked(file.stored_bytes()).into() }
    }

    /// Takes so many of them, if there are.
    pub(crate) fn take(&self, n_bytes: usize) -> bool {
        let less = |left: u64| left.checked_sub(n_bytes as u64);
        self.n_bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The form of a section's bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// As they are.
    Plain,
    /// Compressed, after an `Elf64_Chdr`.
    Header,
    /// Compressed, after the header of a `.zdebug_` section.
    OldHeader,
}

impl Section {
    pub(crate) fn packing(&self) -> Packing {
        match self.is_compressed {
            true => Packing::Header,
            false if self.name.starts_with(OLD_COMPRESSED) => Packing::OldHeader,
            false => Packing::Plain,
        }
    }

    /// Length of its bytes without compression, as they say themselves, taken from what those of its file may
    /// come to.
    ///
    /// # Errors
    /// Where they do not say, or more than they can be.
    pub(crate) fn unpacked_len(
        &self,
        head: &[u8],
        budget: &UnpackBudget,
    ) -> Result<usize, FileError> {
        let found = self.compressed(head).map_err(|cause| self.error(cause))?;
        let is_plausible = is_plausible(found.n_bytes as u64, self.file_bytes);
        let is_allowed = is_plausible && budget.take(found.n_bytes);
        is_allowed.then_some(found.n_bytes).ok_or_else(|| self.error(TOO_LONG))
    }

    /// Its bytes, decompressed where that is needed and `may_be` is true of their number.
    pub(crate) fn unpack(
        &self,
        bytes: Arc<[u8]>,
        may_be: impl FnOnce(usize) -> bool,
    ) -> Result<Arc<[u8]>, FileError> {
        if self.packing() == Packing::Plain {
            return Ok(bytes);
        }
        let plain = self.compressed(&bytes).and_then(|found| {
            let is_plausible = is_plausible(found.n_bytes as u64, found.data.len() as u64);
            if is_plausible && may_be(found.n_bytes) { found.decompress() } else { Err(TOO_LONG) }
        });
        plain.map_err(|cause| self.error(cause))
    }

    fn compressed<'b>(&self, bytes: &'b [u8]) -> Result<Compressed<'b>, &'static str> {
        match self.packing() {
            Packing::Plain => Err("it is not compressed"),
            Packing::Header => compressed(bytes),
            Packing::OldHeader => old_compressed(bytes),
        }
    }
}

/// Beginning of a compressed section's name before there was `SHF_COMPRESSED`.
pub(crate) const OLD_COMPRESSED: &str = ".zdebug_";

#[derive(Clone, Copy)]
enum Format {
    Zlib,
    Zstandard,
}

struct Compressed<'b> {
    format: Format,
    data: &'b [u8],
    /// Length without compression, as is claimed.
    n_bytes: usize,
}

/// Reads the `Elf64_Chdr` in front of an `SHF_COMPRESSED` section (gABI chapter 4).
fn compressed(bytes: &[u8]) -> Result<Compressed<'_>, &'static str> {
    const ELFCOMPRESS_ZLIB: u32 = 1;
    const ELFCOMPRESS_ZSTD: u32 = 2;
    let (header, data) = bytes.split_at_checked(24).ok_or("no compression header")?;
    let word = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok());
    let format = match word(0).map(u32::from_le_bytes) {
        Some(ELFCOMPRESS_ZLIB) => Format::Zlib,
        Some(ELFCOMPRESS_ZSTD) => Format::Zstandard,
        _ => return Err("unknown compression"),
    };
    let size = header.get(8..16).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    Ok(Compressed { format, data, n_bytes: usize::try_from(size).map_err(|_| TOO_LONG)? })
}

/// Reads the header of a `.zdebug_` section: `ZLIB` and the length, big-endian.
fn old_compressed(bytes: &[u8]) -> Result<Compressed<'_>, &'static str> {
    let (header, data) = bytes.split_at_checked(12).ok_or("no compression header")?;
    let size = header.strip_prefix(b"ZLIB").and_then(|b| b.try_into().ok());
    let size = size.map(u64::from_be_bytes).ok_or("unknown compression")?;
    let n_bytes = usize::try_from(size).map_err(|_| TOO_LONG)?;
    Ok(Compressed { format: Format::Zlib, data, n_bytes })
}

const TOO_LONG: &str = "it decompresses to more than the limit, or than there is memory for";

/// Tells whether so many bytes can be what `n_packed` others decompress to.
fn is_plausible(n_bytes: u64, n_packed: u64) -> bool {
    n_bytes <= limit::MAX_SECTION_BYTES
        && n_bytes <= n_packed.saturating_mul(limit::MAX_COMPRESSION)
}

impl Compressed<'_> {
    /// Decompresses it into memory of the length that it claims, and no second copy.
    fn decompress(&self) -> Result<Arc<[u8]>, &'static str> {
        let mut plain: Arc<[u8]> = std::iter::repeat_n(0, self.n_bytes).collect();
        let buffer = Arc::get_mut(&mut plain).unwrap_or_default();
        let is_whole = match self.format {
            Format::Zlib => {
                let mut decoder = Decompress::new(true);
                let status = decoder.decompress(self.data, buffer, FlushDecompress::Finish);
                matches!(status, Ok(Status::StreamEnd))
                    && decoder.total_out() == self.n_bytes as u64
            }
            Format::Zstandard => {
                let n = FrameDecoder::new().decode_all(self.data, buffer);
                n.is_ok_and(|n| n == self.n_bytes)
            }
        };
        is_whole.then_some(plain).ok_or("it does not decompress")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::page::Memory;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write as _;

    const ZLIB: u32 = 1;
    const ZSTANDARD: u32 = 2;

    fn packed(format: u32, n_bytes: usize, data: &[u8]) -> Arc<[u8]> {
        let header = [format.to_le_bytes(), [0; 4]].concat();
        [&header, &(n_bytes as u64).to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0], data]
            .concat()
            .into()
    }

    fn zlib(plain: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(plain: &[u8]) -> Vec<u8> {
        compress_to_vec(plain, CompressionLevel::Fastest)
    }

    fn section(bytes: &[u8]) -> Section {
        Section {
            name: ".debug_info".to_owned(),
            start: dataspace_proto::address::Svma(0),
            file_bytes: bytes.len() as u64,
            file_offset: dataspace_proto::address::FileOffset(0),
            is_compressed: true,
            is_executable: false,
            entry_bytes: 0,
            is_writable: false,
            is_loaded: false,
            is_strings: false,
            is_of_program: true,
            is_table: false,
        }
    }

    fn unpacked(bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
        section(&bytes).unpack(bytes, |_| true).ok()
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back_and_only_in_the_length_that_is_claimed(
            plain in proptest::collection::vec(0u8..4, 1..5000)
        ) {
            let n = plain.len();
            let two_frames = [zstandard(&plain[..n / 2]), zstandard(&plain[n / 2..])].concat();
            for (format, data) in
                [(ZLIB, zlib(&plain)), (ZSTANDARD, zstandard(&plain)), (ZSTANDARD, two_frames)]
            {
                prop_assert_eq!(unpacked(packed(format, n, &data)), Some(Arc::from(&*plain)));
                prop_assert_eq!(unpacked(packed(format, n + 1, &data)), None);
                prop_assert_eq!(unpacked(packed(format, n - 1, &data)), None);
                prop_assert_eq!(unpacked(packed(format, n, &data[..data.len() - 1])), None);
            }
        }
    }

    #[test]
    fn all_sections_of_a_file_together_come_to_so_much() {
        let file = Memory(vec![0; 1000]);
        let most = limit::most_unpacked(1000) as usize;
        let claiming = |n_bytes: usize| packed(ZLIB, n_bytes, &vec![0; n_bytes / 1000]);
        let len = |budget: &UnpackBudget, n_bytes| {
            let bytes = claiming(n_bytes);
            section(&bytes).unpacked_len(&bytes, budget).ok()
        };
        let budget = UnpackBudget::of(&file);
        assert_eq!(len(&budget, most - 10), Some(most - 10));
        assert_eq!(len(&budget, 11), None);
        assert_eq!(len(&budget, 10), Some(10));
        assert_eq!(len(&UnpackBudget::of(&file), most + 1), None);
        let asked = std::cell::Cell::new(0);
        let bytes = claiming(5000);
        let refused = section(&bytes).unpack(bytes, |n_bytes| {
            asked.set(n_bytes);
            false
        });
        assert!(refused.is_err() && asked.get() == 5000, "asked before anything is decompressed");
    }
}
