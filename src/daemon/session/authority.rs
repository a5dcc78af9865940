//! Rights of a client to see and do things. Whatever is not said to be allowed here is not.

use super::{Owner, Session};
use crate::config::LiveOptions;
use crate::daemon::client::peer::{Peer, Rank, overflow_uid};
use crate::ownership::{OwnProcess, Standing};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::api::{ApiError, ErrorCode};
use rustix::process::{Resource, getrlimit};

/// Events that one who may see only his own processes may have: they are of the task, and for him the
/// collector opens them without the kernel's code and without physical addresses. Tracepoints and
/// breakpoints would show the kernel's and others' doings.
const PLAIN_EVENTS: [&str; 10] = [
    "mem",
    "loads",
    "stores",
    "cpu-clock",
    "task-clock",
    "page-faults",
    "faults",
    "minor-faults",
    "major-faults",
    "cpu-clock:u",
];

/// Processes in one session of such a user: each takes descriptors, and is looked at again four times
/// a second.
const MAX_PROCESSES: usize = 32;

/// Events of one session of such a user. Each takes 0.8 KB of the kernel for every thread that its processes
/// will have, whatever their number is when it begins.
const MAX_EVENTS: usize = 4;

/// One session of such a user takes at most this part of the files that the daemon may open.
const FILE_SHARE: u64 = 16;

impl Peer {
    /// Tells whether it may see `session`, and detach it: its own or, if it may see all, any.
    pub(crate) fn may_see(&self, session: &Session) -> bool {
        match self.rank {
            Rank::Privileged | Rank::Observer => true,
            // Nor what he began when he might see more, or under a group that he has not now.
            Rank::User => session.owner == Owner::requesting(self),
            Rank::Unknown => false,
        }
    }

    /// Lets it begin and end sessions, as far as these are its own or it sees all.
    ///
    /// # Errors
    /// Where it may only look; it has been logged.
    pub(crate) fn may_change(&self, wish: &str) -> Result<(), ApiError> {
        if self.rank == Rank::Observer {
            let why = "this token is for looking only: tcp.rights = \"all\" permits more";
            return Err(self.refuse(wish, why));
        }
        Ok(())
    }

    /// Lets a session begin, for one who does not see all within bounds that are put into
    /// `options`; gives the processes whose belonging has to be watched.
    ///
    /// # Errors
    /// Why not; it has been logged.
    pub(crate) fn admit(&self, options: &mut LiveOptions) -> Result<Vec<OwnProcess>, ApiError> {
        match self.rank {
            Rank::Privileged => Ok(Vec::new()),
            Rank::Observer => self.may_change("attach").map(|()| Vec::new()),
            Rank::User => self.confine(options),
            Rank::Unknown => Err(self.refuse("attach", self.why_unknown())),
        }
    }

    fn why_unknown(&self) -> String {
        let uid = self.uid;
        let why = match uid == overflow_uid() {
            true => format!(
                "user {uid} stands for every user that has no number on this machine, as those of containers"
            ),
            false => "this process is in a user namespace of its own".to_owned(),
        };
        format!("it is not plain which user of this machine you are: {why}")
    }

    fn confine(&self, options: &mut LiveOptions) -> Result<Vec<OwnProcess>, ApiError> {
        let refuse = |why: String| Err(self.refuse("attach", why));
        let TargetSpec::Pids(pids) = &options.target else {
            return refuse(
                "only root and the daemon's group may profile units, control groups, threads, \
                 names or the whole system; others name processes of their own"
                    .into(),
            );
        };
        if let Some(event) = options.events.iter().find(|event| !PLAIN_EVENTS.contains(&&***event))
        {
            return refuse(format!("only root and the daemon's group may sample {event}"));
        }
        if options.events.len() > MAX_EVENTS {
            return refuse(format!("one session of yours has at most {MAX_EVENTS} events"));
        }
        if options.ring_pages.is_some() {
            return refuse("only root and the daemon's group may size the rings".into());
        }
        if pids.len() > MAX_PROCESSES {
            return refuse(format!("one session of yours has at most {MAX_PROCESSES} processes"));
        }
        let mut processes = Vec::new();
        for &pid in pids {
            let why = match OwnProcess::open(pid, self.uid, self.gid) {
                Ok(process) => {
                    processes.push(process);
                    continue;
                }
                Err(Standing::Foreign(why)) => return refuse(why),
                Err(Standing::OfOthers(why)) => why,
                Err(Standing::Gone | Standing::Own) => format!("process {pid} is not there"),
            };
            // Which of the two it is, is for the log.
            self.log_refusal("attach", &why);
            let message =
                format!("process {pid} is not there, or does not belong to you with all its ids");
            return Err(ApiError { code: ErrorCode::NotPermitted, message });
        }
        let n_threads: u64 = processes.iter().map(OwnProcess::n_threads).sum();
        let n_allowed = max_threads(options.events.len());
        if n_threads > n_allowed {
            return refuse(format!(
                "the process has {n_threads} threads, and one session of yours may have {n_allowed}: \
                 each takes files on every CPU"
            ));
        }
        if processes.iter().any(OwnProcess::has_foreign_thread) {
            return refuse("the process has threads of other users".into());
        }
        options.confine(self.viewer());
        Ok(processes)
    }
}

