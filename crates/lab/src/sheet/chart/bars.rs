//! Bars in groups. They are horizontal, because the names of cases are long, and windows narrow.

use plotters::prelude::{ChartBuilder, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor, TextStyle};

use super::{Area, Drawing, WIDTH, axis, drawn, in_unit, is_drawable, palette, text, tick};
use crate::number;
use crate::outcome::Series;

/// The height of a bar, and of the space between groups.
const BAR: u32 = 22;
const GAP: u32 = 12;
/// The height of the axis below the bars, with its heading.
const AXIS: u32 = 48;
/// The widths beside them: labels on the left, numbers on the right.
const LABELS: u32 = 220;
const NUMBERS: u32 = 250;
/// The approximate maximum width of a character.
const CHARACTER: u32 = 9;
/// The number of characters in a line of a label, and of lines.
const LABEL_CHARACTERS: usize = 24;
const LABEL_LINES: usize = 2;

/// What is drawn: a group for each label, with a bar for each series.
struct Groups<'a> {
    unit: &'a str,
    labels: &'a [String],
    series: &'a [Series],
    colours: Vec<RGBColor>,
}

/// Draws bars.
///
/// # Errors
/// If there is nothing to draw.
pub(super) fn draw(unit: &str, labels: &[String], series: &[Series]) -> Result<Drawing, String> {
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let groups = Groups { unit, labels, series, colours: palette::of_series(&names) };
    if groups.values().next().is_none() {
        return Err(String::from("nothing was measured"));
    }
    let rows = labels.len() as u32 * groups.height() + AXIS;
    Ok(Drawing {
        height: rows,
        svg: drawn(rows, |area| groups.draw(area))?,
        legend: names.iter().map(|name| (*name).to_owned()).zip(groups.colours.clone()).collect(),
        description: groups.description(),
    })
}

