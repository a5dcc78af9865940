//! An index of which aggregates of a unit may hold which others, from one walk that lays nothing out.

use crate::dwarf::unit::entry_walk::{EntryWalk, Met};
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::dwarf::unit::reader::Reader;
use crate::dwarf::unit::tag::{is_aggregate, is_part, is_transparent};
use crate::limit;
use crate::types::layout::Layout;
use gimli::UnitOffset;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash as _, Hasher as _};

/// The names of a unit's aggregates, and which are named where another one is made.
#[derive(Debug, Default)]
pub(crate) struct HolderIndex {
    /// Of each aggregate, by offset.
    aggregates: Box<[NamedAggregate]>,
    /// Pairs of what is held and what holds it, by their places in the list of all.
    held: Box<[(u32, u32)]>,
    /// Those that are made from what the unit itself does not define: what these hold is not known.
    open: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct NamedAggregate {
    offset: u32,
    /// The hash of its own name; `None` where it has none, and may be called by another.
    name: Option<u32>,
    /// The `typedef` by which one without a name is called.
    typedef: Option<u32>,
    size: u64,
}

/// The role of a type for one that names it as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartRole {
    /// The aggregate at this place in the list of all.
    Aggregate(u32),
    /// Nothing that holds anything by its members.
    Leaf,
    /// It is described elsewhere.
    Elsewhere,
}

impl HolderIndex {
    pub(super) fn of(unit: &ParsedUnit) -> Self {
        let nameless = NamedAggregate { offset: 0, name: None, typedef: None, size: 0 };
        let aggregates =
            unit.aggregates().map(|at| NamedAggregate { offset: at.0 as u32, ..nameless });
        let mut reading = HoldingScan {
            unit,
            aggregates: aggregates.collect(),
            held: Vec::new(),
            open: Vec::new(),
            leaves: FxHashMap::default(),
        };
        // Damage ends the walk: what it found before stays.
        let _ = reading.walk();
        let HoldingScan { aggregates, mut held, mut open, .. } = reading;
        held.sort_unstable();
        held.dedup();
        open.dedup();
        Self { aggregates: aggregates.into(), held: held.into(), open: open.into() }
    }

    /// The aggregates, in the order of the unit, that may have one like `part` inside of them. No pointer leads to one
    /// without a name: what is around it has one.
    pub(super) fn holders_of(&self, part: &Layout) -> impl Iterator<Item = UnitOffset> {
        let names = own_names(&part.name);
        let is_it = |named: &NamedAggregate| {
            named.size == part.size && named.name.is_none_or(|name| names.contains(&name))
        };
        let mut is_holder = vec![false; self.aggregates.len()];
        let like = (0..).zip(&self.aggregates).filter(|(_, named)| is_it(named));
        let mut due: Vec<u32> = like.map(|(at, _)| at).collect();
        // An aggregate with a part in another unit may hold anything: it has to be laid out to know.
        for at in &self.open {
            is_holder[*at as usize] = true;
            due.push(*at);
        }
        // A worklist: `struct list` holds `struct link`, and what holds the list holds the link, too.
        while let Some(at) = due.pop() {
            let first = self.held.partition_point(|(part, _)| *part < at);
            for (_, holder) in self.held[first..].iter().take_while(|(part, _)| *part == at) {
                if !std::mem::replace(&mut is_holder[*holder as usize], true) {
                    due.push(*holder);
                }
            }
        }
        let holders = is_holder.into_iter().zip(&self.aggregates).filter(|(is_it, _)| *is_it);
        holders.filter_map(|(_, named)| {
            let offset = match named.name {
                Some(_) => named.offset,
                None => named.typedef?,
            };
            Some(UnitOffset(offset as usize))
        })
    }
}

/// The hashes of what a type may be called where it is described: its name without the first scopes.
fn own_names(qualified: &str) -> FxHashSet<u32> {
    let inner = qualified.match_indices("::").map(|(at, _)| &qualified[at + 2..]);
    inner.chain([qualified]).map(hash).collect()
}

fn hash(name: &str) -> u32 {
    let mut hasher = rustc_hash::FxHasher::default();
    name.hash(&mut hasher);
    hasher.finish() as u32
}

/// The walk over a unit's aggregates and what they are made from.
struct HoldingScan<'a> {
    unit: &'a ParsedUnit,
    aggregates: Vec<NamedAggregate>,
    held: Vec<(u32, u32)>,
    open: Vec<u32>,
    /// The types that are no aggregates.
    leaves: FxHashMap<UnitOffset, PartRole>,
}

/// The part of an entry's attributes that is read.
#[derive(Default)]
struct Attributes {
    name: Option<u32>,
    size: Option<u64>,
    made_from: Option<gimli::AttributeValue<Reader>>,
    is_declaration: bool,
    is_signed: bool,
}

