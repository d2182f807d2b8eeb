//! The state of the live screen, without the terminal: kind, order, and position.

use super::columns::{self, Column};
use super::rates::Line;
use super::sample::Kind;

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    Quit,
    /// Ends typing or help; otherwise as [`Press::Quit`].
    Escape,
    Enter,
    Erase,
    Left,
    Right,
    Up,
    Down,
    Tab,
    /// A letter: typed text, or a command of [`View::press`].
    Letter(char),
}

/// The lines that are shown, and their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The kind of the lines.
    pub kind: Kind,
    /// Sorted by this column of the kind, the greatest first; `None` is by name.
    pub sort: Option<usize>,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// The first column that is shown.
    pub first_column: usize,
    /// The first line that is shown.
    pub first_line: usize,
    /// Only names that contain this text, ignoring case.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// Whether help is shown instead.
    pub is_help: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            kind: Kind::Volume,
            // By commands per second: busy objects come first.
            sort: Some(0),
            reversed: false,
            first_column: 0,
            first_line: 0,
            filter: String::new(),
            is_typing: false,
            is_help: false,
        }
    }
}

impl View {
    /// Handles a key; returns whether to quit.
    pub fn press(&mut self, press: Press) -> bool {
        if press == Press::Quit {
            return true;
        }
        if self.is_typing {
            self.type_in(press);
            return false;
        }
        if self.is_help {
            self.is_help = false;
            return false;
        }
        let last = columns::of_kind(self.kind).len().saturating_sub(1);
        match press {
            Press::Quit | Press::Escape | Press::Letter('q') => return true,
            Press::Left => self.first_column = self.first_column.saturating_sub(1),
            Press::Right => self.first_column = (self.first_column + 1).min(last),
            Press::Up => self.first_line = self.first_line.saturating_sub(1),
            Press::Down => self.first_line = self.first_line.saturating_add(1),
            Press::Tab => self.show(self.kind_behind()),
            Press::Letter('v') => self.show(Kind::Volume),
            Press::Letter('h') => self.show(Kind::Host),
            Press::Letter('p') => self.show(Kind::Port),
            Press::Letter('>') => self.sort = next(self.sort, last),
            Press::Letter('<') => self.sort = previous(self.sort, last),
            Press::Letter('r') => self.reversed = !self.reversed,
            Press::Letter('/') => self.is_typing = true,
            Press::Letter('?') => self.is_help = true,
            Press::Letter(_) | Press::Enter | Press::Erase => {}
        }
        false
    }

    fn type_in(&mut self, press: Press) {
        match press {
            Press::Letter(letter) => self.filter.push(letter),
            Press::Erase => drop(self.filter.pop()),
            Press::Enter => self.is_typing = false,
            Press::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
        self.first_line = 0;
    }

    fn show(&mut self, kind: Kind) {
        let last = columns::of_kind(kind).len().saturating_sub(1);
        self.kind = kind;
        self.first_line = 0;
        self.first_column = self.first_column.min(last);
        self.sort = self.sort.map(|sort| sort.min(last));
    }

    fn kind_behind(&self) -> Kind {
        let at = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0);
        Kind::ALL[(at + 1) % Kind::ALL.len()]
    }

    /// Returns the columns that fit.
    pub fn columns(&self, room: usize) -> Vec<&'static Column> {
        columns::of_kind(self.kind).into_iter().skip(self.first_column).take(room).collect()
    }

    /// Returns the column that decides the order.
    pub fn sorted_by(&self) -> Option<&'static Column> {
        columns::of_kind(self.kind).get(self.sort?).copied()
    }

    /// Returns the lines to show, in their order.
    pub fn lines<'a>(&self, all: &'a [Line]) -> Vec<&'a Line> {
        let wanted = self.filter.to_lowercase();
        let is_wanted =
            |line: &&Line| line.kind == self.kind && line.name.to_lowercase().contains(&wanted);
        let mut lines: Vec<&Line> = all.iter().filter(is_wanted).collect();
        if let Some(column) = self.sorted_by() {
            lines.sort_by(|a, b| column.value(b).total_cmp(&column.value(a)));
        }
        if self.reversed {
            lines.reverse();
        }
        // Scrolling down stops at the last line.
        let first = self.first_line.min(lines.len().saturating_sub(1));
        lines.split_off(first)
    }
}

/// Returns the next column; after the last one, none.
fn next(sort: Option<usize>, last: usize) -> Option<usize> {
    match sort {
        None => Some(0),
        Some(column) if column >= last => None,
        Some(column) => Some(column + 1),
    }
}

fn previous(sort: Option<usize>, last: usize) -> Option<usize> {
    match sort {
        None => Some(last),
        Some(column) => column.checked_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::line;
    use super::*;

    fn names(view: &View, all: &[Line]) -> Vec<String> {
        view.lines(all).iter().map(|line| line.name.clone()).collect()
    }

    #[test]
    fn keys_sort_and_filter_lines() {
        let mut busy = line("b-busy");
        busy.recent.commands.get_mut("read").unwrap().ok += 100;
        let host = Line { kind: Kind::Host, ..line("esx") };
        let all = [line("a"), busy, line("c"), host];
        let mut view = View::default();
        assert_eq!(names(&view, &all), ["b-busy", "a", "c"]);
        view.press(Press::Letter('<'));
        assert_eq!(
            (view.sort, names(&view, &all)),
            (None, vec!["a".into(), "b-busy".into(), "c".into()])
        );
        view.press(Press::Letter('r'));
        assert_eq!(names(&view, &all), ["c", "b-busy", "a"]);
        view.press(Press::Down);
        assert_eq!(names(&view, &all), ["b-busy", "a"]);
        assert!((0..9).all(|_| !view.press(Press::Down)));
        assert_eq!(names(&view, &all), ["a"]);
        view.press(Press::Letter('/'));
        // Typed text is not a command.
        "Bq".chars().for_each(|letter| assert!(!view.press(Press::Letter(letter))));
        view.press(Press::Erase);
        view.press(Press::Enter);
        assert_eq!(names(&view, &all), ["b-busy"]);
        view.press(Press::Letter('/'));
        view.press(Press::Escape);
        assert_eq!(names(&view, &all).len(), 3);
        view.press(Press::Tab);
        assert_eq!(names(&view, &all), ["esx"]);
        assert!(!view.press(Press::Letter('?')) && view.is_help);
        assert!(!view.press(Press::Escape) && view.press(Press::Escape));
    }

    #[test]
    fn columns_scroll_from_end_to_end() {
        let mut view = View::default();
        let count = columns::of_kind(Kind::Volume).len();
        view.press(Press::Left);
        assert_eq!((view.columns(99).len(), view.columns(3).len()), (count, 3));
        assert!((0..2 * count).all(|_| !view.press(Press::Right)));
        assert_eq!(view.columns(99).len(), 1);
        assert!((0..count - 1).all(|_| !view.press(Press::Letter('>'))));
        assert_eq!(view.sort, Some(count - 1));
        // Ports have fewer columns.
        view.press(Press::Letter('p'));
        assert!(view.columns(99).len() == 1 && view.sorted_by().is_some());
        view.press(Press::Letter('>'));
        assert_eq!(view.sort, None);
        view.press(Press::Letter('<'));
        assert_eq!(view.sort, Some(columns::of_kind(Kind::Port).len() - 1));
    }
}
