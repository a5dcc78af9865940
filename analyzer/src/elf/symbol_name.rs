//! The meaning of a data symbol's name: a variable's qualified name, or what the compiler made
//! and for which type.

use crate::bytes::name::spell;
use crate::known::{compiler, mangling};
use crate::limit;
use std::fmt::Write;

/// The thing that a data symbol stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SymbolName {
    /// A variable of the program, by its qualified name.
    Variable(String),
    /// An object that the compiler made, as a descriptor spells it: `vtable for ns::Shape`.
    Made(String),
    /// A constant that has a number for a name.
    Nameless,
}

impl SymbolName {
    pub(crate) fn of(symbol: &str) -> Self {
        if compiler::is_nameless(symbol) {
            return Self::Nameless;
        }
        if let Some((_, made)) =
            mangling::MADE.iter().find(|(prefix, _)| symbol.starts_with(prefix))
            && let Some(demangled) = demangled(symbol)
        {
            return Self::Made(format!("{made}{}", spell(inner(&demangled, made))));
        }
        Self::Variable(variable_name(symbol))
    }
}

/// The qualified name of a variable with this symbol.
pub(crate) fn variable_name(symbol: &str) -> String {
    if mangling::is_rust(symbol)
        && let Ok(name) = rustc_demangle::try_demangle(symbol)
    {
        let mut bounded = Bounded::default();
        // What is cut off at the limit is an error of the writer's, and is left out.
        let _ = write!(bounded, "{name:#}");
        return bounded.0;
    }
    let demangled = mangling::is_cpp(symbol).then(|| demangled(symbol)).flatten();
    demangled.unwrap_or_else(|| compiler::unnumbered(symbol).to_owned())
}

fn demangled(symbol: &str) -> Option<String> {
    let parsed = cpp_demangle::Symbol::new(symbol.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let mut bounded = Bounded::default();
    parsed.structured_demangle(&mut bounded, &options).ok()?;
    Some(bounded.0)
}

/// The demangler writes `{vtable(T)}` and `{vtt(T)}`, but `typeinfo for T`.
fn inner<'a>(demangled: &'a str, made: &str) -> &'a str {
    let braced = demangled.strip_prefix('{').and_then(|rest| rest.strip_suffix(")}"));
    let inner = braced.and_then(|braced| braced.split_once('(')).map(|(_, inner)| inner);
    inner.or_else(|| demangled.strip_prefix(made)).unwrap_or(demangled)
}

/// Text of limited length: substitutions can make a short symbol as long as one likes.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len().saturating_add(text.len()) > limit::MAX_NAME_BYTES {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_tell_what_they_stand_for() {
        let made = |name: &str| SymbolName::Made(name.to_owned());
        let variable = |name: &str| SymbolName::Variable(name.to_owned());
        for (symbol, expected) in [
            ("_ZTV6Square", made("vtable for Square")),
            ("_ZTIN2ns5ShapeE", made("typeinfo for ns::Shape")),
            ("_ZTS6Square", made("typeinfo name for Square")),
            ("_ZTT1D", made("VTT for D")),
            ("_ZTV3MapIilE", made("vtable for Map<int,_long>")),
            ("_ZGVZ3onevE8instance", made("guard variable for one()::instance")),
            ("_ZN2ns5tableE", variable("ns::table")),
            ("_ZL7counter", variable("counter")),
            ("_ZN1m5TABLE17h0123456789abcdefE", variable("m::TABLE")),
            ("n_calls.1", variable("n_calls")),
            ("pool.lto_priv.0", variable("pool")),
            ("environ", variable("environ")),
            ("_Zno", variable("_Zno")),
            ("anon.0123456789abcdef.7", SymbolName::Nameless),
            (".Lanon.0123456789abcdef.7", SymbolName::Nameless),
        ] {
            assert_eq!(SymbolName::of(symbol), expected, "{symbol}");
        }
    }
}
