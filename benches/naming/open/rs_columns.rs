//! Queries on columns: buffers that are shared and sliced, validity by bits, arrays of several kinds behind a trait and in
//! an enum, dictionaries, views of strings; filters, groups, sorts, joins and windows over chunks, by physical expressions.
#[path = "../heap.rs"]
mod heap;

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::ops::{Add, Deref, Mul, Sub};
use std::rc::Rc;
use std::sync::Arc;

pub type IdxSize = u32;

// ---- buffers ----

pub struct SharedStorage<T> {
    data: Vec<T>,
    slices: Cell<u32>,
}

/// Part of a storage that many may share.
pub struct Buffer<T> {
    storage: Arc<SharedStorage<T>>,
    ptr: *const T,
    length: usize,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer { storage: self.storage.clone(), ptr: self.ptr, length: self.length }
    }
}
impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        unsafe { std::slice::from_raw_parts(self.ptr, self.length) }
    }
}
impl<T> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Self {
        let (ptr, length) = (data.as_ptr(), data.len());
        let storage = SharedStorage { data, slices: Cell::new(0) };
        Buffer { storage: heap::arc::<SharedStorage<T>, _>(|| Arc::new(storage)), ptr, length }
    }
}
impl<T> Buffer<T> {
    fn sliced(mut self, offset: usize, length: usize) -> Self {
        assert!(offset + length <= self.length);
        self.storage.slices.set(self.storage.slices.get() + 1);
        self.ptr = unsafe { self.ptr.add(offset) };
        self.length = length;
        self
    }
}

fn vec_of<T>(capacity: usize) -> Vec<T> {
    heap::of::<T, _>(|| Vec::with_capacity(capacity))
}

// ---- bitmaps ----

#[derive(Clone)]
pub struct Bitmap {
    storage: Buffer<u8>,
    offset: usize,
    length: usize,
    unset_bits: Cell<i64>,
}

pub struct MutableBitmap {
    buffer: Vec<u8>,
    length: usize,
}

impl MutableBitmap {
    fn with_capacity(bits: usize) -> Self {
        MutableBitmap { buffer: vec_of(bits / 64 * 8 + 16), length: 0 }
    }
    #[inline]
    fn push(&mut self, value: bool) {
        if self.length % 8 == 0 {
            self.buffer.push(0);
        }
        *self.buffer.last_mut().unwrap() |= u8::from(value) << (self.length % 8);
        self.length += 1;
    }
    fn freeze(mut self) -> Bitmap {
        self.buffer.resize(self.length / 64 * 8 + 16, 0);
        Bitmap { storage: self.buffer.into(), offset: 0, length: self.length, unset_bits: Cell::new(-1) }
    }
}

impl Bitmap {
    #[inline]
    fn get_bit(&self, i: usize) -> bool {
        let i = self.offset + i;
        self.storage[i / 8] >> (i % 8) & 1 != 0
    }
    #[inline]
    fn word(&self, i: usize) -> u64 {
        let at = self.offset / 8 + i * 8;
        let low = u64::from_le_bytes(self.storage[at..at + 8].try_into().unwrap());
        let shift = self.offset % 8;
        let word = if shift == 0 { low } else { low >> shift | u64::from(self.storage[at + 8]) << (64 - shift) };
        let left = self.length - i * 64;
        if left < 64 { word & ((1 << left) - 1) } else { word }
    }
    fn words(&self) -> usize {
        self.length.div_ceil(64)
    }
    #[inline(never)]
    fn unset_bits(&self) -> usize {
        if self.unset_bits.get() < 0 {
            let set: u32 = (0..self.words()).map(|i| self.word(i).count_ones()).sum();
            self.unset_bits.set(self.length as i64 - i64::from(set));
        }
        self.unset_bits.get() as usize
    }
    fn sliced(&self, offset: usize, length: usize) -> Bitmap {
        Bitmap { storage: self.storage.clone(), offset: self.offset + offset, length, unset_bits: Cell::new(-1) }
    }
    #[inline(never)]
    fn binary(&self, other: &Bitmap, op: impl Fn(u64, u64) -> u64) -> Bitmap {
        let mut bytes = vec_of::<u8>(self.length / 64 * 8 + 16);
        for i in 0..self.words() {
            bytes.extend_from_slice(&op(self.word(i), other.word(i)).to_le_bytes());
        }
        bytes.resize(self.length / 64 * 8 + 16, 0);
        Bitmap { storage: bytes.into(), offset: 0, length: self.length, unset_bits: Cell::new(-1) }
    }
    fn set_indices(&self) -> SetIndices<'_> {
        SetIndices { bitmap: self, word: if self.length > 0 { self.word(0) } else { 0 }, at: 0 }
    }
}

pub struct SetIndices<'a> {
    bitmap: &'a Bitmap,
    word: u64,
    at: usize,
}
impl Iterator for SetIndices<'_> {
    type Item = usize;
    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.at += 1;
            if self.at >= self.bitmap.words() {
                return None;
            }
            self.word = self.bitmap.word(self.at);
        }
        let bit = self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(self.at * 64 + bit)
    }
}

fn both_valid(a: Option<&Bitmap>, b: Option<&Bitmap>) -> Option<Bitmap> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.binary(b, |x, y| x & y)),
        (a, b) => a.or(b).cloned(),
    }
}

// ---- arrays ----

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DataType {
    Boolean,
    Int32,
    Int64,
    Float64,
    Utf8View,
    Dictionary,
}

