//! Calls, as they are known before any sample's values are looked at: which function each reaches, what it passes,
//! and how its function's frame is left. Made once by a worker.

use crate::dataflow::{ArgumentSum, Derived};
use crate::dwarf::code::frame::FrameStep;
use crate::index::entry_name::Entries;
use crate::index::function_type::FunctionType;
use crate::index::site::{FrameSlot, OwnedRoot};
use crate::types::data_object::Root;
use crate::types::layout::{Layout, Member, ScalarKind, Shape};
use crate::x86_64::abi::N_ARGUMENTS;
use crate::x86_64::pointer::CodePointer;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// An access through what its function got as arguments: what the caller has to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// The operand's address.
    pub(crate) sum: ArgumentSum,
    /// The way out of the function.
    pub frame: FrameStep,
    /// The entries of the function.
    pub entries: Arc<Entries>,
}

/// The function that a call reaches first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CalleeAddress {
    /// One of those that begin here, in the same load object.
    At(Arc<[Svma]>),
    /// The one that the loader finds by this name.
    Named(Arc<str>),
    /// Not known: a pointer.
    #[default]
    Unknown,
}

impl CalleeAddress {
    /// The beginning of the only function of the same load object that it can be.
    pub(crate) fn only(&self) -> Option<Svma> {
        match self {
            Self::At(starts) => match **starts {
                [start] => Some(start),
                _ => None,
            },
            Self::Named(_) | Self::Unknown => None,
        }
    }
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallSite {
    /// The function that it calls.
    pub callee: CalleeAddress,
    /// The arguments that it passes, in their order.
    pub arguments: [Passed; N_ARGUMENTS],
    /// The way out of the calling function.
    pub frame: Option<FrameStep>,
    /// The entries of the calling function.
    pub entries: Arc<Entries>,
    /// Variables in the calling function's frame.
    pub variables: Vec<FrameSlot>,
    /// The type of the functions that it may be of, where it goes by a pointer.
    pub(crate) pointed: Option<Arc<FunctionType>>,
    /// The calls that the called function makes in the last place, by a jump that leaves no frame.
    pub onward: Vec<CallSite>,
}

/// A call instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallForm {
    /// Its length in bytes.
    pub length: u8,
    /// The function that it calls, as far as that does not depend on a register.
    pub callee: CalleeAddress,
    /// The target that is written out in it.
    pub written: Option<Svma>,
    /// The pointer that it goes by, if it is not written out.
    pub pointer: Option<CodePointer>,
    /// The jump of the linkage stub that it goes through.
    pub stub: Option<Svma>,
    /// The places to which the called function jumps in the last place.
    pub onward: Vec<Svma>,
}

/// Content of one register of arguments at a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passed {
    /// A pointer to this.
    pub pointer: Option<PassedPointer>,
    /// A number, which may be known.
    #[allow(clippy::option_option, reason = "that it is a number and which one are two facts")]
    pub number: Option<Option<i64>>,
    /// True if what is known of it is neither.
    pub is_other: bool,
    /// Of which arguments of the calling function it is made.
    pub(crate) sum: Derived,
}

/// A pointer that is passed.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedPointer {
    /// The layout that it points into.
    pub layout: Arc<Layout>,
    /// Distance into that; `None` where several places are possible.
    pub offset: Option<i64>,
    /// There, and not any number of steps further.
    pub is_exact: bool,
    /// The root that it is named after.
    pub root: OwnedRoot,
}

/// Place of an access in what is pointed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// The very place is known.
    pub(crate) is_exact: bool,
    /// It is known to begin at a single number or pointer in the middle of a structure, and not whether
    /// it is that. Programs put bytes of any number there, and allocators what they hand out.
    pub(crate) is_doubtful: bool,
}

impl Spot {
    const fn somewhere(offset: u64, size: u64) -> Self {
        Self { offset, size, is_exact: false, is_doubtful: false }
    }
}

