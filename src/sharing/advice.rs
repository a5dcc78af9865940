//! Advice on what would separate the threads that share a line.

use super::name;
use dataspace_analyzer::sharing::survey::{LinePart, Sharing, SurveyedLine};
use std::collections::BTreeSet;

/// Places that are named before the others are only counted.
const MAX_NAMED: usize = 3;

/// Bytes of a line that are touched together.
struct Spot<'a> {
    /// The first byte, and the first after the last.
    from: u64,
    to: u64,
    tids: BTreeSet<i32>,
    /// The part with most samples.
    part: &'a LinePart,
}

/// Relation of the spots of a line to each other.
enum Relation {
    /// Different members of one object.
    Members,
    /// Elements of one array.
    Elements,
    /// Different objects of one type.
    Instances,
    /// Variables, or whatever else happens to be side by side.
    Neighbours,
}

/// Words on what would separate them; `None` where there is nothing to separate.
pub(super) fn of(line: &SurveyedLine) -> Option<String> {
    let is_rust = is_rust(line);
    match line.sharing {
        Sharing::None => None,
        Sharing::True => Some(together(line)),
        Sharing::False => Some(apart(&spots(line), is_rust)),
    }
}

/// The same bytes: nothing but fewer accesses helps.
fn together(line: &SurveyedLine) -> String {
    let hottest = line.parts.iter().find(|part| part.met != 0);
    let what = hottest.map_or_else(|| "it".to_owned(), shown);
    format!(
        "split {what} by thread, each part on a line of its own, and add the parts up where it is read; or touch it \
         less often"
    )
}

/// Different bytes: each gets a line of its own.
fn apart(spots: &[Spot<'_>], is_rust: bool) -> String {
    let align = if is_rust { "#[repr(align(64))]" } else { "alignas(64)" };
    let names: Vec<String> = spots.iter().map(|spot| shown(spot.part)).collect();
    match relation(spots) {
        Relation::Members => {
            let moved: Vec<String> = spots.iter().skip(1).map(moved).collect();
            let on = if is_rust { "on the type of" } else { "on" };
            format!("{align} {on} {}, so that each of them begins a line", list(&moved))
        }
        Relation::Elements => {
            let size = spots.iter().map(|spot| spot.to - spot.from).max().unwrap_or(0);
            let stride =
                spots.windows(2).map(|two| two[1].from - two[0].from).min().unwrap_or(size);
            let array = spots.first().and_then(|spot| array_name(spot.part));
            let array = array.unwrap_or_else(|| names.first().cloned().unwrap_or_default());
            format!(
                "pad the elements of {array} from {stride} to 64 bytes ({align} on their type); or let each thread work \
                 on a copy of its own and write it back at the end"
            )
        }
        Relation::Instances => {
            let what = spots.first().and_then(|spot| name::whole(spot.part)).unwrap_or_default();
            match is_rust {
                true => format!(
                    "{align} on {what}, or on a type around it: each object then has a line of its own"
                ),
                false => format!(
                    "{align} on the type of the blocks ({what}), and an allocator that keeps to it \
                     (aligned_alloc, aligned new): each block then has a line of its own"
                ),
            }
        }
        Relation::Neighbours => {
            let others = if names.len() > 1 { &names[1..] } else { &names[..] };
            let on = if is_rust { "on the type of" } else { "on" };
            format!("{align} {on} {}, so that each of them begins a line", list(others))
        }
    }
}

/// A member and where it goes.
fn moved(spot: &Spot<'_>) -> String {
    let name = name::member(spot.part);
    let name =
        name.map_or_else(|| shown(spot.part), |name| name.trim_start_matches('.').to_owned());
    match spot.part.offset {
        Some(offset) => format!("{name} (offset {offset})"),
        None => name,
    }
}

/// The places that parts which met others touch, in the order of addresses: what overlaps is one.
fn spots(line: &SurveyedLine) -> Vec<Spot<'_>> {
    let mut parts: Vec<&LinePart> = line.parts.iter().filter(|part| part.met != 0).collect();
    parts.sort_by_key(|part| part.address.0);
    let mut spots: Vec<Spot<'_>> = Vec::new();
    for part in parts {
        let from = part.address.0;
        let to = from.saturating_add(u64::from(part.size.max(1)));
        match spots.last_mut() {
            Some(last) if from < last.to => {
                last.to = last.to.max(to);
                last.tids.insert(part.tid);
                if part.samples > last.part.samples {
                    last.part = part;
                }
            }
            _ => spots.push(Spot { from, to, tids: BTreeSet::from([part.tid]), part }),
        }
    }
    // What one thread has beside its own is no place to separate it from.
    let is_new = |at: usize| at == 0 || spots[at].tids != spots[at - 1].tids;
    let kept: Vec<bool> = (0..spots.len()).map(is_new).collect();
    let mut kept = kept.into_iter();
    spots.retain(|_| kept.next().unwrap_or(true));
    spots
}

