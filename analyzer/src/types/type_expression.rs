//! Types as the debug information puts them together: qualifiers, pointers and arrays of what has a name.

use crate::bytes::name::spell;
use std::fmt;
use std::sync::Arc;

/// A type by its parts. Attribution compares the parts; a descriptor spells them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum TypeExpression {
    /// A base type (DWARF 5 section 5.1).
    Base {
        /// As the compiler calls it: gcc `long int`, clang `long`, rustc `i64`.
        name: Arc<str>,
        /// The form in which its values are kept.
        encoding: Encoding,
        /// Its size.
        n_bytes: u64,
    },
    /// A type that the program gives a name, or leaves without one.
    Named {
        /// Kind of the type.
        keyword: Keyword,
        /// The name with its name spaces.
        name: Option<Arc<str>>,
    },
    /// A pointer to a type, or a qualified type.
    Prefixed {
        /// The qualifier, pointer or reference.
        prefix: Prefix,
        /// Of this type.
        of: Arc<Self>,
    },
    /// Elements side by side.
    Array {
        /// Number of elements, where the type says.
        count: Option<u64>,
        /// Of this type.
        of: Arc<Self>,
    },
    /// Code.
    Function,
    /// Nothing.
    Void,
    /// A part that the debug information does not tell.
    Unknown,
}

/// The form in which the values of a base type are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Integers and characters, but for the next two.
    Integer,
    /// Integers without a sign.
    UnsignedInteger,
    /// Characters without a sign.
    UnsignedCharacter,
    /// Another encoding by its number (DWARF 5 section 7.8); 0 where none is given.
    Other(u8),
}

/// The word before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keyword {
    /// `struct`
    Structure,
    /// `class`
    Class,
    /// `union`
    Union,
    /// `enum`
    Enumeration,
    /// Neither of these.
    None,
}

/// The step by which a type is made from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// `*`
    Pointer,
    /// `&`
    Reference,
    /// `&&`
    RvalueReference,
    /// `::*`
    PointerToMember,
    /// `const`
    Const,
    /// `volatile`
    Volatile,
    /// `restrict`
    Restrict,
    /// `_Atomic`
    Atomic,
}

impl Prefix {
    const fn is_qualifier(self) -> bool {
        matches!(self, Self::Const | Self::Volatile | Self::Restrict | Self::Atomic)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::Reference => "reference",
            Self::RvalueReference => "rvalue_reference",
            Self::PointerToMember => "pointer_to_member",
            Self::Const => "const",
            Self::Volatile => "volatile",
            Self::Restrict => "restrict",
            Self::Atomic => "atomic",
        }
    }
}

impl Keyword {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Structure => "structure:",
            Self::Class => "class:",
            Self::Union => "union:",
            Self::Enumeration => "enumeration:",
            Self::None => "",
        }
    }
}

impl Encoding {
    const fn without_sign(self) -> Self {
        match self {
            Self::UnsignedInteger | Self::UnsignedCharacter => Self::Integer,
            other => other,
        }
    }
}

