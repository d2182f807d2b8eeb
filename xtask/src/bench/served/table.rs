//! The table of a group: measurements, and which goals they meet.

use std::fmt::{self, Display, Write};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A column of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading, unique in the table, with the unit.
    pub name: &'static str,
    /// Digits after the decimal point.
    pub digits: usize,
}

/// Returns a column with this name.
pub const fn column(name: &'static str, digits: usize) -> Column {
    Column { name, digits }
}

/// A goal for a number.
#[derive(Clone, Debug, Serialize)]
pub struct Goal {
    /// The name of the number.
    pub of: &'static str,
    /// The lower or upper bound.
    pub bound: f64,
    /// Whether it is a lower bound.
    pub is_least: bool,
    /// Whether the measurement meets it.
    pub is_met: bool,
}

impl Goal {
    /// `measured` should be at least `bound`. NaN does not meet it.
    pub fn at_least(of: &'static str, measured: f64, bound: f64) -> Self {
        Self { of, bound, is_least: true, is_met: measured >= bound }
    }

    /// `measured` should be at most `bound`. NaN does not meet it.
    pub fn at_most(of: &'static str, measured: f64, bound: f64) -> Self {
        Self { of, bound, is_least: false, is_met: measured <= bound }
    }
}

impl Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, bound, is_least, is_met } = self;
        let relation = if *is_least { "at least" } else { "at most" };
        write!(f, "{of} {relation} {bound}: {}", if *is_met { "met" } else { "MISSED" })
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, for `--rows`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// One for each column; `None` for what was not measured.
    pub figures: Vec<Option<f64>>,
    /// The goals.
    pub goals: Vec<Goal>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its heading.
    pub title: &'static str,
    /// A description of the load, and of the columns.
    pub text: String,
    /// The columns.
    pub columns: &'static [Column],
    /// The rows.
    pub lines: Vec<Line>,
}

impl Table {
    /// Returns the table in Markdown.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "## {}\n\n{}\n", self.title, self.text)?;
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        writeln!(text, "| row | {} | goal |", names.join(" | "))?;
        writeln!(text, "|---|{}---|", "---:|".repeat(names.len()))?;
        for line in &self.lines {
            write!(text, "| {} |", line.title)?;
            for (column, figure) in self.columns.iter().zip(&line.figures) {
                match figure {
                    Some(figure) => write!(text, " {figure:.*} |", column.digits)?,
                    None => write!(text, " - |")?,
                }
            }
            let goals: Vec<String> = line.goals.iter().map(Goal::to_string).collect();
            writeln!(text, " {} |", if goals.is_empty() { "-".into() } else { goals.join("; ") })?;
        }
        writeln!(text)
    }

    /// Returns each row with its figures by column name.
    fn to_json(&self) -> Value {
        let line = |line: &Line| {
            let figures = self.columns.iter().zip(&line.figures);
            let figures: Map<String, Value> =
                figures.map(|(column, figure)| (column.name.to_owned(), json!(figure))).collect();
            json!({"id": line.id, "title": line.title, "figures": figures, "goals": line.goals})
        };
        json!({"title": self.title, "rows": self.lines.iter().map(line).collect::<Vec<_>>()})
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[column("rate", 0), column("ratio", 2)];

    fn table(figures: Vec<Option<f64>>, goals: Vec<Goal>) -> Table {
        let line = Line { id: "a-1".into(), title: "A".into(), figures, goals };
        Table { title: "Title", text: "Text.".into(), columns: COLUMNS, lines: vec![line] }
    }

    #[test]
    fn a_row_has_its_figures_and_its_goals() {
        let goals = vec![Goal::at_least("ratio", 0.7, 0.7), Goal::at_most("p99", 11.0, 10.0)];
        let text = table(vec![Some(1234.4), Some(0.704)], goals).render();
        let row = "| A | 1234 | 0.70 | ratio at least 0.7: met; p99 at most 10: MISSED |";
        assert!(
            text.contains(
                "## Title\n\nText.\n\n| row | rate | ratio | goal |\n|---|---:|---:|---|"
            )
        );
        assert_eq!(text.lines().nth(6), Some(row));
    }

    #[test]
    fn missing_figures_are_a_dash_and_null() {
        let table = table(vec![None, Some(1.5)], Vec::new());
        assert!(table.render().contains("| A | - | 1.50 | - |"));
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(json["rows"][0]["figures"], json!({"rate": null, "ratio": 1.5}));
        assert_eq!(json["rows"][0]["id"], "a-1");
    }

    #[test]
    fn nan_meets_no_goal() {
        assert!(!Goal::at_least("rate", f64::NAN, 1.0).is_met);
        assert!(!Goal::at_most("rate", f64::NAN, 1.0).is_met);
    }
}
