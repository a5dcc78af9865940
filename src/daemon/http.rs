//! The API over HTTP/1.1: connections, the table of operations, and their answers.

mod answer;
mod body;
mod endpoint;
pub(crate) mod health;
mod metrics;
mod openapi;
mod page;
mod path;
mod roster;
mod route;
pub(crate) mod server;
mod stream;
mod totals;
mod voiced;
