//! The daemon: several sessions at once, asked for over a socket by clients that may see them.

pub(crate) mod alone;
pub(crate) mod client;
pub(crate) mod config_file;
mod http;
pub(crate) mod limit;
pub(crate) mod relay;
pub(crate) mod session;
mod state;
mod systemd;

use crate::exit::{Failure, Kind};
use anyhow::Context as _;
use client::network::TcpConfig;
use client::refusal_log::REFUSALS;
use config_file::DaemonConfig;
use dataspace_collector::system::memory;
use http::server;
use limit::MemoryMax;
use session::staff::{Staff, Workplace};
use state::{Daemon, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use systemd::notice::Notices;
use systemd::oom;
use systemd::socket::Listening;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Time that sessions may take for their final totals when the daemon ends: with what clients take to
/// get them it is to be gone in two seconds.
const DRAIN: Duration = Duration::from_millis(1_200);

/// Interval at which sessions are checked for silence, without a watchdog.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Options that the daemon was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonOptions {
    /// The configuration; none: the default one, if it is there.
    pub(crate) config: Option<PathBuf>,
    /// Socket to listen at, whatever the configuration says.
    pub(crate) socket: Option<PathBuf>,
    /// Bound on memory, whatever the configuration says.
    pub(crate) memory_max: Option<MemoryMax>,
    /// Place of the sessions' workers.
    pub(crate) workplace: Workplace,
}

impl DaemonOptions {
    /// Tells whether there is room for the sessions of `config` in the memory that was asked for here; that in
    /// the configuration has been checked.
    ///
    /// # Errors
    /// What they need.
    fn check_memory(&self, config: &DaemonConfig) -> anyhow::Result<()> {
        let checked = self.memory_max.unwrap_or_default().check(config.sessions.len());
        checked.map_err(|what| Failure::new(Kind::Usage, format!("--memory-max: {what}")).into())
    }

    /// The bound on memory that was asked for here, or in `config`.
    fn memory_max(&self, config: &DaemonConfig) -> Option<u64> {
        self.memory_max.unwrap_or(config.limits.memory_max).bytes(config.sessions.len())
    }

    /// Warns of what `now` says otherwise than the configuration that the daemon `began_with`, and
    /// is read at the start only.
    fn tell_of_unread(&self, began_with: &DaemonConfig, now: &DaemonConfig) {
        let listen = |config: &DaemonConfig| config.tcp.as_ref().map(|tcp| tcp.listen);
        let own_socket = self.socket.is_none();
        for (key, is_changed) in [
            ("socket", own_socket && began_with.socket != now.socket),
            ("socket_mode", began_with.socket_mode != now.socket_mode),
            ("tcp.listen", listen(began_with) != listen(now)),
        ] {
            if is_changed {
                tracing::warn!(key, "changed, but read at the start only: restart the daemon");
            }
        }
    }
}

/// Runs until it is asked to end.
///
/// # Errors
/// Where it cannot begin: a wrong configuration, a socket that cannot be had.
pub(crate) fn run(options: &DaemonOptions) -> anyhow::Result<()> {
    let config = DaemonConfig::read(options.config.as_deref())?;
    options.check_memory(&config)?;
    // Threads come and go with sessions for weeks.
    memory::keep_little();
    let staff = Staff::new(options.workplace.clone());
    staff.bound_memory(options.memory_max(&config));
    let settings = Settings::of(&config)?;
    let notices = Notices::from_env();
    oom::offer_itself(notices.is_heard());
    let path = options.socket.as_ref().unwrap_or(&config.socket);
    let asked = (path != Path::new(config_file::DEFAULT_SOCKET)).then_some(&**path);
    let listening = match Listening::inherited(asked)? {
        Some(listening) => listening,
        None => Listening::bind(path, config.socket_mode, settings.trusted.group)?,
    };
    let network = config.tcp.as_ref().map(TcpConfig::bind).transpose()?;
    let daemon = Arc::new(Daemon::new(settings, staff));
    let runtime = runtime()?;
    let ended = runtime.block_on(live(daemon, options, &config, (&listening, network), &notices));
    // Sessions that did not end in time have threads of their own: they end with the process.
    runtime.shutdown_background();
    ended
}

