//! Cost of one sample for whoever is sampled, measured on ourselves.

use crate::access::{self, EventPlace};
use crate::attach::rings::n_samples_in;
use crate::event::attr::{self, Binding, EventSource, KernelFeatures, Source};
use crate::sys::clock::thread_cpu_ns;
use crate::sys::mmap::MappedRing;
use crate::sys::open;
use dataspace_proto::event::{EventKind, Sampling};
use perf_event_open_sys::bindings as abi;
use rustix::fd::AsFd as _;
use std::hint::black_box;
use std::time::Duration;

/// Each figure is the least of several runs: whatever disturbs a run makes it longer.
const N_RUNS: usize = 16;
/// The clock's runs go on until the least has not fallen for so long: on a virtual machine the first
/// 40 to 100 ms of a busy CPU have interrupts three times as dear (58 µs, then 20 µs) as it ever
/// after has.
const WARM_UP: Duration = Duration::from_millis(150);
/// But no longer than this.
const MAX_WARM_UP: Duration = Duration::from_millis(500);
/// Length of a run of the clock: some 10 samples.
const RUN: Duration = Duration::from_millis(1);
/// The clock's period while it is measured, and the number of the others' samples.
const CLOCK_PERIOD_NS: u64 = 100_000;
const N_BREAKPOINTS: usize = 64;
const N_FAULTS: usize = 128;
/// Pages of the ring that the samples of a run fit into: 500 at 480 bytes.
const RING_PAGES: usize = 64;

/// Cost of one sample, in nanoseconds, by what has to be done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleCosts {
    /// An interrupt: clocks and hardware counters.
    pub(crate) interrupt_ns: u64,
    /// A debug exception.
    pub(crate) breakpoint_ns: u64,
    /// Only the sample itself, from code that is in the kernel already: faults, tracepoints.
    pub(crate) in_kernel_ns: u64,
}

impl SampleCosts {
    /// Measured on a virtual machine; used until, and where, nothing is measured.
    pub(crate) const USUAL: Self =
        Self { interrupt_ns: 14_000, breakpoint_ns: 15_000, in_kernel_ns: 2_500 };

    /// Cost of a sample of an event of this kind.
    pub(crate) const fn of(&self, kind: EventKind) -> u64 {
        match kind {
            EventKind::Breakpoint { .. } => self.breakpoint_ns,
            EventKind::PageFault | EventKind::Tracepoint => self.in_kernel_ns,
            EventKind::Clock | EventKind::Memory | EventKind::Fetch | EventKind::Other => {
                self.interrupt_ns
            }
        }
    }

    /// Measures what the events of these kinds cost; the others stay at what is usual.
    pub(crate) fn measure(kinds: &[EventKind], features: KernelFeatures) -> Self {
        let wants = |kind: fn(&EventKind) -> bool| kinds.iter().any(kind);
        let mut costs = Self::USUAL;
        let is_interrupt = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::Clock | EventKind::Memory | EventKind::Fetch | EventKind::Other
            )
        };
        if wants(is_interrupt) {
            costs.interrupt_ns = interrupt(features).unwrap_or(costs.interrupt_ns);
        }
        if wants(|kind| matches!(kind, EventKind::Breakpoint { .. })) {
            costs.breakpoint_ns = breakpoint(features).unwrap_or(costs.breakpoint_ns);
        }
        if wants(|kind| matches!(kind, EventKind::PageFault | EventKind::Tracepoint)) {
            costs.in_kernel_ns = fault(features).unwrap_or(costs.in_kernel_ns);
        }
        costs
    }
}

fn interrupt(features: KernelFeatures) -> Option<u64> {
    let n_rounds = rounds_in(RUN);
    let source = Source::Software(u64::from(abi::PERF_COUNT_SW_CPU_CLOCK));
    let work = || spin(n_rounds);
    extra(source, Sampling::Period(CLOCK_PERIOD_NS), features, WARM_UP, work)
}

