//! A store of sorted runs: a skip list in memory, tables of blocks with shared prefixes, filters, a cache of decoded
//! blocks, cursors that are merged by a heap, batches, compaction from level to level.
#[path = "../heap.rs"]
mod heap;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

const HEIGHT: usize = 8;
const BLOCK_BYTES: usize = 700;
const RESTART: usize = 8;
const MEMTABLE_BYTES: usize = 12_000;
const NONE: u32 = u32::MAX;

type Seq = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Put = 1,
    Delete = 2,
}

pub trait Comparator {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

#[derive(Default, Clone, Copy)]
pub struct Bytewise;

impl Comparator for Bytewise {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let common = a.len().min(b.len());
        for i in 0..common {
            if a[i] != b[i] {
                return a[i].cmp(&b[i]);
            }
        }
        a.len().cmp(&b.len())
    }
}

#[derive(Clone, Copy, Default)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start as usize..(self.start + self.len) as usize]
    }
}

/// The first bytes of a key, in the order of keys.
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => key.iter().rev().fold(0, |prefix, &byte| prefix >> 8 | u64::from(byte) << 56),
    }
}

/// What a cursor stands on.
#[derive(Clone, Copy)]
pub struct View<'a> {
    key: &'a [u8],
    value: &'a [u8],
    seq: Seq,
    kind: Kind,
}

// ---- in memory ----

pub struct Node {
    prefix: u64,
    seq: Seq,
    key: Span,
    value: Span,
    kind: Kind,
    height: u8,
    next: [u32; HEIGHT],
}

pub struct MemTable<C> {
    comparator: C,
    nodes: Vec<Node>,
    bytes: Vec<u8>,
    head: [u32; HEIGHT],
    compared: Cell<u64>,
}

impl<C: Comparator + Default> MemTable<C> {
    fn new() -> Self {
        MemTable {
            comparator: C::default(),
            nodes: heap::of::<Node, _>(|| Vec::with_capacity(512)),
            bytes: heap::of::<u8, _>(|| Vec::with_capacity(MEMTABLE_BYTES + 1024)),
            head: [NONE; HEIGHT],
            compared: Cell::new(0),
        }
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.bytes.clear();
        self.head = [NONE; HEIGHT];
    }

    /// The first node that is not before the key, newest first; `before` gets what links to it.
    #[inline(never)]
    fn lower_bound(&self, key: &[u8], seq: Seq, before: &mut [u32; HEIGHT]) -> u32 {
        let mut at = NONE;
        let first = prefix(key);
        for level in (0..HEIGHT).rev() {
            loop {
                let next = if at == NONE { self.head[level] } else { self.nodes[at as usize].next[level] };
                let Some(node) = self.nodes.get(next as usize) else { break };
                self.compared.set(self.compared.get() + 1);
                match node.prefix.cmp(&first).then_with(|| self.comparator.compare(node.key.of(&self.bytes), key)) {
                    Ordering::Less => at = next,
                    Ordering::Equal if node.seq > seq => at = next,
                    _ => break,
                }
            }
            before[level] = at;
        }
        if at == NONE { self.head[0] } else { self.nodes[at as usize].next[0] }
    }

    fn append(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }

    #[inline(never)]
    fn insert(&mut self, key: &[u8], value: &[u8], seq: Seq, kind: Kind) {
        let mut before = [NONE; HEIGHT];
        self.lower_bound(key, seq, &mut before);
        let prefix = prefix(key);
        let (key, value) = (self.append(key), self.append(value));
        let height = 1 + (heap::random() >> 20).trailing_ones().min(HEIGHT as u32 - 1) as usize;
        let number = self.nodes.len() as u32;
        let mut node = Node { prefix, seq, key, value, kind, height: height as u8, next: [NONE; HEIGHT] };
        for level in 0..height {
            let link = match before[level] {
                NONE => &mut self.head[level],
                at => &mut self.nodes[at as usize].next[level],
            };
            node.next[level] = std::mem::replace(link, number);
        }
        self.nodes.push(node);
    }

