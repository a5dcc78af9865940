//! Reads the entries of jump tables, within a budget for the function.

use super::sweep::Sweep;
use crate::limit;
use crate::x86_64::image_bytes::ImageBytes;
use dataspace_proto::address::Svma;

/// Entries that are read at once.
const CHUNK_ENTRIES: usize = 64;

/// The tables of one function.
pub(super) struct Tables<'a> {
    sweep: &'a Sweep<'a>,
    image: &'a dyn ImageBytes,
    /// Addresses in data that the function refers to, in order.
    references: Vec<u64>,
    n_entries_left: usize,
}

impl<'a> Tables<'a> {
    pub(super) fn new(
        sweep: &'a Sweep<'a>,
        image: &'a dyn ImageBytes,
        references: impl Iterator<Item = u64>,
    ) -> Self {
        let mut references: Vec<u64> = references.filter(|at| !sweep.holds(*at)).collect();
        references.sort_unstable();
        references.dedup();
        Self { sweep, image, references, n_entries_left: limit::MAX_TABLE_ENTRIES_READ }
    }

    /// Addresses in data that the function refers to.
    pub(super) fn references(&self) -> &[u64] {
        &self.references
    }

    /// Tells whether the budget is used up, so that targets may be missing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.n_entries_left == 0
    }

    /// Takes work that is no reading from the same budget.
    pub(super) fn charge(&mut self, n_entries: usize) {
        self.n_entries_left = self.n_entries_left.saturating_sub(n_entries);
    }

    /// The pointer at `place`, as the loader leaves it.
    pub(super) fn pointer(&self, place: u64) -> Option<u64> {
        let relocated = self.image.relocated(Svma(place)).map(|svma| svma.0);
        relocated.or_else(|| {
            let bytes = self.image.bytes_at(Svma(place), 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        })
    }

    /// The targets in a table of distances from `anchor`, each of `n_bytes`. Without a guard it
    /// ends where the function's next reference begins.
    pub(super) fn distances(
        &mut self,
        table: u64,
        anchor: u64,
        n_bytes: usize,
        n_entries: Option<u64>,
    ) -> Vec<u64> {
        let next = self.references.partition_point(|reference| *reference <= table);
        let room = self.references.get(next).map(|next| (next - table) / n_bytes as u64);
        let decode = |_: u64, entry: &[u8]| {
            let distance = match entry.try_into() {
                Ok(entry) => i64::from(i32::from_le_bytes(entry)),
                Err(_) => entry.try_into().map_or(0, i64::from_le_bytes),
            };
            anchor.wrapping_add_signed(distance)
        };
        self.read(table, n_bytes, n_entries, room, decode)
    }

    /// The targets in a table of pointers.
    pub(super) fn pointers(&mut self, table: u64, n_entries: Option<u64>) -> Vec<u64> {
        let image = self.image;
        let decode = |place: u64, entry: &[u8]| {
            let relocated = image.relocated(Svma(place)).map(|svma| svma.0);
            relocated.unwrap_or_else(|| entry.try_into().map_or(0, u64::from_le_bytes))
        };
        self.read(table, 8, n_entries, None, decode)
    }

    /// Those entries that are in the function. A table whose length no guard tells ends where an
    /// entry is no instruction of the function; one that stands in the code itself, where what was
    /// decoded so far is no measure, where the first of its targets begins.
    fn read(
        &mut self,
        table: u64,
        entry_bytes: usize,
        n_entries: Option<u64>,
        room: Option<u64>,
        decode: impl Fn(u64, &[u8]) -> u64,
    ) -> Vec<u64> {
        let len = n_entries.or(room).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let len = len.min(limit::MAX_JUMP_TABLE_ENTRIES);
        let is_in_code = self.sweep.holds(table);
        let mut targets = Vec::new();
        let mut first = u64::MAX;
        let mut at = 0;
        while at < len && self.n_entries_left != 0 {
            let n = (len - at).min(CHUNK_ENTRIES);
            let place = |idx: usize| table.wrapping_add((idx * entry_bytes) as u64);
            let bytes = self.image.bytes_at(Svma(place(at)), n * entry_bytes).unwrap_or_default();
            self.charge(n);
            let entries = bytes.chunks_exact(entry_bytes).zip(at..);
            let n_before = at;
            for (entry, idx) in entries {
                let target = decode(place(idx), entry);
                let is_own = match n_entries {
                    Some(_) => self.sweep.holds(target),
                    None if is_in_code => self.sweep.holds(target) && place(idx) < first,
                    None => self.sweep.index_of(target).is_some(),
                };
                if target > table {
                    first = first.min(target);
                }
                if is_own {
                    targets.push(target);
                } else if n_entries.is_none() {
                    return targets;
                }
                at = idx + 1;
            }
            if at - n_before < n {
                break;
            }
        }
        targets
    }
}
