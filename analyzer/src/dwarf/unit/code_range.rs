//! The code ranges of entries, read within a budget: many entries can share one long list.

use crate::dwarf::unit::reader::{Dwarf, Entry, Reader};
use gimli::Range;

/// The code ranges of an entry, up to where they are damaged. Whatever stands in a list counts against
/// `n_left`, also what is no code.
pub(crate) fn ranges(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Reader>,
    entry: &Entry,
    n_left: &mut usize,
) -> Vec<Range> {
    let mut found = Vec::new();
    let _ = read(dwarf, unit, entry, n_left, &mut found);
    found
}

fn read(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Reader>,
    entry: &Entry,
    n_left: &mut usize,
    found: &mut Vec<Range>,
) -> gimli::Result<()> {
    if let Some(value) = entry.attr_value(gimli::DW_AT_ranges)
        && let Some(mut list) = dwarf.attr_ranges(unit, value)?
    {
        // gimli's `next` goes on over all that is no code, however much that is.
        while *n_left > 0
            && let Some(raw) = list.next_raw()?
        {
            *n_left -= 1;
            found.extend(list.convert_raw(raw)?);
        }
        return Ok(());
    }
    let (Some(low), Some(high)) =
        (entry.attr_value(gimli::DW_AT_low_pc), entry.attr_value(gimli::DW_AT_high_pc))
    else {
        return Ok(());
    };
    let Some(begin) = dwarf.attr_address(unit, low)? else { return Ok(()) };
    let end = match high {
        // A length may reach past the end of the address space.
        gimli::AttributeValue::Udata(len) => begin.checked_add(len),
        address => dwarf.attr_address(unit, address)?,
    };
    if let Some(end) = end.filter(|_| *n_left > 0) {
        *n_left -= 1;
        found.push(Range { begin, end });
    }
    Ok(())
}

/// Tells whether there can be code: address 0 is what the linker leaves of what it dropped.
pub(crate) const fn is_code(range: &Range) -> bool {
    range.begin < range.end && range.begin != 0
}
