//! Texts broken into lines, and cut.

use ratatui::text::Span;

/// `text` broken into pieces of at most `width` columns: at a blank where there is one, else
/// anywhere, as a descriptor has none.
pub(in crate::tui) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // A character wider than the line stands alone on it.
        let first_len = rest.chars().next().map_or(0, char::len_utf8);
        let fitting = prefix_len(rest, width).max(first_len);
        let blank = rest[..fitting].rfind(' ').filter(|&at| at > 0 && fitting < rest.len());
        let (piece, after) = rest.split_at(blank.unwrap_or(fitting));
        pieces.push(piece.to_owned());
        rest = after.strip_prefix(' ').filter(|_| blank.is_some()).unwrap_or(after);
    }
    pieces
}

/// `text` in at most `width` columns. What it begins and ends with tells most: the aggregate and
/// the name of the member.
pub(super) fn elide(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = &text[..prefix_len(text, room / 3)];
    let backwards: String = text[head.len()..].chars().rev().collect();
    let tail = &backwards[..prefix_len(&backwards, room - room / 3)];
    let tail: String = tail.chars().rev().collect();
    if width == 0 { String::new() } else { format!("{head}…{tail}") }
}

/// Number of bytes of `text` that fit into `width` columns.
fn prefix_len(text: &str, width: usize) -> usize {
    let mut used = 0;
    let mut end_of_fitting = |(at, c): (usize, char)| {
        used += Span::raw(c.to_string()).width();
        (used > width).then_some(at)
    };
    text.char_indices().find_map(&mut end_of_fitting).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_text_loses_nothing() {
        assert_eq!(wrap("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrap("変数ab", 3), ["変", "数a", "b"]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
        assert_eq!(wrap("one two three", 9), ["one two", "three"]);
    }

    #[test]
    fn an_elided_name_keeps_both_ends() {
        let name = "{structure:order}.{long_int price}";
        assert_eq!(elide(name, 40), name);
        assert_eq!(elide(name, 26), "{structu….{long_int price}");
        for width in 0..34 {
            assert!(Span::raw(elide(name, width)).width() <= width, "{width}");
            assert!(
                Span::raw(elide("変数変数変数変数変数変数変数変数変数", width)).width() <= width
            );
        }
    }
}
