//! Layouts by name: a search through all units of a load object.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::kept::LayoutTable;
use crate::dwarf::unit::entry_walk::Met;
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::dwarf::unit::reader::Entry;
use crate::dwarf::unit::tag::{is_aggregate, is_transparent};
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::Layout;
use crate::types::similar_name::distance;
use crate::types::type_layout::{self, TypeLayout};
use crate::types::type_pattern::{TypePattern, own_part};
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Layout of a type that was searched by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLayout {
    /// The name with its name spaces, as the program writes it; `-` where it has none.
    pub name: Arc<str>,
    /// Another name by which it was found: a `typedef`.
    pub alias: Option<Arc<str>>,
    /// The unit that describes it: the main source file (`DW_AT_name`).
    pub unit: Option<Arc<str>>,
    /// Offset of its entry in `.debug_info` of the file that has it; `None` in a split unit or a type unit.
    pub entry: Option<u64>,
    /// Bases whose place only a run tells (`DW_AT_virtuality`): they are no members here.
    pub virtual_bases: Box<[Arc<str>]>,
    /// Size and members.
    pub layout: TypeLayout,
}

/// Wish for layouts of types, by their names.
#[derive(Clone, Debug)]
pub struct LayoutWish {
    /// Their names.
    pub pattern: TypePattern,
    /// Every description is wanted, also those that are alike.
    pub is_every: bool,
}

/// Search for layouts: what it has found so far.
#[derive(Debug)]
pub(crate) struct LayoutSearch {
    wish: LayoutWish,
    /// Name and geometry of those that were handed out.
    seen: FxHashSet<(Arc<str>, u64)>,
    pub(crate) n_found: usize,
    /// True where there were more than the limit.
    pub(crate) is_cut: bool,
    near: NearNames,
    /// Units of other files that are part of these: what `dwz` moved there.
    imported: Vec<UnitIdx>,
    known_imports: FxHashSet<UnitIdx>,
}

impl LayoutSearch {
    pub(crate) fn new(wish: LayoutWish) -> Self {
        Self {
            wish,
            seen: FxHashSet::default(),
            n_found: 0,
            is_cut: false,
            near: NearNames::default(),
            imported: Vec::new(),
            known_imports: FxHashSet::default(),
        }
    }

    /// A unit that another one imports and that was not searched yet.
    pub(crate) fn next_import(&mut self) -> Option<UnitIdx> {
        self.imported.pop()
    }

    /// Names that were met and may have been meant, best first.
    pub(crate) fn proposals(&self) -> Vec<Arc<str>> {
        self.near.like(self.wish.pattern.text())
    }

    fn is_full(&self) -> bool {
        self.n_found >= limit::MAX_FOUND_LAYOUTS
    }
}

/// Names that did not match, while none did.
#[derive(Debug, Default)]
struct NearNames {
    names: FxHashSet<Arc<str>>,
    n_bytes: usize,
}

impl NearNames {
    fn add(&mut self, name: &Arc<str>) {
        let has_room = self.names.len() < limit::MAX_NEAR_NAMES
            && self.n_bytes.saturating_add(name.len()) <= limit::MAX_NEAR_BYTES;
        if has_room && self.names.insert(Arc::clone(name)) {
            self.n_bytes += name.len();
        }
    }

    /// Those that may be meant by `text`: the same in another name space, then what is near, then what has it in it.
    fn like(&self, text: &str) -> Vec<Arc<str>> {
        let plain = text.trim_matches(['*', '?']);
        let own = own_part(plain);
        let most = (own.chars().count() / 3).clamp(1, 3);
        let rank = |name: &Arc<str>| {
            let named = own_part(name);
            let is_same = named.eq_ignore_ascii_case(own);
            let near = || distance(named, own, most).map(|distance| distance + 1);
            let is_in = || own.len() > 2 && name.to_lowercase().contains(&own.to_lowercase());
            let rank =
                if is_same { Some(0) } else { near().or_else(|| is_in().then_some(most + 2)) };
            rank.map(|rank| (rank, name.len(), Arc::clone(name)))
        };
        let mut ranked: Vec<_> = self.names.iter().filter_map(rank).collect();
        ranked.sort_unstable();
        ranked.into_iter().take(limit::MAX_PROPOSED).map(|(.., name)| name).collect()
    }
}

impl DebugInfo {
    /// The units that a search goes through.
    pub(crate) fn searched_units(&self) -> std::ops::Range<UnitIdx> {
        self.sources.main_units()
    }

