//! The object in the totals that the samples of each name are charged to.

use crate::attribution::name_table::{NameTable, NamedIdx};
use crate::totals::rolling::{ObjectIdx, Totals};
use crate::totals::sums::place;

/// Objects by name. It is filled as samples are charged: a name that nothing was charged to makes no
/// object.
#[derive(Debug, Default)]
pub(crate) struct ChargeTable {
    of_named: Vec<Option<ObjectIdx>>,
    /// The names that it is about: [`NameTable::generation`].
    generation: u64,
}

impl ChargeTable {
    /// The object that samples of `named` are charged to: made now if it is new.
    pub(crate) fn object(
        &mut self,
        named: NamedIdx,
        names: &NameTable,
        totals: &mut Totals,
    ) -> ObjectIdx {
        if self.generation != names.generation() {
            self.generation = names.generation();
            self.of_named.clear();
        }
        if let Some(Some(known)) = self.of_named.get(named.place()) {
            return *known;
        }
        let object = totals.intern(&names.get(named).answer.object);
        *place(&mut self.of_named, named.place(), None) = Some(object);
        object
    }
}
