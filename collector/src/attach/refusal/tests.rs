//! Every errno, with the values that explain it.

use super::*;
use crate::event::EventSelector;
use crate::system::machine::fixture::Fixture;
use crate::system::tracefs::Tracefs;

/// A process that belongs to a user whom nobody is.
const FOREIGN: i32 = 4_711;
const NOBODYS_UID: u32 = 54_321;

struct Case {
    fixture: Fixture,
    plan: EventPlan,
    scope: Scope,
}

impl Case {
    /// `event` as an unprivileged user asks for it on `machine`.
    fn new(machine: &str, event: &str) -> Self {
        let fixture = Fixture::new(machine);
        fixture.set("proc/self/status", "CapEff:\t0000000000000000");
        let uid = geteuid().as_raw();
        for (pid, uid) in [(7, uid), (FOREIGN, NOBODYS_UID)] {
            fixture
                .add(&format!("proc/{pid}/status"), &format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}"));
        }
        let selector = EventSelector::parse(event).unwrap();
        let tracefs = Tracefs::new(fixture.root());
        let plan = match selector.plan(None, &fixture.machine(), &tracefs) {
            Ok(mut plans) => plans.remove(0),
            // No fake tracefs: a tracepoint's number does not matter.
            Err(_) => {
                let clock = EventSelector::cpu_clock();
                let mut plan = clock.plan(None, &fixture.machine(), &tracefs).unwrap().remove(0);
                event.clone_into(&mut plan.event.name);
                plan.source.source = Source::Tracepoint(1);
                plan
            }
        };
        Self { fixture, plan, scope: Scope::Task }
    }

    fn with(self, file: &str, text: &str) -> Self {
        self.fixture.set(&format!("proc/{file}"), text);
        self
    }

    fn paranoid(self, level: &str) -> Self {
        self.with("sys/kernel/perf_event_paranoid", level)
    }

    fn privileged(self) -> Self {
        self.with("self/status", "CapEff:\t000000c000000000\nSeccomp:\t0")
    }

    fn on(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    fn error(&self, pid: i32, errno: Errno) -> Error {
        let procfs = Procfs::new(&self.fixture.root().join("proc"));
        Request::planned(&self.plan, pid, pid, &procfs).on(self.scope).error(errno)
    }

    /// The sentence for `errno` has all of `parts`, and the error is of `kind`.
    #[track_caller]
    fn says(&self, pid: i32, errno: Errno, kind: ErrorKind, parts: &[&str]) {
        let error = self.error(pid, errno);
        let said = error.to_string();
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in {said:?}");
        }
        assert_eq!(error.kind(), kind, "{said}");
        assert!(!said.contains('\n') && !said.contains("  "), "one sentence: {said:?}");
    }
}

use ErrorKind::{Failed, MachineCannot, NotPermitted, Usage};

#[test]
fn permission_is_explained_by_level_scope_and_capability() {
    for errno in [Errno::ACCESS, Errno::PERM] {
        let clock = || Case::new("virtual", "cpu-clock");
        let setcap = "setcap cap_perfmon+ep";
        clock().paranoid("3").says(
            7,
            errno,
            NotPermitted,
            &["perf_event_paranoid is 3", setcap, "perf_event_paranoid=2"],
        );
        clock().paranoid("2").on(Scope::Cpu).says(
            -1,
            errno,
            NotPermitted,
            &["is 2", "whole CPUs", setcap, "perf_event_paranoid=0"],
        );
        clock().paranoid("1").on(Scope::Cgroup).says(
            -1,
            errno,
            NotPermitted,
            &["is 1", "control groups", setcap, "perf_event_paranoid=0"],
        );
        Case::new("skylake", "cycles:k").paranoid("2").says(
            7,
            errno,
            NotPermitted,
            &["is 2", "samples of the kernel", setcap, "perf_event_paranoid=1"],
        );
        Case::new("virtual", "loads:k").paranoid("2").says(
            7,
            errno,
            NotPermitted,
            &["cpu-clock:k", "samples of the kernel", "perf_event_paranoid=1"],
        );
        Case::new("virtual", "syscalls:sys_enter_read").paranoid("2").says(
            7,
            errno,
            NotPermitted,
            &["is 2", "perf_event_paranoid=1"],
        );
        // IBS without a filter samples the kernel whether asked to or not.
        Case::new("zen3", "mem:u").paranoid("2").says(
            7,
            errno,
            NotPermitted,
            &["samples of the kernel", "perf_event_paranoid=1"],
        );
        clock().says(FOREIGN, errno, NotPermitted, &["process 4711 belongs to user 54321"]);
        clock().says(7, errno, NotPermitted, &["process 7 does not let itself be looked into"]);
    }
}

