//! The live screen.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as TextLine;
use ratatui::widgets::{Cell, Paragraph, Row, Table as Rows};
use ratatui::{DefaultTerminal, Frame};

use super::Ended;
use super::columns::{COLUMNS, Column};
use super::rates::{HostLine, Line};
use super::snapshot::Snapshot;
use super::table::{Press, Table, View};
use super::watch::{Next, Watch};

/// The interval between two checks of the keyboard.
const KEYS: Duration = Duration::from_millis(100);
/// Without a change for so long, the screen says so.
const LATE: Duration = Duration::from_secs(3);
/// The widths of the columns of hosts and of numbers.
const HOST_WIDTH: u16 = 12;
const NUMBER_WIDTH: u16 = 10;
/// `naa.` and 32 digits.
const DEVICE_WIDTH: u16 = 36;

/// Shows the counters until the lab ends, `count` intervals are over, or a key is pressed to quit.
/// The terminal is restored in any case, even after a panic.
///
/// # Errors
/// Those of reading and of the terminal.
pub(super) fn run(watch: Watch, interval: Duration, count: u64) -> Result<Ended, String> {
    // This also makes a panic restore the terminal before its message.
    let mut terminal =
        ratatui::try_init().map_err(|error| format!("the terminal can't be used: {error}"))?;
    let result = Screen::new(watch, interval, count).run(&mut terminal);
    ratatui::restore();
    result
}

struct Screen {
    watch: Watch,
    interval: Duration,
    left: u64,
    before: Snapshot,
    table: Table,
    view: View,
}

impl Screen {
    fn new(watch: Watch, interval: Duration, count: u64) -> Self {
        let before = watch.last().clone();
        let table = Table::of(&before, &before);
        Self { watch, interval, left: count, before, table, view: View::default() }
    }

    fn run(mut self, terminal: &mut DefaultTerminal) -> Result<Ended, String> {
        let wrong = |error: std::io::Error| format!("the terminal: {error}");
        let mut due = Instant::now() + self.interval;
        loop {
            terminal.draw(|frame| self.draw(frame)).map_err(wrong)?;
            match self.watch.next(Instant::now())? {
                Next::Ended(_) => return Ok(Ended::Lab),
                Next::Stopped => return Ok(Ended::Looker),
                Next::Snapshot(_) | Next::Nothing => {}
            }
            if Instant::now() >= due && self.renew() {
                due = Instant::now() + self.interval;
                self.left -= 1;
                if self.left == 0 {
                    return Ok(Ended::Looker);
                }
            }
            if event::poll(KEYS).map_err(wrong)? {
                match press_of(&event::read().map_err(wrong)?) {
                    Some(Press::Quit) => return Ok(Ended::Looker),
                    Some(press) => self.view.press(press),
                    None => {}
                }
            }
        }
    }

    /// Shows another interval, if anything was published in it.
    fn renew(&mut self) -> bool {
        let after = self.watch.last();
        let is_new =
            !after.is_of_the_run_of(&self.before) || after.sequence != self.before.sequence;
        if is_new {
            self.table = Table::of(&self.before, after);
            self.before = after.clone();
        }
        is_new
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let hosts = u16::try_from(self.table.hosts.len()).unwrap_or(u16::MAX);
        // At least half is for the devices.
        let hosts_height = (hosts.saturating_add(2)).min(frame.area().height / 2);
        let [head, top, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(hosts_height),
            Constraint::Min(1),
        ])
        .areas(frame.area());
        // A blank separates two columns.
        let names = HOST_WIDTH + 1 + DEVICE_WIDTH;
        let room = frame.area().width.saturating_sub(names) / (NUMBER_WIDTH + 1);
        let columns = self.view.columns(usize::from(room));
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(hosts_table(&self.table.hosts), top);
        frame.render_widget(devices_table(&self.table.sorted(self.view), columns), bottom);
    }

    fn head(&self) -> TextLine<'static> {
        let order = match self.view.sort.and_then(|sort| COLUMNS.get(sort)) {
            Some(column) => format!("{} ({})", column.name, column.what),
            None => String::from("HOST"),
        };
        let age = self.watch.age();
        let late = match age > LATE {
            true => format!("  nothing new for {} s", age.as_secs()),
            false => String::new(),
        };
        TextLine::from(format!(
            "lab {}, each {} s{late}   q: quit  left, right: columns  <, >: order, by {}",
            self.watch.last().pid,
            self.interval.as_secs(),
            order,
        ))
    }
}

