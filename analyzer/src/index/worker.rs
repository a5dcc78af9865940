//! The worker, which answers the analyzer's questions about load objects.

use crate::bytes::eviction::EvictionStage;
use crate::bytes::file::{FileSource, LoadObjectIdx, LoadObjectKey};
use crate::bytes::page::PageCache;
use crate::index::code_listing::{AssemblySyntax, CodeListing, Namesakes};
use crate::index::code_names::CodeNames;
use crate::index::load_object::LoadObjectIndex;
use crate::index::question::{Answer, Question, Request, Response};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Answers requests, one after the other, keeping the load objects it opened.
pub struct Worker {
    source: Box<dyn FileSource>,
    pages: Arc<PageCache>,
    objects: FxHashMap<LoadObjectIdx, Result<LoadObjectIndex, Reason>>,
    code_names: CodeNames,
    /// The load object that was asked last.
    last: Option<LoadObjectIdx>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("n_objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker that opens files through `source`.
    #[must_use]
    pub fn new(source: Box<dyn FileSource>) -> Self {
        Self {
            source,
            pages: Arc::default(),
            objects: FxHashMap::default(),
            code_names: CodeNames::default(),
            last: None,
        }
    }

    /// Evicts what is kept here, up to `stage`: it is read again where it is asked for.
    pub fn evict(&mut self, stage: EvictionStage) {
        let last = self.last.filter(|_| stage < EvictionStage::Work);
        if stage >= EvictionStage::Indices {
            // What cannot be opened takes no room, and is not tried again.
            self.objects.retain(|object, opened| Some(*object) == last || opened.is_err());
        }
        for index in self.objects.values_mut().flatten() {
            index.evict_caches();
        }
        self.pages.clear();
    }

    /// Gives up what is kept of one load object: its file gave less than it has, or what it gave is too
    /// much.
    pub fn forget(&mut self, object: LoadObjectIdx) {
        self.objects.remove(&object);
        self.pages.clear();
    }

    /// Answers one request. Reads files; may take long.
    pub fn answer(&mut self, request: &Request) -> Response {
        if let Question::CodeNames(format) = request.question {
            let source = self.source.as_ref();
            let names = self.code_names.read(request.object, &request.key, format, source);
            let answer = Answer::CodeNames(names);
            return Response { object: request.object, question: request.question, answer };
        }
        let answer = match self.opened(request.object, &request.key) {
            Err(reason) => Answer::Failed(reason),
            Ok(index) => index.answer(request.question),
        };
        Response { object: request.object, question: request.question, answer }
    }

    fn opened(
        &mut self,
        object: LoadObjectIdx,
        key: &LoadObjectKey,
    ) -> Result<&mut LoadObjectIndex, Reason> {
        self.last = Some(object);
        let (source, pages) = (self.source.as_ref(), &self.pages);
        let open = || LoadObjectIndex::open_with(key, source, pages);
        self.objects.entry(object).or_insert_with(open).as_mut().map_err(|reason| *reason)
    }

    /// The same with all debug information that takes several turns to look through.
    fn ready(
        &mut self,
        object: LoadObjectIdx,
        key: &LoadObjectKey,
    ) -> Result<&mut LoadObjectIndex, Reason> {
        let index = self.opened(object, key)?;
        while !index.is_ready() {}
        Ok(index)
    }

    /// The listing of the function around `at`, which a view asks for: it is answered in one go. Reads files; may take
    /// long.
    ///
    /// # Errors
    /// The reason that the load object cannot be asked, or that nothing tells where the function begins and ends.
    pub fn listing(
        &mut self,
        object: LoadObjectIdx,
        key: &LoadObjectKey,
        at: Svma,
        syntax: AssemblySyntax,
    ) -> Result<CodeListing, Reason> {
        let index = self.ready(object, key)?;
        let listing = index.listing(at, syntax);
        if index.ends_wanted_pass() { index.listing(at, syntax) } else { listing }
    }

    /// The functions of this name in a load object, or else names that are spelled like it.
    ///
    /// # Errors
    /// The reason that the load object cannot be asked.
    pub fn functions_named(
        &mut self,
        object: LoadObjectIdx,
        key: &LoadObjectKey,
        name: &str,
    ) -> Result<Namesakes, Reason> {
        Ok(self.opened(object, key)?.functions_named(name))
    }
}
