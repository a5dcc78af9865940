//! Breakpoints on data that is named: `mem:g_stats.hits:w` becomes `mem:0x404028/8:w`.

use crate::config::LiveOptions;
use crate::exit::{Failure, Kind};
use crate::file_source::{FilePolicy, SystemFiles};
use dataspace_analyzer::process::named_place::{self, NamedPlace};
use dataspace_collector::system::procfs::Procfs;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Mmap;

/// Letters of perf's modifiers: `mem:u` is no name of data, but memory events in user space.
const MODIFIERS: &str = "ukhvHGIpPSDWeb";

/// Longest range that a debug register watches.
const MAX_BYTES: u64 = 8;

/// The events of `options` with addresses in the place of names. An address that is in no mapping of the one process that
/// is named is told, for nothing is ever sampled there.
///
/// # Errors
/// What a name does not lead to.
pub(super) fn resolved(options: &LiveOptions, policy: FilePolicy) -> anyhow::Result<Vec<String>> {
    let mut target: Option<Target> = None;
    let mut events = Vec::new();
    for event in &options.events {
        let Some(place) = place_of(event) else {
            events.push(event.clone());
            continue;
        };
        match number(place.name) {
            Some(address) => {
                if let TargetSpec::Pids(pids) = &options.target {
                    tell_unmapped(event, address, pids);
                }
                events.push(event.clone());
            }
            None => {
                let target = match &target {
                    Some(target) => target,
                    None => target.insert(Target::of(options, event, policy.clone())?),
                };
                events.push(target.event(event, place)?);
            }
        }
    }
    Ok(events)
}

/// A breakpoint as it is typed: `mem:NAME[/LENGTH][:ACCESS…]`.
#[derive(Clone, Copy)]
struct TypedPlace<'a> {
    name: &'a str,
    length: Option<&'a str>,
    /// From the colon on.
    rest: &'a str,
}

fn place_of(event: &str) -> Option<TypedPlace<'_>> {
    let place = event.strip_prefix("mem:")?;
    if place.chars().all(|letter| MODIFIERS.contains(letter)) {
        return None;
    }
    // Names of C++ and Rust have colons, two at a time.
    let colon = place.match_indices(':').map(|(at, _)| at).find(|at| {
        let is_colon =
            |at: Option<usize>| at.is_some_and(|at| place.as_bytes().get(at) == Some(&b':'));
        !is_colon(at.checked_sub(1)) && !is_colon(Some(at + 1))
    });
    let (name, rest) = place.split_at(colon.unwrap_or(place.len()));
    let (name, length) = match name.split_once('/') {
        Some((name, length)) => (name, Some(length)),
        None => (name, None),
    };
    Some(TypedPlace { name, length, rest })
}

/// A number as the collector reads it.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The process whose data is named.
struct Target {
    mappings: Vec<Mmap>,
    mount_namespace: u64,
    files: SystemFiles,
}

impl Target {
    fn of(options: &LiveOptions, event: &str, policy: FilePolicy) -> anyhow::Result<Self> {
        let pid = match &options.target {
            TargetSpec::Pids(pids) if pids.len() == 1 => pids[0],
            _ => {
                let what = format!("{event}: data is named in one running process");
                let failure = Failure::new(Kind::Usage, what);
                return Err(failure.with_remedy("-p PID   the process that has it").into());
            }
        };
        let procfs = Procfs::default();
        let mappings = procfs.mappings(pid).map_err(|error| {
            let what = format!("the mappings of process {pid} cannot be read: {error}");
            Failure::new(Kind::Failed, what)
        })?;
        let theirs = procfs.mount_namespace(pid).unwrap_or(0);
        let is_ours = procfs.mount_namespace("self") == Some(theirs);
        let mount_namespace = if is_ours { 0 } else { theirs };
        Ok(Self { mappings, mount_namespace, files: SystemFiles::new(policy) })
    }

    /// The event with the address and the length of what it names.
    fn event(&self, event: &str, place: TypedPlace<'_>) -> Result<String, Failure> {
        let TypedPlace { name, length, rest } = place;
        let usage = |what: String| Failure::new(Kind::Usage, format!("{event}: {what}"));
        let found = named_place::find(name, &self.mappings, self.mount_namespace, &self.files);
        let found = found.map_err(|error| usage(error.to_string()))?;
        let length = match length {
            Some(length) => length.to_owned(),
            None => watchable(name, &found).map_err(usage)?.to_string(),
        };
        Ok(format!("mem:{:#x}/{length}{rest}", found.address.0))
    }
}

/// The length of data that one debug register can watch; else what could be watched of it.
fn watchable(name: &str, found: &NamedPlace) -> Result<u64, String> {
    let NamedPlace { address, len_bytes, parts } = found;
    if [1, 2, 4, MAX_BYTES].contains(len_bytes) && address.0 % len_bytes == 0 {
        return Ok(*len_bytes);
    }
    let parts: Vec<String> = parts.iter().map(|part| format!("{name}{part}")).collect();
    let parts = if parts.is_empty() { format!("{name}/8") } else { parts.join(", ") };
    Err(format!(
        "{name} has {len_bytes} bytes at {:#x}, and a debug register watches 1, 2, 4 or 8 at a multiple of that; name \
         a part: {parts}",
        address.0
    ))
}

/// Says that nothing is mapped at an address, where none of the processes has it.
fn tell_unmapped(event: &str, address: u64, pids: &[i32]) {
    let procfs = Procfs::default();
    let mut n_read = 0;
    for pid in pids {
        let Ok(mappings) = procfs.mappings(*pid) else { continue };
        n_read += 1;
        let holds =
            |mmap: &Mmap| address.checked_sub(mmap.start.0).is_some_and(|it| it < mmap.len_bytes);
        if mappings.iter().any(holds) {
            return;
        }
    }
    if n_read != 0 {
        tracing::warn!(
            "{event}: nothing is mapped at {address:#x} in the target, so nothing will be sampled; an address of the file is \
             not where a program runs that is loaded anywhere: -e mem:NAME finds it"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_modifiers_are_told_apart() {
        let check = |event: &str, expected: Option<(&str, Option<&str>, &str)>| {
            let found = place_of(event).map(|it| (it.name, it.length, it.rest));
            assert_eq!(found, expected, "{event}");
        };
        check("cpu-clock", None);
        check("mem", None);
        check("mem:u", None);
        check("mem:0x1000/8:rw:u", Some(("0x1000", Some("8"), ":rw:u")));
        check("mem:g_stats.hits:w", Some(("g_stats.hits", None, ":w")));
        check("mem:g_stats.hits", Some(("g_stats.hits", None, "")));
        check("mem:ns::A::b[3].c/4:rw", Some(("ns::A::b[3].c", Some("4"), ":rw")));
        assert_eq!([number("0x10"), number("10"), number("x")], [Some(16), Some(10), None]);
    }
}
