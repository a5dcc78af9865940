//! Objects that are passed as what they begin with, and what virtual functions return.

use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{self, Rax, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};
use iced_x86::Register::{RAX, RBX, RDX, RSP};

const HEAP: u64 = 0x7000_1234_5000;
const STACK: u64 = 0x7ffd_1234_5000;

/// What the last access at this displacement in a function is to, with a pointer to the heap in the registers of a first
/// argument and of a result.
fn answer(program: &Program, function: &str, displacement: u64) -> String {
    answer_with(program, function, displacement, &[])
}

/// The same, with more in registers.
fn answer_with(
    program: &Program,
    function: &str,
    displacement: u64,
    more: &[(Register, u64)],
) -> String {
    let is_it = |it: &iced_x86::Instruction| {
        has_memory_operand(it) && it.memory_displacement64() == displacement
    };
    let access = program.function(function).into_iter().rfind(is_it).unwrap();
    let is_free = |it: &(Register, u64)| more.iter().all(|(register, _)| *register != it.0);
    let all = [(Rdi, HEAP), (Rax, HEAP), (Rsp, STACK)].into_iter().filter(is_free);
    let registers: Vec<_> = all.chain(more.iter().copied()).collect();
    object(&Session::new(program).exact(access.ip(), &with(&registers))).to_owned()
}

#[test]
fn what_a_base_is_passed_for_is_told_by_what_is_touched_beyond_it() {
    // Link-time optimisation puts functions into a unit without types.
    for flags in ["-O2 -g", "-O2 -g -flto -ffat-lto-objects -fno-ipa-icf"] {
        let program = Program::c("derived.c", flags);
        let read = |function, member| answer(&program, function, program.truth(member));
        assert_eq!(read("read_real", "real.value"), "{structure:real}.{double value}", "{flags}");
        assert_eq!(read("read_text", "text.hash"), "{structure:text}.{long_int hash}", "{flags}");
        assert_eq!(
            read("read_text", "text.length"),
            "{structure:text}.{long_int length}",
            "{flags}"
        );
        let items = "{structure:list}.{array[1]:pointer+void items}";
        assert_eq!(read("read_list", "list.items"), items, "{flags}");
        for index in [0, 1, 7] {
            let at =
                answer_with(&program, "read_item", program.truth("list.items"), &[(Rsi, index)]);
            assert_eq!(at, items, "{flags} {index}");
        }
        assert_eq!(read("mark_all", "object.behind"), "{long_int -}", "{flags}");
        // A text's length lies there as well.
        assert_eq!(read("read_length", "sized.n_items"), "unidentified", "{flags}");
    }
}

/// As `counted.c` has it.
#[repr(C)]
#[allow(dead_code, reason = "for its layout")]
struct Posting {
    number: i32,
    times: i16,
    first: i16,
}

#[test]
fn what_is_counted_in_bytes_is_named_by_what_it_is_counted_from() {
    for flags in ["-O1 -g", "-O2 -g"] {
        let program = Program::c("counted.c", flags);
        let tag = "{structure:table}.{union:value array[]}";
        assert_eq!(answer(&program, "read_tag", 3), tag, "{flags}");
        let size = "{structure:malloc_chunk}.{long_unsigned_int mchunk_size}";
        let into = program.truth("malloc_chunk.mchunk_size");
        assert_eq!(answer(&program, "read_next", into), size, "{flags}");
        let free = "{structure:pool}.{unsigned_char free[]}";
        assert_eq!(answer(&program, "extend", 0), free, "{flags}");
        // The pool begins where no register leads to the block.
        let before = [(Rax, HEAP - 0x800), (Rdx, HEAP - 0x800)];
        let block = answer_with(&program, "give_back", 0, &before);
        assert_eq!(block, "undetermined", "{flags}");
        let at = std::mem::offset_of!(Posting, first) as u64;
        assert_eq!(answer(&program, "read_posting", at), "unidentified", "{flags}");
        let word = "{structure:bytes}.{char bytes[]}";
        assert_eq!(answer(&program, "read_word", 0), word, "{flags}");
        let next = "{structure:head}.{long_int next}";
        assert_eq!(answer(&program, "read_head", 16u64.wrapping_neg()), next, "{flags}");
    }
}

#[test]
fn of_pointers_in_a_union_the_one_is_taken_that_leads_to_what_is_read() {
    for flags in ["-O1 -g", "-O2 -g"] {
        let program = Program::c("chains.c", flags);
        let buckets = "{pointer+union:bucket buckets[]}";
        assert_eq!(answer(&program, "find", 0), buckets, "{flags}");
        assert_eq!(answer(&program, "pick", 0), "{pointer+structure:node nodes[]}", "{flags}");
        assert_eq!(answer(&program, "take", 0), "unidentified", "{flags}");
        let alike = answer(&program, "pick_alike", 0);
        assert!(!alike.contains("nodes") && !alike.contains("arguments"), "{alike} {flags}");
        let number = "{structure:event}.{union:- data}";
        assert_eq!(answer(&program, "follow", 8), number, "{flags}");
        let node = "{structure:task}.{union:- data}.{pointer+structure:node node}";
        assert_eq!(answer(&program, "follow_node", 8), node, "{flags}");
    }
}

