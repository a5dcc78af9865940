//! Readers of single values on the command line.

use crate::config::Skid;
use dataspace_proto::event::SkidModel;
use dataspace_proto::measure::Measure;
use dataspace_proto::window::{WindowLengths, typed_seconds};
use std::time::Duration;

/// The longest duration: 100 years, so that adding it to a clock cannot overflow.
const MAX_SECONDS: f64 = 100.0 * 365.25 * 86_400.0;

/// The shortest interval: below it, printing would be the profiler's main work.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// The furthest that `--skid N` walks back: longer than any skid that hardware is known for.
const MAX_SKID: u32 = 256;

/// One `--event`: names between commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventList(pub(crate) Vec<String>);

/// A process or thread number.
pub(super) fn task(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(id) if id > 0 => Ok(id),
        _ => Err("expected the number of a process or thread, as `pgrep -n NAME` prints it".into()),
    }
}

/// Splits at the commas that separate events, not at those between an event's own terms, as in
/// `cpu/mem-loads,ldlat=30/P`. A breakpoint's slash opens no terms: `mem:0x404028/8:rw`.
pub(super) fn event_list(text: &str) -> Result<EventList, String> {
    let mut names = vec![String::new()];
    let mut is_in_terms = false;
    for c in text.chars() {
        let name = names.last_mut().ok_or("no event")?;
        match c {
            ',' if !is_in_terms => names.push(String::new()),
            _ => {
                is_in_terms ^= c == '/' && !name.starts_with("mem:");
                name.push(c);
            }
        }
    }
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    if is_in_terms {
        return Err("the terms of an event end with a slash: cpu/mem-loads,ldlat=30/".into());
    }
    if names.iter().any(String::is_empty) {
        return Err("expected event names between commas, as in cpu-clock,page-faults".into());
    }
    Ok(EventList(names))
}

/// A span of time: seconds, or a number with ms, s, m or h after it.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected seconds, or a number with a unit: 5, 0.5, 10s, 1m, 2h".to_owned();
    let seconds = typed_seconds(text).ok_or_else(wrong)?;
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// A [`duration`] that is not too short to print at.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < MIN_INTERVAL { Err("the shortest interval is 50ms".into()) } else { Ok(interval) }
}

/// The windows of a session: `300,60,5`.
pub(super) fn windows(text: &str) -> Result<WindowLengths, String> {
    let seconds = |part: &str| part.strip_suffix('s').unwrap_or(part).parse::<u64>();
    let seconds: Result<Vec<u64>, _> = text.split(',').map(seconds).collect();
    seconds
        .map_err(|_| "expected whole seconds between commas, as in 300,60,5".to_owned())?
        .try_into()
}

/// The longest name that the kernel keeps of a process (`TASK_COMM_LEN` without its end).
const MAX_COMM_BYTES: usize = 15;

/// A process's name. One that the kernel has cut is to be given as it is: what is after the cut would
/// keep no process of the same beginning out.
pub(crate) fn comm(text: &str) -> Result<Box<[u8]>, String> {
    // Of a character that lies across the cut nobody can type the part that is kept.
    let is_kept = |(at, _): &(usize, char)| *at < MAX_COMM_BYTES;
    let kept_len: usize = text.char_indices().take_while(is_kept).map(|(_, c)| c.len_utf8()).sum();
    match &text[..kept_len] {
        "" => Err("expected a process name".into()),
        kept if kept_len < text.len() => Err(format!(
            "{text} has {} bytes, and the kernel keeps the first {MAX_COMM_BYTES} of a process's name: \
             use {kept}",
            text.len()
        )),
        kept => Ok(kept.bytes().take(MAX_COMM_BYTES).collect()),
    }
}

/// A share of the CPU time, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share(pub(crate) Option<f64>);

