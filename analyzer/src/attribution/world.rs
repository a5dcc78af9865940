//! The knowledge of attribution: processes, workers' answers, names, votes, threads' storage.

use crate::attribution::code_place::NotLocated;
use crate::attribution::name_table::NameTable;
use crate::attribution::recent_site::{CodePlace, RecentSites};
use crate::attribution::resumption;
use crate::attribution::search::Search;
use crate::attribution::site_table::{CallSiteTable, DataTable, KnownAnswers, SiteTable};
use crate::attribution::verdict::{Attribution, Verdict, Wait};
use crate::attribution::vote::Votes;
use crate::bytes::file::LoadObjectIdx;
use crate::index::call_site::{CallForm, CallSite};
use crate::index::entered::WaysIn;
use crate::index::named_code::KernelCode;
use crate::index::site::{Site, SiteQuery};
use crate::process::made_code::{MadeCode, named_code};
use crate::process::table::ProcessTable;
use crate::process::thread_storage::ThreadStorage;
use crate::x86_64::backtrack::Skid;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::{EventKind, SkidModel};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{Comm, CpuMode, Exit, Fork, Mmap, Sample};
use dataspace_proto::register::{Register, RegisterAbi};
use dataspace_proto::sample_line::{AddressSource, Scope};
use std::sync::Arc;

/// The paths that may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// Both, joined.
    #[default]
    Both,
    /// Instruction and debug information only.
    Type,
    /// The data address only.
    Address,
}

/// The meaning of a sample's event, as far as attribution depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// Kind of the event.
    pub(crate) kind: EventKind,
    /// The trigger's place, relative to the reported IP.
    pub(crate) skid: SkidModel,
    /// The user chose the skid model, for all events.
    pub(crate) is_forced: bool,
}

/// Everything that attribution reads, and learns from samples on the way.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) paths: Paths,
    pub(crate) processes: ProcessTable,
    pub(crate) sites: SiteTable,
    pub(crate) recent_sites: RecentSites,
    pub(crate) data: DataTable,
    pub(crate) calls: CallSiteTable,
    /// By the address that they return to.
    pub(crate) call_forms: KnownAnswers<CallForm>,
    /// By where the function begins.
    pub(crate) ways_in: KnownAnswers<Option<WaysIn>>,
    pub(crate) names: NameTable,
    pub(crate) votes: Votes,
    /// The threads' own storage, as far as it was learned.
    pub(crate) thread_storage: ThreadStorage,
    pub(crate) kernel_code: KernelCode,
    pub(crate) made_code: MadeCode,
    /// Taken while a sample is weighed.
    pub(crate) search: Option<Box<Search>>,
}

impl World {
    /// A world in which nothing is known.
    pub(crate) fn new(paths: Paths) -> Self {
        Self { paths, ..Self::default() }
    }

    pub(crate) fn mmap(&mut self, mmap: &Mmap) {
        let (start, end) = self.processes.newly_mapped(mmap);
        self.votes.forget_range(mmap.pid, start.0, end.0);
        self.processes.mmap(mmap);
        self.made_code.mmap(mmap, &self.processes);
    }

    pub(crate) fn comm(&mut self, comm: &Comm) {
        if comm.is_exec {
            self.thread_storage.forget_process(comm.pid);
            self.made_code.forget(comm.pid);
            self.votes.forget_process(comm.pid);
        }
        self.processes.comm(comm);
    }

    pub(crate) fn fork(&mut self, fork: &Fork) {
        self.thread_storage.forget_thread(fork.pid, fork.tid);
        if fork.pid != fork.parent_pid {
            self.votes.forget_process(fork.pid);
        }
        self.processes.fork(fork);
        self.made_code.fork(fork);
    }

    pub(crate) fn exit(&mut self, exit: &Exit) {
        self.thread_storage.forget_thread(exit.pid, exit.tid);
        if exit.pid == exit.tid {
            self.votes.forget_process(exit.pid);
        }
        self.processes.exit(exit);
    }

    pub(crate) fn add_site(&mut self, object: LoadObjectIdx, query: SiteQuery, site: Site) {
        if self.sites.is_full() {
            self.sites.forget();
            self.recent_sites.forget();
            self.forget_names();
        }
        self.sites.insert(object, query, site);
    }

    pub(crate) fn add_call(&mut self, object: LoadObjectIdx, after: Svma, call: Arc<CallSite>) {
        if self.calls.is_full() {
            self.calls.forget();
            self.forget_names();
        }
        self.calls.insert(object, after, call);
    }

    /// Starts anew: names are made again as samples come. Not to be called while an index is held.
    pub(crate) fn forget_names(&mut self) {
        self.names.forget();
        self.sites.forget_names();
    }

