//! The bytes of a `PERF_RECORD_SAMPLE` to a [`Sample`].
//!
//! The field order is that of `perf_output_sample()` in Linux `kernel/events/core.c`, written down
//! in `include/uapi/linux/perf_event.h` above `PERF_RECORD_SAMPLE`. Every field is stepped over
//! exactly, known or not wanted: a field that is skipped by the wrong width shifts all that follow
//! without an error.

pub use crate::record::cursor::{Cursor, Endian, NATIVE};
use crate::record::{data_source, fetch};
use dataspace_proto::address::{Avma, PhysicalAddress};
use dataspace_proto::event::Machine;
use dataspace_proto::memory::PageSize;
use dataspace_proto::record::{CpuMode, Sample};
use dataspace_proto::register::{PERF_MASK, Register, RegisterAbi, Registers};
use perf_event_open_sys::bindings as abi;
use std::num::NonZeroU64;
use thiserror::Error;

/// Layout of one event's samples: the part of its `perf_event_attr` that decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    /// `PERF_SAMPLE_*`.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`, for `PERF_SAMPLE_READ`.
    pub read_format: u64,
    /// `PERF_SAMPLE_BRANCH_*`, for `PERF_SAMPLE_BRANCH_STACK`.
    pub branch_sample_type: u64,
    /// Mask of `PERF_SAMPLE_REGS_USER`.
    pub user_registers: u64,
    /// Mask of `PERF_SAMPLE_REGS_INTR`.
    pub interrupt_registers: u64,
    /// Hardware tells the IP (`precise_ip` is not 0), perhaps with registers of its own.
    pub is_precise: bool,
    /// `PERF_SAMPLE_RAW` holds the registers of AMD's IBS that tell of a fetch.
    pub has_fetch: bool,
    /// Other records end with ids and the time.
    pub sample_id_all: bool,
    /// Byte order.
    pub endian: Endian,
    /// The instruction set: whose registers these are.
    pub machine: Machine,
}

/// A sample's bytes do not fit its event's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Undecodable {
    /// The record ends inside a field.
    #[error("the record ends inside {field}")]
    Short {
        /// The field's `PERF_SAMPLE_*` name.
        field: &'static str,
    },
    /// `sample_type` has a bit that this decoder does not know, so later fields cannot be placed.
    #[error("sample_type has unknown bits {bits:#x}")]
    UnknownField {
        /// The bits.
        bits: u64,
    },
}

/// A sample and what of it is not for the analyzer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoded {
    /// The sample; its event is left 0 and its period 1 where none was sampled.
    pub sample: Sample,
    /// `PERF_SAMPLE_PERIOD`.
    pub period: Option<u64>,
}

const KNOWN_SAMPLE_TYPE: u64 = (abi::PERF_SAMPLE_MAX as u64) - 1;

const WEIGHTS: u64 = (abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT) as u64;

/// Decodes the payload (all after the 8-byte header) of one sample record.
///
/// `misc` is the header's. Fields we have no use for are stepped over.
///
/// # Errors
/// [`Undecodable`], when the bytes do not fit `layout`.
pub fn sample(layout: &SampleLayout, misc: u16, payload: &[u8]) -> Result<Decoded, Undecodable> {
    let mut sample = Sample::default();
    let period = sample_into(layout, misc, payload, &mut sample)?;
    Ok(Decoded { sample, period })
}

/// The same into a sample that is there already, whatever it holds; after an error that is anything. Gives
/// `PERF_SAMPLE_PERIOD`.
///
/// # Errors
/// [`Undecodable`], when the bytes do not fit `layout`.
pub fn sample_into(
    layout: &SampleLayout,
    misc: u16,
    payload: &[u8],
    sample: &mut Sample,
) -> Result<Option<u64>, Undecodable> {
    if layout.sample_type & !KNOWN_SAMPLE_TYPE != 0 {
        return Err(Undecodable::UnknownField { bits: layout.sample_type & !KNOWN_SAMPLE_TYPE });
    }
    let mut cursor = Cursor::new(payload, layout.endian);
    sample.clear();
    sample.mode = cpu_mode(misc);
    sample.is_exact_ip = u32::from(misc) & abi::PERF_RECORD_MISC_EXACT_IP != 0;
    let period = fixed_head(layout, &mut cursor, sample)?;
    sample.period = period.unwrap_or(1);
    variable_part(layout, &mut cursor, sample)?;
    tail(layout, &mut cursor, sample)?;
    Ok(period)
}

