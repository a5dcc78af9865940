//! Verdict on a measurement: whether it fits the skid model that the event's samples are attributed with.

use super::Calibration;
use super::slow_loop::Access;
use super::tally::LoopTally;
use crate::header::skid_text;
use crate::text::{percent, ratio};
use dataspace_proto::event::SkidModel;

/// A model that holds for fewer of a loop's samples does not fit. On machines where it holds,
/// 97 % and more were measured.
const GOOD_SHARE: f64 = 0.9;

/// With fewer samples of a loop, one or two that strayed would decide.
const MIN_SAMPLES: u64 = 50;

/// The furthest that is looked for a range that holds: half of the shortest loop. Any skid at all is
/// within a whole round.
const MAX_RANGE: u32 = 4;

/// For how many samples a model holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Those that are where the model says.
    pub(crate) fitting: u64,
    /// All in question. Restarted ones are not: their flags tell that they did not skid.
    pub(crate) of: u64,
}

impl Fit {
    /// Judges `model` by `loops`.
    pub(crate) fn new<'a>(
        model: SkidModel,
        loops: impl IntoIterator<Item = &'a LoopTally>,
    ) -> Self {
        let mut fit = Self::default();
        for (distance, count) in
            loops.into_iter().flat_map(|tally| tally.distances.iter().enumerate())
        {
            fit.of += count;
            if fits(model, distance) {
                fit.fitting += count;
            }
        }
        fit
    }

    /// As a share.
    pub(crate) fn share(self) -> f64 {
        ratio(self.fitting, self.of)
    }

    fn is_judged(self) -> bool {
        self.of >= MIN_SAMPLES
    }

    fn is_good(self) -> bool {
        self.share() >= GOOD_SHARE
    }
}

/// Tells whether backtracking by `model` comes from there to the slow access. A bounded walk begins
/// before the reported instruction: it never finds that one itself.
fn fits(model: SkidModel, distance: usize) -> bool {
    match model {
        SkidModel::Exact => distance == 0,
        SkidModel::AfterOne => distance == 1,
        SkidModel::Unknown(range) => distance >= 1 && distance <= range as usize,
    }
}

/// Sentences for a person: where the model does not fit, and what does.
pub(crate) fn warnings(calibration: &Calibration) -> Vec<String> {
    let model = calibration.event.skid;
    let of_access = |access| calibration.tally.loops_of(access).collect::<Vec<_>>();
    let misfits =
        Access::ALL.iter().filter_map(|&access| misfit(model, access, &of_access(access)));
    let mut warnings: Vec<String> = misfits.collect();
    let loops = &calibration.tally.loops;
    let n_small = loops.iter().filter(|tally| !Fit::new(model, [*tally]).is_judged()).count();
    if n_small > 0 {
        warnings.push(format!(
            "{n_small} of {} loops have fewer than {MIN_SAMPLES} samples, too few to judge; give \
             a longer --duration or a higher -F",
            loops.len()
        ));
    }
    warnings.extend(calibration.warnings.iter().cloned());
    warnings
}

fn misfit(model: SkidModel, access: Access, loops: &[&LoopTally]) -> Option<String> {
    let judged: Vec<&LoopTally> =
        loops.iter().copied().filter(|tally| Fit::new(model, [*tally]).is_judged()).collect();
    if judged.iter().all(|tally| Fit::new(model, [*tally]).is_good()) {
        return None;
    }
    let share = |fit: Fit| percent(fit.fitting, fit.of);
    let places: Vec<String> = judged
        .iter()
        .map(|tally| {
            format!("{} {}", tally.slow_loop.place.name(), share(Fit::new(model, [*tally])))
        })
        .collect();
    let whole = Fit::new(model, judged.iter().copied());
    Some(format!(
        "{}: {} holds for {} of the samples ({}), the others blame another instruction; {}",
        access.name(),
        skid_text(model),
        share(whole),
        places.join(", "),
        remedy(&judged)
    ))
}

/// The nearest model that holds, as an option of `report` and `script`.
fn remedy(loops: &[&LoopTally]) -> String {
    let ranges = (2..=MAX_RANGE).map(SkidModel::Unknown);
    let models = [SkidModel::Exact, SkidModel::AfterOne].into_iter().chain(ranges);
    let holds = |model: &SkidModel| loops.iter().all(|tally| Fit::new(*model, [*tally]).is_good());
    let Some(model) = models.into_iter().find(holds) else {
        return format!("no --skid up to {MAX_RANGE} holds for 90%");
    };
    let option = match model {
        SkidModel::Exact => 0,
        SkidModel::AfterOne => 1,
        SkidModel::Unknown(range) => range,
    };
    let fit = Fit::new(model, loops.iter().copied());
    let share = percent(fit.fitting, fit.of);
    format!("on a recording, dataspace report --skid {option} holds for {share}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::fixture;

    #[test]
    fn a_model_says_where_samples_are() {
        let check = |model, expect: [bool; 4]| {
            assert_eq!([0, 1, 2, 3].map(|distance| fits(model, distance)), expect, "{model:?}");
        };
        check(SkidModel::Exact, [true, false, false, false]);
        check(SkidModel::AfterOne, [false, true, false, false]);
        check(SkidModel::Unknown(2), [false, true, true, false]);
    }

    #[test]
    fn what_fits_is_no_warning() {
        assert_eq!(warnings(&fixture::fitting()), Vec::<String>::new());
    }

    #[test]
    fn a_misfit_names_the_access_its_places_and_the_nearest_model_that_holds() {
        let warnings = warnings(&fixture::misfitting());
        assert_eq!(warnings.len(), 3, "{warnings:#?}");
        assert!(warnings[0].starts_with("independent load: after-one holds for "), "{warnings:#?}");
        assert!(warnings[0].contains("--skid 3 "), "{warnings:#?}");
        assert!(warnings[1].starts_with("store: after-one holds for "), "{warnings:#?}");
        assert!(warnings[1].contains("no --skid up to 4 holds"), "{warnings:#?}");
    }

    #[test]
    fn few_samples_are_not_judged() {
        let warnings = warnings(&fixture::short());
        assert_eq!(warnings.len(), 1, "{warnings:#?}");
        assert!(warnings[0].starts_with("9 of 9 loops have fewer than 50"), "{warnings:#?}");
    }
}
