//! The page as a server hands it out: three files, compressed once.

use super::file::{HTML, MODULE, STYLE, html, module, style};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write as _};
use std::sync::LazyLock;

/// A file of the page as it goes to a browser. There is nothing secret in it.
#[derive(Clone, Debug)]
pub(crate) struct ServedFile {
    /// Path of its URL.
    path: &'static str,
    /// Media type.
    pub(crate) kind: &'static str,
    /// Content.
    pub(crate) plain: Bytes,
    /// The same, compressed with gzip.
    pub(crate) zipped: Bytes,
}

static SERVED: LazyLock<[ServedFile; 3]> = LazyLock::new(|| {
    [
        served("/", HTML, html().to_owned()),
        served("/style.css", STYLE, style()),
        served("/app.js", MODULE, module()),
    ]
});

fn served(path: &'static str, kind: &'static str, text: String) -> ServedFile {
    let plain = Bytes::from(text);
    let zipped = zip(&plain).map_or_else(|_| Bytes::new(), Bytes::from);
    ServedFile { path, kind, plain, zipped }
}

fn zip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::best());
    zipped.write_all(bytes)?;
    zipped.finish()
}

/// The file at the path of a request.
pub(crate) fn file(path: &str) -> Option<&'static ServedFile> {
    SERVED.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let n_bytes: usize = SERVED.iter().map(|file| file.zipped.len()).sum();
        assert!(SERVED.iter().all(|file| !file.zipped.is_empty()));
        assert!(n_bytes <= 60 << 10, "{n_bytes} bytes");
    }
}
