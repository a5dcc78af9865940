//! Manual pages and completions of shells, made of the grammar of the command line.

use crate::cli::Cli;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;

/// A file of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManualFile {
    /// Its place below a `share` directory, as packages of Debian have it.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All of them: a page for each command, and completions of three shells.
///
/// # Errors
/// None but those of writing to memory.
pub(crate) fn files() -> io::Result<Vec<ManualFile>> {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let mut files = Vec::new();
    add_pages(&cli, &mut files)?;
    for (shell, path) in [
        (Shell::Bash, "bash-completion/completions/dataspace"),
        (Shell::Zsh, "zsh/vendor-completions/_dataspace"),
        (Shell::Fish, "fish/vendor_completions.d/dataspace.fish"),
    ] {
        files.push(ManualFile { path: path.to_owned(), text: completion(shell) });
    }
    Ok(files)
}

/// The text that a shell reads to complete our commands and options.
pub(crate) fn completion(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(), "dataspace", &mut text);
    plain(&text)
}

/// The grammar without commands that only we type.
fn shown() -> Command {
    let cli = Cli::command();
    let subcommands = cli.get_subcommands().filter(|below| !below.is_hide_set());
    Command::new("dataspace").args(cli.get_arguments().cloned()).subcommands(subcommands.cloned())
}

/// The pages of a command and of those below it.
fn add_pages(command: &Command, files: &mut Vec<ManualFile>) -> io::Result<()> {
    let page = Man::new(command.clone())
        .manual("dataspace")
        .source(concat!("dataspace ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    files
        .push(ManualFile { path: format!("man/man1/{}", page.get_filename()), text: plain(&text) });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, files)?;
    }
    Ok(())
}

/// A text without blanks at the ends of its lines.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use std::collections::BTreeSet;

    /// The package takes them from there, for cargo-deb runs nothing between building and packing.
    #[test]
    fn what_is_packed_is_what_the_command_line_says() {
        let files = files().unwrap();
        for ManualFile { path, text } in &files {
            golden::check(&format!("../manual/{path}"), text);
        }
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/manual/man/man1");
        let name = |entry: io::Result<std::fs::DirEntry>| {
            format!("man/man1/{}", entry.unwrap().file_name().to_str().unwrap())
        };
        let packed: BTreeSet<String> = std::fs::read_dir(directory).unwrap().map(name).collect();
        let made = files.into_iter().map(|file| file.path).filter(|path| path.contains("man1"));
        assert_eq!(packed, made.collect(), "a page of a command that is gone");
    }

    #[test]
    fn every_command_has_a_page_and_is_completed() {
        let files = files().unwrap();
        let completions = completion(Shell::Bash);
        for name in ["top", "report", "layout", "annotate", "threads", "watch", "config-check"] {
            let page = files.iter().find(|it| it.path == format!("man/man1/dataspace-{name}.1"));
            assert!(page.unwrap().text.contains(".SH SYNOPSIS"), "{name}");
        }
        for name in ["top", "report", "layout", "annotate", "threads", "watch", "config"] {
            assert!(completions.contains(&format!("dataspace,{name})")), "{name}");
        }
        for hidden in ["worker", "opener", "fetch-debug"] {
            assert!(files.iter().all(|it| !it.path.contains(hidden)), "{hidden}");
            assert!(!completions.contains(&format!("dataspace,{hidden})")), "{hidden}");
        }
    }
}
