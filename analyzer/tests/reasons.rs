//! Every reason from a real cause.

use crate::support::program::{Program, run};
use crate::support::session::{
    CLOCK, COUNTER, EXACT, FAULTS, PID, Session, TestFiles, object, sample, with,
};
use dataspace_proto::address::Avma;
use dataspace_proto::event::Machine;
use dataspace_proto::record::{Comm, CpuMode, FileIdentity, Record};
use dataspace_proto::register::Register::{Rdi, Rip, Rsp};
use dataspace_proto::register::RegisterAbi;
use dataspace_proto::snapshot::{Cost, Target};
use std::process::Command;

const HEAP: u64 = 0x7000_1234_5000;

#[test]
fn without_debug_information_the_type_is_unascertainable() {
    let program = Program::c("shapes.c", "-O2");
    let mut session = Session::new(&program);
    let access = program.access("load_key", program.truth("struct node.key"));
    let line = session.exact(access.ip(), &with(&[(Rdi, HEAP)]));
    assert_eq!(object(&line), "unascertainable");
    assert_eq!(line.addr, Some(HEAP + program.truth("struct node.key")), "the address is known");
    assert_eq!(line.scope.unwrap().function.as_deref(), Some("load_key"), "and so is the function");
}

#[test]
fn an_address_that_was_known_is_looked_up_anew_when_something_else_is_mapped_there() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let access = program.access("load_key", program.truth("struct node.key"));
    let registers = with(&[(Rdi, HEAP)]);
    let ask = |session: &mut Session| object(&session.exact(access.ip(), &registers)).to_owned();
    let named = ask(&mut session);
    assert_eq!(named, "{structure:node}.{long_int key}");
    let text = program.maps.iter().find(|line| line.contains("r-xp")).unwrap();
    let page = access.ip() & !0xfff;
    session.map(page, 0x1000, 0, true, "//anon", &FileIdentity::None);
    assert_eq!(ask(&mut session), "jit_code");
    session.map_line(text, &FileIdentity::None);
    assert_eq!(ask(&mut session), named);
    session.apply(&Record::Comm(Box::new(Comm {
        pid: PID,
        tid: PID,
        is_exec: true,
        ..Comm::default()
    })));
    assert_eq!(ask(&mut session), "mapping_gone");
}

#[test]
fn inside_an_instruction_nothing_is_verifiable() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let access = program.access("load_key", program.truth("struct node.key"));
    for event in [EXACT, CLOCK, FAULTS, COUNTER] {
        let line = session.sample(event, access.ip() + 1, &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "unverifiable");
    }
}

#[test]
fn at_the_entry_of_a_function_the_caller_ran_last() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let entry = program.function("load_key")[0].ip();
    assert_eq!(object(&session.sample(CLOCK, entry, &with(&[(Rdi, HEAP)]))), "blocked");
}

#[test]
fn behind_a_call_the_callee_read_its_return_address() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let code = program.function("call_visit");
    let call = code.iter().find(|here| here.mnemonic() == iced_x86::Mnemonic::Call).unwrap();
    let line = session.sample(CLOCK, call.next_ip(), &with(&[(Rsp, HEAP)]));
    assert_eq!(object(&line), "<Stack>");
    assert_eq!(line.addr, Some(HEAP - 8), "`ret` moved the stack over it");
    assert_eq!(line.trigger, None, "whose it was is not known: the call is through a pointer");
}

#[test]
fn a_fault_on_an_instruction_without_memory_is_unspecified() {
    let program = Program::c("long.c", "-O2 -g");
    let mut session = Session::new(&program);
    let code = program.function("compute");
    let add = code.iter().find(|here| here.mnemonic() == iced_x86::Mnemonic::Add).unwrap();
    let line = session.sample(FAULTS, add.ip(), &with(&[]).at(HEAP));
    assert_eq!(object(&line), "unspecified");
    let line = session.sample(FAULTS, add.ip(), &with(&[]));
    assert_eq!(object(&line), "unspecified", "wherever it was");
    let line = session.sample(EXACT, add.ip(), &with(&[]));
    assert_eq!(object(&line), "not_memory", "to a clock it is a fact, not an error");
    assert!(line.not_memory);
}

