//! Types of the debug information as [`Layout`]s.

use super::{DebugInfo, DieRef, Entry};
use crate::descriptor::spell;
use crate::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use crate::limit;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Layouts made so far, by the entry of their type.
#[derive(Debug, Default)]
pub(crate) struct LayoutTable {
    known: FxHashMap<DieRef, Arc<Layout>>,
    /// Types being laid out: one that holds itself by value is damage.
    in_progress: FxHashSet<DieRef>,
    n_members: usize,
}

impl DebugInfo {
    /// The layout of the type at `die`, with typedefs and qualifiers taken off where they only
    /// rename. Damage gives an opaque scalar.
    pub(crate) fn layout(&mut self, die: DieRef) -> Arc<Layout> {
        if let Some(layout) = self.layouts.known.get(&die) {
            return Arc::clone(layout);
        }
        let is_over_budget = self.layouts.in_progress.len() >= limit::MAX_TYPE_DEPTH
            || self.layouts.known.len() >= limit::MAX_LAYOUTS
            || self.layouts.n_members >= limit::MAX_LAYOUTS;
        if is_over_budget || !self.layouts.in_progress.insert(die) {
            return opaque("-");
        }
        let layout = self.make_layout(die).unwrap_or_else(|| opaque("-"));
        self.layouts.in_progress.remove(&die);
        self.layouts.known.insert(die, Arc::clone(&layout));
        layout
    }

