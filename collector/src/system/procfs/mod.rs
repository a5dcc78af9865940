//! Processes and settings as `/proc` tells of them, below a root that tests can fake.
//!
//! Everything here is the target's to shape: names, paths, the number of its mappings. Parsers
//! take what they can read, and none panics.

mod directory;
mod status;

pub use directory::ProcessDirectory;
pub(crate) use status::{CAP_PERFMON, CAP_SYS_ADMIN};
pub use status::{Credentials, Ids, Status};

use crate::access;
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::record::{FileIdentity, Mmap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::{Path, PathBuf};

/// `kernel.perf_event_paranoid` of a kernel without the sysctl: from this level on nobody without privilege sees
/// the kernel (`sysctl_perf_event_paranoid` in Linux `kernel/events/core.c`).
const DEFAULT_PARANOID: i64 = 2;

/// The longest file read: 65,530 mappings (`vm.max_map_count`) of 1 KiB a line.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The longest list of mappings of which all are held at once: `vm.max_map_count` of 250 bytes a line.
const MAX_HELD_BYTES: u64 = 16 << 20;

/// Length up to which mappings, of which there are 2,500 then, are read without asking: most processes' are shorter.
const SHORT_FILE_BYTES: u64 = 256 << 10;

/// The mappings of a process that were read.
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

impl MappingReader {
    fn open(path: &Path, pid: i32) -> io::Result<Self> {
        let file = BufReader::new(access::file(path)?.take(MAX_FILE_BYTES));
        Ok(Self { pid, file, line: Vec::new(), n_bytes: 0, is_over: false })
    }
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

impl Default for Procfs {
    /// The `/proc` of this machine.
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl Procfs {
    /// The `/proc` at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// The `/proc` of the machine whose root directory is `root`.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self::new(&root.join("proc"))
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        whole(access::file(&self.path(path))?)
    }

    /// The processes that are there.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        let entries = access::entries(&self.root)?;
        Ok(entries.filter_map(|entry| entry.name.to_str()?.parse().ok()).collect())
    }

    /// The threads of process `pid`.
    ///
    /// # Errors
    /// Those of reading the directory: there is no such process, most often.
    pub fn tasks(&self, pid: i32) -> io::Result<Vec<i32>> {
        // An entry that cannot be read is a thread that ended.
        let entries = access::entries(&self.path(&format!("{pid}/task")))?;
        Ok(entries.filter_map(|entry| entry.name.to_str()?.parse().ok()).collect())
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
        let open = |path: String| MappingReader::open(&self.path(&path), pid);
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

    /// Our own mappings.
    pub(super) fn own_mappings(&self) -> io::Result<MappingReader> {
        MappingReader::open(&self.path("self/maps"), std::process::id().cast_signed())
    }

    /// The file that tells how much memory we have.
    pub(super) fn own_statm(&self) -> io::Result<File> {
        access::file(&self.path("self/statm"))
    }

    /// The name of thread `tid` of process `pid`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn comm(&self, pid: i32, tid: i32) -> io::Result<Box<[u8]>> {
        let mut name = self.bytes(&format!("{pid}/task/{tid}/comm"))?;
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        Ok(name.into())
    }

    /// The status of a thread, which is a number or `self`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn status(&self, tid: impl fmt::Display) -> io::Result<Status> {
        Ok(Status::parse(&self.bytes(&format!("{tid}/status"))?))
    }

    /// Rights of a thread to files.
    ///
    /// # Errors
    /// Those of reading its status; `InvalidData` where that does not tell.
    pub fn credentials(&self, tid: i32) -> io::Result<Credentials> {
        let status = self.bytes(&format!("{tid}/status"))?;
        Credentials::parse(&status).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Tells whether we [are privileged](Status::is_privileged).
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.status("self").is_ok_and(|own| own.is_privileged())
    }

    /// The start of process `pid`, in clock ticks since boot.
    ///
    /// # Errors
    /// Those of reading the file; `InvalidData` if it does not say.
    pub fn start_time_ticks(&self, pid: i32) -> io::Result<u64> {
        start_time(&self.bytes(&format!("{pid}/stat"))?).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The inode number of the mount namespace of a process, which is a number or `self`; `None` if
    /// it may not be seen.
    #[must_use]
    pub fn mount_namespace(&self, pid: impl fmt::Display) -> Option<u64> {
        let link = access::link(&self.path(&format!("{pid}/ns/mnt"))).ok()?;
        // mnt:[4026531841]
        link.to_str()?.strip_prefix("mnt:[")?.strip_suffix(']')?.parse().ok()
    }

    /// The directory of a process, which is a number or `self`, to be held open.
    ///
    /// # Errors
    /// Those of opening it: there is no such process, most often.
    pub fn directory(&self, pid: impl fmt::Display) -> io::Result<ProcessDirectory> {
        ProcessDirectory::open(&self.path(&pid.to_string()))
    }

    /// A task of process `pid` by which its files are shown: the first thread may have ended before the others,
    /// and shows nothing then.
    #[must_use]
    pub fn living_task(&self, pid: i32) -> i32 {
        let shows = |tid: &i32| access::link(&self.path(&format!("{tid}/exe"))).is_ok();
        let others = || self.tasks(pid).ok()?.into_iter().find(shows);
        if shows(&pid) { pid } else { others().unwrap_or(pid) }
    }

    /// The root directory of a task, as a path: through it another mount namespace is reached.
    #[must_use]
    pub fn root_of(&self, task: i32) -> PathBuf {
        self.path(&format!("{task}/root"))
    }

    /// The very file that is mapped there in process `pid`, wherever it is now, for who may look.
    pub(crate) fn mapped_file(&self, pid: i32, start: u64, end: u64) -> PathBuf {
        self.path(&pid.to_string()).join(mapped_file(start, end))
    }

    /// The path in the hierarchy whose events the kernel counts, of process `pid`'s control group:
    /// `/system.slice/redis.service`.
    pub(crate) fn control_group(&self, pid: i32) -> Option<String> {
        control_group(&self.text(&format!("{pid}/cgroup"))?)
    }

    /// Time that a task, by its number, has waited for a CPU so far, a zombie too; 0 where
    /// the kernel does not count that (without `CONFIG_SCHED_INFO`).
    pub(crate) fn delay_ns(&self, task: &str) -> u64 {
        let text = self.text(&format!("{task}/schedstat")).unwrap_or_default();
        // The second number of schedstat (Linux Documentation/scheduler/sched-stats.rst).
        text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Tells whether our numbers of users are the machine's: we are in the first user namespace, which maps all
    /// 2^32 - 1 users onto themselves, or the kernel has no others.
    pub(crate) fn is_first_user_namespace(&self) -> bool {
        let map = self.text("self/uid_map").unwrap_or_default();
        map.trim().is_empty() || map.split_whitespace().eq(["0", "0", "4294967295"])
    }

    /// A path that leads to one of our own open files, whatever name it has now.
    #[must_use]
    pub fn own_file(&self, file: impl AsFd) -> PathBuf {
        self.path(&format!("self/fd/{}", file.as_fd().as_raw_fd()))
    }

    /// A path that leads to the program that we are, even if its file was replaced.
    #[must_use]
    pub fn own_program_link(&self) -> PathBuf {
        self.path("self/exe")
    }

    /// The bytes of the program that we are, even if its file was replaced.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn own_program(&self) -> io::Result<Vec<u8>> {
        fs::read(self.own_program_link())
    }

    /// The number that a sysctl such as `kernel/perf_event_mlock_kb` has; `None` if there is none.
    #[must_use]
    pub fn sysctl(&self, path: &str) -> Option<i64> {
        self.text(&format!("sys/{path}"))?.trim().parse().ok()
    }

    /// `kernel.perf_event_paranoid`.
    #[must_use]
    pub fn paranoid(&self) -> i64 {
        self.sysctl("kernel/perf_event_paranoid").unwrap_or(DEFAULT_PARANOID)
    }

    /// The text of a file; `None` if it cannot be read or is not UTF-8.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.bytes(path).ok()?).ok()
    }
}

