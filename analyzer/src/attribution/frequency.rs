//! The likely one of several possible triggers: how often the way from each can have been taken, by the samples of the
//! code that it comes through.
//!
//! Where a loop is entered by a jump to its condition, that jump and the last instruction of the loop's body lead to one
//! IP, and no register tells which of them ran. But the jump ran as often as the code before it, which has no samples
//! where the loop has thousands.

use crate::attribution::site_table::{SiteIdx, SiteTable};
use crate::bytes::file::LoadObjectIdx;
use crate::index::site::{Past, SiteQuery};
use crate::x86_64::arrival::Arrival;
use crate::x86_64::backtrack::Skid;
use dataspace_proto::address::Svma;

/// Samples at the IP for each that another trigger may have had of them.
const SAMPLES_FOR_ONE: u64 = 100;

/// Factor by which the code of the likely trigger has to have more samples than that of all others.
const LEAST_RATIO: u64 = 4;

/// Samples at the IP after which the structure of a loop decides, where no sample tells of what is outside of it.
const LEAST_SAMPLES: u64 = 8;

/// Samples at the IP after which nobody waits for more of them.
const ENOUGH_SAMPLES: u64 = 256;

/// Samples are counted in parts of so much.
const ONE: u64 = 1 << 10;

/// An answer for all samples at one IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likely {
    /// This trigger, for 99 of 100.
    Trigger(u8),
    /// None as yet; more samples may tell.
    Open,
    /// None.
    Nobody,
}

/// Samples of the code of one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    trigger: u8,
    is_round: bool,
    is_in_loop: bool,
    is_access: bool,
    /// It is a jump that takes as long as others of its code are seen to take.
    is_measured: bool,
    /// There is code of which samples can tell.
    is_seen: bool,
    n_samples: u64,
    /// Parts of a sample for each instruction, where one more came than did.
    each: u64,
    /// Parts that its trigger may have at the IP, if it waits as long as one of its kind may.
    at_most: u64,
}

/// Times as long as an instruction of its way a trigger may take: a direct jump waits for its own code, other instructions
/// for a division, an access for memory.
const fn longest_wait(is_jump: bool, is_access: bool) -> u64 {
    match (is_jump, is_access) {
        (_, true) => 256,
        (true, false) => 4,
        (false, false) => 64,
    }
}

impl SiteTable {
    /// The likely trigger of the samples at the IP of `site`, whose past is lent out. Samples at an end (`is_last`) go
    /// by the structure of the loop where others do not tell yet.
    pub(crate) fn likely_trigger(
        &mut self,
        site: SiteIdx,
        object: LoadObjectIdx,
        past: &Past,
        is_last: bool,
    ) -> Likely {
        let n_samples = self.n_samples(site);
        let is_last = is_last || n_samples >= ENOUGH_SAMPLES;
        let none = if is_last { Likely::Nobody } else { Likely::Open };
        match self.likely(site) {
            Some(Some(trigger)) => return Likely::Trigger(trigger),
            Some(None) if !is_last => return none,
            _ => {}
        }
        let mut traffic = std::mem::take(&mut self.traffic);
        traffic.clear();
        traffic.extend(past.trail.arrivals.iter().map(|it| self.traffic_of(it, object, past)));
        let likely = by_traffic(&traffic, n_samples);
        self.set_likely(site, likely);
        let likely = likely.or_else(|| by_structure(&traffic, n_samples).filter(|_| is_last));
        self.traffic = traffic;
        likely.map_or(none, Likely::Trigger)
    }

