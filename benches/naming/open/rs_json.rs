//! Documents: a parser out of combinators, values with small texts inside, a tape of the same for quick passes, paths
//! with conditions, schemas, differences as patches, two writers behind a trait.
#[path = "../heap.rs"]
mod heap;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::{discriminant, take};

// ---- values ----

/// Up to 22 bytes lie inside.
#[derive(Clone)]
pub enum SmallText {
    Inline { len: u8, bytes: [u8; 22] },
    Long(Box<[u8]>),
}

impl SmallText {
    fn new(text: &[u8]) -> Self {
        if text.len() > 22 {
            return SmallText::Long(heap::of::<u8, _>(|| text.into()));
        }
        let mut bytes = [0; 22];
        bytes[..text.len()].copy_from_slice(text);
        SmallText::Inline { len: text.len() as u8, bytes }
    }
    fn as_bytes(&self) -> &[u8] {
        match self {
            SmallText::Inline { len, bytes } => &bytes[..*len as usize],
            SmallText::Long(bytes) => bytes,
        }
    }
}

#[derive(Clone)]
pub struct Key {
    hash: u32,
    text: SmallText,
}

fn hash_of(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Key {
    fn new(text: &[u8]) -> Self {
        Key { hash: hash_of(text), text: SmallText::new(text) }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text.as_bytes() == other.text.as_bytes()
    }
}

#[derive(Clone)]
pub struct Member {
    key: Key,
    value: Json,
}

#[derive(Clone, Default)]
pub enum Json {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(SmallText),
    List(Vec<Json>),
    Object(Vec<Member>),
}

impl Json {
    fn field(&self, key: &Key) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|member| member.key == *key).map(|member| &member.value),
            _ => None,
        }
    }
    fn number(&self) -> Option<f64> {
        match *self {
            Json::Number(number) => Some(number),
            Json::Bool(bool) => Some(f64::from(u8::from(bool))),
            _ => None,
        }
    }
    fn children(&self) -> Children<'_> {
        match self {
            Json::List(items) => Children::List(items.iter()),
            Json::Object(members) => Children::Object(members.iter()),
            _ => Children::None,
        }
    }
    #[inline(never)]
    fn weight(&self) -> u64 {
        let own = match self {
            Json::Text(text) => text.as_bytes().len() as u64,
            Json::Number(number) => number.to_bits() >> 52,
            _ => 1,
        };
        own + self.children().map(Json::weight).sum::<u64>()
    }
}

pub enum Children<'a> {
    None,
    List(std::slice::Iter<'a, Json>),
    Object(std::slice::Iter<'a, Member>),
}

impl<'a> Iterator for Children<'a> {
    type Item = &'a Json;
    fn next(&mut self) -> Option<&'a Json> {
        match self {
            Children::None => None,
            Children::List(items) => items.next(),
            Children::Object(members) => members.next().map(|member| &member.value),
        }
    }
}

// ---- combinators ----

type Input<'a> = &'a [u8];
type Parsed<'a, T> = Result<(T, Input<'a>), Expected>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    Byte(u8),
    Digit,
    Value,
    End,
    Depth,
}

fn blank(input: Input<'_>) -> Input<'_> {
    let skip = input.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\t')).count();
    &input[skip..]
}

fn byte<'a>(wanted: u8) -> impl Fn(Input<'a>) -> Parsed<'a, ()> {
    move |input| match blank(input) {
        [first, rest @ ..] if *first == wanted => Ok(((), rest)),
        _ => Err(Expected::Byte(wanted)),
    }
}

fn word<'a, T: Clone>(text: &'static [u8], value: T) -> impl Fn(Input<'a>) -> Parsed<'a, T> {
    move |input| match blank(input).strip_prefix(text) {
        Some(rest) => Ok((value.clone(), rest)),
        None => Err(Expected::Value),
    }
}

fn map<'a, A, B>(parser: impl Fn(Input<'a>) -> Parsed<'a, A>, f: impl Fn(A) -> B) -> impl Fn(Input<'a>) -> Parsed<'a, B> {
    move |input| parser(input).map(|(value, rest)| (f(value), rest))
}

