//! The order of eviction: what is given up first where memory is short.

/// A stage of eviction, first to last. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionStage {
    /// The debug information that workers keep of what they have read: pages of files, parsed units, decoded
    /// functions and the values of their registers.
    Caches,
    /// The indices of all load objects but the one that was asked last.
    Indices,
    /// The answers of workers, names made of them, and votes: asked again as samples come.
    Answers,
    /// The work itself: the last index, samples that wait for answers, which are `over_budget` as are
    /// those to come, and data objects that are new, which are `<Other>`.
    Work,
}

impl EvictionStage {
    /// All, first to last.
    pub const ALL: [Self; 4] = [Self::Caches, Self::Indices, Self::Answers, Self::Work];

    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caches => "caches",
            Self::Indices => "indices",
            Self::Answers => "answers",
            Self::Work => "work",
        }
    }
}
