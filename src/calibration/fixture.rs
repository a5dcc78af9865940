//! Calibrations made up for tests.

use super::Calibration;
use super::slow_loop::SlowLoop;
use super::tally::Tally;
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::{EventClass, SkidModel};
use dataspace_proto::snapshot::EventLine;

/// Nine loops of five instructions, with these counts by distance from the slow access.
fn calibration(by_access: [[u64; 5]; 3]) -> Calibration {
    let accesses = ["dependent_load", "independent_load", "store"];
    let places = [("first", "10"), ("middle", "12"), ("last", "13")];
    let instructions = "10 11 12 13 14";
    let lines = accesses.iter().flat_map(|access| {
        places.map(|(place, slow)| format!("{access} {place} {slow} {instructions}"))
    });
    let mut tally = Tally::new(lines.filter_map(|line| SlowLoop::parse(&line)).collect());
    for (counts, loops) in by_access.iter().zip(tally.loops.chunks_mut(3)) {
        for one in loops {
            one.distances = counts.to_vec();
        }
    }
    let delivered = tally.n_in_loops();
    Calibration {
        event: EventLine {
            name: "cpu-clock".into(),
            kind: EventClass::Clock,
            skid: SkidModel::AfterOne,
            period: Some(500_250),
            frequency_hz: None,
        },
        elapsed_ns: 10_004_000_000,
        collected: Collected { kernel_samples: delivered, delivered, ..Collected::default() },
        tally,
        warnings: Vec::new(),
    }
}

/// As on a machine where the model holds.
pub(super) fn fitting() -> Calibration {
    let mut fitting =
        calibration([[3, 2200, 5, 0, 0], [20, 2100, 40, 30, 10], [11, 2180, 9, 8, 2]]);
    fitting.tally.loops[8].n_restarted = 20;
    fitting.tally.n_elsewhere = 14;
    fitting.tally.n_in_kernel = 107;
    fitting.collected.kernel_samples += 20 + 14 + 107;
    fitting
}

/// As where it does not, and some samples are lost.
pub(super) fn misfitting() -> Calibration {
    let mut misfitting =
        calibration([[0, 990, 10, 0, 0], [0, 300, 400, 280, 20], [400, 150, 150, 150, 150]]);
    misfitting.tally.n_elsewhere = 1000;
    misfitting.collected.ring_full = 250;
    misfitting.collected.kernel_samples += 1250;
    misfitting.warnings.push("a ring is smaller than wanted".into());
    misfitting
}

/// As after the blink of an eye.
pub(super) fn short() -> Calibration {
    calibration([[0, 9, 0, 0, 0], [9, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
}
