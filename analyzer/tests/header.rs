//! Headers that lie before the address by which what they are of is known.

use crate::support::program::{Program, builds, has_memory_operand};
use crate::support::session::{Session, object, with};

/// Each build, and for each access below its base in a function: the distance, the size, and what it is to.
fn accesses_below(function: &str, mut check: impl FnMut(&Program, i64, u64, Option<&str>, &str)) {
    for (compiler, flags) in builds(["-O2 -g", "-O1 -g -gdwarf-4", "-O3 -g"]) {
        let program = Program::compile(compiler, "headers.c", flags);
        let mut session = Session::of_type_path(&program);
        for access in program.function(function).iter().filter(|it| has_memory_operand(it)) {
            let displacement = access.memory_displacement64().cast_signed();
            if access.memory_base() != iced_x86::Register::RDI || displacement >= 0 {
                continue;
            }
            let line = session.exact(access.ip(), &with(&[]));
            let name = line.object.as_deref().map(|_| object(&line).to_owned());
            let context = format!("{:#x} {compiler} {flags}", access.ip());
            let n_bytes = access.memory_size().size() as u64;
            check(&program, -displacement, n_bytes, name.as_deref(), &context);
        }
    }
}

#[test]
fn a_header_is_told_by_where_its_kin_begin() {
    for (function, member) in [("length", "len"), ("room", "room")] {
        let mut n_named = 0;
        accesses_below(function, |program, distance, n_bytes, name, context| {
            if distance == 1 {
                // All of them have a kind.
                assert!(name.is_none_or(|name| name.contains("char")), "{name:?} {context}");
                return;
            }
            let fits = |bits: &u64| {
                let size = program.truth(&format!("sizeof struct head{bits}"));
                let into = program.truth(&format!("struct head{bits}.{member}"));
                (size - into, bits / 8) == (distance.cast_unsigned(), n_bytes)
            };
            let bits = [8, 16, 32].into_iter().find(fits).expect("it is to one of them");
            let name = name.expect(context);
            let expected = format!("{{structure:head{bits}}}.");
            assert!(name.starts_with(&expected) && name.contains(member), "{name} {context}");
            n_named += 1;
        });
        assert!(n_named >= 9, "{n_named} {function}");
    }
}

#[test]
fn characters_before_a_character_are_no_header() {
    for function in ["ends", "number", "kind"] {
        let mut n = 0;
        accesses_below(function, |_, _, _, name, context| {
            assert!(name.is_none_or(|name| !name.contains("structure:")), "{name:?} {context}");
            n += 1;
        });
        assert!(n >= 6, "{n} {function}");
    }
}
