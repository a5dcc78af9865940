//! Windows: the spans that metrics are summed over, which a session chooses, and the metrics over each.

use crate::snapshot::Metrics;
use schemars::JsonSchema;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// Windows of a session at most, without the one since it began.
pub const MAX_WINDOWS: usize = 4;

/// The longest window, in seconds. Each second that a window looks back to is kept, with what it added to
/// each object: 150 bytes for each one that was accessed, and for what it is in. That is 5 MB for a hundred
/// objects and the longest window, and 375 MB for as many as a session tells apart.
pub const MAX_WINDOW_S: u16 = 300;

/// Seconds of a time as it is typed: a number, or one with ms, s, m, min or h after it.
#[must_use]
pub fn typed_seconds(text: &str) -> Option<f64> {
    let number_len = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_len);
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// One span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// Since the session began.
    #[default]
    All,
    /// The last so many seconds.
    Last(u16),
}

/// As in JSON: `all`, `60s`.
impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::All => out.write_str("all"),
            Window::Last(seconds) => write!(out, "{seconds}s"),
        }
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Window::All);
        }
        let digits = text.strip_suffix('s').filter(|digits| !digits.starts_with(['0', '+']));
        let seconds = digits.and_then(|digits| digits.parse().ok());
        seconds.map(Window::Last).ok_or_else(|| "expected a window: all, 60s, 10s".to_owned())
    }
}

/// Windows of a session in seconds, without the one since it began: 1 to 4 different lengths, each of 1
/// to 300 seconds.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
#[schemars(extend("minItems" = 1, "maxItems" = MAX_WINDOWS, "uniqueItems" = true))]
#[schemars(extend("items" = {"type": "integer", "minimum": 1, "maximum": MAX_WINDOW_S}))]
pub struct WindowLengths {
    /// Longest first; 0 after the last one.
    seconds: [u16; MAX_WINDOWS],
}

impl Default for WindowLengths {
    fn default() -> Self {
        Self { seconds: [60, 10, 1, 0] }
    }
}

impl fmt::Debug for WindowLengths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.seconds()).finish()
    }
}

impl TryFrom<Vec<u64>> for WindowLengths {
    type Error = String;

    fn try_from(wanted: Vec<u64>) -> Result<Self, String> {
        let mut seconds = [0; MAX_WINDOWS];
        if wanted.is_empty() || wanted.len() > MAX_WINDOWS {
            return Err(format!("a session has 1 to {MAX_WINDOWS} windows, and all"));
        }
        for (slot, wanted) in seconds.iter_mut().zip(&wanted) {
            let length = u16::try_from(*wanted).ok();
            *slot = length
                .filter(|length| (1..=MAX_WINDOW_S).contains(length))
                .ok_or_else(|| format!("a window has 1 to {MAX_WINDOW_S} seconds"))?;
        }
        seconds.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        let lengths = Self { seconds };
        match lengths.seconds().windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the window of {} s is there twice", pair[0])),
            None => Ok(lengths),
        }
    }
}

impl From<WindowLengths> for Vec<u64> {
    fn from(lengths: WindowLengths) -> Self {
        lengths.seconds().iter().copied().map(u64::from).collect()
    }
}

impl WindowLengths {
    /// Longest first.
    #[must_use]
    pub fn seconds(&self) -> &[u16] {
        let n_windows = self.seconds.iter().take_while(|length| **length != 0).count();
        &self.seconds[..n_windows]
    }

    /// All windows of the session, shortest first, at last the one since it began.
    pub fn windows(&self) -> impl Iterator<Item = Window> {
        let recent = self.seconds().iter().rev().copied().map(Window::Last);
        recent.chain([Window::All])
    }

    /// The longest window of at most `seconds`; the shortest, where all are longer.
    #[must_use]
    pub fn at_most(&self, seconds: u16) -> Window {
        let lengths = self.seconds();
        let length = lengths.iter().find(|length| **length <= seconds).or(lengths.last());
        length.copied().map_or(Window::All, Window::Last)
    }
}

/// Metrics since the session began, and over each of its windows, longest first: `60s`, `10s` and `1s`
/// unless it has `windows_s` of its own.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(with = "BTreeMap<String, Metrics>", extend("required" = ["all"]))]
pub struct Windows {
    /// Since the session began.
    pub all: Metrics,
    lengths: WindowLengths,
    /// By length; none where nothing was summed.
    last: Vec<Metrics>,
}

static NOTHING: LazyLock<Metrics> = LazyLock::new(Metrics::default);

impl Windows {
    /// Takes what `metrics` gives for each window of `lengths`, and for the one since the session began.
    pub fn new(lengths: WindowLengths, mut metrics: impl FnMut(Window) -> Metrics) -> Self {
        Self {
            all: metrics(Window::All),
            lengths,
            last: lengths.seconds().iter().map(|length| metrics(Window::Last(*length))).collect(),
        }
    }

    /// The lengths of the windows.
    #[must_use]
    pub const fn lengths(&self) -> WindowLengths {
        self.lengths
    }