fn breakpoint(features: KernelFeatures) -> Option<u64> {
    let mut watched = Box::new(0u64);
    let address = std::ptr::from_mut(&mut *watched) as u64;
    let source = Source::Breakpoint { address, len_bytes: 8, access: abi::HW_BREAKPOINT_W };
    extra(source, Sampling::Period(1), features, Duration::ZERO, || {
        for round in 0..N_BREAKPOINTS {
            *black_box(&mut *watched) = round as u64;
        }
    })
}

fn fault(features: KernelFeatures) -> Option<u64> {
    let source = Source::Software(u64::from(abi::PERF_COUNT_SW_PAGE_FAULTS));
    let page_bytes = rustix::param::page_size();
    extra(source, Sampling::Period(1), features, Duration::ZERO, || {
        // Large enough to be mapped anew each time.
        let mut pages: Vec<u8> = Vec::with_capacity(N_FAULTS * page_bytes);
        for place in pages.spare_capacity_mut().iter_mut().step_by(page_bytes) {
            black_box(place).write(1);
        }
        black_box(&mut pages);
    })
}

/// Time by which `work` is longer for each sample of `source` that it makes.
fn extra(
    source: Source,
    sampling: Sampling,
    features: KernelFeatures,
    at_least: Duration,
    mut work: impl FnMut(),
) -> Option<u64> {
    let event = EventSource { source, sampling, exclude_kernel: true, ..EventSource::NOTHING };
    let attr = attr::sampled(&event, Binding::default(), features);
    // Of this thread: what else runs on its CPU meanwhile is not part of it, interrupts are.
    let time = |work: &mut dyn FnMut()| {
        let began_ns = thread_cpu_ns();
        work();
        thread_cpu_ns() - began_ns
    };
    let without = (0..N_RUNS).map(|_| time(&mut work)).min()?;
    let (mut least_ns, mut n_runs) = (None, 0);
    let began_ns = thread_cpu_ns();
    let mut end_ns = began_ns + at_least.as_nanos() as u64;
    let last_ns = began_ns + MAX_WARM_UP.as_nanos() as u64;
    while n_runs < N_RUNS || thread_cpu_ns() < end_ns.min(last_ns) {
        n_runs += 1;
        let fd = access::event(&attr, EventPlace::own_thread(-1)).ok()?;
        let mut ring = MappedRing::new(fd.as_fd(), RING_PAGES).ok()?;
        let with = time(&mut work);
        open::disable(fd.as_fd()).ok()?;
        let n_samples = n_samples_in(&mut ring).max(1);
        let extra_ns = with.saturating_sub(without) / n_samples;
        // A fall of a tenth: it is not over yet.
        if least_ns.is_none_or(|least: u64| extra_ns < least - least / 10) {
            end_ns = thread_cpu_ns() + at_least.as_nanos() as u64;
        }
        least_ns = Some(least_ns.map_or(extra_ns, |least| least.min(extra_ns)));
    }
    least_ns.filter(|&ns| ns > 0)
}

/// Number of rounds of [`spin`] that take `span`.
fn rounds_in(span: Duration) -> u64 {
    const N_TRIED: u64 = 100_000;
    let began_ns = thread_cpu_ns();
    spin(N_TRIED);
    let tried_ns = (thread_cpu_ns() - began_ns).max(1);
    (N_TRIED * span.as_nanos() as u64 / tried_ns).max(1)
}

fn spin(n_rounds: u64) {
    for round in 0..n_rounds {
        black_box(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_measured_here_is_plausible() {
        let kinds = [EventKind::Clock, EventKind::PageFault];
        let features = KernelFeatures::default();
        let costs = SampleCosts::measure(&kinds, features);
        println!("{costs:?}");
        assert!((100..1_000_000).contains(&costs.interrupt_ns), "{costs:?}");
        assert_eq!(costs.breakpoint_ns, SampleCosts::USUAL.breakpoint_ns, "it was not asked for");
    }
}
