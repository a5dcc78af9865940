//! Text for a person: numbers with units, and foreign names made safe to print.

use std::borrow::Cow;
use std::fmt::Write;

/// `name` with everything that a terminal would obey, hide or reorder written as `\u{…}`.
///
/// Names come from the debug information and the file names of profiled programs, so an escape
/// sequence in one of them could rewrite the screen, and a bidirectional override could show
/// another name than the one that is there (Unicode Technical Report 36, section 2).
pub(crate) fn visible(name: &str) -> Cow<'_, str> {
    if !name.chars().any(is_unsafe) {
        return Cow::Borrowed(name);
    }
    let mut safe = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        if is_unsafe(c) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// `part` of `whole` as `12.3%`; nothing where there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let share = ratio(part, whole) * 100.0;
    // A loss of one in a million is not "0.0%".
    if part > 0 && share < 0.05 { "<0.1%".into() } else { format!("{share:.1}%") }
}

/// A count in at most `width` columns: `1234567`, else `1234k`, `1234M`, `1234G`.
pub(crate) fn short_count(count: u64, width: usize) -> String {
    let mut text = count.to_string();
    let mut value = count;
    for unit in ["k", "M", "G", "T", "P"] {
        if text.len() <= width {
            break;
        }
        value /= 1000;
        text = format!("{value}{unit}");
    }
    text
}

/// A rate with as many digits as it deserves.
pub(crate) fn rate(value: f64) -> String {
    if value != 0.0 && value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A span of time: `0.4 s`, `12.3 s`, `3:07`, `2:03:07`.
pub(crate) fn span(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else if minutes > 0 {
        format!("{minutes}:{:02}", seconds % 60)
    } else {
        format!("{}.{} s", seconds, time_ns / 100_000_000 % 10)
    }
}

/// A span of time in at most six columns: `340ms`, `1.24s`, `3:07`, `12h`.
pub(crate) fn short_span(time_ns: u64) -> String {
    let seconds = ratio(time_ns, 1_000_000_000);
    match seconds {
        0.0 => "0".to_owned(),
        _ if seconds < 0.000_999_5 => format!("{:.0}us", seconds * 1e6),
        _ if seconds < 0.999_5 => format!("{:.0}ms", seconds * 1e3),
        _ if seconds < 9.995 => format!("{seconds:.2}s"),
        _ if seconds < 99.95 => format!("{seconds:.1}s"),
        _ if seconds < 6_000.0 => format!("{}:{:02}", seconds as u64 / 60, seconds as u64 % 60),
        _ => format!("{:.0}h", seconds / 3600.0),
    }
}

/// A size: `512 B`, `35 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 10 * 1024 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// `part / whole` as a float, 0 where there is no whole.
#[allow(clippy::cast_precision_loss, reason = "shown with at most four digits")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_names_lose_their_power_and_plain_ones_stay() {
        let check = |name: &str, expect: &str| assert_eq!(visible(name), expect);
        check("{structure:cell}.{int x}", "{structure:cell}.{int x}");
        check("{int ÿ変数}", "{int ÿ変数}");
        check("\x1b[2J", "\\u{1b}[2J");
        check("a\r\nb\t", "a\\u{d}\\u{a}b\\u{9}");
        check("c1\u{9b}31m", "c1\\u{9b}31m");
        check("abc\u{202e}fed", "abc\\u{202e}fed");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(1, 1_000_000), "<0.1%");
        assert_eq!(percent(0, 7), "0.0%");
        assert_eq!(percent(7, 7), "100.0%");
        assert_eq!(percent(1, 0), "");
        assert_eq!([rate(0.0), rate(0.31), rate(9.96), rate(499.3)], ["0", "0.3", "10", "499"]);
        assert_eq!(short_count(1_234_567, 7), "1234567");
        assert_eq!(short_count(12_345_678, 7), "12345k");
        assert_eq!(short_count(u64::MAX, 7), "18446P");
        assert_eq!(span(450_000_000), "0.4 s");
        assert_eq!(span(12_340_000_000), "12.3 s");
        assert_eq!(span(187_000_000_000), "3:07");
        assert_eq!(span(7_387_000_000_000), "2:03:07");
        assert_eq!([size(512), size(35 << 20), size(9 << 10)], ["512 B", "35 MiB", "9216 B"]);
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_comes_through(name in "\\PC*|(?s).*") {
            prop_assert!(!visible(&name).chars().any(char::is_control));
        }
    }
}
