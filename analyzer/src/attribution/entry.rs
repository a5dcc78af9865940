//! Samples at a function's first instruction: the trigger is what led there, and the sampled stack has the return address
//! of the call that came before.

use crate::attribution::choice::{Choice, choose};
use crate::attribution::code_place::NotLocated;
use crate::attribution::recent_site::{CodePlace, KnownCode};
use crate::attribution::search::{SampledAccess, Search};
use crate::attribution::verdict::{Attribution, Located, Verdict, Wait};
use crate::attribution::world::World;
use crate::bytes::file::LoadObjectIdx;
use crate::index::call_site::{CallForm, CalleeAddress};
use crate::index::entered::{ComesBack, EnteredFunction, JumpEntry, JumpSite, PointerJump, WaysIn};
use crate::index::function_type::{Casts, FunctionType};
use crate::index::question::{Needs, Question};
use crate::index::site::Past;
use crate::limit;
use crate::x86_64::backtrack::Skid;
use crate::x86_64::pointer::CodePointer;
use crate::x86_64::sampled_stack::SampledStack;
use crate::x86_64::state::State;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::register::Register;
use dataspace_proto::sample_line::AddressSource;
use std::ops::Range;
use std::sync::Arc;

/// The way to a function's first instruction.
struct WayIn {
    led: Led,
    /// It is this one unless the program has changed what the file has in static pointers.
    is_likely: bool,
}

impl WayIn {
    /// One that nothing could have changed.
    const fn sure(led: Led) -> Self {
        Self { led, is_likely: false }
    }
}

/// The last step there.
#[derive(Clone)]
enum Led {
    /// The call, which touched nothing but the place of its return address.
    Call,
    /// The instruction at this address, by a pointer that it read.
    Through(Avma),
    /// One of these instructions, each by a pointer that it read.
    OneOf(Vec<Avma>),
    /// The function that was called, which went on here by a jump.
    Jump,
}

/// Function that a call reached first, as far as it is known.
#[derive(Clone, Copy)]
enum Reached<'a> {
    /// The one that begins here.
    Function(Svma),
    /// One that a pointer leads to, at this place, and takes what is told.
    Pointed(Option<Svma>, Option<&'a FunctionType>),
    /// Any.
    Any,
}

impl Reached<'_> {
    /// Tells whether it may be one that goes on to this jump, after at most so many steps, which are taken off.
    fn may_be(self, jump: &JumpSite, casts: Casts, n_left: &mut usize) -> bool {
        let may_be = |entry: &JumpEntry| {
            *n_left = n_left.saturating_sub(1);
            match (self, &entry.function_type) {
                _ if *n_left == 0 => true,
                (Self::Function(start), _) => start == entry.start,
                (Self::Pointed(_, Some(pointed)), Some(taken)) => {
                    taken.may_be_within(pointed, casts, n_left)
                }
                _ => true,
            }
        };
        jump.entries.is_empty() || jump.entries.iter().any(may_be)
    }
}

/// Tells of each jump whether its function may run after the call, before the called one returns: the called one, or
/// another that such a jump may lead to.
fn reached(jumps: &[PointerJump], first: Reached<'_>, casts: Casts) -> Vec<bool> {
    let mut are_reached = vec![false; jumps.len()];
    let mut work = vec![first];
    let mut n_left = limit::MAX_TYPE_STEPS;
    while let Some(from) = work.pop() {
        for (jump, is_reached) in jumps.iter().zip(&mut are_reached) {
            let mut may_be = || {
                !jump.are_few()
                    || jump.sites.iter().any(|site| from.may_be(site, casts, &mut n_left))
            };
            if !*is_reached && may_be() {
                *is_reached = true;
                work.push(Reached::Pointed(None, jump.pointed.as_deref()));
            }
        }
    }
    are_reached
}

