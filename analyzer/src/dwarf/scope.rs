//! The variables that are visible at one instruction, and where each one is there.

use super::location::{self, FrameBase, Place};
use super::unit::ParsedUnit;
use super::{DebugInfo, DieRef, Entry, Reader};
use crate::limit;
use dataspace_proto::address::Svma;
use dataspace_proto::sample_line::Scope;
use std::sync::Arc;

/// A variable or parameter at one instruction.
#[derive(Clone, Debug)]
pub(crate) struct VisibleVariable {
    pub(crate) name: Arc<str>,
    pub(crate) type_die: DieRef,
    pub(crate) place: Place,
    /// How many scopes are around it: inner ones hide outer ones.
    pub(crate) depth: usize,
}

/// The function around an instruction and what is visible there.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeScope {
    pub(crate) unit_name: Option<Arc<str>>,
    pub(crate) function_name: Option<Arc<str>>,
    /// Innermost scope first.
    pub(crate) variables: Vec<VisibleVariable>,
}

impl CodeScope {
    pub(crate) fn scope(&self, object: &Arc<str>) -> Scope {
        Scope {
            object: Arc::clone(object),
            unit: self.unit_name.clone(),
            function: self.function_name.clone(),
        }
    }
}

impl DebugInfo {
    /// The unit and function at `svma`, without variables; `None` where no unit has code there.
    pub(crate) fn function_scope_at(&mut self, svma: Svma) -> Option<CodeScope> {
        let unit_idx = self.unit_of_code(svma)?;
        let unit = self.unit(unit_idx)?;
        let mut scope = CodeScope { unit_name: unit.name.clone(), ..CodeScope::default() };
        if let Some(offset) = unit.function_at(svma) {
            scope.function_name = self.qualified_name(DieRef { unit: unit_idx, offset });
        }
        Some(scope)
    }

    /// What is visible at `svma`; `None` where no unit has code there.
    pub(crate) fn scope_at(&mut self, svma: Svma) -> Option<CodeScope> {
        let unit_idx = self.unit_of_code(svma)?;
        let unit = self.unit(unit_idx)?;
        let mut scope = self.function_scope_at(svma)?;
        let Some(function) = unit.function_at(svma) else { return Some(scope) };
        let mut walk = ScopeWalk {
            info: self,
            unit: &unit,
            svma,
            frame_base: FrameBase::default(),
            found: Vec::new(),
        };
        walk.function(function);
        let found = walk.found;
        for (offset, place, depth) in found {
            let variable = DieRef { unit: unit_idx, offset };
            if let (Some(name), Some(type_die)) = self.name_and_type(variable) {
                scope.variables.push(VisibleVariable { name, type_die, place, depth });
            }
        }
        scope.variables.sort_by_key(|variable| std::cmp::Reverse(variable.depth));
        Some(scope)
    }

    /// A function's or variable's name with its name spaces.
    pub(crate) fn qualified_name(&mut self, die: DieRef) -> Option<Arc<str>> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (unit, entry) = self.entry(next)?;
            if let Some(value) = entry.attr_value(gimli::DW_AT_name) {
                let name = self.string(&unit, value)?;
                return Some(match unit.scope_of(self.dwarf(), next.offset) {
                    Some(scope) => format!("{scope}::{name}").into(),
                    None => name,
                });
            }
            let origin = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
                .into_iter()
                .find_map(|attribute| entry.attr_value(attribute))?;
            next = self.reference(next.unit, &origin)?;
        }
        None
    }
}

/// One walk from a function down the scopes that hold an instruction.
struct ScopeWalk<'a> {
    info: &'a DebugInfo,
    unit: &'a ParsedUnit,
    svma: Svma,
    frame_base: FrameBase,
    found: Vec<(gimli::UnitOffset, Place, usize)>,
}

impl ScopeWalk<'_> {
    fn function(&mut self, offset: gimli::UnitOffset) {
        let unit = &self.unit.unit;
        let Ok(mut tree) = unit.entries_tree(Some(offset)) else { return };
        let Ok(root) = tree.root() else { return };
        if let Some(gimli::AttributeValue::Exprloc(expression)) =
            root.entry().attr_value(gimli::DW_AT_frame_base)
        {
            self.frame_base = location::frame_base(expression, unit.encoding());
        }
        self.children(root, 0);
    }

    /// Visits the children of a scope, entering those scopes that hold the instruction. Damage
    /// ends the walk; what it found before stays.
    fn children(&mut self, node: gimli::EntriesTreeNode<'_, '_, Reader>, depth: usize) {
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => self.add(entry, depth),
                gimli::DW_TAG_lexical_block
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_try_block
                | gimli::DW_TAG_catch_block
                    if depth < limit::MAX_SCOPE_DEPTH && self.holds_instruction(entry) =>
                {
                    self.children(child, depth + 1);
                }
                _ => {}
            }
        }
    }

    fn holds_instruction(&self, entry: &Entry) -> bool {
        let ranges = super::unit::ranges(self.info.dwarf(), &self.unit.unit, entry);
        let Some(mut ranges) = ranges else {
            return false;
        };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.svma.0) {
                return true;
            }
        }
        false
    }

    fn add(&mut self, entry: &Entry, depth: usize) {
        let unit = &self.unit.unit;
        let Some(value) = entry.attr_value(gimli::DW_AT_location) else { return };
        let expression = match value {
            gimli::AttributeValue::Exprloc(expression) => Some(expression),
            value => self.expression_at(value),
        };
        let place = expression.and_then(|expression| {
            location::place(self.info.dwarf(), unit, expression, self.frame_base)
        });
        if let Some(place) = place {
            self.found.push((entry.offset(), place, depth));
        }
    }

    /// The expression of a location list that is valid at the instruction.
    fn expression_at(
        &self,
        value: gimli::AttributeValue<Reader>,
    ) -> Option<gimli::Expression<Reader>> {
        let mut locations =
            self.info.dwarf().attr_locations(&self.unit.unit, value).ok().flatten()?;
        while let Ok(Some(entry)) = locations.next() {
            if (entry.range.begin..entry.range.end).contains(&self.svma.0) {
                return Some(entry.data);
            }
        }
        None
    }
}
