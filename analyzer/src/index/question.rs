//! Questions about load objects, and their answers.

use crate::bytes::file::{LoadObjectIdx, LoadObjectKey, NamesFormat};
use crate::dwarf::code::line::SourceLine;
use crate::elf::data_symbol::DataPlace;
use crate::index::call_site::{CallForm, CallSite};
use crate::index::code_names::Names;
use crate::index::entered::WaysIn;
use crate::index::load_object::ObjectFacts;
use crate::index::site::{Site, SiteQuery};
use crate::index::static_data::DataRange;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::Scope;
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
    /// The same, by its instruction alone.
    CallForm(Svma),
    /// The ways into the function that begins at this address.
    WaysIn(Svma),
    /// The function and the source line of the instruction at this address.
    Source(Svma),
    /// Names that a file of this format gives to the code that its process makes.
    CodeNames(NamesFormat),
}

/// Work for a worker.
#[derive(Clone, Debug)]
pub struct Request {
    /// The load object.
    pub object: LoadObjectIdx,
    /// The key that it is opened with.
    pub key: Arc<LoadObjectKey>,
    /// The question that is asked.
    pub question: Question,
}

/// Answer that a worker found.
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
    /// To [`Question::CallForm`].
    CallForm(Arc<CallForm>),
    /// To [`Question::WaysIn`]; `None` where they are not known.
    WaysIn(Arc<Option<WaysIn>>),
    /// To [`Question::Source`].
    Source(Arc<SourcePlace>),
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

/// The place of an instruction as symbols and line tables tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// The function around it.
    pub scope: Arc<Scope>,
    /// The function's symbol, and bytes from where it begins.
    pub symbol: Option<(Arc<str>, u64)>,
    /// The line, and those of the calls around it that were put in line, outwards.
    pub lines: Arc<[SourceLine]>,
}

/// Reason why nobody works on a question for the time being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Memory is short, which is told where work is given up for it, or the session ends.
    Short,
    /// The data to read for it take more memory than there is.
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
    /// The question that was asked.
    pub question: Question,
    /// The answer that was found.
    pub answer: Answer,
}

/// Question that stops an attribution: a worker must answer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) object: LoadObjectIdx,
    pub(crate) question: Question,
}
