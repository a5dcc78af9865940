//! Answers of workers: resolved IPs, and variables by address.

use crate::attribution::frequency::Traffic;
use crate::attribution::name_table::NamedIdx;
use crate::bytes::file::LoadObjectIdx;
use crate::elf::data_symbol::DataPlace;
use crate::index::call_site::CallSite;
use crate::index::site::{Past, Site, SiteQuery};
use crate::index::static_data::{DataRange, Resident};
use crate::limit;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::Scope;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a known site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteIdx(u32);

#[cfg(test)]
impl SiteIdx {
    pub(crate) const fn at(place: u32) -> Self {
        Self(place)
    }
}

/// A resolved IP.
#[derive(Debug)]
struct KnownSite {
    scope: Arc<Scope>,
    /// `None` while it is lent out, and where there is none.
    past: Option<Box<Past>>,
    /// Reason that there is none.
    reason: Reason,
    /// The load object, and the reported IP in its terms.
    code: (LoadObjectIdx, Svma),
    /// The name that was last made for it, and which of its accesses that is for.
    named: Option<(AccessIdx, NamedIdx)>,
    /// Samples that were there.
    n_samples: u64,
    /// Its likely trigger, and the number of samples from which on that is weighed anew.
    likely: (Option<u8>, u64),
    /// The history's number of a place that a sample had here, and where the trigger was: code has the same distances
    /// wherever it is mapped, so that it is the place in all processes.
    place: (TriggerDistance, u32),
}

/// Distance from a reported instruction to the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerDistance(u64);

impl TriggerDistance {
    /// Stands for a trigger that is not known: no two instructions are so far apart.
    const UNKNOWN: Self = Self(1 << 63);
    /// Stands for that of a site that had no sample yet: nor are any this far.
    const NO_SAMPLE: Self = Self(Self::UNKNOWN.0 + 1);

    pub(crate) fn new(ip: Avma, trigger: Option<Avma>) -> Self {
        trigger.map_or(Self::UNKNOWN, |trigger| Self(trigger.0.wrapping_sub(ip.0)))
    }
}

/// Number of a trigger in its site, and of one of its accesses.
pub(crate) type AccessIdx = (u8, u8);

/// Resolved IPs of all load objects.
#[derive(Debug, Default)]
pub(crate) struct SiteTable {
    sites: Vec<KnownSite>,
    /// Nodes of all their trails.
    n_nodes: usize,
    of_query: FxHashMap<(LoadObjectIdx, SiteQuery), SiteIdx>,
    /// Empty but while a likely trigger is looked for.
    pub(crate) traffic: Vec<Traffic>,
    /// The scopes of all sites, each once: so two are seen to be one without a look at the text.
    scopes: FxHashSet<Arc<Scope>>,
}

impl SiteTable {
    /// The code around a site.
    pub(crate) fn scope(&self, idx: SiteIdx) -> &Arc<Scope> {
        &self.sites[idx.0 as usize].scope
    }

    /// The past in which its trigger may be found.
    pub(crate) fn past(&self, idx: SiteIdx) -> Option<&Past> {
        self.sites[idx.0 as usize].past.as_deref()
    }

    /// Reason that it has no past.
    pub(crate) fn reason(&self, idx: SiteIdx) -> Reason {
        self.sites[idx.0 as usize].reason
    }

    /// The load object of a site, and the reported IP in its terms.
    pub(crate) fn code(&self, idx: SiteIdx) -> (LoadObjectIdx, Svma) {
        self.sites[idx.0 as usize].code
    }

    /// The name that was noted for an access whose object is the same for every sample.
    pub(crate) fn named(&self, idx: SiteIdx, access: AccessIdx) -> Option<NamedIdx> {
        let (of, named) = self.sites[idx.0 as usize].named?;
        (of == access).then_some(named)
    }

    /// Notes a name.
    pub(crate) fn set_named(&mut self, idx: SiteIdx, access: AccessIdx, named: NamedIdx) {
        self.sites[idx.0 as usize].named = Some((access, named));
    }

    /// The number of the place of a sample that has its trigger at this distance, if it is the noted one.
    pub(crate) fn place(&self, idx: SiteIdx, distance: TriggerDistance) -> Option<u32> {
        let (of, place) = self.sites[idx.0 as usize].place;
        (of == distance).then_some(place)
    }

    /// Notes the number of a sample's place.
    pub(crate) fn set_place(&mut self, idx: SiteIdx, distance: TriggerDistance, place: u32) {
        self.sites[idx.0 as usize].place = (distance, place);
    }

