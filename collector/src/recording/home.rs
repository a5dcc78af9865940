//! Which mount namespace of a recording is the recorder's: its paths are those of the machine.

use crate::procfs::Procfs;
use dataspace_proto::record::Namespace;
use std::path::Path;

/// The first mount namespace of a machine: the fixed number that it has since Linux 6.18
/// (`MNT_NS_INIT_INO`), and the first ones that were given out before.
const INITIAL: [u64; 3] = [0xefff_fff8, 0xf000_0000, 0xf000_0001];

/// The first process of a machine, which a recording of all processes tells of.
const INIT_PID: i32 = 1;

/// What is known of it so far.
#[derive(Debug)]
pub(super) struct Home {
    of_init: Option<u64>,
    /// This program's own, if the recording is of this machine and day: numbers of other machines
    /// may be the same by chance, but then the files are compared by inode or build-id.
    own: Option<u64>,
}

impl Default for Home {
    fn default() -> Self {
        Self { of_init: None, own: Procfs::new(Path::new("/proc")).mount_namespace("self") }
    }
}

impl Home {
    /// `namespace` with 0 for the recorder's.
    pub(super) fn seen(&mut self, namespace: Namespace) -> Namespace {
        if namespace.pid == INIT_PID {
            self.of_init = Some(namespace.mount);
        }
        let is_home = match self.of_init {
            Some(home) => namespace.mount == home,
            None => INITIAL.contains(&namespace.mount) || Some(namespace.mount) == self.own,
        };
        if is_home { Namespace { mount: 0, ..namespace } } else { namespace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_at_home_and_else_who_has_the_first_number() {
        let mut home = Home { of_init: None, own: Some(0xf000_0123) };
        let mut mount = |pid, mount| home.seen(Namespace { time_ns: 1, pid, mount }).mount;
        assert_eq!(mount(7, 0xf000_0000), 0);
        assert_eq!(mount(7, 0xefff_fff8), 0);
        assert_eq!(mount(7, 0xf000_0123), 0, "ours");
        assert_eq!(mount(7, 0xf000_0999), 0xf000_0999);
        assert_eq!(mount(1, 0xf000_0999), 0);
        assert_eq!(mount(8, 0xf000_0999), 0);
        assert_eq!(mount(8, 0xf000_0000), 0xf000_0000, "the machine is told, and it is not that");
    }
}
