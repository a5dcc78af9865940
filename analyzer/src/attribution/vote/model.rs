//! A heap that knows what lies where, to hold votes against: objects come, go and come again.

use super::{Lesson, Touch, VotedObject, Votes};
use crate::index::site::PlacedObject;
use crate::types::data_object::{self, Root};
use crate::types::layout::Layout;
pub(super) use crate::types::sample::{number, structure};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const PID: i32 = 7;
pub(super) const HEAP: u64 = 0x5000_0000_0000;
const PAGE: u64 = 4096;

/// A structure of so many longs.
pub(super) fn longs(name: &str, n_longs: u64) -> Arc<Layout> {
    let long = number("long int", 8);
    let names: Vec<String> = (0..n_longs).map(|idx| format!("m{idx}")).collect();
    let members: Vec<_> =
        names.iter().zip(0..).map(|(name, idx)| (name.as_str(), idx * 8, &long)).collect();
    structure(name, n_longs * 8, &members)
}

/// The lesson of an instruction that touched `size` bytes at `offset` through a pointer `p`.
pub(super) fn typed(layout: &Arc<Layout>, offset: u64, size: u64) -> PlacedObject {
    let (object, offset) = data_object::name(layout, Root::Pointer("p"), offset, size).unwrap();
    PlacedObject { object, offset }
}

/// Votes, and the layouts behind the answers.
#[derive(Default)]
pub(super) struct Ballots {
    pub(super) votes: Votes,
    pub(super) time_ns: u64,
}

impl Ballots {
    fn touch(&self, addr: u64, size: u64) -> Touch {
        Touch { pid: PID, time_ns: self.time_ns, addr, size: u32::try_from(size).unwrap() }
    }

    /// A typed instruction touches `size` bytes at `offset` of the object at `start`.
    pub(super) fn teach(&mut self, start: u64, layout: &Arc<Layout>, offset: u64, size: u64) {
        let answer = typed(layout, offset, size);
        let lesson = self.votes.lesson(&answer);
        let touch = self.touch(start + offset, size);
        self.votes.teach(touch, lesson, answer.offset);
    }

    /// Bytes are read there.
    pub(super) fn read_bytes(&mut self, addr: u64) {
        let touch = self.touch(addr, 1);
        self.votes.teach(touch, Lesson::Bytes, 0);
    }

    /// The type and offset that an untyped access is given.
    pub(super) fn find(&mut self, addr: u64, size: u64) -> Option<(String, u64)> {
        let found = self.votes.find(self.touch(addr, size))?;
        Some(self.named(found))
    }

    /// The type and offset of what is around a number that an instruction names.
    pub(super) fn find_around(&mut self, addr: u64, size: u64) -> Option<(String, u64)> {
        let found = self.votes.find_around(self.touch(addr, size))?;
        Some(self.named(found))
    }

    fn named(&self, found: VotedObject) -> (String, u64) {
        assert!(found.votes > 0);
        let name = self.votes.kind(found.kind).layout.name.to_string();
        (name, u64::from(found.offset))
    }
}

/// One thing that happens to a block of the heap.
#[derive(Clone, Debug)]
enum Step {
    /// It is freed, if it is in use, and given to this type.
    Reuse { block: usize, kind: usize },
    /// A typed instruction touches this long of it.
    Typed { block: usize, long: u64 },
    /// An untyped one does.
    Untyped { block: usize, long: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..N_BLOCKS, 0..4usize).prop_map(|(block, kind)| Step::Reuse { block, kind }),
        12 => (0..N_BLOCKS, 0..8u64).prop_map(|(block, long)| Step::Typed { block, long }),
        8 => (0..N_BLOCKS, 0..8u64).prop_map(|(block, long)| Step::Untyped { block, long }),
    ]
}

const N_BLOCKS: usize = 96;

/// Blocks as an allocator cuts them: of one size by page, or mixed, from the end of the one before on.
struct Heap {
    blocks: Vec<Block>,
    kinds: Vec<Arc<Layout>>,
    ballots: Ballots,
    n_named: u64,
    n_wrong: u64,
}

#[derive(Clone, Copy)]
struct Block {
    start: u64,
    size: u64,
    kind: usize,
    /// A typed instruction touched it since it was given out.
    is_known: bool,
}

impl Heap {
    /// Blocks of the sizes of their kinds, `header` bytes apart.
    fn new(kind_of: impl Fn(usize) -> usize, header: u64) -> Self {
        let kinds = vec![longs("a", 3), longs("b", 5), longs("c", 8), longs("d", 5)];
        let mut at = HEAP;
        let blocks = (0..N_BLOCKS).map(|block| {
            let kind = kind_of(block);
            let (start, size) = (at, kinds[kind].size);
            at = (at + size + header).next_multiple_of(if header == 0 { 8 } else { 16 });
            Block { start, size, kind, is_known: false }
        });
        let blocks = blocks.collect();
        Self { blocks, kinds, ballots: Ballots::default(), n_named: 0, n_wrong: 0 }
    }

    fn typed(&mut self, block: usize, long: u64) {
        let Block { start, kind, .. } = self.blocks[block];
        let layout = Arc::clone(&self.kinds[kind]);
        self.ballots.teach(start, &layout, long * 8 % layout.size, 8);
        self.blocks[block].is_known = true;
    }

