//! Functions that are known by their symbols, in load objects that say nothing of them, and the types that
//! they are declared with.

use crate::dwarf::code::kept::{FunctionScope, LocatedVariable};
use crate::dwarf::variable::location::{VariablePart, VariablePlace};
use crate::known::header::{Declaration, Function, Header, Type};
use crate::known::libstdcxx;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use crate::types::type_expression::{Encoding, Keyword, Prefix, TypeExpression};
use crate::x86_64::abi::ARGUMENTS;
use dataspace_proto::address::Svma;
use gimli::UnitOffset;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock};

/// The declaration of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prototype {
    header: &'static Header,
    /// `None` for one that only the header's other functions call.
    function: Option<&'static Function>,
}

static BY_SYMBOL: LazyLock<FxHashMap<&str, Prototype>> = LazyLock::new(|| {
    let of = |header: &'static Header| {
        let functions = header.functions.iter();
        functions
            .map(move |function| (function.symbol, Prototype { header, function: Some(function) }))
    };
    libstdcxx::HEADERS.iter().copied().flat_map(of).collect()
});

impl Prototype {
    /// The declaration of the function with this symbol.
    pub(crate) fn of_symbol(name: &str) -> Option<Self> {
        BY_SYMBOL.get(name).copied()
    }

    /// The entry of a function without a symbol that this one calls: its callers tell what it gets.
    pub(crate) const fn callee(self) -> Self {
        Self { function: None, ..self }
    }
}

/// A function in a load object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) prototype: Prototype,
    pub(crate) start: Svma,
    pub(crate) n_bytes: u64,
}

impl Known {
    /// Tells whether `svma` is in its code.
    pub(crate) fn holds(&self, svma: Svma) -> bool {
        svma.offset_from(self.start).is_some_and(|into| into < self.n_bytes)
    }

    /// Its first and its last address.
    pub(crate) const fn range(&self) -> (Svma, Svma) {
        (self.start, self.start.plus(self.n_bytes))
    }
}

/// The number of the first header's unit: those of the debug information are below it.
const FIRST_UNIT: UnitIdx = limit::MAX_UNITS as UnitIdx;

/// The known functions of one load object, each header a unit. They are asked for as those are that the file
/// describes.
#[derive(Debug, Default)]
pub(crate) struct DeclaredFunctions {
    units: Vec<HeaderUnit>,
}

/// The part of a header that a load object uses. Its entries are the functions, then the types in the order in which
/// they were come upon.
#[derive(Debug)]
struct HeaderUnit {
    idx: UnitIdx,
    header: &'static Header,
    functions: Vec<Known>,
    types: Vec<&'static Type>,
}

impl DeclaredFunctions {
    /// These functions and what they are declared with.
    pub(crate) fn new(known: &[Known]) -> Self {
        let of_header = |(idx, header): (UnitIdx, &&'static Header)| {
            let is_here = |known: &&Known| std::ptr::eq(known.prototype.header, *header);
            let functions = known.iter().filter(is_here).copied().collect();
            HeaderUnit { idx, header, functions, types: Vec::new() }
        };
        Self { units: (FIRST_UNIT..).zip(libstdcxx::HEADERS).map(of_header).collect() }
    }

    /// First address, end and unit of each function.
    pub(crate) fn code_ranges(&self) -> impl Iterator<Item = (u64, u64, UnitIdx)> {
        self.units.iter().flat_map(|unit| {
            let ranges = unit.functions.iter().map(Known::range);
            ranges.map(|(start, end)| (start.0, end.0, unit.idx))
        })
    }

    /// The function of a unit around `svma`.
    pub(crate) fn function_at(&self, unit: UnitIdx, svma: Svma) -> Option<DieRef> {
        let unit = self.unit(unit)?;
        let at = unit.functions.iter().position(|known| known.holds(svma))?;
        Some(DieRef { unit: unit.idx, offset: UnitOffset(at) })
    }

