//! Questions of a view about code: listings and sources. They have an index of their own, so that no sample waits for what
//! a person looks at.

use crate::file_source::{FilePolicy, NoSource, SourceText, SystemFiles};
use dataspace_analyzer::bytes::file::{LoadObjectIdx, LoadObjectKey};
use dataspace_analyzer::index::code_listing::{AssemblySyntax, CodeListing, Namesakes};
use dataspace_analyzer::index::worker::Worker;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An index that a view asks, and the files that it reads. Each answer may take long.
#[derive(Debug)]
pub(crate) struct Inspector {
    worker: Worker,
    files: SystemFiles,
}

impl Inspector {
    /// One that opens files by `policy`.
    pub(crate) fn new(policy: FilePolicy) -> Self {
        let files = SystemFiles::new(policy);
        Self { worker: Worker::new(Box::new(files.clone())), files }
    }

    /// The listing of the function around `at`.
    ///
    /// # Errors
    /// The reason that there is none.
    pub(crate) fn listing(
        &mut self,
        (object, key): (LoadObjectIdx, &Arc<LoadObjectKey>),
        at: Svma,
        syntax: AssemblySyntax,
    ) -> Result<CodeListing, Reason> {
        let worker = &mut self.worker;
        guarded(key, || worker.listing(object, key, at, syntax))
    }

    /// The functions of this name in a load object, or names that are spelled like it.
    ///
    /// # Errors
    /// The reason that the load object cannot be asked.
    pub(crate) fn functions_named(
        &mut self,
        (object, key): (LoadObjectIdx, &Arc<LoadObjectKey>),
        name: &str,
    ) -> Result<Namesakes, Reason> {
        let worker = &mut self.worker;
        guarded(key, || worker.functions_named(object, key, name))
    }

    /// The source at a path that the compiler of a load object recorded.
    ///
    /// # Errors
    /// The reason that it is not shown.
    pub(crate) fn source(&self, key: &LoadObjectKey, path: &str) -> Result<SourceText, NoSource> {
        self.files.source(key, path)
    }
}

/// The answer of the index; a panic over hostile input costs that one answer.
fn guarded<T>(
    key: &LoadObjectKey,
    answer: impl FnOnce() -> Result<T, Reason>,
) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        tracing::error!(path = %key.path_text(), "the index panicked");
        Err(Reason::OverBudget)
    })
}
