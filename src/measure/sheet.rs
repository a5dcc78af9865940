//! A measurement's report as text, in HP Caliper's order.

use super::column::Shares;
use super::detail::{DetailKind, DetailRow, FunctionDetail};
use super::rate::DerivedRate;
use super::report::MeasureReport;
use super::summary::Summary;
use super::sums::SampleSums;
use super::table::MeasureTable;
use super::view::{DetailRows, ThreadChoice};
use crate::annotation::cutoff::CodeCutoffs;
use crate::header::Tone;
use crate::table::Printer;
use crate::text::visible;
use dataspace_proto::event_count::EventCount;
use dataspace_proto::measure::Measure;
use std::io::{self, Write};

/// Between two columns.
const GAP: &str = "  ";

/// Columns of the text of an instruction before its data object.
const TEXT_WIDTH: usize = 46;

/// Writes a report.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    report: &MeasureReport,
    has_color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sheet = Sheet { printer: Printer { out, has_color }, report };
    sheet.run()?;
    sheet.counts()?;
    match (report.overview.total.samples, report.overview.total.hits) {
        (0, 0) => sheet.printer.toned("\nno samples of it", Tone::Loss)?,
        (0, n) => {
            let text = format!("\nno misses: all {n} samples hit the first level");
            sheet.printer.toned(text, Tone::Loss)?;
        }
        _ => {}
    }
    if report.overview.total.samples + report.overview.total.hits != 0 {
        report.overview.summaries.iter().try_for_each(|summary| sheet.summary(summary))?;
        sheet.details(&report.details)?;
        sheet.threads()?;
        report.overview.data.iter().try_for_each(|summary| sheet.summary(summary))?;
    }
    sheet.foot()?;
    sheet.printer.warnings(&report.overview.snapshot.warnings)?;
    sheet.printer.out.flush()
}

struct Sheet<'a> {
    printer: Printer<'a>,
    report: &'a MeasureReport,
}

