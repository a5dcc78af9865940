//! Layouts of types by their names, of one load object.

use crate::dwarf::layout::listing::{FoundLayout, LayoutSearch, LayoutWish};
use crate::index::load_object::LoadObjectIndex;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Event of a search for layouts.
#[derive(Debug)]
pub enum LayoutEvent {
    /// One was found.
    Found(Box<FoundLayout>),
    /// A unit was searched: so many of so many.
    Unit(usize, usize),
}

/// End of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutSearchEnd {
    /// Layouts that were found.
    pub n_found: usize,
    /// True where there are more than [`crate::limit::MAX_FOUND_LAYOUTS`].
    pub is_cut: bool,
    /// Names that may have been meant, where none was found.
    pub proposals: Vec<Arc<str>>,
}

impl LoadObjectIndex {
    /// Searches the debug information for layouts; `look` is told of each, and of each unit, and may break the search off.
    /// Damage in a unit ends that unit. `None` where there is no debug information.
    pub fn search_layouts(
        &mut self,
        wish: LayoutWish,
        look: &mut dyn FnMut(LayoutEvent) -> ControlFlow<()>,
    ) -> Option<LayoutSearchEnd> {
        let debug = self.debug.as_mut()?;
        let mut search = LayoutSearch::new(wish);
        let units = debug.searched_units();
        let n_units = units.len();
        let mut n_searched = 0;
        let mut own = units;
        while let Some(unit) = own.next().or_else(|| search.next_import()) {
            let searched = debug.search_unit(unit, &mut search, &mut |found| {
                look(LayoutEvent::Found(Box::new(found)))
            });
            n_searched += 1;
            let looked = searched.is_continue()
                && look(LayoutEvent::Unit(n_searched, n_units.max(n_searched))).is_continue();
            if !looked || search.is_cut {
                break;
            }
        }
        let proposals = if search.n_found == 0 { search.proposals() } else { Vec::new() };
        Some(LayoutSearchEnd { n_found: search.n_found, is_cut: search.is_cut, proposals })
    }
}
