//! A node of a ledger: transactions of several kinds in a pool by fee and by sender, blocks that a machine of states
//! collects, executes and seals, accounts with a journal, a trie of hexadecimal digits, caches linked by index.
#[path = "../heap.rs"]
mod heap;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::{Add, Index, IndexMut, Sub};

// ---- numbers and hashes ----

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct U256 {
    limbs: [u64; 4],
}
impl U256 {
    const ZERO: U256 = U256 { limbs: [0; 4] };
    const fn from(n: u64) -> U256 {
        U256 { limbs: [n, 0, 0, 0] }
    }
    fn overflowing(self, other: &U256, negative: bool) -> (U256, bool) {
        let mut carry = negative;
        let mut out = U256::ZERO;
        for ((o, &a), &b) in out.limbs.iter_mut().zip(&self.limbs).zip(&other.limbs) {
            let (x, c1) = a.overflowing_add(if negative { !b } else { b });
            let (x, c2) = x.overflowing_add(u64::from(carry));
            carry = c1 | c2;
            *o = x;
        }
        (out, carry != negative)
    }
    fn checked_sub(self, other: &U256) -> Option<U256> {
        let (out, borrowed) = self.overflowing(other, true);
        (!borrowed).then_some(out)
    }
    fn times(self, n: u64) -> U256 {
        let mut carry = 0u128;
        let mut out = U256::ZERO;
        for (o, &a) in out.limbs.iter_mut().zip(&self.limbs) {
            carry += u128::from(a) * u128::from(n);
            *o = carry as u64;
            carry >>= 64;
        }
        out
    }
}
impl Add for U256 {
    type Output = U256;
    fn add(self, other: U256) -> U256 {
        self.overflowing(&other, false).0
    }
}
impl Sub for U256 {
    type Output = U256;
    fn sub(self, other: U256) -> U256 {
        self.checked_sub(&other).expect("below zero")
    }
}
impl Ord for U256 {
    fn cmp(&self, other: &U256) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }
}
impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &U256) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Address([u8; 20]);
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct B256([u8; 32]);
#[derive(Clone, Copy)]
pub struct Signature([u8; 64]);

static mut ROUND: [u64; 8] = [0; 8];

pub struct Sponge {
    lanes: [u64; 8],
    absorbed: u64,
    buffer: [u8; 32],
    filled: u8,
}
impl Sponge {
    const fn new() -> Self {
        Sponge { lanes: [0; 8], absorbed: 0, buffer: [0; 32], filled: 0 }
    }
    fn permute(&mut self) {
        for r in 0..2 {
            for i in 0..8 {
                let next = self.lanes[(i + 1) & 7];
                self.lanes[i] = (self.lanes[i] ^ next.rotate_left(11 + i as u32)).wrapping_mul(unsafe { ROUND[(i + r) & 7] });
            }
        }
    }
    #[inline(never)]
    fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = self.filled as usize;
            let (now, later) = rest.split_at(rest.len().min(32 - at));
            self.buffer[at..at + now.len()].copy_from_slice(now);
            self.filled += now.len() as u8;
            if self.filled == 32 {
                self.absorb();
            }
            rest = later;
        }
    }
    fn absorb(&mut self) {
        for (lane, chunk) in self.lanes.iter_mut().zip(self.buffer.chunks_exact(8)) {
            *lane ^= u64::from_le_bytes(chunk.try_into().unwrap());
        }
        self.absorbed += u64::from(self.filled);
        self.filled = 0;
        self.permute();
    }
    fn finish(&mut self) -> B256 {
        self.buffer[self.filled as usize..].fill(1);
        self.absorb();
        let mut out = B256::default();
        for (chunk, lane) in out.0.chunks_exact_mut(8).zip(&self.lanes) {
            chunk.copy_from_slice(&lane.to_le_bytes());
        }
        self.lanes = [0; 8];
        out
    }
}

#[derive(Default)]
pub struct FbHasher(u64);
impl Hasher for FbHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0u64, |w, &b| w << 8 | u64::from(b));
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn write_usize(&mut self, _: usize) {}
}
type Map<K, V> = HashMap<K, V, BuildHasherDefault<FbHasher>>;

fn map_of<K: Hash + Eq, V>(capacity: usize) -> Map<K, V> {
    heap::table::<K, V, _>(|| Map::with_capacity_and_hasher(capacity, Default::default()))
}
fn vec_of<T>(capacity: usize) -> Vec<T> {
    heap::of::<T, _>(|| Vec::with_capacity(capacity))
}

// ---- transactions ----

#[derive(Clone)]
pub enum TxKind {
    Create,
    Call(Address),
}
pub struct AccessListItem {
    address: Address,
    slot: u64,
}
pub struct BlobSidecar {
    commitments: [[u8; 48]; 2],
    proof_bytes: u32,
}
pub enum Transaction {
    Legacy { nonce: u64, gas_price: u64, gas_limit: u32, to: TxKind, value: U256 },
    Eip1559 { nonce: u64, max_fee: u64, priority_fee: u64, gas_limit: u32, to: TxKind, value: U256, access_list: Vec<AccessListItem> },
    Blob { nonce: u64, max_fee: u64, blob_fee: u64, to: Address, value: U256, sidecar: Option<Box<BlobSidecar>> },
}
pub struct Recovered {
    transaction: Transaction,
    signature: Signature,
    hash: B256,
    sender: Address,
}