/// The privilege level in a record header's `misc`.
#[must_use]
pub fn cpu_mode(misc: u16) -> CpuMode {
    match u32::from(misc) & abi::PERF_RECORD_MISC_CPUMODE_MASK {
        abi::PERF_RECORD_MISC_USER => CpuMode::User,
        abi::PERF_RECORD_MISC_KERNEL => CpuMode::Kernel,
        abi::PERF_RECORD_MISC_GUEST_KERNEL | abi::PERF_RECORD_MISC_GUEST_USER => CpuMode::Guest,
        abi::PERF_RECORD_MISC_HYPERVISOR => CpuMode::Other,
        _ => CpuMode::Unknown,
    }
}

macro_rules! field {
    ($layout:expr, $flag:ident) => {
        $layout.sample_type & abi::$flag as u64 != 0
    };
}

macro_rules! read {
    ($cursor:expr, $method:ident, $field:literal) => {
        $cursor.$method().ok_or(Undecodable::Short { field: $field })?
    };
}

/// `PERF_SAMPLE_IDENTIFIER` to `PERF_SAMPLE_PERIOD`.
fn fixed_head(
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    sample: &mut Sample,
) -> Result<Option<u64>, Undecodable> {
    if field!(layout, PERF_SAMPLE_IDENTIFIER) {
        cursor.skip(8, "IDENTIFIER")?;
    }
    if field!(layout, PERF_SAMPLE_IP) {
        sample.ip = Avma(read!(cursor, u64, "IP"));
    }
    (sample.pid, sample.tid) = (-1, -1);
    if field!(layout, PERF_SAMPLE_TID) {
        sample.pid = read!(cursor, task_id, "TID");
        sample.tid = read!(cursor, task_id, "TID");
    }
    if field!(layout, PERF_SAMPLE_TIME) {
        sample.time_ns = read!(cursor, u64, "TIME");
    }
    if field!(layout, PERF_SAMPLE_ADDR) {
        let addr = read!(cursor, u64, "ADDR");
        sample.addr = (addr != 0).then_some(Avma(addr));
    }
    if field!(layout, PERF_SAMPLE_ID) {
        cursor.skip(8, "ID")?;
    }
    if field!(layout, PERF_SAMPLE_STREAM_ID) {
        cursor.skip(8, "STREAM_ID")?;
    }
    if field!(layout, PERF_SAMPLE_CPU) {
        sample.cpu = Some(read!(cursor, u32, "CPU"));
        cursor.skip(4, "CPU")?;
    }
    Ok(if field!(layout, PERF_SAMPLE_PERIOD) { Some(read!(cursor, u64, "PERIOD")) } else { None })
}

/// `PERF_SAMPLE_READ` to `PERF_SAMPLE_STACK_USER`: fields whose length is in the bytes.
fn variable_part(
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    sample: &mut Sample,
) -> Result<(), Undecodable> {
    if field!(layout, PERF_SAMPLE_READ) {
        skip_read_format(layout.read_format, cursor)?;
    }
    if field!(layout, PERF_SAMPLE_CALLCHAIN) {
        let n = read!(cursor, u64, "CALLCHAIN");
        cursor.skip(n.saturating_mul(8), "CALLCHAIN")?;
    }
    if field!(layout, PERF_SAMPLE_RAW) {
        let n_bytes = read!(cursor, u32, "RAW");
        let bytes = cursor.take(u64::from(n_bytes)).ok_or(Undecodable::Short { field: "RAW" })?;
        if layout.has_fetch {
            fetch::decode(bytes, layout.endian, sample);
        }
    }
    if field!(layout, PERF_SAMPLE_BRANCH_STACK) {
        skip_branch_stack(layout.branch_sample_type, cursor)?;
    }
    if field!(layout, PERF_SAMPLE_REGS_USER) {
        // Where user code was interrupted both sets are the same (`perf_sample_regs_user()` in Linux
        // `kernel/events/core.c`), unless the hardware recorded its own with the IP: those are in the
        // other only.
        let has_other = field!(layout, PERF_SAMPLE_REGS_INTR);
        let is_fresh = !has_other && !layout.is_precise && !sample.is_exact_ip;
        let into = match sample.is_user() {
            true => is_fresh.then_some(&mut sample.registers),
            false => Some(&mut sample.user_registers),
        };
        registers(layout.user_registers, layout, cursor, "REGS_USER", into)?;
    }
    if field!(layout, PERF_SAMPLE_STACK_USER) {
        stack(layout, cursor, sample)?;
    }
    Ok(())
}

