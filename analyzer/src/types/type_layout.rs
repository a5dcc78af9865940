//! A type's layout as it is handed out: its members one after the other, nested ones below theirs.

use crate::limit;
use crate::types::layout::{Layout, Member, Shape};
use crate::types::type_expression::TypeExpression;
use dataspace_proto::snapshot::BitPlace;
use std::sync::Arc;

/// The pointer to the elements in the descriptor of an array.
pub(crate) const DATA: &str = "<data>";

/// Layout of a type in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// As descriptors spell it: `structure:cell`.
    pub type_name: Arc<str>,
    /// Bytes.
    pub size: u64,
    /// Its members are arms, which overlap.
    pub is_union: bool,
    /// By offset, each followed by what it consists of.
    pub members: Box<[LayoutMember]>,
    /// True where there are more, or deeper nested ones.
    pub truncated: bool,
    /// True where there are more at its end.
    pub ends_early: bool,
}

/// One member of a [`TypeLayout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutMember {
    /// `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// As descriptors spell its type.
    pub type_name: Arc<str>,
    /// The same by its parts.
    pub expression: Arc<TypeExpression>,
    /// In the whole, in bytes; of what is in an array, in the first element.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// For a bit-field: its place after `offset`.
    pub bits: Option<BitPlace>,
    /// Number of its elements, as an array of one or more dimensions.
    pub elements: Option<u64>,
    /// Number of members that it is inside of.
    pub depth: u32,
    /// It is one arm of several, which overlap.
    pub is_arm: bool,
    /// Its parts are such arms.
    pub is_union: bool,
}

/// The members of `layout`, at most `room` of them; `None` where it has none.
pub(crate) fn describe(layout: &Layout, room: usize) -> Option<TypeLayout> {
    let Shape::Aggregate { kind, members } = &layout.shape else { return None };
    let mut listing = Listing { members: Vec::new(), room, is_cut: false, ends_early: false };
    listing.add(members, (0, 0), kind.has_arms());
    Some(TypeLayout {
        type_name: layout.expression.to_string().into(),
        size: layout.size,
        is_union: kind.has_arms(),
        members: listing.members.into(),
        truncated: listing.is_cut,
        ends_early: listing.ends_early,
    })
}

struct Listing {
    members: Vec<LayoutMember>,
    room: usize,
    is_cut: bool,
    ends_early: bool,
}

impl Listing {
    fn add(&mut self, members: &[Member], (base, depth): (u64, u32), has_arms: bool) {
        for member in members {
            let is_full = self.members.len() >= self.room;
            if is_full || depth >= limit::MAX_LISTED_DEPTH {
                self.is_cut = true;
                self.ends_early |= is_full;
                return;
            }
            let start = member.byte_range().0;
            let offset = base.saturating_add(start);
            let inner = member.layout.innermost();
            let elements = match &member.layout.shape {
                Shape::Array { .. } => member.layout.size.checked_div(inner.size),
                _ => None,
            };
            let bits = member.bits.map(|(first, width)| BitPlace { first: first % 8, width });
            let (parts, is_union) = match &inner.shape {
                Shape::Aggregate { kind, members } => (&members[..], kind.has_arms()),
                _ => (&[][..], false),
            };
            self.members.push(LayoutMember {
                name: member.name.clone(),
                type_name: member.layout.expression.to_string().into(),
                expression: Arc::clone(&member.layout.expression),
                offset,
                size: member.layout.size,
                bits,
                elements,
                depth,
                is_arm: has_arms,
                is_union,
            });
            self.add(parts, (offset, depth + 1), is_union);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::AggregateKind;
    use crate::types::sample::{aggregate, member, number as scalar};

    fn outer() -> Arc<Layout> {
        let pair = aggregate(
            AggregateKind::Union,
            "u",
            8,
            vec![member("i", 0, &scalar("int", 4)), member("d", 0, &scalar("double", 8))],
        );
        let pairs = Arc::new(Layout::array_of(pair, Some(3)));
        let mut flag = member("flag", 0, &scalar("int", 4));
        flag.bits = Some((35, 3));
        let members = vec![member("key", 0, &scalar("int", 4)), flag, member("pairs", 8, &pairs)];
        aggregate(AggregateKind::Structure, "t", 40, members)
    }

    #[test]
    fn nested_members_follow_theirs_with_places_in_the_whole() {
        let layout = describe(&outer(), 100).unwrap();
        let rows: Vec<_> = layout
            .members
            .iter()
            .map(|m| (&*m.name, m.offset, m.size, m.depth, m.elements, m.is_arm))
            .collect();
        assert_eq!(
            rows,
            [
                ("key", 0, 4, 0, None, false),
                ("flag", 4, 4, 0, None, false),
                ("pairs", 8, 24, 0, Some(3), false),
                ("i", 8, 4, 1, None, true),
                ("d", 8, 8, 1, None, true),
            ]
        );
        assert_eq!(layout.members[1].bits, Some(BitPlace { first: 3, width: 3 }));
        assert!((layout.size, layout.truncated) == (40, false));
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let layout = describe(&outer(), 4).unwrap();
        assert!((layout.members.len(), layout.truncated, layout.ends_early) == (4, true, true));
        assert!(describe(&scalar("int", 4), 4).is_none());
    }
}
