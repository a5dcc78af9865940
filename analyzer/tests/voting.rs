//! Code without debug information is named after the objects that typed code touched.

use crate::support::program::{Program, run, source};
use crate::support::session::{Hand, PID, Session, object, with};
use dataspace_proto::record::{Comm, Exit, FileIdentity, Record};
use dataspace_proto::register::Register::{Rdi, Rsp};
use dataspace_proto::sample_line::{AddressSource, Evidence, SampleLine};
use std::process::Command;

/// One half with debug information and one without.
fn program() -> Program {
    let dir = tempfile::tempdir().unwrap();
    let (typed, plain) = (dir.path().join("typed.o"), dir.path().join("plain.o"));
    let path = dir.path().join("program");
    for (name, flags, to) in [("voted.c", "-g", &typed), ("voted_plain.c", "-g0", &plain)] {
        run(Command::new("gcc").args(["-O2", flags, "-c"]).arg(source(name)).arg("-o").arg(to));
    }
    run(Command::new("gcc").arg(&typed).arg(&plain).arg("-o").arg(&path));
    Program::of(dir, path)
}

struct Case {
    program: Program,
    session: Session,
}

impl Case {
    fn new() -> Self {
        let program = program();
        let session = Session::new(&program);
        Self { program, session }
    }

    /// What the program was told its variable `name` points at.
    fn at(&self, name: &str) -> u64 {
        self.program.truth(&format!("&{name}"))
    }

    /// Where the `idx`th node of the array lies.
    fn node(&self, idx: u64) -> u64 {
        self.at("array") + idx * self.program.truth("sizeof struct node")
    }

    fn hand(&self, at: u64) -> Hand {
        // The stack of the program's own frames.
        with(&[(Rdi, at), (Rsp, self.at("local"))])
    }

    /// The answer for the access of a function to what its argument points at.
    fn touch(&mut self, function: &str, displacement: u64, at: u64) -> SampleLine {
        let ip = self.program.access(function, displacement).ip();
        let hand = self.hand(at);
        self.session.exact(ip, &hand)
    }

    fn key(&mut self, half: &str, at: u64) -> SampleLine {
        let offset = self.program.truth("struct node.key");
        self.touch(&format!("{half}_key"), offset, at)
    }

    fn count(&mut self, half: &str, at: u64) -> SampleLine {
        let offset = self.program.truth("struct node.count");
        self.touch(&format!("{half}_count"), offset, at)
    }
}

#[test]
fn an_object_that_typed_code_touched_is_named_in_code_without_types() {
    let mut case = Case::new();
    let alone = case.at("alone");
    assert_eq!(object(&case.count("plain", alone)), "unascertainable", "nobody knows yet");
    let line = case.key("typed", alone);
    assert_eq!((object(&line), line.votes), ("{structure:node}.{long_int key}", None));
    let line = case.count("plain", alone);
    assert_eq!(object(&line), "{structure:node}.{int count}");
    assert_eq!((line.evidence, line.votes), (Some(Evidence::Address), Some(1)));
    assert_eq!(line.addr_source, Some(AddressSource::Computed));
    assert_eq!(line.addr, Some(alone + case.program.truth("struct node.count")));
    assert_eq!(line.offset, Some(case.program.truth("struct node.count")));
    assert_eq!((line.member.as_deref(), line.type_name.as_deref()), (Some("count"), Some("node")));
    case.count("typed", alone);
    assert_eq!(case.key("plain", alone).votes, Some(2));
    let accounting = case.session.analyzer.accounting();
    assert_eq!((accounting.voted, accounting.attributed, accounting.imbalance()), (2, 4, 0));
}

#[test]
fn an_element_between_voted_ones_is_named() {
    let mut case = Case::new();
    let in_page = |case: &Case, idx| case.node(idx) / 4096;
    // The first page that holds six whole nodes of the array.
    let first = (0..64).find(|idx| in_page(&case, *idx) == in_page(&case, idx + 5)).unwrap();
    for idx in [0, 1, 2, 5] {
        let node = case.node(first + idx);
        case.key("typed", node);
    }
    let (between, behind) = (case.node(first + 3), case.node(first + 6));
    let line = case.count("plain", between);
    assert_eq!((object(&line), line.votes), ("{structure:node}.{int count}", Some(4)));
    assert_eq!(object(&case.count("plain", behind)), "unascertainable");
    assert_eq!(object(&case.key("plain", between + 4)), "unascertainable", "out of step");
}

