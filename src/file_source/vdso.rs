//! The vdso, which is no file.

use super::{SystemFiles, place};
use dataspace_analyzer::bytes::file::{FileBytes, FileError};
use dataspace_collector::system::memory;
use dataspace_proto::broker::FileRoot;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;

impl SystemFiles {
    /// Every process of this machine maps the same one, so ours is read. A recording has it
    /// where it was made while this kernel ran, or where perf's cache keeps it.
    pub(super) fn vdso(&self, identity: &FileIdentity) -> Result<Box<dyn FileBytes>, Reason> {
        let build_id = match identity {
            FileIdentity::BuildId(build_id) => Some(build_id),
            _ => None,
        };
        let is_ours =
            |ours: &&[u8]| self.policy.is_live || build_id.is_some_and(|id| has_build_id(ours, id));
        if let Some(ours) = memory::vdso().filter(is_ours) {
            return Ok(Box::new(Memory(ours)));
        }
        let cached = build_id.and_then(|id| self.cached_by_build_id(id, "vdso"));
        let opened =
            cached.and_then(|path| self.open(place::below(FileRoot::Machine, &path, None)));
        opened.map(|opened| self.bytes(opened)).ok_or(Reason::ObjectMissing)
    }
}

/// Tells whether a note in a file of this machine says that it has this build-id: `n_namesz`, `n_descsz`, `n_type`, name,
/// descriptor (gABI, "Note Section"; `NT_GNU_BUILD_ID` is 3).
fn has_build_id(file: &[u8], build_id: &[u8]) -> bool {
    let words = [4, build_id.len() as u32, 3].map(u32::to_ne_bytes);
    let note = [&words.concat(), &b"GNU\0"[..], build_id].concat();
    !build_id.is_empty() && file.windows(note.len()).any(|part| part == note)
}

/// A file image in memory.
#[derive(Debug)]
struct Memory(&'static [u8]);

impl FileBytes for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        let range = usize::try_from(offset)
            .ok()
            .and_then(|start| self.0.get(start..start.checked_add(buffer.len())?));
        let bytes = range.ok_or_else(|| FileError {
            offset,
            n_bytes,
            cause: "behind the end".to_owned(),
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilePolicy;
    use super::*;

    #[test]
    fn a_recordings_vdso_is_ours_where_the_build_ids_agree() {
        let ours = memory::vdso().unwrap();
        let at =
            ours.windows(8).position(|part| part == [3, 0, 0, 0, b'G', b'N', b'U', 0]).unwrap();
        let n_bytes = u32::from_ne_bytes(ours[at - 4..at].try_into().unwrap()) as usize;
        let mut build_id = ours[at + 8..at + 8 + n_bytes].to_vec();
        let files = SystemFiles::new(FilePolicy::default());
        let of = |identity: &FileIdentity| files.vdso(identity).map(|file| file.len());
        let read = |build_id: &[u8]| of(&FileIdentity::BuildId(build_id.into()));
        assert_eq!(read(&build_id), Ok(ours.len() as u64));
        build_id[0] ^= 1;
        assert_eq!(read(&build_id), Err(Reason::ObjectMissing));
        assert_eq!(of(&FileIdentity::None), Err(Reason::ObjectMissing));
    }

    #[test]
    fn the_vdso_is_an_elf_file() {
        let files = SystemFiles::new(FilePolicy { is_live: true, ..FilePolicy::default() });
        let vdso = files.vdso(&FileIdentity::None).unwrap();
        let mut magic = [0; 4];
        vdso.read_exact_at(0, &mut magic).unwrap();
        assert_eq!(&magic, b"\x7fELF");
        assert!(vdso.read_exact_at(vdso.len(), &mut magic).is_err());
    }
}