/// A sample at a function's first instruction, and the call that the return address on its stack stands after.
#[derive(Clone, Copy)]
struct AtEntry<'a> {
    located: &'a Located<'a>,
    entered: &'a EnteredFunction,
    call: &'a CallForm,
    /// The address of the call, and its load object.
    at: Avma,
    caller: LoadObjectIdx,
    return_address: Avma,
    /// Casts that pointers are taken to have been through.
    casts: Casts,
}

impl AtEntry<'_> {
    /// A jump by a register may have led here: it has this address.
    fn is_in_register(self) -> bool {
        let Located { sample, registers, .. } = *self.located;
        let mut general = Register::ALL.iter().filter(|register| **register != Register::Rip);
        general.any(|register| registers.get(*register) == Some(sample.ip.0))
    }

    /// The jumps of other functions that may have led here, each by a pointer in memory; `None` where a place is not
    /// known.
    fn possible_jumps<'w>(self, ways: &'w WaysIn, first: Reached<'_>) -> Option<Vec<Possible<'w>>> {
        /// No program has anything before this address (`vm.mmap_min_addr`), or after that one.
        const USER: Range<u64> = 0x1_0000..1 << 47;
        let Located { registers, bias, .. } = *self.located;
        let state = State::sampled(registers, bias, None);
        let mut are_reached = None;
        let mut possible = Vec::new();
        for (at, jump) in ways.perhaps(self.casts) {
            let place = state.effective_address(&jump.operand).ok()?;
            let in_file = Svma(place.0.wrapping_sub(bias));
            let is_held = self.entered.is_held_at(in_file);
            let is_elsewhere = !is_held && self.entered.loaded.binary_search(&in_file).is_ok();
            let is_put = is_held || ways.put.contains(&(at as u16));
            let holds_other = !is_put && self.entered.pointers.binary_search(&in_file).is_ok();
            let is_calls = matches!(first, Reached::Pointed(Some(place), _) if place == in_file);
            if !USER.contains(&place.0) || is_elsewhere {
                continue;
            }
            let are_reached =
                are_reached.get_or_insert_with(|| reached(&ways.jumps, first, self.casts));
            if is_held || are_reached.get(at) == Some(&true) {
                possible.push(Possible { jump, is_held, is_calls, holds_other });
            }
        }
        Some(possible)
    }
}

/// A jump that may have led to a sample.
#[derive(Clone, Copy)]
struct Possible<'w> {
    jump: &'w PointerJump,
    /// The file has this function where its pointer is.
    is_held: bool,
    /// The call has its pointer in the same place, as far as the registers are the same.
    is_calls: bool,
    /// The file has another function there, and code is not seen to put this one there.
    holds_other: bool,
}

