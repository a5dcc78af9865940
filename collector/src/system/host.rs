//! The machine that a recording is made on, below a root that tests can fake.

use crate::access;
use crate::system::cpu_list::{MAX_CPUS, cpu_list};
use crate::system::machine::KernelRelease;
use crate::system::procfs::{Procfs, value, whole};
use crate::system::sysfs;
use dataspace_proto::record::NO_NODE;
use std::path::Path;

/// Files looked at in the directory of nodes: a kernel has at most 1,024 (`CONFIG_NODES_SHIFT` of x86 is at most 10).
const MAX_NODE_FILES: usize = 2_048;

/// The machine as its kernel describes it. What it does not tell is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) os_release: String,
    /// As `uname -m` prints it.
    pub(crate) arch: &'static str,
    pub(crate) n_cpus_present: u32,
    pub(crate) n_cpus_online: u32,
    pub(crate) cpu_description: String,
    /// `vendor,family,model,stepping`.
    pub(crate) cpu_id: String,
    pub(crate) total_memory_kb: u64,
    /// Numbers and names of the PMUs.
    pub(crate) pmus: Vec<(u32, String)>,
    /// For each CPU.
    pub(crate) topology: Vec<CpuPlace>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) kernel: Option<Kernel>,
}

/// Place of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuPlace {
    pub(crate) core: u32,
    pub(crate) socket: u32,
    /// The CPUs in its socket, and those in its core, as lists.
    pub(crate) in_socket: String,
    pub(crate) in_core: String,
}

/// Place of the kernel's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) build_id: Option<Vec<u8>>,
    pub(crate) modules: Vec<Module>,
}

/// A module's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) n_bytes: u64,
}

impl Host {
    /// The machine whose `proc` and `sys` are below `root`.
    pub(crate) fn read(root: &Path) -> Self {
        let procfs = Procfs::below(root);
        let text = |path| procfs.text(path).unwrap_or_default();
        let (cpuinfo, memory) = (text("cpuinfo"), text("meminfo"));
        let of_cpu = |key| value(&cpuinfo, key).unwrap_or_default().to_owned();
        let n_cpus = |list| cpu_count(&root.join("sys/devices/system/cpu").join(list));
        let n_cpus_present = n_cpus("present");
        let memory = value(&memory, "MemTotal").and_then(|text| text.split(' ').next());
        Self {
            name: text("sys/kernel/hostname").trim().to_owned(),
            os_release: KernelRelease::read(&procfs).text,
            arch: std::env::consts::ARCH,
            n_cpus_present,
            n_cpus_online: n_cpus("online"),
            cpu_description: of_cpu("model name"),
            cpu_id: ["vendor_id", "cpu family", "model", "stepping"].map(of_cpu).join(","),
            total_memory_kb: memory.and_then(|kb| kb.parse().ok()).unwrap_or(0),
            pmus: pmus(&root.join(sysfs::PMUS)),
            topology: (0..n_cpus_present).map_while(|cpu| CpuPlace::read(root, cpu)).collect(),
            nodes: Node::all(root),
            kernel: Kernel::read(root, &procfs),
        }
    }
}

/// A NUMA node (Linux `Documentation/ABI/stable/sysfs-devices-node`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) number: u16,
    pub(crate) total_kb: u64,
    pub(crate) free_kb: u64,
    /// Its CPUs, as a list.
    pub(crate) cpus: String,
}

impl Node {
    /// The nodes of the machine below `root`, in order; none where its kernel knows of none.
    pub(crate) fn all(root: &Path) -> Vec<Self> {
        let directory = root.join("sys/devices/system/node");
        let names = sysfs::names(&directory, MAX_NODE_FILES);
        let numbers = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok());
        let mut nodes: Vec<Self> = numbers
            .map(|number: u16| {
                let of_node = directory.join(format!("node{number}"));
                let text = |name| sysfs::text(&of_node.join(name)).unwrap_or_default();
                let memory = text("meminfo");
                // `Node 0 MemTotal:   1000 kB`
                let kb = |key: &str| {
                    let mut words = memory.split_ascii_whitespace().skip_while(|it| *it != key);
                    words.nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
                };
                let (total_kb, free_kb) = (kb("MemTotal:"), kb("MemFree:"));
                Self { number, total_kb, free_kb, cpus: text("cpulist").trim().to_owned() }
            })
            .collect();
        nodes.sort_unstable_by_key(|node| node.number);
        nodes
    }
}

