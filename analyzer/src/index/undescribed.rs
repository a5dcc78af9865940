//! Functions that are known although no debug information describes them: by their symbols, and what
//! nothing but those calls.

use crate::bytes::page::PageCache;
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::declared::{DeclaredFunctions, Known, Prototype};
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::exit::Exit;
use crate::x86_64::image_bytes::ImageBytes as _;
use crate::x86_64::scan;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl LoadObjectIndex {
    /// Describes the functions whose symbols tell what they are, as if the file did.
    pub(crate) fn describe_known(&mut self, pages: &Arc<PageCache>) {
        let mut known = self.named_functions();
        self.add_callees(&mut known);
        if !known.is_empty() {
            let debug = self.debug.get_or_insert_with(|| DebugInfo::empty(pages));
            debug.declare(DeclaredFunctions::new(&known));
        }
    }

    /// The functions with a symbol that is known, where nothing else describes them.
    fn named_functions(&self) -> Vec<Known> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        for function in &self.code.image.functions {
            let Some(prototype) = Prototype::of_symbol(&function.name) else { continue };
            let (start, n_bytes) = (function.start, function.len_bytes);
            let is_sound = (1..=limit::MAX_KNOWN_FUNCTION_BYTES).contains(&n_bytes)
                && self.code.image.is_code(start);
            // Of several that have one name it is not known which the program calls.
            if is_sound && !self.is_described(start) && seen.insert(&function.name) {
                found.push(Known { prototype, start, n_bytes });
            }
        }
        found
    }

    fn is_described(&self, svma: Svma) -> bool {
        self.debug.as_ref().is_some_and(|debug| debug.has_unit_at(svma))
    }

    /// Adds functions without a symbol that only known ones call: what was `static` in their unit.
    fn add_callees(&mut self, known: &mut Vec<Known>) {
        let mut at = 0;
        let mut n_left = limit::MAX_KNOWN_CALLEES;
        while let Some(caller) = known.get(at).copied() {
            at += 1;
            for start in self.callees(&caller) {
                let is_known = known.iter().any(|known| known.holds(start));
                let Some(n_bytes) = self.unnamed(start).filter(|_| !is_known && n_left > 0) else {
                    continue;
                };
                let callee = Known { prototype: caller.prototype.callee(), start, n_bytes };
                let mut sites = self.calls().to(start).peekable();
                let is_called = sites.peek().is_some();
                let is_ours = |site| callee.holds(site) || known.iter().any(|it| it.holds(site));
                if is_called && sites.all(is_ours) {
                    n_left -= 1;
                    known.push(callee);
                }
            }
        }
    }

    /// Lists the targets of a function's direct calls and jumps that leave it.
    fn callees(&self, caller: &Known) -> Vec<Svma> {
        let n_bytes = usize::try_from(caller.n_bytes).unwrap_or(0);
        let bytes = self.code.bytes_at(caller.start, n_bytes).unwrap_or_default();
        let exits = scan::exits(caller.start, &bytes);
        let leaving = exits.filter(|(_, exit)| !matches!(exit, Exit::Branch(_)));
        let targets = leaving.filter_map(|(_, exit)| exit.target());
        let mut targets: Vec<Svma> = targets.filter(|target| !caller.holds(*target)).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Finds the length of the function without a symbol that begins at `start`.
    fn unnamed(&self, start: Svma) -> Option<u64> {
        let (begin, end) = self.frames.function_range(start)?;
        let n_bytes = end.offset_from(begin)?;
        let is_it = begin == start
            && (1..=limit::MAX_KNOWN_FUNCTION_BYTES).contains(&n_bytes)
            && self.code.image.function_at(start).is_none()
            && self.code.linkage_slot(start).is_none()
            && !self.is_described(start);
        is_it.then_some(n_bytes)
    }
}