pub trait Array {
    fn as_any(&self) -> &dyn Any;
    fn len(&self) -> usize;
    fn data_type(&self) -> DataType;
    fn validity(&self) -> Option<&Bitmap>;
    fn is_null(&self, i: usize) -> bool {
        self.validity().is_some_and(|v| !v.get_bit(i))
    }
    fn null_count(&self) -> usize {
        self.validity().map_or(0, Bitmap::unset_bits)
    }
    fn to_boxed_slice(&self, offset: usize, length: usize) -> Box<dyn Array>;
    /// What orders and groups its values.
    fn row_key(&self, i: usize) -> u64;
}
pub type ArrayRef = Box<dyn Array>;

pub trait NativeType: Copy + PartialOrd + Default + 'static + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    const TYPE: DataType;
    fn to_f64(self) -> f64;
    fn ordered(self) -> u64;
}
impl NativeType for i32 {
    const TYPE: DataType = DataType::Int32;
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn ordered(self) -> u64 {
        (i64::from(self) as u64) ^ 1 << 63
    }
}
impl NativeType for i64 {
    const TYPE: DataType = DataType::Int64;
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn ordered(self) -> u64 {
        self as u64 ^ 1 << 63
    }
}
impl NativeType for f64 {
    const TYPE: DataType = DataType::Float64;
    fn to_f64(self) -> f64 {
        self
    }
    fn ordered(self) -> u64 {
        let bits = self.to_bits();
        if bits >> 63 != 0 { !bits } else { bits | 1 << 63 }
    }
}

#[derive(Clone)]
pub struct PrimitiveArray<T> {
    values: Buffer<T>,
    validity: Option<Bitmap>,
}
#[derive(Clone)]
pub struct BooleanArray {
    values: Bitmap,
    validity: Option<Bitmap>,
}

/// Up to twelve bytes stand in the view itself.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct View {
    length: u32,
    prefix: [u8; 4],
    buffer_idx: u32,
    offset: u32,
}
#[derive(Clone)]
pub struct Utf8ViewArray {
    views: Buffer<View>,
    buffers: Rc<DataBuffers>,
    validity: Option<Bitmap>,
}
pub struct DataBuffers {
    list: Vec<Buffer<u8>>,
    total_bytes: usize,
}
pub struct Categories {
    offsets: Buffer<i32>,
    values: Buffer<u8>,
    lookups: Cell<u64>,
}
impl Categories {
    #[inline]
    fn value(&self, i: usize) -> &[u8] {
        self.lookups.set(self.lookups.get() + 1);
        &self.values[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }
}
#[derive(Clone)]
pub struct DictionaryArray {
    keys: PrimitiveArray<i32>,
    values: Arc<Categories>,
}

macro_rules! array_basics {
    ($self:ident, $type:expr, $len:expr, $validity:expr, |$offset:ident, $length:ident| $slice:expr, |$i:ident| $key:expr) => {
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn len(&$self) -> usize {
            $len
        }
        fn data_type(&self) -> DataType {
            $type
        }
        fn validity(&$self) -> Option<&Bitmap> {
            $validity.as_ref()
        }
        fn to_boxed_slice(&$self, $offset: usize, $length: usize) -> Box<dyn Array> {
            let slice = $slice;
            heap::of::<Self, _>(|| Box::new(slice))
        }
        fn row_key(&$self, $i: usize) -> u64 {
            if $self.is_null($i) { 0 } else { $key }
        }
    };
}

impl<T: NativeType> Array for PrimitiveArray<T> {
    array_basics!(self, T::TYPE, self.values.len(), self.validity, |offset, length| self.slice(offset, length), |i| self.values[i].ordered());
}
impl Array for BooleanArray {
    array_basics!(self, DataType::Boolean, self.values.length, self.validity,
        |offset, length| BooleanArray { values: self.values.sliced(offset, length), validity: self.validity.as_ref().map(|v| v.sliced(offset, length)) }, |i| 1 + u64::from(self.values.get_bit(i)));
}
impl Array for Utf8ViewArray {
    array_basics!(self, DataType::Utf8View, self.views.len(), self.validity,
        |offset, length| Utf8ViewArray { views: self.views.clone().sliced(offset, length), buffers: self.buffers.clone(), validity: self.validity.as_ref().map(|v| v.sliced(offset, length)) },
        |i| u64::from(u32::from_be_bytes(self.views[i].prefix)) + 1);
}
impl Array for DictionaryArray {
    array_basics!(self, DataType::Dictionary, self.keys.values.len(), self.keys.validity,
        |offset, length| DictionaryArray { keys: self.keys.slice(offset, length), values: self.values.clone() }, |i| self.keys.values[i] as u64 + 1);
}

impl<T: NativeType> PrimitiveArray<T> {
    fn slice(&self, offset: usize, length: usize) -> Self {
        PrimitiveArray { values: self.values.clone().sliced(offset, length), validity: self.validity.as_ref().map(|v| v.sliced(offset, length)) }
    }
    fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        self.values.iter().enumerate().map(move |(i, &v)| if self.is_null(i) { None } else { Some(v) })
    }
    #[inline(never)]
    fn filter(&self, mask: &Bitmap) -> Self {
        let mut values = vec_of::<T>(self.values.len());
        values.extend(mask.set_indices().map(|i| self.values[i]));
        PrimitiveArray { values: values.into(), validity: self.validity.as_ref().map(|v| filter_bits(v, mask)) }
    }
    #[inline(never)]
    fn take(&self, indices: &[IdxSize]) -> Self {
        let mut values = vec_of::<T>(indices.len());
        for &i in indices {
            values.push(unsafe { *self.values.get_unchecked(i as usize) });
        }
        PrimitiveArray { values: values.into(), validity: self.validity.as_ref().map(|v| take_bits(v, indices)) }
    }
}

