//! Keys of the user's own in questions.

use crate::daemon::config_file;
use dataspace_proto::query::Query;

/// A question with the keys of the configuration besides its own.
pub(super) fn with_own_keys(query: Option<Query>) -> anyhow::Result<Option<Query>> {
    query.map(|query| Ok(query.with_keys(config_file::own_settings()?.keys))).transpose()
}
