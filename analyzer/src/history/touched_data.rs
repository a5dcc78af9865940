//! Data that a sample of the history touched: the object's name, and the place in the object.

use crate::attribution::name_table::StaticArray;
use crate::attribution::verdict::Attribution;
use crate::attribution::world::World;
use crate::history::chunk::NONE;
use crate::process::table::DataObjectAt;
use dataspace_proto::record::Sample;

/// The data object that a sample touched, in the history's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TouchedData {
    /// Number of the name.
    pub(crate) name: u32,
    /// Offset in the outermost element, or [`NONE`].
    pub(crate) offset: u32,
    /// Number of the element in the array, or [`NONE`].
    pub(crate) index: u32,
    /// The static array that it is in, where all elements have this name: each sample tells its own number.
    pub(crate) array: Option<StaticArray>,
}

impl TouchedData {
    /// No data object.
    pub(crate) const NOTHING: Self = Self { name: NONE, offset: NONE, index: NONE, array: None };

    /// The offset, and the number of the element, of one sample.
    pub(super) fn position(
        &self,
        sample: &Sample,
        attribution: &Attribution,
        world: &mut World,
    ) -> (u32, u32) {
        let index = match self.array {
            None => self.index,
            Some(array) => element(array, sample, attribution, world).unwrap_or(NONE),
        };
        (self.offset, index)
    }
}

/// The number of the element of a static array that a sample touched.
#[inline(never)]
fn element(
    array: StaticArray,
    sample: &Sample,
    attribution: &Attribution,
    world: &mut World,
) -> Option<u32> {
    let (addr, _) = attribution.addr?;
    let (data, _) = world.processes.mapped_data(sample, addr);
    let DataObjectAt::Open { bias, .. } = data else { return None };
    let into = addr.0.wrapping_sub(bias).wrapping_sub(array.start.0);
    u32::try_from(into / array.element_bytes).ok()
}
