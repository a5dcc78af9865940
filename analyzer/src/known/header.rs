//! Declarations of library headers, as tables write them.

/// A type as a header writes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// One that the header declares, by its qualified name.
    Declared(&'static str),
    /// A whole number or truth value of the language: its name as gcc spells it, and its bytes.
    Number(&'static str, u64),
    /// The same, a floating-point number.
    Float(&'static str, u64),
    Pointer(&'static Self),
    Reference(&'static Self),
    Const(&'static Self),
}

/// A header's declaration of a qualified name.
#[derive(Debug)]
pub(crate) enum Declaration {
    Structure {
        n_bytes: u64,
        /// Name, place and type.
        members: &'static [(&'static str, u64, Type)],
    },
    Enumeration {
        n_bytes: u64,
    },
    Alias(Type),
}

/// A function that is in a library, all of whose parameters are passed in general registers.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name in the symbol table.
    pub(crate) symbol: &'static str,
    /// Its qualified name.
    pub(crate) name: &'static str,
    /// `None` also where it tells nothing.
    pub(crate) result: Option<Type>,
    /// Names and types; a method's object is the first.
    pub(crate) parameters: &'static [(&'static str, Type)],
}

/// Types and functions that belong together, and are said to be of one unit.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    pub(crate) types: &'static [(&'static str, Declaration)],
    pub(crate) functions: &'static [Function],
}

impl Header {
    /// Finds the type that it declares under this name.
    pub(crate) fn declaration(&self, name: &str) -> Option<&'static Declaration> {
        self.types.iter().find(|(known, _)| *known == name).map(|(_, declaration)| declaration)
    }
}
