//! Claims: what witnesses say of one access, and how two claims become one.

use crate::attribution::name_table::NamedIdx;
use dataspace_proto::sample_line::Evidence;

/// One source of claims, the most believed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Witness {
    /// A variable, or the frame, at the address that came with the sample.
    SampledAddress,
    /// The instruction, by the debug information.
    Instruction,
    /// A variable, or the frame, at the address that the operand computes to. That comes from the same
    /// trigger, and so never beats the instruction.
    ComputedAddress,
    /// The arguments that the function's callers pass.
    Caller,
    /// Votes of typed code for what lies on the heap: no testimony of this access, and so no conflict.
    Votes,
    /// Bytes that the instruction's pointer leads to: anything may lie there.
    PointedBytes,
    /// Bytes that callers pass.
    PassedBytes,
}

/// An access's place in the object that is claimed. More is known of the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placing {
    /// Somewhere in it.
    Somewhere,
    /// At the part that is named.
    Part,
    /// There, and the sample's address is the part's: the sample may vote.
    Addressed,
}

/// Some of the witnesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Witnesses(u8);

impl Witnesses {
    const fn only(witness: Witness) -> Self {
        Self(1 << witness as u8)
    }

    const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Rank of the most believed of them; the less the better.
    const fn rank(self) -> u32 {
        self.0.trailing_zeros()
    }
}

const INSTRUCTION: Witnesses = Witnesses::only(Witness::Instruction);
const POINTED_BYTES: Witnesses = Witnesses::only(Witness::PointedBytes);

/// Grounds that a claim rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grounds {
    /// The witnesses who say so.
    witnesses: Witnesses,
    /// The witnesses who say something else.
    against: Witnesses,
    /// Number of samples that voted for it.
    pub(crate) votes: u32,
    /// Number of calls out to the code that knows the type; 0 for the trigger's own function.
    pub(crate) calls_out: u8,
    /// Of several triggers that it may have had, this is the one by far most often taken.
    pub(crate) is_by_frequency: bool,
}

impl Grounds {
    /// The word of one witness.
    const fn of(witness: Witness) -> Self {
        let (witnesses, against) = (Witnesses::only(witness), Witnesses(0));
        Self { witnesses, against, votes: 0, calls_out: 0, is_by_frequency: false }
    }

    /// All that two claims for one object rest on.
    fn and(self, other: Self) -> Self {
        Self {
            witnesses: self.witnesses.and(other.witnesses),
            against: self.against.and(other.against),
            votes: self.votes.max(other.votes),
            calls_out: self.calls_out.max(other.calls_out),
            is_by_frequency: self.is_by_frequency || other.is_by_frequency,
        }
    }

    /// In the words of the output.
    pub(crate) fn evidence(self) -> Evidence {
        if self.against != Witnesses::default() {
            return Evidence::Conflict;
        }
        match self.witnesses {
            INSTRUCTION | POINTED_BYTES => Evidence::Type,
            several if several.contains(INSTRUCTION) => Evidence::Both,
            _ => Evidence::Address,
        }
    }
}

/// A statement that an access is to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) named: NamedIdx,
    pub(crate) placing: Placing,
    pub(crate) grounds: Grounds,
}

/// Relation between the objects of two claims for one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// They are one, or one is a part of the other: the one that says more.
    Agree(NamedIdx),
    /// Only this one says what lies there; the other is but a name or a type for anything.
    Only(NamedIdx),
    /// They contradict each other.
    Contradict,
}

impl Claim {
    /// The claim of one witness.
    pub(crate) fn of(witness: Witness, named: NamedIdx, placing: Placing) -> Self {
        Self { named, placing, grounds: Grounds::of(witness) }
    }

    /// The same, for what does not vote: it is not its instruction alone that says so.
    pub(crate) fn without_vote(self) -> Self {
        Self { placing: self.placing.min(Placing::Part), ..self }
    }

    /// The same, for a trigger that is likely and not certain. It does not vote.
    pub(crate) fn by_frequency(self) -> Self {
        let grounds = Grounds { is_by_frequency: true, ..self.grounds };
        Self { grounds, ..self.without_vote() }
    }

