//! Steps back over arithmetic on bytes, held to the same arithmetic done forwards.

use super::*;
use crate::x86_64::effect;
use dataspace_proto::register::Register::{Rax, Rcx, Rdx, Rflags};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

const CARRY: u64 = 1;
const PARITY: u64 = 1 << 2;
const ADJUST: u64 = 1 << 4;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
const OF_RESULT: u64 = PARITY | ZERO | SIGN;
const ALL: u64 = CARRY | OF_RESULT | ADJUST | OVERFLOW;

const VALUES: [u8; 14] = [0, 1, 2, 7, 8, 15, 16, 0x55, 0x7f, 0x80, 0x81, 0xaa, 0xf0, 0xff];

/// Result of an instruction on `al` and `cl`.
struct Done {
    code: Vec<u8>,
    result: u8,
    /// The status flags behind it, and those of them that it defines.
    flags: u64,
    defined: u64,
    /// The bits of the old `al` that the result tells.
    told: u8,
}

fn flag(bit: u64, is_set: bool) -> u64 {
    if is_set { bit } else { 0 }
}

/// PF, ZF and SF of a result (SDM volume 1, section 3.4.3.1).
fn of_result(result: u8) -> u64 {
    flag(PARITY, result.count_ones().is_multiple_of(2))
        | flag(ZERO, result == 0)
        | flag(SIGN, result.cast_signed() < 0)
}

fn of_sum(a: u8, b: u8) -> u64 {
    of_result(a.wrapping_add(b))
        | flag(CARRY, u16::from(a) + u16::from(b) > 0xff)
        | flag(ADJUST, a % 16 + b % 16 > 15)
        | flag(OVERFLOW, a.cast_signed().checked_add(b.cast_signed()).is_none())
}

fn of_difference(a: u8, b: u8) -> u64 {
    of_result(a.wrapping_sub(b))
        | flag(CARRY, a < b)
        | flag(ADJUST, a % 16 < b % 16)
        | flag(OVERFLOW, a.cast_signed().checked_sub(b.cast_signed()).is_none())
}

/// Lists what each instruction makes of `al` and `cl`.
fn done(a: u8, b: u8) -> Vec<Done> {
    let logical = ALL & !ADJUST;
    let step = ALL & !CARRY;
    let mut all = Vec::new();
    let mut add = |code: &[u8], result, flags, defined, told| {
        all.push(Done { code: code.to_vec(), result, flags, defined, told });
    };
    add(&[0x00, 0xc8], a.wrapping_add(b), of_sum(a, b), ALL, 0xff);
    add(&[0x28, 0xc8], a.wrapping_sub(b), of_difference(a, b), ALL, 0xff);
    add(&[0x38, 0xc8], a, of_difference(a, b), ALL, 0xff);
    add(&[0x20, 0xc8], a & b, of_result(a & b), logical, b);
    add(&[0x08, 0xc8], a | b, of_result(a | b), logical, !b);
    add(&[0x30, 0xc8], a ^ b, of_result(a ^ b), logical, 0xff);
    add(&[0x84, 0xc8], a, of_result(a & b), logical, 0xff);
    add(&[0xfe, 0xc0], a.wrapping_add(1), of_sum(a, 1), step, 0xff);
    add(&[0xfe, 0xc8], a.wrapping_sub(1), of_difference(a, 1), step, 0xff);
    add(&[0xf6, 0xd8], a.wrapping_neg(), of_difference(0, a), ALL, 0xff);
    add(&[0xf6, 0xd0], !a, 0, 0, 0xff);
    for n in 1..8 {
        let (left, right) = (a << n, a >> n);
        let arithmetic = (a.cast_signed() >> n).cast_unsigned();
        let (low, high) = (0xff >> n, 0xff << n);
        add(&[0xc0, 0xe0, n], left, of_result(left), OF_RESULT, low);
        add(&[0xc0, 0xe8, n], right, of_result(right), OF_RESULT, high);
        add(&[0xc0, 0xf8, n], arithmetic, of_result(arithmetic), OF_RESULT, high);
        add(&[0xc0, 0xc0, n], a.rotate_left(n.into()), 0, 0, 0xff);
        add(&[0xc0, 0xc8, n], a.rotate_right(n.into()), 0, 0, 0xff);
    }
    all
}

