//! Thunks: functions that a compiler makes to enter a method through a base class that does not lie
//! at the object's start. Their names tell what they get.

use crate::elf::image::ElfImage;
use dataspace_proto::address::Svma;

/// A method's other entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thunk {
    /// The method.
    pub(crate) method: Svma,
    /// How far into the object, in bytes, the address is that it gets in place of the object's.
    pub(crate) offset: i64,
}

impl Thunk {
    /// The thunk around `svma`, if the symbol there is that of one (Itanium C++ ABI, section 5.1.4.2:
    /// `_ZTh`, the offset, `n` for one below 0, `_`, and the method's name behind its `_Z`).
    pub(crate) fn at(svma: Svma, image: &ElfImage) -> Option<Self> {
        let name = &image.function_at(svma)?.name;
        let (distance, method) = name.strip_prefix("_ZTh")?.split_once('_')?;
        let offset = match distance.strip_prefix('n') {
            Some(distance) => distance.parse::<i64>().ok()?,
            None => distance.parse::<i64>().ok()?.checked_neg()?,
        };
        let is_method = |name: &str| name.strip_prefix("_Z").is_some_and(|rest| rest == method);
        let method = image.functions.iter().find(|function| is_method(&function.name))?.start;
        Some(Self { method, offset })
    }
}
