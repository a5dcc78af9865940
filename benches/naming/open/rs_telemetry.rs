//! A collector of traces and metrics: messages of fields with tags and wire types, decoded and encoded by a trait that
//! a derive would have written, a pipeline of processors, sampling of whole traces, histograms of exponential
//! buckets, a graph of services.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

// ---- the wire ----

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WireType {
    Varint = 0,
    SixtyFourBit = 1,
    LengthDelimited = 2,
    ThirtyTwoBit = 5,
}

#[derive(Debug)]
pub enum DecodeError {
    Truncated,
    WireType(u8),
    Utf8,
    Recursion,
}

type Result<T> = std::result::Result<T, DecodeError>;

pub struct Buf<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Buf<'a> {
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for (i, &byte) in self.bytes.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.bytes = &self.bytes[i + 1..];
                return Ok(value);
            }
        }
        Err(DecodeError::Truncated)
    }
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        if len > self.bytes.len() {
            return Err(DecodeError::Truncated);
        }
        let (taken, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        Ok(taken)
    }
    fn key(&mut self) -> Result<(u32, WireType)> {
        let key = self.varint()?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::SixtyFourBit,
            2 => WireType::LengthDelimited,
            5 => WireType::ThirtyTwoBit,
            other => return Err(DecodeError::WireType(other as u8)),
        };
        Ok(((key >> 3) as u32, wire_type))
    }
    fn fixed64(&mut self) -> Result<u64> {
        Ok(self.take(8)?.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)))
    }
    fn delimited(&mut self) -> Result<&'a [u8]> {
        let len = self.varint()? as usize;
        self.take(len)
    }
    fn skip(&mut self, wire_type: WireType) -> Result<()> {
        match wire_type {
            WireType::Varint => drop(self.varint()?),
            WireType::SixtyFourBit => drop(self.take(8)?),
            WireType::LengthDelimited => drop(self.delimited()?),
            WireType::ThirtyTwoBit => drop(self.take(4)?),
        }
        Ok(())
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_len(value: u64) -> usize {
    ((value | 1).ilog2() as usize * 9 + 73) / 64
}

fn put_key(out: &mut Vec<u8>, tag: u32, wire_type: WireType) {
    put_varint(out, u64::from(tag << 3 | wire_type as u32));
}

pub trait Message: Default + Sized {
    fn encode_raw(&self, out: &mut Vec<u8>);
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()>;
    fn encoded_len(&self) -> usize;

    fn merge(&mut self, buf: &mut Buf) -> Result<()> {
        if buf.depth > 20 {
            return Err(DecodeError::Recursion);
        }
        while !buf.bytes.is_empty() {
            let (tag, wire_type) = buf.key()?;
            self.merge_field(tag, wire_type, buf)?;
        }
        Ok(())
    }
    fn decode(buf: &mut Buf) -> Result<Self> {
        let bytes = buf.delimited()?;
        let mut message = Self::default();
        message.merge(&mut Buf { bytes, depth: buf.depth + 1 })?;
        Ok(message)
    }
    fn encode(&self, tag: u32, out: &mut Vec<u8>) {
        put_key(out, tag, WireType::LengthDelimited);
        put_varint(out, self.encoded_len() as u64);
        self.encode_raw(out);
    }
    fn field_len(&self) -> usize {
        let len = self.encoded_len();
        1 + varint_len(len as u64) + len
    }
}

/// A field that repeats: the vector is made when the first one comes.
fn push<M>(list: &mut Vec<M>, value: M) {
    if list.capacity() == 0 {
        *list = heap::of::<M, _>(|| Vec::with_capacity(4));
    }
    list.push(value);
}

fn bytes_of(buf: &mut Buf) -> Result<Vec<u8>> {
    let bytes = buf.delimited()?;
    let mut copy = heap::of::<u8, _>(|| Vec::with_capacity(bytes.len().next_multiple_of(16).max(16)));
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Only ASCII is sent.
fn string_of(buf: &mut Buf) -> Result<String> {
    let bytes = buf.delimited()?;
    let mut copy = heap::of::<u8, _>(|| String::with_capacity(bytes.len().next_multiple_of(16).max(16)));
    for &byte in bytes {
        if byte >= 0x80 {
            return Err(DecodeError::Utf8);
        }
        copy.push(char::from(byte));
    }
    Ok(copy)
}

fn put_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_key(out, tag, WireType::LengthDelimited);
        put_varint(out, bytes.len() as u64);
        bytes.iter().for_each(|&byte| out.push(byte));
    }
}

fn bytes_len(bytes: &[u8]) -> usize {
    if bytes.is_empty() { 0 } else { 1 + varint_len(bytes.len() as u64) + bytes.len() }
}

