//! What `/proc` says of a process, below a root that tests can fake.
//!
//! Everything here is the target's to shape: names, paths, the number of its mappings. Parsers
//! take what they can read, and none panics.

use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::record::{FileIdentity, Mmap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};

/// Number of `CAP_SYS_ADMIN`.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// Number of `CAP_PERFMON`.
pub(crate) const CAP_PERFMON: u32 = 38;

/// The longest file read: 65,530 mappings (`vm.max_map_count`) of 1 KiB a line.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The longest list of mappings of which all are held at once: `vm.max_map_count` of 250 bytes a line.
const MAX_HELD_BYTES: u64 = 16 << 20;

/// What most processes' mappings take, of which there are 2,500 then, is read without asking.
const SHORT_FILE_BYTES: u64 = 256 << 10;

/// What of a process was read.
#[derive(Debug)]
pub(crate) struct Mappings {
    pub(crate) mappings: Vec<Mmap>,
    /// There are more.
    pub(crate) is_cut: bool,
}

/// Reads a list of mappings. An error is the last item: [`io::ErrorKind::FileTooLarge`] where a list goes
/// on and on.
#[derive(Debug)]
pub(crate) struct MappingReader {
    pid: i32,
    file: BufReader<Take<File>>,
    line: Vec<u8>,
    n_bytes: u64,
    is_over: bool,
}

impl Iterator for MappingReader {
    type Item = io::Result<Mmap>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            self.line.clear();
            let read = self.file.read_until(b'\n', &mut self.line);
            self.n_bytes += read.as_ref().map_or(0, |&n_bytes| n_bytes as u64);
            self.is_over = !self.line.ends_with(b"\n");
            if let Err(error) = read {
                self.is_over = true;
                return Some(Err(error));
            }
            if self.is_over && self.n_bytes >= MAX_FILE_BYTES {
                return Some(Err(io::ErrorKind::FileTooLarge.into()));
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if let Some(mapping) = mapping(self.pid, line) {
                return Some(Ok(mapping));
            }
        }
        None
    }
}

/// A `/proc`.
#[derive(Clone, Debug)]
pub struct Procfs {
    root: PathBuf,
}

/// What `/proc/TID/status` says, as far as we ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The process of the thread.
    pub pid: Option<i32>,
    /// Its effective user.
    pub effective_uid: Option<u32>,
    /// Its effective capabilities, a bit each.
    pub effective_capabilities: Option<u64>,
}

impl Status {
    /// Whether `perf_event_paranoid` does not apply to it (`perfmon_capable()` in Linux
    /// `include/linux/capability.h`).
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        let held = self.effective_capabilities.unwrap_or(0);
        held & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0
    }
}

impl Procfs {
    /// The `/proc` at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.root.join(path))?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The threads of process `pid`.
    ///
    /// # Errors
    /// Those of reading the directory: there is no such process, most often.
    pub fn tasks(&self, pid: i32) -> io::Result<Vec<i32>> {
        let entries = fs::read_dir(self.root.join(format!("{pid}/task")))?;
        // An entry that cannot be read is a thread that ended.
        Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// The mappings of process `pid`, as of time 0.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn mappings(&self, pid: i32) -> io::Result<Vec<Mmap>> {
        Ok(self.mappings_within(pid, &mut || true)?.mappings)
    }