    fn get(&self, key: &[u8]) -> Option<View<'_>> {
        let at = self.lower_bound(key, Seq::MAX, &mut [NONE; HEIGHT]);
        let view = self.view(at)?;
        (view.key == key).then_some(view)
    }

    fn view(&self, at: u32) -> Option<View<'_>> {
        let node = self.nodes.get(at as usize)?;
        Some(View { key: node.key.of(&self.bytes), value: node.value.of(&self.bytes), seq: node.seq, kind: node.kind })
    }
}

// ---- tables ----

pub struct Filter {
    words: Box<[u64]>,
    probes: u32,
}

fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0x9E37_79B9_7F4A_7C15, |h: u64, &b| (h.rotate_left(5) ^ u64::from(b)).wrapping_mul(0x517c_c1b7_2722_0a95))
}

impl Filter {
    fn bits(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (mut h, delta, bits) = (hash as u32, (hash >> 32) as u32 | 1, self.words.len() as u32 * 64);
        (0..self.probes).map(move |_| {
            h = h.wrapping_add(delta);
            ((h % bits) as usize / 64, 1 << (h % bits % 64))
        })
    }
    fn add(&mut self, key: &[u8]) {
        for (word, bit) in self.bits(hash(key)) {
            self.words[word] |= bit;
        }
    }
    #[inline(never)]
    fn may_contain(&self, key: &[u8]) -> bool {
        self.bits(hash(key)).all(|(word, bit)| self.words[word] & bit != 0)
    }
}

pub struct Handle {
    last: Box<[u8]>,
    offset: u32,
    size: u32,
}

pub struct Table {
    id: u32,
    data: Vec<u8>,
    index: Vec<Handle>,
    filter: Filter,
    entries: u32,
    seeks: AtomicU32,
}

/// A block that is decoded: keys are whole again.
pub struct Block {
    entries: Vec<Entry>,
    keys: Vec<u8>,
    values: Vec<u8>,
}

#[derive(Clone, Copy)]
pub struct Entry {
    prefix: u64,
    key: Span,
    value: Span,
    seq: Seq,
    kind: Kind,
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
    fn take(&mut self, len: usize) -> &'a [u8] {
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }
}

pub struct Builder {
    id: u32,
    data: Vec<u8>,
    index: Vec<Handle>,
    filter: Filter,
    last: Vec<u8>,
    start: usize,
    in_block: usize,
    entries: u32,
}

impl Builder {
    fn new(id: u32, expected: usize) -> Self {
        let words = heap::of::<u64, _>(|| vec![0; expected.div_ceil(8).max(8)].into_boxed_slice());
        Builder {
            id,
            data: heap::of::<u8, _>(|| Vec::with_capacity(16384)),
            index: heap::of::<Handle, _>(|| Vec::with_capacity(32)),
            filter: Filter { words, probes: 4 },
            last: heap::of::<u8, _>(|| Vec::with_capacity(64)),
            start: 0,
            in_block: 0,
            entries: 0,
        }
    }

    #[inline(never)]
    fn add(&mut self, view: View<'_>) {
        let shared = if self.in_block % RESTART == 0 {
            0
        } else {
            self.last.iter().zip(view.key).take_while(|(a, b)| a == b).count()
        };
        put_varint(&mut self.data, shared as u64);
        put_varint(&mut self.data, (view.key.len() - shared) as u64);
        put_varint(&mut self.data, view.value.len() as u64);
        put_varint(&mut self.data, view.seq << 2 | view.kind as u64);
        self.data.extend_from_slice(&view.key[shared..]);
        self.data.extend_from_slice(view.value);
        self.filter.add(view.key);
        self.last.clear();
        self.last.extend_from_slice(view.key);
        self.in_block += 1;
        self.entries += 1;
        if self.data.len() - self.start >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let (offset, size) = (self.start as u32, (self.data.len() - self.start) as u32);
        let last = heap::of::<u8, _>(|| self.last.clone().into_boxed_slice());
        self.index.push(Handle { last, offset, size });
        self.start = self.data.len();
        self.in_block = 0;
    }

    fn finish(mut self) -> Arc<Table> {
        if self.in_block > 0 {
            self.end_block();
        }
        let Builder { id, data, index, filter, entries, .. } = self;
        heap::arc::<Table, _>(|| Arc::new(Table { id, data, index, filter, entries, seeks: AtomicU32::new(0) }))
    }
}