fn put_fixed(out: &mut Vec<u8>, tag: u32, value: u64) {
    put_key(out, tag, WireType::SixtyFourBit);
    out.extend_from_slice(&value.to_le_bytes());
}

// ---- messages ----

#[derive(Clone, PartialEq)]
pub enum Value {
    Text(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Array(Vec<AnyValue>),
    Bytes(Vec<u8>),
}

#[derive(Clone, Default, PartialEq)]
pub struct AnyValue {
    value: Option<Value>,
}

#[derive(Clone, Default, PartialEq)]
pub struct KeyValue {
    key: String,
    value: Option<AnyValue>,
}

#[derive(Default)]
pub struct Event {
    time: u64,
    name: String,
    attributes: Vec<KeyValue>,
    dropped: u32,
}

#[derive(Default, Clone, Copy, PartialEq)]
pub struct Status {
    code: u32,
    retries: u32,
}

#[derive(Default)]
pub struct Span {
    trace_id: u64,
    span_id: u64,
    parent_id: u64,
    kind: u32,
    name: String,
    start: u64,
    end: u64,
    attributes: Vec<KeyValue>,
    events: Vec<Event>,
    status: Option<Status>,
}

#[derive(Default)]
pub struct NumberPoint {
    time: u64,
    number: f64,
    attributes: Vec<KeyValue>,
}

#[derive(Default)]
pub struct HistogramPoint {
    count: u64,
    sum: f64,
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

pub enum Data {
    Gauge(Vec<NumberPoint>),
    Sum { points: Vec<NumberPoint>, monotonic: bool },
    Histogram(Box<HistogramPoint>),
}

#[derive(Default)]
pub struct Metric {
    name: String,
    unit: String,
    data: Option<Data>,
}

#[derive(Default)]
pub struct Batch {
    service: String,
    resource: Vec<KeyValue>,
    spans: Vec<Span>,
    metrics: Vec<Metric>,
}

impl Message for AnyValue {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        match &self.value {
            Some(Value::Text(text)) => put_bytes(out, 1, text.as_bytes()),
            Some(Value::Bool(flag)) => {
                put_key(out, 2, WireType::Varint);
                out.push(u8::from(*flag));
            }
            Some(Value::Int(n)) => {
                put_key(out, 3, WireType::Varint);
                put_varint(out, (*n << 1 ^ *n >> 63) as u64);
            }
            Some(Value::Double(x)) => put_fixed(out, 4, x.to_bits()),
            Some(Value::Array(values)) => values.iter().for_each(|v| v.encode(5, out)),
            Some(Value::Bytes(bytes)) => put_bytes(out, 6, bytes),
            None => (),
        }
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        self.value = Some(match tag {
            1 => Value::Text(string_of(buf)?),
            2 => Value::Bool(buf.varint()? != 0),
            3 => {
                let n = buf.varint()?;
                Value::Int((n >> 1) as i64 ^ -((n & 1) as i64))
            }
            4 => Value::Double(f64::from_bits(buf.fixed64()?)),
            5 => {
                let mut values = match self.value.take() {
                    Some(Value::Array(values)) => values,
                    _ => Vec::new(),
                };
                push(&mut values, AnyValue::decode(buf)?);
                Value::Array(values)
            }
            6 => Value::Bytes(bytes_of(buf)?),
            _ => return buf.skip(wire_type),
        });
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        match &self.value {
            Some(Value::Text(text)) => bytes_len(text.as_bytes()),
            Some(Value::Bool(_)) => 2,
            Some(Value::Int(n)) => 1 + varint_len((*n << 1 ^ *n >> 63) as u64),
            Some(Value::Double(_)) => 9,
            Some(Value::Array(values)) => values.iter().map(AnyValue::field_len).sum(),
            Some(Value::Bytes(bytes)) => bytes_len(bytes),
            None => 0,
        }
    }
}

impl Message for KeyValue {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, self.key.as_bytes());
        if let Some(value) = &self.value {
            value.encode(2, out);
        }
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.key = string_of(buf)?,
            2 => self.value = Some(AnyValue::decode(buf)?),
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        bytes_len(self.key.as_bytes()) + self.value.as_ref().map_or(0, AnyValue::field_len)
    }
}

impl Message for Event {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_fixed(out, 1, self.time);
        put_bytes(out, 2, self.name.as_bytes());
        self.attributes.iter().for_each(|a| a.encode(3, out));
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.time = buf.fixed64()?,
            2 => self.name = string_of(buf)?,
            3 => push(&mut self.attributes, KeyValue::decode(buf)?),
            _ => {
                self.dropped += 1;
                buf.skip(wire_type)?;
            }
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        9 + bytes_len(self.name.as_bytes()) + self.attributes.iter().map(KeyValue::field_len).sum::<usize>()
    }
}

