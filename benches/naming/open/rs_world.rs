//! A world of tiles in a game: chunks that are generated, A* with a binary heap, flow fields, light that spreads
//! through queues, things in hash maps and B-trees, behaviours as trait objects, jobs, stocks, messages.
#[path = "../heap.rs"]
mod heap;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::fmt::{self, Write};
use std::ops::{Add, Index, IndexMut, Sub};
use std::rc::{Rc, Weak};
use std::cell::{Cell, RefCell};

const CHUNK: usize = 16;
const CHUNKS: usize = 4;
const SIDE: i32 = (CHUNK * CHUNKS) as i32;

// ---- places ----

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Pos {
    x: i32,
    y: i32,
}

impl Pos {
    const AROUND: [Pos; 8] = [
        Pos { x: 1, y: 0 },
        Pos { x: 0, y: 1 },
        Pos { x: -1, y: 0 },
        Pos { x: 0, y: -1 },
        Pos { x: 1, y: 1 },
        Pos { x: -1, y: 1 },
        Pos { x: -1, y: -1 },
        Pos { x: 1, y: -1 },
    ];
    fn distance(self, to: Pos) -> u32 {
        let (dx, dy) = ((self.x - to.x).unsigned_abs(), (self.y - to.y).unsigned_abs());
        10 * dx.max(dy) + 4 * dx.min(dy)
    }
    fn inside(self) -> bool {
        (0..SIDE).contains(&self.x) && (0..SIDE).contains(&self.y)
    }
    fn neighbours(self) -> impl Iterator<Item = (Pos, u32)> {
        Pos::AROUND.iter().enumerate().map(move |(i, &d)| (self + d, if i < 4 { 10 } else { 14 })).filter(|(p, _)| p.inside())
    }
    fn random() -> Pos {
        let r = heap::random();
        Pos { x: (r >> 20) as i32 & (SIDE - 1), y: (r >> 40) as i32 & (SIDE - 1) }
    }
}

impl Add for Pos {
    type Output = Pos;
    fn add(self, o: Pos) -> Pos {
        Pos { x: self.x + o.x, y: self.y + o.y }
    }
}
impl Sub for Pos {
    type Output = Pos;
    fn sub(self, o: Pos) -> Pos {
        Pos { x: self.x - o.x, y: self.y - o.y }
    }
}
impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.x, self.y)
    }
}

/// One value for each tile.
pub struct Grid<T> {
    cells: Box<[T]>,
}

impl<T: Copy> Grid<T> {
    fn new(value: T) -> Self {
        Grid { cells: heap::of::<T, _>(|| vec![value; (SIDE * SIDE) as usize].into_boxed_slice()) }
    }
    fn fill(&mut self, value: T) {
        self.cells.fill(value);
    }
}
impl<T> Index<Pos> for Grid<T> {
    type Output = T;
    fn index(&self, p: Pos) -> &T {
        &self.cells[(p.y * SIDE + p.x) as usize]
    }
}
impl<T> IndexMut<Pos> for Grid<T> {
    fn index_mut(&mut self, p: Pos) -> &mut T {
        &mut self.cells[(p.y * SIDE + p.x) as usize]
    }
}

