//! The files that make a service of the daemon, as far as they can be held to anything without
//! booting them: `tests/nspawn/run` does that.

use crate::support::{root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_EXPOSURE: f64 = 1.5;

#[test]
fn the_service_leaves_little_open() {
    let unit = root().join("systemd/dataspace.service");
    let analyze = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(unit)
        .output();
    let said = match analyze {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        Ok(output) => return eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return eprintln!("not run: systemd-analyze: {error}"),
    };
    let line = said.lines().find(|line| line.contains("Overall exposure level")).unwrap();
    let exposure = line.split(": ").nth(1).unwrap().split(' ').next().unwrap();
    println!("{line}");
    assert!(exposure.parse::<f64>().unwrap() <= MAX_EXPOSURE, "{said}");
}

/// The texts below `dir`, without the binary and without what a path tells of the way to install.
fn installed(dir: &Path) -> Vec<String> {
    let files = [
        "lib/systemd/system/dataspace.service",
        "lib/systemd/system/dataspace.socket",
        "lib/systemd/system/dataspace-control.socket",
        "lib/systemd/system/dataspace-worker.socket",
        "lib/systemd/system/dataspace-worker@.service",
        "lib/sysusers.d/dataspace.conf",
        "lib/tmpfiles.d/dataspace.conf",
        "share/man/man1/dataspace.1",
        "share/man/man1/dataspace-config-check.1",
        "share/bash-completion/completions/dataspace",
        "share/fish/vendor_completions.d/dataspace.fish",
    ];
    let text = |file: &&str| fs::read_to_string(dir.join(file)).unwrap();
    files.iter().map(|file| text(file).replace("/usr/local/", "/usr/")).collect()
}

/// The files that a path of an asset names, which may end in `*.EXTENSION`.
fn matching(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let Some(end) = name.strip_prefix('*') else { return vec![path.to_path_buf()] };
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|file| file.to_str().unwrap().ends_with(end)).collect()
}

#[test]
fn the_package_and_install_units_install_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().to_str().unwrap();
    let output = run(&["install-units", "--root", to]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("wrote") && said.contains("\nNext:\n"), "{said}");
    let again = run(&["install-units", "--root", to]);
    assert!(!String::from_utf8(again.stdout).unwrap().contains("wrote"));
    let binary = fs::read(dir.path().join("usr/local/bin/dataspace")).unwrap();
    assert!(binary == fs::read(env!("CARGO_BIN_EXE_dataspace")).unwrap(), "it installs itself");

    // What cargo-deb is told: lines of source, directory or file, mode.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let package = dir.path().join("package");
    let assets = manifest.lines().filter_map(|line| line.trim().strip_prefix("[\"")).map(|line| {
        let mut words = line.split('"').step_by(2);
        (words.next().unwrap(), words.next().unwrap())
    });
    let mut n_assets = 0;
    let is_ours = |source: &str| source.starts_with("systemd/") || source.starts_with("manual/");
    for (source, place) in assets.filter(|(source, _)| is_ours(source)) {
        for source in matching(&root().join(source)) {
            let mut place = package.join(place);
            if place.as_os_str().to_str().unwrap().ends_with('/') {
                place.push(source.file_name().unwrap());
            }
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(source, place).unwrap();
        }
        n_assets += 1;
    }
    assert_eq!(
        n_assets, 13,
        "units, sockets, user, directory, configuration, manual, documentation"
    );
    let zsh = |dir: &Path, part: &str| {
        fs::read(dir.join("share/zsh").join(part).join("_dataspace")).unwrap()
    };
    let local = dir.path().join("usr/local");
    assert_eq!(zsh(&package.join("usr"), "vendor-completions"), zsh(&local, "site-functions"));
    assert_eq!(installed(&package.join("usr")), installed(&dir.path().join("usr/local")));
    let config = "etc/dataspace/dataspace.toml";
    assert_eq!(fs::read(package.join(config)).unwrap(), fs::read(dir.path().join(config)).unwrap());
}