#[test]
fn a_counter_whose_trigger_is_not_in_reach_is_incomplete() {
    let program = Program::c("long.c", "-O2 -g");
    let mut session = Session::new(&program);
    let code = program.function("compute");
    let far = &code[code.len() - 2];
    assert_eq!(object(&session.sample(COUNTER, far.ip(), &with(&[]))), "incomplete");
    let load = code.iter().find(|here| crate::support::program::has_memory_operand(here)).unwrap();
    let line = session.sample(COUNTER, load.next_ip(), &with(&[(Rdi, HEAP)]));
    assert_eq!(object(&line), "blocked", "the range reaches into whoever called");
    let line = session.sample(COUNTER, load.next_ip(), &with(&[(Rdi, HEAP)]).at(HEAP));
    assert_eq!(object(&line), "{long_int p[]}", "the operand was at the sampled address");
}

#[test]
fn a_file_that_is_gone_or_another_is_said() {
    let program = Program::c("shapes.c", "-O2 -g -Wl,--build-id=0x0102030405060708");
    let access = program.access("load_key", program.truth("struct node.key"));
    let hand = with(&[(Rdi, HEAP)]);
    let answer = |identity: FileIdentity, path: Option<&str>| {
        let mut session = Session::without_mappings(TestFiles::default());
        for map in program.segment_mappings() {
            let path = path.unwrap_or(program.path.to_str().unwrap());
            let (start, len) = (map.start, map.len_bytes);
            session.map(start, len, map.file_offset, map.is_executable, path, &identity);
        }
        let line = session.exact(access.ip(), &hand);
        (object(&line).to_owned(), session.analyzer.accounting().imbalance())
    };
    let id = |bytes: &[u8]| FileIdentity::BuildId(bytes.into());
    let named = ("{structure:node}.{long_int key}".to_owned(), 0);
    assert_eq!(answer(id(&[1, 2, 3, 4, 5, 6, 7, 8]), None), named);
    let mut padded = vec![1, 2, 3, 4, 5, 6, 7, 8];
    padded.resize(20, 0);
    assert_eq!(answer(id(&padded), None), named, "the kernel pads a build-id");
    assert_eq!(answer(FileIdentity::None, None), named);
    let changed = ("object_changed".to_owned(), 0);
    assert_eq!(answer(id(&[1, 2, 3, 4, 5, 6, 7, 9]), None), changed);
    assert_eq!(answer(id(&[1, 2, 3, 4]), None), changed, "a part of it is another");
    let missing = ("object_missing".to_owned(), 0);
    assert_eq!(answer(FileIdentity::None, Some("/nowhere/program")), missing);
}

#[test]
fn other_machines_are_not_supported() {
    let program = Program::c("shapes.c", "-O2 -g");
    let access = program.access("load_key", program.truth("struct node.key"));
    let hand = with(&[(Rdi, HEAP)]);
    // EM_386 in e_machine; ELFCLASS32; ELFDATA2MSB.
    for (at, value) in [(18, 3), (4, 1), (5, 2)] {
        let mut bytes = program.bytes.clone();
        bytes[at] = value;
        let files = TestFiles { instead: Some(bytes), ..TestFiles::default() };
        let mut session = Session::over(&program, files);
        assert_eq!(object(&session.exact(access.ip(), &hand)), "unsupported_machine");
    }
    let mut session = Session::new(&program);
    let mut task = sample(EXACT, access.ip(), &hand);
    task.registers.abi = RegisterAbi::Bits32;
    assert_eq!(object(&session.one(task)), "unsupported_machine");
    session.apply(&Record::Machine(Machine::Other));
    assert_eq!(object(&session.exact(access.ip(), &hand)), "unsupported_machine");
}