pub trait TxEnvelope {
    fn nonce(&self) -> u64;
    fn effective_tip(&self, base_fee: u64) -> Option<u64>;
    fn gas_limit(&self) -> u32;
    fn value(&self) -> &U256;
    fn to(&self) -> Option<Address>;
}
impl TxEnvelope for Transaction {
    fn nonce(&self) -> u64 {
        match self {
            Transaction::Legacy { nonce, .. } | Transaction::Eip1559 { nonce, .. } | Transaction::Blob { nonce, .. } => *nonce,
        }
    }
    fn effective_tip(&self, base_fee: u64) -> Option<u64> {
        match self {
            Transaction::Legacy { gas_price, .. } => gas_price.checked_sub(base_fee),
            Transaction::Eip1559 { max_fee, priority_fee, .. } => Some(max_fee.checked_sub(base_fee)?.min(*priority_fee)),
            Transaction::Blob { max_fee, blob_fee, .. } => Some(max_fee.checked_sub(base_fee)? + blob_fee / 8),
        }
    }
    fn gas_limit(&self) -> u32 {
        match self {
            Transaction::Legacy { gas_limit, .. } => *gas_limit,
            Transaction::Eip1559 { gas_limit, access_list, .. } => gas_limit + 24 * access_list.len() as u32,
            Transaction::Blob { sidecar, .. } => 210 + sidecar.as_ref().map_or(0, |s| s.proof_bytes),
        }
    }
    fn value(&self) -> &U256 {
        match self {
            Transaction::Legacy { value, .. } | Transaction::Eip1559 { value, .. } | Transaction::Blob { value, .. } => value,
        }
    }
    fn to(&self) -> Option<Address> {
        match self {
            Transaction::Legacy { to: TxKind::Call(to), .. } | Transaction::Eip1559 { to: TxKind::Call(to), .. } | Transaction::Blob { to, .. } => Some(*to),
            _ => None,
        }
    }
}
impl Recovered {
    #[inline(never)]
    fn seal(&mut self, sponge: &mut Sponge) {
        sponge.update(&self.sender.0);
        sponge.update(&self.transaction.nonce().to_le_bytes());
        for limb in &self.transaction.value().limbs {
            sponge.update(&limb.to_le_bytes());
        }
        if let Transaction::Eip1559 { access_list, .. } = &self.transaction {
            for item in access_list {
                sponge.update(&item.address.0[..8]);
                sponge.update(&item.slot.to_le_bytes());
            }
        }
        if let Transaction::Blob { sidecar: Some(sidecar), .. } = &self.transaction {
            sidecar.commitments.iter().for_each(|c| sponge.update(c));
        }
        self.hash = sponge.finish();
        for (i, s) in self.signature.0.iter_mut().enumerate() {
            *s = self.hash.0[i & 31] ^ self.sender.0[i % 20];
        }
    }
    #[inline(never)]
    fn verify(&self) -> bool {
        self.signature.0.chunks_exact(4).enumerate().all(|(k, s)| (0..4).all(|j| s[j] == self.hash.0[(4 * k + j) & 31] ^ self.sender.0[(4 * k + j) % 20]))
    }
}

// ---- the trie ----

