//! Types that no compiler writes: members that are their own class, unions of unions, tables of tables,
//! and how values of them are passed. Each is answered, or has a reason, in bounds.

use crate::absurd_entry::{SOUND, SOUND_TYPE, answer, member, reference};
use crate::hostile::{ask, crafted_with};
use crate::support::allocation::bounded;
use crate::support::program::Program;
use crate::support::session::{Session, with};
use dataspace_proto::register::Register;

/// Abbreviations of types with what the ones of `crafted.s` lack.
const TYPES: &str = ".uleb128 50\n.uleb128 0x02\n.byte 1\n.uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0\n\
    .uleb128 51\n.uleb128 0x01\n.byte 1\n.uleb128 0x49, 0x13, 0, 0\n\
    .uleb128 52\n.uleb128 0x21\n.byte 0\n.uleb128 0x2f, 0x07, 0, 0\n\
    .uleb128 53\n.uleb128 0x2f\n.byte 0\n.uleb128 0x49, 0x13, 0, 0\n\
    .uleb128 54\n.uleb128 0x2e\n.byte 1\n.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0\n\
    .uleb128 55\n.uleb128 0x05\n.byte 0\n.uleb128 0x49, 0x13, 0, 0\n\
    .uleb128 56\n.uleb128 0x24\n.byte 0\n.uleb128 0x0b, 0x0b, 0x3e, 0x0b, 0, 0\n\
    .uleb128 57\n.uleb128 0x13\n.byte 1\n.uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0\n";

#[test]
fn members_that_are_their_own_class_end() {
    let class = |below: &str| {
        format!(".Lc: .uleb128 50\n.asciz \"C\"\n.byte 8\n{}.uleb128 0\n", member(below, 0))
    };
    let pointer = format!(".Ltype: .uleb128 4\n{}", reference(".Lc"));
    for (what, between) in [
        (
            "typedefs",
            format!(".Lt: .uleb128 3\n{}.Lu: .uleb128 3\n{}", reference(".Lu"), reference(".Lc")),
        ),
        (
            "arrays",
            format!(
                ".Lt: .uleb128 51\n{}.uleb128 52\n.quad 1\n.uleb128 0\n.Lu: .uleb128 51\n{}\
                 .uleb128 52\n.quad -1\n.uleb128 52\n.quad -2\n.uleb128 0\n",
                reference(".Lu"),
                reference(".Lc")
            ),
        ),
        (
            "const arrays",
            format!(
                ".Lt: .uleb128 8\n{}.Lu: .uleb128 51\n{}.uleb128 52\n.quad 0\n.uleb128 0\n",
                reference(".Lu"),
                reference(".Lt")
            ),
        ),
    ] {
        let entries = format!("{pointer}{}{between}", class(".Lt"));
        let program = crafted_with(&[("# ENTRIES", &entries), ("# ABBREVIATIONS", TYPES)]);
        let found = answer(&program);
        assert!(found == "{class:C}" || !found.starts_with('{'), "{what}: {found}");
    }
}

/// A call of `origin` with what rsi holds, behind an access through it.
const PASSES: (&str, &str) = (
    "    mov (%rdi), %eax\n",
    "cmpq $0, (%rdi)\nje .Lout\nmov (%rsi), %rax\nmov %rsi, %rdi\ncall origin\nmov (%rsi), %rax\n.Lout:\n",
);

/// `origin` with a parameter of the type at `.Lpassed`.
fn passing(types: &str, abbreviations: &str) -> Program {
    let entries = format!(
        "{SOUND_TYPE}.uleb128 54\n.asciz \"origin\"\n.quad origin\n.quad .Lend_text - origin\n\
         .uleb128 55\n{}.uleb128 55\n{}.uleb128 0\n{types}",
        reference(".Lpassed"),
        reference(".Ltype")
    );
    let abbreviations = format!("{TYPES}{abbreviations}");
    crafted_with(&[PASSES, ("# ENTRIES", &entries), ("# ABBREVIATIONS", &abbreviations)])
}

