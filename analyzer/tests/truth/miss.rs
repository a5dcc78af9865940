//! Where answers were wrong or missing, so that backtracking can be mended.

use crate::truth::build::Symbols;
use crate::truth::judge::Verdict;
use crate::truth::model::{Model, Truth};
use crate::truth::session::Mapping;
use crate::truth::step::Pick;
use crate::truth::trace::{Trace, decode};
use dataspace_proto::sample_line::SampleLine;
use iced_x86::{Formatter as _, GasFormatter, Instruction};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What misses of one program are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    model: Model,
    verdict: Verdict,
    is_wrong_address: bool,
    trigger: u64,
    ip: u64,
    said: Option<u64>,
}

/// One miss, for an example.
struct Example {
    n_samples: u64,
    pick: Pick,
    answer: String,
}

/// The misses of one program.
#[derive(Default)]
pub(crate) struct Misses(HashMap<Key, Example>);

/// One kind of miss at one place.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) n_samples: u64,
    pub(crate) model: Model,
    pub(crate) verdict: Verdict,
    pub(crate) is_wrong_address: bool,
    /// Trigger, IP and what was said. Of a library's code it is the same in all programs.
    pub(crate) place: String,
    /// What came between, and what else was said, for one of the samples.
    pub(crate) example: String,
}

impl Misses {
    pub(crate) fn note(
        &mut self,
        model: Model,
        (verdict, is_wrong_address): (Verdict, bool),
        (pick, truth): (&Pick, &Truth),
        (line, known): (&SampleLine, Option<&str>),
    ) {
        let trigger = truth.trigger.ip();
        let said = line.trigger.filter(|said| *said != trigger);
        let key = Key { model, verdict, is_wrong_address, trigger, ip: line.ip, said };
        let first = || Example { n_samples: 0, pick: *pick, answer: answer(line, truth, known) };
        self.0.entry(key).or_insert_with(first).n_samples += 1;
    }

    /// The misses with the code they are in.
    pub(crate) fn describe(self, trace: &Trace, places: &mut Places<'_>) -> Vec<Miss> {
        let text = |ip: u64| {
            let instruction = trace.code.get(&ip).map(|bytes| decode(ip, bytes));
            format_instruction(instruction.as_ref())
        };
        let describe = |(key, example): (Key, Example)| {
            let mut line = |title: &str, ip: u64| {
                format!("\n        {title} {:<24} {}", text(ip), places.name(ip))
            };
            let mut place = line("truth", key.trigger);
            place.push_str(&line("IP   ", key.ip));
            place.extend(key.said.map(|said| line("said ", said)));
            let mut between = String::new();
            for ip in example.pick.between.into_iter().filter(|ip| *ip != 0) {
                between.push_str(&format!("\n          then {}", text(ip)));
            }
            let is_skidding = matches!(key.model, Model::Random | Model::RandomAddressed);
            Miss {
                n_samples: example.n_samples,
                model: key.model,
                verdict: key.verdict,
                is_wrong_address: key.is_wrong_address,
                place,
                example: if is_skidding { between } else { String::new() } + &example.answer,
            }
        };
        self.0.into_iter().map(describe).collect()
    }
}

fn answer(line: &SampleLine, truth: &Truth, known: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(object) = &line.object {
        text.push_str(&format!("\n        object {object}"));
    }
    if let Some(known) = known {
        text.push_str(&format!("\n        is in truth {known}"));
    }
    if let (Some(addr), Some(source)) = (line.addr, line.addr_source) {
        let source = format!("{source:?}").to_lowercase();
        text.push_str(&format!("\n        {source} {addr:#x}, in truth {:x?}", truth.addresses));
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
    mappings: &'a [Mapping],
    /// A load object, and where its symbols are.
    instead: (&'a Path, &'a Path),
    symbols: HashMap<Arc<str>, Symbols>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(mappings: &'a [Mapping], instead: (&'a Path, &'a Path)) -> Self {
        Self { mappings, instead, symbols: HashMap::new() }
    }

    /// File, address in it, function and offset.
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
        format!("{file} {svma:#x} {}", name.unwrap_or_default())
    }
}
