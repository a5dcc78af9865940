//! Survivors of a walk back, weighed without one.

use super::*;
use crate::attribution::choice::{Choice, choose};
use crate::index::site::{TypeAnswer, VariableRole};
use crate::types::value_kind::ValueKind;
use crate::x86_64::access::{AddressOperand, AddressRegister, MemoryAccess, SegmentBase};
use crate::x86_64::trail::Trail;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Registers;
use std::sync::Arc;

/// A trigger, its access, and whether that was at the sampled address.
type Left = (u8, Option<u8>, bool);

fn search(left: &[Left], outside: Entrances) -> Search {
    let survivors = left.iter().map(|(trigger, access, is_confirmed)| Survivor {
        trigger: *trigger,
        access: *access,
        before: PointIdx::SAMPLE,
        is_confirmed: *is_confirmed,
    });
    Search { survivors: survivors.collect(), outside, ..Search::default() }
}

fn left(search: &Search) -> Vec<Left> {
    let survivors = search.survivors.iter();
    survivors.map(|it| (it.trigger, it.access, it.is_confirmed)).collect()
}

/// A sample of an event that says nothing of accesses.
const PLAIN: SampledAccess = SampledAccess { addr: None, access: None, kind: EventKind::Other };

#[test]
fn an_operand_at_the_sampled_address_leaves_no_other_of_its_instruction_and_nothing_silent() {
    let evidence = SampledAccess { addr: Some(Avma(0x1000)), ..PLAIN };
    let all = [(0, Some(0), true), (0, Some(1), false), (1, None, false), (2, Some(0), false)];
    let mut found = search(&all, Entrances::default());
    let expected = Choice::Left { has_return: false, has_rival: false };
    assert_eq!(choose(&mut found, &evidence, 3), expected);
    assert_eq!(left(&found), [(0, Some(0), true), (2, Some(0), false)]);
    // Code that is not seen may have touched the same.
    let outside = Entrances { is_unknown: true, ..Entrances::default() };
    let expected = Choice::Left { has_return: false, has_rival: true };
    assert_eq!(choose(&mut search(&all, outside), &evidence, 3), expected);
}

#[test]
fn what_touches_nothing_is_a_trigger_only_just_before_ip() {
    let all = [(0, None, false), (1, Some(0), false)];
    let mut found = search(&all, Entrances::default());
    assert_eq!(choose(&mut found, &PLAIN, 1), Choice::Unknown(Reason::Unresolvable));
    assert_eq!(choose(&mut found, &PLAIN, 2), Choice::Left { has_return: false, has_rival: false });
    assert_eq!(left(&found), [(1, Some(0), false)]);
    let mut silent = search(&[(4, None, false)], Entrances::default());
    assert_eq!(choose(&mut silent, &PLAIN, 1), Choice::NotMemory(Some(4)));
}

#[test]
fn a_callees_return_is_known_only_where_it_is_the_last_instruction() {
    let outside = Entrances { is_return: true, ..Entrances::default() };
    let found = choose(&mut search(&[], outside), &PLAIN, 1);
    assert_eq!(found, Choice::Left { has_return: true, has_rival: false });
    let found = choose(&mut search(&[], outside), &PLAIN, 2);
    assert_eq!(found, Choice::Unknown(Reason::Blocked));
}

#[test]
fn a_sampled_address_speaks_for_any_round_and_against_one_that_is_known() {
    let rdi = AddressRegister { register: Some(Register::Rdi), dwarf: Some(5), is_32_bit: false };
    let address = AddressOperand {
        base: Some(rdi),
        index: None,
        scale: 1,
        displacement: 0,
        segment: SegmentBase::Flat,
        is_ip_relative: false,
    };
    let memory = MemoryAccess {
        access: Access::Store,
        size: 1,
        role: Role::Operand,
        is_repeated: true,
        kind: ValueKind::Unknown,
        bits: None,
        moved: None,
        address,
    };
    let typed = TypedAccess {
        memory,
        answer: TypeAnswer::Unknown(Reason::Unascertainable),
        frame: Arc::default(),
        variable: VariableRole::Joined,
        is_counted: false,
        live: Arc::default(),
        thread_link: None,
        bytes: None,
        handed: None,
    };
    let mut registers = Registers::default();
    registers.set(Register::Rdi, 0x5000);
    let past = Past {
        trail: Trail {
            nodes: Box::default(),
            reach: 0,
            is_straight: true,
            arrivals: Box::default(),
        },
        triggers: Vec::new(),
        frame: None,
        entry: None,
    };
    let fit = |is_repeated: bool, kind, sampled| {
        let node = Node {
            svma: Svma(0x1000),
            effects: Box::default(),
            written: 0,
            memory: Box::default(),
            round: is_repeated.then(Box::default),
            ways: Box::default(),
            entrances: Entrances::default(),
            is_end: false,
            trigger: Some(0),
        };
        let evidence = SampledAccess { addr: Some(Avma(sampled)), access: None, kind };
        let walk = WalkBack { past: &past, evidence: &evidence, stack: SampledStack::NONE };
        let mut search = Search::default();
        search.points[PointIdx::SAMPLE].sample(&registers, 0, None);
        match search.fit(&walk, &node, &typed, PointIdx::SAMPLE) {
            AccessFit::Yes { is_confirmed } => Some(is_confirmed),
            AccessFit::No | AccessFit::If(_) => None,
        }
    };
    for (is_repeated, kind, elsewhere) in [
        (false, EventKind::Other, None),
        (false, EventKind::PageFault, None),
        (true, EventKind::PageFault, None),
        // It was some rounds further on.
        (true, EventKind::Other, Some(false)),
    ] {
        assert_eq!(fit(is_repeated, kind, 0x5000), Some(true), "{is_repeated} {kind:?}");
        assert_eq!(fit(is_repeated, kind, 0x5100), elsewhere, "{is_repeated} {kind:?}");
    }
}
