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
            let function = self.function_at(svma)?;
            let unit_name = function.unit_name.clone();
            return Some(CodeScope { unit_name, function_name: function.function_name.clone() });
        }
        let unit = self.unit(unit_idx)?;
        let function = unit.function_at(svma).map(|offset| DieRef { unit: unit_idx, offset });
        let function_name = function.and_then(|function| self.qualified_name(function));
        Some(CodeScope { unit_name: unit.name.clone(), function_name })
    }

    /// A function's or variable's name with its name spaces.
    pub(crate) fn qualified_name(&mut self, die: DieRef) -> Option<Arc<str>> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (unit, entry) = self.entry(next)?;
            if let Some(value) = entry.attr_value(gimli::DW_AT_name) {
                let name = unit.string(value)?;
                return Some(match unit.scope_of(&entry) {
                    Some(scope) => format!("{scope}::{name}").into(),
                    None => name,
                });
            }
            next = self.origin(next, &entry)?;
        }
        None
    }
}