// ---- terrain ----

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terrain {
    Grass,
    Sand { depth: u8 },
    Water { depth: u8, flow: i16 },
    Rock { ore: Option<Ore> },
    Wall(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ore {
    Iron,
    Copper,
    Coal,
}

#[derive(Clone, Copy)]
pub struct Tile {
    terrain: Terrain,
    light: u8,
    height: u16,
    visits: u32,
    moisture: f32,
}

impl Tile {
    fn cost(&self) -> Option<u32> {
        match self.terrain {
            Terrain::Grass => Some(0),
            Terrain::Sand { depth } => Some(u32::from(depth)),
            Terrain::Water { depth, .. } if depth < 3 => Some(20),
            Terrain::Rock { ore: Some(_) } => Some(30),
            _ => None,
        }
    }
    fn opaque(&self) -> bool {
        matches!(self.terrain, Terrain::Wall(_) | Terrain::Rock { .. })
    }
}

pub struct Chunk {
    tiles: [[Tile; CHUNK]; CHUNK],
    origin: Pos,
    changed: bool,
    ores: BTreeMap<Ore, u32>,
}

pub struct Terrains {
    chunks: Vec<Box<Chunk>>,
    generation: u64,
}

impl Terrains {
    fn generate() -> Self {
        let mut chunks = heap::of::<Box<Chunk>, _>(|| Vec::with_capacity(CHUNKS * CHUNKS));
        for i in 0..CHUNKS * CHUNKS {
            let origin = Pos { x: (i % CHUNKS * CHUNK) as i32, y: (i / CHUNKS * CHUNK) as i32 };
            let tile = Tile { terrain: Terrain::Grass, light: 0, height: 0, visits: 0, moisture: 0.0 };
            let chunk = Chunk { tiles: [[tile; CHUNK]; CHUNK], origin, changed: true, ores: BTreeMap::new() };
            let mut chunk = heap::of::<Chunk, _>(|| Box::new(chunk));
            chunk.fill();
            chunks.push(chunk);
        }
        Terrains { chunks, generation: 1 }
    }
    fn get(&self, p: Pos) -> &Tile {
        let chunk = &self.chunks[p.y as usize / CHUNK * CHUNKS + p.x as usize / CHUNK];
        &chunk.tiles[p.y as usize % CHUNK][p.x as usize % CHUNK]
    }
    fn get_mut(&mut self, p: Pos) -> &mut Tile {
        let chunk = &mut self.chunks[p.y as usize / CHUNK * CHUNKS + p.x as usize / CHUNK];
        chunk.changed = true;
        &mut chunk.tiles[p.y as usize % CHUNK][p.x as usize % CHUNK]
    }
    /// Water and moisture, as they become; a chunk at a time.
    #[inline(never)]
    fn weather(&mut self) {
        self.generation += 1;
        let at = self.generation as usize % self.chunks.len();
        let chunk = &mut self.chunks[at];
        for (y, row) in chunk.tiles.iter_mut().enumerate() {
            for pair in 1..row.len() {
                let mean = (row[pair - 1].moisture + row[pair].moisture) * 0.5;
                row[pair - 1].moisture += (mean - row[pair - 1].moisture) * 0.1;
                row[pair].moisture += (mean - row[pair].moisture) * 0.1;
            }
            for tile in row.iter_mut() {
                if let Terrain::Water { depth, flow } = &mut tile.terrain {
                    *flow = (*flow + i16::from(*depth) - y as i16 / 4) % 100;
                    tile.moisture = 1.0;
                }
            }
        }
        if std::mem::take(&mut chunk.changed) {
            chunk.count_ores();
        }
    }
}

impl Chunk {
    #[inline(never)]
    fn fill(&mut self) {
        for y in 0..CHUNK {
            for x in 0..CHUNK {
                let (gx, gy) = (self.origin.x + x as i32, self.origin.y + y as i32);
                let height = ((gx * 7 + gy * 13) % 31 + (gx * gy) % 17) as u16;
                let r = heap::random() >> 33;
                self.tiles[y][x] = Tile {
                    terrain: match (height, r % 16) {
                        (0..=4, _) => Terrain::Water { depth: (4 - height) as u8, flow: 0 },
                        (5..=9, n) => Terrain::Sand { depth: n as u8 },
                        (_, 0) => Terrain::Wall((r >> 8) as u8 & 3),
                        (40.., n) => Terrain::Rock { ore: [Some(Ore::Iron), Some(Ore::Copper), Some(Ore::Coal), None][n as usize % 4] },
                        _ => Terrain::Grass,
                    },
                    light: 0,
                    height,
                    visits: 0,
                    moisture: (r % 100) as f32 / 100.0,
                };
            }
        }
    }
    fn count_ores(&mut self) {
        heap::tree::<Ore, u32, _>(|| {
            self.ores.values_mut().for_each(|n| *n = 0);
            for tile in self.tiles.iter().flatten() {
                if let Terrain::Rock { ore: Some(ore) } = tile.terrain {
                    *self.ores.entry(ore).or_insert(0) += 1;
                }
            }
        });
    }
}

// ---- ways ----

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Open {
    estimate: u32,
    cost: u32,
    pos: Pos,
}
impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        other.estimate.cmp(&self.estimate).then_with(|| self.cost.cmp(&other.cost)).then_with(|| self.pos.cmp(&other.pos))
    }
}
impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy)]
pub struct Visit {
    cost: u32,
    search: u32,
    from: u8,
    closed: bool,
}