    /// Hands the layouts that `search` wants of one unit to `take`, until that breaks off. Damage ends the unit.
    pub(crate) fn search_unit(
        &mut self,
        unit: UnitIdx,
        search: &mut LayoutSearch,
        take: &mut dyn FnMut(FoundLayout) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.begin_question();
        let idx = self.whole_unit(unit);
        let Some(unit) = self.unit(idx) else { return ControlFlow::Continue(()) };
        let Ok(mut walk) = unit.walk_from(unit.unit.header.root_offset()) else {
            return ControlFlow::Continue(());
        };
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            let Ok(Some(met)) = walk.next_where(is_of_search) else { break };
            let die = DieRef { unit: idx, offset: met.offset };
            if met.tag == gimli::DW_TAG_imported_unit {
                self.note_import(&unit, die, search);
                continue;
            }
            if search.is_full() {
                search.is_cut = true;
                break;
            }
            if self.layouts.known.len().max(self.layouts.n_members) > limit::MAX_KEPT_LAYOUTS {
                self.layouts = LayoutTable::default();
            }
            let found = match met.tag {
                gimli::DW_TAG_typedef => self.by_typedef(&unit, die, search),
                _ => self.by_name(&unit, die, search),
            };
            if let Some(found) = found {
                search.n_found += 1;
                take(found)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Notes that a unit of another file belongs to this one. Those of the file itself are searched anyway.
    fn note_import(&mut self, unit: &ParsedUnit, die: DieRef, search: &mut LayoutSearch) {
        let Ok(entry) = unit.unit.entry(die.offset) else { return };
        let Some(value) = entry.attr_value(gimli::DW_AT_import) else { return };
        let Some(imported) = self.reference(die.unit, &value) else { return };
        if !self.searched_units().contains(&imported.unit)
            && search.known_imports.insert(imported.unit)
        {
            search.imported.push(imported.unit);
        }
    }

    /// The aggregate at `die`, if it has a name that is wanted.
    fn by_name(
        &mut self,
        unit: &ParsedUnit,
        die: DieRef,
        search: &mut LayoutSearch,
    ) -> Option<FoundLayout> {
        let name = self.wanted_name(unit, die, search)?;
        let layout = self.declared_aggregate(die)?;
        self.found(die, (name, None), &layout, search)
    }

    /// The aggregate that a `typedef` stands for. A glob finds only those that have no other name.
    fn by_typedef(
        &mut self,
        unit: &ParsedUnit,
        die: DieRef,
        search: &mut LayoutSearch,
    ) -> Option<FoundLayout> {
        let name = self.wanted_name(unit, die, search)?;
        let of = self.aggregate_behind(die)?;
        let layout = self.declared_aggregate(of)?;
        match self.type_name(of) {
            None => self.found(of, (name, None), &layout, search),
            Some(own) if search.wish.pattern.is_exact() && own != name => {
                self.found(of, (own, Some(name)), &layout, search)
            }
            Some(_) => None,
        }
    }

    /// The name of the entry at `die`, if it is wanted.
    fn wanted_name(
        &mut self,
        unit: &ParsedUnit,
        die: DieRef,
        search: &mut LayoutSearch,
    ) -> Option<Arc<str>> {
        let own = unit.own_name(die.offset)?;
        let pattern = &search.wish.pattern;
        let is_near = search.n_found == 0;
        if !is_near && !pattern.may_end_with(&own) {
            return None;
        }
        let name = self.type_name(die)?;
        if pattern.matches(&name) {
            return Some(name);
        }
        if is_near {
            search.near.add(&name);
        }
        None
    }

    /// The aggregate that a `typedef` renames, through others and qualifiers.
    fn aggregate_behind(&mut self, die: DieRef) -> Option<DieRef> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (_, entry) = self.entry(next)?;
            if is_aggregate(entry.tag()) {
                let next = self.definition(next);
                let (_, entry) = self.entry(next)?;
                return is_defined(&entry).then_some(next);
            }
            if !is_transparent(entry.tag()) {
                return None;
            }
            next = self.target(next, &entry)?;
        }
        None
    }

    fn found(
        &mut self,
        die: DieRef,
        (name, alias): (Arc<str>, Option<Arc<str>>),
        layout: &Layout,
        search: &mut LayoutSearch,
    ) -> Option<FoundLayout> {
        let is_new =
            search.wish.is_every || search.seen.insert((Arc::clone(&name), layout.geometry));
        if !is_new {
            return None;
        }
        let mut described = type_layout::describe(layout, limit::MAX_LAYOUT_ROWS)?;
        if let Some(called) = layout.expression.called(&name) {
            described.type_name = called.to_string().into();
        }
        let unit = self.unit(die.unit)?;
        let entry = die.offset.to_debug_info_offset(&unit.unit.header);
        Some(FoundLayout {
            name,
            alias,
            unit: unit.name.clone(),
            entry: entry.map(|entry| entry.0 as u64),
            virtual_bases: self.virtual_bases(die),
            layout: described,
        })
    }

    fn virtual_bases(&mut self, die: DieRef) -> Box<[Arc<str>]> {
        let mut bases = Vec::new();
        let is_base = |tag| tag == gimli::DW_TAG_inheritance;
        self.for_each_child(die, is_base, |info, child| {
            let is_virtual = match child.attr_value(gimli::DW_AT_virtuality) {
                Some(gimli::AttributeValue::Virtuality(how)) => how == gimli::DW_VIRTUALITY_virtual,
                _ => false,
            };
            if is_virtual && bases.len() < limit::MAX_VIRTUAL_BASES {
                let of = info.target(die, child);
                let name = of.and_then(|of| info.type_name(of));
                bases.push(name.unwrap_or_else(|| "-".into()));
            }
        });
        bases.into()
    }
}

/// Tells whether an entry can have a layout by a name, or leads to more of them.
fn is_of_search(met: &Met) -> bool {
    match met.tag {
        gimli::DW_TAG_typedef | gimli::DW_TAG_imported_unit => true,
        _ => met.is_definition(),
    }
}

/// Tells whether an aggregate is more than declared.
fn is_defined(entry: &Entry) -> bool {
    entry.attr_value(gimli::DW_AT_declaration).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_begin_with_the_same_name_elsewhere() {
        let mut near = NearNames::default();
        for name in ["ns::order", "orders", "order_book", "cell", "Order"] {
            near.add(&name.into());
        }
        let like = |text: &str| -> Vec<String> {
            near.like(text).iter().map(|name| name.to_string()).collect()
        };
        assert_eq!(like("order"), ["Order", "ns::order", "orders", "order_book"]);
        assert_eq!(like("ordre"), ["Order", "ns::order"]);
        assert_eq!(like("zzzzzz"), [""; 0]);
    }
}
