//! All that is known of a reported IP before any sample's values are looked at: its possible
//! triggers, what each one touches, and what the type path says of it. Made once by a worker.

use crate::dataflow::{Congruence, into_array_at_end, is_never_in_array, place_at_end};
use crate::dwarf::code::frame::FrameStep;
use crate::index::call_site::Handed;
use crate::index::entered::EnteredFunction;
use crate::index::thread_access::ThreadLink;
use crate::limit;
use crate::types::data_object::{DataObject, PointerMember, Root};
use crate::types::layout::{Layout, Step};
use crate::x86_64::access::{AddressRegister, MemoryAccess};
use crate::x86_64::backtrack::Skid;
use crate::x86_64::trail::Trail;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::sample_line::Scope;
use std::sync::Arc;

/// Query for a site, which a worker is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SiteQuery {
    /// The reported IP in the file's terms.
    pub ip: Svma,
    /// The place of the trigger, relative to it.
    pub skid: Skid,
}

/// The worker's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The code around IP.
    pub scope: Arc<Scope>,
    /// The past in which the trigger may be found, or the reason why it cannot.
    pub outcome: Result<Box<Past>, Reason>,
}

impl Site {
    /// Tells whether a limit cut the work on the code around it.
    pub(crate) fn is_over_budget(&self) -> bool {
        match &self.outcome {
            Ok(past) => {
                let mut accesses = past.triggers.iter().flat_map(|trigger| &trigger.accesses);
                accesses.any(|it| it.answer == TypeAnswer::Unknown(Reason::OverBudget))
            }
            Err(reason) => *reason == Reason::OverBudget,
        }
    }
}

/// Instructions that may have run before a reported IP.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The instructions and the ways between them.
    pub trail: Trail,
    /// Those that may be the trigger.
    pub triggers: Vec<Trigger>,
    /// The way from the frame to its caller's, where the function's frame is known.
    pub frame: Option<FrameStep>,
    /// The function that begins here, where only a caller can have the trigger.
    pub entry: Option<Box<EnteredFunction>>,
}

impl Past {
    /// The trigger, if it is known for certain and touches nothing.
    pub(crate) fn silent_trigger(&self) -> Option<u8> {
        let here = self.trail.nodes.first().filter(|_| self.trail.reach == 0)?;
        let trigger = here.trigger?;
        let found = self.triggers.get(usize::from(trigger))?;
        found.accesses.is_empty().then_some(trigger)
    }
}

/// An instruction that may have caused the sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// Its address.
    pub svma: Svma,
    /// Its accesses; none for an instruction without memory operands.
    pub accesses: Vec<TypedAccess>,
}

/// Part that a variable at an access's address has in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableRole {
    /// It is joined with that of the type path.
    Joined,
    /// It goes before a contradicting one: something counts from a variable, and how far the code does not tell.
    Reached,
    /// It is the answer: the pointer may be to it.
    PointedAt,
}

/// One access of a trigger and the type path's answer to it.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedAccess {
    /// The operand.
    pub memory: MemoryAccess,
    /// The answer of instruction and debug information.
    pub answer: TypeAnswer,
    /// Variables in the frame there, for addresses on the stack.
    pub frame: Arc<Vec<FrameSlot>>,
    /// Part of a variable at the address.
    pub variable: VariableRole,
    /// Something counts in the object: its address does not tell where the object begins.
    pub is_counted: bool,
    /// Objects that registers point at there, for an access that is not typed by itself.
    pub live: Arc<Vec<LiveObject>>,
    /// The place in the thread's storage that its base register tells.
    pub thread_link: Option<ThreadLink>,
    /// For an access that may not be typed by itself: the bytes that its pointer leads to.
    pub bytes: Option<Arc<PlacedObject>>,
    /// For an access that is not typed by itself: what a caller can tell of it.
    pub handed: Option<Arc<Handed>>,
}

/// An object that a register points into.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveObject {
    /// The register.
    pub register: AddressRegister,
    /// The offset in the object that it points at.
    pub offset: i64,
    /// The object's type.
    pub layout: Arc<Layout>,
}

/// The type path's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeAnswer {
    /// One object for every sample.
    Object(Arc<PlacedObject>),
    /// The index register's value decides which part.
    Indexed(Arc<IndexedAnswer>),
    /// None, and why.
    Unknown(Reason),
}

impl TypeAnswer {
    /// The one object, if it is one for every sample.
    pub(crate) fn object(self) -> Option<PlacedObject> {
        match self {
            Self::Object(object) => Some(Arc::unwrap_or_clone(object)),
            Self::Indexed(_) | Self::Unknown(_) => None,
        }
    }
}

/// A named object and where in it the access begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedObject {
    /// The object.
    pub object: DataObject,
    /// Byte offset in the outermost element.
    pub offset: u64,
}

impl PlacedObject {
    /// `<Stack>`.
    #[must_use]
    pub fn stack() -> Self {
        Self { object: DataObject::stack(), offset: 0 }
    }
}