/// `PERF_SAMPLE_STACK_USER`: the bytes that were asked for, and how many of them could be read.
fn stack(
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    sample: &mut Sample,
) -> Result<(), Undecodable> {
    const FIELD: &str = "STACK_USER";
    let n_bytes = read!(cursor, u64, "STACK_USER");
    if n_bytes == 0 {
        return Ok(());
    }
    let bytes = cursor.take(n_bytes).ok_or(Undecodable::Short { field: FIELD })?;
    let n_read = usize::try_from(read!(cursor, u64, "STACK_USER")).unwrap_or(usize::MAX);
    if layout.machine == Machine::X86_64 && layout.endian == Endian::Little {
        sample.stack.set(&bytes[..bytes.len().min(n_read)]);
    }
    Ok(())
}

/// `PERF_SAMPLE_WEIGHT` to the end.
fn tail(
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    sample: &mut Sample,
) -> Result<(), Undecodable> {
    // Of AMD's fetches the registers tell, and these fields are empty.
    if layout.has_fetch && layout.sample_type & WEIGHTS != 0 {
        cursor.skip(8, "WEIGHT")?;
    } else if field!(layout, PERF_SAMPLE_WEIGHT) {
        let weight = read!(cursor, u64, "WEIGHT");
        sample.latency = u32::try_from(weight).unwrap_or(u32::MAX);
    } else if field!(layout, PERF_SAMPLE_WEIGHT_STRUCT) {
        weights(read!(cursor, u64, "WEIGHT_STRUCT"), layout.machine, sample);
    }
    if field!(layout, PERF_SAMPLE_DATA_SRC) {
        let told = data_source::decode(read!(cursor, u64, "DATA_SRC"));
        if !layout.has_fetch {
            sample.data_source = Some(told);
        }
    }
    if field!(layout, PERF_SAMPLE_TRANSACTION) {
        cursor.skip(8, "TRANSACTION")?;
    }
    if field!(layout, PERF_SAMPLE_REGS_INTR) {
        let into = Some(&mut sample.registers);
        registers(layout.interrupt_registers, layout, cursor, "REGS_INTR", into)?;
    }
    addresses_and_pages(layout, cursor, sample)?;
    if field!(layout, PERF_SAMPLE_AUX) {
        let n_bytes = read!(cursor, u64, "AUX");
        cursor.skip(n_bytes, "AUX")?;
    }
    Ok(())
}

/// `union perf_sample_weight`, whose halves stand where a `u64` has them in either byte order.
///
/// On x86-64 `var1_dw` is the latency of the data: Intel's cache latency (of the whole access up to
/// Ice Lake), AMD's DcMissLat; `var2_w` that of the instruction: Intel's, AMD's TagToRetCtr; `var3_w`
/// Intel's retire latency. Where AMD tells none, of what hits L1 and of stores, all are 0. POWER
/// has its pipeline's stages there.
const fn weights(weight: u64, machine: Machine, sample: &mut Sample) {
    sample.latency = weight as u32;
    if matches!(machine, Machine::X86_64) {
        sample.instruction_latency = (weight >> 32) as u16;
        sample.retire_latency = (weight >> 48) as u16;
    }
}

/// `PERF_SAMPLE_PHYS_ADDR` to `PERF_SAMPLE_CODE_PAGE_SIZE`; 0 is what the kernel cannot tell.
fn addresses_and_pages(
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    sample: &mut Sample,
) -> Result<(), Undecodable> {
    if field!(layout, PERF_SAMPLE_PHYS_ADDR) {
        let address = read!(cursor, u64, "PHYS_ADDR");
        sample.physical_addr = NonZeroU64::new(address).map(PhysicalAddress);
    }
    if field!(layout, PERF_SAMPLE_CGROUP) {
        sample.cgroup = NonZeroU64::new(read!(cursor, u64, "CGROUP"));
    }
    if field!(layout, PERF_SAMPLE_DATA_PAGE_SIZE) {
        sample.data_page = PageSize::from_bytes(read!(cursor, u64, "DATA_PAGE_SIZE"));
    }
    if field!(layout, PERF_SAMPLE_CODE_PAGE_SIZE) {
        sample.code_page = PageSize::from_bytes(read!(cursor, u64, "CODE_PAGE_SIZE"));
    }
    Ok(())
}