/// `1%`, `0.5%`, `off`.
pub(crate) fn share(text: &str) -> Result<Share, String> {
    if text == "off" {
        return Ok(Share(None));
    }
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    match percent.filter(|percent| (0.01..=100.0).contains(percent)) {
        Some(percent) => Ok(Share(Some(percent / 100.0))),
        None => Err("expected a share between 0.01% and 100%, or off".into()),
    }
}

/// Pages of a ring.
pub(crate) fn pages(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n_pages) if n_pages.is_power_of_two() && n_pages <= MAX_PAGES => Ok(n_pages),
        _ => Err(format!("expected a power of two up to {MAX_PAGES}")),
    }
}

/// 4 GiB of ring on each CPU.
const MAX_PAGES: usize = 1 << 20;

/// A number of lines.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err("expected a number from 1 up".into()),
    }
}

/// A number of bytes, or one with K, M, G or T after it: each is 1024 of the one before.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size: 100M, 2G, 4096".to_owned();
    let digits_len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_len);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return Err(wrong()),
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.filter(|&size| size > 0).ok_or_else(wrong)
}

/// The same, or 0 for none.
pub(crate) fn size_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// Keys between commas; those inside of an expression's parentheses, lists and texts are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyList(pub(crate) Vec<String>);

/// `thread,object`, `'object, address / 4096'`.
pub(super) fn keys(text: &str) -> Result<KeyList, String> {
    let mut keys = vec![String::new()];
    let (mut depth, mut quote) = (0u32, None);
    for c in text.chars() {
        match (c, quote) {
            (',', None) if depth == 0 => {
                keys.push(String::new());
                continue;
            }
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('(' | '[', None) => depth += 1,
            (')' | ']', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        keys.last_mut().ok_or("no key")?.push(c);
    }
    let keys: Vec<String> = keys.iter().map(|key| key.trim().to_owned()).collect();
    match keys.iter().any(String::is_empty) {
        true => Err("expected keys between commas, as in thread,object".into()),
        false => Ok(KeyList(keys)),
    }
}

/// `NAME=EXPR`.
pub(super) fn own_key(text: &str) -> Result<(String, String), String> {
    let wrong = || "expected NAME=EXPR, as in huge=address / 2097152".to_owned();
    let (name, expression) = text.split_once('=').ok_or_else(wrong)?;
    let name = name.trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins || !name.chars().all(is_word) || expression.trim().is_empty() {
        return Err(wrong());
    }
    Ok((name.to_owned(), expression.trim().to_owned()))
}

/// `0`, `1`, `auto`, or how many instructions to walk back at most.
pub(super) fn skid(text: &str) -> Result<Skid, String> {
    match text {
        "auto" => return Ok(Skid::Auto),
        "0" => return Ok(Skid::Forced(SkidModel::Exact)),
        "1" => return Ok(Skid::Forced(SkidModel::AfterOne)),
        _ => {}
    }
    match text.parse() {
        Ok(range) if range <= MAX_SKID => Ok(Skid::Forced(SkidModel::Unknown(range))),
        _ => Err(format!("expected 0, 1, auto, or a number up to {MAX_SKID}")),
    }
}

/// A thing to measure.
pub(super) fn measure(text: &str) -> Result<Measure, String> {
    Measure::named(text).ok_or_else(|| {
        let names = Measure::ALL.map(Measure::name);
        format!("known are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expect) in [
            ("4096", Some(4096)),
            ("1K", Some(1024)),
            ("100M", Some(100 << 20)),
            ("2GB", Some(2 << 30)),
            ("1MiB", Some(1 << 20)),
            ("0", None),
            ("M", None),
            ("-1", None),
            ("1.5G", None),
            ("99999999T", None),
        ] {
            assert_eq!(size(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn commas_inside_an_expression_do_not_separate_keys() {
        let check = |text: &str, expect: Option<&[&str]>| {
            let list = keys(text).ok().map(|list| list.0);
            assert_eq!(
                list,
                expect.map(|it| it.iter().map(|s| (*s).to_owned()).collect()),
                "{text}"
            );
        };
        check("thread,object", Some(&["thread", "object"]));
        check("cpu in [1, 2], object", Some(&["cpu in [1, 2]", "object"]));
        check("object == \"a,b\",cpu", Some(&["object == \"a,b\"", "cpu"]));
        check("object,", None);
        check("", None);
        let named = ("a".to_owned(), "b == 1".to_owned());
        assert_eq!(own_key("a = b == 1"), Ok(named));
        assert!(own_key("1a=b").is_err() && own_key("a=").is_err() && own_key("a").is_err());
    }

    #[test]
    fn commas_inside_terms_do_not_separate_events() {
        let check = |text: &str, expect: Option<&[&str]>| {
            let names = event_list(text).ok().map(|list| list.0);
            assert_eq!(
                names,
                expect.map(|e| e.iter().map(|s| (*s).to_owned()).collect()),
                "{text}"
            );
        };
        check("cpu-clock", Some(&["cpu-clock"]));
        check("cpu-clock, page-faults", Some(&["cpu-clock", "page-faults"]));
        check("mem:0x404028/8:rw", Some(&["mem:0x404028/8:rw"]));
        check("mem:0x404028/8:rw,cpu-clock", Some(&["mem:0x404028/8:rw", "cpu-clock"]));
        check(
            "cpu/mem-loads,ldlat=30/P,cpu-clock",
            Some(&["cpu/mem-loads,ldlat=30/P", "cpu-clock"]),
        );
        check("cpu/mem-loads,ldlat=30", None);
        check("", None);
        check("cpu-clock,", None);
    }

    #[test]
    fn durations_take_fractions_and_units() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(duration(text).ok(), expect.map(Duration::from_millis), "{text}");
        };
        check("5", Some(5_000));
        check("0.5", Some(500));
        check("10s", Some(10_000));
        check("1m", Some(60_000));
        check("1.5h", Some(5_400_000));
        check("250ms", Some(250));
        for wrong in ["", "s", "-1", "0", "1d", "nan", "inf", "1e300", "1 s", "NaNs", "1e12"] {
            check(wrong, None);
        }
        assert!(interval("1ms").is_err());
    }

    #[test]
    fn shares_are_percents_or_off() {
        assert_eq!(share("1%"), Ok(Share(Some(0.01))));
        assert_eq!(share("0.5"), Ok(Share(Some(0.005))));
        assert_eq!(share("off"), Ok(Share(None)));
        for wrong in ["0%", "101%", "x", "", "-1%", "nan"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(pages("1024"), Ok(1024));
        assert!(pages("1000").is_err() && pages("0").is_err());
    }

    #[test]
    fn names_are_as_long_as_the_kernel_keeps_them() {
        let named = |text: &str| comm(text).map(Vec::from);
        assert_eq!(named("a-name-that-is-"), Ok(b"a-name-that-is-".to_vec()));
        assert_eq!(named("é"), Ok(vec![0xc3, 0xa9]));
        assert_eq!(named("a-name-that-isé"), Ok(b"a-name-that-is\xc3".to_vec()));
        assert!(named("").is_err());
        for (long, cut) in [
            ("a-name-that-is-cut", "use a-name-that-is-"),
            ("a-name-that-iséé", "use a-name-that-isé"),
        ] {
            let error = named(long).unwrap_err();
            assert!(error.starts_with(long) && error.ends_with(cut), "{error}");
        }
    }

    #[test]
    fn skid_is_a_model() {
        assert_eq!(skid("auto"), Ok(Skid::Auto));
        assert_eq!(skid("0"), Ok(Skid::Forced(SkidModel::Exact)));
        assert_eq!(skid("1"), Ok(Skid::Forced(SkidModel::AfterOne)));
        assert_eq!(skid("8"), Ok(Skid::Forced(SkidModel::Unknown(8))));
        assert!(skid("-1").is_err() && skid("10000").is_err() && skid("x").is_err());
    }
}
