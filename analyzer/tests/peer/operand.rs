//! Operands of every form: two registers, any mnemonic, calls and pushes through memory, narrow
//! addresses, gathers.

use super::{HEAP, Misses, by_hand, by_type, labels};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{R8, Rdi, Rdx, Rsi};

/// The peer reads the text of a disassembler and knows a hundred mnemonics; others, most of SSE and
/// AVX among them, have no operand for it. A call through memory it takes for one of the stack.
#[test]
fn every_mnemonic_has_its_operands() {
    let program = by_hand();
    let at = labels(&program, "at_touch_");
    let mut misses = Misses::default();
    let mut session = by_type(&program);
    let key = "{structure:node}.{long key}";
    let next = "{structure:node}.{pointer+structure:node next}";
    let real = "{structure:node}.{double real}";
    let table = "{structure:node}.{array[4]:long table}";
    for (label, right) in [
        ("float_to_double", "{structure:other}.{float w}"),
        ("int_to_double", "{structure:node}.{int x}"),
        ("long_to_double", key),
        ("double_to_long", real),
        ("packed_add", table),
        ("packed_multiply", table),
        ("wide_add", real),
        ("broadcast", real),
        ("wide_store", table),
        ("fused", real),
        ("high_half", real),
        ("inserted", next),
        ("big_endian", key),
        ("checksum", key),
        ("counted", key),
        ("extracted", key),
        ("exchanged", key),
        ("locked", key),
        ("old_load", real),
        ("old_store", key),
        ("compared", next),
        ("called", next),
        ("jumped", next),
        ("pushed", next),
        // Two members at once, and more than a member: the structure is what is touched.
        ("pair_exchanged", "{structure:node}"),
        ("widest_store", "{structure:node}"),
    ] {
        let line = session.exact(at[label], &with(&[(Rdi, HEAP), (Rsi, HEAP)]));
        misses.check(object(&line), &[right], label);
    }
    misses.none();
}

/// The peer reads the first register of an operand twice: a pointer in the second is not seen, and
/// what the other register counts is ignored.
#[test]
fn the_second_register_of_an_operand_may_be_the_pointer() {
    let program = by_hand();
    let ip = labels(&program, "at_touch_")["second_register"];
    let mut misses = Misses::default();
    let mut session = by_type(&program);
    for (bytes, right) in [
        (0, "{structure:node}.{int x}"),
        (4, "{structure:node}.{int y}"),
        (8, "{structure:node}.{array[4]:long table}"),
    ] {
        let line = session.exact(ip, &with(&[(Rdi, HEAP), (R8, bytes)]));
        misses.check(object(&line), &[right], &format!("{bytes}"));
        assert_eq!(line.addr, Some(HEAP + 24 + bytes));
    }
    misses.none();
}

/// The peer has no answer for the address modes of 4 bytes. A pointer of which only the low half
/// counts is none any more, so instruction and type say nothing; the address does.
#[test]
fn an_address_of_four_bytes_is_looked_up() {
    let program = by_hand();
    let at = labels(&program, "at_touch_");
    let placed = program.truth("&placed");
    assert!(placed < 1 << 32, "a program at fixed addresses is in the low 4 GiB");
    let mut session = Session::new(&program);
    let line = session.exact(at["narrow_long"], &with(&[(Rsi, placed | 7 << 32)]));
    assert_eq!(object(&line), "{structure:other}.{long z}");
    assert_eq!(line.addr, Some(placed + 16), "the upper half does not count");
    let line = session.exact(at["narrow_address"], &with(&[(Rdi, HEAP)]));
    let low = (HEAP & 0xffff_ffff) + 24;
    assert_eq!((object(&line), line.addr), ("undetermined", Some(low)), "not where p points at");
    let line = session.exact(at["narrow_address"], &with(&[(Rdi, 1 << 20)]));
    assert_eq!(object(&line), "{structure:node}.{int x}", "the same address in both widths");
}

/// The peer does not know gathers and scatters. Their indices are in no sample; what they gather is
/// what the base points at.
#[test]
fn a_gather_takes_elements_of_what_its_base_points_at() {
    let program = by_hand();
    let at = labels(&program, "at_touch_");
    let mut misses = Misses::default();
    let mut session = by_type(&program);
    for label in ["gathered", "gathered_widely", "scattered"] {
        let line = session.exact(at[label], &with(&[(Rdx, HEAP), (Rdi, HEAP)]));
        misses.check(object(&line), &["{long r[]}"], label);
        assert_eq!(line.addr, None, "{label}");
    }
    // Steps of 8 bytes within structures of 64 tell no member.
    let line = session.exact(at["gathered_member"], &with(&[(Rdx, HEAP), (Rdi, HEAP)]));
    let right = ["{structure:node}", "undetermined", "unidentified", "register_loss"];
    misses.check(object(&line), &right, "gathered_member");
    misses.none();
}

/// The peer leaves repeated string instructions without a type. Where one stands in the middle of
/// its work the register has moved, so that a member would be a guess.
#[test]
fn a_repeated_string_store_is_in_the_object_and_at_no_certain_member() {
    let program = by_hand();
    let ip = labels(&program, "at_touch_")["string_store"];
    let mut session = by_type(&program);
    for done in [0, 8, 16] {
        let line = session.exact(ip, &with(&[(Rdi, HEAP + done)]));
        let right = ["{structure:node}", "undetermined", "unidentified"];
        assert!(right.contains(&object(&line)), "{}", object(&line));
    }
}
