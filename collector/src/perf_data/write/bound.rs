//! Bound on the length of a recording.

use super::sink::Sink;

/// The bound, and what has to be kept free below it.
#[derive(Debug)]
pub(super) struct Bound {
    max_bytes: u64,
    asked_bytes: u64,
    /// Bytes that are still to be written after the last record.
    pub(super) ending_bytes: u64,
    /// A record did not fit: from there on none is written, so that what there is has no gaps.
    pub(super) is_reached: bool,
}

impl Bound {
    /// Nothing is bounded before [`Self::begin`].
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        let asked_bytes = max_bytes.unwrap_or(u64::MAX);
        Self { max_bytes: u64::MAX, asked_bytes, ending_bytes: 0, is_reached: false }
    }

    /// From now on records are written only where they fit in front of an end of `ending_bytes`.
    pub(super) const fn begin(&mut self, ending_bytes: u64) {
        (self.max_bytes, self.ending_bytes) = (self.asked_bytes, ending_bytes);
    }

    /// Writes a record, which makes the end longer by `more_ending_bytes` at most, if it fits.
    pub(super) fn append(&mut self, sink: &mut Sink, bytes: &[u8], more_ending_bytes: u64) -> bool {
        let end = sink.n_bytes() + bytes.len() as u64 + self.ending_bytes + more_ending_bytes;
        self.is_reached |= end > self.max_bytes;
        if !self.is_reached {
            sink.buffer().extend_from_slice(bytes);
        }
        !self.is_reached
    }
}