/// The one thread of the daemon's sockets, timers and signals.
fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("starting the daemon's runtime")
}

/// From ready to ended.
async fn live(
    daemon: Arc<Daemon>,
    options: &DaemonOptions,
    config: &DaemonConfig,
    (listening, network): (&Listening, Option<std::net::TcpListener>),
    notices: &Notices,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    daemon.roster.follow(&config.sessions, config.limits).await;
    let (end, ending) = watch::channel(false);
    if let Some(network) = network {
        let network = TcpListener::from_std(network).context("listening on TCP")?;
        tokio::spawn(server::serve_network(network, daemon.clone(), ending.clone()));
    }
    let mut servers = JoinSet::new();
    for socket in listening.control.iter().chain([&listening.public]) {
        let listener = socket.listener.try_clone().context("listening")?;
        let listener = UnixListener::from_std(listener).context("listening")?;
        servers.spawn(server::serve(listener, daemon.clone(), ending.clone()));
    }
    notices.ready();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "ready");
    tokio::select! {
        () = until_asked_to_end(&daemon, (options, config), notices, &mut signals) => {}
        () = keep_memory_bounded(&daemon) => {}
    }
    tracing::info!("ending");
    notices.stopping();
    // The sessions first: streams have their final totals before their connections are closed.
    daemon.roster.end(DRAIN).await;
    let _ = end.send(true);
    let _ = tokio::time::timeout(server::FAREWELL, servers.join_all()).await;
    let deadline = Instant::now() + server::FAREWELL;
    while daemon.connections.count() > 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Reads the configuration again when asked to, and tells that all is well.
async fn until_asked_to_end(
    daemon: &Daemon,
    (options, began_with): (&DaemonOptions, &DaemonConfig),
    notices: &Notices,
    signals: &mut Signals,
) {
    let mut beat = tokio::time::interval(notices.watchdog_interval().unwrap_or(HEARTBEAT));
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            _ = signals.hangup.recv() => {}
            _ = beat.tick() => {
                look_after(daemon, notices);
                continue;
            }
        }
        // That takes as long as sessions take to end: all else goes on meanwhile.
        let mut reloading = std::pin::pin!(reload(daemon, options, began_with, notices));
        loop {
            tokio::select! {
                () = &mut reloading => break,
                _ = signals.terminate.recv() => return,
                _ = signals.interrupt.recv() => return,
                _ = beat.tick() => look_after(daemon, notices),
            }
        }
    }
}

/// Gives sessions up where memory is short, for ever.
async fn keep_memory_bounded(daemon: &Daemon) {
    loop {
        let shortage = daemon.staff.shortage().await;
        daemon.roster.give_up_one(&shortage);
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listening for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }
}

/// Reads the configuration again. One that is wrong changes nothing.
async fn reload(
    daemon: &Daemon,
    options: &DaemonOptions,
    began_with: &DaemonConfig,
    notices: &Notices,
) {
    notices.reloading();
    let read = DaemonConfig::read(options.config.as_deref())
        .and_then(|config| options.check_memory(&config).map(|()| config))
        .and_then(|config| Ok((Settings::of(&config)?, config)));
    match read {
        Ok((settings, config)) => {
            daemon.adopt(settings);
            daemon.staff.bound_memory(options.memory_max(&config));
            daemon.roster.follow(&config.sessions, config.limits).await;
            tracing::info!(n_sessions = config.sessions.len(), "the configuration was read again");
            options.tell_of_unread(began_with, &config);
        }
        Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
    }
    notices.ready();
}

/// Tells systemd that all is well, if it is: the analyzer of every session of the configuration
/// answered lately. A target that does nothing is no failure, and what clients ask for is no reason to
/// end the sessions of all others.
fn look_after(daemon: &Daemon, notices: &Notices) {
    REFUSALS.tell(Instant::now());
    let sessions = daemon.roster.configured();
    let silent = sessions.iter().find(|session| session.silent_for() > http::health::MAX_SILENCE);
    match silent {
        None => notices.alive(),
        Some(session) => {
            let silent_s = session.silent_for().as_secs();
            tracing::error!(session = session.id, silent_s, "nothing is heard of its analyzer");
        }
    }
}
