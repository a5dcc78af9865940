//! Opens a planned event as well as the kernel allows, and remembers what it had to do without.
//!
//! What is given up comes in this order, which is perf's (`evsel__open_cpu()` in Linux
//! `tools/perf/util/evsel.c`): precision first, down to what the event is worth anything with, and
//! back up before anything else is tried; then fields that older kernels do not know, newest first;
//! where permission is what is missing, the physical address, then the kernel's side. The first open
//! that succeeds settles a plan: all later ones are done the same way, so that all samples of an event
//! have one layout.

use crate::access::{self, EventPlace};
use crate::event::EventPlan;
use crate::event::attr::{
    self, AccessFields, Binding, Counter, EventSource, KernelFeatures, Levels, Source,
    perf_event_attr,
};
use crate::event::meaning::counter_skid;
use dataspace_proto::event::{EventKind, SkidModel};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// `config` of `mem-loads-aux`, for events whose PMU does not name it (Linux
/// `arch/x86/events/intel/core.c`).
const MEM_LOADS_AUX: u64 = 0x8203;

/// An open event.
#[derive(Debug)]
pub(crate) struct Opened<F> {
    pub(crate) event: F,
    /// The event that leads its group, to be kept open as long.
    pub(crate) leader: Option<F>,
}

/// Opens `plan` in `place`; the first time, with less where the kernel refuses all of it.
///
/// # Errors
/// What the kernel said last. The plan is as it was then.
pub(crate) fn open_planned(
    plan: &mut EventPlan,
    binding: Binding,
    features: KernelFeatures,
    place: EventPlace<'_>,
) -> Result<Opened<OwnedFd>, Errno> {
    open_with(plan, binding, features, |attr, leader| {
        let attrs: Vec<_> = leader.into_iter().chain([attr]).collect();
        let mut events = access::events(&attrs, place)?;
        let event = events.pop().ok_or(Errno::PROTO)?;
        Ok(Opened { event, leader: events.pop() })
    })
}