impl Message for Status {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_key(out, 1, WireType::Varint);
        put_varint(out, u64::from(self.code));
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.code = buf.varint()? as u32,
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        1 + varint_len(u64::from(self.code))
    }
}

impl Message for Span {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_fixed(out, 1, self.trace_id);
        put_fixed(out, 2, self.span_id);
        put_fixed(out, 3, self.parent_id);
        put_bytes(out, 4, self.name.as_bytes());
        put_key(out, 5, WireType::Varint);
        put_varint(out, u64::from(self.kind));
        put_fixed(out, 6, self.start);
        put_fixed(out, 7, self.end);
        self.attributes.iter().for_each(|a| a.encode(8, out));
        self.events.iter().for_each(|e| e.encode(9, out));
        if let Some(status) = &self.status {
            status.encode(10, out);
        }
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.trace_id = buf.fixed64()?,
            2 => self.span_id = buf.fixed64()?,
            3 => self.parent_id = buf.fixed64()?,
            4 => self.name = string_of(buf)?,
            5 => self.kind = buf.varint()? as u32,
            6 => self.start = buf.fixed64()?,
            7 => self.end = buf.fixed64()?,
            8 => push(&mut self.attributes, KeyValue::decode(buf)?),
            9 => push(&mut self.events, Event::decode(buf)?),
            10 => self.status = Some(Status::decode(buf)?),
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        46 + varint_len(u64::from(self.kind))
            + bytes_len(self.name.as_bytes())
            + self.attributes.iter().map(KeyValue::field_len).sum::<usize>()
            + self.events.iter().map(Event::field_len).sum::<usize>()
            + self.status.as_ref().map_or(0, Status::field_len)
    }
}

impl Message for NumberPoint {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_fixed(out, 1, self.time);
        put_fixed(out, 2, self.number.to_bits());
        self.attributes.iter().for_each(|a| a.encode(3, out));
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.time = buf.fixed64()?,
            2 => self.number = f64::from_bits(buf.fixed64()?),
            3 => push(&mut self.attributes, KeyValue::decode(buf)?),
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        18 + self.attributes.iter().map(KeyValue::field_len).sum::<usize>()
    }
}

impl Message for HistogramPoint {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_fixed(out, 1, self.count);
        put_fixed(out, 2, self.sum.to_bits());
        self.bounds.iter().for_each(|b| put_fixed(out, 3, b.to_bits()));
        self.counts.iter().for_each(|&c| put_fixed(out, 4, c));
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.count = buf.fixed64()?,
            2 => self.sum = f64::from_bits(buf.fixed64()?),
            3 => push(&mut self.bounds, f64::from_bits(buf.fixed64()?)),
            4 => push(&mut self.counts, buf.fixed64()?),
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        18 + 9 * (self.bounds.len() + self.counts.len())
    }
}

impl Message for Metric {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, self.name.as_bytes());
        put_bytes(out, 2, self.unit.as_bytes());
        match &self.data {
            Some(Data::Gauge(points)) => points.iter().for_each(|p| p.encode(3, out)),
            Some(Data::Sum { points, .. }) => points.iter().for_each(|p| p.encode(4, out)),
            Some(Data::Histogram(point)) => point.encode(5, out),
            None => (),
        }
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match (tag, &mut self.data) {
            (1, _) => self.name = string_of(buf)?,
            (2, _) => self.unit = string_of(buf)?,
            (3, Some(Data::Gauge(points))) | (4, Some(Data::Sum { points, .. })) => push(points, NumberPoint::decode(buf)?),
            (3, data) => {
                let mut points = Vec::new();
                push(&mut points, NumberPoint::decode(buf)?);
                *data = Some(Data::Gauge(points));
            }
            (4, data) => {
                let mut points = Vec::new();
                push(&mut points, NumberPoint::decode(buf)?);
                *data = Some(Data::Sum { points, monotonic: true });
            }
            (5, data) => {
                let point = HistogramPoint::decode(buf)?;
                *data = Some(Data::Histogram(heap::of::<HistogramPoint, _>(|| Box::new(point))));
            }
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        bytes_len(self.name.as_bytes())
            + bytes_len(self.unit.as_bytes())
            + match &self.data {
                Some(Data::Gauge(points)) | Some(Data::Sum { points, .. }) => points.iter().map(NumberPoint::field_len).sum(),
                Some(Data::Histogram(point)) => point.field_len(),
                None => 0,
            }
    }
}

