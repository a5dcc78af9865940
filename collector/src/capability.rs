//! What this machine and these privileges allow, and the one command that would allow more.

use crate::event::EventSelector;
use crate::procfs::Procfs;
use crate::sys::attr::{self, Binding, EventSource, KernelFeatures, Source};
use crate::sys::open::{self, Place};
use crate::tracefs::Tracefs;
use dataspace_proto::event::Sampling;
use perf_event_open_sys::bindings as abi;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// `CAP_SYS_ADMIN`.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`.
pub(crate) const CAP_PERFMON: u32 = 38;

/// The capabilities that matter, by their bit (Linux `include/uapi/linux/capability.h`).
const PRIVILEGES: [(&str, u32, &str); 6] = [
    ("CAP_PERFMON", CAP_PERFMON, "events of other users' processes, and of the kernel"),
    ("CAP_SYS_PTRACE", 19, "mappings and files of other users' processes"),
    ("CAP_IPC_LOCK", 14, "rings of any size"),
    ("CAP_DAC_READ_SEARCH", 2, "programs that only their owner may read"),
    ("CAP_CHECKPOINT_RESTORE", 40, "mapped files that were deleted or replaced"),
    ("CAP_SYS_ADMIN", CAP_SYS_ADMIN, "all of it, on kernels before 5.8"),
];

/// What `dataspace doctor` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The kernel's release, as `uname -r` says it.
    pub kernel: String,
    /// Whether each event can be had.
    pub events: Vec<EventCapability>,
    /// Whether this process has each capability.
    pub privileges: Vec<Privilege>,
    /// What the kernel and the shell limit.
    pub limits: Vec<Limit>,
}

/// Whether an event can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCapability {
    /// Its name, or that of its kind.
    pub name: &'static str,
    /// Whether it can be opened on our own process.
    pub is_available: bool,
    /// What is the matter, or what is worth knowing.
    pub detail: String,
    /// The command that would help, if one would.
    pub remedy: Option<String>,
}

/// A capability of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// `CAP_…`.
    pub name: &'static str,
    /// Whether it is effective.
    pub is_held: bool,
    /// What it is good for.
    pub purpose: &'static str,
    /// The command that would grant it, where it is not held.
    pub remedy: Option<String>,
}

/// A number that limits us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The sysctl or resource.
    pub name: &'static str,
    /// Its value; `None` where it is unlimited or cannot be read.
    pub value: Option<i64>,
    /// What follows from it.
    pub meaning: &'static str,
    /// The command that would lift it, where it limits.
    pub remedy: Option<String>,
}

/// Looks at the machine whose root directory is `root`. Events are tried for real, on our own
/// process, whatever the root.
#[must_use]
pub fn probe(root: &Path) -> Capabilities {
    let procfs = Procfs::new(&root.join("proc"));
    let own = procfs.status("self").unwrap_or_default();
    let held = own.effective_capabilities.unwrap_or(0);
    let is_privileged = held & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0;
    let kernel = procfs.text("sys/kernel/osrelease").unwrap_or_default();
    Capabilities {
        kernel: kernel.trim().to_owned(),
        events: events(root),
        privileges: privileges(held),
        limits: limits(&procfs, is_privileged, held),
    }
}

fn privileges(held: u64) -> Vec<Privilege> {
    let privilege = |&(name, bit, purpose): &(&'static str, u32, &'static str)| {
        let is_held = held & 1 << bit != 0;
        let lower = name.to_ascii_lowercase();
        // CAP_SYS_ADMIN is not to be given away where the others do.
        let remedy = (!is_held && bit != CAP_SYS_ADMIN)
            .then(|| format!("sudo setcap {lower}+ep \"$(command -v dataspace)\""));
        Privilege { name, is_held, purpose, remedy }
    };
    PRIVILEGES.iter().map(privilege).collect()
}