/// The node of each CPU, of nodes and their lists of CPUs.
pub(crate) fn node_by_cpu<'a>(nodes: impl Iterator<Item = (u16, &'a str)>) -> Box<[u16]> {
    let (mut by_cpu, mut n_listed) = (Vec::new(), 0);
    for (number, cpus) in nodes {
        let cpus = cpu_list(cpus).unwrap_or_default();
        // A CPU is on one node: more than there can be are a recording's nonsense.
        n_listed += cpus.len();
        if n_listed > MAX_CPUS as usize {
            break;
        }
        for cpu in cpus {
            let cpu = cpu as usize;
            if by_cpu.len() <= cpu {
                by_cpu.resize(cpu + 1, NO_NODE);
            }
            by_cpu[cpu] = number;
        }
    }
    by_cpu.into()
}

impl CpuPlace {
    fn read(root: &Path, cpu: u32) -> Option<Self> {
        let topology = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        let list = |name| sysfs::text(&topology.join(name)).unwrap_or_default().trim().to_owned();
        Some(Self {
            core: sysfs::number(&topology.join("core_id"))?,
            socket: sysfs::number(&topology.join("physical_package_id"))?,
            in_socket: list("core_siblings_list"),
            in_core: list("thread_siblings_list"),
        })
    }
}

impl Kernel {
    /// `None` where addresses are kept from us (`kernel.kptr_restrict`).
    fn read(root: &Path, procfs: &Procfs) -> Option<Self> {
        let symbols = procfs.bytes("kallsyms").unwrap_or_default();
        let (mut start, mut end) = (0, 0);
        for line in symbols.split(|&byte| byte == b'\n') {
            let mut words = line.split(|&byte| byte == b' ').filter_map(|w| str::from_utf8(w).ok());
            let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let place = match name {
                "_text" => &mut start,
                "_etext" => &mut end,
                _ => continue,
            };
            *place = u64::from_str_radix(address, 16).unwrap_or(0);
            if start != 0 && end != 0 {
                break;
            }
        }
        let notes = access::file(&root.join("sys/kernel/notes")).and_then(whole);
        let modules = procfs.text("modules").unwrap_or_default();
        (start != 0 && start < end).then(|| Self {
            start,
            end,
            build_id: notes.ok().and_then(|notes| gnu_build_id(&notes)),
            modules: modules.lines().filter_map(module).collect(),
        })
    }
}

/// Numbers and names of the PMUs, in order.
fn pmus(devices: &Path) -> Vec<(u32, String)> {
    let names = sysfs::names(devices, sysfs::MAX_PMUS).into_iter();
    let kind = |name: &String| sysfs::number(&devices.join(name).join("type"));
    let mut pmus: Vec<_> = names.filter_map(|name| Some((kind(&name)?, name))).collect();
    pmus.sort_unstable();
    pmus
}

/// Number of CPUs up to the last of a list such as `0-3,5`.
fn cpu_count(list: &Path) -> u32 {
    let cpus = sysfs::text(list).ok().and_then(|list| cpu_list(list.trim())).unwrap_or_default();
    cpus.last().map_or(0, |last| last.unsigned_abs() + 1)
}

/// `name size uses users state 0xaddress`.
fn module(line: &str) -> Option<Module> {
    let mut words = line.split(' ');
    let name = words.next()?.to_owned();
    let n_bytes = words.next()?.parse().ok()?;
    let start = u64::from_str_radix(words.nth(3)?.strip_prefix("0x")?, 16).ok()?;
    (start != 0).then_some(Module { name, start, n_bytes })
}

