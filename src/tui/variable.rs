//! Types told apart by the variables that their objects are in: `order · g_orders`.

use super::lens::{FIRST_OWN_ID, add, kept, metrics};
use crate::arrangement::parents;
use crate::session::question::{condition_of, quoted};
use dataspace_proto::query::{KeyValue, QueryAnswer};
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Windows;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::successors;
use std::sync::Arc;

/// Rows that are of one variable, by their numbers.
pub(super) type VariableRows = HashMap<u32, VariableRow>;

/// A type, or a part of one, of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VariableRow {
    /// The descriptor without the variable.
    pub(super) descriptor: Arc<str>,
    /// The condition that a sample is of it, or of what is inside of it.
    pub(super) condition: String,
    /// Number of the variable's own row.
    pub(super) variable: u32,
}

/// Numbers for rows that the screen makes. A row keeps its number from one answer to the next.
#[derive(Debug, Default)]
pub(super) struct OwnIds(HashSet<u32>);

impl OwnIds {
    /// The number of what `key` stands for.
    pub(super) fn of(&mut self, key: impl Hash) -> u32 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let mut id = FIRST_OWN_ID | hasher.finish() as u32;
        while !self.0.insert(id) {
            id = FIRST_OWN_ID | id.wrapping_add(1);
        }
        id
    }
}

/// The objects of `snapshot` with the sums of an answer by variable and object. A type of which any sample is of a
/// known variable has its variables below it, and its members below these.
pub(super) fn unfolded(
    snapshot: &Snapshot,
    answer: &QueryAnswer,
) -> (Vec<ObjectLine>, VariableRows) {
    let objects = &snapshot.objects;
    let parents = parents(objects);
    let upwards = |idx: usize| successors(Some(idx), |at| parents[*at]);
    let root_of = |idx: usize| upwards(idx).last().unwrap_or(idx);
    // Of two types of one descriptor the first one has both, as in [`kept`].
    let places: HashMap<&str, usize> =
        objects.iter().enumerate().rev().map(|(idx, object)| (&*object.object, idx)).collect();
    let mut sums: BTreeMap<usize, BTreeMap<Option<&str>, BTreeMap<usize, Metrics>>> =
        BTreeMap::new();
    for row in &answer.rows {
        let [variable, KeyValue::Text(object)] = &row.key[..] else { continue };
        let Some(&idx) = places.get(object.as_str()) else { continue };
        let variable = match variable {
            KeyValue::Text(variable) => Some(variable.as_str()),
            _ => None,
        };
        let of_variable = sums.entry(root_of(idx)).or_default().entry(variable).or_default();
        let sum = metrics(&row.metrics);
        for at in upwards(idx) {
            add(of_variable.entry(at).or_default(), &sum);
        }
    }
    sums.retain(|root, of| {
        objects[*root].kind == ObjectKind::Aggregate && of.keys().any(Option::is_some)
    });
    let lengths = snapshot.window_lengths();
    let is_replaced = |idx: usize| parents[idx].is_some() && sums.contains_key(&root_of(idx));
    let whole = kept(snapshot, answer).into_iter().enumerate();
    let whole = whole.filter(|(idx, _)| !is_replaced(*idx)).map(|(_, line)| line);
    let mut lines: Vec<ObjectLine> = whole.collect();
    let (mut ids, mut of_variables) = (OwnIds::default(), HashMap::new());
    for (&root, of_root) in &sums {
        for (variable, own) in of_root {
            let id_of: HashMap<usize, u32> = own
                .keys()
                .map(|&idx| (idx, ids.of((variable, &*objects[idx].object, objects[idx].id))))
                .collect();
            for (&idx, sum) in own {
                let object = &objects[idx];
                lines.push(ObjectLine {
                    id: id_of[&idx],
                    parent_id: Some(parents[idx].map_or(object.id, |around| id_of[&around])),
                    metrics: Windows::new(lengths, |_| sum.clone()),
                    ..of_variable(&objects[root], object, *variable)
                });
                let row = VariableRow {
                    descriptor: Arc::clone(&object.object),
                    condition: condition(object, *variable),
                    variable: id_of[&root],
                };
                of_variables.insert(id_of[&idx], row);
            }
        }
    }
    (lines, of_variables)
}

/// The condition that a sample is of an object, of which `rows` may tell the variable, or of what is inside of it.
pub(super) fn condition_among(rows: &VariableRows, object: &ObjectLine) -> String {
    rows.get(&object.id).map_or_else(|| condition_of(object), |row| row.condition.clone())
}

/// The names of `object`, which is the type `root` or inside of it, in one variable.
fn of_variable(root: &ObjectLine, object: &ObjectLine, variable: Option<&str>) -> ObjectLine {
    let told = format!(" · {}", variable.unwrap_or("(no variable)"));
    let with = |whole: &Arc<str>, of_root: &str| match whole.strip_prefix(of_root) {
        Some(own) => format!("{of_root}{told}{own}").into(),
        None => Arc::clone(whole),
    };
    let is_root = object.id == root.id;
    ObjectLine {
        object: with(&object.object, &root.object),
        name: with(&object.name, &root.name),
        part: if is_root { Some(told.as_str().into()) } else { object.part.clone() },
        is_elided: object.is_elided && !is_root,
        ..object.clone()
    }
}