#[test]
fn a_class_that_a_unit_only_declares_has_the_members_that_another_one_describes() {
    for compiler in ["g++", "clang++"].into_iter().filter(|it| has_tool(it)) {
        for flags in ["-O2 -g -gdwarf-4", "-O1 -g", "-O2 -g -gsplit-dwarf"] {
            let units = ["declared.cpp", "declared_shape.cpp"];
            let program = Program::of_units(compiler, &units, flags);
            let read = |function, at| answer(&program, function, program.truth(at));
            let id = read("read_id", "Shape.id");
            let is_member = id.starts_with("{class:plane::Shape}.{long") && id.ends_with(" id}");
            assert!(is_member, "{id} {compiler} {flags}");
            let next = "{class:plane::Shape}.{pointer+class:plane::Shape next}";
            assert_eq!(read("read_next", "Shape.next"), next, "{compiler} {flags}");
            let table = answer(&program, "call_area", 0);
            let is_member =
                table.starts_with("{class:plane::Shape}.{pointer+pointer+function _vptr");
            assert!(is_member, "{table} {compiler} {flags}");
        }
    }
}

#[test]
fn what_fortran_passes_by_reference_on_the_stack_has_its_name() {
    if !has_tool("gfortran") {
        return;
    }
    for flags in ["-O0 -g", "-O1 -g", "-O2 -g -fno-tree-vectorize"] {
        let program = Program::of_units("gfortran", &["passed.f90", "passed_main.c"], flags);
        let mut session = Session::of_type_path(&program);
        let frame = [iced_x86::Register::RSP, iced_x86::Register::RBP];
        let code = program.function("scale_all_");
        let meant = code.iter().filter(|it| {
            let is_real = it.memory_size() == iced_x86::MemorySize::Float64;
            has_memory_operand(it) && is_real && !frame.contains(&it.memory_base())
        });
        let named: std::collections::BTreeSet<String> = meant
            .filter_map(|it| session.exact(it.ip(), &with(&[])).object)
            .map(|object| object.to_string())
            .collect();
        for array in ["x", "y"] {
            let name = format!("{{real(kind=8) {array}[]}}");
            assert!(named.contains(&name), "{named:?} {flags}");
        }
        // What `main` passes is C's.
        let others =
            ["{double -}", "{real(kind=8) -}", "{real(kind=8) alpha[]}", "{real(kind=8) alpha}"];
        let is_known = |name: &String| {
            let array = ["a", "b", "c", "x", "y"].map(|it| format!("{{real(kind=8) {it}[]}}"));
            array.contains(name) || others.contains(&&**name)
        };
        assert!(named.iter().all(is_known), "{named:?} {flags}");
    }
}

#[test]
fn a_virtual_function_returns_what_its_class_declares() {
    for compiler in ["g++", "clang++"].into_iter().filter(|it| has_tool(it)) {
        let program = Program::compile(compiler, "virtual.cpp", "-O2 -g -fno-devirtualize");
        for function in ["_Z10read_firstPK6Source", "_Z9read_lastPK5Chain"] {
            let name = answer(&program, function, program.truth("Node.key"));
            let right = ["{structure:Node}.{long_int key}", "{structure:Node}.{long key}"];
            assert!(right.contains(&&*name), "{name} {compiler} {function}");
        }
    }
}

#[test]
fn a_register_is_kept_over_a_call_by_what_the_called_function_does() {
    for flags in ["-O1 -g -mno-red-zone", "-O2 -g -mno-red-zone"] {
        let program = Program::c("called.c", flags);
        let second = program.truth("node.second");
        let read = |function| answer(&program, function, second);
        let member = "{structure:node}.{long_int second}";
        assert_eq!(read("read_by_keep"), member, "{flags}");
        assert_eq!(read("read_by_relay"), member, "{flags}");
        assert_eq!(read("read_by_give"), "undetermined", "{flags}");
        assert_eq!(read("read_by_pass"), "undetermined", "{flags}");
    }
}

#[test]
fn of_go_only_what_its_own_conventions_tell_is_named() {
    let Some(program) = Program::go("interfaces.go") else { return };
    let mut session = Session::new(&program);
    let mut named = |function: &str, is_it: &dyn Fn(&iced_x86::Instruction) -> bool| {
        let code = program.function(function).into_iter();
        let accesses = code.filter(|it| has_memory_operand(it) && is_it(it));
        let [a, b, c, d] = [0, 1, 2, 3].map(|page| HEAP + (page << 12));
        let hand = with(&[(Rax, a), (Rbx, b), (Rcx, c), (Rdx, d), (Rsp, STACK)]);
        accesses.map(|it| object(&session.exact(it.ip(), &hand)).to_owned()).collect::<Vec<_>>()
    };
    // The result comes in rax.
    let is_radius = |it: &iced_x86::Instruction| it.memory_displacement64() == 8 && is_by(it, RAX);
    assert_eq!(named("main.around", &is_radius), ["{structure:main.Circle}.{int radius}"]);
    // Arrays come on the stack, and then the second result in rax; and all other registers may have results.
    let wrong = "{structure:main.Circle}.{int radius}";
    for function in ["main.besides", "main.last"] {
        let found = named(function, &|it| it.memory_displacement64() == 8 && !is_by(it, RSP));
        assert!(!found.is_empty() && !found.contains(&wrong.to_owned()), "{function} {found:?}");
    }
    // The data of an interface is in rbx: its compiler writes a third piece, of two.
    let is_side = |it: &iced_x86::Instruction| it.memory_displacement64() == 8 && is_by(it, RBX);
    let sides = named("main.measure", &is_side);
    assert!(!sides.is_empty() && sides.iter().all(|it| !it.contains("itab")), "{sides:?}");
    // A bucket's keys come after what is declared of it.
    let is_key = |it: &iced_x86::Instruction| it.memory_size().size() == 8 && is_by(it, RDX);
    let keys = named("runtime.mapaccess1_fast64", &is_key);
    assert!(!keys.is_empty() && keys.iter().all(|it| !it.contains("bmap")), "{keys:?}");
}

fn is_by(instruction: &iced_x86::Instruction, base: iced_x86::Register) -> bool {
    instruction.memory_base() == base
}
