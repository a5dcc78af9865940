//! Trees of sysfs as kernels write them, read back.

use super::fixture::Fixture;
use super::*;

const DEVICES: &str = "sys/bus/event_source/devices";

#[test]
fn a_machine_is_what_its_files_say() {
    let fixture = Fixture::new("alder_lake");
    let machine = fixture.machine();
    assert_eq!(machine.processor.vendor, Vendor::Intel);
    assert_eq!((machine.processor.family, machine.processor.model), (6, 151));
    assert_eq!(machine.processor.name, "12th Gen Intel(R) Core(TM) i9-12900K");
    assert_eq!(machine.kernel.version, Some((6, 1)));
    assert_eq!(machine.architecture, "x86_64");
    assert_eq!(machine.online_cpus, (0..24).collect::<Vec<_>>());
    assert_eq!((machine.paranoid, machine.max_sample_rate_hz), (2, Some(100_000)));
    assert!(machine.is_privileged && !machine.processor.is_virtual);
    let cores = machine.core_pmus().unwrap();
    let core = |name| cores.iter().find(|pmu| pmu.name == name).unwrap();
    assert_eq!(core("cpu_core").cpus, Some((0..16).collect()));
    assert_eq!(core("cpu_atom").cpus, Some((16..24).collect()));
    assert_eq!(core("cpu_core").event("mem-loads-aux"), Some("event=0x03,umask=0x82"));
    assert_eq!(core("cpu_atom").event("mem-loads-aux"), None);
    assert_eq!(core("cpu_atom").event("mem-loads"), Some("event=0xd0,umask=0x5,ldlat=3"));
    assert_eq!(core("cpu_core").cap("max_precise"), Some("3"));
    assert_eq!((core("cpu_core").kind, core("cpu_atom").kind), (4, 10));
}

#[test]
fn uncore_pmus_are_shared_and_notes_are_no_events() {
    let fixture = Fixture::new("ivy_bridge");
    let machine = fixture.machine();
    let uncore = machine.pmu("uncore_imc_0").unwrap();
    assert!(uncore.is_shared);
    assert_eq!(uncore.events().collect::<Vec<_>>(), ["cas_count_read"]);
    assert!(!machine.pmu("cpu").unwrap().is_shared);
    let names: Vec<_> = machine.core_pmus().unwrap().into_iter().map(|pmu| pmu.name).collect();
    assert_eq!(names, ["cpu"]);
}

#[test]
fn architectures_and_guests_are_told_apart() {
    let arm = Fixture::new("aarch64_spe").machine();
    assert_eq!((arm.architecture.as_str(), arm.processor.vendor), ("aarch64", Vendor::Arm));
    assert!(arm.has_pmu("arm_spe_0"));
    assert!(Fixture::new("virtual").machine().processor.is_virtual);
    // Without /proc/sys/kernel/arch (before Linux 6.1) the vendor tells.
    assert_eq!(Fixture::new("zen2").machine().architecture, "x86_64");
}

#[test]
fn nonsense_in_sysfs_names_the_file() {
    for (file, text, why) in [
        ("cpu/type", "four", "it is no number"),
        ("cpu/format/event", "config:0-99", "names no bits"),
        ("cpu/format/umask", "\u{fffd}", "names no bits"),
        ("cpu/cpus", "0-99999999", "no list of CPUs"),
    ] {
        let fixture = Fixture::new("skylake");
        fixture.set(&format!("{DEVICES}/{file}"), text);
        let error = fixture.machine().pmu("cpu").unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(why), "{error}");
    }
    let fixture = Fixture::new("skylake");
    std::fs::write(fixture.root().join(DEVICES).join("cpu/type"), b"\xff\xfe").unwrap();
    assert!(fixture.machine().pmu("cpu").unwrap_err().to_string().contains("cpu/type"));
}

#[test]
fn endless_files_are_read_to_a_bound() {
    let fixture = Fixture::new("skylake");
    let file = fixture.root().join(DEVICES).join("cpu/events/mem-loads");
    std::fs::write(file, "event=1,".repeat(100_000)).unwrap();
    assert!(fixture.machine().pmu("cpu").unwrap().event("mem-loads").unwrap().len() <= 4_096);
}

#[test]
fn no_path_leads_out_of_the_devices() {
    let fixture = Fixture::new("skylake");
    let machine = fixture.machine();
    for name in ["..", ".", "", "../devices/cpu", "cpu/../cpu", "/etc", "cpu\0"] {
        assert!(machine.pmu(name).is_err(), "{name:?}");
        assert!(machine.pmus_with_event(name).unwrap().is_empty(), "{name:?}");
    }
}

#[test]
fn an_empty_root_is_a_machine_without_pmus() {
    let machine = Machine::read(Path::new("/nonexistent"));
    assert!(machine.pmus().is_empty() && machine.core_pmus().unwrap().is_empty());
    assert!(!machine.online_cpus.is_empty());
    assert!(!machine.allows_kernel(), "who cannot be seen to be privileged is not");
    assert!(!machine.kernel.is_before(99, 0), "an unknown kernel is not known to be older");
}