#[derive(Clone, Copy, PartialEq)]
pub struct Nibbles {
    len: u8,
    data: [u8; 40],
}
impl Nibbles {
    fn unpack(address: &Address) -> Nibbles {
        let mut n = Nibbles { len: 40, data: [0; 40] };
        for (pair, b) in n.data.chunks_exact_mut(2).zip(&address.0) {
            pair[0] = b >> 4;
            pair[1] = b & 15;
        }
        n
    }
    fn from(from: &[u8]) -> Nibbles {
        let mut n = Nibbles { len: from.len() as u8, data: [0; 40] };
        n.data[..from.len()].copy_from_slice(from);
        n
    }
    fn as_slice(&self) -> &[u8] {
        &self.data[..self.len as usize]
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrieAccount {
    nonce: u64,
    balance: U256,
    storage_root: u64,
}

pub struct BranchNode {
    children: [Option<Box<TrieNode>>; 16],
    state_mask: u16,
    dirty: Cell<bool>,
    hash: Cell<B256>,
}
pub enum TrieNode {
    Leaf { key: Nibbles, value: TrieAccount },
    Extension { prefix: Nibbles, child: Box<TrieNode> },
    Branch(Box<BranchNode>),
}
#[derive(Default)]
pub struct TrieStats {
    lookups: u64,
    hashed: u64,
    splits: u64,
}
pub struct Trie {
    root: Option<Box<TrieNode>>,
    stats: TrieStats,
}

fn node(n: TrieNode) -> Box<TrieNode> {
    heap::of::<TrieNode, _>(|| Box::new(n))
}
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl Trie {
    #[inline(never)]
    fn get(&mut self, address: &Address) -> Option<&TrieAccount> {
        self.stats.lookups += 1;
        let path = Nibbles::unpack(address);
        let mut rest = path.as_slice();
        let mut at = self.root.as_deref()?;
        loop {
            match at {
                TrieNode::Leaf { key, value } => return (key.as_slice() == rest).then_some(value),
                TrieNode::Extension { prefix, child } => {
                    rest = rest.strip_prefix(prefix.as_slice())?;
                    at = child;
                }
                TrieNode::Branch(branch) => {
                    at = branch.children[rest[0] as usize].as_deref()?;
                    rest = &rest[1..];
                }
            }
        }
    }
    fn insert(&mut self, address: &Address, value: TrieAccount) {
        let path = Nibbles::unpack(address);
        Self::insert_at(&mut self.root, path.as_slice(), value, &mut self.stats);
    }
    #[inline(never)]
    fn insert_at(slot: &mut Option<Box<TrieNode>>, rest: &[u8], new: TrieAccount, stats: &mut TrieStats) {
        let Some(at) = slot.as_deref_mut() else {
            *slot = Some(node(TrieNode::Leaf { key: Nibbles::from(rest), value: new }));
            return;
        };
        match at {
            TrieNode::Leaf { key, value } if key.as_slice() == rest => {
                *value = new;
                return;
            }
            TrieNode::Branch(branch) => {
                branch.dirty.set(true);
                branch.state_mask |= 1 << rest[0];
                return Self::insert_at(&mut branch.children[rest[0] as usize], &rest[1..], new, stats);
            }
            TrieNode::Extension { prefix, child } if rest.starts_with(prefix.as_slice()) => {
                let TrieNode::Branch(branch) = child.as_mut() else { panic!("an extension before no branch") };
                let rest = &rest[prefix.len as usize..];
                branch.dirty.set(true);
                branch.state_mask |= 1 << rest[0];
                return Self::insert_at(&mut branch.children[rest[0] as usize], &rest[1..], new, stats);
            }
            _ => stats.splits += 1,
        }
        // Both part here: a branch, and before it what they have in common.
        let old = *slot.take().unwrap();
        let branch = BranchNode { children: Default::default(), state_mask: 0, dirty: Cell::new(true), hash: Cell::new(B256::default()) };
        let mut branch = heap::of::<BranchNode, _>(|| Box::new(branch));
        let (old_key, shared) = match &old {
            TrieNode::Leaf { key, .. } | TrieNode::Extension { prefix: key, .. } => (*key, common(key.as_slice(), rest)),
            TrieNode::Branch(_) => unreachable!(),
        };
        let tail = Nibbles::from(&old_key.as_slice()[shared + 1..]);
        let first = old_key.data[shared];
        branch.children[first as usize] = Some(match old {
            TrieNode::Leaf { value, .. } => node(TrieNode::Leaf { key: tail, value }),
            TrieNode::Extension { child, .. } if tail.len == 0 => child,
            TrieNode::Extension { child, .. } => node(TrieNode::Extension { prefix: tail, child }),
            TrieNode::Branch(_) => unreachable!(),
        });
        branch.state_mask = 1 << first | 1 << rest[shared];
        Self::insert_at(&mut branch.children[rest[shared] as usize], &rest[shared + 1..], new, stats);
        let branch = node(TrieNode::Branch(branch));
        *slot = Some(if shared == 0 { branch } else { node(TrieNode::Extension { prefix: Nibbles::from(&rest[..shared]), child: branch }) });
    }
    #[inline(never)]
    fn hash(at: &TrieNode, sponge: &mut Sponge, stats: &mut TrieStats) -> B256 {
        match at {
            TrieNode::Leaf { key, value } => {
                stats.hashed += 1;
                sponge.update(key.as_slice());
                sponge.update(&value.nonce.to_le_bytes());
                value.balance.limbs.iter().for_each(|l| sponge.update(&l.to_le_bytes()));
                sponge.update(&value.storage_root.to_le_bytes());
                sponge.finish()
            }
            TrieNode::Extension { prefix, child } => {
                let below = Self::hash(child, sponge, stats);
                sponge.update(prefix.as_slice());
                sponge.update(&below.0);
                sponge.finish()
            }
            TrieNode::Branch(branch) if !branch.dirty.get() => branch.hash.get(),
            TrieNode::Branch(branch) => {
                let mut sum = [0u64; 4];
                for (i, child) in branch.children.iter().enumerate() {
                    let Some(child) = child else { continue };
                    let below = Self::hash(child, sponge, stats);
                    for (s, chunk) in sum.iter_mut().zip(below.0.chunks_exact(8)) {
                        *s = s.rotate_left(i as u32 + 1) ^ u64::from_le_bytes(chunk.try_into().unwrap());
                    }
                }
                sponge.update(&branch.state_mask.to_le_bytes());
                sum.iter().for_each(|s| sponge.update(&s.to_le_bytes()));
                branch.hash.set(sponge.finish());
                branch.dirty.set(false);
                branch.hash.get()
            }
        }
    }
}

// ---- slabs, and a cache on one ----

pub enum Entry<T> {
    Occupied(T),
    Vacant(u32),
}
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    next: u32,
    len: usize,
}
impl<T> Slab<T> {
    fn with_capacity(n: usize) -> Self {
        Slab { entries: vec_of::<Entry<T>>(n), next: NONE, len: 0 }
    }
    fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        let at = self.next;
        if let Some(entry) = self.entries.get_mut(at as usize) {
            if let Entry::Vacant(next) = entry {
                self.next = *next;
            }
            *entry = Entry::Occupied(value);
            return at;
        }
        self.entries.push(Entry::Occupied(value));
        self.entries.len() as u32 - 1
    }
    fn remove(&mut self, at: u32) -> T {
        match std::mem::replace(&mut self.entries[at as usize], Entry::Vacant(self.next)) {
            Entry::Occupied(value) => {
                self.next = at;
                self.len -= 1;
                value
            }
            Entry::Vacant(_) => panic!("removed before"),
        }
    }
}
impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, at: u32) -> &T {
        let Entry::Occupied(value) = &self.entries[at as usize] else { panic!("vacant") };
        value
    }
}
impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        let Entry::Occupied(value) = &mut self.entries[at as usize] else { panic!("vacant") };
        value
    }
}
const NONE: u32 = u32::MAX;

