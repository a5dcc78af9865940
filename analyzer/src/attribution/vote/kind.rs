//! The things that votes are about: types of objects, each once, and which of them contain which.

use crate::index::site::PlacedObject;
use crate::limit::{self, BoundedMap};
use crate::types::data_object::ObjectStep;
use crate::types::layout::{Layout, ScalarKind, Shape};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index of a kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct KindIdx(u16);

/// The lesson of a named object about the memory that it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// An object of this kind is there.
    Kind(KindIdx),
    /// It was read as bytes, as which anything can be read.
    Bytes,
    /// Nothing.
    Nothing,
}

/// One kind of object.
#[derive(Debug)]
pub(crate) struct Kind {
    /// One of them.
    pub(crate) layout: Arc<Layout>,
    /// For scalars, which are named after the pointer they were reached by, that name.
    pub(crate) scalar: Option<PlacedObject>,
    size: u32,
}

impl Kind {
    /// Bytes of one of them.
    pub(crate) const fn size(&self) -> u32 {
        self.size
    }

    /// Tells whether it has no parts.
    pub(crate) const fn is_scalar(&self) -> bool {
        self.scalar.is_some()
    }
}

/// All kinds that were voted for.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    kinds: Vec<Kind>,
    of_object: FxHashMap<ObjectStep, KindIdx>,
    /// Results of [`Self::contains`].
    contained: BoundedMap<(KindIdx, u32, KindIdx), bool, { limit::MAX_NAMES }>,
    /// Results of [`Self::ask`].
    fitting: BoundedMap<(KindIdx, u32, Option<u32>), bool, { limit::MAX_NAMES }>,
}

impl Kinds {
    pub(crate) fn get(&self, idx: KindIdx) -> &Kind {
        &self.kinds[usize::from(idx.0)]
    }

    /// The lesson of an object that the instruction named.
    pub(crate) fn lesson(&mut self, answer: &PlacedObject) -> Lesson {
        let object = &answer.object;
        let (Some(layout), None) = (object.element(), &object.variable) else {
            return Lesson::Nothing;
        };
        let Ok(size) = u32::try_from(layout.size) else { return Lesson::Nothing };
        if size == 0 || size > limit::MAX_VOTED_BYTES {
            return Lesson::Nothing;
        }
        match layout.shape {
            Shape::Scalar(ScalarKind::Byte) => Lesson::Bytes,
            Shape::Scalar(ScalarKind::Opaque) | Shape::Array { .. } => Lesson::Nothing,
            Shape::Scalar(_) => self.intern(answer, &layout, size),
            // An aggregate that is named as a whole may be so because which part it is was not
            // known, and then neither is where it begins.
            Shape::Aggregate { .. } if object.levels.len() < 2 => Lesson::Nothing,
            Shape::Aggregate { .. } => self.intern(answer, &layout, size),
        }
    }

    fn intern(&mut self, answer: &PlacedObject, layout: &Arc<Layout>, size: u32) -> Lesson {
        let is_scalar = !layout.is_aggregate();
        let Some(outermost) = answer.object.outermost() else { return Lesson::Nothing };
        if let Some(known) = self.of_object.get(outermost) {
            return Lesson::Kind(*known);
        }
        if self.kinds.len() >= limit::MAX_VOTE_KINDS {
            return Lesson::Nothing;
        }
        let idx = KindIdx(self.kinds.len() as u16);
        let scalar = is_scalar.then(|| PlacedObject { offset: 0, ..answer.clone() });
        self.kinds.push(Kind { layout: Arc::clone(layout), scalar, size });
        self.of_object.insert(outermost.clone(), idx);
        Lesson::Kind(idx)
    }

    /// Tells whether two scalars are of one type, perhaps behind pointers of other names.
    pub(crate) fn is_alike(&self, one: KindIdx, other: KindIdx) -> bool {
        one == other || is_same_type(&self.get(one).layout, &self.get(other).layout)
    }

    /// Tells whether an object of kind `outer` has one of kind `inner` that begins at `offset`.
    pub(crate) fn contains(&mut self, outer: KindIdx, offset: u32, inner: KindIdx) -> bool {
        let key = (outer, offset, inner);
        if let Some(known) = self.contained.get(&key) {
            return known;
        }
        let mut n_left = limit::MAX_UNION_ARMS;
        let (outer, inner) = (&self.get(outer).layout, &self.get(inner).layout);
        let answer = contains(outer, u64::from(offset), inner, limit::MAX_TYPE_DEPTH, &mut n_left);
        self.contained.keep(key, answer)
    }

    /// Tells whether an access of `size` bytes at `offset` is to one whole scalar of this kind, or at
    /// least wider than any.
    pub(crate) fn fits(&mut self, kind: KindIdx, offset: u32, size: u32) -> bool {
        self.ask(kind, offset, Some(size))
    }

    /// The same, or whether the access is wider than any scalar and begins where one does: code that
    /// takes text in vectors reads over its end.
    pub(crate) fn begins(&mut self, kind: KindIdx, offset: u32, size: u32) -> bool {
        self.fits(kind, offset, size) || size > WIDEST_SCALAR && self.ask(kind, offset, None)
    }

    /// Tells whether an access fits, or, without a size, whether a scalar begins there.
    fn ask(&mut self, kind: KindIdx, offset: u32, size: Option<u32>) -> bool {
        let key = (kind, offset, size);
        if let Some(known) = self.fitting.get(&key) {
            return known;
        }
        let n_bytes = u64::from(size.unwrap_or(1));
        let path = self.get(kind).layout.descend(u64::from(offset), n_bytes);
        let answer = path.is_some_and(|path| {
            let is_whole = size.is_none() || path.leaf.size == n_bytes;
            let is_wide = n_bytes > u64::from(WIDEST_SCALAR) && path.leaf.is_aggregate();
            path.into == 0 && (is_whole || is_wide)
        });
        self.fitting.keep(key, answer)
    }
}

/// Bytes of the widest number that is not in a vector register.
const WIDEST_SCALAR: u32 = 8;

/// Tells whether an object of type `inner` begins at `offset` of one of type `outer`.
fn contains(outer: &Layout, offset: u64, inner: &Layout, depth: usize, n_left: &mut u32) -> bool {
    if offset == 0 && is_same_type(outer, inner) {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    match &outer.shape {
        Shape::Scalar(_) => false,
        Shape::Array { element, .. } => offset
            .checked_rem(element.size)
            .is_some_and(|into| contains(element, into, inner, depth, n_left)),
        Shape::Aggregate { members, .. } => members.iter().any(|member| {
            let Some(left) = n_left.checked_sub(1) else { return false };
            *n_left = left;
            let (start, end) = member.byte_range();
            let is_open = end == start && matches!(member.layout.shape, Shape::Array { .. });
            start <= offset
                && (offset < end || is_open)
                && contains(&member.layout, offset - start, inner, depth, n_left)
        }),
    }
}

/// Tells whether two types are one to a program that reaches an object through a pointer.
fn is_same_type(one: &Layout, other: &Layout) -> bool {
    if one.size != other.size {
        return false;
    }
    match (&one.shape, &other.shape) {
        (Shape::Scalar(ScalarKind::Pointer), Shape::Scalar(ScalarKind::Pointer)) => true,
        (Shape::Scalar(_), Shape::Scalar(_)) => one.is_alike_scalar(other),
        _ => one == other,
    }
}
