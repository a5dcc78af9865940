//! Points-to analysis: what pointers to nothing known lead to, by what the code of a load object puts into them.
//!
//! What a function says of them are *inclusions* (Andersen's constraints): all that one cell holds, another one holds,
//! too. A member is one cell for all objects of its type, and when something is put there does not count.

use super::arm::Arms;
use super::content::{Address, Content, Origin};
use super::offset::Offset;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS};
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A place for a pointer of which its type does not tell what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PointerCell {
    /// A member of all objects with this fingerprint, or what it leads to if it is a pointer to such pointers: so many
    /// bytes into them.
    Member(u64, u64),
    /// The static variable that begins here, or any of its elements.
    Variable(DataPlace),
    /// The register in which the function that is entered here gets an argument.
    Parameter(Svma, u8),
    /// The value that the function which is entered here returns.
    Result(Svma),
}

/// Origin of a pointer to nothing known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// A member or a variable.
    Kept,
    /// An argument that the function was given.
    Passed,
}

/// A value that is put into a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Included {
    /// All that another cell holds.
    Cell(PointerCell),
    /// A pointer to this.
    Object(Address),
    /// A pointer to the function that is entered here.
    Function(Svma),
    /// A value of which nothing is known.
    Anything,
}

/// A call by a pointer that a cell holds, and what it passes in each register of arguments.
#[derive(Clone, Debug)]
pub(crate) struct PointerCall {
    pub(crate) by: PointerCell,
    pub(crate) passed: PassedSets,
}

/// The values that code puts into cells.
#[derive(Debug, Default)]
pub(crate) struct Inclusions {
    pub(crate) all: Vec<(PointerCell, Included)>,
    pub(crate) calls: Vec<PointerCall>,
    /// Functions whose address goes where it is not followed.
    pub(crate) escaped: FxHashSet<Svma>,
    /// Functions of which it is known what they return.
    pub(crate) returning: FxHashSet<Svma>,
    /// Number of times that code takes the address of a function.
    pub(crate) taken: FxHashMap<Svma, usize>,
}

/// Contents of the cells of which they are known.
#[derive(Debug, Default)]
pub(crate) struct PointsTo {
    contents: FxHashMap<PointerCell, Content>,
}

impl PointsTo {
    /// Finds what a cell holds, if that is known.
    pub(crate) fn content(&self, cell: PointerCell) -> Option<&Content> {
        self.contents.get(&cell)
    }

    /// Solves the inclusions: a cell holds what is put there, however that came. Functions that are `open` get anything.
    pub(crate) fn solve(inclusions: Inclusions, open: FxHashSet<Svma>) -> Self {
        let Inclusions { all, calls, returning, .. } = inclusions;
        let mut solver = Solver { open, returning, ..Solver::default() };
        for call in calls {
            let by = solver.cell(call.by);
            solver.sets[by].calls.push(call.passed);
        }
        for (cell, included) in all {
            let cell = solver.cell(cell);
            solver.include(cell, included);
        }
        while let Some(cell) = solver.changed.pop() {
            solver.hand_on(cell);
            if solver.n_steps > limit::MAX_INCLUSION_STEPS {
                return Self::default();
            }
        }
        let Solver { cells, sets, .. } = solver;
        let contents =
            cells.into_iter().filter_map(|(cell, idx)| Some((cell, sets[idx].content()?)));
        Self { contents: contents.collect() }
    }
}

impl Inclusions {
    /// Takes in what another function puts where.
    pub(crate) fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.calls.extend(other.calls);
        self.escaped.extend(other.escaped);
        self.returning.extend(other.returning);
        for (function, n) in other.taken {
            *self.taken.entry(function).or_default() += n;
        }
    }

    /// The functions that are spoken of.
    pub(crate) fn functions(&self) -> FxHashSet<Svma> {
        let passed = self.calls.iter().flat_map(|call| call.passed.iter().flatten());
        let puts = self.all.iter().map(|(_, included)| included).chain(passed);
        let mut functions: FxHashSet<Svma> = puts.filter_map(Included::function).collect();
        functions.extend(self.all.iter().filter_map(|(cell, _)| match cell {
            PointerCell::Parameter(entry, _) => Some(*entry),
            _ => None,
        }));
        functions
    }
}

impl Included {
    pub(crate) const fn function(&self) -> Option<Svma> {
        match self {
            Self::Function(entry) => Some(*entry),
            _ => None,
        }
    }
}

/// Values that a call passes in each register of arguments.
type PassedSets = Arc<[Vec<Included>; N_ARGUMENTS]>;

/// All that a cell may hold.
#[derive(Debug, Default)]
struct PointedSet {
    objects: Vec<Address>,
    functions: Vec<Svma>,
    /// It may hold anything.
    is_open: bool,
    /// Cells that hold all that this one does.
    onward: Vec<usize>,
    /// Calls that go by it.
    calls: Vec<PassedSets>,
}

