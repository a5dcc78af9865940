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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::name_table::NameKey;
    use crate::index::site::PlacedObject;
    use crate::types::data_object::DataObject;
    use dataspace_proto::window::WindowLengths;

    #[test]
    fn a_name_in_the_place_of_a_forgotten_one_is_charged_to_its_own_object() {
        let (mut names, mut charged) = (NameTable::default(), ChargeTable::default());
        let mut totals = Totals::new(WindowLengths::default());
        let mut object = |name: &str, names: &mut NameTable| {
            let object = DataObject::untyped_variable(name, 8);
            let named = names
                .whole(NameKey::ControlBlock { offset: 0 }, &PlacedObject { object, offset: 0 });
            charged.object(named, names, &mut totals)
        };
        let first = object("first", &mut names);
        assert_eq!(object("first", &mut names), first);
        names.forget();
        let second = object("second", &mut names);
        assert_ne!(second, first);
        assert_eq!(object("second", &mut names), second);
        names.forget();
        assert_eq!(object("first", &mut names), first, "it is still there");
    }
}
