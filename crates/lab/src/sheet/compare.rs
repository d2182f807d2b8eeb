//! Two reports as one document: array A against array B.

use super::document::{Block, Cell, Column, Document, Section, Table, Tone, anchor};
use super::quantity::Shown;
use super::report::{about_table, title};
use super::tables::{A_B, Pair};
use super::{Ratio, in_software, tables};
use crate::figures;
use crate::number;
use crate::outcome::{About, Chart, Line, Measure, Report, Row, ScenarioOutcome, Status};

/// A scenario of both; one side may be missing.
struct Both<'a> {
    id: &'a str,
    a: Option<&'a ScenarioOutcome>,
    b: Option<&'a ScenarioOutcome>,
}

/// A case of both.
struct Case<'a> {
    name: &'a str,
    a: Option<&'a Row>,
    b: Option<&'a Row>,
}

/// Returns the document of two reports.
pub fn document(a: &Report, b: &Report) -> Document {
    let both = scenarios(a, b);
    let mut about = vec![Block::Table(about_table(&[("A", &a.about), ("B", &b.about)]))];
    about.extend(differences(&a.about, &b.about));
    let mut sections = vec![
        section("about", "What was measured", about),
        section("summary", "Summary", vec![Block::Table(summary(&both))]),
    ];
    sections.extend(both.iter().enumerate().map(|(index, both)| Section {
        anchor: anchor(index, both.id),
        short: both.id.to_owned(),
        title: title(both.id),
        blocks: blocks(both),
    }));
    Document {
        title: format!("{} against {}", a.about.name, b.about.name),
        intro: vec![Block::text(format!(
            "A is {}, B is {}. Off: the host does the work by READ and WRITE. On: the array does. \
             A ÷ B over 1× in seconds means that B is faster.",
            a.about.name, b.about.name,
        ))],
        sections,
    }
}

fn section(anchor: &str, title: &str, blocks: Vec<Block>) -> Section {
    let title = title.to_owned();
    Section { anchor: anchor.to_owned(), short: title.clone(), title, blocks }
}

/// Returns all scenarios that either has, in the order of the figures.
fn scenarios<'a>(a: &'a Report, b: &'a Report) -> Vec<Both<'a>> {
    let mut ids: Vec<&str> = Vec::new();
    for outcome in a.scenarios.iter().chain(&b.scenarios) {
        if !ids.contains(&outcome.id.as_str()) {
            ids.push(&outcome.id);
        }
    }
    ids.sort_by_key(|id| figures::position(id));
    let find = |report: &'a Report, id: &str| report.scenarios.iter().find(|o| o.id == id);
    ids.into_iter().map(|id| Both { id, a: find(a, id), b: find(b, id) }).collect()
}

impl<'a> Both<'a> {
    /// Returns all cases that either side has, those of A first.
    fn cases(&self) -> Vec<Case<'a>> {
        let rows = |side: Option<&'a ScenarioOutcome>| side.map_or(&[][..], |it| &it.rows);
        let (a, b) = (rows(self.a), rows(self.b));
        let mut names: Vec<&str> = Vec::new();
        for row in a.iter().chain(b) {
            if !names.contains(&row.case.as_str()) {
                names.push(&row.case);
            }
        }
        let find = |rows: &'a [Row], name: &str| rows.iter().find(|row| row.case == name);
        names.into_iter().map(|name| Case { name, a: find(a, name), b: find(b, name) }).collect()
    }
}

impl Both<'_> {
    /// Returns the lines of both in one chart, if both have a chart with the same title.
    fn lines(&self) -> Vec<Chart> {
        let (Some(a), Some(b)) = (self.a, self.b) else { return Vec::new() };
        let together = |chart: &Chart| {
            let other = b.charts.iter().find_map(|other| lines_of(chart, other))?;
            let Chart::Lines { title, x_unit, y_unit, lines } = chart else { return None };
            let named = |side: &'static str, lines: &[Line]| -> Vec<Line> {
                let name = |line: &Line| format!("{side} {}", line.name);
                lines.iter().map(|it| Line { name: name(it), points: it.points.clone() }).collect()
            };
            Some(Chart::Lines {
                title: title.clone(),
                x_unit: x_unit.clone(),
                y_unit: y_unit.clone(),
                lines: [named("A", lines), named("B", other)].concat(),
            })
        };
        a.charts.iter().filter_map(together).collect()
    }
}

/// Returns the lines of `other`, if it shows the same as `chart`.
fn lines_of<'a>(chart: &Chart, other: &'a Chart) -> Option<&'a [Line]> {
    let Chart::Lines { title, x_unit, y_unit, .. } = chart else { return None };
    match other {
        Chart::Lines { title: t, x_unit: x, y_unit: y, lines } => {
            ((t, x, y) == (title, x_unit, y_unit)).then_some(lines)
        }
        Chart::Bars { .. } => None,
    }
}

impl<'a> Case<'a> {
    fn off(&self) -> [Option<&'a Measure>; 2] {
        [self.a, self.b].map(|row| row?.off.as_ref())
    }

    fn on(&self) -> [Option<&'a Measure>; 2] {
        [self.a, self.b].map(|row| row?.on.as_ref())
    }

    /// Returns its name, and which array has done its "on" in software.
    fn marked(&self) -> String {
        let marks = ["A on", "B on"].into_iter().zip(self.on());
        let marks: Vec<_> = marks.filter_map(|(name, on)| in_software::mark(name, on?)).collect();
        if marks.is_empty() {
            return self.name.to_owned();
        }
        format!("{} ({})", self.name, marks.join(", "))
    }

