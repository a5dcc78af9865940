//! The daemon, as those who answer clients know it, and the settings that it follows.

use super::client::connection::Connections;
use super::client::network::TcpConfig;
use super::client::peer::Trusted;
use super::client::token::Token;
use super::client::turn::Turns;
use super::config_file::DaemonConfig;
use super::limit::Limits;
use super::relay::Elsewhere;
use super::session::roster::Roster;
use super::session::staff::Staff;
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The daemon, as those who answer clients know it.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// The time when it began.
    pub(crate) began: Instant,
    /// Its sessions.
    pub(crate) roster: Roster,
    /// Its workers.
    pub(crate) staff: Arc<Staff>,
    /// Its open connections.
    pub(crate) connections: Arc<Connections>,
    settings: Mutex<Settings>,
    /// Turns of requests for profiles and objects: one at a time of each worker, so that they leave the processors to
    /// others.
    pub(crate) turns: Turns,
    /// Another daemon, which all is asked of; none: this one answers itself.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Parts that a new configuration changes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    limits: Limits,
    pub(crate) trusted: Trusted,
    /// Clients that are let in over TCP, if any are.
    pub(crate) tcp: Option<Arc<(TcpConfig, Token)>>,
    /// Keys of questions, by name.
    pub(crate) keys: BTreeMap<String, String>,
}

impl Settings {
    /// Reads `config`'s table, and the token.
    ///
    /// # Errors
    /// What is wrong with the token.
    pub(crate) fn of(config: &DaemonConfig) -> anyhow::Result<Self> {
        let token = config.tcp.as_ref().map(|tcp| Token::read(&tcp.token_file)).transpose()?;
        let tcp = config.tcp.clone().zip(token);
        Ok(Self::new(config.limits, Trusted::of(&config.group), tcp, config.keys.clone()))
    }

    /// Those of a daemon that follows no configuration.
    pub(crate) fn new(
        limits: Limits,
        trusted: Trusted,
        tcp: Option<(TcpConfig, Token)>,
        keys: BTreeMap<String, String>,
    ) -> Self {
        Self { limits, trusted, tcp: tcp.map(Arc::new), keys }
    }

    /// Tells whether the same clients are let in over TCP, with the same rights, in `other`.
    fn opens_tcp_as(&self, other: &Self) -> bool {
        match (self.tcp.as_deref(), other.tcp.as_deref()) {
            (Some((config, token)), Some((other, other_token))) => {
                token == other_token && config.rights == other.rights && config.hosts == other.hosts
            }
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Daemon {
    /// A daemon with no sessions yet.
    pub(crate) fn new(settings: Settings, staff: Arc<Staff>) -> Self {
        Self {
            began: Instant::now(),
            roster: Roster::new(settings.limits, Arc::clone(&staff)),
            staff,
            connections: Arc::default(),
            settings: Mutex::new(settings),
            turns: Turns::default(),
            elsewhere: None,
        }
    }

    /// The same, which asks all of another daemon, where there is one.
    pub(crate) fn asking(self, elsewhere: Option<Elsewhere>) -> Self {
        Self { elsewhere, ..self }
    }

    /// Its configuration as it is now.
    pub(crate) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Goes on with `settings`. What is open by what they do not say any more is closed, streams too.
    pub(crate) fn adopt(&self, settings: Settings) {
        let mut current = lock(&self.settings);
        let before = std::mem::replace(&mut *current, settings);
        if !before.opens_tcp_as(&current) {
            self.connections.revoke_tcp();
        }
        if before.trusted != current.trusted {
            self.connections.revoke_group();
        }
    }

    /// Its limits now.
    pub(crate) fn limits(&self) -> Limits {
        lock(&self.settings).limits
    }

    /// Those who may see all now.
    pub(crate) fn trusted(&self) -> Trusted {
        lock(&self.settings).trusted
    }
}
