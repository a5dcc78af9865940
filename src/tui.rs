//! The full-screen table.

use crate::config::TopOptions;
use crate::interrupt::Interrupt;
use crate::session::Source;

/// Shows the session until it is left.
pub(crate) fn run(_: &dyn Source, _: &TopOptions, _: &Interrupt) -> anyhow::Result<()> {
    anyhow::bail!("the screen is not built in yet")
}
