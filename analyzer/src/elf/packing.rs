//! Compression of the bytes of sections, and what they say of it.

use crate::bytes::file::FileError;
use crate::elf::image::Section;
use crate::limit;
use std::sync::Arc;

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

    /// Length of its bytes without compression, as they say themselves.
    ///
    /// # Errors
    /// Where they do not say, or more than they can be.
    pub(crate) fn unpacked_len(&self, head: &[u8]) -> Result<usize, FileError> {
        let size = match self.packing() {
            Packing::Plain => return Err(self.error("it is not compressed")),
            Packing::Header => compressed(head),
            Packing::OldHeader => old_compressed(head),
        };
        let size = size.map(|found| found.uncompressed_size).map_err(|cause| self.error(cause))?;
        let len = usize::try_from(size).ok().filter(|_| is_plausible(size, self.file_bytes));
        len.ok_or_else(|| self.error(TOO_LONG))
    }

    /// Its bytes, decompressed where that is needed.
    pub(crate) fn unpack(&self, bytes: Arc<[u8]>) -> Result<Arc<[u8]>, FileError> {
        let compressed = match self.packing() {
            Packing::Plain => return Ok(bytes),
            Packing::Header => compressed(&bytes),
            Packing::OldHeader => old_compressed(&bytes),
        };
        compressed.and_then(decompress).map_err(|cause| self.error(cause))
    }
}

/// Beginning of a compressed section's name before there was `SHF_COMPRESSED`.
pub(crate) const OLD_COMPRESSED: &str = ".zdebug_";

/// Reads the `Elf64_Chdr` in front of an `SHF_COMPRESSED` section (gABI chapter 4).
fn compressed(bytes: &[u8]) -> Result<object::CompressedData<'_>, &'static str> {
    const ELFCOMPRESS_ZLIB: u32 = 1;
    const ELFCOMPRESS_ZSTD: u32 = 2;
    let (header, data) = bytes.split_at_checked(24).ok_or("no compression header")?;
    let word = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok());
    let format = match word(0).map(u32::from_le_bytes) {
        Some(ELFCOMPRESS_ZLIB) => object::CompressionFormat::Zlib,
        Some(ELFCOMPRESS_ZSTD) => object::CompressionFormat::Zstandard,
        _ => return Err("unknown compression"),
    };
    let size = header.get(8..16).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    Ok(object::CompressedData { format, data, uncompressed_size: size })
}

/// Reads the header of a `.zdebug_` section: `ZLIB` and the length, big-endian.
fn old_compressed(bytes: &[u8]) -> Result<object::CompressedData<'_>, &'static str> {
    let (header, data) = bytes.split_at_checked(12).ok_or("no compression header")?;
    let size = header.strip_prefix(b"ZLIB").and_then(|b| b.try_into().ok());
    let size = size.map(u64::from_be_bytes).ok_or("unknown compression")?;
    let format = object::CompressionFormat::Zlib;
    Ok(object::CompressedData { format, data, uncompressed_size: size })
}

const TOO_LONG: &str = "it claims to decompress to more than the limit";

/// Tells whether so many bytes can be what `n_packed` others decompress to.
fn is_plausible(n_bytes: u64, n_packed: u64) -> bool {
    n_bytes <= limit::MAX_SECTION_BYTES
        && n_bytes <= n_packed.saturating_mul(limit::MAX_COMPRESSION)
}

fn decompress(compressed: object::CompressedData<'_>) -> Result<Arc<[u8]>, &'static str> {
    // What is claimed is reserved at once.
    if !is_plausible(compressed.uncompressed_size, compressed.data.len() as u64) {
        return Err(TOO_LONG);
    }
    let plain = compressed.decompress().map_err(|_| "it does not decompress")?;
    Ok(plain.into())
}