impl Message for Batch {
    fn encode_raw(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, self.service.as_bytes());
        self.resource.iter().for_each(|a| a.encode(2, out));
        self.spans.iter().for_each(|s| s.encode(3, out));
        self.metrics.iter().for_each(|m| m.encode(4, out));
    }
    fn merge_field(&mut self, tag: u32, wire_type: WireType, buf: &mut Buf) -> Result<()> {
        match tag {
            1 => self.service = string_of(buf)?,
            2 => push(&mut self.resource, KeyValue::decode(buf)?),
            3 => push(&mut self.spans, Span::decode(buf)?),
            4 => push(&mut self.metrics, Metric::decode(buf)?),
            _ => buf.skip(wire_type)?,
        }
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        bytes_len(self.service.as_bytes())
            + self.resource.iter().map(KeyValue::field_len).sum::<usize>()
            + self.spans.iter().map(Span::field_len).sum::<usize>()
            + self.metrics.iter().map(Metric::field_len).sum::<usize>()
    }
}

// ---- what is kept ----

#[derive(Default, Clone, Copy)]
pub struct Fnv(u64);
impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
}
type Table<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(u32);

/// Strings by number.
pub struct Interner {
    names: Vec<String>,
    numbers: Table<u64, Symbol>,
}

impl Interner {
    fn intern(&mut self, name: &str) -> Symbol {
        let mut hasher = Fnv::default();
        hasher.write(name.as_bytes());
        if let Some(&known) = self.numbers.get(&hasher.finish()) {
            return known;
        }
        let symbol = Symbol(self.names.len() as u32);
        let copy = heap::of::<u8, _>(|| String::from(name));
        self.names.push(copy);
        heap::table::<u64, Symbol, _>(|| self.numbers.insert(hasher.finish(), symbol));
        symbol
    }
}

/// Buckets whose bounds are powers of a base that gets larger when they become too many.
pub struct Exponential {
    scale: i32,
    offset: i32,
    zeros: u64,
    counts: VecDeque<u32>,
    sum: f64,
}

const BUCKETS: usize = 64;

impl Exponential {
    fn new() -> Self {
        Exponential { scale: 6, offset: 0, zeros: 0, counts: heap::of::<u32, _>(|| VecDeque::with_capacity(BUCKETS)), sum: 0.0 }
    }
    fn index(&self, value: f64) -> i32 {
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
        let fraction = (bits >> 46 & 63) as i32;
        (exponent * 64 + fraction) >> (6 - self.scale)
    }
    #[inline(never)]
    fn record(&mut self, value: f64) {
        self.sum += value;
        if value <= 0.0 {
            self.zeros += 1;
            return;
        }
        loop {
            let index = self.index(value);
            if self.counts.is_empty() {
                self.offset = index;
            }
            let (low, high) = (index.min(self.offset), index.max(self.offset + self.counts.len() as i32 - 1));
            if (high - low) as usize >= BUCKETS {
                self.downscale();
                continue;
            }
            while self.offset > low {
                self.counts.push_front(0);
                self.offset -= 1;
            }
            while self.offset + (self.counts.len() as i32) <= high {
                self.counts.push_back(0);
            }
            self.counts[(index - self.offset) as usize] += 1;
            return;
        }
    }
    fn downscale(&mut self) {
        let offset = self.offset >> 1;
        let mut merged = 0;
        for i in 0..self.counts.len() {
            let to = (((self.offset + i as i32) >> 1) - offset) as usize;
            let count = std::mem::take(&mut self.counts[i]);
            self.counts[to] += count;
            merged = to + 1;
        }
        self.counts.truncate(merged);
        self.offset = offset;
        self.scale -= 1;
    }
    fn quantile(&self, q: f64) -> i32 {
        let total: u32 = self.counts.iter().sum();
        let mut left = (f64::from(total) * q) as u32;
        for (i, &count) in self.counts.iter().enumerate() {
            if left < count {
                return self.offset + i as i32;
            }
            left -= count;
        }
        self.offset
    }
}

#[derive(Default, Clone, Copy)]
pub struct Edge {
    calls: u64,
    failures: u32,
    slow: u32,
    seconds: f64,
}

pub struct SpanInfo {
    id: u64,
    parent: u64,
    service: Symbol,
    name: Symbol,
    micros: u32,
    failed: bool,
}

/// What came of one trace so far.
pub struct Trace {
    spans: Vec<SpanInfo>,
    first_seen: u64,
    failed: bool,
    longest: u32,
}

pub struct Series {
    latency: Exponential,
    failures: u64,
    last: u64,
}

pub struct Boxed(Box<Series>);

pub struct Store {
    interner: Interner,
    traces: Table<u64, Trace>,
    arrivals: VecDeque<(u64, u64)>,
    series: Table<(Symbol, Symbol), Boxed>,
    edges: BTreeMap<(Symbol, Symbol), Edge>,
    gauges: BTreeMap<Symbol, f64>,
    spare: Vec<Vec<SpanInfo>>,
    now: u64,
    kept: u64,
}