impl Sheet<'_> {
    fn title(&mut self, text: &str) -> io::Result<()> {
        let line = "-".repeat(text.chars().count());
        self.printer.toned(text, Tone::Strong)?;
        self.printer.toned(line, Tone::Faint)
    }

    fn run(&mut self) -> io::Result<()> {
        self.title("Run information")?;
        for (name, text) in &self.report.run {
            writeln!(self.printer.out, "{name:<14}{}", visible(text))?;
        }
        Ok(())
    }

    fn counts(&mut self) -> io::Result<()> {
        let report = self.report;
        writeln!(self.printer.out)?;
        self.title("Exact metrics, of the whole run")?;
        if report.overview.snapshot.counts.is_empty() {
            return self.printer.toned("not recorded", Tone::Faint);
        }
        for (text, tone) in count_lines(&report.overview.snapshot.counts) {
            self.printer.toned(text, tone)?;
        }
        if !report.overview.rates.is_empty() {
            writeln!(self.printer.out)?;
        }
        for rate in &report.overview.rates {
            writeln!(self.printer.out, "{}", rate_line(rate))?;
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        writeln!(self.printer.out)?;
        self.title(summary.title)?;
        let kept: Vec<_> = summary.rows.iter().filter(|row| !row.is_cut).collect();
        let rows = kept.iter().map(|row| (&row.sums, row.shares));
        let table = MeasureTable::of(&self.report.overview, rows);
        for line in table.titles(summary.heading).iter().filter(|line| !line.trim().is_empty()) {
            self.printer.toned(line.trim_end(), Tone::Strong)?;
        }
        let is_grouped = summary.name == "function" && self.report.view.is_by_module;
        let mut last = None;
        for row in &kept {
            if is_grouped && last != row.key.first() {
                last = row.key.first();
                let module = last.map(crate::answer::text).unwrap_or_default();
                self.printer.toned(format!("[{}]", visible(&module)), Tone::Faint)?;
            }
            let cells = table.cells(&row.sums, row.shares);
            writeln!(self.printer.out, "{cells}{}", visible(&row.name))?;
        }
        let mut cut = SampleSums::default();
        summary.rows.iter().filter(|row| row.is_cut).for_each(|row| cut.add(&row.sums));
        let n_cut = summary.rows.len() - kept.len();
        if n_cut != 0 {
            let text = format!("{n_cut} more with {} samples are below the cutoffs", cut.samples);
            self.printer.toned(text, Tone::Faint)?;
        }
        Ok(())
    }

    fn details(&mut self, details: &[FunctionDetail]) -> io::Result<()> {
        if details.is_empty() {
            return Ok(());
        }
        writeln!(self.printer.out)?;
        self.title("Function details")?;
        details.iter().try_for_each(|detail| self.detail(detail))
    }

    fn detail(&mut self, detail: &FunctionDetail) -> io::Result<()> {
        let report = self.report;
        let file = detail.file.as_deref().unwrap_or("no source");
        let module = detail.module.rsplit('/').next().unwrap_or(&detail.module);
        let title = format!(
            "[{}::{}, {:#x}, {}]",
            visible(module),
            visible(&detail.function),
            detail.start,
            visible(file)
        );
        self.printer.toned(title, Tone::Strong)?;
        let total = report.overview.metric(&detail.total);
        let shares = |sums: &SampleSums| Shares {
            own: report.overview.metric(sums),
            before: None,
            total: detail.whole,
        };
        let rows = detail.rows.iter().map(|row| (&row.sums, shares(&row.sums)));
        let rows = rows.chain([(&detail.total, shares(&detail.total))]);
        let table = MeasureTable::of(&report.overview, rows);
        let names = ["", "    Line |", "Col,Offset  >Statement | Instruction"];
        for (line, names) in table.titles("").iter().zip(names) {
            let line = format!("{line}{names}");
            if !line.trim().is_empty() {
                self.printer.toned(line.trim_end(), Tone::Strong)?;
            }
        }
        let of_function =
            table.cells(&detail.total, Shares { before: Some(0), ..shares(&detail.total) });
        writeln!(self.printer.out, "{of_function}[Function totals]")?;
        for row in &detail.rows {
            self.row(row, &table, shares(&row.sums), total)?;
        }
        if detail.n_elsewhere != 0 {
            let text = format!(
                "{} samples were interrupted in it, at instructions elsewhere or at none",
                detail.n_elsewhere
            );
            self.printer.toned(text, Tone::Faint)?;
        }
        if detail.n_namesakes != 0 {
            let text = format!(
                "{} other functions of that name are not shown: dataspace annotate finds them",
                detail.n_namesakes
            );
            self.printer.toned(text, Tone::Faint)?;
        }
        writeln!(self.printer.out)
    }

    fn row(
        &mut self,
        row: &DetailRow,
        table: &MeasureTable<'_>,
        shares: Shares,
        of_function: u64,
    ) -> io::Result<()> {
        let empty = table.cells(&SampleSums::default(), Shares::default());
        let cells =
            if row.sums.samples == 0 { empty.clone() } else { table.cells(&row.sums, shares) };
        let text = visible(&row.text.replace('\t', "        ")).into_owned();
        let (line, tone) = match &row.kind {
            DetailKind::File(path) => {
                (format!("{empty}{:10}  [{}]", "", visible(path)), Tone::Faint)
            }
            DetailKind::Inlined(Some(name)) => {
                (format!("{empty}{:10}  put in line: {}", "", visible(name)), Tone::Faint)
            }
            DetailKind::Inlined(None) => {
                (format!("{empty}{:10}  of the function itself", ""), Tone::Faint)
            }
            DetailKind::Statement { line, is_approximate, is_out_of_order, is_context } => {
                let number = format!("{}{line}", if *is_approximate { "~" } else { "" });
                let mark = match (is_out_of_order, is_context) {
                    (true, _) => "*>",
                    (false, true) => "",
                    (false, false) => ">",
                };
                let cells = if row.sums.samples == 0 {
                    cells
                } else {
                    table.in_brackets(&row.sums, shares)
                };
                let object = self.object(row);
                let is_alone = self.report.view.rows == DetailRows::Statement;
                let object = if is_alone { object } else { String::new() };
                (format!("{cells}{number:>10} {mark:>2}{text:<TEXT_WIDTH$}{object}"), Tone::Plain)
            }
            DetailKind::Instruction { column, offset, is_approximate, .. } => {
                let place = match (column, is_approximate) {
                    (0, _) => format!(",{offset:#x}"),
                    (column, true) => format!("~{column},{offset:#x}"),
                    (column, false) => format!("{column},{offset:#x}"),
                };
                let is_most = of_function > 0 && shares.own * 2 > of_function;
                let tone = if is_most { Tone::Strong } else { Tone::Plain };
                (format!("{cells}{place:>10}    {text:<TEXT_WIDTH$}{}", self.object(row)), tone)
            }
            DetailKind::CacheLine { start, crosses } => {
                let crosses = crosses.map(|crosses| format!("  {crosses}")).unwrap_or_default();
                (format!("{cells}{:10}  - - - - {start:#x}{crosses}", ""), Tone::Faint)
            }
            DetailKind::Gap(0) => (format!("{empty}{:10}  ~ ~ ~ ~", ""), Tone::Faint),
            DetailKind::Gap(n) => {
                (format!("{empty}{:10}  ~ ~ ~ ~  {n} instructions", ""), Tone::Faint)
            }
        };
        self.printer.toned(line.trim_end(), tone)
    }

    fn object(&self, row: &DetailRow) -> String {
        row.object.as_ref().map(|object| format!("  {}", visible(object))).unwrap_or_default()
    }

    fn threads(&mut self) -> io::Result<()> {
        for section in &self.report.threads {
            writeln!(self.printer.out)?;
            self.title(&format!("Thread {}", visible(&section.name)))?;
            section.summaries.iter().try_for_each(|summary| self.summary(summary))?;
            self.details(&section.details)?;
        }
        let has_none = self.report.threads.is_empty();
        if has_none && matches!(self.report.view.threads, ThreadChoice::One(_)) {
            self.printer.toned("no sample is of that thread", Tone::Loss)?;
        }
        Ok(())
    }

    fn foot(&mut self) -> io::Result<()> {
        writeln!(self.printer.out)?;
        let report = self.report;
        let cutoffs = |name: &str, of: &CodeCutoffs| {
            let CodeCutoffs { min_percent, cumulative_percent, min_samples } = of;
            format!(
                "{name} {min_percent} %, cumulative {cumulative_percent} %, minimum {min_samples}"
            )
        };
        let text = format!(
            "cutoffs: {}; {} (percent of the whole, cumulative percent, samples)",
            cutoffs("--summary-cutoff", &report.view.summary),
            cutoffs("--detail-cutoff", &report.view.detail)
        );
        self.printer.toned(text, Tone::Plain)?;
        let answer = &report.answer;
        let held = match answer.rows_held == answer.rows_of_span {
            true => format!("of all {} samples", answer.rows_held),
            false => format!(
                "of {} of the {} samples: the others are no longer in the history (--history SIZE keeps more), or wait \
                 for debug information",
                answer.rows_held, answer.rows_of_span
            ),
        };
        self.printer.toned(held, Tone::Plain)?;
        if !report.not_shown.is_empty() {
            self.printer
                .toned(format!("no code of {}", report.not_shown.join(", ")), Tone::Loss)?;
        }
        let marks = "(n) sum of a statement, > statement, *> out of order, ~ approximate line or column, - - - - 64 bytes \
                     of code, ~ ~ ~ ~ left out";
        self.printer.toned(marks, Tone::Faint)
    }
}

