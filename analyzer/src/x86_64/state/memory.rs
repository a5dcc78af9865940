//! Steps back by the sampled stack: it must hold what an instruction wrote, and what it has read.

use super::{Contradiction, State};
use crate::x86_64::memory_effect::{MemoryEffect, StoredValue};
use crate::x86_64::sampled_stack::{KeptCells, SampledStack};

impl State {
    /// These cells of the sampled stack hold what they held here.
    pub const fn keep(&mut self, kept: KeptCells) {
        self.kept = kept;
    }

    /// The cells of the sampled stack that hold what they held here.
    #[must_use]
    pub const fn kept(&self) -> KeptCells {
        self.kept
    }

    /// Asks the stack for what an instruction has read. To be called before its effects on registers are undone.
    ///
    /// # Errors
    /// The stack holds something else there, and nothing wrote to it since.
    pub fn undo_loads(
        &self,
        effects: &[MemoryEffect],
        stack: &SampledStack<'_>,
    ) -> Result<(), Contradiction> {
        if self.kept.is_empty() {
            return Ok(());
        }
        for effect in effects {
            let MemoryEffect::Loaded { to, address } = effect else { continue };
            let Ok(at) = self.effective_address(address) else { continue };
            if let Some(value) = stack.value(self.kept, at, to.width_bits / 8) {
                self.require(*to, value)?;
            }
        }
        Ok(())
    }

    /// Steps back over what an instruction wrote: a register that the stack holds is known. To be called once its effects
    /// on registers are undone.
    ///
    /// # Errors
    /// The stack holds something else there, and nothing wrote to it since.
    pub fn undo_stores(
        &mut self,
        effects: &[MemoryEffect],
        stack: &SampledStack<'_>,
    ) -> Result<(), Contradiction> {
        if self.kept.is_empty() {
            return Ok(());
        }
        for effect in effects {
            match effect {
                MemoryEffect::Loaded { .. } => {}
                MemoryEffect::StoredAnywhere => self.kept = KeptCells::NONE,
                MemoryEffect::Stored { value, n_bytes, address } => {
                    let Ok(at) = self.effective_address(address) else {
                        self.kept = KeptCells::NONE;
                        continue;
                    };
                    if let Some(found) = stack.value(self.kept, at, *n_bytes) {
                        self.was_stored(*value, found, *n_bytes)?;
                    }
                    self.kept = stack.beside(self.kept, at, *n_bytes);
                }
            }
        }
        Ok(())
    }

    /// This value of a few bytes was written.
    fn was_stored(
        &mut self,
        value: StoredValue,
        found: u64,
        n_bytes: u32,
    ) -> Result<(), Contradiction> {
        let bits = u64::MAX >> (u64::BITS - 8 * n_bytes);
        match value {
            StoredValue::Register(part) => self.learn(part, found, bits),
            StoredValue::Immediate(value) if (value ^ found) & bits != 0 => Err(Contradiction),
            StoredValue::Immediate(_) | StoredValue::Unknown => Ok(()),
        }
    }
}