impl Store {
    #[inline(never)]
    fn note_span(&mut self, service: Symbol, span: &Span) {
        let name = self.interner.intern(&span.name);
        let micros = ((span.end - span.start) / 1000) as u32;
        let failed = span.status.is_some_and(|s| s.code == 2);
        let info = SpanInfo { id: span.span_id, parent: span.parent_id, service, name, micros, failed };
        if !self.traces.contains_key(&span.trace_id) {
            let spans = self.spare.pop().unwrap_or_else(|| heap::of::<SpanInfo, _>(|| Vec::with_capacity(8)));
            let trace = Trace { spans, first_seen: self.now, failed: false, longest: 0 };
            heap::table::<u64, Trace, _>(|| self.traces.insert(span.trace_id, trace));
            self.arrivals.push_back((self.now, span.trace_id));
        }
        let trace = self.traces.get_mut(&span.trace_id).unwrap();
        trace.spans.push(info);
        trace.failed |= failed;
        trace.longest = trace.longest.max(micros);
        let series = match self.series.get_mut(&(service, name)) {
            Some(series) => series,
            None => {
                let latency = Exponential::new();
                let series = Boxed(heap::of::<Series, _>(|| Box::new(Series { latency, failures: 0, last: 0 })));
                heap::table::<(Symbol, Symbol), Boxed, _>(|| self.series.entry((service, name)).or_insert(series))
            }
        };
        let series = &mut *series.0;
        series.latency.record(f64::from(micros) / 1000.0);
        series.failures += u64::from(failed);
        series.last = self.now;
    }

    /// Traces that are old enough: their edges are counted, and the few that are of interest are kept.
    #[inline(never)]
    fn finish_traces(&mut self) {
        while let Some(&(arrived, id)) = self.arrivals.front() {
            if arrived + 16 > self.now {
                break;
            }
            self.arrivals.pop_front();
            let Some(mut trace) = self.traces.remove(&id) else { continue };
            trace.spans.sort_unstable_by_key(|s| s.id);
            for span in &trace.spans {
                let Ok(at) = trace.spans.binary_search_by_key(&span.parent, |s| s.id) else { continue };
                let parent = &trace.spans[at];
                if parent.service == span.service {
                    continue;
                }
                heap::tree::<(Symbol, Symbol), Edge, _>(|| {
                    let edge = self.edges.entry((parent.service, span.service)).or_default();
                    edge.calls += 1;
                    edge.failures += u32::from(span.failed && span.name != parent.name);
                    edge.slow += u32::from(span.micros > 50_000);
                    edge.seconds += f64::from(span.micros) * 1e-6;
                });
            }
            self.kept += u64::from(trace.failed || trace.longest > 90_000 || self.now - trace.first_seen > 20);
            trace.spans.clear();
            self.spare.push(trace.spans);
        }
    }
}

// ---- processors ----

pub trait Processor {
    fn process(&mut self, batch: &mut Batch, store: &mut Store);
    fn report(&self) -> u64;
}

pub struct Redactor {
    keys: Vec<String>,
    redacted: u64,
}

impl Processor for Redactor {
    fn process(&mut self, batch: &mut Batch, _: &mut Store) {
        for attribute in batch.spans.iter_mut().flat_map(|s| s.attributes.iter_mut()).chain(&mut batch.resource) {
            if self.keys.iter().any(|k| *k == attribute.key) {
                if let Some(AnyValue { value: Some(Value::Text(text)) }) = &mut attribute.value {
                    text.truncate(3);
                    text.push_str("***");
                    self.redacted += 1;
                }
            }
        }
    }
    fn report(&self) -> u64 {
        self.redacted
    }
}

pub struct Aggregator {
    spans: u64,
    points: u64,
    totals: [f64; 4],
}

impl Aggregator {
    fn score(value: &AnyValue) -> f64 {
        match &value.value {
            Some(Value::Text(text)) => text.len() as f64,
            Some(Value::Bool(flag)) => f64::from(u8::from(*flag)),
            Some(Value::Int(n)) => *n as f64,
            Some(Value::Double(x)) => *x,
            Some(Value::Array(values)) => values.iter().map(Self::score).sum(),
            Some(Value::Bytes(bytes)) => bytes.iter().map(|&b| f64::from(b)).sum(),
            None => 0.0,
        }
    }
}

