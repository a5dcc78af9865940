//! Values that are put into cells: all that each can come from, and not what most of that is.

use super::address::{Address, Origin, is_same_type};
use super::content::Content;
use super::doubt::{Doubt, Doubts, Standing};
use super::fact::Fact;
use super::points_to::{Carried, Included, PointerCell};
use super::typing::Typing;
use super::value::{Definition, Slot, Sum, ValueIdx};
use super::worklist::alternatives;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::types::layout::Layout;
use crate::x86_64::abi::{ARGUMENTS, POINTER_BYTES};
use crate::x86_64::exit::Exit;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Numbers that are no addresses, as which programs pass nothing, or a kind.
const NO_ADDRESSES: std::ops::Range<i64> = -4096..4096;

/// Search for all that a value may come from.
struct OriginSearch {
    /// Entry of the function.
    entry: Svma,
    seen: FxHashSet<ValueIdx>,
    next: Vec<ValueIdx>,
    found: Vec<Included>,
    /// The sums that are made of it: what comes from them is known.
    sums: Vec<ValueIdx>,
    /// Number of values that may still be looked at.
    n_left: usize,
    /// Only pointers that are carried are looked for: the search ends in vain at the first value that is none.
    is_for_carried: bool,
    /// The values that such a search ended at, or in vain for.
    refused: FxHashSet<ValueIdx>,
}

impl OriginSearch {
    fn of(value: ValueIdx, sums: Vec<ValueIdx>, entry: Svma, n_left: usize) -> Self {
        let seen = sums.iter().copied().collect();
        let (next, found, refused) = (vec![value], Vec::new(), FxHashSet::default());
        Self { entry, seen, next, found, sums, n_left, is_for_carried: false, refused }
    }

    /// Begins to look for carried pointers that another value may be.
    fn begin_for_carried(&mut self, value: ValueIdx) {
        self.is_for_carried = true;
        self.n_left = limit::MAX_INCLUDED_VALUES;
        self.seen.clear();
        self.found.clear();
        self.next.clear();
        self.next.push(value);
    }
}

impl Typing<'_, '_> {
    /// Lists what a value may be in the function that is entered at `entry`, and adds the values that it comes from to
    /// `seen`; `None` where those are too many.
    pub(super) fn included(
        &mut self,
        entry: Svma,
        value: ValueIdx,
        seen: &mut FxHashSet<ValueIdx>,
    ) -> Option<Vec<Included>> {
        let mut search = OriginSearch::of(value, Vec::new(), entry, limit::MAX_INCLUDED_VALUES);
        self.search(&mut search)?;
        seen.extend(search.seen);
        Some(search.found)
    }

    fn search(&mut self, search: &mut OriginSearch) -> Option<()> {
        while let Some(value) = search.next.pop() {
            let value = self.graph.canonical(value);
            if !search.seen.insert(value) {
                continue;
            }
            search.n_left = search.n_left.checked_sub(1)?;
            if search.refused.contains(&value) {
                return None;
            }
            let included = self.one_included(value, search);
            if search.is_for_carried && included.as_ref().is_some_and(|it| it.carried().is_none()) {
                search.refused.insert(value);
                return None;
            }
            if let Some(included) = included.filter(|it| !search.found.contains(it)) {
                search.found.push(included);
            }
        }
        Some(())
    }

    /// Finds what a value is, unless it is one of those that are to be looked at next, or no address.
    fn one_included(&mut self, value: ValueIdx, search: &mut OriginSearch) -> Option<Included> {
        let Some(definition) = self.graph.definition(value).copied() else {
            return Some(Included::Anything);
        };
        if let Some(function) = self.function_of(&definition) {
            return Some(self.function_included(function));
        }
        if let Some(alternatives) = alternatives(self.graph, value) {
            let mut alternatives = alternatives.peekable();
            let is_none = alternatives.peek().is_none();
            search.next.extend(alternatives);
            return is_none.then_some(Included::Anything);
        }
        match definition {
            Definition::Reloaded { slot, kept, at } => {
                // The type of the variable that it is read from tells it, or else what was put there.
                let declared = self.declared(slot, at).and_then(|it| self.object_of(&it));
                if declared.is_none() {
                    search.next.push(kept);
                }
                declared
            }
            Definition::Sum(sum) => self.sum_included(value, &sum, search),
            Definition::Constant(_)
            | Definition::StaticAddress(_)
            | Definition::FrameAddress(_)
            | Definition::ThreadPointer => match self.static_constant(self.of(value)) {
                Content::Constant(number) if NO_ADDRESSES.contains(&number) => None,
                Content::Address(address) => Some(self.object_included(&address)),
                _ => Some(Included::Anything),
            },
            Definition::Parameter { register } if ARGUMENTS.contains(&register) => {
                let declared = self.own_parameter(register);
                Some(match self.object_of(&declared) {
                    Some(object) => object,
                    None if declared.is_untold() => {
                        Included::Cell(PointerCell::Parameter(search.entry, register))
                    }
                    None => Included::Anything,
                })
            }
            Definition::Loaded { address, n_bytes: POINTER_BYTES } => {
                Some(self.loaded_included(value, &address))
            }
            Definition::Returned { at } => Some(self.returned_included(value, at)),
            // So few bits are no pointer.
            Definition::Narrowed { .. } | Definition::Loaded { .. } => None,
            _ => Some(Included::Anything),
        }
    }

