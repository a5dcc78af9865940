//! Presentation of a measurement, as it is asked for.

use crate::annotation::cutoff::CodeCutoffs;
use crate::config::Names;
use dataspace_analyzer::index::code_listing::AssemblySyntax;

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortBy {
    /// Amount that is measured: latency, misses, faults, time.
    #[default]
    Metric,
    /// Samples.
    #[value(alias = "misses")]
    Samples,
    /// Latency of a sample on average.
    #[value(alias = "average-latency")]
    Average,
    /// Translations that the second level had.
    L2Fills,
    /// Translations that the hardware walked for.
    #[value(alias = "walker-fills")]
    HpwFills,
    /// Translations that the kernel made.
    SoftFills,
    /// Names.
    Address,
}

/// Rows of a function's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DetailRows {
    /// Statements alone.
    Statement,
    /// Instructions alone.
    Instruction,
    /// Both.
    #[default]
    All,
}

/// Threads that have sections of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ThreadChoice {
    /// None: all are summed.
    #[default]
    SumAll,
    /// Each.
    All,
    /// This one.
    One(i32),
}

/// Presentation of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct MeasureView {
    /// Order of the rows.
    pub(crate) sort: SortBy,
    /// Rows of summaries that stay.
    pub(crate) summary: CodeCutoffs,
    /// Functions whose code is shown.
    pub(crate) detail: CodeCutoffs,
    /// Rows of their code.
    pub(crate) rows: DetailRows,
    /// Lines of source around a statement.
    pub(crate) context_lines: u32,
    /// Functions stand below their load objects.
    pub(crate) is_by_module: bool,
    /// Threads with sections of their own.
    pub(crate) threads: ThreadChoice,
    /// Latency buckets are shown.
    pub(crate) has_buckets: bool,
    /// Data are told by the load object of the code too.
    pub(crate) has_module_data: bool,
    /// Spelling of objects.
    pub(crate) names: Names,
    /// Syntax in which code is written.
    pub(crate) syntax: AssemblySyntax,
}

impl Default for MeasureView {
    fn default() -> Self {
        Self {
            sort: SortBy::Metric,
            summary: CodeCutoffs { min_percent: 0.1, min_samples: 1, ..CodeCutoffs::NONE },
            detail: CodeCutoffs { min_percent: 1.0, ..CodeCutoffs::NONE },
            rows: DetailRows::All,
            context_lines: 0,
            is_by_module: false,
            threads: ThreadChoice::SumAll,
            has_buckets: true,
            has_module_data: false,
            names: Names::Source,
            syntax: AssemblySyntax::Att,
        }
    }
}
