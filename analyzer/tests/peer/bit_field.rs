//! Bit-fields in one byte, and unions whose arms have one size.

use super::{HEAP, Misses, by_type, names};
use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{Rdi, Rsi};
use dataspace_proto::snapshot::{Cost, Target};

const WHOLE: &str = "{structure:flags}";
const A: &str = "{structure:flags}.{unsigned_int:3 a}";
const B: &str = "{structure:flags}.{unsigned_int:5 b}";
const C: &str = "{structure:flags}.{unsigned_int:9 c}";
const D: &str = "{structure:flags}.{unsigned_int:7 d}";
const E: &str = "{structure:flags}.{int:4 e}";

fn builds() -> impl Iterator<Item = (Program, String)> {
    let of = [
        ("gcc", "-O2 -gdwarf-5"),
        ("gcc", "-O1 -gdwarf-4 -fno-pie -no-pie"),
        ("clang", "-O2 -gdwarf-5 -Dnoipa=noinline"),
    ];
    of.into_iter().filter(|(compiler, _)| has_tool(compiler)).map(|(compiler, flags)| {
        (Program::compile(compiler, "peer_bits.c", flags), format!("{compiler} {flags}"))
    })
}

/// The peer counts by bytes: it names the first bit-field of a byte whichever is used, and charges
/// all of them.
#[test]
fn masks_and_shifts_tell_the_bit_field() {
    let mut misses = Misses::default();
    for (program, build) in builds() {
        let mut session = by_type(&program);
        for (function, right) in [
            ("get_a", A),
            ("get_b", B),
            ("get_c", C),
            ("get_d", D),
            ("get_e", E),
            ("clear_a", A),
            ("fill_b", B),
        ] {
            for (access, name) in names(&mut session, &program, function) {
                misses.check(&name, &[right], &format!("{function} {access} {build}"));
            }
        }
        // The bits that are kept beside those that are set are not what is meant, nor one of two;
        // a comparison of what was loaded is not looked at.
        for (function, right) in [("set_a", A), ("set_b", B), ("both", WHOLE), ("is_b", B)] {
            for (access, name) in names(&mut session, &program, function) {
                misses.check(&name, &[right, WHOLE], &format!("{function} {access} {build}"));
            }
        }
        let mut session = Session::new(&program);
        let access = program.only("global_b", has_memory_operand);
        let line = session.exact(access.ip(), &with(&[]));
        misses.check(object(&line), &[B], &format!("global_b {build}"));
        assert_eq!(line.variable.as_deref(), Some("flags"), "{build}");
    }
    misses.none();
}

/// The peer names the first arm of a union that fits, and charges all of them.
#[test]
fn what_a_union_may_hold_is_listed_in_lines_and_reports() {
    for (program, build) in builds() {
        let mut session = Session::new(&program);
        let word = program.truth("struct boxed.word");
        let line = session.exact(program.access("copy_word", word).ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "{structure:boxed}.{union:word word}", "{build}");
        let candidates = line.candidates.as_deref().unwrap_or_default().join(" ");
        assert_eq!(candidates, "word.whole word.real word.link", "{build}");
        let snapshot = session.analyzer.snapshot(Target::default(), Cost::default(), None);
        let reported =
            snapshot.objects.iter().find(|object| &*object.object == self::object(&line));
        assert_eq!(reported.unwrap().candidates.join(" "), candidates, "{build}");
        // Arithmetic tells the arm, with an index too.
        for (function, offset, right) in [
            ("half_word", word, "{structure:boxed}.{union:word word}.{double real}"),
            ("word_at", 0, "{union:word}.{double real}"),
        ] {
            let access = program.access(function, offset);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, 3)]));
            assert_eq!(object(&line), right, "{function} {build}");
            assert!(line.candidates.is_none(), "{function} {build}");
        }
    }
}