    fn loaded_included(&mut self, value: ValueIdx, address: &Sum) -> Included {
        let made = self.made(value);
        if let Content::Address(Address { origin: Origin::Static, offset, .. }) = &made
            && let Some(start) = offset.only()
            && self.is_entry(Svma(start.cast_unsigned()))
        {
            return self.function_included(Svma(start.cast_unsigned()));
        }
        if let Some(object) = self.object_of(&made) {
            return object;
        }
        let is_perhaps_pointer =
            made.is_untold() || matches!(&made, Content::Address(address) if address.is_erased());
        let is_doubtful =
            address.base.is_some_and(|base| self.is_hinted(base) || self.is_of_several(base));
        let address = self.operand_address(address);
        let cell = (is_perhaps_pointer && !is_doubtful).then(|| self.cell_at(&address)).flatten();
        cell.map_or(Included::Anything, Included::Cell)
    }

    /// Tells whether only what is done with a value tells what it is.
    pub(super) fn is_hinted(&self, value: ValueIdx) -> bool {
        let value = self.graph.canonical(value);
        self.contents.hints.contains_key(&value) && !self.contents.facts.contains_key(&value)
    }

    /// Tells whether a merged value leads to objects of several types, or to something that is not known.
    fn is_of_several(&self, value: ValueIdx) -> bool {
        let Some(mut alternatives) = alternatives(self.graph, value) else { return false };
        let known = self.of(value);
        let is_other = |input: ValueIdx| match (self.of(input), known) {
            (Content::Address(one), Content::Address(other)) => {
                match (&one.origin, &other.origin) {
                    (Origin::Object(one), Origin::Object(other)) => !is_same_type(one, other),
                    (one, other) => one != other,
                }
            }
            (Content::Constant(0), _) => false,
            _ => true,
        };
        alternatives.any(is_other)
    }

    /// The value that a call returns is of the type that this is declared to, or that it is said to have before anything else
    /// can be done with it.
    fn returned_included(&mut self, value: ValueIdx, at: u32) -> Included {
        let call = self.graph.call_at(at).copied();
        let declared = call.map_or(Content::Unknown, |call| self.returned(&call));
        if let Some(object) = self.object_of(&declared) {
            return object;
        }
        let straight = self.straight_after(at);
        let facts = self.contents.facts.get(&value).map_or(&[][..], Vec::as_slice);
        let told: Vec<&Fact> = facts.iter().filter(|fact| !fact.content.is_open()).collect();
        let is_first =
            |fact: &&Fact| straight.contains(&fact.code.start) && fact.standing == Standing::Own;
        let is_first = told.iter().any(is_first);
        let contents: Vec<Content> =
            told.iter().map(|fact| Content::clone(&fact.content)).collect();
        let mut objects = contents.iter().map(|content| self.object_of(content));
        match objects.next() {
            Some(Some(object)) if is_first && objects.all(|it| it.as_ref() == Some(&object)) => {
                return object;
            }
            _ => {}
        }
        let target = call.and_then(|call| self.direct_target(&call));
        let own = target.filter(|target| self.is_described(*target));
        own.map_or(Included::Anything, |own| Included::Cell(PointerCell::Result(own)))
    }

    /// The code after a call that runs whenever it returns.
    fn straight_after(&self, at: u32) -> Range<u64> {
        let function = self.around.function;
        let start = function.code(at as usize).map_or(0, |code| code.end);
        let mut end = start;
        for next in at as usize + 1..function.n_instructions() {
            let Some(code) = function.code(next) else { break };
            end = code.end;
            if function.exit(next) != Exit::Next {
                break;
            }
        }
        start..end
    }

    fn sum_included(
        &mut self,
        value: ValueIdx,
        sum: &Sum,
        search: &mut OriginSearch,
    ) -> Option<Included> {
        let Some(base) = sum.base.filter(|_| !sum.is_static) else {
            return Some(match self.static_constant(self.of(value)) {
                Content::Address(address) => self.object_included(&address),
                _ => Included::Anything,
            });
        };
        if sum.index.is_none() && sum.displacement == 0 {
            search.next.push(base);
            return None;
        }
        if search.is_for_carried {
            // It leads into an object, or nothing is known of it.
            return Some(Included::Anything);
        }
        let Content::Address(address) = self.of(value).clone() else {
            return Some(Included::Anything);
        };
        if !matches!(address.origin, Origin::Object(_)) {
            return Some(self.object_included(&address));
        }
        if search.sums.len() >= limit::MAX_SUMS_OF_ONE_VALUE || self.is_moved(base, sum, &address) {
            return Some(Included::Anything);
        }
        // What it is made of must be such an object on all ways.
        let mut sums = search.sums.clone();
        sums.push(value);
        let mut of_base = OriginSearch::of(base, sums, search.entry, search.n_left);
        let is_known = self.search(&mut of_base).is_some();
        search.n_left = of_base.n_left;
        let of_base = of_base.found;
        let is_same = |included: &Included| match (included, &address.origin) {
            (
                Included::Object(Address { origin: Origin::Object(one), .. }),
                Origin::Object(other),
            ) => is_same_type(one, other),
            _ => false,
        };
        let is_certain = is_known && !of_base.is_empty() && of_base.iter().all(is_same);
        Some(if is_certain { self.object_included(&address) } else { Included::Anything })
    }

