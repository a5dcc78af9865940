//! One file for each kind of event and for the life of targets.

mod clock;
