//! Functions that no debug information describes and that are known by their symbols.

use crate::hostile::{ask, attribute};
use crate::support::program::{Program, has_memory_operand, has_tool, run};
use crate::support::session::{Hand, Session, object, with};
use dataspace_proto::register::Register;
use iced_x86::{Instruction, Register as CodeRegister};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEAP: u64 = 0x7000_1234_5000;
const TREE_INCREMENT: &str = "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base";
const TREE_DECREMENT: &str = "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base";
const TREE: [&str; 9] = [
    TREE_INCREMENT,
    "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
    TREE_DECREMENT,
    "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
    "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
    "_ZSt20_Rb_tree_rotate_leftPSt18_Rb_tree_node_baseRS0_",
    "_ZSt21_Rb_tree_rotate_rightPSt18_Rb_tree_node_baseRS0_",
    "_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_",
];
const LIST: [&str; 5] = [
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
    "_ZNSt8__detail15_List_node_base9_M_unhookEv",
    "_ZNSt8__detail15_List_node_base10_M_reverseEv",
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
    "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
];
const POLICY: [&str; 2] = [
    "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
    "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
];

/// What `linked.cpp` calls the accesses to its types, by their offset as it tells it: its functions are
/// described by the compiler.
struct Named {
    tree: BTreeMap<u64, String>,
    list: BTreeMap<u64, String>,
    policy: BTreeMap<u64, String>,
}

/// Registers that all hold one pointer.
fn everywhere() -> Hand {
    with(&Register::ALL.map(|register| (register, HEAP)))
}

/// The same in one register, and pointers to elsewhere in the others.
fn only_in(register: CodeRegister) -> Hand {
    let name = format!("{:?}", register.full_register());
    let value = |(register, n): (Register, u64)| {
        let is_it = format!("{register:?}").eq_ignore_ascii_case(&name);
        (register, if is_it { HEAP } else { HEAP + (n << 32) })
    };
    with(&Register::ALL.into_iter().zip(1..).map(value).collect::<Vec<_>>())
}

impl Named {
    fn of(program: &Program, session: &mut Session) -> Self {
        let mut of = |members: &[(&str, &str)]| {
            let name = |(function, member): &(&str, &str)| {
                let offset = program.truth(member);
                let ip = program.access(function, offset).ip();
                let line = session.exact(ip, &everywhere());
                // As gcc spells what clang calls an `unsigned long`.
                (offset, object(&line).replace("{unsigned_long ", "{long_unsigned_int "))
            };
            members.iter().map(name).collect::<BTreeMap<u64, String>>()
        };
        Self {
            tree: of(&[
                ("color", "TreeNode._M_color"),
                ("parent", "TreeNode._M_parent"),
                ("left", "TreeNode._M_left"),
                ("right", "TreeNode._M_right"),
            ]),
            list: of(&[("next", "ListNode._M_next"), ("previous", "ListNode._M_prev")]),
            policy: of(&[
                ("most", "Policy._M_max_load_factor"),
                ("resize", "Policy._M_next_resize"),
            ]),
        }
    }
}

/// Holds every access of a function through a pointer to what the compiler calls that place, or, with
/// `or_unknown`, to nothing at all. Gives how many are named.
fn check_accesses(
    library: &Program,
    session: &mut Session,
    symbol: &str,
    named: &BTreeMap<u64, String>,
    or_unknown: impl Fn(&Instruction) -> bool,
) -> usize {
    let mut n_named = 0;
    for access in library.function(symbol) {
        let base = access.memory_base();
        let others = [CodeRegister::None, CodeRegister::RSP, CodeRegister::RIP];
        if !has_memory_operand(&access) || others.contains(&base) {
            continue;
        }
        let line = session.exact(access.ip(), &only_in(base));
        if or_unknown(&access) && line.object.is_none() {
            continue;
        }
        let name = &named[&access.memory_displacement64()];
        // A vector of both links.
        let is_whole = access.memory_size().size() == 16;
        let expected = if is_whole { name.split_inclusive('}').next().unwrap() } else { name };
        assert_eq!(object(&line), expected, "{symbol} {:#x}", access.ip());
        n_named += 1;
    }
    n_named
}