#[test]
fn who_refuses_the_privileged_is_named() {
    let clock = || Case::new("virtual", "cpu-clock").privileged();
    clock().says(7, Errno::ACCESS, NotPermitted, &["os error 13", "security module"]);
    clock().with("self/status", "CapEff:\t000000c000000000\nSeccomp:\t2").says(
        7,
        Errno::PERM,
        NotPermitted,
        &["os error 1", "Seccomp is 2", "container's profile"],
    );
    clock().with("self/uid_map", "         0     100000      65536").says(
        7,
        Errno::ACCESS,
        NotPermitted,
        &["user namespace"],
    );
    clock().with("self/uid_map", "         0          0 4294967295").says(
        7,
        Errno::ACCESS,
        NotPermitted,
        &["security module"],
    );
    Case::new("virtual", "cpu-clock").with("self/status", "CapEff:\t0\nSeccomp:\t2").says(
        7,
        Errno::PERM,
        NotPermitted,
        &["Seccomp is 2"],
    );
}

#[test]
fn every_other_errno_is_a_sentence() {
    let skylake = |event| Case::new("skylake", event);
    for (case, errno, kind, parts) in [
        (
            Case::new("virtual", "cycles"),
            Errno::NOENT,
            MachineCannot,
            &["virtual machine", "-e cpu-clock"][..],
        ),
        (
            Case::new("virtual", "cycles:pp"),
            Errno::OPNOTSUPP,
            MachineCannot,
            &["virtual machine", "precisely"],
        ),
        (Case::new("virtual", "cycles"), Errno::NODEV, MachineCannot, &["virtual machine"]),
        (
            skylake("stalled-cycles-frontend"),
            Errno::NOENT,
            MachineCannot,
            &["PMU has no such event"],
        ),
        (skylake("cycles:ppp"), Errno::OPNOTSUPP, MachineCannot, &["as precise as 3", "P"]),
        (skylake("cycles"), Errno::OPNOTSUPP, MachineCannot, &["takes no samples"]),
        (skylake("cycles"), Errno::NODEV, MachineCannot, &["no such event"]),
        (skylake("cpu-clock"), Errno::NOSYS, MachineCannot, &["built without perf events"]),
        (skylake("mem:0x1000"), Errno::NOSPC, MachineCannot, &["no debug register is free"]),
        (skylake("cycles"), Errno::NOSPC, MachineCannot, &["no counter of the PMU is free"]),
        (
            skylake("cycles").with("sys/kernel/nmi_watchdog", "1"),
            Errno::BUSY,
            MachineCannot,
            &["kernel.nmi_watchdog is 1", "nmi_watchdog=0"],
        ),
        (skylake("cycles"), Errno::SRCH, Failed, &["no process or thread 7"]),
        (skylake("cycles"), Errno::MFILE, Failed, &["ulimit -n"]),
        (
            skylake("cycles").with("sys/fs/file-max", "1000"),
            Errno::NFILE,
            Failed,
            &["1000 files", "fs.file-max"],
        ),
        (skylake("r1cd:p"), Errno::NODATA, MachineCannot, &["mem-loads-aux", "cpu/mem-loads/P"]),
        (
            skylake("cpu/config3=1/"),
            Errno::TOOBIG,
            MachineCannot,
            &["Linux 6.1.0-21-amd64 does not know"],
        ),
        (skylake("cycles"), Errno::NOMEM, Failed, &["no memory left"]),
        (
            skylake("cycles").with("sys/kernel/perf_event_max_stack", "127"),
            Errno::OVERFLOW,
            Failed,
            &["perf_event_max_stack (127)"],
        ),
        (skylake("cycles"), Errno::FAULT, Failed, &["fault of ours"]),
        (skylake("cycles"), Errno::INTR, Failed, &["try again"]),
        (skylake("cycles"), Errno::BADF, Failed, &["control group"]),
        (skylake("cycles"), Errno::IO, Failed, &["os error 5", "no reason"]),
    ] {
        case.says(7, errno, kind, parts);
    }
}