    fn traffic_of(&self, arrival: &Arrival, object: LoadObjectIdx, past: &Past) -> Traffic {
        let n_samples_at = |ips: &[Svma]| -> u64 {
            let sites = ips.iter().filter_map(|ip| {
                let query = SiteQuery { ip: *ip, skid: Skid::AfterOne };
                Some(self.n_samples(self.find(object, query)?))
            });
            sites.sum()
        };
        let (part, each) = scarcest(arrival, &n_samples_at);
        let n_samples = n_samples_at(part);
        let trigger = past.triggers.get(usize::from(arrival.trigger));
        let is_access = trigger.is_some_and(|trigger| !trigger.accesses.is_empty());
        // What waits in its code for memory tells nothing of how long a jump takes, but that it takes less than that.
        let longest = [&arrival.quiet, &arrival.locked].into_iter().find_map(|ips| {
            let of_part = ips.iter().filter(|ip| part.contains(ip));
            let counts = of_part.map(|ip| n_samples_at(std::slice::from_ref(ip)));
            let (n_ips, n_samples) = counts.fold((0, 0), |(n_ips, sum), n| (n_ips + 1, sum + n));
            (n_ips != 0).then(|| (n_samples + 1) * ONE / n_ips)
        });
        let longest = longest.filter(|_| arrival.is_jump);
        let is_measured = longest.is_some();
        let at_most = longest.unwrap_or(each * longest_wait(arrival.is_jump, is_access));
        let Arrival { trigger, is_round, is_in_loop, .. } = *arrival;
        let is_seen = !arrival.through.is_empty();
        Traffic {
            trigger,
            is_round,
            is_in_loop,
            is_access,
            is_measured,
            is_seen,
            n_samples,
            each,
            at_most,
        }
    }
}

/// The part of a way that has fewest samples, and parts of a sample for each of its instructions, where one more came than did:
/// the way was taken no oftener than any of its parts.
fn scarcest<'a>(arrival: &'a Arrival, n_samples_at: &impl Fn(&[Svma]) -> u64) -> (&'a [Svma], u64) {
    let mut begin = 0;
    let parts = arrival.parts.iter().map(|end| {
        let part = arrival.through.get(begin..*end).unwrap_or_default();
        begin = *end;
        (part, (n_samples_at(part) + 1) * ONE / (part.len() as u64).max(1))
    });
    parts.min_by_key(|(_, each)| *each).unwrap_or((&[], ONE))
}

/// The trigger beside which all others together have one sample of a hundred at most.
fn by_traffic(traffic: &[Traffic], n_samples: u64) -> Option<u8> {
    let sum = |count: fn(&Traffic) -> u64| traffic.iter().map(count).sum::<u64>();
    let (each, at_most) = (sum(|it| it.each), sum(|it| it.at_most));
    let is_likely = |likely: &&Traffic| {
        let (each, at_most) = (each - likely.each, at_most - likely.at_most);
        let is_rare = at_most * SAMPLES_FOR_ONE <= n_samples * ONE;
        let is_oftener = likely.n_samples != 0 && likely.each >= each * LEAST_RATIO;
        let mut others = traffic.iter().filter(|it| it.trigger != likely.trigger);
        // Only one of them can wait, or of a loop's ways only one.
        let is_idle = |it: &Traffic| it.is_measured || (likely.is_round && !it.is_in_loop);
        let is_slower = likely.is_access && others.all(is_idle);
        is_rare && (is_oftener || is_slower || structured(traffic) == Some(likely.trigger))
    };
    let mut likely = traffic.iter().filter(is_likely);
    likely.next().filter(|_| likely.next().is_none()).map(|it| it.trigger)
}

/// The one way of a loop, beside others that have no sample and come from no loop.
fn by_structure(traffic: &[Traffic], n_samples: u64) -> Option<u8> {
    let trigger = structured(traffic).filter(|_| n_samples >= LEAST_SAMPLES)?;
    let mut others = traffic.iter().filter(|it| it.trigger != trigger);
    others.all(|it| it.n_samples == 0 && it.is_seen).then_some(trigger)
}

fn structured(traffic: &[Traffic]) -> Option<u8> {
    let mut rounds = traffic.iter().filter(|it| it.is_round);
    let (Some(round), None) = (rounds.next(), rounds.next()) else { return None };
    let mut others = traffic.iter().filter(|it| !it.is_round);
    others.all(|it| !it.is_in_loop).then_some(round.trigger)
}
