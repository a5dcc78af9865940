//! Permissions of this machine and these privileges, and the one command that would allow more.

use crate::attach::refusal;
use crate::error::Error;
use crate::event::{self, EventPlan, EventSelector};
use crate::system::machine::{Machine, Processor};
use crate::system::procfs::{CAP_PERFMON, CAP_SYS_ADMIN, Procfs};
use crate::system::tracefs::Tracefs;
use dataspace_proto::event::{EventKind, SkidModel};
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Setting that lets an unprivileged user sample the kernel's side too.
const PARANOID: &str = "sudo sysctl kernel.perf_event_paranoid=1";

/// The capabilities that matter, by their bit (Linux `include/uapi/linux/capability.h`).
const PRIVILEGES: [(&str, u32, &str); 6] = [
    ("CAP_PERFMON", CAP_PERFMON, "events of other users' processes, and of the kernel"),
    ("CAP_SYS_PTRACE", 19, "mappings and files of other users' processes"),
    ("CAP_IPC_LOCK", 14, "rings of any size"),
    ("CAP_DAC_READ_SEARCH", 2, "programs that only their owner may read"),
    ("CAP_CHECKPOINT_RESTORE", 40, "mapped files that were deleted or replaced"),
    ("CAP_SYS_ADMIN", CAP_SYS_ADMIN, "all of it, on kernels before 5.8"),
];

/// Content of `dataspace doctor`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The kernel's release, as `uname -r` says it.
    pub kernel: String,
    /// Its processor.
    pub processor: Processor,
    /// The instruction set in the kernel's name for it; empty if unknown.
    pub architecture: String,
    /// Availability of each event.
    pub events: Vec<EventCapability>,
    /// The capabilities of this process, held or not.
    pub privileges: Vec<Privilege>,
    /// Limits of the kernel and the shell.
    pub limits: Vec<Limit>,
}

/// Availability of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCapability {
    /// Its name, or that of its kind.
    pub name: String,
    /// True if it can be opened on our own process.
    pub is_available: bool,
    /// The reason why not, or something worth knowing.
    pub detail: String,
    /// The command that would help, if one would.
    pub remedy: Option<String>,
}

/// A capability of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// `CAP_…`.
    pub name: &'static str,
    /// True if it is effective.
    pub is_held: bool,
    /// Its use.
    pub purpose: &'static str,
    /// The command that would grant it, where it is not held.
    pub remedy: Option<String>,
}

/// A number that limits us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The sysctl or resource.
    pub name: &'static str,
    /// Its value.
    pub value: LimitValue,
    /// Its consequence.
    pub meaning: &'static str,
    /// The command that would lift it, where it limits.
    pub remedy: Option<String>,
}

/// Value of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitValue {
    /// So much.
    Number(i64),
    /// There is none.
    Unlimited,
    /// This kernel has no such limit, or does not tell.
    Missing,
}

/// Looks at the machine whose root directory is `root`. Events are tried for real, on our own
/// process, whatever the root.
#[must_use]
pub fn probe(root: &Path) -> Capabilities {
    let procfs = Procfs::below(root);
    let own = procfs.status("self").unwrap_or_default();
    let held = own.effective_capabilities.unwrap_or(0);
    let machine = Machine::read(root);
    Capabilities {
        events: events(&machine, root),
        kernel: machine.kernel.text,
        processor: machine.processor,
        architecture: machine.architecture,
        privileges: privileges(held),
        limits: limits(&procfs, own.is_privileged(), held),
    }
}

fn privileges(held: u64) -> Vec<Privilege> {
    // setcap replaces what a file had: one command names all that are held or missing up to a line.
    let mut named = Vec::new();
    let mut privilege = |&(name, bit, purpose): &(&'static str, u32, &'static str)| {
        let is_held = held & 1 << bit != 0;
        // CAP_SYS_ADMIN is not to be given away where the others do.
        let is_offered = bit != CAP_SYS_ADMIN;
        if is_offered {
            named.push(name.to_ascii_lowercase());
        }
        let remedy = (!is_held && is_offered)
            .then(|| format!("sudo setcap {}=ep \"$(command -v dataspace)\"", named.join(",")));
        Privilege { name, is_held, purpose, remedy }
    };
    PRIVILEGES.iter().map(&mut privilege).collect()
}

