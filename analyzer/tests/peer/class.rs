//! C++: classes, bases, references, methods, containers.

use super::{Misses, by_type, names};
use crate::support::program::{Program, has_tool};

fn builds() -> impl Iterator<Item = (Program, String)> {
    let of = [
        ("g++", "-std=c++17 -O2 -gdwarf-5"),
        ("g++", "-std=c++17 -O2 -gdwarf-4 -fno-pie -no-pie -fno-exceptions"),
        ("clang++", "-std=c++17 -O2 -gdwarf-5 -fstandalone-debug -Dnoipa=noinline"),
    ];
    of.into_iter().filter(|(compiler, _)| has_tool(compiler)).map(|(compiler, flags)| {
        (Program::compile(compiler, "peer_classes.cpp", flags), format!("{compiler} {flags}"))
    })
}

const PRICE: &str = "{structure:Item}.{int price}";

/// The peer does not look into classes: no members, no bases, and no pointer that one holds can be
/// followed.
#[test]
fn what_a_class_holds_is_named_and_followed() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for (function, right) in [
            ("_ZNK6Holder5firstEv", &["{class:Holder}.{pointer+structure:Item head}", PRICE][..]),
            ("_ZNK6Holder4sizeEv", &["{class:Holder}.{long n}"]),
            ("_Z8shape_idR6Square", &["{class:Square}.{class:Shape <base>}.{long id}"]),
            ("_ZNK6Square4areaEv", &["{class:Square}.{int side}"]),
            ("_ZN2ns4hitsEl", &["{structure:ns::Registry::Entry}.{long hits}"]),
        ] {
            let named = names(&mut session, &program, function);
            misses.check_all(&named, right, &format!("{function} {build}"));
        }
    }
    misses.none();
}

/// The peer finds what a call returns by the function's name among those outside name spaces and
/// classes.
#[test]
fn what_a_method_returns_has_its_type() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        let named = names(&mut session, &program, "_ZN2ns6lookupERNS_8RegistryEl");
        misses.check_all(&named, &[PRICE], &build);
    }
    misses.none();
}

/// A reference is of an unknown type to the peer, and only at its beginning.
#[test]
fn references_lead_to_their_type() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        let named = names(&mut session, &program, "_Z16set_by_referenceRlO4Item");
        misses.check_all(&named, &["{long first[]}", PRICE], &build);
    }
    misses.none();
}

/// Types of one name in two name spaces are one to the peer.
#[test]
fn types_of_one_name_are_told_apart_by_their_name_space() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for (function, right) in [
            ("_Z5of_nsRN2ns1SE", "{structure:ns::S}.{int b}"),
            ("_Z6of_ns2RN3ns21SE", "{structure:ns2::S}.{int d}"),
        ] {
            let named = names(&mut session, &program, function);
            misses.check_all(&named, &[right], &format!("{function} {build}"));
        }
    }
    misses.none();
}

/// The peer types neither the load of an object's table of virtual methods nor the call through it.
#[test]
fn a_virtual_call_reads_the_object_and_its_table() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        let named = names(&mut session, &program, "_Z9call_areaPK5Shape");
        let [(_, object), (_, table)] = &named[..] else { panic!("{named:?} {build}") };
        let of_object = [
            "{class:Shape}.{pointer+pointer+function _vptr.Shape}",
            "{class:Shape}.{pointer+pointer+function__vtbl_ptr_type _vptr.Shape}",
            "{class:Shape}.{pointer+pointer+function__vtbl_ptr_type _vptr$Shape}",
            "{class:Shape}.{pointer+pointer+function _vptr$Shape}",
        ];
        misses.check(object, &of_object, &build);
        // Whose table it is the object tells at run time: then it has that name
        // (`static_data::what_the_compiler_made_is_named_for_its_type`).
        if !table.starts_with("{class:Shape}.{pointer+function") || !table.ends_with("[]}") {
            misses.0.push(format!("{table} {build}"));
        }
    }
    misses.none();
}

/// What is in a `std::vector`, a map or behind a smart pointer has no type for the peer.
#[test]
fn elements_of_containers_have_their_type() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for function in [
            "_Z9sum_itemsRKSt6vectorI4ItemSaIS0_EE",
            "_Z8nth_itemRSt6vectorI4ItemSaIS0_EEl",
            "_Z12second_priceN9__gnu_cxx17__normal_iteratorIP4ItemSt6vectorIS1_SaIS1_EEEE",
            "_Z5ownedRKSt10unique_ptrI4ItemSt14default_deleteIS0_EE",
            "_Z6sharedRKSt10shared_ptrI4ItemE",
        ] {
            let named = names(&mut session, &program, function);
            let of_container = |name: &str| name.starts_with("{class:std::");
            let rest: Vec<_> = named.into_iter().filter(|(_, name)| !of_container(name)).collect();
            misses.check_all(&rest, &[PRICE], &format!("{function} {build}"));
        }
        let numbers = names(&mut session, &program, "_Z9sum_longsRKSt6vectorIlSaIlEE");
        for (access, name) in &numbers {
            let right = name.starts_with("{class:std::vector<long")
                || name.contains("long") && name.ends_with("[]}");
            if !right {
                misses.0.push(format!("sum_longs {access}: {name} {build}"));
            }
        }
        let price = "{int price}";
        for function in [
            "_Z10sum_hashedRKSt13unordered_mapIl4ItemSt4hashIlESt8equal_toIlESaISt4pairIKlS0_EEE",
            "_Z12first_sortedRKSt3mapIl4ItemSt4lessIlESaISt4pairIKlS0_EEE",
        ] {
            let named = names(&mut session, &program, function);
            let is_price =
                |name: &str| name.ends_with(&format!("{{structure:Item second}}.{price}"));
            if !named.iter().any(|(_, name)| is_price(name)) {
                let all: Vec<_> =
                    named.iter().map(|(access, name)| format!("{access}: {name}")).collect();
                misses.0.push(format!("{function}: {all:?} {build}"));
            }
        }
    }
    misses.none();
}

/// The elements of a table of virtual methods are named after the member that leads to them.
#[test]
fn a_table_of_methods_is_named_after_its_pointer() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        let named = names(&mut session, &program, "_Z9call_areaPK5Shape");
        let [_, (_, table)] = &named[..] else { panic!("{named:?} {build}") };
        let right = [
            "{class:Shape}.{pointer+function _vptr.Shape[]}",
            "{class:Shape}.{pointer+function _vptr$Shape[]}",
            "{class:Shape}.{pointer+function__vtbl_ptr_type _vptr.Shape[]}",
            "{class:Shape}.{pointer+function__vtbl_ptr_type _vptr$Shape[]}",
        ];
        misses.check(table, &right, &build);
    }
    misses.none();
}
