//! Places in code at which samples of the history were, and of the calls that led there.

use crate::bytes::file::{LoadObjectIdx, LoadObjectKey};
use crate::dwarf::code::line::SourceLine;
use crate::history::growing::{Frozen, Growing};
use crate::index::question::Answer;
use crate::limit;
use crate::process::recent::Places;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::sample_line::Scope;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampledPlace {
    /// The code that was interrupted.
    pub(crate) scope: Arc<Scope>,
    /// The instruction that the kernel reported, where its load object could be asked. Of a call it is not known.
    pub(crate) reported: Option<(LoadObjectIdx, Svma)>,
    /// The trigger, where it is known; of a call its last byte.
    pub(crate) trigger: Option<TriggerPlace>,
    /// The trigger's line, and those of the calls around it that were put in line, outwards; `None` until it is found
    /// out.
    pub(crate) lines: Option<Arc<[SourceLine]>>,
}

impl SampledPlace {
    /// The place of the call whose last byte is at `call`; its function is found out with its line.
    pub(crate) const fn of_call(scope: Arc<Scope>, call: TriggerPlace) -> Self {
        Self { scope, reported: None, trigger: Some(call), lines: None }
    }

    const fn is_call(&self) -> bool {
        self.reported.is_none() && self.trigger.is_some()
    }
}

/// The place of a trigger: not in the code that was interrupted where it is the call that led there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TriggerPlace {
    pub(crate) object: LoadObjectIdx,
    /// The load object's path.
    pub(crate) module: Arc<str>,
    /// The address in there.
    pub(crate) at: Svma,
}

/// Key of a place: load object, where the scope lies, which is kept by the place, the address of the reported instruction,
/// and load object and address of the trigger.
pub(crate) type PlaceKey = (u32, usize, u64, u32, u64);

/// The key of a place of this scope that was reported at an address, with a trigger in the code of a load object.
pub(crate) fn key(
    object: Option<LoadObjectIdx>,
    scope: &Arc<Scope>,
    reported: Option<Svma>,
    trigger: Option<(LoadObjectIdx, Svma)>,
) -> PlaceKey {
    let number = |object: Option<LoadObjectIdx>| object.map_or(u32::MAX, |object| object.0);
    let reported = reported.map_or(u64::MAX, |reported| reported.0);
    let (of, at) = trigger.unzip();
    let at = at.map_or(u64::MAX, |at| at.0);
    (number(object), Arc::as_ptr(scope) as usize, reported, number(of), at)
}

/// Places of calls that are remembered: 8 KiB.
const N_RECENT: usize = 256;

/// All places of a session.
#[derive(Debug, Default)]
pub(crate) struct PlaceTable {
    /// Places of calls, by process and the address that they return to.
    pub(crate) recent_calls: Places<((i32, Avma), u32), N_RECENT>,
    /// A load object that is to be opened, for a call in it has no place before that.
    pub(crate) unopened: Option<LoadObjectIdx>,
    list: Growing<SampledPlace>,
    of_key: FxHashMap<PlaceKey, u32>,
    /// The load objects that places are in. Who reads shares them.
    objects: Arc<FxHashMap<LoadObjectIdx, Arc<LoadObjectKey>>>,
    /// Scopes of code of which only the load object is known.
    modules: FxHashMap<LoadObjectIdx, Arc<Scope>>,
    /// The first place whose line was not asked for.
    next_unasked: u32,
    /// Places whose lines have been asked for.
    asked: FxHashMap<(LoadObjectIdx, Svma), Vec<u32>>,
    /// Those of them that are to be asked for again.
    again: VecDeque<(LoadObjectIdx, Svma)>,
    /// Places whose lines could not be found out.
    n_given_up: usize,
}

impl PlaceTable {
    /// Tells whether the trigger of a place is in another load object than this one.
    pub(crate) fn is_beyond(&self, place: u32, object: LoadObjectIdx) -> bool {
        let trigger = self.list.get(place).and_then(|place| place.trigger.as_ref());
        trigger.is_some_and(|trigger| trigger.object != object)
    }

