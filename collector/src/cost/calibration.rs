//! Cost of sampling for whoever is sampled, measured on ourselves while a session begins.

use crate::attach::rings::Rings;
use crate::cost::life::LifeCost;
use crate::cost::sample::SampleCosts;
use crate::event::EventPlan;
use crate::event::attr::KernelFeatures;
use std::thread::{self, JoinHandle};

/// All that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibration {
    pub(crate) samples: SampleCosts,
    pub(crate) life: LifeCost,
}

impl Calibration {
    /// Begins to measure, on a thread of its own, what samples of `plans` cost and, if tasks are born
    /// and end with events of them on the CPUs of `rings`, what that does. `None` where there is no
    /// thread.
    pub(crate) fn begin(
        plans: &[EventPlan],
        rings: &Rings,
        features: KernelFeatures,
        has_heirs: bool,
    ) -> Option<JoinHandle<Self>> {
        let plans = plans.to_vec();
        let cpus: Vec<i32> = rings.outputs.iter().map(|output| output.cpu).collect();
        let measure = move || {
            let life = has_heirs.then(|| LifeCost::measure(&plans, &cpus, features));
            let life = life.and_then(|life| {
                life.inspect_err(|errno| tracing::debug!(%errno, "lives are not measured")).ok()
            });
            let kinds: Vec<_> = plans.iter().map(|plan| plan.event.kind).collect();
            Self {
                samples: SampleCosts::measure(&kinds, features),
                life: life.unwrap_or(LifeCost::USUAL),
            }
        };
        thread::Builder::new().name("calibration".to_owned()).spawn(measure).ok()
    }
}