impl Table {
    #[inline(never)]
    fn decode(&self, number: usize) -> Block {
        let handle = &self.index[number];
        let mut block = Block {
            entries: heap::of::<Entry, _>(|| Vec::with_capacity(64)),
            keys: heap::of::<u8, _>(|| Vec::with_capacity(1024)),
            values: heap::of::<u8, _>(|| Vec::with_capacity(1024)),
        };
        let mut reader = Reader { bytes: &self.data[handle.offset as usize..(handle.offset + handle.size) as usize], at: 0 };
        let mut before = Span::default();
        while reader.at < reader.bytes.len() {
            let (shared, rest, value) = (reader.varint() as usize, reader.varint() as usize, reader.varint() as usize);
            let tag = reader.varint();
            let start = block.keys.len();
            for i in 0..shared {
                block.keys.push(block.keys[before.start as usize + i]);
            }
            block.keys.extend_from_slice(reader.take(rest));
            before = Span { start: start as u32, len: (shared + rest) as u32 };
            let value_at = Span { start: block.values.len() as u32, len: value as u32 };
            block.values.extend_from_slice(reader.take(value));
            let kind = if tag & 3 == 1 { Kind::Put } else { Kind::Delete };
            let prefix = prefix(before.of(&block.keys));
            block.entries.push(Entry { prefix, key: before, value: value_at, seq: tag >> 2, kind });
        }
        block
    }

    fn block_for(&self, key: &[u8]) -> usize {
        self.seeks.fetch_add(1, Relaxed);
        self.index.partition_point(|handle| Bytewise.compare(&handle.last, key) == Ordering::Less)
    }
}

impl Block {
    fn view(&self, number: usize) -> Option<View<'_>> {
        let entry = self.entries.get(number)?;
        Some(View { key: entry.key.of(&self.keys), value: entry.value.of(&self.values), seq: entry.seq, kind: entry.kind })
    }
    #[inline(never)]
    fn seek(&self, key: &[u8]) -> usize {
        let first = prefix(key);
        let less = |entry: &Entry| match entry.prefix.cmp(&first) {
            Ordering::Equal => Bytewise.compare(entry.key.of(&self.keys), key) == Ordering::Less,
            order => order == Ordering::Less,
        };
        self.entries.partition_point(less)
    }
}

// ---- the cache ----

pub struct Slot {
    key: (u32, u32),
    block: Rc<Block>,
    newer: u32,
    older: u32,
}

#[derive(Default)]
pub struct Cache {
    map: HashMap<(u32, u32), u32>,
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
    hits: u64,
    misses: u64,
}

impl Cache {
    fn unlink(&mut self, at: u32) {
        let Slot { newer, older, .. } = self.slots[at as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
    }
    fn link(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        self.slots[at as usize].newer = NONE;
        self.slots[at as usize].older = older;
        match older {
            NONE => self.oldest = at,
            _ => self.slots[older as usize].newer = at,
        }
    }
    #[inline(never)]
    fn get(&mut self, table: &Table, number: usize) -> Rc<Block> {
        let key = (table.id, number as u32);
        if let Some(&at) = self.map.get(&key) {
            self.hits += 1;
            if self.newest != at {
                self.unlink(at);
                self.link(at);
            }
            return self.slots[at as usize].block.clone();
        }
        self.misses += 1;
        let block = table.decode(number);
        let block = heap::rc::<Block, _>(|| Rc::new(block));
        let at = if self.slots.len() < self.slots.capacity() {
            self.slots.push(Slot { key, block: block.clone(), newer: NONE, older: NONE });
            self.slots.len() as u32 - 1
        } else {
            let at = self.oldest;
            self.unlink(at);
            self.map.remove(&self.slots[at as usize].key);
            let slot = &mut self.slots[at as usize];
            slot.key = key;
            slot.block = block.clone();
            at
        };
        self.map.insert(key, at);
        self.link(at);
        block
    }
}

// ---- cursors ----

pub trait Cursor {
    fn view(&self) -> Option<View<'_>>;
    fn advance(&mut self);
    fn seek(&mut self, key: &[u8]);
}

pub struct MemCursor<'a> {
    table: &'a MemTable<Bytewise>,
    at: u32,
}

