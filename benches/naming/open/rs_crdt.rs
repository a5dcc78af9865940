//! Documents that several write at once: items linked by raw pointers, found by client and clock, integrated where they
//! belong whatever came first; text, maps and lists; updates in columns of bytes; sets of what was deleted; undo.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

pub type ClientID = u64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ID {
    client: ClientID,
    clock: u32,
}

#[derive(Default)]
pub struct ClientHasher(u64);
impl Hasher for ClientHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(7) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
}
type Table<K, V> = HashMap<K, V, BuildHasherDefault<ClientHasher>>;

// ---- what items hold ----

pub struct KeyText {
    text: String,
    number: u32,
}

/// The keys of maps and formats, by number.
pub struct Names {
    list: Vec<Name>,
}

#[derive(Clone)]
pub struct Name(Rc<KeyText>);
impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.0.number == other.0.number
    }
}
impl Eq for Name {}
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.number);
    }
}

#[derive(Clone)]
pub enum Any {
    Null,
    Bool(bool),
    Number(f64),
    BigInt(i64),
    Text(String),
    List(Vec<Any>),
}

pub struct Embed {
    value: Any,
    height: u32,
}

pub enum ItemContent {
    String(String),
    Any(Vec<Any>),
    Deleted(u32),
    Format { key: Name, value: Any },
    Embed(Box<Embed>),
}

impl ItemContent {
    fn len(&self) -> u32 {
        match self {
            ItemContent::String(s) => s.len() as u32,
            ItemContent::Any(values) => values.len() as u32,
            ItemContent::Deleted(len) => *len,
            ItemContent::Format { .. } | ItemContent::Embed(_) => 1,
        }
    }
    fn splice(&mut self, offset: u32) -> ItemContent {
        let at = offset as usize;
        match self {
            ItemContent::String(s) => {
                let rest = string_of(&s[at..]);
                s.truncate(at);
                ItemContent::String(rest)
            }
            ItemContent::Any(values) => {
                let mut rest = heap::of::<Any, _>(|| Vec::with_capacity(4));
                rest.extend(values.drain(at..));
                ItemContent::Any(rest)
            }
            ItemContent::Deleted(len) => {
                let rest = *len - offset;
                *len = offset;
                ItemContent::Deleted(rest)
            }
            _ => unreachable!(),
        }
    }
}

/// No item holds more text than this.
const STRING: usize = 32;

fn string_of(s: &str) -> String {
    let mut copy = heap::of::<u8, _>(|| String::with_capacity(STRING.max(s.len())));
    copy.push_str(s);
    copy
}

const DELETED: u8 = 1;
const COUNTABLE: u8 = 2;
const KEEP: u8 = 4;

pub struct Item {
    id: ID,
    len: u32,
    info: u8,
    left: Option<ItemPtr>,
    right: Option<ItemPtr>,
    origin: Option<ID>,
    right_origin: Option<ID>,
    parent: BranchPtr,
    parent_sub: Option<Name>,
    content: ItemContent,
}

