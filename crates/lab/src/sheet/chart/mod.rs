//! Charts as SVG within the page: drawn by plotters, with the page's fonts and colors.

mod bars;
mod lines;
pub mod palette;

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, SVGBackend};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

use crate::number;
use crate::outcome::Chart;

/// The width of every drawing, in its own units: the page scales it.
const WIDTH: u32 = 720;
/// The size of text, in the same units.
const TEXT: u32 = 18;
/// Numbers larger than this are not drawn: no scale shows them next to others.
const LARGEST: f64 = 1e18;

/// The area of a drawing.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A drawing, and what belongs to it.
struct Drawing {
    height: u32,
    /// The elements, without the enclosing one.
    svg: String,
    /// The name and color of each series.
    legend: Vec<(String, RGBColor)>,
    /// A description for readers who can't see it.
    description: String,
}

/// Returns a chart with its title and legend. `id` is unique in the page.
pub fn figure(chart: &Chart, id: &str) -> Markup {
    let (title, drawing) = match chart {
        Chart::Bars { title, unit, labels, series } => (title, bars::draw(unit, labels, series)),
        Chart::Lines { title, x_unit, y_unit, lines } => {
            (title, lines::draw(x_unit, y_unit, lines))
        }
    };
    html! {
        figure {
            @match drawing {
                Ok(drawing) => {
                    figcaption { (title) (legend(&drawing.legend)) }
                    (framed(title, &drawing, id))
                }
                Err(reason) => {
                    figcaption { (title) }
                    p.faint { "Not drawn: " (reason) "." }
                }
            }
        }
    }
}

fn legend(series: &[(String, RGBColor)]) -> Markup {
    html! {
        ul.legend {
            @for (name, colour) in series {
                li {
                    svg.chart.swatch viewBox="0 0 10 10" aria-hidden="true" {
                        rect width="10" height="10" rx="2" fill=(palette::code(*colour)) {}
                    }
                    (name)
                }
            }
        }
    }
}

fn framed(title: &str, drawing: &Drawing, id: &str) -> Markup {
    let (named, described) = (format!("{id}-title"), format!("{id}-text"));
    let view = format!("0 0 {WIDTH} {}", drawing.height);
    html! {
        div.wide tabindex="0" role="group" aria-label=(title) {
            svg.chart.plot viewBox=(view) role="img" aria-labelledby=(named)
                aria-describedby=(described)
            {
                title id=(named) { (title) }
                desc id=(described) { (drawing.description) }
                (PreEscaped(&drawing.svg))
            }
        }
    }
}

/// Draws, and removes the element around the drawing: the page has its own, with a title.
fn drawn(
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Result<(), String>,
) -> Result<String, String> {
    let mut text = String::new();
    {
        let area = plotters::drawing::IntoDrawingArea::into_drawing_area(SVGBackend::with_string(
            &mut text,
            (WIDTH, height),
        ));
        draw(&area)?;
        area.present().map_err(|error| error.to_string())?;
    }
    let inner = text.split_once('>').map(|(_, rest)| rest.trim());
    let inner = inner.and_then(|rest| rest.strip_suffix("</svg>"));
    inner.map(str::to_owned).ok_or_else(|| String::from("the drawing has an unexpected form"))
}

/// Returns the style of text.
fn text() -> TextStyle<'static> {
    // The page's style sheet replaces this font by its own.
    let style = TextStyle::from(("sans-serif", TEXT).into_font());
    TextStyle { color: palette::INK.light().to_backend_color(), ..style }
}

/// Returns whether a number can be drawn.
fn is_drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= LARGEST
}

/// Returns an axis from 0, or below it, to a little over the largest value.
fn axis(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values.fold((0.0f64, 0.0f64), |(a, b), it| (a.min(it), b.max(it)));
    if most - least < 1e-12 { 0.0..1.0 } else { least * 1.05..most * 1.05 }
}

/// Returns the unit after a heading; empty if there is none.
fn in_unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!("in {unit}") }
}

/// Formats a number at an axis, bytes with their prefix.
fn tick(value: f64, unit: &str) -> String {
    match unit {
        "B" => number::bytes(value),
        // Ticks are round numbers: what three digits would add are zeros.
        _ if value.abs() < 1.0 && value != 0.0 => {
            let text = number::three(value);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ if value.fract() == 0.0 => number::whole(value),
        _ => number::three(value),
    }
}