impl HoldingScan<'_> {
    fn walk(&mut self) -> gimli::Result<()> {
        let root = self.unit.unit.header.root_offset();
        let mut walk: EntryWalk<'_> = self.unit.walk_from(root)?;
        // Aggregates around the entry, and their variants: the depth, and the place in the list.
        let mut around: Vec<(isize, Option<u32>)> = Vec::new();
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            let Some(Met { offset, depth, tag, .. }) = walk.next_where(is_of_aggregate)? else {
                break;
            };
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            // A member is of the entry right above it: in between may be a nested class that is no part of
            // it.
            let holder = around.last().filter(|(outer, _)| outer + 1 == depth);
            let holder = holder.and_then(|(_, holder)| *holder);
            match tag {
                tag if is_aggregate(tag) => {
                    let at = self.place_of(offset);
                    around.push((depth, at));
                    if let Some(at) = at {
                        self.name(at, offset)?;
                    }
                }
                // Members of the variants of Rust's `enum Shape { Circle(Point) }` are parts of the enum.
                gimli::DW_TAG_variant_part | gimli::DW_TAG_variant => around.push((depth, holder)),
                gimli::DW_TAG_typedef => self.note_typedef(offset)?,
                _ => {
                    if let Some(holder) = holder {
                        self.add_part(holder, offset)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn place_of(&self, offset: UnitOffset) -> Option<u32> {
        let offset = u32::try_from(offset.0).ok()?;
        let at = self.aggregates.binary_search_by_key(&offset, |named| named.offset).ok()?;
        Some(at as u32)
    }

    fn name(&mut self, at: u32, offset: UnitOffset) -> gimli::Result<()> {
        let (_, Attributes { name, size, .. }) = self.attributes(offset)?;
        if let Some(named) = self.aggregates.get_mut(at as usize) {
            (named.name, named.size) = (name, size.unwrap_or(0));
        }
        Ok(())
    }

    fn note_typedef(&mut self, offset: UnitOffset) -> gimli::Result<()> {
        let (_, Attributes { made_from, .. }) = self.attributes(offset)?;
        if let Some(gimli::AttributeValue::UnitRef(of)) = made_from
            && let Some(at) = self.place_of(of)
            && let Some(named) = self.aggregates.get_mut(at as usize)
        {
            named.typedef.get_or_insert(offset.0 as u32);
        }
        Ok(())
    }

    /// Notes what a member, base or parameter at `offset` is made from.
    fn add_part(&mut self, holder: u32, offset: UnitOffset) -> gimli::Result<()> {
        let (_, Attributes { made_from, .. }) = self.attributes(offset)?;
        match self.part(made_from)? {
            PartRole::Aggregate(part) if self.held.len() < limit::MAX_CONTAINED_PARTS => {
                self.held.push((part, holder));
            }
            PartRole::Elsewhere => self.open.push(holder),
            PartRole::Aggregate(_) | PartRole::Leaf => {}
        }
        Ok(())
    }

    fn part(
        &mut self,
        made_from: Option<gimli::AttributeValue<Reader>>,
    ) -> gimli::Result<PartRole> {
        let mut next = made_from;
        let mut first = None;
        let mut part = PartRole::Leaf;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(value) = next.take() else { break };
            let gimli::AttributeValue::UnitRef(offset) = value else {
                part = PartRole::Elsewhere;
                break;
            };
            // A cell by value is a part. A pointer to one ends the chain as a leaf.
            if let Some(at) = self.place_of(offset) {
                part = PartRole::Aggregate(at);
                break;
            }
            if let Some(known) = self.leaves.get(&offset) {
                part = *known;
                break;
            }
            // `typedef const struct cell cell_t` is followed once; the thousand members of that type find
            // it here.
            first.get_or_insert(offset);
            let (tag, found) = self.attributes(offset)?;
            match tag {
                tag if is_transparent(tag) => next = found.made_from,
                tag if is_aggregate(tag) && (found.is_signed || !found.is_declaration) => {
                    part = PartRole::Elsewhere;
                }
                _ => {}
            }
        }
        if let Some(first) = first {
            self.leaves.insert(first, part);
        }
        Ok(part)
    }

    fn attributes(&self, offset: UnitOffset) -> gimli::Result<(gimli::DwTag, Attributes)> {
        let unit = &self.unit.unit;
        let mut entries = unit.header.entries_raw(&unit.abbreviations, Some(offset))?;
        let mut found = Attributes::default();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok((gimli::DW_TAG_null, found));
        };
        let is_aggregate = is_aggregate(abbreviation.tag());
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            match attribute.name() {
                gimli::DW_AT_type => found.made_from = Some(attribute.value()),
                gimli::DW_AT_declaration => found.is_declaration = true,
                gimli::DW_AT_signature => found.is_signed = true,
                gimli::DW_AT_byte_size if is_aggregate => found.size = attribute.udata_value(),
                gimli::DW_AT_name if is_aggregate => {
                    found.name = self.unit.string(attribute.value()).map(|name| hash(&name));
                }
                _ => {}
            }
        }
        Ok((abbreviation.tag(), found))
    }
}

/// Tells whether an entry is an aggregate, or tells what one is made from or for, or called.
fn is_of_aggregate(met: &Met) -> bool {
    is_aggregate(met.tag) || is_part(met.tag) || met.tag == gimli::DW_TAG_typedef
}
