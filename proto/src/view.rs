//! Requests for views of a session's samples that are more than sums.

use crate::query::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// Cache lines that threads share.
    Sharing,
    /// The code of a function.
    Code,
    /// A type in its cache lines, with what was measured of each member.
    Members,
    /// A measurement: its summaries.
    Measurement,
}

/// A request for a view. Each view has a use for some of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewRequest {
    /// Of `code`: the function, as `NAME` or `FILE:LINE`; none: the one with the most samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Of `members`: the descriptor of the object, which is the aggregate or in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// An expression that is true for the samples that count.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The span, as a question has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// Of `sharing`: most cache lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Names for expressions, which `where` may use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

impl ViewRequest {
    /// The samples that it is about, as a question, which may use `keys` besides its own.
    #[must_use]
    pub fn query(&self, keys: BTreeMap<String, String>) -> Query {
        let (filter, span) = (self.filter.clone(), self.span.clone());
        Query { filter, span, keys: self.keys.clone(), ..Query::default() }.with_keys(keys)
    }
}