fn filter_bits(bits: &Bitmap, mask: &Bitmap) -> Bitmap {
    let mut out = MutableBitmap::with_capacity(bits.length);
    mask.set_indices().for_each(|i| out.push(bits.get_bit(i)));
    out.freeze()
}
fn take_bits(bits: &Bitmap, indices: &[IdxSize]) -> Bitmap {
    let mut out = MutableBitmap::with_capacity(indices.len());
    indices.iter().for_each(|&i| out.push(bits.get_bit(i as usize)));
    out.freeze()
}

impl View {
    fn new(bytes: &[u8], buffer: &mut Vec<u8>) -> View {
        let mut raw = [0u8; 16];
        raw[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        if bytes.len() <= 12 {
            raw[4..4 + bytes.len()].copy_from_slice(bytes);
            return unsafe { std::mem::transmute::<[u8; 16], View>(raw) };
        }
        let offset = buffer.len() as u32;
        buffer.extend_from_slice(bytes);
        View { length: bytes.len() as u32, prefix: bytes[..4].try_into().unwrap(), buffer_idx: 0, offset }
    }
    #[inline]
    fn bytes<'a>(&'a self, buffers: &'a DataBuffers) -> &'a [u8] {
        let length = self.length as usize;
        if length <= 12 {
            unsafe { std::slice::from_raw_parts((self as *const View).cast::<u8>().add(4), length) }
        } else {
            &buffers.list[self.buffer_idx as usize][self.offset as usize..self.offset as usize + length]
        }
    }
}

impl Utf8ViewArray {
    fn build<'a>(strings: impl Iterator<Item = Option<&'a [u8]>>, rows: usize) -> Self {
        let (mut views, mut bytes, mut validity) = (vec_of::<View>(rows), vec_of::<u8>(rows * 24), MutableBitmap::with_capacity(rows));
        for s in strings {
            views.push(s.map_or(View::default(), |s| View::new(s, &mut bytes)));
            validity.push(s.is_some());
        }
        let total_bytes = bytes.len();
        let mut list = vec_of::<Buffer<u8>>(1);
        list.push(bytes.into());
        let buffers = DataBuffers { list, total_bytes };
        Utf8ViewArray { views: views.into(), buffers: heap::rc::<DataBuffers, _>(|| Rc::new(buffers)), validity: Some(validity.freeze()) }
    }
    #[inline(never)]
    fn contains(&self, needle: &[u8]) -> Bitmap {
        let mut out = MutableBitmap::with_capacity(self.views.len());
        for (i, view) in self.views.iter().enumerate() {
            let found = !self.is_null(i) && view.length as usize >= needle.len() && view.bytes(&self.buffers).windows(needle.len()).any(|w| w == needle);
            out.push(found);
        }
        out.freeze()
    }
    #[inline(never)]
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (x, y) = (&self.views[a], &self.views[b]);
        x.prefix.cmp(&y.prefix).then_with(|| x.bytes(&self.buffers).cmp(y.bytes(&self.buffers)))
    }
}

/// A column in one piece, when its type is known.
pub enum Column {
    Boolean(BooleanArray),
    Int32(PrimitiveArray<i32>),
    Int64(PrimitiveArray<i64>),
    Float64(PrimitiveArray<f64>),
    Text(Utf8ViewArray),
    Dictionary(DictionaryArray),
    Scalar { value: f64, length: usize },
}

impl Column {
    fn of(array: &dyn Array) -> Column {
        fn cast<T: Clone + 'static>(array: &dyn Array) -> T {
            array.as_any().downcast_ref::<T>().expect("another type").clone()
        }
        match array.data_type() {
            DataType::Boolean => Column::Boolean(cast(array)),
            DataType::Int32 => Column::Int32(cast(array)),
            DataType::Int64 => Column::Int64(cast(array)),
            DataType::Float64 => Column::Float64(cast(array)),
            DataType::Utf8View => Column::Text(cast(array)),
            DataType::Dictionary => Column::Dictionary(cast(array)),
        }
    }
    fn as_array(&self) -> &dyn Array {
        match self {
            Column::Boolean(a) => a,
            Column::Int32(a) => a,
            Column::Int64(a) => a,
            Column::Float64(a) => a,
            Column::Text(a) => a,
            Column::Dictionary(a) => a,
            Column::Scalar { .. } => panic!("a scalar is no array"),
        }
    }
    #[inline]
    fn number(&self, i: usize) -> Option<f64> {
        match self {
            Column::Int32(a) => (!a.is_null(i)).then(|| f64::from(a.values[i])),
            Column::Int64(a) => (!a.is_null(i)).then(|| a.values[i] as f64),
            Column::Float64(a) => (!a.is_null(i)).then(|| a.values[i]),
            Column::Scalar { value, .. } => Some(*value),
            Column::Dictionary(a) => (!a.is_null(i)).then(|| f64::from(a.keys.values[i])),
            Column::Boolean(a) => Some(f64::from(u8::from(a.values.get_bit(i)))),
            Column::Text(a) => Some(f64::from(a.views[i].length)),
        }
    }
    fn filter(&self, mask: &Bitmap) -> Column {
        match self {
            Column::Int32(a) => Column::Int32(a.filter(mask)),
            Column::Int64(a) => Column::Int64(a.filter(mask)),
            Column::Float64(a) => Column::Float64(a.filter(mask)),
            Column::Boolean(a) => Column::Boolean(BooleanArray { values: filter_bits(&a.values, mask), validity: a.validity.as_ref().map(|v| filter_bits(v, mask)) }),
            Column::Dictionary(a) => Column::Dictionary(DictionaryArray { keys: a.keys.filter(mask), values: a.values.clone() }),
            Column::Text(a) => {
                let mut views = vec_of::<View>(a.views.len());
                views.extend(mask.set_indices().map(|i| a.views[i]));
                Column::Text(Utf8ViewArray { views: views.into(), buffers: a.buffers.clone(), validity: a.validity.as_ref().map(|v| filter_bits(v, mask)) })
            }
            Column::Scalar { value, .. } => Column::Scalar { value: *value, length: mask.length - mask.unset_bits() },
        }
    }
}