impl Cursor for MemCursor<'_> {
    fn view(&self) -> Option<View<'_>> {
        self.table.view(self.at)
    }
    fn advance(&mut self) {
        self.at = self.table.nodes[self.at as usize].next[0];
    }
    fn seek(&mut self, key: &[u8]) {
        self.at = self.table.lower_bound(key, Seq::MAX, &mut [NONE; HEIGHT]);
    }
}

/// The tables of a level one after another, or one table.
pub struct LevelCursor<'a> {
    tables: &'a [Arc<Table>],
    cache: &'a RefCell<Cache>,
    table: usize,
    number: usize,
    block: Option<Rc<Block>>,
    entry: usize,
}

impl LevelCursor<'_> {
    fn load(&mut self) {
        self.block = None;
        while let Some(table) = self.tables.get(self.table) {
            if self.number < table.index.len() {
                self.block = Some(self.cache.borrow_mut().get(table, self.number));
                return;
            }
            self.table += 1;
            self.number = 0;
        }
    }
}

impl Cursor for LevelCursor<'_> {
    fn view(&self) -> Option<View<'_>> {
        self.block.as_ref()?.view(self.entry)
    }
    fn advance(&mut self) {
        self.entry += 1;
        if self.block.as_ref().is_some_and(|block| self.entry >= block.entries.len()) {
            self.number += 1;
            self.entry = 0;
            self.load();
        }
    }
    fn seek(&mut self, key: &[u8]) {
        let before = |table: &Arc<Table>| table.index.last().is_some_and(|handle| &*handle.last < key);
        self.table = self.tables.partition_point(before);
        self.number = self.tables.get(self.table).map_or(0, |table| table.block_for(key));
        self.load();
        self.entry = self.block.as_ref().map_or(0, |block| block.seek(key));
    }
}

/// The least of several cursors is at the root of a heap of their numbers.
pub struct Merge<'a> {
    cursors: Vec<Box<dyn Cursor + 'a>>,
    order: Vec<u16>,
}

impl<'a> Merge<'a> {
    fn before(&self, a: u16, b: u16) -> bool {
        match (self.cursors[a as usize].view(), self.cursors[b as usize].view()) {
            (Some(a), Some(b)) => Bytewise.compare(a.key, b.key).then(b.seq.cmp(&a.seq)) == Ordering::Less,
            (a, _) => a.is_some(),
        }
    }
    #[inline(never)]
    fn sift(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.order.len() && self.before(self.order[child], self.order[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.order.swap(least, at);
            at = least;
        }
    }
}

impl Cursor for Merge<'_> {
    fn view(&self) -> Option<View<'_>> {
        self.cursors[*self.order.first()? as usize].view()
    }
    fn advance(&mut self) {
        let least = self.order[0];
        self.cursors[least as usize].advance();
        self.sift(0);
    }
    fn seek(&mut self, key: &[u8]) {
        self.cursors.iter_mut().for_each(|cursor| cursor.seek(key));
        self.order.clear();
        self.order.extend(0..self.cursors.len() as u16);
        (0..self.order.len()).rev().for_each(|at| self.sift(at));
    }
}

// ---- the store ----

pub enum Op {
    Put { key: Vec<u8>, value: Vec<u8> },
    Delete { key: Vec<u8> },
    Add { key: Vec<u8>, delta: u32 },
}

#[derive(Default, Debug)]
pub struct Stats {
    puts: u64,
    gets: u64,
    found: u64,
    filtered: u64,
    scanned: u64,
    flushes: u64,
    compactions: u64,
}

pub struct Store {
    mem: MemTable<Bytewise>,
    levels: [Vec<Arc<Table>>; 3],
    cache: RefCell<Cache>,
    snapshots: BTreeMap<Seq, u32>,
    log: VecDeque<(Seq, Kind, u32)>,
    seq: Seq,
    next_id: u32,
    stats: Stats,
}