fn or<'a, T>(one: impl Fn(Input<'a>) -> Parsed<'a, T>, other: impl Fn(Input<'a>) -> Parsed<'a, T>) -> impl Fn(Input<'a>) -> Parsed<'a, T> {
    move |input| one(input).or_else(|_| other(input))
}

fn then<'a, A, B>(one: impl Fn(Input<'a>) -> Parsed<'a, A>, other: impl Fn(Input<'a>) -> Parsed<'a, B>) -> impl Fn(Input<'a>) -> Parsed<'a, (A, B)> {
    move |input| {
        let (a, rest) = one(input)?;
        let (b, rest) = other(rest)?;
        Ok(((a, b), rest))
    }
}

/// Values between commas, in brackets; `make` gives the vector that holds them.
fn listed<'a, T>(
    open: u8,
    close: u8,
    item: impl Fn(Input<'a>) -> Parsed<'a, T>,
    make: impl Fn() -> Vec<T>,
) -> impl Fn(Input<'a>) -> Parsed<'a, Vec<T>> {
    move |input| {
        let ((), mut rest) = byte(open)(input)?;
        let mut items = make();
        if let Ok(((), rest)) = byte(close)(rest) {
            return Ok((items, rest));
        }
        loop {
            let (value, after) = item(rest)?;
            items.push(value);
            match byte(b',')(after) {
                Ok(((), after)) => rest = after,
                Err(_) => return byte(close)(after).map(|((), rest)| (items, rest)),
            }
        }
    }
}

fn number(input: Input<'_>) -> Parsed<'_, f64> {
    let input = blank(input);
    let (negative, mut rest) = match input {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, input),
    };
    let (mut value, mut scale, mut digits, mut fraction) = (0.0, 1.0, 0, false);
    while let [first, after @ ..] = rest {
        match first {
            b'0'..=b'9' => {
                value = value * 10.0 + f64::from(first - b'0');
                scale *= if fraction { 10.0 } else { 1.0 };
                digits += 1;
            }
            b'.' if !fraction => fraction = true,
            _ => break,
        }
        rest = after;
    }
    match digits {
        0 => Err(Expected::Digit),
        _ => Ok((if negative { -value / scale } else { value / scale }, rest)),
    }
}

fn text(input: Input<'_>) -> Parsed<'_, &[u8]> {
    let ((), rest) = byte(b'"')(input)?;
    let end = rest.iter().position(|&byte| byte == b'"').ok_or(Expected::End)?;
    Ok((&rest[..end], &rest[end + 1..]))
}

#[inline(never)]
fn json(depth: u8, input: Input<'_>) -> Parsed<'_, Json> {
    if depth > 12 {
        return Err(Expected::Depth);
    }
    let value = move |input| json(depth + 1, input);
    match blank(input).first() {
        Some(b'"') => map(text, |text| Json::Text(SmallText::new(text)))(input),
        Some(b'[') => map(listed(b'[', b']', value, || heap::of::<Json, _>(|| Vec::with_capacity(8))), Json::List)(input),
        Some(b'{') => {
            let key = map(then(text, byte(b':')), |(text, ())| Key::new(text));
            let member = map(then(key, value), |(key, value)| Member { key, value });
            map(listed(b'{', b'}', member, || heap::of::<Member, _>(|| Vec::with_capacity(8))), Json::Object)(input)
        }
        _ => {
            let words = or(word(b"null", Json::Null), or(word(b"true", Json::Bool(true)), word(b"false", Json::Bool(false))));
            or(map(number, Json::Number), words)(input)
        }
    }
}

// ---- the tape ----

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    Null,
    True,
    False,
    Number,
    Text,
    Key,
    List,
    Object,
    End,
}

/// A word of the tape: for what opens, where its end is; for texts, where they are in the source.
#[derive(Clone, Copy)]
pub struct Cellule {
    tag: Tag,
    depth: u8,
    length: u16,
    at: u32,
    bits: u64,
}

#[derive(Default)]
pub struct Tape {
    cells: Vec<Cellule>,
    open: Vec<u32>,
    errors: u32,
}

impl Tape {
    fn push(&mut self, tag: Tag, at: usize, length: usize, bits: u64) {
        let depth = self.open.len() as u8;
        self.cells.push(Cellule { tag, depth, length: length as u16, at: at as u32, bits });
    }

    #[inline(never)]
    fn build(&mut self, source: &[u8]) {
        self.cells.clear();
        self.open.clear();
        let mut at = 0;
        while at < source.len() {
            match source[at] {
                b'{' | b'[' => {
                    self.push(if source[at] == b'{' { Tag::Object } else { Tag::List }, at, 0, 0);
                    self.open.push(self.cells.len() as u32 - 1);
                }
                b'}' | b']' => match self.open.pop() {
                    Some(start) => {
                        self.cells[start as usize].bits = self.cells.len() as u64;
                        self.push(Tag::End, at, 0, start.into());
                    }
                    None => self.errors += 1,
                },
                b'"' => {
                    let length = source[at + 1..].iter().position(|&byte| byte == b'"').unwrap_or(0);
                    let key = source.get(at + length + 2) == Some(&b':');
                    let text = &source[at + 1..at + 1 + length];
                    self.push(if key { Tag::Key } else { Tag::Text }, at + 1, length, hash_of(text).into());
                    at += length + 1;
                }
                b't' | b'f' | b'n' => {
                    let (tag, length) = match source[at] {
                        b't' => (Tag::True, 4),
                        b'f' => (Tag::False, 5),
                        _ => (Tag::Null, 4),
                    };
                    self.push(tag, at, length, 0);
                    at += length - 1;
                }
                b'-' | b'0'..=b'9' => {
                    if let Ok((value, rest)) = number(&source[at..]) {
                        let length = source.len() - at - rest.len();
                        self.push(Tag::Number, at, length, value.to_bits());
                        at += length - 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The numbers that stand under the key, whichever object they are in.
    fn numbers<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = f64> + 'a {
        self.cells.windows(2).filter_map(move |pair| match pair {
            [name, value] if name.tag == Tag::Key && name.bits == u64::from(key.hash) && value.tag == Tag::Number => {
                Some(f64::from_bits(value.bits))
            }
            _ => None,
        })
    }

    #[inline(never)]
    fn widest(&self) -> (u64, u8) {
        let (mut widest, mut depth, mut at) = (0, 0, 0);
        while let Some(cell) = self.cells.get(at) {
            depth = depth.max(cell.depth);
            match cell.tag {
                Tag::Object | Tag::List => {
                    let size = cell.bits - at as u64;
                    widest = u64::max(widest, size);
                    at += if size < 4 { size as usize } else { 1 };
                }
                _ => at += 1,
            }
        }
        (widest, depth)
    }
}

// ---- paths ----

pub enum Step {
    Field(Key),
    Index(usize),
    All,
    Deep(Key),
    Where(Box<dyn Fn(&Json) -> bool>),
}

pub struct Path {
    steps: Vec<Step>,
    name: &'static str,
    matched: u64,
}

impl Path {
    #[inline(never)]
    fn select<'a>(&mut self, root: &'a Json, found: &mut Vec<&'a Json>, next: &mut Vec<&'a Json>) {
        found.clear();
        found.push(root);
        for step in &self.steps {
            next.clear();
            for value in found.iter() {
                match step {
                    Step::Field(key) => next.extend(value.field(key)),
                    Step::Index(index) => next.extend(value.children().nth(*index)),
                    Step::All => next.extend(value.children()),
                    Step::Deep(key) => deep(value, key, next),
                    Step::Where(condition) => next.extend(value.children().filter(|value| condition(value))),
                }
            }
            std::mem::swap(found, next);
        }
        self.matched += found.len() as u64;
    }
}

#[inline(never)]
fn deep<'a>(value: &'a Json, key: &Key, found: &mut Vec<&'a Json>) {
    found.extend(value.field(key));
    for child in value.children() {
        deep(child, key, found);
    }
}

// ---- schemas ----

pub struct Field {
    key: Key,
    schema: Schema,
    required: bool,
    checked: u32,
}

pub enum Schema {
    Any,
    Bool,
    Number { range: (f64, f64), whole: bool },
    Text { longest: usize, allowed: HashMap<u32, u32, BuildHasherDefault<Folded>> },
    List { items: Box<Schema>, most: usize },
    Object(Vec<Field>),
    Either(Box<Pair>),
}

pub struct Pair {
    one: Schema,
    other: Schema,
}

#[derive(Default)]
pub struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 ^ u64::from(byte));
    }
    fn write_u32(&mut self, value: u32) {
        self.0 = self.0 << 1 ^ u64::from(value);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    Type,
    Range,
    TooLong,
    Unknown,
    Missing,
}

#[derive(Clone, Copy)]
pub struct Problem {
    trouble: Trouble,
    depth: u8,
    place: [u32; 4],
}

#[derive(Default)]
pub struct Checker {
    problems: Vec<Problem>,
    place: [u32; 4],
    counts: [u32; 5],
}

impl Checker {
    fn report(&mut self, trouble: Trouble, depth: usize) {
        self.counts[trouble as usize] += 1;
        if self.problems.len() == self.problems.capacity() {
            self.problems.clear();
        }
        self.problems.push(Problem { trouble, depth: depth as u8, place: self.place });
    }

    #[inline(never)]
    fn check(&mut self, schema: &mut Schema, value: &Json, depth: usize) -> bool {
        let before = self.counts;
        match (schema, value) {
            (Schema::Any, _) | (Schema::Bool, Json::Bool(_)) => {}
            (Schema::Number { range, whole }, Json::Number(number)) => {
                if *number < range.0 || *number > range.1 || *whole && number.fract() != 0.0 {
                    self.report(Trouble::Range, depth);
                }
            }
            (Schema::Text { longest, allowed }, Json::Text(text)) => {
                if text.as_bytes().len() > *longest {
                    self.report(Trouble::TooLong, depth);
                } else if !allowed.is_empty() {
                    match allowed.get_mut(&hash_of(text.as_bytes())) {
                        Some(count) => *count += 1,
                        None => self.report(Trouble::Unknown, depth),
                    }
                }
            }
            (Schema::List { items, most }, Json::List(values)) => {
                if values.len() > *most {
                    self.report(Trouble::TooLong, depth);
                }
                for (index, value) in values.iter().enumerate() {
                    self.place[depth & 3] = index as u32;
                    self.check(items, value, depth + 1);
                }
            }
            (Schema::Object(fields), value @ Json::Object(_)) => {
                for field in fields {
                    self.place[depth & 3] = field.key.hash;
                    field.checked += 1;
                    match value.field(&field.key) {
                        Some(value) => drop(self.check(&mut field.schema, value, depth + 1)),
                        None if field.required => self.report(Trouble::Missing, depth),
                        None => {}
                    }
                }
            }
            (Schema::Either(both), value) => {
                if !self.check(&mut both.one, value, depth) {
                    self.check(&mut both.other, value, depth);
                }
            }
            _ => self.report(Trouble::Type, depth),
        }
        self.counts == before
    }
}

// ---- differences ----

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Patch {
    Add { parent: u32, key: u32 },
    Remove { parent: u32, key: u32 },
    Replace { parent: u32, key: u32, change: f64 },
}

#[inline(never)]
fn differ(a: &Json, b: &Json, parent: u32, key: u32, out: &mut Vec<Patch>) {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            for (place, member) in a.iter().enumerate() {
                let same = b.get(place).filter(|other| other.key == member.key).or_else(|| b.iter().find(|other| other.key == member.key));
                match same {
                    Some(other) => differ(&member.value, &other.value, key, member.key.hash, out),
                    None => out.push(Patch::Remove { parent: key, key: member.key.hash }),
                }
            }
            let added = b.iter().filter(|member| !a.iter().any(|other| other.key == member.key));
            out.extend(added.map(|member| Patch::Add { parent: key, key: member.key.hash }));
        }
        (Json::List(a), Json::List(b)) => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(a, b, key, index as u32, out);
            }
            out.extend((a.len()..b.len()).map(|index| Patch::Add { parent: key, key: index as u32 }));
        }
        (Json::Text(a), Json::Text(b)) if a.as_bytes() == b.as_bytes() => {}
        (Json::Number(a), Json::Number(b)) if a == b => {}
        (Json::Bool(a), Json::Bool(b)) if a == b => {}
        (Json::Null, Json::Null) => {}
        _ => out.push(Patch::Replace { parent, key, change: b.number().unwrap_or(0.0) - a.number().unwrap_or(0.0) }),
    }
}

