//! Pointers that go through vector registers: compilers load several at once and take them apart.

use super::transfer::Transfer;
use super::value::{Definition, Place, Sum, ValueIdx};
use crate::x86_64::abi::POINTER_BYTES;
use crate::x86_64::access;
use crate::x86_64::effect::Part;
use iced_x86::{Instruction, Mnemonic as M, OpAccess, OpKind, Register};

/// Lanes of eight bytes that are followed: those of a `ymm` register.
const N_LANES: u8 = 4;

/// Vector registers without those that only AVX-512 has.
const N_VECTORS: u8 = 16;

type Lanes = [ValueIdx; N_LANES as usize];

/// Whether an instruction moves one lane of a vector register to a general one: where none does,
/// vectors hold no pointers that matter.
pub(super) fn takes_lane(instruction: &Instruction) -> bool {
    let is_move = matches!(instruction.mnemonic(), M::Movq | M::Vmovq | M::Pextrq | M::Vpextrq);
    is_move && instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64()
}

impl Transfer<'_> {
    /// The lane that an instruction moves to a general register.
    pub(super) fn lane_taken(&mut self, at: u32, instruction: &Instruction) -> Option<ValueIdx> {
        if !self.has_lanes || !takes_lane(instruction) {
            return None;
        }
        let register = vector(instruction, 1)?;
        let lane = match instruction.mnemonic() {
            M::Pextrq | M::Vpextrq => instruction.try_immediate(2).ok()? & 1,
            _ => 0,
        };
        Some(self.lane(at, register, lane as u8))
    }

    /// Notes what an instruction leaves in the vector registers that it writes.
    pub(super) fn write_vectors(&mut self, at: u32, instruction: &Instruction) {
        if !self.has_lanes {
            return;
        }
        if instruction.mnemonic() == M::Call {
            // All are the callee's to use (psABI, figure 3.4).
            for register in 0..N_VECTORS {
                self.put(at, register, [self.graph.opaque(); N_LANES as usize]);
            }
            return;
        }
        let info = self.factory.info(instruction);
        let is_write = |access: OpAccess| !matches!(access, OpAccess::Read | OpAccess::CondRead);
        let written: Vec<u8> = info
            .used_registers()
            .iter()
            .filter(|used| is_write(used.access()))
            .filter_map(|used| number(used.register()))
            .collect();
        let lanes = match written.as_slice() {
            [] => return,
            [_] if instruction.op_mask() == Register::None => self.lanes_made(at, instruction),
            _ => None,
        };
        for register in written {
            self.put(at, register, lanes.unwrap_or([self.graph.opaque(); N_LANES as usize]));
        }
    }

    fn put(&mut self, at: u32, register: u8, lanes: Lanes) {
        for (lane, value) in (0..N_LANES).zip(lanes) {
            self.graph.write(at, Place::Lane { register, lane }, value);
        }
    }

    fn lane(&mut self, at: u32, register: u8, lane: u8) -> ValueIdx {
        self.graph.before(at, Place::Lane { register, lane })
    }

    fn lanes_of(&mut self, at: u32, register: u8) -> Lanes {
        [0, 1, 2, 3].map(|lane| self.lane(at, register, lane))
    }

    /// What the only vector register that an instruction writes holds then.
    fn lanes_made(&mut self, at: u32, instruction: &Instruction) -> Option<Lanes> {
        let opaque = self.graph.opaque();
        let last = instruction.op_count().checked_sub(1)?;
        Some(match instruction.mnemonic() {
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
            | M::Vmovdqa64 => match vector(instruction, 1) {
                Some(from) => self.lanes_of(at, from),
                None => self.lanes_loaded(at, instruction)?,
            },
            M::Movq | M::Vmovq => [self.lane_moved(at, instruction)?, opaque, opaque, opaque],
            M::Vextracti128 | M::Vextractf128 => {
                let lanes = self.lanes_of(at, vector(instruction, 1)?);
                match instruction.try_immediate(2).ok()? & 1 {
                    0 => lanes,
                    _ => [lanes[2], lanes[3], opaque, opaque],
                }
            }
            M::Punpckhqdq | M::Movhlps | M::Vpunpckhqdq => {
                // The upper lanes of both sources.
                let (first, second) = (vector(instruction, last - 1)?, vector(instruction, last)?);
                let (first, second) = (self.lane(at, first, 1), self.lane(at, second, 1));
                match instruction.mnemonic() {
                    M::Movhlps => [second, first, opaque, opaque],
                    _ => [first, second, opaque, opaque],
                }
            }
            M::Pshufd | M::Vpshufd => {
                let from = vector(instruction, 1)?;
                match instruction.try_immediate(2).ok()? & 0xf {
                    // The upper half goes down.
                    0xe => [self.lane(at, from, 1), opaque, opaque, opaque],
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// What `movq` puts in the lowest lane.
    fn lane_moved(&mut self, at: u32, instruction: &Instruction) -> Option<ValueIdx> {
        if let Some(from) = vector(instruction, 1) {
            return Some(self.lane(at, from, 0));
        }
        match instruction.op1_kind() {
            OpKind::Register => {
                let part = Part::of(instruction.op1_register())?;
                Some(self.register(at, part.register))
            }
            _ => Some(self.lanes_loaded(at, instruction)?[0]),
        }
    }

    /// What is read from memory outside the frame, lane by lane.
    fn lanes_loaded(&mut self, at: u32, instruction: &Instruction) -> Option<Lanes> {
        let address = access::operand(instruction);
        if self.operand_slot(at, &address).is_some() {
            return None;
        }
        let first = self.graph.operand(at, &address)?;
        let n_lanes = instruction.memory_size().size() as u32 / POINTER_BYTES;
        let mut lanes = [self.graph.opaque(); N_LANES as usize];
        for (lane, value) in lanes.iter_mut().enumerate().take(n_lanes as usize) {
            let by = i64::from(POINTER_BYTES) * lane as i64;
            let address = Sum { displacement: first.displacement.wrapping_add(by), ..first };
            let n_bytes = POINTER_BYTES as u8;
            *value = self.graph.define(Definition::Loaded { address, n_bytes });
        }
        Some(lanes)
    }
}

/// The vector register that an operand is.
fn vector(instruction: &Instruction, operand: u32) -> Option<u8> {
    let is_register =
        operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Register;
    is_register.then(|| number(instruction.op_register(operand)))?
}

/// The number of a vector register.
fn number(register: Register) -> Option<u8> {
    let is_vector = register.is_xmm() || register.is_ymm() || register.is_zmm();
    let number = u8::try_from(register.number()).ok()?;
    (is_vector && number < N_VECTORS).then_some(number)
}
