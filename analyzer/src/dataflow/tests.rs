//! The values of code that is written out byte by byte.

mod noting;
mod vector;

use super::*;
use crate::bytes::page::Memory;
use crate::code::image::CodeImage;
use crate::dwarf::code::frame::CfaRule;
use crate::dwarf::code::kept::FunctionScope;
use crate::dwarf::code::passing::Passing;
use crate::dwarf::sample;
use crate::elf::image::ElfImage;
use crate::program::Program;
use crate::types::die::DieRef;
use crate::types::layout::ScalarKind;
use crate::types::sample::{number, scalar, structure};
use crate::types::value_kind::ValueKind;
use crate::x86_64::image_bytes::NoBytes;

const RAX: Place = Place::Register(0);
const RDI: u8 = 5;
const RSP: u16 = 7;

/// The values of straight code at 0x1000, whose frame begins 64 bytes above the stack pointer all the time.
fn graph(code: &[u8]) -> ValueGraph {
    let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
    let rule = FrameRule::Known(CfaRule { register: RSP, offset: 64 });
    values(&function, rule)
}

/// The values of a function that has this rule for its frame all the time.
fn values(function: &FunctionCode, rule: FrameRule) -> ValueGraph {
    let rules = vec![rule; function.n_instructions()];
    ValueGraph::of(function, rules, &CallEffects::default(), Depth::Named).unwrap()
}

/// Finds the definition of what a place holds before an instruction, by its index.
fn before(graph: &mut ValueGraph, at: u32, place: Place) -> Definition {
    let value = graph.before(at, place);
    graph.connect().unwrap();
    let value = graph.canonical(value);
    let kept = match graph.definitions[value.0 as usize] {
        Definition::Reloaded { kept, .. } => graph.canonical(kept),
        _ => value,
    };
    graph.definitions[kept.0 as usize]
}

#[test]
fn a_number_less_something_is_a_number_and_what_a_number_is_taken_from_may_be_an_address() {
    // neg %rsi; mov %rsi,%rax; sub %rdx,%rax; mov %rdx,%rcx; sub %rsi,%rcx; mov %rdx,%r8; sub %r9,%r8; ret
    let code = [
        &[0x48, 0xf7, 0xde, 0x48, 0x89, 0xf0, 0x48, 0x29, 0xd0][..],
        &[0x48, 0x89, 0xd1, 0x48, 0x29, 0xf1, 0x49, 0x89, 0xd0, 0x4d, 0x29, 0xc8, 0xc3],
    ];
    let look = |graph: &mut ValueGraph| [0, 2, 8].map(|it| graph.before(7, Place::Register(it)));
    typed(&code.concat(), look, |typing, [negative, less, distance]| {
        typing.settle();
        assert!(matches!(typing.of(negative), Content::Number(_)));
        assert_eq!(*typing.of(less), Content::Unknown);
        assert_eq!(*typing.of(distance), Content::Distance, "of two addresses, perhaps");
    });
}

#[test]
fn a_slot_is_lost_to_a_write_to_any_of_its_bytes_and_to_no_other() {
    let slot = 24..32;
    // mov %al,disp(%rsp) and so on, by the number of bytes.
    let stores: [(u8, &[u8]); 4] =
        [(1, &[0x88]), (2, &[0x66, 0x89]), (4, &[0x89]), (8, &[0x48, 0x89])];
    for (n_bytes, opcode) in stores {
        for at in 0..48u8 {
            // mov %rdi,24(%rsp)
            let mut code = vec![0x48, 0x89, 0x7c, 0x24, slot.start];
            code.extend_from_slice(opcode);
            code.extend_from_slice(&[0x44, 0x24, at]);
            // mov 24(%rsp),%rax; ret
            code.extend_from_slice(&[0x48, 0x8b, 0x44, 0x24, slot.start, 0xc3]);
            let is_kept =
                before(&mut graph(&code), 3, RAX) == Definition::Parameter { register: RDI };
            let is_apart = (at..at + n_bytes).all(|byte| !slot.contains(&byte));
            assert_eq!(is_kept, is_apart, "{n_bytes} bytes at {at}");
        }
    }
}

/// A structure of 32 bytes: a long, then six ints.
fn element() -> Arc<Layout> {
    let ints = Arc::new(Layout::array_of(number("int", 4), Some(6)));
    structure("element", 32, &[("id", 0, &number("long int", 8)), ("values", 8, &ints)])
}

