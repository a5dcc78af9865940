//! Points-to analysis: what pointers to nothing known lead to, by what the code of a load object puts into them.
//!
//! What a function says of them are *inclusions* (Andersen's constraints): all that one cell holds, another one holds,
//! too. A member is one cell for all objects of its type, and when something is put there does not count.

use super::address::{Address, Origin, is_same_type};
use super::arm::Arms;
use super::content::Content;
use super::doubt::Doubt;
use super::offset::Offset;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS};
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A place for a pointer of which its type does not tell what it leads to, or for several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PointerCell {
    /// A member of all objects with this geometry: so many bytes into them.
    Member(u64, u64),
    /// All pointers that such a member leads to.
    Element(u64, u64),
    /// The static variable that begins here, or any of its elements.
    Variable(DataPlace),
    /// The register in which the function that is entered here gets an argument.
    Parameter(Svma, u8),
    /// The value that the function which is entered here returns.
    Result(Svma),
    /// Places so many bytes from addresses of which nothing is known: a member that lies so far in its object may hold what
    /// is put there.
    Astray(i64),
    /// Elements of which nothing is known.
    AstrayElement,
    /// Places around objects of which nothing else is known.
    Around,
    /// Places that are not followed. Anybody may call functions that come there.
    Outside,
    /// Whatever a function may get that anybody calls which is entered here.
    Called(Svma),
    /// Whatever code that is not followed may put into objects with this fingerprint; if `is_deep`, also into those that
    /// it finds from them.
    Exposed { fingerprint: u64, is_deep: bool },
}

/// Origin of a pointer to nothing known, in the order of what they tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carried {
    /// An argument that the function was given.
    Passed,
    /// A member or a variable.
    Kept,
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

/// Values that a call by a pointer passes.
#[derive(Clone, Debug)]
pub(crate) struct PassedValues {
    /// In each register of arguments.
    pub(crate) registers: [Vec<Included>; N_ARGUMENTS],
    /// The types of which it shows objects to whatever is called.
    pub(crate) exposed: Vec<PointerCell>,
}

/// The values that code puts into cells.
#[derive(Debug, Default)]
pub(crate) struct Inclusions {
    all: Vec<(PointerCell, Included)>,
    /// Calls by what cells hold.
    calls: Vec<(PointerCell, Arc<PassedValues>)>,
    /// Functions of which it is known what they return.
    pub(crate) returning: FxHashSet<Svma>,
    /// Types of which is noted what code that is not followed may put into them.
    pub(super) described: FxHashSet<PointerCell>,
    /// Cells that bytes are written to by what they hold.
    written: Vec<PointerCell>,
    n_passed: usize,
    /// Something was left out: there were too many.
    pub(crate) is_cut: bool,
}

/// Contents of the cells of which they are known.
#[derive(Debug, Default)]
pub(crate) struct PointsTo {
    contents: FxHashMap<PointerCell, Content>,
    /// It was found out, or never will be.
    pub(crate) is_done: bool,
}

impl Included {
    /// The origin that it has as a pointer to nothing known, if it is one.
    pub(super) const fn carried(&self) -> Option<Carried> {
        match self {
            Self::Cell(
                PointerCell::Member(..) | PointerCell::Element(..) | PointerCell::Variable(_),
            ) => Some(Carried::Kept),
            Self::Cell(PointerCell::Parameter(..)) => Some(Carried::Passed),
            _ => None,
        }
    }

    /// Tells whether it may lead to a function.
    pub(super) const fn is_perhaps_code(&self) -> bool {
        matches!(self, Self::Function(_) | Self::Cell(_))
    }
}

impl PassedValues {
    fn len(&self) -> usize {
        self.registers.iter().map(Vec::len).sum::<usize>() + self.exposed.len()
    }
}

impl Inclusions {
    /// Notes that a cell holds what is put there.
    pub(crate) fn put(&mut self, cell: PointerCell, included: Included) {
        if self.has_room() {
            self.all.push((cell, included));
        }
    }

    /// Notes a call by what a cell holds.
    pub(super) fn call(&mut self, by: PointerCell, passed: &Arc<PassedValues>) {
        if self.has_room() {
            self.n_passed += passed.len() + 1;
            self.calls.push((by, Arc::clone(passed)));
        }
    }

    /// Notes that bytes are written to what a cell holds.
    pub(super) fn write(&mut self, cell: PointerCell) {
        if self.has_room() && self.written.last() != Some(&cell) {
            self.n_passed += 1;
            self.written.push(cell);
        }
    }

    /// Number of values that are put somewhere.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets all but the first values.
    pub(crate) fn truncate(&mut self, n: usize) {
        self.all.truncate(n);
    }

