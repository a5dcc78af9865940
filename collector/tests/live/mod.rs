//! One file for each kind of event and for the life of targets.

mod clock;
mod command;
mod exact;
mod governed;
mod life;
mod privilege;
mod recorded;
mod threads;
mod wide;
