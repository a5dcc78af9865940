//! The tables after a recording's data: the machine, the events, the build-ids, the clock.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`, and the readers in
//! `tools/perf/util/header.c` for what that does not say.

use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::feature::{
    ARCH, CLOCK_DATA, CLOCKID, CMDLINE, CPU_TOPOLOGY, CPUDESC, CPUID, EVENT_DESC, HOSTNAME, NRCPUS,
    NUMA_TOPOLOGY, OSRELEASE, PMU_MAPPINGS, TOTAL_MEM, VERSION,
};
use crate::system::host::Host;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// One table.
pub(super) struct Feature {
    pub(super) id: u32,
    pub(super) section: Vec<u8>,
}

impl Feature {
    pub(super) fn new(id: u32, fill: impl FnOnce(&mut Bytes)) -> Self {
        let mut bytes = Bytes::default();
        fill(&mut bytes);
        Self { id, section: bytes.0 }
    }

    /// Words for a table that is longer than a record of a stream can be. `perf` leaves it out
    /// as well (`perf_event__synthesize_features()` in Linux `tools/perf/util/header.c`): such a
    /// record has no second part.
    pub(super) fn is_left_out(&self) -> String {
        let what = match self.id {
            CMDLINE => "how this program was called",
            EVENT_DESC => "the table of events (their names and attributes are there one by one)",
            CPU_TOPOLOGY | NUMA_TOPOLOGY => "where the CPUs are",
            PMU_MAPPINGS => "the numbers of the PMUs",
            _ => "a description of this machine",
        };
        let n_bytes = self.section.len();
        format!(
            "the stream goes without {what}: it takes {n_bytes} bytes, and a record of a stream \
             holds 65,519; -o FILE has room for it"
        )
    }

    fn text(id: u32, text: &str) -> Self {
        Self::new(id, |bytes| bytes.string(text.as_bytes()))
    }
}

/// The clock of the samples, and what it showed at one moment of the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// `CLOCK_*`.
    pub(super) id: i32,
    pub(super) resolution_ns: u64,
    /// Since 1970.
    pub(super) wall_ns: u64,
    /// The same moment.
    pub(super) own_ns: u64,
}

/// Features known when a recording begins, in the order of the ids.
pub(super) fn of_session(
    host: &Host,
    program: &str,
    command_line: &[OsString],
    clock: Clock,
) -> Vec<Feature> {
    vec![
        Feature::text(HOSTNAME, &host.name),
        Feature::text(OSRELEASE, &host.os_release),
        Feature::text(VERSION, program),
        Feature::text(ARCH, host.arch),
        Feature::new(NRCPUS, |bytes| {
            bytes.u32(host.n_cpus_present);
            bytes.u32(host.n_cpus_online);
        }),
        Feature::text(CPUDESC, &host.cpu_description),
        Feature::text(CPUID, &host.cpu_id),
        Feature::new(TOTAL_MEM, |bytes| bytes.u64(host.total_memory_kb)),
        Feature::new(CMDLINE, |bytes| {
            bytes.u32(command_line.len() as u32);
            for argument in command_line {
                bytes.string(argument.as_bytes());
            }
        }),
        Feature::new(CPU_TOPOLOGY, |bytes| topology(bytes, host)),
        Feature::new(NUMA_TOPOLOGY, |bytes| {
            bytes.u32(host.nodes.len() as u32);
            for node in &host.nodes {
                bytes.u32(node.number.into());
                bytes.u64(node.total_kb);
                bytes.u64(node.free_kb);
                bytes.string(node.cpus.as_bytes());
            }
        }),
        Feature::new(PMU_MAPPINGS, |bytes| {
            bytes.u32(host.pmus.len() as u32);
            for (kind, name) in &host.pmus {
                bytes.u32(*kind);
                bytes.string(name.as_bytes());
            }
        }),
        Feature::new(CLOCKID, |bytes| bytes.u64(clock.resolution_ns)),
        Feature::new(CLOCK_DATA, |bytes| {
            bytes.u32(1); // version
            bytes.i32(clock.id);
            bytes.u64(clock.wall_ns);
            bytes.u64(clock.own_ns);
        }),
    ]
}

fn topology(bytes: &mut Bytes, host: &Host) {
    type List = fn(&crate::system::host::CpuPlace) -> &str;
    let lists: [List; 2] = [|place| &place.in_socket, |place| &place.in_core];
    for list in lists {
        let lists: BTreeSet<&str> = host.topology.iter().map(list).collect();
        bytes.u32(lists.len() as u32);
        for list in lists {
            bytes.string(list.as_bytes());
        }
    }
    for place in &host.topology {
        bytes.u32(place.core);
        bytes.u32(place.socket);
    }
}
