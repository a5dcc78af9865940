//! A question to a session's history.

use super::findings::Findings;
use crate::config::TopOptions;
use crate::exit::{Failure, Kind};
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::query::answer::{Inquiry, Reckoning};
use dataspace_analyzer::query::error::QueryError;
use dataspace_proto::query::{Metric, Query, QueryAnswer};
use dataspace_proto::snapshot::{ObjectKind, ObjectLine};

/// A question that means something, and its words.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The words.
    pub(crate) query: Query,
    inquiry: Inquiry,
}

/// The failure of a question that means nothing.
pub(crate) fn mistake(error: &QueryError) -> Failure {
    let failure = Failure::new(Kind::Usage, error.to_string());
    match error.excerpt() {
        Some(excerpt) => failure.with_remedy(excerpt),
        None => failure,
    }
}

/// A text as expressions have it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// The condition that a sample is of an object or of something inside of it.
pub(crate) fn condition_of(object: &ObjectLine) -> String {
    let text = quoted(&object.object);
    match object.kind {
        ObjectKind::Total => "true".to_owned(),
        ObjectKind::Scalar => format!("object == {text}"),
        ObjectKind::Artificial if &*object.object == "<Unknown>" => {
            "object.startsWith(\"<Unknown>\")".to_owned()
        }
        ObjectKind::Artificial => format!("object == {text}"),
        // A descriptor ends with a bracket: what begins with it is inside.
        ObjectKind::Aggregate | ObjectKind::Member => format!("object.startsWith({text})"),
    }
}

impl Question {
    /// The questions whose answers are shown, one below the other, in the place of objects.
    ///
    /// # Errors
    /// That of the first one that means nothing.
    pub(crate) fn all(options: &TopOptions) -> Result<Vec<Self>, Failure> {
        options.query.iter().chain(&options.newest).cloned().map(Self::new).collect()
    }

    /// Reads `query`.
    ///
    /// # Errors
    /// What in it means nothing.
    pub(crate) fn new(query: Query) -> Result<Self, Failure> {
        let inquiry = Inquiry::new(&query).map_err(|error| mistake(&error))?;
        Ok(Self { query, inquiry })
    }

    /// Has at most so many rows in its answer.
    pub(crate) fn bound(&mut self, max_rows: usize) {
        self.inquiry.bound(max_rows);
    }

    /// Bounds it for a user who may not see all: addresses stay untold.
    ///
    /// # Errors
    /// Where the question cannot be answered without them.
    pub(crate) fn confine(&mut self) -> Result<(), Failure> {
        let confined = self.inquiry.confine();
        confined.map_err(|error| Failure::new(Kind::Usage, error.to_string()))
    }

    /// The metrics to show.
    pub(crate) fn metrics(&self) -> &[Metric] {
        &self.inquiry.metrics
    }

    /// Tells whether rows are single samples, and not sums.
    pub(crate) const fn is_of_samples(&self) -> bool {
        self.query.newest.is_some()
    }

    /// Tells whether it asks why samples have no data object.
    pub(crate) fn has_reasons(&self) -> bool {
        self.inquiry.has_reasons()
    }

    /// Tells whether it speaks of source lines.
    pub(crate) fn has_lines(&self) -> bool {
        self.inquiry.has_lines()
    }

    /// An answer to which samples of a session are added that is as long, and has the events, as `whole` says.
    pub(crate) fn reckoning(&self, whole: &HistoryView) -> Reckoning<'_> {
        self.inquiry.reckoning(whole)
    }

    /// The answer that findings with a history give.
    ///
    /// # Errors
    /// Where none is kept.
    pub(crate) fn answer(&self, findings: &Findings) -> Result<QueryAnswer, Failure> {
        Ok(self.inquiry.answer(history(findings)?))
    }

    /// The answers to several, which cost less than one after the other where they have one filter.
    ///
    /// # Errors
    /// Where no history is kept.
    pub(crate) fn answer_together(
        questions: &[Self],
        findings: &Findings,
    ) -> Result<Vec<QueryAnswer>, Failure> {
        let inquiries: Vec<&Inquiry> = questions.iter().map(|it| &it.inquiry).collect();
        Ok(Inquiry::answer_together(&inquiries, history(findings)?))
    }
}

/// The samples that findings have.
///
/// # Errors
/// Where none are kept.
pub(crate) fn history(findings: &Findings) -> Result<&HistoryView, Failure> {
    findings.history.as_deref().ok_or_else(|| {
        let failure = Failure::new(Kind::Usage, "the session keeps no history to ask");
        failure.with_remedy("--history 64M   keeps about a million samples")
    })
}
