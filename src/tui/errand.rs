//! Questions about the row under the cursor that are asked once, and their answers.

/// Question about the row under the cursor that is asked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// The function that touches it most.
    Code,
    /// The place that is touched most.
    Watch,
}

/// Data of a process that can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedPlace {
    pub(super) pid: i32,
    /// Its address and length, as they are typed.
    pub(super) place: String,
}

/// Answer to an [`Errand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Function(String),
    Place(WatchedPlace),
}
