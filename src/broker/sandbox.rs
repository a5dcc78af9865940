//! Sandbox of a worker: it gives up, for good, its user where that is root, its capabilities, and all system calls but
//! those that its work takes.

use rustix::process::{Gid, Pid, Signal, Uid, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// First of the users that root's workers are, each by its process id: above all that systemd and containers give out
/// (systemd, "Users, Groups, UIDs and GIDs on systemd Systems"), and below the end of 31 bits.
const FIRST_USER: u32 = 0x7b00_0000;

/// The user that is nobody's, where others are not known here, as in most user namespaces.
const NOBODY: u32 = 65_534;

/// System calls that take what the worker has already, whatever their arguments.
const CALLS: [i64; 75] = [
    // Open descriptors.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_memfd_create,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    // Waiting.
    libc::SYS_clock_nanosleep,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Its own threads and signals.
    // Refused by the other filter, in a way that has the C library ask for clone.
    libc::SYS_clone3,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    // Facts.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
];

/// The same, under names that only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [i64; 8] = [
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getpgrp,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [i64; 0] = [];

/// Requests to terminals that change what is shown, not what is typed: `TIOCSTI` is none of them.
const OF_TERMINALS: [u64; 12] = [
    libc::TCGETS,
    libc::TCSETS,
    libc::TCSETSW,
    libc::TCSETSF,
    libc::TCGETS2,
    libc::TCSETS2,
    libc::TCSETSW2,
    libc::TCSETSF2,
    libc::TIOCGWINSZ,
    libc::TIOCGPGRP,
    libc::FIONREAD,
    libc::FIONBIO,
];

/// The type of all requests to events (`'$'`, Linux `include/uapi/linux/perf_event.h`), and the bits of it.
const OF_EVENTS: u64 = 0x2400;
const TYPE_BITS: u64 = 0xff00;

/// Commands on descriptors that change them and nothing else: none that has the kernel send signals (`F_SETOWN`,
/// `F_SETSIG`), or holds files of others (`F_SETLEASE`).
const OF_DESCRIPTORS: [i32; 7] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];

/// All that a thread shares with its process, as C libraries ask for it (pthread_create(3)).
const OF_THREADS: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM) as u64;

/// Facts that C libraries want to be told of a thread or a process that begins.
const TOLD: u64 = (libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID
    | libc::CLONE_CHILD_SETTID
    | libc::CLONE_DETACHED) as u64;