    /// What a pointer or reference of the type at `die` points at; `None` for other types.
    pub(crate) fn pointee(&mut self, die: DieRef) -> Option<DieRef> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (_, entry) = self.entry(next)?;
            let target = self.target(next, &entry);
            match entry.tag() {
                tag if is_pointer(tag) => return target,
                tag if is_transparent(tag) => next = target?,
                _ => return None,
            }
        }
        None
    }

    fn make_layout(&mut self, die: DieRef) -> Option<Arc<Layout>> {
        let (_, entry) = self.entry(die)?;
        let size = self.byte_size(die, &entry);
        match entry.tag() {
            tag if is_transparent(tag) => self.transparent(die, &entry),
            gimli::DW_TAG_structure_type => self.aggregate(die, &entry, AggregateKind::Structure),
            gimli::DW_TAG_class_type => self.aggregate(die, &entry, AggregateKind::Class),
            gimli::DW_TAG_union_type => self.aggregate(die, &entry, AggregateKind::Union),
            gimli::DW_TAG_array_type => self.array(die, &entry),
            tag => {
                let kind = match tag {
                    gimli::DW_TAG_pointer_type
                    | gimli::DW_TAG_reference_type
                    | gimli::DW_TAG_rvalue_reference_type
                    | gimli::DW_TAG_ptr_to_member_type => ScalarKind::Pointer,
                    gimli::DW_TAG_base_type if is_byte(&entry) => ScalarKind::Byte,
                    gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => ScalarKind::Number,
                    _ => ScalarKind::Opaque,
                };
                // DWARF 5 section 5.3: a pointer's size may be left to the unit's address size.
                let size = if kind == ScalarKind::Pointer { size.unwrap_or(8) } else { size? };
                let name = self.scalar_name(die, &entry);
                let spelled = self.spelled(die, 0);
                let layout = Layout::new(spelled.into(), name, size, Shape::Scalar(kind));
                Some(Arc::new(Layout {
                    pointee: self.target(die, &entry).filter(|_| is_pointer(tag)),
                    ..layout
                }))
            }
        }
    }

    /// A scalar's name: for a pointer without one, as C declares it: `cell *`.
    fn scalar_name(&mut self, die: DieRef, entry: &Entry) -> Arc<str> {
        if let Some(name) = self.type_name(die) {
            return name;
        }
        let mut suffix = String::new();
        let (mut die, mut tag) = (die, entry.tag());
        for _ in 0..limit::MAX_TYPE_DEPTH {
            if is_pointer(tag) {
                suffix.insert(0, if tag == gimli::DW_TAG_pointer_type { '*' } else { '&' });
            } else if !is_transparent(tag) {
                return "-".into();
            }
            let target = self.entry(die).and_then(|(_, entry)| self.target(die, &entry));
            let Some(target) = target else { return format!("void {suffix}").into() };
            let Some((_, entry)) = self.entry(target) else { break };
            (die, tag) = (target, entry.tag());
            if is_transparent(tag) {
                continue;
            }
            if let Some(name) = self.type_name(target) {
                return format!("{name} {suffix}").into();
            }
        }
        "-".into()
    }

    /// A typedef or qualifier: the layout below, respelled where that changes the spelling.
    fn transparent(&mut self, die: DieRef, entry: &Entry) -> Option<Arc<Layout>> {
        let target = self.target(die, entry)?;
        let below = self.layout(target);
        let spelled = self.spelled(die, 0);
        let is_typedef = entry.tag() == gimli::DW_TAG_typedef;
        let name = match self.type_name(die) {
            // C names an unnamed aggregate by its typedef.
            Some(name) if is_typedef && &*below.name == "-" => name,
            _ => Arc::clone(&below.name),
        };
        if *spelled == *below.spelled && name == below.name {
            return Some(below);
        }
        let shape = match &below.shape {
            Shape::Scalar(kind) => Shape::Scalar(*kind),
            Shape::Array { element, count } => {
                Shape::Array { element: Arc::clone(element), count: *count }
            }
            Shape::Aggregate { kind, members } => Shape::Aggregate {
                kind: *kind,
                members: members
                    .iter()
                    .map(|member| Member {
                        name: Arc::clone(&member.name),
                        layout: Arc::clone(&member.layout),
                        ..*member
                    })
                    .collect(),
            },
        };
        // An aggregate is one data object whether it is reached as const or not.
        let spelled = if below.is_aggregate() && !is_typedef {
            Arc::clone(&below.spelled)
        } else {
            spelled.into()
        };
        let layout = Layout::new(spelled, name, below.size, shape);
        Some(Arc::new(Layout { pointee: below.pointee, ..layout }))
    }

    /// The type that an entry is made from.
    fn target(&self, die: DieRef, entry: &Entry) -> Option<DieRef> {
        self.reference(die.unit, &entry.attr_value(gimli::DW_AT_type)?)
    }

    fn array(&mut self, die: DieRef, entry: &Entry) -> Option<Arc<Layout>> {
        let target = self.target(die, entry)?;
        let mut layout = self.layout(target);
        // Innermost dimension last in the entry, first in memory.
        for count in self.dimensions(die).into_iter().rev() {
            let size = layout.size.checked_mul(count.unwrap_or(0)).unwrap_or(0);
            let spelled = match count {
                Some(count) => format!("array[{count}]:{}", layout.spelled),
                None => format!("array[]:{}", layout.spelled),
            };
            let name = Arc::clone(&layout.name);
            let shape = Shape::Array { element: layout, count };
            layout = Arc::new(Layout::new(spelled.into(), name, size, shape));
        }
        Some(layout)
    }

    /// Element counts, outermost dimension first; `None` where the type does not say.
    fn dimensions(&mut self, die: DieRef) -> Vec<Option<u64>> {
        let mut counts = Vec::new();
        self.for_each_child(die, |_, entry| {
            if entry.tag() != gimli::DW_TAG_subrange_type || counts.len() >= limit::MAX_TYPE_DEPTH {
                return;
            }
            let number = |attribute| entry.attr_value(attribute).and_then(|v| v.udata_value());
            let lower = number(gimli::DW_AT_lower_bound).unwrap_or(0);
            let from_upper = || {
                let upper = number(gimli::DW_AT_upper_bound)?;
                // gcc writes the bound of `[0]` as -1.
                upper.checked_sub(lower).filter(|_| upper < 1 << 48)?.checked_add(1)
            };
            counts.push(number(gimli::DW_AT_count).or_else(from_upper));
        });
        if counts.is_empty() { vec![None] } else { counts }
    }

    fn aggregate(
        &mut self,
        die: DieRef,
        entry: &Entry,
        kind: AggregateKind,
    ) -> Option<Arc<Layout>> {
        let name = self.type_name(die).unwrap_or_else(|| "-".into());
        let spelled = format!("{}:{}", kind.word(), spell(&name));
        if entry.attr_value(gimli::DW_AT_declaration).is_some() {
            let shape = Shape::Scalar(ScalarKind::Opaque);
            return Some(Arc::new(Layout::new(spelled.into(), name, 0, shape)));
        }
        let size = self.byte_size(die, entry).unwrap_or(0);
        let mut raw = Vec::new();
        self.for_each_child(die, |info, child| {
            if raw.len() < limit::MAX_MEMBERS
                && let Some(member) = RawMember::read(info, die, child)
            {
                raw.push(member);
            }
        });
        self.layouts.n_members += raw.len();
        let mut members: Vec<Member> = raw.into_iter().map(|raw| self.member(raw)).collect();
        members.sort_by_key(|member| (member.byte_range().0, member.bits));
        let shape = Shape::Aggregate { kind, members: members.into() };
        Some(Arc::new(Layout::new(spelled.into(), name, size, shape)))
    }

    fn member(&mut self, raw: RawMember) -> Member {
        let layout = self.layout(raw.type_die);
        let bits = raw.bit_size.map(|width| {
            let first = match (raw.data_bit_offset, raw.old_bit_offset) {
                (Some(first), _) => first,
                // DWARF 2: counted from the most significant bit of the storage unit.
                (None, Some(from_top)) => {
                    let storage = raw.storage_bytes.unwrap_or(layout.size).saturating_mul(8);
                    let start = raw.offset.saturating_mul(8);
                    start.saturating_add(storage.saturating_sub(from_top).saturating_sub(width))
                }
                (None, None) => raw.offset.saturating_mul(8),
            };
            (first, width)
        });
        Member { name: raw.name, offset: raw.offset, bits, layout }
    }

    /// Calls `visit` for each child of `die`.
    fn for_each_child(&mut self, die: DieRef, mut visit: impl FnMut(&mut Self, &Entry)) {
        let Some(unit) = self.unit(die.unit) else { return };
        let Ok(mut tree) = unit.unit.entries_tree(Some(die.offset)) else { return };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            visit(self, child.entry());
        }
    }

    fn byte_size(&mut self, die: DieRef, entry: &Entry) -> Option<u64> {
        let own = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
        if own.is_some() || !is_transparent(entry.tag()) {
            return own;
        }
        let target = self.target(die, entry)?;
        Some(self.layout(target).size)
    }

    /// The type's own name with its name spaces, `None` where it has none.
    fn type_name(&mut self, die: DieRef) -> Option<Arc<str>> {
        let (unit, entry) = self.entry(die)?;
        let name = self.string(&unit, entry.attr_value(gimli::DW_AT_name)?)?;
        Some(match unit.scope_of(self.dwarf(), die.offset) {
            // Rust and C++ name types by their name space, C has none.
            Some(scope) => format!("{scope}::{name}").into(),
            None => name,
        })
    }

    /// The type as a descriptor spells it (design section 6).
    fn spelled(&mut self, die: DieRef, depth: usize) -> String {
        let Some((_, entry)) = self.entry(die).filter(|_| depth < limit::MAX_TYPE_DEPTH) else {
            return "-".to_owned();
        };
        let target = self.target(die, &entry);
        let name = self.type_name(die);
        let named = |prefix: &str| {
            format!("{prefix}{}", name.as_deref().map_or_else(|| "-".to_owned(), spell))
        };
        let below = |info: &mut Self, prefix: &str| match target {
            Some(target) => format!("{prefix}{}", info.spelled(target, depth + 1)),
            None => format!("{prefix}void"),
        };
        match entry.tag() {
            gimli::DW_TAG_structure_type => named("structure:"),
            gimli::DW_TAG_class_type => named("class:"),
            gimli::DW_TAG_union_type => named("union:"),
            gimli::DW_TAG_enumeration_type => named("enumeration:"),
            gimli::DW_TAG_pointer_type => below(self, "pointer+"),
            gimli::DW_TAG_reference_type => below(self, "reference+"),
            gimli::DW_TAG_rvalue_reference_type => below(self, "rvalue_reference+"),
            gimli::DW_TAG_ptr_to_member_type => below(self, "pointer_to_member+"),
            gimli::DW_TAG_const_type => below(self, "const+"),
            gimli::DW_TAG_volatile_type => below(self, "volatile+"),
            gimli::DW_TAG_restrict_type => below(self, "restrict+"),
            gimli::DW_TAG_atomic_type => below(self, "atomic+"),
            gimli::DW_TAG_subroutine_type => "function".to_owned(),
            gimli::DW_TAG_array_type => {
                let element = below(self, "");
                self.dimensions(die).iter().rev().fold(element, |below, count| {
                    let count = count.map(|count| count.to_string()).unwrap_or_default();
                    format!("array[{count}]:{below}")
                })
            }
            gimli::DW_TAG_typedef => {
                let spelled = below(self, "");
                match (spelled.strip_suffix(":-"), name) {
                    (Some(kind), Some(name)) => format!("{kind}:{}", spell(&name)),
                    _ => spelled,
                }
            }
            _ => named(""),
        }
    }
}

