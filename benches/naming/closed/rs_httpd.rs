//! A server of requests: pipes instead of sockets, tasks with wakers, a parser that may run out of bytes, headers
//! by hash, routes in a radix tree, layers around handlers, sessions by use, a wheel of timers, header tables.
#[path = "../heap.rs"]
mod heap;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

const CONNECTIONS: usize = 24;
const NIL: u32 = u32::MAX;

static SERVED: AtomicU64 = AtomicU64::new(0);

// ---- tasks ----

pub struct RunQueue {
    queue: Mutex<VecDeque<u32>>,
    wakes: AtomicU64,
}

pub struct TaskWaker {
    task: u32,
    ready: Arc<RunQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.wakes.fetch_add(1, Relaxed);
        let mut queue = self.ready.queue.lock().unwrap();
        if queue.len() < 200 {
            queue.push_back(self.task);
        }
    }
}

pub struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
    polls: u64,
}

pub struct Executor {
    tasks: Vec<Task>,
    ready: Arc<RunQueue>,
}

impl Executor {
    fn spawn<F: Future<Output = ()> + 'static>(&mut self, type_name: &str, future: F) {
        let task = self.tasks.len() as u32;
        let future = heap::named(type_name.to_owned(), size_of::<F>(), || Box::pin(future));
        let ready = self.ready.clone();
        let waker = Waker::from(heap::arc::<TaskWaker, _>(|| Arc::new(TaskWaker { task, ready })));
        waker.wake_by_ref();
        self.tasks.push(Task { future, waker, polls: 0 });
    }

    #[inline(never)]
    fn run(&mut self) {
        loop {
            let Some(number) = self.ready.queue.lock().unwrap().pop_front() else { return };
            let task = &mut self.tasks[number as usize];
            task.polls += 1;
            let _ = task.future.as_mut().poll(&mut Context::from_waker(&task.waker));
        }
    }
}

// ---- pipes ----

#[derive(Default)]
pub struct Half {
    bytes: VecDeque<u8>,
    waiting: Option<Waker>,
    total: u64,
}

pub struct Pipe {
    to_server: RefCell<Half>,
    to_client: RefCell<Half>,
    peer: u32,
    idle: Cell<u32>,
}

impl Pipe {
    fn send(&self, bytes: &[u8]) {
        let mut half = self.to_server.borrow_mut();
        half.bytes.extend(bytes);
        half.total += bytes.len() as u64;
        if let Some(waker) = half.waiting.take() {
            waker.wake();
        }
    }
    fn poll_read(&self, context: &mut Context<'_>, into: &mut Vec<u8>) -> Poll<usize> {
        let mut half = self.to_server.borrow_mut();
        if half.bytes.is_empty() {
            half.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let count = half.bytes.len().min(160);
        into.extend(half.bytes.drain(..count));
        self.idle.set(0);
        Poll::Ready(count)
    }
    fn drain(&self) -> u64 {
        let mut half = self.to_client.borrow_mut();
        let sum = half.bytes.iter().map(|&b| u64::from(b)).sum();
        half.bytes.clear();
        sum
    }
}

// ---- requests ----

#[derive(Clone, Copy, Default, PartialEq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

#[derive(Clone, Copy, Default)]
pub struct HeaderLine {
    name: Span,
    value: Span,
    hash: u16,
    next: u16,
}

#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub enum Method {
    #[default]
    Get,
    Post,
    Delete,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Line,
    Headers,
    Body { left: u32 },
    Done,
}

pub struct Request {
    raw: Vec<u8>,
    at: u32,
    state: State,
    method: Method,
    path: Span,
    query: Span,
    body: Span,
    headers: Vec<HeaderLine>,
    buckets: [u16; 16],
    params: Vec<Span>,
}

fn hash_name(name: &[u8]) -> u16 {
    name.iter().fold(7u32, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b | 0x20))) as u16
}

fn number(text: &[u8]) -> u32 {
    text.iter().take_while(|b| b.is_ascii_digit()).fold(0, |n, b| n * 10 + u32::from(b - b'0'))
}

