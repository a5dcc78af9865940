//! One object in detail: the functions that access it, and its members against cache lines.

use crate::session::findings::Findings;
use dataspace_analyzer::session::report::{FunctionLine, LayoutMember, TypeLayout};
use dataspace_analyzer::types::gap::{GapKind, gaps};
use dataspace_proto::object_detail::{
    CACHE_LINE_BYTES, CacheLine, FunctionSum, LayoutLine, ObjectDetail, ObjectLayout,
    ObjectReference,
};
use dataspace_proto::sample_line::Scope;
use dataspace_proto::snapshot::{Metrics, ObjectLine};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of functions and of parts: a profile or a snapshot has all of them.
const MAX_LISTED: usize = 256;

/// Maximum depth of nested objects; layouts end before that.
const MAX_DEPTH: usize = 256;

/// All that `findings` tell of an object; `None` where they have none of that number.
pub(crate) fn detail(findings: &Findings, id: u32) -> Option<ObjectDetail> {
    let nest = Nest::of(findings);
    let line = nest.line(id)?;
    let mut children: Vec<ObjectReference> = nest.parts(id).map(reference).collect();
    let mut functions = functions(findings, &nest, id);
    let truncated = children.len().max(functions.len()) > MAX_LISTED;
    children.truncate(MAX_LISTED);
    functions.truncate(MAX_LISTED);
    let mut parents: Vec<_> = nest.around(line).map(reference).collect();
    parents.reverse();
    Some(ObjectDetail {
        elapsed_ns: findings.snapshot.elapsed_ns,
        object: line.clone(),
        parents,
        children,
        functions,
        truncated,
        has_layout: nest.with_layout(line).is_some(),
    })
}

fn reference(line: &ObjectLine) -> ObjectReference {
    let samples = line.metrics.all.samples;
    ObjectReference { id: line.id, object: line.object.clone(), kind: line.kind, samples }
}

/// Objects by number and by the objects around them.
struct Nest<'a> {
    layouts: &'a BTreeMap<u32, Arc<TypeLayout>>,
    of_id: HashMap<u32, &'a ObjectLine>,
    parts: HashMap<u32, Vec<&'a ObjectLine>>,
}

impl<'a> Nest<'a> {
    fn of(findings: &'a Findings) -> Self {
        let Findings { snapshot, layouts, .. } = findings;
        let mut parts: HashMap<u32, Vec<&ObjectLine>> = HashMap::new();
        for line in &snapshot.objects {
            if let Some(parent) = line.parent_id {
                parts.entry(parent).or_default().push(line);
            }
        }
        let of_id = snapshot.objects.iter().map(|line| (line.id, line)).collect();
        Self { layouts, of_id, parts }
    }

    fn line(&self, id: u32) -> Option<&'a ObjectLine> {
        self.of_id.get(&id).copied()
    }

    /// Its parts, those with the most samples first, as in the snapshot.
    fn parts(&self, id: u32) -> impl Iterator<Item = &'a ObjectLine> + use<'a, '_> {
        self.parts.get(&id).into_iter().flatten().copied()
    }

    /// The numbers of it and of all that is in it.
    fn inside(&self, id: u32) -> HashSet<u32> {
        let mut inside = HashSet::from([id]);
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            waiting.extend(self.parts(id).map(|part| part.id).filter(|id| inside.insert(*id)));
        }
        inside
    }

    /// The objects around it, innermost first.
    fn around(&self, line: &'a ObjectLine) -> impl Iterator<Item = &'a ObjectLine> + use<'a, '_> {
        let outer = |line: &&'a ObjectLine| self.line(line.parent_id?);
        std::iter::successors(outer(&line), outer).take(MAX_DEPTH)
    }

    /// The object or the one around it whose layout is known.
    fn with_layout(&self, line: &'a ObjectLine) -> Option<(&'a ObjectLine, &'a TypeLayout)> {
        let known = |line: &'a ObjectLine| Some((line, &**self.layouts.get(&line.id)?));
        known(line).or_else(|| self.around(line).find_map(known))
    }
}

