//! What an unprivileged user gets, and what refusals say.

use super::clock::SPINNER;
use crate::support::{Program, Session, as_nobody, open, with_few_files};
use dataspace_collector::error::ErrorKind;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::system::machine::KernelRelease;
use dataspace_collector::system::procfs::Procfs;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::event::Sampling;
use dataspace_proto::record::Record;

#[test]
fn an_unprivileged_user_sees_user_code_of_own_processes() {
    as_nobody("live::privilege::an_unprivileged_user_sees_user_code_of_own_processes", || {
        let program = Program::new(SPINNER);
        let mut partner = program.spawn();
        partner.read_line();
        let target = TargetSpec::Pids(vec![partner.pid()]);
        // More than may be locked: smaller rings have to do.
        let ring_pages = Some(1 << 15);
        let Some(live) = open(LiveConfig { ring_pages, ..LiveConfig::new(target) }) else { return };
        assert!(!live.events()[0].includes_kernel);
        let mut session = Session::start(live);
        session.wait_for(|record| matches!(record, Record::Sample(_)));
        partner.finish();
        let (said, _) = session.finish();
        assert!(said.has_mapping(&program.path()));
    });
}

#[test]
fn a_refusal_names_the_process_and_a_remedy() {
    as_nobody("live::privilege::a_refusal_names_the_process_and_a_remedy", || {
        let error = Live::open(LiveConfig::new(TargetSpec::Pids(vec![1]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPermitted);
        assert!(error.to_string().contains("process 1 belongs to user 0; run as root"), "{error}");
    });
}

/// `msr` takes no samples and cannot leave out the kernel, which such a user may not see: both are `EINVAL`.
#[test]
fn a_pmu_that_only_counts_is_told_from_one_that_is_not_permitted() {
    as_nobody(
        "live::privilege::a_pmu_that_only_counts_is_told_from_one_that_is_not_permitted",
        || {
            if !std::path::Path::new("/sys/bus/event_source/devices/msr").exists() {
                return eprintln!("not run: there is no PMU msr");
            }
            let events = vec![EventSelector::parse("msr/tsc/").unwrap()];
            let target = TargetSpec::Pids(vec![std::process::id().cast_signed()]);
            let error = Live::open(LiveConfig { events, ..LiveConfig::new(target) }).unwrap_err();
            match error.kind() {
                ErrorKind::MachineCannot => {
                    assert!(error.to_string().contains("counted and not sampled"), "{error}");
                }
                ErrorKind::NotPermitted => eprintln!("not run: {error}"),
                // Older kernels answer alike to both.
                _ => assert!(KernelRelease::read(&Procfs::default()).is_before(6, 18), "{error}"),
            }
        },
    );
}

#[test]
fn too_few_files_are_said_to_be() {
    with_few_files("live::privilege::too_few_files_are_said_to_be", || {
        let target = TargetSpec::Pids(vec![i32::try_from(std::process::id()).unwrap()]);
        let events = vec![EventSelector::parse("faults:u").unwrap(); 20];
        let error = Live::open(LiveConfig { events, ..LiveConfig::new(target) }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    });
}

#[test]
fn a_frequency_above_the_limit_is_refused_with_the_limit() {
    let program = Program::new(SPINNER);
    let config = LiveConfig {
        events: vec![EventSelector::parse("faults:u").unwrap()],
        sampling: Some(Sampling::FrequencyHz(1 << 40)),
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let error = Live::open(config).unwrap_err();
    let kinds = [ErrorKind::Usage, ErrorKind::NotPermitted];
    assert!(kinds.contains(&error.kind()), "{error}");
    assert!(error.to_string().contains("max_sample_rate"), "{error}");
}

#[test]
fn a_fifth_watched_variable_is_one_too_many() {
    let program = Program::new(SPINNER);
    let address = program.address("counter");
    let selector = EventSelector::parse(&format!("mem:{address:#x}/4:u")).unwrap();
    let target = TargetSpec::Command(program.argv());
    let config = LiveConfig { events: vec![selector; 5], ..LiveConfig::new(target) };
    match Live::open(config) {
        Ok(_) => eprintln!("skipped: this machine has more than 4 debug registers"),
        Err(error) => {
            let refused = [ErrorKind::MachineCannot, ErrorKind::NotPermitted];
            assert!(refused.contains(&error.kind()), "{error}");
        }
    }
}

#[test]
fn a_guest_without_a_pmu_is_told_so() {
    let program = Program::new(SPINNER);
    let has_pmu = std::path::Path::new("/sys/bus/event_source/devices/cpu").exists();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let is_virtual = cpuinfo.split_whitespace().any(|word| word == "hypervisor");
    if has_pmu || !is_virtual {
        eprintln!("skipped: this machine has a PMU, or is no guest");
        return;
    }
    for event in ["cycles:u", "LLC-load-misses:u", "r1cd:u"] {
        let config = LiveConfig {
            events: vec![EventSelector::parse(event).unwrap()],
            ..LiveConfig::new(TargetSpec::Command(program.argv()))
        };
        let error = Live::open(config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MachineCannot, "{error}");
        assert!(error.to_string().contains("this virtual machine is given no PMU"), "{error}");
    }
    let config = LiveConfig {
        events: vec![EventSelector::parse("loads").unwrap()],
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let Some(live) = open(config) else { return };
    assert_eq!(live.events()[0].name, "cpu-clock", "the clock stands in");
}
