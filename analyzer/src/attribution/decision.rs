//! One sample's answer from what the walk back left: one trigger, or several that agree.

use crate::attribution::choice::{Choice, choose};
use crate::attribution::claim::{Claim, Placing, Witness};
use crate::attribution::frequency::Likely;
use crate::attribution::recent_site::KnownCode;
use crate::attribution::search::{self, Search, TriggerCandidate};
use crate::attribution::verdict::{Attribution, Located, Verdict, Wait};
use crate::attribution::world::World;
use crate::x86_64::abi::RETURN_ADDRESS_BYTES;
use crate::x86_64::state::State;
use dataspace_proto::address::Avma;
use dataspace_proto::event::EventKind;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Registers;
use dataspace_proto::sample_line::AddressSource;
use std::num::NonZeroU32;

impl World {
    /// Attributes a sample whose site is known.
    pub(crate) fn attribute_at(
        &mut self,
        code: KnownCode,
        (sample, kind, is_last): (&Sample, EventKind, bool),
        registers: &Registers,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let KnownCode { object, bias, site } = code;
        answer.site = Some(site);
        let Some(past) = self.sites.lend(site) else {
            answer.verdict = Verdict::Unknown(self.sites.reason(site));
            return self.by_sampled_address(sample, answer);
        };
        let mut search = self.search.take().unwrap_or_default();
        let located = Located { sample, kind, registers, object, bias, site, past: &past };
        let mut decided = self.attribute_by(&mut search, &located, answer);
        if decided.is_ok() && answer.is_unresolvable() {
            decided = self.by_frequency(&mut search, &located, is_last, answer);
        }
        self.sites.give_back(site, past);
        self.search = Some(search);
        decided
    }

    fn attribute_by(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let sample = located.sample;
        if sample.addr.is_none()
            && !located.kind.is_memory_only()
            && let Some(trigger) = located.past.silent_trigger()
        {
            // No register would tell more.
            answer.trigger = located.trigger_avma(trigger);
            answer.verdict = Verdict::NotMemory;
            return Ok(());
        }
        let thread_base = self.thread_storage.base(sample.tid);
        let begin = |state: &mut State| {
            state.sample(located.registers, located.bias, thread_base);
            Ok(())
        };
        let evidence = search::SampledAccess {
            addr: sample.addr,
            access: sample.data_source.and_then(|source| source.access),
            kind: located.kind,
        };
        search.run(located.past, begin, &evidence, located.stack());
        match choose(search, &evidence, located.past.trail.reach) {
            Choice::Left { has_return, has_rival } => {
                self.attribute_left(search, located, has_return, answer)?;
                if has_rival {
                    answer.trigger = None;
                }
                Ok(())
            }
            Choice::NotMemory(trigger) => {
                answer.trigger = trigger.and_then(|trigger| located.trigger_avma(trigger));
                answer.verdict = Verdict::NotMemory;
                Ok(())
            }
            Choice::Unknown(Reason::Blocked) if sample.addr.is_none() => {
                answer.verdict = Verdict::Unknown(Reason::Blocked);
                *answer = self.by_return_address(search, located, *answer)?;
                Ok(())
            }
            Choice::Unknown(reason) => {
                answer.verdict = Verdict::Unknown(reason);
                if search.survivors.is_empty() {
                    // A base that is not right any more contradicts everything.
                    self.thread_storage.forget_thread(sample.pid, sample.tid);
                }
                self.by_sampled_address(sample, answer)
            }
        }
    }

    /// The answer for an access to a return address.
    pub(crate) fn of_return_address(
        &mut self,
        located: &Located<'_>,
        access: Access,
        addr: Option<(Avma, AddressSource)>,
    ) -> Attribution {
        let named = self.names.stack();
        Attribution {
            access: Some(access),
            size: NonZeroU32::new(RETURN_ADDRESS_BYTES.into()),
            addr,
            site: Some(located.site),
            verdict: Verdict::Attributed(Claim::of(Witness::Instruction, named, Placing::Part)),
            ..Attribution::unknown(Reason::Unresolvable)
        }
    }