impl Request {
    fn new() -> Self {
        Request {
            raw: heap::of::<u8, _>(|| Vec::with_capacity(2048)),
            at: 0,
            state: State::Line,
            method: Method::Get,
            path: Span::default(),
            query: Span::default(),
            body: Span::default(),
            headers: heap::of::<HeaderLine, _>(|| Vec::with_capacity(16)),
            buckets: [u16::MAX; 16],
            params: heap::of::<Span, _>(|| Vec::with_capacity(4)),
        }
    }

    /// What follows of the next request stays.
    fn reset(&mut self) {
        self.raw.drain(..self.at as usize);
        self.at = 0;
        self.state = State::Line;
        self.query = Span::default();
        self.body = Span::default();
        self.headers.clear();
        self.buckets = [u16::MAX; 16];
    }

    fn line(&mut self) -> Option<Span> {
        let from = self.at as usize;
        let length = self.raw[from..].iter().position(|&b| b == b'\n')?;
        self.at += length as u32 + 1;
        Some(Span { start: from as u32, end: (from + length) as u32 - 1 })
    }

    /// As far as the bytes go.
    #[inline(never)]
    fn parse(&mut self) -> Option<()> {
        loop {
            match self.state {
                State::Line => {
                    let line = self.line()?;
                    let text = line.of(&self.raw);
                    self.method = match text[0] {
                        b'G' => Method::Get,
                        b'P' => Method::Post,
                        _ => Method::Delete,
                    };
                    let start = text.iter().position(|&b| b == b' ').unwrap() as u32 + 1;
                    let end = text.iter().rposition(|&b| b == b' ').unwrap() as u32;
                    let question = text[..end as usize].iter().position(|&b| b == b'?').map_or(end, |q| q as u32);
                    self.path = Span { start: line.start + start, end: line.start + question };
                    self.query = Span { start: line.start + end.min(question + 1), end: line.start + end };
                    self.state = State::Headers;
                }
                State::Headers => {
                    let line = self.line()?;
                    if line.start == line.end {
                        let left = self.header(b"content-length").map_or(0, number);
                        self.body = Span { start: self.at, end: self.at };
                        self.state = State::Body { left };
                        continue;
                    }
                    let colon = line.start + line.of(&self.raw).iter().position(|&b| b == b':').unwrap() as u32;
                    let name = Span { start: line.start, end: colon };
                    let hash = hash_name(name.of(&self.raw));
                    let bucket = &mut self.buckets[hash as usize % 16];
                    let next = std::mem::replace(bucket, self.headers.len() as u16);
                    self.headers.push(HeaderLine { name, value: Span { start: colon + 2, end: line.end }, hash, next });
                }
                State::Body { left } => {
                    let take = left.min(self.raw.len() as u32 - self.at);
                    self.at += take;
                    self.body.end += take;
                    self.state = if left == take { State::Done } else { State::Body { left: left - take } };
                    if left > take {
                        return None;
                    }
                }
                State::Done => return Some(()),
            }
        }
    }

    fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let hash = hash_name(name);
        let mut at = self.buckets[hash as usize % 16];
        while let Some(header) = self.headers.get(at as usize) {
            if header.hash == hash && header.name.of(&self.raw).eq_ignore_ascii_case(name) {
                return Some(header.value.of(&self.raw));
            }
            at = header.next;
        }
        None
    }
}

#[derive(Clone, Copy)]
pub struct Field {
    name: &'static str,
    value: u32,
}

pub struct Response {
    status: u16,
    fields: Vec<Field>,
    head: Vec<u8>,
    body: Vec<u8>,
    session: u32,
}

impl Response {
    fn field(&mut self, name: &'static str, value: u32) {
        self.fields.push(Field { name, value });
    }
    fn write_number(&mut self, mut n: u64) {
        let start = self.body.len();
        while {
            self.body.push(b'0' + (n % 10) as u8);
            n /= 10;
            n > 0
        } {}
        self.body[start..].reverse();
    }
}