/// The state before an instruction that left these registers.
fn undone(code: &[u8], left: &[(Register, u64)]) -> Result<State, Contradiction> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let mut registers = Registers::default();
    for (register, value) in left {
        registers.set(*register, *value);
    }
    let mut state = State::sampled(&registers, 0, None);
    state.undo(&effect::effects(&instruction, &mut InstructionInfoFactory::new()))?;
    Ok(state)
}

/// The known bits of `al` before an instruction that left `al`, `cl` and the flags like this.
fn before(code: &[u8], al: u8, cl: u8, flags: u64) -> Result<(u8, u8), Contradiction> {
    let state = undone(code, &[(Rax, al.into()), (Rcx, cl.into()), (Rflags, flags)])?;
    let part = RegisterPart { width_bits: 8, ..RegisterPart::whole(Rax) };
    let (value, known) = state.bits(part);
    Ok((value as u8, known as u8))
}

#[test]
fn a_result_tells_all_that_it_says_of_the_first_operand() {
    for (a, b) in VALUES.iter().flat_map(|a| VALUES.iter().map(move |b| (*a, *b))) {
        for Done { code, result, flags, told, .. } in done(a, b) {
            let found = before(&code, result, b, flags);
            assert_eq!(found, Ok((a & told, told)), "{code:x?} of {a:#x}, {b:#x}");
        }
    }
}

#[test]
fn flags_that_an_instruction_cannot_have_left_contradict_it() {
    for (a, b) in VALUES.iter().flat_map(|a| VALUES.iter().map(move |b| (*a, *b))) {
        for Done { code, result, flags, defined, .. } in done(a, b) {
            for bit in [CARRY, PARITY, ADJUST, ZERO, SIGN, OVERFLOW] {
                // Shifts and rotations define these, too, and nothing is made of it.
                if code[0] == 0xc0 && bit & (CARRY | OVERFLOW) != 0 {
                    continue;
                }
                let can_be = before(&code, result, b, flags ^ bit).is_ok();
                let context = format!("{code:x?} of {a:#x}, {b:#x}: flag {bit:#x}");
                assert_eq!(can_be, defined & bit == 0, "{context}");
            }
        }
    }
}

#[test]
fn a_result_that_an_instruction_cannot_have_left_contradicts_it() {
    for (result, b) in VALUES.iter().flat_map(|a| VALUES.iter().map(move |b| (*a, *b))) {
        let check = |code: &[u8], can_be| {
            let found = before(code, result, b, of_result(result)).is_ok();
            assert_eq!(found, can_be, "{code:x?} left {result:#x} with {b:#x}");
        };
        check(&[0x20, 0xc8], result & !b == 0);
        check(&[0x08, 0xc8], result & b == b);
        for n in 1..8 {
            check(&[0xc0, 0xe0, n], result.trailing_zeros() >= n.into());
            check(&[0xc0, 0xe8, n], result.leading_zeros() >= n.into());
        }
    }
}

const WIDE: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x8000,
    0xff80,
    0xffff_8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ff80,
    0xffff_ffff,
    0xffff_ffff_8000_0000,
    0xffff_ffff_ffff_ff80,
    1 << 63,
    u64::MAX,
];

/// Function that an instruction applies to a value.
type Made = fn(u64) -> u64;

/// Moves to rax that extend, without the byte that tells where from: movzbl, movsbl, movsbq, movzwl, movswq, movslq.
const EXTENDING: [(&[u8], Made); 6] = [
    (&[0x0f, 0xb6], |from| u64::from(from as u8)),
    (&[0x0f, 0xbe], |from| u64::from(i32::from(from as i8).cast_unsigned())),
    (&[0x48, 0x0f, 0xbe], |from| i64::from(from as i8).cast_unsigned()),
    (&[0x0f, 0xb7], |from| u64::from(from as u16)),
    (&[0x48, 0x0f, 0xbf], |from| i64::from(from as i16).cast_unsigned()),
    (&[0x48, 0x63], |from| i64::from(from as i32).cast_unsigned()),
];

/// Last bytes of an [`EXTENDING`] move.
const FROM_RCX: u8 = 0xc1;
const FROM_MEMORY_AT_RCX: u8 = 0x01;