impl TypeExpression {
    /// Tells whether a program may reach an object of one type through a pointer to the other: sign,
    /// qualifiers and lengths of arrays do not count (C11 section 6.5 paragraph 7).
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        match (self.bare(), other.bare()) {
            (
                Self::Base { encoding, n_bytes, .. },
                Self::Base { encoding: other, n_bytes: others, .. },
            ) => (encoding.without_sign(), n_bytes) == (other.without_sign(), others),
            // C++ lets a program say `struct` here and `class` there.
            (Self::Named { name, .. }, Self::Named { name: other, .. }) => name == other,
            (Self::Prefixed { prefix, of }, Self::Prefixed { prefix: other, of: others }) => {
                prefix == other && of.is_alike(others)
            }
            (one, other) => one == other,
        }
    }

    /// Tells whether it is a character without a sign, perhaps qualified: C's `unsigned char`.
    #[must_use]
    pub fn is_unsigned_character(&self) -> bool {
        matches!(self.bare(), Self::Base { encoding: Encoding::UnsignedCharacter, .. })
    }

    /// Tells whether its values have no sign.
    #[must_use]
    pub fn is_unsigned(&self) -> bool {
        let is_so = |it| matches!(it, Encoding::UnsignedInteger | Encoding::UnsignedCharacter);
        matches!(self.bare(), Self::Base { encoding, .. } if is_so(*encoding))
    }

    /// Tells whether its values are true and false.
    #[must_use]
    pub fn is_truth(&self) -> bool {
        let truth = Encoding::Other(gimli::DW_ATE_boolean.0);
        matches!(self.bare(), Self::Base { encoding, .. } if *encoding == truth)
    }

    /// Tells whether it is a pointer to nothing, over however many others: `void *`, `void **`.
    #[must_use]
    pub fn leads_to_nothing(&self) -> bool {
        let mut next = self.bare();
        while let Self::Prefixed { of, .. } = next {
            next = of.bare();
            if *next == Self::Void {
                return true;
            }
        }
        false
    }

    /// The type without qualifiers, or that of an array's elements.
    fn bare(&self) -> &Self {
        match self {
            Self::Prefixed { prefix, of } if prefix.is_qualifier() => of.bare(),
            Self::Array { of, .. } => of.bare(),
            other => other,
        }
    }

    /// The same type if what has no name in it is called `name`, as C calls it by its typedef.
    /// `None` where it has a name.
    #[must_use]
    pub fn called(&self, name: &Arc<str>) -> Option<Self> {
        match self {
            Self::Named { keyword, name: None } if *keyword != Keyword::None => {
                Some(Self::Named { keyword: *keyword, name: Some(Arc::clone(name)) })
            }
            Self::Prefixed { prefix, of } => {
                Some(Self::Prefixed { prefix: *prefix, of: of.called(name)?.into() })
            }
            Self::Array { count, of } => {
                Some(Self::Array { count: *count, of: of.called(name)?.into() })
            }
            _ => None,
        }
    }

    /// The array of `count` elements of this type.
    #[must_use]
    pub fn array_of(of: &Arc<Self>, count: Option<u64>) -> Arc<Self> {
        Arc::new(Self::Array { count, of: Arc::clone(of) })
    }
}

/// As descriptors spell types, without blanks: `structure:cell`, `pointer+structure:cell`, `long_int`.
impl fmt::Display for TypeExpression {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base { name, .. } => to.write_str(&spell(name)),
            Self::Named { keyword, name } => {
                to.write_str(keyword.prefix())?;
                to.write_str(&name.as_deref().map_or_else(|| "-".to_owned(), spell))
            }
            Self::Prefixed { prefix, of } => write!(to, "{}+{of}", prefix.word()),
            Self::Array { count: Some(count), of } => write!(to, "array[{count}]:{of}"),
            Self::Array { count: None, of } => write!(to, "array[]:{of}"),
            Self::Function => to.write_str("function"),
            Self::Void => to.write_str("void"),
            Self::Unknown => to.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(name: &str, n_bytes: u64) -> Arc<TypeExpression> {
        Arc::new(TypeExpression::Base { name: name.into(), encoding: Encoding::Integer, n_bytes })
    }

    fn prefixed(prefix: Prefix, of: &Arc<TypeExpression>) -> Arc<TypeExpression> {
        Arc::new(TypeExpression::Prefixed { prefix, of: Arc::clone(of) })
    }

    #[test]
    fn numbers_are_alike_by_how_they_are_kept_and_not_by_name() {
        let (long, renamed, int) = (base("long unsigned int", 8), base("i64_t", 8), base("int", 4));
        assert!(long.is_alike(&renamed) && !long.is_alike(&int));
        let constant = prefixed(Prefix::Const, &TypeExpression::array_of(&renamed, Some(3)));
        assert!(constant.is_alike(&long));
        let pointer = |to| prefixed(Prefix::Pointer, to);
        assert!(pointer(&constant).is_alike(&pointer(&long)));
        assert!(!pointer(&int).is_alike(&pointer(&long)) && !pointer(&long).is_alike(&long));
        assert!(!pointer(&int).is_alike(&prefixed(Prefix::Reference, &int)));
    }

    #[test]
    fn a_typedef_calls_what_has_no_name() {
        let unnamed = Arc::new(TypeExpression::Named { keyword: Keyword::Structure, name: None });
        let constant = prefixed(Prefix::Const, &unnamed);
        assert_eq!(constant.to_string(), "const+structure:-");
        let called = constant.called(&"pos_t".into()).unwrap();
        assert_eq!(called.to_string(), "const+structure:pos_t");
        assert!(called.called(&"other".into()).is_none());
    }
}