impl Store {
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) -> bool {
        self.stats.gets += 1;
        out.clear();
        if let Some(view) = self.mem.get(key) {
            out.extend_from_slice(view.value);
            return view.kind == Kind::Put;
        }
        for (number, level) in self.levels.iter().enumerate() {
            let tables = match number {
                0 => &level[..],
                _ => {
                    let at = level.partition_point(|t| t.index.last().is_some_and(|h| &*h.last < key));
                    level.get(at..at + 1).unwrap_or(&[])
                }
            };
            for table in tables.iter().rev() {
                if !table.filter.may_contain(key) {
                    self.stats.filtered += 1;
                    continue;
                }
                let number = table.block_for(key);
                if number == table.index.len() {
                    continue;
                }
                let block = self.cache.borrow_mut().get(table, number);
                let Some(view) = block.view(block.seek(key)) else { continue };
                if view.key == key {
                    out.extend_from_slice(view.value);
                    self.stats.found += 1;
                    return view.kind == Kind::Put;
                }
            }
        }
        false
    }

    #[inline(never)]
    fn write(&mut self, batch: &[Op], scratch: &mut Vec<u8>) {
        for op in batch {
            self.seq += 1;
            self.stats.puts += 1;
            let kind = match op {
                Op::Put { key, value } => {
                    self.mem.insert(key, value, self.seq, Kind::Put);
                    Kind::Put
                }
                Op::Delete { key } => {
                    self.mem.insert(key, &[], self.seq, Kind::Delete);
                    Kind::Delete
                }
                Op::Add { key, delta } => {
                    self.get(key, scratch);
                    let old = scratch.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                    self.mem.insert(key, &old.wrapping_add(*delta).to_le_bytes(), self.seq, Kind::Put);
                    Kind::Put
                }
            };
            if self.log.len() == 256 {
                self.log.pop_front();
            }
            self.log.push_back((self.seq, kind, self.mem.bytes.len() as u32));
        }
        if self.mem.bytes.len() > MEMTABLE_BYTES {
            self.flush();
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.stats.flushes += 1;
        self.next_id += 1;
        let mut builder = Builder::new(self.next_id, self.mem.nodes.len());
        let mut cursor = MemCursor { table: &self.mem, at: self.mem.head[0] };
        while let Some(view) = cursor.view() {
            builder.add(view);
            cursor.advance();
        }
        self.levels[0].push(builder.finish());
        self.mem.clear();
        if self.levels[0].len() > 3 {
            self.compact(0);
        }
        if self.levels[1].len() > 6 {
            self.compact(1);
        }
    }

    fn cursors(&self, from: usize, to: usize) -> Merge<'_> {
        let mut cursors = heap::of::<Box<dyn Cursor>, _>(|| Vec::with_capacity(8));
        for level in from..=to.min(2) {
            let runs = if level == 0 { self.levels[0].chunks(1) } else { self.levels[level].chunks(usize::MAX) };
            for tables in runs {
                let cursor = LevelCursor { tables, cache: &self.cache, table: 0, number: 0, block: None, entry: 0 };
                cursors.push(heap::of::<LevelCursor, _>(|| Box::new(cursor)) as Box<dyn Cursor>);
            }
        }
        Merge { cursors, order: heap::of::<u16, _>(|| Vec::with_capacity(8)) }
    }

    /// Merges a level into the next one; only the newest of each key is kept.
    #[inline(never)]
    fn compact(&mut self, level: usize) {
        self.stats.compactions += 1;
        let mut made = heap::of::<Arc<Table>, _>(|| Vec::with_capacity(8));
        let mut last = heap::of::<u8, _>(|| Vec::with_capacity(64));
        {
            let mut merge = self.cursors(level, level + 1);
            merge.seek(&[]);
            let mut id = self.next_id;
            let mut builder = Builder::new(id + 1, 400);
            while let Some(view) = merge.view() {
                if view.key != &last[..] {
                    last.clear();
                    last.extend_from_slice(view.key);
                    if view.kind == Kind::Put || level == 0 {
                        builder.add(view);
                    }
                    if builder.data.len() > 14_000 {
                        id += 1;
                        made.push(std::mem::replace(&mut builder, Builder::new(id + 1, 400)).finish());
                    }
                }
                merge.advance();
            }
            made.push(builder.finish());
            drop(merge);
            self.next_id = id + 1;
        }
        self.levels[level].clear();
        self.levels[level + 1] = made;
    }

    #[inline(never)]
    fn scan(&mut self, from: &[u8], limit: usize) -> u64 {
        let mut merge = self.cursors(0, 2);
        let memory = MemCursor { table: &self.mem, at: NONE };
        merge.cursors.push(heap::of::<MemCursor, _>(|| Box::new(memory)));
        merge.seek(from);
        let (mut sum, mut count) = (0, 0);
        while let Some(view) = merge.view() {
            if count == limit {
                break;
            }
            sum += view.value.iter().map(|&byte| u64::from(byte)).sum::<u64>() + view.seq;
            count += 1;
            merge.advance();
        }
        drop(merge);
        self.stats.scanned += count as u64;
        sum
    }
}

