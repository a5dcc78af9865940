//! Entries, abbreviations and sections that no compiler writes: lengths that overflow, lists that all share,
//! references in circles. Each is answered, or has a reason, in bounds.

use crate::hostile::{ask, attribute, crafted_with};
use crate::support::allocation::bounded;
use crate::support::parts::{self, misses};
use crate::support::program::{Program, run};
use crate::support::session::{Session, TestFiles, object, with};
use dataspace_proto::register::Register;
use object::{Object as _, ObjectSection as _};
use std::process::Command;

/// What a pointer in rdi leads to where its entries are sound.
pub(crate) const SOUND: &str = "{structure:-}";

/// A structure of eight bytes with a number at 4, which `touch` has the address of.
pub(crate) const SOUND_TYPE: &str = ".Ltype: .uleb128 4\n.long .Ls - .Linfo + 4\n\
    .Ls: .uleb128 5\n.byte 8\n.uleb128 6\n.long .Li - .Linfo + 4\n.byte 4\n.uleb128 0\n\
    .Li: .uleb128 11\n.byte 4\n";

pub(crate) fn reference(label: &str) -> String {
    format!(".long {label} - .Linfo + 4\n")
}

pub(crate) fn member(label: &str, at: u8) -> String {
    format!(".uleb128 6\n{}.byte {at}\n", reference(label))
}

/// The answer for the first access of `touch`, after all else was asked.
pub(crate) fn answer(program: &Program) -> String {
    assert!(ask(program.bytes.clone(), program, "touch").is_ok());
    attribute(program.bytes.clone(), program, "touch");
    bounded(|| {
        let mut session = Session::new(program);
        let first = program.function("touch")[0].ip();
        object(&session.exact(first, &with(&[(Register::Rdi, 64)]))).to_owned()
    })
}

/// An abbreviation of a variable with attributes of these forms, and an entry with these bytes between
/// sound ones and the type that is asked for.
fn odd(attributes: &str, bytes: &str) -> Program {
    let abbreviation = format!(".uleb128 60\n.uleb128 0x34\n.byte 0\n{attributes}.byte 0, 0\n");
    crafted_with(&[
        ("# ENTRIES", &format!("{SOUND_TYPE}.uleb128 60\n{bytes}")),
        ("# ABBREVIATIONS", &abbreviation),
    ])
}

#[test]
fn attributes_in_absurd_forms_leave_what_is_before_them() {
    let most = ".fill 9, 1, 0xff\n.byte 1\n";
    let cases = [
        // DW_FORM_block and DW_FORM_exprloc of 2^64 - 1 bytes, with an attribute behind it.
        (".uleb128 0x02, 0x09, 0x03, 0x07", most),
        (".uleb128 0x02, 0x18, 0x03, 0x07", most),
        (".uleb128 0x02, 0x04, 0x03, 0x07", ".long -1\n"),
        (".uleb128 0x02, 0x03, 0x03, 0x07", ".value -1\n"),
        // DW_FORM_indirect of a block, of itself, of itself for ever, of DW_FORM_implicit_const.
        (".uleb128 0x02, 0x16, 0x03, 0x07", ".byte 0x09\n.fill 9, 1, 0xff\n.byte 1\n"),
        (".uleb128 0x02, 0x16", ".byte 0x16, 0x0b, 1\n"),
        (".uleb128 0x02, 0x16", ".fill 100000, 1, 0x16\n"),
        (".uleb128 0x02, 0x16", ".byte 0x21\n"),
        // DW_FORM_implicit_const as a place, a name, a size.
        (".uleb128 0x02, 0x21\n.sleb128 -1\n.uleb128 0x03, 0x21\n.sleb128 1 << 62", ""),
        // A form that there is not.
        (".uleb128 0x02, 0x7fff", ".quad 0\n"),
        // A string without an end, and a number without one.
        (".uleb128 0x02, 0x18, 0x03, 0x08", ".byte 0\n.fill 100000, 1, 'n'\n"),
        (".uleb128 0x02, 0x0f", ".fill 100000, 1, 0x80\n"),
        // Indices of tables that are not there.
        (
            ".uleb128 0x02, 0x22, 0x03, 0x1a",
            ".fill 9, 1, 0xff\n.byte 1\n.fill 9, 1, 0xff\n.byte 1\n",
        ),
        // Bounds of code that reach around the end of all addresses, said twice.
        (".uleb128 0x11, 0x01, 0x12, 0x07, 0x11, 0x01, 0x12, 0x07", ".quad 0, 0, -1, -1\n"),
    ];
    for (attributes, bytes) in cases {
        let attributes = format!("{attributes}\n");
        assert_eq!(answer(&odd(&attributes, bytes)), SOUND, "{attributes}");
        // The same for what begins and is asked for as a function.
        let program = crafted_with(&[
            ("# ENTRIES", &format!("{SOUND_TYPE}.uleb128 60\n{bytes}")),
            (
                "# ABBREVIATIONS",
                &format!(".uleb128 60\n.uleb128 0x2e\n.byte 1\n{attributes}.uleb128 0, 0\n"),
            ),
        ]);
        assert_eq!(answer(&program), SOUND, "{attributes}");
    }
}

