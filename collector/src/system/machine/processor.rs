//! The processor as `/proc/cpuinfo` describes its first CPU.

/// Who made a processor.
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
    /// Who made it.
    pub vendor: Vendor,
    /// `cpu family`.
    pub family: u32,
    /// `model`.
    pub model: u32,
    /// `model name`; empty if it says none.
    pub name: String,
    /// Whether it says that a hypervisor runs below (cpuid leaf 1, ECX bit 31).
    pub is_virtual: bool,
}

impl Processor {
    /// Reads the first CPU of a `cpuinfo`. What it does not say is 0 or empty.
    #[must_use]
    pub fn parse(cpuinfo: &str) -> Self {
        let mut processor = Self::default();
        for line in cpuinfo.lines() {
            if line.trim().is_empty() {
                break;
            }
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim() {
                "vendor_id" => {
                    processor.vendor = match value {
                        "GenuineIntel" => Vendor::Intel,
                        "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
                        _ => Vendor::Other,
                    }
                }
                "CPU implementer" => processor.vendor = Vendor::Arm,
                "cpu family" => processor.family = value.parse().unwrap_or(0),
                "model" => processor.model = value.parse().unwrap_or(0),
                "model name" => value.clone_into(&mut processor.name),
                "flags" => {
                    processor.is_virtual = value.split(' ').any(|flag| flag == "hypervisor");
                }
                _ => {}
            }
        }
        processor
    }

    /// The instruction set that the vendor implies, in the kernel's name for it; empty if none.
    pub(super) const fn architecture(&self) -> &'static str {
        match self.vendor {
            Vendor::Intel | Vendor::Amd => "x86_64",
            Vendor::Arm => "aarch64",
            Vendor::Other => "",
        }
    }

    /// Whether it is of Intel's first generation with precise loads, Nehalem or Westmere (`case
    /// INTEL_NEHALEM` and following in `intel_pmu_init()`, Linux `arch/x86/events/intel/core.c`):
    /// its event codes 0xcd and 0xd0 to 0xd4 mean something else.
    #[must_use]
    pub const fn is_nehalem(&self) -> bool {
        matches!(self.vendor, Vendor::Intel)
            && self.family == 6
            && matches!(self.model, 26 | 30 | 46 | 37 | 44 | 47)
    }
}