// ---- frames in chunks ----

pub struct Field {
    name: &'static str,
    data_type: DataType,
    reads: Cell<u64>,
}
pub struct Series {
    field: Arc<Field>,
    chunks: Vec<ArrayRef>,
    length: usize,
}
pub struct DataFrame {
    columns: Vec<Series>,
    height: usize,
}
/// The columns of one chunk.
pub struct Batch {
    columns: Vec<Column>,
    rows: usize,
}

impl DataFrame {
    fn batch(&self, chunk: usize) -> Batch {
        let mut columns = vec_of::<Column>(self.columns.len());
        for s in &self.columns {
            s.field.reads.set(s.field.reads.get() + 1);
            columns.push(Column::of(&*s.chunks[chunk]));
        }
        Batch { rows: columns[0].as_array().len(), columns }
    }
}

// ---- expressions ----

#[derive(Clone, Copy, PartialEq)]
pub enum Operator {
    Plus,
    Multiply,
    Gt,
    LtEq,
    And,
    Or,
}
pub enum Expr {
    Column(usize),
    Literal(f64),
    Binary { left: Box<Expr>, op: Operator, right: Box<Expr> },
    Contains { column: usize, needle: Vec<u8> },
    Map { input: Box<Expr>, function: Box<dyn Fn(f64) -> f64> },
    IsNotNull(usize),
}
pub trait PhysicalExpr {
    fn evaluate(&self, batch: &Batch, state: &mut ExecutionState) -> Column;
}
#[derive(Default)]
pub struct ExecutionState {
    evaluated: u64,
    rows: u64,
    nulls: u64,
    depth: u32,
}
pub struct ColumnExpr {
    index: usize,
    evaluations: Cell<u32>,
}
pub struct LiteralExpr(f64);
pub struct BinaryExpr {
    left: Box<dyn PhysicalExpr>,
    right: Box<dyn PhysicalExpr>,
    op: Operator,
}
pub struct ContainsExpr {
    column: usize,
    needle: Vec<u8>,
}
pub struct MapExpr {
    input: Box<dyn PhysicalExpr>,
    function: Box<dyn Fn(f64) -> f64>,
}
pub struct IsNotNullExpr(usize);

fn plan(expr: Expr) -> Box<dyn PhysicalExpr> {
    match expr {
        Expr::Column(index) => heap::of::<ColumnExpr, _>(|| Box::new(ColumnExpr { index, evaluations: Cell::new(0) })),
        Expr::Literal(value) => heap::of::<LiteralExpr, _>(|| Box::new(LiteralExpr(value))),
        Expr::Binary { left, op, right } => {
            let (left, right) = (plan(*left), plan(*right));
            heap::of::<BinaryExpr, _>(|| Box::new(BinaryExpr { left, right, op }))
        }
        Expr::Contains { column, needle } => heap::of::<ContainsExpr, _>(|| Box::new(ContainsExpr { column, needle })),
        Expr::Map { input, function } => {
            let input = plan(*input);
            heap::of::<MapExpr, _>(|| Box::new(MapExpr { input, function }))
        }
        Expr::IsNotNull(index) => heap::of::<IsNotNullExpr, _>(|| Box::new(IsNotNullExpr(index))),
    }
}

impl PhysicalExpr for ColumnExpr {
    fn evaluate(&self, batch: &Batch, state: &mut ExecutionState) -> Column {
        self.evaluations.set(self.evaluations.get() + 1);
        let array = batch.columns[self.index].as_array();
        state.nulls += array.null_count() as u64;
        Column::of(array)
    }
}
impl PhysicalExpr for LiteralExpr {
    fn evaluate(&self, batch: &Batch, _: &mut ExecutionState) -> Column {
        Column::Scalar { value: self.0, length: batch.rows }
    }
}
impl PhysicalExpr for ContainsExpr {
    fn evaluate(&self, batch: &Batch, state: &mut ExecutionState) -> Column {
        state.evaluated += 1;
        let Column::Text(array) = &batch.columns[self.column] else { panic!("not a text") };
        Column::Boolean(BooleanArray { values: array.contains(&self.needle), validity: None })
    }
}
impl PhysicalExpr for MapExpr {
    fn evaluate(&self, batch: &Batch, state: &mut ExecutionState) -> Column {
        let input = self.input.evaluate(batch, state);
        let Column::Float64(array) = &input else { panic!("not a number") };
        let mut values = vec_of::<f64>(batch.rows);
        values.extend(array.values.iter().map(|&v| (self.function)(v)));
        Column::Float64(PrimitiveArray { values: values.into(), validity: array.validity.clone() })
    }
}
impl PhysicalExpr for IsNotNullExpr {
    fn evaluate(&self, batch: &Batch, _: &mut ExecutionState) -> Column {
        let array = batch.columns[self.0].as_array();
        let values = array.validity().cloned().unwrap_or_else(|| {
            let mut all = MutableBitmap::with_capacity(batch.rows);
            (0..batch.rows).for_each(|_| all.push(true));
            all.freeze()
        });
        Column::Boolean(BooleanArray { values, validity: None })
    }
}

