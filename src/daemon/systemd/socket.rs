//! The socket that the daemon listens on: its own, or one that systemd opened.

use crate::daemon::config_file::{DEFAULT_SOCKET, control_of};
use crate::exit::{Failure, Kind};
use anyhow::Context as _;
use dataspace_collector::system::socket::{next_inherited, takes_connections};
use rustix::fs::{FlockOperation, Gid, Mode, OFlags, flock};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Sockets that clients connect to.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Everybody's.
    pub(crate) public: Socket,
    /// Socket of root and the group, whom a crowd at the other one is not to keep waiting.
    pub(crate) control: Option<Socket>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    /// Path of the socket file that we made, which goes with it; `None` where it is systemd's.
    _made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    path: PathBuf,
    identity: (u64, u64),
    /// Locked for as long as we live: of two daemons that find a stale socket, one replaces it.
    _lock: Option<File>,
}

/// The mode of the socket of root and the group.
const CONTROL_MODE: u32 = 0o660;

/// Name that systemd has for it (`FileDescriptorName=`).
const CONTROL_NAME: &str = "control";

impl Listening {
    /// The sockets that systemd handed on, if this process was started for them (`sd_listen_fds(3)`).
    /// Everybody's has to be the one at `asked`, if that was asked for; else another is only told of.
    ///
    /// # Errors
    /// Where one is none that can be listened on, or not that one.
    pub(crate) fn inherited(asked: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        if number("LISTEN_PID") != Some(std::process::id()) {
            return Ok(None);
        }
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let n_sockets = number("LISTEN_FDS").unwrap_or(0);
        if n_sockets == 0 {
            return Ok(None);
        }
        let (mut public, mut control) = (None, None);
        for idx in 0..n_sockets {
            let name = names.split(':').nth(idx as usize).unwrap_or_default();
            let place = if name == CONTROL_NAME { &mut control } else { &mut public };
            if place.is_some() {
                let message = format!(
                    "one socket for all and one called {CONTROL_NAME} are expected of systemd, and there are \
                     {n_sockets}: {names}"
                );
                return Err(wrong_socket(message));
            }
            let Some(socket) = next_inherited() else {
                return Err(wrong_socket(format!("systemd's socket {name} is not open")));
            };
            *place = Some(Socket { listener: checked(socket, name)?, _made: None });
        }
        let Some(public) = public else {
            return Err(wrong_socket(format!("a socket for all is expected of systemd: {names}")));
        };
        let address = public.listener.local_addr().context("systemd's socket")?;
        let path = address.as_pathname().map(Path::to_path_buf).unwrap_or_default();
        match asked {
            Some(asked) if !is_one_place(&path, asked) => {
                let (path, asked) = (path.display(), asked.display());
                return Err(wrong_socket(format!(
                    "systemd has opened {path}, and {asked} is asked for"
                )));
            }
            None if !is_one_place(&path, Path::new(DEFAULT_SOCKET)) => {
                let path = path.display();
                tracing::warn!(socket = %path, "systemd's socket is not where clients look without --socket");
            }
            _ => {}
        }
        Ok(Some(Self { public, control }))
    }

    /// Sockets of our own at `path`, and beside it for root and `group`. Those that a daemon left behind when it was
    /// killed are replaced; one that somebody listens on is not.
    ///
    /// # Errors
    /// Why everybody's cannot be had. Without the other one all share it.
    pub(crate) fn bind(path: &Path, mode: u32, group: Option<u32>) -> anyhow::Result<Self> {
        let public = Socket::bind(path, mode)?;
        let control = Socket::bind_control(path, group);
        let told = |error: &anyhow::Error| {
            tracing::warn!("root and the group have no socket of their own: {error:#}");
        };
        Ok(Self { public, control: control.inspect_err(told).ok() })
    }
}

/// `socket`, if it is a Unix socket that listens.
fn checked(socket: OwnedFd, name: &str) -> anyhow::Result<UnixListener> {
    let takes = takes_connections(&socket);
    let listener = UnixListener::from(socket);
    if takes != Ok(true) || listener.local_addr().is_err() {
        let message = format!("systemd's socket {name} is no Unix stream socket that listens");
        return Err(wrong_socket(message));
    }
    listener.set_nonblocking(true).context("systemd's socket")?;
    Ok(listener)
}

