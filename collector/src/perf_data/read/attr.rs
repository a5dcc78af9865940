//! `struct perf_event_attr` as recordings of any age and byte order hold it.
//!
//! Source: Linux `include/uapi/linux/perf_event.h`.

use crate::event::meaning::software_kind;
use crate::perf_data::format::attr::{MIN_BYTES, USED_BYTES};
use crate::record::decode::{Cursor, Endian, SampleLayout};
use dataspace_proto::address::Avma;
use dataspace_proto::event::{EventKind, Machine};
use perf_event_open_sys::bindings as abi;

// Bits of the flag word.
const EXCLUDE_KERNEL: u32 = 5;
const INHERIT: u32 = 1;
const FREQ: u32 = 10;
const PRECISE_IP: u32 = 15;
const SAMPLE_ID_ALL: u32 = 18;

/// Part of an event's attributes that decides how its records are read and what they mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attr {
    /// `PERF_TYPE_*`, or the number of a PMU.
    pub(super) kind: u32,
    pub(super) config: u64,
    /// Events a sample, or samples a second where `is_freq`.
    pub(super) sample_period: u64,
    pub(super) sample_type: u64,
    read_format: u64,
    flags: u64,
    pub(super) breakpoint_type: u32,
    /// `bp_addr` of a breakpoint.
    pub(super) config1: u64,
    /// `bp_len` of a breakpoint.
    pub(super) config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_regs_intr: u64,
}

impl Attr {
    /// Reads the attributes at the front of `bytes`, and tells how many bytes they take.
    ///
    /// Fields that the recorder did not have yet are 0, which is what they mean; fields that this
    /// reader does not know are stepped over.
    pub(super) fn parse(bytes: &[u8], endian: Endian) -> Option<(Self, usize)> {
        let mut cursor = Cursor::new(bytes, endian);
        cursor.u32()?;
        let len = match usize::try_from(cursor.u32()?).ok()? {
            0 => MIN_BYTES,
            len => len,
        };
        if len < MIN_BYTES {
            return None;
        }
        let present = bytes.get(..len)?;
        let mut padded = [0; USED_BYTES];
        for (to, from) in padded.iter_mut().zip(present) {
            *to = *from;
        }
        Some((Self::fields(&padded, endian)?, len))
    }

