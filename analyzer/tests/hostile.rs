//! Damaged and malicious files: no panic, no loop without an end, no absurd allocation.

use crate::support::allocation::bounded;
use crate::support::program::{Program, run, source};
use crate::support::session::{CLOCK, COUNTER, EXACT, Session, TestFiles, object, with};
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::elf::data_symbol::DataPlace;
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::index::site::SiteQuery;
use dataspace_analyzer::x86_64::backtrack::Skid;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use dataspace_proto::register::Register;
use object::{Object as _, ObjectSection as _};
use proptest::prelude::*;
use std::process::Command;

/// Asks about every instruction of a function and about data all over the image. Gives how many
/// sites were answered.
pub(crate) fn ask(bytes: Vec<u8>, program: &Program, function: &str) -> Result<usize, Reason> {
    let (start, len_bytes) = program.function_range(function);
    let key = LoadObjectKey {
        path: b"/program".as_slice().into(),
        identity: FileIdentity::None,
        pid: 1,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    };
    bounded(|| {
        let files = TestFiles { instead: Some(bytes), ..TestFiles::default() };
        let mut index = LoadObjectIndex::open(&key, &files)?;
        let mut n_answers = 0;
        for ip in start..start + len_bytes {
            for skid in [Skid::Exact, Skid::AfterOne, Skid::Within(8), Skid::KernelEntry] {
                let site = index.site(SiteQuery { ip: Svma(ip), skid });
                n_answers += usize::from(site.outcome.is_ok());
            }
        }
        let extent = index.facts().segments.iter().map(|segment| segment.start.0).max();
        for svma in (0..0x8000).step_by(64).map(|at| extent.unwrap_or(0).wrapping_add(at)) {
            let range = index.data(DataPlace::fixed(Svma(svma)));
            if range.resident.is_some() {
                assert!((range.start..range.end).contains(&Svma(svma)), "{range:?}");
            }
        }
        Ok(n_answers)
    })
}

/// The same through an analyzer, up to the names.
pub(crate) fn attribute(bytes: Vec<u8>, program: &Program, function: &str) {
    let (start, len_bytes) = program.function_range(function);
    bounded(|| {
        let files = TestFiles { instead: Some(bytes), ..TestFiles::default() };
        let mut session = Session::over(program, files);
        let registers = Register::ALL.map(|register| (register, 0x40));
        for ip in (start..start + len_bytes).map(|svma| svma.wrapping_add(program.bias())) {
            for event in [EXACT, CLOCK, COUNTER] {
                session.sample(event, ip, &with(&registers));
            }
        }
        assert_eq!(session.analyzer.accounting().imbalance(), 0);
    });
}

thread_local! {
    /// Compiled once for all cases, at addresses that do not change.
    static PROGRAM: Program =
        Program::c("hunt.c", "-O2 -gdwarf-5 -fno-pie -no-pie -fno-asynchronous-unwind-tables");
    static WITH_FRAMES: Program = Program::c("hunt.c", "-O1 -gdwarf-4 -fno-pie -no-pie");
}

#[test]
fn a_file_cut_anywhere_is_answered() {
    PROGRAM.with(|program| {
        assert!(ask(program.bytes.clone(), program, "looped").is_ok());
        for len in (0..program.bytes.len()).step_by(64) {
            let _ = ask(program.bytes[..len].to_vec(), program, "looped");
            if len % 1024 == 0 {
                attribute(program.bytes[..len].to_vec(), program, "looped");
            }
            // The headers at the end of the file are there, and what is before them is not.
            let headers = u64::from_le_bytes(program.bytes[40..48].try_into().unwrap()) as usize;
            let mut hollow = program.bytes.clone();
            hollow[len.min(headers)..headers].fill(0);
            let _ = ask(hollow, program, "looped");
        }
    });
}

/// `bytes` with some of them changed, at places inside `section` where it is there.
fn damaged(program: &Program, section: Option<&str>, flips: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = program.bytes.clone();
    let elf = object::File::parse(&*program.bytes).unwrap();
    let range = section.and_then(|name| elf.section_by_name(name)?.file_range());
    let (start, len) = range.unwrap_or((0, bytes.len() as u64));
    for (at, value) in flips {
        bytes[start as usize + at % len as usize] = *value;
    }
    bytes
}

