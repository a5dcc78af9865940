//! Arrays: the index register, loops that compilers unroll, arrays in data.

use super::{HEAP, Misses, by_type, names};
use crate::support::program::{Program, has_memory_operand, has_tool, sampled_register};
use crate::support::session::{object, with};
use dataspace_proto::register::Register::{Rdi, Rsi};
use iced_x86::Instruction;

const OPTIMISED: [(&str, &str); 3] = [
    ("gcc", "-O2 -gdwarf-5"),
    ("gcc", "-O2 -gdwarf-4 -fno-pie -no-pie"),
    ("clang", "-O2 -gdwarf-5 -Dnoipa=noinline"),
];

fn builds(of: &[(&str, &str)]) -> impl Iterator<Item = (Program, String)> {
    let here = of.iter().filter(|(compiler, _)| has_tool(compiler));
    here.map(|(compiler, flags)| {
        (Program::compile(compiler, "peer_arrays.c", flags), format!("{compiler} {flags}"))
    })
}

/// The peer ignores the value of the index register: it names the member at the displacement,
/// whatever was read, and a member that is an array without what is in it.
#[test]
fn the_index_tells_the_member_of_the_element() {
    let mut misses = Misses::default();
    for (program, build) in builds(&OPTIMISED) {
        let mut session = by_type(&program);
        let y = program.truth("struct pos.y");
        let inner = program.truth("struct cell.at") + y;
        let zero = program.truth("struct zero.cells") + y;
        for (function, displacement, index, right) in [
            ("at_byte", 0, 0, "{structure:pos}.{int x}"),
            ("at_byte", 0, y, "{structure:pos}.{int y}"),
            // A count of bytes that leaves the structure may lead anywhere.
            ("at_byte", 0, 8 + y, "unidentified"),
            ("inner_y", inner, 1, "{structure:cell}.{array[2]:structure:pos at}.{int y}"),
            ("zero_y", zero, 5, "{structure:zero}.{array[0]:structure:pos cells}.{int y}"),
        ] {
            let access = program.access(function, displacement);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
            misses.check(object(&line), &[right], &format!("{function}[{index}] {build}"));
        }
        // What has no size stands at the same place as the member behind it.
        let at = program.truth("struct hollow.at") + y;
        let line = session.exact(program.access("hollow_y", at).ip(), &with(&[(Rdi, HEAP)]));
        let right = "{structure:hollow}.{structure:pos at}.{int y}";
        misses.check(object(&line), &[right], &format!("hollow_y {build}"));
    }
    misses.none();
}

/// The peer gives up where the displacement alone is behind the first element.
#[test]
fn a_displacement_beyond_one_element_is_in_another() {
    let mut misses = Misses::default();
    for (program, build) in builds(&OPTIMISED) {
        let mut session = by_type(&program);
        let size = program.truth("sizeof struct pos");
        let y = program.truth("struct pos.y");
        for (function, displacement, right) in [
            ("ahead", 2 * size + y, "{structure:pos}.{int y}"),
            ("behind", size.wrapping_neg(), "{structure:pos}.{int x}"),
        ] {
            let access = program.access(function, displacement);
            for index in [0, 1, 77] {
                let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
                misses.check(object(&line), &[right], &format!("{function}[{index}] {build}"));
            }
        }
    }
    misses.none();
}

/// Each access that is not at a fixed address, in each function of each build.
fn check_loops(of: &[(&str, &str)], functions: &[(&str, &[&str])]) {
    let mut misses = Misses::default();
    for (program, build) in builds(of) {
        let mut session = by_type(&program);
        for (function, right) in functions {
            let named = names(&mut session, &program, function);
            assert!(named.len() > right.len(), "{function} is not unrolled, {build}");
            misses.check_all(&named, right, &format!("{function} {build}"));
        }
    }
    misses.none();
}

const CLANG: [(&str, &str); 2] =
    [("clang", "-O3 -g -ffast-math -Dnoipa=noinline"), ("clang", "-O3 -g -mavx2 -Dnoipa=noinline")];