#[test]
fn steps_are_those_of_the_array_that_an_offset_is_in() {
    let array = Layout::array_of(element(), Some(10));
    for into in (0..320).step_by(4) {
        let is_in_values = into % 32 >= 8;
        assert_eq!(extent::steps_in_array(&array, into, 4), is_in_values, "{into}");
        assert!(extent::steps_in_array(&array, into, 32), "{into}");
        assert!(!extent::steps_in_array(&array, into, 6), "{into}");
    }
}

#[test]
fn a_pointer_to_numbers_is_chosen_only_for_steps_of_whole_ones() {
    let arms = [number("int", 4), scalar("double", 8, ScalarKind::Float)];
    let arms = Arms::new(arms.into_iter().map(|arm| (Arc::clone(&arm.name), arm)));
    let address = Address::of(Origin::Static, Offset::exact(0));
    for step in 0..32 {
        let used = Use { n_bytes: 4, kind: ValueKind::Unknown, step };
        let chosen = arms.chosen(&address, used).map(|(layout, _)| layout.name.to_string());
        let expected = step.is_multiple_of(4).then(|| "int".to_owned());
        assert_eq!(chosen, expected, "by {step}");
    }
    let nothing = [("any".into(), scalar("void", 1, ScalarKind::Opaque))];
    let used = Use { n_bytes: 1, kind: ValueKind::Unknown, step: 0 };
    assert!(Arms::new(nothing.into_iter()).chosen(&address, used).is_none());
}

fn object(layout: &Arc<Layout>, offset: i64, name: Option<&str>) -> Address {
    let name = name.map(|name| PointerName::Variable(name.into()));
    Address::object(Arc::clone(layout), offset, name)
}

#[test]
fn what_the_code_tells_of_an_address_goes_before_what_is_declared_where_it_says_more() {
    let (around, int, void) = (element(), number("int", 4), scalar("void", 1, ScalarKind::Opaque));
    let refined = |made: &Address, said: &Address| {
        fact::refined(Content::Address(made.clone()), Content::Address(said.clone()))
    };
    let declared = object(&int, 0, Some("p"));
    for made in [
        // Where it lies says what it is.
        Address::of(Origin::Static, Offset::exact(0x4000)),
        // Its ints begin after 8 bytes.
        object(&around, 8, None),
    ] {
        assert_eq!(refined(&made, &declared), Content::Address(made.clone()));
    }
    let other = object(&around, 0, None);
    assert_eq!(refined(&other, &declared), Content::Address(declared.clone()), "no int is there");
    let erased = object(&void, 0, Some("p"));
    assert_eq!(refined(&other, &erased), Content::Address(other.clone()), "any pointer is a void");
    // Of one type the code tells how far in, and the declaration what it is called.
    for (made, said, offset) in [(8, 0, 8), (0, 8, 0), (40, 8, 8), (8, 8, 8)] {
        let found = refined(&object(&around, made, None), &object(&around, said, Some("p")));
        assert_eq!(found, Content::Address(object(&around, offset, Some("p"))), "{made}, {said}");
    }
}

#[test]
fn a_register_that_a_loop_leaves_alone_keeps_its_value() {
    // 1000: mov (%rdi),%rax  1003: dec %rsi  1006: jne 1000  1008: ret
    let code = [0x48, 0x8b, 0x07, 0x48, 0xff, 0xce, 0x75, 0xf8, 0xc3];
    for at in 0..4 {
        let kept = before(&mut graph(&code), at, Place::Register(RDI));
        assert_eq!(kept, Definition::Parameter { register: RDI }, "{at}");
    }
    // Twice nested: dec %rsi and jne to itself at 1003, then dec %rdx and jne 1000.
    let nested =
        [0x48, 0x8b, 0x07, 0x48, 0xff, 0xce, 0x75, 0xfb, 0x48, 0xff, 0xca, 0x75, 0xf3, 0xc3];
    for at in 0..6 {
        let kept = before(&mut graph(&nested), at, Place::Register(RDI));
        assert_eq!(kept, Definition::Parameter { register: RDI }, "nested, {at}");
    }
    let counted = before(&mut graph(&code), 0, Place::Register(4));
    assert!(matches!(counted, Definition::Entry { .. }), "two values meet: {counted:?}");
}

#[test]
fn bytes_between_members_are_no_array_of_what_has_one_of_its_own() {
    let array = |element, count| Arc::new(Layout::array_of(element, Some(count)));
    let (items, room) = (array(element(), 4), array(scalar("char", 1, ScalarKind::Byte), 96));
    let layout = structure("table", 224, &[("items", 0, &items), ("room", 128, &room)]);
    assert!(extent::steps_in_array(&layout, 0, 32));
    assert!(!extent::steps_in_array(&layout, 128, 32), "the items are of this size");
    assert!(extent::steps_in_array(&layout, 128, 48), "nothing else is");
    assert!(extent::steps_in_array(&layout, 128, 1));
}

