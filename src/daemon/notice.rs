//! Notices of the daemon to systemd (sd_notify(3)): one datagram each.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The way to systemd, if it listens.
#[derive(Debug, Default)]
pub(super) struct Notices {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notices {
    /// As the environment tells.
    pub(super) fn from_env() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        let socket = variable("NOTIFY_SOCKET").and_then(|path| connect(path.as_bytes()));
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_for_us =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&us| is_for_us && us > 0);
        Self { socket, watchdog: watchdog.map(Duration::from_micros) }
    }

    /// Interval at which systemd is told that all is well: half of the time it waits.
    pub(super) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    /// Tells whether systemd listens, whose unit then says what becomes of us.
    pub(super) const fn is_heard(&self) -> bool {
        self.socket.is_some()
    }

    pub(super) fn ready(&self) {
        self.say("READY=1");
    }

    pub(super) fn reloading(&self) {
        use rustix::time::{ClockId, clock_gettime};
        let now = clock_gettime(ClockId::Monotonic);
        let us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={us}"));
    }

    pub(super) fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    pub(super) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, text: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(text.as_bytes())
        {
            tracing::debug!(%error, text, "systemd does not hear");
        }
    }
}

/// A path, or an abstract name after `@`.
fn connect(path: &[u8]) -> Option<UnixDatagram> {
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_each_notice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let notices = Notices { socket: connect(path.as_os_str().as_bytes()), watchdog: None };
        notices.ready();
        notices.reloading();
        let mut buffer = [0; 128];
        let mut hear = || {
            let n = listener.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..n].to_vec()).unwrap()
        };
        assert_eq!(hear(), "READY=1");
        assert!(hear().starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert!(connect(b"/no/such/socket").is_none());
        Notices::default().alive();
    }
}
