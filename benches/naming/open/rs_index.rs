//! A search engine in small: documents in an arena of text, a dictionary in a B-tree, postings as packed bytes,
//! segments that are merged, queries as trees of iterators, the best ones in a heap, and a crawler of futures that
//! feeds it all.
#[path = "../heap.rs"]
mod heap;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::future::Future;
use std::ops::{Index, Range};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

type DocId = u32;

/// Indices of T that cannot be mistaken for those of something else.
pub struct Id<T> {
    raw: u32,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}

pub struct Arena<T> {
    items: Vec<T>,
}

impl<T> Arena<T> {
    fn with_capacity(capacity: usize) -> Self {
        Arena { items: heap::of::<T, _>(|| Vec::with_capacity(capacity)) }
    }
    fn add(&mut self, item: T) -> Id<T> {
        self.items.push(item);
        Id { raw: self.items.len() as u32 - 1, of: std::marker::PhantomData }
    }
}

impl<T> Index<Id<T>> for Arena<T> {
    type Output = T;
    fn index(&self, id: Id<T>) -> &T {
        &self.items[id.raw as usize]
    }
}

#[derive(Clone)]
pub struct Document {
    text: Range<u32>,
    words: u16,
    language: Language,
    rank: f32,
    deleted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    English,
    German,
    Other([u8; 2]),
}

/// The pages of one site: the tree of where they were found.
pub struct Page {
    parent: Option<Id<Page>>,
    links: Vec<Id<Page>>,
    document: Option<DocId>,
    visits: u32,
    weight: f64,
}

#[derive(Default, Clone)]
pub struct Posting {
    bytes: Vec<u8>,
    documents: u32,
    last: DocId,
    highest: u16,
}

impl Posting {
    fn add(&mut self, document: DocId, frequency: u16) {
        let mut delta = document - self.last;
        while delta >= 0x80 {
            self.bytes.push(delta as u8 | 0x80);
            delta >>= 7;
        }
        self.bytes.push(delta as u8);
        self.bytes.push(frequency.min(255) as u8);
        self.last = document;
        self.documents += 1;
        self.highest = self.highest.max(frequency);
    }

    fn iter(&self) -> Decoder<'_> {
        Decoder { bytes: &self.bytes, document: 0, left: self.documents }
    }
}

#[derive(Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    document: DocId,
    left: u32,
}

impl Iterator for Decoder<'_> {
    type Item = (DocId, u16);
    fn next(&mut self) -> Option<(DocId, u16)> {
        self.left = self.left.checked_sub(1)?;
        let (mut delta, mut shift) = (0, 0);
        let rest = loop {
            let (&byte, rest) = self.bytes.split_first()?;
            delta |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break rest;
            }
            self.bytes = rest;
        };
        let (&frequency, rest) = rest.split_first()?;
        self.bytes = rest;
        self.document += delta;
        Some((self.document, u16::from(frequency)))
    }
}

pub struct Segment {
    terms: BTreeMap<u64, Posting>,
    count: u32,
    searched: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub struct Scored {
    score: f32,
    document: DocId,
}
impl Eq for Scored {}
impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scored {
    /// The worst one is the greatest, so that it is what leaves a full heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

pub enum Query {
    Term { hash: u64, boost: f32 },
    And(Vec<Query>),
    Or(Vec<Query>),
    Not(Box<Query>, Box<Query>),
    Within { inner: Box<Query>, documents: Range<DocId> },
}

/// Something that gives documents in order.
pub trait Cursor {
    fn document(&self) -> Option<DocId>;
    fn advance(&mut self, to: DocId);
    fn score(&self) -> f32;
}

pub struct TermCursor<'a> {
    decoder: Decoder<'a>,
    current: Option<(DocId, u16)>,
    boost: f32,
    rarity: f32,
    skipped: u32,
}

pub struct AndCursor<'a> {
    parts: Vec<Box<dyn Cursor + 'a>>,
    rounds: u32,
}

pub struct OrCursor<'a> {
    parts: Vec<Box<dyn Cursor + 'a>>,
    least: Option<DocId>,
}

pub struct NotCursor<'a> {
    wanted: Box<dyn Cursor + 'a>,
    unwanted: Box<dyn Cursor + 'a>,
}

pub struct RangeCursor<'a> {
    inner: Box<dyn Cursor + 'a>,
    documents: Range<DocId>,
}

impl Cursor for TermCursor<'_> {
    fn document(&self) -> Option<DocId> {
        self.current.map(|(document, _)| document)
    }
    fn advance(&mut self, to: DocId) {
        while self.current.is_some_and(|(document, _)| document < to) {
            self.current = self.decoder.next();
            self.skipped += 1;
        }
    }
    fn score(&self) -> f32 {
        let frequency = self.current.map_or(0.0, |(_, frequency)| f32::from(frequency));
        self.boost * self.rarity * frequency / (frequency + 1.2)
    }
}