    pub(crate) fn find(&self, key: PlaceKey) -> Option<u32> {
        self.of_key.get(&key).copied()
    }

    /// Tells whether further triggers are left out.
    pub(crate) const fn is_full(&self) -> bool {
        self.list.len() >= limit::MAX_HISTORY_PLACES
    }

    /// Tells whether no place is added, with a trigger or without.
    pub(crate) const fn is_overfull(&self) -> bool {
        self.list.len() >= 2 * limit::MAX_HISTORY_PLACES
    }

    pub(crate) fn add(&mut self, key: PlaceKey, place: SampledPlace) -> u32 {
        let number = self.list.push(place);
        self.of_key.insert(key, number);
        number
    }

    /// Keeps the key of a load object that a place is in: it may be asked about code when no process has it any more.
    pub(crate) fn know(&mut self, object: LoadObjectIdx, key: &Arc<LoadObjectKey>) {
        if !self.objects.contains_key(&object) {
            Arc::make_mut(&mut self.objects).insert(object, Arc::clone(key));
        }
    }

    /// The load objects that places are in.
    pub(crate) fn objects(&self) -> &Arc<FxHashMap<LoadObjectIdx, Arc<LoadObjectKey>>> {
        &self.objects
    }

    /// The scope of code in a load object of which nothing more is known.
    pub(crate) fn module(&mut self, object: LoadObjectIdx, path: &[u8]) -> Arc<Scope> {
        let scope = || {
            let object = String::from_utf8_lossy(path).into();
            Arc::new(Scope { object, ..Scope::default() })
        };
        Arc::clone(self.modules.entry(object).or_insert_with(scope))
    }

    /// The next place to find the line of, as long as not too many are being found.
    pub(crate) fn next_without_line(&mut self) -> Option<(LoadObjectIdx, Svma)> {
        if let Some(again) = self.again.pop_front() {
            return Some(again);
        }
        while self.asked.len() < limit::MAX_LINES_ASKED
            && let Some(place) = self.list.get(self.next_unasked)
        {
            let number = self.next_unasked;
            self.next_unasked += 1;
            let Some(TriggerPlace { object, at, .. }) = place.trigger else { continue };
            let waiting = self.asked.entry((object, at)).or_default();
            waiting.push(number);
            if waiting.len() == 1 {
                return Some((object, at));
            }
        }
        None
    }

    /// Takes what a worker says of the line at an instruction, for all places there.
    pub(crate) fn answer(&mut self, asked: (LoadObjectIdx, Svma), answer: Answer) {
        let mut scope = None;
        let lines = match answer {
            // It takes another turn.
            Answer::Unfinished => return self.again.push_back(asked),
            Answer::NotNow(_) => {
                let waiting = self.asked.remove(&asked).unwrap_or_default();
                let is_sampled =
                    |number: &&u32| self.list.get(**number).is_some_and(|it| !it.is_call());
                self.n_given_up += waiting.iter().filter(is_sampled).count();
                return;
            }
            Answer::Source(place) => {
                scope = Some(Arc::clone(&place.scope));
                Arc::clone(&place.lines)
            }
            _ => Arc::default(),
        };
        for number in self.asked.remove(&asked).unwrap_or_default() {
            self.list.change(number, |place| {
                place.lines = Some(Arc::clone(&lines));
                if let Some(scope) = scope.as_ref().filter(|_| place.is_call()) {
                    place.scope = Arc::clone(scope);
                }
            });
        }
    }

    pub(crate) const fn n_given_up(&self) -> usize {
        self.n_given_up
    }

    /// Places whose lines are not found out yet.
    pub(crate) fn n_without_line(&self) -> usize {
        self.asked.len() + self.list.len() - self.next_unasked as usize
    }

    pub(crate) fn freeze(&self) -> Frozen<SampledPlace> {
        self.list.freeze()
    }
}
