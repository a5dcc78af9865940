//! Programs that claim to have more than they have, or have more than anybody looks at: how much memory they cost
//! is the kernel's figure.

use super::daemon_trouble::split_program;
use crate::support::daemon::{Daemon, open_dir};
use crate::support::silent::{LastAnswer, Silent};
use crate::support::{Running, assert_balanced, compile, dataspace, total};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// The most that the daemon may have resident for any of them.
const MAX_MIB: u64 = 256;

/// A program with section headers to be written over (gABI chapter 4).
struct Forgery {
    bytes: Vec<u8>,
}

impl Forgery {
    fn of_chase() -> Self {
        Self { bytes: std::fs::read(compile("chase", &["-O2", "-g"])).unwrap() }
    }

    fn word(&self, at: usize) -> usize {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap()) as usize
    }

    fn half(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap()))
    }

    /// Place of a section's header.
    fn header(&self, name: &str) -> usize {
        // e_shoff, e_shentsize, e_shnum, e_shstrndx; sh_name, sh_offset.
        let header = |idx| self.word(0x28) + idx * self.half(0x3a);
        let names = self.word(header(self.half(0x3e)) + 0x18);
        let name_of = |header: usize| {
            let at =
                names + u32::from_le_bytes(self.bytes[header..][..4].try_into().unwrap()) as usize;
            self.bytes[at..].split(|byte| *byte == 0).next().unwrap()
        };
        (0..self.half(0x3c)).map(header).find(|at| name_of(*at) == name.as_bytes()).unwrap()
    }

    fn set(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Has a section claim so many bytes.
    fn claim(&mut self, name: &str, n_bytes: u64) {
        let header = self.header(name);
        self.set(header + 0x20, n_bytes);
    }

    /// Has sections claim that they are these bytes, compressed, all of them the same ones.
    fn compress(&mut self, names: &[&str], n_bytes: u64) {
        let place = self.bytes.len() as u64;
        // ch_type (zlib), ch_reserved, ch_size, ch_addralign.
        self.bytes.extend(1u64.to_le_bytes());
        self.bytes.extend(n_bytes.to_le_bytes());
        self.bytes.extend(1u64.to_le_bytes());
        let mut encoder = ZlibEncoder::new(&mut self.bytes, Compression::fast());
        let zeros = vec![0; 1 << 20];
        for _ in 0..n_bytes >> 20 {
            encoder.write_all(&zeros).unwrap();
        }
        encoder.finish().unwrap();
        let file_bytes = self.bytes.len() as u64 - place;
        for name in names {
            let header = self.header(name);
            self.set(header + 8, 0x800); // SHF_COMPRESSED
            self.set(header + 0x18, place);
            self.set(header + 0x20, file_bytes);
        }
    }

    /// Writes it, with holes to a length of `len`.
    fn write(&self, path: &Path, len: u64) -> PathBuf {
        let file = File::create(path).unwrap();
        file.write_all_at(&self.bytes, 0).unwrap();
        file.set_len(len.max(self.bytes.len() as u64)).unwrap();
        file.set_permissions(Permissions::from_mode(0o755)).unwrap();
        path.to_owned()
    }
}

/// Profiles programs, each in a session of its own, until `n_samples` of each are decided; gives the peak.
fn peak_mib(programs: &[PathBuf], n_samples: u64) -> Option<u64> {
    let mut daemon = Daemon::start_in(open_dir(), "", |_| {});
    let running: Vec<Running> =
        programs.iter().map(|program| Running::start(program, &["8"]).0).collect();
    let mut ids = Vec::new();
    for program in &running {
        ids.push(daemon.attach(&program.pid())?);
    }
    for id in ids {
        // Samples that wait for an answer are not in it.
        let snapshot =
            daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) > n_samples);
        println!("{}", snapshot["accounting"]);
    }
    Some(daemon.peak_mib())
}