#[test]
fn of_two_views_the_one_that_is_surer_of_the_same_place_goes_first() {
    let around = element();
    let somewhere = Address::of(Origin::Object(Arc::clone(&around)), Offset::exact(0).stepped(4));
    let exact = object(&around, 8, None);
    assert_eq!(address::either(&exact, &somewhere), Some(address::Better::First));
    assert_eq!(address::either(&somewhere, &exact), Some(address::Better::Second));
    let other = object(&scalar("double", 8, ScalarKind::Float), 0, None);
    assert_eq!(address::either(&other, &somewhere), None, "of another type");
    assert_eq!(address::either(&exact, &object(&around, 16, None)), None, "at another place");
}

#[test]
fn half_a_register_keeps_a_number_that_fits_and_nothing_else_whole() {
    let rax = |code: &[u8]| before(&mut graph(&[code, &[0xc3]].concat()), 1, RAX);
    assert_eq!(rax(&[0xb8, 5, 0, 0, 0]), Definition::Constant(5)); // mov $5,%eax
    assert_eq!(rax(&[0x31, 0xc0]), Definition::Constant(0)); // xor %eax,%eax
    assert!(matches!(rax(&[0x8d, 0x47, 0x08]), Definition::Narrowed { .. })); // lea 8(%rdi),%eax
    assert!(matches!(rax(&[0x89, 0xf8]), Definition::Narrowed { .. })); // mov %edi,%eax
    // lea 8(%rdi),%rax
    assert!(matches!(rax(&[0x48, 0x8d, 0x47, 0x08]), Definition::Sum(_)));
}

#[test]
fn a_pointer_to_a_number_may_be_to_a_part_of_something() {
    let bare = |address| Content::Address(address).is_bare_number();
    assert!(bare(object(&number("int", 4), 0, None)));
    assert!(bare(object(&scalar("double", 8, ScalarKind::Float), 0, None)));
    assert!(!bare(object(&element(), 0, None)));
    assert!(!bare(object(&scalar("char", 1, ScalarKind::Byte), 0, None)), "anything is read so");
    assert!(!bare(Address::of(Origin::Static, Offset::exact(0x4000))));
    assert!(!Content::NUMBER.is_bare_number());
}

#[test]
fn whole_elements_further_on_it_is_another_one_of_them() {
    let at_values = || object(&element(), 8, None);
    for by in -96..=96 {
        let moved = at_values().shifted(by);
        // The same member of a later one, or where that begins.
        let is_other = by > 0 && (by % 32 == 0 || (by + 8) % 32 == 0);
        assert_eq!(moved.has(Doubt::Which), is_other, "{by}");
        // Once it is one of many, it stays so.
        assert!(at_values().shifted(32).shifted(by).has(Doubt::Which), "{by}");
        let behind = at_values().doubted(Doubt::Beyond).shifted(by);
        assert!(!behind.has(Doubt::Which), "{by}: no element is there");
    }
}

#[test]
fn elements_that_are_gone_over_contain_what_begins_in_each() {
    let (long, int) = (number("long int", 8), number("int", 4));
    let at = |layout: &Arc<Layout>, offset, step| {
        let offset = Offset::exact(offset).stepped(step);
        Address::of(Origin::Object(Arc::clone(layout)), offset)
    };
    let contains = |offset, step, part: &Arc<Layout>, part_step| {
        at(&element(), offset, step).contains(&at(part, 0, part_step))
    };
    assert!(contains(8, 0, &int, 0), "the first int");
    assert!(!contains(0, 0, &int, 0), "there is the long");
    assert!(contains(8, 4, &int, 0), "each int by itself");
    assert!(!contains(0, 4, &long, 0), "there is one long only");
    assert!(contains(0, 4, &long, 4), "both go on alike");
    assert!(!contains(8, 0, &int, 4), "one place is no array");
    assert!(!at(&int, 0, 4).contains(&at(&element(), 0, 0)), "an int has no parts");
}

