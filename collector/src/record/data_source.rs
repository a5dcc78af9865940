//! `union perf_mem_data_src` to [`DataSource`] (Linux `include/uapi/linux/perf_event.h`).

use dataspace_proto::memory::{Access, Blocked, DataSource, Level, Region, Snoop, Tlb};

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
// mem_snoop, 5 bits from 19; mem_snoopx, 2 bits from 38.
const SNOOP_SHIFT: u32 = 19;
const SNOOP_EXTRA_SHIFT: u32 = 38;
// mem_lock, 2 bits from 24.
const LOCK_SHIFT: u32 = 24;
const LOCK_NA: u64 = 0x01;
const LOCK_LOCKED: u64 = 0x02;
// mem_dtlb, 7 bits from 26.
const TLB_SHIFT: u32 = 26;
// mem_lvl_num, 4 bits from 33; mem_remote, 1 bit at 37.
const LEVEL_NUM_SHIFT: u32 = 33;
const REMOTE: u64 = 1 << 37;
// mem_blk, 3 bits from 40; mem_hops, 3 bits from 43; mem_region, 5 bits from 46.
const BLOCKED_SHIFT: u32 = 40;
const HOPS_SHIFT: u32 = 43;
const REGION_SHIFT: u32 = 46;

/// Decodes `PERF_SAMPLE_DATA_SRC`.
///
/// The numbered level of kernels from 4.14 on wins over the older bit mask; a value that names no
/// level leaves it unknown. A level that was missed is not where the data came from.
#[must_use]
pub fn decode(bits: u64) -> DataSource {
    let mask = (bits >> LEVEL_SHIFT) & 0x3fff;
    let level = numbered_level((bits >> LEVEL_NUM_SHIFT) & 0xf).or_else(|| masked_level(mask));
    let is_miss = mask & LEVEL_MISS != 0;
    let hops = hops((bits >> HOPS_SHIFT) & 0x7);
    DataSource {
        access: access(bits & 0x1f),
        level: if is_miss { None } else { level },
        missed: if is_miss { level } else { None },
        snoop: snoop((bits >> SNOOP_SHIFT) & 0x1f, (bits >> SNOOP_EXTRA_SHIFT) & 0x3),
        tlb: tlb((bits >> TLB_SHIFT) & 0x7f),
        blocked: blocked((bits >> BLOCKED_SHIFT) & 0x7),
        locked: locked((bits >> LOCK_SHIFT) & 0x3, bits),
        is_remote: bits & REMOTE != 0 || mask & (LEVEL_REMOTE_RAM | LEVEL_REMOTE_CACHE) != 0,
        hops,
        region: region((bits >> REGION_SHIFT) & 0x1f),
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
        0x5 => Level::L2Mhb,
        0x6 => Level::MemorySide,
        0x7 => Level::L0,
        0x8 => Level::Uncached,
        0x9 => Level::Cxl,
        0xa => Level::Io,
        0xb => Level::AnyCache,
        0xc => Level::Lfb,
        0xd => Level::Ram,
        0xe => Level::Pmem,
        _ => return None, // 0 is of kernels before 4.14, 0xf is "not available"
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

/// Of `bits`, the `flags` whose bit is set: the kernel's bit 0 is "not available" everywhere.
macro_rules! chosen {
    ($type:ident, $bits:expr, $($bit:literal => $flag:ident),*) => {{
        let mut chosen = $type::default();
        $(if $bits & $bit != 0 { chosen = chosen.with($type::$flag); })*
        chosen
    }};
}

fn snoop(bits: u64, extra: u64) -> Snoop {
    chosen!(Snoop, bits, 0x02 => NONE, 0x04 => HIT, 0x08 => MISS, 0x10 => HITM)
        .with(chosen!(Snoop, extra, 0x01 => FORWARD, 0x02 => PEER))
}

fn tlb(bits: u64) -> Tlb {
    chosen!(Tlb, bits, 0x02 => HIT, 0x04 => MISS, 0x08 => L1, 0x10 => L2, 0x20 => WALKER, 0x40 => FAULT)
}

fn blocked(bits: u64) -> Blocked {
    chosen!(Blocked, bits, 0x02 => DATA, 0x04 => ADDRESS)
}

/// Processors set the bit of a locked access, and nothing for others; where they cannot tell, the
/// kernel says so. A value of zero is no data source at all.
const fn locked(lock: u64, bits: u64) -> Option<bool> {
    if lock & LOCK_NA != 0 || bits == 0 { None } else { Some(lock & LOCK_LOCKED != 0) }
}

/// `PERF_MEM_HOPS_0` is 1.
const fn hops(field: u64) -> Option<u8> {
    match field {
        1..=4 => Some(field as u8 - 1),
        _ => None,
    }
}

const fn region(field: u64) -> Option<Region> {
    Some(match field {
        0x2 => Region::LocalShared,
        0x3 => Region::LocalUnshared,
        0x4 => Region::OtherIo,
        0x5 => Region::OtherShared,
        0x6 => Region::OtherUnshared,
        0x7 => Region::Mmio,
        0x8 => Region::Memory0,
        0x9 => Region::Memory1,
        0xa => Region::Memory2,
        0xb => Region::Memory3,
        0xc => Region::Memory4,
        0xd => Region::Memory5,
        0xe => Region::Memory6,
        0xf => Region::Memory7,
        _ => return None,
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
        assert_eq!((source.missed, source.locked, source.snoop), (None, None, Snoop::NONE));
        assert!(!source.tlb.is_first_level_miss());
    }

    #[test]
    fn perf_mem_na_says_nothing() {
        // PERF_MEM_NA: every field NA.
        let bits = 0x01 | 0x01 << 5 | 0x01 << 19 | 0x01 << 24 | 0x01 << 26 | 0xf << 33;
        assert_eq!(decode(bits), DataSource::default());
        assert_eq!(decode(0), DataSource::default());
        // As perf has it since blk and hops came: BLK(NA) beside them.
        assert_eq!(decode(bits | 0x01 << 40), DataSource::default());
    }

    #[test]
    fn every_numbered_level_has_its_name() {
        // PERF_MEM_LVLNUM_*
        for (number, name) in [
            (0x1, Some("L1")),
            (0x2, Some("L2")),
            (0x3, Some("L3")),
            (0x4, Some("L4")),
            (0x5, Some("L2_MHB")),
            (0x6, Some("MSC")),
            (0x7, Some("L0")),
            (0x8, Some("UNC")),
            (0x9, Some("CXL")),
            (0xa, Some("IO")),
            (0xb, Some("cache")),
            (0xc, Some("LFB")),
            (0xd, Some("RAM")),
            (0xe, Some("PMEM")),
            (0xf, None),
        ] {
            // PERF_MEM_S(LVL, HIT) beside it, as kernels do.
            let source = decode(0x02 | 0x02 << 5 | number << 33);
            assert_eq!(source.level.map(Level::name), name, "{number:#x}");
        }
    }

    #[test]
    fn a_level_that_was_missed_is_not_where_the_data_came_from() {
        // Haswell: a store that misses L1, LVL(MISS|L1).
        let store = decode(0x04 | (0x04 | 0x08) << 5);
        assert_eq!((store.level, store.missed), (None, Some(Level::L1)));
        // Skylake, source 0: LVL(MISS|L3), LVLNUM(L3), SNOOP(NA).
        let load = decode(0x02 | (0x04 | 0x40) << 5 | 0x3 << 33 | 0x01 << 19);
        assert_eq!((load.level, load.missed), (None, Some(Level::L3)));
    }

    #[test]
    fn what_is_far_says_how_far() {
        // Remote cache at one hop of an old kernel, modified: LVL(HIT|REM_CCE1), SNOOP(HITM).
        let old = decode(0x02 | (0x02 | 0x400) << 5 | 0x10 << 19);
        assert!(old.is_remote && old.snoop.has(Snoop::HITM));
        assert_eq!((old.level, old.hops), (Some(Level::AnyCache), None));
        // Zen: LVLNUM(ANY_CACHE), REMOTE, HOPS(1), SNOOPX(PEER).
        let new = decode(0x02 | 0xb << 33 | 1 << 37 | 0x2 << 43 | 0x02 << 38);
        assert_eq!((new.is_remote, new.hops, new.snoop), (true, Some(1), Snoop::PEER));
        // HOPS(0) is another core of this node; REMOTE is set for it too.
        assert_eq!(decode(0x02 | 0xb << 33 | 1 << 37 | 0x1 << 43).hops, Some(0));
        assert_eq!(decode(0x02 | 0x7 << 43).hops, None, "5 to 7 are not given out");
    }

    #[test]
    fn lock_block_translation_and_region_are_told_apart() {
        // LOCK(LOCKED), BLK(DATA|ADDR), TLB(MISS|L2), SNOOPX(FWD).
        let bits = 0x02 | 0x02 << 24 | (0x02 | 0x04) << 40 | (0x04 | 0x10) << 26 | 0x01 << 38;
        let source = decode(bits);
        assert_eq!(source.locked, Some(true));
        assert_eq!(source.blocked, Blocked::DATA.with(Blocked::ADDRESS));
        assert!(source.tlb.is_first_level_miss() && source.snoop.has(Snoop::FORWARD));
        assert_eq!(decode(0x02).locked, Some(false), "the bit is there, and is not set");
        // TLB(HIT|WK), TLB(OS).
        assert_eq!(decode(0x22 << 26).tlb, Tlb::WALKER.with(Tlb::HIT));
        assert_eq!(decode(0x40 << 26).tlb, Tlb::FAULT);
        // PERF_MEM_REGION_*.
        for (field, region) in [
            (0x0, None),
            (0x1, None),
            (0x2, Some(Region::LocalShared)),
            (0x3, Some(Region::LocalUnshared)),
            (0x4, Some(Region::OtherIo)),
            (0x5, Some(Region::OtherShared)),
            (0x6, Some(Region::OtherUnshared)),
            (0x7, Some(Region::Mmio)),
            (0x8, Some(Region::Memory0)),
            (0xf, Some(Region::Memory7)),
            (0x10, None),
        ] {
            assert_eq!(decode(0x02 | field << 46).region, region, "{field:#x}");
        }
    }
}