#[test]
fn code_without_a_file_or_a_mapping_is_told_apart() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    for path in ["", "//anon", "[heap]", "[anon:JIT]"] {
        session.map(0x1000_0000, 0x1000, 0, true, path, &FileIdentity::None);
        assert_eq!(object(&session.exact(0x1000_0010, &with(&[]))), "jit_code", "{path}");
    }
    assert_eq!(object(&session.exact(0x2000_0000, &with(&[]))), "mapping_gone");
    let mut other = sample(EXACT, program.function("load_key")[0].ip(), &with(&[]));
    other.pid = PID + 1;
    assert_eq!(object(&session.one(other)), "mapping_gone");
}

#[test]
fn a_guests_code_is_its_own() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let access = program.access("load_key", program.truth("struct node.key"));
    let mut guest = sample(EXACT, access.ip(), &with(&[(Rdi, HEAP)]));
    guest.addr = Some(Avma(HEAP + program.truth("struct node.key")));
    assert_eq!(object(&session.one(guest)), "{structure:node}.{long_int key}");
    guest.mode = CpuMode::Guest;
    assert_eq!(object(&session.one(guest)), "guest", "its addresses mean nothing here");
}

#[test]
fn the_kernels_own_time_is_the_kernels() {
    let program = Program::c("shapes.c", "-O2 -g");
    let mut session = Session::new(&program);
    let access = program.access("load_key", program.truth("struct node.key"));
    let mut kernel = sample(CLOCK, 0xffff_ffff_8100_0000, &with(&[]));
    kernel.mode = CpuMode::Kernel;
    assert_eq!(object(&session.one(kernel)), "kernel", "no user registers");
    kernel.user_registers = sample(CLOCK, 0, &with(&[(Rip, access.ip()), (Rdi, HEAP)])).registers;
    let line = session.one(kernel);
    assert_eq!(object(&line), "{structure:node}.{long_int key}", "a fault at a user instruction");
    assert_eq!(line.trigger, Some(access.ip()));
    kernel.mode = CpuMode::Unknown;
    assert_eq!(object(&session.one(kernel)), "{structure:node}.{long_int key}");
    kernel.addr = Some(Avma(0xffff_8880_0000_0000));
    kernel.user_registers = dataspace_proto::register::Registers::default();
    assert_eq!(object(&session.one(kernel)), "kernel");
}

#[test]
fn a_function_larger_than_the_limit_is_over_budget() {
    let program = Program::c("huge.c", "-O2 -g");
    let mut session = Session::new(&program);
    let (start, _) = program.function_range("huge");
    let line = session.exact(start + program.bias(), &with(&[(Rsp, HEAP)]));
    assert_eq!(object(&line), "over_budget");
    let snapshot = session.analyzer.snapshot(Target::default(), Cost::default(), None);
    let told = |it: &String| it.contains("too large") && it.contains("huge of ");
    assert!(snapshot.warnings.iter().any(told), "{:?}", snapshot.warnings);
}

#[test]
fn a_file_of_no_elf_is_unascertainable() {
    let program = Program::c("shapes.c", "-O2 -g");
    let access = program.access("load_key", program.truth("struct node.key"));
    for bytes in [Vec::new(), b"#!/bin/sh\n".to_vec(), vec![0; 4096]] {
        let files = TestFiles { instead: Some(bytes), ..TestFiles::default() };
        let mut session = Session::over(&program, files);
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "unascertainable");
    }
}

#[test]
fn a_string_without_a_name_is_no_variable_and_is_asked_for_once() {
    // clang describes string literals as variables without a name.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let sources = ["nameless.s", "nameless.c"].map(crate::support::program::source);
    run(Command::new("gcc")
        .args(["-O2", "-no-pie", "-fno-pie"])
        .args(sources)
        .arg("-o")
        .arg(&path));
    let program = Program::of(dir, path);
    let mut session = Session::new(&program);
    let load = program.access("read_long", 0);
    let text = program.truth("&text");
    for at in [program.truth("&named"), text, text + 8, program.truth("&named"), text + 16] {
        session.sample(FAULTS, load.ip(), &with(&[(Rdi, at)]).at(at));
    }
}