pub struct LruNode<K, V> {
    key: K,
    value: V,
    prev: u32,
    next: u32,
}
pub struct LruMap<K, V> {
    index: Map<K, u32>,
    slab: Slab<LruNode<K, V>>,
    head: u32,
    tail: u32,
    limit: usize,
    hits: u64,
    misses: u64,
}
impl<K: Hash + Eq + Copy, V> LruMap<K, V> {
    fn new(limit: usize) -> Self {
        LruMap { index: map_of::<K, u32>(limit * 2), slab: Slab::with_capacity(limit + 1), head: NONE, tail: NONE, limit, hits: 0, misses: 0 }
    }
    fn unlink(&mut self, at: u32) {
        let (prev, next) = (self.slab[at].prev, self.slab[at].next);
        if prev == NONE { self.head = next } else { self.slab[prev].next = next }
        if next == NONE { self.tail = prev } else { self.slab[next].prev = prev }
    }
    fn push_front(&mut self, at: u32) {
        let head = self.head;
        self.slab[at].prev = NONE;
        self.slab[at].next = head;
        if head == NONE { self.tail = at } else { self.slab[head].prev = at }
        self.head = at;
    }
    #[inline(never)]
    fn get_or_insert(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if let Some(&at) = self.index.get(&key) {
            self.hits += 1;
            if self.head != at {
                self.unlink(at);
                self.push_front(at);
            }
            return &mut self.slab[at].value;
        }
        self.misses += 1;
        if self.slab.len >= self.limit {
            let last = self.tail;
            self.unlink(last);
            let old = self.slab.remove(last);
            self.index.remove(&old.key);
        }
        let at = self.slab.insert(LruNode { key, value: make(), prev: NONE, next: NONE });
        self.push_front(at);
        self.index.insert(key, at);
        &mut self.slab[at].value
    }
}

// ---- the pool ----

pub struct PooledTx {
    tx: Recovered,
    next_of_sender: u32,
    arrived: u32,
}
#[derive(Clone, Copy)]
pub struct SenderQueue {
    first: u32,
    last: u32,
    pending: u16,
    next_nonce: u64,
}
#[derive(PartialEq, Eq)]
pub struct FeeEntry {
    tip: u64,
    arrived: u32,
    id: u32,
}
impl Ord for FeeEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.tip.cmp(&other.tip).then(other.arrived.cmp(&self.arrived))
    }
}
impl PartialOrd for FeeEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Default)]
pub struct PoolMetrics {
    inserted: u64,
    rejected: u64,
    dropped: u64,
}
pub struct TxPool {
    inbound: VecDeque<Recovered>,
    txs: Slab<PooledTx>,
    senders: Map<Address, SenderQueue>,
    best: BinaryHeap<FeeEntry>,
    clock: u32,
    metrics: PoolMetrics,
}

