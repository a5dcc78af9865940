//! Functions that begin at a reported IP, and the ways into them.

use crate::index::function_type::{Casts, FunctionType};
use crate::limit;
use crate::x86_64::access::AddressOperand;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A function that begins at a reported IP: what its code and the load object's tables tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnteredFunction {
    /// The names by which other load objects call it.
    pub names: Vec<Arc<str>>,
    /// Places in the data of its load object where the file has a pointer to it.
    pub held_at: Vec<Svma>,
    /// Places there where it has a pointer to any code, in order.
    pub pointers: Arc<[Svma]>,
    /// Those of them where only the loader writes.
    pub loaded: Arc<[Svma]>,
    /// A function that it went on to by a jump may enter it again before it returns.
    pub(crate) comes_back: ComesBack,
    /// No jump that is written out in another function leads to it, and no linkage stub.
    pub is_only_called: bool,
    /// Code has its address, and may put it anywhere.
    pub(crate) is_taken: bool,
}

impl EnteredFunction {
    /// Tells whether only the loader writes at `place`, where the file has a pointer to code.
    pub(crate) fn is_loaded(&self, place: Svma) -> bool {
        self.loaded.binary_search(&place).is_ok()
    }

    /// Tells whether the file has a pointer to other code at `place`, which the program may have changed.
    pub(crate) fn is_of_other(&self, place: Svma) -> bool {
        let is_pointer = self.pointers.binary_search(&place).is_ok();
        is_pointer && !self.is_held_at(place) && !self.is_loaded(place)
    }

    /// Tells whether the file has a pointer to it at `place`.
    pub(crate) fn is_held_at(&self, place: Svma) -> bool {
        self.held_at.binary_search(&place).is_ok()
    }
}

/// By what a function may be entered again before it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ComesBack {
    /// By nothing.
    Never,
    /// By nothing, unless the program has changed what the file has in static pointers.
    Unlikely,
    /// By a jump that goes by a pointer, or after one.
    ByPointer,
    /// By jumps that are written out, or that is not known.
    #[default]
    ByJump,
}

/// Ways into a function besides a call, where no jump that is written out leads to it.
#[derive(Clone, Debug, PartialEq)]
pub struct WaysIn {
    /// Its type.
    pub(crate) function_type: Option<Arc<FunctionType>>,
    /// The type of those that it goes on to by pointers.
    pub(crate) onward: Option<Arc<FunctionType>>,
    /// The load object's jumps by pointers in memory.
    pub(crate) jumps: Arc<[PointerJump]>,
    /// Those of them that do not lead here, by their place in the list.
    pub(crate) elsewhere: Vec<u16>,
    /// Those that do not where pointers hold no functions that take fewer arguments than they pass.
    pub(crate) dropping: Vec<u16>,
    /// Those into whose pointer code may put this function.
    pub(crate) put: Vec<u16>,
}

impl WaysIn {
    /// The jumps by pointers that may lead here, with their places in the list.
    pub(crate) fn perhaps(&self, casts: Casts) -> impl Iterator<Item = (usize, &PointerJump)> {
        let all = self.jumps.iter().enumerate();
        all.filter(move |(at, _)| {
            let at = *at as u16;
            let is_dropping = casts == Casts::Keeping && self.dropping.contains(&at);
            !is_dropping && !self.elsewhere.contains(&at)
        })
    }
}

/// Jumps out of functions of one load object by one pointer in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerJump {
    /// The place of the pointer.
    pub operand: AddressOperand,
    /// The type of the functions that the pointer may lead to.
    pub(crate) pointed: Option<Arc<FunctionType>>,
    /// The jumps; one more than [`limit::MAX_ALIKE_JUMPS`] stands for more.
    pub sites: Vec<JumpSite>,
}

/// One jump by a pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct JumpSite {
    /// Its address.
    pub at: Svma,
    /// The functions that it may have been come to from by written jumps, its own first; none if they are not known.
    pub(crate) entries: Arc<[JumpEntry]>,
}

/// A function from whose beginning written jumps lead to a jump by a pointer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JumpEntry {
    /// Its beginning.
    pub(crate) start: Svma,
    /// Its type.
    pub(crate) function_type: Option<Arc<FunctionType>>,
}

impl PointerJump {
    /// Tells whether it may lead to functions of this type.
    pub(crate) fn may_be_of(&self, taken: Option<&FunctionType>, casts: Casts) -> bool {
        match (&self.pointed, taken) {
            (Some(pointed), Some(taken)) if self.are_few() => {
                taken.may_be_called_as(pointed, casts)
            }
            _ => true,
        }
    }

    /// Tells whether all of the jumps are kept.
    pub(crate) const fn are_few(&self) -> bool {
        self.sites.len() <= limit::MAX_ALIKE_JUMPS
    }
}

/// A load object's jumps by pointers, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct JumpCache {
    /// All of them; `None` within where there are too many.
    #[allow(clippy::option_option, reason = "not asked for yet, and too many, are two facts")]
    pub(crate) all: Option<Option<Arc<[PointerJump]>>>,
    /// By static pointer, what is put there.
    pub(crate) puts: Option<FxHashMap<Svma, Puts>>,
}

/// The things that code puts into a static pointer by its address.
#[derive(Debug, Default)]
pub(crate) struct Puts {
    /// These functions.
    pub(crate) starts: Vec<Svma>,
    /// The content of these static pointers.
    pub(crate) from: Vec<Svma>,
    /// Functions that are not known.
    pub(crate) has_others: bool,
    /// Others may have its address, and put there anything.
    pub(crate) is_open: bool,
    /// Other load objects find it by a name, and may put there what they find by names.
    pub(crate) is_exported: bool,
}
