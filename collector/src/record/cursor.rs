//! Integers of a record, in the byte order of whoever wrote it.

/// Byte order of a recording; live rings have the machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// The byte order of this machine.
pub const NATIVE: Endian =
    if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big };

/// Reads fixed-width integers from the front of a record.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> Cursor<'a> {
    /// A cursor at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { bytes, endian }
    }

    /// The rest.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let n = usize::try_from(n).ok()?;
        let (front, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(front)
    }

    /// The next `N` bytes, the least significant first.
    fn little_endian<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&(mut number), rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        if self.endian == Endian::Big {
            number.reverse();
        }
        Some(number)
    }

    /// The next 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.little_endian().map(u64::from_le_bytes)
    }

    /// The next 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.little_endian().map(u32::from_le_bytes)
    }

    /// The next 4 bytes as a task id, in which −1 means none.
    pub fn task_id(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    /// The next 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.little_endian().map(u16::from_le_bytes)
    }
}
