//! A list of rows on a screen: the selected one, and which of them are visible.

/// Place in a list of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// The selected row.
    pub(super) selected: usize,
    /// The first visible one.
    first: usize,
    /// Number of rows that were visible in the last picture.
    n_visible: usize,
}

impl Rows {
    /// Says how many of `n_rows` the picture has room for; gives the first one to show.
    pub(super) fn fit(&mut self, n_rows: usize, n_visible: usize) -> usize {
        self.n_visible = n_visible.max(1);
        self.selected = self.selected.min(n_rows.saturating_sub(1));
        let last_first = n_rows.saturating_sub(self.n_visible);
        let low = (self.selected + 1).saturating_sub(self.n_visible);
        self.first = self.first.clamp(low, self.selected.max(low)).min(last_first);
        self.first
    }

    /// Goes on by so many of `n_rows`.
    pub(super) fn step(&mut self, n_lines: isize, n_rows: usize) {
        let selected = self.selected.saturating_add_signed(n_lines);
        self.selected = selected.min(n_rows.saturating_sub(1));
    }

    /// Moves what is visible by so many of `n_rows`, and the selection with it where it would leave.
    pub(super) fn scroll(&mut self, n_lines: isize, n_rows: usize) {
        let last_first = n_rows.saturating_sub(self.n_visible);
        self.first = self.first.saturating_add_signed(n_lines).min(last_first);
        let last = self.first + self.n_visible.saturating_sub(1);
        self.selected = self.selected.clamp(self.first, last).min(n_rows.saturating_sub(1));
    }

    /// A page; a line of the old one stays visible.
    pub(super) fn page_step(&self) -> isize {
        isize::try_from(self.n_visible.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// The row in a line of the picture.
    pub(super) const fn at_line(&self, line: usize) -> usize {
        self.first + line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_stays_visible() {
        let mut rows = Rows::default();
        assert_eq!(rows.fit(100, 10), 0);
        rows.step(25, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (16, 25));
        rows.step(isize::MIN, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (0, 0));
        rows.step(isize::MAX, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (90, 99));
        assert_eq!((rows.fit(3, 10), rows.selected), (0, 2));
        assert_eq!((rows.fit(0, 0), rows.selected), (0, 0));
    }

    #[test]
    fn a_wheel_takes_the_selection_along_at_the_edge() {
        let mut rows = Rows::default();
        rows.fit(100, 10);
        rows.scroll(3, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (3, 3));
        rows.scroll(-50, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (0, 3));
        rows.scroll(500, 100);
        assert_eq!((rows.fit(100, 10), rows.selected), (90, 90));
    }
}