pub struct PathFinder {
    open: BinaryHeap<Open>,
    visits: Grid<Visit>,
    search: u32,
    expanded: u64,
    failed: u64,
}

impl PathFinder {
    fn new() -> Self {
        PathFinder {
            open: heap::of::<Open, _>(|| BinaryHeap::with_capacity(1024)),
            visits: Grid::new(Visit { cost: 0, search: 0, from: 0, closed: false }),
            search: 0,
            expanded: 0,
            failed: 0,
        }
    }
    /// The steps are put on `path`, the last one first.
    #[inline(never)]
    fn find(&mut self, terrain: &Terrains, from: Pos, to: Pos, path: &mut Vec<Pos>) -> bool {
        self.search += 1;
        self.open.clear();
        path.clear();
        self.visits[from] = Visit { cost: 0, search: self.search, from: 8, closed: false };
        self.open.push(Open { estimate: from.distance(to), cost: 0, pos: from });
        let mut left = 400;
        while let Some(Open { pos, cost, .. }) = self.open.pop() {
            let visit = &mut self.visits[pos];
            if std::mem::replace(&mut visit.closed, true) {
                continue;
            }
            left -= 1;
            if pos == to || left == 0 {
                self.walk_back(pos, path);
                return pos == to;
            }
            self.expanded += 1;
            for (way, (next, step)) in pos.neighbours().enumerate() {
                let Some(extra) = terrain.get(next).cost() else { continue };
                let cost = cost + step + extra;
                let known = &mut self.visits[next];
                if known.search == self.search && (known.closed || known.cost <= cost) {
                    continue;
                }
                let way = Pos::AROUND.iter().position(|&d| d == next - pos).unwrap_or(way);
                *known = Visit { cost, search: self.search, from: way as u8, closed: false };
                self.open.push(Open { estimate: cost + next.distance(to), cost, pos: next });
            }
        }
        self.failed += 1;
        false
    }
    fn walk_back(&self, mut at: Pos, path: &mut Vec<Pos>) {
        while let Some(&step) = Pos::AROUND.get(self.visits[at].from as usize) {
            path.push(at);
            at = at - step;
        }
    }
}

/// How far it is to the nearest of some places, from everywhere.
pub struct FlowField {
    distance: Grid<u16>,
    queue: VecDeque<Pos>,
    made: u32,
}

impl FlowField {
    #[inline(never)]
    fn compute(&mut self, terrain: &Terrains, goals: impl Iterator<Item = Pos>) {
        self.made += 1;
        self.distance.fill(u16::MAX);
        for goal in goals {
            self.distance[goal] = 0;
            self.queue.push_back(goal);
        }
        while let Some(at) = self.queue.pop_front() {
            let distance = self.distance[at] + 1;
            for (next, _) in at.neighbours().take(4) {
                if distance < self.distance[next] && terrain.get(next).cost().is_some() {
                    self.distance[next] = distance;
                    self.queue.push_back(next);
                }
            }
        }
    }
    fn downhill(&self, at: Pos) -> Option<Pos> {
        at.neighbours().map(|(p, _)| p).min_by_key(|&p| self.distance[p]).filter(|&p| self.distance[p] < self.distance[at])
    }
}

#[derive(Clone, Copy)]
pub struct Lamp {
    pos: Pos,
    strength: u8,
}

#[inline(never)]
fn spread_light(terrain: &mut Terrains, lamps: &[Lamp], queue: &mut VecDeque<(Pos, u8)>) {
    for tile in terrain.chunks.iter_mut().flat_map(|chunk| chunk.tiles.iter_mut().flatten()) {
        tile.light = 0;
    }
    queue.extend(lamps.iter().map(|lamp| (lamp.pos, lamp.strength)));
    while let Some((at, light)) = queue.pop_front() {
        let tile = terrain.get_mut(at);
        if tile.light >= light {
            continue;
        }
        tile.light = light;
        let next = light.saturating_sub(if tile.opaque() { 6 } else { 1 });
        if next > 0 {
            queue.extend(at.neighbours().take(4).map(|(p, _)| (p, next)));
        }
    }
}