impl Processor for Aggregator {
    fn process(&mut self, batch: &mut Batch, store: &mut Store) {
        let service = store.interner.intern(&batch.service);
        for span in &batch.spans {
            store.note_span(service, span);
            self.spans += 1;
            for event in &span.events {
                self.totals[0] += event.attributes.iter().filter_map(|a| a.value.as_ref()).map(Self::score).sum::<f64>();
                self.totals[1] += f64::from(event.dropped);
            }
        }
        for metric in &batch.metrics {
            let name = store.interner.intern(&metric.name);
            let value = match &metric.data {
                Some(Data::Gauge(points)) => points.last().map_or(0.0, |p| p.number),
                Some(Data::Sum { points, monotonic }) => points.iter().map(|p| p.number).sum::<f64>() * if *monotonic { 1.0 } else { 0.5 },
                Some(Data::Histogram(point)) => point.sum / point.count.max(1) as f64 + point.counts.iter().zip(&point.bounds).map(|(&c, b)| c as f64 * b).sum::<f64>(),
                None => 0.0,
            };
            self.points += 1;
            self.totals[2] += value;
            heap::tree::<Symbol, f64, _>(|| *store.gauges.entry(name).or_insert(0.0) = value);
        }
    }
    fn report(&self) -> u64 {
        self.spans + self.points + self.totals.iter().sum::<f64>() as u64
    }
}

