//! The answer for each sample of a recording, with the source of its trigger, in the order of time.

use super::index_worker;
use dataspace_analyzer::bytes::file::LoadObjectIdx;
use dataspace_analyzer::index::question::{Answer, Question, Request, SourcePlace};
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Decided, Observer};
use dataspace_proto::sample_line::SampleLine;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Lines that are held back at most for the sake of order.
const MAX_HELD: usize = 1 << 14;

/// Places whose sources are remembered.
const MAX_PLACES: usize = 1 << 16;

/// Takes lines.
type TakeLine<'a> = dyn FnMut(&SampleLine) -> anyhow::Result<()> + 'a;

/// Turns decided samples into lines.
pub(super) struct Lines<'a> {
    take: &'a mut TakeLine<'a>,
    has_sources: bool,
    failed: Option<anyhow::Error>,
    /// Lines by time and number, and what to ask for their sources.
    held: BTreeMap<(u64, u64), (SampleLine, Option<Request>)>,
    n_lines: u64,
    sources: HashMap<(LoadObjectIdx, Question), Arc<SourcePlace>>,
}

impl<'a> Lines<'a> {
    /// Hands lines to `take`, with the sources of triggers if it `has_sources`.
    pub(super) fn new(has_sources: bool, take: &'a mut TakeLine<'a>) -> Self {
        Self {
            take,
            has_sources,
            failed: None,
            held: BTreeMap::new(),
            n_lines: 0,
            sources: HashMap::new(),
        }
    }

    /// Hands on what no older sample can come before.
    pub(super) fn hand_on(&mut self, analyzer: &Analyzer, worker: &mut Worker) {
        let oldest_ns = analyzer.oldest_unweighed_ns().unwrap_or(u64::MAX);
        while let Some(first) = self.held.first_entry()
            && (first.key().0 <= oldest_ns || self.held.len() > MAX_HELD)
        {
            self.hand_first_on(worker);
        }
    }

    /// Hands on all that is left.
    ///
    /// # Errors
    /// What the taker of lines said.
    pub(super) fn end(mut self, worker: &mut Worker) -> anyhow::Result<()> {
        while !self.held.is_empty() {
            self.hand_first_on(worker);
        }
        self.failed.map_or(Ok(()), Err)
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn hand_first_on(&mut self, worker: &mut Worker) {
        let Some((_, (mut line, request))) = self.held.pop_first() else { return };
        if self.has_failed() {
            return;
        }
        if let Some(request) = request {
            let source = self.source(&request, worker);
            if let Some((symbol, offset)) = &source.symbol {
                line.symbol = Some(Arc::clone(symbol));
                line.symbol_offset = Some(*offset);
            }
            if let Some(innermost) = source.lines.first() {
                line.file.clone_from(&innermost.path);
                line.line = Some(innermost.line);
            }
        }
        self.failed = (self.take)(&line).err();
    }

    fn source(&mut self, request: &Request, worker: &mut Worker) -> Arc<SourcePlace> {
        let key = (request.object, request.question);
        if let Some(known) = self.sources.get(&key) {
            return Arc::clone(known);
        }
        let source = loop {
            match index_worker::answer(worker, request).answer {
                Answer::Unfinished => {}
                Answer::Source(source) => break source,
                _ => break Arc::default(),
            }
        };
        if self.sources.len() >= MAX_PLACES {
            self.sources.clear();
        }
        self.sources.insert(key, Arc::clone(&source));
        source
    }
}

impl Observer for Lines<'_> {
    fn decided(&mut self, analyzer: &Analyzer, decided: Decided<'_>) {
        let line = analyzer.sample_line(decided);
        let request = self.has_sources.then(|| analyzer.source_request(decided)).flatten();
        self.n_lines += 1;
        self.held.insert((line.time_ns, self.n_lines), (line, request));
    }
}
