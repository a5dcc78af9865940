//! Where answers were wrong or missing, so that backtracking can be mended.

use crate::truth::build::Symbols;
use crate::truth::judge::Verdict;
use crate::truth::model::{Model, Truth};
use crate::truth::session::Mapping;
use crate::truth::trace::{Trace, decode};
use dataspace_proto::sample_line::SampleLine;
use iced_x86::{Formatter as _, GasFormatter, Instruction};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What misses are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    model: Model,
    verdict: Verdict,
    is_wrong_address: bool,
    trigger: u64,
    ip: u64,
}

/// One kind of miss at one place.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) n_samples: u64,
    pub(crate) model: Model,
    pub(crate) verdict: Verdict,
    pub(crate) is_wrong_address: bool,
    /// Everything else, in words.
    pub(crate) text: String,
}

/// The misses of one program.
#[derive(Default)]
pub(crate) struct Misses {
    counts: HashMap<Key, (u64, Option<u64>, String)>,
}

impl Misses {
    pub(crate) fn note(
        &mut self,
        model: Model,
        (verdict, is_wrong_address): (Verdict, bool),
        truth: &Truth,
        line: &SampleLine,
    ) {
        let key =
            Key { model, verdict, is_wrong_address, trigger: truth.trigger.ip(), ip: line.ip };
        let first = || {
            let said = line.trigger.filter(|trigger| *trigger != truth.trigger.ip());
            (0, said, answered(line, truth))
        };
        let (count, _, _) = self.counts.entry(key).or_insert_with(first);
        *count += 1;
    }

    /// The misses with the code they are in.
    pub(crate) fn describe(self, build: &str, trace: &Trace, places: &mut Places<'_>) -> Vec<Miss> {
        let mut text = |ip: u64| {
            let instruction = trace.code.get(&ip).map(|bytes| decode(ip, bytes));
            format!("{} {}", places.name(ip), format_instruction(instruction.as_ref()))
        };
        let described = self.counts.into_iter().map(|(key, (n_samples, said, answered))| Miss {
            n_samples,
            model: key.model,
            verdict: key.verdict,
            is_wrong_address: key.is_wrong_address,
            text: format!(
                "{build}\n      truth {}\n      at IP {}{}{answered}",
                text(key.trigger),
                text(key.ip),
                said.map_or(String::new(), |said| format!("\n      said  {}", text(said)))
            ),
        });
        described.collect()
    }
}

fn answered(line: &SampleLine, truth: &Truth) -> String {
    let mut text = String::new();
    if let Some(object) = &line.object {
        text.push_str(&format!("\n      object {object}"));
    }
    if let (Some(addr), Some(source)) = (line.addr, line.addr_source) {
        text.push_str(&format!(
            "\n      address {addr:#x} {source:?}, in truth {:x?}",
            truth.addresses
        ));
    }
    text
}

fn format_instruction(instruction: Option<&Instruction>) -> String {
    let mut text = String::new();
    if let Some(instruction) = instruction {
        GasFormatter::new().format(instruction, &mut text);
    }
    text
}

/// Names of places in the code of one process.
pub(crate) struct Places<'a> {
    pub(crate) mappings: &'a [Mapping],
    /// Where a load object's symbols are, if not in itself.
    pub(crate) instead: (&'a Path, &'a Path),
    symbols: HashMap<Arc<str>, Symbols>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(mappings: &'a [Mapping], instead: (&'a Path, &'a Path)) -> Self {
        Self { mappings, instead, symbols: HashMap::new() }
    }

    /// Function and offset, and the address in the file.
    fn name(&mut self, ip: u64) -> String {
        let Some(mapping) = self.mappings.iter().find(|it| (it.start..it.end).contains(&ip)) else {
            return format!("{ip:#x}");
        };
        let path = Path::new(&*mapping.path);
        let file = if path == self.instead.0 { self.instead.1 } else { path };
        let symbols = self
            .symbols
            .entry(Arc::clone(&mapping.path))
            .or_insert_with(|| Symbols::read(file).unwrap_or_default());
        let svma = symbols.svma(ip - mapping.start + mapping.file_offset);
        let name = symbols.function(svma).map(|(name, offset)| format!("{name}+{offset:#x}"));
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{ip:#x} ({file} {svma:#x} {})", name.unwrap_or_default())
    }
}
