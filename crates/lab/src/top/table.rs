//! What the live screen shows, without the terminal: rows, their order, the pages of columns.

use super::columns::{COLUMNS, Column};
use super::rates::{HostLine, Line, host_rates, rates};
use super::snapshot::Snapshot;

/// The order of rows, and the first column that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// By this column, in descending order; none is by host and device.
    pub(super) sort: Option<usize>,
    /// The first column that is shown.
    pub(super) first: usize,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    Quit,
    Left,
    Right,
    /// Sort by the next column, or by the previous one.
    SortNext,
    SortPrevious,
}

impl View {
    pub(super) fn press(&mut self, press: Press) {
        let last = COLUMNS.len() - 1;
        match press {
            Press::Quit => {}
            Press::Left => self.first = self.first.saturating_sub(1),
            Press::Right => self.first = (self.first + 1).min(last),
            Press::SortNext => {
                self.sort = match self.sort {
                    None => Some(0),
                    Some(column) if column == last => None,
                    Some(column) => Some(column + 1),
                }
            }
            Press::SortPrevious => {
                self.sort = match self.sort {
                    None => Some(last),
                    Some(0) => None,
                    Some(column) => Some(column - 1),
                }
            }
        }
    }

    /// Returns the columns from the first one shown, as many as there is room for.
    pub(super) fn columns(&self, room: usize) -> &'static [Column] {
        let from = COLUMNS.get(self.first..).unwrap_or_default();
        from.get(..room).unwrap_or(from)
    }
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) hosts: Vec<HostLine>,
    pub(super) lines: Vec<Line>,
}

impl Table {
    pub(super) fn of(before: &Snapshot, after: &Snapshot) -> Self {
        Self { hosts: host_rates(before, after), lines: rates(before, after) }
    }

    /// Returns the lines in the order of a view.
    pub(super) fn sorted(&self, view: View) -> Vec<&Line> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        if let Some(column) = view.sort.and_then(|sort| COLUMNS.get(sort)) {
            lines.sort_by(|a, b| column.value(b).total_cmp(&column.value(a)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::columns::tests::line;

    #[test]
    fn rows_are_sorted_by_the_chosen_column() {
        let mut busy = Line { host: "b".into(), ..line() };
        busy.all.clone_read.count += 1;
        let table = Table { lines: vec![Line { host: "a".into(), ..line() }, busy], hosts: vec![] };
        let order = |view: View| -> Vec<String> {
            table.sorted(view).iter().map(|line| line.host.clone()).collect()
        };
        let mut view = View::default();
        assert_eq!(order(view), ["a", "b"]);
        view.press(Press::SortNext);
        assert_eq!((view.sort, order(view)), (Some(0), vec!["b".to_owned(), "a".to_owned()]));
        view.press(Press::SortPrevious);
        assert_eq!(view.sort, None);
        view.press(Press::SortPrevious);
        assert_eq!(view.sort, Some(COLUMNS.len() - 1));
        view.press(Press::SortNext);
        assert_eq!(view.sort, None);
    }

    #[test]
    fn columns_scroll_from_end_to_end() {
        let mut view = View::default();
        view.press(Press::Left);
        assert_eq!(view.columns(99).len(), COLUMNS.len());
        assert_eq!(view.columns(3).len(), 3);
        for _ in 0..2 * COLUMNS.len() {
            view.press(Press::Right);
        }
        assert_eq!(view.columns(99).len(), 1);
    }
}