fn limits(procfs: &Procfs, is_privileged: bool, held: u64) -> Vec<Limit> {
    let may_lock = held & 1 << 14 != 0;
    let sysctl = |name, path: &str, meaning, wanted: Option<&str>| Limit {
        name,
        value: procfs.number(&format!("sys/{path}")),
        meaning,
        remedy: wanted.map(|wanted| format!("sudo sysctl {}={wanted}", path.replace('/', "."))),
    };
    let paranoid = procfs.number("sys/kernel/perf_event_paranoid").unwrap_or(2);
    let mut limits = vec![
        sysctl(
            "perf_event_paranoid",
            "kernel/perf_event_paranoid",
            paranoid_meaning(paranoid),
            (!is_privileged && paranoid > 1).then_some("1"),
        ),
        sysctl(
            "perf_event_mlock_kb",
            "kernel/perf_event_mlock_kb",
            "KiB of rings on each CPU for a user without CAP_IPC_LOCK",
            (!may_lock).then_some("2048"),
        ),
        sysctl(
            "perf_event_max_sample_rate",
            "kernel/perf_event_max_sample_rate",
            "samples a second on a CPU before the kernel throttles",
            None,
        ),
        sysctl(
            "yama.ptrace_scope",
            "kernel/yama/ptrace_scope",
            "from 1 on, only children of the same user may be looked into without CAP_SYS_PTRACE",
            None,
        ),
    ];
    limits.extend(resources());
    limits
}

fn resources() -> [Limit; 2] {
    let value = |which| getrlimit(which).current.and_then(|limit| i64::try_from(limit).ok());
    [
        Limit {
            name: "RLIMIT_MEMLOCK",
            value: value(Resource::Memlock),
            meaning: "bytes of rings beyond perf_event_mlock_kb",
            remedy: None,
        },
        Limit {
            name: "RLIMIT_NOFILE",
            value: value(Resource::Nofile),
            meaning: "open files: each thread takes one for each event and CPU, and one for its \
                      side-band on each CPU; a session raises it to the hard limit by itself",
            remedy: None,
        },
    ]
}

const fn paranoid_meaning(level: i64) -> &'static str {
    match level {
        i64::MIN..=-1 => "all events for all users",
        0 => "no raw tracepoints without CAP_PERFMON",
        1 => "no events of whole CPUs without CAP_PERFMON",
        2 => "no events of the kernel without CAP_PERFMON",
        _ => "no events at all without CAP_PERFMON",
    }
}

fn events(root: &Path) -> Vec<EventCapability> {
    let tracefs = Tracefs::new(root);
    let mut events: Vec<_> = ["cpu-clock", "task-clock", "page-faults"]
        .into_iter()
        .map(|name| selected(name, name, &tracefs))
        .collect();
    // Any address will do: nothing touches the first page.
    events.push(selected("mem:ADDRESS", "mem:0x1000/8:rw:u", &tracefs));
    events.push(tracepoints(&tracefs));
    events.push(tried("cycles", Source::Hardware(u64::from(abi::PERF_COUNT_HW_CPU_CYCLES)), false));
    let devices = root.join("sys/bus/event_source/devices");
    let described = |paths: &[&str]| paths.iter().any(|path| devices.join(path).exists());
    for (name, is_available, what) in [
        (
            "mem-loads",
            described(&["cpu/events/mem-loads", "cpu_core/events/mem-loads"]),
            "Intel load latency sampling (PEBS)",
        ),
        ("ibs_op", described(&["ibs_op"]), "AMD instruction-based sampling (IBS)"),
    ] {
        let detail = if is_available {
            what.to_owned()
        } else {
            format!("{what} is not offered by this CPU or hypervisor")
        };
        events.push(EventCapability { name, is_available, detail, remedy: None });
    }
    events
}

fn selected(name: &'static str, selector: &str, tracefs: &Tracefs) -> EventCapability {
    let plan = EventSelector::parse(selector).ok().and_then(|s| s.plan(None, tracefs).ok());
    match plan {
        Some(plan) => tried(name, plan.source.source, plan.source.exclude_kernel),
        None => EventCapability {
            name,
            is_available: false,
            detail: "it cannot be described".to_owned(),
            remedy: None,
        },
    }
}