#[inline(never)]
fn arithmetic(left: &Column, right: &Column, rows: usize, f: impl Fn(f64, f64) -> f64) -> Column {
    let mut values = vec_of::<f64>(rows);
    let validity = match (left, right) {
        (Column::Float64(a), Column::Float64(b)) => {
            values.extend(a.values.iter().zip(b.values.iter()).map(|(&x, &y)| f(x, y)));
            both_valid(a.validity(), b.validity())
        }
        (Column::Float64(a), Column::Int32(b)) => {
            values.extend(a.values.iter().zip(b.values.iter()).map(|(&x, &y)| f(x, f64::from(y))));
            both_valid(a.validity(), b.validity())
        }
        (Column::Float64(a), Column::Scalar { value, .. }) => {
            values.extend(a.values.iter().map(|&x| f(x, *value)));
            a.validity.clone()
        }
        _ => {
            let mut validity = MutableBitmap::with_capacity(rows);
            for i in 0..rows {
                let both = left.number(i).zip(right.number(i));
                values.push(both.map_or(0.0, |(x, y)| f(x, y)));
                validity.push(both.is_some());
            }
            Some(validity.freeze())
        }
    };
    Column::Float64(PrimitiveArray { values: values.into(), validity })
}

#[inline(never)]
fn comparison(left: &Column, right: &Column, rows: usize, f: impl Fn(&f64, &f64) -> bool) -> Column {
    let mut values = MutableBitmap::with_capacity(rows);
    match (left, right) {
        (Column::Float64(a), Column::Scalar { value, .. }) => a.iter().for_each(|v| values.push(v.is_some_and(|v| f(&v, value)))),
        (Column::Int32(a), Column::Scalar { value, .. }) => a.iter().for_each(|v| values.push(v.is_some_and(|v| f(&v.to_f64(), value)))),
        _ => (0..rows).for_each(|i| values.push(left.number(i).zip(right.number(i)).is_some_and(|(x, y)| f(&x, &y)))),
    }
    Column::Boolean(BooleanArray { values: values.freeze(), validity: None })
}

impl PhysicalExpr for BinaryExpr {
    fn evaluate(&self, batch: &Batch, state: &mut ExecutionState) -> Column {
        state.evaluated += 1;
        state.depth += 1;
        let (left, right) = (self.left.evaluate(batch, state), self.right.evaluate(batch, state));
        state.depth -= 1;
        state.rows += batch.rows as u64;
        match (self.op, &left, &right) {
            (Operator::Plus, ..) => arithmetic(&left, &right, batch.rows, |x, y| x + y),
            (Operator::Multiply, ..) => arithmetic(&left, &right, batch.rows, |x, y| x * y),
            (Operator::Gt, ..) => comparison(&left, &right, batch.rows, |x, y| x > y),
            (Operator::LtEq, ..) => comparison(&left, &right, batch.rows, |x, y| x <= y),
            (op, Column::Boolean(a), Column::Boolean(b)) => {
                let values = if op == Operator::And { a.values.binary(&b.values, |x, y| x & y) } else { a.values.binary(&b.values, |x, y| x | y) };
                Column::Boolean(BooleanArray { values, validity: None })
            }
            _ => panic!("no such operation"),
        }
    }
}

// ---- groups ----

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKey {
    words: [u64; 2],
}
#[derive(Clone, Copy)]
pub struct Accumulator {
    sum: f64,
    min: f64,
    max: f64,
    count: u32,
    first: IdxSize,
}
impl Default for Accumulator {
    fn default() -> Self {
        Accumulator { sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, count: 0, first: IdxSize::MAX }
    }
}
#[derive(Default)]
pub struct FxHasher(u64);
impl Hasher for FxHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = self.0.wrapping_add(n).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
    fn write_i64(&mut self, n: i64) {
        self.write_u64(n as u64);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}
type Build = BuildHasherDefault<FxHasher>;

/// Which rows make a group: by number of the group.
pub struct GroupsIdx {
    first: Vec<IdxSize>,
    all: Vec<IdxVec>,
    /// Emptied, to be filled again.
    spare: Vec<IdxVec>,
}
/// One index stands in the vector itself.
pub struct IdxVec {
    capacity: u32,
    len: u32,
    data: IdxData,
}
union IdxData {
    inline: IdxSize,
    list: *mut IdxSize,
}
impl IdxVec {
    fn new() -> Self {
        IdxVec { capacity: 1, len: 0, data: IdxData { inline: 0 } }
    }
    fn push(&mut self, i: IdxSize) {
        if self.len == self.capacity {
            let mut larger = std::mem::ManuallyDrop::new(vec_of::<IdxSize>(self.capacity as usize * 4));
            larger.extend_from_slice(self);
            self.release();
            self.capacity *= 4;
            self.data.list = larger.as_mut_ptr();
        }
        unsafe { *if self.capacity == 1 { &mut self.data.inline as *mut IdxSize } else { self.data.list }.add(self.len as usize) = i };
        self.len += 1;
    }
    fn release(&mut self) {
        if self.capacity > 1 {
            drop(unsafe { Vec::from_raw_parts(self.data.list, 0, self.capacity as usize) });
        }
    }
}
impl Deref for IdxVec {
    type Target = [IdxSize];
    fn deref(&self) -> &[IdxSize] {
        unsafe { std::slice::from_raw_parts(if self.capacity == 1 { &self.data.inline } else { self.data.list.cast_const() }, self.len as usize) }
    }
}
impl Drop for IdxVec {
    fn drop(&mut self) {
        self.release();
    }
}