/// The functions that access the object or a part of it, those with the most samples first.
fn functions(findings: &Findings, nest: &Nest<'_>, id: u32) -> Vec<FunctionSum> {
    let inside = nest.inside(id);
    let is_inside = |line: &&FunctionLine| inside.contains(&line.object_id);
    let mut sums: HashMap<Option<Arc<Scope>>, FunctionSum> = HashMap::new();
    for line in findings.functions.iter().filter(is_inside) {
        let sum = sums.entry(line.scope.clone()).or_default();
        sum.samples = sum.samples.wrapping_add(line.samples);
        sum.loads = sum.loads.wrapping_add(line.loads);
        sum.stores = sum.stores.wrapping_add(line.stores);
        sum.latency = sum.latency.wrapping_add(line.latency);
        for (event, period) in findings.snapshot.events.iter().zip(&line.events) {
            if *period != 0 {
                let sum = sum.events.entry(event.name.clone()).or_default();
                *sum = sum.wrapping_add(*period);
            }
        }
    }
    let named = |(scope, sum): (Option<Arc<Scope>>, FunctionSum)| FunctionSum {
        scope: scope.map(Arc::unwrap_or_clone),
        ..sum
    };
    let mut sums: Vec<FunctionSum> = sums.into_iter().map(named).collect();
    fn name(sum: &FunctionSum) -> Option<&str> {
        sum.scope.as_ref()?.function.as_deref()
    }
    sums.sort_by(|one, other| {
        other.samples.cmp(&one.samples).then_with(|| name(one).cmp(&name(other)))
    });
    sums
}

/// Layout of the outermost aggregate around an object; `None` where there is no such object, or no layout
/// of it.
pub(crate) fn layout(findings: &Findings, id: u32) -> Option<ObjectLayout> {
    let nest = Nest::of(findings);
    let (object, layout) = nest.with_layout(nest.line(id)?)?;
    let mut members: Vec<LayoutLine> = layout.members.iter().map(line_of).collect();
    let (hole_bytes, padding_bytes) = measure_gaps(layout, &mut members);
    add_metrics(&nest, object, &mut members);
    let (cache_lines, spread_samples) = cache_lines(&nest, object);
    Some(ObjectLayout {
        object_id: object.id,
        object: object.object.clone(),
        type_name: layout.type_name.clone(),
        size: layout.size,
        is_union: layout.is_union,
        hole_bytes,
        padding_bytes,
        cache_line_bytes: CACHE_LINE_BYTES,
        members,
        cache_lines,
        spread_samples,
        truncated: layout.truncated,
    })
}

/// The first byte after a member.
fn end(member: &LayoutMember) -> u64 {
    let bytes = match member.bits {
        Some(bits) => bits.first.saturating_add(bits.width).div_ceil(8),
        None => member.size,
    };
    member.offset.saturating_add(bytes)
}

fn line_of(member: &LayoutMember) -> LayoutLine {
    let last = end(member).saturating_sub(1).max(member.offset);
    LayoutLine {
        name: member.name.clone(),
        type_name: member.type_name.clone(),
        offset: member.offset,
        size: member.size,
        bits: member.bits,
        elements: member.elements,
        depth: member.depth,
        is_arm: member.is_arm,
        hole_before: 0,
        first_cache_line: member.offset / CACHE_LINE_BYTES,
        last_cache_line: last / CACHE_LINE_BYTES,
        object_id: None,
        metrics: None,
    }
}