/// Sum of a callee's arguments, by what the call passes.
pub(crate) enum Link<'a> {
    /// This pointer, by its place, and how far from it; `None` for any distance.
    Pointer { place: usize, pointer: &'a PassedPointer, moved: Option<i64> },
    /// A sum of the calling function's own arguments.
    Further(ArgumentSum),
    /// Nothing that is known.
    Nothing,
}

impl CallSite {
    /// A sum of the arguments of a function with these entries, which is of the same load object or of
    /// another one, as one of what this call passes; `None` where the call may be of another function.
    pub(crate) fn entering(
        &self,
        entries: &Entries,
        sum: &ArgumentSum,
        is_same_object: bool,
    ) -> Option<ArgumentSum> {
        self.is_of(&entries.starts, &entries.names, is_same_object).then_some(*sum)
    }

    /// The same by way of functions that end with a jump, which say what they pass but not its type.
    pub(crate) fn by_detour(
        &self,
        entries: &Entries,
        sum: &ArgumentSum,
        is_same_object: bool,
    ) -> Option<ArgumentSum> {
        let mut only = None;
        for detour in &entries.detours {
            if !self.is_of(&detour.starts, &detour.names, is_same_object) {
                continue;
            }
            let Derived::Sum(passed) = sum.with_arguments(&detour.passed) else { return None };
            if *only.get_or_insert(passed) != passed {
                return None;
            }
        }
        only
    }

    fn is_of(&self, starts: &[Svma], names: &[Arc<str>], is_same_object: bool) -> bool {
        match &self.callee {
            CalleeAddress::At(called) => {
                is_same_object && called.iter().any(|at| starts.contains(at))
            }
            CalleeAddress::Named(name) => names.contains(name),
            CalleeAddress::Unknown => false,
        }
    }

    /// The one call in the last place of the function that is called by which a function with these
    /// entries is reached, and the sum as one of what that passes.
    pub(crate) fn onward(
        &self,
        entries: &Entries,
        sum: &ArgumentSum,
        is_same_object: bool,
    ) -> Option<(usize, ArgumentSum)> {
        let reaching = self.onward.iter().enumerate().filter_map(|(number, site)| {
            let direct = site.entering(entries, sum, is_same_object);
            let passed = direct.or_else(|| site.by_detour(entries, sum, is_same_object))?;
            Some((number, passed))
        });
        let mut reaching = reaching.fuse();
        reaching.next().filter(|_| reaching.next().is_none())
    }

    /// Finds what the call passes of a sum of its callee's arguments.
    pub(crate) fn link(&self, sum: &ArgumentSum) -> Link<'_> {
        let mut found = None;
        let mut moved = sum.offset();
        let mut is_known = true;
        for (place, passed) in self.arguments.iter().enumerate() {
            let factor = sum.factor(place);
            match (factor, passed) {
                (Some(0), _) => {}
                (_, Passed { pointer: Some(pointer), .. }) if found.is_none() => {
                    is_known &= matches!(factor, None | Some(1));
                    found = Some((place, pointer));
                }
                (factor, Passed { number: Some(number), .. }) => {
                    let by = factor.zip(*number);
                    let by = by.and_then(|(factor, by)| by.checked_mul(i64::from(factor)));
                    moved = moved.zip(by).and_then(|(moved, by)| moved.checked_add(by));
                }
                _ => is_known = false,
            }
            // Whether it is added at all is not known.
            if factor.is_none() {
                moved = None;
            }
        }
        match found {
            Some((place, pointer)) if is_known => Link::Pointer { place, pointer, moved },
            _ => self.further(sum),
        }
    }

    /// The sum as one of the calling function's own arguments.
    pub(crate) fn further(&self, sum: &ArgumentSum) -> Link<'_> {
        let mut passed = self.arguments.iter().map(|passed| match passed.number {
            Some(number) => Derived::Sum(ArgumentSum::number(number)),
            None => passed.sum,
        });
        let passed = std::array::from_fn(|_| passed.next().unwrap_or(Derived::Top));
        match sum.with_arguments(&passed) {
            Derived::Sum(sum) if !sum.is_number() => Link::Further(sum),
            _ => Link::Nothing,
        }
    }
}