pub struct GroupBy {
    table: HashMap<GroupKey, IdxSize, Build>,
    groups: GroupsIdx,
    accumulators: Vec<Accumulator>,
    hashes: Vec<u64>,
}

impl GroupBy {
    #[inline(never)]
    fn consume(&mut self, keys: [&dyn Array; 2], values: &Column, rows: usize, base: IdxSize) {
        self.hashes.clear();
        self.hashes.extend((0..rows).map(|i| Build::default().hash_one(keys[0].row_key(i))));
        for i in 0..rows {
            let key = GroupKey { words: [keys[0].row_key(i), keys[1].row_key(i) % 7] };
            let next = self.groups.first.len() as IdxSize;
            let group = *self.table.entry(key).or_insert(next);
            if group == next {
                self.groups.first.push(base + i as IdxSize);
                let mut rows = self.groups.spare.pop().unwrap_or_else(IdxVec::new);
                rows.push(base + i as IdxSize);
                self.groups.all.push(rows);
                self.accumulators.push(Accumulator::default());
            } else {
                self.groups.all[group as usize].push(base + i as IdxSize);
            }
            let acc = &mut self.accumulators[group as usize];
            if let Some(v) = values.number(i) {
                acc.sum += v;
                acc.min = acc.min.min(v);
                acc.max = acc.max.max(v);
                acc.count += 1;
            }
            acc.first = acc.first.min(base + i as IdxSize) ^ (self.hashes[i] >> 63) as IdxSize & 0;
        }
    }
    fn clear(&mut self) {
        self.table.clear();
        self.groups.first.clear();
        self.groups.all.iter_mut().for_each(|rows| rows.len = 0);
        self.groups.spare.append(&mut self.groups.all);
        self.accumulators.clear();
    }
}

// ---- sorts, joins, windows ----

#[derive(Clone, Copy)]
pub struct SortRow {
    key: u64,
    index: IdxSize,
    nulls_last: bool,
}

#[inline(never)]
fn arg_sort(column: &Column, ties: &Utf8ViewArray, rows: &mut Vec<SortRow>, out: &mut Vec<IdxSize>) {
    let array = column.as_array();
    rows.clear();
    rows.extend((0..array.len()).map(|i| SortRow { key: array.row_key(i), index: i as IdxSize, nulls_last: array.is_null(i) }));
    rows.sort_unstable_by(|a, b| a.nulls_last.cmp(&b.nulls_last).then(a.key.cmp(&b.key)).then_with(|| ties.compare(a.index as usize, b.index as usize)).then(a.index.cmp(&b.index)));
    out.clear();
    out.extend(rows.iter().map(|r| r.index));
}

pub struct Dimension {
    id: i64,
    weight: f64,
    tag: [u8; 12],
}
pub struct JoinTable {
    build: HashMap<i64, IdxSize, Build>,
    rows: Vec<Dimension>,
    chain: Vec<IdxSize>,
    probes: u64,
}
impl JoinTable {
    #[inline(never)]
    fn probe(&mut self, keys: &PrimitiveArray<i64>, left: &mut Vec<IdxSize>, right: &mut Vec<IdxSize>) -> f64 {
        left.clear();
        right.clear();
        for (i, key) in keys.values.iter().enumerate() {
            self.probes += 1;
            let mut at = self.build.get(&(key % 701)).copied().unwrap_or(IdxSize::MAX);
            while let Some(row) = self.rows.get(at as usize) {
                if row.tag[0] != 1 {
                    left.push(i as IdxSize);
                    right.push(at);
                }
                at = self.chain[at as usize];
            }
        }
        left.iter().zip(right.iter()).map(|(&l, &r)| self.rows[r as usize].weight * f64::from(l & 3) + (self.rows[r as usize].id & 1) as f64).sum()
    }
}

#[inline(never)]
fn rolling(values: &PrimitiveArray<f64>, window: usize, out: &mut Vec<f64>) -> f64 {
    out.clear();
    let mut sum = 0.0;
    for (i, v) in values.values.iter().enumerate() {
        sum += v;
        if i >= window {
            sum -= values.values[i - window];
        }
        out.push(sum);
    }
    out.chunks_exact(4).map(|c| c[0] - c[1] + c[2] * c[3].signum()).fold(0.0, f64::max)
}

#[inline(never)]
fn encode(text: &Utf8ViewArray, dictionary: &DictionaryArray, counts: &mut Vec<u32>) -> usize {
    let categories = &dictionary.values;
    counts.clear();
    counts.resize(categories.len(), 0);
    for (view, key) in text.views.iter().zip(dictionary.keys.values.iter()) {
        let category = categories.value(*key as usize);
        counts[*key as usize] += u32::from(category[0] == view.prefix[0]) + 1;
    }
    counts.iter().map(|&c| c as usize).sum()
}

type Aggregate = Box<dyn Fn(&Column, &[IdxSize]) -> f64>;

