//! What the analyzer asks of workers, and the worker that answers.

use crate::call_site::CallSite;
use crate::code_names::{CodeNames, Names, NamesFormat};
use crate::data_symbol::DataPlace;
use crate::file::{FileSource, LoadObjectKey};
use crate::index::{LoadObjectIndex, ObjectFacts};
use crate::page::PageCache;
use crate::process::LoadObjectIdx;
use crate::shedding::Shed;
use crate::site::{Site, SiteQuery};
use crate::static_data::DataRange;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A question about one load object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Its segments.
    Open,
    /// A reported IP.
    Site(SiteQuery),
    /// A place in its data.
    Data(DataPlace),
    /// The call that returns to this address.
    Call(Svma),
    /// What a file of this format calls the code that its process makes.
    CodeNames(NamesFormat),
}

/// Work for a worker.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load object.
    pub object: LoadObjectIdx,
    /// How to open it.
    pub key: Arc<LoadObjectKey>,
    /// What is asked.
    pub question: Question,
}

/// What a worker found.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Question::Open`].
    Open(Arc<ObjectFacts>),
    /// To [`Question::Site`].
    Site(Box<Site>),
    /// To [`Question::Data`].
    Data(DataRange),
    /// To [`Question::Call`].
    Call(Arc<CallSite>),
    /// To [`Question::CodeNames`]; `None` if there is no such file.
    CodeNames(Option<Names>),
    /// Not yet: to be asked again, when what else waits has had its turn.
    Unfinished,
    /// To any: nobody works on it for the time being. What waits for it is `over_budget`, and samples to
    /// come ask anew.
    NotNow(Delay),
    /// To any: the load object cannot be asked, now or later.
    Failed(Reason),
}

/// Why nobody works on a question for the time being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Memory is short, which is told where work is given up for it, or the session ends.
    Short,
    /// What there is to read for it takes more memory than there is.
    TooLarge,
    /// It was begun, and what it had read stood in the way of others while it waited for a file; or the
    /// memory it needs was others' for as long as anybody waits.
    NoRoom,
}

/// A worker's reply to a [`Request`].
#[derive(Clone, Debug)]
pub struct Response {
    /// The load object.
    pub object: LoadObjectIdx,
    /// What was asked.
    pub question: Question,
    /// What was found.
    pub answer: Answer,
}

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

    /// Gives up what is kept here, up to `stage`: it is read again where it is asked for.
    pub fn shed(&mut self, stage: Shed) {
        let last = self.last.filter(|_| stage < Shed::Work);
        if stage >= Shed::Indices {
            // What cannot be opened takes no room, and is not tried again.
            self.objects.retain(|object, opened| Some(*object) == last || opened.is_err());
        }
        for index in self.objects.values_mut().flatten() {
            index.shed_caches();
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
        self.last = Some(request.object);
        let opened = self.objects.entry(request.object).or_insert_with(|| {
            LoadObjectIndex::open_with(&request.key, self.source.as_ref(), &self.pages)
        });
        let answer = match (opened, request.question) {
            (Err(reason), _) => Answer::Failed(*reason),
            (Ok(index), question) => index.answer(question),
        };
        Response { object: request.object, question: request.question, answer }
    }
}