    /// The answer for the likely one of several possible triggers, where nothing in the sample tells which it was.
    fn by_frequency(
        &mut self,
        search: &mut Search,
        located: &Located<'_>,
        is_last: bool,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let Located { sample, object, site, past, .. } = *located;
        let is_whole = !search.outside.is_any() && !search.is_cut && sample.addr.is_none();
        let is_weighed = matches!(located.kind, EventKind::Clock | EventKind::Other);
        if past.trail.arrivals.is_empty() || !is_whole || !is_weighed {
            return Ok(());
        }
        let trigger = match self.sites.likely_trigger(site, object, past, is_last) {
            Likely::Trigger(trigger) => trigger,
            Likely::Nobody => return Ok(()),
            Likely::Open => return Err(Wait::Samples(site)),
        };
        search.survivors.retain(|survivor| survivor.trigger == trigger);
        if search.survivors.is_empty() {
            // The registers say that it was not this one.
            return Ok(());
        }
        if search.survivors.iter().all(|survivor| survivor.access.is_none()) {
            answer.trigger = located.trigger_avma(trigger);
            answer.verdict = Verdict::NotMemory;
            return Ok(());
        }
        self.attribute_unvoted(search, located, answer)?;
        answer.mark_by_frequency();
        Ok(())
    }