    /// Tells whether an address is whole objects further on than what it is made of. What lies after one object is what an
    /// allocator hands out.
    fn is_moved(&self, base: ValueIdx, sum: &Sum, address: &Address) -> bool {
        address.has(Doubt::Which)
            && sum.index.is_none()
            && !matches!(self.of(base), Content::Address(base) if base.has(Doubt::Which))
    }

    fn object_of(&mut self, content: &Content) -> Option<Included> {
        match content {
            Content::Address(address)
                if !address.is_erased() && matches!(address.origin, Origin::Object(_)) =>
            {
                self.object_at(address).map(Included::Object)
            }
            _ => None,
        }
    }

    fn object_included(&mut self, address: &Address) -> Included {
        let object = self.object_at(address);
        object.map_or(Included::Anything, Included::Object)
    }

    /// The object that an address leads into, by its type.
    fn object_at(&mut self, address: &Address) -> Option<Address> {
        let doubts = [Doubt::Beyond, Doubt::Owner, Doubt::Whole, Doubt::Variable];
        if doubts.into_iter().any(|doubt| address.has(doubt)) || address.standing == Standing::Aside
        {
            return None;
        }
        let start = address.offset.only()?;
        let which = Doubts::NONE.with_if(Doubt::Which, address.has(Doubt::Which));
        let (layout, into) = match &address.origin {
            Origin::Object(layout) => (Arc::clone(layout), start),
            Origin::Arms(_) => return None,
            Origin::Static | Origin::Thread => {
                let place = address.data_place(self.around.debug)?;
                let object = self.around.debug.static_object(place)?;
                return Some(Address { doubts: which, ..object });
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: start };
                // Others may be there at other times.
                let mut here = self.contents.frame.structures(slot).into_iter();
                let (layout, into) = here.next()?;
                let is_same = |(other, at): (Arc<Layout>, u64)| {
                    other.geometry == layout.geometry && at == into
                };
                here.all(is_same).then_some((layout, into.cast_signed()))?
            }
        };
        Some(Address { doubts: which, ..object_in(&layout, u64::try_from(into).ok()?)? })
    }

    fn function_included(&mut self, entry: Svma) -> Included {
        if self.is_described(entry) { Included::Function(entry) } else { Included::Anything }
    }

    /// The function whose address a value is.
    pub(super) fn function_of(&self, definition: &Definition) -> Option<Svma> {
        let target = match definition {
            Definition::StaticAddress(svma) => *svma,
            Definition::Constant(number) if self.around.image.is_at_fixed_addresses() => {
                Svma(number.cast_unsigned())
            }
            _ => return None,
        };
        self.is_entry(target).then_some(target)
    }

    /// Tells whether code is not of the linkage table.
    fn is_entry(&self, target: Svma) -> bool {
        let image = self.around.image;
        image.image.is_code(target) && image.linkage_slot(target).is_none()
    }

    /// Tells whether a function is entered at `target` of which the debug information tells.
    pub(super) fn is_described(&mut self, target: Svma) -> bool {
        self.is_entry(target) && self.around.debug.function_entered_at(target).is_some()
    }

    /// Lists the pointers to nothing known of which it may be found out what they lead to, with where they come from.
    pub(super) fn carried(&mut self) -> FxHashMap<ValueIdx, Carried> {
        let mut carried = FxHashMap::default();
        if self.around.points_to.is_done {
            return carried;
        }
        // At which address the function is entered does not count.
        let mut search = OriginSearch::of(ValueIdx(0), Vec::new(), Svma(0), 0);
        for value in (0..self.graph.definitions.len() as u32).map(ValueIdx) {
            if !self.of(value).is_untold() || self.graph.canonical(value) != value {
                continue;
            }
            search.begin_for_carried(value);
            if self.search(&mut search).is_none() {
                search.refused.insert(value);
                continue;
            }
            let found = search.found.iter().filter_map(Included::carried);
            if let Some(most) = found.max() {
                carried.insert(value, most);
            }
        }
        carried
    }
}

impl DebugInfo {
    /// The object at a place in a static variable.
    pub(crate) fn static_object(&mut self, place: DataPlace) -> Option<Address> {
        let variable = self.variable_in(place).variable?;
        object_in(&variable.layout, place.at.offset_from(variable.start)?)
    }
}

/// The object that an address so many bytes inside a variable leads into, if it is not of bytes.
fn object_in(layout: &Arc<Layout>, into: u64) -> Option<Address> {
    let element = layout.innermost_element();
    let into = into.checked_rem(element.size)?;
    let object = Address::object(element, into.cast_signed(), None);
    (!object.is_erased()).then_some(object)
}