impl Cursor for AndCursor<'_> {
    fn document(&self) -> Option<DocId> {
        self.parts.first()?.document()
    }
    fn advance(&mut self, to: DocId) {
        let mut to = to;
        loop {
            self.rounds += 1;
            for part in &mut self.parts {
                part.advance(to);
                match part.document() {
                    Some(document) => to = document,
                    None => return self.parts.clear(),
                }
            }
            if self.parts.iter().all(|part| part.document() == Some(to)) {
                return;
            }
        }
    }
    fn score(&self) -> f32 {
        self.parts.iter().map(|part| part.score()).sum()
    }
}

impl Cursor for OrCursor<'_> {
    fn document(&self) -> Option<DocId> {
        self.least
    }
    fn advance(&mut self, to: DocId) {
        self.parts.iter_mut().for_each(|part| part.advance(to));
        self.least = self.parts.iter().filter_map(|part| part.document()).min();
    }
    fn score(&self) -> f32 {
        let here = self.parts.iter().filter(|part| part.document() == self.least);
        here.map(|part| part.score()).fold(0.0, |sum, score| sum + score)
    }
}

impl Cursor for NotCursor<'_> {
    fn document(&self) -> Option<DocId> {
        self.wanted.document()
    }
    fn advance(&mut self, to: DocId) {
        self.wanted.advance(to);
        while let Some(document) = self.wanted.document() {
            self.unwanted.advance(document);
            if self.unwanted.document() != Some(document) {
                break;
            }
            self.wanted.advance(document + 1);
        }
    }
    fn score(&self) -> f32 {
        self.wanted.score()
    }
}

impl Cursor for RangeCursor<'_> {
    fn document(&self) -> Option<DocId> {
        self.inner.document().filter(|document| self.documents.contains(document))
    }
    fn advance(&mut self, to: DocId) {
        self.inner.advance(to.max(self.documents.start));
    }
    fn score(&self) -> f32 {
        self.inner.score() * 1.1
    }
}

impl Segment {
    fn cursor<'a>(&'a self, query: &Query) -> Box<dyn Cursor + 'a> {
        let several = |queries: &[Query]| {
            let mut parts: Vec<Box<dyn Cursor + 'a>> =
                heap::of::<Box<dyn Cursor>, _>(|| Vec::with_capacity(4));
            parts.extend(queries.iter().map(|query| self.cursor(query)));
            parts
        };
        match query {
            Query::Term { hash, boost } => {
                static NONE: Posting = Posting { bytes: Vec::new(), documents: 0, last: 0, highest: 0 };
                let posting = self.terms.get(hash).unwrap_or(&NONE);
                let mut decoder = posting.iter();
                let current = decoder.next();
                let rarity = (self.count as f32 / (posting.documents as f32 + 1.0)).sqrt();
                let cursor = TermCursor { decoder, current, boost: *boost, rarity, skipped: 0 };
                heap::of::<TermCursor, _>(|| Box::new(cursor))
            }
            Query::And(queries) => {
                let mut cursor = AndCursor { parts: several(queries), rounds: 0 };
                cursor.advance(0);
                heap::of::<AndCursor, _>(|| Box::new(cursor))
            }
            Query::Or(queries) => {
                let mut cursor = OrCursor { parts: several(queries), least: None };
                cursor.advance(0);
                heap::of::<OrCursor, _>(|| Box::new(cursor))
            }
            Query::Not(wanted, unwanted) => {
                let (wanted, unwanted) = (self.cursor(wanted), self.cursor(unwanted));
                heap::of::<NotCursor, _>(|| Box::new(NotCursor { wanted, unwanted }))
            }
            Query::Within { inner, documents } => {
                let (inner, documents) = (self.cursor(inner), documents.clone());
                heap::of::<RangeCursor, _>(|| Box::new(RangeCursor { inner, documents }))
            }
        }
    }

    #[inline(never)]
    fn search(&mut self, query: &Query, documents: &[Document], best: &mut BinaryHeap<Scored>) {
        self.searched += 1;
        let mut cursor = self.cursor(query);
        while let Some(document) = cursor.document() {
            let about = &documents[document as usize];
            if !about.deleted {
                let language = if about.language == Language::English { 1.0 } else { 0.8 };
                let score = cursor.score() * about.rank * language / f32::from(about.words).sqrt();
                let full = best.len() == 10;
                if !full || best.peek().is_some_and(|worst| worst.score < score) {
                    best.push(Scored { score, document });
                    if full {
                        best.pop();
                    }
                }
            }
            cursor.advance(document + 1);
        }
    }
}

fn hash_of(word: &[u8]) -> u64 {
    word.iter().fold(0xcbf29ce484222325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3)
    })
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| word.len() > 1)
}

