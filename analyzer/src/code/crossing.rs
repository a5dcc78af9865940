//! Jumps from the code of one function into the middle of another's.
//!
//! Parts that the compiler moved away jump back so, also where no symbol says whose they are, and
//! hand-written assembly shares its tails so. One pass over all code finds them.

use crate::limit;
use crate::x86_64::exit::Exit;
use crate::x86_64::scan;
use dataspace_proto::address::Svma;

/// The direct jumps and calls of a load object that lead into the middle of a function.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    /// Target and source of jumps, by target.
    by_target: Vec<(u64, u64)>,
    /// Source and target of jumps, by source.
    by_source: Vec<(u64, u64)>,
    /// Targets of calls.
    called: Vec<u64>,
}

/// Starts of functions, sorted: each an address, and whether it is entered from elsewhere.
pub(crate) type FunctionStarts = Vec<(u64, bool)>;

impl Crossings {
    /// Searches `code`, which begins at `start`.
    pub(crate) fn search(&mut self, start: Svma, code: &[u8], starts: &FunctionStarts) {
        let end = start.0.saturating_add(code.len() as u64);
        let first = starts.partition_point(|(at, _)| *at <= start.0);
        let last = starts.partition_point(|(at, _)| *at < end).max(first);
        let inside = starts[first..last].iter().map(|(at, _)| *at);
        let mut from = start.0;
        for to in inside.chain([end]) {
            let into = usize::try_from(from - start.0).ok().zip(usize::try_from(to - start.0).ok());
            let bytes = into.and_then(|(from, to)| code.get(from..to)).unwrap_or(&[]);
            self.search_function(from, bytes, starts);
            from = to;
        }
    }

    fn search_function(&mut self, start: u64, code: &[u8], starts: &FunctionStarts) {
        let end = start + code.len() as u64;
        for (source, exit) in scan::direct_exits(Svma(start), code) {
            let Some(Svma(target)) = exit.target() else { continue };
            if (start..end).contains(&target) || is_entered(target, starts) {
                continue;
            }
            if self.by_target.len() >= limit::MAX_CROSSINGS {
                return;
            }
            match exit {
                Exit::Call(_) => self.called.push(target),
                _ => self.by_target.push((target, source.0)),
            }
        }
    }

    /// Puts what was found in order.
    pub(crate) fn finish(mut self) -> Self {
        self.by_target.sort_unstable();
        self.by_target.dedup();
        self.called.sort_unstable();
        self.called.dedup();
        self.by_source = self.by_target.iter().map(|(target, source)| (*source, *target)).collect();
        self.by_source.sort_unstable();
        self
    }

    /// Target and source of the jumps that lead between two addresses.
    pub(crate) fn leading_into(&self, start: Svma, end: Svma) -> &[(u64, u64)] {
        between(&self.by_target, start, end)
    }

    /// Source and target of the jumps that stand between two addresses.
    pub(crate) fn leaving(&self, start: Svma, end: Svma) -> &[(u64, u64)] {
        between(&self.by_source, start, end)
    }

    /// Returns the call targets between two addresses.
    pub(crate) fn called(&self, start: Svma, end: Svma) -> &[u64] {
        let from = self.called.partition_point(|target| *target < start.0);
        let to = self.called.partition_point(|target| *target < end.0);
        self.called.get(from..to).unwrap_or(&[])
    }
}

fn is_entered(target: u64, starts: &FunctionStarts) -> bool {
    let found = starts.binary_search_by_key(&target, |(at, _)| *at);
    found.is_ok_and(|idx| starts[idx].1)
}

fn between(pairs: &[(u64, u64)], start: Svma, end: Svma) -> &[(u64, u64)] {
    let from = pairs.partition_point(|(at, _)| *at < start.0);
    let to = pairs.partition_point(|(at, _)| *at < end.0);
    pairs.get(from..to).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_into_the_middle_of_another_function_is_found() {
        // 1000: jmp 1008  1005: ret  1006: nop (x2)  1008: nop  1009: ret
        // with functions at 1000 and 1007, then with one at 1008 that is a moved part.
        let code = [0xe9, 3, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0xc3];
        let search = |starts: &FunctionStarts| {
            let mut found = Crossings::default();
            found.search(Svma(0x1000), &code, starts);
            found.finish()
        };
        let found = search(&vec![(0x1000, true), (0x1007, true)]);
        assert_eq!(found.leading_into(Svma(0x1007), Svma(0x100a)), [(0x1008, 0x1000)]);
        assert_eq!(found.leaving(Svma(0x1000), Svma(0x1007)), [(0x1000, 0x1008)]);
        let tail_call = search(&vec![(0x1000, true), (0x1008, true)]);
        assert!(tail_call.leading_into(Svma(0), Svma(u64::MAX)).is_empty());
        let cold = search(&vec![(0x1000, true), (0x1008, false)]);
        assert_eq!(cold.leading_into(Svma(0), Svma(u64::MAX)), [(0x1008, 0x1000)]);
    }
}
