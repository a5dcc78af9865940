//! From the terms of an event to the config words of `perf_event_attr`.

use super::term::{Term, number};
use crate::error::Error;
use crate::error::EventParseError;
use crate::system::machine::{N_CONFIG_WORDS, Pmu, config_word};
use dataspace_proto::event::Sampling;

/// Terms that every PMU has.
const COMMON_TERMS: &str = "period, freq, name, config, config1, config2, config3, config4";

/// Sum of terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) words: [u64; N_CONFIG_WORDS],
    pub(super) sampling: Option<Sampling>,
    /// The name for the event.
    pub(super) name: Option<String>,
    /// The event of sysfs that was named.
    pub(super) alias: Option<String>,
}

impl Encoding {
    /// Encodes the `terms` of `text` for `pmu`.
    ///
    /// What an event's name stands for is set first and what was typed after it, whatever stood
    /// in front: a typed `ldlat` replaces the one that sysfs names (see [`crate::system::machine::Field::set`]).
    ///
    /// # Errors
    /// [`EventParseError`] for a term that the PMU has not got or that does not fit;
    /// [`Error::Sysfs`] if what sysfs says of the event makes no sense.
    pub(super) fn of(text: &str, pmu: &Pmu, terms: &[Term]) -> Result<Self, Error> {
        let mut encoding = Self::default();
        for term in terms {
            if let Term::Word(word) = term
                && let Some(list) = pmu.event(word)
            {
                encoding.named(text, pmu, word, list, terms)?;
            }
        }
        for term in terms {
            match term {
                Term::Word(word) if pmu.event(word).is_some() => {}
                Term::Word(word) => encoding.set(text, pmu, word, 1)?,
                Term::Value(term, value) => encoding.set(text, pmu, term, *value)?,
                Term::Name(name) => encoding.name = Some(name.clone()),
                Term::Raw(config) => encoding.words[0] = *config,
            }
        }
        Ok(encoding)
    }

    /// Sets what the event `name` of sysfs stands for: `event=0xcd,umask=0x1,ldlat=3`.
    fn named(
        &mut self,
        text: &str,
        pmu: &Pmu,
        name: &str,
        list: &str,
        typed: &[Term],
    ) -> Result<(), Error> {
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (term, value) = part.split_once('=').unwrap_or((part, "1"));
            if value == "?" {
                let is_typed = |one: &Term| matches!(one, Term::Value(key, _) if key == term);
                if !typed.iter().any(is_typed) {
                    let (text, event) = (text.to_owned(), name.to_owned());
                    let term = term.to_owned();
                    return Err(EventParseError::MissingTerm { text, event, term }.into());
                }
                continue;
            }
            let is_set = number(value).is_some_and(|value| match pmu.field(term) {
                Some(field) => field.set(value, &mut self.words),
                None => self.set_word(term, value),
            });
            if !is_set {
                let file = pmu.directory.join("events").join(name);
                let why = format!("{part:?} does not fit the PMU's formats");
                return Err(Error::Sysfs { file, why });
            }
        }
        self.alias = Some(name.to_owned());
        Ok(())
    }

    fn set(&mut self, text: &str, pmu: &Pmu, term: &str, value: u64) -> Result<(), Error> {
        match (term, pmu.field(term)) {
            ("period", _) => self.sampling = Some(Sampling::Period(value)),
            ("freq", _) => self.sampling = Some(Sampling::FrequencyHz(value)),
            (_, Some(field)) => {
                if !field.set(value, &mut self.words) {
                    let (text, term, max) = (text.to_owned(), term.to_owned(), field.max());
                    return Err(EventParseError::TermTooLarge { text, term, value, max }.into());
                }
            }
            (_, None) if self.set_word(term, value) => {}
            (_, None) => {
                let known: Vec<_> = pmu.terms().chain([COMMON_TERMS]).collect();
                return Err(EventParseError::UnknownTerm {
                    text: text.to_owned(),
                    pmu: pmu.name.clone(),
                    term: term.to_owned(),
                    known: known.join(", "),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Sets a whole word. Whether `name` is one.
    fn set_word(&mut self, name: &str, value: u64) -> bool {
        let word = config_word(name);
        word.map(|word| self.words[word] = value).is_some()
    }
}
