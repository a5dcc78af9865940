//! Variables of a load object by their names.

use crate::elf::data_symbol::{DataPlace, Storage};
use crate::index::load_object::LoadObjectIndex;
use crate::index::question::{Answer, Question};
use crate::index::static_data::Resident;
use crate::limit;
use crate::types::layout::Layout;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// A variable that was found by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedVariable {
    /// Its first address in the file.
    pub start: Svma,
    /// Its length.
    pub len_bytes: u64,
    /// Each thread has its own: the address is an offset in its block then.
    pub is_thread_local: bool,
    /// Its qualified name.
    pub name: Arc<str>,
    /// The unit that defines it.
    pub unit: Option<Arc<str>>,
    /// Its type, where debug information tells it.
    pub layout: Option<Arc<Layout>>,
}

impl LoadObjectIndex {
    /// The variables of this name, qualified or not, by the symbol tables: at most [`limit::MAX_NAMED_DATA`].
    #[must_use]
    pub fn variables_named(&mut self, name: &str) -> Vec<NamedVariable> {
        let symbols = self.code.image.data.named(name).take(limit::MAX_NAMED_DATA);
        let symbols: Vec<_> = symbols.cloned().collect();
        let mut found: Vec<NamedVariable> = Vec::new();
        for symbol in symbols {
            let DataPlace { storage, at } = symbol.start;
            if found.iter().any(|known| known.start == at) {
                continue;
            }
            let variable = self.variable_at(symbol.start).filter(|variable| variable.0 == at);
            let (layout, unit, full) = match variable {
                Some((_, layout, unit, full)) => (Some(layout), unit, full),
                None => (None, None, Arc::clone(&symbol.name)),
            };
            let len_bytes = layout.as_ref().map_or(symbol.len_bytes, |layout| layout.size);
            let is_thread_local = storage == Storage::Thread;
            found.push(NamedVariable {
                start: at,
                len_bytes,
                is_thread_local,
                name: full,
                unit,
                layout,
            });
        }
        found
    }

    /// The variable at a place: its first address, type, unit and name.
    #[allow(clippy::type_complexity, reason = "it is taken apart at once")]
    fn variable_at(
        &mut self,
        place: DataPlace,
    ) -> Option<(Svma, Arc<Layout>, Option<Arc<str>>, Arc<str>)> {
        for _ in 0..limit::MAX_NAME_TURNS {
            match self.answer(Question::Data(place)) {
                Answer::Unfinished => {}
                Answer::Data(range) => {
                    let Some(Resident::Variable(variable)) = range.resident else { return None };
                    let layout = Arc::clone(&variable.layout);
                    let (unit, name) = (variable.unit.clone(), Arc::clone(&variable.name));
                    return Some((variable.start, layout, unit, name));
                }
                _ => return None,
            }
        }
        None
    }
}
