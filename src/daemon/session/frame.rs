//! A snapshot on its way to clients: bytes that a worker made, and the few figures that the daemon tells itself.

use super::sealed::Sealed;
use crate::text::visible;
use dataspace_proto::worker::Figures;
use std::collections::HashSet;
use std::time::Instant;

/// Longest text about a session that a worker makes for a person.
const MAX_TEXT_CHARS: usize = 500;

/// Events of a session whose names are told.
const MAX_EVENTS: usize = 64;

/// A session's snapshot, and the time when it was made.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The snapshot as an event of a stream.
    pub(crate) event: Sealed,
    pub(crate) figures: Figures,
    pub(crate) made: Instant,
}

impl Frame {
    /// One that a worker made now. Of what it says the daemon makes lists and series, over and over: so it is cut to
    /// what an honest one says.
    pub(crate) fn made(event: Sealed, mut figures: Figures) -> Self {
        figures.target = cut(&figures.target);
        figures.window = cut(&figures.window);
        figures.events.truncate(MAX_EVENTS);
        figures.events.iter_mut().for_each(|event| *event = cut(event));
        figures.counts.truncate(Figures::MAX_COUNTS);
        for count in &mut figures.counts {
            (count.event, count.selector) = (cut(&count.event), cut(&count.selector));
            count.lacks = count.lacks.as_deref().map(cut);
        }
        let mut counted = HashSet::new();
        figures
            .counts
            .retain(|count| counted.insert((count.event.clone(), count.selector.clone())));
        figures.objects.truncate(Figures::MAX_OBJECTS);
        let mut names = HashSet::new();
        figures.objects.retain_mut(|(name, _)| {
            *name = visible(name).chars().take(Figures::MAX_NAME_CHARS).collect();
            // Two series of the same labels are an error.
            names.insert(name.clone())
        });
        Self { event, figures, made: Instant::now() }
    }
}

/// As much of a worker's text as a line has room for.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
impl Frame {
    /// One of `figures`, without objects.
    pub(crate) fn of(figures: Figures) -> Self {
        let event = Sealed::seal(Sealed::blank().unwrap()).unwrap();
        Self { event, figures, made: Instant::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::event_count::EventCount;

    #[test]
    fn what_a_worker_says_is_cut_to_what_an_honest_one_says() {
        let long = "x".repeat(90_000);
        let object = |name: &str| (name.to_owned(), 1);
        let figures = Figures {
            target: long.clone(),
            events: vec![long.clone(); 10_000],
            window: long.clone(),
            counts: (0..10_000)
                .map(|n| EventCount {
                    event: if n < 2 { format!("{long}{n}") } else { n.to_string() },
                    lacks: Some(long.clone()),
                    ..EventCount::default()
                })
                .collect(),
            objects: [
                vec![object(&long); 3],
                (0..10_000).map(|n| object(&format!("{n}"))).collect(),
            ]
            .concat(),
            ..Figures::default()
        };
        let event = Sealed::seal(Sealed::blank().unwrap()).unwrap();
        let Frame { figures, .. } = Frame::made(event, figures);
        // The first two are alike once they are cut.
        assert_eq!(figures.counts.len(), Figures::MAX_COUNTS - 1);
        assert!(figures.counts.iter().all(|count| count.event.len() <= 500));
        assert_eq!([&figures.target, &figures.window].map(String::len), [500; 2]);
        assert!(
            figures.events.len() == 64 && figures.events.iter().all(|event| event.len() == 500)
        );
        // Of the three that have one beginning there is one.
        assert_eq!(figures.objects.len(), Figures::MAX_OBJECTS - 2);
        assert!(figures.objects.iter().all(|(name, _)| name.len() <= Figures::MAX_NAME_CHARS));
    }
}