    /// Counts a sample.
    pub(crate) fn count(&mut self, idx: SiteIdx) {
        self.sites[idx.0 as usize].n_samples += 1;
    }

    /// Number of samples that were there.
    pub(crate) fn n_samples(&self, idx: SiteIdx) -> u64 {
        self.sites[idx.0 as usize].n_samples
    }

    /// Its likely trigger; the outer `None` where that is to be weighed anew.
    #[allow(clippy::option_option, reason = "the two levels are two facts, told above")]
    pub(crate) fn likely(&self, idx: SiteIdx) -> Option<Option<u8>> {
        let KnownSite { n_samples, likely: (likely, until), .. } = &self.sites[idx.0 as usize];
        (n_samples < until).then_some(*likely)
    }

    /// Notes what is likely until it has an eighth more samples.
    pub(crate) fn set_likely(&mut self, idx: SiteIdx, likely: Option<u8>) {
        let known = &mut self.sites[idx.0 as usize];
        known.likely = (likely, known.n_samples + known.n_samples / 8 + 1);
    }

    /// The names are other ones now.
    pub(crate) fn forget_names(&mut self) {
        self.sites.iter_mut().for_each(|known| known.named = None);
    }

    /// Lends a site's past out until it is given back, so that one sample can be weighed without
    /// counting references.
    pub(crate) fn lend(&mut self, idx: SiteIdx) -> Option<Box<Past>> {
        self.sites[idx.0 as usize].past.take()
    }

    /// Takes back what [`Self::lend`] gave.
    pub(crate) fn give_back(&mut self, idx: SiteIdx, past: Box<Past>) {
        self.sites[idx.0 as usize].past = Some(past);
    }

    pub(crate) fn find(&self, object: LoadObjectIdx, query: SiteQuery) -> Option<SiteIdx> {
        self.of_query.get(&(object, query)).copied()
    }

    /// Tells whether the next site would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        self.sites.len() >= limit::MAX_SITES || self.n_nodes >= limit::MAX_SITE_NODES
    }

    /// Starts anew; workers are asked again as samples come.
    pub(crate) fn forget(&mut self) {
        self.sites.clear();
        self.n_nodes = 0;
        self.of_query.clear();
        self.scopes.clear();
    }

    /// The same, and gives up the room that it took.
    pub(crate) fn evict(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn insert(&mut self, object: LoadObjectIdx, query: SiteQuery, mut site: Site) {
        match self.scopes.get(&site.scope) {
            Some(known) => site.scope = Arc::clone(known),
            None => {
                self.scopes.insert(Arc::clone(&site.scope));
            }
        }
        let idx = SiteIdx(self.sites.len() as u32);
        let (past, reason) = match site.outcome {
            Ok(past) => (Some(past), Reason::Pending),
            Err(reason) => (None, reason),
        };
        self.n_nodes += past.as_ref().map_or(0, |past| past.trail.nodes.len());
        self.sites.push(KnownSite {
            scope: site.scope,
            past,
            reason,
            code: (object, query.ip),
            named: None,
            n_samples: 0,
            likely: (None, 0),
            place: (TriggerDistance::NO_SAMPLE, u32::MAX),
        });
        self.of_query.insert((object, query), idx);
    }
}

/// Index of a known call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallIdx(u32);

/// Known calls of all load objects.
#[derive(Debug, Default)]
pub(crate) struct CallSiteTable {
    calls: Vec<Arc<CallSite>>,
    of_return: FxHashMap<(LoadObjectIdx, Svma), CallIdx>,
}

impl CallSiteTable {
    /// The call that returns to `return_address`.
    pub(crate) fn find(
        &self,
        object: LoadObjectIdx,
        return_address: Svma,
    ) -> Option<(CallIdx, &Arc<CallSite>)> {
        let idx = *self.of_return.get(&(object, return_address))?;
        Some((idx, self.calls.get(idx.0 as usize)?))
    }

    /// Tells whether the next call would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        self.calls.len() >= limit::MAX_KNOWN_CALLS
    }

    /// Starts anew; workers are asked again as samples come.
    pub(crate) fn forget(&mut self) {
        self.calls.clear();
        self.of_return.clear();
    }

    pub(crate) fn insert(
        &mut self,
        object: LoadObjectIdx,
        return_address: Svma,
        call: Arc<CallSite>,
    ) {
        let idx = CallIdx(self.calls.len() as u32);
        self.calls.push(call);
        self.of_return.insert((object, return_address), idx);
    }
}