#[test]
fn an_invalid_argument_is_told_by_what_was_asked() {
    let mut fast = Case::new("skylake", "cycles");
    fast.plan.event.sampling = Sampling::FrequencyHz(200_000);
    fast.says(
        7,
        Errno::INVAL,
        Usage,
        &["200000 samples a second", "100000 of kernel.perf_event_max_sample_rate"],
    );
    Case::new("skylake", "cycles:pp").says(7, Errno::INVAL, MachineCannot, &["precise_ip 2", "P"]);
    // Linux 5.15: IBS counts whole CPUs only.
    Case::new("zen2", "mem").says(
        7,
        Errno::INVAL,
        MachineCannot,
        &["from Linux 6.2 on", "this is 5.15", "-a"],
    );
    Case::new("zen2", "mem").on(Scope::Cpu).says(
        -1,
        Errno::INVAL,
        Failed,
        &["does not accept ibs_op// with 4000 samples"],
    );
    let mut bits = Case::new("zen3", "ibs_op//u");
    if let Source::Counter(counter) = &mut bits.plan.source.source {
        counter.levels = Levels::Bits;
    }
    bits.says(7, Errno::INVAL, MachineCannot, &["AMD IBS cannot leave out"]);
    Case::new("skylake", "cpu-clock").says(7, Errno::INVAL, Failed, &["a period of 2004008"]);
}

#[test]
fn a_ring_that_is_not_mapped_says_why() {
    let fixture = Fixture::new("skylake");
    fixture.add("proc/sys/kernel/perf_event_mlock_kb", "516");
    let procfs = Procfs::new(&fixture.root().join("proc"));
    for (errno, kind, parts) in [
        (
            Errno::PERM,
            NotPermitted,
            &["perf_event_mlock_kb is 516", "RLIMIT_MEMLOCK", "CAP_IPC_LOCK", "mlock_kb=776"][..],
        ),
        (Errno::NOMEM, NotPermitted, &["perf_event_mlock_kb is 516", "os error 12"]),
        (Errno::INVAL, Failed, &["power of two"]),
        (Errno::ACCESS, Failed, &["security module"]),
        (Errno::AGAIN, Failed, &["locked already"]),
        (Errno::NODEV, Failed, &["off line"]),
    ] {
        let error = mapping(errno, 128, 776, &procfs);
        let said = error.to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert_eq!(error.kind(), kind, "{said}");
    }
}

/// `msr` is on every x86-64 machine with a time stamp counter, virtual ones too.
#[test]
fn a_pmu_that_only_counts_is_told_by_trying() {
    let root = std::path::Path::new("/");
    let machine = crate::system::machine::Machine::read(root);
    if !machine.has_pmu("msr") {
        eprintln!("not run: there is no PMU msr");
        return;
    }
    let plan = |event: &str| {
        let selector = EventSelector::parse(event).unwrap();
        selector.plan(None, &machine, &Tracefs::new(root)).unwrap().remove(0)
    };
    let procfs = Procfs::default();
    let mut msr = plan("msr/tsc/");
    let error = opens_on_ourselves(&mut msr, &procfs).unwrap_err();
    match &error {
        Error::OnlyCounts { .. } => {
            let said = error.to_string();
            assert!(
                said.contains("perf stat -e msr/tsc/") && said.contains("no interrupt"),
                "{said}"
            );
            assert_eq!(error.kind(), MachineCannot);
        }
        // Where not even a count is to be had: older kernels do not tell why.
        error => assert!(
            error.kind() == NotPermitted || machine.kernel.is_before(6, 18) && machine.paranoid > 1,
            "{error}"
        ),
    }
    // A clock samples, whatever else is wrong with what was asked.
    let request = plan("cpu-clock");
    let error = Request::planned(&request, 1, 1, &procfs).error(Errno::INVAL);
    assert!(!matches!(error, Error::OnlyCounts { .. }), "{error}");
}
