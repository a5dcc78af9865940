//! A small cache, to tell which accesses a program would wait for.

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// Lines that share a place.
const N_WAYS: usize = 4;

/// Places: 4 KiB in all, so that these programs, which are small, have misses.
const N_SETS: u64 = 16;

/// Lines that were touched lately, the latest of each set last.
#[derive(Debug, Default)]
pub(crate) struct Cache([Vec<u64>; N_SETS as usize]);

impl Cache {
    /// Touches the line at `address`; true if it was not there.
    pub(crate) fn misses(&mut self, address: u64) -> bool {
        let line = address / LINE_BYTES;
        let set = &mut self.0[(line % N_SETS) as usize];
        let known = set.iter().position(|known| *known == line);
        match known {
            Some(known) => drop(set.remove(known)),
            None if set.len() == N_WAYS => drop(set.remove(0)),
            None => {}
        }
        set.push(line);
        known.is_none()
    }
}

#[test]
fn the_line_that_was_touched_longest_ago_goes_first() {
    let mut cache = Cache::default();
    let mut misses = |line: u64| cache.misses(line * LINE_BYTES * N_SETS);
    assert_eq!([0, 1, 2, 3].map(&mut misses), [true; N_WAYS]);
    assert_eq!([0, 4, 1, 0].map(&mut misses), [false, true, true, false]);
}
