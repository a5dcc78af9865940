//! Figures of a snapshot that the daemon tells itself, in lists and to Prometheus: few, and of a bounded length.

use crate::config::Selection;
use crate::selection::{WantedObjects, select};
use crate::session::findings::Findings;
use crate::text::visible;
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use dataspace_proto::worker::Figures;
use std::collections::{BTreeMap, HashMap};

/// Objects are counted over the longest window of at most so many seconds: those between two scrapes, where
/// nobody told Prometheus otherwise.
const WINDOW_S: u16 = 60;

/// The object that stands for all without a series of their own.
const OTHER: &str = "other";

/// The figures of `findings`.
pub(crate) fn of(findings: &Findings) -> Figures {
    let Findings { snapshot, queues, .. } = findings;
    let window = snapshot.window_lengths().at_most(WINDOW_S);
    Figures {
        target: snapshot.target.description.clone(),
        events: snapshot.events.iter().map(|event| event.name.clone()).collect(),
        elapsed_ns: snapshot.elapsed_ns,
        accounting: snapshot.accounting.clone(),
        counts: snapshot.counts.iter().take(Figures::MAX_COUNTS).cloned().collect(),
        target_cost_ns: snapshot.cost.target_ns,
        own_cpu_ns: snapshot.cost.own_cpu_ns,
        n_batches: queues.batches as u64,
        n_questions: queues.questions as u64,
        window: window.to_string(),
        objects: top(snapshot, window),
    }
}

/// The objects with the most samples of their own, without those of the parts that are listed, and the rest
/// of the total.
fn top(snapshot: &Snapshot, window: Window) -> Vec<(String, u64)> {
    let objects = &snapshot.objects;
    let samples = |line: &ObjectLine| line.metrics.get(window).samples;
    let mut of_parts: HashMap<u32, u64> = HashMap::new();
    for line in objects {
        if let Some(parent) = line.parent_id {
            let sum = of_parts.entry(parent).or_default();
            *sum = sum.saturating_add(samples(line));
        }
    }
    let selection = Selection { limit: Some(Figures::MAX_OBJECTS - 1), filter: String::new() };
    let wanted =
        WantedObjects { selection: &selection, sampled_in: Some(window), has_total: false };
    let mut top = select(objects, wanted, |idxs| {
        // Objects of one name, or of one that looks so when it is bounded, have one series: two of the same labels are an error.
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for line in idxs.into_iter().map(|idx| &objects[idx]) {
            let parts = of_parts.get(&line.id).copied().unwrap_or(0);
            let own = samples(line).saturating_sub(parts);
            if own > 0 {
                let sum = by_name.entry(bounded(&visible(&line.object))).or_default();
                *sum = sum.saturating_add(own);
            }
        }
        let mut by_samples: Vec<(String, u64)> = by_name.into_iter().collect();
        by_samples.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        by_samples
    })
    .listed;
    let total = objects.first().map_or(0, samples);
    let named = top.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
    top.push((OTHER.to_owned(), total.saturating_sub(named)));
    top
}

/// A name with its beginning and its end, where it is too long: the member is at the end.
fn bounded(name: &str) -> String {
    let n_chars = name.chars().count();
    if n_chars <= Figures::MAX_NAME_CHARS {
        return name.to_owned();
    }
    let n_first = Figures::MAX_NAME_CHARS / 2;
    let n_last = Figures::MAX_NAME_CHARS - n_first - 1;
    let first = name.chars().take(n_first);
    first.chain(['…']).chain(name.chars().skip(n_chars - n_last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::collections::HashSet;

    #[test]
    fn objects_are_bounded_and_add_up_to_the_total() {
        let mut snapshot = fixture::running();
        let all = top(&snapshot, Window::All);
        assert_eq!(all.iter().map(|(_, n)| n).sum::<u64>(), 12_000);
        assert!(all.iter().all(|(name, _)| name != "<Total>" && name != "{structure:order}"));
        // Samples of the whole structure, as of a copy of it, are its own.
        snapshot.objects[0].metrics.all.samples += 2_000;
        snapshot.objects[1].metrics.all.samples += 2_000;
        let own = top(&snapshot, Window::All);
        assert!(own.contains(&("{structure:order}".to_owned(), 2_000)), "{own:?}");
        assert_eq!(own.iter().map(|(_, n)| n).sum::<u64>(), 14_000);
        let model = snapshot.objects[3].clone();
        for id in 100..200 {
            let mut line = model.clone();
            (line.id, line.parent_id) = (id, Some(1));
            line.object = format!("{}{id}", "x".repeat(199)).into();
            line.metrics.all.samples = 1;
            snapshot.objects.push(line);
        }
        let many = top(&snapshot, Window::All);
        assert!(many.len() <= Figures::MAX_OBJECTS, "{many:?}");
        let names: HashSet<&String> = many.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), many.len(), "no series is there twice");
        assert_eq!(many.last().unwrap().0, OTHER);
    }

    #[test]
    fn members_of_a_type_with_a_long_name_are_told_apart() {
        let of =
            |member: &str| bounded(&format!("{{class:{}}}.{{int {member}}}", "x<y>".repeat(99)));
        assert!(of("qty").starts_with("{class:x<y>") && of("qty").ends_with("<y>}.{int qty}"));
        assert_ne!(of("qty"), of("price"));
        assert_eq!(of("qty").chars().count(), Figures::MAX_NAME_CHARS);
        assert_eq!(bounded("order.next"), "order.next");
    }
}