impl Groups<'_> {
    /// Returns the height of a group.
    fn height(&self) -> u32 {
        // A label has at most two lines.
        (self.series.len() as u32 * BAR).max(2 * BAR) + GAP
    }

    /// Returns the value of a bar, if it can be drawn.
    fn value(&self, series: usize, label: usize) -> Option<f64> {
        let value = *self.series.get(series)?.values.get(label)?;
        value.filter(|value| is_drawable(*value))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let labels = 0..self.labels.len();
        labels
            .flat_map(|label| (0..self.series.len()).map(move |series| (series, label)))
            .filter_map(|(series, label)| self.value(series, label))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), String> {
        let text = text();
        let down = 0.0..f64::from(self.labels.len() as u32 * self.height());
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(AXIS)
            .y_label_area_size(LABELS)
            .margin_right(self.beside() as i32)
            .build_cartesian_2d(axis(self.values()), down.end..down.start)
            .map_err(|error| error.to_string())?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(6)
            .x_label_formatter(&|value| tick(*value, self.unit))
            .x_desc(in_unit(self.unit))
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .axis_style(palette::INK.light())
            .bold_line_style(palette::GRID.light())
            .light_line_style(RGBColor(0, 0, 0).mix(0.0))
            .draw()
            .map_err(|error| error.to_string())?;
        for label in 0..self.labels.len() {
            self.draw_label(area, label, &text)?;
            for series in 0..self.series.len() {
                let top = self.top(label) + (series as u32 * BAR) as f64;
                let Some(value) = self.value(series, label) else { continue };
                let corners = [(0.0, top + 1.0), (value, top + f64::from(BAR) - 1.0)];
                chart
                    .draw_series([Rectangle::new(corners, self.colours[series].filled())])
                    .map_err(|error| error.to_string())?;
                let (x, _) = chart.backend_coord(&(value.max(0.0), top));
                let y = (top + f64::from(BAR) / 2.0) as i32;
                let shown = number::quantity(value, self.unit);
                let style = text.pos(Pos::new(HPos::Left, VPos::Center));
                area.draw(&Text::new(shown, (x + 5, y), style))
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Returns how much space the numbers need.
    fn beside(&self) -> u32 {
        let shown = self.values().map(|value| number::quantity(value, self.unit).chars().count());
        (shown.max().unwrap_or(0) as u32 * CHARACTER + CHARACTER).min(NUMBERS)
    }

    /// Returns where a group begins.
    fn top(&self, label: usize) -> f64 {
        let spare = self.height() - self.series.len() as u32 * BAR;
        f64::from(label as u32 * self.height() + spare / 2)
    }

    /// Writes a label on the left of its group.
    fn draw_label(
        &self,
        area: &Area<'_>,
        label: usize,
        text: &TextStyle<'_>,
    ) -> Result<(), String> {
        let lines = wrapped(&self.labels[label]);
        let middle = label as u32 * self.height() + self.height() / 2;
        let first = middle as i32 - (lines.len() as i32 - 1) * BAR as i32 / 2;
        for (index, line) in lines.into_iter().enumerate() {
            let place = (LABELS as i32 - 8, first + index as i32 * BAR as i32);
            let style = text.pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(line, place, style)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Returns all numbers, in words.
    fn description(&self) -> String {
        let group = |label: usize| {
            let bars = (0..self.series.len()).filter_map(|series| {
                let value = number::quantity(self.value(series, label)?, self.unit);
                Some(format!("{} {value}", self.series[series].name))
            });
            format!("{}: {}.", self.labels[label], bars.collect::<Vec<_>>().join(", "))
        };
        (0..self.labels.len()).map(group).collect::<Vec<_>>().join(" ")
    }
}

/// Splits a label into lines. If it is too long it ends with an ellipsis.
fn wrapped(label: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in label.split_whitespace() {
        let last = lines.last_mut();
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < LABEL_CHARACTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let is_cut = lines.len() > LABEL_LINES;
    lines.truncate(LABEL_LINES);
    for line in &mut lines {
        if line.chars().count() > LABEL_CHARACTERS {
            *line = line.chars().take(LABEL_CHARACTERS - 1).chain(['…']).collect();
        }
    }
    if let Some(last) = lines.last_mut().filter(|line| is_cut && !line.ends_with('…')) {
        last.push('…');
    }
    lines
}

/// The bars, their labels and their numbers share the width.
const _: () = assert!(LABELS + NUMBERS < WIDTH * 2 / 3);

#[cfg(test)]
mod tests {
    use super::{draw, wrapped};
    use crate::outcome::Series;

    #[test]
    fn long_labels_are_wrapped_and_cut() {
        assert_eq!(wrapped("16 VMs"), ["16 VMs"]);
        assert_eq!(
            wrapped("eagerzeroedthick, 16 MB a command"),
            ["eagerzeroedthick, 16 MB", "a command"]
        );
        let long = wrapped(&"word ".repeat(20));
        assert_eq!(long.len(), 2);
        assert!(long[1].ends_with('…'), "{long:?}");
        assert_eq!(wrapped(&"w".repeat(50))[0].chars().count(), 24);
        assert_eq!(wrapped(""), [""]);
    }

    #[test]
    fn a_bar_that_was_not_measured_is_not_drawn() {
        let labels = [String::from("one"), String::from("two")];
        let series = |values: [Option<f64>; 2]| Series {
            name: String::from("off"),
            values: values.to_vec(),
        };
        let both = draw("s", &labels, &[series([Some(1.0), Some(2.0)])]).unwrap();
        let one = draw("s", &labels, &[series([Some(1.0), None])]).unwrap();
        let rects = |svg: &str| svg.matches("<rect").count();
        assert_eq!(rects(&both.svg), rects(&one.svg) + 1);
        assert_eq!(one.description, "one: off 1.00\u{a0}s. two: .");
        let nothing = [None, Some(f64::NAN)];
        assert!(draw("s", &labels, &[series(nothing)]).is_err());
        assert!(draw("s", &[], &[]).is_err());
    }
}