impl TxPool {
    // Those whose turn it is stand in the heap: one of each sender.
    #[inline(never)]
    fn import(&mut self, base_fee: u64, sponge: &mut Sponge) {
        while let Some(mut tx) = self.inbound.pop_front() {
            tx.seal(sponge);
            let Some(queue) = self.senders.get_mut(&tx.sender) else { panic!("nobody's") };
            let Some(tip) = tx.transaction.effective_tip(base_fee).filter(|_| tx.transaction.nonce() == queue.next_nonce && tx.verify()) else {
                self.metrics.rejected += 1;
                continue;
            };
            self.clock += 1;
            self.metrics.inserted += 1;
            queue.next_nonce += 1;
            queue.pending += 1;
            let id = self.txs.insert(PooledTx { tx, next_of_sender: NONE, arrived: self.clock });
            if queue.first == NONE {
                queue.first = id;
                self.best.push(FeeEntry { tip, arrived: self.clock, id });
            } else {
                self.txs[queue.last].next_of_sender = id;
            }
            queue.last = id;
        }
    }
    #[inline(never)]
    fn pop_best(&mut self, base_fee: u64) -> Option<PooledTx> {
        let FeeEntry { id, .. } = self.best.pop()?;
        let pooled = self.txs.remove(id);
        let queue = self.senders.get_mut(&pooled.tx.sender)?;
        queue.first = pooled.next_of_sender;
        queue.pending -= 1;
        if queue.first != NONE {
            let next = &self.txs[queue.first];
            let tip = next.tx.transaction.effective_tip(base_fee).unwrap_or(0);
            self.best.push(FeeEntry { tip, arrived: next.arrived, id: queue.first });
        }
        Some(pooled)
    }
}

// ---- accounts and their journal ----

#[derive(Clone, Copy, Default)]
pub struct Account {
    balance: U256,
    nonce: u64,
    code: Option<u16>,
    touched: bool,
    storage_root: u64,
}
pub enum JournalEntry {
    BalanceChange { address: Address, old: U256 },
    NonceChange { address: Address },
    StorageChange { address: Address, slot: u64, had: U256 },
    AccountTouched { address: Address },
}
pub trait Database {
    fn account(&mut self, address: &Address) -> &mut Account;
    fn storage(&mut self, address: Address, slot: u64) -> &mut U256;
    fn checkpoint(&self) -> usize;
    fn journal(&mut self, entry: JournalEntry);
    fn revert(&mut self, checkpoint: usize);
}
pub struct State {
    accounts: BTreeMap<Address, Account>,
    storage: BTreeMap<(Address, u64), U256>,
    journal: Vec<JournalEntry>,
    reverted: u64,
}
impl Database for State {
    fn account(&mut self, address: &Address) -> &mut Account {
        self.accounts.get_mut(address).expect("no such account")
    }
    fn storage(&mut self, address: Address, slot: u64) -> &mut U256 {
        let storage = &mut self.storage;
        if !storage.contains_key(&(address, slot)) {
            heap::tree::<(Address, u64), U256, _>(|| storage.insert((address, slot), U256::ZERO));
        }
        storage.get_mut(&(address, slot)).unwrap()
    }
    fn checkpoint(&self) -> usize {
        self.journal.len()
    }
    fn journal(&mut self, entry: JournalEntry) {
        self.journal.push(entry);
    }
    #[inline(never)]
    fn revert(&mut self, checkpoint: usize) {
        for entry in self.journal.drain(checkpoint..).rev() {
            self.reverted += 1;
            match entry {
                JournalEntry::BalanceChange { address, old } => self.accounts.get_mut(&address).unwrap().balance = old,
                JournalEntry::NonceChange { address } => self.accounts.get_mut(&address).unwrap().nonce -= 1,
                JournalEntry::StorageChange { address, slot, had } => *self.storage.get_mut(&(address, slot)).unwrap() = had,
                JournalEntry::AccountTouched { address } => self.accounts.get_mut(&address).unwrap().touched = false,
            }
        }
    }
}

// ---- the machine that runs code ----

#[derive(Clone, Copy)]
pub enum Op {
    Push(u64),
    Add,
    Mul,
    Dup(u8),
    Swap,
    SLoad,
    SStore,
    Caller,
    JumpIf { target: u16 },
    Revert,
    Stop,
}
pub struct Interpreter {
    stack: Vec<U256>,
    gas: u32,
    steps: u64,
}
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    Success,
    Reverted,
    OutOfGas,
}
#[derive(Clone, Copy)]
pub struct Receipt {
    gas_used: u32,
    outcome: Outcome,
    hash: B256,
    cumulative: u64,
}
pub struct Evm<DB: Database> {
    db: DB,
    interpreter: Interpreter,
    codes: Vec<Box<[Op]>>,
    coinbase: Address,
    base_fee: u64,
    jumps: LruMap<(u16, u16), u32>,
}

