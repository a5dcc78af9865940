//! Functions that never return, by name or by their code: what stands behind a call of one is not run
//! after it.

use crate::code::image::CodeImage;
use crate::limit;
use crate::x86_64::dead_end::is_dead_end;
use crate::x86_64::exit::Destination;
use crate::x86_64::function::ImageBytes as _;
use dataspace_proto::address::Svma;
use object::{Object, ObjectSymbol as _, ObjectSymbolTable as _};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Names from the C library, the C++ runtime (Itanium C++ ABI) and the unwinder.
const NAMES: [&str; 37] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__clang_call_terminate",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "rust_panic",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Paths, mangled, of what panics or ends the process in Rust's `core`, `alloc` and `std`.
const RUST_PATHS: [&str; 7] = [
    "4core9panicking",
    "4core4cell22panic_already_borrowed",
    "4core4cell30panic_already_mutably_borrowed",
    "5alloc7raw_vec17capacity_overflow",
    "5alloc7raw_vec12handle_error",
    "3std7process5abort",
    "3std7process4exit",
];

/// Crates in which what ends like these never returns.
const RUST_CRATES: [&str; 3] = ["4core", "5alloc", "3std"];
const RUST_ENDINGS: [&str; 4] = ["_fail", "_fail_rt", "_failed", "handle_alloc_error"];

/// Whether functions of this name never return.
pub(crate) fn is_name(name: &str) -> bool {
    if NAMES.binary_search(&name).is_ok() {
        return true;
    }
    // `std::__throw_length_error(char const*)` and its like.
    let is_throw = name.strip_prefix("_ZSt").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_")
    });
    is_throw || rust_path(name).is_some_and(is_rust_path)
}

/// The path in a mangled name that is not generic: legacy without its hash, or version 0 from the
/// crate on.
fn rust_path(name: &str) -> Option<&str> {
    if let Some(legacy) = name.strip_prefix("_ZN") {
        return Some(legacy.rsplit_once("17h").map_or(legacy, |(path, _)| path));
    }
    let rest = name.strip_prefix("_RNv")?.trim_start_matches("Nt").strip_prefix('C')?;
    // A crate's disambiguator.
    let rest = match rest.strip_prefix('s') {
        Some(numbered) => numbered.split_once('_')?.1,
        None => rest,
    };
    Some(rest)
}

fn is_rust_path(path: &str) -> bool {
    let is_ending = || {
        let own = RUST_CRATES.iter().any(|known| path.starts_with(known));
        own && RUST_ENDINGS.iter().any(|ending| path.ends_with(ending))
    };
    RUST_PATHS.iter().any(|known| path.starts_with(known)) || is_ending()
}

/// Names of libraries that programs give to functions of their own as well, which may return.
const COMMON_NAMES: [&str; 4] = ["err", "errx", "verr", "verrx"];

/// Whether a function that the file itself has never returns, by its name.
pub(crate) fn is_own_name(name: &str) -> bool {
    is_name(name) && !COMMON_NAMES.contains(&name)
}

/// Where pointers to functions are kept that never return.
pub(crate) fn slots<'d>(elf: &impl Object<'d>) -> Vec<u64> {
    let (Some(table), Some(relocations)) = (elf.dynamic_symbol_table(), elf.dynamic_relocations())
    else {
        return Vec::new();
    };
    let mut slots: Vec<u64> = relocations
        .take(limit::MAX_SYMBOLS)
        .filter_map(|(slot, relocation)| {
            let object::RelocationTarget::Symbol(idx) = relocation.target() else { return None };
            let name = table.symbol_by_index(idx).ok()?.name().ok()?;
            is_name(name).then_some(slot)
        })
        .collect();
    slots.sort_unstable();
    slots
}

/// Functions whose code was looked at.
///
/// A call in a function is looked at with one level less than the function, so an answer rests on the
/// code and the levels alone: not on what was asked before, nor on which of two functions that call each
/// other was asked first.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    known: RefCell<FxHashMap<Svma, Levels>>,
    /// How often code was looked at.
    n_looks: Cell<usize>,
}

/// How many levels show that a function never returns.
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
    /// Whether a call of `callee` never returns.
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

    /// What is said of some functions, each asked after those before it.
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

    #[test]
    fn names_are_in_order_and_found() {
        assert!(NAMES.is_sorted());
        assert!(is_name("abort") && is_name("_ZSt20__throw_length_errorPKc"));
        assert!(is_name("_ZN4core9panicking5panic17h0123456789abcdefE"));
        assert!(is_name("_ZN4core6result13unwrap_failed17h0123456789abcdefE"));
        assert!(is_name("_RNvNtCs8rhTZKbY3lC_4core9panicking9panic_fmt"));
        assert!(is_name("_RNvNtNtCs8rhTZKbY3lC_4core5slice5index16slice_index_fail"));
        assert!(!is_name("_RNvNtCs8rhTZKbY3lC_4mine5slice13unwrap_failed"));
        assert!(!is_name("aborted") && !is_name("_ZSt4sqrtf") && !is_name("_ZN3std2io5Write"));
    }
}