/// Notes the bytes in front of each member that none has; gives their sum, and the bytes after the last one.
fn measure_gaps(layout: &TypeLayout, lines: &mut [LayoutLine]) -> (u64, u64) {
    let (mut holes, mut padding): (u64, u64) = (0, 0);
    for gap in gaps(layout) {
        let bytes = gap.whole_bytes();
        match (gap.kind, lines.get_mut(gap.before)) {
            (GapKind::Hole, Some(line)) => {
                line.hole_before = line.hole_before.saturating_add(bytes);
                holes = holes.saturating_add(bytes);
            }
            (GapKind::Padding, _) if gap.depth == 0 => padding = padding.saturating_add(bytes),
            _ => {}
        }
    }
    (holes, padding)
}

/// Joins members and the objects that they are: by what a descriptor adds for each step.
fn add_metrics(nest: &Nest<'_>, object: &ObjectLine, lines: &mut [LayoutLine]) {
    // The object of the member that is open at each depth, if it was accessed.
    let mut open: Vec<Option<&ObjectLine>> = vec![Some(object)];
    let mut parts: BTreeMap<u32, HashMap<&str, &ObjectLine>> = BTreeMap::new();
    for line in lines {
        open.truncate(line.depth as usize + 1);
        let around = open.last().copied().flatten();
        let part = around.and_then(|around| {
            let of_step = parts.entry(around.id).or_insert_with(|| {
                let parts = nest.parts(around.id);
                parts
                    .filter_map(|part| Some((part.object.strip_prefix(&*around.object)?, part)))
                    .collect()
            });
            let step = match line.bits {
                Some(bits) => format!(".{{{}:{} {}}}", line.type_name, bits.width, line.name),
                None => format!(".{{{} {}}}", line.type_name, line.name),
            };
            of_step.get(&*step).copied()
        });
        // Two members without a name may be of one type: the place tells them apart.
        let part = part.filter(|part| part.offset.is_none_or(|offset| offset == line.offset));
        if let Some(part) = part {
            line.object_id = Some(part.id);
            line.metrics = Some(part.metrics.clone());
        }
        open.push(part);
    }
}

/// Sums of each cache line, and the samples that belong to no one line.
fn cache_lines(nest: &Nest<'_>, object: &ObjectLine) -> (Vec<CacheLine>, u64) {
    let mut lines: BTreeMap<u64, CacheLine> = BTreeMap::new();
    let mut named = 0;
    let mut waiting: Vec<&ObjectLine> = nest.parts(object.id).collect();
    while let Some(part) = waiting.pop() {
        waiting.extend(nest.parts(part.id));
        let own = own_sums(nest, part);
        let (Some(offset), Some(size)) = (part.offset, part.size) else { continue };
        let index = offset / CACHE_LINE_BYTES;
        let last = offset.saturating_add(size.saturating_sub(1)) / CACHE_LINE_BYTES;
        if own.samples == 0 || last != index {
            continue;
        }
        let line = lines.entry(index).or_insert(CacheLine { index, ..CacheLine::default() });
        line.samples = line.samples.wrapping_add(own.samples);
        line.loads = line.loads.wrapping_add(own.loads);
        line.stores = line.stores.wrapping_add(own.stores);
        line.latency = line.latency.wrapping_add(own.latency.unwrap_or(0));
        line.n_members += 1;
        named = u64::wrapping_add(named, own.samples);
    }
    (lines.into_values().collect(), object.metrics.all.samples.saturating_sub(named))
}

