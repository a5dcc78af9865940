//! Records as they will be written, until their turn in time has come.
//!
//! The session's own queue decides when that is, in what order, and whether a record is the
//! target's at all; each record is found here by its time and by whose it is. So a recording holds
//! what a live view would have got, in the same order.

use dataspace_proto::record::Record;

/// Event of a record, so that of several of one time the right one is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A sample of the open event with this number in the session.
    Sample(u32),
    /// A mapping, a name, a birth or a death of this thread.
    Mmap(i32),
    Comm(i32),
    Fork(i32),
    Exit(i32),
    /// The session has no use for it, the recording does.
    Nobody,
}

impl Owner {
    pub(super) fn of(source: u32, record: &Record) -> Self {
        match record {
            Record::Sample(_) => Self::Sample(source),
            Record::Mmap(mmap) => Self::Mmap(mmap.tid),
            Record::Comm(comm) => Self::Comm(comm.tid),
            Record::Fork(fork) => Self::Fork(fork.tid),
            Record::Exit(exit) => Self::Exit(exit.tid),
            _ => Self::Nobody,
        }
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    bytes: Vec<u8>,
    places: Vec<WaitingRecord>,
    n_added: u64,
    /// The first place whose turn has not come.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct WaitingRecord {
    time_ns: u64,
    /// Order of arrival, so that equal times keep it.
    arrival: u64,
    owner: Owner,
    start: usize,
    n_bytes: usize,
    is_taken: bool,
}

impl Waiting {
    /// Adds the record that `fill` appends.
    pub(super) fn add(&mut self, time_ns: u64, owner: Owner, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        fill(&mut self.bytes);
        let n_bytes = self.bytes.len() - start;
        let arrival = self.n_added;
        self.n_added += 1;
        self.places.push(WaitingRecord {
            time_ns,
            arrival,
            owner,
            start,
            n_bytes,
            is_taken: false,
        });
    }

    /// Lets what was added be taken from now on, in the order of time.
    pub(super) fn put_in_order(&mut self) {
        self.places.sort_unstable_by_key(|place| (place.time_ns, place.arrival));
        self.next = 0;
    }

    /// The record of `owner` at `time_ns`; what nobody owns goes to `pass` before it.
    pub(super) fn take(
        &mut self,
        time_ns: u64,
        owner: Owner,
        pass: impl FnMut(&[u8]),
    ) -> Option<&[u8]> {
        self.pass(|place| place.time_ns < time_ns, pass);
        let at_that_time = self.places[self.next..].iter_mut();
        let mut at_that_time = at_that_time.take_while(|place| place.time_ns == time_ns);
        let place = at_that_time.find(|place| place.owner == owner && !place.is_taken)?;
        place.is_taken = true;
        self.bytes.get(place.start..place.start + place.n_bytes)
    }

    /// Nothing up to `until_ns` will be asked for any more.
    pub(super) fn forget(&mut self, until_ns: u64, pass: impl FnMut(&[u8])) {
        self.pass(|place| place.time_ns <= until_ns, pass);
        self.places.drain(..self.next);
        self.next = 0;
        let n_dead = self.places.iter().map(|place| place.start).min().unwrap_or(self.bytes.len());
        // Moving less than what was moved out costs no more than that did.
        if n_dead * 2 >= self.bytes.len() {
            self.bytes.drain(..n_dead);
            self.places.iter_mut().for_each(|place| place.start -= n_dead);
        }
    }

    fn pass(&mut self, is_over: impl Fn(&WaitingRecord) -> bool, mut pass: impl FnMut(&[u8])) {
        while let Some(place) = self.places.get(self.next).filter(|place| is_over(place)) {
            if place.owner == Owner::Nobody
                && let Some(bytes) = self.bytes.get(place.start..place.start + place.n_bytes)
            {
                pass(bytes);
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_one_time_each_finds_its_own() {
        let mut waiting = Waiting::default();
        let mut add = |time_ns, owner, byte: u8| waiting.add(time_ns, owner, |to| to.push(byte));
        add(20, Owner::Sample(1), 1);
        add(10, Owner::Nobody, 2);
        add(20, Owner::Sample(2), 3);
        add(20, Owner::Mmap(1), 4);
        add(15, Owner::Exit(9), 5);
        add(30, Owner::Sample(1), 6);
        waiting.put_in_order();
        let mut passed = Vec::new();
        let pass = |bytes: &[u8]| passed.extend_from_slice(bytes);
        assert_eq!(waiting.take(20, Owner::Mmap(1), pass), Some(&[4][..]));
        assert_eq!(waiting.take(20, Owner::Sample(2), |_| {}), Some(&[3][..]));
        assert_eq!(waiting.take(20, Owner::Sample(2), |_| {}), None, "it was taken");
        waiting.forget(20, |_| {});
        assert_eq!(passed, [2]);
        waiting.put_in_order();
        assert_eq!(waiting.take(30, Owner::Sample(1), |_| {}), Some(&[6][..]));
        waiting.forget(30, |_| {});
        assert!(waiting.bytes.is_empty() && waiting.places.is_empty());
    }

    proptest! {
        /// Whatever the rounds, each record comes out as it went in.
        #[test]
        fn bytes_stay_with_their_records(
            rounds in prop::collection::vec(prop::collection::vec(0u64..100, 0..20), 1..8),
        ) {
            let mut waiting = Waiting::default();
            let mut expected = std::collections::BTreeMap::new();
            let mut n_added = 0u32;
            for (round, times) in rounds.iter().enumerate() {
                for time in times {
                    let time_ns = 100 * round as u64 + time;
                    let bytes = vec![n_added as u8; 1 + n_added as usize % 5];
                    waiting.add(time_ns, Owner::Sample(n_added), |to| to.extend(&bytes));
                    expected.insert((time_ns, n_added), bytes);
                    n_added += 1;
                }
                waiting.put_in_order();
                let until_ns = 100 * round as u64;
                let later = expected.split_off(&(until_ns + 1, 0));
                for ((time_ns, number), bytes) in std::mem::replace(&mut expected, later) {
                    let taken = waiting.take(time_ns, Owner::Sample(number), |_| {});
                    prop_assert_eq!(taken, Some(&bytes[..]));
                }
                waiting.forget(until_ns, |_| {});
            }
            prop_assert_eq!(waiting.places.len(), expected.len());
        }
    }
}