#[test]
fn attributes_of_no_bytes_do_not_multiply() {
    // DW_FORM_flag_present and DW_FORM_implicit_const take none: many of them for each of many entries.
    let attributes =
        ".rept 100000\n.uleb128 0x34, 0x19\n.endr\n.rept 100000\n.uleb128 0x38, 0x21, 1\n.endr\n";
    let entries = format!("{SOUND_TYPE}.rept 200000\n.uleb128 60\n.endr\n");
    for (tag, own) in [
        // Variables with a place, functions with code, members and bases of one class, parameters.
        (0x34, ".uleb128 0x02, 0x21, 0\n"),
        (0x2e, ".uleb128 0x11, 0x21, 64\n"),
        (0x13, ".uleb128 0x0b, 0x21, 8\n"),
    ] {
        let abbreviation =
            format!(".uleb128 60\n.uleb128 {tag}\n.byte 0\n{own}{attributes}.byte 0, 0\n");
        let program =
            crafted_with(&[("# ENTRIES", &*entries), ("# ABBREVIATIONS", &*abbreviation)]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{tag}");
    }
    // In a type: its members, its bases, its parameters.
    for tag in [0x0d, 0x1c, 0x2f] {
        let abbreviation = format!(
            ".uleb128 60\n.uleb128 {tag}\n.byte 0\n.uleb128 0x49, 0x13, 0x38, 0x0b\n{attributes}.byte 0, 0\n"
        );
        let own = format!(".uleb128 60\n{}.byte 4\n", reference(".Li"));
        let types = SOUND_TYPE.replace(".byte 8\n", &format!(".byte 8\n.rept 16000\n{own}.endr\n"));
        let program = crafted_with(&[("# ENTRIES", &*types), ("# ABBREVIATIONS", &*abbreviation)]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{tag}");
    }
}

#[test]
fn an_abbreviation_of_very_many_bytes_is_refused() {
    // Attributes of sixteen bytes: as many as an entry may have, and more than the section is long.
    for (n, expected) in [(126, SOUND), (127, "unascertainable"), (300_000, "unascertainable")] {
        let attributes =
            format!(".rept {n}\n.uleb128 0x02, 0x1e\n.endr\n.uleb128 0x02, 0x1e, 0x03, 0x08\n");
        assert_eq!(answer(&odd(&attributes, ".quad 0\n")), expected, "{n}");
    }
}

#[test]
fn tables_of_abbreviations_that_overlap_do_not_multiply() {
    // Each unit's table begins one abbreviation further on, and its root is the last of all.
    const N: usize = 50_000;
    let table = format!(
        ".Ltables: .set code, 16500\n.rept {N}\n.uleb128 code\n.byte 0x34, 0, 0, 0\n.set code, code + 1\n\
         .endr\n.uleb128 code\n.byte 0x11, 0, 0, 0\n"
    );
    // An abbreviation here has seven bytes.
    let units = format!(
        ".set number, 0\n.rept {N}\n.long 11\n.value 4\n.long .Ltables + 7 * number\n.byte 8\n\
         .uleb128 {}\n.byte 0\n.set number, number + 1\n.endr\n",
        16500 + N
    );
    // Another time the last one ends in a form that there is not, and none is the root.
    for (table, units) in [
        (table.clone(), units.clone()),
        (table.replace("0x11, 0, 0, 0", "0x11, 0, 0, 0xff"), units.replace("66500", "1")),
    ] {
        let program = crafted_with(&[
            ("# ENTRIES", SOUND_TYPE),
            ("# ABBREVIATIONS", &table),
            ("# UNITS", &units),
        ]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
    }
}

#[test]
fn ranges_of_no_code_do_not_multiply() {
    // Functions and units that all have one list of ranges, none of which holds code.
    let empty = "    .rept 50000\n    .quad 1, 1\n    .endr\n";
    let dropped = "    .rept 50000\n    .quad 0, 9\n    .endr\n";
    let bases = "    .rept 50000\n    .quad -1, 0\n    .endr\n";
    let list = "    .rept 20000\n    .quad 1, 2\n    .endr\n";
    for other in [empty, dropped, bases] {
        let entries = format!("{SOUND_TYPE}.rept 50000\n.uleb128 14\n.long .Lranges\n.endr\n");
        // The units' own bases are 0.
        let unit = ".long 12\n.value 4\n.long .Labbrev\n.byte 8\n.uleb128 60\n.long .Lranges\n";
        let units = format!(".rept 50000\n{unit}.endr\n");
        let program = crafted_with(&[
            ("# ENTRIES", &*entries),
            ("# UNITS", &*units),
            ("# ABBREVIATIONS", ".uleb128 60\n.uleb128 0x11\n.byte 0\n.uleb128 0x55, 0x17, 0, 0\n"),
            (list, other),
        ]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
    }
}

#[test]
fn siblings_that_lead_anywhere_end() {
    // A block (0x0b), and a structure, with DW_AT_sibling by DW_FORM_ref4: to itself, back to the
    // function, to the unit's header, behind it, behind the section, into its own middle.
    let abbreviations = ".uleb128 60\n.uleb128 0x0b\n.byte 1\n.uleb128 0x01, 0x13, 0, 0\n\
        .uleb128 61\n.uleb128 0x13\n.byte 1\n.uleb128 0x01, 0x13, 0x0b, 0x0b, 0, 0\n";
    let own = "    .byte 1\n    .byte 0x55\n    .uleb128 0\n";
    for to in [
        ".Lsibling - .Linfo + 4",
        ".Lfirst - .Linfo + 4",
        "11",
        "0",
        ".Linfo_end - .Linfo + 4",
        "0x7fffffff",
        "-1",
        ".Lsibling - .Linfo + 6",
    ] {
        let block = format!(".uleb128 60\n.long {to}\n.uleb128 0\n");
        let children = format!(
            "    .byte 1\n    .byte 0x55\n.Lfirst: {block}.Lsibling: {block}{block}    .uleb128 0\n"
        );
        let entries = format!(
            ".Ltype: .uleb128 4\n{}.Lother: .uleb128 61\n.long {to}\n.byte 8\n{}.uleb128 0\n\
             .Ls: .uleb128 61\n.long .Lother - .Linfo + 4\n.byte 8\n{}.uleb128 0\n.Li: .uleb128 11\n.byte 4\n",
            reference(".Ls"),
            member(".Lother", 0),
            member(".Li", 4)
        );
        let program = crafted_with(&[
            (own, &*children),
            ("# ENTRIES", &*entries),
            ("# ABBREVIATIONS", abbreviations),
        ]);
        assert_eq!(answer(&program), SOUND, "{to}");
    }
}

#[test]
fn units_that_claim_absurd_lengths_are_answered() {
    let program = crafted_with(&[("# ENTRIES", SOUND_TYPE)]);
    assert_eq!(answer(&program), SOUND);
    let elf = object::File::parse(&*program.bytes).unwrap();
    for section in elf.sections() {
        let name = section.name().unwrap_or_default();
        let Some((start, len)) = section.file_range().filter(|_| name.starts_with(".debug")) else {
            continue;
        };
        // The length of the first unit, list or table, and the bytes behind it.
        for at in 0..len.min(16) {
            for value in [0_u32, 1, 0x7fff_ffff, 0xffff_fff0, u32::MAX] {
                let mut bytes = program.bytes.clone();
                let at = (start + at) as usize;
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                let _ = ask(bytes, &program, "touch");
            }
        }
        // A length of 64 bits (DWARF 5, 7.4): 2^60 and 2^64 - 1.
        for value in [1_u64 << 60, u64::MAX] {
            let mut bytes = program.bytes.clone();
            let at = start as usize;
            bytes[at..at + 4].fill(0xff);
            bytes[at + 4..at + 12].copy_from_slice(&value.to_le_bytes());
            let _ = ask(bytes, &program, "touch");
        }
    }
}

#[test]
fn damage_in_what_is_compressed_is_a_reason() {
    let program = Program::c("hunt.c", "-O2 -gdwarf-5 -gz=zlib -fno-pie -no-pie");
    let elf = object::File::parse(&*program.bytes).unwrap();
    let mut n_compressed = 0;
    for section in elf.sections() {
        let name = section.name().unwrap_or_default();
        let Some((start, len)) = section.file_range().filter(|_| name.starts_with(".debug")) else {
            continue;
        };
        n_compressed += 1;
        // A header that claims 2^60 bytes, a byte too few, a byte too many, none (gABI, `Elf64_Chdr`).
        let size = start as usize + 8;
        let said = u64::from_le_bytes(program.bytes[size..size + 8].try_into().unwrap());
        for claimed in [1 << 60, said - 1, said + 1, 0, len * 1039] {
            let mut bytes = program.bytes.clone();
            bytes[size..size + 8].copy_from_slice(&claimed.to_le_bytes());
            attribute(bytes, &program, "looped");
        }
        // Another kind of compression, and damage from the header to the end.
        let mut bytes = program.bytes.clone();
        bytes[start as usize] = 2;
        attribute(bytes, &program, "looped");
        for at in (24..len).step_by(len.div_ceil(16) as usize) {
            let mut bytes = program.bytes.clone();
            bytes[(start + at) as usize] ^= 0x55;
            attribute(bytes.clone(), &program, "looped");
            bytes[(start + at) as usize..(start + len) as usize].fill(0);
            attribute(bytes, &program, "looped");
        }
    }
    assert!(n_compressed > 3, "{n_compressed}");
}

#[test]
fn split_files_that_claim_absurd_lengths_are_answered() {
    let program = parts::build("gcc", "-O2 -gdwarf-5 -gsplit-dwarf");
    let path = program.dir.path().join("far.dwo");
    let whole = std::fs::read(&path).unwrap();
    run(Command::new("objcopy").arg("--compress-debug-sections=zlib").arg(&path));
    let packed = std::fs::read(&path).unwrap();
    let ask_with = |bytes: Vec<u8>| {
        bounded(|| {
            let files = TestFiles { companions: Some(vec![bytes]), ..TestFiles::default() };
            misses(&program, files, "absurd");
        });
    };
    for (bytes, is_packed) in [(whole, false), (packed, true)] {
        let elf = object::File::parse(&*bytes).unwrap();
        for section in elf.sections() {
            let name = section.name().unwrap_or_default();
            let Some((start, len)) = section.file_range().filter(|_| name.starts_with(".debug"))
            else {
                continue;
            };
            // What its header claims: of the compression, or of the first unit.
            for value in [1_u64 << 60, u64::MAX, len << 20, 0] {
                let mut damaged = bytes.clone();
                let at = start as usize + if is_packed { 8 } else { 0 };
                let Some(place) = damaged.get_mut(at..at + 8) else { continue };
                place.copy_from_slice(&value.to_le_bytes());
                ask_with(damaged);
            }
            for at in (0..len).step_by(len.div_ceil(8).max(1) as usize) {
                let mut damaged = bytes.clone();
                damaged[(start + at) as usize] ^= 0xff;
                ask_with(damaged);
            }
        }
    }
}
