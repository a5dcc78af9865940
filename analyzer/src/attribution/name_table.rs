//! Names made so far: each (trigger, offset) pair is named once, and its samples are charged by index.

use crate::attribution::claim::Relation;
use crate::attribution::site_table::{CallIdx, SiteIdx};
use crate::attribution::vote::{KindIdx, Lesson};
use crate::bytes::file::LoadObjectIdx;
use crate::elf::data_symbol::DataPlace;
use crate::index::call_site::Spot;
use crate::index::site::PlacedObject;
use crate::index::static_data::UntypedObject;
use crate::limit;
use crate::types::containment::{self, Finer};
use crate::types::data_object::{self, ObjectStep, Root};
use crate::types::descriptor::Spelling;
use crate::types::layout::{Layout, ScalarKind};
use crate::types::value_kind::ValueKind;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

/// Index of a named object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NamedIdx(u32);

impl NamedIdx {
    #[cfg(test)]
    pub(crate) const fn at(place: u32) -> Self {
        Self(place)
    }

    /// Its place among all names since the last time they were forgotten.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// Key of a name, so that it is made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameKey {
    Object { site: SiteIdx, trigger: u8, access: u8 },
    Bytes { site: SiteIdx, trigger: u8, access: u8 },
    Indexed { site: SiteIdx, trigger: u8, access: u8, offset: u64, size: u64 },
    Slot { site: SiteIdx, trigger: u8, slot: u32, offset: u64, size: u64 },
    OuterSlot { call: CallIdx, slot: u32, offset: u64, size: u64 },
    Live { site: SiteIdx, trigger: u8, live: u32, offset: u64, size: u64 },
    Passed { call: CallIdx, onward: u8, argument: u8, spot: Spot, kind: ValueKind },
    Voted { kind: KindIdx, offset: u32, size: u32 },
    ControlBlock { offset: u64 },
    Static { object: LoadObjectIdx, start: DataPlace, offset: u64, size: u64 },
}

/// A named object.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) answer: PlacedObject,
    /// Its lesson for votes, once that was asked.
    pub(crate) lesson: Option<Lesson>,
    spelling: OnceCell<Spelling>,
    /// It is the compiler's own: [`UntypedObject::is_made`].
    is_made: bool,
    /// Number of the outermost element, where it is the same for every sample.
    element: Option<u64>,
    /// The static array that it is an element of, one as the other.
    pub(crate) array: Option<StaticArray>,
}

/// A static array, of which all elements have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaticArray {
    /// Its first address, in its load object.
    pub(crate) start: Svma,
    /// Bytes of an element.
    pub(crate) element_bytes: u64,
}

impl Named {
    /// The object's spelling, worked out when it is first shown.
    pub(crate) fn spelling(&self) -> &Spelling {
        self.spelling.get_or_init(|| Spelling::of(&self.answer.object))
    }

    /// Number of the element that is touched: in the member that is an array, else in the array that the outermost
    /// element is of; `None` where there is none, or its beginning is not known.
    pub(crate) fn index(&self) -> Option<u64> {
        let PlacedObject { object, offset } = &self.answer;
        let leaf = object.leaf()?;
        let array = matches!(leaf.step, ObjectStep::Member { .. }).then(|| leaf.step.layout());
        let in_member = array.flatten().and_then(|array| {
            data_object::element_of_array(array, offset.checked_sub(leaf.offset)?)
        });
        in_member.or(self.element)
    }
}

/// All names of a session.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    generation: u64,
    named: Vec<Named>,
    of_key: FxHashMap<NameKey, Option<NamedIdx>>,
    stack: Option<NamedIdx>,
    /// Results of [`Self::finer`] for two answers.
    joined: FxHashMap<(NamedIdx, NamedIdx), Option<NamedIdx>>,
}

impl NameTable {
    pub(crate) fn get(&self, idx: NamedIdx) -> &Named {
        &self.named[idx.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, idx: NamedIdx) -> &mut Named {
        &mut self.named[idx.0 as usize]
    }

    /// Tells whether two names are of one data object.
    pub(crate) fn is_same(&self, first: NamedIdx, second: NamedIdx) -> bool {
        first == second || self.get(first).answer.object.is_same(&self.get(second).answer.object)
    }

    /// Tells whether the next name would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        self.of_key.len().max(self.joined.len()) >= limit::MAX_NAMES
    }

    /// Forgets every name; what was charged stays charged.
    pub(crate) fn forget(&mut self) {
        self.generation += 1;
        self.named.clear();
        self.of_key.clear();
        self.joined.clear();
        self.stack = None;
    }