#[test]
fn only_of_two_pointers_to_one_type_side_by_side_the_one_behind_ends_a_range() {
    let pointer = |to: usize| {
        let pointee = Some(DieRef { unit: 0, offset: gimli::UnitOffset(to) });
        let layout = Arc::into_inner(scalar("element*", 8, ScalarKind::Pointer)).unwrap();
        Arc::new(Layout { pointee, ..layout })
    };
    let (elements, others, long) = (pointer(16), pointer(32), number("long int", 8));
    // Whether the address of what lies `back` bytes before the pointer at `at` is one of its range's last.
    let is_last = |holder: &Arc<Layout>, at, back: i64| {
        let name = Some(PointerName::Member(Arc::clone(holder), at));
        Address { name, ..object(&element(), -back, None) }.is_last_of_range()
    };
    let range = [("n", 0, &long), ("start", 8, &elements), ("end", 16, &elements)];
    let range = structure("range", 24, &range);
    assert!(is_last(&range, 16, 32) && is_last(&range, 16, 1));
    assert!(!is_last(&range, 16, 0) && !is_last(&range, 16, 33), "behind it, or two before");
    assert!(!is_last(&range, 0, 8), "no pointer");
    let members = [("key", 0, &long), ("size", 8, &long), ("range", 16, &range)];
    assert!(is_last(&structure("holder", 40, &members), 32, 8), "in what it is a part of");
    let one = [("n", 0, &long), ("other", 8, &others), ("one", 16, &elements)];
    assert!(!is_last(&structure("node", 24, &one), 16, 8), "no other pointer to such");
}

#[test]
fn only_what_is_read_is_loaded() {
    let loaded = |code: &[u8]| {
        let graph = graph(&[code, &[0xc3]].concat());
        let definitions = graph.definitions.iter();
        let n_bytes = |definition: &Definition| match definition {
            Definition::Loaded { n_bytes, .. } => Some(*n_bytes),
            _ => None,
        };
        definitions.filter_map(n_bytes).collect::<Vec<u8>>()
    };
    assert_eq!(loaded(&[0x48, 0x8b, 0x47, 0x08]), [8]); // mov 8(%rdi),%rax
    assert_eq!(loaded(&[0x0f, 0xb6, 0x47, 0x08]), [1]); // movzbl 8(%rdi),%eax
    assert!(loaded(&[0x48, 0x8d, 0x47, 0x08]).is_empty()); // lea 8(%rdi),%rax
    assert!(loaded(&[0x0f, 0xae, 0x27]).is_empty()); // xsave (%rdi)
    assert!(loaded(&[0x48, 0x89, 0x47, 0x08]).is_empty()); // mov %rax,8(%rdi)
    assert_eq!(loaded(&[0x48, 0x01, 0x47, 0x08]), [8]); // add %rax,8(%rdi)
    assert_eq!(loaded(&[0x48, 0x87, 0x47, 0x08]), [8]); // xchg %rax,8(%rdi)
}

#[test]
fn fillers_and_prefetches_access_nothing() {
    // nopl (%rdi); nopl 8(%rdi); nopw 8(%rdi,%rsi); prefetcht0 64(%rdi); mov 8(%rdi),%rax; ret
    let code = [
        0x0f, 0x1f, 0x07, 0x0f, 0x1f, 0x47, 0x08, 0x66, 0x0f, 0x1f, 0x44, 0x37, 0x08, 0x0f, 0x18,
        0x4f, 0x40, 0x48, 0x8b, 0x47, 0x08, 0xc3,
    ];
    let graph = graph(&code);
    let accesses: Vec<(i64, u8)> =
        graph.accesses.iter().map(|(_, it)| (it.displacement, it.n_bytes)).collect();
    assert_eq!(accesses, [(8, 8)]);
}

/// Values of code at 0x1000, typed with the debug information of a program that has nothing to do with it.
pub(super) fn typed<V>(
    code: &[u8],
    look: impl FnOnce(&mut ValueGraph) -> V,
    ask: impl FnOnce(&mut Typing<'_, '_>, V),
) {
    let program = Program::c("long.c", "-O2 -g");
    let (mut debug, image) = (sample::info(&program), image(&program));
    let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
    let mut graph = values(&function, FrameRule::Unknown);
    let looked_at = look(&mut graph);
    graph.connect().unwrap();
    let scope = FunctionScope::default();
    let mut around = Surroundings {
        debug: &mut debug,
        image: &image,
        function: &function,
        scope: &scope,
        points_to: &PointsTo::default(),
    };
    let mut typing = Typing::new(&graph, &mut around);
    typing.type_all(&[]);
    ask(&mut typing, looked_at);
}

fn image(program: &Program) -> CodeImage {
    let file = Memory(program.bytes.clone());
    let image = ElfImage::parse(&file).unwrap();
    CodeImage::new(Arc::new(file), image)
}