impl Item {
    fn last_id(&self) -> ID {
        ID { client: self.id.client, clock: self.id.clock + self.len - 1 }
    }
    fn is_deleted(&self) -> bool {
        self.info & DELETED != 0
    }
    fn counts(&self) -> bool {
        self.info & (DELETED | COUNTABLE) == COUNTABLE
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ItemPtr(NonNull<Item>);
impl Deref for ItemPtr {
    type Target = Item;
    fn deref(&self) -> &Item {
        unsafe { self.0.as_ref() }
    }
}
impl DerefMut for ItemPtr {
    fn deref_mut(&mut self) -> &mut Item {
        unsafe { self.0.as_mut() }
    }
}
impl ItemPtr {
    fn new(item: Item) -> Self {
        ItemPtr(NonNull::from(Box::leak(heap::of::<Item, _>(|| Box::new(item)))))
    }
}

#[derive(Clone, Copy, Default)]
pub struct Marker {
    item: Option<ItemPtr>,
    index: u32,
    used: u32,
}

pub trait Observer {
    fn changed(&mut self, item: &Item, deleted: bool);
}

/// How much came and went.
pub struct Tally {
    seen: [u32; 4],
    last: Option<ID>,
}
impl Observer for Tally {
    fn changed(&mut self, item: &Item, deleted: bool) {
        self.seen[usize::from(deleted)] += item.len;
        self.seen[2 + (item.id.clock & 1) as usize] ^= item.id.client as u32;
        self.last = Some(item.id);
    }
}

/// A shared type: what it holds is a list, or a map, or both.
pub struct Branch {
    number: u32,
    start: Option<ItemPtr>,
    map: Table<Name, ItemPtr>,
    content_len: u32,
    ticks: u32,
    markers: [Marker; 8],
    observers: Vec<Box<dyn Observer>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BranchPtr(NonNull<Branch>);
impl Deref for BranchPtr {
    type Target = Branch;
    fn deref(&self) -> &Branch {
        unsafe { self.0.as_ref() }
    }
}
impl DerefMut for BranchPtr {
    fn deref_mut(&mut self) -> &mut Branch {
        unsafe { self.0.as_mut() }
    }
}

// ---- where items are found ----

pub struct ClientBlockList {
    list: Vec<ItemPtr>,
    integrated: u64,
}

impl ClientBlockList {
    /// By interpolation first, as clocks lie rather evenly.
    #[inline(never)]
    fn find_pivot(&self, clock: u32) -> Option<usize> {
        let last = self.list.last()?;
        let (mut left, mut right) = (0usize, self.list.len() - 1);
        let end = last.id.clock + last.len - 1;
        if clock > end {
            return None;
        }
        let mut mid = (u64::from(clock) * right as u64 / u64::from(end.max(1))) as usize;
        while left <= right {
            let item = &self.list[mid];
            if item.id.clock <= clock {
                if clock < item.id.clock + item.len {
                    return Some(mid);
                }
                left = mid + 1;
            } else {
                right = mid.checked_sub(1)?;
            }
            mid = (left + right) / 2;
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq)]
pub struct Span {
    start: u32,
    end: u32,
}

#[derive(Default)]
pub struct Spans {
    list: Vec<Span>,
}

#[derive(Default)]
pub struct DeleteSet {
    clients: BTreeMap<ClientID, Spans>,
}

impl DeleteSet {
    fn add(&mut self, id: ID, len: u32) {
        let spans = &mut heap::tree::<ClientID, Spans, _>(|| self.clients.entry(id.client).or_default()).list;
        if spans.capacity() == 0 {
            *spans = heap::of::<Span, _>(|| Vec::with_capacity(8));
        }
        match spans.last_mut() {
            Some(last) if last.end == id.clock => last.end += len,
            _ => spans.push(Span { start: id.clock, end: id.clock + len }),
        }
    }
    fn squash(&mut self) {
        for Spans { list: spans } in self.clients.values_mut() {
            spans.sort_unstable_by_key(|s| s.start);
            let mut kept = 0;
            for i in 1..spans.len() {
                if spans[i].start <= spans[kept].end {
                    spans[kept].end = spans[kept].end.max(spans[i].end);
                } else {
                    kept += 1;
                    spans[kept] = spans[i];
                }
            }
            spans.truncate(kept + 1);
        }
    }
}

#[derive(Default, Debug, Clone, Copy)]
pub struct Stats {
    integrated: u64,
    conflicts: u64,
    splits: u64,
    squashed: u64,
    deleted: u64,
    marker_hits: u64,
    undone: u64,
}

pub struct Doc {
    client: ClientID,
    clients: Table<ClientID, ClientBlockList>,
    roots: [BranchPtr; 3],
    deleted: DeleteSet,
    undo: VecDeque<Span>,
    before_origin: Vec<ItemPtr>,
    conflicting: Vec<ItemPtr>,
    local: bool,
    names: Rc<Names>,
    stats: Stats,
}

impl Doc {
    fn new(client: ClientID, names: Rc<Names>) -> Box<Doc> {
        let root = |number| {
            let mut observers = heap::of::<Box<dyn Observer>, _>(|| Vec::<Box<dyn Observer>>::with_capacity(1));
            observers.push(heap::of::<Tally, _>(|| Box::new(Tally { seen: [0; 4], last: None })));
            let map = heap::table::<Name, ItemPtr, _>(|| Table::with_capacity_and_hasher(96, Default::default()));
            let branch = Branch { number, start: None, map, content_len: 0, ticks: 0, markers: [Marker::default(); 8], observers };
            BranchPtr(NonNull::from(Box::leak(heap::of::<Branch, _>(|| Box::new(branch)))))
        };
        let doc = Doc {
            client,
            clients: heap::table::<ClientID, ClientBlockList, _>(|| Table::with_capacity_and_hasher(12, Default::default())),
            roots: [root(0), root(1), root(2)],
            deleted: DeleteSet::default(),
            undo: heap::of::<Span, _>(|| VecDeque::with_capacity(64)),
            before_origin: heap::of::<ItemPtr, _>(|| Vec::with_capacity(64)),
            conflicting: heap::of::<ItemPtr, _>(|| Vec::with_capacity(64)),
            local: false,
            names,
            stats: Stats::default(),
        };
        heap::of::<Doc, _>(|| Box::new(doc))
    }

    fn clock_of(&self, client: ClientID) -> u32 {
        self.clients.get(&client).and_then(|c| c.list.last()).map_or(0, |item| item.id.clock + item.len)
    }

    fn item_at(&self, id: ID) -> Option<ItemPtr> {
        let blocks = self.clients.get(&id.client)?;
        Some(blocks.list[blocks.find_pivot(id.clock)?])
    }

    /// The item that begins with `id`; what holds it is cut in two if need be.
    fn clean_start(&mut self, id: ID) -> Option<ItemPtr> {
        let item = self.item_at(id)?;
        if item.id.clock == id.clock { Some(item) } else { Some(self.split(item, id.clock - item.id.clock)) }
    }

    fn clean_end(&mut self, id: ID) -> Option<ItemPtr> {
        let item = self.item_at(id)?;
        if item.last_id().clock != id.clock {
            self.split(item, id.clock - item.id.clock + 1);
        }
        Some(item)
    }

    #[inline(never)]
    fn split(&mut self, mut item: ItemPtr, offset: u32) -> ItemPtr {
        self.stats.splits += 1;
        let id = ID { client: item.id.client, clock: item.id.clock + offset };
        let content = item.content.splice(offset);
        let mut rest = ItemPtr::new(Item {
            id,
            len: item.len - offset,
            info: item.info,
            left: Some(item),
            right: item.right,
            origin: Some(ID { client: id.client, clock: id.clock - 1 }),
            right_origin: item.right_origin,
            parent: item.parent,
            parent_sub: item.parent_sub.clone(),
            content,
        });
        if let Some(mut right) = item.right {
            right.left = Some(rest);
        } else if let Some(name) = rest.parent_sub.clone() {
            *rest.parent.map.get_mut(&name).unwrap() = rest;
        }
        item.right = Some(rest);
        item.len = offset;
        let blocks = self.clients.get_mut(&id.client).unwrap();
        let at = blocks.find_pivot(item.id.clock).unwrap();
        blocks.list.insert(at + 1, rest);
        rest
    }

    /// Puts an item where it belongs among those that were put at the same place without knowing of it.
    #[inline(never)]
    fn integrate(&mut self, mut item: ItemPtr) {
        self.stats.integrated += 1;
        let mut parent = item.parent;
        item.left = item.origin.and_then(|id| self.clean_end(id));
        item.right = item.right_origin.and_then(|id| self.clean_start(id));
        let mut at = match item.left {
            Some(left) => left.right,
            None => match &item.parent_sub {
                Some(name) => {
                    let mut first = parent.map.get(name).copied();
                    while let Some(left) = first.and_then(|f| f.left) {
                        first = Some(left);
                    }
                    first
                }
                None => parent.start,
            },
        };
        let mut left = item.left;
        self.before_origin.clear();
        self.conflicting.clear();
        while let Some(other) = at.filter(|_| at != item.right) {
            self.stats.conflicts += 1;
            self.before_origin.push(other);
            self.conflicting.push(other);
            if other.origin == item.origin {
                if other.id.client < item.id.client {
                    left = at;
                    self.conflicting.clear();
                } else if other.right_origin == item.right_origin {
                    break;
                }
            } else {
                let origin = other.origin.and_then(|id| self.item_at(id));
                let Some(origin) = origin.filter(|o| self.before_origin.contains(o)) else { break };
                if !self.conflicting.contains(&origin) {
                    left = at;
                    self.conflicting.clear();
                }
            }
            at = other.right;
        }
        item.left = left;
        match left {
            Some(mut left) => item.right = left.right.replace(item),
            None => match item.parent_sub.clone() {
                Some(name) => {
                    let mut first = parent.map.get(&name).copied();
                    while let Some(left) = first.and_then(|f| f.left) {
                        first = Some(left);
                    }
                    item.right = first;
                }
                None => item.right = parent.start.replace(item),
            },
        }
        if let Some(mut right) = item.right {
            right.left = Some(item);
        } else if let Some(name) = item.parent_sub.clone() {
            heap::table::<Name, ItemPtr, _>(|| parent.map.insert(name, item));
            if let Some(before) = item.left {
                self.delete(before);
            }
        }
        if item.parent_sub.is_none() && item.counts() {
            parent.content_len += item.len;
            if !self.local {
                parent.markers = [Marker::default(); 8];
            }
        }
        let (id, superseded) = (item.id, item.parent_sub.is_some() && item.right.is_some());
        if !self.clients.contains_key(&id.client) {
            let blocks = ClientBlockList { list: heap::of::<ItemPtr, _>(|| Vec::with_capacity(256)), integrated: 0 };
            heap::table::<ClientID, ClientBlockList, _>(|| self.clients.insert(id.client, blocks));
        }
        let blocks = self.clients.get_mut(&id.client).unwrap();
        blocks.integrated += 1;
        blocks.list.push(item);
        parent.observers.iter_mut().for_each(|o| o.changed(&item, false));
        if superseded {
            self.delete(item);
        } else {
            self.try_squash(id.client);
        }
    }

    /// Text that goes on where text of the same client ended becomes one item with it.
    fn try_squash(&mut self, client: ClientID) {
        let blocks = self.clients.get_mut(&client).unwrap();
        let [.., a, b] = &mut blocks.list[..] else { return };
        let (mut a, b) = (*a, *b);
        if a.right != Some(b) || b.origin != Some(a.last_id()) || a.right_origin != b.right_origin || a.info != b.info || a.parent_sub.is_some() {
            return;
        }
        let (ItemContent::String(first), ItemContent::String(second)) = (&mut a.content, &b.content) else { return };
        if first.len() + second.len() > STRING {
            return;
        }
        first.push_str(second);
        a.len += b.len;
        a.right = b.right;
        if let Some(mut right) = b.right {
            right.left = Some(a);
        }
        self.before_origin.clear();
        self.conflicting.clear();
        blocks.list.pop();
        drop(unsafe { Box::from_raw(b.0.as_ptr()) });
        self.stats.squashed += 1;
    }

    #[inline(never)]
    fn delete(&mut self, mut item: ItemPtr) {
        if item.is_deleted() {
            return;
        }
        let mut parent = item.parent;
        if item.counts() && item.parent_sub.is_none() {
            parent.content_len -= item.len;
            if !self.local {
                parent.markers = [Marker::default(); 8];
            }
        }
        item.info |= DELETED;
        if item.info & KEEP == 0 {
            item.content = ItemContent::Deleted(item.len);
        }
        self.stats.deleted += u64::from(item.len);
        self.deleted.add(item.id, item.len);
        parent.observers.iter_mut().for_each(|o| o.changed(&item, true));
    }

    // ---- positions ----

    /// What is left and right of the place before the character `index`.
    #[inline(never)]
    fn position(&mut self, mut branch: BranchPtr, index: u32) -> (Option<ItemPtr>, Option<ItemPtr>) {
        branch.ticks += 1;
        let nearest = branch.markers.iter().filter(|m| m.item.is_some() && m.index <= index).max_by_key(|m| m.index).copied();
        let (mut at, mut left) = (branch.start, None);
        let mut passed = 0;
        if let Some(marker) = nearest {
            self.stats.marker_hits += 1;
            passed = marker.index;
            left = marker.item.and_then(|i| i.left);
            at = marker.item;
        }
        let mut steps = 0;
        while let Some(item) = at {
            if item.counts() {
                if passed + item.len > index {
                    if steps > 20 {
                        let oldest = (0..8).min_by_key(|&i| branch.markers[i].used).unwrap();
                        branch.markers[oldest] = Marker { item: at, index: passed, used: branch.ticks };
                    }
                    if passed == index {
                        return (left, at);
                    }
                    let right = self.split(item, index - passed);
                    return (at, Some(right));
                }
                passed += item.len;
            }
            steps += 1;
            left = at;
            at = item.right;
        }
        (left, None)
    }

    fn create(&mut self, parent: BranchPtr, left: Option<ItemPtr>, right: Option<ItemPtr>, parent_sub: Option<Name>, content: ItemContent) -> ItemPtr {
        let id = ID { client: self.client, clock: self.clock_of(self.client) };
        let countable = if matches!(content, ItemContent::Format { .. }) { 0 } else { COUNTABLE };
        let item = Item { id, len: content.len(), info: countable, left, right, origin: left.map(|l| l.last_id()), right_origin: right.map(|r| r.id), parent, parent_sub, content };
        let item = ItemPtr::new(item);
        self.integrate(item);
        item
    }

    fn insert_text(&mut self, index: u32, text: &str) {
        let body = self.roots[0];
        let (left, right) = self.position(body, index);
        let start = self.clock_of(self.client);
        self.local = true;
        self.create(body, left, right, None, ItemContent::String(string_of(text)));
        self.local = false;
        shift_markers(body, index, text.len() as i32);
        self.undo.push_back(Span { start, end: start + text.len() as u32 });
        if self.undo.len() > 40 {
            self.undo.pop_front();
        }
    }

    fn format(&mut self, index: u32, len: u32, name: usize, value: Any) {
        let body = self.roots[0];
        for (at, value) in [(index, value), (index + len, Any::Null)] {
            let (left, right) = self.position(body, at);
            let key = self.names.list[name].clone();
            self.create(body, left, right, None, ItemContent::Format { key, value });
        }
    }

    fn remove(&mut self, root: usize, index: u32, mut len: u32) {
        let (_, mut at) = self.position(self.roots[root], index);
        shift_markers(self.roots[root], index, -(len as i32));
        self.local = true;
        while let Some(item) = at.filter(|_| len > 0) {
            if item.counts() {
                if item.len > len {
                    self.split(item, len);
                }
                len -= item.len;
                self.delete(item);
            }
            at = item.right;
        }
        self.local = false;
    }

    fn set(&mut self, name: usize, value: Any) {
        let (meta, name) = (self.roots[1], self.names.list[name].clone());
        let left = meta.map.get(&name).copied();
        let mut values = heap::of::<Any, _>(|| Vec::with_capacity(4));
        values.push(value);
        self.create(meta, left, None, Some(name), ItemContent::Any(values));
    }

    fn insert_row(&mut self, index: u32, r: u64) {
        let rows = self.roots[2];
        let (left, right) = self.position(rows, index);
        let mut values = heap::of::<Any, _>(|| Vec::with_capacity(4));
        for k in 0..1 + r % 4 {
            values.push(any(r >> (6 * k)));
        }
        let content = if r >> 40 & 7 == 0 {
            let embed = Embed { value: any(r >> 9), height: r as u32 & 63 };
            ItemContent::Embed(heap::of::<Embed, _>(|| Box::new(embed)))
        } else {
            ItemContent::Any(values)
        };
        let len = content.len() as i32;
        self.local = true;
        self.create(rows, left, right, None, content);
        self.local = false;
        shift_markers(rows, index, len);
    }

    /// Takes back what this client wrote last.
    fn undo(&mut self) {
        let Some(span) = self.undo.pop_back() else { return };
        let mut clock = span.start;
        while clock < span.end {
            let Some(item) = self.clean_start(ID { client: self.client, clock }) else { break };
            if item.id.clock + item.len > span.end {
                self.split(item, span.end - clock);
            }
            clock += item.len;
            self.delete(item);
        }
        self.stats.undone += 1;
    }

    #[inline(never)]
    fn text_hash(&self) -> u64 {
        let (mut hash, mut at, mut bold) = (0u64, self.roots[0].start, 0);
        while let Some(item) = at {
            match &item.content {
                ItemContent::String(s) if !item.is_deleted() => hash = s.bytes().fold(hash, |h, b| h.rotate_left(5) ^ u64::from(b)),
                ItemContent::Format { key, value } if !item.is_deleted() => bold ^= key.0.number as u64 + weigh(value) as u64,
                _ => (),
            }
            at = item.right;
        }
        hash ^ bold << 48
    }

    #[inline(never)]
    fn rows_weight(&self) -> f64 {
        let (mut sum, mut at) = (0.0, self.roots[2].start);
        while let Some(item) = at {
            if item.counts() {
                sum += match &item.content {
                    ItemContent::Any(values) => values.iter().map(weigh).sum(),
                    ItemContent::Embed(embed) => weigh(&embed.value) + f64::from(embed.height),
                    _ => 0.0,
                };
            }
            at = item.right;
        }
        for (name, item) in self.roots[1].map.iter() {
            if let ItemContent::Any(values) = &item.content {
                sum += weigh(&values[0]) + name.0.text.len() as f64;
            }
        }
        sum
    }
}

/// What begins at `index` or later has moved; what was taken away is forgotten.
fn shift_markers(mut branch: BranchPtr, index: u32, by: i32) {
    for marker in &mut branch.markers {
        if marker.item.is_some() && marker.index >= index {
            if by < 0 && marker.index < index + by.unsigned_abs() {
                marker.item = None;
            } else {
                marker.index = marker.index.wrapping_add_signed(by);
            }
        }
    }
}

impl Drop for Doc {
    fn drop(&mut self) {
        for blocks in self.clients.values() {
            blocks.list.iter().for_each(|item| drop(unsafe { Box::from_raw(item.0.as_ptr()) }));
        }
        self.roots.iter().for_each(|root| drop(unsafe { Box::from_raw(root.0.as_ptr()) }));
    }
}

fn any(r: u64) -> Any {
    match r % 6 {
        0 => Any::Null,
        1 => Any::Bool(r & 8 != 0),
        2 => Any::Number((r >> 3 & 0xffff) as f64 / 8.0),
        3 => Any::BigInt((r >> 4) as i64 & 0xff_ffff),
        4 => Any::Text(string_of(&WORDS[r as usize % WORDS.len()][..3])),
        _ => {
            let mut list = heap::of::<Any, _>(|| Vec::with_capacity(4));
            (0..r >> 8 & 3).for_each(|k| list.push(any((r >> (5 + k)) % 31)));
            Any::List(list)
        }
    }
}

fn weigh(value: &Any) -> f64 {
    match value {
        Any::Null => 0.5,
        Any::Bool(b) => f64::from(u8::from(*b)),
        Any::Number(n) => *n,
        Any::BigInt(n) => *n as f64 * 1e-3,
        Any::Text(text) => text.len() as f64,
        Any::List(list) => list.iter().map(weigh).sum(),
    }
}

// ---- updates: each kind of number in a column of its own ----

#[derive(Default)]
pub struct RunLength {
    bytes: Vec<u8>,
    last: Option<u64>,
    count: u32,
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

impl RunLength {
    fn with_capacity(n: usize) -> Self {
        RunLength { bytes: heap::of::<u8, _>(|| Vec::with_capacity(n)), last: None, count: 0 }
    }
    fn write(&mut self, value: u64) {
        if self.last == Some(value) {
            self.count += 1;
            return;
        }
        self.flush();
        (self.last, self.count) = (Some(value), 1);
    }
    fn flush(&mut self) {
        if let Some(value) = self.last.take() {
            put(&mut self.bytes, value);
            put(&mut self.bytes, u64::from(self.count));
        }
    }
}

pub struct RunReader<'a> {
    bytes: &'a [u8],
    at: usize,
    value: u64,
    left: u32,
}

impl RunReader<'_> {
    fn read(&mut self) -> u64 {
        if self.left == 0 {
            self.value = get(self.bytes, &mut self.at);
            self.left = get(self.bytes, &mut self.at) as u32;
        }
        self.left -= 1;
        self.value
    }
}

pub struct Update {
    infos: RunLength,
    clients: RunLength,
    clocks: RunLength,
    lens: RunLength,
    subs: RunLength,
    strings: Vec<u8>,
    values: VecDeque<Any>,
    items: u32,
}

impl Update {
    fn new() -> Self {
        let column = || RunLength::with_capacity(1024);
        let values = heap::of::<Any, _>(|| VecDeque::with_capacity(256));
        Update { infos: column(), clients: column(), clocks: column(), lens: column(), subs: column(), strings: heap::of::<u8, _>(|| Vec::with_capacity(4096)), values, items: 0 }
    }

    fn clear(&mut self) {
        for column in [&mut self.infos, &mut self.clients, &mut self.clocks, &mut self.lens, &mut self.subs] {
            column.bytes.clear();
            column.last = None;
        }
        self.strings.clear();
        self.values.clear();
        self.items = 0;
    }

    fn put_id(&mut self, id: ID) {
        self.clients.write(id.client);
        self.clocks.write(u64::from(id.clock));
    }

    /// What `doc` has of its own client from `clock` on.
    #[inline(never)]
    fn write_items(&mut self, doc: &Doc, clock: u32) {
        let Some(blocks) = doc.clients.get(&doc.client) else { return };
        let Some(first) = blocks.find_pivot(clock) else { return };
        for item in &blocks.list[first..] {
            let offset = clock.saturating_sub(item.id.clock);
            let origin = if offset > 0 { Some(ID { client: doc.client, clock: clock - 1 }) } else { item.origin };
            let kind = match item.content {
                ItemContent::String(_) => 0,
                ItemContent::Any(_) => 1,
                ItemContent::Deleted(_) => 2,
                ItemContent::Format { .. } => 3,
                ItemContent::Embed(_) => 4,
            };
            let info = kind | u64::from(origin.is_some()) << 3 | u64::from(item.right_origin.is_some()) << 4 | u64::from(item.parent_sub.is_some()) << 5 | u64::from(item.parent.number) << 6 | u64::from(item.info & COUNTABLE) << 7;
            self.infos.write(info);
            self.put_id(ID { client: doc.client, clock: item.id.clock + offset });
            origin.into_iter().chain(item.right_origin).for_each(|id| self.put_id(id));
            if let Some(name) = &item.parent_sub {
                self.subs.write(u64::from(name.0.number));
            }
            self.lens.write(u64::from(item.len - offset));
            match &item.content {
                ItemContent::String(s) => self.strings.extend_from_slice(&s.as_bytes()[offset as usize..]),
                ItemContent::Any(values) => values[offset as usize..].iter().for_each(|v| self.values.push_back(v.clone())),
                ItemContent::Format { key, value } => {
                    self.subs.write(u64::from(key.0.number));
                    self.values.push_back(Any::clone(value));
                }
                ItemContent::Embed(embed) => {
                    self.lens.write(u64::from(embed.height));
                    self.values.push_back(embed.value.clone());
                }
                ItemContent::Deleted(_) => (),
            }
            self.items += 1;
        }
        for column in [&mut self.infos, &mut self.clients, &mut self.clocks, &mut self.lens, &mut self.subs] {
            column.flush();
        }
    }

    #[inline(never)]
    fn apply(&mut self, doc: &mut Doc) {
        fn reader(column: &RunLength) -> RunReader<'_> {
            RunReader { bytes: &column.bytes, at: 0, value: 0, left: 0 }
        }
        let (mut infos, mut clients, mut clocks, mut lens, mut subs) = (reader(&self.infos), reader(&self.clients), reader(&self.clocks), reader(&self.lens), reader(&self.subs));
        let (mut text, mut values) = (0, self.values.iter());
        let mut id = || ID { client: clients.read(), clock: clocks.read() as u32 };
        for _ in 0..self.items {
            let info = infos.read();
            let own = id();
            let origin = (info >> 3 & 1 != 0).then(&mut id);
            let right_origin = (info >> 4 & 1 != 0).then(&mut id);
            let parent_sub = (info >> 5 & 1 != 0).then(|| doc.names.list[subs.read() as usize].clone());
            let len = lens.read() as u32;
            let mut next = || values.next().unwrap().clone();
            let content = match info & 7 {
                0 => {
                    text += len as usize;
                    ItemContent::String(string_of(std::str::from_utf8(&self.strings[text - len as usize..text]).unwrap()))
                }
                1 => {
                    let mut list = heap::of::<Any, _>(|| Vec::with_capacity(4));
                    (0..len).for_each(|_| list.push(next()));
                    ItemContent::Any(list)
                }
                2 => ItemContent::Deleted(len),
                3 => {
                    let value = next();
                    ItemContent::Format { key: doc.names.list[subs.read() as usize].clone(), value }
                }
                _ => {
                    let embed = Embed { value: next(), height: lens.read() as u32 };
                    ItemContent::Embed(heap::of::<Embed, _>(|| Box::new(embed)))
                }
            };
            let deleted = if info & 7 == 2 { DELETED } else { 0 };
            let parent = doc.roots[(info >> 6 & 3) as usize];
            let flags = (info >> 8) as u8 & COUNTABLE | deleted;
            let item = ItemPtr::new(Item { id: own, len, info: flags, left: None, right: None, origin, right_origin, parent, parent_sub, content });
            doc.integrate(item);
        }
    }
}

#[inline(never)]
fn apply_deletes(doc: &mut Doc, deletes: &DeleteSet) {
    for (&client, spans) in &deletes.clients {
        for span in &spans.list {
            let mut clock = span.start;
            while clock < span.end {
                let Some(item) = doc.clean_start(ID { client, clock }) else { break };
                if item.id.clock + item.len > span.end {
                    doc.split(item, span.end - clock);
                }
                clock += item.len;
                doc.delete(item);
            }
        }
    }
}

const WORDS: [&str; 12] = ["shared ", "writing ", "needs ", "clocks ", "and ", "causal ", "order ", "while ", "replicas ", "converge ", "slowly ", "again "];

fn edit(doc: &mut Doc) {
    let r = heap::random() >> 7;
    let (len, rows) = (doc.roots[0].content_len, doc.roots[2].content_len);
    let at = (r >> 8) as u32 % (len + 1);
    match r % 16 {
        0..=7 => {
            let mut at = at;
            for k in 0..1 + r % 5 {
                let word = WORDS[(r >> (20 + 4 * k)) as usize % 12];
                doc.insert_text(at, word);
                at += word.len() as u32;
            }
        }
        8 | 9 if len > 3000 => doc.remove(0, at.min(len - 20), 1 + (r >> 30) as u32 % 18),
        10 if len > 100 => doc.format(at.min(len - 30), 1 + (r >> 30) as u32 % 20, (r >> 20) as usize % 5, Any::Bool(true)),
        11 => doc.undo(),
        12 | 13 => doc.set((r >> 20) as usize % 60, any(r >> 4)),
        14 if rows > 300 => doc.remove(2, (r >> 8) as u32 % (rows - 10), 1 + (r >> 30) as u32 % 8),
        _ => doc.insert_row((r >> 8) as u32 % (rows + 1), r >> 3),
    }
}

fn main() {
    heap::init();
    let mut list = heap::of::<Name, _>(|| Vec::with_capacity(64));
    for number in 0..60 {
        let text = string_of(WORDS[number as usize % 12]);
        list.push(Name(heap::rc::<KeyText, _>(|| Rc::new(KeyText { text, number }))));
    }
    let names = heap::rc::<Names, _>(|| Rc::new(Names { list }));
    let mut docs = heap::of::<Box<Doc>, _>(|| Vec::with_capacity(4));
    let mut update = heap::of::<Update, _>(|| Box::new(Update::new()));
    *update = Update::new();
    let (mut rounds, mut differ, mut sum) = (0u64, 0, 0.0);
    let mut stats = Stats::default();
    while heap::more() {
        if docs.is_empty() {
            docs.extend((1..=4).map(|client| Doc::new(client * 7919, names.clone())));
        }
        docs.iter_mut().for_each(|doc| (0..12).for_each(|_| edit(doc)));
        for from in 0..docs.len() {
            for to in 0..docs.len() {
                if from == to {
                    continue;
                }
                update.clear();
                let known = docs[to].clock_of(docs[from].client);
                update.write_items(&docs[from], known);
                update.apply(&mut docs[to]);
            }
        }
        if rounds % 8 == 7 {
            docs.iter_mut().for_each(|doc| doc.deleted.squash());
            for from in 0..docs.len() {
                let deletes = std::mem::take(&mut docs[from].deleted);
                (0..docs.len()).filter(|&to| to != from).for_each(|to| apply_deletes(&mut docs[to], &deletes));
                docs[from].deleted = deletes;
            }
            let hashes = docs.iter().map(|d| d.text_hash()).fold((u64::MAX, 0), |(and, or), h| (and & h, or | h));
            differ += u32::from(hashes.0 != hashes.1);
            sum += docs.iter().map(|d| d.rows_weight()).sum::<f64>();
        }
        rounds += 1;
        if docs[0].clients.values().map(|c| c.list.len()).sum::<usize>() > 12_000 {
            stats = docs[1].stats;
            docs.clear();
        }
    }
    if std::env::var("SHOW").is_ok() {
        eprintln!("rounds {rounds} differ {differ} sum {sum} {stats:?} now {:?}", docs.first().map(|d| (d.stats, d.roots[0].content_len, d.roots[2].content_len)));
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
