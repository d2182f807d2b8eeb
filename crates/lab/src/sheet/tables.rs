//! Tables of measurements: two sides and their ratio.

use super::document::{Cell, Column, Table, Tone};
use super::{Ratio, in_software};
use crate::figures::Figure;
use crate::number;
use crate::outcome::{LEAST_SECONDS, Measure, Value, Verdict};

/// What a table compares: off and on, or array A and array B.
#[derive(Clone, Copy)]
pub struct Sides {
    /// On the left.
    pub left: &'static str,
    /// On the right.
    pub right: &'static str,
    /// The name of the ratio.
    pub ratio: &'static str,
    /// Whether it is right to left.
    pub is_reversed: bool,
}

/// The host's way and the array's, for costs: how many times more with off.
pub const OFF_ON: Sides =
    Sides { left: "off", right: "on", ratio: "off ÷ on", is_reversed: false };
/// The same for other values, of which more may be better.
pub const ON_OFF: Sides = Sides { ratio: "on ÷ off", is_reversed: true, ..OFF_ON };
/// Two arrays.
pub const A_B: Sides = Sides { left: "A", right: "B", ratio: "A ÷ B", is_reversed: false };

/// One line of such a table.
pub struct Pair<'a> {
    /// What was measured.
    pub case: String,
    /// On the left.
    pub left: Option<&'a Measure>,
    /// On the right.
    pub right: Option<&'a Measure>,
}

/// One of the four measures: its name, how it is read and formatted.
struct Quantity {
    name: &'static str,
    of: fn(&Measure) -> f64,
    show: fn(f64) -> String,
    /// The smallest value that can be measured.
    least: f64,
}

/// What is measured for every case.
const FOUR: [Quantity; 4] = [
    Quantity { name: "Seconds", of: |m| m.seconds, show: number::seconds, least: LEAST_SECONDS },
    Quantity {
        name: "Bytes on the wire",
        of: |m| m.wire_bytes as f64,
        show: number::bytes,
        least: 0.0,
    },
    Quantity {
        name: "Host CPU seconds",
        of: |m| m.host_cpu_s,
        show: number::seconds,
        least: LEAST_SECONDS,
    },
    Quantity {
        name: "Commands",
        of: |m| m.commands as f64,
        show: |value| number::count(value as u64),
        least: 0.0,
    },
];