/// As [`open_planned`], with `open` for the system calls: of an event, and before it of its leader.
pub(crate) fn open_with<F>(
    plan: &mut EventPlan,
    binding: Binding,
    features: KernelFeatures,
    mut open: impl FnMut(&perf_event_attr, Option<&perf_event_attr>) -> Result<Opened<F>, Errno>,
) -> Result<Opened<F>, Errno> {
    let mut once = |source: &EventSource| {
        let leader = attr::leader(source, binding, features);
        open(&attr::sampled(source, binding, features), leader.as_ref())
    };
    if plan.is_settled {
        return once(&plan.source);
    }
    let mut attempt = Attempt::new(plan);
    loop {
        match once(&attempt.source) {
            Ok(opened) => {
                attempt.settle(plan);
                return Ok(opened);
            }
            Err(errno) if attempt.asks_for_less(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// The next attempt.
struct Attempt {
    source: EventSource,
    highest_precise_ip: u8,
    lowest_precise_ip: u8,
    is_tracepoint: bool,
}

impl Attempt {
    fn new(plan: &EventPlan) -> Self {
        let source = plan.source;
        let highest_precise_ip = match source.source {
            Source::Counter(counter) => counter.precise_ip,
            _ => 0,
        };
        Self {
            source,
            highest_precise_ip,
            lowest_precise_ip: plan.lowest_precise_ip,
            is_tracepoint: matches!(source.source, Source::Tracepoint(_)),
        }
    }

    /// Gives up what `errno` may be about. Whether there was anything left to.
    fn asks_for_less(&mut self, errno: Errno) -> bool {
        match errno {
            // x86_pmu_hw_config() refuses with EOPNOTSUPP, a full group or counter that has no such
            // precision with EINVAL, an AMD core without IBS with ENOENT.
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOENT if self.is_less_precise() => true,
            Errno::INVAL => self.has_older_fields() || self.filters_itself(),
            Errno::ACCESS | Errno::PERM => self.is_without_physical() || self.is_without_kernel(),
            Errno::NODATA => self.is_led(),
            _ => false,
        }
    }

    fn counter(&mut self) -> Option<&mut Counter> {
        match &mut self.source.source {
            Source::Counter(counter) => Some(counter),
            _ => None,
        }
    }

    /// One level down; at the end, back to the highest.
    fn is_less_precise(&mut self) -> bool {
        let (highest, lowest) = (self.highest_precise_ip, self.lowest_precise_ip);
        let Some(counter) = self.counter() else { return false };
        if counter.precise_ip > lowest {
            counter.precise_ip -= 1;
            return true;
        }
        counter.precise_ip = highest;
        false
    }

    fn has_older_fields(&mut self) -> bool {
        let Some(access) = self.counter().and_then(|counter| counter.access.as_mut()) else {
            return false;
        };
        let newest_first =
            [&mut access.has_weight_struct, &mut access.has_page_size, &mut access.has_physical];
        newest_first.into_iter().find(|field| **field).map(|field| *field = false).is_some()
    }

    /// The kernel does not take the bits that leave a level out: the reader drops it.
    fn filters_itself(&mut self) -> bool {
        let leaves_out = self.source.exclude_user || self.source.exclude_kernel;
        let Some(counter) = self.counter() else { return false };
        let is_new = leaves_out && matches!(counter.levels, Levels::FilteredByKernel(_));
        if is_new {
            counter.levels = Levels::FilteredByReader;
        }
        is_new
    }

    fn is_without_physical(&mut self) -> bool {
        let access = self.counter().and_then(|counter| counter.access.as_mut());
        access.is_some_and(|access| std::mem::take(&mut access.has_physical))
    }

    fn is_without_kernel(&mut self) -> bool {
        let filters = self.counter().is_some_and(|one| one.levels == Levels::FilteredByReader);
        // A tracepoint fires in the kernel only; without the bit the kernel's samples come all the
        // same, and those are what is refused.
        let is_last = self.source.exclude_user || self.source.exclude_kernel;
        if is_last || self.is_tracepoint || filters {
            return false;
        }
        self.source.exclude_kernel = true;
        true
    }

    /// Loads by latency want an event in front of them on some machines
    /// (`intel_pmu_hw_config()` in Linux `arch/x86/events/intel/core.c`).
    fn is_led(&mut self) -> bool {
        let Some(counter) = self.counter().filter(|counter| counter.leader.is_none()) else {
            return false;
        };
        counter.leader = Some(MEM_LOADS_AUX);
        true
    }

    /// Makes the plan what was opened, and says what it lacks.
    fn settle(&self, plan: &mut EventPlan) {
        let before = std::mem::replace(&mut plan.source, self.source);
        plan.is_settled = true;
        plan.follow_source();
        if let Source::Counter(counter) = self.source.source
            && counter.precise_ip != self.highest_precise_ip
        {
            plan.event.skid = counter_skid(u64::from(counter.precise_ip), false);
        }
        let name = &plan.event.name;
        let lacks = lacks(&before, plan).into_iter().map(|what| format!("{name}: {what}"));
        let lacks: Vec<_> = lacks.collect();
        plan.warnings.extend(lacks);
    }
}

/// Loss of `plan` against what was asked for `before`, in a person's words.
fn lacks(before: &EventSource, plan: &EventPlan) -> Vec<String> {
    let mut lacks = Vec::new();
    let after = &plan.source;
    let is_counter = matches!(after.source, Source::Counter(_));
    // Told by the event itself where it is a clock, as ever.
    if is_counter && after.exclude_kernel && !before.exclude_kernel {
        lacks.push("without the kernel's side, which this user may not sample".to_owned());
    }
    let (Source::Counter(before), Source::Counter(after)) = (before.source, after.source) else {
        return lacks;
    };
    if after.precise_ip < 2 && after.precise_ip < before.precise_ip {
        lacks.push(match plan.event.skid {
            SkidModel::AfterOne => {
                "precise_ip 1 is all there is: samples stand one instruction behind".to_owned()
            }
            _ => "this machine has no precise samples of it: they stand some instructions behind"
                .to_owned(),
        });
    }
    if let (Some(before), Some(after)) = (before.access, after.access) {
        lacks.extend(missing_fields(before, after));
    }
    if after.leader.is_some() && before.leader.is_none() {
        lacks.push(
            "grouped behind mem-loads-aux, without which this processor tells no data source"
                .to_owned(),
        );
    }
    if after.levels != before.levels {
        let (out, kept) = if plan.drops_kernel { ("kernel", "user") } else { ("user", "kernel") };
        lacks.push(format!(
            "this kernel cannot leave out the {out} level: its samples are taken, counted and \
             dropped, and only the {kept} level is shown"
        ));
    }
    debug_assert!(plan.event.kind == EventKind::Memory || !plan.drops_non_memory);
    lacks
}

/// The fields of samples that were asked for `before` and are not in them `after`.
fn missing_fields(before: AccessFields, after: AccessFields) -> impl Iterator<Item = String> {
    let fields = [
        (
            before.has_weight_struct && !after.has_weight_struct,
            "this kernel (before 5.12) tells one latency, not its parts",
        ),
        (
            before.has_page_size && !after.has_page_size,
            "this kernel (before 5.11) does not tell the size of pages",
        ),
        (before.has_physical && !after.has_physical, "without physical addresses"),
    ];
    fields.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what.to_owned())
}

#[cfg(test)]
#[path = "opening/tests.rs"]
mod tests;
