//! Data of a running process by its name: where it is, and how long.

use crate::bytes::file::{FileSource, LoadObjectKey};
use crate::index::load_object::LoadObjectIndex;
use crate::index::named_data::NamedVariable;
use crate::limit;
use crate::process::table::{Backing, Mapping, bias};
use crate::types::part_name::{NamedStep, PartError, steps};
use dataspace_proto::address::Avma;
use dataspace_proto::memory::MemorySegment;
use dataspace_proto::record::Mmap;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use thiserror::Error;

/// Data of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPlace {
    /// Its first address.
    pub address: Avma,
    /// Its length.
    pub len_bytes: u64,
    /// Names of its parts, where it has some.
    pub parts: Vec<String>,
}

/// A name that leads to no data, or to several.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamedPlaceError {
    /// No name and steps.
    #[error(
        "{0} is no name of data: expected NAME, NAME.member, NAME[3], or members and elements of these"
    )]
    Malformed(String),
    /// No load object has such a variable.
    #[error("no variable {0} is in the symbol tables of the process and its libraries")]
    Unknown(String),
    /// Several are called so.
    #[error("{name} is the name of several variables: {which}")]
    Ambiguous {
        /// The name.
        name: String,
        /// Their full names, files and addresses.
        which: String,
    },
    /// Each thread has its own.
    #[error("each thread has a {0} of its own: name the address of one")]
    ThreadLocal(String),
    /// Its type is not known.
    #[error("no debug information tells the type of {0}, and so not its members")]
    Untyped(String),
    /// It has no such part.
    #[error(transparent)]
    Part(#[from] PartError),
}

/// Finds the data that `text` names in a process with these mappings, whose files come from `source`: in its program, and
/// where that has none of the name, in its libraries.
///
/// # Errors
/// What `text` does not lead to.
pub fn find(
    text: &str,
    mappings: &[Mmap],
    mount_namespace: u64,
    source: &dyn FileSource,
) -> Result<NamedPlace, NamedPlaceError> {
    let (name, steps) = steps(text).ok_or_else(|| NamedPlaceError::Malformed(text.to_owned()))?;
    for mapping in files(mappings) {
        let mut found = variables(name, mapping, mount_namespace, source);
        match found.len() {
            0 => {}
            1 => return place(name, &steps, found.remove(0)),
            _ => return Err(ambiguous(name, &found)),
        }
    }
    Err(NamedPlaceError::Unknown(name.to_owned()))
}

/// One mapping of each file that is mapped to run, in the order of addresses: the program's comes first, but for one that
/// is loaded at an address of its own choice.
fn files(mappings: &[Mmap]) -> Vec<&Mmap> {
    let is_file = |mmap: &&Mmap| mmap.path.first() == Some(&b'/') && mmap.is_executable;
    let mut seen = FxHashSet::default();
    let files = mappings.iter().filter(is_file).filter(|mmap| seen.insert(&mmap.path));
    files.take(limit::MAX_NAMED_OBJECTS).collect()
}

/// The variables of this name in the file of a mapping, with what the loader added to their addresses.
fn variables(
    name: &str,
    mmap: &Mmap,
    mount_namespace: u64,
    source: &dyn FileSource,
) -> Vec<(NamedVariable, u64)> {
    let end = Avma(mmap.start.0.saturating_add(mmap.len_bytes));
    let key = LoadObjectKey {
        path: mmap.path[..].into(),
        identity: mmap.identity.clone(),
        pid: mmap.pid,
        range: (mmap.start, end),
        mount_namespace,
    };
    let Ok(mut index) = LoadObjectIndex::open(&key, source) else { return Vec::new() };
    let mapping = Mapping {
        start: mmap.start,
        end,
        file_offset: mmap.file_offset,
        is_executable: mmap.is_executable,
        backing: Backing::Anonymous,
        segment: MemorySegment::Anonymous,
    };
    let Some(bias) = bias(&index.facts(), &mapping) else { return Vec::new() };
    index.variables_named(name).into_iter().map(|variable| (variable, bias)).collect()
}

fn place(
    name: &str,
    steps: &[NamedStep],
    (variable, bias): (NamedVariable, u64),
) -> Result<NamedPlace, NamedPlaceError> {
    if variable.is_thread_local {
        return Err(NamedPlaceError::ThreadLocal(name.to_owned()));
    }
    let start = Avma(variable.start.0.wrapping_add(bias));
    let Some(layout) = variable.layout else {
        return match steps {
            [] => {
                Ok(NamedPlace { address: start, len_bytes: variable.len_bytes, parts: Vec::new() })
            }
            _ => Err(NamedPlaceError::Untyped(name.to_owned())),
        };
    };
    let (offset, part) = layout.part_named(steps)?;
    let address = Avma(start.0.wrapping_add(offset));
    Ok(NamedPlace { address, len_bytes: part.size, parts: part.names_of_parts() })
}

fn ambiguous(name: &str, found: &[(NamedVariable, u64)]) -> NamedPlaceError {
    let shown = |(variable, bias): &(NamedVariable, u64)| {
        let unit: Arc<str> = variable.unit.clone().unwrap_or_default();
        let address = variable.start.0.wrapping_add(*bias);
        format!("{} of {unit} at {address:#x}/{}", variable.name, variable.len_bytes)
    };
    let which: Vec<String> = found.iter().take(limit::MAX_NAMES_TOLD).map(shown).collect();
    NamedPlaceError::Ambiguous { name: name.to_owned(), which: which.join(", ") }
}
