//! Code that is in no file, by its addresses: what made it says what it is called.

use crate::limit;
use dataspace_proto::record::KernelSymbol;
use dataspace_proto::sample_line::Scope;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The load object that the scope of a kernel symbol names.
const KERNEL: &str = "[kernel]";

/// Functions by address. What comes later lies over what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodeTable {
    ranges: BTreeMap<u64, Range>,
    n_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Range {
    end: u64,
    scope: Arc<Scope>,
}

/// Bytes that a range takes beside its name: the tree's share, the scope and its counters.
const RANGE_BYTES: usize = 160;

impl CodeTable {
    /// Code of `object` from `start` on is called `name`. Without length it is none.
    pub fn insert(&mut self, start: u64, len_bytes: u64, object: &Arc<str>, name: &[u8]) {
        let name = name.get(..limit::MAX_CODE_NAME_BYTES).unwrap_or(name);
        let function = Some(Arc::from(String::from_utf8_lossy(name)));
        let scope = Scope { object: Arc::clone(object), unit: None, function };
        self.put(start, start.saturating_add(len_bytes), Arc::new(scope));
    }

    fn put(&mut self, start: u64, end: u64, scope: Arc<Scope>) {
        if end > start {
            self.remove(start, end);
            self.n_bytes += bytes(&scope);
            self.ranges.insert(start, Range { end, scope });
        }
    }

    /// There is nothing any more from `start` up to `end`.
    pub fn remove(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        if let Some((_, below)) = self.ranges.range_mut(..start).next_back()
            && below.end > start
        {
            let rest = (below.end > end).then(|| below.clone());
            below.end = start;
            if let Some(rest) = rest {
                self.n_bytes += bytes(&rest.scope);
                self.ranges.insert(end, rest);
            }
        }
        while let Some((&at, inside)) = self.ranges.range(start..end).next() {
            let rest = (inside.end > end).then(|| inside.clone());
            self.n_bytes -= bytes(&inside.scope);
            self.ranges.remove(&at);
            if let Some(rest) = rest {
                self.n_bytes += bytes(&rest.scope);
                self.ranges.insert(end, rest);
            }
        }
    }

    /// The code from `from` on, `len_bytes` of it, is at `to` now.
    pub fn relocate(&mut self, from: u64, to: u64, len_bytes: u64) {
        let scope = self.ranges.get(&from).map(|range| Arc::clone(&range.scope));
        self.remove(from, from.saturating_add(len_bytes));
        if let Some(scope) = scope {
            self.put(to, to.saturating_add(len_bytes), scope);
        }
    }

    /// The function that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Arc<Scope>> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some(&range.scope)
    }

    /// Returns about how much memory it takes.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

fn bytes(scope: &Scope) -> usize {
    RANGE_BYTES + scope.function.as_ref().map_or(0, |name| name.len())
}

/// Code that came into the kernel while it runs.
#[derive(Debug)]
pub(crate) struct KernelCode {
    table: CodeTable,
    object: Arc<str>,
}

impl Default for KernelCode {
    fn default() -> Self {
        Self { table: CodeTable::default(), object: KERNEL.into() }
    }
}

impl KernelCode {
    pub(crate) fn add(&mut self, symbol: &KernelSymbol) {
        let start = symbol.start.0;
        // Also before a removal: it makes two ranges of one.
        if self.table.n_bytes() >= limit::MAX_KERNEL_CODE_BYTES {
            self.table = CodeTable::default();
        }
        if symbol.is_removed {
            self.table.remove(start, start.saturating_add(u64::from(symbol.len_bytes)));
            return;
        }
        self.table.insert(start, u64::from(symbol.len_bytes), &self.object, &symbol.name);
    }

    pub(crate) fn find(&self, address: u64) -> Option<&Arc<Scope>> {
        self.table.find(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::address::Avma;
    use proptest::prelude::*;

    fn name(table: &CodeTable, address: u64) -> Option<String> {
        table.find(address)?.function.as_ref().map(ToString::to_string)
    }

    #[test]
    fn kernel_code_comes_and_goes() {
        let mut code = KernelCode::default();
        let symbol = KernelSymbol {
            time_ns: 0,
            start: Avma(0xffff_ffff_c000_0000),
            len_bytes: 64,
            is_removed: false,
            name: b"bpf_prog_a"[..].into(),
        };
        code.add(&symbol);
        let scope = code.find(0xffff_ffff_c000_003f).unwrap();
        assert_eq!((&*scope.object, scope.function.as_deref()), ("[kernel]", Some("bpf_prog_a")));
        assert!(code.find(0xffff_ffff_c000_0040).is_none());
        code.add(&KernelSymbol { is_removed: true, ..symbol });
        assert!(code.find(0xffff_ffff_c000_0000).is_none());
    }

    #[test]
    fn code_that_is_moved_keeps_its_name() {
        let mut table = CodeTable::default();
        let object: Arc<str> = "[jit]".into();
        table.insert(100, 10, &object, b"a");
        table.insert(200, 10, &object, b"b");
        table.relocate(100, 204, 10);
        for (address, expected) in
            [(100, None), (203, Some("b")), (204, Some("a")), (213, Some("a"))]
        {
            assert_eq!(name(&table, address).as_deref(), expected, "{address}");
        }
    }

    proptest! {
        /// Held to a plain array in which each name is written over what was there.
        #[test]
        fn what_comes_later_lies_over_what_was_there(
            steps in prop::collection::vec((0u64..64, 0u64..20, 0u8..5), 0..40),
        ) {
            let mut table = CodeTable::default();
            let mut truth: [Option<usize>; 100] = [None; 100];
            let object: Arc<str> = "[jit]".into();
            for (number, (start, len, what)) in steps.into_iter().enumerate() {
                let end = start + len;
                if what == 0 {
                    table.remove(start, end);
                    truth[start as usize..end as usize].fill(None);
                } else {
                    table.insert(start, len, &object, number.to_string().as_bytes());
                    truth[start as usize..end as usize].fill(Some(number));
                }
            }
            for (address, number) in truth.into_iter().enumerate() {
                let expected = number.map(|number| number.to_string());
                prop_assert_eq!(name(&table, address as u64), expected);
            }
            let n_bytes: usize = table.ranges.values().map(|range| bytes(&range.scope)).sum();
            prop_assert_eq!(table.n_bytes(), n_bytes);
        }
    }
}
