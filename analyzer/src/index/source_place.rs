//! The source of an instruction, by symbols and line tables.

use crate::code::outline::Evidence;
use crate::index::load_object::LoadObjectIndex;
use crate::index::question::SourcePlace;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The function, the symbol and the lines of the instruction at `at`.
    pub(crate) fn source_place(&mut self, at: Svma) -> SourcePlace {
        let lines = self.debug.as_mut().map(|debug| debug.lines_at(at));
        let (scope, symbol) = (Arc::new(self.scope(at)), self.symbol(at));
        SourcePlace { scope, symbol, lines: lines.unwrap_or_default().into() }
    }

    /// The symbol of the function around an instruction, and the bytes from its beginning. Where no symbol is left, it is
    /// the name in the debug information.
    fn symbol(&mut self, at: Svma) -> Option<(Arc<str>, u64)> {
        if let Some(symbol) = self.code.image.function_at(at) {
            return Some((Arc::clone(&symbol.name), at.offset_from(symbol.start)?));
        }
        let name = self.debug.as_mut()?.function_scope_at(at)?.function_name?;
        let debug = self.debug.as_mut();
        let extent = Evidence { code: &self.code, frames: &self.frames, debug }.extent(at)?;
        Some((name, at.offset_from(extent.start)?))
    }
}
