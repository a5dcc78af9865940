//! The daemon's configuration file: what may stand in it, and what is wrong with one, by line.

use super::client::network::TcpConfig;
use super::client::peer::group_number;
use super::limit::Limits;
use super::session::spec::{self, Planned};
use crate::config::ScreenSettings;
use crate::exit::{Failure, Kind};
use dataspace_analyzer::query::answer::Inquiry;
use dataspace_analyzer::query::error::QueryError;
use dataspace_proto::api::SessionSpec;
use dataspace_proto::query::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeTable;

/// Path of the file unless somebody says otherwise.
pub(crate) const DEFAULT_PATH: &str = "/etc/dataspace/dataspace.toml";

/// Socket at which the daemon listens, and its clients look, unless somebody says otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/dataspace/dataspace.sock";

/// The socket of root and the group that goes with the socket at `path`.
pub(crate) fn control_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".control");
    name.into()
}

/// A configuration of a thousand sessions has a tenth of that.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Configuration of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DaemonConfig {
    /// Socket at which it listens.
    pub(crate) socket: PathBuf,
    /// The permission bits of the socket.
    pub(crate) socket_mode: u32,
    /// The group whose members may see and do all.
    pub(crate) group: String,
    /// The way in over TCP, if there is one.
    pub(crate) tcp: Option<TcpConfig>,
    /// Limits of the daemon.
    pub(crate) limits: Limits,
    /// Keys of questions: expressions by name.
    pub(crate) keys: BTreeMap<String, String>,
    /// The sessions it has from the beginning.
    pub(crate) sessions: Vec<Planned>,
}

/// Fault of a table.
struct Wrong {
    /// The key, where it is one.
    key: Option<&'static str>,
    message: String,
}

impl Wrong {
    const fn at(key: &'static str, message: String) -> Self {
        Self { key: Some(key), message }
    }
}

impl From<String> for Wrong {
    fn from(message: String) -> Self {
        Self { key: None, message }
    }
}

/// Tells whether keys mean something.
fn check_keys(keys: &BTreeMap<String, String>) -> Result<(), QueryError> {
    Inquiry::new(&Query { keys: keys.clone(), ..Query::default() }).map(drop)
}

/// Checks for what cannot be meant.
fn check(limits: Limits, n_sessions: usize) -> Result<(), Wrong> {
    let numbers = [
        ("sessions", limits.sessions),
        ("sessions_per_user", limits.sessions_per_user),
        ("connections", limits.connections),
        ("connections_per_user", limits.connections_per_user),
        ("request_bytes", limits.request_bytes),
    ];
    let seconds = [("request_s", limits.request_s), ("stall_s", limits.stall_s)];
    let mut all = numbers.map(|(name, n)| (name, n as u64)).into_iter().chain(seconds);
    if let Some((name, _)) = all.find(|(_, number)| *number == 0) {
        return Err(Wrong::at(name, format!("a limit of 0 lets nothing through: {name}")));
    }
    if let Some((name, _)) = seconds.iter().find(|(_, seconds)| *seconds > 3600) {
        let message = "a client that takes an hour is gone: request_s and stall_s are at most 3600";
        return Err(Wrong::at(name, message.to_owned()));
    }
    if n_sessions > limits.sessions {
        let message = format!(
            "{n_sessions} sessions are configured, and limits.sessions allows {}",
            limits.sessions
        );
        return Err(Wrong::at("sessions", message));
    }
    limits.memory_max.check(n_sessions).map_err(|message| Wrong::at("memory_max", message))
}

/// The file as it stands.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    socket: Option<PathBuf>,
    socket_mode: Option<Spanned<String>>,
    group: Option<String>,
    tcp: Option<Spanned<TcpConfig>>,
    limits: Option<Spanned<Limits>>,
    keys: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    /// Settings of commands' screens: of the daemon they are only checked.
    #[serde(rename = "screen")]
    _screen: ScreenSettings,
    session: Vec<Spanned<SessionSpec>>,
}

