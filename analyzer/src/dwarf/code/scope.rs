//! The variables that are visible at one instruction, and where each one is there.

use crate::dwarf::code::kept::CodeScope;
use crate::dwarf::debug_info::DebugInfo;
use crate::limit;
use crate::types::die::DieRef;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl DebugInfo {
    /// The unit and function at `svma`, without variables; `None` where no unit has code there.
    pub(crate) fn function_scope_at(&mut self, svma: Svma) -> Option<CodeScope> {
        let unit_idx = self.unit_of_code(svma)?;
        if self.declared.function_at(unit_idx, svma).is_some() {
            let scope = self.scope_at(svma)?;
            return Some(CodeScope { variables: Vec::new(), ..scope });
        }
        let unit = self.unit(unit_idx)?;
        let mut scope = CodeScope { unit_name: unit.name.clone(), ..CodeScope::default() };
        if let Some(offset) = unit.function_at(svma) {
            scope.function_name = self.qualified_name(DieRef { unit: unit_idx, offset });
        }
        Some(scope)
    }

    /// The variables visible at `svma`; `None` where no unit has code there.
    pub(crate) fn scope_at(&mut self, svma: Svma) -> Option<CodeScope> {
        Some(self.function_at(svma)?.at(svma))
    }

    /// A function's or variable's name with its name spaces.
    pub(crate) fn qualified_name(&mut self, die: DieRef) -> Option<Arc<str>> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (unit, entry) = self.entry(next)?;
            if let Some(value) = entry.attr_value(gimli::DW_AT_name) {
                let name = self.string(&unit, value)?;
                return Some(match unit.scope_of(&entry) {
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