/// An object of which the index register's value tells the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedAnswer {
    /// The layout that the base is at the start of.
    pub layout: Arc<Layout>,
    /// Displacement from there.
    pub displacement: i64,
    /// The register that counts, which may be the operand's base: the two are alike to the CPU.
    pub index: AddressRegister,
    /// The factor that it is multiplied by.
    pub scale: u8,
    /// The product of the two, as far as it is known.
    pub(crate) counted: Congruence,
    /// The name behind it.
    pub root: OwnedRoot,
    /// The displacement leads into the array that ends the layout, which goes on.
    is_at_end: bool,
    /// Offset and size of what is touched whatever the index register held: the same part of each element if the index steps
    /// over whole ones, else the element.
    ///
    /// `None` in the middle of a variable: `table[i - 1]` has the displacement of what stands before `table`.
    pub any_part: Option<(u64, u64)>,
}

impl IndexedAnswer {
    /// The answer to an access of `size` bytes at `displacement` and what a register counts from there.
    #[must_use]
    pub(crate) fn new(
        (layout, displacement): (Arc<Layout>, i64),
        ((index, scale), number): ((AddressRegister, u8), Congruence),
        root: OwnedRoot,
        size: u64,
    ) -> Self {
        // Worked out once: the way through a type takes memory, which no known sample may.
        let counted = number.times(i64::from(scale));
        let into = u64::try_from(displacement).ok();
        let at_end = |into| place_at_end(&layout.innermost_element(), into, counted.step());
        let is_at_end = into.and_then(at_end).is_some();
        let any_part = any_part((&layout, displacement), counted, &root, size);
        Self { layout, displacement, index, scale, counted, root, is_at_end, any_part }
    }

    /// Computes where the access begins in the layout when the index register holds `index`; behind a
    /// pointer, in whichever element that is.
    ///
    /// `None` where the access is not in what was found at the displacement: `table[i - 1]` has the
    /// displacement of the variable before `table`, and behind a structure that is pointed at may be
    /// anything.
    #[must_use]
    pub fn offset(&self, index: u64) -> Option<u64> {
        let index = if self.index.is_32_bit { index & 0xffff_ffff } else { index };
        let moved = index.wrapping_mul(u64::from(self.scale)).cast_signed();
        if moved.unsigned_abs() > limit::MAX_INDEXED_BYTES {
            // The register holds an address itself, and the other one what is added to it.
            return None;
        }
        let exact = u64::try_from(self.displacement.wrapping_add(moved)).ok();
        if let Some(offset) = exact.filter(|offset| self.layout.holds(*offset)) {
            return Some(offset);
        }
        if matches!(self.root, OwnedRoot::Variable(_)) {
            return None;
        }
        let element = self.layout.innermost_element();
        if self.is_at_end
            && let Some(further) =
                exact.and_then(|exact| place_at_end(&element, exact, self.counted.step()))
        {
            return Some(further);
        }
        // Another element of an array that the pointer points into: only if the index steps over
        // whole elements, and the rest of the address is a place in one.
        let size = i64::try_from(element.size).ok();
        let size = size.filter(|size| *size != 0)?;
        let is_step = is_step(self.counted, size.unsigned_abs())
            && moved.wrapping_sub(self.counted.rest()) % size == 0;
        let is_member = (0..size).contains(&self.displacement) && moved % size == 0;
        let place = self.displacement.wrapping_add(moved).rem_euclid(size).cast_unsigned();
        (is_step || is_member).then_some(place)
    }
}

/// Works out [`IndexedAnswer::any_part`].
fn any_part(
    (layout, displacement): (&Arc<Layout>, i64),
    counted: Congruence,
    root: &OwnedRoot,
    size: u64,
) -> Option<(u64, u64)> {
    // A register that counts is of an array: `table[i - 1]` has the displacement of the variable
    // before `table` too, and even that variable's start.
    if matches!(root, OwnedRoot::Variable(_)) {
        let path = layout.descend(0, size).filter(|_| displacement == 0)?;
        path.steps.contains(&Step::Element).then_some(())?;
    }
    let element = layout.innermost_element();
    if !element.is_aggregate() {
        return Some((0, size));
    }
    let start = displacement.wrapping_add(counted.rest());
    if let Some(into) = into_array_at_end(&element, start, counted.step(), size) {
        return Some((into, size));
    }
    Some(match i64::try_from(element.size) {
        Ok(bytes)
            if bytes != 0
                && is_step(counted, element.size)
                && !is_never_in_array(&element, counted.step()) =>
        {
            (start.rem_euclid(bytes).cast_unsigned(), size)
        }
        _ => (0, element.size),
    })
}

/// Tells whether what counts steps over whole elements of this many bytes.
fn is_step(counted: Congruence, size: u64) -> bool {
    counted.step() != 0 && counted.step().is_multiple_of(size)
}

/// [`Root`], owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedRoot {
    /// Through the pointer of this name.
    Pointer(Arc<str>),
    /// Through a pointer that is a member.
    Member(Arc<PointerMember>),
    /// Inside the variable of this name.
    Variable(Arc<str>),
}

impl OwnedRoot {
    /// The borrowed form.
    #[must_use]
    pub fn borrow(&self) -> Root<'_> {
        match self {
            Self::Pointer(name) => Root::Pointer(name),
            Self::Member(member) => Root::Member(member),
            Self::Variable(name) => Root::Variable(name),
        }
    }
}

/// A variable in a function's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameSlot {
    /// The register that its place is counted from.
    pub base: AddressRegister,
    /// Distance from that.
    pub offset: i64,
    /// Its type.
    pub layout: Arc<Layout>,
    /// Its name.
    pub name: Arc<str>,
}
