//! The status of a process or a thread.

/// Number of `CAP_SYS_ADMIN`.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// Number of `CAP_PERFMON`.
pub(crate) const CAP_PERFMON: u32 = 38;

/// Numbers of `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`.
const READS_ALL: [u32; 2] = [1, 2];

/// A process's users or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Of whom it is.
    pub real: u32,
    /// The one whose rights it has.
    pub effective: u32,
    /// One whose rights it may take again.
    pub saved: u32,
    /// The owner of the files that it makes.
    pub file_system: u32,
}

/// Rights of a thread to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user by whom it opens files.
    pub uid: u32,
    /// The group by which it does.
    pub gid: u32,
    /// Its other groups.
    pub groups: Vec<u32>,
    /// True if no mode keeps it from reading a file: it is root's, with `CAP_DAC_OVERRIDE` or `CAP_DAC_READ_SEARCH`.
    pub reads_all: bool,
}

impl Credentials {
    /// Reads the text of `/proc/TID/status`; `None` where it does not tell.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let status = Status::parse(bytes);
        let (uid, gid) = (status.users?.file_system, status.groups?.file_system);
        let lines = bytes.split(|&byte| byte == b'\n');
        let mut groups =
            lines.filter_map(|line| str::from_utf8(line.strip_prefix(b"Groups:")?).ok());
        let groups = groups.next()?.split_whitespace().map(|word| word.parse().ok());
        // In a user namespace of its own root is another user, and its capabilities are for there.
        let reads_all = uid == 0 && READS_ALL.iter().any(|&one| status.holds(one));
        Some(Self { uid, gid, groups: groups.collect::<Option<_>>()?, reads_all })
    }
}

/// The part of `/proc/TID/status` that we ask for. What it does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The process of the thread.
    pub pid: Option<i32>,
    /// The number of that process in the innermost namespace that it is in, by which it knows itself.
    pub innermost_pid: Option<i32>,
    /// Its users.
    pub users: Option<Ids>,
    /// Its groups.
    pub groups: Option<Ids>,
    /// The number of the process's threads.
    pub n_threads: Option<u64>,
    /// The capabilities that it may take, a bit each.
    pub permitted_capabilities: Option<u64>,
    /// Its effective capabilities, a bit each.
    pub effective_capabilities: Option<u64>,
    /// True if a filter of system calls is in force: `Seccomp: 2` (Linux `fs/proc/array.c`).
    pub is_filtered: bool,
}

impl Status {
    /// Tells whether a capability is effective.
    #[must_use]
    pub fn holds(&self, capability: u32) -> bool {
        self.effective_capabilities.is_some_and(|held| held & 1 << capability != 0)
    }

    /// Tells whether `perf_event_paranoid` does not apply to it (`perfmon_capable()` in Linux
    /// `include/linux/capability.h`).
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.holds(CAP_PERFMON) || self.holds(CAP_SYS_ADMIN)
    }

    /// Reads the text, in which a process's name has its blanks and ends of line escaped.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut status = Self::default();
        for line in bytes.split(|&byte| byte == b'\n').filter_map(|line| str::from_utf8(line).ok())
        {
            let Some((key, value)) = line.split_once(':') else { continue };
            let mut words = value.split_whitespace();
            match key {
                "Tgid" => status.pid = number(words.next()),
                "NStgid" => status.innermost_pid = number(words.last()),
                "Uid" => status.users = ids(words),
                "Gid" => status.groups = ids(words),
                "Threads" => status.n_threads = number(words.next()),
                "CapPrm" => status.permitted_capabilities = capabilities(words.next()),
                "CapEff" => status.effective_capabilities = capabilities(words.next()),
                "Seccomp" => status.is_filtered = words.next() == Some("2"),
                _ => {}
            }
        }
        status
    }
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

fn capabilities(word: Option<&str>) -> Option<u64> {
    u64::from_str_radix(word?, 16).ok()
}

fn ids<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Ids> {
    let mut next = || number(words.next());
    Some(Ids { real: next()?, effective: next()?, saved: next()?, file_system: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_status_is_read_line_by_line() {
        let status = Status::parse(
            b"Name:\tUid:\\n\xff\nTgid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNStgid:\t7\t1\n\
              Threads:\t9\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\nSeccomp:\t2\n",
        );
        let users = Ids { real: 1, effective: 2, saved: 3, file_system: 4 };
        assert_eq!(
            (status.pid, status.innermost_pid, status.users),
            (Some(7), Some(1), Some(users))
        );
        assert_eq!(status.groups.map(|groups| groups.effective), Some(6));
        assert_eq!((status.n_threads, status.permitted_capabilities), (Some(9), Some(0)));
        assert!(status.holds(CAP_PERFMON) && !status.holds(CAP_SYS_ADMIN) && status.is_filtered);
        let credentials = |text: &str| Credentials::parse(text.as_bytes());
        let text = "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nCapEff:\t2\n";
        let (uid, gid, groups) = (4, 8, vec![9, 10]);
        assert_eq!(
            credentials(text),
            Some(Credentials { uid, gid, groups: groups.clone(), reads_all: false })
        );
        let root = credentials(&text.replace("\t4\n", "\t0\n"));
        assert_eq!(root, Some(Credentials { uid: 0, gid, groups, reads_all: true }));
        assert_eq!(credentials(&text.replace("9 10", "9 x")), None);
        assert_eq!(credentials(&text.replace("Groups", "Grouped")), None);
        for damaged in ["", "Uid:\t1\tx\t3\t4\n", "Uid:\t1\t2\t3\n"] {
            assert_eq!(Status::parse(damaged.as_bytes()), Status::default(), "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Status::parse(&line);
        }
    }
}
