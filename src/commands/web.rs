//! `dataspace web`: a page that shows a session in a browser.

use crate::cli::{Global, WebArgs};
use crate::daemon::alone;
use crate::diagnostic;
use anyhow::Context as _;
use std::io::{Write as _, stdout};
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

/// Program that opens a file in the browser (xdg-utils).
const OPENER: &str = "xdg-open";

/// Runs the command.
pub(super) fn run(args: WebArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let has_browser = args.open;
    let mut way: Option<NamedTempFile> = None;
    alone::run(args.resolve()?, |address| {
        let mut out = stdout().lock();
        writeln!(out, "{address}")?;
        out.flush()?;
        if has_browser {
            way = Some(open(address)?);
        }
        Ok(())
    })
}

/// Opens `address` in the browser, by way of a file: everybody may read the words that a program was started with, and the
/// token is in the address. The file has to be there as long as the browser may read it.
fn open(address: &str) -> anyhow::Result<NamedTempFile> {
    let made = tempfile::Builder::new().prefix("dataspace-").suffix(".html").tempfile();
    let mut way = made.context("making a file that leads to the page")?;
    write!(way, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={address}\">")?;
    way.flush()?;
    let opened = Command::new(OPENER)
        .arg(way.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match opened {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
        }
        Err(error) => {
            tracing::warn!("{OPENER} cannot be started ({error}): open the address above");
        }
    }
    Ok(way)
}
