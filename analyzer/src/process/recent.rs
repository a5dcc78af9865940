//! Recent answers to samples: found again at once, without the trees and tables that know them.

use crate::process::table::DataObjectAt;
use dataspace_proto::address::Avma;
use dataspace_proto::memory::MemorySegment;

/// Ranges of data that are remembered: 3 KiB.
const N_RANGES: usize = 64;

/// Addresses within so many bytes share a place among the ranges.
const RANGE_SHIFT: u32 = 16;

/// Answers, each in the one place that its key has: the latest one stays. All are dropped when
/// what they were made from has changed.
#[derive(Clone, Debug)]
pub(crate) struct Places<T, const N: usize> {
    places: Box<[Option<T>; N]>,
    n_changes: u64,
}

impl<T: Copy, const N: usize> Default for Places<T, N> {
    fn default() -> Self {
        Self { places: Box::new([None; N]), n_changes: 0 }
    }
}

impl<T: Copy, const N: usize> Places<T, N> {
    /// The place of a key, if nothing has changed since, else that place after it was emptied.
    pub(crate) fn at(&mut self, key: u64, n_changes: u64) -> &mut Option<T> {
        if self.n_changes != n_changes {
            self.n_changes = n_changes;
            self.forget();
        }
        // The golden ratio's bits spread what differs in a few (Knuth, volume 3, section 6.4).
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = mixed as usize % N;
        &mut self.places[place]
    }

    #[cold]
    pub(crate) fn forget(&mut self) {
        self.places.fill(None);
    }
}

impl<K: Copy + PartialEq, V: Copy, const N: usize> Places<(K, V), N> {
    /// The answer to what has this `key`, if it is the one that its place has; `near` is what chooses the place.
    pub(crate) fn find(&mut self, near: u64, key: K, n_changes: u64) -> Option<V> {
        let (known, answer) = self.at(near, n_changes).as_ref()?;
        (*known == key).then_some(*answer)
    }

    pub(crate) fn keep(&mut self, near: u64, key: K, n_changes: u64, answer: V) {
        *self.at(near, n_changes) = Some((key, answer));
    }
}

/// Addresses of one process for which the answer is the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSpan {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) answer: DataObjectAt,
    /// Kind of memory that they are; `None` where nothing is mapped.
    pub(crate) segment: Option<MemorySegment>,
}

/// Memory that samples touched lately.
#[derive(Debug, Default)]
pub(crate) struct RecentData(Places<(i32, DataSpan), N_RANGES>);

impl RecentData {
    /// The remembered span that `avma` is in. Lent: to copy it takes as long as to find it.
    #[inline]
    pub(crate) fn find(&mut self, pid: i32, avma: Avma, n_changes: u64) -> Option<&DataSpan> {
        let (of, span) = self.0.at(avma.0 >> RANGE_SHIFT, n_changes).as_ref()?;
        (*of == pid && (span.start..span.end).contains(&avma.0)).then_some(span)
    }

    pub(crate) fn keep(&mut self, pid: i32, avma: Avma, n_changes: u64, span: DataSpan) {
        *self.0.at(avma.0 >> RANGE_SHIFT, n_changes) = Some((pid, span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_in_its_process_and_span_until_something_changes() {
        let mut recent = RecentData::default();
        let addr = Avma(0x7f12_3456_7890);
        let answer = DataObjectAt::None;
        let span = DataSpan { start: addr.0 - 16, end: addr.0 + 16, answer, segment: None };
        recent.keep(7, addr, 1, span);
        for (offset, expected) in
            [(-17, None), (-16, Some(answer)), (0, Some(answer)), (15, Some(answer)), (16, None)]
        {
            let at = Avma(addr.0.wrapping_add_signed(offset));
            assert_eq!(recent.find(7, at, 1).map(|span| span.answer), expected, "{offset}");
            assert!(recent.find(8, at, 1).is_none(), "another process");
        }
        assert!(recent.find(7, addr, 2).is_none(), "something else is mapped");
        assert!(recent.find(7, addr, 1).is_none(), "and it stays forgotten");
    }
}
