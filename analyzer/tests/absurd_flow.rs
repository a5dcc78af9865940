//! Functions that no compiler makes, with debug information: flow in circles, thousands of slots and
//! callees, places that contradict each other. Each is answered, or has a reason, in bounds.

use crate::hostile::{ask, crafted_with};
use crate::support::allocation::{bounded, n_allocations};
use crate::support::program::{Program, run, source};
use crate::support::session::{EXACT, Session, object, with};
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::index::site::SiteQuery;
use dataspace_analyzer::x86_64::backtrack::Skid;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::record::FileIdentity;
use dataspace_proto::register::Register;
use std::fmt::Write as _;
use std::process::Command;

/// A structure of a pointer to itself and a number, which `touch` has the address of.
const NODE: &str = ".Ltype: .uleb128 4\n.long .Lnode - .Linfo + 4\n\
    .Lnode: .uleb128 5\n.byte 16\n.uleb128 6\n.long .Ltype - .Linfo + 4\n.byte 0\n\
    .uleb128 6\n.long .Llong - .Linfo + 4\n.byte 8\n.uleb128 0\n\
    .Llong: .uleb128 11\n.byte 8\n";

/// How an access to the first of its members is named.
const FIRST: &str = "{structure:-}.{pointer+structure:- -}";

/// `touch` with this code, which the program runs with a pointer to zeros: it is behind a way out.
fn crafted_code(code: &str, entries: &str, others: &[(&str, &str)]) -> Program {
    let code = format!("cmpq $0, (%rdi)\nje .Lout\n{code}\n.Lout:\n");
    let mut parts = vec![("    mov (%rdi), %eax\n", &*code), ("# ENTRIES", entries)];
    parts.extend(others);
    crafted_with(&parts)
}

/// A program in C of this text, behind what lets it tell of itself.
fn c(text: &str, flags: &str) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let (from, path) = (dir.path().join("program.c"), dir.path().join("program"));
    let truth = source("truth.h");
    let main = "int main(void) { print_image(); return 0; }\n";
    std::fs::write(&from, format!("#include \"{}\"\n{text}\n{main}", truth.display())).unwrap();
    let mut command = Command::new("gcc");
    run(command.args(flags.split_whitespace()).arg(from).arg("-o").arg(&path));
    Program::of(dir, path)
}

/// The answers for some of the accesses of a function through `register`, evenly spread.
fn answers(program: &Program, function: &str, register: iced_x86::Register) -> Vec<String> {
    const N_ASKED: usize = 40;
    let code = program.function(function);
    let is_access = |here: &&iced_x86::Instruction| here.memory_base() == register;
    let accesses: Vec<_> = code.iter().filter(is_access).collect();
    let step = accesses.len().div_ceil(N_ASKED).max(1);
    let registers = Register::ALL.map(|register| (register, 0x40));
    bounded(|| {
        let mut session = Session::new(program);
        let mut found = Vec::new();
        for here in accesses.iter().step_by(step).chain(accesses.last()) {
            found.push(object(&session.exact(here.ip(), &with(&registers))).to_owned());
            for event in 1..crate::support::session::N_EVENTS {
                let event = dataspace_proto::event::EventIdx(event);
                session.sample(event, here.next_ip(), &with(&registers));
            }
        }
        assert_eq!(session.analyzer.accounting().imbalance(), 0);
        found
    })
}

