//! The processor as `/proc/cpuinfo` describes its first CPU.

use crate::system::procfs::{Procfs, value};

/// Maker of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`, and Hygon's of the same making.
    Amd,
    /// Arm's instruction set, whoever made it.
    Arm,
    /// Any other.
    #[default]
    Other,
}

/// A processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its maker.
    pub vendor: Vendor,
    /// `cpu family`.
    pub family: u32,
    /// `model`.
    pub model: u32,
    /// `model name`; empty if it says none.
    pub name: String,
    /// True if it says that a hypervisor runs below (cpuid leaf 1, ECX bit 31).
    pub is_virtual: bool,
}

impl Processor {
    /// The processor of a machine.
    #[must_use]
    pub fn read(procfs: &Procfs) -> Self {
        Self::parse(&procfs.text("cpuinfo").unwrap_or_default())
    }

    /// Reads the first CPU of a `cpuinfo`. What it does not say is 0 or empty.
    #[must_use]
    pub fn parse(cpuinfo: &str) -> Self {
        let said = |key| value(cpuinfo, key).unwrap_or_default();
        let number = |key| said(key).parse().unwrap_or(0);
        let vendor = match said("vendor_id") {
            "GenuineIntel" => Vendor::Intel,
            "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
            _ if value(cpuinfo, "CPU implementer").is_some() => Vendor::Arm,
            _ => Vendor::Other,
        };
        Self {
            vendor,
            family: number("cpu family"),
            model: number("model"),
            name: said("model name").to_owned(),
            is_virtual: said("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }

    /// The instruction set that the vendor implies, in the kernel's name for it; empty if none.
    pub(super) const fn architecture(&self) -> &'static str {
        match self.vendor {
            Vendor::Intel | Vendor::Amd => "x86_64",
            Vendor::Arm => "aarch64",
            Vendor::Other => "",
        }
    }

    /// Tells whether it is of Intel's first generation with precise loads, Nehalem or Westmere (`case
    /// INTEL_NEHALEM` and following in `intel_pmu_init()`, Linux `arch/x86/events/intel/core.c`):
    /// its event codes 0xcd and 0xd0 to 0xd4 mean something else.
    #[must_use]
    pub const fn is_nehalem(&self) -> bool {
        matches!(self.vendor, Vendor::Intel)
            && self.family == 6
            && matches!(self.model, 26 | 30 | 46 | 37 | 44 | 47)
    }
}
