//! Text of sources, for people: found where the compiler had it, below the directory that the user names, or as the target
//! sees it.

use super::place::{self, Opened};
use super::{SystemFiles, undeleted};
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::broker::{FileKind, FilePlace, FileRoot};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Bytes of a source that are read: SQLite's, which is one file, has 9 million.
const MAX_BYTES: u64 = 32 << 20;

/// Characters of a line that are kept.
const MAX_LINE_CHARS: usize = 1000;

/// Directories of a path that are left out, one after the other, where a source is looked for below another directory.
const MAX_PARTS: usize = 64;

/// The lines of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceText {
    /// The lines, without their ends.
    pub(crate) lines: Vec<Box<str>>,
}

impl SourceText {
    /// A line by its number, from 1 on.
    pub(crate) fn line(&self, number: u32) -> Option<&str> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(at).map(|line| &**line)
    }
}

/// Reason that a source is not shown, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoSource(pub(crate) String);

impl SystemFiles {
    /// The source that the load object of `key` was compiled from, by the path that its compiler recorded.
    pub(crate) fn source(&self, key: &LoadObjectKey, path: &str) -> Result<SourceText, NoSource> {
        let mut refused: Option<io::Error> = None;
        for place in self.source_places(key, path) {
            match self.open_source(place) {
                Ok(opened) => return self.read_source(opened),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        let Some(error) = refused else { return Err(NoSource("there is no such file".to_owned())) };
        Err(NoSource(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "not both you and the target may read it, or it is not called like a source"
                    .to_owned()
            }
            _ => error.to_string(),
        }))
    }

    fn open_source(&self, place: FilePlace) -> io::Result<Opened> {
        let policy = self.policy.clone();
        let silent = || io::Error::new(io::ErrorKind::TimedOut, self.expendable.silence());
        self.expendable.run(move || place::open(&place, &policy)).ok_or_else(silent)?
    }

    /// Places where the source may be: where the user says, as the target sees it, and here.
    fn source_places(&self, key: &LoadObjectKey, path: &str) -> Vec<FilePlace> {
        let path = Path::new(path);
        let mut places = Vec::new();
        let mut add = |root, path: &Path, named_by| {
            let place = place::below(root, path, named_by);
            places.push(match place {
                FilePlace::Below { root, path, named_by, .. } => {
                    FilePlace::Below { root, path, named_by, kind: FileKind::Source }
                }
                other => other,
            });
        };
        if self.policy.sources.is_some() {
            for shorter in ever_shorter(path) {
                add(FileRoot::Sources, &shorter, None);
            }
        }
        if !path.is_absolute() {
            return places;
        }
        if self.policy.symfs.is_some() {
            add(FileRoot::Symfs, path, None);
        }
        let is_running = self.policy.is_live && key.pid > 0;
        let task = is_running.then(|| Procfs::default().living_task(key.pid));
        if let Some(task) = task {
            add(FileRoot::Task(task), path, Some(task));
        }
        // A path of another mount namespace is another file here.
        if key.mount_namespace == 0 && undeleted(&key.path).len() == key.path.len() {
            add(FileRoot::Machine, path, task);
        }
        places
    }

    fn read_source(&self, opened: Opened) -> Result<SourceText, NoSource> {
        let file = self.bytes(opened);
        if file.len() > MAX_BYTES {
            return Err(NoSource(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
        }
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
        file.read_exact_at(0, &mut bytes).map_err(|error| NoSource(error.cause))?;
        if bytes.contains(&0) {
            return Err(NoSource("it is no text".to_owned()));
        }
        let cut = |line: &str| line.chars().take(MAX_LINE_CHARS).collect::<String>().into();
        Ok(SourceText { lines: String::from_utf8_lossy(&bytes).lines().map(cut).collect() })
    }
}

/// A path below some directory: all of it, then without its first directory, and so on to the name alone.
fn ever_shorter(path: &Path) -> Vec<PathBuf> {
    let plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<Component<'_>> = path.components().filter(plain).collect();
    let first = parts.len().saturating_sub(MAX_PARTS);
    (first..parts.len()).map(|from| parts[from..].iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::FilePolicy;
    use super::*;
    use dataspace_proto::address::Avma;
    use dataspace_proto::record::FileIdentity;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn key() -> LoadObjectKey {
        LoadObjectKey {
            path: b"/bin/tool".as_slice().into(),
            identity: FileIdentity::None,
            pid: -1,
            range: (Avma(0), Avma(0)),
            mount_namespace: 0,
        }
    }

    fn files(sources: Option<&Path>) -> SystemFiles {
        let sources = sources.map(|dir| dir.into());
        let policy = FilePolicy { shows_sources: true, sources, ..FilePolicy::default() };
        SystemFiles::new(policy)
    }

    fn read(files: &SystemFiles, path: &Path) -> Result<Vec<Box<str>>, NoSource> {
        files.source(&key(), path.to_str().unwrap()).map(|text| text.lines)
    }

    #[test]
    fn a_source_is_read_where_the_compiler_had_it_and_below_the_directory_that_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let path = dir.path().join("src/a.c");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let lines = Ok(vec!["one".into(), "two".into()]);
        assert_eq!(read(&files(None), &path), lines);
        let (above, beside) = (dir.path(), path.parent().unwrap());
        for (recorded, below) in [
            ("/build/src/a.c", above),
            ("src/a.c", above),
            ("../src/a.c", above),
            ("/elsewhere/a.c", beside),
        ] {
            let recorded = Path::new(recorded);
            assert_eq!(read(&files(Some(below)), recorded), lines, "{recorded:?}");
            assert!(read(&files(None), recorded).is_err(), "{recorded:?}");
        }
    }

    #[test]
    fn what_is_no_source_or_not_everybodys_is_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("shadow");
        std::fs::write(&secret, "secret").unwrap();
        let link = dir.path().join("link.c");
        symlink("shadow", &link).unwrap();
        let outside = dir.path().join("outside.c");
        symlink("/etc/passwd", &outside).unwrap();
        let binary = dir.path().join("binary.c");
        std::fs::write(&binary, "a\0b").unwrap();
        for path in [&secret, &link, &outside, &binary, &dir.path().join("none.c")] {
            assert!(read(&files(None), path).is_err(), "{path:?}");
        }
        let own = dir.path().join("own.c");
        std::fs::write(&own, "x").unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
        // Nobody knows who named it: root's own file may be another user's wish.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(read(&files(None), &own).is_ok(), !is_root);
        assert!(read(&files(Some(dir.path())), &own).is_ok(), "the directory was named");
        let unasked = SystemFiles::new(FilePolicy::default());
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&unasked, &own).is_err() && read(&files(None), &own).is_ok());
    }

    #[test]
    fn a_directory_that_is_named_is_not_left() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("inside"), dir.path().join("secret.c"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&outside, "secret").unwrap();
        symlink(&outside, inside.join("a.c")).unwrap();
        let files = files(Some(&inside));
        for path in ["../secret.c", "a.c", "/x/../../secret.c"] {
            assert!(read(&files, Path::new(path)).is_err(), "{path}");
        }
    }
}