/// The description of the note with owner "GNU" and type 3 (`NT_GNU_BUILD_ID`).
pub(crate) fn gnu_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    use crate::record::decode::{Cursor, NATIVE};
    let mut cursor = Cursor::new(notes, NATIVE);
    loop {
        let (n_name, n_description, kind) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let padded = |n_bytes: u32| u64::from(n_bytes).next_multiple_of(4);
        let name = cursor.take(padded(n_name))?;
        let description = cursor.take(padded(n_description))?;
        if kind == 3 && name == b"GNU\0" {
            return description.get(..usize::try_from(n_description).ok()?).map(<[u8]>::to_vec);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &[u8])]) -> Host {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Host::read(dir.path())
    }

    #[test]
    fn a_machine_is_described_by_its_files() {
        let note = [&4u32.to_ne_bytes()[..], &[2, 0, 0, 0, 3, 0, 0, 0], b"GNU\0\xab\xcd\0\0"];
        let host = machine(&[
            ("proc/sys/kernel/hostname", b"box\n"),
            ("proc/sys/kernel/osrelease", b"6.1.0\n"),
            (
                "proc/cpuinfo",
                b"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
                  model name\t: Xeon: fast\nstepping\t: 8\n",
            ),
            ("proc/meminfo", b"MemTotal:       1000 kB\n"),
            ("proc/kallsyms", b"ffffffff81000000 T _text\nffffffff82000000 T _etext\n"),
            ("proc/modules", b"ext4 4096 1 - Live 0xffffffffc0000000\nhidden 1 1 - Live 0x0\n"),
            ("sys/kernel/notes", &note.concat()),
            ("sys/devices/system/cpu/present", b"0-2,4\n"),
            ("sys/devices/system/cpu/online", b"0\n"),
            ("sys/bus/event_source/devices/cpu/type", b"4\n"),
            ("sys/bus/event_source/devices/broken/type", b"x\n"),
            ("sys/devices/system/cpu/cpu0/topology/core_id", b"7\n"),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", b"1\n"),
            ("sys/devices/system/cpu/cpu0/topology/core_siblings_list", b"0-2\n"),
            ("sys/devices/system/node/node1/cpulist", b"2,4\n"),
            (
                "sys/devices/system/node/node1/meminfo",
                b"Node 1 MemTotal: 77 kB\nNode 1 MemFree: 5 kB\n",
            ),
            ("sys/devices/system/node/node0/cpulist", b"0-1\n"),
            ("sys/devices/system/node/node10/cpulist", b"\n"),
            ("sys/devices/system/node/nodes", b"\n"),
        ]);
        assert_eq!((&*host.name, &*host.os_release), ("box", "6.1.0"));
        assert_eq!((&*host.cpu_id, &*host.cpu_description), ("GenuineIntel,6,143,8", "Xeon: fast"));
        assert_eq!((host.n_cpus_present, host.n_cpus_online, host.total_memory_kb), (5, 1, 1000));
        assert_eq!(host.pmus, [(4, "cpu".to_owned())]);
        let kernel = host.kernel.unwrap();
        assert_eq!(
            (kernel.start, kernel.build_id),
            (0xffff_ffff_8100_0000, Some(vec![0xab, 0xcd]))
        );
        assert_eq!(kernel.modules.len(), 1, "an address that is kept from us is none");
        assert_eq!((host.topology.len(), host.topology[0].core), (1, 7));
        let numbers: Vec<u16> = host.nodes.iter().map(|node| node.number).collect();
        assert_eq!(numbers, [0, 1, 10]);
        assert_eq!((host.nodes[1].total_kb, host.nodes[1].free_kb), (77, 5));
        let lists = host.nodes.iter().map(|node| (node.number, &*node.cpus));
        assert_eq!(*node_by_cpu(lists), [0, 0, 1, NO_NODE, 1]);
    }

    #[test]
    fn a_machine_that_tells_nothing_is_no_error() {
        let host = machine(&[("proc/kallsyms", b"0 T _text\n0 T _etext\n")]);
        assert_eq!((host.kernel, host.n_cpus_present, &*host.cpu_id), (None, 0, ",,,"));
    }
}