    /// Returns all of its measures, those of the array first.
    fn measures(&self) -> impl Iterator<Item = &'a Measure> {
        self.on().into_iter().chain(self.off()).flatten()
    }
}

/// Returns what makes numbers of the two hard to compare.
fn differences(a: &About, b: &About) -> Option<Block> {
    let mut found = Vec::new();
    let mut add = |what: &str, differs: bool| {
        if differs {
            found.push(what.to_owned());
        }
    };
    add("scale", a.scale != b.scale);
    add("numbers of machines", a.count_scale != b.count_scale);
    add("time of a load", a.load_seconds != b.load_seconds);
    add("machine", a.machine != b.machine);
    add("durability", a.durability != b.durability);
    add("hosts", a.hosts != b.hosts);
    add("number of portals", a.portals.len() != b.portals.len());
    add("version of the lab", a.lab_version != b.lab_version);
    (!found.is_empty()).then(|| {
        let text = format!("The two runs are not equivalent: they differ in {}.", found.join(", "));
        Block::Text(Tone::Bad, text)
    })
}

/// Returns one line per scenario: for its last case among those with the most measures.
fn summary(both: &[Both<'_>]) -> Table {
    let mut columns = vec![Column::words("Id"), Column::words("Scenario"), Column::words("Case")];
    for group in ["Off", "On"] {
        columns.extend(["A", "B", "A ÷ B"].map(|name| Column::numbers(name).of(group)));
    }
    columns.extend(["A", "B"].map(|name| Column::words(name).of("Aims met")));
    let rows = both.iter().enumerate().map(|(index, both)| {
        let cases = both.cases();
        let case = cases.iter().max_by_key(|case| case.measures().count());
        let what = figures::find(both.id).map_or("", |figure| figure.title);
        let shown = Shown::of(both.id, case.into_iter().flat_map(Case::measures));
        let name = case.map_or(number::NONE.into(), |case| shown.case(&case.marked()));
        let mut row = vec![
            Cell::new(both.id).linked(anchor(index, both.id)),
            Cell::new(what),
            Cell::new(name),
        ];
        for sides in [case.map(Case::off), case.map(Case::on)] {
            row.extend(compared(&shown, sides.unwrap_or_default()));
        }
        row.extend([both.a, both.b].map(aims));
        row
    });
    let caption = String::from("All scenarios, each by one case; all others are below");
    Table { caption, columns, rows: rows.collect() }
}

fn compared(shown: &Shown, sides: [Option<&Measure>; 2]) -> [Cell; 3] {
    let [a, b] = sides.map(|side| shown.read(side));
    let ratio = Ratio::of_measured(a, b, shown.least());
    [shown.show(a), shown.show(b), ratio.to_string()].map(Cell::new)
}

/// Returns how many goals one side met.
fn aims(side: Option<&ScenarioOutcome>) -> Cell {
    match side.map(|outcome| (&outcome.status, &outcome.verdicts)) {
        None => Cell::new("not run").toned(Tone::Faint),
        Some((Status::Failed { .. }, _)) => Cell::new("✗ failed").toned(Tone::Bad),
        Some((Status::Skipped { .. }, _)) => Cell::new("skipped").toned(Tone::Faint),
        Some((Status::Done, verdicts)) => {
            if verdicts.is_empty() {
                return Cell::new("none").toned(Tone::Faint);
            }
            let met = verdicts.iter().filter(|verdict| verdict.is_met).count();
            let tone = if met == verdicts.len() { Tone::Good } else { Tone::Bad };
            Cell::new(format!("{met} of {}", verdicts.len())).toned(tone)
        }
    }
}

fn blocks(both: &Both<'_>) -> Vec<Block> {
    let mut blocks: Vec<Block> = [("A", both.a), ("B", both.b)]
        .into_iter()
        .filter_map(|(name, it)| absent(name, it))
        .collect();
    let cases = both.cases();
    let mut pairs = Vec::new();
    for case in &cases {
        for (way, [left, right]) in [("off", case.off()), ("on", case.on())] {
            if left.is_some() || right.is_some() {
                pairs.push(Pair { case: format!("{}, {way}", case.name), left, right });
            }
        }
    }
    if !pairs.is_empty() {
        blocks.push(Block::Table(tables::measures("A against B", A_B, &pairs)));
        blocks.extend(tables::values("A against B, besides", A_B, &pairs).map(Block::Table));
        blocks.extend(tables::spreads(A_B, &pairs).map(Block::Table));
        blocks.extend(in_software::table(A_B, &pairs));
        blocks.push(Block::Chart(chart(both.id, &cases)));
    }
    blocks.extend(both.lines().into_iter().map(Block::Chart));
    blocks
}

/// Returns why one side has nothing to compare.
fn absent(name: &str, side: Option<&ScenarioOutcome>) -> Option<Block> {
    let text = match side.map(|outcome| &outcome.status) {
        None => String::from("not run"),
        Some(Status::Failed { reason }) => format!("failed: {reason}"),
        Some(Status::Skipped { reason }) => format!("skipped: {reason}"),
        Some(Status::Done) => return None,
    };
    Some(Block::Text(Tone::Bad, format!("{name}: {text}")))
}

/// Returns bars of both.
fn chart(id: &str, cases: &[Case<'_>]) -> Chart {
    let labels = cases.iter().map(|case| case.name.to_owned()).collect();
    let off = |side: usize| cases.iter().map(|case| case.off()[side]).collect();
    let on = |side: usize| cases.iter().map(|case| case.on()[side]).collect();
    let series = [("A off", off(0)), ("B off", off(1)), ("A on", on(0)), ("B on", on(1))];
    Shown::of(id, cases.iter().flat_map(Case::measures)).bars(labels, &series)
}
