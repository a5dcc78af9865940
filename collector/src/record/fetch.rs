//! The registers of AMD's IBS that tell of a fetch, as a sample carries them in `PERF_SAMPLE_RAW`.
//!
//! Layout: `perf_ibs_handle_irq()` in Linux `arch/x86/events/amd/ibs.c`: 32 bits of capabilities, then the registers
//! `IBS_FETCH_CTL`, `IBS_FETCH_LINAD`, `IBS_FETCH_PHYSAD` and, with bit 9 of these, `IC_IBS_EXTD_CTL`, 64 bits each.
//! Fields: `union ibs_fetch_ctl` in `arch/x86/include/asm/amd/ibs.h`.

use crate::record::cursor::{Cursor, Endian};
use dataspace_proto::memory::{DataSource, Level, PageSize, Tlb};
use dataspace_proto::record::Sample;

/// `IBS_CAPS_ZEN4`: the register tells of the third level, too.
const ZEN4: u32 = 1 << 11;

/// Bits of `IBS_FETCH_CTL`.
const LATENCY_SHIFT: u32 = 32;
const IS_VALID: u64 = 1 << 49;
const IS_COMPLETE: u64 = 1 << 50;
const MISSED_L1: u64 = 1 << 51;
const HAS_PHYSICAL: u64 = 1 << 52;
const PAGE_SHIFT: u32 = 53;
const MISSED_L1_TLB: u64 = 1 << 55;
const MISSED_L2_TLB: u64 = 1 << 56;
const MISSED_L2: u64 = 1 << 58;
const MISSED_L3: u64 = 1 << 61;

/// Page sizes by bits 53 and 54; a fourth value is reserved.
const PAGES: [u64; 3] = [4 << 10, 2 << 20, 1 << 30];

/// Puts what the registers tell into `sample`. Where they are too short, or tell of no fetch, it stays as it is.
pub(super) fn decode(raw: &[u8], endian: Endian, sample: &mut Sample) {
    let mut cursor = Cursor::new(raw, endian);
    let (Some(capabilities), Some(control)) = (cursor.u32(), cursor.u64()) else { return };
    if control & IS_VALID == 0 {
        return;
    }
    sample.latency = u32::from((control >> LATENCY_SHIFT) as u16);
    let has = |bit: u64| control & bit != 0;
    if has(HAS_PHYSICAL)
        && let Some(n_bytes) = PAGES.get((control >> PAGE_SHIFT & 0x3) as usize)
    {
        sample.code_page = PageSize::from_bytes(*n_bytes);
    }
    let (level, missed) = match (has(MISSED_L1), has(IS_COMPLETE) && has(MISSED_L2)) {
        (false, _) => (Some(Level::L1), None),
        // What was given up has come from nowhere.
        (true, false) if !has(IS_COMPLETE) => (None, Some(Level::L1)),
        (true, false) => (Some(Level::L2), None),
        (true, true) if capabilities & ZEN4 == 0 => (None, Some(Level::L2)),
        (true, true) if has(MISSED_L3) => (None, Some(Level::L3)),
        (true, true) => (Some(Level::L3), None),
    };
    let tlb = match (has(MISSED_L1_TLB), has(MISSED_L2_TLB)) {
        (false, _) => Tlb::L1.with(Tlb::HIT),
        (true, false) => Tlb::L2.with(Tlb::HIT),
        (true, true) => Tlb::L2.with(Tlb::MISS),
    };
    sample.data_source = Some(DataSource { level, missed, tlb, ..DataSource::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZEN3_CAPS: u32 = 0x3ff;
    const ZEN4_CAPS: u32 = 0xbff;

    fn told(capabilities: u32, control: u64) -> Sample {
        let mut raw = capabilities.to_le_bytes().to_vec();
        for register in [control, 0x401000, 0x1234_5000, 17] {
            raw.extend(register.to_le_bytes());
        }
        let mut sample = Sample::default();
        decode(&raw, Endian::Little, &mut sample);
        sample
    }

    /// Bits as the manual numbers them: valid and complete, and these.
    fn control(latency: u64, bits: &[u32]) -> u64 {
        bits.iter().fold(latency << 32 | 1 << 49 | 1 << 50, |sum, bit| sum | 1 << bit)
    }

    #[test]
    fn a_fetch_tells_its_latency_its_level_and_its_translation() {
        let check = |sample: &Sample, level, missed, tlb: &str| {
            let source = sample.data_source.unwrap();
            assert_eq!((source.level, source.missed), (level, missed));
            assert_eq!(source.tlb.text().as_deref(), Some(tlb));
        };
        let hit = told(ZEN3_CAPS, control(4, &[]));
        check(&hit, Some(Level::L1), None, "L1 hit");
        assert_eq!((hit.latency, hit.code_page.bytes()), (4, None));
        let from_l2 = told(ZEN3_CAPS, control(19, &[51, 52, 54]));
        check(&from_l2, Some(Level::L2), None, "L1 hit");
        assert_eq!((from_l2.latency, from_l2.code_page.bytes()), (19, Some(1 << 30)));
        let beyond = told(ZEN3_CAPS, control(300, &[51, 58, 55, 52]));
        check(&beyond, None, Some(Level::L2), "L2 hit");
        assert_eq!(beyond.code_page.bytes(), Some(4 << 10));
        check(&told(ZEN4_CAPS, control(60, &[51, 58])), Some(Level::L3), None, "L1 hit");
        let walked = told(ZEN4_CAPS, control(900, &[51, 58, 61, 55, 56]));
        check(&walked, None, Some(Level::L3), "L2 miss");
        let given_up = told(ZEN4_CAPS, control(7, &[51]) & !(1 << 50));
        check(&given_up, None, Some(Level::L1), "L1 hit");
    }

    #[test]
    fn what_is_no_fetch_or_cut_off_tells_nothing() {
        let nothing = told(ZEN4_CAPS, control(900, &[51]) & !(1 << 49));
        assert_eq!((nothing.latency, nothing.data_source), (0, None));
        for n_bytes in 0..12 {
            let mut sample = Sample::default();
            decode(&[0xff; 12][..n_bytes], Endian::Little, &mut sample);
            assert_eq!((sample.latency, sample.data_source), (0, None));
        }
        // Reserved bits of a page's size.
        assert_eq!(told(ZEN4_CAPS, control(1, &[52, 53, 54])).code_page.bytes(), None);
    }
}