/// A member before its type is laid out.
struct RawMember {
    name: Arc<str>,
    type_die: DieRef,
    offset: u64,
    bit_size: Option<u64>,
    data_bit_offset: Option<u64>,
    old_bit_offset: Option<u64>,
    storage_bytes: Option<u64>,
}

impl RawMember {
    fn read(info: &DebugInfo, parent: DieRef, entry: &Entry) -> Option<Self> {
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        let is_static = entry.attr_value(gimli::DW_AT_external).is_some();
        if !(is_base || entry.tag() == gimli::DW_TAG_member && !is_static) {
            return None;
        }
        let number = |attribute| entry.attr_value(attribute).and_then(|v| v.udata_value());
        let location = entry.attr_value(gimli::DW_AT_data_member_location);
        // A virtual base's place is an expression over the object: it is not known here.
        let offset = match location {
            None => 0,
            Some(value) => value.udata_value()?,
        };
        let unit = info.units.get(parent.unit as usize)?.as_ref()?;
        let name = entry.attr_value(gimli::DW_AT_name).and_then(|value| info.string(unit, value));
        Some(Self {
            name: name.unwrap_or_else(|| if is_base { "<base>".into() } else { "-".into() }),
            type_die: info.reference(parent.unit, &entry.attr_value(gimli::DW_AT_type)?)?,
            offset,
            bit_size: number(gimli::DW_AT_bit_size),
            data_bit_offset: number(gimli::DW_AT_data_bit_offset),
            old_bit_offset: number(gimli::DW_AT_bit_offset),
            storage_bytes: number(gimli::DW_AT_byte_size),
        })
    }
}

/// Whether values of the type are addresses of what it is made from.
fn is_pointer(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
    )
}

fn is_transparent(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
    )
}

fn is_byte(entry: &Entry) -> bool {
    entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value()) == Some(1)
}

fn opaque(name: &str) -> Arc<Layout> {
    let shape = Shape::Scalar(ScalarKind::Opaque);
    Arc::new(Layout::new(name.into(), name.into(), 0, shape))
}
