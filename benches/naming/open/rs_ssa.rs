//! An optimizer for functions in SSA form: instructions, blocks and values in arenas with typed indices, lists linked
//! through side tables, dense bit sets, a worklist for constants, dominators, numbering of values in a table that
//! keeps the order of insertion, liveness, and a linear scan that gives registers out.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

// ---- entities ----

pub trait EntityRef: Copy + Eq {
    fn new(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! entity {
    ($($name:ident $prefix:literal),*) => {$(
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(u32);
        impl $name {
            const NONE: $name = $name(u32::MAX);
            fn expand(self) -> Option<$name> {
                (self != Self::NONE).then_some(self)
            }
        }
        impl EntityRef for $name {
            fn new(index: usize) -> Self {
                $name(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}
entity!(Inst "inst", Block "block", Value "v");

/// A table whose keys are made by it.
pub struct PrimaryMap<K, V> {
    elems: Vec<V>,
    unused: PhantomData<K>,
}

impl<K: EntityRef, V> PrimaryMap<K, V> {
    fn with_capacity(n: usize) -> Self {
        PrimaryMap { elems: heap::of::<V, _>(|| Vec::with_capacity(n)), unused: PhantomData }
    }
    fn push(&mut self, v: V) -> K {
        self.elems.push(v);
        K::new(self.elems.len() - 1)
    }
    fn keys(&self) -> impl DoubleEndedIterator<Item = K> {
        (0..self.elems.len()).map(K::new)
    }
    fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.elems.iter().enumerate().map(|(i, v)| (K::new(i), v))
    }
    fn len(&self) -> usize {
        self.elems.len()
    }
}

impl<K: EntityRef, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, k: K) -> &V {
        &self.elems[k.index()]
    }
}
impl<K: EntityRef, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, k: K) -> &mut V {
        &mut self.elems[k.index()]
    }
}

/// What more is known of another table's keys; the default where nothing was said.
pub struct SecondaryMap<K, V: Clone> {
    elems: Vec<V>,
    default: V,
    unused: PhantomData<K>,
}

impl<K: EntityRef, V: Clone> SecondaryMap<K, V> {
    fn new(default: V) -> Self {
        SecondaryMap { elems: heap::of::<V, _>(|| Vec::with_capacity(64)), default, unused: PhantomData }
    }
    fn clear(&mut self) {
        self.elems.clear();
    }
}

impl<K: EntityRef, V: Clone> Index<K> for SecondaryMap<K, V> {
    type Output = V;
    fn index(&self, k: K) -> &V {
        self.elems.get(k.index()).unwrap_or(&self.default)
    }
}
impl<K: EntityRef, V: Clone> IndexMut<K> for SecondaryMap<K, V> {
    fn index_mut(&mut self, k: K) -> &mut V {
        if k.index() >= self.elems.len() {
            self.elems.resize(k.index() + 1, self.default.clone());
        }
        &mut self.elems[k.index()]
    }
}

#[derive(Clone, Default)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    fn sized(bits: usize) -> Self {
        BitSet { words: heap::of::<u64, _>(|| vec![0; bits.div_ceil(64)]) }
    }
    fn insert(&mut self, bit: usize) -> bool {
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        let new = self.words[word] & mask == 0;
        self.words[word] |= mask;
        new
    }
    fn remove(&mut self, bit: usize) {
        self.words[bit / 64] &= !(1 << (bit % 64));
    }
    fn contains(&self, bit: usize) -> bool {
        self.words[bit / 64] >> (bit % 64) & 1 != 0
    }
    fn clear(&mut self) {
        self.words.iter_mut().for_each(|w| *w = 0);
    }
    fn union_with(&mut self, other: &BitSet) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            let both = *mine | *theirs;
            changed |= both != *mine;
            *mine = both;
        }
        changed
    }
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors((word != 0).then_some(word), |w| Some(w & (w - 1)).filter(|w| *w != 0))
                .map(move |w| i * 64 + w.trailing_zeros() as usize)
        })
    }
}