/// Returns what a key does; none for keys without a function.
fn press_of(event: &Event) -> Option<Press> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Press::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Press::Quit),
        KeyCode::Left => Some(Press::Left),
        KeyCode::Right => Some(Press::Right),
        KeyCode::Char('>') => Some(Press::SortNext),
        KeyCode::Char('<') => Some(Press::SortPrevious),
        _ => None,
    }
}

fn heading(names: impl IntoIterator<Item = &'static str>) -> Row<'static> {
    Row::new(names.into_iter().map(Cell::from)).style(Style::new().add_modifier(Modifier::BOLD))
}

fn hosts_table(hosts: &[HostLine]) -> Rows<'static> {
    let row = |host: &HostLine| {
        Row::new([
            host.host.clone(),
            format!("{}/{}", host.paths_up, host.paths),
            format!("{:.2}", host.commands),
            format!("{:.2}", host.sent_mb),
            format!("{:.2}", host.received_mb),
        ])
    };
    let mut widths = vec![Constraint::Length(HOST_WIDTH)];
    widths.extend([Constraint::Length(NUMBER_WIDTH); 4]);
    Rows::new(hosts.iter().map(row), widths)
        .header(heading(["HOST", "PATHS", "CMDS/s", "MBTX/s", "MBRX/s"]))
}

fn devices_table(lines: &[&Line], columns: &'static [Column]) -> Rows<'static> {
    let row = |line: &&Line| {
        let first = [line.host.clone(), line.device.clone()];
        Row::new(first.into_iter().chain(columns.iter().map(|column| column.text(line))))
    };
    let mut widths = vec![Constraint::Length(HOST_WIDTH), Constraint::Length(DEVICE_WIDTH)];
    widths.extend(vec![Constraint::Length(NUMBER_WIDTH); columns.len()]);
    let names = ["HOST", "DEVICE"].into_iter().chain(columns.iter().map(|column| column.name));
    Rows::new(lines.iter().map(row), widths).header(heading(names))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::columns::tests::line;

    fn screen(directory: &std::path::Path) -> Screen {
        let path = directory.join("counters");
        let snapshot = Snapshot {
            form: 1,
            pid: std::process::id(),
            wall_ms: u64::MAX / 2,
            ..Snapshot::default()
        };
        std::fs::write(&path, serde_json::to_string(&snapshot).unwrap()).unwrap();
        Screen::new(Watch::begin(&path, || false).unwrap(), Duration::from_secs(5), 1)
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
    }

    #[test]
    fn hosts_and_devices_are_shown_with_their_columns() {
        let directory = tempfile::tempdir().unwrap();
        let mut screen = screen(directory.path());
        screen.table.lines = vec![line()];
        screen.table.hosts = vec![HostLine {
            host: "esx-1".into(),
            paths_up: 1,
            paths: 2,
            commands: 3.5,
            sent_mb: 4.0,
            received_mb: 5.0,
        }];
        let rows = drawn(&screen, 132, 10);
        assert!(rows[0].contains("q: quit"), "{rows:#?}");
        assert!(rows[1].starts_with("HOST") && rows[1].contains("MBRX/s"), "{rows:#?}");
        assert!(rows[2].contains("1/2") && rows[2].contains("3.50"), "{rows:#?}");
        assert!(rows[4].contains("CLONE_RD") && rows[4].contains("ATSF"), "{rows:#?}");
        assert!(rows[5].contains("naa.6") && rows[5].contains("320"), "{rows:#?}");
        screen.view.press(Press::Right);
        assert!(!drawn(&screen, 132, 10)[4].contains("CLONE_RD"));
        // However small it is, it is drawn.
        drawn(&screen, 1, 1);
    }

    #[test]
    fn keys_do_what_the_header_says() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        let plain = |code| press_of(&key(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Some(Press::Quit));
        assert_eq!(plain(KeyCode::Esc), Some(Press::Quit));
        assert_eq!(plain(KeyCode::Char('c')), None);
        assert_eq!(press_of(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)), Some(Press::Quit));
        assert_eq!(plain(KeyCode::Right), Some(Press::Right));
        assert_eq!(plain(KeyCode::Char('>')), Some(Press::SortNext));
        assert_eq!(press_of(&Event::FocusLost), None);
    }
}