// ---- routes ----

pub struct Handler {
    run: Box<dyn Fn(&Request, &mut Response)>,
    calls: Cell<u64>,
}

impl Handler {
    fn new(run: impl Fn(&Request, &mut Response) + 'static) -> Self {
        Handler { run: Box::new(run), calls: Cell::new(0) }
    }
}

/// What the handlers share.
pub struct Store {
    items: RefCell<Vec<Item>>,
    reads: Cell<u64>,
}

#[derive(Default)]
pub struct Route {
    prefix: Vec<u8>,
    children: Vec<Route>,
    param: bool,
    handlers: [u16; 3],
    hits: u64,
}

impl Route {
    fn leaf(prefix: &[u8], param: bool) -> Self {
        let prefix = heap::of::<u8, _>(|| prefix.to_vec());
        Route { prefix, param, children: heap::of::<Route, _>(|| Vec::with_capacity(6)), ..Route::default() }
    }

    fn insert(&mut self, path: &[u8], method: Method, handler: u16) {
        if path.is_empty() {
            self.handlers[method as usize] = handler;
            return;
        }
        if path[0] == b':' {
            let end = path.iter().position(|&b| b == b'/').unwrap_or(path.len());
            let at = self.children.iter().position(|c| c.param).unwrap_or_else(|| {
                self.children.push(Route::leaf(b"", true));
                self.children.len() - 1
            });
            return self.children[at].insert(&path[end..], method, handler);
        }
        if let Some(child) = self.children.iter_mut().find(|c| !c.param && c.prefix[0] == path[0]) {
            let shared = child.prefix.iter().zip(path).take_while(|(a, b)| a == b).count();
            if shared < child.prefix.len() {
                let mut lower = Route::leaf(&child.prefix[shared..], false);
                std::mem::swap(&mut lower.children, &mut child.children);
                std::mem::swap(&mut lower.handlers, &mut child.handlers);
                child.prefix.truncate(shared);
                child.children.push(lower);
            }
            return child.insert(&path[shared..], method, handler);
        }
        let end = path.iter().position(|&b| b == b':').unwrap_or(path.len());
        let mut child = Route::leaf(&path[..end], false);
        child.insert(&path[end..], method, handler);
        self.children.push(child);
    }

    fn find(&mut self, raw: &[u8], at: Span, method: Method, params: &mut Vec<Span>) -> Option<u16> {
        let path = at.of(raw);
        if path.is_empty() {
            self.hits += 1;
            return Some(self.handlers[method as usize]).filter(|&h| h != 0);
        }
        for child in &mut self.children {
            if child.param {
                let length = path.iter().position(|&b| b == b'/').unwrap_or(path.len()) as u32;
                params.push(Span { start: at.start, end: at.start + length });
                let rest = Span { start: at.start + length, end: at.end };
                match child.find(raw, rest, method, params) {
                    None => params.pop(),
                    found => return found,
                };
            } else if path.starts_with(&child.prefix) {
                let rest = Span { start: at.start + child.prefix.len() as u32, end: at.end };
                return child.find(raw, rest, method, params);
            }
        }
        None
    }
}

// ---- layers ----

pub trait Layer {
    /// A status ends it.
    fn before(&mut self, request: &Request, peer: u32, response: &mut Response) -> Option<u16>;
    fn after(&mut self, _request: &Request, _response: &mut Response) {}
}

#[derive(Clone, Copy, Default)]
pub struct Allowance {
    tokens: f32,
    last: u32,
    refused: u32,
}

pub struct Limiter {
    buckets: BTreeMap<u32, Allowance>,
    clock: u32,
    rate: f32,
}

impl Layer for Limiter {
    #[inline(never)]
    fn before(&mut self, _: &Request, peer: u32, _: &mut Response) -> Option<u16> {
        self.clock += 1;
        let bucket = self.buckets.get_mut(&peer)?;
        bucket.tokens = (bucket.tokens + (self.clock - bucket.last) as f32 * self.rate).min(20.0);
        bucket.last = self.clock;
        if bucket.tokens < 1.0 {
            bucket.refused += 1;
            return Some(429);
        }
        bucket.tokens -= 1.0;
        None
    }
}

