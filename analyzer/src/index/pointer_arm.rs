//! Accesses through a pointer that lies in a union of several: by what is read, and what is said of that afterwards.

use crate::dataflow::{Address, Arms, Content, Doubt, Origin, Use};
use crate::index::function_type::{MOST_PARTS, begins_with};
use crate::index::pointed;
use crate::index::site::TypeAnswer;
use crate::index::type_path::{Index, TypePath};
use crate::types::layout::Layout;
use crate::x86_64::access::MemoryAccess;
use crate::x86_64::image_bytes::ImageBytes as _;
use crate::x86_64::scan;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use std::sync::Arc;

impl TypePath<'_> {
    /// Answers what an access is to through a pointer that may be one of several.
    pub(crate) fn arm_answer(
        &mut self,
        access: &MemoryAccess,
        arms: &Arms,
        address: &Address,
        index: Option<Index>,
    ) -> TypeAnswer {
        let n_bytes = u64::from(access.size);
        let used = Use { n_bytes, kind: access.kind, step: index.map_or(0, Index::step) };
        if let Some((layout, chosen)) = arms.chosen(address, used) {
            return pointed::answer(access, layout, &chosen, index);
        }
        let leading_on = self.loaded(access).map(|loaded| {
            arms.retained(|pointee| {
                let onward = pointee.innermost().pointee;
                onward.is_none_or(|onward| {
                    // A class may be taken for its base.
                    let onward = self.debug.layout(onward);
                    begins_with(onward.innermost(), loaded.innermost(), &mut { MOST_PARTS })
                })
            })
        });
        match leading_on.as_ref().and_then(|arms| arms.chosen(address, used)) {
            Some((layout, chosen)) => pointed::answer(access, layout, &chosen, index),
            None => TypeAnswer::Unknown(Reason::Unidentified),
        }
    }

    /// The type of what the pointer that the instruction loads leads to, as is known after it: `b = union.buckets[hash]`.
    fn loaded(&mut self, access: &MemoryAccess) -> Option<Arc<Layout>> {
        if access.access != Access::Load {
            return None;
        }
        let code = self.image.bytes_at(self.svma, scan::MAX_INSTRUCTION_BYTES)?;
        let (next, register) = scan::pointer_loaded(self.svma, &code)?;
        match self.flow.register(next, register) {
            Content::Address(address) if is_beginning(&address) => match address.origin {
                Origin::Object(layout) => Some(layout),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Tells whether an address is the beginning of an object, for certain.
fn is_beginning(address: &Address) -> bool {
    let doubts = [Doubt::Which, Doubt::Beyond, Doubt::Owner];
    address.offset.only() == Some(0) && !doubts.iter().any(|doubt| address.has(*doubt))
}