/// Opens the event on our own process, with the kernel's side if that is permitted.
fn tried(name: &'static str, source: Source, only_user: bool) -> EventCapability {
    const PARANOID: &str = "sudo sysctl kernel.perf_event_paranoid=1";
    let open = |exclude_kernel| {
        let sampling = Sampling::Period(1_000_000_000);
        let event = EventSource { source, sampling, exclude_user: false, exclude_kernel };
        let binding = Binding { enable_on_exec: true, ..Binding::default() };
        let features = KernelFeatures::default();
        open::open(&attr::sampled(&event, binding, features), Place::OWN_THREAD).map(drop)
    };
    let (is_available, detail, remedy) = match (open(only_user), only_user) {
        (Ok(()), true) => (true, "user code".to_owned(), None),
        (Ok(()), false) => (true, "user code and kernel".to_owned(), None),
        (Err(Errno::ACCESS | Errno::PERM), false) if open(true).is_ok() => {
            (true, "user code only".to_owned(), Some(PARANOID.to_owned()))
        }
        (Err(errno @ (Errno::ACCESS | Errno::PERM)), _) => {
            (false, errno.to_string(), Some(PARANOID.to_owned()))
        }
        (Err(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP), _) => {
            (false, "not offered by this CPU or hypervisor".to_owned(), None)
        }
        (Err(errno), _) => (false, errno.to_string(), None),
    };
    EventCapability { name, is_available, detail, remedy }
}

fn tracepoints(tracefs: &Tracefs) -> EventCapability {
    let name = "SYSTEM:TRACEPOINT";
    match tracefs.place() {
        Ok(place) => EventCapability {
            name,
            is_available: true,
            detail: format!("described in {}", place.display()),
            remedy: None,
        },
        Err((detail, remedy)) => {
            EventCapability { name, is_available: false, detail, remedy: Some(remedy.to_owned()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn limit<'a>(capabilities: &'a Capabilities, name: &str) -> &'a Limit {
        capabilities.limits.iter().find(|limit| limit.name == name).unwrap()
    }

    #[test]
    fn an_unprivileged_user_on_debian_is_told_how_to_become_more() {
        let dir = fake(&[
            ("proc/self/status", "CapEff:\t0000000000000000\n"),
            ("proc/sys/kernel/perf_event_paranoid", "3\n"),
            ("proc/sys/kernel/perf_event_mlock_kb", "516\n"),
            ("sys/bus/event_source/devices/ibs_op/type", "9\n"),
        ]);
        let capabilities = probe(dir.path());
        let paranoid = limit(&capabilities, "perf_event_paranoid");
        assert_eq!(paranoid.value, Some(3));
        assert_eq!(paranoid.remedy.as_deref(), Some("sudo sysctl kernel.perf_event_paranoid=1"));
        assert!(limit(&capabilities, "perf_event_mlock_kb").remedy.is_some());
        assert!(capabilities.privileges.iter().all(|privilege| !privilege.is_held));
        let event = |name| capabilities.events.iter().find(|event| event.name == name).unwrap();
        assert!(event("ibs_op").is_available && !event("mem-loads").is_available);
        assert!(event("SYSTEM:TRACEPOINT").remedy.as_ref().unwrap().contains("mount -t tracefs"));
    }

    #[test]
    fn root_needs_no_remedies() {
        let dir = fake(&[
            ("proc/self/status", "CapEff:\t000001ffffffffff\n"),
            ("proc/sys/kernel/perf_event_paranoid", "2\n"),
        ]);
        let capabilities = probe(dir.path());
        assert!(capabilities.privileges.iter().all(|one| one.is_held && one.remedy.is_none()));
        assert_eq!(limit(&capabilities, "perf_event_paranoid").remedy, None);
    }

    #[test]
    fn this_machine_says_something_of_every_event() {
        let capabilities = probe(Path::new("/"));
        assert!(!capabilities.kernel.is_empty());
        for event in &capabilities.events {
            println!("{event:?}");
            assert!(!event.detail.is_empty(), "{event:?}");
        }
    }
}
