//! The rules of voting, one by one.

use super::model::{Ballots, HEAP, PID, longs, number, structure};
use super::{SECOND_NS, Touch};
use crate::types::layout::{Layout, ScalarKind};
use crate::types::sample::scalar;
use std::sync::Arc;

fn found(name: &str, offset: u64) -> Option<(String, u64)> {
    Some((name.to_owned(), offset))
}

#[test]
fn one_vote_names_an_access_that_fits_and_two_any() {
    let mut ballots = Ballots::default();
    let node = longs("node", 3);
    ballots.teach(HEAP, &node, 8, 8);
    assert_eq!(ballots.find(HEAP + 16, 8), found("node", 16));
    assert_eq!(ballots.find(HEAP + 12, 4), None, "half a member");
    assert_eq!(ballots.find(HEAP, 0), None, "an access of unknown size");
    assert_eq!(ballots.find(HEAP + 24, 8), None, "behind the object");
    assert_eq!(ballots.find(HEAP - 8, 8), None, "before the object");
    ballots.teach(HEAP, &node, 0, 8);
    assert_eq!(ballots.find(HEAP + 12, 4), found("node", 12));
    assert_eq!(ballots.find(HEAP, 0), found("node", 0));
}

#[test]
fn an_object_reaches_into_the_next_page() {
    let mut ballots = Ballots::default();
    let node = longs("node", 4);
    let start = HEAP + 4096 - 16;
    ballots.teach(start, &node, 24, 8);
    assert_eq!(ballots.find(start, 8), found("node", 0));
    assert_eq!(ballots.find(start + 16, 8), found("node", 16));
    // Something else that begins in the second page takes its place.
    let other = longs("other", 2);
    ballots.teach(HEAP + 4096, &other, 0, 8);
    assert_eq!(ballots.find(start + 16, 8), None, "changed memory needs more votes");
    assert_eq!(ballots.find(start, 8), None);
}

#[test]
fn an_object_of_many_pages_is_known_where_it_was_touched() {
    let mut ballots = Ballots::default();
    let table = longs("table", 2000);
    ballots.teach(HEAP + 8, &table, 9000, 8);
    assert_eq!(ballots.find(HEAP + 8 + 9008, 8), found("table", 9008));
    assert_eq!(ballots.find(HEAP + 8, 8), None);
}

#[test]
fn another_type_wins_only_after_more_votes() {
    let mut ballots = Ballots::default();
    let (one, other) = (longs("one", 3), longs("other", 3));
    for _ in 0..5 {
        ballots.teach(HEAP, &one, 0, 8);
    }
    assert_eq!(ballots.find(HEAP, 8), found("one", 0));
    ballots.teach(HEAP, &other, 0, 8);
    assert_eq!(ballots.find(HEAP, 8), None, "the new one is on trial");
    for _ in 0..3 {
        ballots.teach(HEAP, &other, 8, 8);
    }
    assert_eq!(ballots.find(HEAP, 8), found("other", 0));
}

#[test]
fn memory_that_changes_all_the_time_is_not_named() {
    let mut ballots = Ballots::default();
    let (one, other) = (longs("one", 3), longs("other", 3));
    for round in 0..100 {
        let kind = if round % 2 == 0 { &one } else { &other };
        ballots.teach(HEAP, kind, 0, 8);
        ballots.teach(HEAP, kind, 8, 8);
        let named = ballots.find(HEAP, 8);
        assert!(round == 0 || named.is_none(), "{round}: {named:?}");
    }
}

