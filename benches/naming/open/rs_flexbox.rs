//! Boxes on a screen: nodes by generational keys, styles that cascade, flexible and block layout with caches, text that
//! is measured by closures, rounding, a display list, what is under the pointer.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::ops::{Add, Index, IndexMut, Sub};
use std::rc::Rc;

// ---- keys that are never wrong ----

pub struct Key<T> {
    index: u32,
    version: u32,
    of: PhantomData<T>,
}
impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Key<T> {}
impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && self.version == other.version
    }
}
pub type NodeId = Key<Node>;

pub enum Content<T> {
    Occupied(T),
    Vacant { next_free: u32 },
}

pub struct Slot<T> {
    version: u32,
    content: Content<T>,
}

pub struct SlotMap<T> {
    slots: Vec<Slot<T>>,
    free_head: u32,
    len: u32,
}

impl<T> SlotMap<T> {
    fn with_capacity(n: usize) -> Self {
        SlotMap { slots: heap::of::<Slot<T>, _>(|| Vec::with_capacity(n)), free_head: u32::MAX, len: 0 }
    }
    fn insert(&mut self, value: T) -> Key<T> {
        self.len += 1;
        if let Some(slot) = self.slots.get_mut(self.free_head as usize) {
            let index = self.free_head;
            if let Content::Vacant { next_free } = slot.content {
                self.free_head = next_free;
            }
            slot.version += 1;
            slot.content = Content::Occupied(value);
            return Key { index, version: slot.version, of: PhantomData };
        }
        self.slots.push(Slot { version: 1, content: Content::Occupied(value) });
        Key { index: self.slots.len() as u32 - 1, version: 1, of: PhantomData }
    }
    fn remove(&mut self, key: Key<T>) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize).filter(|s| s.version == key.version)?;
        let content = std::mem::replace(&mut slot.content, Content::Vacant { next_free: self.free_head });
        slot.version += 1;
        self.free_head = key.index;
        self.len -= 1;
        match content {
            Content::Occupied(value) => Some(value),
            Content::Vacant { .. } => None,
        }
    }
    fn get(&self, key: Key<T>) -> Option<&T> {
        match self.slots.get(key.index as usize) {
            Some(Slot { version, content: Content::Occupied(value) }) if *version == key.version => Some(value),
            _ => None,
        }
    }
}

impl<T> Index<Key<T>> for SlotMap<T> {
    type Output = T;
    fn index(&self, key: Key<T>) -> &T {
        self.get(key).expect("a key of what was removed")
    }
}
impl<T> IndexMut<Key<T>> for SlotMap<T> {
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        match self.slots.get_mut(key.index as usize) {
            Some(Slot { version, content: Content::Occupied(value) }) if *version == key.version => value,
            _ => panic!("a key of what was removed"),
        }
    }
}

// ---- geometry and styles ----

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Size<T> {
    width: T,
    height: T,
}
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Point<T> {
    x: T,
    y: T,
}
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Rect<T> {
    left: T,
    right: T,
    top: T,
    bottom: T,
}

impl<T: Add<Output = T> + Copy> Add for Point<T> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Point { x: self.x + other.x, y: self.y + other.y }
    }
}

impl<T: Copy> Size<T> {
    fn main(&self, row: bool) -> T {
        if row { self.width } else { self.height }
    }
    fn cross(&self, row: bool) -> T {
        self.main(!row)
    }
    fn from_main(row: bool, main: T, cross: T) -> Self {
        if row { Size { width: main, height: cross } } else { Size { width: cross, height: main } }
    }
}

