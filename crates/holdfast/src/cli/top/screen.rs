//! The live screen.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as TextLine, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};

use super::Look;
use super::columns::{self, Column};
use super::rates::{Line, array_rates, rates};
use super::sample::{Kind, Sample};
use super::view::{Press, View};
use crate::cli::failure::Failure;
use crate::cli::output::time;
use crate::cli::size::human;
use crate::cli::space::reduction;

/// The interval of polling the keyboard.
const KEYS: Duration = Duration::from_millis(100);
/// The width of a name and of a number.
const NAME_WIDTH: u16 = 24;
const NUMBER_WIDTH: u16 = 10;
/// The columns of the array's own line.
const SUMMARY: usize = 7;
const HINT: &str = "q quit  v h p kinds  < > order  r reverse  / filter  arrows move  ? help";

/// Shows the activity until `count` intervals are over, or until a key or a signal ends it. The
/// terminal is always restored, also after a panic.
pub fn run(looker: &mut impl Look, interval: Duration, count: Option<u64>) -> Result<(), Failure> {
    let mut screen = Screen::new(looker.look()?, interval);
    let wrong = |error: std::io::Error| Failure::Machine(format!("the terminal: {error}"));
    // This also makes a panic restore the terminal before it prints its message.
    let mut terminal = ratatui::try_init().map_err(wrong)?;
    let shown = show(&mut screen, looker, count.unwrap_or(u64::MAX), &mut terminal);
    ratatui::restore();
    shown.map_err(wrong)
}

fn show(
    screen: &mut Screen,
    looker: &mut impl Look,
    mut left: u64,
    terminal: &mut DefaultTerminal,
) -> std::io::Result<()> {
    let mut due = Instant::now() + screen.interval;
    while left > 0 && !looker.is_over() {
        terminal.draw(|frame| screen.draw(frame))?;
        if event::poll(KEYS)?
            && let Some(press) = press_of(&event::read()?)
            && screen.view.press(press)
        {
            return Ok(());
        }
        if Instant::now() >= due {
            screen.renew(looker.look());
            (due, left) = (Instant::now() + screen.interval, left - 1);
        }
    }
    Ok(())
}

/// The content of the screen.
struct Screen {
    interval: Duration,
    last: Sample,
    array: Line,
    lines: Vec<Line>,
    /// Why the last sample failed.
    failure: Option<String>,
    view: View,
}

impl Screen {
    fn new(first: Sample, interval: Duration) -> Self {
        let (array, lines) = (array_rates(&first, &first), rates(&first, &first));
        Self { interval, last: first, array, lines, failure: None, view: View::default() }
    }

    /// Shows another interval. An array that does not respond may respond later.
    fn renew(&mut self, look: Result<Sample, Failure>) {
        match look {
            Ok(after) => {
                self.array = array_rates(&self.last, &after);
                self.lines = rates(&self.last, &after);
                (self.last, self.failure) = (after, None);
            }
            Err(failure) => self.failure = Some(failure.to_string()),
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        match self.view.is_help {
            true => frame.render_widget(Paragraph::new(help(self.view.kind)), body),
            false => {
                let room = body.width.saturating_sub(NAME_WIDTH) / (NUMBER_WIDTH + 1);
                let columns = self.view.columns(usize::from(room));
                frame.render_widget(table(&self.view, &self.lines, &columns), body);
            }
        }
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn head(&self) -> Text<'static> {
        let pool = &self.last.pool;
        let percent = pool.used_bytes as f64 * 100.0 / pool.capacity_bytes.max(1) as f64;
        let first = format!(
            "{}  {}  each {} s   {} of {} used ({percent:.1}%)   reduction {}, with thin {}",
            self.last.array,
            time(self.last.wall_ms),
            self.interval.as_secs(),
            human(pool.used_bytes),
            human(pool.capacity_bytes),
            reduction(pool.data_reduction),
            reduction(pool.total_reduction),
        );
        let all = columns::COLUMNS.iter().take(SUMMARY);
        let all: Vec<String> =
            all.map(|column| format!("{} {}", column.name, column.text(&self.array))).collect();
        let kinds = Kind::ALL.iter().map(|kind| {
            let count = self.lines.iter().filter(|line| line.kind == *kind).count();
            let text = format!("{}s {count}", kind.name());
            if *kind == self.view.kind { format!("[{text}]") } else { format!(" {text} ") }
        });
        Text::from(vec![
            TextLine::from(first).style(Style::new().add_modifier(Modifier::BOLD)),
            TextLine::from(all.join("   ")),
            TextLine::from(format!("{}  {}", kinds.collect::<String>(), self.order())),
        ])
    }

    fn order(&self) -> String {
        let by = self.view.sorted_by().map_or_else(
            || "name".to_owned(),
            |column| format!("{} ({})", column.name, column.what),
        );
        let end = if self.view.reversed { ", reversed" } else { "" };
        let filter = match self.view.filter.is_empty() {
            true => String::new(),
            false => format!("  only {:?}", self.view.filter),
        };
        format!("by {by}{end}{filter}")
    }

    fn foot(&self) -> String {
        match (&self.failure, self.view.is_typing) {
            (Some(failure), _) => failure.clone(),
            (None, true) => format!("only names with: {}_  (Enter, Esc)", self.view.filter),
            (None, false) => HINT.to_owned(),
        }
    }
}

/// Returns the meaning of a key; `None` if the event is not a key.
fn press_of(event: &Event) -> Option<Press> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Press::Quit),
        KeyCode::Char(letter) => Some(Press::Letter(*letter)),
        KeyCode::Esc => Some(Press::Escape),
        KeyCode::Enter => Some(Press::Enter),
        KeyCode::Backspace => Some(Press::Erase),
        KeyCode::Left => Some(Press::Left),
        KeyCode::Right => Some(Press::Right),
        KeyCode::Up => Some(Press::Up),
        KeyCode::Down => Some(Press::Down),
        KeyCode::Tab => Some(Press::Tab),
        _ => None,
    }
}