#[test]
fn a_container_wins_over_its_member() {
    let link = structure(
        "link",
        16,
        &[("next", 0, &number("long int", 8)), ("prev", 8, &number("long int", 8))],
    );
    let task = structure("task", 40, &[("id", 0, &number("long int", 8)), ("link", 16, &link)]);
    for member_first in [true, false] {
        let mut ballots = Ballots::default();
        if member_first {
            ballots.teach(HEAP + 16, &link, 0, 8);
            assert_eq!(ballots.find(HEAP + 24, 8), found("link", 8));
        }
        ballots.teach(HEAP, &task, 0, 8);
        for _ in 0..4 {
            ballots.teach(HEAP + 16, &link, 8, 8);
        }
        assert_eq!(ballots.find(HEAP + 24, 8), found("task", 24), "{member_first}");
        assert_eq!(ballots.find(HEAP, 8), found("task", 0), "{member_first}");
    }
    // A link where the structure has none is something else.
    let mut ballots = Ballots::default();
    ballots.teach(HEAP, &task, 0, 8);
    ballots.teach(HEAP + 8, &link, 0, 8);
    assert_eq!(ballots.find(HEAP, 8), None);
    assert_eq!(ballots.find(HEAP + 8, 8), None);
}

#[test]
fn elements_are_named_between_elements_only() {
    let mut ballots = Ballots::default();
    let pair = longs("pair", 2);
    for element in [2, 3, 7] {
        ballots.teach(HEAP + element * 16, &pair, 0, 8);
    }
    assert_eq!(ballots.find(HEAP + 5 * 16 + 8, 8), found("pair", 8));
    assert_eq!(ballots.find(HEAP + 5 * 16 + 4, 4), None, "half a member");
    assert_eq!(ballots.find(HEAP + 5 * 16 + 8, 16), None, "beyond its end");
    assert_eq!(ballots.find(HEAP + 16, 8), None, "before the first");
    assert_eq!(ballots.find(HEAP + 8 * 16, 8), None, "behind the last");
    // Another object among them, and it is no array.
    ballots.teach(HEAP + 9 * 16, &longs("triple", 3), 0, 8);
    assert_eq!(ballots.find(HEAP + 5 * 16 + 8, 8), None);
}

#[test]
fn blocks_that_do_not_touch_need_more_neighbours() {
    let pair = longs("pair", 2);
    let teach = |ballots: &mut Ballots, blocks: &[u64]| {
        for block in blocks {
            ballots.teach(HEAP + block * 32, &pair, 0, 8);
        }
    };
    let mut ballots = Ballots::default();
    teach(&mut ballots, &[0, 1, 5]);
    assert_eq!(ballots.find(HEAP + 3 * 32, 8), None);
    teach(&mut ballots, &[2, 4, 8]);
    assert_eq!(ballots.find(HEAP + 3 * 32, 8), found("pair", 0));
    assert_eq!(ballots.find(HEAP + 3 * 32 + 16, 8), None, "the header between two");
    // Out of step with the others: no common distance is left.
    ballots.teach(HEAP + 7 * 32 + 8, &pair, 0, 8);
    assert_eq!(ballots.find(HEAP + 3 * 32, 8), None);
}

#[test]
fn scalars_are_named_in_a_run_of_their_own() {
    let mut ballots = Ballots::default();
    let double = scalar("double", 8, ScalarKind::Float);
    for idx in [10, 14, 12] {
        ballots.teach(HEAP + idx * 8, &double, 0, 8);
    }
    assert_eq!(ballots.find(HEAP + 13 * 8, 8), found("double", 0));
    assert_eq!(ballots.find(HEAP + 9 * 8, 8), None, "before the first");
    assert_eq!(ballots.find(HEAP + 15 * 8, 8), None, "behind the last");
    assert_eq!(ballots.find(HEAP + 13 * 8, 4), None, "half of one");
    ballots.teach(HEAP + 40 * 8, &double, 0, 8);
    assert_eq!(ballots.find(HEAP + 30 * 8, 8), None, "too far from both");
    ballots.teach(HEAP + 13 * 8, &number("long int", 8), 0, 8);
    assert_eq!(ballots.find(HEAP + 12 * 8, 8), None, "not of one type");
}