impl Socket {
    fn bind(path: &Path, mode: u32) -> anyhow::Result<Self> {
        let what = || format!("listening on {}", path.display());
        if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty())
            && let Err(error) = std::fs::create_dir(directory)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error).with_context(what);
        }
        let lock = lock(path).with_context(what)?;
        Self::bind_locked(path, mode, Some(lock))
    }

    /// The one beside `path`, whose lock we hold.
    fn bind_control(path: &Path, group: Option<u32>) -> anyhow::Result<Self> {
        let path = control_of(path);
        let Some(group) = group else { return Self::bind_locked(&path, 0o600, None) };
        let socket = Self::bind_locked(&path, 0o600, None)?;
        rustix::fs::chown(&path, None, Some(Gid::from_raw(group)))?;
        rustix::fs::chmod(&path, Mode::from_bits_truncate(CONTROL_MODE))?;
        Ok(socket)
    }

    fn bind_locked(path: &Path, mode: u32, lock: Option<File>) -> anyhow::Result<Self> {
        let what = || format!("listening on {}", path.display());
        remove_stale(path)?;
        // The mode is there from the beginning: nobody connects before it is.
        let before = rustix::process::umask(Mode::from_bits_truncate(0o777 & !mode));
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = listener.with_context(what)?;
        listener.set_nonblocking(true).with_context(what)?;
        let metadata = std::fs::symlink_metadata(path).with_context(what)?;
        let identity = (metadata.dev(), metadata.ino());
        let made = Made { path: path.to_path_buf(), identity, _lock: lock };
        Ok(Self { listener, _made: Some(made) })
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let is_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the socket cannot be removed");
        }
    }
}

fn wrong_socket(message: String) -> anyhow::Error {
    Failure::new(Kind::Usage, message)
        .with_remedy(
            "systemctl edit dataspace.socket  one ListenStream=, a path: that of --socket or of \
             `socket` in the configuration",
        )
        .into()
}

/// Tells whether two paths lead to one file, as below `/run` and `/var/run`.
fn is_one_place(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|at| (at.dev(), at.ino()));
    one == other || identity(one).is_some_and(|found| identity(other) == Some(found))
}

fn in_use(path: &Path) -> anyhow::Error {
    Failure::new(Kind::Failed, format!("a daemon already listens on {}", path.display()))
        .with_remedy(format!(
            "dataspace status --socket {}  how it is\ndataspace daemon --socket PATH  another one",
            path.display()
        ))
        .into()
}

/// The lock stays where it is when we end: who waits for it would else hold one that nobody finds.
fn lock(path: &Path) -> anyhow::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    // Not through a link that somebody put there, and for nobody else to lock.
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&name, flags, Mode::RUSR | Mode::WUSR)?);
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(in_use(path)),
        Err(errno) => Err(errno.into()),
    }
}

fn remove_stale(path: &Path) -> anyhow::Result<()> {
    let what = || format!("listening on {}", path.display());
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(what),
        Ok(found) if !found.file_type().is_socket() => {
            anyhow::bail!("{} is there and is no socket", path.display());
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        // Of a daemon without our lock, or of another program.
        Ok(_) => Err(in_use(path)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!(socket = %path.display(), "a socket that nobody listens on is replaced");
            std::fs::remove_file(path).with_context(what)
        }
        Err(error) => Err(error).with_context(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/dataspace.sock");
        std::fs::create_dir(dir.path().join("below")).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "what a killed daemon leaves");
        let listening = Listening::bind(&path, 0o640, None).unwrap();
        let control = std::fs::metadata(control_of(&path)).unwrap().permissions().mode();
        assert_eq!(control & 0o777, 0o600);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let error = Listening::bind(&path, 0o640, None).unwrap_err().to_string();
        assert!(error.contains("already listens") || error.contains("listening on"), "{error}");
        UnixStream::connect(&path).unwrap();
        drop(listening);
        assert!(!path.exists() && !control_of(&path).exists());
        let other = UnixListener::bind(&path).unwrap();
        let error = Listening::bind(&path, 0o640, None).unwrap_err();
        assert!(format!("{error:#}").contains("already listens"), "without a lock too: {error:#}");
        drop(other);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(Listening::bind(&path, 0o640, None).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