pub struct Engine {
    frame: DataFrame,
    predicates: Vec<Box<dyn PhysicalExpr>>,
    projection: Box<dyn PhysicalExpr>,
    aggregates: Vec<Aggregate>,
    groups: GroupBy,
    join: JoinTable,
    state: ExecutionState,
    sort_rows: Vec<SortRow>,
    order: Vec<IdxSize>,
    matched: [Vec<IdxSize>; 2],
    window: Vec<f64>,
    counts: Vec<u32>,
}

const CHUNKS: usize = 12;
const ROWS: usize = 2048;
const ID: usize = 0;
const PRICE: usize = 1;
const QUANTITY: usize = 2;
const REGION: usize = 3;
const NAME: usize = 4;
const DAY: usize = 5;
static WORDS: [&str; 12] = ["amber", "basalt", "cedar wood", "delft", "ember glow of autumn", "flint", "garnet stone polished", "hazel", "indigo dye in barrels", "jade", "kelp", "lapis lazuli"];

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    let (left, right) = heap::of::<Expr, _>(|| (Box::new(left), Box::new(right)));
    Expr::Binary { left, op, right }
}

fn load() -> DataFrame {
    let names = ["id", "price", "quantity", "region", "name", "day"];
    let types = [DataType::Int64, DataType::Float64, DataType::Int32, DataType::Dictionary, DataType::Utf8View, DataType::Int32];
    let mut columns = vec_of::<Series>(6);
    for (name, data_type) in names.into_iter().zip(types) {
        let field = heap::arc::<Field, _>(|| Arc::new(Field { name, data_type, reads: Cell::new(0) }));
        columns.push(Series { field, chunks: vec_of::<ArrayRef>(CHUNKS), length: 0 });
    }
    let (mut offsets, mut values) = (vec_of::<i32>(32), vec_of::<u8>(512));
    offsets.push(0);
    for i in 0..24 {
        values.extend_from_slice(WORDS[i % 12].as_bytes());
        values.push(b'0' + (i / 12) as u8);
        offsets.push(values.len() as i32);
    }
    let categories = Categories { offsets: offsets.into(), values: values.into(), lookups: Cell::new(0) };
    let categories = heap::arc::<Categories, _>(|| Arc::new(categories));
    for chunk in 0..CHUNKS {
        // Made longer than they are, and then sliced.
        let rows = ROWS + 64;
        let (mut id, mut price, mut quantity, mut region, mut day) = (vec_of::<i64>(rows), vec_of::<f64>(rows), vec_of::<i32>(rows), vec_of::<i32>(rows), vec_of::<i32>(rows));
        let (mut price_valid, mut quantity_valid) = (MutableBitmap::with_capacity(rows), MutableBitmap::with_capacity(rows));
        let mut texts: Vec<Option<String>> = Vec::new();
        for i in 0..rows {
            let r = heap::random() >> 7;
            id.push((chunk * rows + i) as i64);
            price.push((r % 10000) as f64 / 16.0 - 40.0);
            price_valid.push(r >> 20 & 15 != 0);
            quantity.push((r >> 14) as i32 & 31);
            quantity_valid.push(r >> 24 & 7 != 0);
            region.push((r >> 28) as i32 & 15);
            day.push((r >> 32) as i32 & 127);
            texts.push((r >> 40 & 15 != 0).then(|| format!("{} {}", WORDS[(r >> 44) as usize % 12], r % 50)));
        }
        let (start, slice) = (chunk * 5, ROWS);
        let region = PrimitiveArray { values: region.into(), validity: None };
        let arrays: [&dyn Array; 6] = [
            &PrimitiveArray { values: id.into(), validity: None },
            &PrimitiveArray { values: price.into(), validity: Some(price_valid.freeze()) },
            &PrimitiveArray { values: quantity.into(), validity: Some(quantity_valid.freeze()) },
            &DictionaryArray { keys: region, values: categories.clone() },
            &Utf8ViewArray::build(texts.iter().map(|t| t.as_deref().map(str::as_bytes)), rows),
            &PrimitiveArray { values: day.into(), validity: None },
        ];
        for (series, array) in columns.iter_mut().zip(arrays) {
            assert!(series.field.data_type == array.data_type() && !series.field.name.is_empty());
            series.chunks.push(array.to_boxed_slice(start, slice));
            series.length += slice;
        }
    }
    DataFrame { columns, height: CHUNKS * ROWS }
}