/// Gives everything up. To be called while there is one thread. A worker that `ends_with_broker` is asked to end where the
/// thread does that forked it.
///
/// # Errors
/// What could not be given up.
pub(super) fn enter(group: Gid, user: Uid, ends_with_broker: bool) -> io::Result<()> {
    let broker = getppid();
    if user.is_root()
        && let Err(error) = leave_root(group)
    {
        // In a user namespace that knows no other: without capabilities it is root of nothing.
        tracing::info!(%error, "the worker stays user 0: no other is known here");
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // Kernels before 4.3 have no such set.
    let _ = clear_ambient_capability_set();
    // A unit's filter may not let it set what it has not got.
    if capabilities(None)? != none {
        set_capabilities(None, none)?;
    }
    // After the user, which takes it back.
    if ends_with_broker {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if getppid() != broker {
            return Err(io::Error::other("the broker is gone"));
        }
    }
    set_no_new_privs(true)?;
    for filter in filters(getpid())? {
        apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Becomes a user whom nobody else is.
fn leave_root(group: Gid) -> io::Result<()> {
    let own = FIRST_USER + getpid().as_raw_nonzero().get().unsigned_abs();
    let mut last = Ok(());
    for number in [own, NOBODY] {
        // Where groups may not be changed, as in a user namespace, there are none to lose.
        let _ = set_thread_groups(&[]);
        let (gid, uid) = (Gid::from_raw(number), Uid::from_raw(number));
        last = set_thread_res_gid(gid, gid, gid).and_then(|()| set_thread_res_uid(uid, uid, uid));
        if last.is_ok() {
            break;
        }
        let _ = set_thread_res_gid(group, group, group);
    }
    Ok(last?)
}

/// The filters, in the order in which they are applied: the last one decides which calls are there at all.
fn filters(own: Pid) -> io::Result<[BpfProgram; 2]> {
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let compiled = |filter: Result<SeccompFilter, seccompiler::BackendError>| {
        let filter = filter.map_err(io::Error::other)?;
        BpfProgram::try_from(filter).map_err(io::Error::other)
    };
    // What it is asked to do is behind a pointer, which no filter sees.
    let without_clone3 = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        arch,
    );
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let allowed = SeccompFilter::new(rules(own)?, refused, SeccompAction::Allow, arch);
    Ok([compiled(without_clone3)?, compiled(allowed)?])
}

fn rules(own: Pid) -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    use SeccompCmpOp::{Eq, MaskedEq};
    type Condition = Result<SeccompCondition, seccompiler::BackendError>;
    let condition = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    let rule_of = |conditions: Vec<Condition>| {
        let conditions = conditions.into_iter().collect::<Result<_, _>>();
        conditions.and_then(SeccompRule::new).map_err(io::Error::other)
    };
    let both = |one: Condition, other: Condition| rule_of(vec![one, other]);
    let rule = |argument, operator, value| rule_of(vec![condition(argument, operator, value)]);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.into_iter().chain(OLD_CALLS).map(|call| (call, Vec::new())).collect();
    let terminals = OF_TERMINALS.into_iter().map(|request| rule(1, Eq, request));
    let events = rule(1, MaskedEq(TYPE_BITS), OF_EVENTS);
    rules.insert(libc::SYS_ioctl, terminals.chain([events]).collect::<io::Result<_>>()?);
    // No code but that of our program.
    let is_no_code = || rule(2, MaskedEq(libc::PROT_EXEC as u64), 0);
    rules.insert(libc::SYS_mmap, vec![is_no_code()?]);
    rules.insert(libc::SYS_mprotect, vec![is_no_code()?]);
    // Threads, and a child of its own: in no new namespace, and no child of its parent's.
    let begins = |what: u64| rule(0, MaskedEq(!TOLD & u64::from(u32::MAX)), what);
    rules.insert(libc::SYS_clone, vec![begins(OF_THREADS)?, begins(libc::SIGCHLD as u64)?]);
    let commands = OF_DESCRIPTORS.map(|command| rule(1, Eq, command as u64));
    let flags = both(
        condition(1, Eq, libc::F_SETFL as u64),
        condition(2, MaskedEq(libc::O_ASYNC as u64), 0),
    );
    rules.insert(libc::SYS_fcntl, commands.into_iter().chain([flags]).collect::<io::Result<_>>()?);
    // Of a datagram socket what the worker has could be sent to whoever has a name. (Its type has flags above four bits.)
    const STREAM: u64 = libc::SOCK_STREAM as u64;
    let pair = both(condition(0, Eq, libc::AF_UNIX as u64), condition(1, MaskedEq(0xf), STREAM));
    rules.insert(libc::SYS_socketpair, vec![pair?]);
    rules.insert(
        libc::SYS_sendto,
        vec![rule_of(vec![SeccompCondition::new(4, SeccompCmpArgLen::Qword, Eq, 0)])?],
    );
    let options = [libc::PR_SET_NAME, libc::PR_SET_PDEATHSIG, libc::PR_SET_DUMPABLE];
    let options = options.map(|option| rule(0, Eq, option as u64));
    rules.insert(libc::SYS_prctl, options.into_iter().collect::<io::Result<_>>()?);
    // Its own limits, and signals to its own threads.
    let own = own.as_raw_nonzero().get() as u64;
    rules.insert(libc::SYS_prlimit64, vec![rule(0, Eq, 0)?, rule(0, Eq, own)?]);
    rules.insert(libc::SYS_tgkill, vec![rule(0, Eq, own)?]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    #![allow(unused_imports, reason = "benches have this file without its tests")]

    use super::*;
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    /// Filters are a thread's own (seccomp(2)).
    #[test]
    fn nothing_is_sent_to_strangers_and_nobody_is_signalled() {
        let filtered = || {
            set_no_new_privs(true).unwrap();
            for filter in filters(getpid()).unwrap() {
                apply_filter(&filter).unwrap();
            }
            let refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            assert!(
                UnixDatagram::pair().is_err_and(refused),
                "it could send what it has to any name"
            );
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err_and(refused));
            assert!(std::fs::File::open("/dev/null").is_err_and(refused));
            let (one, _other) = UnixStream::pair().unwrap();
            let flags = fcntl_getfl(&one).unwrap();
            fcntl_setfl(&one, flags | OFlags::NONBLOCK).unwrap();
            let with_signals = OFlags::from_bits_retain(libc::O_ASYNC as u32);
            assert!(fcntl_setfl(&one, flags | with_signals).is_err());
            one.try_clone().unwrap();
            // The threads of a session.
            assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
        };
        std::thread::spawn(filtered).join().unwrap();
    }
}
