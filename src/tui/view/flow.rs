//! Sets segments one after another and begins a new line where one does not fit.

use super::Theme;
use crate::header::{Segment, Tone};
use ratatui::text::{Line, Span};

/// How far a line that goes on is set in.
const INDENT: usize = 2;

/// The lines that `segments` take, `separator` between two of them. A segment wider than a line
/// stands alone and is cut off by the screen's edge.
pub(super) fn lines(
    segments: &[Segment],
    separator: &str,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for segment in segments {
        let span = Span::styled(segment.text.clone(), theme.style(segment.tone));
        let gap = if spans.is_empty() { 0 } else { separator.chars().count() };
        if !spans.is_empty() && used + gap + span.width() > width {
            lines.push(Line::from(std::mem::take(&mut spans)));
            spans.push(Span::raw(" ".repeat(INDENT)));
            used = INDENT;
        } else if gap > 0 {
            spans.push(Span::styled(separator.to_owned(), theme.style(Tone::Faint)));
            used += gap;
        }
        used += span.width();
        spans.push(span);
    }
    if !spans.is_empty() {
        lines.push(Line::from(spans));
    }
    lines
}

/// `text` broken into pieces of at most `width` columns, where it must be in the middle of a
/// word: a descriptor has no blanks.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let c_width = Span::raw(c.to_string()).width();
        if used + c_width > width {
            pieces.push(String::new());
            used = 0;
        }
        used += c_width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_stay_whole() {
        let segments = ["samples 12", "= attributed 10", "+ unknown 2"]
            .map(|text| Segment::new(text, Tone::Plain));
        let check = |width: usize, expect: &[&str]| {
            let lines = lines(&segments, " ", width, &Theme::new(false));
            let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expect, "{width}");
        };
        check(80, &["samples 12 = attributed 10 + unknown 2"]);
        check(27, &["samples 12 = attributed 10", "  + unknown 2"]);
        check(1, &["samples 12", "  = attributed 10", "  + unknown 2"]);
    }

    #[test]
    fn wrapped_text_loses_nothing() {
        assert_eq!(wrap("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrap("変数ab", 3), ["変", "数a", "b"]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }
}