impl PointedSet {
    /// The content that it tells: one thing, or one of a few.
    fn content(&self) -> Option<Content> {
        if self.is_open || !self.functions.is_empty() {
            return None;
        }
        match &self.objects[..] {
            [] => None,
            [only] => Some(Content::Address(only.clone())),
            several => {
                let arm = |address: &Address| match (&address.origin, address.offset.only()) {
                    (Origin::Object(layout), Some(0)) => {
                        Some((Arc::clone(&layout.name), Arc::clone(layout)))
                    }
                    _ => None,
                };
                let arms: Option<Vec<_>> = several.iter().map(arm).collect();
                let origin = Origin::Arms(Arc::new(Arms::new(arms?.into_iter())));
                Some(Content::Address(Address::of(origin, Offset::exact(0))))
            }
        }
    }

    /// Takes in an object; true if it is new.
    fn add_object(&mut self, object: Address) -> bool {
        if self.is_open || self.objects.contains(&object) {
            return false;
        }
        if self.objects.len() >= limit::MAX_POINTED_OBJECTS {
            self.is_open = true;
        } else {
            self.objects.push(object);
        }
        true
    }
}

/// The work of solving inclusions, up to the fixed point.
#[derive(Default)]
struct Solver {
    cells: FxHashMap<PointerCell, usize>,
    sets: Vec<PointedSet>,
    /// Those whose news were not handed on yet.
    changed: Vec<usize>,
    open: FxHashSet<Svma>,
    returning: FxHashSet<Svma>,
    n_steps: usize,
}

impl Solver {
    fn cell(&mut self, cell: PointerCell) -> usize {
        if let Some(known) = self.cells.get(&cell) {
            return *known;
        }
        let is_open = match cell {
            PointerCell::Parameter(entry, _) => self.open.contains(&entry),
            PointerCell::Result(entry) => !self.returning.contains(&entry),
            PointerCell::Member(..) | PointerCell::Variable(_) => false,
        };
        let idx = self.sets.len();
        self.cells.insert(cell, idx);
        self.sets.push(PointedSet { is_open, ..PointedSet::default() });
        idx
    }

    /// Has a cell hold what is put there.
    fn include(&mut self, cell: usize, included: Included) {
        self.n_steps += 1;
        let set = &mut self.sets[cell];
        let is_new = match included {
            Included::Cell(from) => {
                let from = self.cell(from);
                let onward = &mut self.sets[from].onward;
                if from != cell && !onward.contains(&cell) {
                    onward.push(cell);
                    self.changed.push(from);
                }
                false
            }
            Included::Anything => !std::mem::replace(&mut set.is_open, true),
            Included::Object(object) => set.add_object(object),
            Included::Function(entry) if set.functions.contains(&entry) => false,
            Included::Function(entry) if set.functions.len() < limit::MAX_POINTED_FUNCTIONS => {
                set.functions.push(entry);
                true
            }
            Included::Function(entry) => {
                self.open_function(entry);
                false
            }
        };
        if is_new {
            self.changed.push(cell);
        }
    }

    /// Has a function get anything: not all that call it are known.
    fn open_function(&mut self, entry: Svma) {
        if self.open.insert(entry) {
            for register in ARGUMENTS {
                let parameter = self.cell(PointerCell::Parameter(entry, register));
                self.include(parameter, Included::Anything);
            }
        }
    }

