//! A session without an analyzer: whoever asked gets each record as it comes.

use super::live::{BATCH_LEN, N_BATCHES};
use super::{failure, live_config};
use crate::config::LiveOptions;
use crossbeam_channel::RecvTimeoutError;
use dataspace_collector::channel::batch;
use dataspace_collector::live::{Live, Outcome};
use dataspace_proto::event::Event;
use dataspace_proto::record::Record;
use std::time::Duration;

/// Time that a wait for records goes on without asking whether it is over.
const GLANCE: Duration = Duration::from_millis(20);

/// A session whose events are open: they count already, into the kernel's rings.
#[derive(Debug)]
pub(crate) struct RawSession {
    live: Live,
}

impl RawSession {
    /// Opens the events.
    ///
    /// # Errors
    /// When nothing can be sampled, with the remedy.
    pub(crate) fn open(options: &LiveOptions) -> anyhow::Result<Self> {
        let live = Live::open(live_config(options)?).map_err(|error| failure(&error))?;
        Ok(Self { live })
    }

    /// The events, as they were opened.
    pub(crate) fn events(&self) -> &[Event] {
        self.live.events()
    }

    /// Hands every record to `take` until `is_over`, which is asked often, or until the target
    /// ends; then those that are still on their way.
    ///
    /// # Errors
    /// Where there is no thread for the collector.
    pub(crate) fn run(
        self,
        is_over: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(&Record),
    ) -> anyhow::Result<Outcome> {
        let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let running = self.live.start(sender).map_err(|error| failure(&error))?;
        while !is_over() {
            match receiver.receiver().recv_timeout(GLANCE) {
                Ok(batch) => {
                    batch.iter().for_each(&mut *take);
                    receiver.recycle(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        running.stop();
        while let Some(batch) = receiver.receive() {
            batch.iter().for_each(&mut *take);
            receiver.recycle(batch);
        }
        Ok(running.join())
    }
}
