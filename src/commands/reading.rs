//! Waiting for a recording to be read.

use super::progress::ProgressText;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::Source;
use std::time::{Duration, Instant};

/// Waits until a recording is read, and tells how far that is.
///
/// # Errors
/// Where somebody ended it.
pub(super) fn wait(source: &dyn Source, interrupt: &Interrupt) -> anyhow::Result<()> {
    let mut progress = ProgressText::new();
    while !source.is_finished() {
        interrupt.wait_until(Instant::now() + Duration::from_secs(1), || source.is_finished());
        if !source.is_finished() {
            let n_samples = source.snapshot().accounting.kernel;
            progress.tell(&format!("reading: {n_samples} samples"));
        }
        if interrupt.is_set() {
            interrupt.end_at_next()?;
            source.stop();
            return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
        }
    }
    Ok(())
}
