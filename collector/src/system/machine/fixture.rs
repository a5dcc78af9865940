//! Machines to test with, each from one text file in `tests/machines/`.
//!
//! A line `FILE = TEXT` is a line of a file below the directory that the last `[DIRECTORY]` named.

use super::Machine;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A machine whose tree lives as long as this.
pub(crate) struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    /// Grows the tree of `tests/machines/NAME.txt`.
    pub(crate) fn new(name: &str) -> Self {
        let file = format!("{}/tests/machines/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let fixture = Self { root: tempfile::tempdir().unwrap() };
        let mut directory = String::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix('[') {
                Some(rest) => rest.trim_end_matches(']').clone_into(&mut directory),
                None => {
                    let (path, text) = line.split_once(" =").expect("FILE = TEXT");
                    let text = text.strip_prefix(' ').unwrap_or(text);
                    fixture.add(&format!("{directory}/{path}"), text);
                }
            }
        }
        fixture
    }

    /// Appends a line to a file.
    pub(crate) fn add(&self, path: &str, line: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// Makes `line` all that a file holds.
    pub(crate) fn set(&self, path: &str, line: &str) {
        let _ = fs::remove_file(self.root().join(path));
        self.add(path, line);
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn machine(&self) -> Machine {
        Machine::read(self.root())
    }
}
