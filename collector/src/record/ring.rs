//! Records of a ring: two byte slices, the second one where the ring wrapped around.

use crate::record::decode::{Cursor, Endian, NATIVE};
use crate::sys::prefetch;
use thiserror::Error;

/// `struct perf_event_header`: type (4), misc (2), size (2).
pub const HEADER_BYTES: usize = 8;

/// The longest record: its size is 16 bits wide.
const MAX_RECORD_BYTES: usize = 1 << 16;

/// More is not asked for ahead: a processor has about a dozen buffers for lines on their way.
const MAX_PREFETCH_BYTES: usize = 768;

/// One record, not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// All after the header.
    pub payload: &'a [u8],
}

/// A record whose size cannot be: nothing after it can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record of {size} bytes stands where {available} are left")]
pub struct CorruptRing {
    /// The size it claims.
    pub size: usize,
    /// The bytes there are.
    pub available: usize,
}

/// Room to put the two parts of a split record together. Made once, for all rings, when the first one is split.
#[derive(Debug, Default)]
pub struct Joint(Vec<u8>);

/// The two parts of a ring's unread bytes, for a ring that is a plain slice.
///
/// `tail` and `head` count bytes since the ring began, as the kernel's do. `None` if the slice is
/// empty or more than the ring holds would be unread.
#[must_use]
pub fn unread(ring: &[u8], tail: u64, head: u64) -> Option<(&[u8], &[u8])> {
    let n_bytes = usize::try_from(head.checked_sub(tail)?).ok()?;
    if n_bytes > ring.len() {
        return None;
    }
    let start = usize::try_from(tail.checked_rem(ring.len() as u64)?).ok()?;
    let n_front = n_bytes.min(ring.len() - start);
    Some((&ring[start..start + n_front], &ring[..n_bytes - n_front]))
}

/// Reads records from the unread part of a ring.
///
/// ```
/// use dataspace_collector::record::ring::{Joint, RingReader, unread};
///
/// // A ring of 24 bytes: one record of 16 bytes that begins at byte 16 and wraps around.
/// let mut ring = [0u8; 24];
/// ring[16..20].copy_from_slice(&3u32.to_ne_bytes());
/// ring[22..24].copy_from_slice(&16u16.to_ne_bytes());
/// ring[0..8].copy_from_slice(b"payload!");
/// let (front, back) = unread(&ring, 16, 32).expect("16 bytes are unread");
/// let mut joint = Joint::default();
/// let mut reader = RingReader::new(front, back, &mut joint);
/// let record = reader.next().expect("the sizes are sound").expect("there is a record");
/// assert_eq!((record.kind, record.payload), (3, &b"payload!"[..]));
/// assert!(reader.next().expect("the sizes are sound").is_none());
/// ```
#[derive(Debug)]
pub struct RingReader<'a> {
    front: &'a [u8],
    back: &'a [u8],
    joint: &'a mut Joint,
}

impl<'a> RingReader<'a> {
    /// A reader of `front`, then `back`.
    #[must_use]
    pub const fn new(front: &'a [u8], back: &'a [u8], joint: &'a mut Joint) -> Self {
        Self { front, back, joint }
    }

