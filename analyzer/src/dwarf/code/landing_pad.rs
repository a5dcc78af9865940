//! Landing pads: where the unwinder resumes in a function, by its language-specific data area.
//!
//! The format is that of gcc's `.gcc_except_table`, which clang and rustc share (Itanium C++ ABI,
//! exception handling tables; LSB Core 10.6 for the encoding of pointers).

use crate::dwarf::unit::reader::Reader;
use crate::limit;
use gimli::{DwEhPe, Reader as _};

/// The landing pads of the call-site table in `area`, which begins at `address` and describes the
/// function at `function`; `None` where it is damaged.
#[must_use]
pub(crate) fn landing_pads(area: Reader, address: u64, function: u64) -> Option<Vec<u64>> {
    let mut area = Area { rest: area.clone(), whole: area, address };
    let base = match DwEhPe(area.rest.read_u8().ok()?) {
        gimli::DW_EH_PE_omit => function,
        encoding => area.pointer(encoding)?,
    };
    // Types that are caught stand after the table of call sites.
    if DwEhPe(area.rest.read_u8().ok()?) != gimli::DW_EH_PE_omit {
        area.rest.read_uleb128().ok()?;
    }
    let encoding = DwEhPe(area.rest.read_u8().ok()?);
    let len_bytes = usize::try_from(area.rest.read_uleb128().ok()?).ok()?;
    area.rest.truncate(len_bytes).ok()?;
    let mut found = Vec::new();
    while !area.rest.is_empty() {
        if found.len() >= limit::MAX_LANDING_PADS {
            return None;
        }
        let (_start, _len) = (area.number(encoding)?, area.number(encoding)?);
        let landing_pad = area.number(encoding)?;
        area.rest.read_uleb128().ok()?; // What to do there.
        if landing_pad != 0 {
            found.push(base.wrapping_add(landing_pad));
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// The bytes of the table at most, as far as its head tells: `None` for a damaged head.
#[must_use]
pub(crate) fn n_bytes(head: Reader) -> Option<u64> {
    let mut area = Area { rest: head.clone(), whole: head, address: 0 };
    let encoding = DwEhPe(area.rest.read_u8().ok()?);
    if encoding != gimli::DW_EH_PE_omit {
        area.pointer(encoding)?;
    }
    if DwEhPe(area.rest.read_u8().ok()?) != gimli::DW_EH_PE_omit {
        area.rest.read_uleb128().ok()?;
    }
    area.rest.read_u8().ok()?;
    let len_bytes = area.rest.read_uleb128().ok()?;
    area.offset().checked_add(len_bytes)
}

struct Area {
    rest: Reader,
    whole: Reader,
    address: u64,
}

impl Area {
    fn offset(&self) -> u64 {
        self.rest.offset_from(&self.whole) as u64
    }

    /// A number by the format half of `encoding`.
    fn number(&mut self, encoding: DwEhPe) -> Option<u64> {
        let rest = &mut self.rest;
        match encoding.format() {
            gimli::DW_EH_PE_uleb128 => rest.read_uleb128(),
            gimli::DW_EH_PE_sleb128 => rest.read_sleb128().map(i64::cast_unsigned),
            gimli::DW_EH_PE_udata2 => rest.read_u16().map(u64::from),
            gimli::DW_EH_PE_udata4 => rest.read_u32().map(u64::from),
            gimli::DW_EH_PE_sdata2 => rest.read_i16().map(|n| i64::from(n).cast_unsigned()),
            gimli::DW_EH_PE_sdata4 => rest.read_i32().map(|n| i64::from(n).cast_unsigned()),
            gimli::DW_EH_PE_absptr | gimli::DW_EH_PE_udata8 | gimli::DW_EH_PE_sdata8 => {
                rest.read_u64()
            }
            _ => return None,
        }
        .ok()
    }

    fn pointer(&mut self, encoding: DwEhPe) -> Option<u64> {
        let here = self.address.wrapping_add(self.offset());
        let number = self.number(encoding)?;
        match encoding.application() {
            gimli::DW_EH_PE_absptr => Some(number),
            gimli::DW_EH_PE_pcrel => Some(here.wrapping_add(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Vec<u64>> {
        landing_pads(Reader::of_bytes(bytes.into()), 0x4000, 0x1000)
    }

    #[test]
    fn gcc_counts_from_the_function() {
        // No @LPStart, no types, uleb128: (0, 5, no landing pad), (5, 5, 0x20, action 1).
        let table = [0xff, 0xff, 0x01, 8, 0, 5, 0, 0, 5, 5, 0x20, 1];
        assert_eq!(read(&table), Some(vec![0x1020]));
        let head = Reader::of_bytes(table[..4].into());
        assert_eq!(n_bytes(head), Some(12));
    }

    #[test]
    fn clang_may_give_the_base_apart() {
        // @LPStart is pcrel|sdata4: 0x4001 + 0x1000; types end 9 bytes on; udata4 call sites.
        let head = [0x1b, 0, 0x10, 0, 0, 0x9b, 9, 0x03, 13];
        let site = [0, 0, 0, 0, 4, 0, 0, 0, 0x30, 0, 0, 0, 0];
        assert_eq!(read(&[&head[..], &site].concat()), Some(vec![0x5031]));
    }

    #[test]
    fn a_damaged_table_is_not_half_believed() {
        let whole = [0xff, 0xff, 0x01, 8, 0, 5, 0, 0, 5, 5, 0x20, 1];
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), None, "cut at {len}");
        }
        assert_eq!(read(&[0xff, 0xff, 0x55, 1, 0]), None, "an encoding that there is not");
    }
}