impl<DB: Database> Evm<DB> {
    #[inline(never)]
    fn run(&mut self, number: u16, caller: Address, address: Address) -> Outcome {
        let vm = &mut self.interpreter;
        let code = &self.codes[number as usize];
        vm.stack.clear();
        let mut pc = 0;
        loop {
            vm.steps += 1;
            if vm.gas == 0 {
                return Outcome::OutOfGas;
            }
            vm.gas -= 1;
            match code[pc] {
                Op::Push(n) => vm.stack.push(U256::from(n)),
                Op::Add => {
                    let (a, b) = (vm.stack.pop().unwrap(), vm.stack.pop().unwrap());
                    vm.stack.push(a + b);
                }
                Op::Mul => {
                    let a = vm.stack.pop().unwrap();
                    let top = vm.stack.last_mut().unwrap();
                    *top = top.times(a.limbs[0] | 1);
                }
                Op::Dup(n) => vm.stack.push(vm.stack[vm.stack.len() - 1 - n as usize]),
                Op::Swap => {
                    let n = vm.stack.len();
                    vm.stack.swap(n - 1, n - 2);
                }
                Op::SLoad => {
                    let slot = vm.stack.pop().unwrap().limbs[0] % 4;
                    vm.stack.push(*self.db.storage(address, slot));
                }
                Op::SStore => {
                    let (slot, value) = (vm.stack.pop().unwrap().limbs[0] % 4, vm.stack.pop().unwrap());
                    let had = std::mem::replace(self.db.storage(address, slot), value);
                    self.db.journal(JournalEntry::StorageChange { address, slot, had });
                    self.db.account(&address).storage_root ^= value.limbs[0].rotate_left(slot as u32) ^ had.limbs[1];
                }
                Op::Caller => vm.stack.push(U256::from(u64::from(caller.0[3]))),
                Op::JumpIf { target } => {
                    *self.jumps.get_or_insert((number, target), || 0) += 1;
                    if vm.stack.pop().unwrap().limbs[0] & 3 != 0 {
                        pc = target as usize;
                        continue;
                    }
                }
                Op::Revert => return Outcome::Reverted,
                Op::Stop => return Outcome::Success,
            }
            pc += 1;
        }
    }
    #[inline(never)]
    fn transact(&mut self, tx: &Recovered) -> Receipt {
        let t = &tx.transaction;
        let fee = U256::from(u64::from(t.gas_limit())).times(self.base_fee);
        let start = self.db.checkpoint();
        let sender = self.db.account(&tx.sender);
        let (old, total) = (sender.balance, fee + *t.value());
        let Some(left) = old.checked_sub(&total).filter(|_| sender.nonce == t.nonce()) else {
            sender.nonce += 1;
            sender.touched = true;
            return Receipt { gas_used: 0, outcome: Outcome::OutOfGas, hash: tx.hash, cumulative: 0 };
        };
        sender.balance = left;
        sender.nonce += 1;
        sender.touched = true;
        self.db.journal(JournalEntry::NonceChange { address: tx.sender });
        self.db.journal(JournalEntry::BalanceChange { address: tx.sender, old });
        self.db.journal(JournalEntry::AccountTouched { address: tx.sender });
        let to = t.to().unwrap_or(self.coinbase);
        let receiver = self.db.account(&to);
        let had = receiver.balance;
        receiver.balance = had + *t.value();
        receiver.touched = true;
        let code = receiver.code;
        self.db.journal(JournalEntry::BalanceChange { address: to, old: had });
        self.interpreter.gas = t.gas_limit();
        let outcome = code.map_or(Outcome::Success, |code| self.run(code, tx.sender, to));
        if outcome != Outcome::Success {
            self.db.revert(start);
            let sender = self.db.account(&tx.sender);
            sender.nonce += 1;
            sender.balance = sender.balance - fee;
            sender.touched = true;
        }
        let miner = self.coinbase;
        let coinbase = self.db.account(&miner);
        coinbase.balance = coinbase.balance + fee;
        coinbase.touched = true;
        Receipt { gas_used: t.gas_limit() - self.interpreter.gas, outcome, hash: tx.hash, cumulative: 0 }
    }
}

// ---- blocks ----

pub struct Header {
    parent: B256,
    state_root: B256,
    number: u64,
    base_fee: u64,
    gas_used: u64,
}
pub struct Block {
    header: Header,
    transactions: Vec<Recovered>,
    receipts: Vec<Receipt>,
    parent: Option<Box<Block>>,
}
pub enum Stage {
    Idle,
    Collecting { block: Box<Block>, gas_left: u64 },
    Executing { block: Box<Block>, at: usize },
    Sealing { block: Box<Block>, touched: usize },
}

const ACCOUNTS: usize = 700;
const BLOCK_TXS: usize = 80;
const KEPT: usize = 24;

pub struct Node {
    evm: Evm<State>,
    pool: TxPool,
    trie: Trie,
    sponge: Sponge,
    stage: Stage,
    head: Option<Box<Block>>,
    blocks: u64,
    seen: LruMap<B256, u64>,
    addresses: Vec<Address>,
    outcomes: [u64; 3],
}

