//! A calibration as text: the event, where every sample went, how far they skidded, what does not
//! fit.

use super::slow_loop::Access;
use super::tally::LoopTally;
use super::verdict::{self, Fit};
use super::{Calibration, Tally};
use crate::header::{Segment, Tone, event_text, skid_text};
use crate::table::Printer;
use crate::text::{percent, span};
use std::io::{self, Write};

/// Distances with a column of their own; what is further away has one together.
const N_NEAR: usize = 4;

/// Below the table.
const LEGEND: &str = "\
0 is the slow access itself, 1 the instruction that retires behind it, and so on round the loop.
RESTARTED are at the slow access with the resume flag set: it is run again after a fault, here or in the
hypervisor, which is no skid; FITS leaves them out.";

/// Writes all that was measured.
pub(crate) fn render(
    calibration: &Calibration,
    has_color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut printer = Printer { out, has_color };
    header(calibration, &mut printer)?;
    writeln!(printer.out)?;
    distances(calibration, &mut printer)?;
    writeln!(printer.out)?;
    for line in LEGEND.lines() {
        printer.toned(line, Tone::Faint)?;
    }
    printer.warnings(&verdict::warnings(calibration))
}

fn header(calibration: &Calibration, printer: &mut Printer<'_>) -> io::Result<()> {
    let event = Segment::new(event_text(&calibration.event), Tone::Plain);
    printer.line("event", &[event], "")?;
    printer.line("samples", &accounts(calibration), " ")?;
    let model = calibration.event.skid;
    let fit = Fit::new(model, &calibration.tally.loops);
    let share = percent(fit.fitting, fit.of);
    let elapsed = span(calibration.elapsed_ns);
    let measured = if fit.of == 0 {
        vec![Segment::new(format!("nothing: no sample in the loops in {elapsed}"), Tone::Loss)]
    } else {
        vec![
            Segment::new(format!("{}: {share}", skid_text(model)), Tone::Strong),
            Segment::new(format!("of {} samples in {elapsed}", fit.of), Tone::Plain),
        ]
    };
    printer.line("measured", &measured, " ")
}

/// `20000 = in the loops … + elsewhere … + in the kernel … + lost …`.
fn accounts(calibration: &Calibration) -> Vec<Segment> {
    let Tally { n_elsewhere, n_in_kernel, .. } = calibration.tally;
    let kernel = calibration.collected.kernel_samples;
    let lost = calibration.lost().total();
    let term = |sign: &str, name: &str, count: u64, tone| {
        let share =
            if count == 0 { String::new() } else { format!(" ({})", percent(count, kernel)) };
        Segment::new(format!("{sign} {name} {count}{share}"), tone)
    };
    let mut segments = vec![
        Segment::new(kernel.to_string(), Tone::Strong),
        term("=", "in the loops", calibration.tally.n_in_loops(), Tone::Plain),
        term("+", "elsewhere", n_elsewhere, Tone::Plain),
        term("+", "in the kernel", n_in_kernel, Tone::Plain),
        term("+", "lost", lost, if lost > 0 { Tone::Loss } else { Tone::Plain }),
    ];
    let imbalance = calibration.imbalance();
    if imbalance != 0 {
        segments.push(Segment::new(format!("+ NOT ACCOUNTED FOR {imbalance}"), Tone::Loss));
    }
    segments
}

/// A row for each loop, and one for each kind of access.
fn distances(calibration: &Calibration, printer: &mut Printer<'_>) -> io::Result<()> {
    let near: Vec<String> = (0..N_NEAR).map(|distance| distance.to_string()).collect();
    let mut columns: Vec<&str> = near.iter().map(String::as_str).collect();
    columns.extend(["FURTHER", "RESTARTED"]);
    let title = row("SLOW ACCESS", "PLACE", "SAMPLES", "FITS", &columns);
    printer.toned(title, Tone::Strong)?;
    for access in Access::ALL {
        let loops: Vec<&LoopTally> = calibration.tally.loops_of(access).collect();
        for tally in &loops {
            let line = loop_row(calibration, tally.slow_loop.place.name(), &[tally]);
            writeln!(printer.out, "{line}")?;
        }
        printer.toned(loop_row(calibration, "all", &loops), Tone::Strong)?;
    }
    Ok(())
}

fn loop_row(calibration: &Calibration, place: &str, loops: &[&LoopTally]) -> String {
    let n_samples = loops.iter().map(|tally| tally.n_samples()).sum();
    let share = |count: u64| if count == 0 { "-".to_owned() } else { percent(count, n_samples) };
    let at = |is_meant: &dyn Fn(usize) -> bool| -> u64 {
        let counts = loops.iter().flat_map(|tally| tally.distances.iter().enumerate());
        counts.filter(|(distance, _)| is_meant(*distance)).map(|(_, count)| count).sum()
    };
    let mut cells: Vec<String> = (0..N_NEAR).map(|near| share(at(&|far| far == near))).collect();
    cells.push(share(at(&|far| far >= N_NEAR)));
    cells.push(share(loops.iter().map(|tally| tally.n_restarted).sum()));
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let fit = Fit::new(calibration.event.skid, loops.iter().copied());
    let access = loops.first().map_or("", |tally| tally.slow_loop.access.name());
    row(access, place, &n_samples.to_string(), &percent(fit.fitting, fit.of), &cells)
}

fn row(access: &str, place: &str, samples: &str, fits: &str, cells: &[&str]) -> String {
    let mut line = format!("{access:<16}  {place:<6}  {samples:>7}  {fits:>6} ");
    for cell in cells {
        line.push_str(&format!("  {cell:>6}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::fixture;

    fn text(calibration: &Calibration, has_color: bool) -> String {
        let mut out = Vec::new();
        render(calibration, has_color, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn calibrations_look_as_expected() {
        let check = |name: &str, calibration: &Calibration| {
            crate::golden::check(&format!("golden/{name}.txt"), &text(calibration, false));
        };
        check("calibration_fitting", &fixture::fitting());
        check("calibration_misfitting", &fixture::misfitting());
    }

    #[test]
    fn warnings_are_red_only_where_colour_is_wanted() {
        assert!(text(&fixture::misfitting(), true).contains("\x1b[1;31mwarning: store"));
        assert!(!text(&fixture::misfitting(), false).contains('\x1b'));
    }

    #[test]
    fn what_does_not_add_up_is_said() {
        let mut calibration = fixture::fitting();
        calibration.collected.kernel_samples += 7;
        assert!(text(&calibration, false).contains("+ NOT ACCOUNTED FOR 7\n"));
    }
}