/// The keys of a file, and whatever else there is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeysOnly {
    keys: BTreeMap<String, String>,
}

/// The settings of the screen, and whatever else there is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScreenOnly {
    screen: ScreenSettings,
}

/// Keys of questions in the user's own configuration, then in the machine's, for commands that need no daemon.
///
/// # Errors
/// Where a file is not TOML, or its keys are no texts.
pub(crate) fn own_keys() -> anyhow::Result<BTreeMap<String, String>> {
    let mut keys = BTreeMap::new();
    for of_file in own::<KeysOnly>()? {
        for (name, expression) in of_file.keys {
            keys.entry(name).or_insert(expression);
        }
    }
    Ok(keys)
}

/// Columns and colours of the screen, likewise.
///
/// # Errors
/// Where a file is not TOML, or there is no such column or theme.
pub(crate) fn own_screen() -> anyhow::Result<ScreenSettings> {
    let files = own::<ScreenOnly>()?;
    Ok(files.iter().fold(ScreenSettings::default(), |all, of_file| all.or(&of_file.screen)))
}

/// A part of the user's own configuration, then of the machine's. Files that are not there, or not for this user to read,
/// are left out, and so are those that others may write to.
fn own<T: DeserializeOwned>() -> anyhow::Result<Vec<T>> {
    let directory = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || Some(directory("HOME")?.join(".config"));
    let own = directory("XDG_CONFIG_HOME").or_else(home);
    let own = own.map(|directory| directory.join("dataspace/dataspace.toml"));
    let mut found = Vec::new();
    for path in own.into_iter().chain([DEFAULT_PATH.into()]) {
        if !path.is_file() {
            continue;
        }
        let text = match read_bounded(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Err(error) => {
                // What speaks of none of its settings is not worse for it.
                tracing::warn!(file = %path.display(), %error, "its settings are not known");
                continue;
            }
        };
        let part = toml::from_str(&text);
        found.push(part.map_err(|error| fault(&text, &path, error.span(), error.message()))?);
    }
    Ok(found)
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            socket: DEFAULT_SOCKET.into(),
            // Anybody may connect: what he may see is decided by who he is.
            socket_mode: 0o666,
            group: "dataspace".into(),
            tcp: None,
            limits: Limits::default(),
            keys: BTreeMap::new(),
            sessions: Vec::new(),
        }
    }
}

impl DaemonConfig {
    /// The file at `path`, or the default one, which need not be there.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub(crate) fn read(path: Option<&Path>) -> anyhow::Result<Self> {
        let file = path.unwrap_or(Path::new(DEFAULT_PATH));
        match read_bounded(file) {
            Ok(text) => Self::parse(&text, file),
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                tracing::info!(file = DEFAULT_PATH, "there is no configuration: no sessions yet");
                Ok(Self::default())
            }
            Err(error) => {
                let what = format!("reading the configuration {}", file.display());
                Err(anyhow::Error::from(error).context(what))
            }
        }
    }

    fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let wrong = |at, message: &str| fault(text, path, at, message);
        let file: File =
            toml::from_str(text).map_err(|error| wrong(error.span(), error.message()))?;
        let mut config = Self::default();
        config.socket = file.socket.unwrap_or(config.socket);
        config.group = file.group.unwrap_or(config.group);
        let n_sessions = file.session.len();
        let at = file.limits.as_ref().map(Spanned::span);
        config.limits = file.limits.map(Spanned::into_inner).unwrap_or_default();
        check(config.limits, n_sessions)
            .map_err(|found| wrong(at.map(|at| place(text, at, &found)), &found.message))?;
        if let Some(tcp) = file.tcp {
            let checked = tcp.get_ref().check();
            checked.map_err(|(key, message)| {
                let found = Wrong::at(key, message);
                wrong(Some(place(text, tcp.span(), &found)), &found.message)
            })?;
            config.tcp = Some(tcp.into_inner());
        }
        if let Some(mode) = file.socket_mode {
            config.socket_mode = u32::from_str_radix(mode.get_ref(), 8)
                .ok()
                .filter(|bits| *bits <= 0o777)
                .ok_or_else(|| wrong(Some(mode.span()), "expected permission bits as \"0660\""))?;
        }
        if let Some(keys) = file.keys {
            let table = keys.span();
            let keys = keys.into_inner();
            let texts = keys.iter().map(|(name, text)| (name.clone(), text.get_ref().clone()));
            config.keys = texts.collect();
            check_keys(&config.keys).map_err(|error| {
                let of_text = keys.values().find(|text| error.is_of(text.get_ref()));
                wrong(Some(of_text.map_or(table, Spanned::span)), &error.to_string())
            })?;
        }
        let mut names = HashSet::new();
        for session in file.session {
            let at = session.span();
            let planned = plan(session.into_inner(), &mut names);
            config.sessions.push(
                planned.map_err(|found| wrong(Some(place(text, at, &found)), &found.message))?,
            );
        }
        Ok(config)
    }

    /// Settings that are no fault of the file, but are not as one may think on this machine.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self { group, .. } = self;
        let is_missing = group_number(group).is_none();
        let note = || {
            format!(
                "this machine has no group {group:?}: only root, or who runs a daemon of his own without \
                 privileges, may see and do all; `groupadd` makes it, and the daemon looks for it when it \
                 reads its configuration"
            )
        };
        is_missing.then(note).into_iter().collect()
    }
}