#[test]
fn values_of_nested_unions_are_passed_somehow() {
    // 2^30 ways to the bottom, of 16 bytes: each union holds the one before twice at 0, and twice at 8
    // if it is a structure.
    for (size, tag) in [(16, 12), (8, 12), (4, 12), (16, 5)] {
        let mut types = format!(".Lu0: .uleb128 56\n.byte {}\n.byte 4\n", size.min(8));
        for level in 1..=30 {
            let below = format!(".Lu{}", level - 1);
            let at = if level == 1 && tag == 5 { 8 } else { 0 };
            let members = member(&below, 0) + &member(&below, at);
            types.push_str(&format!(
                ".Lu{level}: .uleb128 {tag}\n.byte {size}\n{members}.uleb128 0\n"
            ));
        }
        types.push_str(&format!(".Lpassed: .uleb128 3\n{}", reference(".Lu30")));
        let program = passing(&types, "");
        assert_eq!(answer(&program), SOUND, "{size} {tag}");
        bounded(|| {
            let mut session = Session::new(&program);
            for here in program.function("touch") {
                session.exact(here.ip(), &with(&[(Register::Rsi, 64)]));
            }
        });
    }
}

#[test]
fn conventions_of_calling_may_claim_anything() {
    // The attribute in forms that it never has, and values that nobody gave a meaning.
    for (form, value) in [
        ("0x0b", ".byte 0xff\n"),
        ("0x0b", ".byte 4\n"),
        ("0x07", ".quad -1\n"),
        ("0x0f", ".fill 9, 1, 0xff\n.byte 1\n"),
        ("0x08", ".asciz \"by hand\"\n"),
        ("0x0a", ".byte 3, 1, 2, 3\n"),
        ("0x13", ".long .Lpassed - .Linfo + 4\n"),
        ("0x21\n.sleb128 -1", ""),
    ] {
        let abbreviation = format!(
            ".uleb128 60\n.uleb128 0x13\n.byte 1\n.uleb128 0x0b, 0x0b, 0x36, {form}\n.uleb128 0, 0\n"
        );
        let types =
            format!(".Lpassed: .uleb128 60\n.byte 8\n{value}{}.uleb128 0\n", member(".Ltype", 0));
        assert_eq!(answer(&passing(&types, &abbreviation)), SOUND, "{form} {value}");
    }
}

#[test]
fn tables_of_buckets_that_are_tables_end() {
    // `RawTable<T>` whose T is itself, behind a pointer to bytes: buckets of tables of buckets.
    for name in ["RawTable<T>", "RawVec<T>"] {
        let entries = format!(
            ".Ltype: .uleb128 4\n{}.Lt: .uleb128 57\n.asciz \"{name}\"\n.byte 8\n{}.uleb128 53\n{}.uleb128 0\n\
             .Lp: .uleb128 4\n{}.Lb: .uleb128 56\n.byte 1\n.byte 7\n",
            reference(".Lt"),
            member(".Lp", 0),
            reference(".Lt"),
            reference(".Lb")
        );
        let mut code = String::from("cmpq $0, (%rdi)\nje .Lout\nmov (%rdi), %rax\n");
        for _ in 0..200 {
            code.push_str("mov -8(%rax), %rax\nmov (%rax), %rax\n");
        }
        // And a table that is walked in a circle.
        code.push_str(
            ".Lround: sub $8, %rax\nmov (%rax), %rax\ntest %rax, %rax\njne .Lround\n.Lout:\n",
        );
        let program = crafted_with(&[
            ("    mov (%rdi), %eax\n", &*code),
            ("# ENTRIES", &*entries),
            ("# ABBREVIATIONS", TYPES),
        ]);
        assert!(answer(&program).starts_with(&format!("{{structure:{name}}}")), "{name}");
        bounded(|| {
            let mut session = Session::new(&program);
            for here in program.function("touch").iter().step_by(3) {
                session.exact(here.ip(), &with(&[(Register::Rdi, 64), (Register::Rax, 64)]));
            }
        });
    }
}

#[test]
fn types_within_types_do_not_multiply() {
    // 100,000 structures, each of which is defined inside of the one before.
    let entries = format!(
        ".Ltype: .uleb128 4\n{}.Ls: .rept 100000\n.uleb128 5\n.byte 8\n.endr\n{}.fill 100000, 1, 0\n\
         .Li: .uleb128 11\n.byte 4\n",
        reference(".Ls"),
        member(".Li", 4)
    );
    let code = "cmpq $0, (%rdi)\nje .Lout\nmov 8(%rdi), %rax\nmov 4(%rdi), %ecx\nmov -8(%rdi), %rax\n.Lout:\n";
    let program = crafted_with(&[("    mov (%rdi), %eax\n", code), ("# ENTRIES", &*entries)]);
    assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
}
