//! What is in registers: writes that end a type, ways that meet, pointers that count, places that
//! debug information computes.

use super::{HEAP, Misses, by_hand, by_type, labels};
use crate::support::session::{Session, object, with};
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Register::{R9, R10, Rax, Rbx, Rcx, Rdi, Rsi, Rsp};

const REAL: &str = "{structure:node}.{double real}";
const OTHER: &str = "{structure:other}.{long z}";

/// Whether an answer is a reason instead of a name.
fn is_reason(name: &str) -> bool {
    Reason::ALL.iter().any(|reason| reason.name() == name)
}

/// The peer goes on with the old type of a register that `lea` of a static, `cmov`, `pop`, `xchg` or
/// any instruction outside a short list has overwritten, and names a member of it.
#[test]
fn whatever_writes_to_a_register_ends_its_type() {
    let program = by_hand();
    let mut session = by_type(&program);
    let mut misses = Misses::default();
    let kills = labels(&program, "at_kill_");
    assert!(kills.len() >= 40, "{}", kills.len());
    for (kill, ip) in kills {
        let line = session.exact(ip, &with(&[(Rax, HEAP)]));
        let name = object(&line);
        match kill.as_str() {
            "lea_static" | "pop_other" | "xchg_other" => misses.check(name, &[OTHER], &kill),
            _ if !is_reason(name) => misses.0.push(format!("{kill}: {name}")),
            _ => {}
        }
    }
    misses.none();
}

/// The peer knows copies by `mov` only: a pointer that `xchg`, `push` and `pop` or `cmov` moved has
/// no type, or that of what was in the register before.
#[test]
fn a_pointer_that_was_exchanged_or_pushed_keeps_its_type() {
    let program = by_hand();
    let mut session = by_type(&program);
    let mut misses = Misses::default();
    let at = labels(&program, "at_moved_by_");
    for (way, register, right) in [
        ("exchange", Rsi, REAL),
        ("stack", R9, "{structure:node}.{int y}"),
        ("choice", R10, "{structure:node}.{pointer+structure:node next}"),
    ] {
        let line = session.exact(at[way], &with(&[(register, HEAP)]));
        misses.check(object(&line), &[right], way);
    }
    misses.none();
}

/// The peer follows one way only, the shortest, to an instruction: what other ways leave in the
/// register it does not see.
#[test]
fn ways_that_meet_must_agree() {
    let program = by_hand();
    let mut session = by_type(&program);
    let mut misses = Misses::default();
    let at = labels(&program, "at_");
    let mut ask = |label: &str| {
        let line = session.exact(at[label], &with(&[(Rax, HEAP)]));
        object(&line).to_owned()
    };
    for label in ["meet_unlike", "meet_apart", "loop_unlike"] {
        let name = ask(label);
        if !is_reason(&name) && name != "{structure:node}" {
            misses.0.push(format!("{label}: {name}"));
        }
    }
    misses.check(&ask("meet_alike"), &[REAL], "meet_alike");
    let next = "{structure:node}.{pointer+structure:node next}";
    misses.check(&ask("loop_chase"), &[next], "loop_chase");
    misses.none();
}

/// A compiler lets one instruction reach one type, so that a way that tells nothing does not take
/// away what another one tells: this is where we know more than the peer, and dare more.
#[test]
fn a_way_that_tells_nothing_yields() {
    let program = by_hand();
    let mut session = by_type(&program);
    let mut misses = Misses::default();
    let at = labels(&program, "at_");
    for label in ["meet_open", "loop_open"] {
        let line = session.exact(at[label], &with(&[(Rax, HEAP)]));
        misses.check(object(&line), &[REAL], label);
    }
    misses.none();
}

/// The peer walks a loop's body at most once, so that a pointer that counts in it is believed to
/// have counted once.
#[test]
fn a_pointer_that_counts_in_a_loop_is_at_any_element() {
    let program = by_hand();
    let mut session = by_type(&program);
    let mut misses = Misses::default();
    let at = labels(&program, "at_");
    for label in ["loop_elements", "loop_ahead", "loop_ahead_second"] {
        let line = session.exact(at[label], &with(&[(Rax, HEAP)]));
        misses.check(object(&line), &["{structure:node}.{int y}"], label);
    }
    // 24 bytes at a time it is at no member for certain.
    let line = session.exact(at["loop_strays"], &with(&[(Rax, HEAP)]));
    let name = object(&line);
    if !is_reason(name) && name != "{structure:node}" {
        misses.0.push(format!("loop_strays: {name}"));
    }
    misses.none();
}

/// The peer refuses places that are computed, values of the entry, and pieces; and takes a first
/// piece alone for the whole variable, so that what is behind a slice gets the slice's own name.
#[test]
fn places_that_debug_information_computes_are_followed() {
    let program = by_hand();
    let at = labels(&program, "at_");
    let mut misses = Misses::default();
    for (label, register, right) in [
        ("shifted", Rdi, "{structure:node}.{int x}"),
        ("shifted_twice", Rdi, "{structure:node}.{int y}"),
        ("entered", Rbx, REAL),
        ("halves", Rdi, REAL),
        ("first_half", Rdi, REAL),
        ("second_half", Rdi, REAL),
    ] {
        for mut session in [by_type(&program), Session::new(&program)] {
            // `p = rdi + 8` and y is at 28: 36 behind rdi.
            let line = session.exact(at[label], &with(&[(register, HEAP)]));
            misses.check(object(&line), &[right], label);
        }
    }
    misses.none();
}

/// The peer takes a first piece for the whole variable; we do not, wherever the piece is.
#[test]
fn a_piece_of_a_variable_is_no_more_than_that_piece() {
    let program = by_hand();
    let at = labels(&program, "at_");
    let mut misses = Misses::default();
    for mut session in [by_type(&program), Session::new(&program)] {
        for (label, register) in
            [("half_in_frame", Rsp), ("behind_half_in_frame", Rcx), ("half_behind_register", R9)]
        {
            let line = session.exact(at[label], &with(&[(register, HEAP)]));
            let name = object(&line);
            if !is_reason(name) && name != "<Stack>" {
                misses.0.push(format!("{label}: {name}"));
            }
        }
        let line = session.exact(at["other_half_in_frame"], &with(&[(Rcx, HEAP)]));
        misses.check(object(&line), &[REAL], "other_half_in_frame");
    }
    misses.none();
}
