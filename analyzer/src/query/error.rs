//! Errors in questions to the history.

use crate::query::field::Field;
use dataspace_proto::query::Metric;
use thiserror::Error;

/// Something in a question that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// An expression: the message, and the column that it is about, from 1 on.
    #[error("{message} (column {column} of {expression})")]
    Expression {
        /// The whole expression.
        expression: String,
        /// The column, from 1 on.
        column: usize,
        /// The fault.
        message: String,
    },
    /// A span.
    #[error("no span: {0}; expected FROM..TO, as in -30s..-10s, 5s..10s, -1m..")]
    Span(String),
    /// A metric.
    #[error("no metric: {0}; there are {metrics}", metrics = metrics())]
    Metric(String),
    /// No keys, or more than there may be.
    #[error("expected at most {max} keys between commas; there are {names}", names = Field::names())]
    Keys {
        /// Most keys.
        max: usize,
    },
    /// Addresses for a user who may not see all.
    #[error(
        "addresses are told only to those who may see all: there are keys of them, with ordinals, but no expressions"
    )]
    Addresses,
    /// Too many keys of one's own.
    #[error("at most {max} keys of one's own")]
    OwnKeys {
        /// Most of them.
        max: usize,
    },
    /// A key that is neither a field nor an expression.
    #[error("a key of one's own has the name of one that there is: {0}")]
    Taken(String),
}

impl QueryError {
    /// Tells whether it is about this expression.
    #[must_use]
    pub fn is_of(&self, text: &str) -> bool {
        matches!(self, Self::Expression { expression, .. } if expression == text)
    }

    /// The expression, and a mark below the column that it is about.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        match self {
            Self::Expression { expression, column, .. } => {
                Some(format!("{expression}\n{}^", " ".repeat(column.saturating_sub(1))))
            }
            _ => None,
        }
    }
}

fn metrics() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}
