//! Thread-local variables, held against the addresses that the threads of a program tell.

use crate::support::program::{
    Program, has_memory_operand, has_tool, run, sampled_register, source,
};
use crate::support::session::{CLOCK, EXACT, Hand, PID, Session, object, sample, with};
use dataspace_proto::record::{Fork, Record, Sample};
use dataspace_proto::register::Register::{self, Rax, Rdi};
use dataspace_proto::sample_line::{AddressSource, Evidence, SampleLine};

const OTHER: i32 = PID + 1;

/// Builds of all sorts; the executable's own variables are at a fixed distance in each of them.
const BUILDS: [(&str, &str); 5] = [
    ("gcc", "-O2 -gdwarf-5 -fPIE -pie -pthread"),
    ("gcc", "-O2 -gdwarf-4 -fno-pie -no-pie -pthread"),
    ("gcc", "-O1 -gdwarf-5 -static -pthread"),
    ("clang", "-O2 -gdwarf-5 -pthread"),
    ("clang", "-O2 -gdwarf-4 -fno-pie -no-pie -pthread"),
];

fn builds() -> impl Iterator<Item = (Program, String)> {
    // gcc's attribute against inlining into callers is none of clang's.
    let flags = |compiler: &str, flags: &str| match compiler {
        "clang" => format!("{flags} -Dnoipa=noinline"),
        _ => flags.to_owned(),
    };
    BUILDS.iter().filter(|(compiler, _)| has_tool(compiler)).map(move |(compiler, of)| {
        let flags = flags(compiler, of);
        (Program::compile(compiler, "storage.c", &flags), format!("{compiler} {flags}"))
    })
}

impl Session {
    /// Lets a thread tell its base, as code that reads it from its control block does.
    fn tell_base(&mut self, program: &Program, tid: i32, base: u64) {
        let code = program.function("thread_base");
        let read = code.iter().find(|here| here.segment_prefix() == iced_x86::Register::FS);
        let next = read.unwrap().next_ip();
        let line = self.of_thread(tid, CLOCK, next, &with(&[(Rax, base)]));
        assert_eq!(object(&line), "{thread_control_block -}");
    }

    fn of_thread(
        &mut self,
        tid: i32,
        event: dataspace_proto::event::EventIdx,
        ip: u64,
        hand: &Hand,
    ) -> SampleLine {
        self.one(Sample { tid, ..sample(event, ip, hand) })
    }
}

fn operand(program: &Program, function: &str) -> u64 {
    program.only(function, has_memory_operand).ip()
}

#[test]
fn the_instruction_alone_tells_a_thread_local_variable() {
    for (program, context) in builds() {
        let mut session = Session::new(&program);
        for (function, registers, expected, variable) in [
            ("context_n", &[][..], "{structure:context}.{long_int n}", "context"),
            (
                "set_context_y",
                &[],
                "{structure:context}.{array[3]:structure:pos at}.{int y}",
                "context",
            ),
            ("slot_at", &[(Rdi, 63)], "{array[64]:int slots}", "slots"),
            ("slot_before", &[(Rdi, 64)], "{array[64]:int slots}", "slots"),
            ("slot_before", &[(Rdi, 1)], "{array[64]:int slots}", "slots"),
            ("late_y", &[(Rdi, 3)], "{structure:-}.{array[4]:structure:pos late}.{int y}", "late"),
            ("last", &[], "{int before_late}", "before_late"),
        ] {
            // clang says `long`, gcc `long int`.
            let spelled = |text: &str| text.replace("long_int", "long");
            let line = session.exact(operand(&program, function), &with(registers));
            let named = object(&line).to_owned();
            assert_eq!(spelled(&named), spelled(expected), "{function} {context}");
            assert_eq!(line.variable.as_deref(), Some(variable), "{function} {context}");
            assert_eq!(line.reason.map(|it| it.name()), Some("register_loss"), "{context}");
            assert_eq!(line.addr, None, "the thread's base is not known: {function} {context}");
        }
    }
}

#[test]
fn an_index_that_is_lost_names_no_other_variable() {
    for (program, context) in builds() {
        let mut session = Session::new(&program);
        let line = session.exact(operand(&program, "slot_before"), &with(&[]));
        assert_eq!((line.variable, line.addr), (None, None), "{context}");
    }
}