/// A hash table of indices to entries that lie in the order in which they came.
pub struct IndexTable<K, V> {
    slots: Vec<u32>,
    entries: Vec<IndexBucket<K, V>>,
}

pub struct IndexBucket<K, V> {
    hash: u64,
    key: K,
    value: V,
}

#[derive(Default)]
pub struct Fx(u64);
impl Hasher for Fx {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_i64(&mut self, n: i64) {
        self.write_u64(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl<K: Hash + Eq, V> IndexTable<K, V> {
    fn new() -> Self {
        let slots = heap::of::<u32, _>(|| vec![u32::MAX; 128]);
        IndexTable { slots, entries: heap::of::<IndexBucket<K, V>, _>(|| Vec::with_capacity(64)) }
    }
    fn clear(&mut self) {
        self.slots.iter_mut().for_each(|s| *s = u32::MAX);
        self.entries.clear();
    }
    fn place(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.slots.len() - 1)
    }
    fn get_or_insert(&mut self, key: K, value: V) -> &mut V {
        let mut hasher = Fx::default();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let mut at = self.place(hash);
        let mask = self.slots.len() - 1;
        loop {
            let slot = self.slots[at];
            if slot == u32::MAX {
                break;
            }
            let entry = &self.entries[slot as usize];
            if entry.hash == hash && entry.key == key {
                return &mut self.entries[slot as usize].value;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = self.entries.len() as u32;
        self.entries.push(IndexBucket { hash, key, value });
        if self.entries.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        &mut self.entries.last_mut().unwrap().value
    }
    #[cold]
    fn grow(&mut self) {
        let len = self.slots.len() * 2;
        self.slots = heap::of::<u32, _>(|| vec![u32::MAX; len]);
        for (i, entry) in self.entries.iter().enumerate() {
            let mut at = self.place(entry.hash);
            while self.slots[at] != u32::MAX {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = i as u32;
        }
    }
}

// ---- functions ----

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Opcode {
    Add,
    Sub,
    Mul,
    And,
    Xor,
    Less,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum InstData {
    Const(i64),
    Binary { op: Opcode, args: [Value; 2] },
    Load { base: Value, offset: i32 },
    Store { base: Value, value: Value, offset: i32 },
    Branch { cond: Value, then: Block, otherwise: Block },
    Jump(Block),
    Return(Value),
    Nop,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ValueDef {
    Result(Inst),
    Param { block: Block, index: u16 },
    Alias(Value),
}

pub struct BlockData {
    phis: Vec<Phi>,
    preds: Vec<Block>,
    loop_depth: u8,
}

pub struct Phi {
    value: Value,
    args: Vec<Value>,
}

#[derive(Clone, Copy, Default)]
pub struct Uses {
    count: u32,
    weight: f32,
}

/// Where an instruction lies: lists through a side table.
#[derive(Clone, Copy)]
pub struct InstNode {
    block: Block,
    prev: Inst,
    next: Inst,
    seq: u32,
}

#[derive(Clone, Copy)]
pub struct BlockNode {
    first: Inst,
    last: Inst,
}

pub struct Function {
    insts: PrimaryMap<Inst, InstData>,
    results: SecondaryMap<Inst, Value>,
    values: PrimaryMap<Value, ValueDef>,
    blocks: PrimaryMap<Block, BlockData>,
    inst_nodes: SecondaryMap<Inst, InstNode>,
    block_nodes: SecondaryMap<Block, BlockNode>,
}

impl Function {
    fn new() -> Self {
        let nowhere = InstNode { block: Block::NONE, prev: Inst::NONE, next: Inst::NONE, seq: 0 };
        Function {
            insts: PrimaryMap::with_capacity(256),
            results: SecondaryMap::new(Value::NONE),
            values: PrimaryMap::with_capacity(256),
            blocks: PrimaryMap::with_capacity(32),
            inst_nodes: SecondaryMap::new(nowhere),
            block_nodes: SecondaryMap::new(BlockNode { first: Inst::NONE, last: Inst::NONE }),
        }
    }
    fn clear(&mut self) {
        self.insts.elems.clear();
        self.results.clear();
        self.values.elems.clear();
        self.blocks.elems.clear();
        self.inst_nodes.clear();
        self.block_nodes.clear();
    }
    fn append(&mut self, block: Block, data: InstData) -> Value {
        let has_result = matches!(data, InstData::Const(_) | InstData::Binary { .. } | InstData::Load { .. });
        let inst = self.insts.push(data);
        let last = self.block_nodes[block].last;
        self.inst_nodes[inst] = InstNode { block, prev: last, next: Inst::NONE, seq: inst.0 * 4 };
        match last.expand() {
            Some(last) => self.inst_nodes[last].next = inst,
            None => self.block_nodes[block].first = inst,
        }
        self.block_nodes[block].last = inst;
        if !has_result {
            return Value::NONE;
        }
        let value = self.values.push(ValueDef::Result(inst));
        self.results[inst] = value;
        value
    }
    fn remove(&mut self, inst: Inst) {
        let InstNode { block, prev, next, .. } = self.inst_nodes[inst];
        match prev.expand() {
            Some(prev) => self.inst_nodes[prev].next = next,
            None => self.block_nodes[block].first = next,
        }
        match next.expand() {
            Some(next) => self.inst_nodes[next].prev = prev,
            None => self.block_nodes[block].last = prev,
        }
        self.inst_nodes[inst].block = Block::NONE;
        self.insts[inst] = InstData::Nop;
    }
    fn block_insts(&self, block: Block) -> impl Iterator<Item = Inst> + '_ {
        std::iter::successors(self.block_nodes[block].first.expand(), |&i| self.inst_nodes[i].next.expand())
    }
    fn successors(&self, block: Block) -> impl Iterator<Item = Block> {
        let pair = match self.block_nodes[block].last.expand().map(|last| &self.insts[last]) {
            Some(&InstData::Branch { then, otherwise, .. }) => [Some(then), Some(otherwise)],
            Some(&InstData::Jump(to)) => [Some(to), None],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }
    /// Follows aliases, and makes the way shorter.
    fn resolve(&mut self, mut value: Value) -> Value {
        let first = value;
        while let ValueDef::Alias(to) = self.values[value] {
            value = to;
        }
        if first != value {
            self.values[first] = ValueDef::Alias(value);
        }
        value
    }
    #[inline(never)]
    fn resolve_all(&mut self) {
        for i in 0..self.insts.len() {
            let mut data = std::mem::replace(&mut self.insts.elems[i], InstData::Nop);
            each_arg(&mut data, |v| *v = self.resolve(*v));
            self.insts.elems[i] = data;
        }
        for b in 0..self.blocks.len() {
            for p in 0..self.blocks.elems[b].phis.len() {
                for a in 0..self.blocks.elems[b].phis[p].args.len() {
                    let value = self.blocks.elems[b].phis[p].args[a];
                    self.blocks.elems[b].phis[p].args[a] = self.resolve(value);
                }
            }
        }
    }
}

fn each_arg(data: &mut InstData, mut f: impl FnMut(&mut Value)) {
    match data {
        InstData::Binary { args, .. } => args.iter_mut().for_each(f),
        InstData::Load { base, .. } => f(base),
        InstData::Store { base, value, .. } => {
            f(base);
            f(value);
        }
        InstData::Branch { cond, .. } => f(cond),
        InstData::Return(value) => f(value),
        _ => {}
    }
}

fn visit_args(data: &InstData, mut f: impl FnMut(Value)) {
    match *data {
        InstData::Binary { args, .. } => args.into_iter().for_each(f),
        InstData::Load { base, .. } => f(base),
        InstData::Store { base, value, .. } => {
            f(base);
            f(value);
        }
        InstData::Branch { cond, .. } => f(cond),
        InstData::Return(value) => f(value),
        _ => {}
    }
}

fn evaluate(op: Opcode, a: i64, b: i64) -> i64 {
    match op {
        Opcode::Add => a.wrapping_add(b),
        Opcode::Sub => a.wrapping_sub(b),
        Opcode::Mul => a.wrapping_mul(b),
        Opcode::And => a & b,
        Opcode::Xor => a ^ b,
        Opcode::Less => i64::from(a < b),
    }
}

// ---- passes ----

pub trait Pass {
    fn name(&self) -> &'static str;
    fn run(&mut self, func: &mut Function, cfg: &Cfg) -> usize;
}

pub struct Cfg {
    postorder: Vec<Block>,
    number: SecondaryMap<Block, u32>,
    idom: SecondaryMap<Block, Block>,
    children: SecondaryMap<Block, Vec<Block>>,
    stack: Vec<(Block, bool)>,
    seen: BitSet,
}

impl Cfg {
    #[inline(never)]
    fn compute(&mut self, func: &mut Function) {
        self.postorder.clear();
        self.seen.clear();
        for block in &mut func.blocks.elems {
            block.preds.clear();
        }
        self.stack.push((Block(0), false));
        while let Some((block, done)) = self.stack.pop() {
            if done {
                self.number[block] = self.postorder.len() as u32;
                self.postorder.push(block);
            } else if self.seen.insert(block.index()) {
                self.stack.push((block, true));
                for to in func.successors(block) {
                    func.blocks[to].preds.push(block);
                    self.stack.push((to, false));
                }
            }
        }
        self.dominators(func);
    }
    fn dominators(&mut self, func: &Function) {
        self.idom.clear();
        self.idom[Block(0)] = Block(0);
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.postorder.len() - 1).rev() {
                let block = self.postorder[i];
                let mut new = Block::NONE;
                for &pred in &func.blocks[block].preds {
                    if self.idom[pred] != Block::NONE {
                        new = if new == Block::NONE { pred } else { self.intersect(pred, new) };
                    }
                }
                if self.idom[block] != new {
                    self.idom[block] = new;
                    changed = true;
                }
            }
        }
        self.children.elems.iter_mut().for_each(Vec::clear);
        for i in 0..self.postorder.len() - 1 {
            let block = self.postorder[i];
            let parent = self.idom[block];
            self.children[parent].push(block);
        }
    }
    fn intersect(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            while self.number[a] < self.number[b] {
                a = self.idom[a];
            }
            while self.number[b] < self.number[a] {
                b = self.idom[b];
            }
        }
        a
    }
}

/// Constants that flow along edges that can be taken.
pub struct ConstantPropagation {
    cells: SecondaryMap<Value, Lattice>,
    users: SecondaryMap<Value, Vec<Inst>>,
    reachable: BitSet,
    flow: VecDeque<(Block, Block)>,
    ssa: Vec<Inst>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Lattice {
    Top,
    Constant(i64),
    Bottom,
}

impl Lattice {
    fn meet(self, other: Lattice) -> Lattice {
        match (self, other) {
            (Lattice::Top, x) | (x, Lattice::Top) => x,
            (Lattice::Constant(a), Lattice::Constant(b)) if a == b => self,
            _ => Lattice::Bottom,
        }
    }
}

impl ConstantPropagation {
    fn set(&mut self, value: Value, to: Lattice) {
        if self.cells[value] != to {
            self.cells[value] = to;
            self.ssa.extend_from_slice(&self.users[value]);
        }
    }
    fn visit(&mut self, func: &Function, inst: Inst) {
        let result = func.results[inst];
        match &func.insts[inst] {
            InstData::Const(c) => self.set(result, Lattice::Constant(*c)),
            InstData::Binary { op, args } => {
                let to = match args.map(|a| self.cells[a]) {
                    [Lattice::Constant(a), Lattice::Constant(b)] => Lattice::Constant(evaluate(*op, a, b)),
                    [Lattice::Top, _] | [_, Lattice::Top] => Lattice::Top,
                    _ => Lattice::Bottom,
                };
                self.set(result, to);
            }
            InstData::Load { .. } => self.set(result, Lattice::Bottom),
            InstData::Branch { cond, then, otherwise } => {
                let block = func.inst_nodes[inst].block;
                match self.cells[*cond] {
                    Lattice::Top => {}
                    Lattice::Constant(c) => self.flow.push_back((block, if c != 0 { *then } else { *otherwise })),
                    Lattice::Bottom => self.flow.extend([(block, *then), (block, *otherwise)]),
                }
            }
            InstData::Jump(to) => self.flow.push_back((func.inst_nodes[inst].block, *to)),
            _ => {}
        }
    }
}

impl Pass for ConstantPropagation {
    fn name(&self) -> &'static str {
        "sccp"
    }
    #[inline(never)]
    fn run(&mut self, func: &mut Function, cfg: &Cfg) -> usize {
        self.cells.clear();
        self.reachable.clear();
        self.users.elems.iter_mut().for_each(Vec::clear);
        for &block in &cfg.postorder {
            for inst in func.block_insts(block) {
                visit_args(&func.insts[inst], |v| self.users[v].push(inst));
            }
        }
        self.flow.push_back((Block(0), Block(0)));
        loop {
            if let Some(inst) = self.ssa.pop() {
                if self.reachable.contains(func.inst_nodes[inst].block.index()) {
                    self.visit(func, inst);
                }
            } else if let Some((from, block)) = self.flow.pop_front() {
                let from = func.blocks[block].preds.iter().position(|&p| p == from).unwrap_or(0);
                for phi in &func.blocks[block].phis {
                    let arg = phi.args.get(from).map_or(Lattice::Bottom, |&arg| self.cells[arg]);
                    let to = self.cells[phi.value].meet(arg);
                    self.set(phi.value, to);
                }
                if self.reachable.insert(block.index()) {
                    func.block_insts(block).for_each(|inst| self.visit(func, inst));
                }
            } else {
                break;
            }
        }
        let mut folded = 0;
        for i in 0..func.insts.len() {
            let inst = Inst::new(i);
            if let (InstData::Binary { .. }, Lattice::Constant(c)) = (&func.insts[inst], self.cells[func.results[inst]]) {
                func.insts[inst] = InstData::Const(c);
                folded += 1;
            }
        }
        folded
    }
}

/// Numbers of values, along the tree of dominators.
pub struct ValueNumbering {
    table: IndexTable<InstData, Value>,
    stack: Vec<Block>,
    hits: HashMap<Opcode, u32>,
}

impl Pass for ValueNumbering {
    fn name(&self) -> &'static str {
        "gvn"
    }
    #[inline(never)]
    fn run(&mut self, func: &mut Function, cfg: &Cfg) -> usize {
        self.table.clear();
        self.stack.push(Block(0));
        let mut replaced = 0;
        while let Some(block) = self.stack.pop() {
            let mut next = func.block_nodes[block].first;
            while let Some(inst) = next.expand() {
                next = func.inst_nodes[inst].next;
                let mut data = func.insts[inst].clone();
                each_arg(&mut data, |v| *v = func.resolve(*v));
                if let InstData::Binary { op: Opcode::Add | Opcode::Mul | Opcode::And | Opcode::Xor, args } = &mut data {
                    args.sort();
                }
                if !matches!(data, InstData::Const(_) | InstData::Binary { .. }) {
                    func.insts[inst] = data;
                    continue;
                }
                let result = func.results[inst];
                let op = if let InstData::Binary { op, .. } = data { Some(op) } else { None };
                let known = *self.table.get_or_insert(data, result);
                let ValueDef::Result(def) = func.values[known] else { continue };
                if known != result && dominates(cfg, func.inst_nodes[def].block, block) {
                    func.values[result] = ValueDef::Alias(known);
                    func.remove(inst);
                    replaced += 1;
                    *self.hits.entry(op.unwrap_or(Opcode::Add)).or_default() += 1;
                }
            }
            self.stack.extend_from_slice(&cfg.children[block]);
        }
        func.resolve_all();
        replaced
    }
}

fn dominates(cfg: &Cfg, a: Block, mut b: Block) -> bool {
    if a == Block::NONE {
        return false;
    }
    while cfg.number[b] < cfg.number[a] {
        b = cfg.idom[b];
    }
    a == b
}

/// What nothing uses goes away.
pub struct DeadCode {
    uses: SecondaryMap<Value, Uses>,
    work: Vec<Value>,
}

impl Pass for DeadCode {
    fn name(&self) -> &'static str {
        "dce"
    }
    #[inline(never)]
    fn run(&mut self, func: &mut Function, cfg: &Cfg) -> usize {
        self.uses.clear();
        for &block in &cfg.postorder {
            let weight = (1 << func.blocks[block].loop_depth) as f32;
            for inst in func.block_insts(block) {
                visit_args(&func.insts[inst], |v| {
                    let uses = &mut self.uses[v];
                    uses.count += 1;
                    uses.weight += weight;
                });
            }
            for value in func.blocks[block].phis.iter().flat_map(|phi| &phi.args) {
                self.uses[*value].count += 1;
            }
        }
        self.work.extend(func.values.keys().filter(|&v| self.uses[v].count == 0));
        let mut removed = 0;
        while let Some(value) = self.work.pop() {
            let ValueDef::Result(inst) = func.values[value] else { continue };
            if func.inst_nodes[inst].block == Block::NONE {
                continue;
            }
            visit_args(&func.insts[inst], |v| {
                let uses = &mut self.uses[v];
                uses.count -= 1;
                if uses.count == 0 {
                    self.work.push(v);
                }
            });
            func.remove(inst);
            removed += 1;
        }
        removed
    }
}

// ---- registers ----

pub struct Liveness {
    live_in: SecondaryMap<Block, BitSet>,
    scratch: BitSet,
    rounds: u64,
}

impl Liveness {
    #[inline(never)]
    fn compute(&mut self, func: &Function, cfg: &Cfg) {
        self.live_in.elems.iter_mut().for_each(BitSet::clear);
        let mut changed = true;
        while changed {
            changed = false;
            self.rounds += 1;
            for &block in &cfg.postorder {
                self.scratch.clear();
                for to in func.successors(block) {
                    self.scratch.union_with(&self.live_in[to]);
                    let pred = func.blocks[to].preds.iter().position(|&p| p == block);
                    for phi in &func.blocks[to].phis {
                        self.scratch.remove(phi.value.index());
                        if let Some(arg) = pred.and_then(|p| phi.args.get(p)) {
                            self.scratch.insert(arg.index());
                        }
                    }
                }
                let mut at = func.block_nodes[block].last;
                while let Some(inst) = at.expand() {
                    if let Some(result) = func.results[inst].expand() {
                        self.scratch.remove(result.index());
                    }
                    visit_args(&func.insts[inst], |v| {
                        self.scratch.insert(v.index());
                    });
                    at = func.inst_nodes[inst].prev;
                }
                changed |= self.live_in[block].union_with(&self.scratch);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    start: u32,
    end: u32,
    value: Value,
    register: Option<u8>,
}

/// Ordered by the end: the first that ends is the greatest.
#[derive(PartialEq, Eq)]
pub struct Active {
    end: u32,
    register: u8,
}
impl Ord for Active {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.end.cmp(&self.end).then(self.register.cmp(&other.register))
    }
}
impl PartialOrd for Active {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

pub struct LinearScan {
    intervals: Vec<Interval>,
    at: SecondaryMap<Value, u32>,
    active: BinaryHeap<Active>,
    free: Vec<u8>,
    spilled: u64,
}

impl LinearScan {
    fn extend(&mut self, value: Value, point: u32) {
        match self.at[value] {
            u32::MAX => {
                self.at[value] = self.intervals.len() as u32;
                self.intervals.push(Interval { start: point, end: point, value, register: None });
            }
            i => {
                let interval = &mut self.intervals[i as usize];
                interval.start = interval.start.min(point);
                interval.end = interval.end.max(point);
            }
        }
    }
    #[inline(never)]
    fn build(&mut self, func: &Function, cfg: &Cfg, live: &Liveness) {
        self.intervals.clear();
        self.at.clear();
        let mut point = 0;
        for &block in cfg.postorder.iter().rev() {
            live.live_in[block].iter().for_each(|v| self.extend(Value::new(v), point));
            for inst in func.block_insts(block) {
                point += 2;
                visit_args(&func.insts[inst], |v| self.extend(v, point));
                if let Some(result) = func.results[inst].expand() {
                    self.extend(result, point + 1);
                }
            }
        }
        self.intervals.sort_by_key(|i| (i.start, i.end));
    }
    #[inline(never)]
    fn allocate(&mut self) -> u64 {
        self.free.clear();
        self.free.extend(0..10);
        self.active.clear();
        let mut sum = 0;
        for interval in &mut self.intervals {
            while self.active.peek().is_some_and(|a| a.end < interval.start) {
                self.free.extend(self.active.pop().map(|a| a.register));
            }
            interval.register = self.free.pop();
            match interval.register {
                Some(register) => {
                    sum += u64::from(register);
                    self.active.push(Active { end: interval.end, register });
                }
                None => self.spilled += 1,
            }
        }
        sum
    }
}

// ---- something to optimize ----

const BLOCKS: usize = 24;

/// A chain of diamonds and loops; each block computes from what its dominators have.
#[inline(never)]
fn generate(func: &mut Function, spare: &mut Vec<BlockData>, known: &mut Vec<Value>) {
    func.clear();
    known.clear();
    for i in 0..BLOCKS {
        let mut data = spare.pop().unwrap_or_else(|| BlockData {
            phis: heap::of::<Phi, _>(|| Vec::with_capacity(2)),
            preds: heap::of::<Block, _>(|| Vec::with_capacity(4)),
            loop_depth: 0,
        });
        data.phis.clear();
        data.loop_depth = (i / 4 % 3) as u8;
        func.blocks.push(data);
    }
    for i in 0..BLOCKS {
        let block = Block::new(i);
        let head = i % 4 == 0;
        if head && i > 0 {
            let value = func.values.push(ValueDef::Param { block, index: 0 });
            let args = heap::of::<Value, _>(|| vec![known[known.len() - 1], known[known.len() - 2], known[known.len() / 2]]);
            func.blocks[block].phis.push(Phi { value, args });
            known.push(value);
        }
        let common = known.len();
        for _ in 0..4 + heap::random() % 6 {
            let r = heap::random();
            let pick = |shift: u32| known[(r >> shift) as usize % known.len().max(1)];
            let data = match r & 15 {
                _ if known.len() < 3 => InstData::Const((r >> 8 & 7) as i64),
                0 | 1 => InstData::Const((r >> 8 & 7) as i64),
                2 => InstData::Load { base: pick(8), offset: (r >> 30 & 31) as i32 },
                3 => InstData::Store { base: pick(8), value: pick(16), offset: (r >> 30 & 31) as i32 },
                n => {
                    let op = [Opcode::Add, Opcode::Sub, Opcode::Mul, Opcode::And, Opcode::Xor, Opcode::Less][n as usize % 6];
                    InstData::Binary { op, args: [pick(8), pick(20)] }
                }
            };
            let value = func.append(block, data);
            known.extend(value.expand());
        }
        let last = *known.last().unwrap();
        let end = match i % 4 {
            0 => InstData::Branch { cond: last, then: Block::new(i + 1), otherwise: Block::new(i + 2) },
            1 | 2 => InstData::Jump(Block::new(i / 4 * 4 + 3)),
            _ if i + 1 == BLOCKS => InstData::Return(last),
            _ if i % 8 == 7 => InstData::Branch { cond: last, then: Block::new(i - 3), otherwise: Block::new(i + 1) },
            _ => InstData::Jump(Block::new(i + 1)),
        };
        func.append(block, end);
        if !head && i % 4 != 3 {
            known.truncate(common.max(3));
        }
    }
}

fn main() {
    heap::init();
    let mut func = heap::of::<Function, _>(|| Box::new(Function::new()));
    let mut cfg = heap::of::<Cfg, _>(|| {
        Box::new(Cfg {
            postorder: heap::of::<Block, _>(|| Vec::with_capacity(BLOCKS)),
            number: SecondaryMap::new(0),
            idom: SecondaryMap::new(Block::NONE),
            children: SecondaryMap::new(Vec::new()),
            stack: heap::of::<(Block, bool), _>(|| Vec::with_capacity(64)),
            seen: BitSet::sized(BLOCKS),
        })
    });
    cfg.children.elems.extend((0..BLOCKS).map(|_| heap::of::<Block, _>(|| Vec::with_capacity(4))));
    let mut sccp = ConstantPropagation {
        cells: SecondaryMap::new(Lattice::Top),
        users: SecondaryMap::new(Vec::new()),
        reachable: BitSet::sized(BLOCKS),
        flow: heap::of::<(Block, Block), _>(|| VecDeque::with_capacity(64)),
        ssa: heap::of::<Inst, _>(|| Vec::with_capacity(256)),
    };
    sccp.users.elems.extend((0..400).map(|_| heap::of::<Inst, _>(|| Vec::with_capacity(8))));
    let gvn = ValueNumbering {
        table: IndexTable::new(),
        stack: heap::of::<Block, _>(|| Vec::with_capacity(BLOCKS)),
        hits: heap::table::<Opcode, u32, _>(|| HashMap::with_capacity(7)),
    };
    let dce = DeadCode { uses: SecondaryMap::new(Uses::default()), work: heap::of::<Value, _>(|| Vec::with_capacity(256)) };
    let mut passes = heap::of::<Box<dyn Pass>, _>(|| Vec::with_capacity(3));
    passes.push(heap::of::<ConstantPropagation, _>(|| Box::new(sccp)) as Box<dyn Pass>);
    passes.push(heap::of::<ValueNumbering, _>(|| Box::new(gvn)));
    passes.push(heap::of::<DeadCode, _>(|| Box::new(dce)));
    let mut live = Liveness { live_in: SecondaryMap::new(BitSet::default()), scratch: BitSet::sized(512), rounds: 0 };
    live.live_in.elems.extend((0..BLOCKS).map(|_| BitSet::sized(512)));
    let mut scan = LinearScan {
        intervals: heap::of::<Interval, _>(|| Vec::with_capacity(512)),
        at: SecondaryMap::new(u32::MAX),
        active: heap::of::<Active, _>(|| BinaryHeap::with_capacity(16)),
        free: heap::of::<u8, _>(|| Vec::with_capacity(16)),
        spilled: 0,
    };
    let mut spare = heap::of::<BlockData, _>(|| Vec::with_capacity(BLOCKS));
    let mut known = heap::of::<Value, _>(|| Vec::with_capacity(256));
    let mut changes = [0; 3];
    let (mut functions, mut sum) = (0u64, 0);
    while heap::more() {
        spare.append(&mut func.blocks.elems);
        generate(&mut func, &mut spare, &mut known);
        for _ in 0..2 {
            cfg.compute(&mut func);
            for (pass, count) in passes.iter_mut().zip(&mut changes) {
                *count += pass.run(&mut func, &cfg);
            }
        }
        live.compute(&func, &cfg);
        scan.build(&func, &cfg, &live);
        sum += scan.allocate();
        functions += 1;
    }
    if std::env::var("VERBOSE").is_ok() {
        let names = passes.iter().map(|p| p.name()).collect::<Vec<_>>();
        let of = |v: Option<(Value, &ValueDef)>| v.map(|(v, def)| format!("{v} {def:?}"));
        println!("{functions} functions, {names:?} {changes:?}, {} spilled, {} rounds, {:?}", scan.spilled, live.rounds, of(func.values.iter().last()));
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
