//! A worker of the daemon: a process without privileges that does the work of one user's sessions, as it is asked to.

mod figures;
mod frame;
mod host;
pub(crate) mod object;
pub(crate) mod view;

#[cfg(test)]
pub(crate) use figures::of as figures_of;

use crate::broker;
use crate::broker::wire::Connection;
use crate::interrupt::Interrupt;
use crate::memory_bound;
use anyhow::{Context as _, bail};
use dataspace_collector::system::memory;
use dataspace_proto::worker::Order;
use host::Host;
use rustix::fd::AsFd as _;
use std::collections::HashMap;
use std::fs::File;
use std::io::stdin;
use std::sync::Arc;

/// The process: obeys the daemon at the other end of its standard input, until that is gone.
///
/// # Errors
/// Where it cannot give its privileges up.
pub(crate) fn run() -> anyhow::Result<()> {
    // It was executed as "exe". A thread's name has fifteen bytes.
    let _ = rustix::thread::set_name(c"dataspace-work");
    // Its end is the daemon's business: signals of a terminal, or of a unit that is stopped, reach both.
    let _deaf = Interrupt::listen()?;
    // Threads come and go with sessions for weeks.
    memory::keep_little();
    let control = Connection::from(stdin().as_fd().try_clone_to_owned()?);
    control.send_hello()?;
    let Some((Order::Access, mut beside)) = control.receive()? else {
        bail!("a worker is started by the daemon only");
    };
    let access = beside.pop().context("a worker's way to what it may have")?;
    broker::enter(access.into(), false)?;
    obey(&control);
    broker::let_go();
    // What is still at work waits for answers that will not come.
    std::process::exit(0);
}

/// Obeys orders until nobody gives any more.
fn obey(control: &Connection) {
    let mut hosts: HashMap<u64, Arc<Host>> = HashMap::new();
    loop {
        let (order, beside) = match control.receive() {
            Ok(Some(order)) => order,
            Ok(None) => return,
            Err(error) => return tracing::error!(%error, "an order is not understood"),
        };
        match order {
            Order::Access => {}
            Order::Memory { max_bytes } => memory_bound::set(max_bytes),
            Order::Flag { session, flag } => {
                if let Some(host) = hosts.get(&session) {
                    host.flag(flag);
                }
            }
            Order::Begin { session, request } => {
                hosts.retain(|_, host| !host.is_over());
                let mut beside = beside.into_iter();
                let (Some(followed), Some(wished)) = (beside.next(), beside.next()) else {
                    continue;
                };
                let ends = (followed.into(), wished.into());
                match Host::begin(session, request, ends, beside.next().map(File::from)) {
                    Ok(host) => drop(hosts.insert(session, host)),
                    Err(error) => tracing::error!(session, %error, "no thread for a session"),
                }
            }
        }
    }
}
