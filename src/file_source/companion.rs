//! Finds the other files that debug information names: `.dwo` files, packages of them, and what
//! dwz made. The names are the target's word: whatever they lead to, the index checks its id.

use super::{SystemFiles, installed_by_build_id, undeleted};
use dataspace_analyzer::bytes::file::{CompanionFiles, CompanionName, DebugFileQuery, FileBytes};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Directory in which Debian and Fedora keep what dwz made.
const DWZ_DIR: &str = "/usr/lib/debug/.dwz";

/// The files beside one load object.
#[derive(Debug)]
pub(super) struct Companions {
    files: SystemFiles,
    query: DebugFileQuery,
}

impl Companions {
    pub(super) const fn new(files: SystemFiles, query: DebugFileQuery) -> Self {
        Self { files, query }
    }

    fn object(&self) -> &Path {
        Path::new(OsStr::from_bytes(undeleted(&self.query.path)))
    }

    fn places(&self, name: &CompanionName) -> Vec<PathBuf> {
        match name {
            CompanionName::Split { name, dir } => self.split_places(name, dir.as_deref()),
            CompanionName::Package => self.package_places(),
            CompanionName::Supplementary { path, build_id } => {
                self.supplementary_places(path, build_id)
            }
        }
    }

    /// Opens it where the compiler put it; else beside the program, as what is built elsewhere is shipped.
    fn split_places(&self, name: &[u8], dir: Option<&[u8]>) -> Vec<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        let mut places = Vec::new();
        match dir {
            // An absolute name replaces the directory.
            Some(dir) => places.push(Path::new(OsStr::from_bytes(dir)).join(name)),
            None if name.is_absolute() => places.push(name.to_path_buf()),
            None => {}
        }
        if let Some(beside) = self.object().parent() {
            if name.is_relative() {
                places.push(beside.join(name));
            }
            places.extend(name.file_name().map(|plain| beside.join(plain)));
        }
        places.retain(|place| place.is_absolute());
        places.dedup();
        places
    }

    /// `FILE.dwp` beside the load object and beside every place of its debug file.
    fn package_places(&self) -> Vec<PathBuf> {
        let files = std::iter::once(self.object().to_path_buf());
        let files = files.chain(self.files.debug_places(&self.query));
        let package = |file: PathBuf| {
            let mut name = file.into_os_string();
            name.push(".dwp");
            PathBuf::from(name)
        };
        let mut places: Vec<PathBuf> = files.map(package).collect();
        let build_id = self.query.build_id.as_deref();
        places.extend(build_id.and_then(|build_id| installed_by_build_id(build_id, "dwp")));
        places
    }

    /// A relative path starts where the file that names it is: one of the places of the debug file.
    fn supplementary_places(&self, path: &[u8], build_id: &[u8]) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let mut places = Vec::from_iter(installed_by_build_id(build_id, "debug"));
        if path.is_absolute() {
            places.push(path.to_path_buf());
        } else {
            let installed = Path::new("/usr/lib/debug")
                .join(self.object().strip_prefix("/").unwrap_or(self.object()));
            let files = self.files.debug_places(&self.query).into_iter();
            let files =
                std::iter::once(self.object().to_path_buf()).chain(files).chain([installed]);
            places.extend(files.filter_map(|file| Some(file.parent()?.join(path))));
        }
        places.extend(path.file_name().map(|plain| Path::new(DWZ_DIR).join(plain)));
        places.dedup();
        places
    }
}

impl CompanionFiles for Companions {
    fn open(&self, name: &CompanionName) -> Vec<Box<dyn FileBytes>> {
        self.files.open_all(self.query.pid, &self.places(name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilePolicy;
    use super::*;

    fn companions(path: &str) -> Companions {
        let query = DebugFileQuery { path: path.as_bytes().into(), ..DebugFileQuery::default() };
        Companions::new(SystemFiles::new(FilePolicy::default()), query)
    }

    fn split(name: &str, dir: Option<&str>) -> CompanionName {
        CompanionName::Split {
            name: name.as_bytes().into(),
            dir: dir.map(|dir| dir.as_bytes().into()),
        }
    }

    fn paths(places: &[&str]) -> Vec<PathBuf> {
        places.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_split_unit_is_where_it_was_compiled_or_beside_the_program() {
        let companions = companions("/opt/bin/tool");
        for (name, dir, places) in [
            ("o/a.dwo", Some("/src"), &["/src/o/a.dwo", "/opt/bin/o/a.dwo", "/opt/bin/a.dwo"][..]),
            ("/o/a.dwo", Some("/src"), &["/o/a.dwo", "/opt/bin/a.dwo"][..]),
            ("/o/a.dwo", None, &["/o/a.dwo", "/opt/bin/a.dwo"][..]),
            ("a.dwo", Some("."), &["/opt/bin/a.dwo"][..]),
        ] {
            assert_eq!(companions.places(&split(name, dir)), paths(places), "{name} {dir:?}");
        }
        assert_eq!(companions.places(&CompanionName::Package), paths(&["/opt/bin/tool.dwp"]));
    }

    #[test]
    fn a_supplementary_file_is_found_from_where_it_is_named() {
        let name = CompanionName::Supplementary {
            path: b"../.dwz/tool.debug".as_slice().into(),
            build_id: vec![0xab, 0xcd],
        };
        let places = companions("/opt/bin/tool").places(&name);
        for expected in [
            "/usr/lib/debug/.build-id/ab/cd.debug",
            "/opt/bin/../.dwz/tool.debug",
            "/usr/lib/debug/opt/bin/../.dwz/tool.debug",
            "/usr/lib/debug/.dwz/tool.debug",
        ] {
            assert!(places.contains(&PathBuf::from(expected)), "{expected}: {places:?}");
        }
    }

    #[test]
    fn what_the_target_sees_goes_before_what_this_machine_has() {
        let (dir, symfs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let here = dir.path().join("unit.dwo");
        let inside = symfs.path().join(here.strip_prefix("/").unwrap());
        std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
        std::fs::write(&here, "here").unwrap();
        std::fs::write(&inside, "inside").unwrap();
        let policy = FilePolicy { symfs: Some(symfs.path().into()), ..FilePolicy::default() };
        let companions = Companions { files: SystemFiles::new(policy), ..companions("/bin/tool") };
        let found = companions.open(&split(here.to_str().unwrap(), None));
        let lengths: Vec<u64> = found.iter().map(|file| file.len()).collect();
        assert_eq!(lengths, [6, 4]);
    }
}
