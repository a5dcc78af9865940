//! One access: every witness is asked what it is to, in their order, and their claims are joined.

use crate::attribution::claim::{Claim, Placing, Relation, Witness};
use crate::attribution::search::TriggerCandidate;
use crate::attribution::verdict::{Attribution, Located, Verdict, Wait};
use crate::attribution::witness::Asked;
use crate::attribution::world::{Paths, World};
use crate::index::question::Needs;
use crate::index::site::VariableRole;
use crate::x86_64::access::RegisterLoss;
use dataspace_proto::event::EventKind;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::AddressSource;
use std::num::NonZeroU32;

/// The size of an access whose instruction is not known.
const UNKNOWN_SIZE: u64 = 0;

impl World {
    /// Attributes one access: writes all that is known of it to `answer`, which has the site.
    pub(crate) fn attribute_access(
        &mut self,
        located: &Located<'_>,
        candidate: TriggerCandidate<'_>,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let TriggerCandidate { survivor, state } = candidate;
        let Some((_, typed)) = survivor.chosen(located.past) else {
            answer.verdict = Verdict::Unknown(Reason::Unresolvable);
            return Ok(());
        };
        let memory = &typed.memory;
        let computed = state.effective_address(&memory.address).ok();
        let sampled = located.sample.addr.map(|sampled| (sampled, AddressSource::Sampled));
        let computed_addr = computed.map(|computed| (computed, AddressSource::Computed));
        let addr = match located.kind {
            // The sampled address is where the watched bytes begin; the access may be to others of them.
            EventKind::Breakpoint { .. } if sampled.map(|it| it.0) != computed => {
                computed_addr.or(sampled)
            }
            _ => sampled.or(computed_addr),
        };
        answer.trigger = located.trigger_avma(survivor.trigger);
        answer.access = Some(memory.access);
        answer.size = NonZeroU32::new(memory.size);
        answer.set_addr(addr);
        if addr.is_some_and(|(avma, _)| !avma.is_user()) {
            answer.verdict = Verdict::Unknown(Reason::InvalidAddress);
            return Ok(());
        }
        let asked = Asked { located, candidate, typed, addr, computed };
        Ok(self.judge(&asked, answer)?)
    }

    /// Joins what the witnesses say, and writes the verdict.
    fn judge(&mut self, asked: &Asked<'_>, answer: &mut Attribution) -> Result<(), Needs> {
        let by_type = self.instruction(asked);
        let by_address = self.variable(asked, &mut answer.segment)?;
        let verdict = &mut answer.verdict;
        let is_lost = || {
            let distance = asked.candidate.state.thread_distance(&asked.typed.memory.address);
            matches!(distance, Some(Err(RegisterLoss)))
        };
        let by_type = match by_type {
            // `p = is_first ? &counter : node->count`: the ways join to one type, and only the address
            // tells.
            // The pointer is to that variable, or else to what it is typed as.
            _ if by_address.is_some() && asked.typed.variable == VariableRole::PointedAt => {
                Err(Reason::Undetermined)
            }
            // Neither the thread's base nor the distance from it is known.
            Err(Reason::Unidentified) if asked.addr.is_none() && is_lost() => {
                Err(Reason::RegisterLoss)
            }
            by_type => by_type,
        };
        match (by_type, by_address) {
            (Ok(typed), Some(located)) => {
                let relation = self.names.relation(typed.named, located.named);
                let is_reached = asked.typed.variable == VariableRole::Reached;
                *verdict = Verdict::Attributed(match relation {
                    Relation::Contradict if is_reached => located,
                    relation => typed.join(located, relation),
                });
            }
            // No variable is there: heap. `*p` with `int *p` is a number by its type, and an element of
            // what lies around it.
            (Ok(claim), None) => {
                let claim = self.in_surroundings(claim, asked);
                let is_counted = asked.typed.is_counted;
                *verdict =
                    Verdict::Attributed(if is_counted { claim.without_vote() } else { claim });
            }
            (Err(_), Some(claim)) => *verdict = Verdict::Attributed(claim),
            (Err(reason), None) => {
                let further = self.further(asked)?;
                *verdict = further.map_or(Verdict::Unknown(reason), Verdict::Attributed);
            }
        }
        Ok(())
    }

    /// The claim of an instruction, joined with that of votes on the object around it, if it knows no more
    /// than a number or a pointer.
    fn in_surroundings(&mut self, claim: Claim, asked: &Asked<'_>) -> Claim {
        // Only of a number that begins just there do votes know what it is a part of.
        let is_bare = claim.placing == Placing::Addressed && self.names.is_bare_scalar(claim.named);
        let Some(avma) = asked.avma().filter(|_| is_bare) else { return claim };
        match self.voted_around(asked.located.sample, avma, &asked.typed.memory) {
            Some(around) => {
                claim.join(around, self.names.relation_around(claim.named, around.named))
            }
            None => claim,
        }
    }

    /// The claim of those who are asked where neither instruction nor variables tell: the callers or, rather
    /// than bytes that the instruction or they themselves know of, votes.
    fn further(&mut self, asked: &Asked<'_>) -> Result<Option<Claim>, Needs> {
        let passed = self.passed(asked)?;
        if passed.is_some_and(|claim| claim.is_before(Witness::Votes)) {
            return Ok(passed);
        }
        if let Some(stack) = self.outer_frame(asked)? {
            return Ok(Some(stack));
        }
        let sample = asked.located.sample;
        let memory = Some(&asked.typed.memory);
        let voted = asked.avma().and_then(|avma| self.voted(sample, avma, memory));
        Ok(voted.or_else(|| self.pointed_bytes(asked)).or(passed))
    }

    /// Attributes a sample without a trigger by its address alone.
    pub(crate) fn by_sampled_address(
        &mut self,
        sample: &Sample,
        answer: &mut Attribution,
    ) -> Result<(), Wait> {
        let Some(avma) = sample.addr.filter(|avma| avma.is_user()) else { return Ok(()) };
        if self.paths == Paths::Type {
            return Ok(());
        }
        answer.set_addr(Some((avma, AddressSource::Sampled)));
        let segment = &mut answer.segment;
        let claim = match self.static_object(sample, avma, UNKNOWN_SIZE, segment)? {
            Some(named) => Some(Claim::of(Witness::SampledAddress, named, Placing::Part)),
            None => self.voted(sample, avma, None),
        };
        if let Some(claim) = claim {
            answer.verdict = Verdict::Attributed(claim);
        }
        Ok(())
    }
}
