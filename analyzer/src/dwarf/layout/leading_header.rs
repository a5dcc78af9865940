//! Headers: small structures that lie before the bytes they are of. Their last byte tells which one it is: before the
//! first character of a string of Redis (`sds`) are its length and its room, as wide as the string is long, and a flag.

use crate::dwarf::debug_info::DebugInfo;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use std::sync::Arc;

/// A structure that may be the header of bytes.
#[derive(Clone, Debug)]
pub(crate) struct LeadingHeader {
    pub(crate) layout: Arc<Layout>,
}

impl LeadingHeader {
    fn of(layout: Arc<Layout>) -> Option<Self> {
        let Shape::Aggregate { kind: AggregateKind::Structure, members } = &layout.shape else {
            return None;
        };
        let ends_in_flag = members.iter().any(|it| is_flag(it, layout.size));
        (ends_in_flag && members.len() > 1).then_some(Self { layout })
    }

    fn members(&self) -> &[Member] {
        match &self.layout.shape {
            Shape::Aggregate { members, .. } => members,
            _ => &[],
        }
    }

    /// Name of the byte that tells which header it is.
    pub(crate) fn flag(&self) -> Option<&Arc<str>> {
        let flag = self.members().iter().find(|it| is_flag(it, self.layout.size));
        flag.map(|flag| &flag.name)
    }

    /// The member that begins so many bytes before the header's end and has this size.
    pub(crate) fn member_before_end(&self, distance: u64, n_bytes: u64) -> Option<&Member> {
        let place = self.layout.size.checked_sub(distance)?;
        let end = place.checked_add(n_bytes)?;
        let is_it = |it: &&Member| it.bits.is_none() && it.byte_range() == (place, end);
        self.members().iter().find(is_it)
    }
}

fn is_flag(member: &Member, end: u64) -> bool {
    let is_byte = matches!(member.layout.shape, Shape::Scalar(ScalarKind::Byte));
    is_byte && member.bits.is_none() && member.byte_range() == (end.saturating_sub(1), end)
}

impl DebugInfo {
    /// The structures of a unit that may be headers, those with a flag of one name beside each other; none where they are too
    /// many.
    pub(crate) fn headers_of(&mut self, unit_idx: UnitIdx) -> Arc<[LeadingHeader]> {
        if let Some(known) = self.containers.headers.get(&unit_idx) {
            return known;
        }
        let mut found = Vec::new();
        let unit = self.unit(unit_idx);
        for offset in unit.iter().flat_map(|unit| unit.aggregates()) {
            let die = DieRef { unit: unit_idx, offset };
            let Some((_, entry)) = self.entry(die) else { continue };
            let n_bytes = entry.attr_value(gimli::DW_AT_byte_size);
            let n_bytes = n_bytes.and_then(|value| value.udata_value()).unwrap_or(0);
            if !(2..=limit::MAX_LEADING_HEADER_BYTES).contains(&n_bytes) {
                continue;
            }
            found.extend(LeadingHeader::of(self.layout(die)));
            if found.len() > limit::MAX_HEADERS {
                // Of some of them nothing can be told: the others may fit, too.
                found.clear();
                break;
            }
        }
        found.sort_by(|one, other| one.flag().cmp(&other.flag()));
        self.containers.headers.keep(unit_idx, found.into())
    }
}
