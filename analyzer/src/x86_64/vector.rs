//! Pointers that go through vector registers: compilers load several at once and take them apart.

use super::abi::{N_VECTORS, POINTER_BYTES, dwarf_number};
use super::action::{N_LANES, Source, VectorAssignment};
use super::effect::RegisterPart;
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpAccess, OpKind, Register};

type Lanes = [Source; N_LANES as usize];

const OPAQUE: Lanes = [Source::Opaque; N_LANES as usize];

/// Tells whether an instruction moves a lane of a vector register to or from a general one, or a single one from memory to
/// another: where none does, vectors hold no pointers that matter.
pub(super) fn moves_lane(instruction: &Instruction) -> bool {
    let is_put = || match instruction.mnemonic() {
        M::Movq | M::Vmovq => instruction.op1_register().is_gpr64(),
        M::Pinsrq | M::Vpinsrq => true,
        // Put together in memory's order.
        M::Movhps | M::Vmovhps => instruction.op0_kind() == OpKind::Register,
        _ => false,
    };
    takes_lane(instruction) || is_put()
}

fn takes_lane(instruction: &Instruction) -> bool {
    let is_move = matches!(instruction.mnemonic(), M::Movq | M::Vmovq | M::Pextrq | M::Vpextrq);
    is_move && instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64()
}

/// The lanes of a vector register that an instruction writes to its memory operand, from the lowest.
pub(super) fn lanes_stored(instruction: &Instruction) -> Vec<Source> {
    if instruction.op0_kind() != OpKind::Memory {
        return Vec::new();
    }
    let Some(register) = vector(instruction, 1) else { return Vec::new() };
    let first: u8 = match instruction.mnemonic() {
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => 1,
        _ if copies_memory(instruction.mnemonic()) => 0,
        M::Movq | M::Vmovq | M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd => 0,
        _ => return Vec::new(),
    };
    if instruction.has_op_mask() {
        return Vec::new();
    }
    let n_lanes = (instruction.memory_size().size() / usize::from(POINTER_BYTES)) as u8;
    let lane = |lane| match lane {
        0..N_LANES => Source::Lane { register, lane },
        _ => Source::Opaque,
    };
    (first..first.saturating_add(n_lanes)).map(lane).collect()
}

/// Tells whether an instruction moves a whole vector between a register and memory, or another register.
const fn copies_memory(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Movdqu
            | M::Movdqa
            | M::Movups
            | M::Movaps
            | M::Movupd
            | M::Movapd
            | M::Lddqu
            | M::Vmovdqu
            | M::Vmovdqa
            | M::Vmovups
            | M::Vmovaps
            | M::Vmovupd
            | M::Vmovapd
            | M::Vlddqu
            | M::Vmovdqu64
            | M::Vmovdqa64
    )
}

/// The lane that an instruction moves to a general register.
pub(super) fn lane_taken(instruction: &Instruction) -> Option<Source> {
    if !takes_lane(instruction) {
        return None;
    }
    let register = vector(instruction, 1)?;
    let lane = match instruction.mnemonic() {
        M::Pextrq | M::Vpextrq => instruction.try_immediate(2).ok()? & 1,
        _ => 0,
    };
    Some(Source::Lane { register, lane: lane as u8 })
}

/// Returns what an instruction leaves in the vector registers that it writes.
pub(super) fn assignments(
    instruction: &Instruction,
    info: &InstructionInfo,
) -> Vec<VectorAssignment> {
    let is_write = |access: OpAccess| !matches!(access, OpAccess::Read | OpAccess::CondRead);
    let written: Vec<u8> = info
        .used_registers()
        .iter()
        .filter(|used| is_write(used.access()))
        .filter_map(|used| number(used.register()))
        .collect();
    let lanes = match written.as_slice() {
        [_] if !instruction.has_op_mask() => lanes_made(instruction),
        _ => None,
    };
    let lanes = lanes.unwrap_or(OPAQUE);
    written.into_iter().map(|to| VectorAssignment { to, lanes }).collect()
}

fn lanes_of(register: u8) -> Lanes {
    [0, 1, 2, 3].map(|lane| Source::Lane { register, lane })
}