#[test]
fn numbers_are_named_after_the_pointer_between_voted_ones() {
    let mut case = Case::new();
    let numbers = case.at("numbers");
    for idx in [1, 2, 5] {
        case.touch("typed_double", 0, numbers + idx * 8);
    }
    let line = case.touch("plain_double", 0, numbers + 4 * 8);
    assert_eq!((object(&line), line.votes), ("{double a[]}", Some(3)));
    assert_eq!(object(&case.touch("plain_double", 0, numbers + 7 * 8)), "unascertainable");
}

#[test]
fn votes_tell_what_a_number_is_a_part_of() {
    let mut case = Case::new();
    let (alone, offset) = (case.at("alone"), case.program.truth("struct other.height"));
    let height = alone + offset;
    assert_eq!(object(&case.touch("typed_double", 0, height)), "{double a[]}");
    case.touch("typed_height", offset, alone);
    let line = case.touch("typed_double", 0, height);
    assert_eq!(object(&line), "{structure:other}.{double height}");
    assert_eq!((line.evidence, line.votes), (Some(Evidence::Both), Some(1)));
    // A vote's echo is no vote.
    case.touch("typed_double", 0, height);
    assert_eq!(case.touch("typed_double", 0, height).votes, Some(1));
    // A number of another type is none of its parts.
    for _ in 0..20 {
        case.key("typed", alone);
    }
    assert_eq!(object(&case.touch("typed_double", 0, height)), "{double a[]}");
}

#[test]
fn a_vote_never_overrules_an_instruction_and_yields_to_others() {
    let mut case = Case::new();
    let alone = case.at("alone");
    for _ in 0..50 {
        case.key("typed", alone);
    }
    let offset = case.program.truth("struct other.height");
    let line = case.touch("typed_height", offset, alone);
    assert_eq!(object(&line), "{structure:other}.{double height}");
    assert_eq!((line.evidence, line.votes), (Some(Evidence::Type), None));
    assert_eq!(object(&case.count("plain", alone)), "unascertainable", "the memory is in use anew");
    for _ in 0..4 {
        case.touch("typed_height", offset, alone);
    }
    assert_eq!(object(&case.key("plain", alone)), "{structure:other}.{double height}");
    assert_eq!(case.session.analyzer.accounting().conflicts, 0);
}

#[test]
fn votes_end_with_the_address_space() {
    let comm =
        |is_exec| Record::Comm(Box::new(Comm { pid: PID, tid: PID, is_exec, ..Comm::default() }));
    let exit = Record::Exit(Exit { pid: PID, tid: PID, ..Exit::default() });
    for (record, is_kept) in [(comm(false), true), (comm(true), false), (exit, false)] {
        let mut case = Case::new();
        let alone = case.at("alone");
        case.key("typed", alone);
        case.session.apply(&record);
        for line in case.program.maps.clone() {
            // The file's own mappings only: a heap that is mapped anew has no votes anyway.
            if line.ends_with("/program") {
                case.session.map_line(&line, &FileIdentity::None);
            }
        }
        let line = case.key("plain", alone);
        assert_eq!(line.votes.is_some(), is_kept, "{record:?}");
    }
}

#[test]
fn new_memory_has_no_votes_and_a_heap_that_grows_keeps_its_own() {
    let anonymous = |case: &mut Case, start: u64, len_bytes: u64| {
        case.session.map(start, len_bytes, 0, false, "//anon", &FileIdentity::None);
    };
    let start = 0x1234_5000_0000;
    for (at, len_bytes, is_kept) in
        [(start, 0x4000, true), (start - 0x1000, 0x3000, true), (start, 0x2000, false)]
    {
        let mut case = Case::new();
        anonymous(&mut case, start, 0x2000);
        case.key("typed", start + 64);
        anonymous(&mut case, at, len_bytes);
        let line = case.key("plain", start + 64);
        assert_eq!(line.votes.is_some(), is_kept, "{at:#x} {len_bytes:#x}");
    }
}

#[test]
fn the_stack_and_the_type_path_alone_have_no_votes() {
    let mut case = Case::new();
    let on_stack = case.at("local") + 256;
    case.key("typed", on_stack);
    assert_eq!(object(&case.count("plain", on_stack)), "unascertainable");
    let alone = case.at("alone");
    case.session = Session::of_type_path(&case.program);
    case.key("typed", alone);
    case.key("typed", alone);
    assert_eq!(object(&case.count("plain", alone)), "unascertainable");
}
