//! The table at the top of a report: every figure in a line, the paper's numbers next to ours.

use super::Ratio;
use super::document::{Cell, Column, Table, Tone, anchor};
use super::quantity::Shown;
use super::report::case;
use crate::figures::{self, Figure};
use crate::number;
use crate::outcome::{Report, Row, ScenarioOutcome, Status};

/// Returns a table of every figure, and every scenario that is not one.
pub fn table(report: &Report) -> Table {
    let there = Tone::Published;
    let columns = vec![
        Column::words("Id"),
        Column::words("Scenario"),
        Column::words("of").of("Published").toned(there),
        Column::words("off").of("Published").toned(there),
        Column::words("on").of("Published").toned(there),
        Column::words("gain").of("Published").toned(there),
        Column::words("of").of("Here"),
        Column::numbers("off").of("Here"),
        Column::numbers("on").of("Here"),
        Column::numbers("gain").of("Here"),
        Column::words("Aims"),
    ];
    let mut rows = Vec::new();
    for figure in figures::ALL {
        let mut found = outcomes(report).filter(|(_, outcome)| outcome.id == figure.id).peekable();
        if found.peek().is_none() {
            rows.push(row(Some(figure), None));
        }
        rows.extend(found.map(|found| row(Some(figure), Some(found))));
    }
    let others = outcomes(report).filter(|(_, outcome)| figures::find(&outcome.id).is_none());
    rows.extend(others.map(|found| row(None, Some(found))));
    let caption = String::from("All scenarios. Published figures are of other arrays and hosts");
    Table { caption, columns, rows }
}

/// Returns the overall result, in a sentence.
pub fn sentence(report: &Report) -> String {
    let count = |is_it: fn(&Status) -> bool| {
        report.scenarios.iter().filter(|outcome| is_it(&outcome.status)).count()
    };
    let is_run = |figure: &&Figure| report.scenarios.iter().any(|o| o.id == figure.id);
    let missing = figures::ALL.len() - figures::ALL.iter().filter(is_run).count();
    let verdicts = || report.scenarios.iter().flat_map(|outcome| &outcome.verdicts);
    let verified: u64 = report.scenarios.iter().map(|outcome| outcome.verified_bytes).sum();
    let sentence = format!(
        "{} scenarios done, {} failed, {} skipped, {} not run. {} of {} goals met. {} read back \
         and compared.",
        count(|status| matches!(status, Status::Done)),
        count(|status| matches!(status, Status::Failed { .. })),
        count(|status| matches!(status, Status::Skipped { .. })),
        missing,
        verdicts().filter(|verdict| verdict.is_met).count(),
        verdicts().count(),
        number::bytes(verified as f64),
    );
    match report.about.count_scale {
        1 => sentence,
        _ => format!("{sentence} There were fewer machines than in the papers: not comparable."),
    }
}

fn outcomes(report: &Report) -> impl Iterator<Item = (usize, &ScenarioOutcome)> {
    report.scenarios.iter().enumerate()
}

fn row(figure: Option<&Figure>, found: Option<(usize, &ScenarioOutcome)>) -> Vec<Cell> {
    let outcome = found.map(|(_, outcome)| outcome);
    let id = match (found, figure) {
        (Some((index, outcome)), _) => Cell::new(&outcome.id).linked(anchor(index, &outcome.id)),
        (None, Some(figure)) => Cell::new(figure.id),
        (None, None) => Cell::new(number::NONE),
    };
    let mut cells = vec![id, Cell::new(figure.map_or("", |figure| figure.title))];
    let first = figure.and_then(|figure| figure.published.first());
    let states = match first {
        Some(first) => [Some(first.what), first.off, first.on, first.gain],
        None => [None; 4],
    };
    let there = |text: Option<&str>| Cell::new(text.unwrap_or(number::NONE)).toned(Tone::Published);
    cells.extend(states.map(there));
    cells.extend(outcome.map_or_else(nothing, headline));
    cells.push(state(outcome));
    cells
}

/// Returns how a scenario ended, and how many of its goals were met.
fn state(outcome: Option<&ScenarioOutcome>) -> Cell {
    let Some(outcome) = outcome else { return Cell::new("not run").toned(Tone::Faint) };
    match outcome.status {
        Status::Failed { .. } => return Cell::new("✗ failed").toned(Tone::Bad),
        Status::Skipped { .. } => return Cell::new("skipped").toned(Tone::Faint),
        Status::Done => {}
    }
    let all = outcome.verdicts.len();
    let met = outcome.verdicts.iter().filter(|verdict| verdict.is_met).count();
    match all - met {
        _ if all == 0 => Cell::new("none").toned(Tone::Faint),
        0 => Cell::new(format!("✓ {met} of {all} met")).toned(Tone::Good),
        missed => Cell::new(format!("✗ {missed} of {all} missed")).toned(Tone::Bad),
    }
}

fn nothing() -> [Cell; 4] {
    [(); 4].map(|()| Cell::new(number::NONE).toned(Tone::Faint))
}

/// Returns the case that represents a scenario: the last one with both sides, which is the largest
/// if the papers have increasing sizes; without such a case, the last one.
fn headline(outcome: &ScenarioOutcome) -> [Cell; 4] {
    let has_both = |row: &&Row| row.off.is_some() && row.on.is_some();
    let Some(row) = outcome.rows.iter().rfind(has_both).or(outcome.rows.last()) else {
        return nothing();
    };
    let shown = Shown::of(&outcome.id, row.on.iter().chain(&row.off));
    let (off, on) = (shown.read(row.off.as_ref()), shown.read(row.on.as_ref()));
    let gain = match (&shown, Ratio::of(on, off)) {
        (Shown::Seconds, _) => Ratio::of_measured(off, on, shown.least()).to_string(),
        (_, Ratio::Unknown) => number::NONE.to_owned(),
        // More may be better, or less: so it says which ratio it is.
        (_, ratio) => format!("on ÷ off {ratio}"),
    };
    [shown.case(&case(row)), shown.show(off), shown.show(on), gain].map(Cell::new)
}