#[test]
fn a_number_that_was_extended_is_told_and_nothing_else_can_be_left() {
    // rax to itself: cwde, cdqe; to rdx: cdq, cqo.
    let own: [(&[u8], Made); 2] = [
        (&[0x98], |from| u64::from(i32::from(from as i16).cast_unsigned())),
        (&[0x48, 0x98], |from| i64::from(from as i32).cast_unsigned()),
    ];
    let spread: [(&[u8], Made); 2] = [
        (&[0x99], |from| if (from as i32) < 0 { 0xffff_ffff } else { 0 }),
        (&[0x48, 0x99], |from| if from.cast_signed() < 0 { u64::MAX } else { 0 }),
    ];
    for (left, other) in WIDE.iter().flat_map(|left| WIDE.iter().map(move |it| (*left, *it))) {
        let check = |code: &[u8], registers: &[(Register, u64)], can_be| {
            let found = undone(code, registers).is_ok();
            assert_eq!(found, can_be, "{code:x?} left {left:#x} from {other:#x}");
        };
        for (code, made) in EXTENDING {
            let code = &[code, &[FROM_RCX]].concat();
            check(code, &[(Rax, left), (Rcx, other)], left == made(other));
            // What can be left of any value extends itself.
            check(code, &[(Rax, left)], left == made(left));
        }
        for (code, made) in own {
            check(code, &[(Rax, left)], left == made(left));
        }
        for (code, made) in spread {
            check(code, &[(Rdx, left), (Rax, other)], left == made(other));
        }
    }
    // movzbl %cl,%eax with nothing known of rcx.
    let state = undone(&[0x0f, 0xb6, 0xc1], &[(Rax, 0x5a)]);
    let cl = RegisterPart { width_bits: 8, ..RegisterPart::whole(Rcx) };
    assert_eq!(state.map(|state| (state.part(cl), state.get(Rcx))), Ok((Some(0x5a), None)));
}

#[test]
fn a_condition_that_was_set_is_what_the_flags_say() {
    for left in 0..=0xff {
        for zero in [0, ZERO] {
            // sete %al
            let found = undone(&[0x0f, 0x94, 0xc0], &[(Rax, left), (Rflags, zero)]);
            assert_eq!(found.is_ok(), left == u64::from(zero != 0), "{left:#x} {zero:#x}");
            assert!(found.is_err() || found.is_ok_and(|state| state.get(Rax).is_none()));
        }
    }
}

#[test]
fn a_comparison_with_what_is_not_known_may_leave_any_flags() {
    // cmp (%rcx),%al; cmp %dl,%al; test %dl,%al but for CF and OF, which it clears.
    let compared: [(&[u8], u64); 3] =
        [(&[0x3a, 0x01], 0), (&[0x38, 0xd0], 0), (&[0x84, 0xd0], CARRY | OVERFLOW)];
    for (code, clear) in compared {
        for flags in (0..64).map(|set: u64| {
            let bits = [CARRY, PARITY, ADJUST, ZERO, SIGN, OVERFLOW].into_iter().enumerate();
            bits.map(|(idx, bit)| flag(bit, set >> idx & 1 != 0)).sum::<u64>()
        }) {
            let state = undone(code, &[(Rax, 0x80), (Rflags, flags)]);
            assert_eq!(state.is_ok(), flags & clear == 0, "{code:x?} left {flags:#x}");
            assert_eq!(state.ok().and_then(|state| state.get(Rax)).unwrap_or(0x80), 0x80);
        }
    }
}

#[test]
fn only_what_was_touched_for_certain_cannot_be_where_no_memory_is() {
    let touches: [(&[u8], bool); 5] = [
        (&[0x48, 0x8b, 0x41, 0x08], true),        // mov 8(%rcx),%rax
        (&[0x48, 0x8d, 0x41, 0x08], false),       // lea 8(%rcx),%rax
        (&[0x0f, 0x18, 0x49, 0x08], false),       // prefetcht0 8(%rcx)
        (&[0x0f, 0x1f, 0x41, 0x08], false),       // nopl 8(%rcx)
        (&[0xc4, 0xe2, 0x71, 0x2c, 0x01], false), // vmaskmovps (%rcx),%xmm1,%xmm0
    ];
    for (code, is_touched) in touches {
        let left = |rcx: u64| undone(code, &[(Rax, rcx.wrapping_add(8)), (Rcx, rcx)]);
        assert!(left(0x7000_0000).is_ok(), "{code:x?}");
        assert_eq!(left(0).is_err(), is_touched, "{code:x?} of the lowest page");
        assert_eq!(left(1 << 63).is_err(), is_touched, "{code:x?} of the kernel's half");
    }
}