/// The link in a process's directory that leads to the very file that is mapped there.
#[must_use]
pub fn mapped_file(start: u64, end: u64) -> PathBuf {
    PathBuf::from(format!("map_files/{start:x}-{end:x}"))
}

/// All bytes of a file, up to the longest that is read.
pub(super) fn whole(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The value in the first line `KEY : VALUE` or `KEY: VALUE` of this key, as in `cpuinfo` and `meminfo`.
pub(super) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == key).then(|| value.trim())
    })
}

/// Of lines such as `0::/system.slice/redis.service` the path.
fn control_group(text: &str) -> Option<String> {
    let line = |wanted: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|one| one == wanted).then(|| path.to_owned())
        })
    };
    line("perf_event").or_else(|| line(""))
}

/// Field 22 of `/proc/PID/stat`. The name in field 2 may hold blanks and parentheses, so counting
/// begins after its last one.
fn start_time(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// One line of `/proc/PID/maps`:
/// `55d0-55d1 r-xp 00001000 fe:00 1234                       /path with blanks (deleted)`.
fn mapping(pid: i32, line: &[u8]) -> Option<Mmap> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut next = || str::from_utf8(fields.next()?).ok();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = next()?.split_once('-')?;
    let permissions = next()?;
    let file_offset = hex(next()?)?;
    let (major, minor) = next()?.split_once(':')?;
    let inode: u64 = next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
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
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(ESCAPED) {
            out.push(b'\n');
            rest = after;
        } else {
            out.push(byte);
            rest = after;
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
        assert_eq!((status.pid, status.users.map(|users| users.effective)), (Some(7), Some(33)));
        assert_eq!(status.effective_capabilities, Some(0xc0_0000_0000));
        assert!(procfs.tasks(8).is_err());
    }

    #[test]
    fn the_group_is_that_of_the_hierarchy_that_counts() {
        let unified = "9:name=systemd:/a\n1:cpu,cpuacct:/b\n0::/system.slice/x:y.service\n";
        assert_eq!(control_group(unified).as_deref(), Some("/system.slice/x:y.service"));
        let older = "9:name=systemd:/a\n5:perf_event:/c\n0::/\n";
        assert_eq!(control_group(older).as_deref(), Some("/c"));
        assert_eq!(control_group("broken"), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = mapping(1, &line);
            let _ = control_group(&String::from_utf8_lossy(&line));
            let _ = start_time(&line);
            let _ = unescaped(&line);
        }

        #[test]
        fn almost_lines_never_panic(line in "[0-9a-f]{0,20}-[0-9a-f]{0,20} [rwxp-]{0,5} [0-9a-f]{0,9} [0-9a-f:]{0,6} [0-9]{0,30} *\\PC{0,20}") {
            let _ = mapping(1, line.as_bytes());
        }
    }
}
