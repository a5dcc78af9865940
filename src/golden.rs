//! Compares what a test printed with a file that holds what is expected.

use std::path::Path;

/// Compares `text` with `path`, which is relative to `src/`. With `UPDATE_EXPECT=1` in the
/// environment the file is written instead; then look at `git diff`.
#[track_caller]
pub(crate) fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &text).unwrap();
        return;
    }
    let expect = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expect,
        "{} differs (UPDATE_EXPECT=1 writes it)\n--- expected\n{expect}\n--- found\n{text}",
        path.display()
    );
}
