//! What the nearest other profiler of data types gets wrong or leaves unknown, one test for each
//! failure that can be reproduced; where older tests hold a failure they are named here.
//!
//! | failure | test |
//! |---|---|
//! | flexible array members, unions named by their first arm, bit-fields in one byte | `naming::an_open_array_at_the_end_reaches_beyond_the_size`, `naming::a_union_arm_is_told_by_its_size`, `layouts::the_bits_that_a_mask_leaves_are_a_bit_field` |
//! | frames without `.debug_frame` | `frame::locals_are_named_by_their_place_in_the_frame` |
//! | split units, type units, dwz | `sources` |
//! | thread-local variables | `storage` |
//! | width of an access ignored | `hunting::a_copy_of_a_structure_is_charged_to_the_structure` |
//! | heap blocks, code without types | `voting` |
//! | code that is no file's, other machines | `reasons` |

mod array;
mod bit_field;
mod class;
mod operand;
mod place;
mod pointer;
mod register;
mod rust_type;

use crate::support::program::{Program, has_memory_operand, run, sampled_register, source};
use crate::support::session::{Session, object, with};
use dataspace_analyzer::attribution::world::Paths;
use dataspace_analyzer::session::analyzer::Config;
use dataspace_proto::register::Register;
use iced_x86::{Instruction, Register as Named};
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeMap;
use std::process::Command;

/// Somewhere on a heap that no mapping names.
const HEAP: u64 = 0x7000_1234_5000;

/// A session in which the type path alone answers.
fn by_type(program: &Program) -> Session {
    Session::configured(program, Config { paths: Paths::Type, ..Config::default() })
}

/// The program whose functions and debug information are written by hand.
fn by_hand() -> Program {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let sources = ["peer_registers.s", "peer_registers.c"].map(source);
    run(Command::new("gcc").args(["-no-pie", "-fno-pie"]).args(sources).arg("-o").arg(&path));
    Program::of(dir, path)
}

/// The labels of a program that begin so, and where they are.
fn labels(program: &Program, prefix: &str) -> BTreeMap<String, u64> {
    let elf = object::File::parse(&*program.bytes).unwrap();
    let named = elf.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?.strip_prefix(prefix)?;
        Some((name.to_owned(), symbol.address() + program.bias()))
    });
    named.collect()
}

/// The accesses of a function by written-out operands that are neither in the frame nor at a fixed
/// address, each with the name it gets when its base is on the heap and its index 0.
fn names(session: &mut Session, program: &Program, function: &str) -> Vec<(Instruction, String)> {
    let is_frame = |base| matches!(base, Named::RSP | Named::RBP | Named::RIP | Named::None);
    let is_asked = |here: &&Instruction| {
        has_memory_operand(here)
            && !is_frame(here.memory_base())
            && here.segment_prefix() == Named::None
    };
    let code = program.function(function);
    let named = code.iter().filter(is_asked).map(|access| {
        let value = |register: Named, value| Some((sampled_register(register)?, value));
        let registers: Vec<(Register, u64)> =
            [value(access.memory_index(), 0), value(access.memory_base(), HEAP)]
                .into_iter()
                .flatten()
                .collect();
        let line = session.exact(access.ip(), &with(&registers));
        (*access, object(&line).to_owned())
    });
    named.collect()
}

/// What is wrong, collected so that one run tells everything.
#[derive(Default)]
struct Misses(Vec<String>);

impl Misses {
    fn check(&mut self, found: &str, right: &[&str], context: &str) {
        // gcc says `long int`, clang `long`.
        let alike = |name: &str| name.replace("long_int", "long");
        if !right.iter().any(|right| alike(right) == alike(found)) {
            self.0.push(format!("{context}: {found} and not {right:?}"));
        }
    }

    /// Every access of a function has one of these names, and all of these names come up.
    fn check_all(&mut self, named: &[(Instruction, String)], right: &[&str], context: &str) {
        for (access, name) in named {
            self.check(name, right, &format!("{context} {:#x} {access}", access.ip()));
        }
        for name in right {
            let mut seen = Self::default();
            if !named.iter().any(|(_, found)| {
                seen.0.clear();
                seen.check(found, &[name], "");
                seen.0.is_empty()
            }) {
                self.0.push(format!("{context}: {name} never comes up"));
            }
        }
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{:#?}", self.0);
    }
}