impl PassedPointer {
    /// Tells whether it is to bytes, as which C passes anything on.
    pub(crate) fn is_erased(&self) -> bool {
        let element = self.layout.innermost_element();
        matches!(element.shape, Shape::Scalar(ScalarKind::Byte))
            && !matches!(self.root, OwnedRoot::Variable(_))
    }

    /// Returns the root that the name begins with.
    pub(crate) fn root(&self) -> Root<'_> {
        self.root.borrow()
    }

    /// Finds the place of an access of `size` bytes, `moved` bytes from where this points, or somewhere from
    /// there on; `None` where that is not known to be in the object.
    pub(crate) fn spot(&self, moved: Option<i64>, size: u64) -> Option<Spot> {
        let element = self.layout.innermost_element();
        if !element.is_aggregate() && !matches!(self.root, OwnedRoot::Variable(_)) {
            return Some(Spot::somewhere(0, element.size));
        }
        let moved = moved.filter(|_| self.is_exact);
        let whole = Spot::somewhere(0, element.size);
        let into = match self.offset {
            Some(offset) => u64::try_from(offset).ok().filter(|into| self.layout.holds(*into))?,
            None => return Some(whole),
        };
        let exact = moved
            .and_then(|by| into.checked_add_signed(by))
            .map(|offset| Spot { is_exact: true, ..Spot::somewhere(offset, size) });
        // Behind an object that is pointed at may be another one.
        let exact = exact.filter(|spot| self.layout.holds(spot.offset));
        if !element.is_aggregate() {
            return if moved.is_some() { exact } else { Some(whole) };
        }
        let in_element = if into < self.layout.size { into % element.size.max(1) } else { into };
        match meant(&element, in_element, self.is_exact) {
            Meant::Whole if moved.is_some() => exact,
            Meant::Whole => Some(whole),
            Meant::Part(_) if exact.is_some() => exact,
            Meant::Part(size) => Some(Spot::somewhere(in_element, size)),
            Meant::Number(most) => {
                let is_it = |spot: &Spot| spot.offset == into && spot.size <= most;
                Some(exact.filter(is_it).unwrap_or(Spot { is_doubtful: true, ..whole }))
            }
            Meant::Unknown => Some(exact.filter(|_| moved == Some(0)).unwrap_or(whole)),
        }
    }
}

/// Bytes that a pointer into an aggregate is meant to go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    /// All of it.
    Whole,
    /// A part of so many bytes, or an array of such.
    Part(u64),
    /// One number or pointer of so many bytes. Programs put bytes of any number there as well, over
    /// the members behind it.
    Number(u64),
    /// Not known.
    Unknown,
}

/// Finds what a pointer to the byte at `into` is meant to go over. Where it was counted up from that place it
/// has to be the beginning of an array: `&v[i - 1]` is counted from what stands before it.
fn meant(aggregate: &Layout, into: u64, is_exact: bool) -> Meant {
    let Shape::Aggregate { kind, members } = &aggregate.shape else { return Meant::Unknown };
    if into == 0 {
        return Meant::Whole;
    }
    if kind.has_arms() {
        return Meant::Unknown;
    }
    let is_around = |member: &Member| {
        let start = into.checked_sub(member.byte_range().0);
        member.bits.is_none() && start.is_some_and(|start| member.layout.holds(start))
    };
    let around = members.iter().find(|member| is_around(member));
    let Some(around) = around else { return Meant::Unknown };
    let start = around.byte_range().0;
    match &around.layout.shape {
        Shape::Array { .. } if !around.layout.innermost().is_aggregate() => {
            match is_exact || start == into {
                true => Meant::Part(around.layout.innermost().size),
                false => Meant::Unknown,
            }
        }
        Shape::Aggregate { .. } if start == into && is_exact => Meant::Part(around.layout.size),
        Shape::Aggregate { .. } => match meant(&around.layout, into - start, is_exact) {
            Meant::Whole => Meant::Unknown,
            inner => inner,
        },
        Shape::Scalar(_) if start == into && is_exact => Meant::Number(around.layout.size),
        _ => Meant::Unknown,
    }
}
