//! Debug information made of declarations: for functions whose symbol tells what they are, in load
//! objects that say nothing of them.

use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::known::header::{Declaration, Function, Header, Type};
use crate::known::libstdcxx;
use crate::x86_64::abi::ARGUMENTS;
use dataspace_proto::address::Svma;
use gimli::write::{
    Address, AttributeValue, EndianVec, Expression, LineProgram, Range, RangeList, Sections, Unit,
    UnitEntryId,
};
use gimli::{Encoding, Format, LittleEndian, SectionId};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

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

    /// That of a function without a symbol that this one calls: its callers tell what it gets.
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
    /// Whether `svma` is in its code.
    pub(crate) fn holds(&self, svma: Svma) -> bool {
        svma.offset_from(self.start).is_some_and(|into| into < self.n_bytes)
    }
}

/// Debug information that has these functions and the types that they are declared with; `None` where
/// there are none.
pub(crate) fn dwarf(known: &[Known]) -> Option<Dwarf> {
    let mut dwarf = gimli::write::Dwarf::new();
    for header in libstdcxx::HEADERS {
        let is_here = |known: &&Known| std::ptr::eq(known.prototype.header, *header);
        let functions: Vec<&Known> = known.iter().filter(is_here).collect();
        if !functions.is_empty() {
            dwarf.units.add(UnitOfHeader::write(header, &functions));
        }
    }
    if dwarf.units.count() == 0 {
        return None;
    }
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    if let Err(error) = dwarf.write(&mut sections) {
        tracing::warn!(%error, "declarations left out");
        return None;
    }
    let load = |id: SectionId| -> Result<Reader, gimli::Error> {
        let bytes = sections.get(id).map_or(&[][..], |section| section.slice());
        Ok(Reader::of_bytes(bytes.into()))
    };
    Dwarf::load(load).ok()
}

/// One header's unit, being written.
struct UnitOfHeader {
    unit: Unit,
    /// Name spaces and declared types by their qualified names.
    named: FxHashMap<String, UnitEntryId>,
    base: FxHashMap<&'static str, UnitEntryId>,
}