impl Node {
    #[inline(never)]
    fn gossip(&mut self, count: usize) {
        for i in 0..count {
            let r = heap::random() >> 6;
            let sender = self.addresses[r as usize % ACCOUNTS];
            let to = self.addresses[(r >> 12) as usize % ACCOUNTS];
            let nonce = self.pool.senders[&sender].next_nonce + u64::from(r >> 50 & 15 == 0);
            let (value, fee) = (U256::from((r >> 20) % 90_000), 10 + (r >> 30) % 50);
            let transaction = match i % 4 {
                0 | 1 => Transaction::Legacy { nonce, gas_price: fee, gas_limit: 60 + (r >> 40) as u32 % 100, to: if r & 15 == 0 { TxKind::Create } else { TxKind::Call(to) }, value },
                2 => {
                    let mut access_list = vec_of::<AccessListItem>(3);
                    access_list.extend((0..3).map(|k| AccessListItem { address: to, slot: k }));
                    Transaction::Eip1559 { nonce, max_fee: fee + 20, priority_fee: fee / 3, gas_limit: 90, to: TxKind::Call(to), value, access_list }
                }
                _ => {
                    let sidecar = (r & 1 == 0).then(|| heap::of::<BlobSidecar, _>(|| Box::new(BlobSidecar { commitments: [[r as u8; 48]; 2], proof_bytes: 40 })));
                    Transaction::Blob { nonce, max_fee: fee, blob_fee: r >> 40 & 63, to, value, sidecar }
                }
            };
            self.pool.inbound.push_back(Recovered { transaction, signature: Signature([0; 64]), hash: B256::default(), sender });
        }
    }
    /// One step of the machine; false when a block is done.
    fn advance(&mut self) -> bool {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => {
                let parent = self.head.take();
                let (hash, base_fee) = parent.as_ref().map_or((B256::default(), 10), |p| (p.header.state_root, (p.header.base_fee + p.header.gas_used / 4000).clamp(8, 16) - 1));
                let header = Header { parent: hash, state_root: B256::default(), number: self.blocks, base_fee, gas_used: 0 };
                let block = Block { header, transactions: vec_of(BLOCK_TXS), receipts: vec_of(BLOCK_TXS), parent };
                self.evm.base_fee = base_fee;
                self.evm.coinbase = self.addresses[self.blocks as usize % ACCOUNTS];
                Stage::Collecting { block: heap::of::<Block, _>(|| Box::new(block)), gas_left: 20_000 }
            }
            Stage::Collecting { mut block, mut gas_left } => {
                self.pool.import(block.header.base_fee, &mut self.sponge);
                while block.transactions.len() < BLOCK_TXS {
                    let Some(pooled) = self.pool.pop_best(block.header.base_fee) else { break };
                    let Some(left) = gas_left.checked_sub(u64::from(pooled.tx.transaction.gas_limit())) else {
                        self.pool.metrics.dropped += 1;
                        let sender = self.evm.db.account(&pooled.tx.sender);
                        sender.nonce += 1;
                        sender.touched = true;
                        break;
                    };
                    gas_left = left;
                    block.transactions.push(pooled.tx);
                }
                Stage::Executing { block, at: 0 }
            }
            Stage::Executing { mut block, at } if at < block.transactions.len() => {
                let until = block.transactions.len().min(at + 16);
                for i in at..until {
                    let mut receipt = self.evm.transact(&block.transactions[i]);
                    block.header.gas_used += u64::from(receipt.gas_used);
                    receipt.cumulative = block.header.gas_used;
                    *self.seen.get_or_insert(receipt.hash, || 0) += 1;
                    self.outcomes[receipt.outcome as usize] += 1;
                    block.receipts.push(receipt);
                }
                Stage::Executing { block, at: until }
            }
            Stage::Executing { block, .. } => Stage::Sealing { block, touched: 0 },
            Stage::Sealing { mut block, mut touched } => {
                for (address, account) in self.evm.db.accounts.iter_mut().filter(|(_, a)| a.touched) {
                    account.touched = false;
                    touched += 1;
                    self.trie.insert(address, TrieAccount { nonce: account.nonce, balance: account.balance, storage_root: account.storage_root });
                }
                self.evm.db.journal.clear();
                assert!(touched > 0 && block.header.number == self.blocks);
                block.header.state_root = Trie::hash(self.trie.root.as_deref().unwrap(), &mut self.sponge, &mut self.trie.stats);
                self.blocks += 1;
                self.head = Some(block);
                return false;
            }
        };
        true
    }
    #[inline(never)]
    fn check(&mut self, turn: usize) -> u64 {
        // What there is of money stays the same, and the trie knows what was touched.
        let total = self.evm.db.accounts.values().fold(U256::ZERO, |sum, a| sum + a.balance);
        assert_eq!(total, U256::from(50_000_000).times(ACCOUNTS as u64));
        let mut sum = 0;
        for k in 0..120 {
            let address = self.addresses[(turn * 37 + k * 5) % ACCOUNTS];
            let account = self.evm.db.accounts[&address];
            if let Some(found) = self.trie.get(&address) {
                assert!(found.balance == account.balance && found.nonce == account.nonce);
                sum += found.balance.limbs[0] & 0xff;
            }
        }
        // The chain: the newest are kept.
        let (mut depth, mut at) = (0, self.head.as_mut());
        while let Some(block) = at {
            depth += 1;
            sum += block.header.gas_used + block.receipts.iter().filter(|r| r.outcome == Outcome::Success).map(|r| r.cumulative & 15).sum::<u64>();
            if depth <= 2 {
                for receipt in block.receipts.iter().step_by(3) {
                    sum += *self.seen.get_or_insert(receipt.hash, || 1);
                }
            }
            if depth == KEPT {
                block.parent = None;
            }
            if let Some(parent) = &block.parent {
                assert!(parent.header.state_root == block.header.parent && parent.header.number + 1 == block.header.number);
            }
            at = block.parent.as_mut();
        }
        let storage = &self.evm.db.storage;
        let first = self.addresses[turn % ACCOUNTS];
        sum + storage.range((first, 0)..).take(100).map(|(&(a, slot), v)| u64::from(a.0[0]) + slot + (v.limbs[0] & 7)).sum::<u64>()
    }
}