/// Returns the new lanes of the only vector register that an instruction writes.
fn lanes_made(instruction: &Instruction) -> Option<Lanes> {
    let (opaque, zero) = (Source::Opaque, Source::Constant(0));
    let last = instruction.op_count().checked_sub(1)?;
    Some(match instruction.mnemonic() {
        copy if copies_memory(copy) => match vector(instruction, 1) {
            Some(from) => lanes_of(from),
            None => lanes_loaded(instruction),
        },
        M::Movq | M::Vmovq => [lane_moved(instruction)?, zero, zero, zero],
        M::Pxor
        | M::Xorps
        | M::Xorpd
        | M::Vpxor
        | M::Vxorps
        | M::Vxorpd
        | M::Vpxord
        | M::Vpxorq
            if vector(instruction, last - 1)? == vector(instruction, last)? =>
        {
            [zero; 4]
        }
        M::Movddup | M::Vmovddup | M::Vpbroadcastq => {
            let low = match vector(instruction, 1) {
                Some(from) => lanes_of(from)[0],
                None => Source::MemoryLane(0),
            };
            let is_wide = instruction.mnemonic() == M::Vpbroadcastq;
            if is_wide { [low; 4] } else { [low, low, opaque, opaque] }
        }
        M::Vinserti128 | M::Vinsertf128 => {
            let kept = lanes_of(vector(instruction, 1)?);
            let [low, high] = match vector(instruction, 2) {
                Some(put) => [lanes_of(put)[0], lanes_of(put)[1]],
                None => [0, 1].map(Source::MemoryLane),
            };
            match instruction.try_immediate(3).ok()? & 1 {
                0 => [low, high, kept[2], kept[3]],
                _ => [kept[0], kept[1], low, high],
            }
        }
        M::Vextracti128 | M::Vextractf128 => {
            let lanes = lanes_of(vector(instruction, 1)?);
            match instruction.try_immediate(2).ok()? & 1 {
                0 => lanes,
                _ => [lanes[2], lanes[3], opaque, opaque],
            }
        }
        M::Punpckhqdq | M::Movhlps | M::Vpunpckhqdq => {
            // The upper lanes of both sources.
            let (first, second) = (vector(instruction, last - 1)?, vector(instruction, last)?);
            let (first, second) = (lanes_of(first)[1], lanes_of(second)[1]);
            match instruction.mnemonic() {
                M::Movhlps => [second, first, opaque, opaque],
                _ => [first, second, opaque, opaque],
            }
        }
        M::Punpcklqdq | M::Movlhps | M::Vpunpcklqdq | M::Vmovlhps => {
            // The lower lanes of both.
            let (first, second) = (vector(instruction, last - 1)?, vector(instruction, last)?);
            [lanes_of(first)[0], lanes_of(second)[0], opaque, opaque]
        }
        M::Pinsrq | M::Vpinsrq => {
            let is_second = instruction.try_immediate(last).ok()? & 1 != 0;
            let put = match general(instruction, last - 1) {
                Some(register) => register,
                None => Source::MemoryLane(0),
            };
            let kept = lanes_of(vector(instruction, last - 2).or_else(|| vector(instruction, 0))?);
            if is_second { [kept[0], put, opaque, opaque] } else { [put, kept[1], opaque, opaque] }
        }
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => {
            // Into the upper lane, from memory.
            let kept = lanes_of(vector(instruction, last - 1)?);
            [kept[0], Source::MemoryLane(0), opaque, opaque]
        }
        M::Pshufd | M::Vpshufd => {
            let from = vector(instruction, 1)?;
            match instruction.try_immediate(2).ok()? & 0xf {
                // The upper half goes down.
                0xe => [lanes_of(from)[1], opaque, opaque, opaque],
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Returns the value that `movq` puts in the lowest lane.
fn lane_moved(instruction: &Instruction) -> Option<Source> {
    if let Some(from) = vector(instruction, 1) {
        return Some(lanes_of(from)[0]);
    }
    match instruction.op1_kind() {
        OpKind::Register => general(instruction, 1),
        _ => Some(lanes_loaded(instruction)[0]),
    }
}

/// The general register that an operand is.
fn general(instruction: &Instruction, operand: u32) -> Option<Source> {
    let part = RegisterPart::of(instruction.op_register(operand))?;
    Some(Source::Register(dwarf_number(part.register) as u8))
}

/// Returns the values that are read from memory, lane by lane.
fn lanes_loaded(instruction: &Instruction) -> Lanes {
    let n_lanes = instruction.memory_size().size() / usize::from(POINTER_BYTES);
    [0, 1, 2, 3].map(|lane| {
        if usize::from(lane) < n_lanes { Source::MemoryLane(lane) } else { Source::Opaque }
    })
}

/// The vector register that an operand is.
fn vector(instruction: &Instruction, operand: u32) -> Option<u8> {
    number(instruction.op_register(operand))
}

/// The number of a vector register.
fn number(register: Register) -> Option<u8> {
    let is_vector = register.is_xmm() || register.is_ymm() || register.is_zmm();
    let number = u8::try_from(register.number()).ok()?;
    (is_vector && number < N_VECTORS).then_some(number)
}
