//! A daemon for one page: at a port of this machine alone, with a token of its own, until it is asked to end.

use super::client::network::{Rights, TcpConfig};
use super::client::peer::{Peer, Rank, Trusted};
use super::client::token::Token;
use super::http::server;
use super::limit::Limits;
use super::relay::Elsewhere;
use super::session::Course;
use super::session::own_work::OwnWork;
use super::session::staff::Staff;
use super::state::{Daemon, Settings};
use super::{DRAIN, Signals};
use crate::exit::{Failure, Kind};
use anyhow::Context as _;
use dataspace_collector::system::memory;
use dataspace_proto::api::{ApiError, SessionSpec};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Connections at once: a browser has six, and there may be many who look.
const CONNECTIONS: usize = 512;

/// Seconds that a request may take, and the page itself: the way may be a slow one.
const REQUEST_S: u64 = 60;

/// Subject of the page.
#[derive(Debug)]
pub(crate) enum Shown {
    /// A session that is begun for it, with its work.
    Session(Box<SessionSpec>, OwnWork),
    /// The sessions of another daemon.
    Elsewhere(Elsewhere),
}

/// Options of such a daemon.
#[derive(Debug)]
pub(crate) struct AloneOptions {
    /// Its subject.
    pub(crate) shown: Shown,
    /// The port; 0 for any.
    pub(crate) port: u16,
    /// Bound on the memory of all its processes.
    pub(crate) memory_max: Option<u64>,
    /// Names for expressions.
    pub(crate) keys: BTreeMap<String, String>,
}

/// Runs until it is asked to end. `ready` is told the address of the page, with the token.
///
/// # Errors
/// Where it cannot begin: a port or a target that cannot be had.
pub(crate) fn run(
    options: AloneOptions,
    ready: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    memory::keep_little();
    let AloneOptions { shown, port, memory_max, keys } = options;
    let token = Token::random().context("making a token")?;
    let fragment = token.text().into_owned();
    let tcp = TcpConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        token_file: PathBuf::new(),
        rights: Rights::All,
        allow_remote: false,
        hosts: Vec::new(),
    };
    let listener = tcp.bind()?;
    let address = listener.local_addr()?;
    let limits = Limits {
        connections: CONNECTIONS,
        connections_per_user: CONNECTIONS,
        request_s: REQUEST_S,
        ..Limits::default()
    };
    let settings = Settings::new(limits, Trusted::default(), Some((tcp, token)), keys);
    let (elsewhere, spec, work) = match shown {
        Shown::Session(spec, work) => (None, Some(spec), work),
        Shown::Elsewhere(elsewhere) => (Some(elsewhere), None, OwnWork::Target),
    };
    let staff = Staff::own(work);
    staff.bound_memory(memory_max);
    let daemon = Arc::new(Daemon::new(settings, staff).asking(elsewhere));
    let runtime = super::runtime()?;
    let served = runtime.block_on(async {
        let Signals { mut terminate, mut interrupt, mut hangup } = Signals::listen()?;
        let listener = TcpListener::from_std(listener).context("listening")?;
        if let Some(spec) = spec {
            let refused = |error: ApiError| Failure::new(error.code.into(), error.message);
            let own = Peer::with_token(address, Rank::Privileged);
            let begun = tokio::select! {
                attached = daemon.roster.attach(&own, *spec, Course::Own) => attached.map(drop).map_err(refused),
                _ = interrupt.recv() => Err(Failure::new(Kind::Interrupted, "interrupted")),
                _ = terminate.recv() => Err(Failure::new(Kind::Interrupted, "asked to end")),
            };
            if let Err(failure) = begun {
                // A command may have begun.
                daemon.roster.end(DRAIN).await;
                return Err(failure.into());
            }
        }
        let (end, ending) = watch::channel(false);
        tokio::spawn(server::serve_network(listener, Arc::clone(&daemon), ending));
        ready(&format!("http://{address}/#token={fragment}"))?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
            () = super::keep_memory_bounded(&daemon) => {}
        }
        daemon.roster.end(DRAIN).await;
        let _ = end.send(true);
        tokio::time::sleep(server::FAREWELL).await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}
