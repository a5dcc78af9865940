//! This process's memory: what the allocator keeps of it, what is resident, the kernel's page of code.

use crate::system::procfs::Procfs;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::OnceLock;

/// Has the allocator keep little of what is freed, from now on, and in few heaps: `malloc_trim` gives nothing
/// back of the top of a thread's own heap, and that may be some 10 MB for each thread. To be called before
/// there are threads: heaps that are there stay.
pub fn keep_little() {
    crate::sys::memory::keep_little();
}

/// Gives memory that was freed back to the kernel. The allocator keeps it otherwise, in each thread's own
/// heap, and a process's resident memory would not fall with what it uses. Takes some milliseconds.
pub fn give_back() {
    crate::sys::memory::give_back();
}

/// Resident memory, as the kernel counts it; 0 where it does not tell.
#[must_use]
pub fn resident_bytes() -> u64 {
    // Opened once: it is read many times a second.
    static STATM: OnceLock<Option<File>> = OnceLock::new();
    let statm = STATM.get_or_init(|| Procfs::default().own_statm().ok());
    let mut bytes = [0; 128];
    let read = statm.as_ref().and_then(|statm| statm.read_at(&mut bytes, 0).ok());
    let statm = str::from_utf8(&bytes[..read.unwrap_or_default()]).unwrap_or_default();
    resident_in(statm)
}

/// Resident memory of another process, as the kernel counts it; 0 where it does not tell.
#[must_use]
pub fn resident_bytes_of(pid: i32) -> u64 {
    resident_in(&Procfs::default().text(&format!("{pid}/statm")).unwrap_or_default())
}

/// Memory of this machine, or of the control group at the root of what we see, as in a container; `None` where the
/// kernel does not tell.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    let procfs = Procfs::default();
    let line = procfs.text("meminfo")?;
    let kib = line.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split(' ').rev().nth(1));
    let all = kib?.parse::<u64>().ok()? << 10;
    let group = crate::access::file(Path::new("/sys/fs/cgroup/memory.max")).ok();
    let of_group = group.and_then(|file| std::io::read_to_string(file).ok());
    let of_group = of_group.and_then(|text| text.trim().parse().ok());
    Some(of_group.map_or(all, |bytes: u64| bytes.min(all)))
}

/// The second of the numbers of `statm`: size, resident, shared, in pages (proc_pid_statm(5)).
fn resident_in(statm: &str) -> u64 {
    let n_pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    n_pages.unwrap_or_default() * rustix::param::page_size() as u64
}

/// The vdso, which is an ELF file in memory. A worker asks for it before it gives its privileges up: later it cannot.
#[must_use]
pub fn vdso() -> Option<&'static [u8]> {
    static VDSO: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    VDSO.get_or_init(read_vdso).as_deref()
}

fn read_vdso() -> Option<Vec<u8>> {
    let procfs = Procfs::default();
    let mut mappings = procfs.own_mappings().ok()?.flatten();
    let vdso = mappings.find(|mapping| &*mapping.path == b"[vdso]")?;
    let mut bytes = vec![0; usize::try_from(vdso.len_bytes).ok()?];
    File::open(procfs.path("self/mem")).ok()?.read_exact_at(&mut bytes, vdso.start.0).ok()?;
    Some(bytes)
}