fn skip_read_format(read_format: u64, cursor: &mut Cursor<'_>) -> Result<(), Undecodable> {
    let has = |flag: u32| u64::from(read_format & u64::from(flag) != 0);
    let times = has(abi::PERF_FORMAT_TOTAL_TIME_ENABLED) + has(abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
    let per_value = 1 + has(abi::PERF_FORMAT_ID) + has(abi::PERF_FORMAT_LOST);
    let n_words = if has(abi::PERF_FORMAT_GROUP) == 1 {
        let n_values = read!(cursor, u64, "READ");
        n_values.saturating_mul(per_value).saturating_add(times)
    } else {
        per_value + times
    };
    cursor.skip(n_words.saturating_mul(8), "READ")
}

fn skip_branch_stack(branch_type: u64, cursor: &mut Cursor<'_>) -> Result<(), Undecodable> {
    let n = read!(cursor, u64, "BRANCH_STACK");
    if branch_type & u64::from(abi::PERF_SAMPLE_BRANCH_HW_INDEX) != 0 {
        cursor.skip(8, "BRANCH_STACK")?;
    }
    // struct perf_branch_entry is 24 bytes.
    cursor.skip(n.saturating_mul(24), "BRANCH_STACK")?;
    if branch_type & u64::from(abi::PERF_SAMPLE_BRANCH_COUNTERS) != 0 {
        cursor.skip(n.saturating_mul(8), "BRANCH_STACK")?;
    }
    Ok(())
}

/// A set of registers, decoded if there is something to put them `into`, else stepped over.
fn registers(
    mask: u64,
    layout: &SampleLayout,
    cursor: &mut Cursor<'_>,
    field: &'static str,
    into: Option<&mut Registers>,
) -> Result<(), Undecodable> {
    const SHORT: fn(&'static str) -> Undecodable = |field| Undecodable::Short { field };
    let register_abi = cursor.u64().ok_or_else(|| SHORT(field))?;
    if register_abi == u64::from(abi::PERF_SAMPLE_REGS_ABI_NONE) {
        return Ok(());
    }
    let n_bytes = u64::from(mask.count_ones()) * 8;
    let bytes = cursor.take(n_bytes).ok_or_else(|| SHORT(field))?;
    let Some(registers) = into else { return Ok(()) };
    let is_32_bit = register_abi == u64::from(abi::PERF_SAMPLE_REGS_ABI_32);
    let is_ours = layout.machine == Machine::X86_64;
    if is_ours && mask == PERF_MASK && layout.endian == Endian::Little {
        let (words, _) = bytes.as_chunks();
        registers.set_all(words.iter().map(|word| u64::from_le_bytes(*word)));
    } else if is_ours {
        some_registers(mask, Cursor::new(bytes, layout.endian), registers);
    }
    registers.abi = if is_32_bit { RegisterAbi::Bits32 } else { RegisterAbi::Bits64 };
    Ok(())
}

fn some_registers(mask: u64, mut cursor: Cursor<'_>, registers: &mut Registers) {
    for bit in (0..u64::BITS).filter(|bit| mask >> bit & 1 != 0) {
        let Some(value) = cursor.u64() else { return };
        if let Some(register) = Register::from_perf(bit) {
            registers.set(register, value);
        }
    }
}

/// The time in the `struct sample_id` that ends every record but samples and mmaps made by `perf` itself,
/// where `sample_id_all` is set.
///
/// `None` where the event has none or the record is too short.
#[must_use]
pub fn sample_id_time_ns(layout: &SampleLayout, payload: &[u8]) -> Option<u64> {
    if !layout.sample_id_all || !field!(layout, PERF_SAMPLE_TIME) {
        return None;
    }
    let behind = [
        abi::PERF_SAMPLE_ID,
        abi::PERF_SAMPLE_STREAM_ID,
        abi::PERF_SAMPLE_CPU,
        abi::PERF_SAMPLE_IDENTIFIER,
    ];
    let n_behind = behind.iter().filter(|&&flag| layout.sample_type & u64::from(flag) != 0).count();
    let start = payload.len().checked_sub((1 + n_behind) * 8)?;
    if field!(layout, PERF_SAMPLE_TID) && start < 8 {
        return None;
    }
    Cursor::new(&payload[start..], layout.endian).u64()
}

/// Place of a sample's id: the byte offset of `PERF_SAMPLE_IDENTIFIER` or `PERF_SAMPLE_ID` in
/// the payload, so that a session of several layouts can find the right one.
#[must_use]
pub fn sample_id_offset(sample_type: u64) -> Option<usize> {
    if sample_type & u64::from(abi::PERF_SAMPLE_IDENTIFIER) != 0 {
        return Some(0);
    }
    if sample_type & u64::from(abi::PERF_SAMPLE_ID) == 0 {
        return None;
    }
    let before =
        [abi::PERF_SAMPLE_IP, abi::PERF_SAMPLE_TID, abi::PERF_SAMPLE_TIME, abi::PERF_SAMPLE_ADDR];
    Some(8 * before.iter().filter(|&&flag| sample_type & u64::from(flag) != 0).count())
}

impl Cursor<'_> {
    fn skip(&mut self, n_bytes: u64, field: &'static str) -> Result<(), Undecodable> {
        self.take(n_bytes).map(|_| ()).ok_or(Undecodable::Short { field })
    }
}

#[cfg(test)]
impl SampleLayout {
    /// Of this `sample_type`, without registers.
    pub(crate) fn of_fields(sample_type: u32) -> Self {
        Self {
            sample_type: u64::from(sample_type),
            read_format: 0,
            branch_sample_type: 0,
            user_registers: 0,
            interrupt_registers: 0,
            is_precise: false,
            has_fetch: false,
            sample_id_all: true,
            endian: NATIVE,
            machine: Machine::X86_64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sample_type: u32) -> SampleLayout {
        SampleLayout { endian: Endian::Little, ..SampleLayout::of_fields(sample_type) }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn weight_struct_does_not_shift_what_follows() {
        let mut layout = layout(
            abi::PERF_SAMPLE_IP
                | abi::PERF_SAMPLE_WEIGHT_STRUCT
                | abi::PERF_SAMPLE_DATA_SRC
                | abi::PERF_SAMPLE_REGS_INTR
                | abi::PERF_SAMPLE_PHYS_ADDR,
        );
        layout.interrupt_registers = 1 << Register::Rbx.perf_bit() | 1 << Register::R8.perf_bit();
        let words = [0x401000, 0x0001_0002_0000_002a, 0x02, 2, 0xb0b, 0x808, 0x9999];
        let decoded = sample(&layout, abi::PERF_RECORD_MISC_USER as u16, &bytes(&words)).unwrap();
        assert_eq!(decoded.sample.ip, Avma(0x401000));
        assert_eq!(decoded.sample.latency, 42);
        assert_eq!(decoded.sample.instruction_latency, 2);
        assert_eq!(decoded.sample.retire_latency, 1);
        assert_eq!(decoded.sample.physical_addr.map(|at| at.0.get()), Some(0x9999));
        assert_eq!(decoded.sample.registers.get(Register::Rbx), Some(0xb0b));
        assert_eq!(decoded.sample.registers.get(Register::R8), Some(0x808));
        assert_eq!(decoded.sample.registers.get(Register::Rax), None);
        assert_eq!(decoded.sample.mode, CpuMode::User);
    }

    #[test]
    fn one_set_of_registers_is_enough_where_user_code_was_interrupted() {
        let mut layout = layout(abi::PERF_SAMPLE_REGS_USER);
        layout.user_registers = 1 << Register::Rbx.perf_bit();
        let decode = |layout: &SampleLayout, misc: u32, words: &[u64]| {
            let sample = sample(layout, misc as u16, &bytes(words)).unwrap().sample;
            let rbx = |registers: &Registers| registers.get(Register::Rbx);
            (rbx(&sample.registers), rbx(&sample.user_registers))
        };
        let (user, exact) = (abi::PERF_RECORD_MISC_USER, abi::PERF_RECORD_MISC_EXACT_IP);
        assert_eq!(decode(&layout, user, &[2, 7]), (Some(7), None));
        assert_eq!(decode(&layout, abi::PERF_RECORD_MISC_KERNEL, &[2, 7]), (None, Some(7)));
        // The hardware's IP, and registers of the interrupt some time later.
        assert_eq!(decode(&layout, user | exact, &[2, 7]), (None, None));
        let precise = SampleLayout { is_precise: true, ..layout };
        assert_eq!(decode(&precise, user, &[2, 7]), (None, None));
        layout.sample_type |= u64::from(abi::PERF_SAMPLE_REGS_INTR);
        layout.interrupt_registers = layout.user_registers;
        assert_eq!(decode(&layout, user, &[2, 7, 2, 8]), (Some(8), None));
    }

    #[test]
    fn a_plain_weight_is_one_number_and_other_machines_have_no_instruction_latency() {
        let decode =
            |layout: &SampleLayout, word: u64| sample(layout, 0, &bytes(&[word])).unwrap().sample;
        let plain = layout(abi::PERF_SAMPLE_WEIGHT);
        assert_eq!(decode(&plain, 300).latency, 300);
        let long = decode(&plain, 1 << 33);
        assert_eq!((long.latency, long.instruction_latency), (u32::MAX, 0));
        let mut power = layout(abi::PERF_SAMPLE_WEIGHT_STRUCT);
        power.machine = Machine::Other;
        let sampled = decode(&power, 0x0001_0002_0000_002a);
        assert_eq!((sampled.latency, sampled.instruction_latency), (42, 0));
    }

    #[test]
    fn pages_control_group_and_physical_address_stand_in_the_order_of_the_kernel() {
        let layout = layout(
            abi::PERF_SAMPLE_PHYS_ADDR
                | abi::PERF_SAMPLE_CGROUP
                | abi::PERF_SAMPLE_DATA_PAGE_SIZE
                | abi::PERF_SAMPLE_CODE_PAGE_SIZE,
        );
        let decoded = sample(&layout, 0, &bytes(&[0x1234_5000, 77, 1 << 21, 4096])).unwrap().sample;
        assert_eq!(decoded.physical_addr.map(|at| at.0.get()), Some(0x1234_5000));
        assert_eq!(decoded.cgroup.map(NonZeroU64::get), Some(77));
        assert_eq!(decoded.data_page.bytes(), Some(2 << 20));
        assert_eq!(decoded.code_page.bytes(), Some(4096));
        let none = sample(&layout, 0, &bytes(&[0, 0, 0, 0])).unwrap().sample;
        assert_eq!((none.physical_addr, none.cgroup, none.data_page.bytes()), (None, None, None));
        // The same record of a big-endian machine.
        let big = SampleLayout { endian: Endian::Big, ..layout };
        let words: Vec<u8> = [0x1234_5000u64, 77, 1 << 21, 4096]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        let swapped = sample(&big, 0, &words).unwrap().sample;
        assert_eq!(format!("{swapped:?}"), format!("{decoded:?}"));
    }

    #[test]
    fn a_read_without_group_and_a_call_chain_are_stepped_over() {
        let mut layout =
            layout(abi::PERF_SAMPLE_READ | abi::PERF_SAMPLE_CALLCHAIN | abi::PERF_SAMPLE_DATA_SRC);
        layout.read_format = u64::from(abi::PERF_FORMAT_ID | abi::PERF_FORMAT_TOTAL_TIME_ENABLED);
        let words = [1, 2, 3, 2, 0xaaaa, 0xbbbb, 0x04];
        let decoded = sample(&layout, 0, &bytes(&words)).unwrap();
        let access = decoded.sample.data_source.unwrap().access;
        assert_eq!(access, Some(dataspace_proto::memory::Access::Store));
    }

    #[test]
    fn of_the_stack_what_the_kernel_could_read_is_kept() {
        let layout = layout(abi::PERF_SAMPLE_STACK_USER | abi::PERF_SAMPLE_DATA_SRC);
        for (n_read, expected) in [(8, Some(7)), (7, None), (0, None), (u64::MAX, Some(7))] {
            let words = [16, 7, 8, n_read, 0x04];
            let decoded = sample(&layout, 0, &bytes(&words)).unwrap();
            assert_eq!(decoded.sample.stack.word(Avma(64), Avma(64)), expected, "{n_read} read");
            assert!(decoded.sample.data_source.is_some(), "what follows is not shifted");
        }
        let decoded = sample(&layout, 0, &bytes(&[0, 0x04])).unwrap();
        assert!(decoded.sample.stack.is_empty() && decoded.sample.data_source.is_some());
    }

    #[test]
    fn every_cut_is_an_error_and_no_panic() {
        let mut layout = layout(0x00ff_ffff);
        layout.user_registers = 0xff_ffff;
        layout.interrupt_registers = 0xff_ffff;
        for n in 0..64 {
            let result = sample(&layout, 0, &vec![0xff; n]);
            assert!(result.is_err(), "{n} bytes of 0xff cannot hold every field");
        }
    }

    #[test]
    fn the_time_of_a_side_band_record_stands_at_its_end() {
        let layout = layout(abi::PERF_SAMPLE_TID | abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_CPU);
        let words = [0xdead, 0x0000_0002_0000_0001, 77, 3];
        assert_eq!(sample_id_time_ns(&layout, &bytes(&words)), Some(77));
    }
}
