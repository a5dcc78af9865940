//! Columns of numbers of a measurement, side by side.

use super::column::{MeasureColumn, Shares};
use super::summary::MeasureOverview;
use super::sums::SampleSums;

/// Between two columns.
const GAP: &str = "  ";

/// Columns of numbers, as wide as they need be.
pub(crate) struct MeasureTable<'a> {
    overview: &'a MeasureOverview,
    widths: Vec<usize>,
}

impl<'a> MeasureTable<'a> {
    /// One of a measurement, with columns as wide as these rows need.
    pub(crate) fn of<'b>(
        overview: &'a MeasureOverview,
        rows: impl Iterator<Item = (&'b SampleSums, Shares)>,
    ) -> Self {
        let mut table = Self { overview, widths: Vec::new() };
        table.measure(rows);
        table
    }

    fn title(&self, column: MeasureColumn) -> [String; 3] {
        column.title(self.overview.samples.measure, self.overview.samples.scale.as_ref())
    }

    fn measure<'b>(&mut self, rows: impl Iterator<Item = (&'b SampleSums, Shares)>) {
        let columns = &self.overview.columns;
        // A sum in brackets is two wider.
        let has_brackets = 2;
        let titles = columns.iter().map(|column| {
            self.title(*column).iter().map(|line| line.chars().count()).max().unwrap_or(0)
        });
        let mut widths: Vec<usize> = titles.collect();
        for (sums, shares) in rows {
            for (width, column) in widths.iter_mut().zip(columns) {
                *width = (*width).max(column.cell(sums, shares).chars().count() + has_brackets);
            }
        }
        self.widths = widths;
    }

    /// Its titles; the last line has one for what stands after the columns.
    pub(crate) fn titles(&self, heading: &str) -> [String; 3] {
        let titles: Vec<[String; 3]> =
            self.overview.columns.iter().map(|column| self.title(*column)).collect();
        std::array::from_fn(|line| {
            let cells = titles.iter().zip(&self.widths);
            let mut text: String =
                cells.map(|(title, width)| format!("{:>width$}{GAP}", title[line])).collect();
            text.push_str(if line == 2 { heading } else { "" });
            text
        })
    }

    /// The columns of a row.
    pub(crate) fn cells(&self, sums: &SampleSums, shares: Shares) -> String {
        self.shown(sums, shares, |cell| cell)
    }

    /// The sums of a statement: HP Caliper's brackets tell them from those of its instructions.
    pub(crate) fn in_brackets(&self, sums: &SampleSums, shares: Shares) -> String {
        self.shown(sums, shares, |cell| if cell.is_empty() { cell } else { format!("({cell})") })
    }

    fn shown(&self, sums: &SampleSums, shares: Shares, form: impl Fn(String) -> String) -> String {
        let cells = self.overview.columns.iter().zip(&self.widths);
        cells
            .map(|(column, width)| format!("{:>width$}{GAP}", form(column.cell(sums, shares))))
            .collect()
    }
}
