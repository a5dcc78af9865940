//! Terms that are equal share a class: a graph of classes grown by rewriting until nothing is new, kept congruent
//! by parents and a table of nodes, searched by a small machine; the cheapest term is taken out and run.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

#[derive(Default, Clone, Copy)]
pub struct FxHasher(u64);

impl Hasher for FxHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(20)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

type FxMap<K, V> = HashMap<K, V, BuildHasherDefault<FxHasher>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    fn at(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    Num(i32),
    Sym(u32),
    Neg(Id),
    Add([Id; 2]),
    Sub([Id; 2]),
    Mul([Id; 2]),
    Shl([Id; 2]),
    If([Id; 3]),
}

impl Expr {
    fn children(&self) -> &[Id] {
        match self {
            Expr::Num(_) | Expr::Sym(_) => &[],
            Expr::Neg(a) => std::slice::from_ref(a),
            Expr::Add(ab) | Expr::Sub(ab) | Expr::Mul(ab) | Expr::Shl(ab) => ab,
            Expr::If(abc) => abc,
        }
    }
    fn map(mut self, mut f: impl FnMut(Id) -> Id) -> Self {
        match &mut self {
            Expr::Num(_) | Expr::Sym(_) => {}
            Expr::Neg(a) => *a = f(*a),
            Expr::Add(ab) | Expr::Sub(ab) | Expr::Mul(ab) | Expr::Shl(ab) => ab.iter_mut().for_each(|a| *a = f(*a)),
            Expr::If(abc) => abc.iter_mut().for_each(|a| *a = f(*a)),
        }
        self
    }
    fn same_operator(&self, other: &Expr) -> bool {
        match (self, other) {
            (Expr::Num(a), Expr::Num(b)) => a == b,
            (Expr::Sym(a), Expr::Sym(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
    fn fold(&self, value: impl Fn(Id) -> Option<i32>) -> Option<i32> {
        Some(match *self {
            Expr::Num(n) => n,
            Expr::Sym(_) => return None,
            Expr::Neg(a) => value(a)?.wrapping_neg(),
            Expr::Add([a, b]) => value(a)?.wrapping_add(value(b)?),
            Expr::Sub([a, b]) => value(a)?.wrapping_sub(value(b)?),
            Expr::Mul([a, b]) => value(a)?.wrapping_mul(value(b)?),
            Expr::Shl([a, b]) => value(a)?.wrapping_shl(value(b)? as u32),
            Expr::If([c, a, b]) => value(if value(c)? != 0 { a } else { b })?,
        })
    }
    fn cost(&self) -> u32 {
        match self {
            Expr::Num(_) | Expr::Sym(_) => 1,
            Expr::Mul(_) => 7,
            Expr::If(_) => 4,
            _ => 2,
        }
    }
}

// ---- the graph ----

#[derive(Default)]
pub struct UnionFind {
    parents: Vec<Id>,
}

impl UnionFind {
    fn make(&mut self) -> Id {
        let id = Id(self.parents.len() as u32);
        self.parents.push(id);
        id
    }
    fn find(&self, mut id: Id) -> Id {
        while self.parents[id.at()] != id {
            id = self.parents[id.at()];
        }
        id
    }
    fn find_mut(&mut self, mut id: Id) -> Id {
        while self.parents[id.at()] != id {
            let grandparent = self.parents[self.parents[id.at()].at()];
            self.parents[id.at()] = grandparent;
            id = grandparent;
        }
        id
    }
}

/// A node that has the class among its children, and the node's own class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parent {
    node: Expr,
    id: Id,
}

pub struct Class {
    id: Id,
    nodes: Vec<Expr>,
    parents: Vec<Parent>,
    constant: Option<i32>,
    version: u32,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    unions: u64,
    congruences: u64,
    matches: u64,
    banned: u64,
    terms: u64,
}

pub struct Graph {
    union_find: UnionFind,
    memo: FxMap<Expr, Id>,
    classes: Vec<Option<Class>>,
    spare: Vec<Class>,
    pending: Vec<Parent>,
    version: u32,
    counts: Counts,
}

impl Graph {
    fn new() -> Self {
        Graph {
            union_find: UnionFind { parents: heap::of::<Id, _>(|| Vec::with_capacity(4096)) },
            memo: heap::table::<Expr, Id, _>(|| FxMap::with_capacity_and_hasher(7000, Default::default())),
            classes: heap::of::<Option<Class>, _>(|| Vec::with_capacity(4096)),
            spare: heap::of::<Class, _>(|| Vec::with_capacity(4096)),
            pending: heap::of::<Parent, _>(|| Vec::with_capacity(512)),
            version: 0,
            counts: Counts::default(),
        }
    }

    fn clear(&mut self) {
        self.union_find.parents.clear();
        self.memo.clear();
        self.spare.extend(self.classes.drain(..).flatten());
        self.pending.clear();
        self.version = 0;
    }

    fn class(&self, id: Id) -> &Class {
        self.classes[self.union_find.find(id).at()].as_ref().unwrap()
    }

    fn take_spare(&mut self, id: Id) -> Class {
        let mut class = self.spare.pop().unwrap_or_else(|| {
            let nodes = heap::of::<Expr, _>(|| Vec::with_capacity(4));
            let parents = heap::of::<Parent, _>(|| Vec::with_capacity(4));
            Class { id, nodes, parents, constant: None, version: 0 }
        });
        class.id = id;
        class.nodes.clear();
        class.parents.clear();
        class.version = self.version;
        class
    }

    fn add(&mut self, node: Expr) -> Id {
        let node = node.map(|id| self.union_find.find_mut(id));
        if let Some(&id) = self.memo.get(&node) {
            return self.union_find.find_mut(id);
        }
        let id = self.union_find.make();
        let mut class = self.take_spare(id);
        class.nodes.push(node);
        class.constant = node.fold(|id| self.class(id).constant);
        for &child in node.children() {
            self.classes[child.at()].as_mut().unwrap().parents.push(Parent { node, id });
        }
        let constant = class.constant;
        self.classes.push(Some(class));
        self.memo.insert(node, id);
        if let (Some(n), false) = (constant, matches!(node, Expr::Num(_))) {
            let number = self.add(Expr::Num(n));
            self.union(id, number);
        }
        id
    }

    fn union(&mut self, a: Id, b: Id) -> bool {
        let (mut a, mut b) = (self.union_find.find_mut(a), self.union_find.find_mut(b));
        if a == b {
            return false;
        }
        if self.class(a).parents.len() < self.class(b).parents.len() {
            std::mem::swap(&mut a, &mut b);
        }
        self.counts.unions += 1;
        self.union_find.parents[b.at()] = a;
        let from = self.classes[b.at()].take().unwrap();
        self.pending.extend_from_slice(&from.parents);
        let into = self.classes[a.at()].as_mut().unwrap();
        into.nodes.extend_from_slice(&from.nodes);
        into.parents.extend_from_slice(&from.parents);
        into.constant = into.constant.or(from.constant);
        into.version = self.version;
        self.spare.push(from);
        true
    }

    #[inline(never)]
    fn rebuild(&mut self) {
        while let Some(Parent { node, id }) = self.pending.pop() {
            self.memo.remove(&node);
            let node = node.map(|id| self.union_find.find_mut(id));
            let id = self.union_find.find_mut(id);
            match self.memo.insert(node, id) {
                Some(other) if self.union(other, id) => self.counts.congruences += 1,
                _ => {}
            }
        }
        for class in self.classes.iter_mut().flatten() {
            if class.version + 2 < self.version {
                continue;
            }
            for node in &mut class.nodes {
                *node = node.map(|id| self.union_find.find(id));
            }
            class.nodes.sort_unstable();
            class.nodes.dedup();
            for Parent { node, id } in &mut class.parents {
                *node = node.map(|id| self.union_find.find(id));
                *id = self.union_find.find(*id);
            }
            class.parents.sort_unstable();
            class.parents.dedup();
        }
    }
}

// ---- patterns ----

pub enum Pattern {
    Var(u8),
    Node(Expr, Vec<Pattern>),
}

#[derive(Clone, Copy)]
pub enum Instruction {
    Bind { node: Expr, from: u8, to: u8 },
    Compare { a: u8, b: u8 },
}

#[derive(Clone, Copy, Default)]
pub struct Subst {
    ids: [Id; 4],
}

pub struct Program {
    instructions: Vec<Instruction>,
    registers: [u8; 4],
}

impl Program {
    fn compile(pattern: &Pattern) -> Self {
        let mut instructions = heap::of::<Instruction, _>(|| Vec::with_capacity(8));
        let (mut registers, mut next) = ([u8::MAX; 4], 1);
        let mut todo = vec![(pattern, 0u8)];
        while let Some((pattern, register)) = todo.pop() {
            match pattern {
                Pattern::Var(v) if registers[*v as usize] == u8::MAX => registers[*v as usize] = register,
                Pattern::Var(v) => instructions.push(Instruction::Compare { a: registers[*v as usize], b: register }),
                Pattern::Node(node, children) => {
                    instructions.push(Instruction::Bind { node: *node, from: register, to: next });
                    for (i, child) in children.iter().enumerate() {
                        todo.push((child, next + i as u8));
                    }
                    next += children.len() as u8;
                }
            }
        }
        Program { instructions, registers }
    }

    fn run(&self, graph: &Graph, at: usize, registers: &mut [Id; 16], found: &mut dyn FnMut(Subst)) {
        let Some(instruction) = self.instructions.get(at) else {
            return found(Subst { ids: self.registers.map(|r| registers.get(r as usize).copied().unwrap_or_default()) });
        };
        match *instruction {
            Instruction::Bind { node, from, to } => {
                for candidate in &graph.class(registers[from as usize]).nodes {
                    if !candidate.same_operator(&node) {
                        continue;
                    }
                    for (i, &child) in candidate.children().iter().enumerate() {
                        registers[to as usize + i] = child;
                    }
                    self.run(graph, at + 1, registers, found);
                }
            }
            Instruction::Compare { a, b } => {
                if graph.union_find.find(registers[a as usize]) == graph.union_find.find(registers[b as usize]) {
                    self.run(graph, at + 1, registers, found);
                }
            }
        }
    }
}

pub trait Applier {
    fn apply(&self, graph: &mut Graph, subst: &Subst) -> Option<Id>;
}

impl Applier for Pattern {
    fn apply(&self, graph: &mut Graph, subst: &Subst) -> Option<Id> {
        match self {
            Pattern::Var(v) => Some(subst.ids[*v as usize]),
            Pattern::Node(node, children) => {
                let mut made = [Id(0); 3];
                for (id, child) in made.iter_mut().zip(children) {
                    *id = child.apply(graph, subst)?;
                }
                let mut next = made.iter();
                let node = node.map(|_| *next.next().unwrap());
                Some(graph.add(node))
            }
        }
    }
}

/// A closure that makes what takes the place.
pub struct Computed<F>(F);

impl<F: Fn(&mut Graph, &Subst) -> Option<Id>> Applier for Computed<F> {
    fn apply(&self, graph: &mut Graph, subst: &Subst) -> Option<Id> {
        (self.0)(graph, subst)
    }
}

pub struct Match {
    class: Id,
    rule: u32,
    subst: Subst,
}

pub struct Rule {
    name: &'static str,
    program: Program,
    applier: Box<dyn Applier>,
    applied: u64,
    banned_until: u32,
    times_banned: u32,
}

const NONE: Id = Id(0);

fn var(v: u8) -> Pattern {
    Pattern::Var(v)
}

fn node<const N: usize>(expr: Expr, children: [Pattern; N]) -> Pattern {
    Pattern::Node(expr, heap::of::<Pattern, _>(|| Vec::from(children)))
}

fn add(a: Pattern, b: Pattern) -> Pattern {
    node(Expr::Add([NONE; 2]), [a, b])
}
fn sub(a: Pattern, b: Pattern) -> Pattern {
    node(Expr::Sub([NONE; 2]), [a, b])
}
fn mul(a: Pattern, b: Pattern) -> Pattern {
    node(Expr::Mul([NONE; 2]), [a, b])
}
fn num(n: i32) -> Pattern {
    node(Expr::Num(n), [])
}

fn rules() -> Vec<Rule> {
    let mut rules = heap::of::<Rule, _>(|| Vec::with_capacity(16));
    let mut rule = |name, from: Pattern, applier: Box<dyn Applier>| {
        rules.push(Rule { name, program: Program::compile(&from), applier, applied: 0, banned_until: 0, times_banned: 0 });
    };
    let to = |pattern: Pattern| -> Box<dyn Applier> { heap::of::<Pattern, _>(|| Box::new(pattern)) };
    rule("commute-add", add(var(0), var(1)), to(add(var(1), var(0))));
    rule("commute-mul", mul(var(0), var(1)), to(mul(var(1), var(0))));
    rule("associate-add", add(add(var(0), var(1)), var(2)), to(add(var(0), add(var(1), var(2)))));
    rule("associate-mul", mul(mul(var(0), var(1)), var(2)), to(mul(var(0), mul(var(1), var(2)))));
    rule("zero-add", add(var(0), num(0)), to(var(0)));
    rule("zero-mul", mul(var(0), num(0)), to(num(0)));
    rule("one-mul", mul(var(0), num(1)), to(var(0)));
    rule("cancel", sub(var(0), var(0)), to(num(0)));
    rule("factor", add(mul(var(0), var(1)), mul(var(0), var(2))), to(mul(var(0), add(var(1), var(2)))));
    rule("twice", add(var(0), var(0)), to(mul(num(2), var(0))));
    rule("negate", sub(var(0), var(1)), to(add(var(0), node(Expr::Neg(NONE), [var(1)]))));
    rule("same-arms", node(Expr::If([NONE; 3]), [var(0), var(1), var(1)]), to(var(1)));
    let shift = Computed(|graph: &mut Graph, subst: &Subst| {
        let factor = graph.class(subst.ids[1]).constant.filter(|n| *n > 1 && n & (n - 1) == 0)?;
        let places = graph.add(Expr::Num(factor.trailing_zeros() as i32));
        Some(graph.add(Expr::Shl([subst.ids[0], places])))
    });
    rule("shift", mul(var(0), var(1)), Box::new(shift));
    rules
}

// ---- what is done with it ----

#[derive(Clone, Copy)]
pub struct Best {
    cost: u32,
    node: Expr,
}

pub enum Term {
    Leaf(Expr),
    Inner { node: Expr, children: Vec<Rc<Term>> },
}

pub struct Extractor<'a> {
    graph: &'a Graph,
    best: &'a mut FxMap<Id, Best>,
    shared: BTreeMap<u32, usize>,
    terms: Vec<Rc<Term>>,
}

impl Extractor<'_> {
    fn node_cost(&self, node: &Expr) -> Option<u32> {
        node.children().iter().try_fold(node.cost(), |sum, &id| Some(sum + self.best.get(&self.graph.union_find.find(id))?.cost))
    }

    #[inline(never)]
    fn solve(&mut self) {
        self.best.clear();
        loop {
            let mut changed = false;
            for class in self.graph.classes.iter().flatten() {
                let cheapest = class.nodes.iter().filter_map(|node| Some(Best { cost: self.node_cost(node)?, node: *node })).min_by_key(|b| b.cost);
                let Some(cheapest) = cheapest else { continue };
                let known = self.best.entry(class.id).or_insert(Best { cost: u32::MAX, node: cheapest.node });
                if cheapest.cost < known.cost {
                    *known = cheapest;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn build(&mut self, id: Id) -> Rc<Term> {
        let id = self.graph.union_find.find(id);
        if let Some(&at) = self.shared.get(&id.0) {
            return self.terms[at].clone();
        }
        let node = self.best[&id].node;
        let term = if node.children().is_empty() {
            Term::Leaf(node)
        } else {
            let mut children = heap::of::<Rc<Term>, _>(|| Vec::with_capacity(3));
            for &child in node.children() {
                children.push(self.build(child));
            }
            Term::Inner { node, children }
        };
        let term = heap::rc::<Term, _>(|| Rc::new(term));
        heap::tree::<u32, usize, _>(|| self.shared.insert(id.0, self.terms.len()));
        self.terms.push(term.clone());
        term
    }
}

impl Term {
    fn run(&self, inputs: &[i32]) -> i32 {
        match self {
            Term::Leaf(Expr::Sym(s)) => inputs[*s as usize],
            Term::Leaf(Expr::Num(n)) => *n,
            Term::Leaf(_) => 0,
            Term::Inner { node, children } => {
                let value = |i: usize| children[i].run(inputs);
                match node {
                    Expr::Neg(_) => value(0).wrapping_neg(),
                    Expr::Add(_) => value(0).wrapping_add(value(1)),
                    Expr::Sub(_) => value(0).wrapping_sub(value(1)),
                    Expr::Mul(_) => value(0).wrapping_mul(value(1)),
                    Expr::Shl(_) => value(0).wrapping_shl(value(1) as u32),
                    Expr::If(_) => value(if value(0) != 0 { 1 } else { 2 }),
                    Expr::Num(_) | Expr::Sym(_) => 0,
                }
            }
        }
    }
    fn show(&self, out: &mut String) {
        match self {
            Term::Leaf(node) => write!(out, "{node:?} ").unwrap(),
            Term::Inner { children, .. } => {
                out.push('(');
                children.iter().for_each(|child| child.show(out));
                out.push(')');
            }
        }
    }
}

#[inline(never)]
fn search(graph: &Graph, rules: &[Rule], iteration: u32, found: &mut Vec<Match>) -> u64 {
    let mut banned = 0;
    for (r, rule) in rules.iter().enumerate() {
        if rule.banned_until > iteration {
            banned += 1;
            continue;
        }
        let before = found.len();
        for class in graph.classes.iter().flatten() {
            let mut registers = [class.id; 16];
            rule.program.run(graph, 0, &mut registers, &mut |subst| {
                if found.len() - before < 120 {
                    found.push(Match { class: class.id, rule: r as u32, subst });
                }
            });
        }
    }
    banned
}

#[inline(never)]
fn apply(graph: &mut Graph, rules: &mut [Rule], iteration: u32, found: &mut Vec<Match>) -> usize {
    let mut changed = 0;
    for Match { class, rule, subst } in found.drain(..) {
        let rule = &mut rules[rule as usize];
        if let Some(id) = rule.applier.apply(graph, &subst) {
            if graph.union(class, id) {
                rule.applied += 1;
                changed += 1;
            }
        }
        if rule.applied % 256 == 255 {
            rule.times_banned += 1;
            rule.banned_until = iteration + 2;
        }
    }
    changed
}

/// A term of some depth, right into the graph.
fn grow(graph: &mut Graph, depth: u32) -> Id {
    let random = heap::random() >> 20;
    if depth == 0 || random % 9 == 0 {
        return graph.add(if random & 16 == 0 { Expr::Num((random >> 8) as i32 % 5) } else { Expr::Sym((random >> 8) as u32 % 6) });
    }
    let (a, b) = (grow(graph, depth - 1), grow(graph, depth - 1));
    let node = match random % 16 {
        0..=6 => Expr::Add([a, b]),
        7..=11 => Expr::Mul([a, b]),
        12 | 13 => Expr::Sub([a, b]),
        14 => Expr::Neg(a),
        _ => Expr::If([grow(graph, 1), a, b]),
    };
    graph.add(node)
}

fn main() {
    heap::init();
    let graph = Graph::new();
    let mut graph = heap::of::<Graph, _>(|| Box::new(graph));
    let mut rules = rules();
    let mut found = heap::of::<Match, _>(|| Vec::with_capacity(2048));
    let mut best = heap::table::<Id, Best, _>(|| FxMap::with_capacity_and_hasher(3000, Default::default()));
    let mut text = String::with_capacity(4096);
    let (mut sum, mut nodes) = (0i64, 0);
    while heap::more() {
        graph.clear();
        let root = grow(&mut graph, 5);
        for iteration in 0..4 {
            graph.version += 1;
            graph.counts.banned += search(&graph, &rules, iteration, &mut found);
            graph.counts.matches += found.len() as u64;
            let changed = apply(&mut graph, &mut rules, iteration, &mut found);
            graph.rebuild();
            if changed == 0 || graph.memo.len() > 2200 {
                break;
            }
        }
        rules.iter_mut().for_each(|rule| rule.banned_until = 0);
        nodes += graph.memo.len();
        let mut extractor = Extractor { graph: &graph, best: &mut best, shared: BTreeMap::new(), terms: heap::of::<Rc<Term>, _>(|| Vec::with_capacity(128)) };
        extractor.solve();
        let term = extractor.build(root);
        drop(extractor);
        graph.counts.terms += 1;
        for input in 0..8 {
            sum += i64::from(term.run(&[input, 3, 5, 7, 9, input * 2]));
        }
        text.clear();
        term.show(&mut text);
        sum += text.len() as i64;
    }
    if std::env::var("VERBOSE").is_ok() {
        println!("{:?}, {nodes} nodes, last {text}", graph.counts);
        for rule in &rules {
            print!("{} {} ", rule.name, rule.applied);
        }
        println!();
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