    /// Number of bytes that are left.
    #[must_use]
    pub const fn n_left(&self) -> usize {
        self.front.len() + self.back.len()
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    /// [`CorruptRing`], after which nothing is left.
    #[allow(
        clippy::should_implement_trait,
        reason = "a record may borrow the reader's joint, which an Iterator's item cannot"
    )]
    pub fn next(&mut self) -> Result<Option<RawRecord<'_>>, CorruptRing> {
        if self.front.is_empty() {
            self.front = std::mem::take(&mut self.back);
        }
        if self.front.is_empty() {
            return Ok(None);
        }
        let available = self.n_left();
        // Sizes are multiples of 8 and so is the ring's, so a header is never split.
        let size = header(self.front).map_or(0, |(_, _, size)| size);
        if size < HEADER_BYTES || size > available {
            (self.front, self.back) = (&[], &[]);
            return Err(CorruptRing { size, available });
        }
        self.prefetch(size);
        let bytes = self.take(size);
        Ok(header(bytes).map(|(kind, misc, _)| RawRecord {
            kind,
            misc,
            payload: &bytes[HEADER_BYTES..],
        }))
    }

    /// The kernel wrote on another CPU: each line is waited for, unless it is asked for ahead. Records of one
    /// event have one size, nearly always, so the one after the next two lies so far after this one.
    fn prefetch(&self, size: usize) {
        if let Some(ahead) = self.front.get(3 * size..) {
            prefetch::to_read(ahead, size.min(MAX_PREFETCH_BYTES));
        }
    }

    /// The next `size` bytes in one piece; there are so many.
    fn take(&mut self, size: usize) -> &[u8] {
        if let Some((record, rest)) = self.front.split_at_checked(size) {
            self.front = rest;
            return record;
        }
        let (wrapped, rest) = self.back.split_at(size - self.front.len());
        self.joint.0.clear();
        self.joint.0.reserve(MAX_RECORD_BYTES);
        self.joint.0.extend_from_slice(self.front);
        self.joint.0.extend_from_slice(wrapped);
        (self.front, self.back) = (rest, &[]);
        &self.joint.0
    }
}

fn header(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    const RING_ENDIAN: Endian = NATIVE;
    let mut cursor = Cursor::new(bytes, RING_ENDIAN);
    Some((cursor.u32()?, cursor.u16()?, usize::from(cursor.u16()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&7u16.to_ne_bytes());
        bytes.extend_from_slice(&((HEADER_BYTES + payload.len()) as u16).to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    fn read_all(front: &[u8], back: &[u8]) -> (Vec<(u32, Vec<u8>)>, Option<CorruptRing>) {
        let mut joint = Joint::default();
        let mut reader = RingReader::new(front, back, &mut joint);
        let mut records = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(raw)) => records.push((raw.kind, raw.payload.to_vec())),
                Ok(None) => return (records, None),
                Err(corrupt) => return (records, Some(corrupt)),
            }
        }
    }

    #[test]
    fn a_size_of_zero_or_beyond_the_end_stops_the_ring() {
        let good = record(9, &[1; 8]);
        for size in [0u16, 7, 24, u16::MAX] {
            let mut bytes = good.clone();
            let mut bad = record(9, &[2; 8]);
            bad[6..8].copy_from_slice(&size.to_ne_bytes());
            bytes.extend_from_slice(&bad);
            let (records, corrupt) = read_all(&bytes, &[]);
            assert_eq!(records.len(), 1);
            assert_eq!(corrupt, Some(CorruptRing { size: usize::from(size), available: 16 }));
        }
    }

    #[test]
    fn more_unread_bytes_than_the_ring_holds_are_refused() {
        assert_eq!(unread(&[0; 16], 0, 17), None);
        assert_eq!(unread(&[0; 16], 8, 0), None);
        assert_eq!(unread(&[], 0, 0), None);
    }

    proptest! {
        #[test]
        fn every_record_comes_out_wherever_the_ring_wraps(
            sizes in prop::collection::vec(0usize..40, 0..40),
            start in 0u64..1000,
        ) {
            let records: Vec<(u32, Vec<u8>)> = sizes
                .iter()
                .enumerate()
                .map(|(i, n_words)| (i as u32, vec![i as u8; n_words * 8]))
                .collect();
            let stream: Vec<u8> = records.iter().flat_map(|(k, p)| record(*k, p)).collect();
            let mut ring = vec![0u8; stream.len().next_power_of_two().max(8)];
            let tail = start * 8;
            for (i, byte) in stream.iter().enumerate() {
                let place = (tail as usize + i) % ring.len();
                ring[place] = *byte;
            }
            let (front, back) = unread(&ring, tail, tail + stream.len() as u64).unwrap();
            prop_assert_eq!(read_all(front, back), (records, None));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            let (records, _) = read_all(front, back);
            prop_assert!(records.len() <= bytes.len() / HEADER_BYTES);
        }
    }
}
