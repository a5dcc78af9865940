//! A hunt for wrong names: code that a careless answer gets wrong. No name is a good answer here,
//! a wrong one is none.

use crate::support::program::{Program, has_memory_operand};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{self, Rax, Rdi, Rsi, Rsp};

const HEAP: u64 = 0x7000_1234_5000;
const BUILDS: [&str; 3] =
    ["-O2 -gdwarf-5", "-O1 -gdwarf-4", "-O3 -gdwarf-5 -fno-omit-frame-pointer"];

#[test]
fn a_cast_pointer_is_not_named_after_its_bytes() {
    for flags in BUILDS {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        let heap = with(&[(Rdi, HEAP), (Rsi, 0)]);
        let line = session.exact(program.access("cast_bytes", 1).ip(), &heap);
        let right = ["{structure:small}.{char kind}", "unidentified"];
        assert!(right.contains(&object(&line)), "{} {flags}", object(&line));
        let line =
            session.exact(program.access("cast_void", program.truth("struct small.n")).ip(), &heap);
        assert_eq!(object(&line), "{structure:small}.{int n}", "{flags}");
        let line = session.exact(program.access("cast_other", 0).ip(), &heap);
        let right = ["{structure:other}.{double d}", "unidentified"];
        assert!(right.contains(&object(&line)), "{} {flags}", object(&line));
    }
}

#[test]
fn what_lies_around_a_structure_is_not_the_structure() {
    for flags in BUILDS {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        for index in 0..6 {
            let payload = session
                .exact(program.access("payload", 16).ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
            assert_eq!(object(&payload), "unidentified", "{index} {flags}");
        }
        let line = session.exact(program.access("payload_first", 16).ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "unidentified", "{flags}");
        let back = program.truth("struct item.link").wrapping_neg();
        // What lies before it is: only one type has this one inside and a member there.
        let line = session.exact(program.access("container", back).ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "{structure:item}.{long_int id}", "{flags}");
    }
}

#[test]
fn a_pointer_in_the_index_register_is_still_the_pointer() {
    for flags in BUILDS {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        let ip = program.access("swapped", 8).ip();
        for (bytes, member) in [(0, "b"), (8, "c"), (16, "d")] {
            let line = session.exact(ip, &with(&[(Rdi, HEAP), (Rsi, bytes)]));
            assert_eq!(
                object(&line),
                format!("{{structure:wide}}.{{long_int {member}}}"),
                "{flags}"
            );
        }
    }
}

#[test]
fn an_array_on_the_stack_whose_length_is_not_known_is_no_spill() {
    for flags in ["-O0 -g", "-O2 -gdwarf-5", "-O2 -gdwarf-4"] {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        let stack = 0x7ffd_0000_1000;
        let all: Vec<_> = Register::ALL.into_iter().map(|register| (register, stack)).collect();
        let mut seen = Vec::new();
        for access in program.function("sized") {
            let is_array = has_memory_operand(&access)
                && access.memory_base() == iced_x86::Register::RSP
                && access.memory_displacement64().cast_signed() >= 0;
            if is_array {
                let line = session.exact(access.ip(), &with(&all));
                seen.push(object(&line).to_owned());
            }
        }
        assert!(!seen.contains(&"<Stack>".to_owned()), "{seen:?} {flags}");
    }
}

#[test]
fn an_argument_by_value_has_members_and_a_copied_pointer_is_no_variable() {
    for flags in BUILDS {
        let program = Program::c("hunt.c", flags);
        let mut session = Session::new(&program);
        let by_value = program.only("by_value", |here| {
            has_memory_operand(here) && here.mnemonic() == iced_x86::Mnemonic::Mov
        });
        let line = session.exact(by_value.ip(), &with(&[(Rsp, HEAP), (Register::Rbp, HEAP)]));
        assert_eq!(object(&line), "{structure:wide}.{long_int c}", "{flags}");
        assert_eq!(line.variable.as_deref(), Some("w"), "{flags}");
        let last = program.access("followed", program.truth("struct item.last"));
        let line = session.exact(last.ip(), &with(&[(Rax, HEAP)]));
        // gcc says of `i` only that it is where `p` points at.
        let right = ["{structure:item}.{long_int last}", "undetermined"];
        assert!(right.contains(&object(&line)), "{} {flags}", object(&line));
        let first = program.access("followed", 0);
        let line = session.exact(first.ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "{pointer+structure:item p[]}", "{flags}");
    }
}

#[test]
fn a_copy_of_a_structure_is_charged_to_the_structure() {
    let program = Program::c("hunt.c", "-O2 -g");
    let mut session = Session::new(&program);
    for access in program.function("copied").iter().filter(|here| has_memory_operand(here)) {
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, HEAP)]));
        assert_eq!(object(&line), "{structure:wide}", "{:#x}", access.ip());
        let offset = access.memory_displacement64();
        assert_eq!(line.offset, Some(offset), "two members at once, at {offset}");
    }
}