// ---- writing ----

pub trait Sink {
    fn begin(&mut self, open: u8);
    fn separate(&mut self, first: bool);
    fn key(&mut self, key: &Key);
    fn scalar(&mut self, bytes: &[u8], quoted: bool);
    fn end(&mut self, close: u8);
}

pub struct Compact {
    out: Vec<u8>,
}

pub struct Pretty {
    out: Vec<u8>,
    indent: usize,
    lines: u32,
}

impl Sink for Compact {
    fn begin(&mut self, open: u8) {
        self.out.push(open);
    }
    fn separate(&mut self, first: bool) {
        if !first {
            self.out.push(b',');
        }
    }
    fn key(&mut self, key: &Key) {
        self.scalar(key.text.as_bytes(), true);
        self.out.push(b':');
    }
    fn scalar(&mut self, bytes: &[u8], quoted: bool) {
        if quoted {
            self.out.push(b'"');
        }
        for &byte in bytes {
            self.out.push(byte);
        }
        if quoted {
            self.out.push(b'"');
        }
    }
    fn end(&mut self, close: u8) {
        self.out.push(close);
    }
}

impl Sink for Pretty {
    fn begin(&mut self, open: u8) {
        self.out.push(open);
        self.indent += 2;
    }
    fn separate(&mut self, first: bool) {
        if !first {
            self.out.push(b',');
        }
        self.out.push(b'\n');
        self.out.resize(self.out.len() + self.indent, b' ');
        self.lines += 1;
    }
    fn key(&mut self, key: &Key) {
        self.scalar(key.text.as_bytes(), true);
        self.out.extend_from_slice(b": ");
    }
    fn scalar(&mut self, bytes: &[u8], quoted: bool) {
        let quote: &[u8] = if quoted { b"\"" } else { b"" };
        self.out.extend_from_slice(quote);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(quote);
    }
    fn end(&mut self, close: u8) {
        self.indent -= 2;
        self.out.push(close);
    }
}