fn codes() -> Vec<Box<[Op]>> {
    let mut codes = vec_of::<Box<[Op]>>(16);
    for n in 0..16u64 {
        let mut ops = vec_of::<Op>(24);
        ops.extend([Op::Push(n), Op::SLoad, Op::Push(n + 3), Op::Add, Op::Dup(0), Op::Push(n), Op::SStore]);
        ops.extend([Op::Caller, Op::Push(n * 7 + 1), Op::Swap, Op::Mul, Op::Push(3), Op::SLoad, Op::Add, Op::Push(n + 1), Op::SStore]);
        ops.extend([Op::Push(n + 1), Op::SLoad, Op::JumpIf { target: if n % 3 == 0 { 0 } else { 22 } }]);
        ops.extend([Op::Push(1), Op::JumpIf { target: 23 }, Op::Stop, if n % 5 == 1 { Op::Revert } else { Op::Stop }, Op::Stop]);
        assert_eq!(ops.len(), 24);
        codes.push(heap::of::<Op, _>(|| ops.into_boxed_slice()));
    }
    codes
}

fn main() {
    heap::init();
    heap::global("ROUND", &raw const ROUND, "u64 []");
    for i in 0..8u64 {
        unsafe { ROUND[i as usize] = (i * 2 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1 };
    }
    let mut addresses = vec_of::<Address>(ACCOUNTS);
    let mut accounts = BTreeMap::new();
    let mut senders = map_of::<Address, SenderQueue>(ACCOUNTS);
    for i in 0..ACCOUNTS {
        let mut address = Address::default();
        for (k, b) in address.0.iter_mut().enumerate() {
            // Some have much in common.
            *b = if k < 6 && i % 4 == 0 { 0x5a } else { (heap::random() >> 13) as u8 };
        }
        addresses.push(address);
        let code = (i % 2 == 0).then_some((i / 2 % 16) as u16);
        let account = Account { balance: U256::from(50_000_000), code, ..Account::default() };
        heap::tree::<Address, Account, _>(|| accounts.insert(address, account));
        senders.insert(address, SenderQueue { first: NONE, last: NONE, pending: 0, next_nonce: 0 });
    }
    let state = State { accounts, storage: BTreeMap::new(), journal: vec_of::<JournalEntry>(4096), reverted: 0 };
    let node = Node {
        evm: Evm {
            db: state,
            interpreter: Interpreter { stack: vec_of::<U256>(64), gas: 0, steps: 0 },
            codes: codes(),
            coinbase: addresses[1],
            base_fee: 10,
            jumps: LruMap::new(12),
        },
        pool: TxPool {
            inbound: heap::of::<Recovered, _>(|| VecDeque::with_capacity(512)),
            txs: Slab::with_capacity(2048),
            senders,
            best: heap::of::<FeeEntry, _>(|| BinaryHeap::with_capacity(1024)),
            clock: 0,
            metrics: PoolMetrics::default(),
        },
        trie: Trie { root: None, stats: TrieStats::default() },
        sponge: Sponge::new(),
        stage: Stage::Idle,
        head: None,
        blocks: 0,
        seen: LruMap::new(500),
        addresses,
        outcomes: [0; 3],
    };
    let mut node = heap::of::<Node, _>(|| Box::new(node));
    let mut sum = 0u64;
    for turn in 0usize.. {
        if !heap::more() {
            break;
        }
        if node.pool.txs.len < 1500 {
            node.gossip(96);
        }
        while node.advance() {}
        sum = sum.wrapping_add(node.check(turn));
    }
    if std::env::var("SHOW").is_ok() {
        let (p, t) = (&node.pool.metrics, &node.trie.stats);
        eprintln!(
            "sum {sum} blocks {} pool {} (+{} -{} !{}) outcomes {:?} steps {} reverted {} trie {}/{}/{} seen {}/{} jumps {}/{}",
            node.blocks, node.pool.txs.len, p.inserted, p.dropped, p.rejected, node.outcomes, node.evm.interpreter.steps, node.evm.db.reverted, t.lookups, t.hashed, t.splits, node.seen.hits, node.seen.misses, node.evm.jumps.hits, node.evm.jumps.misses
        );
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
