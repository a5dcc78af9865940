//! The object in the totals that the samples of each name are charged to, and its name in the history.

use crate::attribution::name_table::{NameTable, Named, NamedIdx};
use crate::history::chunk::NONE;
use crate::history::data_name::DataName;
use crate::history::store::History;
use crate::history::touched_data::TouchedData;
use crate::index::site::PlacedObject;
use crate::totals::rolling::{ObjectIdx, Totals};
use crate::totals::sums::place;
use crate::types::scalar_notation::ScalarNotation;
use dataspace_proto::reason::{N_REASONS, Reason};
use std::sync::Arc;

/// The object that the samples of a name are charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The object in the totals.
    pub(crate) object: ObjectIdx,
    /// The same in the history, where there is one.
    pub(crate) touched: TouchedData,
}

/// Accounts by name. It is filled as samples are charged: a name that nothing was charged to makes no
/// object.
#[derive(Debug, Default)]
pub(crate) struct ChargeTable {
    of_named: Vec<Option<Account>>,
    of_reason: [Option<Account>; N_REASONS],
    /// The names that it is about: [`NameTable::generation`].
    generation: u64,
}

impl ChargeTable {
    /// The account of `named`: made now if it is new.
    pub(crate) fn account(
        &mut self,
        named: NamedIdx,
        names: &NameTable,
        totals: &mut Totals,
        history: &mut History,
    ) -> &Account {
        if self.generation != names.generation() {
            self.generation = names.generation();
            self.of_named.clear();
        }
        let account = place(&mut self.of_named, named.place(), None);
        account.get_or_insert_with(|| {
            let named_object = names.get(named);
            let object = totals.intern(&named_object.answer.object);
            let touched = match history.is_kept() {
                true => touched(named_object, object, totals, history),
                false => TouchedData::NOTHING,
            };
            Account { object, touched }
        })
    }

    /// The account of what has no object for `reason`.
    pub(crate) fn account_of(
        &mut self,
        reason: Reason,
        totals: &Totals,
        history: &mut History,
    ) -> &Account {
        self.of_reason[reason as usize].get_or_insert_with(|| account_of(reason, totals, history))
    }
}

fn account_of(reason: Reason, totals: &Totals, history: &mut History) -> Account {
    let object = Totals::reason(reason);
    let touched = match history.is_kept() {
        true => TouchedData {
            name: history.names.number(object, None, |_| DataName {
                object: totals.descriptor(object),
                name: totals
                    .source_name(object)
                    .map(|(name, _)| Arc::clone(name))
                    .unwrap_or_default(),
                aggregate: totals.outermost(object),
                type_name: None,
                member: None,
                variable: None,
                reason: Some(reason),
                notation: ScalarNotation::DIGITS,
            }),
            ..TouchedData::NOTHING
        },
        false => TouchedData::NOTHING,
    };
    Account { object, touched }
}

fn touched(
    named: &Named,
    object: ObjectIdx,
    totals: &Totals,
    history: &mut History,
) -> TouchedData {
    let PlacedObject { object: data, offset } = &named.answer;
    let name = history.names.number(object, data.variable.as_ref(), |variable| {
        let spelling = named.spelling();
        DataName {
            object: totals.descriptor(object),
            name: totals.source_name(object).map(|(name, _)| Arc::clone(name)).unwrap_or_default(),
            aggregate: totals.outermost(object),
            type_name: Some(Arc::clone(&spelling.type_name)),
            member: spelling.member.clone(),
            variable: variable.cloned(),
            reason: None,
            notation: ScalarNotation::of(data),
        }
    });
    // Of an object of 4 GiB the end has no offset.
    let number = |number: u64| u32::try_from(number).unwrap_or(NONE);
    let (offset, index) = (number(*offset), named.index().map_or(NONE, number));
    let array = named.array.filter(|_| index == NONE);
    TouchedData { name, offset, index, array }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::name_table::NameKey;
    use crate::types::data_object::DataObject;
    use dataspace_proto::window::WindowLengths;

    #[test]
    fn a_name_in_the_place_of_a_forgotten_one_is_charged_to_its_own_object() {
        let (mut names, mut charged) = (NameTable::default(), ChargeTable::default());
        let mut totals = Totals::new(WindowLengths::default());
        let mut history = History::default();
        let mut object = |name: &str, names: &mut NameTable| {
            let object = DataObject::untyped_variable(name, 8);
            let named = names
                .whole(NameKey::ControlBlock { offset: 0 }, &PlacedObject { object, offset: 0 });
            charged.account(named, names, &mut totals, &mut history).object
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