// ---- entities ----

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EntityId(u32);

#[derive(Clone, Debug)]
pub enum Task {
    Idle { since: u64 },
    Walk { path: Vec<Pos>, goal: Pos },
    Mine { pos: Pos, left: u16 },
    Carry { item: Item, to: EntityId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    kind: Ore,
    amount: u16,
}

pub struct Entity {
    id: EntityId,
    pos: Pos,
    name: String,
    health: f32,
    energy: i32,
    task: Task,
    stock: Vec<Item>,
    team: Rc<Team>,
    behaviour: Option<Box<dyn Behaviour>>,
}

pub struct Team {
    name: &'static str,
    score: Cell<u64>,
    home: Pos,
    log: RefCell<VecDeque<Event>>,
    rival: RefCell<Weak<Team>>,
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Arrived(EntityId, Pos),
    Mined { who: EntityId, what: Ore },
    Delivered { who: EntityId, to: EntityId, amount: u16 },
    Starved(EntityId),
}

pub struct View<'a> {
    terrain: &'a Terrains,
    field: &'a FlowField,
    ores: &'a BTreeSet<(i32, i32)>,
    depots: &'a [(EntityId, Pos)],
    now: u64,
}

/// What something wants next.
pub enum Wish {
    Nothing,
    GoTo(Pos),
    Step(Pos),
    Dig(Pos),
    Bring(Item, EntityId),
}

pub trait Behaviour {
    fn decide(&mut self, me: &Entity, view: &View<'_>) -> Wish;
    fn kind(&self) -> &'static str;
}

pub struct Miner {
    known: VecDeque<Pos>,
    tired: u32,
}

pub struct Wanderer {
    heading: usize,
    steps: u32,
    favourites: [Pos; 4],
}

pub struct Sentry {
    post: Pos,
    patience: f32,
}

impl Behaviour for Miner {
    fn decide(&mut self, me: &Entity, view: &View<'_>) -> Wish {
        if let Some(&item) = me.stock.iter().max_by_key(|item| item.amount).filter(|item| item.amount > 3) {
            let nearest = view.depots.iter().min_by_key(|(_, at)| at.distance(me.pos));
            return match nearest {
                Some(&(id, at)) if at.distance(me.pos) < 15 => Wish::Bring(item, id),
                Some(&(_, at)) => Wish::GoTo(at),
                None => Wish::Nothing,
            };
        }
        self.tired += 1;
        if let Terrain::Rock { ore: Some(_) } = view.terrain.get(me.pos).terrain {
            self.known.push_back(me.pos);
            if self.known.len() > 8 {
                self.known.pop_front();
            }
            return Wish::Dig(me.pos);
        }
        let near = view.ores.range((me.pos.x - 3, i32::MIN)..).take(12).map(|&(x, y)| Pos { x, y });
        match near.min_by_key(|p| p.distance(me.pos)) {
            Some(pos) if self.tired % 3 != 0 => Wish::GoTo(pos),
            _ => self.known.front().map_or(Wish::Nothing, |&pos| Wish::GoTo(pos)),
        }
    }
    fn kind(&self) -> &'static str {
        "miner"
    }
}

impl Behaviour for Wanderer {
    fn decide(&mut self, me: &Entity, view: &View<'_>) -> Wish {
        self.steps += 1;
        if self.steps % 32 == 0 {
            self.favourites[self.steps as usize / 32 % 4] = me.pos;
            return Wish::GoTo(self.favourites[self.heading % 4]);
        }
        for turn in 0..8 {
            let to = me.pos + Pos::AROUND[(self.heading + turn * 3) % 8];
            if to.inside() && view.terrain.get(to).cost().is_some() {
                self.heading += turn;
                return Wish::Step(to);
            }
        }
        Wish::Nothing
    }
    fn kind(&self) -> &'static str {
        "wanderer"
    }
}

