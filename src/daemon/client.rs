//! Clients: who they are, how many there may be, and what is refused to whom.

pub(crate) mod connection;
pub(crate) mod network;
pub(crate) mod pace;
pub(crate) mod peer;
pub(crate) mod refusal_log;
pub(crate) mod token;
pub(crate) mod turn;