#[test]
fn a_run_of_numbers_speaks_against_elements_only_where_they_have_others() {
    let (long, double) = (number("long int", 8), scalar("double", 8, ScalarKind::Float));
    let members = [("x", 0, &double), ("id", 8, &long), ("y", 16, &double), ("z", 24, &double)];
    let body = structure("body", 32, &members);
    let near: &[u64] = &[0, 1, 2, 6, 7, 8];
    // No two in one page of 128, and no common distance but their size.
    let far: &[u64] = &[0, 131, 260, 641, 770, 903];
    for (elements, at) in [(near, 4), (far, 451)] {
        let start = HEAP + at * 32;
        let with_run = |offsets: &[u64]| {
            let mut ballots = Ballots::default();
            for element in elements {
                ballots.teach(HEAP + element * 32, &body, 8, 8);
            }
            for offset in offsets {
                ballots.teach(start + offset, &double, 0, 8);
            }
            (ballots.find_around(start + 16, 8), ballots.find_around(start + 24, 8))
        };
        assert_eq!(with_run(&[]), (found("body", 16), found("body", 24)), "{at}");
        assert_eq!(with_run(&[16]), (found("body", 16), found("body", 24)), "{at}");
        assert_eq!(with_run(&[24, 16]), (found("body", 16), found("body", 24)), "{at}");
        assert_eq!(with_run(&[8]), (None, None), "a double where the body has none, {at}");
        assert_eq!(with_run(&[0, 8, 16, 24]), (None, None), "one more than it has, {at}");
        assert_eq!(with_run(&[16, 24, 32]), (None, None), "beyond its end, {at}");
    }
}

#[test]
fn a_number_read_out_of_an_object_does_not_unmake_it() {
    let mut ballots = Ballots::default();
    let node = longs("node", 3);
    ballots.teach(HEAP, &node, 0, 8);
    ballots.teach(HEAP + 8, &number("long int", 8), 0, 8);
    assert_eq!(ballots.find(HEAP + 8, 8), found("node", 8), "a member by its own pointer");
    ballots.teach(HEAP + 8, &scalar("double", 8, ScalarKind::Float), 0, 8);
    assert_eq!(ballots.find(HEAP, 8), None, "in doubt");
    for _ in 0..4 {
        ballots.teach(HEAP, &node, 0, 8);
    }
    assert_eq!(ballots.find(HEAP, 8), found("node", 0));
}

#[test]
fn bytes_raise_doubt_where_the_object_has_none() {
    let byte = scalar("char", 1, ScalarKind::Byte);
    let text = structure("text", 16, &[("tag", 0, &byte), ("n", 8, &number("long int", 8))]);
    let mut ballots = Ballots::default();
    ballots.teach(HEAP, &text, 8, 8);
    ballots.read_bytes(HEAP);
    assert_eq!(ballots.find(HEAP + 8, 8), found("text", 8));
    ballots.read_bytes(HEAP + 9);
    assert_eq!(ballots.find(HEAP + 8, 8), None);
    ballots.teach(HEAP, &text, 8, 8);
    assert_eq!(ballots.find(HEAP + 8, 8), found("text", 8));
}

#[test]
fn votes_age() {
    let mut ballots = Ballots::default();
    let node = longs("node", 3);
    ballots.teach(HEAP, &node, 0, 8);
    ballots.time_ns += u64::from(crate::limit::MAX_VOTE_AGE_S) * SECOND_NS;
    assert_eq!(ballots.find(HEAP, 8), found("node", 0));
    ballots.time_ns += SECOND_NS;
    assert_eq!(ballots.find(HEAP, 8), None);
}

#[test]
fn votes_end_with_the_memory_and_the_process() {
    let node = longs("node", 3);
    let far = HEAP + (1 << 30);
    let fresh = || {
        let mut ballots = Ballots::default();
        ballots.teach(HEAP, &node, 0, 8);
        ballots.teach(far, &node, 0, 8);
        ballots
    };
    let mut ballots = fresh();
    ballots.votes.forget_process(PID);
    assert_eq!((ballots.find(HEAP, 8), ballots.find(far, 8)), (None, None));
    let mut ballots = fresh();
    ballots.votes.forget_range(PID, HEAP, HEAP + 4096);
    assert_eq!((ballots.find(HEAP, 8), ballots.find(far, 8)), (None, found("node", 0)));
    let mut ballots = fresh();
    ballots.votes.forget_range(PID, HEAP, far);
    assert_eq!((ballots.find(HEAP, 8), ballots.find(far, 8)), (None, found("node", 0)));
    let mut ballots = fresh();
    ballots.votes.forget_range(PID, far, far + 4096);
    assert_eq!((ballots.find(HEAP, 8), ballots.find(far, 8)), (found("node", 0), None));
    let mut ballots = fresh();
    let other = Touch { pid: PID + 1, time_ns: 0, addr: HEAP, size: 8 };
    assert_eq!(ballots.votes.find(other), None, "another process has other memory");
}