fn write_key(out: &mut Vec<u8>, random: u64) {
    const SPACES: [&[u8]; 4] = [b"a/", b"ix/", b"s/", b"n/"];
    out.clear();
    out.extend_from_slice(SPACES[(random & 3) as usize]);
    let mut number = (random >> 8) % 64 * ((random >> 20) % 64);
    for _ in 0..6 {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
    }
}

fn batches() -> Vec<Vec<Op>> {
    let mut batches = heap::of::<Vec<Op>, _>(|| Vec::with_capacity(64));
    for _ in 0..64 {
        let mut batch = heap::of::<Op, _>(|| Vec::with_capacity(8));
        for _ in 0..8 {
            let random = heap::random();
            let mut key = heap::of::<u8, _>(|| Vec::with_capacity(24));
            write_key(&mut key, random);
            batch.push(match random >> 40 & 7 {
                0 => Op::Delete { key },
                1 | 2 => Op::Add { key, delta: (random >> 50) as u32 },
                _ => {
                    let len = 8 + (random >> 44 & 31) as usize;
                    Op::Put { key, value: heap::of::<u8, _>(|| (0..len).map(|i| (random >> (i % 8)) as u8).collect()) }
                }
            });
        }
        batches.push(batch);
    }
    batches
}

fn main() {
    heap::init();
    let cache = Cache {
        map: heap::table::<(u32, u32), u32, _>(|| HashMap::with_capacity(100)),
        slots: heap::of::<Slot, _>(|| Vec::with_capacity(60)),
        newest: NONE,
        oldest: NONE,
        ..Cache::default()
    };
    let level = || heap::of::<Arc<Table>, _>(|| Vec::with_capacity(8));
    let store = Store {
        mem: MemTable::new(),
        levels: [level(), level(), level()],
        cache: RefCell::new(cache),
        snapshots: BTreeMap::new(),
        log: heap::of::<(Seq, Kind, u32), _>(|| VecDeque::with_capacity(256)),
        seq: 0,
        next_id: 0,
        stats: Stats::default(),
    };
    let mut store = heap::of::<Store, _>(|| Box::new(store));
    let batches = batches();
    let mut scratch = heap::of::<u8, _>(|| Vec::with_capacity(128));
    let mut key = heap::of::<u8, _>(|| Vec::with_capacity(64));
    let mut sum = 0;
    for round in 0.. {
        if !heap::more() {
            break;
        }
        store.write(&batches[(heap::random() >> 30) as usize % batches.len()], &mut scratch);
        for _ in 0..10 {
            write_key(&mut key, heap::random());
            sum += u64::from(store.get(&key, &mut scratch)) + scratch.len() as u64;
        }
        if round % 4 == 0 {
            write_key(&mut key, heap::random());
            sum += store.scan(&key, 40);
        }
        if round % 16 == 0 {
            let seq = store.seq;
            heap::tree::<Seq, u32, _>(|| store.snapshots.insert(seq, round as u32));
            if store.snapshots.len() > 40 {
                store.snapshots.pop_first();
            }
        }
        sum += store.snapshots.range(store.seq / 2..).take(3).map(|(_, &round)| u64::from(round & 1)).sum::<u64>();
    }
    if std::env::var("VERBOSE").is_ok() {
        let cache = store.cache.borrow();
        println!("{:?} hits {} misses {} levels {:?}", store.stats, cache.hits, cache.misses, store.levels.each_ref().map(Vec::len));
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
