//! Newer parts of the kernel's interface, asked for on ourselves.

use crate::access::{self, EventPlace};
use crate::event::attr::{self, Binding, KernelFeatures, Source};
use rustix::io::Errno;

/// Asks the kernel for the newer parts of its interface. Where it refuses for another reason, the
/// first event of the session will say so.
pub(crate) fn kernel_features() -> KernelFeatures {
    use dataspace_proto::event::Sampling;
    use perf_event_open_sys::bindings as abi;

    let is_known = |attr: &attr::perf_event_attr| {
        !matches!(
            access::event(attr, EventPlace::own_thread(-1)),
            Err(Errno::INVAL | Errno::TOOBIG)
        )
    };
    let clock = attr::EventSource {
        source: Source::Software(u64::from(abi::PERF_COUNT_SW_TASK_CLOCK)),
        sampling: Sampling::Period(1_000_000_000),
        varies: false,
        exclude_user: false,
        exclude_kernel: true,
    };
    let binding = Binding::default();
    let none = KernelFeatures::default();
    let is_allowed =
        |attr: &attr::perf_event_attr| access::event(attr, EventPlace::own_thread(-1)).is_ok();
    let with_build_id = KernelFeatures { build_id: true, ..none };
    let with_namespaces = KernelFeatures { namespaces: true, ..none };
    KernelFeatures {
        lost: is_known(&attr::sampled(&clock, binding, KernelFeatures { lost: true, ..none })),
        build_id: is_known(&attr::side_band(with_build_id, true)),
        namespaces: is_allowed(&attr::side_band(with_namespaces, true)),
        ksymbol: is_known(&attr::machine_side_band(KernelFeatures { ksymbol: true, ..none })),
        cgroup: is_known(&attr::machine_side_band(KernelFeatures { cgroup: true, ..none })),
    }
}