    /// Names an untyped access, and tells whether the name is right.
    fn untyped(&mut self, block: usize, long: u64) -> Option<bool> {
        let Block { start, kind, .. } = self.blocks[block];
        let layout = &self.kinds[kind];
        let offset = long * 8 % layout.size;
        let (name, into) = self.ballots.find(start + offset, 8)?;
        let is_right = *name == *layout.name && into == offset;
        self.n_named += 1;
        self.n_wrong += u64::from(!is_right);
        Some(is_right)
    }

    /// The same where a typed instruction touched the block since it was given out.
    fn untyped_if_known(&mut self, block: usize, long: u64) -> Option<bool> {
        self.untyped(block, long).filter(|_| self.blocks[block].is_known)
    }

    /// Gives a block to another kind of the same or a smaller size, as an allocator does.
    fn reuse(&mut self, block: usize, kind: usize) {
        let known = &mut self.blocks[block];
        if self.kinds[kind].size <= known.size {
            known.kind = kind;
            known.is_known = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Types mixed in every page, nothing freed: what was voted for is named rightly.
    #[test]
    fn an_object_that_was_voted_for_is_never_misnamed(
        kinds in proptest::collection::vec(0..4usize, N_BLOCKS),
        steps in proptest::collection::vec(step(), 1..600),
    ) {
        let mut heap = Heap::new(|block| kinds[block], 8);
        for step in steps {
            match step {
                Step::Typed { block, long } => heap.typed(block, long),
                Step::Untyped { block, long } => {
                    prop_assert_ne!(heap.untyped_if_known(block, long), Some(false));
                }
                Step::Reuse { .. } => {}
            }
        }
    }

    /// Arrays, each of one type: what lies between voted elements is named rightly too.
    #[test]
    fn an_element_of_an_array_is_never_misnamed(
        kind in 0..4usize,
        steps in proptest::collection::vec(step(), 1..600),
    ) {
        let mut heap = Heap::new(|_| kind, 0);
        for step in steps {
            match step {
                Step::Typed { block, long } => heap.typed(block, long),
                Step::Untyped { block, long } => {
                    prop_assert_ne!(heap.untyped(block, long), Some(false));
                }
                Step::Reuse { .. } => {}
            }
        }
    }

    /// Memory is given to other types, and what is new there is seen by a typed instruction first.
    #[test]
    fn an_object_whose_memory_is_given_to_another_type_is_not_misnamed(
        kinds in proptest::collection::vec(0..4usize, N_BLOCKS),
        steps in proptest::collection::vec(step(), 1..600),
    ) {
        let mut heap = Heap::new(|block| kinds[block], 8);
        for step in steps {
            match step {
                Step::Typed { block, long } => heap.typed(block, long),
                Step::Untyped { block, long } => {
                    prop_assert_ne!(heap.untyped_if_known(block, long), Some(false));
                }
                Step::Reuse { block, kind } => {
                    heap.reuse(block, kind);
                    heap.typed(block, 0);
                }
            }
        }
    }
}

/// Wrong names of a hundred, where types of one size are mixed and no typed instruction need see a
/// block that was given to another: what nothing in the samples tells.
const MAX_WRONG_PERCENT: u64 = 3;

#[test]
fn a_heap_of_mixed_and_recycled_blocks_has_few_wrong_names() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let kinds = proptest::collection::vec(0..4usize, N_BLOCKS);
    let steps = proptest::collection::vec(step(), 2000);
    let (mut n_named, mut n_wrong) = (0, 0);
    for _ in 0..64 {
        let kinds = kinds.new_tree(&mut runner).unwrap().current();
        let mut heap = Heap::new(|block| kinds[block], 8);
        for step in steps.new_tree(&mut runner).unwrap().current() {
            match step {
                Step::Typed { block, long } => heap.typed(block, long),
                Step::Untyped { block, long } => drop(heap.untyped(block, long)),
                Step::Reuse { block, kind } => heap.reuse(block, kind),
            }
        }
        n_named += heap.n_named;
        n_wrong += heap.n_wrong;
    }
    assert!(n_named > 10_000, "{n_named}");
    assert!(n_wrong * 100 <= n_named * MAX_WRONG_PERCENT, "{n_wrong} of {n_named}");
}

#[test]
fn votes_take_a_bounded_number_of_pages() {
    let mut ballots = Ballots::default();
    let layout = longs("a", 3);
    let n_pages = crate::limit::MAX_VOTE_REGIONS as u64 + 100;
    for page in 0..n_pages {
        ballots.teach(HEAP + page * PAGE, &layout, 8, 8);
    }
    assert_eq!(ballots.votes.regions.len(), crate::limit::MAX_VOTE_REGIONS);
    assert_eq!(ballots.votes.of_page.len(), crate::limit::MAX_VOTE_REGIONS);
    let newest = HEAP + (n_pages - 1) * PAGE;
    assert!(ballots.find(newest, 8).is_some(), "the newest is there");
    let by_page: BTreeMap<_, _> = ballots.votes.of_page.iter().collect();
    for (key, idx) in by_page {
        assert_eq!(ballots.votes.regions[*idx as usize].0, *key);
    }
}
