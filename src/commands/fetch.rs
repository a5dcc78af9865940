//! Debug information from debuginfod servers: the process that asks for it, and the one that fetches.

use super::progress::ProgressText;
use crate::cli::Global;
use crate::config::{Input, LiveOptions, RecordingOptions, Sandbox};
use crate::debuginfod::{DebuginfodClient, Fetched, is_build_id, servers};
use crate::exit::{Failure, Kind};
use crate::file_source::debuginfod_cache;
use crate::package::Distribution;
use crate::text::{size, visible};
use anyhow::Context as _;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::event::Sampling;
use dataspace_proto::snapshot::Undescribed;
use rustix::process::Signal;
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _, stderr, stdin};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

/// The name of the command that fetches.
const FETCH: &str = "fetch-debug";

/// Most bytes of what the first reading of a recording says.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// All that is wanted of the first reading's snapshot.
#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(default)]
    undescribed: Vec<Undescribed>,
}

/// Has the debug information that a recording lacks most, and that servers have, in the cache before it is read: reads it
/// once, in processes of its own, and asks for what is missing there.
///
/// # Errors
/// Where no server is named, or the recording cannot be read twice.
pub(super) fn for_recording(recording: &RecordingOptions, global: &Global) -> anyhow::Result<()> {
    let path = match &recording.input {
        Input::File(path) if !path.exists() || path.is_file() => Some(path),
        _ => None,
    };
    let Some(path) = path else {
        let what =
            "--debuginfod reads the recording twice, and what comes through a pipe comes once";
        return Err(Failure::new(Kind::Usage, what).with_remedy("-i FILE").into());
    };
    let mut rest: Vec<&OsStr> = vec!["report".as_ref(), "-i".as_ref(), path.as_ref()];
    if let Some(symfs) = &recording.symfs {
        rest.extend([OsStr::new("--symfs"), symfs.as_ref()]);
    }
    fetch(&rest, global)
}

/// The same for what runs, which is sampled for a second first.
///
/// # Errors
/// Where no server is named, or the target is a command, which is not run twice.
pub(super) fn for_session(live: &LiveOptions, global: &Global) -> anyhow::Result<()> {
    let list = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let (option, value): (&str, OsString) = match &live.target {
        TargetSpec::Pids(pids) => ("-p", list(pids).into()),
        TargetSpec::Tids(tids) => ("-t", list(tids).into()),
        TargetSpec::Unit(name) => ("-u", name.into()),
        TargetSpec::Cgroup(path) => ("--cgroup", path.into()),
        TargetSpec::All => ("-a", OsString::new()),
        TargetSpec::Command(_) => {
            let what =
                "--debuginfod samples what runs already, before its debug information is fetched";
            let remedy = "dataspace record -- COMMAND; dataspace report --debuginfod";
            return Err(Failure::new(Kind::Usage, what).with_remedy(remedy).into());
        }
    };
    let mut look: Vec<OsString> = ["top", "--once", "--duration", "1"].map(Into::into).into();
    look.extend([option.into(), value].into_iter().filter(|it| !it.is_empty()));
    for (option, names) in
        [("--comm", &live.comms.include), ("--exclude-comm", &live.comms.exclude)]
    {
        for name in names {
            look.extend([option.into(), OsStr::from_bytes(name).to_owned()]);
        }
    }
    for event in &live.events {
        look.extend(["-e".into(), event.into()]);
    }
    match live.sampling {
        Some(Sampling::Period(period)) => look.extend(["-c".into(), period.to_string().into()]),
        Some(Sampling::FrequencyHz(hz)) => look.extend(["-F".into(), hz.to_string().into()]),
        None => {}
    }
    let look: Vec<&OsStr> = look.iter().map(|it| &**it).collect();
    fetch(&look, global)
}

/// Fetches what is missing to name the objects of a first look, which a process of its own takes by these arguments.
fn fetch(look: &[&OsStr], global: &Global) -> anyhow::Result<()> {
    if servers().is_empty() {
        let failure = Failure::new(Kind::Usage, "--debuginfod: DEBUGINFOD_URLS names no server");
        let server = Distribution::here().debuginfod().unwrap_or("https://debuginfod.elfutils.org");
        return Err(failure.with_remedy(format!("export DEBUGINFOD_URLS={server}")).into());
    }
    let _ = writeln!(stderr(), "a first look, for debug information that is missing here");
    let own = std::env::current_exe().context("our own program")?;
    let mut first = Command::new(&own);
    first.args(look).args(["--json", "--limit", "1"]);
    if global.sandbox == Sandbox::Off {
        first.args(["--sandbox", "off"]);
    }
    let first = first.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut first = first.spawn().context("a process for a first look")?;
    let mut list = Vec::new();
    if let Some(stdout) = first.stdout.take() {
        stdout.take(MAX_LIST_BYTES).read_to_end(&mut list)?;
    }
    first.wait()?;
    let Ok(Listed { undescribed }) = serde_json::from_slice(&list) else {
        // Why is told when it is looked at for good.
        let _ = writeln!(stderr(), "warning: the first look failed: nothing is fetched");
        return Ok(());
    };
    // Without the load object itself its debug information is of no use.
    let has_build_id = |it: &Undescribed| it.build_id.as_deref().is_some_and(is_build_id);
    let is_wanted = |it: &Undescribed| has_build_id(it) && !it.is_missing;
    let wanted: Vec<Undescribed> = undescribed.into_iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut fetching = Command::new(&own);
    let fetching = fetching.arg(FETCH).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut fetching = fetching.spawn().context("a process that fetches")?;
    if let Some(mut list) = fetching.stdin.take() {
        list.write_all(&serde_json::to_vec(&wanted)?)?;
    }
    anyhow::ensure!(fetching.wait()?.success(), "debug information could not be fetched");
    Ok(())
}

/// Fetches the files of a list on standard input. What cannot be had is told, and is no failure.
///
/// # Errors
/// Where there is no list.
pub(super) fn run() -> anyhow::Result<()> {
    // It does not outlive who asked for it.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    let mut list = Vec::new();
    stdin().take(MAX_LIST_BYTES).read_to_end(&mut list)?;
    let list: Vec<Undescribed> = serde_json::from_slice(&list).context("the list of files")?;
    let cache = debuginfod_cache().context("no directory for a cache: HOME is not set")?;
    let client = DebuginfodClient::new(servers(), cache);
    for it in &list {
        let Some(build_id) = &it.build_id else { continue };
        let module = visible(&it.module);
        let mut progress = ProgressText::new();
        let done = client.fetch(build_id, &mut |n_bytes| {
            progress.tell(&format!("fetching debug information of {module}: {}", size(n_bytes)));
        });
        drop(progress);
        let told = match done {
            Ok(Fetched::There(n_bytes)) => size(n_bytes).to_string(),
            Ok(Fetched::Nowhere) => "no server has it".to_owned(),
            Err(error) => visible(&format!("{error:#}")).into_owned(),
        };
        let _ = writeln!(stderr(), "debug information of {module}: {told}");
    }
    Ok(())
}