impl Rect<f32> {
    fn main(&self, row: bool) -> f32 {
        if row { self.left + self.right } else { self.top + self.bottom }
    }
    fn main_start(&self, row: bool) -> f32 {
        if row { self.left } else { self.top }
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
pub enum Dimension {
    #[default]
    Auto,
    Length(f32),
    Percent(f32),
}

impl Dimension {
    fn resolve(self, parent: Option<f32>) -> Option<f32> {
        match self {
            Dimension::Auto => None,
            Dimension::Length(length) => Some(length),
            Dimension::Percent(share) => parent.map(|p| p * share),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
pub enum Display {
    #[default]
    Flex,
    Block,
    None,
}
#[derive(Clone, Copy, PartialEq)]
pub enum Align {
    Start,
    End,
    Center,
    Stretch,
}
#[derive(Clone, Copy, PartialEq)]
pub enum Justify {
    Start,
    End,
    SpaceBetween,
    SpaceAround,
}

#[derive(Clone, Default)]
pub struct Style {
    display: Display,
    column: bool,
    wrap: bool,
    justify: Option<Justify>,
    align_items: Option<Align>,
    align_self: Option<Align>,
    size: Size<Dimension>,
    min_size: Size<Dimension>,
    max_size: Size<Dimension>,
    margin: Rect<f32>,
    padding: Rect<f32>,
    gap: f32,
    grow: f32,
    shrink: f32,
    basis: Dimension,
    color: u32,
}

#[derive(Clone, Copy, PartialEq)]
pub enum AvailableSpace {
    Definite(f32),
    MinContent,
    MaxContent,
}

impl AvailableSpace {
    fn definite(self) -> Option<f32> {
        if let AvailableSpace::Definite(space) = self { Some(space) } else { None }
    }
}
impl Sub<f32> for AvailableSpace {
    type Output = Self;
    fn sub(self, other: f32) -> Self {
        match self {
            AvailableSpace::Definite(space) => AvailableSpace::Definite(space - other),
            kept => kept,
        }
    }
}

#[derive(Clone, Copy)]
pub struct CacheEntry {
    known: Size<Option<f32>>,
    available: Size<AvailableSpace>,
    size: Size<f32>,
}

#[derive(Default)]
pub struct Cache {
    entries: [Option<CacheEntry>; 5],
    laid_out: Option<(Size<Option<f32>>, Size<f32>)>,
    hits: u32,
    misses: u32,
}

#[derive(Clone, Copy, Default)]
pub struct Layout {
    order: u32,
    location: Point<f32>,
    size: Size<f32>,
    content: Size<f32>,
}

pub type Measure = Box<dyn Fn(&Context, Size<AvailableSpace>) -> Size<f32>>;

pub enum Context {
    Text { words: Vec<u16>, font: Rc<Font> },
    Image { width: u16, height: u16, pixels: Vec<u32> },
    Spinner(f32),
}

pub struct Font {
    advances: Vec<f32>,
    line_height: f32,
}

pub struct Node {
    style: Rc<Style>,
    cache: Cache,
    layout: Layout,
    rounded: Layout,
    parent: Option<NodeId>,
    children: Vec<NodeId>,
    classes: Vec<Class>,
    context: Option<Context>,
    dirty: bool,
    hovered: bool,
}

// ---- the cascade ----

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(u16);

#[derive(Clone, Copy)]
pub enum Declaration {
    Display(Display),
    Direction { column: bool },
    Wrap(bool),
    Justify(Justify),
    AlignItems(Align),
    AlignSelf(Align),
    Width(Dimension),
    Height(Dimension),
    MinWidth(Dimension),
    MaxWidth(Dimension),
    Margin(f32),
    Padding(Rect<f32>),
    Gap(f32),
    Flex { grow: f32, shrink: f32, basis: Dimension },
    Color(u32),
}

pub struct Rule {
    also: Option<Class>,
    ancestor: Option<Class>,
    specificity: u16,
    matched: u32,
    declarations: Vec<Declaration>,
}

#[derive(Default)]
pub struct Mix(u64);
impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u16(u16::from(b)));
    }
    fn write_u16(&mut self, n: u16) {
        self.0 = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The numbers of the rules for a class.
#[derive(Default)]
pub struct RuleList {
    numbers: Vec<u32>,
}

pub struct Sheet {
    rules: Vec<Rule>,
    by_class: HashMap<Class, RuleList, BuildHasherDefault<Mix>>,
    matched: Vec<(u16, u32)>,
}

impl Style {
    fn apply(&mut self, declaration: &Declaration) {
        match *declaration {
            Declaration::Display(display) => self.display = display,
            Declaration::Direction { column } => self.column = column,
            Declaration::Wrap(wrap) => self.wrap = wrap,
            Declaration::Justify(justify) => self.justify = Some(justify),
            Declaration::AlignItems(align) => self.align_items = Some(align),
            Declaration::AlignSelf(align) => self.align_self = Some(align),
            Declaration::Width(width) => self.size.width = width,
            Declaration::Height(height) => self.size.height = height,
            Declaration::MinWidth(width) => self.min_size.width = width,
            Declaration::MaxWidth(width) => self.max_size.width = width,
            Declaration::Margin(m) => self.margin = Rect { left: m, right: m, top: m * 0.5, bottom: m * 0.5 },
            Declaration::Padding(padding) => self.padding = padding,
            Declaration::Gap(gap) => self.gap = gap,
            Declaration::Flex { grow, shrink, basis } => (self.grow, self.shrink, self.basis) = (grow, shrink, basis),
            Declaration::Color(color) => self.color = color,
        }
    }
}

// ---- the tree ----

pub struct FlexItem {
    node: NodeId,
    size: Size<Option<f32>>,
    min: f32,
    max: f32,
    margin: Rect<f32>,
    align: Align,
    base: f32,
    hypothetical: f32,
    target: f32,
    cross: f32,
    frozen: bool,
    violation: f32,
    grow: f32,
    shrink: f32,
}

pub struct Line {
    first: u32,
    end: u32,
    cross: f32,
    offset: f32,
}

#[derive(Default, Debug)]
pub struct Counters {
    flex: u64,
    block: u64,
    leaves: u64,
    hits: u64,
    styled: u64,
    removed: u64,
}

pub struct Screen {
    nodes: SlotMap<Node>,
    sheet: Sheet,
    plain: Rc<Style>,
    measure: [Measure; 3],
    root: NodeId,
    list: Vec<Command>,
    clips: Vec<Rect<f32>>,
    counters: Counters,
}

pub enum Command {
    Fill { rect: Rect<i16>, color: u32 },
    Glyphs { origin: Point<f32>, count: u16, first: u16, advance: f32 },
    Image { rect: Rect<i16>, checksum: u64 },
    PushClip(Rect<f32>),
    PopClip,
}

impl Screen {
    fn add(&mut self, parent: Option<NodeId>, classes: &[u16], context: Option<Context>) -> NodeId {
        let classes = heap::of::<Class, _>(|| classes.iter().map(|&c| Class(c)).collect());
        let children = heap::of::<NodeId, _>(|| Vec::with_capacity(8));
        let node = Node { style: self.plain.clone(), cache: Cache::default(), layout: Layout::default(), rounded: Layout::default(), parent, children, classes, context, dirty: true, hovered: false };
        let id = self.nodes.insert(node);
        if let Some(parent) = parent {
            self.nodes[parent].children.push(id);
        }
        self.restyle(id);
        self.mark_dirty(id);
        id
    }

    fn remove(&mut self, id: NodeId) {
        let Some(node) = self.nodes.remove(id) else { return };
        if let Some(parent) = node.parent.filter(|&p| self.nodes.get(p).is_some()) {
            self.mark_dirty(parent);
            self.nodes[parent].children.retain(|&c| c != id);
        }
        self.counters.removed += 1;
        node.children.iter().for_each(|&child| self.remove(child));
    }

    fn mark_dirty(&mut self, id: NodeId) {
        let mut at = Some(id);
        while let Some(id) = at {
            let node = &mut self.nodes[id];
            node.cache.entries = [None; 5];
            node.cache.laid_out = None;
            node.dirty = true;
            at = node.parent;
        }
    }

    fn has_ancestor(&self, id: NodeId, class: Class) -> bool {
        let mut at = self.nodes[id].parent;
        while let Some(id) = at {
            let node = &self.nodes[id];
            if node.classes.contains(&class) {
                return true;
            }
            at = node.parent;
        }
        false
    }

    #[inline(never)]
    fn restyle(&mut self, id: NodeId) {
        let mut matched = std::mem::take(&mut self.sheet.matched);
        matched.clear();
        let node = &self.nodes[id];
        for class in &node.classes {
            for &number in self.sheet.by_class.get(class).into_iter().flat_map(|list| &list.numbers) {
                let rule = &self.sheet.rules[number as usize];
                if rule.also.is_none_or(|also| node.classes.contains(&also)) && rule.ancestor.is_none_or(|a| self.has_ancestor(id, a)) {
                    matched.push((rule.specificity, number));
                }
            }
        }
        matched.sort_unstable();
        let mut style = Style { shrink: 1.0, ..Style::default() };
        for &(_, number) in &matched {
            let rule = &mut self.sheet.rules[number as usize];
            rule.matched += 1;
            rule.declarations.iter().for_each(|d| style.apply(d));
        }
        self.nodes[id].style = heap::rc::<Style, _>(|| Rc::new(style));
        self.sheet.matched = matched;
        self.counters.styled += 1;
    }

    /// The size of a node; `perform` also places what is in it.
    fn compute(&mut self, id: NodeId, known: Size<Option<f32>>, available: Size<AvailableSpace>, perform: bool) -> Size<f32> {
        let node = &mut self.nodes[id];
        if perform {
            if let Some((with, size)) = node.cache.laid_out.filter(|(with, _)| *with == known) {
                node.cache.hits += 1;
                self.counters.hits += 1;
                let _ = with;
                return size;
            }
        } else if let Some(entry) = node.cache.entries.iter().flatten().find(|e| e.known == known && e.available == available) {
            node.cache.hits += 1;
            self.counters.hits += 1;
            return entry.size;
        }
        node.cache.misses += 1;
        let (leaf, display) = (node.children.is_empty(), node.style.display);
        let size = match display {
            Display::None => Size::default(),
            _ if leaf => self.compute_leaf(id, known, available),
            Display::Block => self.compute_block(id, known, available, perform),
            Display::Flex => self.compute_flex(id, known, available, perform),
        };
        let cache = &mut self.nodes[id].cache;
        if perform {
            cache.laid_out = Some((known, size));
        } else {
            let slot = cache.misses as usize % cache.entries.len();
            cache.entries[slot] = Some(CacheEntry { known, available, size });
        }
        size
    }

    #[inline(never)]
    fn compute_leaf(&mut self, id: NodeId, known: Size<Option<f32>>, available: Size<AvailableSpace>) -> Size<f32> {
        self.counters.leaves += 1;
        let node = &self.nodes[id];
        let padding = node.style.padding;
        let inner = Size { width: known.width.map_or(available.width, AvailableSpace::Definite) - padding.main(true), height: available.height - padding.main(false) };
        let content = match &node.context {
            Some(context @ Context::Text { .. }) => (self.measure[0])(context, inner),
            Some(context @ Context::Image { .. }) => (self.measure[1])(context, inner),
            Some(context @ Context::Spinner(_)) => (self.measure[2])(context, inner),
            None => Size::default(),
        };
        Size {
            width: known.width.or(node.style.size.width.resolve(available.width.definite())).unwrap_or(content.width + padding.main(true)),
            height: known.height.or(node.style.size.height.resolve(available.height.definite())).unwrap_or(content.height + padding.main(false)),
        }
    }

    #[inline(never)]
    fn compute_block(&mut self, id: NodeId, known: Size<Option<f32>>, available: Size<AvailableSpace>, perform: bool) -> Size<f32> {
        self.counters.block += 1;
        let style = self.nodes[id].style.clone();
        let width = known.width.or(style.size.width.resolve(available.width.definite())).or(available.width.definite());
        let inner = width.map(|w| w - style.padding.main(true));
        let (mut y, mut widest, mut before) = (style.padding.top, 0.0f32, 0.0f32);
        for i in 0..self.nodes[id].children.len() {
            let child = self.nodes[id].children[i];
            let (margin, own) = (self.nodes[child].style.margin, self.nodes[child].style.size.width.resolve(inner));
            let child_width = own.or(inner.map(|w| w - margin.main(true)));
            let space = Size { width: inner.map_or(available.width, AvailableSpace::Definite), height: AvailableSpace::MaxContent };
            let size = self.compute(child, Size { width: child_width, height: None }, space, perform);
            y += before.max(margin.top);
            if perform {
                self.nodes[child].layout = Layout { order: i as u32, location: Point { x: style.padding.left + margin.left, y }, size, content: size };
            }
            y += size.height;
            before = margin.bottom;
            widest = widest.max(size.width + margin.main(true));
        }
        Size {
            width: width.unwrap_or(widest + style.padding.main(true)),
            height: known.height.or(style.size.height.resolve(available.height.definite())).unwrap_or(y + before + style.padding.bottom),
        }
    }

    #[inline(never)]
    fn compute_flex(&mut self, id: NodeId, known: Size<Option<f32>>, available: Size<AvailableSpace>, perform: bool) -> Size<f32> {
        self.counters.flex += 1;
        let style = self.nodes[id].style.clone();
        let row = !style.column;
        let outer = Size {
            width: known.width.or(style.size.width.resolve(available.width.definite())),
            height: known.height.or(style.size.height.resolve(available.height.definite())),
        };
        let inner = Size { width: outer.width.map(|w| w - style.padding.main(true)), height: outer.height.map(|h| h - style.padding.main(false)) };
        let space = Size {
            width: inner.width.map_or(available.width - style.padding.main(true), AvailableSpace::Definite),
            height: inner.height.map_or(available.height - style.padding.main(false), AvailableSpace::Definite),
        };
        let count = self.nodes[id].children.len();
        let mut items = heap::of::<FlexItem, _>(|| Vec::with_capacity(count.next_power_of_two().max(4)));
        for i in 0..count {
            let child = self.nodes[id].children[i];
            let s = &self.nodes[child].style;
            if s.display == Display::None {
                continue;
            }
            let size = Size { width: s.size.width.resolve(inner.width), height: s.size.height.resolve(inner.height) };
            let (min, max) = (s.min_size.main(row).resolve(inner.main(row)), s.max_size.main(row).resolve(inner.main(row)));
            let mut item = FlexItem {
                node: child,
                size,
                min: min.unwrap_or(0.0),
                max: max.unwrap_or(f32::INFINITY),
                margin: s.margin,
                align: s.align_self.or(style.align_items).unwrap_or(Align::Stretch),
                base: 0.0,
                hypothetical: 0.0,
                target: 0.0,
                cross: 0.0,
                frozen: false,
                violation: 0.0,
                grow: s.grow,
                shrink: s.shrink,
            };
            item.base = match s.basis.resolve(inner.main(row)).or(size.main(row)) {
                Some(basis) => basis,
                None => {
                    let content = Size::from_main(row, AvailableSpace::MaxContent, space.cross(row));
                    self.compute(child, Size { width: None, height: None }, content, false).main(row)
                }
            };
            item.hypothetical = item.base.max(item.min).min(item.max);
            items.push(item);
        }
        let mut lines = heap::of::<Line, _>(|| Vec::with_capacity(4));
        collect_lines(&items, &mut lines, row, style.gap, style.wrap.then(|| space.main(row).definite()).flatten());
        let longest = lines.iter().map(|l| line_length(&items[l.first as usize..l.end as usize], row, style.gap)).fold(0.0, f32::max);
        let main = inner.main(row).unwrap_or(longest);
        let mut cross_total = 0.0;
        for line in &mut lines {
            let items = &mut items[line.first as usize..line.end as usize];
            resolve_flexible_lengths(items, row, main - style.gap * (items.len().max(1) - 1) as f32);
            for item in items.iter_mut() {
                let known = Size::from_main(row, Some(item.target), item.size.cross(row));
                item.cross = self.compute(item.node, known, Size::from_main(row, AvailableSpace::Definite(main), space.cross(row)), false).cross(row);
                line.cross = line.cross.max(item.cross + item.margin.main(!row));
            }
            line.offset = cross_total;
            cross_total += line.cross + style.gap;
        }
        let cross = inner.cross(row).unwrap_or((cross_total - style.gap).max(0.0));
        if let [line] = &mut lines[..] {
            line.cross = line.cross.max(inner.cross(row).unwrap_or(0.0));
        }
        if perform {
            for line in &lines {
                self.place(&mut items[line.first as usize..line.end as usize], line, &style, main);
            }
        }
        let inner_size = Size::from_main(row, main, cross);
        Size { width: outer.width.unwrap_or(inner_size.width + style.padding.main(true)), height: outer.height.unwrap_or(inner_size.height + style.padding.main(false)) }
    }

    #[inline(never)]
    fn place(&mut self, items: &mut [FlexItem], line: &Line, style: &Style, main: f32) {
        let row = !style.column;
        let free = (main - items.iter().map(|i| i.target + i.margin.main(row)).sum::<f32>() - style.gap * (items.len().max(1) - 1) as f32).max(0.0);
        let n = items.len().max(1) as f32;
        let (mut at, between) = match style.justify.unwrap_or(Justify::Start) {
            Justify::Start => (0.0, 0.0),
            Justify::End => (free, 0.0),
            Justify::SpaceBetween => (0.0, if n > 1.0 { free / (n - 1.0) } else { 0.0 }),
            Justify::SpaceAround => (free / n / 2.0, free / n),
        };
        at += style.padding.main_start(row);
        for (order, item) in items.iter_mut().enumerate() {
            if item.align == Align::Stretch && item.size.cross(row).is_none() {
                item.cross = line.cross - item.margin.main(!row);
            }
            let slack = line.cross - item.cross - item.margin.main(!row);
            let cross_at = style.padding.main_start(!row) + line.offset + item.margin.main_start(!row) + match item.align {
                Align::Start | Align::Stretch => 0.0,
                Align::End => slack,
                Align::Center => slack / 2.0,
            };
            at += item.margin.main_start(row);
            let target = Size::from_main(row, item.target, item.cross);
            let size = self.compute(item.node, Size { width: Some(target.width), height: Some(target.height) }, Size { width: AvailableSpace::Definite(target.width), height: AvailableSpace::Definite(target.height) }, true);
            let location = if row { Point { x: at, y: cross_at } } else { Point { x: cross_at, y: at } };
            self.nodes[item.node].layout = Layout { order: order as u32, location, size, content: target };
            at += item.target + item.margin.main(row) - item.margin.main_start(row) + style.gap + between;
        }
    }

    #[inline(never)]
    fn round(&mut self, id: NodeId, origin: Point<f32>) {
        let node = &mut self.nodes[id];
        let at = origin + node.layout.location;
        node.rounded.location = Point { x: at.x.round(), y: at.y.round() };
        node.rounded.size = Size { width: (at.x + node.layout.size.width).round() - at.x.round(), height: (at.y + node.layout.size.height).round() - at.y.round() };
        node.rounded.order = node.layout.order;
        node.rounded.content.width = node.layout.content.width.round();
        node.dirty = false;
        for i in 0..node.children.len() {
            let child = self.nodes[id].children[i];
            self.round(child, at);
        }
    }

    #[inline(never)]
    fn paint(&self, id: NodeId, list: &mut Vec<Command>, clips: &mut Vec<Rect<f32>>) {
        let node = &self.nodes[id];
        let Layout { location: at, size, .. } = node.rounded;
        let clip = clips.last().copied().unwrap_or_default();
        if node.style.display == Display::None || at.y > clip.bottom || at.y + size.height < clip.top || at.x > clip.right {
            return;
        }
        let rect = Rect { left: at.x as i16, right: (at.x + size.width) as i16, top: at.y as i16, bottom: (at.y + size.height) as i16 };
        if node.style.color != 0 {
            list.push(Command::Fill { rect, color: node.style.color | u32::from(node.hovered) });
        }
        match &node.context {
            Some(Context::Text { words, font }) => {
                let mut pen = at;
                for (i, &word) in words.iter().enumerate() {
                    let advance = font.advances[word as usize];
                    if pen.x + advance > at.x + size.width {
                        pen = Point { x: at.x, y: pen.y + font.line_height };
                    }
                    if i % 4 == 0 {
                        list.push(Command::Glyphs { origin: pen, count: 4, first: word, advance });
                    }
                    pen.x += advance;
                }
            }
            Some(Context::Image { pixels, .. }) => {
                let checksum = pixels.iter().step_by(5).map(|&p| u64::from(p)).sum();
                list.push(Command::Image { rect, checksum });
            }
            _ => (),
        }
        if !node.children.is_empty() {
            let inner = Rect { left: clip.left.max(at.x), right: clip.right.min(at.x + size.width), top: clip.top.max(at.y), bottom: clip.bottom.min(at.y + size.height) };
            clips.push(inner);
            list.push(Command::PushClip(inner));
            node.children.iter().for_each(|&child| self.paint(child, list, clips));
            list.push(Command::PopClip);
            clips.pop();
        }
    }

    #[inline(never)]
    fn hit(&self, id: NodeId, x: f32, y: f32) -> Option<NodeId> {
        let node = &self.nodes[id];
        let Layout { location: at, size, .. } = node.rounded;
        if x < at.x || y < at.y || x >= at.x + size.width || y >= at.y + size.height {
            return None;
        }
        node.children.iter().rev().find_map(|&child| self.hit(child, x, y)).or(Some(id))
    }
}

fn collect_lines(items: &[FlexItem], lines: &mut Vec<Line>, row: bool, gap: f32, limit: Option<f32>) {
    let (mut first, mut length) = (0, 0.0);
    for (i, item) in items.iter().enumerate() {
        let next = item.hypothetical + item.margin.main(row);
        if i > first && limit.is_some_and(|limit| length + next > limit) {
            lines.push(Line { first: first as u32, end: i as u32, cross: 0.0, offset: 0.0 });
            (first, length) = (i, 0.0);
        }
        length += next + gap;
    }
    lines.push(Line { first: first as u32, end: items.len() as u32, cross: 0.0, offset: 0.0 });
}

fn line_length(items: &[FlexItem], row: bool, gap: f32) -> f32 {
    items.iter().map(|i| i.hypothetical + i.margin.main(row) + gap).sum::<f32>() - gap
}

#[inline(never)]
fn resolve_flexible_lengths(items: &mut [FlexItem], row: bool, space: f32) {
    let used: f32 = items.iter().map(|i| i.hypothetical + i.margin.main(row)).sum();
    let growing = used < space;
    for item in items.iter_mut() {
        item.target = item.hypothetical;
        item.frozen = if growing { item.grow == 0.0 || item.base > item.hypothetical } else { item.shrink == 0.0 || item.base < item.hypothetical };
    }
    while items.iter().any(|i| !i.frozen) {
        let taken: f32 = items.iter().map(|i| i.margin.main(row) + if i.frozen { i.target } else { i.base }).sum();
        let free = space - taken;
        let factors: f32 = items.iter().filter(|i| !i.frozen).map(|i| if growing { i.grow } else { i.shrink * i.base }).sum();
        let mut total = 0.0;
        for item in items.iter_mut().filter(|i| !i.frozen) {
            let share = if factors > 0.0 { (if growing { item.grow } else { item.shrink * item.base }) / factors } else { 0.0 };
            let wanted = item.base + free * share;
            item.target = wanted.max(item.min).min(item.max).max(0.0);
            item.violation = item.target - wanted;
            total += item.violation;
        }
        for item in items.iter_mut().filter(|i| !i.frozen) {
            item.frozen = total == 0.0 || (total > 0.0) == (item.violation > 0.0) || item.violation == 0.0;
        }
    }
}

// ---- what is shown ----

fn dimension(r: u64) -> Dimension {
    match r & 3 {
        0 => Dimension::Auto,
        1 => Dimension::Percent(0.1 + (r >> 8 & 7) as f32 * 0.1),
        _ => Dimension::Length(20.0 + (r >> 8 & 127) as f32),
    }
}

fn sheet() -> Sheet {
    let mut rules = heap::of::<Rule, _>(|| Vec::with_capacity(128));
    let mut by_class: HashMap<Class, RuleList, _> = heap::table::<Class, RuleList, _>(|| HashMap::with_capacity_and_hasher(64, BuildHasherDefault::<Mix>::default()));
    for number in 0..120u32 {
        let r = heap::random() >> 6;
        let mut declarations = heap::of::<Declaration, _>(|| Vec::with_capacity(4));
        let aligns = [Align::Start, Align::End, Align::Center, Align::Stretch];
        let justifies = [Justify::Start, Justify::End, Justify::SpaceBetween, Justify::SpaceAround];
        for k in 0..4 {
            let r = r >> (10 * k);
            declarations.push(match (number as u64 + k * 5) % 15 {
                0 => Declaration::Display(if r & 3 != 0 { Display::Block } else { Display::Flex }),
                1 => Declaration::Direction { column: r & 1 == 0 },
                2 => Declaration::Wrap(r & 3 != 0),
                3 => Declaration::Justify(justifies[r as usize & 3]),
                4 => Declaration::AlignItems(aligns[r as usize & 3]),
                5 => Declaration::AlignSelf(aligns[r as usize & 3]),
                6 => Declaration::Width(dimension(r)),
                7 => Declaration::Height(if r & 4 == 0 { dimension(r | 2) } else { Dimension::Auto }),
                8 => Declaration::MinWidth(Dimension::Length((r & 31) as f32)),
                9 => Declaration::MaxWidth(Dimension::Length(100.0 + (r & 255) as f32)),
                10 => Declaration::Margin((r & 7) as f32),
                11 => Declaration::Padding(Rect { left: (r & 7) as f32, right: 2.0, top: 3.0, bottom: (r >> 3 & 7) as f32 }),
                12 => Declaration::Gap((r & 7) as f32),
                13 => Declaration::Flex { grow: (r & 3) as f32, shrink: 1.0, basis: Dimension::Auto },
                _ => Declaration::Color(r as u32 | 2),
            });
        }
        let class = |r: u64| (r & 3 == 0).then_some(Class((r >> 4) as u16 % 40));
        rules.push(Rule { also: class(r >> 9), ancestor: class(r >> 20), specificity: (r >> 33 & 7) as u16, matched: 0, declarations });
        let list = &mut heap::table::<Class, RuleList, _>(|| by_class.entry(Class((number % 40) as u16)).or_default()).numbers;
        if list.is_empty() {
            *list = heap::of::<u32, _>(|| Vec::with_capacity(8));
        }
        list.push(number);
    }
    Sheet { rules, by_class, matched: heap::of::<(u16, u32), _>(|| Vec::with_capacity(64)) }
}

fn context(r: u64, fonts: &[Rc<Font>]) -> Context {
    match r % 8 {
        0 => {
            let pixels = heap::of::<u32, _>(|| Vec::from_iter((0..256u32).map(|i| i.wrapping_mul(r as u32))));
            Context::Image { width: 16 + (r >> 8 & 63) as u16, height: 16 + (r >> 14 & 63) as u16, pixels }
        }
        1 => Context::Spinner((r >> 8 & 31) as f32),
        _ => {
            let count = 8 << (r >> 20 & 3);
            let words = heap::of::<u16, _>(|| Vec::from_iter((0..count).map(|i| (r >> (i % 40)) as u16 % 512)));
            Context::Text { words, font: fonts[(r >> 30) as usize % fonts.len()].clone() }
        }
    }
}

fn grow_tree(tree: &mut Screen, parent: NodeId, depth: u32, fonts: &[Rc<Font>]) {
    let r = heap::random() >> 5;
    for i in 0..2 + r % 5 {
        let q = heap::random() >> 7;
        let classes = [(q % 40) as u16, (q >> 8) as u16 % 40, (q >> 16) as u16 % 40];
        let leaf = depth == 0 || q >> 30 & 3 == 0;
        let context = if leaf { Some(context(q >> 20, fonts)) } else { None };
        let id = tree.add(Some(parent), &classes[..1 + (i as usize + depth as usize) % 3], context);
        if !leaf {
            grow_tree(tree, id, depth - 1, fonts);
        }
    }
}

fn main() {
    heap::init();
    let mut fonts = heap::of::<Rc<Font>, _>(|| Vec::with_capacity(4));
    for i in 0..3 {
        let advances = heap::of::<f32, _>(|| Vec::from_iter((0..512).map(|w| 10.0 + (w * 7 % 31) as f32 + i as f32)));
        fonts.push(heap::rc::<Font, _>(|| Rc::new(Font { advances, line_height: 14.0 + i as f32 })));
    }
    let text: Measure = Box::new(|context, space| {
        let Context::Text { words, font } = context else { return Size::default() };
        let limit = match space.width {
            AvailableSpace::Definite(width) => width,
            AvailableSpace::MinContent => 0.0,
            AvailableSpace::MaxContent => f32::INFINITY,
        };
        let (mut x, mut widest, mut lines) = (0.0f32, 0.0f32, 1.0);
        for &word in words {
            let advance = font.advances[word as usize];
            if x + advance > limit && x > 0.0 {
                widest = widest.max(x);
                x = 0.0;
                lines += 1.0;
            }
            x += advance;
        }
        Size { width: widest.max(x), height: lines * font.line_height }
    });
    let image: Measure = Box::new(|context, _| match context {
        Context::Image { width, height, .. } => Size { width: f32::from(*width), height: f32::from(*height) },
        _ => Size::default(),
    });
    let spinner: Measure = Box::new(|context, _| if let Context::Spinner(r) = context { Size { width: *r, height: *r } } else { Size::default() });
    let mut tree = Screen {
        nodes: SlotMap::with_capacity(4096),
        sheet: sheet(),
        plain: heap::rc::<Style, _>(|| Rc::new(Style::default())),
        measure: [text, image, spinner],
        root: Key { index: 0, version: 0, of: PhantomData },
        list: heap::of::<Command, _>(|| Vec::with_capacity(8192)),
        clips: heap::of::<Rect<f32>, _>(|| Vec::with_capacity(32)),
        counters: Counters::default(),
    };
    tree.root = tree.add(None, &[], None);
    let column = Style { column: true, ..Style::default() };
    let root = tree.root;
    tree.nodes[root].style = heap::rc::<Style, _>(|| Rc::new(column));
    for _ in 0..30 {
        grow_tree(&mut tree, root, 2, &fonts);
    }
    let mut tree = heap::of::<Screen, _>(|| Box::new(tree));
    let mut hovered = BTreeSet::new();
    let mut sum = 0.0;
    let mut commands = 0;
    for turn in 0u64.. {
        if !heap::more() {
            break;
        }
        for _ in 0..3 {
            let r = heap::random() >> 8;
            let slot = r as usize % tree.nodes.slots.len();
            let id = Key { index: slot as u32, version: tree.nodes.slots[slot].version, of: PhantomData };
            let Some(node) = tree.nodes.get(id).filter(|_| id != root) else { continue };
            match r >> 20 & 7 {
                0 if tree.nodes.len > 2200 || r >> 30 & 1 == 0 => tree.remove(id),
                0 | 1 if tree.nodes.len < 3000 && node.context.is_none() => grow_tree(&mut tree, id, 2, &fonts),
                2 | 3 => {
                    let class = Class((r >> 24) as u16 % 40);
                    if let Some(first) = tree.nodes[id].classes.first_mut() {
                        *first = class;
                    }
                    tree.restyle(id);
                    tree.mark_dirty(id);
                }
                _ => tree.mark_dirty(id),
            }
        }
        if tree.nodes.len < 1500 {
            grow_tree(&mut tree, root, 3, &fonts);
        }
        let width = 700.0 + (turn % 7) as f32 * 40.0;
        let size = tree.compute(root, Size { width: Some(width), height: None }, Size { width: AvailableSpace::Definite(width), height: AvailableSpace::MaxContent }, true);
        tree.nodes[root].layout.size = size;
        tree.round(root, Point::default());
        let (mut list, mut clips) = (std::mem::take(&mut tree.list), std::mem::take(&mut tree.clips));
        list.clear();
        let scroll = (turn * 97 % 1000) as f32 * size.height / 1000.0;
        clips.push(Rect { left: 0.0, right: width, top: scroll, bottom: scroll + 6000.0 });
        tree.paint(root, &mut list, &mut clips);
        clips.pop();
        commands += list.len();
        sum += list.iter().map(|c| match c {
            Command::Fill { rect, color } => f64::from(rect.right - rect.left) + f64::from(color & 3),
            Command::Glyphs { origin, count, first, advance } => f64::from(origin.x * *advance) + f64::from(count + first),
            Command::Image { rect, checksum } => f64::from(rect.bottom) + (checksum & 7) as f64,
            Command::PushClip(rect) => f64::from(rect.top),
            Command::PopClip => 1.0,
        }).sum::<f64>();
        (tree.list, tree.clips) = (list, clips);
        for _ in 0..40 {
            let r = heap::random() >> 9;
            let hit = tree.hit(root, (r % 900) as f32, scroll + (r >> 12) as f32 % 1200.0);
            if let Some(id) = hit {
                tree.nodes[id].hovered ^= true;
                heap::tree_set::<(u32, u32), _>(|| if !hovered.remove(&(id.index, id.version)) { hovered.insert((id.index, id.version)); });
            }
        }
        sum += hovered.range((100, 0)..(900, 0)).map(|&(i, v)| f64::from(i ^ v)).sum::<f64>();
    }
    if std::env::var("SHOW").is_ok() {
        eprintln!("sum {sum} scroll {} commands {commands} nodes {} hovered {} {:?}", tree.nodes[root].layout.size.height, tree.nodes.len, hovered.len(), tree.counters);
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