    /// The range of the function's code.
    pub(crate) fn range_at(&self, unit: UnitIdx, svma: Svma) -> Option<(Svma, Svma)> {
        let functions = &self.unit(unit)?.functions;
        functions.iter().find(|known| known.holds(svma)).map(Known::range)
    }

    /// The function at `die`, every parameter said to be what its register holds when it is entered.
    pub(crate) fn scope(&mut self, die: DieRef) -> Option<FunctionScope> {
        let unit = self.unit_mut(die.unit)?;
        let known = *unit.functions.get(die.offset.0)?;
        let (start, end) = known.range();
        let declared = known.prototype.function;
        let parameters = declared.map_or(&[][..], |function| function.parameters);
        let located = |(register, (name, of)): (&u8, &'static (&str, Type))| {
            let place = VariablePlace::Entry(u16::from(*register));
            let whole = VariablePart { place, offset: 0, n_bytes: None };
            let places = Box::new([(start.0..end.0, whole)]);
            LocatedVariable { name: (*name).into(), type_die: unit.entry(of), depth: 0, places }
        };
        Some(FunctionScope {
            variables: ARGUMENTS.iter().zip(parameters).map(located).collect(),
            unit: unit.idx,
            unit_name: Some(unit.header.name.into()),
            function_name: declared.map(|function| function.name.into()),
            die: Some(die),
            calls: Vec::new(),
            ..FunctionScope::default()
        })
    }

    /// The type of what the function at `die` gives back.
    pub(crate) fn result(&mut self, die: DieRef) -> Option<DieRef> {
        let unit = self.unit_mut(die.unit)?;
        let function = unit.functions.get(die.offset.0)?.prototype.function?;
        function.result.as_ref().map(|of| unit.entry(of))
    }

    /// The layout of the type at `die`.
    pub(crate) fn layout(&mut self, die: DieRef) -> Option<Layout> {
        let unit = self.unit_mut(die.unit)?;
        let of = *unit.types.get(die.offset.0.checked_sub(unit.functions.len())?)?;
        unit.layout(of)
    }

    fn unit(&self, idx: UnitIdx) -> Option<&HeaderUnit> {
        self.units.get(idx.checked_sub(FIRST_UNIT)? as usize)
    }

    fn unit_mut(&mut self, idx: UnitIdx) -> Option<&mut HeaderUnit> {
        self.units.get_mut(idx.checked_sub(FIRST_UNIT)? as usize)
    }
}

impl HeaderUnit {
    /// The entry of a type.
    fn entry(&mut self, of: &'static Type) -> DieRef {
        let at = self.types.iter().position(|known| *known == of).unwrap_or_else(|| {
            self.types.push(of);
            self.types.len() - 1
        });
        DieRef { unit: self.idx, offset: UnitOffset(self.functions.len() + at) }
    }

    /// A type as it is laid out where the compiler describes it: without the names that only stand for
    /// another one, and an aggregate without `const`.
    fn layout(&mut self, of: &'static Type) -> Option<Layout> {
        let scalar = |name: String, n_bytes, kind| {
            let expression = expression(self.header, of);
            Layout::new(expression, name.into(), n_bytes, Shape::Scalar(kind))
        };
        let layout = match of {
            Type::Number(name, n_bytes) => scalar((*name).into(), *n_bytes, ScalarKind::Number),
            Type::Float(name, n_bytes) => scalar((*name).into(), *n_bytes, ScalarKind::Float),
            Type::Pointer(target) | Type::Reference(target) => {
                let layout = scalar(pointer_name(self.header, of), 8, ScalarKind::Pointer);
                Layout { pointee: Some(self.entry(target)), ..layout }
            }
            Type::Const(target) => return self.layout(target),
            Type::Declared(name) => match self.header.declaration(name)? {
                Declaration::Alias(target) => return self.layout(target),
                Declaration::Enumeration { n_bytes } => {
                    scalar((*name).into(), *n_bytes, ScalarKind::Number)
                }
                Declaration::Structure { n_bytes, members } => {
                    let member = |(name, offset, of): &'static (&str, u64, Type)| {
                        let layout = Arc::new(self.layout(of)?);
                        Some(Member { name: (*name).into(), offset: *offset, bits: None, layout })
                    };
                    let members = members.iter().map(member).collect::<Option<_>>()?;
                    let shape = Shape::Aggregate { kind: AggregateKind::Structure, members };
                    let expression = expression(self.header, of);
                    let layout = Layout::new(expression, (*name).into(), *n_bytes, shape);
                    Layout { die: Some(self.entry(of)), ..layout }
                }
            },
        };
        Some(layout)
    }
}