    /// The same; of a long list all only if it `may_be_long`, else what it begins with.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn mappings_within(
        &self,
        pid: i32,
        may_be_long: &mut dyn FnMut() -> bool,
    ) -> io::Result<Mappings> {
        let mut reader = self.mapping_reader(pid)?;
        let mut mappings = Vec::new();
        let mut is_long = None;
        while let Some(mapping) = reader.next() {
            let fits = reader.n_bytes <= SHORT_FILE_BYTES
                || *is_long.get_or_insert_with(&mut *may_be_long)
                    && reader.n_bytes <= MAX_HELD_BYTES;
            if !fits {
                return Ok(Mappings { mappings, is_cut: true });
            }
            mappings.push(mapping?);
        }
        Ok(Mappings { mappings, is_cut: false })
    }

    /// The mappings of process `pid`, as of time 0, each read when it is taken.
    ///
    /// # Errors
    /// Those of opening and reading the file.
    pub(crate) fn mapping_reader(&self, pid: i32) -> io::Result<MappingReader> {
        let open = |path: String| -> io::Result<MappingReader> {
            let file = File::open(self.root.join(path))?;
            let file = BufReader::new(file.take(MAX_FILE_BYTES));
            Ok(MappingReader { pid, file, line: Vec::new(), n_bytes: 0, is_over: false })
        };
        let mut reader = open(format!("{pid}/maps"))?;
        if reader.file.fill_buf()?.is_empty() {
            // The first thread has ended before the others: one of those shows the mappings.
            let tids = self.tasks(pid).unwrap_or_default().into_iter();
            let path = |tid: i32| format!("{pid}/task/{tid}/maps");
            let mut others = tids.filter_map(|tid| open(path(tid)).ok());
            let has_some = |other: &mut MappingReader| {
                other.file.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
            };
            reader = others
                .find_map(|mut other| has_some(&mut other).then_some(other))
                .unwrap_or(reader);
        }
        Ok(reader)
    }

    /// The name of thread `tid` of process `pid`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn comm(&self, pid: i32, tid: i32) -> io::Result<Box<[u8]>> {
        let mut name = self.read(&format!("{pid}/task/{tid}/comm"))?;
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        Ok(name.into())
    }

    /// Process and user of a thread, which is a number or `self`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn status(&self, tid: impl fmt::Display) -> io::Result<Status> {
        Ok(status(&self.read(&format!("{tid}/status"))?))
    }

    /// Whether we [are privileged](Status::is_privileged).
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.status("self").is_ok_and(|own| own.is_privileged())
    }

    /// When process `pid` started, in clock ticks since boot.
    ///
    /// # Errors
    /// Those of reading the file; `InvalidData` if it does not say.
    pub fn start_time_ticks(&self, pid: i32) -> io::Result<u64> {
        start_time(&self.read(&format!("{pid}/stat"))?).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The inode number of the mount namespace of a process, which is a number or `self`; `None` if
    /// it may not be seen.
    #[must_use]
    pub fn mount_namespace(&self, pid: impl fmt::Display) -> Option<u64> {
        let link = fs::read_link(self.root.join(format!("{pid}/ns/mnt"))).ok()?;
        // mnt:[4026531841]
        link.to_str()?.strip_prefix("mnt:[")?.strip_suffix(']')?.parse().ok()
    }

    /// The number in a file such as `sys/kernel/perf_event_paranoid`; `None` if there is none.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<i64> {
        str::from_utf8(&self.read(path).ok()?).ok()?.trim().parse().ok()
    }

    /// The text of a file; `None` if it cannot be read or is not UTF-8.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.read(path).ok()?).ok()
    }
}

fn status(bytes: &[u8]) -> Status {
    let mut status = Status::default();
    for line in bytes.split(|&byte| byte == b'\n').filter_map(|line| str::from_utf8(line).ok()) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let mut words = value.split_whitespace();
        match key {
            "Tgid" => status.pid = words.next().and_then(|word| word.parse().ok()),
            // Real, effective, saved, file system.
            "Uid" => status.effective_uid = words.nth(1).and_then(|word| word.parse().ok()),
            "CapEff" => {
                status.effective_capabilities =
                    words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            }
            _ => {}
        }
    }
    status
}