pub struct Session {
    id: u64,
    newer: u32,
    older: u32,
    visits: u32,
    cart: [u16; 6],
}

pub struct Sessions {
    index: HashMap<u64, u32>,
    slots: Vec<Session>,
    newest: u32,
    oldest: u32,
    evicted: u64,
}

impl Sessions {
    fn unlink(&mut self, at: u32) {
        let Session { newer, older, .. } = self.slots[at as usize];
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
    fn link(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        self.slots[at as usize].newer = NIL;
        self.slots[at as usize].older = older;
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
    }
}

impl Layer for Sessions {
    #[inline(never)]
    fn before(&mut self, request: &Request, _: u32, response: &mut Response) -> Option<u16> {
        let cookie = request.header(b"cookie")?;
        let id = u64::from(number(cookie.rsplit(|&b| b == b'=').next()?));
        let at = match self.index.get(&id) {
            Some(&at) => {
                self.unlink(at);
                at
            }
            None if self.slots.len() < self.slots.capacity() => {
                self.slots.push(Session { id, newer: NIL, older: NIL, visits: 0, cart: [0; 6] });
                self.slots.len() as u32 - 1
            }
            None => {
                let at = self.oldest;
                self.unlink(at);
                self.evicted += 1;
                let slot = &mut self.slots[at as usize];
                self.index.remove(&slot.id);
                (slot.id, slot.visits, slot.cart) = (id, 0, [0; 6]);
                at
            }
        };
        self.index.insert(id, at);
        self.link(at);
        let slot = &mut self.slots[at as usize];
        slot.visits += 1;
        slot.cart[slot.visits as usize % 6] += 1;
        response.session = at;
        None
    }
    fn after(&mut self, _: &Request, response: &mut Response) {
        if let Some(slot) = self.slots.get(response.session as usize) {
            response.field("x-visits", slot.visits);
        }
    }
}

pub struct LogLine {
    status: u16,
    method: Method,
    bytes: u32,
    agent: u16,
}

pub struct Logger {
    lines: VecDeque<LogLine>,
    by_status: BTreeMap<u16, u64>,
}

impl Layer for Logger {
    fn before(&mut self, _: &Request, _: u32, _: &mut Response) -> Option<u16> {
        None
    }
    #[inline(never)]
    fn after(&mut self, request: &Request, response: &mut Response) {
        if self.lines.len() == 128 {
            self.lines.pop_front();
        }
        let agent = request.header(b"user-agent").map_or(0, hash_name);
        self.lines.push_back(LogLine { status: response.status, method: request.method, bytes: response.body.len() as u32, agent });
        if let Some(count) = self.by_status.get_mut(&response.status) {
            *count += 1;
        }
    }
}

/// Fields that were sent before go out by number.
pub struct HeaderTable {
    recent: VecDeque<Field>,
    hits: u64,
}

impl HeaderTable {
    #[inline(never)]
    fn encode(&mut self, fields: &[Field], out: &mut Vec<u8>) {
        for field in fields {
            let known = self.recent.iter().position(|f| f.value == field.value && f.name == field.name);
            if let Some(at) = known {
                self.hits += 1;
                out.push(0x80 | at as u8);
                continue;
            }
            out.push(0x40);
            out.push(field.name.len() as u8);
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(&field.value.to_be_bytes());
            if self.recent.len() == 32 {
                self.recent.pop_back();
            }
            self.recent.push_front(*field);
        }
    }
}

#[derive(Clone, Copy)]
pub struct Timer {
    connection: u32,
    due: u32,
}

pub struct Wheel {
    slots: Vec<Vec<Timer>>,
    now: u32,
    fired: u64,
}

impl Wheel {
    fn arm(&mut self, connection: u32, after: u32) {
        let due = self.now + after;
        let slot = due as usize % self.slots.len();
        if self.slots[slot].len() < 64 {
            self.slots[slot].push(Timer { connection, due });
        }
    }
    #[inline(never)]
    fn turn(&mut self, pipes: &[Rc<Pipe>]) {
        self.now += 1;
        let slot = self.now as usize % self.slots.len();
        let (now, before) = (self.now, self.slots[slot].len());
        self.slots[slot].retain(|timer| {
            if timer.due == now {
                let idle = &pipes[timer.connection as usize].idle;
                idle.set(idle.get() + 1);
            }
            timer.due > now
        });
        self.fired += (before - self.slots[slot].len()) as u64;
    }
}

// ---- the server ----

pub struct Item {
    name: String,
    stock: u32,
    tags: [u8; 4],
}

pub struct Server {
    routes: RefCell<Route>,
    handlers: Vec<Handler>,
    layers: RefCell<Vec<Box<dyn Layer>>>,
    wheel: RefCell<Wheel>,
    table: RefCell<HeaderTable>,
}

impl Server {
    #[inline(never)]
    fn handle(&self, request: &mut Request, peer: u32, response: &mut Response) {
        let mut layers = self.layers.borrow_mut();
        let refused = layers.iter_mut().find_map(|layer| layer.before(request, peer, response));
        request.params.clear();
        let found = self.routes.borrow_mut().find(&request.raw, request.path, request.method, &mut request.params);
        match (refused, found) {
            (Some(status), _) => response.status = status,
            (None, Some(handler)) => {
                let handler = &self.handlers[handler as usize];
                handler.calls.set(handler.calls.get() + 1);
                (handler.run)(request, response);
            }
            (None, None) => response.status = 404,
        }
        layers.iter_mut().rev().for_each(|layer| layer.after(request, response));
    }
}

async fn read_request(pipe: &Pipe, request: &mut Request) -> usize {
    let mut total = 0;
    while request.parse().is_none() {
        total += poll_fn(|context| pipe.poll_read(context, &mut request.raw)).await;
    }
    total
}

async fn respond(server: &Server, pipe: &Pipe, response: &mut Response) {
    response.head.clear();
    response.head.extend_from_slice(&response.status.to_be_bytes());
    server.table.borrow_mut().encode(&response.fields, &mut response.head);
    for part in [&response.head, &response.body] {
        let mut sent = 0;
        while sent < part.len() {
            let mut half = pipe.to_client.borrow_mut();
            let count = (part.len() - sent).min(1024 - half.bytes.len().min(1024));
            half.bytes.extend(&part[sent..sent + count]);
            half.total += count as u64;
            sent += count;
            if count == 0 {
                half.bytes.clear();
            }
        }
    }
}

async fn connection(server: Rc<Server>, pipe: Rc<Pipe>, number: u32) {
    let mut request = Request::new();
    let mut response = Response {
        status: 200,
        fields: heap::of::<Field, _>(|| Vec::with_capacity(8)),
        head: heap::of::<u8, _>(|| Vec::with_capacity(256)),
        body: heap::of::<u8, _>(|| Vec::with_capacity(1024)),
        session: NIL,
    };
    loop {
        read_request(&pipe, &mut request).await;
        response.status = 200;
        response.session = NIL;
        response.fields.clear();
        response.body.clear();
        server.handle(&mut request, pipe.peer, &mut response);
        respond(&server, &pipe, &mut response).await;
        server.wheel.borrow_mut().arm(number, 3 + (response.status % 7) as u32);
        SERVED.fetch_add(1, Relaxed);
        request.reset();
    }
}

fn routes(items: Rc<Store>) -> (Route, Vec<Handler>) {
    let mut root = Route::leaf(b"", false);
    let mut handlers = heap::of::<Handler, _>(|| Vec::with_capacity(16));
    handlers.push(Handler::new(|_, response| response.status = 404));
    let mut route = |method, path: &str, handler: Handler| {
        root.insert(path.as_bytes(), method, handlers.len() as u16);
        handlers.push(handler);
    };
    let store = items.clone();
    let list = Handler::new(move |request, response| {
        let skip = number(request.query.of(&request.raw).rsplit(|&b| b == b'=').next().unwrap_or(b""));
        store.reads.set(store.reads.get() + 1);
        for item in store.items.borrow().iter().skip(skip as usize % 40).take(12) {
            response.body.extend_from_slice(item.name.as_bytes());
            response.write_number(item.stock.into());
            response.body.push(b'\n');
        }
        response.field("x-count", 12);
    });
    route(Method::Get, "/items", list);
    let store = items.clone();
    let show = Handler::new(move |request, response| {
        let store = store.items.borrow();
        let item = &store[number(request.params[0].of(&request.raw)) as usize % store.len()];
        response.body.extend_from_slice(item.name.as_bytes());
        response.write_number(item.tags.iter().map(|&t| u64::from(t)).sum());
        response.field("etag", item.stock);
    });
    route(Method::Get, "/items/:id", show);
    let store = items.clone();
    let change = Handler::new(move |request, response| {
        let mut store = store.items.borrow_mut();
        let length = store.len();
        let item = &mut store[number(request.params[0].of(&request.raw)) as usize % length];
        for (i, &b) in request.body.of(&request.raw).iter().enumerate() {
            item.tags[i % 4] = item.tags[i % 4].wrapping_mul(3) ^ b;
        }
        item.stock += 1;
        response.status = 201;
    });
    route(Method::Post, "/items/:id/tags", change);
    let remove = Handler::new(move |request, response| {
        let mut store = items.items.borrow_mut();
        let length = store.len();
        store.swap(number(request.params[0].of(&request.raw)) as usize % length, length - 1);
        response.status = 204;
    });
    route(Method::Delete, "/items/:id", remove);
    route(Method::Get, "/status/health", Handler::new(|_, response| response.write_number(SERVED.load(Relaxed))));
    route(Method::Get, "/static/style.css", Handler::new(|_, response| response.body.extend_from_slice(&[b' '; 300])));
    (root, handlers)
}

/// What a client sends, some of it in pieces.
#[inline(never)]
fn send(pipe: &Pipe, scratch: &mut Vec<u8>) {
    const TARGETS: [&str; 8] = ["GET /items?skip=17", "GET /items/31", "POST /items/8/tags", "GET /status/health", "GET /static/style.css", "DELETE /items/5", "GET /nothing", "GET /items/144"];
    let random = heap::random() >> 16;
    let target = TARGETS[random as usize % 8];
    scratch.clear();
    scratch.extend_from_slice(target.as_bytes());
    scratch.extend_from_slice(b" HTTP/1.1\r\nHost: example.org\r\nUser-Agent: naming/1.0\r\nAccept: */*\r\nCookie: id=");
    let session = 100 + (random >> 8) % 150;
    scratch.extend_from_slice(&[b'0' + (session / 100) as u8, b'0' + (session / 10 % 10) as u8, b'0' + (session % 10) as u8]);
    if target.starts_with('P') {
        scratch.extend_from_slice(b"\r\nContent-Length: 24\r\n\r\nall the tags of the item");
    } else {
        scratch.extend_from_slice(b"\r\n\r\n");
    }
    let (first, rest) = scratch.split_at(scratch.len() * (1 + random as usize % 3) / 3);
    pipe.send(first);
    if !rest.is_empty() {
        pipe.send(rest);
    }
}

fn main() {
    heap::init();
    heap::global("SERVED", &SERVED, "AtomicU64");
    let mut items = heap::of::<Item, _>(|| Vec::with_capacity(64));
    for i in 0..60u32 {
        let mut name = heap::of::<u8, _>(|| String::with_capacity(32));
        name.push_str("item number ");
        (0..i % 8).for_each(|_| name.push('x'));
        items.push(Item { name, stock: i * 3, tags: [i as u8; 4] });
    }
    let items = heap::rc::<Store, _>(|| Rc::new(Store { items: RefCell::new(items), reads: Cell::new(0) }));
    let (routes, handlers) = routes(items);
    let mut buckets = BTreeMap::new();
    heap::tree::<u32, Allowance, _>(|| (0..CONNECTIONS as u32).for_each(|peer| drop(buckets.insert(peer * 7, Allowance::default()))));
    let index = heap::table::<u64, u32, _>(|| HashMap::with_capacity(400));
    let slots = heap::of::<Session, _>(|| Vec::with_capacity(96));
    let mut layers = heap::of::<Box<dyn Layer>, _>(|| Vec::<Box<dyn Layer>>::with_capacity(4));
    layers.push(heap::of::<Limiter, _>(|| Box::new(Limiter { buckets, clock: 0, rate: 0.045 })));
    layers.push(heap::of::<Sessions, _>(|| Box::new(Sessions { index, slots, newest: NIL, oldest: NIL, evicted: 0 })));
    let lines = heap::of::<LogLine, _>(|| VecDeque::with_capacity(128));
    let mut by_status = BTreeMap::new();
    heap::tree::<u16, u64, _>(|| [200, 201, 204, 404, 429].map(|status| by_status.insert(status, 0)));
    layers.push(heap::of::<Logger, _>(|| Box::new(Logger { lines, by_status })));
    let mut slots = heap::of::<Vec<Timer>, _>(|| Vec::with_capacity(32));
    (0..32).for_each(|_| slots.push(heap::of::<Timer, _>(|| Vec::with_capacity(64))));
    let server = Server {
        routes: RefCell::new(routes),
        handlers,
        layers: RefCell::new(layers),
        wheel: RefCell::new(Wheel { slots, now: 0, fired: 0 }),
        table: RefCell::new(HeaderTable { recent: heap::of::<Field, _>(|| VecDeque::with_capacity(40)), hits: 0 }),
    };
    let server = heap::rc::<Server, _>(|| Rc::new(server));
    let ready = RunQueue { queue: Mutex::new(heap::of::<u32, _>(|| VecDeque::with_capacity(256))), wakes: AtomicU64::new(0) };
    let ready = heap::arc::<RunQueue, _>(|| Arc::new(ready));
    let mut executor = Executor { tasks: heap::of::<Task, _>(|| Vec::with_capacity(CONNECTIONS)), ready };
    let mut pipes = heap::of::<Rc<Pipe>, _>(|| Vec::with_capacity(CONNECTIONS));
    for number in 0..CONNECTIONS as u32 {
        let half = || RefCell::new(Half { bytes: heap::of::<u8, _>(|| VecDeque::with_capacity(2048)), ..Half::default() });
        let pipe = Pipe { to_server: half(), to_client: half(), peer: number * 7, idle: Cell::new(0) };
        let pipe = heap::rc::<Pipe, _>(|| Rc::new(pipe));
        executor.spawn("connection::{async_fn_env#0}", connection(server.clone(), pipe.clone(), number));
        pipes.push(pipe);
    }
    let mut scratch = heap::of::<u8, _>(|| Vec::with_capacity(512));
    let mut sum = 0;
    for round in 0usize.. {
        if !heap::more() {
            break;
        }
        for k in 0..6 {
            send(&pipes[(round * 5 + k * 7) % CONNECTIONS], &mut scratch);
        }
        executor.run();
        for k in 0..6 {
            sum += pipes[(round * 5 + k * 7) % CONNECTIONS].drain();
        }
        server.wheel.borrow_mut().turn(&pipes);
    }
    if std::env::var("VERBOSE").is_ok() {
        let polls: u64 = executor.tasks.iter().map(|task| task.polls).sum();
        let wheel = server.wheel.borrow();
        println!("served {} polls {polls} wakes {} fired {} table {} sum {sum}", SERVED.load(Relaxed), executor.ready.wakes.load(Relaxed), wheel.fired, server.table.borrow().hits);
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