fn condition(object: &ObjectLine, variable: Option<&str>) -> String {
    let variable = variable.map_or_else(|| "null".to_owned(), quoted);
    format!("{} && variable == {variable}", condition_of(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::session::question::Question;
    use dataspace_proto::query::{Query, QueryMetrics, QueryRow};

    const ORDER: &str = "{structure:order}.{long_int price}";
    const TOLD: &str = "{structure:order} · g_orders.{long_int price}";
    const DEEP: &str = "{structure:order}.{structure:pos_t pos}.{int y}";

    fn answer(rows: &[(Option<&str>, &str, u64)]) -> QueryAnswer {
        let row = |(variable, object, samples): &(Option<&str>, &str, u64)| QueryRow {
            key: vec![
                variable.map_or(KeyValue::None, |text| KeyValue::Text(text.to_owned())),
                KeyValue::Text((*object).to_owned()),
            ],
            metrics: QueryMetrics { samples: *samples, ..QueryMetrics::default() },
        };
        QueryAnswer { rows: rows.iter().map(row).collect(), ..QueryAnswer::default() }
    }

    #[test]
    fn a_type_has_its_variables_below_it_and_the_sums_stay_right() {
        let particle = "{structure:particle}.{double x}";
        let rows = [
            (Some("g_orders"), ORDER, 5),
            (None, ORDER, 3),
            (Some("g_orders"), DEEP, 2),
            (None, particle, 4),
        ];
        let (lines, rows_of) = unfolded(&fixture::running(), &answer(&rows));
        let of = |name: &str| {
            let mut found = lines.iter().filter(|line| &*line.name == name);
            let line = found.next().unwrap_or_else(|| panic!("{name} is not there"));
            assert!(found.next().is_none(), "{name} is there twice");
            line
        };
        let samples = |name: &str| of(name).metrics.all.samples;
        assert_eq!(samples("order"), 10);
        assert_eq!(samples("order · g_orders"), 7);
        assert_eq!(samples("order · g_orders.price"), 5);
        assert_eq!(samples("order · g_orders.pos.y"), 2);
        assert_eq!(samples("order · (no variable)"), 3);
        assert_eq!(samples("order · (no variable).price"), 3);
        assert_eq!(samples("particle.x"), 4, "no variable of that type is known");
        for line in &lines {
            let below = lines.iter().filter(|it| it.parent_id == Some(line.id));
            let sum: u64 = below.map(|it| it.metrics.all.samples).sum();
            assert!(sum <= line.metrics.all.samples, "{line:?}");
        }
        assert_eq!(of("order · g_orders").parent_id, Some(of("order").id));
        let price = of("order · g_orders.price");
        assert_eq!(price.parent_id, Some(of("order · g_orders").id));
        for row in rows_of.values() {
            let filter = Some(row.condition.clone());
            Question::new(Query { filter, ..Query::default() }).unwrap();
        }
        assert!(rows_of[&price.id].condition.ends_with("&& variable == \"g_orders\""));
        let elsewhere = &rows_of[&of("order · (no variable)").id];
        assert!(elsewhere.condition.ends_with("&& variable == null"));
        assert_eq!((&*price.object, &*rows_of[&price.id].descriptor), (TOLD, ORDER));
        assert_eq!(rows_of[&price.id].variable, of("order · g_orders").id);
    }

    #[test]
    fn of_two_types_of_one_descriptor_the_first_has_the_samples() {
        let mut snapshot = fixture::running();
        let copies =
            snapshot.objects.iter().filter(|it| it.object.starts_with("{structure:order}"));
        let copies: Vec<ObjectLine> = copies
            .map(|it| ObjectLine {
                id: it.id + 1000,
                parent_id: it.parent_id.map(|id| if id == 0 { 0 } else { id + 1000 }),
                ..it.clone()
            })
            .collect();
        snapshot.objects.extend(copies);
        let rows = [(Some("g_orders"), ORDER, 5), (None, ORDER, 3)];
        let (lines, _) = unfolded(&snapshot, &answer(&rows));
        let sum = |name: &str| -> u64 {
            let of = lines.iter().filter(|line| &*line.name == name);
            of.map(|line| line.metrics.all.samples).sum()
        };
        assert_eq!(
            (sum("order"), sum("order · g_orders"), sum("order · (no variable)")),
            (8, 5, 3)
        );
        let of = |name: &str| lines.iter().find(|line| &*line.name == name).unwrap();
        assert_eq!(of("order · g_orders").parent_id, Some(of("order").id));
    }

    #[test]
    fn rows_keep_their_numbers_when_the_order_changes() {
        let rows = [(Some("a"), ORDER, 5), (Some("b"), ORDER, 3), (Some("a"), DEEP, 2)];
        let ids = |rows: &[(Option<&str>, &str, u64)]| -> BTreeMap<String, u32> {
            let (lines, _) = unfolded(&fixture::running(), &answer(rows));
            lines.iter().map(|line| (line.name.to_string(), line.id)).collect()
        };
        let backwards: Vec<_> = rows.iter().rev().copied().collect();
        assert_eq!(ids(&rows), ids(&backwards));
    }
}