    /// The metrics of `window`; nothing, where the session has not got it.
    #[must_use]
    pub fn get(&self, window: Window) -> &Metrics {
        let Window::Last(seconds) = window else { return &self.all };
        let slot = self.lengths.seconds().iter().position(|length| *length == seconds);
        slot.and_then(|slot| self.last.get(slot)).unwrap_or(&NOTHING)
    }
}

impl Serialize for Windows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lengths = self.lengths.seconds();
        let windows = [Window::All].into_iter().chain(lengths.iter().copied().map(Window::Last));
        serializer.collect_map(windows.map(|window| (Name(window), self.get(window))))
    }
}

/// A window as a key.
struct Name(Window);

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Windows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WindowsVisitor)
    }
}

struct WindowsVisitor;

impl<'de> Visitor<'de> for WindowsVisitor {
    type Value = Windows;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("metrics by window")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Windows, A::Error> {
        let mut all = None;
        let mut last: Vec<(u16, Metrics)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.parse() {
                Ok(Window::All) if all.is_none() => all = Some(map.next_value()?),
                Ok(Window::Last(seconds)) if last.len() < MAX_WINDOWS => {
                    last.push((seconds, map.next_value()?));
                }
                Ok(_) => return Err(A::Error::custom("windows are there twice, or too many")),
                Err(_) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let seconds: Vec<u64> = last.iter().map(|(seconds, _)| u64::from(*seconds)).collect();
        let lengths = WindowLengths::try_from(seconds).map_err(A::Error::custom)?;
        last.sort_unstable_by_key(|(seconds, _)| std::cmp::Reverse(*seconds));
        Ok(Windows {
            all: all.ok_or_else(|| A::Error::missing_field("all"))?,
            lengths,
            last: last.into_iter().map(|(_, metrics)| metrics).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(seconds: &[u64]) -> WindowLengths {
        seconds.to_vec().try_into().unwrap()
    }

    #[test]
    fn lengths_are_few_distinct_and_bounded() {
        assert_eq!(lengths(&[5, 300, 60]).seconds(), [300, 60, 5]);
        assert_eq!(lengths(&[60, 10, 1]), WindowLengths::default());
        let names: Vec<String> = lengths(&[5, 300]).windows().map(|one| one.to_string()).collect();
        assert_eq!(names, ["5s", "300s", "all"]);
        let check = |wrong: &[u64], says: &str| {
            let error = WindowLengths::try_from(wrong.to_vec()).unwrap_err();
            assert!(error.contains(says), "{wrong:?}: {error}");
        };
        check(&[], "1 to 4 windows");
        check(&[1, 2, 3, 4, 5], "1 to 4 windows");
        check(&[0], "1 to 300 seconds");
        check(&[301], "1 to 300 seconds");
        check(&[65_537], "1 to 300 seconds");
        check(&[7, 1, 7], "7 s is there twice");
    }

    #[test]
    fn the_longest_that_is_short_enough_is_found() {
        let check = |seconds: &[u64], at_most: u16, expect: u16| {
            assert_eq!(lengths(seconds).at_most(at_most), Window::Last(expect), "{seconds:?}");
        };
        check(&[60, 10, 1], 10, 10);
        check(&[300, 60, 5], 10, 5);
        check(&[300, 90], 60, 90);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for window in [Window::All, Window::Last(1), Window::Last(300)] {
            assert_eq!(window.to_string().parse(), Ok(window));
        }
        for wrong in ["", "s", "60", "060s", "0s", "+6s", "-6s", "6 s", "99999s", "All"] {
            assert!(wrong.parse::<Window>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn any_windows_are_read_and_written_longest_first_after_all() {
        let metrics = |samples: u64| {
            format!(
                r#"{{"samples":{samples},"loads":0,"stores":0,"latency":0,"tlb_misses":0,"locked":0,"hitm":0,"remote":0,"events":{{}}}}"#
            )
        };
        let (nine, two, one) = (metrics(9), metrics(2), metrics(1));
        let read = |json: &str| serde_json::from_str::<Windows>(json).map_err(|e| e.to_string());
        let json = format!(r#"{{"7s":{one},"later":[],"all":{nine},"300s":{two}}}"#);
        let windows = read(&json).unwrap();
        assert_eq!(windows.get(Window::Last(7)).samples, 1);
        assert_eq!(windows.get(Window::Last(8)).samples, 0);
        let written = serde_json::to_string(&windows).unwrap();
        assert_eq!(written, format!(r#"{{"all":{nine},"300s":{two},"7s":{one}}}"#));
        let check = |json: String, says: &str| {
            let error = read(&json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        };
        check(format!(r#"{{"7s":{one}}}"#), "missing field `all`");
        check(format!(r#"{{"all":{one}}}"#), "1 to 4 windows");
        check(format!(r#"{{"all":{one},"all":{one},"7s":{one}}}"#), "twice");
        check(format!(r#"{{"all":{one},"7s":{one},"7s":{one}}}"#), "twice");
        check(format!(r#"{{"all":{one},"999s":{one}}}"#), "300 seconds");
        let many: String = (1..100).map(|seconds| format!(r#","{seconds}s":{one}"#)).collect();
        check(format!(r#"{{"all":{one}{many}}}"#), "too many");
    }
}
