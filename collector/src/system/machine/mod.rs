//! The machine as procfs and sysfs describe it, below a root that tests can fake.
//!
//! The processor's own `cpuid` instruction is not asked: it takes unsafe code, tells of the CPU that
//! happens to run us, and the kernel has put what matters into `/proc/cpuinfo` and into the `format`,
//! `events` and `caps` of its PMUs.

mod format;
mod pmu;
mod processor;

pub use format::{Field, N_CONFIG_WORDS, config_word};
pub use pmu::Pmu;
pub use processor::{Processor, Vendor};

use crate::error::Error;
use crate::system::cpu_list::cpu_list;
use crate::system::procfs::Procfs;
use crate::system::sysfs;
use std::fmt;
use std::path::{Path, PathBuf};

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    devices: PathBuf,
    /// Its processor.
    pub processor: Processor,
    /// Its kernel.
    pub kernel: KernelRelease,
    /// The instruction set in the kernel's name for it: `x86_64`, `aarch64`; empty if unknown.
    pub architecture: String,
    /// The CPUs on line, in order.
    pub online_cpus: Vec<i32>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
    /// `kernel.perf_event_max_sample_rate`, in samples a second on a CPU.
    pub max_sample_rate_hz: Option<u64>,
    /// True if we hold `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub is_privileged: bool,
    pmus: Vec<String>,
}

/// A kernel's release, as `uname -r` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRelease {
    /// The whole text.
    pub text: String,
    /// Its first two numbers; `None` where it has none.
    pub version: Option<(u32, u32)>,
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KernelRelease {
    /// The release of the running kernel; empty if it does not tell.
    #[must_use]
    pub fn read(procfs: &Procfs) -> Self {
        let text = procfs.text("sys/kernel/osrelease").unwrap_or_default();
        let text = text.trim();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let version = match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
            _ => None,
        };
        Self { text: text.to_owned(), version }
    }

    /// Tells whether it is known to be older than Linux `major.minor`.
    #[must_use]
    pub fn is_before(&self, major: u32, minor: u32) -> bool {
        self.version.is_some_and(|version| version < (major, minor))
    }
}

impl Machine {
    /// The machine whose root directory is `root`. What cannot be read is as if it were not there:
    /// a session on a clock needs none of it. PMUs are read when they are asked for.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let procfs = Procfs::below(root);
        let processor = Processor::read(&procfs);
        let devices = root.join(sysfs::PMUS);
        let architecture = match procfs.text("sys/kernel/arch").unwrap_or_default().trim() {
            // Before Linux 6.1.
            "" => processor.architecture().to_owned(),
            said => said.to_owned(),
        };
        let max_rate = procfs.sysctl("kernel/perf_event_max_sample_rate");
        Self {
            pmus: sysfs::names(&devices, sysfs::MAX_PMUS),
            devices,
            processor,
            kernel: KernelRelease::read(&procfs),
            architecture,
            online_cpus: online_cpus(root).unwrap_or_else(|| {
                let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
                (0..i32::try_from(n_cpus).unwrap_or(1)).collect()
            }),
            paranoid: procfs.paranoid(),
            max_sample_rate_hz: max_rate.and_then(|max| u64::try_from(max).ok()),
            is_privileged: procfs.is_privileged(),
        }
    }

    /// The names of its PMUs, in order.
    #[must_use]
    pub fn pmus(&self) -> &[String] {
        &self.pmus
    }

    /// Tells whether there is a PMU of this name.
    #[must_use]
    pub fn has_pmu(&self, name: &str) -> bool {
        self.pmus.iter().any(|pmu| pmu == name)
    }

    /// Reads a PMU.
    ///
    /// # Errors
    /// [`Error::Sysfs`] if a file of it cannot be read or makes no sense, with its name.
    pub fn pmu(&self, name: &str) -> Result<Pmu, Error> {
        Pmu::read(&self.devices, name)
    }

    /// The PMUs of the cores: `cpu`, or one for each kind of core on a hybrid machine, the one that
    /// the kernel knows first (the big cores') in front.
    ///
    /// # Errors
    /// As [`Self::pmu`].
    pub fn core_pmus(&self) -> Result<Vec<Pmu>, Error> {
        let is_core = |name: &&String| {
            // `is_pmu_core()` of perf: the one of old, or those that say which CPUs they are of.
            *name == "cpu"
                || (sysfs::exists(&self.devices.join(name).join("cpus"))
                    && !name.starts_with("arm_spe"))
        };
        let names = self.pmus.iter().filter(is_core);
        let mut pmus = names.map(|name| self.pmu(name)).collect::<Result<Vec<_>, _>>()?;
        pmus.sort_by_key(|pmu| pmu.kind);
        Ok(pmus)
    }

    /// The PMUs that name an event `event` in sysfs: those of the cores if any does, else others.
    ///
    /// # Errors
    /// As [`Self::pmu`].
    pub fn pmus_with_event(&self, event: &str) -> Result<Vec<Pmu>, Error> {
        // The name becomes a path.
        if !sysfs::is_file_name(event) {
            return Ok(Vec::new());
        }
        let mut core = self.core_pmus()?;
        core.retain(|pmu| pmu.event(event).is_some());
        if !core.is_empty() {
            return Ok(core);
        }
        let has =
            |name: &&String| sysfs::exists(&self.devices.join(name).join("events").join(event));
        self.pmus.iter().filter(has).map(|name| self.pmu(name)).collect()
    }

    /// Tells whether samples of the kernel may be taken, as far as the level and our capabilities tell.
    #[must_use]
    pub const fn allows_kernel(&self) -> bool {
        self.is_privileged || self.paranoid < 2
    }
}

/// The number of the PMU called `name`, if this machine has it.
#[must_use]
pub fn pmu_type(name: &str) -> Option<u32> {
    sysfs::number(&Path::new("/").join(sysfs::PMUS).join(name).join("type"))
}

/// The CPUs on line: `0-3,5` in `/sys/devices/system/cpu/online`. `None` where that says none.
pub(crate) fn online_cpus(root: &Path) -> Option<Vec<i32>> {
    let list = sysfs::text(&root.join("sys/devices/system/cpu/online")).ok()?;
    cpu_list(list.trim()).filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