#[test]
fn what_lies_at_no_variable_of_the_thread_is_unidentified() {
    for (program, context) in builds() {
        let mut session = Session::new(&program);
        let ip = operand(&program, "by_distance");
        let registers = |distance: i64| with(&[(Rdi, distance.cast_unsigned())]);
        // Far above every thread's base, which the instruction tells without the base.
        let line = session.exact(ip, &registers(1 << 20));
        assert_eq!(object(&line), "unidentified", "{context}");
        let line = session.exact(ip, &with(&[]));
        assert_eq!(object(&line), "register_loss", "nothing tells where: {context}");
        let base = program.truth("&base-main");
        let slots = program.truth("&slots-main");
        let line = session.exact(ip, &registers(slots.wrapping_sub(base).cast_signed()));
        assert_eq!(object(&line), "{array[64]:int slots}", "{context}");
        assert_eq!(line.evidence, Some(Evidence::Address), "{context}");
    }
}

#[test]
fn an_address_in_any_threads_storage_is_found_once_its_base_is_known() {
    for (program, context) in builds() {
        let mut session = Session::new(&program);
        let ip = program.only("behind", has_memory_operand).ip();
        let checked = |session: &mut Session, is_known: bool| {
            for (thread, variable, offset, expected) in [
                ("main", "slots", 252, "{array[64]:int slots}"),
                ("main", "before_late", 0, "{int before_late}"),
                ("other", "slots", 4, "{array[64]:int slots}"),
                ("other", "context", 12, "{structure:context}.{array[3]:structure:pos at}.{int y}"),
            ] {
                let at = program.truth(&format!("&{variable}-{thread}")) + offset;
                // Whichever thread touches it.
                for (tid, hand) in [
                    (PID, with(&[(Rdi, at)])),
                    (OTHER, with(&[(Rdi, at)])),
                    (PID, with(&[(Rdi, at)]).at(at)),
                ] {
                    let line = session.of_thread(tid, EXACT, ip, &hand);
                    let expected = if is_known { expected } else { "{int p[]}" };
                    assert_eq!(object(&line), expected, "{thread} {context}");
                    if is_known {
                        assert_eq!(line.evidence, Some(Evidence::Both), "{thread} {context}");
                        assert_eq!(line.variable.as_deref(), Some(variable), "{context}");
                    }
                }
            }
        };
        checked(&mut session, false);
        for (tid, thread) in [(PID, "main"), (OTHER, "other")] {
            session.tell_base(&program, tid, program.truth(&format!("&base-{thread}")));
        }
        checked(&mut session, true);
        // Thread numbers are used again: what was known of the one that ended does not count.
        let fork =
            Fork { pid: PID, tid: OTHER, parent_pid: PID, parent_tid: PID, ..Fork::default() };
        session.apply(&Record::Fork(fork));
        let at = program.truth("&slots-other");
        let line = session.of_thread(OTHER, EXACT, ip, &with(&[(Rdi, at)]));
        assert_eq!(object(&line), "{int p[]}", "{context}");
    }
}

#[test]
fn a_base_gives_operands_their_address() {
    for (program, context) in builds() {
        let mut session = Session::new(&program);
        let base = program.truth("&base-other");
        session.tell_base(&program, OTHER, base);
        let at = program.truth("&slots-other") + 8;
        let ip = operand(&program, "slot_at");
        let line = session.of_thread(OTHER, EXACT, ip, &with(&[(Rdi, 2)]));
        assert_eq!(line.addr, Some(at), "{context}");
        assert_eq!(line.addr_source, Some(AddressSource::Computed), "{context}");
        assert_eq!((line.reason, line.evidence), (None, Some(Evidence::Both)), "{context}");
    }
}

#[test]
fn symbols_name_thread_local_variables_without_debug_information() {
    let program = Program::c("storage.c", "-O2 -g -pthread").changed_by("strip", &["-g"]);
    let mut session = Session::new(&program);
    let registers: [(Register, u64); 1] = [(Rdi, 2)];
    for (function, variable, offset) in [
        ("slot_at", "slots", 8),
        ("set_context_y", "context", program.truth("struct context.at") + 16 + 4),
        ("last", "before_late", 0),
    ] {
        let line = session.exact(operand(&program, function), &with(&registers));
        assert_eq!(object(&line), format!("{{- {variable}}}"));
        assert_eq!(line.variable.as_deref(), Some(variable));
        assert_eq!(line.offset, Some(offset), "{function}");
    }
}