fn relation(spots: &[Spot<'_>]) -> Relation {
    let all_same = |of: &dyn Fn(&LinePart) -> Option<String>| {
        let mut values = spots.iter().map(|spot| of(spot.part));
        let first = values.next().flatten();
        first.is_some() && values.all(|value| value == first)
    };
    let start =
        |part: &LinePart| Some(part.address.0.wrapping_sub(u64::from(part.offset?)).to_string());
    let is_one_object = all_same(&start);
    let has_same_member = all_same(&|part| Some(part.member.as_deref().unwrap_or("").to_owned()));
    let has_same_variable = all_same(&|part| Some(part.variable.as_deref()?.to_owned()));
    let has_same_type = all_same(&|part| Some(part.type_name.as_deref()?.to_owned()));
    let is_variable = spots.iter().any(|spot| spot.part.variable.is_some());
    if is_one_object && !has_same_member {
        Relation::Members
    } else if is_one_object || has_same_variable {
        Relation::Elements
    } else if has_same_type && !is_variable {
        Relation::Instances
    } else {
        Relation::Neighbours
    }
}

/// The array that a part is an element of.
fn array_name(part: &LinePart) -> Option<String> {
    let base = part.variable.as_deref().or(part.type_name.as_deref())?;
    // An array inside of an object.
    match name::member(part).filter(|_| part.index.is_none()) {
        Some(member) => Some(format!("{base}{member}")),
        None => Some(base.to_owned()),
    }
}

fn shown(part: &LinePart) -> String {
    name::of(part).unwrap_or_else(|| part.object.to_string())
}

/// `a, b and 3 more`.
fn list(names: &[String]) -> String {
    let n_more = names.len().saturating_sub(MAX_NAMED);
    let named = names[..names.len() - n_more].join(", ");
    if n_more == 0 { named } else { format!("{named} and {n_more} more") }
}

/// Tells whether the code that touches most of the line is Rust.
fn is_rust(line: &SurveyedLine) -> bool {
    let source = line.parts.iter().find_map(|part| part.source.as_ref()?.path.as_deref());
    source.is_some_and(|path| path.ends_with(".rs"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use dataspace_proto::address::Avma;

    /// A part of a thread: an address, the variable or type and the member, offset and index.
    pub(in crate::sharing) fn part(
        tid: i32,
        address: u64,
        variable: Option<&str>,
        member: Option<&str>,
    ) -> LinePart {
        LinePart {
            tid,
            comm: None,
            address: Avma(address),
            size: 8,
            object: "{object}".into(),
            type_name: Some("stats".into()),
            member: member.map(Into::into),
            variable: variable.map(Into::into),
            offset: Some(0),
            index: None,
            function: None,
            module: None,
            source: None,
            samples: 10,
            reads: 10,
            writes: 10,
            met: 10,
            time_ns: 0,
        }
    }

    fn line(sharing: Sharing, parts: Vec<LinePart>) -> SurveyedLine {
        SurveyedLine {
            pid: 1,
            address: Avma(0x1000),
            sharing,
            samples: 0,
            met_apart: 0,
            met_same: 0,
            time_ns: 0,
            at_stake_ns: 0,
            parts,
            n_parts_left_out: 0,
        }
    }

    #[test]
    fn what_separates_them_is_told_by_what_they_are_to_each_other() {
        let check = |parts: Vec<LinePart>, expected: &str| {
            let told = of(&line(Sharing::False, parts)).unwrap();
            assert!(told.contains(expected), "{told}");
        };
        let member = |tid, offset: u32, name| LinePart {
            offset: Some(offset),
            ..part(tid, 0x1000 + u64::from(offset), Some("g"), Some(name))
        };
        check(
            vec![member(1, 0, "hits"), member(2, 8, "misses")],
            "alignas(64) on misses (offset 8)",
        );
        let element = |tid, index: u32| LinePart {
            index: Some(index),
            ..part(tid, 0x1000 + u64::from(index) * 16, Some("counts"), None)
        };
        check(vec![element(1, 0), element(2, 1)], "the elements of counts from 16 to 64 bytes");
        let block = |tid, address| part(tid, address, None, Some("count"));
        check(vec![block(1, 0x1000), block(2, 0x1020)], "the type of the blocks (stats)");
        let variables = vec![part(1, 0x1000, Some("a"), None), part(2, 0x1008, Some("b"), None)];
        check(variables, "alignas(64) on b,");
    }

    #[test]
    fn of_one_counter_its_parts_are_told_and_of_nothing_nothing() {
        let parts = vec![part(1, 0x1000, Some("hits"), None), part(2, 0x1000, Some("hits"), None)];
        assert!(of(&line(Sharing::True, parts.clone())).unwrap().contains("split hits by thread"));
        assert_eq!(of(&line(Sharing::None, parts)), None);
        let many: Vec<String> = (0..9).map(|number| number.to_string()).collect();
        assert_eq!(list(&many), "0, 1, 2 and 6 more");
    }
}
