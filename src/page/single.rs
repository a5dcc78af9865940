//! The page as one file that needs no server: its modules joined, and the data inside.

use super::embedded::EmbeddedData;
use super::file::{html, module, style};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use std::io::{self, Write};

/// Writes the file.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(data: &EmbeddedData, out: &mut dyn Write) -> io::Result<()> {
    let (style, module) = (style(), module());
    // A policy in the file cannot say who may frame it (CSP level 3, section 3.3).
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&module),
        hash(&style)
    );
    let head = |line: &str| match line {
        line if line.contains("rel=\"stylesheet\"") => format!("<style>{style}</style>\n"),
        line if line.contains("<script ") => String::new(),
        line if line.contains("charset=") => {
            format!("{line}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n")
        }
        line => format!("{line}\n"),
    };
    let (before, after) = html().split_once("</body>").unwrap_or((html(), ""));
    for line in before.lines() {
        out.write_all(head(line).as_bytes())?;
    }
    out.write_all(b"<script type=\"application/json\" id=\"embedded\">")?;
    serde_json::to_writer(InElement(&mut *out), data)?;
    write!(out, "</script>\n<script type=\"module\">{module}</script>\n</body>{after}")?;
    out.flush()
}

/// A style or script as the policy names it (CSP level 3, section 2.3.1).
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

/// JSON within an element: no text of it ends that, or begins another (HTML, section 4.12.1.3).
struct InElement<'a>(&'a mut dyn Write);

impl Write for InElement<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Such letters are within strings alone, where the escape means the same.
        for part in bytes.split_inclusive(|byte| *byte == b'<') {
            match part.split_last() {
                Some((b'<', before)) => {
                    self.0.write_all(before)?;
                    self.0.write_all(b"\\u003c")?;
                }
                _ => self.0.write_all(part)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_target_is_markup() {
        let mut written = Vec::new();
        let hostile = "</script><script>alert(1)</script><!--";
        serde_json::to_writer(InElement(&mut written), &[hostile]).unwrap();
        assert!(!written.contains(&b'<'));
        assert_eq!(serde_json::from_slice::<[String; 1]>(&written).unwrap(), [hostile]);
    }

    #[test]
    fn a_policy_names_what_a_browser_computes() {
        // The example of CSP level 3, section 8.3.
        let expected = "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=";
        assert_eq!(hash("alert('Hello, world.');"), expected);
    }
}
