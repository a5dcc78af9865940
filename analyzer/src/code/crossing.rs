//! Jumps from the code of one function into the middle of another's.
//!
//! Parts that the compiler moved away jump back so, also where no symbol says whose they are, and
//! hand-written assembly shares its tails so. One pass over all code finds them.

use crate::limit;
use crate::x86_64::exit::Exit;
use crate::x86_64::scan;
use dataspace_proto::address::Svma;

/// The direct jumps and calls of a load object that lead into the middle of a function; the functions that direct jumps
/// lead to, and the jumps by pointers in memory. Linkage stubs are not looked at.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    /// Target and source of jumps, by target.
    by_target: Vec<(u64, u64)>,
    /// Source and target of jumps, by source.
    by_source: Vec<(u64, u64)>,
    /// Targets of calls.
    called: Vec<u64>,
    /// Target of jumps to where another function begins, and the start of the function or part that they are in, by target.
    jumped_to: Vec<(u64, u64)>,
    /// Jumps by pointers in memory.
    by_pointer: Vec<u64>,
    /// There are more than are kept.
    is_cut: bool,
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
        for (source, exit) in scan::exits(Svma(start), code) {
            let target = exit.target().map(|target| target.0);
            if target.is_some_and(|target| (start..end).contains(&target)) {
                continue;
            }
            let kept = [self.by_target.len(), self.jumped_to.len(), self.by_pointer.len()];
            if kept.into_iter().any(|n| n >= limit::MAX_CROSSINGS) {
                self.is_cut = true;
                return;
            }
            let Some(target) = target else {
                self.by_pointer.push(source.0);
                continue;
            };
            match exit {
                Exit::Call(_) if is_entered(target, starts) => {}
                Exit::Call(_) => self.called.push(target),
                _ if is_entered(target, starts) => self.jumped_to.push((target, start)),
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
        self.jumped_to.sort_unstable();
        self.jumped_to.dedup();
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

    /// Tells whether another function jumps to the one at `start`; `None` if not all jumps were kept.
    pub(crate) fn jumps_to(&self, start: Svma) -> Option<bool> {
        self.jumping_to(start).map(|jumps| !jumps.is_empty())
    }

    /// Returns the target of jumps to the function at `start`, and the starts of the functions and parts that they are in;
    /// `None` if not all were kept.
    pub(crate) fn jumping_to(&self, start: Svma) -> Option<&[(u64, u64)]> {
        (!self.is_cut).then(|| between(&self.jumped_to, start, start.plus(1)))
    }

    /// Returns the jumps by pointers in memory, inside of functions and out of them; `None` if not all were kept.
    pub(crate) fn by_pointer(&self) -> Option<&[u64]> {
        (!self.is_cut).then_some(&self.by_pointer)
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

    #[test]
    fn jumps_onto_functions_and_by_pointers_are_told() {
        // 1000: jmp 100c  1005: jmp *8(%rdi)  1008: jmp *%rax  100a: jmp 100a  100c: call 1000  1011: ret
        let code = [
            0xe9, 7, 0, 0, 0, 0xff, 0x67, 8, 0xff, 0xe0, 0xeb, 0xfe, 0xe8, 0xef, 0xff, 0xff, 0xff,
            0xc3,
        ];
        let mut found = Crossings::default();
        found.search(Svma(0x1000), &code, &vec![(0x1000, true), (0x100a, true), (0x100c, true)]);
        let found = found.finish();
        let is_jumped_to = [0x1000, 0x100a, 0x100c].map(|start| found.jumps_to(Svma(start)));
        assert_eq!(is_jumped_to, [Some(false), Some(false), Some(true)]);
        assert_eq!(found.jumping_to(Svma(0x100c)), Some(&[(0x100c, 0x1000)][..]));
        assert_eq!(found.by_pointer(), Some(&[0x1005][..]));
    }
}