#[test]
fn a_jump_table_that_leads_to_itself_ends() {
    // To the jump, into the jump, to the table, before and behind it, and out.
    let table =
        ".Ltable: .quad .Lagain, .Ljump, .Ljump + 1, .Ltable, .Ltable + 3, .Lout, .Lend\n.Lend:";
    let code = |jump: &str| {
        format!(
            "mov 8(%rdi), %rax\n.Lagain: mov (%rdi), %rdi\n mov 8(%rdi), %rax\n\
             cmp $6, %rax\nja .Lout\n{jump}\n{table}\nmov 8(%rdi), %rcx\nmov (%rdi), %rdi\njmp .Lagain"
        )
    };
    for jump in [
        ".Ljump: jmp *.Ltable(, %rax, 8)",
        "lea .Ltable(%rip), %rdx\n.Ljump: jmp *(%rdx, %rax, 8)",
        // The table is found in itself.
        "lea .Ltable(%rip), %rdx\n.Ljump: mov (%rdx, %rax, 8), %rdx\njmp *(%rdx, %rax, 8)",
    ] {
        let program = crafted_code(&code(jump), NODE, &[]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{jump}");
        answers(&program, "touch", iced_x86::Register::RDI);
    }
}

#[test]
fn thousands_of_blocks_in_circles_are_followed() {
    // Each block goes on in the next and in one far away.
    const N_BLOCKS: usize = 4000;
    let mut code = String::new();
    for block in 0..N_BLOCKS {
        let far = (block * 7919 + 13) % N_BLOCKS;
        writeln!(code, ".Lb{block}: mov (%rdi), %rdi\ntest %rdi, %rdi\nje .Lb{far}").unwrap();
    }
    let program = crafted_code(&format!("{code}\njmp .Lb1"), NODE, &[]);
    let found = answers(&program, "touch", iced_x86::Register::RDI);
    assert!(found.iter().all(|object| object == FIRST), "{found:?}");
}

#[test]
fn thousands_of_slots_are_followed() {
    // Each is filled from the one before, and the last is used.
    const N_SLOTS: usize = 4000;
    let mut code = format!("sub ${}, %rsp\nmov %rdi, (%rsp)\n", N_SLOTS * 8 + 8);
    for slot in 1..N_SLOTS {
        let (from, to) = (8 * (slot - 1), 8 * slot);
        writeln!(code, "mov {from}(%rsp), %rax\nmov %rax, {to}(%rsp)").unwrap();
    }
    writeln!(code, "mov {}(%rsp), %rsi\nmov (%rsi), %rax", 8 * (N_SLOTS - 1)).unwrap();
    writeln!(code, "add ${}, %rsp", N_SLOTS * 8 + 8).unwrap();
    let program = crafted_code(&code, NODE, &[]);
    assert_eq!(answers(&program, "touch", iced_x86::Register::RSI), [FIRST, FIRST]);
    answers(&program, "touch", iced_x86::Register::RSP);
}

/// An abbreviation of variables with a list of places.
const LISTED: (&str, &str) = (
    "# ABBREVIATIONS",
    ".uleb128 50\n.uleb128 0x34\n.byte 0\n.uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x17, 0, 0\n",
);

/// An entry of such a variable.
fn listed(name: &str, type_label: &str, list: &str) -> String {
    format!(".uleb128 50\n.asciz \"{name}\"\n.long {type_label} - .Linfo + 4\n.long {list}\n")
}

/// A program whose function `touch` has more variables than `p`.
fn with_children(children: &str, entries: &str, lists: &str, code: &str) -> Program {
    let code = format!("cmpq $0, (%rdi)\nje .Lout\n{code}\n.Lout:\n");
    let parameter = "    .byte 1\n    .byte 0x55\n    .uleb128 0\n";
    let children = format!("    .byte 1\n    .byte 0x55\n{children}    .uleb128 0\n");
    let section = format!(".section .debug_loc, \"\", @progbits\n{lists}");
    crafted_with(&[
        ("    mov (%rdi), %eax\n", &code),
        (parameter, &children),
        ("# ENTRIES", entries),
        LISTED,
        ("# UNITS", &section),
    ])
}

/// A place in the register with this DWARF number (0 to 31), all over the function.
fn place(register: u8) -> String {
    let operation = 0x50 + register;
    format!(".quad 0, origin - touch\n.value 1\n.byte {operation}\n")
}

const END: &str = ".quad 0, 0\n";

#[test]
fn places_that_contradict_each_other_are_answered_alike_in_any_order() {
    let other = ".Lother: .uleb128 4\n.long .Lpair - .Linfo + 4\n\
        .Lpair: .uleb128 12\n.byte 24\n.uleb128 6\n.long .Llong - .Linfo + 4\n.byte 0\n.uleb128 0\n";
    let entries = format!("{NODE}{other}");
    let lists = format!(
        ".Lboth: {}{}{END}.Lone: {}{END}.Lbackwards: .quad 8, 2\n.value 1\n.byte 0x54\n\
         .quad -1, 8\n.quad -16, -1\n.value 1\n.byte 0x54\n{END}.Lcut: .quad 0, 64\n.value 0xffff\n",
        place(4),
        place(1),
        place(4)
    );
    let code = "mov (%rsi), %rax\nmov (%rdx), %rax";
    let q = listed("q", ".Ltype", ".Lboth");
    let asked = |children: String, register| {
        let program = with_children(&children, &entries, &lists, code);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
        answers(&program, "touch", register)
    };
    // One variable is in two registers at once, and in one of them another variable of another type, which
    // may be as right.
    let r = listed("r", ".Lother", ".Lone");
    let second = "{union:-}.{- -}";
    let by_order = [format!("{q}{r}"), format!("{r}{q}")].map(|both| {
        assert_eq!(asked(both.clone(), iced_x86::Register::RDX), [FIRST, FIRST]);
        asked(both, iced_x86::Register::RSI)
    });
    assert_eq!(by_order[0], by_order[1]);
    let is_said =
        |object: &String| [FIRST, second].contains(&&**object) || !object.starts_with('{');
    assert!(by_order[0].iter().all(is_said), "{by_order:?}");
    assert_eq!(asked(r, iced_x86::Register::RSI), [second, second]);
    // Ranges that end before they begin, and a place that is longer than its section.
    let damaged = listed("r", ".Ltype", ".Lbackwards") + &listed("s", ".Ltype", ".Lcut");
    assert_eq!(asked(q + &damaged, iced_x86::Register::RSI), [FIRST, FIRST]);
}

#[test]
fn shared_lists_of_places_do_not_multiply() {
    // Many variables, each of which has a long list: of places that are not known, or of nothing.
    let lists = [
        ".rept 50000\n.quad 0, 8\n.value 1\n.byte 0x9f\n.endr\n",
        ".rept 50000\n.quad 8, 8\n.value 0\n.endr\n",
        ".rept 50000\n.quad -1, 0\n.endr\n",
    ];
    for list in lists {
        let children = format!(".rept 50000\n{}.endr\n", listed("q", ".Ltype", ".Llong_list"));
        let lists = format!(".Llong_list: {list}{END}");
        let program = with_children(&children, NODE, &lists, "mov (%rsi), %rax");
        let found = answers(&program, "touch", iced_x86::Register::RDI);
        assert_eq!(found[0], FIRST);
    }
}

#[test]
fn sixteen_functions_that_call_each_other_end() {
    // All pass on what they were given, and only one of them says what it is.
    const N: usize = 16;
    let mut text = String::from("struct node { struct node *next; long value; };\n");
    for function in 0..N {
        writeln!(text, "FUNCTION static long f{function}(void *p, long n);").unwrap();
    }
    writeln!(text, "FUNCTION long typed(struct node *p, long n) {{ return f0(p, n); }}").unwrap();
    for function in 0..N {
        writeln!(text, "static long f{function}(void *p, long n) {{ long s = 0;").unwrap();
        for callee in 0..N {
            writeln!(text, "if (n & {}) s += f{callee}(p, n + s);", 1 << callee).unwrap();
        }
        writeln!(text, "return s + ((long *)p)[1] * n; }}").unwrap();
    }
    let program = c(&text, "-O2 -g -fno-pie -no-pie");
    for function in ["f0", "f7", "f15", "typed"] {
        bounded(|| {
            let mut session = Session::new(&program);
            for here in program.function(function) {
                session.sample(EXACT, here.ip(), &with(&[(Register::Rdi, 64)]));
            }
            assert_eq!(session.analyzer.accounting().imbalance(), 0);
        });
    }
}

/// Blocks of memory that making a site takes, twice.
fn site_allocations(program: &Program, function: &str) -> u64 {
    let (start, _) = program.function_range(function);
    let key = LoadObjectKey {
        path: b"/program".as_slice().into(),
        identity: FileIdentity::None,
        pid: 1,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    };
    let instead = Some(program.bytes.clone());
    let files = crate::support::session::TestFiles { instead, ..Default::default() };
    bounded(|| {
        let mut index = LoadObjectIndex::open(&key, &files).unwrap();
        let before = n_allocations();
        for skid in [Skid::AfterOne, Skid::Within(8)] {
            assert!(index.site(SiteQuery { ip: Svma(start), skid }).outcome.is_ok());
        }
        n_allocations() - before
    })
}

/// `touch` with calls behind its end, and code of more functions.
fn with_calls(calls: &str, functions: &str) -> Program {
    let functions = format!(".text\n{functions}\n");
    crafted_code(&format!("jmp .Lout\n{calls}"), NODE, &[("# UNITS", &*functions)])
}

#[test]
fn a_chain_of_functions_that_never_return_is_not_followed_to_its_end() {
    let chain = |n: usize| {
        let mut functions = String::new();
        for function in 0..n {
            let next = function + 1;
            writeln!(functions, ".Lc{function}: push %rax\ncall .Lc{next}\nud2").unwrap();
        }
        writeln!(functions, ".Lc{n}: ud2").unwrap();
        with_calls("call .Lc0\nmov (%rdi), %rdi\n", &functions)
    };
    // Both are longer than what is looked at of a function that is called, and each begins one.
    let (long, chain) = (chain(40_000), chain(20_000));
    // What is made once for all is made here.
    site_allocations(&chain, "touch");
    let (far, near) = (site_allocations(&long, "touch"), site_allocations(&chain, "touch"));
    assert!(far < near + 100, "{far} and {near} allocations");
    assert!(ask(chain.bytes.clone(), &chain, "touch").is_ok());
}

#[test]
fn functions_that_never_return_and_call_each_other_end() {
    let functions = ".La: push %rax\ncall .Lb\n.Lb: push %rax\ncall .La\nud2\n\
        .Lc: call .Lc\n.Ld: jmp .Ld\n.Le: jmp .Lf\n.Lf: jmp .Le\n\
        .Lg: je .Lh\ncall .Lg\nud2\n.Lh: call .La\nud2\n";
    for callee in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let calls = format!("call .L{callee}\nmov (%rdi), %rdi\nmov (%rdi), %rax\n");
        let program = with_calls(&calls, functions);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{callee}");
    }
}