/// The sums of an object without those of its parts.
fn own_sums(nest: &Nest<'_>, line: &ObjectLine) -> Metrics {
    let mut own = line.metrics.all.clone();
    for part in nest.parts(line.id) {
        let all = &part.metrics.all;
        own.samples = own.samples.saturating_sub(all.samples);
        own.loads = own.loads.saturating_sub(all.loads);
        own.stores = own.stores.saturating_sub(all.stores);
        own.latency = own.latency.map(|sum| sum.saturating_sub(all.latency.unwrap_or(0)));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn an_object_has_the_functions_of_its_parts() {
        let findings = fixture::findings();
        let order = detail(&findings, 2).unwrap();
        let names = |functions: &[FunctionSum]| -> Vec<(String, u64)> {
            let name = |sum: &FunctionSum| sum.scope.as_ref().unwrap().object.to_string();
            functions.iter().map(|sum| (name(sum), sum.samples)).collect()
        };
        let expected = [("/usr/bin/order-book", 2_600), ("/usr/lib/libbook.so", 400)];
        assert_eq!(names(&order.functions), expected.map(|(name, n)| (name.to_owned(), n)));
        assert_eq!(order.functions[0].events["cpu-clock"], 2_600 * 2_004_008);
        assert_eq!(order.children.iter().map(|part| part.id).collect::<Vec<_>>(), [3, 4, 6]);
        let y = detail(&findings, 5).unwrap();
        assert_eq!(y.parents.iter().map(|around| around.id).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(y.has_layout && y.children.is_empty() && y.functions.len() == 2);
        assert!(!detail(&findings, 9).unwrap().has_layout);
        assert!(detail(&findings, 99).is_none());
    }

    #[test]
    fn members_have_their_holes_lines_and_metrics() {
        let findings = fixture::findings();
        let layout = super::layout(&findings, 5).unwrap();
        assert_eq!((layout.object_id, layout.size), (2, 136));
        let row = |line: &LayoutLine| (line.hole_before, line.first_cache_line, line.object_id);
        let rows: Vec<_> = layout.members.iter().map(|line| (&*line.name, row(line))).collect();
        let expected = [
            ("next", (0, 0, Some(3))),
            ("price", (0, 0, Some(6))),
            ("pos", (0, 0, Some(4))),
            ("x", (0, 0, None)),
            ("y", (0, 0, Some(5))),
            ("name", (8, 0, None)),
            ("last", (48, 1, None)),
        ];
        assert_eq!(rows, expected);
        assert_eq!((layout.hole_bytes, layout.padding_bytes), (56, 8));
        let name = &layout.members[5];
        assert_eq!((name.first_cache_line, name.last_cache_line), (0, 1));
        assert_eq!(layout.members[4].metrics.as_ref().unwrap().all.samples, 2_000);
        let line = CacheLine {
            index: 0,
            samples: 7_100,
            loads: 5_600,
            stores: 1_500,
            latency: 880_000,
            n_members: 3,
        };
        assert_eq!((&layout.cache_lines[..], layout.spread_samples), (&[line][..], 0));
        assert!(super::layout(&findings, 8).is_none() && super::layout(&findings, 99).is_none());
    }

    #[test]
    fn foreign_numbers_overflow_nothing() {
        let mut findings = fixture::findings();
        let mut functions = findings.functions.to_vec();
        for line in &mut functions {
            (line.samples, line.loads, line.stores) = (u64::MAX, u64::MAX, u64::MAX);
            line.events.iter_mut().for_each(|period| *period = u64::MAX);
        }
        findings.functions = functions.into();
        for line in &mut Arc::make_mut(&mut findings.snapshot).objects {
            line.metrics.all.samples = u64::MAX / 2;
        }
        for layout in Arc::make_mut(&mut findings.layouts).values_mut() {
            // A hole within a member, and one after it.
            let members = &mut Arc::make_mut(layout).members;
            members[3..].iter_mut().for_each(|member| member.offset = u64::MAX - 9);
        }
        assert_eq!(super::layout(&findings, 2).unwrap().hole_bytes, u64::MAX);
        assert!(!detail(&findings, 2).unwrap().functions.is_empty());
    }

    #[test]
    fn what_is_in_no_one_line_is_told_apart() {
        let mut findings = fixture::findings();
        // The price reaches over two lines now.
        Arc::make_mut(&mut findings.snapshot).objects[5].offset = Some(60);
        let layout = super::layout(&findings, 2).unwrap();
        assert_eq!(layout.spread_samples, 1_100);
        assert_eq!(layout.cache_lines[0].samples, 6_000);
        assert!(layout.members[1].object_id.is_none(), "it is not at that place");
    }
}