/// Returns the four measures of every case.
pub fn measures(caption: &str, sides: Sides, pairs: &[Pair<'_>]) -> Table {
    let mut columns = vec![Column::words("Case")];
    for quantity in &FOUR {
        columns.extend(
            [sides.left, sides.right, sides.ratio]
                .map(|name| Column::numbers(name).of(quantity.name)),
        );
    }
    let rows = pairs.iter().map(|pair| {
        let mut row = vec![case(&sides, pair)];
        for quantity in &FOUR {
            let left = pair.left.map(quantity.of);
            let right = pair.right.map(quantity.of);
            row.extend(sides.compared(left, right, quantity.least, quantity.show));
        }
        row
    });
    Table { caption: caption.to_owned(), columns, rows: rows.collect() }
}

/// Returns a case, with a mark for what was done in software although it was to be offloaded.
fn case(sides: &Sides, pair: &Pair<'_>) -> Cell {
    let sides = [(sides.left, pair.left), (sides.right, pair.right)];
    let marks: Vec<String> =
        sides.into_iter().filter_map(|(name, side)| in_software::mark(name, side?)).collect();
    if marks.is_empty() {
        return Cell::new(&pair.case);
    }
    Cell::new(format!("{} ({})", pair.case, marks.join(", "))).toned(Tone::Bad)
}

/// Returns other measured values; `None` if there are none.
pub fn values(caption: &str, sides: Sides, pairs: &[Pair<'_>]) -> Option<Table> {
    let columns = vec![
        Column::words("Case"),
        Column::words("Of"),
        Column::numbers(sides.left),
        Column::numbers(sides.right),
        Column::numbers(sides.ratio),
    ];
    let mut rows = Vec::new();
    for pair in pairs {
        for (name, unit) in names(pair) {
            let find = |side: Option<&Measure>| value(side?, name, unit);
            let (left, right) = (find(pair.left), find(pair.right));
            let show = |value| number::quantity(value, unit);
            let [left, right, ratio] = sides.compared(left, right, 0.0, show);
            rows.push(vec![case(&sides, pair), Cell::new(name), left, right, ratio]);
        }
    }
    (!rows.is_empty()).then(|| Table { caption: caption.to_owned(), columns, rows })
}

/// Returns repeated measurements: their number and range; `None` if nothing was repeated.
pub fn spreads(sides: Sides, pairs: &[Pair<'_>]) -> Option<Table> {
    let mut rows = Vec::new();
    for pair in pairs {
        for (name, side) in [(sides.left, pair.left), (sides.right, pair.right)] {
            let Some((measure, spread)) = side.and_then(|side| Some((side, side.spread?))) else {
                continue;
            };
            let times = [spread.least_seconds, measure.seconds, spread.most_seconds];
            let mut row = vec![
                Cell::new(format!("{}, {name}", pair.case)),
                Cell::new(number::count(spread.runs.into())),
            ];
            row.extend(times.map(|time| Cell::new(number::seconds(time))));
            rows.push(row);
        }
    }
    let mut columns = vec![Column::words("Of")];
    columns.extend(["times", "least", "middle", "most"].map(Column::numbers));
    let caption = String::from("Done several times: the run with the median time counts");
    (!rows.is_empty()).then_some(Table { caption, columns, rows })
}

/// Returns the value of a measure with this name and unit.
pub fn value(measure: &Measure, name: &str, unit: &str) -> Option<f64> {
    let is_it = |value: &&Value| value.name == name && value.unit == unit;
    measure.values.iter().find(is_it).map(|value| value.value)
}

/// Returns the names and units of all values of a line, once each.
fn names<'a>(pair: &Pair<'a>) -> Vec<(&'a str, &'a str)> {
    let mut names = Vec::new();
    for value in [pair.left, pair.right].into_iter().flatten().flat_map(|side| &side.values) {
        let name = (value.name.as_str(), value.unit.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Sides {
    /// Returns two numbers and their ratio.
    fn compared(
        &self,
        left: Option<f64>,
        right: Option<f64>,
        least: f64,
        show: impl Fn(f64) -> String,
    ) -> [Cell; 3] {
        let side = |value: Option<f64>| match value {
            Some(value) => Cell::new(show(value)),
            None => Cell::new(number::NONE).toned(Tone::Faint),
        };
        let (of, to) = if self.is_reversed { (right, left) } else { (left, right) };
        let ratio = Ratio::of_measured(of, to, least);
        [side(left), side(right), Cell::new(ratio.to_string())]
    }
}

/// Returns what a paper published.
pub fn published(figure: &Figure) -> Table {
    let tone = Tone::Published;
    let columns = vec![
        Column::words("of").toned(tone),
        Column::words("off").toned(tone),
        Column::words("on").toned(tone),
        Column::words("gain").toned(tone),
    ];
    let rows = figure.published.iter().map(|published| {
        let cell = |text: Option<&str>| Cell::new(text.unwrap_or(number::NONE)).toned(tone);
        vec![
            Cell::new(published.what).toned(tone),
            cell(published.off),
            cell(published.on),
            cell(published.gain),
        ]
    });
    let caption = format!("Published: {}. Their array, their hosts, their sizes", figure.paper);
    Table { caption, columns, rows: rows.collect() }
}

/// Returns the goals, and the results.
pub fn verdicts(verdicts: &[Verdict]) -> Table {
    let columns = ["Aim", "Goal", "Measured", "Verdict", "Why"].map(Column::words);
    let rows = verdicts.iter().map(|verdict| {
        let (word, tone) = if verdict.is_met {
            ("✓\u{a0}met", Tone::Good)
        } else {
            ("✗\u{a0}missed", Tone::Bad)
        };
        let reason = match &verdict.reason {
            Some(reason) => reason.as_str(),
            None if verdict.is_met => "",
            None => "no reason is known yet",
        };
        vec![
            Cell::new(&verdict.what),
            Cell::new(&verdict.goal),
            Cell::new(&verdict.measured),
            Cell::new(word).toned(tone),
            Cell::new(reason),
        ]
    });
    let rows = rows.collect();
    Table { caption: String::from("Aims"), columns: columns.into(), rows }
}