impl Behaviour for Sentry {
    fn decide(&mut self, me: &Entity, view: &View<'_>) -> Wish {
        self.patience = self.patience * 0.9 + me.health * 0.01 + f32::from(view.terrain.get(me.pos).light);
        if self.patience > 20.0 && view.now % 16 < 4 {
            self.patience = 0.0;
            return Wish::GoTo(self.post);
        }
        view.field.downhill(me.pos).map_or(Wish::Nothing, Wish::Step)
    }
    fn kind(&self) -> &'static str {
        "guard"
    }
}

// ---- the world ----

#[derive(Default, Debug)]
pub struct Counts {
    decided: u64,
    walked: u64,
    mined: u64,
    delivered: u64,
    starved: u64,
    events: u64,
}

pub struct World {
    terrain: Terrains,
    entities: HashMap<EntityId, Entity>,
    order: Vec<EntityId>,
    by_place: BTreeMap<(i32, i32), u32>,
    stocks: BTreeMap<(EntityId, Ore), u64>,
    timers: BinaryHeap<Reverse<(u64, EntityId)>>,
    ores: BTreeSet<(i32, i32)>,
    depots: Vec<(EntityId, Pos)>,
    lamps: Vec<Lamp>,
    light_queue: VecDeque<(Pos, u8)>,
    finder: PathFinder,
    field: FlowField,
    teams: [Rc<Team>; 2],
    spare_paths: Vec<Vec<Pos>>,
    report: String,
    counts: Counts,
    now: u64,
}