pub struct Store {
    text: Vec<u8>,
    documents: Vec<Document>,
    pages: Arena<Page>,
    segments: Vec<Segment>,
    counts: HashMap<u64, u16>,
    seen: BTreeSet<u32>,
}

impl Store {
    #[inline(never)]
    fn index(&mut self, range: Range<usize>) {
        let mut terms: BTreeMap<u64, Posting> = BTreeMap::new();
        for document in range.clone() {
            let about = &mut self.documents[document];
            let text = &self.text[about.text.start as usize..about.text.end as usize];
            self.counts.clear();
            about.words = 0;
            for word in words(text) {
                *self.counts.entry(hash_of(word)).or_insert(0) += 1;
                about.words += 1;
            }
            for (&hash, &frequency) in &self.counts {
                let posting = match terms.get_mut(&hash) {
                    Some(posting) => posting,
                    None => heap::tree::<u64, Posting, _>(|| terms.entry(hash).or_default()),
                };
                if posting.bytes.capacity() == 0 {
                    posting.bytes = heap::of::<u8, _>(|| Vec::with_capacity(16));
                }
                posting.add(document as DocId, frequency);
            }
        }
        self.segments.push(Segment { terms, count: range.len() as u32, searched: 0 });
    }

    /// Makes one segment of the two last ones, the latter of which has the later documents.
    #[inline(never)]
    fn merge(&mut self) {
        let (Some(later), Some(into)) = (self.segments.pop(), self.segments.last_mut()) else { return };
        for (hash, posting) in later.terms {
            match into.terms.get_mut(&hash) {
                Some(earlier) => posting.iter().for_each(|(d, f)| earlier.add(d, f)),
                None => drop(heap::tree::<u64, Posting, _>(|| into.terms.insert(hash, posting))),
            }
        }
        into.count += later.count;
    }

    /// One step of how pages that are linked to share their weight.
    #[inline(never)]
    fn weigh(&mut self) -> f64 {
        for index in 0..self.pages.items.len() {
            let (before, rest) = self.pages.items.split_at_mut(index);
            let Some((page, _)) = rest.split_first_mut() else { break };
            let parent = page.parent.map_or(1.0, |parent| before[parent.raw as usize].weight);
            page.weight = 0.15 + 0.5 * page.weight + 0.35 * parent / (page.links.len() as f64 + 1.0);
            if let Some(document) = page.document {
                self.documents[document as usize].rank = page.weight as f32;
            }
        }
        let pages = &self.pages;
        let linked = pages.items.iter().flat_map(|page| page.links.iter().map(|link| &pages[*link]));
        linked.map(|page| page.weight * f64::from(page.visits & 1)).sum()
    }
}

/// What the crawler and the pages that are being fetched share.
pub struct Network {
    latencies: [u8; 32],
    clock: u32,
    fetched: u64,
    queue: BinaryHeap<(u32, u32)>,
}

pub struct Fetch {
    network: Rc<RefCell<Network>>,
    page: u32,
    due: Option<u32>,
}

impl Future for Fetch {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        let network = self.network.clone();
        let mut network = network.borrow_mut();
        let due = match self.due {
            Some(due) => due,
            None => network.clock + u32::from(network.latencies[self.page as usize % 32]),
        };
        self.due = Some(due);
        if network.clock < due {
            return Poll::Pending;
        }
        network.fetched += 1;
        Poll::Ready(due)
    }
}

async fn crawl(network: Rc<RefCell<Network>>, store: Rc<RefCell<Store>>, start: u32) {
    let mut page = start;
    let mut trail = [0u32; 6];
    let mut steps = 0usize;
    loop {
        let at = Fetch { network: network.clone(), page, due: None }.await;
        trail[steps % 6] = page;
        steps += 1;
        let next = {
            let mut store = store.borrow_mut();
            if !store.seen.contains(&page) {
                heap::tree_set::<u32, _>(|| store.seen.insert(page));
            }
            let visited = &mut store.pages.items[page as usize];
            visited.visits += 1;
            let links = visited.links.len();
            match visited.links.get(at as usize % (links + 1)) {
                Some(link) => link.raw,
                None => visited.parent.map_or(start, |parent| parent.raw),
            }
        };
        if steps % 4 == 0 {
            network.borrow_mut().queue.push((at, trail[at as usize % 6]));
        }
        page = next;
    }
}

fn spawn<F: Future<Output = ()> + 'static>(future: F) -> Pin<Box<dyn Future<Output = ()>>> {
    heap::named("{async_fn_env#0}".into(), size_of::<F>(), || Box::pin(future))
}