/// Events that the best choice is at most on most machines: loads and stores.
const USUAL_EVENTS: usize = 2;

/// Number of threads that a user's session may have: each takes a file for each event, and one for what
/// becomes of it, on every CPU.
fn max_threads(n_events: usize) -> u64 {
    let n_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let n_cpus = std::thread::available_parallelism().map_or(1, |n_cpus| n_cpus.get() as u64);
    n_files / FILE_SHARE / n_cpus / (n_events.max(USUAL_EVENTS) as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::super::spec;
    use super::*;
    use dataspace_proto::api::SessionSpec;
    use rustix::process::{getegid, geteuid};

    fn peer(rank: Rank) -> Peer {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        Peer { uid, gid, pid: 1, groups: std::sync::Arc::default(), rank, address: None }
    }

    fn admit(rank: Rank, spec: &SessionSpec) -> Result<LiveOptions, ApiError> {
        let mut options = spec::options(spec).unwrap();
        peer(rank).admit(&mut options).map(|_| options)
    }

    fn on(pid: i32) -> SessionSpec {
        SessionSpec { pids: vec![pid], ..SessionSpec::default() }
    }

    #[test]
    fn who_does_not_see_all_names_processes_and_plain_events_only() {
        let own = std::process::id().cast_signed();
        let wide = [
            SessionSpec { all: true, ..SessionSpec::default() },
            SessionSpec { comm: vec!["a".into()], ..SessionSpec::default() },
            SessionSpec { unit: Some("a".into()), ..SessionSpec::default() },
            SessionSpec { cgroup: Some("/".into()), ..SessionSpec::default() },
            SessionSpec { tids: vec![own], ..SessionSpec::default() },
            SessionSpec { events: vec!["mem:0x1000/8:rw".into()], ..on(own) },
            SessionSpec { events: vec!["syscalls:sys_enter_read".into()], ..on(own) },
            SessionSpec { events: vec!["cpu-clock:k".into()], ..on(own) },
            SessionSpec { events: vec!["cpu-clock".into(), "r1cd".into()], ..on(own) },
            SessionSpec {
                events: PLAIN_EVENTS[3..8].iter().map(|one| (*one).to_owned()).collect(),
                ..on(own)
            },
            SessionSpec { ring_pages: Some(8), ..on(own) },
            SessionSpec { pids: (1..100).collect(), ..SessionSpec::default() },
        ];
        for spec in wide {
            admit(Rank::Privileged, &spec).unwrap();
            for rank in [Rank::User, Rank::Unknown, Rank::Observer] {
                let error = admit(rank, &spec).unwrap_err();
                assert_eq!(error.code, ErrorCode::NotPermitted, "{spec:?}");
            }
        }
        assert!(admit(Rank::Unknown, &on(own)).is_err());
        assert!(admit(Rank::Observer, &on(own)).is_err());
        // The first process is root's, or not there to see.
        if !geteuid().is_root() {
            assert!(admit(Rank::User, &on(1)).is_err());
        }
    }

    #[test]
    fn a_user_sees_what_he_began_as_who_he_is_now() {
        let user = peer(Rank::User);
        let owner = Owner::requesting(&user);
        let sees = |owner| user.may_see(&Session::idle(1, None, owner));
        assert!(sees(owner));
        assert!(!sees(Owner { uid: user.uid + 1, ..owner }));
        assert!(!sees(Owner { gid: user.gid + 1, ..owner }));
        assert!(!sees(Owner { rank: Rank::Privileged, ..owner }), "begun while he saw all");
        assert!(!sees(Owner::configuration()));
        assert!(!peer(Rank::Unknown).may_see(&Session::idle(1, None, owner)));
        for rank in [Rank::Privileged, Rank::Observer] {
            assert!(peer(rank).may_see(&Session::idle(1, None, owner)));
        }
        let changes = |rank| peer(rank).may_change("detach").is_ok();
        assert!(changes(Rank::Privileged) && changes(Rank::User) && !changes(Rank::Observer));
    }

    #[test]
    fn what_a_user_gets_is_bounded_and_read_with_his_permissions() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        if !status.contains("CapPrm:\t0000000000000000\n") {
            eprintln!("not run: a process with capabilities is no user's own");
            return;
        }
        let own = std::process::id().cast_signed();
        for (asked, got) in [(None, 0.01), (Some("off"), 0.01), (Some("0.5%"), 0.005)] {
            let spec = SessionSpec { max_overhead: asked.map(str::to_owned), ..on(own) };
            let options = admit(Rank::User, &spec).unwrap();
            assert_eq!((options.max_overhead, options.keeps_counts), (Some(got), false));
            assert_eq!(options.viewer.unwrap().uid, geteuid().as_raw());
        }
    }
}
