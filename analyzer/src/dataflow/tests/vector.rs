//! Pointers that go through vector registers.

use super::*;

#[test]
fn pointers_go_through_vector_registers_by_their_halves() {
    let parameter = Definition::Parameter { register: RDI };
    // What rax holds at the end.
    let moved = |instructions: &[&[u8]]| {
        let mut code = instructions.concat();
        code.push(0xc3);
        before(&mut graph(&code), instructions.len() as u32, RAX)
    };
    let from_rdi: &[u8] = &[0x66, 0x48, 0x0f, 0x6e, 0xc7]; // movq %rdi,%xmm0
    let load: &[u8] = &[0xf3, 0x0f, 0x6f, 0x07]; // movdqu (%rdi),%xmm0
    let low: &[u8] = &[0x66, 0x48, 0x0f, 0x7e, 0xc0]; // movq %xmm0,%rax
    let half = |lane: u8| [0x66, 0x48, 0x0f, 0x3a, 0x16, 0xc0, lane]; // pextrq $lane,%xmm0,%rax
    let other: &[u8] = &[0x66, 0x48, 0x0f, 0x7e, 0xc8]; // movq %xmm1,%rax
    assert_eq!(moved(&[from_rdi, low]), parameter);
    assert_eq!(moved(&[from_rdi, &half(0)]), parameter);
    assert_ne!(moved(&[from_rdi, &half(1)]), parameter, "movq clears the upper half");
    assert_ne!(moved(&[from_rdi, other]), parameter, "another register");
    // pxor %xmm0,%xmm0
    assert_ne!(moved(&[from_rdi, &[0x66, 0x0f, 0xef, 0xc0], low]), parameter, "overwritten");
    // pxor %xmm1,%xmm1
    assert_eq!(moved(&[from_rdi, &[0x66, 0x0f, 0xef, 0xc9], low]), parameter);
    let loaded_at = |definition| match definition {
        Definition::Loaded { address, n_bytes: 8 } => Some(address.displacement),
        _ => None,
    };
    assert_eq!(loaded_at(moved(&[load, low])), Some(0));
    assert_eq!(loaded_at(moved(&[load, &half(0)])), Some(0));
    assert_eq!(loaded_at(moved(&[load, &half(1)])), Some(8));
    // pshufd $0xee,%xmm0,%xmm1: the upper half goes down.
    assert_eq!(loaded_at(moved(&[load, &[0x66, 0x0f, 0x70, 0xc8, 0xee], other])), Some(8));
    // movdqa %xmm0,%xmm1; movq (%rdi),%xmm1; movhlps %xmm0,%xmm1, each by itself.
    assert_eq!(loaded_at(moved(&[load, &[0x66, 0x0f, 0x6f, 0xc8], other])), Some(0));
    assert_eq!(loaded_at(moved(&[&[0xf3, 0x0f, 0x7e, 0x0f], other])), Some(0));
    assert_eq!(loaded_at(moved(&[load, &[0x0f, 0x12, 0xc8], other])), Some(8));
}

/// The ways to put rdi and rsi into the halves of xmm0.
fn both_in_a_vector() -> [Vec<u8>; 3] {
    let from_rdi = [0x66, 0x48, 0x0f, 0x6e, 0xc7]; // movq %rdi,%xmm0
    let from_rsi = [0x66, 0x48, 0x0f, 0x6e, 0xce]; // movq %rsi,%xmm1
    [
        [&from_rdi[..], &[0x66, 0x48, 0x0f, 0x3a, 0x22, 0xc6, 1]].concat(), // pinsrq $1,%rsi,%xmm0
        [&from_rdi[..], &from_rsi, &[0x66, 0x0f, 0x6c, 0xc1]].concat(), // punpcklqdq %xmm1,%xmm0
        [&from_rdi[..], &from_rsi, &[0x0f, 0x16, 0xc1]].concat(),       // movlhps %xmm1,%xmm0
    ]
}

#[test]
fn pointers_are_stored_by_the_halves_of_vector_registers() {
    let stored = |code: &[&[u8]]| {
        let mut graph = graph(&[&code.concat()[..], &[0xc3]].concat());
        graph.connect().unwrap();
        let of = |store: &value::Store| {
            let value = graph.canonical(store.value);
            (store.address.displacement, graph.definitions[value.0 as usize])
        };
        graph.stores.iter().map(of).collect::<Vec<_>>()
    };
    let parameter = |register| Definition::Parameter { register };
    let both = [(0, parameter(RDI)), (8, parameter(4))];
    for put in both_in_a_vector() {
        let whole = [&put[..], &[0x0f, 0x11, 0x02]]; // movups %xmm0,(%rdx)
        assert_eq!(stored(&whole), both, "{put:x?}");
        let upper = [&put[..], &[0x0f, 0x17, 0x42, 0x10]]; // movhps %xmm0,16(%rdx)
        assert_eq!(stored(&upper), [(16, parameter(4))], "{put:x?}");
        // movhps (%rsi),%xmm0; movups %xmm0,(%rdx)
        let loaded = stored(&[&put[..], &[0x0f, 0x16, 0x06], &[0x0f, 0x11, 0x02]]);
        assert_eq!(loaded[0], both[0]);
        assert!(matches!(loaded[1], (8, Definition::Loaded { .. })), "{loaded:?}");
    }
}

#[test]
fn a_vector_that_is_stored_to_the_frame_is_there_by_its_halves() {
    let kept = |code: &[&[u8]], at: u8| {
        // mov at(%rsp),%rax; ret
        let code = [&code.concat()[..], &[0x48, 0x8b, 0x44, 0x24, at, 0xc3]].concat();
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        before(&mut graph(&code), function.n_instructions() as u32 - 1, RAX)
    };
    let parameter = |register| Definition::Parameter { register };
    let whole: &[u8] = &[0x0f, 0x11, 0x44, 0x24, 0x10]; // movups %xmm0,16(%rsp)
    for put in both_in_a_vector() {
        assert_eq!(kept(&[&put, whole], 16), parameter(RDI), "{put:x?}");
        assert_eq!(kept(&[&put, whole], 24), parameter(4), "{put:x?}");
    }
    let [put, ..] = both_in_a_vector();
    for at in [16, 24, 40] {
        let before = [0x48, 0x89, 0x7c, 0x24, at]; // mov %rdi,at(%rsp)
        assert_eq!(kept(&[&put, &before], at), parameter(RDI));
        // vmovdqu64 %zmm0,(%rsp), whole and what a mask tells of it
        for mask in [0x48, 0x49] {
            let wide = [0x62, 0xf1, 0xfe, mask, 0x7f, 0x04, 0x24];
            let left = kept(&[&put, &before, &wide], at);
            assert_ne!(left, parameter(RDI), "{at} {mask:x}");
        }
    }
}