    /// The answer that all that is left agrees on, of which nobody learns.
    pub(crate) fn attribute_unvoted(
        &mut self,
        search: &Search,
        located: &Located<'_>,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        match search.only() {
            Some(only) => self.attribute_access(located, only, answer),
            None => self.attribute_several(search, located, false, answer),
        }
    }

    /// The answer that all that is left agrees on.
    #[inline(always)]
    pub(crate) fn attribute_left(
        &mut self,
        search: &Search,
        located: &Located<'_>,
        has_return: bool,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        match search.only().filter(|_| !has_return) {
            Some(only) => {
                self.attribute_access(located, only, answer)?;
                self.learn_thread_base(located, only);
                self.learn_thread_block(located, only);
                self.vote(located.sample, answer);
            }
            None => self.attribute_several(search, located, has_return, answer)?,
        }
        match answer.is_unresolvable() {
            true => self.by_sampled_address(located.sample, answer),
            false => Ok(()),
        }
    }

    /// The common part of several possible triggers, of which one may be the callee's return.
    fn attribute_several(
        &mut self,
        search: &Search,
        located: &Located<'_>,
        has_return: bool,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let mut common = has_return.then(|| self.attribute_return(search, located));
        // Confirmed ones first: a rival may only take away from what they say.
        let confirmed = search.candidates().filter(|it| it.survivor.is_confirmed);
        let rivals = search.candidates().filter(|it| !it.survivor.is_confirmed);
        for candidate in confirmed.chain(rivals) {
            let unknown = Attribution::unknown(Reason::Unresolvable);
            let mut attribution = Attribution { site: answer.site, ..unknown };
            self.attribute_access(located, candidate, &mut attribution)?;
            common = Some(match common {
                None => attribution,
                Some(first) if candidate.survivor.is_confirmed || !search.has_confirmed() => {
                    self.in_common(first, attribution)
                }
                Some(first) => self.beside_rival(first, attribution),
            });
        }
        match common {
            Some(common) => *answer = common,
            None => answer.verdict = Verdict::Unknown(Reason::Unresolvable),
        }
        Ok(())
    }

    /// The meet of two possible triggers: several triggers, but one object, which is known
    /// even so.
    fn in_common(&self, first: Attribution, second: Attribution) -> Attribution {
        let verdict = match (first.verdict, second.verdict) {
            (Verdict::Attributed(claim), Verdict::Attributed(other))
                if self.names.is_same(claim.named, other.named) =>
            {
                Verdict::Attributed(claim.meet(other))
            }
            (same, other) if same == other => same,
            _ => Verdict::Unknown(Reason::Unresolvable),
        };
        Attribution {
            trigger: first.trigger.filter(|_| first.trigger == second.trigger),
            access: first.access.filter(|_| first.access == second.access),
            size: first.size.filter(|_| first.size == second.size),
            addr: first.addr.filter(|_| first.addr == second.addr),
            segment: first.segment.filter(|_| first.addr == second.addr),
            site: first.site,
            verdict,
        }
    }

    /// The rest of a confirmed answer beside an instruction that cannot be tested. If that was
    /// the trigger, it touched the same address: the same object, if it is as wide.
    fn beside_rival(&self, confirmed: Attribution, rival: Attribution) -> Attribution {
        let common = self.in_common(confirmed, rival);
        // A rival with a name of its own contradicts: `q->b` beside the confirmed `p->a`. One without a
        // name, or with a name by votes, has nothing to say against it.
        let is_nameless = match rival.verdict {
            Verdict::Unknown(_) => true,
            Verdict::Attributed(claim) => claim.grounds.votes != 0,
            Verdict::NotMemory => false,
        };
        if !is_nameless || confirmed.size != rival.size {
            return common;
        }
        let verdict = match confirmed.verdict {
            Verdict::Attributed(claim) => Verdict::Attributed(claim.without_vote()),
            verdict => verdict,
        };
        Attribution { verdict, ..common }
    }

    /// The return of the callee, which read its address from the stack.
    fn attribute_return(&mut self, search: &Search, located: &Located<'_>) -> Attribution {
        let stack = search.returned;
        let sampled = located.sample.addr.map(|addr| (addr, AddressSource::Sampled));
        let read = stack.map(|stack| {
            (Avma(stack.wrapping_sub(RETURN_ADDRESS_BYTES.into())), AddressSource::Computed)
        });
        self.of_return_address(located, Access::Load, sampled.or(read))
    }

    /// The thread's block of the load object that the code is of, if the code tells what the base
    /// register of the one trigger that is left points at.
    fn learn_thread_block(&mut self, located: &Located<'_>, trigger: TriggerCandidate<'_>) {
        let Some((found, typed)) = trigger.survivor.chosen(located.past) else { return };
        let Some(link) = typed.thread_link.filter(|link| link.is_certain) else { return };
        let Sample { pid, tid, .. } = *located.sample;
        let avma = Avma(found.svma.0.wrapping_add(located.bias));
        let Some(module) = self.processes.thread_module(pid, avma) else { return };
        let base = if link.is_distance { self.thread_storage.base(tid) } else { Some(0) };
        let value = trigger.state.get(link.base);
        if let (Some(base), Some(value)) = (base, value) {
            let start = base.wrapping_add(value).wrapping_sub(link.offset);
            self.thread_storage.learn_block(pid, tid, module, Avma(start));
        }
    }

    /// The base of the thread's storage, if the one trigger that is left tells it.
    fn learn_thread_base(&mut self, located: &Located<'_>, trigger: TriggerCandidate<'_>) {
        let read = trigger.state.thread_base();
        let base = match (located.sample.addr, located.kind) {
            (Some(addr), EventKind::Memory) => trigger
                .survivor
                .chosen(located.past)
                .and_then(|(_, typed)| trigger.state.thread_base_at(&typed.memory.address, addr))
                .or(read),
            _ => read,
        };
        let Some(base) = base else { return };
        let Sample { pid, tid, .. } = *located.sample;
        self.note_program(pid);
        self.thread_storage.learn_base(pid, tid, base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_triggers_what_both_are_said_of_is_told() {
        let world = World::default();
        let first = Attribution {
            trigger: Some(Avma(0x1000)),
            access: Some(Access::Load),
            size: NonZeroU32::new(8),
            addr: Some((Avma(0x5000), AddressSource::Computed)),
            ..Attribution::unknown(Reason::Unascertainable)
        };
        assert_eq!(world.in_common(first, first), first);
        let trigger = Attribution { trigger: Some(Avma(0x1004)), ..first };
        let access = Attribution { access: Some(Access::Store), ..first };
        let size = Attribution { size: NonZeroU32::new(4), ..first };
        let addr = Attribution { addr: Some((Avma(0x5008), AddressSource::Computed)), ..first };
        let verdict = Attribution { verdict: Verdict::Unknown(Reason::RegisterLoss), ..first };
        let unresolvable = Verdict::Unknown(Reason::Unresolvable);
        for (other, common) in [
            (trigger, Attribution { trigger: None, ..first }),
            (access, Attribution { access: None, ..first }),
            (size, Attribution { size: None, ..first }),
            (addr, Attribution { addr: None, ..first }),
            (verdict, Attribution { verdict: unresolvable, ..first }),
        ] {
            assert_eq!(world.in_common(first, other), common);
        }
    }
}
