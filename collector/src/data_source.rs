//! `union perf_mem_data_src` to [`DataSource`] (Linux `include/uapi/linux/perf_event.h`).

use dataspace_proto::memory::{Access, DataSource, Level};

// mem_op, 5 bits from 0.
const OP_LOAD: u64 = 0x02;
const OP_STORE: u64 = 0x04;
const OP_PREFETCH: u64 = 0x08;
// mem_lvl, 14 bits from 5.
const LEVEL_SHIFT: u32 = 5;
const LEVEL_MISS: u64 = 0x04;
const LEVEL_L1: u64 = 0x08;
const LEVEL_LFB: u64 = 0x10;
const LEVEL_L2: u64 = 0x20;
const LEVEL_L3: u64 = 0x40;
const LEVEL_LOCAL_RAM: u64 = 0x80;
const LEVEL_REMOTE_RAM: u64 = 0x100 | 0x200;
const LEVEL_REMOTE_CACHE: u64 = 0x400 | 0x800;
const LEVEL_IO: u64 = 0x1000;
const LEVEL_UNCACHED: u64 = 0x2000;
// mem_snoop, 5 bits from 19.
const SNOOP_HITM: u64 = 0x10 << 19;
// mem_lock, 2 bits from 24.
const LOCK_LOCKED: u64 = 0x02 << 24;
// mem_dtlb, 7 bits from 26.
const TLB_SHIFT: u32 = 26;
const TLB_MISS: u64 = 0x04;
const TLB_L1: u64 = 0x08;
// mem_lvl_num, 4 bits from 33; mem_remote, 1 bit at 37.
const LEVEL_NUM_SHIFT: u32 = 33;
const REMOTE: u64 = 1 << 37;

/// Decodes `PERF_SAMPLE_DATA_SRC`.
///
/// The numbered level of kernels from 4.14 on wins over the older bit mask; a value that names no
/// level leaves it unknown.
#[must_use]
pub fn decode(bits: u64) -> DataSource {
    let mask = (bits >> LEVEL_SHIFT) & 0x3fff;
    let tlb = (bits >> TLB_SHIFT) & 0x7f;
    DataSource {
        access: access(bits & 0x1f),
        level: numbered_level((bits >> LEVEL_NUM_SHIFT) & 0xf).or_else(|| masked_level(mask)),
        is_miss: mask & LEVEL_MISS != 0,
        is_remote: bits & REMOTE != 0 || mask & (LEVEL_REMOTE_RAM | LEVEL_REMOTE_CACHE) != 0,
        is_hitm: bits & SNOOP_HITM != 0,
        is_locked: bits & LOCK_LOCKED != 0,
        // "L1 | L2 hit" means one of both; a miss of L1 is a walk, an L2-only hit or a plain miss.
        is_tlb_miss: tlb & TLB_MISS != 0 || (tlb & 0x70 != 0 && tlb & TLB_L1 == 0),
    }
}

const fn access(op: u64) -> Option<Access> {
    match (op & OP_LOAD != 0, op & OP_STORE != 0) {
        (true, true) => Some(Access::LoadStore),
        (true, false) => Some(Access::Load),
        (false, true) => Some(Access::Store),
        (false, false) if op & OP_PREFETCH != 0 => Some(Access::Prefetch),
        (false, false) => None,
    }
}

const fn numbered_level(number: u64) -> Option<Level> {
    Some(match number {
        0x1 => Level::L1,
        0x2 => Level::L2,
        0x3 => Level::L3,
        0x4 => Level::L4,
        0x5 => Level::Lfb, // L2 miss-handling buffer: on its way, as in the LFB
        0x7 => Level::L0,
        0x8 => Level::Uncached,
        0x9 => Level::Cxl,
        0xa => Level::Io,
        0xb => Level::AnyCache,
        0xc => Level::Lfb,
        0xd => Level::Ram,
        0xe => Level::Pmem,
        _ => return None,
    })
}

const fn masked_level(mask: u64) -> Option<Level> {
    Some(if mask & LEVEL_L1 != 0 {
        Level::L1
    } else if mask & LEVEL_LFB != 0 {
        Level::Lfb
    } else if mask & LEVEL_L2 != 0 {
        Level::L2
    } else if mask & LEVEL_L3 != 0 {
        Level::L3
    } else if mask & (LEVEL_LOCAL_RAM | LEVEL_REMOTE_RAM) != 0 {
        Level::Ram
    } else if mask & LEVEL_REMOTE_CACHE != 0 {
        Level::AnyCache
    } else if mask & LEVEL_IO != 0 {
        Level::Io
    } else if mask & LEVEL_UNCACHED != 0 {
        Level::Uncached
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_l1_hit_of_an_old_kernel() {
        // PERF_MEM_S(OP, LOAD) | LVL(HIT|L1) | SNOOP(NONE) | LOCK(NA) | TLB(HIT|L1|L2)
        let bits = 0x02 | (0x02 | 0x08) << 5 | 0x02 << 19 | 0x01 << 24 | (0x02 | 0x08 | 0x10) << 26;
        let source = decode(bits);
        assert_eq!(source.access, Some(Access::Load));
        assert_eq!(source.level, Some(Level::L1));
        assert!(!source.is_miss && !source.is_tlb_miss && !source.is_locked);
    }

    #[test]
    fn perf_mem_na_says_nothing() {
        // PERF_MEM_NA: every field NA.
        let bits = 0x01 | 0x01 << 5 | 0x01 << 19 | 0x01 << 24 | 0x01 << 26 | 0xf << 33;
        assert_eq!(decode(bits), DataSource::default());
        assert_eq!(decode(0), DataSource::default());
    }
}
