//! The objects of a snapshot that are listed: in tables, on the screen, in JSON and as metrics.

use crate::config::Selection;
use dataspace_proto::snapshot::{ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use std::borrow::Cow;

/// The objects that a list is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedObjects<'a> {
    /// The user's wish: which names, and how many.
    pub(crate) selection: &'a Selection,
    /// Only objects with samples in this window; `None`: also those without.
    pub(crate) sampled_in: Option<Window>,
    /// With `<Total>`, whatever the filter and the window.
    pub(crate) has_total: bool,
}

/// A list, and how much of it the limit cut off.
#[derive(Debug)]
pub(crate) struct Selected<T> {
    pub(crate) listed: Vec<T>,
    pub(crate) n_cut: usize,
}

/// Selects objects, lets `arrange` make a list of their indices, and cuts that at the limit.
pub(crate) fn select<T>(
    objects: &[ObjectLine],
    wanted: WantedObjects<'_>,
    arrange: impl FnOnce(Vec<usize>) -> Vec<T>,
) -> Selected<T> {
    let needle = wanted.selection.filter.to_lowercase();
    let is_wanted = |object: &ObjectLine| {
        if object.kind == ObjectKind::Total {
            return wanted.has_total;
        }
        wanted.sampled_in.is_none_or(|window| object.metrics.get(window).samples > 0)
            && (needle.is_empty()
                || [&object.object, &object.name]
                    .iter()
                    .any(|text| text.to_lowercase().contains(&needle)))
    };
    let idxs = (0..objects.len()).filter(|&idx| is_wanted(&objects[idx])).collect();
    let mut listed = arrange(idxs);
    let limit = wanted.selection.limit.unwrap_or(usize::MAX);
    let n_cut = listed.len().saturating_sub(limit);
    listed.truncate(limit);
    Selected { listed, n_cut }
}

/// Leaves in `snapshot` the objects that `selection` wants, and notes where the limit cut some off.
pub(crate) fn reduce(snapshot: &mut Snapshot, selection: &Selection) {
    let wanted = WantedObjects { selection, sampled_in: None, has_total: true };
    let Selected { listed, n_cut } = select(&snapshot.objects, wanted, |idxs| idxs);
    let mut kept = listed.into_iter().peekable();
    let mut idx = 0;
    snapshot.objects.retain(|_| {
        let is_kept = kept.next_if_eq(&idx).is_some();
        idx += 1;
        is_kept
    });
    snapshot.truncated |= n_cut > 0;
}

/// `snapshot` with the objects that `selection` wants.
pub(crate) fn reduced<'a>(snapshot: &'a Snapshot, selection: &Selection) -> Cow<'a, Snapshot> {
    if *selection == Selection::default() {
        return Cow::Borrowed(snapshot);
    }
    let mut snapshot = snapshot.clone();
    reduce(&mut snapshot, selection);
    Cow::Owned(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn ids(selection: &Selection, sampled_in: Option<Window>, has_total: bool) -> Vec<u32> {
        let objects = fixture::running().objects;
        let wanted = WantedObjects { selection, sampled_in, has_total };
        select(&objects, wanted, |idxs| idxs.iter().map(|&idx| objects[idx].id).collect()).listed
    }

    #[test]
    fn each_condition_leaves_objects_out_by_itself() {
        let all: Vec<u32> = fixture::running().objects.iter().map(|object| object.id).collect();
        let everything = Selection::default();
        assert_eq!(ids(&everything, None, true), all);
        assert_eq!(ids(&everything, None, false), all[1..]);
        let int_y = Selection { filter: "INT Y".into(), limit: None };
        assert_eq!(ids(&int_y, None, true), [1, 5]);
        assert_eq!(ids(&int_y, None, false), [5]);
        let of_no_session = Some(Window::Last(7));
        assert_eq!(ids(&everything, of_no_session, true), [1], "nothing was sampled there");
    }

    #[test]
    fn what_is_cut_off_is_counted_and_noted() {
        let whole = fixture::running();
        for (limit, is_cut) in [(3, true), (whole.objects.len(), false)] {
            let selection = Selection { limit: Some(limit), filter: String::new() };
            let reduced = reduced(&whole, &selection);
            assert_eq!((reduced.objects.len(), reduced.truncated), (limit, is_cut));
            assert!(
                reduced.objects.iter().zip(&whole.objects).all(|(one, other)| one.id == other.id)
            );
        }
        let filtered = reduced(&whole, &Selection { filter: "particle".into(), limit: None });
        assert!(!filtered.truncated, "a filter is no limit");
        let mut names = filtered.objects.iter().skip(1).map(|object| &object.object);
        assert!(names.all(|name| name.contains("particle")));
    }
}
