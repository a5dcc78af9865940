//! Cost of sampling to the target: measured, followed, and bounded.

pub(crate) mod calibration;
pub(crate) mod governor;
pub(crate) mod life;
pub(crate) mod lives;
pub(crate) mod sample;
