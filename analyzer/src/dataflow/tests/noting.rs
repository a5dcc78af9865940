//! What is noted of the variables that values are, or are parts of.

use super::*;
use crate::dwarf::code::kept::LocatedVariable;
use crate::dwarf::variable::location::VariablePart;

#[test]
fn a_variable_around_a_value_is_noted_so_far_from_it_as_often_as_there_is_room() {
    let look = |graph: &mut ValueGraph| [graph.parameter(RDI), graph.parameter(4)];
    typed(&[0xc3], look, |typing, [rdi, rsi]| {
        let code = 0x1000..0x1001;
        let node = element();
        let noted = |typing: &Typing<'_, '_>, value| {
            let value = typing.graph.canonical(value);
            let parts = typing.contents.parts.get(&value).map_or(&[][..], Vec::as_slice);
            parts.iter().map(|part| part.offset).collect::<Vec<i64>>()
        };
        let text = scalar("char", 1, ScalarKind::Byte);
        typing.note_part(rdi, &object(&text, 0, None), 24, &code);
        assert_eq!(noted(typing, rdi), [0; 0], "anything is passed on as bytes");
        // 24 bytes from the value is the variable's byte 8.
        typing.note_part(rdi, &object(&node, 8, None), 24, &code);
        assert_eq!(noted(typing, rdi), [16]);
        for at in 0..limit::MAX_FACTS_A_VALUE as i64 + 3 {
            let (layout, code) = (Arc::clone(&node), code.clone());
            typing.add_part(rsi, Part { offset: at, layout, code, is_copy: false });
        }
        let all: Vec<i64> = (0..limit::MAX_FACTS_A_VALUE as i64).collect();
        assert_eq!(noted(typing, rsi), all);
    });
}