    fn fields(bytes: &[u8; USED_BYTES], endian: Endian) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, endian);
        let mut attr = Self { kind: cursor.u32()?, ..Self::default() };
        cursor.u32()?;
        attr.config = cursor.u64()?;
        attr.sample_period = cursor.u64()?;
        attr.sample_type = cursor.u64()?;
        attr.read_format = cursor.u64()?;
        attr.flags = flag_word(*cursor.take(8)?.first_chunk()?, endian);
        cursor.u32()?; // wakeup_events
        attr.breakpoint_type = cursor.u32()?;
        attr.config1 = cursor.u64()?;
        attr.config2 = cursor.u64()?;
        attr.branch_sample_type = cursor.u64()?;
        attr.sample_regs_user = cursor.u64()?;
        cursor.u64()?; // sample_stack_user, clockid
        attr.sample_regs_intr = cursor.u64()?;
        Some(attr)
    }

    const fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 != 0
    }

    pub(super) const fn is_freq(&self) -> bool {
        self.flag(FREQ)
    }

    pub(super) const fn includes_kernel(&self) -> bool {
        !self.flag(EXCLUDE_KERNEL)
    }

    pub(super) const fn precise_ip(&self) -> u64 {
        self.flags >> PRECISE_IP & 3
    }

    /// Tells whether threads that are born later count too, each for itself.
    pub(super) const fn inherits(&self) -> bool {
        self.flag(INHERIT)
    }

    pub(super) const fn sample_id_all(&self) -> bool {
        self.flag(SAMPLE_ID_ALL)
    }

    /// Tells whether samples carry any of these `PERF_SAMPLE_*`.
    pub(super) fn samples(&self, fields: abi::perf_event_sample_format) -> bool {
        self.sample_type & u64::from(fields) != 0
    }

    /// Tells whether the kernel counts this event's lost samples apart (Linux 6.0 and later).
    pub(super) fn counts_lost_samples(&self) -> bool {
        self.read_format & u64::from(abi::PERF_FORMAT_LOST) != 0
    }

    /// Tells whether it only carries side-band records, and never samples.
    pub(super) fn is_dummy(&self) -> bool {
        self.kind == abi::PERF_TYPE_SOFTWARE && self.config == u64::from(abi::PERF_COUNT_SW_DUMMY)
    }

    /// Tells whether it is meant to give samples: a member of a group that is only read is not.
    pub(super) fn is_sampling(&self) -> bool {
        self.sample_period != 0 && !self.is_dummy()
    }

    /// The kind of an event that its type tells alone; `None` for one of a PMU.
    pub(super) fn kind_of_type(&self) -> Option<EventKind> {
        match self.kind {
            abi::PERF_TYPE_SOFTWARE => Some(software_kind(self.config)),
            abi::PERF_TYPE_TRACEPOINT => Some(EventKind::Tracepoint),
            abi::PERF_TYPE_BREAKPOINT => Some(EventKind::Breakpoint {
                address: Avma(self.config1),
                len_bytes: u8::try_from(self.config2).unwrap_or(u8::MAX),
            }),
            _ => None,
        }
    }

    /// Layout of its records.
    pub(super) const fn layout(&self, endian: Endian, machine: Machine) -> SampleLayout {
        SampleLayout {
            sample_type: self.sample_type,
            read_format: self.read_format,
            branch_sample_type: self.branch_sample_type,
            user_registers: self.sample_regs_user,
            interrupt_registers: self.sample_regs_intr,
            is_precise: self.precise_ip() != 0,
            has_fetch: false,
            sample_id_all: self.sample_id_all(),
            endian,
            machine,
        }
    }
}

/// The bit-field word with its first field at bit 0.
///
/// A big-endian compiler allots bit-fields from the other end of each byte. Like `perf` itself
/// (`swap_bitfield()` in `tools/perf/util/session.c`) this leaves the two bits of `precise_ip`
/// crossed in recordings of big-endian machines, none of which has precise events.
fn flag_word(bytes: [u8; 8], endian: Endian) -> u64 {
    match endian {
        Endian::Little => u64::from_le_bytes(bytes),
        Endian::Big => u64::from_le_bytes(bytes.map(u8::reverse_bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr_bytes(len: u32, total: usize) -> Vec<u8> {
        let mut bytes = vec![0; total];
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        bytes[40..48].copy_from_slice(&(1u64 << SAMPLE_ID_ALL | 2 << PRECISE_IP).to_le_bytes());
        bytes
    }

    #[test]
    fn every_length_from_the_first_version_on_is_read() {
        for len in [64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 4096] {
            let (attr, n) = Attr::parse(&attr_bytes(len, 4096), Endian::Little).unwrap();
            assert_eq!(n, len as usize);
            assert_eq!(attr.precise_ip(), 2);
            assert!(attr.sample_id_all());
        }
        assert_eq!(Attr::parse(&attr_bytes(0, 64), Endian::Little).unwrap().1, 64);
        assert_eq!(Attr::parse(&attr_bytes(63, 64), Endian::Little), None);
        assert_eq!(Attr::parse(&attr_bytes(72, 64), Endian::Little), None);
    }

    #[test]
    fn flags_of_a_big_endian_recording_stand_in_reversed_bits() {
        let little = [0x03, 0x13, 0x17, 0, 0, 0, 0, 0];
        let big = [0xc0, 0xc8, 0xe8, 0, 0, 0, 0, 0];
        assert_eq!(flag_word(big, Endian::Big), flag_word(little, Endian::Little));
    }
}