#[test]
fn a_sum_with_what_may_be_a_pointer_may_be_one_if_that_is_not_scaled() {
    // movzbl (%rdx),%eax; lea (%rax,%rdi),%rcx; lea (%rax,%rdi,8),%r8; mov %rax,%r9; shl $2,%r9;
    // lea (%r9,%rax),%r9; ret
    let code = [
        0x0f, 0xb6, 0x02, 0x48, 0x8d, 0x0c, 0x38, 0x4c, 0x8d, 0x04, 0xf8, 0x49, 0x89, 0xc1, 0x49,
        0xc1, 0xe1, 0x02, 0x4d, 0x8d, 0x0c, 0x01, 0xc3,
    ];
    let look = |graph: &mut ValueGraph| {
        [0, 2, 8, 9].map(|register| graph.before(6, Place::Register(register)))
    };
    typed(&code, look, |typing, values| {
        let [byte, plain, scaled, fivefold] = values.map(|value| typing.of(value).clone());
        assert_eq!(byte, Content::NUMBER);
        assert_eq!(plain, Content::Unknown, "rdi may be a pointer");
        assert_eq!(scaled, Content::NUMBER, "no pointer is multiplied");
        assert_eq!(fivefold, Content::counted(Congruence::stepped(5, 0)), "four times and once");
    });
}

#[test]
fn a_value_that_only_comes_together_with_another_is_not_used() {
    // 1000: test %rsi,%rsi  1003: je 1008  1005: mov %rdi,%rcx  1008: lea 8(%rdx),%rax  100c: ret
    let code = [0x48, 0x85, 0xf6, 0x74, 0x03, 0x48, 0x89, 0xf9, 0x48, 0x8d, 0x42, 0x08, 0xc3];
    let look = |graph: &mut ValueGraph| {
        let joined = graph.before(3, Place::Register(2));
        [joined, graph.parameter(RDI), graph.parameter(1)]
    };
    typed(&code, look, |typing, values| {
        let used = typing.used_values();
        let is_used = values.map(|value| used[typing.graph.canonical(value).0 as usize]);
        assert_eq!(is_used, [false, false, true], "rcx, rdi and rdx");
    });
}

#[test]
fn what_a_function_returns_is_declared() {
    typed(
        &[0xc3],
        |_| (),
        |typing, ()| {
            let functions = sample::entries(typing.around.debug, &[gimli::DW_TAG_subprogram]);
            let returned = functions.into_iter().filter_map(|die| {
                let name = typing.around.debug.name_and_type(die).0?;
                let result = typing.result_of(die);
                let result = result.map(|(layout, passing)| (layout.name.to_string(), passing));
                (&*name == "compute").then_some(result)
            });
            let expected = Some(("long int".to_owned(), Passing::Value));
            assert_eq!(returned.collect::<Vec<_>>(), [expected]);
        },
    );
}

#[test]
fn the_first_instruction_of_a_range_is_in_it() {
    // 1000: mov %rdi,%rax  1003: nop  1004: ret
    let function = FunctionCode::decode(Svma(0x1000), &[0x48, 0x89, 0xf8, 0x90, 0xc3], &NoBytes);
    for (range, expected) in [
        (0x1000..0x1005, Some(0)),
        (0x1001..0x1005, Some(1)),
        (0x1004..0x1005, Some(2)),
        (0x1001..0x1003, None),
        (0x1005..0x1010, None),
    ] {
        assert_eq!(first_in(&function, &range), expected, "{range:x?}");
    }
}

#[test]
fn callers_are_asked_for_what_is_not_known_or_may_be_a_part() {
    // mov 8(%rdi),%rax; mov (%rsi),%rcx; ret
    let code = [0x48, 0x8b, 0x47, 0x08, 0x48, 0x8b, 0x0e, 0xc3];
    let function = Arc::new(FunctionCode::decode(Svma(0x1000), &code, &NoBytes));
    let program = Program::c("long.c", "-O2 -g");
    let (mut debug, image) = (sample::info(&program), image(&program));
    let scope = FunctionScope::default();
    let mut around = Surroundings {
        debug: &mut debug,
        image: &image,
        function: &function,
        scope: &scope,
        points_to: &PointsTo::default(),
    };
    let mut open = |given: Option<Arc<Layout>>| {
        let content = given.map(|layout| Content::Address(object(&layout, 0, None)));
        let given: Vec<Argument> =
            content.into_iter().map(|content| Argument { register: RDI, content }).collect();
        let frames = FrameTable::default();
        let (effects, depth) = (CallEffects::default(), Depth::Named);
        let followed =
            Following::of(&function, &frames, &effects, &mut around, &given, depth).unwrap();
        let mut open = followed.open_parameters();
        open.sort_unstable();
        open
    };
    assert_eq!(open(None), [4, RDI]);
    assert_eq!(open(Some(element())), [4]);
    assert_eq!(open(Some(number("long int", 8))), [4, RDI], "whose number it is is not known");
}