#[inline(never)]
fn write(value: &Json, sink: &mut dyn Sink) {
    match value {
        Json::Null => sink.scalar(b"null", false),
        Json::Bool(true) => sink.scalar(b"true", false),
        Json::Bool(false) => sink.scalar(b"false", false),
        Json::Number(number) => {
            let (mut digits, mut at, mut rest) = ([0u8; 24], 24, (number.abs() * 100.0) as u64);
            loop {
                at -= 1;
                digits[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
                if at == 22 {
                    at -= 1;
                    digits[at] = b'.';
                }
                if rest == 0 && at < 21 {
                    break;
                }
            }
            sink.scalar(&digits[at..], false);
        }
        Json::Text(text) => sink.scalar(text.as_bytes(), true),
        Json::List(items) => {
            sink.begin(b'[');
            for (index, item) in items.iter().enumerate() {
                sink.separate(index == 0);
                write(item, sink);
            }
            sink.end(b']');
        }
        Json::Object(members) => {
            sink.begin(b'{');
            for (index, member) in members.iter().enumerate() {
                sink.separate(index == 0);
                sink.key(&member.key);
                write(&member.value, sink);
            }
            sink.end(b'}');
        }
    }
}

// ---- changes ----

#[inline(never)]
fn disturb(value: &mut Json, random: &mut u64) {
    *random = random.rotate_left(7).wrapping_mul(0x2545_F491_4F6C_DD1D);
    match value {
        Json::Number(number) if *random & 7 == 0 => *number = (*random >> 40 & 1023) as f64 / 4.0,
        Json::Bool(bool) if *random & 15 == 0 => *bool = !*bool,
        Json::List(items) => {
            if let len @ 3.. = items.len() {
                items.swap(*random as usize % len, (*random >> 20) as usize % len);
            }
            items.iter_mut().for_each(|item| disturb(item, random));
        }
        Json::Object(members) => {
            if *random & 31 == 0 {
                members.reverse();
            }
            for Member { value, .. } in members {
                if *random & 127 == 5 {
                    let _ = take(value);
                } else {
                    disturb(value, random);
                }
            }
        }
        _ => {}
    }
}

fn source(records: usize) -> Vec<u8> {
    const NAMES: [&str; 6] = ["Ada", "Grace Brewster Murray Hopper", "Edsger", "Barbara", "Tony", "Kathleen Hylda Valerie Booth"];
    const KINDS: [&str; 4] = ["sensor", "gateway", "a-relay-with-a-long-name", "unknown"];
    let mut out = heap::of::<u8, _>(|| Vec::with_capacity(16384));
    out.extend_from_slice(b"{\"version\": 3, \"devices\": [");
    for number in 0..records {
        let random = heap::random();
        let (name, kind) = (NAMES[(random % 6) as usize], KINDS[(random >> 8 & 3) as usize]);
        let separator = if number == 0 { "" } else { "," };
        let one = format!(
            "{separator}{{\"id\": {number}, \"kind\": \"{kind}\", \"owner\": {{\"name\": \"{name}\", \"active\": {}}},\n \
             \"readings\": [{}, {}.5, -{}], \"position\": {{\"x\": {}.25, \"y\": {}}}, \"tags\": [\"{}\", null, true]}}",
            random >> 12 & 1 == 0,
            random >> 16 & 255,
            random >> 24 & 127,
            random >> 32 & 63,
            random >> 40 & 511,
            random >> 50 & 255,
            KINDS[(random >> 60 & 3) as usize],
        );
        out.extend_from_slice(one.as_bytes());
    }
    out.extend_from_slice(b"], \"total\": 12.75}");
    out
}

fn path(name: &'static str, steps: impl IntoIterator<Item = Step>) -> Path {
    let mut path = Path { steps: heap::of::<Step, _>(|| Vec::with_capacity(8)), name, matched: 0 };
    path.steps.extend(steps);
    path
}

fn paths() -> Vec<Path> {
    let field = |text: &str| Step::Field(Key::new(text.as_bytes()));
    let mut paths = heap::of::<Path, _>(|| Vec::with_capacity(4));
    paths.push(path("names", [field("devices"), Step::All, field("owner"), field("name")]));
    paths.push(path("second readings", [field("devices"), Step::All, field("readings"), Step::Index(1)]));
    paths.push(path("everywhere", [Step::Deep(Key::new(b"x"))]));
    let (position, x) = (Key::new(b"position"), Key::new(b"x"));
    let condition = move |value: &Json| value.field(&position).and_then(|at| at.field(&x)?.number()).is_some_and(|x| x > 200.0);
    paths.push(path("far tags", [field("devices"), Step::Where(Box::new(condition)), field("tags"), Step::All]));
    paths
}

fn object<const N: usize>(fields: [(&str, Schema, bool); N]) -> Schema {
    let mut made = heap::of::<Field, _>(|| Vec::with_capacity(N));
    made.extend(fields.map(|(key, schema, required)| Field { key: Key::new(key.as_bytes()), schema, required, checked: 0 }));
    Schema::Object(made)
}

fn schema() -> Schema {
    let number = |low, high, whole| Schema::Number { range: (low, high), whole };
    let text = |longest, words: &[&str]| {
        let mut allowed = heap::table::<u32, u32, _>(|| HashMap::with_capacity_and_hasher(12, BuildHasherDefault::default()));
        allowed.extend(words.iter().map(|word| (hash_of(word.as_bytes()), 0)));
        Schema::Text { longest, allowed }
    };
    let list = |items: Schema, most| Schema::List { items: heap::of::<Schema, _>(|| Box::new(items)), most };
    let either = |one, other| Schema::Either(heap::of::<Pair, _>(|| Box::new(Pair { one, other })));
    let owner = object([("name", text(30, &[]), true), ("active", Schema::Bool, true)]);
    let position = object([("x", number(0.0, 400.0, false), true), ("y", number(0.0, 255.0, true), false)]);
    let kind = text(20, &["sensor", "gateway", "unknown"]);
    let tag = either(either(Schema::Bool, text(30, &["sensor", "gateway"])), Schema::Any);
    let device = object([
        ("id", number(0.0, 1e6, true), true),
        ("kind", kind, true),
        ("owner", owner, true),
        ("readings", list(number(-50.0, 200.0, false), 3), true),
        ("position", position, true),
        ("tags", list(tag, 5), false),
        ("serial", Schema::Any, false),
    ]);
    object([("version", number(3.0, 3.0, true), true), ("devices", list(device, 100), true), ("total", number(0.0, 100.0, false), true)])
}

pub struct Service {
    sources: Vec<Vec<u8>>,
    documents: Vec<Json>,
    paths: Vec<Path>,
    schema: Schema,
    tape: Tape,
    checker: Checker,
    patches: Vec<Patch>,
    compact: Compact,
    pretty: Pretty,
    changes: [u64; 3],
}

impl Service {
    fn turn(&mut self, round: usize) -> u64 {
        let which = round % self.sources.len();
        let mut sum = 0;
        if round % 3 == 0 {
            self.tape.build(&self.sources[which]);
        }
        let key: &[u8] = if round % 2 == 0 { b"x" } else { b"total" };
        sum += self.tape.numbers(&Key::new(key)).sum::<f64>() as u64;
        let (widest, depth) = self.tape.widest();
        sum += widest + u64::from(depth);
        if round % 6 == 0 {
            if let Ok((parsed, _)) = json(0, &self.sources[which]) {
                self.documents[which] = parsed;
            }
        }
        let mut random = heap::random();
        disturb(&mut self.documents[which], &mut random);
        sum += self.documents[which].weight();
        if !self.checker.check(&mut self.schema, &self.documents[which], 0) {
            sum += u64::from(self.checker.counts[1]) + self.checker.problems.last().map_or(0, |p| u64::from(p.place[p.depth as usize & 3]));
        }
        self.patches.clear();
        let other = (which + 1) % self.documents.len();
        differ(&self.documents[which], &self.documents[other], 0, 0, &mut self.patches);
        for patch in &self.patches {
            match *patch {
                Patch::Add { parent, key } => self.changes[0] += u64::from(parent ^ key),
                Patch::Remove { key, .. } => self.changes[1] += u64::from(key),
                Patch::Replace { change, key, .. } => self.changes[2] += change.abs() as u64 + u64::from(key),
            }
        }
        let kinds = self.documents.iter().filter(|document| discriminant(*document) == discriminant(&self.documents[which])).count();
        if round % 3 == 0 {
            self.compact.out.clear();
            write(&self.documents[which], &mut self.compact);
        } else if round % 3 == 1 {
            self.pretty.out.clear();
            write(&self.documents[which], &mut self.pretty);
        }
        sum + kinds as u64 + self.compact.out.len() as u64
    }
}

fn main() {
    heap::init();
    let mut sources = heap::of::<Vec<u8>, _>(|| Vec::with_capacity(4));
    sources.extend((0..4).map(|number| source(12 + 3 * number)));
    let mut documents = heap::of::<Json, _>(|| Vec::with_capacity(4));
    documents.extend(sources.iter().filter_map(|source| json(0, source).ok()).map(|(value, _)| value));
    assert_eq!(documents.len(), 4);
    let bytes = || heap::of::<u8, _>(|| Vec::with_capacity(16384));
    let service = Service {
        sources,
        documents,
        paths: paths(),
        schema: schema(),
        tape: Tape {
            cells: heap::of::<Cellule, _>(|| Vec::with_capacity(1024)),
            open: heap::of::<u32, _>(|| Vec::with_capacity(16)),
            errors: 0,
        },
        checker: Checker { problems: heap::of::<Problem, _>(|| Vec::with_capacity(64)), ..Checker::default() },
        patches: heap::of::<Patch, _>(|| Vec::with_capacity(256)),
        compact: Compact { out: bytes() },
        pretty: Pretty { out: bytes(), indent: 0, lines: 0 },
        changes: [0; 3],
    };
    let mut service = heap::of::<Service, _>(|| Box::new(service));
    let mut sum = 0;
    for round in 0.. {
        if !heap::more() {
            break;
        }
        sum += service.turn(round);
        let mut found = heap::of::<&Json, _>(|| Vec::with_capacity(128));
        let mut next = heap::of::<&Json, _>(|| Vec::with_capacity(128));
        let Service { paths, documents, .. } = &mut *service;
        for path in paths {
            for document in documents.iter() {
                path.select(document, &mut found, &mut next);
                sum += found.iter().filter_map(|value| value.number()).sum::<f64>() as u64;
            }
        }
    }
    if std::env::var("VERBOSE").is_ok() {
        for path in &service.paths {
            println!("{}: {}", path.name, path.matched);
        }
        println!("{} cells, {:?} {:?} {} lines", service.tape.cells.len(), service.checker.counts, service.changes, service.pretty.lines);
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