fn table(view: &View, lines: &[Line], columns: &[&'static Column]) -> Table<'static> {
    let row = |line: &&Line| {
        let numbers = columns.iter().map(|column| format!("{:>10}", column.text(line)));
        Row::new(std::iter::once(line.name.clone()).chain(numbers))
    };
    let mut widths = vec![Constraint::Length(NAME_WIDTH)];
    widths.extend(vec![Constraint::Length(NUMBER_WIDTH); columns.len()]);
    let heads = columns.iter().map(|column| Cell::from(format!("{:>10}", column.name)));
    let name = Cell::from(view.kind.name().to_uppercase());
    let header = Row::new(std::iter::once(name).chain(heads));
    Table::new(view.lines(lines).iter().map(row), widths)
        .header(header.style(Style::new().add_modifier(Modifier::BOLD)))
}

/// Returns the keys and the columns.
fn help(kind: Kind) -> Text<'static> {
    let keys = [
        "v h p, Tab     volumes, hosts, ports",
        "< >            order by another column; after the last one, by name",
        "r              reverse the order",
        "/              only names that contain a text; Esc clears it",
        "arrows         more columns, more lines",
        "q, Esc         quit; any key leaves this page",
        "",
    ];
    let columns = columns::of_kind(kind);
    let columns = columns.iter().map(|column| format!("{:<14} {}", column.name, column.what));
    Text::from_iter(keys.into_iter().map(str::to_owned).chain(columns))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::sample::tests::{path, sample};
    use super::*;

    fn screen() -> Screen {
        let mut screen =
            Screen::new(sample(1, 0, vec![path("iqn.a", "vm-1", 100)]), Duration::from_secs(5));
        screen.renew(Ok(sample(1, 2, vec![path("iqn.a", "vm-1", 120), path("iqn.b", "x", 9)])));
        screen
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
    }

    #[test]
    fn the_screen_shows_volumes_and_the_reduction_of_the_array() {
        let mut screen = screen();
        let rows = drawn(&screen, 160, 12);
        assert!(rows[0].contains("attic") && rows[0].contains("reduction 3.1 to 1"), "{rows:#?}");
        assert!(rows[0].contains("25 GiB of 100 GiB used (25.0%)"), "{rows:#?}");
        assert!(rows[1].contains("WRITES/s 14.50") && rows[1].contains("LAT/wr 2.00"), "{rows:#?}");
        assert!(rows[2].contains("[Volumes 2]") && rows[2].contains("Ports 1"), "{rows:#?}");
        assert!(rows[3].starts_with("VOLUME") && rows[3].contains("CLONE_WR"), "{rows:#?}");
        assert!(rows[4].starts_with("vm-1") && rows[4].contains("10.00"), "{rows:#?}");
        assert!(rows[4].contains(" 120"), "copies: {rows:#?}");
        screen.view.press(Press::Letter('h'));
        let rows = drawn(&screen, 160, 12);
        assert!(rows[3].starts_with("HOST") && rows[4].starts_with("esx"), "{rows:#?}");
        screen.view.press(Press::Letter('p'));
        assert!(drawn(&screen, 160, 12)[4].starts_with("192.0.2.1:3260"));
        screen.view.press(Press::Letter('?'));
        assert!(drawn(&screen, 160, 40).iter().any(|row| row.contains("ms of a compare")));
        // It can be drawn at any size.
        drawn(&screen, 1, 1);
    }

    #[test]
    fn a_lost_array_is_reported_and_may_return() {
        let mut screen = screen();
        screen.renew(Err(Failure::Unreachable("it does not answer".into())));
        assert_eq!(drawn(&screen, 80, 12)[11], "it does not answer");
        screen.renew(Ok(sample(2, 9, vec![path("iqn.a", "vm-1", 14)])));
        let rows = drawn(&screen, 160, 12);
        assert!(rows[11].contains("q quit") && rows[4].contains("2.00"), "{rows:#?}");
    }

    #[test]
    fn keys_do_what_the_help_says() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        let plain = |code| press_of(&key(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('c')), Some(Press::Letter('c')));
        assert_eq!(press_of(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)), Some(Press::Quit));
        assert_eq!((plain(KeyCode::Esc), plain(KeyCode::F(1))), (Some(Press::Escape), None));
        assert_eq!(press_of(&Event::FocusLost), None);
    }
}