/// Holds all functions of the C++ library, wherever it is, to what the compiler says of their types.
fn check_library(library: &Program, program: &Program) {
    // What the accesses before say of the same memory is left out.
    let mut session = Session::of_type_path(program);
    let named = Named::of(program, &mut session);
    assert!(named.tree[&program.truth("TreeNode._M_left")].ends_with(" _M_left}"));
    for symbol in TREE {
        if symbol.contains("rotate") {
            continue;
        }
        let n_named = check_accesses(library, &mut session, symbol, &named.tree, |_| false);
        assert!(n_named >= 1, "{symbol}");
    }
    for symbol in LIST {
        let n_named = check_accesses(library, &mut session, symbol, &named.list, |_| false);
        assert!(n_named >= 2, "{symbol}");
    }
    for symbol in POLICY {
        // Other pointers go over the table of primes.
        let n_named = check_accesses(library, &mut session, symbol, &named.policy, |_| true);
        assert!(n_named >= 2, "{symbol}");
    }
    check_one_row(&mut session, &named);
}

/// The compiler's types and the declared ones are one, down to their sizes.
fn check_one_row(session: &mut Session, named: &Named) {
    let snapshot = session.analyzer.snapshot(Default::default(), Default::default(), None);
    for name in named.tree.values().chain(named.list.values()) {
        let rows = snapshot.objects.iter().filter(|row| *row.object == **name);
        assert_eq!(rows.count(), 1, "{name}");
    }
}

/// The C++ library that a program was linked to at run time.
fn library_of(program: &Program) -> Option<PathBuf> {
    let paths = program.maps.iter().filter_map(|line| line.split_whitespace().nth(5));
    paths.into_iter().find(|path| path.contains("/libstdc++.so")).map(PathBuf::from)
}

#[test]
fn containers_links_are_named_in_a_library_without_debug_information() {
    for compiler in ["g++", "clang++"] {
        if !has_tool(compiler) {
            continue;
        }
        let flags = "-std=c++17 -O2 -g -fPIE -pie -fno-limit-debug-info";
        let flags = if compiler == "g++" { "-std=c++17 -O2 -g -fPIE -pie" } else { flags };
        let program = Program::compile(compiler, "linked.cpp", flags);
        let Some(library) = library_of(&program) else {
            eprintln!("skipped: {compiler} links another C++ library, or none that is loaded");
            continue;
        };
        check_library(&program.loaded(&library, TREE_INCREMENT), &program);
    }
}

#[test]
fn containers_links_are_named_in_a_program_that_has_the_library_in_it() {
    if !has_tool("g++") {
        return;
    }
    let archive = run(Command::new("g++").arg("-print-file-name=libstdc++.a"));
    if !Path::new(String::from_utf8_lossy(&archive).trim()).is_absolute() {
        eprintln!("skipped: there is no libstdc++.a");
        return;
    }
    let flags = "-std=c++17 -O2 -g -fPIE -pie -static-libstdc++ -Wl,--whole-archive -lstdc++ \
                 -Wl,--no-whole-archive";
    let program = Program::compile("g++", "linked.cpp", flags);
    check_library(&program, &program);
}

/// The address of the access at `offset` in a function, and what it is called.
fn named(session: &mut Session, ip: u64) -> String {
    object(&session.exact(ip, &everywhere())).to_owned()
}

