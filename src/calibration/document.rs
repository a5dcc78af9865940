//! A calibration as one JSON object.

use super::slow_loop::{Access, SlowPlace};
use super::tally::LoopTally;
use super::verdict::{self, Fit};
use super::{Calibration, Tally};
use dataspace_proto::accounting::Lost;
use dataspace_proto::event::SkidModel;
use dataspace_proto::snapshot::EventLine;
use serde::Serialize;
use std::io::Write;

/// Rises when a field's meaning changes.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct CalibrationDocument<'a> {
    schema: u32,
    event: &'a EventLine,
    elapsed_ns: u64,
    accounting: Accounts,
    model: ModelFit,
    accesses: Vec<AccessFit>,
    loops: Vec<LoopLine<'a>>,
    warnings: Vec<String>,
}

/// `kernel = in_loops + elsewhere + in_kernel + Σ lost`, in samples.
#[derive(Serialize)]
struct Accounts {
    kernel: u64,
    in_loops: u64,
    elsewhere: u64,
    in_kernel: u64,
    lost: Lost,
}

/// The model in use, and for how many of the samples that did not restart it holds.
#[derive(Serialize)]
struct ModelFit {
    skid: SkidModel,
    #[serde(flatten)]
    fit: FitLine,
}

#[derive(Serialize)]
struct FitLine {
    fitting: u64,
    of: u64,
    share: f64,
}

#[derive(Serialize)]
struct AccessFit {
    access: Access,
    #[serde(flatten)]
    fit: FitLine,
}

#[derive(Serialize)]
struct LoopLine<'a> {
    access: Access,
    place: SlowPlace,
    samples: u64,
    restarted: u64,
    /// Samples by distance from the slow access in retired instructions, from 0 on.
    distances: &'a [u64],
    #[serde(flatten)]
    fit: FitLine,
}

impl<'a> LoopLine<'a> {
    fn new(tally: &'a LoopTally, skid: SkidModel) -> Self {
        Self {
            access: tally.slow_loop.access,
            place: tally.slow_loop.place,
            samples: tally.n_samples(),
            restarted: tally.n_restarted,
            distances: &tally.distances,
            fit: Fit::new(skid, [tally]).into(),
        }
    }
}

impl From<Fit> for FitLine {
    fn from(fit: Fit) -> Self {
        Self { fitting: fit.fitting, of: fit.of, share: fit.share() }
    }
}

/// Writes all that was measured as one line.
pub(crate) fn write_line(calibration: &Calibration, out: &mut dyn Write) -> anyhow::Result<()> {
    let skid = calibration.event.skid;
    let tally = &calibration.tally;
    let Tally { n_elsewhere, n_in_kernel, .. } = *tally;
    let of_access =
        |access| AccessFit { access, fit: Fit::new(skid, tally.loops_of(access)).into() };
    let document = CalibrationDocument {
        schema: SCHEMA,
        event: &calibration.event,
        elapsed_ns: calibration.elapsed_ns,
        accounting: Accounts {
            kernel: calibration.collected.kernel_samples,
            in_loops: tally.n_in_loops(),
            elsewhere: n_elsewhere,
            in_kernel: n_in_kernel,
            lost: calibration.lost(),
        },
        model: ModelFit { skid, fit: Fit::new(skid, &tally.loops).into() },
        accesses: Access::ALL.map(of_access).into(),
        loops: tally.loops.iter().map(|one| LoopLine::new(one, skid)).collect(),
        warnings: verdict::warnings(calibration),
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::fixture;

    #[test]
    fn the_document_has_every_loop_and_adds_up() {
        let mut out = Vec::new();
        write_line(&fixture::fitting(), &mut out).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let accounting = &document["accounting"];
        let sum: u64 = ["in_loops", "elsewhere", "in_kernel"]
            .map(|name| accounting[name].as_u64().unwrap())
            .iter()
            .sum();
        assert_eq!(accounting["kernel"], sum);
        assert_eq!(document["model"]["skid"], "after-one");
        assert_eq!(document["accesses"][2]["access"], "store");
        let last = &document["loops"][8];
        assert_eq!((&last["access"], &last["place"]), (&"store".into(), &"last".into()));
        assert_eq!(last["distances"], serde_json::json!([11, 2180, 9, 8, 2]));
        assert_eq!((&last["samples"], &last["restarted"]), (&2230.into(), &20.into()));
        assert_eq!((&last["fitting"], &last["of"]), (&2180.into(), &2210.into()));
    }
}