const SECTIONS: [Option<&str>; 11] = [
    None,
    Some(".debug_info"),
    Some(".debug_abbrev"),
    Some(".debug_loclists"),
    Some(".debug_rnglists"),
    Some(".debug_loc"),
    Some(".debug_line"),
    Some(".debug_str"),
    Some(".eh_frame"),
    Some(".debug_frame"),
    Some(".symtab"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_bytes_are_answered(
        has_frames in any::<bool>(),
        section in 0..SECTIONS.len(),
        flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12),
    ) {
        let program = if has_frames { &WITH_FRAMES } else { &PROGRAM };
        program.with(|program| {
            let bytes = damaged(program, SECTIONS[section], &flips);
            let _ = ask(bytes.clone(), program, "chosen");
            attribute(bytes, program, "chosen");
        });
    }
}

#[test]
fn headers_that_claim_absurd_lengths_are_answered() {
    PROGRAM.with(|program| {
        let sections = u64::from_le_bytes(program.bytes[40..48].try_into().unwrap()) as usize;
        let n_sections = u16::from_le_bytes(program.bytes[60..62].try_into().unwrap()) as usize;
        // sh_offset, sh_size, sh_info and sh_entsize of every section.
        for section in 0..n_sections {
            for field in [24, 32, 44, 56] {
                for value in [1u64 << 60, u64::MAX, 1 << 31, 0] {
                    let mut bytes = program.bytes.clone();
                    let at = sections + section * 64 + field;
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                    let _ = ask(bytes, program, "cast_void");
                }
            }
        }
        // p_offset, p_vaddr, p_filesz and p_memsz of every segment.
        for segment in 0..usize::from(program.bytes[56]) {
            for field in [8, 16, 32, 40] {
                for value in [1u64 << 60, u64::MAX, 0] {
                    let mut bytes = program.bytes.clone();
                    let at = 64 + segment * 56 + field;
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                    let _ = ask(bytes.clone(), program, "cast_void");
                    attribute(bytes, program, "cast_void");
                }
            }
        }
    });
}

#[test]
fn a_compression_bomb_is_not_unpacked() {
    let program = Program::c("hunt.c", "-O2 -g -gz=zlib -fno-pie -no-pie");
    let elf = object::File::parse(&*program.bytes).unwrap();
    let (start, len) = elf.section_by_name(".debug_info").unwrap().file_range().unwrap();
    let size = start as usize + 8;
    for claimed in [1u64 << 60, u64::MAX, 1 << 31, len << 14] {
        let mut bytes = program.bytes.clone();
        bytes[size..size + 8].copy_from_slice(&claimed.to_le_bytes());
        let _ = ask(bytes, &program, "looped");
    }
    // A section of 300 kilobytes that claims to be a gigabyte.
    let mut bytes = program.bytes.clone();
    let at = bytes.len();
    let header = [1u32.to_le_bytes(), [0; 4]].concat();
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(&(1u64 << 30).to_le_bytes());
    bytes.extend_from_slice(&1u64.to_le_bytes());
    bytes.resize(at + 300_000, 0x55);
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let idx = elf.section_by_name(".debug_info").unwrap().index().0;
    let entry = sections + idx * 64;
    bytes[entry + 24..entry + 32].copy_from_slice(&(at as u64).to_le_bytes());
    bytes[entry + 32..entry + 40].copy_from_slice(&300_000u64.to_le_bytes());
    let _ = ask(bytes, &program, "looped");
}

/// A program whose debug information is written by hand: `entries` inside the unit, between the
/// function `touch`, whose parameter in rdi is of the type at `.Ltype`, and the end.
fn crafted(entries: &str) -> Program {
    crafted_with(&[("# ENTRIES", entries)])
}

pub(crate) fn crafted_with(parts: &[(&str, &str)]) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(source("crafted.s")).unwrap();
    let assembly = dir.path().join("crafted.s");
    let text = parts.iter().fold(text, |text, (mark, part)| text.replace(mark, part));
    std::fs::write(&assembly, text).unwrap();
    let path = dir.path().join("program");
    let main = source("crafted.c");
    let mut command = Command::new("gcc");
    let flags = ["-no-pie", "-fno-pie", "-Wl,--build-id=0x01020304"];
    run(command.args(flags).arg(assembly).arg(main).arg("-o").arg(&path));
    Program::of(dir, path)
}

