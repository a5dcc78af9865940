//! One PMU as sysfs describes it: its number, its terms, its events, what it can do.

use super::format::Field;
use crate::error::Error;
use crate::system::cpu_list::cpu_list;
use crate::system::sysfs;
use std::path::{Path, PathBuf};

/// Files in one of its directories: the largest PMU has a few hundred events.
const MAX_FILES: usize = 4_096;

/// A PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Its name: `cpu`, `cpu_atom`, `ibs_op`.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its number, `type` of `perf_event_attr`.
    pub kind: u32,
    /// The CPUs that have it; `None` where all have.
    pub cpus: Option<Vec<i32>>,
    /// True if it counts for many CPUs at once, and so takes no samples (it has a `cpumask`).
    pub is_shared: bool,
    fields: Vec<(String, Field)>,
    events: Vec<(String, String)>,
    caps: Vec<(String, String)>,
}

/// A file of a PMU that cannot be read, or whose text makes no sense.
fn nonsense(file: &Path, why: impl ToString) -> Error {
    Error::Sysfs { file: file.to_path_buf(), why: why.to_string() }
}

impl Pmu {
    pub(super) fn read(devices: &Path, name: &str) -> Result<Self, Error> {
        let directory = devices.join(name);
        let kind_file = directory.join("type");
        if !sysfs::is_file_name(name) || !sysfs::exists(&directory) {
            return Err(nonsense(&directory, "there is no such PMU"));
        }
        let kind = sysfs::text(&kind_file).map_err(|error| nonsense(&kind_file, error))?;
        let kind = kind.trim().parse().map_err(|_| nonsense(&kind_file, "it is no number"))?;
        let mut fields = Vec::new();
        for (term, bits) in files(&directory.join("format"))? {
            let field = Field::parse(&bits).ok_or_else(|| {
                let file = directory.join("format").join(&term);
                nonsense(&file, format!("{:?} names no bits of a config", bits.trim()))
            })?;
            fields.push((term, field));
        }
        let mut events = files(&directory.join("events"))?;
        // Notes on how to print a count.
        events.retain(|(name, _)| {
            ![".scale", ".unit", ".per-pkg", ".snapshot"].iter().any(|end| name.ends_with(end))
        });
        Ok(Self {
            name: name.to_owned(),
            directory: directory.clone(),
            kind,
            cpus: cpus(&directory.join("cpus"))?,
            is_shared: sysfs::exists(&directory.join("cpumask")),
            fields,
            events,
            caps: files(&directory.join("caps"))?,
        })
    }

    /// The bits of a term.
    #[must_use]
    pub fn field(&self, term: &str) -> Option<&Field> {
        self.fields.iter().find(|(name, _)| name == term).map(|(_, field)| field)
    }

    /// The terms that an event's name stands for: `event=0xcd,umask=0x1,ldlat=3`.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&str> {
        self.events.iter().find(|(event, _)| event == name).map(|(_, terms)| terms.as_str())
    }

    /// A capability, such as `max_precise`.
    #[must_use]
    pub fn cap(&self, name: &str) -> Option<&str> {
        self.caps.iter().find(|(cap, _)| cap == name).map(|(_, value)| value.as_str())
    }

    /// The terms that it knows, in order.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The events that it names, in order.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|(name, _)| name.as_str())
    }
}

/// Names and texts of the files in a directory, which need not be there.
fn files(directory: &Path) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::new();
    for name in sysfs::names(directory, MAX_FILES) {
        let file = directory.join(&name);
        let text = sysfs::text(&file).map_err(|error| nonsense(&file, error))?;
        files.push((name, text.trim().to_owned()));
    }
    Ok(files)
}

fn cpus(file: &Path) -> Result<Option<Vec<i32>>, Error> {
    if !sysfs::exists(file) {
        return Ok(None);
    }
    let text = sysfs::text(file).map_err(|error| nonsense(file, error))?;
    let cpus = cpu_list(text.trim());
    cpus.map(Some).ok_or_else(|| nonsense(file, format!("{:?} is no list of CPUs", text.trim())))
}