    /// Gives up all that workers answered and what was made of it, and the room it took.
    pub(crate) fn evict_answers(&mut self) {
        self.sites.evict();
        self.recent_sites.forget();
        self.calls = CallSiteTable::default();
        self.call_forms = KnownAnswers::default();
        self.ways_in = KnownAnswers::default();
        self.data = DataTable::default();
        self.names.evict();
        self.votes = Votes::default();
    }

    /// The function, unit and load object that a sample's code is in, where they are known.
    pub(crate) fn scope(&self, sample: &Sample, attribution: &Attribution) -> Option<&Arc<Scope>> {
        match attribution.site {
            Some(site) => Some(self.sites.scope(site)),
            None => named_code(&self.kernel_code, &self.made_code, sample),
        }
    }

    /// Attributes a sample that tells of a fetch of code at `ip`: what that code touches is not what waited.
    fn fetch(
        &mut self,
        sample: &Sample,
        ip: Avma,
        is_exact: bool,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        answer.set_addr(sample.addr.map(|addr| (addr, AddressSource::Sampled)));
        answer.verdict = Verdict::NotMemory;
        match self.site(CodePlace { pid: sample.pid, ip, skid: Skid::Exact }) {
            Ok(code) => {
                // Where the hardware may have gone on, what waited is not known to the instruction.
                answer.trigger = is_exact.then_some(ip);
                answer.site = Some(code.site);
                Ok(())
            }
            Err(NotLocated::Needs(needs)) => Err(needs.into()),
            Err(NotLocated::Unknown(Reason::JitCode)) => self
                .made_code
                .needs(sample, ip, &mut self.processes)
                .map_or(Ok(()), |needs| Err(needs.into())),
            Err(NotLocated::Unknown(_)) => Ok(()),
        }
    }

    /// Attributes one sample, or says what has to come first. One that `is_last` waits for no others any more.
    ///
    /// `answer` comes as one of which nothing is known, and is not to be used after an error. It is written where it
    /// lies: to copy what was just written in pieces holds a processor up.
    pub(crate) fn attribute(
        &mut self,
        sample: &Sample,
        meaning: &Meaning,
        is_last: bool,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let Meaning { kind, skid: model, is_forced } = *meaning;
        if sample.mode == CpuMode::Guest {
            // Its addresses are of its own memory.
            answer.verdict = Verdict::Unknown(Reason::Guest);
            return Ok(());
        }
        let is_kernel = !sample.is_user();
        if kind == EventKind::Fetch && is_kernel {
            answer.verdict = Verdict::NotMemory;
            return Ok(());
        }
        let (ip, registers) = match is_kernel {
            true => (sample.user_registers.get(Register::Rip).map(Avma), &sample.user_registers),
            false => (Some(sample.ip), &sample.registers),
        };
        let Some(ip) = ip else {
            answer.verdict = Verdict::Unknown(Reason::Kernel);
            return self.by_sampled_address(sample, answer);
        };
        if registers.abi == RegisterAbi::Bits32 {
            answer.verdict = Verdict::Unknown(Reason::UnsupportedMachine);
            return Ok(());
        }
        // A fault on the instruction's own address is a fetch of code, not an access of its operand.
        if kind == EventKind::Fetch || (kind == EventKind::PageFault && sample.addr == Some(ip)) {
            let is_exact = kind == EventKind::PageFault || model == SkidModel::Exact;
            return self.fetch(sample, ip, is_exact, answer);
        }
        let skid = if is_kernel {
            match resumption::is_resumed(registers) {
                // An interrupt or a system call: the kernel's own time.
                Some(false) => {
                    answer.verdict = Verdict::Unknown(Reason::Kernel);
                    return self.by_sampled_address(sample, answer);
                }
                Some(true) => Skid::Exact,
                None => Skid::KernelEntry,
            }
        } else {
            resumption::skid(model, sample, registers, is_forced, kind)
        };
        match self.site(CodePlace { pid: sample.pid, ip, skid }) {
            Ok(code) => self.attribute_at(code, (sample, kind, is_last), registers, answer),
            Err(NotLocated::Needs(needs)) => Err(needs.into()),
            Err(NotLocated::Unknown(reason)) => {
                if reason == Reason::JitCode
                    && let Some(needs) = self.made_code.needs(sample, ip, &mut self.processes)
                {
                    return Err(needs.into());
                }
                // The kernel at work on an address space that is not set up yet, as in exec.
                let reason = if is_kernel { Reason::Kernel } else { reason };
                answer.verdict = Verdict::Unknown(reason);
                self.by_sampled_address(sample, answer)
            }
        }
    }
}