/// Workers' answers about places in load objects' code, as many as there is room for.
#[derive(Debug)]
pub(crate) struct KnownAnswers<T>(FxHashMap<(LoadObjectIdx, Svma), Arc<T>>);

impl<T> Default for KnownAnswers<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> KnownAnswers<T> {
    pub(crate) fn find(&self, object: LoadObjectIdx, at: Svma) -> Option<&Arc<T>> {
        self.0.get(&(object, at))
    }

    pub(crate) fn insert(&mut self, object: LoadObjectIdx, at: Svma, answer: Arc<T>) {
        if self.0.len() >= limit::MAX_KNOWN_CALLS {
            self.0.clear();
        }
        self.0.insert((object, at), answer);
    }
}

/// End and resident of each range, by its start.
type Ranges = BTreeMap<DataPlace, (Svma, Option<Resident>)>;

/// The objects at data addresses: variables, and gaps between them.
#[derive(Debug, Default)]
pub(crate) struct DataTable {
    of_object: FxHashMap<LoadObjectIdx, Ranges>,
    n_ranges: usize,
}

impl DataTable {
    /// The object at a place in data: `None` while nothing is known yet, `Some(None)` if nothing known is there.
    #[allow(clippy::option_option, reason = "the two levels are two facts, told above")]
    pub(crate) fn find(&self, object: LoadObjectIdx, place: DataPlace) -> Option<Option<Resident>> {
        let ranges = self.of_object.get(&object)?;
        let (start, (end, resident)) = ranges.range(..=place).next_back()?;
        (start.storage == place.storage && place.at < *end).then(|| resident.clone())
    }

    /// Notes what is around `place`. Ranges stay apart, whatever damaged files say: what is known of
    /// other places stays, and what was asked for is found from now on.
    pub(crate) fn insert(&mut self, object: LoadObjectIdx, place: DataPlace, range: DataRange) {
        // Places that were asked for at one time may have one answer.
        if self.find(object, place).is_some() {
            return;
        }
        if self.n_ranges >= limit::MAX_DATA_RANGES {
            self.of_object.clear();
            self.n_ranges = 0;
        }
        self.n_ranges += 1;
        let ranges = self.of_object.entry(object).or_default();
        let is_near =
            |(near, _): &(&DataPlace, &(Svma, Option<Resident>))| near.storage == place.storage;
        let before = ranges.range(..=place).next_back().filter(is_near);
        let next = ranges.range(place..).next().filter(is_near);
        let start = before.map_or(range.start, |(_, (end, _))| range.start.max(*end));
        let end = next.map_or(range.end, |(start, _)| range.end.min(start.at));
        let start = DataPlace { storage: place.storage, at: start };
        ranges.insert(start, (end, range.resident));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::data_symbol::Storage;
    use crate::x86_64::backtrack::Skid;

    #[test]
    fn what_was_asked_for_is_found_whatever_else_is_said_to_be_there() {
        let object = LoadObjectIdx(0);
        let mut table = DataTable::default();
        let asked = [(12, 10..20), (30, 0..100), (5, 0..100), (200, 190..250), (150, 90..210)];
        for (at, range) in asked {
            let (start, end) = (Svma(range.start), Svma(range.end));
            let place = DataPlace::fixed(Svma(at));
            assert_eq!(table.find(object, place), None, "{at}");
            let storage = Storage::Static;
            table.insert(object, place, DataRange { storage, start, end, resident: None });
            assert_eq!(table.find(object, place), Some(None), "{at}");
        }
        assert_eq!(table.find(object, DataPlace::fixed(Svma(20))), Some(None));
        assert_eq!(table.find(object, DataPlace::thread(12)), None, "another storage");
    }

    #[test]
    fn a_name_is_kept_for_the_one_access_that_it_is_of_until_names_are_others() {
        let mut sites = SiteTable::default();
        let site = Site { scope: Arc::default(), outcome: Err(Reason::Unverifiable) };
        sites.insert(LoadObjectIdx(0), SiteQuery { ip: Svma(0x1000), skid: Skid::Exact }, site);
        let (idx, name) = (SiteIdx::at(0), NamedIdx::at(3));
        assert_eq!(sites.named(idx, (0, 0)), None);
        sites.set_named(idx, (0, 1), name);
        assert_eq!((sites.named(idx, (0, 1)), sites.named(idx, (0, 0))), (Some(name), None));
        sites.forget_names();
        assert_eq!(sites.named(idx, (0, 1)), None);
    }
}
