//! The flow graph of compiled functions, held against what the programs tell of their labels,
//! against their own symbols, and against itself.

use crate::support::program::{Program, has_tool};
use crate::support::session::TestFiles;
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::x86_64::function::FunctionCode;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::record::FileIdentity;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use object::{Object as _, ObjectSection as _};
use std::collections::BTreeSet;
use std::sync::Arc;

const BUILDS: [&str; 6] = [
    "-O0 -fPIE -pie",
    "-O1 -fno-pie -no-pie",
    "-O2 -fPIE -pie",
    "-O2 -fno-pie -no-pie",
    "-O3 -fPIE -pie",
    "-O0 -fno-pie -no-pie",
];

/// Each program by each compiler that is there, in each build.
fn programs(source: &str, compilers: &[&str]) -> Vec<(Program, String)> {
    let found = compilers.iter().filter(|compiler| has_tool(compiler));
    let builds = found.flat_map(|compiler| BUILDS.map(|flags| (*compiler, flags)));
    builds
        .map(|(compiler, flags)| {
            (Program::compile(compiler, source, flags), format!("{compiler} {flags}"))
        })
        .collect()
}

fn index(program: &Program) -> LoadObjectIndex {
    let key = LoadObjectKey {
        path: program.path.to_str().unwrap().as_bytes().into(),
        identity: FileIdentity::None,
        pid: 1,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    };
    LoadObjectIndex::open(&key, &TestFiles::default()).unwrap()
}

fn graph(program: &Program, function: &str) -> Arc<FunctionCode> {
    index(program).function(Svma(program.function_range(function).0)).unwrap()
}

fn instruction(program: &Program, graph: &FunctionCode, at: usize) -> Option<Instruction> {
    let code = graph.code(at)?;
    let mut here = program.decode(code.start, code.end - code.start)[0];
    here.set_ip(code.start);
    Some(here)
}

fn instructions(program: &Program, graph: &FunctionCode) -> Vec<(usize, Instruction)> {
    let all = (0..graph.n_instructions()).map(|at| (at, instruction(program, graph, at)));
    all.filter_map(|(at, here)| Some((at, here?))).collect()
}

/// The addresses that the graph says come before the instruction at `index`.
fn sources(graph: &FunctionCode, index: usize) -> Vec<u64> {
    let from = graph.predecessors(index).iter().map(|from| from.from as usize);
    from.map(|from| graph.code(from).unwrap().start).collect()
}