fn plan(spec: SessionSpec, names: &mut HashSet<String>) -> Result<Planned, Wrong> {
    let Some(name) = &spec.name else {
        let message = "a session of the configuration needs a name: it is known by it when the \
                       configuration is read again";
        return Err(message.to_owned().into());
    };
    spec::check_name(Some(name)).map_err(|message| Wrong::at("name", message))?;
    if !names.insert(name.clone()) {
        return Err(Wrong::at("name", format!("there is another session called {name}")));
    }
    let options = spec::options(&spec)?;
    Ok(Planned { spec, options })
}

/// Place in `text` of the fault `found` in the table at `table`: its key, else the table.
fn place(text: &str, table: Range<usize>, found: &Wrong) -> Range<usize> {
    let of_key = || {
        let document = DeTable::parse(text).ok()?.into_inner();
        let (_, values): (Vec<_>, Vec<_>) = document.into_iter().unzip();
        let tables = values.iter().flat_map(|value| match value.get_ref().as_array() {
            Some(tables) => tables.iter().collect(),
            None => vec![value],
        });
        let table = tables.into_iter().find(|one| one.span() == table)?.get_ref().as_table()?;
        Some(table.get(found.key?)?.span())
    };
    of_key().unwrap_or_else(|| table.clone())
}

fn read_bounded(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path)?;
    let metadata = file.metadata()?;
    check_writers(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
        .map_err(std::io::Error::other)?;
    let mut text = String::new();
    let n_read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64;
    if n_read > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

/// Whoever may write to the file says what the daemon does with its privileges.
fn check_writers(owner: u32, mode: u32, own: u32) -> Result<(), String> {
    if owner != 0 && owner != own {
        return Err(format!(
            "it belongs to user {owner}, who could have the daemon do what he may not: chown root FILE"
        ));
    }
    if mode & 0o002 != 0 {
        return Err("everybody may write to it: chmod o-w FILE".to_owned());
    }
    Ok(())
}

/// Something wrong in the file `path`, at these bytes of its `text`.
fn fault(text: &str, path: &Path, at: Option<Range<usize>>, message: &str) -> Failure {
    let line = at.map_or(1, |at| line_of(text, at.start));
    let message = message.trim_end().replace('\n', "; ");
    Failure::new(Kind::Usage, format!("{}:{line}: {message}", path.display()))
}

/// The line, counted from 1, of the byte at `offset`.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_collector::target::TargetSpec;

    const EXAMPLE: &str = include_str!("../../systemd/dataspace.toml");

    fn parse(text: &str) -> Result<DaemonConfig, String> {
        DaemonConfig::parse(text, Path::new("d.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn who_may_write_the_configuration_has_the_daemons_rights() {
        for (owner, mode, is_taken) in [
            (0, 0o100_644, true),
            (7, 0o100_664, true),
            (8, 0o100_600, false),
            (0, 0o100_646, false),
            (7, 0o100_666, false),
        ] {
            assert_eq!(check_writers(owner, mode, 7).is_ok(), is_taken, "{owner} {mode:o}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(DaemonConfig::read(Some(file.path())).unwrap(), DaemonConfig::default());
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(file.path(), mode).unwrap();
        let error = format!("{:#}", DaemonConfig::read(Some(file.path())).unwrap_err());
        assert!(error.contains("chmod o-w"), "{error}");
    }

    #[test]
    fn nothing_written_is_the_default() {
        assert_eq!(parse("").unwrap(), DaemonConfig::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let check = |text: &str, says: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        };
        check("\nsokcet = \"/x\"", "d.toml:2: unknown field `sokcet`");
        check("[limits]\nsession = 1", "d.toml:2: unknown field `session`");
        check("[limits]\nsessions = 0", "d.toml:2: a limit of 0");
        check("[[session]]\nname = \"a\"\npid = 1", "d.toml:3: unknown field `pid`");
        check(
            "\n\n[[session]]\nunit = \"a\"",
            "d.toml:3: a session of the configuration needs a name",
        );
        check("[[session]]\nname = \"a\"", "d.toml:1: no target");
        let two = "[[session]]\nname = \"a\"\nall = true\n";
        check("[keys]\na = \"cpu / 8\"\nb = \"cpu +\"", "d.toml:3:");
        check("[keys]\nb = \"a + 1\"\n\nmember = \"1\"", "d.toml:1: a key of one's own");
        check(&format!("{two}{two}"), "d.toml:5: there is another session called a");
        check("[[session]]\nname = \"a\"\nall = true\npids = [1]", "one target");
        check("[[session]]\nname = \"a\"\nall = true\nevents = [\"no such\"]", "d.toml:1:");
        check("socket_mode = \"999\"", "d.toml:1: expected permission bits");
        check("[limits]\nmemory_max = \"much\"", "d.toml:2: expected a size");
        check(
            "[limits]\nmemory_max = \"36M\"",
            "d.toml:2: a bound of 36 MiB on memory is too little",
        );
        let three =
            ["a", "b", "c"].map(|name| format!("[[session]]\nname = \"{name}\"\nall = true\n"));
        let bounded = format!("[limits]\nmemory_max = \"46M\"\n{}", three.concat());
        check(&bounded, "3 session(s): it is to be at least 47M");
        let few = format!("[limits]\nsessions = 2\n{}", three.concat());
        check(&few, "d.toml:2: 3 sessions are configured, and limits.sessions allows 2");
        let many = (0..=Limits::default().sessions)
            .map(|n| format!("[[session]]\nname = \"a{n}\"\nall = true\n"));
        check(&many.collect::<String>(), "d.toml:1: 33 sessions are configured");
        check("socket = ", "d.toml:1:");
        check("[tcp]\nlisten = \"127.0.0.1:1\"", "d.toml:1: missing field `token_file`");
        check("\n[tcp]\nlisten = \"localhost\"\ntoken_file = \"/t\"", "d.toml:3: invalid socket");
        check("[tcp]\nlisten = \"0.0.0.0:1\"\ntoken_file = \"/t\"", "d.toml:2: 0.0.0.0:1 is not");
        let tcp = "[tcp]\nlisten = \"127.0.0.1:1\"\ntoken_file = \"/t\"\nhosts = [\"a:1\"]";
        check(tcp, "d.toml:4: a host is a name");
        check("[limits]\nsessions = 1\nstall_s = 9999", "d.toml:3: a client that takes an hour");
        check("limits = {sessions = 1,\nstall_s = 9999}", "d.toml:2: a client that takes an hour");
        check("[[session]]\nname = \"a/b\"\nall = true", "d.toml:2: a session's name has");
        check(
            &format!("{two}[[session]]\nall = true\nname = \"12\""),
            "d.toml:6: a session's name",
        );
        let long = "[[session]]\nname = \"a\"\ncomm = [\"a-name-that-is-cut\"]";
        check(long, "a-name-that-is-cut has 18 bytes");
    }

    #[test]
    fn a_group_that_is_not_there_is_told_of() {
        let notes = |text: &str| parse(text).unwrap().notes();
        let told = notes("group = \"no-such-group-here\"");
        assert!(told.len() == 1 && told[0].contains("\"no-such-group-here\""), "{told:?}");
        // Whatever a machine has, it has root's; and a number is a group without a name.
        assert!(notes("group = \"root\"").is_empty() && notes("group = \"4711\"").is_empty());
    }

    #[test]
    fn keys_may_use_each_other_in_any_order() {
        let config = parse("[keys]\na = \"b + 1\"\nb = \"cpu / 8\"").unwrap();
        assert_eq!(config.keys["a"], "b + 1");
        assert!(parse(&EXAMPLE.replace("#[keys]", "[keys]").replace("#half", "half")).is_ok());
    }

    #[test]
    fn sessions_have_targets_events_and_limits() {
        let config = parse(
            "group = \"adm\"\nsocket_mode = \"0660\"\n[[session]]\nname = \"redis\"\n\
             unit = \"redis\"\nevents = [\"cpu-clock\"]\nfrequency_hz = 99\nmax_overhead = \"2%\"",
        )
        .unwrap();
        assert_eq!((config.group.as_str(), config.socket_mode), ("adm", 0o660));
        let options = &config.sessions[0].options;
        assert_eq!(options.target, TargetSpec::Unit("redis".into()));
        assert_eq!((options.max_overhead, options.keeps_counts), (Some(0.02), false));
    }

    /// The keys that the program knows in a table, as its own error tells them.
    fn keys_of(table: &str) -> Vec<String> {
        let error = parse(&format!("{table}\nno_such_key = 1")).unwrap_err();
        let (_, list) = error.split_once("expected ").unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// The example's lines `#key = value` below the header of `table`.
    fn documented(table: &str) -> Vec<(String, String)> {
        let mut here = String::new();
        let mut found = Vec::new();
        for line in EXAMPLE.lines() {
            let line = line.strip_prefix('#').unwrap_or(line);
            if line.starts_with('[') {
                here = line.to_owned();
            } else if here == table
                && let Some((key, _)) = line.split_once(" = ")
                && !key.contains(' ')
            {
                found.push((key.to_owned(), line.to_owned()));
            }
        }
        found
    }

    #[test]
    fn every_key_is_in_the_example_and_can_be_used_as_it_stands_there() {
        parse(EXAMPLE).unwrap();
        for table in ["", "[tcp]", "[limits]", "[screen]", "[[session]]"] {
            let lines = documented(table);
            let keys = keys_of(table);
            assert!(keys.len() > 1, "{table}: {keys:?}");
            let tables = ["tcp", "limits", "screen", "session", "keys"];
            for key in keys.iter().filter(|key| !tables.contains(&key.as_str())) {
                assert!(lines.iter().any(|(name, _)| name == key), "{table} {key} is missing");
            }
            for (key, line) in lines {
                let is_target = ["pids", "tids", "unit", "cgroup", "all", "comm"].contains(&&*key);
                let rest = match table {
                    "[tcp]" if key == "listen" => "token_file = \"/x\"",
                    "[tcp]" if key == "token_file" => "listen = \"127.0.0.1:1\"",
                    "[tcp]" => "listen = \"127.0.0.1:1\"\ntoken_file = \"/x\"",
                    "[[session]]" if key == "name" => "all = true",
                    "[[session]]" if is_target => "name = \"x\"",
                    "[[session]]" => "name = \"x\"\nall = true",
                    _ => "",
                };
                parse(&format!("{table}\n{line}\n{rest}")).unwrap();
            }
        }
    }
}
