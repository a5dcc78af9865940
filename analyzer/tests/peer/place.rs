//! Variables in data and in threads, in debug information of LLVM.

use super::{Misses, by_type};
use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::Rdi;

/// To the peer every variable of a program that clang built with DWARF 5 is without a place: they
/// are in a table of addresses.
#[test]
fn variables_whose_address_is_in_a_table_are_found() {
    if !has_tool("clang") {
        return;
    }
    let mut misses = Misses::default();
    for flags in ["-O2 -gdwarf-5", "-O2 -gdwarf-5 -gsplit-dwarf", "-O2 -gdwarf-5 -fno-pie -no-pie"]
    {
        let program = Program::compile("clang", "places.c", &format!("{flags} -Dnoipa=noinline"));
        for mut session in [by_type(&program), Session::new(&program)] {
            for (function, variable, offset, right) in [
                ("table_third", "table", 24, "{array[16]:long table}"),
                ("place_five", "places", 44, "{structure:pos}.{int y}"),
                ("grid_cell", "grid", 36, "{array[3]:array[4]:int grid}"),
                ("load_ticks", "ticks", 0, "{volatile+int ticks}"),
            ] {
                let address = program.truth(&format!("&{variable}")) + offset;
                let access = program.static_access(function, address);
                let line = session.exact(access.ip(), &with(&[]));
                misses.check(object(&line), &[right], &format!("{function} {flags}"));
            }
        }
    }
    misses.none();
}

/// The peer does not read operands in the segment FS, nor places in a thread's storage.
#[test]
fn a_thread_local_variable_is_named_by_its_instruction() {
    let mut misses = Misses::default();
    for (compiler, flags) in [("gcc", "-O2 -g -pthread"), ("clang", "-O2 -gdwarf-5 -pthread")] {
        if !has_tool(compiler) {
            continue;
        }
        let flags = format!("{flags} -Dnoipa=noinline");
        let program = Program::compile(compiler, "storage.c", &flags);
        let mut session = by_type(&program);
        for (function, right) in [
            ("context_n", "{structure:context}.{long n}"),
            ("set_context_y", "{structure:context}.{array[3]:structure:pos at}.{int y}"),
            ("slot_at", "{array[64]:int slots}"),
        ] {
            let access = program.only(function, has_memory_operand);
            let line = session.exact(access.ip(), &with(&[(Rdi, 3)]));
            misses.check(object(&line), &[right], &format!("{function} {compiler}"));
        }
    }
    misses.none();
}
