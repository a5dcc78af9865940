//! `dataspace install-units`: puts this binary, its units, its manual and an example configuration below a
//! directory, and says what to run next.

use crate::cli::{Global, InstallUnitsArgs};
use crate::diagnostic;
use crate::manual::{self, ManualFile};
use crate::text::visible;
use anyhow::Context as _;
use dataspace_collector::system::procfs::Procfs;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write, stdout};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// Path of the binary in Debian's package; ours goes beside it: `/usr/local` is the
/// administrator's (Filesystem Hierarchy Standard 3.0, 4.9), and goes before `/usr` for systemd, too.
const PACKAGED_BINARY: &str = "/usr/bin/dataspace";
const BINARY: &str = "/usr/local/bin/dataspace";

/// The configuration, which is the administrator's.
const CONFIGURATION: (&str, &str) =
    ("/etc/dataspace/dataspace.toml", include_str!("../../systemd/dataspace.toml"));

/// Files that are ours to replace: places and texts.
const UNITS: [(&str, &str); 7] = [
    (
        "/usr/local/lib/systemd/system/dataspace.service",
        include_str!("../../systemd/dataspace.service"),
    ),
    (
        "/usr/local/lib/systemd/system/dataspace.socket",
        include_str!("../../systemd/dataspace.socket"),
    ),
    (
        "/usr/local/lib/systemd/system/dataspace-control.socket",
        include_str!("../../systemd/dataspace-control.socket"),
    ),
    (
        "/usr/local/lib/systemd/system/dataspace-worker.socket",
        include_str!("../../systemd/dataspace-worker.socket"),
    ),
    (
        "/usr/local/lib/systemd/system/dataspace-worker@.service",
        include_str!("../../systemd/dataspace-worker@.service"),
    ),
    ("/usr/local/lib/sysusers.d/dataspace.conf", include_str!("../../systemd/dataspace.sysusers")),
    ("/usr/local/lib/tmpfiles.d/dataspace.conf", include_str!("../../systemd/dataspace.tmpfiles")),
];

/// Result for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Wrote,
    /// It was there as it should be.
    Same,
    /// It was there, and is not ours to change.
    Kept,
}

/// Runs the command.
pub(super) fn run(args: &InstallUnitsArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let binary = Procfs::default().own_program().context("reading this binary")?;
    let root = fs::canonicalize(&args.root).or_else(|_| std::path::absolute(&args.root));
    let root = &root.with_context(|| format!("--root {}", args.root.display()))?;
    let mut out = stdout().lock();
    install(root, &binary, &mut out)?;
    out.write_all(next_steps(root).as_bytes())?;
    Ok(())
}

fn install(root: &Path, binary: &[u8], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut tell = |path: &str, outcome: Outcome| {
        let said = match outcome {
            Outcome::Wrote => "wrote",
            Outcome::Same => "same ",
            Outcome::Kept => "kept ",
        };
        let why = if outcome == Outcome::Kept { " (it was changed)" } else { "" };
        let path = below(root, path).display().to_string();
        writeln!(out, "{said}  {}{why}", visible(&path))
    };
    tell(BINARY, replace(root, BINARY, binary, 0o755)?)?;
    for (path, text) in UNITS {
        let text = text.replace(PACKAGED_BINARY, BINARY);
        tell(path, replace(root, path, text.as_bytes(), 0o644)?)?;
    }
    for ManualFile { path, text } in manual::files()? {
        // Where zsh looks is another place in packages.
        let path = path.replace("vendor-completions", "site-functions");
        let path = format!("/usr/local/share/{path}");
        tell(&path, replace(root, &path, text.as_bytes(), 0o644)?)?;
    }
    let (path, text) = CONFIGURATION;
    tell(path, keep(root, path, text.as_bytes(), 0o644)?)?;
    Ok(())
}

/// Makes the file what it should be.
fn replace(root: &Path, path: &str, bytes: &[u8], mode: u32) -> anyhow::Result<Outcome> {
    let path = below(root, path);
    let what = || format!("writing {}", path.display());
    let metadata = fs::symlink_metadata(&path);
    let is_plain = metadata.is_ok_and(|found| {
        found.is_file() && found.permissions().mode() & 0o7777 == mode && found.len() > 0
    });
    if is_plain && fs::read(&path).with_context(what)? == bytes {
        return Ok(Outcome::Same);
    }
    write(root, &path, bytes, mode).with_context(what)?;
    Ok(Outcome::Wrote)
}

/// Writes the file only if there is none.
fn keep(root: &Path, path: &str, bytes: &[u8], mode: u32) -> anyhow::Result<Outcome> {
    let path = below(root, path);
    let what = || format!("writing {}", path.display());
    match fs::read(&path) {
        Ok(found) if found == bytes => Ok(Outcome::Same),
        Ok(_) => Ok(Outcome::Kept),
        // A link that leads nowhere is the administrator's, too.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {
            write(root, &path, bytes, mode).with_context(what)?;
            Ok(Outcome::Wrote)
        }
        Err(error) => Err(error).with_context(what),
    }
}