/// The instruction at `call`, or one of the jumps by the same pointer; `None` where there are others. Where the file has
/// this function in that pointer (`is_held`), these are likely: whatever jumps here by a pointer that the file says
/// nothing of was called by this one, in place of what is in it from the start. So they are where the file has other
/// functions in all other pointers.
fn through(call: Avma, possible: &[Possible<'_>], is_held: bool, bias: u64) -> Option<WayIn> {
    let (alike, others): (Vec<Possible<'_>>, Vec<Possible<'_>>) =
        possible.iter().partition(|it| it.is_calls);
    if !alike.iter().all(|it| it.jump.are_few()) {
        return None;
    }
    let sites = alike.iter().flat_map(|it| &it.jump.sites);
    let jumps = sites.map(|site| Avma(site.at.0.wrapping_add(bias)));
    let ways: Vec<Avma> = [call].into_iter().chain(jumps).collect();
    match others.as_slice() {
        [] if alike.is_empty() => Some(WayIn::sure(Led::Through(call))),
        [] => Some(WayIn::sure(Led::OneOf(ways))),
        others => {
            let is_new = |it: &Possible<'_>| !it.is_held;
            let is_likely = is_held && others.iter().all(is_new);
            let is_likely = is_likely || others.iter().all(|it| it.holds_other);
            is_likely.then_some(WayIn { led: Led::OneOf(ways), is_likely })
        }
    }
}

impl World {
    /// The answer for a sample at a function's first instruction: the call that the sampled return address stands
    /// after, where that is seen to lead here. It has just written that address.
    pub(crate) fn by_return_address(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        blocked: Attribution,
    ) -> Result<Attribution, Wait> {
        let Located { sample, registers, past, .. } = *located;
        let (Some(stack), Some(entered)) = (registers.get(Register::Rsp), &past.entry) else {
            return Ok(blocked);
        };
        // The loader's own way into a function that is called for the first time.
        if registers.get(Register::R11) == Some(sample.ip.0) {
            return Ok(blocked);
        }
        let read = sample.stack.word(Avma(stack), Avma(stack));
        let Some(return_address) = read.map(Avma) else { return Ok(blocked) };
        let Some((caller, after)) = self.return_place(sample.pid, return_address)? else {
            return Ok(blocked);
        };
        let Some(call) = self.call_forms.find(caller, after).map(Arc::clone) else {
            return Err(Wait::Answer(Needs {
                object: caller,
                question: Question::CallForm(after),
            }));
        };
        let at = Avma(return_address.0.wrapping_sub(call.length.into()));
        let casts = Casts::Dropping;
        let entry = AtEntry { located, entered, call: &call, at, caller, return_address, casts };
        let Some(WayIn { led, is_likely }) = self.way(entry)? else { return Ok(blocked) };
        let mut found = match led {
            Led::Call => {
                let addr = Some((Avma(stack), AddressSource::Computed));
                let found = self.of_return_address(located, Access::Store, addr);
                Attribution { trigger: Some(at), ..found }
            }
            Led::Jump => Attribution { verdict: Verdict::NotMemory, ..blocked },
            Led::Through(at) => self.at_pointer(search, located, at, blocked)?,
            Led::OneOf(jumps) => self.at_one_of(search, located, &jumps, blocked)?,
        };
        match is_likely {
            true => found.mark_by_frequency(),
            false => self.vote(sample, &found),
        }
        Ok(found)
    }

    /// The way by which the function was entered; `None` where several are possible.
    fn way(&self, entry: AtEntry<'_>) -> Result<Option<WayIn>, Needs> {
        let AtEntry { located, entered, call, .. } = entry;
        let here = located.ip();
        let leads_here = |target: Option<Svma>| entry.caller == located.object && target == here;
        let seen = if leads_here(call.written) {
            Some(WayIn::sure(Led::Call))
        } else if call.onward.iter().any(|target| leads_here(Some(*target))) {
            Some(WayIn::sure(Led::Jump))
        } else {
            self.led_by_pointer(entry)
        };
        let is_only_called = entered.is_only_called && !entry.is_in_register();
        match (entered.comes_back, seen) {
            (ComesBack::Never, Some(way)) if way.is_likely && is_only_called => {
                let found = self.way_besides(entry, Some(way.led.clone()))?;
                Ok(Some(found.unwrap_or(way)))
            }
            (ComesBack::Never, Some(way)) => Ok(Some(way)),
            (ComesBack::Unlikely, Some(way)) => Ok(Some(WayIn { is_likely: true, ..way })),
            (ComesBack::ByJump, _) => Ok(None),
            (_, seen) if is_only_called => self.way_besides(entry, seen.map(|way| way.led)),
            _ => Ok(None),
        }
    }

    /// The same for a function that is only called, by other ways than what was `seen` as well. Where several are possible,
    /// that which is the only one without casts that drop arguments is likely.
    fn way_besides(&self, entry: AtEntry<'_>, seen: Option<Led>) -> Result<Option<WayIn>, Needs> {
        if let Some(way) = self.way_of_all(entry, seen.clone())? {
            return Ok(Some(way));
        }
        let keeping = AtEntry { casts: Casts::Keeping, ..entry };
        let likely = self.way_of_all(keeping, seen)?;
        Ok(likely.map(|way| WayIn { is_likely: true, ..way }))
    }

    /// The same, with these casts.
    fn way_of_all(&self, entry: AtEntry<'_>, seen: Option<Led>) -> Result<Option<WayIn>, Needs> {
        let AtEntry { located, entered, .. } = entry;
        let here = located.ip();
        let Some(here) = here else { return Ok(None) };
        let Some(ways) = self.ways_in.find(located.object, here) else {
            return Err(Needs { object: located.object, question: Question::WaysIn(here) });
        };
        let Some(ways) = &**ways else { return Ok(None) };
        match seen {
            Some(led) => {
                let place = self.place_of_pointer(entry);
                let first = Reached::Pointed(place, ways.onward.as_deref());
                let is_held = place.is_some_and(|place| entered.is_held_at(place));
                let jumps = entry.possible_jumps(ways, first);
                Ok(jumps.and_then(|jumps| match led {
                    Led::Through(at) => through(at, &jumps, is_held, located.bias),
                    led => {
                        let is_likely = !jumps.is_empty();
                        let are_other = jumps.iter().all(|it| it.holds_other);
                        are_other.then_some(WayIn { led, is_likely })
                    }
                }))
            }
            None => self.only_way(entry, ways),
        }
    }

    /// The way by which the function was entered, where nothing shows that the call led here: all other ways are ruled
    /// out.
    fn only_way(&self, entry: AtEntry<'_>, ways: &WaysIn) -> Result<Option<WayIn>, Needs> {
        let AtEntry { located, entered, call, at, casts, .. } = entry;
        let is_known = call.stub.is_some() || call.callee != CalleeAddress::Unknown;
        let place = self.place_of_pointer(entry).filter(|_| !is_known);
        // The file has another function there: the program may have put this one there since.
        let is_changed = place.is_some_and(|place| entered.is_of_other(place));
        if is_changed && entered.is_taken {
            return Ok(None);
        }
        let mut place = place.filter(|place| entered.pointers.binary_search(place).is_err());
        let mut site = None;
        if place.is_some() {
            site = self.call_site(located.sample.pid, entry.return_address)?;
        }
        let pointed = site.as_ref().and_then(|(_, site, _)| site.pointed.as_deref());
        if let (Some(taken), Some(pointed)) = (&ways.function_type, pointed) {
            place = place.filter(|_| taken.may_be_called_as(pointed, entry.casts));
        }
        let first = match (place, call.written) {
            (Some(_), _) => Reached::Pointed(place, pointed),
            (None, Some(written)) if entry.caller == located.object && call.stub.is_none() => {
                Reached::Function(written)
            }
            _ => Reached::Any,
        };
        let Some(jumps) = entry.possible_jumps(ways, first) else { return Ok(None) };
        if place.is_some() {
            return Ok(through(at, &jumps, false, located.bias));
        }

        let (held, others): (Vec<Possible<'_>>, Vec<Possible<'_>>) =
            jumps.iter().partition(|it| it.is_held);
        let [Possible { jump, .. }] = held[..] else { return Ok(None) };
        let at = |site: &JumpSite| Avma(site.at.0.wrapping_add(located.bias));
        let mut n_left = limit::MAX_TYPE_STEPS;
        let mut sites: Vec<Avma> = jump
            .sites
            .iter()
            .filter(|site| first.may_be(site, casts, &mut n_left))
            .map(at)
            .collect();
        if sites.is_empty() {
            // After more than one jump it is any of them.
            sites.extend(jump.sites.iter().map(at));
        }
        let is_likely = is_changed || !others.is_empty();
        Ok(jump.are_few().then_some(WayIn { led: Led::OneOf(sites), is_likely }))
    }

    /// Tells whether the call led here by a pointer: one that still has this address, one of this function's name, or one
    /// that the file has with this address.
    fn led_by_pointer(&self, entry: AtEntry<'_>) -> Option<WayIn> {
        let AtEntry { located, entered, call, at, .. } = entry;
        let Located { sample, registers, .. } = *located;
        let is_named = match &call.callee {
            CalleeAddress::Named(name) => entered.names.contains(name),
            // One of those that a function chooses from at load time.
            CalleeAddress::At(starts) => {
                let is_ours = entry.caller == located.object;
                is_ours && located.ip().is_some_and(|here| starts.contains(&here))
            }
            CalleeAddress::Unknown => false,
        };
        if let Some(stub) = call.stub {
            let (_, bias_of_call) = self.locate(sample.pid, at).ok()?;
            let jump = Avma(stub.0.wrapping_add(bias_of_call));
            return is_named.then_some(WayIn::sure(Led::Through(jump)));
        }
        if let CodePointer::Register(register) = call.pointer? {
            return (registers.get(register) == Some(sample.ip.0))
                .then_some(WayIn::sure(Led::Call));
        }
        let place = self.place_of_pointer(entry)?;
        let is_likely = !is_named && !entered.is_loaded(place);
        (is_named || entered.is_held_at(place))
            .then_some(WayIn { led: Led::Through(at), is_likely })
    }

    /// The place of the pointer that the call went by, as an address of the load object of the sample's code.
    fn place_of_pointer(&self, entry: AtEntry<'_>) -> Option<Svma> {
        let Some(CodePointer::Memory(operand)) = entry.call.pointer else { return None };
        let Located { sample, registers, bias, .. } = *entry.located;
        let (_, bias_of_call) = self.locate(sample.pid, entry.at).ok()?;
        let state = State::sampled(registers, bias_of_call, None);
        let place = state.effective_address(&operand).ok()?;
        Some(Svma(place.0.wrapping_sub(bias)))
    }

    /// The answer for one of the instructions at `ways`, if it is the same for all.
    fn at_one_of(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        ways: &[Avma],
        blocked: Attribution,
    ) -> Result<Attribution, Wait> {
        let mut only: Option<Attribution> = None;
        for at in ways {
            let found = self.at_pointer(search, located, *at, blocked)?;
            match only {
                None => only = Some(found),
                Some(known) if known.verdict == found.verdict => {
                    only = Some(Attribution { trigger: None, ..known });
                }
                Some(_) => return Ok(blocked),
            }
        }
        Ok(only.unwrap_or(blocked))
    }

    /// The answer for the instruction at `at`, which has just led here by a pointer that it read.
    fn at_pointer(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        at: Avma,
        blocked: Attribution,
    ) -> Result<Attribution, Wait> {
        let place = CodePlace { pid: located.sample.pid, ip: at, skid: Skid::Exact };
        let code = match self.site(place) {
            Ok(code) => code,
            Err(NotLocated::Needs(needs)) => return Err(needs.into()),
            Err(NotLocated::Unknown(_)) => return Ok(blocked),
        };
        let Some(past) = self.sites.lend(code.site) else { return Ok(blocked) };
        let found = self.before(search, located, code, &past);
        self.sites.give_back(code.site, past);
        Ok(found?.unwrap_or(blocked))
    }

    /// The answer for the only instruction of `past`, which ran just before the sample.
    fn before(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        KnownCode { object, bias, site }: KnownCode,
        past: &Past,
    ) -> Result<Option<Attribution>, Wait> {
        let thread_base = self.thread_storage.base(located.sample.tid);
        let Some(only) = past.trail.nodes.first() else { return Ok(None) };
        let begin = |state: &mut State| {
            state.sample(located.registers, bias, thread_base);
            state.undo(&only.effects)
        };
        let evidence = SampledAccess { addr: None, access: None, kind: located.kind };
        search.run(past, begin, &evidence, SampledStack::NONE);
        match choose(search, &evidence, past.trail.reach) {
            Choice::Left { .. } => {
                let unknown = Attribution::unknown(Reason::Unresolvable);
                let mut found = Attribution { site: Some(located.site), ..unknown };
                let located = Located { object, bias, site, past, ..*located };
                self.attribute_unvoted(search, &located, &mut found)?;
                Ok(Some(found))
            }
            Choice::NotMemory(_) | Choice::Unknown(_) => Ok(None),
        }
    }
}