#[test]
fn tables_that_are_not_there_take_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut programs = Vec::new();
    for name in [".symtab", ".dynsym", ".strtab", ".debug_info", ".debug_str"] {
        let mut forgery = Forgery::of_chase();
        forgery.claim(name, 3 << 30);
        programs.push(forgery.write(&dir.path().join(&name[1..]), 6 << 30));
    }
    let Some(peak) = peak_mib(&programs, 200) else { return };
    assert!(peak < MAX_MIB, "{peak} MiB");
}

#[test]
fn what_decompresses_to_a_thousand_times_its_length_is_not_decompressed() {
    let dir = tempfile::tempdir().unwrap();
    let mut forgery = Forgery::of_chase();
    forgery.compress(&[".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str"], 1 << 30);
    let programs = ["one", "two", "three"].map(|name| forgery.write(&dir.path().join(name), 0));
    let Some(peak) = peak_mib(&programs, 200) else { return };
    assert!(peak < MAX_MIB, "{peak} MiB");
}

#[test]
fn a_function_without_end_is_not_followed_for_each_of_its_samples() {
    // Each took a quarter of a second, in which the next came: a thousand would not have come to an end.
    let Some(peak) = peak_mib(&[compile("blocks", &["-O1", "-g"])], 1_000) else { return };
    println!("{peak} MiB");
}

#[test]
fn a_function_of_countless_variables_is_named_in_little_memory() {
    // What was kept of each of its instructions were all of them: 1.6 GB for twice as many.
    const N: usize = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("countless.c"), dir.path().join("countless"));
    let stores: String = (0..N).map(|n| format!("volatile long v{n} = s;")).collect();
    let text = format!(
        "#include <stdio.h>\nlong many(long s) {{ {stores} return v0; }}\n\
         int main(void) {{ puts(\"ready\"); fflush(stdout); for (long s = 0;;) s += many(s); }}"
    );
    std::fs::write(&source, text).unwrap();
    let gcc = std::process::Command::new("gcc")
        .args(["-O0", "-g", "-o"])
        .args([&program, &source])
        .status();
    if !gcc.is_ok_and(|status| status.success()) {
        return eprintln!("not run: gcc is not installed");
    }
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let Some(peak) = peak_mib(&[program], 300) else { return };
    assert!(peak < MAX_MIB, "{peak} MiB");
}

/// A program whose debug information is in files that hold who opens them, or reads them on.
struct Holding {
    target: Running,
    silent: Silent,
    _dir: TempDir,
}

impl Holding {
    fn start(last: LastAnswer) -> Option<Self> {
        let dir = open_dir();
        let (program, units) = split_program(dir.path())?;
        let silent = Silent::mount(&units, last)?;
        let (target, _) = Running::start(&program, &["8"]);
        Some(Self { target, silent, _dir: dir })
    }

    /// Waits until a request was taken: it cannot be taken back, and who made it cannot be ended.
    fn wait(&self) {
        while self.silent.n_held() == 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_file_that_never_answers_holds_neither_the_daemon_nor_a_command() {
    for last in [LastAnswer::Mount, LastAnswer::Open, LastAnswer::Read] {
        let Some(holding) = Holding::start(last) else {
            return eprintln!("not run: FUSE cannot be mounted, or gcc is not installed");
        };
        let mut daemon = Daemon::start_in(open_dir(), "", |_| {});
        let Some(_) = daemon.attach(&holding.target.pid()) else { return };
        holding.wait();
        daemon.signal(Signal::TERM);
        daemon.ends_well();

        let holding = Holding::start(last).unwrap();
        let mut top = dataspace(&["top", "--json", "-p", &holding.target.pid()]);
        let top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        holding.wait();
        kill_process(Pid::from_child(&top), Signal::TERM).unwrap();
        let output = top.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{last:?}: {said}");
        let totals = String::from_utf8(output.stdout).unwrap();
        let totals: Value = serde_json::from_str(totals.lines().last().unwrap()).unwrap();
        assert_balanced(&totals);
    }
}