    /// Hands on what a cell holds: to cells that hold as much, and to the functions that are called by it.
    fn hand_on(&mut self, cell: usize) {
        let set = &self.sets[cell];
        let (onward, functions, calls) =
            (set.onward.clone(), set.functions.clone(), set.calls.clone());
        let mut held: Vec<Included> = functions.iter().copied().map(Included::Function).collect();
        if set.is_open {
            held.push(Included::Anything);
        } else {
            held.extend(set.objects.iter().cloned().map(Included::Object));
        }
        for to in onward {
            held.iter().for_each(|included| self.include(to, included.clone()));
        }
        for passed in calls {
            for entry in &functions {
                for (register, passed) in ARGUMENTS.iter().zip(passed.iter()) {
                    let parameter = self.cell(PointerCell::Parameter(*entry, *register));
                    passed.iter().for_each(|included| self.include(parameter, included.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::content::is_same_type;
    use crate::types::layout::Layout;
    use crate::types::sample::{number, structure};

    const KEPT: PointerCell = PointerCell::Member(1, 0);
    const OTHER: PointerCell = PointerCell::Member(1, 8);
    const HANDLER: PointerCell = PointerCell::Member(2, 0);

    /// The type that has this number.
    fn layout(at: usize) -> Arc<Layout> {
        let long = number("long", 8);
        structure(&format!("type{at}"), 8, &[("member", 0, &long)])
    }

    fn object(at: usize) -> Included {
        Included::Object(Address::object(layout(at), 0, None))
    }

    fn solved(all: Vec<(PointerCell, Included)>, calls: Vec<PointerCall>, open: &[u64]) -> PointsTo {
        let inclusions = Inclusions { all, calls, ..Inclusions::default() };
        PointsTo::solve(inclusions, open.iter().copied().map(Svma).collect())
    }

    /// The types, by their numbers, of what a cell holds.
    fn types(points_to: &PointsTo, cell: PointerCell) -> Vec<usize> {
        let Some(Content::Address(address)) = points_to.content(cell) else { return Vec::new() };
        let is_among = |number: &usize| match &address.origin {
            Origin::Object(known) => is_same_type(known, &layout(*number)),
            Origin::Arms(arms) => arms.has(&layout(*number)),
            _ => false,
        };
        (0..2 * limit::MAX_POINTED_OBJECTS).filter(is_among).collect()
    }

    #[test]
    fn what_is_put_into_a_cell_goes_on_to_all_that_hold_as_much_in_a_circle_too() {
        let all = vec![
            (OTHER, Included::Cell(KEPT)),
            (KEPT, Included::Cell(OTHER)),
            (KEPT, object(0)),
            (PointerCell::Result(Svma(1)), Included::Cell(OTHER)),
        ];
        for n_first in 0..all.len() {
            let mut all = all.clone();
            all.rotate_left(n_first);
            let points_to = solved(all, Vec::new(), &[]);
            assert_eq!(types(&points_to, KEPT), [0]);
            assert_eq!(types(&points_to, OTHER), [0]);
        }
    }

    #[test]
    fn one_unknown_value_opens_all_that_it_reaches_whenever_it_comes() {
        let all = [(KEPT, object(0)), (OTHER, Included::Cell(KEPT)), (KEPT, Included::Anything)];
        for n_first in 0..all.len() {
            let mut all = all.to_vec();
            all.rotate_left(n_first);
            let points_to = solved(all, Vec::new(), &[]);
            assert!(points_to.content(KEPT).is_none() && points_to.content(OTHER).is_none());
        }
    }

    #[test]
    fn several_types_are_alternatives_and_too_many_are_anything() {
        let put = |n: usize| (0..n).map(|number| (KEPT, object(number))).collect::<Vec<_>>();
        let most = limit::MAX_POINTED_OBJECTS;
        assert_eq!(types(&solved(put(most), Vec::new(), &[]), KEPT).len(), most);
        assert!(solved(put(most + 1), Vec::new(), &[]).content(KEPT).is_none());
    }

    #[test]
    fn a_pointer_passes_to_each_function_that_it_may_hold() {
        let (first, second, open) = (Svma(0x10), Svma(0x20), Svma(0x30));
        let mut passed = [const { Vec::new() }; N_ARGUMENTS];
        passed[1] = vec![object(0)];
        let call = PointerCall { by: HANDLER, passed: Arc::new(passed) };
        let mut all: Vec<_> =
            [first, second, open].map(|it| (HANDLER, Included::Function(it))).into();
        all.push((PointerCell::Parameter(second, ARGUMENTS[1]), object(1)));
        let points_to = solved(all, vec![call], &[open.0]);
        let second_of = |function| PointerCell::Parameter(function, ARGUMENTS[1]);
        assert_eq!(types(&points_to, second_of(first)), [0]);
        assert_eq!(types(&points_to, second_of(second)), [0, 1]);
        assert!(points_to.content(second_of(open)).is_none(), "others call it, too");
        assert!(points_to.content(HANDLER).is_none(), "functions are no data");
        assert!(points_to.content(PointerCell::Parameter(first, ARGUMENTS[0])).is_none());
    }

    #[test]
    fn what_a_function_returns_is_anything_unless_all_of_it_is_known() {
        let result = PointerCell::Result(Svma(0x10));
        let all = vec![(KEPT, Included::Cell(result)), (result, object(0))];
        assert!(solved(all.clone(), Vec::new(), &[]).content(KEPT).is_none());
        let returning = FxHashSet::from_iter([Svma(0x10)]);
        let inclusions = Inclusions { all, returning, ..Inclusions::default() };
        assert_eq!(types(&PointsTo::solve(inclusions, FxHashSet::default()), KEPT), [0]);
    }

    #[test]
    fn a_function_beyond_those_that_a_pointer_may_hold_gets_anything() {
        let n = limit::MAX_POINTED_FUNCTIONS as u64 + 1;
        let mut all: Vec<_> =
            (1..=n).map(|entry| (HANDLER, Included::Function(Svma(entry)))).collect();
        let first = |entry| PointerCell::Parameter(Svma(entry), ARGUMENTS[0]);
        all.extend([(first(1), object(0)), (first(n), object(0))]);
        let points_to = solved(all, Vec::new(), &[]);
        assert_eq!(types(&points_to, first(1)), [0]);
        assert!(points_to.content(first(n)).is_none());
    }
}