/// A type by its parts.
fn expression(header: &Header, of: &Type) -> Arc<TypeExpression> {
    let prefixed = |prefix, of| TypeExpression::Prefixed { prefix, of: expression(header, of) };
    let number = |name: &str, encoding, n_bytes| TypeExpression::Base {
        name: name.into(),
        encoding,
        n_bytes,
    };
    let named = |keyword, name: &str| TypeExpression::Named { keyword, name: Some(name.into()) };
    let made = match of {
        Type::Number(name, n_bytes) if name.contains("unsigned") => {
            number(name, Encoding::UnsignedInteger, *n_bytes)
        }
        Type::Number(name, n_bytes) => number(name, Encoding::Integer, *n_bytes),
        Type::Float(name, n_bytes) => {
            number(name, Encoding::Other(gimli::DW_ATE_float.0), *n_bytes)
        }
        Type::Pointer(target) => prefixed(Prefix::Pointer, target),
        Type::Reference(target) => prefixed(Prefix::Reference, target),
        Type::Const(target) => prefixed(Prefix::Const, target),
        Type::Declared(name) => match header.declaration(name) {
            Some(Declaration::Alias(target)) => return expression(header, target),
            Some(Declaration::Enumeration { .. }) => named(Keyword::Enumeration, name),
            Some(Declaration::Structure { .. }) | None => named(Keyword::Structure, name),
        },
    };
    made.into()
}

