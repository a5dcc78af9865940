//! A snapshot on its way to clients: bytes that a worker made, and the few figures that the daemon tells itself.

use super::sealed::Sealed;
use dataspace_proto::worker::Figures;
use std::time::Instant;

/// A session's snapshot, and the time when it was made.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The snapshot as an event of a stream.
    pub(crate) event: Sealed,
    pub(crate) figures: Figures,
    pub(crate) made: Instant,
}

#[cfg(test)]
impl Frame {
    /// One of `figures`, without objects.
    pub(crate) fn of(figures: Figures) -> Self {
        let event = Sealed::seal(Sealed::blank().unwrap()).unwrap();
        Self { event, figures, made: Instant::now() }
    }
}