/// Field 22 of `/proc/PID/stat`. The name in field 2 may hold blanks and parentheses, so counting
/// begins behind its last one.
fn start_time(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// One line of `/proc/PID/maps`:
/// `55d0-55d1 r-xp 00001000 fe:00 1234                       /path with blanks (deleted)`.
fn mapping(pid: i32, line: &[u8]) -> Option<Mmap> {
    let mut rest = line;
    let mut next = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (field, behind) = rest.split_at(end);
        rest = behind.strip_prefix(b" ").unwrap_or(behind);
        str::from_utf8(field).ok()
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = next()?.split_once('-')?;
    let permissions = next()?;
    let file_offset = hex(next()?)?;
    let (major, minor) = next()?.split_once(':')?;
    let inode: u64 = next()?.parse().ok()?;
    let path = rest.trim_ascii_start();
    let start = hex(start)?;
    Some(Mmap {
        time_ns: 0,
        pid,
        tid: pid,
        start: Avma(start),
        len_bytes: hex(end)?.checked_sub(start)?,
        file_offset: FileOffset(file_offset),
        is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
        path: if path.is_empty() { b"//anon"[..].into() } else { unescaped(path) },
        identity: match inode {
            0 => FileIdentity::None,
            _ => FileIdentity::Inode {
                major: u32::from_str_radix(major, 16).ok()?,
                minor: u32::from_str_radix(minor, 16).ok()?,
                inode,
                generation: 0,
            },
        },
    })
}

/// A path with its line feeds put back: the only byte that `maps` escapes (`show_map_vma()` in
/// Linux `fs/proc/task_mmu.c`).
fn unescaped(path: &[u8]) -> Box<[u8]> {
    const ESCAPED: &[u8] = b"\\012";
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(ESCAPED) {
            out.push(b'\n');
            rest = behind;
        } else {
            out.push(byte);
            rest = behind;
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fake(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Procfs) {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let procfs = Procfs::new(dir.path());
        (dir, procfs)
    }

    #[test]
    fn maps_keep_blanks_deleted_marks_and_line_feeds() {
        let maps =
            b"400000-401000 r-xp 00002000 fe:1f 77                         /a  b\\012c (deleted)\n\
            7f00-8000 rw-p 00000000 00:00 0 \n\
            broken line\n\
            9000-8000 rw-p 00000000 00:00 0 [heap]\n\
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";
        let (_dir, procfs) = fake(&[("7/maps", maps)]);
        let mappings = procfs.mappings(7).unwrap();
        assert_eq!(mappings.len(), 3, "a broken line and one that ends before it begins are not");
        assert_eq!(&*mappings[0].path, b"/a  b\nc (deleted)");
        assert_eq!((mappings[0].start, mappings[0].len_bytes), (Avma(0x400000), 0x1000));
        let identity = FileIdentity::Inode { major: 0xfe, minor: 0x1f, inode: 77, generation: 0 };
        assert_eq!(mappings[0].identity, identity);
        assert!(mappings[0].is_executable && !mappings[1].is_executable);
        assert_eq!(&*mappings[1].path, b"//anon");
        assert_eq!(&*mappings[2].path, b"[vsyscall]");
    }

    #[test]
    fn a_long_list_of_mappings_is_read_where_it_may_be() {
        let line = |n: u64| format!("{:x}-{:x} r-xp 0 00:00 0 /lib\n", n << 12, (n + 1) << 12);
        let maps: String = (1..20_000).map(line).collect();
        let (_dir, procfs) = fake(&[("7/maps", maps.as_bytes()), ("8/maps", line(1).as_bytes())]);
        let read = |pid, may_be_long| {
            let mut n_asked = 0;
            let mut may_be_long = || {
                n_asked += 1;
                may_be_long
            };
            let Mappings { mappings, is_cut } =
                procfs.mappings_within(pid, &mut may_be_long).unwrap();
            // As many as there are whole lines.
            let n_lines = mappings.iter().zip(1..).take_while(|(mmap, n)| mmap.start.0 == n << 12);
            assert_eq!(n_lines.count(), mappings.len());
            (mappings.len(), is_cut, n_asked)
        };
        assert_eq!(read(7, true), (19_999, false, 1));
        let n_short = maps.as_bytes()[..SHORT_FILE_BYTES as usize].split(|&byte| byte == b'\n');
        assert_eq!(read(7, false), (n_short.count() - 1, true, 1));
        assert_eq!(read(8, false), (1, false, 0));
    }

    #[test]
    fn a_name_cannot_shift_the_start_time() {
        let stat = b"7 (a) S 1 (b) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        let (_dir, procfs) = fake(&[("7/stat", stat), ("8/stat", b"8 (x")]);
        assert_eq!(procfs.start_time_ticks(7).unwrap(), 4242);
        assert!(procfs.start_time_ticks(8).is_err());
    }

    #[test]
    fn tasks_names_and_users_are_read() {
        let status: &[u8] = b"Name:\tx\nTgid:\t7\nUid:\t0\t33\t0\t0\nCapEff:\t000000c000000000\n";
        let (_dir, procfs) = fake(&[
            ("7/task/7/comm", b"main\n"),
            ("7/task/9/comm", b"\xff\n\n"),
            ("7/task/junk/comm", b""),
            ("9/status", status),
        ]);
        let mut tasks = procfs.tasks(7).unwrap();
        tasks.sort_unstable();
        assert_eq!(tasks, [7, 9]);
        assert_eq!(&*procfs.comm(7, 9).unwrap(), b"\xff\n");
        let status = procfs.status(9).unwrap();
        assert_eq!((status.pid, status.effective_uid), (Some(7), Some(33)));
        assert_eq!(status.effective_capabilities, Some(0xc0_0000_0000));
        assert!(procfs.tasks(8).is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = mapping(1, &line);
            let _ = status(&line);
            let _ = start_time(&line);
            let _ = unescaped(&line);
        }

        #[test]
        fn almost_lines_never_panic(line in "[0-9a-f]{0,20}-[0-9a-f]{0,20} [rwxp-]{0,5} [0-9a-f]{0,9} [0-9a-f:]{0,6} [0-9]{0,30} *\\PC{0,20}") {
            let _ = mapping(1, line.as_bytes());
        }
    }
}
