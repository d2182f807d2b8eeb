//! Lines over something, usually over time.

use std::ops::Range;

use plotters::prelude::{ChartBuilder, LineSeries};
use plotters::style::{Color, RGBColor};

use super::{Area, Drawing, axis, drawn, in_unit, is_drawable, palette, text, tick};
use crate::number;
use crate::outcome::Line;

const HEIGHT: u32 = 320;
/// The sizes of the axes below the lines and on their left, with headings.
const BELOW: u32 = 52;
const LEFT: u32 = 96;
/// The width of a line.
const STROKE: u32 = 2;

/// Draws lines.
///
/// # Errors
/// If there is nothing to draw.
pub(super) fn draw(x_unit: &str, y_unit: &str, lines: &[Line]) -> Result<Drawing, String> {
    let points: Vec<Vec<(f64, f64)>> = lines.iter().map(drawable).collect();
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let colours = palette::of_series(&names);
    let all = || points.iter().flatten();
    let Some(x) = span(all().map(|point| point.0)) else {
        return Err(String::from("nothing was measured"));
    };
    let y = axis(all().map(|point| point.1));
    let svg = drawn(HEIGHT, |area| draw_lines(area, [x_unit, y_unit], [x, y], &points, &colours))?;
    let described: Vec<String> = names
        .iter()
        .zip(&points)
        .filter_map(|(name, points)| describe(name, points, [x_unit, y_unit]))
        .collect();
    Ok(Drawing {
        height: HEIGHT,
        svg,
        legend: names.iter().map(|name| (*name).to_owned()).zip(colours).collect(),
        description: described.join(" "),
    })
}

fn drawable(line: &Line) -> Vec<(f64, f64)> {
    let is_point = |(x, y): &(f64, f64)| is_drawable(*x) && is_drawable(*y);
    line.points.iter().copied().filter(is_point).collect()
}

fn draw_lines(
    area: &Area<'_>,
    units: [&str; 2],
    [x, y]: [Range<f64>; 2],
    points: &[Vec<(f64, f64)>],
    colours: &[RGBColor],
) -> Result<(), String> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(12)
        .margin_right(24)
        .x_label_area_size(BELOW)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(x, y)
        .map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&|value| tick(*value, units[0]))
        .y_label_formatter(&|value| tick(*value, units[1]))
        .x_desc(in_unit(units[0]))
        .y_desc(in_unit(units[1]))
        .label_style(text())
        .axis_desc_style(text())
        .axis_style(palette::INK.light())
        .bold_line_style(palette::GRID.light())
        .light_line_style(RGBColor(0, 0, 0).mix(0.0))
        .draw()
        .map_err(|error| error.to_string())?;
    for (line, colour) in points.iter().zip(colours) {
        let line = LineSeries::new(line.iter().copied(), colour.stroke_width(STROKE));
        chart.draw_series(line).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Returns the range of the values; `None` without values.
fn span(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let mut span: Option<Range<f64>> = None;
    for value in values {
        let so_far = span.unwrap_or(value..value);
        span = Some(so_far.start.min(value)..so_far.end.max(value));
    }
    span.map(|span| if span.end - span.start < 1e-12 { span.start..span.start + 1.0 } else { span })
}

/// Describes a line in words; `None` if there is nothing to say.
fn describe(name: &str, points: &[(f64, f64)], [x_unit, y_unit]: [&str; 2]) -> Option<String> {
    let x = span(points.iter().map(|point| point.0))?;
    let (least, most) = points
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), point| (a.min(point.1), b.max(point.1)));
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let y = |value: f64| number::quantity(value, y_unit);
    Some(format!(
        "{name}, from {} to {}: {} to {}, {} on average.",
        number::quantity(x.start, x_unit),
        number::quantity(x.end, x_unit),
        y(least),
        y(most),
        y(mean)
    ))
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::outcome::Line;

    fn line(points: &[(f64, f64)]) -> Line {
        Line { name: String::from("on"), points: points.to_vec() }
    }

    #[test]
    fn a_line_is_drawn_and_described() {
        let drawing = draw("s", "IOPS", &[line(&[(0.0, 100.0), (1.0, 300.0), (2.0, 200.0)])]);
        let drawing = drawing.unwrap();
        assert!(drawing.svg.contains("<polyline"), "{}", drawing.svg);
        let text = "on, from 0\u{a0}s to 2.00\u{a0}s: 100\u{a0}IOPS to 300\u{a0}IOPS, \
                    200\u{a0}IOPS on average.";
        assert_eq!(drawing.description, text);
    }

    #[test]
    fn values_beyond_any_scale_are_left_out() {
        let odd = [(0.0, f64::NAN), (f64::INFINITY, 1.0), (1.0, 1e300)];
        assert!(draw("s", "IOPS", &[line(&odd)]).is_err());
        assert!(draw("s", "IOPS", &[line(&[])]).is_err());
        // One point, and a flat line, have an axis nevertheless.
        assert!(draw("s", "IOPS", &[line(&[(1.0, 0.0)])]).is_ok());
    }
}
