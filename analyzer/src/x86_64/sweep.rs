//! Starts of instructions: one pass over the bytes, and further streams from jumps between.

use crate::limit;
use crate::x86_64::outline::CodePart;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// The instructions of some parts, in the order in which they were found.
pub(super) struct Sweep<'a> {
    parts: &'a [CodePart],
    pub(super) instructions: Vec<Instruction>,
    /// For each byte of each part, one more than the index of the instruction that begins there.
    starts: Vec<Vec<u32>>,
}

impl<'a> Sweep<'a> {
    /// Decodes each part from its start on; `None` for too many instructions.
    pub(super) fn new(parts: &'a [CodePart]) -> Option<Self> {
        let starts = parts.iter().map(|part| vec![0; part.code.len()]).collect();
        let mut sweep = Self { parts, instructions: Vec::new(), starts };
        for part in 0..parts.len() {
            sweep.decode(part, 0)?;
        }
        Some(sweep)
    }

    /// Finds the part that holds `address`, and the distance from its start.
    fn place(&self, address: u64) -> Option<(usize, usize)> {
        self.parts.iter().enumerate().find_map(|(idx, part)| {
            let into = usize::try_from(address.checked_sub(part.start.0)?).ok()?;
            (into < part.code.len()).then_some((idx, into))
        })
    }

    pub(super) fn holds(&self, address: u64) -> bool {
        self.place(address).is_some()
    }

    /// The instruction found to begin at `address`.
    pub(super) fn index_of(&self, address: u64) -> Option<u32> {
        let (part, into) = self.place(address)?;
        self.starts[part][into].checked_sub(1)
    }

    /// All instructions, part by part; those of each by their address.
    pub(super) fn by_part(&self) -> impl Iterator<Item = u32> {
        self.starts.iter().flatten().filter_map(|start| start.checked_sub(1))
    }

    /// The instruction that begins at `address`, where something jumps to. Between two known ones
    /// a further stream begins: glibc jumps past a `lock` prefix, and both readings are real.
    pub(super) fn enter(&mut self, address: u64) -> Option<u32> {
        let (part, into) = self.place(address)?;
        if self.starts[part][into] == 0 {
            self.decode(part, into);
        }
        self.starts[part][into].checked_sub(1)
    }

    /// Decodes from `into` to the end of the part, or to where a known instruction begins.
    fn decode(&mut self, part: usize, into: usize) -> Option<()> {
        let CodePart { start, code, .. } = &self.parts[part];
        let ip = start.0.wrapping_add(into as u64);
        let mut decoder = Decoder::with_ip(64, code.get(into..)?, ip, DecoderOptions::NONE);
        while decoder.can_decode() {
            let slot = &mut self.starts[part][into + decoder.position()];
            if *slot != 0 {
                break;
            }
            if self.instructions.len() >= limit::MAX_FUNCTION_INSTRUCTIONS {
                return None;
            }
            self.instructions.push(decoder.decode());
            *slot = self.instructions.len() as u32;
        }
        Some(())
    }
}