#[test]
fn only_a_variable_that_is_all_of_what_was_read_is_noted_as_a_copy_of_it() {
    // mov 8(%rdi),%rax; ret
    let code = [0x48, 0x8b, 0x47, 0x08, 0xc3];
    let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
    let program = Program::c("blank.c", "-O2 -g");
    let (mut debug, image) = (sample::info(&program), image(&program));
    let mut one_of = |tags: &[gimli::DwTag], size| {
        let dies = sample::entries(&mut debug, tags);
        dies.into_iter().find(|die| debug.layout(*die).size == size).unwrap()
    };
    let [long, int] = [8, 4].map(|size| one_of(&[gimli::DW_TAG_base_type], size));
    let aggregate = one_of(&[gimli::DW_TAG_structure_type, gimli::DW_TAG_union_type], 8);
    // The first is one to anything.
    let pointer = *sample::entries(&mut debug, &[gimli::DW_TAG_pointer_type]).last().unwrap();
    let whole = VariablePlace::Register(0);
    let aside = |offset| VariablePlace::Value { base: Base::Register(0), offset };
    let cases = [
        (long, whole, 0, true),
        (pointer, whole, 0, true),
        (pointer, aside(0), 0, true),
        (int, whole, 0, false),
        (aggregate, whole, 0, false),
        (long, whole, 8, false),
        (pointer, aside(16), 0, false),
    ];
    let variable = |(type_die, place, offset, _)| LocatedVariable {
        name: "variable".into(),
        type_die,
        depth: 1,
        places: Box::new([(0x1004..0x1005, VariablePart { place, offset, n_bytes: None })]),
    };
    let variables = cases.map(variable).into();
    let scope = FunctionScope { variables, ..FunctionScope::default() };
    let mut around = Surroundings {
        debug: &mut debug,
        image: &image,
        function: &function,
        scope: &scope,
        points_to: &PointsTo::default(),
    };
    let mut graph = values(&function, FrameRule::Unknown);
    let rdi = graph.parameter(RDI);
    let (said, _) = find_facts(&mut graph, &around);
    graph.connect().unwrap();
    assert_eq!(said.iter().map(|said| said.variable).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    for said in said {
        let mut typing = Typing::new(&graph, &mut around);
        typing.read_facts(vec![said]);
        let parts = typing.contents.parts.get(&graph.canonical(rdi));
        let copies: Vec<i64> = parts.into_iter().flatten().map(|part| part.offset).collect();
        let expected = if cases[said.variable].3 { &[8][..] } else { &[] };
        assert_eq!(copies, expected, "{:?}", cases[said.variable]);
    }
}

#[test]
fn a_variable_at_a_sum_of_registers_is_found_by_any_code_that_computes_it() {
    // imul $24,%rsi,%rsi; lea (%rdi,%rsi),%rax; ret
    let code = [0x48, 0x6b, 0xf6, 0x18, 0x48, 0x8d, 0x04, 0x37, 0xc3];
    let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
    let program = Program::c("blank.c", "-O2 -g");
    let (mut debug, image) = (sample::info(&program), image(&program));
    let structures = sample::entries(&mut debug, &[gimli::DW_TAG_structure_type]);
    let type_die = structures.into_iter().find(|die| debug.layout(*die).size != 0).unwrap();
    let sum =
        |scale, is_place| VariablePlace::Sum { base: 5, index: 4, scale, offset: 0, is_place };
    let variable = |place| LocatedVariable {
        name: "variable".into(),
        type_die,
        depth: 1,
        places: Box::new([(0x1000..0x1009, VariablePart { place, offset: 0, n_bytes: None })]),
    };
    let variables = [sum(24, true), sum(8, true), sum(23, true)].map(variable).into();
    let scope = FunctionScope { variables, ..FunctionScope::default() };
    let mut around = Surroundings {
        debug: &mut debug,
        image: &image,
        function: &function,
        scope: &scope,
        points_to: &PointsTo::default(),
    };
    let mut graph = values(&function, FrameRule::Unknown);
    let rax = graph.before(2, RAX);
    let (said, summed) = find_facts(&mut graph, &around);
    graph.connect().unwrap();
    let is_it = |said: &Said| graph.canonical(said.value) == graph.canonical(rax);
    assert_eq!(
        said.iter().map(|said| (said.variable, is_it(said))).collect::<Vec<_>>(),
        [(0, true)]
    );
    let mut typing = Typing::new(&graph, &mut around);
    typing.read_facts(said);
    let parts = &typing.contents.parts[&graph.canonical(rax)];
    assert_eq!(
        parts.iter().map(|part| (part.offset, part.is_copy)).collect::<Vec<_>>(),
        [(0, false)]
    );
    // An operand scales by no more than eight.
    typing.read_sums(&summed);
    assert_eq!(typing.contents.sums.iter().map(|(it, _)| it.sum).collect::<Vec<_>>(), [(5, 4, 8)]);
}

#[test]
fn what_is_said_of_the_sum_of_two_values_is_true_of_them_elsewhere() {
    // 1000: mov (%rdi,%rsi,8),%rax  1004: mov 8(%rdi,%rsi,8),%rcx  1009: inc %rsi  100c: mov (%rdi,%rsi,8),%rax  1010: ret
    let code = [
        &[0x48, 0x8b, 0x04, 0xf7, 0x48, 0x8b, 0x4c, 0xf7, 0x08][..],
        &[0x48, 0xff, 0xc6, 0x48, 0x8b, 0x04, 0xf7, 0xc3],
    ];
    let function = FunctionCode::decode(Svma(0x1000), &code.concat(), &NoBytes);
    let program = Program::c("blank.c", "-O2 -g");
    let (mut debug, image) = (sample::info(&program), image(&program));
    let structures = sample::entries(&mut debug, &[gimli::DW_TAG_structure_type]);
    let type_die = structures.into_iter().find(|die| debug.layout(*die).size != 0).unwrap();
    let place = VariablePlace::Sum { base: 5, index: 4, scale: 8, offset: 0, is_place: true };
    let variable = LocatedVariable {
        name: "variable".into(),
        type_die,
        depth: 1,
        places: Box::new([(0x1000..0x1004, VariablePart { place, offset: 0, n_bytes: None })]),
    };
    let scope = FunctionScope { variables: [variable].into(), ..FunctionScope::default() };
    let mut around = Surroundings {
        debug: &mut debug,
        image: &image,
        function: &function,
        scope: &scope,
        points_to: &PointsTo::default(),
    };
    let mut graph = values(&function, FrameRule::Unknown);
    let (_, summed) = find_facts(&mut graph, &around);
    graph.connect().unwrap();
    let mut typing = Typing::new(&graph, &mut around);
    typing.read_sums(&summed);
    typing.settle();
    let contents = typing.end().contents;
    let flow = Dataflow::keep(&function, &graph, contents, Vec::new());
    let is_known = |svma| flow.summed(Svma(svma), (5, 4, 8)).is_some();
    let known = [0x1000, 0x1004, 0x1009, 0x100c].map(is_known);
    assert_eq!(known, [true, true, true, false], "rsi is another value then");
    assert!(flow.summed(Svma(0x1004), (5, 4, 4)).is_none());
}
