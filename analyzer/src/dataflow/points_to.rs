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