#[test]
fn what_only_known_functions_call_gets_what_they_pass() {
    let program = Program::c("known.c", "-O2 -fPIE -pie -rdynamic");
    let (first, second) = (program.truth("struct item.first"), program.truth("struct item.second"));
    let [own, shared, decrement, unknown] =
        [("own", second), ("shared", first), (TREE_DECREMENT, first), ("unknown", second)]
            .map(|(function, offset)| program.access(function, offset).ip());
    // What is static has no symbol then.
    let program = program.changed_by("strip", &[]);
    let mut session = Session::new(&program);
    let node = "{structure:std::_Rb_tree_node_base}.{pointer+structure:std::_Rb_tree_node_base";
    assert_eq!(named(&mut session, decrement), format!("{node} _M_left}}"));
    assert_eq!(named(&mut session, own), format!("{node} _M_right}}"));
    assert_eq!(named(&mut session, shared), "unascertainable", "main calls it too");
    assert_eq!(named(&mut session, unknown), "unascertainable");
}

#[test]
fn what_the_debug_information_says_goes_before_what_a_symbol_does() {
    let program = Program::c("known.c", "-O2 -g -fPIE -pie -rdynamic");
    let ip = program.access(TREE_DECREMENT, program.truth("struct item.first")).ip();
    let found = named(&mut Session::new(&program), ip);
    assert_eq!(found, "{structure:item}.{pointer+structure:item first}");
}

/// A program whose symbols promise what its code is not.
fn absurd(code: &str) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let (path, assembly) = (dir.path().join("program"), dir.path().join("absurd.s"));
    let touch = ".text\n.globl touch\n.type touch, @function\ntouch:\nmov (%rdi), %eax\nret\n";
    let end = "ret\n.size touch, . - touch\n.section .note.GNU-stack, \"\", @progbits\n";
    std::fs::write(&assembly, format!("{touch}{code}\n{end}")).unwrap();
    let main = crate::support::program::source("crafted.c");
    run(Command::new("gcc")
        .args(["-no-pie", "-fno-pie"])
        .arg(assembly)
        .arg(main)
        .arg("-o")
        .arg(&path));
    Program::of(dir, path)
}

#[test]
fn symbols_that_promise_what_is_not_there_are_answered() {
    let symbols: Vec<&str> = TREE.into_iter().chain(LIST).chain(POLICY).collect();
    let head = |symbol: &str| format!(".globl {symbol}\n.type {symbol}, @function\n{symbol}:\n");
    let each = |body: &str, size: &str| {
        let function = |symbol: &&str| format!("{}{body}\n.size {symbol}, {size}\n", head(symbol));
        symbols.iter().map(function).collect::<String>()
    };
    let callees = (0..40).map(|n| {
        format!(
            ".Lf{n}: .cfi_startproc\ncall .Lf{}\njmp .Lf{}\n.cfi_endproc\n",
            (n + 7) % 40,
            (n + 1) % 40
        )
    });
    let cases = [
        ("all at one place", symbols.iter().map(|symbol| head(symbol)).collect()),
        ("without a length", each("mov 24(%rdi), %rax", "0")),
        ("of absurd length", each("mov 24(%rdi), %rax", "0x7fffffffffffffff")),
        ("longer than all code", each("mov 24(%rdi), %rax", "16384")),
        ("around each other", each("mov 24(%rdi), %rax\ncall touch\njmp . - 9", "40")),
        ("no instructions", each(".byte 0x06, 0x0f, 0x0b, 0xff, 0xff", "5")),
        ("outside of all", each("mov 24(%rdi,%rsi,8), %rax\njmp 0x7ffff000\ncall 0", "16")),
        (
            "calls without an end",
            format!(
                "{}{}",
                each("call .Lf3\nmov (%rax), %rax\njmp .Lf0", "13"),
                callees.collect::<String>()
            ),
        ),
    ];
    for (what, code) in cases {
        let program = absurd(&code);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{what}");
        attribute(program.bytes.clone(), &program, "touch");
        let stripped = program.changed_by("strip", &["--keep-symbol=touch"]);
        let _ = ask(stripped.bytes.clone(), &stripped, "touch");
    }
}