    fn has_room(&mut self) -> bool {
        self.is_cut |= self.all.len() + self.n_passed >= limit::MAX_INCLUSIONS;
        !self.is_cut
    }
}

impl PointsTo {
    /// Finds what a cell holds, if that is known.
    pub(crate) fn content(&self, cell: PointerCell) -> Option<&Content> {
        self.contents.get(&cell)
    }

    /// Tells whether nothing is known of any cell.
    pub(crate) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// Contents where nothing will be found out.
    pub(crate) fn nothing() -> Self {
        Self { is_done: true, ..Self::default() }
    }

    /// Solves the inclusions: a cell holds what is put there, however that came. Nothing is known if there are too many.
    pub(crate) fn solve(inclusions: Inclusions) -> Self {
        let Inclusions { all, calls, returning, written, is_cut, .. } = inclusions;
        let mut solver = Solver { returning, is_exhausted: is_cut, ..Solver::default() };
        for (by, passed) in calls {
            let by = solver.cell(by);
            solver.sets[by].calls.push(passed);
        }
        for cell in written {
            let cell = solver.cell(cell);
            solver.sets[cell].is_written = true;
        }
        for (cell, included) in all {
            let cell = solver.cell(cell);
            solver.include(cell, &included);
            solver.hand_on_all();
        }
        let Solver { cells, sets, is_exhausted, .. } = solver;
        let known = cells.into_iter().filter(|_| !is_exhausted);
        let contents = known.filter_map(|(cell, idx)| Some((cell, sets[idx].content()?)));
        Self { contents: contents.collect(), is_done: true }
    }
}

/// All that a cell may hold.
#[derive(Debug, Default)]
struct PointedSet {
    objects: Vec<Address>,
    functions: FxHashSet<Svma>,
    /// It may hold anything.
    is_open: bool,
    /// Bytes are written to what it holds.
    is_written: bool,
    /// Cells that hold all that this one does.
    onward: Vec<usize>,
    onward_set: FxHashSet<usize>,
    /// Calls that go by it.
    calls: Vec<Arc<PassedValues>>,
}