/// In whole or not at all: a binary that runs cannot be written to, and systemd may read a unit at
/// any time.
fn write(root: &Path, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_directories(root, directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Makes what is missing of `directory`, for all to enter whatever the umask. Below another root a link is
/// refused: it means a place in that root, and would be followed from this one.
fn make_directories(root: &Path, directory: &Path) -> io::Result<()> {
    let mut place: PathBuf = root.to_path_buf();
    fs::create_dir_all(root)?;
    for part in directory.strip_prefix(root).unwrap_or(directory).components() {
        let Component::Normal(name) = part else { continue };
        place.push(name);
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_symlink() && root != Path::new("/") => {
                let message =
                    format!("{} is a link, which may lead out of the root", place.display());
                return Err(io::Error::other(message));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir(&place)?;
                fs::set_permissions(&place, Permissions::from_mode(0o755))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn next_steps(root: &Path) -> String {
    let first = if root == Path::new("/") {
        "  systemd-sysusers dataspace.conf\n  systemd-tmpfiles --create dataspace.conf\n  \
         systemctl daemon-reload\n  systemctl enable --now dataspace.socket\n"
            .to_owned()
    } else {
        let root = visible(&root.display().to_string()).into_owned();
        format!(
            "  systemctl --root {root} enable dataspace.socket\n\
             User and directory are made when that system boots.\n"
        )
    };
    format!(
        "Next:\n{first}\
         For the sessions of {config}, which begin at boot: dataspace.service in place of \
         dataspace.socket.\nWho may see all sessions: usermod -aG dataspace NAME\n",
        config = CONFIGURATION.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(root: &Path, binary: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        install(root, binary, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line.replace(&root.display().to_string(), "")).collect()
    }

    #[test]
    fn it_is_the_same_again_and_replaces_what_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let first = installed(dir.path(), b"one");
        assert!(first.iter().all(|line| line.starts_with("wrote  /")), "{first:?}");
        assert_eq!(first.len(), UNITS.len() + manual::files().unwrap().len() + 2);
        let again = installed(dir.path(), b"one");
        assert!(again.iter().all(|line| line.starts_with("same   /")), "{again:?}");
        let unit = dir.path().join("usr/local/lib/systemd/system/dataspace.service");
        let text = fs::read_to_string(&unit).unwrap();
        assert!(text.contains("\nExecStart=/usr/local/bin/dataspace daemon "), "{text}");
        fs::write(&unit, "[Unit]").unwrap();
        let newer = installed(dir.path(), b"two");
        let wrote: Vec<_> = newer.iter().filter(|line| line.starts_with("wrote")).collect();
        assert_eq!(wrote, ["wrote  /usr/local/bin/dataspace", &*format!("wrote  {}", UNITS[0].0)]);
        assert_eq!(fs::read_to_string(&unit).unwrap(), text);
        let mode = |path: &str| below(dir.path(), path).metadata().unwrap().permissions().mode();
        assert_eq!((mode(BINARY) & 0o7777, mode(UNITS[0].0) & 0o7777), (0o755, 0o644));
        let names = fs::read_dir(unit.parent().unwrap()).unwrap().count();
        assert_eq!(names, 5, "nothing else is left there");
    }

    #[test]
    fn a_configuration_of_the_administrators_stays() {
        let dir = tempfile::tempdir().unwrap();
        let config = below(dir.path(), CONFIGURATION.0);
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, "group = \"adm\"\n").unwrap();
        let lines = installed(dir.path(), b"one");
        assert!(lines.contains(&format!("kept   {} (it was changed)", CONFIGURATION.0)));
        assert_eq!(fs::read_to_string(&config).unwrap(), "group = \"adm\"\n");
        fs::remove_file(&config).unwrap();
        std::os::unix::fs::symlink("/no/such/file", &config).unwrap();
        let mut out = Vec::new();
        assert!(install(dir.path(), b"one", &mut out).is_err(), "nor is a link replaced");
    }

    #[test]
    fn a_link_does_not_lead_out_of_the_root() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(below(root.path(), "/usr/local")).unwrap();
        let link = below(root.path(), "/usr/local/lib");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let error = install(root.path(), b"one", &mut Vec::new()).unwrap_err();
        assert!(format!("{error:#}").contains("is a link"), "{error:#}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let mode = below(root.path(), BINARY).parent().unwrap().metadata().unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn what_to_run_next_fits_the_root() {
        assert!(next_steps(Path::new("/")).contains("systemctl enable --now dataspace.socket"));
        assert!(next_steps(Path::new("/mnt")).contains("systemctl --root /mnt enable"));
    }
}
