//! Functions that never return, by name or by their code: what stands behind a call of one is not run
//! after it.

use crate::code::image::CodeImage;
use crate::known::noreturn::is_own_name;
use crate::limit;
use crate::x86_64::dead_end::is_dead_end;
use crate::x86_64::exit::Destination;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Functions whose code was looked at.
///
/// A call in a function is looked at with one level less than the function, so an answer rests on the
/// code and the levels alone: not on what was asked before, nor on which of two functions that call each
/// other was asked first.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    known: RefCell<FxHashMap<Svma, Levels>>,
    /// Number of times that code was looked at.
    n_looks: Cell<usize>,
}

/// Numbers of levels that show that a function never returns, and that do not.
#[derive(Clone, Copy, Debug)]
struct Levels {
    /// So many, and more, do.
    enough: u8,
    /// So many, and fewer, do not.
    too_few: u8,
}

impl Default for Levels {
    fn default() -> Self {
        Self { enough: u8::MAX, too_few: 0 }
    }
}

impl DeadEnds {
    /// Tells whether a call of `callee` never returns.
    pub(crate) fn has(&self, callee: Destination, code: &CodeImage) -> bool {
        self.has_within(callee, limit::MAX_DEAD_END_LEVELS, code)
    }

    fn has_within(&self, callee: Destination, levels: u8, code: &CodeImage) -> bool {
        match callee {
            Destination::Code(start) => self.is_end(start, levels, code),
            // What the program may write to can lead elsewhere by now.
            Destination::Slot(slot) => {
                let is_kept = code.image.loaded_section(slot).is_some_and(|it| it.is_of_loader());
                let is_named = || code.image.noreturn_slots.binary_search(&slot.0).is_ok();
                let target = || code.relocated(slot);
                is_kept && (is_named() || target().is_some_and(|to| self.is_end(to, levels, code)))
            }
        }
    }

    fn is_end(&self, start: Svma, levels: u8, code: &CodeImage) -> bool {
        let function = code.image.function_at(start).filter(|function| function.start == start);
        if function.is_some_and(|function| is_own_name(&function.name)) {
            return true;
        }
        let Some(fewer) = levels.checked_sub(1).filter(|_| code.image.is_code(start)) else {
            return false;
        };
        let known = self.known.borrow().get(&start).copied();
        match known {
            Some(known) if levels >= known.enough => return true,
            Some(known) if levels <= known.too_few => return false,
            _ => {}
        }
        // What is not kept would be followed anew, by each function that calls it.
        let is_kept = self.n_looks.get() < limit::MAX_DEAD_END_LOOKS;
        let n_instructions =
            if is_kept { limit::MAX_DEAD_END_INSTRUCTIONS } else { STUB_INSTRUCTIONS };
        let is_followed = |callee| is_kept || matches!(callee, Destination::Slot(_));
        let ends = |callee| is_followed(callee) && self.has_within(callee, fewer, code);
        if is_kept {
            self.n_looks.set(self.n_looks.get() + 1);
        }
        let is_end = is_dead_end(start, n_instructions, code, &ends);
        if is_kept {
            let mut all = self.known.borrow_mut();
            let known = all.entry(start).or_default();
            match is_end {
                true => known.enough = known.enough.min(levels),
                false => known.too_few = known.too_few.max(levels),
            }
        }
        is_end
    }
}

/// Instructions of a stub of the linkage table up to its jump.
const STUB_INSTRUCTIONS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::page::Memory;
    use crate::elf::image::ElfImage;
    use crate::program::Program;
    use std::sync::Arc;

    /// Asks whether functions never return, each after those before it.
    fn ask(bytes: &[u8], functions: &[Svma]) -> Vec<bool> {
        let file = Memory(bytes.to_vec());
        let image = ElfImage::parse(&file).unwrap();
        let code = CodeImage::new(Arc::new(file), image);
        functions.iter().map(|start| code.is_noreturn(Destination::Code(*start))).collect()
    }

    #[test]
    fn what_never_returns_is_told_by_the_code_and_not_by_what_was_asked_before() {
        const FUNCTIONS: [(&str, bool); 12] = [
            // Further from the end than is looked.
            ("chain_0", false),
            ("chain_1", false),
            ("chain_2", false),
            ("chain_3", false),
            ("chain_4", true),
            ("chain_5", true),
            ("chain_6", true),
            ("chain_7", true),
            ("round_0", true),
            ("round_1", true),
            ("through_pointer", false),
            ("comes_back", false),
        ];
        let program = Program::c("noreturn.c", "-O1 -no-pie");
        let start = |name: &str| Svma(program.truth(&format!("&{name}")));
        for (name, is_seen) in FUNCTIONS {
            let alone = ask(&program.bytes, &[start(name)]);
            let returns = program.truth(&format!("returns {name}")) == 1;
            assert!(!(alone[0] && returns), "{name} does return");
            assert_eq!(alone, [is_seen], "{name}");
            for (other, is_other_seen) in FUNCTIONS {
                let after = ask(&program.bytes, &[start(other), start(name)]);
                assert_eq!(after, [is_other_seen, is_seen], "{name} after {other}");
            }
        }
    }
}
