//! Tips for what was typed and means nothing: a command's name misspelled, a target without its option.

use super::Cli;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};
use dataspace_analyzer::types::similar_name::similar;
use std::ffi::OsString;
use std::path::Path;

/// `error`, which came of reading `typed`, with a tip on what was probably meant, where that can be told.
pub(crate) fn with_tip(mut error: Error, typed: &[OsString]) -> Error {
    let word_kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(word_kind).cloned() else { return error };
    let cli = Cli::command();
    let typed_command = || typed.iter().skip(1).find_map(|word| cli.find_subcommand(word));
    let command = match word_kind {
        ContextKind::InvalidSubcommand => {
            // Clap's own measure finds `layout` like `./a.out`, and nothing like `tpo`.
            error.remove(ContextKind::SuggestedSubcommand);
            let commands = cli.get_subcommands().filter(|command| !command.is_hide_set());
            let near = similar(&word, commands.map(Command::get_name));
            if !near.is_empty() {
                let near = near.into_iter().map(str::to_owned).collect();
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
                return error;
            }
            cli.find_subcommand("top")
        }
        _ if word.starts_with('-') => None,
        _ => typed_command(),
    };
    let tips: Vec<StyledStr> = command
        .map_or_else(Vec::new, |command| tips(command, &word))
        .into_iter()
        .map(Into::into)
        .collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Ways to give `word` to `command` as its target.
fn tips(command: &Command, word: &str) -> Vec<String> {
    let has = |id: &str| command.get_arguments().any(|it| it.get_id() == id && !it.is_hide_set());
    let typed = format!("dataspace {}", command.get_name());
    let shown = match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.to_owned(),
    };
    let mut tips = Vec::new();
    let mut tip = |option: &str, what: &str| tips.push(format!("{what}: {typed} {option}{shown}"));
    if word.parse::<u32>().is_ok() && has("pids") {
        tip("-p ", "a process");
    } else if Path::new(word).is_file() && has("input") && !has("pids") {
        tip("-i ", "a recording");
    } else if word.contains('/') && has("command") {
        tip("-- ", "a command to run");
    } else if word.ends_with(".service") && has("unit") {
        tip("-u ", "a unit");
    } else if has("comms") {
        tip("--comm ", "processes of this name");
        if has("command") {
            tip("-- ", "a command to run");
        }
    } else if has("input") {
        tip("-i ", "a recording");
    }
    tips
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn told(line: &str) -> String {
        let typed: Vec<OsString> =
            ["dataspace"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        with_tip(Cli::try_parse_from(&typed).unwrap_err(), &typed).to_string()
    }

    #[test]
    fn a_command_misspelled_is_told_with_the_one_that_was_meant() {
        for (typed, meant) in
            [("tpo", "top"), ("rpeort", "report"), ("Top", "top"), ("anotate", "annotate")]
        {
            let told = told(typed);
            assert!(told.contains(&format!("subcommand exists: '{meant}'")), "{typed}: {told}");
        }
    }

    #[test]
    fn a_target_without_its_option_is_told_with_it() {
        let check = |line: &str, tip: &str| {
            let told = told(line);
            assert!(told.lines().any(|line| line.ends_with(tip)), "{line}: {told}");
        };
        check("top shop", "tip: processes of this name: dataspace top --comm shop");
        check("top shop", "tip: a command to run: dataspace top -- shop");
        check("top ./a.out", "tip: a command to run: dataspace top -- ./a.out");
        check("-v record ./a.out", "tip: a command to run: dataspace record -- ./a.out");
        check("./a.out", "tip: a command to run: dataspace top -- ./a.out");
        check("top 4711", "tip: a process: dataspace top -p 4711");
        check("attach redis.service", "tip: a unit: dataspace attach -u redis.service");
        check("report old.data", "tip: a recording: dataspace report -i old.data");
    }

    #[test]
    fn what_cannot_be_told_has_no_tip() {
        assert!(!told("attach ./a.out").contains("-- ./a.out"), "a daemon starts no commands");
        assert!(!told("status shop").contains("tip"), "it has no target");
    }
}
