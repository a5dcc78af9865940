//! The choice among several ends of ways down a layout: which of them an access means, or how much of the way
//! they have in common.

use super::Path;
use crate::limit;
use crate::types::layout::{AggregateKind, Layout, Step};
use std::sync::Arc;

/// Fitness of the end of a way for an access, the best last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EndFit {
    /// An aggregate: padding, or several members.
    #[default]
    Part,
    /// A part of a scalar, or several elements of an array.
    Inside,
    /// A whole scalar, of another kind than the value.
    Contrary,
    /// A whole array of scalars.
    WholeArray,
    /// A whole scalar.
    Exact,
}

/// The end of one way.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) path: Path<'a>,
    pub(super) is_discriminant: bool,
}

/// The best ends found.
#[derive(Debug, Default)]
pub(super) struct Ends<'a> {
    pub(super) fit: EndFit,
    pub(super) best: Vec<End<'a>>,
    pub(super) is_cut: bool,
    /// After how many steps the ways part first, and whether what they part at has arms.
    pub(super) fork: Option<(usize, AggregateKind)>,
}

impl<'a> Ends<'a> {
    pub(super) fn add(&mut self, fit: EndFit, end: End<'a>) {
        if fit > self.fit {
            self.best.clear();
            self.fit = fit;
            // What was not weighed stays unknown, but not what fitted worse.
            self.is_cut = false;
        }
        if fit < self.fit {
            return;
        }
        if self.best.len() >= limit::MAX_CANDIDATES {
            self.is_cut = true;
            return;
        }
        self.best.push(end);
    }

    /// A discriminant that lies in the niche of a variant's member is only another view of it.
    pub(super) fn prefer_data(&mut self) {
        if self.best.iter().any(|end| !end.is_discriminant) {
            self.best.retain(|end| !end.is_discriminant);
        }
    }

    /// The one way that is meant, or as much of it as is not open.
    pub(super) fn decide(mut self, root: &'a Layout, offset: u64) -> Path<'a> {
        self.prefer_data();
        let Some((n_before, kind)) = self.fork else {
            let only = self.best.pop().map(|end| end.path);
            return only.unwrap_or_else(|| Path::start(root, offset));
        };
        // In a C union a narrower access may be to any arm's bytes.
        let is_enough =
            self.fit > EndFit::Contrary || self.fit > EndFit::Part && kind != AggregateKind::Union;
        let Some(first) = self.best.first().filter(|_| !self.is_cut && is_enough) else {
            let steps = self.best.first().map_or(&[][..], |end| &end.path.steps[..]);
            return follow(root, offset, &steps[..n_before.min(steps.len())]);
        };
        let n_common = self.best.iter().map(|end| n_common(first, end)).min().unwrap_or(0);
        // The ends lie on one way.
        if n_common == first.path.steps.len() {
            return first.path.clone();
        }
        let is_same_from =
            |from| self.best.iter().all(|end| is_same_member(root, &first.path, &end.path, from));
        if self.fit > EndFit::Part && is_same_from(n_common) {
            // One member that is described twice: rustc does so in the state of a future.
            return first.path.clone();
        }
        // `union { struct { int tag; long a; } x; struct { int tag; char *b; } y; }`: `tag` is one member
        // in both arms.
        if self.fit > EndFit::Contrary && is_same_from(n_common + 1) {
            let mut path = first.path.clone();
            if let Some(step @ Step::Member(_)) = path.steps.get_mut(n_common)
                && let Step::Member(arm) = *step
            {
                *step = Step::Arm(arm);
            }
            return path;
        }
        follow(root, offset, &first.path.steps[..n_common])
    }
}

/// Number of steps that two ways have in common.
fn n_common(first: &End<'_>, other: &End<'_>) -> usize {
    let pairs = first.path.steps.iter().zip(&other.path.steps);
    pairs.take_while(|(step, other)| step == other).count()
}

/// Tells whether two ways end at the same member, by the names of their steps from one on: of one type and
/// at one place.
fn is_same_member(root: &Layout, first: &Path<'_>, other: &Path<'_>, from: usize) -> bool {
    let is_alike = (first.offset, first.into, first.leaf.fingerprint)
        == (other.offset, other.into, other.leaf.fingerprint);
    let names = |path| below(root, path, from);
    is_alike && first.steps.len() > from && names(first).eq(names(other))
}

/// The name of each step from one on; nothing for one to an element.
fn below<'a>(
    root: &'a Layout,
    path: &'a Path<'_>,
    from: usize,
) -> impl Iterator<Item = Option<&'a Arc<str>>> {
    root.walk(&path.steps).skip(from).map(|(.., member)| member.map(|member| &member.name))
}

/// The way of these steps.
fn follow<'a>(root: &'a Layout, offset: u64, steps: &[Step]) -> Path<'a> {
    let mut path = Path::start(root, offset);
    for (step, part, member) in root.walk(steps) {
        match member {
            Some(member) => path.enter(step, member),
            None => {
                path.steps.push(step);
                path.into = path.into.checked_rem(part.size).unwrap_or(0);
                path.leaf = part;
            }
        }
    }
    path
}