impl UnitOfHeader {
    fn write(header: &'static Header, functions: &[&Known]) -> Unit {
        let encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };
        let unit = Unit::new(encoding, LineProgram::none());
        let mut this = Self { unit, named: FxHashMap::default(), base: FxHashMap::default() };
        let root = this.unit.root();
        this.set_name(root, header.name);
        let language = AttributeValue::Language(gimli::DW_LANG_C_plus_plus_14);
        this.unit.get_mut(root).set(gimli::DW_AT_language, language);
        let ranges = functions.iter().map(|known| Range::StartLength {
            begin: Address::Constant(known.start.0),
            length: known.n_bytes,
        });
        let ranges = this.unit.ranges.add(RangeList(ranges.collect()));
        this.unit.get_mut(root).set(gimli::DW_AT_ranges, AttributeValue::RangeListRef(ranges));
        // Types refer to each other.
        for (name, declaration) in header.types {
            let entry = this.add_in_scope(name, declaration.tag());
            this.named.insert((*name).to_owned(), entry);
        }
        for (name, declaration) in header.types {
            this.declare(name, declaration);
        }
        for known in functions {
            this.define(known);
        }
        this.unit
    }

    fn set_name(&mut self, entry: UnitEntryId, name: &str) {
        let name = AttributeValue::String(name.as_bytes().to_vec());
        self.unit.get_mut(entry).set(gimli::DW_AT_name, name);
    }

    fn set_type(&mut self, entry: UnitEntryId, of: &'static Type) {
        let of = AttributeValue::UnitRef(self.type_entry(of));
        self.unit.get_mut(entry).set(gimli::DW_AT_type, of);
    }

    fn set_number(&mut self, entry: UnitEntryId, attribute: gimli::DwAt, number: u64) {
        self.unit.get_mut(entry).set(attribute, AttributeValue::Udata(number));
    }

    /// An entry below those that its qualified name names.
    fn add_in_scope(&mut self, qualified: &str, tag: gimli::DwTag) -> UnitEntryId {
        let Some((scope, name)) = qualified.rsplit_once("::") else {
            let entry = self.unit.add(self.unit.root(), tag);
            self.set_name(entry, qualified);
            return entry;
        };
        let scope = match self.named.get(scope) {
            Some(known) => *known,
            None => {
                let entry = self.add_in_scope(scope, gimli::DW_TAG_namespace);
                self.named.insert(scope.to_owned(), entry);
                entry
            }
        };
        let entry = self.unit.add(scope, tag);
        self.set_name(entry, name);
        entry
    }

    fn declare(&mut self, name: &str, declaration: &'static Declaration) {
        let Some(entry) = self.named.get(name).copied() else { return };
        match declaration {
            Declaration::Structure { n_bytes, members } => {
                self.set_number(entry, gimli::DW_AT_byte_size, *n_bytes);
                for (name, place, of) in *members {
                    let member = self.unit.add(entry, gimli::DW_TAG_member);
                    self.set_name(member, name);
                    self.set_type(member, of);
                    self.set_number(member, gimli::DW_AT_data_member_location, *place);
                }
            }
            Declaration::Enumeration { underlying, n_bytes, values } => {
                self.set_number(entry, gimli::DW_AT_byte_size, *n_bytes);
                self.set_type(entry, underlying);
                for (number, name) in (0..).zip(*values) {
                    let value = self.unit.add(entry, gimli::DW_TAG_enumerator);
                    self.set_name(value, name);
                    self.set_number(value, gimli::DW_AT_const_value, number);
                }
            }
            Declaration::Alias(of) => self.set_type(entry, of),
        }
    }

    fn type_entry(&mut self, of: &'static Type) -> UnitEntryId {
        let (tag, inner) = match of {
            Type::Declared(name) => {
                // One that is missing is not described: a test holds that there is none.
                return self.named.get(*name).copied().unwrap_or(self.unit.root());
            }
            Type::Base(name, n_bytes, encoding) => {
                return self.base_type(name, *n_bytes, *encoding);
            }
            Type::Pointer(inner) => (gimli::DW_TAG_pointer_type, inner),
            Type::Reference(inner) => (gimli::DW_TAG_reference_type, inner),
            Type::Const(inner) => (gimli::DW_TAG_const_type, inner),
        };
        let entry = self.unit.add(self.unit.root(), tag);
        if tag != gimli::DW_TAG_const_type {
            self.set_number(entry, gimli::DW_AT_byte_size, 8);
        }
        self.set_type(entry, inner);
        entry
    }

    fn base_type(
        &mut self,
        name: &'static str,
        n_bytes: u64,
        encoding: gimli::DwAte,
    ) -> UnitEntryId {
        if let Some(known) = self.base.get(name) {
            return *known;
        }
        let entry = self.unit.add(self.unit.root(), gimli::DW_TAG_base_type);
        self.set_name(entry, name);
        self.set_number(entry, gimli::DW_AT_byte_size, n_bytes);
        self.unit.get_mut(entry).set(gimli::DW_AT_encoding, AttributeValue::Encoding(encoding));
        self.base.insert(name, entry);
        entry
    }

    /// The entry of a function where it is.
    fn define(&mut self, known: &Known) {
        let entry = match known.prototype.function {
            Some(function) => {
                let entry = self.add_in_scope(function.name, gimli::DW_TAG_subprogram);
                let symbol = AttributeValue::String(function.symbol.as_bytes().to_vec());
                self.unit.get_mut(entry).set(gimli::DW_AT_linkage_name, symbol);
                self.unit.get_mut(entry).set(gimli::DW_AT_external, AttributeValue::Flag(true));
                if let Some(result) = &function.result {
                    self.set_type(entry, result);
                }
                for (register, (name, of)) in ARGUMENTS.iter().zip(function.parameters) {
                    self.add_parameter(entry, *register, name, of);
                }
                entry
            }
            None => self.unit.add(self.unit.root(), gimli::DW_TAG_subprogram),
        };
        let start = AttributeValue::Address(Address::Constant(known.start.0));
        self.unit.get_mut(entry).set(gimli::DW_AT_low_pc, start);
        self.set_number(entry, gimli::DW_AT_high_pc, known.n_bytes);
    }

    /// A parameter that is said to be what its register holds when the function is entered.
    fn add_parameter(
        &mut self,
        function: UnitEntryId,
        register: u8,
        name: &str,
        of: &'static Type,
    ) {
        let parameter = self.unit.add(function, gimli::DW_TAG_formal_parameter);
        self.set_name(parameter, name);
        self.set_type(parameter, of);
        let mut at_entry = Expression::new();
        at_entry.op_reg(gimli::Register(u16::from(register)));
        let mut place = Expression::new();
        place.op_entry_value(at_entry);
        place.op(gimli::DW_OP_stack_value);
        let place = AttributeValue::Exprloc(place);
        self.unit.get_mut(parameter).set(gimli::DW_AT_location, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type as a demangled symbol spells it.
    fn spelled(of: &Type) -> String {
        match of {
            Type::Declared("std::size_t") => "unsigned long".to_owned(),
            Type::Declared(name) | Type::Base(name, ..) => (*name).to_owned(),
            Type::Pointer(inner) => format!("{}*", spelled(inner)),
            Type::Reference(inner) => format!("{}&", spelled(inner)),
            Type::Const(inner) => format!("{} const", spelled(inner)),
        }
    }

    fn declared(of: &Type) -> Option<&'static str> {
        match of {
            Type::Declared(name) => Some(name),
            Type::Base(..) => None,
            Type::Pointer(inner) | Type::Reference(inner) | Type::Const(inner) => declared(inner),
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

    #[test]
    fn headers_declare_all_types_that_they_use() {
        for header in libstdcxx::HEADERS {
            let members = header.types.iter().flat_map(|(_, declaration)| match declaration {
                Declaration::Structure { members, .. } => {
                    members.iter().map(|(.., of)| of).collect::<Vec<&Type>>()
                }
                Declaration::Enumeration { underlying, .. } => vec![underlying],
                Declaration::Alias(of) => vec![of],
            });
            let passed = header.functions.iter().flat_map(|function| {
                function.parameters.iter().map(|(_, of)| of).chain(&function.result)
            });
            for name in members.chain(passed).filter_map(declared) {
                assert!(header.types.iter().any(|(known, _)| *known == name), "{name}");
            }
        }
    }

    #[test]
    fn all_that_is_declared_can_be_written() {
        let all: Vec<Known> = functions()
            .map(|(_, function)| Prototype::of_symbol(function.symbol).unwrap())
            .chain(
                functions()
                    .map(|(_, function)| Prototype::of_symbol(function.symbol).unwrap().callee()),
            )
            .zip(1..)
            .map(|(prototype, n)| Known { prototype, start: Svma(n << 12), n_bytes: 64 })
            .collect();
        let dwarf = dwarf(&all).unwrap();
        let mut units = dwarf.units();
        let mut n_units = 0;
        while units.next().unwrap().is_some() {
            n_units += 1;
        }
        assert_eq!(n_units, libstdcxx::HEADERS.len());
        assert!(super::dwarf(&[]).is_none());
    }
}