#[test]
fn votes_at_the_ends_of_the_address_space_are_harmless() {
    let mut ballots = Ballots::default();
    let node = longs("node", 3);
    for start in [0, u64::MAX - 24, u64::MAX - 23, u64::MAX - 4096] {
        ballots.teach(start, &node, 0, 8);
        ballots.find(start, 8);
        ballots.find(start.wrapping_add(8), u64::from(u32::MAX));
    }
    ballots.find(u64::MAX, 8);
    ballots.find(0, 1);
}

#[test]
fn an_element_far_from_others_is_named_where_a_member_begins() {
    let node = longs("node", 8);
    let mut ballots = Ballots::default();
    // One in each of six pages, so that no page alone tells what lies between.
    for element in [0, 65, 131, 260, 321, 387] {
        ballots.teach(HEAP + element * 64, &node, 8, 8);
    }
    let start = HEAP + 200 * 64;
    assert_eq!(ballots.find(start + 8, 8), found("node", 8));
    assert_eq!(ballots.find(start + 8, 16), found("node", 8), "two members in a vector register");
    assert_eq!(ballots.find(start + 12, 16), None, "wide, and begins inside a member");
    assert_eq!(ballots.find(start + 8, 4), None, "half a member");
    assert_eq!(ballots.find(start + 56, 16), None, "over the end");
}

#[test]
fn an_object_of_just_a_page_is_known_in_all_of_it() {
    let mut ballots = Ballots::default();
    let page = longs("page", 512);
    ballots.teach(HEAP + 8, &page, 4088, 8);
    assert_eq!(ballots.find(HEAP + 8, 8), found("page", 0));
    assert_eq!(ballots.find(HEAP + 4096, 8), found("page", 4088));
}

#[test]
fn what_is_too_large_is_not_voted_for() {
    let long = number("long_int", 8);
    let most = u64::from(crate::limit::MAX_VOTED_BYTES);
    let sized = |size| structure("large", size, &[("key", 0, &long), ("n", 8, &long)]);
    for (size, expected) in [(most, found("large", 8)), (most + 8, None), (2 * most, None)] {
        let mut ballots = Ballots::default();
        ballots.teach(HEAP, &sized(size), 8, 8);
        assert_eq!(ballots.find(HEAP + 8, 8), expected, "{size}");
    }
    // An array without a length: how far it reaches is told by what touches it.
    let rest = Arc::new(Layout::array_of(Arc::clone(&long), None));
    let open = structure("open", 8, &[("n", 0, &long), ("rest", 8, &rest)]);
    for (offset, expected) in [(most - 8, found("open", most - 8)), (most, None), (most + 8, None)]
    {
        let mut ballots = Ballots::default();
        ballots.teach(HEAP, &open, offset, 8);
        assert_eq!(ballots.find(HEAP + offset, 8), expected, "{offset}");
    }
}

#[test]
fn what_was_long_settled_is_voted_for_anew_after_a_doubt() {
    let mut ballots = Ballots::default();
    let node = longs("node", 3);
    for _ in 0..1000 {
        ballots.teach(HEAP, &node, 0, 8);
    }
    ballots.read_bytes(HEAP + 1);
    assert_eq!(ballots.find(HEAP, 8), None);
    ballots.teach(HEAP, &node, 0, 8);
    assert_eq!(ballots.find(HEAP, 8), found("node", 0), "at once");
}
