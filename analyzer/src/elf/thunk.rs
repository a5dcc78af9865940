//! Thunks: functions that a compiler makes to enter a method through a base class that does not lie
//! at the object's start. Their names tell what they get.

use crate::elf::image::{ElfImage, FunctionSymbol};
use crate::known::mangling;
use dataspace_proto::address::Svma;

/// A method's other entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thunk {
    /// The method.
    pub(crate) method: Svma,
    /// Distance from the object's address to the one that it gets, in bytes.
    pub(crate) offset: i64,
}

impl Thunk {
    /// The thunk around `svma`, if the symbol there is that of one.
    pub(crate) fn at(svma: Svma, image: &ElfImage) -> Option<Self> {
        let (offset, method) = mangling::thunk(&image.function_at(svma)?.name)?;
        let is_method = |function: &&FunctionSymbol| mangling::is_method(&function.name, method);
        let method = image.functions.iter().find(is_method)?.start;
        Some(Self { method, offset })
    }
}