/// A program that loads a library with these flags, and the library.
fn with_library(flags: &str) -> (Program, Program) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let library = dir.path().join("program.so");
    let compile = |arguments: &str, to: &std::path::Path| {
        let mut gcc = std::process::Command::new("gcc");
        gcc.args(arguments.split_whitespace()).arg(source("thread_library.c")).arg("-o").arg(to);
        run(&mut gcc);
    };
    compile("-O2 -g -DPROGRAM", &path);
    compile(&format!("-O2 -g -fPIC -shared -ftls-model={flags}"), &library);
    let program = Program::of(dir, path);
    let library = program.loaded(&library, "done");
    (program, library)
}

#[test]
fn the_slot_that_an_address_was_formed_with_tells_a_librarys_variable() {
    for flags in ["global-dynamic", "local-dynamic", "initial-exec", "global-dynamic -fno-plt"] {
        let (_program, library) = with_library(flags);
        let mut session = Session::new(&library);
        for (function, registers, variable, expected) in [
            ("done", &[][..], "current", "{structure:job}.{long_int n_done}"),
            (
                "cost",
                &[(Register::Rbx, 3), (Rdi, 3)],
                "current",
                "{structure:job}.{array[4]:int costs}",
            ),
            ("bump", &[], "own", "{int own}"),
            ("place", &[], "own", "{int own}"),
        ] {
            let code = library.function(function);
            let is_access = |here: &&iced_x86::Instruction| {
                has_memory_operand(here)
                    && !here.is_ip_rel_memory_operand()
                    && here.memory_base() != iced_x86::Register::RSP
                    && here.memory_base() != iced_x86::Register::None
            };
            let accesses: Vec<u64> = code.iter().filter(is_access).map(|here| here.ip()).collect();
            assert!(!accesses.is_empty(), "{function} {flags}");
            for ip in accesses {
                let line = session.exact(ip, &with(registers));
                assert_eq!(object(&line), expected, "{function} {flags}");
                assert_eq!(line.variable.as_deref(), Some(variable), "{function} {flags}");
            }
        }
    }
}

#[test]
fn a_librarys_block_is_learned_from_code_that_is_certain_of_it() {
    for flags in ["global-dynamic", "local-dynamic"] {
        let (_program, library) = with_library(flags);
        let mut session = Session::new(&library);
        let behind = library.only("behind", has_memory_operand).ip();
        let at = library.truth("&others") + 8;
        let line = session.exact(behind, &with(&[(Rdi, at)]));
        assert_eq!(object(&line), "{int p[]}", "{flags}");
        // `own` is static: no other load object can take its place.
        let code = library.function("bump");
        let load = code
            .iter()
            .find(|here| has_memory_operand(here) && here.memory_base() == iced_x86::Register::RAX);
        let load = load.unwrap();
        let base = library.truth("&own").wrapping_sub(load.memory_displacement64());
        let line = session.exact(load.ip(), &with(&[(Rax, base)]));
        assert_eq!(
            (object(&line), line.addr),
            ("{int own}", Some(library.truth("&own"))),
            "{flags}"
        );
        let line = session.exact(behind, &with(&[(Rdi, at)]));
        assert_eq!(object(&line), "{array[6]:int others}", "{flags}");
        let current = library.truth("&current") + 12;
        let line = session.exact(behind, &with(&[(Rdi, current)]));
        assert_eq!(object(&line), "{structure:job}.{array[4]:int costs}", "{flags}");
    }
}

#[test]
fn what_a_threads_own_pointer_leads_to_is_named() {
    let (_program, library) = with_library("initial-exec");
    let mut session = Session::new(&library);
    let store = library.access("put", library.truth("struct cache.slots"));
    let base = sampled_register(store.memory_base());
    let heap = 0x7000_1234_5000;
    let line = session.exact(store.ip(), &with(&[(base.unwrap(), heap), (Rdi, 3)]));
    assert_eq!(object(&line), "{structure:cache}.{array[8]:int slots}");
}