impl World {
    fn new() -> World {
        let team = |name, home| {
            let log = heap::of::<Event, _>(|| VecDeque::with_capacity(64));
            let team = Team { name, score: Cell::new(0), home, log: RefCell::new(log), rival: RefCell::new(Weak::new()) };
            heap::rc::<Team, _>(|| Rc::new(team))
        };
        let teams = [team("red", Pos { x: 8, y: 8 }), team("blue", Pos { x: 50, y: 48 })];
        *teams[0].rival.borrow_mut() = Rc::downgrade(&teams[1]);
        *teams[1].rival.borrow_mut() = Rc::downgrade(&teams[0]);
        let terrain = Terrains::generate();
        let mut ores = BTreeSet::new();
        for (x, y) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y))) {
            if let Terrain::Rock { ore: Some(_) } = terrain.get(Pos { x, y }).terrain {
                heap::tree_set::<(i32, i32), _>(|| ores.insert((x, y)));
            }
        }
        let mut world = World {
            terrain,
            entities: heap::table::<EntityId, Entity, _>(|| HashMap::with_capacity(100)),
            order: heap::of::<EntityId, _>(|| Vec::with_capacity(100)),
            by_place: BTreeMap::new(),
            stocks: BTreeMap::new(),
            timers: heap::of::<Reverse<(u64, EntityId)>, _>(|| BinaryHeap::with_capacity(128)),
            ores,
            depots: heap::of::<(EntityId, Pos), _>(|| Vec::with_capacity(8)),
            lamps: heap::of::<Lamp, _>(|| (0..12).map(|i| Lamp { pos: Pos::random(), strength: 6 + i }).collect()),
            light_queue: heap::of::<(Pos, u8), _>(|| VecDeque::with_capacity(2048)),
            finder: PathFinder::new(),
            field: FlowField { distance: Grid::new(0), queue: heap::of::<Pos, _>(|| VecDeque::with_capacity(1024)), made: 0 },
            teams,
            spare_paths: heap::of::<Vec<Pos>, _>(|| Vec::with_capacity(128)),
            report: heap::of::<u8, _>(|| String::with_capacity(4096)),
            counts: Counts::default(),
            now: 0,
        };
        for number in 0..60 {
            world.add(EntityId(number));
        }
        world
    }

    fn add(&mut self, id: EntityId) {
        let team = self.teams[id.0 as usize % 2].clone();
        let pos = Pos::random();
        let behaviour: Option<Box<dyn Behaviour>> = match id.0 % 10 {
            0 => {
                self.depots.push((id, pos));
                None
            }
            1..=4 => {
                let known = heap::of::<Pos, _>(|| VecDeque::with_capacity(16));
                Some(heap::of::<Miner, _>(|| Box::new(Miner { known, tired: id.0 })))
            }
            5..=7 => Some(heap::of::<Wanderer, _>(|| Box::new(Wanderer { heading: id.0 as usize, steps: id.0, favourites: [pos; 4] }))),
            _ => Some(heap::of::<Sentry, _>(|| Box::new(Sentry { post: team.home, patience: 0.0 }))),
        };
        let kind = behaviour.as_ref().map_or("depot", |b| b.kind());
        let name = heap::of::<u8, _>(|| format!("{} {kind} {}", team.name, id.0));
        let stock = heap::of::<Item, _>(|| Vec::with_capacity(4));
        let entity = Entity { id, pos, name, health: 100.0, energy: 500, task: Task::Idle { since: 0 }, stock, team, behaviour };
        self.entities.insert(id, entity);
        self.order.push(id);
        self.timers.push(Reverse((u64::from(id.0) % 7, id)));
    }

    #[inline(never)]
    fn tick(&mut self) {
        self.now += 1;
        while let Some(&Reverse((due, id))) = self.timers.peek() {
            if due > self.now {
                break;
            }
            self.timers.pop();
            let wait = self.act(id);
            self.timers.push(Reverse((self.now + wait, id)));
        }
        self.terrain.weather();
        if self.now % 8 == 0 {
            self.crowd();
        }
        if self.now % 16 == 0 {
            let lamps = &mut self.lamps;
            lamps.rotate_left(1);
            lamps[0].pos = Pos::random();
            spread_light(&mut self.terrain, lamps, &mut self.light_queue);
            let goals = self.order.iter().filter_map(|id| self.entities.get(id)).filter(|e| e.id.0 % 10 == 1).map(|e| e.pos);
            self.field.compute(&self.terrain, goals);
        }
        if self.now % 64 == 0 {
            self.write_report();
        }
    }

    /// Lets one entity act; how long until the next time.
    #[inline(never)]
    fn act(&mut self, id: EntityId) -> u64 {
        let Some(entity) = self.entities.get_mut(&id) else { return 100 };
        entity.energy -= 1;
        if entity.energy <= 0 {
            entity.health *= 0.5;
            entity.energy = 300;
            self.counts.starved += 1;
            entity.team.tell(Event::Starved(id));
        }
        match &mut entity.task {
            Task::Idle { since } => {
                if *since + 2 > self.now {
                    return 2;
                }
            }
            Task::Walk { path, goal } => {
                if let Some(next) = path.pop() {
                    let tile = self.terrain.get_mut(next);
                    tile.visits += 1;
                    entity.pos = next;
                    self.counts.walked += 1;
                    return 1 + u64::from(tile.cost().unwrap_or(0) / 10);
                }
                let arrived = Event::Arrived(id, *goal);
                let path = std::mem::take(path);
                self.spare_paths.push(path);
                entity.task = Task::Idle { since: self.now - 2 };
                entity.team.tell(arrived);
            }
            Task::Mine { pos, left } => {
                *left -= 1;
                if *left > 0 {
                    return 1;
                }
                let tile = self.terrain.get_mut(*pos);
                if let Terrain::Rock { ore: Some(kind) } = tile.terrain {
                    match entity.stock.iter_mut().find(|item| item.kind == kind) {
                        Some(item) => item.amount += 2,
                        None => entity.stock.push(Item { kind, amount: 2 }),
                    }
                    entity.team.tell(Event::Mined { who: id, what: kind });
                    self.counts.mined += 1;
                }
                entity.task = Task::Idle { since: self.now };
            }
            Task::Carry { item, to } => {
                let (item, to) = (*item, *to);
                entity.stock.retain(|other| other.kind != item.kind);
                entity.energy += 100;
                entity.team.score.set(entity.team.score.get() + u64::from(item.amount));
                entity.task = Task::Idle { since: self.now };
                entity.team.tell(Event::Delivered { who: id, to, amount: item.amount });
                heap::tree::<(EntityId, Ore), u64, _>(|| *self.stocks.entry((to, item.kind)).or_default() += u64::from(item.amount));
                self.counts.delivered += 1;
            }
        }
        self.decide(id)
    }

    fn decide(&mut self, id: EntityId) -> u64 {
        let view = View { terrain: &self.terrain, field: &self.field, ores: &self.ores, depots: &self.depots, now: self.now };
        let Some(entity) = self.entities.get_mut(&id) else { return 100 };
        let Some(mut behaviour) = entity.behaviour.take() else { return 5 };
        let wish = behaviour.decide(entity, &view);
        entity.behaviour = Some(behaviour);
        self.counts.decided += 1;
        match wish {
            Wish::Nothing => return 3,
            Wish::Step(to) => {
                entity.pos = to;
                self.terrain.get_mut(to).visits += 1;
            }
            Wish::Dig(pos) => entity.task = Task::Mine { pos, left: 4 },
            Wish::Bring(item, to) => entity.task = Task::Carry { item, to },
            Wish::GoTo(goal) => {
                let mut path = self.spare_paths.pop().unwrap_or_else(|| heap::of::<Pos, _>(|| Vec::with_capacity(256)));
                self.finder.find(&self.terrain, entity.pos, goal, &mut path);
                entity.task = Task::Walk { path, goal };
            }
        }
        1
    }

    /// Who stands close to whom: counted by squares of four.
    #[inline(never)]
    fn crowd(&mut self) {
        heap::tree::<(i32, i32), u32, _>(|| {
            self.by_place.values_mut().for_each(|n| *n = 0);
            for entity in self.entities.values() {
                *self.by_place.entry((entity.pos.x / 4, entity.pos.y / 4)).or_default() += 1;
            }
        });
        for entity in self.entities.values_mut() {
            let square = (entity.pos.x / 4, entity.pos.y / 4);
            let near: u32 = self.by_place.range((square.0 - 1, i32::MIN)..=(square.0 + 1, i32::MAX)).filter(|(at, _)| (at.1 - square.1).abs() < 2).map(|(_, n)| n).sum();
            entity.health = (entity.health + 1.0 - near as f32 * 0.2).clamp(1.0, 100.0);
        }
    }

    #[inline(never)]
    fn write_report(&mut self) {
        self.report.clear();
        let entities = &self.entities;
        self.order.sort_by(|a, b| entities[b].health.total_cmp(&entities[a].health).then_with(|| entities[a].name.cmp(&entities[b].name)));
        for entity in self.order.iter().take(5).map(|id| &self.entities[id]) {
            let _ = writeln!(self.report, "{} at {}: {:.0}", entity.name, entity.pos, entity.health);
        }
        for team in &self.teams {
            let behind = team.rival.borrow().upgrade().map_or(0, |rival| rival.score.get().saturating_sub(team.score.get()));
            let mut log = team.log.borrow_mut();
            self.counts.events += log.len() as u64;
            let mined = log.iter().filter(|event| matches!(event, Event::Mined { what: Ore::Iron, .. })).count();
            let _ = writeln!(self.report, "{}: {} points, {behind} behind, {mined} iron of late", team.name, team.score.get());
            log.truncate(8);
        }
        for ((id, ore), amount) in self.stocks.iter().take(4) {
            let _ = writeln!(self.report, "{}: {amount} of {ore:?}", self.entities[id].name);
        }
    }
}

impl Team {
    fn tell(&self, event: Event) {
        let mut log = self.log.borrow_mut();
        if log.len() == 64 {
            log.pop_front();
        }
        log.push_back(event);
    }
}

fn main() {
    heap::init();
    let world = World::new();
    let mut world = heap::of::<World, _>(|| Box::new(world));
    while heap::more() {
        world.tick();
    }
    if std::env::var("VERBOSE").is_ok() {
        let (finder, field) = (&world.finder, &world.field);
        println!("{} ticks, {:?}, {} searches {} expanded {} failed, {} fields", world.now, world.counts, finder.search, finder.expanded, finder.failed, field.made);
        print!("{}", world.report);
    }
    std::hint::black_box(world.now);
    std::process::exit(0);
}