fn limits(procfs: &Procfs, is_privileged: bool, held: u64) -> Vec<Limit> {
    let may_lock = held & 1 << 14 != 0;
    let sysctl = |name, path: &str, meaning, wanted: Option<&str>| Limit {
        name,
        value: procfs.sysctl(path).map_or(LimitValue::Missing, LimitValue::Number),
        meaning,
        remedy: wanted.map(|wanted| format!("sudo sysctl {}={wanted}", path.replace('/', "."))),
    };
    let paranoid = procfs.paranoid();
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
    let value = |which| match getrlimit(which).current.map(i64::try_from) {
        Some(Ok(limit)) => LimitValue::Number(limit),
        _ => LimitValue::Unlimited,
    };
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

fn events(machine: &Machine, root: &Path) -> Vec<EventCapability> {
    let (procfs, tracefs) = (Procfs::below(root), Tracefs::new(root));
    let look = Look { machine, procfs: &procfs, tracefs: &tracefs };
    let mut events: Vec<_> = ["cpu-clock", "task-clock", "page-faults"]
        .into_iter()
        .flat_map(|name| look.selected(Some(name), name))
        .collect();
    // Any address will do: nothing touches the first page.
    events.extend(look.selected(Some("mem:ADDRESS"), "mem:0x1000/8:rw:u"));
    events.push(tracepoints(&tracefs));
    events.extend(look.selected(Some("cycles"), "cycles"));
    events.extend(look.memory());
    events
}

/// Sources that are looked at.
struct Look<'a> {
    machine: &'a Machine,
    procfs: &'a Procfs,
    tracefs: &'a Tracefs,
}

impl Look<'_> {
    /// The events that sample memory accesses here.
    fn memory(&self) -> Vec<EventCapability> {
        match event::memory_events(self.machine) {
            Ok(Ok(names)) => names.iter().flat_map(|name| self.selected(None, name)).collect(),
            Ok(Err(why)) => vec![missing("memory accesses", why)],
            Err(error) => vec![missing("memory accesses", error.to_string())],
        }
    }

    /// Tells whether each event that `selector` stands for can be had; called `name`, or what it is called.
    fn selected(&self, name: Option<&str>, selector: &str) -> Vec<EventCapability> {
        let plans = EventSelector::parse(selector)
            .map_err(Error::from)
            .and_then(|selector| selector.plan(None, self.machine, self.tracefs));
        match plans {
            Ok(plans) => plans
                .into_iter()
                .map(|mut plan| {
                    let name = name.map_or_else(|| plan.event.name.clone(), str::to_owned);
                    self.tried(name, &mut plan)
                })
                .collect(),
            Err(error) => vec![missing(name.unwrap_or(selector), error.to_string())],
        }
    }

    /// Opens the event on our own process, with the kernel's side if that is permitted.
    fn tried(&self, name: String, plan: &mut EventPlan) -> EventCapability {
        let wants_kernel = !plan.source.exclude_kernel;
        let opened = refusal::opens_on_ourselves(plan, self.procfs);
        if let Err(error) = opened {
            let said = error.to_string();
            // The line begins with the name as it is.
            let own = format!("{} ", plan.event.name);
            return missing(&name, said.strip_prefix(&own).unwrap_or(&said).to_owned());
        }
        let has_kernel = plan.event.includes_kernel;
        let mut detail = match (wants_kernel, has_kernel) {
            (false, _) => "user code".to_owned(),
            (true, true) => "user code and kernel".to_owned(),
            (true, false) => "user code only".to_owned(),
        };
        if plan.event.kind == EventKind::Memory {
            detail += match plan.event.skid {
                SkidModel::Exact => ", at the very instruction",
                SkidModel::AfterOne => ", one instruction behind",
                SkidModel::Unknown(_) => ", some instructions behind",
            };
        }
        let remedy = (wants_kernel && !has_kernel).then(|| PARANOID.to_owned());
        EventCapability { name, is_available: true, detail, remedy }
    }
}

fn missing(name: &str, detail: String) -> EventCapability {
    EventCapability { name: name.to_owned(), is_available: false, detail, remedy: None }
}

fn tracepoints(tracefs: &Tracefs) -> EventCapability {
    let name = "SYSTEM:TRACEPOINT".to_owned();
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
        assert_eq!(paranoid.value, LimitValue::Number(3));
        assert_eq!(limit(&capabilities, "yama.ptrace_scope").value, LimitValue::Missing);
        assert_eq!(paranoid.remedy.as_deref(), Some("sudo sysctl kernel.perf_event_paranoid=1"));
        assert!(limit(&capabilities, "perf_event_mlock_kb").remedy.is_some());
        assert!(capabilities.privileges.iter().all(|privilege| !privilege.is_held));
        let event = |name| capabilities.events.iter().find(|event| event.name == name).unwrap();
        let memory = event("ibs_op//");
        assert_eq!(memory.is_available, Path::new("/sys/bus/event_source/devices/ibs_op").exists());
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
            assert!(!event.detail.starts_with(&format!("{} ", event.name)), "{event:?}");
        }
    }
}
