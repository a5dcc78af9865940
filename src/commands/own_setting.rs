//! Settings of the user's own: keys of questions, columns and colours of the screen. They are read before the sandbox is
//! entered, in which no file can be opened.

use crate::config::{Output, TopOptions};
use crate::daemon::config_file;
use dataspace_proto::query::Query;

/// A question with the keys of the configuration besides its own.
pub(super) fn with_own_keys(query: Option<Query>) -> anyhow::Result<Option<Query>> {
    query.map(|query| Ok(query.with_keys(config_file::own_keys()?))).transpose()
}

/// A view whose question, or whose screen of objects, is as the configuration says where nothing was typed.
pub(super) fn with_own_settings(view: TopOptions) -> anyhow::Result<TopOptions> {
    let query = with_own_keys(view.query)?;
    // The screen of a question has its own columns.
    if query.is_some() || view.output != Output::Screen {
        return Ok(TopOptions { query, ..view });
    }
    let screen = view.screen.or(&config_file::own_screen()?);
    Ok(TopOptions { query, screen, own_keys: config_file::own_keys()?, ..view })
}