#[test]
fn types_that_hold_themselves_end() {
    let reference = |label: &str| format!(".long {label} - .Linfo + 4\n");
    let cases = [
        // A typedef of itself.
        format!(".Ltype: .uleb128 3\n{}", reference(".Ltype")),
        // A pointer to a structure that holds itself by value.
        format!(
            ".Ltype: .uleb128 4\n{}.Ls: .uleb128 5\n.byte 8\n.uleb128 6\n{}.byte 0\n.uleb128 0\n",
            reference(".Ls"),
            reference(".Ls")
        ),
        // Two structures that hold each other.
        format!(
            ".Ltype: .uleb128 4\n{}.La: .uleb128 5\n.byte 8\n.uleb128 6\n{}.byte 0\n.uleb128 0\n\
             .Lb: .uleb128 5\n.byte 8\n.uleb128 6\n{}.byte 0\n.uleb128 0\n",
            reference(".La"),
            reference(".Lb"),
            reference(".La")
        ),
        // An array of itself, and a const of itself.
        format!(".Ltype: .uleb128 4\n{}.La: .uleb128 7\n{}", reference(".La"), reference(".La")),
        format!(".Ltype: .uleb128 4\n{}.La: .uleb128 8\n{}", reference(".La"), reference(".La")),
        // A pointer to itself.
        format!(".Ltype: .uleb128 4\n{}", reference(".Ltype")),
        // A type outside the unit.
        ".Ltype: .uleb128 4\n.long 0x7fffffff\n".to_owned(),
    ];
    for entries in cases {
        let program = crafted(&entries);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{entries}");
        attribute(program.bytes.clone(), &program, "touch");
    }
}

#[test]
fn an_origin_that_is_its_own_origin_ends() {
    let program = crafted(
        ".Ltype: .uleb128 4\n.long .Ltype - .Linfo + 4\n\
         .Lf: .uleb128 9\n.long .Lf - .Linfo + 4\n.quad origin\n.quad 16\n\
         .Lv: .uleb128 10\n.long .Lv - .Linfo + 4\n.uleb128 0\n",
    );
    for function in ["touch", "origin"] {
        assert!(ask(program.bytes.clone(), &program, function).is_ok());
        attribute(program.bytes.clone(), &program, function);
    }
}

#[test]
fn nested_unions_do_not_multiply() {
    // Each holds the one before twice: 2^40 ways to the bottom.
    let mut entries = String::from(".Ltype: .uleb128 4\n.long .Lu40 - .Linfo + 4\n");
    entries.push_str(".Lu0: .uleb128 11\n.byte 4\n");
    for level in 1..=40 {
        let below = format!(".uleb128 6\n.long .Lu{} - .Linfo + 4\n.byte 0\n", level - 1);
        entries.push_str(&format!(".Lu{level}: .uleb128 12\n.byte 8\n{below}{below}.uleb128 0\n"));
    }
    let program = crafted(&entries);
    assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
    attribute(program.bytes.clone(), &program, "touch");
    let line = Session::new(&program).exact(program.truth("&touch"), &with(&[(Register::Rdi, 64)]));
    assert_eq!(object(&line), "{union:-}", "which arm is not told");
}

#[test]
fn sound_entries_by_hand_have_their_names() {
    let program = crafted(
        ".Ltype: .uleb128 4\n.long .Ls - .Linfo + 4\n.Ls: .uleb128 5\n.byte 8\n\
         .uleb128 6\n.long .Li - .Linfo + 4\n.byte 4\n.uleb128 0\n.Li: .uleb128 11\n.byte 4\n",
    );
    let mut session = Session::new(&program);
    let registers = with(&[(Register::Rdi, 64)]);
    let code = program.function("touch");
    assert_eq!(object(&session.exact(code[0].ip(), &registers)), "{structure:-}");
    assert_eq!(object(&session.exact(code[1].ip(), &registers)), "{structure:-}.{- -}");
}

#[test]
fn long_names_do_not_multiply() {
    // Name spaces in C++ that share one long name: a few bytes of file for each.
    let entries = ".Ltype: .uleb128 4\n.long .Ltype - .Linfo + 4\n\
                   .rept 300000\n.uleb128 13\n.long .Llong_name\n.uleb128 0\n.endr\n";
    let program = crafted(entries);
    assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
}

#[test]
fn shared_range_lists_do_not_multiply() {
    // Functions that all have one list of ranges.
    let entries = ".Ltype: .uleb128 4\n.long .Ltype - .Linfo + 4\n\
                   .rept 20000\n.uleb128 14\n.long .Lranges\n.endr\n";
    let program = crafted(entries);
    assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
}

#[test]
fn shared_abbreviations_do_not_multiply() {
    let abbreviations: String = (100..20_100)
        .map(|code| format!(".uleb128 {code}\n.byte 0x11, 0, 0x03, 0x08, 0, 0\n"))
        .collect();
    let unit = ".long 9\n.value 4\n.long .Labbrev\n.byte 8\n.uleb128 100\n.byte 0\n";
    let program = crafted_with(&[
        ("# ENTRIES", ".Ltype: .uleb128 4\n.long .Ltype - .Linfo + 4\n"),
        ("# ABBREVIATIONS", &abbreviations),
        ("# UNITS", &format!(".rept 20000\n{unit}.endr\n")),
    ]);
    assert!(ask(program.bytes.clone(), &program, "touch").is_ok());
}
