//! The terms of an event between slashes: `event=0xd1,umask=0x20,period=1000`.

use crate::error::EventParseError;

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// A word: the name of an event, or a bit to set.
    Word(String),
    /// A value for some bits.
    Value(String, u64),
    /// `name=`: what the event is to be called.
    Name(String),
    /// `r1cd`: the raw encoding.
    Raw(u64),
}

/// Reads the terms of `text`, which stand between its slashes.
pub(super) fn terms(text: &str, list: &str) -> Result<Vec<Term>, EventParseError> {
    list.split(',').map(str::trim).filter(|term| !term.is_empty()).map(|t| term(text, t)).collect()
}

fn term(text: &str, term: &str) -> Result<Term, EventParseError> {
    let Some((key, value)) = term.split_once('=') else {
        return Ok(raw(term).map_or_else(|| Term::Word(term.to_owned()), Term::Raw));
    };
    if key == "name" {
        return Ok(Term::Name(value.trim_matches(['\'', '"']).to_owned()));
    }
    let bad = || EventParseError::BadTerm { text: text.to_owned(), term: term.to_owned() };
    Ok(Term::Value(key.to_owned(), number(value).ok_or_else(bad)?))
}

/// `r1cd`: a raw encoding.
pub(super) fn raw(text: &str) -> Option<u64> {
    let hex = text.strip_prefix('r')?;
    // A sign would be taken too.
    hex.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u64::from_str_radix(hex, 16).ok())?
}

/// A number in base ten, or after `0x` in base sixteen.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
