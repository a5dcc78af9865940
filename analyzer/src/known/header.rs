//! Declarations of library headers, as tables write them.

/// A type as a header writes it.
#[derive(Debug)]
pub(crate) enum Type {
    /// One that the header declares, by its qualified name.
    Declared(&'static str),
    /// A type of the language: its name as gcc spells it, its bytes, its encoding.
    Base(&'static str, u64, gimli::DwAte),
    Pointer(&'static Self),
    Reference(&'static Self),
    Const(&'static Self),
}

/// What a header declares under a qualified name.
#[derive(Debug)]
pub(crate) enum Declaration {
    Structure {
        n_bytes: u64,
        /// Name, place and type.
        members: &'static [(&'static str, u64, Type)],
    },
    Enumeration {
        underlying: Type,
        n_bytes: u64,
        /// In their order, from 0 on.
        values: &'static [&'static str],
    },
    Alias(Type),
}

impl Declaration {
    pub(crate) const fn tag(&self) -> gimli::DwTag {
        match self {
            Self::Structure { .. } => gimli::DW_TAG_structure_type,
            Self::Enumeration { .. } => gimli::DW_TAG_enumeration_type,
            Self::Alias(_) => gimli::DW_TAG_typedef,
        }
    }
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

/// What belongs together, and is said to be of one unit.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    /// What is around others stands before them.
    pub(crate) types: &'static [(&'static str, Declaration)],
    pub(crate) functions: &'static [Function],
}