const GCC: [(&str, &str); 2] =
    [("gcc", "-O3 -g -funroll-loops"), ("gcc", "-O3 -g -funroll-loops -ffast-math -mavx2")];
const OF_SCALARS: [(&str, &[&str]); 2] = [
    ("scale", &["{double a[]}", "{const+double b[]}"]),
    ("column", &["{structure:columns}.{array[100]:double ys}"]),
];
const OF_STRUCTURES: [(&str, &[&str]); 3] = [
    ("weigh", &["{structure:cell}.{double weight}"]),
    ("mark", &["{structure:cell}.{long tail}"]),
    ("inner", &["{structure:cell}.{array[2]:structure:pos at}.{int y}"]),
];

/// In loops that are unrolled or turned into vectors the peer leaves a fifth of the instructions
/// without a type.
#[test]
fn loops_that_are_unrolled_name_every_access() {
    check_loops(&CLANG, &OF_SCALARS);
    check_loops(&CLANG, &OF_STRUCTURES);
    check_loops(&GCC, &OF_SCALARS);
}

/// An array whose address code computes from its own the peer does not find again.
#[test]
fn an_array_in_data_is_found_by_its_computed_address() {
    let mut misses = Misses::default();
    for (program, build) in builds(&OPTIMISED) {
        let mut session = by_type(&program);
        let inner = program.truth("struct cell.at") + program.truth("struct pos.y");
        let cell = program.truth("sizeof struct cell");
        for (function, right, places, size) in [
            ("global_dot", "{structure:pos}.{int y}", &[4][..], 8),
            (
                "global_inner",
                "{structure:cell}.{array[2]:structure:pos at}.{int y}",
                &[inner, inner + 8],
                cell,
            ),
        ] {
            let code = program.function(function);
            for access in code.iter().filter(|here| has_memory_operand(here)) {
                let index = index_of(access, &program, places, size);
                let registers: Vec<_> = sampled_register(access.memory_index())
                    .into_iter()
                    .map(|register| (register, index))
                    .collect();
                let line = session.exact(access.ip(), &with(&registers));
                let context = format!("{function} {:#x} {build}", access.ip());
                misses.check(object(&line), &[right], &context);
            }
        }
    }
    misses.none();
}

/// A value of the index register for which the operand is at one of `places` in an element. The base
/// register, where there is one, holds the array's address.
fn index_of(access: &Instruction, program: &Program, places: &[u64], size: u64) -> u64 {
    let displacement = access.memory_displacement64();
    let starts = ["&rows", "&dots", "&cells"].map(|array| program.truth(array));
    let start = starts.into_iter().filter(|start| *start <= displacement).max().unwrap_or(0);
    let scale = u64::from(access.memory_index_scale());
    let is_there = |index: &u64| {
        places.contains(&(displacement.wrapping_sub(start).wrapping_add(index * scale) % size))
    };
    (0..8).find(is_there).expect("an element's member is in reach")
}

/// A register that counts bytes from nothing may be the base of an operand whose displacement is
/// where the array is: the peer looks at neither.
#[test]
fn an_array_in_data_is_counted_into_by_a_base_register() {
    let mut misses = Misses::default();
    for (program, build) in builds(&OPTIMISED) {
        let named = {
            let mut session = by_type(&program);
            let code = program.function("global_rows");
            let accesses = code.iter().filter(|here| has_memory_operand(here));
            accesses
                .map(|access| {
                    let register = sampled_register(access.memory_base());
                    let rows = program.truth("&rows");
                    // The register counts from nothing, or is in the array itself.
                    let is_counter = access.memory_displacement64().wrapping_sub(rows) < 64 * 24;
                    let value = if is_counter { 0 } else { rows + 10 * 24 + 8 };
                    let registers: Vec<_> = register.into_iter().map(|it| (it, value)).collect();
                    let line = session.exact(access.ip(), &with(&registers));
                    (*access, object(&line).to_owned())
                })
                .collect::<Vec<_>>()
        };
        misses.check_all(&named, &["{array[64]:array[3]:long rows}"], &build);
    }
    misses.none();
}
