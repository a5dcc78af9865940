//! Contents, each kept once: a function's values share them, five values one.

use super::address::{Address, Origin, PointerName};
use super::congruence::Congruence;
use super::content::Content;
use super::doubt::{Doubts, Standing};
use super::offset::Offset;
use super::value::Frame;
use rustc_hash::FxHashMap;
use std::mem::Discriminant;
use std::sync::Arc;

/// Index of a content; 0 is that nothing is known.
pub(super) type ContentIdx = u32;

/// Contents, and where each of them is.
#[derive(Debug)]
pub(super) struct ContentTable {
    contents: Vec<Content>,
    known: FxHashMap<Identity, ContentIdx>,
}

impl ContentTable {
    pub(super) fn new() -> Self {
        let mut table = Self { contents: Vec::new(), known: FxHashMap::default() };
        table.add(Content::Unknown);
        table
    }

    /// The place of a content, which is kept if it is new.
    pub(super) fn add(&mut self, content: Content) -> ContentIdx {
        *self.known.entry(Identity::of(&content)).or_insert_with(|| {
            self.contents.push(content);
            self.contents.len() as ContentIdx - 1
        })
    }

    pub(super) fn into_contents(self) -> Box<[Content]> {
        self.contents.into()
    }
}

/// All that tells one content from another: types and names by where they are, since equal ones may still differ in
/// what they hold.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Identity {
    kind: Discriminant<Content>,
    number: Option<Congruence>,
    address: Option<AddressIdentity>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AddressIdentity {
    origin: Discriminant<Origin>,
    frame: Option<Frame>,
    object: usize,
    offset: Offset,
    /// Place of the variable's name, or of the member's type, and the member's offset.
    name: Option<(usize, u64)>,
    doubts: Doubts,
    standing: Standing,
}

impl Identity {
    fn of(content: &Content) -> Self {
        let kind = std::mem::discriminant(content);
        let (number, address) = match content {
            Content::Number(number) => (Some(*number), None),
            Content::Constant(number) => (Some(Congruence::exact(*number)), None),
            Content::Address(address) => (None, Some(address)),
            Content::Bottom | Content::Unknown | Content::Distance | Content::Top => (None, None),
        };
        Self { kind, number, address: address.map(AddressIdentity::of) }
    }
}

impl AddressIdentity {
    fn of(address: &Address) -> Self {
        let Address { origin, offset, name, doubts, standing } = address;
        let (frame, object) = match origin {
            Origin::Static | Origin::Thread => (None, 0),
            Origin::Frame(frame) => (Some(*frame), 0),
            Origin::Object(layout) => (None, place(layout)),
            Origin::Arms(arms) => (None, place(arms)),
        };
        let name = name.as_ref().map(|name| match name {
            PointerName::Variable(name) => (place(name), 0),
            PointerName::Member(layout, offset) => (place(layout), *offset),
        });
        Self {
            origin: std::mem::discriminant(origin),
            frame,
            object,
            offset: offset.clone(),
            name,
            doubts: *doubts,
            standing: *standing,
        }
    }
}

fn place<T: ?Sized>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::doubt::Doubt;
    use crate::types::layout::Layout;
    use crate::types::sample::number;

    #[test]
    fn contents_are_shared_by_those_that_nothing_tells_apart() {
        let int: Arc<Layout> = number("int", 4);
        // It is equal, but described by another entry.
        let twin = number("int", 4);
        let name: Arc<str> = "p".into();
        let address = || Address::object(Arc::clone(&int), 0, None);
        let of = |origin| Address::of(origin, Offset::exact(0));
        let named = |name| Address { name: Some(name), ..address() };
        let contents = || {
            let addresses = [
                address(),
                Address::object(Arc::clone(&int), 4, None),
                Address::object(Arc::clone(&twin), 0, None),
                Address { offset: address().offset.stepped(4), ..address() },
                Address { standing: Standing::Aside, ..address() },
                address().doubted(Doubt::Which),
                named(PointerName::Variable(Arc::clone(&name))),
                named(PointerName::Member(Arc::clone(&int), 0)),
                named(PointerName::Member(Arc::clone(&int), 4)),
                named(PointerName::Member(Arc::clone(&twin), 0)),
                of(Origin::Static),
                of(Origin::Thread),
                of(Origin::Frame(Frame::Cfa)),
                of(Origin::Frame(Frame::Register(6))),
            ];
            let others = [
                Content::Unknown,
                Content::Bottom,
                Content::Distance,
                Content::Top,
                Content::Constant(4),
                Content::Constant(5),
                Content::Number(Congruence::exact(4)),
            ];
            others.into_iter().chain(addresses.map(Content::Address)).collect::<Vec<_>>()
        };
        let mut table = ContentTable::new();
        for _ in 0..2 {
            let places: Vec<ContentIdx> = contents().into_iter().map(|it| table.add(it)).collect();
            assert_eq!(places, (0..contents().len() as u32).collect::<Vec<_>>());
        }
        assert_eq!(table.into_contents().as_ref(), contents());
    }
}
