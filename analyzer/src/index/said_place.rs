//! Operands of which data flow knows nothing, by what the debug information says is where they are.

use crate::dataflow::{Address, Content, Origin};
use crate::index::pointed;
use crate::index::site::{PlacedObject, TypeAnswer};
use crate::index::type_path::{TypePath, named};
use crate::types::data_object::Root;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::access::MemoryAccess;
use dataspace_proto::memory::Access;
use std::sync::Arc;

impl TypePath<'_> {
    /// Answers by a variable that is at the operand's address, that points there, or whose value is what lies there.
    pub(crate) fn said_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        let part = self.part_answer(access).or_else(|| self.sum_answer(access));
        part.or_else(|| self.copy_answer(access))
    }

    /// A variable that the debug information says is at the operand's address.
    fn part_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        let operand = &access.address;
        let number = operand.base?.dwarf.filter(|_| operand.index.is_none())?;
        if let Some((layout, into)) = self.flow.part(self.svma, number, operand.displacement) {
            return Some(named(&layout, Root::Pointer(""), into, access));
        }
        let is_open = self.flow.register(self.svma, number).is_open();
        let size = u64::from(access.size);
        let copied = (is_open && operand.displacement == 0)
            .then(|| self.flow.copied(self.svma, number, size))??;
        Some(named(&copied, Root::Pointer(""), 0, access))
    }

    /// Answers by an object that the debug information says is at, or is pointed at by, the sum of the operand's registers.
    fn sum_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        let (address, layout) = self.summed(access)?;
        layout.innermost().is_aggregate().then(|| pointed::answer(access, &layout, &address, None))
    }

    fn summed(&mut self, access: &MemoryAccess) -> Option<(Address, Arc<Layout>)> {
        let operand = &access.address;
        let (base, index) = (operand.base?.dwarf?, operand.index?.dwarf?);
        let address = self.flow.summed(self.svma, (base, index, operand.scale))?;
        let address = address.clone().displaced(operand.displacement);
        match &address.origin {
            Origin::Object(layout) => Some((address.clone(), Arc::clone(layout))),
            _ => None,
        }
    }

    /// The scalar as which the debug information says that the function takes what is there: a part of an object that it
    /// does not tell.
    pub(crate) fn taken_as(&mut self, access: &MemoryAccess) -> Option<PlacedObject> {
        let answer = match self.summed(access) {
            Some((address, layout)) => pointed::answer(access, &layout, &address, None),
            None => named(&self.copied_number(access)?, Root::Pointer(""), 0, access),
        };
        answer.object()
    }

    /// A number that a variable has the value of, past the end of a header, or before the object that it is the header of.
    /// Pointers are taken for others where code is shared.
    fn copied_number(&mut self, access: &MemoryAccess) -> Option<Arc<Layout>> {
        let operand = &access.address;
        let number = operand.base?.dwarf.filter(|_| operand.index.is_none())?;
        let Content::Address(address) = self.flow.register(self.svma, number) else { return None };
        if !address.displaced(operand.displacement).is_outside() {
            return None;
        }
        let place = (operand.displacement, u64::from(access.size));
        let copied = self.flow.copied_at(self.svma, number, place)?;
        matches!(copied.shape, Shape::Scalar(ScalarKind::Number)).then_some(copied)
    }

    /// Answers what an inlined function copies that does nothing else, if it is copied whole.
    fn copy_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        let is_store = match access.access {
            Access::Store => true,
            Access::Load => false,
            Access::LoadStore | Access::Prefetch => return None,
        };
        let copied = self.debug.copied_at(self.svma, is_store)?;
        let layout = self.debug.layout(copied);
        let is_whole = access.size != 0 && layout.size == u64::from(access.size);
        is_whole.then(|| named(&layout, Root::Pointer(""), 0, access))
    }
}