#[inline(never)]
fn turn(tasks: &mut [Pin<Box<dyn Future<Output = ()>>>], network: &RefCell<Network>) -> u64 {
    network.borrow_mut().clock += 1;
    let mut context = Context::from_waker(Waker::noop());
    for task in tasks {
        let _ = task.as_mut().poll(&mut context);
    }
    let mut network = network.borrow_mut();
    while network.queue.len() > 100 {
        network.queue.pop();
    }
    network.fetched
}

const VOCABULARY: [&str; 24] = [
    "index", "search", "the", "of", "and", "memory", "cache", "line", "tree", "page", "query", "word", "rank", "sort",
    "merge", "arena", "slice", "vector", "trait", "future", "poll", "queue", "heap", "stack",
];

fn store() -> Store {
    let mut text = heap::of::<u8, _>(|| Vec::with_capacity(1 << 16));
    let mut documents = heap::of::<Document, _>(|| Vec::with_capacity(400));
    let mut pages = Arena::with_capacity(400);
    for number in 0..400u32 {
        let start = text.len() as u32;
        for _ in 0..10 + heap::random() % 20 {
            let word = VOCABULARY[(heap::random() % 24 * (heap::random() % 24) / 24) as usize];
            text.extend_from_slice(word.as_bytes());
            text.push(b' ');
        }
        let language = match number % 5 {
            0 => Language::German,
            1 => Language::Other(*b"fr"),
            _ => Language::English,
        };
        let range = start..text.len() as u32;
        documents.push(Document { text: range, words: 0, language, rank: 1.0, deleted: number % 9 == 0 });
        let links = heap::of::<Id<Page>, _>(|| Vec::with_capacity(4));
        let parent = (number > 0).then(|| Id { raw: (number - 1) / 3, of: std::marker::PhantomData });
        let document = (number % 4 != 3).then_some(number);
        let page = pages.add(Page { parent, links, document, visits: 0, weight: 1.0 });
        if let Some(parent) = parent {
            pages.items[parent.raw as usize].links.push(page);
        }
    }
    let segments = heap::of::<Segment, _>(|| Vec::with_capacity(8));
    let counts = heap::table::<u64, u16, _>(|| HashMap::with_capacity(100));
    Store { text, documents, pages, segments, counts, seen: BTreeSet::new() }
}

fn query(level: u32) -> Query {
    let random = heap::random();
    let boxed = || heap::of::<Query, _>(|| Box::new(query(level + 1)));
    let some = || {
        let mut queries = heap::of::<Query, _>(|| Vec::with_capacity(3));
        queries.extend((0..2 + random % 2).map(|_| query(level + 1)));
        queries
    };
    match random % 8 {
        0 | 1 if level < 3 => Query::And(some()),
        2..=4 if level < 3 => Query::Or(some()),
        5 if level < 3 => Query::Not(boxed(), boxed()),
        6 if level < 3 => {
            let start = (random >> 20) as u32 % 200;
            Query::Within { inner: boxed(), documents: start..start + 150 }
        }
        _ => {
            let word = VOCABULARY[(random >> 32) as usize % 24];
            Query::Term { hash: hash_of(word.as_bytes()), boost: 1.0 + (random >> 60) as f32 }
        }
    }
}

fn main() {
    heap::init();
    let store = store();
    let store = heap::rc::<RefCell<Store>, _>(|| Rc::new(RefCell::new(store)));
    let queue = heap::of::<(u32, u32), _>(|| BinaryHeap::with_capacity(512));
    let latencies = std::array::from_fn(|i| 1 + i as u8 % 7);
    let network = Network { latencies, clock: 0, fetched: 0, queue };
    let network = heap::rc::<RefCell<Network>, _>(|| Rc::new(RefCell::new(network)));
    let mut queries = heap::of::<Query, _>(|| Vec::with_capacity(40));
    queries.extend((0..40).map(|_| query(0)));
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::with_capacity(24);
    for start in 0..24 {
        tasks.push(spawn(crawl(network.clone(), store.clone(), start * 3)));
    }
    let mut best = heap::of::<Scored, _>(|| BinaryHeap::with_capacity(16));
    let mut sum = 0.0;
    for round in 0.. {
        if !heap::more() {
            break;
        }
        {
            let mut store = store.borrow_mut();
            let store = &mut *store;
            if round % 3 == 0 {
                store.segments.clear();
                (0..4).for_each(|part| store.index(part * 100..part * 100 + 100));
            }
            if round % 3 == 1 {
                store.merge();
            }
            for query in &queries[round % 8 * 5..][..5] {
                best.clear();
                for segment in &mut store.segments {
                    segment.search(query, &store.documents, &mut best);
                }
                sum += best.iter().map(|scored| f64::from(scored.score)).sum::<f64>();
            }
            sum += store.weigh() + store.weigh();
        }
        for _ in 0..30 {
            sum += turn(&mut tasks, &network) as f64;
        }
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