/// What fills up to an alignment and is not reached.
fn is_filler(program: &Program, graph: &FunctionCode, index: usize, here: &Instruction) -> bool {
    matches!(here.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
        && graph.predecessors(index).iter().all(|from| {
            let before = instruction(program, graph, from.from as usize).unwrap();
            matches!(before.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
        })
}

/// Instructions of which the graph does not know what comes before.
fn unknown(program: &Program, graph: &FunctionCode) -> Vec<u64> {
    let all = instructions(program, graph).into_iter();
    all.filter(|(at, here)| {
        graph.entrances(*at).is_unknown && !is_filler(program, graph, *at, here)
    })
    .map(|(_, here)| here.ip())
    .collect()
}

#[test]
fn a_label_is_reached_by_the_jumps_through_its_table() {
    for (program, build) in programs("flow.c", &["gcc", "clang"]) {
        for function in ["by_address", "by_distance"] {
            let graph = graph(&program, function);
            let jumps: BTreeSet<u64> = instructions(&program, &graph)
                .into_iter()
                .filter(|(_, here)| here.flow_control() == FlowControl::IndirectBranch)
                .map(|(_, here)| here.ip())
                .collect();
            assert!(!jumps.is_empty(), "{function} {build}");
            for label in 0..5 {
                let address = program.truth(&format!("&{function}.{label}")) - program.bias();
                let at = graph.index_of(Svma(address)).expect("a label is a boundary");
                let from: BTreeSet<u64> = sources(&graph, at).into_iter().collect();
                let context = format!("{function}.{label} {address:#x} {build}: {from:x?}");
                assert!(from.is_superset(&jumps), "{context} {jumps:x?}");
                assert!(!graph.entrances(at).is_any(), "{context}");
            }
        }
    }
}

#[test]
fn every_way_into_compiled_code_is_known() {
    let functions = ["chosen", "by_address", "by_distance", "tail", "split", "main"];
    for (program, build) in programs("flow.c", &["gcc", "clang"]) {
        for function in functions {
            let graph = graph(&program, function);
            assert_eq!(unknown(&program, &graph), [0; 0], "{function} {build}");
        }
    }
    for (program, build) in programs("unwound.cpp", &["g++", "clang++"]) {
        assert_eq!(unknown(&program, &graph(&program, "catcher")), [0; 0], "{build}");
    }
}

#[test]
fn a_case_of_a_switch_is_entered_by_its_own_jump() {
    for (program, build) in programs("flow.c", &["gcc", "clang"]) {
        let graph = graph(&program, "chosen");
        let all = instructions(&program, &graph);
        let jumps = all.iter().filter(|(_, h)| h.flow_control() == FlowControl::IndirectBranch);
        let [(jump, _)] = jumps.collect::<Vec<_>>()[..] else { panic!("one table {build}") };
        let targets = all.iter().filter(|(at, _)| {
            graph.predecessors(*at).iter().any(|from| from.from as usize == *jump && from.is_taken)
        });
        // Nine cases and the default; where two do the same they may be one.
        let n_targets = targets.count();
        assert!((8..=10).contains(&n_targets), "{n_targets} {build}");
    }
}

#[test]
fn landing_pads_are_entered_by_the_unwinder() {
    for (program, build) in programs("unwound.cpp", &["g++", "clang++"]) {
        let graph = graph(&program, "catcher");
        let all = instructions(&program, &graph);
        let n = all.iter().filter(|(at, _)| graph.entrances(*at).is_landing_pad).count();
        assert!(n >= 1, "{build}");
    }
}

#[test]
fn a_tail_call_through_a_method_table_leads_elsewhere() {
    let program = Program::c("flow.c", "-O2 -fPIE -pie");
    let graph = graph(&program, "tail");
    let all = instructions(&program, &graph);
    assert!(all.iter().any(|(_, here)| here.flow_control() == FlowControl::IndirectBranch));
    assert_eq!(unknown(&program, &graph), [0; 0]);
}

#[test]
fn a_part_that_was_moved_away_is_in_the_graph_without_symbols_too() {
    let program = Program::c("flow.c", "-O2 -fPIE -pie");
    let (start, len) = program.function_range("split");
    let with_symbols = graph(&program, "split");
    let all = instructions(&program, &with_symbols);
    let outside = all.iter().find(|(_, here)| !(start..start + len).contains(&here.ip()));
    let (_, moved) = outside.expect("gcc moves what seldom runs");
    let same = index(&program).function(Svma(moved.ip())).unwrap();
    assert_eq!(same.n_instructions(), with_symbols.n_instructions());
    let stripped = program.changed_by("strip", &[]);
    for svma in [start, moved.ip()] {
        let without = index(&stripped).function(Svma(svma)).unwrap();
        assert_eq!(without.n_instructions(), with_symbols.n_instructions());
        for (at, here) in &all {
            let same = without.index_of(Svma(here.ip())).unwrap();
            assert_eq!(sources(&without, same), sources(&with_symbols, *at), "{:#x}", here.ip());
        }
    }
}

#[test]
fn a_stub_of_the_linkage_table_is_a_function() {
    for flags in ["-O2 -fPIE -pie", "-O2 -fno-pie -no-pie -Wl,-z,lazy", "-O2 -fcf-protection=none"]
    {
        let program = Program::c("flow.c", flags);
        let elf = object::File::parse(&*program.bytes).unwrap();
        let names = [".plt", ".plt.sec", ".plt.got"];
        let sections = names.iter().filter_map(|name| elf.section_by_name(name));
        let mut index = index(&program);
        let mut n_stubs = 0;
        for section in sections {
            let stubs = section.address()..section.address() + section.size();
            for start in stubs.step_by(if section.size() % 16 == 0 { 16 } else { 8 }) {
                let stub = index.function(Svma(start)).unwrap();
                let at = stub.index_of(Svma(start)).unwrap();
                assert!(stub.entrances(at).is_entry, "{start:#x} {flags}");
                assert!(stub.predecessors(at).is_empty(), "{start:#x} {flags}");
                n_stubs += 1;
            }
        }
        assert!(n_stubs > 1, "{flags}");
    }
}