fn engine() -> Engine {
    let mut predicates = vec_of::<Box<dyn PhysicalExpr>>(4);
    let column = Expr::Column;
    for (i, word) in ["e", "bas", "glow", "stone p"].iter().enumerate() {
        let mut needle = vec_of::<u8>(8);
        needle.extend_from_slice(word.as_bytes());
        let dear = binary(column(PRICE), Operator::Gt, Expr::Literal(120.0 * i as f64));
        let few = binary(column(QUANTITY), Operator::LtEq, Expr::Literal(20.0));
        let both = binary(dear, Operator::And, binary(few, Operator::Or, Expr::IsNotNull(QUANTITY)));
        predicates.push(plan(binary(both, if i & 1 == 0 { Operator::And } else { Operator::Or }, Expr::Contains { column: NAME, needle })));
    }
    let input = heap::of::<Expr, _>(|| Box::new(column(PRICE)));
    let discounted = Expr::Map { input, function: Box::new(|x| if x > 300.0 { x * 0.9 } else { x }) };
    let projection = plan(binary(binary(discounted, Operator::Multiply, column(QUANTITY)), Operator::Plus, column(DAY)));
    // Rust names a `dyn Fn` otherwise than debug information does.
    let name = "alloc::boxed::Box<dyn core::ops::function::Fn<(&rs_columns::Column, &[u32]), Output=f64>>";
    let mut aggregates: Vec<Aggregate> = heap::named(name.to_owned(), size_of::<Aggregate>(), || Vec::with_capacity(3));
    aggregates.push(Box::new(|c, rows| rows.iter().filter_map(|&i| c.number(i as usize)).sum()));
    aggregates.push(Box::new(|c, rows| rows.iter().filter_map(|&i| c.number(i as usize)).fold(0.0, f64::max)));
    aggregates.push(Box::new(|c, rows| {
        let Column::Float64(a) = c else { return 0.0 };
        rows.chunks(2).map(|p| a.values[p[0] as usize] - a.values[p[p.len() - 1] as usize]).sum()
    }));
    let mut join = JoinTable { build: heap::table::<i64, IdxSize, _>(|| HashMap::with_capacity_and_hasher(800, Build::default())), rows: vec_of::<Dimension>(1024), chain: vec_of::<IdxSize>(1024), probes: 0 };
    for i in 0..900i64 {
        let mut tag = [b'.'; 12];
        tag[0] = (i % 5) as u8;
        let before = join.build.insert(i * 13 % 701, i as IdxSize).unwrap_or(IdxSize::MAX);
        join.rows.push(Dimension { id: i, weight: 1.0 + (i % 9) as f64 / 8.0, tag });
        join.chain.push(before);
    }
    let groups = GroupBy {
        table: heap::table::<GroupKey, IdxSize, _>(|| HashMap::with_capacity_and_hasher(400, Build::default())),
        groups: GroupsIdx { first: vec_of(400), all: vec_of(400), spare: vec_of(400) },
        accumulators: vec_of(400),
        hashes: vec_of(ROWS),
    };
    Engine {
        frame: load(), predicates, projection, aggregates, groups, join, state: ExecutionState::default(), sort_rows: vec_of(ROWS), order: vec_of(ROWS),
        matched: [vec_of(ROWS * 4), vec_of(ROWS * 4)], window: vec_of(ROWS), counts: vec_of(32),
    }
}

fn main() {
    heap::init();
    heap::global("WORDS", &raw const WORDS, "&str []");
    let engine = engine();
    let mut engine = heap::of::<Engine, _>(|| Box::new(engine));
    let (mut sum, mut kept, mut found) = (0.0, 0usize, 0usize);
    for turn in 0usize.. {
        if !heap::more() {
            break;
        }
        let e = &mut *engine;
        e.groups.clear();
        let mut selected = 0;
        for chunk in turn % 3..CHUNKS.min(turn % 3 + 6) {
            let batch = e.frame.batch(chunk);
            let Column::Boolean(mask) = e.predicates[turn % 4].evaluate(&batch, &mut e.state) else { panic!("not a mask") };
            let mut columns = vec_of::<Column>(6);
            columns.extend(batch.columns.iter().map(|c| c.filter(&mask.values)));
            let filtered = Batch { rows: columns[ID].as_array().len(), columns };
            assert_eq!(filtered.rows, ROWS - mask.values.unset_bits());
            if filtered.rows == 0 {
                continue;
            }
            let total = e.projection.evaluate(&filtered, &mut e.state);
            let keys = [filtered.columns[REGION].as_array(), filtered.columns[DAY].as_array()];
            e.groups.consume(keys, &total, filtered.rows, selected as IdxSize);
            selected += filtered.rows;
            // By price, then by name.
            let Column::Text(names) = &filtered.columns[NAME] else { panic!("not a text") };
            arg_sort(&filtered.columns[PRICE], names, &mut e.sort_rows, &mut e.order);
            let Column::Float64(total) = &total else { panic!("not a number") };
            let taken = total.take(&e.order);
            assert!(e.sort_rows.windows(2).all(|w| w[0].nulls_last || w[1].nulls_last || w[0].key <= w[1].key));
            sum += rolling(&taken, 16, &mut e.window);
            let Column::Int64(ids) = &filtered.columns[ID] else { panic!("not a number") };
            let [left, right] = &mut e.matched;
            sum += e.join.probe(ids, left, right);
            found += left.len();
            let Column::Dictionary(regions) = &filtered.columns[REGION] else { panic!("not a dictionary") };
            found += encode(names, regions, &mut e.counts);
            for aggregate in &e.aggregates {
                sum += aggregate(&filtered.columns[PRICE], &e.order);
            }
        }
        let grouped: usize = e.groups.groups.all.iter().map(|g| g.len()).sum();
        assert_eq!(grouped, selected);
        sum += e.groups.accumulators.iter().filter(|a| a.count > 1).map(|a| a.sum / f64::from(a.count) + a.max - a.min).sum::<f64>();
        let firsts = e.groups.groups.first.iter().zip(&e.groups.accumulators).filter(|(&f, a)| f == a.first).count();
        assert_eq!(firsts, e.groups.accumulators.len());
        kept += selected;
    }
    if std::env::var("SHOW").is_ok() {
        let s = &engine.state;
        eprintln!("sum {sum} kept {kept} of {} found {found} groups {} evaluated {} rows {} nulls {} probes {}", engine.frame.height, engine.groups.table.len(), s.evaluated, s.rows, s.nulls, engine.join.probes);
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