#[test]
fn a_load_that_extends_leaves_nothing_but_what_its_bytes_make() {
    for (code, made) in EXTENDING {
        let code = &[code, &[FROM_MEMORY_AT_RCX]].concat();
        for left in WIDE.into_iter().chain([0x100, 0x1_0000, 0x1_0000_0000]) {
            let found = undone(code, &[(Rax, left)]).is_ok();
            assert_eq!(found, left == made(left), "{code:x?} left {left:#x}");
        }
    }
}

#[test]
fn a_number_in_the_instruction_is_of_the_operands_width() {
    // add $-1, add $5 and or $-8 to al, ax, eax and rax.
    let prefixes: [(&[u8], u32); 4] =
        [(&[0x80], 8), (&[0x66, 0x83], 16), (&[0x83], 32), (&[0x48, 0x83], 64)];
    for (prefix, width) in prefixes {
        let mask = u64::MAX >> (64 - width);
        let check = |rest: &[u8], left: u64, expected: Result<u64, Contradiction>| {
            let code = [prefix, rest].concat();
            let found = undone(&code, &[(Rax, left & mask)]).map(|state| {
                let part = RegisterPart { width_bits: width, ..RegisterPart::whole(Rax) };
                state.bits(part).0
            });
            assert_eq!(found, expected, "{code:x?} left {left:#x}");
        };
        check(&[0xc0, 0xff], 6, Ok(7));
        check(&[0xc0, 0x05], 7, Ok(2));
        check(&[0xc8, 0xf8], u64::MAX, Ok(7));
        check(&[0xc8, 0xf8], 7, Err(Contradiction));
    }
    // add $5,%ah
    let state = undone(&[0x80, 0xc4, 0x05], &[(Rax, 0x0742)]).unwrap();
    assert_eq!(state.get(Rax).map(|rax| rax & 0xffff), Some(0x0242));
}

#[test]
fn flags_that_are_written_in_a_way_that_is_not_followed_may_have_been_any() {
    // imul %rcx,%rax; popcnt %rcx,%rax; and mov $1,%eax, which leaves them all.
    let codes: [(&[u8], bool); 3] = [
        (&[0x48, 0x0f, 0xaf, 0xc1], false),
        (&[0xf3, 0x48, 0x0f, 0xb8, 0xc1], false),
        (&[0xb8, 0x01, 0, 0, 0], true),
    ];
    let left = FlagSet::of_rflags(ZERO);
    for (code, is_kept) in codes {
        let flags = undone(code, &[(Rax, 1), (Rflags, ZERO)]).unwrap().flags();
        assert_eq!(flags == left, is_kept, "{code:x?}");
        assert_eq!(flags.and(left), left, "{code:x?}: those that are there now are among them");
    }
}

#[test]
fn the_threads_own_address_is_told_by_what_was_read_of_it() {
    const BASE: u64 = 0x7000_0000_1000;
    // mov %fs:0,%rax
    let code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    let instruction = Decoder::new(64, &code, DecoderOptions::NONE).decode();
    let effects = effect::effects(&instruction, &mut InstructionInfoFactory::new());
    let before = |rax: Option<u64>, known: Option<u64>| {
        let mut registers = Registers::default();
        if let Some(rax) = rax {
            registers.set(Rax, rax);
        }
        let mut state = State::sampled(&registers, 0, known);
        state.undo(&effects)?;
        Ok(state.thread_base())
    };
    assert_eq!(before(Some(BASE), None), Ok(Some(BASE)));
    assert_eq!(before(Some(BASE), Some(BASE)), Ok(Some(BASE)));
    assert_eq!(before(Some(BASE), Some(BASE + 64)), Err(Contradiction), "that of another thread");
    assert_eq!(before(None, Some(BASE)), Ok(Some(BASE)));
    assert_eq!(before(None, None), Ok(None));
}

#[test]
fn nothing_is_left_of_registers_that_are_not_known_any_more() {
    let mut registers = Registers::default();
    registers.set(Rax, 1);
    registers.set(Rflags, ALL);
    let state = State::sampled(&registers, 0x1000, Some(0x2000)).without_registers();
    assert_eq!((state.get(Rax), state.flags()), (None, FlagSet::ANY));
    assert_eq!(state, State::sampled(&Registers::default(), 0x1000, Some(0x2000)));
}