#[test]
fn functions_that_call_many_others_do_not_multiply() {
    // A function of many calls, of functions of 40 calls each, and so on: each begins in the middle of
    // others.
    const N_CALLS: u64 = 200_000;
    let mut calls = Vec::new();
    let mut random = 1_u64;
    for at in 0..N_CALLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let to = (random >> 33) % (N_CALLS - 64);
        let distance = (to * 5).wrapping_sub(at * 5 + 5) as u32;
        calls.push(0xe8);
        calls.extend(distance.to_le_bytes());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls");
    std::fs::write(&path, calls).unwrap();
    let functions = format!(".Lcalls: .incbin \"{}\"\nret\n", path.display());
    let own = ".set number, 0\n.rept 20000\ncall .Lcalls + 5 * (number * 9 % 190000)\n\
        .set number, number + 1\n.endr\nmov (%rdi), %rax\n";
    let program = with_calls(own, &functions);
    let n = site_allocations(&program, "touch");
    assert!(n < 4_000_000, "{n} allocations");
}

#[test]
fn a_slot_that_points_to_itself_ends() {
    let text = "__asm__(\".data\\n.balign 8\\nslot: .quad slot\\nother: .quad another\\nanother: .quad other\\n\
        stubbed: .quad stub\\n.text\\nstub: jmp *stubbed(%rip)\\n\
        .globl called\\n.type called,@function\\ncalled:\\nmov (%rdi),%rax\\ncall *slot(%rip)\\n\
        mov (%rdi),%rax\\ncall *other(%rip)\\nmov (%rdi),%rax\\ncall stub\\nmov (%rdi),%rax\\n\
        jmp *slot(%rip)\\n.size called,.-called\\n\");\n";
    for flags in ["-O2 -g -fPIE -pie", "-O2 -g -fno-pie -no-pie"] {
        let program = c(text, flags);
        assert!(ask(program.bytes.clone(), &program, "called").is_ok(), "{flags}");
    }
}
