//! CPUs that come on line and go off line while a session runs.
//!
//! Events on a task stay through both, also those on a CPU that is off line (`perf_event_open()` in
//! Linux `kernel/events/core.c` asks only of those on whole CPUs); events on whole CPUs end with
//! theirs (`perf_event_exit_cpu()`), and a CPU that comes first has no events and no ring.

use crate::system::machine;
use std::path::{Path, PathBuf};

/// The CPUs on line, when they were last looked at.
#[derive(Debug)]
pub(crate) struct CpuWatch {
    root: PathBuf,
    online: Vec<i32>,
}

/// Changes of CPUs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuChange {
    pub(crate) came: Vec<i32>,
    pub(crate) went: Vec<i32>,
}

impl CpuWatch {
    /// Of the machine with this root directory, where events are open on `online`.
    pub(crate) fn new(root: &Path, online: Vec<i32>) -> Self {
        Self { root: root.to_path_buf(), online }
    }

    /// CPU `cpu` was found off line.
    pub(crate) fn is_off(&mut self, cpu: i32) {
        self.online.retain(|&one| one != cpu);
    }

    /// Looks again. One that went and came back in between is not told from one that stayed.
    pub(crate) fn check(&mut self) -> CpuChange {
        let Some(online) = machine::online_cpus(&self.root) else { return CpuChange::default() };
        let but = |these: &[i32], those: &[i32]| -> Vec<i32> {
            these.iter().copied().filter(|cpu| !those.contains(cpu)).collect()
        };
        let change =
            CpuChange { came: but(&online, &self.online), went: but(&self.online, &online) };
        self.online = online;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::machine::fixture::Fixture;

    #[test]
    fn cpus_that_come_and_go_are_told_once() {
        const ONLINE: &str = "sys/devices/system/cpu/online";
        let fixture = Fixture::new("skylake");
        fixture.set(ONLINE, "0-3");
        let mut watch = CpuWatch::new(fixture.root(), vec![0, 1, 2, 3]);
        assert_eq!(watch.check(), CpuChange::default());
        fixture.set(ONLINE, "0,2-5");
        assert_eq!(watch.check(), CpuChange { came: vec![4, 5], went: vec![1] });
        assert_eq!(watch.check(), CpuChange::default());
        fixture.set(ONLINE, "0-5");
        assert_eq!(watch.check(), CpuChange { came: vec![1], went: vec![] });
        // It was off line when events were opened on it, and is back before the next look.
        watch.is_off(3);
        assert_eq!(watch.check(), CpuChange { came: vec![3], went: vec![] });
        fixture.set(ONLINE, "nonsense");
        assert_eq!(watch.check(), CpuChange::default());
    }
}