impl PointedSet {
    /// The content that it tells: one thing, or one of a few. Nobody reads code.
    fn content(&self) -> Option<Content> {
        if self.is_open {
            return None;
        }
        match &self.objects[..] {
            [] => None,
            [only] => Some(Content::Address(only.clone())),
            // Of some of them it is known that there are several.
            [first, others @ ..] if others.iter().all(|other| is_same_object(first, other)) => {
                let doubts = first.doubts.without(Doubt::Which);
                Some(Content::Address(Address { doubts, ..first.clone() }))
            }
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

    /// Takes in what is no cell; what of it is new.
    fn add(&mut self, included: &Included) -> Option<Included> {
        match included {
            Included::Object(object) if !self.is_open && !self.objects.contains(object) => {
                if self.objects.len() >= limit::MAX_POINTED_OBJECTS {
                    return self.add(&Included::Anything);
                }
                self.objects.push(object.clone());
            }
            Included::Function(entry) if self.functions.insert(*entry) => {}
            Included::Anything if !self.is_open => self.is_open = true,
            _ => return None,
        }
        Some(included.clone())
    }
}

fn is_same_object(first: &Address, second: &Address) -> bool {
    match (&first.origin, &second.origin) {
        (Origin::Object(one), Origin::Object(two)) => {
            is_same_type(one, two) && first.offset == second.offset
        }
        _ => false,
    }
}

/// The work of solving inclusions, up to the fixed point.
#[derive(Default)]
struct Solver {
    cells: FxHashMap<PointerCell, usize>,
    of: Vec<PointerCell>,
    sets: Vec<PointedSet>,
    /// News that were not handed on yet, each with the cell that has it.
    due: Vec<(usize, Included)>,
    returning: FxHashSet<Svma>,
    n_steps: usize,
    /// There is too much to be worked out.
    is_exhausted: bool,
}

impl Solver {
    fn cell(&mut self, cell: PointerCell) -> usize {
        if let Some(known) = self.cells.get(&cell) {
            return *known;
        }
        let idx = self.sets.len();
        self.cells.insert(cell, idx);
        self.of.push(cell);
        self.sets.push(PointedSet::default());
        match cell {
            PointerCell::Parameter(entry, _) => {
                self.include(idx, &Included::Cell(PointerCell::Called(entry)));
            }
            PointerCell::Result(entry) if !self.returning.contains(&entry) => {
                self.include(idx, &Included::Anything);
            }
            PointerCell::Member(_, offset) => {
                let astray = PointerCell::Astray(offset.cast_signed());
                self.include(idx, &Included::Cell(astray));
                self.include(idx, &Included::Cell(PointerCell::Around));
            }
            PointerCell::Element(..) => {
                self.include(idx, &Included::Cell(PointerCell::AstrayElement));
                self.include(idx, &Included::Cell(PointerCell::Around));
            }
            _ => {}
        }
        idx
    }

    /// Has a cell hold what is put there.
    fn include(&mut self, cell: usize, included: &Included) {
        self.n_steps += 1;
        self.is_exhausted |= self.n_steps > limit::MAX_INCLUSION_STEPS;
        if self.is_exhausted {
            return;
        }
        let Included::Cell(from) = included else {
            let set = &mut self.sets[cell];
            let is_full = set.functions.len() >= limit::MAX_POINTED_FUNCTIONS;
            if is_full
                && self.of[cell] != PointerCell::Outside
                && let Included::Function(entry) = included
                && !set.functions.contains(entry)
            {
                let outside = self.cell(PointerCell::Outside);
                self.include(outside, included);
                return self.include(cell, &Included::Anything);
            }
            let news = set.add(included);
            self.due.extend(news.map(|news| (cell, news)));
            return;
        };
        let from = self.cell(*from);
        let set = &mut self.sets[from];
        if from == cell || !set.onward_set.insert(cell) {
            return;
        }
        set.onward.push(cell);
        let functions = set.functions.iter().copied().map(Included::Function);
        let objects = set.objects.iter().cloned().map(Included::Object);
        let mut held: Vec<Included> = functions.chain(objects).collect();
        held.extend(set.is_open.then_some(Included::Anything));
        held.iter().for_each(|included| self.include(cell, included));
    }

    fn hand_on_all(&mut self) {
        while let Some((cell, included)) = self.due.pop() {
            if self.is_exhausted {
                return;
            }
            for n in 0..self.sets[cell].onward.len() {
                self.include(self.sets[cell].onward[n], &included);
            }
            for n in 0..self.sets[cell].calls.len() {
                let passed = Arc::clone(&self.sets[cell].calls[n]);
                self.pass(&passed, &included);
            }
            if let (true, Included::Object(Address { origin: Origin::Object(layout), .. })) =
                (self.sets[cell].is_written, &included)
            {
                let fingerprint = layout.innermost_element().fingerprint;
                let exposed = self.cell(PointerCell::Exposed { fingerprint, is_deep: false });
                self.include(exposed, &Included::Anything);
            }
            if let (PointerCell::Outside, Included::Function(entry)) = (self.of[cell], included) {
                let called = self.cell(PointerCell::Called(entry));
                self.include(called, &Included::Anything);
            }
        }
    }

    /// Passes values to what is called.
    fn pass(&mut self, passed: &PassedValues, callee: &Included) {
        match callee {
            Included::Function(entry) => {
                self.n_steps += 1;
                let registers = ARGUMENTS.iter().zip(passed.registers.iter());
                for (register, passed) in registers.filter(|(_, passed)| !passed.is_empty()) {
                    let parameter = self.cell(PointerCell::Parameter(*entry, *register));
                    passed.iter().for_each(|included| self.include(parameter, included));
                }
            }
            Included::Anything => {
                let outside = self.cell(PointerCell::Outside);
                let all = passed.registers.iter().flatten();
                all.filter(|it| it.is_perhaps_code()).for_each(|it| self.include(outside, it));
                for exposed in &passed.exposed {
                    let exposed = self.cell(*exposed);
                    self.include(exposed, &Included::Anything);
                }
            }
            Included::Object(_) | Included::Cell(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::Layout;
    use crate::types::sample::{number, structure};

    const KEPT: PointerCell = PointerCell::Member(1, 0);
    const OTHER: PointerCell = PointerCell::Member(1, 8);
    const HANDLER: PointerCell = PointerCell::Member(2, 0);
    const SHOWN: PointerCell = PointerCell::Exposed { fingerprint: 3, is_deep: false };

    /// The type that has this number.
    fn layout(at: usize) -> Arc<Layout> {
        let long = number("long", 8);
        structure(&format!("type{at}"), 8, &[("member", 0, &long)])
    }

    fn object(at: usize) -> Included {
        Included::Object(Address::object(layout(at), 0, None))
    }

    fn solved(
        all: Vec<(PointerCell, Included)>,
        calls: Vec<(PointerCell, PassedValues)>,
    ) -> PointsTo {
        let mut inclusions = Inclusions::default();
        all.into_iter().for_each(|(cell, included)| inclusions.put(cell, included));
        calls.into_iter().for_each(|(by, passed)| inclusions.call(by, &Arc::new(passed)));
        PointsTo::solve(inclusions)
    }

    fn passed(register: usize, included: Included) -> PassedValues {
        let mut registers = [const { Vec::new() }; N_ARGUMENTS];
        registers[register] = vec![included];
        PassedValues { registers, exposed: vec![SHOWN] }
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
            let points_to = solved(all, Vec::new());
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
            let points_to = solved(all, Vec::new());
            assert!(points_to.content(KEPT).is_none() && points_to.content(OTHER).is_none());
        }
    }

    #[test]
    fn what_is_put_somewhere_may_be_in_any_member_that_lies_so_far_in() {
        let all = vec![(KEPT, object(0)), (OTHER, object(1)), (PointerCell::Astray(8), object(2))];
        let points_to = solved(all, Vec::new());
        assert_eq!(types(&points_to, KEPT), [0]);
        assert_eq!(types(&points_to, OTHER), [1, 2]);
    }

    #[test]
    fn several_types_are_alternatives_and_too_many_are_anything() {
        let put = |n: usize| (0..n).map(|number| (KEPT, object(number))).collect::<Vec<_>>();
        let most = limit::MAX_POINTED_OBJECTS;
        assert_eq!(types(&solved(put(most), Vec::new()), KEPT).len(), most);
        assert!(solved(put(most + 1), Vec::new()).content(KEPT).is_none());
    }

    #[test]
    fn a_pointer_passes_to_each_function_that_it_may_hold() {
        let (first, second, known) = (Svma(0x10), Svma(0x20), Svma(0x30));
        let mut all: Vec<_> =
            [first, second, known].map(|it| (HANDLER, Included::Function(it))).into();
        let second_of = |function| PointerCell::Parameter(function, ARGUMENTS[1]);
        all.push((second_of(second), object(1)));
        all.push((PointerCell::Outside, Included::Function(known)));
        let points_to = solved(all, vec![(HANDLER, passed(1, object(0)))]);
        assert_eq!(types(&points_to, second_of(first)), [0]);
        assert_eq!(types(&points_to, second_of(second)), [0, 1]);
        assert!(points_to.content(second_of(known)).is_none(), "others call it, too");
        assert!(points_to.content(HANDLER).is_none(), "functions are no data");
        assert!(points_to.content(PointerCell::Parameter(first, ARGUMENTS[0])).is_none());
    }

    #[test]
    fn what_goes_by_a_pointer_that_may_be_anything_is_seen_by_anybody() {
        let (callback, first) = (Svma(0x10), PointerCell::Parameter(Svma(0x10), ARGUMENTS[0]));
        let all = |by| {
            vec![
                (HANDLER, by),
                (first, object(0)),
                (KEPT, object(1)),
                (KEPT, Included::Cell(SHOWN)),
            ]
        };
        let call = || vec![(HANDLER, passed(0, Included::Function(callback)))];
        let points_to = solved(all(Included::Function(Svma(0x20))), call());
        assert_eq!((types(&points_to, first), types(&points_to, KEPT)), (vec![0], vec![1]));
        let points_to = solved(all(Included::Anything), call());
        assert!(points_to.content(first).is_none() && points_to.content(KEPT).is_none());
    }

    #[test]
    fn what_a_function_returns_is_anything_unless_all_of_it_is_known() {
        let result = PointerCell::Result(Svma(0x10));
        let all = [(KEPT, Included::Cell(result)), (result, object(0))];
        assert!(solved(all.to_vec(), Vec::new()).content(KEPT).is_none());
        let returning = FxHashSet::from_iter([Svma(0x10)]);
        let inclusions = Inclusions { all: all.into(), returning, ..Inclusions::default() };
        assert_eq!(types(&PointsTo::solve(inclusions), KEPT), [0]);
    }

    #[test]
    fn a_function_beyond_those_that_a_pointer_may_hold_gets_anything() {
        let n = limit::MAX_POINTED_FUNCTIONS as u64 + 1;
        let mut all: Vec<_> =
            (1..=n).map(|entry| (HANDLER, Included::Function(Svma(entry)))).collect();
        let first = |entry| PointerCell::Parameter(Svma(entry), ARGUMENTS[0]);
        all.extend([(first(1), object(0)), (first(n), object(0))]);
        let points_to = solved(all, Vec::new());
        assert_eq!(types(&points_to, first(1)), [0]);
        assert!(points_to.content(first(n)).is_none());
    }

    #[test]
    fn more_than_there_is_room_for_is_nothing() {
        let mut inclusions = Inclusions::default();
        for _ in 0..=limit::MAX_INCLUSIONS {
            inclusions.put(KEPT, object(0));
        }
        let points_to = PointsTo::solve(inclusions);
        assert!(points_to.content(KEPT).is_none() && points_to.is_done);
    }
}