/// Conditions on spans, as trees.
pub enum Condition {
    HasKey(String),
    TextContains { key: String, part: String },
    Above { key: String, limit: f64 },
    Slower(u64),
    Failed,
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

pub struct Alert {
    condition: Condition,
    matched: u64,
    last_trace: u64,
}

pub struct Alerter {
    alerts: Vec<Alert>,
    registers: Box<[u8; 2048]>,
    kinds: [u32; 8],
}

impl Condition {
    fn holds(&self, span: &Span) -> bool {
        let value = |key: &String| span.attributes.iter().find(|a| a.key == *key).and_then(|a| a.value.as_ref());
        match self {
            Condition::HasKey(key) => value(key).is_some(),
            Condition::TextContains { key, part } => match value(key).and_then(|v| v.value.as_ref()) {
                Some(Value::Text(text)) => text.as_bytes().windows(part.len()).any(|w| w == part.as_bytes()),
                _ => false,
            },
            Condition::Above { key, limit } => value(key).is_some_and(|v| Aggregator::score(v) > *limit),
            Condition::Slower(nanos) => span.end - span.start > *nanos,
            Condition::Failed => span.status.is_some_and(|s| s.code == 2),
            Condition::All(parts) => parts.iter().all(|p| p.holds(span)),
            Condition::Any(parts) => parts.iter().any(|p| p.holds(span)),
            Condition::Not(part) => !part.holds(span),
        }
    }
}

impl Processor for Alerter {
    fn process(&mut self, batch: &mut Batch, _: &mut Store) {
        for span in &batch.spans {
            for alert in &mut self.alerts {
                if alert.condition.holds(span) {
                    alert.matched += 1;
                    alert.last_trace = span.trace_id;
                }
            }
            self.kinds[span.kind as usize & 7] += 1;
            for attribute in &span.attributes {
                let hash = attribute.key.bytes().fold(span.trace_id, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
                let register = &mut self.registers[(hash >> 40) as usize & 2047];
                *register = (*register).max(hash.trailing_zeros() as u8);
            }
        }
    }
    fn report(&self) -> u64 {
        self.alerts.iter().map(|a| a.matched + (a.last_trace & 1)).sum::<u64>() + self.registers.iter().map(|&r| u64::from(r)).sum::<u64>()
    }
}

fn condition(r: u64, depth: u32) -> Condition {
    let key = || heap::of::<u8, _>(|| String::from(KEYS[(r >> 10) as usize % 8]));
    let parts = |n: u64| {
        let mut parts = Vec::new();
        (0..n).for_each(|i| push(&mut parts, condition(r.wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * i) >> 7, depth - 1)));
        parts
    };
    match r % if depth > 0 { 8 } else { 5 } {
        0 => Condition::HasKey(key()),
        1 => Condition::TextContains { key: key(), part: heap::of::<u8, _>(|| String::from(&NAMES[(r >> 20) as usize % 10][1..4])) },
        2 => Condition::Above { key: key(), limit: (r >> 30 & 1023) as f64 },
        3 => Condition::Slower((r >> 20 & 63) * 1_000_000),
        4 => Condition::Failed,
        5 => Condition::All(parts(2 + (r >> 40 & 1))),
        6 => Condition::Any(parts(2 + (r >> 40 & 1))),
        _ => {
            let inner = condition(r >> 9, depth - 1);
            Condition::Not(heap::of::<Condition, _>(|| Box::new(inner)))
        }
    }
}

pub struct Exporter {
    out: Vec<u8>,
    batches: u64,
    bytes: u64,
    checksum: u32,
}

impl Processor for Exporter {
    fn process(&mut self, batch: &mut Batch, _: &mut Store) {
        self.out.clear();
        batch.encode(1, &mut self.out);
        self.checksum = self.out.iter().fold(self.checksum, |sum, &b| sum.rotate_left(3) ^ u32::from(b));
        self.batches += 1;
        self.bytes += self.out.len() as u64;
    }
    fn report(&self) -> u64 {
        self.bytes + u64::from(self.checksum)
    }
}

// ---- what is sent ----

const NAMES: [&str; 10] = ["checkout", "cart", "payment", "search", "login", "profile", "shipping", "email", "stock", "quote"];
const KEYS: [&str; 8] = ["http.method", "http.url", "db.statement", "user.id", "retry", "peer.service", "thread.name", "region"];

fn text(s: &str, n: u64) -> String {
    heap::of::<u8, _>(|| {
        let mut text = String::with_capacity(32);
        text.push_str(s);
        text.push('/');
        for shift in [8, 4, 0] {
            text.push(char::from_digit((n >> shift & 7) as u32, 10).unwrap());
        }
        text
    })
}

fn attribute(r: u64) -> KeyValue {
    let value = match r % 7 {
        0 | 1 => Value::Text(text(NAMES[(r >> 8) as usize % 10], r >> 16)),
        2 => Value::Bool(r >> 9 & 1 != 0),
        3 => Value::Int((r >> 10) as i64 % 5000 - 100),
        4 => Value::Double((r >> 12 & 0xffff) as f64 * 0.25),
        5 => {
            let mut values = Vec::new();
            (0..r >> 20 & 3).for_each(|i| push(&mut values, AnyValue { value: Some(Value::Int((r >> (i * 4)) as i64 & 255)) }));
            Value::Array(values)
        }
        _ => Value::Bytes(heap::of::<u8, _>(|| r.to_le_bytes().to_vec())),
    };
    let key = heap::of::<u8, _>(|| String::from(KEYS[(r >> 30) as usize % 8]));
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}

fn compose(service: usize, now: u64) -> Batch {
    let mut batch = Batch { service: text(NAMES[service % 10], service as u64), ..Batch::default() };
    push(&mut batch.resource, attribute(service as u64 * 7919));
    for _ in 0..12 + service % 7 {
        let r = heap::random();
        let trace = now / 4 * 1000 + r % 24;
        let start = now * 1_000_000 + (r >> 20) % 900_000;
        let id = trace.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut span = Span {
            trace_id: id,
            span_id: id ^ (service as u64 % 40 + 1) ^ (r >> 50 & 3) << 8,
            parent_id: if r >> 48 & 3 == 0 { 0 } else { id ^ ((r >> 40) % 40 + 1) ^ (r >> 30 & 3) << 8 },
            kind: (r >> 45 & 3) as u32,
            name: text(NAMES[(r >> 33) as usize % 10], r >> 36 & 7),
            start,
            end: start + ((r >> 12) % 9_000) * ((r >> 26) % 9_000),
            ..Span::default()
        };
        (0..1 + (r >> 7) % 5).for_each(|i| push(&mut span.attributes, attribute(r.rotate_left(i as u32 * 9) >> 3)));
        for i in 0..(r >> 60) % 3 {
            let mut event = Event { time: start + i, name: text("exception", r), ..Event::default() };
            push(&mut event.attributes, attribute(r >> (8 + i)));
            push(&mut span.events, event);
        }
        span.status = (r >> 57 & 3 != 0).then_some(Status { code: (r >> 57) as u32 & 3, retries: 0 });
        push(&mut batch.spans, span);
    }
    for i in 0..4 {
        let r = heap::random();
        let mut points = Vec::new();
        (0..3).for_each(|k| {
            let mut point = NumberPoint { time: now + k, number: (r >> (8 * k) & 0xfff) as f64, ..NumberPoint::default() };
            push(&mut point.attributes, attribute(r >> (3 * k)));
            push(&mut points, point);
        });
        let data = match i {
            0 => Data::Gauge(points),
            1 => Data::Sum { points, monotonic: r & 1 == 0 },
            _ => {
                let mut point = HistogramPoint { count: r >> 40 & 0xff, sum: (r >> 20 & 0xffff) as f64, ..HistogramPoint::default() };
                (0..10).for_each(|k| {
                    push(&mut point.bounds, (1u64 << k) as f64);
                    push(&mut point.counts, r >> (4 * k) & 15);
                });
                Data::Histogram(heap::of::<HistogramPoint, _>(|| Box::new(point)))
            }
        };
        push(&mut batch.metrics, Metric { name: text(NAMES[(r >> 50) as usize % 10], r >> 44), unit: text("ms", 1), data: Some(data) });
    }
    batch
}

#[inline(never)]
fn summary(store: &Store) -> f64 {
    let busiest = store.edges.iter().max_by_key(|(_, edge)| edge.calls).map_or(0.0, |(_, edge)| edge.seconds);
    let slow: u32 = store.edges.range((Symbol(2), Symbol(0))..(Symbol(40), Symbol(0))).map(|(_, e)| e.slow + e.failures).sum();
    let latency: i32 = store.series.values().map(|Boxed(s)| s.latency.quantile(0.95) - s.latency.quantile(0.5)).sum();
    let weight: f64 = store.series.iter().filter(|(key, _)| key.0.0 & 1 == 0).map(|(_, Boxed(s))| s.failures as f64 + s.latency.sum / (s.last + 1) as f64).sum();
    busiest + f64::from(slow) + f64::from(latency) + weight + store.gauges.values().sum::<f64>()
}

fn main() {
    heap::init();
    let interner = Interner {
        names: heap::of::<String, _>(|| Vec::with_capacity(1024)),
        numbers: heap::table::<u64, Symbol, _>(|| Table::with_capacity_and_hasher(1024, Default::default())),
    };
    let store = Store {
        interner,
        traces: heap::table::<u64, Trace, _>(|| Table::with_capacity_and_hasher(1024, Default::default())),
        arrivals: heap::of::<(u64, u64), _>(|| VecDeque::with_capacity(1024)),
        series: heap::table::<(Symbol, Symbol), Boxed, _>(|| Table::with_capacity_and_hasher(512, Default::default())),
        edges: BTreeMap::new(),
        gauges: BTreeMap::new(),
        spare: heap::of::<Vec<SpanInfo>, _>(|| Vec::with_capacity(1024)),
        now: 0,
        kept: 0,
    };
    let mut store = heap::of::<Store, _>(|| Box::new(store));
    let mut keys = heap::of::<String, _>(|| Vec::with_capacity(4));
    keys.extend(["user.id", "db.statement"].map(|k| heap::of::<u8, _>(|| String::from(k))));
    let out = heap::of::<u8, _>(|| Vec::with_capacity(1 << 16));
    let mut pipeline = heap::of::<Box<dyn Processor>, _>(|| Vec::<Box<dyn Processor>>::with_capacity(4));
    pipeline.push(heap::of::<Redactor, _>(|| Box::new(Redactor { keys, redacted: 0 })));
    pipeline.push(heap::of::<Aggregator, _>(|| Box::new(Aggregator { spans: 0, points: 0, totals: [0.0; 4] })));
    let mut alerts = heap::of::<Alert, _>(|| Vec::with_capacity(16));
    for _ in 0..16 {
        let condition = condition(heap::random() >> 6, 3);
        alerts.push(Alert { condition, matched: 0, last_trace: 0 });
    }
    let registers = heap::of::<u8, _>(|| Box::new([0; 2048]));
    pipeline.push(heap::of::<Alerter, _>(|| Box::new(Alerter { alerts, registers, kinds: [0; 8] })));
    pipeline.push(heap::of::<Exporter, _>(|| Box::new(Exporter { out, batches: 0, bytes: 0, checksum: 0 })));
    let mut wires = heap::of::<Vec<u8>, _>(|| Vec::with_capacity(256));
    for i in 0..240 {
        let mut wire = heap::of::<u8, _>(|| Vec::with_capacity(16384));
        compose(i, i as u64 / 10).encode(1, &mut wire);
        wires.push(wire);
    }
    let mut recent = heap::of::<Batch, _>(|| VecDeque::with_capacity(64));
    let mut sum = 0.0;
    let mut wrong = 0;
    while heap::more() {
        for _ in 0..2 {
            let wire = &wires[(heap::random() >> 20) as usize % wires.len()];
            let mut buf = Buf { bytes: wire, depth: 0 };
            let decoded = buf.key().and_then(|_| Batch::decode(&mut buf));
            match decoded {
                Ok(batch) => recent.push_back(batch),
                Err(_) => wrong += 1,
            }
            if recent.len() > 60 {
                recent.pop_front();
            }
        }
        for _ in 0..6 {
            let at = (heap::random() >> 20) as usize % recent.len();
            pipeline.iter_mut().for_each(|p| p.process(&mut recent[at], &mut store));
        }
        store.now += 1;
        store.finish_traces();
        if store.now % 8 == 0 {
            sum += summary(&store);
        }
    }
    if std::env::var("SHOW").is_ok() {
        let reports: Vec<u64> = pipeline.iter().map(|p| p.report()).collect();
        eprintln!("now {} kept {} wrong {wrong} series {} edges {} reports {reports:?} sum {sum}", store.now, store.kept, store.series.len(), store.edges.len());
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
