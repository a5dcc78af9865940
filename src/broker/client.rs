//! The worker's side: asks the broker, on a connection that no other thread waits at.

use super::wire::Connection;
use crate::lock::lock;
use dataspace_collector::access::{Answered, Broker};
use dataspace_proto::broker::{Answer, Request, VERSION};
use rustix::io::Errno;
use std::sync::Mutex;
use std::time::Duration;

/// The broker, as its worker knows him.
#[derive(Debug)]
pub(super) struct Client {
    /// The first connection, by which others are made.
    first: Mutex<Connection>,
    /// One that nobody waits at.
    idle: Mutex<Option<Connection>>,
}

impl Client {
    /// The one at the other end of `first`.
    pub(super) fn new(first: Connection) -> Self {
        Self { first: Mutex::new(first), idle: Mutex::default() }
    }

    fn connect(&self) -> Result<Connection, Errno> {
        let answered = lock(&self.first).ask(&Request::Connection { version: VERSION })?;
        match unless_failed(answered)? {
            (Answer::Opened, mut fds) => Ok(fds.pop().ok_or(Errno::PROTO)?.into()),
            _ => Err(Errno::PROTO),
        }
    }
}

impl Broker for Client {
    fn ask(&self, request: &Request) -> Result<Answered, Errno> {
        let idle = lock(&self.idle).take();
        // One at which a file was late is closed by the broker, maybe after it was heard of.
        let usable = idle.filter(|idle| matches!(idle.is_ready_within(Duration::ZERO), Ok(false)));
        let connection = usable.map_or_else(|| self.connect(), Ok)?;
        // One that fails is not used again: an answer to this may come yet.
        let answered = connection.ask(request)?;
        // One is enough for threads that ask in turn.
        lock(&self.idle).get_or_insert(connection);
        unless_failed(answered)
    }
}

fn unless_failed(answered: Answered) -> Result<Answered, Errno> {
    match answered.0 {
        Answer::Failed(errno) => Err(Errno::from_raw_os_error(errno)),
        _ => Ok(answered),
    }
}
