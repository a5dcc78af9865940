//! Static variables by address.

use super::{DebugInfo, DieRef};
use crate::layout::Layout;
use crate::limit;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// A global, file-static or function-static variable.
#[derive(Debug, PartialEq, Eq)]
pub struct StaticVariable {
    /// Its first address.
    pub start: Svma,
    /// Its type.
    pub layout: Arc<Layout>,
    /// Its name, qualified.
    pub name: Arc<str>,
    /// The unit that defines it.
    pub unit: Option<Arc<str>>,
}

/// All variables with an address, by address.
#[derive(Debug, Default)]
pub(crate) struct StaticVariables {
    by_address: Vec<(Svma, DieRef)>,
}

/// What is at a data address: a variable, or a gap between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRange {
    /// First address.
    pub start: Svma,
    /// End.
    pub end: Svma,
    /// The variable, `None` in a gap.
    pub variable: Option<Arc<StaticVariable>>,
}

impl DebugInfo {
    /// What the debug information knows of the byte at `svma`.
    pub(crate) fn variable_at(&mut self, svma: Svma) -> DataRange {
        if self.variables.is_none() {
            self.variables = Some(self.collect_variables());
        }
        let variables = self.variables.as_ref().map_or(&[][..], |v| &v.by_address);
        let next = variables.partition_point(|(start, _)| *start <= svma);
        let gap_end = variables.get(next).map_or(Svma(u64::MAX), |(start, _)| *start);
        // Several entries can have one address: a declaration and its definition, aliases.
        let here: Vec<(Svma, DieRef)> = variables[..next]
            .iter()
            .rev()
            .take_while({
                let start = next.checked_sub(1).map(|last| variables[last].0);
                move |(address, _)| Some(*address) == start
            })
            .take(8)
            .copied()
            .collect();
        // A gap begins where the nearest entry does, even if that one has no name or type: one that
        // began before a variable below it would never be found again by its start.
        let mut gap_start = here.first().map_or(Svma(0), |(start, _)| *start);
        for (start, die) in here {
            let Some(variable) = self.static_variable(start, die) else { continue };
            let end = Svma(start.0.saturating_add(variable.layout.size));
            if (start..end).contains(&svma) {
                return DataRange { start, end, variable: Some(variable) };
            }
            gap_start = gap_start.max(end.min(svma));
        }
        DataRange { start: gap_start, end: gap_end, variable: None }
    }

    fn static_variable(&mut self, start: Svma, die: DieRef) -> Option<Arc<StaticVariable>> {
        let (_, type_die) = self.name_and_type(die);
        let name = self.qualified_name(die)?;
        let layout = self.layout(type_die?);
        let unit = self.unit(die.unit)?.name.clone();
        Some(Arc::new(StaticVariable { start, layout, name, unit }))
    }

    /// One walk over all units: which variable is where is not known before.
    fn collect_variables(&mut self) -> StaticVariables {
        let mut by_address = Vec::new();
        for unit_idx in self.sources.main_units() {
            let unit_idx = self.whole_unit(unit_idx);
            let Some(unit) = self.unit(unit_idx) else { continue };
            let room = limit::MAX_STATIC_VARIABLES.saturating_sub(by_address.len());
            by_address.extend(
                unit.variables
                    .iter()
                    .take(room)
                    .map(|(start, offset)| (*start, DieRef { unit: unit_idx, offset: *offset })),
            );
        }
        by_address.sort_unstable_by_key(|(start, die)| (*start, die.unit, die.offset.0));
        StaticVariables { by_address }
    }
}