    /// The same, and gives up the room they took.
    pub(crate) fn evict(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// Number of times that all names were forgotten: an index of before means nothing any more.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The part of `layout` that `key` stands for; `None` outside it.
    pub(crate) fn part(
        &mut self,
        key: NameKey,
        layout: &Arc<Layout>,
        root: Root<'_>,
        (offset, size): (u64, u64),
    ) -> Option<NamedIdx> {
        self.part_as(key, layout, root, (offset, size, ValueKind::Unknown))
    }

    /// The same for a value of a known kind, which `key` must stand for too.
    pub(crate) fn part_as(
        &mut self,
        key: NameKey,
        layout: &Arc<Layout>,
        root: Root<'_>,
        (offset, size, kind): (u64, u64, ValueKind),
    ) -> Option<NamedIdx> {
        if let Some(known) = self.of_key.get(&key) {
            return *known;
        }
        let answer = data_object::name_as(layout, root, offset, size, kind);
        let named = answer.map(|(object, into)| {
            let named = self.add(PlacedObject { object, offset: into });
            // What an instruction tells by itself is the part of an element, whichever it is.
            if matches!(key, NameKey::Slot { .. } | NameKey::OuterSlot { .. }) {
                self.get_mut(named).element = data_object::element_of_array(layout, offset);
            }
            named
        });
        self.of_key.insert(key, named);
        named
    }

    /// An answer that is the same for every sample.
    pub(crate) fn whole(&mut self, key: NameKey, answer: &PlacedObject) -> NamedIdx {
        if let Some(Some(known)) = self.of_key.get(&key) {
            return *known;
        }
        let named = self.add(answer.clone());
        self.of_key.insert(key, Some(named));
        named
    }

    /// The object of a name that no type describes.
    pub(crate) fn untyped(
        &mut self,
        key: NameKey,
        untyped: &UntypedObject,
        offset: u64,
    ) -> NamedIdx {
        if let Some(Some(known)) = self.of_key.get(&key) {
            return *known;
        }
        let named = self.add(PlacedObject { object: untyped.object.clone(), offset });
        self.get_mut(named).is_made = untyped.is_made;
        self.of_key.insert(key, Some(named));
        named
    }

    /// The relation of the object that an instruction names to the one at the address.
    pub(crate) fn relation(&mut self, typed: NamedIdx, located: NamedIdx) -> Relation {
        if self.is_made_for(typed, located) {
            return Relation::Only(located);
        }
        // A name without a type neither confirms nor contradicts one.
        if self.get(located).answer.object.is_untyped() {
            return Relation::Only(typed);
        }
        self.finer(typed, located).map_or(Relation::Contradict, Relation::Agree)
    }

    /// The relation of a scalar to an object that is said to be around it.
    pub(crate) fn relation_around(&mut self, scalar: NamedIdx, around: NamedIdx) -> Relation {
        match self.is_inside(scalar, around) {
            true => Relation::Agree(around),
            false => Relation::Contradict,
        }
    }

    /// Tells whether the compiler's own object at the address says more than what the instruction names
    /// after a pointer: a virtual call reads a table, not just some pointer to a function.
    fn is_made_for(&self, typed: NamedIdx, located: NamedIdx) -> bool {
        let object = &self.get(typed).answer.object;
        self.get(located).is_made
            && object.variable.is_none()
            && self.scalar_kind(typed) == Some(ScalarKind::Pointer)
    }

    /// `<Stack>`.
    pub(crate) fn stack(&mut self) -> NamedIdx {
        if let Some(stack) = self.stack {
            return stack;
        }
        let stack = self.add(PlacedObject::stack());
        self.stack = Some(stack);
        stack
    }

    fn add(&mut self, answer: PlacedObject) -> NamedIdx {
        let idx = NamedIdx(self.named.len() as u32);
        let named = Named {
            answer,
            lesson: None,
            spelling: OnceCell::new(),
            is_made: false,
            element: None,
            array: None,
        };
        self.named.push(named);
        idx
    }

    /// Of two answers for one access the finer one, if one contains the other; `None` if they
    /// contradict each other.
    fn finer(&mut self, typed: NamedIdx, located: NamedIdx) -> Option<NamedIdx> {
        if let Some(known) = self.joined.get(&(typed, located)) {
            return *known;
        }
        let finer = self.compare(typed, located);
        self.joined.insert((typed, located), finer);
        finer
    }

    /// Tells whether the name is that of a number or pointer behind a pointer, of which nothing around it is
    /// known.
    pub(crate) fn is_bare_scalar(&self, named: NamedIdx) -> bool {
        let object = &self.get(named).answer.object;
        object.is_scalar() && object.variable.is_none()
    }

    /// Tells whether a scalar can be the part of an object that another name is of.
    fn is_inside(&mut self, scalar: NamedIdx, around: NamedIdx) -> bool {
        let object = &self.get(around).answer.object;
        !object.is_scalar()
            && self.scalar_kind(scalar) == self.scalar_kind(around)
            && self.finer(scalar, around) == Some(around)
    }

    fn scalar_kind(&self, named: NamedIdx) -> Option<ScalarKind> {
        self.get(named).answer.object.leaf()?.step.scalar_kind()
    }

    fn compare(&self, typed: NamedIdx, located: NamedIdx) -> Option<NamedIdx> {
        let (by_type, by_address) = (self.get(typed), self.get(located));
        if self.is_same(typed, located) || Some(typed) == self.stack {
            // The same object, or part of the frame that turns out to be a variable.
            return Some(located);
        }
        Some(match containment::finer(&by_type.answer.object, &by_address.answer.object)? {
            Finer::Typed => typed,
            Finer::Located => located,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::data_object::DataObject;
    use crate::types::sample::{number, scalar};

    #[test]
    fn what_the_compiler_made_says_more_than_a_pointer_without_a_variable_and_than_nothing_else() {
        let mut names = NameTable::default();
        let key = |offset| NameKey::ControlBlock { offset };
        let table = |is_made| UntypedObject {
            start: Svma(0x4000),
            object: DataObject::made("vtable", Some("shape"), 32),
            is_made,
        };
        let made = names.untyped(key(0), &table(true), 16);
        let (pointer, long) = (scalar("pointer", 8, ScalarKind::Pointer), number("long int", 8));
        let mut part =
            |offset, layout, root| names.part(key(offset), layout, root, (0, 8)).unwrap();
        let pointed = part(1, &pointer, Root::Pointer("p"));
        let variable = part(2, &pointer, Root::Variable("v"));
        let counted = part(3, &long, Root::Pointer("p"));
        let plain = names.untyped(key(4), &table(false), 16);
        assert_eq!(names.relation(pointed, made), Relation::Only(made));
        for (typed, located) in [(variable, made), (counted, made), (pointed, plain)] {
            assert_eq!(names.relation(typed, located), Relation::Only(typed));
        }
    }
}