/// A type as C declares a pointer to it: `cell *`.
fn pointer_name(header: &Header, of: &Type) -> String {
    let (target, sign) = match of {
        Type::Number(name, _) | Type::Float(name, _) => return (*name).to_owned(),
        Type::Const(target) => return pointer_name(header, target),
        Type::Declared(name) => {
            return match header.declaration(name) {
                Some(Declaration::Alias(target)) => pointer_name(header, target),
                _ => (*name).to_owned(),
            };
        }
        Type::Pointer(target) => (target, '*'),
        Type::Reference(target) => (target, '&'),
    };
    let target = pointer_name(header, target);
    let blank = if target.ends_with(['*', '&']) { "" } else { " " };
    format!("{target}{blank}{sign}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{has_tool, run};
    use std::process::Command;

    /// A type as a demangled symbol spells it.
    fn spelled(of: &Type) -> String {
        match of {
            Type::Declared("std::size_t") => "unsigned long".to_owned(),
            Type::Declared(name) | Type::Number(name, _) | Type::Float(name, _) => {
                (*name).to_owned()
            }
            Type::Pointer(inner) => format!("{}*", spelled(inner)),
            Type::Reference(inner) => format!("{}&", spelled(inner)),
            Type::Const(inner) => format!("{} const", spelled(inner)),
        }
    }

    fn functions() -> impl Iterator<Item = (&'static Header, &'static Function)> {
        let headers = libstdcxx::HEADERS.iter().copied();
        headers.flat_map(|header| header.functions.iter().map(move |function| (header, function)))
    }

    #[test]
    fn a_function_is_declared_as_its_symbol_says() {
        for (header, function) in functions() {
            let symbol = cpp_demangle::Symbol::new(function.symbol).unwrap().demangle().unwrap();
            let scope = function.name.rsplit_once("::").map(|(scope, _)| scope);
            let is_method = function.parameters.first().is_some_and(|(name, _)| *name == "this");
            assert!(!is_method || header.types.iter().any(|(name, _)| Some(*name) == scope));
            let passed = function.parameters.iter().skip(usize::from(is_method));
            let passed: Vec<String> = passed.map(|(_, of)| spelled(of)).collect();
            let this = function.parameters.first().map(|(_, of)| spelled(of)).filter(|_| is_method);
            let suffix =
                if this.is_some_and(|this| this.contains(" const")) { " const" } else { "" };
            let expected = format!("{}({}){suffix}", function.name, passed.join(", "));
            assert_eq!(symbol, expected);
            assert!(function.parameters.len() <= ARGUMENTS.len(), "{symbol}");
        }
        assert_eq!(functions().count(), BY_SYMBOL.len(), "a symbol is declared once");
    }

    /// Old programs' lists, for which the library keeps copies, are of name spaces of their own.
    const OLD_LISTS: [&str; 2] = ["_ZN10__gnu_norm", "_ZNSt6__norm"];

    #[test]
    fn all_functions_of_the_library_that_go_over_nodes_are_declared() {
        if !has_tool("g++") || !has_tool("nm") {
            return;
        }
        let path = run(Command::new("g++").arg("-print-file-name=libstdc++.so.6"));
        let path = String::from_utf8(path).unwrap();
        let symbols = run(Command::new("nm").args(["-D", "--defined-only", path.trim()]));
        let symbols = String::from_utf8(symbols).unwrap();
        let names = symbols.split_whitespace().filter_map(|word| word.split('@').next());
        let is_of_nodes = |name: &&str| {
            ["_Rb_tree_", "15_List_node_base", "20_Prime_rehash_policy"]
                .iter()
                .any(|class| name.contains(class))
                && !OLD_LISTS.iter().any(|old| name.starts_with(old))
        };
        let names: Vec<&str> = names.filter(is_of_nodes).collect();
        assert!(!names.is_empty());
        for name in names {
            assert!(Prototype::of_symbol(name).is_some(), "{name}");
        }
    }

    #[test]
    fn all_types_of_all_functions_are_laid_out() {
        let known = |(_, function): (&'static Header, &'static Function)| {
            Prototype::of_symbol(function.symbol).unwrap()
        };
        let place = |(prototype, n): (Prototype, u64)| Known {
            prototype,
            start: Svma(n << 12),
            n_bytes: 64,
        };
        let all: Vec<Known> = functions().map(known).zip(1..).map(place).collect();
        let mut declared = DeclaredFunctions::new(&all);
        assert_eq!(declared.code_ranges().count(), all.len());
        for known in all {
            let (.., unit) =
                declared.code_ranges().find(|(start, ..)| *start == known.start.0).unwrap();
            let die = declared.function_at(unit, known.start.plus(63)).unwrap();
            assert_eq!(declared.function_at(unit, known.start.plus(64)), None);
            let function = known.prototype.function.unwrap();
            let scope = declared.scope(die).unwrap();
            assert_eq!(scope.variables.len(), function.parameters.len());
            let result = declared.result(die);
            assert_eq!(result.is_some(), function.result.is_some());
            let parameters = scope.variables.iter().map(|parameter| parameter.type_die);
            let mut due: Vec<DieRef> = parameters.chain(result).collect();
            let mut seen = Vec::new();
            while let Some(die) = due.pop() {
                let layout = declared.layout(die).unwrap();
                assert_ne!(layout.size, 0, "{}", layout.name);
                seen.push(die);
                let mut targets = vec![layout.pointee];
                if let Shape::Aggregate { members, .. } = &layout.shape {
                    targets.extend(members.iter().map(|member| member.layout.pointee));
                }
                due.extend(targets.into_iter().flatten().filter(|die| !seen.contains(die)));
            }
        }
    }
}
