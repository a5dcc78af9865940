//! Channel to the analyzer: batches of records in order of time, whose buffers come back.

pub mod ahead;
pub mod batch;
pub mod merge;
