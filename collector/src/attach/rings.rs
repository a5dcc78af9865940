//! The rings of a session: two on each CPU, one for samples and one for everything else.

use crate::access::{self, EventPlace};
use crate::attach::refusal;
use crate::error::Error;
use crate::event::attr;
use crate::record::ring::{Joint, RingReader};
use crate::sys::mmap::MappedRing;
use crate::system::machine::Machine;
use crate::system::procfs::Procfs;
use perf_event_open_sys::bindings as abi;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Resource, getpid, getrlimit};
use std::path::Path;
use std::sync::Arc;

/// 512 KiB a CPU: 1,000 samples with registers and 256 bytes of stack, so a tenth of a
/// second at 10,000/s.
const SAMPLE_PAGES: usize = 128;
/// 1 MiB a CPU where there are few, down to 256 KiB: half a second of fork and exec as fast as one
/// CPU can, or 2,000 mappings with paths of 60 bytes.
const SIDE_BAND_PAGES: std::ops::RangeInclusive<usize> = 64..=256;
/// 16 MiB of them together.
const ALL_SIDE_BAND_PAGES: usize = 4_096;
/// Below that a ring is of no use.
const MIN_PAGES: usize = 8;

/// One mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) mapped: MappedRing,
    pub(crate) carries_samples: bool,
}

/// Destination of a CPU's events.
#[derive(Debug)]
pub(crate) struct CpuOutputs {
    pub(crate) cpu: i32,
    pub(crate) samples: OwnedFd,
    pub(crate) side_band: OwnedFd,
}

/// The rings, and the events that own them.
///
/// The owners are events of our own process that never fire: they stay when every target is gone,
/// and can be polled whatever becomes of those.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Side-band rings first: what happened to a mapping is known before the samples that need it.
    /// But for those of CPUs that came later, where the order of time alone tells.
    pub(crate) rings: Vec<Ring>,
    /// Shared with whoever waits for them.
    pub(crate) outputs: Vec<Arc<CpuOutputs>>,
    sizes: Sizes,
    /// Words for rings that are smaller than was asked for.
    pub(crate) warning: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    sample: usize,
    side_band: usize,
}

impl Rings {
    /// Maps rings for `cpus`; sample rings of `asked` pages, or as many as are allowed.
    pub(crate) fn new(cpus: &[i32], asked: Option<usize>, procfs: &Procfs) -> Result<Self, Error> {
        let sample = asked.map_or(SAMPLE_PAGES, |n_pages| n_pages.max(1).next_power_of_two());
        let wanted = Sizes { sample, side_band: side_band_pages(cpus.len()) };
        let mut sizes = wanted;
        loop {
            match Self::of_sizes(cpus, sizes, procfs)? {
                Ok(rings) => {
                    let is_less = asked.is_some() && sizes.sample < sample;
                    let warning = is_less.then(|| smaller(sizes, wanted, procfs));
                    return Ok(Self { warning, ..rings });
                }
                Err(errno) => {
                    sizes = sizes.halved().ok_or_else(|| no_room(sizes, errno, procfs))?;
                }
            }
        }
    }

    /// Maps all rings or, where their memory is refused, none.
    fn of_sizes(cpus: &[i32], sizes: Sizes, procfs: &Procfs) -> Result<Result<Self, Errno>, Error> {
        let (mut rings, mut outputs) = (Vec::new(), Vec::new());
        let mut sample_rings = Vec::new();
        for &cpu in cpus {
            let side_band = owner(cpu, sizes.side_band, procfs)?;
            let samples = owner(cpu, sizes.sample, procfs)?;
            for (fd, n_pages, carries_samples) in
                [(&side_band, sizes.side_band, false), (&samples, sizes.sample, true)]
            {
                let into = if carries_samples { &mut sample_rings } else { &mut rings };
                match MappedRing::new(rustix::fd::AsFd::as_fd(fd), n_pages) {
                    Ok(mapped) => into.push(Ring { mapped, carries_samples }),
                    Err(errno @ (Errno::PERM | Errno::NOMEM)) => return Ok(Err(errno)),
                    Err(errno) => return Err(no_room(sizes, errno, procfs)),
                }
            }
            outputs.push(Arc::new(CpuOutputs { cpu, samples, side_band }));
        }
        rings.append(&mut sample_rings);
        Ok(Ok(Self { rings, outputs, sizes, warning: None }))
    }

    /// Tells whether no ring is half full.
    pub(crate) fn have_room(&mut self) -> bool {
        self.rings.iter_mut().all(|ring| ring.mapped.n_unread() <= ring.mapped.n_bytes() / 2)
    }

    /// Maps rings for one CPU more, of the size of the others.
    pub(crate) fn add(&mut self, cpu: i32, procfs: &Procfs) -> Result<(), Error> {
        match Self::of_sizes(&[cpu], self.sizes, procfs)? {
            Ok(mut more) => {
                self.rings.append(&mut more.rings);
                self.outputs.append(&mut more.outputs);
                Ok(())
            }
            Err(errno) => Err(no_room(self.sizes, errno, procfs)),
        }
    }
}

/// Pages of each side-band ring: a power of two, as rings are.
fn side_band_pages(n_cpus: usize) -> usize {
    let share = (ALL_SIDE_BAND_PAGES / n_cpus.max(1)).max(1);
    let pages = if share.is_power_of_two() { share } else { share.next_power_of_two() / 2 };
    pages.clamp(*SIDE_BAND_PAGES.start(), *SIDE_BAND_PAGES.end())
}

