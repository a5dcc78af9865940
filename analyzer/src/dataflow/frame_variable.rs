//! A function's variables in its frame, found by place: a hostile function has as many as it likes, and asks for each of
//! them.

use super::value::{Frame, Slot};
use crate::limit;
use crate::types::layout::{Layout, Shape};
use std::ops::Range;
use std::sync::Arc;

/// A variable in the frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameVariable {
    /// The place where it begins.
    pub(crate) slot: Slot,
    /// Its bytes that are there: others may be in registers, or nowhere.
    pub(crate) bytes: Range<u64>,
    pub(crate) code: Range<u64>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) name: Arc<str>,
    pub(crate) depth: u32,
    /// It is what is passed by reference: the pointer itself has no name.
    pub(crate) is_reference: bool,
}

impl FrameVariable {
    /// Computes the offset of a slot in the variable.
    fn into(&self, slot: Slot) -> Option<u64> {
        let into = slot.offset.checked_sub(self.slot.offset)?;
        let into = u64::try_from(into).ok().filter(|_| self.slot.frame == slot.frame)?;
        self.bytes.contains(&into).then_some(into)
    }

    /// The first offset in the frame after it.
    fn end(&self) -> i64 {
        self.slot.offset.saturating_add_unsigned(self.bytes.end)
    }
}

/// The variables in a frame.
#[derive(Debug, Default)]
pub(super) struct FrameVariables {
    /// In the order in which the debug information has them.
    all: Box<[FrameVariable]>,
    /// For each base the variables' indices by where they begin: a tree whose root is in the middle, and those of whose
    /// halves in theirs.
    trees: Box<[(Frame, Box<[Branch]>)]>,
}

/// A variable, and the furthest end of those below it in the tree.
#[derive(Clone, Copy, Debug)]
struct Branch {
    idx: u32,
    start: i64,
    reach: i64,
}

impl FrameVariables {
    pub(super) fn new(all: Vec<FrameVariable>) -> Self {
        let mut bases: Vec<Frame> = all.iter().map(|variable| variable.slot.frame).collect();
        bases.sort_unstable();
        bases.dedup();
        let tree = |base: Frame| {
            let own = all.iter().zip(0..).filter(|(variable, _)| variable.slot.frame == base);
            let mut branches: Vec<Branch> = own
                .map(|(variable, idx)| Branch {
                    idx,
                    start: variable.slot.offset,
                    reach: variable.end(),
                })
                .collect();
            branches.sort_by_key(|branch| branch.start);
            raise(&mut branches);
            (base, branches.into())
        };
        Self { trees: bases.into_iter().map(tree).collect(), all: all.into() }
    }

    /// Memory that it takes, about.
    pub(super) fn n_bytes(&self) -> usize {
        size_of_val(&*self.all) + self.all.len() * size_of::<Branch>()
    }

    /// The variable at `slot`, in the innermost scope around the code at `svma`, and how far into it the slot is.
    pub(super) fn innermost(&self, svma: u64, slot: Slot) -> Option<(&FrameVariable, u64)> {
        let here = self.at(slot).into_iter().filter(|(_, it, _)| it.code.contains(&svma));
        let (_, variable, into) = here.max_by_key(|(idx, variable, _)| (variable.depth, *idx))?;
        Some((variable, into))
    }

    /// The first variable at `slot`, whatever code sees it, and how far into it the slot is.
    pub(super) fn first(&self, slot: Slot) -> Option<(&FrameVariable, u64)> {
        let (_, variable, into) = self.at(slot).into_iter().min_by_key(|(idx, ..)| *idx)?;
        Some((variable, into))
    }

    /// The structures and arrays at `slot`, whatever code sees them, each with how far into it the slot is.
    pub(super) fn structures(&self, slot: Slot) -> Vec<(Arc<Layout>, u64)> {
        let here = self.at(slot).into_iter();
        let wide = here.filter(|(_, it, _)| !matches!(it.layout.shape, Shape::Scalar(_)));
        wide.map(|(_, it, into)| (Arc::clone(&it.layout), into)).collect()
    }

    /// Tells whether a variable is at `slot`, or more than can be told apart.
    pub(super) fn has(&self, slot: Slot) -> bool {
        !self.at(slot).is_empty()
    }

    /// The variables at `slot`; none where they are more than can be told apart.
    fn at(&self, slot: Slot) -> Vec<(u32, &FrameVariable, u64)> {
        let tree = self.trees.iter().find(|(base, _)| *base == slot.frame);
        let mut rest: Vec<&[Branch]> = tree.map(|(_, branches)| &**branches).into_iter().collect();
        let (mut found, mut n_looked) = (Vec::new(), 0);
        while let Some(branches) = rest.pop() {
            let (before, from) = branches.split_at(branches.len() / 2);
            let Some((branch, after)) = from.split_first() else { continue };
            if branch.reach <= slot.offset {
                continue;
            }
            n_looked += 1;
            if n_looked > limit::MAX_FRAME_STEPS {
                return Vec::new();
            }
            rest.push(before);
            if branch.start <= slot.offset {
                rest.push(after);
                let variable = self.all.get(branch.idx as usize);
                found.extend(variable.and_then(|it| Some((branch.idx, it, it.into(slot)?))));
            }
        }
        found
    }
}

/// Has each branch of the tree know how far those below it reach; gives how far all do.
fn raise(branches: &mut [Branch]) -> i64 {
    let (before, from) = branches.split_at_mut(branches.len() / 2);
    let Some((branch, after)) = from.split_first_mut() else { return i64::MIN };
    branch.reach = branch.reach.max(raise(before)).max(raise(after));
    branch.reach
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::structure;
    use proptest::prelude::*;

    fn variable(base: u8, offset: i64, n_bytes: u64, code: u64, depth: u32) -> FrameVariable {
        let frame = if base == 0 { Frame::Cfa } else { Frame::Register(base) };
        FrameVariable {
            slot: Slot { frame, offset },
            bytes: 0..n_bytes,
            code: 0..code,
            layout: structure("it", n_bytes, &[]),
            name: "it".into(),
            depth,
            is_reference: false,
        }
    }

    proptest! {
        #[test]
        fn the_tree_finds_what_looking_at_all_finds(
            all in prop::collection::vec((0u8..3, -40i64..40, 0u64..30, 0u64..3, 0u32..4), 0..40),
            asked in (0u8..3, -50i64..60, 0u64..3),
        ) {
            let all: Vec<FrameVariable> =
                all.into_iter().map(|(base, at, n, code, depth)| variable(base, at, n, code, depth)).collect();
            let (base, offset, svma) = asked;
            let slot = variable(base, offset, 0, 0, 0).slot;
            let fitting = || all.iter().filter_map(|it| Some((it, it.into(slot)?)));
            let visible = fitting().filter(|(it, _)| it.code.contains(&svma));
            let innermost = visible.max_by_key(|(it, _)| it.depth);
            let table = FrameVariables::new(all.clone());
            let said = |found: Option<(&FrameVariable, u64)>| {
                found.map(|(it, into)| (it.slot.offset, it.bytes.end, it.code.end, it.depth, into))
            };
            prop_assert_eq!(said(table.innermost(svma, slot)), said(innermost));
            prop_assert_eq!(said(table.first(slot)), said(fitting().next()));
        }
    }
}