/// The line of a rate.
pub(crate) fn rate_line(rate: &DerivedRate) -> String {
    let digits = if rate.value < 10.0 { 3 } else { 1 };
    let unit = match rate.unit {
        "percent" => " %",
        "per thousand" => " ‰",
        _ => "",
    };
    let scaled = if rate.is_scaled { "  (scaled)" } else { "" };
    let value = format!("{:.digits$}{unit}", rate.value);
    format!("{:<50}{value:>14}{scaled}", rate.name)
}

/// The lines of counts, and how they are shown.
pub(crate) fn count_lines(counts: &[EventCount]) -> impl Iterator<Item = (String, Tone)> + '_ {
    let width = counts.iter().map(|count| count.event.chars().count()).max().unwrap_or(0);
    counts.iter().map(move |count| count_line(count, width))
}

fn count_line(count: &EventCount, width: usize) -> (String, Tone) {
    let EventCount { event, counted, enabled_ns, running_ns, .. } = count;
    let levels = if count.includes_kernel { "user+kernel" } else { "user" };
    let lacks = count.lacks.as_ref().map(|why| format!("  {}", visible(why))).unwrap_or_default();
    let Some(number) = count.count else {
        let why = if lacks.is_empty() { "  no counter was free for it".to_owned() } else { lacks };
        return (format!("{event:<width$}{GAP}{:>18}{why}", "not counted"), Tone::Loss);
    };
    let number = match &**event {
        "task-clock" | "cpu-clock" => format!("{:.3} ms", number as f64 / 1e6),
        _ => number.to_string(),
    };
    let times = format!(
        "enabled {:.1} ms, running {:.1} ms",
        *enabled_ns as f64 / 1e6,
        *running_ns as f64 / 1e6
    );
    let scaled = match count.is_scaled() {
        true => format!(
            "; scaled from {counted} in {:.1} % of the time",
            *running_ns as f64 / (*enabled_ns).max(1) as f64 * 100.0
        ),
        false => String::new(),
    };
    let text = format!("{event:<width$}{GAP}{number:>18}{GAP}{levels}, {times}{scaled}{lacks}");
    (text, if count.is_scaled() || count.lacks.is_some() { Tone::Loss } else { Tone::Plain })
}

/// Facts that samples of a measurement tell, for a person.
pub(crate) const fn data_sampled(measure: Measure) -> &'static str {
    match measure {
        Measure::Faults => "instruction, data address, registers, 256 bytes of stack",
        Measure::Time => "instruction, registers, 256 bytes of stack",
        Measure::Dcache | Measure::Dtlb => {
            "instruction, data address, latency, data source and translation as far as the hardware tells them, registers"
        }
        Measure::Icache | Measure::Itlb => {
            "instruction, and latency, source and translation of its fetch as far as the hardware tells them"
        }
    }
}
