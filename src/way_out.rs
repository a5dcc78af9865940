//! The way out of `<Unknown>`: what would bring debug information of the code that has none.

use crate::package::{self, Distribution, Package};
use crate::text::visible;
use anyhow::Context as _;
use dataspace_collector::access;
use dataspace_proto::snapshot::{Snapshot, Undescribed};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

/// Load objects that are told of below a table.
const MAX_TOLD: usize = 5;

/// The same where somebody asks for reasons.
const MAX_LISTED: usize = 20;

/// Those with a smaller share of all samples are not.
const LEAST_SHARE: f64 = 0.005;

/// Most bytes that a worker may tell.
const MAX_BYTES: usize = 256 << 10;

/// A list that a worker makes, and that its broker, which may start programs, looks packages up for.
#[derive(Debug)]
pub(crate) struct WayOut {
    list: File,
    /// Somebody asks for reasons: all of it is told.
    is_asked: bool,
}

impl WayOut {
    /// An empty list, made before there is a worker; a longer one where somebody asks for reasons.
    ///
    /// # Errors
    /// Where there is no memory file.
    pub(crate) fn new(is_asked: bool) -> anyhow::Result<Self> {
        let list = memfd_create("undescribed", MemfdFlags::CLOEXEC);
        Ok(Self { list: list.context("a file in memory")?.into(), is_asked })
    }

    /// Notes what a snapshot says.
    pub(crate) fn note(&self, snapshot: &Snapshot) {
        let least = snapshot.accounting.kernel as f64 * LEAST_SHARE;
        let is_told = |it: &&Undescribed| self.is_asked || it.samples as f64 >= least;
        let n_told = if self.is_asked { MAX_LISTED } else { MAX_TOLD };
        let told: Vec<&Undescribed> =
            snapshot.undescribed.iter().filter(is_told).take(n_told).collect();
        if let Ok(bytes) = serde_json::to_vec(&told) {
            // Where it cannot be written, there is no way out to tell.
            let _ = self.list.write_all_at(&bytes, 0);
        }
    }

    /// Writes what was noted, with packages, and that `fetching` is a command that could fetch it. A worker writes nothing: its broker does.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn tell(&self, fetching: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
        if access::has_broker() {
            return Ok(());
        }
        let mut bytes = vec![0; MAX_BYTES];
        let n_bytes = self.list.read_at(&mut bytes, 0)?;
        let list = serde_json::from_slice::<Vec<Undescribed>>(&bytes[..n_bytes]);
        let Ok(mut list) = list else { return Ok(()) };
        list.truncate(MAX_LISTED);
        if list.is_empty() { Ok(()) } else { write(&list, fetching, out) }
    }
}

fn write(list: &[Undescribed], fetching: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let is_here = |it: &&Undescribed| !it.is_missing && !it.is_elsewhere;
    let paths: Vec<String> = list.iter().filter(is_here).map(|it| it.module.clone()).collect();
    let (owners, distribution) = (package::owners(&paths), Distribution::here());
    let packages: BTreeSet<&Package> = owners.values().collect();
    let remedies = package::remedies(&packages, &distribution);
    let mut archives = BTreeSet::new();
    writeln!(out, "\nno debug information, so no names, for code of:")?;
    for it in list {
        let build_id = it.build_id.as_deref().unwrap_or("none");
        let module = visible(&it.module);
        writeln!(out, "  {module}: {} samples, build-id {}", it.samples, visible(build_id))?;
        if it.is_missing {
            writeln!(out, "    the file is not there any more, or another one is in its place")?;
        } else if it.is_elsewhere {
            writeln!(
                out,
                "    of another root, as in a container: its packages are not looked up"
            )?;
        } else if let Some(package) = owners.get(&it.module) {
            let Package { name, version, .. } = package;
            let remedy = remedies.get(name);
            let command = remedy.map_or_else(String::new, |it| format!(": {}", it.command));
            writeln!(out, "    package {name} {version}{command}")?;
            archives.extend(remedy.and_then(|remedy| remedy.before.clone()));
        } else {
            writeln!(out, "    of no package here: built with -g it has names")?;
        }
    }
    for archive in archives {
        writeln!(out, "  -dbgsym packages are in: {archive}")?;
    }
    let can_be_fetched = |it: &Undescribed| !it.is_missing && it.build_id.is_some();
    if let Some(command) = fetching
        && list.iter().any(can_be_fetched)
        && let Some(server) = distribution.debuginfod()
    {
        writeln!(out, "  by build-id: DEBUGINFOD_URLS={server} dataspace {command} --debuginfod")?;
    }
    out.flush()
}