impl Sizes {
    fn halved(self) -> Option<Self> {
        let halve = |n_pages: usize| (n_pages / 2).max(n_pages.min(MIN_PAGES));
        // What is more than half the room for samples goes first.
        let is_generous = self.side_band > halve(self.sample);
        let sample = if is_generous { self.sample } else { halve(self.sample) };
        let next = Self { sample, side_band: halve(self.side_band) };
        (next.sample < self.sample || next.side_band < self.side_band).then_some(next)
    }
}

/// Sessions of the usual size whose rings a process without privileges may lock, beside no others of its user; at least
/// one, which makes do with smaller ones.
#[must_use]
pub fn n_sessions_that_fit() -> usize {
    let Some(limit_bytes) = getrlimit(Resource::Memlock).current else { return usize::MAX };
    let procfs = Procfs::default();
    let n_cpus = Machine::read(Path::new("/")).online_cpus.len().max(1);
    // Linux `kernel/events/core.c`, perf_mmap: this much is nobody's limit.
    let free_kb = procfs.sysctl("kernel/perf_event_mlock_kb").unwrap_or(0).unsigned_abs();
    let may_kb = limit_bytes / 1024 + free_kb * n_cpus as u64;
    let wanted_kb = kb_each_cpu(SAMPLE_PAGES, side_band_pages(n_cpus)).unsigned_abs();
    usize::try_from(may_kb / (wanted_kb * n_cpus as u64)).map_or(usize::MAX, |n| n.max(1))
}

/// Samples that `ring` holds.
pub(crate) fn n_samples_in(ring: &mut MappedRing) -> u64 {
    let mut joint = Joint::default();
    let Some((front, back, _)) = ring.unread() else { return 0 };
    let mut reader = RingReader::new(front, back, &mut joint);
    let mut n_samples = 0;
    while let Ok(Some(raw)) = reader.next() {
        n_samples += u64::from(raw.kind == abi::PERF_RECORD_SAMPLE);
    }
    n_samples
}

fn owner(cpu: i32, n_pages: usize, procfs: &Procfs) -> Result<OwnedFd, Error> {
    let ring_bytes = n_pages * rustix::param::page_size();
    let attr = attr::ring_owner(u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX));
    let pid = getpid().as_raw_nonzero().get();
    access::event(&attr, EventPlace::Task { tid: pid, cpu })
        .map_err(|errno| refusal::Request::new("any event", pid, pid, procfs).error(errno))
}

/// Says once what this user may lock, with what would be enough on each CPU.
fn smaller(sizes: Sizes, wanted: Sizes, procfs: &Procfs) -> String {
    let wanted_kb = kb_each_cpu(wanted.sample, wanted.side_band);
    let (asked, now, may_lock) = (wanted.sample, sizes.sample, refusal::may_lock(procfs));
    format!(
        "rings of {asked} pages were asked for and have {now}: {may_lock}; run as root, give this \
         program CAP_IPC_LOCK, or: sudo sysctl kernel.perf_event_mlock_kb={wanted_kb}"
    )
}

/// Each ring has a control page beside its data.
fn kb_each_cpu(sample_pages: usize, side_band_pages: usize) -> i64 {
    let page_kb = (rustix::param::page_size() / 1024) as i64;
    (sample_pages + side_band_pages + 2) as i64 * page_kb
}

fn no_room(sizes: Sizes, errno: Errno, procfs: &Procfs) -> Error {
    let wanted_kb = kb_each_cpu(SAMPLE_PAGES, *SIDE_BAND_PAGES.start());
    refusal::mapping(errno, sizes.sample, wanted_kb, procfs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_comes_later_has_rings_of_the_same_size() {
        let procfs = Procfs::default();
        // Where even this is refused, other tests say why.
        let Ok(mut rings) = Rings::new(&[0], Some(1), &procfs) else { return };
        rings.add(0, &procfs).unwrap();
        let carries: Vec<bool> = rings.rings.iter().map(|ring| ring.carries_samples).collect();
        assert_eq!(carries, [false, true, false, true]);
        assert_eq!(rings.outputs.iter().map(|output| output.cpu).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn side_band_rings_share_what_there_is_and_yield_first() {
        assert_eq!([1, 2, 16, 17, 64, 512].map(side_band_pages), [256, 256, 256, 128, 64, 64]);
        let mut sizes = Sizes { sample: 128, side_band: 256 };
        let mut seen = Vec::new();
        while let Some(next) = sizes.halved() {
            sizes = next;
            seen.push((sizes.sample, sizes.side_band));
        }
        assert_eq!(seen[..3], [(128, 128), (128, 64), (64, 32)]);
        assert_eq!(seen.last(), Some(&(8, 8)));
    }

    #[test]
    fn halving_ends_at_eight_pages_or_at_what_was_asked() {
        let mut sizes = Sizes { sample: 2, side_band: 64 };
        while let Some(next) = sizes.halved() {
            sizes = next;
        }
        assert_eq!((sizes.sample, sizes.side_band), (2, 8));
    }

    #[test]
    fn a_user_who_may_not_lock_so_much_is_told_what_would_be_enough() {
        let dir = tempfile::tempdir().unwrap();
        let sysctl = dir.path().join("sys/kernel/perf_event_mlock_kb");
        std::fs::create_dir_all(sysctl.parent().unwrap()).unwrap();
        std::fs::write(&sysctl, "516\n").unwrap();
        let now = Sizes { sample: 64, side_band: 64 };
        let wanted = Sizes { sample: 1024, side_band: 256 };
        let said = smaller(now, wanted, &Procfs::new(dir.path()));
        let wanted_kb = (1024 + 256 + 2) * rustix::param::page_size() / 1024;
        let remedy = format!("sudo sysctl kernel.perf_event_mlock_kb={wanted_kb}");
        for part in ["1024 pages", "have 64", "perf_event_mlock_kb is 516", &remedy] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
}
