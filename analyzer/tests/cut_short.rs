//! A file that cannot be read any further while it is in use: what is answered then is what the
//! whole file says, or a reason.

use crate::support::program::Program;
use crate::support::session::Bytes;
use dataspace_analyzer::bytes::file::{
    DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey,
};
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::index::site::{SiteQuery, TypeAnswer};
use dataspace_analyzer::x86_64::backtrack::Skid;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file that is cut short after some reads.
struct Cut {
    bytes: Bytes,
    n_left: Arc<AtomicUsize>,
}

impl FileBytes for Cut {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let take = |left: usize| left.checked_sub(1);
        if self.n_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            let (n_bytes, cause) = (buffer.len() as u64, "it was cut short".to_owned());
            return Err(FileError { offset, n_bytes, cause });
        }
        self.bytes.read_exact_at(offset, buffer)
    }
}

struct CutFiles {
    bytes: Vec<u8>,
    n_left: Arc<AtomicUsize>,
}

impl FileSource for CutFiles {
    fn load_object(&self, _: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        let (bytes, n_left) = (Bytes(self.bytes.clone()), Arc::clone(&self.n_left));
        Ok(Box::new(Cut { bytes, n_left }))
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }
}

/// The objects of the accesses in a function, `None` where there is a reason; and the reads that
/// were left.
fn answers(program: &Program, function: &str, n_reads: usize) -> (Vec<Option<String>>, usize) {
    let n_left = Arc::new(AtomicUsize::new(n_reads));
    let files = CutFiles { bytes: program.bytes.clone(), n_left: Arc::clone(&n_left) };
    let key = LoadObjectKey {
        path: b"/program".as_slice().into(),
        identity: FileIdentity::None,
        pid: 1,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    };
    let mut found = Vec::new();
    let (start, len_bytes) = program.function_range(function);
    if let Ok(mut index) = LoadObjectIndex::open(&key, &files) {
        for ip in start..start + len_bytes {
            let site = index.site(SiteQuery { ip: Svma(ip), skid: Skid::Exact });
            let Ok(past) = site.outcome else {
                found.push(None);
                continue;
            };
            for access in past.triggers.iter().flat_map(|trigger| &trigger.accesses) {
                found.push(match &access.answer {
                    TypeAnswer::Object(answer) => Some(format!("{ip:#x} {answer:?}")),
                    _ => None,
                });
            }
        }
    }
    (found, n_left.load(Ordering::Relaxed))
}

#[test]
fn what_is_cut_short_while_it_is_read_has_a_reason() {
    const MANY: usize = 1 << 20;
    for flags in ["-O1 -gdwarf-5 -fno-pie -no-pie", "-O2 -gdwarf-4 -fno-pie -no-pie"] {
        let program = Program::c("hunt.c", flags);
        let (whole, left) = answers(&program, "looped", MANY);
        assert!(whole.iter().flatten().count() > 2, "{whole:?}");
        let mut n_partly = 0;
        for n_reads in 0..MANY - left {
            let (cut, _) = answers(&program, "looped", n_reads);
            let is_true = |answer: &&String| whole.iter().flatten().any(|known| known == *answer);
            assert!(cut.iter().flatten().all(|answer| is_true(&answer)), "{n_reads}: {cut:?}");
            n_partly += usize::from(cut.iter().any(Option::is_none));
        }
        assert!(n_partly > 0, "it was cut where an answer needs it");
    }
}