    /// The claim that two make together, whichever comes first.
    pub(crate) fn join(self, other: Self, relation: Relation) -> Self {
        let rank = |claim: &Self| (claim.grounds.witnesses.rank(), claim.named);
        let is_in_order = rank(&self) <= rank(&other);
        let (believed, other) = if is_in_order { (self, other) } else { (other, self) };
        let placing = believed.placing.min(other.placing);
        match relation {
            Relation::Agree(named) => {
                Self { named, placing, grounds: believed.grounds.and(other.grounds) }
            }
            Relation::Only(named) if named == other.named => Self { placing, ..other },
            Relation::Only(_) => Self { placing, ..believed },
            Relation::Contradict if !other.is_before(Witness::Votes) => believed,
            Relation::Contradict => {
                let against = believed.grounds.against.and(other.grounds.witnesses);
                Self { placing, grounds: Grounds { against, ..believed.grounds }, ..believed }
            }
        }
    }

    /// The meet of the claims of two instructions, of which either may have been the trigger, and which both
    /// name this object.
    pub(crate) fn meet(self, other: Self) -> Self {
        let placing = self.placing.min(other.placing).min(Placing::Part);
        let calls_out = self.grounds.calls_out.max(other.grounds.calls_out);
        Self { placing, grounds: Grounds { calls_out, ..self.grounds }, ..self }
    }

    /// Tells whether somebody says so who is believed more than `witness`.
    pub(crate) const fn is_before(&self, witness: Witness) -> bool {
        self.grounds.witnesses.rank() < witness as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim() -> impl Strategy<Value = Claim> {
        let witness = prop_oneof![
            Just(Witness::SampledAddress),
            Just(Witness::Instruction),
            Just(Witness::ComputedAddress),
            Just(Witness::Caller),
            Just(Witness::Votes),
            Just(Witness::PointedBytes),
            Just(Witness::PassedBytes),
        ];
        let placing =
            prop_oneof![Just(Placing::Somewhere), Just(Placing::Part), Just(Placing::Addressed)];
        (witness, placing, 0u32..4, 0u32..3, 0u8..3).prop_map(
            |(witness, placing, named, votes, calls_out)| {
                let named = NamedIdx::at(named);
                let grounds = Grounds { votes, calls_out, ..Grounds::of(witness) };
                Claim { named, placing, grounds }
            },
        )
    }

    /// The relations that the objects of two claims may have: one object agrees with itself.
    fn relations(one: &Claim, other: &Claim) -> Vec<Relation> {
        if one.named == other.named {
            return vec![Relation::Agree(one.named)];
        }
        let either = [one.named, other.named];
        let told = either.into_iter().flat_map(|it| [Relation::Agree(it), Relation::Only(it)]);
        told.chain([Relation::Contradict]).collect()
    }

    proptest! {
        #[test]
        fn two_claims_join_to_one_whichever_comes_first(one in claim(), other in claim()) {
            for relation in relations(&one, &other) {
                prop_assert_eq!(one.join(other, relation), other.join(one, relation));
            }
        }

        #[test]
        fn a_claim_joined_to_itself_is_itself(claim in claim()) {
            prop_assert_eq!(claim.join(claim, Relation::Agree(claim.named)), claim);
        }

        /// A second witness takes nothing away from what the first one says, but for how it is placed.
        #[test]
        fn what_agrees_adds_evidence(one in claim(), other in claim()) {
            let joined = one.join(other, Relation::Agree(one.named)).grounds;
            for grounds in [one.grounds, other.grounds] {
                prop_assert!(joined.witnesses.contains(grounds.witnesses));
                prop_assert!(joined.votes >= grounds.votes && joined.calls_out >= grounds.calls_out);
            }
        }

        /// A contradiction never unseats the witness that is believed more, and is said unless it comes
        /// from those who did not see the access.
        #[test]
        fn who_is_believed_more_keeps_his_word(one in claim(), other in claim()) {
            let rank = |claim: Claim| claim.grounds.witnesses.rank();
            prop_assume!(rank(one) < rank(other));
            let joined = one.join(other, Relation::Contradict);
            prop_assert_eq!(joined.named, one.named);
            let is_said = rank(other) < Witness::Votes as u32;
            prop_assert_eq!(joined.grounds.evidence() == Evidence::Conflict, is_said);
        }
    }
}
