//! `dataspace doctor`: what this machine and these privileges allow, and what would allow more.

mod document;

use super::calibrate;
use crate::cli::{DoctorArgs, Global};
use crate::diagnostic;
use crate::text::visible;
use dataspace_collector::capability::{self, Capabilities, LimitValue};
use dataspace_collector::system::machine::Processor;
use std::io::{self, IsTerminal, Write, stdout};
use std::path::Path;

/// Availability of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It is.
    Good,
    /// Only in part.
    Limited,
    /// It is not.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Name of an event, a privilege, a limit.
    pub(crate) name: String,
    /// Its availability.
    pub(crate) status: Availability,
    /// Finding with its value.
    pub(crate) detail: String,
    /// The one command that would lift it.
    pub(crate) remedy: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: DoctorArgs, global: &Global) -> anyhow::Result<()> {
    let has_color = global.color.resolve(stdout().is_terminal());
    let is_json = args.json;
    let calibration = args.resolve(has_color)?;
    diagnostic::start(global.verbose, false);
    if let Some(options) = calibration {
        return calibrate::run(&options);
    }
    let found = capability::probe(Path::new("/"));
    let mut out = stdout().lock();
    if is_json {
        return document::write(&found, &mut out);
    }
    render(&findings(&found), has_color, &mut out)?;
    Ok(())
}

/// Findings of the collector, as lines.
fn findings(found: &Capabilities) -> Vec<Finding> {
    let status = |is_there| if is_there { Availability::Good } else { Availability::Missing };
    let good = |name: &str, detail: String| Finding {
        name: name.to_owned(),
        status: Availability::Good,
        detail,
        remedy: None,
    };
    let kernel = format!("{} {}", found.kernel, found.architecture);
    let kernel = good("kernel", kernel.trim_end().to_owned());
    let processor = good("processor", processor(&found.processor));
    let events = found.events.iter().map(|event| Finding {
        name: event.name.clone(),
        status: status(event.is_available),
        detail: event.detail.clone(),
        remedy: event.remedy.clone(),
    });
    let privileges = found.privileges.iter().map(|privilege| Finding {
        name: privilege.name.to_owned(),
        status: status(privilege.is_held),
        detail: privilege.purpose.to_owned(),
        remedy: privilege.remedy.clone(),
    });
    let limits = found.limits.iter().map(|limit| {
        let value = match limit.value {
            LimitValue::Number(value) => value.to_string(),
            LimitValue::Unlimited => "unlimited".to_owned(),
            LimitValue::Missing => "not known here".to_owned(),
        };
        Finding {
            name: limit.name.to_owned(),
            status: if limit.remedy.is_none() { Availability::Good } else { Availability::Limited },
            detail: format!("{value}: {}", limit.meaning),
            remedy: limit.remedy.clone(),
        }
    });
    let how = "dataspace doctor --calibrate measures how far samples skid here";
    let calibration = good("calibration", how.to_owned());
    let rest = privileges.chain(limits).chain([calibration]);
    [kernel, processor].into_iter().chain(events).chain(rest).collect()
}

fn processor(processor: &Processor) -> String {
    let Processor { family, model, is_virtual, .. } = processor;
    let mut text = match processor.name.as_str() {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    };
    if *family != 0 {
        text += &format!(" (family {family}, model {model})");
    }
    if *is_virtual {
        text += ", in a virtual machine";
    }
    text
}

/// Writes the findings, one a line, each remedy on a line below.
pub(crate) fn render(findings: &[Finding], has_color: bool, out: &mut dyn Write) -> io::Result<()> {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    for finding in findings {
        // ECMA-48, select graphic rendition: green, yellow, red.
        let (word, code) = match finding.status {
            Availability::Good => ("ok", "32"),
            Availability::Limited => ("limited", "33"),
            Availability::Missing => ("no", "31"),
        };
        let (on, off) =
            if has_color { (format!("\x1b[{code}m"), "\x1b[0m") } else { Default::default() };
        let (name, detail) = (visible(&finding.name), visible(&finding.detail));
        writeln!(out, "{on}{word:<7}{off}  {name:<width$}  {detail}")?;
        if let Some(remedy) = &finding.remedy {
            writeln!(out, "{:9}{:width$}  → {}", "", "", visible(remedy))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_collector::capability::{EventCapability, Limit, Privilege};

    fn finding(name: &str, status: Availability, detail: &str, remedy: Option<&str>) -> Finding {
        let remedy = remedy.map(str::to_owned);
        Finding { name: name.into(), status, detail: detail.into(), remedy }
    }

    /// A machine with memory events, one of which this user may not have.
    fn found() -> Capabilities {
        let event =
            |name: &str, is_available, detail: &str, remedy: Option<&str>| EventCapability {
                name: name.into(),
                is_available,
                detail: detail.into(),
                remedy: remedy.map(str::to_owned),
            };
        let remedy = "sudo sysctl kernel.perf_event_paranoid=1";
        Capabilities {
            kernel: "6.12.0-amd64".into(),
            architecture: "x86_64".into(),
            processor: Processor::parse(
                "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
                 model name\t: Intel(R) Xeon(R) Platinum 8480+\nflags\t\t: fpu hypervisor\n",
            ),
            events: vec![
                event("cpu-clock", true, "user code only", Some(remedy)),
                event("cpu/mem-loads,ldlat=30/P", true, "user code, at the very instruction", None),
                event("cpu/mem-stores/P", false, "no counter of the PMU is free for it", None),
            ],
            privileges: vec![Privilege {
                name: "CAP_PERFMON",
                is_held: false,
                purpose: "events of other users' processes, and of the kernel",
                remedy: Some("sudo setcap cap_perfmon+ep \"$(command -v dataspace)\"".into()),
            }],
            limits: vec![Limit {
                name: "RLIMIT_MEMLOCK",
                value: LimitValue::Unlimited,
                meaning: "bytes of rings beyond perf_event_mlock_kb",
                remedy: None,
            }],
        }
    }

    #[test]
    fn the_machine_is_told_to_people_and_programs_alike() {
        let mut out = Vec::new();
        render(&findings(&found()), false, &mut out).unwrap();
        crate::golden::check("golden/doctor-machine.txt", &String::from_utf8(out).unwrap());
        let mut out = Vec::new();
        document::write(&found(), &mut out).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let text = serde_json::to_string_pretty(&document).unwrap();
        crate::golden::check("golden/doctor.json", &text);
    }

    #[test]
    fn each_remedy_stands_below_what_it_lifts() {
        let remedy = Some("sudo sysctl kernel.perf_event_paranoid=1");
        let findings = [
            finding("cpu-clock", Availability::Good, "499 Hz, skid after-one", None),
            finding("perf_event_paranoid", Availability::Limited, "2: no kernel samples", remedy),
            finding("cpu PMU", Availability::Missing, "this virtual machine has none", None),
        ];
        let mut out = Vec::new();
        render(&findings, false, &mut out).unwrap();
        crate::golden::check("golden/doctor.txt", &String::from_utf8(out).unwrap());
    }
}
